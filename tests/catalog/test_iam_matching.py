"""IAM's matching, by the rules and examples of the IAM user guide."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.catalog.iam_matching import (
    UnsupportedOperatorError,
    conditions_hold,
    decide,
    matches,
    matches_action,
    matches_arn,
    names_action,
    names_resource,
)

ROLE = "arn:aws:iam::111122223333:role/prod-hyperpod-ExecutionRole"


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
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


@pytest.mark.parametrize(
    ("pattern", "arn", "fits"),
    [
        ("*", ROLE, True),
        ("*", "*", True),
        (ROLE, "*", False),
        ("arn:aws:iam::111122223333:role/prod-*", ROLE, True),
        ("arn:*:iam::*:role/prod-*", ROLE, True),
        ("arn:aws:iam::111122223333:role/staging-*", ROLE, False),
        ("arn:aws:iam::444455556666:role/*", ROLE, False),
        # a wildcard ends at the colon ...
        ("arn:aws:*:role/prod-*", ROLE, False),
        ("arn:aws:iam:*", ROLE, False),
        # ... but in the last part
        ("arn:aws:logs:*:*:log-group:*", "arn:aws:logs:us-east-1:1:log-group:/a:*", True),
        ("arn:aws:s3:::bucket/*", "arn:aws:s3:::bucket", False),
    ],
)
def test_arns_are_matched_part_by_part(pattern: str, arn: str, *, fits: bool) -> None:
    assert matches_arn(pattern, arn) is fits


def test_not_action_and_not_resource_speak_of_all_others() -> None:
    statement = {"Effect": "Allow", "NotAction": ["iam:*", "s3:Put?"], "NotResource": "arn:aws:s3:::secret*"}
    assert [names_action(statement, each) for each in ("ec2:CreateVpc", "IAM:GetRole", "s3:PutX")] == [
        True,
        False,
        False,
    ]
    assert [names_resource(statement, f"arn:aws:s3:::{each}") for each in ("open", "secret-a")] == [True, False]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"StringEquals": {"aws:RequestedRegion": "us-east-1"}}, True),
        ({"StringEquals": {"AWS:requestedregion": ["eu-west-1", "us-east-1"]}}, True),
        ({"StringEquals": {"aws:RequestedRegion": "us-*"}}, False),
        ({"StringLike": {"aws:RequestedRegion": "us-*"}}, True),
        ({"StringEqualsIgnoreCase": {"aws:RequestedRegion": "US-EAST-1"}}, True),
        ({"StringNotEquals": {"aws:RequestedRegion": ["us-east-1", "eu-west-1"]}}, False),
        ({"StringNotLike": {"aws:RequestedRegion": "eu-*"}}, True),
        ({"ArnLike": {"iam:PolicyARN": "arn:aws:iam::*:policy/prod-*"}}, True),
        ({"ArnNotEquals": {"iam:PolicyARN": "arn:aws:iam::*:policy/prod-*"}}, False),
        ({"Bool": {"kms:GrantIsForAWSResource": True}}, True),
        ({"Bool": {"kms:GrantIsForAWSResource": "false"}}, False),
        # two operators, two keys: all must hold
        ({"Bool": {"kms:GrantIsForAWSResource": "true"}, "StringLike": {"aws:RequestedRegion": "eu-*"}}, False),
        # a key that the request does not have
        ({"StringEquals": {"aws:PrincipalTag/team": "ml"}}, False),
        ({"StringEqualsIfExists": {"aws:PrincipalTag/team": "ml"}}, True),
        ({"StringEqualsIfExists": {"aws:RequestedRegion": "eu-west-1"}}, False),
        ({"StringNotEquals": {"aws:PrincipalTag/team": "ml"}}, True),
        ({"Null": {"aws:PrincipalTag/team": "true"}}, True),
        ({"Null": {"aws:RequestedRegion": True}}, False),
        ({"Null": {"aws:RequestedRegion": "false"}}, True),
        ({"ForAllValues:StringEquals": {"aws:PrincipalTag/team": "ml"}}, True),
        ({"ForAnyValue:StringEquals": {"aws:PrincipalTag/team": "ml"}}, False),
        # a key of several values
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b", "c"]}}, True),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a"]}}, False),
        ({"ForAnyValue:StringEquals": {"aws:TagKeys": ["b", "c"]}}, True),
        ({"ForAnyValue:StringEquals": {"aws:TagKeys": ["c"]}}, False),
        (None, True),
    ],
)
def test_conditions(condition: dict[str, Any] | None, *, holds: bool) -> None:
    keys: dict[str, str | tuple[str, ...]] = {
        "aws:requestedregion": "us-east-1",
        "iam:policyarn": "arn:aws:iam::111122223333:policy/prod-foundation-Policy",
        "kms:grantisforawsresource": "true",
        "aws:tagkeys": ("a", "b"),
    }
    assert conditions_hold({"Condition": condition}, keys) is holds


def test_an_operator_that_is_not_judged_is_never_taken_for_met() -> None:
    statement = {
        "Effect": "Allow",
        "Action": "*",
        "Resource": "*",
        "Condition": {"IpAddress": {"aws:SourceIp": "::/0"}},
    }
    with pytest.raises(UnsupportedOperatorError, match="IpAddress"):
        decide([statement], "ec2:CreateVpc", "*", {"aws:sourceip": "10.0.0.1"})


def test_a_refusal_outweighs_every_permission() -> None:
    allow = {"Effect": "Allow", "Action": "iam:*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": "iam:PassRole", "Resource": ROLE}
    other = f"{ROLE}2"
    assert decide([], "iam:PassRole", ROLE) == "implicitDeny"
    assert decide([allow], "iam:PassRole", ROLE) == "allowed"
    assert decide([allow, deny], "iam:PassRole", ROLE) == "explicitDeny"
    assert decide([allow, deny], "iam:PassRole", other) == "allowed"
    assert decide([deny], "iam:PassRole", other) == "implicitDeny"
