"""The HyperPod training operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from hyperpod_cdk.eks.node_addons import NodeAddon
from hyperpod_cdk.operators.training_operator import TrainingOperator
from hyperpod_cdk.templates.cdk_plugin import check_templates


def by_type(stack: cdk.Stack) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for logical_id, resource in Template.from_stack(stack).to_json()["Resources"].items():
        found.setdefault(resource["Type"], []).append({"id": logical_id, **resource})
    return found


def test_prerequisites_come_first() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    TrainingOperator(stack, "Operator", eks_cluster_name="prod-eks")

    found = by_type(stack)
    cert_manager, operator = found["AWS::EKS::Addon"]
    (association,) = found["AWS::EKS::PodIdentityAssociation"]
    (role,) = found["AWS::IAM::Role"]
    assert cert_manager["Properties"]["AddonName"] == "cert-manager"
    assert operator["Properties"] == {
        "AddonName": "amazon-sagemaker-hyperpod-training-operator",
        "ClusterName": "prod-eks",
        "ResolveConflicts": "OVERWRITE",
    }
    assert sorted(operator["DependsOn"]) == sorted([cert_manager["id"], association["id"]])
    assert association["Properties"] == {
        "ClusterName": "prod-eks",
        "Namespace": "aws-hyperpod",
        "ServiceAccount": "hp-training-operator-controller-manager",
        "RoleArn": {"Fn::GetAtt": [role["id"], "Arn"]},
    }


def test_pods_may_take_the_role_and_tag_the_session() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    TrainingOperator(stack, "Operator", eks_cluster_name="prod-eks")

    (role,) = by_type(stack)["AWS::IAM::Role"]
    assert role["Properties"]["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ]
    assert role["Properties"]["ManagedPolicyArns"] == [
        {
            "Fn::Join": [
                "",
                ["arn:", {"Ref": "AWS::Partition"}, ":iam::aws:policy/AmazonSageMakerHyperPodTrainingOperatorAccess"],
            ]
        }
    ]


def test_an_existing_cert_manager_is_used() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    own = NodeAddon(stack, "Own", eks_cluster_name="prod-eks", addon_name="cert-manager")
    operator = TrainingOperator(stack, "Operator", eks_cluster_name="prod-eks", cert_manager=own)

    found = by_type(stack)
    own_addon, operator_addon = found["AWS::EKS::Addon"]
    assert own_addon["id"] in operator_addon["DependsOn"]
    assert operator.cert_manager is own


def test_versions_are_passed_on() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    TrainingOperator(
        stack,
        "Operator",
        eks_cluster_name="prod-eks",
        addon_version="v1.2.1-eksbuild.1",
        cert_manager_version="v1.18.2-eksbuild.2",
    )

    versions = [addon["Properties"]["AddonVersion"] for addon in by_type(stack)["AWS::EKS::Addon"]]
    assert versions == ["v1.18.2-eksbuild.2", "v1.2.1-eksbuild.1"]


def test_a_version_for_a_cert_manager_of_others_is_refused() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    own = NodeAddon(stack, "Own", eks_cluster_name="prod-eks", addon_name="cert-manager")

    with pytest.raises(ValueError, match="must be left out with cert_manager") as error:
        TrainingOperator(
            stack, "Operator", eks_cluster_name="prod-eks", cert_manager=own, cert_manager_version="v1.18.2-eksbuild.2"
        )

    assert str(error.value) == (
        "cert_manager_version: must be left out with cert_manager, which has its own, got v1.18.2-eksbuild.2; "
        "remove one of the two"
    )


def test_the_template_passes_the_checks(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    TrainingOperator(cdk.Stack(app, "foreign"), "Operator", eks_cluster_name="prod-eks")
    app.synth()

    assert check_templates(tmp_path.glob("*.template.json"), region="eu-west-1") == []
