"""The test of the EFA interfaces of every node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.workloads.manifests.node_jobs import efa_info
from tests.workloads.groups import planned
from tests.workloads.schemas import check
from tests.workloads.scripts import as_kubernetes_hands_on, run, script_of


def job_of(types: Any = "ml.p5.48xlarge", **fields: Any) -> dict[str, Any]:
    (manifest,) = efa_info(planned(types, "efa-info", **fields))
    check(manifest)
    return manifest


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return spec


def test_a_pod_looks_at_each_node_and_none_stops_another() -> None:
    manifest = job_of()
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "Job")
    assert {key: value for key, value in manifest["spec"].items() if key != "template"} == {
        "completionMode": "Indexed",
        "completions": 4,
        "parallelism": 4,
        "backoffLimitPerIndex": 0,
    }
    assert pod_of(manifest)["restartPolicy"] == "Never"
    assert "podAntiAffinity" in pod_of(manifest)["affinity"]


def test_it_takes_the_interfaces_and_leaves_the_gpus() -> None:
    container = pod_of(job_of())["containers"][0]
    assert container["resources"] == {
        "requests": {"cpu": 1, "memory": "2Gi", "vpc.amazonaws.com/efa": 32},
        "limits": {"vpc.amazonaws.com/efa": 32},
    }
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
    names = [entry["name"] for entry in pod_of(job_of("ml.trn1.32xlarge"))["containers"][0]["env"]]
    assert "NVIDIA_VISIBLE_DEVICES" not in names


def test_it_waits_in_the_team_s_queue() -> None:
    manifest = job_of("ml.g5.12xlarge", team="research")
    queue = "hyperpod-ns-research-localqueue"
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queue
    assert manifest["spec"]["template"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queue


@pytest.mark.parametrize(("interfaces", "code"), [(32, 0), (33, 0), (31, 1), (0, 1)])
def test_a_node_with_too_few_interfaces_fails(tmp_path: Path, interfaces: int, code: int) -> None:
    ran = run(script_of(pod_of(job_of())), tmp_path, variables={"INTERFACES": str(interfaces)})
    assert ran.code == code
    line, end = ran.lines
    assert end == f"# hyperpod-cdk: exit={code}"
    assert line.startswith(
        f"# hyperpod-cdk: efa-info node=hyperpod-i-1 instance_type=ml.p5.48xlarge interfaces={interfaces} expected=32"
        " nodes=4 memlock="
    )
    assert ran.errors.count("provider: efa") == interfaces


def test_without_the_program_there_is_no_interface(tmp_path: Path) -> None:
    ran = run(script_of(pod_of(job_of())), tmp_path, without=("fi_info",))
    assert ran.code == 1
    assert "interfaces=0 expected=32" in ran.lines[0]


def test_kubernetes_hands_the_script_on_unchanged() -> None:
    pod = pod_of(job_of(("ml.g6.12xlarge", "ml.g6.24xlarge")))
    text = script_of(pod)
    assert as_kubernetes_hands_on(text, {entry["name"] for entry in pod["containers"][0]["env"]}) == text
    assert "instance_type=ml.g6.12xlarge,ml.g6.24xlarge\n" in text
