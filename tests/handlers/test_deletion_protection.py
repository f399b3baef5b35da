"""The Lambda function of Custom::HyperPodDeletionProtection: what it changes, and one response to every event."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk.handlers.answering import AnswerNotSentError
from hyperpod_cdk.handlers.deletion_protection.index import handle

STACK = "arn:aws:cloudformation:us-east-1:111122223333:stack/prod-hyperpod/0a1b2c3d-guid"
LIFTED = ("cloudformation", "update_termination_protection", {"StackName": STACK, "EnableTerminationProtection": False})
OFF = ("eks", "update_cluster_config", {"name": "prod-eks", "deletionProtection": False})
ON = ("eks", "update_cluster_config", {"name": "prod-eks", "deletionProtection": True})
BUSY = "Cannot deletionProtection because cluster prod-eks currently has update 1 in progress"


def refusal(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "AnyOperation")


@dataclass
class FakeAws:
    """A stack and an EKS cluster: the stack's status, the cluster's states one after the other, errors by operation."""

    status: str = "CREATE_IN_PROGRESS"
    protected: bool = False
    states: list[str] = field(default_factory=lambda: ["ACTIVE"])
    updates: list[str] = field(default_factory=lambda: ["InProgress", "Successful"])
    errors: dict[str, list[Exception]] = field(default_factory=dict)
    changes: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    slept: float = 0

    def client(self, service: str) -> Any:
        return _Client(self, service)

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's keyword
        assert StackName == STACK
        return {"Stacks": [{"StackStatus": self.status}]}

    def update_termination_protection(self, **_: Any) -> dict[str, Any]:
        return {}

    def describe_cluster(self, name: str) -> dict[str, Any]:
        state = self.states[0] if len(self.states) == 1 else self.states.pop(0)
        if state == "gone":
            raise refusal("ResourceNotFoundException")
        return {"cluster": {"name": name, "status": state, "deletionProtection": self.protected}}

    def update_cluster_config(self, name: str, deletionProtection: bool) -> dict[str, Any]:  # noqa: FBT001, N803 - boto3's keyword
        assert name == "prod-eks"
        self.protected = deletionProtection
        return {"update": {"id": "u-1", "status": "InProgress"}}

    def describe_update(self, name: str, updateId: str) -> dict[str, Any]:  # noqa: N803 - boto3's keyword
        assert (name, updateId) == ("prod-eks", "u-1")
        errors = [{"errorCode": "Unknown", "errorMessage": "EKS is tired"}]
        return {"update": {"status": self.updates.pop(0), "errors": errors}}

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


@dataclass
class _Client:
    aws: FakeAws
    service: str

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            failing = self.aws.errors.get(operation)
            if failing:
                raise failing.pop(0)
            if operation.startswith("update_"):
                self.aws.changes.append((self.service, operation, arguments))
            return getattr(self.aws, operation)(**arguments)

        return call


@dataclass
class Context:
    """Lambda's clock, which only sleeping moves."""

    seconds: float = 900
    aws: FakeAws = field(default_factory=FakeAws)

    def get_remaining_time_in_millis(self) -> int:
        return int((self.seconds - self.aws.slept) * 1000)


