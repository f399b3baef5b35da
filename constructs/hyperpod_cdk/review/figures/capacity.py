"""Nodes, accelerators, EFA interfaces, training-plan seats, addresses and quotas, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from hyperpod_cdk.catalog import hyperpod, instance_types
from hyperpod_cdk.catalog.instance_groups import seats_problem
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.review.figures.addresses import Taken, taken
from hyperpod_cdk.review.figures.quota_needs import Need, Needs, quota_needs
from hyperpod_cdk.review.model import (
    BlockAddresses,
    Capacity,
    CapacityTotal,
    Change,
    GroupCapacity,
    PlanSeats,
    QuotaNeed,
)
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.groups import InstanceGroup, instance_groups

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment
    from hyperpod_cdk.config.recorded_quotas import RecordedQuotas

_Key = TypeVar("_Key")
_OR: Final = " or "
_UNKNOWN_TYPE: Final = "unknown"


def capacity(
    base: Assembly,
    head: Assembly,
    *,
    base_environment: LoadedEnvironment | None = None,
    head_environment: LoadedEnvironment | None = None,
) -> Capacity:
    """Return the capacity of the instance groups before and after, and whether plans, subnets and quotas suffice.

    Groups are matched by name. A number that the templates do not show is None, with the reason in ``notes``: a count
    that Karpenter or a parameter sets, an instance type with unknown numbers. The environments provide their files'
    rows of instance types, and the head's the records of plans and quotas next to it.
    """
    before = _Side(base, base_environment)
    # an assembly without changes is read once
    after = before if head is base and head_environment is base_environment else _Side(head, head_environment)
    return Capacity(
        groups=tuple(_groups(before, after)),
        totals=tuple(_totals(before, after)),
        plans=tuple(_plans(before, after)),
        blocks=tuple(_blocks(before, after)),
        quotas=tuple(_quotas(before, after)),
        notes=tuple(dict.fromkeys(_notes(before, after))),
    )


@dataclass(frozen=True)
class _Numbers:
    """Numbers of some nodes; None if one is unknown."""

    nodes: int | None = 0
    accelerators: int | None = 0
    efa_interfaces: int | None = 0

    def __add__(self, other: _Numbers) -> _Numbers:
        return _Numbers(
            _plus(self.nodes, other.nodes),
            _plus(self.accelerators, other.accelerators),
            _plus(self.efa_interfaces, other.efa_interfaces),
        )


@dataclass(frozen=True)
class _Side:
    """One assembly, read once."""

    assembly: Assembly
    environment: LoadedEnvironment | None

    def row(self, name: str) -> InstanceType | None:
        if self.environment is not None:
            return self.environment.environment.instance_type(name)
        return instance_types.get(name)

    @cached_property
    def groups(self) -> dict[str, InstanceGroup]:
        """Return the groups by name, which is unique unless there are several clusters."""
        found = instance_groups(self.assembly)
        names = Counter(group.name for group in found)
        return {
            group.name if names[group.name] == 1 else f"{group.cluster.name} / {group.name}": group for group in found
        }

    @cached_property
    def totals(self) -> dict[tuple[str, str], _Numbers]:
        found: dict[tuple[str, str], _Numbers] = {}
        for group in self.groups.values():
            key = (_OR.join(group.types) or _UNKNOWN_TYPE, group.zone_ids[0] if len(group.zone_ids) == 1 else "")
            found[key] = found.get(key, _Numbers()) + self.numbers(group)
        return found

    @cached_property
    def by_plan(self) -> dict[str, list[InstanceGroup]]:
        found: dict[str, list[InstanceGroup]] = {}
        for group in self.groups.values():
            if group.plan is not None:
                found.setdefault(group.plan, []).append(group)
        return found

    @cached_property
    def blocks(self) -> dict[str, Taken]:
        return {each.subnet.part.key: each for each in taken(self.assembly, self.row)}

    @cached_property
    def needs(self) -> Needs:
        return quota_needs(self.assembly)

    def numbers(self, group: InstanceGroup | None) -> _Numbers:
        if group is None:
            return _Numbers()
        return _Numbers(
            group.count,
            self._of_nodes(group, lambda row: row.accelerator_count),
            self._of_nodes(group, lambda row: row.efa_count),
        )

    def accelerator(self, group: InstanceGroup) -> str | None:
        """Return the accelerators of a group's types, ``unknown`` for a type that is, None if it has none."""
        rows = [self.row(name) for name in group.types] or [None]
        found = dict.fromkeys(_UNKNOWN_TYPE if row is None else _accelerator(row) for row in rows)
        return _OR.join(name for name in found if name) or None

    def _of_nodes(self, group: InstanceGroup, number: Callable[[InstanceType], int | None]) -> int | None:
        """Return a number of all nodes of a group; None if its types differ in it or one is unknown."""
        each = {number(row) if row is not None else None for row in map(self.row, group.types)}
        if group.count == 0:
            return 0
        if each == {0}:
            # for any number of nodes
            return 0
        only = each.pop() if len(each) == 1 else None
        return None if only is None or group.count is None else only * group.count


