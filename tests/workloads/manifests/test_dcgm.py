"""DCGM's diagnostics on every node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.workloads.manifests.dcgm import dcgm
from tests.workloads.groups import planned
from tests.workloads.schemas import check
from tests.workloads.scripts import as_kubernetes_hands_on, run, script_of


def pod_of(**fields: Any) -> dict[str, Any]:
    (manifest,) = dcgm(planned("ml.p5.48xlarge", "dcgm", **fields))
    check(manifest)
    spec: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return spec


def test_it_takes_all_gpus_of_a_node_so_that_nothing_else_runs_on_them() -> None:
    (container,) = pod_of()["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert [entry["name"] for entry in container["env"]] == ["HYPERPOD_CDK_NODE"]


@pytest.mark.parametrize("level", [1, 4])
@pytest.mark.parametrize("code", [0, 226])
def test_the_diagnosis_and_its_code_are_passed_on(tmp_path: Path, level: int, code: int) -> None:
    ran = run(script_of(pod_of(measure={"diagnostic_level": level})), tmp_path, variables={"DIAGNOSIS": str(code)})
    assert ran.code == code
    assert ran.lines == [
        f"# hyperpod-cdk: dcgm node=hyperpod-i-1 instance_type=ml.p5.48xlarge level={level} nodes=4",
        "{}",
        f"# hyperpod-cdk: exit={code}",
    ]


def test_an_engine_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    ran = run(script_of(pod_of()), tmp_path, variables={"ENGINE": "1"})
    assert ran.code == 1
    assert ran.errors.splitlines() == ["started", "nv-hostengine does not answer"]


def test_kubernetes_hands_the_script_on_unchanged() -> None:
    text = script_of(pod_of())
    assert as_kubernetes_hands_on(text, {"HYPERPOD_CDK_NODE"}) == text
