"""Identity types, seen through IAM's own operations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
READ = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
WRITE = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}]}
NODES = "arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"


def code_and_message(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call()
    prefix, _, message = str(caught.value).partition(" operation: ")
    return prefix.partition("(")[2].partition(")")[0], message


@pytest.fixture
def iam(context: Any) -> Any:
    return context.client("iam")


@pytest.fixture
def role(stack: Any) -> Any:
    return stack.create("AWS::IAM::Role", {"RoleName": "nodes", "AssumeRolePolicyDocument": TRUST})


def attached(iam: Any, role: str) -> list[str]:
    return sorted(row["PolicyArn"] for row in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"])


class TestRole:
    def test_everything_of_a_role(self, stack: Any, iam: Any, described: Callable[..., dict[str, str]]) -> None:
        made = stack.create(
            "AWS::IAM::Role",
            {
                "AssumeRolePolicyDocument": TRUST,
                "Description": "nodes",
                "MaxSessionDuration": "7200",
                "ManagedPolicyArns": [NODES],
                "Policies": [{"PolicyName": "read", "PolicyDocument": READ}],
                "Tags": [{"Key": "team", "Value": "ml"}],
            },
            "NodeRole",
        )
        assert made.physical_id.startswith("prod-NodeRole-")
        role = iam.get_role(RoleName=made.physical_id)["Role"]
        assert made.attributes == {"Arn": role["Arn"], "RoleId": role["RoleId"]}
        assert (role["MaxSessionDuration"], role["Description"]) == (7200, "nodes")
        assert described(role["Tags"]) == {"team": "ml"}
        assert attached(iam, made.physical_id) == [NODES]
        inline = iam.get_role_policy(RoleName=made.physical_id, PolicyName="read")
        assert inline["PolicyDocument"] == READ
        stack.delete(made.physical_id)
        stack.delete(made.physical_id)
        assert iam.list_roles()["Roles"] == []

    def test_update_in_place(self, stack: Any, iam: Any, role: Any) -> None:
        stack.update(
            role.physical_id,
            ManagedPolicyArns=[NODES],
            Policies=[{"PolicyName": "read", "PolicyDocument": READ}],
            Description="d",
        )
        stack.update(
            role.physical_id,
            ManagedPolicyArns=["arn:aws:iam::aws:policy/AmazonFSxFullAccess"],
            Policies=[{"PolicyName": "write", "PolicyDocument": WRITE}],
        )
        assert attached(iam, "nodes") == ["arn:aws:iam::aws:policy/AmazonFSxFullAccess"]
        assert iam.list_role_policies(RoleName="nodes")["PolicyNames"] == ["write"]
        assert iam.get_role(RoleName="nodes")["Role"]["Description"] == "d"

    def test_an_unknown_managed_policy_leaves_no_role(self, stack: Any, iam: Any) -> None:
        arn = "arn:aws:iam::aws:policy/AmazonHyperPodDoesNotExist"
        properties = {"AssumeRolePolicyDocument": TRUST, "ManagedPolicyArns": [arn]}
        assert code_and_message(lambda: stack.create("AWS::IAM::Role", properties)) == (
            "NoSuchEntity",
            f"Policy {arn} does not exist or is not attachable.",
        )
        assert iam.list_roles()["Roles"] == []

    @pytest.mark.parametrize(
        "arn",
        [
            "arn:aws:iam::aws:policy/service-role/AmazonFSxFullAccess",
            "arn:aws:iam::aws:policy/AWSLambdaBasicExecutionRole",
        ],
    )
    def test_a_managed_policy_needs_its_path(self, stack: Any, arn: str) -> None:
        properties = {"AssumeRolePolicyDocument": TRUST, "ManagedPolicyArns": [arn]}
        assert code_and_message(lambda: stack.create("AWS::IAM::Role", properties))[0] == "NoSuchEntity"

    @pytest.mark.parametrize(
        "name",
        [
            "AmazonSageMakerHyperPodTrainingOperatorAccess",
            "AmazonSageMakerSpacesRouterPolicy",
            "service-role/AWSLambdaBasicExecutionRole",
            "AmazonEKSClusterPolicy",
        ],
    )
    def test_managed_policies_that_exist(self, stack: Any, iam: Any, name: str) -> None:
        arn = f"arn:aws:iam::aws:policy/{name}"
        made = stack.create("AWS::IAM::Role", {"AssumeRolePolicyDocument": TRUST, "ManagedPolicyArns": [arn]})
        assert attached(iam, made.physical_id) == [arn]

    def test_a_boundary_must_exist(self, stack: Any) -> None:
        boundary = "arn:aws:iam::123456789012:policy/boundary"
        properties = {"AssumeRolePolicyDocument": TRUST, "PermissionsBoundary": boundary}
        assert code_and_message(lambda: stack.create("AWS::IAM::Role", properties)) == (
            "NoSuchEntity",
            f"Scope ARN: {boundary} does not exist or is not attachable.",
        )

    def test_a_boundary_that_exists(self, stack: Any, iam: Any) -> None:
        boundary = stack.create("AWS::IAM::ManagedPolicy", {"ManagedPolicyName": "boundary", "PolicyDocument": READ})
        made = stack.create(
            "AWS::IAM::Role",
            {"AssumeRolePolicyDocument": TRUST, "PermissionsBoundary": boundary.physical_id},
        )
        role = iam.get_role(RoleName=made.physical_id)["Role"]
        assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == boundary.physical_id
        stack.update(made.physical_id, PermissionsBoundary=None)
        assert "PermissionsBoundary" not in iam.get_role(RoleName=made.physical_id)["Role"]

    def test_a_policy_of_others_keeps_the_role(self, stack: Any, iam: Any, role: Any) -> None:
        iam.put_role_policy(RoleName="nodes", PolicyName="other", PolicyDocument=json.dumps(READ))
        assert code_and_message(lambda: stack.delete(role.physical_id)) == (
            "DeleteConflict",
            "Cannot delete entity, must delete policies first.",
        )

    def test_a_name_that_is_taken(self, stack: Any, role: Any) -> None:
        properties = {"RoleName": role.physical_id, "AssumeRolePolicyDocument": TRUST}
        assert code_and_message(lambda: stack.create("AWS::IAM::Role", properties)) == (
            "EntityAlreadyExists",
            "Role with name nodes already exists.",
        )


class TestPolicies:
    def test_an_inline_policy_follows_its_roles(self, stack: Any, iam: Any, role: Any) -> None:
        other = stack.create("AWS::IAM::Role", {"RoleName": "other", "AssumeRolePolicyDocument": TRUST})
        policy = stack.create(
            "AWS::IAM::Policy", {"PolicyName": "p", "PolicyDocument": READ, "Roles": [role.physical_id]}
        )
        assert policy.attributes == {"Id": policy.physical_id}
        stack.update(policy.physical_id, Roles=[other.physical_id], PolicyDocument=WRITE)
        assert iam.list_role_policies(RoleName="nodes")["PolicyNames"] == []
        assert iam.get_role_policy(RoleName="other", PolicyName="p")["PolicyDocument"] == WRITE
        stack.update(policy.physical_id, PolicyName="q")
        assert iam.list_role_policies(RoleName="other")["PolicyNames"] == ["q"]
        stack.delete(policy.physical_id)
        stack.delete(policy.physical_id)
        assert iam.list_role_policies(RoleName="other")["PolicyNames"] == []

    def test_an_inline_policy_without_principals(self, stack: Any) -> None:
        with pytest.raises(HandlerError, match=r"At least one of \[Groups,Roles,Users\] must be non-empty\."):
            stack.create("AWS::IAM::Policy", {"PolicyName": "p", "PolicyDocument": READ})

    def test_a_role_policy(self, stack: Any, iam: Any, role: Any) -> None:
        made = stack.create(
            "AWS::IAM::RolePolicy", {"RoleName": role.physical_id, "PolicyName": "p", "PolicyDocument": READ}
        )
        assert made.physical_id == "p|nodes"
        stack.update(made.physical_id, PolicyDocument=WRITE)
        assert iam.get_role_policy(RoleName="nodes", PolicyName="p")["PolicyDocument"] == WRITE
        stack.delete(made.physical_id)
        stack.delete(made.physical_id)

    def test_a_managed_policy_keeps_five_versions(self, stack: Any, iam: Any, role: Any) -> None:
        made = stack.create("AWS::IAM::ManagedPolicy", {"PolicyDocument": READ, "Roles": [role.physical_id]})
        assert made.attributes["PolicyArn"] == made.physical_id
        for number in range(6):
            document = {**READ, "Id": str(number)}
            stack.update(made.physical_id, PolicyDocument=document)
        assert len(iam.list_policy_versions(PolicyArn=made.physical_id)["Versions"]) == 5
        assert attached(iam, "nodes") == [made.physical_id]
        stack.update(made.physical_id, Roles=None)
        assert attached(iam, "nodes") == []
        stack.delete(made.physical_id)
        stack.delete(made.physical_id)
        assert iam.list_policies(Scope="Local")["Policies"] == []


def test_an_oidc_provider(stack: Any, iam: Any) -> None:
    made = stack.create(
        "AWS::IAM::OIDCProvider",
        {"Url": "https://oidc.eks.us-east-1.amazonaws.com/id/ABC", "ClientIdList": ["sts.amazonaws.com"]},
    )
    assert made.attributes == {"Arn": made.physical_id}
    stack.update(made.physical_id, ClientIdList=["sts.amazonaws.com", "other"])
    seen = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=made.physical_id)
    assert seen["ClientIDList"] == ["sts.amazonaws.com", "other"]
    stack.delete(made.physical_id)
    stack.delete(made.physical_id)
    assert iam.list_open_id_connect_providers()["OpenIDConnectProviderList"] == []


def test_an_instance_profile(stack: Any, iam: Any, role: Any) -> None:
    made = stack.create("AWS::IAM::InstanceProfile", {"Roles": [role.physical_id]})
    profile = iam.get_instance_profile(InstanceProfileName=made.physical_id)["InstanceProfile"]
    assert [row["RoleName"] for row in profile["Roles"]] == ["nodes"]
    assert made.attributes == {"Arn": profile["Arn"]}
    assert code_and_message(lambda: stack.delete(role.physical_id))[0] == "DeleteConflict"
    stack.delete(made.physical_id)
    stack.delete(made.physical_id)
    stack.delete(role.physical_id)


def test_a_service_linked_role(stack: Any, iam: Any) -> None:
    made = stack.create("AWS::IAM::ServiceLinkedRole", {"AWSServiceName": "fsx.amazonaws.com"})
    assert iam.get_role(RoleName=made.physical_id)["Role"]["Path"] == "/aws-service-role/fsx.amazonaws.com/"
    stack.delete(made.physical_id)
    stack.delete(made.physical_id)
