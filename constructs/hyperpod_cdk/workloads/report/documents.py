"""Finds the JSON that ``dcgmi diag --json`` prints, on one line or many, among whatever else a log holds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from hyperpod_cdk.workloads.report.lines import Words
from hyperpod_cdk.workloads.report.log import Health, Line, Log

KEYS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""What the JSON of a diagnostic begins with: DCGM 4, DCGM 3."""

_LONGEST = 4 << 20
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


@dataclass
class _Open:
    line: Line
    of: str
    parts: list[str] = field(default_factory=list)
    length: int = 0
    depth: int = 0


class Documents:
    """Puts documents together, of each pod its own."""

    def __init__(self, log: Log, file: str) -> None:
        self._log = log
        self._file = file
        self._open: dict[str, _Open] = {}

    @property
    def is_open(self) -> bool:
        """Whether a document has begun and not ended."""
        return bool(self._open)

    def feed(self, words: Words, number: int, *, node: str = "") -> None:
        """Take a line; what begins with a brace begins a document, since those within one are indented."""
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

    def _keep(self, opened: _Open) -> None:
        try:
            document = json.loads("\n".join(opened.parts))
        except (ValueError, RecursionError):
            return
        if any(isinstance(document.get(key), dict) for key in KEYS):
            self._log.health.append(Health(opened.of, opened.line, document))
