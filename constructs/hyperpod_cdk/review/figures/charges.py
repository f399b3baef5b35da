"""What AWS charges for each resource of a template in a month, and which parts have no known price."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from hyperpod_cdk.catalog import instance_types, kubernetes
from hyperpod_cdk.catalog import prices as catalog
from hyperpod_cdk.catalog.prices import Kind, Price, Prices
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.figures import quantities
from hyperpod_cdk.review.nouns import noun
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.groups import InstanceGroup, entries, instance_groups, whole_number
from hyperpod_cdk.templates.values import Reference, Unknown, plain, resolve, resolved_properties

KINDS: Final[tuple[Kind, ...]] = (
    "nodes",
    "volumes",
    "storage",
    "network",
    "control plane",
    "logs",
    "other",
)
"""The order of the lines."""

REFRESH: Final = "run 'hyperpod-cdk prices refresh'"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One side of a line. ``monthly`` is None if it is unknown; ``unknown`` then gives the reason."""

    key: tuple[str, ...]
    is_of_type: bool = False
    """Whether it counts all resources of a type, named by the type, and belongs to none of them."""
    resource: str
    kind: Kind
    what: str
    unit: str
    monthly: Decimal | None
    group: str = ""
    """The instance group of the resource that it is about; empty if it is about the whole resource."""
    price: Price | None = None
    is_confirmed: bool = True
    note: str = ""
    unknown: str = ""
    count: Decimal | int | None = None
    """How many are paid, None if that is unknown."""
    sold: str = ""
    """The counted unit if it has no known price; empty if it has one, or if nothing is counted."""
    counted_in: str = ""
    is_accelerated: bool = False
    missing: str = ""
    properties: tuple[str, ...] = ()
    """The properties that decide ``count`` and what is sold, by name; empty if they are not known one by one."""


_NODES: Final = (
    "InstanceCount",
    "InstanceType",
    "InstanceTypes",
    "InstanceRequirements",
    "CapacityRequirements",
    "Spot",
)
_SUPPORT: Final = ("Version", "UpgradePolicy")
_LUSTRE: Final = ("StorageCapacity", "StorageType", "PerUnitStorageThroughput", "DeploymentType", "DriveCacheType")


@dataclass(frozen=True, kw_only=True)
class Supported:
    """A cluster whose Kubernetes version has standard support, until the day ``ends``, None if that is unknown.

    A version costs more only in extended support, whatever the cluster's upgrade policy is (EKS user guide, "Add
    flexibility to plan Kubernetes version upgrades by enabling EKS extended support"); with the policy ``STANDARD`` it
    is upgraded before (``is_upgraded``).
    """

    cluster: str
    region: str
    version: str
    ends: date | None
    is_upgraded: bool


