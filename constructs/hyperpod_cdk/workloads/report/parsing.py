"""Finds in a log what tests of the fabric and of GPUs print; a stream, of which only what is found is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import get_args

from hyperpod_cdk.workloads.report import problems
from hyperpod_cdk.workloads.report.documents import Documents
from hyperpod_cdk.workloads.report.lines import Words, words
from hyperpod_cdk.workloads.report.log import (
    Device,
    Interfaces,
    Line,
    Log,
    Marker,
    Problem,
    Run,
    Signal,
    Tally,
    Transport,
)
from hyperpod_cdk.workloads.report.tables import Table, columns, finite

_SHOWN = 300
_MOST_DEVICES = 100_000

_TELLING = (
    *(b"# ", b"NCCL WARN", b"NCCL version", b"busbw", b"bandwidth", b"_perf", b"nccom-test"),
    *(b"provider:", b"domain:", b"fi_getinfo", b'"DCGM', b'":"{', b'": "{', b"| Diagnostic"),
)
"""What lines have that are not NCCL's own, where they tell something; looking for these is faster than a pattern."""

_TYPE_WORDS = (b"float", b"half", b"double", b"int", b"bf16", b"fp", b"f8e")
_TYPE = re.compile(rb"\b(?:float|half|double|u?int(?:8|16|32|64)|bfloat16|fp?8_?e\dm\d|(?:fp|bf)(?:8|16|32))\b")
_NETWORK = re.compile(
    rb"via NET/|Using network|NET/OFI (?:Sel|No |Only|Unable|Using|Init)|NET/(?:Plugin|Socket)|libnccl-net|NCCL version"
    rb"|Abort COMPLETE"
)
_ABORT = "Abort COMPLETE"

_SIGNALS: tuple[tuple[Signal, re.Pattern[str]], ...] = (
    ("efa", re.compile(r"NET/OFI Selected [Pp]rovider is efa\b")),
    ("other provider", re.compile(r"NET/OFI Selected [Pp]rovider is (?!efa\b)\S+")),
    ("libfabric", re.compile(r"Using network (?:AWS )?Libfabric|via NET/(?:AWS )?Libfabric/", re.IGNORECASE)),
    ("socket", re.compile(r"Using network Socket\b|via NET/Socket/")),
    ("infiniband", re.compile(r"Using network IB\b|via NET/IB/")),
    ("socket ready", re.compile(r"NET/Socket ?: ?Using ")),
    (
        "no plugin",
        re.compile(r"No plugin found \(libnccl-net|Could not find: libnccl-net(?!-)|libnccl-net\.so: cannot open"),
    ),
    (
        "no provider",
        re.compile(r"NET/OFI (?:No eligible providers|Only EFA provider is supported|Unable to find a protocol)"),
    ),
)
_GPUDIRECT = re.compile(r"via NET/\S+/GDRDMA\b")
_INTERFACES = re.compile(r"\(found (\d{1,4}) nics\)")
_HOST = re.compile(r"([\w.-]{1,255}):\d+:\d+ \[\d+\]")
_VERSIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("NCCL", re.compile(r"NCCL version (\d[\w.+-]{0,60})")),
    ("aws-ofi-nccl", re.compile(r"NET/OFI (?:Initializing|Using) aws-ofi-nccl (\d?[\w.+-]{1,60})")),
    ("libfabric", re.compile(r"NET/OFI Using Libfabric version (\d[\w.+-]{0,60})")),
    ("nccl-tests", re.compile(r"# nccl-tests version (\d[\w.+-]{0,60})")),
)
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d{1,7})\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S{1,255})\s+device\s+\d+\s+\[[0-9a-fA-Fx:.]+\]\s+(.{1,80})"
)
_MARKER = re.compile(r"#\s*hyperpod-cdk:\s*(.*)")
_PAIR = re.compile(r"(?:^|\s)pair=(.+)")
_COUNT = re.compile(r"\d{1,7}")
_VALUE = re.compile(r"(\w+)=(\S+)")
_START = re.compile(r"#\s*(?:nThread\s+\d+ nGpus|Collective test starting:)")
_STARTING = re.compile(r"#\s*Collective test starting:\s*(\w{1,40}?)(?:_perf)?\s*$")
_PROGRAM = re.compile(r"\b([a-z_]{3,30})_perf\b")
_NCCOM = re.compile(r"\bnccom-test\b(?P<rest>.*)")
_NCCOM_OPERATIONS = {
    "allr": "all_reduce",
    "all_reduce": "all_reduce",
    "allg": "all_gather",
    "all_gather": "all_gather",
    "redsct": "reduce_scatter",
    "reduce_scatter": "reduce_scatter",
    "sendrecv": "sendrecv",
    "alltoall": "alltoall",
}
_LIMIT = re.compile(r"#\s*Reducing maxBytes to (\d+) due to memory limitation")
_OUT_OF_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)")
_AVERAGE = re.compile(r"(?:#\s*)?Avg bus bandwidth\s*:\s*([\d.]+(?:e[-+]?\d+)?|-?nan|inf)\s*(?:GB/s)?", re.IGNORECASE)
_PROVIDER = re.compile(r"\s*provider:\s*([\w;-]{1,60})\s*$")
_DOMAIN = re.compile(r"\s*domain:\s*(\S{1,100})\s*$")
_NO_FABRIC = re.compile(r"fi_getinfo(?:\(\))?:? ?-?\d+|fi_getinfo.*No data available")


