"""Pods of every kind of job against Kubernetes' Pod Security Standards."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.workloads.manifests.render import manifests_of
from tests.support.tables import row_by_row
from tests.workloads.groups import environment, planned
from tests.workloads.manifests.pod_security import baseline, pods, restricted

TIERED = {"tiered_checkpointing": {"memory_percent": 20}}
JOBS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nccl": ("ml.p5.48xlarge", "nccl", {}),
    "nccl in pairs": ("ml.p5.48xlarge", "nccl", {"measure": {"pairs": True}}),
    "nccl over TCP": ("ml.g5.12xlarge", "nccl", {}),
    "efa-info": ("ml.p5.48xlarge", "efa-info", {}),
    "dcgm": ("ml.p5.48xlarge", "dcgm", {}),
    "neuron-info": ("ml.trn1.32xlarge", "neuron-info", {}),
    "nccom": ("ml.trn1.32xlarge", "nccom", {}),
    "pytorch": ("ml.p5.48xlarge", "pytorch", {"name": "llm", "image": "i:1"}),
    "hyperpod-pytorch": ("ml.p5.48xlarge", "hyperpod-pytorch", {"name": "llm", "image": "i:1"}),
    "tiered": ("ml.p5.48xlarge", "hyperpod-pytorch", {"name": "llm", "image": "i:1", "checkpoints": {"tiered": True}}),
    "claims": (
        "ml.p5.48xlarge",
        "pytorch",
        {"name": "llm", "image": "i:1", "volumes": [{"claim": "scratch", "mount_path": "/data"}]},
    ),
}


def pods_of(job: str, *, pod_security: str = "baseline") -> list[Any]:
    instance_type, kind, fields = JOBS[job]
    about = environment(instance_type, hyperpod=TIERED, pod_security=pod_security)
    made: Any = planned(about, kind, team="research", **fields)  # type: ignore[arg-type]  # a table of words
    found = list(pods(list(manifests_of(made))))
    assert found
    return found


@row_by_row("job", JOBS)
def test_baseline_admits_every_kind_of_job(job: str) -> None:
    assert [baseline(pod) for pod in pods_of(job)] == [[]] * len(pods_of(job))


@row_by_row("job", JOBS)
def test_restricted_admits_none_so_that_the_rules_refuse_it(job: str) -> None:
    assert all("root" in restricted(pod) for pod in pods_of(job))


@pytest.mark.parametrize(
    ("job", "beyond"),
    [("nccl", ["capability IPC_LOCK"]), ("tiered", ["hostPath checkpoint-logs", "capability IPC_LOCK"])],
)
def test_a_privileged_team_uses_more_of_its_nodes(job: str, beyond: list[str]) -> None:
    found = [baseline(pod) for pod in pods_of(job, pod_security="privileged")]
    assert beyond in found


@row_by_row(
    "pod, said",
    [
        ({"hostNetwork": True}, ["hostNetwork"]),
        ({"hostPID": True, "hostIPC": True}, ["hostPID", "hostIPC"]),
        ({"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, ["hostPath root"]),
        ({"containers": [{"securityContext": {"privileged": True}}]}, ["privileged"]),
        ({"initContainers": [{"securityContext": {"privileged": True}}]}, ["privileged"]),
        (
            {"containers": [{"securityContext": {"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}}]},
            ["capability SYS_ADMIN"],
        ),
        ({"containers": [{"ports": [{"containerPort": 1, "hostPort": 22}]}]}, ["hostPort 22"]),
        ({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}, ["sysctl kernel.msgmax"]),
        ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, ["seccompProfile Unconfined"]),
    ],
)
def test_the_judge_knows_what_baseline_forbids(pod: dict[str, Any], said: list[str]) -> None:
    assert baseline({"containers": [{}], **pod}) == said
