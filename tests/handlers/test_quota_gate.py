"""The quota gate's Lambda: one response to every event, regardless of errors."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.handlers import answering
from hyperpod_cdk.handlers.quota_gate import index
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, to_properties
from hyperpod_cdk.handlers.quota_gate.reading import Listed, NoSuchQuota, NotAnswered

STACK = "arn:aws:cloudformation:us-east-1:111122223333:stack/prod-foundation/0a1b2c3d-guid"
P5_CODE, VPC_CODE = "L-P5", "L-VPC"


def p5(needed: float, **rest: Any) -> Requirement:
    """The quota of instances of one type."""
    name = "ml.p5.48xlarge for cluster usage"
    return Requirement(
        key="cluster:ml.p5.48xlarge",
        service="sagemaker",
        name=name,
        code=P5_CODE,
        default=0,
        needed=needed,
        **{
            "unit": name,
            "path": "hyperpod.instance_groups[1].count",
            "lever": "the count",
            **rest,
        },
    )


def vpcs(needed: float = 1, **rest: Any) -> Requirement:
    """The quota of VPCs, which others use too."""
    rest = {"usage": "vpcs", "unit": "VPCs", **rest}
    return Requirement(
        key="vpcs", service="vpc", name="VPCs per Region", code=VPC_CODE, default=5, needed=needed, **rest
    )


def properties(*requirements: Requirement, mode: str = "enforce", **rest: Any) -> dict[str, Any]:
    """A gate's properties, as CloudFormation sends them."""
    return {
        "ServiceToken": "arn:aws:lambda:us-east-1:111122223333:function:gate",
        "ServiceTimeout": "540",
        "Mode": mode,
        "EnvironmentName": "prod",
        "Own": {"Stacks": ["prod-foundation"], "HyperPodCluster": "prod", "EksCluster": "prod-eks"},
        "Requirements": to_properties(requirements),
        **rest,
    }


@dataclass
class FakeApi:
    """An account: applied values by quota code, VPCs by stack, the stack's status, errors by operation."""

    applied: Mapping[str, float] = field(default_factory=lambda: {P5_CODE: 8, VPC_CODE: 5})
    vpc_stacks: Iterable[str] = ()
    status: str = "UPDATE_IN_PROGRESS"
    errors: Mapping[str, BaseException] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        self.asked.append(operation)
        if operation in self.errors:
            raise self.errors[operation]
        if operation == "describe_stacks":
            assert params == {"StackName": STACK}
            return {"Stacks": [{"StackStatus": self.status}]}
        assert (service, operation) == ("service-quotas", "get_service_quota"), operation
        code = params["QuotaCode"]
        if code not in self.applied:
            raise NoSuchQuota(code)
        name = {P5_CODE: "ml.p5.48xlarge for cluster usage", VPC_CODE: "VPCs per Region"}[code]
        return {"Quota": {"QuotaName": name, "QuotaCode": code, "Value": self.applied[code], "Adjustable": True}}

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        self.asked.append(operation)
        assert (service, operation, key, params) == ("ec2", "describe_vpcs", "Vpcs", {})
        error = self.errors.get(operation)
        if isinstance(error, NotAnswered):
            return Listed(items=(), missing=error)
        if error is not None:
            raise error
        items = [
            {"VpcId": f"vpc-{n}", "Tags": [{"Key": "aws:cloudformation:stack-name", "Value": stack}]}
            for n, stack in enumerate(self.vpc_stacks)
        ]
        return Listed(items=items)

    def each(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]


class Context:
    """Lambda's context object."""

    log_group_name = "prod-gate-logs"
    log_stream_name = "2026/11/21/[$LATEST]0123"

    def __init__(self, seconds: float = 120.0) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


def event(request_type: str = "Create", wanted: Any = None, **rest: Any) -> dict[str, Any]:
    """An event as CloudFormation sends it."""
    return {
        "RequestType": request_type,
        "ResponseURL": "https://answers.invalid/put?signature=x",
        "StackId": STACK,
        "RequestId": "5b6a1f0e-request",
        "LogicalResourceId": "QuotaGate3038665D",
        "ResourceType": "Custom::HyperPodQuotaGate",
        "ResourceProperties": properties(p5(2), vpcs()) if wanted is None else wanted,
        **({} if request_type == "Create" else {"PhysicalResourceId": "QuotaGate3038665D-0a1b2c3d-guid"}),
        **rest,
    }