def parse(lines: Iterable[bytes | str], *, file: str = "") -> Log:
    """Read a log; ``file`` names it in the evidence (empty: standard input). Any bytes are taken."""
    return parse_files([(file, lines)])


def parse_files(files: Iterable[tuple[str, Iterable[bytes | str]]]) -> Log:
    """Read several logs, one after the other, as one: (name, lines) of each, so the pairs of a test may be apart."""
    log = Log()
    for file, lines in files:
        log.files.append(file)
        _Reader(log, file).read(lines)
    return log


@dataclass
class _Stream:
    """What is open in one pod's output."""

    run: Run | None = None
    table: Table | None = None
    last: Run | None = None
    node: str = ""
    pair: tuple[str, ...] = ()
    program: str = ""
    marks: set[str] = field(default_factory=set)
    providers: dict[str, str] = field(default_factory=dict)


def _may_tell(line: bytes) -> bool:
    if _any_of(_TELLING, line) or line[-3:].rstrip()[-1:] in (b"#", b"{"):
        return True
    return (_any_of(_TYPE_WORDS, line) and _TYPE.search(line) is not None) or _any_of(problems.WORDS, line.lower())


def _any_of(words: Iterable[bytes], line: bytes) -> bool:
    for word in words:  # noqa: SIM110 - any() with a generator takes three times as long
        if word in line:
            return True
    return False


def _kinds(text: str) -> Iterator[Signal]:
    """Give the first kind that a line is, and whether it tells of GPUDirect beside."""
    for kind, pattern in _SIGNALS:
        if pattern.search(text):
            yield kind
            if _GPUDIRECT.search(text):
                yield "gpudirect"
            return


