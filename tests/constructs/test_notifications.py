"""The construct for notifications about a cluster: topic, alarms, rules and the function's permissions."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from hyperpod_cdk import EncryptionKey, Notifications
from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.config.notify import EVENTS
from hyperpod_cdk.hyperpod.notifications import SlackChannel
from tests.support.tables import row_by_row

CLUSTER_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
HOME = cdk.Environment(account="111122223333", region="us-east-1")
GROUP = "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:/aws/sagemaker/Clusters/train/*"


def resources(**arguments: Any) -> dict[str, Any]:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign", env=HOME)
    Notifications(stack, "Told", **{"cluster_name": "train", "cluster_arn": CLUSTER_ARN, **arguments})
    found: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return found


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return resources(
        environment_name="prod",
        emails=["a@example.com", "b@example.com"],
        instance_groups=["system", "h100"],
        training_plan_arns=[PLAN, PLAN],
        instance_types=["ml.m5.2xlarge", "ml.p5.48xlarge"],
        spot_instance_types=["ml.g5.12xlarge"],
        file_systems={"scratch": "fs-0a1b2c3d4e5f67890"},
        nodes_missing_minutes=31,
    )


def of_type(found: dict[str, Any], resource_type: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in found.values() if each["Type"] == resource_type]


def test_addresses_are_subscribed_to_a_topic_of_its_own(whole: dict[str, Any]) -> None:
    (topic,) = [name for name, each in whole.items() if each["Type"] == "AWS::SNS::Topic"]
    assert of_type(whole, "AWS::SNS::Subscription") == [
        {"TopicArn": {"Ref": topic}, "Protocol": "email", "Endpoint": address}
        for address in ("a@example.com", "b@example.com")
    ]


def test_only_this_accounts_alarms_of_the_cluster_publish_and_nobody_without_tls(whole: dict[str, Any]) -> None:
    (policy,) = of_type(whole, "AWS::SNS::TopicPolicy")
    allowed, denied = policy["PolicyDocument"]["Statement"]
    assert (allowed["Effect"], allowed["Principal"], allowed["Action"]) == (
        "Allow",
        {"Service": "cloudwatch.amazonaws.com"},
        "sns:Publish",
    )
    assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}
    source = allowed["Condition"]["ArnLike"]["aws:SourceArn"]["Fn::Join"][1]
    assert "".join(part if isinstance(part, str) else f"<{part['Ref']}>" for part in source) == (
        "arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>:alarm:train-hyperpod-*"
    )
    assert (denied["Effect"], denied["Principal"], denied["Condition"]) == (
        "Deny",
        "*",
        {"Bool": {"aws:SecureTransport": "false"}},
    )


def test_every_alarm_publishes_under_a_name_that_the_topic_takes(whole: dict[str, Any]) -> None:
    alarms = of_type(whole, "AWS::CloudWatch::Alarm")
    (topic,) = [name for name, each in whole.items() if each["Type"] == "AWS::SNS::Topic"]
    assert [each["AlarmActions"] for each in alarms] == [[{"Ref": topic}]] * len(alarms)
    assert sorted(each["AlarmName"] for each in alarms) == [
        "train-hyperpod-file-system-scratch-full",
        "train-hyperpod-file-system-scratch-target-full",
        "train-hyperpod-nodes-missing-h100",
        "train-hyperpod-nodes-missing-system",
        "train-hyperpod-notifications",
        "train-hyperpod-quota-ml.m5.2xlarge",
        "train-hyperpod-quota-ml.p5.48xlarge",
        "train-hyperpod-quota-spot-ml.g5.12xlarge",
    ]


def test_an_alarm_says_what_where_and_the_command_to_look(whole: dict[str, Any]) -> None:
    said = {each["AlarmName"]: each["AlarmDescription"] for each in of_type(whole, "AWS::CloudWatch::Alarm")}
    assert said["train-hyperpod-nodes-missing-h100"] == (
        "In environment prod, cluster train, account 111122223333, region us-east-1: group h100 has had fewer nodes"
        " than requested for 35 minutes. Look: aws sagemaker list-cluster-nodes --cluster-name train"
        " --instance-group-name-contains h100 --region us-east-1"
    )
    assert said["train-hyperpod-file-system-scratch-target-full"] == (
        "In environment prod, cluster train, account 111122223333, region us-east-1: a storage target of file system"
        " scratch is 85 % full. Look: aws fsx describe-file-systems --file-system-ids fs-0a1b2c3d4e5f67890"
        " --region us-east-1; lfs df -h where it is mounted"
    )
    assert said["train-hyperpod-quota-ml.p5.48xlarge"] == (
        "In environment prod, cluster train, account 111122223333, region us-east-1: the account's HyperPod"
        " clusters use at least 80 % of the quota ml.p5.48xlarge for cluster usage; if this alarm has insufficient"
        " data, the usage is not known. Look: hyperpod-cdk quotas show prod"
    )


def test_file_systems_are_measured_as_a_whole_and_by_their_fullest_target(whole: dict[str, Any]) -> None:
    queries = {
        each["Threshold"]: each["Metrics"][0]["Expression"]
        for each in of_type(whole, "AWS::CloudWatch::Alarm")
        if "Metrics" in each
    }
    series = "SCHEMA(\"AWS/FSx\", FileSystemId, StorageTargetId) WHERE FileSystemId = 'fs-0a1b2c3d4e5f67890'"
    assert queries == {
        75: f"SELECT AVG(StorageCapacityUtilization) FROM {series}",  # noqa: S608 - CloudWatch's
        85: f"SELECT MAX(StorageCapacityUtilization) FROM {series}",  # noqa: S608 - as above
    }


def test_what_is_unknown_is_never_ok(whole: dict[str, Any]) -> None:
    """Missing data: nodes keep their state while nobody looks, which the function's own alarm tells; else no data."""
    alarms = {
        each["AlarmName"].removeprefix("train-hyperpod-"): each for each in of_type(whole, "AWS::CloudWatch::Alarm")
    }
    assert {name: each["TreatMissingData"] for name, each in alarms.items()} == {
        "file-system-scratch-full": "missing",
        "file-system-scratch-target-full": "missing",
        "nodes-missing-h100": "ignore",
        "nodes-missing-system": "ignore",
        "notifications": "missing",
        "quota-ml.m5.2xlarge": "missing",
        "quota-ml.p5.48xlarge": "missing",
        "quota-spot-ml.g5.12xlarge": "missing",
    }
    for name in ("notifications", "quota-ml.p5.48xlarge"):
        assert alarms[name]["InsufficientDataActions"] == alarms[name]["AlarmActions"]


