"""What an environment costs, resource by resource, before and after."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.catalog.prices import Price, Prices, unit_of
from hyperpod_cdk.config import LoadedEnvironment, load_environment
from hyperpod_cdk.config.recorded_plans import RecordedBlock, RecordedPlan, RecordedPlans
from hyperpod_cdk.review.figures.charge_lines import thing
from hyperpod_cdk.review.figures.charges import KINDS
from hyperpod_cdk.review.figures.cost import cost
from hyperpod_cdk.review.model import Change, Cost, CostLine, Paid, PlanFee
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_assembly
from tests.support.assembly import shipped
from tests.support.tables import row_by_row

REGION = "us-west-2"
LIST = "on demand, before taxes, discounts, savings plans and free tiers; a month has 730 hours"
FREE = "it is not documented which of its metadata IOPS are included in the capacity"
SEE = "'hyperpod-cdk prices show' shows why; run 'hyperpod-cdk prices refresh'"
ENDS = f"when standard support of Kubernetes 1.34 ends (dates as of {kubernetes.AS_OF})"
ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/h100-april"
NO_FILE = "no price in the file of 2026-11-21; run 'hyperpod-cdk prices refresh'"
P4D = "node.ml.p4d.24xlarge"
SKUS = {
    P4D: "25.91",
    "node.ml.g5.12xlarge": "7.09",
    "node.ml.g5.24xlarge": "10.18",
    "node_volume": "0.115",
    "ebs.gp3": "0.08",
    "eks.cluster": "0.10",
    "eks.extended_support": "0.50",
    "eks.provisioned.tier-xl": "1.65",
    "nat_gateway": "0.045",
    "public_ipv4": "0.005",
    "interface_endpoint": "0.01",
    "lustre.scratch": "0.14",
    "lustre.ssd.250": "0.21",
    "lustre.hdd.12": "0.025",
    "lustre.tiering.throughput": "0.52",
    "lustre.metadata_iops": "0.055",
    "lustre.read_cache": "0.2",
    "kms.key": "1",
    "cloudwatch.alarm": "0.10",
    "cloudwatch.alarm.high_resolution": "0.30",
    "cloudwatch.dashboard": "3",
}


def price(sku: str, usd: str, **changes: Any) -> Price:
    given_: dict[str, Any] = {
        "region": REGION,
        "sku": sku,
        "usd": Decimal(usd),
        "unit": unit_of(sku),
        "as_of": date(2026, 11, 21),
        "source": "api",
    }
    return Price(**{**given_, **changes})


def price_file(*rows: Price) -> Prices:
    chosen = rows or tuple(price(sku, usd) for sku, usd in SKUS.items())
    return Prices(
        as_of=date(2026, 11, 21),
        sources={"api": "x"},
        rows={(row.region, row.sku): row for row in chosen},
        where="prices.json",
    )


PRICES = price_file()


def stack(resources: dict[str, Any], *, region: str = REGION, **sections: Any) -> Assembly:
    """An environment of one stack; a value is a resource's type with its properties."""
    bodies = {name: body if isinstance(body, dict) else {"Type": body} for name, body in resources.items()}
    made = Stack(name="dev-a", template={"Resources": bodies, **sections}, region=region)
    return Assembly(environment="dev", stacks=(made,))


