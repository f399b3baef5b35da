"""Task governance: limits, names and terms of cluster policies and compute quotas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from hyperpod_cdk.catalog import _data, addons, instance_types, rules
from hyperpod_cdk.catalog.closest import closest
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.kubernetes import SYSTEM_NAMESPACE
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import Removal, Sentence, Setting, Stated

_DATA = _data.load("governance")
_BOUNDS = rules.bounds(_DATA["bounds"])
_PATTERNS = rules.patterns(_DATA["patterns"])

AS_OF: date = _data.as_of("governance")

PRIORITY_CLASSES = _BOUNDS["priority_classes"]
PRIORITY_WEIGHT = _BOUNDS["priority_weight"]
FAIR_SHARE_WEIGHT = _BOUNDS["fair_share_weight"]
BORROW_LIMIT_PERCENT = _BOUNDS["borrow_limit_percent"]
QUOTA_RESOURCES = _BOUNDS["quota_resources"]
ABSOLUTE_BORROW_LIMITS = _BOUNDS["absolute_borrow_limits"]
QUOTA_COUNT = _BOUNDS["quota_count"]

PRIORITY_CLASS_NAME = _PATTERNS["priority_class_name"]
TEAM_NAME = _PATTERNS["team_name"]
POLICY_NAME = _PATTERNS["policy_name"]
DESCRIPTION = _PATTERNS["description"]
RESOURCE_NAME = _PATTERNS["resource_name"]
QUANTITY = _PATTERNS["quantity"]

ORDERINGS: tuple[str, ...] = tuple(_DATA["words"]["ordering"])
"""How queued tasks are admitted; with ``first_come_first_served`` a policy has no priority classes."""

IDLE_COMPUTE: dict[str, str] = dict(_DATA["words"]["idle_compute"])
"""Our word -> ``SchedulerConfig.FairShare``."""

SHARING: dict[str, str] = dict(_DATA["words"]["sharing"])
"""Our word -> ``ResourceSharingConfig.Strategy``."""

PREEMPTION: dict[str, str] = dict(_DATA["words"]["preemption"])
"""Our word -> ``ComputeQuotaConfig.PreemptTeamTasks``."""

ACCESS: tuple[str, ...] = tuple(_DATA["words"]["access"])
"""How members of a team get their permissions: from AWS's access policies, or from Kubernetes roles."""

POD_SECURITY: tuple[str, ...] = ("baseline", "privileged", "restricted")
"""Levels of Kubernetes' Pod Security Standards, the default first.

With baseline and stricter levels, a pod cannot become root on its node: no privileged container, no folder, network or
processes of the node (kubernetes.io, "Pod Security Standards").
"""

KUEUE_NAMESPACE = "kueue-system"
KUEUE_DEPLOYMENT = "kueue-controller-manager"
"""The deployment that serves Kueue's webhooks; AWS's Terraform waits for it (awsome-distributed-ai,
``modules/task_governance/main.tf``)."""

OUT_OF_KUEUES_SIGHT: frozenset[str] = frozenset({SYSTEM_NAMESPACE, KUEUE_NAMESPACE})
"""Namespaces for whose workloads Kueue's webhooks are not called.

Everywhere else the API server refuses deployments, stateful sets, jobs and pods while Kueue does not answer: the add-on
turns the integrations ``deployment``, ``statefulset`` and ``pod`` on, and these two are all that its
``managedJobsNamespaceSelector`` leaves out (SageMaker developer guide, "Task governance setup", "Kueue Settings"); with
an integration on, its webhook has ``failurePolicy: Fail`` (Kueue v0.19.2, ``charts/kueue/templates/webhook``).
"""

SCHEDULER_CONFIG = "AWS::SageMaker::ClusterSchedulerConfig"
COMPUTE_QUOTA = "AWS::SageMaker::ComputeQuota"

