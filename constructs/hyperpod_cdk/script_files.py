"""The folder of lifecycle scripts as files: what is uploaded, and what no node could run."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from hyperpod_cdk.catalog.closest import closest

MAX_FILES = 1000
"""A folder with more is no folder of scripts; one file is one request of every new node."""

MAX_TOTAL_MIB = 64
"""Every node downloads the folder before it joins; software belongs into an AMI or a container image."""

ENVIRONMENT = "environment.conf"
"""A file that is written at the top of the uploaded folder: what the environment needs of its nodes."""

STEPS = "steps"
"""The folder of the scripts that ``on_create.sh`` runs one after the other."""

_STEP = re.compile(r"[0-9]{2}_[a-z0-9_]+\.sh")
_LONGEST_LINE = 4096

EXCLUDED = (".DS_Store", "__pycache__", ".git")
"""Names that editors and tools leave in a folder; neither hashed nor uploaded."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a node would stumble over. ``line`` counts from 1; without one the whole file or folder is meant."""

    path: Path
    message: str
    line: int | None = None

    def render(self) -> str:
        """Return ``path:line message``."""
        return f"{self.path}:{self.line} {self.message}" if self.line else f"{self.path} {self.message}"


def library_scripts() -> Path:
    """Return the folder of the library's own scripts, in an installed package or in a clone."""
    here = Path(__file__).parent
    installed, cloned = here / "_lifecycle_scripts", here.parents[1] / "lifecycle_scripts"
    return installed if installed.is_dir() else cloned


def check_scripts(directory: Path) -> None:
    """Refuse a folder whose scripts would fail on a node; raises ValueError with the file and what to do."""
    for problem in (*folder_problems(directory), *script_problems(directory)):
        raise ValueError(f"directory {problem.message}" if problem.path == directory else problem.render())


def folder_problems(directory: Path, *, shown: Path | None = None) -> Iterator[Problem]:
    """Say why a folder can be no folder of lifecycle scripts: missing, empty, too many files, too large.

    ``shown`` is how texts name the folder. Default: as given.
    """
    name = shown or directory
    if not _is_folder(directory):
        yield Problem(
            path=name,
            message=f"must be a folder of lifecycle scripts, got {name}, which is none; "
            "set directory to the folder that holds on_create.sh",
        )
        return
    there = list(files(directory))
    if not there:
        yield Problem(path=name, message=f"must hold a lifecycle script, got {name}, which is empty; add on_create.sh")
    if (directory / ENVIRONMENT).exists():
        yield Problem(
            path=name / ENVIRONMENT,
            message="must not be in the folder, since it is written from the environment; rename or remove it",
        )
    if len(there) > MAX_FILES:
        yield Problem(
            path=name,
            message=f"must hold at most {MAX_FILES} files, got {len(there)} in {name}; "
            "move what is no script to an AMI or a container image",
        )
    total_mib = sum(path.stat().st_size for path in there) / 2**20
    if total_mib > MAX_TOTAL_MIB:
        largest = max(there, key=lambda path: path.stat().st_size)
        yield Problem(
            path=name,
            message=f"must hold at most {MAX_TOTAL_MIB} MiB, got {total_mib:.1f} MiB in {name}; "
            f"{name / largest.relative_to(directory)} is the largest file: move it to an AMI or a container image",
        )


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for a name that is too long


def script_problems(directory: Path, *, shown: Path | None = None) -> Iterator[Problem]:
    """Say of each script in the folder the first thing that keeps it from running on a node."""
    if not _is_folder(directory):
        return
    for path in files(directory):
        problem = _script_problem(path, directory if shown is None else shown, directory)
        if problem:
            yield problem


