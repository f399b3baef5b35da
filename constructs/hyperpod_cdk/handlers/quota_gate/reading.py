"""Reads quotas and what others use of them, over any way to call AWS: preflight's or plain boto3 in Lambda."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .comparison import Unread, Usage, normalized

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

QUOTA_ACTIONS = (
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
    "servicequotas:ListAWSDefaultServiceQuotas",
    "servicequotas:ListServiceQuotas",
)
"""What reading a quota takes, whoever reads it; none of them knows resource-level rights."""


class NotAnswered(Exception):  # noqa: N818 - an answer that is missing, not a fault of the program
    """AWS gave no answer: no permission, throttled, no such service there, offline. Never a pass.

    ``reason`` is a sentence without a full stop; ``action`` is the IAM action that was missing, or empty. ``said`` is
    AWS's own sentence where it wrote one and ``reason`` does not hold it.
    """

    def __init__(self, reason: str, *, action: str = "", said: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.action = action
        self.said = said

    @property
    def sentence(self) -> str:
        """Say why, what to allow and what AWS says, in one line."""
        allow = f"; allow {self.action}" if self.action else ""
        return f"{self.reason}{allow}{quoted(self.said)}"


def quoted(said: str) -> str:
    """Return AWS's own sentence as the end of ours; empty where AWS wrote none."""
    return f'; AWS says: "{said}"' if said else ""


class NotFound(Exception):  # noqa: N818 - an answer of AWS, not a fault of the program
    """AWS says that what was asked about is not there."""


class NoSuchQuota(NotFound):
    """Service Quotas knows no such quota, or has no applied value for it (its NoSuchResourceException)."""


class NotTold(LookupError):  # noqa: N818 - an answer of AWS, not a fault of the program
    """Service Quotas has the quota and could not find out its value; the default is then no answer."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """The items of a list: of its first pages, up to the one that did not come, for which ``missing`` says why."""

    items: Sequence[Any]
    missing: NotAnswered | None = None

    def whole(self) -> list[Any]:
        """Return the items where all pages came; raises ``missing`` else."""
        if self.missing is not None:
            raise copy.copy(self.missing) from self.missing.__cause__
        return list(self.items)


class Api(Protocol):
    """A way to call AWS. Services and operations are those of boto3: ``ec2``, ``describe_vpcs``.

    The same question may come several times in a run, from several threads: remember answers.
    """

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call; raises NoSuchQuota or NotFound for what is not there, NotAnswered for other refusals."""
        ...

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        """Make a call as often as there are pages; give the items of ``key`` of those that came. Raises nothing."""
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

    ``stacks`` (tuple[str, ...]): CloudFormation's stack names, found in the tag ``aws:cloudformation:stack-name``.
    Default: none.

    ``hyperpod_cluster`` (str): name of the HyperPod cluster, by which it is known. Default: empty, none.

    ``eks_cluster`` (str): name of the EKS cluster. Default: empty, none.

    ``account`` (str): the environment's account: VPCs that another account shares with it take nothing of its quota.
    Default: empty, and VPCs count whoever owns them.
    """

    stacks: tuple[str, ...] = ()
    hyperpod_cluster: str = ""
    eks_cluster: str = ""
    account: str = ""


def read_quota(api: Api, service: str, name: str, code: str | None = None) -> Quota:
    """Return the quota whose normalised name is ``name``.

    Raises NoSuchQuota where the service has none of that name, NotTold where AWS does not know its value.
    ``code`` is tried first. Where it leads to another name, or nowhere, or where there is no permission to ask by it,
    all pages of the applied values and of AWS's defaults are read: a quota without an applied value is missing from the
    former, which does not mean zero.
    """
    wanted = normalized(name)
    denied: NotAnswered | None = None
    if code:
        for operation, is_default in (("get_service_quota", False), ("get_aws_default_service_quota", True)):
            try:
                row = api.call("service-quotas", operation, ServiceCode=service, QuotaCode=code)["Quota"]
            except NoSuchQuota:
                continue
            except NotAnswered as missing:
                if not missing.action:
                    raise
                denied = missing
                # AWS's default is no answer where there may be an applied value
                break
            if normalized(row["QuotaName"]) != wanted:
                break
            return _quota(row, is_default=is_default)
    try:
        return _listed_quota(api, service, wanted)
    except NoSuchQuota:
        raise NoSuchQuota(f'Service Quotas has no quota "{name}" of {service}') from None
    except NotAnswered:
        # what was denied first is the smaller right to give
        if denied is not None:
            raise denied from None
        raise


def _listed_quota(api: Api, service: str, wanted: str) -> Quota:
    applied, defaults = api.each(
        lambda operation: api.listed("service-quotas", operation, "Quotas", ServiceCode=service),
        ("list_service_quotas", "list_aws_default_service_quotas"),
    )
    for listed, is_default in ((applied, False), (defaults, True)):
        for row in listed.items:
            if normalized(row["QuotaName"]) == wanted:
                return _quota(row, is_default=is_default)
        # a page that did not come may hold it; for an applied value AWS's default is then no answer
        listed.whole()
    raise NoSuchQuota(wanted)


def is_gone(code: str, message: str) -> bool:
    """Return whether an error of SageMaker's Describe operations means that there is no such thing.

    botocore's model names ResourceNotFound; several of them say ValidationException for what is not there.
    """
    return code in {"ResourceNotFound", "ResourceNotFoundException"} or (
        code == "ValidationException" and _GONE.search(message) is not None
    )


def used(api: Api, kind: str, own: Own) -> Usage:
    """Count how much of a kind of thing others than ``own`` use in the account and region.

    What AWS did not answer about is in ``Usage.unread``, and ``Usage.at_least`` is then a lower bound; what it says is
    not there does not count. Kinds: ``hyperpod_instances`` (all, Spot or not; with ``:<ml type>`` only those of a type
    that are not Spot), ``hyperpod_spot_instances`` (all Spot ones, or ``:<ml type>``),
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
    return count(api, own, detail)


