"""The record of training plans next to an environment file: contradictions and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.config import EnvironmentFileError, environment_files, load_environment
from hyperpod_cdk.config.loading import plans_file
from hyperpod_cdk.config.record_file import RecordError
from hyperpod_cdk.config.recorded_plans import (
    FRESH_DAYS,
    RecordedBlock,
    RecordedPlan,
    RecordedPlans,
    parse_record,
)

FILE = Path("environments/prod.yaml")
RECORD = "environments/prod.plans.json"
SEEN = f"({RECORD} of 2026-11-21)"
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
TODAY = date(2026, 11, 22)
ANEW = "restore it from version control, or write it again with 'hyperpod-cdk plans record prod'"
GROUP = "environments/prod.yaml:%d hyperpod.instance_groups[1]"

BLOCK = {
    "instance_type": "ml.p5.48xlarge",
    "instance_count": 2,
    "availability_zone": "us-east-1f",
    "availability_zone_id": "use1-az5",
    "start": "2026-12-01T11:30:00Z",
    "end": "2026-12-31T11:30:00Z",
}
PLAN = {
    "arn": ARN,
    "name": "h100-april",
    "status": "Active",
    "target_resources": ["hyperpod-cluster"],
    "instance_count": 2,
    "blocks": [BLOCK],
}

Changed = Callable[[Mapping[str, str]], str]
Judge = Callable[..., list[str]]


def record(*, block: Mapping[str, Any] = {}, **changes: Any) -> dict[str, Any]:
    """A record that agrees with the base file, with changes to its one plan and to that plan's block."""
    plan = {**PLAN, "blocks": [{**BLOCK, **block}], **changes}
    return {
        "schema_version": 1,
        "recorded": "2026-11-21",
        "account": "111122223333",
        "region": "us-east-1",
        "plans": [plan],
    }


