"""The verb ``plan``: the steps from what is deployed to what the file says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    TrustedOption,
    assembly_errors,
    aws_errors,
    os_errors,
    root_of,
    synthesized,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.review import Access, HeadOption, check_file, open_aws

if TYPE_CHECKING:
    from hyperpod_cdk.review.sources import Source
    from hyperpod_cdk.transitions.model import Plan

PAGES = (".md", ".json")


def plan(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REF|DIR",
            help="Plan from a git revision or cloud assembly, without AWS. Default: what is deployed.",
        ),
    ] = None,
    head: HeadOption = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", metavar="FILE", help="Plan to write: .md or .json; may be given again."),
    ] = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Tell the steps from what is deployed to what the file says, reading only; most changes need one.

    Of each step: what it does, interrupts and loses, how long it lasts, how to go back, and what a person does before
    it. Exit code 1 where no order of steps works.
    """
    from hyperpod_cdk.review.isolation import Limits  # noqa: PLC0415 - 'plan --help' need not load it

    for file in out or ():
        check_file(file, PAGES)
    root = root_of(project, runs_extensions=False)
    with (
        assembly_errors(),
        synthesized(root, environment, base=base, head=head, limits=Limits(is_trusted=trusted)) as found,
    ):
        old, new = found
        planned = _planned(context, old, new)
    _write(planned, out or (), output)
    if planned.refusals:
        raise typer.Exit(FINDINGS)


def _planned(context: typer.Context, base: Source | None, head: Source) -> Plan:
    from hyperpod_cdk.review.model import Side  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.plan import plan as planned  # noqa: PLC0415 - as above

    if base is not None:
        notes = (*base.notes, *head.notes)
        return planned(base.assembly, head.assembly, base_side=base.side, head_side=head.side, notes=notes)
    from hyperpod_cdk.transitions.standing import read_standing  # noqa: PLC0415 - as above

    if not head.assembly.stacks:
        usage(f"{head.notes[0]} Plan with --base to see what leaves, or destroy it with 'cdk destroy'.")
    if not head.assembly.region:
        usage("the stacks name no region, so that it is not known where they are deployed; plan with --base")
    access = context.obj if isinstance(context.obj, Access) else Access(open=open_aws)
    with aws_errors(otherwise=", or use --base"):
        aws = access.open(head.assembly.region, head.assembly.account)
    standing = read_standing(aws, head.assembly)
    return planned(
        standing.base,
        standing.head,
        base_side=Side(label="deployed"),
        head_side=head.side,
        notes=(*standing.notes, *head.notes),
        importers=standing.importers,
        blockers=standing.blockers,
    )


def _write(planned: Plan, files: list[Path] | tuple[()], output: Format) -> None:
    from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - as above

    for file in files:
        with os_errors(file):
            write_atomically(file, pages.markdown(planned) if file.suffix == ".md" else pages.plan_json(planned))
        typer.echo(f"wrote {file}", err=True)
    if output is Format.JSON:
        typer.echo(pages.plan_json(planned), nl=False)
    elif files:
        typer.echo(f"{planned.environment}: {planned.verdict}")
    else:
        typer.echo(pages.text(planned), nl=False)
