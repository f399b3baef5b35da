"""The architecture diagram: what it shows, what a change does to it, and that nothing overlaps or is cut off."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.review.figures.capacity import capacity
from hyperpod_cdk.review.pictures.boxes import Placed
from hyperpod_cdk.review.pictures.diagram import WIDTH, diagram, place
from hyperpod_cdk.review.pictures.svg import SMALLEST_FONT, TIMES, shortened, text_width
from hyperpod_cdk.templates.assembly import Assembly, Stack, parse_template, read_assembly
from tests.support.assembly import shipped
from tests.support.tables import row_by_row

SVG = "{http://www.w3.org/2000/svg}"
TYPES = ("ml.p5.48xlarge", "ml.trn2.48xlarge", "ml.g5.12xlarge", "ml.m5.2xlarge", "ml.p5en.48xlarge")


def group(name: str, zone: int, *, kind: str = "ml.p5.48xlarge", count: Any = 2, **rest: Any) -> dict[str, Any]:
    """Return an instance group in the node subnet of a zone."""
    network = {"SecurityGroupIds": ["sg-1"], "Subnets": [{"Ref": f"Nodes{zone}"}]}
    return {
        "InstanceGroupName": name,
        "InstanceType": kind,
        "InstanceCount": count,
        "OverrideVpcConfig": network,
        "ThreadsPerCore": 2,
        "OnStartDeepHealthChecks": ["InstanceStress"],
        **rest,
    }


def environment(groups: list[dict[str, Any]], *, zones: int = 1, **more: dict[str, Any]) -> Assembly:
    """Return a VPC with a public, a control-plane and a node subnet in each zone, and a cluster; ``more`` are added."""
    resources: dict[str, Any] = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Igw": {"Type": "AWS::EC2::InternetGateway"},
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Route": {
            "Type": "AWS::EC2::Route",
            "Properties": {
                "RouteTableId": {"Ref": "Table"},
                "GatewayId": {"Ref": "Igw"},
                "DestinationCidrBlock": "0.0.0.0/0",
            },
        },
    }
    for zone in range(1, zones + 1):
        for number, role in enumerate(("Public", "Control", "Nodes")):
            properties = {
                "VpcId": {"Ref": "Vpc"},
                "CidrBlock": f"10.{number}.{zone}.0/24",
                "AvailabilityZoneId": f"use1-az{zone}",
            }
            resources[f"{role}{zone}"] = {"Type": "AWS::EC2::Subnet", "Properties": properties}
        association = {"SubnetId": {"Ref": f"Public{zone}"}, "RouteTableId": {"Ref": "Table"}}
        resources[f"Way{zone}"] = {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": association}
    subnets = [{"Ref": f"Control{zone}"} for zone in range(1, zones + 1)]
    resources["Eks"] = {
        "Type": "AWS::EKS::Cluster",
        "Properties": {"Name": "prod-eks", "Version": "1.35", "ResourcesVpcConfig": {"SubnetIds": subnets}},
    }
    resources["Cluster"] = {
        "Type": "AWS::SageMaker::Cluster",
        "Properties": {"ClusterName": "prod", "NodeProvisioningMode": "Continuous", "InstanceGroups": groups},
    }
    stack = Stack(
        name="prod", template={"Resources": {**resources, **more}}, region="us-east-1", account="111122223333"
    )
    return Assembly(environment="prod", stacks=(stack,))


def template(text: str) -> Assembly:
    return Assembly(environment="", stacks=(Stack(name="foreign", template=parse_template(text, "x")),))


def words(head: Assembly, base: Assembly | None = None) -> list[str]:
    """Return every text of the picture, whole."""
    return [each.box.words.text for each in place(head, base, None).everything() if each.box.words]


def cards(head: Assembly, base: Assembly | None = None) -> dict[str, tuple[str, list[str]]]:
    """Return every card's texts and the class of its rectangle, by its title."""
    found = {}
    for each in place(head, base, None).everything():
        if each.box.accent or each.box.kind == "card":
            texts = [inner.box.words.text for inner in each.everything() if inner.box.words]
            found[texts[0]] = (each.box.kind, texts[1:])
    return found


