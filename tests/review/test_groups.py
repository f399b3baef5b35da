"""Instance groups and subnets are read as the templates state them, and what they leave open stays open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.templates.assembly import Assembly, Stack, read_assembly
from hyperpod_cdk.templates.groups import (
    SCALED,
    InstanceGroup,
    entries,
    exists,
    instance_groups,
    part,
    parts,
    subnets,
    whole_number,
)
from tests.support.assembly import ENVIRONMENTS, shipped
from tests.support.tables import row_by_row

STORED = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "4"}}
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"


def assembly(resources: dict[str, Any], name: str = "lab", **sections: Any) -> Assembly:
    return Assembly(environment="", stacks=(Stack(name=name, template={"Resources": resources, **sections}),))


def cluster(*groups: Any, **properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": list(groups), **properties}}


def one(group: Any, resources: dict[str, Any] | None = None, **sections: Any) -> InstanceGroup:
    (found,) = instance_groups(assembly({"C": cluster(group), **(resources or {})}, **sections))
    return found


def subnet(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-1", **properties}}


def test_a_group_as_it_is_written() -> None:
    found = one(
        {
            "InstanceGroupName": "h100",
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": 4,
            "MinInstanceCount": "2",
            "TrainingPlanArn": PLAN,
            "OverrideVpcConfig": {"Subnets": [{"Ref": "S"}], "SecurityGroupIds": [{"Fn::GetAtt": "G.GroupId"}]},
            "InstanceStorageConfigs": [
                {"EbsVolumeConfig": {"VolumeSizeInGB": 500}},
                {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": "key"}},
            ],
        },
        {"S": subnet(AvailabilityZoneId="use1-az5"), "G": {"Type": "AWS::EC2::SecurityGroup"}},
    )
    assert (found.name, found.index, found.types, found.count, found.min_count) == (
        "h100",
        0,
        ("ml.p5.48xlarge",),
        4,
        2,
    )
    assert (found.zone_ids, found.zones, found.storage_gib) == (("use1-az5",), ("use1-az5",), 500)
    assert (found.capacity_kind, found.plan, found.capacity) == ("training plan", PLAN, "training plan h100-april")
    assert [each.label for each in (*found.subnets, *found.security_groups)] == ["S (lab)", "G (lab)"]
    assert (found.cluster.logical_id, found.is_restricted, found.is_flexible, found.is_scaled) == (
        "C",
        False,
        False,
        False,
    )


@pytest.mark.parametrize(
    ("interface", "is_efa_only"),
    [(None, False), ({}, False), ({"InterfaceType": "efa"}, False), ({"InterfaceType": "efa-only"}, True)],
)
def test_interfaces_that_carry_no_ip_traffic(interface: Any, *, is_efa_only: bool) -> None:
    assert one({"NetworkInterface": interface}).is_efa_only is is_efa_only


def test_groups_are_compared_and_shown_without_their_resources() -> None:
    body = {"InstanceGroupName": "h100", "OverrideVpcConfig": {"Subnets": [{"Ref": "S"}]}}
    before = one(body, {"S": subnet(CidrBlock="10.0.0.0/24")})
    after = one(body, {"S": subnet(CidrBlock="10.0.0.0/24"), "C": cluster(body, NodeRecovery="Automatic")})
    assert before.cluster != after.cluster
    assert before == after
    assert before != one({**body, "InstanceCount": 1}, {"S": subnet(CidrBlock="10.0.0.0/24")})
    assert "Resource(" not in repr(before)


@row_by_row(
    "body, types, is_flexible, capacity",
    [
        ({"InstanceType": "ml.m5.large"}, ("ml.m5.large",), False, "on-demand"),
        ({"InstanceType": {"Ref": "Type"}}, (), False, "on-demand"),
        ({"InstanceRequirements": {"InstanceTypes": ["ml.a", "ml.b"]}}, ("ml.a", "ml.b"), True, "flexible"),
        ({"InstanceRequirements": {"InstanceTypes": ["ml.a", {"Ref": "Type"}]}}, (), True, "flexible"),
        (
            {"InstanceRequirements": {"InstanceTypes": ["ml.a"]}, "CapacityRequirements": {"Spot": {}}},
            ("ml.a",),
            True,
            "spot",
        ),
        ({"InstanceRequirements": {"InstanceTypes": "ml.a"}}, (), True, "flexible"),
        ({"InstanceRequirements": {"Ref": "Type"}}, (), True, "flexible"),
        ({"CapacityRequirements": {"OnDemand": {}}}, (), False, "on-demand"),
        ({"CapacityRequirements": ["Spot"]}, (), False, "on-demand"),
        ({"TrainingPlanArn": {"Ref": "Plan"}}, (), False, "training plan ${Plan}"),
        ({"TrainingPlanArn": {"Ref": "AWS::NoValue"}}, (), False, "on-demand"),
        ({"TrainingPlanArn": {"Ref": "Empty"}}, (), False, "on-demand"),
        ({"TrainingPlanArn": {"Fn::If": ["Asked", PLAN, {"Ref": "AWS::NoValue"}]}}, (), False, "unknown"),
        ({"CapacityRequirements": {"Fn::If": ["Asked", {"Spot": {}}, {}]}}, (), False, "unknown"),
    ],
)
def test_types_and_capacity(body: dict[str, Any], types: tuple[str, ...], is_flexible: bool, capacity: str) -> None:  # noqa: FBT001 - a column of the table
    found = one(
        body,
        Parameters={"Type": {"Type": "String"}, "Plan": {"Type": "String"}, "Empty": {"Type": "String", "Default": ""}},
        Conditions={"Asked": {"Fn::Equals": [{"Ref": "Plan"}, "x"]}},
    )
    assert (found.types, found.is_flexible, found.capacity) == (types, is_flexible, capacity)


@row_by_row(
    "count, number, note",
    [
        (0, 0, ""),
        ("3", 3, ""),
        (-1, None, "-1 is not a valid count of a group"),
        ("many", None, "many sets it"),
        ({"Ref": "Given"}, 7, ""),
        ({"Ref": "Asked"}, None, "${Asked} sets it"),
        (None, None, "the template does not state it"),
        ({"Fn::GetAtt": ["Counts", "Count0"]}, None, SCALED),
        ({"Fn::GetAtt": ["Other", "Count0"]}, None, "Other.Count0 sets it"),
        ({"Fn::GetAtt": ["Stored", "Value"]}, None, "Stored.Value sets it"),
        ({"Fn::GetAtt": ["Nobody", "Count0"]}, None, "{Fn::GetAtt: ['Nobody', 'Count0']} sets it"),
    ],
)
def test_counts(count: Any, number: int | None, note: str) -> None:
    found = one(
        {"InstanceCount": count},
        {"Counts": {"Type": "Custom::HyperPodNodeCounts"}, "Other": {"Type": "Custom::Other"}, "Stored": STORED},
        Parameters={"Given": {"Type": "Number", "Default": "7"}, "Asked": {"Type": "Number"}},
    )
    assert (found.count, found.count_note, found.is_scaled) == (number, note, note == SCALED)


@pytest.mark.parametrize(
    ("mode", "count", "is_scaled"), [("Enable", 0, True), ("Enable", 1, False), ("Disable", 0, False)]
)
def test_karpenter_scales_groups_of_zero(mode: str, count: int, is_scaled: bool) -> None:  # noqa: FBT001 - a column of the table
    made = assembly({"C": cluster({"InstanceCount": count}, AutoScaling={"Mode": mode})})
    (found,) = instance_groups(made)
    assert (found.is_scaled, found.count) == (is_scaled, None if is_scaled else count)


def test_karpenter_scales_no_restricted_group() -> None:
    properties = {"RestrictedInstanceGroups": [{"InstanceCount": 0}], "AutoScaling": {"Mode": "Enable"}}
    (found,) = instance_groups(assembly({"C": {"Type": "AWS::SageMaker::Cluster", "Properties": properties}}))
    assert (found.is_restricted, found.is_scaled, found.count) == (True, False, 0)


@row_by_row(
    "network, subnet_labels, group_labels, is_known",
    [
        ({"Ref": "Network"}, ["${Network}"], ["${Network}"], False),
        ({"Subnets": {"Ref": "Network"}}, ["${Network}"], [], False),
        ({"Subnets": "subnet-1", "SecurityGroupIds": ["sg-1", "sg-2"]}, ["subnet-1"], ["sg-1", "sg-2"], True),
        (["subnet-1"], [], [], True),
        (None, [], [], True),
    ],
)
def test_networks_that_are_told_in_part(
    network: Any, subnet_labels: list[str], group_labels: list[str], *, is_known: bool
) -> None:
    found = one({"OverrideVpcConfig": network}, Parameters={"Network": {"Type": "String"}})
    assert [each.label for each in found.subnets] == subnet_labels
    assert [each.label for each in found.security_groups] == group_labels
    # what is not told may be several of them
    assert all((each.is_known, each.is_list) == (is_known, not is_known) for each in found.subnets)


def test_zones_of_a_group_in_several_subnets() -> None:
    places = [
        {"AvailabilityZoneId": "use1-az5"},
        {"AvailabilityZone": "us-east-1a"},
        {"AvailabilityZoneId": "use1-az5"},
    ]
    made = {f"S{at}": subnet(**place) for at, place in enumerate([*places, {}])}
    network = {"Subnets": [*({"Ref": name} for name in made), "subnet-9", {"Fn::GetAtt": "V.VpcId"}]}
    found = one({"OverrideVpcConfig": network}, {**made, "V": {"Type": "AWS::EC2::VPC", "Properties": places[0]}})
    assert found.zone_ids == ("use1-az5",)
    assert found.zones == ("use1-az5", "us-east-1a", "use1-az5", "", "", "")


def test_the_words_of_a_group_s_capacity() -> None:
    groups = [
        {"TrainingPlanArn": PLAN},
        {"TrainingPlanArn": "h100-april"},
        {"CapacityRequirements": {"Spot": {}}},
        {},
    ]
    found = instance_groups(assembly({"C": cluster(*groups)}))
    assert [(group.plan_name, group.capacity) for group in found] == [
        ("h100-april", "training plan h100-april"),
        ("h100-april", "training plan h100-april"),
        ("", "spot"),
        ("", "on-demand"),
    ]


def test_what_is_not_an_object_in_a_list_is_left_out() -> None:
    assert entries([{"a": 1}, "b", None, {}, ["c"]]) == [{"a": 1}, {}]
    assert entries({"a": 1}) == entries(None) == []


def test_a_group_without_a_network_of_its_own_stands_in_the_cluster_s() -> None:
    network = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    other = {"OverrideVpcConfig": {"Subnets": ["subnet-2"], "SecurityGroupIds": ["sg-2"]}}
    groups = instance_groups(assembly({"C": cluster({}, other, VpcConfig=network)}))
    assert [[each.key for each in (*group.subnets, *group.security_groups)] for group in groups] == [
        ["subnet-1", "sg-1"],
        ["subnet-2", "sg-2"],
    ]
    assert [group.name for group in groups] == ["0", "1"]


def test_restricted_groups_come_last_and_are_known_as_such() -> None:
    made = assembly({"C": cluster({"InstanceGroupName": "a"}, RestrictedInstanceGroups=[{"InstanceGroupName": "r"}])})
    assert [(group.name, group.is_restricted) for group in instance_groups(made)] == [("a", False), ("r", True)]


GPU = {"InstanceGroupName": "gpu", "InstanceType": "ml.p5.48xlarge", "InstanceCount": 6, "TrainingPlanArn": PLAN}
NONE = {"Ref": "AWS::NoValue"}


def chosen(first: Any, second: Any, name: str = "Asked") -> dict[str, Any]:
    return {"Fn::If": [name, first, second]}


@row_by_row(
    "stated, read",
    [
        ([chosen(GPU, NONE, "Never")], []),
        ([chosen(NONE, GPU, "Never")], [("gpu", ("ml.p5.48xlarge",), 6, "", "training plan")]),
        (
            [chosen(GPU, NONE)],
            [("gpu", ("ml.p5.48xlarge",), None, "{if Asked: 6 or none} sets it", "training plan")],
        ),
        (
            chosen([GPU], NONE),
            [("gpu", ("ml.p5.48xlarge",), None, "{if Asked: 6 or none} sets it", "training plan")],
        ),
        (
            chosen([GPU], []),
            [("gpu", ("ml.p5.48xlarge",), None, "{if Asked: 6 or none} sets it", "training plan")],
        ),
        (
            [chosen(GPU, {**GPU, "InstanceCount": 9})],
            [("gpu", ("ml.p5.48xlarge",), None, "{if Asked: 6 or 9} sets it", "training plan")],
        ),
        ([chosen(GPU, dict(GPU))], [("gpu", ("ml.p5.48xlarge",), 6, "", "training plan")]),
        (
            [chosen(GPU, {**GPU, "InstanceGroupName": "old", "InstanceType": "ml.p4d.24xlarge"})],
            [("{if Asked: gpu or old}", (), 6, "", "training plan")],
        ),
        (
            [chosen(GPU, {key: value for key, value in GPU.items() if key != "TrainingPlanArn"})],
            [("gpu", ("ml.p5.48xlarge",), 6, "", "unknown")],
        ),
        (
            [chosen(chosen(GPU, NONE, "Other"), {**GPU, "InstanceCount": 9})],
            [("gpu", ("ml.p5.48xlarge",), None, "{if Asked, Other: 6, none or 9} sets it", "training plan")],
        ),
        (
            [chosen({**GPU, "InstanceCount": 9}, chosen(GPU, dict(GPU), "Other"))],
            [("gpu", ("ml.p5.48xlarge",), None, "{if Asked, Other: 9, 6 or 6} sets it", "training plan")],
        ),
        (
            chosen([GPU], [GPU, {**GPU, "InstanceGroupName": "more"}]),
            [
                ("gpu", ("ml.p5.48xlarge",), 6, "", "training plan"),
                ("more", ("ml.p5.48xlarge",), None, "{if Asked: none or 6} sets it", "training plan"),
            ],
        ),
        ({"Ref": "Groups"}, [("${Groups}", (), None, "${Groups} sets it", "unknown")]),
        (
            [{"Fn::Transform": {"Name": "Macro"}}],
            [
                (
                    "{Fn::Transform: {Name: Macro}}",
                    (),
                    None,
                    "{Fn::Transform: {Name: Macro}} sets it",
                    "unknown",
                )
            ],
        ),
        (NONE, []),
        ([NONE], []),
    ],
)
def test_groups_that_a_condition_decides_are_neither_left_out_nor_certain(
    stated: Any, read: list[tuple[str, tuple[str, ...], int | None, str, str]]
) -> None:
    conditions = {
        "Asked": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
        "Other": {"Fn::Equals": [{"Ref": "Stage"}, "lab"]},
        "Never": {"Fn::Equals": ["a", "b"]},
    }
    resources = {"C": {"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": stated}}}
    found = instance_groups(assembly(resources, Conditions=conditions))
    assert [(each.name, each.types, each.count, each.count_note, each.capacity_kind) for each in found] == read


@pytest.mark.parametrize(
    ("volumes", "gib"),
    [
        (None, 0),
        ([], 0),
        ([{"EbsVolumeConfig": {"VolumeSizeInGB": 10}}, {"EbsVolumeConfig": {"VolumeSizeInGB": 5}}], 15),
        ([{"FsxLustreConfig": {"DnsName": "x"}}], 0),
        # none of these hides a volume behind it
        ([{"FsxLustreConfig": {"DnsName": "x"}}, {"EbsVolumeConfig": {"VolumeSizeInGB": "5"}}], 5),
        ([{"EbsVolumeConfig": {"RootVolume": True}}, {"EbsVolumeConfig": {"VolumeSizeInGB": 5}}], 5),
        ([{"EbsVolumeConfig": {"VolumeSizeInGB": 5}}, {"Ref": "Asked"}], None),
        ([{"EbsVolumeConfig": {"Ref": "Asked"}}], None),
        ([{"EbsVolumeConfig": {}}], None),
        ([{"EbsVolumeConfig": {"VolumeSizeInGB": {"Ref": "Asked"}}}], None),
        ({"Ref": "Asked"}, None),
    ],
)
def test_storage(volumes: Any, gib: int | None) -> None:
    body = {} if volumes is None else {"InstanceStorageConfigs": volumes}
    assert one(body, Parameters={"Asked": {"Type": "Number"}}).storage_gib == gib


def test_what_a_condition_leaves_out_is_not_there() -> None:
    made = assembly(
        {
            "Off": {**cluster({"InstanceGroupName": "off"}), "Condition": "Never"},
            "On": {**cluster({"InstanceGroupName": "on"}), "Condition": "Always"},
            "Open": {**cluster({"InstanceGroupName": "open"}), "Condition": "Asked"},
            "S": {**subnet(), "Condition": "Never"},
        },
        Parameters={"P": {"Type": "String"}},
        Conditions={
            "Never": {"Fn::Equals": ["a", "b"]},
            "Always": {"Fn::Equals": ["a", "a"]},
            "Asked": {"Fn::Equals": [{"Ref": "P"}, "a"]},
        },
    )
    assert [group.name for group in instance_groups(made)] == ["on", "open"]
    assert subnets(made) == []
    assert [exists(made, each) for each in made.resources()] == [False, True, None, False]


@pytest.mark.parametrize(
    ("body", "zone_id", "zone_name", "zone"),
    [
        ({"AvailabilityZoneId": "use1-az5"}, "use1-az5", "", "use1-az5"),
        ({"AvailabilityZone": "us-east-1a"}, "", "us-east-1a", "us-east-1a"),
        (
            {"AvailabilityZone": {"Fn::Select": [0, {"Fn::GetAZs": ""}]}},
            "",
            "",
            'lab: {"Fn::Select": [0, {"Fn::GetAZs": ""}]}',
        ),
        ({}, "", "", ""),
    ],
)
def test_zones_are_ids_or_names_or_distinguished_by_their_words(
    body: dict[str, Any], zone_id: str, zone_name: str, zone: str
) -> None:
    (found,) = subnets(assembly({"S": subnet(CidrBlock="10.0.0.0/24", **body)}))
    assert (found.zone_id, found.zone_name, found.zone, found.cidr) == (zone_id, zone_name, zone, "10.0.0.0/24")


def test_zones_that_are_not_told_are_one_in_whatever_order_they_are_written() -> None:
    values = {"A": {"Ref": "P"}, "B": {"Ref": "Q"}}
    ways = [{"Fn::Sub": ["${A}${B}", each]} for each in (values, dict(reversed(values.items())))]
    made = {f"S{at}": subnet(AvailabilityZone=way) for at, way in enumerate(ways)}
    one_zone, other = subnets(assembly(made, Parameters={name: {"Type": "String"} for name in "PQ"}))
    assert one_zone.zone == other.zone


@pytest.mark.parametrize("cidr", [None, {"Ref": "Asked"}, {"Fn::Sub": "10.${Asked}.0.0/16"}, ["10.0.0.0/24"]])
def test_a_block_that_is_not_told_is_empty(cidr: Any) -> None:
    made = {"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": cidr}}
    (found,) = subnets(assembly({"S": made}, Parameters={"Asked": {"Type": "String"}}))
    assert (found.cidr, found.vpc) == ("", None)


def test_subnets_that_are_only_named_come_last_by_their_labels() -> None:
    named = ["subnet-3", "subnet-1", "subnet-2", "subnet-1"]
    made = assembly(
        {
            "A": cluster({"InstanceGroupName": "h100"}, VpcConfig={"Subnets": named}),
            "B": {"Type": "AWS::FSx::FileSystem", "Properties": {"SubnetIds": ["subnet-1"]}},
            "C": {"Type": "AWS::FSx::FileSystem", "Properties": {"SubnetIds": ["subnet-2"]}, "Condition": "Never"},
            "D": {"Type": "AWS::FSx::FileSystem", "Properties": {"SubnetIds": ["subnet-3"]}},
            "S": subnet(),
            "Z": {"Type": "AWS::ElasticLoadBalancingV2::LoadBalancer", "Properties": {"Subnets": ["subnet-4"]}},
        },
        Conditions={"Never": {"Fn::Equals": ["a", "b"]}},
    )
    # a subnet from elsewhere that is named by something unknown is not known to be one
    assert [(each.part.label, [use.name for use in each.uses]) for each in subnets(made)] == [
        ("S (lab)", []),
        ("subnet-1", ["h100", "h100", "B"]),
        ("subnet-2", ["h100"]),
        ("subnet-3", ["h100", "D"]),
    ]
    (first, *_) = [each for each in subnets(made) if each.uses]
    assert [use.name for use in first.of_kind("nodes")] == ["h100", "h100"]
    assert [use.name for use in first.of_kind("file system")] == ["B"]
    assert first.of_kind("EKS") == ()


def test_what_uses_a_subnet() -> None:
    here = {"Ref": "S"}
    made = assembly(
        {
            "S": subnet(),
            "C": cluster({"InstanceGroupName": "h100"}, VpcConfig={"Subnets": [here], "SecurityGroupIds": []}),
            "Fs": {"Type": "AWS::FSx::FileSystem", "Properties": {"SubnetIds": [here]}},
            "Eks": {
                "Type": "AWS::EKS::Cluster",
                "Properties": {"ResourcesVpcConfig": {"SubnetIds": [here, "subnet-9"]}},
            },
            "F": {"Type": "AWS::Lambda::Function", "Properties": {"VpcConfig": {"SubnetIds": [here]}}},
            "Nat": {"Type": "AWS::EC2::NatGateway", "Properties": {"SubnetId": here}},
            "End": {"Type": "AWS::EC2::VPCEndpoint", "Properties": {"SubnetIds": [here]}},
            "Lb": {"Type": "AWS::ElasticLoadBalancingV2::LoadBalancer", "Properties": {"Subnets": [here, here]}},
            "Table": {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": {"SubnetId": here}},
        }
    )
    own, existing = subnets(made)
    assert [(use.kind, use.name) for use in own.uses] == [
        ("nodes", "h100"),
        ("file system", "Fs"),
        ("EKS", "Eks"),
        ("function", "F"),
        ("NAT gateway", "Nat"),
        ("endpoint", "End"),
        ("other", "Lb"),
    ]
    assert own.vpc is not None
    assert (own.vpc.label, own.resource) == ("vpc-1", made.find("lab", "S"))
    assert (existing.part.label, existing.resource, [use.kind for use in existing.uses]) == ("subnet-9", None, ["EKS"])


def test_parts_are_one_however_they_are_named() -> None:
    made = Assembly(
        environment="prod",
        stacks=(
            Stack(
                name="net",
                template={
                    "Resources": {"G": {"Type": "AWS::EC2::SecurityGroup"}, "V": {"Type": "AWS::EC2::VPC"}},
                    "Outputs": {"O": {"Value": {"Fn::GetAtt": ["G", "GroupId"]}, "Export": {"Name": "net:G"}}},
                },
            ),
            Stack(
                name="pod", template={"Resources": {"X": {"Type": "A::B::C"}}, "Parameters": {"P": {"Type": "String"}}}
            ),
        ),
    )
    ways: list[tuple[str, Any]] = [
        ("net", {"Ref": "G"}),
        ("net", {"Fn::GetAtt": "G.GroupId"}),
        ("net", {"Fn::Sub": "${G.GroupId}"}),
        ("pod", {"Fn::ImportValue": "net:G"}),
    ]
    assert {part(made, stack, way) for stack, way in ways} == {part(made, "net", {"Ref": "G"})}
    default = part(made, "net", {"Fn::GetAtt": ["V", "DefaultSecurityGroup"]})
    assert (default.key, default.label, default.attribute) == (
        "net:V:DefaultSecurityGroup",
        "V.DefaultSecurityGroup (net)",
        "DefaultSecurityGroup",
    )
    assert part(made, "net", {"Fn::GetAtt": ["V", "VpcId"]}) == part(made, "net", {"Ref": "V"})
    # what one stack leaves open is not what another leaves open
    assert [part(made, stack, {"Ref": "P"}).key for stack in ("net", "pod")] == ["net:${P}", "pod:${P}"]
    assert [each.label for each in parts(made, "pod", {"Ref": "P"})] == ["${P}"]
    assert parts(made, "pod", None) == ()


def test_what_is_known_of_a_part() -> None:
    made = assembly(
        {"G": {"Type": "AWS::EC2::SecurityGroup"}, "X": {"Type": "Custom::Lookup"}},
        Parameters={"P": {"Type": "String"}},
    )
    ways: list[Any] = [
        *({"Ref": "G"}, {"Fn::GetAtt": "X.Group"}, {"Ref": "P"}, "sg-1", {"Fn::Sub": "sg-${P}"}),
        {"Fn::GetAZs": ""},
    ]
    found = [part(made, "lab", way) for way in ways]
    assert [(each.key, each.is_known, each.is_passed_on) for each in found] == [
        ("lab:G", True, False),
        ("lab:X:Group", False, True),
        ("lab:${P}", False, False),
        ("sg-1", True, False),
        ("lab:sg-${P}", False, False),
        ("lab:{Fn::GetAZs}", False, False),
    ]
    assert [each.is_made_here("AWS::EC2::SecurityGroup") for each in found] == [True, *[False] * 5]
    assert [each.is_list for each in parts(made, "lab", ways)] == [False] * 6
    assert [[each.is_list for each in parts(made, "lab", way)] for way in ways] == [
        [False],
        [True],
        [True],
        [False],
        [True],
        [True],
    ]


@given(st.integers(min_value=0))
def test_whole_numbers(number: int) -> None:
    assert {whole_number(number), whole_number(str(number)), whole_number(f" {number} ")} == {number}
    others: list[Any] = [True, None, "", "1.5", 1.5, "-1", [], {}]
    assert [whole_number(each) for each in others] == [None] * len(others)
    assert whole_number(2.0) == 2


@row_by_row("name", ENVIRONMENTS)
def test_every_shipped_environment_has_its_groups(name: str, assemblies: Path) -> None:
    environment = shipped(assemblies, name).environment
    made = read_assembly(assemblies / name, name)
    stated = {group.name: group for group in environment.hyperpod.all_groups}
    found = {group.name: group for group in instance_groups(made)}
    assert found.keys() == stated.keys()
    for group in found.values():
        was = stated[group.name]
        assert group.types == was.all_instance_types
        assert (group.count or 0) == was.count
        assert group.plan == was.training_plan_arn
        assert group.storage_gib == (was.volume_gib or 0)
        assert group.zone_ids == (() if environment.network.is_existing else (was.availability_zone_id,))
