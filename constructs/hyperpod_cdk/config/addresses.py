"""How many addresses each subnet of an environment must hold, and the smallest change that makes it hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Literal

from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog import regions
from hyperpod_cdk.catalog.sentences import Choosing, Sentence, Setting, plural
from hyperpod_cdk.config.endpoints import interface_endpoints
from hyperpod_cdk.config.source import render_path

if TYPE_CHECKING:
    from hyperpod_cdk.config.environment import Environment
    from hyperpod_cdk.config.restricted_group import AnyGroup

Kind = Literal["nodes", "spare", "file system", "EKS", "kubectl", "NAT gateway", "endpoint"]

_MOST_GROUPS_NAMED = 4
_SINGLE: tuple[Kind, ...] = ("EKS", "kubectl", "NAT gateway", "endpoint")


@dataclass(frozen=True, kw_only=True)
class AddressNeed:
    """Addresses that one thing takes: ``count`` times ``each``.

    ``name`` is that of the group or file system. ``is_estimate`` says that no AWS page states the number for the
    instance type. ``path`` is the place of the thing in the file.
    """

    kind: Kind
    count: int
    each: int
    name: str = ""
    instance_type: str = ""
    is_estimate: bool = False
    path: str = ""

    @property
    def total(self) -> int:
        """All its addresses."""
        return self.count * self.each


@dataclass(frozen=True, kw_only=True)
class UnknownNeed:
    """A group whose number of addresses is unknown, with the instance type that has no number."""

    group: str
    instance_type: str
    path: str


@dataclass(frozen=True, kw_only=True)
class AddressBudget:
    """What one subnet must hold.

    ``role`` is ``nodes``, ``control plane``, ``public`` or ``endpoints``. A subnet that the environment makes has its
    ``cidr``; one that exists already has a ``subnet_id`` instead, and only AWS knows its size. ``path`` is the place in
    the file that determines it. ``advised`` counts what AWS recommends in addition to what is needed. ``unknown`` lists
    the groups that are not counted.
    """

    role: Literal["nodes", "control plane", "public", "endpoints"]
    path: str
    availability_zone_id: str = ""
    cidr: str = ""
    subnet_id: str = ""
    needs: tuple[AddressNeed, ...] = ()
    advised: int = 0
    unknown: tuple[UnknownNeed, ...] = ()

    @property
    def usable(self) -> int:
        """Addresses of the block without those that AWS reserves; 0 for an existing subnet."""
        return catalog.usable_addresses(self.cidr) if self.cidr else 0

    @property
    def needed(self) -> int:
        """All addresses that are needed, including those for replacing nodes."""
        return sum(need.total for need in self.needs)

    @property
    def running(self) -> int:
        """Addresses without which the environment cannot run at all: none for replacing nodes."""
        return sum(need.total for need in self.needs if need.kind != "spare")

    def estimated(self, *, running: bool = False) -> int:
        """Return how many of the addresses are estimates; with ``running``, of those without spares."""
        return sum(need.total for need in self.needs if need.is_estimate and not (running and need.kind == "spare"))

    def estimated_types(self) -> tuple[str, ...]:
        """Return the instance types whose addresses are estimates, each once."""
        return tuple(dict.fromkeys(need.instance_type for need in self.needs if need.is_estimate and need.total))


def address_budgets(environment: Environment) -> tuple[AddressBudget, ...]:
    """Return the budget of every subnet that the environment makes or, in an existing network, uses.

    Nodes are counted with their pods and EFA interfaces (the catalog's ``ips_per_node``; the largest number of the
    types of a flexible group). With automatic node recovery each group has one spare node, because AWS does not
    document whether a faulty node leaves before its replacement joins, and a network interface is released late.
    Software updates add nothing: they replace the root volumes of nodes that stay (UpdateClusterSoftware). A file
    system uses one address for each server, more with EFA than AWS documents. Load balancers that are created later are
    not counted.
    """
    if environment.network.existing is not None:
        return tuple(_existing(environment))
    return (*primary_budgets(environment), *_nodes(environment))


def primary_budgets(environment: Environment) -> tuple[AddressBudget, ...]:
    """Return the budgets of the subnets that are cut out of the VPC's own block."""
    return (*_control_plane(environment), *_public(environment), *_endpoints(environment))


