"""The whole run on a new node: order, log, exit codes, and a second run that changes nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lifecycle_scripts.conftest import Node

STEPS = ["10_wait_for_data_disk", "20_move_container_data", "30_default_runtime", "40_load_modules"]
GPU_CONFIG = """version = 3
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "nvidia"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""


@pytest.fixture
def ready(node: Node) -> Node:
    """A GPU node as HyperPod hands it over: disk mounted, daemons running, EFA and Lustre in the image."""
    node.mount("/opt/sagemaker")
    node.start("containerd.service", "kubelet.service")
    node.pci("0000:00:01.0", vendor="0x10de", pci_class="0x030200")
    node.pci("0000:00:02.0", vendor="0x1d0f", device="0xefa2")
    node.kernel_modules("efa", "lnet", "lustre")
    node.write("/usr/bin/nvidia-container-runtime", "", mode=0o755)
    node.write("/etc/containerd/config.toml", GPU_CONFIG)
    return node


def _steps_begun(output: str) -> list[str]:
    return re.findall(r"\[on_create\] (\w+): start", output)


def test_runs_every_step_in_order_and_logs_it(ready: Node) -> None:
    run = ready.run("on_create.sh")

    assert run.code == 0, run.output
    assert _steps_begun(run.output) == STEPS
    assert ready.read("/var/log/provision/provisioning.log") == run.output
    assert run.output.splitlines()[-1].endswith("[on_create] done")


def test_leaves_a_gpu_node_as_it_should_be(ready: Node) -> None:
    ready.run("on_create.sh")

    assert ready.mounts() == ["/opt/sagemaker", "/var/lib/containerd", "/var/lib/kubelet"]
    assert ready.read("/opt/sagemaker/hyperpod/containerd/io.containerd.content/pause") == "layer"
    assert ready.read("/opt/sagemaker/hyperpod/kubelet/config.json") == "{}"
    assert ready.active() == ["containerd.service", "kubelet.service"]
    assert ready.read("/etc/containerd/config.toml") == GPU_CONFIG
    assert ready.calls("modprobe") == ["modprobe efa", "modprobe lnet", "modprobe lustre"]
    assert ready.read("/etc/modules-load.d/hyperpod.conf") == "efa\nlnet\nlustre\n"


def test_a_second_run_changes_nothing(ready: Node) -> None:
    ready.run("on_create.sh")
    before, mounts = ready.files(), ready.mounts()
    ready.forget_calls()

    run = ready.run("on_create.sh")

    assert run.code == 0, run.output
    assert ready.files() == before
    assert ready.mounts() == mounts
    assert ready.calls("mount", "cp") == []
    assert [c for c in ready.calls("systemctl") if c.split()[1] in {"stop", "restart", "try-restart"}] == []


@pytest.mark.parametrize(
    ("fails", "code", "last_step"),
    [
        ("75 mountpoint -q /opt", 75, "10_wait_for_data_disk"),
        ("5 systemctl stop kubelet.service", 5, "20_move_container_data"),
        ("28 cp -a --one-file-system /var/lib/containerd", 28, "20_move_container_data"),
        ("32 mount --bind /opt/sagemaker/hyperpod/kubelet", 32, "20_move_container_data"),
        ("4 systemctl enable", 4, "20_move_container_data"),
        ("9 modprobe lustre", 9, "40_load_modules"),
    ],
)
def test_ends_with_the_code_of_the_step_that_failed(ready: Node, fails: str, code: int, last_step: str) -> None:
    run = ready.run("on_create.sh", FAKE_FAIL=fails)

    assert run.code == code
    assert run.output.splitlines()[-1].endswith(f"[on_create] {last_step}: failed with exit code {code}")
    assert _steps_begun(run.output) == STEPS[: STEPS.index(last_step) + 1]
    assert ready.read("/var/log/provision/provisioning.log") == run.output


def test_ends_with_the_code_of_a_runtime_that_does_not_restart(ready: Node) -> None:
    shutil.rmtree(ready.root / "sys/bus/pci/devices/0000:00:01.0")

    run = ready.run("on_create.sh", FAKE_FAIL="3 systemctl try-restart containerd.service")

    assert run.code == 3
    assert run.output.splitlines()[-1].endswith("30_default_runtime: failed with exit code 3")


def test_a_run_that_failed_can_be_run_again(ready: Node) -> None:
    ready.run("on_create.sh", FAKE_FAIL="32 mount --bind /opt/sagemaker/hyperpod/kubelet")

    run = ready.run("on_create.sh")

    assert run.code == 0, run.output
    assert ready.mounts() == ["/opt/sagemaker", "/var/lib/containerd", "/var/lib/kubelet"]
    assert ready.read("/opt/sagemaker/hyperpod/containerd/io.containerd.content/pause") == "layer"


@pytest.mark.parametrize(("grace", "slept"), [({}, "sleep 60"), ({"HYPERPOD_LOG_GRACE_SECONDS": "7"}, "sleep 7")])
def test_a_failed_run_waits_until_its_log_is_shipped(ready: Node, grace: dict[str, str], slept: str) -> None:
    ready.run("on_create.sh", FAKE_FAIL="9 modprobe", **grace)

    assert ready.calls("sync", "sleep") == ["sync ", slept]


def test_fails_when_only_on_create_was_uploaded(node: Node, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(node.scripts / "on_create.sh", alone)

    run = node.run(str(alone / "on_create.sh"))

    assert run.code == 66
    assert run.output.endswith(f"no script in {alone}/steps; upload the whole folder, not on_create.sh alone\n")


def test_runs_steps_that_lost_their_executable_bit_in_s3(ready: Node, tmp_path: Path) -> None:
    downloaded = tmp_path / "downloaded"
    shutil.copytree(ready.scripts, downloaded)
    for path in downloaded.rglob("*"):
        if path.is_file():
            path.chmod(0o644)

    run = ready.run(str(downloaded / "on_create.sh"))

    assert run.code == 0, run.output


def test_the_script_that_does_nothing_does_nothing(node: Node) -> None:
    before = node.files()

    run = node.run("on_create_noop.sh")

    assert (run.code, run.output) == (0, "[on_create_noop] nothing to do\n")
    assert node.files() == before
    assert node.calls("systemctl", "mount", "modprobe") == []
