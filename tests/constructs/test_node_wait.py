"""Waiting for nodes: what the custom resource asks for, what its function may do, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from hyperpod_cdk import AwaitedGroup, NodesReady, NodeWaiter
from hyperpod_cdk.handlers.node_wait.index import Question
from hyperpod_cdk.templates.cdk_plugin import check_templates
from tests.support.templates import app, of_type, stack, template_of

CLUSTER = "arn:aws-cn:sagemaker:cn-north-1:111122223333:cluster/abcdef012345"
SYSTEM = AwaitedGroup(name="system", count=2)
H100 = AwaitedGroup(name="h100", count=4, expected=False)
READY = "Custom::HyperPodNodesReady"


def ready(scope: cdk.Stack, *groups: AwaitedGroup, **rest: Any) -> NodesReady:
    return NodesReady(scope, "Nodes", cluster_arn=CLUSTER, groups=groups or (SYSTEM, H100), **rest)


def only(template: dict[str, Any], resource_type: str) -> dict[str, Any]:
    (found,) = of_type(template, resource_type).values()
    return found


def test_the_function_reads_what_the_construct_writes() -> None:
    scope = stack()
    ready(scope)
    properties = only(template_of(scope), READY)["Properties"]
    assert {key: properties[key] for key in ("ServiceTimeout", "TimeoutSeconds")} == {
        "ServiceTimeout": 2040,
        "TimeoutSeconds": 1800,
    }
    text = {**properties, "Groups": [{key: str(value) for key, value in each.items()} for each in properties["Groups"]]}
    for each in text["Groups"]:
        each["Expected"] = each["Expected"].lower()
    question = Question.of(text)
    assert (question.cluster, question.nodes, question.seconds) == (CLUSTER, 1, 1800)
    assert [(group.name, group.count) for group in question.groups] == [("system", 2), ("h100", 4)]
    assert [group.name for group in question.awaited] == ["system"]


@pytest.mark.parametrize(
    ("groups", "minutes", "seconds"), [((SYSTEM,), None, 1800), ((H100,), None, 3300), ((H100,), 5, 300)]
)
def test_the_limit_suits_the_groups(groups: tuple[AwaitedGroup, ...], minutes: int | None, seconds: int) -> None:
    scope = stack()
    ready(scope, *groups, timeout_minutes=minutes)
    properties = only(template_of(scope), READY)["Properties"]
    assert properties["TimeoutSeconds"] == seconds
    assert seconds < properties["ServiceTimeout"] <= 3600


def test_the_function_reads_clusters_and_goes_on_by_itself() -> None:
    scope = stack()
    ready(scope)
    template = template_of(scope)
    (policy,) = only(template, "AWS::IAM::Role")["Properties"]["Policies"]
    assert [statement["Action"] for statement in policy["PolicyDocument"]["Statement"]] == [
        [
            "sagemaker:DescribeCluster",
            "sagemaker:DescribeClusterEvent",
            "sagemaker:ListClusterEvents",
            "sagemaker:ListClusterNodes",
        ],
        ["cloudformation:DescribeStacks"],
        ["logs:CreateLogStream", "logs:PutLogEvents"],
    ]
    (function,) = of_type(template, "AWS::Lambda::Function")
    ((own_policy, further),) = of_type(template, "AWS::IAM::RolePolicy").items()
    assert further["Properties"]["PolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": ["lambda:InvokeFunction"], "Resource": [{"Fn::GetAtt": [function, "Arn"]}]}
    ]
    assert own_policy in only(template, READY)["DependsOn"]


def test_one_function_serves_other_stacks_too() -> None:
    application = app()
    home, first = cdk.Stack(application, "home"), cdk.Stack(application, "first")
    waiter = NodeWaiter(home, "Waiter", stack_names=[first.stack_name])
    ready(first, waiter=waiter)
    template = template_of(first)
    assert first.dependencies == [home]
    assert of_type(template, "AWS::Lambda::Function") == {}
    assert "Fn::ImportValue" in str(only(template, READY)["Properties"]["ServiceToken"])


def test_what_needs_a_node_depends_on_it() -> None:
    scope = stack()
    nodes = ready(scope)
    s3.CfnBucket(scope, "NeedsNode").node.add_dependency(nodes)
    cdk.CfnOutput(scope, "Out", value=f"{nodes.running_nodes} {nodes.groups}")
    template = template_of(scope)
    (name,) = of_type(template, READY)
    assert name in only(template, "AWS::S3::Bucket")["DependsOn"]
    assert template["Outputs"]["Out"]["Value"] == {
        "Fn::Join": ["", [{"Fn::GetAtt": [name, "RunningNodes"]}, " ", {"Fn::GetAtt": [name, "Groups"]}]]
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"groups": []},
            "groups: must name instance groups whose nodes can run add-on pods, got none; leave out the wait",
        ),
        (
            {"groups": [AwaitedGroup(name="spot", count=0)]},
            "groups: must have nodes, got 0 for spot; leave out groups without nodes",
        ),
        ({"nodes": 0}, "nodes: must be between 1 and the 6 of the groups, got 0; leave it out for 1"),
        ({"nodes": 7}, "nodes: must be between 1 and the 6 of the groups, got 7; leave it out for 1"),
        ({"timeout_minutes": 4}, "timeout_minutes must be at least 5, got 4; set timeout_minutes to 5 or more"),
        ({"timeout_minutes": 56}, "timeout_minutes must be at most 55, got 56; set timeout_minutes to 55 or less"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="must") as caught:
        NodesReady(stack(), "Nodes", **{"cluster_arn": CLUSTER, "groups": [SYSTEM, H100], **arguments})
    assert str(caught.value) == message


def test_neither_cdk_nag_nor_the_template_checks_find_anything(tmp_path: Path) -> None:
    made = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    ready(stack("foreign", made))
    cdk.Validations.of(made).add_plugins(AwsSolutionsChecks(made))
    made.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text(encoding="utf-8"))
    assert [each for plugin in report["pluginReports"] for each in plugin["violations"]] == []
    assert check_templates([tmp_path / "foreign.template.json"], region="us-east-1") == []
