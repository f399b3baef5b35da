"""Retention, key and tags of a log group whose name a service fixes: set by calls, so that it belongs to no stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.handler_functions import handler_function, handler_role
from hyperpod_cdk.common.stack_arns import arn_here
from hyperpod_cdk.config.arguments import refuse_for

SETTINGS = "Custom::HyperPodLogSettings"
_TIMEOUT_SECONDS = 120
_ANSWER_SECONDS = 600  # the first run, Lambda's two retries and the pauses between them


RETENTION_DAYS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
"""How long CloudWatch Logs keeps events, if not for ever (CloudFormation schema AWS::Logs::LogGroup)."""


def check_retention(**days: int) -> None:
    """Refuse days that CloudWatch Logs does not take. Raises ValueError."""
    refuse_for(
        f"{key}: must be one of {', '.join(map(str, RETENTION_DAYS))} days, got {value}; set {key}={longer}"
        for key, value in days.items()
        if not cdk.Token.is_unresolved(value) and value not in RETENTION_DAYS
        for longer in [next((each for each in RETENTION_DAYS if each >= value), RETENTION_DAYS[-1])]
    )


class LogSettings(Construct):
    """The settings of a log group whose name a service chooses, such as EKS's ``/aws/eks/<cluster>/cluster``.

    A stack that owns such a group cannot be made a second time: the group is retained as data, or the service makes it
    again after CloudFormation deleted it (EKS writes late), and then "already exists". So nothing owns it. A custom
    resource makes the group where it is missing, takes it as it is where it exists, and sets retention, key and tags.
    Deleting the resource leaves the group with what it holds.

    Nothing must depend on it, and it depends on nothing: the first writer creates the group.

    ``log_group_name``: the name, known at synthesis or a token.

    ``retention_days``: one of the numbers that CloudWatch Logs takes (1, 3, 5, 7, 14, 30, 60, 90, ...).

    ``kms_key_arn``: the KMS key of what is logged from now on; its policy must let CloudWatch Logs use it.
    Default: CloudWatch Logs' own, or the key of ``keys.encrypt_log_groups``. A key that the group had before stays
    unless this resource gave it.

    ``tags``: what else the group is tagged with, such as the cost allocation tags of the stack, which reach no group
    that a service makes. Default: none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        log_group_name: str,
        retention_days: int,
        kms_key_arn: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.log_group_name = log_group_name
        self._key_arn: str | None = None
        function = self._function()
        self._resource = cdk.CfnResource(
            self,
            "Resource",
            type=SETTINGS,
            properties={
                "ServiceToken": function.attr_arn,
                "ServiceTimeout": _ANSWER_SECONDS,
                "LogGroupName": log_group_name,
                "RetentionInDays": retention_days,
                **({"Tags": dict(sorted(tags.items()))} if tags else {}),
            },
        )
        if kms_key_arn is not None:
            self.encrypt_with(kms_key_arn)

    @property
    def kms_key_arn(self) -> str | None:
        """The key that was given, None where CloudWatch Logs' own encrypts."""
        return self._key_arn

    def encrypt_with(self, key_arn: str) -> None:
        """Encrypt what is logged from now on with this key."""
        self._key_arn = key_arn
        self._resource.add_property_override("KmsKeyArn", key_arn)

    def _function(self) -> lambda_.CfnFunction:
        own = logs.CfnLogGroup(self, "HandlerLogs", retention_in_days=90)
        own.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        arn = arn_here("logs", f"log-group:{self.log_group_name}")
        role = handler_role(
            self,
            "HandlerRole",
            description=f"Sets retention, key and tags of the log group {self.log_group_name}",
            policy_name="log-settings",
            statements=[
                {
                    "Action": [
                        "logs:AssociateKmsKey",
                        "logs:CreateLogGroup",
                        "logs:DisassociateKmsKey",
                        "logs:PutRetentionPolicy",
                        "logs:TagResource",
                        "logs:UntagResource",
                    ],
                    # IAM writes a log group's ARN either way, by action
                    "Resource": [arn, f"{arn}:*"],
                },
                {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [own.attr_arn]},
            ],
        )
        spelt = f"arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:{self.log_group_name}:*"
        acknowledge(role, {RESOURCE.format(spelt): "the ARN of this one log group ends with it"})
        return handler_function(
            self,
            "Handler",
            description="HyperPod log settings: retention, key and tags of a log group that a service makes",
            serves="log_settings",
            role=role,
            log_group=own,
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=256,
        )
