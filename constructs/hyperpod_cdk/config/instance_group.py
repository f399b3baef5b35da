"""One instance group of the hyperpod section."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import hyperpod, instance_types
from hyperpod_cdk.catalog.instance_groups import Capacity
from hyperpod_cdk.config.eks import RoleArn
from hyperpod_cdk.config.section import Check, Section, counted, entries, like, within

DEFAULT_VOLUME_GIB = 500
DEFAULT_SCRIPT = hyperpod.LIFECYCLE_SCRIPT.example


def _leave_to_rules(value: object, key: str) -> str | None:  # noqa: ARG001 - the shape of a check
    """Return None: whether the name is known depends on the rest of the file, so a rule over the whole file checks
    it."""
    return None


InstanceTypeName = Annotated[
    str,
    Check(
        _leave_to_rules,
        "instance_type",
        {"anyOf": [{"enum": list(instance_types.names())}, {"pattern": f"^{instance_types.NAME.regex}$"}]},
    ),
]
AvailabilityZoneId = Annotated[
    str,
    Check(
        _leave_to_rules,
        "availability_zone_id",
        {
            "pattern": "^[a-z]{2,5}[0-9](-[a-z]{3}[0-9])?-az[0-9]$",
            "patternErrorMessage": "must be an availability zone ID: use1-az5",
        },
    ),
]


LifecycleScript = Annotated[
    str,
    Check(
        lambda value, key: hyperpod.script_problem(value, key=key),
        "pattern",
        {
            "pattern": r"^(?!/)(?!.*(^|/)\.{0,2}(/|$))[^\x00-\x1f\x7f]+$",
            "minLength": hyperpod.LIFECYCLE_SCRIPT.minimum,
            "maxLength": hyperpod.LIFECYCLE_SCRIPT.maximum,
            "patternErrorMessage": "must be the path of a script below lifecycle_scripts/",
            "examples": [hyperpod.LIFECYCLE_SCRIPT.example],
        },
    ),
]


class Taint(Section):
    """A Kubernetes taint on every node of the group."""

    key: Annotated[str, like(hyperpod.TAINT_KEY)] = Field(description="Key of the taint.", examples=["dedicated"])
    value: Annotated[str, like(hyperpod.TAINT_VALUE)] | None = Field(
        default=None, description="Value of the taint. Default: none.", examples=["training"]
    )
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="What happens to pods that do not tolerate the taint.", examples=["NoSchedule"]
    )


class Image(Section):
    """The AMI of the nodes."""

    ami_id: Annotated[str, like(hyperpod.AMI_ID)] | None = Field(
        default=None,
        description="Custom AMI, based on the public HyperPod AMI. Default: the newest HyperPod AMI.",
    )
    release_version: Annotated[str, like(hyperpod.RELEASE_VERSION)] | None = Field(
        default=None,
        description="Release of the HyperPod AMI; a change updates the software of the nodes. Default: not pinned.",
    )


class Batch(Section):
    """How many nodes at the same time: a number of instances or a percentage of the group, not both."""

    instances: Annotated[int, within(hyperpod.PATCHING_BATCH)] | None = Field(
        default=None, description="Number of nodes at the same time."
    )
    percent: Annotated[int, within(hyperpod.PATCHING_BATCH_PERCENT)] | None = Field(
        default=None, description="Percentage of the group at the same time."
    )


class Patching(Section):
    """When HyperPod updates the software of the group: by ``schedule`` or by ``strategy``, not both.

    The other fields say how. AWS documents them for rolling updates; with ``strategy`` they may have no effect.
    """

    schedule: Annotated[str, like(hyperpod.CRON)] | None = Field(
        default=None, description="When updates start, as cron(minute hour day month weekday year) in UTC."
    )
    max_batch: Batch | None = Field(
        default=None,
        description="How many nodes are updated at the same time. Default: chosen by HyperPod.",
    )
    rollback_batch: Batch | None = Field(
        default=None, description="How many nodes are rolled back at the same time. Only with max_batch. Default: all."
    )
    wait_seconds: Annotated[int, within(hyperpod.PATCHING_WAIT_SECONDS)] = Field(
        default=0, description="Time between two batches, in seconds, during which alarms can be triggered."
    )
    rollback_alarms: Annotated[
        tuple[Annotated[str, like(hyperpod.ALARM_NAME)], ...],
        Strict(strict=False),
        Check(
            lambda value, _: hyperpod.ROLLBACK_ALARMS.count_problem(len(value), what="alarms") if value else None,
            "count",
            {"maxItems": hyperpod.ROLLBACK_ALARMS.maximum},
        ),
    ] = Field(default=(), description="Names of the CloudWatch alarms that roll the update back.")
    strategy: Literal["when_idle", "when_all_idle"] | None = Field(
        default=None, description="Update each node when it is idle, or all nodes when the whole group is idle."
    )


class ExistingGroup(Section):
    """What a group of an adopted cluster has, and HyperPod does not allow to change."""

    execution_role_arn: RoleArn | None = Field(
        default=None,
        description=(
            "Execution role of the group, which remains yours; the policy for nodes is attached to it. Default:"
            " the execution role of the environment."
        ),
        examples=["arn:aws:iam::111122223333:role/training-nodes"],
    )
    cluster_network: bool = Field(
        default=False,
        description=(
            "true: the group has no subnet and no security group of its own, and HyperPod puts its nodes into any"
            " of network.existing.cluster_subnet_ids, which is required then. availability_zone_id is only where"
            " addresses and quotas are counted, and new nodes can be in another zone."
        ),
    )


class InstanceGroup(Section):
    """Nodes with the same configuration in one Availability Zone."""

    name: Annotated[str, like(hyperpod.INSTANCE_GROUP_NAME)] = Field(
        description=(
            "Name of the group. If you change it, HyperPod creates a new group and deletes the old group with"
            " its nodes."
        ),
        examples=["h100"],
    )
    instance_type: InstanceTypeName | None = Field(
        default=None,
        description="Instance type of all nodes, with the prefix ml. Use either this or instance_types.",
        examples=["ml.p5.48xlarge"],
    )
    instance_types: Annotated[
        tuple[InstanceTypeName, ...],
        Strict(strict=False),
        Check(
            lambda value, _: (
                hyperpod.INSTANCE_TYPES_PER_GROUP.count_problem(len(value), what="instance types") if value else None
            ),
            "count",
            {"maxItems": hyperpod.INSTANCE_TYPES_PER_GROUP.maximum},
        ),
    ] = Field(
        default=(),
        description="Instance types of a flexible group, in order of preference. Use either this or instance_type.",
        examples=[["ml.g6e.12xlarge", "ml.g5.12xlarge"]],
    )
    count: Annotated[int, within(hyperpod.INSTANCE_COUNT)] = Field(
        description="Number of nodes in the group.", examples=[2]
    )
    min_count: Annotated[int, within(hyperpod.MIN_INSTANCE_COUNT)] | None = Field(
        default=None,
        description=(
            "Minimum number of nodes. If the group has fewer after 3 hours, it counts as failed and is rolled"
            " back. Needs continuous provisioning. Default: no minimum."
        ),
    )
    availability_zone_id: AvailabilityZoneId = Field(
        description=(
            "Availability Zone ID of the nodes; one of network.availability_zones or of"
            " network.existing.node_subnet_ids."
        ),
        examples=["use1-az5"],
    )
    capacity: Capacity | None = Field(
        default=None,
        description=(
            "Source of the capacity. Required for instance types with accelerators, because their On-Demand"
            " capacity is scarce and expensive. Default for other types: on_demand."
        ),
    )
    training_plan_arn: Annotated[str, like(hyperpod.TRAINING_PLAN_ARN)] | None = Field(
        default=None,
        description="ARN of the training plan. Required with capacity: training_plan, and refused without it.",
        examples=["arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"],
    )
    deep_health_checks: Annotated[
        tuple[Literal["instance_stress", "instance_connectivity"], ...], Strict(strict=False)
    ] = Field(
        default=(),
        description=(
            "Checks that run on every new node before it accepts jobs; they take about two hours. Only for"
            " instance types with accelerators, and not with taints. Default: none."
        ),
        examples=[["instance_stress", "instance_connectivity"]],
    )
    threads_per_core: Annotated[int, within(hyperpod.THREADS_PER_CORE)] | None = Field(
        default=None,
        description=(
            "Threads per CPU core. Default: 2 if the instance type has SMT, otherwise 1. HyperPod's own"
            " default uses half of the vCPUs."
        ),
    )
    network_interface: Literal["efa", "efa_only"] | None = Field(
        default=None,
        description=(
            "Type of the network interfaces, for instance types with EFA. efa: each interface also carries IP"
            " traffic, so TCP can use all network cards. efa_only: EFA without IP, which needs no IP"
            " addresses. Default: chosen by HyperPod."
        ),
        examples=["efa_only"],
    )
    volume_gib: Annotated[int, within(hyperpod.VOLUME_GIB)] | None = Field(
        default=DEFAULT_VOLUME_GIB,
        description=(
            "Size of the second EBS volume in GiB, which stores container images and data. null: no second volume."
        ),
    )
    labels: Annotated[
        dict[Annotated[str, like(hyperpod.LABEL_KEY)], Annotated[str, like(hyperpod.LABEL_VALUE)]],
        entries(hyperpod.LABELS, "labels"),
    ] = Field(default_factory=dict, description="Kubernetes labels of the nodes.", examples=[{"team": "research"}])
    taints: Annotated[tuple[Taint, ...], Strict(strict=False), counted(hyperpod.TAINTS, "taints")] = Field(
        default=(),
        description="Kubernetes taints of the nodes.",
        examples=[[{"key": "dedicated", "value": "training", "effect": "NoSchedule"}]],
    )
    image: Image = Field(default_factory=Image, description="The AMI of the nodes.")
    patching: Patching | None = Field(
        default=None, description="When HyperPod updates the software of the nodes. Default: only when you request it."
    )
    on_create: LifecycleScript | None = Field(
        default=None,
        description=(
            "Lifecycle script that runs on each new node and configures it; a file in lifecycle_scripts/."
            f" Default: {DEFAULT_SCRIPT}, unless on_init_complete is set."
        ),
        examples=[DEFAULT_SCRIPT],
    )
    on_init_complete: LifecycleScript | None = Field(
        default=None,
        description=(
            "Lifecycle script that runs after HyperPod has configured the node, instead of on_create; a file"
            " in lifecycle_scripts/. Default: none."
        ),
        examples=["on_init_complete.sh"],
    )
    existing: ExistingGroup | None = Field(
        default=None,
        description=(
            "What the group of an adopted cluster has that differs from a group that is created here; 'hyperpod-cdk"
            " import --takeover' writes it. Default: nothing."
        ),
        examples=[{"cluster_network": True}],
    )

    @property
    def script(self) -> tuple[Literal["on_create", "on_init_complete"], str]:
        """The key of the script that a new node runs and the script's name, the default filled in."""
        if self.on_init_complete is not None:
            return "on_init_complete", self.on_init_complete
        return "on_create", self.on_create or DEFAULT_SCRIPT

    @property
    def is_in_cluster_network(self) -> bool:
        """Whether it has no subnet and no security group of its own."""
        return self.existing is not None and self.existing.cluster_network

    @property
    def execution_role_arn(self) -> str | None:
        """The execution role that it has already; None for that of the environment."""
        return None if self.existing is None else self.existing.execution_role_arn

    @property
    def all_instance_types(self) -> tuple[str, ...]:
        """The types its nodes may have: the one, or those of a flexible group."""
        return self.instance_types if self.instance_type is None else (self.instance_type,)

    @property
    def resolved_capacity(self) -> Literal["on_demand", "spot", "training_plan"]:
        """Where the nodes come from, the default filled in."""
        return self.capacity or "on_demand"
