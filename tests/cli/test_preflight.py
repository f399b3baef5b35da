"""`hyperpod-cdk preflight` as a process: exit codes, lines, JSON, and what happens without anybody to ask as."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_cdk.checks.model import REGISTER
from tests.support.answers import answered

AREAS = REGISTER.areas()
Run = Callable[..., subprocess.CompletedProcess[str]]


def change(workspace: Path, old: str, new: str) -> None:
    path = workspace / "environments" / "dev.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_offline_passes_and_says_what_was_left_out(run_process: Run) -> None:
    done = run_process("preflight", "dev", "--offline")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(
        "environments/dev.yaml: nothing failed in the checks that do not need AWS, "
    )


def test_offline_json(run: Run) -> None:
    done = run("preflight", "dev", "--offline", "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["file"]) == (0, None, "environments/dev.yaml")
    statuses = {check["check"]: check["status"] for check in report["checks"]}
    assert "skipped" in statuses.values()
    assert "passed" in statuses.values()
    for check in report["checks"]:
        assert (check["status"] == "skipped") == bool(check["skipped"])


def test_strict_takes_nothing_for_passed_that_was_not_asked(run: Run) -> None:
    assert run("preflight", "dev", "--offline", "--strict").returncode == 1
    done = run("preflight", "dev", "--offline", "--strict", "--only", "lifecycle-scripts", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["passed"]) == (0, True)


NOT_READ = "lifecycle_scripts/large.sh was not read: it is larger than 512 KiB"


def test_offline_reports_what_was_skipped_for_another_reason(run: Run, workspace: Path) -> None:
    scripts = workspace / "lifecycle_scripts"
    scripts.mkdir(exist_ok=True)
    (scripts / "on_create.sh").write_text("#!/bin/bash\n", encoding="utf-8")
    (scripts / "large.sh").write_text("#!/bin/bash\n".ljust(2**19 + 1, "\n"), encoding="utf-8")
    done = run("preflight", "dev", "--offline", "--only", "lifecycle-scripts", "--only", "workspaces")
    *lines, summary = done.stdout.splitlines()
    skipped = [line for line in lines if line.startswith("skipped ")]
    assert skipped == [
        f"skipped lifecycle scripts {check}: {NOT_READ}"
        for check in ("are bash", "find what they call", "download nothing")
    ]
    assert summary == (
        "environments/dev.yaml: nothing failed in the checks that do not need AWS, but 3 of them could not be"
        " completed, 2 passed, 3 skipped, 2 not needed"
    )
    everything = run("preflight", "dev", "--offline").stdout.splitlines()
    assert [line for line in everything if line.startswith("skipped ")] == [
        f"skipped 3 checks of lifecycle-scripts: {NOT_READ}"
    ]
    assert ", 3 " not in everything[-1].partition("but 3 of them could not be completed")[2]
    assert ": AWS is not called with --offline), " in everything[-1]
    of_fleet = answered("fleet-report", run("fleet", "preflight", "--offline", "--format", "json").stdout)
    assert {row["reason"] for each in of_fleet["environments"] for row in each["skipped"]} == {NOT_READ}


def test_ip_budget_alone_draws_the_blocks(run: Run) -> None:
    done = run("preflight", "dev", "--only", "ip-budget", "--offline")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "/16" in done.stdout
    areas = [line for line in done.stdout.splitlines() if "  passed  " in line and line.startswith(AREAS)]
    assert [line.split()[0] for line in areas] == ["ip-budget"]


def test_block_that_is_too_small(run: Run, workspace: Path) -> None:
    change(workspace, "usw2-az2:\n", "usw2-az2: {node_cidr: 10.2.0.0/24}\n")
    change(workspace, "count: 4", "count: 5")
    done = run("preflight", "dev", "--only", "ip-budget", "--offline")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("environments/dev.yaml: refused, ")


def test_policy(run: Run) -> None:
    done = run("preflight", "dev", "--iam-policy", "--only", "iam")
    (statement,) = answered("iam-policy", done.stdout)["Statement"]
    assert "iam:GetRole" in statement["Action"]
    assert "fsx:DescribeFileSystems" not in statement["Action"]


def test_no_credentials(run: Run) -> None:
    done = run("preflight", "dev")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("no AWS credentials; ")
    assert "--offline" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), 'no environment "nowhere" in environments; there is dev'),
        (("dve",), 'no environment "dve" in environments; did you mean dev?'),
        (
            ("dev", "--only", "qotas"),
            '--only and --skip: must be an area or the name of a check, got "qotas"; did you mean quotas?',
        ),
        (
            ("dev", "--skip", "lustr"),
            '--only and --skip: must be an area or the name of a check, got "lustr"; did you mean lustre?',
        ),
        (
            ("dev", "--only", "eks", "--skip", "eks"),
            "--only and --skip: must leave a check to run, got none; skip fewer",
        ),
    ],
)
def test_wrong_words(run: Run, arguments: tuple[str, ...], said: str) -> None:
    done = run("preflight", *arguments)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (2, "", said)


def test_file_that_is_refused_is_not_asked_about(run: Run, workspace: Path) -> None:
    change(workspace, "count: 4", "count: -4")
    done = run("preflight", "dev")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1] == "1 of 1 file refused, 1 error"


def test_without_boto3_it_names_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # None in the table of modules is how Python says that there is none
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    monkeypatch.delitem(sys.modules, "hyperpod_cdk.checks.aws", raising=False)
    done = run("preflight", "dev")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "needs the package botocore; install it with pip install 'hyperpod-cdk[aws]'"
    )
