"""Conditions compared as sets of requests: tables at and beside each bound, and what holds of any two patterns.

The expectations are those of the IAM user guide, "Condition operators" and "Multiple context keys or values".
"""

from __future__ import annotations

import fnmatch
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.review.rights.conditions import Limit, Wider, changes_something, limits, overlap, wider
from tests.support.tables import row_by_row

KEY = "aws:SourceIp"


def of(operator: str, *values: Any, key: str = KEY) -> str:
    return json.dumps({operator: {key: list(values)}})


LESS: list[tuple[str, str, str]] = [
    # nothing there, nothing left, another key
    ("dropped", of("StringEquals", "a"), ""),
    ("dropped", of("StringEquals", "a"), of("StringEquals", "a", key="aws:PrincipalOrgID")),
    ("", "", of("StringEquals", "a")),
    ("", of("StringEquals", "a"), of("StringEquals", "a", key=KEY.lower())),
    # sets of values
    ("", of("StringEquals", "a", "b"), of("StringEquals", "a")),
    ("wider", of("StringEquals", "a"), of("StringEquals", "a", "b")),
    ("wider", of("StringEquals", "a"), of("StringEquals", "b")),
    # patterns
    ("", of("StringLike", "a*"), of("StringLike", "ab*")),
    ("wider", of("StringLike", "ab*"), of("StringLike", "a*")),
    ("", of("StringLike", "a?"), of("StringEquals", "ab")),
    ("wider", of("StringLike", "a?"), of("StringLike", "a*")),
    ("wider", of("StringLike", "?"), of("StringLike", "*")),
    ("", of("StringLike", "*"), of("StringLike", "?")),
    ("wider", of("StringEquals", "a"), of("StringLike", "a*")),
    ("wider", of("StringEquals", "a*"), of("StringEquals", "ab")),
    ("", of("StringLike", "a*"), of("StringEquals", "a*")),
    ("", of("ArnEquals", "arn:aws:s3:::b*"), of("ArnLike", "arn:aws:s3:::bb")),
    # case of letters
    ("wider", of("StringEquals", "a"), of("StringEqualsIgnoreCase", "a")),
    ("", of("StringEqualsIgnoreCase", "A"), of("StringEquals", "a")),
    ("wider", of("StringEquals", "a"), of("StringEquals", "A")),
    # what is shut out
    ("", of("StringNotEquals", "a"), of("StringNotEquals", "a", "b")),
    ("wider", of("StringNotEquals", "a", "b"), of("StringNotEquals", "a")),
    ("", of("StringNotLike", "ab"), of("StringNotLike", "a*")),
    ("wider", of("StringNotLike", "a*"), of("StringNotLike", "ab")),
    ("wider", of("StringNotEqualsIgnoreCase", "a"), of("StringNotEquals", "a")),
    ("", of("StringNotEquals", "a"), of("StringNotEqualsIgnoreCase", "A")),
    ("wider", of("StringEquals", "a"), of("StringNotEquals", "a")),
    # addresses
    ("", of("IpAddress", "10.0.0.0/24"), of("IpAddress", "10.0.0.0/24")),
    ("", of("IpAddress", "10.0.0.0/24"), of("IpAddress", "10.0.0.0/25")),
    ("wider", of("IpAddress", "10.0.0.0/24"), of("IpAddress", "10.0.0.0/23")),
    ("wider", of("IpAddress", "10.0.0.0/24"), of("IpAddress", "10.0.1.0/24")),
    ("wider", of("IpAddress", "10.0.0.0/24"), of("IpAddress", "::/0")),
    ("", of("IpAddress", "2001:db8::/32"), of("IpAddress", "2001:db8:1::/48")),
    ("", of("NotIpAddress", "10.0.0.0/24"), of("NotIpAddress", "10.0.0.0/23")),
    ("wider", of("NotIpAddress", "10.0.0.0/24"), of("NotIpAddress", "10.0.0.0/25")),
    ("", of("IpAddress", "${x}"), of("IpAddress", "${x}")),
    ("wider", of("IpAddress", "${x}"), of("IpAddress", "${y}")),
    # numbers and days
    ("", of("NumericLessThanEquals", "10"), of("NumericLessThanEquals", "10")),
    ("", of("NumericLessThanEquals", "10"), of("NumericLessThanEquals", "9")),
    ("wider", of("NumericLessThanEquals", "10"), of("NumericLessThanEquals", "11")),
    ("wider", of("NumericLessThan", "10"), of("NumericLessThanEquals", "10")),
    ("wider", of("NumericGreaterThan", "10"), of("NumericGreaterThan", "9")),
    ("", of("NumericGreaterThan", "10"), of("NumericGreaterThan", "11")),
    ("wider", of("NumericLessThan", "-1"), of("NumericLessThan", "0")),
    ("", of("DateLessThan", "2026-11-22T00:00:00Z"), of("DateLessThan", "2026-11-21T00:00:00Z")),
    ("wider", of("DateLessThan", "2026-11-22T00:00:00Z"), of("DateLessThan", "2026-11-23T00:00:00Z")),
    # flags
    ("", of("Bool", "true"), of("Bool", "true")),
    ("wider", of("Bool", "true"), of("Bool", "false")),
    ("wider", of("Null", "false"), of("Null", "true")),
    # what lets through requests without the key
    ("wider", of("StringEquals", "a"), of("StringEqualsIfExists", "a")),
    ("", of("StringEqualsIfExists", "a"), of("StringEquals", "a")),
    ("", of("StringEqualsIfExists", "a"), of("StringEqualsIfExists", "a")),
    ("wider", of("ForAnyValue:StringEquals", "a"), of("ForAllValues:StringEquals", "a")),
    ("wider", of("StringEquals", "a"), of("ForAllValues:StringEquals", "a")),
    ("", of("ForAnyValue:StringEquals", "a"), of("ForAnyValue:StringEquals", "a")),
    # what cannot be compared
    ("wider", of("BinaryEquals", "a"), of("StringEquals", "a")),
    ("", of("BinaryEquals", "a", "b"), of("BinaryEquals", "a")),
]


