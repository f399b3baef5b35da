"""The deployed stacks with their IDs in AWS, so that a template's references become the values of AWS's answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.living.look import Ids as Ids  # noqa: PLC0414
from hyperpod_cdk.review.deployed import Api, read_deployed
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Resource, Stack

_SAME_AS_ID: Final = frozenset(
    {
        ("AWS::EC2::SecurityGroup", "GroupId"),
        ("AWS::EC2::SecurityGroup", "Id"),
        ("AWS::EC2::Subnet", "SubnetId"),
        ("AWS::EC2::VPC", "VpcId"),
        ("AWS::EC2::RouteTable", "RouteTableId"),
        ("AWS::EC2::InternetGateway", "InternetGatewayId"),
        ("AWS::EC2::NatGateway", "NatGatewayId"),
        ("AWS::EC2::VPCEndpoint", "Id"),
        ("AWS::SageMaker::Cluster", "ClusterArn"),
        ("AWS::FSx::FileSystem", "Id"),
        ("AWS::KMS::Key", "KeyId"),
        ("AWS::EKS::Cluster", "Name"),
        ("AWS::APS::Workspace", "Arn"),
        ("AWS::Grafana::Workspace", "Id"),
    }
)
"""Attributes that are the physical ID itself (CloudFormation template reference, return values of each type)."""

_MADE: Final = {
    ("AWS::IAM::Role", "Arn"): "arn:{partition}:iam::{account}:role{path}{id}",
    ("AWS::EKS::Cluster", "Arn"): "arn:{partition}:eks:{region}:{account}:cluster/{id}",
    ("AWS::Grafana::Workspace", "Arn"): "arn:{partition}:grafana:{region}:{account}:/workspaces/{id}",
    ("AWS::APS::Workspace", "WorkspaceId"): "{name}",
    ("AWS::S3::Bucket", "Arn"): "arn:{partition}:s3:::{id}",
    ("AWS::Lambda::Function", "Arn"): "arn:{partition}:lambda:{region}:{account}:function:{id}",
    ("AWS::Logs::LogGroup", "Arn"): "arn:{partition}:logs:{region}:{account}:log-group:{id}:*",
    ("AWS::Events::Rule", "Arn"): "arn:{partition}:events:{region}:{account}:rule/{id}",
    ("AWS::SNS::Topic", "TopicArn"): "{id}",
    ("AWS::KMS::Key", "Arn"): "arn:{partition}:kms:{region}:{account}:key/{id}",
}
"""Attributes that contain the physical ID (service authorization reference, resource types); ``name`` is the last part
of an ARN."""


Attributes = Mapping[tuple[str, str, str], str]
"""Values of attributes by stack, logical ID and name."""


@dataclass(frozen=True, kw_only=True)
class Living:
    """The deployed templates and the head, with references to deployed resources replaced by their IDs, ``ids``.

    ``statuses`` are those of the deployed stacks, ``without_template`` the names of stacks whose template
    CloudFormation does not show, ``arns`` the ARNs of the stacks, ``watched`` the alarms that roll their updates back.
    """

    deployed: Assembly
    head: Assembly
    ids: Ids
    statuses: Mapping[str, str]
    without_template: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    arns: Mapping[str, str] = field(default_factory=dict)
    watched: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)


def read_living(aws: Api, head: Assembly) -> Living:
    """Read the deployed stacks of the head's environment and the IDs of their resources.

    Raises AssemblyError if CloudFormation does not answer: then nothing can be compared.
    """
    found = read_deployed(aws, head)
    names = [stack.name for stack in found.base.stacks]
    listed = together(
        lambda name: aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name),
        names,
    )
    ids: dict[tuple[str, str], str] = {}
    for name, rows in zip(names, listed, strict=True):
        if isinstance(rows, NotAnswered):
            raise AssemblyError(f"the deployed stacks cannot be read: {rows.sentence}")
        ids |= {
            (name, str(row["LogicalResourceId"])): str(row["PhysicalResourceId"])
            for row in rows
            if row.get("PhysicalResourceId")
        }
    attributes = {
        key: value for each in found.base.stacks for key, value in _attributes_in_outputs(each, found.outputs)
    }
    return Living(
        deployed=grounded(found.base, ids, found.arns, attributes),
        head=grounded(found.head, ids, found.arns, attributes),
        ids=ids,
        statuses=found.statuses,
        without_template=found.without_template,
        notes=found.notes,
        arns=found.arns,
        watched=found.watched,
    )


def _attributes_in_outputs(
    stack: Stack, outputs: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield the attributes of resources that are outputs of their stack, which CloudFormation shows."""
    for key, value in outputs.get(stack.name, {}).items():
        attribute = (stack.outputs.get(key) or {}).get("Value")
        named = attribute.get("Fn::GetAtt") if isinstance(attribute, dict) else None
        if isinstance(named, list) and len(named) == 2 and all(isinstance(each, str) for each in named):
            yield (stack.name, named[0], named[1]), value


