"""The Lambda functions that serve our own custom resources: role, code and function are made alike for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from hyperpod_cdk.common.acknowledgments import acknowledge_handler_function, acknowledge_log_group

_HANDLERS = Path(__file__).parents[1] / "handlers"
"""Where the code of the functions is: a folder each, and what they share."""

_RUNTIME = "python3.14"


def document(*statements: Mapping[str, Any]) -> dict[str, Any]:
    """Return an IAM policy document that allows the statements."""
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **each} for each in statements]}


def handler_role(
    scope: Construct,
    construct_id: str,
    *,
    description: str,
    policy_name: str,
    statements: Sequence[Mapping[str, Any]],
) -> iam.CfnRole:
    """Make a function's role; its rights are inline, so that they stay as long as it does while a stack is deleted."""
    return iam.CfnRole(
        scope,
        construct_id,
        description=description,
        assume_role_policy_document=document(
            {"Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ),
        policies=[iam.CfnRole.PolicyProperty(policy_name=policy_name, policy_document=document(*statements))],
    )


def handler_function(
    scope: Construct,
    construct_id: str,
    *,
    description: str,
    serves: str,
    role: iam.CfnRole,
    log_group: logs.CfnLogGroup,
    timeout_seconds: int,
    memory_mib: int,
    borrows: Sequence[str] = (),
) -> lambda_.CfnFunction:
    """Make the function of the handler's folder ``serves``, which logs into ``log_group``.

    It takes along what all handlers share, so that each answers CloudFormation in the same way, and the handlers'
    folders that it ``borrows`` from.
    """
    folder = _HANDLERS.name
    own = [f"{folder}/{each}{ending}" for each in (serves, *borrows) for ending in ("", "/*.py")]
    kept = (folder, f"{folder}/__init__.py", f"{folder}/answering.py", *own)
    code = assets.Asset(
        scope,
        f"{construct_id}Code",
        # from above the handlers' folder, since the function takes what they share along
        path=str(_HANDLERS.parent),
        exclude=["*", *(f"!{path}" for path in kept)],
    )
    function = lambda_.CfnFunction(
        scope,
        construct_id,
        description=description,
        code=lambda_.CfnFunction.CodeProperty(s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key),
        handler=f"{folder}.{serves}.index.handler",
        runtime=_RUNTIME,
        role=role.attr_arn,
        timeout=timeout_seconds,
        memory_size=memory_mib,
        logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=log_group.ref),
    )
    acknowledge_handler_function(function)
    acknowledge_log_group(log_group, is_new=True)
    return function
