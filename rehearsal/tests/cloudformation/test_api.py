"""The API: change sets, what is refused before anything starts, and what is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Stack, stacks_of
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError

Resource = Callable[..., dict[str, Any]]


def body(**resources: Any) -> str:
    return json.dumps({"Resources": resources})


def change_set(cloud: Any, template: str, *, kind: str = "UPDATE", **request: Any) -> dict[str, Any]:
    created = cloud.ask(
        "CreateChangeSet", StackName="net", ChangeSetName="cs", ChangeSetType=kind, TemplateBody=template, **request
    )
    described: dict[str, Any] = cloud.ask("DescribeChangeSet", ChangeSetName=created["Id"], IncludePropertyValues=True)
    return described


WRONG_NAME = "ValidationError: 1 validation error detected: Value '{}' at 'stackName' failed to satisfy constraint: {}"


class TestRequests:
    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("1net", "Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"),
            ("net_1", "Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"),
            ("n" * 129, "Member must have length less than or equal to 128"),
        ],
    )
    def test_names_that_no_stack_can_have(self, cloud: Any, parameter: Resource, name: str, wrong: str) -> None:
        template = body(A=parameter("a"))
        assert cloud.refused("CreateStack", StackName=name, TemplateBody=template) == WRONG_NAME.format(name, wrong)
        assert cloud.ask("DescribeStacks")["Stacks"] == []

    def test_the_longest_name(self, cloud: Any, parameter: Resource) -> None:
        cloud.ask("CreateStack", StackName="n" * 128, TemplateBody=body(A=parameter("a")))
        assert cloud.settled("n" * 128) == "CREATE_COMPLETE"

    def test_a_change_set_for_a_new_stack_with_such_a_name(self, cloud: Any, parameter: Resource) -> None:
        said = cloud.refused(
            "CreateChangeSet",
            StackName="n" * 129,
            ChangeSetName="cs",
            ChangeSetType="CREATE",
            TemplateBody=body(A=parameter("a")),
        )
        assert said == WRONG_NAME.format("n" * 129, "Member must have length less than or equal to 128")

    def test_templates_of_every_size(self, cloud: Any, parameter: Resource) -> None:
        template = body(A=parameter("a"))
        url, stored = "https://templates.s3.amazonaws.com/t", cloud.context.client("s3").objects
        stored["templates", "t"] = template.ljust(1_000_000)
        cloud.ask("ValidateTemplate", TemplateURL=url)
        stored["templates", "t"] = template.ljust(1_000_001)
        assert cloud.refused("ValidateTemplate", TemplateURL=url) == (
            "ValidationError: Template may not exceed 1000000 bytes in size."
        )
        cloud.ask("ValidateTemplate", TemplateBody=template.ljust(51_200))
        assert cloud.refused("ValidateTemplate", TemplateBody=template.ljust(51_201)) == (
            f"ValidationError: 1 validation error detected: Value '{template.ljust(256)}...' at 'templateBody'"
            " failed to satisfy constraint: Member must have length less than or equal to 51200"
        )
        assert cloud.refused("ValidateTemplate", TemplateURL=url, TemplateBody=template) == (
            "ValidationError: Only one of TemplateBody or TemplateURL can be specified."
        )


class TestChangeSets:
    def test_create_review_execute(self, cloud: Any, parameter: Resource) -> None:
        described = change_set(cloud, body(A=parameter("a")), kind="CREATE")
        assert (described["Status"], described["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
        assert cloud.stack("net").status == "REVIEW_IN_PROGRESS"
        assert cloud.ask("GetTemplate", StackName="net")["TemplateBody"] == ""
        cloud.ask("ExecuteChangeSet", StackName="net", ChangeSetName="cs")
        assert cloud.settled("net") == "CREATE_COMPLETE"
        assert cloud.refused("ExecuteChangeSet", StackName="net", ChangeSetName="cs").startswith(
            "InvalidChangeSetStatus"
        )
        assert cloud.ask("ListChangeSets", StackName="net")["Summaries"] == []

    def test_a_name_that_a_call_at_the_same_time_has_made_is_taken(self, cloud: Any) -> None:
        stacks = stacks_of(cloud.context)
        # both have looked and found none
        first, second = (Stack(cloud.context, "net") for _ in range(2))
        stacks.add(first)
        with pytest.raises(ServiceError, match=r"Stack \[net\] already exists"):
            stacks.add(second)
        assert [each for each in stacks.active() if each.name == "net"] == [first]

    def test_property_level_details(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", json.loads(body(A=parameter("a", Name="one"), B=parameter({"Ref": "A"}), C=parameter("c"))))
        template = body(A=parameter("a", Name="two"), B=parameter({"Ref": "A"}), D=parameter({"Ref": "A"}))
        changes = {
            change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"]
            for change in change_set(cloud, template)["Changes"]
        }
        assert {name: change["Action"] for name, change in changes.items()} == {
            "A": "Modify",
            "B": "Modify",
            "C": "Remove",
            "D": "Add",
        }
        assert (changes["A"]["Replacement"], changes["A"]["PolicyAction"]) == ("True", "ReplaceAndDelete")
        assert changes["A"]["Details"] == [
            {
                "Target": {
                    "Attribute": "Properties",
                    "Name": "Name",
                    "RequiresRecreation": "Always",
                    "Path": "/Properties/Name",
                    "AttributeChangeType": "Modify",
                    "BeforeValue": "one",
                    "AfterValue": "two",
                },
                "Evaluation": "Static",
                "ChangeSource": "DirectModification",
            }
        ]
        detail = changes["B"]["Details"][0]
        assert (detail["Evaluation"], detail["ChangeSource"], detail["CausingEntity"]) == (
            "Dynamic",
            "ResourceReference",
            "A",
        )
        assert detail["Target"]["AfterValue"] == "{{changeSet:KNOWN_AFTER_APPLY}}"
        assert (changes["B"]["Replacement"], changes["C"]["PolicyAction"]) == ("False", "Delete")

    def test_a_parameter_is_named_as_the_cause(self, cloud: Any, parameter: Resource) -> None:
        template = {
            "Parameters": {"P": {"Type": "String", "Default": "a"}},
            "Resources": {"A": parameter({"Ref": "P"})},
        }
        cloud.deploy("net", template)
        described = change_set(cloud, json.dumps(template), Parameters=[{"ParameterKey": "P", "ParameterValue": "b"}])
        detail = described["Changes"][0]["ResourceChange"]["Details"][0]
        assert (detail["ChangeSource"], detail["CausingEntity"]) == ("ParameterReference", "P")

    def test_values_are_left_out_unless_asked_for(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", json.loads(body(A=parameter("a"))))
        change_set(cloud, body(A=parameter("b")))
        plain = cloud.ask("DescribeChangeSet", StackName="net", ChangeSetName="cs")["Changes"][0]["ResourceChange"]
        assert plain["Details"][0]["Target"] == {
            "Attribute": "Properties",
            "Name": "Value",
            "RequiresRecreation": "Never",
        }
        assert "AfterContext" not in plain

    def test_no_changes(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", json.loads(body(A=parameter("a"))))
        described = change_set(cloud, body(A=parameter("a")))
        assert (described["Status"], described["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
        assert described["StatusReason"] == (
            "The submitted information didn't contain changes. Submit different information to create a change set."
        )

    @pytest.mark.parametrize("what", ["outputs", "tags"])
    def test_changes_beside_the_resources(self, cloud: Any, what: str) -> None:
        # a route takes no tags, so that nothing of the resource itself changes
        template = {"Resources": {"A": {"Type": "Custom::Thing", "Properties": {"ServiceToken": "arn"}}}}
        cloud.deploy("net", template)
        if what == "outputs":
            described = change_set(cloud, json.dumps({**template, "Outputs": {"A": {"Value": {"Ref": "A"}}}}))
        else:
            described = change_set(cloud, json.dumps(template), Tags=[{"Key": "team", "Value": "ml"}])
        assert (described["Status"], described["Changes"]) == ("CREATE_COMPLETE", [])

    def test_pages(self, cloud: Any, parameter: Resource) -> None:
        created = cloud.ask(
            "CreateChangeSet",
            StackName="net",
            ChangeSetName="cs",
            ChangeSetType="CREATE",
            TemplateBody=body(**{f"R{i}": parameter("x") for i in range(130)}),
        )
        first = cloud.ask("DescribeChangeSet", ChangeSetName=created["Id"])
        second = cloud.ask("DescribeChangeSet", ChangeSetName=created["Id"], NextToken=first["NextToken"])
        assert (len(first["Changes"]), len(second["Changes"]), "NextToken" in second) == (100, 30, False)

    def test_deleting_what_is_not_there(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", json.loads(body(A=parameter("a"))))
        assert cloud.ask("DeleteChangeSet", StackName="net", ChangeSetName="cs") == {}
        assert cloud.refused("DescribeChangeSet", StackName="net", ChangeSetName="cs") == (
            "ChangeSetNotFound: ChangeSet [cs] does not exist"
        )

    @pytest.mark.parametrize(
        ("kind", "exists", "message"),
        [
            ("UPDATE", False, "Stack [net] does not exist"),
            ("CREATE", True, "Stack [net] already exists and cannot be created again with the changeSet [cs]."),
            ("IMPORT", True, "You must specify ResourcesToImport when ChangeSetType is IMPORT"),
        ],
    )
    def test_wrong_kind(self, cloud: Any, parameter: Resource, kind: str, message: str, *, exists: bool) -> None:
        if exists:
            cloud.deploy("net", json.loads(body(A=parameter("a"))))
        assert (
            cloud.refused(
                "CreateChangeSet",
                StackName="net",
                ChangeSetName="cs",
                ChangeSetType=kind,
                TemplateBody=body(A=parameter("b")),
            )
            == f"ValidationError: {message}"
        )

    def test_a_review_that_is_abandoned(self, cloud: Any, parameter: Resource) -> None:
        change_set(cloud, body(A=parameter("a")), kind="CREATE")
        assert cloud.delete("net") == "DELETE_COMPLETE"
        assert cloud.handler.calls == []


class TestRefusedBeforeAnythingStarts:
    @pytest.mark.parametrize(
        ("template", "message"),
        [
            (
                {"Resources": {"A": {"Type": "AWS::Nothing::Here"}}},
                "Template format error: Unrecognized resource types: [AWS::Nothing::Here]",
            ),
            (
                {"Resources": {"A": {"Type": "AWS::CloudFormation::Stack"}}},
                "the rehearsal does not deploy nested stacks (AWS::CloudFormation::Stack)",
            ),
            (
                {
                    "Resources": {"A": {"Type": "AWS::S3::Bucket"}},
                    "Outputs": {"O": {"Value": {"Fn::GetAtt": "A.Nope"}}},
                },
                "Template error: resource A does not support attribute type Nope in Fn::GetAtt",
            ),
        ],
    )
    def test_templates(self, cloud: Any, template: dict[str, Any], message: str) -> None:
        refused = cloud.refused("CreateStack", StackName="net", TemplateBody=json.dumps(template))
        assert refused == f"ValidationError: {message}"
        assert cloud.ask("DescribeStacks")["Stacks"] == []

    def test_rules(self, cloud: Any, parameter: Resource) -> None:
        template = json.dumps(
            {
                "Parameters": {"Chart": {"Type": "String", "Default": "placeholder"}},
                "Rules": {
                    "ChartIsPulled": {
                        "Assertions": [
                            {
                                "Assert": {"Fn::Equals": [{"Ref": "Chart"}, "rehearsal"]},
                                "AssertDescription": "run 'hyperpod-cdk charts pull' first",
                            }
                        ]
                    }
                },
                "Resources": {"A": parameter("a")},
            }
        )
        message = "ValidationError: Template validation error: Rule ChartIsPulled: run 'hyperpod-cdk charts pull' first"
        assert cloud.refused("CreateStack", StackName="net", TemplateBody=template) == message
        assert (
            cloud.refused(
                "CreateChangeSet", StackName="net", ChangeSetName="cs", ChangeSetType="CREATE", TemplateBody=template
            )
            == message
        )
        assert cloud.ask("ListStacks")["StackSummaries"] == []
        rehearsal = [{"ParameterKey": "Chart", "ParameterValue": "rehearsal"}]
        cloud.ask("CreateStack", StackName="net", TemplateBody=template, Parameters=rehearsal)
        assert cloud.settled("net") == "CREATE_COMPLETE"

    @pytest.mark.parametrize(
        ("properties", "needed", "enough"),
        [
            ({}, "CAPABILITY_IAM", ["CAPABILITY_IAM"]),
            ({}, "CAPABILITY_IAM", ["CAPABILITY_NAMED_IAM"]),
            ({"RoleName": "r"}, "CAPABILITY_NAMED_IAM", ["CAPABILITY_NAMED_IAM"]),
        ],
    )
    def test_capabilities(self, cloud: Any, properties: dict[str, Any], needed: str, enough: list[str]) -> None:
        role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {}, **properties}}
        template = body(A=role)
        assert cloud.refused("CreateStack", StackName="net", TemplateBody=template) == (
            f"InsufficientCapabilitiesException: Requires capabilities : [{needed}]"
        )
        cloud.ask("CreateStack", StackName="net", TemplateBody=template, Capabilities=enough)
        assert cloud.settled("net") == "CREATE_COMPLETE"

    def test_a_stack_that_failed_to_be_created_cannot_be_updated(self, cloud: Any, parameter: Resource) -> None:
        cloud.handler.fail("create", "A")
        cloud.deploy("net", json.loads(body(A=parameter("a"))))
        stack_id = cloud.stack("net").stack_id
        assert cloud.refused("UpdateStack", StackName="net", TemplateBody=body(A=parameter("b"))) == (
            f"ValidationError: Stack:{stack_id} is in ROLLBACK_COMPLETE state and can not be updated."
        )

    def test_a_parameter_from_systems_manager_must_exist(self, cloud: Any, parameter: Resource) -> None:
        declared = {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/version"}}
        template = json.dumps({"Parameters": declared, "Resources": {"A": parameter({"Ref": "P"})}})
        assert cloud.refused("CreateStack", StackName="net", TemplateBody=template) == (
            "ValidationError: Unable to fetch parameters [/version] from parameter store for this account."
        )
        cloud.clients.parameters["/version"] = "21"
        cloud.ask("CreateStack", StackName="net", TemplateBody=template)
        cloud.settled("net")
        assert cloud.handler.existing["A-1"]["Value"] == "21"


class TestShown:
    def test_a_stack(self, cloud: Any, parameter: Resource) -> None:
        template = {
            "Description": "the network",
            "Parameters": {"Secret": {"Type": "String", "NoEcho": True}},
            "Resources": {"A": parameter("a")},
            "Outputs": {"A": {"Value": {"Ref": "A"}, "Description": "its name", "Export": {"Name": "a"}}},
        }
        cloud.deploy(
            "net",
            template,
            Parameters=[{"ParameterKey": "Secret", "ParameterValue": "s"}],
            Tags=[{"Key": "team", "Value": "ml"}],
        )
        described = cloud.ask("DescribeStacks", StackName="net")["Stacks"][0]
        assert described["Description"] == "the network"
        assert described["Parameters"] == [{"ParameterKey": "Secret", "ParameterValue": "****"}]
        assert described["Tags"] == [{"Key": "team", "Value": "ml"}]
        assert described["Outputs"] == [
            {"OutputKey": "A", "OutputValue": "A-1", "Description": "its name", "ExportName": "a"}
        ]
        assert json.loads(cloud.ask("GetTemplate", StackName="net")["TemplateBody"]) == template

    def test_letters_that_are_not_ascii_come_back_as_question_marks(self, cloud: Any, parameter: Resource) -> None:
        template = {"Description": "Zürich 漢😀", "Resources": {"A": parameter("a")}}
        cloud.ask("CreateStack", StackName="net", TemplateBody=json.dumps(template, ensure_ascii=False))
        told = json.loads(cloud.ask("GetTemplate", StackName="net")["TemplateBody"])
        assert told == {**template, "Description": "Z?rich ??"}
        assert cloud.ask("DescribeStacks", StackName="net")["Stacks"][0]["Description"] == "Zürich 漢😀"

    def test_resources_and_events(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", json.loads(body(A={**parameter("a"), "Metadata": {"path": "x"}})))
        assert cloud.ask("DescribeStackResources", PhysicalResourceId="A-1")["StackResources"][0]["StackName"] == "net"
        detail = cloud.ask("DescribeStackResource", StackName="net", LogicalResourceId="A")["StackResourceDetail"]
        assert (detail["PhysicalResourceId"], detail["Metadata"]) == ("A-1", '{"path": "x"}')
        summaries = cloud.ask("ListStackResources", StackName="net")["StackResourceSummaries"]
        assert [(s["LogicalResourceId"], s["ResourceStatus"]) for s in summaries] == [("A", "CREATE_COMPLETE")]
        events = cloud.ask("DescribeStackEvents", StackName="net")["StackEvents"]
        assert [event["ResourceStatus"] for event in events][:2] == ["CREATE_COMPLETE", "CREATE_COMPLETE"]
        assert cloud.refused("DescribeStackEvents", StackName="x") == "ValidationError: Stack [x] does not exist"

    def test_a_template_is_summarised_and_validated(self, cloud: Any, parameter: Resource) -> None:
        template = json.dumps(
            {
                "Parameters": {"P": {"Type": "String", "Default": "d", "AllowedValues": ["d"]}},
                "Resources": {"A": parameter("a"), "R": {"Type": "AWS::IAM::Role"}},
            }
        )
        summary = cloud.ask("GetTemplateSummary", TemplateBody=template)
        assert summary["ResourceTypes"] == ["AWS::IAM::Role", "AWS::SSM::Parameter"]
        assert summary["Capabilities"] == ["CAPABILITY_IAM"]
        assert cloud.ask("ValidateTemplate", TemplateBody=template)["Parameters"] == [
            {"ParameterKey": "P", "NoEcho": False, "DefaultValue": "d"}
        ]

    def test_types_and_policies(self, cloud: Any, parameter: Resource) -> None:
        assert cloud.ask("DescribeType", Type="RESOURCE", TypeName="AWS::S3::Bucket")["TypeName"] == "AWS::S3::Bucket"
        assert cloud.refused("DescribeType", TypeName="AWS::No::Type").startswith("TypeNotFoundException")
        cloud.deploy("net", json.loads(body(A=parameter("a"))))
        assert cloud.ask("GetStackPolicy", StackName="net") == {}
        cloud.ask("SetStackPolicy", StackName="net", StackPolicyBody="{}")
        assert cloud.ask("GetStackPolicy", StackName="net") == {"StackPolicyBody": "{}"}
