"""Runs the shell scripts of manifests with fake commands that only print their arguments."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMANDS = {
    "ssh": '[[ "$*" != *silent* && "$*" =~ w-[0-9]+ ]] || exit 255\n'
    '[[ "$*" == *hyperpod-cdk-node ]] && echo "node-of-$BASH_REMATCH" || echo "ssh $*"',
    "mpirun": 'echo "mpirun $*"; [[ "$*" != *"${BAD:-nothing}"* ]] || exit 9',
    "nccom-test": 'echo "nccom-test $*; ${NEURON_RT_ROOT_COMM_ID%%:*} $OMPI_ALLOW_RUN_AS_ROOT"\n'
    '[[ "$*" != *"${BAD:-nothing}"* ]] || exit 9',
    "all_reduce_perf": "exit 99",
    "all_gather_perf": "exit 99",
    "sleep": "exit 0",
    "getent": 'echo "10.1.2.3      STREAM $2"; echo "10.1.2.3      DGRAM"',
    "fi_info": 'for ((n = 0; n < INTERFACES; n++)); do printf "provider: efa\\n    domain: rdmap%d-rdm\\n" $n; done',
    "nv-hostengine": "echo started",
    "dcgmi": '[[ $1 != discovery ]] || exit "${ENGINE:-0}"; echo "{}"; exit "${DIAGNOSIS:-0}"',
    "neuron-ls": 'echo "neuron-ls $*"; exit "${DEVICES:-0}"',
}


@dataclass(frozen=True)
class Ran:
    code: int
    lines: list[str]
    errors: str

    def said(self, start: str) -> list[str]:
        """Return the lines that begin with ``start``."""
        return [line for line in self.lines if line.startswith(start)]


def script_of(pod: Mapping[str, Any]) -> str:
    shell, option, script = pod["containers"][0]["command"]
    assert (shell, option) == ("/bin/bash", "-c")
    return str(script)


def as_kubernetes_hands_on(text: str, names: set[str]) -> str:
    """Return an argument as a container gets it: $(NAME) replaced where a variable has the name, $$ by one dollar."""
    return re.sub(
        r"\$(\$|\(([^)]*)\))",
        lambda match: "$" if match[1] == "$" else "REPLACED" if match[2] in names else match[0],
        text,
    )


def run(
    script: str,
    folder: Path,
    *,
    hosts: int = 2,
    without: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> Ran:
    """Run a script where only ``COMMANDS`` and the usual tools are, with a host file of ``hosts`` workers."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, body in COMMANDS.items():
        (programs / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    for name in without:
        (programs / name).unlink()
    hostfile = folder / "hostfile"
    hostfile.write_text("".join(f"w-{number} slots=8\n" for number in range(hosts)), encoding="utf-8")
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "TMPDIR": str(folder),
            "OMPI_MCA_orte_default_hostfile": str(hostfile),
            "HYPERPOD_CDK_NODE": "hyperpod-i-1",
            **(variables or {}),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=os.path.sep,
    )
    return Ran(done.returncode, done.stdout.splitlines(), done.stderr)