def _groups(before: _Side, after: _Side) -> Iterator[GroupCapacity]:
    for name in _joined(after.groups, before.groups):
        old, new = before.groups.get(name), after.groups.get(name)
        side, group = (after, new) if new is not None else (before, old)
        if group is None:
            continue
        was, will = before.numbers(old), after.numbers(new)
        yield GroupCapacity(
            name=name,
            instance_types=group.types,
            zone_ids=group.zone_ids,
            capacity=group.capacity,
            nodes=Change(before=was.nodes, after=will.nodes),
            accelerator=side.accelerator(group),
            accelerators=Change(before=was.accelerators, after=will.accelerators),
            efa_interfaces=Change(before=was.efa_interfaces, after=will.efa_interfaces),
        )


def _totals(before: _Side, after: _Side) -> Iterator[CapacityTotal]:
    for key in _joined(after.totals, before.totals):
        was, will = before.totals.get(key, _Numbers()), after.totals.get(key, _Numbers())
        yield CapacityTotal(
            instance_type=key[0],
            zone_id=key[1],
            nodes=Change(before=was.nodes, after=will.nodes),
            accelerators=Change(before=was.accelerators, after=will.accelerators),
            efa_interfaces=Change(before=was.efa_interfaces, after=will.efa_interfaces),
        )


def _plans(before: _Side, after: _Side) -> Iterator[PlanSeats]:
    recorded = after.environment.recorded_plans if after.environment is not None else None
    for arn in _joined(after.by_plan, before.by_plan):
        old, new = before.by_plan.get(arn, []), after.by_plan.get(arn, [])
        was, will = (_sum(group.count for group in groups) for groups in (old, new))
        members = new or old
        plan = recorded.plan(arn) if recorded is not None else None
        problem = None
        if plan is not None and recorded is not None and after.environment is not None and will is not None:
            from hyperpod_cdk.config.loading import plans_file  # noqa: PLC0415 - only with a record

            file = plans_file(Path(after.environment.file))
            problem = seats_problem(
                plan.name,
                plan.seats,
                needed=will,
                groups=[group.name for group in new],
                seen=f"({file} of {recorded.recorded})",
            )
        types = dict.fromkeys(name for group in members for name in group.types)
        yield PlanSeats(
            plan=members[0].plan_name,
            instance_type=_OR.join(types) or _UNKNOWN_TYPE,
            used=Change(before=was, after=will),
            seats=plan.seats if plan is not None else None,
            recorded_on=recorded.recorded.isoformat() if plan is not None and recorded is not None else None,
            problem=problem,
        )


def _blocks(before: _Side, after: _Side) -> Iterator[BlockAddresses]:
    for key in _joined(after.blocks, before.blocks):
        old, new = before.blocks.get(key), after.blocks.get(key)
        shown = new or old
        if shown is None:
            continue
        subnet = shown.subnet
        yield BlockAddresses(
            subnet=subnet.resource.name if subnet.resource is not None else subnet.part.label,
            cidr=subnet.cidr,
            zone_id=subnet.zone_id,
            used=Change(before=old.used if old else 0, after=new.used if new else 0),
            usable=shown.usable,
            note=shown.note,
        )


