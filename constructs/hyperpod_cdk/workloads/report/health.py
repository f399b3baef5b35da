"""What ``dcgmi diag`` found, by its JSON: of DCGM 3 and 4, which put a test's state in different places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.documents import KEYS
from hyperpod_cdk.workloads.report.lines import clean
from hyperpod_cdk.workloads.report.model import Check, HealthTest, Verdict
from hyperpod_cdk.workloads.report.network import evidence

Status = Literal["pass", "fail", "warn", "skip", "unknown"]

_STATUSES: dict[str, Status] = {
    "pass": "pass",
    "passed": "pass",
    "fail": "fail",
    "failed": "fail",
    "error": "fail",
    "warn": "warn",
    "warning": "warn",
    "skip": "skip",
    "skipped": "skip",
    "not run": "skip",
}
_GRAVEST: tuple[Status, ...] = ("fail", "warn", "unknown", "pass", "skip")
_LONGEST = 300


def tests(found: log.Log) -> tuple[HealthTest, ...]:
    """Give every test of every diagnostic, in the log's order."""
    return tuple(test for health in found.health for test in _tests(health))


def check(found: log.Log, all_tests: tuple[HealthTest, ...]) -> Check | None:
    """Judge the diagnostics: a failed test fails; where all were skipped nothing is known. None without any."""
    if not found.health:
        return None
    counts = Counter(test.status for test in all_tests)
    lines = evidence(health.line for health in found.health[: log.KEPT])
    failed = [test for test in all_tests if test.status == "fail"]
    if failed:
        first = failed[0]
        where = f" ({first.of})" if first.of else ""
        why = f": {first.says[0]}" if first.says else ""
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        says = f"{first.name} failed{where}{why}{more}"
        fix = "take the node out of service and replace it, unless the warning names a setting"
        return Check(name="health", verdict=Verdict.FAIL, says=says, fix=fix, evidence=lines)
    parts = [f"{counts[status]} {word}" for status, word in _WORDS.items() if counts[status]]
    verdict = Verdict.PASS if counts["pass"] else Verdict.UNKNOWN
    return Check(name="health", verdict=verdict, says=f"DCGM: {', '.join(parts) or 'no test'}", fix="", evidence=lines)


_WORDS: dict[Status, str] = {"pass": "passed", "warn": "warned", "skip": "skipped", "unknown": "without a result"}


def _tests(health: log.Health) -> Iterator[HealthTest]:
    root = next(health.document[key] for key in KEYS if isinstance(health.document.get(key), dict))
    for category in _dicts(root.get("test_categories")):
        for test in _dicts(category.get("tests")):
            results = list(_dicts(test.get("results")))
            summary = test.get("test_summary")
            stated: list[Status] = [_status(result.get("status")) for result in results]
            if isinstance(summary, dict):
                stated.append(_status(summary.get("status")))
            yield HealthTest(
                of=health.of,
                category=_text(category.get("category")),
                name=_text(test.get("name")),
                status=_gravest(stated),
                says=tuple(dict.fromkeys(text for result in results for text in _warnings(result))),
            )


def _gravest(found: Sequence[Status]) -> Status:
    for status in _GRAVEST:
        if status in found:
            return status
    return "unknown"


def _status(value: Any) -> Status:
    return _STATUSES.get(str(value).strip().lower(), "unknown")


def _warnings(result: dict[str, Any]) -> Iterator[str]:
    entity = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids")))
    of = f"GPU {entity}: " if isinstance(entity, int | str) and str(entity) else ""
    given = result.get("warnings", [])
    for each in given if isinstance(given, list) else [given]:
        text = each.get("warning") if isinstance(each, dict) else each
        if isinstance(text, str) and text.strip():
            yield _text(f"{of}{text}")


def _text(value: Any) -> str:
    return " ".join(clean(value).split())[:_LONGEST] if isinstance(value, str) else ""


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    yield from (each for each in (value if isinstance(value, list) else []) if isinstance(each, dict))
