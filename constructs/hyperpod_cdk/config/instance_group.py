"""One instance group of the hyperpod section."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import hyperpod, instance_types
from hyperpod_cdk.config.section import Check, Section, counted, entries, like, within

DEFAULT_VOLUME_GIB = 500
DEFAULT_SCRIPT = hyperpod.LIFECYCLE_SCRIPT.example


def _leave_to_rules(value: object, key: str) -> str | None:  # noqa: ARG001 - the shape of a check
    """Give None: whether the name is known depends on the rest of the file, so a rule over the whole file says it."""
    return None


InstanceTypeName = Annotated[
    str,
    Check(
        _leave_to_rules,
        "instance_type",
        {"anyOf": [{"enum": list(instance_types.names())}, {"pattern": r"^ml\.[a-z0-9-]+\.[a-z0-9-]+$"}]},
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
    """What the nodes boot from."""

    ami_id: Annotated[str, like(hyperpod.AMI_ID)] | None = Field(
        default=None,
        description="Custom AMI, built on the public HyperPod AMI. Default: HyperPod's own, the newest one.",
    )
    release_version: Annotated[str, like(hyperpod.RELEASE_VERSION)] | None = Field(
        default=None,
        description="Release of the HyperPod AMI; a change updates the software of the nodes. Default: not pinned.",
    )


class Batch(Section):
    """How many nodes at once: a number of instances or a percentage of the group, not both."""

    instances: Annotated[int, within(hyperpod.PATCHING_BATCH)] | None = Field(
        default=None, description="Nodes at once."
    )
    percent: Annotated[int, within(hyperpod.PATCHING_BATCH_PERCENT)] | None = Field(
        default=None, description="Percent of the group at once."
    )


class Patching(Section):
    """When HyperPod updates the software of the group: by ``schedule`` or by ``strategy``, not both.

    The rest says how, for both; AWS documents it for rolling updates, so beside a strategy it may have no effect.
    """

    schedule: Annotated[str, like(hyperpod.CRON)] | None = Field(
        default=None, description="When to start, as cron(minute hour day month weekday year) in UTC."
    )
    max_batch: Batch | None = Field(
        default=None,
        description="How many nodes are updated at once. Default: HyperPod's own choice.",
    )
    rollback_batch: Batch | None = Field(
        default=None, description="How many nodes are rolled back at once. Default: all. With max_batch."
    )
    wait_seconds: Annotated[int, within(hyperpod.PATCHING_WAIT_SECONDS)] = Field(
        default=0, description="Pause between two batches in seconds, in which alarms may fire."
    )
    rollback_alarms: Annotated[
        tuple[Annotated[str, like(hyperpod.ALARM_NAME)], ...],
        Strict(strict=False),
        Check(
            lambda value, _: hyperpod.ROLLBACK_ALARMS.count_problem(len(value), what="alarms") if value else None,
            "count",
            {"maxItems": hyperpod.ROLLBACK_ALARMS.maximum},
        ),
    ] = Field(default=(), description="CloudWatch alarms, by name, that roll the update back.")
    strategy: Literal["when_idle", "when_all_idle"] | None = Field(
        default=None, description="Patch a node when it is idle, or all of them once the whole group is."
    )


class InstanceGroup(Section):
    """A set of like nodes in one availability zone."""

    name: Annotated[str, like(hyperpod.INSTANCE_GROUP_NAME)] = Field(
        description="Name of the group. HyperPod takes a new name for a new group: the old one goes, with its nodes.",
        examples=["h100"],
    )
    instance_type: InstanceTypeName | None = Field(
        default=None,
        description="Instance type of every node, ml. included. Either this or instance_types.",
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
        description="Instance types of a flexible group, the preferred first. Either this or instance_type.",
        examples=[["ml.g6e.12xlarge", "ml.g5.12xlarge"]],
    )
    count: Annotated[int, within(hyperpod.INSTANCE_COUNT)] = Field(description="Nodes in the group.", examples=[2])
    min_count: Annotated[int, within(hyperpod.MIN_INSTANCE_COUNT)] | None = Field(
        default=None,
        description=(
            "Nodes without which the group counts as failed and is rolled back after 3 hours. Needs continuous"
            " provisioning. Default: any number will do."
        ),
    )
    availability_zone_id: AvailabilityZoneId = Field(
        description=(
            "Availability zone ID of the group's nodes; one of network.availability_zones, or of"
            " network.existing.node_subnet_ids."
        ),
        examples=["use1-az5"],
    )
    capacity: Literal["on_demand", "spot", "training_plan"] | None = Field(
        default=None,
        description=(
            "Where the nodes come from. Types with accelerators must say: their on-demand capacity is scarce and"
            " expensive. Default for other types: on_demand."
        ),
    )
    training_plan_arn: Annotated[str, like(hyperpod.TRAINING_PLAN_ARN)] | None = Field(
        default=None,
        description="The training plan that owns the capacity. With capacity: training_plan, and only then.",
        examples=["arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"],
    )
    deep_health_checks: Annotated[
        tuple[Literal["instance_stress", "instance_connectivity"], ...], Strict(strict=False)
    ] = Field(
        default=(),
        description=(
            "Checks of every new node before it takes work, about two hours. Types with accelerators only, and not"
            " with taints. Default: none."
        ),
        examples=[["instance_stress", "instance_connectivity"]],
    )
    threads_per_core: Annotated[int, within(hyperpod.THREADS_PER_CORE)] | None = Field(
        default=None,
        description="Threads of one core. Default: 2 where the type has SMT, else 1; HyperPod's own default"
        " halves the vCPUs.",
    )
    network_interface: Literal["efa", "efa_only"] | None = Field(
        default=None,
        description=(
            "Network interfaces of types with EFA. efa: each carries IP traffic too, for TCP over all cards. efa_only:"
            " EFA without IP, which takes no addresses. Default: HyperPod's own choice."
        ),
        examples=["efa_only"],
    )
    volume_gib: Annotated[int, within(hyperpod.VOLUME_GIB)] | None = Field(
        default=DEFAULT_VOLUME_GIB,
        description=(
            "Size of the second EBS volume in GiB; container images and data go there. null: no second volume."
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
    image: Image = Field(default_factory=Image, description="What the nodes boot from.")
    patching: Patching | None = Field(
        default=None, description="When HyperPod updates the software of the nodes. Default: only when asked."
    )
    on_create: LifecycleScript | None = Field(
        default=None,
        description=(
            "Lifecycle script that runs on each new node and sets it up; a file of lifecycle_scripts/. Default:"
            f" {DEFAULT_SCRIPT}, unless on_init_complete is given."
        ),
        examples=[DEFAULT_SCRIPT],
    )
    on_init_complete: LifecycleScript | None = Field(
        default=None,
        description=(
            "Script that runs after HyperPod itself has set up the node, in place of on_create; a file of"
            " lifecycle_scripts/. Default: none."
        ),
        examples=["on_init_complete.sh"],
    )

    @property
    def script(self) -> tuple[Literal["on_create", "on_init_complete"], str]:
        """The key of the script that a new node runs and the script's name, the default filled in."""
        if self.on_init_complete is not None:
            return "on_init_complete", self.on_init_complete
        return "on_create", self.on_create or DEFAULT_SCRIPT

    @property
    def all_instance_types(self) -> tuple[str, ...]:
        """The types its nodes may have: the one, or those of a flexible group."""
        return self.instance_types if self.instance_type is None else (self.instance_type,)

    @property
    def resolved_capacity(self) -> Literal["on_demand", "spot", "training_plan"]:
        """Where the nodes come from, the default filled in."""
        return self.capacity or "on_demand"
