"""Lines that say that something failed, with what is to be done about it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A kind of failure: the lines that tell it, what it is, what to do."""

    pattern: re.Pattern[str]
    says: str
    fix: str


KNOWN: dict[str, Known] = {
    "gpu memory": Known(
        re.compile(
            r"Cuda failure.*out of memory|CUDA failure.*'out of memory'|cudaErrorMemoryAllocation", re.IGNORECASE
        ),
        "a GPU had no memory left",
        "measure up to a smaller size, or end what else runs on the GPUs",
    ),
    "killed": Known(
        re.compile(r"exited on signal 9\b|OOMKilled|signal: killed|Out of memory: Killed process", re.IGNORECASE),
        "a process was killed, as Linux does where a pod's memory runs out",
        "give the pods more memory (memory_gib_per_node)",
    ),
    "shared memory": Known(
        re.compile(r"(?:shared memory segment|/dev/shm/nccl).*|No space left on device.*(?:shm|nccl)", re.IGNORECASE),
        "/dev/shm was too small",  # noqa: S108 - a message
        "make it larger (shared_memory_gib)",
    ),
    "locked memory": Known(
        re.compile(r"RLIMIT_MEMLOCK|memlock|ibv_reg_mr.*(?:Cannot allocate|failed)", re.IGNORECASE),
        "memory could not be locked",
        "let the pods lock memory (IPC_LOCK) and the nodes allow it without a limit",
    ),
    "huge pages": Known(
        re.compile(r"huge ?page.*(?:fail|unable|cannot|not enough|ENOMEM)|(?:fail|unable).*huge ?page", re.IGNORECASE),
        "no huge pages were left",
        "request hugepages-2Mi in the pods of types with EFA",
    ),
    "handshake": Known(
        re.compile(r"handshake failed|Unable to insert remote address|Unresponsive receiver", re.IGNORECASE),
        "nodes do not reach each other over EFA",
        "let the security group send all traffic to itself (a rule to 0.0.0.0/0 does not count for EFA), and keep the"
        " nodes in one Availability Zone",
    ),
    "connection": Known(
        re.compile(
            r"NCCL WARN.*(?:Connection (?:refused|reset|timed out|closed)|remote process exited|Call to connect)"
            r"|socket(?:Poll|Start)?Connect.*(?:failed|timed out)",
            re.IGNORECASE,
        ),
        "a connection between nodes failed",
        "see which host ended first, and whether NCCL_SOCKET_IFNAME names an interface that all nodes have",
    ),
    "timeout": Known(
        re.compile(r"Test timeout \(\d+s\)|Watchdog caught collective operation timeout", re.IGNORECASE),
        "a collective did not end in time",
        "run it in pairs, which shows the node that hangs",
    ),
    "name": Known(
        re.compile(r"Could not resolve hostname|Name or service not known", re.IGNORECASE),
        "a host's name could not be resolved",
        "wait until all workers run; if it stays so, see whether their service exists",
    ),
    "nccl": Known(
        re.compile(
            r"Test NCCL failure|Test failure|NCCL failure|ncclSystemError|ncclInternalError|unhandled system error"
        ),
        "NCCL gave up",
        "set NCCL_DEBUG=INFO and see the first warning",
    ),
    "cuda": Known(
        re.compile(r"Test CUDA failure|CUDA error|CUDA driver version is insufficient|no CUDA-capable device"),
        "CUDA gave up",
        "see whether the image's CUDA fits the nodes' driver, and run the GPUs' diagnostics (kind: dcgm)",
    ),
    "mpi": Known(
        re.compile(
            r"mpirun (?:noticed that|detected that one or more)|prterun (?:noticed|detected)|There are not enough slots"
            r"|ORTE was unable to reliably start|PRTE has lost communication",
            re.IGNORECASE,
        ),
        "a process of the job ended before the others",
        "see that rank's last lines",
    ),
}
"""Name -> failure; the first that fits a line counts, so the telling ones come before the general ones."""

WORDS = (
    *(b"fail", b"error", b"killed", b"timeout", b"timed out", b"refused", b"unable", b"out of memory", b"not enough"),
    *(b"could not resolve", b"not known", b"memlock", b"shared memory", b"/dev/shm/nccl", b"no space left"),
    *(b"noticed that", b"detected that", b"unresponsive", b"lost communication", b"no cuda-capable", b"insufficient"),
    *(b"connection reset", b"connection closed", b"call to connect", b"remote process exited", b"unhandled", b"cannot"),
)
"""What a line has at least one of, in small letters, if any failure fits it."""


def name_of(text: str) -> str | None:
    """Give the name of the failure that a line tells, or None."""
    return next((name for name, known in KNOWN.items() if known.pattern.search(text)), None)