def grounded(
    assembly: Assembly, ids: Ids, arns: Mapping[str, str] | None = None, attributes: Attributes | None = None
) -> Assembly:
    """Return an assembly in whose templates every reference to a deployed resource is its ID in AWS.

    ``arns`` are those of the stacks, by name, ``attributes`` the attributes of resources that CloudFormation shows.
    """
    stacks = (_grounded(stack, ids, (arns or {}).get(stack.name, ""), attributes or {}) for stack in assembly.stacks)
    return replace(assembly, stacks=tuple(stacks))


def _grounded(stack: Stack, ids: Ids, arn: str, attributes: Attributes) -> Stack:
    partition = (regions.partition_of(stack.region) or "") if stack.region else ""

    pseudo = {"AWS::Partition": partition, "AWS::URLSuffix": regions.dns_suffix(partition)} if partition else {}
    if arn:
        pseudo["AWS::StackId"] = arn

    def told(value: Any) -> Any:
        if isinstance(value, list):
            return [told(each) for each in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            if value.get("Ref") in pseudo:
                return pseudo[value["Ref"]]
            name = value.get("Ref")
            if isinstance(name, str) and (stack.name, name) in ids and name in stack.resources:
                return ids[stack.name, name]
            attribute = value.get("Fn::GetAtt")
            if isinstance(attribute, str):
                attribute = attribute.split(".", 1)
            if isinstance(attribute, list) and len(attribute) == 2:
                found = _attribute(stack, ids, str(attribute[0]), attribute[1], partition)
                if found is None and (stack.name, attribute[0]) in ids:
                    found = attributes.get((stack.name, str(attribute[0]), str(attribute[1])))
                return value if found is None else found
        return {key: told(each) for key, each in value.items()}

    return replace(
        stack,
        template={
            **stack.template,
            "Resources": {
                name: {**body, "Properties": told(body["Properties"])}
                if isinstance(body, dict) and isinstance(body.get("Properties"), dict)
                else body
                for name, body in stack.template.get("Resources", {}).items()
            },
            "Outputs": told(stack.template.get("Outputs", {})),
            **({"Conditions": told(stack.template["Conditions"])} if "Conditions" in stack.template else {}),
        },
    )


def _attribute(stack: Stack, ids: Ids, name: str, attribute: object, partition: str) -> str | None:
    physical = ids.get((stack.name, name))
    resource = stack.resources.get(name)
    if physical is None or resource is None:
        return None
    if (resource.type, attribute) in _SAME_AS_ID:
        return physical
    if (resource.type, attribute) in _MADE and partition and stack.account:
        return _MADE[resource.type, str(attribute)].format(
            partition=partition,
            region=stack.region,
            account=stack.account,
            # a rule of another bus is called by both
            id=physical.replace("|", "/"),
            name=physical.rpartition("/")[2],
            path=_path(resource),
        )
    return None


def _path(resource: Resource) -> str:
    path = resource.properties.get("Path", "/")
    return path if isinstance(path, str) else "/"
