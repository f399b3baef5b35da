"""Add-ons that need a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from hyperpod_cdk.eks.node_addons import CoreDns, NodeAddon


def resources(stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = Template.from_stack(stack).to_json().get("Resources", {})
    return found


def test_core_dns_leaves_version_and_values_to_eks() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    CoreDns(stack, "Dns", eks_cluster_name="prod-eks")

    assert resources(stack) == {
        "Dns94489CFC": {
            "Type": "AWS::EKS::Addon",
            "Properties": {"AddonName": "coredns", "ClusterName": "prod-eks", "ResolveConflicts": "OVERWRITE"},
        }
    }


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"replicaCount": 3, "computeType": "ec2"}, '{"computeType": "ec2", "replicaCount": 3}'),
        ('{"replicaCount": 3}', '{"replicaCount": 3}'),
        ({}, "{}"),
    ],
    ids=["mapping", "text", "empty"],
)
def test_values_are_json(given: str | Mapping[str, Any], text: str) -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    CoreDns(stack, "Dns", eks_cluster_name="prod-eks", addon_version="v1.12.4-eksbuild.1", configuration_values=given)

    (addon,) = resources(stack).values()
    assert addon["Properties"]["ConfigurationValues"] == text
    assert addon["Properties"]["AddonVersion"] == "v1.12.4-eksbuild.1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "replicaCount: 3",
            (
                "coredns configuration_values: must be JSON, got text that is not "
                "(Expecting value: line 1 column 1 (char 0)); pass a mapping instead"
            ),
        ),
        ("[3]", "coredns configuration_values: must be a JSON object, got [3]; pass a mapping instead"),
    ],
)
def test_other_text_is_refused(given: str, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared below
        CoreDns(
            cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign"),
            "Dns",
            eks_cluster_name="prod-eks",
            configuration_values=given,
        )

    assert str(error.value) == message


@pytest.mark.parametrize("version", ["v1.18.2-eksbuild.1", "v1.18.3-eksbuild.1"])
def test_a_version_older_than_hyperpod_takes_is_refused(version: str) -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    if version == "v1.18.3-eksbuild.1":
        NodeAddon(stack, "Cni", eks_cluster_name="prod-eks", addon_name="vpc-cni", addon_version=version)
        return
    with pytest.raises(ValueError, match=r"vpc-cni must be 1\.18\.3 or newer for HyperPod, got v1\.18\.2-eksbuild\.1"):
        NodeAddon(stack, "Cni", eks_cluster_name="prod-eks", addon_name="vpc-cni", addon_version=version)


@pytest.mark.parametrize(
    ("name", "warned"),
    [
        (
            "metric-server",
            (
                'addon_name: should be an add-on that this version knows, got "metric-server"; did you mean '
                "metrics-server?"
            ),
        ),
        ("metrics-server", None),
        ("kubecost_kubecost", None),
    ],
)
def test_a_misspelt_addon_is_warned_of_and_one_that_only_eks_knows_is_not(name: str, warned: str | None) -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    NodeAddon(stack, "Addon", eks_cluster_name="prod-eks", addon_name=name)

    told = [each.data for each in stack.node.find_child("Addon").node.metadata if each.type == "aws:cdk:warning"]
    assert told == ([f"{warned} [ack: hyperpod-cdk:addon-name]"] if warned else [])


def test_tokens_pass_unchecked() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    version = cdk.CfnParameter(stack, "Version").value_as_string
    CoreDns(
        stack, "Dns", eks_cluster_name=cdk.Fn.import_value("eks"), addon_version=version, configuration_values=version
    )

    assert resources(stack)["Dns94489CFC"]["Properties"] == {
        "AddonName": "coredns",
        "AddonVersion": {"Ref": "Version"},
        "ClusterName": {"Fn::ImportValue": "eks"},
        "ConfigurationValues": {"Ref": "Version"},
        "ResolveConflicts": "OVERWRITE",
    }
