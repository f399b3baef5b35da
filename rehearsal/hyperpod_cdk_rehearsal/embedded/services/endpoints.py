"""Interface endpoints as EC2 makes them: known services, one subnet for each zone, names that nobody else has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NoReturn

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import quotas
from hyperpod_cdk_rehearsal.embedded.services.quotas import effective_value
from hyperpod_cdk_rehearsal.embedded.services.timeline import page
from hyperpod_cdk_rehearsal.embedded.services.zones import LOCAL_ZONE, zones_of

INTERFACE = "Interface"
_GONE = frozenset({"deleted", "deleting"})
_PAGE = 1000


@operation("ec2", "DescribeVpcEndpointServices")
def describe_vpc_endpoint_services(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """AWS's services that have interface endpoints here, with their zones; gateway endpoints are left out."""
    offered = [_view(context, service) for service in _offered(context)]
    by_name = {row["ServiceName"]: row for row in offered}
    wanted = request.get("ServiceNames") or []
    for name in wanted:
        if name not in by_name:
            raise ServiceError("InvalidServiceName", f"The Vpc Endpoint Service '{name}' does not exist")
    for item in request.get("Filters") or []:
        if item["Name"] not in {"service-name", "service-type"}:
            raise ServiceError("InvalidParameterValue", f"The filter '{item['Name']}' is invalid")
        by_type = item["Name"] == "service-type"
        offered = [row for row in offered if (INTERFACE if by_type else row["ServiceName"]) in item["Values"]]
    rows = [row for row in offered if not wanted or row["ServiceName"] in wanted]
    shown, token = page(rows, request.get("NextToken"), request.get("MaxResults") or _PAGE)
    names = [row["ServiceName"] for row in shown]
    return {"ServiceNames": names, "ServiceDetails": shown, **({"NextToken": token} if token else {})}


