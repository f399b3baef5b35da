"""The report as text: what is said first, what is drawn, and that it stays within its columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.workloads.report import judge, parse, read_lines, text
from hyperpod_cdk.workloads.report.chart import Series, chart
from tests.support.tables import row_by_row
from tests.workloads.report.logs_like import SOCKET, marked, run

LOGS = Path(__file__).parent / "logs"


def _real() -> str:
    with (LOGS / "nccl-g5-8xlarge.log").open("rb") as stream:
        return text(judge(parse(read_lines(stream)), instance_type="ml.g5.8xlarge"), 100)


def test_the_real_log_is_drawn() -> None:
    drawn = _real()
    assert drawn.startswith(
        "unknown the log does not say whether EFA or TCP is in use\nml.g5.8xlarge, 2 nodes, NCCL 2.26"
    )
    assert "pass  all_reduce  2      2      4 GiB  2.88 GB/s  1.36 GB/s  100 %\n" in drawn
    assert "the memory of the GPUs limits the message size to 7.1 GiB\n" in drawn
    assert drawn.endswith(
        """\
    4.0 |
        |
        |
    3.0 |-- -- -- -- -- -- -- -- -- -- -- -- -- -- -- -- -- -- -- -.*.. -- -- --*..*...*..*..*..*..*
        |                                                       .*.    *..*..*..
        |                                                     *.
    2.0 |                                                    .
        |                                                   .
        |                                                 .*
    1.0 |                                           *...*.
        |                                        *..
        |                                  *..*..
    0.0 |*..*..*..*..*...*..*..*..*..*..*..
   GB/s +-------------------------------------------------------------------------------------------
         8 B              512 B            32 KiB           1 MiB            64 MiB            4 GiB
         * all_reduce   -- published: 2.88 GB/s
"""
    )


def test_a_verdict_may_be_painted_without_moving_anything() -> None:
    report = judge(parse([marked("all_reduce", 2, "ml.p5.48xlarge"), *run(["a", "b"], 4.0, said=(SOCKET,))]))
    painted = text(report, 80, paint=lambda word: f"<{word}>")
    assert painted.replace("<fail>", "fail").replace("<pass>", "pass") == text(report, 80)
    assert painted.startswith("<fail>    TCP is in use instead of EFA; ")


def test_the_slowest_pair_comes_first_and_is_drawn_beside_the_fastest() -> None:
    lines = [*run(["a", "b"], 437.0), *run(["c", "d"], 200.0), *run(["e", "f"], 440.0)]
    drawn = text(judge(parse(lines), instance_type="ml.p5.48xlarge"), 80)
    table = drawn[drawn.index("plateau   of median") :].splitlines()
    assert [line[-7:] for line in table[1:4]] == ["c and d", "a and b", "e and f"]
    assert drawn.rstrip().endswith("* c and d   o e and f   -- published: 438 GB/s")


@pytest.mark.parametrize("width", [10, 40, 80, 120, 200])
def test_no_line_is_wider_than_asked(width: int) -> None:
    long = "x" * 300
    lines = [marked("all_reduce", 2, "ml.p5.48xlarge"), *run([long, "b"], 4.0, said=(f"{SOCKET} {long}",))]
    drawn = text(judge(parse(lines, file=long)), width)
    assert max(len(line) for line in drawn.splitlines()) <= max(width, 40)


def test_a_log_without_a_test_is_one_line() -> None:
    assert text(judge(parse(["x"]))) == (
        "unknown no test found in 1 line; provide the complete log of nccl-tests,\n"
        "        fi_info, nccom-test or dcgmi diag\n"
    )


def test_one_size_is_a_point_in_the_middle() -> None:
    lines = chart([Series(name="x", points=((1024, 5.0),))], width=60)
    assert sum(line.count("*") for line in lines[:-1]) == 1
    assert "1 KiB" in lines[-2]


@row_by_row(
    "highest, top",
    [
        (0.0, "1.00"),
        (5e-324, "1.00"),
        (1.0, "1.00"),
        (1.2, "1.50"),
        (1.6, "2.0"),
        (2.5, "3.0"),
        (3.5, "4.0"),
        (4.5, "5.0"),
        (5.5, "6.0"),
        (70.0, "80"),
    ],
)
def test_the_axis_ends_at_the_next_round_number(highest: float, top: str) -> None:
    assert chart([Series(name="x", points=((1024, highest),))], width=60)[0].split()[0] == top


def test_names_for_which_a_line_has_no_room_go_on_the_next() -> None:
    names = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv")
    lines = chart([Series(name=name, points=((1024, 5.0),)) for name in names], width=80)
    assert [line.split("   ") for line in (line.strip() for line in lines[-2:])] == [
        ["* all_reduce", "o all_gather", "+ reduce_scatter", "x alltoall"],
        ["# broadcast", "% sendrecv"],
    ]


def test_nothing_is_drawn_without_a_size_or_room() -> None:
    assert chart([Series(name="x", points=((0, 5.0),))], width=80) == []
    assert chart([Series(name="x", points=((8, 5.0),))], width=20) == []


@given(
    points=st.lists(st.tuples(st.integers(0, 2**62), st.floats(0, 1e9)), min_size=1, max_size=40),
    width=st.integers(33, 160),
    level=st.none() | st.floats(0.01, 1e4),
)
def test_whatever_was_measured_can_be_drawn(points: list[tuple[int, float]], width: int, level: float | None) -> None:
    lines = chart([Series(name="x", points=tuple(sorted(points)))], width=width, level=level)
    assert all(len(line) <= width for line in lines[:-1])