def problems(root: Placed) -> Iterator[str]:
    """Name siblings that overlap, children outside of their parent, and texts that do not fit."""
    for parent in root.everything():
        for one, other in combinations(parent.children, 2):
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            if across > 0.6 and down > 0.6:
                yield f"{one.box} lies on {other.box}"
        for child in parent.children:
            if (
                child.x < parent.x - 0.6
                or child.y < parent.y - 0.6
                or child.x + child.width > parent.x + parent.width + 0.6
                or child.y + child.height > parent.y + parent.height + 0.6
            ):
                yield f"{child.box} is outside of {parent.box}"
        told = parent.box.words
        if told is not None:
            shown = shortened(told.text, parent.width, told.size, bold=told.bold)
            if told.text and not shown:
                yield f"{told.text!r} has no room"
            if text_width(shown, told.size, bold=told.bold) > parent.width + 0.6 or parent.height < told.size:
                yield f"{told.text!r} does not fit"
            if told.size < SMALLEST_FONT:
                yield f"{told.text!r} is too small"


def crowd(zones: int, each: int, *, start: int = 0) -> list[dict[str, Any]]:
    """Return groups in every zone with names and counts of all lengths."""
    return [
        group(
            f"group-{'workers-' * (number % 4)}{zone}-{number}",
            zone,
            kind=TYPES[number % len(TYPES)],
            count=(1, 2, 16, 640)[number % 4],
            **(
                {"TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100"} if number % 2 else {}
            ),
        )
        for zone in range(1, zones + 1)
        for number in range(start, start + each)
    ]


@row_by_row("zones, each", [(1, 1), (1, 6), (2, 3), (3, 6), (4, 2), (5, 1), (6, 2), (1, 100), (3, 34)])
def test_nothing_overlaps_and_every_text_fits(zones: int, each: int) -> None:
    head = environment(crowd(zones, each), zones=zones)
    base = environment(crowd(zones, each, start=1), zones=zones)
    for placed in (place(head, None, None), place(head, base, None)):
        assert list(problems(placed)) == []
        assert placed.width == WIDTH


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=63), st.integers(1, 3), st.sampled_from(TYPES), st.integers(0, 6758)),
        max_size=8,
        unique_by=lambda row: row[0],
    )
)
def test_nothing_overlaps_whatever_the_groups(rows: list[tuple[str, int, str, int]]) -> None:
    head = environment([group(name, zone, kind=kind, count=count) for name, zone, kind, count in rows], zones=3)
    assert list(problems(place(head, None, None))) == []


def test_a_group_says_what_it_has() -> None:
    head = environment(
        [group("h100", 1, count=4, InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}])]
    )
    assert cards(head)["h100"] == (
        "card",
        [
            f"4 {TIMES} ml.p5.48xlarge",
            f"32 {TIMES} H100 80 GB",
            "on-demand",
            "128 EFA",
            "2 threads per core",
            "deep health checks",
            "500 GB EBS",
        ],
    )


@row_by_row(
    "stated, expected",
    [
        ({"TrainingPlanArn": "arn:aws:sagemaker:us-east-1:1:training-plan/april"}, "training plan april"),
        ({"CapacityRequirements": {"Spot": {}}}, "spot"),
        ({"ThreadsPerCore": 1}, "1 thread per core"),
        ({"MinInstanceCount": 3}, "at least 3"),
        ({"InstanceCount": {"Ref": "Nobody"}}, f"? {TIMES} ml.p5.48xlarge"),
        ({"InstanceType": {"Ref": "Nobody"}}, f"2 {TIMES} instance type unknown"),
        ({"InstanceType": None, "InstanceRequirements": {"InstanceTypes": ["a", "b"]}}, f"2 {TIMES} one of 2 types"),
        ({"InstanceType": None, "InstanceRequirements": {"InstanceTypes": list("abcde")}}, "and 2 more"),
    ],
)
def test_a_group_says_what_is_special(stated: dict[str, Any], expected: str) -> None:
    assert expected in cards(environment([group("g", 1, **stated)]))["g"][1]


def test_accelerators_are_squares() -> None:
    text = diagram(environment([group("h100", 1, count=2), group("trn", 1, kind="ml.trn2.48xlarge", count=1)]))
    squares = [each.attrib["class"] for each in ET.fromstring(text).iter(f"{SVG}rect") if each.attrib["width"] == "7"]  # noqa: S314 - our own picture
    assert (squares.count("nodes"), squares.count("control")) == (2 * 8, 16)


