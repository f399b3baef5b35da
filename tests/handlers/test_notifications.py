"""The Lambda that tells a team what happens to its cluster, against AWS that the test plays.

HyperPod's events are those of the developer guide: "Events that Amazon SageMaker AI sends to Amazon EventBridge" (node
health) and "SageMaker HyperPod cluster events reference" (record, descriptions of reboot and replacement).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.config.notify import EVENTS
from hyperpod_cdk.handlers.notifications import index
from tests.support.tables import row_by_row

TOPIC = "arn:aws:sns:us-east-1:111122223333:on-call"
CLUSTER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
SETTINGS = index.Settings(
    topic=TOPIC,
    environment="prod",
    cluster="train",
    account="111122223333",
    region="us-east-1",
    events=frozenset(EVENTS),
    minutes=5,
    plans=(PLAN,),
)
NOW = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
P5 = "ml.p5.48xlarge for cluster usage"
WHERE = "environment prod, cluster train"


@dataclass
class Aws:
    """Every service that is asked; requests are judged by botocore's models, ``faults`` raised once each."""

    cluster: dict[str, Any] = field(default_factory=lambda: {"ClusterArn": CLUSTER, "InstanceGroups": []})
    plans: dict[str, dict[str, Any]] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)
    begins_empty: bool = False
    quotas: dict[str, float | None] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        return _Client(self, service)

    def answer(self, operation: str, request: Mapping[str, Any]) -> Any:
        self.calls.setdefault(operation, []).append(dict(request))
        if operation in self.faults:
            raise ClientError({"Error": {"Code": self.faults.pop(operation), "Message": "played"}}, operation)
        if operation == "DescribeTrainingPlan":
            return self.plans[request["TrainingPlanName"]]
        if operation == "GetServiceQuota" and request["QuotaCode"] in self.quotas:
            value = self.quotas[request["QuotaCode"]]
            quota = {"QuotaName": P5, "QuotaCode": request["QuotaCode"], "Value": value}
            return {"Quota": {name: each for name, each in quota.items() if each is not None}}
        if operation == "ListClusters":
            return {"ClusterSummaries": [{"ClusterName": "train"}]}
        if operation == "FilterLogEvents":
            pages = [[], self.lines] if self.begins_empty else [self.lines]
            number = int(request.get("nextToken", 0))
            more = {"nextToken": str(number + 1)} if number + 1 < len(pages) else {}
            return {"events": pages[number], **more}
        return {"DescribeCluster": self.cluster}.get(operation, {})

    @property
    def told(self) -> list[str]:
        return [each["Message"] for each in self.calls.get("Publish", [])]

    @property
    def subjects(self) -> list[str]:
        return [each["Subject"] for each in self.calls.get("Publish", [])]


