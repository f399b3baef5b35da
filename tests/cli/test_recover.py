"""``recover`` as users run it: its output, its exit codes, and that nothing is done without confirmation."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.answers import NotAnswered
from tests.cli.test_plan import Nothing, write_assembly
from tests.support.answers import answered

QUEUE = {"Resources": {"It": {"Type": "AWS::SQS::Queue"}}}
ID = "arn:aws:cloudformation:us-east-1:111122223333:stack/dev-storage/1"


class Stuck(Nothing):
    """An AWS in which one stack stands in a status, and nothing may be changed."""

    def __init__(self, status: str = "UPDATE_ROLLBACK_FAILED", template: Any = None) -> None:
        self.status = status
        self.template = template or QUEUE

    def pages(self, service: str, operation: str, key: str, **_: Any) -> list[Any]:
        assert service == "cloudformation", key
        stack = {"StackName": "dev-storage", "StackId": ID, "StackStatus": self.status}
        mine = {"LogicalResourceId": "dev-storage", "PhysicalResourceId": ID, "StackId": ID}
        began = {**mine, "ResourceType": "AWS::CloudFormation::Stack", "ResourceStatus": "UPDATE_IN_PROGRESS"}
        failed = {
            "StackId": ID,
            "LogicalResourceId": "It",
            "ResourceType": "AWS::SQS::Queue",
            "ResourceStatus": "UPDATE_FAILED",
            "ResourceStatusReason": "no luck",
        }
        return {"describe_stacks": [stack], "describe_stack_events": [failed, began]}.get(operation, [])

    def call(self, service: str, operation: str, **_: Any) -> Any:
        assert (service, operation) == ("cloudformation", "get_template")
        return {"TemplateBody": self.template}


class Denied(Stuck):
    """Likewise, where what is gone may not be listed."""

    def pages(self, service: str, operation: str, key: str, **more: Any) -> list[Any]:
        if operation == "list_stacks":
            raise NotAnswered("no permission for cloudformation:ListStacks")
        return super().pages(service, operation, key, **more)


CHART: dict[str, Any] = {
    "LogicalResourceId": "Chart",
    "PhysicalResourceId": "hyperpod-dependencies",
    "ResourceType": "Custom::AWSCDK-EKS-HelmChart",
    "ResourceStatus": "DELETE_SKIPPED",
}
BUCKET: dict[str, Any] = {
    **CHART,
    "LogicalResourceId": "Logs",
    "PhysicalResourceId": "dev-logs",
    "ResourceType": "AWS::S3::Bucket",
}
CLUSTER: dict[str, Any] = {
    **CHART,
    "LogicalResourceId": "Cluster",
    "PhysicalResourceId": "dev-eks",
    "ResourceType": "AWS::EKS::Cluster",
}
GONE = {"ResourceStatus": "DELETE_COMPLETE"}


class Left(Stuck):
    """Nothing stands; stacks were deleted in an order, each with resources."""

    def __init__(self, *deleted: tuple[str, list[dict[str, Any]]]) -> None:
        super().__init__("DELETE_COMPLETE")
        self.deleted = deleted

    def pages(self, service: str, operation: str, key: str, **more: Any) -> list[Any]:
        if operation == "list_stacks":
            ends = datetime(2026, 11, 1, tzinfo=UTC)
            return [
                {"StackName": name, "StackId": str(number), "DeletionTime": ends + timedelta(days=number)}
                for number, (name, _) in enumerate(self.deleted)
            ]
        if operation == "list_stack_resources":
            return self.deleted[int(more["StackName"])][1]
        return super().pages(service, operation, key, **more)


@pytest.mark.parametrize(
    ("deleted", "stays"),
    [
        # a chart goes with its cluster, whatever its stack could not delete; a bucket does not
        ([("dev-foundation", [CHART, BUCKET, {**CLUSTER, **GONE}])], ["Logs"]),
        ([("dev-platform", [CHART]), ("dev-foundation", [{**CLUSTER, **GONE}])], []),
        # the cluster was left behind too, or is somebody else's
        ([("dev-foundation", [CHART, CLUSTER])], ["Chart", "Cluster"]),
        ([("dev-platform", [CHART])], ["Chart"]),
        # of a life after the cluster that is gone
        ([("dev-foundation", [{**CLUSTER, **GONE}]), ("dev-platform", [CHART])], ["Chart"]),
    ],
)
def test_what_stood_in_a_deleted_cluster_does_not_remain(
    head: Path, deleted: list[tuple[str, list[dict[str, Any]]]], stays: list[str]
) -> None:
    told = answered("recovery", _run(head, "--plan", "--format", "json", aws=Left(*deleted)).stdout)
    assert [each["logical_id"] for each in told["kept"]] == stays


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return write_assembly(tmp_path / "cdk.out", {"storage": QUEUE}, {})


def _run(head: Path, *arguments: str, aws: Any, answers: str = "") -> Result:
    words = ["recover", "dev", "--head", str(head), *arguments]
    access = Access(open=lambda *_: aws)
    return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=access, input=answers)


def test_nothing_is_deployed(head: Path) -> None:
    done = _run(head, aws=Stuck("DELETE_COMPLETE"))
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "dev: Nothing needs to be recovered.")


def test_a_look_reports_and_changes_nothing(head: Path) -> None:
    done = _run(head, "--plan", aws=Stuck())
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[:4] == [
        "dev: 1 solution to apply.",
        "",
        "dev-storage is UPDATE_ROLLBACK_FAILED",
        "  cause: It (AWS::SQS::Queue) could not be changed: no luck.",
    ]
    told = json.loads(_run(head, "--plan", "--format", "json", aws=Stuck()).stdout)
    assert [(each["stack"], each["way"]) for each in told["stacks"]] == [("dev-storage", "continue_rollback")]


def test_what_could_not_be_read_is_reported(head: Path) -> None:
    done = _run(head, "--plan", aws=Denied())
    note = "note: what deleted stacks left behind could not be read: no permission for cloudformation:ListStacks"
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, note)


@pytest.mark.parametrize("answers", ["", "n\n"])
def test_nothing_is_done_without_a_yes(head: Path, answers: str) -> None:
    done = _run(head, aws=Stuck(), answers=answers)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "nothing was changed")


@pytest.mark.parametrize(
    ("aws", "line"),
    [
        (Stuck("IMPORT_ROLLBACK_FAILED"), "dev: 1 stack without a known solution."),
        (Stuck(template={"Resources": {"Site": {"Type": "AWS::S3::Bucket"}}}), "dev: Refused; nothing is changed."),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["--plan"], ["--yes"]])
def test_what_has_no_way_ends_with_1(head: Path, aws: Any, line: str, arguments: list[str]) -> None:
    done = _run(head, *arguments, aws=aws)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, line)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "json"], "--format json is for --plan\n"),
        (["--plan", "--yes"], "--yes and --plan: use only one of them; --plan changes nothing\n"),
    ],
)
def test_words_that_do_not_go_together(head: Path, arguments: list[str], said: str) -> None:
    done = _run(head, *arguments, aws=Nothing())
    assert (done.exit_code, done.stderr) == (2, said)
