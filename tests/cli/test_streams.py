"""Standard output: a reader that closes the pipe early, a full device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ANSWERS = [
    ("--version", 0),
    ("--help", 0),
    ("validate dev", 0),
    ("validate no-zones", 1),
    ("validate no-zones --format json", 1),
    # a usage error writes nothing to standard output
    ("validate none", 2),
    ("schema --of review-report", 0),
    ("preflight dev --offline --only ip-budget", 0),
    ("prices show --format json", 0),
    ("job render dev --group a10g --kind nccl --team john", 0),
]
"""What somebody types -> its exit code with a reader; some answers are longer than a pipe holds (64 KiB)."""

FEW = ("--version", "validate dev", "validate no-zones", "validate none", "schema --of review-report")
"""One of each kind: short, long, an error, no answer at all; `make examples` types the others."""

TYPED = [
    pytest.param(typed, code, marks=() if typed in FEW else pytest.mark.examples, id=typed) for typed, code in ANSWERS
]


@contextmanager
def _unread() -> Iterator[int]:
    """Return a pipe whose reader has closed it."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def _run(
    typed: str, cwd: Path, *, stdout: int, stderr: int = subprocess.PIPE, python: tuple[str, ...] = ()
) -> tuple[int, str]:
    (cwd / "environments" / "no-zones.yaml").write_text("name: no-zones\n", encoding="utf-8")
    command = [sys.executable, *python, "-c", "from hyperpod_cdk.cli import main; main()", *typed.split()]
    done = subprocess.run(
        command, cwd=cwd, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, text=True, check=False
    )
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize(("typed", "code"), TYPED)
def test_the_exit_code_does_not_depend_on_the_reader(workspace: Path, typed: str, code: int) -> None:
    """``| head -1`` leaves before or after the last line by chance, which nothing may depend on."""
    read = _run(typed, workspace, stdout=subprocess.DEVNULL)
    with _unread() as pipe:
        assert _run(typed, workspace, stdout=pipe) == read
    assert read[0] == code
    assert "Traceback" not in read[1]


def test_standard_error_is_also_closed(workspace: Path) -> None:
    with _unread() as pipe:
        for typed, code in (
            ("validate dev", 0),
            ("validate none", 2),
            ("job render dev --group a10g --kind nccl --team john", 0),
        ):
            assert _run(typed, workspace, stdout=pipe, stderr=pipe)[0] == code


def test_nobody_reads_what_is_written_at_once(workspace: Path) -> None:
    with _unread() as pipe:
        assert _run("validate dev", workspace, stdout=pipe, python=("-u",)) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's device that is always full")
@pytest.mark.parametrize(("typed", "code"), TYPED)
def test_an_answer_that_cannot_be_written_is_one_line(workspace: Path, typed: str, code: int) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        found, said = _run(typed, workspace, stdout=full.fileno())
    # who gets no answer gets no success; what had none to give says what it says
    line = "cannot write the output: No space left on device"
    assert (found, said.splitlines()[-1] == line, "Traceback" in said) == (2, code != 2, False)


@pytest.mark.parametrize("imported", ["hyperpod_cdk.cli", "typer", "hyperpod_cdk._cli.words"])
def test_an_interrupt_while_modules_are_imported(workspace: Path, imported: str) -> None:
    """Ctrl-C in the first tenths of a second, before the command knows what it shall do."""
    code = (
        "import os, signal, sys\n"
        "class Impatient:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {imported!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "from hyperpod_cdk.__main__ import main\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "validate", "dev"]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_the_package_is_the_command(workspace: Path) -> None:
    command = [sys.executable, "-m", "hyperpod_cdk", "validate", "none"]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'no environment "none" in environments; there is dev\n'
