"""Training jobs: what the two operators, their launchers and the checkpointing library read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from hyperpod_cdk.catalog import _data

_DATA = _data.load("training")
_KUBEFLOW: Mapping[str, Any] = _DATA["kubeflow"]
_HYPERPOD: Mapping[str, Any] = _DATA["hyperpod"]
_CHECKPOINTS: Mapping[str, Any] = _DATA["checkpoints"]
_HYP: Mapping[str, Any] = _DATA["hyp"]

AS_OF: date = _data.as_of("training")

KUBEFLOW_API: str = _KUBEFLOW["api_version"]
KUBEFLOW_KIND: str = _KUBEFLOW["kind"]
KUBEFLOW_CONTAINER: str = _KUBEFLOW["container"]
"""The container that the operator configures; it refuses a job without a container of this name."""

KUBEFLOW_CLEAN_PODS: str = _KUBEFLOW["clean_pods"]
"""Pods stay when the job ends, which is when the first worker ends: others may still write their last checkpoint."""

RENDEZVOUS: str = _KUBEFLOW["rendezvous"]
"""How torchrun's workers find each other: through the first worker, without an additional service."""

PROCESSES_VARIABLE: str = _KUBEFLOW["processes_variable"]
"""Where torchrun reads its number of processes, which the chart's operator sets only for jobs with a master."""

WAITING_SECONDS: int = _DATA["waiting"]["seconds"]
"""How long workers wait for each other: longer than the replacement of a node takes."""

RESTART_POLICY: str = _DATA["auto_resume"]["restart_policy"]
"""The restartPolicy that a replica must have for auto-resume."""

HYPERPOD_API: str = _HYPERPOD["api_version"]
HYPERPOD_KIND: str = _HYPERPOD["kind"]
HYPERPOD_REPLICAS: str = _HYPERPOD["replicas"]
"""The name of the only set of replicas; pods are named <job>-<this>-<index>."""

HYPERPOD_CONTAINER: str = _HYPERPOD["container"]
HYPERPOD_CLEAN_PODS: str = _HYPERPOD["clean_pods"]
LAUNCHER: str = _HYPERPOD["launcher"]
AGENT_PORT: int = _HYPERPOD["port"]
"""Where the training operator reaches the elastic agent of a pod."""

LOG_DIRECTORY: str = _HYPERPOD["log_directory"]
"""Where the elastic agent keeps the output of workers, which rules over the log read."""

WINDOW_SECONDS: int = _HYPERPOD["window_seconds"]
"""The window in which restarts are counted, if a limit needs one and the file has none."""

CHECKPOINT_PATH_VARIABLE: str = _CHECKPOINTS["path_variable"]
CHECKPOINT_S3_VARIABLE: str = _CHECKPOINTS["s3_variable"]
CHECKPOINT_NAMESPACE_VARIABLES: tuple[str, ...] = (_CHECKPOINTS["namespace_variable"], _CHECKPOINTS["job_variable"])
"""Where programs find the namespace for amzn-sagemaker-checkpointing, unique in the cluster: ours and AWS's sample."""

CHECKPOINT_LOGS: str = _CHECKPOINTS["log_directory"]
"""Where the checkpointing library writes its log in the container."""

CHECKPOINT_HOST_LOGS: str = _CHECKPOINTS["host_log_directory"]
"""Where AWS expects that log on the node."""

HYP_COMMAND: str = _HYP["command"]
HYP_VERSION: str = _HYP["version"]
HYP_TOPOLOGIES: tuple[str, ...] = tuple(_HYP["topologies"])
"""The node labels that hyp accepts as a topology."""


@dataclass(frozen=True, kw_only=True)
class HypParameter:
    """An option of ``hyp create hyp-pytorch-job``, the keys of a job file that say the same, where it ends up.

    ``keys`` is empty if a job file does not have it. ``manifest`` is a path into a HyperPodPyTorchJob that begins
    with ``metadata``, ``spec``, ``replicas`` (the set of replicas), ``template`` (of its pods), ``pod`` (their spec) or
    ``container``.
    """

    option: str
    keys: tuple[str, ...]
    manifest: tuple[str, ...]
    note: str = ""


HYP_PARAMETERS: tuple[HypParameter, ...] = tuple(
    HypParameter(
        option=row["option"], keys=tuple(row["keys"]), manifest=tuple(row["manifest"]), note=row.get("note", "")
    )
    for row in _HYP["parameters"]
)
"""Every option that affects a manifest; ``--version`` and ``--debug`` do not."""

WITHOUT_HYP_OPTION: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
    (row["key"], tuple(row["manifest"])) for row in _HYP["without_option"]
)
"""(key of a job file, path into the manifest) of what ``hyp`` has no option for."""


def auto_resume(retries: int) -> dict[str, str]:
    """Return the annotations with which HyperPod restarts a PyTorchJob ``retries`` times."""
    rule = _DATA["auto_resume"]
    return {rule["enabled"]: "true", rule["retries"]: str(retries)}


def shutdown_variables(seconds: int) -> dict[str, str]:
    """Return what makes torchrun wait ``seconds`` between SIGTERM and SIGKILL; nothing if it waits as long by
    default."""
    rule = _DATA["shutdown"]
    return {} if seconds == rule["seconds"] else {rule["variable"]: str(seconds)}


def elastic_variables() -> dict[str, str]:
    """Return the environment variables without which a program is never notified that its job changes size."""
    return {_DATA["elastic"]["variable"]: _DATA["elastic"]["value"]}


def processes(accelerator_kind: str | None, accelerators: int) -> int:
    """Return how many processes run on ``accelerators`` of a kind: GPUs one each, Neuron one per core; else one."""
    return max(1, accelerators * int(_DATA["processes"]["per_device"].get(accelerator_kind, 1)))
