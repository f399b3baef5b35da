"""VPC address rules: sizes, reserved addresses and which secondary blocks AWS allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from ipaddress import IPv4Network, collapse_addresses
from itertools import islice
from typing import NamedTuple

from hyperpod_cdk.catalog import _data, quotas
from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.catalog.sentences import Removal, Sentence, Setting, Stated, in_python

_DATA = _data.load("network")

AS_OF: date = _data.as_of("network")

SHORTEST_PREFIX: int = _DATA["prefix"]["shortest"]
"""Largest VPC block and subnet: /16."""

LONGEST_PREFIX: int = _DATA["prefix"]["longest"]
"""Smallest VPC block and subnet: /28."""

AWS_RESERVED_PER_SUBNET: int = _DATA["reserved_per_subnet"]
"""Addresses of each subnet that AWS reserves: the first four and the last."""

CIDRS_PER_VPC: int = quotas.get("cidrs_per_vpc").default
"""Default quota of IPv4 blocks for one VPC, including the primary one; can be raised."""

ENDPOINTS_PER_VPC: int = quotas.get("interface_endpoints_per_vpc").default
"""Default quota of interface endpoints in one VPC; can be raised."""

EKS_ADDRESSES: int = _DATA["interfaces"]["eks_control_plane"]["needed"]
"""Free addresses that EKS requires in each control-plane subnet, for its interfaces and for those of an update."""

EKS_ADDRESSES_RECOMMENDED: int = _DATA["interfaces"]["eks_control_plane"]["recommended"]
"""Free addresses that EKS recommends in each control-plane subnet."""

KUBECTL_ADDRESSES: int = _DATA["interfaces"]["kubectl_function"]["needed"]
"""Addresses that the function that runs kubectl and helm uses in each of its subnets."""

NAT_GATEWAY_ADDRESSES: int = _DATA["interfaces"]["nat_gateway"]["needed"]
"""Private addresses of one NAT gateway."""

ENDPOINT_ADDRESSES: int = _DATA["interfaces"]["interface_endpoint"]["needed"]
"""Private addresses of one interface endpoint in each of its subnets."""

LOAD_BALANCER_ADDRESSES: int = _DATA["interfaces"]["load_balancer"]["needed"]
"""Free addresses that an Application Load Balancer requires in each of its subnets."""

INTERNAL_LOAD_BALANCER_TAG = "kubernetes.io/role/internal-elb"
"""The tag of private subnets for load balancers (EKS user guide, network-reqs, read 2026-11-28)."""

SHARED_RANGE: str = _DATA["shared_range"]
"""The range (RFC 6598) from which every VPC can have secondary blocks."""

_PUBLIC_ENDPOINT = _DATA["public_endpoint"]

FEWEST_ZONES = 2
"""The availability zones that an EKS control plane needs (EKS user guide, "Subnet requirements for clusters")."""
ZONES = Bound(minimum=FEWEST_ZONES, source="eks-ug")
PUBLIC_ACCESS_CIDRS = Bound(**_PUBLIC_ENDPOINT["most_blocks"])
"""Number of blocks that can access the public endpoint of an EKS cluster; the quota cannot be raised."""

EVERYWHERE = "0.0.0.0/0"
"""The block of every IPv4 address: EKS's default if no block is named, and how a file says that it is intended."""

GROUP_DESCRIPTION = Pattern(
    regex=r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]+",
    maximum=255,
    describes="1 to 255 letters without accents, digits, blanks and ._-:/()#,@[]+=&;{}!$*",
    example="nodes of the training cluster",
    source="cfn AWS::EC2::SecurityGroup GroupDescription",
)


def is_all_traffic(protocol: object, block: object) -> bool:
    """Return whether a rule of a security group with this protocol and block allows all IPv4 traffic."""
    return str(protocol) == "-1" and block == EVERYWHERE


EVERYWHERE_IN_HALVES = ("0.0.0.0/1", "128.0.0.0/1")
"""Every IPv4 address as two blocks: what a security group states that also has AWS::EC2::SecurityGroupEgress rules.

Before CloudFormation creates such a rule, it removes a rule of the group that allows all traffic to 0.0.0.0/0, also one
that the group states itself (aws/aws-cdk issue 22140, comment of a maintainer, pull request 22279 and issues 987, 3355
and 14657; aws-cloudformation/cfn-language-discussion issue 157; the create handler of the type has
ec2:RevokeSecurityGroupEgress; read 2026-11-29). In issue 987 a description did not protect a rule. UNSURE: no page of
AWS says it; two halves do not depend on it.
"""

