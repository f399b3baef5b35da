"""What every verb shares: where the project is, which file an environment is, how a mistake of the user's is said."""

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
    """What was read of a file, with what did not refuse it."""

    @property
    def warnings(self) -> Sequence[Finding]:
        """What is doubtful of it."""
        ...


Loaded = TypeVar("Loaded", bound=Document)

FINDINGS = 1
"""Exit code of a verb that did its work and found something wrong."""

USAGE = 2
"""Exit code of a verb that could not do its work: wrong words, no credentials, no such file."""

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
    """Give the project's root: as told, else the nearest folder above that holds environments/ or cdk.json.

    The extensions of its pyproject.toml, else of that above the folder that this runs in, are those of this process
    from then on. ``runs_extensions`` is False for verbs that judge files of
    strangers: they know the sections' names and run no code of the project; exits 2 where an extension is none.
    """
    root = _root(project)
    # files of another commit, which a pipeline has put into a folder, are judged by the extensions of who judges
    file = next(
        (each for each in (root / _EXTENSIONS, _root(None) / _EXTENSIONS) if each.is_file()), root / _EXTENSIONS
    )
    try:
        names_any = b"hyperpod-cdk.extensions" in read_bytes(file, most=_LONGEST_FILE)
    except FileNotFoundError:
        names_any = False
    except OSError:
        # the reader of extensions says what is wrong
        names_any = True
    if names_any or "hyperpod_cdk.config.extensions" in sys.modules:
        from hyperpod_cdk.config.extensions import activate  # noqa: PLC0415 - most projects have none

        activate(file.parent, runs=runs_extensions)
    return root


def _root(project: Path | None) -> Path:
    if project is not None:
        if not project.is_dir():
            usage(f"--project: no folder {project}")
        return project
    from hyperpod_cdk.config.loading import project_of  # noqa: PLC0415 - completion need not load it

    here = Path.cwd()
    return project_of(here) or here


NO_APP = "{} has neither cdk.json nor app.py, so the CDK has nothing to run; 'hyperpod-cdk new DIR' creates a project"
"""What is said of a folder without an app."""


def has_app(root: Path) -> bool:
    """Say whether a folder holds something that the CDK can run."""
    return any((root / name).is_file() for name in ("cdk.json", "app.py"))


def environment_file(name: str, root: Path) -> Path:
    """Give the file of an environment by name or path; exits 2 with the near miss where there is none."""
    from hyperpod_cdk.config import UsageError, resolve_environment_file  # noqa: PLC0415 - 'schema --help' need not build the models

    try:
        return resolve_environment_file(name, root)
    except UsageError as error:
        usage(str(error))


def loaded_environment(
    file: Path, *, output: Format, today: date | None = None, with_record: bool = True
) -> LoadedEnvironment:
    """Read an environment file for a verb that uses what it says; prints its errors and exits 1 where it is refused.

    Its warnings are kept back: who looks at nodes every minute has read them in ``validate``. ``today`` and
    ``with_record`` are those of ``load_environment``.
    """
    from hyperpod_cdk.config import load_environment  # noqa: PLC0415 - as above

    return _read(lambda: load_environment(file, today=today, with_record=with_record), output=output)


def judged_environment(file: Path, *, output: Format) -> LoadedEnvironment:
    """Read an environment file for a verb that judges it, or deploys what it says: its warnings go to standard error.

    ``validate`` and ``fleet validate`` have them among their findings, and synthesis, for ``review`` and ``rehearse``
    too, as annotations of the CDK.
    """
    from hyperpod_cdk.config import load_environment  # noqa: PLC0415 - as above

    return loaded_document(lambda: load_environment(file), output=output)


def loaded_document(load: Callable[[], Loaded], *, output: Format) -> Loaded:
    """Give what ``load`` reads; prints its errors and exits 1 where it is refused. Warnings go to standard error."""
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
    """Turn "nobody to ask AWS as" (no credentials, expired ones) into a sentence and exit code 2.

    ``otherwise`` is what the user can do without AWS.
    """
    from hyperpod_cdk.checks.answers import AwsAccessError  # noqa: PLC0415 - as above

    try:
        yield
    except AwsAccessError as error:
        usage(f"{error}{otherwise}")


