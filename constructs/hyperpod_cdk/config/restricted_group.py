"""Restricted instance groups of the hyperpod section, and the environment that they share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import hyperpod, lustre
from hyperpod_cdk.catalog.arns import KMS_KEY_ARN
from hyperpod_cdk.catalog.instance_groups import RestrictedCapacity
from hyperpod_cdk.catalog.s3_places import (
    BUCKET_NAME_MAXIMUM,
    BUCKET_NAME_MINIMUM,
    BUCKET_NAME_REGEX,
    BUCKET_NAME_SOURCE,
    BucketPattern,
)
from hyperpod_cdk.config.instance_group import (
    DEFAULT_VOLUME_GIB,
    AvailabilityZoneId,
    InstanceGroup,
    InstanceTypeName,
    Taint,
)
from hyperpod_cdk.config.section import Section, like, one_of, within

BUCKET_NAME = BucketPattern(
    regex=BUCKET_NAME_REGEX,
    minimum=BUCKET_NAME_MINIMUM,
    maximum=BUCKET_NAME_MAXIMUM,
    describes="the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
    refers=True,
    example="my-nova-data",
    source=BUCKET_NAME_SOURCE,
)
BucketName = Annotated[str, like(BUCKET_NAME)]


class RestrictedLustre(Section):
    """A file system that the service creates in its own account and mounts on restricted nodes."""

    capacity_gib: Annotated[int, within(hyperpod.RESTRICTED_LUSTRE_CAPACITY_GIB)] = Field(
        description="Capacity in GiB: 1200 or a multiple of 2400. The recipe says how much it needs.", examples=[9600]
    )
    throughput_mbps_per_tib: Annotated[
        int,
        within(hyperpod.RESTRICTED_LUSTRE_THROUGHPUT_MBPS_PER_TIB),
        one_of(lustre.THROUGHPUTS_MBPS_PER_TIB, lambda value, key: lustre.throughput_problem(value, key=key)),
    ] = Field(default=250, description="Throughput tier in MB/s per TiB.")


class RestrictedEnvironment(Section):
    """What the restricted groups share: one file system instead of one for each group."""

    lustre: RestrictedLustre = Field(
        description="The shared file system, for every restricted group without its own file system.",
        examples=[{"capacity_gib": 9600, "throughput_mbps_per_tib": 250}],
    )
    when_unused: Literal["keep", "delete"] = Field(
        default="keep", description="What happens to the file system when no restricted group uses it any more."
    )


class RestrictedGroup(Section):
    """Nodes with the same configuration that run only the customization of Amazon Nova models; nobody can log in to
    them.
    """

    name: Annotated[str, like(hyperpod.INSTANCE_GROUP_NAME)] = Field(
        description="Name of the group. It must be different from the names in instance_groups too.", examples=["nova"]
    )
    instance_type: InstanceTypeName = Field(
        description="Instance type of all nodes; one that the Nova recipes name.", examples=["ml.p5.48xlarge"]
    )
    count: Annotated[int, within(hyperpod.INSTANCE_COUNT)] = Field(
        description="Number of nodes in the group. With 0, its file system is retained.", examples=[4]
    )
    availability_zone_id: AvailabilityZoneId = Field(
        description=(
            "Availability Zone ID of the nodes; one of network.availability_zones or of"
            " network.existing.node_subnet_ids."
        ),
        examples=["use1-az5"],
    )
    capacity: RestrictedCapacity | None = Field(
        default=None,
        description=(
            "Source of the capacity; Spot is not available for restricted groups. Required for instance types"
            " with accelerators. Default for other types: on_demand."
        ),
    )
    training_plan_arn: Annotated[str, like(hyperpod.TRAINING_PLAN_ARN)] | None = Field(
        default=None,
        description="ARN of the training plan. Required with capacity: training_plan, and refused without it.",
        examples=["arn:aws:sagemaker:us-east-1:111122223333:training-plan/nova-april"],
    )
    lustre: RestrictedLustre | None = Field(
        default=None,
        description=(
            "The file system of this group only, which the service creates and which counts against a quota"
            " of the account. Default: the file system in hyperpod.restricted_environment."
        ),
        examples=[{"capacity_gib": 9600, "throughput_mbps_per_tib": 250}],
    )
    input_buckets: Annotated[tuple[BucketName, ...], Strict(strict=False)] = Field(
        default=(),
        description="Buckets that jobs read: training and evaluation data.",
        examples=[["my-nova-data"]],
    )
    output_buckets: Annotated[tuple[BucketName, ...], Strict(strict=False)] = Field(
        default=(),
        description="Buckets that jobs read and write: checkpoint manifests, metrics, results.",
        examples=[["my-nova-results"]],
    )
    kms_key_arns: Annotated[tuple[Annotated[str, like(KMS_KEY_ARN)], ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "KMS keys of these buckets. Default: none, for buckets that use S3's key or the AWS managed key"
            " of the account."
        ),
        examples=[[KMS_KEY_ARN.example]],
    )
    reward_functions: bool = Field(
        default=False,
        description=(
            "Whether jobs can invoke Lambda functions and use SQS queues whose names contain SageMaker, for"
            " the rewards of reinforcement fine-tuning."
        ),
    )
    deep_health_checks: Annotated[
        tuple[Literal["instance_stress", "instance_connectivity"], ...], Strict(strict=False)
    ] = Field(
        default=(),
        description=(
            "Checks that run on every new node before it accepts jobs; they take about two hours. Default: none."
        ),
        examples=[["instance_stress", "instance_connectivity"]],
    )
    threads_per_core: Annotated[int, within(hyperpod.THREADS_PER_CORE)] | None = Field(
        default=None, description="Threads per CPU core. Default: 2 if the instance type has SMT, otherwise 1."
    )
    volume_gib: Annotated[int, within(hyperpod.VOLUME_GIB)] | None = Field(
        default=DEFAULT_VOLUME_GIB, description="Size of the second EBS volume in GiB. null: no second volume."
    )

    @property
    def all_instance_types(self) -> tuple[str, ...]:
        """The type of its nodes, as instance groups name theirs."""
        return (self.instance_type,)

    @property
    def resolved_capacity(self) -> Literal["on_demand", "training_plan"]:
        """Where the nodes come from, the default filled in."""
        return self.capacity or "on_demand"

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Always empty: the service puts its own taints on restricted nodes."""
        return ()


AnyGroup = InstanceGroup | RestrictedGroup
"""A group of either kind. Both have a name, types, a count, a zone, a capacity, threads and a volume."""
