"""An existing bucket for the lifecycle scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import BucketAnswer, BucketSettings
from hyperpod_cdk.checks.model import Case, Result
from hyperpod_cdk.findings import Severity
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

CHECK = "lifecycle_bucket_can_be_used"
NAME = "sagemaker-scripts"
HERE = "hyperpod.lifecycle.existing_bucket"
KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def settings(**members: Any) -> BucketSettings:
    return BucketSettings(**{"owned": True, "public": False, "versioned": True, "kms_key": "", **members})


def ran(case_of: CaseOf, run_check: RunCheck, aws: FakeAws, **bucket: Any) -> Result:
    return run_check(CHECK, case_of({"hyperpod.lifecycle": {"existing_bucket": {"name": NAME, **bucket}}}), aws)


@pytest.mark.check("lifecycle_bucket_can_be_used", "passes")
@pytest.mark.parametrize(
    ("stated", "key"),
    [
        ({}, ""),
        ({}, "arn:aws:kms:us-east-1:111122223333:alias/aws/s3"),
        ({"kms_key_arn": KEY}, KEY),
        ({"kms_key_arn": KEY}, KEY.rpartition("/")[2]),
        ({"kms_key_arn": KEY}, "arn:aws:kms:us-east-1:111122223333:alias/scripts"),
    ],
)
def test_a_bucket_that_fits_passes(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, stated: dict[str, Any], key: str
) -> None:
    fake_aws.answers.bucket = {NAME: BucketAnswer(name=NAME, region="us-east-1")}
    fake_aws.answers.bucket_settings = {NAME: settings(kms_key=key)}
    assert ran(case_of, run_check, fake_aws, **stated).findings == ()


def test_without_one_nothing_is_asked(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    assert run_check(CHECK, case_of(), fake_aws).findings == ()
    assert fake_aws.asked == []


@pytest.mark.check("lifecycle_bucket_can_be_used", "fails")
@pytest.mark.parametrize(
    ("region", "text"),
    [
        (None, f"needs a bucket that exists, got {NAME}; create it, or correct the name"),
        ("eu-west-1", f"needs a bucket in us-east-1, got {NAME} in eu-west-1; use one in us-east-1"),
    ],
)
def test_a_bucket_that_is_not_there_fails(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, region: str | None, text: str
) -> None:
    fake_aws.answers.bucket = {NAME: region and BucketAnswer(name=NAME, region=region)}  # type: ignore[dict-item] # None or an answer
    result = ran(case_of, run_check, fake_aws)
    assert [(each.path, each.message) for each in result.findings] == [(f"{HERE}.name", text)]


ANOTHERS = (
    f"needs a bucket of account 111122223333, got {NAME}, which belongs to another account: anyone who can write to it"
    " can run programs as root on every node; use one of this account"
)
PUBLIC = (
    f"needs a bucket that is not public, got {NAME}: its scripts run as root on every node; use another, or have its"
    " owner make it private"
)
NO_VERSIONS = (
    f"{NAME} is not versioned, so a script that is overwritten or deleted is lost; run 'aws s3api"
    f" put-bucket-versioning --bucket {NAME} --versioning-configuration Status=Enabled'"
)
HAS_A_KEY = f"needs the key that encrypts {NAME}, which is {KEY}, got none; set kms_key_arn: {KEY}"
HAS_NO_KEY = f"needs the key that encrypts {NAME}, which is S3's own, got {KEY}; remove kms_key_arn"


@pytest.mark.parametrize(
    ("found", "stated", "told"),
    [
        ({"owned": False}, {}, (Severity.ERROR, f"{HERE}.name", ANOTHERS)),
        ({"public": True}, {}, (Severity.ERROR, f"{HERE}.name", PUBLIC)),
        ({"versioned": False}, {}, (Severity.WARNING, f"{HERE}.name", NO_VERSIONS)),
        ({"kms_key": KEY}, {}, (Severity.ERROR, f"{HERE}.name", HAS_A_KEY)),
        ({}, {"kms_key_arn": KEY}, (Severity.ERROR, f"{HERE}.kms_key_arn", HAS_NO_KEY)),
    ],
)
def test_one_that_does_not_fit_is_reported(
    case_of: CaseOf,
    run_check: RunCheck,
    fake_aws: FakeAws,
    *,
    found: dict[str, Any],
    stated: dict[str, Any],
    told: tuple[Severity, str, str],
) -> None:
    fake_aws.answers.bucket = {NAME: BucketAnswer(name=NAME, region="us-east-1")}
    fake_aws.answers.bucket_settings = {NAME: settings(**found)}
    result = ran(case_of, run_check, fake_aws, **stated)
    assert [(each.severity, each.path, each.message) for each in result.findings] == [told]


@pytest.mark.check("lifecycle_bucket_can_be_used", "skips")
def test_a_bucket_that_does_not_answer_is_skipped(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    assert ran(case_of, run_check, fake_aws).skipped
