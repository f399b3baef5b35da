"""The observability stack: records and shows HyperPod's events about its nodes, and alarms on faults."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from hyperpod_cdk import (
    GrafanaDashboards,
    GrafanaWorkspace,
    NodeEvents,
    Notifications,
    ObservabilityAddon,
    PrometheusWorkspace,
)
from hyperpod_cdk.catalog import addons
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.notify import Notify
from hyperpod_cdk.config.operators import CREATE
from hyperpod_cdk.config.wanted_alarms import file_systems_to_fill, types_of
from hyperpod_cdk.hyperpod.notifications import SlackChannel
from hyperpod_cdk_stacks.encryption import encryption_key
from hyperpod_cdk_stacks.hyperpod import HyperPodStack
from hyperpod_cdk_stacks.storage import StorageStack


class ObservabilityStack(cdk.Stack):
    """Node-health events in a log group, an alarm on faults, a dashboard, and the observability add-on.

    ``environment`` (Environment): the environment, as its file describes it.

    ``hyperpod`` (HyperPodStack): the stack with the HyperPod cluster.

    ``storage`` (StorageStack | None): the stack with the file systems; None if there are none.

    ``termination_protection`` (bool): whether CloudFormation refuses to delete the stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        hyperpod: HyperPodStack,
        storage: StorageStack | None,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        notify = environment.notify
        self.notifications = (
            None if notify is None else self._notifications(notify, environment, hyperpod=hyperpod, storage=storage)
        )
        errors_are_told = notify is not None and "cluster_error" in notify.events
        self.events = NodeEvents(
            self,
            "NodeEvents",
            cluster_name=environment.hyperpod_cluster_name,
            cluster_arn=hyperpod.cluster.cluster_arn,
            alarm_actions=[self.notifications.topic_arn] if self.notifications and errors_are_told else [],
        )
        if self.has_addon(environment):
            self._addon(environment)

    @staticmethod
    def has_addon(environment: Environment) -> bool:
        """Return whether ``environment`` has the add-on; its pods need the cluster's DNS from the platform stack."""
        return environment.operators.observability.enabled and environment.eks.installs(addons.OBSERVABILITY)

    def _notifications(
        self, notify: Notify, environment: Environment, *, hyperpod: HyperPodStack, storage: StorageStack | None
    ) -> Notifications:
        plans = {group.training_plan_arn for group in environment.hyperpod.all_groups}
        return Notifications(
            self,
            "Notifications",
            cluster_name=environment.hyperpod_cluster_name,
            cluster_arn=hyperpod.cluster.cluster_arn,
            environment_name=environment.name,
            emails=notify.emails,
            topic_arn=notify.sns_topic_arn,
            topic_key=encryption_key(self, environment, "notifications"),
            slack=None
            if notify.slack is None
            else SlackChannel(workspace_id=notify.slack.workspace_id, channel_id=notify.slack.channel_id),
            event_bus_arn=notify.event_bus_arn,
            monthly_budget_usd=notify.monthly_budget_usd,
            events=notify.events,
            instance_groups=[group.name for group in environment.hyperpod.all_groups],
            training_plan_arns=sorted(arn for arn in plans if arn is not None),
            instance_types=self._types(environment, is_spot=False),
            spot_instance_types=self._types(environment, is_spot=True),
            file_systems=watched_file_systems(environment, storage),
            nodes_missing_minutes=notify.nodes_missing_minutes,
            file_system_percent=notify.file_system_percent,
            storage_target_percent=notify.storage_target_percent,
            quota_percent=notify.quota_percent,
        )

    @staticmethod
    def _types(environment: Environment, *, is_spot: bool) -> list[str | InstanceType]:
        return [environment.instance_type(name) or name for name in types_of(environment, is_spot=is_spot)]

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
            GrafanaDashboards(
                self,
                "Dashboard",
                cluster_name=environment.hyperpod_cluster_name,
                grafana_workspace_arn=grafana,
                prometheus_workspace_arn=prometheus,
                prometheus_endpoint=endpoint,
            )
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


def watched_file_systems(environment: Environment, storage: StorageStack | None) -> dict[str, str]:
    """Return name and ID of the file systems with a limited capacity, if the file requests notifications about them."""
    if environment.notify is None or "file_system_full" not in environment.notify.events:
        return {}
    made = storage.lustre if storage is not None else {}
    existing = {each.name: each.existing.file_system_id for each in environment.storage.lustre if each.existing}
    return {name: existing.get(name) or made[name].file_system_id for name in file_systems_to_fill(environment)}
