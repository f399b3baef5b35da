"""Published rules of task governance and of the network add-on, compared with the catalog's: their differences."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from hyperpod_cdk.catalog import addons, governance, instance_types
from hyperpod_cdk_rehearsal.embedded.published import task_governance
from rehearsal.tests.support.tables import row_by_row

AMOUNTS = {
    "Count": "count",
    "Accelerators": "accelerators",
    "VCpu": "vcpu",
    "MemoryInGiB": "memory_gib",
    "AcceleratorPartition": "accelerator_partition",
}
SUBSETS = list(chain.from_iterable(combinations(AMOUNTS, size) for size in range(len(AMOUNTS) + 1)))
RELEASES = ["v1.3.1-eksbuild.1", "v1.4.0-eksbuild.1", "v1.4.9-eksbuild.2", "v1.5.0-eksbuild.1", "latest"]


@row_by_row("members", SUBSETS, ids="-".join)
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


@pytest.mark.parametrize(
    ("profiles", "available"),
    [
        # A100 40 GB and H200, as NVIDIA's tables list them
        ("1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb", (7, 4, 3, 2, 1, 1)),
        ("1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb", (7, 4, 3, 2, 1, 1)),
    ],
)
def test_partitions_of_a_gpu(profiles: str, available: tuple[int, ...]) -> None:
    named = [f"mig-{each}" for each in profiles.split()]
    assert tuple(task_governance.partitions_per_accelerator(each, named) for each in named) == available


def test_the_catalog_knows_the_same_partitions() -> None:
    rows = [row for row in map(instance_types.get, instance_types.names()) if row is not None and row.mig_profiles]
    assert rows
    for row in rows:
        for profile in row.mig_profiles:
            ours = governance.partitions_per_accelerator(profile, row.mig_profiles)
            assert task_governance.partitions_per_accelerator(profile, row.mig_profiles) == ours, (row.name, profile)


@pytest.mark.parametrize("version", [*RELEASES, "v1.6.0-eksbuild.1", "v2.0.0-eksbuild.1"])
@pytest.mark.parametrize("api", ["kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"])
def test_the_catalog_knows_the_same_kueue(version: str, api: str) -> None:
    assert task_governance.serves_kueue_api(version, api) == governance.serves_kueue_api(version, api)
    assert not task_governance.serves_kueue_api("v1.4.9-eksbuild.2", "kueue.x-k8s.io/v1beta2")
