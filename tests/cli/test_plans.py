"""`hyperpod-cdk plans`: what is printed, what is written, and one line for each wrong word."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli import plans
from hyperpod_cdk.catalog import hyperpod, instance_types, regions
from hyperpod_cdk.checks.answers import (
    AwsAccessError,
    NotAnswered,
    Offering,
    QuotaValue,
    Refused,
    ReservedCapacity,
    TrainingPlan,
    Zone,
)
from hyperpod_cdk.config.recorded_plans import read_record
from tests.support.answers import answered
from tests.support.callers import with_callers
from tests.support.fake_aws import FakeAws

NOW = datetime(2026, 11, 21, 12, 0, 3, tzinfo=UTC)
ACCOUNT = "111122223333"
ARN = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/h100-april"
P5 = ("--instance-type", "ml.p5.48xlarge", "--count", "2", "--region", "us-east-1")
RECORD = Path("environments/prod.plans.json")
FILE = Path("environments/prod.yaml")

Plans = Callable[..., Result]


class Account(FakeAws):
    """A fake that says how it was opened."""

    opened: tuple[str, str] | None = None


@pytest.fixture
def aws() -> Account:
    """An account with three zones, without a plan or an offer."""
    made = Account()
    made.answers.zones = tuple(
        Zone(zone_id=zone_id, name=name, state="available", kind="availability-zone", opted_in=True)
        for zone_id, name in (("use1-az5", "us-east-1f"), ("use1-az4", "us-east-1d"), ("use1-az6", "us-east-1a"))
    )
    made.answers.training_plan_offerings = ()
    return made


@pytest.fixture
def run(aws: Account, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plans:
    """Runs a verb in a project of its own, which holds environments/prod.yaml of this repository."""
    (tmp_path / "environments").mkdir()
    (tmp_path / FILE).write_text(with_callers((project / FILE).read_text(encoding="utf-8")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)

    def opens(region: str, account: str) -> FakeAws:
        aws.opened = (region, account)
        return aws

    def invoke(*arguments: str, now: datetime = NOW) -> Result:
        access = plans.Access(open=opens, now=lambda: now)
        return CliRunner().invoke(plans.app, list(arguments), obj=access, catch_exceptions=False)

    return invoke


def block(start: str, days: float, *, zone: str = "us-east-1f", count: int = 2) -> ReservedCapacity:
    """A block as the search gives it: by the zone's name."""
    first = datetime.fromisoformat(start)
    return ReservedCapacity(
        instance_type="ml.p5.48xlarge",
        count=count,
        status="",
        availability_zone=zone,
        availability_zone_id="",
        start=first,
        end=first + timedelta(days=days),
    )


def offering(name: str, days: int, fee: str, *blocks: ReservedCapacity, count: int = 2) -> Offering:
    """An offering for so many days."""
    return Offering(
        offering_id=f"tpo-{name}",
        instance_type="ml.p5.48xlarge",
        count=count,
        duration_hours=days * 24,
        upfront_fee=fee,
        currency="USD",
        target_resources=("hyperpod-cluster",),
        blocks=blocks,
    )


OFFERS = (
    offering("expensive", 1, "1152.00", block("2026-12-01T11:30Z", 1)),
    offering("cheap", 7, "5376.00", block("2026-12-02T11:30Z", 7, zone="us-east-1d")),
    offering(
        "two",
        10,
        "9600.00",
        block("2026-12-20T11:30Z", 4, zone="us-east-1a"),
        block("2026-12-03T11:30Z", 6, zone="us-east-1a"),
    ),
)


