"""Settings of programs for the network between nodes: environment variables, huge pages and images by type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.instance_types import InstanceType

_DATA = _data.load("fabric")
_HUGEPAGES = _DATA["hugepages"]

AS_OF: date = _data.as_of("fabric")

NVLINK_BETWEEN_NODES = "NCCL_MNNVL_ENABLE"
"""The variable that is 0 if NVLink connects nodes, which pods without an IMEX channel cannot use."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """An environment variable for types with all that it ``needs``; ``families`` is empty if all families have it."""

    name: str
    value: str
    needs: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()

    def fits(self, row: InstanceType) -> bool:
        """Return whether the variable may be set on nodes of type ``row``."""
        return self.needs <= _abilities(row) and (not self.families or row.family in self.families)


def variables(rows: Sequence[InstanceType], *, accelerators_are_whole: bool) -> dict[str, str]:
    """Return what lets NCCL use EFA on nodes of these types: only what is safe on all of them.

    Empty if a type has no EFA or no NVIDIA GPU, or if the GPUs are partitioned: NCCL cannot connect partitions
    over EFA. Leaves out what aws-ofi-nccl sets itself.
    """
    usable = accelerators_are_whole and all(row.is_nvidia and row.efa_supported for row in rows)
    return _meet("efa", rows) if usable else {}


def tcp_variables(rows: Sequence[InstanceType]) -> dict[str, str]:
    """Return what lets NCCL use TCP and nothing else on nodes of these types, for pods without EFA."""
    return _meet("tcp", rows)


def neuron_variables(rows: Sequence[InstanceType]) -> dict[str, str]:
    """Return what lets Neuron's collectives use EFA; empty where a type has no EFA or is not a Neuron one."""
    return _meet("neuron", rows) if all(row.is_neuron and row.efa_supported for row in rows) else {}


def variables_without_hugepages() -> dict[str, str]:
    """Return what a pod with EFA must set if it requests no huge pages: libfabric would otherwise use them, and
    fail."""
    return {each.name: each.value for each in _variables()["without_hugepages"]}


def hugepages_mib(row: InstanceType) -> int:
    """Return how many MiB of 2 MiB pages a pod with all EFA interfaces of a node requests; 0 if it needs none.

    Never more than a node reserves with one thread per core; on small types this is less than AWS's manifests request.
    """
    if not row.is_accelerated or not row.efa_supported or row.family in _HUGEPAGES["without"]:
        return 0
    return min(int(_HUGEPAGES["mib"]), _kept_mib(row.vcpu // 2 if row.cores is None else row.cores))


def hugepages_kept_mib(row: InstanceType) -> int:
    """Return how much memory the EFA driver turns into huge pages at boot, in MiB, whether pods request it or not.

    Pods can use that memory only as huge pages; it is not part of the node's other memory. With one thread
    per core it is half of that.
    """
    return _kept_mib(row.vcpu) if row.efa_supported else 0


def test_image(rows: Sequence[InstanceType]) -> str:
    """Return the public image with nccl-tests, fi_info and Open MPI for these types.

    The one with the oldest CUDA that supports all their GPUs, because it runs with the most drivers; if none does
    (`test_image_problem`) the first.
    """
    return _image("nccl-tests", rows)


def test_image_problem(rows: Sequence[InstanceType]) -> str | None:
    """Say that no public image has nccl-tests for a GPU of these types, and what to do, or return None."""
    unknown = [row for row in rows if row.is_nvidia and not _fitting("nccl-tests", [row])]
    if not unknown:
        return None
    row = unknown[0]
    return (
        f"must be an image whose nccl-tests are compiled for {row.accelerator_kind}, and no public one is, got none for"
        f" {row.name}; set image to one that hyperpod-cdk image render creates"
    )


def neuron_image(rows: Sequence[InstanceType]) -> str:
    """Return the public image with nccom-test and Neuron's tools for these types."""
    return _image("neuron", rows)


def dcgm_image(rows: Sequence[InstanceType]) -> str:
    """Return the public image with DCGM's diagnostics for these types."""
    return _image("dcgm", rows)


def _kept_mib(threads: int) -> int:
    return int(_HUGEPAGES["kept_mib_per_vcpu"]) * threads + int(_HUGEPAGES["kept_mib_more"])


def _image(name: str, rows: Sequence[InstanceType]) -> str:
    return str((_fitting(name, rows) or _DATA["images"][name])[0]["image"])


def _fitting(name: str, rows: Sequence[InstanceType]) -> list[dict[str, Any]]:
    kinds = {row.accelerator_kind for row in rows if row.accelerator_kind is not None}
    return [row for row in _DATA["images"][name] if kinds <= set(row["accelerators"])]


def _abilities(row: InstanceType) -> frozenset[str]:
    found = {"rdma_read": row.rdma_read, "several_accelerators": row.accelerator_count > 1}
    return frozenset(name for name, has in found.items() if has)


def _meet(fabric: str, rows: Sequence[InstanceType]) -> dict[str, str]:
    return {each.name: each.value for each in _variables()[fabric] if all(each.fits(row) for row in rows)}


@cache
def _variables() -> dict[str, tuple[Variable, ...]]:
    listed: dict[str, list[dict[str, Any]]] = _DATA["variables"]
    return {
        fabric: tuple(
            Variable(
                name=row["name"],
                value=row["value"],
                needs=frozenset(row.get("needs", ())),
                families=frozenset(row.get("families", ())),
            )
            for row in rows
        )
        for fabric, rows in listed.items()
    }