def of_type(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def one(kind: str, prices: Prices = PRICES, **properties: Any) -> Cost:
    """What one resource costs that is new."""
    return cost(EMPTY, stack({"It": of_type(kind, **properties)}), prices=prices)


def cluster(*groups: dict[str, Any], **properties: Any) -> Assembly:
    return stack({"Cluster": of_type("AWS::SageMaker::Cluster", InstanceGroups=list(groups), **properties)})


def group(**changes: Any) -> dict[str, Any]:
    """Two nodes of p4d on demand without a volume."""
    given_ = {"InstanceGroupName": "g", "InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2}
    return {name: value for name, value in {**given_, **changes}.items() if value is not None}


def lines(found: Cost) -> list[tuple[str, float | None, float | None]]:
    """What each line says, before and after."""
    return [(line.what, line.monthly.before, line.monthly.after) for line in found.lines]


def test_nodes_on_demand() -> None:
    found = cost(cluster(group()), cluster(group(InstanceCount=3)), prices=PRICES)
    assert found.lines == (
        CostLine(
            resource="dev-a / Cluster[g]",
            of=Paid(
                stack="dev-a",
                logical_id="Cluster",
                item="g",
                properties=(
                    *("InstanceCount", "InstanceType", "InstanceTypes", "InstanceRequirements", "CapacityRequirements"),
                    *("Spot", "TrainingPlanArn"),
                ),
            ),
            kind="nodes",
            what="3 x ml.p4d.24xlarge, on demand; before: 2 x ml.p4d.24xlarge, on demand",
            unit_price=25.91,
            unit="instance-hour",
            monthly=Change(before=37828.6, after=56742.9),
            quantity=Change(before=2, after=3),
        ),
    )
    assert found.monthly == Change(before=37828.6, after=56742.9)
    assert found.unknown == ()
    assert not found.is_lower_bound
    assert (found.region, found.prices_as_of) == (REGION, "2026-11-21")
    assert found.notes == (
        f"list prices of prices.json, as of 2026-11-21: {LIST}",
        "root volumes of nodes are not counted: it is not documented whether HyperPod charges for them",
    )


def test_another_type_is_two_lines() -> None:
    found = cost(cluster(group()), cluster(group(InstanceType="ml.g5.12xlarge")), prices=PRICES)
    assert lines(found) == [
        ("2 x ml.g5.12xlarge, on demand", 0, 10351.4),
        ("2 x ml.p4d.24xlarge, on demand", 37828.6, 0),
    ]


def test_a_type_without_a_price() -> None:
    found = cost(EMPTY, cluster(group(InstanceType="ml.p6-b200.48xlarge")), prices=PRICES)
    assert lines(found) == [("2 x ml.p6-b200.48xlarge, on demand", 0, None)]
    assert found.lines[0].unit_price is None
    assert found.unknown == (f"ml.p6-b200.48xlarge in us-west-2: {NO_FILE}",)
    assert found.is_lower_bound
    assert found.monthly == Change(before=0, after=0)


def test_what_is_not_known_of_the_side_before_says_so() -> None:
    found = cost(cluster(group(InstanceType="ml.p6-b200.48xlarge")), cluster(group()), prices=PRICES)
    assert found.unknown == (f"before: ml.p6-b200.48xlarge in us-west-2: {NO_FILE}",)
    assert found.is_lower_bound


def test_a_template_without_a_region_has_no_prices() -> None:
    found = cost(EMPTY, stack({"Nat": "AWS::EC2::NatGateway"}, region=""), prices=PRICES)
    assert found.region == ""
    assert found.unknown == (
        "NAT gateway: the templates name no Region, and prices differ between Regions",
        "AWS::EC2::NatGateway (1): charged for the transferred data",
    )


@pytest.mark.parametrize(
    ("changes", "what", "note", "unknown"),
    [
        (
            {"CapacityRequirements": {"Spot": {}}},
            "2 x ml.p4d.24xlarge, spot",
            "Spot prices change all the time; the on-demand price is no bound",
            "dev-a / Cluster[g]: the price of ml.p4d.24xlarge on Spot is unknown",
        ),
        (
            {"InstanceType": {"Ref": "Asked"}},
            "2 x an instance type that the template does not show, on demand",
            "",
            "dev-a / Cluster[g]: the template does not show its instance types",
        ),
        (
            {"InstanceCount": {"Ref": "Asked"}},
            "? x ml.p4d.24xlarge, on demand",
            "",
            "dev-a / Cluster[g]: the number of its nodes is unknown: ${Asked} sets it",
        ),
        (
            # no group has fewer than none, and none makes an environment cheaper
            {"InstanceCount": -2},
            "? x ml.p4d.24xlarge, on demand",
            "",
            "dev-a / Cluster[g]: the number of its nodes is unknown: -2 is not a valid count of a group",
        ),
        (
            {"CapacityRequirements": {"Ref": "Asked"}},
            "2 x ml.p4d.24xlarge, unknown",
            "",
            "dev-a / Cluster[g]: the template does not show how its nodes are paid",
        ),
    ],
)
def test_nodes_whose_price_is_not_known(changes: dict[str, Any], what: str, note: str, unknown: str) -> None:
    found = cost(EMPTY, cluster(group(**changes)), prices=PRICES)
    assert lines(found) == [(what, 0, None)]
    assert found.lines[0].note == note
    assert found.unknown == (unknown,)


def test_nodes_of_karpenter_are_paid_by_use() -> None:
    volumes = [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}]
    head = cluster(group(InstanceCount=0, InstanceStorageConfigs=volumes), AutoScaling={"Mode": "Enable"})
    found = cost(EMPTY, head, prices=PRICES)
    assert lines(found) == [
        ("? x ml.p4d.24xlarge, on demand", 0, None),
        ("? x 500 GB of additional EBS volume", 0, None),
    ]
    assert found.lines[0].unit_price == 25.91
    assert found.lines[0].note == "Karpenter adds and removes these nodes: charged by use"
    assert found.unknown == ("dev-a / Cluster[g]: the number of its nodes is unknown: Karpenter sets it",)


def test_a_group_without_nodes_costs_nothing() -> None:
    volumes = [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}]
    found = cost(EMPTY, cluster(group(InstanceCount=0, InstanceStorageConfigs=volumes)), prices=PRICES)
    assert lines(found) == [
        ("0 x ml.p4d.24xlarge, on demand", 0, 0),
        ("0 x 500 GB of additional EBS volume", 0, 0),
    ]
    assert not found.is_lower_bound


def flexible(*types: str) -> dict[str, Any]:
    return group(InstanceType=None, InstanceRequirements={"InstanceTypes": list(types)})


def test_a_flexible_group_costs_at_least_its_cheapest_type() -> None:
    found = cost(EMPTY, cluster(flexible("ml.g5.24xlarge", "ml.g5.12xlarge")), prices=PRICES)
    assert lines(found) == [("2 x ml.g5.24xlarge or ml.g5.12xlarge, on demand", 0, 10351.4)]
    assert found.lines[0].unit_price == 7.09
    assert found.lines[0].note == "counted at the cheapest type; 14862.80 a month if all were ml.g5.24xlarge"
    assert found.unknown == (
        "dev-a / Cluster[g]: HyperPod uses whichever of ml.g5.24xlarge or ml.g5.12xlarge is available",
    )


def test_one_type_without_a_price_may_be_the_cheapest() -> None:
    found = cost(EMPTY, cluster(flexible("ml.g5.24xlarge", "ml.g5.48xlarge")), prices=PRICES)
    assert lines(found) == [("2 x ml.g5.24xlarge or ml.g5.48xlarge, on demand", 0, None)]
    assert found.unknown == (f"ml.g5.48xlarge in us-west-2: {NO_FILE}",)


