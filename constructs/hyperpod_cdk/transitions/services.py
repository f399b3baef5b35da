"""Orders of stacks that AWS's services need in addition to CloudFormation's, and what an update silently leaves on."""

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
"""Kubernetes objects with which Karpenter creates nodes."""

CLAIM: Final = "PersistentVolumeClaim"
WATCHERS: Final = frozenset({"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"})
"""Types without data of their own: CloudWatch retains the history of a deleted alarm (CloudWatch API,
DescribeAlarmHistory), and a dashboard is its body (PutDashboard)."""
_VOLUME: Final = "PersistentVolume"
_CLUSTER: Final = "AWS::SageMaker::Cluster"
_ADD_ON: Final = "AWS::EKS::Addon"
_OBJECTS: Final = {
    addons.TRAINING_OPERATOR: "its jobs (HyperPodPyTorchJob), with their pods,",
    addons.INFERENCE: "its endpoints (InferenceEndpointConfig, JumpStartModel), with their pods,",
    addons.SPACES: "its spaces, with their volumes and the files on these,",
}
"""Add-ons whose users create objects of the add-on's own kinds."""
_SWITCHES: Final = {
    "AutoScaling": "autoscaling: disabled",
    "TieredStorageConfig": "tiered_checkpointing: {enabled: false}",
}
"""Settings of a cluster that UpdateCluster keeps if a request leaves them out, and what turns each off in the file. AWS
documents for neither that leaving it out turns it off (SageMaker API, UpdateCluster)."""


def kubernetes_objects(assembly: Assembly, resource: Resource) -> Iterator[dict[str, Any]]:
    """Yield the Kubernetes objects of a custom resource, with references resolved as far as templates show them."""
    if resource.type.startswith("Custom::"):
        yield from objects(resolve(assembly, resource.stack, resource.properties))


def orders(base: Assembly, head: Assembly) -> Iterator[Order]:
    """Yield the orders that CloudFormation does not check.

    HyperPod's Karpenter drains the nodes of a deleted pool only while it runs, so pools are deleted before it is
    disabled.
    """
    going = _pools(base) - _pools(head)
    for cluster in base.of_type(_CLUSTER):
        after = head.find(cluster.stack, cluster.logical_id)
        if not _is_on(cluster, "AutoScaling") or (after is not None and _is_on(after, "AutoScaling")):
            continue
        for stack in sorted({stack for stack, _, _ in going} - {cluster.stack}):
            names = ", ".join(sorted({name for each, _, name in going if each == stack}))
            why = f"{stack} deletes the Karpenter pools {names}, which works only while {cluster.stack} runs Karpenter"
            yield Order(first=stack, then=cluster.stack, why=why, is_checked=False)


def left_on(before: Assembly, after: Assembly) -> Iterator[str]:
    """Say what is on and leaves the template without being turned off."""
    for cluster in before.of_type(_CLUSTER):
        now = after.find(cluster.stack, cluster.logical_id)
        for name, written in _SWITCHES.items():
            if now is not None and _is_on(cluster, name) and name not in now.properties:
                yield (
                    f"{cluster.stack} / {cluster.name}: {name} is on and leaves the template, and AWS may leave it on; "
                    f"deploy {written} first, and leave it out afterwards."
                )


def orphaned(before: Assembly, after: Assembly, *, is_cluster_kept: bool) -> Iterator[str]:
    """Say which operators a step deletes while their EKS cluster stays: what happens to their objects is unknown.

    An add-on "is deleted from the cluster" (EKS API, DeleteAddon); no page mentions custom resource definitions.
    """
    if not is_cluster_kept:
        return
    for addon in before.of_type(_ADD_ON):
        has = _OBJECTS.get(str(addon.properties.get("AddonName")))
        is_kept = addon.is_kept_on_delete or addon.properties.get("PreserveOnDelete") is True
        if has and not is_kept and after.find(addon.stack, addon.logical_id) is None:
            yield (
                f"{addon.stack} / {addon.name}: AWS does not document whether {has} are deleted with the operator; end"
                " or "
                "save them before."
            )


def balanced(resource: Resource) -> Iterator[str]:
    """Say what a person deletes before an operator that created load balancers is deleted: nothing else deletes them.

    The network interfaces of a remaining load balancer prevent the deletion of a VPC (EKS user guide, "Delete a
    cluster").
    """
    if resource.type == _ADD_ON and resource.properties.get("AddonName") == addons.INFERENCE:
        yield (
            "Delete the endpoints (InferenceEndpointConfig, JumpStartModel) with kubectl and wait until their load "
            "balancers are gone: nothing deletes these afterwards, and while they exist EC2 does not delete their VPC."
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
    """Whether it has only claims with volumes of their own that keep the data to which they lead.

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
