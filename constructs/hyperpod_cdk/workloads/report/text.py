"""The report as plain text: verdict, checks with their evidence, measurements, a chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.workloads.report.chart import Series, chart
from hyperpod_cdk.workloads.report.measures import gb_s, iec, percent
from hyperpod_cdk.workloads.report.model import Check, Evidence, Pair, Report, Run, Verdict

_NARROWEST = 40
_WORD = 8
_NAME = 14
_PAIRS_SHOWN = 20
_RUNS_SHOWN = 40
_TYPES_SHOWN = 4


def text(report: Report, width: int = 80, *, paint: Callable[[str], str] = str) -> str:
    """Return the report in lines of at most ``width`` columns (40 or more), with a trailing newline.

    ``paint`` can color the word of a verdict; its escape codes do not count as columns.
    """
    width = max(width, _NARROWEST)
    blocks = [
        list(_head(report, width, paint)),
        [line for check in report.checks for line in _check(check, width, paint)],
        list(_runs(report.runs, width)) if not report.pairs else list(_pairs(report.pairs, width)),
        chart(_series(report), width=width, level=_level(report)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(report: Report, width: int, paint: Callable[[str], str]) -> Iterator[str]:
    yield from _hanging(str(report.verdict), report.summary, width, paint)
    if not report.holds_a_test:
        return
    place = []
    if report.instance_type is not None:
        place.append(report.instance_type)
    elif report.instance_types:
        shown = ", ".join(report.instance_types[:_TYPES_SHOWN])
        more = len(report.instance_types) - _TYPES_SHOWN
        place.append(f"{shown}{f' or {more} others' if more > 0 else ''} (by the GPU's name)")
    if report.nodes is not None:
        place.append(f"{report.nodes} {plural(report.nodes, 'node')}")
    place += [f"{name} {version}" for name, version in report.versions.items()]
    if place:
        yield from wrap(", ".join(place), width, break_on_hyphens=False)


def _check(check: Check, width: int, paint: Callable[[str], str]) -> Iterator[str]:
    yield from _hanging(str(check.verdict), f"{check.name:<{_NAME}}{check.says}", width, paint, indent=_NAME)
    lead = " " * (_WORD + _NAME)
    if check.fix and check.verdict is not Verdict.PASS:
        yield from wrap(
            f"fix: {check.fix}", width, initial_indent=lead, subsequent_indent=lead + "     ", break_on_hyphens=False
        )
    shown = check.evidence if check.verdict is not Verdict.PASS else check.evidence[:1]
    for line in shown:
        yield _cut(f"{' ' * _WORD}{_place(line)}: {' '.join(line.text.split())}", width)


def _runs(runs: Sequence[Run], width: int) -> Iterator[str]:
    if not runs:
        return
    rows = [("", "collective", "nodes", "ranks", "up to", "plateau", "average", "of published")]
    for run in runs[:_RUNS_SHOWN]:
        largest = max((size.bytes for size in run.sizes), default=None)
        rows.append(
            (
                str(run.verdict),
                run.collective or "unknown",
                _or_dash(run.nodes),
                _or_dash(run.ranks),
                "-" if largest is None else iec(largest),
                "-" if run.plateau_gb_s is None else gb_s(run.plateau_gb_s),
                "-" if run.average_gb_s is None else gb_s(run.average_gb_s),
                "-" if run.comparison is None else percent(run.comparison.ratio),
            )
        )
    yield from _table(rows, width)
    if len(runs) > _RUNS_SHOWN:
        yield f"{len(runs) - _RUNS_SHOWN} more runs not shown"
    limits = {run.memory_limit_bytes for run in runs if run.memory_limit_bytes is not None}
    if limits:
        yield f"the memory of the GPUs limits the message size to {iec(min(limits))}"


def _pairs(pairs: Sequence[Pair], width: int) -> Iterator[str]:
    rows = [("", "plateau", "of median", "pair")]
    by_speed = sorted(pairs, key=lambda pair: pair.of_median if pair.of_median is not None else -1.0)
    rows += [
        (
            str(pair.verdict),
            "-" if pair.plateau_gb_s is None else gb_s(pair.plateau_gb_s),
            "-" if pair.of_median is None else percent(pair.of_median),
            joined(pair.hosts) or "unknown",
        )
        for pair in by_speed[:_PAIRS_SHOWN]
    ]
    yield from _table(rows, width)
    if len(pairs) > _PAIRS_SHOWN:
        yield f"{len(pairs) - _PAIRS_SHOWN} faster pairs not shown"


def _series(report: Report) -> list[Series]:
    """Return the runs to draw: every run, or the slowest and the fastest pair."""
    runs = [run for run in report.runs if run.plateau_gb_s is not None]
    if report.pairs and len(runs) > 1:
        by_speed = sorted(runs, key=lambda run: run.plateau_gb_s or 0.0)
        runs = [by_speed[0], by_speed[-1]]
    return [Series(name=_name(run), points=_points(run)) for run in runs]


def _points(run: Run) -> tuple[tuple[int, float], ...]:
    values = (
        (size.bytes, size.out_of_place_gb_s if size.out_of_place_gb_s is not None else size.in_place_gb_s)
        for size in run.sizes
    )
    return tuple(sorted((size, value) for size, value in values if value is not None))


def _name(run: Run) -> str:
    return joined(run.pair) if run.pair else run.collective or "collective unknown"


def _level(report: Report) -> float | None:
    """Return the published value if it is the same for all drawn runs."""
    levels = {run.comparison.baseline_gb_s for run in report.runs if run.comparison is not None}
    return levels.pop() if len(levels) == 1 else None


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        yield _cut("  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip(), width)


def _hanging(word: str, says: str, width: int, paint: Callable[[str], str], *, indent: int = 0) -> Iterable[str]:
    lines = wrap(
        says,
        width,
        initial_indent=" " * _WORD,
        subsequent_indent=" " * (_WORD + indent),
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [" " * _WORD]
    first = lines[0][_WORD:]
    return [f"{paint(word)}{' ' * (_WORD - len(word))}{first}".rstrip(), *lines[1:]]


def _place(line: Evidence) -> str:
    return f"{line.file}:{line.line}" if line.file else f"line {line.line}"


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 3]}..."
