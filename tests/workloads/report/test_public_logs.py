"""Public logs: the expected verdicts were determined by a person before the tool ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.workloads.report import judge, parse
from hyperpod_cdk.workloads.report.problems import KNOWN, WORDS
from tests.support.tables import row_by_row

ROWS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "public_logs.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


@row_by_row("row", ROWS, ids=lambda row: row["source"])
def test_a_public_log_gets_the_verdict_of_a_person(row: dict[str, Any]) -> None:
    program = [f"./build/{row['collective']}_perf -b 8 -e 1G"] if "collective" in row else []
    report = judge(parse([*program, *row["lines"]]))
    checks = {check.name: check.says for check in report.checks}
    assert (report.verdict, {name: checks.get(name) for name in row["checks"]}) == (row["verdict"], row["checks"])


def test_there_are_enough_of_them() -> None:
    assert len({row["source"] for row in ROWS}) >= 125


def test_every_kind_of_failure_is_shown_by_a_log() -> None:
    """A kind that no log has was written from imagination; those of other test files are named here."""
    elsewhere = {"gpu memory", "locked memory", "huge pages"}
    shown = {name for row in ROWS for name in parse(row["lines"]).problems}
    assert set(KNOWN) - shown <= elsewhere


@row_by_row("row", ROWS, ids=lambda row: row["source"])
def test_the_fast_look_at_a_line_misses_no_failure(row: dict[str, Any]) -> None:
    for line in row["lines"]:
        # lines of NCCL INFO are chosen by another pattern
        if "NCCL INFO" not in line and any(known.fits(line) for known in KNOWN.values()):
            assert any(word in line.lower().encode() for word in WORDS), line
