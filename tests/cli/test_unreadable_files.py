"""Every option for a file immediately refuses endless, blocking and too large files in one line."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from tests.cli.conftest import Run

_LINE = 400
_FILES = ("/dev/zero", "{folder}/pipe", "{folder}", "{folder}/sparse", "/proc/self/pagemap", "{folder}/endless")
_NAMED = (
    ("validate", "{file}"),
    ("job", "render", "dev", "--group", "a10g", "--job", "{file}"),
    ("job", "admit", "dev", "{file}"),
    ("job", "report", "{file}"),
    ("review", "--template", "{file}", "--region", "us-east-1"),
    ("rehearse", "dev", "--account-file", "{file}"),
    ("quotas", "show", "{file}"),
    ("import", "{file}", "--name", "lab"),
)
_IN_PLACE = (
    ("environments/dev.plans.json", ("validate", "dev")),
    ("environments/dev.quotas.json", ("validate", "dev")),
    ("prices.json", ("prices", "show")),
    ("charts/charts.lock.yaml", ("charts", "pull")),
    ("pyproject.toml", ("validate", "dev")),
    ("environments/dev.yaml", ("validate", "dev")),
)


def _made(folder: Path, file: str) -> Path:
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 5 << 30)
    (folder / "endless").symlink_to(folder / "endless")
    return Path(file.format(folder=folder))


@pytest.mark.parametrize("file", _FILES)
@pytest.mark.parametrize("command", _NAMED, ids=" ".join)
def test_a_named_file(run: Run, workspace: Path, command: tuple[str, ...], file: str) -> None:
    if file == "/proc/self/pagemap" and not Path(file).exists():
        pytest.skip("only Linux has it")
    if "report" in command and file == "/proc/self/pagemap":
        pytest.skip("a log may be of a gigabyte, which takes seconds")
    # without an app to run, a rehearsal ends before it reads any other file
    (workspace / "cdk.json").write_text("{}", encoding="utf-8")
    named = _made(workspace / "unreadable", file)
    done = run(*(each.format(file=named) for each in command))
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("warning")]
    assert done.returncode in {1, 2}
    assert len([line for line in said if named.name in line]) == 1, said
    assert all(len(line) < _LINE for line in said)


@pytest.mark.parametrize("file", _FILES)
@pytest.mark.parametrize("row", _IN_PLACE, ids=lambda row: " ".join((row[0], *row[1])))
def test_a_file_of_the_project(run: Run, workspace: Path, row: tuple[str, tuple[str, ...]], file: str) -> None:
    place, command = row
    there = workspace / place
    there.parent.mkdir(exist_ok=True)
    there.unlink(missing_ok=True)
    named = _made(workspace / "unreadable", file)
    there.symlink_to(named)
    done = run(*command)
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("warning")]
    assert done.returncode in {1, 2}
    # findings show where a link leads
    names = (there.name, named.name, 'no environment "dev"')
    assert len([line for line in said if any(name in line for name in names)]) == 1, said
    assert all(len(line) < _LINE for line in said)


_GARBLED = {
    "empty": b"",
    "comment": b"# nothing\n",
    "byte order mark": b"\xef\xbb\xbfa: 1\n",
    "lines of Windows": b"a: 1\r\nb: 2\r\n",
    "lines of old": b"a: 1\rb: 2\r",
    "no UTF-8": b"a: \xff\xfe\n",
    "UTF-16": "a: 1\n".encode("utf-16"),
    "NUL": b'a: "\x00"\n',
    "escape": b"a: \x1b[2J\n",
    "ten megabytes": b"a: " + b"x" * 10_000_000,
    "deep": b"a: " + b"[" * 5_000 + b"]" * 5_000,
    "deep JSON": b"[" * 100_000,
    "aliases": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)),
    "circle": b"a: &a [*a]\n",
    "documents": b"---\na: 1\n---\nb: 2\n",
    "tag": b"a: !!python/object/apply:os.system [id]\n",
    "list": b"- 1\n",
    "text": b"hello\n",
}
_READERS = [command for command in _NAMED if "report" not in command]


@pytest.mark.examples
@pytest.mark.parametrize("command", _READERS, ids=" ".join)
def test_a_garbled_file_is_named_in_lines_that_a_terminal_shows(
    run: Run, workspace: Path, command: tuple[str, ...]
) -> None:
    (workspace / "cdk.json").write_text("{}", encoding="utf-8")
    # an account file may leave everything out
    fine = {"empty", "comment"} if "rehearse" in command else set()
    for what, content in _GARBLED.items():
        if what in fine:
            continue
        (workspace / "garbled.yaml").write_bytes(content)
        done = run(*(each.format(file="garbled.yaml") for each in command))
        said = done.stdout + done.stderr
        assert done.returncode in {1, 2}, what
        assert "garbled.yaml" in said, what
        assert max(map(len, said.splitlines())) < 2 * _LINE, what
        assert not [each for each in said if unicodedata.category(each) == "Cc" and each != "\n"], what
    assert not (workspace / "environments" / "lab.yaml").exists()
