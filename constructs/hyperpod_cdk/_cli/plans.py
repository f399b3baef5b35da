"""The commands ``plans search`` and ``plans record``: training plan offerings, and plans that an environment uses."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    aws_errors,
    environment_file,
    extra,
    finish,
    loaded_environment,
    old_record,
    refuse_word,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Format, finding_line, table
from hyperpod_cdk._cli.words import environments
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.file_reading import resolved

if TYPE_CHECKING:
    from hyperpod_cdk.checks.answers import Aws
    from hyperpod_cdk.checks.plan_record import Missing
    from hyperpod_cdk.checks.plan_search import Block, Offer, Refusal, Search, Wish
    from hyperpod_cdk.config import Environment, LoadedEnvironment
    from hyperpod_cdk.config.recorded_plans import RecordedPlans
    from hyperpod_cdk.findings import Finding

app = typer.Typer(
    help="Search, record, extend and attach SageMaker training plans.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_RANGE = re.compile(r"(\d{1,6})(?:\.\.(\d{1,6}))?")
_LONGEST_LIST = 5


@dataclass(frozen=True, kw_only=True)
class Access:
    """How the commands call AWS and read the clock; tests pass another one as the context's object."""

    open: Callable[[str, str], Aws]
    now: Callable[[], datetime]


@app.command()
def search(  # noqa: PLR0917 - typer makes the command line from the signature
    context: typer.Context,
    environment: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV",
            autocompletion=environments,
            help="Environment whose instance groups with training plans provide the defaults.",
        ),
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", help="Instance type, such as ml.p5.48xlarge.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", help="Number of instances; AWS sells plans for powers of two.")
    ] = None,
    region: Annotated[
        str | None,
        typer.Option("--region", help="AWS Region. Default: the Region of the environment, otherwise AWS_REGION."),
    ] = None,
    days: Annotated[
        str | None,
        typer.Option(
            "--days", help="Durations in days: 14, 7..14 or 1,7,14. Default: fifteen durations from 1 to 182."
        ),
    ] = None,
    hours: Annotated[str | None, typer.Option("--hours", help="Durations in hours, rounded up to whole days.")] = None,
    start_after: Annotated[
        str | None, typer.Option("--start-after", help="Earliest start in UTC: 2026-12-01 or 2026-12-01T11:30Z.")
    ] = None,
    end_before: Annotated[str | None, typer.Option("--end-before", help="Latest end, in the same format.")] = None,
    *,
    every_day: Annotated[
        bool, typer.Option("--every-day", help="Search every duration that AWS sells, with one call each.")
    ] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Search training plan offerings, sorted by price per accelerator-hour. Never buys one.

    AWS searches one duration at a time, so several durations are requested in parallel. Exit code 1 if nothing was
    found because AWS did not answer or a quota is too low. If AWS did not answer for a duration or for the zones,
    "passed" in the JSON output is null, and with --strict the exit code is 1.
    """
    access = _access(context)
    now = access.now()
    loaded = _loaded(environment, project, output, now)
    of = None if loaded is None else loaded.environment
    where = _region(region, of)
    after, before = _moment("--start-after", start_after), _moment("--end-before", end_before)
    _check_window(after, before, now)
    durations = _durations(days, hours, every_day=every_day, after=after or now, before=before)
    wanted = _wishes(
        loaded, instance_type=instance_type, count=count, days=durations, start_after=after, end_before=before
    )
    with aws_errors():
        aws = access.open(where, "" if of is None else of.account)
    from hyperpod_cdk.checks import plan_search  # noqa: PLC0415 - 'plans --help' need not build the models
    from hyperpod_cdk.findings import passed  # noqa: PLC0415 - as above

    found = [plan_search.search(aws, wish, now=now, environment=of) for wish in wanted]
    name = of.name if of is not None else "hyperpod"
    refusals = [refusal for each in found for refusal in each.refusals]
    finds_nothing = not any(each.offers for each in found)
    verdict = passed(
        refuses=finds_nothing and any(each.is_quota for each in refusals),
        is_whole=not refusals and not any(each.zones_missing for each in found),
    )
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import PlanOfferings, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            PlanOfferings,
            {
                "passed": verdict,
                "region": where,
                "searches": [plan_search.as_data(each, where, name=name) for each in found],
            },
        )
    else:
        for each in found:
            print("\n".join(_search_lines(each, where, name=name)))
    # an empty result is no result if AWS did not answer a part of the search
    finish(passed=verdict, strict=strict or (finds_nothing and bool(refusals)))


@app.command()
def record(
    context: typer.Context,
    environment: EnvironmentArgument,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Record the training plans of the environment next to its file, for checks without AWS.

    The record is checked each time the file is read: by validate, by synthesis, in a pull request. Exit code 1 if a
    plan could not be described (the old record is then retained) or if the record contradicts the environment.
    """
    access = _access(context)
    file = environment_file(environment, root_of(project))
    now = access.now()
    loaded = loaded_environment(file, output=output, today=now.date(), with_record=False)
    from hyperpod_cdk.checks import plan_record  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.loading import plans_file  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.recorded_plans import groups_by_plan, read_record  # noqa: PLC0415 - as above

    of = loaded.environment
    if not groups_by_plan(of):
        usage(f"{loaded.file} contains no training plan, so there is nothing to record")
    with aws_errors():
        aws = access.open(of.region, of.account)
    found = plan_record.describe_plans(of, aws, today=now.date())
    if isinstance(found, list):
        _not_recorded(loaded, found)
    path, shown = plans_file(file), plans_file(Path(loaded.file))
    old = old_record(
        path,
        str(shown),
        read=lambda: read_record(path, file=str(shown), called=loaded.called),
    )
    changes = plan_record.changes(old, found)
    try:
        write_atomically(path, found.text())
    except OSError as error:
        usage(f"cannot write {shown}: {error.strerror or error}; the old file is unchanged")
    findings = _findings_now(file, now)
    is_refused = any(finding.severity == "error" for finding in findings)
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import PlanRecord, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            PlanRecord,
            {
                # no record is written if a plan could not be described
                "passed": not is_refused,
                "file": str(shown),
                "changes": changes,
                "findings": [finding.as_dict() for finding in findings],
                "record": found,
            },
        )
    else:
        print("\n".join([*changes, _written(shown, old, changes)]))
        for finding in findings:
            print(finding_line(finding))
    finish(passed=not is_refused, strict=True)


