"""The Lambda function that waits for nodes, with a simulated HyperPod cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.model import ServiceModel
from botocore.validate import ParamValidator, validate_parameters

from hyperpod_cdk.handlers.answering import PATIENCE_SECONDS
from hyperpod_cdk.handlers.node_wait import index

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"
STACK = "arn:aws:cloudformation:us-east-1:111122223333:stack/prod-platform/0a1b2c3d-guid"
BEGIN = datetime(2026, 4, 1, 9, 0, tzinfo=UTC)
SCRIPT_FAILED = (
    "Lifecycle scripts did not run successfully. Ensure the scripts exist in provided S3 path, are accessible, and run"
    " without errors. Please see CloudWatch logs for lifecycle script execution details."
)
NO_CAPACITY = "We currently do not have sufficient capacity to launch new ml.m5.2xlarge instances. Please try again."
LOG_GROUP = "/aws/sagemaker/Clusters/prod/abcdef012345"
ALL_EVENTS = "All events: aws sagemaker list-cluster-events --cluster-name prod"

Nodes = list[tuple[str, str, str]]
"""Group, ID (logical where it is no instance's) and status of each node."""


@dataclass
class Clock:
    """Lambda's context and CloudFormation's patience: only sleeping takes time."""

    seconds: float = 0.0
    invocation_began: float = 0.0
    timeout: float = 900.0
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:111122223333:function:wait"

    def get_remaining_time_in_millis(self) -> float:
        return (self.timeout - (self.seconds - self.invocation_began)) * 1000

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class SageMaker:
    """A cluster whose nodes and events the test scripts by time; every call is held against the API's model."""

    model: ServiceModel
    clock: Clock
    nodes_at: Callable[[float], Nodes]
    groups: dict[str, int] = field(default_factory=lambda: {"system": 2, "h100": 2})
    status: str = "InService"
    events: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=dict)
    is_continuous: bool = True
    plan: dict[str, str] = field(default_factory=dict)
    page: int = 2

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = "".join(word.capitalize() for word in name.split("_"))

        def call(**request: Any) -> Any:
            model = self.model.operation_model(operation)
            assert model.input_shape is not None
            assert model.output_shape is not None
            validate_parameters(request, model.input_shape)
            faults = self.faults.get(operation, [])
            if faults:
                raise refused(faults.pop(0), operation)
            answer = getattr(self, f"_{name}")(request)
            report = ParamValidator().validate(answer, model.output_shape)
            assert not report.has_errors(), report.generate_report()
            return answer

        return call

    def happens(
        self, at: float, group: str, instance: str, message: str, *, script: str = "", logical: str = ""
    ) -> None:
        """Let an instance fail at a time, with the two events of HyperPod."""
        said = f"in Cluster prod and InstanceGroup {group}"
        for number, text in enumerate((f"Failed to provision EC2 Instance {said}", f"Instance creation {said} failed")):
            details = {
                "FailureMessage": message,
                "LcsExecutionState": script if number else "",
                "NodeLogicalId": logical,
            }
            self.events.append(
                {
                    "EventId": f"83ea0bb5-be77-45e8-a458-{len(self.events):012x}",
                    "ClusterArn": ARN,
                    "ClusterName": "prod",
                    "InstanceGroupName": group,
                    **({"InstanceId": instance} if instance else {}),
                    "ResourceType": "Instance",
                    "EventTime": BEGIN + timedelta(seconds=at),
                    "EventLevel": "Error",
                    "Description": text,
                    "at": at,
                    "metadata": {key: value for key, value in details.items() if value},
                }
            )

    def _describe_cluster(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "ClusterArn": ARN,
            "ClusterName": "prod",
            "ClusterStatus": self.status,
            "FailureMessage": "the role is gone" if self.status == "Failed" else "",
            "InstanceGroups": [
                {
                    "InstanceGroupName": name,
                    "TargetCount": count,
                    **({"TrainingPlanStatus": self.plan[name]} if name in self.plan else {}),
                }
                for name, count in self.groups.items()
            ],
        }

    def _list_cluster_nodes(self, request: Mapping[str, Any]) -> dict[str, Any]:
        nodes = self.nodes_at(self.clock.seconds)
        if not request.get("IncludeNodeLogicalIds"):
            nodes = [node for node in nodes if node[1].startswith("i-")]
        start = int(request.get("NextToken", "0"))
        shown = [
            {
                "InstanceGroupName": group,
                "InstanceId": node if node.startswith("i-") else "",
                "NodeLogicalId": node,
                "InstanceType": "ml.m5.2xlarge",
                "LaunchTime": BEGIN,
                "InstanceStatus": {"Status": status},
            }
            for group, node, status in nodes[start : start + self.page]
        ]
        more = {"NextToken": str(start + self.page)} if start + self.page < len(nodes) else {}
        return {"ClusterNodeSummaries": shown, **more}

    def _list_cluster_events(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if not self.is_continuous:
            raise refused("ValidationException", "ListClusterEvents")
        found = sorted(self._happened(), key=lambda event: event["at"], reverse=request["SortOrder"] == "Descending")
        return {"Events": [without(event, "at", "metadata") for event in found[: request["MaxResults"]]]}

    def _describe_cluster_event(self, request: Mapping[str, Any]) -> dict[str, Any]:
        (event,) = [each for each in self._happened() if each["EventId"] == request["EventId"]]
        details = {"EventMetadata": {"Instance": event["metadata"]}}
        return {"EventDetails": {**without(event, "at", "metadata"), "EventDetails": details}}

    def _happened(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["at"] <= self.clock.seconds]


@dataclass
class World:
    """CloudFormation before the function, and what the function asks."""

    sagemaker: SageMaker
    clock: Clock
    stack_status: str = "UPDATE_IN_PROGRESS"
    answers: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    handed_over: list[dict[str, Any]] = field(default_factory=list)

    def send(self, request_type: str, properties: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
        """Send an event and every event that the function sends itself; give the one answer."""
        event = {
            "RequestType": request_type,
            "ResourceType": "Custom::HyperPodNodesReady",
            "RequestId": "request",
            "StackId": STACK,
            "LogicalResourceId": "NodesReady",
            "ResponseURL": "https://answer.example/?signature",
            "ResourceProperties": properties,
            **rest,
        }
        self.handed_over.append(event)
        while self.handed_over:
            self.clock.invocation_began = self.clock.seconds
            index.handle(self.handed_over.pop(), self.clock, clients=self.client, put=self.put, sleep=self.clock.sleep)
        ((_, answer),) = self.answers
        fixed = {"RequestId": "request", "StackId": STACK, "LogicalResourceId": "NodesReady"}
        assert {key: answer.pop(key) for key in fixed} == fixed
        assert answer.pop("PhysicalResourceId") == "NodesReady-0a1b2c3d-guid"
        return {key: value for key, value in answer.items() if value}

    def client(self, service: str) -> Any:
        return self.sagemaker if service == "sagemaker" else self

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803 - boto3's own
        assert (FunctionName, InvocationType) == (self.clock.invoked_function_arn, "Event")
        self.handed_over.append(json.loads(Payload))

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's own
        assert StackName == STACK
        if self.stack_status == "denied":
            raise refused("AccessDenied", "DescribeStacks")
        return {"Stacks": [{"StackStatus": self.stack_status}]}

    def put(self, url: str, body: bytes) -> None:
        assert url == "https://answer.example/?signature"
        assert len(body) < 4096, "CloudFormation takes 4096 bytes"
        self.answers.append((self.clock.seconds, json.loads(body)))


def refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "told by the test"}}, operation)


