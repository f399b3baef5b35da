"""The record of an environment's plans, and differences between two records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered, ReservedCapacity, TrainingPlan
from hyperpod_cdk.checks.model import Case
from hyperpod_cdk.checks.plan_record import Missing, changes, describe_plans
from hyperpod_cdk.config.recorded_plans import RecordedBlock, RecordedPlan, RecordedPlans, parse_record
from tests.support.fake_aws import FakeAws
from tests.support.tables import row_by_row

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
TODAY = date(2026, 11, 21)

CaseOf = Callable[..., Case]


def block(**other: Any) -> RecordedBlock:
    """Ten days in use1-az5."""
    values: dict[str, Any] = {
        "instance_type": "ml.p5.48xlarge",
        "instance_count": 2,
        "availability_zone": "us-east-1f",
        "availability_zone_id": "use1-az5",
        "start": START,
        "end": START + timedelta(days=10),
    }
    return RecordedBlock(**{**values, **other})


def plan(*blocks: RecordedBlock, **other: Any) -> RecordedPlan:
    """A scheduled plan."""
    values: dict[str, Any] = {
        "arn": ARN,
        "name": "h100-april",
        "status": "Scheduled",
        "target_resources": ("hyperpod-cluster",),
        "instance_count": 2,
        "blocks": blocks or (block(),),
    }
    return RecordedPlan(**{**values, **other})


def record(*plans: RecordedPlan, **other: Any) -> RecordedPlans:
    """A record of plans."""
    values: dict[str, Any] = {
        "schema_version": 1,
        "recorded": TODAY,
        "account": "111122223333",
        "region": "us-east-1",
        "plans": plans,
    }
    return RecordedPlans(**{**values, **other})


SECOND = block(start=START + timedelta(days=20), end=START + timedelta(days=25))
WHOLE = "2 ml.p5.48xlarge in use1-az5, 2026-12-01 11:30 UTC to 2026-12-11 11:30 UTC"
LATER = "2 ml.p5.48xlarge in use1-az5, 2026-12-21 11:30 UTC to 2026-12-26 11:30 UTC"


@row_by_row(
    "old, new, says",
    [
        (None, record(plan()), [f"h100-april: new, Scheduled, {WHOLE}"]),
        (None, record(plan(SECOND, block())), [f"h100-april: new, Scheduled, {WHOLE}; {LATER}"]),
        (record(plan()), record(plan(), recorded=date(2027, 1, 1)), []),
        (record(plan(block(), SECOND)), record(plan(SECOND, block())), []),
        (record(plan()), record(plan(), account="999922223333"), ["account: 111122223333 -> 999922223333"]),
        (record(plan()), record(plan(status="Active")), ["h100-april: status Scheduled -> Active"]),
        (
            record(plan(target_resources=())),
            record(plan(target_resources=("endpoint", "hyperpod-cluster"))),
            ["h100-april: target_resources nothing -> endpoint, hyperpod-cluster"],
        ),
        (
            record(plan()),
            record(plan(block(availability_zone_id="", end=None))),
            [
                "h100-april: block 1 availability_zone_id use1-az5 -> nothing",
                "h100-april: block 1 end 2026-12-11 11:30 UTC -> nothing",
            ],
        ),
        (
            record(plan()),
            record(plan(upfront_fee="10984.20", currency="USD")),
            ["h100-april: upfront_fee nothing -> 10984.20", "h100-april: currency nothing -> USD"],
        ),
        (record(plan()), record(plan(block(), SECOND)), [f"h100-april: block 2 new, {LATER}"]),
        (record(plan(block(), SECOND)), record(plan()), [f"h100-april: block 2 removed, {LATER}"]),
        (
            record(plan(arn=f"{ARN}-2", name="old")),
            record(plan(blocks=())),
            ["old: removed, no group names it any more", "h100-april: new, Scheduled, no blocks"],
        ),
    ],
)
def test_what_changed(old: RecordedPlans | None, new: RecordedPlans, says: list[str]) -> None:
    assert changes(old, new) == says


def answer(**other: Any) -> TrainingPlan:
    """The plan as AWS returns it: times with fractions in another time zone, targets in any order."""
    there = timezone(timedelta(hours=-8))
    values: dict[str, Any] = {
        "arn": ARN,
        "name": "h100-april",
        "status": "Active",
        "status_message": "",
        "total": 2,
        "available": 2,
        "in_use": 0,
        "unhealthy": 0,
        "target_resources": ("training-job", "hyperpod-cluster"),
        "blocks": (
            ReservedCapacity(
                instance_type="ml.p5.48xlarge",
                count=2,
                status="Active",
                availability_zone="us-east-1f",
                availability_zone_id="use1-az5",
                start=START.astimezone(there).replace(microsecond=704000),
                end=None,
            ),
        ),
        "start": None,
        "end": None,
    }
    return TrainingPlan(**{**values, **other})


def test_what_is_recorded(case_of: CaseOf, fake_aws: FakeAws) -> None:
    fake_aws.answers.training_plan = {ARN: answer()}
    expected = plan(block(end=None), status="Active", target_resources=("hyperpod-cluster", "training-job"))
    assert describe_plans(case_of().environment, fake_aws, today=TODAY) == record(expected)
    assert [question for question, *_ in fake_aws.asked] == ["training_plan"]


def test_one_missing_plan_makes_no_record(case_of: CaseOf, fake_aws: FakeAws) -> None:
    second = {
        "name": "more",
        "instance_type": "ml.p5.48xlarge",
        "count": 1,
        "availability_zone_id": "use1-az5",
        "capacity": "training_plan",
        "training_plan_arn": f"{ARN}-2",
    }
    environment = case_of({"hyperpod.instance_groups[2]": second}).environment
    fake_aws.answers.training_plan = {ARN: answer(), f"{ARN}-2": NotAnswered("throttled", action="a:B")}
    assert describe_plans(environment, fake_aws, today=TODAY) == [
        Missing(path="hyperpod.instance_groups[2].training_plan_arn", reason="throttled", action="a:B")
    ]


@pytest.mark.parametrize(
    ("total", "blocks", "counted"),
    [(3, True, 3), (0, True, 0), (None, True, 2), (3, False, 3), (None, False, None)],
)
def test_a_plan_whose_instances_are_unknown_makes_no_record(
    case_of: CaseOf, fake_aws: FakeAws, *, total: int | None, blocks: bool, counted: int | None
) -> None:
    fake_aws.answers.training_plan = {ARN: answer(total=total, blocks=answer().blocks if blocks else ())}
    found = describe_plans(case_of().environment, fake_aws, today=TODAY)
    if counted is None:
        path = "hyperpod.instance_groups[1].training_plan_arn"
        assert found == [Missing(path=path, reason="AWS shows no number of total instances of plan h100-april")]
    else:
        assert isinstance(found, RecordedPlans)
        assert found.plans[0].instance_count == counted


def test_the_fee_is_recorded_where_aws_gives_one(case_of: CaseOf, fake_aws: FakeAws) -> None:
    fake_aws.answers.training_plan = {ARN: answer(upfront_fee="10984.20", currency="USD")}
    found = describe_plans(case_of().environment, fake_aws, today=TODAY)
    assert isinstance(found, RecordedPlans)
    assert (found.plans[0].upfront_fee, found.plans[0].currency) == ("10984.20", "USD")
    read = parse_record(found.text(), file="prod.plans.json", called="prod")
    assert read.plans == found.plans


def test_a_record_without_a_fee_is_what_it_was() -> None:
    text = record(plan()).text()
    assert "upfront_fee" not in text
    assert "currency" not in text
    assert parse_record(text, file="prod.plans.json", called="prod").plans == (plan(),)
