"""The two sides of a review: a cloud assembly, a Git revision, or the project's present files.

The project's files can also be synthesized with the library of another virtual environment, so that a review shows how
another version of the library changes the same environment.

A revision is written to a temporary folder, and its own app runs there with its own library, isolated from the user's
files and variables (review/isolation.py). Nothing is left behind in the repository.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Any

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.config.documents import DocumentError, open_source, shown
from hyperpod_cdk.config.loading import (
    FOLDER,
    SUFFIX,
    EnvironmentFileError,
    LoadedEnvironment,
    UsageError,
    called,
    environment_names,
    load_environment,
    resolve_environment_file,
)
from hyperpod_cdk.config.source import ENVIRONMENT
from hyperpod_cdk.file_reading import read_text, reason_of, resolved
from hyperpod_cdk.packaged_node import node_variables
from hyperpod_cdk.review.changes.assets import Stored
from hyperpod_cdk.review.isolation import Limits, run_isolated
from hyperpod_cdk.review.model import Reason, Side
from hyperpod_cdk.review.standing import digest_of
from hyperpod_cdk.scratch import scratch_folder
from hyperpod_cdk.script_files import library_scripts
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, AssemblyError, read_assembly
from hyperpod_cdk.templates.deployment import DeploymentError, tags_of_project

WORKING_TREE = "working tree"
"""Label of the files that are in the project, uncommitted changes included."""

NOTHING = "nothing"
"""Label of a side on which the environment does not exist."""

CHART = Path("charts/hyperpod-dependencies")
CHART_LOCK = Path("charts/charts.lock.yaml")
"""The path to which 'charts pull' writes the chart, which no revision contains, and the lock that identifies it."""

_NO_PROGRAM = 127
"""Exit code of a shell, and of the isolation, for a program that does not exist."""

_UNREACHED = (
    f"an isolated app can read its project, the system's programs and the Python of this command, {sys.prefix}: "
    "install hyperpod-cdk with the app's Python, or add --trusted"
)

_TOOLS = (".venv", "venv", "node_modules")
"""Files that an app needs and no revision contains: those of the project are used for every side."""

_SETTINGS_FILE = "cdk.json"
_CONTEXT_FILE = "cdk.context.json"
_LFS_POINTER = "^version https://git-lfs.github.com/spec/v1"
_HEAD_REVISION = "--head-revision"
_SUBMODULE = "160000"
_SYMLINK = "120000"
_LONGEST_SETTINGS = 1_000_000


class SynthesisError(AssemblyError):
    """The app of one side failed; ``output`` is what it printed, the text a line that names the side."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


@dataclass(frozen=True, kw_only=True)
class Source:
    """One side: its stacks, its label, and its environment file if there is one.

    ``notes`` state what could not be determined, ``exposed`` what an app could access although it should be isolated
    from it, ``reasons`` why a person must approve although neither side shows it, and ``stored`` reads assets of a side
    that is deployed.
    """

    assembly: Assembly
    side: Side
    environment: LoadedEnvironment | None = None
    notes: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    exposed: tuple[str, ...] = ()
    stored: Stored | None = None


