"""Who can come to have every right: each edge at and beside its bound, and the fixpoint over them.

The expectations are those of RhinoSecurityLabs/AWS-IAM-Privilege-Escalation (methods 1 to 21) and of the actions' own
descriptions in the service authorization reference.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.review.rights.power import Power
from hyperpod_cdk.review.rights.statements import permissions
from hyperpod_cdk.review.rights.views import views
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack
from hyperpod_cdk.templates.difference import compare
from tests.support.tables import row_by_row

Body = dict[str, Any]
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"


def allow(action: Any, on: Any = "*") -> Body:
    return {"Effect": "Allow", "Action": action, "Resource": on}


def role(*statements: Body, trusts: Any = None, **more: Any) -> Body:
    principal = {"Service": "ec2.amazonaws.com"} if trusts is None else trusts
    trust = {"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]}
    policies = [{"PolicyName": "p", "PolicyDocument": {"Statement": list(statements)}}] if statements else []
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust, "Policies": policies, **more}}


def of(kind: str, **properties: Any) -> Body:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def arn(name: str) -> Body:
    return {"Fn::GetAtt": [name, "Arn"]}


def powerful(**resources: Body) -> set[str]:
    """Return the logical ids of the powerful identities of a template."""
    stack = Stack(name="s", template={"Resources": resources}, account="111122223333", region="us-east-1")
    head = Assembly(environment="", stacks=(stack,))
    _, view = views(EMPTY, head, compare(EMPTY, head))
    power = Power(view, permissions(view))
    return {name for name in resources if ("resource", f"${{s/{name}}}") in power}


ADMIN = role(ManagedPolicyArns=[ADMINISTRATOR])


@row_by_row(
    "statement, is_edge",
    [
        (allow("iam:PassRole", arn("Admin")), True),
        (allow("iam:Pass*", arn("Admin")), True),
        (allow("IAM:passrole", arn("Admin")), True),
        (allow("sts:AssumeRole", arn("Admin")), True),
        (allow("sts:AssumeRoleWithWebIdentity", arn("Admin")), True),
        (allow("sts:TagSession", arn("Admin")), True),
        # beside: another action, another role, a Deny, nothing of it
        (allow("iam:GetRole", arn("Admin")), False),
        (allow("sts:GetCallerIdentity", arn("Admin")), False),
        (allow("iam:PassRole", arn("Other")), False),
        ({**allow("iam:PassRole", arn("Admin")), "Effect": "Deny"}, False),
        (allow("iam:PassRole", "arn:aws:iam::111122223333:role/elsewhere"), False),
        # roles that administer an account by what made them
        (
            allow(
                "sts:AssumeRole", "arn:aws:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-111122223333-us-east-1"
            ),
            True,
        ),
        (
            allow("sts:AssumeRole", "arn:aws:iam::111122223333:role/cdk-hnb659fds-deploy-role-111122223333-us-east-1"),
            True,
        ),
        (
            allow("sts:AssumeRole", "arn:aws:iam::111122223333:role/cdk-hnb659fds-lookup-role-111122223333-us-east-1"),
            False,
        ),
        (allow("sts:AssumeRole", "arn:aws:iam::444455556666:role/OrganizationAccountAccessRole"), True),
        (allow("sts:AssumeRole", "arn:aws:iam::444455556666:role/OrganizationAccountAccess"), False),
        (allow("sts:AssumeRole", "arn:aws:iam::444455556666:role/AWSControlTowerExecution"), True),
    ],
)
def test_what_leads_to_an_administrator(statement: Body, *, is_edge: bool) -> None:
    found = powerful(Admin=ADMIN, Other=role(), Weak=role(statement))
    assert found == {"Admin", *(["Weak"] if is_edge else [])}


FUNCTION = of("Lambda::Function", Role=arn("Admin"), Code={"ZipFile": "x"})
CODE: list[tuple[Body, str, bool]] = [
    (FUNCTION, "lambda:UpdateFunctionCode", True),
    (FUNCTION, "lambda:UpdateFunctionConfiguration", True),
    (FUNCTION, "lambda:InvokeFunction", False),
    (FUNCTION, "codebuild:StartBuild", False),
    (of("CodeBuild::Project", ServiceRole=arn("Admin")), "codebuild:StartBuild", True),
    (of("CodeBuild::Project", ServiceRole=arn("Admin")), "codebuild:BatchGetBuilds", False),
    (of("StepFunctions::StateMachine", RoleArn=arn("Admin")), "states:UpdateStateMachine", True),
    (of("StepFunctions::StateMachine", RoleArn=arn("Admin")), "states:DescribeStateMachine", False),
    (of("ECS::TaskDefinition", TaskRoleArn=arn("Admin")), "ecs:RunTask", True),
    (of("Glue::Job", Role=arn("Admin")), "glue:UpdateJob", True),
    (of("SageMaker::Cluster", InstanceGroups=[{"ExecutionRole": arn("Admin")}]), "ssm:StartSession", True),
    (of("SageMaker::NotebookInstance", RoleArn=arn("Admin")), "sagemaker:CreatePresignedNotebookInstanceUrl", True),
]


@row_by_row("runner, action, is_edge", CODE)
def test_who_decides_the_code_of_what_acts_as_an_administrator(runner: Body, action: str, *, is_edge: bool) -> None:
    for reference in (arn("Runner"), {"Ref": "Runner"}):
        found = powerful(Admin=ADMIN, Runner=runner, Weak=role(allow(action, reference)))
        assert found == {"Admin", *(["Weak"] if is_edge else [])}


def test_code_without_a_role_is_no_edge() -> None:
    runner = of("Lambda::Function", Role=arn("Other"), Code={"ZipFile": "x"})
    weak = role(allow("lambda:UpdateFunctionCode", arn("Runner")))
    assert powerful(Admin=ADMIN, Other=role(), Runner=runner, Weak=weak) == {"Admin"}


def test_an_instance_acts_as_the_role_of_its_profile() -> None:
    profile = of("IAM::InstanceProfile", Roles=[{"Ref": "Admin"}])
    instance = of("EC2::Instance", IamInstanceProfile={"Ref": "Profile"})
    weak = role(allow("ssm:SendCommand", {"Fn::Sub": "arn:aws:ec2:us-east-1:111122223333:instance/${Runner}"}))
    assert "Weak" in powerful(Admin=ADMIN, Profile=profile, Runner=instance, Weak=weak)


@pytest.mark.parametrize(
    ("principal", "is_edge"),
    [
        ({"AWS": arn("Weak")}, True),
        ({"AWS": arn("Other")}, False),
        ({"Service": "ec2.amazonaws.com"}, False),
    ],
)
def test_whom_an_administrator_trusts_by_name_is_one(principal: Body, *, is_edge: bool) -> None:
    admin = role(trusts=principal, ManagedPolicyArns=[ADMINISTRATOR])
    assert ("Weak" in powerful(Admin=admin, Weak=role(), Other=role())) is is_edge


def test_who_joins_a_group_of_administrators_is_one() -> None:
    group = of("IAM::Group", ManagedPolicyArns=[ADMINISTRATOR])
    user = of("IAM::User")
    joins = of("IAM::UserToGroupAddition", GroupName={"Ref": "Group"}, Users=[{"Ref": "User"}])
    assert {"Group", "User"} <= powerful(Group=group, User=user, Joins=joins)
    assert powerful(Group=of("IAM::Group"), User=user, Joins=joins) == set()


@pytest.mark.parametrize("length", [1, 2, 3, 12])
def test_power_is_followed_however_long_the_chain_and_around_rings(length: int) -> None:
    chain = {f"R{at}": role(allow("iam:PassRole", arn(f"R{at + 1}"))) for at in range(length)}
    assert powerful(**chain, **{f"R{length}": ADMIN}) == {f"R{at}" for at in range(length + 1)}
    # without its end nobody has more than he is given, and a ring of them ends, too
    assert powerful(**chain, **{f"R{length}": role(allow("iam:PassRole", arn("R0")))}) == set()


NAMES = ("A", "B", "C", "D")
EDGES = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=8)


def reachable(edges: set[tuple[str, str]], start: str) -> set[str]:
    found = {start}
    while more := {one for one, other in edges if other in found} - found:
        found |= more
    return found


@given(EDGES, st.sampled_from(NAMES))
def test_powerful_are_all_that_reach_an_administrator(edges: set[tuple[str, str]], admin: str) -> None:
    resources = {
        name: role(
            *(allow("sts:AssumeRole", arn(other)) for one, other in sorted(edges) if one == name),
            **({"ManagedPolicyArns": [ADMINISTRATOR]} if name == admin else {}),
        )
        for name in NAMES
    }
    assert powerful(**resources) == reachable(edges, admin)