NATIVE_REGIONS: Mapping[str, frozenset[str]] = {
    SCHEDULER_CONFIG: frozenset(
        {
            *("ap-northeast-1", "ap-south-1", "eu-central-1", "eu-north-1", "eu-south-2", "us-east-1", "us-west-1"),
            *("eusc-de-east-1", "us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1"),
            *("eu-isoe-west-1", "us-isof-east-1", "us-isof-south-1"),
        }
    ),
    COMPUTE_QUOTA: frozenset(
        {
            *("ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-west-1"),
            *("eu-west-2", "sa-east-1", "us-east-1", "us-east-2", "us-west-2"),
            *("eusc-de-east-1", "us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1"),
            *("eu-isoe-west-1", "us-isof-east-1", "us-isof-south-1"),
        }
    ),
}
"""Regions in which CloudFormation's own types are used, as of the first release; must never change.

The catalog's registry lists grow whenever they are refreshed. If they decided, a region that gains a type would change
the custom resources of stacks deployed there into native ones, which CloudFormation refuses ("update of resource type
is not permitted"). A resource created anew would conflict with the name, the team and the cluster's one policy of the
old one. So a region that was added later keeps the custom resource, which does the same.
"""

POLICY_PART = "policy"
"""The part after the prefix in the name of a cluster policy; the quota of a team of this name has that name too."""


def member_problem(arn: str, administrators: Sequence[str], *, listed: str) -> str | None:
    """Say that a team's member is one of the cluster's ``administrators``, whose list is ``listed``, or return None."""
    if arn not in administrators:
        return None
    return (
        f"must not be an administrator of the cluster, got {arn} as in {listed}[{administrators.index(arn)}]: EKS"
        " allows one access entry per role; remove it here, because administrators can do what members can"
    )


def made_name(prefix: str, part: str) -> str:
    """Return the default name of a team's quota, or of the policy (``POLICY_PART``)."""
    return f"{prefix}-{part}"


@dataclass(frozen=True, kw_only=True)
class NameTaken:
    """A quota's name that another team's quota or the policy of the cluster has too."""

    team: int
    name: str
    is_policys: bool


def names_taken(prefix: str, teams: Sequence[tuple[str, str | None]], policy_name: str | None) -> Iterator[NameTaken]:
    """Find the quotas whose names are not unique, of teams as (name, quota_name in the file).

    A template would create both, and an import by name could get the wrong one.
    """
    names = [stated or made_name(prefix, team) for team, stated in teams]
    policy = policy_name or made_name(prefix, POLICY_PART)
    for index, name in enumerate(names):
        if names.count(name) > 1 or name == policy:
            yield NameTaken(team=index, name=name, is_policys=names.count(name) == 1)


_NAMESPACES_OF_OTHERS = ("default", "aws-hyperpod", "mount-s3")


def is_native(resource_type: str, region: str) -> bool:
    """Return whether environments in ``region`` use CloudFormation's own ``resource_type``; see ``NATIVE_REGIONS``."""
    return region in NATIVE_REGIONS[resource_type]


def pod_security_labels(level: str) -> dict[str, str]:
    """Return the labels with which Kubernetes refuses pods beyond a level, and warns about jobs that create them.

    Kubernetes refuses the pods, not the jobs that create them, so the user who applies a job gets a warning.
    """
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("audit", "enforce", "warn")}


def is_namespace_of_others(name: str) -> bool:
    """Return whether a namespace is Kubernetes' own or an operator's, whose pods may need more permissions."""
    return name.startswith("kube-") or "-system" in name or name in _NAMESPACES_OF_OTHERS


SHARES: tuple[str, ...] = tuple(_DATA["amounts"]["together"])
"""The amounts of a quota row for parts of instances; they can be combined, but not with a number of instances."""

BESIDE_PARTITION: tuple[str, ...] = tuple(_DATA["amounts"]["with_partition"])
"""The amounts that can be combined with an accelerator partition."""

PARTITION_PROFILES: tuple[str, ...] = tuple(_DATA["partitions"]["profiles"])
"""MIG profiles that the API accepts in a quota; ``InstanceType.mig_profiles`` are those that a type supports."""

PARTITION_LABEL: str = _DATA["partitions"]["node_label"]
"""The node label with which an instance group requests GPU partitions."""

KUEUE_GROUP = "kueue.x-k8s.io"
"""The API group of every Kueue installation."""

KUEUE_API = f"{KUEUE_GROUP}/v1beta2"
"""The newest API version of Kueue's objects."""

