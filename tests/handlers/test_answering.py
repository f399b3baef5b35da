"""Every handler of a custom resource, with each of its AWS calls failing once or always: one response each."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.model import ServiceModel

from hyperpod_cdk.handlers import answering
from hyperpod_cdk.handlers.answering import Answer, AnswerNotSentError, Turn, serve
from hyperpod_cdk.handlers.autoscaling import index as autoscaling
from hyperpod_cdk.handlers.deletion_protection import index as deletion_protection
from hyperpod_cdk.handlers.governance import index as governance
from hyperpod_cdk.handlers.grafana import index as grafana
from hyperpod_cdk.handlers.log_settings import index as log_settings
from hyperpod_cdk.handlers.node_wait import index as node_wait
from hyperpod_cdk.handlers.quota_gate import index as quota_gate
from hyperpod_cdk.handlers.quota_gate.calling import Boto3Api
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, to_properties

STACK = "arn:aws:cloudformation:us-east-1:111122223333:stack/prod-platform/0a1b2c3d-guid"
CLUSTER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"
QUOTA = "arn:aws:sagemaker:us-east-1:111122223333:compute-quota/000000000001"
KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def refused(code: str, operation: str = "AnyOperation") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "told by the test"}}, operation)


@dataclass
class Meta:
    service_model: ServiceModel


@dataclass
class Aws:
    """Gives the answers of a scenario, an operation's last one for ever; time passes by sleeping only.

    ``failing`` says by the number of a call, and by its operation, which error comes instead.
    """

    model: ServiceModel
    answers: Mapping[str, list[Any]]
    failing: Callable[[int, str], Exception | None] = lambda _number, _operation: None
    called: list[str] = field(default_factory=list)
    slept: float = 0

    @property
    def meta(self) -> Meta:
        return Meta(self.model)

    def can_paginate(self, _: str) -> bool:
        return False

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        left = dict.__getitem__(self.__dict__["answers"], operation)

        def call(**_: Any) -> Any:
            self.called.append(operation)
            error = self.failing(len(self.called) - 1, operation)
            if error is not None:
                raise error
            answer = left[0] if len(left) == 1 else left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    # Lambda's context
    log_group_name = log_stream_name = invoked_function_arn = "one"

    def get_remaining_time_in_millis(self) -> float:
        return (900 - self.slept) * 1000


def _gate(event: Mapping[str, Any], aws: Aws, *, clients: Any, put: Any, sleep: Any) -> None:
    api = Boto3Api(clients, sleep=sleep, clock=lambda: aws.slept)
    quota_gate.handle(event, aws, api=lambda: api, put=put, sleep=sleep, region="us-east-1")


PROTECTION = {"EksClusterName": "prod-eks", "Enabled": "true"}
CLUSTER_STANDS = [{"cluster": {"name": "prod-eks", "status": "ACTIVE", "deletionProtection": False}}]
PROTECTED = [{"cluster": {"name": "prod-eks", "status": "ACTIVE", "deletionProtection": True}}]
EKS: dict[str, list[Any]] = {
    "describe_cluster": CLUSTER_STANDS,
    "update_cluster_config": [{"update": {"id": "u-1"}}],
    "describe_update": [{"update": {"status": "Successful"}}],
    "update_termination_protection": [{}],
}
LOGS: dict[str, list[Any]] = {
    name: [{}]
    for name in (
        "create_log_group",
        "put_retention_policy",
        "associate_kms_key",
        "disassociate_kms_key",
        "tag_resource",
        "untag_resource",
    )
}
GRAFANA: dict[str, list[Any]] = {
    "describe_workspace": [{"workspace": {"endpoint": "g-0123456789.grafana-workspace.us-east-1.amazonaws.com"}}],
    "list_workspace_service_accounts": [{"serviceAccounts": []}],
    "create_workspace_service_account": [{"id": "sa-1"}],
    "create_workspace_service_account_token": [{"serviceAccountToken": {"key": "secret"}}],
    "delete_workspace_service_account": [{}],
}
TAGS = {"Tags": {"team": "ml"}}
GROUP = {"LogGroupName": "/aws/eks/prod-eks/cluster", "RetentionInDays": "90"}
NODES: dict[str, list[Any]] = {
    "describe_cluster": [
        {
            "ClusterArn": CLUSTER,
            "ClusterName": "prod",
            "ClusterStatus": "InService",
            "InstanceGroups": [],
            "AutoScaling": {"Mode": "Enable"},
        }
    ],
    "list_cluster_events": [{"Events": []}],
    "list_cluster_nodes": [
        {"ClusterNodeSummaries": [{"InstanceGroupName": "system", "InstanceStatus": {"Status": "Running"}}]}
    ],
    "describe_stacks": [{"Stacks": [{"StackStatus": "UPDATE_IN_PROGRESS"}]}],
}
WAIT = {"Cluster": CLUSTER, "Groups": [{"Name": "system", "Count": "1"}], "Nodes": "1", "TimeoutSeconds": "1200"}
WANTED = {
    "Name": "prod-research",
    "ClusterArn": CLUSTER,
    "ComputeQuotaTarget": {"TeamName": "research"},
    "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": "2"}]},
}
STANDS = {"Name": "prod-research", "ComputeQuotaVersion": 1, "Status": "Created"}
GOVERNANCE: dict[str, list[Any]] = {
    "create_compute_quota": [{"ComputeQuotaArn": QUOTA}],
    "describe_compute_quota": [STANDS],
    "update_compute_quota": [{}],
    "add_tags": [{}],
    "delete_tags": [{}],
}
GATE = {
    "Mode": "enforce",
    "EnvironmentName": "prod",
    "Own": {"Stacks": ["prod-foundation"]},
    "Requirements": to_properties(
        [Requirement(key="a", service="sagemaker", name="a", code="L-A", default=0, needed=2, unit="a")]
    ),
}
QUOTAS: dict[str, list[Any]] = {
    "get_service_quota": [{"Quota": {"QuotaName": "a", "QuotaCode": "L-A", "Value": 8.0, "Adjustable": True}}],
    "list_service_quotas": [{"Quotas": []}],
    "list_aws_default_service_quotas": [{"Quotas": []}],
    "describe_stacks": [{"Stacks": [{"StackStatus": "UPDATE_IN_PROGRESS"}]}],
}


def stack(status: str) -> dict[str, list[Any]]:
    return {"describe_stacks": [{"Stacks": [{"StackStatus": status}]}]}


@dataclass(frozen=True)
class Scenario:
    """One event and the account that it meets; ``goes_on`` are operations whose refusal for good fails nothing."""

    name: str
    handle: Callable[..., None]
    kind: str
    properties: Mapping[str, Any]
    answers: Mapping[str, list[Any]]
    resource_type: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    physical_id: str = "made before"
    goes_on: frozenset[str] = frozenset()


SCENARIOS = [
    Scenario("protect EKS", deletion_protection.handle, "Create", PROTECTION, EKS | stack("CREATE_IN_PROGRESS")),
    Scenario("protect EKS later", deletion_protection.handle, "Update", PROTECTION, EKS | stack("UPDATE_IN_PROGRESS")),
    Scenario(
        "protect EKS on the way back",
        deletion_protection.handle,
        "Update",
        PROTECTION,
        EKS | stack("UPDATE_ROLLBACK_IN_PROGRESS"),
        goes_on=frozenset({"describe_cluster", "update_cluster_config", "describe_update"}),
    ),
    Scenario(
        "take back a creation",
        deletion_protection.handle,
        "Delete",
        PROTECTION,
        EKS | stack("ROLLBACK_IN_PROGRESS") | {"describe_cluster": PROTECTED},
        # EKS's own protection stands in nobody's way; the stack's does
        goes_on=frozenset({"describe_cluster", "update_cluster_config", "describe_update"}),
    ),
    Scenario(
        "delete the stack",
        deletion_protection.handle,
        "Delete",
        PROTECTION,
        EKS | stack("DELETE_IN_PROGRESS") | {"describe_cluster": PROTECTED},
    ),
    Scenario("settings", log_settings.handle, "Create", GROUP | {"KmsKeyArn": KEY} | TAGS, LOGS),
    Scenario(
        "settings without the key",
        log_settings.handle,
        "Update",
        GROUP,
        LOGS,
        before=GROUP | {"KmsKeyArn": KEY} | TAGS,
    ),
    Scenario("no settings", log_settings.handle, "Delete", GROUP, {}),
    Scenario(
        "dashboards",
        partial(grafana.handle, ask=lambda *_: (200, b"{}")),
        "Create",
        {"WorkspaceId": "g-0123456789", "ClusterName": "prod", "PrometheusUrl": "https://aps", "Region": "us-east-1"},
        GRAFANA,
        # the token ends by itself
        goes_on=frozenset({"delete_workspace_service_account"}),
    ),
    Scenario("no dashboards", grafana.handle, "Delete", {"WorkspaceId": "g-0123456789"}, {}),
    # what happened before helps to judge failures; nodes that run are told by the rest
    Scenario("nodes", node_wait.handle, "Create", WAIT, NODES, goes_on=frozenset({"list_cluster_events"})),
    Scenario(
        "other nodes",
        node_wait.handle,
        "Update",
        WAIT,
        NODES,
        before=WAIT | {"Nodes": "2"},
        # an update that may be one that is taken back, or that waits for nothing, is not stopped
        goes_on=frozenset({"list_cluster_events", "describe_stacks"}),
    ),
    Scenario(
        "the same nodes",
        node_wait.handle,
        "Update",
        WAIT,
        NODES,
        before=WAIT,
        goes_on=frozenset({"describe_cluster", "list_cluster_nodes"}),
    ),
    Scenario("no nodes", node_wait.handle, "Delete", WAIT, {}),
    Scenario(
        "counts",
        autoscaling.handle,
        "Update",
        {"ClusterName": "prod", "Groups": ["a"]},
        NODES,
        resource_type=autoscaling.NODE_COUNTS,
    ),
    Scenario(
        "Karpenter",
        autoscaling.handle,
        "Create",
        {"ClusterName": "prod"},
        {"describe_cluster": [{"AutoScaling": {"Status": status}} for status in ("Creating", "InService")]},
    ),
    Scenario("no Karpenter", autoscaling.handle, "Delete", {"ClusterName": "prod"}, {}),
    Scenario("quota", governance.handle, "Create", WANTED, GOVERNANCE, resource_type="Custom::ComputeQuota"),
    Scenario(
        "other quota",
        governance.handle,
        "Update",
        WANTED | {"Tags": [{"Key": "b", "Value": "1"}]},
        GOVERNANCE,
        resource_type="Custom::ComputeQuota",
        before=WANTED | {"Tags": [{"Key": "a", "Value": "1"}]},
        physical_id=QUOTA,
    ),
    Scenario(
        "no quota",
        governance.handle,
        "Delete",
        WANTED,
        {"describe_compute_quota": [STANDS, refused("ResourceNotFound")], "delete_compute_quota": [{}]},
        resource_type="Custom::ComputeQuota",
        physical_id=QUOTA,
    ),
    Scenario(
        "a quota that was never made",
        governance.handle,
        "Delete",
        WANTED,
        {},
        resource_type="Custom::ComputeQuota",
        physical_id="ResearchQuota-0a1b2c3d-guid",
    ),
    # what cannot be read refuses nothing: it is told as skipped
    Scenario("gate", _gate, "Create", GATE, QUOTAS, goes_on=frozenset(QUOTAS)),
    Scenario("gate again", _gate, "Update", GATE, QUOTAS, before=GATE, goes_on=frozenset(QUOTAS)),
    Scenario("no gate", _gate, "Delete", GATE, {}),
]


def served(scenario: Scenario, aws: Aws) -> dict[str, Any]:
    """Run the handler with the scenario's event; returns the only response."""
    sent: list[bytes] = []
    event = {
        "RequestType": scenario.kind,
        "ResponseURL": "https://answers",
        "StackId": STACK,
        "RequestId": "r-1",
        "LogicalResourceId": "One",
        "ResourceType": scenario.resource_type,
        "ResourceProperties": scenario.properties,
        **({} if scenario.kind == "Create" else {"PhysicalResourceId": scenario.physical_id}),
        **({"OldResourceProperties": scenario.before} if scenario.kind == "Update" else {}),
    }
    scenario.handle(event, aws, clients=lambda _: aws, put=lambda _, body: sent.append(body), sleep=aws.sleep)
    (body,) = sent
    answer: dict[str, Any] = json.loads(body)
    assert answer["PhysicalResourceId"]
    return answer