def is_as_shown(path: Path, before: str) -> bool:
    """Return whether a file still contains the text whose change was shown; prints a message if it was edited since."""
    from hyperpod_cdk.file_reading import read_bytes  # noqa: PLC0415 - as above

    mark = "\ufeff".encode()
    now, shown = read_bytes(path, most=len(before.encode()) + 1_000_000), before.encode()
    if now.removeprefix(mark) == shown.removeprefix(mark):
        return True
    typer.echo(f"{path} changed since the change was shown; nothing was written to it. Run it again.", err=True)
    return False


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a file so that a reader finds the complete old or new text, even if something fails.

    A symbolic link is kept. Raises OSError with ``path``; the old file is then unchanged.
    """
    try:
        _replace(resolved(path), text)
    except OSError as error:
        # the error names a temporary file that no longer exists
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(target: Path, text: str | bytes) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode() if isinstance(text, str) else text)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.chmod(mode)
        scratch.replace(target)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _access(context: typer.Context) -> Access:
    if isinstance(context.obj, Access):
        return context.obj
    return Access(open=_open, now=lambda: datetime.now(UTC))


def _open(region: str, account: str) -> Aws:
    with extra("aws"):
        from hyperpod_cdk.checks.aws import LiveAws  # noqa: PLC0415 - as above
    from hyperpod_cdk.handlers.quota_gate.reading import Own  # noqa: PLC0415 - boto3 is slow to load

    aws = LiveAws.open(region=region, account=account, own=Own(stacks=(), hyperpod_cluster="", eks_cluster=""))
    aws.require_account()
    return aws


def _loaded(environment: str | None, project: Path | None, output: Format, now: datetime) -> LoadedEnvironment | None:
    if environment is None:
        return None
    file = environment_file(environment, root_of(project))
    return loaded_environment(file, output=output, today=now.date(), with_record=False)


def _region(region: str | None, environment: Environment | None) -> str:
    from hyperpod_cdk.catalog import regions  # noqa: PLC0415 - as above

    found = region or (environment.region if environment else None)
    found = found or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not found:
        usage("--region is missing; specify it, set AWS_REGION or specify an environment")
    if environment is not None and found != environment.region:
        usage(
            f"--region: must be {environment.region}, the Region of {environment.name}, got {found}; omit --region or"
            " the environment"
        )
    refuse_word("--region", regions.region_problem(found, key="--region"))
    doubt = regions.hyperpod_warning(found, key="--region")
    if doubt is not None and not regions.has_type(found, "AWS::SageMaker::Cluster"):
        usage(
            f"--region: must be a region where HyperPod runs (as of {regions.AS_OF}), got {found}; use one of"
            f" {', '.join(regions.HYPERPOD_REGIONS)}"
        )
    if doubt is not None and environment is None:
        print(f"warning {doubt}", file=sys.stderr)
    return found


def _wishes(
    loaded: LoadedEnvironment | None,
    *,
    instance_type: str | None,
    count: int | None,
    days: tuple[int, ...],
    start_after: datetime | None,
    end_before: datetime | None,
) -> list[Wish]:
    from hyperpod_cdk.checks.plan_search import Wish, wishes  # noqa: PLC0415 - as above

    if instance_type is not None:
        _check_type(instance_type)
    if count is not None:
        _check_count(count)
    if loaded is not None:
        found = wishes(
            loaded.environment,
            instance_type=instance_type,
            count=count,
            days=days,
            start_after=start_after,
            end_before=end_before,
        )
        if found:
            return found
    if instance_type is None or count is None:
        missing = joined(
            name for name, value in (("--instance-type", instance_type), ("--count", count)) if value is None
        )
        if loaded is None:
            usage(f"needs {missing}, or an environment whose groups define them")
        of_type = f"of {instance_type}" if instance_type else "on a training plan"
        usage(f"{loaded.file} has no group {of_type}; specify {missing}")
    return [Wish(instance_type=instance_type, count=count, days=days, start_after=start_after, end_before=end_before)]


def _check_type(name: str) -> None:
    from hyperpod_cdk.catalog import instance_types  # noqa: PLC0415 - as above

    row = instance_types.get(name)
    if row is None:
        near = instance_types.closest(name)
        fix = f"did you mean {near}?" if near else f"use one of {', '.join(_sold_types())}"
        usage(f'--instance-type: must be a type known on {instance_types.as_of()}, got "{name}"; {fix}')
    if not row.training_plan_supported:
        usage(
            f"--instance-type: must be a type for which plans are sold (as of {instance_types.as_of()}), got {name};"
            f" use one of {', '.join(_sold_types())}"
        )


def _sold_types() -> list[str]:
    from hyperpod_cdk.catalog import instance_types  # noqa: PLC0415 - as above

    rows = [instance_types.get(name) for name in instance_types.names()]
    return [row.name for row in rows if row is not None and row.training_plan_supported]


def _check_count(count: int) -> None:
    from hyperpod_cdk.catalog import hyperpod  # noqa: PLC0415 - as above

    sold = hyperpod.TRAINING_PLAN_COUNTS
    if count in sold:
        return
    near = next((each for each in sold if each >= count), sold[-1])
    usage(
        f"--count: must be one of {', '.join(map(str, sold))}, for which plans are sold (as of {hyperpod.AS_OF}), got"
        f" {count}; use {near}"
    )


def _durations(
    days: str | None, hours: str | None, *, every_day: bool, after: datetime, before: datetime | None
) -> tuple[int, ...]:
    from hyperpod_cdk.catalog import hyperpod  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.plan_search import HOURS_PER_DAY, USUAL_DAYS, fitting_days  # noqa: PLC0415 - as above

    sold = hyperpod.TRAINING_PLAN_DAYS
    said = [name for name, value in (("--days", days), ("--hours", hours), ("--every-day", every_day or None)) if value]
    if len(said) > 1:
        usage(f"{joined(said)} specify the same value; use only one of them")
    if days is not None:
        wanted = sorted(set(numbers("--days", days, most=sold[-1])))
    elif hours is not None:
        said_hours = numbers("--hours", hours, most=sold[-1] * HOURS_PER_DAY)
        wanted = sorted({-(-number // HOURS_PER_DAY) for number in said_hours})
        if any(number % HOURS_PER_DAY for number in said_hours):
            print(f"--hours: plans are sold for whole days, so {_days(wanted)} are searched", file=sys.stderr)
    else:
        wanted = list(sold if every_day else USUAL_DAYS)
    fitting = fitting_days(wanted, after, before)
    if not fitting:
        usage(f"--end-before: must leave time for {_days(wanted[:1])}, the shortest duration; choose a later end")
    return fitting


def numbers(option: str, text: str, *, most: int) -> list[int]:
    """Return the numbers in a text such as 14, 7..14 or 1,7,14; each must be from 1 to ``most``."""
    found: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            usage(f'{option}: must be numbers such as 14, 7..14 or 1,7,14, got "{text}"')
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= most:
            order = "with the smaller number first" if first > last else f"from 1 to {most}"
            usage(f'{option}: must be {order}, got "{part.strip()}"')
        found += range(first, last + 1)
    return found


def _moment(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        usage(f'{option}: must be a date or a time such as 2026-12-01 or 2026-12-01T11:30Z, got "{text}"')
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _check_window(after: datetime | None, before: datetime | None, now: datetime) -> None:
    from hyperpod_cdk.catalog import hyperpod  # noqa: PLC0415 - as above

    if after is not None and after < now:
        usage(f"--start-after: must be in the future, got {_when(after)}; the current time is {_when(now)}")
    if before is not None and before - (after or now) < timedelta(days=1):
        usage(f"--end-before: must be at least one day after the start, got {_when(before)}; choose a later end")
    ahead = hyperpod.TRAINING_PLAN_START_DAYS_AHEAD
    if after is not None and after - now > timedelta(days=ahead):
        print(
            f"warning --start-after: plans are sold at most {ahead} days ahead (as of {hyperpod.AS_OF}), so"
            f" {_when(after)} may have no offers",
            file=sys.stderr,
        )


def _search_lines(found: Search, region: str, *, name: str) -> Iterator[str]:
    from hyperpod_cdk.catalog import hyperpod  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.plan_search import plan_name  # noqa: PLC0415 - as above

    wish = found.wish
    groups = f" for {', '.join(wish.group_names)}" if wish.group_names else ""
    yield (
        f"{wish.count} {wish.instance_type} in {region}{groups}: {len(found.offers) or 'no'}"
        f" {plural(len(found.offers), 'offer')} among {_days(wish.days)}, searched at"
        f" {found.asked_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    )
    for refusal in found.refusals:
        yield from _refusal_lines(refusal, found, region)
    if found.zones_missing and found.offers:
        yield f"zones by name only: {found.zones_missing}"
    if not found.offers:
        if not found.refusals:
            more = "" if len(wish.days) == len(hyperpod.TRAINING_PLAN_DAYS) else "other durations (--every-day), "
            yield f"try {more}fewer instances, a later start or another Region"
        return
    rows = [_HEADER] + [row for number, offer in enumerate(found.offers, 1) for row in _rows(number, offer)]
    yield from table(rows)
    yield ""
    yield "to buy one (the fee is charged at once and not refunded; offers expire, so search again before):"
    for number, offer in enumerate(found.offers, 1):
        yield f"{number}  {offer.command(region, name=plan_name(offer, name))}"


_HEADER = ["#", "per accelerator-hour", "fee", "days", "zone", "starts", "nodes leave", "fits"]


def _rows(number: int, offer: Offer) -> Iterator[list[str]]:
    """Yield the offer's row, and one more row for each additional block."""
    price = "unknown" if offer.price is None else f"{offer.price:.2f} {offer.currency}".strip()
    fee = f"{offer.fee} {offer.currency}".strip() or "unknown"
    head = [str(number), price, fee, "unknown" if offer.hours is None else _number(offer.hours / 24)]
    blocks = offer.blocks
    if len(blocks) <= 1:
        yield [*head, *_place(blocks[0] if blocks else None), _fits(offer)]
        return
    for index, block in enumerate(blocks):
        part = f"block {index + 1} of {len(blocks)}"
        zone, start, leave = _place(block)
        yield [
            *(head if index == 0 else [""] * len(head)),
            f"{zone}, {part}",
            start,
            leave,
            _fits(offer) if not index else "",
        ]


