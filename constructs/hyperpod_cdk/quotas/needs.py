"""What an environment needs of the account's quotas, computed from its file alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_cdk.catalog import lustre, quotas
from hyperpod_cdk.catalog.quotas import Quota
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.addresses import address_budgets
from hyperpod_cdk.config.endpoints import interface_endpoints
from hyperpod_cdk.config.environment import STACKS, stack_name
from hyperpod_cdk.config.restricted_group import AnyGroup
from hyperpod_cdk.config.source import render_path
from hyperpod_cdk.config.storage import Lustre
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement
from hyperpod_cdk.handlers.quota_gate.reading import Own

PER_TYPE, CLUSTER_SIZE, VOLUME, NETWORK, EKS, LUSTRE = "per-type", "cluster-size", "volume", "network", "eks", "lustre"
RESTRICTED = "restricted"
"""Kinds of requirements, as ``kind_of`` gives them."""

REPLACED_AT_ONCE = 1
"""Nodes of an accelerated type whose replacement should fit; see ``required_quotas``."""

_NEAR_THE_DEFAULT = 0.5
_CONTROL_PLANE_SUBNETS = 2
_SECURITY_GROUPS_OF_A_NEW_VPC = 1
_SECURITY_GROUPS_OF_A_NEW_CLUSTER = 1
_SECURITY_GROUPS_OF_ENDPOINTS = 1
_RULES_OF_THE_NODES_GROUP = 2
_GIB_PER_TIB = 1024

_KINDS: Mapping[str, str] = {
    "cluster": PER_TYPE,
    "spot": PER_TYPE,
    "hyperpod_instances_total": CLUSTER_SIZE,
    "hyperpod_instances_per_cluster": CLUSTER_SIZE,
    "hyperpod_spot_instances_total": CLUSTER_SIZE,
    "hyperpod_spot_instances_per_cluster": CLUSTER_SIZE,
    "hyperpod_ebs_volume_gb": VOLUME,
    "eks_clusters": EKS,
    "lustre_persistent_2_file_systems": LUSTRE,
    "lustre_persistent_2_capacity_gib": LUSTRE,
    "lustre_scratch_capacity_gib": LUSTRE,
    "lustre_intelligent_tiering_mbps": LUSTRE,
    "lustre_intelligent_tiering_read_cache_gib": LUSTRE,
    "hyperpod_restricted_lustre_tib": RESTRICTED,
}


def own(environment: Environment) -> Own:
    """Say what in the account belongs to the environment, and so is not used by others.

    File systems outlive their stack and keep its tag: those of a destroyed environment with the same name count as its
    own.
    """
    return Own(
        stacks=tuple(stack_name(environment.name, stack) for stack in STACKS),
        hyperpod_cluster=environment.hyperpod_cluster_name,
        eks_cluster=environment.eks_cluster_name,
        account=environment.account,
    )


def kind_of(requirement: Requirement) -> str:
    """Say which kind of quota a requirement is about."""
    return _KINDS.get(requirement.key.partition(":")[0], NETWORK)


def required_quotas(environment: Environment) -> tuple[Requirement, ...]:
    """Return what the environment needs of every quota that it could reach, each with its place in the file.

    Instances of a type are summed over its groups; those on a training plan count too, because ``ml.X for cluster
    usage`` must cover a plan's instances as well. Spot instances have their own quotas for each type; whether they also
    count for the totals without "Spot" in their name is not documented: here they do, as the names suggest.

    A flexible group uses its types in the order of the file. The first one must cover the whole count, because it is
    not documented whether HyperPod continues with the next type if a quota is too low, and not capacity. For the other
    types the count is spare: too little is a warning.

    Spare is also the first node that Karpenter adds of each type and market: no deployment needs it, but if the quota
    is 0, the pods that request it wait forever.

    Spare is also one node of each accelerated type with automatic node recovery: whether AWS counts a faulty node until
    its replacement runs is not documented. Nodes without accelerators are not replaced automatically.

    An existing network or EKS cluster needs none of the quotas for creating one.
    """
    return tuple(
        requirement
        for requirements in (
            _per_type(environment),
            _cluster_size(environment),
            _volume(environment),
            _network(environment),
            _eks(environment),
            _lustre(environment),
            _restricted_lustre(environment),
        )
        for requirement in requirements
        if requirement.needed or requirement.spare
    )


def per_node(environment: Environment, group: AnyGroup) -> Mapping[str, float]:
    """Return how much of each requirement, by its key, one more node of a group needs."""
    first = next(iter(group.all_instance_types), "")
    is_spot = group.resolved_capacity == "spot"
    usage = quotas.cluster_spot_usage(first) if is_spot else quotas.cluster_usage(first)
    takes = {usage.key: 1.0, "hyperpod_instances_total": 1.0, "hyperpod_instances_per_cluster": 1.0}
    if is_spot:
        takes |= {"hyperpod_spot_instances_total": 1.0, "hyperpod_spot_instances_per_cluster": 1.0}
    return {**takes, "network_interfaces": float(interfaces_per_node(environment, group))}


def interfaces_per_node(environment: Environment, group: AnyGroup) -> int:
    """Return the network interfaces of one node: one for each network card, of the type with the most; at least one."""
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return max((row.network_cards for row in rows if row is not None), default=1)


@dataclass(frozen=True, kw_only=True)
class _Group:
    """An instance group with its place in the file."""

    group: AnyGroup
    path: str

    @property
    def types(self) -> tuple[str, ...]:
        return self.group.all_instance_types

    @property
    def is_spot(self) -> bool:
        return self.group.resolved_capacity == "spot"


def _groups(environment: Environment) -> list[_Group]:
    groups = environment.hyperpod.placed_groups
    return [_Group(group=each, path=render_path(place)) for place, each in groups if each.count]


def _karpenter_groups(environment: Environment) -> list[_Group]:
    """Return the groups whose nodes Karpenter creates later: no deployment needs their quotas, each first node does."""
    names = {group.name for group in environment.hyperpod.autoscaled_groups}
    groups = environment.hyperpod.placed_groups
    return [_Group(group=each, path=render_path(place)) for place, each in groups if each.name in names]


def _per_type(environment: Environment) -> Iterator[Requirement]:
    groups, later = _groups(environment), _karpenter_groups(environment)
    markets = dict.fromkeys((name, each.is_spot) for each in [*groups, *later] for name in each.types)
    for name, is_spot in markets:
        users = [each for each in groups if each.is_spot is is_spot and name in each.types]
        preferring = [each for each in users if each.types[0] == name]
        others = [each for each in users if each.types[0] != name]
        comes = [each for each in later if each.is_spot is is_spot and name in each.types]
        row = quotas.cluster_spot_usage(name) if is_spot else quotas.cluster_usage(name)
        replaced = _replaced(environment, name) if users else 0
        reasons = [
            *(["replacing a faulty node"] if replaced else []),
            *(f"group {each.group.name}, which may use this type" for each in others),
            *([_first_node(comes)] if comes else []),
        ]
        yield _requirement(
            row,
            needed=sum(each.group.count for each in preferring),
            spare=replaced + sum(each.group.count for each in others) + (1 if comes else 0),
            spare_for=" and ".join(reasons),
            usage=f"hyperpod_{'spot_' if is_spot else ''}instances:{name}",
            unit=f"{name} for cluster {'spot instance ' if is_spot else ''}usage",
            path=_largest(preferring or others or comes),
            lever=_count_of(preferring),
        )


def _cluster_size(environment: Environment) -> Iterator[Requirement]:
    groups, later = _groups(environment), _karpenter_groups(environment)
    for which, comes, prefix, unit in (
        (groups, later, "hyperpod_instances", "instance"),
        (
            [each for each in groups if each.is_spot],
            [each for each in later if each.is_spot],
            "hyperpod_spot_instances",
            "Spot instance",
        ),
    ):
        needed = sum(each.group.count for each in which)
        # a replacement is of one type at a time, of any type
        replaced = sum(_replaced(environment, name) for name in dict.fromkeys(each.types[0] for each in which))
        reasons = [*(["replacing faulty nodes"] if replaced else []), *([_first_node(comes)] if comes else [])]
        size = _requirement(
            quotas.get(f"{prefix}_total"),
            needed=needed,
            spare=replaced + (1 if comes else 0),
            spare_for=" and ".join(reasons),
            usage=prefix,
            unit=plural(needed, unit),
            path=_all_of(which or comes),
            lever=_count_of(which),
        )
        yield size
        yield _requirement(
            quotas.get(f"{prefix}_per_cluster"),
            needed=needed,
            spare=size.spare,
            spare_for=size.spare_for,
            unit=size.unit,
            path=size.path,
            lever=size.lever,
        )


def _volume(environment: Environment) -> Iterator[Requirement]:
    # also of groups without nodes: the size is part of the group, and Karpenter's nodes have it
    groups = environment.hyperpod.placed_groups
    sizes = {render_path(place): group.volume_gib for place, group in groups if group.volume_gib}
    if not sizes:
        return
    path = max(sizes, key=lambda path: sizes[path])
    yield _requirement(
        quotas.get("hyperpod_ebs_volume_gb"),
        needed=sizes[path],
        unit="GB of EBS volume",
        path=f"{path}.volume_gib",
        lever="volume_gib",
    )


def _network(environment: Environment) -> Iterator[Requirement]:
    yield from _interfaces(environment)
    yield from _security_groups(environment)
    network = environment.network
    if network.is_existing:
        return
    zones = network.zone_ids()
    yield _requirement(quotas.get("vpcs"), needed=1, usage="vpcs", unit="VPC", path="network")
    endpoints = interface_endpoints(environment)
    yield _requirement(
        quotas.get("internet_gateways"),
        needed=0 if network.is_closed else 1,
        usage="internet_gateways",
        unit="internet gateway",
        path="network",
    )
    yield _requirement(
        quotas.get("elastic_ips"),
        needed=network.nat_gateway_count,
        usage="elastic_ips",
        unit=plural(network.nat_gateway_count, "Elastic IP address", "Elastic IP addresses"),
        path="network.nat_gateways",
        lever="nat_gateways",
    )
    for zone in zones[: network.nat_gateway_count]:
        yield _requirement(
            quotas.get("nat_gateways_per_az"),
            key=f"nat_gateways_per_az:{zone}",
            needed=1,
            usage=f"nat_gateways:{zone}",
            unit=f"NAT gateway in {zone}",
            path="network.nat_gateways",
        )
    yield _requirement(
        quotas.get("subnets_per_vpc"),
        needed=len(zones) + _CONTROL_PLANE_SUBNETS + network.nat_gateway_count + len(_endpoint_subnets(environment)),
        unit="subnets",
        path="network.availability_zones",
    )
    yield _requirement(
        quotas.get("cidrs_per_vpc"),
        needed=1 + len(zones),
        unit="IPv4 blocks",
        path="network.availability_zones",
    )
    yield _requirement(
        quotas.get("gateway_endpoints"), needed=1, usage="gateway_endpoints", unit="gateway endpoint", path="network"
    )
    yield _requirement(
        quotas.get("interface_endpoints_per_vpc"),
        needed=len(endpoints),
        unit=plural(len(endpoints), "interface endpoint"),
        path="network.endpoints.additional" if network.endpoints and network.endpoints.additional else "network.egress",
    )


def _endpoint_subnets(environment: Environment) -> tuple[str, ...]:
    """Return the zones with a subnet only for endpoints: in the others they share the control plane's subnet."""
    beside = environment.network.zone_ids()[:_CONTROL_PLANE_SUBNETS]
    return tuple(zone for zone in environment.network.endpoint_zones() if zone not in beside)


