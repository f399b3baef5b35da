"""Whether an instance group has room beside the one whose place it takes, by quotas and training plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hyperpod_cdk.catalog import instance_types, quotas
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import joined
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.groups import InstanceGroup, instance_groups

_LISTS: Final = ("list_aws_default_service_quotas", "list_service_quotas")
"""Where the value of a quota stands; what the account has comes last, and counts."""

_SPOT: Final = "spot"


@dataclass(frozen=True, kw_only=True)
class Room:
    """What AWS told: ``limits`` by the names of quotas, normalised, ``available`` by the ARNs of training plans.

    ``why`` is why something of it is not known.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    available: Mapping[str, int] = field(default_factory=dict)
    why: str = "AWS was not asked"


@dataclass(frozen=True, kw_only=True)
class Swap:
    """Groups of one cluster that go, and those that come in their place; both have nodes."""

    stack: str
    cluster: str
    old: tuple[InstanceGroup, ...]
    new: tuple[InstanceGroup, ...]

    @property
    def old_names(self) -> str:
        """Names of the groups that go."""
        return joined([each.name for each in self.old])

    @property
    def new_names(self) -> str:
        """Names of the groups that come."""
        return joined([each.name for each in self.new])


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether both have room, None where that is not known, and the sentence that says why."""

    has_room: bool | None
    says: str


def swaps(base: Assembly, head: Assembly) -> list[Swap]:
    """Give the groups with nodes that leave clusters which stay, with those that come for the same kind of job.

    Jobs for accelerators move to accelerators only. Restricted groups have no place beside them.
    """
    found: list[Swap] = []
    for cluster in dict.fromkeys((each.cluster.stack, each.cluster.logical_id) for each in instance_groups(base)):
        before, after = _of(base, cluster), _of(head, cluster)
        gone = [each for name, each in before.items() if name not in after]
        come = [each for name, each in after.items() if name not in before]
        old = tuple(each for each in gone if any(_is_alike(each, other) for other in come))
        new = tuple(each for each in come if any(_is_alike(each, other) for other in gone))
        if old:
            found.append(Swap(stack=cluster[0], cluster=cluster[1], old=old, new=new))
    return found


def moves(before: Assembly, after: Assembly) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give each group with nodes that goes, with those that stand before and after and take the same kind of job."""
    clusters = dict.fromkeys((each.cluster.stack, each.cluster.logical_id) for each in instance_groups(before))
    for cluster in clusters:
        old, new = _of(before, cluster), _of(after, cluster)
        staying = [each for name, each in old.items() if name in new]
        for name, group in old.items():
            others = tuple(each.name for each in staying if _is_alike(group, each))
            if name not in new and others:
                yield name, others


def room_for(aws: Api, base: Assembly, head: Assembly) -> Room:
    """Read the quotas and training plans of groups that come in the place of others; asks nothing where none do."""
    coming = [each for swap in swaps(base, head) for each in swap.new]
    if not coming:
        return Room()
    limits: dict[str, float] = {}
    available: dict[str, int] = {}
    why: list[str] = []
    try:
        for operation in _LISTS:
            rows: list[Any] = aws.pages("service-quotas", operation, "Quotas", ServiceCode="sagemaker")
            limits |= {quotas.normalized(str(each["QuotaName"])): float(each["Value"]) for each in rows}
    except NotAnswered as missing:
        limits = {}
        why.append(missing.sentence)
    for plan in dict.fromkeys(each.plan for each in coming if each.plan and each.plan.startswith("arn:")):
        try:
            found = aws.call("sagemaker", "describe_training_plan", TrainingPlanName=plan.rpartition("/")[2])
        except NotAnswered as missing:
            why.append(missing.sentence)
        else:
            if isinstance(found.get("AvailableInstanceCount"), int):
                available[plan] = found["AvailableInstanceCount"]
    return Room(limits=limits, available=available, why="; ".join(why) or "AWS does not tell it")


def verdict(room: Room, base: Assembly, swap: Swap) -> Verdict:
    """Say whether the new groups of a swap have room while the old ones stand."""
    told = [_by_plan(room, each) for each in swap.new if each.plan]
    told += [_by_quota(room, base, swap, market) for market in dict.fromkeys(_market(each) for each in swap.new)]
    for wanted in (False, None):
        found = [each.says for each in told if each.has_room is wanted]
        if found:
            return Verdict(has_room=wanted, says="; ".join(found))
    return Verdict(has_room=True, says="; ".join(each.says for each in told))


def _by_plan(room: Room, group: InstanceGroup) -> Verdict:
    free = room.available.get(group.plan or "")
    if free is None or group.count is None:
        return Verdict(has_room=None, says=f"what {group.capacity} has free is not known ({room.why})")
    return Verdict(
        has_room=group.count <= free, says=f"{group.capacity} has {free} free, and {group.name} takes {group.count}"
    )


def _by_quota(room: Room, base: Assembly, swap: Swap, market: tuple[str, bool]) -> Verdict:
    kind, is_spot = market
    if not kind:
        return Verdict(has_room=None, says="the instance type is known at deployment only")
    row = quotas.cluster_spot_usage(kind) if is_spot else quotas.cluster_usage(kind)
    standing = [each for each in instance_groups(base) if _market(each) == market]
    counts = [each.count for each in (*standing, *swap.new) if _market(each) == market]
    limit = room.limits.get(quotas.normalized(row.name))
    if limit is None:
        default = f"AWS's default as of {quotas.AS_OF} is {row.default}"
        return Verdict(has_room=None, says=f"the quota '{row.name}' is not known ({room.why}; {default})")
    if None in counts:
        return Verdict(has_room=None, says=f"how many {kind} stand is known at deployment only")
    needed = sum(each or 0 for each in counts)
    return Verdict(
        has_room=needed <= limit, says=f"the quota '{row.name}' is {limit:g}, and both take {needed} in this cluster"
    )


def _of(assembly: Assembly, cluster: tuple[str, str]) -> dict[str, InstanceGroup]:
    return {
        each.name: each
        for each in instance_groups(assembly)
        if (each.cluster.stack, each.cluster.logical_id) == cluster and not each.is_restricted and each.count
    }


def _market(group: InstanceGroup) -> tuple[str, bool]:
    return group.types[0] if group.types else "", group.capacity_kind == _SPOT


def _is_alike(one: InstanceGroup, other: InstanceGroup) -> bool:
    kinds = [set(_kinds(each.types)) for each in (one, other)]
    return not all(kinds) or not kinds[0].isdisjoint(kinds[1])


def _kinds(types: Sequence[str]) -> Iterator[str]:
    """Give what accelerators groups of these types have; nothing of a type that the catalog does not know."""
    for each in types:
        found = instance_types.get(each)
        if found is not None:
            yield found.accelerator_kind or "none"