def answer_to(sent: dict[str, Any], api: Any = None, *, seconds: float = 120.0) -> dict[str, Any]:
    """Handle an event and give the one answer."""
    bodies: list[bytes] = []
    index.handle(
        sent,
        Context(seconds),
        api=lambda: api or FakeApi(),
        put=lambda _url, body: bodies.append(body),
        sleep=lambda _seconds: None,
        region="us-east-1",
    )
    (body,) = bodies
    assert len(body) < 4096
    found: dict[str, Any] = json.loads(body)
    return found


P5_FINDING = (
    "hyperpod.instance_groups[1].count: needs 16 ml.p5.48xlarge for cluster usage, quota is 8 in us-east-1; "
    "lower the count to 8 or run 'hyperpod-cdk quotas request prod'"
)
VPC_FINDING = (
    'needs 1 VPCs while others use 5, quota "VPCs per Region" is 5 in us-east-1; '
    "run 'hyperpod-cdk quotas request prod'"
)


def test_enough_of_everything() -> None:
    assert answer_to(event()) == {
        "Status": "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": "QuotaGate3038665D-0a1b2c3d-guid",
        "StackId": STACK,
        "RequestId": "5b6a1f0e-request",
        "LogicalResourceId": "QuotaGate3038665D",
        "Data": {"Findings": "none", "Skipped": "none", "Compared": "2"},
    }


def test_too_little_of_one_fails_with_the_finding() -> None:
    answer = answer_to(event(wanted=properties(p5(16), vpcs())))
    assert answer == {
        "Status": "FAILED",
        "Reason": f"1 of 2 quotas does not suffice in us-east-1\n{P5_FINDING}",
        "PhysicalResourceId": "QuotaGate3038665D-0a1b2c3d-guid",
        "StackId": STACK,
        "RequestId": "5b6a1f0e-request",
        "LogicalResourceId": "QuotaGate3038665D",
        "Data": {},
    }


def test_every_finding_is_told_and_what_refuses_comes_first() -> None:
    wanted = properties(p5(8, spare=1), vpcs(), mode="enforce")
    answer = answer_to(event(wanted=wanted), FakeApi(vpc_stacks=["other"] * 5))
    assert answer["Status"] == "FAILED"
    heading, first, second = answer["Reason"].split("\n")
    assert heading == "1 of 2 quotas does not suffice in us-east-1"
    assert first == VPC_FINDING
    assert second.startswith("hyperpod.instance_groups[1].count: needs 8 ml.p5.48xlarge for cluster usage, quota is 8 ")


def test_a_warning_alone_refuses_nothing() -> None:
    answer = answer_to(event(wanted=properties(p5(8, spare=1))))
    assert answer["Status"] == "SUCCESS"
    assert "quota is 8 in us-east-1, which leaves 0 of 1 more" in answer["Data"]["Findings"]


def test_the_stacks_own_use_does_not_count() -> None:
    assert answer_to(event(), FakeApi(vpc_stacks=["prod-foundation"] * 5))["Status"] == "SUCCESS"


def test_vpcs_that_another_account_shares_do_not_count() -> None:
    class Shared(FakeApi):
        def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
            listed = super().listed(service, operation, key, **params)
            return Listed(items=[{**vpc, "OwnerId": "444455556666"} for vpc in listed.items])

    assert answer_to(event(), Shared(vpc_stacks=["other"] * 5))["Status"] == "SUCCESS"


def test_a_value_that_aws_does_not_know_is_said_and_refuses_nothing() -> None:
    class Unknown(FakeApi):
        def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
            quota = dict(super().call(service, operation, **params)["Quota"])
            del quota["Value"]
            return {"Quota": {**quota, "ErrorReason": {"ErrorCode": "DEPENDENCY_SERVICE_ERROR"}}}

    answer = answer_to(event(wanted=properties(p5(16))), Unknown())
    assert answer["Status"] == "SUCCESS"
    assert answer["Data"]["Skipped"].endswith(
        'Service Quotas could not find out the value of "ml.p5.48xlarge for cluster usage" (DEPENDENCY_SERVICE_ERROR)'
    )


def test_warn_mode_only_reports() -> None:
    answer = answer_to(event(wanted=properties(p5(16), vpcs(), mode="warn")), FakeApi(vpc_stacks=["other"] * 5))
    assert answer["Status"] == "SUCCESS"
    assert answer["Data"] == {"Findings": f"{P5_FINDING}\n{VPC_FINDING}", "Skipped": "none", "Compared": "2"}


