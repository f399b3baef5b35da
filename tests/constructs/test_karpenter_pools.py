"""Karpenter's pools as the API server gets them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks

from hyperpod_cdk.hyperpod.instance_groups import Taint
from hyperpod_cdk.hyperpod.karpenter_pools import KarpenterPools, Pool
from tests.support.templates import of_type, stack, template_of

MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
DEDICATED = Taint(key="dedicated", value="training", effect="NoSchedule")


def pools(own: cdk.Stack, *given: Pool, **options: Any) -> KarpenterPools:
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
    return KarpenterPools(own, "Pools", cluster=cluster, pools=given, **options)


def manifests(own: cdk.Stack) -> list[list[dict[str, Any]]]:
    return [json.loads(row["Properties"]["Manifest"]) for row in of_type(template_of(own), MANIFEST).values()]


def test_a_class_and_a_pool_over_its_groups() -> None:
    own = stack()
    pools(own, Pool(name="gpu", instance_groups=["spot", "on-demand"]), taints={"other": [DEDICATED]})
    ((node_class, node_pool),) = manifests(own)

    assert node_class == {
        "apiVersion": "karpenter.sagemaker.amazonaws.com/v1",
        "kind": "HyperpodNodeClass",
        "metadata": {"name": "gpu"},
        "spec": {"instanceGroups": ["spot", "on-demand"]},
    }
    assert node_pool == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "120s"},
            "template": {
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.sagemaker.amazonaws.com",
                        "kind": "HyperpodNodeClass",
                        "name": "gpu",
                    },
                    "expireAfter": "Never",
                    "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
                }
            },
        },
    }


def test_what_a_pool_may_choose() -> None:
    own = stack()
    pools(
        own,
        Pool(
            name="gpu",
            instance_groups=["a", "b"],
            consolidation="when_empty_or_underutilized",
            consolidate_after_seconds=0,
        ),
        taints={
            "a": [DEDICATED, Taint(key="x", effect="NoExecute")],
            "b": [Taint(key="x", effect="NoExecute"), DEDICATED],
        },
    )
    ((_, node_pool),) = manifests(own)

    assert node_pool["spec"]["disruption"] == {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s",
    }
    assert node_pool["spec"]["template"]["spec"]["taints"] == [
        {"key": "dedicated", "value": "training", "effect": "NoSchedule"},
        {"key": "x", "effect": "NoExecute"},
    ]


def test_each_pool_has_a_manifest_that_waits() -> None:
    own = stack()
    first = cdk.CfnResource(own, "First", type="Custom::First")
    made = pools(own, Pool(name="gpu", instance_groups=["a"]), Pool(name="cpu", instance_groups=["b"]), after=[first])

    assert list(made.manifests) == ["gpu", "cpu"]
    assert [row["DependsOn"] for row in of_type(template_of(own), MANIFEST).values()] == [["First"], ["First"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [Pool(name="GPU", instance_groups=["a"])],
            (
                'karpenter pool "GPU": name: must be 1 to 63 lower-case letters, digits and hyphens, beginning and'
                ' ending with a letter or digit, got "GPU"; set name="gpu"'
            ),
        ),
        (
            [Pool(name="gpu", instance_groups=[])],
            'karpenter pool "gpu": instance_groups: must hold instance groups, got none; add one',
        ),
        (
            [Pool(name="gpu", instance_groups=[f"g{n}" for n in range(11)])],
            'karpenter pool "gpu": instance_groups: must hold at most 10 instance groups, got 11; remove 1',
        ),
        (
            [Pool(name="gpu", instance_groups=["a"]), Pool(name="gpu", instance_groups=["b"])],
            'karpenter pools[1].name: must be unique, got "gpu" as in pools[0]; rename one of the two',
        ),
        (
            [Pool(name="gpu", instance_groups=["a"]), Pool(name="cpu", instance_groups=["a"])],
            (
                'karpenter pool "cpu": instance_groups: must be in one pool, got a again after pool gpu; remove one of'
                " the two"
            ),
        ),
        (
            [Pool(name="gpu", instance_groups=["tainted", "plain"])],
            (
                'karpenter pool "gpu": must hold groups with the same taints in a pool, got tainted and plain in pool'
                " gpu; give both the same taints, or put each in its own pool"
            ),
        ),
    ],
)
def test_misuse_is_refused(given: Sequence[Pool], message: str) -> None:
    with pytest.raises(ValueError, match="karpenter pool") as refused:
        pools(stack(), *given, taints={"tainted": [DEDICATED]})
    assert str(refused.value) == message