def test_search_by_type(run: Plans, aws: Account) -> None:
    aws.answers.training_plan_offerings = OFFERS
    done = run("search", *P5)
    assert (done.exit_code, done.stderr) == (0, "")
    first, *table, empty, note = (lines := done.stdout.splitlines())[:8]
    assert (first, empty, note) == (
        (
            "2 ml.p5.48xlarge in us-east-1: 3 offers among 15 durations from 1 to 182 days, searched at"
            " 2026-11-21 12:00:03 UTC"
        ),
        "",
        "to buy one (the fee is charged at once and not refunded; offers expire, so search again before):",
    )
    assert [re.split(r" {2,}", line) for line in table] == [
        ["#", "per accelerator-hour", "fee", "days", "zone", "starts", "nodes leave", "fits"],
        ["1", "2.00 USD", "5376.00 USD", "7", "use1-az4", "2026-12-02 11:30 UTC", "2026-12-09 10:30 UTC", "-"],
        [
            "2",
            "2.50 USD",
            "9600.00 USD",
            "10",
            "use1-az6, block 1 of 2",
            "2026-12-03 11:30 UTC",
            "2026-12-09 10:30 UTC",
            "-",
        ],
        ["", "use1-az6, block 2 of 2", "2026-12-20 11:30 UTC", "2026-12-24 10:30 UTC"],
        ["3", "3.00 USD", "1152.00 USD", "1", "use1-az5", "2026-12-01 11:30 UTC", "2026-12-02 10:30 UTC", "-"],
    ]
    buy = "aws sagemaker create-training-plan --region us-east-1 --training-plan-name"
    assert lines[8:] == [
        f"1  {buy} hyperpod-20261202 --training-plan-offering-id tpo-cheap",
        f"2  {buy} hyperpod-20261203 --training-plan-offering-id tpo-two",
        f"3  {buy} hyperpod-20261201 --training-plan-offering-id tpo-expensive",
    ]
    assert aws.opened == ("us-east-1", "")
    assert asked_days(aws) == [1, 2, 3, 5, 7, 10, 14, 21, 28, 30, 45, 60, 90, 120, 182]


def test_search_for_an_environment(run: Plans, aws: Account) -> None:
    aws.answers.training_plan_offerings = OFFERS
    done = run("search", "prod")
    assert (done.exit_code, aws.opened) == (0, ("us-east-1", ACCOUNT))
    first, header, *rows = done.stdout.splitlines()
    assert first.startswith("2 ml.p5.48xlarge in us-east-1 for h100: 3 offers among")
    fits = header.index("fits")
    assert [row[fits:] for row in rows[:4]] == [
        "no group; zone is in the file",
        "no: zone is not in the file",
        "",
        "h100",
    ]
    assert "--training-plan-name prod-20261202" in done.stdout


def test_search_as_json(run: Plans, aws: Account) -> None:
    aws.answers.training_plan_offerings = OFFERS
    done = run("search", "prod", "--format", "json")
    told = answered("plan-offerings", done.stdout)
    assert told["region"] == "us-east-1"
    (search,) = told["searches"]
    assert (search["asked_at"], search["groups"], search["refused"]) == ("2026-11-21T12:00:03Z", ["h100"], [])
    assert [offer["price_per_accelerator_hour"] for offer in search["offers"]] == ["2.0000", "2.5000", "3.0000"]
    assert search["offers"][2] == {
        "offering_id": "tpo-expensive",
        "instance_type": "ml.p5.48xlarge",
        "count": 2,
        "hours": "24.00",
        "upfront_fee": "1152.00",
        "currency": "USD",
        "price_per_accelerator_hour": "3.0000",
        "fits": ["h100"],
        "zone_in_file": True,
        "blocks": [
            {
                "availability_zone_id": "use1-az5",
                "availability_zone": "us-east-1f",
                "count": 2,
                "start": "2026-12-01T11:30:00Z",
                "end": "2026-12-02T11:30:00Z",
                "nodes_leave": "2026-12-02T10:30:00Z",
            }
        ],
        "command": "aws sagemaker create-training-plan --region us-east-1 --training-plan-name prod-20261201"
        " --training-plan-offering-id tpo-expensive",
    }


def test_hours_that_aws_does_not_show(run: Plans, aws: Account) -> None:
    unknown = replace(OFFERS[0], duration_hours=None, blocks=(replace(OFFERS[0].blocks[0], end=None),))
    aws.answers.training_plan_offerings = (unknown,)
    (row,) = [line for line in run("search", *P5).stdout.splitlines() if line.startswith("1  unknown")]
    assert re.split(r" {2,}", row)[:4] == ["1", "unknown", "1152.00 USD", "unknown"]
    told = answered("plan-offerings", run("search", *P5, "--format", "json").stdout)
    assert [offer["hours"] for offer in told["searches"][0]["offers"]] == [None]


def test_nothing_on_offer_is_an_answer(run: Plans) -> None:
    done = run("search", *P5, "--days", "7")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "2 ml.p5.48xlarge in us-east-1: no offers among 7 days, searched at 2026-11-21 12:00:03 UTC",
        "try other durations (--every-day), fewer instances, a later start or another Region",
    ]


