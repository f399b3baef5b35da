"""EKS add-ons: whose code they run, and which of their settings decide what runs, and with which permissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from hyperpod_cdk.catalog import addons
from hyperpod_cdk.review.rights.statements import text
from hyperpod_cdk.yaml_reading import read_inner

_OF_EKS: Final = frozenset(
    {
        *("adot", "amazon-cloudwatch-observability", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-fsx-csi-driver"),
        *("aws-guardduty-agent", "aws-mountpoint-s3-csi-driver", "aws-network-flow-monitoring-agent"),
        *("aws-privateca-connector-for-kubernetes", "cert-manager", "coredns", "eks-node-monitoring-agent"),
        *("eks-pod-identity-agent", "external-dns", "fluent-bit", "kube-proxy", "kube-state-metrics", "metrics-server"),
        *("prometheus-node-exporter", "snapshot-controller", "vpc-cni"),
    }
)
"""Add-ons that AWS builds. Source: Amazon EKS user guide, "AWS add-ons" and "Community add-ons"."""

_ONLY_WHERE_AND_HOW_MANY: Final = frozenset(
    {
        *("affinity", "autoScaling", "autoscaling", "labels", "logLevel", "maxReplicas", "minReplicas", "nodeSelector"),
        *("podAnnotations", "podDisruptionBudget", "podLabels", "priorityClassName", "replicaCount", "replicas"),
        *("resources", "tolerations", "topologySpreadConstraints", "updateStrategy", "verbosity"),
    }
)
"""Keys, at any depth, whose values decide where Pods run, how many and how large, but not their permissions."""

_GIVES: Final = (
    *("image", "registry", "repository", "privileged", "securitycontext", "capabilities", "hostnetwork", "hostpid"),
    *("hostpath", "command", "args", "clusterrole", "rbac", "serviceaccount", "rolearn", "volumes", "rules"),
)
"""Parts of the names of keys that decide which code runs, or with which permissions."""


def is_of_eks(name: str) -> bool:
    """Whether AWS builds the add-on with this name; one that is unknown here is another publisher's."""
    return name in _OF_EKS or addons.get(name) is not None


def settings(value: Any) -> dict[str, str]:
    """Return the settings of ``ConfigurationValues`` that may give permissions, by path; unreadable ones under one
    key."""
    if value in (None, ""):
        return {}
    stated = value
    if isinstance(value, str):
        try:
            stated = read_inner(value)
        except (yaml.YAMLError, RecursionError):
            return {"ConfigurationValues": value}
    return dict(_leaves(stated, ()))


def gives(path: str) -> bool:
    """Whether a setting decides which code runs, or with which permissions, according to its name."""
    lowered = path.lower()
    return any(each in lowered for each in _GIVES)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if str(key) not in _ONLY_WHERE_AND_HOW_MANY:
                yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, str(index)))
    else:
        yield ".".join(path) or "ConfigurationValues", text(value)
