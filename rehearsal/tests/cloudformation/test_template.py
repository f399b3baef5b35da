"""Templates: what is refused, in CloudFormation's words, and what YAML reads as."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.cloudformation.graph import check_acyclic
from hyperpod_cdk_rehearsal.embedded.cloudformation.references import check_references
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from rehearsal.tests.support.tables import row_by_row

TOPIC = {"Type": "AWS::SNS::Topic"}


def refused(document: Any) -> str:
    try:
        template = Template.parse(document if isinstance(document, str) else json.dumps(document))
        check_references(template)
        check_acyclic(template)
    except TemplateError as error:
        return error.message
    return "accepted"


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_template_that_is_nested_too_deeply(brackets: str) -> None:
    opened, closed = ("[", "]") if brackets == "[]" else ('{"A":', "}")
    deep = opened * 100_000 + "1" + closed * 100_000
    with pytest.raises(TemplateError, match="unsupported structure"):
        Template.parse(f'{{"Resources": {{"A": {{"Type": "AWS::SNS::Topic", "Properties": {{"X": {deep}}}}}}}}}')


@row_by_row(
    "document, message",
    [
        ({}, "Template format error: At least one Resources member must be defined."),
        ({"Resources": {"A": TOPIC}, "Extra": 1}, "Invalid template property or properties [Extra]"),
        ([], "Template format error: unsupported structure."),
        (
            {"Resources": {"A": {}}},
            "Template format error: [/Resources/A] Every Resources object must contain a Type member.",
        ),
        ({"Resources": {"A-b": TOPIC}}, "Template format error: Resource name A-b is non alphanumeric."),
        ({"Resources": {"A": {**TOPIC, "Propertys": {}}}}, "Invalid template resource property 'Propertys'"),
        (
            {"Resources": {"A": {**TOPIC, "DeletionPolicy": "Keep"}}},
            "Template error: DeletionPolicy Keep of A is not supported",
        ),
        (
            {"Resources": {"A": {**TOPIC, "UpdateReplacePolicy": "RetainExceptOnCreate"}}},
            "Template error: UpdateReplacePolicy RetainExceptOnCreate of A is not supported",
        ),
        (
            {"Resources": {"A": {**TOPIC, "Properties": {"Tags": [None]}}}},
            "[/Resources/A/Properties/Tags/0] 'null' values are not allowed in templates",
        ),
        (
            {"Resources": {f"R{i}": TOPIC for i in range(501)}},
            "Template format error: Number of resources, 501, is greater than maximum allowed, 500",
        ),
        ({"Resources": {"A": TOPIC}, "Description": "d" * 1024}, "accepted"),
        (
            {"Resources": {"A": TOPIC}, "Description": "d" * 1023 + "\u00e9"},
            "Template format error: 'Description' length is greater than 1024.",
        ),
        ({"Resources": {"A": TOPIC}, "AWSTemplateFormatVersion": "2010-09-09"}, "accepted"),
        (
            {"Resources": {"A": TOPIC}, "AWSTemplateFormatVersion": "2010-09-10"},
            "Template format error: unsupported value for AWSTemplateFormatVersion.",
        ),
        (
            {"Resources": {"A": TOPIC}, "Parameters": {"P": {"Default": "a"}}},
            "Template format error: Every Parameters object must contain a Type member.",
        ),
        *(
            ({"Resources": {"A": TOPIC}, "Parameters": {"P": {"Type": kind}}}, "accepted")
            for kind in (
                "String",
                "List<Number>",
                "CommaDelimitedList",
                "AWS::EC2::VPC::Id",
                "List<AWS::EC2::Subnet::Id>",
                "AWS::SSM::Parameter::Value<List<String>>",
            )
        ),
        (
            {"Resources": {"A": TOPIC}, "Parameters": {"P": {"Type": "Strin"}}},
            "Template format error: Unrecognized parameter type: Strin",
        ),
        ({"Resources": {"A": {**TOPIC, "DependsOn": "A"}}}, "Circular dependency between resources: [A]"),
        (
            {"Resources": {"A": TOPIC}, "Outputs": {"O": {}}},
            "Template format error: [/Outputs/O] Every Outputs member must contain a Value object",
        ),
        (
            {"Resources": {"A": TOPIC}, "Transform": "AWS::Serverless-2016-10-31"},
            "No transform named AWS::Serverless-2016-10-31 found.",
        ),
        (
            {"Resources": {"A": {**TOPIC, "Properties": {"TopicName": {"Ref": "B"}}}}},
            "Template format error: Unresolved resource dependencies [B] in the Resources block of the template",
        ),
        (
            {"Resources": {"A": {**TOPIC, "DependsOn": "B"}}},
            "Template format error: Unresolved resource dependencies [B] in the Resources block of the template",
        ),
        (
            {"Resources": {"A": TOPIC}, "Outputs": {"O": {"Value": {"Fn::Sub": "${B} ${!C} ${A}"}}}},
            "Template format error: Unresolved resource dependencies [B] in the Outputs block of the template",
        ),
        (
            {"Resources": {"A": {**TOPIC, "Properties": {"TopicName": {"Fn::GetAtt": ["B", "Arn"]}}}}},
            "Template error: instance of Fn::GetAtt references undefined resource B",
        ),
        (
            {"Resources": {"A": {**TOPIC, "Condition": "C"}}},
            "Template format error: Unresolved condition dependency C in the Resources block of the template",
        ),
        (
            {"Resources": {"A": {**TOPIC, "Properties": {"TopicName": {"Fn::FindInMap": ["M", "a", "b"]}}}}},
            "Template error: Mapping named 'M' is not present in the 'Mappings' section.",
        ),
        (
            {
                "Resources": {
                    "A": {**TOPIC, "DependsOn": ["B"]},
                    "B": {**TOPIC, "Properties": {"TopicName": {"Fn::GetAtt": "C.TopicName"}}},
                    "C": {**TOPIC, "Properties": {"TopicName": {"Fn::Sub": "x-${A.TopicName}"}}},
                    "D": TOPIC,
                }
            },
            "Circular dependency between resources: [A, B, C]",
        ),
        (
            {"Resources": {"A": {**TOPIC, "Properties": {"TopicName": {"Ref": "A"}}}}},
            "Circular dependency between resources: [A]",
        ),
    ],
)
def test_refused(document: Any, message: str) -> None:
    assert refused(document) == message


def test_five_hundred_resources_are_allowed() -> None:
    assert len(Template.parse(json.dumps({"Resources": {f"R{i}": TOPIC for i in range(500)}})).resources) == 500


def test_yaml_short_tags_and_dates() -> None:
    template = Template.parse(
        """
        AWSTemplateFormatVersion: 2010-09-09
        Conditions: {Big: !Equals [!Ref AWS::Region, us-west-2]}
        Resources:
          Topic:
            Type: AWS::SNS::Topic
            Properties:
              TopicName: !Sub "${AWS::StackName}-x"
              DisplayName: !GetAtt Other.TopicName.More
              Subscription: !If [Big, [], !Ref AWS::NoValue]
          Other: {Type: AWS::SNS::Topic}
        """
    )
    assert template.document["AWSTemplateFormatVersion"] == "2010-09-09"
    assert template.conditions == {"Big": {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-west-2"]}}
    assert template.resources["Topic"].properties == {
        "TopicName": {"Fn::Sub": "${AWS::StackName}-x"},
        "DisplayName": {"Fn::GetAtt": ["Other", "TopicName.More"]},
        "Subscription": {"Fn::If": ["Big", [], {"Ref": "AWS::NoValue"}]},
    }


def test_broken_yaml() -> None:
    assert refused("a: [").startswith("Template format error: YAML not well-formed. (")


def test_definition_defaults() -> None:
    definition = Template.parse(json.dumps({"Resources": {"A": {**TOPIC, "DependsOn": "A2"}, "A2": TOPIC}})).resources[
        "A"
    ]
    assert (definition.depends_on, definition.deletion_policy, definition.update_replace_policy) == (
        ("A2",),
        "Delete",
        "Delete",
    )
