"""Service quotas with AWS's names, codes and defaults.

Those of VPC are an answer of Service Quotas, as moto ships it, but for what has changed since. Others are restated:
names and defaults of SageMaker from the AWS General Reference, "Amazon SageMaker AI endpoints and quotas"; of EKS from
"Amazon Elastic Kubernetes Service endpoints and quotas" there; of EC2 from the VPC user guide, "Amazon VPC quotas"; of
FSx from the FSx for Lustre user guide, "Service quotas" (all read 2026-11). Their codes are from the listing that
``quota_codes.json`` names, which has those of the instance types; a code that was read nowhere is None.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hyperpod_cdk_rehearsal.embedded.published.instance_types import cluster_types, plan_types

INSTANCES = "Total number of instances allowed across SageMaker HyperPod clusters"
INSTANCES_OF_A_CLUSTER = "Maximum number instances allowed per SageMaker HyperPod cluster"
SPOT_INSTANCES = "Total number of Spot instances allowed across SageMaker HyperPod clusters"
SPOT_INSTANCES_OF_A_CLUSTER = "Maximum number Spot instances allowed per SageMaker HyperPod cluster"
VOLUME_SIZE = "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance"
RESTRICTED_LUSTRE = "Maximum total FSx Lustre capacity in TiB across SageMaker HyperPod restricted instance groups"
EKS_CLUSTERS = "Clusters"
ELASTIC_IPS = "EC2-VPC Elastic IPs"
PERSISTENT_2_FILE_SYSTEMS = "Lustre Persistent_2 file systems"
PERSISTENT_2_CAPACITY = "Lustre Persistent_2 storage capacity"
SCRATCH_CAPACITY = "Lustre Scratch storage capacity"
TIERING_THROUGHPUT = "Lustre Persistent Intelligent-Tiering throughput capacity"
TIERING_READ_CACHE = "Lustre Persistent Intelligent-Tiering SSD read cache storage capacity"
VPCS = "VPCs per Region"
BLOCKS_OF_A_VPC = "IPv4 CIDR blocks per VPC"
INTERFACE_ENDPOINTS_OF_A_VPC = "Interface VPC endpoints per VPC"

_CLUSTER_USAGE = "{} for cluster usage"
_NAMES = {"ml.r7i.12xlarge": "cluster-ml-r7i-12xlarge for cluster usage"}
"""Names that do not follow the pattern, in the listing of ``quota_codes.json`` too."""
_SPOT_USAGE = "{} for cluster spot instance usage"
_PLAN_CAPACITY = "Number of {} instances in reserved capacity across training plans per Region"

_CHANGED_SINCE = {"Routes per route table": 500}
"""VPC user guide, "Amazon VPC quotas": moto's answer still has 50."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One quota as Service Quotas has it."""

    service: str
    name: str
    code: str | None
    default: float
    is_adjustable: bool = True


_RESTATED: tuple[tuple[str, str, str, float], ...] = (
    ("sagemaker", INSTANCES, "L-3308CCC7", 0),
    ("sagemaker", INSTANCES_OF_A_CLUSTER, "L-2CE978FC", 20),
    ("sagemaker", SPOT_INSTANCES, "L-97A2C724", 0),
    ("sagemaker", SPOT_INSTANCES_OF_A_CLUSTER, "L-41BFBF41", 20),
    ("sagemaker", VOLUME_SIZE, "L-E13DF72A", 0),
    ("sagemaker", RESTRICTED_LUSTRE, "L-FC4D7F52", 0),
    ("sagemaker", "Number of training plans per Region", "L-867702E6", 25),
    (
        "sagemaker",
        "Maximum number of cluster scheduler config versions allowed per account in each region.",
        "L-77076358",
        100,
    ),
    ("sagemaker", "Maximum number of compute quota versions allowed per account in each region.", "L-D7137944", 100),
    ("eks", EKS_CLUSTERS, "L-1194D53C", 100),
    ("eks", "Managed node groups per cluster", "L-6D54EA21", 30),
    ("ec2", ELASTIC_IPS, "L-0263D0A3", 5),
    ("fsx", PERSISTENT_2_FILE_SYSTEMS, "L-FD6F2F22", 100),
    ("fsx", PERSISTENT_2_CAPACITY, "L-8F1B9C74", 100_800),
    ("fsx", SCRATCH_CAPACITY, "L-AD2FC696", 100_800),
    ("fsx", TIERING_THROUGHPUT, "L-0CD18A5D", 100_000),
    ("fsx", TIERING_READ_CACHE, "L-B7391FCE", 100_800),
)


def get(service: str, name: str) -> Quota:
    """Return a quota by AWS's name, one that is not of an instance type; raises KeyError for any other."""
    return _general()[service, name]


def of_service(service: str) -> Iterator[Quota]:
    """Yield the quotas of a service; those of SageMaker end with those of the instance types."""
    yield from (row for row in _general().values() if row.service == service)
    if service == "sagemaker":
        for name in cluster_types():
            yield cluster_usage(name)
            yield cluster_spot_usage(name)
            if name in plan_types():
                yield training_plan_capacity(name)


def cluster_usage(instance_type: str) -> Quota:
    """Return the quota for instances of a type in HyperPod clusters."""
    name = _NAMES.get(instance_type) or _CLUSTER_USAGE.format(instance_type)
    return _of_type("cluster", instance_type, name)


def cluster_spot_usage(instance_type: str) -> Quota:
    """Return the quota for Spot instances of a type in HyperPod clusters."""
    return _of_type("spot", instance_type, _SPOT_USAGE.format(instance_type))


def training_plan_capacity(instance_type: str) -> Quota:
    """Return the quota for instances of a type in reserved capacity across training plans."""
    return _of_type("training_plan", instance_type, _PLAN_CAPACITY.format(instance_type))


def _of_type(kind: str, instance_type: str, name: str) -> Quota:
    codes = _codes()
    code = next((codes[of][kind][instance_type] for of in codes if instance_type in codes[of].get(kind, {})), None)
    return Quota(service="sagemaker", name=name, code=code, default=0)


@cache
def _codes() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("quota_codes.json").read_text(encoding="utf-8"))
    return {of: found[of] for of in ("listed", "transcribed")}


@cache
def _general() -> Mapping[tuple[str, str], Quota]:
    # moto loads after the account id is set
    from moto.servicequotas.resources.default_quotas.vpc import VPC_DEFAULT_QUOTAS  # noqa: PLC0415

    restated = [
        Quota(service=service, name=name, code=code, default=default) for service, name, code, default in _RESTATED
    ]
    return {(row.service, row.name): row for row in (*restated, *map(_answered, VPC_DEFAULT_QUOTAS))}


def _answered(row: Mapping[str, Any]) -> Quota:
    """Read a quota of an answer of Service Quotas."""
    name = row["QuotaName"]
    return Quota(
        service=row["ServiceCode"],
        name=name,
        code=row["QuotaCode"],
        default=_CHANGED_SINCE[name] if name in _CHANGED_SINCE else row["Value"],
        is_adjustable=row["Adjustable"],
    )
