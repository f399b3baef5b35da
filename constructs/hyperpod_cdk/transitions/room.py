"""Whether there is room for an instance group and the one that it replaces, by quotas and training plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from hyperpod_cdk.catalog import instance_types, quotas
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.handlers.quota_gate.comparison import Usage
from hyperpod_cdk.handlers.quota_gate.reading import Listed, NoSuchQuota, NotTold, Own, read_quota, used
from hyperpod_cdk.living.hyperpod import PLAN_WORKS, describe_training_plan
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.groups import InstanceGroup, instance_groups
from hyperpod_cdk.templates.values import resolve

_SPOT: Final = "spot"


_TOTAL: Final = "hyperpod_instances"
_SPOT_TOTAL: Final = "hyperpod_spot_instances"
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, kw_only=True)
class Room:
    """AWS's answers: ``limits`` by the keys of quotas, ``available`` by the ARNs of training plans.

    ``others`` is the use of clusters other than the swap's, by the swap's cluster and what is counted. ``missing`` says
    why a limit or a plan is unknown, by the same keys, and ``why`` for all others.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[tuple[str, str], Usage] = field(default_factory=dict)
    available: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    why: str = "AWS was not asked"


@dataclass(frozen=True, kw_only=True)
class Swap:
    """Groups of one cluster to remove, and those that replace them; both have nodes."""

    stack: str
    cluster: str
    called: str
    """The name of the cluster in HyperPod; empty if it is known only at deployment."""
    old: tuple[InstanceGroup, ...]
    new: tuple[InstanceGroup, ...]

    @property
    def old_names(self) -> str:
        """Names of the groups to remove."""
        return joined([each.name for each in self.old])

    @property
    def new_names(self) -> str:
        """Names of the new groups."""
        return joined([each.name for each in self.new])


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether there is room for both, None if unknown, and a sentence with the reason."""

    has_room: bool | None
    says: str


def swaps(base: Assembly, head: Assembly, *, with_changed: bool = False) -> list[Swap]:
    """Return the removed groups with nodes of clusters that stay, with the new ones for the same kind of job.

    Jobs for accelerators move only to accelerators. Restricted groups cannot be added first. ``with_changed``: also
    changed groups, which are created again if HyperPod refuses the change and they are removed first.
    """
    found: list[Swap] = []
    for cluster in dict.fromkeys((each.cluster.stack, each.cluster.logical_id) for each in instance_groups(base)):
        before, after = _of(base, cluster), _of(head, cluster)
        gone = [each for name, each in before.items() if name not in after]
        come = [
            each
            for name, each in after.items()
            if name not in before or (with_changed and replace(each, index=before[name].index) != before[name])
        ]
        old = tuple(each for each in gone if any(_is_alike(each, other) for other in come))
        new = tuple(each for each in come if any(_is_alike(each, other) for other in gone))
        if old:
            found.append(Swap(stack=cluster[0], cluster=cluster[1], called=_called(base, old[0]), old=old, new=new))
    return found


def parts(swap: Swap) -> list[Swap]:
    """Split a swap by where jobs can move: groups without accelerators, and groups with them."""
    found: list[tuple[list[InstanceGroup], list[InstanceGroup]]] = []
    for old in swap.old:
        new = [each for each in swap.new if _is_alike(old, each)]
        joins = [each for each in found if any(one in each[1] for one in new)]
        rest = [each for each in found if each not in joins]
        olds = [*(one for each in joins for one in each[0]), old]
        news = {each.name: each for each in (*(one for part in joins for one in part[1]), *new)}
        found = [*rest, (olds, list(news.values()))]
    return [replace(swap, old=tuple(old), new=tuple(new)) for old, new in found]


def moves(before: Assembly, after: Assembly) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each removed group with nodes, with the groups before and after that run the same kind of job."""
    clusters = dict.fromkeys((each.cluster.stack, each.cluster.logical_id) for each in instance_groups(before))
    for cluster in clusters:
        old, new = _of(before, cluster), _of(after, cluster)
        staying = [each for name, each in old.items() if name in new]
        for name, group in old.items():
            others = tuple(each.name for each in staying if _is_alike(group, each))
            if name not in new and others:
                yield name, others


