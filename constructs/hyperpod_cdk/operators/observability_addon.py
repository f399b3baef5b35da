"""The HyperPod observability add-on: metrics into Amazon Managed Prometheus, dashboards in Amazon Managed Grafana."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import aws_cdk as cdk
from aws_cdk import aws_aps as aps
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_grafana as grafana
from aws_cdk import aws_iam as iam
from constructs import Construct

from hyperpod_cdk.catalog import addons, arns, operators, regions
from hyperpod_cdk.catalog.closest import closest
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.common.acknowledgments import MANAGED_POLICY, acknowledge
from hyperpod_cdk.common.stack_arns import HERE, arn_here, arn_of_aws
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.eks.node_addons import NodeAddon, PodRole, check_addon


@judged()
class PrometheusWorkspace(Construct):
    """An Amazon Managed Service for Prometheus workspace, which is retained with its metrics when the stack is deleted.

    ``alias`` (str): alias of the workspace. Raises ValueError unless it is 1 to 100 characters.
    """

    def __init__(self, scope: Construct, construct_id: str, *, alias: str) -> None:
        super().__init__(scope, construct_id)
        refuse_unlike(operators.PROMETHEUS_WORKSPACE_ALIAS, alias=alias)
        workspace = aps.CfnWorkspace(self, "Resource", alias=alias)
        workspace.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        self.arn: str = workspace.attr_arn
        self.endpoint: str = _address(HERE.region, workspace.attr_workspace_id)


@judged()
class GrafanaWorkspace(Construct):
    """An Amazon Managed Grafana workspace with a role that reads Prometheus and CloudWatch; both are retained.

    Users sign in through IAM Identity Center, which must be enabled in the organization or account, and get access in
    the console. It is empty at first; ``GrafanaDashboards`` puts data sources and dashboards into it.

    ``name`` (str): name of the workspace. Raises ValueError unless it is 1 to 255 letters, digits, ``-``, ``.``, ``_``
    and ``~``.
    """

    def __init__(self, scope: Construct, construct_id: str, *, name: str) -> None:
        super().__init__(scope, construct_id)
        refuse_unlike(operators.GRAFANA_WORKSPACE_NAME, name=name)
        role = iam.CfnRole(
            self,
            "Role",
            description="Amazon Managed Grafana, dashboards of HyperPod",
            assume_role_policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "grafana.amazonaws.com"},
                        "Action": "sts:AssumeRole",
                        "Condition": {"StringEquals": {"aws:SourceAccount": HERE.account}},
                    }
                ],
            },
            managed_policy_arns=[arn_of_aws("iam", f"policy/{policy}") for policy in operators.GRAFANA_POLICIES],
        )
        reading = "AWS's own policies for these data sources of Grafana, which only read"
        acknowledge(role, {MANAGED_POLICY.format(policy): reading for policy in operators.GRAFANA_POLICIES})
        workspace = grafana.CfnWorkspace(
            self,
            "Resource",
            name=name,
            description="Dashboards of the HyperPod observability add-on",
            account_access_type="CURRENT_ACCOUNT",
            authentication_providers=["AWS_SSO"],
            permission_type="CUSTOMER_MANAGED",
            role_arn=role.attr_arn,
            data_sources=["PROMETHEUS", "CLOUDWATCH"],
            plugin_admin_enabled=True,
        )
        for kept in (role, workspace):
            kept.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        self.name: str = name
        self.url: str = f"https://{workspace.attr_endpoint}"
        self.arn: str = arn_here("grafana", f"/workspaces/{workspace.attr_id}")


@judged()
class ObservabilityAddon(Construct):
    """The HyperPod observability add-on, which sends metrics of nodes, accelerators and jobs to Prometheus.

    ``prometheus_workspace_arn`` names the workspace in the cluster's region; its endpoint is read from the ARN unless
    ``prometheus_endpoint`` is given, without the path of each API. ``grafana_workspace_arn``, and
    ``grafana_workspace_name`` if it is known, say where dashboards are. ``metrics`` maps categories (``node``,
    ``accelerated_compute``, ``training``, ...) to levels (``disabled``, ``basic``, ``advanced``); a category that is
    left out keeps the add-on's own. With ``logs``, logs of containers are sent to CloudWatch.

    The role of the collector comes before the add-on. Needs the add-on ``eks-pod-identity-agent`` and a node of the
    size ``4xlarge`` or larger.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``prometheus_workspace_arn`` (str, ARN): the workspace that gets the metrics. Raises ValueError for text that is not
    the ARN of a Prometheus workspace, and for one of another account, partition or region than the stack's.

    ``prometheus_endpoint`` (str): address of that workspace, without the path of each API. Default: read from the ARN.
    Raises ValueError for text that is not such an address.

    ``grafana_workspace_arn`` (str, ARN): the workspace with the dashboards. Default: none. Raises ValueError for text
    that is not the ARN of a Grafana workspace, and for one of another account or partition than the stack's.

    ``grafana_workspace_name`` (str): name of the workspace with the dashboards. Default: unknown. Raises ValueError for
    a name that Amazon Managed Grafana refuses.

    ``metrics`` (Mapping[str, str]): category -> level. Default: the add-on's own. Raises ValueError for a category or
    level that the add-on does not have.

    ``logs`` (bool): whether logs of containers are sent to CloudWatch. Default: no.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        prometheus_workspace_arn: str,
        prometheus_endpoint: str | None = None,
        grafana_workspace_arn: str | None = None,
        grafana_workspace_name: str | None = None,
        metrics: Mapping[str, str] | None = None,
        logs: bool = False,
        addon_version: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: check_addon(eks_cluster_name, addon_version),
            lambda: check_workspaces(self, prometheus_workspace_arn, grafana_workspace_arn),
            lambda: refuse_unlike(operators.PROMETHEUS_ENDPOINT, prometheus_endpoint=prometheus_endpoint),
            lambda: refuse_unlike(operators.GRAFANA_WORKSPACE_NAME, grafana_workspace_name=grafana_workspace_name),
            lambda: refuse_for(_level_problems(metrics or {})),
        )
        configuration: dict[str, Any] = {
            "ampWorkspace": {
                "arn": prometheus_workspace_arn,
                "prometheusEndpoint": prometheus_endpoint or workspace_endpoint(prometheus_workspace_arn),
            },
            "logging": {"enabled": logs},
        }
        levels = _levels(metrics or {})
        if levels:
            configuration["metricsProvider"] = levels
        if grafana_workspace_arn is not None:
            named = {"workspaceName": grafana_workspace_name} if grafana_workspace_name else {}
            configuration["amgWorkspace"] = {"arn": grafana_workspace_arn, **named}
        row = addons.row(addons.OBSERVABILITY)
        self.collector: PodRole = PodRole(
            self,
            "Collector",
            eks_cluster_name=eks_cluster_name,
            namespace=str(row.namespace),
            service_account=row.service_accounts[0],
            description="Collector of the HyperPod observability add-on",
            managed_policies=row.managed_policies,
            reason="AWS's own policies for writing metrics and logs, which let the collector read no other's",
        )
        addon = NodeAddon(
            self,
            "Addon",
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.OBSERVABILITY,
            addon_version=addon_version,
            configuration_values=configuration,
        )
        addon.node.add_dependency(self.collector.association)
        self.addon: eks.CfnAddon = addon.addon


