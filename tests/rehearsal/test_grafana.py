"""A workspace of Grafana is filled by the Lambda, run for real, over HTTPS and with a token of the embedded AWS."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from hyperpod_cdk import GrafanaDashboards, GrafanaWorkspace, PrometheusWorkspace
from hyperpod_cdk.handlers.grafana import dashboards
from hyperpod_cdk_rehearsal.cdk_cli import CdkFailedError
from tests.support.embedded import ACCOUNT, REGION, embedded
from tests.support.in_process_cdk import Aws, InProcessCdk, read_stacks

BOOTSTRAPPED = {"bootstrap": {"version": 30}}
SOURCES = ("prometheus", "cloudwatch")


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Workspaces and dashboards in another app's stack."""
    outdir = tmp_path_factory.mktemp("theirs")
    app = cdk.App(outdir=str(outdir), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "theirs", env=cdk.Environment(account=ACCOUNT, region=REGION))
    metrics = PrometheusWorkspace(stack, "Prometheus", alias="theirs")
    GrafanaDashboards(
        stack,
        "Dashboards",
        cluster_name="theirs",
        grafana_workspace_arn=GrafanaWorkspace(stack, "Grafana", name="theirs").arn,
        prometheus_workspace_arn=metrics.arn,
    )
    app.synth()
    return outdir


class Looking:
    """Return what a workspace shows to a viewer."""

    def __init__(self, aws: Aws) -> None:
        self.grafana = aws.client("grafana")
        (self.workspace,) = self.grafana.list_workspaces()["workspaces"]
        here = {"workspaceId": self.workspace["id"]}
        assert self.grafana.list_workspace_service_accounts(**here)["serviceAccounts"] == []
        made = self.grafana.create_workspace_service_account(**here, name="looks", grafanaRole="VIEWER")
        self.account = {**here, "serviceAccountId": made["id"]}
        token = self.grafana.create_workspace_service_account_token(**self.account, name="looks", secondsToLive=60)
        self.headers = {"Authorization": f"Bearer {token['serviceAccountToken']['key']}"}

    def at(self, path: str) -> Any:
        trusting = ssl.create_default_context()
        # the certificate is one of that process; the function is given it, the test is not
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        host, _, folder = self.workspace["endpoint"].partition("/")
        connection = http.client.HTTPSConnection(host, context=trusting)
        connection.request("GET", f"/{folder}/api/{path}", headers=self.headers)
        response = connection.getresponse()
        assert response.status == 200, path
        return json.loads(response.read())

    def leave(self) -> None:
        self.grafana.delete_workspace_service_account(**self.account)


def test_a_workspace_that_is_made_is_filled_and_keeps_what_it_holds(assembly: Path, tmp_path: Path) -> None:
    with embedded(BOOTSTRAPPED, is_hurried=True) as there:
        aws = Aws(there, tmp_path / "log")
        life, stacks = InProcessCdk(aws), read_stacks(assembly)
        life.deploy(stacks, {})
        (metrics,) = aws.client("amp").list_workspaces()["workspaces"]
        address = aws.client("amp").describe_workspace(workspaceId=metrics["workspaceId"])["workspace"]
        looking = Looking(aws)
        sources = [looking.at(f"datasources/uid/{name}") for name in SOURCES]
        assert sources[0]["url"] == f"https://aps-workspaces.{REGION}.amazonaws.com/workspaces/{metrics['workspaceId']}"
        # the embedded workspace has a version of 12 or later, in which no other type signs what it asks Prometheus
        assert sources[0]["type"] == "grafana-amazonprometheus-datasource"
        assert address["prometheusEndpoint"].rstrip("/").endswith(f"/workspaces/{metrics['workspaceId']}")
        assert [each["isDefault"] for each in sources] == [True, False]
        for model in dashboards.models("theirs"):
            found = looking.at(f"dashboards/uid/{model['uid']}")
            assert found["meta"] == {"folderUid": "hyperpod-cdk", "version": 1}
            assert found["dashboard"]["panels"] == model["panels"]
        looking.leave()

        life.destroy(stacks)
        left = Looking(aws)
        assert left.at("dashboards/uid/hyperpod-cdk-nodes")["meta"]["version"] == 1
        left.leave()


def test_without_the_right_to_make_an_account_nothing_of_it_stays(assembly: Path, tmp_path: Path) -> None:
    denied = BOOTSTRAPPED | {"iam": {"denied_calls": ["grafana:CreateWorkspaceServiceAccount"]}}
    with embedded(denied, is_hurried=True) as there:
        aws = Aws(there, tmp_path / "log")
        with pytest.raises(CdkFailedError):
            InProcessCdk(aws).deploy(read_stacks(assembly), {})
        events = aws.client("cloudformation").describe_stack_events(StackName="theirs")["StackEvents"]
        (told,) = [
            each["ResourceStatusReason"]
            for each in events
            if each["ResourceType"] == "Custom::HyperPodGrafanaDashboards" and each["ResourceStatus"] == "CREATE_FAILED"
        ]
        assert "AccessDeniedException) when calling the CreateWorkspaceServiceAccount operation" in told
        assert aws.client("grafana").list_workspaces()["workspaces"] == []
