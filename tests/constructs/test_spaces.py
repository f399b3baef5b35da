"""SageMaker Spaces on HyperPod, and the EBS driver that they need."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from hyperpod_cdk.eks.node_addons import EbsCsiDriver
from hyperpod_cdk.operators.spaces import Spaces


def synthesized(*, remote_access: bool) -> dict[str, dict[str, Any]]:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    driver = EbsCsiDriver(stack, "Ebs", eks_cluster_name="prod-eks")
    Spaces(
        stack,
        "Spaces",
        eks_cluster_name="prod-eks",
        name="prod",
        prerequisites=[driver],
        remote_access=remote_access,
    )
    found: dict[str, dict[str, Any]] = Template.from_stack(stack).to_json()["Resources"]
    return found


def addon(found: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    (one,) = [each for each in found.values() if each["Properties"].get("AddonName") == name]
    return one


def test_controller_and_router_take_their_own_roles() -> None:
    found = synthesized(remote_access=False)
    rights = {}
    for each in found.values():
        if each["Type"] == "AWS::EKS::PodIdentityAssociation":
            role = found[each["Properties"]["RoleArn"]["Fn::GetAtt"][0]]["Properties"]
            (policy,) = [arn["Fn::Join"][1][2] for arn in role["ManagedPolicyArns"]]
            rights[each["Properties"]["Namespace"], each["Properties"]["ServiceAccount"]] = policy
    assert rights == {
        ("jupyter-k8s-system", "jupyter-k8s-controller-manager"): (
            ":iam::aws:policy/AmazonSageMakerSpacesControllerPolicy"
        ),
        ("jupyter-k8s-system", "jupyter-k8s-authmiddleware"): ":iam::aws:policy/AmazonSageMakerSpacesRouterPolicy",
        ("kube-system", "ebs-csi-controller-sa"): ":iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy",
    }


def test_driver_and_identities_come_before_the_addon() -> None:
    found = synthesized(remote_access=False)
    spaces, driver = addon(found, "amazon-sagemaker-spaces"), addon(found, "aws-ebs-csi-driver")
    identities = {name for name, each in found.items() if each["Type"] == "AWS::EKS::PodIdentityAssociation"}
    (drivers,) = [name for name, each in found.items() if each is driver]
    assert {*identities, drivers} <= set(spaces["DependsOn"])
    assert set(driver["DependsOn"]) <= identities


def test_the_driver_attaches_volumes_through_sagemaker() -> None:
    found = synthesized(remote_access=False)
    inline = [each["Properties"]["Policies"] for each in found.values() if "Policies" in each["Properties"]]
    ((policy,),) = inline
    assert [each["Action"] for each in policy["PolicyDocument"]["Statement"]] == [
        ["sagemaker:AttachClusterNodeVolume", "sagemaker:DetachClusterNodeVolume"],
        ["eks:DescribeCluster"],
    ]


def test_without_remote_access_nothing_registers_with_systems_manager() -> None:
    found = synthesized(remote_access=False)
    values = addon(found, "amazon-sagemaker-spaces")["Properties"]["ConfigurationValues"]
    assert json.loads(values) == {"jupyter-k8s": {"workspacePodWatching": {"enable": True}}}
    assert [each for each in found.values() if "RoleName" in each["Properties"]] == []


def test_remote_access_has_a_role_that_the_controller_may_pass() -> None:
    found = synthesized(remote_access=True)
    ((name, role),) = [(name, each) for name, each in found.items() if "RoleName" in each["Properties"]]
    assert role["Properties"]["RoleName"]["Fn::Join"][1][0] == "sagemaker-space-prod-"
    (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "ssm.amazonaws.com"}
    values = addon(found, "amazon-sagemaker-spaces")["Properties"]["ConfigurationValues"]["Fn::Join"][1]
    assert {"Fn::GetAtt": [name, "Arn"]} in values
    assert '"remoteAccess": {"enabled": true, "ssmManagedNodeRole": "' in values[0]
