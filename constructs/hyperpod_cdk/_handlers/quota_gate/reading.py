"""Reads quotas and what others use of them, over any way to call AWS: preflight's or plain boto3 in Lambda."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .comparison import normalized

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class NoSuchQuota(Exception):  # noqa: N818 - an answer of AWS, not a fault of the program
    """Service Quotas knows no such quota, or has no applied value for it (its NoSuchResourceException)."""


class NotTold(LookupError):  # noqa: N818 - an answer of AWS, not a fault of the program
    """Service Quotas has the quota and could not find out its value; the default is then no answer."""


class Api(Protocol):
    """A way to call AWS. Services and operations are those of boto3: ``ec2``, ``describe_vpcs``.

    The same question may come several times in a run, from several threads: remember answers.
    """

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call; raises NoSuchQuota for NoSuchResourceException, whatever it likes for other refusals."""
        ...

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        """Make a call as often as there are pages and give the items of ``key`` of all of them."""
        ...

    def each(self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT]:
        """Call ``function`` with each item, side by side where possible; results in order, the first error raised."""
        ...


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota as the account has it: the applied value, or AWS's default where there is none (``is_default``)."""

    name: str
    code: str
    value: float
    is_default: bool
    is_adjustable: bool


@dataclass(frozen=True, kw_only=True)
class Own:
    """What belongs to the environment itself, so that it is not counted as used by others.

    ``stacks`` are CloudFormation's stack names, found in the tag ``aws:cloudformation:stack-name``; the clusters are
    known by their names. ``account`` is the environment's: VPCs that another account shares with it take nothing of its
    quota. Empty: whoever owns them, VPCs count.
    """

    stacks: tuple[str, ...] = ()
    hyperpod_cluster: str = ""
    eks_cluster: str = ""
    account: str = ""


def read_quota(api: Api, service: str, name: str, code: str | None = None) -> Quota:
    """Give the quota whose normalised name is ``name``.

    Raises NoSuchQuota where the service has none of that name, NotTold where AWS does not know its value.
    ``code`` is tried first. Where it leads to another name, or nowhere, all pages of the applied values and of AWS's
    defaults are read: a quota without an applied value is missing from the former, which does not mean zero.
    """
    wanted = normalized(name)
    if code:
        for operation, is_default in (("get_service_quota", False), ("get_aws_default_service_quota", True)):
            try:
                row = api.call("service-quotas", operation, ServiceCode=service, QuotaCode=code)["Quota"]
            except NoSuchQuota:
                continue
            if normalized(row["QuotaName"]) != wanted:
                break
            return _quota(row, is_default=is_default)
    applied, defaults = api.each(
        lambda operation: api.pages("service-quotas", operation, "Quotas", ServiceCode=service),
        ("list_service_quotas", "list_aws_default_service_quotas"),
    )
    for rows, is_default in ((applied, False), (defaults, True)):
        for row in rows:
            if normalized(row["QuotaName"]) == wanted:
                return _quota(row, is_default=is_default)
    raise NoSuchQuota(f'Service Quotas has no quota "{name}" of {service}')


def used(api: Api, kind: str, own: Own) -> float:
    """Give how much of a kind of thing others than ``own`` use in the account and region.

    Kinds: ``hyperpod_instances`` (all, Spot or not; with ``:<ml type>`` only those of a type that are not Spot),
    ``hyperpod_spot_instances`` (all Spot ones, or ``:<ml type>``),
    ``reserved_instances:<ml type>``, ``training_plans``, ``vpcs``, ``elastic_ips``, ``internet_gateways``,
    ``nat_gateways:<AZ ID>``, ``network_interfaces`` (``:<AZ ID>``), ``network_interfaces_beside_nodes`` (without
    those of the environment's own nodes, for a VPC that is not its own), ``security_groups``, ``gateway_endpoints``,
    ``interface_endpoints:<VPC ID>``, ``subnets:<VPC ID>``, ``cidrs:<VPC ID>``, ``eks_clusters``,
    ``lustre_file_systems`` and ``lustre_capacity_gib`` (both ``:<deployment type>``), ``lustre_tiering_mbps`` and
    ``lustre_read_cache_gib`` (of Intelligent-Tiering file systems), ``restricted_lustre_tib`` (the
    file systems that restricted instance groups have). Raises ValueError for another.
    """
    word, _, detail = kind.partition(":")
    count = _COUNTS.get(word)
    if count is None:
        raise ValueError(f'no such kind of use: "{kind}"; the kinds are {", ".join(_COUNTS)}')
    return float(count(api, own, detail))