@pytest.mark.parametrize(
    ("size", "line", "unknown"),
    [
        (500, ("2 x 500 GB of additional EBS volume", 0, 115.0), ()),
        (
            {"Ref": "Asked"},
            ("2 x ? GB of additional EBS volume", 0, None),
            ("dev-a / Cluster[g]: the size of its nodes' volumes is unknown",),
        ),
    ],
)
def test_additional_volumes(size: Any, line: tuple[str, float, float | None], unknown: tuple[str, ...]) -> None:
    volumes = [{"EbsVolumeConfig": {"VolumeSizeInGB": size}}, {"EbsVolumeConfig": {"RootVolume": True}}]
    found = cost(EMPTY, cluster(group(InstanceStorageConfigs=volumes)), prices=PRICES)
    assert lines(found)[1:] == [line]
    assert found.lines[1].kind == "volumes"
    assert found.unknown == unknown


def test_a_restricted_group_has_a_file_system_of_which_the_price_is_not_published() -> None:
    asked = {"FSxLustreConfig": {"SizeInGiB": 12000, "PerUnitStorageThroughput": 125}}
    head = cluster(RestrictedInstanceGroups=[group(EnvironmentConfig=asked)])
    found = cost(EMPTY, head, prices=PRICES)
    assert lines(found) == [
        ("2 x ml.p4d.24xlarge, on demand", 0, 37828.6),
        ("12000 GiB of Lustre at 125 MB/s per TiB that HyperPod creates", 0, None),
    ]
    assert found.unknown == (
        (
            "dev-a / Cluster[g]: the price of the file system that HyperPod creates for a restricted group is not "
            "published"
        ),
    )


def shared(size: int) -> dict[str, Any]:
    """Return a cluster whose restricted groups share a file system of this size."""
    asked = {"FSxLustreConfig": {"SizeInGiB": size, "PerUnitStorageThroughput": 500}, "FSxLustreDeletionPolicy": "Keep"}
    return {"RestrictedInstanceGroupsConfig": {"SharedEnvironmentConfig": asked}, "RestrictedInstanceGroups": [group()]}


def test_file_system_that_restricted_groups_share_counts_too() -> None:
    found = cost(cluster(**shared(4800)), cluster(**shared(9600)), prices=PRICES)
    (line,) = [each for each in found.lines if each.kind == "storage"]
    assert line.resource == "dev-a / Cluster"
    assert line.what.startswith("9600 GiB of Lustre at 500 MB/s per TiB that HyperPod creates")
    assert found.unknown == (
        "dev-a / Cluster: the price of the file system that HyperPod creates for restricted groups is not published",
    )
    assert [(each.what, each.quantity.before, each.quantity.after) for each in found.unpriced] == [
        ("Lustre at 500 MB/s per TiB that HyperPod creates", 4800, 9600)
    ]


@row_by_row(
    "properties, expected, unknown",
    [
        (
            {
                "StorageCapacity": 4800,
                "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
            },
            [("4800 GiB of Lustre, PERSISTENT_2 on SSD at 250 MB/s per TiB", 1008.0)],
            (),
        ),
        (
            {"StorageCapacity": "1200"},
            [("1200 GiB of Lustre, SCRATCH_1 on SSD", 168.0)],
            (),
        ),
        (
            {
                "StorageCapacity": 6000,
                "StorageType": "HDD",
                "LustreConfiguration": {"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 12},
            },
            [("6000 GiB of Lustre, PERSISTENT_1 on HDD at 12 MB/s per TiB", 150.0)],
            (),
        ),
        (
            {
                "StorageCapacity": 6000,
                "StorageType": "HDD",
                "LustreConfiguration": {
                    "DeploymentType": "PERSISTENT_1",
                    "PerUnitStorageThroughput": 12,
                    "DriveCacheType": "READ",
                },
            },
            [("6000 GiB", None)],
            ("dev-a / It (AWS::FSx::FileSystem): HDD with a read cache has no price here",),
        ),
        (
            {
                "StorageCapacity": 1200,
                "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 500},
            },
            [("1200 GiB of Lustre, PERSISTENT_2 on SSD at 500 MB/s per TiB", None)],
            (f"FSx for Lustre, SSD at 500 MB/s per TiB in us-west-2: {NO_FILE}",),
        ),
        (
            {"StorageCapacity": 1200, "LustreConfiguration": {"DeploymentType": "PERSISTENT_2"}},
            [("1200 GiB", None)],
            ("dev-a / It (AWS::FSx::FileSystem): the template does not show its throughput or its storage type",),
        ),
        (
            {"BackupId": "backup-1"},
            [("? GiB of Lustre, SCRATCH_1 on SSD", None)],
            ("dev-a / It: the template does not show its capacity",),
        ),
        (
            {
                "StorageCapacity": 1200,
                "LustreConfiguration": {
                    "DeploymentType": "PERSISTENT_2",
                    "PerUnitStorageThroughput": 250,
                    "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
                    "AutomaticBackupRetentionDays": 7,
                },
            },
            [
                ("1200 GiB of Lustre, PERSISTENT_2 on SSD at 250 MB/s per TiB", 252.0),
                ("6000 metadata IOPS", None),
                ("1, charged for the backups that are kept", None),
            ],
            (
                f"dev-a / It (AWS::FSx::FileSystem): {FREE}",
                "AWS::FSx::FileSystem (1): charged for the backups that are kept",
            ),
        ),
        (
            {
                "StorageType": "INTELLIGENT_TIERING",
                "LustreConfiguration": {
                    "DeploymentType": "PERSISTENT_2",
                    "ThroughputCapacity": 4000,
                    "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
                    "DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED", "SizeGiB": 1000},
                },
            },
            [
                ("4000 MB/s of Lustre, Intelligent-Tiering", 2080.0),
                ("6000 metadata IOPS", 330.0),
                ("1000 GiB of SSD read cache", 200.0),
                ("1, charged for the stored and requested data", None),
            ],
            ("AWS::FSx::FileSystem (1): charged for the stored and requested data",),
        ),
        (
            {
                "StorageType": "INTELLIGENT_TIERING",
                "LustreConfiguration": {
                    "ThroughputCapacity": {"Ref": "Asked"},
                    "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
                    "DataReadCacheConfiguration": {"SizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"},
                },
            },
            [
                ("? MB/s of Lustre, Intelligent-Tiering", None),
                ("6000 metadata IOPS", 330.0),
                ("? GiB of SSD read cache", None),
                ("1, charged for the stored and requested data", None),
            ],
            (
                "dev-a / It: throughput: the template does not show it",
                "dev-a / It: the size of its read cache follows the throughput and is unknown here",
                "AWS::FSx::FileSystem (1): charged for the stored and requested data",
            ),
        ),
    ],
)
def test_lustre(properties: dict[str, Any], expected: list[tuple[str, float | None]], unknown: tuple[str, ...]) -> None:
    found = one("AWS::FSx::FileSystem", FileSystemType="LUSTRE", **properties)
    assert [(what, after) for what, _, after in lines(found)] == expected
    assert found.unknown == unknown
    assert {line.kind for line in found.lines} == {"storage"}


