"""The tables of the embedded AWS's rules for clusters, compared with the catalog, with what constructs allow, and with
preflight."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import aws_cdk as cdk
import botocore.session
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from hyperpod_cdk.catalog import hyperpod, kubernetes
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.checks import existing_cluster
from hyperpod_cdk.hyperpod.autoscaling import KarpenterAutoscaling
from hyperpod_cdk.hyperpod.execution_role import NodeExecutionRole
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.services import eks, network, rules

DIFFERENCES: Mapping[str, str] = {
    "InstanceRequirements": "a member of its own in check_immutable: its list may gain types, and may lose none",
}
"""Members that the catalog calls immutable and IMMUTABLE_MEMBERS does not have."""

BEYOND_NODE_ACTIONS: Mapping[str, str] = {
    "ec2:CreateTags": "tags an interface as it is created, which not every request does",
    "ec2:DescribeSubnets": "CreateCluster refuses a role without it, before any node starts",
    "cloudwatch:DescribeAlarms": "reads the alarms that roll an update back, which not every cluster has",
    "fsx:DescribeFileSystems": "the FSx client falls back to TCP without it",
    "s3:GetObject": "judged by its object, in _script_cause",
    "s3:ListBucket": "judged by its bucket, in _script_cause",
}
"""Actions that NodeExecutionRole allows without a key, and NODE_ACTIONS does not have."""

CHANGES: Mapping[str, tuple[Any, Any]] = {
    "InstanceType": ("ml.g5.8xlarge", "ml.g5.12xlarge"),
    "InstanceRequirements": (
        {"InstanceTypes": ["ml.g5.8xlarge", "ml.g5.12xlarge"]},
        {"InstanceTypes": ["ml.g5.8xlarge"]},
    ),
    "ExecutionRole": ("arn:aws:iam::111122223333:role/a", "arn:aws:iam::111122223333:role/b"),
    "ThreadsPerCore": (1, 2),
    "OverrideVpcConfig": ({"Subnets": ["subnet-a"]}, {"Subnets": ["subnet-b"]}),
    "CapacityRequirements": ({"Spot": {}}, {"OnDemand": {}}),
}


MODES: tuple[str, ...] = tuple(
    getattr(botocore.session.get_session().get_service_model("eks").shape_for("AuthenticationMode"), "enum", ())
)
KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "any")


def allowed_actions(stack: cdk.Stack, of: str) -> dict[str, set[str]]:
    """Return the actions that the stack's policies of a resource type allow, by the statement's Sid."""
    found: dict[str, set[str]] = {}
    for policy in Template.from_stack(stack).find_resources(of).values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            found.setdefault(statement.get("Sid", ""), set()).update(statement["Action"])
    return found


def test_what_no_update_changes() -> None:
    assert set(hyperpod.IMMUTABLE_GROUP_PROPERTIES) - set(rules.IMMUTABLE_MEMBERS) == set(DIFFERENCES)
    assert set(rules.IMMUTABLE_MEMBERS) <= set(hyperpod.IMMUTABLE_GROUP_PROPERTIES) == set(CHANGES)


@pytest.mark.parametrize("member", CHANGES)
def test_a_change_of_it_is_refused(member: str) -> None:
    before, after = ({"InstanceGroupName": "workers", member: value} for value in CHANGES[member])
    with pytest.raises(ServiceError, match="workers"):
        rules.check_immutable(before, after)
    rules.check_immutable(before, before)


def test_a_node_needs_what_its_role_allows(stack: cdk.Stack) -> None:
    NodeExecutionRole(
        stack,
        "Nodes",
        bucket=s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-scripts"),
        eks_cluster_arn=stack.format_arn(service="eks", resource="cluster", resource_name="prod-eks"),
        vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["zone"]),
        subnets=[ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")],
        security_groups=[ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")],
        volume_key=kms.Key.from_key_arn(stack, "Key", KEY),
    )
    allowed = allowed_actions(stack, "AWS::IAM::ManagedPolicy")
    assert allowed.pop("VolumeKey") == set(rules.VOLUME_KEY_ACTIONS)
    actions = set().union(*allowed.values())
    assert actions - set(rules.NODE_ACTIONS) == set(BEYOND_NODE_ACTIONS)
    assert set(rules.NODE_ACTIONS) <= actions
    (role,) = Template.from_stack(stack).find_resources("AWS::IAM::Role").values()
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"]["Service"] == rules.SERVICE_PRINCIPAL == hyperpod.SERVICE_PRINCIPAL


def test_karpenter_needs_what_its_role_allows(stack: cdk.Stack) -> None:
    autoscaling = KarpenterAutoscaling(stack, "Autoscaling")
    policies = cast("list[Any]", stack.resolve(autoscaling.role.policies))
    actions = {
        action
        for policy in policies
        for statement in policy["policyDocument"]["Statement"]
        for action in statement["Action"]
    }
    assert actions == set(rules.AUTOSCALER_ACTIONS)


@pytest.mark.parametrize("mode", MODES)
def test_preflight_refuses_the_same_authentication_modes(mode: str) -> None:
    existing = SimpleNamespace(cluster_name="platform")
    case = SimpleNamespace(environment=SimpleNamespace(eks=SimpleNamespace(existing=existing)))
    aws = SimpleNamespace(eks_cluster=lambda name: SimpleNamespace(name=name, authentication_mode=mode))
    found = list(existing_cluster.existing_cluster_takes_access_entries(cast("Any", case), cast("Any", aws)))
    assert (mode in rules.AUTHENTICATION_MODES) == (not found)
    assert set(rules.AUTHENTICATION_MODES) < set(MODES)


def test_the_other_words_are_the_catalogs() -> None:
    assert rules.BUCKET_PREFIX == hyperpod.LIFECYCLE_BUCKET_PREFIX
    assert hyperpod.NETWORK_INTERFACES["efa_only"] == rules.EFA_ONLY
    assert eks.ROLLBACK_WINDOW.days == kubernetes.ROLLBACK_DAYS


def test_a_closed_network_has_the_endpoints_that_its_nodes_need() -> None:
    needed = {row.service for row in catalog.ENDPOINTS if row.caller == catalog.NODES and not row.is_dispensable}
    assert needed == set(network.CLOSED_NETWORK_ENDPOINTS)
