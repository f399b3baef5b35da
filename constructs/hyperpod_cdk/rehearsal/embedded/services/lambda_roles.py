"""The role of a Lambda function: AWS checks that Lambda may assume it, moto only that it exists."""

from __future__ import annotations

from typing import Any, NoReturn

from hyperpod_cdk.rehearsal.embedded.context import Context
from hyperpod_cdk.rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk.rehearsal.embedded.services.principals import can_be_assumed_by

SERVICE_PRINCIPAL = "lambda.amazonaws.com"


@operation("lambda", "CreateFunction")
def create_function(context: Context, request: dict[str, Any]) -> NoReturn:
    """Check the role; moto makes the function."""
    _check(context, request["Role"])
    raise PassToMoto


@operation("lambda", "UpdateFunctionConfiguration")
def update_function_configuration(context: Context, request: dict[str, Any]) -> NoReturn:
    """Check the role where it changes; moto changes the function."""
    if request.get("Role"):
        _check(context, request["Role"])
    raise PassToMoto


def _check(context: Context, role_arn: str) -> None:
    if not can_be_assumed_by(context, role_arn, SERVICE_PRINCIPAL):
        raise ServiceError(
            "InvalidParameterValueException", "The role defined for the function cannot be assumed by Lambda."
        )
