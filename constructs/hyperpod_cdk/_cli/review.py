"""The commands ``review`` and ``diagram``: the effects of a change, and a diagram of an environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    USAGE,
    FormatOption,
    ProjectOption,
    TrustedOption,
    assembly_errors,
    aws_errors,
    console,
    extra,
    os_errors,
    refuse_word,
    root_of,
    synthesized,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.words import environments
from hyperpod_cdk.catalog.rules import joined

if TYPE_CHECKING:
    from hyperpod_cdk.review.change_sets import Witness
    from hyperpod_cdk.review.deployed import Api
    from hyperpod_cdk.review.isolation import Limits
    from hyperpod_cdk.review.model import Report
    from hyperpod_cdk.review.sources import Source
    from hyperpod_cdk.templates.assembly import Assembly

PICTURES = (".svg", ".png")
REPORTS = (".md", ".html", ".json", *PICTURES)
"""The file name extensions of reports: Markdown for a pull request, an HTML page, JSON data."""

ReviewedArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="ENV", autocompletion=environments, help="Name or file of the environment. Not with --template."
    ),
]
HeadOption = Annotated[
    str | None,
    typer.Option("--head", metavar="REF|DIR", help="Git revision or cloud assembly to use. Default: the working tree."),
]
TemplateOption = Annotated[
    Path | None, typer.Option("--template", metavar="FILE", help="A CloudFormation template, instead of ENV.")
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="SECONDS", help="Time limit of each app, in seconds. Default: 600."),
]
MemoryLimitOption = Annotated[
    int | None,
    typer.Option(
        "--memory-limit", metavar="MIB", help="Memory limit of each app and its child processes, in MiB. Default: 4096."
    ),
]
RegionOption = Annotated[
    str | None,
    typer.Option("--region", help="Region of --template. Default: none; what differs between Regions is unknown."),
]


_COMPARING = ("hyperpod_cdk.review.review_file", "hyperpod_cdk.review.run")
"""The tool that creates a report."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """How ``--deployed`` calls AWS, by Region and account; tests pass another one as the context's object."""

    open: Callable[[str, str], Api]


