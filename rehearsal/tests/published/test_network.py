"""CIDR blocks and zones as AWS publishes them, compared with the catalog's."""

from __future__ import annotations

import pytest

from hyperpod_cdk.catalog import instance_types, regions
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk_rehearsal.embedded.published import instance_types as published_types
from hyperpod_cdk_rehearsal.embedded.published import network


@pytest.mark.parametrize(
    ("primary", "restricted"),
    [
        # VPC user guide, "IPv4 CIDR block association restrictions", the table's rows, 2026
        ("10.0.0.0/16", {"172.16.0.0/12", "192.168.0.0/16", "198.19.0.0/16"}),
        ("172.16.0.0/16", {"10.0.0.0/8", "192.168.0.0/16", "172.31.0.0/16", "198.19.0.0/16"}),
        ("192.168.0.0/20", {"10.0.0.0/8", "172.16.0.0/12", "198.19.0.0/16"}),
        ("198.19.0.0/20", {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}),
        ("100.64.0.0/16", {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.19.0.0/16"}),
    ],
)
def test_restricted_ranges(primary: str, restricted: set[str]) -> None:
    assert set(network.restricted_beside(primary)) == restricted == set(catalog.restricted_secondary_ranges(primary))


def test_sizes() -> None:
    sizes = {size: f"10.0.0.0/{size}" for size in range(8, 33)}
    taken = [size for size, block in sizes.items() if network.is_block_size(block)]
    assert taken == list(range(16, 29))
    assert taken == [size for size, block in sizes.items() if catalog.cidr_problem(block) is None]


def test_zones_without_a_control_plane() -> None:
    assert regions.eks_control_plane_unsupported_az_ids() == network.ZONES_WITHOUT_CONTROL_PLANE


def test_the_types_of_clusters() -> None:
    assert set(published_types.cluster_types()) == set(instance_types.names())


def test_the_zones_that_moto_has_are_those_of_the_catalog() -> None:
    """EC2's zone IDs by region, which ``services.zones`` shows as the account's."""
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend  # noqa: PLC0415 - see services

    for region, zones in RegionsAndZonesBackend.zones.items():
        assert {zone.zone_id for zone in zones} == set(regions.known_az_ids(region)), region
