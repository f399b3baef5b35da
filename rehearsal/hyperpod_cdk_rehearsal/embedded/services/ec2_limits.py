"""Quotas of EC2 that a network runs into; moto has none."""

from __future__ import annotations

from typing import Any, NoReturn

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import quotas
from hyperpod_cdk_rehearsal.embedded.services.quotas import effective_value


@operation("ec2", "CreateVpc")
def create_vpc(context: Context, _request: dict[str, Any]) -> NoReturn:
    """Count the VPCs, the default one too; moto makes the next."""
    present = len(context.client("ec2").describe_vpcs()["Vpcs"])
    if present >= effective_value(context, quotas.get("vpc", quotas.VPCS)):
        raise ServiceError("VpcLimitExceeded", "The maximum number of VPCs has been reached.")
    raise PassToMoto


@operation("ec2", "AssociateVpcCidrBlock")
def associate_vpc_cidr_block(context: Context, request: dict[str, Any]) -> NoReturn:
    """Count the IPv4 blocks of the VPC, the primary one too; moto adds the next."""
    limit = effective_value(context, quotas.get("vpc", quotas.BLOCKS_OF_A_VPC))
    for vpc in context.client("ec2").describe_vpcs(VpcIds=[request["VpcId"]])["Vpcs"]:
        blocks = vpc["CidrBlockAssociationSet"]
        present = [row for row in blocks if row.get("CidrBlockState", {}).get("State") == "associated"]
        if request.get("CidrBlock") and len(present) >= limit:
            raise ServiceError(
                "CidrLimitExceeded",
                f"This network '{vpc['VpcId']}' has met its maximum number of allowed CIDRs: {int(limit)}",
            )
    raise PassToMoto


@operation("ec2", "AllocateAddress")
def allocate_address(context: Context, _request: dict[str, Any]) -> NoReturn:
    """Count the Elastic IP addresses; moto allocates the next."""
    present = len(context.client("ec2").describe_addresses()["Addresses"])
    if present >= effective_value(context, quotas.get("ec2", quotas.ELASTIC_IPS)):
        raise ServiceError("AddressLimitExceeded", "The maximum number of addresses has been reached.")
    raise PassToMoto
