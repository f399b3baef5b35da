"""The circumstances under which a change has another effect, as far as both versions of a resource show them.

Each is a ``Truth``: a value that only the deployment knows makes it ``MAYBE``, never ``NO``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import reduce
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import product
from typing import Any, Final

from hyperpod_cdk.catalog import lustre, updates
from hyperpod_cdk.catalog.iam_matching import names_action
from hyperpod_cdk.catalog.network import is_all_traffic
from hyperpod_cdk.catalog.updates import Circumstances
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import MACRO, MISSING, PropertyChange
from hyperpod_cdk.templates.groups import SECURITY_GROUP
from hyperpod_cdk.templates.values import Reference, Unknown, is_known, plain, resolve, resolved_properties

CLUSTER: Final = "AWS::SageMaker::Cluster"
EKS: Final = "AWS::EKS::Cluster"
ANOTHER_VPC: Final = "another VPC"
AUTOSCALED: Final = "autoscaled"
PRUNED: Final = "pruned"
NODE_COUNTS: Final = "Custom::HyperPodNodeCounts"
_OTHER_ZONES: Final = "other zones"
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
_MANIFEST: Final = "Custom::AWSCDK-EKS-KubernetesResource"
_ALL_OUT: Final = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
"""The rule of a group that never stated an egress (CloudFormation template reference, AWS::EC2::SecurityGroup)."""
_TOPIC: Final = re.compile(r"arn:[^:]+:sns:")
_ACCOUNT: Final = re.compile(r":root|^\d{12}$|AWS::AccountId|^\*$")
_CHOICE: Final = "{if "
_ENDPOINTS: Final = (("EndpointPublicAccess", True), ("EndpointPrivateAccess", False))
"""The switches of EKS's two endpoints, and EKS's defaults (EKS API reference, VpcConfigRequest)."""
_PLACES: Final = tuple(("ResourcesVpcConfig", name) for name in ("SubnetIds", "SecurityGroupIds"))
_SCRATCH_1: Final = "SCRATCH_1"
"""FSx's default for a deployment type (FSx API reference, CreateFileSystemLustreConfiguration, DeploymentType)."""


class Truth(Enum):
    """Whether something applies; MAYBE if that depends on what only the deployment knows.

    It has no value as a Python condition, so that nothing takes MAYBE for one of the others by accident.
    """

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"

    def __bool__(self) -> bool:
        raise TypeError("a Truth is compared with 'is': MAYBE is neither true nor false")

    def __invert__(self) -> Truth:
        return {Truth.YES: Truth.NO, Truth.NO: Truth.YES}.get(self, self)

    def __and__(self, other: Truth) -> Truth:
        if Truth.NO in (self, other):
            return Truth.NO
        return Truth.MAYBE if Truth.MAYBE in (self, other) else Truth.YES

    def __or__(self, other: Truth) -> Truth:
        return ~(~self & ~other)


YES, NO, MAYBE = Truth.YES, Truth.NO, Truth.MAYBE


def circumstances_of(base: Assembly, before: Resource, head: Assembly, after: Resource) -> Circumstances:
    """Return the circumstances of the table that apply, or may apply, to changes between a resource's two versions."""
    # a parameter, a mapping or a condition may state them
    was, will = resolved_properties(base, before), resolved_properties(head, after)
    policy = resolve(head, after.stack, after.body.get("UpdatePolicy"))
    found: dict[str, Truth] = {
        "rolling": _is_stated(_at(policy, "AutoScalingRollingUpdate")),
        "replacing": _is_on(_at(policy, "AutoScalingReplacingUpdate", "WillReplace")),
        "in place upgrade": _is_on(_at(policy, "EnableVersionUpgrade")),
        "online resharding": _is_on(_at(policy, "UseOnlineResharding")),
        **(_READERS[before.type](was, will) if before.type in _READERS else {}),
    }
    return _circumstances(found)


def _circumstances(found: Mapping[str, Truth]) -> Circumstances:
    certain, possible = (
        frozenset(name for name, truth in found.items() if truth is asked) for asked in (Truth.YES, Truth.MAYBE)
    )
    return Circumstances(certain=certain, possible=possible)


def _of_cluster(was: Any, will: Any) -> dict[str, Truth]:  # noqa: ARG001 - a reader, as all of them
    return {AUTOSCALED: _is(_at(was, "AutoScaling", "Mode"), "Enable")}


