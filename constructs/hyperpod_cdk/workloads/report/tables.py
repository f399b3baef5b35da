"""Tables of nccl-tests and nccom-test, whatever columns a version has; rows that other output broke are joined."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hyperpod_cdk.workloads.report.log import Line, Run, Size, Timing

_TYPE = re.compile(r"float|half|double|u?int(?:8|16|32|64)|bfloat16|fp?8_?e\dm\d|fp(?:8|16|32)|bf16")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|[-+]?nan|[-+]?inf|N/A", re.IGNORECASE)
_ROOT = re.compile(r"-?\d+")
_LARGEST = 2**62

_COMMON = ("time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong")
"""The measures of a table whose head is not in the log."""


def columns(text: str) -> tuple[str, ...] | None:
    """Give the names in a table's head, or None where the line is no head."""
    names = text.lstrip("# ").split()
    if not names or not re.match(r"size\b", names[0]):
        return None
    return tuple(names) if any(name.startswith("busbw") for name in names) else None


@dataclass
class _Open:
    """A row of which numbers may still come."""

    size: Size
    numbers: list[str] = field(default_factory=list)


class Table:
    """Reads the rows under one head into a run."""

    def __init__(self, run: Run, names: Sequence[str] = ()) -> None:
        self._run = run
        self._has_root = not names or "root" in names
        measures = [name for name in names[3:] if name not in ("redop", "root")] if names else list(_COMMON)
        starts = [index for index, name in enumerate(measures) if name.startswith("time") and _opens(measures, index)]
        self._groups = [
            measures[start:end] for start, end in zip(starts, [*starts[1:], len(measures)], strict=True)
        ] or [measures]
        self._open: _Open | None = None

    @property
    def waits(self) -> bool:
        """Whether a row misses numbers that the next lines may bring."""
        return self._open is not None

    @property
    def tool(self) -> Literal["nccl-tests", "nccom-test"]:
        """Which program prints such a head."""
        return "nccom-test" if any("(" in name for group in self._groups for name in group) else "nccl-tests"

    def row(self, text: str, line: Line) -> bool:
        """Take a row, or what is missing of the one before; False where the line is neither."""
        tokens = text.split()
        if len(tokens) >= 3 and tokens[0].isdecimal() and tokens[1].isdecimal() and _TYPE.fullmatch(tokens[2]):
            self.end()
            self._begin(tokens, line)
            return True
        if self._open is not None and tokens and all(_NUMBER.fullmatch(token) for token in tokens):
            self._add(tokens)
            return True
        return False

    def end(self) -> None:
        """Keep the row that is open, with the numbers it has."""
        opened, self._open = self._open, None
        if opened is None:
            return
        numbers = opened.numbers
        timings: list[Timing | None] = []
        for group in self._groups[:2]:
            part, numbers = numbers[: len(group)], numbers[len(group) :]
            timings.append(self._timing(group, part, opened.size.line) if len(part) == len(group) else None)
        opened.size.out_of_place = timings[0]
        opened.size.in_place = timings[1] if len(timings) > 1 else None
        self._run.sizes.append(opened.size)

    def _begin(self, tokens: list[str], line: Line) -> None:
        rest = tokens[3:]
        operation = rest.pop(0) if rest and rest[0].isalpha() and not _NUMBER.fullmatch(rest[0]) else ""
        root = None
        if self._has_root and rest and (match := _ROOT.match(rest[0])):
            root = int(match[0][:20])
            rest = rest[1:] if match.end() == len(rest[0]) else []
        size = min(int(tokens[0][:20]), _LARGEST)
        self._open = _Open(Size(bytes=size, operation=operation, root=root, line=line))
        self._add(rest)

    def _add(self, tokens: Sequence[str]) -> None:
        if self._open is None:
            return
        for token in tokens:
            if not _NUMBER.fullmatch(token):
                break
            self._open.numbers.append(token)
        if len(self._open.numbers) >= sum(len(group) for group in self._groups[:2]):
            self.end()

    def _timing(self, names: Sequence[str], tokens: Sequence[str], line: Line) -> Timing:
        values = dict(zip((name.partition("(")[0] for name in names), tokens, strict=True))
        bus = finite(values.get("busbw", ""))
        if bus is None:
            self._run.bad_rows.append(line)
        wrong = finite(values.get("#wrong", ""))
        return Timing(
            algorithm_gb_s=finite(values.get("algbw", "")), bus_gb_s=bus, wrong=None if wrong is None else int(wrong)
        )


def _opens(measures: Sequence[str], index: int) -> bool:
    """Whether a group begins here: newer nccom-test has several columns of times side by side."""
    return index == 0 or not measures[index - 1].startswith("time")


def finite(token: str) -> float | None:
    """Give a number that is one: not negative, no infinity, no NaN; else None."""
    try:
        value = float(token)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