def account(
    scenario: Scenario, model: ServiceModel, failing: Callable[[int, str], Exception | None] = lambda _n, _o: None
) -> Aws:
    return Aws(model, {name: list(answers) for name, answers in scenario.answers.items()}, failing)


each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@each_scenario
@pytest.mark.parametrize("code", ["AccessDeniedException", "AccessDenied", "ThrottlingException"])
def test_a_call_that_fails_once_fails_nothing(scenario: Scenario, code: str, sagemaker_model: ServiceModel) -> None:
    fine = account(scenario, sagemaker_model)
    assert served(scenario, fine)["Status"] == "SUCCESS"
    for number, operation in enumerate(fine.called):
        aws = account(
            scenario,
            sagemaker_model,
            lambda n, o, at=number: refused(code, o) if n == at else None,  # type: ignore[misc]
        )
        answer = served(scenario, aws)
        assert (answer["Status"], answer["Reason"]) == ("SUCCESS", ""), operation
        # the quota gate asks no second time whom AWS tells to be slower: what it could not read is skipped
        assert len(aws.called) > len(fine.called) or scenario.handle is _gate, operation


@each_scenario
def test_a_call_that_is_refused_for_good_is_told_once_and_in_time(
    scenario: Scenario, sagemaker_model: ServiceModel
) -> None:
    fine = account(scenario, sagemaker_model)
    served(scenario, fine)
    for operation in dict.fromkeys(fine.called):
        aws = account(
            scenario,
            sagemaker_model,
            lambda _, o, which=operation: refused("AccessDeniedException", o) if o == which else None,  # type: ignore[misc]
        )
        answer = served(scenario, aws)
        expected = "SUCCESS" if operation in scenario.goes_on else "FAILED"
        assert answer["Status"] == expected, operation
        assert answer["Status"] == "SUCCESS" or "AccessDeniedException" in answer["Reason"]
        assert aws.slept <= 2 * answering.PATIENCE_SECONDS


