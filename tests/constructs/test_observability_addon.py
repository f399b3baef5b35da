"""The HyperPod observability add-on and its workspaces."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from hyperpod_cdk.catalog import operators
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
            {"metrics": {"gpus": "basic"}},
            f'metrics: must be categories of {", ".join(operators.METRICS)}, got "gpus"; remove it',
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