def test_other_file_systems_have_no_price() -> None:
    found = one("AWS::FSx::FileSystem", FileSystemType="OPENZFS", StorageCapacity=64)
    assert found.unknown == (
        "dev-a / It (AWS::FSx::FileSystem): only FSx for Lustre has prices here",
        "dev-a / It: the price of its StorageCapacity is unknown here",
    )


@row_by_row(
    "kind, properties, expected",
    [
        ("AWS::EC2::NatGateway", {}, [("1 NAT gateway", 32.85), ("1, charged for the transferred data", None)]),
        (
            "AWS::EC2::NatGateway",
            {"AvailabilityMode": "regional"},
            [("1 regional NAT gateway", None), ("1, charged for the transferred data", None)],
        ),
        ("AWS::EC2::EIP", {"Domain": "vpc"}, [("1 public IPv4 address", 3.65)]),
        ("AWS::EC2::EIP", {"PublicIpv4Pool": "mine"}, [("1 public IPv4 address", None)]),
        ("AWS::EC2::VPCEndpoint", {"VpcEndpointType": "Gateway"}, []),
        ("AWS::EC2::VPCEndpoint", {}, []),
        (
            "AWS::EC2::VPCEndpoint",
            {"VpcEndpointType": "Interface", "SubnetIds": ["a", "b"]},
            [("1 interface endpoint in 2 zones", 14.6), ("1, charged for the transferred data", None)],
        ),
        (
            "AWS::EC2::VPCEndpoint",
            {"VpcEndpointType": "Interface", "SubnetIds": ["a"]},
            [("1 interface endpoint in 1 zone", 7.3), ("1, charged for the transferred data", None)],
        ),
        (
            "AWS::EC2::VPCEndpoint",
            {"VpcEndpointType": "Interface", "SubnetIds": {"Ref": "Asked"}},
            [("1 interface endpoint in ? zones", None), ("1, charged for the transferred data", None)],
        ),
        ("AWS::EC2::VPCEndpoint", {"VpcEndpointType": "GatewayLoadBalancer"}, [("1 endpoint", None)]),
        ("AWS::KMS::Key", {}, [("1 KMS key", 1.0)]),
        ("AWS::CloudWatch::Alarm", {"Period": 300}, [("1 alarm", 0.1)]),
        ("AWS::CloudWatch::Alarm", {"Period": 60}, [("1 alarm", 0.1)]),
        ("AWS::CloudWatch::Alarm", {"Period": 30}, [("1 alarm", 0.3)]),
        (
            "AWS::CloudWatch::Alarm",
            {"Metrics": [{"MetricStat": {"Period": 60}}, {"MetricStat": {"Period": 60}}, {"Expression": "a+b"}]},
            [("1 alarm on 2 metrics", 0.2)],
        ),
        ("AWS::CloudWatch::Dashboard", {}, [("1 dashboard", 3.0)]),
        ("AWS::EC2::Volume", {"VolumeType": "gp3", "Size": 100}, [("100 GB of gp3 volume", 8.0)]),
        (
            "AWS::EC2::Volume",
            {"VolumeType": "gp3", "Size": 100, "Iops": 9000},
            [("100 GB of gp3 volume", 8.0), ("IOPS and throughput", None), ("9000 Iops", None)],
        ),
        ("AWS::EC2::Volume", {"Size": 100}, [("1 volume", None), ("100 Size", None)]),
        ("AWS::SSM::Parameter", {}, []),
        ("AWS::SSM::Parameter", {"Tier": "Advanced"}, [("1 parameter", None)]),
        ("AWS::EKS::Addon", {"AddonName": "vpc-cni"}, []),
        ("AWS::EKS::Addon", {"AddonName": "adot"}, [("1, charged for the metrics and traces that it sends", None)]),
        ("AWS::EC2::Instance", {"InstanceType": "t3.micro"}, [("1 x t3.micro", None)]),
        ("AWS::Lambda::Function", {}, [("1, charged for calls and their time", None)]),
        ("AWS::IAM::Role", {}, []),
        ("Custom::Thing", {}, []),
        ("AWS::CloudFormation::Stack", {}, [("1, unknown whether it costs money", None)]),
    ],
)
def test_what_else_costs(kind: str, properties: dict[str, Any], expected: list[tuple[str, float | None]]) -> None:
    found = one(kind, **properties)
    assert [(what, after) for what, _, after in lines(found)] == expected
    assert found.is_lower_bound == any(after is None for _, after in expected)