def node_budget(environment: Environment, az_id: str, *, cidr: str, path: str) -> AddressBudget:
    """Return the budget of the node subnet of one zone."""
    needs: list[AddressNeed] = []
    unknown: list[UnknownNeed] = []
    spares = 1 if environment.hyperpod.node_recovery == "automatic" else 0
    for place, group in environment.hyperpod.placed_groups:
        if group.availability_zone_id != az_id:
            continue
        at = render_path(place)
        missing = _unknown_type(environment, group)
        if missing:
            unknown.append(UnknownNeed(group=group.name, instance_type=missing, path=at))
        need = _group_need(environment, group, path=at)
        if need is not None and need.count:
            needs.append(need)
            if spares:
                needs.append(replace(need, kind="spare", count=spares))
    for index, system in enumerate(environment.storage.lustre):
        if system.availability_zone_id == az_id and system.existing is None:
            needs.append(
                AddressNeed(
                    kind="file system",
                    name=system.name,
                    count=system.address_count,
                    each=1,
                    path=f"storage.lustre[{index}]",
                )
            )
    return AddressBudget(
        role="nodes", availability_zone_id=az_id, cidr=cidr, path=path, needs=tuple(needs), unknown=tuple(unknown)
    )


def shortage(environment: Environment, budget: AddressBudget, *, verb: Literal["must", "should"] = "must") -> str:
    """Say that a node block of the environment holds too few addresses, and the smallest change that helps.

    ``verb`` is ``should`` if the nodes have enough addresses, and only their replacement does not.
    """
    if budget.needed <= budget.usable:
        raise ValueError(f"{budget.cidr} holds {budget.usable} addresses, and {budget.needed} are needed")
    lower = lower_count(budget, budget.usable)
    return Sentence(
        f"{verb} hold {budget.needed} addresses ({parts(budget)}), got {budget.cidr} with {budget.usable}; ",
        _larger_block(environment, budget),
        *((", or ", lower) if lower else ()),
        estimate_note(budget),
    )


def parts(budget: AddressBudget) -> str:
    """List what a budget consists of; of many groups, those with the most addresses first."""
    spares = {need.path for need in budget.needs if need.kind == "spare"}
    groups = [need for need in budget.needs if need.kind == "nodes"]
    if len(groups) > _MOST_GROUPS_NAMED:
        groups = sorted(groups, key=lambda need: -_with_spare(need, spares))
    said = [_group_part(need, spare=need.path in spares) for need in groups[:_MOST_GROUPS_NAMED]]
    others = groups[_MOST_GROUPS_NAMED:]
    if others:
        total = sum(_with_spare(need, spares) for need in others)
        said.append(f"{len(others)} other {plural(len(others), 'group')}: {total}")
    servers = sum(need.total for need in budget.needs if need.kind == "file system")
    if servers:
        said.append(f"file systems: {servers}")
    said += [f"{need.kind}: {need.total}" for need in budget.needs if need.kind in _SINGLE]
    return "; ".join(said)


def lower_count(budget: AddressBudget, usable: int) -> str:
    """Say how many nodes the group with the most addresses may have within ``usable``; empty if not even one fits."""
    groups = [need for need in budget.needs if need.kind == "nodes"]
    if not groups:
        return ""
    group = max(groups, key=lambda need: need.total)
    count = highest_count(budget, group, usable)
    return Sentence(Choosing(f"{group.path}.count", verb="lower"), f" {count}") if count >= 1 else ""


