"""IAM roles: whether a role exists, who can assume it, and which actions its policies allow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.account import account_of, existing_roles
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.published.policies import (
    is_action,
    like,
    listed,
    speaks_of_action,
    speaks_of_resource,
)

Statement = Mapping[str, Any]

LISTED_ROLE_ID = "AROALISTEDINACCOUNT1"
"""RoleId of a role that only the account file names: of its policies nothing is known."""

AWS_MANAGED_STATEMENTS: Mapping[str, tuple[Statement, ...]] = {
    "AmazonSageMakerClusterInstanceRolePolicy": (
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
            "Resource": "arn:*:logs:*:*:log-group:/aws/sagemaker/Clusters/*",
        },
        {"Effect": "Allow", "Action": "cloudwatch:PutMetricData", "Resource": "*"},
        {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetObject"], "Resource": "arn:*:s3:::sagemaker-*"},
        {
            "Effect": "Allow",
            "Action": [
                "ssmmessages:CreateControlChannel",
                "ssmmessages:CreateDataChannel",
                "ssmmessages:OpenControlChannel",
                "ssmmessages:OpenDataChannel",
            ],
            "Resource": "*",
        },
    ),
    "AmazonEKS_CNI_Policy": (
        {
            "Effect": "Allow",
            "Action": [
                "ec2:AssignPrivateIpAddresses",
                "ec2:AttachNetworkInterface",
                "ec2:CreateNetworkInterface",
                "ec2:DeleteNetworkInterface",
                "ec2:DescribeInstances",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSubnets",
                "ec2:DescribeTags",
                "ec2:DetachNetworkInterface",
                "ec2:ModifyNetworkInterfaceAttribute",
                "ec2:UnassignPrivateIpAddresses",
            ],
            "Resource": "*",
        },
        {"Effect": "Allow", "Action": "ec2:CreateTags", "Resource": "arn:*:ec2:*:*:network-interface/*"},
    ),
    "AmazonEC2ContainerRegistryReadOnly": (
        {
            "Effect": "Allow",
            "Action": [
                "ecr:BatchCheckLayerAvailability",
                "ecr:BatchGetImage",
                "ecr:GetAuthorizationToken",
                "ecr:GetDownloadUrlForLayer",
            ],
            "Resource": "*",
        },
    ),
}
"""The AWS managed policies that node roles use, as far as the checks ask about them; moto has no documents of them."""


@dataclass(frozen=True)
class Role:
    """A role with everything that its policies say; only named statements are read, conditions count as met."""

    arn: str
    trust: Mapping[str, Any]
    statements: tuple[Statement, ...]
    boundary: tuple[Statement, ...] | None = None

    def trusts(self, service: str, *actions: str) -> bool:
        """Whether a service principal (sagemaker.amazonaws.com) may do every one of these sts actions."""
        wanted = actions or ("sts:AssumeRole",)
        return all(any(_trust_allows(item, service, action) for item in self._trust_items) for action in wanted)

    def allows(self, action: str, resource: str = "*") -> bool:
        """Whether the policies, and the permissions boundary where there is one, allow an action on a resource.

        `"*"` for a resource asks whether the action is allowed on anything at all.
        """
        allowed = _allows(self.statements, action, resource)
        return allowed and (self.boundary is None or _allows(self.boundary, action, resource))

    @cached_property
    def _trust_items(self) -> list[Statement]:
        return listed(self.trust.get("Statement"))


def role_exists(context: Context, role_arn: str) -> bool:
    """Whether a role of this account exists; a role of another account counts as existing."""
    if not _is_ours(context, role_arn) or _is_listed(context, role_arn):
        return True
    found = _get_role(context, role_arn)
    # IAM's ARN has the role's path, and no other ARN is the role's
    return found is not None and found["Arn"] == role_arn


def find_role(context: Context, role_arn: str) -> Role | None:
    """The role with its policies; None where this account has no such role."""
    found = _get_role(context, role_arn) if _is_ours(context, role_arn) else None
    if found is None:
        return None
    boundary = found.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
    return Role(
        arn=role_arn,
        trust=_document(found["AssumeRolePolicyDocument"]),
        statements=tuple(_role_statements(context, found["RoleName"])),
        boundary=_boundary(context, boundary),
    )


def can_be_assumed_by(context: Context, role_arn: str, service: str, *actions: str) -> bool:
    """Whether a role exists and trusts a service; a role that only the account file names is trusted to be right."""
    role = find_role(context, role_arn)
    if role is None:
        return _is_listed(context, role_arn) or not _is_ours(context, role_arn)
    return role.trusts(service, *actions)


def can_be_assumed_by_web_identity(context: Context, role_arn: str, issuer: str, subject: str) -> bool:
    """Whether a role exists and trusts an OIDC provider of the account, known to IAM, for this subject."""
    role = find_role(context, role_arn) if role_arn else None
    if role is None:
        return bool(role_arn) and (_is_listed(context, role_arn) or not _is_ours(context, role_arn))
    iam = context.client("iam")
    known = {row["Arn"] for row in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]}
    known |= {cluster.oidc_provider_arn for cluster in account_of(context).existing.eks_clusters}
    for item in listed(role.trust.get("Statement")):
        federated = (item.get("Principal") or {}).get("Federated", "")
        allowed = "sts:AssumeRoleWithWebIdentity" in listed(item.get("Action"))
        if not allowed or not federated.endswith(f":oidc-provider/{issuer}") or federated not in known:
            continue
        conditions = {key: value for block in (item.get("Condition") or {}).values() for key, value in block.items()}
        patterns = listed(conditions.get(f"{issuer}:sub")) or ["*"]
        if any(like(pattern, subject) for pattern in patterns):
            return True
    return False


def principal_exists(context: Context, principal_arn: str) -> bool:
    """Whether a role or user exists, as far as this account can tell."""
    resource = principal_arn.split(":", 5)[-1]
    if resource.startswith("user/") and _is_ours(context, principal_arn):
        try:
            context.client("iam").get_user(UserName=resource.rsplit("/", 1)[-1])
        except ClientError:
            return False
        return True
    return role_exists(context, principal_arn)


def _is_ours(context: Context, arn: str) -> bool:
    parts = arn.split(":")
    return len(parts) > 4 and parts[4] == context.account


def _is_listed(context: Context, role_arn: str) -> bool:
    path, _, name = role_arn.partition(":role")[2].rpartition("/")
    return _is_ours(context, role_arn) and existing_roles(context).get(name) == f"{path}/"


def _get_role(context: Context, role_arn: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = context.client("iam").get_role(RoleName=role_arn.rsplit("/", 1)[-1])["Role"]
    except ClientError:
        return None
    return None if found["RoleId"] == LISTED_ROLE_ID else found


def _role_statements(context: Context, role_name: str) -> Iterable[Statement]:
    iam = context.client("iam")
    for name in iam.list_role_policies(RoleName=role_name)["PolicyNames"]:
        policy = iam.get_role_policy(RoleName=role_name, PolicyName=name)["PolicyDocument"]
        yield from listed(_document(policy).get("Statement"))
    for attached in iam.list_attached_role_policies(RoleName=role_name)["AttachedPolicies"]:
        yield from _managed_statements(context, attached["PolicyArn"])


def _managed_statements(context: Context, policy_arn: str) -> Iterable[Statement]:
    name = policy_arn.rsplit("/", 1)[-1]
    if policy_arn.split(":")[4] == "aws" and name in AWS_MANAGED_STATEMENTS:
        return AWS_MANAGED_STATEMENTS[name]
    iam = context.client("iam")
    try:
        version = iam.get_policy(PolicyArn=policy_arn)["Policy"]["DefaultVersionId"]
        document = iam.get_policy_version(PolicyArn=policy_arn, VersionId=version)["PolicyVersion"]["Document"]
    except ClientError:
        return ()
    return listed(_document(document).get("Statement"))


def _boundary(context: Context, policy_arn: str | None) -> tuple[Statement, ...] | None:
    # a boundary whose policy stands outside the rehearsal cannot be judged, so it does not narrow anything
    return (tuple(_managed_statements(context, policy_arn)) or None) if policy_arn else None


def _document(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        loaded: Mapping[str, Any] = json.loads(unquote(value))
        return loaded
    found: Mapping[str, Any] = value
    return found


def _trust_allows(statement: Statement, service: str, action: str) -> bool:
    principal = statement.get("Principal", {})
    services = ["*"] if principal == "*" else listed(principal.get("Service"))
    if statement.get("Effect") != "Allow" or not {service, "*"} & set(services):
        return False
    return any(is_action(str(pattern), action) for pattern in listed(statement.get("Action")))


def _allows(statements: Iterable[Statement], action: str, resource: str) -> bool:
    allowed = False
    for statement in statements:
        if not _applies(statement, action, resource):
            continue
        if statement.get("Effect") == "Deny":
            # a conditional refusal (TLS only, this network only) does not bind the node that meets it
            if not statement.get("Condition") and "*" in listed(statement.get("Resource")):
                return False
            continue
        allowed = True
    return allowed


def _applies(statement: Statement, action: str, resource: str) -> bool:
    return speaks_of_action(statement, action) and (resource == "*" or speaks_of_resource(statement, resource))
