"""Lifecycle scripts, checked before any node runs them: form, syntax, calls, downloads, secrets, size."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import Aws
from hyperpod_cdk.checks.bash_commands import Command, assignments, commands
from hyperpod_cdk.checks.downloads import download, leaves_the_network
from hyperpod_cdk.checks.model import LOOKED, Case, Detail, Found, Skipped, check, error
from hyperpod_cdk.checks.secrets import secrets
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config.documents import shown
from hyperpod_cdk.config.extensions import lifecycle_steps
from hyperpod_cdk.config.loading import SCRIPTS
from hyperpod_cdk.file_reading import resolved
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.script_files import (
    MAX_TOTAL_MIB,
    STEPS,
    Problem,
    files,
    folder_problems,
    is_script,
    library_scripts,
    name_problem,
    script_names,
    script_problems,
    step_problem,
)

LARGEST_SCRIPT_KIB = 512
"""A larger file is not a script that a person wrote; it is not read for commands, and the checks say so."""

LARGEST_TEXT_MIB = 2
"""A larger file of text is not searched for secrets."""

_TEXT_PROBE_BYTES = 8000

_BASH = "bash"
_BASH_SECONDS = 20
_SHELLS = frozenset({"bash", "sh"})
_INTERPRETERS = frozenset({"bash", "sh", "python3", "python", "perl"})
_ON_EVERY_NODE = frozenset({"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", "/usr/bin/python3", "/usr/bin/env"})
_BASH_ERROR = re.compile(r"^.*?: line (\d+): (.*)$")
_OWN_FOLDER = re.compile(r"dirname\s+(?:--\s+)?\"?\$\{?(?:BASH_SOURCE(?:\[0\])?|0)\}?\"?\)\"?((?:/[\w.-]+)*)")
_FOLDER_BY_CUT = re.compile(r"^\$\{(?:BASH_SOURCE(?:\[0\])?|0)%/\*\}((?:/[\w.-]+)*)$")
_VARIABLE = re.compile(r"^\$\{?(\w+)\}?(?=/)")
_PLAIN_PATH = re.compile(r"^[\w./+-]+$")
_SCRIPT_SUFFIXES = frozenset({".sh", ".bash", ".py"})
_BY_HAND_FOLDER = "find lifecycle_scripts -type f | xargs file; du -sh lifecycle_scripts"


@dataclass(frozen=True, kw_only=True)
class _Folder:
    """The scripts that a deployment uploads; ``shown`` is how findings name the folder."""

    path: Path
    shown: Path
    steps: tuple[Path, ...] = ()
    """Scripts that extensions add to steps/; findings name them by their own paths."""

    def files(self) -> list[Path]:
        return [*_files(self.path), *(step for step in self.steps if step.is_file())]

    def name(self, file: Path) -> str:
        if file in self.steps:
            return shown(file)
        return (self.shown / file.relative_to(self.path)).as_posix()

    def place(self, file: Path) -> Path:
        """Return the script's path on the node."""
        return self.path / STEPS / file.name if file in self.steps else file

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Yield every script that can be read, with its text."""
        for file in self.files():
            if is_script(file) and self.name(file) not in self._unread:
                yield file, file.read_bytes().decode("utf-8", "replace")

    def unread(self) -> Iterator[Skipped]:
        """Yield a skip for every script that ``texts`` leaves out."""
        for name, why in self._unread.items():
            yield Skipped(reason=f"{name} was not read: {why}")

    @cached_property
    def _unread(self) -> dict[str, str]:
        """Each script that is not read -> why."""
        broken = {problem.path for problem in script_problems(self.path, shown=self.shown)}
        found = {}
        for file in filter(is_script, self.files()):
            name = self.name(file)
            if Path(name) in broken:
                found[name] = f"{lifecycle_scripts_can_start.__name__} reports why a node cannot run it"
            elif file.stat().st_size > LARGEST_SCRIPT_KIB * 2**10:
                found[name] = f"it is larger than {LARGEST_SCRIPT_KIB} KiB"
        return found


@check(
    area="lifecycle-scripts",
    inputs="on_create or on_init_complete of every instance group, the folder lifecycle_scripts/ (or, if the project"
    " has none, the library's own scripts).",
    passes="Every script that a group names is in the folder, every script has LF line endings, a first line that names"
    " an interpreter which every HyperPod image has, no byte order mark, and the folder has at most 1000 files and"
    " 64 MiB.",
    fails="A named script is missing; a script is empty, has CR LF line endings, a byte order mark, NUL bytes or no #!"
    " line; the folder is empty or too large. A warning for an interpreter outside the system's folders, for"
    " '#!/usr/bin/env bash -e' (env reads 'bash -e' as one name) and for text that is not UTF-8.",
    skips="Never.",
    by_hand=_BY_HAND_FOLDER,
)
def lifecycle_scripts_can_start(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nothing
    """HyperPod runs them unchanged; a node that cannot start one is terminated after minutes that are billed."""
    folder = _folder(case)
    yield from _missing(case, folder)
    problems = [*folder_problems(folder.path, shown=folder.shown), *script_problems(folder.path, shown=folder.shown)]
    names = script_names(folder.path)
    problems += [each for step in folder.steps if (each := step_problem(step, names, shown=Path(folder.name(step))))]
    yield from (_from_problem(problem) for problem in problems)
    broken = {problem.path for problem in problems}
    for file in folder.files():
        if is_script(file) and Path(folder.name(file)) not in broken and file.stat().st_size <= MAX_TOTAL_MIB * 2**20:
            yield from _form(file, folder.name(file))
    yield _size(folder)


@check(
    area="lifecycle-scripts",
    inputs="Every script of the folder that bash or sh runs.",
    passes="'bash -n' reads each to its end.",
    fails="'bash -n' finds a syntax error.",
    skips="There is no bash on this machine, or a script is larger than 512 KiB or cannot be read. The bash here may be"
    " newer than the node's, so a pass does not prove that the node's reads it too.",
    by_hand="find lifecycle_scripts -name '*.sh' -exec bash -n {} \\;",
)
def lifecycle_scripts_are_bash(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nothing
    """On the node, a syntax error shows only when bash reaches it."""
    folder = _folder(case)
    scripts = [(file, text) for file, text in folder.texts() if _interpreter(text) in _SHELLS]
    yield from folder.unread()
    if not scripts:
        return
    bash = shutil.which(_BASH)
    if bash is None:
        yield Skipped(reason="there is no bash on this machine to read the scripts with 'bash -n'")
        return
    yield LOOKED
    for (file, _), found in zip(scripts, together(partial(_syntax, bash), [file for file, _ in scripts]), strict=True):
        if isinstance(found, tuple):
            line, text = found
            yield _finding(
                folder.name(file),
                line,
                f"must be bash that 'bash -n' reads to its end, got \"{text}\"; fix the script at or above this line",
            )
        elif isinstance(found, str):
            yield Skipped(reason=f"'bash -n' on {folder.name(file)} {found}")


@check(
    area="lifecycle-scripts",
    inputs="Every 'source x', '. x', 'bash x', 'python3 x' and './x' of every script, if x is literal or begins"
    " with the script's own folder ('$(dirname \"$0\")/x', '$here/x').",
    passes="The file is in the folder, and a script that is run by its path alone is first made executable.",
    fails="The file is not in the folder. A warning for a script of the folder that is run by its path: S3 does not"
    " store the"
    " executable bit, so the node says 'Permission denied'. Not found: names in other variables, in loops, behind"
    " xargs or eval, and files that the script itself mentions elsewhere (it may test for them or create them).",
    skips="A script is larger than 512 KiB or cannot be read.",
    by_hand="grep -nE '(source|bash|python3) ' -r lifecycle_scripts",
)
def lifecycle_scripts_find_what_they_call(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nothing
    """A bucket with on_create.sh but without the scripts that it calls is a common cause of failures."""
    folder = _folder(case)
    yield from folder.unread()
    for file, text in folder.texts():
        if _interpreter(text) in _SHELLS:
            yield LOOKED
            yield from _calls(folder, file, text)


@check(
    area="lifecycle-scripts",
    inputs="Every command of every script: curl, wget, git clone, pip install, apt-get, yum, dnf, docker pull and"
    " similar commands.",
    passes="No script downloads anything; the node's image has what it needs.",
    fails="A warning for each line that downloads, saying if the content can change without notice: a"
    " branch, 'latest', a version that is not pinned. With network.egress: closed an error, because the internet"
    " cannot be reached;"
    " only if an option or a variable names another source it stays a warning. 'aws s3 cp' and addresses of the"
    " node itself (localhost, 169.254.169.254) do not count.",
    skips="A script is larger than 512 KiB or cannot be read.",
    by_hand="grep -nE 'curl|wget|git clone|pip3? install|apt-get|yum|dnf|docker pull' -r lifecycle_scripts",
)
def lifecycle_scripts_download_nothing(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nothing
    """A download at boot can be missing, slow or different on the day that a node is replaced."""
    folder = _folder(case)
    yield from folder.unread()
    for file, text in folder.texts():
        if _interpreter(text) not in _SHELLS:
            continue
        yield LOOKED
        found = commands(text)
        for line, downloads in _by_line(found):
            if case.environment.network.is_closed and _leaves(found, line):
                yield _finding(
                    folder.name(file),
                    line,
                    f"must download nothing from the internet ({', '.join(downloads)}), which cannot be reached with"
                    " network.egress: closed; put it into a custom AMI or a container image of ECR, or download it with"
                    " 'aws s3 cp'",
                )
                continue
            yield _finding(
                folder.name(file),
                line,
                f"downloads while the node boots ({', '.join(downloads)}); a node that is replaced later may get"
                " something else or nothing: put it into a custom AMI or a container image",
                severity=Severity.WARNING,
            )


@check(
    area="lifecycle-scripts",
    inputs="Every text file of the folder: without a NUL byte at its beginning, as in git.",
    passes="No file contains text in the form of an AWS access key ID or secret access key, a private key, or a token"
    " of"
    " GitHub, Hugging Face, Slack or NVIDIA NGC.",
    fails="A file does. The finding names the kind and the line, never the secret. Keys that AWS's documentation uses"
    " as examples, ending in EXAMPLE, do not count.",
    skips="A text file is larger than 2 MiB.",
    by_hand="git grep -nE 'AKIA[A-Z0-9]{16}|BEGIN .*PRIVATE KEY|gh[pousr]_|hf_|xox[abprs]-' lifecycle_scripts",
)
def lifecycle_scripts_hold_no_secret(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nothing
    """Anyone who can read the bucket, and every job that runs as root on a node, can read the scripts."""
    folder = _folder(case)
    for file in folder.files():
        yield LOOKED
        with file.open("rb") as stream:
            content = stream.read(LARGEST_TEXT_MIB * 2**20 + 1)
        if b"\0" in content[:_TEXT_PROBE_BYTES]:
            continue
        if len(content) > LARGEST_TEXT_MIB * 2**20:
            yield Skipped(reason=f"{folder.name(file)} is larger than {LARGEST_TEXT_MIB} MiB, not searched for secrets")
            continue
        for line, kind in secrets(content.decode("utf-8", "replace")):
            yield _finding(
                folder.name(file),
                line,
                f"must not contain a secret, got text that looks like {kind}, readable in the bucket and on every"
                " node; remove"
                " and revoke it, and read it in the script from AWS Secrets Manager",
            )


def _folder(case: Case) -> _Folder:
    own = case.project / SCRIPTS
    return _Folder(path=own if own.is_dir() else library_scripts(), shown=Path(SCRIPTS), steps=lifecycle_steps())


def _files(folder: Path) -> list[Path]:
    return list(files(folder)) if folder.is_dir() else []


def _missing(case: Case, folder: _Folder) -> Iterator[Found]:
    names = script_names(folder.path)
    if not names:
        return
    for index, group in enumerate(case.environment.hyperpod.instance_groups):
        key, script = group.script
        problem = name_problem(script, names, where=f"{folder.shown}/")
        if problem:
            yield error(f"hyperpod.instance_groups[{index}].{key}", problem)


def _form(file: Path, name: str) -> Iterator[Found]:
    content = file.read_bytes()
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        yield _finding(name, line, "must be text, got a NUL byte; save the script as UTF-8, or rename it without .sh")
        return
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        yield _finding(
            name,
            line,
            f"should be UTF-8, got the byte 0x{content[problem.start]:02x}; save the script as UTF-8",
            severity=Severity.WARNING,
        )
    first_line = content.split(b"\n", 1)[0].decode("utf-8", "replace")
    words = first_line.removeprefix("#!").split()
    if words[0] not in _ON_EVERY_NODE:
        yield _finding(
            name,
            1,
            f"should name an interpreter that every node has, got {words[0]}; make the first line #!/usr/bin/env bash",
            severity=Severity.WARNING,
        )
    elif words[0] == "/usr/bin/env" and len(words) > 2 and not words[1].startswith("-"):
        yield _finding(
            name,
            1,
            f'should give env only the program, got "{" ".join(words[1:])}", which env reads as one name; make the'
            f" first line #!/usr/bin/env {words[1]} and write 'set {' '.join(words[2:])}' below it",
            severity=Severity.WARNING,
        )


def _size(folder: _Folder) -> Detail:
    sizes = [file.stat().st_size for file in folder.files()]
    kib = sum(sizes) / 2**10
    return Detail(
        text=f"{folder.shown}/ has {len(sizes)} {plural(len(sizes), 'file')}, {kib:.1f} KiB; each new node downloads"
        f" {plural(len(sizes), 'it', 'them all')}",
        data={"files": len(sizes), "bytes": sum(sizes)},
    )


def _interpreter(text: str) -> str:
    words = text.split("\n", 1)[0].removeprefix("#!").split()
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0].rsplit("/", 1)[-1] if words else ""


def _syntax(bash: str, file: Path) -> tuple[int | None, str] | str | None:
    """Return line and text of a syntax error, or why there is no answer, or None if there is no error."""
    try:
        # without BASH_ENV, which bash would run, and with messages in English
        done = subprocess.run(
            [bash, "-n", str(file)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_BASH_SECONDS,
            stdin=subprocess.DEVNULL,
            env={"LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return f"took more than {_BASH_SECONDS} s"
    except OSError as problem:
        return f"could not be run: {problem.strerror}"
    if done.returncode == 0:
        return None
    for said in done.stderr.splitlines():
        if match := _BASH_ERROR.match(said):
            return int(match[1]), match[2]
    return None, f"exit code {done.returncode}"


def _calls(folder: _Folder, file: Path, text: str) -> Iterator[Found]:
    found = commands(text)
    place = folder.place(file)
    folders = _own_folders(text, place.parent)
    makes_executable = any(each.name in {"chmod", "install"} for each in found)
    moves = any(each.name in {"cd", "pushd"} and "$" not in " ".join(each.arguments) for each in found)
    top = resolved(folder.path)
    for command in found:
        called, by_itself = _called(command)
        target = _resolved(called, place, folder.path, folders, is_anywhere=moves)
        if target is None or _is_named_elsewhere(PurePosixPath(called).name, command, found):
            continue
        if not target.is_relative_to(top):
            continue
        name = target.relative_to(top)
        if not target.exists():
            yield _finding(
                folder.name(file),
                command.line,
                f'must find what it calls in {folder.shown}/, got "{called}", and there is no'
                f" {folder.shown / name}; add the file or remove the call",
            )
        elif by_itself and not makes_executable:
            yield _finding(
                folder.name(file),
                command.line,
                f'should run {folder.shown / name} through its interpreter, got "{called}", which S3 leaves without its'
                f" executable bit; write 'bash \"{called}\"'",
                severity=Severity.WARNING,
            )


def _called(command: Command) -> tuple[str, bool]:
    """Return the file that a command runs or reads, or nothing, and whether only by its path."""
    if command.name in {"source", "."} | _INTERPRETERS:
        if any(argument in {"-c", "-m"} for argument in command.arguments):
            return "", False
        return next((argument for argument in command.arguments if not argument.startswith("-")), ""), False
    return (command.words[0], True) if "/" in command.words[0] else ("", False)


def _own_folders(text: str, parent: Path) -> Mapping[str, Path]:
    """Return the variables with the script's own folder, or one next to it."""
    found = {}
    for name, value in assignments(text):
        match = _OWN_FOLDER.search(value) or _FOLDER_BY_CUT.match(value)
        if match:
            found[name] = Path(f"{parent}{match[1]}")
    return found


