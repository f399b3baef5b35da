"""Regions, their availability zone IDs and the CloudFormation types they have."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import botocore
import pytest

from hyperpod_cdk.catalog import regions
from tests.support.tables import row_by_row

WITH_ZONES = [name for name in regions.names() if regions.known_az_ids(name)]


def test_regions_are_exactly_those_of_botocore() -> None:
    document = json.loads((Path(botocore.__file__).parent / "data" / "partitions.json").read_text(encoding="utf-8"))
    expected = {
        name: partition["id"]
        for partition in document["partitions"]
        for name in partition["regions"]
        if not name.endswith("-global")
    }
    assert {name: regions.partition_of(name) for name in regions.names()} == expected


def test_hyperpod_regions() -> None:
    assert len(regions.HYPERPOD_REGIONS) == 18
    assert list(regions.HYPERPOD_REGIONS) == sorted(set(regions.HYPERPOD_REGIONS))
    assert all(regions.partition_of(region) == "aws" for region in regions.HYPERPOD_REGIONS)


@row_by_row("region", regions.HYPERPOD_REGIONS)
def test_every_hyperpod_region_has_zones_and_the_cluster_type(region: str) -> None:
    assert len(regions.known_az_ids(region)) >= 2
    assert regions.has_type(region, "AWS::SageMaker::Cluster")


@row_by_row("region", WITH_ZONES)
def test_zones_begin_with_the_region_s_prefix_and_lead_back_to_it(region: str) -> None:
    for az_id in regions.known_az_ids(region):
        assert regions.is_az_id(az_id)
        assert regions.region_of_az_id(az_id) == region
        assert regions.az_id_problem(az_id, region=region) is None


@pytest.mark.parametrize(
    ("region", "partition"),
    [
        ("us-east-1", "aws"),
        ("us-gov-west-1", "aws-us-gov"),
        ("cn-north-1", "aws-cn"),
        ("us-isob-east-1", "aws-iso-b"),
        ("eusc-de-east-1", "aws-eusc"),
        ("ap-south-9", "aws"),
        ("moon-1", None),
    ],
)
def test_partitions(region: str, partition: str | None) -> None:
    assert regions.partition_of(region) == partition


def test_a_region_of_a_known_form_is_not_therefore_known() -> None:
    assert not regions.is_known("ap-south-9")
    assert regions.is_known("ap-south-2")


@row_by_row(
    "text, is_id, is_name",
    [
        ("use1-az5", True, False),
        ("apne1-az4", True, False),
        ("usgw1-az1", True, False),
        ("use1-dfw2-az1", True, False),
        ("us-east-1a", False, True),
        ("us-gov-west-1b", False, True),
        ("us-east-1-dfw-2a", False, True),
        ("us-east-1", False, False),
        ("use1-az", False, False),
        ("USE1-AZ5", False, False),
        ("use1-az5 ", False, False),
        ("", False, False),
    ],
)
def test_ids_and_names(text: str, is_id: bool, is_name: bool) -> None:  # noqa: FBT001 - columns of the table
    assert (regions.is_az_id(text), regions.is_az_name(text)) == (is_id, is_name)


def test_a_local_zone_belongs_to_its_region() -> None:
    assert regions.region_of_az_id("use1-dfw2-az1") == "us-east-1"
    assert regions.local_zone_city("use1-dfw2-az1") == "dfw"
    assert [regions.local_zone_city(zone) for zone in ("use1-az5", "us-east-1-dfw-2a", "")] == [None, None, None]


@pytest.mark.parametrize("az_id", ["zzz9-az1", "us-east-1a", ""])
def test_an_id_of_nowhere(az_id: str) -> None:
    assert regions.region_of_az_id(az_id) is None


@pytest.mark.parametrize("az_id", ["use1-az6", "use1-az9", "use1-dfw2-az1"])
def test_zones_of_a_region(az_id: str) -> None:
    assert regions.az_id_problem(az_id, region="us-east-1") is None


@pytest.mark.parametrize(
    ("az_id", "problem"),
    [
        ("az5", 'such as use1-az1, got "az5"; correct zone'),
        (
            "usw2-az1",
            "of us-east-1 (use1-az...), got usw2-az1 of us-west-2; write one of us-east-1, or set region: us-west-2",
        ),
        ("zzz9-az1", "of us-east-1 (use1-az...), got zzz9-az1; write one of us-east-1"),
    ],
)
def test_what_is_no_zone_of_a_region(az_id: str, problem: str) -> None:
    assert regions.az_id_problem(az_id, region="us-east-1", key="zone") == f"must be an availability zone ID {problem}"


def test_a_zone_s_name_is_refused_with_the_way_to_its_id() -> None:
    assert regions.az_id_problem("us-east-1a", region="us-east-1") == (
        'must be an availability zone ID such as use1-az1, got the name "us-east-1a", which means another zone in each '
        "account; find its ID with 'aws ec2 describe-availability-zones --region us-east-1' and set "
        "availability_zone_id to it"
    )


def test_a_region_with_an_unknown_prefix_accepts_any_id() -> None:
    assert regions.az_id_problem("uie1-az1", region="us-iso-east-1") is None


def test_a_zone_not_seen_before_warns() -> None:
    assert regions.unseen_az_warning("use2-az4", region="us-east-2") == (
        f"use2-az4 was not seen in us-east-2 on {regions.AS_OF}; the zones seen were use2-az1, use2-az2, use2-az3"
    )
    assert regions.unseen_az_warning("use1-dfw2-az1", region="us-east-1") == (
        "use1-dfw2-az1 is a Local Zone, which the account must have opted in to"
    )
    assert regions.unseen_az_warning("use2-az3", region="us-east-2") is None
    assert regions.unseen_az_warning("usw2-az9", region="us-east-2") is None
    assert regions.unseen_az_warning("uie1-az1", region="us-iso-east-1") is None


def test_zones_without_a_control_plane() -> None:
    refused = regions.eks_control_plane_unsupported_az_ids()
    assert refused == {"use1-az3", "usw1-az2", "cac1-az3"}
    assert {regions.region_of_az_id(az_id) for az_id in refused} == {"us-east-1", "us-west-1", "ca-central-1"}
    problem = regions.control_plane_subnet_problem
    said = "EKS does not support a control plane in {} ({}), where subnet-1 is".format
    assert problem("use1-az3", "subnet-1") == said("use1-az3", f"as of {regions.AS_OF}")
    assert problem("use1-az3", "subnet-1", local={"use1-az3"}) == said("use1-az3", f"as of {regions.AS_OF}")
    assert problem("use1-az4", "subnet-1", local={"use1-az4"}) == said("use1-az4", "a local zone")
    assert problem("use1-az4", "subnet-1", local={"use1-az5"}) is None


@row_by_row(
    "region, scheduler, quota",
    [
        ("us-east-1", True, True),
        ("ap-south-1", True, True),
        ("us-east-2", False, True),
        ("us-west-2", False, True),
        ("us-west-1", True, False),
        ("eu-north-1", True, False),
        ("ap-northeast-2", False, False),
        ("me-south-1", False, False),
        ("moon-1", False, False),
    ],
)
def test_types_of_task_governance(region: str, scheduler: bool, quota: bool) -> None:  # noqa: FBT001 - columns
    assert regions.has_type(region, "AWS::SageMaker::ClusterSchedulerConfig") is scheduler
    assert regions.has_type(region, "AWS::SageMaker::ComputeQuota") is quota


def test_a_type_that_is_not_recorded() -> None:
    with pytest.raises(ValueError, match=r'^must be a type whose regions are recorded \(.*\), got "AWS::S3::Bucket"$'):
        regions.has_type("us-east-1", "AWS::S3::Bucket")


def test_the_registry_s_date() -> None:
    assert date(2026, 10, 20) == regions.REGISTRY_AS_OF


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("us-esat-1", "us-east-1"),
        ("EU-WEST-1", "eu-west-1"),
        ("mars", None),
        # of its own partition alone, though others are as near
        ("cn-nroth-1", "cn-north-1"),
        ("us-gov-wset-1", "us-gov-west-1"),
        ("eusc-de-east-2", "eusc-de-east-1"),
        ("us-isob-north-7", "us-isob-east-1"),
    ],
)
def test_closest(text: str, meant: str | None) -> None:
    assert regions.closest(text) == meant


def test_region_problems() -> None:
    choice = ", ".join(regions.HYPERPOD_REGIONS)
    assert regions.region_problem("us-east-1") is None
    assert regions.region_problem("us-esat-1") == (
        f'must be an AWS region known on {regions.AS_OF}, got "us-esat-1"; did you mean us-east-1?'
    )
    assert regions.region_problem("mars") == (
        f'must be an AWS region known on {regions.AS_OF}, got "mars"; set region to one of {choice}'
    )


def test_a_region_that_hyperpod_does_not_document_warns() -> None:
    choice = ", ".join(regions.HYPERPOD_REGIONS)
    assert regions.hyperpod_warning("us-east-1") is None
    assert regions.hyperpod_warning("ca-central-1") == (
        f"HyperPod was not documented for ca-central-1 on {regions.AS_OF}; if the cluster is refused, "
        f"set region to one of {choice}"
    )


NO_CONTROL_PLANE = "EKS does not support a control plane in {} ({}), and the first {} zones are for it; {}".format


@row_by_row(
    "zone, first, enough, problem",
    [
        ("use1-az1", 2, True, None),
        (
            "use1-az3",
            2,
            True,
            NO_CONTROL_PLANE("use1-az3", f"as of {regions.AS_OF}", 2, "list it after the first two"),
        ),
        ("use1-az3", 3, True, NO_CONTROL_PLANE("use1-az3", f"as of {regions.AS_OF}", 3, "list it after the first 3")),
        (
            "use1-dfw2-az1",
            1,
            False,
            NO_CONTROL_PLANE("use1-dfw2-az1", "a local zone", 1, "add another zone and list it first"),
        ),
    ],
)
def test_zones_for_the_control_plane(zone: str, first: int, *, enough: bool, problem: str | None) -> None:
    assert regions.control_plane_problem(zone, first=first, enough=enough) == problem


def test_zones_that_eks_accepts() -> None:
    zones = ["use1-az3", "use1-az2", "use1-dfw2-az1", "use1-az1"]
    assert regions.eks_control_plane_zones(zones) == ["use1-az2", "use1-az1"]
    assert [regions.is_local_zone(zone) for zone in (*zones, "x")] == [False, False, True, False, False]


def test_types_that_a_region_lacks() -> None:
    types = ("AWS::SageMaker::Cluster", "AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota")
    assert regions.types_warning("us-east-1", types) is None
    assert regions.types_warning("us-west-2", types) == (
        "CloudFormation did not have AWS::SageMaker::ClusterSchedulerConfig in us-west-2 on 2026-10-20"
    )


def test_suffixes_of_host_names() -> None:
    assert [regions.dns_suffix(each) for each in ("aws", "aws-cn")] == ["amazonaws.com", "amazonaws.com.cn"]
    with pytest.raises(KeyError, match="moon"):
        regions.dns_suffix("moon")


def test_a_zone_of_a_region_that_is_not_known_yet() -> None:
    assert regions.az_id_problem("use1-az1", region="") is None
    assert regions.az_id_problem("us-east-1a", region="") == (
        'must be an availability zone ID such as use1-az1, got the name "us-east-1a", which means another zone in each'
        " account; find its ID with 'aws ec2 describe-availability-zones' and set availability_zone_id to it"
    )
    assert regions.az_id_problem("az", region="us-west-2") == (
        'must be an availability zone ID such as usw2-az1, got "az"; correct availability_zone_id'
    )
