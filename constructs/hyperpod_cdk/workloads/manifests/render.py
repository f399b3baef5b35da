"""Renders the manifests of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.job import Job, Kind, own_kinds
from hyperpod_cdk.workloads.manifests.dcgm import dcgm
from hyperpod_cdk.workloads.manifests.hyperpod_pytorch import hyperpod_pytorch_job
from hyperpod_cdk.workloads.manifests.manifest_yaml import to_yaml
from hyperpod_cdk.workloads.manifests.mpi_jobs import nccl
from hyperpod_cdk.workloads.manifests.neuron import nccom, neuron_info
from hyperpod_cdk.workloads.manifests.node_jobs import efa_info
from hyperpod_cdk.workloads.manifests.pytorch import pytorch_job
from hyperpod_cdk.workloads.plan import Plan, plan

__all__ = ["BUILDERS", "manifests_of", "render", "to_yaml"]

BUILDERS: Mapping[Kind, Callable[[Plan], list[dict[str, Any]]]] = MappingProxyType(
    {
        "efa-info": efa_info,
        "nccl": nccl,
        "dcgm": dcgm,
        "neuron-info": neuron_info,
        "nccom": nccom,
        "pytorch": pytorch_job,
        "hyperpod-pytorch": hyperpod_pytorch_job,
    }
)
"""The function that writes the manifests of each kind."""


def render(environment: Environment, job: Job) -> tuple[dict[str, Any], ...]:
    """Return the manifests of ``job``, which must be valid; raises ``ValueError`` as ``plan`` does."""
    return manifests_of(plan(environment, job))


def manifests_of(planned: Plan) -> tuple[dict[str, Any], ...]:
    """Return the manifests of a planned job."""
    for kind, build in BUILDERS.items():
        if kind == planned.kind:
            return tuple(build(planned))
    extension = own_kinds()[planned.kind]
    with extension.blamed():
        written = tuple(dict(each) for each in extension.job_kinds[planned.kind](planned))
        if not written or not all({"apiVersion", "kind", "metadata"} <= each.keys() for each in written):
            raise TypeError(f"job_kinds: {planned.kind} must return manifests with apiVersion, kind and metadata")
        return written
