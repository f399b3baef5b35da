"""The command as users run it, in a separate project: in this process, or in another process where it matters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import IO

import pytest
from typer.testing import CliRunner

from hyperpod_cdk import cli
from tests.support.callers import with_callers

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def workspace(tmp_path: Path, project: Path) -> Path:
    """A project folder with one valid environment, dev."""
    (tmp_path / "environments").mkdir()
    text = (project / "examples" / "two-teams.yaml").read_text(encoding="utf-8")
    dev = with_callers(text.replace("two-teams", "dev"))
    (tmp_path / "environments" / "dev.yaml").write_text(dev, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(workspace: Path) -> Run:
    """Runs hyperpod-cdk in the project folder; the answer has returncode, stdout and stderr.

    Within this process, which saves the third of a second that a start takes; a traceback fails the test.
    """

    def run_command(*arguments: str, cwd: Path = workspace, **environment: str) -> subprocess.CompletedProcess[str]:
        with chdir(cwd):
            done = CliRunner(env=environment).invoke(
                cli.app, arguments, prog_name="hyperpod-cdk", catch_exceptions=False
            )
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    return run_command


@pytest.fixture
def run_process(workspace: Path) -> Run:
    """Runs hyperpod-cdk as ``run`` does, but as a process of its own: with its imports, streams and exit code."""

    def run_command(
        *arguments: str, cwd: Path = workspace, stdin: int | IO[bytes] = subprocess.DEVNULL, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from hyperpod_cdk.cli import main; main()", *arguments],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            stdin=stdin,
        )

    return run_command
