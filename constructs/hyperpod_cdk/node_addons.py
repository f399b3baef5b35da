"""EKS add-ons whose pods need a node, so that they come after the HyperPod cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks as eks
from constructs import Construct

from hyperpod_cdk.catalog import addons

POD_IDENTITY_TRUST: Mapping[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}
"""Trust of a role that pods of an add-on get through EKS pod identity."""


class NodeAddon(Construct):
    """An EKS add-on that stays degraded until a node is Ready; depend on the HyperPod cluster before it.

    ``addon_version`` is emitted only when given: without it EKS takes its default for the cluster's Kubernetes
    version. ``configuration_values`` is a mapping, or text that holds a JSON object. Fields of the add-on's objects
    that somebody else set are overwritten, since EKS puts its own unmanaged CoreDNS on a new cluster. Raises ValueError
    for other text and for a version older than HyperPod accepts.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        addon_name: str,
        addon_version: str | None = None,
        configuration_values: str | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if addon_version and not cdk.Token.is_unresolved(addon_version):
            problem = addons.version_problem(addon_name, addon_version, key="addon_version")
            if problem:
                raise ValueError(f"{addon_name} {problem}")
        self.addon = eks.CfnAddon(
            self,
            "Resource",
            cluster_name=eks_cluster_name,
            addon_name=addon_name,
            addon_version=addon_version,
            configuration_values=_json_text(addon_name, configuration_values),
            resolve_conflicts="OVERWRITE",
        )


class CoreDns(NodeAddon):
    """The cluster's DNS; waiting for it before there are nodes would block the deployment."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        addon_version: str | None = None,
        configuration_values: str | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.COREDNS,
            addon_version=addon_version,
            configuration_values=configuration_values,
        )


def _json_text(addon_name: str, values: str | Mapping[str, Any] | None) -> str | None:
    if values is None:
        return None
    if not isinstance(values, str):
        return json.dumps(values, sort_keys=True)
    if cdk.Token.is_unresolved(values):
        return values
    try:
        parsed = json.loads(values)
    except ValueError as error:
        raise ValueError(
            f"{addon_name} configuration_values: must be JSON, got text that is not ({error}); pass a mapping instead"
        ) from error
    if isinstance(parsed, dict):
        return values
    raise ValueError(f"{addon_name} configuration_values: must be a JSON object, got {values}; pass a mapping instead")
