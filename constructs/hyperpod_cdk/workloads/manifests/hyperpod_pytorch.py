"""A HyperPodPyTorchJob for the HyperPod training operator: elastic, with log rules and process-level restarts."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.catalog import training
from hyperpod_cdk.workloads.job import Elastic, LogRule, Restart
from hyperpod_cdk.workloads.manifests.pods import metadata
from hyperpod_cdk.workloads.manifests.training_pods import processes, training_template
from hyperpod_cdk.workloads.plan import Plan


def hyperpod_pytorch_job(plan: Plan) -> list[dict[str, Any]]:
    """Return the manifest of a job of kind ``hyperpod-pytorch``."""
    job = plan.job
    spec: dict[str, Any] = {"nprocPerNode": str(processes(plan)), "runPolicy": _run_policy(plan)}
    replicas: dict[str, Any] = {"name": training.HYPERPOD_REPLICAS, "replicas": plan.nodes}
    if job.elastic is not None:
        spec["elasticPolicy"] = _elastic_policy(job.elastic)
        replicas["maxReplicas"] = job.elastic.max_nodes
    if job.restart.spares:
        replicas["spares"] = job.restart.spares
    replicas["template"] = training_template(
        plan,
        container=training.HYPERPOD_CONTAINER,
        launcher=launcher(plan),
        ports=(training.AGENT_PORT,),
    )
    spec["replicaSpecs"] = [replicas]
    return [
        {
            "apiVersion": training.HYPERPOD_API,
            "kind": training.HYPERPOD_KIND,
            "metadata": metadata(plan),
            "spec": spec,
        }
    ]


def launcher(plan: Plan) -> list[str]:
    """Return hyperpodrun and its options.

    The number of nodes is a single number even for elastic jobs: the agent refuses a range, and the operator passes the
    size at every start. Output is also written to files, because the log rules read those.
    """
    return [
        training.LAUNCHER,
        f"--nnodes={plan.nodes}",
        f"--nproc-per-node={processes(plan)}",
        "--tee=3",
        f"--log-dir={training.LOG_DIRECTORY}",
        "--shutdown-signal=SIGTERM",
        f"--shutdown-timeout={plan.job.restart.shutdown_seconds}",
    ]


def _run_policy(plan: Plan) -> dict[str, Any]:
    restart = plan.job.restart
    policy: dict[str, Any] = {
        "cleanPodPolicy": training.HYPERPOD_CLEAN_PODS,
        "jobMaxRetryCount": restart.max_retries,
    }
    limits = _restart_policy(restart, plan.job.elastic)
    if limits:
        policy["restartPolicy"] = limits
    if plan.job.log_monitoring:
        policy["logMonitoringConfiguration"] = [_log_rule(rule) for rule in plan.job.log_monitoring]
    return policy


def _restart_policy(restart: Restart, elastic: Elastic | None) -> dict[str, int]:
    limits = _stated(
        numRestartBeforeFullJobRestart=restart.before_full,
        maxFullJobRestarts=restart.max_full,
        scaleUpSnoozeTimeInSeconds=None if elastic is None else elastic.snooze_seconds,
    )
    if not limits and restart.evaluation_seconds is None:
        return {}
    return {"evalPeriodSeconds": restart.evaluation_seconds or training.WINDOW_SECONDS, **limits}


def _elastic_policy(elastic: Elastic) -> dict[str, Any]:
    sizes: dict[str, Any] = (
        {"replicaDiscreteValues": list(elastic.values)}
        if elastic.values
        else {"replicaIncrementStep": elastic.increment or 1}
    )
    return {
        "minReplicas": elastic.min_nodes,
        "maxReplicas": elastic.max_nodes,
        **sizes,
        **_stated(
            gracefulShutdownTimeoutInSeconds=elastic.graceful_shutdown_seconds,
            scalingTimeoutInSeconds=elastic.scaling_seconds,
            faultyScaleDownTimeoutInSeconds=elastic.faulty_scale_down_seconds,
        ),
    }


def _log_rule(rule: LogRule) -> dict[str, Any]:
    texts = {"name": rule.name, "logPattern": rule.pattern}
    if rule.stop_pattern is not None:
        texts["stopPattern"] = rule.stop_pattern
    return {
        **texts,
        **({"faultOnMatch": True} if rule.fault_on_match else {}),
        **_stated(
            expectedStartCutOffInSeconds=rule.expected_start_seconds,
            expectedRecurringFrequencyInSeconds=rule.expected_every_seconds,
            metricThreshold=rule.metric_limit,
        ),
        **({} if rule.operator is None else {"operator": rule.operator}),
        **_stated(metricEvaluationDataPoints=rule.evaluations),
    }


def _stated(**numbers: int | None) -> dict[str, int]:
    return {name: number for name, number in numbers.items() if number is not None}
