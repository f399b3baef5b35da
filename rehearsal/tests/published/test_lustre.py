"""FSx's own model says what is restated here, and the catalog's rules are compared with it, value by value."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import botocore.session

from hyperpod_cdk.catalog import lustre as catalog
from hyperpod_cdk.catalog import regions
from hyperpod_cdk_rehearsal.embedded.published import lustre
from rehearsal.tests.support.tables import row_by_row


@cache
def _documented(shape: str, member: str) -> str:
    model = botocore.session.get_session().get_service_model("fsx")
    # the stubs know structures, and every shape as one that has no members
    members = getattr(model.shape_for(shape), "members", {})
    return " ".join(re.sub(r"<[^>]+>", " ", members[member].documentation).split())


@row_by_row(
    "shape, member, sentence",
    [
        (
            "CreateFileSystemRequest",
            "StorageCapacity",
            (
                f"the valid values are {lustre.SSD_FIRST_GIB} GiB, {lustre.SSD_STEP_GIB} GiB, and increments of"
                f" {lustre.SSD_STEP_GIB} GiB"
            ),
        ),
        (
            "CreateFileSystemLustreConfiguration",
            "PerUnitStorageThroughput",
            f"For PERSISTENT_2 SSD storage: {', '.join(map(str, lustre.THROUGHPUTS))} MB/s/TiB",
        ),
        (
            "CreateFileSystemLustreMetadataConfiguration",
            "Iops",
            "valid values are 1500 , 3000 , 6000 , 12000 , and multiples of 12000 up to a maximum of 192000",
        ),
        ("CreateFileSystemLustreMetadataConfiguration", "Iops", "valid values are 6000 and 12000"),
        ("CreateFileSystemLustreConfiguration", "ThroughputCapacity", "4000 MBps or multiples of 4000 MBps"),
        (
            "LustreReadCacheConfiguration",
            "SizeGiB",
            "a minimum of 32 GiB and maximum of 131072 GiB for SSD read cache size for every 4,000 MB/s",
        ),
        ("LustreLogCreateConfiguration", "Destination", f"must begin with the {lustre.LOG_GROUP_PREFIX} prefix"),
        (
            "CreateFileSystemRequest",
            "FileSystemTypeVersion",
            "2.12 is supported by all Lustre deployment types, except for PERSISTENT_2 with a metadata configuration",
        ),
    ],
)
def test_fsx_says_so(shape: str, member: str, sentence: str) -> None:
    assert sentence in _documented(shape, member)


def test_metadata_operations_are_those_of_the_sentence() -> None:
    assert lustre.SSD_METADATA_IOPS[:4] == (1500, 3000, 6000, 12_000)
    assert (lustre.SSD_METADATA_IOPS[-1], len(lustre.SSD_METADATA_IOPS)) == (192_000, 19)


def test_the_words_are_fsxs() -> None:
    model = botocore.session.get_session().get_service_model("fsx")
    words = {
        "LustreDeploymentType": {lustre.SCRATCH_2, lustre.PERSISTENT_2},
        "StorageType": {lustre.TIERING},
        "LustreReadCacheSizingMode": {lustre.PROVISIONED_CACHE},
    }
    for shape, used in words.items():
        assert used <= set(getattr(model.shape_for(shape), "enum", ()))


DIFFERENCES = {
    "log group": "FSx asks for /aws/fsx, the catalog for /aws/fsx/: narrower, so that no name is refused by FSx",
}
"""Where the catalog and FSx's own words differ, and why."""


def test_the_catalog_takes_what_fsx_takes() -> None:
    """Every value around every bound of either side: both take it, or both refuse it."""
    capacities = {n + beside for n in (0, 1200, 2400, 3600, 4800, 7200, 9600, 19_200, 38_400) for beside in (-1, 0, 1)}
    for gib in capacities:
        assert (lustre.capacity_refusal(gib) is None) == (
            catalog.capacity_problem(gib, throughput_mbps_per_tib=250, efa=False) is None
        ), gib
        for tier in lustre.THROUGHPUTS:
            assert (lustre.capacity_refusal(gib, efa_throughput=tier) is None) == (
                catalog.capacity_problem(gib, throughput_mbps_per_tib=tier, efa=True) is None
            ), (gib, tier)
    for mbps in (0, 12, 50, 100, 124, 125, 126, 200, 250, 500, 999, 1000, 1001, 2000):
        assert (lustre.throughput_refusal(mbps) is None) == (catalog.throughput_problem(mbps) is None), mbps
    for iops in (0, 1499, 1500, 3000, 4500, 6000, 9000, 12_000, 18_000, 24_000, 192_000, 204_000):
        assert (lustre.metadata_refusal(iops) is None) == (catalog.metadata_iops_problem(iops) is None), iops
        assert (lustre.metadata_refusal(iops, tiering=True) is None) == (
            catalog.tiering_metadata_iops_problem(iops) is None
        ), iops
    for mbps in (-4000, 0, 3999, 4000, 8000, 9000, 2_000_000, 2_004_000):
        assert (lustre.tiering_throughput_refusal(mbps) is None) == (catalog.tiering_throughput_problem(mbps) is None)
    for gib, mbps in ((31, 4000), (32, 4000), (131_072, 4000), (131_073, 4000), (63, 8000), (64, 8000)):
        assert (lustre.cache_refusal(gib, throughput_mbps=mbps) is None) == (
            catalog.read_cache_problem(gib, throughput_capacity_mbps=mbps) is None
        ), (gib, mbps)


