"""nccl-tests as MPI jobs: what the operator gets, and what the launcher's script does on a cluster."""

from __future__ import annotations

import re
import shlex
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.workloads.manifests.launcher import assignments
from hyperpod_cdk.workloads.manifests.mpi_jobs import ROUNDS_OF_PAIRS, largest_bytes, nccl
from hyperpod_cdk.workloads.report import parse
from tests.workloads.groups import environment, planned
from tests.workloads.schemas import check
from tests.workloads.scripts import as_kubernetes_hands_on, run, script_of

MARK = "# hyperpod-cdk: "


def job_of(types: Any = "ml.p5.48xlarge", **fields: Any) -> dict[str, Any]:
    (manifest,) = nccl(planned(types, "nccl", **fields))
    check(manifest)
    return manifest


def pods_of(manifest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    return replicas["Launcher"]["template"]["spec"], replicas["Worker"]["template"]["spec"]


def script(types: Any = "ml.p5.48xlarge", **fields: Any) -> str:
    return script_of(pods_of(job_of(types, **fields))[0])


def test_a_worker_runs_on_each_node_and_a_launcher_once_they_are_ready() -> None:
    manifest = job_of(nodes=3)
    assert manifest["apiVersion"] == "kubeflow.org/v2beta1"
    assert manifest["spec"]["slotsPerWorker"] == 8
    assert manifest["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"
    assert manifest["spec"]["runPolicy"] == {"cleanPodPolicy": "Running", "backoffLimit": 0}
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    assert (replicas["Launcher"]["replicas"], replicas["Worker"]["replicas"]) == (1, 3)
    launcher, worker = pods_of(manifest)
    assert "limits" not in launcher["containers"][0]["resources"]
    assert worker["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 8


def test_launcher_and_workers_are_in_the_same_queue() -> None:
    manifest = job_of("ml.g5.12xlarge", team="research", priority="training")
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    places = [manifest, *(replica["template"] for replica in replicas.values())]
    queue = "hyperpod-ns-research-localqueue"
    assert [place["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for place in places] == [queue] * 3
    assert [place["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] for place in places] == [
        "training-priority"
    ] * 3


def test_nccl_says_which_network_it_uses_unless_the_job_wants_otherwise() -> None:
    def debug(**fields: Any) -> set[str]:
        return {
            entry["value"]
            for pod in pods_of(job_of(**fields))
            for entry in pod["containers"][0]["env"]
            if entry["name"] == "NCCL_DEBUG"
        }

    assert debug() == {"INFO"}
    assert debug(environment={"NCCL_DEBUG": "WARN"}) == {"WARN"}


def test_a_worker_prints_its_node_and_serves_ssh() -> None:
    assert script_of(pods_of(job_of())[1]).splitlines() == [
        "mkdir -p /run/sshd",
        "printf '%s\\n' \"$HYPERPOD_CDK_NODE\" >/run/hyperpod-cdk-node",
        "exec /usr/sbin/sshd -De -o StrictModes=no",
    ]


def test_each_collective_runs_over_all_nodes_under_a_line_of_its_own(tmp_path: Path) -> None:
    measure = {"collectives": ["all_reduce", "all_gather"], "iterations": 7, "max_bytes": 1024}
    ran = run(
        script(measure=measure, environment={"MINE": "a b"}),
        tmp_path,
        variables={"LD_PRELOAD": "", "LD_LIBRARY_PATH": "/lib"},
    )
    assert ran.code == 0, ran.errors
    assert [line for line in ran.lines if line.startswith(MARK)] == [
        f"{MARK}host=w-0 node=node-of-w-0",
        f"{MARK}host=w-1 node=node-of-w-1",
        f"{MARK}collective=all_reduce nodes=2 instance_type=ml.p5.48xlarge",
        f"{MARK}collective=all_gather nodes=2 instance_type=ml.p5.48xlarge",
        f"{MARK}job exit=0",
    ]
    calls = ran.said("mpirun ")
    assert [re.search(r"/(\w+)_perf (.*)", call)[1] for call in calls] == ["all_reduce", "all_gather"]  # type: ignore[index] # a miss fails as it should
    words = calls[0].split()
    assert words[words.index("--host") + 1] == "w-0:8,w-1:8"
    assert words[words.index("-np") + 1] == "16"
    assert calls[0].endswith("/all_reduce_perf -b 8 -e 1024 -f 2 -g 1 -c 1 -w 5 -n 7")
    forwarded = {after for before, after in pairwise(words) if before == "-x"}
    assert {"PATH", "LD_LIBRARY_PATH", "FI_PROVIDER", "NCCL_DEBUG", "MINE"} <= forwarded
    assert "LD_PRELOAD" not in forwarded


def test_a_collective_that_fails_does_not_stop_the_next_and_fails_the_job(tmp_path: Path) -> None:
    ran = run(
        script(measure={"collectives": ["all_reduce", "all_gather"]}), tmp_path, variables={"BAD": "all_reduce_perf"}
    )
    assert ran.code == 1
    assert ran.lines[-3].startswith(f"{MARK}collective=all_gather")
    assert ran.lines[-1] == f"{MARK}job exit=1"
    assert ran.said(f"{MARK}exit") == [f"{MARK}exit=9"]


@pytest.mark.parametrize(
    ("missing", "code", "message"),
    [("mpirun", 127, "no mpirun in the image"), ("all_reduce_perf", 1, "no all_reduce_perf in the image")],
)
def test_an_image_without_the_programs_is_named(tmp_path: Path, missing: str, code: int, message: str) -> None:
    ran = run(script(), tmp_path, without=(missing,))
    assert (ran.code, ran.errors.strip(), ran.lines[-1]) == (code, message, f"{MARK}job exit={code}")


def test_a_worker_that_does_not_answer_is_named(tmp_path: Path) -> None:
    text = script().replace("cat /run/hyperpod-cdk-node", "silent").replace("tries=120", "tries=2")
    ran = run(text, tmp_path)
    assert (ran.code, ran.errors.strip()) == (1, "w-0 does not answer, see the log of its pod")


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_pairs_of_a_round_are_disjoint_and_no_pair_comes_twice(tmp_path: Path, count: int) -> None:
    ran = run(script(measure={"pairs": True, "max_bytes": 8}), tmp_path, hosts=count)
    assert ran.code == 0, ran.errors
    pairs = [tuple(line.removeprefix(f"{MARK}pair=").split(",")) for line in ran.said(f"{MARK}pair=")]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    in_a_round = count // 2
    for start in range(0, len(pairs), in_a_round):
        nodes = list(chain(*pairs[start : start + in_a_round]))
        assert len(set(nodes)) == len(nodes) == 2 * in_a_round
    rounds = min(ROUNDS_OF_PAIRS, count - 1 + count % 2)
    assert len(pairs) == rounds * in_a_round
    partners = {f"node-of-w-{number}": sum(f"node-of-w-{number}" in pair for pair in pairs) for number in range(count)}
    # with an odd number each sits out once
    assert set(partners.values()) <= {rounds, rounds - count % 2}


def test_output_of_pairs_that_run_at_once_stays_apart(tmp_path: Path) -> None:
    measure = {"pairs": True, "collectives": ["all_reduce", "all_gather"]}
    ran = run(script(measure=measure), tmp_path, hosts=4)
    found = [line for line in ran.lines if "host=" not in line and "job exit" not in line]
    for pair, collective, call in zip(found[::3], found[1::3], found[2::3], strict=True):
        hosts = [name.removeprefix("node-of-") for name in pair.removeprefix(f"{MARK}pair=").split(",")]
        assert collective.startswith(f"{MARK}collective=")
        assert "nodes=2 " in collective
        assert f"--host {hosts[0]}:8,{hosts[1]}:8 -np 16" in call


def test_the_report_reads_whose_output_it_is(tmp_path: Path) -> None:
    ran = run(script(measure={"pairs": True}), tmp_path, hosts=3, variables={"BAD": "w-2:8"})
    found = [(run.pair, run.marker and run.marker.collective, run.exit_code) for run in parse(ran.lines).runs]
    assert found == [
        (("node-of-w-1", "node-of-w-2"), "all_reduce", 9),
        (("node-of-w-2", "node-of-w-0"), "all_reduce", 9),
        (("node-of-w-0", "node-of-w-1"), "all_reduce", None),
    ]


def test_a_pair_that_fails_is_marked_and_the_others_are_measured(tmp_path: Path) -> None:
    ran = run(script(measure={"pairs": True}), tmp_path, hosts=4, variables={"BAD": "w-3:8"})
    assert ran.code == 1
    assert len(ran.said("mpirun")) == 6
    after_pairs = [later for line, later in zip(ran.lines, ran.lines[3:], strict=False) if "pair=" in line]
    assert len(ran.said(f"{MARK}exit=9")) == after_pairs.count(f"{MARK}exit=9") == 3


@pytest.mark.parametrize("pairs", [False, True])
def test_kubernetes_hands_the_scripts_on_unchanged(*, pairs: bool) -> None:
    for pod in pods_of(job_of(measure={"pairs": pairs})):
        text = script_of(pod)
        names = {entry["name"] for entry in pod["containers"][0]["env"]} | {"command", "printf"}
        assert as_kubernetes_hands_on(text, names) == text


@given(
    text=st.text(st.characters(exclude_characters="\x00")),
    array=st.lists(st.text(st.characters(exclude_characters="\x00"))),
)
def test_values_reach_the_shell_as_they_are(text: str, array: list[str]) -> None:
    line = assignments({"text": text, "array": array})
    name, _, rest = line.partition("=")
    first, _, second = rest.rpartition("\narray=(")
    assert name == "text"
    assert shlex.split(first) == [text]
    assert shlex.split(second.removesuffix(")\n")) == array


@pytest.mark.parametrize(
    ("instance_type", "largest"),
    [
        ("ml.g4dn.8xlarge", 4),  # 16 GiB
        ("ml.g5.12xlarge", 4),  # 24 GiB
        ("ml.p4d.24xlarge", 8),  # 40 GiB
        ("ml.p5.48xlarge", 16),  # 80 GiB
        ("ml.p6-b300.48xlarge", 16),
        (("ml.g6e.12xlarge", "ml.g5.12xlarge"), 4),  # 48 and 24 GiB
    ],
)
def test_messages_fit_the_memory_of_a_gpu(instance_type: str | tuple[str, ...], largest: int) -> None:
    assert largest_bytes(planned(instance_type, "nccl")) == largest * 2**30


def test_messages_fit_a_partition_and_are_what_the_job_says() -> None:
    cut = environment("ml.p4d.24xlarge", group={"labels": {"nvidia.com/mig.config": "all-1g.5gb"}})
    assert largest_bytes(planned(cut, "nccl")) == 2**30
    assert largest_bytes(planned("ml.g5.12xlarge", "nccl", measure={"max_bytes": 12345})) == 12345
    assert largest_bytes(planned("ml.g5.12xlarge", "nccl", measure={"min_bytes": 2**33})) == 2**33
    unknown = environment("ml.new.48xlarge")
    stated = unknown.model_dump(mode="json", exclude_unset=True)
    stated["instance_types"] = {"ml.new.48xlarge": {"vcpu": 8, "memory_gib": 64}}
    assert largest_bytes(planned(type(unknown).model_validate(stated), "nccl")) == 16 * 2**30