REFUSED = (
    "sagemaker:SearchTrainingPlanOfferings was refused with ResourceLimitExceeded: the limit of 'ml.p5.48xlarge' is 1"
)


QUOTA = "Number of ml.p5.48xlarge instances in reserved capacity across training plans per Region"


@pytest.mark.parametrize(
    ("value", "which", "desired"),
    [(None, "", "NUMBER, its value plus 2"), (0, ", which is 0", 2), (3, ", which is 3", 5)],
)
def test_a_quota_refusal_is_never_nothing(
    run: Plans, aws: Account, value: int | None, which: str, desired: int | str
) -> None:
    aws.answers.training_plan_offerings = Refused(REFUSED, code="ResourceLimitExceeded")
    if value is not None:
        aws.answers.quota = {QUOTA: QuotaValue(name=QUOTA, code="L-9EF527CA", value=value)}
    done = run("search", *P5, "--days", "1,7")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "2 ml.p5.48xlarge in us-east-1: no offers among 1 and 7 days, searched at 2026-11-21 12:00:03 UTC",
        (
            "quota: refused for 1 and 7 days, since the account may not reserve 2 more ml.p5.48xlarge under"
            f' "{QUOTA}"{which}: {REFUSED}'
        ),
        (
            "  to request an increase: aws service-quotas request-service-quota-increase --region us-east-1"
            f" --service-code sagemaker --quota-code L-9EF527CA --desired-value {desired}"
        ),
    ]


def test_what_is_not_answered_is_reported(run: Plans, aws: Account) -> None:
    missing = NotAnswered("no permission to search", action="sagemaker:SearchTrainingPlanOfferings")
    aws.answers.training_plan_offerings = missing
    done = run("search", *P5, "--days", "1..7")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[1:] == [
        (
            "not answered for 7 durations from 1 to 7 days: no permission to search; allow"
            " sagemaker:SearchTrainingPlanOfferings"
        )
    ]


def test_zones_that_are_not_known(run: Plans, aws: Account) -> None:
    aws.answers.training_plan_offerings = OFFERS[:1]
    aws.answers.zones = NotAnswered("no permission to list zones")
    done = run("search", *P5, "--days", "1")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1] == "zones by name only: no permission to list zones"
    assert "us-east-1f (a name)" in done.stdout
    aws.answers.training_plan_offerings = ()
    done = run("search", *P5, "--every-day")
    assert done.stdout.splitlines()[1:] == ["try fewer instances, a later start or another Region"]


def test_the_command_is_quoted_for_the_shell(run: Plans, aws: Account) -> None:
    aws.answers.training_plan_offerings = (replace(OFFERS[0], offering_id="x; rm -rf ~"),)
    assert (
        run("search", *P5, "--days", "1").stdout.splitlines()[-1].endswith("--training-plan-offering-id 'x; rm -rf ~'")
    )