def content_hash(directory: Path, written: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return 32 hexadecimal digits made of names, bytes and executable bits, and of nothing else.

    ``written`` are files that are uploaded with the folder's: name -> text.
    """
    digest = hashlib.sha256()
    for path in files(directory):
        content = path.read_bytes()
        executable = "x" if path.stat().st_mode & 0o111 else "-"
        name = path.relative_to(directory).as_posix()
        # lengths first, so that no two folders spell the same stream
        digest.update(f"{len(name)} {name} {executable} {len(content)} ".encode())
        digest.update(content)
    for name, text in sorted(written.items()):
        digest.update(f"{len(name)} {name} - {len(text.encode())} {text}".encode())
    return digest.hexdigest()[:32]


def environment_text(*, lustre: Iterable[str] = (), lustre_over_efa: Mapping[str, int] = MappingProxyType({})) -> str:
    """Return the text of ``ENVIRONMENT``, in which nodes look up their instance type; empty where it would say nothing.

    ``lustre``: instance types whose nodes mount a Lustre file system. ``lustre_over_efa``: instance type -> EFA
    interfaces that its nodes use for Lustre, 0 where they cannot.
    """
    lines = (
        ("lustre", [_of_machine(name) for name in lustre]),
        ("lustre_over_efa", [f"{_of_machine(name)}:{number}" for name, number in lustre_over_efa.items()]),
    )
    said = [f"{key}={' '.join(words)}\n" for key, words in lines if words]
    return "".join(["# what the environment needs of its nodes, by instance type\n", *said]) if said else ""


def _of_machine(instance_type: str) -> str:
    """Return the type as the machine's firmware names it: p5.48xlarge for ml.p5.48xlarge."""
    return instance_type.removeprefix("ml.")


def files(directory: Path) -> Iterator[Path]:
    """Yield the files that are uploaded, in the order of their names."""
    paths = ((path.relative_to(directory).parts, path) for path in directory.rglob("*") if path.is_file())
    for parts, path in sorted(paths):
        if not any(part in EXCLUDED for part in parts):
            yield path


def script_names(directory: Path) -> list[str]:
    """Return what ``on_create`` may say for this folder: the paths of its files below it, in their order."""
    return [path.relative_to(directory).as_posix() for path in files(directory)]


def name_problem(script: str, names: Sequence[str], *, where: str) -> str | None:
    """Say that ``script`` is none of ``names``, the files ``where`` it was looked for, or return None."""
    if script in names:
        return None
    top = [name for name in names if name.endswith(".sh") and "/" not in name]
    near = closest(script, top)
    fix = f"did you mean {near}?" if near else f"write it, or name one of {', '.join(top) or 'your own'}"
    return f'must be a script in {where}, got "{script}"; {fix}'


def is_script(path: Path) -> bool:
    """Return whether a file is one that a shell is meant to run: named ``*.sh``, or beginning with ``#!``."""
    if path.suffix == ".sh":
        return True
    with path.open("rb") as stream:
        return stream.read(2) == b"#!"


def shebang_problem(path: Path) -> str | None:
    """Say that the first line of a script names no interpreter, or return None."""
    with path.open("rb") as stream:
        message = _shebang_message(stream.readline(_LONGEST_LINE))
    return f"{path}:1 {message}" if message else None


def check_steps(steps: Sequence[Path], directory: Path) -> None:
    """Refuse scripts that nodes could not run as steps with those of ``directory``; raises ValueError."""
    names = set(script_names(directory))
    for step in steps:
        if problem := step_problem(step, names):
            raise ValueError(problem.render())
        names.add(f"{STEPS}/{step.name}")


def step_problem(step: Path, names: Collection[str], *, shown: Path | None = None) -> Problem | None:
    """Say why a script cannot be a step with the uploaded files ``names``, or return None."""
    name = shown or step
    if not step.is_file():
        return Problem(path=name, message="is a lifecycle step that is not there; write it, or name another file")
    if not _STEP.fullmatch(step.name):
        return Problem(
            path=name,
            message=f"must be named as steps are, two digits, _ and a word in lower case, got {step.name}; rename it,"
            " for instance to 60_ours.sh",
        )
    if f"{STEPS}/{step.name}" in names:
        return Problem(path=name, message="has the name of another step, which nodes would not run; rename it")
    if step.stat().st_size > MAX_TOTAL_MIB * 2**20:
        return Problem(path=name, message=f"must be of at most {MAX_TOTAL_MIB} MiB, as all scripts are; shorten it")
    try:
        step.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return Problem(path=name, message="must be UTF-8 text; save it as UTF-8")
    return _file_problem(step, name)


def _script_problem(path: Path, shown: Path, directory: Path) -> Problem | None:
    return _file_problem(path, shown / path.relative_to(directory))


def _file_problem(path: Path, name: Path) -> Problem | None:
    if path.stat().st_size > MAX_TOTAL_MIB * 2**20 or not is_script(path):
        # of one that is larger than the folder may be, the folder's size is what is wrong
        return None
    content = path.read_bytes()
    if not content.strip():
        return Problem(path=name, message="must be a script, got an empty file; write it or remove it")
    if content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Problem(
            path=name,
            line=1,
            message="must begin with #!, got a byte order mark before it, which the kernel takes for part of the line; "
            "save the file as UTF-8 without BOM",
        )
    if b"\r" in content:
        line = content[: content.index(b"\r")].count(b"\n") + 1
        return Problem(
            path=name,
            line=line,
            message="must end its lines with LF, got CR LF, which bash takes for part of the command; "
            f"run 'dos2unix {name}' and add '*.sh text eol=lf' to .gitattributes",
        )
    message = _shebang_message(content)
    return Problem(path=name, line=1, message=message) if message else None


def _shebang_message(content: bytes) -> str | None:
    first_line = content.split(b"\n", 1)[0]
    if re.match(rb"#!\s*/\S+", first_line):
        return None
    got = first_line.decode("utf-8", "replace")[:40]
    return f'must name its interpreter, got "{got}"; make the first line #!/usr/bin/env bash'
