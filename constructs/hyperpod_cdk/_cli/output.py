"""Findings on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hyperpod_cdk.findings import Finding, Severity

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33"}
_WORDS = {
    "passed": "32",
    "pass": "32",
    "ok": "32",
    "admitted": "32",
    "warned": "33",
    "warning": "33",
    "waiting": "33",
    "failed": "31",
    "fail": "31",
    "never": "31",
    "error": "31",
    "refused": "31",
    "missing": "31",
    "unsafe": "33",
    "changed": "33",
    "lost": "33",
    "skipped": "36",
    "unknown": "36",
    "unmanaged": "36",
}


class Format(StrEnum):
    """How a verb writes its answer."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class Checked:
    """One environment file and all that was found in it."""

    file: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no error refuses the file."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


class Outlet(io.FileIO):
    """A standard stream of which nobody may read the end: what is written then goes nowhere.

    Whether ``| head`` has gone before or after the last line is chance. The verb does its work, and its exit code is
    its own, for any reader.
    """

    is_unread = False

    def write(self, data: Any, /) -> int:
        """Write as FileIO does, or nothing where the reader has gone; also what child processes write goes nowhere."""
        size = memoryview(data).nbytes
        if not size:
            # a device that is full refuses nothing, too
            return 0
        try:
            return super().write(data)
        except BrokenPipeError:
            self.is_unread = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return size


def let_readers_go() -> None:
    """Put an Outlet behind the standard streams, which also show letters outside the terminal's encoding."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        raw = Outlet(stream.fileno(), "w", closefd=False)
        anew = io.TextIOWrapper(
            raw if stream.write_through else io.BufferedWriter(raw),
            encoding=stream.encoding,
            # a finding shows what the file says
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        anew.mode = "w"  # type: ignore[misc]  # as Python does
        # the old one would close the descriptor when nothing holds it any more
        setattr(sys, f"__{name}__", stream)
        setattr(sys, name, anew)


def is_unread() -> bool:
    """Say whether nobody reads standard output any more, which only a write to it shows."""
    buffer = getattr(sys.stdout, "buffer", None)
    return bool(getattr(getattr(buffer, "raw", buffer), "is_unread", False))


def print_checked(checked: Sequence[Checked], *, output: Format) -> None:
    """Print every finding, then one line per file that passed, or all of it as one JSON object."""
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import Validation, print_answer  # noqa: PLC0415 - text needs no models

        files = [
            {"file": each.file, "passed": each.passed, "findings": [f.as_dict() for f in each.findings]}
            for each in checked
        ]
        print_answer(Validation, {"passed": all(each.passed for each in checked), "files": files})
        return
    for each in checked:
        for finding in each.findings:
            print(finding_line(finding))
        if each.passed:
            print(f"{each.file}: {_painted('ok', '32')}{_counted(each.findings)}")
    refused = [each for each in checked if not each.passed]
    if refused:
        findings = [finding for each in refused for finding in each.findings]
        # what options alone made is no file
        counted = f"{len(refused)} of {len(checked)} {'file' if len(checked) == 1 else 'files'} "
        print(f"{counted if checked[0].file else ''}refused{_counted(findings)}")


def print_json(data: object) -> None:
    """Print plain data as JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def finding_line(finding: Finding) -> str:
    """Give a finding on one line; on a terminal the place of an error, and the word warning, have their colour."""
    color = _COLORS[finding.severity]
    if finding.severity is Severity.WARNING:
        return f"{_painted('warning', color)} {finding.render()}"
    return f"{_painted(finding.where, color)}: {finding.message}" if finding.where else finding.render()


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give rows, of which the first is the header, as lines in columns.

    No cell is ever broken: what is printed can be searched and copied, so the longest column is last. A cell that
    is the name of a result has its colour on a terminal.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        # padding behind the last cell would wrap around in a narrow terminal
        last = max((index for index, cell in enumerate(row) if cell), default=0)
        cells = [cell.ljust(width) for cell, width in zip(row[:last], widths, strict=False)]
        yield "  ".join(painted_word(cell) for cell in (*cells, row[last]))


def painted_word(text: str) -> str:
    """Give a word such as ``failed``, with the blanks behind it, in its colour on a terminal."""
    color = _WORDS.get(text.rstrip())
    return _painted(text, color) if color else text


def _counted(findings: Sequence[Finding]) -> str:
    parts = []
    for severity in Severity:
        count = sum(finding.severity is severity for finding in findings)
        if count:
            parts.append(f"{count} {severity.value}{'s' if count > 1 else ''}")
    return f", {', '.join(parts)}" if parts else ""


def _painted(text: str, color: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{color}m{text}\x1b[0m"
