"""The Helm chart that must be on the EKS cluster before HyperPod joins it, with values for the chosen types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import (
    Annotations,
    CfnParameter,
    CfnRule,
    CfnRuleAssertion,
    Duration,
    Fn,
    ICfnRuleConditionExpression,
    RemovalPolicy,
    Stack,
)
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from hyperpod_cdk.catalog import instance_types as catalog
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.kubernetes import SYSTEM_NAMESPACE
from hyperpod_cdk.common.manifests import answer_in_time, refuse_without_kubectl
from hyperpod_cdk.config import eks as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse, refuse_all, refuse_unknown_types
from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.chart_values import chart_values, check_gpu_operator

RELEASE = "hyperpod-dependencies"
NAMESPACE = SYSTEM_NAMESPACE
PLACEHOLDER_PARAMETER = "HyperPodChart"
REHEARSAL = "rehearsal"
"""Value of the ``HyperPodChart`` parameter with which a stack with the placeholder may be deployed."""

_PLACEHOLDER = Path(__file__).parents[1] / "_charts" / "placeholder"
_TIMEOUT_MINUTES = 13
"""Less than the 15 minutes of the function that runs Helm: a release whose Helm is stopped earlier remains in
pending-upgrade (aws-cdk issue 22257)."""


@judged()
@dataclass(frozen=True)
class HyperPodChart:
    """The folder of the dependency chart, or the placeholder that replaces it until it is pulled.

    ``directory`` (Path): folder of the chart.

    ``is_placeholder`` (bool): whether it replaces a chart that was not pulled. Default: no.
    """

    directory: Path
    is_placeholder: bool = False

    @staticmethod
    def pulled(directory: Path | str) -> HyperPodChart:
        """Use the chart in ``directory``, which is not compared with a lock; raises ValueError if it has none."""
        path = Path(directory)
        if not (path / "Chart.yaml").is_file():
            raise ValueError(
                f"directory: must contain a Helm chart, got {path} without Chart.yaml; run '{charts.PULL_COMMAND}'"
            )
        return HyperPodChart(path)

    @staticmethod
    def placeholder() -> HyperPodChart:
        """Use the chart that ships with the library and refuses to be installed."""
        return HyperPodChart(_PLACEHOLDER, is_placeholder=True)

    @staticmethod
    def locate(root: Path | str) -> HyperPodChart:
        """Use the chart pulled into the project at ``root``, else the placeholder.

        Raises charts.ChartError if the pulled folder does not match the project's lock.
        """
        project = Path(root)
        if not (project / charts.CHART_DIRECTORY).exists():
            return HyperPodChart.placeholder()
        return HyperPodChart.pulled(charts.verify(project))


@judged(known=("instance_types",))
class HyperPodDependencies(Construct):
    """The release ``hyperpod-dependencies`` in ``kube-system``: device plugins, health monitoring, operators, RBAC.

    ``instance_types`` are the types of all instance groups, as names in the catalog or as your own rows. A device
    plugin is enabled only if a type needs it. It then runs on every type with such devices in the catalog, and on your
    own rows: the chart's own lists are older than AWS's and an unlisted type would get no plugin, and the release does
    not change if you add or replace a type. cert-manager stays disabled, because the EKS add-on provides it. The region
    is set because the chart would otherwise pull its health monitoring agent from us-east-1.

    ``image_registry`` is the registry to which the images of public registries were copied, each under its upstream
    name without the registry; a closed network has no other access to them. Without it, they come from the chart's
    registries.

    Helm does not wait: the pods need nodes, which join later. The release is retained when the stack is deleted; it
    ends with the EKS cluster. With the placeholder chart, the stack refuses a real deployment (``refuse_placeholder``).

    ``cluster`` (eks_v2.ICluster): the CDK construct of the EKS cluster, with a kubectl provider. Raises ValueError for
    a cluster without one.

    ``instance_types`` (Sequence[str | InstanceType]): types of the nodes, by name or with their numbers. Raises
    ValueError for a name that the catalog does not have.

    ``chart`` (HyperPodChart): the chart to install.

    ``gpu_partitions`` (bool): nodes partition their GPUs (MIG): their group has the label ``nvidia.com/mig.config``.
    NVIDIA's GPU operator is then installed, which does it; its device plugin serves all NVIDIA types instead of the
    chart's. Default: no, and such nodes would not partition their GPUs. Raises ValueError in a region for which the
    chart has no copy of the GPU operator.

    ``image_registry`` (str): host of the registry of the images, with a path if it has one. Default: the chart's
    registries. Raises ValueError for an address with ``https://`` or a tag.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        instance_types: Sequence[str | InstanceType],
        chart: HyperPodChart,
        gpu_partitions: bool = False,
        image_registry: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        refuse_all(
            lambda: refuse(fields.Eks, image_registry=image_registry),
            lambda: refuse_without_kubectl(self, cluster),
            lambda: refuse_unknown_types(instance_types=instance_types),
            lambda: check_gpu_operator(stack.region) if gpu_partitions else None,
        )
        types = _rows(instance_types)
        if chart.is_placeholder:
            refuse_placeholder(stack)
        else:
            _warn_about_fixed_lists(self, chart, types)
        self._chart = eks.HelmChart(
            self,
            "Chart",
            cluster=cluster,
            chart_asset=s3_assets.Asset(self, "ChartAsset", path=str(chart.directory)),
            release=RELEASE,
            namespace=NAMESPACE,
            create_namespace=False,
            wait=False,
            timeout=Duration.minutes(_TIMEOUT_MINUTES),
            values=chart_values(
                types, region=stack.region, gpu_partitions=gpu_partitions, image_registry=image_registry
            ),
            # an existing release is adopted: not even a creation that is rolled back may remove it
            removal_policy=RemovalPolicy.RETAIN,
        )
        answer_in_time(self._chart)

    @property
    def chart(self) -> eks.HelmChart:
        """The release; the HyperPod cluster must depend on it."""
        return self._chart