def highest_count(budget: AddressBudget, group: AddressNeed, usable: int) -> int:
    """Return the most nodes of one group that fit ``usable`` addresses together with the rest, 0 if none does."""
    others = sum(need.total for need in budget.needs if need.path != group.path)
    spare = sum(need.total for need in budget.needs if need.kind == "spare" and need.path == group.path)
    return max(0, (usable - others - spare) // group.each)


def estimate_note(budget: AddressBudget) -> str:
    """Say in brackets which numbers are estimates; empty where none is."""
    names = budget.estimated_types()
    if not names:
        return ""
    *most, last = names
    return f" (the addresses of {', '.join(most)}{' and ' if most else ''}{last} are an estimate)"


def free_block(environment: Environment, az_id: str, *, cidr: str, prefix: int) -> str | None:
    """Return a block of that size for the nodes of a zone: at the address of ``cidr`` where it is free, else elsewhere.

    Elsewhere, it is the first /16 that overlaps nothing. None if AWS would add none of them to the VPC.
    """
    network = environment.network
    zones = [zone for zone in network.availability_zones if regions.is_az_id(zone) or zone == az_id]
    others = [
        network.availability_zones[zone].node_cidr or network.default_node_cidr(zone) for zone in zones if zone != az_id
    ]
    # what an earlier zone, whose block cannot be added either, is told
    for zone in zones[: zones.index(az_id)] if az_id in zones else ():
        own = network.availability_zones[zone].node_cidr
        if own and catalog.secondary_cidr_conflict(own, primary=network.vpc_cidr):
            others.append(free_block(environment, zone, cidr=own, prefix=IPv4Network(own).prefixlen) or own)

    services = environment.eks.service_ipv4_cidr

    def fits(block: IPv4Network) -> bool:
        if services and block.overlaps(IPv4Network(services)):
            return False
        return catalog.secondary_cidr_problem(str(block), primary=network.vpc_cidr, others=others) is None

    here = IPv4Network((IPv4Network(cidr).network_address, prefix), strict=False)
    if fits(here):
        return str(here)
    pool = IPv4Network(catalog.secondary_pool(network.vpc_cidr))
    for wide in pool.subnets(new_prefix=catalog.SHORTEST_PREFIX):
        if fits(wide):
            return str(IPv4Network((wide.network_address, prefix)))
    return None


def _control_plane(environment: Environment) -> Iterator[AddressBudget]:
    network = environment.network
    slots = catalog.slots(network.vpc_cidr)
    for index, az_id in enumerate(list(network.availability_zones)[: catalog.FEWEST_ZONES]):
        yield AddressBudget(
            role="control plane",
            availability_zone_id=az_id,
            cidr=slots[index],
            path="network.vpc_cidr",
            needs=(_eks_need(), _kubectl_need(), *_endpoint_needs(environment, az_id)),
            advised=catalog.EKS_ADDRESSES_RECOMMENDED - catalog.EKS_ADDRESSES,
        )


def _endpoints(environment: Environment) -> Iterator[AddressBudget]:
    """Yield the subnets for endpoints in zones without control plane; elsewhere endpoints share its subnets."""
    network = environment.network
    slots = catalog.slots(network.vpc_cidr)
    for index, az_id in list(enumerate(network.availability_zones))[catalog.FEWEST_ZONES :]:
        needs = _endpoint_needs(environment, az_id)
        if needs:
            yield AddressBudget(
                role="endpoints", availability_zone_id=az_id, cidr=slots[index], path="network.vpc_cidr", needs=needs
            )


def _endpoint_needs(environment: Environment, az_id: str) -> tuple[AddressNeed, ...]:
    if az_id not in environment.network.endpoint_zones():
        return ()
    count = len(interface_endpoints(environment))
    return (AddressNeed(kind="endpoint", count=count, each=catalog.ENDPOINT_ADDRESSES),)


def _public(environment: Environment) -> Iterator[AddressBudget]:
    network = environment.network
    slots = catalog.slots(network.vpc_cidr)
    for index, az_id in enumerate(list(network.availability_zones)[: network.nat_gateway_count]):
        yield AddressBudget(
            role="public",
            availability_zone_id=az_id,
            cidr=slots[-1 - index],
            path="network.vpc_cidr",
            needs=(AddressNeed(kind="NAT gateway", count=1, each=catalog.NAT_GATEWAY_ADDRESSES),),
        )


def _nodes(environment: Environment) -> Iterator[AddressBudget]:
    network = environment.network
    for az_id, cidr in network.node_cidrs().items():
        path = f"network.availability_zones.{az_id}"
        stated = network.availability_zones[az_id].node_cidr is not None
        yield node_budget(environment, az_id, cidr=cidr, path=f"{path}.node_cidr" if stated else path)


def _existing(environment: Environment) -> Iterator[AddressBudget]:
    """Yield one budget for each subnet, also where it serves nodes and control plane, or two zones by mistake."""
    network = environment.network.existing
    if network is None:
        return
    budgets: dict[str, AddressBudget] = {}
    for az_id, subnet_id in network.node_subnet_ids.items():
        path = f"network.existing.node_subnet_ids.{az_id}"
        budget = replace(node_budget(environment, az_id, cidr="", path=path), subnet_id=subnet_id)
        budgets[subnet_id] = _joined(budgets.get(subnet_id), budget)
    needs = (_kubectl_need(),) if environment.eks.is_existing else (_eks_need(), _kubectl_need())
    advised = 0 if environment.eks.is_existing else catalog.EKS_ADDRESSES_RECOMMENDED - catalog.EKS_ADDRESSES
    stated = {
        subnet_id: f"network.existing.control_plane_subnet_ids[{index}]"
        for index, subnet_id in enumerate(network.control_plane_subnet_ids)
    }
    # without subnets of its own, the function that runs kubectl uses those of the nodes
    for subnet_id, path in (stated or {subnet_id: budget.path for subnet_id, budget in budgets.items()}).items():
        budget = AddressBudget(role="control plane", path=path, subnet_id=subnet_id, needs=needs, advised=advised)
        budgets[subnet_id] = _joined(budgets.get(subnet_id), budget)
    yield from budgets.values()


def _joined(first: AddressBudget | None, second: AddressBudget) -> AddressBudget:
    if first is None:
        return second
    return replace(
        first,
        needs=(*first.needs, *second.needs),
        advised=max(first.advised, second.advised),
        unknown=(*first.unknown, *second.unknown),
    )


def _eks_need() -> AddressNeed:
    return AddressNeed(kind="EKS", count=catalog.EKS_ADDRESSES, each=1)


def _kubectl_need() -> AddressNeed:
    return AddressNeed(kind="kubectl", count=1, each=catalog.KUBECTL_ADDRESSES)


def _group_need(environment: Environment, group: AnyGroup, *, path: str) -> AddressNeed | None:
    from hyperpod_cdk.config.instance_group import InstanceGroup  # noqa: PLC0415 - as above

    rows = [row for name in group.all_instance_types if (row := environment.instance_type(name)) is not None]
    efa_only = isinstance(group, InstanceGroup) and group.network_interface == "efa_only"
    counted = [(row.addresses_per_node(efa_only=efa_only), row) for row in rows]
    known = [(each, row) for each, row in counted if each is not None]
    if not known:
        return None
    each, row = max(known, key=lambda pair: pair[0])
    return AddressNeed(
        kind="nodes",
        name=group.name,
        instance_type=row.name,
        count=group.count,
        each=each,
        is_estimate=any(doubt.startswith("ips_per_node") for doubt in row.unsure),
        path=path,
    )


def _unknown_type(environment: Environment, group: AnyGroup) -> str | None:
    for name in group.all_instance_types:
        row = environment.instance_type(name)
        if row is None or row.ips_per_node is None:
            return name
    return None


def _group_part(need: AddressNeed, *, spare: bool) -> str:
    nodes = f"{need.count} {plural(need.count, 'node')}{' and 1 spare' if spare else ''}"
    return f"{need.name}: {nodes} of {need.instance_type}, {need.each} each"


def _with_spare(need: AddressNeed, spares: set[str]) -> int:
    return need.total + (need.each if need.path in spares else 0)


def _larger_block(environment: Environment, budget: AddressBudget) -> str:
    try:
        prefix = catalog.smallest_prefix_for(budget.needed)
    except ValueError:
        return (
            f"no subnet is that large (a /{catalog.SHORTEST_PREFIX} is the largest): spread the groups over more"
            " availability zones"
        )
    block = free_block(environment, budget.availability_zone_id, cidr=budget.cidr, prefix=prefix)
    fix = (Setting("node_cidr", block),) if block else (Choosing("node_cidr"), f" a free /{prefix}")
    return Sentence(f"the smallest block that fits is a /{prefix}: ", *fix)