@row_by_row("how, until_now, condition", LESS)
def test_which_keys_limit_less(how: str, until_now: str, condition: str) -> None:
    assert [each.how for each in wider(until_now, condition)] == ([how] if how else [])


def test_every_key_is_reported_once_and_sorted() -> None:
    until_now = json.dumps({"StringEquals": {"b": ["1"], "a": ["1"]}, "StringLike": {"B": ["x*"]}})
    assert wider(until_now, of("StringEquals", "2", key="a")) == [Wider("a", "wider"), Wider("b", "dropped")]


def test_a_condition_is_read_as_it_is_written() -> None:
    stated = {"ForAnyValue:StringLikeIfExists": {"k": "v"}, "Bool": {"aws:SecureTransport": [True]}}
    assert list(limits(json.dumps(stated))) == [
        Limit("ForAnyValue", "StringLike", is_if_exists=True, key="k", values=("v",)),
        Limit("", "Bool", is_if_exists=False, key="aws:SecureTransport", values=("True",)),
    ]
    assert list(limits("")) == []


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["s3:getobject"], False),
        (["s3:getobject", "s3:putobject"], True),
        (["s3:*"], True),
        (["ec2:describeinstances"], False),
        (["dynamodb:batchgetitem"], False),
        (["dynamodb:batchwriteitem"], True),
        ([], False),
    ],
)
def test_what_does_more_than_look(actions: list[str], *, expected: bool) -> None:
    assert changes_something(actions) is expected


@row_by_row(
    "one, other, expected",
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a*", "*b", True),
        ("a*b", "a*c", False),
        ("?", "ab", False),
        ("??", "ab", True),
        ("*", "", True),
        ("a*", "b*", False),
        ("s3:Get*", "s3:*Object", True),
        ("", "", True),
    ],
)
def test_which_patterns_have_a_text_in_common(one: str, other: str, *, expected: bool) -> None:
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


PATTERNS = st.text("ab*?", max_size=5)
TEXTS = st.text("ab", max_size=6)


def means(pattern: str, text: str) -> bool:
    return re.fullmatch(fnmatch.translate(pattern), text) is not None


@given(PATTERNS, PATTERNS, TEXTS)
def test_a_narrower_pattern_lets_through_nothing_more(one: str, other: str, text: str) -> None:
    is_no_wider = wider(of("StringLike", one), of("StringLike", other)) == []
    if is_no_wider and means(other, text):
        assert means(one, text)
    if means(one, text) and means(other, text):
        assert overlap(one, other)