RESOURCE_QUOTA_NAME: str = _DATA["resource_quota"]["name"]
DEFAULT_QUEUE: str = _DATA["default_queue"]["name"]
"""The name of the Kueue local queue for jobs that name none."""

DEFAULT_PRIORITY_CLASSES: tuple[tuple[str, int], ...] = tuple(
    (row["name"], row["weight"]) for row in _DATA["default_priority_classes"]
)
"""(name, weight) of the default classes of a policy ordered by priority."""

DEFAULT_BORROW_LIMIT_PERCENT: int = _DATA["defaults"]["borrow_limit_percent"]
DEFAULT_FAIR_SHARE_WEIGHT: int = _DATA["defaults"]["fair_share_weight"]

QUEUE_LABEL: str = _DATA["labels"]["queue"]
PRIORITY_LABEL: str = _DATA["labels"]["priority"]


def namespace(team: str) -> str:
    """Return the namespace that a compute quota creates for ``team``."""
    return str(_DATA["names"]["namespace"]).format(team=team)


TEAM_PREFIX: str = namespace("")
"""What the namespaces of teams begin with."""


def team_of(namespace: str) -> str | None:
    """Return the team whose namespace it is, or None for a namespace of nobody's."""
    return namespace.removeprefix(TEAM_PREFIX) if namespace.startswith(TEAM_PREFIX) else None


def no_team_problem(namespace: str, *, near: str | None) -> str:
    """Say that a team's namespace has no team; ``near`` is the namespace that was probably meant."""
    fix = (
        f"did you mean {near}?"
        if near and near != namespace
        else f'add the team "{team_of(namespace)}" to task_governance.teams, or name another namespace'
    )
    return f"must be the namespace of a team, got {namespace} and there is no such team; {fix}"


def local_queue(team: str) -> str:
    """Return the Kueue local queue of ``team``, the value of ``QUEUE_LABEL``."""
    return str(_DATA["names"]["local_queue"]).format(team=team)


def cluster_queue(team: str) -> str:
    """Return the Kueue cluster queue of ``team``."""
    return str(_DATA["names"]["cluster_queue"]).format(team=team)


def priority_class(name: str) -> str:
    """Return the Kubernetes name of priority class ``name``, the value of ``PRIORITY_LABEL``."""
    return str(_DATA["names"]["priority_class"]).format(name=name)


def unranked_classes_problem(ordering: str) -> str:
    """Say that priority classes have no effect with an ``ordering`` that does not rank tasks."""
    said = ("must be left out with ", Stated("ordering", ordering), "; ")
    return Sentence(*said, Setting("ordering", "priority"), " or ", Removal("priority_classes"))


def amounts_problem(amounts: Sequence[str]) -> str | None:
    """Say why the amounts in a quota row cannot be combined (``count`` and others), or return None."""
    given = set(amounts)
    if not given:
        kinds = ", accelerators, vcpu, memory_gib or accelerator_partition"
        return Sentence("must state an amount, got none; ", Setting("count", 1, verb="add"), kinds)
    for alone, beside in (("count", ()), ("accelerator_partition", BESIDE_PARTITION)):
        others = [name for name in amounts if name != alone and name not in beside]
        if alone in given and others:
            also = f" except {joined(beside)}" if beside else ""
            return (
                f"must state {alone} without other amounts{also}, got {alone} and {joined(others)};"
                f" remove {alone}, or remove {joined(others)}"
            )
    return None


class PartitionLike(Protocol):
    """A number of GPU partitions of one profile."""

    @property
    def profile(self) -> str: ...
    @property
    def count(self) -> int: ...


class QuotaLike(Protocol):
    """The amounts of one instance type in a quota."""

    @property
    def count(self) -> int | None: ...
    @property
    def accelerators(self) -> int | None: ...
    @property
    def vcpu(self) -> float | None: ...
    @property
    def memory_gib(self) -> float | None: ...
    @property
    def accelerator_partition(self) -> PartitionLike | None: ...
    @property
    def amounts(self) -> Sequence[str]: ...


