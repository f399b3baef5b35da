"""HyperPod clusters and instance groups: bounds, patterns and the service's own words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from hyperpod_cdk.catalog import _data, rules
from hyperpod_cdk.catalog.sentences import Sentence, Setting

_DATA = _data.load("hyperpod")
_BOUNDS = rules.bounds(_DATA["bounds"])
_PATTERNS = rules.patterns(_DATA["patterns"])

AS_OF: date = _data.as_of("hyperpod")

INSTANCE_GROUPS = _BOUNDS["instance_groups"]
INSTANCE_COUNT = _BOUNDS["instance_count"]
MIN_INSTANCE_COUNT = _BOUNDS["min_instance_count"]
INSTANCE_TYPES_PER_GROUP = _BOUNDS["instance_types_per_group"]
SECURITY_GROUPS = _BOUNDS["security_groups"]
SUBNETS = _BOUNDS["subnets"]
THREADS_PER_CORE = _BOUNDS["threads_per_core"]
VOLUME_GIB = _BOUNDS["volume_gib"]
LABELS = _BOUNDS["labels"]
TAINTS = _BOUNDS["taints"]
TAGS = _BOUNDS["tags"]
NODES_AT_ONCE = _BOUNDS["nodes_at_once"]
NODES_CHECKED_AT_ONCE = _BOUNDS["nodes_checked_at_once"]
TIERED_CHECKPOINTING_MEMORY_PERCENT = _BOUNDS["tiered_checkpointing_memory_percent"]
PATCHING_BATCH = _BOUNDS["patching_batch"]
PATCHING_BATCH_PERCENT = _BOUNDS["patching_batch_percent"]
PATCHING_WAIT_SECONDS = _BOUNDS["patching_wait_seconds"]
ROLLBACK_ALARMS = _BOUNDS["rollback_alarms"]
KARPENTER_POOL_GROUPS = _BOUNDS["karpenter_pool_groups"]
KARPENTER_CONSOLIDATE_AFTER_SECONDS = _BOUNDS["karpenter_consolidate_after_seconds"]
NODE_WAIT_MINUTES = _BOUNDS["node_wait_minutes"]
RESTRICTED_LUSTRE_CAPACITY_GIB = _BOUNDS["restricted_lustre_capacity_gib"]
RESTRICTED_LUSTRE_THROUGHPUT_MBPS_PER_TIB = _BOUNDS["restricted_lustre_throughput_mbps_per_tib"]

CLUSTER_NAME = _PATTERNS["cluster_name"]
CLUSTER = _PATTERNS["cluster"]
CLUSTER_ARN = _PATTERNS["cluster_arn"]
EKS_CLUSTER_ARN = _PATTERNS["eks_cluster_arn"]
INSTANCE_GROUP_NAME = _PATTERNS["instance_group_name"]
LABEL_KEY = _PATTERNS["label_key"]
LABEL_VALUE = _PATTERNS["label_value"]
TAINT_KEY = _PATTERNS["taint_key"]
TAINT_VALUE = _PATTERNS["taint_value"]
CRON = _PATTERNS["cron"]
AMI_ID = _PATTERNS["ami_id"]
RELEASE_VERSION = _PATTERNS["release_version"]
TRAINING_PLAN_ARN = _PATTERNS["training_plan_arn"]
TRAINING_PLAN_NAME = _PATTERNS["training_plan_name"]
NODE = _PATTERNS["node"]
LIFECYCLE_SCRIPT = _PATTERNS["lifecycle_script"]
ALARM_NAME = _PATTERNS["alarm_name"]
KARPENTER_POOL_NAME = _PATTERNS["karpenter_pool_name"]

KEY_NAME_LENGTH: int = _DATA["kubernetes_key_name"]["maximum"]
"""Most characters of a label or taint key after its prefix: Kubernetes' limit, which is not in SageMaker's pattern."""

TAINT_EFFECTS: tuple[str, ...] = tuple(_DATA["taint_effects"])

NODE_RECOVERY: dict[str, str] = dict(_DATA["node_recovery"])
"""Our word -> ``NodeRecovery``."""

PROVISIONING: dict[str, str | None] = dict(_DATA["provisioning"])
"""Our word -> ``NodeProvisioningMode``; None means that the property is left out."""

PATCHING_STRATEGIES: dict[str, str] = dict(_DATA["patching_strategies"])
"""Our word -> ``AutoPatchConfig.PatchingStrategy``, those that CloudFormation takes."""

DEEP_HEALTH_CHECKS: dict[str, str] = dict(_DATA["deep_health_checks"])
"""Our word -> ``OnStartDeepHealthChecks``, those that CloudFormation takes."""

NETWORK_INTERFACES: dict[str, str] = dict(_DATA["network_interfaces"])
"""Our word -> ``NetworkInterface.InterfaceType``."""

MIG_LABEL: str = _DATA["mig_label"]
"""The node label that names a partition of NVIDIA GPUs."""

MIG_CONFIGS: tuple[str, ...] = tuple(_DATA["mig_configs"]["names"])
"""The allowed values of the label: the configurations that the dependency chart gives NVIDIA's MIG manager."""

