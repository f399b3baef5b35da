"""The policy of CloudFormation's execution role, computed from the real templates and from small ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.bootstrap_policy import (
    MOST_CHARACTERS,
    MOST_POLICIES,
    NO_RESOURCE,
    Statement,
    policies,
    statements,
    unknown_types,
)
from hyperpod_cdk.catalog.deployer_actions import LEFT_OUT, LIMITED_TO
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.templates.assembly import Assembly, Stack, read_assembly
from tests.support.assembly import ENVIRONMENTS, Synthesized, shipped

IAM = "arn:aws:iam::111122223333"


@pytest.fixture(scope="session")
def written(synthesized: Synthesized, assemblies: Path) -> tuple[Statement, ...]:
    """The statements of each environment in turn."""
    environment = synthesized.environment
    made = policies(read_assembly(assemblies / environment.name, environment.name), environment)
    assert 1 <= len(made) <= MOST_POLICIES
    assert len({policy.name for policy in made}) == len(made)
    assert [policy.name for policy in made if policy.characters > MOST_CHARACTERS] == []
    return tuple(statement for policy in made for statement in policy.statements)


def test_every_statement_has_a_name_a_reason_actions_and_resources(written: tuple[Statement, ...]) -> None:
    assert len({each.sid for each in written}) == len(written)
    for each in written:
        assert each.sid.isalnum(), each
        assert len(each.why.split()) > 3, each
        assert each.actions, each
        assert each.resources, each
        assert all(arn == "*" or arn.count(":") >= 5 for arn in each.resources), each
        assert [action for action in each.actions if "*" in action and each.sid != "DataRepositories"] == []


def test_all_resources_are_meant_only_where_aws_knows_none(written: tuple[Statement, ...]) -> None:
    for each in written:
        if "*" in each.resources:
            assert each.resources == ("*",)
            assert [action for action in each.actions if LIMITED_TO[action]] == []
            assert each.why.startswith(NO_RESOURCE)
        elif each.sid != "DataRepositories":
            assert [action for action in each.actions if not LIMITED_TO[action]] == []


def test_every_named_resource_is_the_environments(written: tuple[Statement, ...], synthesized: Synthesized) -> None:
    environment = synthesized.environment
    for each in written:
        for arn in each.resources:
            if arn != "*":
                _, partition, service, region, account, _ = arn.split(":", 5)
                assert partition == environment.partition, arn
                assert region in {environment.region, ""}, arn
                existing = environment.network.existing
                # a VPC that stood before may be of another account, which shares it
                joined = existing is not None and arn.endswith(f":ec2:{region}:*:vpc/{existing.vpc_id}")
                assert account in {environment.account, ""} or joined or arn.endswith(":aws:prefix-list/*"), arn
                assert account or service == "s3", arn


def test_what_it_says_of_prod(assemblies: Path) -> None:
    environment = shipped(assemblies, "prod").environment
    found = {each.sid: each for each in statements(read_assembly(assemblies / "prod", "prod"), environment)}
    assert found["IamPassRole"].document() == {
        "Sid": "IamPassRole",
        "Effect": "Allow",
        "Action": ["iam:PassRole"],
        "Resource": [f"{IAM}:role/prod-*"],
        "Condition": {
            "StringEquals": {
                "iam:PassedToService": [
                    "eks.amazonaws.com",
                    "lambda.amazonaws.com",
                    "pods.eks.amazonaws.com",
                    "sagemaker.amazonaws.com",
                    "vpc-flow-logs.amazonaws.com",
                ]
            }
        },
    }
    assert found["Eks"].resources == tuple(
        f"arn:aws:eks:us-east-1:111122223333:{each}"
        for each in ("access-entry/prod-*/*", "addon/prod-*/*", "cluster/prod-*", "podidentityassociation/prod-*/*")
    )
    assert found["Ec2OwnStacks"].condition == {
        "StringLike": {"aws:ResourceTag/aws:cloudformation:stack-name": "prod-*"}
    }
    assert "ec2:DeleteVpc" in found["Ec2OwnStacks"].actions
    assert f"{IAM}:policy/prod-*" in found["IamAttachedPolicies"].condition["ArnLike"]["iam:PolicyARN"]
    assert found["CreateAWSServiceRoleForAmazonEKS"].resources == (
        f"{IAM}:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS",
    )
    assert found["TemplateParameters"].resources == (
        "arn:aws:ssm:us-east-1:111122223333:parameter/cdk-bootstrap/hnb659fds/version",
    )
    assert found["WithoutResource"].condition == {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}


def test_a_boundary_binds_what_makes_and_widens_roles(assemblies: Path, project: Path) -> None:
    text = (project / ENVIRONMENTS["prod"]).read_text(encoding="utf-8")
    bounded = load_environment(
        project / ENVIRONMENTS["prod"], text=f"{text}\npermissions_boundary: fence\n"
    ).environment
    shipped(assemblies, "prod")
    found = {each.sid: each for each in statements(read_assembly(assemblies / "prod", "prod"), bounded)}
    roles = found["IamBoundaryRoles"]
    assert roles.actions == (
        "iam:CreateRole",
        "iam:DeleteRolePolicy",
        "iam:PutRolePolicy",
        "iam:PutRolePermissionsBoundary",
    )
    assert roles.condition == {"StringEquals": {"iam:PermissionsBoundary": f"{IAM}:policy/fence"}}
    assert found["IamAttachedPolicies"].condition["StringEquals"] == roles.condition["StringEquals"]


def made(resources: Mapping[str, Any], environment: Environment) -> dict[str, Statement]:
    """Return the statements of one stack, by name."""
    return {each.sid: each for each in statements(assembly_of(resources), environment)}


def assembly_of(resources: Mapping[str, Any]) -> Assembly:
    template = {"Resources": resources}
    stack = Stack(name="dev-foundation", template=template, account="444455556666", region="us-gov-west-1")
    return Assembly(environment="dev", stacks=(stack,))


@pytest.fixture
def dev(project: Path) -> Environment:
    """An environment in another partition."""
    file = project / ENVIRONMENTS["prod"]
    environment = load_environment(file).environment
    return environment.model_copy(update={"name": "dev", "account": "444455556666", "region": "us-gov-west-1"})


@pytest.mark.parametrize(
    ("properties", "arn"),
    [
        ({}, "dev-*"),
        ({"BucketName": "dev-scripts"}, "dev-*"),
        ({"BucketName": "developers"}, "developers"),
        ({"BucketName": {"Fn::Join": ["-", ["sagemaker-dev", {"Ref": "AWS::StackId"}, "x"]]}}, "sagemaker-dev-*"),
        ({"BucketName": {"Fn::Sub": "sagemaker-dev-${AWS::Region}"}}, "sagemaker-dev-us-gov-west-1"),
        ({"BucketName": {"Fn::Sub": "logs-of-${Other}"}}, "logs-of-dev-*"),
    ],
)
def test_names_are_read_as_far_as_the_template_shows(properties: dict[str, Any], arn: str, dev: Environment) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": properties}
    other = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "dev-other"}}
    found = made({"Bucket": bucket, "Other": other}, dev)["S3"]
    assert set(found.resources) == {"arn:aws-us-gov:s3:::dev-*", f"arn:aws-us-gov:s3:::{arn}"}


def test_a_key_of_another_account_is_named(dev: Environment) -> None:
    key = "arn:aws-us-gov:kms:us-gov-west-1:777788889999:key/abc"
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"KmsKeyId": key}}
    cluster = {"Type": "AWS::EKS::Cluster", "Properties": {"Name": "dev-eks"}}
    found = made({"Group": group, "Cluster": cluster}, dev)
    assert found["KmsGrant"].resources == ("arn:aws-us-gov:kms:us-gov-west-1:444455556666:key/*", key)
    assert found["KmsGrant"].condition == {"Bool": {"kms:GrantIsForAWSResource": "true"}}


def test_a_role_that_stood_before_is_passed_by_its_arn(dev: Environment) -> None:
    arn = "arn:aws-us-gov:iam::444455556666:role/platform/kubectl"
    function = {"Type": "AWS::Lambda::Function", "Properties": {"Role": arn, "Code": {"S3Bucket": "assets"}}}
    assert made({"Function": function}, dev)["IamPassRole"].resources == (arn,)


def test_a_role_that_a_group_keeps_is_passed_and_gets_the_policy_of_nodes_only(dev: Environment) -> None:
    """It has no boundary of the environment's, and a deployment has no business to change or delete it."""
    kept = "arn:aws-us-gov:iam::444455556666:role/ml/training"
    role = {"AssumeRolePolicyDocument": {"Statement": [{"Principal": {"Service": "sagemaker.amazonaws.com"}}]}}
    groups = [{"ExecutionRole": {"Fn::GetAtt": ["Role", "Arn"]}}, {"ExecutionRole": kept}]
    found = made(
        {
            "Role": {"Type": "AWS::IAM::Role", "Properties": role},
            "Policy": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"Roles": [{"Ref": "Role"}, "training"]}},
            "Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": groups}},
        },
        dev,
    )
    assert kept in found["IamPassRole"].resources
    assert found["KeptRoles"].document() == {
        "Sid": "KeptRoles",
        "Effect": "Allow",
        "Action": ["iam:AttachRolePolicy", "iam:DetachRolePolicy"],
        "Resource": [kept],
        "Condition": {"ArnLike": {"iam:PolicyARN": ["arn:aws-us-gov:iam::444455556666:policy/dev-*"]}},
    }
    others = [each for name, each in found.items() if name not in ("IamPassRole", "KeptRoles")]
    assert [each.sid for each in others if any("role/" in arn and "training" in arn for arn in each.resources)] == []


