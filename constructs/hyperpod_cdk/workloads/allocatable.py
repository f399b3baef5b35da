"""The vCPUs and memory of a node that are available for pods."""

from __future__ import annotations

from math import floor

from hyperpod_cdk.catalog import fabric, kubernetes
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.nodes import NodeShape

_MIB_PER_GIB = 1024


def allocatable(shape: NodeShape, *, checkpoint_percent: int = 0) -> tuple[int, int]:
    """Return the whole vCPUs and GiB of memory of one node that pods can request; at least one of each.

    ``checkpoint_percent`` of the machine's memory is reserved for managed tiered checkpointing: see
    `kept_for_checkpoints`. Memory that the EFA driver uses for huge pages is also excluded. The rest follows from
    AWS's own estimate of what kubelet, the system and the pods of add-ons use.
    """
    vcpu = floor(shape.vcpu - kubernetes.reserved_vcpu(shape.vcpu))
    memory_gib = min(_memory_gib(row, checkpoint_percent) for row in shape.rows)
    return max(1, vcpu), max(1, floor(memory_gib))


def _memory_gib(row: InstanceType, checkpoint_percent: int) -> float:
    huge = fabric.hugepages_kept_mib(row) / _MIB_PER_GIB
    checkpoints = row.memory_gib * checkpoint_percent / 100
    return row.memory_gib - kubernetes.reserved_memory_gib(row.memory_gib) - huge - checkpoints


def kept_for_checkpoints(environment: Environment) -> int:
    """Return the percentage of each node's memory that managed tiered checkpointing reserves, 0 without it."""
    section = environment.hyperpod.tiered_checkpointing
    return 0 if section is None or not section.enabled else section.memory_percent
