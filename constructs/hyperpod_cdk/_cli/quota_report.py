"""The output of the ``quotas`` commands: tables, or one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hyperpod_cdk._cli.output import Format, finding_line, painted_word, table
from hyperpod_cdk._cli.quota_record import Written
from hyperpod_cdk._cli.quota_requests import Plan, Sent, unread
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import Aws, QuotaRequest
from hyperpod_cdk.checks.capacity import Largest, LargestMix, largest_groups, largest_mix
from hyperpod_cdk.checks.quotas import Compared, as_dict, compare, usage_shown
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.findings import Finding, Severity, by_place, passed
from hyperpod_cdk.handlers.quota_gate.comparison import number
from hyperpod_cdk.quotas.needs import required_quotas

_FINDINGS = {"error": Severity.ERROR, "warning": Severity.WARNING}
_HOUR_SECONDS = 3600
_DAY_HOURS = 24


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Every quota of an environment compared with its needs, and the largest cluster that they allow."""

    loaded: LoadedEnvironment
    compared: tuple[Compared, ...]
    groups: tuple[Largest, ...]
    mix: LargestMix

    @property
    def passed(self) -> bool | None:
        """False if a quota is too low, None if a quota or its usage was not read completely."""
        return passed(
            refuses=any(each.verdict.severity == "error" for each in self.compared),
            is_whole=not any(each.verdict.unread for each in self.compared),
        )


def show(loaded: LoadedEnvironment, aws: Aws) -> Shown:
    """Read every quota that the environment uses from AWS."""
    environment = loaded.environment
    compared = compare(environment, aws, required_quotas(environment), called=loaded.called)
    return Shown(
        loaded=loaded,
        compared=compared,
        groups=largest_groups(environment, compared),
        mix=largest_mix(environment, compared),
    )


def print_shown(shown: Shown, *, output: Format, written: Written | None = None) -> None:
    """Print the quotas, the findings and the largest cluster; ``written`` is the record that was written."""
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import Quotas, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            Quotas,
            {
                "passed": shown.passed,
                "file": shown.loaded.file,
                "region": shown.loaded.environment.region,
                "quotas": [as_dict(each) for each in shown.compared],
                "largest": {"groups": [each.as_dict() for each in shown.groups], "mix": shown.mix.as_dict()},
                "record": {"file": written.file, "changes": list(written.changes)} if written else None,
            },
        )
        return
    _print_table(_quotas(shown.compared))
    for finding in by_place(_findings(shown)):
        print(finding_line(finding))
    for line in unread(shown.compared):
        print(f"{painted_word('skipped')} {line}")
    print()
    _print_table(_largest(shown.groups))
    print(_mix(shown.mix))
    if written is not None:
        print("\n".join(["", *written.changes, written.sentence]))


def print_plan(plan: Plan, *, now: datetime) -> None:
    """Print the increases to request and the open requests."""
    if plan.wanted:
        rows = [("now", "to request", "last request", "quota")]
        for each in plan.wanted:
            last = f"{each.last.status} {_age(each.last, now)} ago" if each.last else "none"
            rows.append((number(each.present), number(each.desired), last, each.name))
        _print_table(rows)
    elif not plan.pending and not plan.problems and not plan.unread:
        print("the quotas are high enough; there is nothing to request")
    _print_open([request for request, _ in plan.pending], now)
    for request, desired in plan.pending:
        if desired is not None and desired > request.desired:
            print(
                f'"{request.name}": {number(request.desired)} is requested, but {number(desired)} is needed; '
                f"ask for it in {f'case {request.case_id}' if request.case_id else 'its support case'}"
            )
    for problem in (*plan.problems, *plan.unread):
        print(problem, file=sys.stderr)