class _Reader:
    """Reads one file into a log."""

    def __init__(self, log: Log, file: str) -> None:
        self._log = log
        self._file = file
        self._streams: dict[str, _Stream] = {}
        self._documents = Documents(log, file)
        self._waiting: set[str] = set()
        self._nodes: dict[str, str] = {}

    def read(self, lines: Iterable[bytes | str]) -> None:
        for number, line in self._told(lines):
            found = words(line)
            stream = self._streams.get(found.pod)
            if stream is None:
                stream = self._streams[found.pod] = _Stream()
            self._documents.feed(found, number, node=stream.node)
            self._look(stream, found, Line(self._file, number, found.text.strip()[:_SHOWN]))
            if stream.table is not None and (stream.table.waits or stream.table.is_plain):
                self._waiting.add(found.pod)
            else:
                self._waiting.discard(found.pod)
        self._documents.end()
        for stream in self._streams.values():
            self._close(stream)

    def _told(self, lines: Iterable[bytes | str]) -> Iterator[tuple[int, bytes]]:
        """Give the lines that may tell something, each with its number: most of a long log does not."""
        network = _NETWORK.search
        number = 0
        for number, each in enumerate(lines, 1):
            line = each.encode("utf-8", "replace") if isinstance(each, str) else each
            if b"NCCL INFO" in line or b"CCOM INFO" in line:
                if network(line):
                    yield number, line
            elif self._waiting or self._documents.is_open or _may_tell(line):
                yield number, line
        self._log.lines += number

    def _look(self, stream: _Stream, found: Words, line: Line) -> None:
        text = found.text
        if "NCCL INFO" in text or "CCOM INFO" in text:
            self._network(stream, text, line)
        elif text.lstrip().startswith("#"):
            self._comment(stream, text.strip(), line)
        elif not (self._row(stream, text, line) or self._fabric(stream, found, line)):
            self._other(stream, text, line)

    def _network(self, stream: _Stream, text: str, line: Line) -> None:
        for name, pattern in _VERSIONS[:3]:
            if name not in self._log.versions and (match := pattern.search(text)):
                self._log.versions[name] = match[1]
        if _ABORT in text:
            self._problem(stream, text, line)
        self._signals(stream, text, line)

    def _signals(self, stream: _Stream, text: str, line: Line) -> None:
        """Take what a line of NCCL says of the network that it uses, or why it does not use EFA."""
        kinds = tuple(_kinds(text))
        if not kinds:
            return
        speaker = _HOST.search(text)
        host = self._node(speaker[1]) if speaker else ""
        run = stream.run = stream.run or Run()
        for each in kinds:
            for signals in (self._log.signals, run.signals):
                signals.setdefault(each, Tally()).add(line, host)
        if match := _INTERFACES.search(text):
            self._log.interfaces[int(match[1])] += 1

    def _comment(self, stream: _Stream, text: str, line: Line) -> None:
        if match := _MARKER.match(text):
            self._marker(stream, match[1], line)
        elif match := _START.match(text):
            self._start(stream, "starting" if "starting" in match[0] else "threads", line)
            if match := _STARTING.match(text):
                self._run(stream, line).program = match[1]
        elif match := _DEVICE.match(text):
            run = self._run(stream, line)
            if len(run.devices) < _MOST_DEVICES:
                run.devices.append(Device(int(match[1]), self._node(match[2]), match[3].strip()))
        elif (names := columns(text)) is not None:
            self._head(stream, names, line)
        elif match := _LIMIT.match(text):
            self._run(stream, line).memory_limit_bytes = int(match[1][:20])
        elif match := _OUT_OF_BOUNDS.match(text):
            self._run(stream, line).out_of_bounds = int(match[1][:20])
        elif match := _AVERAGE.match(text):
            self._end(stream, match[1], line)
        elif match := _VERSIONS[3][1].match(text):
            self._log.versions["nccl-tests"] = match[1]

    def _marker(self, stream: _Stream, text: str, line: Line) -> None:
        if match := _PAIR.search(text):
            stream.pair = tuple(host.strip() for host in match[1].split(",") if host.strip())
            return
        values = dict(_VALUE.findall(text))
        self._log.instance_types.update(name for name in values.get("instance_type", "").split(",") if name)
        if "lustre" in values:
            self._lustre(values, line)
        elif "exit" in values:
            self._exit(stream, values["exit"], line)
        elif "host" in values and "node" in values:
            self._nodes[values["host"].partition(".")[0]] = values["node"]
        elif "collective" in values:
            self._begin(stream, values, line)
        elif "node" in values:
            stream.node = values["node"]
            found, expected = values.get("interfaces", ""), values.get("expected", "")
            if _COUNT.fullmatch(found) and _COUNT.fullmatch(expected):
                self._log.counted.append(Interfaces(stream.node, int(found), int(expected), line))

    def _lustre(self, values: dict[str, str], line: Line) -> None:
        for transport in get_args(Transport):
            if values["lustre"] == transport:
                self._log.lustre.setdefault(transport, Tally()).add(line, values.get("of", ""))

    def _exit(self, stream: _Stream, code: str, line: Line) -> None:
        """Take what a job says of a program that failed: of the run that is open, or of the last one."""
        if not _COUNT.fullmatch(code) or int(code) == 0:
            return
        run = stream.run if stream.run is not None and stream.run.line is not None else stream.last
        if run is None:
            self._log.exits.add(line)
            return
        run.exit_code = int(code)
        self._close(stream)

    def _begin(self, stream: _Stream, values: dict[str, str], line: Line) -> None:
        self._close(stream)
        nodes = values.get("nodes", "")
        run = self._run(stream, line)
        run.marker = Marker(
            collective=values["collective"],
            nodes=int(nodes) if _COUNT.fullmatch(nodes) else None,
        )

    def _start(self, stream: _Stream, mark: str, line: Line) -> None:
        has_begun = mark in stream.marks or (mark == "starting" and "threads" in stream.marks)
        if has_begun or (stream.run is not None and stream.run.has_table):
            self._close(stream)
        self._run(stream, line)
        stream.marks.add(mark)

    def _head(self, stream: _Stream, names: tuple[str, ...], line: Line) -> None:
        if stream.run is not None and stream.run.has_table:
            self._close(stream)
        run = self._run(stream, line)
        run.has_table = True
        stream.table = Table(run, names)
        run.tool = stream.table.tool

    def _row(self, stream: _Stream, text: str, line: Line) -> bool:
        if stream.table is None and (names := columns(text)) is not None:
            self._head(stream, names, line)
            return True
        if stream.table is not None:
            return stream.table.row(text, line)
        trial = Table(Run())
        if not trial.row(text, line) or trial.waits:
            return False
        # the log begins within a table
        run = self._run(stream, line)
        run.has_table = True
        stream.table = Table(run)
        return stream.table.row(text, line)

    def _fabric(self, stream: _Stream, found: Words, line: Line) -> bool:
        if match := _PROVIDER.match(found.text):
            stream.providers[found.speaker] = match[1]
            self._log.fabrics.setdefault(found.speaker, {}).setdefault(match[1], set())
            self._log.fabric_lines.add(line)
            return True
        if (match := _DOMAIN.match(found.text)) and (provider := stream.providers.get(found.speaker)):
            device = re.sub(r"-(?:rdm|dgrm)$", "", match[1])
            self._log.fabrics[found.speaker][provider].add(device)
            return True
        if _NO_FABRIC.search(found.text):
            self._log.no_fabric.add(line)
            return True
        return False

    def _other(self, stream: _Stream, text: str, line: Line) -> None:
        if match := _AVERAGE.match(text.strip()):
            self._end(stream, match[1], line)
            return
        for name, pattern in _VERSIONS[:1]:
            if name not in self._log.versions and (match := pattern.search(text)):
                self._log.versions[name] = match[1]
        if match := _NCCOM.search(text):
            asked = next((_NCCOM_OPERATIONS[word] for word in match["rest"].split() if word in _NCCOM_OPERATIONS), "")
            stream.program = asked or stream.program
        elif match := _PROGRAM.search(text):
            stream.program = match[1]
        self._problem(stream, text, line)

    def _problem(self, stream: _Stream, text: str, line: Line) -> None:
        """Take a line that says that something failed."""
        if problems.WARNING in text:
            self._log.warnings.add(line)
            self._signals(stream, text, line)
        if (name := problems.name_of(text)) is not None:
            problem = self._log.problems.setdefault(name, Problem(name))
            problem.tally.add(line)
            problem.last = line

    def _node(self, host: str) -> str:
        """Give the node of a worker pod, where the job told it; else the host's own name."""
        return self._nodes.get(host.partition(".")[0], host)

    def _run(self, stream: _Stream, line: Line) -> Run:
        """Give the run that is open, or open one; it begins with this line."""
        run = stream.run = stream.run or Run()
        if run.line is None:
            run.line = line
            run.pair = stream.pair
        return run

    def _end(self, stream: _Stream, average: str, line: Line) -> None:
        if stream.run is None or not stream.run.has_table:
            return
        stream.run.average_gb_s = finite(average)
        stream.run.is_complete = True
        if stream.run.average_gb_s is None:
            stream.run.bad_rows.append(line)
        self._close(stream)

    def _close(self, stream: _Stream) -> None:
        if stream.table is not None:
            stream.table.end()
        run, stream.run, stream.table = stream.run, None, None
        stream.marks.clear()
        if run is None or run.line is None:
            return
        run.program = run.program or stream.program
        stream.last = run
        self._log.runs.append(run)
