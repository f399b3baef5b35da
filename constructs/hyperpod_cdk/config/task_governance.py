"""The task_governance section: the cluster policy and the compute quotas of teams."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.rules import Bound
from hyperpod_cdk.catalog.sentences import OnlyInFiles, Sentence, Setting
from hyperpod_cdk.config.eks import RoleArn
from hyperpod_cdk.config.instance_group import InstanceTypeName
from hyperpod_cdk.config.section import Check, Section, counted, filled, like, within
from hyperpod_cdk.config.suggest import closest


def _profile_problem(profile: str, key: str) -> str | None:
    if profile in governance.PARTITION_PROFILES:
        return None
    near = closest(profile, governance.PARTITION_PROFILES) or closest(f"mig-{profile}", governance.PARTITION_PROFILES)
    fix = f"did you mean {near}?" if near else Setting(key, "mig-3g.40gb or another profile of the type")
    return Sentence(f'must be a MIG profile that compute quotas take, got "{profile}"; ', fix)


def _quantity_problem(quantity: str, key: str) -> str | None:
    if governance.QUANTITY.matches(quantity):
        return None
    fix = Setting(key, '"64", "512Gi" or the like')
    in_quotes = OnlyInFiles(governance.QUANTITY.in_files)
    return Sentence(f"must be {governance.QUANTITY.describes}", in_quotes, f', got "{quantity}"; ', fix)


Quantity = Annotated[str, Check(_quantity_problem, "pattern", {"pattern": f"^(?:{governance.QUANTITY.regex})$"})]
_QUOTA_COUNT = Bound(minimum=1, maximum=governance.QUOTA_COUNT.maximum, source=governance.QUOTA_COUNT.source)


class PriorityClass(Section):
    """A priority class for tasks; tasks with a greater weight are admitted first."""

    name: Annotated[str, like(governance.PRIORITY_CLASS_NAME)] = Field(
        description="Name of the class. Tasks use the name with the suffix '-priority'.", examples=["training"]
    )
    weight: Annotated[int, within(governance.PRIORITY_WEIGHT)] = Field(
        description="Weight of the class.", examples=[80]
    )


class AcceleratorPartition(Section):
    """Parts of GPUs that are partitioned (Multi-Instance GPU)."""

    profile: Annotated[str, Check(_profile_problem, "choice", {"enum": list(governance.PARTITION_PROFILES)})] = Field(
        description="MIG profile; the instance type determines which profiles are available.", examples=["mig-3g.40gb"]
    )
    count: Annotated[int, within(_QUOTA_COUNT)] = Field(description="Number of partitions.", examples=[4])


class Quota(Section):
    """Compute of one instance type: whole instances, parts of them, or partitions of their GPUs.

    Of accelerators, vcpu and memory_gib, SageMaker fills in what is left out: vCPU and memory in proportion, and no
    accelerators where only vCPU or memory is stated.
    """

    instance_type: InstanceTypeName = Field(
        description="Instance type, with the prefix ml.", examples=["ml.p5.48xlarge"]
    )
    count: Annotated[int, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="Number of whole instances. Cannot be combined with other amounts.", examples=[2]
    )
    accelerators: Annotated[int, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="Number of accelerators, across all instances of the type.", examples=[4]
    )
    vcpu: Annotated[float, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="Number of vCPUs, across all instances of the type.", examples=[96.0]
    )
    memory_gib: Annotated[float, within(_QUOTA_COUNT)] | None = Field(
        default=None, description="Memory in GiB, across all instances of the type.", examples=[1024.0]
    )
    accelerator_partition: AcceleratorPartition | None = Field(
        default=None,
        description=(
            "GPU partitions, for groups whose nodes have the label nvidia.com/mig.config. Cannot be combined"
            " with count or accelerators."
        ),
        examples=[{"profile": "mig-3g.40gb", "count": 4}],
    )

    @property
    def amounts(self) -> tuple[str, ...]:
        """The names of the amounts that are stated."""
        names = ("count", *governance.SHARES, "accelerator_partition")
        return tuple(name for name in names if getattr(self, name) is not None)

    @property
    def key(self) -> tuple[str, str | None]:
        """What a team can have only once: an instance type, or a type with a profile."""
        partition = self.accelerator_partition
        return self.instance_type, None if partition is None else partition.profile


class Sharing(Section):
    """Whether the team lends its idle compute and borrows the idle compute of other teams."""

    strategy: Literal["lend_and_borrow", "lend", "dont_lend"] = Field(
        default="lend_and_borrow", description="Whether the team lends and borrows idle compute."
    )
    borrow_limit_percent: Annotated[int, within(governance.BORROW_LIMIT_PERCENT)] | None = Field(
        default=None,
        description=(
            "Maximum that the team can borrow, in percent of its own quota. Default:"
            f" {governance.DEFAULT_BORROW_LIMIT_PERCENT} with lend_and_borrow; the other strategies have no"
            " limit, because they do not borrow."
        ),
        examples=[governance.DEFAULT_BORROW_LIMIT_PERCENT],
    )
    absolute_borrow_limits: Annotated[
        tuple[Quota, ...], Strict(strict=False), counted(governance.ABSOLUTE_BORROW_LIMITS, "rows")
    ] = Field(
        default=(),
        description=(
            "Maximum that the team can borrow of individual instance types, independent of"
            " borrow_limit_percent. Only with lend_and_borrow."
        ),
        examples=[[{"instance_type": "ml.p5.48xlarge", "accelerators": 8}]],
    )

    @property
    def resolved_borrow_limit_percent(self) -> int | None:
        """The borrow limit, or its default; None for a strategy that never borrows."""
        if self.strategy != "lend_and_borrow":
            return None
        return self.borrow_limit_percent or governance.DEFAULT_BORROW_LIMIT_PERCENT


SOME_QUOTA = filled("instance type")


class Team(Section):
    """A team with its share of the cluster; its namespace is hyperpod-ns-<name>."""

    name: Annotated[str, like(governance.TEAM_NAME)] = Field(description="Name of the team.", examples=["research"])
    description: Annotated[str, like(governance.DESCRIPTION)] | None = Field(
        default=None, description="Description of the compute quota. Default: none."
    )
    quota_name: Annotated[str, like(governance.POLICY_NAME)] | None = Field(
        default=None,
        description=(
            "Name of the compute quota, for a quota that existed before the environment. SageMaker cannot rename a"
            " quota: a change replaces it. Default: the name of the environment and of the team."
        ),
        examples=["quota-research"],
    )
    active: bool = Field(
        default=True,
        description="Whether the compute quota is active. With false, the team exists but its quota has no effect.",
    )
    fair_share_weight: Annotated[int, within(governance.FAIR_SHARE_WEIGHT)] = Field(
        default=governance.DEFAULT_FAIR_SHARE_WEIGHT,
        description=(
            "Weight of the team when idle compute is distributed. Teams with a greater weight come first; 0 comes last."
        ),
    )
    preemption: Literal["lower_priority", "never"] = Field(
        default="lower_priority",
        description="Whether a task of the team can preempt tasks of the same team with lower priority.",
    )
    quota: Annotated[
        tuple[Quota, ...],
        Strict(strict=False),
        SOME_QUOTA,
        counted(governance.QUOTA_RESOURCES, "instance types"),
    ] = Field(
        description="Compute quota of the team.",
        examples=[[{"instance_type": "ml.p5.48xlarge", "count": 2}]],
    )
    sharing: Sharing = Field(default_factory=Sharing, description="Lending and borrowing of idle compute.")
    member_role_arns: Annotated[tuple[RoleArn, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "IAM roles of the team's members. A role can be in several teams: EKS allows one access entry per"
            " role, which then covers the namespaces of all its teams."
        ),
    )
    access: Literal["access_policies", "rbac"] = Field(
        default="access_policies",
        description=(
            "How members get their permissions in the team's namespace. access_policies: from the access"
            " policies that AWS manages for HyperPod. rbac: from Kubernetes roles of this library (Kubeflow,"
            " HyperPod, JobSet, LeaderWorkerSet, Ray and Kueue), for Regions without those policies and for"
            " job types that those policies do not include."
        ),
    )
    pod_security: Literal["baseline", "privileged", "restricted"] = Field(
        default="baseline",
        description=(
            "What pods in the team's namespace can do on their node: a level of the Kubernetes Pod Security"
            " Standards. baseline: no pod can get root access to a node (no privileged containers, no folders"
            " and no network of the node); the jobs of this library need no more. privileged: no limit."
            " restricted: in addition, no pod can run as root inside its container, but the images of these"
            " jobs do."
        ),
    )
    default_queue: bool = Field(
        default=False,
        description=(
            "Whether jobs in the team's namespace that name no queue use the team's queue: a Kueue local"
            f" queue named {governance.DEFAULT_QUEUE}. Without it, such jobs run outside of all quotas."
        ),
    )
    resource_quota: dict[Annotated[str, like(governance.RESOURCE_NAME)], Quantity] = Field(
        default_factory=dict,
        description=(
            "Limits of a Kubernetes ResourceQuota in the team's namespace: map from resource to quantity in"
            " quotes. They take precedence over the limits that are created with autoscaling: karpenter,"
            " which are as many accelerators and EFA interfaces as the team owns and can borrow, so that the"
            " pods of one team cannot create an unlimited number of nodes."
        ),
        examples=[{"requests.nvidia.com/gpu": "64"}],
    )

    @property
    def namespace(self) -> str:
        """The namespace that task governance creates for the team."""
        return governance.namespace(self.name)


class TaskGovernance(Section):
    """Kueue, managed by HyperPod: which team gets which compute, and which task is admitted first."""

    description: Annotated[str, like(governance.DESCRIPTION)] | None = Field(
        default=None, description="Description of the cluster policy. Default: none."
    )
    policy_name: Annotated[str, like(governance.POLICY_NAME)] | None = Field(
        default=None,
        description=(
            "Name of the cluster policy, for a policy that existed before the environment. SageMaker cannot rename a"
            " policy: a change replaces it. Default: the name of the environment with the suffix '-policy'."
        ),
        examples=[governance.POLICY_NAME.example],
    )
    provider: Literal["auto", "native", "api"] = Field(
        default="auto",
        description=(
            "What creates the cluster policy and the compute quotas. native: CloudFormation's own resource"
            " types. api: a custom resource that calls the SageMaker API with the same properties. auto: for"
            " each resource type, what the Region supported in the first release of this library, which never"
            " changes. Choose it before the first deployment: CloudFormation does not allow the type of a"
            " resource to change."
        ),
    )
    ordering: Literal["first_come_first_served", "priority"] = Field(
        default="first_come_first_served", description="How waiting tasks are ordered for admission."
    )
    priority_classes: Annotated[
        tuple[PriorityClass, ...], Strict(strict=False), counted(governance.PRIORITY_CLASSES, "priority classes")
    ] = Field(
        default=(),
        description=(
            "Priority classes for ordering: priority. Default: inference with weight 100 and training with weight 80."
        ),
        examples=[[{"name": "inference", "weight": 100}, {"name": "training", "weight": 80}]],
    )
    idle_compute: Literal["fair_share", "first_come_first_served"] = Field(
        default="fair_share",
        description="How idle compute is distributed to teams: by fair-share weight, or to the team that asks first.",
    )
    idle_resource_sharing: bool | None = Field(
        default=None,
        description=(
            "Whether teams can also borrow compute that is in no quota. Default: not set, which SageMaker"
            " treats as false."
        ),
    )
    teams: Annotated[tuple[Team, ...], Strict(strict=False)] = Field(
        default=(), description="Teams and their compute quotas."
    )

    @property
    def resolved_priority_classes(self) -> tuple[PriorityClass, ...]:
        """The priority classes, or the defaults; none with ordering: first_come_first_served."""
        if self.ordering != "priority" or self.priority_classes:
            return self.priority_classes
        return tuple(PriorityClass(name=name, weight=weight) for name, weight in governance.DEFAULT_PRIORITY_CLASSES)
