"""Known failures in logs: the lines that show them, and their fixes."""

from __future__ import annotations

import re
from dataclasses import dataclass

Steps = tuple[re.Pattern[str], ...]
"""Patterns that must match a line in sequence, which is faster than one pattern with ``.*``."""


@dataclass(frozen=True)
class Known:
    """A kind of failure: the lines that show it, its description and its fix.

    ``may_pass`` means that programs retry after it, so that such a line is no proof in a log without a test.
    ``is_hardware`` means that the failure counts even if later runs complete.
    """

    patterns: tuple[Steps, ...]
    says: str
    fix: str
    may_pass: bool = False
    is_hardware: bool = False

    def fits(self, text: str) -> bool:
        """Return whether a line shows this failure."""
        return any(_fit(steps, text) for steps in self.patterns)


def _fit(steps: Steps, text: str) -> bool:
    at = 0
    for step in steps:
        match = step.search(text, at)
        if match is None:
            return False
        at = match.end()
    return True


def _any(*parts: str) -> tuple[Steps, ...]:
    """Compile patterns; the text on each side of a ``.*`` becomes a separate step."""
    plain = [part for part in parts if ".*" not in part]
    steps = [tuple(re.compile(each, re.IGNORECASE) for each in part.split(".*")) for part in parts if ".*" in part]
    return ((re.compile("|".join(plain), re.IGNORECASE),), *steps) if plain else tuple(steps)


