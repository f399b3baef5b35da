"""Identities that sign in from outside of policies: each way, at and next to its limit.

The expectations are those of the IAM user guide (identity providers, access keys), of IAM Roles Anywhere, IAM Identity
Center and Cognito identity pools.
"""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.review.rights.identities import sign_ins
from hyperpod_cdk.review.rights.views import views
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack
from hyperpod_cdk.templates.difference import compare
from tests.support.tables import row_by_row

ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
CASES: list[tuple[str, dict[str, Any], list[tuple[str, bool | str]]]] = [
    ("IAM::AccessKey", {"UserName": "bob"}, [("user bob gets an access key", "bob")]),
    ("IAM::AccessKey", {"UserName": "bob", "Status": "Active"}, [("user bob gets an access key", "bob")]),
    ("IAM::AccessKey", {"UserName": "bob", "Status": "Inactive"}, []),
    (
        "IAM::User",
        {"UserName": "bob", "LoginProfile": {"Password": "x"}},
        [("user It (s) gets a password for the console", "${s/It}")],
    ),
    ("IAM::User", {"UserName": "bob"}, []),
    (
        "IAM::OIDCProvider",
        {"Url": "https://x", "ClientIdList": ["a"]},
        [
            ("identity provider It (s) has Url https://x", True),
            ("identity provider It (s) has ClientIdList a", True),
        ],
    ),
    ("IAM::OIDCProvider", {}, []),
    (
        "IAM::SAMLProvider",
        {"SamlMetadataDocument": "<" + "a" * 79},
        [("SAML provider It (s) has SamlMetadataDocument <" + "a" * 79, True)],
    ),
    (
        "IAM::SAMLProvider",
        {"SamlMetadataDocument": "<" + "a" * 80},
        [("SAML provider It (s) has another SamlMetadataDocument", True)],
    ),
    (
        "SSO::PermissionSet",
        {"ManagedPolicies": [ADMINISTRATOR]},
        [("anyone who is assigned permission set It (s) has policy AdministratorAccess", True)],
    ),
    (
        "SSO::PermissionSet",
        {"ManagedPolicies": ["arn:aws:iam::aws:policy/job-function/ViewOnlyAccess"]},
        [
            ("anyone who is assigned permission set It (s) has policy ViewOnlyAccess", False),
        ],
    ),
    (
        "SSO::PermissionSet",
        {"CustomerManagedPolicyReferences": [{"Name": "ours"}]},
        [
            ("anyone who is assigned permission set It (s) has policy ours (not in the templates)", True),
        ],
    ),
    (
        "SSO::Assignment",
        {"PrincipalType": "USER", "PrincipalId": "u", "PermissionSetArn": "p", "TargetId": "1"},
        [
            ("user u of IAM Identity Center signs in to account 1 with p", True),
        ],
    ),
    (
        "RolesAnywhere::TrustAnchor",
        {"Enabled": True, "Source": {"SourceType": "AWS_ACM_PCA"}},
        [
            ("holders of certificates get roles through IAM Roles Anywhere by trust anchor It (s)", True),
        ],
    ),
    (
        "RolesAnywhere::Profile",
        {"RoleArns": ["arn:aws:iam::111122223333:role/r"]},
        [
            ("anyone who signs in through profile It (s) acts as role r", "arn:aws:iam::111122223333:role/r"),
        ],
    ),
    ("RolesAnywhere::Profile", {"RoleArns": []}, []),
    (
        "Cognito::IdentityPool",
        {"AllowUnauthenticatedIdentities": True},
        [("anyone, without signing in, get a role by identity pool It (s)", True)],
    ),
    (
        "Cognito::IdentityPool",
        {"AllowUnauthenticatedIdentities": "true"},
        [("anyone, without signing in, get a role by identity pool It (s)", True)],
    ),
    ("Cognito::IdentityPool", {"AllowUnauthenticatedIdentities": False}, []),
    (
        "Cognito::IdentityPoolRoleAttachment",
        {"Roles": {"authenticated": "arn:aws:iam::111122223333:role/r"}},
        [
            (
                "anyone who signs in through identity pool role attachment It (s) acts as role r",
                "arn:aws:iam::111122223333:role/r",
            ),
        ],
    ),
    ("SQS::Queue", {}, []),
]


@row_by_row("kind, properties, expected", CASES)
def test_who_signs_in(kind: str, properties: dict[str, Any], expected: list[tuple[str, bool | str]]) -> None:
    resources = {"It": {"Type": f"AWS::{kind}", "Properties": properties}}
    stack = Stack(name="s", template={"Resources": resources}, account="111122223333", region="us-east-1")
    head = Assembly(environment="", stacks=(stack,))
    _, view = views(EMPTY, head, compare(EMPTY, head))
    found = list(sign_ins(view))
    # a way in is grave by itself, or by whom it leads to
    told = [(each.sentence, each.identities[0][1] if each.identities else each.is_grave) for each in found]
    assert told == expected
    assert len({each.key for each in found}) == len(found)
