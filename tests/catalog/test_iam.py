"""Names of bootstrap roles and service-linked roles."""

from __future__ import annotations

from hyperpod_cdk.catalog import iam


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
