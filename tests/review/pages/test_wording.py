"""How numbers, money, minutes and values are said."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hyperpod_cdk.review.model import Cause, Change, Minutes, Reason, ReasonKind
from hyperpod_cdk.review.pages.html import html
from hyperpod_cdk.review.pages.markdown import markdown
from hyperpod_cdk.review.pages.page import NOTHING_BESIDES, NOTHING_TO_LOOK_AT
from hyperpod_cdk.review.pages.text import text
from hyperpod_cdk.review.pages.wording import (
    at_most,
    counted,
    difference,
    minutes,
    money,
    number,
    place,
    shortened,
    shortened_pair,
    span,
    unit_price,
    visible,
)
from tests.review.sample import quiet_report
from tests.support.tables import row_by_row


@row_by_row(
    "value, said",
    [(0, "0"), (16, "16"), (1_234, "1,234"), (0.25, "0.25"), (0.5, "0.5"), (2.999, "3"), (-8, "-8"), (-0.001, "0")],
)
def test_a_number(value: float, said: str) -> None:
    assert number(value) == said


@row_by_row(
    "dollars, said",
    [
        (0, "$0"),
        (3.2, "$3.20"),
        (99.994, "$99.99"),
        (100, "$100"),
        (12_345.4, "$12,345"),
        (-655, "-$655"),
        (-0.001, "$0.00"),
        (-3.5, "-$3.50"),
    ],
)
def test_money(dollars: float, said: str) -> None:
    assert money(dollars) == said


def test_cents_where_they_are_asked_for() -> None:
    assert (money(12_345.678, cents=True), money(3.2, cents=False)) == ("$12,345.68", "$3")


@pytest.mark.parametrize(
    ("dollars", "said"),
    [(0.045, "$0.045"), (98.32, "$98.32"), (1, "$1.00"), (0.000533, "$0.000533"), (1_234.5, "$1,234.50")],
)
def test_a_price_per_unit(dollars: float, said: str) -> None:
    assert unit_price(dollars) == said


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [(1, 3, 2), (3, 1, -2), (1, 1, 0), (None, 1, None), (1, None, None), (None, None, None)],
)
def test_a_difference_is_known_where_both_sides_are(
    before: float | None, after: float | None, more: float | None
) -> None:
    assert difference(Change(before=before, after=after)) == more


@row_by_row(
    "value, said",
    [
        (0, "0 min"),
        (0.001, "1 s"),
        (0.5, "30 s"),
        (1, "1 min"),
        (59, "59 min"),
        (60, "1 h"),
        (61, "1 h 1 min"),
        (125.4, "2 h 5 min"),
    ],
)
def test_minutes(value: float, said: str) -> None:
    assert minutes(value) == said


def test_a_range_of_minutes_is_one_where_its_ends_read_the_same() -> None:
    assert span(Minutes(low=12, high=125)) == "12 min to 2 h 5 min"
    assert span(Minutes(low=12, high=12.2)) == "12 min"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(10, 40, "10 min to 40 min"), (10, 40.1, "up to 40 min"), (0, 5, "up to 5 min"), (12, 12.2, "12 min")],
)
def test_a_range_that_is_too_wide_says_its_upper_end(low: float, high: float, said: str) -> None:
    assert at_most(Minutes(low=low, high=high)) == said


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (Cause(file="environments/prod.yaml", line=31, path="a.b"), "environments/prod.yaml:31 a.b"),
        (Cause(file="environments/prod.yaml", path="a.b"), "environments/prod.yaml a.b"),
        (Cause(file="environments/prod.yaml", line=1, path=""), "environments/prod.yaml:1"),
    ],
)
def test_the_place_of_a_cause(cause: Cause, said: str) -> None:
    assert place(cause) == said


def test_one_and_many() -> None:
    assert [counted(each, "step") for each in (0, 1, 2, 1_000)] == ["0 steps", "1 step", "2 steps", "1,000 steps"]
    assert counted(2, "entry", "entries") == "2 entries"


@row_by_row(
    "text, shown",
    [
        ("plain", "plain"),
        ("a\r\nb\nc\rd\te", "a⏎b⏎c⏎d e"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202etxt", "\\u202etxt"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u2028", "\\u2028"),
        ("\u05e9\u05dc \u4e2d\u6587", "\u05e9\u05dc \u4e2d\u6587"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
    ],
)
def test_nothing_hides_in_a_text(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("length", [239, 240])
def test_a_text_that_fits_is_whole(length: int) -> None:
    assert shortened("x" * length, 240) == "x" * length


def test_a_text_that_does_not_fit_says_what_is_left_out() -> None:
    text = shortened("a" * 1_000 + "b" * 1_000, 40)
    assert text == f"{'a' * 13}…(1,974 more)…{'b' * 13}"
    assert len(text) == 40


def test_two_values_are_cut_where_they_differ() -> None:
    before, after = shortened_pair("s" * 500 + "old", "s" * 500 + "new", 100)
    assert (before, after) == (f"…{'s' * 25}old", f"…{'s' * 25}new")


def test_two_values_of_which_one_is_the_others_beginning() -> None:
    before, after = shortened_pair("s" * 500, "s" * 500 + "more", 100)
    assert (before, after) == (f"…{'s' * 25}", f"…{'s' * 25}more")


@given(st.text(), st.text(), st.integers(min_value=40, max_value=300))
def test_cut_values_fit_and_still_differ(before: str, after: str, most: int) -> None:
    prefix = "p" * 200
    cut = shortened_pair(prefix + before, prefix + after, most)
    assert all(len(each) <= most for each in cut)
    assert (cut[0] == cut[1]) == (before == after) or len(before) + len(after) > most // 4


def test_an_empty_list_says_whether_something_stands_above_it() -> None:
    quiet = quiet_report()
    asked = quiet.model_copy(
        update={
            "verdict": quiet.verdict.model_copy(
                update={"needs_approval": (Reason(kind=ReasonKind.ACCESS, resource="a", sentence="It opens."),)}
            )
        }
    )
    for report, said, other in (
        (quiet, NOTHING_TO_LOOK_AT, NOTHING_BESIDES),
        (asked, NOTHING_BESIDES, NOTHING_TO_LOOK_AT),
    ):
        stream = StringIO()
        text(report, Console(file=stream, width=200))
        for rendered in (markdown(report), stream.getvalue(), html(report)):
            assert said in rendered
            assert other not in rendered
