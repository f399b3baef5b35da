"""The encryption section: whose KMS keys encrypt what the environment keeps."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hyperpod_cdk.catalog.arns import KMS_KEY_ARN
from hyperpod_cdk.config.section import Check, Section

CREATE = "create"
"""The word for a key that the environment makes."""


def _key_problem(text: str, key: str) -> str | None:
    if text == CREATE or KMS_KEY_ARN.matches(text):
        return None
    if ":alias/" in text or text.startswith("alias/"):
        return (
            f'must be {CREATE} or the ARN of the key itself, got the alias "{text}", which may be moved to another;'
            f" write what 'aws kms describe-key --key-id {text} --query KeyMetadata.Arn' shows"
        )
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
    """Customer-managed KMS keys, each ``create`` or the ARN of one; without, AWS's own keys encrypt.

    A key that is made rotates yearly and is kept when its stack goes. Of one that is named nothing is changed: its
    policy must let the service use it, which preflight compares.
    """

    eks_secrets: EncryptionKey | None = Field(
        default=None,
        description="Key of the Kubernetes secrets. Chosen when the EKS cluster is made: a change would replace the"
        " cluster, which CloudFormation refuses for its name."
        " Default: create.",
        examples=[CREATE],
    )
    node_volumes: EncryptionKey | None = Field(
        default=None,
        description="Key of both EBS volumes of every node. Needs continuous provisioning. HyperPod never changes the"
        " key of an instance group: for another key, rename the group, which makes its nodes anew. A group without one"
        " should take one, for new nodes (unsure: only an example of the developer guide shows it). Default:"
        " AWS's own key.",
        examples=[CREATE],
    )
    lifecycle_bucket: EncryptionKey | None = Field(
        default=None,
        description="Key of the bucket of lifecycle scripts. A change reaches what is uploaded from then on."
        " Default: S3's own key.",
        examples=[CREATE],
    )
    file_systems: EncryptionKey | None = Field(
        default=None,
        description="Key of every file system that the environment makes. A change makes new, empty file systems and"
        " leaves the old ones behind with their data; CloudFormation refuses it while a claim uses one, or notify"
        " watches one (file_system_full). Default: AWS's own key.",
        examples=[CREATE],
    )
    logs: EncryptionKey | None = Field(
        default=None,
        description="Key of every log group that the environment makes. Not of those that AWS makes itself: HyperPod's"
        " own /aws/sagemaker/Clusters/..., where the scripts of nodes log. A key that is made stands in the foundation"
        " stack, which can drop it only after the other stacks: 'cdk deploy --exclusively'. Default: AWS's own key.",
        examples=[CREATE],
    )
    notifications: EncryptionKey | None = Field(
        default=None,
        description="Key of the SNS topic that notify makes. A change reaches messages from then on. Default: none:"
        " SNS's own key takes no alarm.",
        examples=[CREATE],
    )


def key_arn(value: str | None) -> str | None:
    """Give the ARN of a key that is named; None for one that is made and for AWS's own."""
    return None if value == CREATE else value