class Charged:
    """One assembly, with the prices of its Region: the charges for everything in it that costs money."""

    def __init__(self, assembly: Assembly, prices: Prices) -> None:
        self.assembly = assembly
        self.prices = prices
        self.groups: list[InstanceGroup] = [
            group for group in instance_groups(assembly) if self._condition(group.cluster) is not False
        ]
        self.versions: list[Supported] = []

    def items(self) -> Iterator[Charge]:
        """Yield everything that costs money, in the order of the templates."""
        by_use: Counter[tuple[str, Kind, str]] = Counter()
        in_doubt: Counter[str] = Counter()
        groups: dict[tuple[str, str], list[InstanceGroup]] = {}
        for group in self.groups:
            groups.setdefault((group.cluster.stack, group.cluster.logical_id), []).append(group)
        for resource in self.assembly.resources():
            condition = self._condition(resource)
            if condition is False:
                continue
            for item in self._of(resource, groups, by_use, in_doubt):
                yield item if condition is True else _conditional(item, plain(resource.body.get("Condition")))
        for (name, kind, what), count in by_use.items():
            yield Charge(
                key=("by use", name, what),
                is_of_type=True,
                resource=name,
                kind=kind,
                what=f"{count}, charged for {what}",
                unit="by use",
                monthly=None,
                unknown=f"{name} ({count}): charged for {what}",
            )
        for name, count in in_doubt.items():
            yield Charge(
                key=("in doubt", name),
                is_of_type=True,
                resource=name,
                kind="other",
                what=f"{count}, unknown whether it costs money",
                unit="",
                monthly=None,
                unknown=f"{name} ({count}): unknown whether it costs money",
                count=count,
                sold=name,
                missing="unknown whether it costs money",
            )
        yield from self._sizes()

    def _sizes(self) -> Iterator[Charge]:
        """Yield every size of any type that is paid for, and that no other line counts."""
        for resource in self.assembly.resources():
            if self._condition(resource) is False:
                continue
            stated = resolved_properties(self.assembly, resource)
            for each in quantities.of(resource.type, stated):
                yield Charge(
                    key=(resource.stack, resource.logical_id, "size", each.path, each.what),
                    resource=_name(resource),
                    kind=each.kind,
                    what=f"{'?' if each.number is None else f'{each.number:f}'} {each.what}",
                    unit="",
                    monthly=None,
                    unknown=f"{_name(resource)}: the price of its {each.path} is unknown here",
                    count=each.number,
                    sold=f"{each.what} of {noun(resource.type)} {resource.name}",
                    properties=() if each.path.endswith("machines") else (each.path.rpartition(".")[2],),
                    is_accelerated=each.kind == "nodes" and is_accelerated_type(each.what),
                    missing="not one of the prices that are recorded here",
                )

    def _condition(self, resource: Resource) -> bool | None:
        """Return whether the resource is created at all, None if the template does not show it."""
        name = resource.body.get("Condition")
        if not isinstance(name, str):
            return True
        found = resolve(self.assembly, resource.stack, {"Fn::If": [name, True, False]})
        return found if isinstance(found, bool) else None

    def _of(
        self,
        resource: Resource,
        groups: Mapping[tuple[str, str], list[InstanceGroup]],
        by_use: Counter[tuple[str, Kind, str]],
        in_doubt: Counter[str],
    ) -> Iterator[Charge]:
        for kind, what in self._used(resource):
            by_use[resource.type, kind, what] += 1
        for group in groups.get((resource.stack, resource.logical_id), ()):
            yield from self._nodes(group)
            yield from self._volumes(group)
            yield from self._own_storage(group)
        reader = _READERS.get(resource.type)
        if reader is not None:
            yield from reader(self, resource)
        elif resource.type in _MACHINES:
            yield self._by_hour(resource, "nodes")
        elif resource.type not in _READ_ELSEWHERE:
            billing = catalog.billing_of(resource.type)
            if billing is None:
                in_doubt[resource.type] += 1
            elif billing.billing == "by hour":
                yield self._by_hour(resource, billing.kind)

    def _used(self, resource: Resource) -> Iterator[tuple[Kind, str]]:
        """Yield the cost of a resource by use, also in addition to its cost by the hour."""
        billing = catalog.billing_of(resource.type)
        if billing is not None and billing.billing == "by use":
            yield billing.kind, billing.what
        match resource.type:
            case "AWS::EC2::NatGateway":
                yield "network", "the transferred data"
            case "AWS::EC2::VPCEndpoint":
                if self._get(resource, "VpcEndpointType") == "Interface":
                    yield "network", "the transferred data"
            case "AWS::EKS::Addon":
                use = catalog.by_use_addon(str(self._get(resource, "AddonName")))
                if use:
                    yield "other", use
            case "AWS::EKS::Cluster":
                if _at(self._get(resource, "ComputeConfig"), "Enabled") is True:
                    yield "nodes", "the nodes of Auto Mode"
            case "AWS::FSx::FileSystem":
                if whole_number(_at(self._get(resource, "LustreConfiguration"), "AutomaticBackupRetentionDays")):
                    yield "storage", "the backups that are kept"
                if self._get(resource, "StorageType") == "INTELLIGENT_TIERING":
                    yield "storage", "the stored and requested data"
            case _:
                pass

    def _get(self, resource: Resource, name: str) -> Any:
        value = resource.properties.get(name)
        return resolve(self.assembly, resource.stack, value) if isinstance(value, (dict, list)) else value

    def _region(self, stack: str) -> str:
        return self.assembly.by_name[stack].region or self.assembly.region

    def _priced(
        self,
        resource: Resource,
        kind: Kind,
        sku: str,
        count: Decimal | int | None,
        what: str,
        *,
        part: str = "",
        group: str = "",
        note: str = "",
        why: str = "",
        properties: tuple[str, ...] = (),
    ) -> Charge:
        """Return the line of ``count`` units of a sku; a count of None is unknown, for the reason ``why``."""
        region = self._region(resource.stack)
        price = self.prices.find(region, sku)
        shown = _name(resource, group)
        missing = ""
        if count is not None and count < 0:
            count, why = None, f"it is stated as {count}"
        if count is None:
            monthly, unknown = None, f"{shown}: {why}"
        elif count == 0:
            monthly, unknown = Decimal(0), ""
        elif price is None:
            monthly, unknown = None, self._no_price(sku, region)
        else:
            monthly, unknown = price.monthly * count, ""
        if price is None:
            missing = self._no_price(sku, region)
        unit = catalog.unit_of(sku) or ""
        notes = [note, price.remark(self.prices.as_of) if price and monthly else ""]
        return Charge(
            key=(resource.stack, resource.logical_id, part, sku, region),
            resource=shown,
            kind=kind,
            what=what,
            unit=unit,
            monthly=monthly,
            group=group,
            price=price,
            is_confirmed=not (price and monthly and price.unsure),
            note="; ".join(filter(None, notes)),
            unknown=unknown,
            count=count,
            sold=thing(sku) if monthly is None else "",
            counted_in=_UNITS.get(unit, ""),
            missing=missing or (f"{why}" if count is None else ""),
            properties=properties,
        )

    def _no_price(self, sku: str, region: str) -> str:
        if not region:
            return f"{thing(sku)}: the templates name no Region, and prices differ between Regions"
        return f"{thing(sku)} in {region}: no price in the file of {self.prices.as_of}; {REFRESH}"

    def _unpriced(
        self,
        resource: Resource,
        kind: Kind,
        what: str,
        why: str,
        *,
        part: str = "",
        count: int | None = 1,
        sold: str = "",
        counted_in: str = "",
        is_accelerated: bool = False,
        properties: tuple[str, ...] = (),
    ) -> Charge:
        """Return the line of something that has no price: ``count`` of what is ``sold``, by default one of its type."""
        return Charge(
            key=(resource.stack, resource.logical_id, part, "", ""),
            resource=_name(resource),
            kind=kind,
            what=what,
            unit="",
            monthly=None,
            unknown=f"{_name(resource)} ({resource.type}): {why}",
            count=count,
            sold=sold or f"{noun(resource.type)}{f' ({part})' if part else ''}",
            counted_in=counted_in,
            is_accelerated=is_accelerated,
            missing=why,
            properties=properties,
        )

    def _by_hour(self, resource: Resource, kind: Kind) -> Charge:
        """Return the line of a type that is paid by the hour and has no price here, with the machines of its
        resource."""
        why = "not one of the prices that are recorded here"
        machines = _MACHINES.get(resource.type)
        if machines is None:
            return self._unpriced(resource, kind, "1", why)
        count_path, types_path = machines
        stated = [self._below(resource, path) for path in (count_path, types_path)]
        count = 1 if not count_path else whole_number(stated[0])
        names = [each for each in (stated[1] if isinstance(stated[1], list) else [stated[1]]) if isinstance(each, str)]
        names = names or self._started_types(resource)
        shown = joined(names, last="or") or f"machine of {noun(resource.type)} {resource.name}"
        if count_path and stated[0] is None:
            why += "; the template does not show how many"
        is_accelerated = not names or any(is_accelerated_type(each) for each in names)
        what = f"{'?' if count is None else count} x {shown}"
        return self._unpriced(
            resource, "nodes", what, why, count=count, sold=shown, counted_in="instance", is_accelerated=is_accelerated
        )

    def _started_types(self, resource: Resource) -> list[str]:
        """Return the types of the machines that a launch template or configuration starts, or that override it."""
        mixed = _at(self._get(resource, "MixedInstancesPolicy"), "LaunchTemplate")
        overrides = [_at(each, "InstanceType") for each in entries(_at(mixed, "Overrides"))]
        if found := [each for each in overrides if isinstance(each, str)]:
            return found
        stated = self._get(resource, "LaunchTemplate") or _at(mixed, "LaunchTemplateSpecification")
        named = [_at(stated, key) for key in ("LaunchTemplateId", "Id", "LaunchTemplateName", "Name")]
        for each in (*named, self._get(resource, "LaunchConfigurationName")):
            template = self.assembly.find(each.stack, each.logical_id) if isinstance(each, Reference) else None
            if template is not None:
                data = self._get(template, "LaunchTemplateData")
                kind = _at(data, "InstanceType") or self._get(template, "InstanceType")
                return [kind] if isinstance(kind, str) else []
        return []

    def _below(self, resource: Resource, path: tuple[str, ...]) -> Any:
        value = self._get(resource, path[0]) if path else None
        for step in path[1:]:
            value = _at(value, step)
        return value

    def _nodes(self, group: InstanceGroup) -> Iterator[Charge]:
        name, resource = _name(group.cluster, group.name), group.cluster
        region = self._region(resource.stack)
        shown = joined(group.types, last="or") or "an instance type that the template does not show"
        count = "?" if group.count is None else str(group.count)
        how = {"on-demand": "on demand"}.get(group.capacity_kind, group.capacity_kind)
        what = f"{count} x {shown}, {f'on training plan {group.plan_name}' if group.plan else how}"
        prices = [self.prices.find(region, f"node.{each}") for each in group.types]
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
            why = "; ".join(self._no_price(f"node.{each}", region) for each in lacking)
            yield replace(unpriced, unknown=why, missing=why)
        else:
            dearest = max(known, key=lambda price: price.usd)
            notes = [item.price.remark(self.prices.as_of)]
            unknown = ""
            if dearest.usd != item.price.usd:
                most = cents(dearest.monthly * group.count)
                notes.insert(0, f"counted at the cheapest type; {most} a month if all were {dearest.sku[5:]}")
                unknown = f"{name}: HyperPod uses whichever of {shown} is available"
            monthly = item.price.monthly * group.count
            note, is_confirmed = "; ".join(filter(None, notes)), not item.price.unsure
            yield replace(item, monthly=monthly, is_confirmed=is_confirmed, note=note, unknown=unknown)

    def _volumes(self, group: InstanceGroup) -> Iterator[Charge]:
        if group.storage_gib == 0:
            return
        why = "the size of its nodes' volumes is unknown"
        count = None
        if group.storage_gib is not None:
            why = _uncounted(group)
            count = None if group.count is None else group.count * group.storage_gib
        nodes = "?" if group.count is None else group.count
        size = "?" if group.storage_gib is None else group.storage_gib
        yield self._priced(
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

    def _own_storage(self, group: InstanceGroup) -> Iterator[Charge]:
        """Return the file system that HyperPod creates for a restricted group."""
        if not group.is_restricted:
            return
        raw = entries(group.cluster.properties.get("RestrictedInstanceGroups"))
        body = raw[group.index] if group.index < len(raw) else {}
        asked = _at(resolve(self.assembly, group.cluster.stack, body.get("EnvironmentConfig")), "FSxLustreConfig")
        if not isinstance(asked, dict):
            return
        size, tier = plain(asked.get("SizeInGiB")), plain(asked.get("PerUnitStorageThroughput"))
        name = _name(group.cluster, group.name)
        yield Charge(
            key=(group.cluster.stack, group.cluster.logical_id, group.name, "own storage"),
            resource=name,
            group=group.name,
            kind="storage",
            what=f"{size} GiB of Lustre at {tier} MB/s per TiB that HyperPod creates",
            unit="",
            monthly=None,
            unknown=f"{name}: the price of the file system that HyperPod creates for a restricted group is not "
            "published",
            count=whole_number(asked.get("SizeInGiB")),
            sold=f"Lustre at {tier} MB/s per TiB that HyperPod creates",
            counted_in="GB",
            missing="its price is not published",
            properties=("FSxLustreConfig",),
        )

    def _file_system(self, resource: Resource) -> Iterator[Charge]:
        if self._get(resource, "FileSystemType") != "LUSTRE":
            yield self._unpriced(resource, "storage", "1", "only FSx for Lustre has prices here")
            return
        lustre = self._get(resource, "LustreConfiguration")
        storage = self._get(resource, "StorageType") or "SSD"
        deployment = plain(_at(lustre, "DeploymentType")) or "SCRATCH_1"
        if storage == "INTELLIGENT_TIERING":
            yield from self._tiering(resource, lustre)
            return
        tier = whole_number(_at(lustre, "PerUnitStorageThroughput"))
        capacity = whole_number(self._get(resource, "StorageCapacity"))
        size = "?" if capacity is None else str(capacity)
        if deployment.startswith("SCRATCH"):
            sku, at = "lustre.scratch", ""
        elif tier is None or storage not in ("SSD", "HDD"):
            yield self._unpriced(resource, "storage", f"{size} GiB", "the template does not show its throughput")
            return
        elif _at(lustre, "DriveCacheType") == "READ":
            yield self._unpriced(resource, "storage", f"{size} GiB", "HDD with a read cache has no price here")
            return
        else:
            sku, at = f"lustre.{storage.lower()}.{tier}", f" at {tier} MB/s per TiB"
        what = f"{size} GiB of Lustre, {deployment} on {plain(storage)}{at}"
        # FSx sells the GiB of a file system as the price list's GB
        why = "the template does not show its capacity"
        yield self._priced(resource, "storage", sku, capacity, what, why=why, properties=_LUSTRE)
        metadata = _at(lustre, "MetadataConfiguration")
        if _at(metadata, "Mode") == "USER_PROVISIONED":
            iops = plain(_at(metadata, "Iops"))
            why = "it is not documented which of its metadata IOPS are included in the capacity"
            yield self._unpriced(
                resource,
                "storage",
                f"{iops} metadata IOPS",
                why,
                part="metadata",
                count=whole_number(_at(metadata, "Iops")),
                counted_in="IOPS",
                properties=("MetadataConfiguration",),
            )

    def _tiering(self, resource: Resource, lustre: Any) -> Iterator[Charge]:
        throughput = whole_number(_at(lustre, "ThroughputCapacity"))
        iops = whole_number(_at(_at(lustre, "MetadataConfiguration"), "Iops"))
        cache = _at(lustre, "DataReadCacheConfiguration")
        sizing = _at(cache, "SizingMode")
        size = whole_number(_at(cache, "SizeGiB"))
        why = "the template does not show it"
        what = f"{'?' if throughput is None else throughput} MB/s of Lustre, Intelligent-Tiering"
        sku, by = "lustre.tiering.throughput", ("ThroughputCapacity", "StorageType")
        yield self._priced(resource, "storage", sku, throughput, what, why=f"throughput: {why}", properties=by)
        what = f"{'?' if iops is None else iops} metadata IOPS"
        sku, by = "lustre.metadata_iops", ("MetadataConfiguration", "StorageType")
        yield self._priced(resource, "storage", sku, iops, what, why=f"metadata IOPS: {why}", properties=by)
        if sizing not in (None, "NO_CACHE"):
            what = f"{'?' if size is None else size} GiB of SSD read cache"
            why = "the size of its read cache follows the throughput and is unknown here"
            by = ("DataReadCacheConfiguration", "StorageType", *(("ThroughputCapacity",) if size is None else ()))
            yield self._priced(resource, "storage", "lustre.read_cache", size, what, why=why, properties=by)

    def _eks(self, resource: Resource) -> Iterator[Charge]:
        yield self._priced(resource, "control plane", "eks.cluster", 1, "1 EKS cluster")
        tier = _at(self._get(resource, "ControlPlaneScalingConfig"), "Tier")
        if isinstance(tier, str) and tier != "standard":
            what, sku, by = (
                f"Provisioned Control Plane, {tier}",
                f"eks.provisioned.{tier}",
                ("ControlPlaneScalingConfig",),
            )
            if catalog.unit_of(sku):
                yield self._priced(resource, "control plane", sku, 1, what, properties=by)
            else:
                why = "its price is unknown"
                yield self._unpriced(resource, "control plane", what, why, part="tier", properties=by)
        version = self._get(resource, "Version")
        # CloudFormation accepts a number for the text
        version = str(version) if isinstance(version, float) else version
        support = _at(self._get(resource, "UpgradePolicy"), "SupportType")
        row = kubernetes.get(version) if isinstance(version, str) else None
        ends = row.standard_support_ends if row else None
        if (row is None or ends is None) and support != "STANDARD":
            stated = plain(version) or "that the template does not state"
            why = f"it is unknown whether and from when on Kubernetes {stated} costs extended support"
            part = "extended support"
            yield self._unpriced(resource, "control plane", part, why, part=part, properties=_SUPPORT)
        elif row is not None and ends is not None and support != "STANDARD" and ends <= kubernetes.AS_OF:
            last = row.extended_support_ends
            until = f"until {last}"
            if last is not None and last <= kubernetes.AS_OF:
                until = f"until {last}, when EKS upgrades the cluster automatically"
            note = f"since {ends}, {until} (dates as of {kubernetes.AS_OF})"
            what = f"extended support of Kubernetes {version}"
            sku = "eks.extended_support"
            yield self._priced(resource, "control plane", sku, 1, what, note=note, properties=_SUPPORT)
        else:
            self.versions.append(
                Supported(
                    cluster=_name(resource),
                    region=self._region(resource.stack),
                    version=f"Kubernetes {plain(version)}" if version else "its version of Kubernetes",
                    ends=ends,
                    is_upgraded=support == "STANDARD",
                )
            )

    def _elastic_ip(self, resource: Resource) -> Iterator[Charge]:
        pool = next((name for name in ("PublicIpv4Pool", "IpamPoolId") if name in resource.properties), "")
        if pool:
            yield self._unpriced(
                resource, "network", "1 public IPv4 address", f"its {pool} decides whether it costs money"
            )
        else:
            yield self._priced(resource, "network", "public_ipv4", 1, "1 public IPv4 address")

    def _endpoint(self, resource: Resource) -> Iterator[Charge]:
        kind = self._get(resource, "VpcEndpointType") or "Gateway"
        if kind == "Gateway":
            return
        if kind != "Interface":
            why = (
                "the template does not show its type"
                if isinstance(kind, Unknown)
                else f"no price for type {plain(kind)}"
            )
            yield self._unpriced(resource, "network", "1 endpoint", why)
            return
        zones = self._get(resource, "SubnetIds")
        count = len(zones) if isinstance(zones, list) else None
        what = f"1 interface endpoint in {'?' if count is None else count} {'zone' if count == 1 else 'zones'}"
        why = "the template does not show its subnets"
        yield self._priced(resource, "network", "interface_endpoint", count, what, why=why)

    def _alarm(self, resource: Resource) -> Iterator[Charge]:
        metrics = [each for each in entries(self._get(resource, "Metrics")) if "MetricStat" in each]
        periods = [self._get(resource, "Period"), *(_at(each["MetricStat"], "Period") for each in metrics)]
        seconds = [number for period in periods if (number := whole_number(period)) is not None]
        sku = "cloudwatch.alarm.high_resolution" if seconds and min(seconds) < _MINUTE else "cloudwatch.alarm"
        count = max(1, len(metrics))
        what = "1 alarm" if count == 1 else f"1 alarm on {count} metrics"
        yield self._priced(resource, "other", sku, count, what, note=_FREE_TIER)

    def _dashboard(self, resource: Resource) -> Iterator[Charge]:
        yield self._priced(resource, "other", "cloudwatch.dashboard", 1, "1 dashboard", note=_FREE_TIER)

    def _key(self, resource: Resource) -> Iterator[Charge]:
        rotated = self._get(resource, "EnableKeyRotation") is True
        note = "a rotation keeps the old key material, which may cost the same again" if rotated else ""
        yield self._priced(resource, "other", "kms.key", 1, "1 KMS key", note=note)

    def _nat(self, resource: Resource) -> Iterator[Charge]:
        if self._get(resource, "AvailabilityMode") in (None, "zonal"):
            yield self._priced(resource, "network", "nat_gateway", 1, "1 NAT gateway")
            return
        why = "a regional NAT gateway is paid for in every zone that it serves, which the template does not show"
        yield self._priced(resource, "network", "nat_gateway", None, "1 regional NAT gateway", why=why)

    def _volume(self, resource: Resource) -> Iterator[Charge]:
        if self._get(resource, "VolumeType") != "gp3":
            yield self._unpriced(resource, "volumes", "1 volume", "only gp3 volumes have prices here")
            return
        size = whole_number(self._get(resource, "Size"))
        what = f"{'?' if size is None else size} GB of gp3 volume"
        yield self._priced(resource, "volumes", "ebs.gp3", size, what, why="the template does not show its size")
        if {"Iops", "Throughput"} & resource.properties.keys():
            why = "the price of its IOPS and throughput above the included ones is unknown here"
            yield self._unpriced(resource, "volumes", "IOPS and throughput", why, part="performance")

    def _parameter(self, resource: Resource) -> Iterator[Charge]:
        tier = self._get(resource, "Tier")
        if tier not in (None, "Standard"):
            yield self._unpriced(resource, "other", "1 parameter", f"no price for tier {plain(tier)}")


_MINUTE: Final = 60
_UNITS: Final = {
    "GB-month": "GB",
    "MBps-month": "MB/s",
    "IOPS-month": "IOPS",
    "instance-hour": "instance",
}
"""The counted unit, if it is not a single item."""
_MACHINES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "AWS::AutoScaling::AutoScalingGroup": (("DesiredCapacity",), ()),
    "AWS::EC2::Host": ((), ("InstanceType",)),
    "AWS::EC2::Instance": ((), ("InstanceType",)),
    "AWS::EKS::Nodegroup": (("ScalingConfig", "DesiredSize"), ("InstanceTypes",)),
    "AWS::SageMaker::NotebookInstance": ((), ("InstanceType",)),
}
"""Where types state how many machines they have (one, without a place), and of which type."""
_FREE_TIER: Final = "the account's free tier is not counted"
_READERS: Final[Mapping[str, Callable[[Charged, Resource], Iterator[Charge]]]] = {
    "AWS::FSx::FileSystem": Charged._file_system,  # noqa: SLF001 - a table of this module's own functions
    "AWS::EKS::Cluster": Charged._eks,  # noqa: SLF001 - as above
    "AWS::EC2::EIP": Charged._elastic_ip,  # noqa: SLF001 - as above
    "AWS::EC2::VPCEndpoint": Charged._endpoint,  # noqa: SLF001 - as above
    "AWS::EC2::NatGateway": Charged._nat,  # noqa: SLF001 - as above
    "AWS::EC2::Volume": Charged._volume,  # noqa: SLF001 - as above
    "AWS::CloudWatch::Alarm": Charged._alarm,  # noqa: SLF001 - as above
    "AWS::CloudWatch::Dashboard": Charged._dashboard,  # noqa: SLF001 - as above
    "AWS::KMS::Key": Charged._key,  # noqa: SLF001 - as above
    "AWS::SSM::Parameter": Charged._parameter,  # noqa: SLF001 - as above
}
_READ_ELSEWHERE: Final = frozenset({"AWS::SageMaker::Cluster", "AWS::EKS::Addon"})
_THINGS: Final[Mapping[str, str]] = {
    "node_volume": "additional EBS volume of HyperPod nodes",
    "ebs.gp3": "gp3 volume",
    "eks.cluster": "EKS cluster",
    "eks.extended_support": "EKS extended support",
    "nat_gateway": "NAT gateway",
    "public_ipv4": "public IPv4 address",
    "interface_endpoint": "interface endpoint",
    "lustre.scratch": "FSx for Lustre, scratch",
    "lustre.read_cache": "FSx for Lustre, SSD read cache",
    "lustre.metadata_iops": "FSx for Lustre, metadata IOPS",
    "lustre.tiering.throughput": "FSx for Lustre, throughput of Intelligent-Tiering",
    "kms.key": "KMS key",
    "cloudwatch.alarm": "CloudWatch alarm",
    "cloudwatch.alarm.high_resolution": "CloudWatch alarm of high resolution",
    "cloudwatch.dashboard": "CloudWatch dashboard",
}