def test_what_could_not_be_read_is_said_and_refuses_nothing() -> None:
    denied = NotAnswered("no permission for ec2:DescribeVpcs", action="ec2:DescribeVpcs")
    answer = answer_to(event(), FakeApi(errors={"describe_vpcs": denied}))
    assert answer["Status"] == "SUCCESS"
    assert answer["Data"] == {
        "Findings": "none",
        "Skipped": (
            'what others use of the quota "VPCs per Region" could not be read in us-east-1: '
            "no permission for ec2:DescribeVpcs"
        ),
        "Compared": "1",
    }


def test_what_could_not_be_read_hides_nothing_else() -> None:
    wanted = properties(p5(16), vpcs())
    answer = answer_to(event(wanted=wanted), FakeApi(errors={"describe_vpcs": NotAnswered("Rate exceeded")}))
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == f"1 of 2 quotas does not suffice in us-east-1\n{P5_FINDING}"


def test_no_quota_can_be_read() -> None:
    answer = answer_to(event(), FakeApi(errors={"get_service_quota": NotAnswered("Rate exceeded")}))
    assert answer["Status"] == "SUCCESS"
    assert answer["Data"]["Compared"] == "0"
    assert answer["Data"]["Skipped"] == (
        'hyperpod.instance_groups[1].count: the quota "ml.p5.48xlarge for cluster usage" could not be read in '
        "us-east-1: Rate exceeded\n"
        'the quota "VPCs per Region" could not be read in us-east-1: Rate exceeded'
    )


class TestUpdate:
    def test_more_than_before_is_refused(self) -> None:
        sent = event("Update", properties(p5(16)), OldResourceProperties=properties(p5(8)))
        answer = answer_to(sent)
        assert answer["Status"] == "FAILED"
        assert P5_FINDING in answer["Reason"]

    def test_a_new_requirement_is_refused(self) -> None:
        sent = event("Update", properties(p5(16), vpcs()), OldResourceProperties=properties(vpcs()))
        assert answer_to(sent)["Status"] == "FAILED"

    @pytest.mark.parametrize("before", [16, 24])
    def test_no_more_than_before_is_told_and_not_refused(self, before: int) -> None:
        sent = event("Update", properties(p5(16), vpcs(2)), OldResourceProperties=properties(p5(before), vpcs()))
        answer = answer_to(sent)
        assert answer["Status"] == "SUCCESS"
        assert answer["Data"]["Findings"] == f"{P5_FINDING} (needs no more than before, which was accepted)"

    def test_what_only_warned_before_was_not_accepted(self) -> None:
        sent = event("Update", properties(p5(16)), OldResourceProperties=properties(p5(16), mode="warn"))
        assert answer_to(sent)["Status"] == "FAILED"

    @pytest.mark.parametrize(
        "old", [None, {}, {"Mode": "enforce"}, {"Mode": "enforce", "Requirements": [{"Key": "x"}]}]
    )
    def test_unreadable_old_properties_accept_nothing(self, old: Any) -> None:
        assert answer_to(event("Update", properties(p5(16)), OldResourceProperties=old))["Status"] == "FAILED"

    @pytest.mark.parametrize("wanted", [properties(p5(16)), {"Mode": "from another version"}])
    def test_a_rollback_is_never_refused(self, wanted: dict[str, Any]) -> None:
        # the update lowered p5 and failed for something else; taking it back would need more than is left by now
        sent = event("Update", wanted, OldResourceProperties=properties(p5(8)))
        api = FakeApi(status="UPDATE_ROLLBACK_IN_PROGRESS")
        answer = answer_to(sent, api)
        assert answer["Status"] == "SUCCESS"
        assert answer["Data"] == {
            "Findings": "none",
            "Skipped": "the stack is rolling back: nothing was compared",
            "Compared": "0",
        }
        assert api.asked == ["describe_stacks"]

    def test_without_leave_to_ask_for_a_rollback_nothing_is_refused(self) -> None:
        # taking back an update that lowered p5 looks like growth
        api = FakeApi(errors={"describe_stacks": NotAnswered("no permission", action="cloudformation:DescribeStacks")})
        answer = answer_to(event("Update", properties(p5(16)), OldResourceProperties=properties(p5(8))), api)
        assert answer["Status"] == "SUCCESS"
        assert answer["Data"] == {
            "Findings": P5_FINDING,
            "Skipped": "whether the stack is rolling back could not be asked, so nothing is refused: no permission",
            "Compared": "1",
        }

    @pytest.mark.parametrize("error", [KeyError("Stacks"), SystemExit(3)])
    def test_a_crash_before_it_is_known_to_go_forward_refuses_nothing(self, error: BaseException) -> None:
        sent = event("Update", properties(p5(16)), OldResourceProperties=properties(p5(8)))
        answer = answer_to(sent, FakeApi(errors={"describe_stacks": error}))
        assert answer["Status"] == "SUCCESS"
        assert answer["Data"]["Skipped"] == f"the quota gate itself failed: {type(error).__name__}: {error}"

    @pytest.mark.parametrize(("hangs", "status"), [("describe_stacks", "SUCCESS"), ("get_service_quota", "FAILED")])
    def test_a_call_that_hangs_refuses_only_new_operations(self, hangs: str, status: str) -> None:
        class Hanging(FakeApi):
            def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
                if operation == hangs:
                    never.wait()
                return super().call(service, operation, **params)

        never = threading.Event()
        try:
            sent = event("Update", properties(p5(16)), OldResourceProperties=properties(p5(8)))
            answer = answer_to(sent, Hanging(), seconds=answering.ANSWER_SECONDS + 0.2)
        finally:
            never.set()
        assert answer["Status"] == status

    def test_a_crash_of_an_update_is_refused(self) -> None:
        sent = event("Update", properties(p5(16)), OldResourceProperties=properties(p5(8)))
        assert answer_to(sent, FakeApi(errors={"get_service_quota": KeyError("Quota")}))["Status"] == "FAILED"

    def test_the_physical_id_stays(self) -> None:
        sent = event("Update", PhysicalResourceId="made-by-an-earlier-version", OldResourceProperties=properties(p5(1)))
        assert answer_to(sent)["PhysicalResourceId"] == "made-by-an-earlier-version"