KARPENTER_PRINCIPAL: str = _DATA["karpenter"]["service_principal"]
"""The service that assumes the cluster role to scale; the same in every partition, as far as documented."""

KARPENTER_ARCHITECTURES: tuple[str, ...] = tuple(_DATA["karpenter"]["architectures"])
KARPENTER_NODE_CLASS: dict[str, str] = dict(_DATA["karpenter"]["node_class"])
KARPENTER_NODE_POOL: dict[str, str] = dict(_DATA["karpenter"]["node_pool"])
KARPENTER_CONSOLIDATION: dict[str, str] = dict(_DATA["karpenter"]["consolidation"])
"""Our word -> ``NodePool.spec.disruption.consolidationPolicy``."""

KARPENTER_DEFAULT_CONSOLIDATE_AFTER_SECONDS: int = _DATA["karpenter"]["consolidate_after_seconds"]
"""AWS's recommendation, so that pods have time to end on a node."""

NODE_WAIT_LONGEST_MINUTES: int = _DATA["bounds"]["node_wait_minutes"]["maximum"]
NODE_WAIT_DEFAULT_MINUTES: int = _DATA["node_wait"]["default_minutes"]
"""How long AWS's own setup waits for the first node of a cluster."""


@dataclass(frozen=True, kw_only=True)
class UltraServer:
    """An instance type that is sold as UltraServers only: instances of each size by its name, and their zone.

    ``kubernetes_version`` is the oldest that the EKS user guide names for them; ``gpu_slices`` says whether that guide
    partitions their GPUs. Neither is in HyperPod's documentation.
    """

    sizes: dict[str, int]
    region: str
    zone_name: str
    zone_id: str
    kubernetes_version: str
    gpu_slices: bool


def two_pools_problem(group: str, pool: str) -> str:
    """Say that Karpenter would scale ``group`` in ``pool`` and in a second pool."""
    return f"must be in one pool, got {group} again after pool {pool}; remove one of the two"


def unlike_taints_problem(group: str, other: str, *, pool: str) -> str:
    """Say that two groups of a Karpenter ``pool`` have different taints: pods would not run on all of its nodes."""
    return (
        f"must hold groups with the same taints in a pool, got {group} and {other} in pool {pool}; give both the same"
        " taints, or put each in its own pool"
    )


def ultraserver(instance_type: str) -> UltraServer | None:
    """Return what is known of the UltraServers made of ``instance_type``, or None if it is sold by the instance."""
    row = _DATA["ultraservers"].get(instance_type)
    return UltraServer(**row) if isinstance(row, dict) else None


def script_problem(script: str, *, key: str) -> str | None:
    """Say why ``script`` does not name a file below the folder of lifecycle scripts, or return None."""
    if problem := LIFECYCLE_SCRIPT.problem(script, key=key):
        return problem
    parts = script.split("/")
    if all(part not in {"", ".", ".."} for part in parts) and script.isprintable():
        return None
    plain = "/".join(part for part in parts if part not in {"", ".", ".."} and part.isprintable())
    return Sentence(
        f'must be the path of a script below the folder of lifecycle scripts, without / at its beginning, "." and "..",'
        f' got "{script}"; ',
        Setting(key, plain or LIFECYCLE_SCRIPT.example),
    )


