"""Lines that say that something failed, with what is to be done about it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A kind of failure: the lines that tell it, what it is, what to do.

    ``may_pass`` says that programs try again after it: in a log without any test, where nobody sees how it ended, such
    a line alone proves no failure.
    """

    pattern: re.Pattern[str]
    says: str
    fix: str
    may_pass: bool = False


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


KNOWN: dict[str, Known] = {
    "gpu memory": Known(
        _any(r"Cuda failure.*out of memory", r"cudaErrorMemoryAllocation", r"CUDA out of memory", r"OutOfMemoryError"),
        "a GPU had no memory left",
        "measure up to a smaller size, or end what else runs on the GPUs",
    ),
    "killed": Known(
        _any(
            *(r"exited on signal 9\b", r"OOMKilled", r"signal: killed", r"Out of memory: Killed process"),
            *(r"exitcode\s*: -9\b", r"Signal 9 \(SIGKILL\)"),
        ),
        "a process was killed, as Linux does where a pod's memory runs out",
        "give the pods more memory (memory_gib_per_node)",
    ),
    "shared memory": Known(
        # S108: a pattern of a path, which nobody opens
        _any(r"shared memory segment", r"/dev/shm/nccl", r"No space left on device.*(?:shm|nccl)"),  # noqa: S108
        "/dev/shm was too small",  # noqa: S108 - a message
        "make it larger (shared_memory_gib)",
    ),
    "memory registration": Known(
        _any(
            *(r"NET/OFI Unable to register memory", r"Unable to register MR\b", r"efa_\d+: Failed to register mr"),
            *(r"cannot allocate memory for EFA's", r"NET/OFI .*(?:RC: -12|Cannot allocate memory)"),
        ),
        "memory could not be registered for EFA",
        "use an image with an EFA installer of at least 1.29.1 (before, NCCL 2.19 and later need"
        " FI_EFA_SET_CUDA_SYNC_MEMOPS=0), and request hugepages-2Mi in the pods",
    ),
    "locked memory": Known(
        _any(r"RLIMIT_MEMLOCK", r"memlock", r"ibv_reg_mr.*(?:Cannot allocate|failed)"),
        "memory could not be locked",
        "let the pods lock memory (IPC_LOCK) and the nodes allow it without a limit",
    ),
    "huge pages": Known(
        _any(
            r"huge ?page.*(?:fail|unable|cannot|not enough|ENOMEM)",
            r"(?:fail|unable).*huge ?page",
        ),
        "no huge pages were left",
        "request hugepages-2Mi in the pods of types with EFA",
    ),
    "handshake": Known(
        _any(r"handshake failed", r"Unable to insert remote address", r"Unresponsive receiver"),
        "nodes do not reach each other over EFA",
        "let the security group send all traffic to itself (a rule to 0.0.0.0/0 does not count for EFA), and keep the"
        " nodes in one Availability Zone",
    ),
    "transfer": Known(
        _any(r"NET/OFI Request .*completed with error", r"efa_rdm_\w+_handle_error", r"\(UNDELIVERABLE\)"),
        "a transfer over EFA failed",
        "see which peer the line names, and run the test in pairs, which shows a bad node",
    ),
    "plugin": Known(
        _any(r"NCCL WARN NET/OFI\b", r"WARN: Function: .*NET/OFI\b"),
        "NCCL's EFA plugin (aws-ofi-nccl) failed",
        "use an image whose aws-ofi-nccl and libfabric come from one EFA installer, and give the log with"
        " FI_LOG_LEVEL=warn",
    ),
    "interface": Known(
        _any(
            *(r"Bootstrap ?: no socket interface found", r"no NCCL_SOCKET_IFNAME interface found"),
            r"neither AF_INET\(2\) nor AF_INET6",
        ),
        "NCCL found no network interface to begin with",
        "let NCCL_SOCKET_IFNAME name an interface that the pods have (eth0), or leave it out",
    ),
    "imex": Known(
        _any(
            *(r"\bIMEX\b.*(?:fail|error|not |unable)", r"(?:fail|error|unable).*\bIMEX\b"),
            *(r"cuMemImportFromShareableHandle", r"\bMNNVL\b.*(?:fail|error|unable)"),
        ),
        "GPUs of other nodes were not reached over NVLink (IMEX)",
        "let all pods of the job share one ComputeDomain, and see whether nvidia-imex runs on the nodes;"
        " NCCL_MNNVL_ENABLE=0 does without",
    ),
    "timeout": Known(
        _any(r"Test timeout \(\d+s\)", r"Watchdog caught collective operation timeout"),
        "a collective did not end in time",
        "run it in pairs, which shows the node that hangs",
    ),
    "ssh": Known(
        _any(
            *(r"ssh: connect to host", r"Permission denied \(publickey", r"Host key verification failed"),
            *(r"kex_exchange_identification", r"Authentication refused: bad ownership"),
        ),
        "the launcher was not let into a worker by SSH",
        "wait until sshd runs in every worker (see their logs); if it stays so, see that the job's SSH secret is"
        " mounted in all of them with the mode that sshd asks for",
        may_pass=True,
    ),
    "name": Known(
        _any(r"Could not resolve hostname", r"Name or service not known", r"Temporary failure in name resolution"),
        "a host's name could not be resolved",
        "wait until all workers run; if it stays so, see whether their service exists",
        may_pass=True,
    ),
    "library": Known(
        _any(r"error while loading shared libraries", r"\.so[.\d]*: cannot open shared object file"),
        "a shared library is missing",
        "install it in the image, or let LD_LIBRARY_PATH name its folder on every node",
    ),
    "xid": Known(
        _any(r"NVRM: Xid \(", r"\bXid \d+\b", r"fallen off the bus"),
        "a GPU's driver reported an error (Xid)",
        "look its number up in NVIDIA's list of Xid errors, and run the GPUs' diagnostics (kind: dcgm) before the node"
        " takes work again",
    ),
    "crash": Known(
        _any(
            *(r"Caught signal 11\b", r"Signal: Segmentation fault", r"exited on signal 11\b", r"\bSIGSEGV\b"),
            *(r"Segmentation fault \(", r"exitcode\s*: -11\b"),
        ),
        "a program crashed (segmentation fault)",
        "see which library its first frames name; NCCL, aws-ofi-nccl and MPI of the image have to fit each other",
    ),
    "cuda": Known(
        _any(
            *(
                r"Test CUDA failure",
                r"NCCL WARN Cuda failure",
                r"CUDA error",
                r"CUDA_ERROR_\w+",
                r"unhandled cuda error",
            ),
            *(r"ncclUnhandledCudaError", r"CUDA driver version is insufficient", r"no CUDA-capable device"),
        ),
        "CUDA gave up",
        "see whether the image's CUDA fits the nodes' driver, and run the GPUs' diagnostics (kind: dcgm)",
    ),
    "connection": Known(
        _any(
            r"NCCL WARN.*(?:Connection (?:refused|reset|timed out|closed)|remote process exited|Call to connect"
            r"|Call to recv|Connect to \S+ failed|Socket recv failed|wrong type)",
            *(r"socket(?:Poll|Start)?Connect.*(?:failed|timed out)", r"socketProgress\w*: Connection closed"),
            *(r"ncclRemoteError", r"remote process exited or there was a network error"),
            r"socketProgressOpt: Call to recv",
        ),
        "a connection between nodes failed",
        "see which host ended first, and whether NCCL_SOCKET_IFNAME names an interface that all nodes have",
        may_pass=True,
    ),
    "abort": Known(
        _any(
            *(r"exited on signal 6\b", r"Signal: Aborted", r"\bSIGABRT\b", r"terminate called after throwing"),
            r"NCCL INFO comm .* - Abort COMPLETE",
        ),
        "a program aborted",
        "see the first error before that line",
    ),
    "nccl": Known(
        _any(
            *(r"Test NCCL failure", r"Test failure", r"NCCL failure", r"ncclSystemError", r"ncclInternalError"),
            *(r"ncclInvalidUsage", r"unhandled system error", r"NCCL error", r"Duplicate GPU detected"),
        ),
        "NCCL gave up",
        "set NCCL_DEBUG=INFO and see the first warning",
    ),
    "mpi": Known(
        _any(
            *(r"(?:mpirun|mpiexec) (?:noticed that|detected that one or more)", r"prterun (?:noticed|detected)"),
            *(
                r"There are not enough slots",
                r"ORTE was unable to reliably start",
                r"ORTE daemon has unexpectedly failed",
            ),
            *(r"(?:ORTE|PRTE) has lost communication", r"Primary job +terminated normally, but"),
            r"unable to complete a TCP connection",
        ),
        "a process of the job ended before the others",
        "see that rank's last lines",
    ),
    "warning": Known(
        _any(r"NCCL WARN\b"),
        "NCCL warned of something that is not known here",
        "see the line, and set NCCL_DEBUG=INFO for what leads to it",
        may_pass=True,
    ),
}
"""Name -> failure; the first that fits a line counts, so the telling ones come before the general ones."""

