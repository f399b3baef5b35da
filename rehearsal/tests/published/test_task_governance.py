"""What is restated of task governance and of the network add-on, beside the catalog's own rules: where they differ."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from hyperpod_cdk.catalog import addons, governance
from hyperpod_cdk_rehearsal.embedded.published import task_governance

AMOUNTS = {
    "Count": "count",
    "Accelerators": "accelerators",
    "VCpu": "vcpu",
    "MemoryInGiB": "memory_gib",
    "AcceleratorPartition": "accelerator_partition",
}
SUBSETS = list(chain.from_iterable(combinations(AMOUNTS, size) for size in range(len(AMOUNTS) + 1)))
RELEASES = ["v1.3.1-eksbuild.1", "v1.4.0-eksbuild.1", "v1.4.9-eksbuild.2", "v1.5.0-eksbuild.1", "latest"]


@pytest.mark.parametrize("members", SUBSETS, ids="-".join)
def test_the_catalog_refuses_the_same_amounts(members: tuple[str, ...]) -> None:
    ours = governance.amounts_problem([AMOUNTS[each] for each in members])
    assert (task_governance.amounts(members) is None) == (ours is None)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ((), "No amount is stated: give Count, Accelerators, VCpu, MemoryInGiB or AcceleratorPartition."),
        (("Count", "VCpu", "MemoryInGiB"), "Count cannot be stated together with VCpu and MemoryInGiB."),
        (
            ("Accelerators", "AcceleratorPartition"),
            "AcceleratorPartition cannot be stated together with Accelerators.",
        ),
        (("AcceleratorPartition", "VCpu", "MemoryInGiB"), None),
        (("Accelerators", "VCpu"), None),
    ],
)
def test_amounts_that_exclude_each_other(members: tuple[str, ...], said: str | None) -> None:
    assert task_governance.amounts(members) == said


@pytest.mark.parametrize("percent", [-1, 0, 1, 500, 501])
def test_the_catalog_knows_the_same_limit_of_borrowing(percent: int) -> None:
    ours = governance.BORROW_LIMIT_PERCENT.problem(percent, key="x")
    assert (percent in task_governance.BORROW_LIMIT_PERCENT) == (ours is None)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v1.18.2-eksbuild.1", "has the version v1.18.2-eksbuild.1, and HyperPod needs 1.18.3 or later"),
        ("v1.9.9-eksbuild.1", "has the version v1.9.9-eksbuild.1, and HyperPod needs 1.18.3 or later"),
        ("v1.18.3-eksbuild.1", None),
        ("v1.19.0-eksbuild.1", None),
        ("v2.0.0-eksbuild.1", None),
        ("latest", None),
    ],
)
def test_the_version_of_the_network_addon(version: str, said: str | None) -> None:
    assert task_governance.vpc_cni(version) == said
    assert (addons.version_problem(addons.VPC_CNI, version) is None) == (said is None)


@pytest.mark.parametrize("installed", RELEASES)
@pytest.mark.parametrize("wanted", RELEASES)
def test_the_catalog_knows_the_same_steps(installed: str, wanted: str) -> None:
    ours = governance.update_problem(installed, wanted)
    assert task_governance.skips_a_release(installed, wanted) == (ours is not None)
    assert task_governance.skips_a_release("v1.3.1-eksbuild.1", "v1.5.0-eksbuild.1")
