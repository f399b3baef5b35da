"""Rules about availability zones and address blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from hyperpod_cdk.catalog import instance_types, lustre, regions
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.config.draft import known
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.network import FEWEST_ZONES, AvailabilityZone
from hyperpod_cdk.config.rules._book import Book, Problem, listing, warning, zones
from hyperpod_cdk.config.source import DataPath

BOOK = Book()

LONGEST_VPC_PREFIX = 24
"""The VPC block is cut into sixteen subnets for the control plane and NAT gateways; from /24 on each has eleven or more
free addresses, and EKS wants six."""


def zone_problem(environment: Environment, az_id: str, *, key: str) -> str | None:
    """Say why ``az_id`` is no zone of the environment's region, or give None."""
    return regions.az_id_problem(az_id, region=environment.region, key=key)


@BOOK.each(zones)
def zone_is_of_the_region(
    environment: Environment, path: DataPath, item: tuple[str, AvailabilityZone]
) -> Iterator[Problem]:
    """Refuse names, malformed IDs and zones of other regions; warn of zones nobody has seen."""
    az_id, _ = item
    problem = zone_problem(environment, az_id, key="the key")
    if problem:
        yield Problem(path, problem)
        return
    doubt = regions.unseen_az_warning(az_id, region=environment.region)
    if doubt:
        yield warning(path, f"{doubt}; check it with 'aws ec2 describe-availability-zones'")


@BOOK.whole
def eks_takes_the_first_zones(environment: Environment) -> Iterator[Problem]:
    """Refuse a zone without EKS control plane among the two that carry it."""
    refused = regions.eks_control_plane_unsupported_az_ids()
    names = [az_id for az_id, _ in known(environment.network.availability_zones)]
    for az_id in names[:FEWEST_ZONES]:
        if az_id in refused:
            usable = [other for other in names if other not in refused]
            enough = len(usable) >= FEWEST_ZONES
            fix = "list it after the first two" if enough else "add another zone and list it first"
            yield Problem(
                ("network", "availability_zones", az_id),
                f"EKS takes no control plane in {az_id} (as of {regions.AS_OF}), and the first {FEWEST_ZONES} zones"
                f" carry it; {fix}",
            )


@BOOK.whole
def nat_gateways_have_zones(environment: Environment) -> Iterator[Problem]:
    """Refuse more NAT gateways than zones."""
    network = environment.network
    count = len(network.availability_zones)
    if network.nat_gateways > count:
        yield Problem(
            ("network", "nat_gateways"),
            f"must be at most {count}, one for each availability zone, got {network.nat_gateways}; set nat_gateways:"
            f" {count}",
        )


@BOOK.whole
def vpc_block_holds_its_subnets(environment: Environment) -> Iterator[Problem]:
    """Refuse a VPC block too small for control plane and NAT gateways; warn of one that AWS services use inside."""
    block = IPv4Network(environment.network.vpc_cidr)
    if block.prefixlen > LONGEST_VPC_PREFIX:
        wider = IPv4Network((block.network_address, LONGEST_VPC_PREFIX), strict=False)
        yield Problem(
            ("network", "vpc_cidr"),
            f"must be /{LONGEST_VPC_PREFIX} or larger, to hold the subnets of the control plane and of the NAT"
            f" gateways, got {block}; set vpc_cidr: {wider}",
        )
    doubt = catalog.cidr_warning(str(block))
    if doubt:
        yield warning(("network", "vpc_cidr"), doubt)


@BOOK.each(zones)
def node_block_fits_the_vpc(
    environment: Environment, path: DataPath, item: tuple[str, AvailabilityZone]
) -> Iterator[Problem]:
    """Refuse blocks that overlap or that AWS does not add to this VPC, and a default where none is free."""
    az_id, zone = item
    network = environment.network
    if zone.node_cidr is None:
        if regions.is_az_id(az_id) and network.default_node_cidr(az_id) is None:
            yield Problem(path, f"no default block is free for the nodes in {az_id}; state node_cidr")
        return
    block = IPv4Network(zone.node_cidr)
    others, before = [], True
    for other_id, other in network.availability_zones.items():
        before = before and other_id != az_id
        if other_id == az_id or other.node_cidr is None:
            continue
        # of two blocks that overlap, only the later one is reported
        if before or not block.overlaps(IPv4Network(other.node_cidr)):
            others.append(other.node_cidr)
    problem = catalog.secondary_cidr_problem(zone.node_cidr, primary=network.vpc_cidr, others=others)
    if problem:
        yield Problem((*path, "node_cidr"), problem)
    doubt = catalog.cidr_warning(zone.node_cidr)
    if doubt:
        yield warning((*path, "node_cidr"), doubt)


