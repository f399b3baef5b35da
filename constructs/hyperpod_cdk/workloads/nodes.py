"""The resources of an instance group's nodes that pods can request."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.config import Environment, InstanceGroup

NVIDIA_RESOURCE = "nvidia.com/gpu"
NEURON_RESOURCE = "aws.amazon.com/neuron"
EFA_RESOURCE = "vpc.amazonaws.com/efa"

_ACCELERATORS = ("nvidia.com/", "aws.amazon.com/neuron")


@dataclass(frozen=True, kw_only=True)
class NodeShape:
    """One node of a group in Kubernetes; for a flexible group, the minimum of its types in each field.

    ``rows`` are the catalog's rows of its types, the preferred type first. ``vcpu`` is the number of enabled threads,
    ``memory_gib`` the memory of the instance. ``accelerator_resource`` is the extended resource for pods
    (``nvidia.com/gpu``, ``aws.amazon.com/neuron``, ``nvidia.com/mig-3g.40gb``), None without accelerators, and
    ``accelerator_count`` its amount. ``efa_count`` is 0 if a type has no EFA, and None if the number is unknown.
    """

    group: InstanceGroup
    rows: tuple[InstanceType, ...]
    vcpu: int
    memory_gib: float
    accelerator_resource: str | None
    accelerator_count: int
    efa_count: int | None

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The names of the instance types of its nodes."""
        return tuple(row.name for row in self.rows)

    @property
    def is_nvidia(self) -> bool:
        """Whether every type has NVIDIA GPUs."""
        return all(row.is_nvidia for row in self.rows)

    @property
    def is_neuron(self) -> bool:
        """Whether every type has AWS Trainium or Inferentia accelerators."""
        return all(row.is_neuron for row in self.rows)


def node_shape(environment: Environment, group: InstanceGroup) -> NodeShape | None:
    """Return the resources of a node of ``group``, or None if the values of one of its types are unknown."""
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    known = tuple(row for row in rows if row is not None)
    if not known or len(known) < len(rows):
        return None
    threads = environment.threads_per_core(group)
    profile = mig_profile(group)
    efa = [row.efa_count if row.efa_supported else 0 for row in known]
    return NodeShape(
        group=group,
        rows=known,
        vcpu=min(_threads(row, threads) for row in known),
        memory_gib=min(row.memory_gib for row in known),
        accelerator_resource=_resource(known, profile),
        accelerator_count=min(_accelerators(row, profile) for row in known),
        efa_count=None if None in efa else min(count for count in efa if count is not None),
    )


def is_accelerator(resource: str) -> bool:
    """Return whether an extended resource counts accelerators, their partitions or their cores, by any of its names."""
    return resource.startswith(_ACCELERATORS)


def mig_profile(group: InstanceGroup) -> str | None:
    """Return the MIG profile of a group's partitioned GPUs (``mig-3g.40gb``), or None for whole GPUs.

    Only labels that partition all GPUs equally (``all-3g.40gb``) determine what pods can request.
    """
    wanted = group.labels.get(governance.PARTITION_LABEL, "")
    return f"mig-{wanted.removeprefix('all-')}" if wanted.startswith("all-") and "g." in wanted else None


def _threads(row: InstanceType, threads_per_core: int) -> int:
    cores = row.cores
    return row.vcpu if cores is None else cores * threads_per_core


def _resource(rows: tuple[InstanceType, ...], profile: str | None) -> str | None:
    if all(row.is_nvidia for row in rows):
        return f"nvidia.com/{profile}" if profile else NVIDIA_RESOURCE
    return NEURON_RESOURCE if all(row.is_neuron for row in rows) else None


def _accelerators(row: InstanceType, profile: str | None) -> int:
    if profile is None or profile not in row.mig_profiles:
        return row.accelerator_count
    return row.accelerator_count * governance.partitions_per_accelerator(profile, row.mig_profiles)
