"""Shell scripts of MPI jobs: how workers and launcher meet, and values that a shell reads as they are."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from hyperpod_cdk.workloads.plan import Plan

Value = str | int | Sequence[str]
"""What a shell variable can be: a text, a number, an array."""

NODE_VARIABLE = "HYPERPOD_CDK_NODE"
"""The variable of a worker that holds the name of its node."""

TELL_END = """trap 'echo "# hyperpod-cdk: job exit=$?"' EXIT\n"""
"""Tells the exit code of the launcher, which also ends where no program was started."""

# Kubernetes replaces $(NAME) and $$ in arguments: scripts have neither
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
"""Fills ``hosts`` from the host file of the MPI operator and ``node`` (host -> node), once all of them answer."""

SERVE = """\
mkdir -p /run/sshd
printf '%s\\n' "$HYPERPOD_CDK_NODE" >/run/hyperpod-cdk-node
exec /usr/sbin/sshd -De -o StrictModes=no
"""
"""Makes a worker one that the launcher finds: it knows its node, which SSH sessions do not, and lets them in.

Kubernetes mounts the job's keys in a world-writable folder; few images configure sshd to read them from there.
"""


def assignments(values: Mapping[str, Value]) -> str:
    """Give lines that set shell variables: a text or number, or an array where it is a sequence."""
    return "".join(f"{name}={_quoted(value)}\n" for name, value in values.items())


def instance_types(plan: Plan) -> str:
    """Give the type of the group's nodes as logs name it; of a flexible group all of them, with commas."""
    return ",".join(plan.shape.instance_types)


def _quoted(value: Value) -> str:
    if isinstance(value, str | int):
        return shlex.quote(str(value))
    return f"({shlex.join(value)})"