@each_scenario
def test_what_is_gone_needs_no_deleting(scenario: Scenario, sagemaker_model: ServiceModel) -> None:
    def gone(_: int, operation: str) -> Exception | None:
        codes = {"describe_cluster": "ResourceNotFoundException", "describe_compute_quota": "ResourceNotFound"}
        return refused(codes[operation], operation) if operation in codes else None

    if scenario.kind == "Delete":
        assert served(scenario, account(scenario, sagemaker_model, gone))["Status"] == "SUCCESS"


EVENT = {
    "RequestType": "Create",
    "ResponseURL": "https://answers",
    "StackId": STACK,
    "RequestId": "r-1",
    "LogicalResourceId": "One",
}


def answered(event: Mapping[str, Any], work: Callable[[Turn], Answer], aws: Aws, **more: Any) -> list[dict[str, Any]]:
    sent: list[bytes] = []
    serve(event, aws, work, clients=lambda _: aws, put=lambda _, body: sent.append(body), sleep=aws.sleep, **more)
    return [json.loads(body) for body in sent]


@pytest.fixture
def aws(sagemaker_model: ServiceModel) -> Aws:
    return Aws(sagemaker_model, {"describe_cluster": [{}]})


def test_a_long_reason_is_cut_to_what_cloudformation_takes(aws: Aws) -> None:
    def work(_: Turn) -> Answer:
        raise answering.ToldError("ü" * 5000)

    (answer,) = answered(EVENT, work, aws)
    assert answer["Reason"].endswith("ü ...")
    assert 3600 < len(json.dumps(answer)) <= answering.ANSWER_BYTES


