"""Opening AWS: the credentials, and one sentence with the fix if none are valid."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore import exceptions as errors

from hyperpod_cdk.checks.answers import AwsAccessError, Caller, NotAnswered
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.aws_calls import Patience
from hyperpod_cdk.handlers.quota_gate.reading import Own
from tests.support.scripted_aws import ACCOUNT, ARN, REGION, WHO, Fails, ScriptedSession, loopback, query_error

OUT_OF_DATE = "the AWS credentials have expired; renew them, in a profile of IAM Identity Center with 'aws sso login'"


def open_with(answer: object, account: str = ACCOUNT) -> LiveAws:
    scripted = ScriptedSession({"sts:GetCallerIdentity": answer})  # type: ignore[dict-item] # tests pass what is scripted
    return LiveAws.open(region=REGION, account=account, own=Own(), session=scripted.session())


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the profile and credentials of the user who runs the tests."""
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def test_the_caller_is_asked_once() -> None:
    aws = open_with(WHO)
    assert aws.caller() == Caller(account=ACCOUNT, arn=ARN)
    assert [(call.name, call.depth) for call in aws.calls] == [("sts:GetCallerIdentity", 1)]


def test_no_credentials() -> None:
    with pytest.raises(AwsAccessError) as caught:
        LiveAws.open(region=REGION, account=ACCOUNT, own=Own())
    assert str(caught.value) == "no AWS credentials; set AWS_PROFILE or run 'aws sso login'"


def test_no_such_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(AwsAccessError) as caught:
        LiveAws.open(region=REGION, account=ACCOUNT, own=Own())
    assert str(caught.value) == (
        "there is no AWS profile nobody; set AWS_PROFILE to one that 'aws configure list-profiles' shows"
    )


@pytest.mark.parametrize("setting", ["nonsense", "http://"])
def test_an_unknown_endpoint(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", setting)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with pytest.raises(
        AwsAccessError, match=r"^the AWS settings cannot be used: .*; correct ~/\.aws/config or the AWS_"
    ):
        LiveAws.open(region=REGION, account=ACCOUNT, own=Own())


@pytest.mark.parametrize("secret", [None, ""])
def test_half_of_the_credentials(monkeypatch: pytest.MonkeyPatch, secret: str | None) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    if secret is not None:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    with pytest.raises(AwsAccessError, match="Partial credentials found in env"):
        LiveAws.open(region=REGION, account=ACCOUNT, own=Own())


def test_a_session_of_identity_center_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(
        "[profile sso]\nsso_start_url = https://example.awsapps.com/start\nsso_region = us-east-1\n"
        "sso_account_id = 111122223333\nsso_role_name = admin\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_PROFILE", "sso")
    with pytest.raises(AwsAccessError) as caught:
        LiveAws.open(region=REGION, account=ACCOUNT, own=Own())
    assert str(caught.value) == ("the AWS session of IAM Identity Center has ended; run 'aws sso login'")


def test_a_role_that_the_profile_may_not_assume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(
        "[profile base]\naws_access_key_id = a\naws_secret_access_key = b\n"
        "[profile ops]\nsource_profile = base\nrole_arn = arn:aws:iam::111122223333:role/ops\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("AWS_PROFILE", "ops")
    with loopback({"AssumeRole": [query_error("AccessDenied", "not authorized", status=403)]}) as served:
        monkeypatch.setenv("AWS_ENDPOINT_URL", served.endpoint)
        with pytest.raises(AwsAccessError) as caught:
            LiveAws.open(region=REGION, account=ACCOUNT, own=Own())
    assert (
        str(caught.value)
        == 'no AWS credentials: AssumeRole gave AccessDenied; correct the profile; AWS says: "not authorized"'
    )


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "RequestExpired"])
def test_credentials_that_have_expired(code: str) -> None:
    with pytest.raises(AwsAccessError) as caught:
        open_with(Fails(code, "The security token included in the request is expired", 403))
    assert str(caught.value) == OUT_OF_DATE


@pytest.mark.parametrize("code", ["InvalidClientTokenId", "SignatureDoesNotMatch"])
def test_credentials_that_aws_does_not_accept(code: str) -> None:
    with pytest.raises(AwsAccessError) as caught:
        open_with(Fails(code, "The security token included in the request is invalid", 403))
    assert str(caught.value) == (
        f"AWS does not accept the credentials ({code}): they are wrong or deactivated, or us-east-1 is not enabled in "
        "their account; renew them, or enable the region; AWS says:"
        ' "The security token included in the request is invalid"'
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        # github.com/aws/aws-cli issue 6676
        (
            "SignatureDoesNotMatch",
            "Signature expired: 20220127T001427Z is now earlier than 20220127T014428Z (20220127T015928Z - 15 min.)",
        ),
        # github.com/aws/aws-sdk-js issue 2565
        (
            "InvalidSignatureException",
            (
                "Signature not yet current: 20190305T002809Z is still later than 20190304T214315Z (20190304T212815Z"
                " + 15 min.)"
            ),
        ),
        # Amazon S3 API reference, error responses
        ("RequestTimeTooSkewed", "The difference between the request time and the server's time is too large."),
    ],
)
def test_a_clock_that_is_wrong_is_no_matter_of_credentials(code: str, message: str) -> None:
    with pytest.raises(AwsAccessError) as caught:
        open_with(Fails(code, message, 403))
    assert str(caught.value) == (
        "the clock of this machine is wrong, so AWS does not accept its signatures; set it with NTP; AWS says:"
        f' "{message.rstrip(".")}"'
    )