def test_a_custom_resource_has_its_function_invoked(dev: Environment) -> None:
    function = {"Type": "AWS::Lambda::Function", "Properties": {"Code": {"S3Bucket": "assets", "S3Key": "a.zip"}}}
    custom = {"Type": "Custom::Something", "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}}}
    found = made({"Function": function, "Custom": custom}, dev)
    assert "lambda:InvokeFunction" in found["Lambda"].actions
    assert found["Lambda"].resources == ("arn:aws-us-gov:lambda:us-gov-west-1:444455556666:function:dev-*",)
    assert "lambda:InvokeFunction" not in made({"Function": function}, dev)["Lambda"].actions


@pytest.mark.parametrize("ami", [None, "default", "ami-0123456789abcdef0"])
def test_a_custom_image_is_read_and_shared_with_hyperpod(ami: str | None, dev: Environment) -> None:
    # handler permissions of AWS::SageMaker::Cluster (registry schema); resources: service authorization reference
    image = {} if ami is None else {"ImageId": ami}
    cluster = {"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": [{"InstanceCount": 1}, image]}}
    found = made({"Cluster": cluster}, dev)
    anywhere = set(found["WithoutResource"].actions) if "WithoutResource" in found else set()
    if ami in {None, "default"}:
        assert "Ec2" not in found
        assert not {"ec2:DescribeImages", "ec2:DescribeSnapshots"} & anywhere
    else:
        assert found["Ec2"].actions == ("ec2:ModifyImageAttribute", "ec2:ModifySnapshotAttribute")
        assert found["Ec2"].resources == (
            f"arn:aws-us-gov:ec2:us-gov-west-1::image/{ami}",
            "arn:aws-us-gov:ec2:us-gov-west-1::snapshot/*",
        )
        assert {"ec2:DescribeImages", "ec2:DescribeSnapshots"} <= anywhere


