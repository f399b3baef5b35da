"""Who gains and who loses access: whole sentences over small templates, and what must not be a change."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.review.model import Access
from hyperpod_cdk.review.rights.access import access
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_assembly
from hyperpod_cdk.templates.difference import compare
from tests.support.assembly import ENVIRONMENTS, shipped
from tests.support.tables import row_by_row

ACCOUNT = "111122223333"
LAMBDA = {
    "Statement": {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
}


def sides(*resources: dict[str, Any], name: str = "prod-hyperpod", account: str = ACCOUNT) -> tuple[Assembly, ...]:
    """Return an environment of one stack for each set of resources."""
    return tuple(
        Assembly(
            environment="prod",
            stacks=(Stack(name=name, template={"Resources": each}, account=account, region="us-east-1"),),
        )
        for each in resources
    )


def judged(base: Assembly, head: Assembly) -> Access:
    """Compare two sides."""
    return access(base, head, compare(base, head))


def grants(before: dict[str, Any], after: dict[str, Any], **options: str) -> list[str]:
    """Return the sentences about grants between two sets of resources."""
    return [grant.sentence for grant in judged(*sides(before, after, **options)).grants]


def resource(kind: str, path: str = "", **properties: Any) -> dict[str, Any]:
    """Return a resource; ``path`` is its construct path below the stack."""
    metadata = {"Metadata": {"aws:cdk:path": f"prod/hyperpod/{path}"}} if path else {}
    return {"Type": f"AWS::{kind}", "Properties": properties, **metadata}


def role(path: str = "ExecutionRole/Role", **properties: Any) -> dict[str, Any]:
    """Return a role without trust."""
    return resource("IAM::Role", path, **properties)


def inline(*statements: Any) -> list[dict[str, Any]]:
    """Return a role's inline policies: one with these statements."""
    return [{"PolicyName": "own", "PolicyDocument": {"Statement": list(statements)}}]


def allow(action: Any, on: Any = "*", **more: Any) -> dict[str, Any]:
    """Return a statement that allows."""
    return {"Effect": "Allow", "Action": action, "Resource": on, **more}


BUCKET = {"Scripts": resource("S3::Bucket", "LifecycleScripts/Bucket")}
IN_BUCKET = {"Fn::Join": ["", [{"Fn::GetAtt": ["Scripts", "Arn"]}, "/*"]]}
ROLE = "role ExecutionRole (prod-hyperpod)"


def permitted(*statements: Any, **properties: Any) -> list[str]:
    """Return the sentences about what a role gains with these statements."""
    before = {**BUCKET, "Role": role(**properties)}
    return grants(before, {**BUCKET, "Role": role(Policies=inline(*statements), **properties)})


@row_by_row(
    "statement, sentence",
    [
        (
            allow(["s3:ListBucket", "s3:GetObject"], IN_BUCKET),
            "may s3:GetObject and s3:ListBucket on bucket LifecycleScripts/*",
        ),
        (allow("*"), "may use every action (*) on any resource (*)"),
        (allow("s3:*"), "may use every s3 action (s3:*) on any resource (*)"),
        (allow("s3:Get*", {"Fn::Sub": "arn:aws:s3:::${Scripts}/a"}), "may s3:Get* on bucket LifecycleScripts/a"),
        (allow("s3:GetObject", "arn:aws:s3:::elsewhere/*"), "may s3:GetObject on bucket elsewhere/*"),
        (
            {"Effect": "Allow", "NotAction": ["iam:*", "sts:*"], "Resource": "*"},
            "may use everything but every iam action (iam:*) and every sts action (sts:*) on any resource (*)",
        ),
        (
            {"Effect": "Allow", "Action": "s3:GetObject", "NotResource": IN_BUCKET},
            "may s3:GetObject on everything but bucket LifecycleScripts/*",
        ),
        (
            {"Effect": "Deny", "Action": "iam:*", "Resource": "*"},
            "is denied every iam action (iam:*) on any resource (*)",
        ),
        (
            allow("ec2:CreateTags", Condition={"StringEquals": {"aws:RequestedRegion": ["us-east-1", "us-west-2"]}}),
            "may ec2:CreateTags on any resource (*), if aws:RequestedRegion is us-east-1 or us-west-2",
        ),
        (
            allow(
                "ec2:RunInstances", Condition={"Bool": {"aws:SecureTransport": True}, "Null": {"aws:TokenAge": "true"}}
            ),
            "may ec2:RunInstances on any resource (*), if aws:SecureTransport is true and aws:TokenAge is absent",
        ),
        (
            allow("s3:GetObject", Condition={"ForAnyValue:StringLikeIfExists": {"aws:PrincipalOrgPaths": "o-1/*"}}),
            (
                "may s3:GetObject on any resource (*), if any value of aws:PrincipalOrgPaths, if there is one, is "
                "like o-1/*"
            ),
        ),
        (
            allow("s3:GetObject", Condition={"NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8", "192.0.2.0/24"]}}),
            "may s3:GetObject on any resource (*), if aws:SourceIp is not in 10.0.0.0/8 nor 192.0.2.0/24",
        ),
        (
            allow("s3:GetObject", Condition={"BinaryEquals": {"key": "QmlP"}}),
            "may s3:GetObject on any resource (*), if BinaryEquals: key: QmlP",
        ),
        (
            allow([f"ec2:Describe{letter}" for letter in "ABCDEFGH"]),
            (
                "may ec2:DescribeA, ec2:DescribeB, ec2:DescribeC, ec2:DescribeD, ec2:DescribeE and 3 more actions"
                " on any resource (*)"
            ),
        ),
    ],
)
def test_statement_in_words(statement: dict[str, Any], sentence: str) -> None:
    assert permitted(statement) == [f"{ROLE} {sentence}"]


def test_summary_hides_no_action() -> None:
    actions = [f"ec2:Describe{letter}" for letter in "ABCDEFGH"]
    found = judged(*sides({"Role": role()}, {"Role": role(Policies=inline(allow(actions)))}))
    (grant,) = found.grants
    assert grant.what == tuple(actions)
    assert grant.which == ("any resource (*)",)
    assert (grant.change, grant.kind, grant.effect, grant.who) == ("added", "permission", "Allow", ROLE)
    assert (grant.stack, grant.logical_id, grant.is_wildcard) == ("prod-hyperpod", "Role", True)


