"""Parameters: given, previous, default, from Systems Manager; constraints in CloudFormation's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.cloudformation.parameters import ParameterValue, resolve_parameters
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from rehearsal.tests.support.tables import row_by_row


def resolve(
    declared: dict[str, Any], given: list[dict[str, Any]], previous: dict[str, ParameterValue] | None = None
) -> dict[str, ParameterValue]:
    template = Template.parse(json.dumps({"Parameters": declared, "Resources": {"A": {"Type": "AWS::SNS::Topic"}}}))
    return resolve_parameters(template, given, previous or {}, lambda name: f"value of {name}")


def value(key: str, text: str) -> dict[str, str]:
    return {"ParameterKey": key, "ParameterValue": text}


@row_by_row(
    "declaration, given, expected",
    [
        ({"Type": "String"}, "a", "a"),
        ({"Type": "Number", "MinValue": 1, "MaxValue": 3}, "3", "3"),
        ({"Type": "CommaDelimitedList"}, "a, b", ["a", "b"]),
        ({"Type": "List<AWS::EC2::Subnet::Id>"}, "", []),
        ({"Type": "AWS::SSM::Parameter::Value<String>"}, "/x", "value of /x"),
        ({"Type": "AWS::SSM::Parameter::Value<List<String>>"}, "/x,y", ["value of /x", "y"]),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "abc", "abc"),
        ({"Type": "String", "MinLength": 3, "MaxLength": 3}, "abc", "abc"),
    ],
)
def test_values(declaration: dict[str, Any], given: str, expected: Any) -> None:
    assert resolve({"P": declaration}, [value("P", given)])["P"].value == expected


def test_default_previous_and_given() -> None:
    declared = {"A": {"Type": "String", "Default": "d"}, "B": {"Type": "Number", "Default": 5}, "C": {"Type": "String"}}
    previous = {"C": ParameterValue("C", "old", "old", no_echo=False)}
    found = resolve(declared, [{"ParameterKey": "C", "UsePreviousValue": True}, value("A", "given")], previous)
    assert {key: parameter.text for key, parameter in found.items()} == {"A": "given", "B": "5", "C": "old"}


@row_by_row(
    "declaration, given, message",
    [
        ({"Type": "String", "AllowedValues": ["a", "b"]}, "c", "Parameter 'P' must be one of AllowedValues"),
        ({"Type": "CommaDelimitedList", "AllowedValues": ["a"]}, "a,b", "Parameter 'P' must be one of AllowedValues"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "a1", "Parameter 'P' must match pattern [a-z]+"),
        ({"Type": "Number", "MinValue": 1}, "0", "Parameter 'P' must be a number not less than 1"),
        ({"Type": "Number", "MaxValue": 3}, "4", "Parameter 'P' must be a number not greater than 3"),
        ({"Type": "Number"}, "x", "Parameter 'P' must be a number."),
        ({"Type": "String", "MinLength": 3}, "ab", "Parameter 'P' must contain at least 3 characters"),
        ({"Type": "String", "MaxLength": 3}, "abcd", "Parameter 'P' must contain at most 3 characters"),
        (
            {"Type": "String", "AllowedValues": ["a"], "ConstraintDescription": "only a"},
            "c",
            "Parameter P failed to satisfy constraint: only a",
        ),
    ],
)
def test_constraints(declaration: dict[str, Any], given: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        resolve({"P": declaration}, [value("P", given)])
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "Parameters: [P] must have values"),
        ([value("P", "x"), value("Q", "x")], "Parameters: [Q] do not exist in the template"),
        (
            [{"ParameterKey": "P", "UsePreviousValue": True}],
            (
                "Invalid input for parameter key P. Cannot specify usePreviousValue as true "
                "for a parameter key not in the previous template"
            ),
        ),
    ],
)
def test_wrong_keys(given: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        resolve({"P": {"Type": "String"}}, given)
    assert caught.value.message == message


def test_secrets_are_masked_and_resolved_values_shown() -> None:
    found = resolve(
        {"S": {"Type": "String", "NoEcho": True}, "P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/p"}},
        [value("S", "secret")],
    )
    assert found["S"].described() == {"ParameterKey": "S", "ParameterValue": "****"}
    assert found["P"].described() == {"ParameterKey": "P", "ParameterValue": "/p", "ResolvedValue": "value of /p"}