def _interfaces(environment: Environment) -> Iterator[Requirement]:
    """Count the interfaces of nodes, and of everything else with counted addresses: one for each address."""
    groups = _groups(environment)
    of_nodes = {each.path: each.group.count * interfaces_per_node(environment, each.group) for each in groups}
    others = sum(
        need.total
        for budget in address_budgets(environment)
        for need in budget.needs
        if need.kind not in {"nodes", "spare"}
    )
    replaced = {
        each.types[0]: interfaces_per_node(environment, each.group) * _replaced(environment, each.types[0])
        for each in groups
    }
    path = max(of_nodes, key=lambda at: of_nodes[at], default="network")
    yield _requirement(
        quotas.get("network_interfaces"),
        needed=sum(of_nodes.values()) + others,
        spare=sum(replaced.values()),
        spare_for="replacing faulty nodes" if any(replaced.values()) else "",
        # in the environment's own VPC its nodes' interfaces can be identified, in an existing one they cannot
        usage="network_interfaces_beside_nodes" if environment.network.is_existing else "network_interfaces",
        unit="network interfaces",
        path=f"{path}.count" if of_nodes else path,
    )


def _security_groups(environment: Environment) -> Iterator[Requirement]:
    existing = environment.network.existing
    own_group = existing is None or existing.security_group_id is None
    file_systems = environment.storage.made_lustre
    # file systems use an existing group
    groups = 1 + len(file_systems) if own_group else 0
    groups += _SECURITY_GROUPS_OF_A_NEW_VPC if existing is None else 0
    groups += _SECURITY_GROUPS_OF_ENDPOINTS if environment.network.endpoint_zones() else 0
    groups += 0 if environment.eks.is_existing else _SECURITY_GROUPS_OF_A_NEW_CLUSTER
    yield _requirement(
        quotas.get("security_groups"),
        needed=groups,
        usage="security_groups",
        unit=plural(groups, "security group"),
        path="network",
    )
    rows = quotas.get("rules_per_security_group")
    rules = sum(1 if each.efa else len(lustre.TCP_PORTS) for each in file_systems) + _RULES_OF_THE_NODES_GROUP
    if own_group and rules > rows.default * _NEAR_THE_DEFAULT:
        yield _requirement(
            rows, needed=rules, unit="outbound rules in the nodes' security group", path="storage.lustre"
        )


