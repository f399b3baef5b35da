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
