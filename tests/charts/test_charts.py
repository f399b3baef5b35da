"""Pulling the dependency chart: exactly what the lock says, whole or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from hyperpod_cdk import charts
from hyperpod_cdk.charts import CHART_DIRECTORY, LOCK_FILE, ChartError, ChartLock


class Upstream(Protocol):
    git_base: str
    archives: Path
    lock: ChartLock
    commit_files: Callable[[dict[str, str]], ChartLock]


def pull(project: Path, upstream: Upstream, helm: Path) -> list[str]:
    lines: list[str] = []
    folder = charts.pull(project, progress=lines.append, git_base=upstream.git_base, helm=helm)
    assert folder == project / CHART_DIRECTORY
    return lines


def refused(project: Path, upstream: Upstream, helm: Path) -> str:
    """Pull, expect a refusal and an untouched project."""
    before = sorted(path.relative_to(project) for path in project.rglob("*"))
    with pytest.raises(ChartError) as refusal:
        pull(project, upstream, helm)
    assert sorted(path.relative_to(project) for path in project.rglob("*")) == before
    return str(refusal.value)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def rewrite_lock(project: Path, **changes: Any) -> ChartLock:
    lock = replace(ChartLock.load(project), **changes)
    (project / LOCK_FILE).write_text(lock.render(), encoding="utf-8")
    return lock


def test_the_first_pull_records_what_the_lock_did_not_know(pulling: Path, upstream: Upstream, helm: Path) -> None:
    lines = pull(pulling, upstream, helm)
    folder = pulling / CHART_DIRECTORY
    archive = folder / "charts" / "device-plugin-v0.5.20.tgz"
    digest = charts._sha256(archive)

    assert files(folder) == [
        "Chart.yaml",
        "charts/agent/Chart.yaml",
        "charts/agent/templates/map.yaml",
        "charts/device-plugin-v0.5.20.tgz",
        "values.yaml",
    ]
    assert archive.read_bytes() == (upstream.archives / archive.name).read_bytes()
    lock = ChartLock.load(pulling)
    assert lock == replace(
        upstream.lock,
        dependencies=(replace(upstream.lock.dependencies[0], sha256=digest),),
        content_sha256=charts.content_digest(folder),
    )
    assert lines == [
        f"fetching aws/sagemaker-hyperpod-cli at {lock.commit[:12]}",
        "fetching sub-chart device-plugin 0.5.20",
        f"sub-chart device-plugin: sha256 {digest} is new to the lock",
        "rendering the chart once with helm",
        "recorded new digests in charts/charts.lock.yaml; commit it",
    ]
    assert charts.verify(pulling) == folder
    assert sorted(path.name for path in (pulling / "charts").iterdir()) == ["charts.lock.yaml", "hyperpod-dependencies"]


def test_helm_installs_what_was_pulled(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    rendered = subprocess.run(
        [helm, "template", "release", pulling / CHART_DIRECTORY], check=True, capture_output=True, text=True
    ).stdout
    names = [document["metadata"]["name"] for document in yaml.safe_load_all(rendered) if document]
    assert sorted(names) == ["agent", "plugin"]


def test_a_second_pull_fetches_nothing(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    shutil.rmtree(upstream.archives)

    assert pull(pulling, upstream, helm) == [
        f"charts/hyperpod-dependencies already holds aws/sagemaker-hyperpod-cli at {upstream.lock.commit[:12]}"
    ]


def test_a_pull_by_somebody_else_gives_the_same_bytes(
    pulling: Path, upstream: Upstream, helm: Path, tmp_path: Path
) -> None:
    pull(pulling, upstream, helm)
    other = tmp_path / "other"
    (other / "charts").mkdir(parents=True)
    shutil.copy(pulling / LOCK_FILE, other / LOCK_FILE)

    lines = pull(other, upstream, helm)
    assert charts.content_digest(other / CHART_DIRECTORY) == charts.content_digest(pulling / CHART_DIRECTORY)
    assert "recorded new digests in charts/charts.lock.yaml; commit it" not in lines


def test_a_damaged_folder_is_fetched_again(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    values = pulling / CHART_DIRECTORY / "values.yaml"
    values.write_text("agent: {enabled: false}\n", encoding="utf-8")
    with pytest.raises(ChartError, match=r"content must have sha256 .*; run 'hyperpod-cdk charts pull' to fetch"):
        charts.verify(pulling)

    pull(pulling, upstream, helm)
    assert values.read_text(encoding="utf-8") == "agent: {enabled: true}\n"


def test_a_new_commit_replaces_the_old_chart(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    lock = upstream.commit_files({"values.yaml": "agent: {enabled: false}\n"})
    rewrite_lock(pulling, commit=lock.commit, tree=lock.tree, content_sha256=None)

    pull(pulling, upstream, helm)
    text = (pulling / CHART_DIRECTORY / "values.yaml").read_text(encoding="utf-8")
    assert text == "agent: {enabled: false}\n"


def test_line_endings_do_not_depend_on_who_pulls(
    pulling: Path, upstream: Upstream, helm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[core]\n\tautocrlf = true\n\teol = crlf\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    pull(pulling, upstream, helm)
    assert b"\r\n" not in (pulling / CHART_DIRECTORY / "values.yaml").read_bytes()


def test_another_tree_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    wrong = "0" * 40
    rewrite_lock(pulling, tree=wrong)
    assert refused(pulling, upstream, helm) == (
        f"aws/sagemaker-hyperpod-cli: tree of {upstream.lock.commit}:helm_chart/HyperPodHelmChart must be {wrong} "
        f"(charts/charts.lock.yaml), got {upstream.lock.tree}; nothing was written; "
        "restore the lock from version control"
    )


def test_another_archive_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    wrong = "0" * 64
    dependency = replace(upstream.lock.dependencies[0], sha256=wrong)
    rewrite_lock(pulling, dependencies=(dependency,))
    got = charts._sha256(upstream.archives / "device-plugin-v0.5.20.tgz")
    assert refused(pulling, upstream, helm) == (
        f"sub-chart device-plugin 0.5.20: archive must have sha256 {wrong} (charts/charts.lock.yaml), got {got}; "
        f"nothing was written; do not use what {dependency.repository} serves now"
    )


def test_other_content_is_refused_and_the_old_folder_stays(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    digest = charts.content_digest(pulling / CHART_DIRECTORY)
    wrong = "0" * 64
    rewrite_lock(pulling, content_sha256=wrong)

    assert refused(pulling, upstream, helm) == (
        f"charts/hyperpod-dependencies: content must have sha256 {wrong} (charts/charts.lock.yaml), got {digest}; "
        "nothing was written; restore the lock from version control, or remove its content_sha256 to accept"
    )
    assert charts.content_digest(pulling / CHART_DIRECTORY) == digest


def test_a_lock_that_forgets_a_dependency_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    rewrite_lock(pulling, dependencies=())
    assert refused(pulling, upstream, helm) == (
        "charts/charts.lock.yaml: dependencies must be those of the chart's Chart.yaml, they differ in "
        "device-plugin 0.5.20; nothing was written; restore the lock from version control"
    )


def test_a_commit_that_is_not_there_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    rewrite_lock(pulling, commit="1" * 40)
    message = refused(pulling, upstream, helm)
    assert message.startswith(
        f"cannot fetch commit {'1' * 40} from {upstream.git_base}aws/sagemaker-hyperpod-cli.git: "
    )
    assert message.endswith("; check the network or proxy, then run 'hyperpod-cdk charts pull' again")


def test_a_folder_that_is_not_there_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    rewrite_lock(pulling, path="elsewhere")
    message = refused(pulling, upstream, helm)
    assert message.startswith(f"aws/sagemaker-hyperpod-cli has no folder {upstream.lock.commit}:elsewhere: ")
    assert message.endswith("; restore the lock from version control")


def test_an_archive_that_nobody_serves_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    (upstream.archives / "device-plugin-v0.5.20.tgz").unlink()
    repository = upstream.lock.dependencies[0].repository
    message = refused(pulling, upstream, helm)
    assert message.startswith(f"cannot fetch sub-chart device-plugin 0.5.20 from {repository}: ")
    assert message.endswith("; check the network or proxy, then run 'hyperpod-cdk charts pull' again")


def test_a_chart_that_does_not_render_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    lock = upstream.commit_files({"templates/broken.yaml": '{{ fail "no" }}'})
    rewrite_lock(pulling, commit=lock.commit, tree=lock.tree)
    message = refused(pulling, upstream, helm)
    assert message.startswith("helm cannot render the pulled chart: ")
    assert message.endswith("; lock another commit of it")


def test_without_git(pulling: Path, upstream: Upstream, helm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert refused(pulling, upstream, helm) == (
        "git is not on PATH; install git, then run 'hyperpod-cdk charts pull' again"
    )


def test_a_helm_on_the_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert charts.find_helm(tmp_path / "scratch") == program


def test_else_the_one_in_the_kubectl_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    program = charts.find_helm(tmp_path)

    assert program.parent == tmp_path
    version = subprocess.run([program, "version", "--short"], check=True, capture_output=True, text=True).stdout
    assert version.startswith(("v3.", "v4."))


def test_without_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    with pytest.raises(ChartError) as refusal:
        charts.find_helm(tmp_path)
    assert str(refusal.value) == (
        "helm is not on PATH and no installed package carries one for Darwin arm64; "
        "install helm 3.14 or newer, then run 'hyperpod-cdk charts pull' again"
    )


def test_a_hanging_server_is_given_up() -> None:
    with pytest.raises(ChartError) as refusal:
        charts._run(["sleep", "5"], problem="cannot fetch it", timeout_seconds=0.1)
    assert str(refusal.value) == (
        "cannot fetch it: no answer in 0.1 s; check the network or proxy, then run 'hyperpod-cdk charts pull' again"
    )


def test_a_folder_whose_lock_has_no_digest_is_not_trusted(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    rewrite_lock(pulling, content_sha256=None)
    with pytest.raises(ChartError) as refusal:
        charts.verify(pulling)
    assert str(refusal.value) == (
        f"{pulling / CHART_DIRECTORY}: charts/charts.lock.yaml records no content_sha256 to compare it with; "
        "run 'hyperpod-cdk charts pull'"
    )


def test_the_digest_sees_names_and_bytes_and_nothing_else(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "sub").mkdir(parents=True)
        (folder / "a").write_text("1", encoding="utf-8")
        (folder / "sub" / "b").write_text("2", encoding="utf-8")
    os.utime(two / "a", (0, 0))
    (two / "a").chmod(0o600)
    assert charts.content_digest(one) == charts.content_digest(two)

    (two / "a").rename(two / "c")
    assert charts.content_digest(one) != charts.content_digest(two)
    (two / "c").rename(two / "a")
    (two / "sub" / "b").write_text("3", encoding="utf-8")
    assert charts.content_digest(one) != charts.content_digest(two)


def test_the_lock_of_the_repository(project: Path) -> None:
    lock = ChartLock.load(project)

    assert (project / LOCK_FILE).read_text(encoding="utf-8") == lock.render()
    assert lock.repository == "aws/sagemaker-hyperpod-cli"
    assert lock.path == "helm_chart/HyperPodHelmChart"
    assert len(lock.commit) == len(lock.tree) == 40
    assert [row.name for row in lock.dependencies] == [
        "cert-manager",
        "nvidia-device-plugin",
        "aws-efa-k8s-device-plugin",
    ]


def test_a_project_without_a_lock_takes_the_one_of_the_library(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "_PACKAGED_LOCK", project / LOCK_FILE)
    assert ChartLock.load(tmp_path) == ChartLock.load(project)


@pytest.mark.parametrize(
    "text", ["", "[]", "repository: a\n", "repository: [\n", "dependencies: [{}]\n", "x: 1\ndependencies: []\n"]
)
def test_a_file_that_is_no_lock_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / LOCK_FILE
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ChartError) as refusal:
        ChartLock.load(tmp_path)
    assert str(refusal.value).startswith(f"{path}: is not a chart lock (")
    assert str(refusal.value).endswith("; restore the lock from version control")


def test_no_lock_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "_PACKAGED_LOCK", tmp_path / "none")
    with pytest.raises(ChartError) as refusal:
        ChartLock.load(tmp_path)
    assert str(refusal.value) == f"{tmp_path / LOCK_FILE}: does not exist; restore the lock from version control"
