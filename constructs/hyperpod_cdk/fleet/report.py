"""From what each environment says to what all of them say: the worst decides, and nothing is left out."""

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
    """Put looks together; ``findings`` are of fleet.yaml.

    With ``strict`` what was not looked at in full is exit code 1.
    2, where nothing of an environment could be looked at, is worse than 1, where something is wrong.
    """
    worst = max((each.exit_code for each in looks), default=0)
    code: Literal[0, 1, 2] = 2 if worst == 2 else 1 if worst or findings else 0
    whole = all(each.passed is not None for each in looks)
    if strict and not whole and not code:
        code = 1
    refuses = bool(findings) or any(each.passed is False for each in looks)
    numbers = Counter(result_of(each) for each in looks)
    parts = [f"{numbers[word]} {word}" for word in ("failed", "not looked at", "skipped", "ok") if numbers[word]]
    if any(each.needs_approval for each in looks):
        asked = sum(bool(each.needs_approval) for each in looks)
        parts.append(f"{count(asked, 'environment')} {'needs' if asked == 1 else 'need'} approval")
    if findings:
        parts.append("fleet.yaml refused")
    return FleetReport(
        verb=verb,
        # where fleet.yaml is wrong there may be none that was to be looked at
        verdict=f"{count(len(looks), 'environment')}: {', '.join(parts)}."
        if looks
        else "No environment was looked at.",
        passed=passed(refuses=refuses, is_whole=whole),
        exit_code=code,
        environments=tuple(looks),
        findings=tuple(told(each) for each in findings),
    )