def instance_shares(row: QuotaLike, numbers: InstanceType | None) -> dict[str, float] | None:
    """Return what a row takes of ``accelerators``, ``vcpu`` and ``memory_gib``, each in instances of its type.

    None if the type's numbers are unknown or the row is not valid.
    """
    if row.count is not None:
        return dict.fromkeys(SHARES, float(row.count))
    if numbers is None or amounts_problem(row.amounts):
        return None
    accelerators = _accelerators(row, numbers)
    if accelerators is None:
        return None
    stated = {
        "accelerators": accelerators,
        "vcpu": None if row.vcpu is None else row.vcpu / numbers.vcpu,
        "memory_gib": None if row.memory_gib is None else row.memory_gib / numbers.memory_gib,
    }
    # amounts that are left out follow those that are set: accelerators before vCPU before memory
    ratio = accelerators or stated["vcpu"] or stated["memory_gib"] or 0.0
    return {name: ratio if share is None else share for name, share in stated.items()}


def _accelerators(row: QuotaLike, numbers: InstanceType) -> float | None:
    """Return the share of an instance's accelerators, None if it is unknown."""
    partition = row.accelerator_partition
    if row.accelerators is None and partition is None:
        return 0.0
    if not numbers.is_accelerated:
        return None
    if partition is None:
        return (row.accelerators or 0) / numbers.accelerator_count
    if partition.profile not in numbers.mig_profiles:
        return None
    per_gpu = partitions_per_accelerator(partition.profile, numbers.mig_profiles)
    return partition.count / per_gpu / numbers.accelerator_count