@pytest.fixture
def folder(tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the base file as environments/prod.yaml, entered."""
    (tmp_path / "environments").mkdir()
    (tmp_path / FILE).write_text(base, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def judge(folder: Path) -> Judge:
    """Loads the file with a record; returns the lines that a user reads, with warnings marked."""

    def run(document: object, *, text: str | None = None, today: date = TODAY) -> list[str]:
        content = document if isinstance(document, str) else json.dumps(document, indent=2)
        (folder / RECORD).write_text(content, encoding="utf-8")
        findings = _load(text, today)
        return [f"{'' if each.severity == 'error' else 'warning '}{each.render()}" for each in findings]

    return run


def _load(text: str | None, today: date) -> tuple[Any, ...]:
    try:
        return load_environment(FILE, text=text, today=today).warnings
    except EnvironmentFileError as error:
        return error.findings


def test_no_record_is_silent(folder: Path) -> None:
    loaded = load_environment(folder / FILE, today=TODAY)
    assert (loaded.warnings, loaded.recorded_plans) == ((), None)


def test_a_record_that_agrees_is_silent(judge: Judge) -> None:
    assert judge(record()) == []
    recorded = load_environment(FILE, today=TODAY).recorded_plans
    assert recorded is not None
    plan = recorded.plan(ARN)
    assert plan is not None
    assert (plan.seats, plan.nodes_leave) == (2, datetime(2026, 12, 31, 10, 30, tzinfo=UTC))


def test_a_record_is_not_an_environment_and_is_next_to_its_file(folder: Path) -> None:
    (folder / RECORD).write_text("{}", encoding="utf-8")
    assert [path.name for path in environment_files(folder)] == ["prod.yaml"]
    assert plans_file(Path("environments/prod.yaml")) == Path(RECORD)
    assert plans_file(Path("elsewhere/a.b.yml")) == Path("elsewhere/a.b.plans.json")


CONTRADICTIONS: Mapping[str, tuple[dict[str, Any], str]] = {
    "another zone": (
        record(block={"availability_zone_id": "use1-az4"}),
        (
            f"{GROUP % 33}.availability_zone_id: must be use1-az4, where plan h100-april is {SEEN}, got use1-az5; set"
            " availability_zone_id: use1-az4"
        ),
    ),
    "a zone that the network lacks": (
        record(block={"availability_zone_id": "use1-az6"}),
        (
            f"{GROUP % 33}.availability_zone_id: must be use1-az6, where plan h100-april is {SEEN}, got use1-az5; set"
            " availability_zone_id: use1-az6 and add use1-az6 to network.availability_zones"
        ),
    ),
    "another type": (
        record(block={"instance_type": "ml.p5en.48xlarge"}),
        (
            f"{GROUP % 30}.instance_type: must be ml.p5en.48xlarge, which plan h100-april reserves {SEEN}, got"
            " ml.p5.48xlarge; set instance_type: ml.p5en.48xlarge or name another plan"
        ),
    ),
    "too few": (
        record(block={"instance_count": 1}),
        (
            f"{GROUP % 31}.count: needs 2 instances of plan h100-april for h100, which has 1 {SEEN}; lower count by 1"
            " or name another plan"
        ),
    ),
    "bought for jobs": (
        record(target_resources=["training-job", "endpoint"]),
        (
            f"{GROUP % 35}.training_plan_arn: must be a plan for hyperpod-cluster, but h100-april is for training-job"
            f" and endpoint {SEEN}; name a plan that was bought for hyperpod-cluster"
        ),
    ),
    "not paid": (
        record(status="Failed"),
        (
            f"{GROUP % 35}.training_plan_arn: must be a plan that is Scheduled or Active, but h100-april is Failed"
            f" {SEEN}; name another plan"
        ),
    ),
    "not paid yet": (
        record(status="Pending"),
        (
            f"warning {GROUP % 35}.training_plan_arn: must be a plan that is Scheduled or Active, but h100-april was"
            f" Pending {SEEN}; run 'hyperpod-cdk plans record prod' when it is paid"
        ),
    ),
    "over": (
        record(status="Expired"),
        (
            f"{GROUP % 35}.training_plan_arn: must be a plan with time left, but h100-april is Expired {SEEN}; name"
            " another plan"
        ),
    ),
    "another plan": (
        record(arn=f"{ARN}-2"),
        (
            f"warning {GROUP % 35}.training_plan_arn: is not in the record {SEEN}, so its zone is not verified; run"
            " 'hyperpod-cdk plans record prod'"
        ),
    ),
    "another account": (
        {**record(block={"availability_zone_id": "use1-az4"}), "account": "999922223333"},
        (
            f"{RECORD}:4 account: must be a record of account 111122223333 in us-east-1, the environment's, got one of"
            f" account 999922223333 in us-east-1; {ANEW}"
        ),
    ),
    "another region": (
        {**record(), "region": "us-east-2"},
        (
            f"{RECORD}:5 region: must be a record of account 111122223333 in us-east-1, the environment's, got one of"
            f" account 111122223333 in us-east-2; {ANEW}"
        ),
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_what_contradicts_the_file_is_reported_once(judge: Judge, case: str) -> None:
    document, says = CONTRADICTIONS[case]
    assert judge(document) == [says]


def test_what_is_not_known_is_not_reported(judge: Judge, changed: Changed) -> None:
    assert judge(record(block={"availability_zone_id": ""})) == []
    assert judge(record(blocks=[])) == []
    assert judge(record(target_resources=[])) == []
    assert judge(record(block={"end": None})) == []
    broken = changed({"      count: 2\n      min_count": "      count: two\n      min_count"})
    lines = judge(record(block={"availability_zone_id": "use1-az4", "instance_count": 1}), text=broken)
    # the count is wrong already; the zone is certain all the same
    assert [line.split(": ")[0] for line in lines] == [f"{GROUP % 31}.count", f"{GROUP % 33}.availability_zone_id"]


def test_a_plan_that_no_group_names_any_more_does_no_harm(judge: Judge, changed: Changed) -> None:
    text = changed(
        {"capacity: training_plan": "capacity: on_demand", f"      training_plan_arn: {ARN}\n": ""},
    )
    assert judge(record(block={"availability_zone_id": "use1-az4"}), text=text) == []


def test_groups_add_up(judge: Judge, base: str) -> None:
    second = (
        "    - {name: more, instance_type: ml.p5.48xlarge, count: 1, availability_zone_id: use1-az5, capacity:"
        f" training_plan, training_plan_arn: '{ARN}'}}\n"
    )
    text = base.replace("\nstorage:", f"{second}\nstorage:")
    (line,) = judge(record(), text=text)
    assert line == (
        f"environments/prod.yaml:38 hyperpod.instance_groups[2].count: needs 3 instances of plan h100-april for h100"
        f" and more, which has 2 {SEEN}; lower count by 1 or name another plan"
    )
    assert judge(record(block={"instance_count": 3}), text=text) == []


@pytest.mark.parametrize(
    ("today", "ended"),
    [(date(2026, 12, 30), False), (date(2026, 12, 31), False), (date(2027, 1, 1), True)],
)
def test_a_plan_that_is_over(judge: Judge, today: date, ended: bool) -> None:  # noqa: FBT001 - a column of the table
    document = {**record(), "recorded": today.isoformat()}
    says = (
        f"{GROUP % 35}.training_plan_arn: must be a plan with time left on {today}, but the nodes of h100-april leave"
        f" at 2026-12-31 10:30 UTC, one hour before its end ({RECORD} of {today}); name the plan that follows it, or"
        " run 'hyperpod-cdk plans record prod' if it was extended"
    )
    assert [line for line in judge(document, today=today) if "kubernetes" not in line] == ([says] if ended else [])


def test_the_hour_before_the_end_can_fall_on_the_day_before(judge: Judge) -> None:
    early = record(block={"end": "2026-12-31T00:30:00Z"})
    lines = judge({**early, "recorded": "2026-12-31"}, today=date(2026, 12, 31))
    assert any("leave at 2026-12-30 23:30 UTC" in line for line in lines)


@pytest.mark.parametrize(("age", "stale"), [(-1, False), (0, False), (FRESH_DAYS, False), (FRESH_DAYS + 1, True)])
def test_an_old_record(judge: Judge, age: int, stale: bool) -> None:  # noqa: FBT001 - a column of the table
    document = {**record(), "recorded": (TODAY - timedelta(days=age)).isoformat()}
    says = (
        f"warning {RECORD}:3 recorded: is {age} days old on {TODAY}, and a plan may have been extended since; run"
        " 'hyperpod-cdk plans record prod'"
    )
    assert judge(document) == ([says] if stale else [])


def test_a_record_of_a_day_to_come(judge: Judge) -> None:
    ahead = TODAY + timedelta(days=2)
    assert judge({**record(), "recorded": ahead.isoformat()}) == [
        (
            f"warning {RECORD}:3 recorded: must not be in the future, got {ahead} on {TODAY}, so its age"
            " is unknown; run 'hyperpod-cdk plans record prod'"
        )
    ]


TEXT = json.dumps(record(), indent=2)
UNREADABLE: Mapping[str, tuple[str, str]] = {
    "empty": ("", ":1: is not JSON: expecting value"),
    "cut off": (TEXT[:40], ":3: is not JSON: unterminated string starting at"),
    "conflict markers": (f"<<<<<<< HEAD\n{TEXT}", ":1: is not JSON: expecting value"),
    "comma": (TEXT.replace('1,\n  "rec', '1\n  "rec'), ":3: is not JSON: expecting ',' delimiter"),
    "not a number": (TEXT.replace("2,", "NaN,", 1), ": is not JSON: NaN is not a JSON number"),
    "deep": ("[" * 100_000, ": is not JSON: nested too deeply"),
    "a list": ("[]", ":1: must be a mapping, got a list"),
    "nothing": ("null", ":1: must be a mapping, got nothing"),
    "twice": (
        TEXT.replace('"region"', '"account"'),
        (":5 account: is written twice, first on line 4; keep one of the two"),
    ),
    "missing": (TEXT.replace('  "region": "us-east-1",\n', ""), ":1 region: is missing"),
    "unknown": (TEXT.replace('"region"', '"regoin"'), ":1 region: is missing"),
    "misspelt beside": (
        TEXT.replace('"region"', '"regoin": "x", "region"'),
        ":5 regoin: is not a known key here, region is",
    ),
    "of a block": (
        TEXT.replace('"start"', '"starts": null, "start"'),
        ":21 plans[0].blocks[0].starts: is not a known key here, start is",
    ),
    "text for a number": (
        TEXT.replace('"instance_count": 2', '"instance_count": "2"', 1),
        ':14 plans[0].instance_count: must be a whole number, got "2"',
    ),
    "negative": (
        TEXT.replace('"instance_count": 2', '"instance_count": -2', 1),
        ":14 plans[0].instance_count: must be 0 or more, got -2",
    ),
    "number for text": (TEXT.replace('"us-east-1"', "1"), ":5 region: must be text, got 1"),
    "no such day": (
        TEXT.replace("2026-11-21", "2026-11-31"),
        ':3 recorded: must be a day such as 2026-11-21, got "2026-11-31"',
    ),
    "another zone of time": (
        TEXT.replace("11:30:00Z", "11:30:00+02:00", 1),
        (
            ":21 plans[0].blocks[0].start: must be a moment such as 2026-12-01T11:30:00Z, got"
            ' "2026-12-01T11:30:00+02:00"'
        ),
    ),
    "no such moment": (
        TEXT.replace("12-01T", "12-32T"),
        (':21 plans[0].blocks[0].start: must be a moment such as 2026-12-01T11:30:00Z, got "2026-12-32T11:30:00Z"'),
    ),
    "older": (
        TEXT.replace('"schema_version": 1', '"schema_version": 0'),
        ":2 schema_version: must be 1, which this hyperpod-cdk reads, got 0",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_record_that_cannot_be_used_is_one_finding(judge: Judge, case: str) -> None:
    text, says = UNREADABLE[case]
    assert judge(text) == [f"{RECORD}{says}; {ANEW}"]


def test_a_plan_that_is_recorded_twice(judge: Judge) -> None:
    twice = record()
    twice["plans"] *= 2
    assert judge(twice) == [f"{RECORD}:27 plans[1].arn: must be unique, got that of plans[0]; {ANEW}"]


def test_a_record_of_a_newer_version(judge: Judge) -> None:
    assert judge(TEXT.replace('"schema_version": 1', '"schema_version": 2')) == [
        f"{RECORD}:2 schema_version: must be 1, which this hyperpod-cdk reads, got 2; update hyperpod-cdk"
    ]


def test_a_record_that_is_no_text(folder: Path) -> None:
    (folder / RECORD).write_bytes(TEXT.encode().replace(b"h100", b"h\xff00", 1))
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(FILE, today=TODAY)
    assert [each.render() for each in caught.value.findings] == [f"{RECORD}:8: is not UTF-8 text: byte 0xff; {ANEW}"]


def test_the_refused_file_is_the_environment(folder: Path) -> None:
    (folder / RECORD).write_text("{", encoding="utf-8")
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(FILE, today=TODAY)
    assert (caught.value.file, caught.value.findings[0].file) == (str(FILE), RECORD)


def test_a_record_that_is_no_file_or_too_large(folder: Path) -> None:
    (folder / RECORD).write_text(" " * 1_000_001, encoding="utf-8")
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(FILE, today=TODAY)
    assert str(caught.value) == f"{RECORD}: must have at most 1000000 bytes, got 1000001; {ANEW}"
    (folder / RECORD).unlink()
    (folder / RECORD).mkdir()
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(FILE, today=TODAY)
    assert str(caught.value) == f"{RECORD}: is not a file; {ANEW}"
    (folder / RECORD).rmdir()
    (folder / RECORD).symlink_to("nowhere")
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(FILE, today=TODAY)
    assert str(caught.value) == "environments/nowhere: cannot be read: No such file or directory; check its permissions"


def test_control_characters_of_a_record_stay_on_one_line(judge: Judge) -> None:
    (line,) = judge(record(name="h100\n\x1b[31m", status="Failed"))
    assert "h100\\x0a\\x1b[31m is Failed" in line


def test_tabs_are_as_good_as_blanks(judge: Judge) -> None:
    assert judge(json.dumps(record(), indent="\t")) == []


MOMENTS = st.datetimes(
    min_value=datetime(2000, 1, 1),  # noqa: DTZ001 - strategies want naive bounds
    max_value=datetime(2999, 1, 1),  # noqa: DTZ001 - as above
    timezones=st.just(UTC),
).map(lambda moment: moment.replace(microsecond=0))
WORDS = st.text(max_size=12)
BLOCKS = st.builds(
    RecordedBlock,
    instance_type=WORDS,
    instance_count=st.integers(0, 10**6),
    availability_zone=WORDS,
    availability_zone_id=WORDS,
    start=st.none() | MOMENTS,
    end=st.none() | MOMENTS,
)
PLANS = st.builds(
    RecordedPlan,
    arn=WORDS,
    name=WORDS,
    status=WORDS,
    target_resources=st.lists(WORDS, max_size=3).map(tuple),
    instance_count=st.integers(0, 10**6),
    blocks=st.lists(BLOCKS, max_size=3).map(tuple),
)
RECORDS = st.builds(
    RecordedPlans,
    schema_version=st.just(1),
    recorded=st.dates(min_value=date(1000, 1, 1)),
    account=WORDS,
    region=WORDS,
    plans=st.lists(PLANS, max_size=3, unique_by=lambda plan: plan.arn).map(tuple),
)


@given(RECORDS)
def test_what_is_written_is_read(recorded: RecordedPlans) -> None:
    text = recorded.text()
    again = parse_record(text, file=RECORD, called="prod")
    assert again.text() == text
    assert {plan.arn for plan in again.plans} == {plan.arn for plan in recorded.plans}
    for plan in recorded.plans:
        found = again.plan(plan.arn)
        assert found is not None
        assert sorted(found.blocks, key=repr) == sorted(plan.blocks, key=repr)
        assert found.model_copy(update={"blocks": plan.blocks}) == plan


@given(RECORDS, st.randoms(use_true_random=False))
def test_the_order_of_an_answer_does_not_show(recorded: RecordedPlans, random: Any) -> None:
    plans = list(recorded.plans)
    random.shuffle(plans)
    assert recorded.model_copy(update={"plans": tuple(plans)}).text() == recorded.text()


@given(st.text(alphabet='{}[]:,"\\ \n\t01.-eEnulltrfasx\x00é', max_size=40) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(RecordError):
        parse_record(text, file=RECORD, called="prod")
