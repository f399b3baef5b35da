"""Functions that all commands share: finding the project and the file of an environment, reporting user errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol, TypeVar

import typer

from hyperpod_cdk._cli.output import Checked, Format, print_checked
from hyperpod_cdk._cli.words import environments
from hyperpod_cdk.file_reading import read_bytes

if TYPE_CHECKING:
    from datetime import date

    from rich.console import Console

    from hyperpod_cdk.config import LoadedEnvironment
    from hyperpod_cdk.findings import Finding
    from hyperpod_cdk.review.isolation import Limits
    from hyperpod_cdk.review.sources import Source

Record = TypeVar("Record")


class Document(Protocol):
    """The result of reading a file, with its warnings."""

    @property
    def warnings(self) -> Sequence[Finding]:
        """The warnings about the file."""
        ...


Loaded = TypeVar("Loaded", bound=Document)

FINDINGS = 1
"""Exit code of a command that completed and found a problem."""

USAGE = 2
"""Exit code of a command that could not run: wrong arguments, no credentials, no such file."""

StrictOption = Annotated[
    bool, typer.Option("--strict", help="Also exit with code 1 if something was skipped, because it could not be read.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="Output format.")]
ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project",
        help=(
            "Root folder of the project. Default: the nearest folder with environments/, from the current"
            " folder upwards."
        ),
    ),
]
TrustedOption = Annotated[
    bool,
    typer.Option(
        "--trusted",
        help=(
            "Run the CDK app without isolation, with access to your home folder, files and network. Only for"
            " code that you trust."
        ),
    ),
]
EnvironmentArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        autocompletion=environments,
        help="Name or file of the environment.",
    ),
]


_EXTENSIONS = "pyproject.toml"
_LONGEST_FILE = 1_000_000


def root_of(project: Path | None, *, runs_extensions: bool = True) -> Path:
    """Return the project's root: ``project``, or the nearest folder upwards that contains environments/ or cdk.json.

    Also activates the extensions in its pyproject.toml for this process, or those of the current folder's project if
    it has none. ``runs_extensions`` is False for commands that check files of others: only the names of the sections
    are then known, and no code of the project runs. Exits with code 2 if an extension is invalid.
    """
    root = _root(project)
    # a pipeline checks a folder with files of another commit: the extensions are those of the project that checks
    file = next(
        (each for each in (root / _EXTENSIONS, _root(None) / _EXTENSIONS) if each.is_file()), root / _EXTENSIONS
    )
    try:
        names_any = b"hyperpod-cdk.extensions" in read_bytes(file, most=_LONGEST_FILE)
    except FileNotFoundError:
        names_any = False
    except OSError:
        # the reader of extensions reports the error
        names_any = True
    if names_any or "hyperpod_cdk.config.extensions" in sys.modules:
        from hyperpod_cdk.config.extensions import activate  # noqa: PLC0415 - most projects have none

        activate(file.parent, runs=runs_extensions)
    return root


def _root(project: Path | None) -> Path:
    if project is not None:
        if not project.is_dir():
            usage(f"--project: folder {project} does not exist")
        return project
    from hyperpod_cdk.config.loading import project_of  # noqa: PLC0415 - completion need not load it

    here = Path.cwd()
    return project_of(here) or here


NO_APP = "{} has neither cdk.json nor app.py, so the CDK has nothing to run; 'hyperpod-cdk new DIR' creates a project"
"""The message for a folder without an app."""


def has_app(root: Path) -> bool:
    """Return whether a folder contains an app that the CDK can run."""
    return any((root / name).is_file() for name in ("cdk.json", "app.py"))


def environment_file(name: str, root: Path) -> Path:
    """Return the file of an environment by name or path; exits with code 2 and a similar name if there is none."""
    from hyperpod_cdk.config import UsageError, resolve_environment_file  # noqa: PLC0415 - 'schema --help' need not build the models

    try:
        return resolve_environment_file(name, root)
    except UsageError as error:
        usage(str(error))


def loaded_environment(
    file: Path, *, output: Format, today: date | None = None, with_record: bool = True
) -> LoadedEnvironment:
    """Read an environment file for a command that uses it; prints its errors and exits with code 1 if it is refused.

    Warnings are not printed: ``validate`` shows them. ``today`` and ``with_record`` are those of
    ``load_environment``.
    """
    from hyperpod_cdk.config import load_environment  # noqa: PLC0415 - as above

    return _read(lambda: load_environment(file, today=today, with_record=with_record), output=output)


def judged_environment(file: Path, *, output: Format) -> LoadedEnvironment:
    """Read an environment file for a command that checks or deploys it, with warnings on standard error.

    ``validate`` and ``fleet validate`` list warnings among their findings. Synthesis, also for ``review`` and
    ``rehearse``, reports them as CDK annotations.
    """
    from hyperpod_cdk.config import load_environment  # noqa: PLC0415 - as above

    return loaded_document(lambda: load_environment(file), output=output)


def loaded_document(load: Callable[[], Loaded], *, output: Format) -> Loaded:
    """Return what ``load`` reads, with warnings on standard error; prints errors and exits with code 1 if refused."""
    loaded = _read(load, output=output)
    for warning in loaded.warnings:
        print(f"warning {warning.render()}", file=sys.stderr)
    return loaded


def _read(load: Callable[[], Loaded], *, output: Format) -> Loaded:
    from hyperpod_cdk.config.documents import DocumentError  # noqa: PLC0415 - as above

    try:
        return load()
    except DocumentError as error:
        print_checked([Checked(error.file, error.findings)], output=output)
        raise typer.Exit(FINDINGS) from None


@contextmanager
def aws_errors(*, otherwise: str = "") -> Iterator[None]:
    """Turn missing or expired AWS credentials into a message and exit code 2.

    ``otherwise`` is what the user can do without AWS.
    """
    from hyperpod_cdk.checks.answers import AwsAccessError  # noqa: PLC0415 - as above

    try:
        yield
    except AwsAccessError as error:
        usage(f"{error}{otherwise}")


def finish(*, passed: bool | None, strict: bool) -> None:
    """Exit with code 1 if something failed and, with ``strict``, if not everything could be checked."""
    if passed is False or (strict and passed is None):
        raise typer.Exit(FINDINGS)


def usage(message: str) -> NoReturn:
    """Print one sentence about an error of the user, and exit with code 2."""
    hearing = _hearing.get()
    if hearing is None:
        print(message, file=sys.stderr)
    else:
        hearing(message)
    raise typer.Exit(USAGE)


def refuse_word(word: str, problem: str | None) -> None:
    """Exit with code 2 and the problem of an option's or argument's value; do nothing if ``problem`` is None."""
    from hyperpod_cdk.catalog.sentences import by_option, in_words_of  # noqa: PLC0415 - only where something is wrong

    if problem is not None:
        usage(f"{word}: {in_words_of(problem, by_option(word))}")


def asked(option: str, question: str, *, default: str | None = None, judge: Callable[[str], str | None]) -> str:
    """Ask for the value of ``option``; on a terminal, repeat until ``judge`` finds no problem with the answer.

    Exits with code 2 if there is no answer: a program must pass the option. Questions go to standard error.
    """
    is_terminal = sys.stdin.isatty()

    def judged(answer: str) -> str:
        given = answer.strip()
        problem = judge(given) if given and is_terminal else None
        if problem is not None:
            raise typer.BadParameter(problem)
        return given

    try:
        given: str = typer.prompt(question, default=default, show_default=bool(default), err=True, value_proc=judged)
    except typer.Abort:
        print(file=sys.stderr)
        usage(f"{option} is missing and was not answered, so nothing was written; give {option}")
    return given


_hearing: ContextVar[Callable[[str], None] | None] = ContextVar("_hearing", default=None)


@contextmanager
def messages_to(hearing: Callable[[str], None]) -> Iterator[None]:
    """Pass messages of ``usage`` in this block to ``hearing`` instead of printing them; the exit is still raised."""
    before = _hearing.set(hearing)
    try:
        yield
    finally:
        _hearing.reset(before)


def files_of(name: str, root: Path) -> list[Path]:
    """Return the file of an environment by name or path, or every file of a folder; raises UsageError if there is none.

    If the folder is a project, the files are those in environments/.
    """
    from hyperpod_cdk.config import UsageError, resolve_environment_file  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.loading import FOLDER  # noqa: PLC0415 - as above

    folder = Path(name)
    # an empty name, from a shell variable that is not set, is not a folder
    if not name or "\0" in name or not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        return [resolve_environment_file(name, root)]
    folder = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    files = sorted(each for each in folder.glob("*.yaml") if not each.is_dir())
    if not files:
        raise UsageError(f"no environment file (*.yaml) in {folder}")
    return files


def old_record(path: Path, shown: str, *, read: Callable[[], Record]) -> Record | None:
    """Return the record that is about to be replaced, or None if there is none that can be read.

    ``read`` reads it. Exits with code 2 if it is not a file or was written by a newer version.
    """
    from hyperpod_cdk.config.record_file import RecordError  # noqa: PLC0415 - only records read records

    if not os.path.lexists(path):
        return None
    try:
        return read()
    except RecordError as error:
        if path.exists() and not path.is_file():
            usage(f"{shown} is not a file; remove it")
        if error.is_newer:
            usage(f"{error.finding.render()}; nothing was written")
        # its fix is to replace the record, which happens now
        print(f"replaces a record that could not be read: {error.problem.render()}", file=sys.stderr)
        return None


@contextmanager
def assembly_errors() -> Iterator[None]:
    """Turn errors that the user can fix into a message and exit code 2, after the output of an app that failed."""
    from hyperpod_cdk.config import UsageError  # noqa: PLC0415 - 'schema --help' need not build the models
    from hyperpod_cdk.review.sources import SynthesisError  # noqa: PLC0415 - as above
    from hyperpod_cdk.templates.assembly import AssemblyError  # noqa: PLC0415 - as above

    try:
        yield
    except SynthesisError as error:
        sys.stderr.write(error.output if error.output.endswith("\n") else f"{error.output}\n" * bool(error.output))
        usage(str(error))
    except (AssemblyError, UsageError) as error:
        usage(str(error))


@contextmanager
def synthesized(
    root: Path,
    environment: str | None,
    *,
    base: str | None,
    head: str | None,
    head_revision: str | None = None,
    context: Mapping[str, str] | None = None,
    limits: Limits,
    meanwhile: Sequence[str] = (),
) -> Iterator[tuple[Source | None, Source]]:
    """Yield the sources of ``review.sources.sources``, and warn about what an app could access on this machine.

    ``meanwhile`` are modules that the comparison needs; they are imported while the apps run.
    """
    from hyperpod_cdk.review.sources import sources  # noqa: PLC0415 - as above

    with sources(
        root,
        environment,
        base=base,
        head=head,
        head_revision=head_revision,
        context=context,
        limits=limits,
        meanwhile=lambda: [import_module(module) for module in meanwhile],
    ) as found:
        for side in found:
            for exposed in side.exposed if side else ():
                print(f"warning {exposed}", file=sys.stderr)
        yield found


@contextmanager
def os_errors(path: Path) -> Iterator[None]:
    """Turn a failure to write below ``path`` into a message and exit code 2."""
    try:
        yield
    except OSError as error:
        usage(f"cannot write {error.filename or path}: {error.strerror or error}")


@contextmanager
def extra(name: str) -> Iterator[None]:
    """If a package is missing, exit with the name of the extra that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "hyperpod_cdk":
            raise
        usage(f"needs the package {package}; install it with pip install 'hyperpod-cdk[{name}]'")


def console(**options: Any) -> Console:
    """Return a rich console; rich is imported only by commands with tables or progress."""
    from rich.console import Console  # noqa: PLC0415 - as above

    return Console(**options)
