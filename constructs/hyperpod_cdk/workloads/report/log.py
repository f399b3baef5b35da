"""The content of a log, before it is evaluated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from hyperpod_cdk.workloads.report.lines import Speaker

KEPT = 3
"""The number of lines of each kind that are kept as evidence; further lines are only counted."""

Signal = Literal[
    "efa",
    "libfabric",
    "channel",
    "socket",
    "infiniband",
    "other provider",
    "socket ready",
    "no plugin",
    "no provider",
    "gpudirect",
]
"""The meaning of an NCCL line about the network: which network it uses, or why it does not use EFA."""


LookKind = Literal["dcgm", "efa-info", "neuron-info"]
"""The tests of single nodes, which are also the names of their containers."""

Transport = Literal["efa", "tcp", "unknown"]
"""The transport over which pods reach Lustre."""


class Line(NamedTuple):
    """A line as evidence: the file (empty for standard input), its number from 1, and its text."""

    file: str
    number: int
    text: str


@dataclass
class Tally:
    """How often a message was logged, its first lines, and the hosts that logged it."""

    count: int = 0
    lines: list[Line] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def add(self, line: Line, host: str = "") -> None:
        """Count a line, and keep it if there are only a few."""
        self.count += 1
        if len(self.lines) < KEPT:
            self.lines.append(line)
        if host:
            self.hosts.add(host)


Signals = dict[Signal, Tally]


@dataclass(frozen=True)
class Marker:
    """The header of a collective, which job manifests of hyperpod-cdk print before it."""

    collective: str = ""
    nodes: int | None = None


@dataclass(frozen=True)
class Device:
    """The host of one rank and the name of its GPU."""

    rank: int
    host: str
    name: str


@dataclass(frozen=True)
class Timing:
    """One measurement: bandwidths in GB/s and wrong elements; None if the log has no number."""

    algorithm_gb_s: float | None
    bus_gb_s: float | None
    wrong: int | None
    is_off: bool = False
    """Whether the largest error of its results is larger than the data type allows (old nccl-tests)."""

    is_compared: bool = False
    """Whether its results were verified."""


@dataclass
class Size:
    """One row of a table: a message size in bytes."""

    bytes: int
    operation: str
    root: int | None
    line: Line
    out_of_place: Timing | None = None
    in_place: Timing | None = None

    @property
    def timings(self) -> tuple[Timing, ...]:
        """Return its measurements, out-of-place before in-place."""
        return tuple(timing for timing in (self.out_of_place, self.in_place) if timing is not None)


@dataclass
class Run:
    """One run of a program of nccl-tests, or of nccom-test."""

    tool: Literal["nccl-tests", "nccom-test"] = "nccl-tests"
    line: Line | None = None
    marker: Marker | None = None
    pair: tuple[str, ...] = ()
    program: str = ""
    devices: list[Device] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    signals: Signals = field(default_factory=dict)
    average_gb_s: float | None = None
    out_of_bounds: int | None = None
    bounds: Line | None = None
    """The line with the number of values that were out of bounds."""

    is_out_of_bounds: bool = False
    memory_limit_bytes: int | None = None
    has_table: bool = False
    is_complete: bool = False
    exit_code: int | None = None
    bad_rows: list[Line] = field(default_factory=list)
    sizes_left_out: int = 0


@dataclass(frozen=True)
class Interfaces:
    """The number of EFA interfaces of a node, and the number that a job of hyperpod-cdk expected."""

    node: str
    found: int
    expected: int
    line: Line


Place = tuple[str, str]
"""A file and a pod, which is empty if the log contains none; the lines of one place are in the order of time."""


@dataclass
class Problem:
    """A known failure in the log; ``name`` is a key of ``problems.KNOWN``.

    ``last`` is the last line with it in each place.
    """

    name: str
    tally: Tally = field(default_factory=Tally)
    last: dict[Place, Line] = field(default_factory=dict)


@dataclass
class Health:
    """The result of one ``dcgmi diag`` as JSON data; ``of`` is the node, or the pod if the node is unknown.

    ``is_complete`` is false if its table or JSON is cut off.
    """

    of: str
    line: Line
    document: dict[str, Any]
    is_complete: bool = True


@dataclass
class Look:
    """A test of one node that starts in the log, recognized by the header or the container of its job.

    ``of`` is the node, or the pod if the node is unknown; ``results`` is the number of its results; ``nodes`` is the
    number of nodes of the job, if its header contains it.
    """

    kind: LookKind
    of: str
    line: Line
    nodes: int | None = None
    results: int = 0
    exit_code: int | None = None


@dataclass
class Log:
    """Everything that was found in a log.

    ``fabrics`` are the devices that fi_info lists, by pod and rank and by provider. ``instance_types`` are those in the
    headers of jobs; ``exits`` the failures that jobs report outside of a run; ``warnings`` all lines with NCCL WARN;
    ``lustre`` the transports of file systems that pods report, with their nodes; ``looks`` every test of a single node
    that was started; ``progress`` the last line in each place with the start or a result of a test; ``left_out`` the
    number of items of each kind that were not kept because the log has too many.
    """

    lines: int = 0
    files: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    signals: Signals = field(default_factory=dict)
    interfaces: Counter[int] = field(default_factory=Counter)
    counted: list[Interfaces] = field(default_factory=list)
    instance_types: set[str] = field(default_factory=set)
    exits: Tally = field(default_factory=Tally)
    problems: dict[str, Problem] = field(default_factory=dict)
    warnings: Tally = field(default_factory=Tally)
    fabrics: dict[Speaker, dict[str, set[str]]] = field(default_factory=dict)
    fabric_lines: Tally = field(default_factory=Tally)
    no_fabric: Tally = field(default_factory=Tally)
    health: list[Health] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    progress: dict[Place, Line] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    versions: dict[str, str] = field(default_factory=dict)
    lustre: dict[Transport, Tally] = field(default_factory=dict)
