"""The operators section: HyperPod's add-ons for workloads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import operators
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.catalog.s3_places import BUCKET
from hyperpod_cdk.catalog.sentences import Example, Sentence
from hyperpod_cdk.config.section import Check, Section, like

CREATE = "create"
"""The value for a workspace that the environment creates and retains."""


def _created_or(pattern: Pattern) -> Check:
    def problem(value: str, key: str) -> str | None:  # noqa: ARG001 - only the reader knows which of the two is meant
        if value == CREATE or pattern.matches(value):
            return None
        return Sentence(
            f'must be {CREATE} or {pattern.describes}, got "{value}"; write {CREATE} to create one, or the ARN of'
            " one that exists, such as ",
            Example(pattern.example),
        )

    return Check(problem, "workspace", {"pattern": f"^(?:{CREATE}|{pattern.regex})$", "maxLength": pattern.maximum})


class TrainingOperator(Section):
    """The HyperPod training operator: HyperPodPyTorchJob, with elastic training."""

    enabled: bool = Field(
        default=False, description="Whether to install the operator and cert-manager, which it needs."
    )
    elastic: bool = Field(
        default=True,
        description=(
            "Whether jobs can be elastic. The operator supports this from version 1.2.0, but not on Spot"
            " capacity and not with tiered checkpointing. With false, these conflicts are not reported."
        ),
    )


class InferenceOperator(Section):
    """The HyperPod inference operator: endpoints for models of JumpStart, S3 and FSx."""

    enabled: bool = Field(
        default=False,
        description=(
            "Whether to install the operator and what it needs: cert-manager, metrics-server, the CSI drivers"
            " of FSx and S3, an OIDC provider for the cluster, and a bucket for the certificates of"
            " endpoints, which is retained."
        ),
    )
    model_buckets: Annotated[tuple[Annotated[str, like(BUCKET)], ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "S3 buckets with models, which the S3 CSI driver can list and read. Default: none; models then"
            " come from JumpStart or FSx."
        ),
        examples=[["my-models"]],
    )
    gated_models: bool = Field(
        default=False,
        description=(
            "Whether endpoints can load gated JumpStart models whose license was accepted; creates a role for it."
        ),
    )
    load_balancer_controller: bool = Field(
        default=True,
        description=(
            "Whether the add-on installs the AWS Load Balancer Controller. A cluster can have only one: set"
            " false if it already has one."
        ),
    )
    keda: bool = Field(
        default=True,
        description="Whether the add-on installs KEDA for autoscaling. Set false if KEDA already runs.",
    )


class Metrics(Section):
    """How many metrics the observability add-on collects. A category that is not set keeps the add-on's own level."""

    training: Literal["basic", "advanced"] | None = Field(
        default=None, description="Duration, type and faults of jobs; advanced: also performance by event."
    )
    task_governance: Literal["disabled", "advanced"] | None = Field(
        default=None, description="Quota and usage of each team."
    )
    scaling: Literal["disabled", "advanced"] | None = Field(default=None, description="Autoscaling with KEDA.")
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
        default=False, description="Whether to install the add-on; it needs a node of size 4xlarge or larger."
    )
    prometheus_workspace: Annotated[str, _created_or(operators.PROMETHEUS_WORKSPACE_ARN)] = Field(
        default=CREATE,
        description=(
            "Where metrics are stored: create, or the ARN of an Amazon Managed Service for Prometheus"
            " workspace of the account. A workspace that the stack creates is retained when the stack is"
            " deleted."
        ),
        examples=[CREATE, operators.PROMETHEUS_WORKSPACE_ARN.example],
    )
    grafana_workspace: Annotated[str, _created_or(operators.GRAFANA_WORKSPACE_ARN)] | None = Field(
        default=None,
        description=(
            "Where dashboards are shown: create, or the ARN of an Amazon Managed Grafana workspace. To create"
            " a workspace, IAM Identity Center must be enabled, because users sign in with it. A workspace"
            " that the stack creates gets data sources and dashboards, and is retained when the stack is"
            " deleted. Default: none."
        ),
        examples=[CREATE, operators.GRAFANA_WORKSPACE_ARN.example],
    )
    metrics: Metrics = Field(default_factory=Metrics, description="Level of each metric category.")
    logs: bool = Field(
        default=False,
        description="Whether the logs of all containers are sent to CloudWatch Logs, which costs money.",
    )


class Spaces(Section):
    """SageMaker Spaces on HyperPod: JupyterLab and Code Editor in pods."""

    enabled: bool = Field(
        default=False,
        description="Whether to install the add-on and what it needs: cert-manager and the EBS CSI driver.",
    )
    remote_access: bool = Field(
        default=False,
        description=(
            "Whether a local VS Code can connect through Systems Manager. This changes the account's Systems"
            " Manager to the advanced tier, which is billed for each connected space."
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
        """Whether an enabled operator needs cert-manager."""
        return self.training.enabled or self.inference.enabled or self.spaces.enabled
