"""What one changed property does to its resource, from the schemas and the table of the services' own effects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from hyperpod_cdk.catalog import create_only, hyperpod, lustre, updates
from hyperpod_cdk.catalog.iam_matching import names_action
from hyperpod_cdk.catalog.network import is_all_traffic
from hyperpod_cdk.review.model import Effect
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import MACRO as TRANSFORM
from hyperpod_cdk.templates.difference import MISSING, PropertyChange
from hyperpod_cdk.templates.groups import SECURITY_GROUP
from hyperpod_cdk.templates.values import Reference, Unknown, plain, resolve, resolved_properties

SCHEMA: Final = "CloudFormation schema"
MACRO: Final = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-macros.html"
CLUSTER: Final = "AWS::SageMaker::Cluster"
EKS: Final = "AWS::EKS::Cluster"
ANOTHER_VPC: Final = "another VPC"
AUTOSCALED: Final = "autoscaled"
PRUNED: Final = "pruned"
_CUSTOMER_KEYS: Final = ("AWS::KMS::Key", "AWS::KMS::ReplicaKey")
_DB_CLUSTER: Final = "AWS::RDS::DBCluster"
_DB_INSTANCE: Final = "AWS::RDS::DBInstance"
_ADDON: Final = "AWS::EKS::Addon"
_MINOR_BY_MINOR: Final = ("eks-pod-identity-agent", "vpc-cni")
"""Add-ons that are updated by one minor version at a time (EKS user guide, AWS add-ons, update information)."""
_TABLES: Final = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")
_ALARM: Final = "AWS::CloudWatch::Alarm"
_ACTIONS: Final = (("AlarmActions",), ("InsufficientDataActions",), ("OKActions",))
_REST_API: Final = "AWS::ApiGateway::RestApi"
_ADDRESS: Final = "AWS::EC2::EIP"
_FILE_SYSTEM: Final = "AWS::FSx::FileSystem"
_ROUTED: Final = "AWS::EC2::SubnetRouteTableAssociation"
_DEPLOYMENT: Final = "Custom::CDKBucketDeployment"
_NODE_COUNTS: Final = "Custom::HyperPodNodeCounts"
_MANIFEST: Final = "Custom::AWSCDK-EKS-KubernetesResource"
RESTRICTED: Final = "RestrictedInstanceGroups"
GROUPS: Final = ("InstanceGroups", RESTRICTED)
NODE_COUNTS: Final = "Custom::HyperPodNodeCounts"

GRAVEST_FIRST: Final = (
    Effect.REPLACED,
    Effect.DELETED,
    Effect.REFUSED,
    Effect.INTERRUPTED,
    Effect.UNKNOWN,
    Effect.LEFT_BEHIND,
    Effect.IN_PLACE,
    Effect.ADDED,
)
_SILENT: Final = "its schema lets CloudFormation update it, and this table does not contain what the service then does"
_ITEM: Final = "item"
"""The circumstance that a whole item of a list is added or removed, for which the table has no row."""
_PAGE: Final = "the type's page in CloudFormation's reference states Replacement"
_RANK: Final = {effect: rank for rank, effect in enumerate(GRAVEST_FIRST)}


@dataclass(frozen=True)
class Judged:
    """What a change does, why, and where that is documented."""

    effect: Effect
    reason: str
    source: str | None
    is_of_update: bool = False
    """Whether it is an effect of updating this property, which a resource that is created again does not have."""
    interrupts: bool = False
    """Whether the resource remains but is not reachable, or is slower for hours, during the update."""
    may_replace: bool = False
    """Whether CloudFormation may create another resource to replace it."""


def gravest(effects: Iterable[Effect]) -> Effect | None:
    """Return the most serious effect, None if there is none."""
    return min(effects, key=_RANK.__getitem__, default=None)


def rank(effect: Effect) -> int:
    """Return an effect's position, the most serious first."""
    return _RANK[effect]