def _eks(environment: Environment) -> Iterator[Requirement]:
    if not environment.eks.is_existing:
        yield _requirement(quotas.get("eks_clusters"), needed=1, usage="eks_clusters", unit="EKS cluster", path="eks")


def _lustre(environment: Environment) -> Iterator[Requirement]:
    systems = [(i, each) for i, each in enumerate(environment.storage.lustre) if each.existing is None]
    persistent = [(i, each) for i, each in systems if each.deployment_type != lustre.SCRATCH]
    if persistent:
        kind = lustre.DEPLOYMENT_TYPE
        yield _requirement(
            quotas.get("lustre_persistent_2_file_systems"),
            needed=len(persistent),
            usage=f"lustre_file_systems:{kind}",
            unit=plural(len(persistent), f"{kind} file system"),
            path="storage.lustre",
        )
    on_ssd = [(i, each) for i, each in persistent if not each.is_tiering]
    yield from _capacity("lustre_persistent_2_capacity_gib", lustre.DEPLOYMENT_TYPE, on_ssd)
    scratch = [(i, each) for i, each in systems if each.deployment_type == lustre.SCRATCH]
    yield from _capacity("lustre_scratch_capacity_gib", lustre.DEPLOYMENT_TYPES[lustre.SCRATCH], scratch)
    yield from _tiering([(i, each) for i, each in persistent if each.is_tiering])