@pytest.mark.parametrize(
    ("kind", "properties", "unknown"),
    [
        (
            "AWS::EC2::EIP",
            {"IpamPoolId": "x"},
            ("dev-a / It (AWS::EC2::EIP): its IpamPoolId decides whether it costs money"),
        ),
        (
            "AWS::EC2::VPCEndpoint",
            {"VpcEndpointType": {"Ref": "Asked"}},
            "dev-a / It (AWS::EC2::VPCEndpoint): the template does not show its type",
        ),
        ("AWS::EC2::Instance", {}, "dev-a / It (AWS::EC2::Instance): not one of the prices that are recorded here"),
        ("AWS::Quantum::Computer", {}, "AWS::Quantum::Computer (1): unknown whether it costs money"),
        ("AWS::S3::Bucket", {}, "AWS::S3::Bucket (1): charged for stored data and the number of requests"),
        ("AWS::SSM::Parameter", {"Tier": "Advanced"}, "dev-a / It (AWS::SSM::Parameter): no price for tier Advanced"),
    ],
)
def test_what_is_reported_about_a_price_that_is_not_known(kind: str, properties: dict[str, Any], unknown: str) -> None:
    assert one(kind, **properties).unknown == (unknown,)


def eks(version: Any = "1.35", **properties: Any) -> Cost:
    return one("AWS::EKS::Cluster", Version=version, **properties)


def test_a_version_in_standard_support_shows_when_it_becomes_more_expensive() -> None:
    found = eks("1.34")
    assert lines(found) == [("1 EKS cluster", 0, 73.0)]
    assert found.unknown == ()
    assert found.notes[1:] == (f"dev-a / It: costs 365.00 US dollars a month more from 2026-12-02, {ENDS}",)


@pytest.mark.parametrize(
    ("version", "on", "what"),
    [
        ("1.34", "on 2026-12-02", "Kubernetes 1.34"),
        ("1.37", "on an unknown day", "Kubernetes 1.37"),
        (None, "on an unknown day", "its version of Kubernetes"),
    ],
)
def test_a_version_that_eks_upgrades_never_costs_more(version: Any, on: str, what: str) -> None:
    found = eks(version, UpgradePolicy={"SupportType": "STANDARD"})
    assert lines(found) == [("1 EKS cluster", 0, 73.0)]
    assert (found.unknown, found.unpriced) == ((), ())
    ends = f"when standard support of {what} ends (dates as of {kubernetes.AS_OF})"
    assert found.notes[1:] == (f"dev-a / It: EKS upgrades it {on}, {ends}",)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.33", [("1 EKS cluster", 0, 73.0), ("extended support of Kubernetes 1.33", 0, 365.0)]),
        ("1.34", [("1 EKS cluster", 0, 73.0)]),
        ("1.37", [("1 EKS cluster", 0, 73.0), ("extended support", 0, None)]),
    ],
)
def test_the_policy_that_is_eks_s_default_costs_as_much_where_it_is_stated(version: str, expected: list[Any]) -> None:
    """The EKS user guide, "enable-extended-support": a policy costs nothing before standard support ends."""
    stated, unstated = eks(version, UpgradePolicy={"SupportType": "EXTENDED"}), eks(version)
    assert lines(stated) == lines(unstated) == expected
    assert (stated.unpriced, stated.notes) == (unstated.unpriced, unstated.notes)


def test_extended_support_is_counted_by_the_catalog_s_date() -> None:
    found = eks("1.33")
    assert lines(found) == [("1 EKS cluster", 0, 73.0), ("extended support of Kubernetes 1.33", 0, 365.0)]
    assert found.lines[1].note == f"since 2026-07-29, until 2027-07-29 (dates as of {kubernetes.AS_OF})"
    assert len(found.notes) == 1


def test_a_version_without_any_support_is_upgraded() -> None:
    found = eks("1.30")
    assert found.lines[1].monthly == Change(before=0, after=365)
    assert found.lines[1].note == (
        "since 2025-07-23, until 2026-07-23, when EKS upgrades the cluster automatically (dates as of "
        f"{kubernetes.AS_OF})"
    )


@pytest.mark.parametrize(("day", "extended"), [(date(2026, 12, 1), 0), (date(2026, 12, 2), 1)])
def test_extended_support_begins_on_its_day(day: date, extended: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "AS_OF", day)
    assert len(eks("1.34").lines) == 1 + extended


@pytest.mark.parametrize(
    ("version", "stated"),
    [(None, "that the template does not state"), ("1.37", "1.37"), ("2.0", "2.0"), ({"Ref": "Asked"}, "${Asked}")],
)
def test_a_version_of_which_no_date_is_known(version: Any, stated: str) -> None:
    found = eks(version)
    assert lines(found) == [("1 EKS cluster", 0, 73.0), ("extended support", 0, None)]
    said = f"it is unknown whether and from when on Kubernetes {stated} costs extended support"
    assert found.unknown == (f"dev-a / It (AWS::EKS::Cluster): {said}",)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        ("standard", []),
        ("tier-xl", [("Provisioned Control Plane, tier-xl", 0, 1204.5)]),
        ("tier-2xl", [("Provisioned Control Plane, tier-2xl", 0, None)]),
        ("odd", [("Provisioned Control Plane, odd", 0, None)]),
    ],
)
def test_a_provisioned_control_plane(tier: str, expected: list[tuple[str, float, float | None]]) -> None:
    assert lines(eks(ControlPlaneScalingConfig={"Tier": tier}))[1:] == expected


def test_auto_mode_is_paid_by_use() -> None:
    found = eks(ComputeConfig={"Enabled": True})
    assert lines(found) == [("1, charged for the nodes of Auto Mode", 0, None), ("1 EKS cluster", 0, 73.0)]


