"""Keys of CloudWatch log groups, which moto neither checks nor changes, and their own policies, which it lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.services.keys import find_key, is_of_another_account

KEY_ACTIONS = ("kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptTo")


@dataclass
class LogGroupPolicies:
    """The resource policies of log groups, by group; moto has those of the account only, and their limit of ten."""

    by_group: dict[str, dict[str, Any]] = field(default_factory=dict)


@operation("logs", "DescribeResourcePolicies")
def describe_resource_policies(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The policy of one log group; those of the account are moto's."""
    if request.get("policyScope") != "RESOURCE":
        raise PassToMoto
    arn = str(request["resourceArn"])
    policy = context.state.store(LogGroupPolicies).by_group.get(arn.partition(":log-group:")[2])
    told = {"policyDocument": json.dumps(policy), "policyScope": "RESOURCE", "resourceArn": arn}
    return {"resourcePolicies": [] if policy is None else [told]}


@operation("logs", "CreateLogGroup")
def create_log_group(context: Context, request: dict[str, Any]) -> None:
    """Refuse a key that the service cannot use; moto makes the group."""
    _check_key(context, request)
    raise PassToMoto


@operation("logs", "AssociateKmsKey")
def associate_kms_key(context: Context, request: dict[str, Any]) -> None:
    """Encrypt what the group is given from now on."""
    group = _group(context, request)
    _check_key(context, request)
    group.kms_key_id = request["kmsKeyId"]


@operation("logs", "DisassociateKmsKey")
def disassociate_kms_key(context: Context, request: dict[str, Any]) -> None:
    """Leave what the group is given from now on to the service's own key."""
    _group(context, request).kms_key_id = None


def _check_key(context: Context, request: dict[str, Any]) -> None:
    key_arn = request.get("kmsKeyId")
    if not key_arn or is_of_another_account(context, key_arn):
        return
    key = find_key(context, key_arn)
    if key is None or key.problem:
        raise ServiceError("InvalidParameterException", "The specified KMS Key Id could not be found.")
    group_arn = context.arn("logs", f"log-group:{request['logGroupName']}")
    service = f"logs.{context.region}.{context.url_suffix}"
    encryption_context = {"aws:logs:arn": group_arn}
    if not key.lets_service(service, *KEY_ACTIONS, context=encryption_context, account=context.account):
        raise ServiceError(
            "AccessDeniedException",
            f"The specified KMS key does not exist or is not allowed to be used with Arn '{group_arn}'",
        )


def _group(context: Context, request: dict[str, Any]) -> Any:
    with moto_state("logs", context.account, context.region) as backend:
        group = backend.groups.get(request["logGroupName"])
    if group is None:
        raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
    return group
