"""Values before and after in readable form: long ones are cut to what differs, secret ones hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.difference import MISSING, PropertyChange
from hyperpod_cdk.templates.values import plain

LIMIT: Final = 300
"""Characters of a value that are shown whole."""
IN_SENTENCE: Final = 60
"""Characters of a value that are shown within a sentence."""
_AROUND: Final = 40
"""Characters that are shown before and after what differs."""
HIDDEN: Final = "(hidden)"
_SECRET = re.compile(r"(password|secretstring|authtoken|privatekey)$", re.IGNORECASE)
_SHORTEST_SECRET: Final = 4
"""A shorter default of a NoEcho parameter is hidden only if it is the whole value."""


class Excerpts:
    """Renders values of two assemblies without the values of their NoEcho parameters."""

    def __init__(self, base: Assembly, head: Assembly) -> None:
        self._secrets = sorted({*_secrets(base), *_secrets(head)}, key=lambda each: (-len(each), each))

    def of(self, change: PropertyChange, limit: int = LIMIT) -> tuple[str | None, str | None]:
        """Return a change's values, None for a side without one."""
        if any(_SECRET.search(step) for step in change.steps):
            before, after = (None if each is MISSING else HIDDEN for each in (change.before, change.after))
            return before, after
        return differing(self.text(change.before), self.text(change.after), limit)

    def text(self, value: Any) -> str | None:
        """Return one value on one line."""
        if value is MISSING:
            return None
        text = plain(value)
        for secret in self._secrets:
            if text == secret:
                return HIDDEN
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, HIDDEN)
        return text


def _secrets(assembly: Assembly) -> Iterator[str]:
    parameters = (each for stack in assembly.stacks for each in stack.parameters.values() if isinstance(each, dict))
    hidden = (each for each in parameters if str(each.get("NoEcho", "")).lower() == "true")
    return (str(each["Default"]) for each in hidden if each.get("Default") not in (None, ""))


def differing(before: str | None, after: str | None, limit: int = LIMIT) -> tuple[str | None, str | None]:
    """Cut two texts to at most about ``limit`` characters each, around the first place where they differ."""
    if max(len(before or ""), len(after or "")) <= limit:
        return before, after
    if before is None or after is None:
        return (before and _cut(before, 0, limit)), (after and _cut(after, 0, limit))
    same = _same(before, after)
    start = max(0, same - _AROUND)
    old, new = before[start:], after[start:]
    tail = _same(old[::-1], new[::-1])
    tail = max(0, min(tail, min(len(old), len(new)) - (same - start)) - _AROUND)
    return _cut(before, start, limit, tail), _cut(after, start, limit, tail)


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _cut(text: str, start: int, limit: int, tail: int = 0) -> str:
    end = len(text) - tail
    shown = text[start:end] if end - start <= limit else text[start : start + limit]
    is_cut = start + len(shown) < len(text)
    return f"{'...' if start else ''}{shown}{'...' if is_cut else ''}"
