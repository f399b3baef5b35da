"""FSx for Lustre: capacities, throughput, metadata, addresses and ports, with the rules that read them."""

from __future__ import annotations

from datetime import date
from math import ceil

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.rules import Bound

_DATA = _data.load("lustre")

AS_OF: date = _data.as_of("lustre")

SMALLEST_CAPACITY_GIB: int = _DATA["capacity_gib"]["smallest"]
"""Smallest SSD file system; after it come multiples of ``CAPACITY_STEP_GIB``."""

CAPACITY_STEP_GIB: int = _DATA["capacity_gib"]["step"]

EFA_CAPACITY_STEP_GIB: dict[int, int] = {int(k): v for k, v in _DATA["efa_capacity_step_gib"].items()}
"""Throughput per TiB -> smallest capacity, and step, of an EFA-enabled PERSISTENT_2 file system."""

DEPLOYMENT_TYPE = "PERSISTENT_2"

THROUGHPUTS_MBPS_PER_TIB: tuple[int, ...] = tuple(_DATA["throughput_mbps_per_tib"][DEPLOYMENT_TYPE])
"""Throughput tiers of PERSISTENT_2 on SSD."""

METADATA_IOPS_SMALL: tuple[int, ...] = tuple(_DATA["metadata_iops"]["small"])
METADATA_IOPS_STEP: int = _DATA["metadata_iops"]["step"]
METADATA_IOPS_MAXIMUM: int = _DATA["metadata_iops"]["maximum"]

LUSTRE_VERSION: str = _DATA["lustre_version"]
"""The version to name at creation; 2.10 fails for PERSISTENT_2."""

COMPRESSIONS: tuple[str, ...] = tuple(_DATA["compression"])
TCP_PORTS: tuple[tuple[int, int], ...] = tuple((first, last) for first, last in _DATA["ports"]["tcp"])
"""Port ranges, both ends open, between clients and file system and among its servers."""

CSI_DRIVER: str = _DATA["csi_driver"]
"""Name of the Kubernetes driver in a static persistent volume."""

DATA_REPOSITORIES = Bound(minimum=0, maximum=8, source="FSx for Lustre guide, linking to an S3 bucket")
"""Links to S3 that one file system may have."""


def contains(outer: str, inner: str) -> bool:
    """Say whether the folder ``outer`` of a file system is, or holds, the folder ``inner``."""
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")


def throughput_problem(throughput_mbps_per_tib: int, *, key: str = "throughput_mbps_per_tib") -> str | None:
    """Say that the throughput is no PERSISTENT_2 tier, or give None; the fix is the next tier, else the top."""
    if throughput_mbps_per_tib in THROUGHPUTS_MBPS_PER_TIB:
        return None
    tiers = THROUGHPUTS_MBPS_PER_TIB
    fix = next((tier for tier in tiers if tier > throughput_mbps_per_tib), tiers[-1])
    return f"must be {_or(tiers)} MB/s per TiB, got {throughput_mbps_per_tib}; set {key}: {fix}"


def capacity_problem(
    capacity_gib: int, *, throughput_mbps_per_tib: int, efa: bool, key: str = "capacity_gib"
) -> str | None:
    """Say that FSx offers no such capacity, or give None; the fix is the next larger capacity.

    With ``efa`` the step depends on the throughput tier; an unknown tier is ``throughput_problem``'s to
    refuse, and gives None here.
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
    return f"must be {allowed}, got {capacity_gib}; set {key}: {fix}"


def next_capacity_gib(capacity_gib: int, *, throughput_mbps_per_tib: int, efa: bool) -> int:
    """Give the smallest capacity on offer that is not less than ``capacity_gib``.

    Raises ValueError for ``efa`` with a throughput that is no tier.
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


def metadata_iops_problem(iops: int, *, key: str = "metadata_iops") -> str | None:
    """Say that FSx cannot provision ``iops`` metadata operations a second on SSD, or give None."""
    fix = next_metadata_iops(iops)
    if iops == fix:
        return None
    small = ", ".join(str(value) for value in METADATA_IOPS_SMALL)
    return (
        f"must be {small} or a multiple of {METADATA_IOPS_STEP} up to {METADATA_IOPS_MAXIMUM}, got {iops}; "
        f"set {key}: {fix}"
    )


def next_metadata_iops(iops: int) -> int:
    """Give the smallest provisionable value that is not less than ``iops``, or the largest there is."""
    for value in METADATA_IOPS_SMALL:
        if iops <= value:
            return value
    return min(METADATA_IOPS_MAXIMUM, ceil(iops / METADATA_IOPS_STEP) * METADATA_IOPS_STEP)


def region_problem(region: str, *, efa: bool) -> str | None:
    """Say that FSx does not offer the file system in ``region``, or give None."""
    unavailable: dict[str, list[str]] = _DATA["unavailable_regions"]
    if region in unavailable[DEPLOYMENT_TYPE]:
        return f"FSx for Lustre offers no {DEPLOYMENT_TYPE} file system in {region}; leave it out there"
    if efa and region in unavailable["EFA"]:
        return f"FSx for Lustre offers no EFA in {region}; set efa: false"
    return None


def ip_addresses(capacity_gib: int, *, metadata_iops: int | None = None) -> int:
    """Give how many addresses the file system takes from its subnet: one for each of its servers.

    One object storage server holds 2.4 TiB; a metadata server for each 12,000 metadata IOPS, one where
    ``metadata_iops`` is None (automatic). The documented count is for file systems without EFA: with EFA it
    is a lower estimate.
    """
    per_server: dict[str, int] = _DATA["per_server"]
    metadata_servers = max(1, ceil((metadata_iops or 0) / per_server["metadata_iops"]))
    return metadata_servers + ceil(capacity_gib / per_server["capacity_gib"])


def _or(values: tuple[int, ...]) -> str:
    *most, last = (str(value) for value in values)
    return f"{', '.join(most)} or {last}"