def test_squares_that_find_no_room_are_counted() -> None:
    text = diagram(environment([group("h100", 1, count=640)]))
    assert "+632" in re.findall(r">([^<]*)</text>", text)


def test_zones_are_columns_and_blocks_stand_in_them() -> None:
    head = environment([group("a", 1), group("b", 2)], zones=2)
    shown = words(head)
    assert shown.index("use1-az1") < shown.index("a") < shown.index("use1-az2") < shown.index("b")
    assert [shown.count(each) for each in ("Public", "Control plane", "Nodes", "availability zone")] == [2, 2, 2, 2]
    # two nodes of 81 addresses, EKS's six
    assert {"162 of 251 used", "6 of 251 used", "0 of 251 used"} <= set(shown)


def test_many_groups_are_folded_with_their_totals() -> None:
    groups = [group(f"g{number:03}", 1, count=8) for number in range(100)]
    shown = words(environment(groups))
    assert "and 88 more" in shown
    assert "704 nodes, 5,632 accelerators" in shown
    assert [each for each in shown if re.fullmatch(r"g\d+", each)] == [f"g{number:03}" for number in range(12)]
    assert {"800", "6,400", "25,600"} <= set(shown)


@pytest.mark.parametrize(
    ("count", "kind", "expected"),
    [
        (2, "ml.m5.2xlarge", "98 nodes, 768 accelerators"),
        ({"Ref": "Nobody"}, "ml.m5.2xlarge", "96+ nodes, 768+ accelerators"),
        (2, "ml.nobody.knows", "98 nodes, 768+ accelerators"),
    ],
)
def test_totals_count_every_folded_group(count: Any, kind: str, expected: str) -> None:
    groups = [group(f"g{number:03}", 1, count=8) for number in range(24)]
    assert expected in words(environment([*groups, group("last", 1, kind=kind, count=count)]))


def test_many_groups_do_not_hide_a_file_system() -> None:
    system = {"Type": "AWS::FSx::FileSystem", "Properties": {"SubnetIds": [{"Ref": "Nodes1"}]}}
    systems: dict[str, Any] = {f"Fs{number}": system for number in range(9)}
    shown = words(environment([group(f"g{number:03}", 1) for number in range(30)], **systems))
    assert {"and 18 more", "Fs0", "Fs5", "and 3 more", "Fs6, Fs7, Fs8"} <= set(shown)


def test_what_changes_is_not_folded() -> None:
    base = [group(f"g{number:03}", 1, count=8) for number in range(100)]
    head = [*base[:77], group("g077", 1, count=9), *base[78:]]
    found = cards(environment(head), environment(base))
    assert found["g077"][0] == "card-changed"
    assert "InstanceCount 8 → 9" in found["g077"][1]


def test_changes_are_marked() -> None:
    system: dict[str, Any] = {
        "Type": "AWS::FSx::FileSystem",
        "Properties": {"FileSystemType": "LUSTRE", "StorageCapacity": 4800, "SubnetIds": [{"Ref": "Nodes1"}]},
    }
    bigger = copy.deepcopy(system)
    bigger["Properties"]["StorageCapacity"] = 9600
    base = environment(
        [group("same", 1), group("old", 1), group("more", 1)], Fs=system, Gone={"Type": "AWS::S3::Bucket"}
    )
    head = environment([group("same", 1), group("more", 1, count=5), group("new", 1)], Fs=bigger)
    found = cards(head, base)
    assert {name: kind for name, (kind, _) in found.items()} == {
        "EKS prod-eks": "card",
        "HyperPod prod": "card",
        "same": "card",
        "more": "card-changed",
        "new": "card-added",
        "old": "card-removed",
        "Fs": "card-changed",
        "Gone": "card-removed",
    }
    assert "InstanceCount 2 → 5" in found["more"][1]
    assert "StorageCapacity 4800 → 9600" in found["Fs"][1]
    assert "6 → 9" in words(head, base)
    assert words(head, base)[8:11] == ["added", "changed", "removed"]


def test_without_a_base_nothing_is_marked() -> None:
    head = environment([group("g", 1)])
    assert not {"added", "changed", "removed"} & set(words(head))
    assert 'class="card-' not in diagram(head)