def review(
    context: typer.Context,
    environment: ReviewedArgument = None,
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REF|DIR|FILE",
            help=(
                "What to compare with: a Git revision, a cloud assembly, or a virtual environment, whose version"
                " of the library then synthesizes your files. With --template: a template."
            ),
        ),
    ] = None,
    head: HeadOption = None,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Compare with the deployed stacks. Read only; needs AWS credentials.")
    ] = False,
    head_revision: Annotated[
        str | None,
        typer.Option(
            "--head-revision",
            metavar="REF",
            help=(
                "Git revision from which the assembly in --head was synthesized. Its environment file is used to"
                " name the causes of changes."
            ),
        ),
    ] = None,
    change_set: Annotated[
        bool,
        typer.Option(
            "--change-set",
            help=(
                "With --deployed: also create change sets, which show what CloudFormation replaces, and delete"
                " them again."
            ),
        ),
    ] = False,
    still: Annotated[
        Path | None,
        typer.Option(
            "--still",
            metavar="REPORT",
            help=(
                "With --deployed: only check that this report (.json) is still valid. Exit with code 1 if the"
                " deployed stacks or the head have changed since."
            ),
        ),
    ] = None,
    template: TemplateOption = None,
    region: RegionOption = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Report file to write: .md, .html or .json; or the diagram: .svg or .png. Can be repeated.",
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--date",
            metavar="DAY",
            help="Date on which the exceptions in review.yaml must be valid. Default: today, UTC.",
        ),
    ] = None,
    time_limit: TimeLimitOption = None,
    memory_limit: MemoryLimitOption = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show what a change does to running nodes, cost, quotas and access.

    Compares the working tree, or --head, with --base or with the deployed stacks. Only --deployed uses AWS. Each
    side is synthesized with its own app, without your files, environment variables and network. The first line of
    the report says who must approve the change, according to the review.yaml of the base. Exit code 1 if the
    service refuses the change, the EFA or Lustre network is broken or a policy fails.
    """
    for file in out or ():
        check_file(file, REPORTS)
    day = day_of(on)
    _check_sides(environment, base=base, head=head, is_deployed=deployed, template=template, region=region)
    if deployed and (base is not None or template is not None):
        usage(f"--deployed is what to compare with; omit {'--base' if template is None else '--template'}")
    if still is not None and (not deployed or out):
        usage("--still compares a report with the deployed stacks: specify --deployed, and omit --out")
    limits = limits_of(time_limit, memory_limit, trusted=trusted)
    if change_set and (not deployed or still is not None):
        usage("--change-set reads the deployed stacks: specify --deployed, and omit --still")
    witnesses: list[Witness] = []
    with (
        assembly_errors(),
        _sides(
            project,
            environment,
            base=base,
            head=head,
            template=template,
            region=region,
            limits=limits,
            head_revision=head_revision,
            meanwhile=_COMPARING,
        ) as found,
    ):
        old, new = found
        if old is None:
            old, new, witnesses = with_deployed(context, new, is_asked=change_set)
        if still is not None:
            _check_still(still, old.assembly, new)
            return
        report = compared(old, new, root_of(project, runs_extensions=False), day, witnesses)
        texts = {file: _rendered(report, file.suffix, old.assembly, new.assembly) for file in out or ()}
    _write(texts)
    _print(report, list(texts), output)
    if report.verdict.is_wrong:
        raise typer.Exit(FINDINGS)


def diagram(
    environment: ReviewedArgument = None,
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REF|DIR|FILE",
            help=("Mark the changes since this Git revision or cloud assembly. With --template: since this template."),
        ),
    ] = None,
    head: HeadOption = None,
    template: TemplateOption = None,
    region: RegionOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File to write: .svg or .png. Default: SVG to standard output."),
    ] = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
) -> None:
    """Draw the environment as SVG: zones, CIDR blocks with addresses, groups, file systems, endpoints, teams.

    Does not use AWS. With an existing cloud assembly in --head, it draws without synthesizing.
    """
    if out is not None:
        check_file(out, PICTURES)
    _check_sides(environment, base=base, head=head, is_deployed=base is None, template=template, region=region)
    with (
        assembly_errors(),
        _sides(
            project,
            environment,
            base=base,
            head=head,
            template=template,
            region=region,
            limits=limits_of(trusted=trusted),
        ) as found,
    ):
        from hyperpod_cdk.review.pictures.diagram import diagram as drawn  # noqa: PLC0415 - 'diagram --help' need not load it

        old, new = found
        if not new.assembly.stacks:
            usage(f"{new.notes[0]} There is nothing to draw.")
        picture = drawn(new.assembly, old.assembly if base is not None and old and old.assembly.stacks else None)
    if out is None:
        sys.stdout.write(picture)
    else:
        _write({out: _picture(picture, out.suffix)})
        print(f"wrote {out}", file=sys.stderr)


def limits_of(seconds: float | None = None, mib: int | None = None, *, trusted: bool) -> Limits:
    from hyperpod_cdk.review.isolation import MEMORY_LIMIT_MIB, TIME_LIMIT_SECONDS, Limits  # noqa: PLC0415 - as above

    # "not (x > 0)", which is also true for NaN
    if seconds is not None and not seconds > 0:
        usage(f"--time-limit: must be a number of seconds above 0, got {seconds:g}")
    if mib is not None and not mib > 0:
        usage(f"--memory-limit: must be a number of MiB above 0, got {mib}")
    return Limits(
        seconds=TIME_LIMIT_SECONDS if seconds is None else seconds,
        mib=MEMORY_LIMIT_MIB if mib is None else mib,
        is_trusted=trusted,
    )


def _check_sides(
    environment: str | None,
    *,
    base: str | None,
    head: str | None,
    is_deployed: bool,
    template: Path | None,
    region: str | None,
) -> None:
    if template is None:
        if region is not None:
            usage("--region is for --template; an environment has its own Region")
        if base is None and not is_deployed:
            usage(
                "specify what to compare with: --base with a Git revision or a cloud assembly ('--base origin/main'), "
                "or --deployed"
            )
        return
    if environment is not None or head is not None:
        usage(f"--template is one file; omit {environment or '--head'}")
    if region is not None:
        from hyperpod_cdk.catalog import regions  # noqa: PLC0415 - 'review --help' need not load it

        refuse_word("--region", regions.region_problem(region, key="--region"))


def check_file(file: Path, suffixes: Sequence[str]) -> None:
    if file.suffix not in suffixes:
        usage(f"--out: the name must end with {joined(suffixes, last='or')}, got {file}")
    # os.path, since Path raises for a name that is too long
    if os.path.isdir(file):  # noqa: PTH112 - see above
        usage(f"--out: {file} is a folder; specify a file in it")
    if not os.path.isdir(file.parent):  # noqa: PTH112 - see above
        usage(f"--out: folder {file.parent} does not exist; create it first")
    if os.path.islink(file) and not os.path.exists(file):  # noqa: PTH110, PTH114 - see above
        usage(f"--out: {file} is a link to a file that does not exist; remove it first")


@contextmanager
def _sides(
    project: Path | None,
    environment: str | None,
    *,
    base: str | None,
    head: str | None,
    template: Path | None,
    region: str | None,
    limits: Limits,
    head_revision: str | None = None,
    meanwhile: Sequence[str] = (),
) -> Iterator[tuple[Source | None, Source]]:
    if template is not None:
        yield _templates(template, base, region or "")
        return
    root = root_of(project, runs_extensions=False)
    with synthesized(
        root,
        environment,
        base=base,
        head=head,
        head_revision=head_revision,
        limits=limits,
        meanwhile=meanwhile,
    ) as found:
        yield found


def with_deployed(
    context: typer.Context, head: Source, *, is_asked: bool, looks_beside: bool = True
) -> tuple[Source, Source, list[Witness]]:
    """Return the deployed stacks of the head, the head with its parameters, and CloudFormation's findings about it.

    ``looks_beside``: also check whether the head removes nodes that no deployment created.
    """
    from dataclasses import replace  # noqa: PLC0415 - as above
    from functools import partial  # noqa: PLC0415 - as above

    from hyperpod_cdk.living.taken import Taken, taken  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.change_sets import ask  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.deployed import read_deployed  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.model import Reason, ReasonKind, Side  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.sources import Source  # noqa: PLC0415 - as above

    if not head.assembly.stacks:
        usage(f"{head.notes[0]} Compare with --base to see what is removed.")
    if not head.assembly.region:
        usage("--deployed: the stacks have no Region, so it is unknown where they are deployed")
    access = context.obj if isinstance(context.obj, Access) else Access(open=open_aws)
    with aws_errors(otherwise=", or use --base"):
        aws = access.open(head.assembly.region, head.assembly.account)
    from hyperpod_cdk.review.stored import asset  # noqa: PLC0415 - needs botocore, which is there by now

    found = read_deployed(aws, head.assembly)
    beside = taken(aws, found.base, found.head) if looks_beside else Taken()
    base = Source(
        assembly=found.base,
        side=Side(label="deployed"),
        notes=(*found.notes, *beside.unseen, *beside.gone),
        reasons=tuple(
            Reason(kind=ReasonKind.DELETION, resource="nodes that no deployment created", sentence=each)
            for each in beside.sentences
        ),
        stored=partial(asset, aws, account=head.assembly.account),
    )
    witnesses = ask(aws, found.base, found.head) if is_asked else []
    return base, replace(head, assembly=found.head), witnesses


def _check_still(report: Path, base: Assembly, head: Source) -> None:
    from hyperpod_cdk.review.standing import outdated  # noqa: PLC0415 - as above

    differences = outdated(report, base, head.assembly, digest=head.side.assembly)
    for line in differences:
        print(line, file=sys.stderr)
    if differences:
        print(f"{report} is no longer valid: review again, and have the new report approved", file=sys.stderr)
        raise typer.Exit(FINDINGS)
    print(f"{report} is still valid: the deployed stacks and the head are the ones that it compared")


def open_aws(region: str, account: str) -> Api:
    with extra("aws"):
        from hyperpod_cdk.checks.aws import LiveAws  # noqa: PLC0415 - as above
    from hyperpod_cdk.handlers.quota_gate.reading import Own  # noqa: PLC0415 - boto3 is slow to load

    aws = LiveAws.open(region=region, account=account, own=Own(stacks=(), hyperpod_cluster="", eks_cluster=""))
    aws.require_account()
    return aws


def _templates(template: Path, base: str | None, region: str) -> tuple[Source, Source]:
    from dataclasses import replace  # noqa: PLC0415 - as above

    from hyperpod_cdk.review.model import Side  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.sources import NOTHING, Source  # noqa: PLC0415 - as above
    from hyperpod_cdk.templates.assembly import EMPTY, read_template  # noqa: PLC0415 - as above

    head = read_template(template, region=region)
    new = Source(assembly=head, side=Side(label=str(template)))
    if base is None:
        return Source(assembly=EMPTY, side=Side(label=NOTHING)), new
    before = read_template(Path(base), region=region)
    # two files are two versions of one stack, whatever their names are
    stack = replace(before.stacks[0], name=head.stacks[0].name)
    return Source(assembly=replace(before, stacks=(stack,)), side=Side(label=base)), new


def day_of(given: str | None) -> date:
    if given is None:
        return datetime.now(UTC).date()
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        usage(f"--date: must be a date such as 2027-03-31, got {given}")


def compared(base: Source, head: Source, project: Path, day: date, witnesses: Sequence[Witness]) -> Report:
    from hyperpod_cdk.catalog.prices import PricesError  # noqa: PLC0415 - as above
    from hyperpod_cdk.config import judged_by  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.documents import DocumentError  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.review_file import decided  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.run import review as reviewed  # noqa: PLC0415 - as above

    environment = head.assembly.environment or base.assembly.environment
    old, new = ([(stack.name, stack.template) for stack in side.assembly.stacks] for side in (base, head))
    try:
        rules = decided(
            project,
            base=base.side.commit,
            head=head.side.commit,
            environment=environment,
            deployed=judged_by.recorded_by(old, environment),
            stated=judged_by.recorded_by(new, environment),
            strays=judged_by.strays(new, environment),
            on=day,
        )
    except PricesError as error:
        usage(str(error))
    except DocumentError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(USAGE) from None
    return reviewed(
        base.assembly,
        head.assembly,
        base_side=base.side,
        head_side=head.side,
        base_environment=base.environment,
        head_environment=head.environment,
        prices=rules.prices,
        notes=(*base.notes, *head.notes),
        rules=rules,
        on=day,
        witnesses=witnesses,
        reasons=base.reasons,
        stored=base.stored,
    )


def _picture(svg: str, kind: str) -> str | bytes:
    if kind == ".svg":
        return svg
    from hyperpod_cdk.review.pictures.png import png  # noqa: PLC0415 - as above

    with extra("pictures"):
        return png(svg)


def _rendered(report: Report, kind: str, base: Assembly, head: Assembly) -> str | bytes:
    if kind == ".md":
        from hyperpod_cdk.review.pages.markdown import markdown  # noqa: PLC0415 - as above

        return markdown(report)
    if kind == ".html" or kind in PICTURES:
        from hyperpod_cdk.review.pictures.diagram import diagram as drawn  # noqa: PLC0415 - as above

        shown, before = (head, base) if head.stacks else (base, None)
        old = before if before and before.stacks else None
        if kind in PICTURES:
            from hyperpod_cdk.review.pages.text import judgement  # noqa: PLC0415 - as above

            return _picture(drawn(shown, old, numbers=report.capacity, judgement=judgement(report)), kind)
        picture = drawn(shown, old, numbers=report.capacity)
        from hyperpod_cdk.review.pages.html import html  # noqa: PLC0415 - as above
        from hyperpod_cdk.review.pictures.gantt import gantt  # noqa: PLC0415 - as above

        return html(report, diagram=picture, gantt=gantt(report.timeline) if report.timeline.steps else None)
    from hyperpod_cdk.review.pages.schema import report_json  # noqa: PLC0415 - as above

    return report_json(report)


def _write(texts: Mapping[Path, str | bytes]) -> None:
    for file, text in texts.items():
        with os_errors(file):
            write_atomically(file, text)


def _print(report: Report, files: Sequence[Path], output: Format) -> None:
    for file in files:
        print(f"wrote {file}", file=sys.stderr)
    if output is Format.JSON:
        from hyperpod_cdk.review.pages.schema import report_json  # noqa: PLC0415 - as above

        sys.stdout.write(report_json(report))
    elif files:
        print(f"{report.environment}: {report.verdict.approval}")
        print(report.verdict.sentence)
    else:
        from hyperpod_cdk.review.pages.text import text  # noqa: PLC0415 - as above

        text(report, console())
