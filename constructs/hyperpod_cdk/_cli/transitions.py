"""The commands ``plan``, ``deploy`` and ``destroy``: show and run the steps from the deployed state to the files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
    environment_file,
    finish,
    judged_environment,
    os_errors,
    root_of,
    synthesized,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.review import Access, HeadOption, check_file, open_aws
from hyperpod_cdk._cli.words import checks

if TYPE_CHECKING:
    from hyperpod_cdk.review.deployed import Api
    from hyperpod_cdk.review.sources import Source
    from hyperpod_cdk.transitions.cdk import Cdk
    from hyperpod_cdk.transitions.model import Plan

PAGES = (".md", ".json")

_COMPARING = ("hyperpod_cdk.transitions.plan", "hyperpod_cdk.transitions.pages")
_READING = ("hyperpod_cdk.transitions.standing",)
"""The tool that creates a plan and reads the deployed stacks."""


def plan(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REF|DIR",
            help="Git revision or cloud assembly to start from, without AWS. Default: the deployed stacks.",
        ),
    ] = None,
    head: HeadOption = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", metavar="FILE", help="Plan file to write: .md or .json. Can be repeated."),
    ] = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the steps from the deployed stacks to the environment file. Read only.

    Most changes need one step. For each step, the plan shows what it does, interrupts and loses, how long it takes,
    how to go back, and what a person must do before it. Exit code 1 if no order of steps works.
    """
    from hyperpod_cdk.review.isolation import Limits  # noqa: PLC0415 - 'plan --help' need not load it

    for file in out or ():
        check_file(file, PAGES)
    root = root_of(project, runs_extensions=False)
    with (
        assembly_errors(),
        synthesized(
            root,
            environment,
            base=base,
            head=head,
            limits=Limits(is_trusted=trusted),
            meanwhile=(*_COMPARING, *(_READING if base is None else ())),
        ) as found,
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

    with aws_errors(otherwise=", or use --base"):
        aws = opened(context, head)()
    standing = read_standing(aws, head.assembly)
    return planned(
        standing.base,
        standing.head,
        base_side=Side(label="deployed"),
        head_side=head.side,
        notes=(*standing.notes, *head.notes),
        importers=standing.importers,
        blockers=standing.blockers,
        takes=standing.takes,
        room=standing.room,
        left=standing.left,
    )


@dataclass(frozen=True, kw_only=True)
class Deploying(Access):
    """How ``deploy`` calls AWS and a project's CDK CLI; tests pass another one as the context's object."""

    cdk: Callable[[Path], Cdk]


def deploy(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Do not ask for confirmation, for pipelines. Refused if a step needs a person."),
    ] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Number of stacks to deploy in parallel.")
    ] = 3,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="DIR", help="Cloud assembly to deploy. Default: the working tree."),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option("--skip", autocompletion=checks, help="Area or check of preflight to skip. Can be repeated."),
    ] = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
) -> None:
    """Deploy the environment in the necessary steps: preflight, plan, confirmation, then the CDK CLI.

    If a deployment was interrupted or failed, run the command again: it continues from the state in CloudFormation.
    Exit code 1 if preflight or the plan refuses, nobody confirms, or a step fails.
    """
    from hyperpod_cdk._cli import preflight  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.run import select  # noqa: PLC0415 - as above
    from hyperpod_cdk.config import UsageError  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.extensions import builders  # noqa: PLC0415 - as above
    from hyperpod_cdk.packaged_node import ToolMissingError  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.isolation import Limits  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.cdk import OwnCdk  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.run import Deployment  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.standing import settle  # noqa: PLC0415 - as above

    root = root_of(project)
    try:
        select((), skip or ())
    except UsageError as error:
        usage(f"--skip: {error}")
    if head is not None and not Path(head).is_dir():
        usage(f"--head: folder {head} does not exist; it must be a cloud assembly that 'cdk synth --output' wrote")
    loaded = judged_environment(environment_file(environment, root), output=Format.TEXT)
    person = Terminal(is_there=not yes)
    stated = loaded.environment
    access = access_of(context)
    with assembly_errors(), aws_errors(), ExitStack() as held:
        made = synthesized(root, environment, base=None, head=head, limits=Limits(is_trusted=trusted))
        # only the templates show what extensions add; without extensions, preflight does not need to wait for them
        new = held.enter_context(made)[1] if any(builders(stated)) else None
        types = None if new is None else preflight.made_types(new.assembly)
        # checks would report resources that are being created as conflicts
        settle(lambda: access.open(stated.region, stated.account), stated.name, say=person.say, pause=time.sleep)
        report, asked = preflight.run(loaded, project=root, only=(), skip=skip or (), is_offline=False, types=types)
        preflight.print_report(report, asked, output=Format.TEXT, verbose=False, is_offline=False)
        if report.passed is None:
            skipped = dict.fromkeys(result.check.name for result in report.results if result.skipped)
            options = " ".join(f"--skip {name}" for name in skipped)
            typer.echo(f"Nothing was deployed. To deploy without what could not be checked: {options}", err=True)
        finish(passed=report.passed, strict=True)
        new = new or held.enter_context(made)[1]
        for refused in sorted(_chart_is_missing(new)):
            typer.echo(f"warning: CloudFormation refuses to create {refused}", err=True)
        tools = context.obj if isinstance(context.obj, Deploying) else None
        run = Deployment(
            aws=opened(context, new),
            head=new,
            cdk=tools.cdk(root) if tools else OwnCdk(project=root),
            person=person,
            concurrency=concurrency,
        )
        try:
            done = run.run()
        except ToolMissingError as error:
            usage(str(error))
        except KeyboardInterrupt:
            typer.echo(
                "CloudFormation continues the current operation; the next 'hyperpod-cdk deploy' waits for it", err=True
            )
            raise
    finish(passed=done, strict=False)