def accelerator_problems(
    numbers: InstanceType, *, accelerators: int | None, profile: str | None
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what a quota cannot have of a type: the place in the row, and the sentence of the error.

    ``accelerators`` of a type without any, and a MIG ``profile`` that its GPUs do not support.
    """
    if accelerators is not None and not numbers.is_accelerated:
        yield (
            ("accelerators",),
            (
                f"must be left out, got {accelerators} of {numbers.name}, which has no accelerators; set"
                " count, vcpu or memory_gib"
            ),
        )
    if profile is None or profile in numbers.mig_profiles:
        return
    profiles = [name for name in numbers.mig_profiles if name in PARTITION_PROFILES]
    yield (
        ("accelerator_partition", "profile"),
        Sentence(
            f"must be a MIG profile of {numbers.name} ({', '.join(profiles)}; as of {instance_types.AS_OF}), got"
            f" {profile}; ",
            Setting("profile", closest(profile, profiles) or profiles[0]),
        )
        if profiles
        else f"must be of a type whose GPUs can be partitioned, got {numbers.name} (as of"
        f" {instance_types.AS_OF}); set count or accelerators in place of accelerator_partition",
    )


def same_quota_name_problem(name: str) -> str:
    """Say that the quotas of two teams would have one name."""
    return f'must be unique, got "{name}", which is the name of another team\'s quota; rename one of the two'


def same_row_problem(what: str, other: str) -> str:
    """Say that a row of a quota or of limits repeats the type, or the profile of a type, of the row at ``other``."""
    return f"must be unique, got {what} as in {other}; add the counts up in one of the two"


def borrowing_problem(sharing: str, *, key: str, strategy: str = "strategy") -> str:
    """Say that ``key``, a limit on borrowing, has no effect on a team that does not borrow.

    ``strategy`` is the caller's name for the sharing strategy.
    """
    return Sentence(
        "needs ",
        Stated(strategy, "lend_and_borrow"),
        ", got ",
        Stated(strategy, sharing),
        "; ",
        Removal(key),
        " or ",
        Setting(strategy, "lend_and_borrow"),
    )


_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_LIMITED_BY_KUBERNETES = (
    *_COMPUTE,
    *(f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE),
    "requests.storage",
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "persistentvolumeclaims"),
    *("configmaps", "services.nodeports", "services.loadbalancers"),
)
"""Names without a domain that a ResourceQuota may limit; any other is an invalid quota (Kubernetes 1.35,
``pkg/apis/core/helper/helpers.go``, ``IsStandardQuotaResourceName``)."""
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")


def limited_resource_problem(name: str) -> str | None:
    """Say that Kubernetes refuses a limit, or never enforces it: it counts requests of extended resources."""
    if "/" not in name and name not in _LIMITED_BY_KUBERNETES and not name.startswith(_HUGE_PAGES):
        near = closest(name, _LIMITED_BY_KUBERNETES)
        fix = f"did you mean {near}?" if near else "write one of these"
        return (
            f"must be {joined(_LIMITED_BY_KUBERNETES, last='or')}, or have the domain of its resource before a slash,"
            f" got {name}; {fix}"
        )
    is_extended = "/" in name and not name.startswith("count/") and ".storageclass.storage.k8s.io/" not in name
    if not is_extended or name.startswith("requests."):
        return None
    return (
        f"must begin with requests., the only kind of limit that Kubernetes enforces for such a resource, got"
        f" {name}; write requests.{name.removeprefix('limits.')}"
    )


def partitions_per_accelerator(profile: str, profiles: Sequence[str]) -> int:
    """Return how many partitions of ``profile`` fit on one GPU; ``profiles`` are all those of the type.

    A GPU has seven slices of compute and eight of memory; a profile of all seven holds the whole memory.
    """
    slices = _DATA["partitions"]
    whole = max(_partition(each)[1] for each in profiles)
    compute, memory = _partition(profile)
    memory_slices = max(1, round(memory * slices["memory_slices"] / whole))
    return int(min(slices["compute_slices"] // compute, slices["memory_slices"] // memory_slices))


def limited_resource(kind: str, *, profile: str = "") -> str:
    """Return the name under which a ResourceQuota limits ``kind``.

    Kinds are gpu, neuron, neurondevice, efa, and partition with its profile.
    """
    return str(_DATA["resource_quota"][kind]).format(profile=profile)


def default_queue_problem(addon_version: str) -> str | None:
    """Say that task governance of ``addon_version`` does not support a default queue, or return None."""
    kueue, least = _kueue(addon_version), _numbers(_DATA["default_queue"]["kueue"])
    if kueue is None or kueue >= least:
        return None
    first = next(version for version, of in addons.row(addons.TASK_GOVERNANCE).kueue.items() if _numbers(of) >= least)
    return (
        f"needs task governance {first} or newer, whose Kueue puts jobs without a queue into the one named"
        f" {DEFAULT_QUEUE}, got {addon_version}"
    )


def update_problem(installed: str, wanted: str) -> str | None:
    """Say why EKS cannot update task governance from one add-on version to another, or return None."""
    rule = _DATA["update"]
    before, after = addons.release(installed), addons.release(wanted)
    if before is None or after is None or before >= _numbers(rule["before"]) or after < _numbers(rule["not_to"]):
        return None
    return (
        f"must not skip from {installed} to {wanted}, because releases before {rule['before']} store Kueue's custom"
        f" resource definitions in a version that releases from {rule['not_to']} on no longer have"
    )


def local_queue_api(addon_version: str | None = None) -> str:
    """Return the API version of a Kueue local queue; without a version that of a recent add-on."""
    is_old = addon_version is not None and not serves_kueue_api(addon_version, KUEUE_API)
    return f"{KUEUE_GROUP}/v1beta1" if is_old else KUEUE_API


def serves_kueue_api(addon_version: str, api: str) -> bool:
    """Return whether the Kueue of an add-on version serves ``api`` (``kueue.x-k8s.io/v1beta2``); v1beta1 all of them
    do.

    True for a version that cannot be read.
    """
    kueue = _kueue(addon_version)
    return api != KUEUE_API or kueue is None or kueue >= _numbers(_DATA["default_queue"]["v1beta2"])


def _kueue(addon_version: str) -> tuple[int, ...] | None:
    """Return the Kueue of an add-on version: that of the newest listed release up to it; None if it is unreadable."""
    got = addons.release(addon_version)
    if got is None:
        return None
    listed: dict[str, Any] = dict(addons.row(addons.TASK_GOVERNANCE).kueue)
    older = [kueue for version, kueue in listed.items() if _numbers(version) <= got]
    return _numbers(older[-1]) if older else (0,)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _partition(profile: str) -> tuple[int, int]:
    match = re.fullmatch(r"mig-(\d+)g\.(\d+)gb", profile)
    if match is None:
        raise ValueError(f'must be a MIG profile such as {PARTITION_PROFILES[0]}, got "{profile}"')
    return int(match[1]), int(match[2])
