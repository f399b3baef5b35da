"""The images of a rendered chart, and whether they match the catalog's table for the locked chart."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.catalog import images
from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.chart_values import chart_values, rendered_images
from tests.charts.conftest import config_map

POD = {
    "kind": "DaemonSet",
    "spec": {
        "template": {
            "spec": {
                "initContainers": [{"name": "first", "image": "alpine:3.10"}],
                "containers": [
                    {"name": "plugin", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.16.1"},
                    {"name": "operator", "image": "kubeflow/training-operator:v1"},
                ],
            }
        }
    },
}
POLICY = {
    "kind": "ClusterPolicy",
    "spec": {
        "toolkit": {"enabled": True, "repository": "r.example.com/k8s", "image": "toolkit", "version": "v1"},
        "validator": {"repository": "r.example.com", "image": "validator", "version": "v2"},
        "driver": {"enabled": False, "repository": "r.example.com", "image": "driver", "version": "v3"},
        "ccManager": {"enabled": True, "repository": "r.example.com", "image": "for-virtual-machines", "version": "v4"},
        "mig": {"strategy": "mixed"},
    },
}
SCHEMA = {"kind": "CustomResourceDefinition", "spec": {"properties": {"containers": {"image": {"type": "string"}}}}}


@pytest.mark.parametrize(
    ("documents", "found"),
    [
        ([], set()),
        ([SCHEMA], set()),
        (
            [POD],
            {
                "docker.io/library/alpine:3.10",
                "docker.io/kubeflow/training-operator:v1",
                "nvcr.io/nvidia/k8s-device-plugin:v0.16.1",
            },
        ),
        ([POLICY], {"r.example.com/k8s/toolkit:v1", "r.example.com/validator:v2"}),
    ],
)
def test_the_images_of_a_rendering(documents: list[dict[str, Any]], found: set[str]) -> None:
    assert rendered_images(documents) == found


def test_a_chart_is_rendered_with_its_values(tmp_path: Path, helm: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: agent\nversion: 0.1.0\n", encoding="utf-8")
    (tmp_path / "templates" / "map.yaml").write_text(config_map("{{ .Values.name }}"), encoding="utf-8")
    (document,) = charts.render(tmp_path, {"name": "agent"}, helm=helm)
    assert document["metadata"] == {"name": "agent"}


def test_the_table_of_images_is_that_of_the_pulled_chart(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        chart = charts.verify(project)
    except (charts.ChartError, FileNotFoundError):
        pytest.skip("needs the chart: hyperpod-cdk charts pull")
    monkeypatch.setattr(sys, "path", [str(project / "scripts"), *sys.path])
    refresh = importlib.import_module("refresh_chart_images")

    # the second region is one that the chart's maps lack
    assert list(refresh.differences(chart, every=("us-east-1", "ap-south-2"))) == []


def test_the_table_of_images_is_of_the_locked_chart(project: Path) -> None:
    assert charts.ChartLock.load(project).commit == images.CHART_COMMIT


def test_values_refuse_partitions_where_no_operator_is() -> None:
    with pytest.raises(ValueError, match=r"^gpu_partitions: must be left out in a region"):
        chart_values([], region="eu-west-3", gpu_partitions=True)
