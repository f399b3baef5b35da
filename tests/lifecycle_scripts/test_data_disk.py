"""Where containerd's and kubelet's data go, now and after a reboot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lifecycle_scripts.conftest import Node

HELPER = "node/hyperpod-data-disk"
MOVE = "steps/20_move_container_data.sh"
BINDS = [
    "mount --bind /opt/sagemaker/hyperpod/containerd /var/lib/containerd",
    "mount --bind /opt/sagemaker/hyperpod/kubelet /var/lib/kubelet",
]


@pytest.mark.parametrize(
    ("mounted", "disk"),
    [
        (["/opt/sagemaker"], "/opt/sagemaker"),
        (["/opt/sagemaker", "/opt/dlami/nvme"], "/opt/sagemaker"),
        (["/opt/dlami/nvme"], "/opt/dlami/nvme"),
    ],
)
def test_takes_the_ebs_volume_before_the_nvme_disks(node: Node, mounted: list[str], disk: str) -> None:
    node.mount(*mounted)

    run = node.run(HELPER, "wait")

    assert (run.code, run.output) == (0, f"data disk: {disk}\n")


def test_waits_for_the_ebs_volume_a_while_though_nvme_is_there(node: Node) -> None:
    node.mount("/opt/dlami/nvme")

    run = node.run(HELPER, "wait", HYPERPOD_DISK_PREFER_SECONDS="600", HYPERPOD_DISK_TIMEOUT_SECONDS="0")

    assert run.code == 75


def test_says_that_there_is_no_disk(node: Node) -> None:
    run = node.run(HELPER, "wait")

    assert (run.code, run.output) == (
        75,
        "no data disk after 0 s: neither /opt/sagemaker nor /opt/dlami/nvme is mounted; give the group an EBS volume\n",
    )


def test_looks_again_until_the_disk_is_there(node: Node) -> None:
    # the fake sleep mounts the disk, as HyperPod does in the meantime
    sleep = node.fake / "bin" / "sleep"
    sleep.write_text(sleep.read_text() + 'printf "/opt/sagemaker\\n" >>"$FAKE/mounts"\n')

    run = node.run(HELPER, "wait", HYPERPOD_DISK_TIMEOUT_SECONDS="60", HYPERPOD_DISK_POLL_SECONDS="2")

    assert (run.code, run.output) == (0, "data disk: /opt/sagemaker\n")
    assert node.calls("sleep") == ["sleep 2"]


def test_stops_the_daemons_while_it_copies_and_starts_those_that_ran(node: Node) -> None:
    node.mount("/opt/sagemaker")
    node.start("containerd.service")

    run = node.run(MOVE)

    assert run.code == 0, run.output
    steps = [c for c in node.calls("systemctl", "cp", "mount") if "is-active" not in c]
    assert steps == [
        "systemctl daemon-reload",
        "systemctl enable hyperpod-data-disk.service",
        "systemctl stop containerd.service",
        "cp -a --one-file-system /var/lib/containerd/. /opt/sagemaker/hyperpod/containerd/",
        "cp -a --one-file-system /var/lib/kubelet/. /opt/sagemaker/hyperpod/kubelet/",
        "systemctl start hyperpod-data-disk.service",
        *BINDS,
        "systemctl start containerd.service",
    ]
    assert node.active() == ["containerd.service"]


def test_starts_nothing_that_did_not_run(node: Node) -> None:
    node.mount("/opt/sagemaker")

    node.run(MOVE)

    assert node.active() == []


def test_keeps_the_old_data_below_the_mount(node: Node) -> None:
    node.mount("/opt/sagemaker")

    node.run(MOVE)

    assert node.read("/var/lib/kubelet/config.json") == "{}"


def test_makes_the_folders_where_a_daemon_never_ran(node: Node) -> None:
    node.mount("/opt/sagemaker")
    (node.root / "var/lib/kubelet/config.json").unlink()
    (node.root / "var/lib/kubelet").rmdir()

    run = node.run(MOVE)

    assert run.code == 0, run.output
    assert node.calls("mount") == BINDS


def test_binds_again_at_boot_without_copying(node: Node) -> None:
    node.mount("/opt/sagemaker")
    node.run(MOVE)
    node.write("/opt/sagemaker/hyperpod/kubelet/since.json", "new")
    node.unmount()
    node.mount("/opt/dlami/nvme", "/opt/sagemaker")
    node.forget_calls()

    run = node.run(HELPER, "bind")

    assert run.code == 0, run.output
    assert node.calls("mount", "cp", "systemctl") == BINDS
    assert node.read("/opt/sagemaker/hyperpod/kubelet/since.json") == "new"


def test_waits_at_boot_for_the_disk_it_chose_and_no_other(node: Node) -> None:
    node.mount("/opt/sagemaker")
    node.run(MOVE)
    node.unmount()
    node.mount("/opt/dlami/nvme")

    run = node.run(HELPER, "bind")

    assert run.code == 75
    assert "/var/lib/kubelet" not in node.mounts()


def test_drops_what_an_older_system_left_on_the_volume(node: Node) -> None:
    node.mount("/opt/sagemaker")
    node.write("/opt/sagemaker/hyperpod/containerd/io.containerd.content/old", "AL2")

    node.run(MOVE)

    assert not (node.root / "opt/sagemaker/hyperpod/containerd/io.containerd.content/old").exists()
    assert node.read("/opt/sagemaker/hyperpod/containerd/io.containerd.content/pause") == "layer"


def test_leaves_alone_what_the_image_has_mounted_elsewhere(node: Node) -> None:
    node.mount("/opt/sagemaker", "/var/lib/containerd")

    run = node.run(MOVE)

    assert "/var/lib/containerd is not on the root volume, left alone" in run.output
    assert node.calls("mount") == BINDS[1:]


def test_leaves_alone_what_somebody_else_has_linked_elsewhere(node: Node) -> None:
    node.mount("/opt/sagemaker")
    kubelet = node.root / "var/lib/kubelet"
    kubelet.rename(node.root / "opt/sagemaker/kubelet")
    kubelet.symlink_to(node.root / "opt/sagemaker/kubelet")

    run = node.run(MOVE)

    assert "/var/lib/kubelet is not on the root volume, left alone" in run.output
    assert node.calls("mount") == BINDS[:1]


@pytest.mark.parametrize("arguments", [[], ["unmount"]])
def test_refuses_a_verb_it_does_not_know(node: Node, arguments: list[str]) -> None:
    run = node.run(HELPER, *arguments)

    assert (run.code, run.output) == (64, "usage: hyperpod-data-disk wait|move|bind\n")


def test_the_service_binds_before_the_daemons_start(node: Node) -> None:
    node.mount("/opt/sagemaker")
    node.run(MOVE)

    unit = node.read("/etc/systemd/system/hyperpod-data-disk.service").splitlines()
    assert "Before=containerd.service kubelet.service" in unit
    assert "ExecStart=/usr/local/sbin/hyperpod-data-disk bind" in unit
    assert (node.root / "usr/local/sbin/hyperpod-data-disk").stat().st_mode & 0o777 == 0o755
