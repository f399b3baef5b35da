"""Data sources and dashboards in an Amazon Managed Grafana workspace, created through Grafana's own API."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from hyperpod_cdk.catalog import operators
from hyperpod_cdk.common.handler_functions import handler_function, handler_role
from hyperpod_cdk.common.stack_arns import HERE
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_unlike
from hyperpod_cdk.config.hyperpod import HyperPod
from hyperpod_cdk.handlers.grafana import dashboards
from hyperpod_cdk.operators.observability_addon import check_workspaces, workspace_endpoint

_TIMEOUT_SECONDS = 300
_ANSWER_SECONDS = 1200  # the first run, Lambda's two retries and the pauses between them


@judged()
class GrafanaDashboards(Construct):
    """Data sources and dashboards of a HyperPod cluster in an Amazon Managed Grafana workspace.

    CloudFormation has no type for them, so a function calls Grafana's HTTP API, with a service account that it creates
    for this and deletes afterwards. The data sources ``prometheus`` and ``cloudwatch`` read with the workspace's own
    role; the dashboards of the folder ``HyperPod`` (nodes, EFA, jobs, teams, Lustre, inference) cannot be edited,
    because the next version of the library writes them again: "Save as" creates a copy. Other content of the workspace
    is not changed, and deleting the construct leaves everything. The workspace must be reachable from the internet, as
    one without network access control is, and run Grafana 9 or later, which has service accounts.

    ``cluster_name`` (str): name of the HyperPod cluster that the dashboards show at first. Raises ValueError for a name
    that HyperPod refuses.

    ``grafana_workspace_arn`` (str, ARN): the workspace for data sources and dashboards. Raises ValueError for text that
    is not the ARN of a Grafana workspace, and for one of another account, partition or region than the stack's.

    ``prometheus_workspace_arn`` (str, ARN): the workspace with the metrics. Raises ValueError for text that is not the
    ARN of a Prometheus workspace, and for one of another account, partition or region than the stack's.

    ``prometheus_endpoint`` (str): address of the workspace with the metrics, without the path of each API. Default:
    read from the ARN. Raises ValueError for text that is not such an address.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        grafana_workspace_arn: str,
        prometheus_workspace_arn: str,
        prometheus_endpoint: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse(HyperPod, cluster_name=cluster_name),
            lambda: refuse_unlike(operators.PROMETHEUS_ENDPOINT, prometheus_endpoint=prometheus_endpoint),
            lambda: check_workspaces(self, prometheus_workspace_arn, grafana_workspace_arn, is_grafana_here=True),
        )
        cdk.CfnResource(
            self,
            "Resource",
            type="Custom::HyperPodGrafanaDashboards",
            properties={
                "ServiceToken": self._function(grafana_workspace_arn).attr_arn,
                "ServiceTimeout": _ANSWER_SECONDS,
                "WorkspaceId": _workspace_id(grafana_workspace_arn),
                "PrometheusUrl": prometheus_endpoint or workspace_endpoint(prometheus_workspace_arn),
                "ClusterName": cluster_name,
                "Region": HERE.region,
                # the function runs again if they change
                "Dashboards": dashboards.digest(),
            },
        )

    def _function(self, workspace_arn: str) -> lambda_.CfnFunction:
        own = logs.CfnLogGroup(self, "HandlerLogs", retention_in_days=90)
        own.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        role = handler_role(
            self,
            "HandlerRole",
            description="Puts data sources and dashboards into one Grafana workspace",
            policy_name="dashboards",
            statements=[
                {"Action": list(operators.DASHBOARD_ACTIONS), "Resource": [workspace_arn]},
                {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [own.attr_arn]},
            ],
        )
        return handler_function(
            self,
            "Handler",
            description="HyperPod dashboards: data sources and dashboards of a Grafana workspace",
            serves="grafana",
            role=role,
            log_group=own,
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=256,
        )


def _workspace_id(arn: str) -> str:
    return cdk.Fn.select(2, cdk.Fn.split("/", arn)) if is_token(arn) else arn.split("/")[2]
