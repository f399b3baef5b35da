"""The fixtures of this folder work as the tests of checks expect."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hyperpod_cdk.checks.answers import QUESTIONS, Aws, Caller, NotAnswered
from hyperpod_cdk.checks.model import Case, Check, Found, Result, error
from hyperpod_cdk.checks.run import UndeclaredQuestionError
from tests.support.fake_aws import Answers, FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[[str | Check, Case, Aws], Result]


def test_the_fake_has_an_answer_for_every_question(fake_aws: FakeAws) -> None:
    aws: Aws = fake_aws
    assert set(vars(Answers())) == set(QUESTIONS)
    assert all(callable(getattr(aws, question)) for question in QUESTIONS)


def test_a_question_without_an_answer_is_not_answered(fake_aws: FakeAws) -> None:
    for ask in (fake_aws.caller, lambda: fake_aws.vpc("vpc-1"), lambda: fake_aws.subnets(["subnet-1"])):
        with pytest.raises(NotAnswered, match=r"^not set in this test$"):
            ask()
    assert fake_aws.asked == [("caller",), ("vpc", "vpc-1"), ("subnets", ("subnet-1",))]


def test_a_missing_answer_is_raised_as_it_was_set(fake_aws: FakeAws) -> None:
    fake_aws.answers.caller = NotAnswered("no permission", action="sts:GetCallerIdentity")
    fake_aws.answers.role = {"a": NotAnswered("throttled"), "b": None}
    with pytest.raises(NotAnswered, match=r"^no permission$"):
        fake_aws.caller()
    with pytest.raises(NotAnswered, match=r"^throttled$"):
        fake_aws.role("a")
    assert fake_aws.role("b") is None


def test_a_case_is_made_from_changes(case_of: CaseOf) -> None:
    case = case_of({"hyperpod.instance_groups[0].count": 4, "storage": ..., "tags.team": "ml"})
    assert case.environment.hyperpod.instance_groups[0].count == 4
    assert not case.environment.storage.lustre
    assert case.environment.tags["team"] == "ml"
    assert case_of().environment.storage.lustre


def test_a_check_runs_as_in_preflight(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    def it_asks_who_asks(case: Case, aws: Aws) -> Iterator[Found]:
        if aws.caller().account != case.environment.account:
            yield error("account", "another account")
        aws.zones()

    check = Check(
        name="it_asks_who_asks",
        area="account",
        run=it_asks_who_asks,
        asks=("caller",),
        inputs="",
        passes="",
        fails="",
        skips="",
        by_hand="",
    )
    result = run_check(check, case_of(), fake_aws)
    assert [each.as_dict() for each in result.skipped] == [
        {"reason": "not set in this test", "action": "", "path": "", "aws_said": ""}
    ]
    fake_aws.answers.caller = Caller(account="1", arn="a")
    with pytest.raises(UndeclaredQuestionError, match="asks zones, which its card does not list"):
        run_check(check, case_of(), fake_aws)
