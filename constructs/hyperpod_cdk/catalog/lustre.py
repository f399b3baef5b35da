"""FSx for Lustre: capacities, throughput, metadata, addresses and ports, with the rules that read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Any

from hyperpod_cdk.catalog import _data, regions
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import Bound, Pattern, listing, repeated
from hyperpod_cdk.catalog.sentences import Sentence, Setting, Stated

_DATA = _data.load("lustre")

AS_OF: date = _data.as_of("lustre")

PATH = Pattern(
    regex=r"/[^\x00\x85\u2028\u2029\r\n]*",
    maximum=4096,
    describes="an absolute path in the file system of at most 4096 characters",
    example="/datasets",
    source="CloudFormation schema AWS::FSx::DataRepositoryAssociation",
)
FILE_SYSTEM_ID = Pattern(
    regex=r"fs-[0-9a-f]{8,17}",
    minimum=11,
    maximum=20,
    describes="the ID of an FSx file system",
    refers=True,
    example="fs-0a1b2c3d4e5f67890",
)
MOUNT_NAME = Pattern(
    regex=r"[A-Za-z0-9_-]+",
    maximum=8,
    describes="the mount name that FSx gave the file system, 1 to 8 letters, digits, - or _",
    refers=True,
    example="abcdefgh",
)
DNS_NAME = Pattern(
    regex=r"[a-z0-9-]+([.][a-z0-9-]+)+",
    minimum=4,
    maximum=253,
    describes="the DNS name of the file system",
    refers=True,
    example="fs-0a1b2c3d4e5f67890.fsx.us-east-1.amazonaws.com",
)
BACKUP_ID = Pattern(
    regex=r"backup-[0-9a-f]{8,}",
    minimum=15,
    maximum=128,
    describes="the ID of an FSx backup",
    refers=True,
    example="backup-0a1b2c3d4e5f67890",
    source="botocore fsx, BackupId",
)
DAILY_TIME = Pattern(
    regex=r"([01][0-9]|2[0-3]):[0-5][0-9]",
    minimum=5,
    maximum=5,
    describes="a time of day in UTC, HH:MM",
    example="03:00",
    source="botocore fsx, DailyTime",
)
WEEKLY_TIME = Pattern(
    regex=r"[1-7]:([01][0-9]|2[0-3]):[0-5][0-9]",
    minimum=7,
    maximum=7,
    describes="a day of the week (1 is Monday) and a time in UTC, d:HH:MM",
    example="7:03:00",
    source="botocore fsx, WeeklyTime",
)

SMALLEST_CAPACITY_GIB: int = _DATA["capacity_gib"]["smallest"]
"""Smallest SSD file system; after it come multiples of ``CAPACITY_STEP_GIB``."""

LARGEST_CAPACITY_GIB = 2_147_483_647
"""More is no number that FSx takes (FSx API reference, ``StorageCapacity``)."""

CAPACITY_STEP_GIB: int = _DATA["capacity_gib"]["step"]

EFA_CAPACITY_STEP_GIB: dict[int, int] = {int(k): v for k, v in _DATA["efa_capacity_step_gib"].items()}
"""Throughput per TiB -> smallest capacity, and step, of an EFA-enabled PERSISTENT_2 file system."""

DEPLOYMENT_TYPE = "PERSISTENT_2"

SCRATCH = "scratch_2"
INTELLIGENT_TIERING = "intelligent_tiering"

DEPLOYMENT_TYPES: Mapping[str, str] = _DATA["deployment_types"]
"""Our word for a deployment type -> FSx's; ``DEPLOYMENT_TYPES_LEFT_OUT`` says what is left out and why."""

DEPLOYMENT_TYPES_LEFT_OUT: Mapping[str, str] = _DATA["deployment_types_left_out"]

STORAGE_TYPES: Mapping[str, str] = _DATA["storage_types"]
"""Our word for a storage type -> FSx's."""

