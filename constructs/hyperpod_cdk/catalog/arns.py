"""Rules for ARNs, roles and KMS keys: their form, and the account, partition and region that a resource must have.

Each rule gives the sentence of the error, without the name of the value, or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from hyperpod_cdk.catalog.regions import REGION_REGEX
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.catalog.sentences import Example, Sentence, Setting

KMS_KEY_ARN = Pattern(
    regex=(
        rf"arn:aws[a-z-]*:kms:{REGION_REGEX}:[0-9]{{12}}:key/"
        r"(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    ),
    maximum=2048,
    describes="the ARN of a KMS key, with :key/ in it",
    refers=True,
    example="arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    source="KMS developer guide, key ARN and multi-Region keys, 2026-11",
)
# a path has 512 characters at most with both of its slashes, of which the first is not written here; CreatePolicy's
# pattern allows no colon and its text all of ASCII, so that only what begins like an ARN is refused
IAM_PATH: Final = r"(?:(?!/|arn:)[\x21-\x7e]{1,510}/)?"
"""The path of a role or a policy, in front of its name (IAM API reference, CreateRole and CreatePolicy, 2026-11)."""

ROLE_ARN = Pattern(
    regex=rf"arn:aws[a-z-]*:iam::[0-9]{{12}}:role/{IAM_PATH}[A-Za-z0-9_+=,.@-]{{1,64}}",
    minimum=20,
    maximum=2048,
    describes="the ARN of an IAM role",
    refers=True,
    example="arn:aws:iam::111122223333:role/platform-admin",
)
KEY_ALIAS = Pattern(
    regex=r"alias/(?!aws/)[a-zA-Z0-9:/_-]+",
    minimum=len("alias/") + 1,
    maximum=256,
    describes='alias/ and letters, digits, ":", "/", "_" and "-", 256 characters at most, and not alias/aws/',
    example="alias/training",
    source="cfn AWS::KMS::Alias AliasName, whose description keeps alias/aws/ for AWS",
)
KEY_DESCRIPTION = Pattern(
    regex=r"[\s\S]*",
    minimum=0,
    maximum=8192,
    describes="at most 8192 characters",
    example="file systems of the training cluster",
    source="cfn AWS::KMS::Key Description",
)
STACK_NAME = Pattern(
    regex=r"[a-zA-Z][-a-zA-Z0-9]*",
    maximum=128,
    describes="the name of a stack: 1 to 128 letters, digits and hyphens, beginning with a letter",
    refers=True,
    example="prod-foundation",
    source="CloudFormation API reference, CreateStack, 2026-11",
)
ACCOUNT_ID_LENGTH = 12
ACCOUNT_ID = Pattern(
    regex=r"[0-9]{12}",
    minimum=ACCOUNT_ID_LENGTH,
    maximum=ACCOUNT_ID_LENGTH,
    describes="the 12 digits of an AWS account",
    in_files=", in quotes",
    refers=True,
    example='"111122223333"',
)
_ISSUER = r"oidc[.-]eks[.][a-z0-9-]+[.][a-z0-9.-]+/id/[0-9A-Z]+"
OIDC_ISSUER = Pattern(
    regex=_ISSUER,
    maximum=255,
    describes="the OIDC issuer of an EKS cluster, without https://",
    refers=True,
    example="oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF",
    source="EKS user guide, IAM OIDC provider of a cluster; IAM API reference, CreateOpenIDConnectProvider: 255",
)
OIDC_PROVIDER_ARN = Pattern(
    regex=rf"arn:aws[a-z-]*:iam::[0-9]{{12}}:oidc-provider/{_ISSUER}",
    minimum=20,
    maximum=2048,
    describes="the ARN of an EKS cluster's OIDC provider in IAM",
    refers=True,
    example=(
        "arn:aws:iam::111122223333:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
    ),
)

LOGS_KEY_ACTIONS: Final = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey")
"""What CloudWatch Logs does with a key (CloudWatch Logs user guide, "Encrypt log data", 2026)."""

TOPIC_KEY_ACTIONS: Final = ("kms:Decrypt", "kms:GenerateDataKey*")
"""What publishes to a topic does with the topic's key (SNS developer guide, "Managing Amazon SNS encryption keys and
costs", compatibility between event sources and encrypted topics, 2026)."""

VOLUME_KEY_ACTIONS: Final = ("kms:CreateGrant", "kms:DescribeKey")
"""What the role of a node has to be allowed on the key of its volumes (SageMaker developer guide, "Customer managed AWS
KMS key encryption for SageMaker HyperPod", 2026). The role of HyperPod's Karpenter needs the same."""

OBJECT_KEY_ACTIONS: Final = ("kms:Decrypt", "kms:GenerateDataKey")
"""What reads and writes objects of a bucket does with the bucket's key (S3 user guide, "Using server-side encryption
with AWS KMS keys", 2026)."""

_CALLS: Final = {"kms:ReEncrypt*": "kms:ReEncryptTo", "kms:GenerateDataKey*": "kms:GenerateDataKey"}


def key_calls(actions: Iterable[str]) -> tuple[str, ...]:
    """Return actions of a key as calls, which a policy allows or not: of a family, the one that every user makes."""
    return tuple(_CALLS.get(action, action) for action in actions)