def without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def properties(**changes: Any) -> dict[str, Any]:
    """What the construct writes, as CloudFormation sends it: every scalar is text."""
    return {
        "ServiceToken": "arn:aws:lambda:x",
        "Cluster": ARN,
        "Groups": [
            {"Name": "system", "Count": "2", "Expected": "true"},
            {"Name": "h100", "Count": "2", "Expected": "false"},
        ],
        "Nodes": "1",
        "TimeoutSeconds": "1200",
        **changes,
    }


def from_second(moment: float, *nodes: tuple[str, str]) -> Callable[[float], Nodes]:
    """Let nodes (group, ID) run from a time on; before, they are pending without an instance."""

    def at(now: float) -> Nodes:
        return [
            (group, node if now >= moment else f"logical-{node}", "Running" if now >= moment else "Pending")
            for group, node in nodes
        ]

    return at


NEVER = from_second(1e9, ("system", "i-01"), ("system", "i-02"))


@pytest.fixture
def world(sagemaker_model: ServiceModel) -> World:
    clock = Clock()
    return World(SageMaker(sagemaker_model, clock, from_second(0, ("system", "i-01"), ("system", "i-02"))), clock)


def test_nodes_that_run_are_not_waited_for(world: World) -> None:
    assert world.send("Create", properties()) == {
        "Status": "SUCCESS",
        "Data": {"RunningNodes": "2", "Groups": "h100: 0 of 2 Running; system: 2 of 2 Running"},
    }
    assert world.clock.seconds == 0


