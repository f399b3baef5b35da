"""IAM's matching, by the rules and examples of the IAM user guide."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.catalog.iam_matching import (
    listed,
    matches,
    matches_action,
    names_account,
    names_action,
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
        ({"Service": "cloudwatch.amazonaws.com"}, False),
        (None, False),
    ],
)
def test_whether_a_statement_is_about_an_account(principal: object, about: bool | None) -> None:  # noqa: FBT001 - a column of the table
    assert names_account({"Principal": principal}, "111122223333") is about
