"""Trainium: the devices of each node, and nccom-test between nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.workloads.manifests.neuron import nccom, neuron_info
from tests.workloads.groups import planned
from tests.workloads.schemas import check
from tests.workloads.scripts import as_kubernetes_hands_on, run, script_of

MARK = "# hyperpod-cdk: "


def info_script(instance_type: str) -> str:
    (manifest,) = neuron_info(planned(instance_type, "neuron-info"))
    check(manifest)
    return script_of(manifest["spec"]["template"]["spec"])


def scripts(instance_type: str = "ml.trn1.32xlarge", **fields: Any) -> tuple[str, str]:
    """Return the scripts of the launcher and of the workers."""
    (manifest,) = nccom(planned(instance_type, "nccom", **fields))
    check(manifest)
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    launcher, worker = (script_of(replicas[name]["template"]["spec"]) for name in ("Launcher", "Worker"))
    return launcher, worker


def test_devices_and_interfaces_are_listed(tmp_path: Path) -> None:
    ran = run(info_script("ml.trn1.32xlarge"), tmp_path, variables={"INTERFACES": "8"})
    assert ran.code == 0, ran.errors
    assert ran.lines[:2] == ["neuron-ls ", "neuron-ls --json-output"]
    assert "interfaces=8 expected=8" in ran.lines[2]


@pytest.mark.parametrize("broken", [{"DEVICES": "1", "INTERFACES": "8"}, {"INTERFACES": "7"}])
def test_a_node_without_one_of_them_fails(tmp_path: Path, broken: dict[str, str]) -> None:
    assert run(info_script("ml.trn1.32xlarge"), tmp_path, variables=broken).code == 1


@pytest.mark.parametrize(("instance_type", "ranks"), [("ml.trn1.32xlarge", 32), ("ml.trn2.48xlarge", 64)])
def test_a_rank_runs_on_each_logical_core_of_all_nodes(tmp_path: Path, instance_type: str, ranks: int) -> None:
    measure = {"collectives": ["all_reduce", "all_gather"], "max_bytes": 1024, "iterations": 9}
    launcher, _ = scripts(instance_type, nodes=2, measure=measure)
    ran = run(launcher, tmp_path)
    assert ran.code == 0, ran.errors
    flags = f"-r {2 * ranks} -N 2 -b 8 -e 1024 -f 2 -n 9 -d fp32 --non-interactive"
    hosts = "--hosts w-0 w-1 --data-collector-host 10.1.2.3"
    assert ran.lines[2:] == [
        f"{MARK}collective=all_reduce nodes=2 instance_type={instance_type}",
        f"nccom-test {flags} all_reduce {hosts}; 10.1.2.3 1",
        f"{MARK}collective=all_gather nodes=2 instance_type={instance_type}",
        f"nccom-test {flags} all_gather {hosts}; 10.1.2.3 1",
        f"{MARK}job exit=0",
    ]


def test_one_node_is_measured_where_its_devices_are(tmp_path: Path) -> None:
    launcher, _ = scripts(nodes=1)
    ran = run(launcher, tmp_path, hosts=1)
    (call,) = ran.said("ssh ")
    program = tmp_path / "bin" / "nccom-test"
    assert call.endswith(f"w-0 {program} -r 32 -N 1 -b 8 -e 4294967296 -f 2 -n 50 -d fp32 --non-interactive all_reduce")


def test_an_image_without_the_program_is_named(tmp_path: Path) -> None:
    ran = run(scripts()[0], tmp_path, without=("nccom-test",))
    assert (ran.code, ran.errors.strip()) == (127, "no nccom-test in the image")


def test_a_collective_that_fails_does_not_stop_the_next_and_fails_the_job(tmp_path: Path) -> None:
    launcher, _ = scripts(measure={"collectives": ["all_reduce", "all_gather"]})
    ran = run(launcher, tmp_path, variables={"BAD": "all_reduce"})
    assert ran.code == 1
    assert ran.said(f"{MARK}exit") == [f"{MARK}exit=9"]
    assert ran.lines[-2].startswith("nccom-test")
    assert ran.lines[-1] == f"{MARK}job exit=1"


def test_workers_keep_their_variables_for_sessions_over_ssh() -> None:
    _, worker = scripts(environment={"MINE": "1"})
    variables = worker.splitlines()[2]
    assert variables.startswith("variables=(FI_PROVIDER ")
    assert variables.endswith(" MINE)")
    assert ">>/etc/environment" in worker
    assert worker.endswith("exec /usr/sbin/sshd -De -o StrictModes=no\n")


def test_kubernetes_hands_the_scripts_on_unchanged() -> None:
    for text in (*scripts(), info_script("ml.trn1.32xlarge")):
        assert as_kubernetes_hands_on(text, {"HYPERPOD_CDK_NODE", "name"}) == text