def calls_of(kind: str) -> tuple[str, ...]:
    """Give the IAM actions that ``used`` needs for a kind; for this API they are the calls it makes."""
    return _ACTIONS[kind.partition(":")[0]]


def _quota(row: Mapping[str, Any], *, is_default: bool) -> Quota:
    if row.get("Value") is None:
        reason = row.get("ErrorReason", {}).get("ErrorCode") or "it gives no reason"
        raise NotTold(f'Service Quotas could not find out the value of "{row["QuotaName"]}" ({reason})')
    return Quota(
        name=row["QuotaName"],
        code=row["QuotaCode"],
        value=float(row["Value"]),
        is_default=is_default,
        is_adjustable=bool(row.get("Adjustable", True)),
    )


def _hyperpod_instances(api: Api, own: Own, instance_type: str) -> float:
    return _instances(api, own, instance_type, markets=(False,) if instance_type else (False, True))


def _hyperpod_spot_instances(api: Api, own: Own, instance_type: str) -> float:
    return _instances(api, own, instance_type, markets=(True,))


def _groups_of(cluster: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())]


def _restricted_lustre_tib(api: Api, own: Own, _detail: str) -> float:
    environments = [
        environment
        for cluster in _clusters_of_others(api, own)
        for environment in (
            *(group.get("EnvironmentConfig", {}) for group in cluster.get("RestrictedInstanceGroups", ())),
            cluster.get("RestrictedInstanceGroupsConfig", {}).get("SharedEnvironmentConfig", {}),
        )
    ]
    # the shared file system is told as it is and as it is to become
    sizes = (
        max(
            environment.get(key, {}).get("SizeInGiB", 0)
            for key in ("FSxLustreConfig", "CurrentFSxLustreConfig", "DesiredFSxLustreConfig")
        )
        for environment in environments
    )
    return float(sum(sizes)) / _GIB_PER_TIB


def _clusters_of_others(api: Api, own: Own) -> Sequence[Mapping[str, Any]]:
    summaries = api.pages("sagemaker", "list_clusters", "ClusterSummaries")
    names = [each["ClusterName"] for each in summaries if each["ClusterName"] != own.hyperpod_cluster]
    return api.each(lambda name: api.call("sagemaker", "describe_cluster", ClusterName=name), names)


def _instances(api: Api, own: Own, instance_type: str, *, markets: tuple[bool, ...]) -> float:
    clusters = _clusters_of_others(api, own)
    return sum(
        _instances_of(group, instance_type, is_ending=cluster.get("ClusterStatus") in _ENDING_CLUSTERS)
        for cluster in clusters
        for group in _groups_of(cluster)
        if ("Spot" in group.get("CapacityRequirements", {})) in markets
    )


def _instances_of(group: Mapping[str, Any], instance_type: str, *, is_ending: bool) -> float:
    """Count the instances of a group, those that are still to come too; a flexible group's are of its first type.

    To a cluster that failed, or that is being deleted, none will come.
    """
    present = group.get("CurrentCount", 0)
    target = 0 if is_ending else group.get("TargetCount", 0)
    count = max(present, target)
    if not instance_type:
        return float(count)
    if group.get("InstanceType"):
        return float(count) if group["InstanceType"] == instance_type else 0.0
    running = {each["InstanceType"]: each.get("CurrentCount", 0) for each in group.get("InstanceTypeDetails", ())}
    preferred = next(iter(group.get("InstanceRequirements", {}).get("DesiredInstanceTypes", ())), "")
    to_come = max(0, count - sum(running.values())) if preferred == instance_type else 0
    return float(running.get(instance_type, 0) + to_come)


