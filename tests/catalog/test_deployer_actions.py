"""The actions of the stacks' resource types, and the patterns that exclude some."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hyperpod_cdk.catalog import deployer_actions, iam
from hyperpod_cdk.catalog.deployer_actions import FEATURES, LEFT_OUT, TYPES, LeftOut, ResourceType, is_left_out
from tests.support.tables import row_by_row

PHASES = ("create", "read", "update", "delete")
CUSTOM_AMI = {action for each in FEATURES for action in each.actions}


@row_by_row("each", TYPES, ids=lambda each: each.name)
def test_actions_are_sorted_and_hold_what_is_certain(each: ResourceType) -> None:
    assert list(each.actions) == sorted(set(each.actions))
    assert each.certain
    assert set(each.certain) <= set(each.actions)
    assert [action for action in each.actions if not re.fullmatch(r"[a-z0-9-]+:[A-Z]\w+", action)] == []


def handler_actions(schema: Any, phases: Sequence[str]) -> set[str]:
    return {action for phase in phases for action in schema.get("handlers", {}).get(phase, {}).get("permissions", [])}


@row_by_row("row", LEFT_OUT, ids=lambda row: f"{row.types[0]} {row.actions.pattern[:30]}")
def test_what_is_left_out_is_named_by_each_type_and_never_certain(
    row: LeftOut, registry_schema: Callable[[str], Any]
) -> None:
    certain = {each.name: each.certain for each in TYPES}
    alternatives = row.actions.pattern.split("|") if "(" not in row.actions.pattern else [row.actions.pattern]
    for name in row.types:
        schema = registry_schema(name)
        assert {each.partition(".")[0] for each in row.properties} <= set(schema["properties"]), row
        assert [action for action in certain[name] if row.actions.fullmatch(action)] == [], row
    named = {action for name in row.types for action in handler_actions(registry_schema(name), PHASES)}
    assert [each for each in alternatives if not any(re.fullmatch(each, action) for action in named)] == []
    assert len(row.why.split()) > 2


def test_what_creates_reads_or_deletes_may_read(registry_schema: Callable[[str], Any]) -> None:
    """A right to look is left out only where the property that asks for it is named, or no ARN of ours would fit."""
    for each in TYPES:
        for action in sorted(handler_actions(registry_schema(each.name), ("create", "read", "delete"))):
            if re.search(r":(Describe|Get|List)", action) and is_left_out(each.name, action):
                (row,) = [row for row in LEFT_OUT if each.name in row.types and row.actions.fullmatch(action)]
                assert row.properties or action in CUSTOM_AMI, (each.name, action)


def test_the_reads_that_an_outsider_missed_are_there() -> None:
    actions = {each.name: set(each.actions) for each in TYPES}
    assert "s3:ListBucket" in actions["AWS::S3::Bucket"] & actions["AWS::FSx::DataRepositoryAssociation"]
    assert "ec2:DescribeVpnGateways" in actions["AWS::EC2::VPCGatewayAttachment"]
    assert "ec2:DescribeInstances" in actions["AWS::EC2::SecurityGroup"]
    # managed policy AmazonFSxFullAccess v11, statement DescribeEC2VpcResources
    assert "ec2:GetSecurityGroupsForVpc" in actions["AWS::FSx::FileSystem"]


def test_what_may_make_a_service_linked_role_has_one_in_the_table(registry_schema: Callable[[str], Any]) -> None:
    """The statement for it is written, and preflight asks for it, by the table alone: what it lacks nobody may make."""
    making = {
        each.name: each.when
        for each in TYPES
        if "iam:CreateServiceLinkedRole" in handler_actions(registry_schema(each.name), PHASES)
    }
    # its log group takes none: AWSServiceRoleForLogDelivery is for Firehose (VPC user guide, flow logs)
    assert making.pop("AWS::EC2::FlowLog")
    assert set(making.values()) <= {role.when for role in iam.SERVICE_LINKED_ROLES}, making


def test_hyperpod_clusters_need_what_the_schema_says() -> None:
    (cluster,) = [each for each in deployer_actions.TYPES if each.name == "AWS::SageMaker::Cluster"]
    assert {"sagemaker:CreateCluster", "eks:CreateAccessEntry", "iam:PassRole"} <= set(cluster.actions)
    assert "iam:CreateServiceLinkedRole" not in cluster.actions


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: f"{feature.name} {feature.property}")
def test_a_feature_is_of_its_own_type_and_of_a_value_that_asks_for_it(feature: deployer_actions.Feature) -> None:
    path = feature.property.split(".")

    def properties(value: str) -> Any:
        inner: Any = value
        for name in reversed(path):
            inner = {name: inner}
        return inner

    assert feature.is_in(feature.name, properties("other"))
    assert not feature.is_in(feature.name, properties(feature.default))
    assert not feature.is_in(feature.name, {})
    # templates are read, so that their text is equal and never the same object
    assert feature.is_in("".join([*feature.name]), properties("other"))
    assert not feature.is_in(feature.name[:-1], properties("other"))
    assert not feature.is_in(f"{feature.name}s", properties("other"))


@pytest.mark.parametrize(
    ("arn", "generated", "example"),
    [
        ("arn:{partition}:ec2:{region}::snapshot/*", "", "arn:aws:ec2:us-east-1::snapshot/example"),
        ("arn:{partition}:sns:{region}:{account}:{value}", "", None),
        ("arn:{partition}:sns:{region}:{account}:{value}", "{logical_id}-*", None),
        (
            "arn:{partition}:sns:{region}:{account}:{value}",
            "{name}-*",
            "arn:aws:sns:us-east-1:111122223333:a-example",
        ),
    ],
)
def test_examples_of_arns(arn: str, generated: str, example: str | None) -> None:
    row = deployer_actions.Limitable(service="any", type="any", arn=arn, generated=generated)
    assert row.example("a", partition="aws", region="us-east-1", account="111122223333") == example


def test_a_type_is_found_by_the_name_that_templates_say() -> None:
    for name in ("AWS::SageMaker::Cluster", "AWS::S3::Bucket", deployer_actions.CUSTOM_RESOURCE):
        found = deployer_actions.resource_type(name)
        assert found is not None
        assert found.name == name
    custom = deployer_actions.resource_type("Custom::HyperPodQuotaGate")
    assert custom is not None
    assert custom.name == deployer_actions.CUSTOM_RESOURCE
    assert deployer_actions.resource_type("AWS::Moon::Base") is None
    assert deployer_actions.resource_type("Custom") is None


def test_a_limit_is_of_the_actions_that_it_names() -> None:
    assert deployer_actions.limit_of("moon:Land") is None
    assert deployer_actions.limit_of("") is None
    for limit in deployer_actions.LIMITS:
        for action in {name for each in TYPES for name in each.actions if limit.actions.fullmatch(name)}:
            found = deployer_actions.limit_of(action)
            assert found is not None
            assert found.actions.fullmatch(action)
            assert deployer_actions.limit_of(f"not-{action}") is None


@row_by_row(
    "properties, asks",
    [
        ({"Groups": [{"Image": "own"}]}, True),
        ({"Groups": [{"Image": "default"}, {"Image": "own"}]}, True),
        ({"Groups": [{"Image": "own"}, {"Image": "default"}]}, True),
        ({"Groups": [{"Image": "default"}, {"Image": None}, {}, "text", None]}, False),
        ({"Groups": []}, False),
        ({"Groups": "own"}, False),
        ({"Groups": {"Image": "own"}}, True),
        ({"Groups": {"Image": {"Fn::If": ["A", "own", "default"]}}}, True),
        ({"Image": "own"}, False),
    ],
)
def test_a_feature_is_looked_for_in_every_item(properties: dict[str, Any], *, asks: bool) -> None:
    feature = deployer_actions.Feature(
        name="AWS::Moon::Base",
        property="Groups.Image",
        default="default",
        certain=(),
        actions=(),
        **{key: "" for key in FEATURES[0].__dict__ if key not in {"name", "property", "default", "certain", "actions"}},
    )
    assert feature.is_in("AWS::Moon::Base", properties) is asks
