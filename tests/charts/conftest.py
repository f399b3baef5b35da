"""A Git repository and a chart repository for tests, and the real Helm from the kubectl layer."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.charts import ChartLock, RemoteDependency

CHART_PATH = "helm_chart/HyperPodHelmChart"


@dataclass(frozen=True)
class Upstream:
    """What a pull reaches for: ``git_base`` in front of the lock's repository, ``archives`` served over HTTP."""

    git_base: str
    archives: Path
    lock: ChartLock
    commit_files: Callable[[dict[str, str]], ChartLock]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The helm that ``find_helm`` takes out of an installed package."""
    (package, *_) = charts._layer_packages()
    return charts._unpack_helm(package, tmp_path_factory.mktemp("helm"))


@dataclass
class Served:
    """A chart repository at one address for the whole session; each test has a folder of its own behind it."""

    address: str
    packed: Path
    folder: Path


@pytest.fixture(scope="session")
def chart_repository(tmp_path_factory: pytest.TempPathFactory, helm: Path) -> Iterator[Served]:
    """Serve one sub-chart on the loopback address, packed by helm once."""
    source, packed = tmp_path_factory.mktemp("source") / "device-plugin", tmp_path_factory.mktemp("packed")
    (source / "templates").mkdir(parents=True)
    (source / "Chart.yaml").write_text("apiVersion: v2\nname: device-plugin\nversion: v0.5.20\n", encoding="utf-8")
    (source / "templates" / "map.yaml").write_text(config_map("plugin"), encoding="utf-8")
    subprocess.run([helm, "package", source, "--destination", packed], check=True, capture_output=True)
    served = Served(address="", packed=packed, folder=packed)

    def handle(*arguments: Any) -> _Quiet:
        return _Quiet(*arguments, directory=str(served.folder))

    with ThreadingHTTPServer(("127.0.0.1", 0), handle) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        served.address = f"http://127.0.0.1:{server.server_port}"
        subprocess.run([helm, "repo", "index", packed, "--url", served.address], check=True, capture_output=True)
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory, chart_repository: Served) -> tuple[Path, ChartLock]:
    """A git repository shaped like the real one, with its lock: each test works on a copy."""
    address = chart_repository.address
    (archive,) = chart_repository.packed.glob("*.tgz")
    repository = tmp_path_factory.mktemp("git") / "repository"
    repository.mkdir()
    _git(repository, "init", "--quiet", "--template=")
    lock = _commit(
        repository,
        {
            "Chart.yaml": (
                "apiVersion: v2\nname: hyperpod-helm-chart\nversion: 0.1.0\ndependencies:\n"
                f"  - {{name: device-plugin, version: 0.5.20, repository: {address}}}\n"
                "  - {name: issuer, version: v1.18.2, repository: 'oci://example.com', condition: issuer.enabled}\n"
                '  - {name: agent, version: 0.1.0, repository: "file://charts/agent", condition: agent.enabled}\n'
            ),
            "values.yaml": "agent: {enabled: true}\nissuer: {enabled: false}\n",
            "charts/agent/Chart.yaml": (
                "apiVersion: v2\nname: agent\nversion: 0.1.0\ndependencies:\n"
                "  - {name: device-plugin, version: v0.5.20, repository: 'https://example.com'}\n"
            ),
            "charts/agent/templates/map.yaml": config_map("agent"),
            "charts/agent-0.1.0.tgz": "not even an archive",
        },
        address=address,
        digest=charts._sha256(archive),
    )
    return repository, lock


@pytest.fixture
def upstream(tmp_path: Path, chart_repository: Served, committed: tuple[Path, ChartLock]) -> Upstream:
    """A repository shaped like the real one: a remote and a local sub-chart, and a stale packed copy of the latter."""
    chart_repository.folder = shutil.copytree(chart_repository.packed, tmp_path / "served")
    original, lock = committed
    repository = shutil.copytree(original, tmp_path / "git" / "aws" / "sagemaker-hyperpod-cli.git")

    def commit_files(files: dict[str, str]) -> ChartLock:
        first, _ = lock.dependencies
        return _commit(repository, files, address=first.repository, digest=str(first.sha256))

    return Upstream(
        git_base=f"{tmp_path.as_uri()}/git/", archives=chart_repository.folder, lock=lock, commit_files=commit_files
    )


@pytest.fixture
def unpinned(tmp_path: Path, upstream: Upstream) -> Path:
    """Return a project whose lock refers to the upstream, without a digest of the finished chart."""
    project = tmp_path / "project"
    (project / charts.LOCK_FILE).parent.mkdir(parents=True)
    (project / charts.LOCK_FILE).write_text(upstream.lock.render(), encoding="utf-8")
    return project


@pytest.fixture(scope="session")
def pinned(
    tmp_path_factory: pytest.TempPathFactory, chart_repository: Served, committed: tuple[Path, ChartLock], helm: Path
) -> ChartLock:
    """The lock with the digest of the finished chart, as a pull that is refused shows it."""
    repository, lock = committed
    base, project = tmp_path_factory.mktemp("pinned"), tmp_path_factory.mktemp("project")
    (base / "aws").mkdir()
    (base / "aws" / "sagemaker-hyperpod-cli.git").symlink_to(repository)
    chart_repository.folder = chart_repository.packed
    (project / charts.LOCK_FILE).parent.mkdir(parents=True)
    (project / charts.LOCK_FILE).write_text(lock.render(), encoding="utf-8")
    lines: list[str] = []
    with pytest.raises(charts.ChartError) as shown:
        charts.pull(project, progress=lines.append, git_base=f"{base.as_uri()}/", helm=helm)
    (digest,) = re.findall(r"--accept-digest sha256:([0-9a-f]{64})'", str(shown.value))
    return replace(lock, content_sha256=digest, content_recorded="the tests")


@pytest.fixture
def pulling(unpinned: Path, pinned: ChartLock) -> Path:
    """A project whose lock pins everything of the upstream."""
    (unpinned / charts.LOCK_FILE).write_text(pinned.render(), encoding="utf-8")
    return unpinned


def config_map(name: str) -> str:
    """Return a template that renders to one ConfigMap."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def _commit(repository: Path, files: dict[str, str], *, address: str, digest: str) -> ChartLock:
    """Commit files of the chart; returns the lock of the commit, with the sub-chart that is served at ``address``."""
    for name, text in files.items():
        path = repository / CHART_PATH / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    _git(repository, "add", "--all")
    _git(repository, "commit", "--quiet", "--message", "chart")
    return ChartLock(
        repository="aws/sagemaker-hyperpod-cli",
        commit=_git(repository, "rev-parse", "HEAD"),
        path=CHART_PATH,
        tree=_git(repository, "rev-parse", f"HEAD:{CHART_PATH}"),
        omitted=("issuer",),
        dependencies=(
            RemoteDependency(name="device-plugin", version="0.5.20", repository=address, sha256=digest),
            RemoteDependency(
                name="device-plugin", version="v0.5.20", repository=address, parent="agent", sha256=digest
            ),
        ),
    )


def _git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(repository), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Keep requests out of the tests' output."""