@contextmanager
def sources(
    project: Path,
    environment: str | None,
    *,
    base: str | None,
    head: str | None,
    head_revision: str | None = None,
    context: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Iterator[tuple[Source | None, Source]]:
    """Return both sides, base first, as a context; their files are deleted after it.

    ``base`` and ``head`` are folders of cloud assemblies, Git revisions, or virtual environments, whose library then
    synthesizes the project's files. Without a head, it is the project's present files; without a base, None is returned
    for it. ``environment`` is a name or a file; it can be omitted only between assemblies of one environment each.
    ``head_revision`` is the revision from which the assembly ``head`` was synthesized: its environment file explains
    changes, and its app is not run. ``context`` is passed to the apps in addition to their own, ``limits`` are theirs.
    ``meanwhile`` is called while the apps run, so that what the caller loads for the comparison takes no extra time. An
    environment that is new at the head has a base without stacks, and the other way round. Raises AssemblyError,
    SynthesisError if an app fails, UsageError if no side has the environment.
    """
    with scratch_folder(prefix="hyperpod-review-") as scratch:
        sides: list[_Folder | _Tree] = []
        if base is not None:
            sides.append(_side(project, base, Path(scratch, "base"), option="--base"))
        if head is None:
            sides.append(_Tree(root=project, label=WORKING_TREE, out=Path(scratch, "head")))
        else:
            sides.append(_side(project, head, Path(scratch, "head"), option="--head"))
        if head_revision is not None:
            sides[-1] = _made_from(sides[-1], _side(project, head_revision, Path(scratch, "of"), option=_HEAD_REVISION))
        trees = [tree for side in sides if (tree := side if isinstance(side, _Tree) else side.of)]
        for tree in trees:
            tree.context = dict(context or {})
            tree.limits = limits or Limits()
        if trees and not environment:
            raise AssemblyError(f"name the environment, as in 'hyperpod-cdk review ENV'; {_choice(project)}")
        with ThreadPoolExecutor(len(sides)) as pool, _stopped_with(trees):
            list(pool.map(lambda tree: tree.check_out(), trees))
            file = _file(project, environment, trees) if environment and trees else ""
            _pair(trees, file)
            running: list[Future[Any]] = [pool.submit(side.run) for side in sides]
            for side in sides:
                if isinstance(side, _Tree):
                    # from here on other processes work: before, two threads would only wait for each other
                    side.begun.wait()
            for tree in trees:
                tree.load(tree.file, project)
            if meanwhile is not None:
                meanwhile()
            names = [tree.loaded.environment.name for tree in trees if tree.loaded]
            name = names[-1] if names else environment and Path(environment).stem
            found = [
                side.read(side.file if isinstance(side, _Tree) else file, name, each.result())
                for side, each in zip(sides, running, strict=True)
            ]
        if not _are_two(sides, [source.assembly for source in found]):
            _refuse_two_environments([source.assembly for source in found])
        yield (found[0] if base is not None else None), found[-1]


@contextmanager
def _stopped_with(trees: Sequence[_Tree]) -> Iterator[None]:
    """Stop the apps that still run if the body ends with an error or with Ctrl-C: otherwise it waits for them."""
    try:
        yield
    except BaseException:
        for tree in trees:
            tree.given_up.set()
        raise


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What distinguishes environments in AWS: the account, the Region, and the prefix of all stack names."""

    name: str
    account: str
    region: str


@dataclass(frozen=True, kw_only=True)
class _Folder:
    """An existing cloud assembly, which is deployed from the folder of ``project``."""

    folder: Path
    project: Path
    label: str
    of: _Tree | None = None

    def run(self) -> str:
        """Return the folder's digest; raises AssemblyError if a link leads out of it."""
        _refuse_links(self.folder, self.label)
        return digest_of(self.folder)

    def read(self, file: str, name: str | None, digest: str) -> Source:
        """Read the environment with this name, or the only one."""
        assembly = _tagged(read_assembly(self.folder, name), self.project)
        if self.of:
            assembly = replace(assembly, called=self.of.loaded.called if self.of.loaded else "")
            return Source(
                assembly=assembly,
                side=Side(
                    label=self.of.label,
                    commit=self.of.commit,
                    environment_file=file,
                    assembly=digest,
                ),
                environment=self.of.loaded,
                notes=tuple(self.of.notes),
            )
        note = f"{self.label} is a cloud assembly: it is unknown from which environment file it was synthesized."
        side = Side(label=self.label, assembly=digest)
        return Source(assembly=assembly, side=side, notes=(note,))


@dataclass(kw_only=True)
class _Tree:
    """A project's files at one moment: ``root`` is the folder with the app, ``out`` the folder for its assembly."""

    root: Path
    label: str
    out: Path
    commit: str | None = None
    loaded: LoadedEnvironment | None = None
    context: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    notes: list[str] = field(default_factory=list)
    file: str = ""
    """The environment's file on this side, relative to the project; a renamed one has another path on the other
    side."""
    begun: Event = field(default_factory=Event)
    """Set when the app runs, or if it will not run."""
    given_up: Event = field(default_factory=Event)
    """Set when nobody waits for the app any longer."""

    def identity(self, file: str) -> Identity | None:
        """Return what identifies the environment of a file for CloudFormation, None if the file does not show it."""
        path = self.root / file
        try:
            stated = open_source(path, ENVIRONMENT).data if path.is_file() else None
        except DocumentError:
            return None
        if not isinstance(stated, dict) or any(not isinstance(stated.get(key), str) for key in ("name", "region")):
            return None
        return Identity(name=stated["name"], account=str(stated.get("account", "")), region=stated["region"])

    def find(self, identity: Identity, folder: str) -> str | None:
        """Return the file of an environment in a folder, the first by name if there are several."""
        for path in sorted((self.root / folder).glob(f"*{SUFFIX}")):
            file = path.relative_to(self.root).as_posix()
            if self.identity(file) == identity:
                return file
        return None

    def readable(self) -> list[Path]:
        """Return the paths that the app may read: the checkout of the project."""
        return [_checkout(self.root)]

    def command(self, command: str | list[str]) -> str | list[str]:
        """Return the app's command from cdk.json."""
        return command

    def library_variables(self) -> dict[str, str]:
        """Return the variables with which the app finds its library and its programs."""
        roots = {"constructs": "hyperpod_cdk", "stacks": "hyperpod_cdk_stacks"}
        found = [self.root / name for name, package in roots.items() if (self.root / name / package).is_dir()]
        if not found:
            return node_variables()
        # a revision that contains the library is synthesized with it, any other one with the installed library
        paths = [*(str(resolved(each)) for each in found), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**node_variables(), "PYTHONPATH": os.pathsep.join(paths)}

    def check_out(self) -> None:
        """Write the files there; those of the project already exist."""

    def load(self, file: str, project: Path) -> None:
        """Read the environment file with the rules of this library, which can differ from those of the revision.

        ``project`` is the user's, in which the commands that messages name find the environment.
        """
        path = self.root / file
        if not file or not path.is_file():
            return
        try:
            # the date of the tables, not the current one: the same input always gives the same report
            loaded = load_environment(path, today=kubernetes.AS_OF)
            self.loaded = replace(loaded, file=file, called=called(project / file))
        except EnvironmentFileError:
            self.notes.append(f"{self.label}: this version refuses {file}, so no line of it is named as a cause.")

    def run(self) -> tuple[str, ...] | None:
        """Run the app and return what it was exposed to, None if there is no such file; raises SynthesisError."""
        try:
            return self._synthesize(self.file) if self.file and (self.root / self.file).is_file() else None
        finally:
            self.begun.set()

    def read(self, file: str, name: str | None, exposed: tuple[str, ...] | None) -> Source:
        """Read what the app wrote, with ``run``'s result in ``exposed``; without such a file there are no stacks."""
        if exposed is None:
            note = f"{self.label} has no {file or 'file of it'}: the environment does not exist there."
            return Source(assembly=EMPTY, side=Side(label=NOTHING, commit=self.commit), notes=(note,))
        target = self._target
        _refuse_links(target, self.label)
        try:
            assembly = read_assembly(target)
        except AssemblyError:
            # a user's own app may synthesize all of its environments, whichever one is requested
            if name is None:
                raise
            assembly = read_assembly(target, name)
        return Source(
            assembly=_tagged(
                replace(
                    assembly,
                    environment=assembly.environment or name or "",
                    called=self.loaded.called if self.loaded else "",
                ),
                self.root,
            ),
            side=Side(label=self.label, commit=self.commit, environment_file=file),
            environment=self.loaded,
            notes=(*self.notes, *exposed),
            exposed=exposed,
        )

    @property
    def _target(self) -> Path:
        return self.out / "cdk.out"

    def _synthesize(self, file: str) -> tuple[str, ...]:
        """Run the app as the CDK CLI does, but without the CLI; return what it was exposed to. Raises
        SynthesisError."""
        target = self._target
        settings = _settings(self.root / _SETTINGS_FILE, self.label)
        command: Any = settings.get("app")
        if not isinstance(command, str):
            if not (self.root / "app.py").is_file():
                raise AssemblyError(
                    f'{self.label}: has neither an "app" in cdk.json nor an app.py, so there is nothing to run'
                )
            command = [sys.executable, "app.py"]
        command = self.command(command)
        path = PurePosixPath(file)
        is_named = path.parent == PurePosixPath(FOLDER) and path.suffix == SUFFIX
        context = {
            **_context(settings.get("context")),
            **_context(_settings(self.root / _CONTEXT_FILE, self.label)),
            **_context_of_cli(settings),
            "env": path.stem if is_named else file,
            **self.context,
        }
        readable = self.readable()
        ran = run_isolated(
            command,
            folder=self.root,
            scratch=self.out,
            variables={**self.library_variables(), **_variables(target, context)},
            # if a clone is installed, the library's scripts are next to its packages
            readable=[*readable, library_scripts()],
            # its configuration contains the tokens of a checkout, and its hooks are next to it
            masked=[each / ".git" for each in readable],
            limits=self.limits,
            begun=self.begun.set,
            given_up=self.given_up,
        )
        if ran.stopped:
            raise SynthesisError(f"{self.label}: the app was stopped: {ran.stopped}; nothing was compared", ran.output)
        if ran.code or not (target / "manifest.json").is_file():
            end = f"with exit code {ran.code}" if ran.code else "without writing a cloud assembly"
            way = f"; {_UNREACHED}" if ran.code == _NO_PROGRAM and not self.limits.is_trusted else ""
            raise SynthesisError(f"{self.label}: the app ended {end}; nothing was compared{way}", ran.output)
        if not ran.exposed:
            return ()
        could = "it could read what your user can read, and use the network."
        return (f"{self.label}: its app ran without namespaces of its own ({ran.exposed}): {could}",)


@dataclass(kw_only=True)
class _Revision(_Tree):
    """A Git revision, written to ``out`` as a checkout would write it; the repository does not change."""

    project: Path
    repository: Path
    linked: list[Path] = field(default_factory=list)

    def readable(self) -> list[Path]:
        """Return what the app may read in addition to its own files: the files of the project for both sides."""
        return self.linked

    def check_out(self) -> None:
        """Write every file of the revision, and the project's additional files, so that both sides have them."""
        tree = self.out / "tree"
        tree.mkdir(parents=True)
        commit = str(self.commit)
        _git(
            self.repository,
            *("-c", "core.hooksPath=/dev/null", "-c", "core.splitIndex=false", "-c", "core.fsmonitor=false"),
            f"--work-tree={tree}",
            *("read-tree", "--reset", "-u", "--no-sparse-checkout", commit),
            GIT_INDEX_FILE=str(self.out / "index"),
        )
        entries = _git(self.repository, "ls-tree", "-r", "-z", commit).split("\0")
        self._remove_links(tree, entries)
        self._link_submodules(tree, entries)
        self._find_pointers(commit)
        for name in _TOOLS:
            if (self.project / name).is_dir() and not os.path.lexists(self.root / name):
                self._link(self.root / name, self.project / name)
        context = self.project / _CONTEXT_FILE
        if context.is_file() and self.root.is_dir() and not (self.root / _CONTEXT_FILE).exists():
            shutil.copyfile(context, self.root / _CONTEXT_FILE)
        self._link_chart()

    def _link_chart(self) -> None:
        pulled, here = self.project / CHART, self.root / CHART
        if not pulled.is_dir() or here.exists():
            return
        lock = self.root / CHART_LOCK
        if lock.is_file() and lock.read_bytes() == (self.project / CHART_LOCK).read_bytes():
            self._link(here, pulled)
        else:
            self.notes.append(
                f"{self.label} locks another {CHART.name} chart than the pulled one: its own is missing here, so "
                "that differences of the chart are not shown correctly."
            )

    def _link(self, here: Path, there: Path) -> None:
        here.symlink_to(resolved(there))
        self.linked.append(resolved(there))

    def _remove_links(self, tree: Path, entries: Sequence[str]) -> None:
        """Remove the links that lead out of the revision: they would lead this process to files of the user."""
        top = resolved(tree)
        for line in entries:
            entry, _, path = line.partition("\t")
            if entry.startswith(_SYMLINK) and not resolved(tree / path).is_relative_to(top):
                (tree / path).unlink(missing_ok=True)
                self.notes.append(f"{self.label}: the link {path} leads out of the repository and was omitted.")

    def _link_submodules(self, tree: Path, entries: Sequence[str]) -> None:
        for line in entries:
            entry, _, path = line.partition("\t")
            if not entry.startswith(_SUBMODULE):
                continue
            wanted, here = entry.split()[2], self.repository / path
            if (here / ".git").exists() and _git(here, "rev-parse", "HEAD").strip() == wanted:
                shutil.rmtree(tree / path, ignore_errors=True)
                self._link(tree / path, here)
            else:
                self.notes.append(f"{self.label}: the submodule {path} is not here at its commit and was left empty.")

    def _find_pointers(self, commit: str) -> None:
        attributes = (":(top,glob)**/.gitattributes",)
        if not _git_finds(self.repository, "filter=lfs", commit, *attributes):
            return
        files = _git_finds(self.repository, _LFS_POINTER, commit)
        if files:
            self.notes.append(
                f"{self.label}: {len(files)} file{'s' * (len(files) != 1)} of Git LFS "
                f"{'is a pointer' if len(files) == 1 else 'are pointers'}, because nothing is fetched; an asset with "
                "such a file may seem to differ."
            )


@dataclass(kw_only=True)
class _ByLibrary(_Tree):
    """The project's present files, synthesized with the library of a virtual environment."""

    library: Path

    def readable(self) -> list[Path]:
        """Return what the app may read: the checkout, the virtual environment, and the Python that it is based on."""
        python = resolved(self.library / "bin" / "python")
        linked = [
            Path(line)
            for file in self.library.glob("lib/python3*/site-packages/*.pth")
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.startswith("/")
        ]
        is_of_its_own = any((python.parents[1] / "lib").glob("python3*/os.py"))
        return [*super().readable(), self.library, *([python.parents[1]] if is_of_its_own else []), *linked]

    def command(self, command: str | list[str]) -> list[str]:
        """Return the app's command with this environment's Python; raises AssemblyError if it is not a Python
        command."""
        words = shlex.split(command) if isinstance(command, str) else command
        program = PurePosixPath(words[0]).name if words else ""
        # a shell would interpret these
        is_plain = isinstance(command, list) or not re.search(r"[|&;<>$`()*?~]", command)
        if not is_plain or not re.fullmatch(r"python3?(\.\d+)?", program):
            shown = command if isinstance(command, str) else shlex.join(command)
            raise AssemblyError(
                f'{self.label}: "app" in cdk.json must be python with its arguments, got {shown!r}; give the cloud '
                "assemblies of both versions instead of the virtual environment"
            )
        return [str(self.library / "bin" / "python"), *words[1:]]

    def library_variables(self) -> dict[str, str]:
        """Return the variables that name this environment's programs first, and no library of a clone."""
        own = node_variables()
        return {**own, "PATH": os.pathsep.join([str(self.library / "bin"), own["PATH"]]), "PYTHONPATH": ""}


def _by_library(project: Path, given: str, out: Path, option: str) -> _ByLibrary:
    library = Path(given).absolute()
    found = sorted(library.glob("lib/python3*/site-packages/hyperpod_cdk-*.dist-info"))
    if not found:
        raise AssemblyError(
            f"{option}: the virtual environment {given} has no hyperpod-cdk; install the version to compare with: "
            f"{shlex.quote(str(Path(given, 'bin', 'pip')))} install hyperpod-cdk==VERSION"
        )
    version = found[0].name.removeprefix("hyperpod_cdk-").removesuffix(".dist-info")
    return _ByLibrary(root=project, label=f"hyperpod-cdk {version} of {given}", out=out, library=library)


def _side(project: Path, given: str, out: Path, *, option: str) -> _Folder | _Tree:
    wanted = "must be the folder of a cloud assembly or a Git revision"
    if not given or given.startswith("-") or "\0" in given or "\n" in given:
        raise AssemblyError(f"{option}: {wanted}, got {given!r}")
    if os.path.isfile(os.path.join(given, "manifest.json")):  # noqa: PTH113, PTH118 - Path raises for an overlong name
        return _Folder(folder=Path(given), project=project, label=given)
    if os.path.isfile(os.path.join(given, "pyvenv.cfg")):  # noqa: PTH113, PTH118 - as above
        return _by_library(project, given, out, option)
    is_there = os.path.exists(given)  # noqa: PTH110 - as above
    try:
        top, prefix = _git(project, "rev-parse", "--show-toplevel", "--show-prefix").split("\n")[:2]
    except AssemblyError as error:
        if is_there:
            raise _no_assembly(given, option) from None
        raise AssemblyError(f"{option}: {given!r} is not a folder, and no revision can be looked up: {error}") from None
    try:
        commit = _git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}").strip()
    except AssemblyError:
        if is_there:
            raise _no_assembly(given, option) from None
        is_shallow = _git(project, "rev-parse", "--is-shallow-repository").strip() == "true"
        way = "the clone is shallow: 'git fetch --unshallow' gets the rest" if is_shallow else "'git fetch' may get it"
        raise AssemblyError(f"{option}: {wanted}, and {given!r} is neither here; {way}") from None
    return _Revision(
        root=out / "tree" / prefix,
        label=given,
        out=out,
        commit=commit,
        project=project,
        repository=Path(top),
    )


