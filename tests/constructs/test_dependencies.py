"""The HyperPod dependency chart: values made for the chosen types, and a placeholder that cannot be deployed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.assertions import Annotations, Match

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.dependencies import HyperPodChart, HyperPodDependencies, refuse_placeholder
from tests.support.templates import app, of_type, stack, template_of

CHART = "Custom::AWSCDK-EKS-HelmChart"


def dependencies(
    own: cdk.Stack,
    *types: str | InstanceType,
    chart: HyperPodChart | None = None,
    image_registry: str | None = None,
    gpu_partitions: bool = False,
) -> HyperPodDependencies:
    cluster = eks.Cluster.from_cluster_attributes(
        own,
        "Eks",
        cluster_name="prod-eks",
        kubectl_provider=eks.KubectlProvider.from_kubectl_provider_attributes(
            own,
            "Kubectl",
            service_token=cdk.Fn.import_value("kubectl"),
            role=cdk.aws_iam.Role.from_role_name(own, "Role", "kubectl"),
        ),
    )
    return HyperPodDependencies(
        own,
        "Dependencies",
        cluster=cluster,
        instance_types=types,
        chart=chart or HyperPodChart.placeholder(),
        image_registry=image_registry,
        gpu_partitions=gpu_partitions,
    )


def release(own: cdk.Stack) -> dict[str, Any]:
    (row,) = of_type(template_of(own), CHART).values()
    return row


def values(*types: str | InstanceType, gpu_partitions: bool = False) -> dict[str, Any]:
    own = stack()
    dependencies(own, *types, gpu_partitions=gpu_partitions)
    found: dict[str, Any] = json.loads(release(own)["Properties"]["Values"])
    return found


def chart_folder(folder: Path, neuron_types: str = "- ml.trn1.32xlarge") -> Path:
    template = folder / "charts" / "neuron-device-plugin" / "templates" / "plugin.yaml"
    template.parent.mkdir(parents=True)
    template.write_text(f"values:\n{neuron_types}\n", encoding="utf-8")
    (folder / "Chart.yaml").write_text("name: pulled\nversion: 1.0.0\n", encoding="utf-8")
    return folder


def test_the_release() -> None:
    own = stack()
    made = dependencies(own, "ml.p5.48xlarge")
    row = release(own)

    assert row["Properties"]["Release"] == "hyperpod-dependencies"
    assert row["Properties"]["Namespace"] == "kube-system"
    assert row["Properties"]["Timeout"] == "780s"
    assert "Wait" not in row["Properties"]
    assert row["Properties"]["ChartAssetURL"].startswith("s3://")
    assert row["DeletionPolicy"] == "Retain"
    assert made.chart.node.path == "test/Dependencies/Chart"


def test_the_region_is_that_of_the_stack() -> None:
    # without it the chart pulls the health monitoring agent from us-east-1
    made = values("ml.m5.2xlarge")
    assert made["health-monitoring-agent"] == {"region": "us-east-1"}
    assert made["global"] == {"region": "us-east-1"}


def test_a_stack_without_a_region_passes_its_token() -> None:
    own = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "test")
    dependencies(own, "ml.m5.2xlarge")
    assert {"Ref": "AWS::Region"} in release(own)["Properties"]["Values"]["Fn::Join"][1]


def test_cert_manager_is_left_to_the_eks_addon() -> None:
    assert values("ml.p5.48xlarge")["cert-manager"] == {"enabled": False}


@pytest.mark.parametrize(
    ("types", "nvidia", "neuron", "efa"),
    [
        (["ml.m5.2xlarge"], False, False, False),
        (["ml.p5.48xlarge", "ml.m5.2xlarge"], True, False, True),
        (["ml.g5.xlarge"], True, False, False),
        (["ml.trn1.32xlarge"], False, True, True),
        (["ml.trn1.32xlarge", "ml.p5en.48xlarge", "ml.p5.48xlarge", "ml.p5.48xlarge"], True, True, True),
        ([], False, False, False),
    ],
)
def test_plugins_are_on_where_a_type_needs_them(
    types: list[str],
    nvidia: bool,  # noqa: FBT001 - a table's column
    neuron: bool,  # noqa: FBT001 - a table's column
    efa: bool,  # noqa: FBT001 - a table's column
) -> None:
    made = values(*types)

    assert made["nvidia-device-plugin"]["devicePlugin"]["enabled"] is nvidia
    assert made["neuron-device-plugin"]["devicePlugin"]["enabled"] is neuron
    assert made["aws-efa-k8s-device-plugin"]["devicePlugin"]["enabled"] is efa
    assert bool(with_efa(made)) is efa
    assert bool(with_gpus(made)) is nvidia


def with_efa(made: dict[str, Any]) -> list[str]:
    labels: list[str] = made["aws-efa-k8s-device-plugin"].get("supportedInstanceLabels", {}).get("values", [])
    return labels


def with_gpus(made: dict[str, Any]) -> list[str]:
    affinity = made["nvidia-device-plugin"].get("affinity")
    if affinity is None:
        return []
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    names: list[str] = expression.pop("values")
    assert expression == {"key": "node.kubernetes.io/instance-type", "operator": "In"}
    return names


def test_plugins_run_on_all_types_that_have_what_they_serve() -> None:
    """A group of another type then changes no value, and a plugin stays on nodes that go after the values changed."""
    made = values("ml.p5.48xlarge")
    rows = [row for name in instance_types.names() if (row := instance_types.get(name))]
    assert with_gpus(made) == sorted(row.name for row in rows if row.is_nvidia)
    assert with_efa(made) == sorted(row.name for row in rows if row.efa_supported)
    for name in ("ml.p5.48xlarge", "ml.g5.xlarge", "ml.p6e-gb200.36xlarge"):
        assert name in with_gpus(values("ml.p5.48xlarge"))
    assert {"ml.trn1.32xlarge", "ml.m6i.32xlarge"}.isdisjoint(with_gpus(values("ml.p5.48xlarge")))
    assert "ml.trn1.32xlarge" in with_efa(made)
    assert "ml.g5.xlarge" not in with_efa(made)


def test_another_type_of_the_same_kind_changes_no_value() -> None:
    assert values("ml.p5.48xlarge") == values("ml.p5en.48xlarge") == values("ml.p5.48xlarge", "ml.p5e.48xlarge")


def test_a_custom_row_is_also_served() -> None:
    h100 = instance_types.get("ml.p5.48xlarge")
    assert h100 is not None
    made = values(replace(h100, name="ml.p9.48xlarge"))
    assert "ml.p9.48xlarge" in with_gpus(made)
    assert "ml.p9.48xlarge" in with_efa(made)
    without = values(replace(h100, efa_supported=False), "ml.p5en.48xlarge")
    assert "ml.p5.48xlarge" not in with_efa(without)


def test_divided_gpus_get_the_operator_in_place_of_the_device_plugin() -> None:
    made = values("ml.p4d.24xlarge", "ml.g5.8xlarge", gpu_partitions=True)
    registry = "463470961310.dkr.ecr.us-east-1.amazonaws.com"
    assert made["nvidia-device-plugin"] == {"devicePlugin": {"enabled": False}}
    assert made["gpu-operator"] == {
        "enabled": True,
        "gpu-operator": {
            "operator": {"repository": registry},
            "toolkit": {"repository": f"{registry}/mirror-k8s"},
            "devicePlugin": {"repository": registry},
            "gfd": {"repository": registry},
            "migManager": {"repository": f"{registry}/mirror-cloud-native"},
            "validator": {"repository": f"{registry}/mirror-cloud-native"},
        },
    }
    assert "gpu-operator" not in values("ml.p4d.24xlarge")


def test_gpus_are_divided_only_where_the_operator_can_come_from() -> None:
    own = cdk.Stack(app(), "far", env=cdk.Environment(account="111122223333", region="eu-west-3"))
    said = r"^gpu_partitions: must be left out in a region .*, got eu-west-3 \(chart as of "
    with pytest.raises(ValueError, match=said):
        dependencies(own, "ml.p4d.24xlarge", gpu_partitions=True)


def test_the_order_of_types_does_not_change_the_values() -> None:
    assert values("ml.p5.48xlarge", "ml.g5.8xlarge") == values("ml.g5.8xlarge", "ml.p5.48xlarge", "ml.g5.8xlarge")


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        dependencies(stack(), "ml.p5.48xlarg")
    assert str(refusal.value) == (
        f'instance_types: must be a HyperPod instance type known on {instance_types.as_of()}, got "ml.p5.48xlarg"; did'
        " you mean ml.p5.48xlarge? If not, pass an InstanceType with its numbers"
    )


def test_a_placeholder_refuses_a_deployment_before_anything_is_made() -> None:
    own = stack()
    dependencies(own, "ml.p5.48xlarge")
    template = template_of(own)

    assert template["Parameters"]["HyperPodChart"] == {
        "Type": "String",
        "Default": "placeholder",
        "Description": (
            "Made without the HyperPod dependency chart. Run 'hyperpod-cdk charts pull' and synthesise again; "
            "'rehearsal' is for rehearsals only."
        ),
    }
    assert template["Rules"]["HyperPodChartIsPulled"] == {
        "Assertions": [
            {
                "Assert": {"Fn::Equals": [{"Ref": "HyperPodChart"}, "rehearsal"]},
                "AssertDescription": (
                    "the HyperPod dependency chart has not been pulled; "
                    "run 'hyperpod-cdk charts pull', then deploy again"
                ),
            }
        ]
    }


def test_other_stacks_can_refuse_too_and_twice_is_once() -> None:
    own = stack()
    cdk.CfnResource(own, "Anything", type="AWS::CloudFormation::WaitConditionHandle")
    refuse_placeholder(own)
    refuse_placeholder(own)
    assert [name for name in template_of(own)["Rules"] if name.startswith("HyperPod")] == ["HyperPodChartIsPulled"]


def test_a_pulled_chart_is_deployed_as_it_is(tmp_path: Path) -> None:
    own = stack()
    folder = chart_folder(tmp_path / "chart")
    dependencies(own, "ml.trn1.32xlarge", chart=HyperPodChart.pulled(folder))
    template = template_of(own)

    assert "HyperPodChart" not in template.get("Parameters", {})
    assert "HyperPodChartIsPulled" not in template.get("Rules", {})
    Annotations.from_stack(own).has_no_warning("*", Match.any_value())


def test_types_that_the_chart_does_not_name_are_warned_about(tmp_path: Path) -> None:
    own = stack()
    folder = chart_folder(tmp_path / "chart")
    dependencies(own, "ml.trn1.32xlarge", "ml.trn2.3xlarge", chart=HyperPodChart.pulled(folder))

    Annotations.from_stack(own).has_warning(
        "/test/Dependencies",
        Match.string_like_regexp(
            "instance_types: neuron-device-plugin of the pulled chart runs only on types in its template, and"
            " ml.trn2.3xlarge is not among them; .*"
        ),
    )


def test_a_folder_without_a_chart_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        HyperPodChart.pulled(tmp_path)
    assert str(refusal.value) == (
        f"directory: must contain a Helm chart, got {tmp_path} without Chart.yaml; run 'hyperpod-cdk charts pull'"
    )


def test_locate_takes_the_placeholder_where_nothing_was_pulled(tmp_path: Path) -> None:
    assert HyperPodChart.locate(tmp_path) == HyperPodChart.placeholder()
    assert HyperPodChart.placeholder().is_placeholder


def test_locate_takes_a_pulled_chart_that_is_what_the_lock_says(project: Path, tmp_path: Path) -> None:
    folder = chart_folder(tmp_path / charts.CHART_DIRECTORY)
    lock = charts.ChartLock.load(project)
    recorded = replace(lock, content_sha256=charts.content_digest(folder))
    (tmp_path / charts.LOCK_FILE).write_text(recorded.render(), encoding="utf-8")

    assert HyperPodChart.locate(tmp_path) == HyperPodChart(folder)

    (folder / "Chart.yaml").write_text("name: changed\nversion: 1.0.0\n", encoding="utf-8")
    with pytest.raises(charts.ChartError) as refusal:
        HyperPodChart.locate(tmp_path)
    assert str(refusal.value) == (
        f"{folder}: content must have sha256 {recorded.content_sha256} (charts/charts.lock.yaml), "
        f"got {charts.content_digest(folder)}; run 'hyperpod-cdk charts pull' to fetch the locked chart again"
    )


def test_the_placeholder_is_always_the_same_and_refuses_to_render() -> None:
    folder = HyperPodChart.placeholder().directory
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}

    assert files == {"Chart.yaml", "templates/refuse.yaml"}
    assert yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))["version"] == "0.0.0"
    assert "hyperpod-cdk charts pull" in (folder / "templates" / "refuse.yaml").read_text(encoding="utf-8")
    own, other = stack(), stack()
    dependencies(own)
    dependencies(other)
    assert release(own)["Properties"]["ChartAssetURL"] == release(other)["Properties"]["ChartAssetURL"]


REGISTRY = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror"


@pytest.mark.parametrize(
    ("instance_type", "moved"),
    [
        ("ml.m5.2xlarge", {}),
        (
            "ml.p5.48xlarge",
            {
                "nvidia-device-plugin": "nvidia/k8s-device-plugin",
                "aws-efa-k8s-device-plugin": "eks/aws-efa-k8s-device-plugin",
            },
        ),
        ("ml.trn1.32xlarge", {"aws-efa-k8s-device-plugin": "eks/aws-efa-k8s-device-plugin"}),
    ],
)
def test_images_come_from_a_private_registry(instance_type: str, moved: dict[str, str]) -> None:
    own = stack()
    dependencies(own, instance_type, image_registry=REGISTRY)
    made: dict[str, Any] = json.loads(release(own)["Properties"]["Values"])

    images = {part: made[part]["image"]["repository"] for part in made if "image" in made[part]}
    wanted = {"training-operators": "kubeflow/training-operator", **moved}
    assert images == {part: f"{REGISTRY}/{name}" for part, name in wanted.items()}
    assert made["mpi-operator"]["mpiOperator"]["image"]["repository"] == f"{REGISTRY}/mpioperator/mpi-operator"
    for part, section in values(instance_type).items():
        assert {key: made[part][key] for key in section} == section
