"""The node role: one golden policy, its size and who may assume it."""

from __future__ import annotations

import json
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.hyperpod.execution_role import NodeExecutionRole
from tests.support.templates import app, of_type, template_of

KEY = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE, POLICY = "NodesRoleA22E0B2B", "NodesPolicy4B86484D"

# characters of a managed policy without its blanks; AWS counts so
MANAGED_POLICY_CHARACTERS = 6144

GOLDEN = [
    {
        "Sid": "Places",
        "Effect": "Allow",
        "Action": ["ec2:CreateNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"],
        "Resource": [
            "<shared>:subnet/subnet-00000000000000000",
            "<shared>:subnet/subnet-00000000000000001",
            "<shared>:security-group/sg-00000000000000000",
        ],
    },
    {
        "Sid": "NewInterfaces",
        "Effect": "Allow",
        "Action": ["ec2:CreateNetworkInterface", "ec2:CreateTags", "ec2:DeleteNetworkInterfacePermission"],
        "Resource": ["<ec2>:network-interface/*"],
    },
    {
        "Sid": "NetworkInterfaces",
        "Effect": "Allow",
        "Action": [
            "ec2:AssignPrivateIpAddresses",
            "ec2:AttachNetworkInterface",
            "ec2:CreateNetworkInterfacePermission",
            "ec2:DeleteNetworkInterface",
            "ec2:DetachNetworkInterface",
            "ec2:ModifyNetworkInterfaceAttribute",
            "ec2:UnassignPrivateIpAddresses",
        ],
        "Resource": ["<ec2>:network-interface/*"],
        "Condition": {"ArnEquals": {"ec2:Vpc": "<shared>:vpc/vpc-0123456789abcdef0"}},
    },
    {
        "Sid": "Instances",
        "Effect": "Allow",
        "Action": [
            "ec2:AttachNetworkInterface",
            "ec2:DetachNetworkInterface",
            "ec2:ModifyNetworkInterfaceAttribute",
        ],
        "Resource": ["arn:<partition>:ec2:<region>:*:instance/*"],
    },
    {
        "Sid": "Unscoped",
        "Effect": "Allow",
        "Action": [
            "cloudwatch:DescribeAlarms",
            "ec2:DescribeDhcpOptions",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeTags",
            "ec2:DescribeVpcs",
            "ecr:GetAuthorizationToken",
            "fsx:DescribeFileSystems",
        ],
        "Resource": ["*"],
    },
    {
        "Sid": "Images",
        "Effect": "Allow",
        "Action": ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        "Resource": ["arn:<partition>:ecr:*:*:repository/*"],
    },
    {
        "Sid": "PodIdentities",
        "Effect": "Allow",
        "Action": ["eks-auth:AssumeRoleForPodIdentity"],
        "Resource": ["arn:<partition>:eks:<region>:<account>:cluster/prod-eks"],
    },
    {
        "Sid": "ListScripts",
        "Effect": "Allow",
        "Action": ["s3:ListBucket"],
        "Resource": ["arn:<partition>:s3:::sagemaker-scripts"],
    },
    {
        "Sid": "GetScripts",
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": ["arn:<partition>:s3:::sagemaker-scripts/*"],
    },
]


@pytest.fixture
def stack() -> cdk.Stack:
    """Somebody else's stack, without account, region or feature flags."""
    return cdk.Stack(app(), "foreign")


def make(
    stack: cdk.Stack, *, subnets: int = 2, security_groups: int = 1, bucket_key: kms.IKey | None = None, **options: Any
) -> NodeExecutionRole:
    return NodeExecutionRole(
        stack,
        "Nodes",
        bucket=s3.Bucket.from_bucket_attributes(
            stack, "Bucket", bucket_name="sagemaker-scripts", encryption_key=bucket_key
        ),
        eks_cluster_arn=stack.format_arn(service="eks", resource="cluster", resource_name="prod-eks"),
        vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["zone"]),
        subnets=[ec2.Subnet.from_subnet_id(stack, f"Subnet{n}", f"subnet-{n:017}") for n in range(subnets)],
        security_groups=[
            ec2.SecurityGroup.from_security_group_id(stack, f"Group{n}", f"sg-{n:017}") for n in range(security_groups)
        ],
        **options,
    )


def statements(stack: cdk.Stack, **pseudo: str) -> list[dict[str, Any]]:
    """The statements with pseudo parameters filled in."""
    values = {"Partition": "<partition>", "Region": "<region>", "AccountId": "<account>", **pseudo}
    (policy,) = of_type(template_of(stack), "AWS::IAM::ManagedPolicy").values()
    filled = _fill(policy["Properties"]["PolicyDocument"]["Statement"], values)
    assert isinstance(filled, list)
    return filled


def _fill(value: Any, pseudo: dict[str, str]) -> Any:
    match value:
        case {"Ref": str(name)}:
            return pseudo[name.removeprefix("AWS::")]
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(_fill(part, pseudo) for part in parts)
        case dict():
            return {key: _fill(each, pseudo) for key, each in value.items()}
        case list():
            return [_fill(each, pseudo) for each in value]
    return value


def test_the_policy(stack: cdk.Stack) -> None:
    make(stack)

    owners = {"<ec2>": "<account>", "<shared>": "*"}
    text = json.dumps(GOLDEN)
    for mark, account in owners.items():
        text = text.replace(mark, f"arn:<partition>:ec2:<region>:{account}")
    assert statements(stack) == json.loads(text)


def test_what_the_app_makes_is_of_the_stacks_account(stack: cdk.Stack) -> None:
    """Subnets, groups and VPCs that stood before may be another account's, and EC2 asks for the ARN of their owner."""
    vpc = ec2.CfnVPC(stack, "Own", cidr_block="10.0.0.0/16")
    subnet = ec2.CfnSubnet(stack, "OwnSubnet", vpc_id=vpc.attr_vpc_id, cidr_block="10.0.0.0/24")
    NodeExecutionRole(
        stack,
        "Nodes",
        bucket=s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-scripts"),
        eks_cluster_arn=stack.format_arn(service="eks", resource="cluster", resource_name="prod-eks"),
        vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id=vpc.attr_vpc_id, availability_zones=["zone"]),
        subnets=[ec2.Subnet.from_subnet_id(stack, "Subnet", subnet.attr_subnet_id)],
        security_groups=[ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")],
    )
    (policy,) = of_type(template_of(stack), "AWS::IAM::ManagedPolicy").values()
    places, _, interfaces, *_ = policy["Properties"]["PolicyDocument"]["Statement"]
    owners = {"Partition": "<partition>", "Region": "<region>", "AccountId": "<account>"}

    def shown(value: Any) -> Any:
        made = {"Fn::GetAtt": "<made>"}
        text = json.dumps(value)
        for name in ("VpcId", "SubnetId"):
            for resource in ("Own", "OwnSubnet"):
                text = text.replace(json.dumps({"Fn::GetAtt": [resource, name]}), json.dumps(made["Fn::GetAtt"]))
        return _fill(json.loads(text), owners)

    assert shown(places["Resource"]) == [
        "arn:<partition>:ec2:<region>:<account>:subnet/<made>",
        "arn:<partition>:ec2:<region>:*:security-group/sg-0123456789abcdef0",
    ]
    assert shown(interfaces["Condition"]) == {
        "ArnEquals": {"ec2:Vpc": "arn:<partition>:ec2:<region>:<account>:vpc/<made>"}
    }


def test_only_sagemaker_may_assume_the_role(stack: cdk.Stack) -> None:
    make(stack)

    role = template_of(stack)["Resources"][ROLE]["Properties"]
    assert role["AssumeRolePolicyDocument"]["Statement"] == [
        {"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}}
    ]
    policy = ["arn:", {"Ref": "AWS::Partition"}, ":iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"]
    assert role["ManagedPolicyArns"] == [{"Fn::Join": ["", policy]}]


def test_is_two_resources_whatever_it_allows(stack: cdk.Stack) -> None:
    make(stack, subnets=5, security_groups=5)

    resources = template_of(stack)["Resources"]
    assert {name: each["Type"] for name, each in resources.items()} == {
        ROLE: "AWS::IAM::Role",
        POLICY: "AWS::IAM::ManagedPolicy",
    }
    assert resources[POLICY]["Properties"]["Roles"] == [{"Ref": ROLE}]


@pytest.mark.parametrize(("subnets", "security_groups"), [(5, 5), (hyperpod.SUBNETS.maximum, 5)])
def test_fits_into_a_managed_policy(stack: cdk.Stack, subnets: int, security_groups: int) -> None:
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    make(stack, subnets=subnets, security_groups=security_groups, bucket_key=key)

    longest = {"Partition": "aws-us-gov", "Region": "ap-southeast-1", "AccountId": "111122223333"}
    text = json.dumps({"Version": "2012-10-17", "Statement": statements(stack, **longest)}, separators=(",", ":"))
    assert text.count("subnet/") == subnets
    assert text.count("security-group/") == security_groups
    assert len(text) <= MANAGED_POLICY_CHARACTERS


def test_may_decrypt_with_the_keys_of_bucket_and_caller(stack: cdk.Stack) -> None:
    bucket_key = kms.Key.from_key_arn(stack, "BucketKey", KEY)
    other = kms.Key.from_key_arn(stack, "OtherKey", KEY.replace("1234abcd", "abcd1234"))
    make(stack, bucket_key=bucket_key, encryption_keys=[other, bucket_key])

    assert statements(stack)[-1] == {
        "Sid": "Decrypt",
        "Effect": "Allow",
        "Action": ["kms:Decrypt"],
        "Resource": [KEY, KEY.replace("1234abcd", "abcd1234")],
    }


def test_may_hand_on_the_key_of_its_volumes_and_no_other(stack: cdk.Stack) -> None:
    make(stack, volume_key=kms.Key.from_key_arn(stack, "VolumeKey", KEY))

    assert statements(stack)[-1] == {
        "Sid": "VolumeKey",
        "Effect": "Allow",
        "Action": ["kms:CreateGrant", "kms:DescribeKey"],
        "Resource": [KEY],
    }


def test_other_roles_get_the_policy_and_nothing_else(stack: cdk.Stack) -> None:
    make(stack, others=["arn:aws:iam::111122223333:role/ml/training", "arn:aws:iam::111122223333:role/plain"])
    (policy,) = of_type(template_of(stack), "AWS::IAM::ManagedPolicy").values()
    assert policy["Properties"]["Roles"] == [{"Ref": ROLE}, "training", "plain"]
    assert list(of_type(template_of(stack), "AWS::IAM::Role")) == [ROLE]


def test_names_what_is_given_twice_once(stack: cdk.Stack) -> None:
    subnet = ec2.Subnet.from_subnet_id(stack, "Twice", "subnet-0123456789abcdef0")
    NodeExecutionRole(
        stack,
        "Nodes",
        bucket=s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-scripts"),
        eks_cluster_arn=stack.format_arn(service="eks", resource="cluster", resource_name="prod-eks"),
        vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["zone"]),
        subnets=[subnet, subnet],
        security_groups=[ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")],
    )

    assert json.dumps(statements(stack)).count("subnet-0123456789abcdef0") == 1


def test_the_policies_can_be_waited_for(stack: cdk.Stack) -> None:
    role = make(stack)
    later = cdk.CfnResource(stack, "Later", type="AWS::SNS::Topic")
    later.node.add_dependency(role.policies)

    assert template_of(stack)["Resources"]["Later"]["DependsOn"] == [POLICY]


def test_role_and_policy_go_with_their_stack(stack: cdk.Stack) -> None:
    make(stack)

    resources = template_of(stack)["Resources"]
    assert [(resources[name]["DeletionPolicy"], resources[name]["UpdateReplacePolicy"]) for name in (ROLE, POLICY)] == [
        ("Delete", "Retain"),
        ("Delete", "Retain"),
    ]


@pytest.mark.parametrize(("argument", "what"), [("subnets", "subnets"), ("security_groups", "security groups")])
def test_needs_a_network(stack: cdk.Stack, argument: str, what: str) -> None:
    with pytest.raises(ValueError, match=argument) as raised:
        make(stack, **cast("dict[str, Any]", {argument: 0}))
    assert str(raised.value) == (
        f"{argument} must name at least one of the {what} of the instance groups, got none; "
        "pass every one that a group uses"
    )