LEFT_OUT: Mapping[str, str] = _DATA["left_out"]
"""Properties of CloudFormation's AWS::FSx::FileSystem that no file system here has -> why."""

READ_CACHES: Mapping[str, str] = _DATA["intelligent_tiering"]["read_cache_modes"]
"""Our word for how an Intelligent-Tiering file system sizes its read cache -> FSx's."""

TIERING_THROUGHPUT_STEP_MBPS: int = _DATA["intelligent_tiering"]["throughput_step_mbps"]
TIERING_THROUGHPUT_MAXIMUM_MBPS: int = _DATA["intelligent_tiering"]["throughput_maximum_mbps"]
TIERING_METADATA_IOPS: tuple[int, ...] = tuple(_DATA["intelligent_tiering"]["metadata_iops"])

LOG_LEVELS: Mapping[str, str] = _DATA["log_levels"]
"""Our word for what is logged of data repositories -> FSx's."""

HOURS_BETWEEN_CHANGES: int = _DATA["hours_between_changes"]["hours"]
"""For this time after a change of storage, metadata performance or throughput, FSx refuses another."""

LOG_GROUP_PREFIX: str = _DATA["log_group_prefix"]

BACKUP_RETENTION_DAYS = Bound(**_DATA["backups"]["retention_days"])
"""Days for which automatic backups are kept; 0 means none."""

IMPORTED_FILE_CHUNK_SIZE_MIB = Bound(
    minimum=_DATA["imported_file_chunk_size_mib"]["minimum"], maximum=_DATA["imported_file_chunk_size_mib"]["maximum"]
)

DEFAULT_THROUGHPUT_MBPS_PER_TIB = 250
"""The default tier of a PERSISTENT_2 file system on SSD."""

THROUGHPUTS_MBPS_PER_TIB: tuple[int, ...] = tuple(_DATA["throughput_mbps_per_tib"][DEPLOYMENT_TYPE])
"""Throughput tiers of PERSISTENT_2 on SSD."""

METADATA_IOPS_SMALL: tuple[int, ...] = tuple(_DATA["metadata_iops"]["small"])
METADATA_IOPS_STEP: int = _DATA["metadata_iops"]["step"]
METADATA_IOPS_MAXIMUM: int = _DATA["metadata_iops"]["maximum"]

LUSTRE_VERSION: str = _DATA["lustre_version"]
"""The version to set at creation; 2.10 fails for PERSISTENT_2."""

COMPRESSIONS: tuple[str, ...] = tuple(_DATA["compression"])
TCP_PORTS: tuple[tuple[int, int], ...] = tuple((first, last) for first, last in _DATA["ports"]["tcp"])
"""Port ranges, both ends open, between clients and file system and among its servers."""

_LOCAL_ZONES: Mapping[str, Any] = _DATA["local_zones"]
_EFA_INTERFACES: Mapping[str, Any] = _DATA["efa_interfaces"]

CSI_DRIVER: str = _DATA["csi_driver"]
"""Name of the Kubernetes driver in a static persistent volume."""

DATA_REPOSITORIES = Bound(minimum=0, maximum=8, source="FSx for Lustre guide, linking to an S3 bucket")
"""Links to S3 that one file system may have."""


def contains(outer: str, inner: str) -> bool:
    """Return whether the folder ``outer`` of a file system is, or contains, the folder ``inner``."""
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")


