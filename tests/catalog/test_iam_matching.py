"""IAM's matching, by the rules and examples of the IAM user guide."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.catalog.iam_matching import (
    Answer,
    all_of,
    answers,
    is_positive,
    listed,
    matches,
    matches_action,
    names_account,
    names_action,
    names_service,
)
from tests.support.tables import row_by_row


@row_by_row(
    "pattern, text, fits",
    [
        ("*", "", True),
        ("prod-*", "prod-", True),
        ("prod-*", "prod", False),
        ("prod-*", "Prod-a", False),
        ("?", "", False),
        ("?", "a", True),
        ("?", "ab", False),
        # a shell would read a class of characters
        ("a[b]c", "abc", False),
        ("a[b]c", "a[b]c", True),
        ("a.c", "abc", False),
        ("a\nb", "a\nb", True),
        ("a*", "a\nb", True),
        # written so that the wildcard stands for itself
        ("a${*}", "ab", False),
        ("a${*}", "a*", True),
        ("a${?}c${$}", "a?c$", True),
    ],
)
def test_patterns_know_two_wildcards(pattern: str, text: str, *, fits: bool) -> None:
    assert matches(pattern, text) is fits


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("ec2:CreateVpc", True),
        ("EC2:createvpc", True),
        ("ec2:Create*", True),
        ("ec2:*", True),
        ("*", True),
        ("ec2:Create", False),
        ("s3:*", False),
    ],
)
def test_actions_know_no_case(pattern: str, *, fits: bool) -> None:
    assert matches_action(pattern, "ec2:CreateVpc") is fits


def test_not_action_speaks_of_all_others() -> None:
    statement = {"Effect": "Allow", "NotAction": ["iam:*", "s3:Put?"]}
    assert [names_action(statement, each) for each in ("ec2:CreateVpc", "IAM:GetRole", "s3:PutX")] == [
        True,
        False,
        False,
    ]


@row_by_row(
    "statement, names",
    [
        ({"Action": "ec2:CreateVpc"}, True),
        ({"Action": ["s3:*", "EC2:create*"]}, True),
        ({"Action": ["s3:*", "ec2:DeleteVpc"]}, False),
        ({"Action": []}, False),
        ({"Action": None}, False),
        ({}, False),
        ({"NotAction": "s3:*"}, True),
        ({"NotAction": "ec2:*"}, False),
        ({"NotAction": []}, True),
    ],
)
def test_a_statement_speaks_of_what_it_lists(statement: dict[str, Any], *, names: bool) -> None:
    assert names_action(statement, "ec2:CreateVpc") is names


@pytest.mark.parametrize(
    ("value", "items"),
    [
        (None, []),
        ([], []),
        ("", [""]),
        ("a", ["a"]),
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        ({"Ref": "A"}, [{"Ref": "A"}]),
    ],
)
def test_one_value_is_a_list_of_one(value: object, items: list[object]) -> None:
    assert listed(value) == items
    assert listed(value) is not value


@row_by_row(
    "principal, about",
    [
        ({"AWS": "111122223333"}, True),
        ({"AWS": "arn:aws:iam::111122223333:root"}, True),
        ({"AWS": ["arn:aws:iam::111122223333:role/one", "arn:aws-cn:iam::111122223333:root"]}, True),
        ({"AWS": "arn:aws:iam::111122223333:role/one"}, None),
        # another account's, whatever its roles are called
        ({"AWS": "arn:aws:iam::444455556666:role/for-111122223333"}, False),
        ({"AWS": "arn:aws:iam::444455556666:root"}, False),
        *(({"AWS": other}, False) for other in ("000011112222", "999911112222")),
        ({"AWS": ["arn:aws:iam::444455556666:root", "arn:aws:iam::111122223333:role/one"]}, None),
        # everyone is asked for elsewhere
        ("*", False),
        ({"Service": "cloudwatch.amazonaws.com"}, False),
        (None, False),
    ],
)
def test_whether_a_statement_is_about_an_account(principal: object, about: bool | None) -> None:  # noqa: FBT001 - a column of the table
    assert names_account({"Principal": principal}, "111122223333") is about


@row_by_row(
    "principal, about",
    [
        ({"Service": "events.amazonaws.com"}, True),
        ({"Service": ["s3.amazonaws.com", "events.amazonaws.com.cn"]}, True),
        ({"Service": "s3.amazonaws.com"}, False),
        ({"AWS": "events.amazonaws.com"}, False),
        ({"AWS": "111122223333"}, False),
        ({"AWS": ["111122223333", "*"]}, True),
        ("*", True),
        ("events.amazonaws.com", False),
        (None, False),
    ],
)
def test_whether_a_statement_is_about_a_service(principal: object, *, about: bool) -> None:
    assert names_service({"Principal": principal}, frozenset({"events.amazonaws.com"})) is about


BUCKET = "arn:aws:s3:::scripts"
ALLOW = {"Effect": "Allow", "Principal": "me", "Action": "s3:GetObject", "Resource": f"{BUCKET}*"}
PERHAPS = {**ALLOW, "Principal": "somebody"}
DENY = {**ALLOW, "Effect": "Deny"}


def conditioned(statement: dict[str, Any], *values: str) -> dict[str, Any]:
    return {**statement, "Condition": {"StringEquals": {f"aws:Key{value}": value for value in values}}}


@row_by_row(
    "statements, answer",
    [
        ([], "silent"),
        ([ALLOW], "lets"),
        (ALLOW, "lets"),
        ([{**ALLOW, "Principal": "another"}], "silent"),
        ([{**ALLOW, "Action": "s3:PutObject"}], "silent"),
        ([{**ALLOW, "Resource": "arn:aws:s3:::other"}], "silent"),
        ([{**ALLOW, "Resource": ["arn:aws:s3:::other", BUCKET]}], "lets"),
        # the trust policy of a role names no resource
        ([{key: value for key, value in ALLOW.items() if key != "Resource"}], "lets"),
        ([{**{key: value for key, value in ALLOW.items() if key != "Principal"}, "NotPrincipal": "me"}], "unknown"),
        ([PERHAPS], "unknown"),
        ([PERHAPS, ALLOW], "lets"),
        ([{**ALLOW, "NotResource": "arn:aws:s3:::other"}], "unknown"),
        ([ALLOW, DENY], "denies"),
        ([DENY], "denies"),
        ([PERHAPS, DENY], "denies"),
        ([ALLOW, {**PERHAPS, "Effect": "Deny"}], "unknown"),
        ([PERHAPS, {**PERHAPS, "Effect": "Deny"}], "unknown"),
        ([{**PERHAPS, "Effect": "Deny"}], "silent"),
        ([ALLOW, {**DENY, "Principal": "another"}], "lets"),
        ([conditioned(ALLOW, "true")], "lets"),
        ([conditioned(ALLOW, "false")], "silent"),
        ([conditioned(ALLOW, "unknown")], "unknown"),
        ([conditioned(ALLOW, "true", "unknown")], "unknown"),
        ([conditioned(ALLOW, "unknown", "false")], "silent"),
        ([conditioned(PERHAPS, "false")], "silent"),
        ([ALLOW, conditioned(DENY, "unknown")], "unknown"),
        ([ALLOW, conditioned(DENY, "false")], "lets"),
    ],
)
def test_what_a_policy_answers(statements: object, answer: Answer) -> None:
    """As in IAM's user guide, "Policy evaluation logic": a denial counts before what allows."""
    asked: list[tuple[str, str]] = []

    def holds(operator: str, key: str, values: list[str]) -> bool | None:
        asked.append((operator, key))
        return {"true": True, "false": False}.get(values[0])

    found = answers(
        {"Statement": statements},
        "s3:GetObject",
        BUCKET,
        names=lambda each: {"me": True, "another": False}.get(str(each["Principal"])),
        holds=holds,
    )
    assert found == answer
    assert set(asked) <= {("StringEquals", f"aws:key{each}") for each in ("true", "false", "unknown")}


def test_no_policy_is_silent() -> None:
    assert answers(None, "s3:GetObject", BUCKET, names=lambda _: True, holds=lambda *_: True) == "silent"


@row_by_row(
    "found, answer",
    [
        (["lets", "lets"], "lets"),
        (["lets", "unknown"], "unknown"),
        (["unknown", "silent"], "silent"),
        (["silent", "denies", "lets"], "denies"),
    ],
)
def test_several_actions_are_as_good_as_the_worst(found: list[Answer], answer: Answer) -> None:
    assert all_of(found) == answer


@row_by_row(
    "operator, strict, lenient",
    [
        ("StringEquals", True, True),
        ("ArnLike", True, True),
        ("StringEqualsIfExists", False, True),
        ("StringNotEquals", False, False),
        ("StringNotEqualsIfExists", False, False),
        ("Null", False, False),
    ],
)
def test_operators_that_require_a_value(operator: str, *, strict: bool, lenient: bool) -> None:
    assert (is_positive(operator, may_lack=False), is_positive(operator, may_lack=True)) == (strict, lenient)