def asked_days(aws: Account) -> list[int]:
    """Return the durations that were asked for, in days."""
    return sorted(int(str(each[3])) // 24 for each in aws.asked if each[0] == "training_plan_offerings")


@pytest.mark.parametrize(
    ("arguments", "days"),
    [
        (("--days", "14"), [14]),
        (("--days", "7..9"), [7, 8, 9]),
        (("--days", "1, 3..4,3"), [1, 3, 4]),
        (("--days", "182"), [182]),
        (("--hours", "24"), [1]),
        (("--hours", "4368"), [182]),
        (("--every-day",), list(range(1, 183))),
        (("--end-before", "2026-11-24"), [1, 2]),
        (("--start-after", "2026-12-01", "--end-before", "2026-12-04"), [1, 2, 3]),
        (("--start-after", "2026-12-01T00:00:01Z", "--end-before", "2026-12-04T02:00+02:00"), [1, 2]),
    ],
)
def test_durations(run: Plans, aws: Account, arguments: tuple[str, ...], days: list[int]) -> None:
    done = run("search", *P5, *arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert asked_days(aws) == days


def test_hours_are_rounded_up_aloud(run: Plans, aws: Account) -> None:
    done = run("search", *P5, "--hours", "25,100")
    assert done.stderr == "--hours: plans are sold for whole days, so 2 and 5 days are searched\n"
    assert asked_days(aws) == [2, 5]


def test_the_window_is_asked_for(run: Plans, aws: Account) -> None:
    run("search", *P5, "--days", "3", "--start-after", "2026-12-01", "--end-before", "2026-12-31T10:00+02:00")
    (asked,) = [each for each in aws.asked if each[0] == "training_plan_offerings"]
    assert asked[4:] == (datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 12, 31, 8, tzinfo=UTC))


def test_a_start_far_ahead_is_doubtful(run: Plans) -> None:
    near, far = (run("search", *P5, "--start-after", day) for day in ("2027-01-16T12:00:03Z", "2027-01-16T12:00:04Z"))
    assert near.stderr == ""
    assert far.stderr == (
        f"warning --start-after: plans are sold at most 56 days ahead (as of {hyperpod.AS_OF}), so 2027-01-16 12:00 UTC"
        " may have no offers\n"
    )


def test_the_region_of_the_shell(run: Plans, aws: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert run("search", *P5[:4], "--days", "1").exit_code == 0
    assert aws.opened == ("us-west-2", "")


WRONG: Mapping[str, tuple[tuple[str, ...], str]] = {
    "unknown environment": (("search", "prot"), 'no environment "prot" in environments; did you mean prod?'),
    "no region": (
        ("search", "--instance-type", "ml.p5.48xlarge", "--count", "1"),
        "--region is missing; specify it, set AWS_REGION or specify an environment",
    ),
    "misspelt region": (
        ("search", *P5[:4], "--region", "us-esat-1"),
        f'--region: must be an AWS region known on {regions.AS_OF}, got "us-esat-1"; did you mean us-east-1?',
    ),
    "region without HyperPod": (
        ("search", *P5[:4], "--region", "ca-west-1"),
        (
            f"--region: must be a region where HyperPod runs (as of {regions.AS_OF}), got ca-west-1; use one of"
            f" {', '.join(regions.HYPERPOD_REGIONS)}"
        ),
    ),
    "another region than the environment's": (
        ("search", "prod", "--region", "us-west-2"),
        "--region: must be us-east-1, the Region of prod, got us-west-2; omit --region or the environment",
    ),
    "neither type nor count": (
        ("search", "--region", "us-east-1"),
        "needs --instance-type and --count, or an environment whose groups define them",
    ),
    "no count": (
        ("search", *P5[:2], "--region", "us-east-1"),
        "needs --count, or an environment whose groups define them",
    ),
    "a type that is not in the environment": (
        ("search", "prod", "--instance-type", "ml.p5en.48xlarge"),
        "environments/prod.yaml has no group of ml.p5en.48xlarge; specify --count",
    ),
    "unknown type": (
        ("search", "--instance-type", "p5.48xlarge", *P5[2:]),
        (
            f'--instance-type: must be a type known on {instance_types.as_of()}, got "p5.48xlarge"; did you mean'
            " ml.p5.48xlarge?"
        ),
    ),
    "no type": (
        ("search", "--instance-type", "hopper", *P5[2:]),
        f'--instance-type: must be a type known on {instance_types.as_of()}, got "hopper"; use one of',
    ),
    "a type without plans": (
        ("search", "--instance-type", "ml.m5.2xlarge", *P5[2:]),
        (
            f"--instance-type: must be a type for which plans are sold (as of {instance_types.as_of()}), got"
            " ml.m5.2xlarge; use one of"
        ),
    ),
    **{
        f"count {count}": (
            ("search", *P5[:2], "--count", str(count), *P5[4:]),
            (
                f"--count: must be one of 1, 2, 4, 8, 16, 32, 64, for which plans are sold (as of {hyperpod.AS_OF}),"
                f" got {count}; use {near}"
            ),
        )
        for count, near in ((0, 1), (-1, 1), (3, 4), (65, 64))
    },
    "no number of days": (
        ("search", *P5, "--days", "week"),
        '--days: must be numbers such as 14, 7..14 or 1,7,14, got "week"',
    ),
    "no day": (("search", *P5, "--days", "0"), '--days: must be from 1 to 182, got "0"'),
    "too many days": (("search", *P5, "--days", "1,183"), '--days: must be from 1 to 182, got "183"'),
    "too many hours": (("search", *P5, "--hours", "4369"), '--hours: must be from 1 to 4368, got "4369"'),
    "a range backwards": (
        ("search", *P5, "--days", "9..7"),
        '--days: must be with the smaller number first, got "9..7"',
    ),
    "twice": (
        ("search", *P5, "--days", "1", "--every-day"),
        ("--days and --every-day specify the same value; use only one of them"),
    ),
    "no moment": (
        ("search", *P5, "--start-after", "tomorrow"),
        '--start-after: must be a date or a time such as 2026-12-01 or 2026-12-01T11:30Z, got "tomorrow"',
    ),
    "a start that is over": (
        ("search", *P5, "--start-after", "2026-11-21"),
        "--start-after: must be in the future, got 2026-11-21 00:00 UTC; the current time is 2026-11-21 12:00 UTC",
    ),
    "an end too soon": (
        ("search", *P5, "--end-before", "2026-11-22T12:00:02Z"),
        "--end-before: must be at least one day after the start, got 2026-11-22 12:00 UTC; choose a later end",
    ),
    "no room": (
        ("search", *P5, "--days", "7", "--end-before", "2026-11-28T12:00:02Z"),
        "--end-before: must leave time for 7 days, the shortest duration; choose a later end",
    ),
    "record of an unknown environment": (
        ("record", "prot"),
        'no environment "prot" in environments; did you mean prod?',
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_words_are_one_line(run: Plans, aws: Account, case: str) -> None:
    arguments, says = WRONG[case]
    done = run(*arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(says)
    assert says.endswith("use one of") or done.stderr == f"{says}\n"
    assert aws.asked == []


@pytest.mark.parametrize("arguments", [("search", *P5), ("search", "prod"), ("record", "prod")])
@pytest.mark.usefixtures("run")
def test_nobody_to_ask_as(arguments: tuple[str, ...]) -> None:
    def refuses(region: str, account: str) -> FakeAws:  # noqa: ARG001 - the shape of an opener
        raise AwsAccessError("there are no AWS credentials; run 'aws sso login'")

    access = plans.Access(open=refuses, now=lambda: NOW)
    done = CliRunner().invoke(plans.app, list(arguments), obj=access)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", "there are no AWS credentials; run 'aws sso login'\n")
    assert not RECORD.exists()


def plan(**changes: Any) -> TrainingPlan:
    """The plan that environments/prod.yaml names, as AWS describes it."""
    capacity = ReservedCapacity(
        instance_type="ml.p5.48xlarge",
        count=2,
        status="Scheduled",
        availability_zone="us-east-1f",
        availability_zone_id="use1-az5",
        start=datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
        end=datetime(2026, 12, 31, 11, 30, tzinfo=UTC),
    )
    made = TrainingPlan(
        arn=ARN,
        name="h100-april",
        status="Scheduled",
        status_message="",
        total=2,
        available=2,
        in_use=0,
        unhealthy=0,
        target_resources=("hyperpod-cluster",),
        blocks=(replace(capacity, **changes.pop("block", {})),),
        start=None,
        end=None,
    )
    return replace(made, **changes)


NEW = "h100-april: new, Scheduled, 2 ml.p5.48xlarge in use1-az5, 2026-12-01 11:30 UTC to 2026-12-31 11:30 UTC"


def test_record(run: Plans, aws: Account) -> None:
    aws.answers.training_plan = {ARN: plan()}
    done = run("record", "prod")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [NEW, f"wrote {RECORD}; commit it with the environment"]
    assert json.loads(RECORD.read_text(encoding="utf-8")) == {
        "schema_version": 1,
        "recorded": "2026-11-21",
        "account": ACCOUNT,
        "region": "us-east-1",
        "plans": [
            {
                "arn": ARN,
                "name": "h100-april",
                "status": "Scheduled",
                "target_resources": ["hyperpod-cluster"],
                "instance_count": 2,
                "blocks": [
                    {
                        "instance_type": "ml.p5.48xlarge",
                        "instance_count": 2,
                        "availability_zone": "us-east-1f",
                        "availability_zone_id": "use1-az5",
                        "start": "2026-12-01T11:30:00Z",
                        "end": "2026-12-31T11:30:00Z",
                    }
                ],
            }
        ],
    }
    assert (aws.opened, ("zones",) in aws.asked) == (("us-east-1", ACCOUNT), False)


def test_record_again(run: Plans, aws: Account) -> None:
    aws.answers.training_plan = {ARN: plan()}
    run("record", "prod")
    done = run("record", "prod", now=NOW + timedelta(days=2))
    assert done.stdout == f"wrote {RECORD}; nothing changed since 2026-11-21\n"
    later = plan(status="Active", block={"end": datetime(2027, 1, 7, 11, 30, tzinfo=UTC)})
    aws.answers.training_plan = {ARN: later}
    done = run("record", "prod", "--format", "json", now=NOW + timedelta(days=3))
    told = answered("plan-record", done.stdout)
    assert told["changes"] == [
        "h100-april: status Scheduled -> Active",
        "h100-april: block 1 end 2026-12-31 11:30 UTC -> 2027-01-07 11:30 UTC",
    ]
    assert (told["file"], told["findings"]) == (str(RECORD), [])
    assert told["record"] == read_record(RECORD, file=str(RECORD), called="prod").model_dump(mode="json")
    assert told["record"]["recorded"] == "2026-11-24"


def test_a_record_that_contradicts_is_written_and_reported(run: Plans, aws: Account) -> None:
    aws.answers.training_plan = {ARN: plan(block={"availability_zone_id": "use1-az4"})}
    done = run("record", "prod")
    assert done.exit_code == 1
    line = done.stdout.splitlines()[-1]
    assert line.startswith("environments/prod.yaml:")
    assert line.endswith(
        "hyperpod.instance_groups[1].availability_zone_id: must be use1-az4, where plan h100-april is"
        f" ({RECORD} of 2026-11-21), got use1-az5; set availability_zone_id: use1-az4"
    )
    # the verb that corrects a record is not hindered by one that contradicts
    aws.answers.training_plan = {ARN: plan()}
    done = run("record", "prod")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        0,
        "h100-april: block 1 availability_zone_id use1-az4 -> use1-az5",
    )


def test_a_zone_by_name_is_looked_up(run: Plans, aws: Account) -> None:
    aws.answers.training_plan = {ARN: plan(block={"availability_zone_id": ""})}
    assert run("record", "prod").exit_code == 0
    (recorded,) = json.loads(RECORD.read_text(encoding="utf-8"))["plans"]
    assert recorded["blocks"][0]["availability_zone_id"] == "use1-az5"


@pytest.mark.parametrize(
    ("found", "zones", "end"),
    [
        (None, None, f"training_plan_arn: there is no plan h100-april in account {ACCOUNT} in us-east-1"),
        (
            NotAnswered("no permission", action="sagemaker:DescribeTrainingPlan"),
            None,
            "training_plan_arn: no permission; allow sagemaker:DescribeTrainingPlan",
        ),
        (
            plan(block={"availability_zone_id": ""}),
            NotAnswered("no permission", action="ec2:DescribeAvailabilityZones"),
            "availability_zone_id: no permission; allow ec2:DescribeAvailabilityZones",
        ),
    ],
    ids=["no such plan", "not answered", "zone not known"],
)
def test_what_cannot_be_described_leaves_the_old_record(
    run: Plans, aws: Account, found: TrainingPlan | NotAnswered | None, zones: NotAnswered | None, end: str
) -> None:
    RECORD.write_text("an old record\n", encoding="utf-8")
    aws.answers.training_plan = {ARN: found}
    if zones is not None:
        aws.answers.zones = zones
    done = run("record", "prod")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("environments/prod.yaml:")
    assert done.stderr.endswith(f" hyperpod.instance_groups[1].{end}; nothing was written\n")
    assert RECORD.read_text(encoding="utf-8") == "an old record\n"


def test_an_unreadable_record_is_replaced_aloud(run: Plans, aws: Account) -> None:
    RECORD.write_text('{\n"schema_version" 1}', encoding="utf-8")
    aws.answers.training_plan = {ARN: plan()}
    done = run("record", "prod")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, NEW)
    why = f"{RECORD}:2: is not JSON: expecting ':' delimiter"
    assert done.stderr == f"replaces a record that could not be read: {why}\n"


def test_a_record_of_a_newer_version_is_kept(run: Plans, aws: Account) -> None:
    RECORD.write_text('{"schema_version": 2}', encoding="utf-8")
    aws.answers.training_plan = {ARN: plan()}
    done = run("record", "prod")
    assert (done.exit_code, done.stderr) == (
        2,
        (
            f"{RECORD}:1 schema_version: must be 1, which this hyperpod-cdk reads, got 2; update hyperpod-cdk; nothing"
            " was written\n"
        ),
    )
    assert RECORD.read_text(encoding="utf-8") == '{"schema_version": 2}'


def test_an_environment_without_a_plan(run: Plans, aws: Account) -> None:
    text = FILE.read_text(encoding="utf-8").replace("capacity: training_plan", "capacity: on_demand")
    lines = [line for line in text.splitlines() if "training_plan_arn" not in line]
    FILE.write_text("\n".join(lines), encoding="utf-8")
    done = run("record", "prod")
    assert (done.exit_code, done.stderr) == (
        2,
        "environments/prod.yaml contains no training plan, so there is nothing to record\n",
    )
    # a search takes the groups of types for which plans are sold
    assert run("search", "prod", "--days", "1").stdout.startswith("2 ml.p5.48xlarge in us-east-1 for h100: no offers")
    assert [each[1:3] for each in aws.asked if each[0] == "training_plan_offerings"] == [("ml.p5.48xlarge", 2)]


def test_a_refused_environment(run: Plans, aws: Account) -> None:
    FILE.write_text("name: prod\n", encoding="utf-8")
    done = run("record", "prod")
    assert (done.exit_code, "environments/prod.yaml" in done.stdout, aws.opened) == (1, True, None)


def test_a_record_that_is_a_folder(run: Plans, aws: Account) -> None:
    RECORD.mkdir()
    aws.answers.training_plan = {ARN: plan()}
    done = run("record", "prod")
    assert (done.exit_code, done.stderr) == (2, f"{RECORD} is not a file; remove it\n")


@pytest.mark.parametrize("found", ["an old record\n", None])
def test_a_write_that_fails_keeps_what_was_there(tmp_path: Path, found: str | None) -> None:
    path = tmp_path / "prod.plans.json"
    if found is not None:
        path.write_text(found, encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        plans.write_atomically(path, "half \ud800 written")
    assert (path.read_text(encoding="utf-8") if path.exists() else None) == found
    assert [each.name for each in tmp_path.iterdir()] == ([] if found is None else ["prod.plans.json"])


def test_a_write_keeps_mode_and_link(tmp_path: Path) -> None:
    path, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to("real.json")
    mask = os.umask(0o027)
    try:
        plans.write_atomically(link, "1\n")
    finally:
        os.umask(mask)
    assert (link.is_symlink(), path.stat().st_mode & 0o777) == (True, 0o640)
    path.chmod(0o604)
    plans.write_atomically(link, "2\n")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("2\n", 0o604)


def test_a_place_that_cannot_be_written(run: Plans, aws: Account) -> None:
    aws.answers.training_plan = {ARN: plan()}
    RECORD.symlink_to("nowhere/prod.plans.json")
    done = run("record", "prod")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (
        2,
        f"cannot write {RECORD}: No such file or directory; the old file is unchanged",
    )


def test_validate_reads_the_record(run: Plans, aws: Account) -> None:
    # validate goes by the day on which the test runs
    now = datetime.now(UTC)
    far = now + timedelta(days=100)
    aws.answers.training_plan = {ARN: plan(block={"availability_zone_id": "use1-az4", "end": far})}
    run("record", "prod", now=now)
    done = CliRunner().invoke(cli.app, ["validate", "prod"])
    assert (done.exit_code, done.stderr) == (1, "")
    says = f"must be use1-az4, where plan h100-april is ({RECORD} of {now.date()}), got use1-az5"
    assert len([line for line in done.stdout.splitlines() if says in line]) == 1
    assert done.stdout.splitlines()[-1].startswith("1 of 1 file refused, 1 error")


@pytest.mark.usefixtures("run")
def test_validate_refuses_a_bad_record() -> None:
    RECORD.write_text("{", encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["validate", "prod", "--format", "json"])
    assert done.exit_code == 1
    (file,) = json.loads(done.stdout)["files"]
    (finding,) = [each for each in file["findings"] if each["severity"] == "error"]
    assert (file["file"], finding["file"], finding["line"]) == (str(FILE), str(RECORD), 1)


def test_the_verbs_are_mounted() -> None:
    done = CliRunner().invoke(cli.app, ["plans", "--help"])
    assert (done.exit_code, "search" in done.stdout, "record" in done.stdout) == (0, True, True)