def room_for(aws: Api, base: Assembly, head: Assembly) -> Room:
    """Read quotas, their use and training plans for groups that replace others; without any it asks nothing."""
    # asked once for the whole plan: groups of later steps are compared with the same answers
    found = swaps(base, head, with_changed=True)
    if not found:
        return Room()
    limits: dict[str, float] = {}
    others: dict[tuple[str, str], Usage] = {}
    available: dict[str, int] = {}
    missing: dict[str, str] = {}
    asked = _Asked(aws)
    for swap in found:
        own = Own(hyperpod_cluster=swap.called)
        for each in _limits(swap):
            if each.counted and swap.called:
                others[swap.cluster, each.counted] = used(asked, each.counted, own)
            try:
                limits[each.quota.key] = read_quota(asked, "sagemaker", each.quota.name, each.quota.code).value
            except NotAnswered as why:
                missing[each.quota.key] = why.sentence
            except (NoSuchQuota, NotTold) as why:
                missing[each.quota.key] = str(why)
    plans = [each.plan for swap in found for each in swap.new if each.plan and each.plan.startswith("arn:")]
    for plan in dict.fromkeys(plans):
        try:
            told = describe_training_plan(aws, plan)
        except NotAnswered as why:
            missing[plan] = why.sentence
            continue
        status, free = told.get("Status"), told.get("AvailableInstanceCount")
        if status not in PLAN_WORKS:
            missing[plan] = f"its status is {status or 'unknown'}"
        elif isinstance(free, int):
            available[plan] = free
    return Room(limits=limits, others=others, available=available, missing=missing, why="AWS does not show it")


@dataclass(frozen=True)
class _Asked:
    """Asks AWS as the readers of quotas do."""

    aws: Api

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        return self.aws.call(service, operation, **params)

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        try:
            return Listed(items=self.aws.pages(service, operation, key, **params))
        except NotAnswered as missing:
            return Listed(items=(), missing=missing)

    def each(self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT]:
        return [function(each) for each in items]


def verdict(room: Room, base: Assembly, swap: Swap) -> Verdict:
    """Return whether there is room for the new groups of a swap while the old ones run."""
    told = [_by_plan(room, plan, swap) for plan in dict.fromkeys(each.plan for each in swap.new if each.plan)]
    if any(not each.types for each in swap.new):
        told.append(Verdict(has_room=None, says="the instance type is known only at deployment"))
    told += [_by_quota(room, base, swap, each) for each in _limits(swap) if each.quota.key in room.limits]
    told += _unknown_limits(room, [each.quota for each in _limits(swap) if each.quota.key not in room.limits])
    for wanted in (False, None):
        found = [each.says for each in told if each.has_room is wanted]
        if found:
            return Verdict(has_room=wanted, says="; ".join(found))
    return Verdict(has_room=True, says="; ".join(each.says for each in told))


def _by_plan(room: Room, plan: str, swap: Swap) -> Verdict:
    groups = [each for each in swap.new if each.plan == plan]
    free, counts = room.available.get(plan), [each.count for each in groups]
    if free is None or None in counts:
        why = room.missing.get(plan, room.why) if free is None else "a count is known only at deployment"
        return Verdict(has_room=None, says=f"it is unknown whether {groups[0].capacity} has enough left ({why})")
    needed = sum(each or 0 for each in counts)
    takes = "takes" if len(groups) == 1 else "take"
    return Verdict(
        has_room=needed <= free,
        says=f"{groups[0].capacity} has {free} left, and {joined([each.name for each in groups])} {takes} {needed}",
    )


@dataclass(frozen=True, kw_only=True)
class _Limit:
    """A quota that groups use: ``kind`` is the instance type or empty for all, ``counted`` the use of others.

    ``is_spot`` counts Spot instances only, None both.
    """

    quota: quotas.Quota
    kind: str
    is_spot: bool | None
    counted: str = ""


