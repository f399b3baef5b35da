"""Looks at single nodes: a pod on each node of a group, as an indexed Job."""

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
"""Lists the EFA interfaces of a pod and counts them; sets ``failed`` where some are missing."""


_TELL_END = """trap 'echo "# hyperpod-cdk: exit=$?"' EXIT\n"""


def efa_info(plan: Plan) -> list[dict[str, Any]]:
    """Give the Job that lists the EFA interfaces of every node, and fails where a node has fewer than its type.

    A Job rather than an MPI job: nothing is sent between nodes, and it works without the MPI operator.
    """
    values: dict[str, Value] = {"instance_type": instance_types(plan), "expected": plan.efa, "nodes": plan.nodes}
    script = f'set -uo pipefail\nexport PATH="/opt/amazon/efa/bin:$PATH"\nfailed=0\n{assignments(values)}'
    script = f'{script}{LOOK_AT_EFA}exit "$failed"\n'
    # the image asks for all GPUs, which belong to whoever requested them
    environment = {"NVIDIA_VISIBLE_DEVICES": "void"} if plan.shape.is_nvidia and not plan.accelerators else {}
    return [node_job(plan, container="efa-info", script=script, environment=environment)]


def node_job(
    plan: Plan, *, container: str, script: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Give a Job whose pods run ``script`` in bash, one on each node; one that fails does not stop the others.

    The last line of a pod's log always has its exit code.

    A node that is taken when the others are done gets no pod: the last one then runs where another one was. The lines
    in the log name the nodes.
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