def _of_eks(was: Any, will: Any) -> dict[str, Truth]:  # noqa: ARG001 - a reader, as all of them
    public, private = (_is_on(_at(will, "ResourcesVpcConfig", name), default=on) for name, on in _ENDPOINTS)
    return {"both closed": ~public & ~private, "by the internet alone": ~private}


def _of_address(was: Any, will: Any) -> dict[str, Truth]:  # noqa: ARG001 - a reader, as all of them
    return {"on an instance": _is_stated(_at(was, "InstanceId"))}


def _of_db_cluster(was: Any, will: Any) -> dict[str, Truth]:  # noqa: ARG001 - a reader, as all of them
    return {"Aurora": _starts(_at(will, "Engine"), "aurora", default="aurora")}


def _of_db_instance(was: Any, will: Any) -> dict[str, Truth]:
    return {"Multi-AZ": _is_on(_at(will, "MultiAZ")), "major not allowed": _asks_for_another_major(was, will)}


def _of_addon(was: Any, will: Any) -> dict[str, Truth]:  # noqa: ARG001 - a reader, as all of them
    return {"one minor at a time": _is(_at(will, "AddonName"), *_MINOR_BY_MINOR)}


def _of_alarm(was: Any, will: Any) -> dict[str, Truth]:
    stated = [_is_stated(_at(each, "DatapointsToAlarm")) for each in (was, will)]
    return {"in a row": ~_any(stated), "fires later": _fires_later(was, will)}


def _of_security_group(was: Any, will: Any) -> dict[str, Truth]:
    return {
        "lets in less": _lets_less("Ingress", was, will),
        "lets out less": _lets_less("Egress", was, will),
        "gap inwards": _has_gap("Ingress", was, will),
        "gap outwards": _has_gap("Egress", was, will),
    }


def _of_rest_api(was: Any, will: Any) -> dict[str, Truth]:
    old, new = (_at(each, "EndpointConfiguration", "Types") for each in (was, will))
    return {"private": _is_only(old, "PRIVATE"), "to edge": _is_only(new, "EDGE")}


def _of_deployment(was: Any, will: Any) -> dict[str, Truth]:  # noqa: ARG001 - a reader, as all of them
    # CDK's function reads the new properties
    return {"files kept": _is_on(_at(will, "RetainOnDelete"), default=True)}


def _of_manifest(was: Any, will: Any) -> dict[str, Truth]:  # noqa: ARG001 - a reader, as all of them
    return {PRUNED: _is_stated(_at(will, "PruneLabel"))}


def _of_key(was: Any, will: Any) -> dict[str, Truth]:
    return {"locks out": _locks_out(_at(was, "KeyPolicy"), _at(will, "KeyPolicy"))}


def _of_table(was: Any, will: Any) -> dict[str, Truth]:
    return {"several indexes": _are_several(*(_at(each, "GlobalSecondaryIndexes") for each in (was, will)))}


# values, as far as they are known


def _at(value: Any, *path: str) -> Any:
    """Return a part of a resolved value by its place, None if it is not there, an Unknown if that is not known."""
    for step in path:
        if isinstance(value, dict):
            # a macro may write what is not there
            value = value.get(step, Unknown(MACRO) if MACRO in value else None)
        elif value is not None:
            return Unknown(plain(value)) if _is_open(value) else None
    return value


def _is_open(value: Any) -> bool:
    """Whether only the deployment knows a value as a whole, or a part of it if it is text."""
    return not isinstance(value, (list, dict)) and not is_known(value)


def _one(truths: Iterable[Truth], start: Truth) -> Truth:
    return reduce(Truth.__or__ if start is NO else Truth.__and__, truths, start)


def _any(truths: Iterable[Truth]) -> Truth:
    return _one(truths, NO)


def _all(truths: Iterable[Truth]) -> Truth:
    return _one(truths, YES)


def _known(*, holds: bool) -> Truth:
    """Return the truth of what is known."""
    return YES if holds else NO


def _is(value: Any, *expected: str, default: str = "") -> Truth:
    """Whether a value is one of the expected ones; ``default`` is what it is if it is not stated."""
    if _is_open(value):
        return MAYBE
    text = default if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return _known(holds=text in expected)


