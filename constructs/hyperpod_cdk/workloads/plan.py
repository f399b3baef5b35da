"""The plan of a job on its group, with all defaults filled in, for the modules that write manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hyperpod_cdk.catalog import fabric, governance, scheduling
from hyperpod_cdk.config import Environment, InstanceGroup
from hyperpod_cdk.workloads.allocatable import allocatable, kept_for_checkpoints
from hyperpod_cdk.workloads.job import JOB_NAME, Job, Kind, Volume, runs_a_program
from hyperpod_cdk.workloads.nodes import NodeShape, mig_profile, node_shape

DEFAULT_NAMESPACE = "default"
MPI: tuple[Kind, ...] = ("nccl", "nccom")
"""Kinds that are MPI jobs, whose launcher runs in addition to the worker pods."""

HUGEPAGES_RESOURCE = "hugepages-2Mi"
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - the folder of POSIX shared memory, not a temporary file


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A valid job with all values filled in.

    ``queue`` and ``priority_class`` are values of Kueue's labels, or None without a label. ``accelerators``, ``efa``,
    ``vcpu``, ``memory_gib``, ``shared_memory_gib`` (a part of the memory) and ``hugepages_mib`` are those of one pod;
    each of the ``nodes`` runs one pod. ``variables`` are the catalog's variables for the hardware, overridden by the
    job's own. ``claims`` are the mounted claims.
    """

    environment: Environment
    job: Job
    kind: str
    name: str
    namespace: str
    queue: str | None
    priority_class: str | None
    shape: NodeShape
    nodes: int
    accelerators: int
    efa: int
    vcpu: int
    memory_gib: int
    shared_memory_gib: int
    hugepages_mib: int
    image: str
    variables: Mapping[str, str]
    claims: tuple[Volume, ...]

    @property
    def group(self) -> InstanceGroup:
        """The instance group that it runs on."""
        return self.shape.group

    @property
    def pod_security(self) -> str:
        """The Pod Security level of the namespace: the team's, or the default without a team."""
        section = self.environment.task_governance
        teams = () if section is None else section.teams
        own = (team.pod_security for team in teams if team.namespace == self.namespace)
        return next(own, governance.POD_SECURITY[0])

    @property
    def may_use_the_node(self) -> bool:
        """Whether a pod can mount folders of its node and lock memory without a limit."""
        return self.pod_security == "privileged"

    @property
    def is_autoscaled(self) -> bool:
        """Whether Karpenter adds the nodes when the pods are created."""
        return self.environment.hyperpod.is_autoscaled(self.group)

    @property
    def fills_its_nodes(self) -> bool:
        """Whether a pod uses all accelerators of its node, so that a second one cannot run there."""
        return len(self.shape.rows) == 1 and 0 < self.accelerators == self.shape.accelerator_count