def finish(*, passed: bool | None, strict: bool) -> None:
    """Exit with 1 where something refuses, and with ``strict`` where not everything was looked at."""
    if passed is False or (strict and passed is None):
        raise typer.Exit(FINDINGS)


def usage(message: str) -> NoReturn:
    """Say in one sentence what the user got wrong, and exit 2."""
    hearing = _hearing.get()
    if hearing is None:
        print(message, file=sys.stderr)
    else:
        hearing(message)
    raise typer.Exit(USAGE)


def refuse_word(word: str, problem: str | None) -> None:
    """Exit 2 with what is wrong with what an option or argument gives, in the words of a command; None is right."""
    from hyperpod_cdk.catalog.sentences import by_option, in_words_of  # noqa: PLC0415 - only where something is wrong

    if problem is not None:
        usage(f"{word}: {in_words_of(problem, by_option(word))}")


def asked(option: str, question: str, *, default: str | None = None, judge: Callable[[str], str | None]) -> str:
    """Ask for what ``option`` would have given, at a terminal until ``judge`` has nothing to say of the answer.

    Exits 2 where nobody answers: a program has to give the option. Questions go to standard error, beside the answer.
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
def heard(hearing: Callable[[str], None]) -> Iterator[None]:
    """Give what ``usage`` says within to somebody, who shows it beside what others say; the exit is still raised."""
    before = _hearing.set(hearing)
    try:
        yield
    finally:
        _hearing.reset(before)


def files_of(name: str, root: Path) -> list[Path]:
    """Give the file of an environment by name or path, or every file of a folder; raises UsageError without one.

    Of a project's folder those in environments/.
    """
    from hyperpod_cdk.config import UsageError, resolve_environment_file  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.loading import FOLDER  # noqa: PLC0415 - as above

    folder = Path(name)
    # an empty name, of a shell's variable that is not set, is no folder
    if not name or "\0" in name or not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        return [resolve_environment_file(name, root)]
    folder = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    files = sorted(each for each in folder.glob("*.yaml") if not each.is_dir())
    if not files:
        raise UsageError(f"no environment file (*.yaml) in {folder}")
    return files


def old_record(path: Path, shown: str, *, read: Callable[[], Record]) -> Record | None:
    """Give the record that is about to be replaced, None where there is none that can be read.

    ``read`` reads it. Exits 2 where it is no file, or one that a newer version wrote.
    """
    from hyperpod_cdk.config.record_file import RecordError  # noqa: PLC0415 - only records read records

    if not os.path.lexists(path):
        return None
    try:
        return read()
    except RecordError as error:
        if path.exists() and not path.is_file():
            usage(f"{shown} is no file; remove it")
        if error.is_newer:
            usage(f"{error.finding.render()}; nothing was written")
        # the fix says to do what is being done
        print(f"replaces a record that could not be read: {error.problem.render()}", file=sys.stderr)
        return None


@contextmanager
def assembly_errors() -> Iterator[None]:
    """Turn what the user can fix into a line and exit code 2; of an app that failed all that it said comes first."""
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
    """Give what ``review.sources.sources`` gives, and say on standard error what an app could reach of the user's.

    ``meanwhile`` are modules that the comparison needs: they are imported while the apps run.
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
    """Turn a failure to write below ``path`` into a sentence and exit code 2."""
    try:
        yield
    except OSError as error:
        usage(f"cannot write {error.filename or path}: {error.strerror or error}")


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Say which extra to install where a package that it brings is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "hyperpod_cdk":
            raise
        usage(f"needs the package {package}; install it with pip install 'hyperpod-cdk[{name}]'")


def console(**options: Any) -> Console:
    """Give a rich console; only verbs with tables or progress pay for rich."""
    from rich.console import Console  # noqa: PLC0415 - only verbs with progress pay for rich

    return Console(**options)
