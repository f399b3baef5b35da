"""Common parts of the pods of training jobs: launcher, checkpoints, and termination grace period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hyperpod_cdk.catalog import training
from hyperpod_cdk.workloads.manifests.pods import free_name, pod_spec, template
from hyperpod_cdk.workloads.plan import Plan

_AGENT_SECONDS = 30
"""Additional time for the agent to stop after its program, before Kubernetes kills both."""

_LOG_VOLUME = "checkpoint-logs"


def processes(plan: Plan) -> int:
    """Return the number of processes per pod: one for each GPU, partition or logical NeuronCore."""
    kinds = {row.accelerator_kind for row in plan.shape.rows}
    return training.processes(kinds.pop() if len(kinds) == 1 else None, plan.accelerators)


def training_template(
    plan: Plan,
    *,
    container: str,
    launcher: Sequence[str],
    variables: Mapping[str, str] = MappingProxyType({}),
    ports: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the pod template of a training job; ``launcher`` precedes its command unless the job disables it."""
    job = plan.job
    spec = pod_spec(
        plan,
        container=container,
        command=[*(launcher if job.launcher else ()), *job.command],
        environment={**variables, **training_variables(plan)},
        ports=ports,
    )
    spec["terminationGracePeriodSeconds"] = job.restart.shutdown_seconds + _AGENT_SECONDS
    if is_tiered(plan):
        _mount_checkpoint_logs(spec, of_node=plan.may_use_the_node)
        account = service_account(plan)
        if account is not None:
            spec["serviceAccountName"] = account
    return template(plan, spec)


def is_tiered(plan: Plan) -> bool:
    """Return whether the job keeps checkpoints in the memory of the nodes."""
    return plan.job.checkpoints is not None and plan.job.checkpoints.tiered


def service_account(plan: Plan) -> str | None:
    """Return the service account of the pods: the job's or, for tiered checkpoints, the only one with permissions.

    None means the default service account of the namespace.
    """
    section = plan.environment.hyperpod.tiered_checkpointing
    if plan.job.service_account is not None or section is None or not is_tiered(plan):
        return plan.job.service_account
    names = {account.name for account in section.service_accounts if account.namespace == plan.namespace}
    return names.pop() if len(names) == 1 else None


def training_variables(plan: Plan) -> dict[str, str]:
    """Return the variables for elastic training and the location of checkpoints."""
    variables = {} if plan.job.elastic is None else training.elastic_variables()
    checkpoints = plan.job.checkpoints
    if checkpoints is None:
        return variables
    if checkpoints.path is not None:
        variables[training.CHECKPOINT_PATH_VARIABLE] = checkpoints.path
    if checkpoints.s3_uri is not None:
        # the file also accepts only a bucket's name, and the library appends a slash to the address
        bucket = checkpoints.s3_uri.removeprefix("s3://").rstrip("/")
        variables[training.CHECKPOINT_S3_VARIABLE] = f"s3://{bucket}"
    if checkpoints.tiered:
        # the memory for checkpoints is shared by all namespaces of the cluster
        variables |= dict.fromkeys(training.CHECKPOINT_NAMESPACE_VARIABLES, f"{plan.namespace}-{plan.name}")
    return variables


def _mount_checkpoint_logs(spec: dict[str, Any], *, of_node: bool) -> None:
    """Mount the log folder of tiered checkpointing: on the node if pods can mount its folders, or in the pod."""
    container = spec["containers"][0]
    mounts, volumes = container["volumeMounts"], spec["volumes"]
    if any(mount["mountPath"] == training.CHECKPOINT_LOGS for mount in mounts):
        return
    name = free_name(_LOG_VOLUME, [volume["name"] for volume in volumes])
    mounts.append({"name": name, "mountPath": training.CHECKPOINT_LOGS})
    folder = {"hostPath": {"path": training.CHECKPOINT_HOST_LOGS, "type": "DirectoryOrCreate"}}
    volumes.append({"name": name, **(folder if of_node else {"emptyDir": {}})})
