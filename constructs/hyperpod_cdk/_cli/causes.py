"""Many answers that are missing for one reason, said once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_cdk.checks.answers import allowing
from hyperpod_cdk.handlers.quota_gate.reading import quoted

_TIMES = re.compile(r", \d+ times(?=$|;)")


@dataclass(frozen=True, kw_only=True)
class Gap:
    """What could not be asked: what is left out because of it, the whole sentence, the IAM action that was missing.

    ``said`` is AWS's own sentence, empty where the sentence holds it or AWS wrote none.
    """

    what: str
    reason: str
    action: str = ""
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why gaps are there; ``reason`` is the part of their sentences that they share."""

    reason: str
    action: str
    gaps: tuple[Gap, ...]

    @property
    def what(self) -> tuple[str, ...]:
        """What is left out, each once."""
        return tuple(dict.fromkeys(gap.what for gap in self.gaps))

    @property
    def said(self) -> str:
        """AWS's own sentence about the first of them."""
        return next((gap.said for gap in self.gaps if gap.said), "")

    def __str__(self) -> str:
        return f"{self.reason}{allowing(self.action, self.reason)}{quoted(self.said)}"


def causes(gaps: Sequence[Gap]) -> list[Cause]:
    """Put gaps of one cause together, in the order of the first of each.

    A sentence says where something is missing and ends with why: ``the quota "X" could not be read: no permission``.
    """
    shared = Counter(end for gap in gaps for end in dict.fromkeys(_ends(gap)))
    found: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        # of the ends that most sentences share, the longest
        reason = max(_ends(gap), key=lambda end: (shared[end], len(end)))
        found.setdefault((reason, gap.action), []).append(gap)
    return [
        Cause(reason=members[0].reason if len(members) == 1 else reason, action=action, gaps=tuple(members))
        for (reason, action), members in found.items()
    ]


def _ends(gap: Gap) -> list[str]:
    # how often botocore tried differs from call to call
    parts = _TIMES.sub("", gap.reason).split(": ")
    return [": ".join(parts[first:]) for first in range(len(parts))]