def thing(sku: str) -> str:
    """Return the name of what is sold with a key of the price file: ``NAT gateway``, ``ml.p5.48xlarge``."""
    family, _, rest = sku.partition(".")
    if family == "node":
        return rest
    if sku.startswith("eks.provisioned."):
        return f"EKS Provisioned Control Plane, {sku.rpartition('.')[2]}"
    if sku.startswith(("lustre.ssd.", "lustre.hdd.")):
        _, storage, tier = sku.split(".")
        return f"FSx for Lustre, {storage.upper()} at {tier} MB/s per TiB"
    return _THINGS.get(sku, sku)


def is_accelerated_type(name: str) -> bool:
    """Whether an instance type has accelerators. One that is not in the catalog is judged by its family's name.

    Source of the families: docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html.
    """
    row = instance_types.get(name if name.startswith("ml.") else f"ml.{name}")
    if row is not None:
        return row.accelerator_count > 0
    return re.match(r"(ml\.)?(dl|f|g|gr|inf|p|trn|vt)\d", name) is not None


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _name(resource: Resource, group: str = "") -> str:
    return f"{resource.stack} / {resource.name}{f'[{group}]' if group else ''}"


def _uncounted(group: InstanceGroup, name: str = "") -> str:
    """Return why the number of a group's nodes, and so their cost, is unknown."""
    return f"{f'{name}: ' if name else ''}the number of its nodes is unknown: {group.count_note}"


def _conditional(item: Charge, condition: str) -> Charge:
    unknown = f"{item.resource}: created only if condition {condition} is true, which the template does not show"
    return replace(item, monthly=None, unknown=unknown)


def cents(amount: Decimal) -> Decimal:
    """Round an amount to whole cents."""
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
