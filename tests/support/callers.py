"""Environments with allowed callers of the API server: shipped files have none, which causes a warning."""

from __future__ import annotations

from pathlib import Path

CALLERS = "54.240.193.128/26"
"""A CIDR block of an example of AWS."""


_ASKS = "  # public_access_cidrs:"


def with_callers(text: str) -> str:
    """Return the text of a shipped environment file with callers, if its comment asks for them."""
    lines = text.splitlines()
    named = [f"  public_access_cidrs: [{CALLERS}]" if line.startswith(_ASKS) else line for line in lines]
    assert named != lines, "the file has no comment that asks for its callers"
    return "\n".join(named) + "\n"


def as_it_ships(file: Path) -> str:
    """Return the text of a shipped environment file, with callers if a comment asks for them."""
    text = file.read_text(encoding="utf-8")
    return with_callers(text) if _ASKS in text else text
