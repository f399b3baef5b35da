"""The AWS calls of the quota gate's Lambda: once each, with retries for a new role, and messages for refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError

from hyperpod_cdk.handlers.quota_gate import calling, reading
from hyperpod_cdk.handlers.quota_gate.calling import Boto3Api
from hyperpod_cdk.handlers.quota_gate.reading import Listed, NoSuchQuota, NotAnswered
from tests.support.tables import row_by_row


@dataclass
class FakeClient:
    """A boto3 client that answers from a list, error or answer, the last for good."""

    answers: list[Any]
    paginates: bool = True
    asked: list[Mapping[str, Any]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._answer

    def can_paginate(self, operation: str) -> bool:
        assert operation
        return self.paginates

    def get_paginator(self, operation: str) -> Any:
        assert operation
        client = self

        class Paginator:
            def paginate(self, **params: Any) -> Iterable[Any]:
                yield from client._answer(**params)

        return Paginator()

    def _answer(self, **params: Any) -> Any:
        self.asked.append(params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def client_error(code: str, operation: str = "GetServiceQuota") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "in AWS's words"}}, operation)


def api_of(client: Any, time: Time | None = None) -> Boto3Api:
    time = time or Time()
    return Boto3Api(lambda _service: client, sleep=time.sleep, clock=time.clock)


def test_a_question_is_asked_once() -> None:
    client = FakeClient([{"Quota": 1}])
    api = api_of(client)
    for _ in range(3):
        assert api.call("service-quotas", "get_service_quota", ServiceCode="vpc", QuotaCode="L-1") == {"Quota": 1}
    api.call("service-quotas", "get_service_quota", ServiceCode="vpc", QuotaCode="L-2")
    assert [params["QuotaCode"] for params in client.asked] == ["L-1", "L-2"]


def test_a_question_from_several_threads_is_asked_once() -> None:
    client = FakeClient([[{"Vpcs": [1]}, {"Vpcs": [2]}]])
    api = api_of(client)
    asked = api.each(lambda _n: api.listed("ec2", "describe_vpcs", "Vpcs"), range(20))
    assert asked == [Listed(items=[1, 2])] * 20
    assert client.asked == [{}]


@pytest.mark.parametrize("paginates", [True, False])
def test_items_of_all_pages(paginates: bool) -> None:  # noqa: FBT001 - a parameter
    answers: list[Any] = [[{"Vpcs": [1]}, {}, {"Vpcs": [2]}]] if paginates else [{"Vpcs": [1, 2]}]
    listed = api_of(FakeClient(answers, paginates=paginates)).listed("ec2", "describe_vpcs", "Vpcs")
    assert listed == Listed(items=[1, 2])


def test_a_quota_that_is_not_there() -> None:
    with pytest.raises(NoSuchQuota):
        api_of(FakeClient([client_error("NoSuchResourceException")])).call("service-quotas", "get_service_quota")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            client_error("ThrottlingException"),
            "An error occurred (ThrottlingException) when calling the GetServiceQuota operation: in AWS's words",
        ),
        (
            ConnectTimeoutError(endpoint_url="https://servicequotas.invalid"),
            'service-quotas get_service_quota: Connect timeout on endpoint URL: "https://servicequotas.invalid"',
        ),
        (
            EndpointConnectionError(endpoint_url="https://servicequotas.invalid"),
            'service-quotas get_service_quota: Could not connect to the endpoint URL: "https://servicequotas.invalid"',
        ),
    ],
)
def test_what_cannot_be_asked(error: Exception, reason: str) -> None:
    with pytest.raises(NotAnswered) as caught:
        api_of(FakeClient([error])).call("service-quotas", "get_service_quota")
    assert (caught.value.reason, caught.value.action) == (reason, "")


@pytest.mark.parametrize("code", ["AccessDeniedException", "AccessDenied", "UnauthorizedOperation"])
def test_a_role_that_iam_does_not_know_yet_is_waited_for(code: str) -> None:
    time = Time()
    client = FakeClient([client_error(code), client_error(code), {"Quota": 1}])
    assert api_of(client, time).call("service-quotas", "get_service_quota") == {"Quota": 1}
    assert time.now == 104.0


def test_a_role_without_the_permission_is_given_up_after_a_while() -> None:
    time = Time()
    api = api_of(FakeClient([client_error("AccessDeniedException")]), time)
    for code in ("L-1", "L-2", "L-3"):
        with pytest.raises(NotAnswered) as caught:
            api.call("service-quotas", "get_service_quota", QuotaCode=code)
        assert caught.value.reason == "no permission for servicequotas:GetServiceQuota"
        assert caught.value.action == "servicequotas:GetServiceQuota"
    assert time.now == 100.0 + calling.PATIENCE_SECONDS, "patience is for the run, not for each question"


def test_the_action_is_in_iams_words() -> None:
    api = api_of(FakeClient([client_error("UnauthorizedOperation", "DescribeVpcs")]))
    missing = api.listed("ec2", "describe_vpcs", "Vpcs").missing
    assert missing is not None
    assert (missing.action, missing.said) == ("ec2:DescribeVpcs", "in AWS's words")


class TestEach:
    def test_side_by_side_in_order(self) -> None:
        both = threading.Barrier(2, timeout=5)

        def meet(n: int) -> int:
            both.wait()
            return n * n

        assert api_of(None).each(meet, [1, 2, 3, 4]) == [1, 4, 9, 16]

    def test_nothing_to_do(self) -> None:
        assert api_of(None).each(str, []) == []

    def test_within_itself(self) -> None:
        api = api_of(None)
        rows = api.each(lambda n: api.each(lambda m: n * m, range(20)), range(20))
        assert rows == [[n * m for m in range(20)] for n in range(20)]

    def test_the_first_error_is_raised(self) -> None:
        def work(n: int) -> None:
            if n % 2:
                raise ValueError(str(n))

        with pytest.raises(ValueError, match=r"^1$"):
            api_of(None).each(work, range(6))

    def test_no_more_threads_than_allowed(self) -> None:
        threads: set[int] = set()
        api_of(None).each(lambda _n: threads.add(threading.get_ident()), range(200))
        assert len(threads) <= calling.SIDE_BY_SIDE


def questions() -> list[tuple[str, str]]:
    """Every call that reading a quota or a use makes, recorded from an account without anything in it."""
    made: set[tuple[str, str]] = {("cloudformation", "describe_stacks")}

    class Recording:
        def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
            made.add((service, operation))
            if service == "service-quotas":
                raise NoSuchQuota(str(params))
            return {}

        def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
            made.add((service, operation))
            assert key
            assert params is not None
            is_clusters = (service, operation) == ("sagemaker", "list_clusters")
            return Listed(items=[{"ClusterName": "other"}] if is_clusters else [])

        def each(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
            return [function(item) for item in items]

    for kind in reading._COUNTS:
        reading.used(Recording(), kind, reading.Own())
    with pytest.raises(NoSuchQuota):
        reading.read_quota(Recording(), "vpc", "VPCs per Region", "L-1")
    return sorted(made)


@row_by_row("service, operation", questions())
def test_boto3_knows_every_question(service: str, operation: str) -> None:
    make: Any = boto3.client
    client = make(service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    assert callable(getattr(client, operation))
