"""Makes logs as launchers, NCCL and nccl-tests write them; the numbers are ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

HEAD = (
    "#                                                              out-of-place                       in-place",
    (
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong"
    ),
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
)
SIZES = tuple(8 << power for power in range(0, 32, 3))
EFA = "NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)"
SOCKET = "NCCL INFO Using network Socket"


def row(
    size: int, bus: float | str, *, operation: str = "sum", root: int = -1, wrong: object = 0, ratio: float = 1.875
) -> str:
    """One row of a table: the bus bandwidth in both halves, the algorithm bandwidth by the ratio."""
    algorithm = bus if isinstance(bus, str) else f"{bus / ratio:.2f}"
    shown = bus if isinstance(bus, str) else f"{bus:.2f}"
    half = f"{size / 1e4:9.2f} {algorithm:>7} {shown:>7} {wrong:>6}"
    return f"{size:12d} {size // 4:13d} {'float':>9} {operation:>7} {root:>7} {half} {half}"


def rows(plateau: float, sizes: Sequence[int] = SIZES, **how: Any) -> list[str]:
    """Rows whose bandwidth rises to a plateau, which the largest eighth of the sizes reaches."""
    most = max(sizes)
    return [row(size, plateau * min(1.0, (8 * size / most) ** 0.5), **how) for size in sizes]


def devices(hosts: Sequence[str], *, each: int = 8, name: str = "NVIDIA H100 80GB HBM3") -> list[str]:
    """The list of ranks."""
    lines = ["# Using devices"]
    for index, host in enumerate(hosts):
        for device in range(each):
            rank = index * each + device
            place = f"{host:>10} device {device:2d} [0000:{rank:02x}:00] {name}"
            lines.append(f"#  Rank {rank:2d} Group  0 Pid {rank + 30:6d} on {place}")
    return lines


def info(hosts: Iterable[str], *words: str) -> list[str]:
    """Lines of NCCL, from each host."""
    return [f"{host}:30:41 [0] {said}" for host in hosts for said in words]


def run(
    hosts: Sequence[str],
    plateau: float,
    *,
    said: Sequence[str] = (EFA,),
    sizes: Sequence[int] = SIZES,
    name: str = "NVIDIA H100 80GB HBM3",
    each: int = 8,
    complete: bool = True,
    **how: Any,
) -> list[str]:
    """A whole run: its preamble, NCCL's words, its table, its end."""
    end = ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {plateau / 3:g}", "#"] if complete else []
    return [
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 17179869184 step: 2(factor) warmup iters: 5 iters: 100 agg iters: 1",
        "#",
        *devices(hosts, each=each, name=name),
        *info(hosts, *said),
        *HEAD,
        *rows(plateau, sizes, **how),
        *end,
    ]


def marked(collective: str, nodes: int, instance_type: str) -> str:
    """The line that jobs of hyperpod-cdk write before a collective."""
    return f"# hyperpod-cdk: collective={collective} nodes={nodes} instance_type={instance_type}"