def test_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback({}) as served:
        closed = served.endpoint
    monkeypatch.setenv("AWS_ENDPOINT_URL", closed)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with pytest.raises(AwsAccessError) as caught:
        LiveAws.open(region=REGION, account=ACCOUNT, own=Own(), patience=Patience(attempts=1))
    assert str(caught.value) == (
        f'AWS cannot be reached: Could not connect to the endpoint URL: "{closed}/"; check the network, its proxy and '
        "AWS_ENDPOINT_URL"
    )


@pytest.mark.parametrize(
    ("answer", "reason", "action"),
    [
        (
            Fails("AccessDenied", f"User: {ARN} is not authorized to perform: sts:GetCallerIdentity", 403),
            "no permission for sts:GetCallerIdentity",
            "sts:GetCallerIdentity",
        ),
        (Fails("Throttling", "Rate exceeded"), "AWS throttled sts:GetCallerIdentity; run it again later", ""),
    ],
    ids=["denied", "throttled"],
)
def test_where_it_stays_unknown_who_asks_no_question_is_answered(answer: object, reason: str, action: str) -> None:
    aws = open_with(answer)
    with pytest.raises(NotAnswered) as caught:
        aws.caller()
    assert (caught.value.reason, caught.value.action) == (reason, action)
    with pytest.raises(NotAnswered) as caught:
        aws.zones()
    assert (caught.value.reason, caught.value.action) == (
        f"the account of the credentials is unknown: {reason}",
        action,
    )
    assert [call.name for call in aws.calls] == ["sts:GetCallerIdentity"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (errors.ReadTimeoutError(endpoint_url="https://sts"), "sts:GetCallerIdentity gave no answer within 8 s"),
        (
            errors.ConnectionClosedError(endpoint_url="https://sts"),
            "the connection was lost during sts:GetCallerIdentity",
        ),
        (KeyError("Result"), "the answer to sts:GetCallerIdentity cannot be read: 'Result'"),
        ({}, "the answer to sts:GetCallerIdentity cannot be read: 'Account' is missing"),
    ],
    ids=["silent", "broken off", "not AWS", "garbage"],
)
def test_what_is_no_aws_is_reported_once(answer: object, reason: str) -> None:
    with pytest.raises(AwsAccessError) as caught:
        open_with(answer)
    assert str(caught.value) == f"AWS cannot be reached: {reason}; check the network, its proxy and AWS_ENDPOINT_URL"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            WHO,
            (
                f"the credentials belong to account {ACCOUNT}, the environment to 999988887777; set AWS_PROFILE to a"
                " profile of 999988887777"
            ),
        ),
        (
            Fails("AccessDenied", "", 403),
            (
                "the account of the credentials is unknown: no permission for sts:GetCallerIdentity; allow"
                " sts:GetCallerIdentity"
            ),
        ),
        (
            Fails("Throttling", "Rate exceeded"),
            (
                "the account of the credentials is unknown: AWS throttled sts:GetCallerIdentity; run it again later;"
                ' AWS says: "Rate exceeded"'
            ),
        ),
    ],
    ids=["another", "denied", "throttled"],
)
def test_who_needs_the_account_needs_its_credentials(answer: object, said: str) -> None:
    aws = open_with(answer, account="999988887777")
    with pytest.raises(AwsAccessError) as caught:
        aws.require_account()
    assert str(caught.value) == said
    open_with(WHO).require_account()


def test_another_account_is_asked_nothing() -> None:
    aws = open_with(WHO, account="999988887777")
    assert aws.caller().account == ACCOUNT
    for ask in (aws.zones, lambda: aws.hyperpod_clusters().whole(), lambda: aws.request_quota("ec2", "L-1", 2.0)):
        with pytest.raises(NotAnswered) as caught:
            ask()
        assert caught.value.reason == (f"the credentials belong to account {ACCOUNT}, the environment to 999988887777")
    assert [call.name for call in aws.calls] == ["sts:GetCallerIdentity"]


def test_without_an_account_the_credentials_account_is_asked() -> None:
    scripted = ScriptedSession(
        {"sts:GetCallerIdentity": WHO, "ec2:DescribeAvailabilityZones": {"AvailabilityZones": []}}
    )
    aws = LiveAws.open(region=REGION, account="", own=Own(), session=scripted.session())
    assert aws.zones() == ()
