"""Network errors to AWS over real HTTP: retries, timeouts, broken responses."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.aws_calls import Call, Patience
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.handlers.quota_gate.reading import Own
from tests.support.scripted_aws import (
    ACCOUNT,
    ARN,
    REGION,
    Loopback,
    Reply,
    ec2_error,
    json_error,
    json_reply,
    loopback,
    plain_session,
)

ZONES = Reply(body=b"<DescribeAvailabilityZonesResponse><availabilityZoneInfo/></DescribeAvailabilityZonesResponse>")
OPERATION = "DescribeAvailabilityZones"

Ask = Callable[[dict[str, list[Reply]]], tuple[LiveAws, Loopback]]


def aws_at(served: Loopback, monkeypatch: pytest.MonkeyPatch, patience: Patience) -> LiveAws:
    monkeypatch.setenv("AWS_ENDPOINT_URL", served.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    return LiveAws.open(region=REGION, account=ACCOUNT, own=Own(), session=plain_session(), patience=patience)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Reads the zones, with two attempts for each call, and returns the calls."""

    def make(script: dict[str, list[Reply]]) -> tuple[LiveAws, Loopback]:
        with loopback(script) as served:
            aws = aws_at(served, monkeypatch, Patience(connect_timeout_s=1, read_timeout_s=0.2, attempts=2))
            try:
                aws.zones()
            except NotAnswered as missing:
                aws.missing = missing  # type: ignore[attr-defined] # for the test to look at
        return aws, served

    return make


def quota_calls(aws: LiveAws) -> list[Call]:
    return [call for call in aws.calls if call.service == "servicequotas"]


def reason(aws: LiveAws) -> tuple[str, str]:
    missing: NotAnswered = aws.missing  # type: ignore[attr-defined] # set by the fixture
    return missing.reason, missing.action


@pytest.mark.parametrize(
    "first",
    [
        ec2_error("RequestLimitExceeded", "Request limit exceeded.", status=503),
        Reply(status=502, body=b"<html><body>Bad Gateway</body></html>"),
    ],
    ids=["throttled", "bad gateway"],
)
def test_what_passes_is_tried_again(first: Reply, ask: Ask) -> None:
    aws, served = ask({OPERATION: [first, ZONES]})
    assert not hasattr(aws, "missing")
    assert served.asked == ["GetCallerIdentity", OPERATION, OPERATION]
    assert [(call.operation, call.retries) for call in aws.calls] == [("GetCallerIdentity", 0), (OPERATION, 1)]


@pytest.mark.parametrize(
    ("reply", "said", "action", "attempts"),
    [
        (
            ec2_error("RequestLimitExceeded", "Request limit exceeded.", status=503),
            "AWS throttled ec2:DescribeAvailabilityZones, 2 times; run it again later",
            "",
            2,
        ),
        (
            ec2_error(
                "UnauthorizedOperation",
                f"You are not authorized to perform this operation. User: {ARN} is not authorized to perform: "
                "ec2:DescribeAvailabilityZones because no identity-based policy allows the "
                "ec2:DescribeAvailabilityZones action",
                status=403,
            ),
            "no permission for ec2:DescribeAvailabilityZones (no identity-based policy)",
            "ec2:DescribeAvailabilityZones",
            1,
        ),
        (
            ec2_error("RequestExpired", "Request has expired.", status=400),
            "the credentials expired during the run; renew them and run it again",
            "",
            1,
        ),
        (
            Reply(body=ZONES.body, delay_s=5),
            "ec2:DescribeAvailabilityZones gave no answer within 0.2 s, 2 times",
            "",
            2,
        ),
        (
            Reply(body=b"<html>log in to the guest network</html"),
            "the answer to ec2:DescribeAvailabilityZones is not whole, or does not come from AWS",
            "",
            1,
        ),
        (
            Reply(body=b"<html>welcome</html>"),
            "the answer to ec2:DescribeAvailabilityZones cannot be read: 'AvailabilityZones' is missing",
            "",
            1,
        ),
        (
            Reply(status=503, body=b""),
            "ec2:DescribeAvailabilityZones failed inside AWS with HTTP 503, 2 times; run it again later",
            "",
            2,
        ),
        (
            Reply(body=ZONES.body[:60], length=len(ZONES.body)),
            "the answer to ec2:DescribeAvailabilityZones is not whole, or does not come from AWS",
            "",
            1,
        ),
    ],
    ids=["throttled", "denied", "expired", "silent", "no XML", "another page", "down", "cut off"],
)
def test_what_does_not_pass_is_reported(reply: Reply, said: str, action: str, attempts: int, ask: Ask) -> None:
    aws, served = ask({OPERATION: [reply]})
    assert reason(aws) == (said, action)
    assert served.asked.count(OPERATION) == attempts
    assert aws.calls[-1].retries == attempts - 1


