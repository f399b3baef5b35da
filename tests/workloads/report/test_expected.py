"""Every node and test that a log expects must have a result: missing ones are reported, and nothing passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.workloads.report import Report, judge, parse
from tests.workloads.report.logs_like import EFA, marked, run

P5 = "ml.p5.48xlarge"
GOOD = json.dumps(
    {"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": [{"status": "Pass"}]}]}]}}
)
REFUSED = "Error: Unable to connect to host engine. Host engine connection invalid/disconnected."


def _report(*lines: str, **how: Any) -> Report:
    return judge(parse(lines), **how)


def _said(report: Report) -> dict[str, tuple[str, str]]:
    return {check.name: (str(check.verdict), check.says) for check in report.checks}


def _pod(number: int, *lines: str, kind: str = "dcgm") -> list[str]:
    return [f"[pod/check-{number}-x/{kind}] {line}" for line in lines]


def _header(node: str, nodes: int | None = None) -> str:
    of = "" if nodes is None else f" nodes={nodes}"
    return f"# hyperpod-cdk: dcgm node={node} instance_type={P5} level=3{of}"


def _counted(node: str, found: object = 32, nodes: int | None = None) -> str:
    of = "" if nodes is None else f" nodes={nodes}"
    return (
        f"# hyperpod-cdk: efa-info node={node} instance_type={P5} interfaces={found} expected=32{of} memlock=unlimited"
    )


def test_a_diagnostic_of_every_node_passes() -> None:
    whole = [_header("a", 2), GOOD, "# hyperpod-cdk: exit=0"]
    report = _report(*_pod(0, *whole), *_pod(1, whole[0].replace("node=a", "node=b"), *whole[1:]))
    assert (report.verdict, _said(report)) == ("pass", {"health": ("pass", "DCGM: 2 passed")})


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ((REFUSED, "# hyperpod-cdk: exit=226"), "DCGM did not run its diagnostics"),
        (("# hyperpod-cdk: exit=226",), "the test itself failed on b"),
        ((REFUSED,), "DCGM did not run its diagnostics"),
    ],
)
def test_a_diagnostic_that_failed_on_one_node_fails(second: tuple[str, ...], says: str) -> None:
    report = _report(*_pod(0, _header("a"), GOOD), *_pod(1, _header("b"), *second))
    assert _said(report)["errors"] == ("fail", says)
    assert report.verdict == "fail"


@pytest.mark.parametrize("order", [1, -1])
def test_an_engine_that_answered_later_in_the_same_pod_is_no_failure(order: int) -> None:
    report = _report(*_pod(0, *[_header("a"), *[REFUSED, GOOD][::order]]))
    assert report.verdict == ("pass" if order == 1 else "fail")


@pytest.mark.parametrize(
    ("lines", "how", "says"),
    [
        ([*_pod(0, _header("a"), GOOD), *_pod(1, _header("b"))], {}, "no result from b"),
        ([*_pod(0, _header("a"), GOOD), *_pod(1, "level=3")], {}, "no result from pod/check-1-x/dcgm"),
        (_pod(0, _header("a", 4), GOOD), {}, "diagnostics of 1 node, not of 4"),
        (_pod(0, _header("a"), GOOD), {"nodes": 4}, "diagnostics of 1 node, not of 4"),
        (_pod(0, _counted("a", nodes=4), kind="efa-info"), {}, "interfaces of 1 node, not of 4"),
        (_pod(0, _counted("a"), kind="efa-info"), {"nodes": 4}, "interfaces of 1 node, not of 4"),
        (
            [*_pod(0, _counted("a"), kind="efa-info"), *_pod(1, _counted("b", ""), kind="efa-info")],
            {},
            "no result from b",
        ),
    ],
)
def test_a_node_without_a_result_leaves_it_open(lines: list[str], how: dict[str, Any], says: str) -> None:
    report = _report(*lines, **how)
    assert (report.verdict, _said(report)["nodes"]) == ("unknown", ("unknown", says))


def test_an_exit_code_of_another_pod_is_read() -> None:
    report = _report(
        *_pod(0, _counted("a"), kind="efa-info"), *_pod(1, "# hyperpod-cdk: exit=1", kind="efa-info"), nodes=1
    )
    assert _said(report)["errors"] == ("fail", "the test itself failed on pod/check-1-x/efa-info")


def test_a_launcher_that_failed_after_its_last_run_fails() -> None:
    report = _report(marked("all_reduce", 2, P5), *run(["a", "b"], 437.0), "# hyperpod-cdk: job exit=1")
    assert (report.verdict, _said(report)["errors"]) == ("fail", ("fail", "the test itself failed"))


@given(codes=st.lists(st.integers(0, 255), min_size=1, max_size=5), cut=st.integers(0, 3))
def test_nothing_passes_unless_every_pod_ended_well_with_a_whole_result(codes: list[int], cut: int) -> None:
    lines: list[str] = []
    for number, code in enumerate(codes):
        told = [_header(f"n{number}", len(codes)), GOOD, f"# hyperpod-cdk: exit={code}"]
        lines += _pod(number, *(told[:cut] if number == len(codes) - 1 else told))
    codes_told = codes if cut == 3 else codes[:-1]
    assert (_report(*lines).verdict == "pass") == (cut >= 2 and not any(codes_told))


@pytest.mark.parametrize(
    ("bus", "verdict"), [(437.79 * 1.24, "pass"), (437.79 * 1.26, "unknown"), (48000.0, "unknown")]
)
def test_what_is_far_above_the_published_is_not_known(bus: float, verdict: str) -> None:
    report = _report(marked("all_reduce", 2, P5), *run(["a", "b"], bus, said=(EFA,)))
    assert _said(report)["bandwidth"][0] == verdict


def test_a_first_attempt_at_the_store_that_torch_repeats_is_no_failure() -> None:
    """Source: microsoft/vidur issue 49, whose program went on to 100 % over IPv4."""
    tried = (
        "[W socket.cpp:697] [c10d] The client socket cannot be initialized to connect to [x08.net]:50704 (errno: 97"
        " - Address family not supported by protocol)."
    )
    report = _report(f"a:30:41 [0] {EFA}", tried)
    assert (report.verdict, "errors" in _said(report)) == ("unknown", False)