def test_a_new_version_of_kubernetes_is_a_change_of_eks() -> None:
    base = environment([group("g", 1)])
    newer = {**base.stacks[0].template["Resources"]}
    newer["Eks"] = {**newer["Eks"], "Properties": {**newer["Eks"]["Properties"], "Version": "1.36"}}
    head = replace(base, stacks=(replace(base.stacks[0], template={"Resources": newer}),))
    kind, texts = cards(head, base)["EKS prod-eks"]
    assert kind == "card-changed"
    assert texts == ["changed", "Kubernetes 1.36", "Version 1.35 → 1.36", "public endpoint"]


def test_endpoints_addons_teams_and_repositories_are_shown() -> None:
    quota = {
        "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 80},
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 2}],
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
        },
    }
    gateway = {"VpcId": {"Ref": "Vpc"}, "ServiceName": "com.amazonaws.us-east-1.s3", "VpcEndpointType": "Gateway"}
    lustre = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 4800,
        "SubnetIds": [{"Ref": "Nodes1"}],
        "LustreConfiguration": {"PerUnitStorageThroughput": 250, "EfaEnabled": True, "DeploymentType": "PERSISTENT_2"},
    }
    link = {"FileSystemId": {"Ref": "Fs"}, "FileSystemPath": "/data", "DataRepositoryPath": "s3://bucket/data"}
    head = environment(
        [group("g", 1)],
        Team={"Type": "AWS::SageMaker::ComputeQuota", "Properties": quota},
        S3={"Type": "AWS::EC2::VPCEndpoint", "Properties": gateway},
        Fs={"Type": "AWS::FSx::FileSystem", "Properties": lustre},
        Link={"Type": "AWS::FSx::DataRepositoryAssociation", "Properties": link},
        Addon={"Type": "AWS::EKS::Addon", "Properties": {"AddonName": "amazon-sagemaker-hyperpod-taskgovernance"}},
        Bucket={
            "Type": "AWS::S3::Bucket",
            "Properties": {"BucketName": {"Fn::Sub": "x-${AWS::AccountId}-${Nobody}-y"}},
        },
    )
    found = cards(head)
    assert found["research"][1] == ["fair-share weight 80", f"2 {TIMES} ml.p5.48xlarge", "lends, borrows 50 %"]
    assert found["Fs"][1] == [
        "FSx Lustre, 4,800 GiB SSD",
        "250 MB/s per TiB",
        "/data from s3://bucket/data",
        "EFA",
        "persistent 2",
    ]
    assert found["Add-ons and operators"][1] == ["1 EKS add-on", "hyperpod-taskgovernance"]
    assert found["Bucket"][1] == ["S3 bucket x-111122223333-…-y"]
    assert "s3 (gateway)" in words(head)


FOREIGN = """
Parameters: {Zone: {Type: String}, Subnet: {Type: String}, Count: {Type: Number}}
Resources:
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: !Ref Zone}}
  Named: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref Vpc, CidrBlock: 10.0.0.0/24, AvailabilityZone: us-east-1a}}
  First:
    Type: AWS::EC2::Subnet
    Properties: {VpcId: !Ref Vpc, CidrBlock: 10.0.1.0/24, AvailabilityZone: !Select [0, !GetAZs ""]}
  Cluster:
    Type: AWS::SageMaker::Cluster
    Properties:
      InstanceGroups:
        - InstanceGroupName: named
          InstanceType: ml.g5.xlarge
          InstanceCount: 1
          OverrideVpcConfig: {Subnets: [!Ref Named]}
        - InstanceGroupName: first
          InstanceType: ml.g5.xlarge
          InstanceCount: !Ref Count
          OverrideVpcConfig: {Subnets: [!Ref First]}
        - InstanceGroupName: both
          InstanceType: ml.new.1xlarge
          InstanceCount: 1
          OverrideVpcConfig: {Subnets: [!Ref Named, !Ref First]}
        - InstanceGroupName: given
          InstanceType: ml.g5.xlarge
          InstanceCount: 1
          OverrideVpcConfig: {Subnets: [!Ref Subnet]}
        - {InstanceGroupName: nowhere, InstanceType: ml.g5.xlarge, InstanceCount: 1}
"""


