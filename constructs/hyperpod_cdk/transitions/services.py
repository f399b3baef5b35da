"""What AWS's services ask of the order of stacks beside CloudFormation, and what an update leaves on in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hyperpod_cdk.catalog import addons
from hyperpod_cdk.review.rights.kubernetes import called, objects
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.values import resolve
from hyperpod_cdk.transitions.order import Order

POOL: Final = "NodePool"
POOLS: Final = (POOL, "HyperpodNodeClass")
"""Kubernetes objects by which Karpenter makes nodes."""

CLAIM: Final = "PersistentVolumeClaim"
WATCHERS: Final = frozenset({"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"})
"""What shows others and holds nothing of its own: CloudWatch retains the history of an alarm that is deleted
(CloudWatch API, DescribeAlarmHistory), and a dashboard is its body (PutDashboard)."""
_VOLUME: Final = "PersistentVolume"
_CLUSTER: Final = "AWS::SageMaker::Cluster"
_ADD_ON: Final = "AWS::EKS::Addon"
_OBJECTS: Final = {
    addons.TRAINING_OPERATOR: "its jobs (HyperPodPyTorchJob), with their pods,",
    addons.INFERENCE: "its endpoints (InferenceEndpointConfig, JumpStartModel), with their pods,",
    addons.SPACES: "its spaces, with their volumes and the files on these,",
}
"""Add-ons whose users make objects of the add-on's own kinds."""
_SWITCHES: Final = {
    "AutoScaling": "autoscaling: disabled",
    "TieredStorageConfig": "tiered_checkpointing: {enabled: false}",
}
"""Parts of a cluster that UpdateCluster leaves as they are where it is told nothing of them, and what turns each off in
the file. AWS says of neither that leaving it out turns it off (SageMaker API, UpdateCluster)."""


def kubernetes_objects(assembly: Assembly, resource: Resource) -> Iterator[dict[str, Any]]:
    """Give the Kubernetes objects that a custom resource holds, references resolved as far as templates tell."""
    if resource.type.startswith("Custom::"):
        yield from objects(resolve(assembly, resource.stack, resource.properties))


def orders(base: Assembly, head: Assembly) -> Iterator[Order]:
    """Give what comes first though CloudFormation would take it the other way round.

    HyperPod's Karpenter drains the nodes of a pool that goes only while it runs, so pools go before it is turned off.
    """
    going = _pools(base) - _pools(head)
    for cluster in base.of_type(_CLUSTER):
        after = head.find(cluster.stack, cluster.logical_id)
        if not _is_on(cluster, "AutoScaling") or (after is not None and _is_on(after, "AutoScaling")):
            continue
        for stack in sorted({stack for stack, _, _ in going} - {cluster.stack}):
            names = ", ".join(sorted({name for each, _, name in going if each == stack}))
            why = f"{stack} drops the Karpenter pools {names}, whose nodes go only while {cluster.stack} has it running"
            yield Order(first=stack, then=cluster.stack, why=why, is_checked=False)


def left_on(before: Assembly, after: Assembly) -> Iterator[str]:
    """Say what is on, and leaves the template without being turned off."""
    for cluster in before.of_type(_CLUSTER):
        now = after.find(cluster.stack, cluster.logical_id)
        for name, written in _SWITCHES.items():
            if now is not None and _is_on(cluster, name) and name not in now.properties:
                yield (
                    f"{cluster.stack} / {cluster.name}: {name} is on and leaves the template, and AWS may leave it on; "
                    f"deploy {written} first, and leave it out afterwards."
                )


def orphaned(before: Assembly, after: Assembly, *, is_cluster_kept: bool) -> Iterator[str]:
    """Say which operators go in a step while their EKS cluster stays: of their objects nobody knows the fate.

    An add-on "is deleted from the cluster" (EKS API, DeleteAddon); of custom resource definitions no page tells.
    """
    if not is_cluster_kept:
        return
    for addon in before.of_type(_ADD_ON):
        has = _OBJECTS.get(str(addon.properties.get("AddonName")))
        is_kept = addon.is_kept_on_delete or addon.properties.get("PreserveOnDelete") is True
        if has and not is_kept and after.find(addon.stack, addon.logical_id) is None:
            yield (
                f"{addon.stack} / {addon.name}: whether {has} go with the operator is not documented; end or save them "
                "before."
            )


def balanced(resource: Resource) -> Iterator[str]:
    """Say what a person deletes before an operator that made load balancers goes, with whoever would delete these.

    Of a load balancer that stays, the interfaces keep a VPC from being deleted (EKS user guide, "Delete a cluster").
    """
    if resource.type == _ADD_ON and resource.properties.get("AddonName") == addons.INFERENCE:
        yield (
            "Delete the endpoints (InferenceEndpointConfig, JumpStartModel) with kubectl and wait until their load "
            "balancers are gone: nobody deletes these afterwards, and while they stay EC2 does not delete their VPC."
        )


def _is_on(cluster: Resource, name: str) -> bool:
    part = cluster.properties.get(name)
    return isinstance(part, dict) and part.get("Mode") == "Enable"


def _pools(assembly: Assembly) -> set[tuple[str, str, str]]:
    return {
        (resource.stack, kind, name)
        for resource in assembly.resources()
        for kind, _, name in map(called, kubernetes_objects(assembly, resource))
        if kind in POOLS
    }


def is_view(assembly: Assembly, resource: Resource) -> bool:
    """Whether it is nothing but claims with volumes of their own that leave alone what they lead to.

    Source: kubernetes.io/docs/concepts/storage/persistent-volumes/#retain.
    """
    found = list(kubernetes_objects(assembly, resource))
    retained = {
        called(each)[2]
        for each in found
        if each.get("kind") == _VOLUME and _spec(each).get("persistentVolumeReclaimPolicy") == "Retain"
    }
    claims = [each for each in found if each.get("kind") == CLAIM]
    return (
        bool(found)
        and len(retained) + len(claims) == len(found)
        and all(_spec(each).get("volumeName") in retained for each in claims)
    )


def comes_back(assembly: Assembly, resource: Resource) -> bool:
    """Whether it can be deleted and created again with nothing lost."""
    return resource.type in WATCHERS or is_view(assembly, resource)


def _spec(each: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = each.get("spec")
    return spec if isinstance(spec, dict) else {}
