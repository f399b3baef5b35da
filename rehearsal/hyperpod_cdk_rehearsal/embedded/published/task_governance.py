"""What AWS says of compute quotas and of updates of task governance, and of the network add-on under HyperPod.

Each function gives the end of AWS's refusal, or None. Source: the SageMaker AI developer guide, pages on HyperPod and
on task governance (October 2026); what it does not say is marked.
"""

from __future__ import annotations

import re
from collections.abc import Collection

BORROW_LIMIT_PERCENT = range(1, 501)
"""Task governance, "Compute allocations": 1 to 500 percent. The API's own shape takes 0 to 10000."""

LEAST_VPC_CNI = (1, 18, 3)
"""Prerequisites of HyperPod on EKS: VPC CNI 1.18.3 or later."""

_WITHOUT_OTHERS = {"Count": set(), "AcceleratorPartition": {"VCpu", "MemoryInGiB"}}
"""The console asks for instances, or for parts of one; that the API refuses both is not said (inferred)."""

_PARTS = ("Accelerators", "VCpu", "MemoryInGiB")


def amounts(members: Collection[str]) -> str | None:
    """Judge which amounts one row of a compute quota states."""
    stated = [each for each in ("Count", "AcceleratorPartition", *_PARTS) if each in members]
    if not stated:
        return "No amount is stated: give Count, Accelerators, VCpu, MemoryInGiB or AcceleratorPartition."
    for alone, allowed in _WITHOUT_OTHERS.items():
        others = [each for each in stated if each != alone and each not in allowed]
        if alone in stated and others:
            return f"{alone} cannot be stated together with {' and '.join(others)}."
    return None


def vpc_cni(version: str) -> str | None:
    """Judge a version of the add-on vpc-cni (``v1.18.3-eksbuild.1``); one that begins otherwise is left alone."""
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
