"""The operators section: HyperPod's add-ons for workloads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import operators
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.config.section import Check, Section, like
from hyperpod_cdk.config.storage import BUCKET

CREATE = "create"
"""The word for a workspace that the environment makes and keeps."""


def _created_or(pattern: Pattern) -> Check:
    def problem(value: str, key: str) -> str | None:  # noqa: ARG001 - which of the two is meant the reader decides
        if value == CREATE or pattern.matches(value):
            return None
        return (
            f'must be {CREATE} or {pattern.describes}, got "{value}"; write {CREATE} to have one made, or the ARN of'
            f" one that exists, such as {pattern.example}"
        )

    return Check(problem, "workspace", {"pattern": f"^(?:{CREATE}|{pattern.regex})$", "maxLength": pattern.maximum})


class TrainingOperator(Section):
    """The HyperPod training operator: HyperPodPyTorchJob, with elastic training."""

    enabled: bool = Field(
        default=False, description="Whether to install the operator with cert-manager, which it needs."
    )
    elastic: bool = Field(
        default=True,
        description=(
            "Whether jobs may be elastic, which the operator does from 1.2.0 on, but not on Spot capacity nor with"
            " tiered checkpointing. With false these are not reported."
        ),
    )


class InferenceOperator(Section):
    """The HyperPod inference operator: endpoints for models of JumpStart, S3 and FSx."""

    enabled: bool = Field(
        default=False,
        description=(
            "Whether to install the operator with what it needs: cert-manager, metrics-server, the CSI drivers of FSx"
            " and S3, an OIDC provider of the cluster, and a bucket for the certificates of endpoints, which is kept."
        ),
    )
    model_buckets: Annotated[tuple[Annotated[str, like(BUCKET)], ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "S3 buckets with models, which the S3 CSI driver may list and read. Default: none, models then come from"
            " JumpStart or FSx."
        ),
        examples=[["my-models"]],
    )
    gated_models: bool = Field(
        default=False,
        description="Whether endpoints may load JumpStart models whose license was accepted; makes a role for it.",
    )
    load_balancer_controller: bool = Field(
        default=True,
        description=(
            "Whether the add-on brings the AWS Load Balancer Controller, which a cluster can hold once; false where one"
            " runs already."
        ),
    )
    keda: bool = Field(
        default=True,
        description="Whether the add-on brings KEDA for autoscaling; false where KEDA runs already.",
    )


class Metrics(Section):
    """How much the observability add-on collects; a category left out stays at the add-on's own level."""

    training: Literal["basic", "advanced"] | None = Field(
        default=None, description="Duration, type and faults of jobs; advanced: performance by event."
    )
    task_governance: Literal["disabled", "advanced"] | None = Field(
        default=None, description="What each team has been given and uses."
    )
    scaling: Literal["disabled", "advanced"] | None = Field(default=None, description="Autoscaling by KEDA.")
    cluster: Literal["basic", "advanced"] | None = Field(
        default=None, description="Health and number of instances; advanced: all of kube-state-metrics."
    )
    node: Literal["basic", "advanced"] | None = Field(
        default=None, description="CPU, disks and operating system; advanced: all of node_exporter."
    )
    network: Literal["disabled", "advanced"] | None = Field(default=None, description="EFA interfaces.")
    accelerated_compute: Literal["basic", "advanced"] | None = Field(
        default=None, description="Use and temperature of accelerators; advanced: all metrics of DCGM and Neuron."
    )


class Observability(Section):
    """The HyperPod observability add-on: metrics of nodes, accelerators and jobs into managed Prometheus."""

    enabled: bool = Field(
        default=False, description="Whether to install the add-on; it needs a node of the size 4xlarge or larger."
    )
    prometheus_workspace: Annotated[str, _created_or(operators.PROMETHEUS_WORKSPACE_ARN)] = Field(
        default=CREATE,
        description=(
            "Where metrics go: create, or the ARN of an Amazon Managed Service for Prometheus workspace of the account."
            " A workspace that is made is kept when the stack goes."
        ),
        examples=[CREATE, operators.PROMETHEUS_WORKSPACE_ARN.example],
    )
    grafana_workspace: Annotated[str, _created_or(operators.GRAFANA_WORKSPACE_ARN)] | None = Field(
        default=None,
        description=(
            "Where dashboards are: create, or the ARN of an Amazon Managed Grafana workspace. To create one, IAM"
            " Identity Center must be enabled, through which its users sign in; it gets data sources and dashboards,"
            " and is kept when the stack goes. Default: none."
        ),
        examples=[CREATE, operators.GRAFANA_WORKSPACE_ARN.example],
    )
    metrics: Metrics = Field(default_factory=Metrics, description="Levels of the categories of metrics.")
    logs: bool = Field(
        default=False,
        description="Whether logs of all containers go to CloudWatch Logs, which bills for them.",
    )


class Spaces(Section):
    """SageMaker Spaces on HyperPod: JupyterLab and Code Editor in pods."""

    enabled: bool = Field(
        default=False,
        description="Whether to install the add-on with cert-manager and the EBS CSI driver, which it needs.",
    )
    remote_access: bool = Field(
        default=False,
        description=(
            "Whether a local VS Code may connect through Systems Manager. It switches the account's Systems Manager to"
            " its advanced tier, billed for each space that is connected."
        ),
    )


class Operators(Section):
    """Add-ons that run workloads."""

    training: TrainingOperator = Field(
        default_factory=TrainingOperator, description="The HyperPod training operator, needed for elastic training."
    )
    inference: InferenceOperator = Field(
        default_factory=InferenceOperator, description="The HyperPod inference operator."
    )
    observability: Observability = Field(
        default_factory=Observability, description="The HyperPod observability add-on."
    )
    spaces: Spaces = Field(default_factory=Spaces, description="SageMaker Spaces.")

    @property
    def need_cert_manager(self) -> bool:
        """Whether an operator that is on needs cert-manager."""
        return self.training.enabled or self.inference.enabled or self.spaces.enabled
