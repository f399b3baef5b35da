"""Which runtime containerd uses by default, for each machine and each configuration an image may bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lifecycle_scripts.conftest import Node

HELPER = "node/hyperpod-default-runtime"
STEP = "steps/30_default_runtime.sh"
CONFIG = "/etc/containerd/config.toml"
NVIDIA_BINARY = "/usr/bin/nvidia-container-runtime"


def version_2(runtime: str, binary: str) -> str:
    return f"""version = 2
root = "/var/lib/containerd"
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "{runtime}"
discard_unpacked_layers = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{runtime}]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{runtime}.options]
BinaryName = "{binary}"
SystemdCgroup = true
"""


def version_3(runtime: str, binary: str) -> str:
    return f"""version = 3
[plugins]
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "{runtime}"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.{runtime}]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.{runtime}.options]
        BinaryName = "{binary}"
"""


def with_gpu(node: Node) -> None:
    node.pci("0000:00:1e.0", vendor="0x10de", device="0x2330", pci_class="0x030200")
    node.write(NVIDIA_BINARY, "", mode=0o755)


@pytest.mark.parametrize("config", [version_2, version_3])
def test_a_cpu_node_does_not_get_the_nvidia_runtime(node: Node, config: Callable[[str, str], str]) -> None:
    node.write(NVIDIA_BINARY, "", mode=0o755)
    node.write("/usr/sbin/runc", "", mode=0o755)
    node.write(CONFIG, config("nvidia", NVIDIA_BINARY))

    run = node.run(HELPER)

    assert (run.code, run.output) == (0, "default runtime changed from nvidia to runc\n")
    assert node.read(CONFIG) == config("runc", "/usr/sbin/runc")


@pytest.mark.parametrize("config", [version_2, version_3])
def test_a_gpu_node_gets_the_nvidia_runtime(node: Node, config: Callable[[str, str], str]) -> None:
    with_gpu(node)
    node.write("/usr/bin/runc", "", mode=0o755)
    node.write(CONFIG, config("runc", "/usr/bin/runc"))

    run = node.run(HELPER)

    assert (run.code, run.output) == (0, "default runtime changed from runc to nvidia\n")
    assert node.read(CONFIG) == config("nvidia", NVIDIA_BINARY)


@pytest.mark.parametrize(
    ("vendor", "pci_class", "runtime"),
    [
        ("0x10de", "0x030200", "nvidia"),  # H100, a 3D controller
        ("0x10de", "0x030000", "nvidia"),  # a VGA controller
        ("0x10de", "0x068000", "runc"),  # an NVSwitch alone
        ("0x1d0f", "0x088000", "runc"),  # Trainium
        ("0x1d0f", "0x030000", "runc"),  # the console's display
    ],
)
def test_knows_an_nvidia_gpu_by_its_pci_ids(node: Node, vendor: str, pci_class: str, runtime: str) -> None:
    node.pci("0000:00:1e.0", vendor=vendor, pci_class=pci_class)
    node.write(NVIDIA_BINARY, "", mode=0o755)
    node.write(CONFIG, version_2("runc" if runtime == "nvidia" else "nvidia", "runc"))

    run = node.run(HELPER)

    assert run.output.endswith(f"to {runtime}\n")


def test_a_gpu_node_without_nvidias_runtime_keeps_runc(node: Node) -> None:
    node.pci("0000:00:1e.0", vendor="0x10de", pci_class="0x030200")
    node.write(CONFIG, version_2("runc", "/usr/sbin/runc"))

    run = node.run(HELPER)

    assert run.output == "default runtime is runc already\n"


def test_uses_the_wanted_runtime_as_the_image_describes_it(node: Node) -> None:
    both = version_2("nvidia", NVIDIA_BINARY) + (
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
    )
    node.write(CONFIG, both)

    node.run(HELPER)

    expected = both.replace('default_runtime_name = "nvidia"', 'default_runtime_name = "runc"')
    assert node.read(CONFIG) == expected


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (version_2("kata", "/usr/bin/kata"), "default runtime is 'kata', left alone\n"),
        ("version = 2\n", "default runtime is '', left alone\n"),
        (version_2("runc", "/usr/sbin/runc"), "default runtime is runc already\n"),
    ],
)
def test_leaves_other_configurations_alone(node: Node, config: str, said: str) -> None:
    node.write(CONFIG, config)

    run = node.run(HELPER)

    assert (run.code, run.output) == (0, said)
    assert node.read(CONFIG) == config


def test_waits_for_the_configuration_to_be_written(node: Node) -> None:
    run = node.run(HELPER)

    assert (run.code, run.output) == (0, f"no {CONFIG} yet, nothing to set\n")


def test_restarts_containerd_only_after_a_change(node: Node) -> None:
    node.write(CONFIG, version_2("nvidia", NVIDIA_BINARY))

    node.run(STEP)
    assert node.calls("systemctl") == ["systemctl daemon-reload", "systemctl try-restart containerd.service"]

    node.forget_calls()
    node.run(STEP)
    assert node.calls("systemctl") == ["systemctl daemon-reload"]


def test_is_run_before_each_start_of_containerd_and_never_keeps_it_from_starting(node: Node) -> None:
    node.run(STEP)

    unit = node.read("/etc/systemd/system/containerd.service.d/hyperpod-default-runtime.conf").splitlines()
    assert unit[0] == "[Service]"
    assert unit[-1] == "ExecStartPre=-/usr/local/sbin/hyperpod-default-runtime"
