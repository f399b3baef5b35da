"""The Lambda function that configures a log group, with a simulated CloudWatch Logs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk.handlers.log_settings import index

NAME = "/aws/eks/prod-eks/cluster"
STACK = "arn:aws-us-gov:cloudformation:us-gov-west-1:111122223333:stack/prod-foundation/0a1b2c3d-guid"
ARN = f"arn:aws-us-gov:logs:us-gov-west-1:111122223333:log-group:{NAME}"
KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@dataclass
class Logs:
    """Keeps groups; ``faults`` are the codes of the next errors of an operation."""

    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    called: list[str] = field(default_factory=list)

    def create_log_group(self, *, logGroupName: str) -> None:  # noqa: N803 - boto3's own
        self._begin("CreateLogGroup")
        if logGroupName in self.groups:
            raise refused("ResourceAlreadyExistsException", "CreateLogGroup")
        self.groups[logGroupName] = {}

    def put_retention_policy(self, *, logGroupName: str, retentionInDays: int) -> None:  # noqa: N803 - boto3's own
        self._begin("PutRetentionPolicy")
        self.groups[logGroupName]["retentionInDays"] = retentionInDays

    def associate_kms_key(self, *, logGroupName: str, kmsKeyId: str) -> None:  # noqa: N803 - boto3's own
        self._begin("AssociateKmsKey")
        self.groups[logGroupName]["kmsKeyId"] = kmsKeyId

    def disassociate_kms_key(self, *, logGroupName: str) -> None:  # noqa: N803 - boto3's own
        self._begin("DisassociateKmsKey")
        self.groups[logGroupName].pop("kmsKeyId", None)

    def tag_resource(self, *, resourceArn: str, tags: dict[str, str]) -> None:  # noqa: N803 - boto3's own
        self._begin("TagResource")
        assert resourceArn == ARN
        self.groups[NAME].setdefault("tags", {}).update(tags)

    def untag_resource(self, *, resourceArn: str, tagKeys: list[str]) -> None:  # noqa: N803 - boto3's own
        self._begin("UntagResource")
        assert resourceArn == ARN
        for key in tagKeys:
            del self.groups[NAME]["tags"][key]

    def _begin(self, operation: str) -> None:
        self.called.append(operation)
        if self.faults.get(operation):
            raise refused(self.faults[operation].pop(0), operation)


def refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "told by the test"}}, operation)


class Context:
    """Lambda's context, with time."""

    def get_remaining_time_in_millis(self) -> int:
        return 120_000


def run(logs: Logs, request: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Handle an event and give what matters of the answer that CloudFormation gets."""
    sent: list[bytes] = []
    event = {
        "RequestType": request,
        "RequestId": "request",
        "StackId": STACK,
        "LogicalResourceId": "Settings",
        "ResponseURL": "https://answer.example/?signature",
        "ResourceProperties": {"LogGroupName": NAME, "RetentionInDays": "90", **properties},
        **more,
    }
    index.handle(event, Context(), clients=lambda _: logs, put=lambda _, body: sent.append(body), sleep=lambda _: None)
    (body,) = sent
    answer: dict[str, Any] = json.loads(body)
    fixed = {"RequestId": "request", "StackId": STACK, "LogicalResourceId": "Settings"}
    assert {key: answer.pop(key) for key in fixed} == fixed
    return {key: value for key, value in answer.items() if value}


MADE = {"Status": "SUCCESS", "PhysicalResourceId": "Settings-0a1b2c3d-guid"}


def test_a_group_that_is_missing_is_made() -> None:
    logs = Logs()
    assert run(logs, "Create", {}) == MADE
    assert logs.groups == {NAME: {"retentionInDays": 90}}


def test_a_group_that_is_there_is_taken_as_it_is() -> None:
    logs = Logs({NAME: {"retentionInDays": 7, "kmsKeyId": "the owner's"}})
    assert run(logs, "Create", {}) == MADE
    assert logs.groups == {NAME: {"retentionInDays": 90, "kmsKeyId": "the owner's"}}


def test_a_key_is_granted_and_revoked_by_its_grantor() -> None:
    logs = Logs()
    assert run(logs, "Create", {"KmsKeyArn": KEY}) == MADE
    assert logs.groups[NAME]["kmsKeyId"] == KEY
    before = {"LogGroupName": NAME, "RetentionInDays": "90", "KmsKeyArn": KEY}
    assert run(logs, "Update", {}, PhysicalResourceId="Settings-0a1b2c3d-guid", OldResourceProperties=before) == MADE
    assert "kmsKeyId" not in logs.groups[NAME]


def test_another_name_is_another_group_and_the_first_one_stays() -> None:
    logs = Logs({"/old": {"kmsKeyId": KEY}})
    before = {"LogGroupName": "/old", "RetentionInDays": "90", "KmsKeyArn": KEY}
    assert run(logs, "Update", {}, PhysicalResourceId="Settings-0a1b2c3d-guid", OldResourceProperties=before) == MADE
    assert logs.groups == {"/old": {"kmsKeyId": KEY}, NAME: {"retentionInDays": 90}}


def test_tags_follow_the_properties_and_others_stay() -> None:
    logs = Logs({NAME: {"tags": {"owner": "somebody"}}})
    tags = {"team": "ml", "cost-center": "42"}
    assert run(logs, "Create", {"Tags": tags}) == MADE
    assert logs.groups[NAME]["tags"] == {"owner": "somebody", **tags}
    before = {"LogGroupName": NAME, "RetentionInDays": "90", "Tags": tags}
    assert run(logs, "Update", {"Tags": {"team": "research"}}, OldResourceProperties=before) == MADE
    assert logs.groups[NAME]["tags"] == {"owner": "somebody", "team": "research"}
    logs.called.clear()
    assert run(logs, "Update", {}, OldResourceProperties={"LogGroupName": "/old", "Tags": tags}) == MADE
    assert logs.called == ["CreateLogGroup", "PutRetentionPolicy"]


def test_deleting_leaves_the_group_and_asks_nothing() -> None:
    logs = Logs({NAME: {}})
    assert run(logs, "Delete", {}, PhysicalResourceId="Settings-0a1b2c3d-guid") == MADE
    assert logs.called == []


@pytest.mark.parametrize("operation", ["CreateLogGroup", "PutRetentionPolicy"])
@pytest.mark.parametrize("code", ["OperationAbortedException", "AccessDeniedException"])
def test_what_passes_is_waited_for(operation: str, code: str) -> None:
    logs = Logs(faults={operation: [code] * 3})
    assert run(logs, "Create", {}) == MADE
    logs = Logs(faults={operation: [code] * 99})
    assert run(logs, "Create", {}) == {
        "Status": "FAILED",
        "PhysicalResourceId": "Settings-0a1b2c3d-guid",
        "Reason": f"An error occurred ({code}) when calling the {operation} operation: told by the test",
    }