def print_sent(plan: Plan, sent: Sequence[Sent], *, now: datetime, output: Format, with_plan: bool) -> None:
    """Print the results of the requests; ``with_plan`` also prints the increases, if they were not shown before."""
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import QuotaRequests, print_answer  # noqa: PLC0415 - text needs no models

        pending = [_as_dict(request, now, needed=desired) for request, desired in plan.pending]
        made = [_as_dict(each.request, now, needed=each.wanted.desired) for each in sent if each.request]
        problems = [*plan.problems, *plan.unread, *(each.problem for each in sent if each.problem)]
        print_answer(
            QuotaRequests,
            {"passed": plan_passed(plan, sent), "requested": made, "open": pending, "problems": problems},
        )
        return
    if with_plan:
        print_plan(plan, now=now)
    requests = [each.request for each in sent if each.request is not None]
    if requests:
        print(f"requested {len(requests)}; AWS decides most requests in one to three business days")
        _print_open(requests, now)
    for each in sent:
        if each.problem:
            print(each.problem, file=sys.stderr)


def plan_passed(plan: Plan, sent: Sequence[Sent]) -> bool | None:
    """False if AWS does not increase a quota or refused a request, None if a quota was not read."""
    return passed(refuses=bool(plan.problems) or any(each.problem for each in sent), is_whole=not plan.unread)


def _quotas(compared: Sequence[Compared]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("verdict", "needed", "spare", "used by others", "value", "quota")]
    for each in compared:
        need, reading = each.requirement, each.reading
        place = f" ({need.key.partition(':')[2]})" if need.key.startswith("nat_gateways") else ""
        value = "unknown" if reading.value is None else number(reading.value)
        rows.append(
            (
                each.verdict.severity,
                number(need.needed),
                number(need.spare) if need.spare else "",
                usage_shown(reading.used) if need.usage else "",
                f"{value} (default)" if reading.is_default else value,
                f"{need.name}{place}",
            )
        )
    return rows


def _largest(groups: Sequence[Largest]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("group", "type", "count", "largest today", "limited by")]
    for each in groups:
        rest = each.unread[0] if len(each.unread) == 1 else f"{len(each.unread)} quotas"
        bound = f"{each.bound_by} (not read: {rest})" if each.unread else each.bound_by
        largest = "unknown" if each.count is None else f"{'at most ' if each.unread else ''}{each.count}"
        rows.append((each.group, each.instance_type, str(each.present), largest, bound.strip()))
    return rows


def _mix(mix: LargestMix) -> str:
    if mix.times is None:
        return "all groups together: unknown, no quota could be read"
    fits = "do not fit" if mix.times == 0 else f"fit {mix.times} {plural(mix.times, 'time')} over"
    return f"all groups together {fits}, limited by {mix.bound_by}"


def _print_open(requests: Sequence[QuotaRequest], now: datetime) -> None:
    if not requests:
        return
    rows = [("value", "status", "id", "age", "case", "open request")]
    rows += [
        (number(each.desired), each.status, each.request_id, _age(each, now), each.case_id or "none", each.name)
        for each in requests
    ]
    _print_table(rows)


def _findings(shown: Shown) -> list[Finding]:
    return [
        Finding(
            severity=_FINDINGS[each.verdict.severity],
            message=each.verdict.message,
            path=each.verdict.path,
            file=shown.loaded.file,
            line=shown.loaded.line_of(each.verdict.path),
        )
        for each in shown.compared
        if each.verdict.severity in _FINDINGS
    ]


def _age(request: QuotaRequest, now: datetime) -> str:
    if request.created is None:
        return "unknown"
    hours = max(0, int((now - request.created).total_seconds() // _HOUR_SECONDS))
    return f"{hours} h" if hours < 2 * _DAY_HOURS else f"{hours // _DAY_HOURS} d"


def _as_dict(request: QuotaRequest, now: datetime, *, needed: float | None) -> dict[str, object]:
    return {
        "quota": request.name,
        "service": request.service,
        "code": request.code,
        "id": request.request_id,
        "status": request.status,
        "value": request.desired,
        "needed": needed,
        "age": _age(request, now),
        "case": request.case_id,
    }


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    for line in table(rows):
        print(line)