KNOWN: dict[str, Known] = {
    "gpu memory": Known(
        _any(
            *(r"Cuda failure.*out of memory", r"cudaErrorMemoryAllocation", r"CUDA out of memory", r"OutOfMemoryError"),
            *(r"CUDA error: out of memory", r"CUDA_ERROR_OUT_OF_MEMORY", r"cuda runtime error \(2\)"),
        ),
        "a GPU had no memory left",
        "use a smaller maximum size, or stop other processes on the GPUs",
    ),
    "killed": Known(
        _any(
            *(r"exited on signal 9\b", r"OOMKilled", r"signal: killed", r"Out of memory: Killed process"),
            *(
                r"exitcode\s{0,9}: -9\b",
                r"^\S{0,99} line \d{1,6}: {1,9}\d{1,9} Killed\b",
                r"oom-kill event",
                r"Signal 9 \(SIGKILL\)",
            ),
        ),
        "a process was killed, as Linux does when a pod runs out of memory",
        "give the pods more memory (memory_gib_per_node)",
    ),
    "gpu hardware": Known(
        _any(
            *(
                r"uncorrectable ECC error",
                r"fallen off the bus",
                # NVIDIA's catalog of Xids: reset the GPU or its board, then contact support; 48 and 74 have separate
                # workflows, 95 is an uncontained memory error
                # (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html)
                r"Xid \([^)]{1,40}\): (?:48|62|64|74|79|95|140)\b",
                # NVLink 5 reports the severity
                r"Xid \([^)]{1,40}\): (?:14[4-9]|150)\b.*\bFatal\b",
            ),
            *(
                r"\bSXid.*\bFatal\b",
                r"cudaErrorECCUncorrectable",
                r"uncorrectable NVLink error",
                r"CUDA_ERROR_ECC_UNCORRECTABLE",
            ),
            r"Row remapp(?:ing|er) fail",
            r"Unable to determine the device handle for GPU",
        ),
        "the hardware of a GPU or of its switch failed",
        "take the node out of service and replace it; the GPUs' diagnostics (kind: dcgm) may show more",
        is_hardware=True,
    ),
    "gpu firmware": Known(
        # the same catalog: reset the GPU, and check the software
        _any(r"Xid \([^)]{1,40}\): (?:119|120)\b", r"\bGSP Timeout\b", r"waiting for RPC (?:response )?from GSP"),
        "the firmware of a GPU did not respond (GSP)",
        "restart the node, which resets the GPU; if it happens again, try another driver, then replace the node",
        is_hardware=True,
    ),
    "driver": Known(
        _any(r"Failed to initialize NVML", r"nvml error: driver/library version mismatch"),
        "the driver of the GPUs does not respond, or has another version than its libraries",
        "restart or replace the node: its driver was changed while it ran; the driver is not part of the image",
    ),
    "fabric manager": Known(
        _any(
            *(r"system not yet initialized", r"cudaErrorSystemNotReady", r"CUDA_ERROR_SYSTEM_NOT_READY"),
            *(r"Failed to bind NVLink SHARP", r"error in the Fabric Manager", r"nvls\.cc.*Cuda failure 401\b"),
            r"\bFabric Manager\b.*(?:not running|fail|error|not started)",
        ),
        "the GPUs' NVSwitches were not set up (fabric manager)",
        "check that nvidia-fabricmanager runs on the node in the version of its driver; restart it or replace the node",
    ),
    "failed diagnostic": Known(
        _any(r'"event": ?"Test failed"'),
        "a diagnostic of DCGM failed",
        "check the test and GPU in the line; take the node out of service if the hardware is the cause",
        is_hardware=True,
    ),
    "diagnostic": Known(
        _any(
            *(r"nv-hostengine does not answer", r"Unable to connect to host engine", r"Host engine connection invalid"),
            *(r"unable to establish a connection to the specified host", r"Unable to complete diagnostic for group"),
            *(r"NVVS binary was not found", r"error when communicating with the host engine"),
        ),
        "DCGM did not run its diagnostics",
        "check why nv-hostengine does not respond in that pod: GPUs that other pods use, a driver of another version",
    ),
    "neuron": Known(
        _any(
            *(
                r"\bERROR {1,9}(?:NRT|TDRV|ENC|NMGR|KELF|NEURON)\w{0,10}:",
                r"\bNrt::\w{1,30} failed",
                r"\bNRT_(?:EXEC|FAIL|INVALID|TIME|RESOURCE|QUEUE|UNSUPPORTED|UNINITIALIZED)",
            ),
            *(
                r"nrt_\w{1,40}(?:\(\))? failed",
                r"NRT:.*\bERROR\b",
                r"NEURON_RT.*(?:fail|error)",
                r"nd\d{1,3} nc\d{1,3} .*(?:Timeout|error)",
            ),
            r"\bnrt_\w{1,40} status=[1-9]",
            # the compiler's errors have separate numbers
            r"\[NCC_[A-Z]{2,9}\d{1,6}\]",
            *(r"CCOM WARN", r"neuron(?:_device|-ls|-driver).*(?:not found|fail|error)", r"No neuron device"),
        ),
        "the Neuron runtime failed",
        "check its first line; driver, runtime and collectives must be compatible, and no other process may use the"
        " NeuronCores",
    ),
    "shared memory": Known(
        # S108: a pattern of a path that is not opened
        _any(r"shared memory segment", r"/dev/shm/nccl", r"No space left on device.*(?:shm|nccl)"),  # noqa: S108
        "/dev/shm was too small",  # noqa: S108 - a message
        "increase its size (shared_memory_gib)",
    ),
    "disk": Known(
        _any(r"\[Errno 28\] No space left on device", r"\bStorageFull\b"),
        "a disk or /dev/shm was full",
        "check where the program was writing, and increase the volume (volume_gib, a claim) or shared_memory_gib",
    ),
    "memory registration": Known(
        _any(
            *(r"NET/OFI Unable to register memory", r"Unable to register MR\b", r"efa_\d{1,9}: Failed to register mr"),
            *(r"cannot allocate memory for EFA's", r"NET/OFI .*(?:RC: -12|Cannot allocate memory)"),
        ),
        "memory could not be registered for EFA",
        "use an image with EFA installer 1.29.1 or later (with an earlier one, NCCL 2.19 and later need"
        " FI_EFA_SET_CUDA_SYNC_MEMOPS=0), and request hugepages-2Mi in the pods",
    ),
    "locked memory": Known(
        _any(r"RLIMIT_MEMLOCK", r"memlock", r"ibv_reg_mr.*(?:Cannot allocate|failed)"),
        "memory could not be locked",
        "allow the pods to lock memory (IPC_LOCK), and the nodes to do so without a limit",
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
        "nodes cannot reach each other over EFA",
        "allow all traffic from the security group to itself (a rule to 0.0.0.0/0 does not apply to EFA), and keep the"
        " nodes in one Availability Zone",
    ),
    "transfer": Known(
        _any(
            r"NET/OFI Request .*completed with error",
            r"efa_rdm_\w{1,60}_handle_error",
            r"rxr_cq_(?:write_tx|handle)_error",
            r"\(UNDELIVERABLE\)",
        ),
        "a transfer over EFA failed",
        "check the peer in the line, and run the test in pairs, which shows the bad node",
    ),
    "plugin": Known(
        _any(r"NCCL WARN NET/OFI\b", r"WARN: Function: .*NET/OFI\b"),
        "NCCL's EFA plugin (aws-ofi-nccl) failed",
        "use an image whose aws-ofi-nccl and libfabric come from one EFA installer, and provide the log with"
        " FI_LOG_LEVEL=warn",
    ),
    "interface": Known(
        _any(
            *(r"Bootstrap ?: no socket interface found", r"no NCCL_SOCKET_IFNAME interface found"),
            r"neither AF_INET\(2\) nor AF_INET6",
        ),
        "NCCL found no network interface to start with",
        "set NCCL_SOCKET_IFNAME to an interface that the pods have (eth0), or omit it",
    ),
    "imex": Known(
        _any(
            *(r"\bIMEX\b.*(?:fail|error|not |unable)", r"(?:fail|error|unable).*\bIMEX\b"),
            *(r"cuMemImportFromShareableHandle", r"\bMNNVL\b.*(?:fail|error|unable)"),
        ),
        "GPUs of other nodes could not be reached over NVLink (IMEX)",
        "use one ComputeDomain for all pods of the job, and check whether nvidia-imex runs on the nodes;"
        " NCCL_MNNVL_ENABLE=0 disables it",
    ),
    "timeout": Known(
        _any(
            r"Test timeout \(\d{1,9}s\)",
            r"Watchdog caught collective operation timeout",
            r"watchdog got stuck",
            r"Heartbeat monitor timed out",
            r"detected by watchdog",
            r"NCCL operations have failed or timed out",
        ),
        "a collective did not end in time",
        "run the test in pairs, which shows the node that hangs",
    ),
    "ssh": Known(
        _any(
            *(r"ssh: connect to host", r"Permission denied \(publickey", r"Host key verification failed"),
            *(r"kex_exchange_identification", r"Authentication refused: bad ownership"),
        ),
        "the launcher could not log in to a worker with SSH",
        "wait until sshd runs in every worker (see their logs); if it does not change, check that the job's SSH secret"
        " is"
        " mounted in all of them with the mode that sshd requires",
        may_pass=True,
    ),
    "name": Known(
        _any(r"Could not resolve hostname", r"Name or service not known", r"Temporary failure in name resolution"),
        "a host's name could not be resolved",
        "wait until all workers run; if it does not change, check whether their service exists",
        may_pass=True,
    ),
    "program": Known(
        _any(
            r"(?:sshd|mpirun|orted|prted|_perf|nccom-test|neuron-ls|dcgmi|fi_info|torchrun)"
            r": (?:No such file|(?:command )?not found)",
            # the messages of sh and bash for any program
            r"^\S{1,99}: (?:line )?\d{1,6}: [\w./-]{1,99}: (?:command )?not found$",
            *(r"executable file not found in \$PATH", r"no [\w-]{1,40} in the image", r"could not find an executable"),
        ),
        "a program is missing in the image",
        "use an image that contains it in a folder of its PATH",
    ),
    "module": Known(
        _any(r"^(?:E\s{1,9})?ModuleNotFoundError: No module named", r"^ImportError: cannot import name"),
        "a Python module is missing in the image, or has another version",
        "use an image that contains it",
    ),
    "architecture": Known(
        _any(r"\bexec format error"),
        "a program was built for another processor architecture than the node's",
        "use an image of the node's architecture: arm64 for Grace (GB200), amd64 for the others",
    ),
    "fork": Known(
        _any(r"libfabric EFA provider is operating in", r"operation involving a call to fork"),
        "a process that uses EFA was forked",
        "set FI_EFA_FORK_SAFE=1, or use an image with a newer EFA installer",
    ),
    "library": Known(
        _any(r"error while loading shared libraries", r"\.so[.\d]{0,40}: cannot open shared object file"),
        "a shared library is missing",
        "install it in the image, or add its folder to LD_LIBRARY_PATH on every node",
    ),
    "symbol": Known(
        _any(r"symbol lookup error", r"version `[\w.]{1,60}' not found \(required by"),
        "a shared library has another version than the one that the program was built with",
        "add the folder of that version to LD_LIBRARY_PATH, or build the program in the image",
    ),
    "xid": Known(
        _any(r"NVRM: Xid \(", r"\bXid \d{1,4}\b", r"\bSXid\b"),
        "a GPU's driver reported an error (Xid)",
        "look up its number in NVIDIA's list of Xid errors, and run GPU diagnostics (kind: dcgm) before the node"
        " runs jobs again",
    ),
    "bus error": Known(
        _any(
            *(r"\bSIGBUS\b", r"Bus error \(", r"Signal: Bus error"),
            *(r"exited on signal 7\b", r"exitcode\s{0,9}: -7\b"),
            r"Caught signal 7\b",
            r"Fatal Python error: Bus error",
        ),
        "a program ended with a bus error, usually because /dev/shm was full",
        "increase its size (shared_memory_gib)",
    ),
    "crash": Known(
        _any(
            *(r"Caught signal 11\b", r"Signal: Segmentation fault", r"exited on signal 11\b", r"\bSIGSEGV\b"),
            *(r"Segmentation fault \(", r"exitcode\s{0,9}: -11\b", r"Fatal Python error: Segmentation fault"),
        ),
        "a program crashed (segmentation fault)",
        "check the library in its first frames; NCCL, aws-ofi-nccl and MPI in the image must be compatible",
    ),
    "cuda": Known(
        _any(
            *(
                r"Test CUDA failure",
                r"NCCL WARN Cuda failure",
                r"CUDA error",
                r"CUDA_ERROR_\w{1,60}",
                r"unhandled cuda error",
            ),
            *(r"ncclUnhandledCudaError", r"CUDA driver version is insufficient", r"no CUDA-capable device"),
            *(r"No CUDA GPUs are available", r"ProcessGroupNCCL is only supported with GPUs"),
        ),
        "CUDA failed",
        "check whether the image's CUDA is compatible with the nodes' driver, and run GPU diagnostics (kind: dcgm)",
    ),
    "connection": Known(
        _any(
            r"NCCL WARN.*(?:Connection (?:refused|reset|timed out|closed)|remote process exited|Call to connect"
            r"|Call to recv|Connect to \S{1,255} failed|Socket recv failed|wrong type)",
            *(r"socket(?:Poll|Start)?Connect.*(?:failed|timed out)", r"socketProgress\w{0,60}: Connection closed"),
            *(r"ncclRemoteError", r"remote process exited or there was a network error"),
            r"socketProgressOpt: Call to recv",
        ),
        "a connection between nodes failed",
        "check which host ended first, and whether NCCL_SOCKET_IFNAME is an interface that all nodes have",
        may_pass=True,
    ),
    "abort": Known(
        _any(
            *(r"exited on signal 6\b", r"Signal: Aborted", r"\bSIGABRT\b", r"terminate called after throwing"),
            *(
                r"NCCL INFO comm .* - Abort COMPLETE",
                r"exitcode\s{0,9}: -6\b",
                r"double free (?:detected|or corruption)",
            ),
            *(
                r"\*\*\* stack smashing detected",
                r"(?:free|munmap_chunk)\(\): invalid",
                r"Fatal Python error: Aborted",
                r"Aborted \(core dumped\)",
                r"MPI_ABORT was invoked",
            ),
        ),
        "a program aborted",
        "check the first error before that line",
    ),
    "nccl": Known(
        _any(
            *(r"Test NCCL failure", r"Test failure", r"NCCL failure", r"ncclSystemError", r"ncclInternalError"),
            *(r"ncclInvalidUsage", r"unhandled system error", r"NCCL error", r"Duplicate GPU detected"),
        ),
        "NCCL failed",
        "set NCCL_DEBUG=INFO and check the first warning",
    ),
    "rendezvous": Known(
        _any(
            *(r"Rendezvous(?:Connection|Timeout|Closed|State)Error", r"The client socket has timed out after"),
            *(r"connection to the C10d store has failed", r"\[c10d\].*(?:timed out|failed to (?:bind|listen))"),
            *(
                r"TCPStore.*(?:timed out|timeout|Broken pipe|Connection reset)",
                r"DistStoreError",
                r"store->get\(.*got error",
                r"Timeout waiting for key",
                r"waitForInput.*timed? ?out",
            ),
            r"failed to recv, got 0 bytes",
        ),
        "the rendezvous of the training processes failed",
        "check that the first pod runs and its name resolves, that all pods use the same endpoint and port, and"
        " that"
        " nothing between them blocks it",
        may_pass=True,
    ),
    "mpi": Known(
        _any(
            *(r"(?:mpirun|mpiexec) (?:noticed that|detected that one or more)", r"prterun (?:noticed|detected)"),
            *(
                r"There are not enough slots",
                r"ORTE was unable to reliably start",
                r"ORTE daemon has unexpectedly failed",
                r"(?:ORTE|PRTE) does not know how to route a message",
            ),
            *(r"(?:ORTE|PRTE) has lost communication", r"Primary job {1,4}terminated normally, but"),
            *(r"unable to complete a TCP connection", r"MPI_ERRORS_ARE_FATAL", r"An error occurred in MPI_"),
            *(r"Fatal error in \w{0,3}MPI_", r"prted? .*(?:failed|unable)", r"PRTE has lost", r"UCX {1,4}ERROR"),
            *(r"It looks like (?:MPI_INIT|orte_init|prte_init) failed", r"does not answer, see the log of its pod"),
        ),
        "a process of the job ended before the others",
        "check the last lines of that rank",
    ),
    "scheduler": Known(
        _any(
            *(r"srun: error:", r"slurmstepd: error:", r"srun: Job step aborted"),
            *(r"DUE TO (?:TIME LIMIT|NODE FAILURE)",),
            *(r"\bEvicted\b", r"node was low on resource", r"ImagePullBackOff", r"ErrImagePull", r"CrashLoopBackOff"),
            r"OCI runtime create failed",
            r"No valid EFA devices found",
        ),
        "the launcher or scheduler reports that the job failed",
        "check the first error before that line, and the events of the job or pod",
    ),
    "stopped": Known(
        _any(r"Received \d{1,2} death signal", r"SignalException: Process \d{1,9} got signal"),
        "the launcher terminated the processes",
        "find the cause: another pod that failed first, a pod that was evicted or preempted, a node that was replaced",
    ),
    "exit": Known(
        _any(
            *(
                r"\bChildFailedError\b",
                r"exitcode\s{0,9}: -?[1-9]\d{0,2}\b",
                r"exited? with (?:exit )?code -?[1-9]\d{0,2}\b",
            ),
            *(
                r"command terminated with exit code [1-9]",
                r"exit(?:ed with)? status [1-9]\d{0,2}\b",
                r"non-zero exit (?:code|status)",
            ),
        ),
        "a process ended with an error code",
        "check its error before that line",
    ),
    "warning": Known(
        _any(r"NCCL WARN\b"),
        "NCCL logged an unknown warning",
        "check the line, and set NCCL_DEBUG=INFO to see its cause",
        may_pass=True,
    ),
}
"""The failures by name; the first match counts, so specific failures precede general ones."""

