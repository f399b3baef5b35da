"""The resources that a node reserves, and those that are available for pods."""

from __future__ import annotations

import pytest

from hyperpod_cdk.workloads.allocatable import allocatable, kept_for_checkpoints
from hyperpod_cdk.workloads.nodes import node_shape
from tests.workloads.test_rules import environment


@pytest.mark.parametrize(
    ("group", "percent", "left"),
    [
        ("h100", 0, (179, 1849)),  # 192 - 12.03 vCPUs, 2048 - 157.74 - 41.25 GiB
        ("h100", 20, (179, 1439)),  # 409.6 GiB less
        ("h100", 100, (179, 1)),
        ("a10g", 0, (44, 153)),  # 48 - 3.39, 192 - 27.82 - 10.31
        ("l40s", 0, (3, 11)),  # 4 - 0.75, 16 - 4.3
    ],
)
def test_what_is_left_for_pods(group: str, percent: int, left: tuple[int, int]) -> None:
    lab = environment(None, ()).environment
    shape = node_shape(lab, next(each for each in lab.hyperpod.instance_groups if each.name == group))
    assert shape is not None
    assert allocatable(shape, checkpoint_percent=percent) == left


def test_what_tiered_checkpointing_keeps() -> None:
    assert kept_for_checkpoints(environment(None, ()).environment) == 20
    off = (("    memory_percent: 20\n", "    enabled: false\n    memory_percent: 20\n"),)
    assert kept_for_checkpoints(environment(None, off).environment) == 0
    assert kept_for_checkpoints(environment("examples/two-teams.yaml", ()).environment) == 0
