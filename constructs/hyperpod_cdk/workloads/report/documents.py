"""Finds the output of ``dcgmi diag`` in a log: its table, or its JSON on one or more lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperpod_cdk.workloads.report.lines import Words
from hyperpod_cdk.workloads.report.log import Health, Line, Log

KEYS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""The first key in the JSON of a diagnostic: of DCGM 4 and DCGM 3."""

STATUSES: dict[str, Literal["pass", "fail", "warn", "skip"]] = {
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
"""The status of a test by its name in a diagnostic, in lower case."""

_LONGEST = 4 << 20
_MOST = 20_000
_MOST_ROWS = 10_000
_LONGEST_NAME = 100
_BORDER = frozenset("|+- ")
_OF_GPU = re.compile(r"(GPU ?\d{1,4}): ([A-Za-z]{2,10})\b")
_INFO = "info"
_REMARKS = ("warning", "error", _INFO)
"""Rows with details about the test above them."""

_METADATA = "Metadata"
# possessive: a string that does not end on its line is matched once, and not again from each of its quotes
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}]')
_DCGM = '"DCGM'
_OF_JSON = ("{", "}", "[", "]", '"')


@dataclass
class _Open:
    line: Line
    of: str
    parts: list[str] = field(default_factory=list)
    length: int = 0
    depth: int = 0
    is_diagnostic: bool = False


@dataclass
class _Table:
    """Converts the table of a diagnostic to the JSON of the same results."""

    line: Line
    of: str
    rows: int = 0
    is_closed: bool = False
    categories: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] | None = None

    def row(self, text: str) -> None:
        """Read a line of the table; its last border ends it."""
        self.rows += 1
        if _BORDER.issuperset(text):
            self.is_closed = bool(self.categories)
        elif text.startswith(("|-", "+-")):
            name = next((part for part in text.split("+") if part.strip("|- ")), "").strip("|- ")
            self.categories.append({"category": name[:_LONGEST_NAME], "tests": []})
        elif text.startswith("|") and self.rows <= _MOST_ROWS:
            name, _, value = text[1:].partition("|")
            self._result(name.strip()[:_LONGEST_NAME], value.rstrip("| \t").strip())

    def _result(self, name: str, value: str) -> None:
        category = self.categories[-1] if self.categories else None
        if category is None or category["category"] == _METADATA:
            return
        tests, remark = category["tests"], name.rstrip(":").lower()
        if name and remark not in _REMARKS:
            # the status is the first word, which GPUs may follow
            tests.append({"name": name, "results": [_stated(value)]})
            self.remarks = None
        elif not tests:
            return
        elif match := _OF_GPU.match(value):
            tests[-1]["results"].append({"gpu_id": match[1].removeprefix("GPU").strip(), "status": match[2]})
        elif not name and self.remarks is None and value.partition(" ")[0].lower() in STATUSES:
            # GPUs with another result of the same test
            tests[-1]["results"].append(_stated(value))
        elif value:
            said: list[str] = self.remarks if self.remarks is not None else tests[-1]["results"][0]["warnings"]
            if name:
                said = self.remarks = tests[-1]["results"][0][_INFO if remark == _INFO else "warnings"]
            # the table splits a sentence into rows, and only the first row has a label
            if name or not said:
                said.append(value)
            else:
                said[-1] += f" {value}"

    @property
    def document(self) -> dict[str, Any]:
        """Return the table in the format of ``dcgmi diag --json``."""
        return {KEYS[0]: {"test_categories": [each for each in self.categories if each["category"] != _METADATA]}}


def _stated(value: str) -> dict[str, Any]:
    return {"status": value.partition(" ")[0], "warnings": [], _INFO: []}


class Documents:
    """Collects the lines of documents, separately for each pod."""

    def __init__(self, log: Log, file: str) -> None:
        self._log = log
        self._file = file
        self._open: dict[str, _Open] = {}
        self._tables: dict[str, _Table] = {}

    @property
    def is_open(self) -> bool:
        """Whether a document or a table has started and not ended."""
        return bool(self._open or self._tables)

    def end(self) -> None:
        """Keep documents that are cut off by the end of the log, as incomplete."""
        for pod in list(self._tables):
            self._end_table(pod)
        for opened in self._open.values():
            self._keep_broken(opened)
        self._open.clear()

    def feed(self, words: Words, number: int, *, node: str = "") -> bool:
        """Read a line; a brace at its beginning starts a document, because braces within documents are indented.

        Returns whether the line is a part of a diagnostic, which has its own result.
        """
        text = words.text.strip()
        is_row = text.startswith(("|", "+"))
        if _is_head(text):
            self._end_table(words.pod)
            self._tables[words.pod] = _Table(Line(self._file, number, text[:80]), node or words.pod)
        elif (table := self._tables.get(words.pod)) is not None:
            if is_row:
                table.row(text)
            if table.is_closed or not is_row:
                self._end_table(words.pod)
            return is_row
        return self._json(words, text, number, node)

    def _json(self, words: Words, text: str, number: int, node: str) -> bool:
        if words.text.startswith("{"):
            if (before := self._open.pop(words.pod, None)) is not None:
                self._keep_broken(before)
            self._open[words.pod] = _Open(Line(self._file, number, text[:80]), node or words.pod)
        opened = self._open.get(words.pod)
        if opened is None:
            return False
        opened.parts.append(words.text)
        opened.length += len(words.text)
        opened.is_diagnostic = opened.is_diagnostic or _DCGM in words.text
        for match in _PARTS.finditer(words.text):
            opened.depth += {"{": 1, "}": -1}.get(match[0], 0)
        if opened.depth <= 0 or opened.length > _LONGEST:
            del self._open[words.pod]
            self._keep(opened)
        return opened.is_diagnostic and text.startswith(_OF_JSON)

    def _end_table(self, pod: str) -> None:
        table = self._tables.pop(pod, None)
        if table is not None:
            is_whole = table.is_closed and table.rows <= _MOST_ROWS
            self._add(Health(table.of, table.line, table.document, is_complete=is_whole))

    def _keep(self, opened: _Open) -> None:
        try:
            document = json.loads("\n".join(opened.parts))
        except (ValueError, RecursionError):
            self._keep_broken(opened)
            return
        if any(isinstance(document.get(key), dict) for key in KEYS):
            self._add(Health(opened.of, opened.line, document))

    def _keep_broken(self, opened: _Open) -> None:
        if opened.is_diagnostic:
            self._add(Health(opened.of, opened.line, {KEYS[0]: {}}, is_complete=False))

    def _add(self, health: Health) -> None:
        if len(self._log.health) < _MOST:
            self._log.health.append(health)
        else:
            self._log.left_out["diagnostics"] += 1


def _is_head(text: str) -> bool:
    return text.startswith("| Diagnostic") and [part.strip() for part in text.strip("|").split("|", 2)] == [
        "Diagnostic",
        "Result",
    ]
