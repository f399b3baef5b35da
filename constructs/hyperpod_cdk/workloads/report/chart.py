"""A chart of bus bandwidth by message size, in plain characters with a logarithmic axis of sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hyperpod_cdk.workloads.report.measures import gb_s, iec

MARKS = "*o+x#%"
"""The marks of the series, in order; further series are not drawn."""

_HEIGHT = 13
_MARGIN = 9
_NARROWEST = 24
_LARGEST = 100_000
_SMALLEST = 1e-9
"""GB/s, which is one byte per second; smaller values are not drawn."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """A series of the chart: points of (bytes, GB/s) by size, and its name."""

    name: str
    points: tuple[tuple[int, float], ...]


def chart(series: Sequence[Series], *, width: int, level: float | None = None) -> list[str]:
    """Return a chart of up to six series in ``width`` columns, with a dashed line at ``level`` GB/s."""
    drawn = [each for each in series if any(size > 0 for size, _ in each.points)][: len(MARKS)]
    columns = width - _MARGIN
    if not drawn or columns < _NARROWEST:
        return []
    points = [(size, value) for each in drawn for size, value in each.points if size > 0]
    low, high = min(size for size, _ in points), max(size for size, _ in points)
    top = _ceiling(max([value for _, value in points] + ([level] if level else [])))
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    if level is not None:
        row = _row(level, top)
        grid[row] = ["-" if column % 3 < 2 else " " for column in range(columns)]
    for mark, each in zip(MARKS, drawn, strict=False):
        placed = [(_column(size, low, high, columns), value) for size, value in each.points if size > 0]
        _join(grid, placed, top)
        for column, value in placed:
            grid[_row(value, top)][column] = mark
    lines = []
    for index, cells in enumerate(grid):
        value = top * (_HEIGHT - 1 - index) / (_HEIGHT - 1)
        label = _label(value, top) if index % 3 == 0 else ""
        lines.append(f"{label:>{_MARGIN - 2}} |{''.join(cells)}".rstrip())
    lines.append(f"{'GB/s':>{_MARGIN - 2}} +{'-' * columns}")
    lines.append(" " * _MARGIN + _ticks(low, high, columns))
    legend = [f"{mark} {each.name}" for mark, each in zip(MARKS, drawn, strict=False)]
    if level is not None:
        legend.append(f"-- published: {gb_s(level)}")
    return [*lines, *(" " * _MARGIN + row for row in _rows(legend, columns))]


def _rows(legend: Sequence[str], columns: int) -> list[str]:
    """Return the names in rows, with as many in a row as fit."""
    rows: list[str] = []
    for name in legend:
        if rows and len(rows[-1]) + 3 + len(name) <= columns:
            rows[-1] += f"   {name}"
        else:
            rows.append(name[:columns])
    return rows


def _column(size: int, low: int, high: int, columns: int) -> int:
    if high == low:
        return columns // 2
    return round(math.log2(size / low) / math.log2(high / low) * (columns - 1))


def _row(value: float, top: float) -> int:
    return _HEIGHT - 1 - round(min(max(value / top, 0.0), 1.0) * (_HEIGHT - 1))


def _join(grid: list[list[str]], placed: Sequence[tuple[int, float]], top: float) -> None:
    for (start, first), (end, last) in pairwise(placed):
        for column in range(start + 1, end):
            value = first + (last - first) * (column - start) / (end - start)
            cell = grid[_row(value, top)]
            if cell[column] in " -":
                cell[column] = "."


def _ceiling(value: float) -> float:
    """Return the next round number: 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten."""
    if value < _SMALLEST:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value), 10 * power)


def _label(value: float, top: float) -> str:
    if top >= _LARGEST:
        return f"{value:.0e}"
    digits = 0 if top >= 20 else 1 if top >= 2 else 2
    return f"{value:.{digits}f}"


def _ticks(low: int, high: int, columns: int) -> str:
    """Return the labels of the size axis, as many as fit, including the smallest and the largest size."""
    cells = [" "] * columns
    count = max(2, min(columns // 14, 8))
    exponents = [math.log2(low) + (math.log2(high) - math.log2(low)) * index / (count - 1) for index in range(count)]
    for index, exponent in enumerate(exponents if high > low else exponents[:1]):
        size = low if index == 0 else high if index == count - 1 else 1 << round(exponent)
        text = iec(size)
        middle = _column(size, low, high, columns)
        start = min(max(middle - len(text) // 2, 0), columns - len(text))
        if all(cell == " " for cell in cells[max(start - 1, 0) : start + len(text) + 1]):
            cells[start : start + len(text)] = text
    return "".join(cells).rstrip()
