"""A PyTorchJob for Kubeflow's training operator, which HyperPod resumes after a node failure."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.catalog import training
from hyperpod_cdk.workloads.manifests.pods import metadata
from hyperpod_cdk.workloads.manifests.training_pods import processes, training_template
from hyperpod_cdk.workloads.plan import Plan


def pytorch_job(plan: Plan) -> list[dict[str, Any]]:
    """Return the manifest of a job of kind ``pytorch``.

    Workers use the first worker for rendezvous, whose address the operator sets in torchrun's environment: there is no
    master and no etcd. Without retries, neither pods nor processes restart.
    """
    retries = plan.job.restart.max_retries
    about = metadata(plan)
    if retries:
        about["annotations"] = training.auto_resume(retries)
    count = str(processes(plan))
    return [
        {
            "apiVersion": training.KUBEFLOW_API,
            "kind": training.KUBEFLOW_KIND,
            "metadata": about,
            "spec": {
                "nprocPerNode": count,
                "runPolicy": {
                    "cleanPodPolicy": training.KUBEFLOW_CLEAN_PODS,
                    # a limit would also count restarts of pods that only waited for the replacement of a node
                    **({} if retries else {"backoffLimit": 0}),
                },
                "elasticPolicy": {
                    "minReplicas": plan.nodes,
                    "maxReplicas": plan.nodes,
                    "maxRestarts": retries,
                    "rdzvBackend": training.RENDEZVOUS,
                    "rdzvConf": [{"key": "join_timeout", "value": str(training.WAITING_SECONDS)}],
                },
                "pytorchReplicaSpecs": {
                    "Worker": {
                        "replicas": plan.nodes,
                        "restartPolicy": training.RESTART_POLICY if retries else "Never",
                        "template": training_template(
                            plan,
                            container=training.KUBEFLOW_CONTAINER,
                            launcher=["torchrun", f"--nproc-per-node={count}"],
                            variables={
                                **({} if plan.job.launcher else {training.PROCESSES_VARIABLE: count}),
                                **training.shutdown_variables(plan.job.restart.shutdown_seconds),
                            },
                        ),
                    }
                },
            },
        }
    ]