def test_a_service_that_throttles_without_end_costs_one_calls_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback({"GetServiceQuota": [json_error("TooManyRequestsException", "Rate exceeded")]}) as served:
        aws = aws_at(served, monkeypatch, Patience(call_s=2, attempts=9))
        results = together(lambda number: aws.quota("ec2", "EIPs", f"L-{number}"), range(30))
        reasons = {re.sub(r", \d+ times", "", str(result)) for result in results}
        assert reasons <= {
            "AWS throttled servicequotas:GetServiceQuota; run it again later",
            (
                "servicequotas:GetServiceQuota was not started within 2 s: AWS throttles, or getting the credentials"
                " takes too long"
            ),
            # a machine that is busy answers too late for the last of the nine
            "servicequotas:GetServiceQuota gave no answer within 2 s",
        }
        # on a busy machine some start when the first ones are given up, and make no call
        made = quota_calls(aws)
        assert 1 <= len(made) <= 30
        with pytest.raises(NotAnswered, match=r"^AWS throttled servicequotas:GetServiceQuota"):
            aws.quota("vpc", "VPCs", "L-31")
        assert quota_calls(aws) == made


def test_a_service_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback({OPERATION: [Reply(body=ZONES.body, delay_s=5)]}) as served:
        aws = aws_at(served, monkeypatch, Patience(call_s=0.3))
        with pytest.raises(NotAnswered) as caught:
            aws.zones()
    assert caught.value.reason == "ec2:DescribeAvailabilityZones gave no answer within 0.3 s"


def test_services_that_speak_json_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    script = {
        "ListClusters": [
            json_error("com.amazon.coral.service#ThrottlingException", "Rate exceeded"),
            json_reply({"ClusterSummaries": [{"ClusterName": "prod"}]}),
        ],
        "DescribeCluster": [
            json_error(
                "AccessDeniedException",
                f"User: {ARN} is not authorized to perform: sagemaker:DescribeCluster on resource: x",
            )
        ],
        "DescribeTrainingPlan": [Reply(body=b"[]")],
        "SearchTrainingPlanOfferings": [Reply(body=b'{"TrainingPlanOfferings": [{"Training')],
    }
    with loopback(script) as served:
        aws = aws_at(served, monkeypatch, Patience(attempts=2))
        (unread,) = aws.hyperpod_clusters().unread
        with pytest.raises(NotAnswered, match="the answer to sagemaker:DescribeTrainingPlan cannot be read"):
            aws.training_plan(f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/p")
        with pytest.raises(NotAnswered, match="the answer to sagemaker:SearchTrainingPlanOfferings cannot be read"):
            aws.training_plan_offerings(
                instance_type="ml.p5.48xlarge", count=1, duration_hours=24, start_after=None, end_before=None
            )
    assert (unread.name, unread.why.reason, unread.why.action) == (
        "prod",
        "no permission for sagemaker:DescribeCluster",
        "sagemaker:DescribeCluster",
    )
    assert [(call.operation, call.retries) for call in aws.calls[1:3]] == [("ListClusters", 1), ("DescribeCluster", 0)]
