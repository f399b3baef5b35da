"""The ``fleet`` commands: several environments together; a problem of one does not hide the results of others."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    USAGE,
    FormatOption,
    ProjectOption,
    StrictOption,
    TrustedOption,
    assembly_errors,
    aws_errors,
    messages_to,
    os_errors,
    root_of,
    synthesized,
    usage,
)
from hyperpod_cdk._cli.members import Member, Members, looked_at, side_by_side, validated
from hyperpod_cdk._cli.output import Checked, Format, print_checked
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.review import check_file, compared, day_of, limits_of, with_deployed
from hyperpod_cdk._cli.transitions import access_of, head_of, opened
from hyperpod_cdk._cli.words import checks, environments

if TYPE_CHECKING:
    from hyperpod_cdk.checks.aws import LiveAws
    from hyperpod_cdk.checks.model import Report
    from hyperpod_cdk.checks.together import Shared
    from hyperpod_cdk.config import LoadedEnvironment
    from hyperpod_cdk.config.several import Place
    from hyperpod_cdk.findings import Finding
    from hyperpod_cdk.fleet.model import Look, Verb
    from hyperpod_cdk.fleet.sums import NoCost
    from hyperpod_cdk.handlers.quota_gate.comparison import Usage
    from hyperpod_cdk.json_schema import Told
    from hyperpod_cdk.living.model import Status
    from hyperpod_cdk.review.model import Cost

app = typer.Typer(
    help="Run commands for several environments, in waves: status, changes, total use of quotas and cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

EnvironmentsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ENV",
        autocompletion=environments,
        help="Names, files or folders. Default: all in environments/, in the order of fleet.yaml if it exists.",
    ),
]
HeadsOption = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        metavar="DIR",
        help=(
            "Folder with one cloud assembly per environment, each named as its environment. Default: the working tree."
        ),
    ),
]
PAGES = (".md", ".json")


@app.command()
def validate(
    environments: EnvironmentsArgument = None,
    *,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Check the files of several environments, each alone and all together, and fleet.yaml.

    The command also reports quotas and training plans that suffice for each environment alone, but not for all
    environments of one account and Region. The exit code is that of the worst result.
    """
    looked = Members.of(project, environments)
    rows = [validated(each) for each in looked.members]
    _finish(looked, "validate", rows, output)