def plan(environment: Environment, job: Job) -> Plan:
    """Return ``job`` with all defaults filled in from ``environment``.

    Raises ``ValueError`` for a job that the rules refuse: without a kind, with an unknown group or a group with a type
    whose values are unknown, or training without a name or an image.
    """
    if job.kind is None:
        raise ValueError("must have a kind, got none; set kind")
    shape = _shape(environment, job)
    stated = job.accelerators_per_node
    accelerators = default_accelerators(job.kind, shape) if stated is None else stated
    efa = _efa(job, job.kind, shape, accelerators)
    hugepages_mib = _hugepages_mib(job, job.kind, shape) if efa else 0
    vcpu, memory_gib = _share(environment, job, job.kind, shape, accelerators)
    return Plan(
        environment=environment,
        job=job,
        kind=job.kind,
        name=job.name or _name(job, job.kind),
        namespace=governance.namespace(job.team) if job.team else job.namespace or DEFAULT_NAMESPACE,
        queue=governance.local_queue(job.team) if job.team else None,
        priority_class=governance.priority_class(job.priority) if job.priority else None,
        shape=shape,
        nodes=job.nodes or shape.group.count or 1,
        accelerators=accelerators,
        efa=efa,
        vcpu=vcpu,
        memory_gib=memory_gib,
        shared_memory_gib=job.shared_memory_gib or max(1, memory_gib // 2),
        hugepages_mib=hugepages_mib,
        image=job.image or _image(job.kind, shape),
        variables=MappingProxyType(
            {**_variables(job.kind, shape, accelerators, efa, has_hugepages=bool(hugepages_mib)), **job.environment}
        ),
        claims=job.volumes,
    )


def _shape(environment: Environment, job: Job) -> NodeShape:
    group = next((group for group in environment.hyperpod.instance_groups if group.name == job.group), None)
    if group is None:
        raise ValueError(f'must name an instance group of the environment, got "{job.group}"; set group')
    shape = node_shape(environment, group)
    if shape is None:
        raise ValueError(f'the values of a type of group "{group.name}" are unknown; set them in instance_types')
    return shape


def _name(job: Job, kind: str) -> str:
    if runs_a_program(kind):
        raise ValueError("training must have a name, got none; set name")
    pairs = "-pairs" if kind == "nccl" and job.measure.pairs else ""
    words = f"{kind}{pairs}-{job.group}".lower()
    return re.sub(r"[^a-z0-9-]", "-", words)[: JOB_NAME.maximum].strip("-")


def default_accelerators(kind: str, shape: NodeShape) -> int:
    """Return the default number of accelerators of a pod."""
    if runs_a_program(kind) and mig_profile(shape.group) is not None:
        # a CUDA process can use only one partition, and NCCL does not support several
        return min(1, shape.accelerator_count)
    return 0 if kind == "efa-info" else shape.accelerator_count


def _efa(job: Job, kind: str, shape: NodeShape, accelerators: int) -> int:
    if job.efa_per_node is not None:
        return job.efa_per_node
    if kind == "dcgm" or mig_profile(shape.group) is not None:
        return 0
    if kind != "efa-info" and not 0 < accelerators == shape.accelerator_count:
        return 0
    # a type with EFA has at least one interface, even if the sources disagree about the number
    return shape.efa_count if shape.efa_count is not None else int(all(row.efa_supported for row in shape.rows))


def _share(environment: Environment, job: Job, kind: str, shape: NodeShape, accelerators: int) -> tuple[int, int]:
    if kind == "efa-info":
        vcpu, memory_gib = scheduling.LAUNCHER_VCPU, scheduling.LAUNCHER_MEMORY_GIB
    else:
        all_vcpu, all_gib = allocatable(shape, checkpoint_percent=kept_for_checkpoints(environment))
        if kind in MPI:
            # the launcher must fit on a worker's node, because a team's quota may have no other type
            all_vcpu, all_gib = all_vcpu - scheduling.LAUNCHER_VCPU, all_gib - scheduling.LAUNCHER_MEMORY_GIB
        whole = shape.accelerator_count or 1
        part = min(accelerators or whole, whole)
        vcpu, memory_gib = all_vcpu * part // whole, all_gib * part // whole
    return job.vcpu_per_node or max(1, vcpu), job.memory_gib_per_node or max(1, memory_gib)


def _hugepages_mib(job: Job, kind: str, shape: NodeShape) -> int:
    if job.huge_pages_mib is not None:
        return job.huge_pages_mib
    if kind == "efa-info" or (job.team is not None and not scheduling.is_in_quotas(HUGEPAGES_RESOURCE)):
        # a team's queue may not cover huge pages, and EFA works without them
        return 0
    if runs_a_program(kind):
        # data loaders are forked, and a fork fails if no huge pages are left for the copy
        return 0
    return min(fabric.hugepages_mib(row) for row in shape.rows)


def _image(kind: str, shape: NodeShape) -> str:
    if runs_a_program(kind):
        raise ValueError("training must have an image, got none; set image")
    if kind == "dcgm":
        return fabric.dcgm_image(shape.rows)
    return fabric.neuron_image(shape.rows) if shape.is_neuron else fabric.test_image(shape.rows)


def _variables(kind: str, shape: NodeShape, accelerators: int, efa: int, *, has_hugepages: bool) -> dict[str, str]:
    if kind == "dcgm":
        return {}
    if not efa:
        return fabric.tcp_variables(shape.rows) if shape.is_nvidia and accelerators else {}
    small_pages = {} if has_hugepages else fabric.variables_without_hugepages()
    if shape.is_neuron:
        return {**fabric.neuron_variables(shape.rows), **small_pages}
    return {**fabric.variables(shape.rows, accelerators_are_whole=mig_profile(shape.group) is None), **small_pages}
