"""Events of a HyperPod cluster: rule, log group, alarm, dashboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from hyperpod_cdk.hyperpod.node_events import NodeEvents
from hyperpod_cdk.templates.cdk_plugin import check_templates

CLUSTER_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    NodeEvents(
        stack,
        "Events",
        cluster_name="prod",
        cluster_arn=cdk.Fn.import_value("cluster-arn"),
        alarm_actions=["arn:aws:sns:us-east-1:111122223333:pager"],
    )
    found: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return found


def one(resources: dict[str, Any], resource_type: str) -> dict[str, Any]:
    (found,) = [each for each in resources.values() if each["Type"] == resource_type]
    return dict(found)


def test_every_event_of_this_cluster_is_kept(resources: dict[str, Any]) -> None:
    rule = one(resources, "AWS::Events::Rule")

    assert rule["Properties"]["EventPattern"] == {
        "source": ["aws.sagemaker"],
        "detail-type": [
            "SageMaker HyperPod Cluster Event",
            "SageMaker HyperPod Cluster State Change",
            "SageMaker HyperPod Cluster Node Health Event",
        ],
        "resources": [
            {"Fn::ImportValue": "cluster-arn"},
            {
                "Fn::Join": [
                    "",
                    [
                        "arn:",
                        {"Ref": "AWS::Partition"},
                        ":sagemaker:",
                        {"Ref": "AWS::Region"},
                        ":",
                        {"Ref": "AWS::AccountId"},
                        ":cluster/prod",
                    ],
                ]
            },
        ],
    }
    (target,) = rule["Properties"]["Targets"]
    assert json.dumps(target["Arn"]).count("EventsLogGroupB009084F") == 1
    assert "RoleArn" not in target, "EventBridge writes to log groups by resource policy"


def test_the_log_group_is_retained_under_a_steady_id(resources: dict[str, Any]) -> None:
    group = resources["EventsLogGroupB009084F"]

    assert (group["DeletionPolicy"], group["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    # with part of the stack's id: a stack of the same name that is made again makes another group
    stack_part = {
        "Fn::Select": [0, {"Fn::Split": ["-", {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}]}]
    }
    properties = {key: value for key, value in group["Properties"].items() if key != "ResourcePolicyDocument"}
    assert properties == {
        "LogGroupName": {"Fn::Join": ["", ["/aws/events/prod-hyperpod-", stack_part]]},
        "RetentionInDays": 365,
    }


def test_eventbridge_writes_by_the_groups_own_policy(resources: dict[str, Any]) -> None:
    # one that is account-wide is one of ten in a region (CloudWatch Logs API reference, PutResourcePolicy)
    assert [each for each in resources.values() if each["Type"] == "AWS::Logs::ResourcePolicy"] == []
    group = resources["EventsLogGroupB009084F"]["Properties"]
    statements = group["ResourcePolicyDocument"]["Statement"]
    resources_ = {_text(statement.pop("Resource")) for statement in statements}
    condition = statements[1].pop("Condition")

    # the rule is named where events are written, and nowhere else (aws-samples/serverless-patterns pull request 618)
    principal = {"Service": ["events.amazonaws.com", "delivery.logs.amazonaws.com"]}
    assert statements == [
        {"Effect": "Allow", "Principal": principal, "Action": ["logs:CreateLogStream"]},
        {"Effect": "Allow", "Principal": principal, "Action": ["logs:PutLogEvents"]},
    ]
    assert resources_ == {"arn:<token>:logs:<token>:<token>:log-group:/aws/events/prod-hyperpod-<token>:*"}
    (source,) = condition.pop("ArnEquals").items()
    assert (source[0], _text(source[1])) == ("aws:SourceArn", "arn:<token>:events:<token>:<token>:rule/prod-hyperpod")
    assert condition == {}


def _text(value: dict[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else "<token>" for part in value["Fn::Join"][1])


def test_info_is_not_counted(resources: dict[str, Any]) -> None:
    filters = {
        each["Properties"]["MetricTransformations"][0]["MetricName"]: each["Properties"]
        for each in resources.values()
        if each["Type"] == "AWS::Logs::MetricFilter"
    }

    assert filters["Errors"]["FilterPattern"] == (
        '{ ($.detail.EventDetails.EventLevel = "Error") || ($.detail.HealthSummary.HealthStatus = "Unhealthy")'
        ' || ($.detail.ClusterStatus = "Failed") || ($.detail.ClusterStatus = "RollingBack") }'
    )
    assert filters["Warnings"]["FilterPattern"] == '{ ($.detail.EventDetails.EventLevel = "Warn") }'
    assert filters["Errors"]["MetricTransformations"] == [
        {"MetricName": "Errors", "MetricNamespace": "HyperPod/prod", "MetricValue": "1", "DefaultValue": 0}
    ]


def test_one_error_raises_the_alarm(resources: dict[str, Any]) -> None:
    alarm = one(resources, "AWS::CloudWatch::Alarm")["Properties"]

    assert alarm == {
        "AlarmName": "prod-hyperpod-events",
        "AlarmDescription": {
            "Fn::Join": [
                "",
                [
                    "HyperPod cluster prod reports errors or unhealthy nodes; see log group ",
                    {"Ref": "EventsLogGroupB009084F"},
                    ": aws logs tail ",
                    {"Ref": "EventsLogGroupB009084F"},
                    " --since 1h --region ",
                    {"Ref": "AWS::Region"},
                ],
            ]
        },
        "AlarmActions": ["arn:aws:sns:us-east-1:111122223333:pager"],
        "Namespace": "HyperPod/prod",
        "MetricName": "Errors",
        "Statistic": "Sum",
        "Period": 300,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "notBreaching",
    }


def test_the_dashboard_is_json_about_this_cluster(resources: dict[str, Any]) -> None:
    dashboard = one(resources, "AWS::CloudWatch::Dashboard")["Properties"]
    named = {"EventsLogGroupB009084F": "the-group", "AWS::Region": "us-east-1"}
    parts = dashboard["DashboardBody"]["Fn::Join"][1]
    body = "".join(part if isinstance(part, str) else named[part["Ref"]] for part in parts)

    metric, log = json.loads(body)["widgets"]
    assert [line[:2] for line in metric["properties"]["metrics"]] == [
        ["HyperPod/prod", "Errors"],
        ["HyperPod/prod", "Warnings"],
    ]
    assert log["properties"]["query"].startswith("SOURCE 'the-group' | fields @timestamp, ")


@pytest.mark.parametrize(("length", "named"), [(55, True), (56, False), (63, False)])
def test_a_rule_whose_name_would_be_too_long_is_named_by_cloudformation(length: int, named: bool) -> None:  # noqa: FBT001 - a table's column
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    NodeEvents(stack, "Events", cluster_name="c" * length, cluster_arn=CLUSTER_ARN)
    rule = one(Template.from_stack(stack).to_json()["Resources"], "AWS::Events::Rule")

    assert ("Name" in rule["Properties"]) is named
    assert len(rule["Properties"].get("Name", "")) <= 64


def test_nothing_but_plain_resources(resources: dict[str, Any]) -> None:
    assert sorted({each["Type"] for each in resources.values()}) == [
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::Events::Rule",
        "AWS::Logs::LogGroup",
        "AWS::Logs::MetricFilter",
    ]


def test_the_template_passes_the_checks(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    NodeEvents(cdk.Stack(app, "foreign"), "Events", cluster_name="prod", cluster_arn=CLUSTER_ARN, retention_days=30)
    app.synth()

    assert check_templates(tmp_path.glob("*.template.json"), region="eu-west-1") == []
