"""The verb ``preflight``: opens AWS, runs the checks, prints the table, the findings and what was skipped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from hyperpod_cdk._cli.common import console
from hyperpod_cdk._cli.output import Format, finding_line, print_json
from hyperpod_cdk.checks.model import Report, Result, Skipped, Status
from hyperpod_cdk.checks.run import OFFLINE_REASON, offline, preflight
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.findings import Finding, by_place

if TYPE_CHECKING:
    from hyperpod_cdk.checks.aws import LiveAws

_STYLES = {Status.PASSED: "green", Status.WARNED: "yellow", Status.FAILED: "red", Status.SKIPPED: "cyan"}


def open_aws(loaded: LoadedEnvironment) -> LiveAws:
    """Open AWS for an environment; raises ``checks.aws.AwsAccessError`` where there is nobody to ask as."""
    from hyperpod_cdk.checks.aws import LiveAws  # noqa: PLC0415 - boto3 takes longer to load than an offline run
    from hyperpod_cdk.checks.requirements import own  # noqa: PLC0415 - as above

    environment = loaded.environment
    return LiveAws.open(region=environment.region, account=environment.account, own=own(environment))


def run(
    loaded: LoadedEnvironment,
    *,
    project: Path,
    only: Sequence[str],
    skip: Sequence[str],
    is_offline: bool,
) -> tuple[Report, dict[str, Any]]:
    """Run the checks; the second value says how AWS was asked: calls, the deepest chain of them, seconds."""
    if is_offline:
        return preflight(loaded, offline(), project=project, only=only, skip=skip), {}
    aws = open_aws(loaded)
    report = preflight(loaded, aws, project=project, only=only, skip=skip)
    return report, {"calls": len(aws.calls), "depth": aws.depth}


def print_report(report: Report, asked: dict[str, Any], *, output: Format, verbose: bool, is_offline: bool) -> None:
    """Print a report as a table with its findings, or as one JSON object."""
    if output is Format.JSON:
        print_json(
            {
                "passed": report.passed,
                "file": report.loaded.file,
                "checks": [result.as_dict() for result in report.results],
                "aws": asked,
            }
        )
        return
    terminal = console(highlight=False, soft_wrap=True)
    for result in report.results:
        if verbose:
            for detail in result.details:
                terminal.print(escape(detail.text))
    terminal.print(_table(report.results, verbose=verbose))
    for finding in by_place(_findings(report)):
        print(finding_line(finding))
    if not is_offline:
        for line in _skipped(report.results, verbose=verbose):
            terminal.print(f"[cyan]skipped[/cyan] {escape(line)}")
    terminal.print(_summary(report, asked, is_offline=is_offline))


def _table(results: Sequence[Result], *, verbose: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("area")
    table.add_column("check", overflow="fold")
    table.add_column("result")
    area = ""
    passed: dict[str, int] = {}
    for result in results:
        passed[result.check.area] = passed.get(result.check.area, 0) + (result.status is Status.PASSED)
    told: set[str] = set()
    for result in results:
        name = result.check.area
        if not verbose and result.status is Status.PASSED:
            if name in told:
                continue
            told.add(name)
            count = passed[name]
            shown = escape(result.check.title) if count == 1 else f"{count} checks"
        else:
            shown = escape(result.check.title)
        table.add_row(name if name != area else "", shown, f"[{_STYLES[result.status]}]{result.status.value}[/]")
        area = name
    return table


def _findings(report: Report) -> list[Finding]:
    return [finding for result in report.results for finding in result.findings]


def _skipped(results: Sequence[Result], *, verbose: bool) -> list[str]:
    """Give why something was not compared: a line for each missing permission, else for each check; all if verbose."""
    found = [(result.check.title, each) for result in results for each in result.skipped]
    if verbose:
        return [f"{title}: {_reason(each)}" for title, each in found]
    groups: dict[str, list[tuple[str, Skipped]]] = {}
    for title, each in found:
        groups.setdefault(each.action or title, []).append((title, each))
    lines = []
    for members in groups.values():
        titles = list(dict.fromkeys(title for title, _ in members))
        more = f", and {len(members) - 1} more like it" if len(members) > 1 else ""
        lines.append(f"{', '.join(titles)}: {_reason(members[0][1])}{more}")
    return lines


def _reason(each: Skipped) -> str:
    text = f"{each.path}: {each.reason}" if each.path else each.reason
    return f"{text}; allow {each.action}" if each.action and each.action not in text else text


def _summary(report: Report, asked: dict[str, Any], *, is_offline: bool) -> str:
    counts = report.counts()
    parts = [f"{counts[status]} {status.value}" for status in Status if counts[status]]
    calls = f", {asked['calls']} AWS calls" if asked else ""
    if is_offline and counts[Status.SKIPPED]:
        calls = f": {OFFLINE_REASON}"
    verdict = "[green]ok[/green]" if report.passed else "[red]refused[/red]"
    return f"{escape(report.loaded.file)}: {verdict}, {', '.join(parts) or 'no check chosen'}{calls}"