@pytest.mark.parametrize(
    ("uri", "objects"), [("s3://sets", "sets/*"), ("s3://sets/", "sets/*"), ("s3://sets/a/b/", "sets/a/b/*")]
)
def test_the_caller_that_links_a_bucket_can_read_it(uri: str, objects: str, dev: Environment) -> None:
    # FSx for Lustre user guide, "Unable to validate access to an S3 bucket when creating a DRA"
    link = {"Type": "AWS::FSx::DataRepositoryAssociation", "Properties": {"DataRepositoryPath": uri}}
    found = made({"Link": link}, dev)["DataRepositories"]
    assert found.actions == ("s3:Get*", "s3:List*", "s3:PutObject")
    assert set(found.resources) == {"arn:aws-us-gov:s3:::sets", f"arn:aws-us-gov:s3:::{objects}"}


def test_no_template_sets_what_actions_are_left_out_for(synthesized: Synthesized) -> None:
    asking = {(name, each) for row in LEFT_OUT for name in row.types for each in row.properties}
    templates = [json.loads(file.read_text(encoding="utf-8")) for file in synthesized.template_files.values()]
    set_here = {
        (resource["Type"], key)
        for template in templates
        for resource in template["Resources"].values()
        for name, value in resource.get("Properties", {}).items()
        for key in (name, *(f"{name}.{inner}" for inner in (value if isinstance(value, dict) else ())))
    }
    assert sorted(asking & set_here) == []


