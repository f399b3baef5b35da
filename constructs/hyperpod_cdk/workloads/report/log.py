"""What a log holds, before anybody judges it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from hyperpod_cdk.workloads.report.lines import Speaker

KEPT = 3
"""Lines that are kept of each kind, as evidence; the others are counted."""

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
"""What a line of NCCL says about the network: which one it uses, or why it does not use EFA."""


LookKind = Literal["dcgm", "efa-info", "neuron-info"]
"""What jobs look at on single nodes; also the names of their containers."""

Transport = Literal["efa", "tcp", "unknown"]
"""What pods reach Lustre over."""


class Line(NamedTuple):
    """A line as evidence: the file (empty: standard input), its number from 1, its words."""

    file: str
    number: int
    text: str


@dataclass
class Tally:
    """How often something was said, its first lines, and the hosts that said it."""

    count: int = 0
    lines: list[Line] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def add(self, line: Line, host: str = "") -> None:
        """Count a line, and keep it while there are few."""
        self.count += 1
        if len(self.lines) < KEPT:
            self.lines.append(line)
        if host:
            self.hosts.add(host)


Signals = dict[Signal, Tally]


@dataclass(frozen=True)
class Marker:
    """What the line before a collective says of it: job manifests of hyperpod-cdk write one."""

    collective: str = ""
    nodes: int | None = None


@dataclass(frozen=True)
class Device:
    """One rank's place: its host and the name of its GPU."""

    rank: int
    host: str
    name: str


@dataclass(frozen=True)
class Timing:
    """One measurement: bandwidths in GB/s and wrong elements; None where the log has no number."""

    algorithm_gb_s: float | None
    bus_gb_s: float | None
    wrong: int | None
    is_off: bool = False
    """Whether the largest error of its results is more than the type of its elements allows (old nccl-tests)."""

    is_compared: bool = False
    """Whether its results were compared with what they have to be."""


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
        """Its measurements, out-of-place before in-place."""
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
    """How many EFA interfaces a node showed, and how many a job of hyperpod-cdk expected of it."""

    node: str
    found: int
    expected: int
    line: Line


Place = tuple[str, str]
"""A file and a pod in it, empty if the log names none: the lines of one place are in the order of time."""


@dataclass
class Problem:
    """Something that went wrong, by what is known of such lines: ``name`` is a key of ``problems.KNOWN``.

    ``last`` has the last line with it, of each place.
    """

    name: str
    tally: Tally = field(default_factory=Tally)
    last: dict[Place, Line] = field(default_factory=dict)


@dataclass
class Health:
    """What one ``dcgmi diag`` found, in the form of its JSON; ``of`` is the node, or the pod where no node is named.

    ``is_complete`` is false where its table or its JSON ends before its last line.
    """

    of: str
    line: Line
    document: dict[str, Any]
    is_complete: bool = True


@dataclass
class Look:
    """A look at one node that the log begins: by the header of a job, or by the container that such a job has.

    ``of`` is the node, or the pod where no node is named; ``results`` counts what it found; ``nodes`` is of how many
    nodes the job is, where its header says so.
    """

    kind: LookKind
    of: str
    line: Line
    nodes: int | None = None
    results: int = 0
    exit_code: int | None = None


@dataclass
class Log:
    """All that was found.

    ``fabrics`` are the devices that fi_info lists: speaker -> provider -> devices. ``instance_types`` are those that
    jobs say they ran on; ``exits`` the failures that jobs report outside of a run; ``warnings`` all lines of NCCL WARN;
    ``lustre`` what pods say of the way to their file systems, with the nodes that they name; ``looks`` every look at a
    single node that was begun; ``progress`` the last line of each place that a test began or gave a result with;
    ``left_out`` what was not kept of a log that holds too much -> how often.
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
