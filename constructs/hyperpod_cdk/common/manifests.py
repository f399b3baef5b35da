"""Kubernetes objects as a resource of a stack: applied, so that they can be sent twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import CfnResource, RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable

from hyperpod_cdk.common.selection import resources_of

_KUBECTL = tuple(
    f"Custom::AWSCDK-EKS-{what}"
    for what in ("HelmChart", "KubernetesObjectValue", "KubernetesPatch", "KubernetesResource")
)
"""Every type that CDK's kubectl provider serves (aws-cdk-lib 2.275, aws-eks-v2)."""

_ANSWER_SECONDS = 960
"""The 900 s of the functions of CDK's kubectl provider, and a minute for the answer."""


def applied_manifest(
    scope: Construct,
    construct_id: str,
    *,
    cluster: eks.ICluster,
    objects: Sequence[Mapping[str, Any]],
    after: IDependable | None = None,
    removal_policy: RemovalPolicy | None = None,
) -> eks.KubernetesManifest:
    """Apply ``objects``, in their order; existing ones are adopted.

    CDK's default is `kubectl create`, which fails for an existing object. A creation that fails halfway leaves
    the objects before the failure, and CDK deletes nothing of a manifest that was never made: the next deployment
    would meet them again, and each one after it. `kubectl apply` takes them over (``apply_handler`` of aws-cdk's
    kubectl-handler: `apply` on creation with ``overwrite``, on every update without).

    An object that is taken out of a manifest that stays is not deleted; give each object with a life of its own a
    manifest of its own.

    ``after``: what must exist before the objects. Default: nothing.

    ``removal_policy``: what becomes of the objects when the manifest leaves the stack; default: they are deleted.
    """
    refuse_without_kubectl(scope, cluster)
    manifest = eks.KubernetesManifest(
        scope,
        construct_id,
        cluster=cluster,
        manifest=[dict(each) for each in objects],
        overwrite=True,
        prune=False,
        removal_policy=removal_policy,
    )
    node = manifest.node
    _stop_waiting(cast("CfnResource", node.default_child))
    if after is not None:
        node.add_dependency(after)
    return manifest


def refuse_without_kubectl(scope: Construct, cluster: eks.ICluster) -> None:
    """Raise ValueError for a cluster to which nothing can be applied, such as one that is known by its name alone."""
    if eks.KubectlProvider.get_kubectl_provider(scope, cluster) is None:
        raise ValueError(
            "cluster: must have a kubectl provider, got a cluster without one; pass that of ExistingControlPlane, or"
            " give Cluster.from_cluster_attributes its kubectl_provider"
        )


def answer_in_time(scope: Construct) -> None:
    """Let CloudFormation stop waiting for kubectl's functions soon after the last of them has ended.

    Both functions of CDK's provider may run for 15 minutes, and `kubectl delete` waits for finalizers (a claim that a
    pod mounts, a Karpenter pool that drains). Where they are ended before they answered, CloudFormation would go on
    waiting for its default, an hour (aws-cdk issues 9970 and 33837).
    """
    for resource in resources_of(scope, *_KUBECTL):
        _stop_waiting(resource)


def _stop_waiting(resource: CfnResource) -> None:
    resource.add_property_override("ServiceTimeout", _ANSWER_SECONDS)
