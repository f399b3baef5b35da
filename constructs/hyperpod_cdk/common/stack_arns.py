"""Tokens of CloudFormation: where a stack is, ARNs there, and IDs. Each is read once: reading is a call to Node.js."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal
from weakref import WeakKeyDictionary

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2

from hyperpod_cdk.config.arguments import is_token

ANY_ACCOUNT: Final = "*"


class _Here:
    """Where the stack is that uses these tokens, the same ones in every stack."""

    # not read while the module is imported: Node.js may be answering another thread
    @cached_property
    def partition(self) -> str:
        return Aws.PARTITION

    @cached_property
    def region(self) -> str:
        return Aws.REGION

    @cached_property
    def account(self) -> str:
        return Aws.ACCOUNT_ID


HERE: Final = _Here()


def ec2_arn(kind: str, resource_id: str) -> str:
    """Return the ARN of a subnet, group or VPC: that of its owner, who for a VPC that is shared is another account.

    EC2 asks for rights on the owner's ARN. What stood before is known by its ID alone, which no two accounts have.
    """
    account = HERE.account if is_token(resource_id) else ANY_ACCOUNT
    return f"arn:{HERE.partition}:ec2:{HERE.region}:{account}:{kind}/{resource_id}"


def arn_here(service: str, resource: str) -> str:
    """Return the ARN of a resource in the region and account of the stack that it is used in."""
    return f"arn:{HERE.partition}:{service}:{HERE.region}:{HERE.account}:{resource}"


def arn_of_aws(service: str, resource: str) -> str:
    """Return the ARN of what AWS keeps for every account, such as ``policy/ReadOnlyAccess`` of ``iam``."""
    return f"arn:{HERE.partition}:{service}::aws:{resource}"


_IDS: WeakKeyDictionary[ec2.ISubnet | ec2.ISecurityGroup | ec2.IVpc, str] = WeakKeyDictionary()


def id_of(
    named: ec2.ISubnet | ec2.ISecurityGroup | ec2.IVpc, attribute: Literal["subnet_id", "security_group_id", "vpc_id"]
) -> str:
    """Return an ID, which never changes; of an interface of CDK, jsii reads an attribute in two calls each time."""
    if named not in _IDS:
        _IDS[named] = getattr(named, attribute)
    return _IDS[named]
