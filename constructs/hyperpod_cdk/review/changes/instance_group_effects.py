"""What happens to the nodes of whole instance groups that are added or removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.updates import Circumstances
from hyperpod_cdk.review.changes.circumstances import AUTOSCALED, CLUSTER, is_read, whole
from hyperpod_cdk.review.changes.effects import GROUPS, RESTRICTED, Judged
from hyperpod_cdk.review.model import Effect
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.difference import MISSING, PropertyChange
from hyperpod_cdk.templates.values import plain

_NAME = "InstanceGroupName"


@dataclass(frozen=True)
class WholeGroup:
    """A group that is added or removed: its place, and its nodes as ``2 x ml.p5.48xlarge``.

    ``is_certain`` is whether the effect is: without nodes, a group that is removed interrupts nothing.
    """

    steps: tuple[str, ...]
    before: str | None
    after: str | None
    is_certain: bool = True

    @property
    def item(self) -> str:
        """Its name."""
        return self.steps[-1].strip("[]")


def subject(resource_type: str, change: PropertyChange) -> str:
    """Return ``instance group h100`` for a change inside a cluster's group, an empty text for any other change."""
    if resource_type != CLUSTER or change.steps[0] not in GROUPS or not change.item:
        return ""
    return f"instance group {change.item}"


def is_of_groups(resource_type: str, change: PropertyChange) -> bool:
    """Whether a change adds or removes whole groups of a cluster."""
    if resource_type != CLUSTER or change.steps[0] not in GROUPS or MISSING not in (change.before, change.after):
        return False
    if len(change.steps) == 1:
        return all(isinstance(item, dict) and isinstance(item.get(_NAME), str) for item in _items(change))
    return len(change.steps) == 2


def whole_groups(
    base: Assembly, head: Assembly, change: PropertyChange, circumstances: Circumstances
) -> Iterator[tuple[WholeGroup, Judged]]:
    """Judge the groups of a change for which ``is_of_groups`` is true; in an autoscaled cluster a count is no
    evidence."""
    is_new = change.before is MISSING
    is_restricted = change.steps[0] == RESTRICTED
    for item in _items(change):
        steps = change.steps if len(change.steps) > 1 else (*change.steps, f"[{item[_NAME]}]")
        text = _text(head if is_new else base, item)
        if is_new:
            judged = Judged(Effect.ADDED, "UpdateCluster adds the group and launches its nodes", _SOURCE)
            yield WholeGroup(steps, None, text), judged
        else:
            judged = _going(item, circumstances, is_restricted=is_restricted)
            is_counted = is_restricted or whole(item.get("InstanceCount")) is not None
            yield WholeGroup(steps, text, None, is_certain=is_counted), judged


def sent_as_none(before: Any, after: Any) -> Iterator[tuple[tuple[str, ...], Judged]]:
    """Judge the groups of an autoscaled cluster that stay and have 0 nodes in its template: any update sends that 0.

    ``before`` and ``after`` are the cluster's resolved properties.
    """
    # Karpenter does not scale restricted groups
    name = GROUPS[0]
    stated, told = (_by_name(each.get(name) if isinstance(each, dict) else None) for each in (before, after))
    for group, item in told.items():
        if group in stated and _is_none(stated[group]) and _is_none(item):
            reason = "this update sends 0 for a group to which Karpenter may have added nodes; whether they stay"
            judged = Judged(Effect.UNKNOWN, f"{reason} is not documented", _SCALE_DOWN)
            yield (name, f"[{group}]", "InstanceCount"), judged


def _by_name(stated: Any) -> dict[str, Mapping[str, Any]]:
    items = [each for each in stated if isinstance(each, dict)] if isinstance(stated, list) else []
    return {each[_NAME]: each for each in items if isinstance(each.get(_NAME), str)}


def _is_none(group: Mapping[str, Any]) -> bool:
    return str(group.get("InstanceCount")) == "0"


_SCALE_DOWN = updates.address("scale-down")
_SOURCE = updates.address("update-cluster")


def _items(change: PropertyChange) -> list[Any]:
    value = change.after if change.before is MISSING else change.before
    return value if isinstance(value, list) else [value]


def _going(group: Mapping[str, Any], circumstances: Circumstances, *, is_restricted: bool) -> Judged:
    if is_restricted:
        # also at 0: the file system exists as long as the group does
        reason = "a restricted group that is omitted is deleted with its nodes, and with the file system that the "
        return Judged(Effect.DELETED, f"{reason}service created for it, unless a deletion policy keeps that", _SOURCE)
    if _is_none(group):
        reason = "a group that is omitted is deleted with the nodes that Karpenter has added to it"
        if AUTOSCALED in circumstances.certain:
            return Judged(Effect.DELETED, reason, _SOURCE)
        if circumstances.may_include(AUTOSCALED):
            return Judged(
                Effect.UNKNOWN, f"{reason}; whether it scales the cluster is known only at deployment", _SOURCE
            )
        return Judged(Effect.IN_PLACE, "UpdateCluster deletes the group, which has no nodes", _SOURCE)
    its = "its nodes" if whole(group.get("InstanceCount")) is not None else "its nodes, if it has any,"
    reason = f"a group that is omitted is deleted with {its} and all data on their volumes"
    return Judged(Effect.DELETED, reason, _SOURCE)


def _text(assembly: Assembly, group: Mapping[str, Any]) -> str:
    requirements = group.get("InstanceRequirements")
    types = requirements.get("InstanceTypes") if isinstance(requirements, dict) else None
    named = [plain(each) for each in types] if isinstance(types, list) else [plain(group.get("InstanceType"))]
    kind = joined(named, last="or")
    count = group.get("InstanceCount")
    if is_read(assembly, count):
        return f"{kind}, as many as Karpenter sets"
    return f"{plain(count) or 'an unknown number of'} x {kind or 'unknown type'}"
