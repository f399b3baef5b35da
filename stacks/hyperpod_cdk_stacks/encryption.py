"""The KMS keys of an environment, each in the stack of the resources that it encrypts."""

from __future__ import annotations

from typing import Literal

import aws_cdk as cdk

from hyperpod_cdk import EncryptionKey
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.encryption import key_arn

Purpose = Literal["eks_secrets", "node_volumes", "lifecycle_bucket", "file_systems", "logs", "notifications"]


def encryption_key(
    stack: cdk.Stack,
    environment: Environment,
    purpose: Purpose,
    *,
    removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
) -> EncryptionKey | None:
    """Create or import the key that the file requests; None if AWS owned keys encrypt.

    ``removal_policy`` is that of the encrypted resources, which cannot be read without the key.
    """
    value = getattr(environment.encryption, purpose)
    if value is None:
        return None
    construct_id = f"{purpose.title().replace('_', '')}Key"
    arn = key_arn(value)
    if arn is not None:
        return EncryptionKey(stack, construct_id, arn=arn)
    words = purpose.replace("_", " ")
    return EncryptionKey(
        stack,
        construct_id,
        alias=f"alias/{environment.name}-{words.replace(' ', '-')}",
        description=f"HyperPod environment {environment.name}: {words}",
        removal_policy=removal_policy,
    )