def _made_from(folder: _Folder | _Tree, revision: _Folder | _Tree) -> _Folder:
    if not isinstance(folder, _Folder):
        raise AssemblyError(f"{_HEAD_REVISION}: --head is already a revision; give the folder of a cloud assembly")
    if not isinstance(revision, _Tree):
        raise AssemblyError(f"{_HEAD_REVISION}: must be a Git revision, got the cloud assembly {revision.label}")
    return replace(folder, of=revision)


def _no_assembly(given: str, option: str) -> AssemblyError:
    if Path(given).is_dir():
        return AssemblyError(
            f"{option}: {given} is not a cloud assembly, because it has no manifest.json; nor is it a revision"
        )
    return AssemblyError(
        f"{option}: {given} is a file; give the folder of a cloud assembly, or use --template for one file"
    )


def _file(project: Path, environment: str, trees: Sequence[_Tree]) -> str:
    """Return the environment's file relative to the project: from the newest side if it has one, else from the
    other."""
    candidates = [f"{FOLDER}/{environment}{SUFFIX}"]
    if os.sep in environment or environment.endswith((SUFFIX, ".yml")):
        folder, name = os.path.split(environment)
        from_here = os.path.join(os.path.relpath(os.path.realpath(folder), os.path.realpath(project)), name)  # noqa: PTH118 - joins what relpath gives
        candidates = [from_here, environment, f"{FOLDER}/{environment}"]
    within = [os.path.normpath(each) for each in candidates if not os.path.isabs(each)]  # noqa: PTH117 - text, no file yet
    for tree in reversed(trees):
        for candidate in within:
            if not candidate.startswith(os.pardir) and os.path.isfile(tree.root / candidate):  # noqa: PTH113 - Path.is_file raises for an overlong name
                return PurePosixPath(candidate).as_posix()
    found = resolve_environment_file(environment, project)
    if os.path.relpath(os.path.realpath(found.parent), os.path.realpath(project)).startswith(os.pardir):
        raise UsageError(f"{environment} is outside of the project {project}; no revision of the project contains it")
    if found.is_dir():
        raise UsageError(f"{shown(found)} is a folder; name the file itself")
    raise UsageError(f'no environment "{environment}" in {joined((tree.label for tree in trees), last="or")}')


