"""Network tests of NVIDIA GPUs as MPI jobs: nccl-tests over all nodes, or over pairs of nodes."""

from __future__ import annotations

import re
from typing import Any

from hyperpod_cdk.workloads.manifests.launcher import (
    NODE_VARIABLE,
    SERVE,
    TELL_END,
    WAIT_FOR_WORKERS,
    Value,
    assignments,
    instance_types,
)
from hyperpod_cdk.workloads.manifests.pods import LAUNCHER, metadata, pod_spec, template
from hyperpod_cdk.workloads.nodes import mig_profile
from hyperpod_cdk.workloads.plan import Plan

API_VERSION = "kubeflow.org/v2beta1"

NCCL_DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}
"""Variables that make NCCL log which network it uses, without a line per operation."""

ROUNDS_OF_PAIRS = 4
"""The largest number of partners of each node: with several, one slow node does not make all pairs of another slow."""

_LONGEST_PAIR_SECONDS = 1800
_WARM_UPS = 5
_GIB = 2**30
_LARGEST_BYTES = 16 * _GIB
# two buffers of this size, and the additional memory for validation and NCCL
_MEMORY_PER_MESSAGE = 4

_MEASURE = """\
mpirun="$(command -v mpirun)" || { echo "no mpirun in the image" >&2 && exit 127; }
failed=0
for name in LD_LIBRARY_PATH LD_PRELOAD; do
  [[ -z ${!name:-} ]] || variables+=("$name")
done
exports=()
for name in PATH "${variables[@]}"; do
  exports+=(-x "$name")
done

# measure <seconds, 0: no limit> <collective> <host> ...
measure() {
  local limit="$1" collective="$2" status=0 program where
  shift 2
  echo "# hyperpod-cdk: collective=$collective nodes=$# instance_type=$instance_type"
  program="$(command -v "${collective}_perf")" || { echo "no ${collective}_perf in the image" >&2 && return 127; }
  where="$(printf "%s:$slots," "$@")"
  timeout --kill-after=30 "$limit" "$mpirun" --allow-run-as-root --tag-output --bind-to none \\
    --host "${where%,}" -np "$(($# * slots))" --map-by "ppr:$slots:node" \\
    --mca plm_rsh_args "${ssh_options[*]}" --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_exclude lo \\
    "${exports[@]}" "$program" "${flags[@]}" 2>&1 || status=$?
  ((status == 0)) || echo "# hyperpod-cdk: exit=$status"
  return "$status"
}
"""

_ALL_NODES = """\
for collective in "${collectives[@]}"; do
  measure 0 "$collective" "${hosts[@]}" || failed=1
done
exit "$failed"
"""

# circle method of a round robin: all but the last are in a circle that moves by one each round
_PAIRS = """\
count=${#hosts[@]}
seats=$((count + count % 2))
logs="$(mktemp -d)"
for ((round = 0; round < rounds && round < seats - 1; round++)); do
  for collective in "${collectives[@]}"; do
    running=()
    for ((place = 0; place < seats / 2; place++)); do
      left=$(((round + place) % (seats - 1)))
      right=$(((round - place + seats - 1) % (seats - 1)))
      ((place > 0)) || right=$((seats - 1))
      ((left < count && right < count)) || continue
      log="$logs/$round-$collective-$place"
      {
        echo "# hyperpod-cdk: pair=${node[${hosts[left]}]},${node[${hosts[right]}]}"
        measure "$limit" "$collective" "${hosts[left]}" "${hosts[right]}"
      } >"$log" 2>&1 &
      running+=("$!:$log")
    done
    for pair in "${running[@]}"; do
      wait "${pair%%:*}" || failed=1
      cat "${pair#*:}"
    done
  done
done
exit "$failed"
"""


def nccl(plan: Plan) -> list[dict[str, Any]]:
    """Return the MPI job that runs nccl-tests: each collective over all nodes, or over pairs of nodes.

    Pairs follow from a round robin, at most ``ROUNDS_OF_PAIRS`` for each node. All pairs of a round run in parallel in
    one job, so that its duration does not grow with the cluster.
    """
    measure = plan.job.measure
    slots = max(1, plan.accelerators)
    sizes = ["-b", str(measure.min_bytes), "-e", str(largest_bytes(plan)), "-f", "2"]
    values: dict[str, Value] = {
        "instance_type": instance_types(plan),
        "slots": slots,
        "collectives": list(measure.collectives),
        "flags": [*sizes, "-g", "1", "-c", "1", "-w", str(_WARM_UPS), "-n", str(measure.iterations)],
        "variables": forwarded(plan, NCCL_DEBUG),
    }
    if measure.pairs:
        values |= {"rounds": ROUNDS_OF_PAIRS, "limit": _LONGEST_PAIR_SECONDS}
    script = _script(values) + _MEASURE + "\n" + (_PAIRS if measure.pairs else _ALL_NODES)
    return [mpi_job(plan, slots=slots, script=script, environment=NCCL_DEBUG)]


def mpi_job(
    plan: Plan, *, slots: int, script: str, environment: dict[str, str], worker_script: str = SERVE
) -> dict[str, Any]:
    """Return an MPI job with one worker on each node and a launcher that runs ``script`` in bash.

    ``environment`` is the environment of both. ``worker_script`` ends as an SSH server. The launcher is created when
    the workers are ready, runs once, and is kept with its log after the workers are deleted.
    """
    worker = pod_spec(
        plan,
        container="worker",
        command=("/bin/bash", "-c", worker_script),
        environment=environment,
        node_variable=NODE_VARIABLE,
    )
    launcher = pod_spec(
        plan, container=LAUNCHER, command=("/bin/bash", "-c", script), environment=environment, with_devices=False
    )
    return {
        "apiVersion": API_VERSION,
        "kind": "MPIJob",
        "metadata": metadata(plan),
        "spec": {
            "slotsPerWorker": slots,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": {
                    "replicas": 1,
                    "restartPolicy": "Never",
                    "template": template(plan, launcher, component=LAUNCHER),
                },
                "Worker": {"replicas": plan.nodes, "restartPolicy": "Never", "template": template(plan, worker)},
            },
        },
    }


def forwarded(plan: Plan, environment: dict[str, str]) -> list[str]:
    """Return the names of variables that ranks need but an SSH session does not inherit."""
    return list(dict.fromkeys([*plan.variables, *environment, *plan.job.environment, *plan.job.secrets]))


def largest_bytes(plan: Plan, *, ranks_per_accelerator: int = 1) -> int:
    """Return the largest message size: the job's, or a power of two that fits a rank's memory, at most 16 GiB."""
    if plan.job.measure.max_bytes is not None:
        return plan.job.measure.max_bytes
    profile = re.search(r"\.(\d+)gb", mig_profile(plan.group) or "")
    memories = [float(profile[1])] if profile else [row.accelerator_memory_gib for row in plan.shape.rows]
    known = [memory for memory in memories if memory is not None]
    if not known:
        return max(_LARGEST_BYTES, plan.job.measure.min_bytes)
    room = int(min(known) * _GIB / _MEMORY_PER_MESSAGE / ranks_per_accelerator)
    return max(min(_LARGEST_BYTES, 1 << (room.bit_length() - 1)), plan.job.measure.min_bytes)


def _script(values: dict[str, Value]) -> str:
    start = f"set -euo pipefail\n{TELL_END}{assignments(values)}"
    return f'{start}export PATH="$PATH:/opt/nccl-tests/build"\n{WAIT_FOR_WORKERS}'
