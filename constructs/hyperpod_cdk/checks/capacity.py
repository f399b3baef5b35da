"""The reverse of the quota checks: how large each instance group could be with today's quotas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hyperpod_cdk.checks.quotas import Compared
from hyperpod_cdk.config import Environment
from hyperpod_cdk.handlers.quota_gate.comparison import most_left
from hyperpod_cdk.quotas.needs import per_node


@dataclass(frozen=True, kw_only=True)
class Largest:
    """The most nodes that quotas allow one group while all others stay as they are.

    ``count`` is None if no quota of the group could be read; then, and if ``unread`` names some, it could be
    less. ``bound_by`` is the name of the limiting quota. For a flexible group, the count is that of nodes
    of its first type.
    """

    group: str
    instance_type: str
    present: int
    count: int | None
    bound_by: str = ""
    unread: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data, for JSON."""
        return {
            "group": self.group,
            "instance_type": self.instance_type,
            "present_count": self.present,
            "largest_count": self.count,
            "bound_by": self.bound_by,
            "unread": list(self.unread),
        }


@dataclass(frozen=True, kw_only=True)
class LargestMix:
    """How many times the instance groups of the file would fit into the quotas; 1 is the file unchanged.

    ``times`` is None if no quota could be read. ``bound_by`` and ``unread`` are as in ``Largest``.
    """

    times: int | None
    bound_by: str = ""
    unread: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data, for JSON."""
        return {"times": self.times, "bound_by": self.bound_by, "unread": list(self.unread)}


def largest_groups(environment: Environment, compared: Iterable[Compared]) -> tuple[Largest, ...]:
    """Return the most nodes that each group with nodes could have, in the order of the file; without room for
    spares."""
    by_key = {each.requirement.key: each for each in compared}
    found = []
    for group in environment.hyperpod.all_groups:
        if not group.count:
            continue
        each_takes = per_node(environment, group)
        taken = {key: group.count * takes for key, takes in each_takes.items()}
        count, bound_by, unread = _limit(by_key, taken, each_takes)
        found.append(
            Largest(
                group=group.name,
                instance_type=next(iter(group.all_instance_types), ""),
                present=group.count,
                count=count,
                bound_by=bound_by,
                unread=unread,
            )
        )
    return tuple(found)


def largest_mix(environment: Environment, compared: Iterable[Compared]) -> LargestMix:
    """Return how many times all groups together would fit, each with its share."""
    taken: dict[str, float] = {}
    for group in environment.hyperpod.all_groups:
        for key, takes in per_node(environment, group).items():
            taken[key] = taken.get(key, 0) + group.count * takes
    taken = {key: amount for key, amount in taken.items() if amount}
    times, bound_by, unread = _limit({each.requirement.key: each for each in compared}, taken, taken)
    return LargestMix(times=times, bound_by=bound_by, unread=unread)


def _limit(
    by_key: Mapping[str, Compared], taken: Mapping[str, float], each_takes: Mapping[str, float]
) -> tuple[int | None, str, tuple[str, ...]]:
    """Return how many times ``each_takes`` fits in place of ``taken``, the limiting quota, and the unread quotas."""
    limits: list[tuple[int, str]] = []
    unread = []
    for key, takes in each_takes.items():
        name, available = by_key[key].requirement.name, most_left(by_key[key].reading)
        if available is None or not by_key[key].reading.used.is_whole:
            unread.append(name)
        if available is None:
            continue
        rest = by_key[key].requirement.needed - taken[key]
        limits.append((max(0, math.floor((available - rest) / takes)), name))
    count, bound_by = min(limits, key=lambda limit: limit[0], default=(None, ""))
    return count, bound_by, tuple(unread)