# no address is a good example: EKS refuses reserved addresses, and all others belong to an owner
YOUR_BLOCKS = (
    "the blocks that you connect from (for one address, what https://checkip.amazonaws.com returns, followed by /32)"
)
"""What to list as callers of a public endpoint."""


NODES, KUBECTL = "nodes", "kubectl"
"""The callers in the VPC of every environment: nodes, and the functions that run kubectl."""


@dataclass(frozen=True, kw_only=True)
class InterfaceEndpoint:
    """A service that is called from a closed network.

    ``service`` is the end of its endpoint's name (``ecr.api``); ``caller`` is NODES, KUBECTL or the feature that calls
    it; ``why`` says for what. Nodes start without one that ``is_dispensable``; ``unsure`` says what is unknown.
    """

    service: str
    caller: str
    why: str
    is_dispensable: bool = False
    unsure: str = ""


ENDPOINTS: tuple[InterfaceEndpoint, ...] = tuple(
    InterfaceEndpoint(
        service=row["service"],
        caller=row["for"],
        why=row["why"],
        is_dispensable=row.get("dispensable", False),
        unsure=row.get("unsure", ""),
    )
    for row in _DATA["endpoints"]
)
"""Every service for which a closed network may need an interface endpoint; S3 has a gateway endpoint instead."""


@dataclass(frozen=True, kw_only=True)
class Unreachable:
    """What ``feature`` calls and has no endpoint in a closed network: ``says`` what, ``fix`` what to change."""

    feature: str
    says: str
    fix: str


UNREACHABLE: tuple[Unreachable, ...] = tuple(
    Unreachable(feature=row["for"], says=row["says"], fix=row["fix"]) for row in _DATA["unreachable"]
)


@dataclass(frozen=True, kw_only=True)
class MadeSecurityGroup:
    """The rules, all for all traffic, of a security group that AWS creates with another resource."""

    in_from_itself: bool
    out_to_itself: bool
    out_to_any: bool


GATEWAY_SERVICE_PROBLEM = (
    "must be another service, got s3, which every subnet reaches through the gateway endpoint; remove it"
)
"""The message for an interface endpoint of S3."""


def made_security_group(resource_type: str, attribute: str) -> MadeSecurityGroup | None:
    """Return the rules of the security group that is this attribute of a CloudFormation type, None if none is."""
    for row in _DATA["made_security_groups"]:
        if (row["type"], row["attribute"]) == (resource_type, attribute):
            return MadeSecurityGroup(
                in_from_itself=row["in_from_itself"], out_to_itself=row["out_to_itself"], out_to_any=row["out_to_any"]
            )
    return None


def endpoint_services(features: Collection[str] = ()) -> tuple[str, ...]:
    """Return the services that a closed network needs, sorted: those of nodes and kubectl, and those of ``features``.

    Raises ValueError for an unknown feature.
    """
    callers = {row.caller for row in ENDPOINTS}
    if unknown := sorted(set(features) - callers):
        raise ValueError(f"no service is for {', '.join(unknown)}; the features are {', '.join(sorted(callers))}")
    return tuple(sorted(row.service for row in ENDPOINTS if row.caller in {NODES, KUBECTL, *features}))


def endpoint_service_prefix(service: str, *, region: str) -> str:
    """Return the part before the region in the name of a service's endpoint: ``com.amazonaws``, in China not always.

    The beginning of ``region`` decides; a region that is unknown at synthesis gets the usual name.
    """
    names = _DATA["endpoint_name"]
    row = names["exceptions"].get(region.partition("-")[0], {})
    return str(row["prefix"] if service in row.get("services", ()) else names["prefix"])


def usable_addresses(cidr: str) -> int:
    """Return how many addresses a subnet of ``cidr`` leaves for use; raises ValueError for other text."""
    return max(0, IPv4Network(cidr).num_addresses - AWS_RESERVED_PER_SUBNET)


def slots(vpc_cidr: str) -> tuple[str, ...]:
    """Return the equal subnets into which a VPC's first block is divided, lowest first; raises ValueError for other
    text.

    Control-plane subnets take them from the bottom, public ones from the top. There are sixteen, none larger than a
    /24 nor smaller than a /28; of a block beyond /24 there are fewer.
    """
    try:
        block = IPv4Network(vpc_cidr)
    except ValueError:
        problem = cidr_problem(vpc_cidr, key="vpc_cidr")
        raise ValueError(f"vpc_cidr: {problem and in_python(problem)}") from None
    rule: dict[str, int] = _DATA["slots"]
    bits = rule["count"].bit_length() - 1
    prefix = min(LONGEST_PREFIX, max(rule["largest_prefix"], block.prefixlen + bits))
    return tuple(str(slot) for slot in islice(block.subnets(new_prefix=prefix), rule["count"]))