def judge(
    base: Assembly,
    head: Assembly,
    resource_type: str,
    change: PropertyChange,
    circumstances: frozenset[str] = frozenset(),
) -> Judged:
    """Judge one property of a resource that stays; ``circumstances`` are those of the table that the caller knows.

    A change that the templates do not show completely, because a value is known only at deployment, is judged as one
    that happens. Whole instance groups that are added or removed are judged by the caller.
    """
    if _is_of_macro(change):
        return Judged(Effect.UNKNOWN, "a macro writes it during the deployment, and its value is unknown", MACRO)
    items = (updates.of_item(step[1:-1]) for step in change.steps if step.startswith("["))
    also = circumstances | _also(base, head, resource_type, change) | frozenset(items)
    if change.steps[-1].startswith("[") and MISSING in (change.before, change.after):
        also |= {_ITEM}
    if PRUNED in also and not updates.loses_objects(change.before, change.after):
        also -= {PRUNED}
    return _judge(resource_type, change.schema_path, change.before, change.after, also)


def _is_of_macro(change: PropertyChange) -> bool:
    """Whether a macro (``Fn::Transform``) is in a property that changes, or writes the properties themselves."""
    if TRANSFORM in change.steps:
        return True
    return any(TRANSFORM in plain(each) for each in (change.before, change.after) if each is not MISSING)


def circumstances_of(base: Assembly, before: Resource, head: Assembly, after: Resource) -> frozenset[str]:
    """Return the circumstances of the table that apply to changes between a resource's two versions."""
    # a parameter, a mapping or a condition may state them
    was, will_be = _resolved(base, before), _resolved(head, after)
    policy = resolve(head, after.stack, after.body.get("UpdatePolicy"))
    kind = str(was.get("FileSystemType", "LUSTRE")) if before.type == _FILE_SYSTEM else ""
    found = {
        "files kept": before.type == _DEPLOYMENT and _is_on(was.get("RetainOnDelete", True)),
        "Windows": kind == "WINDOWS",
        "ONTAP": kind == "ONTAP",
        "OpenZFS": kind == "OPENZFS",
        "SCRATCH_1": _below(was, "LustreConfiguration", "DeploymentType") == "SCRATCH_1",
        "EFA": _is_on(_below(was, "LustreConfiguration", "EfaEnabled")),
        "no such size": kind == "LUSTRE" and _is_no_size(will_be),
        "with storage": kind == "LUSTRE" and _storage_changes(was, will_be),
        "both closed": before.type == EKS and _is_closed(will_be),
        PRUNED: before.type == _MANIFEST and bool(was.get("PruneLabel")),
        AUTOSCALED: before.type == CLUSTER and _part_of(was.get("AutoScaling"), "Mode") not in (None, "Disable"),
        "on an instance": before.type == _ADDRESS and bool(was.get("InstanceId")),
        "rolling": _part_of(policy, "AutoScalingRollingUpdate") is not None,
        "replacing": _may_be_on(_part_of(_part_of(policy, "AutoScalingReplacingUpdate"), "WillReplace")),
        "in place upgrade": _is_on(_part_of(policy, "EnableVersionUpgrade")),
        "online resharding": _is_on(_part_of(policy, "UseOnlineResharding")),
        "Aurora": before.type == _DB_CLUSTER and str(will_be.get("Engine", "aurora")).startswith("aurora"),
        "Multi-AZ": before.type == _DB_INSTANCE and _is_on(will_be.get("MultiAZ")),
        "major not allowed": before.type == _DB_INSTANCE and _asks_for_another_major(was, will_be),
        "one minor at a time": before.type == _ADDON and will_be.get("AddonName") in _MINOR_BY_MINOR,
        "locks out": before.type in _CUSTOMER_KEYS and _locks_out(was, will_be),
        "by the internet alone": before.type == EKS and not _is_private(will_be),
        "in a row": before.type == _ALARM and not {"DatapointsToAlarm"} & {*was, *will_be},
        "fires later": before.type == _ALARM and _fires_later(was, will_be),
        "lets in less": before.type == SECURITY_GROUP and _lets_less("Ingress", was, will_be),
        "lets out less": before.type == SECURITY_GROUP and _lets_less("Egress", was, will_be),
        "gap inwards": before.type == SECURITY_GROUP and _has_gap("Ingress", was, will_be),
        "gap outwards": before.type == SECURITY_GROUP and _has_gap("Egress", was, will_be),
        **_of_api(before.type, was, will_be),
        "several indexes": before.type in _TABLES and _are_several(_indexes(was), _indexes(will_be)),
    }
    return frozenset(name for name, holds in found.items() if holds)


