"""Kernel modules of EFA and Lustre, loaded where the machine and the image have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lifecycle_scripts.conftest import Node

STEP = "steps/40_load_modules.sh"
BOOT_LIST = "/etc/modules-load.d/hyperpod.conf"


@pytest.mark.parametrize(
    ("efa", "image", "loaded"),
    [
        (True, ["efa", "lnet", "lustre"], ["efa", "lnet", "lustre"]),
        (False, ["efa", "lnet", "lustre"], ["lnet", "lustre"]),
        (True, ["efa"], ["efa"]),
        (True, [], []),
        (False, [], []),
    ],
)
def test_loads_what_machine_and_image_have(node: Node, efa: bool, image: list[str], loaded: list[str]) -> None:  # noqa: FBT001 - a column of the table
    if efa:
        node.pci("0000:00:02.0", vendor="0x1d0f", device="0xefa1")
    node.kernel_modules(*image)

    run = node.run(STEP)

    assert run.code == 0, run.output
    assert node.calls("modprobe") == [f"modprobe {module}" for module in loaded]
    assert (node.root / BOOT_LIST.lstrip("/")).exists() == bool(loaded)


def test_an_ena_interface_is_no_efa(node: Node) -> None:
    node.pci("0000:00:02.0", vendor="0x1d0f", device="0xec20")
    node.kernel_modules("efa")

    node.run(STEP)

    assert node.calls("modprobe") == []


def test_says_what_the_image_lacks(node: Node) -> None:
    run = node.run(STEP)

    assert run.output == "module lnet: not in this image, skipped\nmodule lustre: not in this image, skipped\n"


def test_replaces_a_list_that_no_longer_holds(node: Node) -> None:
    node.write(BOOT_LIST, "something-else\n")
    node.kernel_modules("lnet", "lustre")

    node.run(STEP)

    assert node.read(BOOT_LIST) == "lnet\nlustre\n"
