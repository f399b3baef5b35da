"""The images of the dependency chart that a closed network must copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyperpod_cdk.catalog import images, instance_types, regions

REGION = "us-east-1"


def to_copy(*names: str, region: str = REGION, gpu_partitions: bool = False) -> tuple[images.ChartImage, ...]:
    rows = [row for name in names if (row := instance_types.get(name)) is not None]
    assert len(rows) == len(names)
    return images.images_to_copy(rows, region=region, gpu_partitions=gpu_partitions)


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
    found = [image.part for image in to_copy(*names)]
    assert found == ["training-operators", "mpi-operator", *parts]


def test_divided_gpus_bring_the_operator_in_place_of_the_device_plugin() -> None:
    found = [image.image for image in to_copy("ml.p4d.24xlarge", gpu_partitions=True)]
    assert "registry.k8s.io/nfd/node-feature-discovery:v0.18.3" in found
    assert [name for name in found if "k8s-device-plugin" in name and "efa" not in name] == []


def test_the_health_agent_of_a_region_without_one_is_copied() -> None:
    agent = "767398015722.dkr.ecr.us-east-1.amazonaws.com/hyperpod-health-monitoring-agent:1.0.1892.0_1.0.424.0"
    copied = {
        region: [image.image for image in to_copy("ml.p5.48xlarge", region=region) if "health" in image.part]
        for region in regions.HYPERPOD_REGIONS
    }
    # the chart's map lacks these two and falls back to us-east-1
    assert {region: found for region, found in copied.items() if found} == {
        "ap-northeast-2": [agent],
        "ap-south-2": [agent],
    }


def test_the_efa_plugin_has_the_tag_of_its_image_and_not_of_its_chart() -> None:
    (plugin,) = [image for image in to_copy("ml.c5n.18xlarge") if image.part == "aws-efa-k8s-device-plugin"]
    assert plugin.path == "eks/aws-efa-k8s-device-plugin:v0.5.13"


def test_an_image_keeps_its_name_without_its_registry() -> None:
    (plugin,) = [image for image in to_copy("ml.g5.xlarge") if image.part == "nvidia-device-plugin"]
    assert plugin.path == "nvidia/k8s-device-plugin:v0.16.1"
    assert plugin.repository == "nvidia/k8s-device-plugin"


def test_values_name_repositories_and_leave_out_what_a_template_names() -> None:
    assert images.registry_values("r.example.com/m", to_copy("ml.trn1.32xlarge")) == {
        "training-operators": {"image": {"repository": "r.example.com/m/kubeflow/training-operator"}},
        "mpi-operator": {"mpiOperator": {"image": {"repository": "r.example.com/m/mpioperator/mpi-operator"}}},
        "aws-efa-k8s-device-plugin": {"image": {"repository": "r.example.com/m/eks/aws-efa-k8s-device-plugin"}},
    }


def test_an_image_without_a_value_hides_none_after_it() -> None:
    copied = to_copy("ml.trn1.32xlarge")
    (plugin,) = [image for image in copied if image.part == "aws-efa-k8s-device-plugin"]
    assert images.registry_values("r.example.com/m", [replace(plugin, value=()), *copied]) == images.registry_values(
        "r.example.com/m", copied
    )


def test_the_value_of_the_health_agent_holds_the_tag_too() -> None:
    found = images.registry_values("r.example.com/m", to_copy("ml.g5.xlarge", region="ap-south-2"))
    assert found["health-monitoring-agent"] == {
        "hmaimage": "r.example.com/m/hyperpod-health-monitoring-agent:1.0.1892.0_1.0.424.0"
    }


@pytest.mark.parametrize(
    ("region", "registry"),
    [("us-east-1", "463470961310.dkr.ecr.us-east-1.amazonaws.com"), ("eu-west-3", None)],
)
def test_the_registry_of_the_gpu_operator(region: str, registry: str | None) -> None:
    assert images.gpu_operator_registry(region) == registry


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


@pytest.mark.parametrize(
    ("host", "registry"),
    [
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com", ("111122223333", "us-east-1", False, False)),
        ("111122223333.dkr.ecr-fips.us-east-1.amazonaws.com", ("111122223333", "us-east-1", False, True)),
        ("111122223333.dkr-ecr.us-east-1.on.aws", ("111122223333", "us-east-1", True, False)),
        ("111122223333.dkr-ecr-fips.us-gov-west-1.on.aws/x", ("111122223333", "us-gov-west-1", True, True)),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com:443/x", ("111122223333", "us-east-1", False, False)),
        ("11112222333.dkr.ecr.us-east-1.amazonaws.com", None),
        ("111122223333.dkr_ecr.us-east-1.amazonaws.com", None),
        ("111122223333.dkrecr.us-east-1.amazonaws.com", None),
        ("111122223333.dkr.ecrs.us-east-1.amazonaws.com", None),
    ],
)
def test_the_host_names_of_ecr(host: str, registry: tuple[str, str, bool, bool] | None) -> None:
    assert images.ecr_registry(host) == registry


def test_public_registries() -> None:
    expected = {"docker.io", "ghcr.io", "nvcr.io", "public.ecr.aws", "quay.io", "registry.k8s.io"}
    assert expected == images.PUBLIC_REGISTRIES


@pytest.mark.parametrize(
    ("name", "gpu_partitions", "parts"),
    [
        ("ml.m5.2xlarge", False, set()),
        ("ml.c5n.18xlarge", False, {"aws-efa-k8s-device-plugin"}),
        ("ml.g5.xlarge", False, {"health-monitoring-agent", "nvidia-device-plugin"}),
        (
            "ml.trn1.32xlarge",
            False,
            {"health-monitoring-agent", "aws-efa-k8s-device-plugin", "neuron-device-plugin"},
        ),
        ("ml.p4d.24xlarge", True, {"health-monitoring-agent", "aws-efa-k8s-device-plugin", "gpu-operator"}),
    ],
)
def test_what_nodes_of_a_type_pull(name: str, parts: set[str], *, gpu_partitions: bool) -> None:
    row = instance_types.get(name)
    assert row is not None
    found = images.chart_images([row], region=REGION, gpu_partitions=gpu_partitions)
    assert {image.part for image in found} == {"training-operators", "mpi-operator", *parts}
    assert all("{" not in image.image for image in found)
    copied = images.images_to_copy([row], region=REGION, gpu_partitions=gpu_partitions)
    assert set(found) - set(copied) == {image for image in found if ".dkr.ecr.us-east-1." in image.image}
