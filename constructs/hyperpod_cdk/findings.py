"""A finding: one thing that is wrong or doubtful, said in the same voice everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding weighs: an error refuses, a warning never changes the exit code."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong, where it is and how to fix it.

    ``message`` says what is needed, what was got and the smallest fix, in one sentence. ``path`` is the place inside
    the environment file (``hyperpod.instance_groups[1].count``), ``line`` counts from 1, ``rule`` is the name of the
    rule that was broken.
    """

    severity: Severity
    message: str
    path: str = ""
    file: str = ""
    line: int | None = None
    rule: str = ""

    @property
    def where(self) -> str:
        """The place, ``file:line path``, without what is unknown."""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return " ".join(part for part in (place, self.path) if part)

    def render(self) -> str:
        """Return the one-line form ``file:line path: message``, without what is unknown."""
        return f"{self.where}: {self.message}" if self.where else self.message

    def as_dict(self) -> dict[str, str | int | None]:
        """Return the finding as plain data for ``--format json``."""
        return {**asdict(self), "severity": self.severity.value}


def passed(*, refuses: bool, is_whole: bool) -> bool | None:
    """Return the one answer of a run: True only where everything that was asked was answered and nothing refuses.

    False where something ``refuses``, whatever else was not seen; None where something was not looked at.
    """
    if refuses:
        return False
    return True if is_whole else None


def by_place(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by file, then line, then path, so that a reader goes through the file once."""
    return sorted(findings, key=lambda f: (f.file, f.line or 0, f.path, f.message))