def test_only_the_difference_of_a_statement_is_reported() -> None:
    before = {**BUCKET, "Role": role(Policies=inline(allow(["s3:GetObject", "s3:ListBucket"], IN_BUCKET)))}
    after = {**BUCKET, "Role": role(Policies=inline(allow(["s3:GetObject", "s3:PutObject"], IN_BUCKET)))}
    assert grants(before, after) == [
        f"{ROLE} may s3:PutObject on bucket LifecycleScripts/*",
        f"{ROLE} may no longer s3:ListBucket on bucket LifecycleScripts/*",
    ]


def test_wider_statement_is_named_beside_the_narrower() -> None:
    before = {"Role": role(Policies=inline(allow("s3:GetObject")))}
    after = {"Role": role(Policies=inline(allow("s3:*")))}
    assert grants(before, after) == [
        f"{ROLE} may use every s3 action (s3:*) on any resource (*)",
        f"{ROLE} may no longer s3:GetObject on any resource (*); a wider statement still allows that",
    ]
    assert [each.is_covered for each in judged(*sides(before, after)).grants] == [False, True]
    more = {"Role": role(Policies=inline(allow("s3:*"), allow("s3:Get*")))}
    assert [each.is_covered for each in judged(*sides(after, more)).grants] == [True]
    assert grants(after, more) == [f"{ROLE} may s3:Get* on any resource (*); a wider statement allowed that already"]


def test_gains_come_first_and_the_widest_of_them() -> None:
    before = {"Role": role(Policies=inline(allow("sqs:SendMessage"), {**allow("iam:*"), "Effect": "Deny"}))}
    after = {"Role": role(Policies=inline(allow("s3:GetObject", "arn:aws:s3:::b/k"), allow("*")))}
    assert grants(before, after) == [
        f"{ROLE} may use every action (*) on any resource (*)",
        f"{ROLE} is no longer denied every iam action (iam:*) on any resource (*)",
        f"{ROLE} may s3:GetObject on bucket b/k",
        f"{ROLE} may no longer sqs:SendMessage on any resource (*); a wider statement still allows that",
    ]


