"""`hyperpod-cdk rehearse` and `charts pull`: errors before they start."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support.answers import answered

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_unknown_environment(run: Run) -> None:
    done = run("rehearse", "dve")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'no environment "dve" in environments; did you mean dev?\n'


def test_unknown_account_file(run: Run) -> None:
    done = run("rehearse", "dev", "--account-file", "nowhere.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "--account-file: file nowhere.yaml does not exist\n")


def test_refused_account_file(run: Run, workspace: Path) -> None:
    (workspace / "cdk.json").write_text("{}", encoding="utf-8")
    (workspace / "account.yaml").write_text("quota: {}\n", encoding="utf-8")
    done = run("rehearse", "dev", "--account-file", "account.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "account.yaml:1 quota: extra inputs are not permitted\n"


def test_refused_file(run_process: Run, workspace: Path) -> None:
    (workspace / "environments" / "dev.yaml").write_text("name: dev\n", encoding="utf-8")
    done = run_process("rehearse", "dev", "--format", "json")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    told = answered("validate", done.stdout)
    assert {finding["path"] for finding in told["files"][0]["findings"]} == {
        "account",
        "region",
        "network",
        "hyperpod",
    }


def test_chart_lock_that_cannot_be_read(run: Run, workspace: Path) -> None:
    (workspace / "charts").mkdir()
    (workspace / "charts" / "charts.lock.yaml").write_text("nonsense: true\n", encoding="utf-8")
    done = run("charts", "pull")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