WARNING = "NCCL WARN"
"""The text in every warning of NCCL."""

UNKNOWN = "warning"
"""The name of the failure for an unknown NCCL warning."""

_WORDS = (
    "fail|error|killed|timeout|timed out|refused|unable|out of memory|not enough|could not resolve"
    "|not known|memlock|shared memory|/dev/shm/nccl|no space left|noticed that|detected that|unresponsive"
    "|lost communication|no cuda-capable|insufficient|connection reset|connection closed|call to connect"
    "|remote process exited|unhandled|cannot|nccl warn|warn: function|no socket interface|ifname interface"
    "|af_inet|ssh: connect|permission denied|kex_exchange|xid|off the bus|signal|sigsegv|sigabrt|exitcode"
    "|terminate called|primary job|duplicate gpu|ncclinvalidusage|undeliverable|shareablehandle"
    "|name resolution|ecc|sxid|system not|notready|not_ready|fabric manager|does not answer|host engine"
    "|row remapp|nvvs|nrt|neuron|ccom warn|sigbus|core dumped|double free|smashing|free()|aborted"
    "|mpi_abort|rendezvous|c10d|tcpstore|got 0 bytes|mpi_err|prted|looks like|in the image|due to|evicted"
    "|low on resource|backoff|no valid efa|exit code|exit status|exited with|oom-kill|watchdog"
    "|waiting for key|nvlink|nvls|no such file|not found|efa provider|could not find|a call to fork|ucx"
    "|unable to complete|specified host|job step|does not know how"
    "|storagefull|no module named|symbol lookup|no cuda gpus|only supported with|munmap_chunk"
)
WORDS = tuple(word.encode() for word in _WORDS.split("|"))
"""Texts in lower case, at least one of which is in every line that matches a failure."""


def name_of(text: str) -> str | None:
    """Return the name of the failure that a line shows, or None."""
    return next((name for name, known in KNOWN.items() if known.fits(text)), None)