def _asks_for_another_major(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a database is changed to another major version of its engine without permission for that."""
    allowed = after.get("AllowMajorVersionUpgrade", False)
    if after.get("DBClusterIdentifier") or allowed not in (False, "false"):
        # the version of a cluster's instance is that of its cluster
        return False
    engine = str(after.get("Engine", ""))
    return updates.is_another_major(engine, before.get("EngineVersion"), after.get("EngineVersion"))


def _of_api(resource_type: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, bool]:
    """Return the circumstances of an API of API Gateway: how it can be reached before and after the change."""
    old, new = (_below(each, "EndpointConfiguration", "Types") for each in (before, after))
    is_api = resource_type == _REST_API
    return {"private": is_api and old == ["PRIVATE"], "to edge": is_api and new == ["EDGE"]}


def _locks_out(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a key's policy no longer lets the account's own administrators change it, but did before."""
    return _lets_account(before.get("KeyPolicy")) and not _lets_account(after.get("KeyPolicy"))


def _lets_account(policy: Any) -> bool:
    stated = policy.get("Statement") if isinstance(policy, dict) else None
    speaking = [
        each
        for each in (stated if isinstance(stated, list) else [stated])
        if isinstance(each, dict)
        and re.search(r":root|\"\d{12}\"|AWS::AccountId|\"\*\"", json.dumps(each.get("Principal"), default=str))
        and names_action(each, "kms:PutKeyPolicy")
    ]
    # an action that is denied under a condition may be allowed under another one
    is_denied = any(each.get("Effect") == "Deny" and not each.get("Condition") for each in speaking)
    return not is_denied and any(each.get("Effect") == "Allow" for each in speaking)


def _indexes(properties: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of a table's global indexes, None if one of them is unknown."""
    stated = properties.get("GlobalSecondaryIndexes", [])
    names = [each.get("IndexName") if isinstance(each, dict) else None for each in stated] if stated else []
    told = frozenset(each for each in names if isinstance(each, str))
    return told if isinstance(stated, list) and len(told) == len(names) else None


def _are_several(before: frozenset[str] | None, after: frozenset[str] | None) -> bool:
    return before is not None and after is not None and len(before ^ after) > 1


def _fires_later(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether an alarm's threshold is further away than before, or may be."""
    operator = str(after.get("ComparisonOperator", ""))
    try:
        old, new = float(before.get("Threshold", "")), float(after.get("Threshold", ""))
    except (TypeError, ValueError):
        return True
    if operator.startswith("Less"):
        return new < old
    return new > old or not operator.startswith("Greater")


def _lets_less(side: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a rule in a security group is removed or narrower, and no other single one allows as much.

    A rule that allowed the whole internet is assumed to be removed on purpose, and no client in particular is known to
    use it. Without an egress rule, a group that never stated one allows all egress, and one that no longer states any
    allows none (CloudFormation template reference, AWS::EC2::SecurityGroup).
    """
    old, new = _rules_of(side, before, after)
    if side == "Egress" and not old:
        old, new = [_ALL_OUT], new or [_ALL_OUT]
    if not isinstance(old, list) or not isinstance(new, list):
        return bool(old != new)
    kept = [rule for rule in old if side == "Egress" or not _is_of_anybody(rule)]
    return any(not any(_lets_as_much(each, rule) for each in new) for rule in kept)


def _has_gap(side: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a rule is replaced, and no other one allows the same traffic in the meantime.

    Source: CloudFormation template reference, AWS::EC2::SecurityGroup ("removes the existing rule and then adds a new
    rule. There is a brief period when neither the original rule or the new rule exists").
    """
    old, new = _rules_of(side, before, after)
    if not isinstance(old, list) or not isinstance(new, list):
        return False
    was, will = ([_undescribed(each) for each in side] for side in (old, new))
    stay = [rule for rule in was if rule in will]
    return any(
        any(_lets_as_much(each, rule) for each in will) and not any(_lets_as_much(each, rule) for each in stay)
        for rule in was
    )


def _undescribed(rule: Any) -> Any:
    if not isinstance(rule, dict):
        return rule
    return {
        key: value if isinstance(value, Reference | dict) else str(value)
        for key, value in rule.items()
        if key != "Description"
    }


def _is_of_anybody(rule: Any) -> bool:
    return isinstance(rule, dict) and (rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0")


def _rules_of(side: str, *properties: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(each.get(f"SecurityGroup{side}", []) for each in properties)


def _lets_as_much(rule: Any, other: Any) -> bool:
    if rule == other:
        return True
    if not isinstance(rule, dict) or not isinstance(other, dict):
        return False
    return (
        str(rule.get("IpProtocol")).lower() in ("-1", str(other.get("IpProtocol")).lower())
        and (str(rule.get("IpProtocol")) == "-1" or _spans(rule, other))
        and all(
            rule.get(name) == other.get(name) or is_within(rule.get(name), other.get(name))
            for name in (rule.keys() | other.keys()) - {"Description", "FromPort", "IpProtocol", "ToPort"}
        )
    )


def _spans(rule: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    ends = [_whole(each.get(name)) for each in (rule, other) for name in ("FromPort", "ToPort")]
    if None in ends:
        return all(rule.get(name) == other.get(name) for name in ("FromPort", "ToPort"))
    first, last, inner_first, inner_last = (each or 0 for each in ends)
    return first <= inner_first and inner_last <= last


def is_within(block: Any, inner: Any) -> bool:
    """Whether one address block is within another one; False if either is not an address block."""
    try:
        outer, within = ip_network(block), ip_network(inner)
    except (TypeError, ValueError):
        return False
    if isinstance(outer, IPv4Network):
        return isinstance(within, IPv4Network) and within.subnet_of(outer)
    return isinstance(within, IPv6Network) and within.subnet_of(outer)


_ALL_OUT: Final = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
"""The rule of a group that never stated an egress (CloudFormation template reference, AWS::EC2::SecurityGroup)."""


def allows_everything_out(group: Any) -> bool:
    """Whether a security group has the rule for all IPv4 traffic: it states that rule, or no egress rule at all."""
    stated = group.get("SecurityGroupEgress") if isinstance(group, dict) else None
    return not stated or any(
        isinstance(each, dict) and is_all_traffic(each.get("IpProtocol"), each.get("CidrIp"))
        for each in (stated if isinstance(stated, list) else [])
    )


def _resolved(assembly: Assembly, resource: Resource) -> Mapping[str, Any]:
    """Return the resolved properties of a resource, none if only the deployment knows them."""
    found = resolved_properties(assembly, resource)
    return found if isinstance(found, dict) else {}


def _part_of(value: Any, name: str) -> Any:
    """Return a part of a resolved value by its name; of one that only the deployment knows, the value itself."""
    if isinstance(value, dict):
        return value.get(name)
    return value if isinstance(value, Unknown) else None


def _may_be_on(value: Any) -> bool:
    return _is_on(value) or isinstance(value, Unknown)


def _storage_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the capacity of a file system certainly changes."""
    capacities = [_whole(each.get("StorageCapacity")) for each in (before, after)]
    return len(set(capacities)) > 1 and None not in capacities


def _is_no_size(properties: Any) -> bool:
    """Whether the catalog's rules refuse a Lustre file system's capacity or throughput, if both are known."""
    of_lustre = properties.get("LustreConfiguration") if isinstance(properties, dict) else None
    if not isinstance(of_lustre, dict) or of_lustre.get("DeploymentType") not in lustre.DEPLOYMENT_TYPES.values():
        return False
    if properties.get("StorageType", "SSD") != "SSD":
        mbps = _whole(of_lustre.get("ThroughputCapacity"))
        return mbps is not None and lustre.tiering_throughput_problem(mbps) is not None
    capacity, tier = _whole(properties.get("StorageCapacity")), _whole(of_lustre.get("PerUnitStorageThroughput"))
    is_persistent = of_lustre["DeploymentType"] == lustre.DEPLOYMENT_TYPE
    if is_persistent and tier is not None and lustre.throughput_problem(tier) is not None:
        return True
    efa = is_persistent and _is_on(of_lustre.get("EfaEnabled"))
    if capacity is None or (efa and tier is None):
        return False
    return lustre.capacity_problem(capacity, throughput_mbps_per_tib=tier or 0, efa=efa) is not None


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if not isinstance(value, bool) and text.isdecimal() and text.isascii() else None


def _is_closed(properties: Any) -> bool:
    """Whether an API server has no endpoint left, as far as the template shows; EKS's defaults count."""
    config = properties.get("ResourcesVpcConfig") if isinstance(properties, dict) else None
    if not isinstance(config, dict):
        return False
    public, private = config.get("EndpointPublicAccess", True), config.get("EndpointPrivateAccess", False)
    return public in (False, "false") and private in (False, "false")


def _is_private(properties: Any) -> bool:
    """Whether nodes reach an API server without the internet, as far as the template shows."""
    return isinstance(properties, dict) and _is_on(_below(properties, "ResourcesVpcConfig", "EndpointPrivateAccess"))


def _below(properties: Mapping[str, Any], outer: str, inner: str) -> Any:
    mapping = properties.get(outer)
    return mapping.get(inner) if isinstance(mapping, dict) else None


def _is_on(value: Any) -> bool:
    return value is True or value == "true"


def _also(base: Assembly, head: Assembly, resource_type: str, change: PropertyChange) -> frozenset[str]:
    """Return circumstances that depend on the resources that the values refer to."""
    path = change.schema_path
    if path[-1:] in _ACTIONS:
        return frozenset({"tells more"} if _tells_more(head, change) else ())
    if path[-1:] == ("InstanceCount",):
        return frozenset(_of_count(base, head, change))
    if path[-1:] == ("RouteTableIds",):
        return frozenset({"with their subnets"} if _go_with_their_subnets(base, head, change) else ())
    if "InstanceStorageConfigs" in path:
        had, gets = _volume_keys(path, change.before), _volume_keys(path, change.after)
        return frozenset({"another key"} if any(gets.get(volume) != key for volume, key in had.items()) else ())
    if resource_type == EKS and path[:1] == ("ResourcesVpcConfig",):
        old, new = _vpcs(base, change.before), _vpcs(head, change.after)
        found = {ANOTHER_VPC} if old and new and not old & new else set()
        here, there = _zones(base, change.before), _zones(head, change.after)
        return frozenset(found | {"other zones"} if here and there and here != there else found)
    return frozenset()


def _go_with_their_subnets(base: Assembly, head: Assembly, change: PropertyChange) -> bool:
    """Whether all route tables that a list loses are deleted, and no subnet that uses them stays in the app.

    EC2 deletes a route table only if no subnet uses it, so one that other subnets of the account use stays.
    """
    old, new = ([] if each is MISSING else each for each in (change.before, change.after))
    if not isinstance(old, list) or not isinstance(new, list):
        return False
    leavers = [each for each in old if each not in new]
    routed = [
        resolve(base, link.stack, link.properties.get("SubnetId"))
        for link in base.of_type(_ROUTED)
        if resolve(base, link.stack, link.properties.get("RouteTableId")) in leavers
    ]
    tables = [_leaving(base, head, each) for each in leavers]
    are_deleted = bool(tables) and not any(each is None or each.is_kept_on_delete for each in tables)
    return are_deleted and not any(_leaving(base, head, each) is None for each in routed)


def _leaving(base: Assembly, head: Assembly, named: Any) -> Resource | None:
    """Return the resources that a value names in a stack that has them, and no longer has them after its update."""
    if not isinstance(named, Reference) or named.stack not in head.by_name:
        return None
    is_there = head.find(named.stack, named.logical_id) is not None
    return None if is_there else base.find(named.stack, named.logical_id)


def _of_count(base: Assembly, head: Assembly, change: PropertyChange) -> Iterator[str]:
    """Yield the circumstance if Karpenter's count replaces a number in the template, or the other way round."""
    before, after = is_read(base, change.before), is_read(head, change.after)
    if not after:
        yield from ("uncounted",) if before else ()
    elif before or str(change.before) == "0":
        yield "counted"
    elif not isinstance(change.before, Reference | Unknown):
        yield "counted" if _is_imported_with_karpenter(base) else "handed over"


def _is_imported_with_karpenter(base: Assembly) -> bool:
    """Whether Karpenter scales the cluster and no resource has read its counts yet, as after 'import --takeover'."""
    scaled = any(_below(_resolved(base, each), "AutoScaling", "Mode") == "Enable" for each in base.of_type(CLUSTER))
    return scaled and next(iter(base.of_type(_NODE_COUNTS)), None) is None


def _tells_more(head: Assembly, change: PropertyChange) -> bool:
    """Whether an alarm's actions only gain SNS topics, and lose nothing."""
    old, new = ([] if each is MISSING else each for each in (change.before, change.after))
    if not isinstance(old, list) or not isinstance(new, list) or any(each not in new for each in old):
        return False
    return all(_is_topic(head, each) for each in new if each not in old)


def _is_topic(head: Assembly, value: Any) -> bool:
    if isinstance(value, Reference):
        found = head.find(value.stack, value.logical_id)
        return found is not None and found.type == "AWS::SNS::Topic"
    return isinstance(value, str) and re.match(r"arn:[^:]+:sns:", value) is not None


def _volume_keys(path: create_only.Path, value: Any) -> dict[bool, Any]:
    """Return the keys of the volumes that one side of a change concerns, the root volume's for True."""
    if path[-1] == "VolumeKmsKeyId":
        return {} if value is MISSING else {False: value}
    configs = value if isinstance(value, list) else [value]
    volumes = (
        configs
        if path[-1] == "EbsVolumeConfig"
        else [each.get("EbsVolumeConfig") for each in configs if isinstance(each, dict)]
    )
    return {
        _is_on(each.get("RootVolume")): each["VolumeKmsKeyId"]
        for each in volumes
        if isinstance(each, dict) and each.get("VolumeKmsKeyId") is not None
    }


def _vpcs(assembly: Assembly, value: Any) -> set[str]:
    """Return the VPCs of the subnets or security groups of a list, if they are resources of the templates."""
    vpcs = (resolve(assembly, each.stack, each.properties.get("VpcId")) for each in _resources(assembly, value) if each)
    return {repr(each) for each in vpcs if isinstance(each, str | Reference)}


def _zones(assembly: Assembly, value: Any) -> set[tuple[str, str]]:
    """Return the Availability Zones of a list of subnets, none if one of them is unknown."""
    found: set[tuple[str, str]] = set()
    for each in _resources(assembly, value):
        stated = each.properties if each is not None else {}
        name = next((name for name in ("AvailabilityZoneId", "AvailabilityZone") if name in stated), None)
        zone = resolve(assembly, each.stack, stated[name]) if each is not None and name else None
        if name is None or not isinstance(zone, str):
            return set()
        found.add((name, zone))
    # zones by name and zones by ID cannot be compared
    return found if len({name for name, _ in found}) == 1 else set()


def _resources(assembly: Assembly, value: Any) -> list[Resource | None]:
    """Return the resources of a list of references, None for an item that is not in the templates."""
    items = value if isinstance(value, list) else []
    return [assembly.find(each.stack, each.logical_id) if isinstance(each, Reference) else None for each in items]


def is_read(assembly: Assembly, value: Any) -> bool:
    """Whether a node count is read from the running cluster by a custom resource."""
    if not isinstance(value, Reference):
        return False
    resource = assembly.find(value.stack, value.logical_id)
    return resource is not None and resource.type == NODE_COUNTS


def _judge(  # noqa: PLR0917 - what changes, then of what it is a part
    resource_type: str,
    path: create_only.Path,
    before: Any,
    after: Any,
    also: frozenset[str],
    at: int | None = None,
) -> Judged:
    at = len(path) if at is None else at
    parts = _parts(before, after)
    if parts:
        # an item that is added or removed as a whole is judged by the parts that it has
        judged = [_judge(resource_type, (*path, key), old, new, also, at) for key, old, new in parts]
        return min(judged, key=lambda each: (_RANK[each.effect], not each.interrupts))
    rule = create_only.update_rule(resource_type)
    if path[-1:] == (hyperpod.MIG_LABEL,):
        also |= {"MIG"}
    old, new = (None if value is MISSING else value for value in (before, after))
    row = updates.update(resource_type, path, old, new, also, at)
    if rule is not None and rule.is_create_only(path) and (row is None or Effect(row.effect) is not Effect.REFUSED):
        return Judged(Effect.REPLACED, "CloudFormation cannot change it in place", SCHEMA)
    # no property of an added or removed item changes; omitting one together with its parent is the parent's change
    documented = rule.documented_at(path, at if _ITEM in also else len(path)) if rule is not None else ()
    if documented and (row is None or (len(row.path) < len(documented) and Effect(row.effect) is not Effect.REFUSED)):
        unsure = " (its schema: under a condition that it does not state)" if rule and rule.is_conditional(path) else ""
        return Judged(Effect.REPLACED, f"{_PAGE}{unsure}", create_only.SPECIFICATION)
    is_of_items = MISSING in (before, after) and updates.speaks_of_items(resource_type, path)
    if is_of_items or updates.speaks_below(resource_type, path):
        return _of_list(resource_type, path, before, after, also, at)
    if row is not None:
        reason = f"{row.sentence} ({row.unsure})" if row.unsure else row.sentence
        # what CloudFormation refuses for a create-only property it refuses for a replacement, too
        is_of_update = rule is None or not rule.is_create_only(path)
        return Judged(
            Effect(row.effect),
            reason,
            row.source,
            is_of_update=is_of_update,
            interrupts=row.interrupts,
            may_replace=rule is not None and rule.is_conditional(path) and row.effect == "unknown",
        )
    return _by_schema(resource_type, rule, path)


def _parts(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(before, dict) and after is MISSING:
        return [(key, value, MISSING) for key, value in before.items()]
    if isinstance(after, dict) and before is MISSING:
        return [(key, MISSING, value) for key, value in after.items()]
    return []


def _of_list(  # noqa: PLR0917 - as _judge() has them
    resource_type: str, path: create_only.Path, before: Any, after: Any, also: frozenset[str], at: int
) -> Judged:
    """Judge a list or mapping whose parts have more serious effects: an added or removed list is judged by its
    items."""
    stated = after if before is MISSING else before
    is_one = MISSING in (before, after) and isinstance(stated, list) and all(isinstance(each, dict) for each in stated)
    if not is_one or not stated:
        return Judged(Effect.UNKNOWN, "it is unknown which of its parts change", None, is_of_update=True)
    judged = [
        _judge(
            resource_type,
            path,
            MISSING if before is MISSING else each,
            MISSING if after is MISSING else each,
            also | {_ITEM, updates.of_item(str(each.get("Key")))},
            at,
        )
        for each in stated
    ]
    return min(judged, key=lambda each: (_RANK[each.effect], not each.interrupts))


def _by_schema(resource_type: str, rule: create_only.UpdateRule | None, path: create_only.Path) -> Judged:
    if rule is None:
        return Judged(Effect.UNKNOWN, _unknown(resource_type), None, is_of_update=True)
    if rule.is_conditional(path):
        reason = "CloudFormation replaces it under a condition that its schema does not state"
        return Judged(Effect.UNKNOWN, reason, SCHEMA, is_of_update=True, may_replace=True)
    may_replace = any(each[: len(path)] == path for each in rule.documented)
    return Judged(Effect.UNKNOWN, _SILENT, SCHEMA, is_of_update=True, may_replace=may_replace)


def _unknown(resource_type: str) -> str:
    if resource_type.startswith("Custom::"):
        return "the effect of a change on a custom resource depends on its function"
    return f"the CloudFormation schemas of {create_only.SCHEMAS_AS_OF.isoformat()} have no type {resource_type}"
