"""The images of the dependency chart that a closed network has to bring along."""

from __future__ import annotations

import pytest

from hyperpod_cdk.catalog import images, instance_types


def chart_images(*names: str) -> tuple[images.ChartImage, ...]:
    rows = [row for name in names if (row := instance_types.get(name)) is not None]
    assert len(rows) == len(names)
    return images.chart_images(rows)


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ((), []),
        (("ml.m5.2xlarge",), []),
        (("ml.g5.xlarge",), ["nvidia-device-plugin"]),
        (("ml.p5.48xlarge", "ml.m5.2xlarge"), ["nvidia-device-plugin", "aws-efa-k8s-device-plugin"]),
        (("ml.trn1.32xlarge",), ["aws-efa-k8s-device-plugin", "neuron-device-plugin"]),
    ],
)
def test_types_bring_their_images(names: tuple[str, ...], parts: list[str]) -> None:
    found = [image.part for image in chart_images(*names)]
    assert found == ["training-operators", "mpi-operator", *parts]


def test_an_image_keeps_its_name_without_its_registry() -> None:
    (plugin,) = [image for image in chart_images("ml.g5.xlarge") if image.part == "nvidia-device-plugin"]
    assert plugin.path == "nvidia/k8s-device-plugin:v0.16.1"
    assert plugin.repository == "nvidia/k8s-device-plugin"


def test_values_name_repositories_and_leave_out_what_a_template_names() -> None:
    assert images.registry_values("r.example.com/m", chart_images("ml.trn1.32xlarge")) == {
        "training-operators": {"image": {"repository": "r.example.com/m/kubeflow/training-operator"}},
        "mpi-operator": {"mpiOperator": {"image": {"repository": "r.example.com/m/mpioperator/mpi-operator"}}},
        "aws-efa-k8s-device-plugin": {"image": {"repository": "r.example.com/m/eks/aws-efa-k8s-device-plugin"}},
    }


@pytest.mark.parametrize(
    ("registry", "region"),
    [
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com", "us-east-1"),
        ("111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn/mirror/x", "cn-north-1"),
        ("public.ecr.aws/x", None),
        ("example.com/111122223333.dkr.ecr.us-east-1.amazonaws.com", None),
    ],
)
def test_the_region_of_a_registry(registry: str, region: str | None) -> None:
    assert images.ecr_region(registry) == region


def test_public_registries() -> None:
    assert {"nvcr.io", "docker.io", "public.ecr.aws", "quay.io"} <= images.PUBLIC_REGISTRIES
    assert not any("dkr.ecr" in name for name in images.PUBLIC_REGISTRIES)
