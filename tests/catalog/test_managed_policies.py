"""Managed policies that a person must review: known policies of AWS by name, and all unknown ones."""

from __future__ import annotations

from hyperpod_cdk.catalog.managed_policies import is_grave, tagging
from tests.support.tables import row_by_row


@row_by_row(
    "policy, grave",
    [
        ("arn:aws:iam::aws:policy/AdministratorAccess", True),
        ("arn:aws:iam::aws:policy/AmazonEKSClusterPolicy", False),
        ("arn:aws-cn:iam::aws:policy/AmazonEKSClusterPolicy", False),
        ("arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy", False),
        # the name alone, as a template may hold it
        ("AdministratorAccess", True),
        ("AmazonEKSClusterPolicy", False),
        # an account's own policy may be called as AWS's is
        ("arn:aws:iam::111122223333:policy/AmazonEKSClusterPolicy", True),
        ("arn:aws:iam::111122223333:policy/AdministratorAccess", True),
        ("arn:aws:iam::aws:policy/MoonAccess", True),
        ("MoonAccess", True),
        ("", True),
    ],
)
def test_what_is_not_known_to_be_harmless_is_grave(policy: str, *, grave: bool) -> None:
    assert is_grave(policy) is grave


@row_by_row(
    "policy, services",
    [
        ("arn:aws:iam::aws:policy/AWSApplicationDiscoveryServiceFullAccess", {"discovery", "mgh"}),
        ("arn:aws-cn:iam::aws:policy/AWSAppSyncSchemaAuthor", {"appsync"}),
        ("AWSAppSyncSchemaAuthor", {"appsync"}),
        ("arn:aws:iam::111122223333:policy/AWSAppSyncSchemaAuthor", set()),
        ("arn:aws:iam::aws:policy/MoonAccess", set()),
        ("", set()),
    ],
)
def test_services_whose_tags_a_policy_of_aws_changes(policy: str, services: set[str]) -> None:
    assert tagging(policy) == services
