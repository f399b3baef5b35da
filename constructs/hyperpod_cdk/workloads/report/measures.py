"""What a run measured: its plateau, its collective, and how it compares with published values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, get_args

from hyperpod_cdk.catalog import baselines
from hyperpod_cdk.catalog.baselines import Baseline
from hyperpod_cdk.workloads.job import Collective
from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.model import Comparison, Verdict

_SPAN = 8
_CLOSE = 0.02
_FAST_ENOUGH = 1.0
"""GB/s from which the two decimals of a bandwidth are enough for a ratio."""

_TCP_AND_A_HALF = 1.5
_UNBELIEVABLE = 1e6
_TOO_FAST = 1.25
"""Times a baseline from which a measurement is no more what the same fabric carries, unless the baseline is too low."""


CollectiveFrom = Literal["job", "program", "columns", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """How a run compares with a baseline; ``says`` is the end of a sentence about it."""

    verdict: Verdict
    says: str
    comparison: Comparison | None = None
    lacks_type: bool = False
    """Whether all that is missing is the instance type."""


def out_of_place(size: log.Size) -> float | None:
    """Give the bus bandwidth of a size in GB/s: out-of-place, in-place where that one is missing."""
    return next((timing.bus_gb_s for timing in size.timings if timing.bus_gb_s is not None), None)


def plateau(run: log.Run) -> float | None:
    """Give the median bus bandwidth of the sizes within a factor of eight of the largest, or None without any."""
    largest = max((size.bytes for size in run.sizes), default=0)
    found = [
        timing.bus_gb_s
        for size in run.sizes
        if size.bytes * _SPAN >= largest > 0
        for timing in size.timings
        if timing.bus_gb_s is not None
    ]
    return median(found) if found else None


def wrong(run: log.Run) -> int | None:
    """Give how many elements were wrong, or None where results were not compared."""
    found = [timing.wrong for size in run.sizes for timing in size.timings if timing.wrong is not None]
    return sum(found) if found else run.out_of_bounds


def fits_ranks(run: log.Run, ranks: int) -> bool | None:
    """Whether bus by algorithm bandwidth is what so many ranks give; None if that is unknown.

    nccl-tests' doc/PERFORMANCE.md has the factors; close to their limit they are those of many numbers of ranks.
    """
    name, _ = collective(run)
    factors = {"all_reduce": 2 * _share(ranks), "all_gather": _share(ranks), "reduce_scatter": _share(ranks)}
    size = max(run.sizes, key=lambda each: each.bytes, default=None)
    timing = next(iter(size.timings), None) if size is not None else None
    if name not in factors or timing is None or not timing.bus_gb_s or not timing.algorithm_gb_s:
        return None
    if timing.algorithm_gb_s < _FAST_ENOUGH or ranks < 2:
        return None
    return abs(timing.bus_gb_s / timing.algorithm_gb_s - factors[name]) <= _CLOSE * factors[name]


def hosts(run: log.Run) -> tuple[str, ...]:
    """Give the hosts of a run: its pair, as the job names it, else those of its ranks in their order."""
    return run.pair or tuple(dict.fromkeys(device.host for device in run.devices))


def collective(run: log.Run) -> tuple[str | None, CollectiveFrom]:
    """Give what a run measured, and how that is known: the job said so, its program is named, its columns fit one."""
    if run.marker is not None:
        return run.marker.collective, "job"
    if run.program in get_args(Collective):
        return run.program, "program"
    inferred = _by_columns(run)
    return (inferred, "columns") if inferred else (None, "unknown")


def _by_columns(run: log.Run) -> str | None:
    """Infer the collective: bus over algorithm bandwidth is a function of it and of the number of ranks."""
    size = max(run.sizes, key=lambda each: each.bytes, default=None)
    ranks = len(run.devices)
    if size is None or run.tool != "nccl-tests":
        return None
    timing = next(iter(size.timings), None)
    if timing is None or not timing.bus_gb_s or not timing.algorithm_gb_s or timing.algorithm_gb_s < _FAST_ENOUGH:
        return None
    ratio = timing.bus_gb_s / timing.algorithm_gb_s
    reduces = size.operation not in ("", "none")
    if size.root is not None and size.root >= 0:
        factors = {"reduce" if reduces else "broadcast": 1.0}
        if not reduces:
            factors |= {"gather": _share(ranks), "scatter": _share(ranks)}
    elif reduces:
        factors = {"all_reduce": 2 * _share(ranks), "reduce_scatter": _share(ranks)}
    else:
        factors = {"all_gather": _share(ranks), "alltoall": _share(ranks), "sendrecv": 1.0}
    if ranks < 2:
        return "all_reduce" if reduces and size.root in (None, -1) and ratio > 1 + _CLOSE else None
    fitting = [name for name, factor in factors.items() if abs(ratio - factor) <= _CLOSE * factor]
    return fitting[0] if len(fitting) == 1 else None


def _share(ranks: int) -> float:
    return (ranks - 1) / ranks if ranks > 1 else 1.0


def beside_baseline(run: log.Run, *, instance_type: str | None, nodes: int | None, name: str | None) -> Beside:
    """Compare a run of collective ``name`` with published values for its instance type and number of nodes.

    Passes only where as many nodes, or fewer, are known to reach little more. Fails where no more nodes are known to
    reach clearly more; a baseline in doubt never fails a run.
    """
    if instance_type is None:
        return Beside(verdict=Verdict.UNKNOWN, says="its instance type is unknown", lacks_type=True)
    if name is None:
        return Beside(verdict=Verdict.UNKNOWN, says="what it measured is unknown")
    rows = [row for row in baselines.of(instance_type, name) if nodes is None or (row.nodes == 1) == (nodes == 1)]
    rows = [row for row in rows if row.nodes == nodes] or rows
    if not rows:
        at = "" if nodes is None else " on one node" if nodes == 1 else " between nodes"
        return Beside(
            verdict=Verdict.UNKNOWN, says=f"no published values of {name} on {instance_type}{at} to compare it with"
        )
    at_size = [(row, size) for row in rows if (size := _measured_at(run.sizes, row.bytes)) is not None]
    if not at_size:
        least = min(row.bytes for row in rows)
        return Beside(verdict=Verdict.UNKNOWN, says=f"the baseline is for {iec(least)}, and no message was that large")
    row, size = max(at_size, key=lambda pair: (pair[0].bytes, -pair[0].bus_gb_s))
    return _unlike(run, _compared(row, size, nodes=nodes))


def _unlike(run: log.Run, beside: Beside) -> Beside:
    """Leave open what the other measurements of a run contradict: one good point is not a good fabric."""
    comparison = beside.comparison
    if comparison is None or beside.verdict is not Verdict.PASS:
        return beside
    if comparison.ratio > _TOO_FAST:
        says = (
            f"{beside.says}; this is so much more that type, nodes or numbers must be wrong, or the baseline is too low"
        )
        return replace(beside, verdict=Verdict.UNKNOWN, says=says)
    large = [
        (timing.bus_gb_s, size.bytes, timing is size.in_place)
        for size in run.sizes
        if size.bytes >= comparison.baseline_bytes
        for timing in size.timings
        if timing.bus_gb_s is not None
    ]
    value, size, is_in_place = min(large)
    if value >= comparison.baseline_gb_s * baselines.TOLERANCE:
        return beside
    of = f"{iec(size)}{' in place' if is_in_place else ''}"
    return replace(beside, verdict=Verdict.UNKNOWN, says=f"{beside.says}; but {of} reached only {gb_s(value)}")


def _measured_at(sizes: Iterable[log.Size], least: int) -> log.Size | None:
    """Give the measurement of the smallest size that is no smaller."""
    fitting = [size for size in sizes if size.bytes >= least and out_of_place(size) is not None]
    return min(fitting, key=lambda size: size.bytes, default=None)


def _compared(row: Baseline, size: log.Size, *, nodes: int | None) -> Beside:
    measured = out_of_place(size) or 0.0
    ratio = measured / row.bus_gb_s
    comparison = Comparison(
        measured_gb_s=measured,
        measured_bytes=size.bytes,
        baseline_gb_s=row.bus_gb_s,
        baseline_bytes=row.bytes,
        baseline_nodes=row.nodes,
        ratio=round(ratio, 4),
        source=row.source,
        unsure=row.unsure,
    )
    of = "1 node" if row.nodes == 1 else f"{row.nodes} nodes"
    says = f"{percent(ratio)} of the {gb_s(row.bus_gb_s)} published for {of} at {iec(row.bytes)}"
    if row.unsure:
        says += f" (in doubt: {'; '.join(row.unsure)})"
    slow = baselines.over_tcp(row.instance_type, row.collective)
    if slow is not None and nodes != 1 and measured <= slow.bus_gb_s * _TCP_AND_A_HALF:
        says += f", about what TCP reaches ({gb_s(slow.bus_gb_s)})"
    return Beside(verdict=_verdict(row, ratio, nodes), says=says, comparison=comparison)


def _verdict(row: Baseline, ratio: float, nodes: int | None) -> Verdict:
    if nodes is None:
        return Verdict.UNKNOWN
    if ratio >= baselines.TOLERANCE:
        return Verdict.PASS if nodes >= row.nodes else Verdict.UNKNOWN
    return Verdict.FAIL if nodes <= row.nodes and not row.unsure else Verdict.UNKNOWN


def gb_s(value: float) -> str:
    """Write a bandwidth: three digits that count."""
    if value >= _UNBELIEVABLE:
        return f"{value:.2e} GB/s"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} GB/s"


def percent(ratio: float) -> str:
    """Write a ratio as percent, cut: 89.9 % is not 90 %."""
    return f"{int(ratio * 100 + 1e-9)} %"


def iec(size: int) -> str:
    """Write a number of bytes in the largest binary unit that it fills: ``4 GiB``, ``1.5 MiB``."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.4g} {unit}"
    return f"{size} B"
