"""The encryption section: which KMS keys encrypt the data of the environment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hyperpod_cdk.catalog.arns import KMS_KEY_ARN, key_alias_problem
from hyperpod_cdk.config.section import Check, Section

CREATE = "create"
"""The value for a key that the environment creates."""


def _key_problem(text: str, key: str) -> str | None:
    if text == CREATE or KMS_KEY_ARN.matches(text):
        return None
    if problem := key_alias_problem(text, or_else=f"{CREATE} or "):
        return problem
    return f'must be {CREATE} or {KMS_KEY_ARN.describes}, got "{text}"; set {key}: {CREATE}, or write the whole ARN'


EncryptionKey = Annotated[
    str,
    Check(
        _key_problem,
        "pattern",
        {
            "pattern": f"^(?:{CREATE}|{KMS_KEY_ARN.regex})$",
            "patternErrorMessage": f"must be {CREATE} or {KMS_KEY_ARN.describes}",
            "examples": [CREATE, KMS_KEY_ARN.example],
        },
    ),
]


class Encryption(Section):
    """Customer managed KMS keys, each ``create`` or the ARN of a key. Without, AWS's own keys are used.

    A key that is created rotates every year and is retained when its stack is deleted. A key that you name is not
    changed: its key policy must allow the service to use it, which preflight checks.
    """

    eks_secrets: EncryptionKey | None = Field(
        default=None,
        description=(
            "Key for Kubernetes secrets. Can be set only when the EKS cluster is created: a change would"
            " replace the cluster, which CloudFormation refuses because the cluster has a fixed name."
            " Default: create."
        ),
        examples=[CREATE],
    )
    node_volumes: EncryptionKey | None = Field(
        default=None,
        description=(
            "Key for both EBS volumes of every node, except those of restricted instance groups, for which HyperPod"
            " takes no key. Needs continuous provisioning. HyperPod never changes"
            " the key of an instance group: for another key, rename the group, which replaces its nodes. A"
            " group without a key should accept one, for new nodes (unsure: only an example of the developer"
            " guide shows it). Default: AWS's own key."
        ),
        examples=[CREATE],
    )
    lifecycle_bucket: EncryptionKey | None = Field(
        default=None,
        description=(
            "Key for the bucket of the lifecycle scripts. A change applies to later uploads. Default: S3's own key."
        ),
        examples=[CREATE],
    )
    file_systems: EncryptionKey | None = Field(
        default=None,
        description=(
            "Key for every file system that the environment creates. A change creates new, empty file systems"
            " and leaves the old ones with their data; CloudFormation refuses the change while a claim uses a"
            " file system, or notify watches it (file_system_full). Default: AWS's own key."
        ),
        examples=[CREATE],
    )
    logs: EncryptionKey | None = Field(
        default=None,
        description=(
            "Key for every log group that the environment creates, not for log groups that AWS creates, such"
            " as HyperPod's /aws/sagemaker/Clusters/..., which contains the logs of the lifecycle scripts. A"
            " key that is created is in the foundation stack and can be removed from it only after the other"
            " stacks were updated with 'cdk deploy --exclusively'. Default: AWS's own key."
        ),
        examples=[CREATE],
    )
    notifications: EncryptionKey | None = Field(
        default=None,
        description=(
            "Key for the SNS topic that notify creates. A change applies to later messages. Default: none,"
            " because alarms cannot publish to a topic with SNS's own key."
        ),
        examples=[CREATE],
    )


def key_arn(value: str | None) -> str | None:
    """Return the ARN of a key that is named; None for a key that is created and for AWS's own."""
    return None if value == CREATE else value