def key_alias_problem(text: str, *, or_else: str = "") -> str | None:
    """Say that ``text`` is the alias of a KMS key where the key itself is asked for, or ``or_else``; else give None."""
    if not (":alias/" in text or text.startswith("alias/")):
        return None
    return (
        f'must be {or_else}the ARN of the key itself, got the alias "{text}", which can be moved to another key;'
        f" write what 'aws kms describe-key --key-id {text} --query KeyMetadata.Arn' shows"
    )


_ARN: Final = re.compile(r"arn:" + 4 * r"((?:\$\{[^}]*\}|[^:])*):" + "(.*)", re.DOTALL)
"""Matches the parts of an ARN, also in a template, where ``${AWS::Region}`` is a part."""


class Arn(NamedTuple):
    """The parts of an ARN (IAM user guide, "Amazon Resource Names"); ``resource`` is everything after the account."""

    partition: str = ""
    service: str = ""
    region: str = ""
    account: str = ""
    resource: str = ""

    @property
    def name(self) -> str:
        """The resource's name: the part after its type and path."""
        return self.resource.rpartition("/")[2].rpartition(":")[2]


def arn_parts(text: str) -> Arn:
    """Return the parts of an ARN; all are empty if the text is not an ARN."""
    found = _ARN.fullmatch(text)
    return Arn(*found.groups()) if found else Arn()


def key_reach_problem(arn: str, *, partition: str, region: str) -> str | None:
    """Say that a KMS key is in another region than what it encrypts, which KMS does not support."""
    of = arn_parts(arn)
    if (of.partition, of.region) == (partition, region):
        return None
    fix = (
        f"name the replica, arn:{partition}:kms:{region}:{of.account}:{of.resource}, after it is created"
        if of.resource.startswith("key/mrk-") and of.partition == partition
        else f"name a key of {region}"
    )
    return f"must be a key of {region}, the region of what it encrypts, got {arn}; {fix}"


def bucket_key_problem(arn: str, *, region: str) -> str | None:
    """Say that a KMS key cannot encrypt objects of a bucket in ``region``."""
    if arn_parts(arn).region == region:
        return None
    return f"must be a key in {region}, where the bucket is, got {arn}; name the bucket's key"


def partition_problem(arn: str, *, partition: str, region: str) -> str | None:
    """Say that ``arn`` is in another partition than ``region``, whose roles cannot access it."""
    got = arn_parts(arn).partition
    if got == partition:
        return None
    return f"must begin with arn:{partition}:, the partition of {region}, got arn:{got}:; write arn:{partition}:"


def role_partition_problem(arn: str, *, partition: str, region: str) -> str | None:
    """Say that an IAM role is in another partition than the cluster that it needs access to."""
    got = arn_parts(arn).partition
    if got == partition:
        return None
    return (
        f"must be a role of the partition {partition}, that of {region}, got {arn}; write"
        f" {arn.replace(f':{got}:', f':{partition}:', 1)}"
    )


def role_arn_problem(arn: str, key: str) -> str | None:
    """Say why ``arn`` names no IAM role, or return None; a session's ARN is answered with its role's."""
    if ROLE_ARN.matches(arn):
        return None
    of = arn_parts(arn)
    session = of.resource.split("/") if of.service == "sts" else []
    if len(session) >= 2 and session[0] == "assumed-role":
        role = f"arn:{of.partition}:iam::{of.account}:role/{session[1]}"
        return Sentence(
            f"must be the ARN of an IAM role, got the session {arn}, which ends with its login; ",
            Setting(key, role),
            " (with the role's path, if it has one)",
        )
    return Sentence(
        f'must be the ARN of an IAM role, got "{arn}"; name the role that people assume, such as ',
        Example(ROLE_ARN.example),
    )


def home_problem(what: str, arn: str, *, partition: str, account: str, key: str) -> str | None:
    """Say that ``what`` (a role, an OIDC provider) is of another account or partition than the cluster's."""
    of = arn_parts(arn)
    if (of.partition, of.account) == (partition, account):
        return None
    return Sentence(
        f"must be {what} of account {account} in the partition {partition}, got {arn}; ",
        Setting(key, f"arn:{partition}:iam::{account}:{of.resource}"),
    )


def issuer_problem(arn: str, *, region: str, key: str) -> str | None:
    """Say that an OIDC provider is that of a cluster in another region."""
    if f".{region}." in arn_parts(arn).resource:
        return None
    return (
        f"must be the OIDC provider of a cluster in {region}, got {arn}; set {key} to the one that"
        " 'aws iam list-open-id-connect-providers' shows for the cluster's issuer"
    )


def workspace_home_problem(arn: str, *, partition: str, account: str, otherwise: str) -> str | None:
    """Say that a workspace is of another account or partition; ``otherwise`` says how to have one created."""
    of = arn_parts(arn)
    if (of.partition, of.account) == (partition, account):
        return None
    return (
        f"must be a workspace of account {account} in the partition {partition}, got {arn}; name one of the account, or"
        f" {otherwise}"
    )


def workspace_region_problem(
    arn: str, *, region: str, otherwise: str, why: str = "for whose endpoint the collector signs"
) -> str | None:
    """Say that a workspace is in another region, where resources created here cannot use it."""
    if arn_parts(arn).region == region:
        return None
    return f"must be a workspace in {region}, {why}, got {arn}; name one of the region, or {otherwise}"
