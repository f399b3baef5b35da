"""Quotas: names as Service Quotas writes them, codes as hints."""

from __future__ import annotations

import pytest

from hyperpod_cdk.catalog import instance_types, quotas
from tests.support.tables import row_by_row


def test_keys_and_names_are_unique() -> None:
    rows = quotas.quotas()
    assert len({row.key for row in rows}) == len(rows)
    assert len({(row.service, quotas.normalized(row.name)) for row in rows}) == len(rows)


def test_codes_are_unique_across_the_tables() -> None:
    codes = [row.code for row in quotas.quotas() if row.code]
    codes += [code for name in instance_types.names() if (code := quotas.cluster_usage(name).code)]
    assert len(set(codes)) == len(codes)


@row_by_row("row", quotas.quotas(), ids=lambda row: row.key)
def test_a_row_without_a_code_is_marked(row: quotas.Quota) -> None:
    assert row.default >= 0
    assert row.code is not None or row.unsure
    assert row.code is None or row.code.startswith("L-")


@row_by_row(
    "key, service, code, default",
    [
        ("hyperpod_instances_total", "sagemaker", "L-3308CCC7", 0),
        ("hyperpod_instances_per_cluster", "sagemaker", "L-2CE978FC", 20),
        ("hyperpod_ebs_volume_gb", "sagemaker", "L-E13DF72A", 0),
        ("training_plans", "sagemaker", "L-867702E6", 25),
        ("eks_clusters", "eks", "L-1194D53C", 100),
        ("vpcs", "vpc", "L-F678F1CE", 5),
        ("network_interfaces", "vpc", "L-DF5E4CA3", 5000),
        ("elastic_ips", "ec2", "L-0263D0A3", 5),
        ("lustre_persistent_2_capacity_gib", "fsx", "L-8F1B9C74", 100_800),
    ],
)
def test_rows_by_key(key: str, service: str, code: str, default: int) -> None:
    row = quotas.get(key)
    assert (row.service, row.code, row.default) == (service, code, default)


def test_an_unknown_key() -> None:
    with pytest.raises(KeyError, match="no_such_quota"):
        quotas.get("no_such_quota")


def test_the_doubtful_default_is_marked() -> None:
    assert quotas.get("hyperpod_ebs_volume_gb").unsure == "documented default 0, an applied 1024 was seen"


@pytest.mark.parametrize(
    "name",
    [
        "Maximum number instances allowed per SageMaker HyperPod cluster",
        "Maximum number of instances allowed per SageMaker HyperPod cluster",
        "maximum number of instances allowed per sagemaker hyperpod cluster.",
    ],
)
def test_names_are_found_normalised(name: str) -> None:
    assert quotas.find("sagemaker", name) == quotas.get("hyperpod_instances_per_cluster")


def test_a_name_belongs_to_its_service() -> None:
    assert quotas.find("eks", "Clusters") == quotas.get("eks_clusters")
    assert quotas.find("ecs", "Clusters") is None


def test_normalised_forms() -> None:
    assert quotas.normalized("ml.p5.48xlarge for cluster usage") == "ml p5 48xlarge for cluster usage"
    assert quotas.normalized("VPCs  per Region.") == "vpcs per region"
    assert quotas.normalized("cluster-ml-r7i-12xlarge for cluster usage") == "ml r7i 12xlarge for cluster usage"
    assert quotas.normalized("Cluster usage of ml.p5.48xlarge") == "cluster usage ml p5 48xlarge"


def test_quotas_of_a_type() -> None:
    usage = quotas.cluster_usage("ml.p5.48xlarge")
    spot = quotas.cluster_spot_usage("ml.p5.48xlarge")
    plan = quotas.training_plan_capacity("ml.p5.48xlarge")
    assert (usage.name, usage.code) == ("ml.p5.48xlarge for cluster usage", "L-8762A75F")
    assert (spot.name, spot.code) == ("ml.p5.48xlarge for cluster spot instance usage", "L-F742E2D7")
    assert (plan.name, plan.code) == (
        "Number of ml.p5.48xlarge instances in reserved capacity across training plans per Region",
        "L-9EF527CA",
    )
    assert {row.default for row in (usage, spot, plan)} == {0}
    assert {row.unsure for row in (usage, spot, plan)} == {""}


def test_the_odd_name_of_one_type() -> None:
    row = quotas.cluster_usage("ml.r7i.12xlarge")
    assert (row.name, row.code) == ("cluster-ml-r7i-12xlarge for cluster usage", "L-EB92BE12")


def test_a_name_that_was_not_transcribed_follows_the_pattern_and_says_so() -> None:
    row = quotas.cluster_spot_usage("ml.m5.large")
    assert (row.name, row.code) == ("ml.m5.large for cluster spot instance usage", None)
    assert row.unsure == "the name follows the pattern of the others; not transcribed for this type"


def test_a_type_the_catalog_does_not_know_has_quotas_too() -> None:
    assert quotas.cluster_usage("ml.p7.48xlarge").name == "ml.p7.48xlarge for cluster usage"


@row_by_row("name", instance_types.names())
def test_every_type_has_its_own_cluster_quota(name: str) -> None:
    row = quotas.cluster_usage(name)
    assert row.service == "sagemaker"
    assert row.key == f"cluster:{name}"
    assert row.unsure == ""
