"""Reasons with the same cause are reported once."""

from __future__ import annotations

from hyperpod_cdk._cli.causes import Gap, causes
from hyperpod_cdk.checks.answers import Why
from hyperpod_cdk.living.model import Unread

DENIED = "no permission for ec2:DescribeVpcs"


def said(*gaps: Gap) -> list[tuple[tuple[str, ...], str]]:
    return [(cause.what, str(cause)) for cause in causes(gaps)]


def test_one_gap_keeps_its_reason() -> None:
    reason = Why.about("name", Why("AWS throttled sts:A, 4 times; later", causes=("AWS throttled sts:A; later",)))
    assert said(Gap(what="a", reason=reason)) == [(("a",), "name: AWS throttled sts:A, 4 times; later")]


def test_reasons_are_cut_to_the_cause_that_they_share() -> None:
    gaps = [Gap(what=each, reason=Why.about(f'the quota "{each}"', DENIED), action="x:Y") for each in "ab"]
    assert said(*gaps) == [(("a", "b"), f"{DENIED}; allow x:Y")]


def test_of_shared_causes_the_one_that_says_most_is_kept() -> None:
    gaps = [
        Gap(what=each, reason=Why.about(each, Why.about("it is not known whose they are", DENIED))) for each in "ab"
    ]
    assert said(*gaps) == [(("a", "b"), f"it is not known whose they are: {DENIED}")]


def test_another_reason_and_another_action_are_other_causes() -> None:
    gaps = [
        Gap(what="a", reason=DENIED),
        Gap(what="b", reason="gone"),
        Gap(what="c", reason=DENIED),
        Gap(what="d", reason=DENIED, action="x:Y"),
    ]
    assert said(*gaps) == [(("a", "c"), DENIED), (("b",), "gone"), (("d",), f"{DENIED}; allow x:Y")]


def test_how_often_it_was_tried_makes_no_other_cause() -> None:
    gaps = [
        Gap(what=each, reason=Why(f"AWS throttled x:A, {each} times", causes=("AWS throttled x:A",))) for each in "23"
    ]
    assert said(*gaps) == [(("2", "3"), "AWS throttled x:A")]


def test_what_is_hidden_twice_is_named_once() -> None:
    gaps = [Gap(what="a", reason=Why.about(each, DENIED)) for each in "xy"]
    assert said(*gaps) == [(("a",), DENIED)]


def test_text_is_not_searched_for_causes() -> None:
    gaps = [Gap(what=each, reason=f"{each}: {DENIED}") for each in "ab"]
    assert said(*gaps) == [(("a",), f"a: {DENIED}"), (("b",), f"b: {DENIED}")]


def test_an_answer_keeps_the_causes_of_its_gaps() -> None:
    reason = Why.about("a", DENIED)
    unread = Unread(what="x", reason=reason)
    assert unread.reason is reason
    assert unread.model_dump(mode="json")["reason"] == f"a: {DENIED}"
    assert Unread.model_validate_json(unread.model_dump_json()) == unread


def test_nothing_is_missing() -> None:
    assert said() == []
