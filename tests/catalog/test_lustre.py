"""FSx for Lustre: the available configurations, and the addresses in its subnet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import instance_types, lustre
from tests.support.tables import row_by_row

CAPACITIES = st.integers(-1000, 500_000)
TIERS = st.sampled_from(lustre.THROUGHPUTS_MBPS_PER_TIB)


def test_tables() -> None:
    assert lustre.THROUGHPUTS_MBPS_PER_TIB == (125, 250, 500, 1000)
    assert lustre.EFA_CAPACITY_STEP_GIB == {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
    assert lustre.TCP_PORTS == ((988, 988), (1018, 1023))
    assert lustre.COMPRESSIONS == ("lz4", "none")
    assert lustre.LUSTRE_VERSION == "2.15"
    assert lustre.CSI_DRIVER == "fsx.csi.aws.com"
    assert lustre.DEFAULT_THROUGHPUT_MBPS_PER_TIB == 250
    # FSx API reference: StorageCapacity
    assert lustre.LARGEST_CAPACITY_GIB == 2**31 - 1


@pytest.mark.parametrize(
    ("tier", "fix"), [(0, 125), (124, 125), (126, 250), (249, 250), (251, 500), (999, 1000), (1001, 1000)]
)
def test_a_throughput_beside_a_tier(tier: int, fix: int) -> None:
    assert lustre.throughput_problem(tier) == (
        f"must be 125, 250, 500 or 1000 MB/s per TiB, got {tier}; set throughput_mbps_per_tib: {fix}"
    )


@pytest.mark.parametrize("tier", lustre.THROUGHPUTS_MBPS_PER_TIB)
def test_a_throughput_tier(tier: int) -> None:
    assert lustre.throughput_problem(tier) is None


@pytest.mark.parametrize("capacity", [1200, 2400, 4800, 7200, 100_800])
def test_a_capacity_on_offer(capacity: int) -> None:
    assert lustre.capacity_problem(capacity, throughput_mbps_per_tib=250, efa=False) is None


@row_by_row(
    "capacity, fix",
    [(-1, 1200), (0, 1200), (1199, 1200), (1201, 2400), (2399, 2400), (2401, 4800), (3600, 4800), (5000, 7200)],
)
def test_a_capacity_beside_an_offer(capacity: int, fix: int) -> None:
    assert lustre.capacity_problem(capacity, throughput_mbps_per_tib=250, efa=False) == (
        f"must be 1200 GiB or a multiple of 2400 GiB, got {capacity}; set capacity_gib: {fix}"
    )


@pytest.mark.parametrize(("tier", "step"), lustre.EFA_CAPACITY_STEP_GIB.items())
def test_capacities_with_efa(tier: int, step: int) -> None:
    def problem(capacity: int) -> str | None:
        return lustre.capacity_problem(capacity, throughput_mbps_per_tib=tier, efa=True)

    def says(capacity: int, fix: int) -> str:
        return (
            f"must be a multiple of {step} GiB with EFA at {tier} MB/s per TiB, got {capacity}; set capacity_gib: {fix}"
        )

    assert problem(step) is None
    assert problem(2 * step) is None
    assert problem(0) == says(0, step)
    assert problem(step - 1) == says(step - 1, step)
    assert problem(step + 1) == says(step + 1, 2 * step)
    assert problem(1200) == says(1200, step)


def test_an_unknown_tier_is_reported_once() -> None:
    assert lustre.capacity_problem(4800, throughput_mbps_per_tib=300, efa=True) is None
    assert lustre.capacity_problem(5000, throughput_mbps_per_tib=300, efa=False) is not None


def test_no_capacity_follows_from_an_unknown_tier() -> None:
    with pytest.raises(
        ValueError, match=r"^throughput_mbps_per_tib: must be 125, 250, 500 or 1000 MB/s per TiB, got 300; "
    ):
        lustre.next_capacity_gib(4800, throughput_mbps_per_tib=300, efa=True)


@given(capacity=CAPACITIES, tier=TIERS, efa=st.booleans())
def test_the_next_capacity_is_valid_and_minimal(capacity: int, tier: int, efa: bool) -> None:  # noqa: FBT001 - drawn
    found = lustre.next_capacity_gib(capacity, throughput_mbps_per_tib=tier, efa=efa)
    offers = {1200, *range(2400, found + 1, 2400)}
    if efa:
        step = lustre.EFA_CAPACITY_STEP_GIB[tier]
        offers = set(range(step, found + 1, step))
    assert found in offers
    assert found >= capacity
    assert [offer for offer in offers if capacity <= offer < found] == []
    assert lustre.capacity_problem(found, throughput_mbps_per_tib=tier, efa=efa) is None


@given(capacity=CAPACITIES, tier=TIERS, efa=st.booleans())
def test_a_capacity_is_refused_exactly_when_it_is_not_its_own_next(
    capacity: int,
    tier: int,
    efa: bool,  # noqa: FBT001 - drawn
) -> None:
    problem = lustre.capacity_problem(capacity, throughput_mbps_per_tib=tier, efa=efa)
    found = lustre.next_capacity_gib(capacity, throughput_mbps_per_tib=tier, efa=efa)
    assert (problem is None) == (capacity == found)
    assert problem is None or problem.endswith(f"got {capacity}; set capacity_gib: {found}")


@pytest.mark.parametrize("iops", [1500, 3000, 6000, 12000, 24000, 180_000, 192_000])
def test_metadata_iops_on_offer(iops: int) -> None:
    assert lustre.metadata_iops_problem(iops) is None


@row_by_row(
    "iops, fix",
    [
        (0, 1500),
        (1499, 1500),
        (1501, 3000),
        (6001, 12000),
        (12001, 24000),
        (18000, 24000),
        (191_999, 192_000),
        (192_001, 192_000),
        (204_000, 192_000),
    ],
)
def test_metadata_iops_beside_an_offer(iops: int, fix: int) -> None:
    assert lustre.metadata_iops_problem(iops) == (
        f"must be 1500, 3000, 6000 or a multiple of 12000 up to 192000, got {iops}; set metadata_iops: {fix}"
    )


@given(st.integers(-1000, 192_000))
def test_the_next_metadata_iops_are_valid_and_minimal(iops: int) -> None:
    offers = [1500, 3000, 6000, *range(12_000, 192_001, 12_000)]
    assert lustre.next_metadata_iops(iops) == min(offer for offer in offers if offer >= iops)


@pytest.mark.parametrize(
    ("mbps", "fix"), [(-1, 4000), (0, 4000), (3999, 4000), (4001, 8000), (1_999_999, 2_000_000), (2_000_001, 2_000_000)]
)
def test_a_tiering_throughput_beside_an_offer(mbps: int, fix: int) -> None:
    assert lustre.tiering_throughput_problem(mbps) == (
        f"must be a multiple of 4000 MB/s up to 2000000, got {mbps}; set throughput_capacity_mbps: {fix}"
    )


@pytest.mark.parametrize("mbps", [4000, 8000, 2_000_000])
def test_a_tiering_throughput_on_offer(mbps: int) -> None:
    assert lustre.tiering_throughput_problem(mbps) is None


@row_by_row(
    "size, mbps, fix",
    [
        (31, 4000, 32),
        (32, 4000, None),
        (131_072, 4000, None),
        (131_073, 4000, 131_072),
        (63, 8000, 64),
        (64, 8000, None),
        (262_144, 8000, None),
        (262_145, 8000, 262_144),
    ],
)
def test_read_caches(size: int, mbps: int, fix: int | None) -> None:
    problem = lustre.read_cache_problem(size, throughput_capacity_mbps=mbps)
    steps = mbps // 4000
    assert problem == (
        None
        if fix is None
        else f"must be between {32 * steps} and {131_072 * steps} GiB at {mbps} MB/s, got {size}; set size_gib: {fix}"
    )


def test_the_read_cache_of_less_than_one_step() -> None:
    assert lustre.read_cache_problem(32, throughput_capacity_mbps=3999) is None
    assert lustre.read_cache_problem(0, throughput_capacity_mbps=0) == (
        "must be between 32 and 131072 GiB at 0 MB/s, got 0; set size_gib: 32"
    )


@pytest.mark.parametrize(
    ("iops", "fix"), [(5999, 6000), (6000, None), (6001, 12_000), (12_000, None), (12_001, 12_000)]
)
def test_tiering_metadata_iops(iops: int, fix: int | None) -> None:
    expected = f"must be 6000 or 12000 with intelligent_tiering, got {iops}; set metadata_iops: {fix}"
    assert lustre.tiering_metadata_iops_problem(iops) == (None if fix is None else expected)


SSD = lustre.Settings(deployment_type="persistent_2", storage_type="ssd", capacity_gib=1200)
TIERING = lustre.Settings(
    deployment_type="persistent_2",
    storage_type="intelligent_tiering",
    throughput_capacity_mbps=4000,
    read_cache="proportional",
)
SCRATCH = replace(SSD, deployment_type="scratch_2")


@row_by_row(
    "settings, refused",
    [
        (SSD, []),
        (TIERING, []),
        (SCRATCH, []),
        (replace(SSD, efa=True, metadata_iops=1500, backup_days=7, from_backup=True), []),
        (replace(TIERING, efa=True, metadata_iops=6000, backup_days=7, from_backup=True), []),
        (replace(TIERING, read_cache="provisioned", read_cache_gib=32), []),
        (replace(SCRATCH, data_repositories=8), []),
        (replace(SSD, data_repositories=1, backup_days=0), []),
        (replace(SSD, data_repositories=1, backup_days=1), ["backups"]),
        (replace(SSD, capacity_gib=None), ["capacity_gib"]),
        (replace(SSD, throughput_capacity_mbps=4000, read_cache="none"), ["throughput_capacity_mbps", "read_cache"]),
        (replace(SCRATCH, throughput_mbps_per_tib=125, efa=True), ["throughput_mbps_per_tib", "efa"]),
        (
            replace(SCRATCH, metadata_iops=1500, backup_days=0, from_backup=True),
            ["metadata_iops", "backups", "from_backup"],
        ),
        (replace(TIERING, deployment_type="scratch_2"), ["storage_type"]),
        (replace(TIERING, capacity_gib=1200, throughput_mbps_per_tib=125), ["capacity_gib", "throughput_mbps_per_tib"]),
        (replace(TIERING, throughput_capacity_mbps=None, read_cache=None), ["throughput_capacity_mbps", "read_cache"]),
        (replace(TIERING, data_repositories=1), ["data_repositories"]),
        (replace(TIERING, read_cache="provisioned"), ["read_cache.size_gib"]),
        (replace(TIERING, read_cache="none", read_cache_gib=32), ["read_cache.size_gib"]),
    ],
)
def test_what_goes_together(settings: lustre.Settings, refused: list[str]) -> None:
    assert [name for name, _ in lustre.combination_problems(settings)] == refused


def test_what_is_left_out_has_a_reason() -> None:
    assert all(lustre.LEFT_OUT.values())
    assert set(lustre.DEPLOYMENT_TYPES_LEFT_OUT) == {"SCRATCH_1", "PERSISTENT_1"}
    assert lustre.DEPLOYMENT_TYPES == {"persistent_2": "PERSISTENT_2", "scratch_2": "SCRATCH_2"}


def test_scratch_is_offered_where_persistent_2_is_not() -> None:
    assert lustre.region_problem("me-south-1", efa=False, deployment_type="SCRATCH_2") is None


@pytest.mark.parametrize(("mbps", "iops", "addresses"), [(4000, 6000, 2), (8000, 12_000, 3), (8000, 24_000, 4)])
def test_addresses_of_intelligent_tiering(mbps: int, iops: int, addresses: int) -> None:
    assert lustre.ip_addresses(None, metadata_iops=iops, throughput_capacity_mbps=mbps) == addresses


@pytest.mark.parametrize(
    ("region", "efa", "problem"),
    [
        ("us-east-1", True, None),
        (
            "me-south-1",
            False,
            "FSx for Lustre does not offer PERSISTENT_2 file systems in me-south-1; leave it out there",
        ),
        (
            "me-central-1",
            True,
            "FSx for Lustre does not offer PERSISTENT_2 file systems in me-central-1; leave it out there",
        ),
        ("il-central-1", False, None),
        ("il-central-1", True, "FSx for Lustre does not offer EFA in il-central-1; set efa: false"),
        ("mx-central-1", True, "FSx for Lustre does not offer EFA in mx-central-1; set efa: false"),
    ],
)
def test_regions(region: str, efa: bool, problem: str | None) -> None:  # noqa: FBT001 - a column of the table
    assert lustre.region_problem(region, efa=efa) == problem


@pytest.mark.parametrize(
    ("capacity", "iops", "addresses"),
    [
        (1200, None, 2),
        (2400, None, 2),
        (4800, None, 3),
        (9600, None, 5),
        (9600, 12_000, 5),
        (9600, 24_000, 6),
        (100_800, 192_000, 58),
    ],
)
def test_addresses(capacity: int, iops: int | None, addresses: int) -> None:
    assert lustre.ip_addresses(capacity, metadata_iops=iops) == addresses


@row_by_row(
    "tier, capacity, addresses",
    [
        (125, 38_400, 2),
        (125, 76_800, 3),
        (250, 19_200, 2),
        (250, 192_000, 11),
        (500, 9600, 2),
        (500, 19_200, 3),
        (1000, 4800, 2),
        (1000, 48_000, 11),
    ],
)
def test_addresses_with_efa(tier: int, capacity: int, addresses: int) -> None:
    """FSx user guide, IP addresses for file systems: storage per OSS by throughput tier, and a metadata server."""
    assert lustre.ip_addresses(capacity, metadata_iops=12_000, efa_throughput_mbps_per_tib=tier) == addresses


@row_by_row(
    "capacity, iops",
    [
        (1200, 1500),
        (2400, 3000),
        (4800, 6000),
        (9600, 6000),
        (12_000, 12_000),
        (45_600, 12_000),
        (48_000, 24_000),
        (240_000, 120_000),
    ],
)
def test_metadata_operations_in_automatic_mode(capacity: int, iops: int) -> None:
    """FSx user guide, Performance: File system metadata performance."""
    assert lustre.automatic_metadata_iops(capacity) == iops


PERSISTENT = lustre.Settings(deployment_type="persistent_2", storage_type="ssd", capacity_gib=4800)
DALLAS = "use1-dfw2-az1"
IN_DALLAS = f"in the Local Zone {DALLAS}"


@row_by_row(
    "zone, settings, problems",
    [
        ("use1-az5", replace(PERSISTENT, efa=True, throughput_mbps_per_tib=1000), {}),
        (DALLAS, PERSISTENT, {}),
        (DALLAS, replace(PERSISTENT, throughput_mbps_per_tib=125), {}),
        (DALLAS, replace(PERSISTENT, throughput_mbps_per_tib=250), {}),
        (
            DALLAS,
            replace(PERSISTENT, throughput_mbps_per_tib=500, efa=True),
            {
                "efa": f"FSx for Lustre does not offer EFA {IN_DALLAS}; set efa: false",
                "throughput_mbps_per_tib": (
                    f"must be 125 or 250 MB/s per TiB {IN_DALLAS}, got 500; set throughput_mbps_per_tib: 250"
                ),
            },
        ),
        # no tier at all is another rule's to refuse
        (DALLAS, replace(PERSISTENT, throughput_mbps_per_tib=300), {}),
        (
            DALLAS,
            replace(PERSISTENT, storage_type="intelligent_tiering"),
            {"storage_type": f"FSx for Lustre does not offer intelligent_tiering {IN_DALLAS}; set storage_type: ssd"},
        ),
        (
            DALLAS,
            replace(PERSISTENT, deployment_type="scratch_2"),
            {
                "deployment_type": (
                    f"FSx for Lustre does not offer SCRATCH_2 file systems {IN_DALLAS}; set deployment_type:"
                    " persistent_2"
                )
            },
        ),
        ("usw2-lax1-az1", replace(PERSISTENT, deployment_type="scratch_2"), {}),
        (
            "usw2-lax1-az1",
            PERSISTENT,
            {
                "deployment_type": (
                    "FSx for Lustre does not offer PERSISTENT_2 file systems in the Local Zone usw2-lax1-az1; set"
                    " deployment_type: scratch_2"
                )
            },
        ),
        # a city that the guide's table does not name: only what no Local Zone has is refused
        ("usw2-den1-az1", PERSISTENT, {}),
        (
            "usw2-den1-az1",
            replace(PERSISTENT, efa=True),
            {"efa": "FSx for Lustre does not offer EFA in the Local Zone usw2-den1-az1; set efa: false"},
        ),
    ],
)
def test_local_zones(zone: str, settings: lustre.Settings, problems: dict[str, str]) -> None:
    assert dict(lustre.local_zone_problems(zone, settings)) == problems


@row_by_row(
    "name, interfaces",
    [
        ("ml.p6-b300.48xlarge", 16),
        ("ml.p6-b200.48xlarge", 8),
        ("ml.p6e-gb200.36xlarge", 8),
        ("ml.p5.48xlarge", 8),
        ("ml.p5e.48xlarge", 8),
        ("ml.p5en.48xlarge", 8),
        ("ml.trn1.32xlarge", 2),
        ("ml.g6e.24xlarge", 2),
        ("ml.g6e.12xlarge", 1),
        ("ml.p5.4xlarge", 1),
        ("ml.p4d.24xlarge", 0),  # Nitro v3
        ("ml.trn2.48xlarge", 0),  # left out by FSx
        ("ml.m5.2xlarge", 0),
    ],
)
def test_efa_interfaces_of_a_client(name: str, interfaces: int) -> None:
    row = instance_types.get(name)
    assert row is not None
    assert lustre.efa_interfaces(row) == interfaces
    assert lustre.efa_interfaces(replace(row, fsx_efa_client=False)) == 0


@row_by_row(
    "outer, inner, is_inside",
    [
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a/", "/a", True),
        ("/a", "/a/", True),
        ("/", "/a", True),
        ("/a/b", "/a", False),
        ("/a", "/ab", False),
        ("/a", "/b/a", False),
    ],
)
def test_folders_in_folders(outer: str, inner: str, *, is_inside: bool) -> None:
    assert lustre.contains(outer, inner) is is_inside


OVERLAPS = "must not overlap another link, got {} and {} of data_repositories[{}]; choose folders that are not nested"
LINKED = "must be linked once, got {} again after data_repositories[{}]; remove one of the two"


@row_by_row(
    "links, problems",
    [
        ([], []),
        ([("/a", "s3://one"), ("/b", "s3://one/b"), ("/c", "s3://two")], []),
        ([("/a", "s3://one"), ("/a/b", "s3://two")], [(1, "path", OVERLAPS.format("/a/b", "/a", 0))]),
        (
            [("/a/b", "s3://one"), ("/c", "s3://two"), ("/a", "s3://three")],
            [(2, "path", OVERLAPS.format("/a", "/a/b", 0))],
        ),
        # each is compared with those before it, and told of the first
        (
            [
                ("/c", "s3://one"),
                ("/a/b", "s3://two"),
                ("/a/c", "s3://three"),
                ("/a", "s3://four"),
                ("/c", "s3://five"),
            ],
            [(3, "path", OVERLAPS.format("/a", "/a/b", 1)), (4, "path", OVERLAPS.format("/c", "/c", 0))],
        ),
        (
            [("/a", "s3://one"), ("/b", "s3://two/"), ("/c", "s3://two"), ("/d", "s3://two/")],
            [(index, "s3_uri", LINKED.format("s3://two", 1)) for index in (2, 3)],
        ),
    ],
)
def test_links_to_buckets(links: list[tuple[str, str]], problems: list[tuple[int, str, str]]) -> None:
    assert list(lustre.link_problems(links)) == problems


REQUIRED = "is required with intelligent_tiering; set"


@row_by_row(
    "settings, problems",
    [
        (
            replace(SSD, data_repositories=1, backup_days=1),
            {
                "backups": (
                    "cannot be set together with data_repositories, because FSx does not back up such a file system,"
                    " got 1 days; remove it: the linked buckets contain the data"
                )
            },
        ),
        (replace(SSD, capacity_gib=None), {"capacity_gib": "is missing; add capacity_gib, such as capacity_gib: 1200"}),
        (
            replace(TIERING, throughput_capacity_mbps=None, read_cache=None),
            {
                "throughput_capacity_mbps": f"{REQUIRED} throughput_capacity_mbps: 4000",
                "read_cache": f"{REQUIRED} read_cache: {{sizing: proportional}}, or {{sizing: none}}",
            },
        ),
        (
            replace(TIERING, read_cache="provisioned"),
            {
                "read_cache.size_gib": (
                    "is required with sizing: provisioned; add size_gib, or set sizing: proportional"
                )
            },
        ),
        (
            replace(TIERING, read_cache="none", read_cache_gib=0),
            {
                "read_cache.size_gib": (
                    "must be left out with sizing: none, got 0; set sizing: provisioned, or remove it"
                )
            },
        ),
        (
            replace(TIERING, capacity_gib=0, throughput_mbps_per_tib=0, data_repositories=2),
            {
                "capacity_gib": (
                    "must be left out with intelligent_tiering, whose storage grows and shrinks with the data, got 0;"
                    " remove it"
                ),
                "throughput_mbps_per_tib": (
                    "must be left out with intelligent_tiering, whose throughput does not follow the capacity, got 0;"
                    " set throughput_capacity_mbps instead"
                ),
                "data_repositories": (
                    "must be empty with intelligent_tiering, got 2; remove them, or set storage_type: ssd"
                ),
            },
        ),
    ],
)
def test_what_is_said_of_settings_together(settings: lustre.Settings, problems: dict[str, str]) -> None:
    assert dict(lustre.combination_problems(settings)) == problems


def test_a_setting_of_zero_is_set() -> None:
    refused = lustre.combination_problems(replace(SSD, throughput_capacity_mbps=0))
    assert [name for name, _ in refused] == ["throughput_capacity_mbps"]
    refused = lustre.combination_problems(replace(SCRATCH, throughput_mbps_per_tib=0, metadata_iops=0))
    assert [name for name, _ in refused] == ["throughput_mbps_per_tib", "metadata_iops"]


def test_no_address_for_no_storage() -> None:
    assert lustre.ip_addresses(None) == 1
    assert lustre.ip_addresses(2401, metadata_iops=12_001, throughput_capacity_mbps=4001) == 2 + 2 + 2


def test_far_users_and_times_without_backups() -> None:
    assert lustre.far_users_problem("use1-az1", far="workers in use1-az2", move="move them") == (
        "must have its users in use1-az1, because EFA does not cross zones, got workers in use1-az2; move them, or set"
        " efa: false"
    )
    assert lustre.backup_time_problem("03:00", key="retention_days") == (
        'must be left out without backups, got "03:00"; remove it, or set retention_days to 1 or more'
    )