@app.command()
def preflight(
    environments: EnvironmentsArgument = None,
    *,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", autocompletion=checks, help="Area or check to run. Can be repeated. Default: all."),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option("--skip", autocompletion=checks, help="Area or check to skip. Can be repeated."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not call AWS. Checks that need it are skipped.")
    ] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Compare several environments with AWS, in parallel. Read only.

    It also reports quotas and training plans that suffice for each environment alone, but not for all of them. The
    exit code is that of the worst result, and 2 if an environment could not be checked at all.
    """
    from hyperpod_cdk.checks.run import select  # noqa: PLC0415 - as above
    from hyperpod_cdk.config import UsageError  # noqa: PLC0415 - as above

    try:
        select(only or (), skip or ())
    except UsageError as error:
        usage(f"--only and --skip: {error}")
    looked = Members.of(project, environments)
    reports: dict[str, Report] = {}

    def ask(each: Member, loaded: LoadedEnvironment) -> Look:
        from hyperpod_cdk._cli import preflight as verb  # noqa: PLC0415 - as above
        from hyperpod_cdk.checks.run import apart_from_offline  # noqa: PLC0415 - as above
        from hyperpod_cdk.checks.together import RULE  # noqa: PLC0415 - as above
        from hyperpod_cdk.findings import Severity  # noqa: PLC0415 - as above
        from hyperpod_cdk.json_schema import told  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.model import Unread  # noqa: PLC0415 - as above

        with aws_errors(otherwise=", or use --offline"):
            report, _ = verb.run(loaded, project=looked.root, only=only or (), skip=skip or (), is_offline=offline)
        reports[loaded.file] = report
        # the total is compared with the values from AWS if AWS was called
        beyond = [finding for finding in each.beyond if offline or finding.rule != RULE]
        findings = [*beyond, *(finding for result in report.results for finding in result.findings)]
        skipped = [
            Unread(
                what=result.check.title,
                reason=gap.placed,
                action=gap.action,
                aws_said=gap.said,
            )
            for result in report.results
            # with --offline, what needs AWS is reported only once
            for gap in apart_from_offline(result)
        ]
        counts = ", ".join(f"{number} {status.value}" for status, number in report.counts().items() if number)
        refused = any(finding.severity is Severity.ERROR for finding in beyond)
        return each.look(
            passed=False if refused else report.passed,
            summary=counts,
            verdict=f"{counts}.",
            findings=tuple(told(finding) for finding in findings),
            skipped=tuple(skipped),
        )

    rows = side_by_side(looked, ask)
    if not offline:
        rows = _with_sums(looked, rows, reports)
    _finish(looked, "preflight", rows, output, strict=strict)


def _with_sums(looked: Members, rows: Sequence[Look], reports: Mapping[str, Report]) -> list[Look]:
    """Report what the environments of one account and region need together, in addition to what each needs alone."""
    from hyperpod_cdk.checks.together import by_aws, by_record, living, shared_quotas  # noqa: PLC0415 - as above
    from hyperpod_cdk.findings import Finding, Severity  # noqa: PLC0415 - as above
    from hyperpod_cdk.json_schema import told  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.model import Unread  # noqa: PLC0415 - as above

    shared = [
        each
        for each in shared_quotas([member.loaded for member in looked.members if member.loaded is not None])
        if len(each.users) > 1
    ]
    found: list[Finding] = []
    unread: dict[str, list[Unread]] = {}
    for each, used in zip(shared, _used_by_all(shared, reports), strict=True):
        known = living(each, reports, used)
        answer = by_aws(each, known) if known else None
        found += by_record(each) if known is None else [answer] if isinstance(answer, Finding) else []
        if isinstance(answer, str):
            user, need = each.users[-1]
            unread.setdefault(user.file, []).append(
                Unread(what=f'quota "{need.name}"', reason=answer, action=used.action, aws_said=used.said)
            )

    def with_sums(row: Look) -> Look:
        more = [each for each in found if each.file == row.file]
        gaps = unread.get(row.file, [])
        is_refused = any(each.severity is Severity.ERROR for each in more)
        passed = False if is_refused else None if gaps and row.passed else row.passed
        return row.model_copy(
            update={
                "findings": (*(told(each) for each in more), *row.findings),
                "skipped": (*row.skipped, *gaps),
                "passed": passed,
                "exit_code": max(row.exit_code, FINDINGS) if is_refused else row.exit_code,
            }
        )

    return [with_sums(row) for row in rows]


def _used_by_all(shared: Sequence[Shared], reports: Mapping[str, Report]) -> list[Usage]:
    """Return how much of the quotas each account uses, including these environments."""
    from hyperpod_cdk._cli import preflight as verb  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.answers import AwsAccessError  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.side_by_side import together  # noqa: PLC0415 - as above
    from hyperpod_cdk.handlers.quota_gate.comparison import Unread, Usage  # noqa: PLC0415 - as above

    asked: dict[Place, LiveAws] = {}
    for each in shared:
        user, _ = each.users[0]
        if each.place not in asked and all(other.file in reports for other, _ in each.users):
            with suppress(AwsAccessError):
                asked[each.place] = verb.open_aws(user, as_nobody=True)

    def used(each: Shared) -> Usage:
        aws = asked.get(each.place)
        _, need = each.users[0]
        return aws.usage(need.usage) if aws else Usage(unread=(Unread(kind="account", reason="AWS was not called"),))

    answers = together(used, shared)
    return [
        each if isinstance(each, Usage) else Usage(unread=(Unread(kind="account", reason=each.reason),))
        for each in answers
    ]


@app.command()
def review(
    context: typer.Context,
    environments: EnvironmentsArgument = None,
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="REF|DIR", help="Git revision to compare with, or a folder in the form of --heads."
        ),
    ] = None,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Compare with the deployed stacks. Read only; needs AWS credentials.")
    ] = False,
    heads: HeadsOption = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", metavar="FILE", help="Report file to write: .md or .json. Can be repeated."),
    ] = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show what a change does to each environment, and who must approve it.

    'hyperpod-cdk review' shows all details of one environment. The exit code is that of the worst result.
    """
    for file in out or ():
        check_file(file, PAGES)
    if deployed is (base is not None):
        usage("specify what to compare with: --base with a Git revision or a folder of assemblies, or --deployed")
    _check_heads(heads)
    looked = Members.of(project, environments)
    limits, day = limits_of(trusted=trusted), day_of(None)

    def ask(each: Member, loaded: LoadedEnvironment) -> Look:
        name = loaded.environment.name
        folder = Path(base) / name if base is not None and Path(base).is_dir() else None
        with (
            assembly_errors(),
            synthesized(
                looked.root,
                each.asked,
                base=base if folder is None else str(folder),
                head=_head(heads, name),
                limits=limits,
            ) as found,
        ):
            old, new = found
            if old is None:
                old, new, _ = with_deployed(context, new, is_asked=False)
            report = compared(old, new, looked.root, day, [])
        verdict = report.verdict
        return each.look(
            passed=not verdict.is_wrong,
            summary=verdict.level.value,
            verdict=verdict.sentence,
            approval=verdict.approval,
            needs_approval=verdict.needs_approval,
            cost=report.cost,
        )

    rows = [looked_at(each, ask) for each in looked.members]
    if base is not None and not environments:
        rows += _gone(looked, base)
    _finish(looked, "review", rows, output, files=out or ())