def _training_plans(api: Api, _own: Own, _detail: str) -> float:
    return len([plan for plan in _plans(api) if plan.get("Status") in _LIVE_PLANS])


def _reserved_instances(api: Api, _own: Own, instance_type: str) -> float:
    return sum(_largest_block(plan, instance_type) for plan in _plans(api) if plan.get("Status") in _LIVE_PLANS)


def _largest_block(plan: Mapping[str, Any], instance_type: str) -> float:
    """Give the instances of a plan; its blocks follow each other in time, so they do not add up."""
    blocks = plan.get("ReservedCapacitySummaries", ())
    counts = [block.get("TotalInstanceCount", 0) for block in blocks if block.get("InstanceType") == instance_type]
    return float(max(counts, default=0))


def _plans(api: Api) -> list[Any]:
    return api.pages("sagemaker", "list_training_plans", "TrainingPlanSummaries")


def _vpcs(api: Api, own: Own, _detail: str) -> float:
    vpcs = api.pages("ec2", "describe_vpcs", "Vpcs")
    return _of_others([vpc for vpc in vpcs if not own.account or vpc.get("OwnerId", own.account) == own.account], own)


def _elastic_ips(api: Api, own: Own, _detail: str) -> float:
    return _of_others(api.call("ec2", "describe_addresses")["Addresses"], own)


def _internet_gateways(api: Api, own: Own, _detail: str) -> float:
    return _of_others(api.pages("ec2", "describe_internet_gateways", "InternetGateways"), own)


def _nat_gateways(api: Api, own: Own, az_id: str) -> float:
    gateways, subnets = api.each(
        lambda question: api.pages("ec2", *question),
        (("describe_nat_gateways", "NatGateways"), ("describe_subnets", "Subnets")),
    )
    zones = {subnet["SubnetId"]: subnet.get("AvailabilityZoneId", "") for subnet in subnets}
    return _of_others(
        [
            gateway
            for gateway in gateways
            if gateway.get("State") in _LIVE_GATEWAYS and zones.get(gateway.get("SubnetId", "")) == az_id
        ],
        own,
    )


def _network_interfaces(api: Api, own: Own, az_id: str) -> float:
    return len(_interfaces_of_others(api, own, az_id))


def _network_interfaces_beside_nodes(api: Api, own: Own, az_id: str) -> float:
    asks = (lambda: _interfaces_of_others(api, own, az_id), lambda: _places_of_nodes(api, own))
    interfaces, places = api.each(_asked, asks)
    return len([each for each in interfaces if not any(_stands_in(each, place) for place in places)])


