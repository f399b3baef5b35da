"""Readable names of resource types, and of numbers of them."""

from __future__ import annotations

import re
from typing import Final

from hyperpod_cdk.catalog.sentences import plural

_NOUNS: Final = {
    "AWS::EC2::VPC": "VPC",
    "AWS::EKS::Cluster": "EKS cluster",
    "AWS::FSx::FileSystem": "file system",
    "AWS::EFS::FileSystem": "EFS file system",
    "AWS::SageMaker::Cluster": "HyperPod cluster",
    "AWS::ApiGateway::RestApi": "REST API",
    "AWS::CloudFormation::Stack": "nested stack",
    "AWS::CloudFormation::CustomResource": "custom resource",
    "AWS::EC2::DHCPOptions": "DHCP option set",
    "AWS::EC2::EIP": "Elastic IP address",
    "AWS::EC2::NatGateway": "NAT gateway",
    "AWS::EC2::NetworkAcl": "network ACL",
    "AWS::EC2::NetworkAclEntry": "network ACL entry",
    "AWS::EC2::SecurityGroupEgress": "security group rule",
    "AWS::EC2::SecurityGroupIngress": "security group rule",
    "AWS::EC2::VPCEndpoint": "VPC endpoint",
    "AWS::EC2::VPCCidrBlock": "VPC block",
    "AWS::IAM::Role": "IAM role",
    "AWS::IAM::Policy": "IAM policy",
    "AWS::IAM::ManagedPolicy": "managed IAM policy",
    "AWS::IAM::OIDCProvider": "OIDC provider",
    "AWS::EKS::Addon": "EKS add-on",
    "AWS::KMS::Key": "KMS key",
    "AWS::Lambda::Function": "Lambda function",
    "AWS::S3::Bucket": "bucket",
    "AWS::SNS::Topic": "SNS topic",
    "AWS::SQS::Queue": "SQS queue",
}
_NAMED_FIRST: Final = (
    "AWS::SageMaker::Cluster",
    "AWS::EKS::Cluster",
    "AWS::FSx::FileSystem",
    "AWS::EC2::VPC",
)


def noun(resource_type: str) -> str:
    """Return the readable name of a resource type: ``file system``, ``IAM role``, ``route table``."""
    if resource_type in _NOUNS:
        return _NOUNS[resource_type]
    if resource_type.startswith("Custom::"):
        return "custom resource"
    last = resource_type.rpartition("::")[2]
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", last)
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words) or "resource"


def count(number: int, name: str) -> str:
    """Return ``3 file systems``."""
    return f"{number} {plural(number, name, _plural_of(name))}"


def _plural_of(name: str) -> str:
    if name.endswith(("ss", "us", "as", "is", "x", "sh", "ch")):
        return f"{name}es"
    if name.endswith("s"):  # options, settings: the name is always plural
        return name
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


def place(resource_type: str) -> int:
    """Return a type's position in lists for readers: foundations of other resources and data first."""
    return _NAMED_FIRST.index(resource_type) if resource_type in _NAMED_FIRST else len(_NAMED_FIRST)


def only_if(condition: str | None, text: str) -> str:
    """Return what is said of a resource, with its condition if the template does not show whether that is true."""
    if condition is None or not text:
        return text
    return f"only if condition {condition} is true, which the template does not show: {text}"
