"""Finds the output of network and GPU tests in a log; the log is a stream, and only results are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import get_args

from hyperpod_cdk.workloads.report import problems
from hyperpod_cdk.workloads.report.documents import Documents
from hyperpod_cdk.workloads.report.lines import Speaker, Words, words
from hyperpod_cdk.workloads.report.log import (
    Device,
    Interfaces,
    Line,
    Log,
    Look,
    LookKind,
    Marker,
    Place,
    Problem,
    Run,
    Signal,
    Tally,
    Transport,
)
from hyperpod_cdk.workloads.report.tables import Table, columns, finite

_SHOWN = 300
_READ = 4096
"""The number of characters of a line that are searched, except in documents; lines of these programs are shorter."""

_MOST_DEVICES = 100_000
_MOST_RUNS = 10_000
_MOST_LOOKS = 20_000
_MOST_PLACES = 20_000
_MOST_FABRICS = 20_000

_TELLING = (
    *(b"# ", b"NCCL WARN", b"NCCL version", b"busbw", b"bandwidth", b"_perf", b"nccom-test"),
    *(b"provider:", b"domain:", b"fi_getinfo", b'"DCGM', b'":"{', b'": "{', b"| Diagnostic", b"f bounds values"),
    *(b"/dcgm] ", b"/efa-info] ", b"/neuron-info] ", b" dcgm ", b" efa-info ", b" neuron-info "),
)
"""Texts in relevant lines that are not from NCCL; searching these is faster than a pattern."""

_TYPE_WORDS = (b"float", b"half", b"double", b"int", b"bf16", b"fp", b"f8e")
_TYPE = re.compile(rb"\b(?:float|half|double|u?int(?:8|16|32|64)|bfloat16|fp?8_?e\dm\d|(?:fp|bf)(?:8|16|32))\b")
_NETWORK = re.compile(
    rb"via NET/|Using network|NET/OFI (?:Sel|No |Only|Unable|Using|Init)|NET/(?:Plugin|Socket)|libnccl-net|NCCL version"
    rb"|Abort COMPLETE"
)
_ABORT = "Abort COMPLETE"

_SIGNALS: tuple[tuple[Signal, re.Pattern[str]], ...] = (
    ("efa", re.compile(r"NET/OFI Selected [Pp]rovider is efa\b")),
    ("other provider", re.compile(r"NET/OFI Selected [Pp]rovider is (?!efa\b)\S")),
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
_CHANNEL = re.compile(r"via NET/(?:AWS )?Libfabric/", re.IGNORECASE)
_GPUDIRECT = re.compile(r"via NET/[^\s/]{1,40}(?: Libfabric)?/[^\s/]{1,40}/GDRDMA\b")
_INTERFACES = re.compile(r"\(found (\d{1,4}) nics\)")
_HOST = re.compile(r"(?:^|[\s)>\]:])([\w.-]{1,255}):\d{1,10}:\d{1,10} \[\d{1,4}\]")
_VERSIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("NCCL", re.compile(r"NCCL version (\d[\w.+-]{0,60})")),
    ("aws-ofi-nccl", re.compile(r"NET/OFI (?:Initializing|Using) aws-ofi-nccl (\d?[\w.+-]{1,60})")),
    ("libfabric", re.compile(r"NET/OFI Using Libfabric version (\d[\w.+-]{0,60})")),
    ("nccl-tests", re.compile(r"# nccl-tests version (\d[\w.+-]{0,60})")),
)
_DEVICE = re.compile(
    r"#\s{1,20}Rank\s{1,20}(\d{1,7})\s{1,20}(?:Group\s{1,20}\d{1,7}\s{1,20})?Pid\s{1,20}\d{1,20}\s{1,20}on\s{1,20}(\S{1,255})"
    r"\s{1,20}device\s{1,20}\d{1,7}\s{1,20}\[[0-9a-fA-Fx:.]{1,40}\]\s{1,20}(.{1,80})"
)
_MARK = "hyperpod-cdk:"
_PAIR = "pair="
_COUNT = re.compile(r"\d{1,7}")
_START = re.compile(r"#\s{0,20}(?:nThread\s{1,20}\d{1,7} nGpus|Collective test starting:)")
_STARTING = re.compile(r"#\s{0,20}Collective test starting:\s{0,20}(\w{1,40})\s{0,20}$")
_PROGRAM = re.compile(r"\b([a-z_]{3,30})_perf\b")
_NCCOM = re.compile(r"\bnccom-test\b")
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
_LIMIT = re.compile(r"#\s{0,20}Reducing maxBytes to (\d{1,40}) due to memory limitation")
_OUT_OF_BOUNDS = re.compile(
    r"(?:#\s{0,20})?Out of bounds values\s{0,20}:\s{0,20}(\d{1,40})\s{0,20}(FAILED)?", re.IGNORECASE
)
_AVERAGE = re.compile(
    r"(?:#\s{0,20})?Avg bus bandwidth\s{0,20}:\s{0,20}([\d.]{1,40}(?:e[-+]?\d{1,9})?|-?nan|inf)", re.IGNORECASE
)
_PROVIDER = re.compile(r"provider:\s{0,20}([\w;-]{1,60})$")
_DOMAIN = re.compile(r"domain:\s{0,20}(\S{1,100})$")
_NO_FABRIC = re.compile(r"fi_getinfo(?:\(\))?:? ?-?\d{1,4}\b|\bret=-61\b")
_NO_DATA = "No data available"
_LOOKS: dict[str, LookKind] = {each: each for each in get_args(LookKind)}


def parse(lines: Iterable[bytes | str], *, file: str = "") -> Log:
    """Read a log; ``file`` is its name in the evidence (empty for standard input). Any bytes are accepted."""
    return parse_files([(file, lines)])


def parse_files(files: Iterable[tuple[str, Iterable[bytes | str]]]) -> Log:
    """Read several logs as one; ``logs`` contains name and lines of each, so that pairs can be in separate logs."""
    log = Log()
    for file, lines in files:
        log.files.append(file)
        _Reader(log, file).read(lines)
    return log


@dataclass
class _Stream:
    """The state of the output of one pod."""

    place: Place
    look: Look | None = None
    run: Run | None = None
    table: Table | None = None
    last: Run | None = None
    node: str = ""
    pair: tuple[str, ...] = ()
    program: str = ""
    marks: set[str] = field(default_factory=set)
    providers: dict[Speaker, str] = field(default_factory=dict)


def _may_be_relevant(line: bytes) -> bool:
    if _any_of(_TELLING, line) or line[-3:].rstrip()[-1:] in (b"#", b"{"):
        return True
    return (_any_of(_TYPE_WORDS, line) and _TYPE.search(line) is not None) or _any_of(problems.WORDS, line.lower())


def _any_of(words: Iterable[bytes], line: bytes) -> bool:
    for word in words:  # noqa: SIM110 - any() with a generator takes three times as long
        if word in line:
            return True
    return False


def _kinds(text: str) -> Iterator[Signal]:
    """Yield the first kind that a line matches, and whether it also shows GPUDirect."""
    for kind, pattern in _SIGNALS:
        if pattern.search(text):
            yield kind
            if _CHANNEL.search(text):
                yield "channel"
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
        for number, raw in self._relevant_lines(lines):
            found = words(raw)
            stream = self._streams.get(found.pod)
            if stream is None:
                stream = self._streams[found.pod] = _Stream((self._file, found.pod))
            line = Line(self._file, number, found.text[:_READ].strip()[:_SHOWN])
            if stream.look is None and (kind := _LOOKS.get(found.pod.rpartition("/")[2])) is not None:
                self._begin_look(stream, Look(kind, found.pod, line))
            documents = len(self._log.health)
            is_part = self._documents.feed(found, number, node=stream.node)
            if len(self._log.health) > documents:
                self._result(stream, line)
            if not is_part:
                self._look(stream, found._replace(text=found.text[:_READ]), line)
            if stream.table is not None and (stream.table.waits or stream.table.is_plain):
                self._waiting.add(found.pod)
            else:
                self._waiting.discard(found.pod)
        documents = len(self._log.health)
        self._documents.end()
        # a table at the end of the log counts as cut off, but its pod has reported a result
        cut = {health.of for health in self._log.health[documents:]}
        for stream in self._streams.values():
            if stream.look is not None and (stream.node or stream.place[1]) in cut:
                stream.look.results += 1
        for stream in self._streams.values():
            self._close(stream)

    def _relevant_lines(self, lines: Iterable[bytes | str]) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that may be relevant, each with its number; most lines of a long log are not."""
        network = _NETWORK.search
        number = 0
        for number, each in enumerate(lines, 1):
            line = each.encode("utf-8", "replace") if isinstance(each, str) else each
            if b"NCCL INFO" in line or b"CCOM INFO" in line:
                if network(line):
                    yield number, line
            elif self._waiting or self._documents.is_open or _may_be_relevant(line):
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
        """Read an NCCL line about the network that it uses, or about why it does not use EFA."""
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
        said = text[1:].lstrip()
        if said.startswith(_MARK):
            self._marker(stream, said.removeprefix(_MARK).strip(), line)
        elif match := _START.match(text):
            self._start(stream, "starting" if "starting" in match[0] else "threads", line)
            if match := _STARTING.match(text):
                self._run(stream, line).program = match[1].removesuffix("_perf")
        elif match := _DEVICE.match(text):
            run = self._run(stream, line)
            if len(run.devices) < _MOST_DEVICES:
                run.devices.append(Device(int(match[1]), self._node(match[2]), match[3].strip()))
        elif (names := columns(text)) is not None:
            self._head(stream, names, line)
        elif match := _LIMIT.match(text):
            self._run(stream, line).memory_limit_bytes = int(match[1][:20])
        elif match := _OUT_OF_BOUNDS.match(text):
            self._bounds(stream, match, line)
        elif match := _AVERAGE.match(text):
            self._end(stream, match[1], line)
        elif match := _VERSIONS[3][1].match(text):
            self._log.versions["nccl-tests"] = match[1]

    def _marker(self, stream: _Stream, text: str, line: Line) -> None:
        start = text.find(_PAIR)
        if start == 0 or (start > 0 and text[start - 1].isspace()):
            stream.pair = tuple(host.strip() for host in text[start + len(_PAIR) :].split(",") if host.strip())
            return
        parts = (word.partition("=") for word in text.split())
        values = {name: value for name, found, value in parts if found and value}
        self._log.instance_types.update(name for name in values.get("instance_type", "").split(",") if name)
        if "lustre" in values:
            self._lustre(values, line)
        elif "exit" in values:
            self._exit(stream, values["exit"], line, is_job="job" in text.split())
        elif "host" in values and "node" in values:
            self._nodes[values["host"].partition(".")[0]] = values["node"]
        elif "collective" in values:
            self._begin(stream, values, line)
        elif "node" in values:
            self._node_header(stream, text.split(maxsplit=1)[0], values, line)

    def _node_header(self, stream: _Stream, kind: str, values: dict[str, str], line: Line) -> None:
        stream.node = values["node"]
        nodes = values.get("nodes", "")
        look = stream.look
        if look is not None and not look.results and look.of == stream.place[1]:
            # the pod was found by its name before its header
            look.of, look.line = stream.node, line
        elif look is None or look.of != stream.node:
            look = Look(_LOOKS.get(kind, "efa-info"), stream.node, line)
            self._begin_look(stream, look)
        look.nodes = int(nodes) if _COUNT.fullmatch(nodes) else look.nodes
        found, expected = values.get("interfaces", ""), values.get("expected", "")
        if _COUNT.fullmatch(found) and _COUNT.fullmatch(expected):
            if len(self._log.counted) < _MOST_LOOKS:
                self._log.counted.append(Interfaces(stream.node, int(found), int(expected), line))
            self._result(stream, line)

    def _begin_look(self, stream: _Stream, look: Look) -> None:
        stream.look = look
        if len(self._log.looks) < _MOST_LOOKS:
            self._log.looks.append(look)
        else:
            self._log.left_out["nodes"] += 1

    def _result(self, stream: _Stream, line: Line) -> None:
        """Record that a test of a node has a result."""
        self._progress(stream, line)
        if stream.look is not None:
            stream.look.results += 1

    def _progress(self, stream: _Stream, line: Line) -> None:
        if stream.place in self._log.progress or len(self._log.progress) < _MOST_PLACES:
            self._log.progress[stream.place] = line

    def _bounds(self, stream: _Stream, match: re.Match[str], line: Line) -> None:
        run = self._run(stream, line)
        run.out_of_bounds = int(match[1][:20])
        run.is_out_of_bounds = run.out_of_bounds > 0 or match[2] is not None
        run.bounds = line

    def _lustre(self, values: dict[str, str], line: Line) -> None:
        for transport in get_args(Transport):
            if values["lustre"] == transport:
                self._log.lustre.setdefault(transport, Tally()).add(line, values.get("of", ""))

    def _exit(self, stream: _Stream, code: str, line: Line, *, is_job: bool) -> None:
        """Read a job's line about its exit code: of the current run, the last run, its node, or the whole job."""
        if not _COUNT.fullmatch(code) or int(code) == 0:
            return
        run = stream.run if stream.run is not None and stream.run.line is not None else stream.last
        if is_job:
            self._log.exits.add(line, stream.node or stream.place[1])
        elif run is not None:
            run.exit_code = int(code)
            self._close(stream)
        else:
            if stream.look is not None:
                stream.look.exit_code = int(code)
            self._log.exits.add(line, stream.node or stream.place[1])

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
        # the log starts in the middle of a table
        run = self._run(stream, line)
        run.has_table = True
        stream.table = Table(run)
        return stream.table.row(text, line)

    def _fabric(self, stream: _Stream, found: Words, line: Line) -> bool:
        text = found.text.strip()
        fabrics = self._log.fabrics
        if match := _PROVIDER.match(text):
            if found.speaker not in fabrics and len(fabrics) >= _MOST_FABRICS:
                self._log.left_out["lists of interfaces"] += 1
                return True
            stream.providers[found.speaker] = match[1]
            fabrics.setdefault(found.speaker, {}).setdefault(match[1], set())
            self._log.fabric_lines.add(line)
            return True
        if (match := _DOMAIN.match(text)) and (provider := stream.providers.get(found.speaker)):
            device = match[1].removesuffix("-rdm").removesuffix("-dgrm")
            fabrics[found.speaker][provider].add(device)
            self._result(stream, line)
            return True
        if _NO_FABRIC.search(text) or ("fi_getinfo" in text and _NO_DATA in text):
            self._log.no_fabric.add(line)
            return True
        return False

    def _other(self, stream: _Stream, text: str, line: Line) -> None:
        if match := _AVERAGE.match(text.strip()):
            self._end(stream, match[1], line)
            return
        if match := _OUT_OF_BOUNDS.match(text.strip()):
            self._bounds(stream, match, line)
            return
        for name, pattern in _VERSIONS[:1]:
            if name not in self._log.versions and (match := pattern.search(text)):
                self._log.versions[name] = match[1]
        if match := _NCCOM.search(text):
            words_after = text[match.end() :].split()
            asked = next((_NCCOM_OPERATIONS[word] for word in words_after if word in _NCCOM_OPERATIONS), "")
            stream.program = asked or stream.program
        elif match := _PROGRAM.search(text):
            stream.program = match[1]
        self._problem(stream, text, line)

    def _problem(self, stream: _Stream, text: str, line: Line) -> None:
        """Read a line about a failure."""
        if problems.WARNING in text:
            self._log.warnings.add(line)
            self._signals(stream, text, line)
        if (name := problems.name_of(text)) is not None:
            problem = self._log.problems.setdefault(name, Problem(name))
            problem.tally.add(line, stream.node or stream.place[1])
            if stream.place in problem.last or len(problem.last) < _MOST_PLACES:
                problem.last[stream.place] = line

    def _node(self, host: str) -> str:
        """Return the node of a worker pod if the job reported it, otherwise the name of the host."""
        return self._nodes.get(host.partition(".")[0], host)

    def _run(self, stream: _Stream, line: Line) -> Run:
        """Return the current run, or start one with this line."""
        run = stream.run = stream.run or Run()
        if run.line is None:
            run.line = line
            run.pair = stream.pair
            self._progress(stream, line)
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
        if len(self._log.runs) < _MOST_RUNS:
            self._log.runs.append(run)
        else:
            self._log.left_out["runs"] += 1