def test_an_update_may_remove_what_only_the_base_has(dev: Environment) -> None:
    policy = "arn:aws-us-gov:iam::aws:policy/AmazonSageMakerHyperPodTrainingOperatorAccess"
    trust = {"Statement": [{"Principal": {"Service": "pods.eks.amazonaws.com"}}]}
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust, "ManagedPolicyArns": [policy]}}
    quota = {"Type": "AWS::SageMaker::ComputeQuota", "Properties": {}}
    kept = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": []}}}

    def assembly(resources: Mapping[str, Any]) -> Assembly:
        stack = Stack(name="dev-platform", template={"Resources": resources}, account=dev.account, region=dev.region)
        return Assembly(environment="dev", stacks=(stack,))

    before, after = assembly({"Kept": kept, "Role": role, "Quota": quota}), assembly({"Kept": kept})
    alone = {each.sid: each for each in statements(after, dev)}
    both = {each.sid: each for each in statements(after, dev, base=before)}
    assert not any("ComputeQuota" in action for each in alone.values() for action in each.actions)
    assert "sagemaker:DeleteComputeQuota" in {action for each in both.values() for action in each.actions}
    assert policy not in alone["IamAttachedPolicies"].condition["ArnLike"]["iam:PolicyARN"]
    assert policy in both["IamAttachedPolicies"].condition["ArnLike"]["iam:PolicyARN"]
    # nothing of either is lost, whichever is the base
    for one, other in ((before, after), (after, before)):
        whole = {each.sid: each for each in statements(one, dev, base=other)}
        for each in (*statements(one, dev), *statements(other, dev)):
            assert set(each.actions) <= set(whole[each.sid].actions)
            assert set(each.resources) <= set(whole[each.sid].resources)
            for operator, keys in each.condition.items():
                for key, values in keys.items():
                    got = whole[each.sid].condition[operator][key]
                    assert got == values or set(values) <= set(got)


def test_a_type_of_which_no_actions_are_known_is_named_and_allowed_nothing(dev: Environment) -> None:
    role = {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": []}}}}
    own = {f"Queue{n}": {"Type": "AWS::SQS::Queue"} for n in range(2)} | {"Name": {"Type": "AWS::SSM::Parameter"}}
    known = {"CDKMetadata": {"Type": "AWS::CDK::Metadata"}, "Own": {"Type": "Custom::Own"}}
    alone, beside = assembly_of(role | known), assembly_of(role | known | own)
    assert unknown_types(alone) == {}
    assert unknown_types(alone, beside, beside) == {
        "AWS::SQS::Queue": ("dev-foundation/Queue0", "dev-foundation/Queue1"),
        "AWS::SSM::Parameter": ("dev-foundation/Name",),
    }
    assert statements(beside, dev) == statements(alone, dev) == statements(alone, dev, base=beside)
