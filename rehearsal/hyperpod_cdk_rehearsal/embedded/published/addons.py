"""EKS add-ons: where their pods run, what they need of the cluster, and how their versions are written.

Names, namespaces, service accounts and permissions: EKS user guide, "AWS add-ons" and "Community add-ons", and for the
add-ons of SageMaker the pages of the developer guide that each row names (read 2026-11-29).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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

VERSION = re.compile(r"v(?:(?:0|[1-9][0-9]*)\.){2}(?:0|[1-9][0-9]*)-eksbuild\.(?:0|[1-9][0-9]*)")
"""EKS user guide, the tables of versions of its add-ons: ``v1.20.4-eksbuild.1``."""

INFERENCE_ROLE_PREFIX = "SageMakerHyperPodInference"
INFERENCE_ACCOUNTS: Mapping[str, str] = {
    "operator": "hyperpod-inference-system:hyperpod-inference-controller-manager",
    "load_balancer": "hyperpod-inference-system:aws-load-balancer-controller",
    "keda": "hyperpod-inference-system:keda-operator",
}
"""Service accounts that take a role by web identity: developer guide, "Setting up your HyperPod clusters for model
deployment". The prefix is what the operator's chart asks for: aws/sagemaker-hyperpod-cli at 011ca92,
``charts/inference-operator/templates/_validateRequiredValues.tpl``."""


@dataclass(frozen=True, kw_only=True)
class Addon:
    """One add-on.

    ``namespace``: the one that it makes, or in which its service accounts are; None if no page names one. ``requires``
    maps add-ons that must be there first to their oldest version, None for any. ``needs_role``: a managed policy is
    documented for its pods. ``takes_associations``: as a member of CreateAddon. ``minimum_node_xlarge``: 4 for
    ``4xlarge``.
    """

    name: str
    namespace: str | None = "kube-system"
    service_accounts: tuple[str, ...] = ()
    needs_role: bool = False
    needs_nodes: bool = True
    takes_associations: bool = True
    through_web_identity: bool = False
    minimum_kubernetes: str | None = None
    minimum_node_xlarge: int | None = None
    requires: Mapping[str, str | None] = field(default_factory=dict)


_ADDONS = (
    # developer guide, "Task governance setup": Kubernetes 1.30 or later, no other Kueue, a node
    Addon(name=TASK_GOVERNANCE, namespace=None, minimum_kubernetes="1.30"),
    # "Installing the training operator"; that it takes no associations: awsome-distributed-training issue 1075
    Addon(
        name=TRAINING_OPERATOR,
        namespace="aws-hyperpod",
        service_accounts=("hp-training-operator-controller-manager",),
        needs_role=True,
        takes_associations=False,
        requires={CERT_MANAGER: None, POD_IDENTITY_AGENT: None},
    ),
    # "Setting up the SageMaker HyperPod observability add-on" ("The smallest Amazon EC2 instance type that works in
    # this case is 4xlarge") and its troubleshooting page
    Addon(
        name=OBSERVABILITY,
        namespace="hyperpod-observability",
        service_accounts=("hyperpod-observability-operator-otel-collector",),
        needs_role=True,
        minimum_node_xlarge=4,
        requires={POD_IDENTITY_AGENT: None},
    ),
    # "Setting up your HyperPod clusters for model deployment", "Required Add-ons"; "Inference operator installation
    # failures through SageMaker AI console": at least 13 pods, and ml.c5.4xlarge as the smallest recommended type
    Addon(
        name=INFERENCE,
        namespace="hyperpod-inference-system",
        service_accounts=("hyperpod-inference-controller-manager", "aws-load-balancer-controller", "keda-operator"),
        needs_role=True,
        through_web_identity=True,
        minimum_node_xlarge=4,
        requires={
            S3_CSI_DRIVER: "v1.14.1-eksbuild.1",
            METRICS_SERVER: "v0.7.2-eksbuild.4",
            FSX_CSI_DRIVER: "v1.6.0-eksbuild.1",
            CERT_MANAGER: "v1.18.2-eksbuild.2",
        },
    ),
    # "Install the Amazon SageMaker Spaces add-on" and its "IAM Permissions Setup"
    Addon(
        name=SPACES,
        namespace="jupyter-k8s-system",
        service_accounts=("jupyter-k8s-controller-manager", "jupyter-k8s-authmiddleware"),
        needs_role=True,
        minimum_kubernetes="1.30",
        requires={CERT_MANAGER: None, POD_IDENTITY_AGENT: None, EBS_CSI_DRIVER: None},
    ),
    Addon(name=FSX_CSI_DRIVER, service_accounts=("fsx-csi-controller-sa",), needs_role=True),
    # its permissions are those of its user's buckets, no managed policy
    Addon(name=S3_CSI_DRIVER, service_accounts=("s3-csi-driver-sa",)),
    Addon(name=EBS_CSI_DRIVER, service_accounts=("ebs-csi-controller-sa",), needs_role=True),
    Addon(
        name=CLOUDWATCH_OBSERVABILITY,
        namespace="amazon-cloudwatch",
        service_accounts=("cloudwatch-agent",),
        needs_role=True,
    ),
    Addon(name=POD_IDENTITY_AGENT, needs_nodes=False),
    Addon(name=CERT_MANAGER, namespace="cert-manager"),
    Addon(name=METRICS_SERVER),
    # a role of its own, or that of the nodes
    Addon(name=VPC_CNI, service_accounts=("aws-node",), needs_nodes=False),
    Addon(name=KUBE_PROXY, needs_nodes=False),
    # "When you launch an Amazon EKS cluster with at least one node, two replicas of the CoreDNS image are deployed"
    Addon(name=COREDNS),
)

_BY_NAME: Mapping[str, Addon] = {each.name: each for each in _ADDONS}

POD_IDENTITY_AGENT_IS_MISSING = "Amazon EKS Pod Identity agent is not installed in the cluster"
"""What the Amazon FSx CSI driver says: EKS user guide, "AWS add-ons", "Amazon FSx CSI driver". The agent may come
"before or after" the driver, so that it is none of ``requires``."""


def get(name: str) -> Addon | None:
    """Return an add-on by its name, or None."""
    return _BY_NAME.get(name)


def row(name: str) -> Addon:
    """Return an add-on by its name; raises KeyError for one that is not here."""
    return _BY_NAME[name]


def names() -> tuple[str, ...]:
    """Return the names of all add-ons."""
    return tuple(_BY_NAME)


def is_older(version: str, least: str) -> bool:
    """Return whether an add-on's version is older than another one."""
    return _release(version) < _release(least)


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
