"""What a pod says of the way to its file systems before it does its work."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.manifests.render import manifests_of
from hyperpod_cdk.workloads.report import judge, parse
from tests.workloads.groups import ZONE, environment, planned
from tests.workloads.scripts import as_kubernetes_hands_on

CLAIM = {"namespaces": ["hyperpod-ns-research"], "name": "fast"}
SYSTEM = {"name": "fast", "availability_zone_id": ZONE, "capacity_gib": 19200, "efa": True, "claim": CLAIM}
VOLUMES = [{"claim": "fast", "mount_path": "/data"}]


def with_system(instance_type: str, **changes: Any) -> Environment:
    about = environment(instance_type).model_dump(mode="json", exclude_unset=True)
    return Environment.model_validate({**about, "storage": {"lustre": [{**SYSTEM, **changes}]}})


def command_of(about: Environment, **fields: Any) -> list[str]:
    job = {
        "name": "a",
        "image": "i:1",
        "team": "research",
        "volumes": VOLUMES,
        "command": ["train", "--fast"],
        **fields,
    }
    (manifest,) = manifests_of(planned(about, "pytorch", **job))
    pod = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    command: list[str] = pod["containers"][0]["command"]
    return command


def test_a_pod_that_mounts_a_file_system_with_efa_looks_before_it_begins() -> None:
    command = command_of(with_system("ml.p5.48xlarge"))

    assert (command[:2], command[3:]) == (
        ["/bin/sh", "-c"],
        ["sh", "torchrun", "--nproc-per-node=8", "train", "--fast"],
    )
    assert as_kubernetes_hands_on(command[2], {"HOSTNAME"}) == command[2]


@pytest.mark.parametrize(
    ("instance_type", "system", "job"),
    [
        ("ml.p5.48xlarge", {"efa": False}, {}),
        ("ml.p5.48xlarge", {"availability_zone_id": "use1-az4"}, {}),
        ("ml.p5.48xlarge", {"claim": {**CLAIM, "namespaces": ["other"]}}, {}),
        ("ml.p5.48xlarge", {}, {"volumes": []}),
        ("ml.p5.48xlarge", {}, {"volumes": [{"claim": "other", "mount_path": "/data"}]}),
        # no client of FSx over EFA
        ("ml.p4d.24xlarge", {}, {}),
    ],
)
def test_others_begin_at_once(instance_type: str, system: dict[str, Any], job: dict[str, Any]) -> None:
    assert command_of(with_system(instance_type, **system), **job)[0] == "torchrun"


def test_the_launcher_of_an_mpi_job_only_starts_others() -> None:
    (manifest,) = manifests_of(planned(with_system("ml.p5.48xlarge"), "nccl", team="research", volumes=VOLUMES))
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    commands = {name: each["template"]["spec"]["containers"][0]["command"] for name, each in replicas.items()}

    assert commands["Launcher"][0] == "/bin/bash"
    assert commands["Worker"][3:6] == ["sh", "/bin/bash", "-c"]


@pytest.mark.parametrize(
    ("modules", "said", "verdict"),
    [
        ({}, "unknown", ("unknown", "pods cannot see whether Lustre uses EFA on node-1")),
        ({"lustre/version": "2.15.6"}, "tcp", ("fail", "Lustre over TCP instead of EFA on node-1")),
        (
            {"lustre/version": "2.15.6", "kefalnd/refcnt": "0"},
            "tcp",
            ("fail", "Lustre over TCP instead of EFA on node-1"),
        ),
        ({"lustre/version": "2.15.6", "kefalnd/refcnt": "9"}, "efa", ("pass", "Lustre over EFA")),
    ],
)
def test_what_is_printed_is_what_the_report_reads(
    tmp_path: Path, modules: dict[str, str], said: str, verdict: tuple[str, str]
) -> None:
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    shell, option, script, *rest = command_of(with_system("ml.p5.48xlarge"), launcher=False)
    assert rest == ["sh", "train", "--fast"]

    done = subprocess.run(
        [shell, option, script.replace("/sys/module", str(tmp_path)), "sh", "/bin/echo", "a  b"],
        env={"HOSTNAME": "node-1"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [f"# hyperpod-cdk: lustre={said} of=node-1", "a  b"]
    (check,) = judge(parse(done.stdout.splitlines())).checks
    assert (check.name, str(check.verdict), check.says) == ("lustre", *verdict)
