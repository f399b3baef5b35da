"""How long CloudFormation takes for a resource: ranges of minutes, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Literal

from hyperpod_cdk.catalog import _data

_DATA = _data.load("durations")

AS_OF: date = _data.as_of("durations")

Action = Literal["create", "update", "delete"]


@dataclass(frozen=True, kw_only=True)
class Duration:
    """A range of minutes.

    ``source`` is where it was published, ``not published: a default`` if nowhere; ``unsure`` says what is not
    confirmed.
    """

    low: float
    high: float
    source: str
    unsure: str = ""


def duration(resource_type: str, action: Action, *, when: str = "") -> Duration:
    """Return how long a resource takes.

    ``when`` names a circumstance that matters: ``version`` (of Kubernetes), ``efa``, ``interface`` (of an
    endpoint), ``vpc`` (of a function), ``throughput`` (of a file system), ``deep health checks``. A type or
    circumstance without a row of its own takes as long as the type without it, finally seconds.
    """
    rows = _rows()
    return rows.get((resource_type, action, when)) or rows.get((resource_type, action, "")) or OTHERS


def _read(row: dict[str, Any]) -> Duration:
    sources = _DATA["sources"]
    source = "; ".join(sources[key] for key in row["source"].split(", "))
    return Duration(low=row["low"], high=row["high"], source=source, unsure=row.get("unsure", ""))


@cache
def _rows() -> dict[tuple[str, str, str], Duration]:
    return {(row["type"], row["action"], row.get("when", "")): _read(row) for row in _DATA["durations"]}


OTHERS: Duration = _read(_DATA["others"])
"""The duration of a type without a row."""

STACK: Duration = _read(_DATA["stack"])
"""What each stack takes in addition to its resources: assets, the change set."""

WAITS: dict[str, int] = {kind: row["minutes"] for row in _DATA["waits"] for kind in row["types"].split()}
"""How many minutes CloudFormation waits at most for a type, if no duration is published.

Only types for which it waits longer than two hours, as the handlers of their schemas say.
"""

DEEP_HEALTH_CHECKS: Duration = _read(_DATA["deep_health_checks"])
"""How long new nodes with accelerators are tested before pods may run on them."""


def types() -> frozenset[str]:
    """Return every type that has a row."""
    return frozenset(kind for kind, _, _ in _rows())


def widest(resource_type: str, action: Action) -> Duration:
    """Return the range over all circumstances of a type, for a caller that does not know the circumstance."""
    special = [each for (kind, what, _), each in _rows().items() if (kind, what) == (resource_type, action)]
    rows = [duration(resource_type, action), *special]
    return Duration(
        low=min(each.low for each in rows),
        high=max(each.high for each in rows),
        source="; ".join(dict.fromkeys(each.source for each in rows)),
        unsure="; ".join(dict.fromkeys(each.unsure for each in rows if each.unsure)),
    )
