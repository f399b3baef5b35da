"""Logs, keys, parameters, events, alarms, topics, queues and repositories, seen through their own operations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError


def delete_twice(stack: Any, *made: Any) -> None:
    for resource in made:
        stack.delete(resource.physical_id)
        stack.delete(resource.physical_id)


class TestLogs:
    def test_a_log_group(self, stack: Any) -> None:
        logs = stack.context.client("logs")
        made = stack.create(
            "AWS::Logs::LogGroup",
            {
                "LogGroupName": "/aws/eks/prod-eks/cluster",
                "RetentionInDays": "30",
                "Tags": [{"Key": "a", "Value": "b"}],
            },
        )
        assert made.attributes == {"Arn": "arn:aws:logs:us-east-1:123456789012:log-group:/aws/eks/prod-eks/cluster:*"}
        [seen] = logs.describe_log_groups()["logGroups"]
        assert seen["retentionInDays"] == 30
        stack.update(made.physical_id, RetentionInDays=None)
        assert "retentionInDays" not in logs.describe_log_groups()["logGroups"][0]
        with pytest.raises(HandlerError) as error:
            stack.create("AWS::Logs::LogGroup", {"LogGroupName": "/aws/eks/prod-eks/cluster"})
        assert error.value.message == (
            "Resource of type 'AWS::Logs::LogGroup' with identifier "
            '\'{"/properties/LogGroupName":"/aws/eks/prod-eks/cluster"}\' already exists.'
        )
        delete_twice(stack, made)

    def test_a_stream_a_filter_and_a_policy(self, stack: Any) -> None:
        logs = stack.context.client("logs")
        group = stack.create("AWS::Logs::LogGroup", {}, "Nodes")
        stream = stack.create("AWS::Logs::LogStream", {"LogGroupName": group.physical_id, "LogStreamName": "s"})
        metric = {"MetricName": "Faults", "MetricNamespace": "HyperPod", "MetricValue": "1", "DefaultValue": 0}
        metric_filter = stack.create(
            "AWS::Logs::MetricFilter",
            {
                "LogGroupName": group.physical_id,
                "FilterPattern": "{ $.fault = * }",
                "MetricTransformations": [metric | {"Dimensions": None}],
            },
        )
        [seen] = logs.describe_metric_filters(logGroupName=group.physical_id)["metricFilters"]
        assert seen["filterName"] == metric_filter.physical_id
        assert seen["metricTransformations"][0]["metricName"] == "Faults"
        # what is put under its name takes its place
        put = {each: seen[each] for each in ("filterName", "logGroupName", "metricTransformations")}
        logs.put_metric_filter(**put, filterPattern="other")
        [seen] = logs.describe_metric_filters(logGroupName=group.physical_id)["metricFilters"]
        assert seen["filterPattern"] == "other"
        policy = stack.create(
            "AWS::Logs::ResourcePolicy", {"PolicyName": "events", "PolicyDocument": json.dumps({"Statement": []})}
        )
        assert [row["policyName"] for row in logs.describe_resource_policies()["resourcePolicies"]] == ["events"]
        delete_twice(stack, policy, metric_filter, stream, group)

    @pytest.mark.parametrize(
        ("action", "principal"),
        [
            ("logs:DeleteLogGroup", {"Service": "events.amazonaws.com"}),
            ("logs:*", {"Service": "events.amazonaws.com"}),
            ("logs:PutLogEvents", {"AWS": "arn:aws:iam::123456789012:root"}),
            ("logs:PutLogEvents", "*"),
        ],
    )
    def test_a_groups_own_policy_lets_services_write_and_nothing_else(
        self, stack: Any, action: str, principal: Any
    ) -> None:
        # CloudWatch Logs API reference, PutResourcePolicy: supported actions and principals
        statement = {"Effect": "Allow", "Principal": principal, "Action": action, "Resource": "*"}
        with pytest.raises(HandlerError, match="policyDocument"):
            stack.create("AWS::Logs::LogGroup", {"ResourcePolicyDocument": {"Statement": [statement]}}, "Events")

    def test_the_policies_of_groups_are_not_counted_with_the_accounts_ten(self, stack: Any) -> None:
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": "*",
        }
        text = json.dumps({"Statement": [statement]})
        for number in range(10):
            name = f"p{number}"
            stack.create("AWS::Logs::ResourcePolicy", {"PolicyName": name, "PolicyDocument": text}, name)
        with pytest.raises(ClientError, match="LimitExceededException"):
            stack.create("AWS::Logs::ResourcePolicy", {"PolicyName": "p10", "PolicyDocument": text}, "P10")
        group = stack.create("AWS::Logs::LogGroup", {"ResourcePolicyDocument": json.loads(text)}, "Events")
        logs = stack.context.client("logs")
        (row,) = logs.describe_log_groups()["logGroups"]
        asked = {"policyScope": "RESOURCE", "resourceArn": row["logGroupArn"]}
        (policy,) = logs.describe_resource_policies(**asked)["resourcePolicies"]
        assert json.loads(policy["policyDocument"]) == json.loads(text)
        stack.update(group.physical_id, ResourcePolicyDocument=None)
        assert logs.describe_resource_policies(**asked)["resourcePolicies"] == []
        assert len(stack.context.client("logs").describe_resource_policies()["resourcePolicies"]) == 10

    def test_a_filter_needs_its_group(self, stack: Any) -> None:
        properties = {"LogGroupName": "absent", "FilterPattern": "", "MetricTransformations": []}
        with pytest.raises(HandlerError) as error:
            stack.create("AWS::Logs::MetricFilter", properties)
        assert error.value.message == "The specified log group does not exist."


def test_a_key_and_its_alias(stack: Any) -> None:
    kms = stack.context.client("kms")
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "kms:*", "Resource": "*"}],
    }
    key = stack.create("AWS::KMS::Key", {"KeyPolicy": policy, "EnableKeyRotation": "true", "Description": "secrets"})
    alias = stack.create("AWS::KMS::Alias", {"AliasName": "alias/secrets", "TargetKeyId": key.attributes["Arn"]})
    assert kms.describe_key(KeyId="alias/secrets")["KeyMetadata"]["KeyId"] == key.physical_id
    assert kms.get_key_rotation_status(KeyId=key.physical_id)["KeyRotationEnabled"]
    stack.update(key.physical_id, EnableKeyRotation=False, Enabled=False)
    assert not kms.get_key_rotation_status(KeyId=key.physical_id)["KeyRotationEnabled"]
    assert not kms.describe_key(KeyId=key.physical_id)["KeyMetadata"]["Enabled"]
    delete_twice(stack, alias, key)
    assert kms.describe_key(KeyId=key.physical_id)["KeyMetadata"]["KeyState"] == "PendingDeletion"


def test_a_parameter(stack: Any) -> None:
    ssm = stack.context.client("ssm")
    made = stack.create("AWS::SSM::Parameter", {"Name": "/cdk/version", "Type": "String", "Value": "21"})
    assert made.attributes["Arn"] == "arn:aws:ssm:us-east-1:123456789012:parameter/cdk/version"
    stack.update("/cdk/version", Value="22")
    assert ssm.get_parameter(Name="/cdk/version")["Parameter"]["Value"] == "22"
    named = stack.create("AWS::SSM::Parameter", {"Type": "String", "Value": "x"}, "Answer")
    assert named.physical_id.startswith("CFN-Answer-")
    with pytest.raises(ClientError):
        stack.create("AWS::SSM::Parameter", {"Name": "/cdk/version", "Type": "String", "Value": "1"})
    delete_twice(stack, made, named)


def test_a_rule_and_its_targets(stack: Any) -> None:
    events = stack.context.client("events")

    def target(name: str) -> dict[str, str]:
        return {"Id": name, "Arn": f"arn:aws:logs:us-east-1:123456789012:log-group:{name}"}

    rule = stack.create(
        "AWS::Events::Rule",
        {"EventPattern": {"source": ["aws.sagemaker"]}, "Targets": [target("a"), target("b")]},
        "NodeEvents",
    )
    assert rule.attributes["RuleName"] == rule.physical_id
    seen = events.describe_rule(Name=rule.physical_id)
    assert json.loads(seen["EventPattern"]) == {"source": ["aws.sagemaker"]}
    stack.update(rule.physical_id, Targets=[target("b")], State="DISABLED")
    assert [row["Id"] for row in events.list_targets_by_rule(Rule=rule.physical_id)["Targets"]] == ["b"]
    assert events.describe_rule(Name=rule.physical_id)["State"] == "DISABLED"
    delete_twice(stack, rule)
    assert events.list_rules()["Rules"] == []


def test_alarms_and_a_dashboard(stack: Any) -> None:
    cloudwatch = stack.context.client("cloudwatch")
    alarm = stack.create(
        "AWS::CloudWatch::Alarm",
        {
            "MetricName": "Faults",
            "Namespace": "HyperPod",
            "Statistic": "Sum",
            "Period": "60",
            "EvaluationPeriods": 1,
            "Threshold": "1",
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "notBreaching",
        },
        "NodeDeficit",
    )
    assert alarm.attributes["Arn"].endswith(f":alarm:{alarm.physical_id}")
    stack.update(alarm.physical_id, Threshold=2)
    assert [row["Threshold"] for row in cloudwatch.describe_alarms()["MetricAlarms"]] == [2.0]
    tags = [{"Key": "team", "Value": "ml"}]
    dashboard = stack.create(
        "AWS::CloudWatch::Dashboard", {"DashboardName": "d", "DashboardBody": '{"widgets": []}', "Tags": tags}
    )
    seen = cloudwatch.get_dashboard(DashboardName="d")
    assert seen["DashboardBody"] == '{"widgets": []}'
    assert cloudwatch.list_tags_for_resource(ResourceARN=seen["DashboardArn"])["Tags"] == tags
    stack.update("d", Tags=None)
    assert cloudwatch.list_tags_for_resource(ResourceARN=seen["DashboardArn"])["Tags"] == []
    delete_twice(stack, dashboard, alarm)
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []


def test_topics_and_queues(stack: Any) -> None:
    sns, sqs = stack.context.client("sns"), stack.context.client("sqs")
    queue = stack.create("AWS::SQS::Queue", {"VisibilityTimeout": 60, "SqsManagedSseEnabled": True}, "Events")
    assert queue.attributes["QueueUrl"] == queue.physical_id
    topic = stack.create("AWS::SNS::Topic", {"DisplayName": "nodes"}, "Alarms")
    subscription = stack.create(
        "AWS::SNS::Subscription",
        {
            "TopicArn": topic.physical_id,
            "Protocol": "sqs",
            "Endpoint": queue.attributes["Arn"],
            "RawMessageDelivery": True,
        },
    )
    policy = {"Version": "2012-10-17", "Statement": []}
    queue_policy = stack.create("AWS::SQS::QueuePolicy", {"Queues": [queue.physical_id], "PolicyDocument": policy})
    topic_policy = stack.create("AWS::SNS::TopicPolicy", {"Topics": [topic.physical_id], "PolicyDocument": policy})
    assert json.loads(sns.get_topic_attributes(TopicArn=topic.physical_id)["Attributes"]["Policy"]) == policy
    stack.update(topic.physical_id, DisplayName="faults")
    assert sns.get_topic_attributes(TopicArn=topic.physical_id)["Attributes"]["DisplayName"] == "faults"
    stack.update(queue.physical_id, VisibilityTimeout=90)
    attributes = sqs.get_queue_attributes(QueueUrl=queue.physical_id, AttributeNames=["All"])["Attributes"]
    assert attributes["VisibilityTimeout"] == "90"
    assert [row["Endpoint"] for row in sns.list_subscriptions()["Subscriptions"]] == [queue.attributes["Arn"]]
    delete_twice(stack, topic_policy, queue_policy, subscription, topic, queue)
    assert sns.list_topics()["Topics"] == []


def test_a_repository(stack: Any) -> None:
    ecr = stack.context.client("ecr")
    lifecycle = {
        "rules": [
            {
                "rulePriority": 1,
                "selection": {
                    "tagStatus": "untagged",
                    "countType": "sinceImagePushed",
                    "countUnit": "days",
                    "countNumber": 365,
                },
                "action": {"type": "expire"},
            }
        ]
    }
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "LambdaECRImageRetrievalPolicy",
                "Effect": "Allow",
                "Principal": {"Service": "lambda.amazonaws.com"},
                "Action": ["ecr:BatchGetImage"],
            }
        ],
    }
    made = stack.create(
        "AWS::ECR::Repository",
        {
            "RepositoryName": "cdk-assets",
            "ImageTagMutability": "IMMUTABLE",
            "LifecyclePolicy": {"LifecyclePolicyText": json.dumps(lifecycle)},
            "RepositoryPolicyText": policy,
        },
    )
    [seen] = ecr.describe_repositories()["repositories"]
    assert made.attributes == {"Arn": seen["repositoryArn"], "RepositoryUri": seen["repositoryUri"]}
    assert seen["imageTagMutability"] == "IMMUTABLE"
    stack.update("cdk-assets", LifecyclePolicy=None, ImageTagMutability="MUTABLE")
    with pytest.raises(ClientError):
        ecr.get_lifecycle_policy(repositoryName="cdk-assets")
    delete_twice(stack, made)


@pytest.mark.parametrize(
    ("tier", "length", "said"),
    [
        ({}, 4096, ""),
        ({}, 4097, "Standard tier parameters support a maximum parameter value of 4096 characters."),
        ({"Tier": "Advanced"}, 8192, ""),
        ({"Tier": "Advanced"}, 8193, "Advanced tier parameters support a maximum parameter value of 8192 characters."),
        ({"Tier": "Intelligent-Tiering"}, 8192, ""),
    ],
)
def test_a_parameter_holds_as_much_as_its_tier(stack: Any, tier: dict[str, str], length: int, said: str) -> None:
    stated = {"Type": "String", "Value": "x" * length, **tier}
    if not said:
        assert stack.create("AWS::SSM::Parameter", stated).attributes["Value"] == stated["Value"]
        return
    with pytest.raises(HandlerError) as error:
        stack.create("AWS::SSM::Parameter", stated)
    assert error.value.message.startswith(said)
    made = stack.create("AWS::SSM::Parameter", {**stated, "Value": "short"})
    with pytest.raises(HandlerError):
        stack.update(made.physical_id, Value=stated["Value"])