LONGEST_VPC_PREFIX = 24
"""The VPC block is divided into sixteen subnets for control plane and NAT gateways; from /24 on each has eleven or more
free addresses, and EKS requires six."""


def vpc_size_problem(cidr: str, *, key: str) -> str | None:
    """Say that a VPC block is too small for the subnets of the control plane and of the NAT gateways, or None."""
    block = IPv4Network(cidr)
    if block.prefixlen <= LONGEST_VPC_PREFIX:
        return None
    wider = IPv4Network((block.network_address, LONGEST_VPC_PREFIX), strict=False)
    return Sentence(
        f"must be /{LONGEST_VPC_PREFIX} or larger, to hold the subnets of the control plane and of the NAT"
        f" gateways, got {block}; ",
        Setting(key, str(wider)),
    )


def same_subnet_problem(subnet_id: str, first_zone: str) -> str:
    """Say that the subnet of ``first_zone`` is also named for a second zone."""
    return (
        f"must be another subnet than that of {first_zone}, got {subnet_id} for both; a subnet is in one zone, name"
        " another"
    )


def smallest_vpc_prefix_for(addresses: int) -> int:
    """Return the prefix length of the smallest VPC block each of whose slots has room for ``addresses`` interfaces.

    Raises ValueError when more are needed than the slots of the largest block have.
    """
    for prefix in range(LONGEST_PREFIX, SHORTEST_PREFIX - 1, -1):
        if usable_addresses(slots(f"10.0.0.0/{prefix}")[0]) >= addresses:
            return prefix
    raise ValueError(f"a slot of the largest VPC block holds fewer than {addresses} addresses")


def smallest_prefix_for(addresses: int) -> int:
    """Return the prefix length of the smallest subnet with room for ``addresses`` interfaces.

    Raises ValueError when more are needed than the largest subnet holds.
    """
    for prefix in range(LONGEST_PREFIX, SHORTEST_PREFIX - 1, -1):
        if _usable(prefix) >= addresses:
            return prefix
    raise ValueError(
        f"must be at most {_usable(SHORTEST_PREFIX)}, the room of a /{SHORTEST_PREFIX} subnet, got {addresses}; "
        "spread the nodes over more availability zones"
    )


_NOT_CANONICAL = 'must be a CIDR block in its canonical form, got "{}"; '


def block_problem(cidr: str, *, key: str = "cidr", fitted: Callable[[IPv4Network], str] = str) -> str | None:
    """Say why ``cidr`` is not an IPv4 block, of any size that a security group rule accepts, or return None.

    ``fitted`` gives the block to write in place of one that is not in its canonical form.
    """
    try:
        network = IPv4Network(cidr, strict=False)
    except ValueError:
        return f'must be an IPv4 CIDR block such as 10.0.0.0/16, got "{cidr}"; correct {key}'
    if str(network) != cidr:
        return Sentence(_NOT_CANONICAL.format(cidr), Setting(key, str(fitted(network))))
    return None


def cidr_problem(cidr: str, *, key: str = "cidr") -> str | None:
    """Say why ``cidr`` can be neither a VPC block nor a subnet (form, size, range), or return None."""
    if problem := block_problem(cidr, key=key, fitted=_fitted):
        return problem
    network = IPv4Network(cidr)
    if not SHORTEST_PREFIX <= network.prefixlen <= LONGEST_PREFIX:
        return (
            f"must be between /{SHORTEST_PREFIX} and /{LONGEST_PREFIX}, got /{network.prefixlen}; "
            f"write {key} with a prefix between these"
        )
    for block, name in _DATA["forbidden"].items():
        if network.overlaps(IPv4Network(block)):
            return f"must be outside {block} ({name}), got {cidr}; set {key} to a block of 10.0.0.0/8"
    return None


def cidr_warning(cidr: str) -> str | None:
    """Say that a well-formed block overlaps a range that AWS services use internally, or is public.

    None if it is neither. Private is what IANA's registry of special-purpose addresses says, as Python has it.
    """
    network = IPv4Network(cidr)
    if network.is_global:
        return (
            f"{cidr} is a public block: nodes could not reach its owner on the internet; choose a block of"
            " 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10"
        )
    for block, why in _DATA["doubtful"].items():
        if network.overlaps(IPv4Network(block)):
            return f"{cidr} overlaps {block}: {why}; choose another block"
    return None


