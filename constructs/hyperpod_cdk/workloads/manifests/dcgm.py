"""Diagnostics of NVIDIA GPUs with DCGM on every node of a group."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.workloads.manifests.launcher import Value, assignments, instance_types
from hyperpod_cdk.workloads.manifests.node_jobs import node_job
from hyperpod_cdk.workloads.plan import Plan

_DIAGNOSE = """\
echo "# hyperpod-cdk: dcgm node=$HYPERPOD_CDK_NODE instance_type=$instance_type level=$level nodes=$nodes"
nv-hostengine >&2
tries=30
until dcgmi discovery -l >&2; do
  ((tries-- > 0)) || { echo "nv-hostengine does not answer" >&2; exit 1; }
  sleep 2
done
dcgmi diag -r "$level" -j
"""


def dcgm(plan: Plan) -> list[dict[str, Any]]:
    """Return the Job that runs the diagnostics of the job's level on every node, with all its GPUs, as JSON."""
    values: dict[str, Value] = {
        "instance_type": instance_types(plan),
        "level": plan.job.measure.diagnostic_level,
        "nodes": plan.nodes,
    }
    return [node_job(plan, container="dcgm", script=f"set -uo pipefail\n{assignments(values)}{_DIAGNOSE}")]
