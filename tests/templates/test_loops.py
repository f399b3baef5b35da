"""``Fn::ForEach`` as the template reference of CloudFormation shows it, and what stays unknown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.templates.assembly import AssemblyError, parse_template, with_loops
from hyperpod_cdk.templates.loops import UNREAD_LOOP, TooManyError, expanded
from tests.support.tables import row_by_row


def of(**sections: Any) -> dict[str, Any]:
    return expanded(sections, most=1000)


TOPIC = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Fn::Join": [".", [{"Ref": "Name"}, "fifo"]]}}}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        # the reference's first example
        (
            {"Fn::ForEach::Topics": ["Name", ["Success", "Failure"], {"Topic${Name}": TOPIC}]},
            {
                f"Topic{name}": {**TOPIC, "Properties": {"TopicName": {"Fn::Join": [".", [name, "fifo"]]}}}
                for name in ("Success", "Failure")
            },
        ),
        # what is no letter or digit cannot stand in a logical id
        (
            {"Fn::ForEach::B": ["Ip", ["10.0.2.1"], {"Host&{Ip}": {"Type": "A::B::C", "Properties": {"Ip": "${Ip}"}}}]},
            {"Host10021": {"Type": "A::B::C", "Properties": {"Ip": "10.0.2.1"}}},
        ),
        # one loop in another, and loops of properties
        (
            {
                "Fn::ForEach::A": [
                    "X",
                    ["1", "2"],
                    {"Fn::ForEach::B": ["Y", ["a", {"Ref": "X"}], {"R${X}${Y}": {"Type": "T"}}]},
                ]
            },
            {f"R{name}": {"Type": "T"} for name in ("1a", "11", "2a", "22")},
        ),
        (
            {"R": {"Type": "T", "Properties": {"Fn::ForEach::P": ["X", ["A", "B"], {"${X}": {"Fn::Sub": "is ${X}"}}]}}},
            {"R": {"Type": "T", "Properties": {"A": {"Fn::Sub": "is A"}, "B": {"Fn::Sub": "is B"}}}},
        ),
        ({"Fn::ForEach::A": ["X", [], {"R${X}": {"Type": "T"}}], "S": {"Type": "T"}}, {"S": {"Type": "T"}}),
        ({"R": {"Type": "T", "Properties": {"A": "${X}"}}}, {"R": {"Type": "T", "Properties": {"A": "${X}"}}}),
        # what is no reference to an identifier stands as it is
        (
            {
                "Fn::ForEach::A": [
                    "X",
                    ["1"],
                    {"R${X}": {"A": {"Ref": ["X"]}, "B": {"Ref": "Y"}, "C": {"Ref": "X", "D": 1}}},
                ]
            },
            {"R1": {"A": {"Ref": ["X"]}, "B": {"Ref": "Y"}, "C": {"Ref": "X", "D": 1}}},
        ),
    ],
)
def test_what_a_loop_makes(resources: dict[str, Any], expected: dict[str, Any]) -> None:
    assert of(Resources=resources)["Resources"] == expected


@row_by_row(
    "loop",
    [
        ["X", {"Ref": "Names"}, {"R${X}": {"Type": "T"}}],
        ["X", ["a", {"Ref": "Name"}], {"R${X}": {"Type": "T"}}],
        ["X", ["a", {"Ref": ["Name"]}], {"R${X}": {"Type": "T"}}],
        ["X", ["a", {"Fn::Sub": "b"}], {"R${X}": {"Type": "T"}}],
        ["X", ["a", ["Ref"]], {"R${X}": {"Type": "T"}}],
        [["X"], ["a"], {"R${X}": {"Type": "T"}}],
        ["X", ["a"], "R${X}"],
        ["X", ["a"], {"R${X}": {"Type": "T"}}, "more"],
        ["X", ["a"]],
        "nonsense",
    ],
)
def test_a_list_that_only_the_deployment_shows_is_named_unknown(loop: Any) -> None:
    found = of(Resources={"Fn::ForEach::A": loop, "S": {"Type": "T"}})["Resources"]
    assert found == {"Fn::ForEach::A": {"Type": UNREAD_LOOP, "Properties": {"Loop": loop}}, "S": {"Type": "T"}}
    # somebody else's, of whom a review asks
    assert updates.is_foreign(UNREAD_LOOP)


def test_the_conditions_in_a_loop_whose_list_is_unknown_are_values() -> None:
    statement = {"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    topic = {"Type": "T", "Condition": "Is${X}", "Properties": {"Statement": [statement]}}
    loop = ["X", {"Ref": "P"}, {"R${X}": topic, "S${X}": {"Type": "T", "Condition": "C"}}]
    conditions = {name: {"Fn::If": [name, True, False]} for name in ("C", "Is${X}")}
    assert of(Resources={"Fn::ForEach::A": loop})["Resources"] == {
        "Fn::ForEach::A": {"Type": UNREAD_LOOP, "Properties": {"Loop": loop, "Conditions": conditions}}
    }


def test_loops_make_as_many_values_as_they_may() -> None:
    # each member of an object is one: the sections, the loop, and two in each of its turns
    template = {"Resources": {"Fn::ForEach::A": ["X", ["1", "2"], {"R${X}": {"Type": "T"}}]}}
    assert list(expanded(template, most=6)["Resources"]) == ["R1", "R2"]
    with pytest.raises(TooManyError, match=r"^its loops create more than 5 values$"):
        expanded(template, most=5)


def test_members_that_are_no_text_stay_as_they_are() -> None:
    loop = {"Fn::ForEach::A": ["X", ["1"], {"R${X}": {"Type": "T", 2: "${X}", "${X}": 3}}]}
    assert of(Resources=loop)["Resources"] == {"R1": {"Type": "T", 2: "1", "1": 3}}
    assert of(Resources={"R": {"Type": "T", 2: "a"}})["Resources"] == {"R": {"Type": "T", 2: "a"}}


def test_loops_of_conditions_and_outputs() -> None:
    found = of(
        Conditions={"Fn::ForEach::C": ["X", ["A"], {"Is${X}": {"Fn::Equals": [{"Ref": "X"}, "A"]}}]},
        Outputs={"Fn::ForEach::O": ["X", ["A"], {"O${X}": {"Value": {"Fn::GetAtt": ["R${X}", "Arn"]}}}]},
    )
    assert found == {
        "Conditions": {"IsA": {"Fn::Equals": ["A", "A"]}},
        "Outputs": {"OA": {"Value": {"Fn::GetAtt": ["RA", "Arn"]}}},
    }


def test_loops_that_make_more_than_a_template_holds() -> None:
    body: dict[str, Any] = {"R${A}${B}${C}": {"Type": "T"}}
    for name in "ABC":
        body = {f"Fn::ForEach::{name}": [name, [str(at) for at in range(10)], body]}
    with pytest.raises(TooManyError, match="its loops create more than 1,000 values"):
        of(Resources=body)
    with pytest.raises(AssemblyError, match=r"^x: has 1000 resources; CloudFormation accepts at most 500$"):
        parse_template(json.dumps({"Resources": body}), "x")


def test_what_no_template_is_in_its_loops_is_one_line() -> None:
    body = {f"P{at}": 0 for at in range(1000)}
    with pytest.raises(AssemblyError) as refused:
        with_loops({"Fn::ForEach::A": ["X", [str(at) for at in range(1000)], {"R": body}]}, "x")
    assert str(refused.value) == (
        "x: its loops create more than 1,000,000 values; CloudFormation accepts no template with so many"
    )
    deep: Any = "a"
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    with pytest.raises(AssemblyError) as refused:
        with_loops({"Fn::ForEach::A": ["X", ["a"], {"R": deep}]}, "x")
    assert str(refused.value) == "x: nested too deeply for a template"


def test_a_template_file_with_loops_is_read(tmp_path: Path) -> None:
    loop = "Resources: {'Fn::ForEach::A': [X, [a, b], {'B${X}': {Type: 'AWS::S3::Bucket'}}]}"
    found = parse_template(f"Transform: AWS::LanguageExtensions\n{loop}\n", str(tmp_path))
    assert list(found["Resources"]) == ["Ba", "Bb"]