def check_workspaces(scope: Construct, prometheus: str, grafana: str | None, *, is_grafana_here: bool = False) -> None:
    """Raise ValueError for an invalid workspace ARN, or one of another account, partition or region than the stack's.

    Grafana's may be in another region, unless ``is_grafana_here``.
    """
    refuse_all(
        (
            lambda: refuse_unlike(operators.PROMETHEUS_WORKSPACE_ARN, prometheus_workspace_arn=prometheus),
            lambda: refuse_for(_home_problems(scope, "prometheus_workspace_arn", prometheus, is_here=True)),
        ),
        (
            lambda: refuse_unlike(operators.GRAFANA_WORKSPACE_ARN, grafana_workspace_arn=grafana),
            lambda: refuse_for(_home_problems(scope, "grafana_workspace_arn", grafana, is_here=is_grafana_here)),
        ),
    )


def workspace_endpoint(workspace_arn: str) -> str:
    """Return the address of a workspace of Prometheus, without the path of each API."""
    if cdk.Token.is_unresolved(workspace_arn):
        region = cdk.Fn.select(3, cdk.Fn.split(":", workspace_arn))
        return _address(region, cdk.Fn.select(1, cdk.Fn.split("/", workspace_arn)))
    of = arns.arn_parts(workspace_arn)
    return _address(of.region, of.name)


def _address(region: str, workspace_id: str) -> str:
    return f"https://aps-workspaces.{region}.{cdk.Aws.URL_SUFFIX}/workspaces/{workspace_id}"


def _levels(metrics: Mapping[str, str]) -> dict[str, Any]:
    return {
        operators.METRICS[name].key: {
            "level": level.upper(),
            "scrapeInterval": operators.SCRAPE_INTERVAL_SECONDS,
        }
        for name, level in metrics.items()
    }


def _level_problems(metrics: Mapping[str, str]) -> Iterator[str]:
    for name, level in metrics.items():
        category = operators.METRICS.get(name)
        if category is None:
            near = closest(name, operators.METRICS)
            fix = f"did you mean {near}?" if near else "remove it"
            yield f'metrics: must be categories of {", ".join(operators.METRICS)}, got "{name}"; {fix}'
        elif level not in category.levels:
            allowed = joined(category.levels, last="or")
            yield f'metrics[{name!r}]: must be {allowed}, got "{level}"; set one of these'


def _home_problems(
    scope: Construct,
    key: Literal["prometheus_workspace_arn", "grafana_workspace_arn"],
    arn: str | None,
    *,
    is_here: bool,
) -> Iterator[str]:
    stack = cdk.Stack.of(scope)
    partition = None if is_token(stack.region) else regions.partition_of(stack.region)
    if arn is None or is_token(arn) or partition is None or is_token(stack.account):
        return
    is_prometheus = key == "prometheus_workspace_arn"
    otherwise = f"make one with {'PrometheusWorkspace' if is_prometheus else 'GrafanaWorkspace'}"
    problem = arns.workspace_home_problem(arn, partition=partition, account=stack.account, otherwise=otherwise)
    if problem is None and is_here:
        why = {} if is_prometheus else {"why": "which the function asks"}
        problem = arns.workspace_region_problem(arn, region=stack.region, otherwise=otherwise, **why)
    if problem:
        yield f"{key}: {problem}"
