"""Kubernetes objects as CDK's kubectl handler gets them."""

from __future__ import annotations

import json
from collections.abc import Callable

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks

import hyperpod_cdk as hp
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


@pytest.mark.parametrize("kind", ["chart", "claims", "pools", "webhooks"])
def test_a_cluster_that_is_known_by_its_name_alone_is_refused(kind: str) -> None:
    own = stack()
    cluster = eks.Cluster.from_cluster_attributes(own, "Eks", cluster_name="prod-eks")
    makers: dict[str, Callable[[], object]] = {
        "chart": lambda: hp.HyperPodDependencies(
            own, "C", cluster=cluster, instance_types=["ml.m5.2xlarge"], chart=hp.HyperPodChart.placeholder()
        ),
        "claims": lambda: hp.S3Claims(
            own,
            "C",
            cluster=cluster,
            bucket=hp.MountedBucket(bucket="their-data"),
            region="us-east-1",
            claim_name="data",
            namespaces=["team"],
        ),
        "pools": lambda: hp.KarpenterPools(
            own, "C", cluster=cluster, pools=[hp.Pool(name="burst", instance_groups=["burst"])]
        ),
        "webhooks": lambda: hp.WebhookReady(
            own,
            "C",
            cluster=cluster,
            addon=eks.CfnAddon(own, "Addon", addon_name="metrics-server", cluster_name="prod-eks"),
            namespace="kube-system",
            deployments=["metrics-server"],
        ),
    }
    with pytest.raises(ValueError, match=r".") as refused:
        makers[kind]()
    assert str(refused.value) == (
        "cluster: must have a kubectl provider, got a cluster without one; pass that of ExistingControlPlane, or give"
        " Cluster.from_cluster_attributes its kubectl_provider"
    )
