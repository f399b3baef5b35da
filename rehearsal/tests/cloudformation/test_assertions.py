"""The Rules section."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.cloudformation.assertions import check_rules
from hyperpod_cdk_rehearsal.embedded.cloudformation.resolver import Resolver, Scope
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from rehearsal.tests.support.tables import row_by_row

VALUES = {"Version": "6", "Zones": ["a", "b"], "Name": "x"}
TYPES = {"Version": "String", "Zones": "CommaDelimitedList", "Name": "String"}


def resolver(rules: dict[str, Any]) -> Resolver:
    document = {
        "Parameters": {name: {"Type": TYPES[name]} for name in VALUES},
        "Rules": rules,
        "Resources": {"A": {"Type": "AWS::SNS::Topic"}},
    }
    return Resolver(
        Scope(
            template=Template.parse(json.dumps(document)),
            parameters=VALUES,
            pseudo={"AWS::Region": "us-west-2"},
            ref=lambda name: name,
            attribute=lambda name, _attribute: name,
            import_value=lambda name: name,
            availability_zones=lambda _region: [],
        )
    )


@row_by_row(
    "expression, holds",
    [
        ({"Fn::Equals": [{"Ref": "Version"}, "6"]}, True),
        ({"Fn::Contains": [["1", "2"], {"Ref": "Version"}]}, False),
        # what CDK asserts of the bootstrap version
        ({"Fn::Not": [{"Fn::Contains": [["1", "2", "3", "4", "5"], {"Ref": "Version"}]}]}, True),
        ({"Fn::Contains": [["a", "b", "c"], {"Ref": "Zones"}]}, True),
        ({"Fn::EachMemberIn": [{"Ref": "Zones"}, ["a"]]}, False),
        ({"Fn::EachMemberIn": [{"Ref": "Zones"}, ["a", "b"]]}, True),
        ({"Fn::EachMemberEquals": [["x", "x"], {"Ref": "Name"}]}, True),
        ({"Fn::EachMemberEquals": [{"Ref": "Zones"}, "a"]}, False),
        ({"Fn::EachMemberIn": [{"Fn::RefAll": "String"}, ["6", "x"]]}, True),
        ({"Fn::And": [{"Fn::Equals": ["a", "a"]}, {"Fn::Equals": ["a", "b"]}]}, False),
        ({"Fn::Or": [{"Fn::Equals": ["a", "a"]}, {"Fn::Equals": ["a", "b"]}]}, True),
        ({"Fn::Equals": [{"Ref": "AWS::Region"}, "us-west-2"]}, True),
    ],
)
def test_functions(expression: dict[str, Any], *, holds: bool) -> None:
    checked = resolver({"Rule": {"Assertions": [{"Assert": expression, "AssertDescription": "because"}]}})
    if holds:
        check_rules(checked)
        return
    with pytest.raises(TemplateError) as caught:
        check_rules(checked)
    assert caught.value.message == "Template validation error: Rule Rule: because"


def test_a_rule_whose_condition_is_false_is_skipped() -> None:
    never = {"Fn::Equals": ["a", "b"]}
    check_rules(resolver({"Rule": {"RuleCondition": never, "Assertions": [{"Assert": never}]}}))


def test_every_failed_assertion_is_named() -> None:
    never = {"Assert": {"Fn::Equals": ["a", "b"]}}
    with pytest.raises(TemplateError) as caught:
        check_rules(
            resolver({"One": {"Assertions": [never]}, "Two": {"Assertions": [{**never, "AssertDescription": "2"}]}})
        )
    assert caught.value.message == "Template validation error: Rule One: assertion failed; Rule Two: 2"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"Fn::If": ["a", "b", "c"]}, "Template format error: Fn::If is not a rule-specific intrinsic function"),
        ("true", "Template format error: a rule needs one rule-specific function, got 'true'"),
    ],
)
def test_malformed(expression: Any, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        check_rules(resolver({"Rule": {"Assertions": [{"Assert": expression}]}}))
    assert caught.value.message == message
