"""What the verbs of ``quotas`` print: tables on a terminal or in a pipe, or one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.markup import escape
from rich.table import Table

from hyperpod_cdk._cli.common import console
from hyperpod_cdk._cli.output import Format, finding_line, print_json
from hyperpod_cdk._cli.quota_requests import Plan, Sent
from hyperpod_cdk._handlers.quota_gate.comparison import number
from hyperpod_cdk.checks.answers import Aws, QuotaRequest
from hyperpod_cdk.checks.capacity import Largest, LargestMix, largest_groups, largest_mix
from hyperpod_cdk.checks.quotas import Compared, as_dict, compare
from hyperpod_cdk.checks.requirements import required_quotas
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.findings import Finding, Severity, by_place

_STYLES = {"passed": "green", "warning": "yellow", "error": "red", "skipped": "cyan"}
_FINDINGS = {"error": Severity.ERROR, "warning": Severity.WARNING}
_HOUR_SECONDS = 3600
_DAY_HOURS = 24


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Every quota of an environment, compared, and what they allow at most."""

    loaded: LoadedEnvironment
    compared: tuple[Compared, ...]
    groups: tuple[Largest, ...]
    mix: LargestMix

    @property
    def passed(self) -> bool:
        """Whether no quota is known to be too small."""
        return all(each.verdict.severity != "error" for each in self.compared)


def show(loaded: LoadedEnvironment, aws: Aws) -> Shown:
    """Ask AWS for every quota that the environment takes of."""
    environment = loaded.environment
    compared = compare(environment, aws, required_quotas(environment))
    return Shown(
        loaded=loaded,
        compared=compared,
        groups=largest_groups(environment, compared),
        mix=largest_mix(environment, compared),
    )


def print_shown(shown: Shown, *, output: Format) -> None:
    """Print the quotas, the findings and the largest cluster."""
    if output is Format.JSON:
        print_json(
            {
                "passed": shown.passed,
                "file": shown.loaded.file,
                "region": shown.loaded.environment.region,
                "quotas": [as_dict(each) for each in shown.compared],
                "largest": {"groups": [each.as_dict() for each in shown.groups], "mix": shown.mix.as_dict()},
            }
        )
        return
    terminal = console(highlight=False, soft_wrap=True)
    terminal.print(_quotas(shown.compared))
    for finding in by_place(_findings(shown)):
        print(finding_line(finding))
    for each in shown.compared:
        if each.verdict.severity == "skipped":
            allow = f"; allow {each.verdict.action}" if each.verdict.action else ""
            terminal.print(f"[cyan]skipped[/cyan] {escape(each.verdict.message)}{escape(allow)}")
    terminal.print()
    terminal.print(_largest(shown.groups))
    terminal.print(escape(_mix(shown.mix)))


def print_plan(plan: Plan, *, now: datetime) -> None:
    """Print what would be requested, and the requests that are open."""
    terminal = console(highlight=False, soft_wrap=True)
    if plan.wanted:
        table = _table("quota", "now", "to request", "last request")
        for each in plan.wanted:
            last = f"{each.last.status} {_age(each.last, now)} ago" if each.last else ""
            table.add_row(escape(each.name), number(each.present), number(each.desired), last)
        terminal.print(table)
    elif not plan.pending and not plan.problems:
        print("the quotas suffice, nothing to request")
    _print_open([request for request, _ in plan.pending], now)
    for request, desired in plan.pending:
        if desired is not None and desired > request.desired:
            print(
                f'"{request.name}" is requested at {number(request.desired)}, {number(desired)} is needed; '
                f"say so in {f'case {request.case_id}' if request.case_id else 'its support case'}"
            )
    for problem in plan.problems:
        print(problem, file=sys.stderr)


def print_sent(plan: Plan, sent: Sequence[Sent], *, now: datetime, output: Format, with_plan: bool) -> None:
    """Print what came of the requests; ``with_plan`` where it has not been shown before."""
    if output is Format.JSON:
        pending = [_as_dict(request, now, needed=desired) for request, desired in plan.pending]
        made = [_as_dict(each.request, now, needed=each.wanted.desired) for each in sent if each.request]
        problems = [*plan.problems, *(each.problem for each in sent if each.problem)]
        print_json({"requested": made, "open": pending, "problems": problems})
        return
    if with_plan:
        print_plan(plan, now=now)
    requests = [each.request for each in sent if each.request is not None]
    if requests:
        print(f"requested {len(requests)}; AWS takes one to three business days for most")
        _print_open(requests, now)
    for each in sent:
        if each.problem:
            print(each.problem, file=sys.stderr)


def _quotas(compared: Sequence[Compared]) -> Table:
    table = _table("quota", "needed", "spare", "used by others", "quota value", "verdict")
    for each in compared:
        need, reading = each.requirement, each.reading
        severity = each.verdict.severity
        place = f" ({need.key.partition(':')[2]})" if need.key.startswith("nat_gateways") else ""
        value = "unknown" if reading.value is None else number(reading.value)
        used = "" if not need.usage else "unknown" if reading.used is None else number(reading.used)
        table.add_row(
            escape(f"{need.name}{place}"),
            number(need.needed),
            number(need.spare) if need.spare else "",
            used,
            f"{value} (default)" if reading.is_default else value,
            f"[{_STYLES[severity]}]{severity}[/]",
        )
    return table


def _largest(groups: Sequence[Largest]) -> Table:
    table = _table("group", "type", "count", "largest today", "bound by")
    for each in groups:
        bound = each.bound_by + (f" (not read: {', '.join(each.unread)})" if each.unread else "")
        largest = "unknown" if each.count is None else f"{'at most ' if each.unread else ''}{each.count}"
        table.add_row(escape(each.group), each.instance_type, str(each.present), largest, escape(bound.strip()))
    return table


def _mix(mix: LargestMix) -> str:
    if mix.times is None:
        return "all groups together: unknown, no quota could be read"
    fits = "do not fit" if mix.times == 0 else f"fit {mix.times} time{'s' if mix.times > 1 else ''} over"
    return f"all groups together {fits}, bound by {mix.bound_by}"


def _print_open(requests: Sequence[QuotaRequest], now: datetime) -> None:
    if not requests:
        return
    table = _table("open request", "value", "status", "id", "age", "case")
    for each in requests:
        table.add_row(
            escape(each.name),
            number(each.desired),
            each.status,
            each.request_id,
            _age(each, now),
            each.case_id or "none",
        )
    console(highlight=False, soft_wrap=True).print(table)


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


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