def _place(block: Block | None) -> tuple[str, str, str]:
    if block is None:
        return "unknown", "unknown", "unknown"
    zone = block.zone_id or f"{block.zone_name or 'unknown'} (a name)"
    return zone, _when(block.start), _when(block.nodes_leave)


def _fits(offer: Offer) -> str:
    if offer.zone_in_file is None:
        return "-"
    if offer.fits:
        return ", ".join(offer.fits)
    return "no group; zone is in the file" if offer.zone_in_file else "no: zone is not in the file"


def _refusal_lines(refusal: Refusal, found: Search, region: str) -> Iterator[str]:
    from hyperpod_cdk.checks.answers import allowing  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.plan_search import quota_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.handlers.quota_gate.reading import quoted  # noqa: PLC0415 - as above

    if not refusal.is_quota:
        allow = allowing(refusal.action, refusal.reason)
        yield f"not answered for {_days(refusal.days)}: {refusal.reason}{allow}{quoted(refusal.said)}"
        return
    wish = found.wish
    quota = quota_of(wish.instance_type)
    value = "" if found.quota is None else f", which is {found.quota:g}"
    yield (
        f"quota: refused for {_days(refusal.days)}, since the account may not reserve {wish.count} more"
        f' {wish.instance_type} under "{quota.name}"{value}: {refusal.reason}'
    )
    if quota.code:
        # existing reservations also count, and are at most the quota's value
        desired = f"NUMBER, its value plus {wish.count}" if found.quota is None else wish.count + int(found.quota)
        yield (
            f"  to request an increase: aws service-quotas request-service-quota-increase --region {region}"
            f" --service-code {quota.service} --quota-code {quota.code} --desired-value {desired}"
        )


