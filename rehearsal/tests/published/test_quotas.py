"""Service quotas as AWS publishes them, compared with the catalog's: their differences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from hyperpod_cdk.catalog import quotas as catalog
from hyperpod_cdk_rehearsal.embedded.published import instance_types, quotas

DIFFERENCES: Mapping[str, str] = {
    # key of the catalog: why AWS's name is another one
    "cluster_scheduler_config_versions": "Service Quotas ends the name with a full stop, which no comparison counts",
    "compute_quota_versions": "as above",
}


def published(row: catalog.Quota) -> quotas.Quota:
    wanted = catalog.normalized(row.name)
    (found,) = [each for each in quotas.of_service(row.service) if catalog.normalized(each.name) == wanted]
    return found


@pytest.mark.parametrize("key", [row.key for row in catalog.quotas()])
def test_the_catalog_has_the_same_quotas(key: str) -> None:
    ours = catalog.get(key)
    theirs = published(ours)
    assert (theirs.default, theirs.code) == (ours.default, ours.code)
    assert (theirs.name != ours.name) == (key in DIFFERENCES)
    # a need that cannot be raised would have to be said otherwise
    assert theirs.is_adjustable


USED: Mapping[str, tuple[str, str]] = {
    # constant of ``published``, which the embedded AWS refuses requests by: service, key of the catalog
    "INSTANCES": ("sagemaker", "hyperpod_instances_total"),
    "INSTANCES_OF_A_CLUSTER": ("sagemaker", "hyperpod_instances_per_cluster"),
    "SPOT_INSTANCES": ("sagemaker", "hyperpod_spot_instances_total"),
    "SPOT_INSTANCES_OF_A_CLUSTER": ("sagemaker", "hyperpod_spot_instances_per_cluster"),
    "VOLUME_SIZE": ("sagemaker", "hyperpod_ebs_volume_gb"),
    "RESTRICTED_LUSTRE": ("sagemaker", "hyperpod_restricted_lustre_tib"),
    "EKS_CLUSTERS": ("eks", "eks_clusters"),
    "ELASTIC_IPS": ("ec2", "elastic_ips"),
    "PERSISTENT_2_FILE_SYSTEMS": ("fsx", "lustre_persistent_2_file_systems"),
    "PERSISTENT_2_CAPACITY": ("fsx", "lustre_persistent_2_capacity_gib"),
    "SCRATCH_CAPACITY": ("fsx", "lustre_scratch_capacity_gib"),
    "TIERING_THROUGHPUT": ("fsx", "lustre_intelligent_tiering_mbps"),
    "TIERING_READ_CACHE": ("fsx", "lustre_intelligent_tiering_read_cache_gib"),
    "VPCS": ("vpc", "vpcs"),
    "BLOCKS_OF_A_VPC": ("vpc", "cidrs_per_vpc"),
    "INTERFACE_ENDPOINTS_OF_A_VPC": ("vpc", "interface_endpoints_per_vpc"),
}


@pytest.mark.parametrize("constant", USED)
def test_the_catalog_needs_what_the_embedded_aws_judges_by(constant: str) -> None:
    service, key = USED[constant]
    theirs, ours = quotas.get(service, getattr(quotas, constant)), catalog.get(key)
    assert (ours.service, ours.code, ours.default) == (service, theirs.code, theirs.default)
    assert catalog.normalized(theirs.name) == catalog.normalized(ours.name)


def test_every_quota_that_the_embedded_aws_names_is_compared() -> None:
    constants = {name for name, value in vars(quotas).items() if name.isupper() and isinstance(value, str)}
    assert {each for each in constants if not each.startswith("_")} == set(USED)


def test_the_catalog_has_every_quota_that_is_restated() -> None:
    """Those of VPC are moto's: the catalog has the ones that a stack of the library draws on."""
    of_types = {
        quota(name).name
        for name in instance_types.cluster_types()
        for quota in (quotas.cluster_usage, quotas.cluster_spot_usage, quotas.training_plan_capacity)
    }
    for service in ("ec2", "eks", "fsx", "sagemaker"):
        for row in quotas.of_service(service):
            if row.name not in of_types:
                assert catalog.find(service, row.name) is not None, row.name


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (quotas.cluster_usage, catalog.cluster_usage),
        (quotas.cluster_spot_usage, catalog.cluster_spot_usage),
        (quotas.training_plan_capacity, catalog.training_plan_capacity),
    ],
)
def test_the_catalog_has_the_same_quotas_of_each_type(
    theirs: Callable[[str], quotas.Quota], ours: Callable[[str], catalog.Quota]
) -> None:
    for name in instance_types.cluster_types():
        published, known = theirs(name), ours(name)
        assert (published.name, published.code, published.default) == (known.name, known.code, known.default)


def test_no_two_quotas_share_a_code_or_a_name() -> None:
    rows = [row for service in ("ec2", "eks", "fsx", "sagemaker", "vpc") for row in quotas.of_service(service)]
    codes = [row.code for row in rows if row.code is not None]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"L-[0-9A-F]{8}", code) for code in codes)
    assert len({(row.service, row.name) for row in rows}) == len(rows)
