"""Provisioning of one resource: types without a handler, what replaces a resource, rules, API errors as reasons."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import Provisioner
from hyperpod_cdk_rehearsal.embedded.cloudformation.service import service_of
from hyperpod_cdk_rehearsal.embedded.inspection import Recorded
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError, ResourceHandler, handler_for


def reason(cloud: Any, error: Exception) -> str:
    """The reason of a resource whose creation raises this."""
    cloud.handler.fail("create", "A", error)
    cloud.deploy("net", {"Resources": {"A": {"Type": "AWS::S3::Bucket"}}})
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", cloud.reason("net", "A"))


def client_error(code: str, status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "X")  # type: ignore[typeddict-item]  # the parts that are read


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (HandlerError("NotStabilized", "slow"), ("slow", "NotStabilized")),
        (ServiceError("ResourceInUseException", "taken"), ("taken", "AlreadyExists")),
        (ServiceError("ValidationException", "bad"), ("bad", "InvalidRequest")),
        (
            client_error("AccessDeniedException", 403),
            ("no (Service: S3, Status Code: 403, Request ID: ID)", "AccessDenied"),
        ),
        (client_error("NoSuchBucket", 404), ("no (Service: S3, Status Code: 404, Request ID: ID)", "NotFound")),
        (client_error("Strange"), ("no (Service: S3, Status Code: 400, Request ID: ID)", "GeneralServiceException")),
        (KeyError("x"), ("KeyError: 'x'", "InternalFailure")),
    ],
)
def test_reasons(cloud: Any, error: Exception, expected: tuple[str, str]) -> None:
    message, code = expected
    assert reason(cloud, error) == (
        f'Resource handler returned message: "{message}" (RequestToken: ID, HandlerErrorCode: {code})'
    )


@pytest.mark.parametrize("kind", ["AWS::CloudFormation::WaitConditionHandle", "AWS::CDK::Metadata"])
def test_a_type_without_a_real_resource_is_not_reported_as_recorded_only(cloud: Any, kind: str) -> None:
    service_of(cloud.context).provisioner = Provisioner(cloud.context, lambda _type: None)
    template = {"Resources": {"A": {"Type": kind}}, "Outputs": {"Id": {"Value": {"Ref": "A"}}}}
    assert cloud.deploy("net", template) == "CREATE_COMPLETE"
    assert cloud.outputs("net") == {"Id": "net-A"}
    assert cloud.context.state.store(Recorded).rows == []


def test_a_type_without_a_handler_is_recorded(cloud: Any) -> None:
    service_of(cloud.context).provisioner = Provisioner(cloud.context, lambda _type: None)
    repository = {"Type": "AWS::CodeCommit::Repository", "Properties": {"RepositoryName": "r"}}
    outputs = {"Id": {"Ref": "A"}, "Arn": {"Fn::GetAtt": ["A", "Arn"]}}
    template = {"Resources": {"A": repository}, "Outputs": {name: {"Value": v} for name, v in outputs.items()}}
    assert cloud.deploy("net", template) == "CREATE_COMPLETE"
    assert cloud.context.state.store(Recorded).rows == [
        {"type": "AWS::CodeCommit::Repository", "logical_id": "A", "stack": "net"}
    ]
    assert [each.reason for each in cloud.stack("net").events if each.logical_id == "A"] == [
        None,
        "Rehearsal: AWS::CodeCommit::Repository is only recorded; nothing was created, and its attributes are made up",
    ]
    first = cloud.outputs("net")
    assert first["Arn"] == "arn:aws:codecommit:us-west-2:111122223333:repository/net-A"
    repository["Properties"] = {"RepositoryName": "r", "RepositoryDescription": "changed"}
    assert cloud.deploy("net", template) == "UPDATE_COMPLETE"
    assert cloud.outputs("net") == first
    assert cloud.delete("net") == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    ("resource_type", "path", "expected"),
    [
        ("AWS::SSM::Parameter", ("Name",), "always"),
        ("AWS::SSM::Parameter", ("Value",), "never"),
        ("AWS::EKS::Cluster", ("AccessConfig", "BootstrapClusterCreatorAdminPermissions"), "always"),
        ("AWS::EKS::Cluster", ("AccessConfig", "AuthenticationMode"), "never"),
        ("AWS::SageMaker::Cluster", ("VpcConfig", "Subnets", "0"), "always"),
        ("AWS::SageMaker::Cluster", ("InstanceGroups", "0", "InstanceCount"), "never"),
        ("AWS::EC2::VPC", ("InstanceTenancy",), "conditionally"),
        ("Custom::Thing", ("ServiceToken",), "always"),
        ("Custom::Thing", ("Other",), "never"),
    ],
)
def test_what_replaces(cloud: Any, resource_type: str, path: tuple[str, ...], expected: str) -> None:
    assert Provisioner(cloud.context, lambda _type: None).replacement(resource_type, path) == expected


class ValueReplaces(ResourceHandler):
    """A handler that cannot change `Value` in place, though the registry thinks it can."""

    create_only = frozenset({"Value"})


def test_a_handler_may_name_further_properties_that_replace(cloud: Any) -> None:
    provisioner = Provisioner(cloud.context, lambda _type: ValueReplaces())
    assert provisioner.change("AWS::SSM::Parameter", {"Value": "a"}, {"Value": "b"}) == "always"


def test_what_can_only_be_replaced_conditionally_is_updated_if_the_handler_can(cloud: Any) -> None:
    def vpc(tenancy: str) -> dict[str, Any]:
        properties = {"CidrBlock": "10.0.0.0/16", "InstanceTenancy": tenancy}
        return {"Resources": {"A": {"Type": "AWS::EC2::VPC", "Properties": properties}}}

    cloud.deploy("net", vpc("dedicated"))
    assert cloud.deploy("net", vpc("default")) == "UPDATE_COMPLETE"
    assert cloud.handler.calls == [("update", "A")]
    cloud.handler.fail("update", "A", HandlerError("NotUpdatable", "no"))
    assert cloud.deploy("net", vpc("dedicated")) == "UPDATE_COMPLETE"
    assert cloud.handler.calls == [("update", "A"), ("create", "A"), ("delete", "A")]


def test_a_rule_sees_the_stack_and_may_refuse(cloud: Any, parameter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[str]]] = []

    def check_resource(request: Any, stack_view: Any) -> None:
        seen.append((request.logical_id, sorted(stack_view.resources)))
        if request.properties["Value"] == "forbidden":
            raise HandlerError("InvalidRequest", "not allowed")

    provisioner = service_of(cloud.context).provisioner
    monkeypatch.setattr(provisioner, "_rule", check_resource)
    template = {"Resources": {"A": parameter("a"), "B": {**parameter("forbidden"), "DependsOn": "A"}}}
    assert cloud.deploy("net", template) == "ROLLBACK_COMPLETE"
    assert seen == [("A", ["A"]), ("B", ["A", "B"])]
    assert "not allowed" in cloud.reason("net", "B")


def test_custom_types_share_the_custom_resources_handler() -> None:
    assert handler_for("Custom::Anything") is handler_for("AWS::CloudFormation::CustomResource")
    assert handler_for("AWS::Nothing::Here") is None


def test_what_events_carry_is_json(cloud: Any, parameter: Any) -> None:
    cloud.deploy("net", {"Resources": {"A": parameter("a")}})
    event = cloud.ask("DescribeStackEvents", StackName="net")["StackEvents"][1]
    assert json.loads(event["ResourceProperties"]) == {"Type": "String", "Value": "a"}