def _gone(looked: Members, base: str) -> list[Look]:
    """Report the environments that are in the base and have no file here, which no other check reports."""
    from hyperpod_cdk.review.sources import environments_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.templates.assembly import AssemblyError  # noqa: PLC0415 - as above

    if Path(base).is_dir():
        before = sorted(each.parent.name for each in Path(base).glob("*/manifest.json"))
    else:
        try:
            before = environments_of(looked.root, base)
        except AssemblyError:
            # each environment has already reported that the revision does not exist
            return []
    here = {each.name for each in looked.members} | {Path(each.asked).stem for each in looked.members}
    verdict = (
        f"it is in {base} and has no file here, so it was not compared. Its deployed resources remain, with their"
        " cost, until 'hyperpod-cdk destroy' runs with the earlier file."
    )
    return [
        Member(name=name, asked=name).look(passed=None, summary="file removed", verdict=verdict)
        for name in before
        if name not in here
    ]


@app.command()
def status(
    context: typer.Context,
    environments: EnvironmentsArgument = None,
    *,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the current state of several clusters, in parallel.

    The exit code is that of the worst result, and 2 if a cluster could not be read at all.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    looked = Members.of(project, environments)

    def ask(each: Member, loaded: LoadedEnvironment) -> Look:
        from hyperpod_cdk._cli.living import wanted_of  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.status import status as asked  # noqa: PLC0415 - as above

        stated = loaded.environment
        with aws_errors():
            aws = access_of(context).open(stated.region, stated.account)
        found = asked(aws, wanted_of(stated), now=datetime.now(UTC))
        running = [group.running for group in found.groups]
        target = sum(group.target for group in found.groups)
        known = sum(number for number in running if number is not None)
        nodes = f"{'?' if None in running else known} of {target} nodes run" if found.groups else found.status
        first, *others = found.missing or ("",)
        missing = f"{first} and {len(others)} more" if others else first
        return each.look(
            passed=found.passed,
            summary=f"{nodes}, no {missing}" if missing else nodes,
            verdict=found.verdict,
            skipped=found.skipped,
            findings=_advice(found),
            status=found,
        )

    _finish(looked, "status", side_by_side(looked, ask), output, strict=strict)


@app.command()
def drift(
    context: typer.Context,
    environments: EnvironmentsArgument = None,
    *,
    heads: HeadsOption = None,
    strict: StrictOption = False,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Compare AWS with the last deployment of several environments. Read only.

    'hyperpod-cdk drift' shows all details of one environment; here, only the JSON output contains them. The exit
    code is that of the worst result.
    """
    _check_heads(heads)
    looked = Members.of(project, environments)

    def ask(each: Member, loaded: LoadedEnvironment) -> Look:
        from hyperpod_cdk.living.drift import drift as differing  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.drift import with_lines  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.standing import read_living  # noqa: PLC0415 - as above
        from hyperpod_cdk.review.nouns import count  # noqa: PLC0415 - as above

        head = _head(heads, loaded.environment.name)
        with head_of(each.asked, looked.root, head=head, trusted=trusted) as new:
            aws = opened(context, new)()
            living = read_living(aws, new.assembly)
            found = with_lines(differing(aws, living), living, new.environment)
        return each.look(
            passed=found.passed,
            # no number is shown for a value that was not read
            summary=count(len(found.differences), "difference") if found.compared or found.differences else "unknown",
            verdict=found.verdict,
            skipped=found.skipped,
            drift=found,
        )

    _finish(looked, "drift", [looked_at(each, ask) for each in looked.members], output, strict=strict)


@app.command()
def sums(
    environments: EnvironmentsArgument = None,
    *,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost/--no-cost",
            help="Also show the cost of each environment. This runs its app, which takes seconds per environment.",
        ),
    ] = True,
    heads: HeadsOption = None,
    strict: StrictOption = False,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Add up what all environments of each account and Region use: quotas, training plans, USD per month.

    Does not use AWS: quotas and plans come from the records that 'quotas show --record' and 'plans record' wrote.
    Exit code 1 if something does not suffice for all environments. AWS's default quotas, which never cause a
    refusal, and unknown values count as skipped.
    """
    from hyperpod_cdk._cli.living import print_skipped  # noqa: PLC0415 - as above
    from hyperpod_cdk.fleet import pages  # noqa: PLC0415 - as above
    from hyperpod_cdk.fleet import sums as adding  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.pages import as_json  # noqa: PLC0415 - as above

    if heads is not None and not cost:
        usage("--heads is for --cost; add --cost, or omit --heads")
    _check_heads(heads)
    looked = Members.of(project, environments)
    members = [each for each in looked.members if each.loaded is not None]
    costs: dict[str, Cost | NoCost] = {}
    for each in members if cost else ():
        if each.loaded is not None:
            costs[each.name] = _cost(looked, each, each.loaded, heads, trusted=trusted)
    found = adding.sums(
        [each.loaded for each in members if each.loaded is not None],
        costs,
        refused=[
            *looked.findings,
            *(finding for each in looked.members if each.checked for finding in each.errors if each.loaded is None),
        ],
        nowhere=[each.problem for each in looked.members if each.problem],
    )
    if output is Format.JSON:
        typer.echo(as_json(found), nl=False)
    else:
        typer.echo(pages.sums_text(found), nl=False)
        print_skipped(found.skipped)
    if looked.is_short:
        raise typer.Exit(USAGE)
    if found.passed is False or (strict and found.passed is None):
        raise typer.Exit(FINDINGS)


@app.command()
def hold(
    context: typer.Context,
    environments: EnvironmentsArgument = None,
    *,
    heads: Annotated[
        Path,
        typer.Option(
            "--heads",
            metavar="DIR",
            help="Folder with the deployed cloud assemblies, one per environment, each named as its environment.",
        ),
    ],
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Check whether the next wave can start. Read only; for pipelines.

    Exit code 0 if nothing prevents it. The deployed stacks must be those of --heads, no stack may be halfway through a
    deployment, and the checks of the environment's wave in fleet.yaml must pass ('status' without such a file). A
    check that could not run also prevents the next wave.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    _check_heads(heads)
    looked = Members.of(project, environments)
    if looked.findings:
        _finish(looked, "hold", [], output)

    def ask(each: Member, loaded: LoadedEnvironment) -> Look:
        from hyperpod_cdk._cli.living import wanted_of  # noqa: PLC0415 - as above
        from hyperpod_cdk.catalog.rules import joined  # noqa: PLC0415 - as above
        from hyperpod_cdk.findings import passed as passed_of  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.drift import drift as differing  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.standing import read_living  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.status import status as asked  # noqa: PLC0415 - as above
        from hyperpod_cdk.review.deployed import unsettled  # noqa: PLC0415 - as above
        from hyperpod_cdk.review.model import Level  # noqa: PLC0415 - as above

        wave = next((wave for wave in (looked.fleet.waves if looked.fleet else ()) if wave.name == each.wave), None)
        wanted = ("status",) if wave is None else wave.checks
        with head_of(each.asked, looked.root, head=_head(heads, each.name), trusted=False) as new:
            old, found, _ = with_deployed(context, new, is_asked=False)
            report = compared(old, found, looked.root, datetime.now(UTC).date(), [])
            if report.verdict.level is not Level.NONE:
                what = "something else, or only a part, is deployed: a deployment is waiting, failed, or ran in between"
                return each.look(passed=False, summary="not as deployed", verdict=what)
            aws = opened(context, new)()
            halfway = unsettled(aws, new.assembly)
            if halfway:
                what = f"{joined(halfway)}: a deployment is running, or stopped halfway"
                return each.look(passed=False, summary="not as deployed", verdict=what)
            drifted = differing(aws, read_living(aws, new.assembly)) if "drift" in wanted else None
        stands = (
            asked(aws, wanted_of(loaded.environment, is_of_a_wave=True), now=datetime.now(UTC))
            if "status" in wanted
            else None
        )
        answers = [answer for answer in (stands, drifted) if answer is not None]
        return each.look(
            passed=passed_of(
                refuses=any(answer.passed is False for answer in answers),
                is_whole=all(answer.passed is not None for answer in answers),
            ),
            summary=", ".join(wanted) or "no checks",
            verdict=" ".join(answer.verdict for answer in answers) or "It is unchanged since its deployment.",
            skipped=tuple(unread for answer in answers for unread in answer.skipped),
            findings=_advice(stands) if stands else (),
            status=stands,
            drift=drifted,
        )

    _finish(looked, "hold", [looked_at(each, ask) for each in looked.members], output, strict=True)


@app.command()
def pipelines(
    *,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Do not write. Exit with code 1 if a file is different from what would be written."
        ),
    ] = False,
    project: ProjectOption = None,
) -> None:
    """Write the waves of fleet.yaml into the existing pipelines: GitHub's deploy.yaml, .gitlab-ci.yml.

    Only the part between the lines that mark the waves is written. Without fleet.yaml, all environments are one
    wave.
    """
    from hyperpod_cdk._cli.pipelines import GITHUB, GITLAB, PipelineError, oldest_first, written  # noqa: PLC0415 - as above
    from hyperpod_cdk.config import environment_names  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.documents import DocumentError, text_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.fleet import WORDING, fleet_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.loading import in_project  # noqa: PLC0415 - as above

    root = root_of(project)
    names = environment_names(root)
    texts: dict[Path, tuple[str, str]] = {}
    try:
        fleet = fleet_of(root, names)
        for file in (GITHUB, GITLAB):
            if (root / file).exists():
                text = text_of(root / file, WORDING)
                texts[file] = text, written(text, file, fleet, names, is_clone=(root / "Makefile").exists())
    except DocumentError as error:
        print_checked([Checked(error.file, error.findings)], output=Format.TEXT)
        raise typer.Exit(FINDINGS) from None
    except PipelineError as error:
        usage(str(error))
    changed = {file: new for file, (old, new) in texts.items() if new != old}
    for file, text in changed.items():
        if check:
            print(
                f"{file} has other waves than fleet.yaml; run 'hyperpod-cdk fleet pipelines{in_project(root)}'",
                file=sys.stderr,
            )
            continue
        with os_errors(root / file):
            write_atomically(root / file, text)
        print(f"wrote {file}", file=sys.stderr)
        if file == GITLAB and fleet is not None:
            for line in oldest_first(fleet):
                print(line, file=sys.stderr)
    if not texts:
        said = (
            f"no pipelines here: neither {GITHUB} nor {GITLAB}; 'hyperpod-cdk new DIR --with github' or '--with gitlab'"
        )
        print(f"{said} writes them into a new project, from which you can copy them", file=sys.stderr)
    if check and changed:
        raise typer.Exit(FINDINGS)


def _cost(
    looked: Members, each: Member, loaded: LoadedEnvironment, heads: Path | None, *, trusted: bool
) -> Cost | NoCost:
    from hyperpod_cdk.catalog.prices import PricesError, of_project  # noqa: PLC0415 - as above
    from hyperpod_cdk.fleet.sums import NoCost  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.figures.cost import cost as counted  # noqa: PLC0415 - as above
    from hyperpod_cdk.templates.assembly import EMPTY  # noqa: PLC0415 - as above

    said: list[str] = []
    try:
        with (
            messages_to(said.append),
            assembly_errors(),
            synthesized(
                looked.root, each.asked, base=None, head=_head(heads, each.name), limits=limits_of(trusted=trusted)
            ) as (_, new),
        ):
            return counted(EMPTY, new.assembly, prices=of_project(looked.root), head_environment=loaded)
    except typer.Exit:
        return NoCost(" ".join(said) or "its app failed")
    except PricesError as error:
        usage(str(error))


def _advice(found: Status) -> tuple[Told, ...]:
    """Return the alarms that do not stop the next wave but that should still be read."""
    from hyperpod_cdk.json_schema import Told  # noqa: PLC0415 - as above

    return tuple(
        Told(severity="warning", message=each.advice, path="", file="", line=None, rule="status")
        for each in found.alarms
        if each.advice
    )


def _check_heads(heads: Path | None) -> None:
    if heads is not None and not heads.is_dir():
        usage(f"--heads: folder {heads} does not exist; it must contain a cloud assembly named after each environment")


def _head(heads: Path | None, name: str) -> str | None:
    if heads is None:
        return None
    if not (heads / name).is_dir():
        usage(f"--heads: {heads} has no cloud assembly {name}")
    return str(heads / name)


def _finish(
    looked: Members,
    verb: Verb,
    rows: Sequence[Look],
    output: Format,
    *,
    strict: bool = False,
    files: Iterable[Path] = (),
) -> None:
    """Print the report of all environments and exit with the code of the worst result."""
    from hyperpod_cdk.fleet import pages  # noqa: PLC0415 - as above
    from hyperpod_cdk.fleet import report as reports  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.pages import as_json  # noqa: PLC0415 - as above

    report = reports.report(verb, rows, looked.findings, strict=strict)
    for file in files:
        with os_errors(file):
            write_atomically(file, pages.markdown(report) if file.suffix == ".md" else as_json(report))
        print(f"wrote {file}", file=sys.stderr)
    typer.echo(as_json(report) if output is Format.JSON else pages.text(report), nl=False)
    if report.exit_code:
        raise typer.Exit(report.exit_code)
