"""Suggestions of similar names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog.closest import _slips, closest
from tests.support.tables import row_by_row

REGIONS = ("us-east-1", "us-east-2", "us-west-1", "eu-west-1")


@row_by_row(
    "left, right, slips",
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("", "abc", 3),
        ("abc", "ab", 1),
        ("abc", "axc", 1),
        ("abcd", "abdc", 1),
        ("esat", "east", 1),
        ("ab", "ba", 1),
        ("esat", "west", 2),
    ],
)
def test_slips(left: str, right: str, slips: int) -> None:
    assert _slips(left, right) == slips


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("us-esat-1", "us-east-1"),
        (" US-EAST-2 ", "us-east-2"),
        ("useast1", "us-east-1"),
        ("us-east-3", "us-east-1"),
        ("east", None),
        ("", None),
        ("us-east-1" * 200_000, None),
    ],
)
def test_closest(name: str, meant: str | None) -> None:
    assert closest(name, REGIONS) == meant


@given(st.sampled_from(REGIONS))
def test_a_known_name_is_its_own_closest(name: str) -> None:
    assert closest(name, REGIONS) == name


@given(st.text(max_size=12), st.text(max_size=12))
def test_slips_are_a_distance(left: str, right: str) -> None:
    assert _slips(left, right) == _slips(right, left)
    assert (_slips(left, right) == 0) == (left == right)
    assert _slips(left, right) <= max(len(left), len(right))


@pytest.mark.parametrize(
    ("name", "known", "is_near"),
    [
        # of six characters two may be wrong, of eight two more or fewer
        ("abcdef", "abxyef", True),
        ("abcdef", "abxyzf", False),
        ("abcdef", "abcdefgh", True),
        ("abcdefgh", "abcdef", True),
        ("abcdef", "abcdefghi", True),
        ("abcd", "abcdefg", False),
        ("abcdefg", "abcd", False),
        ("ab", "ax", False),
        ("abc", "abx", True),
    ],
)
def test_a_third_of_the_longer_text_may_be_wrong(name: str, known: str, *, is_near: bool) -> None:
    assert closest(name, [known]) == (known if is_near else None)
    assert closest(name, ["0", known, "1"]) == (known if is_near else None)