def test_one_node_of_several_is_enough_and_the_rest_is_reported(world: World) -> None:
    world.sagemaker.plan = {"h100": "Scheduled"}
    world.sagemaker.nodes_at = lambda now: [
        ("system", "i-01", "Running" if now > 60 else "Pending"),
        ("system", "logical-2", "Pending"),
        ("h100", "i-03", "DeepHealthCheckInProgress"),
    ]
    assert world.send("Create", properties())["Data"] == {
        "RunningNodes": "1",
        "Groups": (
            "h100: 0 of 2 Running (1 DeepHealthCheckInProgress, training plan Scheduled); system: 1 of 2 Running"
            " (1 Pending)"
        ),
    }
    assert 60 < world.clock.seconds <= 70


def test_a_group_whose_name_contains_the_groups_name_is_another_one(world: World) -> None:
    world.sagemaker.groups = {"system": 1, "system-tainted": 1}
    world.sagemaker.nodes_at = lambda now: [
        ("system-tainted", "i-01", "Running"),
        ("system", "i-02", "Running" if now > 30 else "Pending"),
    ]
    groups = [{"Name": "system", "Count": "1", "Expected": "true"}]
    assert world.send("Create", properties(Groups=groups))["Status"] == "SUCCESS"
    assert world.clock.seconds > 30


def test_every_page_of_nodes_is_counted(world: World) -> None:
    world.sagemaker.nodes_at = from_second(0, *(("system", f"i-{number}") for number in range(5)))
    assert world.send("Create", properties(Nodes="5"))["Data"]["RunningNodes"] == "5"


@pytest.mark.parametrize(("moment", "status"), [(1199, "SUCCESS"), (1300, "FAILED")])
def test_waiting_outlives_an_invocation_and_ends_at_the_limit(world: World, moment: float, status: str) -> None:
    world.sagemaker.nodes_at = from_second(moment, ("system", "i-01"))
    assert world.send("Create", properties())["Status"] == status
    assert world.clock.invocation_began > 0, "another invocation must have gone on"
    assert world.clock.seconds <= 1200 + index.PAUSES[-1]


def test_a_failure_at_the_limit_names_groups_nodes_messages_and_logs(world: World) -> None:
    world.sagemaker.nodes_at = lambda _: [("system", "i-07", "Pending"), ("system", "logical-2", "Pending")]
    world.sagemaker.happens(100, "system", "", NO_CAPACITY, logical="df268d19-f035")
    world.sagemaker.happens(200, "system", "i-05", SCRIPT_FAILED, script="Failed")
    assert world.send("Create", properties()) == {
        "Status": "FAILED",
        "Reason": (
            "0 of 1 needed node Running in the instance groups system, h100, after 20 minutes; add-ons have nowhere to"
            " run.\n"
            f"system i-05: {SCRIPT_FAILED.rstrip('.')} (lifecycle script Failed; log group {LOG_GROUP}, stream"
            " LifecycleConfig/system/i-05).\n"
            f"system df268d19-f035: {NO_CAPACITY}\n"
            "Groups: h100: 0 of 2 Running; system: 0 of 2 Running (2 Pending).\n"
            "Read that log and correct what it says, then deploy again: the cluster stays as it is and HyperPod goes on"
            f" trying. {ALL_EVENTS}"
        ),
    }