def _quotas(before: _Side, after: _Side) -> Iterator[QuotaNeed]:
    recorded = after.environment.recorded_quotas if after.environment is not None else None
    for key in _joined(after.needs.by_key, before.needs.by_key):
        need = after.needs.by_key.get(key) or before.needs.by_key[key]
        was, will = before.needs.needed(key), after.needs.needed(key)
        value, day, result = _compared(need, will, recorded)
        yield QuotaNeed(
            name=need.label,
            code=need.code,
            needed=Change(before=was, after=will),
            recorded=value,
            recorded_on=day,
            result=result,
        )


def _compared(
    need: Need, needed: float | None, recorded: RecordedQuotas | None
) -> tuple[float | None, str | None, Literal["enough", "short", "unknown"]]:
    """Return the quota's value, the day of its record and whether it suffices.

    AWS's default can only prove that a quota suffices: an account may have been granted more, which no record shows.
    """
    found = recorded.find(need.service, need.name) if recorded is not None else None
    if found is None or recorded is None:
        is_enough = needed is not None and need.is_default_sure and needed <= need.default
        return need.default, None, "enough" if is_enough else "unknown"
    day = recorded.recorded.isoformat()
    if needed is None:
        return found.value, day, "unknown"
    used = found.used_by_others(need.key)
    if needed > found.value - (used or 0):
        return found.value, day, "short"
    return found.value, day, "unknown" if used is None else "enough"


def _notes(before: _Side, after: _Side) -> Iterator[str]:
    for side in (after, before):
        for group in side.groups.values():
            yield from _about(side, group)
        yield from side.needs.notes
    if before.groups or after.groups:
        yield from _about_records(after)


def _about(side: _Side, group: InstanceGroup) -> Iterator[str]:
    if group.count is None:
        yield f"The number of nodes of {group.name} is unknown: {group.count_note}."
    if not group.types:
        yield f"The instance type of {group.name} is unknown: it is set at deployment."
    for name in group.types:
        row = side.row(name)
        if row is None:
            yield f"{name} is not in the catalog of {instance_types.as_of()}, so its numbers are unknown."
        elif row.efa_supported and row.efa_count is None:
            yield f"The number of EFA interfaces of {name} is uncertain: AWS's sources differ."
        if (sold := hyperpod.ultraserver(name)) is not None:
            sizes = _OR.join(str(size) for size in sorted(sold.sizes.values()))
            yield f"{name} is sold as UltraServers of {sizes} instances."
    if group.is_flexible and len(group.types) > 1:
        yield (
            f"{group.name} gets its nodes from {_OR.join(group.types)}, depending on availability; its count "
            "is for all of them."
        )


def _about_records(side: _Side) -> Iterator[str]:
    environment = side.environment
    if environment is None:
        return
    word = environment.called
    if side.by_plan and environment.recorded_plans is None:
        yield f"No training plan is recorded; 'hyperpod-cdk plans record {word}' writes AWS's data of them."
    if environment.recorded_quotas is None:
        yield (
            "No quota is recorded, so needs are compared with AWS's defaults, without other usage of the account; "
            f"'hyperpod-cdk quotas show {word} --record' writes the account's values."
        )


def _accelerator(row: InstanceType) -> str:
    """Return an accelerator's name with its memory: ``H100 80 GB``; empty for a type without."""
    if not row.is_accelerated or row.accelerator_kind is None:
        return ""
    _, _, model = row.accelerator_kind.partition("-")
    name = model.replace("-", " ").title() if row.is_neuron else model.replace("-", " ").upper()
    return f"{name} {row.accelerator_memory_gib:g} GB" if row.accelerator_memory_gib is not None else name


def _joined(first: Mapping[_Key, object], second: Mapping[_Key, object]) -> list[_Key]:
    """Return the keys of both, those of the first in its order before those that only the second has."""
    return list(dict.fromkeys([*first, *second]))


def _sum(counts: Iterable[int | None]) -> int | None:
    total: int | None = 0
    for count in counts:
        total = _plus(total, count)
    return total


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