def refuse_placeholder(stack: Stack) -> None:
    """Make CloudFormation refuse ``stack`` before it creates anything, unless the deployment is a rehearsal.

    Call it for every stack that is deployed before the one with the chart, so that no deployment waits for a control
    plane that cannot be completed. Calling it twice for a stack changes nothing.
    """
    if stack.node.try_find_child(PLACEHOLDER_PARAMETER) is not None:
        return
    parameter = CfnParameter(
        stack,
        PLACEHOLDER_PARAMETER,
        default="placeholder",
        description=(
            f"Made without the HyperPod dependency chart. Run '{charts.PULL_COMMAND}' and synthesise again; "
            f"'{REHEARSAL}' is for rehearsals only."
        ),
    )
    pulled: ICfnRuleConditionExpression = Fn.condition_equals(parameter.value_as_string, REHEARSAL)
    CfnRule(
        stack,
        charts.PULLED_RULE,
        assertions=[
            CfnRuleAssertion(
                assert_=pulled,
                assert_description=(
                    f"the HyperPod dependency chart has not been pulled; run '{charts.PULL_COMMAND}', then deploy again"
                ),
            )
        ],
    )


def _rows(instance_types: Iterable[str | InstanceType]) -> list[InstanceType]:
    known = (entry if isinstance(entry, InstanceType) else catalog.get(entry) for entry in instance_types)
    rows = {row.name: row for row in known if row is not None}
    return [rows[name] for name in sorted(rows)]


def _warn_about_fixed_lists(scope: Construct, chart: HyperPodChart, types: Sequence[InstanceType]) -> None:
    """Warn if a part of the chart has its instance types in a template, where values cannot change them."""
    wanted = {
        "neuron-device-plugin": [row.name for row in types if row.is_neuron],
        "health-monitoring-agent": [row.name for row in types if row.is_accelerated],
    }
    for part, names in wanted.items():
        templates = sorted((chart.directory / "charts" / part / "templates").glob("*.yaml"))
        if not templates:
            continue
        words = {word for template in templates for word in template.read_text(encoding="utf-8").split()}
        missing = [name for name in names if name not in words]
        if missing:
            Annotations.of(scope).add_warning_v2(
                f"hyperpod-cdk:{part}",
                f"instance_types: {part} of the pulled chart runs only on types in its template, and "
                f"{', '.join(missing)} is not among them; pull a newer chart or install that part yourself",
            )
