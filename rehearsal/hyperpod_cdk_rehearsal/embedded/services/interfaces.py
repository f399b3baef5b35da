"""Network interfaces that services put into a VPC for their own use, and EC2's refusals while something is in use.

FSx, EKS and Lambda make interfaces in the subnets that they are given and take them away with what they are for; nobody
else may delete them (EC2 user guide, "Requester-managed network interfaces"). moto makes none of them, and lets a
subnet, a group or a VPC go whatever stands in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NoReturn

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation

_DEFAULT_GROUP = "default"
_GONE = frozenset({"deleted", "deleting"})


@dataclass
class ServiceInterfaces:
    """The interfaces of services, with the moment at which each that was given up goes; None: it stays."""

    until: dict[str, datetime | None] = field(default_factory=dict)


def make_interface(context: Context, *, subnet_id: str, group_ids: Iterable[str], description: str) -> str:
    """Put an interface of a service into a subnet and give its id."""
    made = context.client("ec2").create_network_interface(
        SubnetId=subnet_id, Groups=list(group_ids), Description=description
    )
    interface_id = str(made["NetworkInterface"]["NetworkInterfaceId"])
    with context.state.lock:
        context.state.store(ServiceInterfaces).until[interface_id] = None
    return interface_id


def give_up(context: Context, interface_ids: Iterable[str], *, after_seconds: float = 0.0) -> None:
    """Release interfaces after a number of (scaled) seconds."""
    moment = context.clock.now() + timedelta(seconds=after_seconds * context.clock.scale)
    with context.state.lock:
        context.state.store(ServiceInterfaces).until.update(dict.fromkeys(interface_ids, moment))
    _sweep(context)


@operation("ec2", "DescribeNetworkInterfaces")
def describe_network_interfaces(context: Context, _request: dict[str, Any]) -> NoReturn:
    """Delete released interfaces, and pass the request to moto."""
    _sweep(context)
    raise PassToMoto


@operation("ec2", "DeleteNetworkInterface")
def delete_network_interface(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse interfaces of services, which nobody but the service may delete."""
    _sweep(context)
    if request["NetworkInterfaceId"] in context.state.store(ServiceInterfaces).until:
        raise ServiceError("OperationNotPermitted", "You do not have permission to access the specified resource.")
    raise PassToMoto


@operation("ec2", "DeleteSubnet")
def delete_subnet(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse to delete a subnet with an interface of any owner."""
    subnet_id = request["SubnetId"]
    if _interfaces(context, "subnet-id", subnet_id):
        raise ServiceError("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    raise PassToMoto


@operation("ec2", "DeleteSecurityGroup")
def delete_security_group(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse a group that an interface or endpoint carries, or that a rule of another group names."""
    group_id = request.get("GroupId")
    groups = context.client("ec2").describe_security_groups()["SecurityGroups"] if group_id else []
    own = next((group for group in groups if group["GroupId"] == group_id), None)
    if own is not None and own["GroupName"] == _DEFAULT_GROUP:
        raise ServiceError(
            "CannotDelete", f'the specified group: "{group_id}" name: "{_DEFAULT_GROUP}" cannot be deleted by a user'
        )
    if own is not None and (
        any(group_id in _named_groups(group) for group in groups if group is not own)
        or _interfaces(context, "group-id", str(group_id))
        or any(group_id in _groups_of(endpoint) for endpoint in _endpoints(context, []))
    ):
        raise ServiceError("DependencyViolation", f"resource {group_id} has a dependent object")
    raise PassToMoto


@operation("ec2", "DeleteVpc")
def delete_vpc(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse to delete a VPC with resources other than those it was created with."""
    ec2, vpc_id = context.client("ec2"), request["VpcId"]
    here = [{"Name": "vpc-id", "Values": [vpc_id]}]
    groups = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
    attached = [{"Name": "attachment.vpc-id", "Values": [vpc_id]}]
    if (
        ec2.describe_subnets(Filters=here)["Subnets"]
        or any(group["GroupName"] != _DEFAULT_GROUP for group in groups)
        or _endpoints(context, here)
        or ec2.describe_internet_gateways(Filters=attached)["InternetGateways"]
        or _interfaces(context, "vpc-id", vpc_id)
    ):
        raise ServiceError("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    raise PassToMoto


@operation("ec2", "DetachInternetGateway")
def detach_internet_gateway(context: Context, request: dict[str, Any]) -> NoReturn:
    """Refuse while NAT gateways of the VPC hold public addresses."""
    vpc_id = request["VpcId"]
    gateways = context.client("ec2").describe_nat_gateways(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])
    if any(gateway["State"] not in _GONE for gateway in gateways["NatGateways"]):
        raise ServiceError(
            "DependencyViolation",
            f"Network {vpc_id} has some mapped public address(es). "
            "Please unmap those public address(es) before detaching the gateway.",
        )
    raise PassToMoto


def _interfaces(context: Context, name: str, value: str) -> list[dict[str, Any]]:
    answer = context.client("ec2").describe_network_interfaces(Filters=[{"Name": name, "Values": [value]}])
    found: list[dict[str, Any]] = answer["NetworkInterfaces"]
    return found


def _endpoints(context: Context, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = context.client("ec2").describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]
    return [endpoint for endpoint in found if endpoint["State"].lower() not in _GONE]


def _groups_of(endpoint: Mapping[str, Any]) -> list[str]:
    return [group["GroupId"] for group in endpoint.get("Groups", [])]


def _named_groups(group: Mapping[str, Any]) -> set[str]:
    """The groups that a group's rules name."""
    return {
        pair["GroupId"]
        for permission in [*group["IpPermissions"], *group["IpPermissionsEgress"]]
        for pair in permission.get("UserIdGroupPairs", [])
        if "GroupId" in pair
    }


def _sweep(context: Context) -> None:
    now = context.clock.now()
    with context.state.lock:
        until = context.state.store(ServiceInterfaces).until
        gone = [interface_id for interface_id, moment in until.items() if moment is not None and moment <= now]
        for interface_id in gone:
            del until[interface_id]
            with moto_state("ec2", context.account, context.region) as backend:
                backend.enis.pop(interface_id, None)