def calls_of(kind: str) -> tuple[str, ...]:
    """Return the IAM actions that ``used`` needs for a kind; for this API they are the calls it makes."""
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


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What was read of a kind of thing, and what of it was not."""

    kind: str
    things: Sequence[Any]
    unread: tuple[Unread, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether there is no more than was read."""
        return not self.unread


_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a member that is missing, or of another kind than AWS documents, raises in who reads it."""


def _seen(api: Api, service: str, operation: str, key: str, kind: str) -> _Seen:
    listed = api.listed(service, operation, key)
    missing = listed.missing
    unread = () if missing is None else (_unread(kind, missing),)
    return _Seen(kind=kind, things=listed.items, unread=unread)


def _unread(kind: str, missing: NotAnswered, name: str = "") -> Unread:
    return Unread(kind=kind, name=name, reason=missing.reason, action=missing.action, said=missing.said)


def _garbled(kind: str, error: Exception, name: str = "") -> Unread:
    detail = f"{error} is missing" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return Unread(kind=kind, name=name, reason=f"AWS's answer about it cannot be read: {detail}")


def _tally(seen: _Seen, amount: Callable[[Any], float | None], *, depends_on: Sequence[Unread] = ()) -> Usage:
    """Add the amounts of what was seen.

    An amount of None is one that cannot be known without what ``depends_on`` says was not read.
    """
    total, unread = 0.0, list(seen.unread)
    for thing in seen.things:
        try:
            counted = amount(thing)
        except _UNREADABLE as error:
            unread.append(_garbled(seen.kind, error))
            continue
        if counted is None:
            unread.extend(depends_on)
        else:
            total += counted
    return Usage(at_least=total, unread=tuple(dict.fromkeys(unread)))


def _of_others(seen: _Seen, own: Own, counts: Callable[[Any], bool] = lambda _thing: True) -> Usage:
    return _tally(seen, lambda thing: float(counts(thing) and not _is_own(thing, own)))


_CLUSTER = "HyperPod cluster"
_GROUP = "instance group"


def _cluster_list(api: Api) -> _Seen:
    return _seen(api, "sagemaker", "list_clusters", "ClusterSummaries", _CLUSTER)


def _clusters_of_others(api: Api, own: Own) -> _Seen:
    """Describe every cluster but the environment's own; one that is gone since it was listed is not there."""
    seen = _cluster_list(api)
    names, unread = [], list(seen.unread)
    for each in seen.things:
        try:
            names.append(str(each["ClusterName"]))
        except _UNREADABLE as error:
            unread.append(_garbled(_CLUSTER, error))
    found = api.each(lambda name: _described(api, name), [name for name in names if name != own.hyperpod_cluster])
    unread += [each for each in found if isinstance(each, Unread)]
    clusters = [each for each in found if each is not None and not isinstance(each, Unread)]
    return _Seen(kind=_CLUSTER, things=clusters, unread=tuple(unread))