def test_silence_is_told_as_such(world: World) -> None:
    world.sagemaker.nodes_at = NEVER
    world.sagemaker.is_continuous = False
    assert world.send("Create", properties(TimeoutSeconds="60"))["Reason"] == (
        "0 of 1 needed node Running in the instance groups system, h100, after 1 minute; add-ons have nowhere to run.\n"
        "HyperPod reports no failure of a node.\n"
        "Groups: h100: 0 of 2 Running; system: 0 of 2 Running (2 Pending).\n"
        "Wait until nodes are Running, or give a group another type or zone, then deploy again: the cluster stays as it"
        f" is and HyperPod goes on trying. {ALL_EVENTS}"
    )


def test_deep_health_checks_are_named_as_what_takes_so_long(world: World) -> None:
    world.sagemaker.nodes_at = lambda _: [("h100", "i-01", "DeepHealthCheckInProgress")]
    assert "\nDeep health checks take about two hours: wait until nodes are Running, then deploy again" in str(
        world.send("Create", properties())["Reason"]
    )


@pytest.mark.parametrize(
    ("failures", "told", "least", "most"),
    [
        (3, "after 20 minutes", 1190, 1210),
        (4, "HyperPod tried again and again, and each instance failed alike", 60, 80),
    ],
    ids=["below the bound", "at the bound"],
)
def test_instances_that_fail_alike_again_and_again_end_the_wait_early(
    world: World, failures: int, told: str, least: float, most: float
) -> None:
    world.sagemaker.nodes_at = NEVER
    for number in range(failures):
        world.sagemaker.happens(60 + number, "system", f"i-0{number}", f"{SCRIPT_FAILED} ({number})", script="Failed")
    reason = world.send("Create", properties())["Reason"]
    assert reason.startswith(f"0 of 1 needed node Running in the instance groups system, h100, {told};")
    assert least <= world.clock.seconds <= most


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each.update(at=-1, EventTime=BEGIN - timedelta(seconds=1)),
        lambda each: each.pop("InstanceId", None),
        lambda each: each["metadata"].update(
            FailureMessage=f"another cause {'abcdefghij'[int(each['EventId'][-1], 16)]}"
        ),
        lambda each: each.update(EventLevel="Warn"),
    ],
    ids=["before the wait", "never launched", "each for another reason", "no errors"],
)
def test_other_failures_are_no_certainty(world: World, change: Callable[[dict[str, Any]], Any]) -> None:
    world.sagemaker.nodes_at = from_second(300, ("system", "i-09"))
    for number in range(4):
        world.sagemaker.happens(60, "system", f"i-0{number}", SCRIPT_FAILED, script="Failed")
    for each in world.sagemaker.events:
        change(each)
    assert world.send("Create", properties())["Status"] == "SUCCESS"


def test_groups_that_are_not_expected_soon_do_not_end_the_wait(world: World) -> None:
    world.sagemaker.nodes_at = from_second(300, ("system", "i-09"))
    for number in range(4):
        world.sagemaker.happens(60, "h100", f"i-0{number}", SCRIPT_FAILED, script="Failed")
    assert world.send("Create", properties())["Status"] == "SUCCESS"


def test_errors_that_pass_are_waited_out_and_told_at_the_limit(world: World) -> None:
    world.sagemaker.faults["ListClusterNodes"] = ["ThrottlingException"] * 3
    assert world.send("Create", properties())["Status"] == "SUCCESS"
    world.answers.clear()
    world.sagemaker.faults["ListClusterNodes"] = ["ThrottlingException"] * 1000
    assert "\nHyperPod does not answer: An error occurred (ThrottlingException) when calling" in str(
        world.send("Create", properties())["Reason"]
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "AccessDeniedException",
            "An error occurred (AccessDeniedException) when calling the DescribeCluster operation: told by the test",
        ),
        ("ResourceNotFound", f"the cluster {ARN} does not exist"),
    ],
)
def test_errors_that_stay_end_the_wait(world: World, code: str, reason: str) -> None:
    world.sagemaker.faults["DescribeCluster"] = [code] * 99
    assert world.send("Create", properties()) == {"Status": "FAILED", "Reason": reason}
    assert world.clock.seconds <= PATIENCE_SECONDS


