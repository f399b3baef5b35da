"""References are followed through an environment's stacks as far as the templates tell, and no further."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.values import (
    Reference,
    Unknown,
    choices,
    holds,
    imports,
    imports_unknown,
    is_function,
    is_known,
    meaning,
    plain,
    references,
    resolve,
    resolved_properties,
    target,
)
from tests.support.tables import row_by_row

DEEPEST = 101
"""Lists of which each but the first stands in another one, that are resolved: a template goes no deeper."""
NETWORK = Stack(
    name="dev-network",
    region="us-west-2",
    account="111122223333",
    template={
        "Parameters": {
            "Stage": {"Type": "String", "Default": "dev"},
            "Zones": {"Type": "CommaDelimitedList", "Default": "a, b"},
            "Ports": {"Type": "List<Number>", "Default": 8080},
            "StoredList": {"Type": "AWS::SSM::Parameter::Value<List<String>>", "Default": "/a/b"},
            "Asked": {"Type": "String"},
            "Stored": {"Type": "AWS::SSM::Parameter::Value<String>"},
            "Number": {"Type": "Number", "Default": 4},
        },
        "Conditions": {
            "IsDev": {"Fn::Equals": [{"Ref": "Stage"}, "dev"]},
            "IsProd": {"Fn::Not": [{"Condition": "IsDev"}]},
            "IsAsked": {"Fn::Equals": [{"Ref": "Asked"}, "x"]},
            "Both": {"Fn::And": [{"Condition": "IsDev"}, {"Condition": "IsAsked"}]},
            "Never": {"Fn::And": [{"Condition": "IsProd"}, {"Condition": "IsAsked"}]},
            "Either": {"Fn::Or": [{"Condition": "IsAsked"}, {"Condition": "IsDev"}]},
            "Unsure": {"Fn::Or": [{"Condition": "IsProd"}, {"Condition": "IsAsked"}]},
            "AlwaysTwice": {"Fn::And": [{"Condition": "IsDev"}, {"Condition": "IsDev"}]},
            "NeverTwice": {"Fn::Or": [{"Condition": "IsProd"}, {"Condition": "IsProd"}]},
            "IsNotAsked": {"Fn::Not": [{"Condition": "IsAsked"}]},
            "OfNone": {"Fn::And": []},
            "Compared": {"Fn::Equals": []},
            "ComparedAlone": {"Fn::Equals": ["dev"]},
            "ComparedByThree": {"Fn::Equals": ["dev", "dev", "dev"]},
            "NotTwo": {"Fn::Not": [{"Condition": "IsDev"}, {"Condition": "IsDev"}]},
            "NotNone": {"Fn::Not": []},
            "NoFunction": {"Fn::Xor": [{"Condition": "IsDev"}, {"Condition": "IsProd"}]},
            "Text": {"Fn::Equals": "dev"},
            "Empty": {},
            "TwoKeys": {"Condition": "IsDev", "Fn::Equals": ["a", "a"]},
            "Circle": {"Condition": "Circle"},
            "Strange": {"Condition": ["IsDev"]},
        },
        "Mappings": {
            "Sizes": {"dev": {"Nodes": 4, "Spare": 0}},
            "By": {"4": {"Nodes": 5}},
            "More": {"Fn::Transform": {"Name": "M"}},
        },
        "Resources": {"Vpc": {"Type": "AWS::EC2::VPC"}, "Subnet": {"Type": "AWS::EC2::Subnet"}},
        "Outputs": {
            "Subnet": {"Value": {"Ref": "Subnet"}, "Export": {"Name": "dev-network:Subnet"}},
            "Name": {"Value": {"Ref": "Stage"}, "Export": {"Name": "dev-network:Stage"}},
        },
    },
)
HYPERPOD = Stack(name="dev-hyperpod", template={"Resources": {"Cluster": {"Type": "AWS::SageMaker::Cluster"}}})
DEV = Assembly(environment="dev", stacks=(NETWORK, HYPERPOD))


@row_by_row(
    "value, expected",
    [
        (3, 3),
        ({"A": [1, {"Ref": "AWS::NoValue"}], "B": {"Ref": "AWS::NoValue"}}, {"A": [1]}),
        ({"Ref": "AWS::Region"}, "us-west-2"),
        ({"Ref": "AWS::AccountId"}, "111122223333"),
        ({"Ref": "AWS::StackName"}, "dev-network"),
        ({"Ref": "AWS::Partition"}, Unknown("${AWS::Partition}")),
        ({"Ref": "Vpc"}, Reference("dev-network", "Vpc")),
        ({"Ref": "Stage"}, "dev"),
        ({"Ref": "Zones"}, ["a", "b"]),
        ({"Ref": "Ports"}, ["8080"]),
        ({"Ref": "StoredList"}, Unknown("{{resolve:ssm:/a/b}}")),
        ({"Ref": "Asked"}, Unknown("${Asked}")),
        ({"Ref": ["x"]}, Unknown("{Ref}")),
        ({"Fn::GetAtt": ["Vpc", "CidrBlock"]}, Reference("dev-network", "Vpc", "CidrBlock")),
        ({"Fn::GetAtt": "Vpc.CidrBlock"}, Reference("dev-network", "Vpc", "CidrBlock")),
        ({"Fn::GetAtt": ["Nobody", "Arn"]}, Unknown("{Fn::GetAtt: ['Nobody', 'Arn']}")),
        ({"Fn::GetAtt": ["Vpc"]}, Unknown("{Fn::GetAtt: ['Vpc']}")),
        ({"Fn::GetAtt": ["Vpc", "A", "B"]}, Unknown("{Fn::GetAtt: ['Vpc', 'A', 'B']}")),
        ({"Fn::GetAtt": ["Vpc", {"Ref": "Stage"}]}, Reference("dev-network", "Vpc", "dev")),
        ({"Fn::GetAtt": ["Vpc", {"Ref": "Asked"}]}, Unknown("{Fn::GetAtt: [Vpc, ${Asked}]}")),
        ({"Ref": {"Fn::Sub": "V${Part}"}}, Unknown("${V${Part}}")),
        ({"Ref": {"Fn::If": ["IsDev", "Vpc", "Subnet"]}}, Reference("dev-network", "Vpc")),
        ({"Ref": {"Fn::If": ["IsAsked", "Vpc", "Subnet"]}}, Unknown("${{if IsAsked: Vpc, else Subnet}}")),
        ({"Ref": "Stored"}, Unknown("{{resolve:ssm:${Stored}}}")),
        ({"Fn::GetAtt": {"a": "Vpc", "b": "Arn"}}, Unknown("{Fn::GetAtt: {'a': 'Vpc', 'b': 'Arn'}}")),
        ({"Fn::GetAtt": None}, Unknown("{Fn::GetAtt: None}")),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}]]}, "a-dev"),
        ({"Fn::Join": ["", ["arn:", {"Fn::GetAtt": ["Vpc", "Arn"]}]]}, "arn:${Vpc.Arn}"),
        ({"Fn::Join": ["-"]}, Unknown("{Fn::Join: [-]}")),
        ({"Fn::Join": ["-", ["a"], "b"]}, Unknown("{Fn::Join: [-, [a], b]}")),
        ({"Fn::Join": "ab"}, Unknown("{Fn::Join: ab}")),
        ({"Fn::Join": ["-", "text"]}, Unknown("{Fn::Join: [-, text]}")),
        ({"Fn::Sub": 3}, Unknown("{Fn::Sub: 3}")),
        ({"Fn::Sub": ["a"]}, Unknown("{Fn::Sub: [a]}")),
        ({"Fn::Sub": ["a", {}, "b"]}, Unknown("{Fn::Sub: [a, {}, b]}")),
        ({"Fn::Sub": "ab"}, "ab"),
        ({"Fn::Sub": ["${Stage}", "Stage"]}, "dev"),
        ({"Fn::Sub": "${Stage}/${Vpc}/${Vpc.Arn}/${!Kept}"}, "dev/${Vpc}/${Vpc.Arn}/${Kept}"),
        ({"Fn::Sub": ["${Own}-${Asked}", {"Own": {"Ref": "Stage"}}]}, "dev-${Asked}"),
        ({"Fn::Sub": "${Vpc}"}, Reference("dev-network", "Vpc")),
        ({"Fn::Sub": "${Vpc.Arn}"}, Reference("dev-network", "Vpc", "Arn")),
        ({"Fn::Sub": "${Asked}"}, Unknown("${Asked}")),
        ({"Fn::Sub": "${Stage}"}, "dev"),
        ({"Fn::Sub": ["${Own}", {"Own": {"Fn::GetAtt": ["Vpc", "Arn"]}}]}, Reference("dev-network", "Vpc", "Arn")),
        ({"Fn::Select": [1, {"Ref": "Zones"}]}, "b"),
        ({"Fn::Select": ["1", ["a", "b"]]}, "b"),
        ({"Fn::Select": [0, ["a", "b"]]}, "a"),
        ({"Fn::Select": [2, ["a", "b"]]}, Unknown("{Fn::Select: [2, [a, b]]}")),
        ({"Fn::Select": [-1, ["a", "b"]]}, Unknown("{Fn::Select: [-1, [a, b]]}")),
        ({"Fn::Select": [0, "ab"]}, Unknown("{Fn::Select: [0, ab]}")),
        ({"Fn::Select": [0]}, Unknown("{Fn::Select: [0]}")),
        ({"Fn::Select": [0, ["a"], 1]}, Unknown("{Fn::Select: [0, [a], 1]}")),
        ({"Fn::Select": "0a"}, Unknown("{Fn::Select: 0a}")),
        ({"Fn::Split": ["/", "a/b"]}, ["a", "b"]),
        ({"Fn::Split": ["//", "a//b/c"]}, ["a", "b/c"]),
        ({"Fn::Split": ["", "a"]}, Unknown("{Fn::Split: [, a]}")),
        ({"Fn::Split": ["/", ""]}, [""]),
        ({"Fn::Split": ["/", ["a/b"]]}, Unknown("{Fn::Split: [/, [a/b]]}")),
        ({"Fn::Split": ["/"]}, Unknown("{Fn::Split: [/]}")),
        ({"Fn::Split": ["/", "a/b", "c"]}, Unknown("{Fn::Split: [/, a/b, c]}")),
        ({"Fn::Split": "/a"}, Unknown("{Fn::Split: /a}")),
        ({"Fn::Split": ["/", {"Fn::Sub": "${Asked}/b"}]}, Unknown("{Fn::Split: [/, ${Asked}/b]}")),
        ({"Fn::FindInMap": ["Sizes", {"Ref": "Stage"}, "Nodes"]}, 4),
        ({"Fn::FindInMap": ["Sizes", "prod", "Nodes"]}, Unknown("{Fn::FindInMap: [Sizes, prod, Nodes]}")),
        ({"Fn::FindInMap": ["By", {"Ref": "Number"}, "Nodes"]}, 5),
        ({"Fn::FindInMap": ["Sizes", "prod", "Nodes", {"DefaultValue": {"Ref": "Stage"}}]}, "dev"),
        ({"Fn::FindInMap": ["Sizes", "dev", "Nodes", {"DefaultValue": 9}]}, 4),
        (
            {"Fn::FindInMap": ["Sizes", "prod", "Nodes", {"Other": 9}]},
            Unknown("{Fn::FindInMap: [Sizes, prod, Nodes, {Other: 9}]}"),
        ),
        (
            {"Fn::FindInMap": ["More", "prod", "Nodes", {"DefaultValue": 9}]},
            Unknown("{Fn::FindInMap: [More, prod, Nodes, {DefaultValue: 9}]}"),
        ),
        (
            {"Fn::FindInMap": ["Sizes", {"Fn::Sub": "${Asked}-a"}, "Nodes"]},
            Unknown("{Fn::FindInMap: [${Asked}-a, Nodes] of {dev: {Nodes: 4, Spare: 0}}}"),
        ),
        (
            {"Fn::FindInMap": ["Sizes", {"Ref": "Asked"}, "Nodes", {"DefaultValue": 9}]},
            Unknown("{Fn::FindInMap: [${Asked}, Nodes, {DefaultValue: 9}] of {dev: {Nodes: 4, Spare: 0}}}"),
        ),
        ({"Fn::FindInMap": ["Sizes", "dev", "Spare"]}, 0),
        ({"Fn::FindInMap": ["Sizes", "dev", "Nodes", {"DefaultValue": 1}]}, 4),
        (
            {"Fn::FindInMap": ["Sizes", "prod", "Nodes", {"DefaultValue": 1}]},
            1,
        ),
        ({"Fn::FindInMap": ["Sizes", "dev"]}, Unknown("{Fn::FindInMap: [Sizes, dev]}")),
        ({"Fn::FindInMap": "abc"}, Unknown("{Fn::FindInMap: abc}")),
        ({"Fn::FindInMap": ["Sizes", 3, "Nodes"]}, Unknown("{Fn::FindInMap: [Sizes, 3, Nodes]}")),
        ({"Fn::FindInMap": ["Sizes", "dev", "Nodes", "x"]}, 4),
        (
            {"Fn::FindInMap": [{"Ref": "Asked"}, "dev", "Nodes"]},
            Unknown(
                "{Fn::FindInMap: [${Asked}, dev, Nodes] of {Sizes: {dev: {Nodes: 4, Spare: 0}}, By: {4: {Nodes: 5}},"
                " More: {Fn::Transform: {Name: M}}}}"
            ),
        ),
        (
            {"Fn::FindInMap": ["Sizes", "dev", {"Ref": "Vpc"}]},
            Unknown("{Fn::FindInMap: [Vpc] of {Nodes: 4, Spare: 0}}"),
        ),
        (
            {"Fn::FindInMap": ["Sizes", "prod", {"Ref": "Asked"}]},
            Unknown("{Fn::FindInMap: [Sizes, prod, ${Asked}]}"),
        ),
        ({"Fn::ImportValue": "dev-network:Stage"}, "dev"),
        ({"Fn::ImportValue": ["dev-network:Stage"]}, Unknown("{import [dev-network:Stage]}")),
        ({"Fn::ImportValue": "elsewhere:Stage"}, Unknown("{import elsewhere:Stage}")),
        ({"Fn::GetAZs": ""}, Unknown("{Fn::GetAZs}")),
        ({"Fn::If": ["IsDev", 1, 2]}, 1),
        ({"Fn::If": ["IsProd", 1, 2]}, 2),
        ({"Fn::If": ["IsAsked", 1, 2]}, Unknown("{if IsAsked: 1, else 2}")),
        ({"Fn::If": ["Both", 1, 2]}, Unknown("{if Both: 1, else 2}")),
        ({"Fn::If": ["Never", 1, 2]}, 2),
        ({"Fn::If": ["Either", 1, 2]}, 1),
        ({"Fn::If": ["Unsure", 1, 2]}, Unknown("{if Unsure: 1, else 2}")),
        ({"Fn::If": ["AlwaysTwice", 1, 2]}, 1),
        ({"Fn::If": ["NeverTwice", 1, 2]}, 2),
        ({"Fn::If": ["IsNotAsked", 1, 2]}, Unknown("{if IsNotAsked: 1, else 2}")),
        ({"Fn::If": ["OfNone", 1, 2]}, Unknown("{if OfNone: 1, else 2}")),
        *(
            ({"Fn::If": [name, 1, 2]}, Unknown(f"{{if {name}: 1, else 2}}"))
            for name in ("Compared", "ComparedAlone", "ComparedByThree", "NotTwo", "NotNone", "NoFunction")
        ),
        ({"Fn::If": ["Text", 1, 2]}, Unknown("{if Text: 1, else 2}")),
        ({"Fn::If": ["TwoKeys", 1, 2]}, Unknown("{if TwoKeys: 1, else 2}")),
        ({"Fn::If": ["Empty", 1, 2]}, Unknown("{if Empty: 1, else 2}")),
        ({"Fn::If": ["IsDev", 1]}, Unknown("{Fn::If: [IsDev, 1]}")),
        ({"Fn::If": ["IsDev", 1, 2, 3]}, Unknown("{Fn::If: [IsDev, 1, 2, 3]}")),
        ({"Fn::If": "abc"}, Unknown("{Fn::If: abc}")),
        ({"Fn::If": ["Circle", 1, 2]}, Unknown("{if Circle: 1, else 2}")),
        ({"Fn::If": ["Strange", 1, 2]}, Unknown("{if Strange: 1, else 2}")),
        ({"Fn::If": ["Nobody", 1, 2]}, Unknown("{if Nobody: 1, else 2}")),
        ({"Fn::If": [["IsDev"], 1, 2]}, Unknown("{Fn::If: [[IsDev], 1, 2]}")),
        ({"Ref": "AWS::NoValue"}, None),
        ({"Fn::Sub": ["a${B}c", {"B": {"Ref": "AWS::NoValue"}}]}, "ac"),
        ([{"Fn::If": ["IsProd", 1, {"Ref": "AWS::NoValue"}]}], []),
    ],
)
def test_resolve(value: Any, expected: Any) -> None:
    assert resolve(DEV, "dev-network", value) == expected


def _nested(times: int) -> Any:
    value: Any = "a"
    for _ in range(times):
        value = [value]
    return value


def test_what_is_nested_too_deeply_is_unknown() -> None:
    assert resolve(DEV, "dev-network", _nested(DEEPEST)) == _nested(DEEPEST)
    found = resolve(DEV, "dev-network", _nested(DEEPEST + 1))
    for _ in range(DEEPEST):
        (found,) = found
    assert found == Unknown("...")


def test_an_import_leads_to_the_resource_of_another_stack() -> None:
    value = {"Fn::ImportValue": "dev-network:Subnet"}
    assert resolve(DEV, "dev-hyperpod", value) == Reference("dev-network", "Subnet")
    assert target(DEV, "dev-hyperpod", value) == NETWORK.resources["Subnet"]
    assert target(DEV, "dev-hyperpod", "subnet-0123") is None


def test_exports_that_import_each_other_end() -> None:
    outputs = {"O": {"Value": {"Fn::ImportValue": "x"}, "Export": {"Name": "x"}}}
    circle = Assembly(environment="", stacks=(Stack(name="s", template={"Resources": {}, "Outputs": outputs}),))
    assert resolve(circle, "s", {"Fn::ImportValue": "x"}) == Unknown("{import ...}")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        (Reference("s", "Vpc"), "Vpc"),
        (Reference("s", "Vpc", "Arn"), "Vpc.Arn"),
        (Unknown("${Asked}"), "${Asked}"),
        ([1, {"A": False, "B": "c"}], "[1, {A: false, B: c}]"),
    ],
)
def test_plain(value: Any, shown: str) -> None:
    assert plain(value) == shown


@row_by_row(
    "value, expected",
    [
        ({"Ref": "Vpc"}, True),
        ({"Fn::Sub": "a"}, True),
        ({"Fn::Sub": "a", "Ref": "Vpc"}, False),
        ({"Condition": "IsDev"}, False),
        ({"Reference": "a"}, False),
        ({}, False),
        ([{"Ref": "Vpc"}], False),
        ("Ref", False),
        (None, False),
    ],
)
def test_functions(value: Any, *, expected: bool) -> None:
    assert is_function(value) is expected


@row_by_row(
    "value, expected",
    [
        ("a $ {b}", True),
        ("a-${B}", False),
        ("{Fn::GetAZs}", False),
        ("{if A: 1, else 2}", False),
        ("{import a}", False),
        ("{{resolve:ssm:a}}", False),
        (0, True),
        (None, True),
        ([1, "a", {"A": ["b"]}], True),
        ([1, "${A}"], False),
        ({"A": "a", "B": ["${A}"]}, False),
        ({"${A}": "a"}, True),
        (Unknown("a"), False),
        (Reference("s", "Vpc"), False),
    ],
)
def test_what_is_known_as_a_whole(value: Any, *, expected: bool) -> None:
    assert is_known(value) is expected


def _if(condition: Any, *values: Any) -> dict[str, Any]:
    return {"Fn::If": [condition, *values]}


NO_VALUE = {"Ref": "AWS::NoValue"}


@row_by_row(
    "value, expected",
    [
        ("a", (["a"], [])),
        (NO_VALUE, ([None], [])),
        ({"Ref": "Vpc"}, ([{"Ref": "Vpc"}], [])),
        (_if("IsDev", "a", "b"), (["a"], [])),
        (_if("IsProd", "a", {"Ref": "Vpc"}), ([{"Ref": "Vpc"}], [])),
        (_if("IsAsked", "a", NO_VALUE), (["a", None], ["IsAsked"])),
        (_if("IsAsked", "a"), ([_if("IsAsked", "a")], [])),
        (_if("IsAsked", "a", "b", "c"), ([_if("IsAsked", "a", "b", "c")], [])),
        ({"Fn::If": "abc"}, ([{"Fn::If": "abc"}], [])),
        ({**_if("IsAsked", "a", "b"), "A": 1}, ([{**_if("IsAsked", "a", "b"), "A": 1}], [])),
        # each condition once, in the order in which they are asked
        (
            _if("IsAsked", _if("Both", "a", "b"), _if("IsDev", _if("Both", "c", "d"), _if("Unsure", "e", "f"))),
            (["a", "b", "c", "d"], ["IsAsked", "Both"]),
        ),
        (_if("IsProd", "a", _if("IsAsked", "b", "c")), (["b", "c"], ["IsAsked"])),
    ],
)
def test_choices(value: Any, expected: tuple[list[Any], list[str]]) -> None:
    assert choices(DEV, "dev-network", value) == expected


@row_by_row(
    "condition, expected",
    [("IsDev", True), ("IsProd", False), ("IsAsked", None), ("Nobody", None), (["IsDev"], None), (None, None)],
)
def test_a_condition_of_a_stack(condition: Any, *, expected: bool | None) -> None:
    assert holds(NETWORK, condition) is expected


@pytest.mark.parametrize(("steps", "expected"), [(98, True), (99, None)])
def test_conditions_that_name_each_other_are_followed_so_far(steps: int, *, expected: bool | None) -> None:
    conditions: dict[str, Any] = {f"Step{at}": {"Condition": f"Step{at + 1}"} for at in range(steps)}
    conditions[f"Step{steps}"] = {"Fn::Equals": ["a", "a"]}
    assert holds(Stack(name="s", template={"Conditions": conditions}), "Step0") is expected


@pytest.mark.parametrize("name", ["AWS::Region", "AWS::AccountId"])
def test_where_a_stack_goes_may_be_left_to_the_deployment(name: str) -> None:
    assert resolve(DEV, "dev-hyperpod", {"Ref": name}) == Unknown(f"${{{name}}}")


def test_properties_are_resolved_once_as_long_as_the_resource_is_the_same() -> None:
    def made(stage: str) -> Assembly:
        topic = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Fn::Sub": f"{stage}-${{AWS::StackName}}"}}}
        return Assembly(environment="", stacks=(Stack(name="s", template={"Resources": {"T": topic}}),))

    dev, qa = made("dev"), made("qa")
    (old,), (new,) = dev.resources(), qa.resources()
    found = resolved_properties(dev, old)
    assert found == {"TopicName": "dev-s"}
    assert resolved_properties(dev, old) is found
    assert resolved_properties(dev, new) == {"TopicName": "qa-s"}


@row_by_row(
    "value, expected",
    [
        ({"Ref": ["A"]}, []),
        ({"Fn::GetAtt": "A"}, [("A", "")]),
        ({"Fn::GetAtt": ["A"]}, []),
        ({"Fn::GetAtt": ["A", "B", "C"]}, []),
        ({"Fn::GetAtt": ["A", {"Ref": "P"}]}, [("A", ""), ("P", "")]),
        ({"Fn::Sub": []}, []),
        ({"Fn::Sub": [3, {"X": {"Ref": "P"}}]}, [("P", "")]),
        ({"Fn::Sub": "${A.B.C}-${D}"}, [("A", "B.C"), ("D", "")]),
        ([[{"Ref": "A"}], "Ref"], [("A", "")]),
        ("${A}", []),
        (None, []),
    ],
)
def test_references_however_they_are_written(value: Any, expected: list[tuple[str, str]]) -> None:
    assert list(references(value)) == expected


def test_imports_of_a_stack_whose_names_are_known_or_not() -> None:
    told = {"A": [{"Fn::ImportValue": "one"}, {"B": {"Fn::ImportValue": {"Fn::Sub": "${AWS::StackName}:two"}}}]}
    stack = Stack(name="s", template={"Resources": {"R": {"Type": "T", "Properties": told}}})
    assert sorted(imports(stack)) == ["one", "s:two"]
    assert not imports_unknown(stack)
    assert sorted(imports(stack, {"Fn::ImportValue": "three"})) == ["three"]
    asked = Stack(name="s", template={"Resources": {}, "Outputs": {"O": {"Fn::ImportValue": {"Ref": "Asked"}}}})
    assert list(imports(asked)) == []
    assert imports_unknown(asked)


def test_references_and_imports_of_a_value() -> None:
    value = {
        "A": [{"Ref": "R"}, {"Fn::GetAtt": ["G", "Arn"]}, {"Fn::GetAtt": "H.Arn"}],
        "B": {"Fn::Sub": ["${S} ${T.Arn} ${!Kept}", {"S": {"Fn::ImportValue": "i"}}]},
        "C": {"Fn::ImportValue": {"Fn::Sub": "${R}:x"}},
        "D": {"Fn::GetAtt": ["F", {"Ref": "P"}]},
    }
    assert sorted(references(value)) == [
        *(("F", ""), ("G", "Arn"), ("H", "Arn"), ("P", ""), ("R", ""), ("R", ""), ("S", ""), ("T", "Arn")),
    ]
    stack = Stack(name="s", template={"Resources": {"R": {"Type": "T"}}})
    assert list(imports(stack, value)) == ["i"]
    assert imports_unknown(replace(stack, template={"Resources": {"R": {"Type": "T"}}, "Outputs": value}))


FUNCTIONS = (
    "Ref", "Fn::GetAtt", "Fn::Join", "Fn::Sub", "Fn::Select", "Fn::Split", "Fn::FindInMap", "Fn::If",
    "Fn::ImportValue", "Fn::Cidr", "A",
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(["Vpc", "Stage", "IsDev", "${Stage}"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FUNCTIONS), inner, max_size=2),
    max_leaves=12,
)


@given(VALUES)
def test_no_value_of_a_template_is_too_strange(value: Any) -> None:
    found = resolve(DEV, "dev-network", value)
    # what stands for AWS::NoValue never shows
    assert "<object" not in plain(found)
    assert all(isinstance(name, str) for name, _ in references(value))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, {"Fn::Select": [1, {"Fn::GetAZs": ""}]}),
        ({"Fn::Cidr": [{"Ref": "Asked"}, 4, 8]}, {"Fn::Cidr": [{"Ref": "Asked"}, 4, 12]}),
        ({"Fn::If": ["IsAsked", "ami-1", "ami-2"]}, {"Fn::If": ["IsAsked", "ami-1", "ami-3"]}),
        ({"Fn::If": ["IsAsked", 1, {"Ref": "AWS::NoValue"}]}, {"Fn::If": ["IsAsked", 1, ""]}),
        (
            {"Fn::FindInMap": ["Sizes", {"Ref": "Asked"}, "Nodes"]},
            {"Fn::FindInMap": ["Sizes", {"Ref": "Asked"}, "Zones"]},
        ),
        ({"Fn::Sub": "a-${Asked}"}, {"Fn::Sub": "b-${Asked}"}),
        ({"Fn::Select": [0, {"Fn::Split": ["-", {"Ref": "Asked"}]}]}, {"Fn::Select": [0, {"Ref": "Asked"}]}),
    ],
)
def test_what_is_unknown_differs_where_anything_of_it_does(before: Any, after: Any) -> None:
    one, other = (resolve(DEV, "dev-network", each) for each in (before, after))
    assert one != other
    assert resolve(DEV, "dev-network", before) == one


def test_a_map_with_an_unknown_key_shows_what_it_may_be() -> None:
    value = {"Fn::FindInMap": ["Sizes", {"Ref": "Asked"}, "Nodes"]}
    assert resolve(DEV, "dev-network", value) == Unknown(
        "{Fn::FindInMap: [${Asked}, Nodes] of {dev: {Nodes: 4, Spare: 0}}}"
    )


def test_a_text_with_something_unknown_inside_is_not_compared() -> None:
    joined = {"Fn::Join": ["", [{"Ref": "Asked"}, {"Ref": "Stage"}]]}
    template = {**NETWORK.template, "Conditions": {"IsEmpty": {"Fn::Equals": [joined, "dev"]}}}
    stack = Stack(name="s", template=template)
    found = resolve(Assembly(environment="", stacks=(stack,)), "s", {"Fn::If": ["IsEmpty", 1, 2]})
    assert found == Unknown("{if IsEmpty: 1, else 2}")


def test_a_value_of_many_levels_is_resolved_to_the_end() -> None:
    value: Any = {"Ref": "Stage"}
    expected: Any = "dev"
    for _ in range(40):
        value, expected = {"A": [value]}, {"A": [expected]}
    assert resolve(DEV, "dev-network", value) == expected


@pytest.mark.parametrize(
    ("levels", "told"),
    [(40, True), (3000, False)],
)
def test_conditions_of_many_levels_are_known_or_not(levels: int, *, told: bool) -> None:
    holds = {"Fn::Equals": [{"Ref": "Stage"}, "dev"]}
    inside: dict[str, Any] = holds
    for _ in range(levels):
        inside = {"Fn::And": [inside, holds]}
    steps = {f"Step{level}": {"Condition": f"Step{level + 1}"} for level in range(levels)}
    conditions = {"Inside": inside, **steps, f"Step{levels}": holds}
    dev = Assembly(environment="", stacks=(replace(NETWORK, template={**NETWORK.template, "Conditions": conditions}),))
    for name in ("Inside", "Step0"):
        expected = 1 if told else Unknown(f"{{if {name}: 1, else 2}}")
        assert resolve(dev, "dev-network", {"Fn::If": [name, 1, 2]}) == expected


@row_by_row(
    "one, other, expected",
    [
        ("dev", "dev", True),
        ("dev", "Dev", False),
        # a template without quotes loses the text that CloudFormation compares
        ("true", True, True),
        ("false", False, True),
        ("true", False, False),
        ("", True, False),
        ("prod", False, False),
        ("1", 1, True),
        (1, "1", True),
        ("2", 1, False),
        ("-1", -1, True),
        ("prod", 1, False),
        ("1.5", 1.5, True),
        # what a template wrote as yes, 010 or 1.0 is known only there
        ("yes", True, None),
        ("Off", False, None),
        ("010", 8, None),
        ("1", 1.0, None),
        ("0x10", 16, None),
        (["a"], "a", False),
    ],
)
def test_equality_is_of_texts(one: Any, other: Any, expected: Any) -> None:
    stack = Stack(name="s", template={"Conditions": {"C": {"Fn::Equals": [one, other]}}})
    assert holds(stack, "C") is expected


EQUALS_ASKED = {"Fn::Equals": [{"Ref": "Asked"}, "x"]}


@row_by_row(
    "condition, expected",
    [
        ({"Fn::Equals": ["a", "a"]}, "true"),
        ({"Fn::Equals": ["a", "b"]}, "false"),
        (EQUALS_ASKED, '${Asked} = "x"'),
        ({"Condition": "IsAsked"}, '${Asked} = "x"'),
        ({"Fn::Not": [EQUALS_ASKED]}, 'not (${Asked} = "x")'),
        ({"Fn::And": [EQUALS_ASKED, {"Condition": "IsDev"}]}, '(${Asked} = "x" and true)'),
        ({"Fn::Or": [EQUALS_ASKED, {"Condition": "IsProd"}]}, '(${Asked} = "x" or false)'),
        (
            {"Fn::Equals": [{"Fn::FindInMap": ["Sizes", {"Ref": "Asked"}, "Nodes"]}, {"Ref": "Stage"}]},
            '{Fn::FindInMap: [${Asked}, Nodes] of {dev: {Nodes: 4, Spare: 0}}} = "dev"',
        ),
        ({"Condition": "Circle"}, "Circle"),
        ({"Condition": "Nobody"}, "Nobody"),
        ({"Fn::Strange": EQUALS_ASKED}, 'strange (${Asked} = "x")'),
        ("IsDev", "IsDev"),
        ({}, "{}"),
    ],
)
def test_the_meaning_of_a_condition(condition: Any, expected: str) -> None:
    conditions = {**NETWORK.conditions, "C": condition}
    stack = replace(NETWORK, template={**NETWORK.template, "Conditions": conditions})
    assert meaning(stack, "C") == expected


def test_a_loop_whose_list_is_unknown_may_define_a_condition() -> None:
    loop = {"Fn::ForEach::L": ["N", {"Ref": "Asked"}, {"Is${N}": {"Fn::Equals": [{"Ref": "Asked"}, "${N}"]}}]}
    stack = Stack(name="s", template={"Conditions": loop})
    assert meaning(stack, "Isa") == ("Isa of {Fn::ForEach::L: [N, ${Asked}, {Is${N}: {Fn::Equals: [${Asked}, ${N}]}}]}")


def test_a_long_chain_of_conditions_has_a_meaning() -> None:
    steps = {f"C{level}": {"Condition": f"C{level + 1}"} for level in range(3000)}
    stack = Stack(name="s", template={"Conditions": {**steps, "C3000": EQUALS_ASKED}})
    assert meaning(stack, "C0") == "{Condition: C101}"


def test_a_long_meaning_is_a_digest() -> None:
    one, other = (
        meaning(Stack(name="s", template={"Conditions": {"C": {"Fn::Equals": [{"Ref": "P"}, "x" * length]}}}), "C")
        for length in (2000, 2001)
    )
    assert one != other
    assert len(one) == len(other) == 13


def test_conditions_that_others_need_twice_end_soon() -> None:
    steps = {
        f"C{level}": {"Fn::And": [{"Condition": f"C{level - 1}"}, {"Condition": f"C{level - 1}"}]}
        for level in range(1, 60)
    }
    stack = Stack(name="s", template={"Conditions": {"C0": EQUALS_ASKED, **steps}})
    assert holds(stack, "C59") is None
    assert meaning(stack, "C59") != meaning(stack, "C58")


def test_a_template_alone_may_be_a_stack_of_any_name() -> None:
    stack = Stack(name="s", template={"Conditions": {"C": {"Fn::Equals": [{"Ref": "AWS::StackName"}, "s"]}}})
    assert holds(stack, "C") is True
    assert holds(replace(stack, is_named=False), "C") is None


def test_exports_that_need_each_other_twice_end_soon() -> None:
    def outputs(name: str, other: str) -> dict[str, Any]:
        twice = {"Fn::Join": ["", [{"Fn::ImportValue": other}, {"Fn::ImportValue": other}]]}
        return {"O": {"Value": twice, "Export": {"Name": name}}}

    stacks = (
        Stack(name="a", template={"Resources": {}, "Outputs": outputs("a", "b")}),
        Stack(name="b", template={"Resources": {}, "Outputs": outputs("b", "a")}),
    )
    found = resolve(Assembly(environment="", stacks=stacks), "a", {"Fn::ImportValue": "a"})
    assert found == "{import ...}" * 4