def _chart_is_missing(head: Source) -> Iterator[str]:
    """Yield the stacks that a rule in their template refuses to create until the chart is pulled."""
    from hyperpod_cdk.eks import charts  # noqa: PLC0415 - 'deploy --help' need not load it

    for stack in head.assembly.stacks:
        rule = stack.template.get("Rules", {}).get(charts.PULLED_RULE, {})
        for each in rule.get("Assertions", ()):
            yield f"{stack.name}: {each.get('AssertDescription', charts.PULLED_RULE)}"


def destroy(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Only show what is deleted and what is retained, and change nothing.")
    ] = False,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="REF|DIR",
            help="Git revision or cloud assembly with the environment file. Default: the working tree.",
        ),
    ] = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: Annotated[Format, typer.Option("--format", help="Output format of --plan.")] = Format.TEXT,
) -> None:
    """Destroy the environment, after it shows what is deleted and retained and you type the name.

    It also shows which retained resources continue to cost money. The stacks are deleted in order; termination
    protection of each stack is disabled immediately before its deletion. Retained resources remain. If the command
    failed or was interrupted, run it again to continue. Exit code 1 if something prevents the deletion or nobody
    confirms.
    """
    from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.run import Destruction  # noqa: PLC0415 - as above

    if output is Format.JSON and not only_plan:
        usage("--format json is for --plan")
    with head_of(environment, project, head=head, trusted=trusted) as new:
        run = Destruction(aws=opened(context, new), head=new, person=Terminal(is_there=True))
        if not only_plan:
            finish(passed=run.run(), strict=False)
            return
        planned = run.planned()
    typer.echo(pages.as_json(planned) if output is Format.JSON else pages.text(planned), nl=False)
    finish(passed=not planned.refusals, strict=False)


@contextmanager
def head_of(environment: str, project: Path | None, *, head: str | None, trusted: bool) -> Iterator[Source]:
    """Yield the stacks of the files, or of --head, to compare with AWS; errors end the command."""
    from hyperpod_cdk.review.isolation import Limits  # noqa: PLC0415 - as above

    root = root_of(project, runs_extensions=False)
    with (
        assembly_errors(),
        aws_errors(),
        synthesized(root, environment, base=None, head=head, limits=Limits(is_trusted=trusted)) as (_, new),
    ):
        yield new


def opened(context: typer.Context, head: Source) -> Callable[[], Api]:
    """Return a function that opens a new connection to the account and Region of the head."""
    if not head.assembly.stacks:
        usage(f"{head.notes[0]} 'plan --base' shows what is removed; 'cdk destroy' at its last revision destroys it.")
    if not head.assembly.region:
        usage("the stacks have no Region, so it is unknown where they are deployed")
    access = access_of(context)
    return lambda: access.open(head.assembly.region, head.assembly.account)


def access_of(context: typer.Context) -> Access:
    return context.obj if isinstance(context.obj, Access) else Access(open=open_aws)


def is_terminal() -> bool:
    """Return whether a person can type an answer."""
    return sys.stdin.isatty()


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """Asks on the terminal; no answer counts as no.

    ``instead`` is the option that replaces typing without a terminal, such as ``--confirm NODE``; empty if none does.
    """

    is_there: bool
    instead: str = ""

    def show(self, plan: Plan) -> None:
        from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - as above

        typer.echo(pages.text(plan), nl=False)

    def say(self, line: str) -> None:
        from hyperpod_cdk.review.pages.wording import visible  # noqa: PLC0415 - as above

        typer.echo(visible(line))
        # the CDK CLI also writes there
        sys.stdout.flush()

    def agrees(self, question: str) -> bool:
        try:
            return typer.confirm(question)
        except typer.Abort:
            typer.echo()
            return False

    def types(self, question: str, word: str) -> bool:
        if not is_terminal():
            # piped input was not typed by a person who has read what will be deleted
            instead = f"; in a program, add {self.instead}" if self.instead else ""
            typer.echo(f"{question}: this must be typed on a terminal, and standard input is not a terminal{instead}")
            return False
        try:
            return str(typer.prompt(question)) == word
        except typer.Abort:
            typer.echo()
            return False


def _write(planned: Plan, files: list[Path] | tuple[()], output: Format) -> None:
    from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - as above

    for file in files:
        with os_errors(file):
            write_atomically(file, pages.markdown(planned) if file.suffix == ".md" else pages.as_json(planned))
        typer.echo(f"wrote {file}", err=True)
    if output is Format.JSON:
        typer.echo(pages.as_json(planned), nl=False)
    elif files:
        typer.echo(f"{planned.environment}: {planned.verdict}")
    else:
        typer.echo(pages.text(planned), nl=False)