def key_name_problem(key: str) -> str | None:
    """Say what is wrong with the length of a label or taint key's name, or return None."""
    name = key.rpartition("/")[2]
    if len(name) <= KEY_NAME_LENGTH:
        return None
    return f"must have at most {KEY_NAME_LENGTH} characters after the prefix, Kubernetes' limit, got {len(name)}"


def reserved_prefix(key: str) -> tuple[str, str] | None:
    """Return (whose, prefix) of a label or taint key that HyperPod (``hyperpod``) or Kubernetes reserves, or None."""
    prefix = key.rpartition("/")[0]
    for owner in ("hyperpod", "kubernetes"):
        for reserved in _DATA["reserved_prefixes"][owner]:
            if prefix == reserved or prefix.endswith(f".{reserved}"):
                return owner, reserved
    return None


IMMUTABLE_GROUP_PROPERTIES: tuple[str, ...] = tuple(_DATA["immutable_group_properties"])
"""The service refuses a change to one of these in an existing group: the group needs a new name."""

SERVICE_PRINCIPAL = "sagemaker.amazonaws.com"
"""The service that assumes the execution role of nodes."""

REQUIRED_TAGS: dict[str, str] = dict(_DATA["required_tag"])
"""Tags that the training operator's managed policy requires on the cluster."""

RESTRICTED_REGIONS: tuple[str, ...] = tuple(_DATA["restricted_groups"]["regions"])
"""Regions for which AWS's script for restricted instance groups has container images."""

RESTRICTED_LUSTRE_DELETION_POLICIES: dict[str, str] = dict(_DATA["restricted_groups"]["deletion_policies"])
"""Our word -> ``FSxLustreDeletionPolicy``."""


def log_group(cluster_name: str, cluster_id: str) -> str:
    """Return the log group of a cluster's nodes; ``cluster_id`` is the last part of its ARN."""
    return f"/aws/sagemaker/Clusters/{cluster_name}/{cluster_id}"


def events_log_group(cluster_name: str, *, stack_part: str) -> str:
    """Return the log group of a cluster's events; ``stack_part`` is that of its stack's id, for a stack made anew.

    The prefix makes it a target in EventBridge's console (AWS knowledge center, "I want to add an Amazon CloudWatch log
    group as a target to an Amazon EventBridge rule").
    """
    return f"/aws/events/{cluster_name}-hyperpod-{stack_part}"


LIFECYCLE_BUCKET_PREFIX: str = _DATA["lifecycle_bucket_prefix"]
"""Prefix of a lifecycle bucket's name; the managed instance-role policy allows no other."""

TRAINING_PLAN_RECLAIM_MINUTES: int = _DATA["training_plan"]["reclaim_minutes_before_end"]
"""Instances of a training plan are terminated this long before a block ends."""

TRAINING_PLAN_RECLAIM = timedelta(minutes=TRAINING_PLAN_RECLAIM_MINUTES)

TRAINING_PLAN_USABLE_STATUSES: tuple[str, ...] = tuple(_DATA["training_plan"]["statuses_usable"])
TRAINING_PLAN_TARGET: str = _DATA["training_plan"]["target_resource"]

TRAINING_PLAN_DAYS: range = range(
    _DATA["training_plan"]["duration_days"]["minimum"], _DATA["training_plan"]["duration_days"]["maximum"] + 1
)
"""Days for which a plan can be bought. The search rounds hours up to whole days."""

TRAINING_PLAN_COUNTS: tuple[int, ...] = tuple(_DATA["training_plan"]["instance_counts"])
"""Numbers of instances for which a plan can be bought."""

TRAINING_PLAN_START_DAYS_AHEAD: int = _DATA["training_plan"]["start_days_ahead"]
"""No plan starts later than this many days after it is bought."""
