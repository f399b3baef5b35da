"""What CloudFormation needs for a step, read from calls and registry, and judged by a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk_rehearsal.execution_role import Need, needs, refused

PLACE = "us-east-1:111122223333"


@pytest.fixture
def prod(project: Path) -> Environment:
    return load_environment(project / "environments" / "prod.yaml").environment


def step(resource_type: str, phase: str = "create", **given: Any) -> dict[str, Any]:
    """Return a step as the embedded AWS tells of it."""
    return {
        "stack": "prod-foundation",
        "logical_id": "Thing",
        "type": resource_type,
        "phase": phase,
        "properties": {},
        "physical_id": None,
        "attributes": {},
        "calls": [],
        **given,
    }


def call(service: str, operation: str, **parameters: Any) -> dict[str, Any]:
    """Return a call as it is recorded."""
    return {"service": service, "operation": operation, "parameters": parameters}


def found(prod: Environment, *steps: dict[str, Any]) -> dict[str, dict[str, dict[str, str]]]:
    """Return the needs of steps, without those that every environment has, as action, resource, keys."""
    usual = {(need.action, need.resource) for need in needs([], prod)}
    made: dict[str, dict[str, dict[str, str]]] = {}
    for need in needs(steps, prod):
        if (need.action, need.resource) not in usual:
            made.setdefault(need.action, {})[need.resource] = dict(need.keys)
    return made


def test_a_call_names_its_resources_by_id_name_and_arn(prod: Environment) -> None:
    created = step(
        "AWS::EC2::Subnet",
        physical_id="subnet-0123456789abcdef0",
        calls=[call("ec2", "CreateSubnet", VpcId="vpc-0123456789abcdef0", CidrBlock="10.0.0.0/24")],
    )
    assert set(found(prod, created)["ec2:CreateSubnet"]) == {
        f"arn:aws:ec2:{PLACE}:subnet/subnet-0123456789abcdef0",
        f"arn:aws:ec2:{PLACE}:vpc/vpc-0123456789abcdef0",
    }
    addon = step("AWS::EKS::Addon", calls=[call("eks", "DescribeAddon", clusterName="prod-eks", addonName="coredns")])
    assert f"arn:aws:eks:{PLACE}:addon/prod-eks/coredns/0" in found(prod, addon)["eks:DescribeAddon"]
    bucket = step("AWS::S3::Bucket", physical_id="b", calls=[call("s3", "PutBucketEncryption", Bucket="b")])
    assert set(found(prod, bucket)["s3:PutEncryptionConfiguration"]) == {"arn:aws:s3:::b"}


def test_what_the_handler_asks_for_is_needed_though_nobody_called_it(prod: Environment) -> None:
    wanted = found(prod, step("AWS::KMS::Key", physical_id="0a1b", phase="delete"))
    assert wanted == {
        "kms:DescribeKey": {f"arn:aws:kms:{PLACE}:key/0a1b": {"aws:requestedregion": "us-east-1"}},
        "kms:ScheduleKeyDeletion": {f"arn:aws:kms:{PLACE}:key/0a1b": {"aws:requestedregion": "us-east-1"}},
    }


def test_what_is_tagged_is_of_the_type_that_is_made(prod: Environment) -> None:
    entry = step("AWS::EKS::AccessEntry", properties={"ClusterName": "theirs", "PrincipalArn": "arn:aws:iam::1:role/r"})
    assert not [each for each in found(prod, entry)["eks:TagResource"] if "podidentityassociation" in each]


def test_a_role_is_passed_to_whom_it_trusts(prod: Environment) -> None:
    arn = "arn:aws:iam::111122223333:role/prod-foundation-Role"
    trust = {"Statement": [{"Principal": {"Service": "lambda.amazonaws.com"}}]}
    role = step(
        "AWS::IAM::Role",
        physical_id="prod-foundation-Role",
        attributes={"Arn": arn},
        properties={"AssumeRolePolicyDocument": trust},
    )
    function = step("AWS::Lambda::Function", properties={"Role": arn}, physical_id="prod-foundation-F")
    assert found(prod, role, function)["iam:PassRole"] == {
        arn: {"aws:requestedregion": "us-east-1", "iam:passedtoservice": "lambda.amazonaws.com"}
    }


def test_what_carries_cloudformations_tags_is_known_by_them(prod: Environment) -> None:
    vpc = step("AWS::EC2::VPC", physical_id="vpc-0123456789abcdef0")
    gone = step("AWS::EC2::VPC", "delete", physical_id="vpc-0123456789abcdef0")
    keys = found(prod, vpc, gone)["ec2:DeleteVpc"][f"arn:aws:ec2:{PLACE}:vpc/vpc-0123456789abcdef0"]
    assert keys["aws:resourcetag/aws:cloudformation:stack-name"] == "prod-foundation"


def test_of_a_custom_resource_the_function_is_invoked_and_nothing_else(prod: Environment) -> None:
    token = f"arn:aws:lambda:{PLACE}:function:prod-foundation-F"
    assert set(found(prod, step("Custom::Thing", properties={"ServiceToken": token}))) == {"lambda:InvokeFunction"}


def test_a_linked_bucket_is_looked_into(prod: Environment) -> None:
    # FSx for Lustre user guide, "Unable to validate access to an S3 bucket when creating a DRA"
    link = step("AWS::FSx::DataRepositoryAssociation", properties={"DataRepositoryPath": "s3://sets/a/"})
    wanted = found(prod, link)
    assert "arn:aws:s3:::sets" in wanted["s3:ListBucket"]
    assert set(wanted["s3:GetObject"]) == set(wanted["s3:PutObject"]) == {"arn:aws:s3:::sets/a/example"}


def test_what_a_file_system_asks_of_ec2_is_needed(prod: Environment) -> None:
    # managed policy AmazonFSxFullAccess v11, statement DescribeEC2VpcResources
    assert "ec2:GetSecurityGroupsForVpc" in found(prod, step("AWS::FSx::FileSystem"))


def test_a_need_is_refused_unless_action_resource_and_conditions_fit() -> None:
    need = Need(action="eks:DeleteCluster", resource=f"arn:aws:eks:{PLACE}:cluster/prod-eks", origin="a test")
    allow = {"Effect": "Allow", "Action": "eks:DeleteCluster", "Resource": f"arn:aws:eks:{PLACE}:cluster/prod-*"}
    assert refused([allow], [need]) == []
    assert refused([], [need]) == [need]
    assert refused([{**allow, "Resource": f"arn:aws:eks:{PLACE}:cluster/dev-*"}], [need]) == [need]
    assert refused([{**allow, "Action": "eks:CreateCluster"}], [need]) == [need]
    assert refused([{**allow, "Condition": {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}}], [need]) == [need]
    assert str(need) == f"eks:DeleteCluster on arn:aws:eks:{PLACE}:cluster/prod-eks for a test"


def test_of_an_unknown_resource_it_is_enough_that_the_action_is_allowed_somewhere() -> None:
    need = Need(action="iam:PassRole", resource="", origin="a test")
    assert refused([{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:aws:iam::1:role/x"}], [need]) == []
    assert refused([{"Effect": "Allow", "Action": "iam:GetRole", "Resource": "*"}], [need]) == [need]
