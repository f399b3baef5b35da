"""`hyperpod-cdk charts images`: from the pulled chart, else from the dated table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_cdk.catalog import images
from hyperpod_cdk.eks import charts
from tests.cli.conftest import Run
from tests.support.answers import answered

DAEMON = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin}
spec: {template: {spec: {containers: [{name: a, image: "nvcr.io/a:v1"}, {name: b, image: "%s"}]}}}
"""
IN_ECR = "111122223333.dkr.ecr.us-east-1.amazonaws.com/b:v2"


@pytest.fixture
def with_file(workspace: Path, project: Path) -> Path:
    text = (project / "examples" / "closed-network.yaml").read_text(encoding="utf-8")
    (workspace / "environments" / "closed.yaml").write_text(text, encoding="utf-8")
    return workspace


def test_without_a_chart_the_table_is_listed_with_its_date(run: Run, with_file: Path) -> None:
    assert with_file
    done = run("charts", "images", "closed", "--format", "json")
    told = answered("chart-images", done.stdout)
    assert told["source"] == (
        f"from the catalog of {images.AS_OF}, chart at {images.CHART_COMMIT[:12]}; the chart is not pulled, "
        "run 'hyperpod-cdk charts pull' and then this command again to read the chart itself"
    )
    rows = {row["image"]: row["copy"] for row in told["images"] if row["to_copy"]}
    (plugin,) = [name for name in rows if "aws-efa-k8s-device-plugin" in name]
    assert plugin.endswith(":v0.5.13")
    assert rows[plugin].endswith("/eks/aws-efa-k8s-device-plugin:v0.5.13")
    assert all("health-monitoring-agent" not in name for name in rows)


def test_a_pulled_chart_is_rendered(run: Run, with_file: Path, project: Path) -> None:
    folder = with_file / charts.CHART_DIRECTORY
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: pulled\nversion: 1.0.0\n", encoding="utf-8")
    (folder / "templates" / "daemon.yaml").write_text(DAEMON % IN_ECR, encoding="utf-8")
    lock = replace(charts.ChartLock.load(project), content_sha256=charts.content_digest(folder))
    (with_file / charts.LOCK_FILE).write_text(lock.render(), encoding="utf-8")

    done = run("charts", "images", "closed")
    assert done.returncode == 0, done.stderr
    source, heading, copied, there, last = done.stdout.splitlines()
    assert source == f"rendered from the pulled chart, aws/sagemaker-hyperpod-cli at {lock.commit[:12]}"
    assert heading == "not in ECR of the region, a closed network needs copies:"
    assert copied.startswith("  nvcr.io/a:v1 -> ")
    assert (there, last) == ("in ECR of the region:", f"  {IN_ECR}")


def test_a_chart_that_was_changed_is_refused(run: Run, with_file: Path, project: Path) -> None:
    folder = with_file / charts.CHART_DIRECTORY
    folder.mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: pulled\nversion: 1.0.0\n", encoding="utf-8")
    (with_file / charts.LOCK_FILE).write_text(charts.ChartLock.load(project).render(), encoding="utf-8")
    done = run("charts", "images", "closed")
    assert (done.returncode, done.stdout) == (1, "")
    assert "content must have sha256" in done.stderr


@pytest.mark.parametrize("digest", ["sha256:12", "0" * 63, "charts"])
def test_a_digest_that_is_none_is_refused_before_anything_is_fetched(run: Run, digest: str) -> None:
    done = run("charts", "pull", f"--accept-digest={digest}")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        (
            "--accept-digest: must be a SHA-256 digest as shown by a refused pull, 64 hexadecimal digits, got"
            f" {digest!r}\n"
        ),
    )