def public_cidr_problem(cidr: str, *, key: str = "cidr") -> str | None:
    """Say why the public endpoint of an EKS cluster cannot be opened to ``cidr`` (form, reserved), or return None."""
    try:
        network = IPv4Network(cidr, strict=False)
    except ValueError:
        return f'must be an IPv4 CIDR block, got "{cidr}"; write {YOUR_BLOCKS}'
    if str(network) != cidr:
        return Sentence(_NOT_CANONICAL.format(cidr), Setting(key, str(network)))
    for block, name in _PUBLIC_ENDPOINT["reserved"].items():
        if network.subnet_of(IPv4Network(block)):
            return (
                f"must contain public addresses, got {cidr} of {block} ({name}), which EKS refuses; write"
                f" {YOUR_BLOCKS}, or remove it: callers in the VPC, or in networks that are connected with it, use the"
                " private endpoint"
            )
    return None


def public_cidr_warning(cidr: str) -> str | None:
    """Say that a block which ``public_cidr_problem`` accepts contains reserved addresses too, or return None."""
    network = IPv4Network(cidr)
    if cidr == EVERYWHERE:
        return None
    held = [block for block in _PUBLIC_ENDPOINT["reserved"] if IPv4Network(block).subnet_of(network)]
    if not held:
        return None
    return (
        f"{cidr} includes {', '.join(held)}, and EKS refuses a block that includes reserved addresses; list smaller"
        f" blocks, or {EVERYWHERE} if everyone is intended"
    )


def service_cidr_problem(cidr: str, *, key: str = "cidr") -> str | None:
    """Say why Kubernetes services of an EKS cluster cannot use addresses of ``cidr`` (form, size, range), or None.

    Source: EKS API reference, KubernetesNetworkConfigRequest.
    """
    rule = _DATA["kubernetes_services"]
    private, shortest, longest = rule["private"], rule["prefix"]["shortest"], rule["prefix"]["longest"]
    try:
        network = IPv4Network(cidr, strict=False)
    except ValueError:
        return f'must be an IPv4 CIDR block such as 172.20.0.0/16, got "{cidr}"; correct {key}'
    if "/" not in cidr or str(network) != cidr:
        prefix = min(max(network.prefixlen, shortest), longest)
        fitted = IPv4Network((network.network_address, prefix), strict=False)
        return Sentence(_NOT_CANONICAL.format(cidr), Setting(key, str(fitted)))
    if not shortest <= network.prefixlen <= longest:
        return (
            f"must be between /{shortest} and /{longest}, got /{network.prefixlen}; write {key} with a prefix between"
            " these"
        )
    if not any(network.subnet_of(IPv4Network(block)) for block in private):
        return f"must be in {', '.join(private)}, got {cidr}; set {key} to a block of one of these"
    return None


def reaches_the_internet(cidr: str) -> bool:
    """Return whether a block contains any public address."""
    network = IPv4Network(cidr, strict=False)
    return not any(network.subnet_of(IPv4Network(block)) for block in _PUBLIC_ENDPOINT["reserved"])


_MOST_OF_THE_INTERNET = 0.5


def internet_share(cidrs: Iterable[str]) -> float:
    """Return how much of all IPv4 addresses that are not reserved the blocks cover together: 0.0 to 1.0."""
    reserved = [IPv4Network(block) for block in _PUBLIC_ENDPOINT["reserved"]]
    covered = 0
    for network in collapse_addresses(IPv4Network(cidr, strict=False) for cidr in cidrs):
        if any(network.subnet_of(block) for block in reserved):
            continue
        covered += network.num_addresses - sum(block.num_addresses for block in reserved if block.subnet_of(network))
    everything = IPv4Network(EVERYWHERE).num_addresses - sum(block.num_addresses for block in reserved)
    return covered / everything


def opens_everywhere(cidrs: Sequence[str]) -> bool:
    """Return whether an endpoint with these blocks is open to almost the whole internet; no block is EKS's default."""
    return not cidrs or internet_share(cidrs) >= _MOST_OF_THE_INTERNET


def nat_gateways_problem(count: int, *, zones: int) -> str | None:
    """Say that there are more NAT gateways than availability zones, or return None."""
    if count <= zones:
        return None
    said = f"must be at most {zones}, one for each availability zone, got {count}; "
    return Sentence(said, Setting("nat_gateways", zones))


def control_plane_subnets_problem(count: int) -> str | None:
    """Say that there are too few subnets for the EKS control plane, or return None."""
    if count >= FEWEST_ZONES:
        return None
    return (
        f"must hold at least {FEWEST_ZONES} subnets, in different availability zones, for the EKS control plane, got"
        f" {count}; add {FEWEST_ZONES - count}"
    )