def _pair(trees: Sequence[_Tree], file: str) -> None:
    """Determine for each side which of its files is the environment: by its identity in CloudFormation, then by its
    path.

    A file that is moved is still its environment. If its name, account or Region changes, it is another environment
    from then on: the earlier one is compared as one that stays deployed, unless another file of the newest side now has
    it.
    """
    for tree in trees:
        tree.file = file
    if len(trees) == 1:
        return
    newest = next((tree for tree in reversed(trees) if (tree.root / file).is_file()), None)
    identity = newest.identity(file) if newest and file else None
    if newest is None or identity is None:
        return
    folder = PurePosixPath(file).parent.as_posix()
    for tree in trees:
        own = identity if tree is newest else tree.identity(file)
        if own == identity:
            continue
        moved = tree.find(identity, folder)
        if moved is not None:
            tree.notes.append(f"{tree.label} has the environment {identity.name} in {moved}.")
            tree.file = moved
        elif own is not None and newest.find(own, folder) is not None:
            # the environment of this file is in another file of the newest side, and is reviewed there
            tree.file = ""
        elif own is not None:
            where = f"{own.name} in {own.account or 'no account'} {own.region}"
            tree.notes.append(
                f"{tree.label}: {file} is another environment there, {where}; {newest.label} creates {identity.name} "
                f"in {identity.account or 'no account'} {identity.region} in addition to it."
            )


