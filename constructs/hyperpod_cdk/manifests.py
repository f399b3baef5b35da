"""Kubernetes objects as a resource of a stack: applied, so that they can be sent twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct


def applied_manifest(
    scope: Construct,
    construct_id: str,
    *,
    cluster: eks.ICluster,
    objects: Sequence[Mapping[str, Any]],
    removal_policy: RemovalPolicy | None = None,
) -> eks.KubernetesManifest:
    """Apply ``objects``, in their order; those that stand already are taken over.

    CDK's default is `kubectl create`, which fails for an object that stands. A creation that fails halfway leaves
    the objects before the failure, and CDK deletes nothing of a manifest that was never made: the next deployment
    would meet them again, and each one after it. `kubectl apply` takes them over (``apply_handler`` of aws-cdk's
    kubectl-handler: `apply` on creation with ``overwrite``, on every update without).

    An object that is taken out of a manifest that stays is not deleted; give each object with a life of its own a
    manifest of its own.

    ``removal_policy``: what becomes of the objects when the manifest leaves the stack; default: they are deleted.
    """
    return eks.KubernetesManifest(
        scope,
        construct_id,
        cluster=cluster,
        manifest=[dict(each) for each in objects],
        overwrite=True,
        prune=False,
        removal_policy=removal_policy,
    )
