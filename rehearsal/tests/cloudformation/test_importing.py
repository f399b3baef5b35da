"""IMPORT change sets: what CloudFormation refuses, what an import does, and what it never does."""

from __future__ import annotations

import json
from typing import Any

import pytest


def parameter(name: str, value: str = "a", **more: Any) -> dict[str, Any]:
    properties = {"Type": "String", "Name": name, "Value": value}
    return {"Type": "AWS::SSM::Parameter", "DeletionPolicy": "Retain", "Properties": properties, **more}


def wanted(logical_id: str, name: str, resource_type: str = "AWS::SSM::Parameter", key: str = "Name") -> dict[str, Any]:
    return {"LogicalResourceId": logical_id, "ResourceType": resource_type, "ResourceIdentifier": {key: name}}


def asked(template: dict[str, Any], *rows: dict[str, Any], stack: str = "net") -> dict[str, Any]:
    return {
        "StackName": stack,
        "ChangeSetName": "import",
        "ChangeSetType": "IMPORT",
        "TemplateBody": json.dumps(template),
        "ResourcesToImport": list(rows),
        "Capabilities": ["CAPABILITY_IAM"],
    }


def resources(**found: Any) -> dict[str, Any]:
    return {"Resources": found}


def imported(cloud: Any, template: dict[str, Any], *rows: dict[str, Any], stack: str = "net", **more: Any) -> str:
    cloud.ask("CreateChangeSet", **asked(template, *rows, stack=stack), **more)
    cloud.ask("ExecuteChangeSet", StackName=stack, ChangeSetName="import")
    status: str = cloud.settled(stack)
    return status


def test_into_a_new_stack(cloud: Any) -> None:
    cloud.handler.existing["a"] = {}
    created = cloud.ask("CreateChangeSet", **asked(resources(A=parameter("a")), wanted("A", "a")))
    described = cloud.ask("DescribeChangeSet", ChangeSetName=created["Id"])
    assert described["Changes"] == [
        {
            "Type": "Resource",
            "ResourceChange": {
                "Action": "Import",
                "LogicalResourceId": "A",
                "PhysicalResourceId": "a",
                "ResourceType": "AWS::SSM::Parameter",
                "Scope": [],
                "Details": [],
            },
        }
    ]
    cloud.ask("ExecuteChangeSet", StackName="net", ChangeSetName="import")
    assert cloud.settled("net") == "IMPORT_COMPLETE"
    # the resource was looked at and not touched
    assert cloud.handler.calls == [("read", "A")]
    assert cloud.events("net") == [
        ("net", "IMPORT_IN_PROGRESS"),
        ("A", "IMPORT_IN_PROGRESS"),
        ("A", "IMPORT_COMPLETE"),
        ("net", "IMPORT_COMPLETE"),
    ]
    assert cloud.ask("DescribeStackResources", StackName="net")["StackResources"][0]["PhysicalResourceId"] == "a"


def test_import_into_an_existing_stack_and_continue(cloud: Any) -> None:
    cloud.handler.existing["a"] = {}
    first = resources(B=parameter("b"))
    cloud.deploy("net", first)
    both = resources(B=parameter("b"), A=parameter("a"))
    assert imported(cloud, both, wanted("A", "a")) == "IMPORT_COMPLETE"
    # values are not compared with reality; a template that then changes is an update in place
    changed = resources(B=parameter("b"), A=parameter("a", "other"))
    assert cloud.deploy("net", changed) == "UPDATE_COMPLETE"
    assert cloud.handler.calls == [("update", "A")]
    # the way back: it leaves the template, and stays
    assert cloud.deploy("net", first) == "UPDATE_COMPLETE"
    assert cloud.handler.calls == []
    assert "a" in cloud.handler.existing


def test_a_stack_that_goes_leaves_what_it_imported(cloud: Any) -> None:
    cloud.handler.existing["a"] = {}
    assert imported(cloud, resources(A=parameter("a")), wanted("A", "a")) == "IMPORT_COMPLETE"
    assert cloud.delete("net") == "DELETE_COMPLETE"
    assert "a" in cloud.handler.existing


def test_tags_of_the_stack_are_put_on_it(cloud: Any) -> None:
    cloud.handler.existing["a"] = {}
    tags = [{"Key": "team", "Value": "ml"}]
    assert imported(cloud, resources(A=parameter("a")), wanted("A", "a"), Tags=tags) == "IMPORT_COMPLETE"
    assert cloud.handler.existing["a"]["Tags"] == {"team": "ml"}
    assert [each for each in cloud.events("net") if each[0] == "A"][-2:] == [
        ("A", "UPDATE_IN_PROGRESS"),
        ("A", "UPDATE_COMPLETE"),
    ]


def test_what_does_not_exist_takes_the_whole_import_back(cloud: Any) -> None:
    cloud.handler.existing["a"] = {}
    both = resources(A=parameter("a"), B=parameter("b"))
    assert imported(cloud, both, wanted("A", "a"), wanted("B", "b")) == "IMPORT_ROLLBACK_COMPLETE"
    assert "there is no b" in cloud.reason("net", "B")
    assert cloud.stack("net").resources == {}
    assert cloud.handler.existing == {"a": {}}


