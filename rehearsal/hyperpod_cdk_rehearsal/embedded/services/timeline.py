"""The states of a resource of the embedded AWS over time."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from hyperpod_cdk_rehearsal.embedded.context import Clock

Item = TypeVar("Item")

GONE = "<gone>"
"""The last state of a resource that is being deleted, which is then no longer found."""


@dataclass(frozen=True)
class Timeline:
    """States with the moment each begins; the state at a moment is a pure function of that moment."""

    steps: tuple[tuple[datetime, str], ...]

    @classmethod
    def begin(cls, clock: Clock, first: str, *later: tuple[float, str]) -> Timeline:
        """Start now with `first`; each later state begins so many (scaled) seconds after the one before it."""
        moment = clock.now()
        steps = [(moment, first)]
        for seconds, state in later:
            moment += timedelta(seconds=seconds * clock.scale)
            steps.append((moment, state))
        return cls(tuple(steps))

    def at(self, moment: datetime) -> str:
        """The state at a moment; before the first step, the first state."""
        state = self.steps[0][1]
        for begins, name in self.steps:
            if begins <= moment:
                state = name
        return state

    @property
    def final(self) -> str:
        """The last state."""
        return self.steps[-1][1]


def page(items: Sequence[Item], start: str | None, size: int) -> tuple[list[Item], str | None]:
    """One page of a list and the token of the next; a token hides the number of items before the page.

    It is base64 of a length that needs no padding, since FSx accepts nothing else.
    """
    try:
        text = base64.b64decode(start or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        # AWS's services differ in what they say of a token that is none of theirs
        text = ""
    first = int(text) if text.isdecimal() else 0
    end = first + size
    return list(items[first:end]), base64.b64encode(f"{end:012}".encode()).decode() if end < len(items) else None