@row_by_row(
    "principal, who",
    [
        ("*", "anyone"),
        ({"AWS": "*"}, "anyone"),
        ({"Service": "sagemaker.amazonaws.com"}, "service sagemaker.amazonaws.com"),
        ({"Service": "pods.eks.amazonaws.com"}, "service pods.eks.amazonaws.com (EKS Pod Identity)"),
        ({"AWS": ACCOUNT}, f"account {ACCOUNT} (this account)"),
        ({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, f"account {ACCOUNT} (this account)"),
        (
            {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}},
            f"account {ACCOUNT} (this account)",
        ),
        ({"AWS": "arn:aws:iam::444455556666:root"}, "account 444455556666 (another account)"),
        ({"AWS": "arn:aws:iam::444455556666:role/x"}, "role x of account 444455556666 (another account)"),
        ({"AWS": f"arn:aws:iam::{ACCOUNT}:role/admin"}, "role admin"),
        ({"AWS": {"Fn::GetAtt": ["Other", "Arn"]}}, "role Other (prod-hyperpod)"),
        (
            {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.actions.githubusercontent.com"},
            "identity provider token.actions.githubusercontent.com",
        ),
        ({"AWS": {"Ref": "Given"}}, "${Given}"),
    ],
)
def test_trust_names_who_may_assume(principal: Any, who: str) -> None:
    document = {"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]}
    other = {"Other": role("Other/Role")}
    after = {**other, "Role": role(AssumeRolePolicyDocument=document)}
    found = judged(*sides({**other, "Role": role()}, after))
    assert [grant.sentence for grant in found.grants] == [f"{who} may assume {ROLE}"]
    assert found.grants[0].kind == "trust"
    assert found.grants[0].is_of_service is (isinstance(principal, dict) and "Service" in principal)
    assert found.grants[0].which == (ROLE,)


def test_trust_changes() -> None:
    federated = {
        "Effect": "Allow",
        "Principal": {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.example.com"},
        "Action": ["sts:AssumeRoleWithWebIdentity", "sts:TagSession"],
        "Condition": {"StringLike": {"token.example.com:sub": "repo:us/it:*"}},
    }
    before = {"Role": role(AssumeRolePolicyDocument=LAMBDA)}
    after = {"Role": role(AssumeRolePolicyDocument={"Statement": federated})}
    assert grants(before, after) == [
        (
            f"identity provider token.example.com may assume {ROLE}, with sts:TagSession,"
            " if token.example.com:sub is like repo:us/it:*"
        ),
        f"service lambda.amazonaws.com may no longer assume {ROLE}",
    ]


def test_managed_policies_by_name() -> None:
    aws = {"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/AmazonFSxFullAccess"}
    after = {"Role": role(ManagedPolicyArns=[aws, "arn:aws:iam::111122223333:policy/ours"])}
    assert grants({"Role": role()}, after) == [
        f"{ROLE} has AWS's policy AmazonFSxFullAccess and policy ours (not in the templates)"
    ]
    literal = {"Role": role(ManagedPolicyArns=["arn:aws:iam::aws:policy/AmazonFSxFullAccess"])}
    assert grants(after, literal) == [f"{ROLE} no longer has policy ours (not in the templates)"]


@pytest.mark.parametrize(
    ("before", "after", "change", "sentence"),
    [
        ("a", None, "removed", "is no longer limited by permissions boundary {a}: all its policies now count"),
        (None, "b", "added", "is limited by permissions boundary {b}"),
        ("a", "b", "added", "is limited by permissions boundary {b} instead of {a}"),
        ("a", "a", "", None),
    ],
)
def test_permissions_boundary(before: str | None, after: str | None, change: str, sentence: str | None) -> None:
    stated = [
        {"PermissionsBoundary": f"arn:aws:iam::111122223333:policy/{each}"} if each else {} for each in (before, after)
    ]
    found = judged(*sides({"Role": role(**stated[0])}, {"Role": role(**stated[1])}))
    names = {each: f"policy {each} (not in the templates)" for each in "ab"}
    assert [grant.sentence for grant in found.grants] == ([f"{ROLE} {sentence.format(**names)}"] if sentence else [])
    assert [(grant.change, grant.effect) for grant in found.grants] == ([(change, "Deny")] if sentence else [])


def test_new_and_former_roles_are_called_so() -> None:
    here = {"Role": role(AssumeRolePolicyDocument=LAMBDA, Policies=inline(allow("s3:GetObject")))}
    assert grants({"Other": role("Other")}, {"Other": role("Other"), **here}) == [
        f"new {ROLE} may s3:GetObject on any resource (*)",
        f"service lambda.amazonaws.com may assume new {ROLE}",
    ]
    assert grants({"Other": role("Other"), **here}, {"Other": role("Other")}) == [
        f"former {ROLE} may no longer s3:GetObject on any resource (*)",
        f"service lambda.amazonaws.com may no longer assume former {ROLE}",
    ]


@pytest.mark.parametrize(
    ("before", "after", "is_change"),
    [
        ({"path": "A/Role"}, {"path": "A/Role"}, False),
        ({"path": "A/Role", "RoleName": "x"}, {"path": "B/Role", "RoleName": "x"}, False),
        ({"path": "A/Role"}, {"path": "B/Role"}, True),
        ({"path": "A/Role", "RoleName": "x"}, {"path": "B/Role", "RoleName": "y"}, True),
        ({"path": ""}, {"path": ""}, True),
    ],
)
def test_role_with_another_logical_id(before: dict[str, Any], after: dict[str, Any], *, is_change: bool) -> None:
    policy = inline(allow("s3:GetObject"))
    found = grants({"Old": role(**before, Policies=policy)}, {"New": role(**after, Policies=policy)})
    assert bool(found) is is_change


def test_policy_with_another_logical_id_of_the_same_bucket() -> None:
    def side(suffix: str) -> dict[str, Any]:
        bucket = f"Scripts{suffix}"
        on = {"Fn::Join": ["", [{"Fn::GetAtt": [bucket, "Arn"]}, "/*"]]}
        document = {"Statement": allow("s3:GetObject", on)}
        return {
            "Role": role(),
            bucket: resource("S3::Bucket", "LifecycleScripts/Bucket"),
            f"Policy{suffix}": resource("IAM::Policy", PolicyDocument=document, Roles=[{"Ref": "Role"}]),
        }

    assert not grants(side("1"), side("2"))


def test_policy_of_many_kinds_for_one_role_is_no_change() -> None:
    document = {"Statement": [allow(["s3:GetObject", "s3:PutObject"], IN_BUCKET)]}
    forms: list[dict[str, Any]] = [
        {"Role": role(Policies=[{"PolicyName": "p", "PolicyDocument": document}])},
        {"Role": role(), "P": resource("IAM::Policy", PolicyDocument=document, Roles=[{"Ref": "Role"}])},
        {"Role": role(), "P": resource("IAM::RolePolicy", PolicyDocument=document, RoleName={"Ref": "Role"})},
        {"Role": role(), "P": resource("IAM::ManagedPolicy", PolicyDocument=document, Roles=[{"Ref": "Role"}])},
        {
            "Role": role(ManagedPolicyArns=[{"Ref": "P"}]),
            "P": resource(
                "IAM::ManagedPolicy", PolicyDocument=json.dumps(document).replace(json.dumps(IN_BUCKET), '"x"')
            ),
        },
    ]
    for form in forms[1:4]:
        assert not grants({**BUCKET, **forms[0]}, {**BUCKET, **form})
    assert grants({**BUCKET, **forms[0]}, {**BUCKET, **forms[4]}) == [
        f"{ROLE} may s3:GetObject and s3:PutObject on x",
        f"{ROLE} may no longer s3:GetObject and s3:PutObject on bucket LifecycleScripts/*",
    ]


def test_the_cause_of_a_newly_attached_policy_is_the_role() -> None:
    policy = {"Policy": resource("IAM::ManagedPolicy", "Read", PolicyDocument={"Statement": allow("s3:GetObject")})}
    found = judged(*sides({**policy, "Role": role()}, {**policy, "Role": role(ManagedPolicyArns=[{"Ref": "Policy"}])}))
    assert [(grant.sentence, grant.logical_id) for grant in found.grants] == [
        (f"{ROLE} may s3:GetObject on any resource (*)", "Role")
    ]


def test_another_type_under_one_logical_id() -> None:
    policies = inline(allow("s3:GetObject"))
    after = {"It": resource("IAM::User", "Its", Policies=policies)}
    assert grants({"It": role("Its", Policies=policies)}, after) == [
        "new user Its (prod-hyperpod) may s3:GetObject on any resource (*)",
        "former role Its (prod-hyperpod) may no longer s3:GetObject on any resource (*)",
    ]


def test_everything_but_one_and_everything_but_another_are_two_statements() -> None:
    but = [{"Effect": "Allow", "NotAction": [service], "Resource": "*"} for service in ("iam:*", "sts:*")]
    assert permitted(*but) == [
        f"{ROLE} may use everything but every iam action (iam:*) on any resource (*)",
        f"{ROLE} may use everything but every sts action (sts:*) on any resource (*)",
    ]


def test_users_groups_and_instance_profiles() -> None:
    after = {
        "Role": role(),
        "Team": resource("IAM::Group", "Team/Group", Policies=inline(allow("s3:GetObject"))),
        "Ann": resource("IAM::User", "Ann", Groups=[{"Ref": "Team"}]),
        "Bob": resource("IAM::User", "Bob"),
        "More": resource("IAM::UserToGroupAddition", GroupName={"Ref": "Team"}, Users=[{"Ref": "Bob"}, "carl"]),
        "Profile": resource("IAM::InstanceProfile", "Nodes/InstanceProfile", Roles=[{"Ref": "Role"}]),
        "Loose": resource("IAM::ManagedPolicy", "Loose", PolicyDocument={"Statement": allow("sqs:SendMessage")}),
        "Theirs": resource("IAM::UserPolicy", UserName="carl", PolicyDocument={"Statement": allow("sns:Publish")}),
    }
    assert grants({"Role": role()}, after) == [
        "anyone who has managed policy Loose (prod-hyperpod) may sqs:SendMessage on any resource (*)",
        "new group Team (prod-hyperpod) may s3:GetObject on any resource (*)",
        "user carl may sns:Publish on any resource (*)",
        "new user Ann (prod-hyperpod) is in group Team (prod-hyperpod)",
        "new user Bob (prod-hyperpod) is in group Team (prod-hyperpod)",
        "user carl is in group Team (prod-hyperpod)",
        f"instances with instance profile Nodes (prod-hyperpod) act as {ROLE}",
    ]


WRITE = {"Effect": "Allow", "Principal": {"AWS": "444455556666"}, "Action": "s3:PutObject", "Resource": IN_BUCKET}
EXTERNAL = "account 444455556666 (another account)"


@row_by_row(
    "added, sentence",
    [
        (
            resource("S3::BucketPolicy", Bucket={"Ref": "Scripts"}, PolicyDocument={"Statement": WRITE}),
            f"{EXTERNAL} may s3:PutObject on bucket LifecycleScripts/*",
        ),
        (
            resource(
                "S3::BucketPolicy", Bucket={"Ref": "Scripts"}, PolicyDocument={"Statement": {**WRITE, "Resource": "*"}}
            ),
            f"{EXTERNAL} may s3:PutObject on bucket LifecycleScripts",
        ),
        (
            resource(
                "S3::BucketPolicy",
                Bucket={"Ref": "Scripts"},
                PolicyDocument={
                    "Statement": {
                        "Effect": "Deny",
                        "NotPrincipal": {"AWS": f"arn:aws:iam::{ACCOUNT}:role/a"},
                        "Action": "s3:*",
                        "Resource": IN_BUCKET,
                    }
                },
            ),
            "everyone but role a is denied every s3 action (s3:*) on bucket LifecycleScripts/*",
        ),
        (
            resource("KMS::Key", "Key", KeyPolicy={"Statement": {**WRITE, "Action": "kms:Decrypt", "Resource": "*"}}),
            f"{EXTERNAL} may kms:Decrypt on key Key",
        ),
        (resource("KMS::Key", "Key"), f"account {ACCOUNT} (this account) may use every kms action (kms:*) on key Key"),
        (
            resource(
                "SNS::TopicPolicy",
                Topics=["arn:aws:sns:us-east-1:111122223333:alarms"],
                PolicyDocument={"Statement": {**WRITE, "Action": "sns:Publish", "Resource": "*", "Principal": "*"}},
            ),
            "anyone may sns:Publish on arn:aws:sns:us-east-1:111122223333:alarms",
        ),
        (
            resource(
                "Logs::ResourcePolicy",
                PolicyName="p",
                PolicyDocument=json.dumps(
                    {
                        "Statement": [
                            {
                                "Effect": "Allow",
                                "Principal": {"Service": "events.amazonaws.com"},
                                "Action": "logs:PutLogEvents",
                                "Resource": "*",
                            }
                        ]
                    }
                ),
            ),
            (
                "service events.amazonaws.com may logs:PutLogEvents on any resource (*), for anyone who calls the "
                "service: no aws:SourceArn or aws:SourceAccount limits it"
            ),
        ),
        (
            resource(
                "ECR::Repository",
                "Images",
                RepositoryPolicyText={"Statement": {**WRITE, "Action": "ecr:BatchGetImage"}},
            ),
            f"{EXTERNAL} may ecr:BatchGetImage on bucket LifecycleScripts/*",
        ),
        (
            resource(
                "Lambda::Permission",
                FunctionName="gate",
                Action="lambda:InvokeFunction",
                Principal="events.amazonaws.com",
                SourceArn="arn:aws:events:us-east-1:111122223333:rule/r",
            ),
            (
                "service events.amazonaws.com may lambda:InvokeFunction on gate,"
                " if aws:SourceArn is like arn:aws:events:us-east-1:111122223333:rule/r"
            ),
        ),
        (
            resource("Events::EventBusPolicy", StatementId="s", Action="events:PutEvents", Principal="444455556666"),
            f"{EXTERNAL} may events:PutEvents on default event bus",
        ),
    ],
)
def test_resource_policies(added: dict[str, Any], sentence: str) -> None:
    found = judged(*sides(BUCKET, {**BUCKET, "Added": added}))
    assert [grant.sentence for grant in found.grants] == [sentence]
    assert found.grants[0].kind == "resource policy"


def test_endpoint_policy_narrows_what_was_open() -> None:
    endpoint = resource("EC2::VPCEndpoint", "S3Endpoint", ServiceName="com.amazonaws.us-east-1.s3", VpcId="vpc-1")
    narrow = copy.deepcopy(endpoint)
    narrow["Properties"]["PolicyDocument"] = {"Statement": {**WRITE, "Principal": "*", "Action": "s3:GetObject"}}
    assert grants({**BUCKET, "E": endpoint}, {**BUCKET, "E": narrow}) == [
        (
            "through VPC endpoint S3Endpoint, anyone may s3:GetObject on bucket LifecycleScripts/*;"
            " a wider statement allowed that already"
        ),
        "through VPC endpoint S3Endpoint, anyone may no longer use every action (*) on any resource (*)",
    ]
    assert not grants(BUCKET, {**BUCKET, "E": endpoint})
    assert judged(*sides(BUCKET, {**BUCKET, "E": narrow})).wildcards.after == 0


@row_by_row(
    "statement, is_wildcard",
    [
        (allow("*"), True),
        (allow("s3:*", "arn:aws:s3:::b"), True),
        (allow("s3:Get*", "arn:aws:s3:::b"), True),
        (allow("s3:GetObject", "*"), True),
        (allow("s3:GetObject", "arn:aws:s3:::*"), True),
        (allow("s3:GetObject", "arn:aws:s3:::b/*"), False),
        (allow("s3:GetObject", "arn:aws:s3:::b"), False),
        ({"Effect": "Allow", "NotAction": "s3:GetObject", "Resource": "arn:aws:s3:::b"}, True),
        ({"Effect": "Deny", "Action": "*", "Resource": "*"}, True),
    ],
)
def test_wildcards_are_counted(statement: dict[str, Any], *, is_wildcard: bool) -> None:
    found = judged(*sides({"Role": role()}, {"Role": role(Policies=inline(statement, statement))}))
    assert [grant.is_wildcard for grant in found.grants] == [is_wildcard]
    allows = statement["Effect"] == "Allow"
    assert (found.wildcards.before, found.wildcards.after) == (0, 2 if is_wildcard and allows else 0)


@row_by_row(
    "statement, is_grave",
    [
        (allow("iam:PassRole", "arn:aws:iam::111122223333:role/nodes"), False),
        (allow("iam:PassRole", "arn:aws:iam::111122223333:role/*"), True),
        (allow("sts:AssumeRole", "arn:aws:iam::*:role/deploy"), True),
        (allow("s3:GetObject", "arn:aws:s3:::b/*"), False),
        (allow("iam:CreatePolicyVersion", "arn:aws:iam::111122223333:policy/own"), True),
        (allow("eks:AssociateAccessPolicy", "arn:aws:eks:us-east-1:111122223333:cluster/eks"), True),
        (allow("*"), True),
        (allow("iam:*"), True),
        (allow("*:*"), True),
        ({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}, True),
        (allow("iam:PutRolePolicy", "arn:aws:iam::111122223333:role/aws-service-role/fsx.amazonaws.com/*"), False),
    ],
)
def test_what_a_role_can_give_itself_is_to_be_looked_at(statement: dict[str, Any], *, is_grave: bool) -> None:
    found = judged(*sides({"Role": role()}, {"Role": role(Policies=inline(statement))}))
    assert [grant.is_grave for grant in found.grants] == [is_grave]
    found = judged(*sides({"Role": role(Policies=inline(statement))}, {"Role": role()}))
    assert [grant.is_grave for grant in found.grants] == [False]


def test_a_removed_deny_needs_attention() -> None:
    denied = role(
        Policies=inline({**allow("iam:PutRolePolicy", "arn:aws:iam::111122223333:role/own"), "Effect": "Deny"})
    )
    assert [grant.is_grave for grant in judged(*sides({"Role": role()}, {"Role": denied})).grants] == [False]
    assert [grant.is_grave for grant in judged(*sides({"Role": denied}, {"Role": role()})).grants] == [True]


@pytest.mark.parametrize(
    ("name", "is_grave"),
    [
        ("AdministratorAccess", True),
        ("AmazonS3ReadOnlyAccess", True),
        ("AmazonEC2ReadOnlyAccess", False),
        ("NobodyKnowsThisPolicy", True),
    ],
)
def test_an_administrator_is_to_be_looked_at(name: str, *, is_grave: bool) -> None:
    found = judged(*sides({"Role": role()}, {"Role": role(ManagedPolicyArns=[f"arn:aws:iam::aws:policy/{name}"])}))
    assert [grant.is_grave for grant in found.grants] == [is_grave]


@pytest.mark.parametrize(
    ("principal", "is_grave"),
    [
        ("*", True),
        ({"AWS": "*"}, True),
        ({"AWS": "999988887777"}, True),
        ({"AWS": "arn:aws:iam::999988887777:role/theirs"}, True),
        ({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, False),
        ({"AWS": f"arn:aws:iam::{ACCOUNT}:role/ours"}, False),
        # of whichever account's log groups: the guides ask for a condition (test_services_act_for_the_own_account)
        ({"Service": "logs.amazonaws.com"}, True),
    ],
)
def test_who_comes_from_outside_is_to_be_looked_at(principal: Any, *, is_grave: bool) -> None:
    statement = {"Effect": "Allow", "Principal": principal, "Action": "kms:Decrypt", "Resource": "*"}
    key = resource("KMS::Key", KeyPolicy={"Statement": [statement]})
    found = judged(*sides({"Key": resource("KMS::Key", KeyPolicy={"Statement": []})}, {"Key": key}))
    assert [grant.is_grave for grant in found.grants] == [is_grave]


@row_by_row(
    "condition, is_grave",
    [
        ({}, True),
        ({"StringEquals": {"aws:SourceAccount": ACCOUNT}}, False),
        ({"StringEquals": {"aws:SourceAccount": "999988887777"}}, True),
        ({"StringEquals": {"aws:SourceAccount": [ACCOUNT, "999988887777"]}}, True),
        ({"StringEqualsIfExists": {"aws:SourceAccount": ACCOUNT}}, True),
        ({"StringNotEquals": {"aws:SourceAccount": ACCOUNT}}, True),
        ({"ArnLike": {"aws:SourceArn": f"arn:aws:logs:us-east-1:{ACCOUNT}:*"}}, False),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:logs:us-east-1:*:*"}}, True),
        # how CloudWatch Logs names the group that it encrypts (CloudWatch Logs user guide, encrypt-log-data-kms)
        ({"ArnLike": {"kms:EncryptionContext:aws:logs:arn": f"arn:aws:logs:us-east-1:{ACCOUNT}:*"}}, False),
        ({"StringEquals": {"aws:SourceOrgID": "o-1"}}, True),
        ({"StringEquals": {"kms:CallerAccount": ACCOUNT}}, False),
    ],
)
def test_services_act_for_the_own_account(condition: dict[str, Any], *, is_grave: bool) -> None:
    """Source: IAM user guide, "The confused deputy problem", cross-service."""
    stated = {"Effect": "Allow", "Principal": {"Service": "logs.amazonaws.com"}, "Action": "kms:Decrypt"}
    statement = {**stated, "Resource": "*", **({"Condition": condition} if condition else {})}
    key = resource("KMS::Key", KeyPolicy={"Statement": [statement]})
    found = judged(*sides({"Key": resource("KMS::Key", KeyPolicy={"Statement": []})}, {"Key": key}))
    assert [grant.is_grave for grant in found.grants] == [is_grave]


def test_what_is_not_a_statement_is_noted() -> None:
    odd = ["no statement", {"Fn::If": ["Unknown", allow("*"), allow("s3:*")]}, {"Effect": "Maybe"}]
    found = judged(*sides({"Role": role()}, {"Role": role(Policies=[*inline(*odd), "x"], ManagedPolicyArns=5)}))
    said = [grant.sentence for grant in found.grants]
    assert f"{ROLE} has policy 5 (not in the templates)" in said
    assert f"{ROLE}: what this permits is unknown: no statement" in said
    assert all(grant.is_grave for grant in found.grants)
    assert len(found.notes) == 4
    assert all(note.startswith(f"{ROLE}: ") for note in found.notes)
    assert f"{ROLE}: not judged: no statement" in found.notes


UNREAD = '{"Action": "s3:*", "Effect": "${Unknown}", "Resource": "*"}'


@row_by_row(
    "after, said",
    [
        # an unknown statement may have been a Deny
        ([], [(f"{ROLE}: what this permitted or denied until now is unknown: {UNREAD}", "removed", True)]),
        (
            [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
            [
                (f"{ROLE} may use every s3 action (s3:*) on any resource (*)", "added", True),
                (f"{ROLE}: what this permitted or denied until now is unknown: {UNREAD}", "removed", True),
            ],
        ),
        (None, [(f"{ROLE}: what this permitted or denied until now is unknown: {UNREAD}", "removed", False)]),
    ],
)
def test_loss_of_a_statement_with_an_unknown_effect(
    after: list[dict[str, Any]] | None, said: list[tuple[str, str, bool]]
) -> None:
    unknown = {"Effect": {"Ref": "Unknown"}, "Action": "s3:*", "Resource": "*"}
    base = {"Role": role(Policies=inline(unknown))}
    found = judged(*sides(base, {} if after is None else {"Role": role(Policies=inline(*after))}))
    told = [(each.sentence, each.change, each.is_grave) for each in found.grants if each.kind == "permission"]
    assert told == said


@pytest.mark.parametrize("stays", [True, False])
def test_loss_of_an_unknown_policy_matters_if_what_has_it_stays(*, stays: bool) -> None:
    document = {"Statement": [{"Effect": {"Ref": "Unknown"}, "Principal": "*", "Action": "s3:*", "Resource": "*"}]}
    bucket = {"Bucket": resource("S3::Bucket")}
    policy = {"Policy": resource("S3::BucketPolicy", Bucket={"Ref": "Bucket"}, PolicyDocument=document)}
    found = judged(*sides({**bucket, **policy}, bucket if stays else {}))
    assert [each.is_grave for each in found.grants if "until now" in each.sentence] == [stays]


def test_policy_that_only_the_deployment_shows() -> None:
    def side(name: str) -> dict[str, Any]:
        return {"Role": role(ManagedPolicyArns=[{"Fn::If": ["Unknown", f"arn:aws:iam::aws:policy/{name}", "x"]}])}

    told = "a policy that only the deployment shows ({{if Unknown: arn:aws:iam::aws:policy/{}, else x}})"
    found = judged(*sides(side("A"), side("B")))
    assert [grant.sentence for grant in found.grants] == [
        f"{ROLE} has {told.format('B')}",
        f"{ROLE} no longer has {told.format('A')}",
    ]
    assert found.notes == (f"{ROLE}: only the deployment shows: {{if Unknown: arn:aws:iam::aws:policy/B, else x}}",)


def test_resource_whose_condition_is_false_is_not_there() -> None:
    after = {"Role": role(), "P": {**resource("IAM::RolePolicy", RoleName={"Ref": "Role"}), "Condition": "Off"}}
    after["P"]["Properties"]["PolicyDocument"] = {"Statement": allow("*")}
    (base,) = sides({"Role": role()})
    for value, expected in (("no", []), ("yes", [f"{ROLE} may use every action (*) on any resource (*)"])):
        template = {"Resources": after, "Conditions": {"Off": {"Fn::Equals": [value, "yes"]}}}
        stack = Stack(name="prod-hyperpod", template=template, account=ACCOUNT, region="us-east-1")
        found = judged(base, Assembly(environment="prod", stacks=(stack,)))
        assert [grant.sentence for grant in found.grants] == expected


ACTIONS = ("s3:GetObject", "s3:PutObject", "S3:Get*", "ec2:DescribeVpcs", "*")
NAMES = ("*", "arn:aws:s3:::a", "arn:aws:s3:::a/*", {"Ref": "Scripts"}, IN_BUCKET)
CONDITIONS: tuple[dict[str, dict[str, Any]], ...] = (
    {},
    {"StringEquals": {"aws:RequestedRegion": ["a", "b"]}},
    {"Bool": {"aws:SecureTransport": "true"}},
)
TRIPLES = st.tuples(
    st.sampled_from(("Allow", "Deny")), st.sampled_from(ACTIONS), st.integers(0, len(NAMES) - 1), st.integers(0, 2)
)


def _one_or_many(draw: st.DrawFn, values: list[Any]) -> Any:
    values = draw(st.permutations(values))
    return values[0] if len(values) == 1 and draw(st.booleans()) else values


@st.composite
def written(draw: st.DrawFn, rights: list[tuple[str, str, int, int]]) -> dict[str, Any]:
    """Write the same rights anew: in any order, split and merged, inline, beside the role or attached."""
    left = draw(st.permutations(rights))
    statements = []
    while left:
        effect, _, name, condition = left[0]
        same = [each for each in left if each[0] == effect and each[2:] == (name, condition)]
        taken = [left[0], *(each for each in same[1:] if draw(st.booleans()))]
        # what stands in one statement may stand in another once more
        left = [each for each in left if each not in taken or (each != left[0] and draw(st.booleans()))]
        stated = copy.deepcopy(CONDITIONS[condition])
        for keys in stated.values():
            for key in keys:
                keys[key] = draw(st.permutations(keys[key])) if isinstance(keys[key], list) else [keys[key]]
        spelled = [draw(st.sampled_from((each[1], each[1].lower()))) for each in taken]
        statement = {
            "Effect": effect,
            "Action": _one_or_many(draw, spelled),
            "Resource": _one_or_many(draw, [NAMES[name]]),
            **({"Condition": stated} if stated else {}),
        }
        statements.append(statement)
    places: dict[str, list[Any]] = {"inline": [], "policy": [], "managed": [], "attached": []}
    for statement in statements:
        places[draw(st.sampled_from(sorted(places)))].append(statement)
    document = {place: {"Statement": _one_or_many(draw, found)} for place, found in places.items() if found}
    resources: dict[str, Any] = {
        **BUCKET,
        "Role": role(
            Policies=[{"PolicyName": "p", "PolicyDocument": document["inline"]}] if "inline" in document else [],
            ManagedPolicyArns=[{"Ref": "Attached"}] if "attached" in document else [],
        ),
    }
    if "policy" in document:
        resources["Policy"] = resource("IAM::Policy", PolicyDocument=document["policy"], Roles=[{"Ref": "Role"}])
    if "managed" in document:
        resources["Managed"] = resource(
            "IAM::ManagedPolicy", PolicyDocument=document["managed"], Roles=[{"Ref": "Role"}]
        )
    if "attached" in document:
        resources["Attached"] = resource("IAM::ManagedPolicy", PolicyDocument=document["attached"])
    return dict(draw(st.permutations(list(resources.items()))))


@given(st.data(), st.lists(TRIPLES, min_size=1, max_size=12, unique=True))
@settings(max_examples=60, deadline=None)
def test_same_rights_written_otherwise_are_no_change(
    data: st.DataObject, rights: list[tuple[str, str, int, int]]
) -> None:
    before, after = data.draw(written(rights)), data.draw(written(rights))
    assert not grants(before, after)


@given(st.data(), st.lists(TRIPLES, min_size=2, max_size=12, unique=True))
@settings(max_examples=40, deadline=None)
def test_one_right_less_is_reported(data: st.DataObject, rights: list[tuple[str, str, int, int]]) -> None:
    lost = data.draw(st.sampled_from(rights))
    found = judged(*sides(data.draw(written(rights)), data.draw(written([each for each in rights if each != lost]))))
    (grant,) = found.grants
    assert (grant.change, grant.effect) == ("removed", lost[0])
    assert len(grant.what) == len(grant.which) == 1


KINDS = (
    "IAM::Role", "IAM::ManagedPolicy", "IAM::UserToGroupAddition", "S3::BucketPolicy", "S3::Bucket", "KMS::Key",
    "Logs::ResourcePolicy", "Lambda::Permission", "Events::EventBusPolicy", "EC2::VPCEndpoint", "EC2::SecurityGroup",
    "EC2::SecurityGroupIngress", "EC2::Route", "EC2::NetworkAclEntry", "EKS::Cluster", "EKS::AccessEntry", "EKS::Addon",
)  # fmt: skip
WORDS = (
    "Policies", "PolicyDocument", "Statement", "Effect", "Action", "NotResource", "Principal", "AWS",
    "Condition", "Bool", "ManagedPolicyArns", "PermissionsBoundary", "AssumeRolePolicyDocument", "Roles",
    "Type", "Key", "KeyPolicy", "Users", "SecurityGroupIngress", "GroupId", "IpProtocol", "FromPort",
    "CidrIp", "PortRange", "RouteTableId", "GatewayId", "AccessConfig", "ResourcesVpcConfig",
    "PublicAccessCidrs", "AccessPolicies", "AccessScope", "KubernetesGroups", "Ref", "Fn::GetAtt", "Fn::Join",
    "Fn::Sub", "Fn::If", "PublicAccessBlockConfiguration", "PodIdentityAssociations", "RoleArn",
)  # fmt: skip
ODD = st.recursive(
    st.sampled_from(
        [None, True, -1, 1.5, "", "*", "Allow", "R0", "${R1.Arn}", "0.0.0.0/0", "AWS::NoValue", "tcp", "{"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=15,
)
ODD_RESOURCES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(WORDS), ODD, max_size=5)), min_size=1, max_size=4
).map(lambda rows: {f"R{index}": resource(kind, **properties) for index, (kind, properties) in enumerate(rows)})


@given(ODD_RESOURCES, ODD_RESOURCES)
@settings(max_examples=60, deadline=None)
def test_no_template_is_too_strange(before: dict[str, Any], after: dict[str, Any]) -> None:
    base, head = sides(before, after)
    forth, back = judged(base, head), judged(head, base)
    assert forth.wildcards.before == back.wildcards.after
    same = judged(base, base)
    assert (same.grants, same.reach, same.notes) == ((), (), ())


@pytest.mark.parametrize("name", ["prod", "two-teams"])
def test_environment_and_itself_differ_in_nothing(assemblies: Path, name: str) -> None:
    shipped(assemblies, name)
    found = judged(read_assembly(assemblies / name, name), read_assembly(assemblies / name, name))
    assert (found.grants, found.reach, found.notes) == ((), (), ())
    assert found.wildcards.before == found.wildcards.after


def test_one_more_administrator_is_one_sentence(assemblies: Path) -> None:
    assert "two-teams" in ENVIRONMENTS
    shipped(assemblies, "two-teams")
    base = read_assembly(assemblies / "two-teams", "two-teams")
    (stack,) = [each for each in base.stacks if each.name == "two-teams-foundation"]
    template = copy.deepcopy(dict(stack.template))
    (cluster,) = [each for each in stack.resources.values() if each.type == "AWS::EKS::Cluster"]
    template["Resources"]["Admin"] = resource(
        "EKS::AccessEntry",
        ClusterName={"Ref": cluster.logical_id},
        PrincipalArn="arn:aws:iam::111122223333:role/on-call",
        AccessPolicies=[
            {
                "PolicyArn": {
                    "Fn::Sub": "arn:${AWS::Partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
                },
                "AccessScope": {"Type": "cluster"},
            }
        ],
    )
    changed = Stack(name=stack.name, template=template, account=stack.account, region=stack.region)
    stacks = tuple(changed if each is stack else each for each in base.stacks)
    found = judged(base, Assembly(environment="two-teams", stacks=stacks))
    assert [grant.sentence for grant in found.grants] == [
        "role on-call can access EKS cluster two-teams-eks with AmazonEKSClusterAdminPolicy in the whole cluster"
    ]
    assert not found.reach


def test_everything_is_new_in_a_first_deployment(assemblies: Path) -> None:
    shipped(assemblies, "prod")
    head = read_assembly(assemblies / "prod", "prod")
    found = judged(EMPTY, head)
    assert {grant.change for grant in found.grants} == {"added"}
    assert {each.change for each in found.reach} == {"added"}
    gone = judged(head, EMPTY)
    assert {grant.change for grant in gone.grants} == {"removed"}
    assert len(gone.grants) == len(found.grants)
    assert len(gone.reach) == len(found.reach)


def test_hundreds_of_roles_are_compared_one_by_one() -> None:
    def side(action: str) -> dict[str, Any]:
        actions = [f"ec2:{action}{index}" for index in range(20)]
        on = [{"Fn::Sub": f"arn:aws:s3:::${{Scripts}}/{index}"} for index in range(10)]
        return BUCKET | {
            f"Role{index}": role(f"Role{index}", AssumeRolePolicyDocument=LAMBDA, Policies=inline(allow(actions, on)))
            for index in range(200)
        }

    base, head = sides(side("Describe"), side("Modify"))
    changes = compare(base, head)
    found = access(base, head, changes)
    assert len(found.grants) == 400


@pytest.mark.parametrize(
    ("properties", "changed"),
    [
        ({"Code": {"S3Bucket": "b", "S3Key": "k2"}}, "Code"),
        ({"Handler": "index.other"}, "Handler"),
        ({"Description": "of no weight"}, None),
    ],
)
def test_other_code_is_named_with_its_role_though_it_can_do_little(
    properties: dict[str, Any], changed: str | None
) -> None:
    function = {"Role": {"Fn::GetAtt": ["Role", "Arn"]}, "Code": {"S3Bucket": "b", "S3Key": "k"}, "Handler": "index.on"}
    before, after = (
        {"Role": role(), "F": {"Type": "AWS::Lambda::Function", "Properties": {**function, **each}}}
        for each in ({}, properties)
    )
    found = judged(*sides(before, after)).grants
    said = f"function F (prod-hyperpod) runs other code ({changed} changes) as {ROLE}"
    assert [(each.sentence, each.is_grave) for each in found] == ([(said, False)] if changed else [])


def test_code_from_a_bucket_that_a_parameter_names() -> None:
    before, after = (
        {"F": {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": {"S3Bucket": bucket, "S3Key": "k"}}}}
        for bucket in ("b", {"Ref": "Bucket"})
    )
    said = "layer version F (prod-hyperpod) runs code from another bucket: ${Bucket}"
    assert [each.sentence for each in judged(*sides(before, after)).grants] == [said]


def chosen(first: Any, second: Any = None) -> dict[str, Any]:
    """Return a value that a condition decides which only the deployment knows."""
    return {"Fn::If": ["Asked", first, {"Ref": "AWS::NoValue"} if second is None else second]}


WORLD: dict[str, Any] = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}
ADMIN = "arn:aws:iam::aws:policy/AdministratorAccess"
CLUSTER_ADMIN = {
    "PolicyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
    "AccessScope": {"Type": "cluster"},
}
SHUT: dict[str, Any] = dict.fromkeys(
    ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
)


def trusting(statement: Any) -> dict[str, Any]:
    return {"AssumeRolePolicyDocument": {"Statement": [statement]}}


def assumed(principal: Any) -> dict[str, Any]:
    return trusting({"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"})


def entered(**properties: Any) -> dict[str, Any]:
    return resource("EKS::AccessEntry", ClusterName="c", PrincipalArn=f"arn:aws:iam::{ACCOUNT}:role/x", **properties)


@row_by_row(
    "after",
    [
        resource("EC2::SecurityGroup", SecurityGroupIngress=[chosen(WORLD)]),
        resource("EC2::SecurityGroup", SecurityGroupIngress=chosen([WORLD], [])),
        resource("EC2::SecurityGroup", SecurityGroupIngress=[{**WORLD, "CidrIp": chosen("0.0.0.0/0", "10.0.0.0/8")}]),
        {**resource("EC2::SecurityGroupIngress", GroupId="sg-1", **WORLD), "Condition": "Asked"},
        role(Policies=inline(chosen(allow("*")))),
        role(Policies=[{"PolicyName": "own", "PolicyDocument": {"Statement": chosen([allow("*")], [])}}]),
        role(Policies=[{"PolicyName": "own", "PolicyDocument": chosen({"Statement": allow("*")})}]),
        role(Policies=[chosen({"PolicyName": "own", "PolicyDocument": {"Statement": allow("*")}})]),
        role(Policies=inline(allow(chosen("*", "s3:GetObject")))),
        role(Policies=inline(allow({"Fn::Sub": "iam:${Asked}"}))),
        role(Policies=inline(allow({"Fn::ImportValue": "elsewhere:Action"}))),
        role(Policies=inline(allow("iam:PassRole", chosen("*", f"arn:aws:iam::{ACCOUNT}:role/x")))),
        role(Policies=inline(allow("*", Effect=chosen("Allow", "Deny")))),
        role(ManagedPolicyArns=[chosen(ADMIN)]),
        role(ManagedPolicyArns=chosen([ADMIN], [])),
        role(**trusting(chosen({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}))),
        role(**assumed({"AWS": chosen("*", f"arn:aws:iam::{ACCOUNT}:role/x")})),
        role(**assumed(chosen("*", {"Service": "ec2.amazonaws.com"}))),
        entered(AccessPolicies=[chosen(CLUSTER_ADMIN)]),
        entered(AccessPolicies=chosen([CLUSTER_ADMIN], [])),
        entered(AccessPolicies=[{**CLUSTER_ADMIN, "PolicyArn": chosen(CLUSTER_ADMIN["PolicyArn"], "x/AView")}]),
        entered(KubernetesGroups=[chosen("system:masters")]),
        resource("Lambda::Url", TargetFunctionArn="f", AuthType=chosen("NONE", "AWS_IAM")),
        resource("Lambda::Permission", FunctionName="f", Action="lambda:*", Principal=chosen("*", "s3.amazonaws.com")),
        resource("ElasticLoadBalancingV2::LoadBalancer", Scheme=chosen("internet-facing", "internal")),
        resource("EC2::Subnet", MapPublicIpOnLaunch=chosen("true", "false")),
        resource("EKS::Cluster", ResourcesVpcConfig={"PublicAccessCidrs": [chosen("0.0.0.0/0")]}),
        resource("S3::Bucket", PublicAccessBlockConfiguration=chosen({}, SHUT)),
        resource("S3::Bucket", PublicAccessBlockConfiguration={**SHUT, "BlockPublicPolicy": chosen("false", "true")}),
        resource("S3::Bucket", AccessControl=chosen("PublicRead", "Private")),
        resource("S3::BucketPolicy", Bucket="b", PolicyDocument={"Statement": [chosen(allow("s3:*", Principal="*"))]}),
        resource(
            "EC2::NetworkAclEntry", NetworkAclId="acl-1", RuleAction=chosen("allow", "deny"), CidrBlock="0.0.0.0/0"
        ),
        resource("IAM::AccessKey", UserName="u", Status=chosen("Active", "Inactive")),
        resource("Cognito::IdentityPool", AllowUnauthenticatedIdentities=chosen("true", "false")),
        resource("RDS::DBInstance", PubliclyAccessible=chosen("true", "false")),
    ],
)
def test_what_only_the_deployment_opens_is_judged_as_open(after: dict[str, Any]) -> None:
    """Judged as a change of the same resource without these properties, which is there on both sides."""
    known = {name: value for name, value in after["Properties"].items() if isinstance(value, str)}
    before = {} if after["Type"] in NEW_ONLY else {"It": {"Type": after["Type"], "Properties": known}}
    found = judged(*sides(before, {"It": after}))
    grave = [each.sentence for each in found.grants if each.is_grave and each.change == "added"]
    assert [*grave, *(each.sentence for each in found.reach if each.is_grave and each.change == "added")] != []


NEW_ONLY = ("AWS::EC2::SecurityGroupIngress", "AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::IAM::AccessKey")
"""Types that are open as soon as they exist."""
