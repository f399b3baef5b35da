"""Regions: partitions, availability zone IDs, where HyperPod runs, which CloudFormation types exist."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date
from functools import cache
from typing import Any

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.closest import closest as _closest
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import Advice, Choosing, Correction, Sentence, Setting

AS_OF: date = _data.as_of("regions")

HYPERPOD_REGIONS: tuple[str, ...] = tuple(_data.load("regions")["hyperpod_regions"])
"""Regions of the HyperPod developer guide, sorted by name."""

REGISTRY_AS_OF: date = date.fromisoformat(_data.load("regions")["registry_as_of"])
"""Date of the CloudFormation registry that ``has_type`` reads."""

REGION_REGEX = r"[a-z]{2,4}(-[a-z]+)+-[0-9]"
"""What the code of a region looks like, of any partition."""

_AZ_ID = re.compile(r"([a-z]{2,5}\d)(?:-(?P<city>[a-z]{3})\d)?-az\d")
_AZ_NAME = re.compile(REGION_REGEX + r"(?:[a-z]|-[a-z]{3,4}-\d[a-z])")


def is_known(region: str) -> bool:
    """Return whether ``region`` is a region of any AWS partition."""
    return region in _regions()


def names() -> tuple[str, ...]:
    """Return every known region, partition by partition."""
    return tuple(_regions())


def partition_of(region: str) -> str | None:
    """Return the partition (``aws``, ``aws-us-gov`` ...) of a region, by its name if it is unknown, or None."""
    row = _regions().get(region)
    if row is not None:
        return str(row["partition"])
    for name, partition in _data.load("regions")["partitions"].items():
        if re.fullmatch(partition["region_regex"], region):
            return str(name)
    return None


def dns_suffix(partition: str) -> str:
    """Return the suffix of host names of a partition's services: ``amazonaws.com``; KeyError for an unknown
    partition."""
    return str(_data.load("regions")["partitions"][partition]["dns_suffix"])


def closest(name: str) -> str | None:
    """Return the known region that was probably meant, or None: one of the partition that the name is written like.

    Credentials of one partition are none in another.
    """
    partition = partition_of(name)
    return _closest(name, [each for each, row in _regions().items() if partition in (None, row["partition"])])


def region_problem(region: str, *, key: str = "region") -> str | None:
    """Say that ``region`` is not an AWS region known on the table's date, with a similar one, or return None."""
    if is_known(region):
        return None
    near = closest(region)
    choice = ", ".join(HYPERPOD_REGIONS)
    fix: tuple[str | Advice, ...] = (f"did you mean {near}?",) if near else (Choosing(key), f" one of {choice}")
    return Sentence(f'must be an AWS region known on {AS_OF}, got "{region}"; ', *fix)


def hyperpod_warning(region: str, *, key: str = "region") -> str | None:
    """Say that the developer guide does not list ``region`` for HyperPod, or return None."""
    if region in HYPERPOD_REGIONS:
        return None
    return (
        f"HyperPod was not documented for {region} on {AS_OF}; if the cluster is refused, set {key} to one of "
        f"{', '.join(HYPERPOD_REGIONS)}"
    )


def region_of_az_id(az_id: str) -> str | None:
    """Return the region of an AZ ID (``use1-az5`` -> ``us-east-1``), or None if it is unknown."""
    match = _AZ_ID.fullmatch(az_id)
    return _prefixes().get(match.group(1)) if match else None


def known_az_ids(region: str) -> tuple[str, ...]:
    """Return the AZ IDs seen in ``region``, sorted; an account may see fewer, and AWS adds others."""
    return tuple(_regions().get(region, {}).get("az_ids", ()))


def is_az_id(text: str) -> bool:
    """Return whether ``text`` has the form of a zone ID: ``use1-az5``, or ``use1-dfw2-az1`` for a local zone."""
    return _AZ_ID.fullmatch(text) is not None


def local_zone_city(az_id: str) -> str | None:
    """Return AWS's code for the city of a Local Zone (``use1-dfw2-az1`` -> ``dfw``), or None for any other zone."""
    match = _AZ_ID.fullmatch(az_id)
    return match["city"] if match else None


def is_local_zone(az_id: str) -> bool:
    """Return whether the ID of a zone is that of a Local Zone, such as ``use1-dfw2-az1``."""
    return local_zone_city(az_id) is not None


def is_az_name(text: str) -> bool:
    """Return whether ``text`` has the form of an availability zone or local zone name (``us-east-1a``)."""
    return _AZ_NAME.fullmatch(text) is not None


