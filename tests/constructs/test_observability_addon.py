"""The HyperPod observability add-on and its workspaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from hyperpod_cdk.catalog import operators
from hyperpod_cdk.handlers.grafana import dashboards
from hyperpod_cdk.operators.grafana_dashboards import GrafanaDashboards
from hyperpod_cdk.operators.observability_addon import GrafanaWorkspace, ObservabilityAddon, PrometheusWorkspace

PROMETHEUS = "arn:aws:aps:us-east-1:111122223333:workspace/ws-1"
GRAFANA = "arn:aws:grafana:us-east-1:111122223333:/workspaces/g-0123456789"


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")


def addon_with(**arguments: Any) -> dict[str, Any]:
    stack = new_stack()
    ObservabilityAddon(
        stack, "Addon", **{"eks_cluster_name": "prod-eks", "prometheus_workspace_arn": PROMETHEUS, **arguments}
    )
    found = Template.from_stack(stack).to_json()["Resources"]
    (addon,) = [each for each in found.values() if each["Type"] == "AWS::EKS::Addon"]
    identities = [name for name, each in found.items() if each["Type"] == "AWS::EKS::PodIdentityAssociation"]
    return {**addon, "Associations": identities}


def configuration(addon: dict[str, Any]) -> dict[str, Any]:
    values = addon["Properties"]["ConfigurationValues"]
    parts = [values] if isinstance(values, str) else values["Fn::Join"][1]
    loaded: dict[str, Any] = json.loads("".join(part if isinstance(part, str) else part["Ref"] for part in parts))
    return loaded


def test_metrics_go_to_the_named_workspace() -> None:
    addon = addon_with()
    assert configuration(addon) == {
        "ampWorkspace": {
            "arn": PROMETHEUS,
            "prometheusEndpoint": "https://aps-workspaces.us-east-1.AWS::URLSuffix/workspaces/ws-1",
        },
        "logging": {"enabled": False},
    }
    assert addon["DependsOn"] == addon["Associations"]


def test_dashboards_logs_and_levels() -> None:
    addon = addon_with(
        grafana_workspace_arn=GRAFANA,
        grafana_workspace_name="prod",
        logs=True,
        metrics={"cluster": "advanced", "network": "disabled"},
    )
    found = configuration(addon)
    assert found["amgWorkspace"] == {"arn": GRAFANA, "workspaceName": "prod"}
    assert found["logging"] == {"enabled": True}
    assert found["metricsProvider"] == {
        "customMetrics": {"level": "ADVANCED", "scrapeInterval": 30},
        "networkMetrics": {"level": "DISABLED", "scrapeInterval": 30},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"prometheus_workspace_arn": "ws-1"},
            operators.PROMETHEUS_WORKSPACE_ARN.problem("ws-1", key="prometheus_workspace_arn"),
        ),
        (
            {"grafana_workspace_arn": "g-1"},
            operators.GRAFANA_WORKSPACE_ARN.problem("g-1", key="grafana_workspace_arn"),
        ),
        (
            {"metrics": {"disks": "basic"}},
            f'metrics: must be categories of {", ".join(operators.METRICS)}, got "disks"; remove it',
        ),
        (
            {"metrics": {"nod": "basic"}},
            f'metrics: must be categories of {", ".join(operators.METRICS)}, got "nod"; did you mean node?',
        ),
        (
            {"metrics": {"network": "basic"}},
            "metrics['network']: must be disabled or advanced, got \"basic\"; set one of these",
        ),
    ],
)
def test_what_the_addon_would_refuse(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        addon_with(**arguments)
    assert (
        str(caught.value).removeprefix("prometheus_workspace_arn: ").removeprefix("grafana_workspace_arn: ") == message
    )


def test_an_arn_that_is_not_known_yet_is_taken_apart_in_the_template() -> None:
    addon = addon_with(prometheus_workspace_arn=cdk.Fn.import_value("workspace"))
    parts = addon["Properties"]["ConfigurationValues"]["Fn::Join"][1]
    arn = {"Fn::ImportValue": "workspace"}
    assert {"Fn::Select": [3, {"Fn::Split": [":", arn]}]} in parts
    assert {"Fn::Select": [1, {"Fn::Split": ["/", arn]}]} in parts


def test_workspaces_outlive_the_stack() -> None:
    stack = new_stack()
    PrometheusWorkspace(stack, "Prometheus", alias="prod")
    workspace = GrafanaWorkspace(stack, "Grafana", name="prod")
    found = Template.from_stack(stack).to_json()["Resources"].values()
    assert {each["Type"]: each["DeletionPolicy"] for each in found} == {
        "AWS::APS::Workspace": "RetainExceptOnCreate",
        "AWS::IAM::Role": "RetainExceptOnCreate",
        "AWS::Grafana::Workspace": "RetainExceptOnCreate",
    }
    (grafana,) = [each for each in found if each["Type"] == "AWS::Grafana::Workspace"]
    assert grafana["Properties"]["AuthenticationProviders"] == ["AWS_SSO"]
    assert workspace.name == "prod"


def dashboards_with(stack: cdk.Stack | None = None, **arguments: Any) -> dict[str, Any]:
    stack = stack or new_stack()
    names = {"grafana_workspace_arn": GRAFANA, "prometheus_workspace_arn": PROMETHEUS}
    GrafanaDashboards(stack, "Dashboards", **{"cluster_name": "prod", **names, **arguments})
    found: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return found


def resource(found: dict[str, Any], kind: str) -> dict[str, Any]:
    (row,) = [each["Properties"] for each in found.values() if each["Type"] == kind]
    return dict(row)


def test_the_function_is_asked_for_one_workspace_and_may_touch_no_other() -> None:
    found = dashboards_with()
    asked = resource(found, "Custom::HyperPodGrafanaDashboards")
    assert asked.pop("ServiceToken")
    assert asked == {
        "ServiceTimeout": 1200,
        "WorkspaceId": "g-0123456789",
        "ClusterName": "prod",
        "PrometheusUrl": {
            "Fn::Join": ["", ["https://aps-workspaces.us-east-1.", {"Ref": "AWS::URLSuffix"}, "/workspaces/ws-1"]]
        },
        "Region": {"Ref": "AWS::Region"},
        "Dashboards": dashboards.digest(),
    }
    (policy,) = resource(found, "AWS::IAM::Role")["Policies"]
    grafana, _ = policy["PolicyDocument"]["Statement"]
    assert grafana == {"Effect": "Allow", "Action": list(operators.DASHBOARD_ACTIONS), "Resource": [GRAFANA]}


def test_the_function_takes_the_dashboards_along() -> None:
    stack = new_stack()
    dashboards_with(stack)
    assembly = cast("cdk.App", stack.node.root).synth()
    (manifest,) = Path(assembly.directory).glob("*.assets.json")
    (code,) = [
        each["source"]
        for each in json.loads(manifest.read_text())["files"].values()
        if each["source"]["packaging"] == "zip"
    ]
    folder = Path(assembly.directory, code["path"])
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.py")} == {
        "handlers/__init__.py",
        "handlers/answering.py",
        "handlers/grafana/__init__.py",
        "handlers/grafana/dashboards.py",
        "handlers/grafana/index.py",
    }


def test_a_workspace_that_is_made_in_the_same_stack() -> None:
    stack = new_stack()
    made, metrics = (
        GrafanaWorkspace(stack, "Grafana", name="prod"),
        PrometheusWorkspace(stack, "Prometheus", alias="prod"),
    )
    found = dashboards_with(
        stack,
        grafana_workspace_arn=made.arn,
        prometheus_workspace_arn=metrics.arn,
        prometheus_endpoint=metrics.endpoint,
    )
    asked = resource(found, "Custom::HyperPodGrafanaDashboards")
    index, parts = asked["WorkspaceId"]["Fn::Select"]
    assert (index, parts["Fn::Split"][0]) == (2, "/")
    (workspace,) = [name for name, each in found.items() if each["Type"] == "AWS::Grafana::Workspace"]
    assert {"Fn::GetAtt": [workspace, "Id"]} in parts["Fn::Split"][1]["Fn::Join"][1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"grafana_workspace_arn": "g-1"},
            f"grafana_workspace_arn: {operators.GRAFANA_WORKSPACE_ARN.problem('g-1', key='grafana_workspace_arn')}",
        ),
        (
            {"prometheus_workspace_arn": "ws-1"},
            (
                "prometheus_workspace_arn: "
                f"{operators.PROMETHEUS_WORKSPACE_ARN.problem('ws-1', key='prometheus_workspace_arn')}"
            ),
        ),
        (
            {"grafana_workspace_arn": GRAFANA.replace("us-east-1", "eu-west-1")},
            (
                "grafana_workspace_arn: must be a workspace in us-east-1, which the function asks, got"
                " arn:aws:grafana:eu-west-1:111122223333:/workspaces/g-0123456789; name one of the region, or make one"
                " with GrafanaWorkspace"
            ),
        ),
        (
            {"prometheus_workspace_arn": PROMETHEUS.replace("us-east-1", "eu-west-1")},
            (
                "prometheus_workspace_arn: must be a workspace in us-east-1, for whose endpoint the collector signs,"
                " got arn:aws:aps:eu-west-1:111122223333:workspace/ws-1; name one of the region, or make one"
                " with PrometheusWorkspace"
            ),
        ),
    ],
)
def test_workspaces_that_the_dashboards_do_not_reach(arguments: dict[str, Any], message: str) -> None:
    here = cdk.Environment(account="111122223333", region="us-east-1")
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign", env=here)
    with pytest.raises(ValueError, match="must be") as caught:
        dashboards_with(stack, **arguments)
    assert str(caught.value) == message
