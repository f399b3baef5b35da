"""Volumes, claims and the CSI driver for a Lustre file system."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks

from hyperpod_cdk.storage.lustre_claims import FsxCsiDriver, LustreClaims
from tests.support.templates import of_type, stack, template_of

MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"


def claims(own: cdk.Stack, **options: Any) -> LustreClaims:
    cluster = eks.Cluster.from_cluster_attributes(
        own,
        "Eks",
        cluster_name="prod-eks",
        kubectl_provider=eks.KubectlProvider.from_kubectl_provider_attributes(
            own,
            "Kubectl",
            service_token=cdk.Fn.import_value("kubectl"),
            role=cdk.aws_iam.Role.from_role_name(own, "Role", "kubectl"),
        ),
    )
    given: dict[str, Any] = {
        "cluster": cluster,
        "file_system_id": "fs-0123456789abcdef0",
        "dns_name": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
        "mount_name": "abcdefgh",
        "capacity_gib": 4800,
        "claim_name": "scratch",
        "namespaces": ["hyperpod-ns-research"],
        **options,
    }
    return LustreClaims(own, "Claims", **given)


def manifests(template: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {name: json.loads(row["Properties"]["Manifest"]) for name, row in of_type(template, MANIFEST).items()}


def test_a_volume_and_a_claim_bound_to_each_other() -> None:
    own = stack()
    claims(own)
    ((volume, claim),) = manifests(template_of(own)).values()

    assert volume == {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "hyperpod-ns-research.scratch"},
        "spec": {
            "capacity": {"storage": "4800Gi"},
            "volumeMode": "Filesystem",
            "accessModes": ["ReadWriteMany"],
            "mountOptions": ["flock"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"namespace": "hyperpod-ns-research", "name": "scratch"},
            "csi": {
                "driver": "fsx.csi.aws.com",
                "volumeHandle": "fs-0123456789abcdef0",
                "volumeAttributes": {
                    "dnsname": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
                    "mountname": "abcdefgh",
                },
            },
        },
    }
    assert claim == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "hyperpod-ns-research", "name": "scratch"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": "hyperpod-ns-research.scratch",
            "resources": {"requests": {"storage": "1200Gi"}},
        },
    }


def test_a_file_system_that_grows_leaves_the_claim_alone() -> None:
    def made(capacity_gib: int) -> list[dict[str, Any]]:
        own = stack()
        claims(own, capacity_gib=capacity_gib)
        ((volume, claim),) = manifests(template_of(own)).values()
        return [volume["spec"]["capacity"], claim]

    (small, before), (large, after) = made(1200), made(2400)

    assert (small, large) == ({"storage": "1200Gi"}, {"storage": "2400Gi"})
    assert before == after, "Kubernetes refuses to resize a claim that no storage class provisioned"


def test_each_namespace_has_a_volume_of_its_own() -> None:
    own = stack()
    made = claims(own, namespaces=["a", "b"])
    volumes = [rows[0]["metadata"]["name"] for rows in manifests(template_of(own)).values()]

    assert volumes == ["a.scratch", "b.scratch"]
    assert list(made.manifests) == ["a", "b"]


def test_a_namespace_that_is_added_changes_nothing_that_stood_before() -> None:
    def made(*namespaces: str) -> dict[str, Any]:
        own = stack()
        claims(own, namespaces=namespaces)
        return of_type(template_of(own), MANIFEST)

    assert made("b").items() <= made("a", "b").items()


def test_nothing_is_pruned() -> None:
    own = stack()
    claims(own)
    (row,) = of_type(template_of(own), MANIFEST).values()
    assert "PruneLabel" not in row["Properties"]


def test_namespaces_are_made_on_demand_first_and_stay() -> None:
    own = stack()
    made = claims(own, namespaces=["a"], create_namespaces=True)
    assert list(made.namespaces) == ["a"]
    rows = of_type(template_of(own), MANIFEST)
    (namespace_id,) = [name for name in rows if "Namespace" in name]
    (claim_id,) = [name for name in rows if "Namespace" not in name]

    assert json.loads(rows[namespace_id]["Properties"]["Manifest"]) == [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": "a",
                "labels": {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in ("audit", "enforce", "warn")},
            },
        }
    ]
    assert rows[namespace_id]["DeletionPolicy"] == "Retain"
    assert rows[claim_id]["DependsOn"] == [namespace_id]


def test_attributes_may_be_tokens() -> None:
    own = stack()
    claims(own, file_system_id=cdk.Fn.import_value("fs"))
    (row,) = of_type(template_of(own), MANIFEST).values()
    assert {"Fn::ImportValue": "fs"} in row["Properties"]["Manifest"]["Fn::Join"][1]


def test_a_namespace_may_be_named_once() -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        claims(stack(), namespaces=["a", "b", "a"])
    assert str(refusal.value) == "namespaces[2]: must be named once, got a again after [0]; remove one of the two"


def test_the_driver_takes_its_rights_from_pod_identity() -> None:
    own = stack()
    driver = FsxCsiDriver(own, "Driver", eks_cluster_name="prod-eks")
    template = template_of(own)
    ((association_id, association),) = of_type(template, "AWS::EKS::PodIdentityAssociation").items()
    ((role_id, role),) = of_type(template, "AWS::IAM::Role").items()
    ((addon_id, addon),) = of_type(template, "AWS::EKS::Addon").items()

    assert association["Properties"] == {
        "ClusterName": "prod-eks",
        "Namespace": "kube-system",
        "ServiceAccount": "fsx-csi-controller-sa",
        "RoleArn": {"Fn::GetAtt": [role_id, "Arn"]},
    }
    assert addon["Properties"] == {
        "ClusterName": "prod-eks",
        "AddonName": "aws-fsx-csi-driver",
        "ResolveConflicts": "OVERWRITE",
    }
    assert addon["DependsOn"] == [association_id]
    assert own.resolve(driver.addon.ref) == {"Ref": addon_id}
    assert not {"ManagedPolicyArns", "Policies"} & set(role["Properties"]), "what exists is mounted without a right"
    assert role["Properties"]["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ]


def test_the_driver_may_make_file_systems_on_demand() -> None:
    own = stack()
    FsxCsiDriver(own, "Driver", eks_cluster_name="prod-eks", makes_file_systems=True)
    (role,) = of_type(template_of(own), "AWS::IAM::Role").values()
    assert role["Properties"]["ManagedPolicyArns"] == [
        {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":iam::aws:policy/AmazonFSxFullAccess"]]}
    ]


def test_the_driver_is_pinned_on_demand() -> None:
    own = stack()
    FsxCsiDriver(own, "Driver", eks_cluster_name="prod-eks", addon_version="v1.6.0-eksbuild.1")
    (addon,) = of_type(template_of(own), "AWS::EKS::Addon").values()
    assert addon["Properties"]["AddonVersion"] == "v1.6.0-eksbuild.1"