def _capacity(key: str, kind: str, systems: Sequence[tuple[int, Lustre]]) -> Iterator[Requirement]:
    sizes = {index: each.capacity_gib for index, each in systems if each.capacity_gib}
    if not sizes:
        return
    largest = max(sizes, key=lambda index: sizes[index])
    yield _requirement(
        quotas.get(key),
        needed=sum(sizes.values()),
        usage=f"lustre_capacity_gib:{kind}",
        unit=f"GiB of {kind} storage",
        path=f"storage.lustre[{largest}].capacity_gib",
        # several capacities could be lowered in many ways
        lever="capacity_gib" if len(sizes) == 1 else "",
        step=_capacity_step(dict(systems)[largest]),
    )


def _tiering(systems: Sequence[tuple[int, Lustre]]) -> Iterator[Requirement]:
    rates = {index: each.throughput_capacity_mbps for index, each in systems if each.throughput_capacity_mbps}
    if not rates:
        return
    largest = max(rates, key=lambda index: rates[index])
    yield _requirement(
        quotas.get("lustre_intelligent_tiering_mbps"),
        needed=sum(rates.values()),
        usage="lustre_tiering_mbps",
        unit="MB/s of Intelligent-Tiering throughput",
        path=f"storage.lustre[{largest}].throughput_capacity_mbps",
        lever="throughput_capacity_mbps" if len(rates) == 1 else "",
        step=lustre.TIERING_THROUGHPUT_STEP_MBPS,
    )
    cached = [(i, each.read_cache.size_gib) for i, each in systems if each.read_cache and each.read_cache.size_gib]
    if cached:
        # the size of a proportional cache is not documented
        most, _ = max(cached, key=lambda row: row[1])
        yield _requirement(
            quotas.get("lustre_intelligent_tiering_read_cache_gib"),
            needed=sum(size for _, size in cached),
            usage="lustre_read_cache_gib",
            unit="GiB of Intelligent-Tiering read cache",
            path=f"storage.lustre[{most}].read_cache.size_gib",
        )


