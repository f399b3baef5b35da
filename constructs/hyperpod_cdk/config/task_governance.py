"""The task_governance section: the cluster policy and the compute quotas of teams."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.rules import Bound
from hyperpod_cdk.config.eks import RoleArn
from hyperpod_cdk.config.instance_group import InstanceTypeName
from hyperpod_cdk.config.section import Check, Section, counted, filled, like, within
from hyperpod_cdk.config.suggest import closest


def _profile_problem(profile: str, key: str) -> str | None:
    if profile in governance.PARTITION_PROFILES:
        return None
    near = closest(profile, governance.PARTITION_PROFILES) or closest(f"mig-{profile}", governance.PARTITION_PROFILES)
    fix = f"did you mean {near}?" if near else f"set {key}: mig-3g.40gb or another profile of the type"
    return f'must be a MIG profile that compute quotas take, got "{profile}"; {fix}'


def _quantity_problem(quantity: str, key: str) -> str | None:
    if governance.QUANTITY.matches(quantity):
        return None
    return f'must be {governance.QUANTITY.describes}, got "{quantity}"; set {key}: "64", "512Gi" or the like'


Quantity = Annotated[str, Check(_quantity_problem, "pattern", {"pattern": f"^(?:{governance.QUANTITY.regex})$"})]
_QUOTA_COUNT = Bound(minimum=1, maximum=governance.QUOTA_COUNT.maximum, source=governance.QUOTA_COUNT.source)


class PriorityClass(Section):
    """A class that a task may name; tasks of greater weight go first."""

    name: Annotated[str, like(governance.PRIORITY_CLASS_NAME)] = Field(
        description="Name of the class; tasks name it with '-priority' at its end.", examples=["training"]
    )
    weight: Annotated[int, within(governance.PRIORITY_WEIGHT)] = Field(
        description="Weight of the class.", examples=[80]
    )


class AcceleratorPartition(Section):
    """Parts of GPUs that are partitioned (Multi-Instance GPU)."""

    profile: Annotated[str, Check(_profile_problem, "choice", {"enum": list(governance.PARTITION_PROFILES)})] = Field(
        description="MIG profile; the instance type says which it has.", examples=["mig-3g.40gb"]
    )
    count: Annotated[int, within(_QUOTA_COUNT)] = Field(description="How many partitions.", examples=[4])


class Quota(Section):
    """Compute of one instance type: whole instances, parts of them, or partitions of their GPUs.

    Of accelerators, vcpu and memory_gib, SageMaker fills in what is left out: vCPU and memory in proportion, and no
    accelerators where only vCPU or memory is stated.
    """

    instance_type: InstanceTypeName = Field(description="Instance type, ml. included.", examples=["ml.p5.48xlarge"])
    count: Annotated[int, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="How many whole instances. Without other amounts.", examples=[2]
    )
    accelerators: Annotated[int, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="How many accelerators, over all instances of the type.", examples=[4]
    )
    vcpu: Annotated[float, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="How many vCPUs, over all instances of the type.", examples=[96.0]
    )
    memory_gib: Annotated[float, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="How much memory in GiB, over all instances of the type.", examples=[1024.0]
    )
    accelerator_partition: AcceleratorPartition | None = Field(
        default=None,
        description="Partitions of GPUs, for groups whose nodes carry the label nvidia.com/mig.config. Without count"
        " and accelerators.",
        examples=[{"profile": "mig-3g.40gb", "count": 4}],
    )

    @property
    def amounts(self) -> tuple[str, ...]:
        """The names of the amounts that are stated."""
        names = ("count", *governance.SHARES, "accelerator_partition")
        return tuple(name for name in names if getattr(self, name) is not None)

    @property
    def key(self) -> tuple[str, str | None]:
        """What a team may have once: an instance type, or a type with a profile."""
        partition = self.accelerator_partition
        return self.instance_type, None if partition is None else partition.profile


class Sharing(Section):
    """Whether the team lends its idle compute and borrows that of others."""

    strategy: Literal["lend_and_borrow", "lend", "dont_lend"] = Field(
        default="lend_and_borrow", description="What the team does with idle compute."
    )
    borrow_limit_percent: Annotated[int, within(governance.BORROW_LIMIT_PERCENT)] | None = Field(
        default=None,
        description=(
            "Most that the team borrows, in percent of its own quota. Default:"
            f" {governance.DEFAULT_BORROW_LIMIT_PERCENT} with lend_and_borrow; the other strategies have none."
        ),
        examples=[governance.DEFAULT_BORROW_LIMIT_PERCENT],
    )
    absolute_borrow_limits: Annotated[
        tuple[Quota, ...], Strict(strict=False), counted(governance.ABSOLUTE_BORROW_LIMITS, "rows")
    ] = Field(
        default=(),
        description=(
            "Most that the team borrows of single instance types, whatever borrow_limit_percent says. With"
            " lend_and_borrow only."
        ),
        examples=[[{"instance_type": "ml.p5.48xlarge", "accelerators": 8}]],
    )

    @property
    def resolved_borrow_limit_percent(self) -> int | None:
        """The borrow limit, the default filled in; None for a strategy that never borrows."""
        if self.strategy != "lend_and_borrow":
            return None
        return self.borrow_limit_percent or governance.DEFAULT_BORROW_LIMIT_PERCENT


SOME_QUOTA = filled("instance type")


class Team(Section):
    """A team with its share of the cluster; its namespace is hyperpod-ns-<name>."""

    name: Annotated[str, like(governance.TEAM_NAME)] = Field(description="Name of the team.", examples=["research"])
    description: Annotated[str, like(governance.DESCRIPTION)] | None = Field(
        default=None, description="What the compute quota is for. Default: none."
    )
    active: bool = Field(
        default=True, description="Whether the compute quota is in force; without, the team keeps its place only."
    )
    fair_share_weight: Annotated[int, within(governance.FAIR_SHARE_WEIGHT)] = Field(
        default=governance.DEFAULT_FAIR_SHARE_WEIGHT,
        description="Weight with which the team gets idle compute; greater goes first, 0 goes last.",
    )
    preemption: Literal["lower_priority", "never"] = Field(
        default="lower_priority",
        description="Whether a task of the team may preempt the team's tasks of lower priority.",
    )
    quota: Annotated[
        tuple[Quota, ...],
        Strict(strict=False),
        SOME_QUOTA,
        counted(governance.QUOTA_RESOURCES, "instance types"),
    ] = Field(
        description="Compute that belongs to the team.",
        examples=[[{"instance_type": "ml.p5.48xlarge", "count": 2}]],
    )
    sharing: Sharing = Field(default_factory=Sharing, description="Lending and borrowing of idle compute.")
    member_role_arns: Annotated[tuple[RoleArn, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "IAM roles of the team's members. A role may be in several teams: EKS takes one access entry per role,"
            " which then covers the namespaces of all of them."
        ),
    )
    access: Literal["access_policies", "rbac"] = Field(
        default="access_policies",
        description=(
            "How members get their rights in the team's namespace: from the access policies that AWS keeps for"
            " HyperPod, or from Kubernetes roles of this library (Kubeflow, HyperPod, JobSet, LeaderWorkerSet, Ray and"
            " Kueue), for regions without those policies and for kinds of jobs that they leave out."
        ),
    )
    pod_security: Literal["baseline", "privileged", "restricted"] = Field(
        default="baseline",
        description=(
            "What pods in the team's namespace may ask of their node, a level of Kubernetes' Pod Security Standards."
            " With baseline no pod gets to be root on a node: nothing privileged, no folder and no network of the node."
            " Jobs of this library need no more. privileged takes the limit away; with restricted no pod may run as"
            " root inside its container either, as the images of these jobs do."
        ),
    )
    default_queue: bool = Field(
        default=False,
        description=(
            "Whether jobs of the team's namespace that name no queue go to the team's: a Kueue local queue named"
            f" {governance.DEFAULT_QUEUE}. Without it such jobs run outside of all quotas."
        ),
    )
    resource_quota: dict[Annotated[str, like(governance.RESOURCE_NAME)], Quantity] = Field(
        default_factory=dict,
        description=(
            "Limits of a Kubernetes ResourceQuota in the team's namespace: resource -> quantity in quotes. They come"
            " before those that are made where autoscaling is karpenter: as many accelerators and EFA interfaces as the"
            " team owns and may borrow, so that one team's pods do not make nodes without end."
        ),
        examples=[{"requests.nvidia.com/gpu": "64"}],
    )

    @property
    def namespace(self) -> str:
        """The namespace that task governance makes for the team."""
        return governance.namespace(self.name)


class TaskGovernance(Section):
    """Kueue, managed by HyperPod: who gets which compute, and which task goes first."""

    description: Annotated[str, like(governance.DESCRIPTION)] | None = Field(
        default=None, description="What the cluster policy is for. Default: none."
    )
    provider: Literal["auto", "native", "api"] = Field(
        default="auto",
        description=(
            "What makes the cluster policy and the compute quotas: CloudFormation's own types (native), a custom"
            " resource that calls the SageMaker API with the same properties (api), or for each type what its region"
            " had in the first release of this library, which never changes (auto). To be chosen before the first"
            " deployment: CloudFormation refuses to change the type of a resource."
        ),
    )
    ordering: Literal["first_come_first_served", "priority"] = Field(
        default="first_come_first_served", description="How waiting tasks are admitted."
    )
    priority_classes: Annotated[
        tuple[PriorityClass, ...], Strict(strict=False), counted(governance.PRIORITY_CLASSES, "priority classes")
    ] = Field(
        default=(),
        description="Classes for ordering: priority. Default: inference with weight 100 and training with weight 80.",
        examples=[[{"name": "inference", "weight": 100}, {"name": "training", "weight": 80}]],
    )
    idle_compute: Literal["fair_share", "first_come_first_served"] = Field(
        default="fair_share",
        description="How idle compute is given to teams: by fair-share weight, or to who asks first.",
    )
    idle_resource_sharing: bool | None = Field(
        default=None,
        description=(
            "Whether teams may borrow compute that no quota covers, too. Default: not said, which SageMaker takes as"
            " false."
        ),
    )
    teams: Annotated[tuple[Team, ...], Strict(strict=False)] = Field(
        default=(), description="Teams with their compute quotas."
    )

    @property
    def resolved_priority_classes(self) -> tuple[PriorityClass, ...]:
        """The priority classes, the defaults filled in; none where tasks are served as they come."""
        if self.ordering != "priority" or self.priority_classes:
            return self.priority_classes
        return tuple(PriorityClass(name=name, weight=weight) for name, weight in governance.DEFAULT_PRIORITY_CLASSES)