def az_id_problem(az_id: str, *, region: str, key: str = "availability_zone_id", can_move: bool = True) -> str | None:
    """Say why ``az_id`` is not an availability zone ID of ``region``, or return None.

    ``can_move`` says that another region can be chosen too, because nothing else is of ``region``. A region whose
    prefix is unknown accepts every well-formed ID, and so does an empty one, which is not known yet.
    """
    prefix = _regions().get(region, {}).get("az_id_prefix")
    example = next(iter(known_az_ids(region)), f"{prefix or 'use1'}-az1")
    of_region = f" --region {region}" if region else ""
    if is_az_name(az_id):
        return Sentence(
            f'must be an availability zone ID such as {example}, got the name "{az_id}", which means another '
            f"zone in each account; find its ID with 'aws ec2 describe-availability-zones{of_region}' and ",
            Choosing(key),
            " it",
        )
    if not is_az_id(az_id):
        said = f'must be an availability zone ID such as {example}, got "{az_id}"; '
        meant = az_id.strip().lower().replace("_", "-")
        near = meant if is_az_id(meant) else _closest(meant, known_az_ids(region))
        return Sentence(said, *((Choosing(key), f" {near}") if near else (Correction(key),)))
    if prefix is not None and not az_id.startswith(f"{prefix}-"):
        elsewhere = region_of_az_id(az_id)
        where = f" of {elsewhere}" if elsewhere else ""
        said = (
            f"must be an availability zone ID of {region} ({prefix}-az...), got {az_id}{where}; write one of {region}"
        )
        return Sentence(said, Setting("region", elsewhere, or_in_files=", or ")) if elsewhere and can_move else said
    return None


def unseen_az_warning(az_id: str, *, region: str) -> str | None:
    """Say that a well-formed AZ ID of ``region`` is not among those seen, or return None.

    Local Zones are not among them: EC2 shows one to the accounts that have opted in to it.
    """
    known = known_az_ids(region)
    if not known or az_id in known or az_id_problem(az_id, region=region):
        return None
    if local_zone_city(az_id):
        return f"{az_id} is a Local Zone, which the account must have opted in to"
    return f"{az_id} was not seen in {region} on {AS_OF}; the zones seen were {', '.join(known)}"


def eks_control_plane_unsupported_az_ids() -> frozenset[str]:
    """Return the AZ IDs in which EKS refuses control-plane subnets; nodes can be there."""
    return frozenset(_data.load("regions")["eks_control_plane_unsupported_az_ids"])


def eks_control_plane_zones(az_ids: Iterable[str]) -> list[str]:
    """Return those of the AZ IDs in which EKS accepts control-plane subnets."""
    refused = eks_control_plane_unsupported_az_ids()
    return [az_id for az_id in az_ids if az_id not in refused and not is_local_zone(az_id)]


def control_plane_problem(az_id: str, *, first: int, enough: bool) -> str | None:
    """Say that EKS refuses a zone among the ``first`` ones, which are for its control plane, or return None.

    ``enough`` says whether the other listed zones are enough.
    """
    if eks_control_plane_zones([az_id]):
        return None
    ahead = "two" if first == 2 else str(first)
    why = "a local zone" if is_local_zone(az_id) else f"as of {AS_OF}"
    fix = f"list it after the first {ahead}" if enough else "add another zone and list it first"
    return f"EKS does not support a control plane in {az_id} ({why}), and the first {first} zones are for it; {fix}"


def control_plane_subnet_problem(az_id: str, subnet_id: str, *, local: Collection[str] = ()) -> str | None:
    """Say that EKS refuses a subnet for its control plane because of its zone, or return None.

    ``local`` are zones that AWS says are Local Zones.
    """
    refused = az_id in eks_control_plane_unsupported_az_ids()
    if not refused and az_id not in local:
        return None
    why = f"as of {AS_OF}" if refused else "a local zone"
    return f"EKS does not support a control plane in {az_id} ({why}), where {subnet_id} is"


def has_type(region: str, resource_type: str) -> bool:
    """Return whether CloudFormation has ``resource_type`` in ``region``, as of ``REGISTRY_AS_OF``.

    False for a region the registry lists do not cover. Raises ValueError for a type whose regions are not
    recorded.
    """
    registry: dict[str, list[str]] = _data.load("regions")["registry"]
    if resource_type not in registry:
        recorded = ", ".join(registry)
        raise ValueError(f'must be a type whose regions are recorded ({recorded}), got "{resource_type}"')
    return region in registry[resource_type]


def types_warning(region: str, resource_types: Iterable[str]) -> str | None:
    """Say which of ``resource_types`` CloudFormation does not have in ``region`` by its dated lists, or return None.

    Raises ValueError for a type whose regions are not recorded.
    """
    lacking = [each for each in resource_types if not has_type(region, each)]
    if not lacking:
        return None
    return f"CloudFormation did not have {joined(lacking)} in {region} on {REGISTRY_AS_OF}"


@cache
def _regions() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in _data.load("regions")["regions"]}


@cache
def _prefixes() -> dict[str, str]:
    return {row["az_id_prefix"]: name for name, row in _regions().items() if row["az_id_prefix"]}
