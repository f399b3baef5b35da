"""Intrinsic functions."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk_rehearsal.embedded.cloudformation.resolver import (
    KNOWN_AFTER_APPLY,
    NO_VALUE,
    Resolver,
    Scope,
)
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from rehearsal.tests.support.tables import row_by_row

DOCUMENT = {
    "Mappings": {"Map": {"us-west-2": {"Ami": "ami-1", "Zones": ["a", "b"]}}},
    "Conditions": {
        "Yes": {"Fn::Equals": [{"Ref": "Text"}, "hello"]},
        "No": {"Fn::Not": [{"Condition": "Yes"}]},
        "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]},
        "Either": {"Fn::Or": [{"Condition": "No"}, {"Condition": "Yes"}]},
        "Loop": {"Fn::Not": [{"Condition": "Loop"}]},
    },
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
}
EXPORTS = {"shared-vpc": "vpc-1"}


def resolver() -> Resolver:
    return Resolver(
        Scope(
            template=Template.parse(json.dumps(DOCUMENT)),
            parameters={"Text": "hello", "List": ["x", "y"], "Unknown": KNOWN_AFTER_APPLY},
            pseudo={"AWS::Region": "us-west-2", "AWS::AccountId": "111122223333"},
            ref=lambda name: f"{name}-id",
            attribute=lambda name, attribute: ["s1", "s2"] if attribute == "Subnets" else f"{name}.{attribute}!",
            import_value=EXPORTS.__getitem__,
            availability_zones=lambda region: [f"{region}a", f"{region}b"],
        )
    )


@row_by_row(
    "value, expected",
    [
        ("plain", "plain"),
        ({"Ref": "Text"}, "hello"),
        ({"Ref": "List"}, ["x", "y"]),
        ({"Ref": "AWS::Region"}, "us-west-2"),
        ({"Ref": "Topic"}, "Topic-id"),
        ({"Ref": "AWS::NoValue"}, NO_VALUE),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [1, {"Ref": "AWS::NoValue"}]}, {"b": [1]}),
        ({"Fn::GetAtt": ["Topic", "TopicArn"]}, "Topic.TopicArn!"),
        ({"Fn::GetAtt": "Topic.A.B"}, "Topic.A.B!"),
        ({"Fn::GetAtt": ["Topic", {"Ref": "Text"}]}, "Topic.hello!"),
        (
            {"Fn::Sub": "${Text}-${AWS::AccountId}-${Topic}-${Topic.Arn}-${!Literal}"},
            "hello-111122223333-Topic-id-Topic.Arn!-${Literal}",
        ),
        ({"Fn::Sub": ["${A}${B}", {"A": {"Ref": "Text"}, "B": 1}]}, "hello1"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Text"}, 1, True]]}, "a-hello-1-true"),
        ({"Fn::Join": [",", {"Ref": "List"}]}, "x,y"),
        ({"Fn::Select": ["1", {"Ref": "List"}]}, "y"),
        ({"Fn::Select": [0, {"Fn::Split": ["l", {"Ref": "Text"}]}]}, "he"),
        ({"Fn::Select": [1, {"Fn::GetAtt": ["Topic", "Subnets"]}]}, "s2"),
        ({"Fn::If": ["Yes", "a", "b"]}, "a"),
        ({"Fn::If": ["No", "a", {"Ref": "AWS::NoValue"}]}, NO_VALUE),
        ({"Fn::If": ["Both", "a", "b"]}, "b"),
        ({"Fn::If": ["Either", "a", "b"]}, "a"),
        ({"Fn::Equals": [True, "true"]}, True),
        ({"Fn::Equals": [1, "1"]}, True),
        ({"Fn::FindInMap": ["Map", {"Ref": "AWS::Region"}, "Ami"]}, "ami-1"),
        ({"Fn::FindInMap": ["Map", "us-east-1", "Ami", {"DefaultValue": "none"}]}, "none"),
        ({"Fn::ImportValue": {"Fn::Sub": "shared-vpc"}}, "vpc-1"),
        ({"Fn::Base64": "hi"}, "aGk="),
        ({"Fn::Cidr": ["10.0.0.0/24", 2, 5]}, ["10.0.0.0/27", "10.0.0.32/27"]),
        ({"Fn::Select": [1, {"Fn::GetAZs": ""}]}, "us-west-2b"),
        ({"Fn::GetAZs": "us-east-1"}, ["us-east-1a", "us-east-1b"]),
        ({"Fn::Length": {"Ref": "List"}}, 2),
        ({"Fn::ToJsonString": {"a": {"Ref": "Text"}}}, '{"a":"hello"}'),
        # an IAM statement's Condition is no function
        ({"Condition": {"StringEquals": {"a": {"Ref": "Text"}}}}, {"Condition": {"StringEquals": {"a": "hello"}}}),
        ({"Ref": "Text", "Other": 1}, {"Ref": "Text", "Other": 1}),
    ],
)
def test_resolves(value: Any, expected: Any) -> None:
    assert resolver().resolve(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Select": [3, {"Fn::Split": [",", {"Ref": "Unknown"}]}]},
        {"Fn::Select": [3, {"Fn::Split": [":", {"Ref": "Unknown"}]}]},
        {"Fn::Select": [3, {"Ref": "Unknown"}]},
        {"Fn::FindInMap": ["Map", {"Ref": "Unknown"}, "Ami"]},
        {"Fn::Base64": {"Ref": "Unknown"}},
        {"Fn::Select": [1, {"Fn::Cidr": [{"Ref": "Unknown"}, 4]}]},
        {"Fn::Join": ["", {"Ref": "Unknown"}]},
    ],
)
def test_what_is_not_known_yet_stays_so(value: Any) -> None:
    assert resolver().resolve(value) == KNOWN_AFTER_APPLY


@row_by_row(
    "value, message",
    [
        ({"Fn::Select": [2, {"Ref": "List"}]}, "Template error: Fn::Select cannot select nonexistent value at index 2"),
        ({"Fn::FindInMap": ["Map", "x", "Ami"]}, "Template error: Unable to get mapping for Map::x::Ami"),
        ({"Fn::Join": ["-", "text"]}, "Template error: Fn::Join requires a list, got 'text'"),
        ({"Fn::Join": ["-", [["nested"]]]}, 'Template error: a text was expected, got ["nested"]'),
        ({"Fn::If": ["Yes", 1]}, "Template error: Fn::If requires a list argument with three parameters"),
        ({"Fn::If": ["Nope", 1, 2]}, "Template error: unresolved condition Nope"),
        ({"Fn::If": ["Loop", 1, 2]}, "Circular dependency between conditions: [Loop]"),
        ({"Fn::Cidr": ["10.0.0.0/24", 9, 5]}, "Template error: Fn::Cidr cannot make 9 blocks of /27 from 10.0.0.0/24"),
    ],
)
def test_refused(value: Any, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        resolver().resolve(value)
    assert caught.value.message == message


def test_unknown_function_is_named() -> None:
    with pytest.raises(TemplateError, match=r"^Template error: Encountered unsupported function: Fn::Nope Supported"):
        resolver().resolve({"Fn::Nope": []})


@given(st.lists(st.text(alphabet="abc.-", max_size=5), min_size=1))
def test_split_undoes_join(parts: list[str]) -> None:
    assert resolver().resolve({"Fn::Split": ["|", {"Fn::Join": ["|", parts]}]}) == parts


@given(prefix=st.integers(8, 20), bits=st.integers(4, 8), count=st.integers(1, 16))
def test_cidr_blocks_are_disjoint_and_inside(prefix: int, bits: int, count: int) -> None:
    network = ipaddress.ip_network(f"10.0.0.0/{prefix}")
    blocks = [ipaddress.ip_network(b) for b in resolver().resolve({"Fn::Cidr": [str(network), count, bits]})]
    assert len(set(blocks)) == count
    assert all(block.prefixlen == 32 - bits and block.subnet_of(network) for block in blocks)  # type: ignore[arg-type]