def test_what_another_stack_owns(cloud: Any) -> None:
    cloud.handler.existing["a"] = {}
    assert imported(cloud, resources(A=parameter("a")), wanted("A", "a")) == "IMPORT_COMPLETE"
    again = imported(cloud, resources(C=parameter("a")), wanted("C", "a"), stack="other")
    assert again == "IMPORT_ROLLBACK_COMPLETE"
    assert "Resource a already exists in stack" in cloud.reason("other", "C")


def test_what_the_schema_forbids(cloud: Any) -> None:
    cloud.handler.existing["a"] = {}
    bad = parameter("a")
    bad["Properties"]["Tier"] = "Golden"
    assert imported(cloud, resources(A=bad), wanted("A", "a")) == "IMPORT_ROLLBACK_COMPLETE"
    assert "Golden is not a valid enum value" in cloud.reason("net", "A")


LUSTRE = {"Type": "AWS::FSx::FileSystem", "DeletionPolicy": "Retain", "Properties": {"FileSystemType": "LUSTRE"}}
POLICY = {
    "Type": "AWS::IAM::Policy",
    "DeletionPolicy": "Retain",
    "Properties": {"PolicyName": "p", "PolicyDocument": {}, "Roles": ["r"]},
}
CUSTOM = {"Type": "Custom::Thing", "DeletionPolicy": "Retain", "Properties": {"ServiceToken": "arn"}}
OWN = "Update, create or delete operations cannot be executed during import operations."
REFUSED: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "nothing": (resources(A=parameter("a")), [], "You must specify ResourcesToImport when ChangeSetType is IMPORT"),
    "without a policy": (
        resources(A={key: value for key, value in parameter("a").items() if key != "DeletionPolicy"}),
        [wanted("A", "a")],
        "The following resources to import [A] must have DeletionPolicy attribute specified in the template.",
    ),
    "a file system": (
        resources(F=LUSTRE),
        [wanted("F", "fs-1", "AWS::FSx::FileSystem", "Id")],
        "ResourceTypes [AWS::FSx::FileSystem] are not supported for Import",
    ),
    "a policy of roles": (
        resources(P=POLICY),
        [wanted("P", "p", "AWS::IAM::Policy", "Id")],
        "ResourceTypes [AWS::IAM::Policy] are not supported for Import",
    ),
    "a custom resource": (
        resources(X=CUSTOM),
        [wanted("X", "x", "Custom::Thing", "Id")],
        "ResourceTypes [Custom::Thing] are not supported for Import",
    ),
    "another identifier": (
        resources(A=parameter("a")),
        [wanted("A", "a", key="Id")],
        "ResourceIdentifier of A must have the keys [Name], got [Id]",
    ),
    "an empty identifier": (
        resources(A=parameter("a")),
        [wanted("A", "")],
        "ResourceIdentifier of A must have the keys [Name], got [Name]",
    ),
    "not in the template": (
        resources(A=parameter("a")),
        [wanted("A", "a"), wanted("Z", "z")],
        "ResourcesToImport names Z of type AWS::SSM::Parameter, which is not one resource of the template",
    ),
    "twice": (
        resources(A=parameter("a")),
        [wanted("A", "a"), wanted("A", "a")],
        "ResourcesToImport names A of type AWS::SSM::Parameter, which is not one resource of the template",
    ),
    "a new one beside it": (
        resources(A=parameter("a"), N=parameter("n")),
        [wanted("A", "a")],
        f"You have modified resources [N] in your template that are not being imported. {OWN}",
    ),
    "an output": (
        {**resources(A=parameter("a")), "Outputs": {"O": {"Value": "1"}}},
        [wanted("A", "a")],
        "As part of the import operation, you cannot modify or add [Outputs]",
    ),
    "too many": (
        resources(**{f"A{number}": parameter(f"a{number}") for number in range(201)}),
        [wanted(f"A{number}", f"a{number}") for number in range(201)],
        "You can import at most 200 resources at once, got 201",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_before_it_begins(cloud: Any, name: str) -> None:
    template, rows, said = REFUSED[name]
    assert cloud.refused("CreateChangeSet", **asked(template, *rows)) == f"ValidationError: {said}"


@pytest.mark.parametrize(
    ("template", "names"),
    [
        (resources(B=parameter("b", "changed"), A=parameter("a")), "B"),
        (resources(A=parameter("a")), "B"),
        (resources(B=parameter("b"), A=parameter("a"), C=parameter("c")), "C"),
    ],
)
def test_nothing_else_may_change(cloud: Any, template: dict[str, Any], names: str) -> None:
    cloud.deploy("net", resources(B=parameter("b")))
    assert cloud.refused("CreateChangeSet", **asked(template, wanted("A", "a"))) == (
        f"ValidationError: You have modified resources [{names}] in your template that are not being imported. {OWN}"
    )


def test_what_is_part_of_it_already(cloud: Any) -> None:
    cloud.deploy("net", resources(B=parameter("b")))
    assert cloud.refused("CreateChangeSet", **asked(resources(B=parameter("b")), wanted("B", "b"))) == (
        "ValidationError: Resource B is already part of stack net"
    )


def test_only_an_import_imports(cloud: Any) -> None:
    request = {**asked(resources(A=parameter("a")), wanted("A", "a")), "ChangeSetType": "CREATE"}
    assert cloud.refused("CreateChangeSet", **request) == (
        "ValidationError: ResourcesToImport can only be specified when ChangeSetType is IMPORT"
    )
