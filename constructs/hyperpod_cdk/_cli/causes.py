"""Many answers that are missing for one reason, said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_cdk.checks.answers import allowing, causes_of
from hyperpod_cdk.handlers.quota_gate.reading import quoted


@dataclass(frozen=True, kw_only=True)
class Gap:
    """An answer that is missing: what is left out because of it, why (see ``checks.answers.Why``), the IAM action.

    ``said`` is AWS's own sentence, empty where the reason holds it or AWS wrote none.
    """

    what: str
    reason: str
    action: str = ""
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why gaps are there: the whole reason of one alone, of several the cause that they share."""

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
    """Put gaps of one cause together, in the order of the first of each."""
    shared = Counter(cause for gap in gaps for cause in dict.fromkeys(causes_of(gap.reason)))
    found: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        # of the causes that most reasons share, the one that says most
        reason = max(causes_of(gap.reason), key=lambda cause: (shared[cause], len(cause)))
        found.setdefault((reason, gap.action), []).append(gap)
    return [
        Cause(reason=members[0].reason if len(members) == 1 else reason, action=action, gaps=tuple(members))
        for (reason, action), members in found.items()
    ]