def test_a_foreign_template_is_drawn_as_far_as_it_shows() -> None:
    head = template(FOREIGN)
    shown = words(head)
    assert {"us-east-1a", "zone unknown", "not in these templates", "block unknown"} <= set(shown)
    assert {"named", "first", "both", "given", "nowhere"} <= set(cards(head))
    assert "across us-east-1a, zone unknown" in cards(head)["both"][1]
    assert {"region unknown · account unknown · 1 stack", "4+", "foreign"} <= set(shown)
    assert list(problems(place(head, None, None))) == []


def test_a_template_without_a_network_is_drawn() -> None:
    assert words(template("Resources: {Bucket: {Type: AWS::S3::Bucket}}"))[-2:] == ["Bucket", "S3 bucket"]


def test_a_template_with_nothing_to_show_says_so() -> None:
    assert words(template("Resources: {Topic: {Type: AWS::SNS::Topic}}"))[-1] == (
        "The templates contain nothing that this picture shows."
    )


def test_a_whole_environment_that_is_removed_is_drawn() -> None:
    base = environment(crowd(2, 2), zones=2)
    head = replace(base, stacks=(replace(base.stacks[0], template={"Resources": {"B": {"Type": "AWS::S3::Bucket"}}}),))
    found = cards(head, base)
    assert {kind for name, (kind, _) in found.items() if name.startswith("group-")} == {"card-removed"}
    assert list(problems(place(head, base, None))) == []


def test_the_numbers_of_a_report_are_taken_as_they_are() -> None:
    head = environment([group("g", 1)])
    assert diagram(head, numbers=capacity(head, head)) == diagram(head)


def test_it_scales_and_needs_nothing_from_elsewhere() -> None:
    text = diagram(environment([group("g", 1)]))
    root = ET.fromstring(text)  # noqa: S314 - our own picture
    assert root.attrib["viewBox"].startswith("0 0 1200 ")
    assert root.attrib["aria-label"] == "Architecture of prod"
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|url\(|@import|href", text)


def test_the_same_environment_gives_the_same_bytes() -> None:
    first, second = (diagram(environment(crowd(3, 6), zones=3)) for _ in range(2))
    assert first == second


def test_prod_is_drawn(assemblies: Path) -> None:
    shipped(assemblies, "prod")
    head = read_assembly(assemblies / "prod", "prod")
    assert {"use1-az5", "use1-az4", "h100", "system", "research", "prod", "1 NAT gateway"} <= set(words(head))
    assert list(problems(place(head, None, None))) == []


def test_who_must_approve_and_what_it_costs_stand_below_the_title() -> None:
    long = "Needs approval by " + "; ".join(f"team {number}: {number} gains of access" for number in range(2, 12)) + "."
    root = place(environment([group("h100", 1)]), None, None, (long, "A month at least: $81"))
    said = [each.box.words.text for each in root.everything() if each.box.words]
    first = next(index for index, words_ in enumerate(said) if words_.startswith("Needs approval by"))
    last = said.index("A month at least: $81")
    assert 1 < last - first < 5
    assert " ".join(said[first:last]) == long
    assert list(problems(root)) == []


def test_what_goes_is_drawn_before_what_only_changes() -> None:
    kept = [group(f"kept-{number:02}", 1, count=2) for number in range(20)]
    gone = [group(f"gone-{number:02}", 1) for number in range(8)]
    base, head = environment([*kept, *gone]), environment([{**each, "InstanceCount": 4} for each in kept])
    shown = words(head, base)
    assert [name for name in shown if name.startswith("gone-")] == [f"gone-{number:02}" for number in range(8)]
    # the room that is left goes to what changes
    assert 0 < len([name for name in shown if name.startswith("kept-")]) < len(kept)


@pytest.mark.parametrize("mark", ["added", "removed", "changed"])
def test_a_long_name_leaves_the_mark_whole(mark: str) -> None:
    long = group("a-group-with-a-very-long-name-of-its-own-that-nobody-shortens", 1)
    others = [group(f"g{number}", 1) for number in range(3)]
    sides = {
        "added": (environment(others), environment([*others, long])),
        "removed": (environment([*others, long]), environment(others)),
        "changed": (environment([*others, long]), environment([*others, {**long, "InstanceCount": 9}])),
    }
    base, head = sides[mark]
    # once in the legend, once on the card
    assert re.findall(r">([^<]*)</text>", diagram(head, base)).count(mark) == 2