class _Client:
    def __init__(self, aws: Aws, service: str) -> None:
        self._aws, self._model = aws, botocore.session.get_session().get_service_model(service)

    def can_paginate(self, _: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        operation = "".join("AWS" if part == "aws" else part.capitalize() for part in name.split("_"))
        shape = self._model.operation_model(operation).input_shape

        def call(**request: Any) -> Any:
            assert shape is not None
            validate_parameters(request, shape)
            return self._aws.answer(operation, request)

        return call


def health(**summary: str) -> dict[str, Any]:
    return {
        "detail-type": "SageMaker HyperPod Cluster Node Health Event",
        "source": "aws.sagemaker",
        "time": "2021-10-25T01:52:12Z",
        "detail": {
            "ClusterName": "train",
            "ClusterArn": CLUSTER,
            "InstanceId": "i-12345678abcdefghi",
            "HealthSummary": {
                "HealthStatus": "Unhealthy",
                "HealthStatusReason": "HyperPod Health Monitoring Agent (HMA) has detected fault type"
                " NvidiaErrorTerminate on this node and is unhealthy.",
                "RepairAction": "None",
                "Recommendation": "Please Replace the Faulty Node.",
                **summary,
            },
        },
    }


def cluster_event(description: str, **details: Any) -> dict[str, Any]:
    return {
        "detail-type": "SageMaker HyperPod Cluster Event",
        "source": "aws.sagemaker",
        "time": "2026-06-01T17:20:25Z",
        "detail": {
            "EventDetails": {
                "ClusterArn": CLUSTER,
                "ClusterName": "train",
                "InstanceGroupName": "h100",
                "InstanceId": "i-0391f86fa0fe0d465",
                "ResourceType": "Instance",
                "EventTime": 1748794825350,
                "EventLevel": "Info",
                "Description": description,
                **details,
            }
        },
    }


def told_of(event: Mapping[str, Any], settings: index.Settings = SETTINGS) -> Aws:
    aws = Aws()
    index.handle(event, settings, clients=aws.client)
    return aws


def looked(aws: Aws, *events: str, at: datetime = NOW) -> Aws:
    settings = index.Settings(**{**SETTINGS.__dict__, "events": frozenset(events)})
    index.handle({"detail-type": "Scheduled Event", "time": f"{at:%Y-%m-%dT%H:%M:%SZ}"}, settings, clients=aws.client)
    return aws


def test_an_unhealthy_node_is_told_with_everything_to_act_on() -> None:
    aws = told_of(health())
    assert aws.calls["Publish"][0]["TopicArn"] == TOPIC
    assert aws.subjects == ["[prod] Node i-12345678abcdefghi is unhealthy"]
    (told,) = aws.told
    assert told == (
        "HyperPod says that node i-12345678abcdefghi is unhealthy: HyperPod Health Monitoring Agent (HMA) has detected"
        " fault type NvidiaErrorTerminate on this node and is unhealthy. Repair: None. Please Replace the Faulty Node."
        "\n"
        "\n"
        "Where: environment prod, cluster train, node i-12345678abcdefghi, account 111122223333, region us-east-1\n"
        "Since: 2021-10-25 01:52:12 UTC\n"
        "Look:  aws sagemaker describe-cluster-node --cluster-name train --node-id i-12345678abcdefghi"
        " --region us-east-1\n"
    )


@pytest.mark.parametrize(
    ("description", "kind", "title"),
    [
        (
            "Instance i-0391f86fa0fe0d465 is starting as part of instance replacement in Cluster train and IG h100",
            "node_replaced",
            "[prod] Node i-0391f86fa0fe0d465 is replaced",
        ),
        (
            "Instance i-0391f86fa0fe0d465 failed to start as part of instance replacement in Cluster train and IG h100",
            "node_replaced",
            "[prod] Node i-0391f86fa0fe0d465 is replaced",
        ),
        (
            "Reboot of EC2 Instance i-0391f86fa0fe0d465 is currently in progress on Cluster train and IG h100",
            "node_rebooted",
            "[prod] Node i-0391f86fa0fe0d465 is rebooted",
        ),
        (
            "Failed to submit reboot request for EC2 Instance i-0391f86fa0fe0d465 in Cluster train and IG h100",
            "node_rebooted",
            "[prod] Node i-0391f86fa0fe0d465 is rebooted",
        ),
    ],
)
def test_reboots_and_replacements_are_told_as_hyperpod_describes_them(description: str, kind: str, title: str) -> None:
    aws = told_of(cluster_event(description))
    assert aws.subjects == [title]
    assert aws.calls["Publish"][0]["MessageAttributes"]["event"]["StringValue"] == kind
    (told,) = aws.told
    assert told == (
        f"{description}.\n"
        "\n"
        f"Where: {WHERE}, group h100, node i-0391f86fa0fe0d465, account 111122223333, region us-east-1\n"
        "Since: 2025-06-01 16:20:25 UTC\n"
        "Look:  aws sagemaker list-cluster-nodes --cluster-name train --region us-east-1\n"
        "       aws sagemaker list-cluster-events --cluster-name train --node-id i-0391f86fa0fe0d465"
        " --region us-east-1\n"
    )


@pytest.mark.parametrize(
    "event",
    [
        health(HealthStatus="Healthy"),
        cluster_event("EC2 Instance i-0391f86fa0fe0d465 successfully provisioned in Cluster train and IG h100"),
        {"detail-type": "SageMaker HyperPod Cluster State Change", "time": "2026-06-01T17:20:25Z", "detail": {}},
        {"detail-type": "SageMaker HyperPod Cluster Event", "time": "", "detail": None},
        {},
    ],
)
def test_what_was_not_requested_is_not_reported(event: dict[str, Any]) -> None:
    assert told_of(event).calls == {}


def test_only_events_of_the_settings_are_published() -> None:
    settings = index.Settings(**{**SETTINGS.__dict__, "events": frozenset({"node_replaced"})})
    assert told_of(health(), settings).calls == {}


def test_a_failure_of_the_replacement_is_told_with_its_reason() -> None:
    metadata = {"EventMetadata": {"Instance": {"FailureMessage": "We currently do not have sufficient capacity"}}}
    event = cluster_event("Instance i-1 failed to start as part of instance replacement", EventDetails=metadata)
    (told,) = told_of(event).told
    assert told.splitlines()[0] == (
        "Instance i-1 failed to start as part of instance replacement. We currently do not have sufficient capacity."
    )


def test_a_health_event_that_speaks_of_a_deep_check_is_told_as_that() -> None:
    aws = told_of(health(HealthStatusReason="Deep health check failed: NCCL bandwidth"))
    assert aws.subjects == ["[prod] Node i-12345678abcdefghi failed a deep health check"]


def test_subjects_are_what_sns_takes() -> None:
    aws = told_of(health() | {"detail": {**health()["detail"], "InstanceId": "i-ü\n" + "x" * 200}})
    (subject,) = aws.subjects
    assert subject.isascii()
    assert subject.isprintable()
    assert len(subject) < 100


def test_missing_nodes_become_a_metric_of_each_group() -> None:
    groups = [
        {"InstanceGroupName": "system", "TargetCount": 2, "CurrentCount": 2},
        {"InstanceGroupName": "h100", "TargetCount": 4, "CurrentCount": 1, "TrainingPlanStatus": "Active"},
        {"InstanceGroupName": "later", "TargetCount": 4, "CurrentCount": 0, "TrainingPlanStatus": "Scheduled"},
        {"InstanceGroupName": "shrinks", "TargetCount": 1, "CurrentCount": 3},
    ]
    restricted = [{"InstanceGroupName": "nova", "TargetCount": 4, "CurrentCount": 0}]
    aws = Aws({"ClusterArn": CLUSTER, "InstanceGroups": groups, "RestrictedInstanceGroups": restricted})
    looked(aws, "nodes_missing")
    (request,) = aws.calls["PutMetricData"]
    assert request["Namespace"] == "HyperPod/train"
    assert {each["Dimensions"][0]["Value"]: each["Value"] for each in request["MetricData"]} == {
        "system": 0.0,
        "h100": 3.0,
        "later": 0.0,
        "shrinks": 0.0,
        "nova": 4.0,
    }
    assert {each["Timestamp"] for each in request["MetricData"]} == {NOW}


@pytest.mark.parametrize("lost", ["TargetCount", "CurrentCount"])
def test_a_count_that_sagemaker_does_not_show_is_no_metric_of_zero(lost: str) -> None:
    group = {"InstanceGroupName": "h100", "TargetCount": 4, "CurrentCount": 4}
    del group[lost]
    aws = Aws({"ClusterArn": CLUSTER, "InstanceGroups": [group]})
    with pytest.raises(KeyError, match=lost):
        looked(aws, "nodes_missing")
    assert "PutMetricData" not in aws.calls
    with pytest.raises(KeyError, match="InstanceGroups"):
        index.missing_nodes({"ClusterArn": CLUSTER})


def plan(*spans: tuple[datetime, datetime]) -> dict[str, Any]:
    return {
        "TrainingPlanArn": PLAN,
        "TrainingPlanName": "h100-april",
        "Status": "Active",
        "ReservedCapacitySummaries": [{"StartTime": start, "EndTime": end} for start, end in spans],
    }


START, END = datetime(2026, 4, 20, 11, 30, tzinfo=UTC), datetime(2026, 5, 20, 11, 30, tzinfo=UTC)


@row_by_row(
    "moment, title",
    [
        (START - timedelta(days=7), "starts in 7 days"),
        (START - timedelta(days=1), "starts in 1 day"),
        (START - timedelta(minutes=90), "starts in 90 minutes"),
        (START, "starts now"),
        (END - timedelta(days=7), "ends in 7 days"),
        (END - timedelta(days=1), "ends in 1 day"),
        (END - timedelta(minutes=90), "ends in 90 minutes"),
        (END, "ends now"),
    ],
)
def test_each_moment_of_a_plan_is_told_by_one_look(moment: datetime, title: str) -> None:
    """Looks every five minutes, from before the moment until after it, whatever second they fall on."""
    for offset in (0, 1, 299):
        aws = Aws(plans={"h100-april": plan((START, END))})
        for number in range(-3, 4):
            looked(aws, "training_plan", at=moment + timedelta(minutes=5 * number, seconds=offset))
        assert aws.subjects == [f"[prod] Training plan h100-april {title}"]


def test_the_end_of_a_plan_says_when_its_nodes_go() -> None:
    aws = looked(Aws(plans={"h100-april": plan((START, END))}), "training_plan", at=END - timedelta(minutes=90))
    (told,) = aws.told
    assert told == (
        "Training plan h100-april (Active) ends in 90 minutes, at 2026-05-20 11:30:00 UTC. HyperPod takes its nodes at"
        " 2026-05-20 10:30:00 UTC; have jobs write checkpoints before.\n"
        "\n"
        f"Where: {WHERE}, plan {PLAN}, account 111122223333, region us-east-1\n"
        "Since: 2026-05-20 10:00:00 UTC\n"
        "Look:  aws sagemaker describe-training-plan --training-plan-name h100-april --region us-east-1\n"
        "       hyperpod-cdk preflight prod --only training-plan\n"
    )


def test_nodes_are_said_to_go_when_the_catalog_says() -> None:
    assert timedelta(minutes=hyperpod.TRAINING_PLAN_RECLAIM_MINUTES) == index.RECLAIM
    assert min(index.LEADS) > index.RECLAIM


@pytest.mark.parametrize(
    ("spans", "joined"),
    [
        ([(START, END), (END, END + timedelta(days=7))], [(START, END + timedelta(days=7))]),
        (
            [(END + timedelta(days=1), END + timedelta(days=2)), (START, END)],
            [(START, END), (END + timedelta(days=1), END + timedelta(days=2))],
        ),
        ([(START, END), (START, START + timedelta(days=1))], [(START, END)]),
        ([], []),
    ],
)
def test_blocks_that_follow_on_each_other_are_one(
    spans: Sequence[tuple[datetime, datetime]], joined: list[tuple[datetime, datetime]]
) -> None:
    assert index.blocks(plan(*spans)) == joined


def test_a_deep_check_that_failed_is_told_from_its_log() -> None:
    """The line is the developer guide's own example ("Deep health checks", cluster-level logs)."""
    said = (
        "Encountered FaultyInstance. Replace the Instance. Region: us-west-2, InstanceType: p4d.24xlarge."
        " ERROR:Bandwidth has less than threshold: Expected minimum threshold :80,NCCL Test output Bw: 30"
    )
    line = json.dumps({"level": "error", "ts": "2024-06-18T21:15:22Z", "msg": said})
    happened = round((NOW - timedelta(minutes=7)).timestamp() * 1000)
    aws = looked(Aws(lines=[{"message": line, "timestamp": happened}]), "deep_health_check_failed")
    (request,) = aws.calls["FilterLogEvents"]
    assert request == {
        "logGroupName": "/aws/sagemaker/Clusters/train/abcdef012345",
        "logStreamNamePrefix": "DeepHealthCheckResults/",
        "filterPattern": '{ $.level = "error" }',
        "startTime": round((NOW - timedelta(minutes=10)).timestamp() * 1000),
        "endTime": round((NOW - timedelta(minutes=5)).timestamp() * 1000) - 1,
    }
    (told,) = aws.told
    assert told.startswith(f"Deep health checks report:\n{said}\n\nWhere: {WHERE}, account")
    assert "Since: 2026-04-01 11:53:00 UTC\n" in told


def test_many_failed_checks_are_one_message() -> None:
    lines = [{"message": f"line {number}", "timestamp": 1_000_000 + number} for number in range(13)]
    (told,) = looked(Aws(lines=lines), "deep_health_check_failed").told
    assert "line 9\nand 3 more\n" in told


def test_a_failed_check_on_a_later_page_is_published() -> None:
    """botocore, FilterLogEvents: "Partially full or empty pages don't necessarily mean that pagination is finished"."""
    line = {"message": "a failed check", "timestamp": 1_000_000}
    aws = looked(Aws(lines=[line], begins_empty=True), "deep_health_check_failed")
    first, second = aws.calls["FilterLogEvents"]
    assert second == {**first, "nextToken": "1"}
    (told,) = aws.told
    assert told.startswith("Deep health checks report:\na failed check\n")


def test_a_cluster_that_has_not_logged_yet_has_no_failed_checks() -> None:
    aws = looked(Aws(faults={"FilterLogEvents": "ResourceNotFoundException"}), "deep_health_check_failed")
    assert aws.told == []


@pytest.mark.parametrize("operation", ["DescribeCluster", "DescribeTrainingPlan", "PutMetricData", "FilterLogEvents"])
def test_one_look_that_fails_takes_no_other_with_it_and_is_not_hidden(operation: str) -> None:
    line = {"message": "a failed check", "timestamp": 1_000_000}
    groups = [{"InstanceGroupName": "system", "TargetCount": 2, "CurrentCount": 2}]
    aws = Aws(
        {"ClusterArn": CLUSTER, "InstanceGroups": groups},
        plans={"h100-april": plan((NOW, END))},
        lines=[line],
        faults={operation: "AccessDeniedException"},
    )
    with pytest.raises(ClientError, match=operation):
        looked(aws, "nodes_missing", "deep_health_check_failed", "training_plan")
    assert ("[prod] Training plan h100-april starts now" in aws.subjects) == (operation != "DescribeTrainingPlan")


def measured(aws: Aws, *, code: str = "L-CODE") -> dict[str, float]:
    """Look at the quota of ml.p5.48xlarge, by a code; give what became of the metric, by the quota's name."""
    index._CODES.clear()
    quota = {"name": P5, "code": code, "use": "hyperpod_instances:ml.p5.48xlarge"}
    settings = index.Settings(**{**SETTINGS.__dict__, "events": frozenset({"quota_used"}), "quotas": (quota,)})
    index.handle({"detail-type": "Scheduled Event", "time": "2026-04-01T12:00:00Z"}, settings, clients=aws.client)
    written = aws.calls.get("PutMetricData", [])
    assert {each["Namespace"] for each in written} <= {"HyperPod/train"}
    rows = [row for each in written for row in each["MetricData"]]
    assert {(row["MetricName"], row["Unit"]) for row in rows} <= {("QuotaUsedPercent", "Percent")}
    return {row["Dimensions"][0]["Value"]: row["Value"] for row in rows}


def p5(count: int, *, wanted: int | None = None, **values: Any) -> dict[str, Any]:
    target = count if wanted is None else wanted
    group = {"InstanceGroupName": "h100", "InstanceType": "ml.p5.48xlarge", "CurrentCount": count}
    return {
        "ClusterArn": CLUSTER,
        "ClusterStatus": "InService",
        "InstanceGroups": [{**group, "TargetCount": target, **values}],
    }


@row_by_row(
    "cluster, quota, percent",
    [
        (p5(0), 8.0, 0.0),
        (p5(6), 8.0, 75.0),
        (p5(8), 8.0, 100.0),
        # nodes that are still to come take their share already
        (p5(2, wanted=8), 8.0, 100.0),
        # a quota that was lowered below what runs
        (p5(8), 4.0, 200.0),
        # what allows nothing is used up
        (p5(0), 0.0, 100.0),
        # Spot has a quota of its own, and another type another one
        (p5(8, CapacityRequirements={"Spot": {}}), 8.0, 0.0),
        (p5(8, InstanceType="ml.p4d.24xlarge"), 8.0, 0.0),
    ],
)
def test_how_much_of_a_quota_is_used(cluster: dict[str, Any], quota: float, percent: float) -> None:
    aws = Aws(cluster=cluster, quotas={"L-CODE": quota})
    assert measured(aws) == {P5: percent}
    assert aws.told == []


@pytest.mark.parametrize(
    "aws",
    [
        Aws(cluster=p5(8), faults={"GetServiceQuota": "AccessDeniedException"}),
        Aws(cluster=p5(8), faults={"GetServiceQuota": "TooManyRequestsException"}),
        # Service Quotas has it, and could not find out its value
        Aws(cluster=p5(8), quotas={"L-CODE": None}),
        # no quota of that name, neither by code nor in the list
        Aws(
            cluster=p5(8),
            faults={
                "GetServiceQuota": "NoSuchResourceException",
                "GetAWSDefaultServiceQuota": "NoSuchResourceException",
            },
        ),
        Aws(cluster=p5(8), quotas={"L-CODE": 8.0}, faults={"ListClusters": "ThrottlingException"}),
        Aws(cluster=p5(8), quotas={"L-CODE": 8.0}, faults={"DescribeCluster": "AccessDeniedException"}),
        # a group that says neither how many it has nor how many it is to have
        Aws(
            cluster={"ClusterArn": CLUSTER, "InstanceGroups": [{"InstanceType": "ml.p5.48xlarge"}]},
            quotas={"L-CODE": 8.0},
        ),
    ],
    ids=["denied", "throttled", "not told", "no such quota", "list throttled", "describe denied", "garbled"],
)
def test_what_is_not_known_of_a_quota_is_no_value(aws: Aws) -> None:
    assert measured(aws) == {}
    assert aws.told == []


def test_a_code_that_aws_told_is_asked_by_from_then_on() -> None:
    row = {"QuotaName": P5, "QuotaCode": "L-TOLD", "Value": 8.0}

    class Told(Aws):
        def answer(self, operation: str, request: Mapping[str, Any]) -> Any:
            found = super().answer(operation, request)
            return {"Quotas": [row]} if operation == "ListServiceQuotas" else found

    aws = Told(cluster=p5(4), quotas={"L-TOLD": 8.0})
    assert measured(aws, code="") == {P5: 50.0}
    assert len(aws.calls["ListServiceQuotas"]) == 1
    quota = {"name": P5, "code": "", "use": "hyperpod_instances:ml.p5.48xlarge"}
    settings = index.Settings(**{**SETTINGS.__dict__, "events": frozenset({"quota_used"}), "quotas": (quota,)})
    index.watch(NOW, settings, clients=aws.client)
    assert len(aws.calls["ListServiceQuotas"]) == 1
    assert [each["QuotaCode"] for each in aws.calls["GetServiceQuota"]] == ["L-TOLD"]


def test_settings_are_read_as_the_construct_writes_them() -> None:
    text = json.dumps({**SETTINGS.__dict__, "events": sorted(SETTINGS.events), "plans": list(SETTINGS.plans)})
    read = index.Settings.read(text)
    assert (read.events, list(read.plans), read.topic) == (SETTINGS.events, [PLAN], TOPIC)


def test_chat_gets_the_form_that_it_takes_and_everybody_else_the_text() -> None:
    """Amazon Q Developer in chat applications, administrator guide, "Custom notifications": the event's schema."""
    settings = index.Settings(**{**SETTINGS.__dict__, "chat": True})
    aws = told_of(health(), settings)
    (request,) = aws.calls["Publish"]
    forms = json.loads(request["Message"])
    assert request["MessageStructure"] == "json"
    assert forms.keys() == {"default", "https"}
    assert forms["default"] == told_of(health()).told[0]
    chat = json.loads(forms["https"])
    assert (chat["version"], chat["source"]) == ("1.0", "custom")
    assert chat["content"]["textType"] == "client-markdown"
    assert chat["content"]["title"] == "[prod] Node i-12345678abcdefghi is unhealthy"
    assert f"Where: {WHERE}, node i-12345678abcdefghi" in chat["content"]["description"]
    assert chat["content"]["nextSteps"] == [
        "`aws sagemaker describe-cluster-node --cluster-name train --node-id i-12345678abcdefghi --region us-east-1`"
    ]


def test_a_bus_gets_each_message_in_parts() -> None:
    bus = "arn:aws:events:us-east-1:111122223333:event-bus/ml"
    aws = told_of(health(), index.Settings(**{**SETTINGS.__dict__, "bus": bus}))
    ((entry,),) = [each["Entries"] for each in aws.calls["PutEvents"]]
    assert (entry["Source"], entry["DetailType"], entry["EventBusName"]) == (
        "hyperpod-cdk",
        "HyperPod Notification",
        bus,
    )
    detail = json.loads(entry["Detail"])
    assert (detail["event"], detail["where"]["node"]) == ("node_unhealthy", "i-12345678abcdefghi")
