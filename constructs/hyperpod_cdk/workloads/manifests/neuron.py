"""Tests of Trainium: the devices of each node, and the speed of collectives between nodes."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.workloads.manifests.launcher import (
    SERVE,
    TELL_END,
    WAIT_FOR_WORKERS,
    Value,
    assignments,
    instance_types,
)
from hyperpod_cdk.workloads.manifests.mpi_jobs import forwarded, largest_bytes, mpi_job
from hyperpod_cdk.workloads.manifests.node_jobs import LOOK_AT_EFA, node_job
from hyperpod_cdk.workloads.manifests.training_pods import processes
from hyperpod_cdk.workloads.plan import Plan

_PATHS = 'export PATH="/opt/aws/neuron/bin:/opt/amazon/efa/bin:$PATH"\n'

_LOOK_AT_DEVICES = """\
neuron-ls || failed=1
neuron-ls --json-output || failed=1
"""

# SSH sessions start without the container's variables, and nccom-test starts its ranks in SSH sessions
_KEEP_VARIABLES = """\
for name in PATH LD_LIBRARY_PATH "${variables[@]}"; do
  [[ -z ${!name:-} ]] || printf '%s=%s\\n' "$name" "${!name}" >>/etc/environment
done
"""

# the ranks send their times to the launcher by its name unless an address is set
_MEASURE = """\
program="$(command -v nccom-test)" || { echo "no nccom-test in the image" >&2 && exit 127; }
failed=0
address_of() {
  getent ahostsv4 "$1" | cut -d ' ' -f 1 | head -n 1
}
root="$(address_of "${hosts[0]}")"
collector="$(address_of "$HOSTNAME")"
export NEURON_RT_ROOT_COMM_ID="$root:$port" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_plm_rsh_args="${ssh_options[*]}"
for collective in "${collectives[@]}"; do
  status=0
  echo "# hyperpod-cdk: collective=$collective nodes=${#hosts[@]} instance_type=$instance_type"
  if ((${#hosts[@]} == 1)); then
    ssh -n "${ssh_options[@]}" "${hosts[0]}" "$program" "${flags[@]}" "$collective" 2>&1 || status=$?
  else
    "$program" "${flags[@]}" "$collective" --hosts "${hosts[@]}" --data-collector-host "$collector" 2>&1 || status=$?
  fi
  ((status == 0)) || { echo "# hyperpod-cdk: exit=$status"; failed=1; }
done
exit "$failed"
"""

_PORT = 45654


def neuron_info(plan: Plan) -> list[dict[str, Any]]:
    """Return the Job that lists the Neuron devices and the EFA interfaces of every node."""
    values: dict[str, Value] = {"instance_type": instance_types(plan), "expected": plan.efa, "nodes": plan.nodes}
    script = "set -uo pipefail\nfailed=0\n" + _PATHS + assignments(values) + _LOOK_AT_DEVICES
    if plan.efa:
        script += LOOK_AT_EFA
    return [node_job(plan, container="neuron-info", script=f'{script}exit "$failed"\n')]


def nccom(plan: Plan) -> list[dict[str, Any]]:
    """Return the MPI job that runs nccom-test over all nodes, with one rank per logical NeuronCore."""
    measure = plan.job.measure
    ranks = processes(plan)
    largest = largest_bytes(plan, ranks_per_accelerator=max(1, ranks // max(1, plan.accelerators)))
    sizes = ["-b", str(measure.min_bytes), "-e", str(largest), "-f", "2", "-n", str(measure.iterations)]
    values: dict[str, Value] = {
        "instance_type": instance_types(plan),
        "port": _PORT,
        "collectives": list(measure.collectives),
        "flags": ["-r", str(ranks * plan.nodes), "-N", str(plan.nodes), *sizes, "-d", "fp32", "--non-interactive"],
    }
    launcher = "set -euo pipefail\n" + TELL_END + _PATHS + assignments(values) + WAIT_FOR_WORKERS + _MEASURE
    serve = "set -euo pipefail\n" + _PATHS + assignments({"variables": forwarded(plan, {})}) + _KEEP_VARIABLES + SERVE
    return [mpi_job(plan, slots=ranks, script=launcher, environment={}, worker_script=serve)]
