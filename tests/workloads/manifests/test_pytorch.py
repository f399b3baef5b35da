"""PyTorchJobs: the two of the blog, and what HyperPod and the operator of its chart want."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.workloads.manifests.manifest_yaml import to_yaml
from hyperpod_cdk.workloads.manifests.pytorch import pytorch_job
from hyperpod_cdk.workloads.plan import Plan
from tests.workloads.schemas import check
from tests.workloads.training_jobs import container, example, planned, variables

ADDED_BY_HAND = (
    ("namespace: hyperpod-ns-{team}", 1),
    ("kueue.x-k8s.io/queue-name: hyperpod-ns-{team}-localqueue", 2),
)
"""The lines that both teams had to add to one manifest, and how often; two more sets went to an etcd beside it."""


def job_of(plan: Plan) -> dict[str, Any]:
    (job,) = pytorch_job(plan)
    check(job)
    return job


def worker_of(plan: Plan) -> dict[str, Any]:
    worker: dict[str, Any] = job_of(plan)["spec"]["pytorchReplicaSpecs"]["Worker"]
    return worker


@pytest.mark.parametrize("team", ["john", "smith"])
def test_a_team_has_to_add_nothing_by_hand(team: str) -> None:
    plan = example(f"{team}-fsdp")
    lines = [line.strip() for line in to_yaml(pytorch_job(plan)).splitlines()]
    for line, times in ADDED_BY_HAND:
        assert lines.count(line.format(team=team)) == times
    job = job_of(plan)
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == f"hyperpod-ns-{team}-localqueue"
    assert worker["template"]["metadata"]["labels"] == job["metadata"]["labels"]
    assert worker["replicas"] == 2
    assert container(worker["template"])["resources"]["limits"].items() >= {
        ("nvidia.com/gpu", 4),
        ("vpc.amazonaws.com/efa", 1),
    }
    assert worker["template"]["spec"]["nodeSelector"]["node.kubernetes.io/instance-type"] == "ml.g5.12xlarge"


def test_workers_meet_without_etcd() -> None:
    (job,) = manifests = pytorch_job(example("john-fsdp"))
    assert len(manifests) == 1
    assert job["spec"]["elasticPolicy"] == {
        "minReplicas": 2,
        "maxReplicas": 2,
        "maxRestarts": 3,
        "rdzvBackend": "c10d",
        "rdzvConf": [{"key": "join_timeout", "value": "1800"}],
    }
    assert list(job["spec"]["pytorchReplicaSpecs"]) == ["Worker"]


def test_torchrun_gets_its_processes_alone() -> None:
    worker = worker_of(example("john-fsdp"))
    assert container(worker["template"])["name"] == "pytorch"
    assert container(worker["template"])["command"][:3] == ["torchrun", "--nproc-per-node=4", "/fsdp/train.py"]
    assert "PET_NPROC_PER_NODE" not in variables(worker["template"])


def test_a_command_that_starts_everything_finds_the_processes_in_its_environment() -> None:
    worker = worker_of(planned(kind="pytorch", launcher=False, command=["bash", "-c", "exec torchrun train.py"]))
    assert container(worker["template"])["command"] == ["bash", "-c", "exec torchrun train.py"]
    assert variables(worker["template"])["PET_NPROC_PER_NODE"] == "8"


def test_auto_resume() -> None:
    plan = planned(kind="pytorch", restart={"max_retries": 7})
    job = job_of(plan)
    assert job["metadata"]["annotations"] == {
        "sagemaker.amazonaws.com/enable-job-auto-resume": "true",
        "sagemaker.amazonaws.com/job-max-retry-count": "7",
    }
    assert worker_of(plan)["restartPolicy"] == "OnFailure"
    assert job["spec"]["runPolicy"] == {"cleanPodPolicy": "None"}
    assert job["spec"]["elasticPolicy"]["maxRestarts"] == 7


def test_nothing_restarts_without_retries() -> None:
    plan = planned(kind="pytorch", restart={"max_retries": 0})
    job = job_of(plan)
    assert "annotations" not in job["metadata"]
    assert worker_of(plan)["restartPolicy"] == "Never"
    assert job["spec"]["runPolicy"] == {"cleanPodPolicy": "None", "backoffLimit": 0}
    assert job["spec"]["elasticPolicy"]["maxRestarts"] == 0


@pytest.mark.parametrize(("seconds", "variable"), [(29, "29"), (30, None), (600, "600")])
def test_torchrun_waits_for_the_last_checkpoint(seconds: int, variable: str | None) -> None:
    worker = worker_of(planned(kind="pytorch", restart={"shutdown_seconds": seconds}))
    assert variables(worker["template"]).get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT") == variable
    assert worker["template"]["spec"]["terminationGracePeriodSeconds"] == seconds + 30


def test_a_job_on_trainium_runs_a_process_on_each_core() -> None:
    job = job_of(planned("examples/trainium.yaml", kind="pytorch", group="trn2"))
    assert job["spec"]["nprocPerNode"] == "64"
