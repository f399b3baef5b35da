"""The charges for an instance group of HyperPod: its nodes, their volumes, and its own file system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.figures.charge_lines import Charge, Lines, at, cents, is_accelerated_type, name_of
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.groups import InstanceGroup, entries, whole_number
from hyperpod_cdk.templates.values import plain, resolve

_NODES: Final = (
    "InstanceCount",
    "InstanceType",
    "InstanceTypes",
    "InstanceRequirements",
    "CapacityRequirements",
    "Spot",
)


def of_group(lines: Lines, group: InstanceGroup) -> Iterator[Charge]:
    """Yield the lines of a group, whatever its cluster itself costs."""
    yield from _nodes(lines, group)
    yield from _volumes(lines, group)
    yield from _own_storage(lines, group)


def _nodes(lines: Lines, group: InstanceGroup) -> Iterator[Charge]:
    name, resource = name_of(group.cluster, group.name), group.cluster
    region = lines.region(resource.stack)
    shown = joined(group.types, last="or") or "an instance type that the template does not show"
    count = "?" if group.count is None else str(group.count)
    how = {"on-demand": "on demand"}.get(group.capacity_kind, group.capacity_kind)
    what = f"{count} x {shown}, {f'on training plan {group.plan_name}' if group.plan else how}"
    prices = [lines.prices.find(region, f"node.{each}") for each in group.types]
    known = [price for price in prices if price is not None]
    item = Charge(
        key=(resource.stack, resource.logical_id, group.name, group.capacity_kind, shown, region),
        resource=name,
        group=group.name,
        kind="nodes",
        what=what,
        unit="instance-hour",
        price=min(known, key=lambda price: price.usd) if known and len(known) == len(prices) else None,
        monthly=None,
        count=group.count,
        counted_in="instance",
        is_accelerated=not group.types or any(is_accelerated_type(each) for each in group.types),
        properties=(*_NODES, "TrainingPlanArn"),
    )
    unpriced = replace(item, price=None, sold=shown)
    if group.capacity_kind == "training plan":
        yield replace(item, price=None, monthly=Decimal(0), note="paid with the plan's fee, not by the hour")
    elif group.count == 0:
        yield replace(item, monthly=Decimal(0))
    elif not group.types:
        why = "the template does not show its instance types"
        yield replace(unpriced, unknown=f"{name}: {why}", missing=why)
    elif group.capacity_kind == "spot":
        note = "Spot prices change all the time; the on-demand price is no bound"
        why = f"the price of {shown} on Spot is unknown"
        yield replace(unpriced, note=note, unknown=f"{name}: {why}", missing=why, sold=f"{shown} on Spot")
    elif group.capacity_kind == "unknown":
        why = "the template does not show how its nodes are paid"
        yield replace(unpriced, unknown=f"{name}: {why}", missing=why)
    elif group.is_scaled:
        note = "Karpenter adds and removes these nodes: charged by use"
        scaled = replace(item, note=note, unknown=_uncounted(group, name), missing=_uncounted(group))
        yield replace(scaled, sold=f"{shown} that Karpenter adds")
    elif group.count is None:
        yield replace(item, unknown=_uncounted(group, name), missing=_uncounted(group), sold=shown)
    elif item.price is None:
        lacking = [each for each, price in zip(group.types, prices, strict=True) if price is None]
        why = "; ".join(lines.no_price(f"node.{each}", region) for each in lacking)
        yield replace(unpriced, unknown=why, missing=why)
    else:
        dearest = max(known, key=lambda price: price.usd)
        notes = [item.price.remark(lines.prices.as_of)]
        unknown = ""
        if dearest.usd != item.price.usd:
            most = cents(dearest.monthly * group.count)
            notes.insert(0, f"counted at the cheapest type; {most} a month if all were {dearest.sku[5:]}")
            unknown = f"{name}: HyperPod uses whichever of {shown} is available"
        monthly = item.price.monthly * group.count
        note, is_confirmed = "; ".join(filter(None, notes)), not item.price.unsure
        yield replace(item, monthly=monthly, is_confirmed=is_confirmed, note=note, unknown=unknown)


def _volumes(lines: Lines, group: InstanceGroup) -> Iterator[Charge]:
    if group.storage_gib == 0:
        return
    why = "the size of its nodes' volumes is unknown"
    count = None
    if group.storage_gib is not None:
        why = _uncounted(group)
        count = None if group.count is None else group.count * group.storage_gib
    nodes = "?" if group.count is None else group.count
    size = "?" if group.storage_gib is None else group.storage_gib
    yield lines.priced(
        group.cluster,
        "volumes",
        "node_volume",
        count,
        f"{nodes} x {size} GB of additional EBS volume",
        part=f"{group.name} volumes",
        group=group.name,
        why=why,
        properties=("InstanceCount", "InstanceStorageConfigs"),
    )


def shared_storage(lines: Lines, cluster: Resource) -> Iterator[Charge]:
    """Yield the line of the file system that HyperPod creates for all restricted groups of a cluster, if any."""
    shared = at(lines.get(cluster, "RestrictedInstanceGroupsConfig"), "SharedEnvironmentConfig")
    yield from _created_storage(cluster, "", at(shared, "FSxLustreConfig"), "restricted groups")


def _own_storage(lines: Lines, group: InstanceGroup) -> Iterator[Charge]:
    """Return the file system that HyperPod creates for a restricted group."""
    if not group.is_restricted:
        return
    raw = entries(group.cluster.properties.get("RestrictedInstanceGroups"))
    body = raw[group.index] if group.index < len(raw) else {}
    asked = at(resolve(lines.assembly, group.cluster.stack, body.get("EnvironmentConfig")), "FSxLustreConfig")
    yield from _created_storage(group.cluster, group.name, asked, "a restricted group")


def _created_storage(cluster: Resource, group: str, asked: Any, users: str) -> Iterator[Charge]:
    if not isinstance(asked, dict):
        return
    size, tier = plain(asked.get("SizeInGiB")), plain(asked.get("PerUnitStorageThroughput"))
    name = name_of(cluster, group)
    yield Charge(
        key=(cluster.stack, cluster.logical_id, group, "own storage"),
        resource=name,
        group=group,
        kind="storage",
        what=f"{size} GiB of Lustre at {tier} MB/s per TiB that HyperPod creates",
        unit="",
        monthly=None,
        unknown=f"{name}: the price of the file system that HyperPod creates for {users} is not published",
        count=whole_number(asked.get("SizeInGiB")),
        sold=f"Lustre at {tier} MB/s per TiB that HyperPod creates",
        counted_in="GB",
        missing="its price is not published",
        properties=("FSxLustreConfig",),
    )


def _uncounted(group: InstanceGroup, name: str = "") -> str:
    """Return why the number of a group's nodes, and so their cost, is unknown."""
    return f"{f'{name}: ' if name else ''}the number of its nodes is unknown: {group.count_note}"