@pytest.mark.parametrize("wanted", [properties(p5(999)), {}, {"Mode": "nonsense"}, "nonsense"])
def test_delete_asks_nothing_and_succeeds(wanted: Any) -> None:
    api = FakeApi()
    answer = answer_to(event("Delete", wanted), api)
    assert (answer["Status"], api.asked) == ("SUCCESS", [])


MALFORMED = [
    ("nonsense", "ResourceProperties: must be a mapping, got 'nonsense'"),
    ({}, "Mode: must be enforce or warn, got None"),
    (properties(p5(1), mode="off"), "Mode: must be enforce or warn, got 'off'"),
    (properties(Requirements="all"), "Requirements: must be a list of requirements, got 'all'"),
    (properties(Requirements=["all"]), "Requirements: must be a list of requirements, got ['all']"),
    (properties(p5(1), Own="mine"), "Own: must hold the list Stacks, got 'mine'"),
    (properties(p5(1), Own={"Stacks": "mine"}), "Own: must hold the list Stacks, got {'Stacks': 'mine'}"),
    (
        properties(Requirements=[{**to_properties([p5(1)])[0], "Needed": "many"}]),
        'Needed: must be a number, got "many"',
    ),
]


@pytest.mark.parametrize(("wanted", "text"), MALFORMED, ids=[text for _, text in MALFORMED])
def test_malformed_properties(wanted: Any, text: str) -> None:
    answer = answer_to(event(wanted=wanted))
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        f"the quota gate itself failed: {text}; deploy again, or quota_check: warn lets a deployment go on without it",
    )


def test_an_unknown_request_type() -> None:
    answer = answer_to(event("Replace"))
    assert answer["Status"] == "FAILED"
    assert "RequestType: must be Create, Update or Delete, got 'Replace'" in answer["Reason"]


