"""What is found in logs, regardless of other text."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.workloads.report import judge, parse, parse_files, read_lines, report_json, text
from hyperpod_cdk.workloads.report.lines import LONGEST, Speaker, words
from hyperpod_cdk.workloads.report.measures import collective, plateau
from tests.support.tables import row_by_row
from tests.workloads.report import logs_like as making

LOGS = Path(__file__).parent / "logs"


def test_the_real_log_is_read_whole() -> None:
    with (LOGS / "nccl-g5-8xlarge.log").open("rb") as stream:
        log = parse(read_lines(stream), file="nccl.log")
    (run,) = log.runs
    assert log.lines == 44
    assert log.versions == {"NCCL": "2.26.2+cuda12.2"}
    assert [device.host for device in run.devices] == ["efa-nccl-test-worker-0", "efa-nccl-test-worker-1"]
    assert {device.name for device in run.devices} == {"NVIDIA A10G"}
    assert (len(run.sizes), run.sizes[0].bytes, run.sizes[-1].bytes) == (30, 8, 4294967296)
    assert (run.average_gb_s, run.out_of_bounds, run.memory_limit_bytes) == (1.35737, 0, 7624021333)
    assert plateau(run) == 2.88
    assert collective(run) == ("all_reduce", "columns")
    assert run.sizes[19].line.number == 32
    assert run.is_complete


@row_by_row(
    "line, text_, pod, rank",
    [
        (b"[1,0]<stdout>:# x", "# x", "", "0"),
        (b"[1,15]<stderr>: # x", "# x", "", "15"),
        (b"[prterun-host-1@1,3]<stdout>: x", "x", "", "3"),
        (b"[pod/nccl-launcher-abc/mpi] [1,0]<stdout>:x", "x", "pod/nccl-launcher-abc/mpi", "0"),
        (b"nccl-h100-launcher-abc launcher [1,0]<stdout>:x", "x", "pod/nccl-h100-launcher-abc/launcher", "0"),
        (b"a worker went away", "a worker went away", "", ""),
        (b"2026-11-20T10:00:00.123456789Z [1,0]<stdout>:   8 2 float", "  8 2 float", "", "0"),
        (b"2025-06-17 16:23:09 x", "x", "", ""),
        (b"2026-11-20T10:00:00.1Z stdout F [1,0]<stdout>:x", "x", "", "0"),
        (b"0:   8   2   float", "  8   2   float", "", ""),
        (b"12: # x", "# x", "", ""),
        (b"10.3.35.83: # x", "# x", "", ""),
        (b"ip-10-3-60-130: # x", "# x", "", ""),
        (b"\x1b[32m[1,0]<stdout>:\x1b[0mx\x1b[K\r\n", "x", "", "0"),
        (b'{"log":"[1,0]<stdout>:x\\n","stream":"stdout"}', "x", "", "0"),
        (b"a\x00b\xc2\x9bc\xe2\x80\xaed", "a b c d", "", ""),
        (b"\xff\xfex", "\ufffd\ufffdx", "", ""),
        (b'{"log": 5}', '{"log": 5}', "", ""),
    ],
)
def test_prefixes_of_a_line_are_removed(line: bytes, text_: str, pod: str, rank: str) -> None:
    assert words(line) == (text_, pod, rank)


def test_lines_longer_than_the_limit_are_cut_and_the_next_one_is_whole() -> None:
    stream = io.BytesIO(b"x" * (10 << 20) + b"\n" + b"next\n")
    lines = list(read_lines(stream))
    assert [len(line) for line in lines] == [LONGEST, 5]


def test_utf_16_of_a_windows_shell_is_read(tmp_path: Path) -> None:
    path = tmp_path / "nccl.log"
    path.write_text("\n".join(making.run(["a", "b"], 437.0)), encoding="utf-16")
    with path.open("rb") as stream:
        (run,) = parse(read_lines(stream)).runs
    assert plateau(run) == 437.0


def test_a_packed_log_is_unpacked_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nccl.log.gz"
    packed = gzip.compress("\n".join(making.run(["a", "b"], 437.0)).encode())
    path.write_bytes(packed)
    with path.open("rb") as stream:
        (run,) = parse(read_lines(stream)).runs
    assert plateau(run) == 437.0
    path.write_bytes(packed[: len(packed) // 2])
    with path.open("rb") as stream, pytest.raises(OSError, match="the gzip data is damaged"):
        parse(read_lines(stream))


def test_a_log_without_an_end_is_refused() -> None:
    with Path("/dev/zero").open("rb") as stream, pytest.raises(OSError, match="and at most 3145728 are read"):
        parse(read_lines(stream, most=3 << 20))


def test_memory_does_not_grow_with_the_log() -> None:
    line = (
        b"[1,3]<stdout>:worker-3:1003:1103 [3] NCCL INFO Channel 00 : 3[3] -> 4[4] [send] via NET/Libfabric/3/GDRDMA\n"
    )
    tracemalloc.start()
    try:
        log = parse(line for _ in range(4_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert log.signals["libfabric"].count == log.signals["gpudirect"].count == 4_000
    assert len(log.signals["libfabric"].lines) == 3
    assert peak < 4_000 * len(line) / 2


def test_several_collectives_are_distinguished_by_what_precedes_them() -> None:
    lines = [
        making.marked("all_reduce", 2, "ml.p5.48xlarge"),
        *making.run(["a", "b"], 437.0),
        "+ mpirun -np 16 /opt/nccl-tests/build/all_gather_perf -b 8 -e 8G",
        *making.run(["a", "b"], 380.0, operation="none", ratio=0.9375),
        "# Collective test starting: sendrecv_perf",
        *making.run(["a", "b"], 40.0, operation="none", ratio=1.0),
    ]
    runs = parse(lines).runs
    assert [collective(run) for run in runs] == [
        ("all_reduce", "job"),
        ("all_gather", "program"),
        ("sendrecv", "program"),
    ]
    assert [plateau(run) for run in runs] == [437.0, 380.0, 40.0]


@row_by_row(
    "said, signals",
    [
        ("NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)", {"efa"}),
        ("NET/OFI Selected Provider is efa (found 4 nics)", {"efa"}),
        ("NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)", {"other provider"}),
        ("Using network AWS Libfabric", {"libfabric"}),
        ("Using network Libfabric", {"libfabric"}),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0", {"libfabric", "channel"}),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/Libfabric/0/GDRDMA", {"libfabric", "channel", "gpudirect"}),
        ("Using network Socket", {"socket"}),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/1", {"socket"}),
        ("Using network IB", {"infiniband"}),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", {"infiniband", "gpudirect"}),
        ("NET/Socket : Using [0]eth0:10.0.0.1<0>", {"socket ready"}),
        ("NET/Plugin: No plugin found (libnccl-net.so), using internal implementation", {"no plugin"}),
        ("NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.", {"no plugin"}),
        # the next name is tried
        ("NET/Plugin: Could not find: libnccl-net-ofi.so.", set()),
        ("NET/Plugin: dlerror=libnccl-net.so: cannot open shared object file No plugin found", {"no plugin"}),
        ("NET/OFI No eligible providers were found", {"no provider"}),
        ("NET/OFI Only EFA provider is supported", {"no provider"}),
        ("NET/OFI Unable to find a protocol that worked", {"no provider"}),
        ("NET/OFI Initializing aws-ofi-nccl 1.17.2", set()),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", set()),
    ],
)
def test_what_nccl_says_of_its_network(said: str, signals: set[str]) -> None:
    log = parse([f"worker-0:30:41 [0] NCCL INFO {said}"])
    assert set(log.signals) == signals
    assert {host for tally in log.signals.values() for host in tally.hosts} == ({"worker-0"} if signals else set())


@row_by_row(
    "operation, root, ratio, hosts, found",
    [
        ("sum", -1, 1.875, 2, "all_reduce"),
        ("sum", -1, 0.9375, 2, "reduce_scatter"),
        ("sum", 0, 1.0, 2, "reduce"),
        ("none", 0, 1.0, 2, "broadcast"),
        ("none", -1, 1.0, 2, "sendrecv"),
        ("none", -1, 0.9375, 2, None),
        ("sum", -1, 1.5, 2, None),
        # how many ranks there were is not in the log: only all_reduce moves more than its messages
        ("sum", -1, 1.875, 0, "all_reduce"),
        ("sum", -1, 0.9375, 0, None),
        ("sum", 0, 1.875, 0, None),
        ("none", -1, 1.875, 0, None),
    ],
)
def test_columns_show_the_collective_where_only_one_fits(
    operation: str, root: int, ratio: float, hosts: int, found: str | None
) -> None:
    names = [f"h{index}" for index in range(hosts)]
    (run,) = parse(making.run(names, 300.0, operation=operation, root=root, ratio=ratio)).runs
    assert collective(run) == (found, "columns" if found else "unknown")


def test_the_columns_of_older_versions_are_read() -> None:
    lines = [
        "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error",
        "  1073741824     268435456   float     sum    35215   30.49   57.17  4e-07    35198   30.51   57.20  4e-07",
        "  2147483648     536870912   float            64782   16.57   31.77  7e-07    64827   16.56   31.75  N/A",
    ]
    (run,) = parse(lines).runs
    first, second = run.sizes
    assert (first.operation, first.root) == ("sum", None)
    assert first.out_of_place is not None
    assert (first.out_of_place.algorithm_gb_s, first.out_of_place.bus_gb_s) == (30.49, 57.17)
    assert first.out_of_place.wrong is None
    assert second.operation == ""
    assert second.in_place is not None
    assert second.in_place.bus_gb_s == 31.75


def test_the_columns_of_a_report_for_each_iteration_are_read() -> None:
    half = "time algbw busbw #wrong i_min i_max i_p99 i_cv"
    lines = [
        f"# size count type redop root {half} {half}",
        "  1024 256 float sum -1 10.0 1.00 1.88 0 9.1 11.0 10.9 0.02 12.0 2.00 3.75 N/A 9.1 11.0 10.9 0.02",
    ]
    (run,) = parse(lines).runs
    (size,) = run.sizes
    assert size.out_of_place is not None
    assert size.in_place is not None
    assert (size.out_of_place.bus_gb_s, size.out_of_place.wrong) == (1.88, 0)
    assert (size.in_place.bus_gb_s, size.in_place.wrong) == (3.75, None)


def test_a_row_that_other_output_broke_is_put_together() -> None:
    lines = [
        *making.HEAD,
        "  1073741824     268435456     float     sum      -1host:7:7 [0] NCCL INFO Launch mode Parallel",
        "host:7:7 [0] NCCL INFO comm 0x1 rank 0",
        "  4607.6  233.04  436.95      0",
        "  4565.6  235.18  440.96      0",
    ]
    # the broken row is a line of NCCL's too: only its beginning is the table's
    lines[3] = lines[3].replace("NCCL INFO", "something")
    (run,) = parse(lines).runs
    (size,) = run.sizes
    assert size.out_of_place is not None
    assert size.in_place is not None
    assert (size.out_of_place.bus_gb_s, size.in_place.bus_gb_s) == (436.95, 440.96)


def test_a_log_that_begins_within_a_table_is_read() -> None:
    (run,) = parse(making.rows(437.0)).runs
    assert len(run.sizes) == len(making.SIZES)
    assert not run.is_complete
    # the next table is that of another run, with a preamble or without
    assert len(parse([*making.rows(437.0), *making.HEAD, *making.rows(430.0)]).runs) == 2


def test_tables_of_several_pods_may_be_mixed() -> None:
    one, two = making.run(["a", "b"], 437.0), making.run(["c", "d"], 200.0)
    lines = []
    for left, right in zip(one, two, strict=True):
        lines += [f"[pod/one/mpi] [1,0]<stdout>:{left}", f"[pod/two/mpi] [1,0]<stdout>:{right}"]
    assert sorted(plateau(run) or 0.0 for run in parse(lines).runs) == [200.0, 437.0]


def test_numbers_that_are_none_are_reported_and_not_taken() -> None:
    lines = [*making.HEAD, making.row(1024, "nan"), making.row(2048, "inf"), making.row(4096, 5.0)]
    (run,) = parse(lines).runs
    assert plateau(run) == 5.0
    assert len(run.bad_rows) == 4


@row_by_row(
    "operation, found",
    [
        ("allr", "all_reduce"),
        ("all_reduce", "all_reduce"),
        ("allg", "all_gather"),
        ("all_gather", "all_gather"),
        ("redsct", "reduce_scatter"),
        ("reduce_scatter", "reduce_scatter"),
        ("sendrecv", "sendrecv"),
        ("alltoall", "alltoall"),
    ],
)
def test_nccom_test_is_read(operation: str, found: str) -> None:
    lines = [
        f"nccom-test -r 64 -N 2 -b 8 -e 64M {operation}",
        "     size(B)    count(elems)     type    time:avg(us)    time:p50(us)    algbw(GB/s)    busbw(GB/s)",
        "    33554432         8388608     fp32          768.1           768          40.69          60.69",
        "Avg bus bandwidth:      60.6901GB/s",
    ]
    (run,) = parse(lines).runs
    assert (run.tool, collective(run), plateau(run), run.average_gb_s) == (
        "nccom-test",
        (found, "program"),
        60.69,
        60.6901,
    )
    (size,) = run.sizes
    assert size.out_of_place is not None
    assert (size.out_of_place.bus_gb_s, size.in_place, run.bad_rows) == (60.69, None, [])


def test_interfaces_are_counted_pod_by_pod() -> None:
    log = parse((LOGS / "efa-info.log").read_bytes().splitlines())
    assert log.fabrics == {
        Speaker("pod/efa-info-0-x2k/efa-info", rank=""): {"efa": {"rdmap0s29", "rdmap32s29"}},
        Speaker("pod/efa-info-1-7qd/efa-info", rank=""): {"efa": {"rdmap0s29"}},
    }


@pytest.mark.parametrize("key", ["DCGM Diagnostic", "DCGM GPU Diagnostic"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_diagnostic_is_found_in_whatever_surrounds_it(key: str, indent: int | None) -> None:
    document = {key: {"test_categories": [{"category": "Hardware", "tests": []}]}, "metadata": {"x": "} {"}}
    lines = ["{ not closed", "noise", *json.dumps(document, indent=indent).splitlines(), "more"]
    (health,) = parse(lines).health
    assert health.document == document
    assert health.line.number == 3


def test_files_are_named_and_their_lines_numbered_apart() -> None:
    files = [("a.log", making.run(["a", "b"], 437.0)), ("b.log", ["", *making.run(["c", "d"], 430.0)])]
    log = parse_files(files)
    assert [(run.line.file, run.line.number) for run in log.runs if run.line] == [("a.log", 1), ("b.log", 2)]
    assert log.files == ["a.log", "b.log"]
    assert log.lines == sum(len(lines) for _, lines in files)


_FRAGMENTS = st.sampled_from(
    [
        *making.run(["a", "b"], 437.0, each=1),
        making.EFA,
        "h:1:1 [0] " + making.SOCKET,
        '{"DCGM Diagnostic": {"test_categories": [3,',
        "}",
        "{",
        "provider: efa",
        "  domain: x-rdm",
        "# hyperpod-cdk: pair=a,b",
        "# hyperpod-cdk: exit=1",
        "8 2 float nan inf 1e999",
        "8 2 float 1 1e308 1e308 0 1 1e308 1e308 0",
    ]
)


@given(st.lists(st.one_of(st.binary(max_size=60), _FRAGMENTS.map(str.encode)), max_size=40))
def test_any_bytes_give_a_report_that_can_be_written(lines: list[bytes]) -> None:
    report = judge(parse(lines))
    assert json.loads(report_json(report))["lines"] == len(lines)
    drawn = text(report, 80)
    assert all(len(line) <= 80 for line in drawn.splitlines())
    assert "\x1b" not in drawn
