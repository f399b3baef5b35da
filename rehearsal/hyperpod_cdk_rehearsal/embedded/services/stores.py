"""The tables of the embedded EKS, SageMaker and FSx."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.services.timeline import GONE, Timeline

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Table(dict[KeyT, ValueT]):
    """A dict that is gone through as it was at the beginning: one request goes through what another adds to."""

    def __iter__(self) -> Iterator[KeyT]:
        return iter(list(super().__iter__()))

    def values(self) -> list[ValueT]:  # type: ignore[override]  # a copy is no view
        return list(super().values())

    def items(self) -> list[tuple[KeyT, ValueT]]:  # type: ignore[override]  # as above
        return list(super().items())


@dataclass
class Addon:
    """An EKS add-on; `failure` keeps the verdict on an add-on that cannot recover from a bad start.

    `refused` is what a webhook said to its objects, and `answers_at` when its own webhooks begin to answer; None: it
    has none, or they have long done so.
    """

    name: str
    arn: str
    version: str
    created: datetime
    modified: datetime
    timeline: Timeline
    request: dict[str, Any]
    tags: dict[str, str]
    failure: tuple[str, str] | None = None
    judged: bool = False
    refused: str | None = None
    answers_at: datetime | None = None


@dataclass
class AccessEntry:
    """An access entry; `made_by` names the HyperPod cluster whose creation made it."""

    principal_arn: str
    arn: str
    type: str
    username: str
    kubernetes_groups: list[str]
    created: datetime
    modified: datetime
    tags: dict[str, str]
    policies: dict[str, dict[str, Any]] = field(default_factory=Table)
    made_by: str | None = None


@dataclass
class EksCluster:
    """An EKS cluster; `view` is what DescribeCluster answers apart from its status."""

    name: str
    arn: str
    view: dict[str, Any]
    timeline: Timeline
    addons: dict[str, Addon] = field(default_factory=Table)
    access_entries: dict[str, AccessEntry] = field(default_factory=Table)
    associations: dict[str, dict[str, Any]] = field(default_factory=Table)
    updates: dict[str, tuple[dict[str, Any], Timeline]] = field(default_factory=Table)
    interfaces: list[str] = field(default_factory=list)
    upgraded: datetime | None = None
    """When its control plane was upgraded last; None where it never was, or was taken back since."""

    @property
    def version(self) -> str:
        """The Kubernetes version of the control plane, such as "1.34"."""
        return str(self.view["version"])

    @property
    def vpc_id(self) -> str:
        """The VPC of its subnets."""
        return str(self.view["resourcesVpcConfig"]["vpcId"])

    @property
    def authentication_mode(self) -> str:
        """API, API_AND_CONFIG_MAP or CONFIG_MAP."""
        return str(self.view["accessConfig"]["authenticationMode"])


@dataclass
class EksStore:
    """EKS clusters by name."""

    clusters: dict[str, EksCluster] = field(default_factory=Table)


@dataclass
class Node:
    """A node, as the latest attempt at it stands; ``instance_id`` is empty where nothing could be launched.

    ``number`` counts the nodes of the group, ``tried`` the earlier attempts. ``problem`` is why this one fails, after
    ``fails_after`` seconds, and ``retried_at`` when the next one begins; ``is_stated``: the account file states that it
    fails. Until ``busy_until`` somebody has it replaced (``is_replaced``) or rebooted. ``updated`` is when its software
    last was.
    """

    instance_id: str
    logical_id: str
    group: str
    instance_type: str
    subnet_id: str
    availability_zone_id: str
    private_ip: str
    launched: datetime
    timeline: Timeline
    image_release_version: str
    number: int = 0
    tried: int = 0
    problem: str = ""
    is_script: bool = False
    is_stated: bool = False
    fails_after: float = 0.0
    retried_at: datetime | None = None
    busy_until: datetime | None = None
    is_replaced: bool = False
    updated: datetime | None = None


@dataclass
class InstanceGroup:
    """An instance group: the specification it was last given, and its nodes."""

    spec: dict[str, Any]
    nodes: list[Node] = field(default_factory=list)
    launched: int = 0
    restricted: bool = False
    minimum_until: datetime | None = None
    """When a minimum that is not met yet is given up; None: there is none, or it was met."""
    in_service: tuple[int, int] = (0, 0)
    """Minimum and count when the group last was in service."""

    def absent(self, now: datetime) -> list[Node]:
        """Return the nodes that have no instance yet, or whose instance failed."""
        return [node for node in self.nodes if node.timeline.at(now) in {"Pending", "Failure"}]

    def current_count(self, now: datetime) -> int:
        """Return CurrentCount: the nodes with an instance that has not failed."""
        return len(self.nodes) - len(self.absent(now))

    @property
    def name(self) -> str:
        """InstanceGroupName."""
        return str(self.spec["InstanceGroupName"])


@dataclass(frozen=True)
class ClusterOperation:
    """One request that scaled a HyperPod cluster or checked its health, as DescribeClusterOperation shows it.

    ``scaling`` maps each instance group to its counts before and after; ``checks`` are the requested deep health
    checks, and ``checked`` the nodes that run them.
    """

    operation_id: str
    created: datetime
    scaling: Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]] = field(default_factory=dict)
    checks: tuple[Mapping[str, Any], ...] = ()
    checked: tuple[Node, ...] = ()


@dataclass
class HyperPodCluster:
    """A HyperPod cluster; `request` holds the cluster-level members it was created or last updated with."""

    name: str
    cluster_id: str
    arn: str
    created: datetime
    request: dict[str, Any]
    timeline: Timeline
    tags: dict[str, str]
    groups: dict[str, InstanceGroup] = field(default_factory=Table)
    failure_message: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    operations: list[ClusterOperation] = field(default_factory=list)

    @property
    def eks_cluster_arn(self) -> str | None:
        """ARN of the orchestrating EKS cluster, None for Slurm."""
        eks = (self.request.get("Orchestrator") or {}).get("Eks") or {}
        return str(eks["ClusterArn"]) if eks else None

    @property
    def is_continuous(self) -> bool:
        """Whether nodes are provisioned continuously."""
        return self.request.get("NodeProvisioningMode") == "Continuous"

    def as_requested(self) -> dict[str, Any]:
        """The cluster as a request would make it today."""
        return {
            **self.request,
            "InstanceGroups": [group.spec for group in self.groups.values() if not group.restricted],
            "RestrictedInstanceGroups": [group.spec for group in self.groups.values() if group.restricted],
        }

    def nodes(self) -> list[Node]:
        """Every node of every group."""
        return [node for group in self.groups.values() for node in group.nodes]


@dataclass
class Policy:
    """A cluster scheduler config or a compute quota; `versions` start at 1, the last is current."""

    policy_id: str
    arn: str
    cluster_arn: str
    created: datetime
    modified: datetime
    request: dict[str, Any]
    timeline: Timeline
    tags: dict[str, str]
    version: int = 1
    versions: dict[int, dict[str, Any]] = field(default_factory=Table)
    failure: str | None = None


@dataclass(frozen=True)
class PlanExtension:
    """An extension of a training plan: on offer, and bought once it is in the history of the plan."""

    offer_id: str
    plan: str
    zone_name: str
    zone_id: str
    start: datetime
    end: datetime
    bought: datetime | None = None


@dataclass
class SageMakerStore:
    """HyperPod clusters by name, policies by id, and how many of each name there ever were (ids stay unique).

    ``extension_offers`` are the extensions of plans that somebody was shown, by ID, ``extensions`` those bought.
    """

    clusters: dict[str, HyperPodCluster] = field(default_factory=Table)
    scheduler_configs: dict[str, Policy] = field(default_factory=Table)
    compute_quotas: dict[str, Policy] = field(default_factory=Table)
    generations: dict[str, int] = field(default_factory=Table)
    extension_offers: dict[str, PlanExtension] = field(default_factory=Table)
    extensions: list[PlanExtension] = field(default_factory=list)


@dataclass(frozen=True)
class FileSystemChange:
    """A request to change a file system: what FSx takes once in six hours only, and its TargetFileSystemValues."""

    asked: datetime
    limited: tuple[str, ...]
    target: Mapping[str, Any]


@dataclass
class FileSystem:
    """An FSx for Lustre file system; `view` is what DescribeFileSystems answers apart from Lifecycle."""

    file_system_id: str
    view: dict[str, Any]
    timeline: Timeline
    tags: dict[str, str]
    changes: list[FileSystemChange] = field(default_factory=list)
    """Oldest first."""
    associations: dict[str, dict[str, Any]] = field(default_factory=Table)
    association_timelines: dict[str, Timeline] = field(default_factory=Table)
    association_tags: dict[str, dict[str, str]] = field(default_factory=Table)


@dataclass
class FsxStore:
    """File systems by id."""

    file_systems: dict[str, FileSystem] = field(default_factory=Table)


def eks_clusters(context: Context) -> dict[str, EksCluster]:
    """Every EKS cluster that has not gone, by name; one that has gone is dropped."""
    return _living(context, context.state.store(EksStore).clusters)


def hyperpod_clusters(context: Context) -> dict[str, HyperPodCluster]:
    """Every HyperPod cluster that has not gone, by name."""
    return _living(context, context.state.store(SageMakerStore).clusters)


def scheduler_configs(context: Context) -> dict[str, Policy]:
    """Every cluster scheduler config that has not gone, by id."""
    return _living(context, context.state.store(SageMakerStore).scheduler_configs)


def compute_quotas(context: Context) -> dict[str, Policy]:
    """Every compute quota that has not gone, by id."""
    return _living(context, context.state.store(SageMakerStore).compute_quotas)


def file_systems(context: Context) -> dict[str, FileSystem]:
    """Every file system that has not gone, by id."""
    return _living(context, context.state.store(FsxStore).file_systems)


def eks_cluster_by_arn(context: Context, arn: str) -> EksCluster | None:
    """The EKS cluster of this ARN, None where there is none."""
    return next((cluster for cluster in eks_clusters(context).values() if cluster.arn == arn), None)


def hyperpod_cluster_on(context: Context, eks_cluster_arn: str) -> HyperPodCluster | None:
    """The HyperPod cluster that an EKS cluster orchestrates; there is one at most."""
    clusters = hyperpod_clusters(context).values()
    return next((cluster for cluster in clusters if cluster.eks_cluster_arn == eks_cluster_arn), None)


def _living(context: Context, table: dict[str, Any]) -> dict[str, Any]:
    now = context.clock.now()
    with context.state.lock:
        for key in [key for key, record in table.items() if record.timeline.at(now) == GONE]:
            del table[key]
        return dict(table)
