"""The hyperpod section: the cluster and its instance groups."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.config.checkpointing import TieredCheckpointing
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.lifecycle import Lifecycle
from hyperpod_cdk.config.restricted_group import AnyGroup, RestrictedEnvironment, RestrictedGroup
from hyperpod_cdk.config.section import Check, Section, counted, like, within
from hyperpod_cdk.config.source import DataPath

# each list may be empty, but not both: a rule over the whole file says that
_GROUP_COUNT = Check(
    lambda value, _: hyperpod.INSTANCE_GROUPS.count_problem(len(value), what="instance groups") if value else None,
    "count",
    {"maxItems": hyperpod.INSTANCE_GROUPS.maximum},
)


class KarpenterPool(Section):
    """A Karpenter NodePool with its HyperpodNodeClass: the instance groups that Karpenter can choose from for the same
    pods.
    """

    name: Annotated[str, like(hyperpod.KARPENTER_POOL_NAME)] = Field(
        description="Name of the NodePool and of its HyperpodNodeClass.", examples=["gpu"]
    )
    instance_groups: Annotated[
        tuple[str, ...], Strict(strict=False), counted(hyperpod.KARPENTER_POOL_GROUPS, "instance groups")
    ] = Field(description="Names of instance groups with count: 0.", examples=[["gpu-spot", "gpu-on-demand"]])
    consolidation: Literal["when_empty", "when_empty_or_underutilized"] = Field(
        default="when_empty",
        description=(
            "Which nodes Karpenter removes. when_empty: only empty nodes. when_empty_or_underutilized: also"
            " nodes whose pods fit on other nodes; these pods are evicted."
        ),
    )
    consolidate_after_seconds: Annotated[int, within(hyperpod.KARPENTER_CONSOLIDATE_AFTER_SECONDS)] = Field(
        default=hyperpod.KARPENTER_DEFAULT_CONSOLIDATE_AFTER_SECONDS,
        description="How long a node must be in that state before Karpenter removes it, in seconds.",
    )


DEFAULT_KARPENTER_POOL = "hyperpod"


class HyperPod(Section):
    """The HyperPod cluster."""

    cluster_name: Annotated[str, like(hyperpod.CLUSTER_NAME)] | None = Field(
        default=None,
        description=(
            "Name of the HyperPod cluster; a change replaces the cluster. Default: the name of the environment."
        ),
        examples=["prod"],
    )
    node_recovery: Literal["automatic", "none"] = Field(
        default="automatic",
        description=(
            "Whether HyperPod automatically reboots or replaces faulty nodes with accelerators. It does not replace"
            " other nodes by itself."
        ),
    )
    provisioning: Literal["continuous", "all_or_nothing"] = Field(
        default="continuous",
        description=(
            "continuous: nodes join as capacity becomes available, and failures are reported as events."
            " all_or_nothing: if one node cannot be created, the whole cluster is rolled back."
        ),
    )
    autoscaling: Literal["none", "karpenter", "disabled"] = Field(
        default="none",
        description=(
            "karpenter: HyperPod's managed Karpenter adds and removes the nodes of every group with count: 0"
            " as pods need them; groups with a higher count keep their count. disabled: disables Karpenter on"
            " a cluster that has it. none: sends no setting to AWS, which may then leave the current setting."
            " When you disable it, give each group with count: 0 the count that it should have, or remove it: see"
            " docs/lifecycle-of-an-environment.md."
        ),
    )
    karpenter_pools: Annotated[tuple[KarpenterPool, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "Which instance groups Karpenter can choose from, and when it removes nodes. Only with"
            f" autoscaling: karpenter. Default: one pool named {DEFAULT_KARPENTER_POOL} with all groups with"
            " count: 0."
        ),
        examples=[[{"name": "gpu", "instance_groups": ["gpu-spot", "gpu-on-demand"]}]],
    )
    existing_karpenter_pools: bool = Field(
        default=False,
        description=(
            "true: the NodePools and HyperpodNodeClasses of an adopted cluster remain yours, and none is created."
            " Only with autoscaling: karpenter, and without karpenter_pools."
        ),
    )
    tiered_checkpointing: TieredCheckpointing | None = Field(
        default=None,
        description="Checkpoints in the memory of the nodes. Default: disabled.",
        examples=[{"memory_percent": 20}],
    )
    node_wait_minutes: Annotated[int, within(hyperpod.NODE_WAIT_MINUTES)] | None = Field(
        default=None,
        description=(
            "How long add-ons wait for the first node that can run them, in minutes. After that, the"
            f" deployment fails and says why no node joined. Default: {hyperpod.NODE_WAIT_DEFAULT_MINUTES}, or"
            f" {hyperpod.NODE_WAIT_LONGEST_MINUTES} if every such group has accelerators."
        ),
        examples=[45],
    )
    lifecycle: Lifecycle = Field(default_factory=Lifecycle, description="Where the lifecycle scripts are stored.")
    instance_groups: Annotated[
        tuple[InstanceGroup, ...],
        Strict(strict=False),
        _GROUP_COUNT,
    ] = Field(
        default=(),
        description=(
            "The instance groups. Add one small group without accelerators for add-ons and controllers."
            " Required, except for a cluster with restricted_instance_groups."
        ),
        examples=[
            [{"name": "system", "instance_type": "ml.m5.2xlarge", "count": 2, "availability_zone_id": "use1-az4"}]
        ],
    )
    restricted_instance_groups: Annotated[tuple[RestrictedGroup, ...], Strict(strict=False), _GROUP_COUNT] = Field(
        default=(),
        description=(
            "Instance groups for the customization of Amazon Nova models: without lifecycle scripts, internet"
            " access or login. Only with restricted_dependencies. Default: none."
        ),
        examples=[
            [
                {
                    "name": "nova",
                    "instance_type": "ml.p5.48xlarge",
                    "count": 4,
                    "availability_zone_id": "use1-az5",
                    "capacity": "on_demand",
                    "lustre": {"capacity_gib": 9600},
                }
            ]
        ],
    )
    restricted_dependencies: Literal["installed"] | None = Field(
        default=None,
        description=(
            "installed: you have run HyperPod's install_rig_dependencies.sh on the EKS cluster. Restricted"
            " groups need it before the HyperPod cluster is created, and no stack runs it: see"
            " docs/restricted-groups.md. Default: it was not run, and restricted_instance_groups are refused."
        ),
        examples=["installed"],
    )
    restricted_environment: RestrictedEnvironment | None = Field(
        default=None,
        description="What the restricted groups share. Default: nothing; each group has its own file system.",
        examples=[{"lustre": {"capacity_gib": 9600, "throughput_mbps_per_tib": 250}}],
    )

    @property
    def checkpoints_in_memory(self) -> bool:
        """Whether nodes keep memory for checkpoints."""
        return self.tiered_checkpointing is not None and self.tiered_checkpointing.enabled

    @property
    def switched_off(self) -> tuple[Literal["autoscaling", "tiered_checkpointing"], ...]:
        """What the file disables explicitly, because a cluster may have it from an earlier deployment."""
        stated: tuple[tuple[Literal["autoscaling", "tiered_checkpointing"], bool], ...] = (
            ("autoscaling", self.autoscaling == "disabled"),
            ("tiered_checkpointing", self.tiered_checkpointing is not None and not self.checkpoints_in_memory),
        )
        return tuple(name for name, is_off in stated if is_off)

    @property
    def autoscaled_groups(self) -> tuple[InstanceGroup, ...]:
        """The groups whose nodes Karpenter adds and removes: those with no nodes of their own."""
        return tuple(group for group in self.instance_groups if self.autoscaling == "karpenter" and group.count == 0)

    def is_autoscaled(self, group: InstanceGroup) -> bool:
        """Whether Karpenter adds and removes the nodes of ``group``."""
        return any(each.name == group.name for each in self.autoscaled_groups)

    @property
    def resolved_karpenter_pools(self) -> tuple[KarpenterPool, ...]:
        """The pools of the file, or one pool of all autoscaled groups; none without autoscaling, or if pools exist."""
        if self.existing_karpenter_pools:
            return ()
        names = tuple(group.name for group in self.autoscaled_groups)
        if self.karpenter_pools or not names:
            return self.karpenter_pools if names else ()
        # without validation: that they are too many is for a rule to say
        return (KarpenterPool.model_construct(name=DEFAULT_KARPENTER_POOL, instance_groups=names),)

    @property
    def all_groups(self) -> tuple[AnyGroup, ...]:
        """Every group with nodes: those of instance_groups, then the restricted ones."""
        return (*self.instance_groups, *self.restricted_instance_groups)

    @property
    def gpu_partitions(self) -> bool:
        """Whether nodes of a group divide their GPUs (MIG), for which NVIDIA's GPU operator is installed."""
        return any(hyperpod.MIG_LABEL in group.labels for group in self.instance_groups)

    @property
    def placed_groups(self) -> tuple[tuple[DataPath, AnyGroup], ...]:
        """Every group of ``all_groups`` with its place in the file."""
        plain = ((("hyperpod", "instance_groups", index), group) for index, group in enumerate(self.instance_groups))
        restricted = (
            (("hyperpod", "restricted_instance_groups", index), group)
            for index, group in enumerate(self.restricted_instance_groups)
        )
        return (*plain, *restricted)
