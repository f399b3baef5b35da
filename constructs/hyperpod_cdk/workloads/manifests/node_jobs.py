"""Tests of single nodes: an indexed Job with one pod on each node of a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_cdk.workloads.manifests.launcher import NODE_VARIABLE, Value, assignments, instance_types
from hyperpod_cdk.workloads.manifests.pods import metadata, pod_spec, template
from hyperpod_cdk.workloads.plan import Plan

LOOK_AT_EFA = """\
domains="$(fi_info -p efa -t FI_EP_RDM | tee /dev/stderr | sed -n 's/^ *domain: *//p' | sort -u | grep -c .)" || true
echo "# hyperpod-cdk: efa-info node=$HYPERPOD_CDK_NODE instance_type=$instance_type" \\
  "interfaces=$domains expected=$expected nodes=$nodes memlock=$(ulimit -l)"
((domains >= expected)) || failed=1
"""
"""Lists and counts the EFA interfaces of a pod; sets ``failed`` if some are missing."""


_TELL_END = """trap 'echo "# hyperpod-cdk: exit=$?"' EXIT\n"""


def efa_info(plan: Plan) -> list[dict[str, Any]]:
    """Return the Job that lists the EFA interfaces of every node, and fails if a node has fewer than its type.

    It is a Job and not an MPI job, because nothing is sent between nodes, and it works without the MPI operator.
    """
    values: dict[str, Value] = {"instance_type": instance_types(plan), "expected": plan.efa, "nodes": plan.nodes}
    script = f'set -uo pipefail\nexport PATH="/opt/amazon/efa/bin:$PATH"\nfailed=0\n{assignments(values)}'
    script = f'{script}{LOOK_AT_EFA}exit "$failed"\n'
    # the image exposes all GPUs, which belong to the pods that requested them
    environment = {"NVIDIA_VISIBLE_DEVICES": "void"} if plan.shape.is_nvidia and not plan.accelerators else {}
    return [node_job(plan, container="efa-info", script=script, environment=environment)]


def node_job(
    plan: Plan, *, container: str, script: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a Job whose pods run ``script`` in bash, one on each node; a failed pod does not stop the others.

    The last line of a pod's log always contains its exit code.

    If a node is still occupied when the other pods are done, the last pod runs on the node of a completed pod. The
    lines in the log contain the names of the nodes.
    """
    spec = pod_spec(
        plan,
        container=container,
        command=("/bin/bash", "-c", f"{_TELL_END}{script}"),
        environment=environment,
        restart_policy="Never",
        node_variable=NODE_VARIABLE,
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(plan),
        "spec": {
            "completionMode": "Indexed",
            "completions": plan.nodes,
            "parallelism": plan.nodes,
            "backoffLimitPerIndex": 0,
            "template": template(plan, spec),
        },
    }
