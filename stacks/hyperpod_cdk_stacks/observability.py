"""The observability stack: what HyperPod says about its nodes, kept, counted and shown."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from hyperpod_cdk import GrafanaWorkspace, NodeEvents, ObservabilityAddon, PrometheusWorkspace
from hyperpod_cdk.catalog import addons
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.operators import CREATE
from hyperpod_cdk_stacks.hyperpod import HyperPodStack


class ObservabilityStack(cdk.Stack):
    """Node-health events into a log group, an alarm on faults, a dashboard; the observability add-on."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        hyperpod: HyperPodStack,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        self.events = NodeEvents(
            self,
            "NodeEvents",
            cluster_name=environment.hyperpod_cluster_name,
            cluster_arn=hyperpod.cluster.cluster_arn,
        )
        if self.has_addon(environment):
            self._addon(environment)

    @staticmethod
    def has_addon(environment: Environment) -> bool:
        """Say whether the add-on is among the resources; its pods need the cluster's DNS, of the platform stack."""
        return environment.operators.observability.enabled and environment.eks.installs(addons.OBSERVABILITY)

    def _addon(self, environment: Environment) -> None:
        section, name = environment.operators.observability, environment.name
        prometheus, endpoint = section.prometheus_workspace, None
        if prometheus == CREATE:
            made = PrometheusWorkspace(self, "Prometheus", alias=f"{name}-hyperpod")
            prometheus, endpoint = made.arn, made.endpoint
        grafana, grafana_name = section.grafana_workspace, None
        if grafana == CREATE:
            workspace = GrafanaWorkspace(self, "Grafana", name=f"{name}-hyperpod")
            grafana, grafana_name = workspace.arn, workspace.name
            cdk.CfnOutput(self, "Dashboards", description="Grafana, by IAM Identity Center", value=workspace.url)
        ObservabilityAddon(
            self,
            "Addon",
            eks_cluster_name=environment.eks_cluster_name,
            prometheus_workspace_arn=prometheus,
            prometheus_endpoint=endpoint,
            grafana_workspace_arn=grafana,
            grafana_workspace_name=grafana_name,
            metrics=section.metrics.model_dump(exclude_none=True),
            logs=section.logs,
            addon_version=environment.eks.addon_versions.get(addons.OBSERVABILITY),
        )