WARNING = "NCCL WARN"
"""What every warning of NCCL holds."""

UNKNOWN = "warning"
"""The failure that a warning of NCCL is where nothing more is known of it."""

WORDS = (
    *(b"fail", b"error", b"killed", b"timeout", b"timed out", b"refused", b"unable", b"out of memory", b"not enough"),
    *(b"could not resolve", b"not known", b"memlock", b"shared memory", b"/dev/shm/nccl", b"no space left"),
    *(b"noticed that", b"detected that", b"unresponsive", b"lost communication", b"no cuda-capable", b"insufficient"),
    *(b"connection reset", b"connection closed", b"call to connect", b"remote process exited", b"unhandled", b"cannot"),
    *(b"nccl warn", b"warn: function", b"no socket interface", b"ifname interface", b"af_inet", b"ssh: connect"),
    *(b"permission denied", b"kex_exchange", b"xid", b"off the bus", b"signal", b"sigsegv", b"sigabrt", b"exitcode"),
    *(b"terminate called", b"primary job", b"duplicate gpu", b"ncclinvalidusage", b"undeliverable", b"shareablehandle"),
    *(b"name resolution",),
)
"""What a line has at least one of, in small letters, if any failure fits it."""


def name_of(text: str) -> str | None:
    """Return the name of the failure that a line tells, or None."""
    return next((name for name, known in KNOWN.items() if known.pattern.search(text)), None)
