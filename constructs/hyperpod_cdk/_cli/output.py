"""Output of findings on a terminal, in a pipe and as JSON."""

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
    """The output format of a command."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class Checked:
    """One environment file with all its findings."""

    file: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether the file has no error."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


class Outlet(io.FileIO):
    """A standard stream whose reader may close it early: later output is discarded.

    Whether a reader such as ``| head`` closes the pipe before or after the last line is a matter of timing. The
    command always completes and has the same exit code.
    """

    is_unread = False

    def write(self, data: Any, /) -> int:
        """Write as FileIO does, or discard output if the reader has closed the pipe, also that of child processes."""
        size = memoryview(data).nbytes
        if not size:
            # a full device then also raises no error
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
    """Put an Outlet behind the standard streams, and let them print characters outside the terminal's encoding."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        raw = Outlet(stream.fileno(), "w", closefd=False)
        anew = io.TextIOWrapper(
            raw if stream.write_through else io.BufferedWriter(raw),
            encoding=stream.encoding,
            # a finding quotes the text of the file
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        anew.mode = "w"  # type: ignore[misc]  # as Python does
        # the old stream would close the descriptor when it is garbage-collected
        setattr(sys, f"__{name}__", stream)
        setattr(sys, name, anew)


def is_unread() -> bool:
    """Return whether the reader of standard output has closed it, which only a write shows."""
    buffer = getattr(sys.stdout, "buffer", None)
    return bool(getattr(getattr(buffer, "raw", buffer), "is_unread", False))


def print_checked(checked: Sequence[Checked], *, output: Format) -> None:
    """Print every finding and one line per file that passed, or all of it as one JSON object."""
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
        # without a file, only options were checked
        counted = f"{len(refused)} of {len(checked)} {'file' if len(checked) == 1 else 'files'} "
        print(f"{counted if checked[0].file else ''}refused{_counted(findings)}")


def print_json(data: object) -> None:
    """Print plain data as JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def finding_line(finding: Finding) -> str:
    """Return a finding as one line; on a terminal, the place of an error and the word warning are colored."""
    color = _COLORS[finding.severity]
    if finding.severity is Severity.WARNING:
        return f"{_painted('warning', color)} {finding.render()}"
    return f"{_painted(finding.where, color)}: {finding.message}" if finding.where else finding.render()


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield ``rows``, of which the first is the header, as lines in columns.

    Cells are never wrapped, so that the output can be searched and copied; the longest column is therefore the last
    one. On a terminal, a cell that is the name of a result is colored.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        # padding after the last cell would wrap in a narrow terminal
        last = max((index for index, cell in enumerate(row) if cell), default=0)
        cells = [cell.ljust(width) for cell, width in zip(row[:last], widths, strict=False)]
        yield "  ".join(painted_word(cell) for cell in (*cells, row[last]))


def painted_word(text: str) -> str:
    """Return a word such as ``failed`` with its trailing blanks, colored on a terminal."""
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
