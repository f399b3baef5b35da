"""Buckets of checkpoints and of restricted groups exist in the Region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import BucketAnswer, NotAnswered
from hyperpod_cdk.checks.model import REGISTER, Case, Result, Status
from hyperpod_cdk.checks.run import is_needed
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

CHECK = "job_buckets_are_in_the_region"
ACCOUNT = "hyperpod.tiered_checkpointing.service_accounts[0].buckets"
NOVA = "hyperpod.restricted_instance_groups[0]"
CHANGES: Mapping[str, Any] = {
    "hyperpod.tiered_checkpointing": {
        "service_accounts": [
            {
                "namespace": "hyperpod-ns-research",
                "name": "trainer",
                "buckets": ["s3://my-checkpoints/llama-70b", "my-results"],
            }
        ]
    },
    "hyperpod.restricted_dependencies": "installed",
    "hyperpod.restricted_instance_groups": [
        {
            "name": "nova",
            "instance_type": "ml.p5.48xlarge",
            "count": 2,
            "availability_zone_id": "use1-az5",
            "capacity": "on_demand",
            "lustre": {"capacity_gib": 9600},
            "input_buckets": ["nova-data"],
            "output_buckets": ["my-results"],
        }
    ],
}


def answers(**changes: BucketAnswer | NotAnswered | None) -> dict[str, BucketAnswer | NotAnswered | None]:
    names = ("my-checkpoints", "my-results", "nova-data")
    plain = {name: BucketAnswer(name=name, region="us-east-1") for name in names}
    return {**plain, **{name.replace("_", "-"): answer for name, answer in changes.items()}}


@pytest.mark.check("job_buckets_are_in_the_region", "passes")
def test_each_bucket_is_asked_for_once(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    fake_aws.answers.bucket = answers()
    assert run_check(CHECK, case_of(CHANGES), fake_aws).status is Status.PASSED
    assert sorted(str(each[1]) for each in fake_aws.asked) == ["my-checkpoints", "my-results", "nova-data"]


def test_buckets_of_models_are_looked_for(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    fake_aws.answers.bucket = {"my-models": None}
    inference = {"enabled": True, "model_buckets": ["my-models"]}
    case = case_of({"operators.inference": inference, "eks.oidc_provider": True})
    (finding,) = run_check(CHECK, case, fake_aws).findings
    assert finding.path == "operators.inference.model_buckets[0]"
    assert finding.message.startswith("must name a bucket that exists, got my-models; ")


@pytest.mark.check("job_buckets_are_in_the_region", "fails")
def test_no_such_bucket(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    fake_aws.answers.bucket = answers(my_results=None)
    (found,) = run_check(CHECK, case_of(CHANGES), fake_aws).findings
    assert found.render() == (
        f"{ACCOUNT}[1]: must name a bucket that exists, got my-results (also in {NOVA}.output_buckets[0]); correct the"
        " name, or create the bucket in us-east-1"
    )


@pytest.mark.check("job_buckets_are_in_the_region", "fails")
def test_a_bucket_of_another_region(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    fake_aws.answers.bucket = answers(nova_data=BucketAnswer(name="nova-data", region="eu-west-1"))
    (found,) = run_check(CHECK, case_of(CHANGES), fake_aws).findings
    assert (found.severity.value, found.render()) == (
        "warning",
        (
            f"{NOVA}.input_buckets[0]: nova-data is in eu-west-1, so all data that jobs read and write there crosses"
            " regions, which is slow and billed; use a bucket in us-east-1"
        ),
    )


@pytest.mark.check("job_buckets_are_in_the_region", "skips")
def test_a_bucket_that_cannot_be_read(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    fake_aws.answers.bucket = answers(my_checkpoints=NotAnswered("not allowed", action="s3:ListBucket"), nova_data=None)
    result = run_check(CHECK, case_of(CHANGES), fake_aws)
    (skipped,) = result.skipped
    assert (skipped.path, skipped.reason) == (f"{ACCOUNT}[0]", "the bucket my-checkpoints: not allowed")
    assert [finding.path for finding in result.findings] == [f"{NOVA}.input_buckets[0]"]


def test_an_environment_without_buckets_is_not_asked_about(case_of: CaseOf) -> None:
    check = REGISTER[CHECK]
    assert is_needed(check, case_of(CHANGES).environment)
    assert not is_needed(check, case_of().environment)
