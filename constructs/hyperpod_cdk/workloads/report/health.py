"""Results of ``dcgmi diag`` from its JSON; DCGM 3 and 4 have the status of a test in different places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.documents import KEYS, STATUSES
from hyperpod_cdk.workloads.report.lines import clean
from hyperpod_cdk.workloads.report.model import Check, HealthTest
from hyperpod_cdk.workloads.report.weighing import Point, weighed

Status = Literal["pass", "fail", "warn", "skip", "unknown"]

_GRAVEST: tuple[Status, ...] = ("fail", "unknown", "warn", "skip", "pass")
_LONGEST = 300
_SHOWN = 4
_REPLACE = "take the node out of service and replace it, unless the warning is about a setting"
_SET_UP = "check whether the image's DCGM is compatible with the nodes' driver, and run it again"


def tests(found: log.Log) -> tuple[HealthTest, ...]:
    """Return every test of every diagnostic, in the order of the log."""
    return tuple(test for health in found.health for test in _tests(health))


def failed(found: log.Log) -> set[str]:
    """Return the nodes or pods with a failed test."""
    return {test.of for test in tests(found) if test.status == "fail"}


def check(found: log.Log, all_tests: tuple[HealthTest, ...]) -> Check | None:
    """Return the check of the diagnostics, or None if there are none.

    It fails if a test failed or a diagnostic could not run. It passes if every diagnostic completed and all of its
    tests passed without a warning. Otherwise, if something was skipped, warned about or cut off, it is unknown.
    """
    if not found.health:
        return None
    lines = [health.line for health in found.health]
    return weighed(
        "health",
        against=_against(found, all_tests),
        missing=_missing(found, all_tests),
        proof=Point(says=_counted(all_tests), lines=lines[: log.KEPT]),
    )


def _against(found: log.Log, all_tests: tuple[HealthTest, ...]) -> Point | None:
    failed = [test for test in all_tests if test.status == "fail"]
    lines = [health.line for health in found.health]
    if failed:
        first = failed[0]
        where = f" ({first.of})" if first.of else ""
        why = f": {first.says[0]}" if first.says else ""
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        # the lines of the first node that failed
        lines.sort(key=lambda line: all(line != each.line for each in found.health if each.of == first.of))
        return Point(says=f"{first.name} failed{where}{why}{more}", fix=_REPLACE, lines=lines[: log.KEPT])
    broken = [(health, why) for health in found.health if (why := _runtime_error(health))]
    if broken:
        health, why = broken[0]
        where = f" on {health.of}" if health.of else ""
        return Point(says=f"the diagnostic did not run{where}: {why}", fix=_SET_UP, lines=[health.line])
    return None


def _missing(found: log.Log, all_tests: tuple[HealthTest, ...]) -> Point | None:
    counted, lines = _counted(all_tests), [health.line for health in found.health]
    cut = [health.line for health in found.health if not health.is_complete]
    if cut:
        said = f"; {len(cut)} {plural(len(cut), 'diagnostic')} cut off"
        return Point(says=f"{counted}{said}", fix="provide the complete log, or run it again", lines=cut[: log.KEPT])
    if any(not any(_tests(health)) for health in found.health):
        return Point(says=counted if not all_tests else f"{counted}; a diagnostic without a test", lines=lines[:1])
    unclear = [test for test in all_tests if test.status != "pass" or test.says]
    if not unclear:
        return None
    names = list(dict.fromkeys(test.name for test in unclear if test.name))
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    why = next((f" ({test.says[0]})" for test in unclear if test.says), "")
    return Point(
        says=f"{counted}: {shown}{why}" if names else counted,
        fix="check why these did not pass; skipped tests did not run",
        lines=lines[: log.KEPT],
    )


def _counted(all_tests: tuple[HealthTest, ...]) -> str:
    counts = Counter(test.status for test in all_tests)
    parts = [f"{counts[status]} {word}" for status, word in _WORDS.items() if counts[status]]
    warned = sum(1 for test in all_tests if test.status == "pass" and test.says)
    if warned:
        parts.append(f"{warned} of these with a warning")
    return f"DCGM: {', '.join(parts) or 'no test'}"


_WORDS: dict[Status, str] = {"pass": "passed", "warn": "warned", "skip": "skipped", "unknown": "without a result"}


def _tests(health: log.Health) -> Iterator[HealthTest]:
    root = _root(health)
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


def _root(health: log.Health) -> dict[str, Any]:
    found: dict[str, Any] = next(health.document[key] for key in KEYS if isinstance(health.document.get(key), dict))
    return found


def _runtime_error(health: log.Health) -> str:
    """Return why a diagnostic did not run, or an empty text; DCGM has it next to the tests or at the top level."""
    said = (place.get("runtime_error") for place in (_root(health), health.document))
    return next((text for each in said if (text := _text(each))), "")


def _gravest(found: Sequence[Status]) -> Status:
    for status in _GRAVEST:
        if status in found:
            return status
    return "unknown"


def _status(value: Any) -> Status:
    return STATUSES.get(str(value)[:_LONGEST].strip().lower(), "unknown")


def _warnings(result: dict[str, Any]) -> Iterator[str]:
    entity = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids")))
    of = f"GPU {entity}: " if isinstance(entity, int | str) and str(entity) else ""
    given = result.get("warnings", [])
    if _status(result.get("status")) == "fail" and not given:
        given = result.get("info", [])
    for each in given if isinstance(given, list) else [given]:
        text = each.get("warning") if isinstance(each, dict) else each
        if isinstance(text, str) and text.strip():
            yield _text(f"{of}{text}")


def _text(value: Any) -> str:
    return " ".join(clean(value).split())[:_LONGEST] if isinstance(value, str) else ""


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    yield from (each for each in (value if isinstance(value, list) else []) if isinstance(each, dict))
