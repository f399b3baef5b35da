"""The one way to a check: what speaks against a test counts before what is missing, and both before its proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.model import Check, CheckName, Evidence, Verdict


@dataclass(frozen=True, kw_only=True)
class Point:
    """A finding about a test: a sentence, what to do about it, the lines that show it."""

    says: str
    fix: str = ""
    lines: Iterable[log.Line] = field(default=())


def weighed(
    name: CheckName, *, against: Point | None = None, missing: Point | None = None, proof: Point | None = None
) -> Check | None:
    """Give the check that these points make: fail by ``against``, unknown by ``missing``, pass by ``proof`` alone.

    A proof without a line of the log proves nothing. None where there is no point at all.
    """
    for verdict, point in ((Verdict.FAIL, against), (Verdict.UNKNOWN, missing), (Verdict.PASS, proof)):
        if point is None:
            continue
        lines = evidence(point.lines)
        proved = verdict if lines or verdict is not Verdict.PASS else Verdict.UNKNOWN
        return Check(name=name, verdict=proved, says=point.says, fix=point.fix, evidence=lines)
    return None


def evidence(lines: Iterable[log.Line]) -> tuple[Evidence, ...]:
    """Give lines of the log as the report shows them."""
    return tuple(Evidence(file=line.file, line=line.number, text=line.text) for line in lines)