def _asked(ask: Callable[[], list[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    return ask()


def _places_of_nodes(api: Api, own: Own) -> list[Mapping[str, Any]]:
    """Give where the nodes of the environment's cluster stand: subnets and security groups, none before it stands."""
    summaries = api.pages("sagemaker", "list_clusters", "ClusterSummaries")
    if own.hyperpod_cluster not in {each["ClusterName"] for each in summaries}:
        return []
    cluster = api.call("sagemaker", "describe_cluster", ClusterName=own.hyperpod_cluster)
    places = [
        cluster.get("VpcConfig"),
        *(group.get("OverrideVpcConfig") for group in _groups_of(cluster)),
    ]
    return [place for place in places if place]


def _stands_in(interface: Mapping[str, Any], place: Mapping[str, Any]) -> bool:
    groups = {group["GroupId"] for group in interface.get("Groups", ())}
    return interface.get("SubnetId") in place["Subnets"] and groups.issuperset(place["SecurityGroupIds"])


def _interfaces_of_others(api: Api, own: Own, az_id: str) -> list[Mapping[str, Any]]:
    interfaces, vpcs, subnets = api.each(
        lambda question: api.pages("ec2", *question),
        (
            ("describe_network_interfaces", "NetworkInterfaces"),
            ("describe_vpcs", "Vpcs"),
            ("describe_subnets", "Subnets"),
        ),
    )
    # the interfaces of nodes, of EKS and of FSx carry no tag of a stack; those in the environment's own VPC are its own
    ours = {vpc["VpcId"] for vpc in vpcs if _is_own(vpc, own)}
    zones = {subnet["SubnetId"]: subnet.get("AvailabilityZoneId", "") for subnet in subnets}
    return [
        each
        for each in interfaces
        if each.get("VpcId") not in ours
        and not _is_own(each, own)
        and az_id in {"", zones.get(each.get("SubnetId", ""))}
    ]


def _security_groups(api: Api, own: Own, _detail: str) -> float:
    groups, vpcs = api.each(
        lambda question: api.pages("ec2", *question),
        (("describe_security_groups", "SecurityGroups"), ("describe_vpcs", "Vpcs")),
    )
    # EKS and the VPC itself make groups too, without a stack's tag
    ours = {vpc["VpcId"] for vpc in vpcs if _is_own(vpc, own)}
    return _of_others([each for each in groups if each.get("VpcId") not in ours], own)


def _gateway_endpoints(api: Api, own: Own, _detail: str) -> float:
    endpoints = api.pages("ec2", "describe_vpc_endpoints", "VpcEndpoints")
    return _of_others([each for each in endpoints if each.get("VpcEndpointType") == "Gateway"], own)


def _interface_endpoints(api: Api, own: Own, vpc_id: str) -> float:
    endpoints = api.pages("ec2", "describe_vpc_endpoints", "VpcEndpoints")
    return _of_others(
        [each for each in endpoints if each.get("VpcEndpointType") == "Interface" and each.get("VpcId") == vpc_id], own
    )


def _subnets(api: Api, own: Own, vpc_id: str) -> float:
    subnets = api.pages("ec2", "describe_subnets", "Subnets")
    return _of_others([each for each in subnets if each.get("VpcId") == vpc_id], own)


def _cidrs(api: Api, own: Own, vpc_id: str) -> float:
    vpcs = [
        vpc for vpc in api.pages("ec2", "describe_vpcs", "Vpcs") if vpc["VpcId"] == vpc_id and not _is_own(vpc, own)
    ]
    blocks = [block for vpc in vpcs for block in vpc.get("CidrBlockAssociationSet", ())]
    return len([block for block in blocks if block.get("CidrBlockState", {}).get("State") in _LIVE_BLOCKS])


def _eks_clusters(api: Api, own: Own, _detail: str) -> float:
    return len([name for name in api.pages("eks", "list_clusters", "clusters") if name != own.eks_cluster])


def _lustre_file_systems(api: Api, own: Own, deployment_type: str) -> float:
    return len(_file_systems(api, own, deployment_type))


def _lustre_capacity_gib(api: Api, own: Own, deployment_type: str) -> float:
    return sum(float(each.get("StorageCapacity", 0)) for each in _file_systems(api, own, deployment_type))


def _lustre_tiering_mbps(api: Api, own: Own, _detail: str) -> float:
    return sum(float(each["LustreConfiguration"].get("ThroughputCapacity", 0)) for each in _file_systems(api, own, ""))


def _lustre_read_cache_gib(api: Api, own: Own, _detail: str) -> float:
    caches = (each["LustreConfiguration"].get("DataReadCacheConfiguration", {}) for each in _file_systems(api, own, ""))
    return sum(float(cache.get("SizeGiB", 0)) for cache in caches)


def _file_systems(api: Api, own: Own, deployment_type: str) -> list[Any]:
    return [
        each
        for each in api.pages("fsx", "describe_file_systems", "FileSystems")
        if each.get("FileSystemType") == "LUSTRE"
        and deployment_type in {"", each.get("LustreConfiguration", {}).get("DeploymentType")}
        and not _is_own(each, own)
    ]


def _of_others(things: Iterable[Mapping[str, Any]], own: Own) -> float:
    return len([each for each in things if not _is_own(each, own)])


def _is_own(thing: Mapping[str, Any], own: Own) -> bool:
    tags = thing.get("Tags") or thing.get("TagSet") or ()
    return any(
        (tag.get("Key") == _STACK_TAG and tag.get("Value") in own.stacks)
        # EKS makes a group for its cluster that carries no stack's tag
        or (tag.get("Key") == _EKS_TAG and tag.get("Value") == own.eks_cluster)
        for tag in tags
    )


_GIB_PER_TIB = 1024
_STACK_TAG = "aws:cloudformation:stack-name"
_EKS_TAG = "aws:eks:cluster-name"
_ENDING_CLUSTERS = ("Deleting", "Failed")
_LIVE_PLANS = ("Pending", "Scheduled", "Active")
_LIVE_GATEWAYS = ("pending", "available", "deleting")
_LIVE_BLOCKS = ("associating", "associated")

_COUNTS: Mapping[str, Callable[[Api, Own, str], float]] = {
    "hyperpod_instances": _hyperpod_instances,
    "hyperpod_spot_instances": _hyperpod_spot_instances,
    "reserved_instances": _reserved_instances,
    "training_plans": _training_plans,
    "vpcs": _vpcs,
    "elastic_ips": _elastic_ips,
    "internet_gateways": _internet_gateways,
    "nat_gateways": _nat_gateways,
    "network_interfaces": _network_interfaces,
    "network_interfaces_beside_nodes": _network_interfaces_beside_nodes,
    "security_groups": _security_groups,
    "gateway_endpoints": _gateway_endpoints,
    "interface_endpoints": _interface_endpoints,
    "subnets": _subnets,
    "cidrs": _cidrs,
    "eks_clusters": _eks_clusters,
    "lustre_file_systems": _lustre_file_systems,
    "lustre_capacity_gib": _lustre_capacity_gib,
    "lustre_tiering_mbps": _lustre_tiering_mbps,
    "lustre_read_cache_gib": _lustre_read_cache_gib,
    "restricted_lustre_tib": _restricted_lustre_tib,
}

_CLUSTERS = ("sagemaker:ListClusters", "sagemaker:DescribeCluster")
_INTERFACES = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeVpcs", "ec2:DescribeSubnets")

_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "hyperpod_instances": _CLUSTERS,
    "hyperpod_spot_instances": _CLUSTERS,
    "reserved_instances": ("sagemaker:ListTrainingPlans",),
    "training_plans": ("sagemaker:ListTrainingPlans",),
    "vpcs": ("ec2:DescribeVpcs",),
    "elastic_ips": ("ec2:DescribeAddresses",),
    "internet_gateways": ("ec2:DescribeInternetGateways",),
    "nat_gateways": ("ec2:DescribeNatGateways", "ec2:DescribeSubnets"),
    "network_interfaces": _INTERFACES,
    "network_interfaces_beside_nodes": (*_INTERFACES, *_CLUSTERS),
    "security_groups": ("ec2:DescribeSecurityGroups", "ec2:DescribeVpcs"),
    "gateway_endpoints": ("ec2:DescribeVpcEndpoints",),
    "interface_endpoints": ("ec2:DescribeVpcEndpoints",),
    "subnets": ("ec2:DescribeSubnets",),
    "cidrs": ("ec2:DescribeVpcs",),
    "eks_clusters": ("eks:ListClusters",),
    "lustre_file_systems": ("fsx:DescribeFileSystems",),
    "lustre_capacity_gib": ("fsx:DescribeFileSystems",),
    "lustre_tiering_mbps": ("fsx:DescribeFileSystems",),
    "lustre_read_cache_gib": ("fsx:DescribeFileSystems",),
    "restricted_lustre_tib": _CLUSTERS,
}
