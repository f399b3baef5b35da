"""What only the deployment knows is never taken for a circumstance that does not apply, or for one that does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.updates import Circumstances
from hyperpod_cdk.review.changes.circumstances import Truth, circumstances_of, circumstances_of_change
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import compare
from tests.support.tables import row_by_row

Body = dict[str, Any]
Path = tuple[str | int, ...]

NONE = {"Ref": "AWS::NoValue"}
SECTIONS: Body = {
    "Parameters": {"Asked": {"Type": "String"}, "Stored": {"Type": "AWS::SSM::Parameter::Value<String>"}},
    "Conditions": {"Asked": {"Fn::Equals": [{"Ref": "Asked"}, "x"]}},
}
MADE = {"Made": {"Type": "Custom::Made", "Properties": {"ServiceToken": "a"}}}
UNKNOWN: list[Any] = [
    {"Ref": "Asked"},
    {"Fn::Join": ["", [{"Ref": "Stored"}]]},
    {"Fn::GetAtt": ["Made", "Value"]},
    {"Fn::Transform": {"Name": "Macro"}},
]
ALL_ARE = [{"CidrIp": "10.0.0.0/16", "IpProtocol": "tcp", "FromPort": 0, "ToPort": 100}]
LESS = [{"CidrIp": "10.0.0.0/24", "IpProtocol": "tcp", "FromPort": 0, "ToPort": 100}]
ELSEWHERE = [{"CidrIp": "10.1.0.0/16", "IpProtocol": "udp", "FromPort": 10, "ToPort": 20}]
MORE = [{"CidrIp": "10.0.0.0/8", "IpProtocol": "-1", "FromPort": 0, "ToPort": 100}]
ROOT = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:root"}, "Action": "kms:*", "Resource": "*"}
ROLE = {**ROOT, "Principal": {"AWS": "arn:aws:iam::111122223333:role/x"}}
READS = {**ROOT, "Action": "kms:Decrypt"}
ELSE = {**ROOT, "Resource": "another"}
NOT = {**ROOT, "Effect": "Deny"}


def fsx(kind: str, size: Any = 2400, **lustre: Any) -> Body:
    return {"FileSystemType": kind, "StorageCapacity": size, "LustreConfiguration": lustre}


def same(body: Body) -> tuple[Body, Body]:
    """Return both sides of a change that leaves it as it is."""
    return body, body


def eks(*, public: Any = True, private: Any = True) -> Body:
    return {"ResourcesVpcConfig": {"EndpointPublicAccess": public, "EndpointPrivateAccess": private}}


def policy(*statements: Body) -> Body:
    return {"KeyPolicy": {"Statement": list(statements)}}


def indexes(*names: str) -> Body:
    return {"GlobalSecondaryIndexes": [{"IndexName": name} for name in names]}


def persistent(size: int, tier: int, *, efa: bool) -> Body:
    return fsx("LUSTRE", size, DeploymentType="PERSISTENT_2", PerUnitStorageThroughput=tier, EfaEnabled=efa)


def database(version: str, **more: Any) -> Body:
    return {"EngineVersion": version, "Engine": "mysql", **more}


ALARM = {"ComparisonOperator": "GreaterThanThreshold", "Threshold": 10}
GROUP, KEY, ASG = "AWS::EC2::SecurityGroup", "AWS::KMS::Key", "AWS::AutoScaling::AutoScalingGroup"
LUSTRE, EKS, INSTANCE = "AWS::FSx::FileSystem", "AWS::EKS::Cluster", "AWS::RDS::DBInstance"

CASES: list[tuple[str, str, list[Body], list[tuple[Body, Body]]]] = [
    ("Windows", LUSTRE, [], [(fsx("WINDOWS"), fsx("WINDOWS")), (fsx("LUSTRE"), fsx("LUSTRE"))]),
    ("ONTAP", LUSTRE, [], [(fsx("ONTAP"), fsx("ONTAP")), (fsx("LUSTRE"), fsx("LUSTRE"))]),
    ("OpenZFS", LUSTRE, [], [(fsx("OPENZFS"), fsx("OPENZFS")), (fsx("LUSTRE"), fsx("LUSTRE"))]),
    (
        "SCRATCH_1",
        LUSTRE,
        [],
        [
            same(fsx("LUSTRE", DeploymentType="SCRATCH_1")),
            same(fsx("LUSTRE", DeploymentType="SCRATCH_2")),
            same(fsx("ONTAP", DeploymentType="SCRATCH_1")),
        ],
    ),
    ("EFA", LUSTRE, [], [same(persistent(4800, 1000, efa=True)), same(persistent(4800, 1000, efa=False))]),
    (
        "no such size",
        LUSTRE,
        [],
        [
            (persistent(38_400, 125, efa=True), persistent(2400, 125, efa=True)),
            (persistent(38_400, 125, efa=True), persistent(38_400, 125, efa=True)),
            (persistent(2400, 125, efa=False), persistent(2400, 125, efa=False)),
            (persistent(2400, 125, efa=False), persistent(2400, 100, efa=False)),
            (fsx("LUSTRE", 2400, DeploymentType="SCRATCH_1"), fsx("LUSTRE", 2401, DeploymentType="SCRATCH_1")),
        ],
    ),
    ("with storage", LUSTRE, [], [(fsx("LUSTRE", 2400), fsx("LUSTRE", 4800)), (fsx("LUSTRE"), fsx("LUSTRE"))]),
    ("both closed", EKS, [], [(eks(), eks(public=False, private=False)), (eks(), eks(private=False))]),
    ("by the internet alone", EKS, [], [(eks(), eks(private=False)), (eks(), eks(public=False))]),
    (
        "autoscaled",
        "AWS::SageMaker::Cluster",
        [],
        [({"AutoScaling": {"Mode": each}}, {"AutoScaling": {"Mode": each}}) for each in ("Enable", "Disable")],
    ),
    ("on an instance", "AWS::EC2::EIP", [], [({"InstanceId": "i-1"}, {}), ({"Domain": "vpc"}, {})]),
    ("Aurora", "AWS::RDS::DBCluster", [], [({}, {"Engine": "aurora-mysql"}), ({}, {"Engine": "mysql"})]),
    ("Multi-AZ", INSTANCE, [], [({}, {"MultiAZ": True}), ({}, {"MultiAZ": "false"})]),
    (
        "major not allowed",
        INSTANCE,
        [],
        [
            (database("8.0.1"), database("8.4.1", AllowMajorVersionUpgrade=False, DBClusterIdentifier="")),
            (database("8.0.1"), database("8.0.2", AllowMajorVersionUpgrade=True, DBClusterIdentifier="c")),
            (database("8.0.1"), {**database("8.4.1"), "Engine": "sqlserver-se"}),
        ],
    ),
    ("one minor at a time", "AWS::EKS::Addon", [], [({}, {"AddonName": "vpc-cni"}), ({}, {"AddonName": "coredns"})]),
    (
        "in a row",
        "AWS::CloudWatch::Alarm",
        [],
        [(ALARM, ALARM), ({**ALARM, "DatapointsToAlarm": 2}, {**ALARM, "DatapointsToAlarm": 2})],
    ),
    (
        "fires later",
        "AWS::CloudWatch::Alarm",
        [],
        [
            (ALARM, {**ALARM, "Threshold": 20}),
            (ALARM, {**ALARM, "Threshold": 5}),
            (ALARM, {"ComparisonOperator": "LessThanThreshold", "Threshold": 20}),
        ],
    ),
    *(
        (
            f"lets {way} less",
            GROUP,
            [],
            [
                ({f"SecurityGroup{side}": ALL_ARE}, {f"SecurityGroup{side}": new})
                for new in (LESS, ELSEWHERE, MORE, ALL_ARE, [*ALL_ARE, *LESS])
            ],
        )
        for way, side in (("in", "Ingress"), ("out", "Egress"))
    ),
    *(
        (
            f"gap {way}",
            GROUP,
            [],
            [
                ({f"SecurityGroup{side}": ALL_ARE}, {f"SecurityGroup{side}": new})
                for new in (MORE, ELSEWHERE, ALL_ARE, [*ALL_ARE, *MORE])
            ],
        )
        for way, side in (("inwards", "Ingress"), ("outwards", "Egress"))
    ),
    (
        "private",
        "AWS::ApiGateway::RestApi",
        [],
        [({"EndpointConfiguration": {"Types": [each]}}, {}) for each in ("PRIVATE", "EDGE")],
    ),
    (
        "to edge",
        "AWS::ApiGateway::RestApi",
        [],
        [({}, {"EndpointConfiguration": {"Types": [each]}}) for each in ("PRIVATE", "EDGE")],
    ),
    (
        "files kept",
        "Custom::CDKBucketDeployment",
        [],
        [({"RetainOnDelete": not each}, {"RetainOnDelete": each}) for each in (True, False)],
    ),
    (
        "pruned",
        "Custom::AWSCDK-EKS-KubernetesResource",
        [],
        [({}, {"PruneLabel": "aws.cdk.eks/prune-1"}), ({"PruneLabel": "aws.cdk.eks/prune-1"}, {"PruneLabel": ""})],
    ),
    (
        "locks out",
        KEY,
        [],
        [
            (policy(ROOT, ROLE), policy(new, ROLE))
            for new in (ROLE, READS, ELSE, ROOT, {**ROOT, "Condition": {"Bool": {"aws:SecureTransport": True}}})
        ]
        + [(policy(ROOT), policy(ROOT, NOT)), (policy(ROLE), policy(ROLE, NOT))],
    ),
    (
        "several indexes",
        "AWS::DynamoDB::Table",
        [],
        [(indexes("a"), indexes("b", "c")), (indexes("a"), indexes("a", "b"))],
    ),
    (
        "rolling",
        ASG,
        [{"AutoScalingRollingUpdate": {"MaxBatchSize": 1}}, {"AutoScalingScheduledAction": {}}],
        [({}, {})],
    ),
    (
        "replacing",
        ASG,
        [{"AutoScalingReplacingUpdate": {"WillReplace": each}} for each in (True, False)],
        [({}, {})],
    ),
    ("in place upgrade", ASG, [{"EnableVersionUpgrade": each} for each in (True, False)], [({}, {})]),
    ("online resharding", ASG, [{"UseOnlineResharding": each} for each in (True, False)], [({}, {})]),
]
OF_CHANGES = {
    *("another key", "counted", "handed over", "uncounted", "another VPC", "other zones", "tells more"),
    *("with their subnets", "MIG", "along", "alone"),
}
"""Circumstances that are read from one change, or from its place."""


def truth(name: str, resource_type: str, sides: Body) -> Truth:
    """Return the truth of a circumstance of a type with these properties and this update policy."""

    def of(side: str) -> Assembly:
        it = {"Type": resource_type, "Properties": sides[side], "UpdatePolicy": sides["policy"]}
        template = {**SECTIONS, "Resources": {**MADE, "It": it}}
        return Assembly(environment="dev", stacks=(Stack(name="s", template=template),))

    base, head = of("before"), of("after")
    told = circumstances_of(base, base.stacks[0].resources["It"], head, head.stacks[0].resources["It"])
    return truth_in(told, name)


def truth_in(told: Circumstances, name: str) -> Truth:
    assert not told.certain & told.possible
    return Truth.YES if name in told.certain else Truth.MAYBE if name in told.possible else Truth.NO


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def at(value: Any, path: Path) -> Any:
    for step in path:
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        if step not in keys:
            return NONE
        value = value[step]  # pyright: ignore[reportCallIssue, reportArgumentType]  # a key of what it is
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    made = copy.deepcopy(value)
    at(made, path[:-1])[path[-1]] = new
    return made


def test_each_circumstance_has_an_example() -> None:
    """A circumstance that the table gains needs a row above, and so cannot take unknown for no."""
    named = {
        each
        for row in _data.load("updates")["updates"]
        for each in row.get("when", "").split(", ")
        if each and each not in OF_CHANGES
    }
    own = {name for name, *_ in CASES}
    # of the value that changes alone (catalog.updates.circumstances)
    assert own <= named
    from tests.catalog.test_updates import TOLD  # noqa: PLC0415 - the other test's list, read only here

    assert own | OF_CHANGES == TOLD


@row_by_row("name, resource_type, policies, sides", CASES, ids=lambda case: case[0])
def test_what_is_not_known_is_neither_yes_nor_no(
    name: str, resource_type: str, policies: list[Body], sides: list[tuple[Body, Body]]
) -> None:
    """Whatever is unknown in an example, the circumstance may apply if it does with one of the possible values and
    does not with another one."""
    given = [
        {"before": before, "after": after, "policy": policy} for before, after in sides for policy in (policies or [{}])
    ]
    known = [truth(name, resource_type, each) for each in given]
    assert set(known) == {Truth.YES, Truth.NO}
    for example in given:
        for path in places(example):
            if path in ((), ("before",), ("after",)):
                continue
            values = [at(one, path) for one in given]
            values = [each for place, each in enumerate(values) if each not in values[:place]]
            with_each = [truth(name, resource_type, put(example, path, each)) for each in values]
            chosen = [(one, other) for one in range(len(values)) for other in range(one)]
            # a parameter is one value, and none only by a condition
            single = {with_each[place] for place, each in enumerate(values) if each != NONE and type(each) is not dict}
            for unknown, possible in [
                *((each, single) for each in UNKNOWN),
                *(
                    ({"Fn::If": ["Asked", values[one], values[other]]}, {with_each[one], with_each[other]})
                    for one, other in chosen
                ),
            ]:
                told = truth(name, resource_type, put(example, path, unknown))
                assert told is Truth.MAYBE or possible <= {told}, (path, unknown, told, possible)


@pytest.mark.parametrize(("one", "other"), [(one, other) for one in Truth for other in Truth])
def test_the_logic_of_three_values(one: Truth, other: Truth) -> None:
    order = [Truth.NO, Truth.MAYBE, Truth.YES]
    assert (one & other) is min(one, other, key=order.index)
    assert (one | other) is max(one, other, key=order.index)
    assert ~~one is one


def test_a_truth_is_no_condition_of_python() -> None:
    with pytest.raises(TypeError, match="MAYBE is neither true nor false"):
        bool(Truth.NO)


def of_change(resource_type: str, before: Body, after: Body, resources: Body) -> Circumstances:
    def of(properties: Body) -> Assembly:
        it = {"Type": resource_type, "Properties": properties}
        template = {**SECTIONS, "Resources": {**MADE, **resources, "It": it}}
        return Assembly(environment="dev", stacks=(Stack(name="s", template=template),))

    base, head = of(before), of(after)
    (change,) = [each for each in compare(base, head) if each.resource.logical_id == "It"]
    (property_,) = change.properties
    return circumstances_of_change(base, head, resource_type, property_)


ACTIONS, SUBNET, CLUSTER = "AWS::CloudWatch::Alarm", "AWS::EC2::Subnet", "AWS::SageMaker::Cluster"
ASKED = {"Ref": "Asked"}
RESOURCES: Body = {
    "Topic": {"Type": "AWS::SNS::Topic"},
    "Queue": {"Type": "AWS::SQS::Queue"},
    "Nested": {"Type": "AWS::CloudFormation::Stack"},
    "Counts": {"Type": "Custom::HyperPodNodeCounts"},
    "VpcA": {"Type": "AWS::EC2::VPC"},
    "VpcB": {"Type": "AWS::EC2::VPC"},
    **{
        f"Subnet{vpc}{zone}": {"Type": SUBNET, "Properties": {"VpcId": {"Ref": f"Vpc{vpc}"}, "AvailabilityZone": zone}}
        for vpc in "AB"
        for zone in "ab"
    },
    "Zoneless": {"Type": SUBNET, "Properties": {"VpcId": {"Ref": "VpcA"}}},
    "Anywhere": {"Type": SUBNET, "Properties": {"VpcId": ASKED, "AvailabilityZone": ASKED}},
}


def actions(*items: Any) -> Body:
    return {"AlarmActions": list(items)}


def subnets(*items: Any) -> Body:
    return {"ResourcesVpcConfig": {"SubnetIds": list(items)}}


def count(stated: Any) -> Body:
    return {"InstanceGroups": [{"InstanceGroupName": "a", "InstanceCount": stated}]}


def volume(stated: Any) -> Body:
    return {"InstanceGroups": [{"InstanceGroupName": "a", "InstanceStorageConfigs": stated}]}


def ref(name: str) -> Body:
    return {"Ref": name}


def ebs(key: Any, *, root: Any = False) -> Body:
    return {"EbsVolumeConfig": {"VolumeSizeInGB": 1, "RootVolume": root, "VolumeKmsKeyId": key}}


READ = {"Fn::GetAtt": ["Counts", "a"]}


@row_by_row(
    "name, resource_type, before, after, expected",
    [
        ("tells more", ACTIONS, actions(), actions(ref("Topic")), Truth.YES),
        ("tells more", ACTIONS, actions(), actions("arn:aws:sns:us-east-1:111122223333:a"), Truth.YES),
        ("tells more", ACTIONS, actions(), actions(ref("Queue")), Truth.NO),
        ("tells more", ACTIONS, actions(), actions(ASKED), Truth.MAYBE),
        ("tells more", ACTIONS, actions(), actions({"Fn::GetAtt": ["Nested", "Outputs.Topic"]}), Truth.MAYBE),
        ("tells more", ACTIONS, actions(), {"AlarmActions": ASKED}, Truth.MAYBE),
        ("tells more", ACTIONS, actions(ref("Topic")), actions(), Truth.NO),
        ("tells more", ACTIONS, actions(ASKED), actions(ref("Topic")), Truth.MAYBE),
        # as drift states them
        ("tells more", ACTIONS, {"AlarmActions": "arn:aws:sns:a"}, {"AlarmActions": "arn:aws:sns:b"}, Truth.NO),
        ("another VPC", EKS, subnets(ref("SubnetAa")), subnets(ref("SubnetBa")), Truth.YES),
        ("another VPC", EKS, subnets(ref("SubnetAa")), subnets(ref("SubnetAb")), Truth.NO),
        ("another VPC", EKS, subnets(ref("SubnetAa")), subnets(ref("Anywhere")), Truth.MAYBE),
        ("another VPC", EKS, subnets(ref("SubnetAa")), subnets(ASKED), Truth.MAYBE),
        ("another VPC", EKS, subnets(ref("SubnetAa")), {"ResourcesVpcConfig": {"SubnetIds": ASKED}}, Truth.MAYBE),
        ("another VPC", EKS, subnets(ASKED), subnets(ASKED, "subnet-1"), Truth.NO),
        ("another VPC", EKS, subnets("subnet-1"), subnets("subnet-2"), Truth.MAYBE),
        ("other zones", EKS, subnets(ref("SubnetAa")), subnets(ref("SubnetAb")), Truth.YES),
        ("other zones", EKS, subnets(ref("SubnetAa")), subnets(ref("SubnetBa")), Truth.NO),
        ("other zones", EKS, subnets(ref("SubnetAa")), subnets(ref("Zoneless")), Truth.MAYBE),
        ("other zones", EKS, subnets(ref("SubnetAa")), subnets(ref("Anywhere")), Truth.MAYBE),
        ("other zones", EKS, subnets(ASKED), subnets(ref("SubnetAa")), Truth.MAYBE),
        ("uncounted", CLUSTER, count(READ), count(2), Truth.YES),
        ("uncounted", CLUSTER, count(READ), count({"Fn::If": ["Asked", READ, 2]}), Truth.MAYBE),
        ("uncounted", CLUSTER, count(3), count(2), Truth.NO),
        ("counted", CLUSTER, count(0), count(READ), Truth.YES),
        ("counted", CLUSTER, count(2), count(READ), Truth.NO),
        ("counted", CLUSTER, count(ASKED), count(READ), Truth.MAYBE),
        ("handed over", CLUSTER, count(2), count(READ), Truth.YES),
        ("handed over", CLUSTER, count(0), count(READ), Truth.NO),
        ("handed over", CLUSTER, count(ASKED), count(READ), Truth.MAYBE),
        ("handed over", CLUSTER, count(2), count({"Fn::If": ["Asked", READ, 2]}), Truth.MAYBE),
        ("another key", CLUSTER, volume([ebs("k1")]), volume([ebs("k2")]), Truth.YES),
        ("another key", CLUSTER, volume([ebs("k1")]), volume([ebs(ASKED)]), Truth.MAYBE),
        ("another key", CLUSTER, volume([ebs("k1")]), volume(ASKED), Truth.MAYBE),
        ("another key", CLUSTER, volume(ASKED), volume([ebs("k1")]), Truth.MAYBE),
        ("another key", CLUSTER, volume([ebs("k1")]), volume([ebs("k1"), ebs("k2", root=True)]), Truth.NO),
        ("another key", CLUSTER, volume([ebs("k1")]), volume([ebs("k1"), ebs("k2", root=ASKED)]), Truth.MAYBE),
    ],
)
def test_what_one_change_refers_to(name: str, resource_type: str, before: Body, after: Body, expected: Truth) -> None:
    assert truth_in(of_change(resource_type, before, after, RESOURCES), name) is expected
