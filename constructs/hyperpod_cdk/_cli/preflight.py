"""The command ``preflight``: runs the checks and prints the table, the findings and what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperpod_cdk._cli.causes import Cause, Gap, causes
from hyperpod_cdk._cli.common import extra
from hyperpod_cdk._cli.output import Format, finding_line, painted_word, table
from hyperpod_cdk.checks.answers import allowing
from hyperpod_cdk.checks.model import Report, Result, Skipped, Status
from hyperpod_cdk.checks.run import OFFLINE_REASON, apart_from_offline, asks_aws, offline, preflight, select
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.findings import Finding, by_place
from hyperpod_cdk.handlers.quota_gate.reading import quoted

if TYPE_CHECKING:
    from hyperpod_cdk.checks.aws import LiveAws
    from hyperpod_cdk.templates.assembly import Assembly

_FEW = 2
"""If more checks than this are skipped for one reason, their areas are shown in place of their names."""


def open_aws(loaded: LoadedEnvironment, *, as_nobody: bool = False) -> LiveAws:
    """Open AWS for an environment; raises ``checks.answers.AwsAccessError`` if there are no valid credentials.

    ``as_nobody``: the environment's own resources also count as used.
    """
    with extra("aws"):
        from hyperpod_cdk.checks.aws import LiveAws  # noqa: PLC0415 - boto3 takes longer to load than an offline run
    from hyperpod_cdk.handlers.quota_gate.reading import Own  # noqa: PLC0415 - as above
    from hyperpod_cdk.quotas.needs import own  # noqa: PLC0415 - as above

    environment = loaded.environment
    whose = Own(stacks=(), hyperpod_cluster="", eks_cluster="") if as_nobody else own(environment)
    return LiveAws.open(region=environment.region, account=environment.account, own=whose)


def made_types(assembly: Assembly) -> frozenset[str]:
    """Return the resource types in the templates, including those of extensions."""
    return frozenset(each.type for each in assembly.resources())


def run(
    loaded: LoadedEnvironment,
    *,
    project: Path,
    only: Sequence[str],
    skip: Sequence[str],
    is_offline: bool,
    types: frozenset[str] | None = None,
) -> tuple[Report, dict[str, Any]]:
    """Run the checks; the second value describes the AWS calls: their number, the longest chain, seconds."""
    if is_offline or not asks_aws(loaded.environment, select(only, skip)):
        return preflight(loaded, offline(), project=project, only=only, skip=skip, types=types), {}
    aws = open_aws(loaded)
    report = preflight(loaded, aws, project=project, only=only, skip=skip, types=types)
    return report, {"calls": len(aws.calls), "depth": aws.depth}


def print_report(report: Report, asked: dict[str, Any], *, output: Format, verbose: bool, is_offline: bool) -> None:
    """Print a report as a table with its findings, or as one JSON object."""
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import Preflight, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            Preflight,
            {
                "passed": report.passed,
                "file": report.loaded.file,
                "counts": {status.value: count for status, count in report.counts().items()},
                "checks": [result.as_dict() for result in report.results],
                "aws": asked or {"calls": 0, "depth": 0},
            },
        )
        return
    for result in report.results:
        if verbose:
            for detail in result.details:
                print(detail.text)
    for line in table(_rows(report.results, verbose=verbose)):
        print(line)
    for finding in by_place(_findings(report)):
        print(finding_line(finding))
    for line in _skipped(report.results, verbose=verbose):
        print(f"{painted_word('skipped')} {line}")
    print(_summary(report, asked, is_offline=is_offline))


def _rows(results: Sequence[Result], *, verbose: bool) -> list[tuple[str, str, str]]:
    rows = [("area", "result", "check")]
    area = ""
    passed = Counter(result.check.area for result in results if result.status is Status.PASSED)
    told: set[str] = set()
    for result in results:
        name = result.check.area
        shown = result.check.title
        if not verbose and result.status is Status.NOT_NEEDED:
            continue
        if not verbose and result.status is Status.PASSED:
            if name in told:
                continue
            told.add(name)
            shown = shown if passed[name] == 1 else f"{passed[name]} checks"
        rows.append((name if name != area else "", result.status.value, shown))
        area = name
    return rows


def _findings(report: Report) -> list[Finding]:
    return [finding for result in report.results for finding in result.findings]


def _skipped(results: Sequence[Result], *, verbose: bool) -> list[str]:
    """Return why checks were skipped: one line per reason with the checks it affects; all gaps if verbose.

    Those of ``--offline`` are in the summary.
    """
    found = [(result.check, each) for result in results for each in apart_from_offline(result)]
    if verbose:
        return [f"{check.title}: {_reason(each)}" for check, each in found]
    areas = {check.title: check.area for check, _ in found}
    gaps = [Gap(what=check.title, reason=each.placed, action=each.action, said=each.said) for check, each in found]
    return [f"{_checks(cause, areas)}: {cause}" for cause in causes(gaps)]


def _checks(cause: Cause, areas: Mapping[str, str]) -> str:
    titles = cause.what
    if len(titles) <= _FEW:
        return ", ".join(titles)
    return f"{len(titles)} checks of {', '.join(dict.fromkeys(areas[title] for title in titles))}"


def _reason(each: Skipped) -> str:
    return f"{each.placed}{allowing(each.action, each.placed)}{quoted(each.said)}"


def _summary(report: Report, asked: dict[str, Any], *, is_offline: bool) -> str:
    counts = report.counts()
    skipped = counts[Status.SKIPPED]
    incomplete = sum(result.status is Status.SKIPPED and bool(apart_from_offline(result)) for result in report.results)
    told = set(Status)
    verdict = painted_word("refused" if report.passed is False else "ok")
    if report.passed is None and is_offline:
        verdict = "nothing failed in the checks that do not need AWS"
        verdict += f", but {incomplete} of them could not be completed" if incomplete else ""
    elif report.passed is None:
        told.discard(Status.SKIPPED)
        verdict = f"nothing failed, but {skipped} of {len(report.results)} checks could not be completed"
    parts = [f"{counts[status]} {status.value}" for status in Status if counts[status] and status in told]
    end = ""
    if asked:
        end = f", {asked['calls']} AWS call{'' if asked['calls'] == 1 else 's'}"
    if is_offline and skipped > incomplete:
        why = f"{skipped - incomplete}: {OFFLINE_REASON}" if incomplete else OFFLINE_REASON
        parts = [f"{part} ({why})" if part.endswith(Status.SKIPPED) else part for part in parts]
    elif any(each.action for result in report.results for each in result.skipped):
        end += f"; 'hyperpod-cdk preflight {report.loaded.called} --iam-policy' prints the policy that all checks need"
    return f"{report.loaded.file}: {', '.join([verdict, *parts])}{end}"
