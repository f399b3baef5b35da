"""How many addresses of each subnet the templates need, counted as preflight counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hyperpod_cdk.catalog import lustre
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config.addresses import AddressBudget, AddressNeed, parts
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.groups import InstanceGroup, Subnet, Use, subnets, whole_number
from hyperpod_cdk.templates.values import resolve

TypeRow = Callable[[str], InstanceType | None]
"""Returns the numbers of an instance type by its name, None if they are unknown."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """One subnet. ``used`` is None if it contains something of unknown size; ``notes`` describe it."""

    subnet: Subnet
    budget: AddressBudget
    used: int | None
    notes: tuple[str, ...]

    @property
    def usable(self) -> int | None:
        """Addresses of the block without those that AWS reserves, None for a block that is unknown."""
        try:
            return catalog.usable_addresses(self.subnet.cidr) if self.subnet.cidr else None
        except ValueError:
            return None

    @property
    def note(self) -> str:
        """What uses the addresses, and what is not counted; empty for an empty subnet."""
        return "; ".join(text for text in (parts(self.budget), *self.notes) if text)


def taken(assembly: Assembly, row: TypeRow) -> list[Taken]:
    """Return every subnet with its addresses, in the order of ``groups.subnets``.

    The numbers are those of ``config.addresses.address_budgets``: nodes with their pods and EFA interfaces, one spare
    node for each group with automatic recovery, the servers of file systems, EKS, functions, NAT gateways, endpoints.
    Nodes that Karpenter adds, and later users of addresses, are not included; a note states it.
    """
    return [_taken(assembly, subnet, row) for subnet in subnets(assembly)]


@dataclass(frozen=True)
class _Counted:
    """The needs of one resource, or why they are ``unknown``; ``note`` states what is not counted."""

    needs: tuple[AddressNeed, ...] = ()
    unknown: str = ""
    note: str = ""


def _taken(assembly: Assembly, subnet: Subnet, row: TypeRow) -> Taken:
    groups = [use.group for use in subnet.of_kind("nodes") if use.group is not None]
    counted = [_nodes(assembly, group, row) for group in groups]
    counted += [_servers(assembly, use) for use in subnet.of_kind("file system")]
    needs = [need for each in counted for need in each.needs]
    others = sorted({use.name for use in subnet.of_kind("other")})
    notes = [each.note for each in counted if each.note] + ([f"without {', '.join(others)}"] if others else [])
    unknown = [each.unknown for each in counted if each.unknown]
    budget = AddressBudget(role="nodes", path="", cidr=subnet.cidr, needs=(*needs, *_single(assembly, subnet)))
    return Taken(subnet=subnet, budget=budget, used=None if unknown else budget.needed, notes=(*notes, *unknown))


def _nodes(assembly: Assembly, group: InstanceGroup, row: TypeRow) -> _Counted:
    if group.is_scaled:
        return _Counted(note=f"without the nodes that Karpenter adds to {group.name}")
    if group.count == 0:
        return _Counted()
    if group.count is None:
        return _Counted(unknown=f"the count of {group.name} is unknown: {group.count_note}")
    if len(group.subnets) != 1:
        where = f"{group.name} has {len(group.subnets)} subnets"
        return _Counted(unknown=f"{where}, and how many of its nodes are here is unknown")
    rows = [row(name) for name in group.types]
    counted = [(found.addresses_per_node(efa_only=group.is_efa_only), found) for found in rows if found is not None]
    known = [(each, found) for each, found in counted if each is not None]
    if len(known) < len(rows) or not known:
        names = joined(group.types, last="or") or f"the type of {group.name}"
        return _Counted(unknown=f"the number of addresses of a node of {names} is unknown")
    each, hungriest = max(known, key=lambda pair: pair[0])
    nodes = AddressNeed(
        kind="nodes",
        name=group.name,
        instance_type=hungriest.name,
        count=group.count,
        each=each,
        is_estimate=any(doubt.startswith("ips_per_node") for doubt in hungriest.unsure),
        path=f"{group.cluster.stack}:{group.cluster.logical_id}:{group.name}",
    )
    spare = replace(nodes, kind="spare", count=1)
    return _Counted(needs=(nodes, spare) if _is_recovered(assembly, group) else (nodes,))


def _is_recovered(assembly: Assembly, group: InstanceGroup) -> bool:
    recovery = resolve(assembly, group.cluster.stack, group.cluster.properties.get("NodeRecovery"))
    return isinstance(recovery, str) and recovery == "Automatic"


def _servers(assembly: Assembly, use: Use) -> _Counted:
    """Count the servers of a Lustre file system."""
    unknown_size = _Counted(unknown=f"the size of {use.name} is unknown")
    properties = resolve(assembly, use.resource.stack, dict(use.resource.properties))
    settings = properties.get("LustreConfiguration") or {}
    kind = properties.get("FileSystemType")
    if not isinstance(settings, dict) or (kind != "LUSTRE" and not settings):
        return unknown_size
    capacity = whole_number(properties.get("StorageCapacity"))
    throughput = whole_number(settings.get("ThroughputCapacity"))
    metadata = settings.get("MetadataConfiguration")
    stated = metadata.get("Iops") if isinstance(metadata, dict) else None
    iops, tier = whole_number(stated), whole_number(settings.get("PerUnitStorageThroughput"))
    efa = settings.get("EfaEnabled", False)
    if (capacity is None and throughput is None) or (stated is not None and iops is None):
        return unknown_size
    if efa not in (True, False) or (efa and tier is None and throughput is None):
        return unknown_size
    if isinstance(metadata, dict) and metadata.get("Mode") == "AUTOMATIC" and capacity is not None:
        iops = lustre.automatic_metadata_iops(capacity)
    count = lustre.ip_addresses(
        capacity,
        metadata_iops=iops,
        throughput_capacity_mbps=throughput,
        efa_throughput_mbps_per_tib=tier if efa else None,
    )
    return _Counted(needs=(AddressNeed(kind="file system", name=use.name, count=count, each=1),))


def _single(assembly: Assembly, subnet: Subnet) -> Iterator[AddressNeed]:
    clusters, gateways, endpoints = (len(subnet.of_kind(kind)) for kind in ("EKS", "NAT gateway", "endpoint"))
    if clusters:
        yield AddressNeed(kind="EKS", count=clusters * catalog.EKS_ADDRESSES, each=1)
    # functions with the same security groups share an interface
    functions = {_security_groups(assembly, use.resource) for use in subnet.of_kind("function")}
    if functions:
        yield AddressNeed(kind="kubectl", count=len(functions), each=catalog.KUBECTL_ADDRESSES)
    if gateways:
        yield AddressNeed(kind="NAT gateway", count=gateways, each=catalog.NAT_GATEWAY_ADDRESSES)
    if endpoints:
        yield AddressNeed(kind="endpoint", count=endpoints, each=catalog.ENDPOINT_ADDRESSES)


def _security_groups(assembly: Assembly, function: Resource) -> str:
    network = function.properties.get("VpcConfig")
    groups = network.get("SecurityGroupIds") if isinstance(network, dict) else None
    return repr(resolve(assembly, function.stack, groups))