def _are_two(sides: Sequence[_Folder | _Tree], assemblies: Sequence[Assembly]) -> bool:
    """Whether the sides are two environments according to their files, and not because an app wrote another one."""
    for side, assembly in zip(sides, assemblies, strict=True):
        stated = side.identity(side.file) if isinstance(side, _Tree) and side.file else None
        if assembly.stacks and (stated is None or stated.name != assembly.environment):
            return False
    return True


def _choice(project: Path) -> str:
    names = environment_names(project)
    return f"there {plural(len(names), 'is', 'are')} {', '.join(names)}" if names else f"{FOLDER}/ is empty"


def _refuse_two_environments(assemblies: Sequence[Assembly]) -> None:
    names = list(dict.fromkeys(each.environment for each in assemblies if each.environment))
    if len(names) > 1:
        raise AssemblyError(
            f"the base is environment {names[0]!r}, the head {names[1]!r}: they have no stack in common; "
            "a review compares one environment with itself"
        )


def _checkout(root: Path) -> Path:
    """Return the repository's top folder, or the project itself if it is in no repository."""
    try:
        return resolved(Path(_git(root, "rev-parse", "--show-toplevel").rstrip("\n")))
    except AssemblyError:
        return resolved(root)


def _refuse_links(folder: Path, label: str) -> None:
    """Refuse an assembly with a link that leads out of it: its author could make this process read any file."""
    top = resolved(folder)
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            file = Path(where, name)
            if file.is_symlink() and not _is_within(file, top):
                raise AssemblyError(
                    f"{label}: the cloud assembly contains a link out of its folder: {file.relative_to(folder)}"
                )