@BOOK.whole
def vpc_blocks_fit_the_quota(environment: Environment) -> Iterator[Problem]:
    """Warn of more blocks than the default quota allows."""
    needed = 1 + len(environment.network.availability_zones)
    if needed > catalog.CIDRS_PER_VPC:
        yield warning(
            ("network", "availability_zones"),
            f"needs {needed} IPv4 blocks in one VPC, one for the VPC and one for each zone; the default quota is"
            f" {catalog.CIDRS_PER_VPC} (as of {catalog.AS_OF}): ask for more, or list at most"
            f" {catalog.CIDRS_PER_VPC - 1} zones",
        )


@dataclass(frozen=True)
class AddressNeed:
    """Addresses that one group takes: ``count`` nodes of ``each`` and one more while a node is replaced."""

    group: str
    instance_type: str
    count: int
    each: int
    estimated: bool

    @property
    def total(self) -> int:
        """All addresses of the group."""
        return (self.count + 1) * self.each if self.count else 0

    def __str__(self) -> str:
        nodes = "node" if self.count == 1 else "nodes"
        return f"{self.group}: {self.count} {nodes} and 1 spare of {self.instance_type}, {self.each} each"


@BOOK.each(zones)
def node_block_holds_its_nodes(
    environment: Environment, path: DataPath, item: tuple[str, AvailabilityZone]
) -> Iterator[Problem]:
    """Refuse a block with fewer addresses than its nodes and file systems take; AWS cannot resize a subnet later."""
    az_id, zone = item
    if not regions.is_az_id(az_id):
        return
    block = zone.node_cidr or environment.network.default_node_cidr(az_id)
    if block is None:
        return
    needs = [
        need
        for group in environment.hyperpod.instance_groups
        if group.availability_zone_id == az_id and (need := _need(environment, group)) is not None
    ]
    servers = sum(
        lustre.ip_addresses(system.capacity_gib)
        for system in environment.storage.lustre
        if system.availability_zone_id == az_id
    )
    total = sum(need.total for need in needs) + servers
    usable = catalog.usable_addresses(block)
    if total <= usable:
        return
    parts = [str(need) for need in needs if need.total] + ([f"file systems: {servers}"] if servers else [])
    message = (
        f"must hold {total} addresses ({'; '.join(parts)}), got {block} with {usable}; {_larger_block(block, total)}"
    )
    at = (*path, "node_cidr") if zone.node_cidr else path
    estimates = [need for need in needs if need.estimated and need.total]
    if not estimates or total - sum(need.total for need in estimates) > usable:
        yield Problem(at, message)
    else:
        named = listing([need.instance_type for need in estimates], last="and")
        yield warning(at, f"{message} (the addresses of {named} are an estimate)")


@BOOK.whole
def addresses_per_node_are_known(environment: Environment) -> Iterator[Problem]:
    """Warn of types whose addresses nobody stated, since the block's size goes unchecked."""
    for index, group in enumerate(environment.hyperpod.instance_groups):
        for name in group.all_instance_types:
            row = environment.instance_type(name)
            if row is not None and row.ips_per_node is None:
                yield warning(
                    (
                        "hyperpod",
                        "instance_groups",
                        index,
                        "instance_type" if group.instance_type else "instance_types",
                    ),
                    f"how many addresses a node of {name} takes is not known (catalog of {instance_types.as_of()}),"
                    f" so the size of the node block in {group.availability_zone_id} is not checked; state"
                    " ips_per_node under instance_types",
                )


def _need(environment: Environment, group: InstanceGroup) -> AddressNeed | None:
    """Give what a group takes at most, for a flexible group with the hungriest of its types; None where unknown."""
    rows = [row for name in group.all_instance_types if (row := environment.instance_type(name)) is not None]
    known_rows = [(row.ips_per_node, row) for row in rows if row.ips_per_node is not None]
    if not known_rows:
        return None
    each, row = max(known_rows, key=lambda pair: pair[0])
    estimated = any(doubt.startswith("ips_per_node") for doubt in row.unsure)
    return AddressNeed(group=group.name, instance_type=row.name, count=group.count, each=each, estimated=estimated)


def _larger_block(block: str, total: int) -> str:
    try:
        prefix = catalog.smallest_prefix_for(total)
    except ValueError:
        return (
            f"no subnet is that large (a /{catalog.SHORTEST_PREFIX} is the largest): spread the groups over more"
            " availability zones"
        )
    wider = IPv4Network((IPv4Network(block).network_address, prefix), strict=False)
    return f"set node_cidr: {wider} or another free /{prefix}, AWS cannot resize a subnet later"