def test_minutes_are_rounded_up_to_looks(whole: dict[str, Any]) -> None:
    (alarm,) = [each for each in of_type(whole, "AWS::CloudWatch::Alarm") if "nodes-missing-h100" in each["AlarmName"]]
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["Statistic"]) == (300, 7, "Minimum")


def test_the_function_may_do_what_its_events_need_and_nothing_else(whole: dict[str, Any]) -> None:
    (role,) = of_type(whole, "AWS::IAM::Role")
    statements = role["Policies"][0]["PolicyDocument"]["Statement"]
    assert [each["Action"] for each in statements] == [
        ["sns:Publish"],
        ["logs:CreateLogStream", "logs:PutLogEvents"],
        [
            "sagemaker:ListClusters",
            "servicequotas:GetAWSDefaultServiceQuota",
            "servicequotas:GetServiceQuota",
            "servicequotas:ListAWSDefaultServiceQuotas",
            "servicequotas:ListServiceQuotas",
        ],
        ["sagemaker:DescribeCluster"],
        ["cloudwatch:PutMetricData"],
        ["logs:FilterLogEvents"],
        ["sagemaker:DescribeTrainingPlan"],
    ]
    assert statements[4]["Condition"] == {"StringEquals": {"cloudwatch:namespace": "HyperPod/train"}}
    assert statements[6]["Resource"] == [PLAN]


def test_without_quotas_the_function_sees_its_own_cluster_alone() -> None:
    (role,) = of_type(resources(events=["nodes_missing", "quota_used"], instance_groups=["a"]), "AWS::IAM::Role")
    statements = role["Policies"][0]["PolicyDocument"]["Statement"]
    assert [each["Resource"] for each in statements if each["Action"] == ["sagemaker:DescribeCluster"]] == [
        [CLUSTER_ARN]
    ]
    assert "servicequotas" not in json.dumps(statements)


def test_the_metric_that_the_function_writes_is_the_one_of_the_alarm(whole: dict[str, Any]) -> None:
    alarms = {each["AlarmName"]: each for each in of_type(whole, "AWS::CloudWatch::Alarm")}
    alarm = alarms["train-hyperpod-quota-spot-ml.g5.12xlarge"]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Threshold"]) == ("HyperPod/train", "QuotaUsedPercent", 80)
    assert alarm["Dimensions"] == [{"Name": "Quota", "Value": "ml.g5.12xlarge for cluster spot instance usage"}]
    (function,) = of_type(whole, "AWS::Lambda::Function")
    settings = json.dumps(function["Environment"]).replace("\\", "")
    assert '"name":"ml.g5.12xlarge for cluster spot instance usage"' in settings
    assert '"use":"hyperpod_spot_instances:ml.g5.12xlarge"' in settings


