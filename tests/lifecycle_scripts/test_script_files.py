"""What holds for every script file, whatever it does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "lifecycle_scripts"
SCRIPTS = sorted(p for p in FOLDER.rglob("*") if p.is_file() and p.read_bytes().startswith(b"#!"))
UNITS = sorted(p for p in FOLDER.rglob("*") if p.suffix in {".service", ".conf"})
# what would need a network at boot, or change under our feet
NETWORK = re.compile(r"\b(curl|wget|yum|dnf|apt-get|apt|pip|git|aws|docker|nerdctl)\b (?!is|of|may)")


def _name(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def test_every_file_is_a_script_or_a_unit() -> None:
    assert sorted([*SCRIPTS, *UNITS]) == sorted(p for p in FOLDER.rglob("*") if p.is_file())


def test_shellcheck_finds_nothing() -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"

    # -P: where what they source lies
    done = subprocess.run(
        [shellcheck, "-x", "-P", FOLDER / "node", *SCRIPTS], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_shfmt_changes_nothing() -> None:
    shfmt = Path(sys.executable).parent / "shfmt"

    done = subprocess.run([shfmt, "-d", "-i", "2", "-ci", "-bn", FOLDER], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_is_executable_strict_bash(script: Path) -> None:
    lines = script.read_text().splitlines()

    assert script.stat().st_mode & 0o777 == 0o755
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines


@pytest.mark.parametrize("unit", UNITS, ids=_name)
def test_a_unit_is_no_program(unit: Path) -> None:
    assert unit.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("file", [*SCRIPTS, *UNITS], ids=_name)
def test_ends_lines_with_lf(file: Path) -> None:
    content = file.read_bytes()

    assert b"\r" not in content
    assert content.endswith(b"\n")


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_needs_no_network(script: Path) -> None:
    code = [line for line in script.read_text().splitlines() if not line.lstrip().startswith("#")]

    assert [line for line in code if NETWORK.search(line)] == []
    assert [line for line in code if "://" in line] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_is_understood_by_the_bash_of_amazon_linux_2(script: Path) -> None:
    # bash 4.2 stops at an empty "${array[@]}" under set -u, and has none of these
    code = script.read_text()

    assert not re.search(r"EPOCH(SECONDS|REALTIME)|(local|declare) -n|@[A-Za-z]\}|\bwait -n|mapfile -d|\[-\d+\]", code)
    assert not re.search(r"\$\{\w+\[@\]\}", code)
