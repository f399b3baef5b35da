"""ARNs in the partition, region and account of a stack, which are tokens of CloudFormation."""

from __future__ import annotations

from functools import cache
from typing import Final

from aws_cdk import Aws, Token

ANY_ACCOUNT: Final = "*"


def ec2_arn(kind: str, resource_id: str) -> str:
    """Return the ARN of a subnet, group or VPC: that of its owner, who for a VPC that is shared is another account.

    EC2 asks for rights on the owner's ARN. What stood before is known by its ID alone, which no two accounts have.
    """
    account = Aws.ACCOUNT_ID if Token.is_unresolved(resource_id) else ANY_ACCOUNT
    return f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:{account}:{kind}/{resource_id}"


def arn_here(service: str, resource: str) -> str:
    """Return the ARN of a resource in the region and account of the stack that it is used in."""
    return f"arn:{_partition()}:{service}:{_place()}:{resource}"


def arn_of_aws(service: str, resource: str) -> str:
    """Return the ARN of what AWS keeps for every account, such as ``policy/ReadOnlyAccess`` of ``iam``."""
    return f"arn:{_partition()}:{service}::aws:{resource}"


# each of these tokens is a call into Node.js, and never another
@cache
def _partition() -> str:
    return Aws.PARTITION


@cache
def _place() -> str:
    return f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
