"""Availability zones and local zones of the account, and the EC2 types that they offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import instance_types
from hyperpod_cdk_rehearsal.embedded.published.policies import like
from hyperpod_cdk_rehearsal.embedded.services.timeline import page

LOCAL_ZONE = "local-zone"
OFFERINGS_PAGE = 1000
"""The most that EC2 gives in one page of offerings."""


@dataclass(frozen=True)
class EmbeddedZone:
    """A zone as this account sees it."""

    zone_id: str
    name: str
    kind: str
    state: str
    opt_in: str

    @property
    def usable(self) -> bool:
        """Whether the account may put anything there."""
        return self.opt_in != "not-opted-in"


@operation("ec2", "DescribeAvailabilityZones")
def describe_availability_zones(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The zones of the account; with AllAvailabilityZones those that are not opted in as well."""
    zones = [zone for zone in zones_of(context) if zone.usable or request.get("AllAvailabilityZones")]
    for member, attribute in (("ZoneNames", "name"), ("ZoneIds", "zone_id")):
        wanted = request.get(member) or []
        unknown = sorted(set(wanted) - {getattr(zone, attribute) for zone in zones})
        if unknown:
            raise ServiceError("InvalidParameterValue", f"Invalid availability zone: [{unknown[0]}]")
        zones = [zone for zone in zones if not wanted or getattr(zone, attribute) in wanted]
    views = [_view(context, zone) for zone in zones]
    return {"AvailabilityZones": [view for view in views if _passes(view, request.get("Filters") or [])]}


@operation("ec2", "DescribeInstanceTypeOfferings")
def describe_instance_type_offerings(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Where types are offered: by region, zone name or zone ID, sorted by type."""
    kind = request.get("LocationType", "region")
    filters = {item["Name"]: item.get("Values") or [] for item in request.get("Filters") or []}
    rows = [
        {"InstanceType": name, "LocationType": kind, "Location": location}
        for name, location in _offerings(context, kind)
        if _any_matches(filters.get("instance-type"), name) and _any_matches(filters.get("location"), location)
    ]
    shown, token = page(rows, request.get("NextToken"), request.get("MaxResults") or OFFERINGS_PAGE)
    return {"InstanceTypeOfferings": shown, **({"NextToken": token} if token else {})}


@operation("ec2", "CreateSubnet")
def create_subnet(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse a zone that is not this account's; moto makes the subnet, and is told of the local zone that it is in."""
    usable = [zone for zone in zones_of(context) if zone.usable]
    asked = {
        "availabilityZone": request.get("AvailabilityZone"),
        "availabilityZoneId": request.get("AvailabilityZoneId"),
    }
    for member, value in asked.items():
        allowed = [zone.name if member == "availabilityZone" else zone.zone_id for zone in usable]
        if value and allowed and value not in allowed:
            raise ServiceError(
                "InvalidParameterValue",
                f"Value ({value}) for parameter {member} is invalid. Subnets can currently only be created in the "
                f"following availability zones: {', '.join(sorted(allowed))}.",
            )
    for zone in usable:
        if zone.kind == LOCAL_ZONE and {zone.zone_id, zone.name} & {*asked.values()}:
            _pass_to_moto(context, zone)
    raise PassToMoto


def zones_of(context: Context) -> list[EmbeddedZone]:
    """Every zone of the region that the account has, those that are not opted in too, by name."""
    # moto loads after the account is set
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend  # noqa: PLC0415

    stated = account_of(context).zones
    zones = [
        EmbeddedZone(
            zone_id=zone.zone_id,
            name=zone.name,
            kind=zone.zone_type,
            state=stated.states.get(zone.zone_id, "available"),
            opt_in="opt-in-not-required",
        )
        for zone in RegionsAndZonesBackend.zones.get(context.region, [])
        if zone.zone_id not in stated.missing
    ]
    zones += [
        EmbeddedZone(
            zone_id=zone_id,
            name=zone.name,
            kind=LOCAL_ZONE,
            state=stated.states.get(zone_id, "available"),
            opt_in="opted-in" if zone.opted_in else "not-opted-in",
        )
        for zone_id, zone in stated.local.items()
    ]
    return sorted(zones, key=lambda zone: zone.name)


def _pass_to_moto(context: Context, zone: EmbeddedZone) -> None:
    """Let moto find the zone of a subnet; among the region's own zones it would get a default subnet."""
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend, Zone  # noqa: PLC0415 - as above

    told = Zone(name=zone.name, region_name=context.region, zone_id=zone.zone_id, zone_type=zone.kind)
    RegionsAndZonesBackend.zones[f"{context.region}, {zone.zone_id}"] = [told]


def _view(context: Context, zone: EmbeddedZone) -> dict[str, Any]:
    view = {
        "ZoneId": zone.zone_id,
        "ZoneName": zone.name,
        "ZoneType": zone.kind,
        "State": zone.state,
        "OptInStatus": zone.opt_in,
        "RegionName": context.region,
        "GroupName": context.region,
        "NetworkBorderGroup": context.region,
        "Messages": [],
    }
    if zone.kind == LOCAL_ZONE:
        # us-east-1-dfw-2a is in the group us-east-1-dfw-2
        group = zone.name.rstrip("abcdefghijklmnopqrstuvwxyz")
        view.update(GroupName=group, NetworkBorderGroup=group)
    return view


def _passes(view: Mapping[str, Any], filters: Iterable[Mapping[str, Any]]) -> bool:
    members = {
        "group-name": "GroupName",
        "opt-in-status": "OptInStatus",
        "region-name": "RegionName",
        "state": "State",
        "zone-id": "ZoneId",
        "zone-name": "ZoneName",
        "zone-type": "ZoneType",
    }
    for item in filters:
        if item["Name"] not in members:
            raise ServiceError("InvalidParameterValue", f"The filter '{item['Name']}' is invalid")
        if not _any_matches(item.get("Values"), str(view[members[item["Name"]]])):
            return False
    return True


def _offerings(context: Context, kind: str) -> Iterable[tuple[str, str]]:
    stated = account_of(context).offerings
    zones = [zone for zone in zones_of(context) if zone.usable]
    for name in sorted({*_ec2_names(), *stated}):
        offering = [
            zone for zone in zones if (zone.zone_id in stated[name] if name in stated else zone.kind != LOCAL_ZONE)
        ]
        if kind == "region":
            yield from ((name, context.region) for _ in offering[:1])
        else:
            yield from ((name, zone.zone_id if kind.endswith("-id") else zone.name) for zone in offering)


def _any_matches(patterns: Iterable[str] | None, text: str) -> bool:
    return patterns is None or any(like(pattern, text) for pattern in patterns)


@cache
def _ec2_names() -> frozenset[str]:
    return frozenset(name.removeprefix("ml.") for name in instance_types.cluster_types())