def link_problems(links: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield what is wrong with links to data repositories (path, S3 address): index, ``path`` or ``s3_uri``, sentence.

    FSx refuses links with nested folders, and links to the same prefix.
    """
    for index, (path, _) in enumerate(links):
        for first, (other, _) in enumerate(links[:index]):
            if contains(path, other) or contains(other, path):
                yield (
                    index,
                    "path",
                    (
                        f"must not overlap another link, got {path} and {other} of"
                        f" data_repositories[{first}]; choose folders that are not nested"
                    ),
                )
                break
    for index, first, uri in repeated([uri.rstrip("/") for _, uri in links]):
        yield (
            index,
            "s3_uri",
            f"must be linked once, got {uri} again after data_repositories[{first}]; remove one of the two",
        )


def throughput_problem(throughput_mbps_per_tib: int, *, key: str = "throughput_mbps_per_tib") -> str | None:
    """Say that the throughput is not a PERSISTENT_2 tier, or return None; the fix is the next tier, else the top."""
    if throughput_mbps_per_tib in THROUGHPUTS_MBPS_PER_TIB:
        return None
    tiers = THROUGHPUTS_MBPS_PER_TIB
    fix = next((tier for tier in tiers if tier > throughput_mbps_per_tib), tiers[-1])
    return Sentence(f"must be {listing(tiers)} MB/s per TiB, got {throughput_mbps_per_tib}; ", Setting(key, fix))


def capacity_problem(
    capacity_gib: int, *, throughput_mbps_per_tib: int, efa: bool, key: str = "capacity_gib"
) -> str | None:
    """Say that FSx does not offer a capacity, or return None; the fix is the next larger capacity.

    With ``efa`` the step depends on the throughput tier; ``throughput_problem`` refuses an unknown
    tier, which gives None here.
    """
    if efa and throughput_mbps_per_tib not in EFA_CAPACITY_STEP_GIB:
        return None
    fix = next_capacity_gib(capacity_gib, throughput_mbps_per_tib=throughput_mbps_per_tib, efa=efa)
    if capacity_gib == fix:
        return None
    if efa:
        allowed = (
            f"a multiple of {EFA_CAPACITY_STEP_GIB[throughput_mbps_per_tib]} GiB with EFA at "
            f"{throughput_mbps_per_tib} MB/s per TiB"
        )
    else:
        allowed = f"{SMALLEST_CAPACITY_GIB} GiB or a multiple of {CAPACITY_STEP_GIB} GiB"
    return Sentence(f"must be {allowed}, got {capacity_gib}; ", Setting(key, fix))


def next_capacity_gib(capacity_gib: int, *, throughput_mbps_per_tib: int, efa: bool) -> int:
    """Return the smallest capacity on offer that is at least ``capacity_gib``.

    Raises ValueError for ``efa`` with a throughput that is not a tier.
    """
    if not efa:
        if capacity_gib <= SMALLEST_CAPACITY_GIB:
            return SMALLEST_CAPACITY_GIB
        return ceil(capacity_gib / CAPACITY_STEP_GIB) * CAPACITY_STEP_GIB
    problem = throughput_problem(throughput_mbps_per_tib)
    if problem:
        raise ValueError(f"throughput_mbps_per_tib: {problem}")
    step = EFA_CAPACITY_STEP_GIB[throughput_mbps_per_tib]
    return max(1, ceil(capacity_gib / step)) * step


def tiering_throughput_problem(mbps: int, *, key: str = "throughput_capacity_mbps") -> str | None:
    """Say that no Intelligent-Tiering file system has this throughput, or return None; the fix is the next larger."""
    steps = max(1, ceil(mbps / TIERING_THROUGHPUT_STEP_MBPS))
    fix = min(TIERING_THROUGHPUT_MAXIMUM_MBPS, steps * TIERING_THROUGHPUT_STEP_MBPS)
    if mbps == fix:
        return None
    return Sentence(
        f"must be a multiple of {TIERING_THROUGHPUT_STEP_MBPS} MB/s up to {TIERING_THROUGHPUT_MAXIMUM_MBPS}, "
        f"got {mbps}; ",
        Setting(key, fix),
    )


def read_cache_problem(size_gib: int, *, throughput_capacity_mbps: int, key: str = "size_gib") -> str | None:
    """Say that no read cache has this size with this throughput, or return None."""
    per_step: dict[str, int] = _DATA["intelligent_tiering"]["read_cache_gib_per_step"]
    steps = max(1, throughput_capacity_mbps // TIERING_THROUGHPUT_STEP_MBPS)
    smallest, largest = steps * per_step["smallest"], steps * per_step["largest"]
    fix = min(max(size_gib, smallest), largest)
    if size_gib == fix:
        return None
    return Sentence(
        f"must be between {smallest} and {largest} GiB at {throughput_capacity_mbps} MB/s, got {size_gib}; ",
        Setting(key, fix),
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a new file system, in this library's terms; None if not set.

    Only the presence of a setting is checked, so all except ``deployment_type``, ``storage_type`` and
    ``read_cache`` may be tokens.
    """

    deployment_type: str
    storage_type: str
    capacity_gib: int | None = None
    throughput_mbps_per_tib: int | None = None
    throughput_capacity_mbps: int | None = None
    read_cache: str | None = None
    read_cache_gib: int | None = None
    metadata_iops: int | None = None
    efa: bool = False
    backup_days: int | None = None
    from_backup: bool = False
    data_repositories: int = 0


def combination_problems(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the settings that FSx refuses because of other settings: the setting, and the sentence about it."""
    tiering = settings.storage_type == INTELLIGENT_TIERING
    if settings.deployment_type == SCRATCH and tiering:
        said = f"must be ssd with {SCRATCH}, got {INTELLIGENT_TIERING}; "
        yield "storage_type", Sentence(said, Setting("storage_type", "ssd"), ", or ", _PERSISTENT)
        return
    if settings.deployment_type == SCRATCH:
        yield from _beside_scratch(settings)
    yield from _beside_tiering(settings) if tiering else _beside_ssd(settings)
    if settings.backup_days and settings.data_repositories:
        reason = "because FSx does not back up such a file system"
        fix = "remove it: the linked buckets contain the data"
        yield (
            "backups",
            f"cannot be set together with data_repositories, {reason}, got {settings.backup_days} days; {fix}",
        )


def _beside_scratch(settings: Settings) -> Iterator[tuple[str, str]]:
    for name, value in (
        ("throughput_mbps_per_tib", settings.throughput_mbps_per_tib),
        ("metadata_iops", settings.metadata_iops),
        ("efa", settings.efa or None),
        ("backups", settings.backup_days),
        ("from_backup", settings.from_backup or None),
    ):
        if value is not None:
            said = f"must be left out with {SCRATCH}, which has none; remove it, or set "
            yield name, Sentence(said, _PERSISTENT)


def _beside_tiering(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.capacity_gib is not None:
        reason = "whose storage grows and shrinks with the data"
        got = f"got {settings.capacity_gib}; remove it"
        yield "capacity_gib", f"must be left out with {INTELLIGENT_TIERING}, {reason}, {got}"
    if settings.throughput_mbps_per_tib is not None:
        reason = "whose throughput does not follow the capacity"
        got = f"got {settings.throughput_mbps_per_tib}; set throughput_capacity_mbps instead"
        yield "throughput_mbps_per_tib", f"must be left out with {INTELLIGENT_TIERING}, {reason}, {got}"
    if settings.data_repositories:
        said = f"must be empty with {INTELLIGENT_TIERING}, got {settings.data_repositories}; remove them, or "
        yield "data_repositories", Sentence(said, Setting("storage_type", "ssd"))
    if settings.throughput_capacity_mbps is None:
        fix = Setting("throughput_capacity_mbps", TIERING_THROUGHPUT_STEP_MBPS)
        yield "throughput_capacity_mbps", Sentence(f"is required with {INTELLIGENT_TIERING}; ", fix)
    if settings.read_cache is None:
        cache = "{sizing: proportional}, or {sizing: none}"
        fix = Setting("read_cache", cache, python='ReadCache(sizing="proportional"), or ReadCache(sizing="none")')
        yield "read_cache", Sentence(f"is required with {INTELLIGENT_TIERING}; ", fix)
    elif settings.read_cache == _PROVISIONED and settings.read_cache_gib is None:
        given = Stated("sizing", _PROVISIONED)
        fix = Setting("sizing", "proportional")
        yield "read_cache.size_gib", Sentence("is required with ", given, "; add size_gib, or ", fix)
    elif settings.read_cache != _PROVISIONED and settings.read_cache_gib is not None:
        given, got = Stated("sizing", settings.read_cache), f", got {settings.read_cache_gib}; "
        fix = Setting("sizing", _PROVISIONED)
        yield "read_cache.size_gib", Sentence("must be left out with ", given, got, fix, ", or remove it")


def _beside_ssd(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.capacity_gib is None:
        example = Stated("capacity_gib", SMALLEST_CAPACITY_GIB)
        yield "capacity_gib", Sentence("is missing; add capacity_gib, such as ", example)
    for name, value in (
        ("throughput_capacity_mbps", settings.throughput_capacity_mbps),
        ("read_cache", settings.read_cache),
    ):
        if value is not None:
            said = f"must be left out with ssd, because it belongs to {INTELLIGENT_TIERING}; remove it, or "
            yield name, Sentence(said, Setting("storage_type", INTELLIGENT_TIERING))


_PERSISTENT = Stated("deployment_type", "persistent_2")
_PROVISIONED = "provisioned"


def tiering_metadata_iops_problem(iops: int, *, key: str = "metadata_iops") -> str | None:
    """Say that an Intelligent-Tiering file system cannot have ``iops`` metadata operations per second, or None."""
    if iops in TIERING_METADATA_IOPS:
        return None
    fix = next((value for value in TIERING_METADATA_IOPS if value > iops), TIERING_METADATA_IOPS[-1])
    said = f"must be {listing(TIERING_METADATA_IOPS)} with {INTELLIGENT_TIERING}, got {iops}; "
    return Sentence(said, Setting(key, fix))


def metadata_iops_problem(iops: int, *, key: str = "metadata_iops") -> str | None:
    """Say that FSx cannot provision ``iops`` metadata operations per second on SSD, or return None."""
    fix = next_metadata_iops(iops)
    if iops == fix:
        return None
    small = ", ".join(str(value) for value in METADATA_IOPS_SMALL)
    return Sentence(
        f"must be {small} or a multiple of {METADATA_IOPS_STEP} up to {METADATA_IOPS_MAXIMUM}, got {iops}; ",
        Setting(key, fix),
    )


def next_metadata_iops(iops: int) -> int:
    """Return the smallest provisionable value that is at least ``iops``, or the largest value."""
    for value in METADATA_IOPS_SMALL:
        if iops <= value:
            return value
    return min(METADATA_IOPS_MAXIMUM, ceil(iops / METADATA_IOPS_STEP) * METADATA_IOPS_STEP)


def backup_time_problem(start_time: str, *, key: str) -> str:
    """Say that a time of day is set for disabled backups; ``key`` has their days of retention."""
    return f'must be left out without backups, got "{start_time}"; remove it, or set {key} to 1 or more'


def region_problem(region: str, *, efa: bool, deployment_type: str = DEPLOYMENT_TYPE) -> str | None:
    """Say that FSx does not offer the file system in ``region``, or return None; the type has FSx's name."""
    unavailable: dict[str, list[str]] = _DATA["unavailable_regions"]
    if region in unavailable.get(deployment_type, ()):
        return f"FSx for Lustre does not offer {deployment_type} file systems in {region}; leave it out there"
    if efa and region in unavailable["EFA"]:
        return Sentence(f"FSx for Lustre does not offer EFA in {region}; ", Setting("efa", "false"))
    return None


def far_users_problem(zone: str, *, far: str, move: str) -> Sentence:
    """Say that a file system of ``zone`` with EFA has users in other zones (FSx for Lustre user guide, "Working with
    EFA-enabled file systems", considerations, 2026).

    ``far`` names them with their zones; ``move`` is the fix that keeps EFA.
    """
    said = f"must have its users in {zone}, because EFA does not cross zones, got {far}; {move}, or "
    return Sentence(said, Setting("efa", "false"))


def local_zone_problems(az_id: str, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what FSx does not offer in a Local Zone, the setting and the sentence; nothing for any other zone.

    In the FSx user guide's table of deployment types, Local Zones have neither EFA nor Intelligent-Tiering.
    """
    city = regions.local_zone_city(az_id)
    if city is None:
        return
    there = f"in the Local Zone {az_id}"
    offered: list[str] = _LOCAL_ZONES["deployment_types"].get(city, [settings.deployment_type])
    if settings.deployment_type not in offered:
        kind = DEPLOYMENT_TYPES[settings.deployment_type]
        yield (
            "deployment_type",
            Sentence(
                f"FSx for Lustre does not offer {kind} file systems {there}; ", Setting("deployment_type", offered[0])
            ),
        )
    elif settings.storage_type == INTELLIGENT_TIERING:
        said = f"FSx for Lustre does not offer {INTELLIGENT_TIERING} {there}; "
        yield "storage_type", Sentence(said, Setting("storage_type", "ssd"))
    if settings.efa:
        yield "efa", Sentence(f"FSx for Lustre does not offer EFA {there}; ", Setting("efa", "false"))
    tiers: list[int] = _LOCAL_ZONES["throughput_mbps_per_tib"]
    got = settings.throughput_mbps_per_tib
    if got is not None and got in THROUGHPUTS_MBPS_PER_TIB and got not in tiers:
        yield (
            "throughput_mbps_per_tib",
            Sentence(
                f"must be {listing(tiers)} MB/s per TiB {there}, got {got}; ",
                Setting("throughput_mbps_per_tib", tiers[-1]),
            ),
        )


def efa_interfaces(row: InstanceType) -> int:
    """Return how many EFA interfaces a node uses for Lustre; 0 for a type that cannot use a file system over EFA.

    The FSx user guide's table, "Configuring EFA clients", step 4.
    """
    if not row.fsx_efa_client:
        return 0
    by_type: dict[str, int] = _EFA_INTERFACES["by_type"]
    other: int = _EFA_INTERFACES["several_network_cards" if row.network_cards > 1 else "one_network_card"]
    return by_type.get(row.ec2_name, other)


def automatic_metadata_iops(capacity_gib: int) -> int:
    """Return the metadata operations per second that FSx provisions on SSD in automatic mode for ``capacity_gib``."""
    table = _DATA["automatic_metadata_iops"]
    for most, iops in table["up_to_gib"]:
        if capacity_gib <= most:
            return int(iops)
    return int(capacity_gib // table["beyond"]["for_each_gib"] * table["beyond"]["iops"])


def ip_addresses(
    capacity_gib: int | None,
    *,
    metadata_iops: int | None = None,
    throughput_capacity_mbps: int | None = None,
    efa_throughput_mbps_per_tib: int | None = None,
) -> int:
    """Return how many addresses the file system uses in its subnet: one for each of its servers.

    An object storage server has 2.4 TiB; with EFA, whose throughput tier is ``efa_throughput_mbps_per_tib``, it
    has 4.8 to 38.4 TiB, and on Intelligent-Tiering it provides 4,000 MB/s. There is a metadata server for each 12,000
    metadata IOPS, one if ``metadata_iops`` is None: the file system has no metadata configuration.
    """
    per_server: dict[str, Any] = _DATA["per_server"]
    with_efa: dict[str, int] = per_server["efa_capacity_gib"]
    tier = str(efa_throughput_mbps_per_tib)
    each: int = with_efa[tier] if tier in with_efa else per_server["capacity_gib"]
    metadata_servers: int = ceil(metadata_iops / per_server["metadata_iops"]) if metadata_iops else 1
    of_capacity: int = ceil(capacity_gib / each) if capacity_gib else 0
    of_throughput: int = (
        ceil(throughput_capacity_mbps / per_server["throughput_capacity_mbps"]) if throughput_capacity_mbps else 0
    )
    return metadata_servers + of_capacity + of_throughput
