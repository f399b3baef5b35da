"""Finds what ``dcgmi diag`` prints, its table or its JSON on one line or many, among whatever else a log holds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk.workloads.report.lines import Words
from hyperpod_cdk.workloads.report.log import Health, Line, Log

KEYS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""What the JSON of a diagnostic begins with: DCGM 4, DCGM 3."""

_LONGEST = 4 << 20
_MOST_ROWS = 10_000
_HEAD = re.compile(r"\| Diagnostic\s+\| Result\s+\|")
_SECTION = re.compile(r"[|+]-+ {2}(\S.{0,40}?) {2}-+\+-*[|+]")
_ROW = re.compile(r"\|\s*(.{0,100}?)\s*\|\s*(.*?)\s*\|?\s*")
_OF_GPU = re.compile(r"(GPU ?\d{1,4}): ([A-Za-z]{2,10})\b")
_REMARKS = ("warning", "error", "info")
"""Rows that say something of the test above them."""

_METADATA = "Metadata"
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


@dataclass
class _Open:
    line: Line
    of: str
    parts: list[str] = field(default_factory=list)
    length: int = 0
    depth: int = 0


@dataclass
class _Table:
    """The table of a diagnostic, as the JSON of the same results would be."""

    line: Line
    of: str
    rows: int = 0
    categories: list[dict[str, Any]] = field(default_factory=list)

    def row(self, text: str) -> None:
        """Take a line of the table."""
        self.rows += 1
        if match := _SECTION.fullmatch(text):
            self.categories.append({"category": match[1].strip(), "tests": []})
        elif (match := _ROW.fullmatch(text)) and self.rows <= _MOST_ROWS:
            self._result(match[1], match[2])

    def _result(self, name: str, value: str) -> None:
        category = self.categories[-1] if self.categories else None
        if category is None or category["category"] == _METADATA:
            return
        tests = category["tests"]
        if name and name.rstrip(":").lower() not in _REMARKS:
            # the state is the first word; GPUs may follow it
            tests.append({"name": name, "results": [{"status": value.partition(" ")[0], "warnings": []}]})
        elif not tests:
            return
        elif match := _OF_GPU.match(value):
            tests[-1]["results"].append({"gpu_id": match[1].removeprefix("GPU").strip(), "status": match[2]})
        elif value:
            said = tests[-1]["results"][0]["warnings"]
            # the table cuts a sentence into rows; only the first of them names what it is
            if name or not said:
                said.append(value)
            else:
                said[-1] += f" {value}"

    @property
    def document(self) -> dict[str, Any]:
        """The table in the form of the JSON that ``dcgmi diag --json`` prints."""
        return {KEYS[0]: {"test_categories": [each for each in self.categories if each["category"] != _METADATA]}}


class Documents:
    """Puts documents together, of each pod its own."""

    def __init__(self, log: Log, file: str) -> None:
        self._log = log
        self._file = file
        self._open: dict[str, _Open] = {}
        self._tables: dict[str, _Table] = {}

    @property
    def is_open(self) -> bool:
        """Whether a document or a table has begun and not ended."""
        return bool(self._open or self._tables)

    def end(self) -> None:
        """Keep the tables that end with the log; a document without its last brace is none."""
        for pod in list(self._tables):
            self._end_table(pod)

    def feed(self, words: Words, number: int, *, node: str = "") -> None:
        """Take a line; what begins with a brace begins a document, since those within one are indented."""
        text = words.text.strip()
        if _HEAD.match(text):
            self._end_table(words.pod)
            self._tables[words.pod] = _Table(Line(self._file, number, text[:80]), node or words.pod)
        elif words.pod in self._tables:
            if text.startswith(("|", "+")):
                self._tables[words.pod].row(text)
            else:
                self._end_table(words.pod)
        if words.text.startswith("{"):
            self._open[words.pod] = _Open(Line(self._file, number, words.text.strip()[:80]), node or words.pod)
        opened = self._open.get(words.pod)
        if opened is None:
            return
        opened.parts.append(words.text)
        opened.length += len(words.text)
        for match in _PARTS.finditer(words.text):
            opened.depth += {"{": 1, "}": -1}.get(match[0], 0)
        if opened.depth <= 0 or opened.length > _LONGEST:
            del self._open[words.pod]
            self._keep(opened)

    def _end_table(self, pod: str) -> None:
        table = self._tables.pop(pod, None)
        if table is not None:
            self._log.health.append(Health(table.of, table.line, table.document))

    def _keep(self, opened: _Open) -> None:
        try:
            document = json.loads("\n".join(opened.parts))
        except (ValueError, RecursionError):
            return
        if any(isinstance(document.get(key), dict) for key in KEYS):
            self._log.health.append(Health(opened.of, opened.line, document))
