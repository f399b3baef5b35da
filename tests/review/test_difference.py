"""What differs between two assemblies, down to the property, with list items kept apart by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_template
from hyperpod_cdk.templates.difference import MISSING, apart, compare
from hyperpod_cdk.templates.values import Reference, Unknown
from tests.support.tables import row_by_row


def assembly(resources: dict[str, Any], **sections: Any) -> Assembly:
    return Assembly(environment="dev", stacks=(Stack(name="s", template={"Resources": resources, **sections}),))


def of(**properties: Any) -> Assembly:
    return assembly({"A": {"Type": "T", "Properties": properties}})


def changed(base: Assembly, head: Assembly) -> list[tuple[str, Any, Any]]:
    return [(each.path, each.before, each.after) for change in compare(base, head) for each in change.properties]


def group(name: str, count: int) -> dict[str, Any]:
    return {"InstanceGroupName": name, "InstanceCount": count}


@row_by_row(
    "before, after, expected",
    [
        ({"P": 1}, {"P": 1}, []),
        ({"P": 1}, {"P": 2}, [("P", 1, 2)]),
        ({"P": 1}, {"P": True}, [("P", 1, True)]),
        # CloudFormation reads both alike, but for JSON that a property holds as it is
        ({"P": 1}, {"P": "1"}, []),
        ({"P": True}, {"P": "true"}, []),
        ({"P": 1.0}, {"P": 1}, []),
        ({"P": 1.5}, {"P": "1.5"}, []),
        ({"P": 2.0}, {"P": "2.0"}, [("P", 2.0, "2.0")]),
        ({"P": 1}, {"P": "1.0"}, [("P", 1, "1.0")]),
        ({"P": None}, {"P": "None"}, [("P", None, "None")]),
        ({"P": [1]}, {"P": ["1"]}, [("P", [1], ["1"])]),
        ({"Pattern": 1}, {"Pattern": "1"}, [("Pattern", 1, "1")]),
        ({"P": {"Json": {"Q": 1}}}, {"P": {"Json": {"Q": "1"}}}, [("P.Json.Q", 1, "1")]),
        ({"P": True}, {"P": "True"}, [("P", True, "True")]),
        ({"P": "01"}, {"P": 1}, [("P", "01", 1)]),
        ({"PolicyDocument": {"N": 1}}, {"PolicyDocument": {"N": "1"}}, [("PolicyDocument.N", 1, "1")]),
        ({}, {"P": 2}, [("P", MISSING, 2)]),
        ({"P": 1}, {}, [("P", 1, MISSING)]),
        ({"P": {"Q": {"R": 1}}}, {"P": {"Q": {"R": 2}}}, [("P.Q.R", 1, 2)]),
        ({"P": {"Q": 1}}, {"P": [1]}, [("P", {"Q": 1}, [1])]),
        ({"P": ["a", "b"]}, {"P": ["b"]}, [("P", ["a", "b"], ["b"])]),
        ({"P": {}}, {"P": [{"Key": "a"}]}, [("P", {}, [{"Key": "a"}])]),
        ({}, {"P": [{"Key": "a"}]}, [("P", MISSING, [{"Key": "a"}])]),
        ({"P": "[1]"}, {"P": [1]}, [("P", "[1]", [1])]),
        (
            {"Groups": [group("a", 1), group("b", 2)]},
            {"Groups": [group("b", 3), group("a", 1)]},
            [("Groups[b].InstanceCount", 2, 3)],
        ),
        (
            {"Groups": [group("a", 1)]},
            {"Groups": [group("a", 1), group("b", 2)]},
            [("Groups[b]", MISSING, group("b", 2))],
        ),
        ({"Groups": [group("a", 1)]}, {"Groups": []}, [("Groups[a]", group("a", 1), MISSING)]),
        ({"Groups": []}, {"Groups": []}, []),
        # items of which not all are objects, or not all have a name that is a text, have none
        (
            {"L": [{"Key": "a"}, "b"]},
            {"L": [{"Key": "a"}, "c"]},
            [("L", [{"Key": "a"}, "b"], [{"Key": "a"}, "c"])],
        ),
        (
            {"L": [{"Key": "a", "V": 1}, {"Key": 2, "V": 2}]},
            {"L": [{"Key": 2, "V": 2}, {"Key": "a", "V": 1}]},
            [("L[0].Key", "a", 2), ("L[0].V", 1, 2), ("L[1].Key", 2, "a"), ("L[1].V", 2, 1)],
        ),
        # the first property in the order of names that all items have, each with another value
        (
            {"L": [{"Key": "k", "Id": "a", "V": 1}, {"Key": "k", "Id": "b", "V": 2}]},
            {"L": [{"Key": "k", "Id": "b", "V": 2}, {"Key": "k", "Id": "a", "V": 3}]},
            [("L[a].V", 1, 3)],
        ),
        # two items of one name are not told apart by it, but by their places
        (
            {"Tags": [{"Key": "k", "Value": 1}, {"Key": "k", "Value": 2}]},
            {"Tags": [{"Key": "k", "Value": 1}, {"Key": "k", "Value": 3}]},
            [("Tags[1].Value", 2, 3)],
        ),
        ({"L": [{"A": 1}]}, {"L": [{"A": 1}, {"A": 2}]}, [("L", [{"A": 1}], [{"A": 1}, {"A": 2}])]),
        ({"L": [{"A": 1}]}, {"L": [{"A": 2}]}, [("L[0].A", 1, 2)]),
        # a name that occurs twice on one side identifies nothing
        (
            {"Tags": [{"Key": "a", "Value": 1}, {"Key": "a", "Value": 2}]},
            {"Tags": [{"Key": "a", "Value": 3}]},
            [("Tags", [{"Key": "a", "Value": 1}, {"Key": "a", "Value": 2}], [{"Key": "a", "Value": 3}])],
        ),
        (
            {"Tags": [{"Key": "a", "Value": 1}]},
            {"Tags": [{"Key": "a", "Value": 1}, {"Key": "a", "Value": 2}]},
            [("Tags", [{"Key": "a", "Value": 1}], [{"Key": "a", "Value": 1}, {"Key": "a", "Value": 2}])],
        ),
    ],
)
def test_properties(before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, Any, Any]]) -> None:
    assert changed(of(**before), of(**after)) == expected


def test_the_place_of_a_change() -> None:
    (change,) = compare(of(Groups=[group("h100", 1)]), of(Groups=[group("h100", 2)]))
    (found,) = change.properties
    assert (found.path, found.schema_path, found.item) == (
        "Groups[h100].InstanceCount",
        ("Groups", "InstanceCount"),
        "h100",
    )


def test_the_item_around_a_change_is_the_outermost() -> None:
    def of_list(value: int) -> Assembly:
        return of(Groups=[{"Name": "a", "Tags": [{"Key": "k", "Value": value}]}], P=value)

    (change,) = compare(of_list(1), of_list(2))
    assert [(each.path, each.schema_path, each.item) for each in change.properties] == [
        ("Groups[a].Tags[k].Value", ("Groups", "Tags", "Value"), "a"),
        ("P", ("P",), ""),
    ]


def test_a_macro_that_writes_all_properties_is_one_change() -> None:
    base, head = (assembly({"A": {"Type": "T", "Properties": each}}) for each in ({"Fn::Transform": "M"}, {"P": 1}))
    assert changed(base, base) == []
    assert changed(base, head) == [("Fn::Transform", Unknown("{Fn::Transform: M}"), {"P": 1})]
    other = assembly({"A": {"Type": "T", "Properties": {"Fn::Transform": "N"}}})
    assert changed(base, other) == [
        ("Fn::Transform", Unknown("{Fn::Transform: M}"), Unknown("{Fn::Transform: N}")),
    ]


def test_what_one_side_does_not_have_is_told_from_everything() -> None:
    assert (repr(MISSING), bool(MISSING)) == ("MISSING", False)


def test_differences_are_read_again_from_another_base() -> None:
    one, other, head = of(P=1), of(P=2), of(P=3)
    assert changed(one, head) == [("P", 1, 3)]
    assert changed(other, head) == [("P", 2, 3)]
    # the list is the caller's
    compare(other, head).clear()
    assert changed(other, head) == [("P", 2, 3)]


def test_resources_that_come_and_go() -> None:
    a, b, c = ({"Type": "T", "Properties": {"P": name}} for name in "abc")
    found = compare(assembly({"A": a, "B": b}), assembly({"B": b, "C": c}))
    sides = [(each.resource.logical_id, bool(each.before), bool(each.after)) for each in found]
    assert sides == [("C", False, True), ("A", True, False)]


def test_a_resource_that_becomes_another_type() -> None:
    (found,) = compare(assembly({"A": {"Type": "T"}}), assembly({"A": {"Type": "U"}}))
    assert found.before
    assert found.after
    assert (found.before.type, found.after.type, found.properties) == ("T", "U", ())


def test_attributes_beside_the_properties() -> None:
    before = {"Type": "T", "DeletionPolicy": "Retain", "Metadata": {"a": 1}, "DependsOn": "B"}
    after = {"Type": "T", "UpdateReplacePolicy": "Delete", "Metadata": {"a": 2}}
    (found,) = compare(assembly({"A": before}), assembly({"A": after}))
    assert [(each.path, each.before, each.after) for each in found.attributes] == [
        ("DeletionPolicy", "Retain", MISSING),
        ("UpdateReplacePolicy", MISSING, "Delete"),
    ]
    (found,) = compare(assembly({"A": {**before, "Condition": "C"}}), assembly({"A": {**before, "Condition": "D"}}))
    assert [(each.path, each.before, each.after) for each in found.attributes] == [("Condition", "C", "D")]


@pytest.mark.parametrize("name", ["AWS::CloudFormation::Init", "AWS::CloudFormation::Authentication"])
def test_metadata_that_instances_run_is_compared(name: str) -> None:
    def found(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
        sides = [assembly({"A": {"Type": "T", "Metadata": value}}) for value in (before, after)]
        return [(each.path, each.before, each.after) for change in compare(*sides) for each in change.attributes]

    path = f"Metadata.{name}"
    assert found({name: {"a": 1}}, {name: {"a": 2}}) == [(path, {"a": 1}, {"a": 2})]
    assert found({}, {name: {"a": 2}}) == [(path, MISSING, {"a": 2})]
    assert found({name: {"a": 1}}, {}) == [(path, {"a": 1}, MISSING)]
    assert found({name: {"a": 1}, "b": 1}, {name: {"a": 1}, "b": 2}) == []
    assert found([name], {name: {"a": 2}}) == [(path, MISSING, {"a": 2})]
    assert found({name: {"Ref": "AWS::StackName"}}, {name: "s"}) == []


def test_what_deploys_nothing_else_is_no_change() -> None:
    before, after = {"Type": "T", "Metadata": {"a": 1}, "DependsOn": "B"}, {"Type": "T", "Metadata": {"a": 2}}
    assert compare(assembly({"A": before}), assembly({"A": after})) == []


def test_a_parameter_that_is_followed() -> None:
    properties = {"Name": {"Fn::Sub": "${Stage}-x"}, "Vpc": {"Ref": "Vpc"}}
    resources = {"A": {"Type": "T", "Properties": properties}, "Vpc": {"Type": "AWS::EC2::VPC"}}
    base, head = (assembly(resources, Parameters={"Stage": {"Default": stage}}) for stage in ("dev", "qa"))
    assert changed(base, head) == [("Name", "dev-x", "qa-x")]
    assert changed(base, assembly({**resources, "A": {"Type": "T", "Properties": {"Name": "dev-x", "Vpc": "v"}}})) == [
        ("Vpc", Reference("s", "Vpc"), "v")
    ]


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (("1", "us-east-1"), ("1", "us-east-1"), None),
        (("", ""), ("1", "us-east-1"), None),
        (("1", ""), ("", "us-east-1"), None),
        (("1", "us-east-1"), ("2", "us-east-1"), "s in 1 us-east-1"),
        (("1", "us-east-1"), ("1", "us-west-2"), "s in 1 us-east-1"),
        (("1", ""), ("2", "us-east-1"), "s in 1"),
        (("", "us-east-1"), ("1", "us-west-2"), "s in its account us-east-1"),
    ],
)
def test_a_stack_elsewhere_is_another_one(before: tuple[str, str], after: tuple[str, str], named: str | None) -> None:
    template = {"Resources": {"A": {"Type": "T"}}}
    one, other = (
        Assembly(
            environment="dev",
            stacks=(
                Stack(name="s", template=template, account=account, region=region),
                Stack(name="t", template=template, dependencies=("s",)),
            ),
        )
        for account, region in (before, after)
    )
    renamed = apart(one, other)
    assert [(stack.name, stack.dependencies) for stack in renamed.stacks] == [
        (named or "s", ()),
        ("t", (named or "s",)),
    ]
    found = [each for each in compare(renamed, other) if "t" not in (each.resource.stack, each.resource.logical_id)]
    gone_and_come = [(True, False), (False, True)] if named else []
    assert [(each.before is None, each.after is None) for each in found] == gone_and_come


@pytest.mark.parametrize(
    ("before", "after", "alike"),
    [
        # a name that stands in several regions has the region with it, on the side where it does
        (("s",), ("s in 1 us-east-1", "s in 1 eu-west-1"), ["s in 1 us-east-1"]),
        (("s in 1 us-east-1", "s in 1 eu-west-1"), ("s",), ["s"]),
        (("s in 1 us-east-1", "s in 1 eu-west-1"), ("s in 1 us-east-1", "s in 1 eu-west-1"), None),
    ],
)
def test_stacks_of_one_name_are_paired_by_their_places(
    before: tuple[str, ...], after: tuple[str, ...], alike: list[str] | None
) -> None:
    template = {"Resources": {"A": {"Type": "T"}}}
    base, head = (
        Assembly(
            environment="dev",
            stacks=tuple(
                Stack(
                    name=name, template=template, account="1", region=name.rpartition(" ")[2] if " " in name else EAST
                )
                for name in names
            ),
        )
        for names in (before, after)
    )
    renamed = apart(base, head)
    assert sorted(renamed.by_name.keys() & head.by_name.keys()) == (sorted(after) if alike is None else alike)
    assert len(renamed.by_name) == len(before)
    assert len(compare(renamed, head)) == abs(len(before) - len(after))


EAST = "us-east-1"


def test_from_nothing_and_to_nothing() -> None:
    some = of(P=1)
    assert [(each.before, each.resource.logical_id) for each in compare(EMPTY, some)] == [(None, "A")]
    assert [(each.after, each.resource.logical_id) for each in compare(some, EMPTY)] == [(None, "A")]
    assert compare(some, some) == []


PROPERTIES = st.dictionaries(
    st.sampled_from("PQR"),
    st.recursive(
        st.integers(0, 2) | st.booleans() | st.sampled_from(["a", "b"]),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["Name", "Key", "V"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=3,
)


@given(PROPERTIES, PROPERTIES)
def test_every_difference_has_two_sides(before: dict[str, Any], after: dict[str, Any]) -> None:
    forth, back = changed(of(**before), of(**after)), changed(of(**after), of(**before))
    assert sorted(map(repr, forth)) == sorted(repr((path, old, new)) for path, new, old in back)
    assert changed(of(**before), of(**before)) == []


@row_by_row(
    "before, after, differ",
    [
        # YAML 1.1 has more words for true and false than JSON
        ("yes", "true", False),
        ("YES", '"true"', False),
        ("on", "yes", False),
        ("Off", '"false"', False),
        ("yes", '"yes"', True),
        ("NO", '"NO"', True),
        ("true", '"True"', True),
        # these two are texts
        ("y", '"y"', False),
        ("n", "no", True),
    ],
)
def test_words_for_true_and_false_in_yaml(tmp_path: Path, before: str, after: str, *, differ: bool) -> None:
    """CloudFormation reads unquoted words of YAML 1.1 as booleans, and gives them to services as "true" and "false".

    Sources: github.com/ASFHyP3/hyp3/pull/2061 (tags deployed with the values YES and NO, without and with quotes) and
    github.com/aws/aws-cli/pull/5257 (words that 'aws cloudformation package' quotes).
    """

    def of(value: str) -> Assembly:
        file = tmp_path / "template.yaml"
        tags = f"        - Key: a\n          Value: {value}\n"
        file.write_text(
            f"Resources:\n  A:\n    Type: AWS::S3::Bucket\n    Properties:\n      Tags:\n{tags}", encoding="utf-8"
        )
        return read_template(file)

    assert bool(compare(of(before), of(after))) is differ
