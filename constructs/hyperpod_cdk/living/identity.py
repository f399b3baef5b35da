"""IAM roles with their permissions, as IAM has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.living.look import (
    TAGS,
    Kind,
    Look,
    Properties,
    Stated,
    reading,
    siblings,
    statements,
    taken,
    with_statements,
)
from hyperpod_cdk.templates.values import Reference, Unknown, resolve

_ROLE: Final = "AWS::IAM::Role"
_INLINE: Final = (("AWS::IAM::Policy", "Roles"), ("AWS::IAM::RolePolicy", "RoleName"))
"""Resources that put an inline policy on a role, and the property that names it."""

_MANAGED: Final = "AWS::IAM::ManagedPolicy"
_GONE: Final = "NoSuchEntity"


def _role(look: Look) -> Properties | None:
    name = {"RoleName": look.id}
    found = look.found("iam", "get_role", _GONE, **name)
    if found is None:
        return None
    attached = look.listed("iam", "list_attached_role_policies", "AttachedPolicies", _GONE, **name)
    inline = look.listed("iam", "list_role_policies", "PolicyNames", _GONE, **name)
    if attached is None or inline is None:
        return None
    with reading("iam:GetRole"):
        role = found["Role"]
        asked = [look.found("iam", "get_role_policy", _GONE, **name, PolicyName=each) for each in sorted(inline)]
        documents = [each for each in asked if each is not None]
        return {
            **taken(role, "Description", "MaxSessionDuration", "Path"),
            "PermissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
            "AssumeRolePolicyDocument": statements(role["AssumeRolePolicyDocument"]),
            "Attached": [{"PolicyArn": each["PolicyArn"]} for each in attached],
            "Inline": [
                {"Name": each["PolicyName"], "Statements": statements(each["PolicyDocument"])} for each in documents
            ],
            "Tags": role.get("Tags", []),
        }


def _of_role(stated: Stated) -> Properties:
    """Combine the permissions of a role: its own policies, and those that other resources attach to it."""
    own = ("Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags")
    attached = [*(stated.properties.get("ManagedPolicyArns") or ()), *_managed(stated)]
    if any(isinstance(each, (Reference, Unknown)) for each in attached):
        raise NotAnswered(f"{stated.resource.name} has a policy whose ARN CloudFormation does not show")
    inline = [each for each in stated.properties.get("Policies") or () if isinstance(each, Mapping)]
    inline += [each for kind, key in _INLINE for each in _naming(stated, kind, key)]
    return {
        **taken(stated.properties, *own),
        "AssumeRolePolicyDocument": statements(stated.properties.get("AssumeRolePolicyDocument")),
        "Attached": [{"PolicyArn": each} for each in attached],
        "Inline": [
            {"Name": each.get("PolicyName"), "Statements": statements(each.get("PolicyDocument"))} for each in inline
        ],
    }


def _naming(stated: Stated, kind: str, key: str) -> list[dict[str, Any]]:
    """Return the resolved resources of a type that name this role, alone or in a list."""
    if key == "RoleName":
        return siblings(stated.assembly, kind, of=(key, stated.id))
    resolved = (resolve(stated.assembly, each.stack, dict(each.properties)) for each in stated.assembly.of_type(kind))
    return [each for each in resolved if isinstance(each, dict) and stated.id in (each.get(key) or ())]


def _managed(stated: Stated) -> Iterator[str | Unknown]:
    """Yield the ARNs of the templates' policies that name this role."""
    for each in stated.assembly.of_type(_MANAGED):
        roles = resolve(stated.assembly, each.stack, each.properties.get("Roles"))
        if isinstance(roles, list) and stated.id in roles:
            yield stated.ids.get((each.stack, each.logical_id), Unknown("an ARN"))


def _managed_policy(look: Look) -> Properties | None:
    found = look.found("iam", "get_policy", _GONE, PolicyArn=look.id)
    if found is None:
        return None
    with reading("iam:GetPolicy"):
        version = found["Policy"]["DefaultVersionId"]
        document = look.found("iam", "get_policy_version", _GONE, PolicyArn=look.id, VersionId=version)
        if document is None:
            return None
        return {"PolicyDocument": statements(document["PolicyVersion"]["Document"])}


def _provider(look: Look) -> Properties | None:
    found = look.found("iam", "get_open_id_connect_provider", _GONE, OpenIDConnectProviderArn=look.id)
    if found is None:
        return None
    with reading("iam:GetOpenIDConnectProvider"):
        return {"ClientIdList": found["ClientIDList"], "Tags": found.get("Tags", [])}


KINDS: Final[Mapping[str, Kind]] = {
    _ROLE: Kind(
        properties=(
            "Description",
            "MaxSessionDuration",
            "Path",
            "PermissionsBoundary",
            "AssumeRolePolicyDocument",
            "ManagedPolicyArns",
            "Policies",
            "Tags",
        ),
        read=_role,
        state=_of_role,
        made_by_hand=re.compile(
            rf"{TAGS}|PermissionsBoundary|AssumeRolePolicyDocument\[.+\]|Attached\[.+\]|Inline\[[^\]]+\](?:\..+)?"
        ),
        is_left_surely=False,
        are_members_apart=False,
        members={"Attached": "the policy", "Inline": "the inline policy"},
    ),
    _MANAGED: Kind(
        properties=("PolicyDocument",),
        read=_managed_policy,
        state=with_statements,
        made_by_hand=re.compile(r"PolicyDocument\[.+\]"),
    ),
    "AWS::IAM::OIDCProvider": Kind(properties=("ClientIdList", "Tags"), read=_provider),
}