def _capacity_step(file_system: Lustre) -> int:
    throughput = file_system.resolved_throughput_mbps_per_tib
    if not file_system.efa or throughput is None:
        return lustre.CAPACITY_STEP_GIB
    return lustre.EFA_CAPACITY_STEP_GIB[throughput]


def _restricted_lustre(environment: Environment) -> Iterator[Requirement]:
    shared = environment.hyperpod.restricted_environment
    sizes = {
        f"hyperpod.restricted_instance_groups[{index}].lustre.capacity_gib": group.lustre.capacity_gib
        for index, group in enumerate(environment.hyperpod.restricted_instance_groups)
        if group.lustre is not None
    }
    if shared is not None:
        sizes["hyperpod.restricted_environment.lustre.capacity_gib"] = shared.lustre.capacity_gib
    if sizes:
        yield _requirement(
            quotas.get("hyperpod_restricted_lustre_tib"),
            needed=sum(sizes.values()) / _GIB_PER_TIB,
            usage="restricted_lustre_tib",
            unit="TiB of file systems of restricted instance groups",
            path=max(sizes, key=lambda path: sizes[path]),
        )


def _requirement(
    row: Quota,
    *,
    needed: float,
    unit: str,
    path: str = "",
    key: str = "",
    spare: float = 0,
    spare_for: str = "",
    usage: str = "",
    lever: str = "",
    step: float = 1,
    advisory: bool = False,
) -> Requirement:
    return Requirement(
        key=key or row.key,
        service=row.service,
        name=row.name,
        code=row.code or "",
        default=row.default,
        needed=needed,
        spare=spare,
        spare_for=spare_for,
        usage=usage,
        unit=unit,
        path=path,
        lever=lever,
        step=step,
        unsure_default=row.unsure_default,
        advisory=advisory,
    )


def _replaced(environment: Environment, instance_type: str) -> int:
    row = environment.instance_type(instance_type)
    recovers = environment.hyperpod.node_recovery == "automatic" and row is not None and row.is_accelerated
    return REPLACED_AT_ONCE if recovers else 0


def _first_node(groups: Sequence[_Group]) -> str:
    """Say what one more node is for: without it no pod of these groups ever runs."""
    names = " or ".join(dict.fromkeys(each.group.name for each in groups))
    return f"the first node that Karpenter adds to {names}"


def _largest(groups: Sequence[_Group]) -> str:
    return f"{max(groups, key=lambda each: each.group.count).path}.count"


def _all_of(groups: Sequence[_Group]) -> str:
    return f"{groups[0].path}.count" if len(groups) == 1 else "hyperpod.instance_groups"


def _count_of(groups: Sequence[_Group]) -> str:
    if not groups:
        return ""
    return "the count" if len(groups) == 1 else "the counts together"
