"""The Lambda function that keeps node counts and waits for Karpenter, with a simulated cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk.handlers.answering import ANSWER_SECONDS
from hyperpod_cdk.handlers.autoscaling import index

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"
GROUPS = [{"InstanceGroupName": "gpu", "TargetCount": 7}, {"InstanceGroupName": "system", "TargetCount": 2}]


@dataclass
class SageMaker:
    """Returns one response after the other, repeating the last one; an error code is raised."""

    answers: list[dict[str, Any] | str]
    asked: list[str] = field(default_factory=list)

    def describe_cluster(self, *, ClusterName: str) -> dict[str, Any]:  # noqa: N803 - boto3's own
        self.asked.append(ClusterName)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, str):
            raise ClientError({"Error": {"Code": answer, "Message": "told by the test"}}, "DescribeCluster")
        return answer


@dataclass
class Context:
    """Lambda's clock: ``seconds`` left, fewer by each sleep."""

    seconds: float = 900.0

    def get_remaining_time_in_millis(self) -> float:
        return self.seconds * 1000

    def sleep(self, seconds: float) -> None:
        self.seconds -= seconds


def event(kind: str, request: str = "Create", **properties: Any) -> dict[str, Any]:
    return {
        "RequestType": request,
        "ResourceType": kind,
        "RequestId": "request",
        "StackId": "stack",
        "LogicalResourceId": "NodeCounts",
        "ResponseURL": "https://answer.example/?signature",
        "ResourceProperties": properties,
    }


def run(sagemaker: SageMaker, given: dict[str, Any], context: Context | None = None) -> dict[str, Any]:
    """Handle an event and give the answer that CloudFormation gets."""
    sent: list[bytes] = []
    context = context or Context()
    index.handle(
        given, context, clients=lambda _: sagemaker, put=lambda _, body: sent.append(body), sleep=context.sleep
    )
    (body,) = sent
    answer: dict[str, Any] = json.loads(body)
    fixed = {"RequestId": "request", "StackId": "stack", "LogicalResourceId": "NodeCounts"}
    assert {key: answer.pop(key) for key in fixed} == fixed
    assert answer.pop("PhysicalResourceId") == "NodeCounts-stack"
    return {key: value for key, value in answer.items() if value}


COUNTS = {"ClusterName": "prod", "Groups": ["gpu", "new"]}


@pytest.mark.parametrize(
    ("cluster", "counts"),
    [
        ({"AutoScaling": {"Mode": "Enable", "Status": "InService"}, "InstanceGroups": GROUPS}, [7, 0]),
        ({"AutoScaling": {"Mode": "Disable"}, "InstanceGroups": GROUPS}, [0, 0]),
        ({"InstanceGroups": GROUPS}, [0, 0]),
        ("ResourceNotFound", [0, 0]),
    ],
    ids=["autoscaled", "switched off", "not yet autoscaled", "no cluster yet"],
)
@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_counts(cluster: dict[str, Any] | str, counts: list[int], request_type: str) -> None:
    answer = run(SageMaker([cluster]), event(index.NODE_COUNTS, request_type, **COUNTS))
    assert answer == {"Status": "SUCCESS", "Data": {"Count0": counts[0], "Count1": counts[1]}}


def test_counts_that_cannot_be_read_fail_the_deployment() -> None:
    answer = run(SageMaker(["AccessDeniedException"]), event(index.NODE_COUNTS, "Update", **COUNTS))
    assert answer == {
        "Status": "FAILED",
        "Reason": (
            "An error occurred (AccessDeniedException) when calling the DescribeCluster operation: told by the test"
        ),
    }


@pytest.mark.parametrize("groups", [{}, {"InstanceGroups": [{"InstanceGroupName": "g5"}]}])
def test_counts_that_sagemaker_does_not_show_fail_the_deployment_too(groups: dict[str, Any]) -> None:
    cluster = {"AutoScaling": {"Mode": "Enable"}, **groups}
    answer = run(SageMaker([cluster]), event(index.NODE_COUNTS, "Update", **COUNTS))
    assert answer["Status"] == "FAILED"


def test_counts_of_a_hundred_groups_fit_into_an_answer() -> None:
    names = [f"{'g' * 60}{number}" for number in range(100)]
    groups = [{"InstanceGroupName": name, "TargetCount": 6758} for name in names]
    data = index.node_counts(
        {"ClusterName": "prod", "Groups": names},
        SageMaker([{"AutoScaling": {"Mode": "Enable"}, "InstanceGroups": groups}]),
    )
    assert len(json.dumps(data)) < 2048


@pytest.mark.parametrize("kind", [index.NODE_COUNTS, "Custom::HyperPodAutoscaler"])
def test_deleting_asks_nothing(kind: str) -> None:
    sagemaker = SageMaker(["AccessDeniedException"])
    assert run(sagemaker, event(kind, "Delete", **COUNTS)) == {"Status": "SUCCESS"}
    assert sagemaker.asked == []


class TestWaiting:
    def wait(self, *states: dict[str, Any] | str, context: Context | None = None) -> dict[str, Any]:
        answers: list[dict[str, Any] | str] = [
            state if isinstance(state, str) else {"AutoScaling": {"Mode": "Enable", **state}} for state in states
        ]
        return run(SageMaker(answers), event("Custom::HyperPodAutoscaler", ClusterName=ARN), context)

    def test_until_it_is_in_service(self) -> None:
        context = Context()
        assert self.wait({"Status": "Creating"}, {"Status": "Creating"}, {"Status": "InService"}, context=context) == {
            "Status": "SUCCESS"
        }
        assert context.seconds == 900 - 2 * index.POLL_SECONDS

    @pytest.mark.parametrize(
        ("state", "reason"),
        [
            (
                {"Status": "Failed", "FailureMessage": "the role may not add nodes"},
                f"autoscaling of cluster {ARN} failed: the role may not add nodes",
            ),
            ("ResourceNotFound", f"cluster {ARN} does not exist"),
            (
                {"Status": "Creating"},
                (
                    f"autoscaling of cluster {ARN} is still Creating; see 'aws sagemaker describe-cluster"
                    f" --cluster-name {ARN} --query AutoScaling', and deploy again once it is InService"
                ),
            ),
        ],
        ids=["failed", "gone", "too long"],
    )
    def test_and_says_why_not(self, state: dict[str, Any] | str, reason: str) -> None:
        context = Context()
        assert self.wait(state, context=context) == {"Status": "FAILED", "Reason": reason}
        assert context.seconds >= ANSWER_SECONDS
