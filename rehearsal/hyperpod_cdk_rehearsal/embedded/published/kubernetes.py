"""Kubernetes versions of EKS and of HyperPod, and what HyperPod calls its own in a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Version:
    """A minor version of Kubernetes on EKS; the dates are the first days without standard, and without any support."""

    version: str
    standard_support_ends: date
    extended_support_ends: date


VERSIONS = (
    Version("1.29", date(2025, 3, 23), date(2026, 3, 23)),
    Version("1.30", date(2025, 7, 23), date(2026, 7, 23)),
    Version("1.31", date(2025, 11, 26), date(2026, 11, 26)),
    Version("1.32", date(2026, 3, 23), date(2027, 3, 23)),
    Version("1.33", date(2026, 7, 29), date(2027, 7, 29)),
    Version("1.34", date(2026, 12, 2), date(2027, 12, 2)),
    Version("1.35", date(2027, 3, 27), date(2028, 3, 27)),
    Version("1.36", date(2027, 8, 2), date(2028, 8, 2)),
)
"""EKS user guide, "Understand the Kubernetes version lifecycle on EKS", "Amazon EKS Kubernetes release calendar"; 1.35
and 1.36 by copies of it (read 2026-11-29)."""

DEFAULT = "1.35"
"""The version of a cluster that names none. "The default version might not be the latest version available" (EKS API,
CreateCluster): which one it is, no document says."""

OF_HYPERPOD = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")
"""SageMaker AI developer guide, "Getting started with Amazon EKS support in SageMaker HyperPod" (read 2026-11-29)."""

KARPENTER_PRINCIPAL = "hyperpod.sagemaker.amazonaws.com"
"""Who takes the role of the cluster to scale it: developer guide, "Create an IAM role for HyperPod autoscaling with
Karpenter"."""

KARPENTER_GROUPS = frozenset({"karpenter.sagemaker.amazonaws.com", "karpenter.sh"})
"""API groups of ``HyperpodNodeClass`` and ``NodePool``: developer guide, "Create a NodeClass", "Create a NodePool"."""

PARTITION_LABEL = "nvidia.com/mig.config"
"""The label with which a group partitions its GPUs: developer guide, "Using GPU partitions in Amazon SageMaker
HyperPod"."""