def _is_on(value: Any, *, default: bool = False) -> Truth:
    return _is(value, "true", default=str(default).lower())


def _is_stated(value: Any) -> Truth:
    """Whether there is a value that is not empty, as the name of a resource is."""
    if isinstance(value, Reference) and not value.attribute:
        return YES
    return MAYBE if _is_open(value) else _known(holds=value is not None and bool(value or isinstance(value, dict)))


def _starts(value: Any, start: str, *, default: str) -> Truth:
    if isinstance(value, str) and value.startswith(start):
        return YES
    return MAYBE if _is_open(value) else _known(holds=str(default if value is None else value).startswith(start))


def _is_only(value: Any, item: str) -> Truth:
    """Whether a list has one item, the expected one."""
    if isinstance(value, list):
        return _is(value[0], item) if len(value) == 1 else NO
    return MAYBE if _is_open(value) else NO


def whole(value: Any) -> int | None:
    """Return a whole number of a template, which may be a text, None for anything else."""
    text = str(value)
    return int(text) if not isinstance(value, bool) and text.isdecimal() and text.isascii() else None


# file systems


def _of_file_system(was: Any, will: Any) -> dict[str, Truth]:
    kind, of_lustre = _at(was, "FileSystemType"), _at(was, "LustreConfiguration")
    is_lustre = _is(kind, "LUSTRE", default="LUSTRE")
    return {
        "Windows": _is(kind, "WINDOWS"),
        "ONTAP": _is(kind, "ONTAP"),
        "OpenZFS": _is(kind, "OPENZFS"),
        _SCRATCH_1: is_lustre & _is(_at(of_lustre, "DeploymentType"), _SCRATCH_1, default=_SCRATCH_1),
        "EFA": _is_on(_at(of_lustre, "EfaEnabled")),
        "no such size": is_lustre & _is_no_size(was, will),
        "with storage": is_lustre & _is_another(*(_at(each, "StorageCapacity") for each in (was, will))),
    }


def _is_another(before: Any, after: Any) -> Truth:
    """Whether a number changes; one that is not stated on both sides may be the same."""
    if before == after:
        return NO
    numbers = [whole(each) for each in (before, after)]
    return MAYBE if None in numbers else _known(holds=numbers[0] != numbers[1])


def _is_no_size(was: Any, will: Any) -> Truth:
    """Whether the catalog's rules refuse the capacity or throughput that a Lustre file system gets."""
    old, new = (_at(each, "LustreConfiguration") for each in (was, will))
    throughputs = [_at(each, "PerUnitStorageThroughput") for each in (old, new)]
    # one that stays is one that FSx has accepted
    none_of_them = () if throughputs[0] == throughputs[1] else (0,)
    capacity, tiering = _at(will, "StorageCapacity"), _at(new, "ThroughputCapacity")
    possible = product(
        _values(_at(new, "DeploymentType"), [*lustre.DEPLOYMENT_TYPES.values(), _SCRATCH_1]),
        _values(_at(will, "StorageType"), lustre.STORAGE_TYPES.values()),
        _values(_at(new, "EfaEnabled"), (True, False)),
        _values(throughputs[1], (*lustre.THROUGHPUTS_MBPS_PER_TIB, *none_of_them)),
    )
    found = set()
    for deployment, storage, efa, throughput in possible:
        if deployment not in lustre.DEPLOYMENT_TYPES.values():
            found.add(NO)
        elif storage not in (None, "SSD"):
            found.add(_is_tiering_refused(tiering))
        else:
            found.add(_is_ssd_refused(capacity, throughput, deployment, efa=efa))
    return found.pop() if len(found) == 1 else MAYBE


def _values(value: Any, possible: Iterable[Any]) -> tuple[Any, ...]:
    """Return what a value can be: itself, or all that are possible, if only the deployment knows it."""
    return (*possible, None) if _is_open(value) else (value,)


def _is_tiering_refused(throughput: Any) -> Truth:
    mbps = whole(throughput)
    if mbps is None:
        return MAYBE if _is_open(throughput) else NO
    return _known(holds=lustre.tiering_throughput_problem(mbps) is not None)