class TestOwnCrash:
    @pytest.mark.parametrize("error", [KeyError("Vpcs"), MemoryError(), SystemExit(3), RecursionError("too deep")])
    def test_an_error_of_its_own_is_answered(self, error: BaseException) -> None:
        answer = answer_to(event(), FakeApi(errors={"describe_vpcs": error}))
        assert answer["Status"] == "FAILED"
        assert answer["Reason"] == (
            f"the quota gate itself failed: {type(error).__name__}: {error}; "
            "deploy again, or quota_check: warn lets a deployment go on without it"
        )

    def test_warn_mode_does_not_fail_for_it(self) -> None:
        wanted = properties(p5(1), vpcs(), mode="warn")
        answer = answer_to(event(wanted=wanted), FakeApi(errors={"describe_vpcs": KeyError("Vpcs")}))
        assert answer["Status"] == "SUCCESS"
        assert answer["Data"] == {
            "Findings": "none",
            "Skipped": "the quota gate itself failed: KeyError: 'Vpcs'",
            "Compared": "0",
        }

    def test_a_module_that_does_not_load(self) -> None:
        def api() -> Any:
            raise ImportError("no module named boto3")

        bodies: list[bytes] = []
        index.handle(event(), Context(), api=api, put=lambda _url, body: bodies.append(body), region="us-east-1")
        (answer,) = map(json.loads, bodies)
        assert answer["Status"] == "FAILED"
        assert "ImportError: no module named boto3" in answer["Reason"]

    @pytest.mark.parametrize(("mode", "status"), [("enforce", "FAILED"), ("warn", "SUCCESS")])
    def test_a_call_that_hangs_is_answered_before_lambda_ends(self, mode: str, status: str) -> None:
        class Hanging(FakeApi):
            def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
                never.wait()
                raise AssertionError((service, operation, params))

        never = threading.Event()
        try:
            wanted = properties(p5(1), mode=mode)
            answer = answer_to(event(wanted=wanted), Hanging(), seconds=answering.ANSWER_SECONDS + 0.1)
        finally:
            never.set()
        assert answer["Status"] == status
        told = answer["Reason"] or answer["Data"]["Skipped"]
        assert "the quota gate itself failed: AWS had not answered when the function's time ran out" in told

    def test_lambda_without_time(self) -> None:
        assert answer_to(event(), seconds=0.0)["Status"] in {"SUCCESS", "FAILED"}


def test_only_the_standard_library_is_needed_to_answer() -> None:
    code = (
        "import sys; before = set(sys.modules);"
        "import hyperpod_cdk.handlers.quota_gate.index;"
        "print([m for m in sorted(set(sys.modules) - before) if m.partition('.')[0] not in sys.stdlib_module_names])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(
        [
            "hyperpod_cdk",
            "hyperpod_cdk.handlers",
            "hyperpod_cdk.handlers.answering",
            "hyperpod_cdk.handlers.quota_gate",
            "hyperpod_cdk.handlers.quota_gate.index",
        ]
    )


def told(sent: dict[str, Any], outcome: index.Outcome, *, log: str) -> dict[str, Any]:
    """Return what CloudFormation is told of an outcome, which fits."""
    bodies: list[bytes] = []
    answering.serve(
        sent,
        Context(),
        lambda _: index.answer(sent, outcome, log),
        clients=lambda service: service,
        put=lambda _, body: bodies.append(body),
    )
    (body,) = bodies
    assert len(body) < 4096
    found: dict[str, Any] = json.loads(body)
    return found


class TestSize:
    def test_more_findings_than_fit_are_counted(self) -> None:
        lines = [f"hyperpod.instance_groups[{n}].count: needs {n} of something, quota is 0" for n in range(200)]
        outcome = index.Outcome(refused=True, heading="too little", findings=lines)
        kept = told(event(), outcome, log="group stream")["Reason"].split("\n")
        assert kept[0] == "too little"
        assert kept[1:-1] == lines[: len(kept) - 2]
        assert kept[-1] == f"and {200 - (len(kept) - 2)} more, in log group stream"
        assert len(kept) > 30

    def test_one_line_longer_than_fits_is_cut(self) -> None:
        outcome = index.Outcome(refused=True, findings=["x" * 9000])
        reason = told(event(), outcome, log="group stream")["Reason"]
        assert reason.startswith("xxx")
        assert reason.endswith("x... (whole text in log group stream)")
        assert 3000 < len(reason) < 4000

    def test_findings_and_skipped_share_the_room(self) -> None:
        outcome = index.Outcome(findings=["é" * 300] * 9, skipped=["ö" * 300] * 9)
        data = told(event(), outcome, log="l")["Data"]
        assert data["Findings"].startswith("é")
        assert data["Skipped"].startswith("ö")


TEXT = st.text(max_size=300)
LINES = st.lists(st.text(max_size=3000), max_size=40)


@given(
    outcome=st.builds(
        index.Outcome, refused=st.booleans(), heading=TEXT, findings=LINES, skipped=LINES, compared=st.integers(0, 99)
    ),
    logical_id=st.text("abcXYZ019", max_size=255),
    physical_id=st.none() | st.text("abc-/", max_size=1024),
    log=TEXT,
)
def test_every_answer_is_json_and_fits(
    outcome: index.Outcome, logical_id: str, physical_id: str | None, log: str
) -> None:
    sent = event(LogicalResourceId=logical_id, **({} if physical_id is None else {"PhysicalResourceId": physical_id}))
    answer = told(sent, outcome, log=log)
    assert answer["Status"] == ("FAILED" if outcome.refused else "SUCCESS")
    assert answer["PhysicalResourceId"]
    assert answer["LogicalResourceId"] == logical_id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