@operation("ec2", "CreateVpcEndpoint")
def create_vpc_endpoint(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse what EC2 refuses of an interface endpoint; moto makes it, and gateway endpoints as they come."""
    if request.get("VpcEndpointType", "Gateway") == INTERFACE:
        service = str(request["ServiceName"])
        _refuse_unknown(context, service)
        _refuse_subnets(context, request["VpcId"], service, request.get("SubnetIds") or ())
        if request.get("PrivateDnsEnabled", True):
            _refuse_names(context, request["VpcId"], service)
        _refuse_too_many(context, request["VpcId"])
    raise PassToMoto


@operation("ec2", "ModifyVpcEndpoint")
def modify_vpc_endpoint(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse a second subnet of a zone; moto changes the lists, the interfaces change here."""
    with moto_state("ec2", context.account, context.region) as backend:
        endpoint = backend.vpc_end_points.get(request["VpcEndpointId"])
    if endpoint is not None and endpoint.vpc_endpoint_type == INTERFACE:
        added, removed = request.get("AddSubnetIds") or [], request.get("RemoveSubnetIds") or []
        left = [each for each in endpoint.subnet_ids or [] if each not in removed]
        _refuse_subnets(context, endpoint.vpc_id, endpoint.service_name, [*left, *added])
        if request.get("PrivateDnsEnabled") and not endpoint.private_dns_enabled:
            _refuse_names(context, endpoint.vpc_id, endpoint.service_name)
        with moto_state("ec2", context.account, context.region) as backend:
            if "PrivateDnsEnabled" in request:
                endpoint.private_dns_enabled = request["PrivateDnsEnabled"]
            _move_interfaces(backend, endpoint, added=added, removed=removed)
    raise PassToMoto


def _move_interfaces(backend: Any, endpoint: Any, *, added: Iterable[str], removed: Iterable[str]) -> None:
    """Add interfaces for new subnets and remove those of removed ones; moto leaves them unchanged."""
    for interface_id in list(endpoint.network_interface_ids):
        if backend.enis[interface_id].subnet.id in removed:
            backend.enis.pop(interface_id)
            endpoint.network_interface_ids.remove(interface_id)
    for subnet_id in added:
        if subnet_id not in endpoint.subnet_ids:
            endpoint.network_interface_ids.append(backend.create_network_interface(subnet_id, None).id)


def _offered(context: Context) -> list[str]:
    stated = account_of(context).endpoint_services
    return sorted(service for service in {*_services(), *stated} if stated.get(service, ("",)))


def _zones_of_service(context: Context, service: str) -> list[tuple[str, str]]:
    """Zone IDs and names of a service; every zone but the local ones unless the account file says otherwise."""
    stated = account_of(context).endpoint_services
    zones = [zone for zone in zones_of(context) if zone.usable]
    return [
        (zone.zone_id, zone.name)
        for zone in zones
        if (zone.zone_id in stated[service] if service in stated else zone.kind != LOCAL_ZONE)
    ]


def _view(context: Context, service: str) -> dict[str, Any]:
    zones = _zones_of_service(context, service)
    private = f"{service}.{context.region}.{context.url_suffix}"
    return {
        "ServiceName": _name(context, service),
        "ServiceId": f"vpce-svc-{service.encode().hex():0<17.17}",
        "ServiceType": [{"ServiceType": INTERFACE}],
        "ServiceRegion": context.region,
        "AvailabilityZones": [name for _, name in zones],
        "AvailabilityZoneIds": [zone_id for zone_id, _ in zones],
        "Owner": "amazon",
        "BaseEndpointDnsNames": [f"{service}.{context.region}.vpce.{context.url_suffix}"],
        "PrivateDnsName": private,
        "PrivateDnsNames": [{"PrivateDnsName": private}],
        "VpcEndpointPolicySupported": True,
        "AcceptanceRequired": False,
        "ManagesVpcEndpoints": False,
    }


def _name(context: Context, service: str) -> str:
    return f"com.amazonaws.{context.region}.{service}"


def _refuse_unknown(context: Context, name: str) -> None:
    if name not in {_name(context, service) for service in _offered(context)}:
        raise ServiceError("InvalidServiceName", f"The Vpc Endpoint Service '{name}' does not exist")


def _refuse_subnets(context: Context, vpc_id: str, name: str, subnet_ids: Iterable[str]) -> None:
    service = name.removeprefix(_name(context, ""))
    zones = {zone_id for zone_id, _ in _zones_of_service(context, service)}
    seen: set[str] = set()
    ids = list(dict.fromkeys(subnet_ids))
    for subnet in context.client("ec2").describe_subnets(SubnetIds=ids)["Subnets"] if ids else ():
        zone_id, subnet_id = subnet["AvailabilityZoneId"], subnet["SubnetId"]
        if subnet["VpcId"] != vpc_id:
            raise ServiceError("InvalidParameter", f"The subnet {subnet_id} does not belong to the VPC {vpc_id}")
        if zone_id not in zones:
            raise ServiceError(
                "InvalidParameter",
                f"The VPC endpoint service {name} does not support the availability zone of the subnet: {subnet_id}.",
            )
        if zone_id in seen:
            raise ServiceError(
                "DuplicateSubnetsInSameZone",
                f"Found another VPC endpoint subnet in the availability zone of {subnet_id}",
            )
        seen.add(zone_id)


def _refuse_names(context: Context, vpc_id: str, name: str) -> None:
    """Private names need both DNS attributes, and can be had once in a VPC for each service."""
    ec2 = context.client("ec2")
    for attribute in ("enableDnsSupport", "enableDnsHostnames"):
        answer = ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute=attribute)
        if not answer[f"{attribute[0].upper()}{attribute[1:]}"]["Value"]:
            raise ServiceError(
                "InvalidParameter",
                "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true"
                f" for {vpc_id}",
            )
    for other in _interface_endpoints(context, vpc_id):
        if other["ServiceName"] == name and other.get("PrivateDnsEnabled"):
            domain = f"{name.removeprefix(_name(context, ''))}.{context.region}.{context.url_suffix}"
            raise ServiceError(
                "InvalidParameter",
                f"private-dns-enabled cannot be set because there is already a conflicting DNS domain for {domain} in"
                f" the VPC {vpc_id}",
            )


def _refuse_too_many(context: Context, vpc_id: str) -> None:
    limit = effective_value(context, quotas.get("vpc", quotas.INTERFACE_ENDPOINTS_OF_A_VPC))
    if len(_interface_endpoints(context, vpc_id)) >= limit:
        raise ServiceError("VpcEndpointLimitExceeded", "The maximum number of VPC endpoints has been reached.")


def _interface_endpoints(context: Context, vpc_id: str) -> list[Mapping[str, Any]]:
    found = context.client("ec2").describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])
    return [
        each
        for each in found["VpcEndpoints"]
        if each["VpcEndpointType"] == INTERFACE and each["State"].lower() not in _GONE
    ]


@cache
def _services() -> frozenset[str]:
    from moto.ec2.models import vpcs  # noqa: PLC0415 - moto loads after the account id is set

    return frozenset(vpcs.AWS_ENDPOINT_SERVICES)