def answered(
    request_type: str, aws: FakeAws, *, seconds: float = 900, properties: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Handle one event, and give the one answer that was sent."""
    sent: list[tuple[str, bytes]] = []
    event = {
        "RequestType": request_type,
        "ResponseURL": "https://answers",
        "StackId": STACK,
        "RequestId": "r-1",
        "LogicalResourceId": "DeletionProtection",
        "ResourceProperties": {"EksClusterName": "prod-eks", "Enabled": "true"} if properties is None else properties,
        **({} if request_type == "Create" else {"PhysicalResourceId": "made by CloudFormation"}),
    }
    handle(
        event,
        Context(seconds, aws),
        clients=aws.client,
        put=lambda url, body: sent.append((url, body)),
        sleep=aws.sleep,
    )
    ((url, body),) = sent
    assert url == "https://answers"
    answer: dict[str, Any] = json.loads(body)
    expected = "DeletionProtection-0a1b2c3d-guid" if request_type == "Create" else "made by CloudFormation"
    told = {key: answer.pop(key) for key in ("PhysicalResourceId", "StackId", "RequestId", "LogicalResourceId")}
    assert told == {
        "PhysicalResourceId": expected,
        "StackId": STACK,
        "RequestId": "r-1",
        "LogicalResourceId": "DeletionProtection",
    }
    return answer


FINE = {"Status": "SUCCESS", "Reason": "", "Data": {}}


def failed(reason: str) -> dict[str, Any]:
    return {"Status": "FAILED", "Reason": reason, "Data": {}}


class TestCreateAndUpdate:
    @pytest.mark.parametrize("request_type", ["Create", "Update"])
    @pytest.mark.parametrize("protected", [False, True])
    @pytest.mark.parametrize("enabled", ["false", "true"])
    def test_eks_gets_what_the_file_says(self, request_type: str, protected: bool, enabled: str) -> None:  # noqa: FBT001 - table
        aws = FakeAws(protected=protected)
        properties = {"EksClusterName": "prod-eks", "Enabled": enabled}
        assert answered(request_type, aws, properties=properties) == FINE
        wanted = ON if enabled == "true" else OFF
        assert aws.changes == ([] if protected == (enabled == "true") else [wanted])

    @pytest.mark.parametrize("request_type", ["Create", "Update"])
    def test_a_stack_without_eks_is_left_alone(self, request_type: str) -> None:
        aws = FakeAws(errors={"describe_cluster": [AssertionError("asked")]})
        assert answered(request_type, aws, properties={"Enabled": "true"}) == FINE
        assert aws.changes == []

    def test_it_waits_until_the_cluster_is_active_and_no_other_update_goes_on(self) -> None:
        aws = FakeAws(
            states=["CREATING", "UPDATING", "ACTIVE"],
            errors={"update_cluster_config": [refusal("ResourceInUseException", BUSY)]},
        )
        assert answered("Create", aws) == FINE
        assert aws.changes == [ON]
        # twice for the state, once for the other update, once for its own
        assert aws.slept == 4 * 5

    @pytest.mark.parametrize("code", ["InvalidParameterException", "InvalidRequestException"])
    def test_what_another_call_has_switched_meanwhile_is_done(self, code: str) -> None:
        text = "No changes needed for the cluster config provided"

        class Switched(FakeAws):
            def update_cluster_config(self, name: str, deletionProtection: bool) -> dict[str, Any]:  # noqa: FBT001, N803 - boto3's keyword
                super().update_cluster_config(name, deletionProtection)
                raise refusal(code, text)

        aws = Switched()
        assert answered("Create", aws) == FINE
        assert aws.changes == [ON]
        assert aws.slept == 5

    @pytest.mark.parametrize("code", ["InvalidParameterException", "InvalidRequestException"])
    def test_another_refusal_of_the_update_is_reported(self, code: str) -> None:
        aws = FakeAws(errors={"update_cluster_config": [refusal(code, "no such thing")]})
        assert answered("Create", aws) == failed(
            f"An error occurred ({code}) when calling the AnyOperation operation: no such thing"
        )

    def test_what_does_not_come_to_an_end_is_reported(self) -> None:
        aws = FakeAws(states=["UPDATING"])
        assert answered("Create", aws, seconds=60) == failed(
            "the EKS cluster prod-eks is UPDATING, so its deletion protection could not be switched in time;"
            " deploy again"
        )
        assert aws.slept == 35

    def test_an_update_that_fails_is_reported(self) -> None:
        aws = FakeAws(updates=["Failed"])
        assert answered("Create", aws) == failed(
            "the deletion protection of the EKS cluster prod-eks was not switched: Failed, EKS is tired"
        )

    def test_a_cluster_that_is_not_there_cannot_be_protected(self) -> None:
        assert answered("Create", FakeAws(states=["gone"])) == failed(
            "the EKS cluster prod-eks does not exist, so it cannot be protected"
        )

    def test_a_creation_that_was_cancelled_switches_nothing_on_behind_its_own_deletion(self) -> None:
        aws = FakeAws(status="ROLLBACK_IN_PROGRESS")
        assert answered("Create", aws) == FINE
        assert aws.changes == []

    def test_an_error_of_aws_fails_an_update(self) -> None:
        aws = FakeAws(
            status="UPDATE_IN_PROGRESS",
            errors={"update_cluster_config": [refusal("AccessDeniedException", "no right")] * 99},
        )
        assert answered("Update", aws) == failed(
            "An error occurred (AccessDeniedException) when calling the AnyOperation operation: no right"
        )

    def test_a_rollback_of_an_update_never_fails(self) -> None:
        aws = FakeAws(
            status="UPDATE_ROLLBACK_IN_PROGRESS",
            errors={"update_cluster_config": [refusal("AccessDeniedException", "no right")] * 99},
        )
        assert answered("Update", aws) == FINE


class TestDelete:
    @pytest.mark.parametrize(
        ("status", "changes"),
        [
            ("ROLLBACK_IN_PROGRESS", [LIFTED, OFF]),
            ("ROLLBACK_FAILED", [LIFTED, OFF]),
            ("DELETE_IN_PROGRESS", [OFF]),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", []),
            ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", []),
            ("UPDATE_ROLLBACK_IN_PROGRESS", []),
        ],
    )
    def test_what_is_lifted_follows_from_what_the_stack_is_at(self, status: str, changes: list[Any]) -> None:
        aws = FakeAws(status=status, protected=True)
        assert answered("Delete", aws) == FINE
        assert aws.changes == changes

    def test_a_stack_without_eks(self) -> None:
        aws = FakeAws(status="ROLLBACK_IN_PROGRESS")
        assert answered("Delete", aws, properties={"Enabled": "true"}) == FINE
        assert aws.changes == [LIFTED]

    @pytest.mark.parametrize("state", ["gone", "CREATING", "DELETING", "FAILED"])
    def test_a_cluster_that_its_protection_does_not_bind_is_left_alone(self, state: str) -> None:
        aws = FakeAws(status="DELETE_IN_PROGRESS", protected=True, states=[state])
        assert answered("Delete", aws) == FINE
        assert aws.changes == []

    def test_a_cluster_that_goes_while_it_is_waited_for(self) -> None:
        aws = FakeAws(status="DELETE_IN_PROGRESS", protected=True, states=["UPDATING", "gone"])
        assert answered("Delete", aws) == FINE
        assert aws.changes == []

    def test_a_stack_that_stays_protected_says_how_to_lift_it(self) -> None:
        aws = FakeAws(
            status="ROLLBACK_IN_PROGRESS",
            errors={"update_termination_protection": [refusal("AccessDenied", "no right")] * 99},
        )
        assert answered("Delete", aws) == failed(
            "termination protection of the stack prod-hyperpod, whose creation failed, could not be lifted: An error"
            " occurred (AccessDenied) when calling the AnyOperation operation: no right; run 'aws cloudformation"
            " update-termination-protection --no-enable-termination-protection --stack-name prod-hyperpod', then deploy"
            " again"
        )

    def test_eks_does_not_hold_up_a_rollback(self) -> None:
        aws = FakeAws(
            status="ROLLBACK_IN_PROGRESS",
            protected=True,
            errors={"update_cluster_config": [refusal("AccessDenied")] * 99},
        )
        assert answered("Delete", aws) == FINE
        assert aws.changes == [LIFTED]

    def test_eks_holds_up_an_ordinary_deletion(self) -> None:
        aws = FakeAws(
            status="DELETE_IN_PROGRESS",
            protected=True,
            errors={"update_cluster_config": [refusal("AccessDenied", "no")] * 99},
        )
        assert answered("Delete", aws) == failed(
            "An error occurred (AccessDenied) when calling the AnyOperation operation: no"
        )


class TestAnswer:
    def test_an_event_that_makes_no_sense_is_answered(self) -> None:
        sent: list[bytes] = []
        event = {"RequestType": "Create", "ResponseURL": "https://answers", "StackId": STACK}
        handle(event, Context(), clients=FakeAws().client, put=lambda _, body: sent.append(body))
        assert json.loads(sent[0])["Status"] == "FAILED"
        assert json.loads(sent[0])["Reason"] == "KeyError: 'ResourceProperties'"

    def test_the_answer_is_sent_three_times_then_lambda_is_informed(self) -> None:
        pauses: list[float] = []

        def put(url: str, body: bytes) -> None:
            raise OSError(f"HTTP 503 for {len(body) > 0} {url}")

        event = {
            "RequestType": "Create",
            "ResponseURL": "https://answers",
            "StackId": STACK,
            "ResourceProperties": {},
        }
        with pytest.raises(AnswerNotSentError, match="HTTP 503"):
            handle(event, Context(), clients=FakeAws().client, put=put, sleep=pauses.append)
        assert pauses == [1.0, 2.0]

    def test_work_that_hangs_is_answered_for(self) -> None:
        let_go = threading.Event()
        sent: list[bytes] = []

        class Hanging(FakeAws):
            def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's keyword
                let_go.wait()
                return {"Stacks": [{"StackStatus": StackName}]}

        event = {
            "RequestType": "Delete",
            "ResponseURL": "https://answers",
            "StackId": STACK,
            "ResourceProperties": {},
        }
        handle(event, Context(25), clients=Hanging().client, put=lambda _, body: sent.append(body))
        assert json.loads(sent[0])["Reason"] == "AWS had not answered when the function's time ran out; deploy again"
        let_go.set()