def test_a_price_that_is_not_confirmed_is_marked() -> None:
    prices = price_file(price("kms.key", "1", unsure="seen once", as_of=None))
    found = one("AWS::KMS::Key", prices, EnableKeyRotation=True)
    assert found.lines[0].note == (
        "a rotation keeps the old key material, which may cost the same again; price of an unknown day, not confirmed"
    )
    assert [each.is_confirmed for each in found.lines] == [False]
    assert found.notes[1] == (f"1 line with a price that is not confirmed: {SEE}")


def test_a_price_of_another_day_than_the_file_s_says_so() -> None:
    old = date(2026, 3, 14)
    prices = price_file(price("kms.key", "1", as_of=old), price("node.ml.p4d.24xlarge", "25", as_of=old))
    assert one("AWS::KMS::Key", prices).lines[0].note == "price of 2026-03-14"
    assert cost(EMPTY, cluster(group()), prices=prices).lines[0].note == "price of 2026-03-14"


CONDITIONS = {
    "Yes": {"Fn::Equals": ["a", "a"]},
    "No": {"Fn::Equals": ["a", "b"]},
    "Maybe": {"Fn::Equals": [{"Ref": "Asked"}, "b"]},
}


@pytest.mark.parametrize(("condition", "expected"), [("Yes", [32.85, None]), ("No", []), ("Maybe", [None, None])])
def test_a_resource_with_a_condition(condition: str, expected: list[float | None]) -> None:
    body = {**of_type("AWS::EC2::NatGateway"), "Condition": condition}
    found = cost(EMPTY, stack({"Nat": body}, Conditions=CONDITIONS), prices=PRICES)
    assert [line.monthly.after for line in found.lines] == expected
    said = "dev-a / Nat: created only if condition Maybe is true, which the template does not show"
    assert (said in found.unknown) == (condition == "Maybe")


def test_nodes_with_a_condition_are_counted_without_a_price() -> None:
    def of(count: int) -> Assembly:
        (body,) = cluster(group(InstanceCount=count)).stacks[0].template["Resources"].values()
        return stack({"Cluster": {**body, "Condition": "Maybe"}}, Conditions=CONDITIONS)

    missing = "whether condition Maybe is true, which the template does not show"
    for base, before in ((EMPTY, 0), (of(2), 2)):
        (found,) = [each for each in cost(base, of(16), prices=PRICES).unpriced if each.kind == "nodes"]
        assert (found.quantity.before, found.quantity.after, found.missing) == (before, 16, missing)


@row_by_row(
    "before, after, expected",
    [
        (None, "Maybe", [(0, 1)]),
        ("No", "Maybe", [(0, 1)]),
        ("Maybe", "Maybe", [(1, 1)]),
        # it costs at most as much as before
        ("Yes", "Maybe", [(1, 1)]),
        ("Maybe", "Yes", [(1, 1)]),
        ("Maybe", None, [(1, 0)]),
        ("Maybe", "No", [(1, 0)]),
        (None, "Yes", []),
        ("Yes", "Yes", []),
    ],
)
@pytest.mark.parametrize(
    ("resource_type", "sold"),
    [("AWS::EC2::NatGateway", "NAT gateway"), ("AWS::KMS::Key", "KMS key"), ("AWS::EC2::EIP", "public IPv4 address")],
)
def test_what_may_exist_is_counted_as_without_a_price(
    resource_type: str, sold: str, before: str | None, after: str | None, expected: list[tuple[int, int]]
) -> None:
    """Whatever its kind: docs/review.md, "Who must approve, and why"."""

    def of(condition: str | None) -> Assembly:
        body = {**of_type(resource_type), "Condition": condition}
        return stack({"It": body} if condition else {}, Conditions=CONDITIONS)

    found = cost(of(before), of(after), prices=PRICES).unpriced
    assert [(each.quantity.before, each.quantity.after) for each in found] == expected
    assert {each.what for each in found} == ({sold} if expected else set())


def test_many_of_a_kind_that_is_paid_by_use_are_one_line() -> None:
    head = stack({f"Log{number}": "AWS::Logs::LogGroup" for number in range(3)})
    found = cost(stack({"Log1": "AWS::Logs::LogGroup"}), head, prices=PRICES)
    assert found.lines == (
        CostLine(
            resource="AWS::Logs::LogGroup",
            kind="logs",
            what="3, charged for data that is written and stored; before: 1, charged for data that is written "
            "and stored",
            unit_price=None,
            unit="by use",
            monthly=Change(before=None, after=None),
        ),
    )