def test_both_rules_may_invoke_the_function(whole: dict[str, Any]) -> None:
    rules = {name: each["Properties"] for name, each in whole.items() if each["Type"] == "AWS::Events::Rule"}
    assert [each.get("ScheduleExpression") for each in rules.values()] == [None, "rate(5 minutes)"]
    permissions = of_type(whole, "AWS::Lambda::Permission")
    assert [each["SourceArn"]["Fn::GetAtt"][0] for each in permissions] == list(rules)
    assert {each["Principal"] for each in permissions} == {"events.amazonaws.com"}


def test_a_topic_that_exists_is_used_and_left_as_it_is() -> None:
    arn = "arn:aws:sns:us-east-1:111122223333:pager"
    found = resources(topic_arn=arn)
    assert of_type(found, "AWS::SNS::Topic") == []
    assert of_type(found, "AWS::SNS::TopicPolicy") == []
    (alarm,) = of_type(found, "AWS::CloudWatch::Alarm")
    assert alarm["AlarmActions"] == [arn]


def test_a_key_of_its_own_lets_in_who_publishes() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign", env=HOME)
    key = EncryptionKey(stack, "Key", alias="alias/told")
    Notifications(stack, "Told", cluster_name="train", cluster_arn=CLUSTER_ARN, topic_key=key, monthly_budget_usd=100)
    found = Template.from_stack(stack).to_json()["Resources"]
    ((name, made),) = [(name, each) for name, each in found.items() if each["Type"] == "AWS::KMS::Key"]
    arn = {"Fn::GetAtt": [name, "Arn"]}
    (topic,) = of_type(found, "AWS::SNS::Topic")
    assert topic["KmsMasterKeyId"] == arn
    _, *publishers = made["Properties"]["KeyPolicy"]["Statement"]
    assert publishers == [
        {
            "Effect": "Allow",
            "Principal": {"Service": f"{service}.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
        }
        for service in ("cloudwatch", "budgets")
    ]
    policies = [each["Policies"][0]["PolicyDocument"]["Statement"] for each in of_type(found, "AWS::IAM::Role")]
    (function,) = [each for each in policies if {"Action": ["sns:Publish"]}.items() <= each[0].items()]
    assert {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey*"], "Resource": [arn]} in function


def test_a_key_beside_a_topic_that_exists() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign", env=HOME)
    key = EncryptionKey(stack, "Key")
    said = "topic_key: cannot be set together with topic_arn, a topic that is not changed; remove topic_key, and"
    topic = "arn:aws:sns:us-east-1:111122223333:on-call"
    with pytest.raises(ValueError, match="topic_key") as caught:
        Notifications(stack, "Told", cluster_name="a", cluster_arn=CLUSTER_ARN, topic_arn=topic, topic_key=key)
    assert str(caught.value) == f"{said} set the key on that topic itself"


def test_a_channel_gets_messages_and_may_ask_nothing() -> None:
    found = resources(slack=SlackChannel(workspace_id="T0123ABCD", channel_id="C0123ABCD"))
    (channel,) = of_type(found, "AWS::Chatbot::SlackChannelConfiguration")
    (topic,) = [name for name, each in found.items() if each["Type"] == "AWS::SNS::Topic"]
    (role,) = [each for each in of_type(found, "AWS::IAM::Role") if "Slack" in each["Description"]]
    assert channel["SnsTopicArns"] == [{"Ref": topic}]
    assert (channel["SlackWorkspaceId"], channel["SlackChannelId"]) == ("T0123ABCD", "C0123ABCD")
    assert channel["GuardrailPolicies"][0]["Fn::Join"][1][-1] == ":iam::aws:policy/CloudWatchReadOnlyAccess"
    assert role.keys() & {"Policies", "ManagedPolicyArns"} == set()
    (function,) = of_type(found, "AWS::Lambda::Function")
    assert '"chat":true' in json.dumps(function["Environment"]).replace("\\", "")


def test_a_budget_notifies_the_topic_and_can_take_anothers_place() -> None:
    found = resources(monthly_budget_usd=50000)
    (budget,) = of_type(found, "AWS::Budgets::Budget")
    (topic,) = [name for name, each in found.items() if each["Type"] == "AWS::SNS::Topic"]
    assert budget["Budget"] == {
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": 50000, "Unit": "USD"},
        "CostFilters": {"Region": ["us-east-1"]},
    }
    assert [
        (each["Notification"]["NotificationType"], each["Notification"]["Threshold"], each["Subscribers"])
        for each in budget["NotificationsWithSubscribers"]
    ] == [
        (kind, percent, [{"SubscriptionType": "SNS", "Address": {"Ref": topic}}])
        for kind, percent in (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))
    ]
    (policy,) = of_type(found, "AWS::SNS::TopicPolicy")
    by_sid = {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}
    assert by_sid["Budgets"]["Principal"] == {"Service": "budgets.amazonaws.com"}
    assert by_sid["Budgets"]["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}


def test_a_bus_gets_alarms_by_a_rule_and_messages_from_the_function() -> None:
    bus = "arn:aws:events:us-east-1:111122223333:event-bus/ml"
    found = resources(event_bus_arn=bus)
    (rule,) = [each for each in of_type(found, "AWS::Events::Rule") if each["Targets"][0]["Id"] == "Bus"]
    assert rule["EventPattern"]["detail-type"] == ["CloudWatch Alarm State Change"]
    assert rule["Targets"][0]["Arn"] == bus
    roles = of_type(found, "AWS::IAM::Role")
    allowed = [each for role in roles for each in role["Policies"][0]["PolicyDocument"]["Statement"]]
    assert [each["Resource"] for each in allowed if each["Action"] == ["events:PutEvents"]] == [[bus], [bus]]


@row_by_row("event", EVENTS)
def test_one_event_makes_only_what_it_needs(event: Any) -> None:
    found = resources(events=[event], instance_groups=["a"], file_systems={"b": "fs-0a1b2c3d4e5f67890"})
    functions, alarms = of_type(found, "AWS::Lambda::Function"), of_type(found, "AWS::CloudWatch::Alarm")
    names = sorted(each["AlarmName"].removeprefix("train-hyperpod-") for each in alarms)
    of_the_function = ["notifications"]
    assert (len(functions), names) == {
        "cluster_error": (0, []),
        "file_system_full": (0, ["file-system-b-full", "file-system-b-target-full"]),
        "nodes_missing": (1, ["nodes-missing-a", "notifications"]),
    }.get(event, (1, of_the_function))


def test_settings_of_the_function_fit_its_variables() -> None:
    """Lambda takes 4 KB of variables (Lambda developer guide, quotas), enough for the ARNs of twenty plans."""
    plans = [f"{PLAN}-{number:02}-{'x' * 40}" for number in range(20)]
    (function,) = of_type(resources(training_plan_arns=plans), "AWS::Lambda::Function")
    assert len(json.dumps(function["Environment"])) < 4096


@row_by_row(
    "arguments, said",
    [
        ({"emails": ["nobody"]}, "emails[0]: must be an e-mail address"),
        ({"emails": ["a@example.com", "a@example.com"]}, "emails[1]: must be named once, got a@example.com again"),
        ({"events": ["nodes_mising"]}, "events[0]: must be node_unhealthy"),
        ({"nodes_missing_minutes": 1441}, "nodes_missing_minutes: must be at most 1440, got 1441"),
        (
            {"instance_types": ["ml.p5.48xlarg"]},
            (
                f"instance_types: must be a HyperPod instance type known on {instance_types.as_of()}, got "
                '"ml.p5.48xlarg"; did you mean ml.p5.48xlarge? If not, pass an InstanceType with its numbers'
            ),
        ),
        ({"spot_instance_types": ["hopper"]}, "spot_instance_types: must be a HyperPod instance type known on"),
        ({"quota_percent": 101}, "quota_percent: must be at most 100, got 101"),
        ({"storage_target_percent": 0}, "storage_target_percent: must be at least 1, got 0"),
        (
            {"topic_arn": "arn:aws:sns:eu-west-1:111122223333:pager"},
            (
                "topic_arn: must be a topic of us-east-1, where the cluster and its alarms are, got"
                " arn:aws:sns:eu-west-1:111122223333:pager; name one of us-east-1"
            ),
        ),
        (
            {"event_bus_arn": "arn:aws:events:us-east-1:111122223333:event-bus/default"},
            "event_bus_arn: must be another bus than the account's default one",
        ),
        ({"monthly_budget_usd": 0}, "monthly_budget_usd: must be at least 1, got 0"),
        (
            {"topic_arn": "arn:aws:sns:us-east-1:444455556666:pager", "monthly_budget_usd": 9},
            "monthly_budget_usd: needs a topic of account 111122223333, because a budget cannot publish to another",
        ),
        ({"topic_arn": "pager"}, "topic_arn: must be the ARN of an SNS topic"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is compared below
        resources(**arguments)
    assert str(refused.value).startswith(said)


def test_what_can_be_no_channel_is_refused() -> None:
    with pytest.raises(ValueError, match="workspace_id: must be the ID of a Slack workspace"):
        SlackChannel(workspace_id="C0123ABCD", channel_id="C0123ABCD")
