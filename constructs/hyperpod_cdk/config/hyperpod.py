"""The hyperpod section: the cluster and its instance groups."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.section import Section, counted, filled, like, within


class TieredCheckpointing(Section):
    """Managed tiered checkpointing: checkpoints in the memory of the nodes."""

    memory_percent: Annotated[int, within(hyperpod.TIERED_CHECKPOINTING_MEMORY_PERCENT)] = Field(
        default=hyperpod.TIERED_CHECKPOINTING_MEMORY_PERCENT.minimum or 0,
        description="Percent of each node's memory kept for checkpoints.",
    )


class HyperPod(Section):
    """The HyperPod cluster."""

    cluster_name: Annotated[str, like(hyperpod.CLUSTER_NAME)] | None = Field(
        default=None,
        description="Name of the HyperPod cluster; a change replaces it. Default: the environment's name.",
        examples=["prod"],
    )
    node_recovery: Literal["automatic", "none"] = Field(
        default="automatic", description="Whether HyperPod reboots or replaces faulty nodes by itself."
    )
    provisioning: Literal["continuous", "all_or_nothing"] = Field(
        default="continuous",
        description=(
            "continuous: nodes join as capacity comes, failures are events. all_or_nothing: one node that cannot be"
            " had rolls the whole cluster back."
        ),
    )
    tiered_checkpointing: TieredCheckpointing | None = Field(
        default=None,
        description="Checkpoints in the memory of the nodes. Default: off.",
        examples=[{"memory_percent": 20}],
    )
    instance_groups: Annotated[
        tuple[InstanceGroup, ...],
        Strict(strict=False),
        filled("instance group"),
        counted(hyperpod.INSTANCE_GROUPS, "instance groups"),
    ] = Field(
        description="The node groups. One small group without accelerators should carry add-ons and controllers.",
        examples=[
            [{"name": "system", "instance_type": "ml.m5.2xlarge", "count": 2, "availability_zone_id": "use1-az4"}]
        ],
    )