def _limits(swap: Swap) -> Iterator[_Limit]:
    """Yield the quotas that new groups use. A flexible group uses the first of its types first."""
    markets = dict.fromkeys(_market(each) for each in swap.new if each.types)
    for kind, on_spot in markets:
        prefix = _SPOT_TOTAL if on_spot else _TOTAL
        row = quotas.cluster_spot_usage(kind) if on_spot else quotas.cluster_usage(kind)
        yield _Limit(quota=row, kind=kind, is_spot=on_spot, counted=f"{prefix}:{kind}")
    totals: list[tuple[str, bool | None]] = [(_TOTAL, None)]
    totals += [(_SPOT_TOTAL, True)] if any(on_spot for _, on_spot in markets) else []
    for prefix, is_spot in totals:
        yield _Limit(quota=quotas.get(f"{prefix}_total"), kind="", is_spot=is_spot, counted=prefix)
        yield _Limit(quota=quotas.get(f"{prefix}_per_cluster"), kind="", is_spot=is_spot)


def _unknown_limits(room: Room, rows: Sequence[quotas.Quota]) -> Iterator[Verdict]:
    whys: dict[str, list[quotas.Quota]] = {}
    for row in rows:
        whys.setdefault(room.missing.get(row.key, room.why), []).append(row)
    for why, same in whys.items():
        names = joined([f"'{each.name}'" for each in same])
        one = len(same) == 1
        defaults = joined([str(each.default) for each in same])
        yield Verdict(
            has_room=None,
            says=(
                f"the quota{'' if one else 's'} {names} {'is' if one else 'are'} unknown ({why}; AWS's "
                f"default{'' if one else 's'} as of {quotas.AS_OF}: {defaults})"
            ),
        )


def _by_quota(room: Room, base: Assembly, swap: Swap, of: _Limit) -> Verdict:
    row, limit = of.quota, room.limits[of.quota.key]
    standing = [
        each
        for each in instance_groups(base)
        if (each.cluster.stack, each.cluster.logical_id) == (swap.stack, swap.cluster)
    ]
    counts = [each.count for each in (*standing, *swap.new) if _is_of(each, of)]
    others = room.others.get((swap.cluster, of.counted), Usage()) if of.counted else Usage()
    needed = sum(each or 0 for each in counts)
    both = f"the quota '{row.name}' is {limit:g}, and both use {needed} in this cluster"
    if others.at_least:
        both += f", other clusters {others.at_least:g}"
    if needed + others.at_least > limit:
        return Verdict(has_room=False, says=both)
    if None in counts:
        return Verdict(has_room=None, says=f"{both}, without groups whose count is known only at deployment")
    if of.counted and not (swap.called and others.is_whole):
        why = others.unread[0].reason if others.unread else "the name of this one is known only at deployment"
        return Verdict(has_room=None, says=f"{both}; the use of other clusters is unknown ({why})")
    return Verdict(has_room=True, says=both)


def _is_of(group: InstanceGroup, of: _Limit) -> bool:
    kind, is_spot = _market(group)
    return of.kind in ("", kind) and of.is_spot in (None, is_spot)


def _of(assembly: Assembly, cluster: tuple[str, str]) -> dict[str, InstanceGroup]:
    return {
        each.name: each
        for each in instance_groups(assembly)
        if (each.cluster.stack, each.cluster.logical_id) == cluster
        and not each.is_restricted
        # a count that is known only at deployment can be above 0; Karpenter adds and removes nodes with the pods
        and each.count != 0
        and not each.is_scaled
    }


def _called(assembly: Assembly, group: InstanceGroup) -> str:
    name = resolve(assembly, group.cluster.stack, group.cluster.properties.get("ClusterName"))
    return name if isinstance(name, str) and "${" not in name else ""


def _market(group: InstanceGroup) -> tuple[str, bool]:
    return group.types[0] if group.types else "", group.capacity_kind == _SPOT


def _is_alike(one: InstanceGroup, other: InstanceGroup) -> bool:
    kinds = [set(_kinds(each.types)) for each in (one, other)]
    return not all(kinds) or not kinds[0].isdisjoint(kinds[1])


def _kinds(types: Sequence[str]) -> Iterator[str]:
    """Yield the maker of the accelerators of these types; nothing for a type that the catalog does not know.

    A job is built for the accelerators of one maker (``nvidia-h100``, ``aws-trainium2``), and can use newer ones of it.
    """
    for each in types:
        found = instance_types.get(each)
        if found is not None:
            yield (found.accelerator_kind or "none").partition("-")[0]