START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
END = datetime(2026, 12, 11, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def prod(project: Path) -> LoadedEnvironment:
    """The environment that ships."""
    return load_environment(project / "environments/prod.yaml", today=date(2026, 11, 21), with_record=False)


def on_record(prod: LoadedEnvironment, **changes: Any) -> LoadedEnvironment:
    """Prod with a record of the plan, or with ``plan=None`` a record of no plan."""
    block = RecordedBlock(
        instance_type="ml.p5.48xlarge",
        instance_count=2,
        availability_zone="us-west-2a",
        availability_zone_id="usw2-az1",
        start=changes.pop("start", START),
        end=changes.pop("end", END),
    )
    values: dict[str, Any] = {
        "arn": ARN,
        "name": "h100-april",
        "status": "Active",
        "target_resources": ("hyperpod-cluster",),
        "instance_count": 2,
        "blocks": (block,),
        "upfront_fee": "10984.20",
        "currency": "USD",
    }
    plan = RecordedPlan(**{**values, **changes})
    record = RecordedPlans(
        schema_version=1, recorded=date(2026, 11, 21), account="111122223333", region=REGION, plans=(plan,)
    )
    return replace(prod, recorded_plans=record)


ON_PLAN = stack(
    {
        "Cluster": of_type("AWS::SageMaker::Cluster", InstanceGroups=[group(TrainingPlanArn=ARN)]),
        "Key": of_type("AWS::KMS::Key"),
    }
)
RUN = "run 'hyperpod-cdk plans record dev'"
PAID = "paid once, whether the nodes run or not; the nodes leave an hour before the end"


def test_a_plan_s_fee_is_counted_once_and_not_by_the_hour(prod: LoadedEnvironment) -> None:
    two = stack(
        {
            "Cluster": of_type(
                "AWS::SageMaker::Cluster",
                InstanceGroups=[
                    group(TrainingPlanArn=ARN),
                    group(InstanceGroupName="h", TrainingPlanArn=ARN),
                ],
            ),
            "Key": of_type("AWS::KMS::Key"),
            "Nat": of_type("AWS::EC2::EIP"),
        }
    )
    found = cost(ON_PLAN, two, prices=PRICES, base_environment=on_record(prod), head_environment=on_record(prod))
    assert lines(found)[:2] == [
        ("2 x ml.p4d.24xlarge, on training plan h100-april", 0, 0),
        ("2 x ml.p4d.24xlarge, on training plan h100-april", 0, 0),
    ]
    assert found.lines[0].note == "paid with the plan's fee, not by the hour"
    assert found.plans == (
        PlanFee(
            plan="h100-april",
            fee=Change(before=10984.2, after=10984.2),
            starts="2026-12-01 11:30 UTC",
            ends="2026-12-11 11:30 UTC",
            # 240 of 730 hours
            environment_during_window=Change(before=0.33, after=1.53),
            note=PAID,
        ),
    )
    assert not found.is_lower_bound


@pytest.mark.parametrize(
    ("changes", "fee", "starts", "ends", "note"),
    [
        ({"upfront_fee": "", "currency": ""}, None, True, True, f"the record does not show the plan's fee; {RUN}"),
        ({"currency": "EUR"}, None, True, True, "the fee is 10984.20 EUR, which is not counted in US dollars"),
        ({"upfront_fee": "much"}, None, True, True, "the fee is much USD, which is not counted in US dollars"),
        ({"upfront_fee": "NaN"}, None, True, True, "the fee is NaN USD, which is not counted in US dollars"),
        ({"currency": ""}, 10984.2, True, True, PAID),
        ({"end": None}, 10984.2, True, False, PAID),
        ({"end": START}, 10984.2, True, False, PAID),
        ({"blocks": ()}, 10984.2, False, False, PAID),
        ({"arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/other"}, None, False, False, ""),
    ],
    ids=str,
)
def test_missing_values_of_a_record(
    changes: dict[str, Any], fee: float | None, *, starts: bool, ends: bool, note: str, prod: LoadedEnvironment
) -> None:
    found = cost(EMPTY, ON_PLAN, prices=PRICES, head_environment=on_record(prod, **changes))
    (plan,) = found.plans
    assert plan.fee == Change(before=0, after=fee)
    assert (plan.starts is not None, plan.ends is not None) == (starts, ends)
    assert (plan.environment_during_window.after is not None) == (starts and ends)
    note = note or f"no record of the plan states its fee and its window; {RUN}"
    assert plan.note == note
    assert found.unknown == ((f"training plan h100-april: {note}",) if fee is None else ())
    # nodes on a plan do not look as if they cost nothing
    assert [(each.what, each.quantity, each.missing) for each in found.unpriced] == (
        [("fee of training plan h100-april", Change(before=0, after=1), note)] if fee is None else []
    )
    assert found.is_lower_bound == (fee is None)


def test_a_fee_that_is_known_on_neither_side_is_no_more_than_before(prod: LoadedEnvironment) -> None:
    unrecorded = {"upfront_fee": "", "currency": ""}
    sides = {f"{side}_environment": on_record(prod, **unrecorded) for side in ("base", "head")}
    found = cost(ON_PLAN, ON_PLAN, prices=PRICES, **sides)
    assert [each.quantity for each in found.unpriced] == [Change(before=1, after=1)]


def test_a_plan_that_is_left_keeps_its_fee_before(prod: LoadedEnvironment) -> None:
    found = cost(ON_PLAN, stack({"Key": of_type("AWS::KMS::Key")}), prices=PRICES, base_environment=on_record(prod))
    assert [plan.fee for plan in found.plans] == [Change(before=10984.2, after=0)]


SOME = st.dictionaries(
    st.sampled_from(["A", "B", "C", "D", "E"]),
    st.one_of(
        st.just(of_type("AWS::EC2::NatGateway")),
        st.just(of_type("AWS::KMS::Key")),
        st.just(of_type("AWS::Logs::LogGroup")),
        st.builds(
            lambda size: of_type("AWS::EC2::Volume", VolumeType="gp3", Size=size),
            st.integers(min_value=1, max_value=999),
        ),
        st.builds(
            lambda count: of_type("AWS::SageMaker::Cluster", InstanceGroups=[group(InstanceCount=count)]),
            st.integers(min_value=0, max_value=7000),
        ),
    ),
)


@given(before=SOME, after=SOME, usd=st.decimals(min_value="0.000001", max_value=400, places=10))
def test_the_lines_add_up_to_the_total(before: dict[str, Any], after: dict[str, Any], usd: Decimal) -> None:
    prices = price_file(*(price(sku, f"{usd:f}") for sku in SKUS))
    found = cost(stack(before), stack(after), prices=prices)
    for side in ("before", "after"):
        known = [Decimal(str(amount)) for line in found.lines if (amount := getattr(line.monthly, side)) is not None]
        assert sum(known, Decimal(0)) == Decimal(str(getattr(found.monthly, side)))
        assert all(amount == amount.quantize(Decimal("0.01")) for amount in known)
    order = [KINDS.index(line.kind) for line in found.lines]
    assert order == sorted(order)
    assert found == cost(stack(before), stack(after), prices=prices)


READ = {
    "AWS::FSx::FileSystem": ("FileSystemType", "StorageType", "StorageCapacity", "LustreConfiguration"),
    "AWS::EKS::Cluster": ("Version", "UpgradePolicy", "ControlPlaneScalingConfig", "ComputeConfig"),
    "AWS::EC2::EIP": ("PublicIpv4Pool",),
    "AWS::EC2::NatGateway": ("AvailabilityMode",),
    "AWS::EC2::VPCEndpoint": ("VpcEndpointType", "SubnetIds"),
    "AWS::EC2::Volume": ("VolumeType", "Size", "Iops"),
    "AWS::CloudWatch::Alarm": ("Period", "Metrics"),
    "AWS::KMS::Key": ("EnableKeyRotation",),
    "AWS::SSM::Parameter": ("Tier",),
    "AWS::EKS::Addon": ("AddonName",),
    "AWS::SageMaker::Cluster": ("InstanceGroups", "RestrictedInstanceGroups", "AutoScaling"),
}
WORDS = (
    "LUSTRE",
    "SSD",
    "HDD",
    "INTELLIGENT_TIERING",
    "SCRATCH_2",
    "Interface",
    "gp3",
    "READ",
    "1.33",
    "tier-xl",
    "12",
)
INNER = (
    "DeploymentType",
    "PerUnitStorageThroughput",
    "DriveCacheType",
    "ThroughputCapacity",
    "MetadataConfiguration",
    "Mode",
    "DataReadCacheConfiguration",
    "SizingMode",
    "Tier",
    "Enabled",
    "MetricStat",
    "EnvironmentConfig",
    "FSxLustreConfig",
    "InstanceCount",
    "InstanceType",
    "Ref",
)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(min_value=-1, max_value=5000) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data(), kind=st.sampled_from(sorted(READ)))
def test_no_template_breaks_it(data: st.DataObject, kind: str) -> None:
    properties = data.draw(st.dictionaries(st.sampled_from(READ[kind]), VALUE))
    found = cost(EMPTY, stack({"It": of_type(kind, **properties)}), prices=PRICES)
    assert found.is_lower_bound == bool(found.unknown)
    assert all(line.what and line.resource for line in found.lines)
    assert not [line for line in found.lines if "Unknown(" in line.what or "Reference(" in line.what]


