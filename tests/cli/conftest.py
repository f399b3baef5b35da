"""The command as users run it: another process, in a project of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def workspace(tmp_path: Path, project: Path) -> Path:
    """A project folder with one valid environment, dev."""
    (tmp_path / "environments").mkdir()
    text = (project / "examples" / "two-teams.yaml").read_text(encoding="utf-8")
    (tmp_path / "environments" / "dev.yaml").write_text(text.replace("two-teams", "dev"), encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(workspace: Path) -> Run:
    """Runs hyperpod-cdk in the project folder; the answer has returncode, stdout and stderr."""

    def run_command(*arguments: str, cwd: Path = workspace, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from hyperpod_cdk.cli import main; main()", *arguments],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run_command
