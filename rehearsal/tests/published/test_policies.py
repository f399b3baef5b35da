"""Policies read in two ways: restated here, and by the catalog. Any pattern, any text: both say the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import iam_matching as catalog
from hyperpod_cdk_rehearsal.embedded.published import policies
from rehearsal.tests.support.tables import row_by_row

# few letters, so that patterns and texts meet often
ROLE = "arn:aws:iam::111122223333:role/prod-hyperpod-ExecutionRole"
TEXTS = st.text(alphabet="ab:*?$[]", max_size=8)
PATTERNS = st.lists(st.sampled_from(["a", "b", ":", "*", "?", "${*}", "${?}", "${$}", "[a]"]), max_size=6).map("".join)


@given(PATTERNS, TEXTS)
def test_wildcards(pattern: str, text: str) -> None:
    assert policies.like(pattern, text) == catalog.matches(pattern, text)


@given(PATTERNS, TEXTS)
def test_actions(pattern: str, text: str) -> None:
    for action in (text, text.upper()):
        assert policies.is_action(pattern, action) == catalog.matches_action(pattern, action)
    assert policies.is_action("EC2:create*", "ec2:CreateVpc")


@pytest.mark.parametrize("element", [None, "a", ["a", "b"], [], ("a",), {"a": "b"}])
def test_one_value_or_several(element: object) -> None:
    assert policies.listed(element) == catalog.listed(element)


@row_by_row(
    "pattern, text, fits",
    [
        # IAM user guide, "IAM JSON policy elements: Resource" and "Action", 2026
        ("s3:*Object", "s3:PutObject", True),
        ("s3:*Object", "s3:PutObjectAcl", False),
        ("arn:aws:s3:::amzn-s3-demo-bucket/*", "arn:aws:s3:::amzn-s3-demo-bucket/a/b", True),
        ("arn:aws:s3:::amzn-s3-demo-bucket?", "arn:aws:s3:::amzn-s3-demo-bucket", False),
        ("a${*}", "a*", True),
        ("a${*}", "ab", False),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
    ],
)
def test_iams_own_examples(pattern: str, text: str, fits: bool) -> None:  # noqa: FBT001 - a table's column
    assert policies.like(pattern, text) is fits


@row_by_row(
    "pattern, arn, fits",
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
    assert policies.is_resource(pattern, arn) is fits


def test_not_action_and_not_resource_speak_of_all_others() -> None:
    statement = {"Effect": "Allow", "NotAction": ["iam:*", "s3:Put?"], "NotResource": "arn:aws:s3:::secret*"}
    assert [policies.speaks_of_action(statement, each) for each in ("ec2:CreateVpc", "IAM:GetRole", "s3:PutX")] == [
        True,
        False,
        False,
    ]
    assert [policies.speaks_of_resource(statement, f"arn:aws:s3:::{each}") for each in ("open", "secret-a")] == [
        True,
        False,
    ]


@row_by_row(
    "condition, holds",
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
    assert policies.conditions_met({"Condition": condition}, keys) is holds


def test_an_operator_that_is_not_judged_is_never_taken_for_met() -> None:
    statement = {
        "Effect": "Allow",
        "Action": "*",
        "Resource": "*",
        "Condition": {"IpAddress": {"aws:SourceIp": "::/0"}},
    }
    with pytest.raises(policies.UnknownOperatorError, match="IpAddress"):
        policies.conditions_met(statement, {"aws:sourceip": "10.0.0.1"})


def test_a_refusal_outweighs_a_permission() -> None:
    allow = {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}
    deny = {"Effect": "Deny", "NotAction": "ec2:Describe*", "Resource": "*"}
    for statements, action, said in (
        ([], "ec2:CreateVpc", "implicitDeny"),
        ([allow], "EC2:createvpc", "allowed"),
        ([allow, deny], "ec2:CreateVpc", "explicitDeny"),
        ([allow, deny], "ec2:DescribeVpcs", "allowed"),
    ):
        assert policies.evaluate(statements, action, "*") == said
