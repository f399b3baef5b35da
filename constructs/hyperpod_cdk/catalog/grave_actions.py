"""Actions that a person must review before they are granted, by their effect and by how many resources they need."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Final, Literal

from hyperpod_cdk.catalog import _data

AS_OF: date = _data.as_of("grave_actions")

Where = Literal["everywhere", "pattern", "kind", "any"]
"""The resources for which an action must be allowed to be serious.

``everywhere``: a single resource is enough. ``pattern``: more than a single one. ``kind``: every one of a kind (each
function, each key), if no condition limits it to some. ``any``: any resource at all, also without such a condition.
"""

TAGGING: Final[tuple[str, ...]] = tuple(name.lower() for name in _data.load("grave_actions")["tagging"])
"""Names of actions that change tags, in lower case and without their service: serious if policies decide by tags."""


@cache
def grave_actions(*where: Where) -> frozenset[str]:
    """Return the actions of these rows in lower case, as IAM compares them (``ec2:authorizesecuritygroupingress``)."""
    return frozenset(
        f"{row['service']}:{name}".lower()
        for row in _data.load("grave_actions")["rows"]
        if row["where"] in where
        for name in row["actions"]
    )
