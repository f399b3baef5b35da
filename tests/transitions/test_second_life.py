"""What a stack has retained is in the way of the same name, as long as it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.transitions.second_life import InTheWay, in_the_way
from tests.transitions.stacks import assembly, stack

BUCKET = "AWS::S3::Bucket"
GROUP = "AWS::Logs::LogGroup"
NAMED = {"Type": BUCKET, "Properties": {"BucketName": {"Fn::Join": ["-", ["hyperpod", {"Ref": "AWS::StackId"}]]}}}
LOGS = {"Type": GROUP, "Properties": {"LogGroupName": "/aws/fsx/dev"}}


@dataclass
class Api:
    """A CloudFormation that tells events, and an account with buckets and log groups; all else fails."""

    events: list[tuple[str, str]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    denied: str = ""
    asked: list[str] = field(default_factory=list)
    kind: str = BUCKET

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:  # noqa: ARG002 - as LiveAws
        self.asked.append(operation)
        if operation == self.denied:
            raise NotAnswered("no permission", action="x:Y")
        if operation == "list_buckets":
            return [{"Name": each} for each in self.names]
        if operation == "describe_log_groups":
            return [{"logGroupName": f"{params['logGroupNamePrefix']}-2"}, *({"logGroupName": n} for n in self.names)]
        assert (operation, params) == ("describe_stack_events", {"StackName": "dev-one"})
        return [
            {"LogicalResourceId": "It", "ResourceType": self.kind, "ResourceStatus": status, "PhysicalResourceId": name}
            for status, name in self.events
        ]

    def call(self, service: str, operation: str, **params: Any) -> Any:
        raise AssertionError((service, operation, params))

    send = call


def looked(api: Api, body: dict[str, Any] = NAMED, *, before: dict[str, Any] | None = None) -> InTheWay:
    base = assembly(stack("one", resources=before or {}))
    return in_the_way(api, base, assembly(stack("one", resources={"It": body}), stack("new", resources={"It": body})))


KEPT = ("DELETE_SKIPPED", "hyperpod-1")
MADE = ("CREATE_COMPLETE", "hyperpod-1")


@pytest.mark.parametrize(
    ("events", "names", "is_refused"),
    [
        ([KEPT, MADE], ("hyperpod-1",), True),
        # a creation that failed at it since
        ([("CREATE_FAILED", "hyperpod-1"), ("CREATE_IN_PROGRESS", "hyperpod-1"), KEPT, MADE], ("hyperpod-1",), True),
        # somebody has deleted it
        ([KEPT, MADE], ("hyperpod-12",), False),
        # it was deleted, not retained
        ([("DELETE_COMPLETE", "hyperpod-1"), MADE], ("hyperpod-1",), False),
        ([], ("hyperpod-1",), False),
    ],
)
def test_a_bucket_that_stays(events: list[tuple[str, str]], names: tuple[str, ...], *, is_refused: bool) -> None:
    found = looked(Api(events, names))
    why = (
        "dev-one / It: hyperpod-1 stays from an earlier life of it, retained by this stack, and a new one cannot have "
        "its name."
    )
    works = (
        "See to what it holds, and empty and delete it (aws s3 rb --force s3://hyperpod-1) if what it holds is not "
        "needed, then plan again; or leave in the file what it is in place of."
    )
    assert [(each.why, each.what_works) for each in found.refusals] == is_refused * [(why, works)]
    assert found.unseen == ()


@pytest.mark.parametrize(("names", "is_refused"), [(("/aws/fsx/dev",), True), ((), False)])
def test_a_log_group_that_stays(names: tuple[str, ...], *, is_refused: bool) -> None:
    found = looked(Api([("DELETE_SKIPPED", "/aws/fsx/dev")], names, kind=GROUP), LOGS)
    assert bool(found.refusals) is is_refused


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ({"Type": BUCKET}, {}),
        ({"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "q"}}, {}),
        # it stands in the stack
        (NAMED, {"It": NAMED}),
    ],
)
def test_what_gets_another_name_or_is_there_is_not_asked_for(body: dict[str, Any], before: dict[str, Any]) -> None:
    api = Api([KEPT])
    assert looked(api, body, before=before) == InTheWay()
    assert api.asked == []


@pytest.mark.parametrize("denied", ["describe_stack_events", "list_buckets"])
def test_what_could_not_be_looked_at_is_said(denied: str) -> None:
    found = looked(Api([KEPT], denied=denied))
    assert found == InTheWay(
        unseen=("Whether what dev-one retained is in the way of It could not be looked at: no permission; allow x:Y",)
    )
