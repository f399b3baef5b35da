"""What AWS says of compute quotas and of updates of task governance, and of the network add-on under HyperPod.

Source: the SageMaker AI developer guide, pages on HyperPod and on task governance (October 2026), where nothing else
stands beside it; what it does not say is marked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

BORROW_LIMIT_PERCENT = range(1, 501)
"""Task governance, "Compute allocations": 1 to 500 percent. The API's own shape takes 0 to 10000."""

LEAST_VPC_CNI = (1, 18, 3)
"""Prerequisites of HyperPod on EKS: VPC CNI 1.18.3 or later."""

INSTANCES_AVAILABLE = {"2g": 3, "3g": 2, "4g": 1, "7g": 1}
"""NVIDIA's Multi-Instance GPU user guide, "Supported MIG Profiles", column "Number of Instances Available"."""

SMALLEST_AVAILABLE, DOUBLE_MEMORY_AVAILABLE = 7, 4
"""The same column for ``1g``: the profile with one eighth of the memory, and the one with twice that."""

KUEUE_GROUP = "kueue.x-k8s.io"
"""The API group of Kueue's objects."""

KUEUE_V1BETA2 = (1, 5)
"""The first release of task governance whose Kueue (0.15 or later: kubernetes-sigs/kueue 8018) serves v1beta2."""

_WITHOUT_OTHERS = {"Count": set(), "AcceleratorPartition": {"VCpu", "MemoryInGiB"}}
"""The console asks for instances, or for parts of one; that the API refuses both is not said (inferred)."""

_PARTS = ("Accelerators", "VCpu", "MemoryInGiB")


def amounts(members: Collection[str]) -> str | None:
    """Return the end of the refusal of the amounts that one row of a compute quota states, or None."""
    stated = [each for each in ("Count", "AcceleratorPartition", *_PARTS) if each in members]
    if not stated:
        return "No amount is stated: give Count, Accelerators, VCpu, MemoryInGiB or AcceleratorPartition."
    for alone, allowed in _WITHOUT_OTHERS.items():
        others = [each for each in stated if each != alone and each not in allowed]
        if alone in stated and others:
            return f"{alone} cannot be stated together with {' and '.join(others)}."
    return None


def partitions_per_accelerator(profile: str, profiles: Iterable[str]) -> int:
    """Return how many partitions of ``profile`` (``mig-1g.10gb``) one GPU has, whose profiles are ``profiles``."""
    size, memory = _of_profile(profile)
    if size in INSTANCES_AVAILABLE:
        return INSTANCES_AVAILABLE[size]
    least = min(memory for of, memory in map(_of_profile, profiles) if of == size)
    return SMALLEST_AVAILABLE if memory == least else DOUBLE_MEMORY_AVAILABLE


def _of_profile(profile: str) -> tuple[str, int]:
    size, memory = profile.removeprefix("mig-").removesuffix("gb").split(".")
    return size, int(memory)


def serves_kueue_api(version: str, api: str) -> bool:
    """Whether task governance of ``version`` serves ``api`` (``kueue.x-k8s.io/v1beta2``); all serve older ones."""
    release = _release(version)
    return api != f"{KUEUE_GROUP}/v1beta2" or release is None or release >= KUEUE_V1BETA2


def vpc_cni(version: str) -> str | None:
    """Return the end of the refusal of a version of vpc-cni (``v1.18.3-eksbuild.1``), or None; for ``latest``, too."""
    found = _release(version)
    if found is None or found >= LEAST_VPC_CNI:
        return None
    return f"has the version {version}, and HyperPod needs {'.'.join(map(str, LEAST_VPC_CNI))} or later"


def skips_a_release(installed: str, wanted: str) -> bool:
    """Whether an update of task governance leaves out 1.4, which alone still reads what older releases stored.

    The guide names 1.3 as the release to come from; that older ones are alike is inferred.
    """
    before, after = _release(installed), _release(wanted)
    return before is not None and after is not None and before < (1, 4) and after >= (1, 5)


def _release(version: str) -> tuple[int, ...] | None:
    found = re.match(r"v?(\d+(?:\.\d+)+)", version)
    return tuple(map(int, found[1].split("."))) if found else None
