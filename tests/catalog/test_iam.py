"""Names of bootstrap roles and service-linked roles."""

from __future__ import annotations

import pytest

from hyperpod_cdk.catalog import arns, iam


def test_bootstrap_names() -> None:
    assert iam.bootstrap_role_arn("cfn-exec", partition="aws-cn", account="111122223333", region="cn-north-1") == (
        "arn:aws-cn:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-111122223333-cn-north-1"
    )
    assert iam.bootstrap_bucket(account="111122223333", region="us-east-1") == (
        "cdk-hnb659fds-assets-111122223333-us-east-1"
    )


def test_service_linked_roles() -> None:
    assert {role.name: role.arn(partition="aws", account="111122223333") for role in iam.SERVICE_LINKED_ROLES} == {
        role.name: f"arn:aws:iam::111122223333:role/aws-service-role/{role.service}/{role.name}"
        for role in iam.SERVICE_LINKED_ROLES
    }
    assert [role.name for role in iam.SERVICE_LINKED_ROLES if role.is_made_anew] == ["AWSServiceRoleForFSxS3Access_*"]


_ARN = "arn:aws:iam::aws:policy/"


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [
        ("AmazonS3ReadOnlyAccess", True),
        ("service-role/AmazonEBSCSIDriverPolicy", True),
        ("a/b/AmazonS3ReadOnlyAccess", True),
        ("/AmazonS3ReadOnlyAccess", False),
        (f"{_ARN}AmazonS3ReadOnlyAccess", False),
        (f"{_ARN}service-role/AmazonEBSCSIDriverPolicy", False),
        (f"/{_ARN}AmazonS3ReadOnlyAccess", False),
        ("arnold/AmazonS3ReadOnlyAccess", True),
        ("", False),
        ("a" * 128, True),
        ("a" * 129, False),
        ("p" * 510 + "/a", True),
        ("p" * 511 + "/a", False),
        ("p" * 510 + "/" + "a" * 128, True),
    ],
)
def test_a_policy_is_named_the_same_by_a_role_and_in_the_arn_of_a_boundary(name: str, *, is_taken: bool) -> None:
    """A path has 512 characters at most with both of its slashes, a name 128 (IAM API reference, CreatePolicy)."""
    taken = iam.MANAGED_POLICY_NAME.matches(name), iam.PERMISSIONS_BOUNDARY.matches(f"{_ARN}{name}")
    assert taken == (is_taken, is_taken)


@pytest.mark.parametrize(
    ("path", "is_taken"),
    [("", True), ("p/", True), ("p" * 510 + "/", True), ("p" * 511 + "/", False), ("arn:aws:iam::aws:policy/", False)],
)
def test_a_role_has_a_path_as_long_as_a_policy_s(path: str, *, is_taken: bool) -> None:
    assert arns.ROLE_ARN.matches(f"arn:aws:iam::111122223333:role/{path}admin") is is_taken


def test_an_arn_in_place_of_a_policy_s_name() -> None:
    assert iam.MANAGED_POLICY_NAME.problem(f"{_ARN}AmazonS3ReadOnlyAccess", key="managed_policies[0]") == (
        "must be the name of a managed policy of AWS, with its path, got"
        ' "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"; correct managed_policies[0], which must look like'
        " service-role/AmazonEBSCSIDriverPolicy"
    )


def test_quotas_of_policies_in_characters() -> None:
    # IAM user guide, IAM and AWS STS quotas
    assert (iam.MOST_INLINE_CHARACTERS, iam.MOST_MANAGED_CHARACTERS) == (10_240, 6_144)