REQUIREMENT = st.sampled_from(to_properties([p5(2), p5(16), vpcs()])) | JSON
PROPERTIES = JSON | st.fixed_dictionaries(
    {},
    optional={
        "Mode": st.sampled_from(["enforce", "warn", "off"]) | JSON,
        "Requirements": st.lists(REQUIREMENT, max_size=4) | JSON,
        "Own": st.just({"Stacks": ["prod-foundation"]}) | JSON,
        "EnvironmentName": JSON,
    },
)


@given(
    request_type=st.sampled_from(["Create", "Update", "Delete"]) | JSON,
    wanted=PROPERTIES,
    old=PROPERTIES,
    error=st.none() | st.sampled_from([NotAnswered("no"), KeyError("x"), SystemExit(1), MemoryError()]),
    failing=st.sampled_from(["get_service_quota", "describe_vpcs", "describe_stacks"]),
    status=st.sampled_from(["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"]),
)
def test_every_event_gets_exactly_one_answer(  # noqa: PLR0917 - hypothesis names them
    request_type: Any, wanted: Any, old: Any, error: BaseException | None, failing: str, status: str
) -> None:
    sent = event(request_type, wanted, OldResourceProperties=old) | {"ResourceProperties": wanted}
    answer = answer_to(sent, FakeApi(status=status, errors={failing: error} if error else {}))
    assert answer["Status"] in {"SUCCESS", "FAILED"}
    assert answer["Status"] == "SUCCESS" or answer["Reason"]
    if request_type == "Delete" or (isinstance(wanted, dict) and wanted.get("Mode") == "warn"):
        assert answer["Status"] == "SUCCESS"


@contextmanager
def response_url(*statuses: int) -> Iterator[tuple[str, list[tuple[str, str | None, bytes]]]]:
    """A server that takes answers, with these statuses in turn, the last of them for good."""
    received: list[tuple[str, str | None, bytes]] = []
    waiting = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, self.headers["Content-Type"], body))
            self.send_response(waiting.pop(0) if len(waiting) > 1 else waiting[0])
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
            """Keep the test's output clean."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/stack?signature=a%2Fb", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def handled(url: str) -> list[float]:
    """Handle an event with the real sender; returns the pauses."""
    pauses: list[float] = []
    sent = event(ResponseURL=url)
    index.handle(sent, Context(), api=FakeApi, put=answering.put, sleep=pauses.append, region="us-east-1")
    return pauses


class TestResponseUrl:
    def test_one_put_with_an_empty_content_type(self) -> None:
        with response_url(200) as (url, received):
            assert handled(url) == []
        ((path, content_type, body),) = received
        assert (path, content_type) == ("/stack?signature=a%2Fb", "")
        assert json.loads(body)["Status"] == "SUCCESS"

    @pytest.mark.parametrize("status", [500, 503, 403, 307])
    def test_a_failing_url_is_tried_again(self, status: int) -> None:
        with response_url(status, status, 200) as (url, received):
            assert handled(url) == [1.0, 2.0]
        assert len(received) == 3
        assert len({body for _, _, body in received}) == 1

    def test_a_url_that_never_takes_it_raises(self) -> None:
        with response_url(503) as (url, received), pytest.raises(answering.AnswerNotSentError) as error:
            handled(url)
        assert str(error.value) == "CloudFormation does not take the answer: HTTP 503 Service Unavailable"
        assert len(received) == 3

    def test_no_listener(self) -> None:
        with response_url(200) as (url, _):
            pass
        with pytest.raises(answering.AnswerNotSentError):
            handled(url)

    def test_sending_takes_no_longer_than_is_left_for_it(self) -> None:
        tries = len(answering.PUT_PAUSES) + 1
        assert tries * 2 * answering.PUT_TIMEOUT_SECONDS + sum(answering.PUT_PAUSES) < answering.ANSWER_SECONDS


def test_an_event_without_a_response_url_is_an_error() -> None:
    sent = event()
    del sent["ResponseURL"]
    with pytest.raises(KeyError):
        answer_to(sent)
