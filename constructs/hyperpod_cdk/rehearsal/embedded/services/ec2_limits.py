"""Quotas of EC2 that a network runs into; moto has none."""

from __future__ import annotations

from typing import Any, NoReturn

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.rehearsal.embedded.context import Context
from hyperpod_cdk.rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk.rehearsal.embedded.services.quotas import effective_value


@operation("ec2", "CreateVpc")
def create_vpc(context: Context, _request: dict[str, Any]) -> NoReturn:
    """Count the VPCs, the default one too; moto makes the next."""
    present = len(context.client("ec2").describe_vpcs()["Vpcs"])
    if present >= effective_value(context, quotas.get("vpcs")):
        raise ServiceError("VpcLimitExceeded", "The maximum number of VPCs has been reached.")
    raise PassToMoto


@operation("ec2", "AllocateAddress")
def allocate_address(context: Context, _request: dict[str, Any]) -> NoReturn:
    """Count the Elastic IP addresses; moto allocates the next."""
    present = len(context.client("ec2").describe_addresses()["Addresses"])
    if present >= effective_value(context, quotas.get("elastic_ips")):
        raise ServiceError("AddressLimitExceeded", "The maximum number of addresses has been reached.")
    raise PassToMoto
