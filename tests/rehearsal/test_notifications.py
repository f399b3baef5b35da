"""Planted events arrive: what HyperPod says, and what a look finds, comes out of a queue that is subscribed."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from moto.events.models import EventPattern

from tests.rehearsal.test_examples import Life, living, satisfying_both
from tests.support.assembly import shipped

NAME = "on-call"
NODE = "i-0391f86fa0fe0d465"


def stands(life: Life, resource_type: str, part: str = "") -> str:
    """Return the physical ID of the observability stack's resource of a type whose logical ID holds ``part``."""
    found = life.aws.client("cloudformation").describe_stack_resources(StackName=f"{NAME}-observability")
    (physical_id,) = [
        str(each["PhysicalResourceId"])
        for each in found["StackResources"]
        if each["ResourceType"] == resource_type and part in each["LogicalResourceId"]
    ]
    return physical_id


def subscribed_queue(life: Life, topic: str) -> str:
    sqs = life.aws.client("sqs")
    url: str = sqs.create_queue(QueueName="planted")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    life.aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return url


def arrived(life: Life, queue: str) -> list[dict[str, Any]]:
    answer = life.aws.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
    return [json.loads(each["Body"]) for each in answer.get("Messages", [])]


def deliver(life: Life, rule: str, event: dict[str, Any]) -> int:
    """Do as EventBridge does with an event on the default bus: match it, and invoke each target that lets it."""
    events, functions = life.aws.client("events"), life.aws.client("lambda")
    described = events.describe_rule(Name=rule)
    pattern = described.get("EventPattern")
    if pattern and not EventPattern.load(pattern).matches_event(event):  # type: ignore[arg-type]  # moto's own typed dict
        return 0
    invoked = 0
    for target in events.list_targets_by_rule(Rule=rule)["Targets"]:
        policy = json.loads(functions.get_policy(FunctionName=target["Arn"])["Policy"])
        sources = [each["Condition"]["ArnLike"]["AWS:SourceArn"] for each in policy["Statement"]]
        assert described["Arn"] in sources
        answer = functions.invoke(FunctionName=target["Arn"], Payload=json.dumps(event).encode())
        assert "FunctionError" not in answer, answer["Payload"].read()
        invoked += 1
    return invoked


def replaced(cluster: str) -> dict[str, Any]:
    """An event of the form that the developer guide's "SageMaker HyperPod cluster events reference" shows."""
    return {
        "version": "0",
        "id": "0bd4a141-0a02-9d8a-f977-3924c3fb259c",
        "detail-type": "SageMaker HyperPod Cluster Event",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": "2026-06-01T17:20:25Z",
        "region": "us-east-1",
        "resources": [cluster],
        "detail": {
            "EventDetails": {
                "EventId": "83ea0bb5-be77-45e8-a458-0a87f778a205",
                "ClusterArn": cluster,
                "ClusterName": NAME,
                "InstanceGroupName": "h100",
                "InstanceId": NODE,
                "ResourceType": "Instance",
                "EventTime": 1780334425350,
                "EventLevel": "Info",
                "Description": f"Instance {NODE} is starting as part of instance replacement in Cluster {NAME} and IG"
                " h100",
            }
        },
    }


@pytest.mark.examples
def test_planted_events_arrive_in_a_subscribed_queue(assemblies: Path, tmp_path: Path) -> None:
    synthesized = shipped(assemblies, NAME)
    account = satisfying_both(NAME, synthesized.environment)
    with living(synthesized, account, tmp_path) as life:
        life.deploy(assemblies / NAME)
        sagemaker = life.aws.client("sagemaker")
        cluster = sagemaker.describe_cluster(ClusterName=NAME)["ClusterArn"]
        queue = subscribed_queue(life, stands(life, "AWS::SNS::Topic"))
        rule = stands(life, "AWS::Events::Rule", "HyperPodEvents")

        assert deliver(life, rule, replaced("arn:aws:sagemaker:us-east-1:111122223333:cluster/another")) == 0
        assert deliver(life, rule, replaced(cluster)) == 1
        (message,) = arrived(life, queue)
        assert message["Subject"] == f"[{NAME}] Node {NODE} is replaced"
        assert message["Message"] == (
            f"Instance {NODE} is starting as part of instance replacement in Cluster {NAME} and IG h100.\n"
            "\n"
            f"Where: environment {NAME}, cluster {NAME}, group h100, node {NODE}, account 111122223333,"
            " region us-east-1\n"
            "Since: 2026-06-01 17:20:25 UTC\n"
            f"Look:  aws sagemaker list-cluster-nodes --cluster-name {NAME} --region us-east-1\n"
            f"       aws sagemaker list-cluster-events --cluster-name {NAME} --node-id {NODE} --region us-east-1\n"
        )

        plan = sagemaker.describe_training_plan(TrainingPlanName="h100-april")
        ends: datetime = max(each["EndTime"] for each in plan["ReservedCapacitySummaries"])
        tick = ends - timedelta(minutes=90)
        scheduled = {"detail-type": "Scheduled Event", "time": f"{tick:%Y-%m-%dT%H:%M:%SZ}"}
        watch = stands(life, "AWS::Events::Rule", "Watch3")
        assert deliver(life, watch, scheduled) == 1
        subjects = [each["Subject"] for each in arrived(life, queue)]
        assert subjects == [f"[{NAME}] Training plan h100-april ends in 90 minutes"]
        measured = life.aws.client("cloudwatch").list_metrics(Namespace=f"HyperPod/{NAME}", MetricName="NodesMissing")
        groups = {each["Dimensions"][0]["Value"] for each in measured["Metrics"]}
        assert groups == {"system", "h100"}

        used = life.aws.client("cloudwatch").list_metrics(Namespace=f"HyperPod/{NAME}", MetricName="QuotaUsedPercent")
        told = {each["Dimensions"][0]["Value"] for each in used["Metrics"]}
        nodes = {
            f"{each.instance_type} for cluster usage": each.count
            for each in synthesized.environment.hyperpod.instance_groups
        }
        assert told == set(nodes) == {"ml.m5.2xlarge for cluster usage", "ml.p5.48xlarge for cluster usage"}
        for quota in sorted(told):
            alarm = f"{NAME}-hyperpod-quota-{quota.partition(' ')[0]}"
            (stood,) = life.aws.client("cloudwatch").describe_alarms(AlarmNames=[alarm])["MetricAlarms"]
            assert stood["Dimensions"] == [{"Name": "Quota", "Value": quota}]
            assert stood["AlarmActions"] == stood["InsufficientDataActions"] == [stands(life, "AWS::SNS::Topic")]
            data = life.aws.client("cloudwatch").get_metric_statistics(
                Namespace=f"HyperPod/{NAME}",
                MetricName="QuotaUsedPercent",
                Dimensions=[{"Name": "Quota", "Value": quota}],
                StartTime=tick - timedelta(minutes=5),
                EndTime=tick + timedelta(minutes=5),
                Period=300,
                Statistics=["Maximum"],
            )["Datapoints"]
            share = 100 * nodes[quota] / account["quotas"]["sagemaker"][quota]
            assert 0 < share < 100
            assert [each["Maximum"] for each in data] == [pytest.approx(share)]

        # as docs/day-two.md tests the delivery
        name = f"{NAME}-hyperpod-events"
        life.aws.client("cloudwatch").set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="a test")
        (message,) = arrived(life, queue)
        assert json.loads(message["Message"])["AlarmName"] == name