def test_the_other_facts_agree_but_for_the_differences() -> None:
    assert catalog.TCP_PORTS == lustre.PORTS
    assert catalog.LUSTRE_VERSION == lustre.DEFAULT_VERSION
    assert f"{lustre.LOG_GROUP_PREFIX}/" == catalog.LOG_GROUP_PREFIX, DIFFERENCES["log group"]
    assert catalog.HOURS_BETWEEN_CHANGES == lustre.HOURS_BETWEEN_CHANGES
    assert catalog.EFA_CAPACITY_STEP_GIB == lustre.EFA_STEP_GIB
    assert set(catalog.DEPLOYMENT_TYPES.values()) == {lustre.SCRATCH_2, lustre.PERSISTENT_2}
    assert catalog.STORAGE_TYPES[catalog.INTELLIGENT_TIERING] == lustre.TIERING
    assert catalog.READ_CACHES["provisioned"] == lustre.PROVISIONED_CACHE


def test_the_same_regions_lack_a_deployment_type_or_efa() -> None:
    for region in regions.names():
        for efa in (False, True):
            assert (lustre.region_refusal(region, efa=efa) is None) == (
                catalog.region_problem(region, efa=efa) is None
            ), (region, efa)


def test_automatic_metadata_iops_are_those_of_the_catalog() -> None:
    """The capacities on either side of each one that FSx offers, up to the first beyond the most metadata IOPS."""
    offered = (lustre.SSD_FIRST_GIB, *range(lustre.SSD_STEP_GIB, 410_000, lustre.SSD_STEP_GIB))
    assert lustre.automatic_iops(offered[-1]) > lustre.SSD_METADATA_IOPS[-1]
    for gib in (capacity + beside for capacity in offered for beside in (-1, 0, 1)):
        assert lustre.automatic_iops(gib) == catalog.automatic_metadata_iops(gib), gib


@row_by_row(
    "gib, iops",
    [
        # user guide, "Amazon FSx for Lustre performance", automatic mode, 2026
        (1200, 1500),
        (2400, 3000),
        (4800, 6000),
        (9600, 6000),
        (12_000, 12_000),
        (45_600, 12_000),
        (48_000, 24_000),
        (72_000, 36_000),
    ],
)
def test_automatic_metadata_iops_of_the_guide(gib: int, iops: int) -> None:
    assert lustre.automatic_iops(gib) == iops


@row_by_row(
    "version, metadata, said",
    [
        # CreateFileSystemRequest.FileSystemTypeVersion, of which test_fsx_says_so finds the sentence about 2.12
        ("2.10", False, "PERSISTENT_2 requires Lustre version 2.12 or 2.15, got 2.10."),
        ("2.10", True, "PERSISTENT_2 requires Lustre version 2.12 or 2.15, got 2.10."),
        ("2.12", False, None),
        ("2.12", True, "MetadataConfiguration requires Lustre version 2.15, got 2.12."),
        ("2.15", True, None),
        (None, True, None),
    ],
)
def test_versions(version: str | None, metadata: bool, said: str | None) -> None:  # noqa: FBT001 - a table's column
    """The catalog has one version, which goes with and without a metadata configuration."""
    assert lustre.version_refusal(version, metadata=metadata) == said
    assert lustre.version_refusal(catalog.LUSTRE_VERSION, metadata=metadata) is None


def test_local_zones_are_those_of_the_catalog() -> None:
    """Every deployment, storage type, tier and EFA in zones of each kind: both take it, or both refuse it."""
    known = [zone for region in regions.names() for zone in regions.known_az_ids(region)]
    zones = (*known, "use1-atl2-az1", "use1-dfw2-az1", "usw2-phx2-az1", "usw2-lax1-az1", "usw2-den1-az1")
    kinds = {"persistent_2": lustre.PERSISTENT_2, "scratch_2": lustre.SCRATCH_2}
    for zone, word, tiering, efa, tier in product(zones, kinds, (False, True), (False, True), (None, 125, 250, 1000)):
        settings = catalog.Settings(
            deployment_type=word,
            storage_type="intelligent_tiering" if tiering else "ssd",
            efa=efa,
            throughput_mbps_per_tib=tier,
        )
        ours = next(catalog.local_zone_problems(zone, settings), None)
        theirs = lustre.local_zone_refusal(zone, kinds[word], efa=efa, tiering=tiering, throughput=tier)
        assert (theirs is None) == (ours is None), (zone, settings)
