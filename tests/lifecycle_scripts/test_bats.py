"""The lifecycle scripts on a simulated node in a folder: one test for each bats file in this folder.

Where this machine lets us, bats runs in user and mount namespaces of its own, and mounts on the node are real;
elsewhere they are faked. Neither needs root. By hand: ``node_modules/bats/bin/bats tests/lifecycle_scripts``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.bats"))
LONG = ("data_disk", "lustre", "lustre_over_efa")
"""What takes longest beside on_create.bats, which runs these steps too; `make examples` runs them one by one."""
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount"]


@cache
def mounts_are_ours(folder: Path) -> bool:
    """Return whether this machine lets everybody bind a folder in a namespace of their own."""
    if shutil.which("unshare") is None:
        return False
    here = folder / "bound"
    here.mkdir()
    return (
        subprocess.run([*NAMESPACES, "mount", "--bind", here, here], capture_output=True, check=False).returncode == 0
    )


def run_bats(project: Path, *arguments: str | Path, namespaces: bool) -> subprocess.CompletedProcess[str]:
    """Run bats, with a report in TAP."""
    interpreter: Any = getattr(sys, "_base_executable", sys.executable)  # a venv's is a link that misses its library
    environment = {
        "PATH": os.environ["PATH"],
        "HYPERPOD_SANDBOX": "namespace" if namespaces else "folder",
        "HYPERPOD_SANDBOX_PYTHON": str(interpreter),
    }
    bats = project / "node_modules" / "bats" / "bin" / "bats"
    command = [*(NAMESPACES if namespaces else []), bats, "--formatter", "tap", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def report(done: subprocess.CompletedProcess[str]) -> tuple[int, list[str]]:
    """Return how many tests were planned, and every line that is not a plain "ok"."""
    plan, *lines = done.stdout.splitlines() or ["1..0"]
    planned = re.fullmatch(r"1\.\.(\d+)", plan)
    if planned is None:
        return 0, [plan, *lines, done.stderr]
    oks = [line for line in lines if re.fullmatch(r"ok \d+ [^#]*", line)]
    others = [line for line in lines if line not in oks]
    return (int(planned[1]) if len(oks) == int(planned[1]) else len(oks)), [*others, *done.stderr.splitlines()]


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=[pytest.mark.examples] * (file.stem in LONG), id=file.stem) for file in FILES],
)
def test_bats(file: Path, project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    done = run_bats(project, file, namespaces=mounts_are_ours(tmp_path_factory.mktemp("namespace")))

    passed, others = report(done)
    assert others == []
    assert (done.returncode, passed > 0) == (0, True)


def test_without_namespaces(project: Path) -> None:
    done = run_bats(project, "--filter", "at boot", HERE / "data_disk.bats", namespaces=False)

    assert (done.returncode, report(done)) == (0, (3, []))


def test_a_test_that_fails_is_reported(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "fails.bats"
    file.write_text(
        f'load {HERE}/sandbox\n@test "fails" {{\n  put /a b\n  holds /a c\n}}\n@test "skips" {{\n  skip\n}}\n'
    )

    done = run_bats(project, file, namespaces=False)

    passed, others = report(done)
    assert (done.returncode, passed) == (1, 0)
    assert others[0] == "not ok 1 fails"
    assert others[-1] == "ok 2 skips # skip"


def test_every_bats_file_is_run() -> None:
    assert {file.stem for file in FILES} == {
        "data_disk",
        "default_runtime",
        "describe_node",
        "efa",
        "lustre",
        "lustre_over_efa",
        "on_create",
    }
