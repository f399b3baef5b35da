"""What FSx for Lustre offers: sizes, throughputs, metadata operations, caches, logs, ports and regions.

Each function gives the end of AWS's refusal of a member, or None. Sources: the FSx API's own model as botocore ships it
(``fsx``, 2026-11: the documentation of the members that are named below), and the FSx for Lustre user guide where it
alone says it.
"""

from __future__ import annotations

import re

SCRATCH_2 = "SCRATCH_2"
PERSISTENT_2 = "PERSISTENT_2"
TIERING = "INTELLIGENT_TIERING"
PROVISIONED_CACHE = "USER_PROVISIONED"

SSD_FIRST_GIB = 1200
SSD_STEP_GIB = 2400
"""CreateFileSystemRequest.StorageCapacity: "1200 GiB, 2400 GiB, and increments of 2400 GiB" for SCRATCH_2 and
PERSISTENT_2 on SSD."""

EFA_STEP_GIB = {125: 38_400, 250: 19_200, 500: 9_600, 1000: 4_800}
"""User guide, "Working with EFA-enabled file systems": capacity and increments by MB/s per TiB."""

THROUGHPUTS = (125, 250, 500, 1000)
"""CreateFileSystemLustreConfiguration.PerUnitStorageThroughput, for PERSISTENT_2 on SSD."""

SSD_METADATA_IOPS = (1500, 3000, 6000, *range(12_000, 192_001, 12_000))
TIERING_METADATA_IOPS = (6000, 12_000)
"""CreateFileSystemLustreMetadataConfiguration.Iops."""

_AUTOMATIC_IOPS = ((1200, 1500), (2400, 3000), (9600, 6000), (45_600, 12_000))
_AUTOMATIC_BEYOND = (24_000, 12_000)
"""User guide, "Amazon FSx for Lustre performance", automatic mode: metadata IOPS by capacity in GiB, and 12,000 for
each 24,000 GiB beyond."""

HOURS_BETWEEN_CHANGES = 6
"""User guide, "Managing storage capacity" and "Managing metadata performance": no further increase until 6 hours after
the last one was requested; "Managing provisioned throughput capacity": no further change until then."""

TIERING_STEP_MBPS = 4000
TIERING_LARGEST_MBPS = 2_000_000
"""CreateFileSystemLustreConfiguration.ThroughputCapacity: multiples of 4000; its shape's maximum."""

CACHE_GIB_PER_STEP = (32, 131_072)
"""LustreReadCacheConfiguration.SizeGiB: smallest and largest for every 4,000 MB/s."""

LOG_GROUP_PREFIX = "/aws/fsx"
"""LustreLogCreateConfiguration.Destination."""

DEFAULT_VERSION = "2.15"
PORTS = ((988, 988), (1018, 1023))
"""User guide, "File system access control with Amazon VPC": TCP between clients and file system."""

_WITHOUT_PERSISTENT_2 = frozenset({"me-central-1", "me-south-1"})
_WITHOUT_EFA = frozenset({"il-central-1", "mx-central-1"})
"""User guide, "Deployment and storage class options" and "EFA-enabled file systems", availability by region."""


def region_refusal(region: str, *, efa: bool) -> str | None:
    """Say that FSx makes no PERSISTENT_2 file system, or none with EFA, in ``region``."""
    if region in _WITHOUT_PERSISTENT_2:
        return f"The deployment type {PERSISTENT_2} is not available in {region}."
    return f"EFA-enabled file systems are not available in {region}." if efa and region in _WITHOUT_EFA else None


_LOCAL_ZONE = re.compile(r"-(?P<city>[a-z]{3})\d-az\d$")
_LOCAL_ZONE_TYPES = {"atl": PERSISTENT_2, "dfw": PERSISTENT_2, "phx": PERSISTENT_2, "lax": SCRATCH_2}
_LOCAL_ZONE_THROUGHPUTS = (125, 250)
"""User guide, "Deployment type availability": Atlanta, Dallas, Phoenix and Los Angeles by the codes in their zone IDs,
and the note that the first three have Persistent-125 and Persistent-250 on SSD without EFA. Los Angeles also has
PERSISTENT_1, which nothing here makes."""


