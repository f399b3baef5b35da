"""Sentences that end alike are one cause."""

from __future__ import annotations

from hyperpod_cdk._cli.causes import Gap, causes

DENIED = "no permission for ec2:DescribeVpcs"


def said(*gaps: Gap) -> list[tuple[tuple[str, ...], str]]:
    return [(cause.what, str(cause)) for cause in causes(gaps)]


def test_one_gap_keeps_its_sentence() -> None:
    assert said(Gap(what="a", reason="name: x: AWS throttled sts:A, 4 times; run it again later")) == [
        (("a",), "name: x: AWS throttled sts:A, 4 times; run it again later")
    ]


def test_sentences_are_cut_to_what_they_share() -> None:
    gaps = [Gap(what=each, reason=f'the quota "{each}" could not be read: {DENIED}', action="x:Y") for each in "ab"]
    assert said(*gaps) == [(("a", "b"), f"{DENIED}; allow x:Y")]


def test_the_longest_shared_end_is_kept() -> None:
    gaps = [Gap(what=each, reason=f"{each}: it is not known whose they are: {DENIED}") for each in "ab"]
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
    gaps = [Gap(what=each, reason=f"AWS throttled x:A, {each} times; run it again later") for each in "23"]
    assert said(*gaps) == [(("2", "3"), "AWS throttled x:A; run it again later")]


def test_what_is_hidden_twice_is_named_once() -> None:
    assert said(Gap(what="a", reason=f"x: {DENIED}"), Gap(what="a", reason=f"y: {DENIED}")) == [(("a",), DENIED)]


def test_nothing_is_missing() -> None:
    assert said() == []
