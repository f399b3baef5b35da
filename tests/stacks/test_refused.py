"""Errors that the user can fix end the app with messages, never with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.eks.charts import CHART_DIRECTORY
from hyperpod_cdk_stacks.app import build, new_app, read_environments
from tests.support.assembly import ENVIRONMENTS


@pytest.fixture
def root(tmp_path: Path, project: Path) -> Path:
    """A project of one environment."""
    (tmp_path / "environments").mkdir()
    text = (project / ENVIRONMENTS["prod"]).read_text(encoding="utf-8")
    (tmp_path / "environments" / "prod.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "lifecycle_scripts").mkdir()
    (tmp_path / "lifecycle_scripts" / "on_create.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    return tmp_path


def said_by(root: Path) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        build(new_app(), read_environments(root), root=root)
    return str(ended.value).splitlines()


def test_errors_only(root: Path) -> None:
    file = root / "environments" / "prod.yaml"
    text = file.read_text(encoding="utf-8").replace('"1.35"', '"1.31"').replace("nat_gateways: 1", "nat_gateways: 0")
    file.write_text(text, encoding="utf-8")
    assert said_by(root) == [f"{file}:17 network.nat_gateways: must be at least 1, got 0; set nat_gateways: 1 or more"]


def test_a_version_whose_kubectl_is_not_installed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "kubectl_minors", lambda: frozenset({34}))
    file = root / "environments" / "prod.yaml"
    assert said_by(root) == [
        (
            f'{file}:20 eks.kubernetes_version: needs the kubectl layer of the same minor, got "1.35" and no package'
            " aws-cdk.lambda-layer-kubectl-v35; run pip install 'hyperpod-cdk[kubernetes-1.35]', or set"
            ' kubernetes_version: "1.34"'
        )
    ]


def test_a_script_that_is_not_there(root: Path) -> None:
    (root / "lifecycle_scripts" / "on_create.sh").rename(root / "lifecycle_scripts" / "start.sh")
    said = said_by(root)
    assert len(said) == 2
    assert said[0].endswith(
        'must be a script in lifecycle_scripts/, got "on_create.sh"; write it, or name one of start.sh'
    )


def test_a_script_that_would_fail_on_a_node(root: Path) -> None:
    script = root / "lifecycle_scripts" / "on_create.sh"
    script.write_bytes(b"#!/bin/sh\r\n")
    (said,) = said_by(root)
    assert said.startswith(f"{script}:1 must end its lines with LF, got CR LF")


def test_a_chart_without_its_lock_is_compared_with_the_lock_that_ships(root: Path, project: Path) -> None:
    (root / CHART_DIRECTORY).mkdir(parents=True)
    loaded = load_environment(project / ENVIRONMENTS["prod"])
    with pytest.raises(SystemExit) as ended:
        build(new_app(), [loaded], root=root)
    assert str(ended.value).startswith(f"{root / CHART_DIRECTORY}: content must have")


def test_no_environment_at_all(root: Path) -> None:
    (root / "environments" / "prod.yaml").unlink()
    assert said_by(root) == ["environments/ contains no *.yaml file; create one with 'hyperpod-cdk init NAME'"]
