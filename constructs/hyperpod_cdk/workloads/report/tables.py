"""Reads tables of nccl-tests and nccom-test with the columns of any version; joins rows that other output split."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hyperpod_cdk.workloads.report.log import Line, Run, Size, Timing

_TYPE = re.compile(r"float|half|double|u?int(?:8|16|32|64)|bfloat16|fp?8_?e\dm\d|fp(?:8|16|32)|bf16")
_NUMBER = re.compile(
    r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[-+]?\d{1,9})?|[-+]?nan|[-+]?inf|N/A", re.IGNORECASE
)
_ROOT = re.compile(r"-?\d{1,20}")
_MOST_TOKENS = 64
_MOST_SIZES = 1000
_ALIKE = {"bytes": "size", "n": "count", "op": "redop", "res": "error"}
"""Columns with other names in the first versions of nccl-tests."""

_ALLOWED_ERROR = {"half": 1e-2, "bfloat16": 1e-2, "float": 1e-5, "double": 1e-12}
"""The largest error of a correct result in old nccl-tests (deltaMaxValue in src/common.cu, 2.0 to 2.11)."""
_LARGEST = 2**62

_LABELS = frozenset({"size", "count", "type", "redop", "root"})
"""Columns that describe a measurement; all others are measured values."""

_COMMON = ("time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong")
"""The measured values of a table whose header is not in the log."""


def columns(text: str) -> tuple[str, ...] | None:
    """Return the names in a table's header, or None if the line is not a header."""
    names = [_ALIKE.get(name.lower(), name) for name in text.lstrip("# ").split(maxsplit=_MOST_TOKENS)[:_MOST_TOKENS]]
    if not names or not re.match(r"size\b", names[0]):
        return None
    return tuple(names) if any(name.startswith("busbw") for name in names) else None


@dataclass
class _Open:
    """A row that may continue on the next lines."""

    size: Size
    type: str = ""
    numbers: list[str] = field(default_factory=list)


class Table:
    """Reads the rows below one header into a run."""

    def __init__(self, run: Run, names: Sequence[str] = ()) -> None:
        self._run = run
        self._names = tuple(_base(name) for name in names)
        self._has_root = not names or "root" in names
        self._type_at = self._names.index("type") if "type" in self._names else 2
        self._groups = _groups([name for name in names if _base(name) not in _LABELS] or _COMMON)
        self._open: _Open | None = None

    @property
    def waits(self) -> bool:
        """Whether a row is incomplete and may continue on the next lines."""
        return self._open is not None

    @property
    def is_plain(self) -> bool:
        """Whether its rows only consist of numbers, so that any line could be a row."""
        return bool(self._names) and "type" not in self._names

    @property
    def tool(self) -> Literal["nccl-tests", "nccom-test"]:
        """The program that prints such a header."""
        return "nccom-test" if any("(" in name for group in self._groups for name in group) else "nccl-tests"

    def row(self, text: str, line: Line) -> bool:
        """Read a row, or the rest of the previous row; returns False if the line is neither."""
        tokens = text.split(maxsplit=_MOST_TOKENS)
        before, kind = tokens[: self._type_at], tokens[self._type_at : self._type_at + 1]
        if kind and _TYPE.fullmatch(kind[0]) and all(token.isdecimal() for token in before):
            self.end()
            self._begin(tokens, line)
            return True
        is_numeric = bool(tokens) and all(_NUMBER.fullmatch(token) for token in tokens)
        if self.is_plain and is_numeric and len(tokens) == len(self._names):
            return self._plain(tokens, line)
        if self._open is not None and is_numeric:
            self._add(tokens)
            return True
        return False

    def end(self) -> None:
        """Keep the incomplete row with its numbers."""
        opened, self._open = self._open, None
        if opened is None:
            return
        numbers = opened.numbers
        timings: list[Timing | None] = []
        for group in self._groups[:2]:
            part, numbers = numbers[: len(group)], numbers[len(group) :]
            timings.append(self._timing(group, part, opened) if len(part) == len(group) else None)
            if timings[-1] is None:
                # an incomplete row is no result
                self._run.bad_rows.append(opened.size.line)
        opened.size.out_of_place = timings[0]
        opened.size.in_place = timings[1] if len(timings) > 1 else None
        if len(self._run.sizes) < _MOST_SIZES:
            self._run.sizes.append(opened.size)
        else:
            self._run.sizes_left_out += 1

    def _plain(self, tokens: Sequence[str], line: Line) -> bool:
        """Read a row of a table without a column of types: as many numbers as its header has names."""
        size = tokens[self._names.index("size")]
        if not size.isdecimal():
            return False
        self.end()
        root = tokens[self._names.index("root")] if self._has_root else ""
        self._open = _Open(
            Size(
                bytes=min(int(size[:20]), _LARGEST),
                operation="",
                root=int(root[:20]) if _ROOT.fullmatch(root) else None,
                line=line,
            )
        )
        self._add([token for name, token in zip(self._names, tokens, strict=True) if name not in _LABELS])
        return True

    def _begin(self, tokens: list[str], line: Line) -> None:
        rest = tokens[self._type_at + 1 :]
        operation = rest.pop(0) if rest and rest[0].isalpha() and not _NUMBER.fullmatch(rest[0]) else ""
        root = None
        if self._has_root and rest and (match := _ROOT.match(rest[0])):
            root = int(match[0][:20])
            rest = rest[1:] if match.end() == len(rest[0]) else []
        size = min(int(tokens[0][:20]), _LARGEST)
        self._open = _Open(Size(bytes=size, operation=operation, root=root, line=line), tokens[self._type_at])
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

    def _timing(self, names: Sequence[str], tokens: Sequence[str], opened: _Open) -> Timing:
        values = dict(zip((name.partition("(")[0] for name in names), tokens, strict=True))
        bus = finite(values.get("busbw", ""))
        if bus is None:
            self._run.bad_rows.append(opened.size.line)
        wrong, error = finite(values.get("#wrong", "")), values.get("error", "N/A")
        return Timing(
            algorithm_gb_s=finite(values.get("algbw", "")),
            bus_gb_s=bus,
            wrong=None if wrong is None else int(wrong),
            is_off=error.upper() != "N/A" and not _is_right(finite(error), opened.type),
            is_compared=wrong is not None or error.upper() != "N/A",
        )


def _is_right(error: float | None, kind: str) -> bool:
    """Return whether a result with this largest error is correct; integers must have no error."""
    return error is not None and error <= _ALLOWED_ERROR.get(kind, 0.0)


def _base(name: str) -> str:
    """Return a column's name without its unit."""
    return name.partition("(")[0]


def _groups(measures: Sequence[str]) -> list[list[str]]:
    """Split columns into out-of-place and in-place values: a new group starts at the first repeated name.

    Newer versions of nccom-test have several adjacent columns of times, so a group ends only after its bus bandwidth.
    """
    groups: list[list[str]] = [[]]
    for name in measures:
        bases = [_base(each) for each in groups[-1]]
        if _base(name) in bases and "busbw" in bases:
            groups.append([])
        groups[-1].append(name)
    return groups


def finite(token: str) -> float | None:
    """Return a finite number that is not negative, otherwise None."""
    try:
        value = float(token)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