def private_endpoint_problem(endpoint_access: str, cidrs: Sequence[str]) -> str | None:
    """Say that blocks are listed for a public endpoint that does not exist, or return None."""
    if endpoint_access != "private" or not cidrs:
        return None
    return Sentence(
        "must be left out with ",
        Stated("endpoint_access", "private"),
        ", because there is no public endpoint; ",
        Removal("public_access_cidrs"),
        " or ",
        Setting("endpoint_access", "public_and_private"),
    )


def blocks_beside(cidr: str, *, before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return the other blocks of a VPC that one is compared with: of two that overlap, only the later one is
    refused."""
    network = IPv4Network(cidr)
    return [*before, *(other for other in after if not network.overlaps(IPv4Network(other)))]


class Conflict(NamedTuple):
    """Why a block cannot be added to a VPC, and which can."""

    why: str
    instead: str


def secondary_cidr_problem(
    cidr: str, *, primary: str, others: Iterable[str] = (), key: str = "node_cidr"
) -> str | None:
    """Say why ``cidr`` cannot be added to a VPC whose first block is ``primary``, or return None.

    ``others`` are the remaining secondary blocks. CloudFormation adds secondary blocks in no fixed order, so
    a pair that AWS accepts in one order only is refused too. Raises ValueError when ``primary`` or ``others``
    are not blocks.
    """
    problem = cidr_problem(cidr, key=key)
    if problem:
        return problem
    conflict = secondary_cidr_conflict(cidr, primary=primary, others=others)
    return f"{conflict.why}; set {key} to {conflict.instead}" if conflict else None


def overlap_problem(cidr: str, other: str) -> str | None:
    """Say that two blocks of a VPC overlap, which is impossible, or return None; the caller adds the fix."""
    if not IPv4Network(cidr).overlaps(IPv4Network(other)):
        return None
    return f"must not overlap another block of the VPC, got {cidr} and {other}"


def secondary_cidr_conflict(cidr: str, *, primary: str, others: Iterable[str] = ()) -> Conflict | None:
    """Say why a block cannot be added to a VPC with others, as ``secondary_cidr_problem`` does, or return None."""
    network = IPv4Network(cidr)
    rest = [primary, *others]
    for other in rest:
        if problem := overlap_problem(cidr, other):
            return Conflict(problem, "a free block")
    for block in restricted_secondary_ranges(primary):
        if network.overlaps(IPv4Network(block)):
            why = f"must be outside {block}, which AWS does not add to a VPC whose first block is {primary}, got {cidr}"
            return Conflict(why, f"a block of {secondary_pool(primary)}")
    late = _DATA["late_block"]
    neighbours = [other for other in rest if IPv4Network(other).overlaps(IPv4Network(late["when_any_in"]))]
    if neighbours and network.overlaps(IPv4Network(late["restricted"])):
        why = (
            f"must be outside {late['restricted']}, which AWS does not add to a VPC that has a block of "
            f"{late['when_any_in']} ({neighbours[0]}), got {cidr}"
        )
        return Conflict(why, f"another block of {secondary_pool(primary)}")
    return None


def restricted_secondary_ranges(primary: str) -> tuple[str, ...]:
    """Return the ranges from which AWS adds no secondary block to a VPC whose first block is ``primary``."""
    network = IPv4Network(primary)
    for row in _DATA["associations"]:
        if network.subnet_of(IPv4Network(row["primary"])):
            return tuple(row["restricted"])
    raise ValueError(f"no association rule covers {primary}")


def secondary_pool(primary: str) -> str:
    """Return the range for secondary blocks: 10.0.0.0/8 if the first block is in it, else 100.64.0.0/10."""
    private = IPv4Network("10.0.0.0/8")
    return str(private) if IPv4Network(primary).subnet_of(private) else SHARED_RANGE


def _usable(prefix: int) -> int:
    return (1 << (32 - prefix)) - AWS_RESERVED_PER_SUBNET


def _fitted(network: IPv4Network) -> str:
    """Return the block at the same first address with a size that AWS accepts; of one address, the largest."""
    begins = int(network.network_address)
    aligned = network.max_prefixlen - ((begins & -begins).bit_length() - 1 if begins else network.max_prefixlen)
    prefix = aligned if network.prefixlen == network.max_prefixlen else network.prefixlen
    prefix = min(max(prefix, SHORTEST_PREFIX), LONGEST_PREFIX)
    return str(IPv4Network((network.network_address, prefix), strict=False))
