"""The runner: which checks run, the effect of a missing answer, and the place of findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import cast, get_args, get_type_hints

import pytest

from hyperpod_cdk.checks import run
from hyperpod_cdk.checks.answers import QUESTIONS, Aws, NotAnswered
from hyperpod_cdk.checks.model import (
    LOOKED,
    REGISTER,
    Case,
    Check,
    CheckFunction,
    Detail,
    Found,
    Register,
    Skipped,
    Status,
    error,
    warning,
)
from hyperpod_cdk.config import LoadedEnvironment, UsageError, load_environment
from tests.support.fake_aws import FakeAws

GROUP = "hyperpod.instance_groups[1].count"


def made(function: CheckFunction, *, asks: tuple[str, ...] = ()) -> Check:
    """A check outside the register."""
    text = "text"
    register = Register((function.__module__,))
    register.check(area="area", asks=asks, inputs=text, passes=text, fails=text, skips=text, by_hand=text)(function)
    return Check(
        name=function.__name__,
        area="area",
        run=function,
        asks=asks,
        inputs=text,
        passes=text,
        fails=text,
        skips=text,
        by_hand=text,
    )


@pytest.fixture(scope="session")
def loaded(project: Path) -> LoadedEnvironment:
    return load_environment(project / "environments" / "prod.yaml")


@pytest.fixture
def case(loaded: LoadedEnvironment, project: Path) -> Case:
    return Case(
        environment=loaded.environment, now=datetime(2026, 11, 21, tzinfo=UTC), project=project, called=loaded.called
    )


def nothing(_case: Case, _aws: Aws) -> Iterator[Found]:
    yield from ()


def asks_and_finds_nothing(_case: Case, aws: Aws) -> Iterator[Found]:
    aws.zones()
    yield from ()


def one_error(_case: Case, _aws: Aws) -> Iterator[Found]:
    yield Detail(text="seen")
    yield error(GROUP, "is wrong")


def one_warning(_case: Case, _aws: Aws) -> Iterator[Found]:
    yield warning(GROUP, "is doubtful")


def error_and_skip(_case: Case, _aws: Aws) -> Iterator[Found]:
    yield error(GROUP, "is wrong")
    yield Skipped(reason="no answer")
    yield Skipped(reason="no answer")


def compares_without_asking(_case: Case, _aws: Aws) -> Iterator[Found]:
    yield LOOKED


def asks_after_a_warning(_case: Case, aws: Aws) -> Iterator[Found]:
    yield warning(GROUP, "is doubtful")
    aws.zones()


@pytest.mark.parametrize(
    ("function", "status"),
    [
        (nothing, Status.NOT_NEEDED),
        (asks_and_finds_nothing, Status.PASSED),
        (compares_without_asking, Status.PASSED),
        (one_error, Status.FAILED),
        (one_warning, Status.WARNED),
        (error_and_skip, Status.FAILED),
        (asks_after_a_warning, Status.SKIPPED),
    ],
)
def test_status(function: CheckFunction, status: Status, case: Case) -> None:
    aws = FakeAws()
    if function is asks_and_finds_nothing:
        aws.answers.zones = ()
    assert run.run_check(made(function, asks=("zones",)), case, aws).status is status


def test_every_check_that_asks_nothing_compares_something(case: Case) -> None:
    silent = [check for check in REGISTER if not check.asks]
    found = {check.name: run.run_check(check, case, FakeAws()).status for check in silent}
    # all nodes of this environment are Spot or of a plan, or small
    assert set(found.values()) == {Status.PASSED}
    assert len(found) == 10


def test_findings_carry_the_name_of_the_check(case: Case) -> None:
    result = run.run_check(made(one_error), case, FakeAws())
    assert [finding.rule for finding in result.findings] == ["one_error"]
    assert [detail.text for detail in result.details] == ["seen"]


def test_what_was_found_before_an_answer_was_missing_stays(case: Case) -> None:
    aws = FakeAws()
    aws.answers.zones = NotAnswered("access denied", action="ec2:DescribeAvailabilityZones")
    result = run.run_check(made(asks_after_a_warning, asks=("zones",)), case, aws)
    assert [finding.message for finding in result.findings] == ["is doubtful"]
    assert result.skipped == (Skipped(reason="access denied", action="ec2:DescribeAvailabilityZones"),)


def test_the_same_reason_is_reported_once(case: Case) -> None:
    assert run.run_check(made(error_and_skip), case, FakeAws()).skipped == (Skipped(reason="no answer"),)


def test_question_that_the_card_does_not_list(case: Case) -> None:
    with pytest.raises(run.UndeclaredQuestionError, match="asks_after_a_warning asks zones, which its card"):
        run.run_check(made(asks_after_a_warning, asks=("caller",)), case, FakeAws())


def test_other_attributes_of_aws_are_out_of_reach(case: Case) -> None:
    def asks_for_calls(_case: Case, aws: Aws) -> Iterator[Found]:
        yield from cast("tuple[Found, ...]", vars(type(aws))["calls"])

    with pytest.raises(KeyError):
        run.run_check(made(asks_for_calls), case, FakeAws())


def test_offline_answers_nothing() -> None:
    with pytest.raises(NotAnswered, match="AWS is not called with --offline"):
        run.offline().zones()
    with pytest.raises(AttributeError):
        _ = getattr(run.offline(), "no_such_question")  # noqa: B009 - the type has no such attribute


def test_findings_stand_in_the_file(loaded: LoadedEnvironment, project: Path) -> None:
    aws = FakeAws()
    report = run.preflight(loaded, aws, project=project)
    for result in report.results:
        for finding in result.findings:
            assert finding.file
            assert finding.line
            assert finding.rule == result.check.name


def test_without_answers_nothing_that_asks_passes(loaded: LoadedEnvironment, project: Path) -> None:
    report = run.preflight(loaded, run.offline(), project=project)
    needed = {result.check.name for result in report.results if result.skipped}
    for result in report.results:
        if result.check.name in needed:
            assert result.status is not Status.PASSED
    assert {result.check.name for result in report.results if not result.check.asks} <= {
        result.check.name for result in report.results if result.status is not Status.SKIPPED
    }
    assert sum(report.counts().values()) == len(report.results) == len(list(REGISTER))


VPC = "vpc-0a1b2c3d4e5f67890"


def asks_for_a_vpc(case: Case, aws: Aws) -> Iterator[Found]:
    if case.environment.name and aws.vpc(VPC) is None:
        return
    yield from ()


def asks_for_subnets(_case: Case, aws: Aws) -> Iterator[Found]:
    aws.subnets(("subnet-1", "subnet-2"))
    yield warning(GROUP, "is doubtful")


def finds_that_there_is_no_vpc(_case: Case, aws: Aws) -> Iterator[Found]:
    if aws.vpc(VPC) is None:
        yield error(GROUP, "is not there")


def test_of_a_thing_that_is_not_there_nothing_passes(case: Case) -> None:
    aws = FakeAws()
    aws.answers.vpc, aws.answers.subnets = {VPC: None}, {}
    result = run.run_check(made(asks_for_a_vpc, asks=("vpc",)), case, cast("Aws", aws))
    assert (result.status, [each.reason for each in result.skipped]) == (Status.SKIPPED, [f"there is no VPC {VPC}"])
    result = run.run_check(made(asks_for_subnets, asks=("subnets",)), case, cast("Aws", aws))
    assert (result.status, [each.reason for each in result.skipped]) == (
        Status.SKIPPED,
        ["there is no subnet subnet-1", "there is no subnet subnet-2"],
    )
    result = run.run_check(made(finds_that_there_is_no_vpc, asks=("vpc",)), case, cast("Aws", aws))
    assert (result.status, result.skipped) == (Status.FAILED, ())
    expected = replace(made(asks_for_a_vpc, asks=("vpc",)), may_lack=("vpc",))
    assert run.run_check(expected, case, cast("Aws", aws)).status is Status.PASSED


def test_every_question_that_may_be_answered_by_none_says_of_what() -> None:
    answers = {name: get_type_hints(getattr(Aws, name))["return"] for name in QUESTIONS}
    assert [
        name for name, answer in answers.items() if NoneType in get_args(answer) and not QUESTIONS[name].thing
    ] == []


def test_only_questions_of_a_card_may_lack_what_they_ask_about() -> None:
    for check in REGISTER:
        assert set(check.may_lack) <= set(check.asks), check.name
        assert all(QUESTIONS[name].thing for name in check.may_lack), check.name


class TestSelect:
    """Which checks ``--only`` and ``--skip`` choose."""

    def test_all(self) -> None:
        assert run.select() == tuple(REGISTER)

    def test_area(self) -> None:
        assert {check.area for check in run.select(["ip-budget", "quotas"])} == {"ip-budget", "quotas"}

    def test_all_but_an_area(self) -> None:
        assert {check.area for check in run.select((), ["quotas"])} == set(REGISTER.areas()) - {"quotas"}

    @pytest.mark.parametrize("change", [str.lower, str.upper, lambda name: name.replace("_", "-")])
    def test_one_check_by_name(self, change: Callable[[str], str]) -> None:
        for check in list(REGISTER)[:5]:
            assert run.select([change(check.name)]) == (check,)

    def test_skip_wins(self) -> None:
        assert {check.area for check in run.select(["quotas", "eks"], ["quotas"])} == {"eks"}

    def test_nothing_left(self) -> None:
        with pytest.raises(UsageError) as caught:
            run.select(["quotas"], ["quotas"])
        assert str(caught.value) == "must leave a check to run, got none; skip fewer"

    def test_several_in_one_word(self) -> None:
        with pytest.raises(UsageError) as caught:
            run.select(["quotas,eks"])
        assert str(caught.value) == 'must be one area or check, got "quotas,eks"; give the option once for each'

    def test_unknown_word(self) -> None:
        with pytest.raises(UsageError) as caught:
            run.select(["qotas"])
        assert str(caught.value) == 'must be an area or the name of a check, got "qotas"; did you mean quotas?'

    def test_word_unlike_any(self) -> None:
        with pytest.raises(UsageError) as caught:
            run.select((), ["xyzzy"])
        assert str(caught.value) == (
            f'must be an area or the name of a check, got "xyzzy"; the areas are {", ".join(REGISTER.areas())}'
        )


def test_nothing_that_asks_aws_passes_where_nothing_is_answered(loaded: LoadedEnvironment, project: Path) -> None:
    """A check that asks nothing, of a boundary or links that the file does not have, has not passed either."""
    report = run.preflight(loaded, run.offline(), project=project)
    hollow = [
        each.check.name
        for each in report.results
        if each.status is Status.PASSED and each.check.asks and not each.details
    ]
    assert hollow == []


@pytest.mark.parametrize(
    ("line", "status"),
    [("", Status.NOT_NEEDED), ("\npermissions_boundary: arn:aws:iam::111122223333:policy/limit\n", Status.SKIPPED)],
)
def test_a_boundary_is_looked_at_where_there_is_one(project: Path, line: str, status: Status) -> None:
    file = project / "environments" / "prod.yaml"
    loaded = load_environment(file, text=file.read_text(encoding="utf-8") + line)
    for aws in (run.offline(), cast("Aws", FakeAws())):
        (result,) = run.preflight(loaded, aws, project=project, only=["permissions_boundary_exists"]).results
        assert result.status is status