def test_what_is_handed_over_is_not_answered(aws: Aws) -> None:
    assert answered(EVENT, lambda _: answering.LATER, aws) == []


@pytest.mark.parametrize(("kind", "physical_id"), [("Create", QUOTA), ("Update", "before")])
def test_a_failure_names_what_was_made_and_an_update_keeps_what_it_had(kind: str, physical_id: str, aws: Aws) -> None:
    def work(turn: Turn) -> Answer:
        turn.physical_id = QUOTA
        raise answering.ToldError("no")

    before = {} if kind == "Create" else {"PhysicalResourceId": "before"}
    (answer,) = answered(EVENT | {"RequestType": kind} | before, work, aws)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", physical_id)


@pytest.mark.parametrize("kind", ["Rename", "", None])
def test_a_kind_that_there_is_not(kind: str | None, aws: Aws) -> None:
    (answer,) = answered(EVENT | {"RequestType": kind}, lambda _: Answer(), aws)
    assert answer["Reason"] == f"RequestType: must be Create, Update or Delete, got {str(kind)!r}"


def test_patience_ends(aws: Aws) -> None:
    aws.failing = lambda _, operation: refused("AccessDenied", operation)

    def work(turn: Turn) -> Answer:
        turn.client("any").describe_cluster()
        return Answer()

    (answer,) = answered(EVENT, work, aws)
    assert answer["Status"] == "FAILED"
    assert 50 <= aws.slept <= answering.PATIENCE_SECONDS
    assert len(aws.called) == 9