def _resolved(called: str, file: Path, folder: Path, folders: Mapping[str, Path], *, is_anywhere: bool) -> Path | None:
    """Return the file that a call means, or None if the text does not show it."""
    if match := _VARIABLE.match(called):
        rest = called[match.end() + 1 :]
        base = folders.get(match[1])
        return resolved(base / rest) if base is not None and _PLAIN_PATH.match(rest) else None
    if match := _OWN_FOLDER.match(called.removeprefix("$(")):
        rest = match[1].lstrip("/")
        return resolved(file.parent / rest) if rest else None
    is_relative = _PLAIN_PATH.match(called) and not called.startswith("/")
    if not is_relative or is_anywhere or PurePosixPath(called).suffix not in _SCRIPT_SUFFIXES:
        return None
    beside, at_top = resolved(file.parent / called), resolved(folder / called)
    return at_top if at_top.exists() else beside


def _is_named_elsewhere(name: str, command: Command, found: Iterable[Command]) -> bool:
    others = (each for each in found if each is not command and _called(each) != _called(command))
    return any(name in word for each in others for word in each.words)


def _leaves(found: Iterable[Command], line: int) -> bool:
    return any(each.line == line and download(each) and leaves_the_network(each) for each in found)


def _by_line(found: Iterable[Command]) -> Iterator[tuple[int, list[str]]]:
    lines: dict[int, list[str]] = {}
    for command in found:
        if said := download(command):
            lines.setdefault(command.line, []).append(said)
    yield from lines.items()


def _from_problem(problem: Problem) -> Finding:
    return _finding(problem.path.as_posix(), problem.line, problem.message)


def _finding(file: str, line: int | None, message: str, *, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(severity=severity, message=message, file=file, line=line)
