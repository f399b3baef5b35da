"""An alarm publishes its new state to topics whose policies allow CloudWatch to publish."""

from __future__ import annotations

import json
from typing import Any

import pytest

ACCOUNT = "123456789012"


def statement(**more: Any) -> dict[str, Any]:
    service = {"Service": "cloudwatch.amazonaws.com"}
    return {"Effect": "Allow", "Principal": service, "Action": "sns:Publish", "Resource": "*", **more}


def from_account(account: str) -> dict[str, Any]:
    return {"StringEquals": {"aws:SourceAccount": account}}


POLICIES: list[tuple[list[dict[str, Any]] | None, bool]] = [
    # the one that SNS makes
    (None, True),
    ([statement()], True),
    ([statement(Condition=from_account(ACCOUNT))], True),
    ([statement(Condition=from_account("999999999999"))], False),
    ([statement(Principal={"Service": "budgets.amazonaws.com"})], False),
    ([statement(), statement(Effect="Deny", Principal="*")], False),
    ([statement(Action="sns:Subscribe")], False),
]


def planted(world: Any, statements: list[dict[str, Any]] | None, *, enabled: bool = True) -> str:
    """Create a topic, a subscribed queue and the alarm ``it``, and return the queue."""
    sns, sqs = world.client("sns"), world.client("sqs")
    topic = sns.create_topic(Name="on-call")["TopicArn"]
    if statements is not None:
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        sns.set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=policy)
    queue = str(sqs.create_queue(QueueName="mine")["QueueUrl"])
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    metric = {"Namespace": "n", "MetricName": "m", "Statistic": "Sum", "Period": 60, "Threshold": 1.0}
    world.client("cloudwatch").put_metric_alarm(
        **{"AlarmName": "it", "EvaluationPeriods": 1, "ComparisonOperator": "GreaterThanThreshold", **metric},
        AlarmActions=[topic],
        ActionsEnabled=enabled,
    )
    return queue


def set_state(world: Any, state: str) -> None:
    world.client("cloudwatch").set_alarm_state(AlarmName="it", StateValue=state, StateReason="a test")


def arrived(world: Any, queue: str) -> list[dict[str, Any]]:
    answer = world.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
    return [json.loads(json.loads(each["Body"])["Message"]) for each in answer.get("Messages", [])]


@pytest.mark.parametrize(("statements", "arrives"), POLICIES)
def test_who_lets_cloudwatch_publish_is_notified(
    world: Any,
    statements: list[dict[str, Any]] | None,
    arrives: bool,  # noqa: FBT001 - a table
) -> None:
    queue = planted(world, statements)
    set_state(world, "ALARM")
    found = [(each["AlarmName"], each["NewStateValue"], each["NewStateReason"]) for each in arrived(world, queue)]
    assert found == ([("it", "ALARM", "a test")] if arrives else [])
    (alarm,) = world.client("cloudwatch").describe_alarms(AlarmNames=["it"])["MetricAlarms"]
    assert alarm["StateValue"] == "ALARM"


def test_only_another_state_is_sent_and_only_by_an_alarm_that_acts(world: Any) -> None:
    queue = planted(world, None)
    set_state(world, "ALARM")
    assert len(arrived(world, queue)) == 1
    set_state(world, "ALARM")
    set_state(world, "OK")
    assert arrived(world, queue) == []
    world.client("cloudwatch").disable_alarm_actions(AlarmNames=["it"])
    set_state(world, "ALARM")
    assert arrived(world, queue) == []
