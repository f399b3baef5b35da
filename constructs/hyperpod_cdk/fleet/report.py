"""Combines the results of environments into one: the worst decides, and nothing is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from hyperpod_cdk.findings import Finding, passed
from hyperpod_cdk.fleet.model import FleetReport, Look, Verb
from hyperpod_cdk.fleet.pages import result_of
from hyperpod_cdk.json_schema import told
from hyperpod_cdk.review.nouns import count


def report(verb: Verb, looks: Sequence[Look], findings: Sequence[Finding] = (), *, strict: bool = False) -> FleetReport:
    """Combine the results of environments; ``findings`` are those of fleet.yaml.

    With ``strict`` an environment that was not checked in full gives exit code 1.
    Exit code 2, if nothing of an environment could be checked, is worse than 1, if something is wrong.
    """
    worst = max((each.exit_code for each in looks), default=0)
    code: Literal[0, 1, 2] = 2 if worst == 2 else 1 if worst or findings else 0
    whole = all(each.passed is not None for each in looks)
    if strict and not whole and not code:
        code = 1
    refuses = bool(findings) or any(each.passed is False for each in looks)
    numbers = Counter(result_of(each) for each in looks)
    parts = [f"{numbers[word]} {word}" for word in ("failed", "not checked", "skipped", "ok") if numbers[word]]
    if any(each.needs_approval for each in looks):
        asked = sum(bool(each.needs_approval) for each in looks)
        parts.append(f"{count(asked, 'environment')} {'needs' if asked == 1 else 'need'} approval")
    if findings:
        parts.append("fleet.yaml refused")
    return FleetReport(
        verb=verb,
        # if fleet.yaml is wrong, there may be no environment to check
        verdict=f"{count(len(looks), 'environment')}: {', '.join(parts)}." if looks else "No environment was checked.",
        passed=passed(refuses=refuses, is_whole=whole),
        exit_code=code,
        environments=tuple(looks),
        findings=tuple(told(each) for each in findings),
    )