def _is_within(link: Path, top: Path) -> bool:
    try:
        return resolved(link).is_relative_to(top)
    except RuntimeError:
        # links that lead to each other
        return False


def _tagged(assembly: Assembly, project: Path) -> Assembly:
    """Return an assembly with the tags that 'cdk deploy' adds to its stacks from a project's folder."""
    try:
        tags = tags_of_project(_settings(project / _SETTINGS_FILE, str(project)))
    except DeploymentError as error:
        raise AssemblyError(str(error)) from None
    stacks = tuple(replace(stack, tags=tags) for stack in assembly.stacks)
    return replace(assembly, stacks=stacks) if tags else assembly


def _settings(file: Path, label: str) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = json.loads(read_text(file, most=_LONGEST_SETTINGS))
    except (OSError, ValueError, RecursionError) as error:
        raise AssemblyError(f"{label}: {file.name} cannot be read: {reason_of(error)}") from None
    return found if isinstance(found, dict) else {}


def _context(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _context_of_cli(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CDK CLI's additions: it decides about metadata, so a template without it would differ from the
    deployed one."""
    added: dict[str, Any] = {
        "aws:cdk:bundling-stacks": ["**"],
        "@aws-cdk/core:failSynthOnValidationErrors": False,
    }
    if settings.get("pathMetadata", True):
        added["aws:cdk:enable-path-metadata"] = True
    if settings.get("assetMetadata", True):
        added["aws:cdk:enable-asset-metadata"] = True
    reports = settings.get("versionReporting", True)
    added["aws:cdk:version-reporting" if reports else "aws:cdk:disable-version-reporting"] = True
    return added


def _variables(target: Path, context: Mapping[str, Any]) -> dict[str, str]:
    return {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_OUTDIR": str(target),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "NO_COLOR": "1",
    }


def _git(folder: Path, *arguments: str, **variables: str) -> str:
    """Run git; raises AssemblyError with the first line of its error output."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is where PATH has it
            env={**_git_environment(), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        raise AssemblyError("git is not installed") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise AssemblyError(re.sub(r"^(fatal|error): ", "", said[0]) if said else f"git {arguments[0]} failed")
    return done.stdout


def environments_of(project: Path, revision: str) -> list[str]:
    """Return the environments of which a revision has files, by name. Raises AssemblyError if git cannot show them."""
    found = _git(project, "ls-tree", "--name-only", "-z", "--end-of-options", revision, f"{FOLDER}/").split("\0")
    return [path.stem for path in map(PurePosixPath, found) if path.suffix == SUFFIX]


def _git_finds(folder: Path, pattern: str, commit: str, *paths: str) -> list[str]:
    """Return the files of a commit with a line like ``pattern``."""
    try:
        found = _git(folder, "grep", "-I", "-l", "-z", "-e", pattern, commit, "--", *paths)
    except AssemblyError:
        # git grep ends with 1 if it finds nothing
        return []
    return [name for name in found.split("\0") if name]


def _git_environment() -> dict[str, str]:
    # in a hook these name the hook's own index and folders
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
