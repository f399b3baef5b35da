"""Kubernetes objects as CDK's kubectl handler gets them."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks

from hyperpod_cdk.common.manifests import applied_manifest
from tests.support.templates import of_type, stack, template_of

OBJECTS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "team"}},
]


@pytest.mark.parametrize(
    ("policy", "deletion"),
    [(None, "Delete"), (cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE, "RetainExceptOnCreate")],
)
def test_objects_are_applied_in_their_order(policy: cdk.RemovalPolicy | None, deletion: str) -> None:
    own = stack()
    provider = eks.KubectlProvider.from_kubectl_provider_attributes(
        own,
        "Kubectl",
        service_token=cdk.Fn.import_value("kubectl"),
        role=cdk.aws_iam.Role.from_role_name(own, "Role", "kubectl"),
    )
    cluster = eks.Cluster.from_cluster_attributes(own, "Eks", cluster_name="prod-eks", kubectl_provider=provider)
    applied_manifest(own, "Objects", cluster=cluster, objects=OBJECTS, removal_policy=policy)

    (found,) = of_type(template_of(own), "Custom::AWSCDK-EKS-KubernetesResource").values()
    assert json.loads(found["Properties"].pop("Manifest")) == OBJECTS
    assert found["Properties"] == {
        "ServiceToken": {"Fn::ImportValue": "kubectl"},
        "ClusterName": "prod-eks",
        "Overwrite": True,
        "ServiceTimeout": 960,
    }
    assert found["DeletionPolicy"] == deletion
