"""What AWS checks and does when a Lambda function is created or deleted: its role, its interfaces in a VPC.

AWS checks that Lambda may assume the role, moto only that it exists. A function in a VPC has an interface in each of
its subnets, which Lambda takes away some time after the function (Lambda developer guide, "Giving Lambda functions
access to resources in an Amazon VPC": up to 20 minutes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.services.interfaces import give_up, make_interface
from hyperpod_cdk_rehearsal.embedded.services.principals import can_be_assumed_by

SERVICE_PRINCIPAL = "lambda.amazonaws.com"
RELEASE_SECONDS = 1.5
INTERFACE_DESCRIPTION = "AWS Lambda VPC ENI-{}"


@dataclass
class FunctionInterfaces:
    """The interfaces of each function in a VPC, by the function's name."""

    by_function: dict[str, list[str]] = field(default_factory=dict)


@operation("lambda", "CreateFunction")
def create_function(context: Context, request: dict[str, Any]) -> NoReturn:
    """Check the role and make interfaces; moto makes the function."""
    _check(context, request["Role"])
    _join(context, request["FunctionName"], request.get("VpcConfig") or {})
    raise PassToMoto


@operation("lambda", "UpdateFunctionConfiguration")
def update_function_configuration(context: Context, request: dict[str, Any]) -> NoReturn:
    """Check the role and move the interfaces where they change; moto changes the function."""
    if request.get("Role"):
        _check(context, request["Role"])
    if request.get("VpcConfig") is not None:
        _leave(context, request["FunctionName"])
        _join(context, request["FunctionName"], request["VpcConfig"])
    raise PassToMoto


@operation("lambda", "DeleteFunction")
def delete_function(context: Context, request: dict[str, Any]) -> NoReturn:
    """Release the interfaces, which are deleted later; moto deletes the function."""
    if not request.get("Qualifier"):
        _leave(context, request["FunctionName"])
    raise PassToMoto


def _join(context: Context, function: str, vpc: Mapping[str, Any]) -> None:
    made = context.state.store(FunctionInterfaces).by_function
    if vpc.get("SubnetIds") and function not in made:
        made[function] = [
            make_interface(
                context,
                subnet_id=subnet_id,
                group_ids=vpc.get("SecurityGroupIds") or (),
                description=INTERFACE_DESCRIPTION.format(function),
            )
            for subnet_id in vpc["SubnetIds"]
        ]


def _leave(context: Context, function: str) -> None:
    interfaces = context.state.store(FunctionInterfaces).by_function.pop(function, [])
    give_up(context, interfaces, after_seconds=RELEASE_SECONDS)


def _check(context: Context, role_arn: str) -> None:
    if not can_be_assumed_by(context, role_arn, SERVICE_PRINCIPAL):
        raise ServiceError(
            "InvalidParameterValueException", "The role defined for the function cannot be assumed by Lambda."
        )