def _not_recorded(loaded: LoadedEnvironment, missing: Sequence[Missing]) -> NoReturn:
    from hyperpod_cdk.checks.answers import allowing  # noqa: PLC0415 - as above
    from hyperpod_cdk.handlers.quota_gate.reading import quoted  # noqa: PLC0415 - as above

    for each in missing:
        allow = allowing(each.action, each.reason)
        place = f"{loaded.file}:{loaded.line_of(each.path)} {each.path}"
        print(f"{place}: {each.reason}{allow}; nothing was written{quoted(each.said)}", file=sys.stderr)
    raise typer.Exit(FINDINGS)


def _findings_now(file: Path, now: datetime) -> tuple[Finding, ...]:
    """Return the findings of the environment's file that the new record causes."""
    from hyperpod_cdk.config import EnvironmentFileError, load_environment  # noqa: PLC0415 - as above

    before = set(load_environment(file, today=now.date(), with_record=False).warnings)
    try:
        found: Sequence[Finding] = load_environment(file, today=now.date()).warnings
    except EnvironmentFileError as error:
        found = error.findings
    return tuple(finding for finding in found if finding not in before)


def _written(path: Path, old: RecordedPlans | None, changes: Sequence[str]) -> str:
    if old is None or changes:
        return f"wrote {path}; commit it with the environment"
    return f"wrote {path}; nothing changed since {old.recorded}"


def _when(value: datetime | None) -> str:
    from hyperpod_cdk.config.recorded_plans import moment  # noqa: PLC0415 - as above

    return "unknown" if value is None else moment(value)


def _number(value: Decimal) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _days(days: Sequence[int]) -> str:
    """Return durations as short text: 1 day; 1, 2 and 3 days; 182 durations from 1 to 182 days."""
    if len(days) > _LONGEST_LIST:
        return f"{len(days)} durations from {days[0]} to {days[-1]} days"
    *most, last = [str(each) for each in days]
    return f"{', '.join(most)} and {last} days" if most else f"{last} day{'' if last == '1' else 's'}"
