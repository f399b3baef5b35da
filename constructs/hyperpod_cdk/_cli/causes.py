"""Groups missing answers by their reason, so that each reason is reported once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_cdk.checks.answers import allowing, causes_of
from hyperpod_cdk.handlers.quota_gate.reading import quoted


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A missing answer: what is skipped because of it, the reason (see ``checks.answers.Why``) and the IAM action.

    ``said`` is AWS's error message, empty if the reason contains it or AWS returned none.
    """

    what: str
    reason: str
    action: str = ""
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The cause of one or more gaps: the complete reason of a single gap, or the cause that several share."""

    reason: str
    action: str
    gaps: tuple[Gap, ...]

    @property
    def what(self) -> tuple[str, ...]:
        """What is skipped, without duplicates."""
        return tuple(dict.fromkeys(gap.what for gap in self.gaps))

    @property
    def said(self) -> str:
        """AWS's error message for the first gap that has one."""
        return next((gap.said for gap in self.gaps if gap.said), "")

    def __str__(self) -> str:
        return f"{self.reason}{allowing(self.action, self.reason)}{quoted(self.said)}"


def causes(gaps: Sequence[Gap]) -> list[Cause]:
    """Group gaps by cause, in the order of the first gap of each cause."""
    shared = Counter(cause for gap in gaps for cause in dict.fromkeys(causes_of(gap.reason)))
    found: dict[tuple[str, str], list[Gap]] = {}
    for gap in gaps:
        # among the causes that most reasons share, the longest one
        reason = max(causes_of(gap.reason), key=lambda cause: (shared[cause], len(cause)))
        found.setdefault((reason, gap.action), []).append(gap)
    return [
        Cause(reason=members[0].reason if len(members) == 1 else reason, action=action, gaps=tuple(members))
        for (reason, action), members in found.items()
    ]
