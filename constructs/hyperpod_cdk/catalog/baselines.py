"""Bus bandwidth that published runs of a collective reached, by instance type; AWS guarantees none of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Literal

from hyperpod_cdk.catalog import _data, instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType

_DATA = _data.load("baselines")

AS_OF: date = _data.as_of("baselines")

TOLERANCE: float = _DATA["tolerance"]["ratio"]
"""The part of a baseline that a run must reach; nccl-tests uses the same part when it judges an average."""

Network = Literal["efa", "tcp", "none", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What one published run reached.

    ``bus_gb_s`` is the bus bandwidth in GB/s at messages of ``bytes``, over ``network`` (``none``: a single node).
    ``source`` is where it was published; ``unsure`` says what of it is inferred or disputed.
    """

    instance_type: str
    collective: str
    nodes: int
    bytes: int
    bus_gb_s: float
    network: Network
    source: str
    unsure: tuple[str, ...] = ()


def of(instance_type: str, collective: str) -> tuple[Baseline, ...]:
    """Return what is published for a type and a collective (``all_reduce``), without runs over TCP."""
    return tuple(
        row
        for row in _runs()
        if (row.instance_type, row.collective) == (instance_type, collective) and row.network != "tcp"
    )


def over_tcp(instance_type: str, collective: str) -> Baseline | None:
    """Return what a type is known to reach without EFA, or None if nothing is published."""
    wanted = (instance_type, collective, "tcp")
    return next((row for row in _runs() if (row.instance_type, row.collective, row.network) == wanted), None)


def types_with(device: str, *, at_least: int = 1) -> tuple[InstanceType, ...]:
    """Return the types with ``at_least`` GPUs of the name ``device`` that drivers use (``NVIDIA A10G``).

    A size of memory in the name (``A100-SXM4-40GB``) counts if types differ by it. Empty if the name is not of a known
    GPU.
    """
    words = re.findall(r"[a-z0-9]+", device.lower())
    rows = [row for name in instance_types.names() if (row := instance_types.get(name)) is not None]
    found = [row for row in rows if row.is_nvidia and _kind_words(row) <= set(words)]
    stated = {float(word.removesuffix("gb")) for word in words if re.fullmatch(r"\d+gb", word)}
    exact = [row for row in found if row.accelerator_memory_gib in stated]
    return tuple(row for row in exact or found if row.accelerator_count >= at_least)


def _kind_words(row: InstanceType) -> set[str]:
    return set((row.accelerator_kind or "").split("-")[1:])


@cache
def _runs() -> tuple[Baseline, ...]:
    return tuple(_read(row) for row in _DATA["runs"])


def _read(row: dict[str, Any]) -> Baseline:
    return Baseline(
        instance_type=row["type"],
        collective=row["collective"],
        nodes=row["nodes"],
        bytes=row["bytes"],
        bus_gb_s=row["bus_gb_s"],
        network=row["network"],
        source="; ".join(_DATA["sources"][key] for key in row["sources"]),
        unsure=tuple(row.get("unsure", ())),
    )
