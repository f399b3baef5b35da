"""Combines points into a check: evidence of a failure precedes missing evidence, and both precede a proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.model import Check, CheckName, Evidence, Verdict


@dataclass(frozen=True, kw_only=True)
class Point:
    """A finding about a test: a sentence, the fix, and the lines that show it."""

    says: str
    fix: str = ""
    lines: Iterable[log.Line] = field(default=())


def weighed(
    name: CheckName, *, against: Point | None = None, missing: Point | None = None, proof: Point | None = None
) -> Check | None:
    """Return the check of these points: fail with ``against``, unknown with ``missing``, pass with only ``proof``.

    A proof without a line of the log counts as missing. Returns None without any point.
    """
    for verdict, point in ((Verdict.FAIL, against), (Verdict.UNKNOWN, missing), (Verdict.PASS, proof)):
        if point is None:
            continue
        lines = evidence(point.lines)
        proved = verdict if lines or verdict is not Verdict.PASS else Verdict.UNKNOWN
        return Check(name=name, verdict=proved, says=point.says, fix=point.fix, evidence=lines)
    return None


def evidence(lines: Iterable[log.Line]) -> tuple[Evidence, ...]:
    """Return lines of the log in the format of the report."""
    return tuple(Evidence(file=line.file, line=line.number, text=line.text) for line in lines)
