"""Shell scripts of MPI jobs: how the launcher connects to workers, and how values are quoted for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from hyperpod_cdk.workloads.plan import Plan

Value = str | int | Sequence[str]
"""The types of shell variables: a text, a number, an array."""

NODE_VARIABLE = "HYPERPOD_CDK_NODE"
"""The variable of a worker that contains the name of its node."""

TELL_END = """trap 'echo "# hyperpod-cdk: job exit=$?"' EXIT\n"""
"""Prints the exit code of the launcher, which can also exit before a program starts."""

# Kubernetes replaces $(NAME) and $$ in arguments, so scripts contain neither
WAIT_FOR_WORKERS = """\
export PATH="/opt/amazon/openmpi/bin:/opt/amazon/efa/bin:$PATH"
ssh_options=(-o BatchMode=yes -o ConnectTimeout=5 -o LogLevel=ERROR)
ssh_options+=(-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null)
hostfile="${OMPI_MCA_orte_default_hostfile:-/etc/mpi/hostfile}"
mapfile -t hosts < <(cut -d ' ' -f 1 "$hostfile")
declare -A node
tries=120
for host in "${hosts[@]}"; do
  until node[$host]="$(ssh -n "${ssh_options[@]}" "$host" cat /run/hyperpod-cdk-node)"; do
    ((tries-- > 0)) || { echo "$host does not answer, see the log of its pod" >&2 && exit 1; }
    sleep 5
  done
  echo "# hyperpod-cdk: host=$host node=${node[$host]}"
done
"""
"""Fills ``hosts`` from the host file of the MPI operator, and ``node`` (node by host) once all hosts answer."""

SERVE = """\
mkdir -p /run/sshd
printf '%s\\n' "$HYPERPOD_CDK_NODE" >/run/hyperpod-cdk-node
exec /usr/sbin/sshd -De -o StrictModes=no
"""
"""Runs the SSH server of a worker, and stores the name of its node, which SSH sessions do not have as a variable.

Kubernetes mounts the job's keys in a world-writable folder, and sshd refuses keys there in most images.
"""


def assignments(values: Mapping[str, Value]) -> str:
    """Return lines that set shell variables to a text or number, or to an array for a sequence."""
    return "".join(f"{name}={_quoted(value)}\n" for name, value in values.items())


def instance_types(plan: Plan) -> str:
    """Return the instance type of the group's nodes for logs; for a flexible group all types, separated by commas."""
    return ",".join(plan.shape.instance_types)


def _quoted(value: Value) -> str:
    if isinstance(value, str | int):
        return shlex.quote(str(value))
    return f"({shlex.join(value)})"