@pytest.mark.parametrize(("status", "calls"), [(500, 2), (503, 2), (499, 1), (400, 1)], ids=str)
def test_an_error_of_the_server_passes_whatever_its_code(status: int, calls: int, aws: Aws) -> None:
    error = refused("Odd")
    error.response["ResponseMetadata"] = {
        "HTTPStatusCode": status,
        "HTTPHeaders": {},
        "HostId": "",
        "RequestId": "",
        "RetryAttempts": 0,
    }
    aws.failing = lambda number, _: None if number else error

    def work(turn: Turn) -> Answer:
        turn.client("any").describe_cluster()
        return Answer()

    (answer,) = answered(EVENT, work, aws)
    assert len(aws.called) == calls
    assert answer["Status"] == ("SUCCESS" if calls == 2 else "FAILED")


def test_work_that_hangs_is_answered_for_and_calls_nobody_afterwards(aws: Aws) -> None:
    let_go, ended = threading.Event(), threading.Event()
    aws.slept = 900 - answering.ANSWER_SECONDS

    def work(turn: Turn) -> Answer:
        let_go.wait()
        try:
            turn.client("any").describe_cluster()
        finally:
            ended.set()
        return Answer()

    (answer,) = answered(EVENT, work, aws)
    assert answer["Reason"] == "AWS had not answered when the function's time ran out; deploy again"
    let_go.set()
    assert ended.wait(10)
    assert aws.called == []


def test_a_client_that_cannot_be_made_is_answered(aws: Aws) -> None:
    def no_client(_: str) -> Any:
        raise ImportError("no module named boto3")

    def work(turn: Turn) -> Answer:
        turn.client("sagemaker")
        return Answer()

    sent: list[bytes] = []
    serve(EVENT, aws, work, clients=no_client, put=lambda _, body: sent.append(body))
    assert json.loads(sent[0])["Reason"] == "ImportError: no module named boto3"


def test_the_answer_is_sent_again_when_the_line_breaks(aws: Aws) -> None:
    def breaking(times: int) -> Callable[[str, bytes], None]:
        left: Iterator[int] = iter(range(times))

        def put(_: str, __: bytes) -> None:
            if next(left, None) is not None:
                raise OSError("reset")

        return put

    serve(EVENT, aws, lambda _: Answer(), clients=lambda _: aws, put=breaking(2), sleep=aws.sleep)
    assert aws.slept == 3
    with pytest.raises(AnswerNotSentError, match="CloudFormation does not take the answer: reset"):
        serve(EVENT, aws, lambda _: Answer(), clients=lambda _: aws, put=breaking(3), sleep=aws.sleep)


@pytest.mark.parametrize("status", [200, 307, 403])
def test_put_speaks_http_with_an_empty_content_type(status: int) -> None:
    seen: list[tuple[str, str | None, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            length = int(self.headers["Content-Length"])
            seen.append((self.path, self.headers["Content-Type"], self.rfile.read(length)))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gives it
            """Keep the test's output clean."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/answer?signature=a%2Fb"
        if status == 200:
            answering.put(url, b"{}")
        else:
            with pytest.raises(OSError, match=f"HTTP {status}"):
                answering.put(url, b"{}")
        thread.join()

    assert seen == [("/answer?signature=a%2Fb", "", b"{}")]