def _is_ssd_refused(capacity: Any, throughput: Any, deployment: Any, *, efa: Any) -> Truth:
    gib, tier = whole(capacity), whole(throughput)
    is_persistent = deployment == lustre.DEPLOYMENT_TYPE
    if is_persistent and tier is not None and lustre.throughput_problem(tier) is not None:
        return YES
    if gib is None:
        return MAYBE if _is_open(capacity) else NO
    has_efa = is_persistent and efa in (True, "true")
    if has_efa and tier is None:
        return NO
    return _known(holds=lustre.capacity_problem(gib, throughput_mbps_per_tib=tier or 0, efa=has_efa) is not None)


# databases and tables


def _asks_for_another_major(before: Any, after: Any) -> Truth:
    """Whether a database is changed to another major version of its engine without permission for that."""
    # the version of a cluster's instance is that of its cluster
    is_alone = ~_is_stated(_at(after, "DBClusterIdentifier"))
    is_forbidden = ~_is_on(_at(after, "AllowMajorVersionUpgrade"))
    return is_alone & is_forbidden & _is_major(before, after)


def _is_major(before: Any, after: Any) -> Truth:
    versions = [_at(each, "EngineVersion") for each in (before, after)]
    if versions[0] == versions[1] or None in versions:
        return NO
    if any(_is_open(each) for each in versions):
        return MAYBE
    engine = _at(after, "Engine")
    # the engines whose second number is a part of the major version, and any other one
    found = {
        updates.is_another_major(str(each), *versions)
        for each in (("mysql", "postgres") if _is_open(engine) else (engine,))
    }
    return MAYBE if len(found) > 1 else _known(holds=found.pop())


def _are_several(before: Any, after: Any) -> Truth:
    """Whether more than one global index of a table is added or removed."""
    if before == after:
        return NO
    old, new = _indexes(before), _indexes(after)
    return MAYBE if old is None or new is None else _known(holds=len(old ^ new) > 1)


def _indexes(stated: Any) -> frozenset[str] | None:
    """Return the names of a table's global indexes, None if one of them is unknown."""
    if stated is None:
        return frozenset()
    names = [_at(each, "IndexName") for each in stated] if isinstance(stated, list) else [None]
    told = frozenset(each for each in names if isinstance(each, str) and is_known(each))
    return told if len(told) == len(names) else None


# alarms and keys


def _fires_later(before: Any, after: Any) -> Truth:
    """Whether an alarm's threshold is further away than before."""
    operator = _at(after, "ComparisonOperator")
    try:
        old, new = (float(_at(each, "Threshold")) for each in (before, after))
    except (TypeError, ValueError):
        return MAYBE
    if old == new:
        return NO
    is_less = _starts(operator, "Less", default="")
    is_more = _starts(operator, "Greater", default="")
    # of a band, or of an operator that is not known, either may be further away
    is_either = ~is_less & ~is_more
    return (is_less & _known(holds=new < old)) | (is_more & _known(holds=new > old)) | (is_either & MAYBE)


_ASSUMED: Final = ("allows", "denies", "")
"""What a statement may do that only the deployment knows."""


def _locks_out(before: Any, after: Any) -> Truth:
    """Whether a key's policy no longer lets the account's own administrators change it, but did before."""
    old, new = _statements(before), _statements(after)
    unknown = [[plain(each) for each in side if _is_open(each)] for side in (old, new)]
    # the same unknown statements do the same on both sides
    alike = unknown[0] == unknown[1]
    assumed = [
        (one, other)
        for one in (_ASSUMED if unknown[0] else ("",))
        for other in (((one,) if alike else _ASSUMED) if unknown[1] else ("",))
    ]
    found = {_lets_account(old, one) & ~_lets_account(new, other) for one, other in assumed}
    return found.pop() if len(found) == 1 else MAYBE


def _statements(policy: Any) -> list[Any]:
    stated = _at(policy, "Statement")
    return stated if isinstance(stated, list) else [] if stated is None else [stated]


def _lets_account(statements: Iterable[Any], assumed: str) -> Truth:
    allows, denies = [_known(holds=assumed == "allows")], [_known(holds=assumed == "denies")]
    for each in statements:
        if not isinstance(each, dict):
            continue
        speaks = _is_of_account(_at(each, "Principal")) & _names_change(each) & _is_of_key(_at(each, "Resource"))
        allows.append(speaks & _is(_at(each, "Effect"), "Allow"))
        # an action that is denied under a condition may be allowed under another one
        denies.append(speaks & _is(_at(each, "Effect"), "Deny") & ~_is_stated(_at(each, "Condition")))
    return _any(allows) & ~_any(denies)