def _described(api: Api, name: str) -> Mapping[str, Any] | Unread | None:
    try:
        return api.call("sagemaker", "describe_cluster", ClusterName=name)
    except NotFound:
        return None
    except NotAnswered as missing:
        return _unread(_CLUSTER, missing, name)


def _hyperpod_instances(api: Api, own: Own, instance_type: str) -> Usage:
    return _instances(api, own, instance_type, markets=(False,) if instance_type else (False, True))


def _hyperpod_spot_instances(api: Api, own: Own, instance_type: str) -> Usage:
    return _instances(api, own, instance_type, markets=(True,))


def groups_of(cluster: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the groups in an answer of DescribeCluster, restricted ones last.

    Raises KeyError for an answer without ``InstanceGroups``, which every answer has (botocore 1.44.5,
    DescribeClusterResponse): such a cluster is not one without groups.
    """
    return [*cluster["InstanceGroups"], *cluster.get("RestrictedInstanceGroups", ())]


def _restricted_lustre_tib(api: Api, own: Own, _detail: str) -> Usage:
    def tib(cluster: Mapping[str, Any]) -> float:
        environments = (
            *(group.get("EnvironmentConfig", {}) for group in cluster.get("RestrictedInstanceGroups", ())),
            cluster.get("RestrictedInstanceGroupsConfig", {}).get("SharedEnvironmentConfig", {}),
        )
        # the shared file system is told as it is and as it is to become
        sizes = (
            max(
                environment[key]["SizeInGiB"] if key in environment else 0
                for key in ("FSxLustreConfig", "CurrentFSxLustreConfig", "DesiredFSxLustreConfig")
            )
            for environment in environments
        )
        return float(sum(sizes)) / _GIB_PER_TIB

    return _tally(_clusters_of_others(api, own), tib)


def _instances(api: Api, own: Own, instance_type: str, *, markets: tuple[bool, ...]) -> Usage:
    clusters = _clusters_of_others(api, own)
    groups, unread = [], list(clusters.unread)
    for cluster in clusters.things:
        try:
            is_ending = cluster.get("ClusterStatus") in _ENDING_CLUSTERS
            groups += [(group, is_ending) for group in groups_of(cluster)]
        except _UNREADABLE as error:
            unread.append(_garbled(_CLUSTER, error))
    # a group that grows or shrinks has two numbers: one of them alone is the least that it can be
    for group, is_ending in groups:
        numbers = ("CurrentCount",) if is_ending else ("CurrentCount", "TargetCount")
        lost = [name for name in numbers if isinstance(group, Mapping) and name not in group]
        unread += [_garbled(_GROUP, KeyError(name)) for name in lost]

    def count(of: tuple[Mapping[str, Any], bool]) -> float:
        group, is_ending = of
        is_wanted = ("Spot" in group.get("CapacityRequirements", {})) in markets
        return _instances_of(group, instance_type, is_ending=is_ending) if is_wanted else 0.0

    return _tally(_Seen(kind=_GROUP, things=groups, unread=tuple(unread)), count)


def _instances_of(group: Mapping[str, Any], instance_type: str, *, is_ending: bool) -> float:
    """Count the instances of a group, those that are still to come too; a flexible group's are of its first type.

    To a cluster that failed, or that is being deleted, none will come. Raises KeyError for a group that says neither
    how many it has nor how many it is to have, and for one with instances that does not say of which type.
    """
    present = group["CurrentCount"] if "TargetCount" not in group else group.get("CurrentCount", 0)
    target = 0 if is_ending else group.get("TargetCount", 0)
    count = max(present, target)
    if not instance_type:
        return float(count)
    if group.get("InstanceType"):
        return float(count) if group["InstanceType"] == instance_type else 0.0
    running = {each["InstanceType"]: each.get("CurrentCount", 0) for each in group.get("InstanceTypeDetails", ())}
    others = max(0, count - sum(running.values()))
    # without types neither is known
    if others and group["InstanceRequirements"]["DesiredInstanceTypes"][0] != instance_type:
        others = 0
    return float(running.get(instance_type, 0) + others)


def _training_plans(api: Api, _own: Own, _detail: str) -> Usage:
    return _tally(_plans(api), lambda plan: float(plan["Status"] in _LIVE_PLANS))


def _reserved_instances(api: Api, _own: Own, instance_type: str) -> Usage:
    return _tally(
        _plans(api), lambda plan: _largest_block(plan, instance_type) if plan["Status"] in _LIVE_PLANS else 0.0
    )


def _largest_block(plan: Mapping[str, Any], instance_type: str) -> float:
    """Return the instances of a plan; its blocks follow each other in time, so they do not add up."""
    blocks = plan["ReservedCapacitySummaries"]
    counts = [block["TotalInstanceCount"] for block in blocks if block["InstanceType"] == instance_type]
    return float(max(counts, default=0))


def _plans(api: Api) -> _Seen:
    return _seen(api, "sagemaker", "list_training_plans", "TrainingPlanSummaries", "training plan")


def _ec2(api: Api, operation: str, key: str, kind: str) -> _Seen:
    return _seen(api, "ec2", operation, key, kind)


_VPCS = ("describe_vpcs", "Vpcs", "VPC")
_SUBNETS = ("describe_subnets", "Subnets", "subnet")
_INTERFACES_ASKED = ("describe_network_interfaces", "NetworkInterfaces", "network interface")


def _vpcs(api: Api, own: Own, _detail: str) -> Usage:
    return _of_others(
        _ec2(api, *_VPCS), own, lambda vpc: not own.account or vpc.get("OwnerId", own.account) == own.account
    )


def _elastic_ips(api: Api, own: Own, _detail: str) -> Usage:
    return _of_others(_ec2(api, "describe_addresses", "Addresses", "Elastic IP address"), own)


def _internet_gateways(api: Api, own: Own, _detail: str) -> Usage:
    return _of_others(_ec2(api, "describe_internet_gateways", "InternetGateways", "internet gateway"), own)


def _zones(subnets: _Seen) -> _Seen:
    """Return pairs of a subnet's ID and the ID of its zone."""
    return _pairs(subnets, lambda subnet: (str(subnet["SubnetId"]), str(subnet["AvailabilityZoneId"])))


def _whose(vpcs: _Seen, own: Own) -> _Seen:
    """Return pairs of a VPC's ID and whether it is the environment's own."""
    return _pairs(vpcs, lambda vpc: (str(vpc["VpcId"]), _is_own(vpc, own)))


def _pairs(seen: _Seen, pair: Callable[[Any], tuple[str, Any]]) -> _Seen:
    pairs, unread = [], list(seen.unread)
    for thing in seen.things:
        try:
            pairs.append(pair(thing))
        except _UNREADABLE as error:
            unread.append(_garbled(seen.kind, error))
    return _Seen(kind=seen.kind, things=pairs, unread=tuple(unread))


def _looked_up(pairs: _Seen, default: ResultT) -> Callable[[str], ResultT | None]:
    """Return what finds the value to a name: ``default`` where there is none, None where it may not have been read."""
    values: dict[str, ResultT] = dict(pairs.things)
    otherwise = default if pairs.is_whole else None
    return lambda name: values.get(name, otherwise)


def _nat_gateways(api: Api, own: Own, az_id: str) -> Usage:
    gateways, subnets = api.each(
        lambda question: _ec2(api, *question),
        (("describe_nat_gateways", "NatGateways", "NAT gateway"), _SUBNETS),
    )
    zones = _zones(subnets)
    zone_of = _looked_up(zones, "")

    def count(gateway: Mapping[str, Any]) -> float | None:
        # a regional one is in no subnet and no single zone (botocore 1.44.5, NatGateway)
        is_zonal = gateway.get("AvailabilityMode") != "regional"
        if gateway["State"] not in _LIVE_GATEWAYS or _is_own(gateway, own) or not is_zonal:
            return 0.0
        zone = zone_of(gateway["SubnetId"])
        return None if zone is None else float(zone == az_id)

    return _tally(gateways, count, depends_on=zones.unread)


def _network_interfaces(api: Api, own: Own, az_id: str) -> Usage:
    return _interfaces_of_others(api, own, az_id, _Seen(kind=_CLUSTER, things=()))


def _network_interfaces_beside_nodes(api: Api, own: Own, az_id: str) -> Usage:
    return _interfaces_of_others(api, own, az_id, _places_of_nodes(api, own))


def _interfaces_of_others(api: Api, own: Own, az_id: str, nodes: _Seen) -> Usage:
    """Count the interfaces in a zone (empty: in all) that are neither the environment's nor where ``nodes`` stand.

    The interfaces of nodes, of EKS and of FSx carry no tag of a stack; those in the environment's own VPC are its own.
    """
    interfaces, vpcs, subnets = api.each(lambda question: _ec2(api, *question), (_INTERFACES_ASKED, _VPCS, _SUBNETS))
    owners, zones = _whose(vpcs, own), _zones(subnets)
    is_own_vpc, zone_of = _looked_up(owners, default=False), _looked_up(zones, "")

    def count(interface: Mapping[str, Any]) -> float | None:
        is_own = _is_own(interface, own) or is_own_vpc(interface.get("VpcId", ""))
        zone = zone_of(interface["SubnetId"]) if az_id else ""
        if is_own or zone not in {None, az_id} or any(_stands_in(interface, place) for place in nodes.things):
            return 0.0
        return 1.0 if is_own is not None and zone is not None and nodes.is_whole else None

    return _tally(interfaces, count, depends_on=(*owners.unread, *zones.unread, *nodes.unread))


def _places_of_nodes(api: Api, own: Own) -> _Seen:
    """Return where the nodes of the environment's cluster stand: subnets and security groups, none before it stands."""
    seen = _cluster_list(api)
    nowhere = _Seen(kind=_CLUSTER, things=())
    names = _pairs(seen, lambda each: (str(each["ClusterName"]), None))
    if names.is_whole and own.hyperpod_cluster not in dict(names.things):
        return nowhere
    cluster = _described(api, own.hyperpod_cluster)
    if cluster is None:
        return nowhere
    if isinstance(cluster, Unread):
        return _Seen(kind=_CLUSTER, things=(), unread=(cluster,))
    try:
        places = [cluster.get("VpcConfig"), *(group.get("OverrideVpcConfig") for group in groups_of(cluster))]
    except _UNREADABLE as error:
        return _Seen(kind=_CLUSTER, things=(), unread=(_garbled(_CLUSTER, error, own.hyperpod_cluster),))
    return _Seen(kind=_CLUSTER, things=[place for place in places if place])


def _stands_in(interface: Mapping[str, Any], place: Mapping[str, Any]) -> bool:
    groups = {group["GroupId"] for group in interface.get("Groups", ())}
    return interface.get("SubnetId") in place["Subnets"] and groups.issuperset(place["SecurityGroupIds"])


def _security_groups(api: Api, own: Own, _detail: str) -> Usage:
    groups, vpcs = api.each(
        lambda question: _ec2(api, *question),
        (("describe_security_groups", "SecurityGroups", "security group"), _VPCS),
    )

    owners = _whose(vpcs, own)
    is_own_vpc = _looked_up(owners, default=False)

    def count(group: Mapping[str, Any]) -> float | None:
        # EKS and the VPC itself make groups too, without a stack's tag
        is_own = _is_own(group, own) or is_own_vpc(group.get("VpcId", ""))
        return None if is_own is None else float(not is_own)

    return _tally(groups, count, depends_on=owners.unread)


def _endpoints(api: Api) -> _Seen:
    return _ec2(api, "describe_vpc_endpoints", "VpcEndpoints", "VPC endpoint")


def _gateway_endpoints(api: Api, own: Own, _detail: str) -> Usage:
    return _of_others(_endpoints(api), own, lambda each: each["VpcEndpointType"] == "Gateway")


def _interface_endpoints(api: Api, own: Own, vpc_id: str) -> Usage:
    return _of_others(
        _endpoints(api), own, lambda each: each["VpcEndpointType"] == "Interface" and each["VpcId"] == vpc_id
    )


def _subnets(api: Api, own: Own, vpc_id: str) -> Usage:
    return _of_others(_ec2(api, *_SUBNETS), own, lambda each: each["VpcId"] == vpc_id)


def _cidrs(api: Api, own: Own, vpc_id: str) -> Usage:
    def blocks(vpc: Mapping[str, Any]) -> float:
        if vpc["VpcId"] != vpc_id or _is_own(vpc, own):
            return 0.0
        states = [block["CidrBlockState"]["State"] for block in vpc["CidrBlockAssociationSet"]]
        return float(sum(state in _LIVE_BLOCKS for state in states))

    return _tally(_ec2(api, *_VPCS), blocks)


def _eks_clusters(api: Api, own: Own, _detail: str) -> Usage:
    seen = _seen(api, "eks", "list_clusters", "clusters", "EKS cluster")
    return _tally(seen, lambda name: float(name != own.eks_cluster))


def _lustre_file_systems(api: Api, own: Own, deployment_type: str) -> Usage:
    return _of_file_systems(api, own, deployment_type, lambda _each: 1.0)


def _lustre_capacity_gib(api: Api, own: Own, deployment_type: str) -> Usage:
    return _of_file_systems(api, own, deployment_type, lambda each: 0.0 if is_tiered(each) else each["StorageCapacity"])


def _lustre_tiering_mbps(api: Api, own: Own, _detail: str) -> Usage:
    def mbps(each: Mapping[str, Any]) -> float:
        return float(each["LustreConfiguration"]["ThroughputCapacity"]) if is_tiered(each) else 0.0

    return _of_file_systems(api, own, "", mbps)


def _lustre_read_cache_gib(api: Api, own: Own, _detail: str) -> Usage:
    def gib(each: Mapping[str, Any]) -> float:
        if not is_tiered(each):
            return 0.0
        cache = each["LustreConfiguration"]["DataReadCacheConfiguration"]
        return 0.0 if cache.get("SizingMode") == _NO_CACHE else float(cache["SizeGiB"])

    return _of_file_systems(api, own, "", gib)


_NO_CACHE = "NO_CACHE"
"""botocore 1.44.5, LustreReadCacheSizingMode."""


def is_tiered(file_system: Mapping[str, Any]) -> bool:
    """Return whether a file system has a throughput and a cache in place of a capacity (FileSystem, StorageType).

    Raises KeyError if AWS shows neither its storage class nor anything that only one of them has.
    """
    if "StorageType" in file_system:
        return bool(file_system["StorageType"] == "INTELLIGENT_TIERING")
    return "ThroughputCapacity" in file_system["LustreConfiguration"] or not file_system["StorageCapacity"]


def _of_file_systems(api: Api, own: Own, deployment_type: str, amount: Callable[[Any], float]) -> Usage:
    def count(each: Mapping[str, Any]) -> float:
        if each["FileSystemType"] != "LUSTRE" or _is_own(each, own):
            return 0.0
        is_counted = deployment_type in {"", each["LustreConfiguration"]["DeploymentType"]}
        return amount(each) if is_counted else 0.0

    return _tally(_seen(api, "fsx", "describe_file_systems", "FileSystems", "file system"), count)


def _is_own(thing: Mapping[str, Any], own: Own) -> bool:
    tags = thing.get("Tags") or thing.get("TagSet") or ()
    return any(
        (tag.get("Key") == _STACK_TAG and tag.get("Value") in own.stacks)
        # EKS makes a group for its cluster that carries no stack's tag
        or (tag.get("Key") == _EKS_TAG and tag.get("Value") == own.eks_cluster)
        for tag in tags
    )


_GONE = re.compile(r"not found|not be found|not exist|not find", re.IGNORECASE)
_GIB_PER_TIB = 1024
_STACK_TAG = "aws:cloudformation:stack-name"
_EKS_TAG = "aws:eks:cluster-name"
_ENDING_CLUSTERS = ("Deleting", "Failed")
_LIVE_PLANS = ("Pending", "Scheduled", "Active")
_LIVE_GATEWAYS = ("pending", "available", "deleting")
_LIVE_BLOCKS = ("associating", "associated")

_COUNTS: Mapping[str, Callable[[Api, Own, str], Usage]] = {
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