def test_nodes_without_an_instance_are_not_asked_for_where_aws_does_not_list_them(world: World) -> None:
    world.sagemaker.faults["ListClusterNodes"] = ["ValidationException"]
    assert world.send("Create", properties())["Data"]["RunningNodes"] == "2"
    world.answers.clear()
    world.sagemaker.faults["ListClusterNodes"] = ["ValidationException"] * 2
    assert world.send("Create", properties()) == {
        "Status": "FAILED",
        "Reason": (
            "An error occurred (ValidationException) when calling the ListClusterNodes operation: told by the test"
        ),
    }


def test_a_failed_cluster_is_not_waited_for(world: World) -> None:
    world.sagemaker.status = "Failed"
    assert world.send("Create", properties())["Reason"] == "the cluster prod is Failed: the role is gone"


def test_a_description_replaces_an_event_that_cannot_be_read(world: World) -> None:
    world.sagemaker.nodes_at = NEVER
    world.sagemaker.happens(10, "system", "i-05", SCRIPT_FAILED)
    world.sagemaker.faults["DescribeClusterEvent"] = ["AccessDeniedException"] * 1000
    reason = world.send("Create", properties(TimeoutSeconds="60"))["Reason"]
    assert (
        "\nsystem i-05: Failed to provision EC2 Instance in Cluster prod and InstanceGroup system (log group" in reason
    )


class TestUpdate:
    """An update waits for other groups than before, and never on its way back."""

    def test_the_same_groups_are_not_asked_for(self, world: World) -> None:
        world.sagemaker.nodes_at = NEVER
        answer = world.send(
            "Update", properties(), OldResourceProperties=properties(TimeoutSeconds="60", ServiceTimeout="1")
        )
        assert answer["Data"] == {
            "RunningNodes": "0",
            "Groups": "h100: 0 of 2 Running; system: 0 of 2 Running (2 Pending)",
        }
        assert world.clock.seconds == 0

    @pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_IN_PROGRESS", "denied"])
    def test_the_way_back_is_not_blocked(self, world: World, status: str) -> None:
        world.sagemaker.nodes_at = NEVER
        world.stack_status = status
        assert world.send("Update", properties(), OldResourceProperties=properties(Groups=[]))["Status"] == "SUCCESS"
        assert world.clock.seconds <= PATIENCE_SECONDS

    def test_not_even_by_a_cluster_that_is_gone(self, world: World) -> None:
        world.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
        world.sagemaker.faults["DescribeCluster"] = ["ResourceNotFound"]
        answer = world.send("Update", properties(), OldResourceProperties=properties(Groups=[]))
        assert answer["Data"] == {
            "RunningNodes": "unknown",
            "Groups": f"not asked for: the stack is rolling back; unknown: the cluster {ARN} does not exist",
        }

    def test_new_groups_are_waited_for_over_several_invocations(self, world: World) -> None:
        world.sagemaker.nodes_at = from_second(1000, ("system", "i-01"))
        assert world.send("Update", properties(), OldResourceProperties=properties(Groups=[]))["Status"] == "SUCCESS"
        assert 1000 <= world.clock.seconds < 1020


def test_nothing_is_asked_when_it_goes(world: World) -> None:
    world.sagemaker.faults["DescribeCluster"] = ["AccessDeniedException"]
    assert world.send("Delete", {}) == {"Status": "SUCCESS"}


def test_a_long_story_is_cut_to_what_cloudformation_takes_and_keeps_the_advice(world: World) -> None:
    world.sagemaker.nodes_at = NEVER
    world.sagemaker.groups = {f"group-{number}": 1 for number in range(400)}
    for number in range(9):
        world.sagemaker.happens(1, "system", f"i-0{number}", f"{chr(97 + number) * 3000} \u00fc", script="Failed")
    reason = world.send("Create", properties(TimeoutSeconds="60"))["Reason"]
    assert reason.count("LifecycleConfig/system/i-0") == index.QUOTED_FAILURES
    assert reason.endswith(
        " ....\nRead that log and correct what it says, then deploy again: the cluster stays as it is and HyperPod goes"
        f" on trying. {ALL_EVENTS}"
    )