def local_zone_refusal(
    zone_id: str, deployment: str, *, efa: bool, tiering: bool, throughput: int | None
) -> str | None:
    """Say that FSx makes no such file system in a Local Zone; None for any other zone."""
    zone = _LOCAL_ZONE.search(zone_id)
    if zone is None:
        return None
    if deployment != _LOCAL_ZONE_TYPES.get(zone["city"], deployment):
        return f"The deployment type {deployment} is not available in {zone_id}."
    if tiering:
        return f"StorageType {TIERING} is not available in {zone_id}."
    if efa:
        return f"EFA-enabled file systems are not available in {zone_id}."
    if throughput is not None and throughput in THROUGHPUTS and throughput not in _LOCAL_ZONE_THROUGHPUTS:
        offered = _list(_LOCAL_ZONE_THROUGHPUTS)
        return f"PerUnitStorageThroughput must be one of {offered} in {zone_id}, got {throughput}."
    return None


def version_refusal(version: str | None, *, metadata: bool) -> str | None:
    """Say that a Lustre version goes with no PERSISTENT_2 file system, or with none that has a metadata mode.

    CreateFileSystemRequest.FileSystemTypeVersion. A version that is left out is AWS's choice.
    """
    if version == "2.10":
        return f"{PERSISTENT_2} requires Lustre version 2.12 or 2.15, got 2.10."
    if version == "2.12" and metadata:
        return "MetadataConfiguration requires Lustre version 2.15, got 2.12."
    return None


def throughput_refusal(mbps_per_tib: int) -> str | None:
    """Judge PerUnitStorageThroughput of PERSISTENT_2 on SSD."""
    return None if mbps_per_tib in THROUGHPUTS else f"must be one of {_list(THROUGHPUTS)}, got {mbps_per_tib}"


def capacity_refusal(gib: int, *, efa_throughput: int | None = None) -> str | None:
    """Judge StorageCapacity on SSD; ``efa_throughput`` is that of an EFA-enabled file system."""
    if efa_throughput in EFA_STEP_GIB:
        step = EFA_STEP_GIB[efa_throughput]
        fits, allowed = (
            gib >= step and gib % step == 0,
            f"a multiple of {step} GiB with EFA at {efa_throughput} MB/s/TiB",
        )
    else:
        fits = gib == SSD_FIRST_GIB or (gib >= SSD_STEP_GIB and gib % SSD_STEP_GIB == 0)
        allowed = f"{SSD_FIRST_GIB} GiB, {SSD_STEP_GIB} GiB or an increment of {SSD_STEP_GIB} GiB"
    return None if fits else f"must be {allowed}, got {gib}"


def metadata_refusal(iops: int, *, tiering: bool = False) -> str | None:
    """Judge MetadataConfiguration.Iops."""
    if iops in (TIERING_METADATA_IOPS if tiering else SSD_METADATA_IOPS):
        return None
    allowed = _list(TIERING_METADATA_IOPS) if tiering else "1500, 3000, 6000, 12000 or a multiple of 12000 up to 192000"
    return f"must be {allowed}, got {iops}"


def automatic_iops(gib: int) -> int:
    """Return the metadata IOPS that FSx provisions in automatic mode."""
    for most, iops in _AUTOMATIC_IOPS:
        if gib <= most:
            return iops
    step, iops = _AUTOMATIC_BEYOND
    return gib // step * iops


def tiering_throughput_refusal(mbps: int) -> str | None:
    """Judge ThroughputCapacity of Intelligent-Tiering."""
    if 0 < mbps <= TIERING_LARGEST_MBPS and mbps % TIERING_STEP_MBPS == 0:
        return None
    return f"must be a multiple of {TIERING_STEP_MBPS} up to {TIERING_LARGEST_MBPS}, got {mbps}"


def cache_refusal(gib: int, *, throughput_mbps: int) -> str | None:
    """Judge the SizeGiB of a read cache beside a throughput."""
    smallest, largest = (each * max(1, throughput_mbps // TIERING_STEP_MBPS) for each in CACHE_GIB_PER_STEP)
    if smallest <= gib <= largest:
        return None
    return f"must be between {smallest} and {largest} at {throughput_mbps} MB/s, got {gib}"


def _list(values: tuple[int, ...]) -> str:
    *most, last = map(str, values)
    return f"{', '.join(most)} or {last}"
