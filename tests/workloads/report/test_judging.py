"""Verdicts: each one is based on lines of the log, and nothing passes without published values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hyperpod_cdk.workloads.report import (
    Report,
    judge,
    parse,
    read_lines,
    report_json,
    report_schema,
)
from tests.support.tables import row_by_row
from tests.workloads.report.logs_like import EFA, HEAD, SOCKET, devices, info, marked, row, run

LOGS = Path(__file__).parent / "logs"
P5, P4D = "ml.p5.48xlarge", "ml.p4d.24xlarge"
A100 = "NVIDIA A100-SXM4-40GB"
NO_PLUGIN = "NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)"


def _report(lines: list[str], **how: Any) -> Report:
    return judge(parse(lines), **how)


def _checks(report: Report) -> dict[str, tuple[str, str]]:
    return {check.name: (str(check.verdict), check.says) for check in report.checks}


def _real(**how: Any) -> Report:
    with (LOGS / "nccl-g5-8xlarge.log").open("rb") as stream:
        return judge(parse(read_lines(stream)), **how)


def test_the_real_log_is_unknown_as_it_does_not_name_its_network() -> None:
    report = _real(instance_type="ml.g5.8xlarge", nodes=2)
    assert (report.verdict, report.summary) == ("unknown", "the log does not say whether EFA or TCP is in use")
    assert _checks(report) == {
        "network": ("unknown", "the log does not say whether EFA or TCP is in use"),
        "bandwidth": (
            "pass",
            (
                "all_reduce reached 2.88 GB/s, 100 % of the 2.88 GB/s published for 2 nodes at 4 GiB (in doubt: one"
                " run, whose log does not say which network NCCL used; other one-GPU nodes reached 2.0 over TCP and"
                " 2.8 over EFA)"
            ),
        ),
        "results": ("pass", "no wrong element"),
    }
    (found,) = report.runs
    assert (found.plateau_gb_s, found.average_gb_s, found.wrong) == (2.88, 1.35737, 0)


def test_without_a_type_the_gpus_name_shows_which_are_possible() -> None:
    report = _real()
    assert report.instance_type is None
    assert report.instance_type_from == "device"
    assert set(report.instance_types) == {f"ml.g5.{size}xlarge" for size in ("", 2, 4, 8, 12, 16, 24, 48)}
    assert _checks(report)["bandwidth"] == ("unknown", "all_reduce reached 2.88 GB/s; its instance type is unknown")


def test_a_fast_run_over_efa_passes_with_its_evidence() -> None:
    direct = "NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Libfabric/0/GDRDMA"
    report = _report([marked("all_reduce", 2, P5), *run(["a", "b"], 437.0, said=(EFA, direct))])
    assert report.verdict == "pass"
    assert (report.instance_type, report.instance_type_from, report.nodes_from) == (P5, "job", "job")
    assert (report.network.state, report.network.interfaces, report.network.gpudirect) == ("efa", 32, True)
    assert _checks(report) == {
        "network": ("pass", "EFA is in use, with GPUDirect RDMA"),
        "interfaces": ("pass", "all 32 EFA interfaces found"),
        "bandwidth": ("pass", "all_reduce reached 437 GB/s, 99 % of the 438 GB/s published for 2 nodes at 2 GiB"),
        "results": ("pass", "no wrong element"),
    }
    first = report.network.evidence[0]
    assert (first.line, first.text) == (21, f"a:30:41 [0] {EFA}")


def test_tcp_instead_of_efa_fails_and_says_why() -> None:
    report = _report(run(["a", "b"], 4.1, name=A100, said=(NO_PLUGIN, SOCKET)), instance_type=P4D)
    network, bandwidth = report.checks[0], report.checks[1]
    assert (network.verdict, network.says) == ("fail", "TCP is in use instead of EFA")
    assert network.fix == "use an image with aws-ofi-nccl, and add its folder to LD_LIBRARY_PATH"
    assert [line.text for line in network.evidence][:1] == [f"a:30:41 [0] {SOCKET}"]
    assert bandwidth.says == (
        "all_reduce reached 4.10 GB/s, 5 % of the 77.3 GB/s published for 2 nodes at 2 GiB, about what TCP reaches"
        " (4.13 GB/s)"
    )
    assert report.network.hosts_on_tcp == ("a", "b")


@row_by_row(
    "said, instance_type, state, check",
    [
        ((SOCKET,), "ml.g5.2xlarge", "tcp", ("pass", "TCP is in use; the instance type has no EFA")),
        ((SOCKET,), P5, "tcp", ("fail", "TCP is in use instead of EFA")),
        (("NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",), P5, "tcp", ("fail", "TCP is in use instead of EFA")),
        ((EFA, "NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>"), P5, "efa", ("pass", "EFA is in use")),
        (("NCCL INFO Using network AWS Libfabric",), P5, "efa", ("pass", "EFA is in use")),
        (
            ("NCCL INFO NET/OFI Selected Provider is tcp", "NCCL INFO Using network AWS Libfabric"),
            P5,
            "other",
            ("fail", "a network other than EFA is in use instead of EFA"),
        ),
        ((), P5, "unknown", ("unknown", "the log does not say whether EFA or TCP is in use")),
        ((), "ml.g5.2xlarge", "unknown", None),
    ],
)
def test_the_network_is_judged_by_what_the_type_has(
    said: tuple[str, ...], instance_type: str, state: str, check: tuple[str, str] | None
) -> None:
    report = _report(run(["a", "b"], 2.0, said=said, name="GPU"), instance_type=instance_type)
    assert report.network.state == state
    assert _checks(report).get("network") == check


def test_without_a_type_tcp_is_judged_only_where_all_possible_types_agree() -> None:
    a10g = _report(run(["a", "b"], 2.0, said=(SOCKET,), name="NVIDIA A10G", each=1))
    silent = _report(run(["a", "b"], 2.0, said=(), name="NVIDIA A10G", each=1))
    assert _checks(silent)["network"] == ("unknown", "the log does not say whether EFA or TCP is in use")
    h100 = _report(run(["a", "b"], 2.0, said=(SOCKET,)))
    assert _checks(a10g)["network"] == ("unknown", "TCP is in use; whether the instance type has EFA is unknown")
    assert _checks(h100)["network"] == ("fail", "TCP is in use instead of EFA")


def test_some_nodes_on_tcp_fail_by_name() -> None:
    lines = [*run(["a", "b"], 100.0), *info(["b"], SOCKET)]
    report = _report([marked("all_reduce", 2, P5), *lines])
    assert report.network.state == "mixed"
    assert _checks(report)["network"] == ("fail", "some nodes use TCP, others EFA (TCP: b)")
    assert {line.text.partition("] ")[2] for line in report.network.evidence} == {SOCKET, EFA}


@row_by_row(
    "plateau, instance_type, hosts, verdict",
    [
        (394.1, P5, 2, "pass"),
        (393.9, P5, 2, "fail"),
        (394.1, P5, 4, "pass"),
        (393.9, P5, 4, "unknown"),
        (440.0, P5, 1, "pass"),
        (300.0, P5, 1, "unknown"),
        (369.0, "ml.p5en.48xlarge", 2, "unknown"),
        (2.0, "ml.g5.8xlarge", 2, "unknown"),
    ],
)
def test_bandwidth_passes_from_nine_tenths_of_what_as_many_nodes_reached(
    plateau: float, instance_type: str, hosts: int, verdict: str
) -> None:
    names = [f"h{index}" for index in range(hosts)]
    sizes = (1 << 31, 1 << 34)
    lines = run(names, plateau, sizes=sizes, name="GPU")
    lines = [line.replace(row(1 << 34, plateau), row(1 << 34, plateau * 487.09 / 437.79)) for line in lines]
    report = _report([marked("all_reduce", hosts, instance_type), *lines])
    assert _checks(report)["bandwidth"][0] == verdict


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            [marked("all_gather", 2, P5), *run(["a", "b"], 300.0)],
            (
                "all_gather reached 300 GB/s; no published values of all_gather on ml.p5.48xlarge between nodes to"
                " compare it with"
            ),
        ),
        (
            [marked("all_reduce", 2, P5), *run(["a", "b"], 300.0, sizes=(8, 1 << 20))],
            "all_reduce reached 300 GB/s; the baseline is for 2 GiB, and no message was that large",
        ),
        (
            [marked("all_reduce", 1, P4D), *run(["a"], 230.0, name=A100, said=())],
            (
                "all_reduce reached 230 GB/s; no published values of all_reduce on ml.p4d.24xlarge on one node to"
                " compare it with"
            ),
        ),
    ],
)
def test_nothing_passes_without_published_values(lines: list[str], says: str) -> None:
    report = _report(lines)
    assert report.verdict == "unknown"
    assert _checks(report)["bandwidth"] == ("unknown", says)


def test_a_collective_without_a_baseline_holds_back_no_other() -> None:
    lines = [marked("all_reduce", 2, P5), *run(["a", "b"], 437.0), marked("all_gather", 2, P5), *run(["a", "b"], 300.0)]
    report = _report(lines)
    assert report.verdict == "pass"
    assert [str(each.verdict) for each in report.runs] == ["pass", "unknown"]


def test_wrong_results_fail_however_fast() -> None:
    lines = run(["a", "b"], 437.0)
    bad = row(1 << 33, 437.0, wrong=3)
    lines[-4] = bad
    report = _report([marked("all_reduce", 2, P5), *lines])
    assert _checks(report)["results"] == ("fail", "6 wrong elements (all_reduce)")
    assert next(check for check in report.checks if check.name == "results").evidence[0].text.split() == bad.split()


def test_results_that_were_not_compared_are_no_pass() -> None:
    lines = [line for line in run(["a", "b"], 437.0, wrong="N/A") if "Out of bounds" not in line]
    report = _report([marked("all_reduce", 2, P5), *lines])
    assert _checks(report)["results"] == ("unknown", "results were not verified (all_reduce)")
    assert (report.verdict, report.runs[0].wrong) == ("unknown", None)


def test_a_log_that_ends_within_its_table_fails() -> None:
    report = _report([marked("all_reduce", 2, P5), *run(["a", "b"], 437.0, complete=False)])
    assert _checks(report)["completeness"] == ("fail", "all_reduce ends after 11 sizes")
    assert report.verdict == "fail"


@pytest.mark.parametrize(
    ("line", "code", "says", "completeness"),
    [
        (
            "w:1:1 [0] socket.cc:1 NCCL WARN NET/OFI handshake failed",
            124,
            "nodes cannot reach each other over EFA",
            "all_reduce did not end in time, before the first size",
        ),
        (
            "w: Test CUDA failure common.cu:891 'out of memory'",
            3,
            "a GPU had no memory left",
            "all_reduce failed with exit code 3 before the first size",
        ),
        (
            "w:1:1 [0] enqueue.cc:1 NCCL WARN Cuda failure 2 'out of memory'",
            3,
            "a GPU had no memory left",
            "all_reduce failed with exit code 3 before the first size",
        ),
        (
            "mpirun noticed that process rank 3 with PID 0 exited on signal 9 (Killed).",
            137,
            "a process was killed, as Linux does when a pod runs out of memory",
            "all_reduce was killed before the first size",
        ),
        (
            "w:1:1 [0] shmutils.cc:1 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x (size 1)",
            1,
            "/dev/shm was too small",  # noqa: S108 - a message
            "all_reduce failed with exit code 1 before the first size",
        ),
    ],
)
def test_a_run_that_broke_fails_with_what_broke_it(line: str, code: int, says: str, completeness: str) -> None:
    lines = [marked("all_reduce", 2, P5), *devices(["a", "b"]), line, f"# hyperpod-cdk: exit={code}"]
    report = _report(lines)
    assert report.verdict == "fail"
    assert _checks(report)["errors"] == ("fail", says)
    assert _checks(report)["completeness"] == ("fail", completeness)
    assert report.runs[0].exit_code == code


def test_a_program_that_failed_after_its_table_fails() -> None:
    lines = [marked("all_reduce", 2, P5), *run(["a", "b"], 437.0), "# hyperpod-cdk: exit=1"]
    report = _report(lines)
    assert report.verdict == "fail"
    assert _checks(report)["completeness"] == ("fail", "all_reduce failed with exit code 1 after 11 sizes")


def test_a_program_that_failed_for_its_wrong_results_is_reported_once() -> None:
    lines = run(["a", "b"], 437.0)
    lines[-4] = row(1 << 33, 437.0, wrong=1)
    report = _report([marked("all_reduce", 2, P5), *lines, "# hyperpod-cdk: exit=1"])
    assert [check.name for check in report.checks if check.verdict == "fail"] == ["results"]


def test_errors_before_a_run_that_came_to_its_end_are_no_failure() -> None:
    lines = ["ssh: Could not resolve hostname a: Name or service not known", marked("all_reduce", 2, P5)]
    assert _report([*lines, *run(["a", "b"], 437.0)]).verdict == "pass"


WARNED = "w:1:1 [0] topo.cc:1 NCCL WARN Missing iommu=pt from kernel command line"
BROKEN = "w:1:1 [0] net.cc:1 NCCL WARN NET/OFI Request 0x7f completed with error. RC: 113"


@pytest.mark.parametrize(
    ("after", "check"),
    [
        ([], None),
        ([WARNED], ("pass", "NCCL warned once, first in line 40; every run completed")),
        (
            [WARNED, BROKEN],
            (
                "unknown",
                "a transfer over EFA failed, although every run completed (NCCL warned twice, first in line 40)",
            ),
        ),
        (
            ["w:1:1 [0] NCCL INFO comm 0x7f rank 0 nranks 16 - Abort COMPLETE"],
            ("unknown", "a program aborted, although every run completed"),
        ),
        (
            ["mpirun noticed that process rank 3 with PID 0 exited on signal 11 (Segmentation fault)."],
            ("unknown", "a program crashed (segmentation fault), although every run completed"),
        ),
    ],
)
def test_failures_after_a_run_that_came_to_its_end_are_reported(
    after: list[str], check: tuple[str, str] | None
) -> None:
    report = _report([marked("all_reduce", 2, P5), *run(["a", "b"], 437.0), *after])
    assert _checks(report).get("errors") == check


def test_warnings_within_a_run_that_came_to_its_end_are_counted() -> None:
    report = _report([marked("all_reduce", 2, P5), *run(["a", "b"], 437.0, said=(EFA, "x NCCL WARN odd"))])
    assert report.verdict == "pass"
    assert _checks(report)["errors"] == ("pass", "NCCL warned twice, first in line 22; every run completed")
    (check,) = [check for check in report.checks if check.name == "errors"]
    assert [line.line for line in check.evidence] == [22]


@pytest.mark.parametrize(
    ("head", "row_"),
    [
        ("# size time algbw busbw", "8589934592 36.2 237.0 437.0"),
        ("# size count type algbw busbw time", "8589934592 2147483648 float 237.0 437.0 36.2"),
        ("# size type time busbw algbw", "8589934592 float 36.2 437.0 237.0"),
        (
            "# size(B) count(elems) type time:avg(us) time:p99(us) algbw(GB/s) busbw(GB/s)",
            "8589934592 2147483648 fp32 36 40 237 437.0",
        ),
    ],
)
def test_columns_are_found_by_their_names(head: str, row_: str) -> None:
    (found,) = _report(["# Collective test starting: all_reduce_perf", head, row_, "# Avg bus bandwidth : 437"]).runs
    assert [(size.bytes, size.out_of_place_gb_s, size.in_place_gb_s) for size in found.sizes] == [
        (8589934592, 437.0, None)
    ]


def test_fewer_nodes_than_asked_for_fail() -> None:
    report = _report(run(["a", "b"], 437.0), instance_type=P5, nodes=4)
    assert _checks(report)["nodes"] == ("fail", "2 nodes took part, not 4")
    (check,) = [check for check in report.checks if check.name == "nodes"]
    assert [line.line for line in check.evidence] == [1]


def test_gpus_of_another_type_are_reported() -> None:
    report = _report(run(["a", "b"], 437.0), instance_type="ml.g5.8xlarge")
    assert _checks(report)["instance type"] == (
        "unknown",
        "the GPUs of the log (NVIDIA H100 80GB HBM3) do not belong to ml.g5.8xlarge",
    )
    # beside the numbers of another type it would pass, or fail, for nothing
    assert (report.verdict, report.runs[0].comparison) == ("fail", None)
    assert _checks(report)["interfaces"] == ("fail", "32 EFA interfaces found on a node, ml.g5.8xlarge has 1")
    assert "all_reduce reached 437 GB/s; the log's GPUs are not those of ml.g5.8xlarge" in _checks(report)["bandwidth"]
    unknown = _report(run(["a", "b"], 437.0, name="NVIDIA Z9"), instance_type=P5)
    assert _checks(unknown)["instance type"] == (
        "unknown",
        "the GPUs of the log (NVIDIA Z9) do not belong to ml.p5.48xlarge",
    )


def test_an_unknown_type_is_refused_with_a_similar_name() -> None:
    with pytest.raises(ValueError, match=r"^must be an instance type") as refused:
        _report([], instance_type="p5.48xlarge")
    assert str(refused.value) == (
        'must be an instance type of the catalog, got "p5.48xlarge"; did you mean ml.p5.48xlarge?'
    )


def _pair(left: str, right: str, plateau: float | None) -> list[str]:
    lines = [f"# hyperpod-cdk: pair={left},{right}", marked("all_reduce", 2, P5)]
    return [*lines, *(run([f"{left}-w", f"{right}-w"], plateau) if plateau else ["# hyperpod-cdk: exit=124"])]


@pytest.mark.parametrize(
    ("measured", "says", "suspects"),
    [
        ([("a", "b", 437.0), ("c", "d", 430.0)], "all 2 pairs are within 10 % of their median", ()),
        (
            [("a", "b", 437.0), ("c", "d", 430.0), ("e", "f", 200.0)],
            "1 of 3 pairs slow: e and f at 200 GB/s, 46 % of the median",
            (),
        ),
        (
            [("a", "b", 437.0), ("c", "d", 430.0), ("e", "f", 200.0), ("a", "c", 436.0), ("f", "b", 435.0)],
            "1 of 5 pairs slow; e with every partner: e and f at 200 GB/s, 45 % of the median",
            ("e",),
        ),
        (
            [("a", "b", 437.0), ("c", "d", None), ("e", "f", 430.0)],
            "1 of 3 pairs slow: c and d measured nothing",
            (),
        ),
    ],
)
def test_the_slow_pair_is_named_and_its_node_where_partners_prove_it(
    measured: list[tuple[str, str, float | None]], says: str, suspects: tuple[str, ...]
) -> None:
    report = _report([line for left, right, plateau in measured for line in _pair(left, right, plateau)])
    assert _checks(report)["pairs"][1] == says
    assert report.suspects == suspects
    assert [pair.hosts for pair in report.pairs] == [(left, right) for left, right, _ in measured]


def test_a_collective_that_no_pair_finished_fails_beside_one_that_all_did() -> None:
    broken = [
        f"# hyperpod-cdk: pair={each}\n{marked('alltoall', 2, P5)}\n# hyperpod-cdk: exit=124" for each in ("a,b", "c,d")
    ]
    lines = [*_pair("a", "b", 437.0), *_pair("c", "d", 430.0), *"\n".join(broken).splitlines()]
    report = _report(lines)
    assert [(pair.collective, pair.verdict) for pair in report.pairs] == [
        ("all_reduce", "pass"),
        ("all_reduce", "pass"),
        ("alltoall", "fail"),
        ("alltoall", "fail"),
    ]
    assert report.verdict == "fail"


def test_pairs_are_recognized_without_the_lines_that_name_them() -> None:
    report = _report([*run(["a", "b"], 437.0), *run(["c", "d"], 200.0), *run(["e", "f"], 436.0)], instance_type=P5)
    assert _checks(report)["pairs"] == ("fail", "1 of 3 pairs slow: c and d at 200 GB/s, 45 % of the median")


def test_workers_are_called_by_their_nodes_where_the_job_says_which() -> None:
    lines = ["# hyperpod-cdk: host=w-0.w.default.svc node=hyperpod-i-0aa", marked("all_reduce", 2, P5)]
    report = _report([*lines, *run(["w-0", "w-1"], 437.0, said=(SOCKET,))])
    assert report.runs[0].hosts == ("hyperpod-i-0aa", "w-1")
    assert report.network.hosts_on_tcp == ("hyperpod-i-0aa", "w-1")


@pytest.mark.parametrize(
    ("instance_type", "check"),
    [
        ("ml.p5.48xlarge", ("fail", "1 of 32 EFA interfaces found (pod/efa-info-1-7qd/efa-info)")),
        ("ml.g6.8xlarge", ("fail", "2 EFA interfaces found on a node, ml.g6.8xlarge has 1")),
        (None, ("unknown", "1 EFA interface found on each node, or more")),
    ],
)
def test_interfaces_are_compared_with_those_of_the_type(instance_type: str | None, check: tuple[str, str]) -> None:
    lines = (LOGS / "efa-info.log").read_text(encoding="utf-8").splitlines()
    assert _checks(_report(lines, instance_type=instance_type)) == {"interfaces": check}


def test_interfaces_that_a_job_counted_are_reported_by_node() -> None:
    line = "# hyperpod-cdk: efa-info node={} instance_type=ml.p5.48xlarge interfaces={} expected=32 memlock=unlimited"
    good, bad = line.format("i-0a", 32), line.format("i-0b", 31)
    assert _checks(_report([good])) == {"interfaces": ("pass", "every EFA interface was found on 1 node")}
    assert _checks(_report([good, bad])) == {"interfaces": ("fail", "EFA interfaces are missing: 31 of 32 on i-0b")}


def test_no_interface_at_all_fails() -> None:
    report = _report(["fi_getinfo: -61 (No data available)"], instance_type=P5)
    assert _checks(report) == {"interfaces": ("fail", "no EFA interface was found")}


def test_a_failed_diagnostic_names_node_gpu_and_reason() -> None:
    report = _report((LOGS / "dcgm-4.log").read_text(encoding="utf-8").splitlines())
    assert _checks(report) == {
        "health": ("fail", "memory failed (hyperpod-i-0aa): GPU 5: Row remapping failed {uncorrectable}.")
    }
    assert [(test.name, test.status) for test in report.health] == [("memory", "fail"), ("pcie", "skip")]


@pytest.mark.parametrize(
    ("entity", "says"),
    [({"gpu_id": "3"}, "GPU 3: hot"), ({"entity_id": 0}, "GPU 0: hot"), ({"gpu_ids": ""}, "hot"), ({}, "hot")],
)
def test_a_warning_names_its_gpu_where_the_result_does(entity: dict[str, Any], says: str) -> None:
    tests = [{"name": "x", "results": [{**entity, "status": "Fail", "warnings": ["hot"]}]}]
    document = {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}}
    assert _checks(_report([json.dumps(document)])) == {"health": ("fail", f"x failed: {says}")}


@pytest.mark.parametrize(
    ("results", "check"),
    [
        (["Pass", "Pass"], ("pass", "DCGM: 2 passed")),
        (["Pass", "Skip"], ("unknown", "DCGM: 1 passed, 1 skipped: x")),
        (["Skip"], ("unknown", "DCGM: 1 skipped: x")),
        (["Warn", "Pass"], ("unknown", "DCGM: 1 passed, 1 warned: x")),
        ([], ("unknown", "DCGM: no test")),
    ],
)
def test_a_diagnostic_that_tested_nothing_passes_nothing(results: list[str], check: tuple[str, str]) -> None:
    tests = [{"name": "x", "results": [{"gpu_ids": "0,1", "status": status}]} for status in results]
    document = {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}}
    assert _checks(_report([json.dumps(document)])) == {"health": check}


def test_nccl_alone_shows_its_network_and_no_speed() -> None:
    report = _report(info(["a", "b"], EFA))
    assert report.verdict == "unknown"
    assert report.summary.startswith("EFA is in use; ")
    assert _checks(report)["bandwidth"] == ("unknown", "nothing was measured")


def test_a_log_without_any_test_says_so() -> None:
    report = _report(["hello", "loss: 0.3"])
    assert (report.verdict, report.summary) == (
        "unknown",
        "no test found in 2 lines; provide the complete log of nccl-tests, fi_info, nccom-test or dcgmi diag",
    )
    assert not report.holds_a_test


def test_numbers_that_are_none_are_no_pass() -> None:
    lines = [*HEAD, row(1 << 31, "nan"), row(1 << 32, 440.0), "# Avg bus bandwidth    : nan"]
    report = _report([marked("all_reduce", 2, P5), *devices(["a", "b"]), *lines])
    assert _checks(report)["completeness"] == ("unknown", "3 lines have no number where one is expected")


def test_every_report_fits_the_published_schema() -> None:
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    logs = [
        _real(),
        _report((LOGS / "dcgm-4.log").read_text(encoding="utf-8").splitlines()),
        _report((LOGS / "efa-info.log").read_text(encoding="utf-8").splitlines()),
        _report([*_pair("a", "b", 437.0), *_pair("c", "d", None)]),
        _report([]),
    ]
    for report in logs:
        jsonschema.validate(json.loads(report_json(report)), schema)
    assert all("description" in field or field.keys() & {"$ref", "items", "anyOf", "type"} for field in _fields(schema))


def _fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
    models = [schema, *schema["$defs"].values()]
    return [field for model in models for field in model.get("properties", {}).values()]


def _lustre(*said: str) -> tuple[str, str, str]:
    (check,) = _report([f"# hyperpod-cdk: lustre={each}" for each in said]).checks
    assert check.name == "lustre"
    return str(check.verdict), check.says, check.fix


def test_one_node_on_tcp_fails_lustre_over_efa() -> None:
    assert _lustre("efa of=n1", "tcp of=n2", "tcp of=n3", "unknown of=n4") == (
        "fail",
        "Lustre over TCP instead of EFA on n2, n3",
        (
            "read the output of step 50_lustre_client in the log of the node's lifecycle script, and 'journalctl -u"
            " hyperpod-lustre-efa' on the node"
        ),
    )


@pytest.mark.parametrize(
    ("nodes", "named"), [(4, "n0, n1, n2, n3"), (5, "n0, n1, n2, n3 and 1 more"), (9, "n0, n1, n2, n3 and 5 more")]
)
def test_four_nodes_on_tcp_are_named(nodes: int, named: str) -> None:
    assert _lustre(*(f"tcp of=n{number}" for number in range(nodes)))[1] == f"Lustre over TCP instead of EFA on {named}"


def test_an_unseen_lustre_transport_passes_nothing() -> None:
    assert _lustre("efa of=n1", "unknown")[:2] == ("unknown", "pods cannot see whether Lustre uses EFA")


def test_another_line_about_lustre_is_ignored() -> None:
    assert _report(["# hyperpod-cdk: lustre=fast of=n1"]).checks == ()


def test_lustre_over_tcp_fails_a_test_that_is_well_otherwise() -> None:
    report = _report(["# hyperpod-cdk: lustre=tcp of=n1", *run(["n1", "n2"], 100.0)], instance_type=P5, nodes=2)
    assert _checks(report)["lustre"] == ("fail", "Lustre over TCP instead of EFA on n1")
    assert report.verdict == "fail"
