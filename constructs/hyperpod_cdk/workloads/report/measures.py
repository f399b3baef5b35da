"""The measurements of a run: its plateau, its collective, and the comparison with published values."""

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
"""The bandwidth in GB/s above which two decimals are precise enough for a ratio."""

_TCP_AND_A_HALF = 1.5
_UNBELIEVABLE = 1e6
_TOO_FAST = 1.25
"""The multiple of a baseline above which a measurement is implausible, unless the baseline is too low."""


CollectiveFrom = Literal["job", "program", "columns", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """The comparison of a run with a baseline; ``says`` is the end of a sentence about it."""

    verdict: Verdict
    says: str
    comparison: Comparison | None = None
    lacks_type: bool = False
    """Whether only the instance type is missing."""


def out_of_place(size: log.Size) -> float | None:
    """Return the bus bandwidth of a size in GB/s: out-of-place, or in-place if that one is missing."""
    return next((timing.bus_gb_s for timing in size.timings if timing.bus_gb_s is not None), None)


def plateau(run: log.Run) -> float | None:
    """Return the median bus bandwidth of the sizes within a factor of eight of the largest, or None without any."""
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
    """Return how many elements were wrong, or None if results were not verified."""
    found = [timing.wrong for size in run.sizes for timing in size.timings if timing.wrong is not None]
    return sum(found) if found else run.out_of_bounds


def fits_ranks(run: log.Run, ranks: int) -> bool | None:
    """Return whether the ratio of bus to algorithm bandwidth matches the number of ranks; None if it is unknown.

    The factors are in doc/PERFORMANCE.md of nccl-tests; close to their limit, they match many numbers of ranks.
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
    """Return the hosts of a run: the pair in the job's header, or the hosts of its ranks in order."""
    return run.pair or tuple(dict.fromkeys(device.host for device in run.devices))


def collective(run: log.Run) -> tuple[str | None, CollectiveFrom]:
    """Return the collective of a run and its source: the job's header, the program's name, or its columns."""
    if run.marker is not None:
        return run.marker.collective, "job"
    if run.program in get_args(Collective):
        return run.program, "program"
    inferred = _by_columns(run)
    return (inferred, "columns") if inferred else (None, "unknown")


def _by_columns(run: log.Run) -> str | None:
    """Infer the collective: it and the number of ranks determine the ratio of bus to algorithm bandwidth."""
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

    Passes only if a published value for as many nodes or fewer is not clearly higher. Fails if a published value for
    no more nodes is clearly higher; a baseline in doubt never fails a run.
    """
    if instance_type is None:
        return Beside(verdict=Verdict.UNKNOWN, says="its instance type is unknown", lacks_type=True)
    if name is None:
        return Beside(verdict=Verdict.UNKNOWN, says="its collective is unknown")
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
    """Return unknown if other measurements of a run contradict the comparison, because one good value is no proof."""
    comparison = beside.comparison
    if comparison is None or beside.verdict is not Verdict.PASS:
        return beside
    if comparison.ratio > _TOO_FAST:
        says = f"{beside.says}; this is so high that type, nodes or numbers must be wrong, or the baseline is too low"
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
    """Return the measurement of the smallest size that is at least this size."""
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
    """Return a bandwidth as text with three significant digits."""
    if value >= _UNBELIEVABLE:
        return f"{value:.2e} GB/s"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} GB/s"


def percent(ratio: float) -> str:
    """Return a ratio as percent, rounded down: 89.9 % is not 90 %."""
    return f"{int(ratio * 100 + 1e-9)} %"


def iec(size: int) -> str:
    """Return a number of bytes as text in the largest binary unit that it reaches: ``4 GiB``, ``1.5 MiB``."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.4g} {unit}"
    return f"{size} B"