def test_nothing_costs_nothing() -> None:
    found = cost(EMPTY, EMPTY)
    assert (found.lines, found.monthly, found.plans, found.unknown) == ((), Change(before=0, after=0), (), ())
    assert found.notes == (f"list prices of the shipped prices, as of {found.prices_as_of}: {LIST}",)


def test_an_environment_that_ships(assemblies: Path) -> None:
    shipped(assemblies, "prod")
    found = cost(EMPTY, read_assembly(assemblies / "prod", "prod"))
    assert {line.kind for line in found.lines} == set(KINDS)
    by_what = {line.what: line.monthly.after for line in found.lines}
    assert by_what["1 EKS cluster"] == 73
    assert by_what["1 NAT gateway"] == 32.85
    assert by_what["2 x ml.p5.48xlarge, on training plan h100-april"] == 0
    assert not [text for text in found.unknown if "not known whether" in text]
    assert [plan.plan for plan in found.plans] == ["h100-april"]


@pytest.mark.parametrize(
    ("sku", "words"),
    [
        ("node.ml.p5.48xlarge", "ml.p5.48xlarge"),
        ("eks.provisioned.tier-4xl", "EKS Provisioned Control Plane, tier-4xl"),
        ("lustre.hdd.12", "FSx for Lustre, HDD at 12 MB/s per TiB"),
        ("nat_gateway", "NAT gateway"),
    ],
)
def test_words_for_what_is_sold(sku: str, words: str) -> None:
    assert thing(sku) == words


def test_every_price_has_words() -> None:
    assert all(thing(sku) != sku for sku in SKUS)


def test_counting_needs_no_heavy_package() -> None:
    program = (
        "import sys, hyperpod_cdk.review.figures.cost; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {"aws_cdk", "boto3", "botocore", "networkx", "jsii"} & set(loaded) == set()


def lustre(capacity: int, tier: Any, storage: Any = "SSD", **more: Any) -> Assembly:
    settings = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": tier, **more}
    body = of_type(
        "AWS::FSx::FileSystem",
        FileSystemType="LUSTRE",
        StorageCapacity=capacity,
        StorageType=storage,
        LustreConfiguration=settings,
    )
    return stack({"It": body}, Parameters={"Asked": {"Type": "String"}})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (lustre(1200, {"Ref": "Asked"}), lustre(2400, {"Ref": "Asked"}), [(1200, 2400)]),
        (lustre(1200, 250, {"Ref": "Asked"}), lustre(1200, 500, {"Ref": "Asked"}), [(0, 1200), (1200, 0)]),
        (
            lustre(1200, {"Ref": "Asked"}),
            lustre(1200, {"Ref": "Asked"}, DataCompressionType="LZ4"),
            [(1200, 1200)],
        ),
        (
            lustre(2400, {"Ref": "Asked"}),
            lustre(2400, {"Ref": "Asked"}, MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 6000}),
            [(2400, 2400), (0, 6000)],
        ),
    ],
)
def test_a_file_system_at_an_unknown_price_is_counted_by_its_capacity(
    before: Assembly, after: Assembly, expected: list[tuple[int, int]]
) -> None:
    found = cost(before, after, prices=PRICES).unpriced
    assert sorted((each.quantity.before, each.quantity.after) for each in found) == sorted(expected)
