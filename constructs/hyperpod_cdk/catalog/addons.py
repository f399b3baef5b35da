"""EKS add-ons that a HyperPod cluster uses: names, service accounts, policies and prerequisites."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import Any

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.catalog.sentences import Sentence, Setting

AS_OF: date = _data.as_of("addons")

VERSION = Pattern(
    regex=r"v(?:(?:0|[1-9][0-9]*)\.){2}(?:0|[1-9][0-9]*)-eksbuild\.(?:0|[1-9][0-9]*)",
    maximum=64,
    describes="an add-on version as EKS writes it",
    refers=True,
    example="v1.20.4-eksbuild.1",
    source="EKS user guide, the versions of AWS add-ons; DescribeAddonVersions has no pattern of its own",
)

VPC_CNI = "vpc-cni"
KUBE_PROXY = "kube-proxy"
COREDNS = "coredns"
POD_IDENTITY_AGENT = "eks-pod-identity-agent"
CERT_MANAGER = "cert-manager"
METRICS_SERVER = "metrics-server"
FSX_CSI_DRIVER = "aws-fsx-csi-driver"
EBS_CSI_DRIVER = "aws-ebs-csi-driver"
S3_CSI_DRIVER = "aws-mountpoint-s3-csi-driver"
CLOUDWATCH_OBSERVABILITY = "amazon-cloudwatch-observability"
TASK_GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
TRAINING_OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
INFERENCE = "amazon-sagemaker-hyperpod-inference"
SPACES = "amazon-sagemaker-spaces"

CERT_MANAGER_DEPLOYMENTS: tuple[str, ...] = ("cert-manager", "cert-manager-cainjector", "cert-manager-webhook")
"""What must be ready before the API server accepts a certificate or an issuer; AWS's Terraform waits for the three
(awsome-distributed-ai, ``modules/hyperpod_cluster/cert_manager.tf``)."""

THROUGH_POD_IDENTITY = frozenset(
    {TRAINING_OPERATOR, OBSERVABILITY, SPACES, FSX_CSI_DRIVER, EBS_CSI_DRIVER, S3_CSI_DRIVER}
)
"""Add-ons whose pods the stacks give their roles by pod identity."""

CHART_PODS: int = _data.load("addons")["dependency_chart"]["cluster_pods"]
"""Pods of the HyperPod dependency chart that run on any node."""


@dataclass(frozen=True, kw_only=True)
class Addon:
    """One add-on, and where its pods get their permissions from.

    ``namespace`` and ``service_accounts`` are those that pod identity or IRSA gives a role;
    ``managed_policies`` are names of AWS managed policies; ``needs_nodes`` says that it stays degraded or
    fails until a node is Ready; ``requires`` maps add-ons that must be there first to their oldest release
    (None: any). ``cluster_pods`` and ``node_pods`` are the least pods that it adds, once and on every node.
    ``minimum_node_xlarge`` is the size of the smallest node that has room for its pods: 4 for ``4xlarge``;
    ``architecture`` is the only one that its images support, None if they support all.
    """

    name: str
    needs_nodes: bool
    namespace: str | None = None
    service_accounts: tuple[str, ...] = ()
    managed_policies: tuple[str, ...] = ()
    cluster_pods: int = 0
    node_pods: int = 0
    minimum_version: str | None = None
    minimum_kubernetes: str | None = None
    minimum_node_xlarge: int | None = None
    architecture: str | None = None
    elastic_minimum_version: str | None = None
    inline_pod_identity: bool = True
    needs_oidc_provider: bool = False
    requires: Mapping[str, str | None] = field(default_factory=dict)
    kueue: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = ""
    unsure: str = ""


def get(name: str) -> Addon | None:
    """Return the row of an add-on, or None when the catalog does not know it."""
    return _table().get(name)


def row(name: str) -> Addon:
    """Return the row of an add-on that must be known, such as this module's constants; raises KeyError."""
    return _table()[name]


def names() -> tuple[str, ...]:
    """Return every known add-on."""
    return tuple(_table())


def version_problem(name: str, version: str, *, key: str | None = None) -> str | None:
    """Say that ``version`` (``v1.18.3-eksbuild.1``) is older than HyperPod accepts, or return None.

    Text that does not begin with a release number is left to EKS, which knows its versions.
    """
    addon = get(name)
    if addon is None or addon.minimum_version is None:
        return None
    if not _is_older(version, addon.minimum_version):
        return None
    where = key or name
    return Sentence(
        f"must be {addon.minimum_version} or newer for HyperPod, got {version}; ",
        Setting(where, f"v{addon.minimum_version}-eksbuild.1"),
        " or newer, or leave it out for EKS's default",
    )


def s3_pod_identity_problem(version: str) -> str | None:
    """Say that a version of the S3 CSI driver does not support EKS Pod Identity yet, or return None."""
    since: str = _data.load("addons")["s3_csi_pod_identity_since"]
    if not _is_older(version, since):
        return None
    return (
        f"must be {since} or newer, which supports EKS Pod Identity, got {version}; set a newer one, or "
        "leave it out for EKS's default"
    )


def published(name: str, minor: str) -> str | None:
    """Return a version that the EKS user guide names for a Kubernetes version, ``1.34``; other versions may fit too.

    None if no page names one. ``DescribeAddonVersions`` returns all versions that fit a cluster.
    """
    found: str | None = _data.load("addons")["published"]["versions"].get(name, {}).get(minor)
    return found


def release(version: str) -> tuple[int, ...] | None:
    """Return an add-on version's numbers for comparing (``v1.18.2-eksbuild.2`` -> (1, 18, 2, 2)), or None."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?:-eksbuild\.(\d+))?", version)
    return tuple(int(part or 0) for part in match.groups()) if match else None


def _is_older(version: str, least: str) -> bool:
    got, wanted = release(version), release(least)
    return got is not None and wanted is not None and got < wanted


@cache
def _table() -> dict[str, Addon]:
    return {entry["name"]: _addon(entry) for entry in _data.load("addons")["addons"]}


def _addon(entry: dict[str, Any]) -> Addon:
    lists = {name: tuple(entry.get(name, ())) for name in ("service_accounts", "managed_policies", "notes")}
    return Addon(**{**entry, **lists})


def service_account_problem(namespace: str, name: str) -> str | None:
    """Say that a service account that should get a role is that of an add-on and has one already."""
    for addon in names():
        found = row(addon)
        if namespace == found.namespace and name in found.service_accounts:
            return (
                f"must be a service account of training pods, got {namespace}/{name}, which is that of the"
                f" add-on {addon} and has its own role; name another service account"
            )
    return None