def _is_of_account(principal: Any) -> Truth:
    # the ARN of a resource is not that of the account
    named = [each for each in _texts(principal) if not (isinstance(each, Reference) and each.attribute in ("", "Arn"))]
    texts = [plain(each) for each in named]
    if any(_ACCOUNT.search(each) and _CHOICE not in each for each in texts):
        return YES
    return MAYBE if any(_is_open(each) for each in named) else NO


def _is_of_key(resource: Any) -> Truth:
    """Whether a statement is about the key of its policy: by ``*``, or perhaps by an ARN; without Resource it is not.

    Source: KMS developer guide, "Key policies in AWS KMS", elements of a key policy.
    """
    return _any(
        YES if each == "*" else MAYBE if _is_open(each) or str(each).startswith("arn:") else NO
        for each in _texts(resource)
    )


def _texts(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    else:
        yield value


def _names_change(statement: Mapping[str, Any]) -> Truth:
    if names_action(statement, "kms:PutKeyPolicy"):
        return MAYBE if any(_is_open(each) for each in _texts(statement.get("NotAction"))) else YES
    return MAYBE if any(_is_open(each) for each in _texts(statement.get("Action"))) else NO


# security groups


def _lets_less(side: str, before: Any, after: Any) -> Truth:
    """Whether a rule in a security group is removed or narrower, and no other single one allows as much.

    A rule that allowed the whole internet is assumed to be removed on purpose, and no client in particular is known to
    use it. Without an egress rule, a group that never stated one allows all egress, and one that no longer states any
    allows none (CloudFormation template reference, AWS::EC2::SecurityGroup).
    """
    old, new = _rules_of(side, before, after)
    if side == "Egress" and not old:
        old, new = [_ALL_OUT], new or [_ALL_OUT]
    if not isinstance(old, list) or not isinstance(new, list):
        return NO if old == new else MAYBE
    kept = [rule for rule in old if side == "Egress" or not _is_of_anybody(rule)]
    return _any(~_any(_lets_as_much(each, rule) for each in new) for rule in kept)


def _has_gap(side: str, before: Any, after: Any) -> Truth:
    """Whether a rule is replaced, and no other one allows the same traffic in the meantime.

    Source: CloudFormation template reference, AWS::EC2::SecurityGroup ("removes the existing rule and then adds a new
    rule. There is a brief period when neither the original rule or the new rule exists").
    """
    old, new = _rules_of(side, before, after)
    if not isinstance(old, list) or not isinstance(new, list):
        return NO if old == new else MAYBE
    was, will = ([_undescribed(each) for each in side] for side in (old, new))
    stay = [(rule, _any(_is_rule(rule, each) for each in will)) for rule in was]
    return _any(
        _any(_lets_as_much(each, rule) for each in will)
        & ~_any(stays & _lets_as_much(each, rule) for each, stays in stay)
        for rule in was
    )


def _is_rule(rule: Any, other: Any) -> Truth:
    """Whether two rules are the same one."""
    if rule == other:
        return YES
    if not isinstance(rule, dict) or not isinstance(other, dict):
        return MAYBE if _is_open(rule) or _is_open(other) else NO
    return _all(_is_part(name, rule.get(name), other.get(name)) for name in rule.keys() | other.keys())


def _undescribed(rule: Any) -> Any:
    if not isinstance(rule, dict):
        return rule
    return {
        key: value if isinstance(value, Reference | Unknown | dict) else str(value)
        for key, value in rule.items()
        if key != "Description"
    }


def _is_of_anybody(rule: Any) -> bool:
    return isinstance(rule, dict) and (rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0")


def _rules_of(side: str, *properties: Any) -> tuple[Any, ...]:
    found = (_at(each, f"SecurityGroup{side}") for each in properties)
    return tuple([] if each is None else each for each in found)


def _lets_as_much(rule: Any, other: Any) -> Truth:
    if rule == other:
        return YES
    if not isinstance(rule, dict) or not isinstance(other, dict):
        return MAYBE if _is_open(rule) or _is_open(other) else NO
    protocols = [_at(each, "IpProtocol") for each in (rule, other)]
    is_any = _is(protocols[0], "-1")
    return (is_any | (_is_same(*protocols) & _spans(rule, other))) & _all(
        _covers(name, rule.get(name), other.get(name))
        for name in (rule.keys() | other.keys()) - {"Description", "FromPort", "IpProtocol", "ToPort"}
    )


def _is_same(one: Any, other: Any) -> Truth:
    if one == other:
        return YES
    return MAYBE if _is_open(one) or _is_open(other) else _known(holds=str(one).lower() == str(other).lower())


def _covers(name: str, block: Any, inner: Any) -> Truth:
    """Whether the source or target of a rule, in the property with this name, contains another one's."""
    return _is_part(name, block, inner) | _known(holds=is_within(block, inner))


def _is_part(name: str, one: Any, other: Any) -> Truth:
    """Whether two rules have the same value of the property with this name."""
    if one == other:
        return YES
    if None in (one, other):
        # another kind of source, unless a condition chooses between one and none
        return MAYBE if any(isinstance(each, Unknown) and each.is_choice for each in (one, other)) else NO
    # a group or prefix list that is a resource is known by it, an address block is not
    known = () if name.startswith("Cidr") else (Reference,)
    return MAYBE if any(_is_open(each) and not isinstance(each, known) for each in (one, other)) else NO


def _spans(rule: Mapping[str, Any], other: Mapping[str, Any]) -> Truth:
    pairs = [(rule.get(name), other.get(name)) for name in ("FromPort", "ToPort")]
    if all(one == another for one, another in pairs):
        return YES
    if any(_is_open(each) for pair in pairs for each in pair):
        return MAYBE
    ends = [whole(each) for one, another in pairs for each in (one, another)]
    if None in ends:
        return NO
    first, inner_first, last, inner_last = (each or 0 for each in ends)
    return _known(holds=first <= inner_first and inner_last <= last)


def is_within(block: Any, inner: Any) -> bool:
    """Whether one address block is within another one; False if either is not an address block."""
    try:
        outer, within = ip_network(block), ip_network(inner)
    except (TypeError, ValueError):
        return False
    if isinstance(outer, IPv4Network):
        return isinstance(within, IPv4Network) and within.subnet_of(outer)
    return isinstance(within, IPv6Network) and within.subnet_of(outer)


def allows_everything_out(group: Any) -> bool:
    """Whether a security group has the rule for all IPv4 traffic, or may have it: it states that rule, or no egress
    rule at all."""
    stated = _at(group, "SecurityGroupEgress")
    return (
        not stated
        or not isinstance(stated, list)
        or any(
            _is_open(each) or (isinstance(each, dict) and is_all_traffic(each.get("IpProtocol"), each.get("CidrIp")))
            for each in stated
        )
    )


# what the values of one change refer to


def circumstances_of_change(
    base: Assembly, head: Assembly, resource_type: str, change: PropertyChange
) -> Circumstances:
    """Return the circumstances that depend on the resources to which the values of a change refer."""
    return _circumstances(dict(_of_change(base, head, resource_type, change)))


def _of_change(
    base: Assembly, head: Assembly, resource_type: str, change: PropertyChange
) -> Iterator[tuple[str, Truth]]:
    path = change.schema_path
    if path[-1:] in _ACTIONS:
        yield "tells more", _only_adds_topics(head, change)
    elif path[-1:] == ("InstanceCount",):
        yield from _of_count(base, head, change)
    elif path[-1:] == ("RouteTableIds",):
        yield "with their subnets", _go_with_their_subnets(base, head, change)
    elif "InstanceStorageConfigs" in path:
        yield "another key", _is_another_key(path, change)
    elif resource_type == EKS and path in _PLACES and change.before != change.after:
        old, new = _listed(change.before), _listed(change.after)
        if old is None or new is None:
            yield from ((ANOTHER_VPC, MAYBE), (_OTHER_ZONES, MAYBE))
        elif old and new:
            yield ANOTHER_VPC, _is_another_vpc(base, old, head, new)
            yield _OTHER_ZONES, _are_others(_zones(base, old), _zones(head, new))


def _listed(value: Any) -> list[Any] | None:
    """Return the items of a list, None if only the deployment knows which they are."""
    if value is MISSING or value is None:
        return []
    return value if isinstance(value, list) else None


def _is_another_vpc(base: Assembly, old: list[Any], head: Assembly, new: list[Any]) -> Truth:
    """Whether the VPC of subnets or security groups changes: all of a cluster are in one."""
    if any(each in new for each in old):
        return NO
    was, will = _vpcs(base, old), _vpcs(head, new)
    return _known(holds=was.isdisjoint(will)) if was and will else MAYBE


def _vpcs(assembly: Assembly, items: list[Any]) -> set[str]:
    """Return the VPCs of a list's subnets or security groups, as far as the templates show them."""
    found = (assembly.find(each.stack, each.logical_id) for each in items if isinstance(each, Reference))
    vpcs = (resolve(assembly, each.stack, each.properties.get("VpcId")) for each in found if each is not None)
    return {repr(each) for each in vpcs if isinstance(each, Reference) or (isinstance(each, str) and is_known(each))}


_Zones = frozenset[tuple[str, Any]]
"""Availability Zones by the property that states them, with the subnet itself for one of which no zone is known."""


def _zones(assembly: Assembly, items: list[Any]) -> _Zones:
    return frozenset(_zone(assembly, each) for each in items)


def _zone(assembly: Assembly, item: Any) -> tuple[str, Any]:
    found = assembly.find(item.stack, item.logical_id) if isinstance(item, Reference) else None
    for name in ("AvailabilityZoneId", "AvailabilityZone"):
        if found is not None and name in found.properties:
            zone = resolve(assembly, found.stack, found.properties[name])
            return name, plain(zone) if is_known(zone) else Unknown(plain(zone))
    return "", Unknown(plain(item))


def _are_others(old: _Zones, new: _Zones) -> Truth:
    if old == new:
        return NO
    # zones by name and zones by ID cannot be compared
    is_unknown = any(isinstance(zone, Unknown) for _, zone in old | new) or len({name for name, _ in old | new}) > 1
    return MAYBE if is_unknown else YES


def _go_with_their_subnets(base: Assembly, head: Assembly, change: PropertyChange) -> Truth:
    """Whether all route tables that a list loses are deleted, and no subnet that uses them stays in the app.

    EC2 deletes a route table only if no subnet uses it, so one that other subnets of the account use stays.
    """
    old, new = _listed(change.before), _listed(change.after)
    if old is None or new is None:
        return MAYBE
    leavers = [each for each in old if each not in new]
    if any(_is_open(each) and not isinstance(each, Reference) for each in leavers):
        return MAYBE
    routed = [
        resolve(base, link.stack, link.properties.get("SubnetId"))
        for link in base.of_type(_ROUTED)
        if resolve(base, link.stack, link.properties.get("RouteTableId")) in leavers
    ]
    tables = [_leaving(base, head, each) for each in leavers]
    are_deleted = bool(tables) and not any(each is None or each.is_kept_on_delete for each in tables)
    return _known(holds=are_deleted and not any(_leaving(base, head, each) is None for each in routed))


def _leaving(base: Assembly, head: Assembly, named: Any) -> Resource | None:
    """Return the resources that a value names in a stack that has them, and no longer has them after its update."""
    if not isinstance(named, Reference) or named.stack not in head.by_name:
        return None
    is_there = head.find(named.stack, named.logical_id) is not None
    return None if is_there else base.find(named.stack, named.logical_id)


def _of_count(base: Assembly, head: Assembly, change: PropertyChange) -> Iterator[tuple[str, Truth]]:
    """Yield the circumstance if Karpenter's count replaces a number in the template, or the other way round."""
    before, after = _may_be_read(base, change.before), _may_be_read(head, change.after)
    is_imported = _known(holds=next(iter(base.of_type(NODE_COUNTS)), None) is None) & _is_scaled(base)
    is_number = ~before & _known(holds=not isinstance(change.before, Reference)) & ~_is(change.before, "0")
    yield "uncounted", before & ~after
    yield "counted", after & (before | ~is_number & _is(change.before, "0") | is_number & is_imported)
    yield "handed over", after & is_number & ~is_imported


def _may_be_read(assembly: Assembly, value: Any) -> Truth:
    is_choice = isinstance(value, Unknown) and next(iter(assembly.of_type(NODE_COUNTS)), None) is not None
    return MAYBE if is_choice else _known(holds=is_read(assembly, value))


def _is_scaled(base: Assembly) -> Truth:
    """Whether Karpenter scales the cluster: with no resource that reads its counts, as after 'import --takeover'."""
    modes = (_at(resolved_properties(base, each), "AutoScaling", "Mode") for each in base.of_type(CLUSTER))
    return _any(_is(each, "Enable") for each in modes)


def is_read(assembly: Assembly, value: Any) -> bool:
    """Whether a node count is read from the running cluster by a custom resource."""
    if not isinstance(value, Reference):
        return False
    resource = assembly.find(value.stack, value.logical_id)
    return resource is not None and resource.type == NODE_COUNTS


def _only_adds_topics(head: Assembly, change: PropertyChange) -> Truth:
    """Whether an alarm's actions only gain SNS topics, and lose nothing."""
    # drift compares lists as texts, which are known
    sides = ([side] if isinstance(side, str) else side for side in (change.before, change.after))
    old, new = (_listed(side) for side in sides)
    if old is None or new is None:
        return MAYBE
    lost = [each for each in old if each not in new]
    keeps = MAYBE if lost and any(isinstance(each, Unknown) for each in (*lost, *new)) else _known(holds=not lost)
    return keeps & _all(_is_topic(head, each) for each in new if each not in old)


def _is_topic(head: Assembly, value: Any) -> Truth:
    if isinstance(value, Reference):
        found = head.find(value.stack, value.logical_id)
        if found is not None and (found.type == "AWS::CloudFormation::Stack" or not found.type.startswith("AWS::")):
            # an output of a nested stack, or an attribute of a custom resource
            return MAYBE
        return _known(holds=found is not None and found.type == "AWS::SNS::Topic")
    if isinstance(value, str) and _TOPIC.match(value):
        return YES
    return MAYBE if _is_open(value) else NO


def _is_another_key(path: tuple[str, ...], change: PropertyChange) -> Truth:
    """Whether a volume of an instance group had a key, and gets another one or none."""
    had, gets = _volume_keys(path, change.before), _volume_keys(path, change.after)
    if had is None or gets is None:
        return MAYBE
    return _any(_is_other_key(key, gets.get(volume)) for volume, key in had.items())


def _is_other_key(key: Any, other: Any) -> Truth:
    if key == other:
        return NO
    is_unknown = any(_is_open(each) and not isinstance(each, Reference) for each in (key, other))
    return MAYBE if is_unknown else YES


def _volume_keys(path: tuple[str, ...], value: Any) -> dict[bool, Any] | None:
    """Return the keys of the volumes that one side of a change concerns, the root volume's for True.

    None if only the deployment knows to which volume one belongs.
    """
    if path[-1] == "VolumeKmsKeyId":
        return {} if value is MISSING else {False: value}
    if isinstance(value, Unknown):
        return None
    configs = value if isinstance(value, list) else [value]
    volumes = configs if path[-1] == "EbsVolumeConfig" else [_at(each, "EbsVolumeConfig") for each in configs]
    found: dict[bool, Any] = {}
    for each in volumes:
        if each is MISSING or each is None:
            continue
        is_root, key = _is_on(_at(each, "RootVolume")), _at(each, "VolumeKmsKeyId")
        if is_root is MAYBE or isinstance(each, Unknown):
            return None
        if key is not None:
            found[is_root is YES] = key
    return found


_READERS: Final[Mapping[str, Callable[[Any, Any], dict[str, Truth]]]] = {
    CLUSTER: _of_cluster,
    EKS: _of_eks,
    _ADDON: _of_addon,
    _ADDRESS: _of_address,
    _ALARM: _of_alarm,
    _DB_CLUSTER: _of_db_cluster,
    _DB_INSTANCE: _of_db_instance,
    _DEPLOYMENT: _of_deployment,
    _FILE_SYSTEM: _of_file_system,
    _MANIFEST: _of_manifest,
    _REST_API: _of_rest_api,
    SECURITY_GROUP: _of_security_group,
    **dict.fromkeys(_CUSTOMER_KEYS, _of_key),
    **dict.fromkeys(_TABLES, _of_table),
}
"""What the properties of a type decide, before and after the change."""
