"""Add-ons for workloads: what each wants of the cluster, and workspaces of Grafana."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded import loopback_tls
from hyperpod_cdk_rehearsal.embedded.published import addons

POD_TRUST = ["sts:AssumeRole", "sts:TagSession"]
NEEDED = ("cert-manager", "metrics-server", "aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver")
LARGE = "ml.m5.4xlarge"


def install(world: Any, name: str, **members: Any) -> dict[str, Any]:
    world.client("eks").create_addon(clusterName="prod-eks", addonName=name, **members)
    world.settle()
    found: dict[str, Any] = world.client("eks").describe_addon(clusterName="prod-eks", addonName=name)["addon"]
    return found


def said(addon: dict[str, Any]) -> tuple[str, str]:
    return addon["status"], " ".join(issue["message"] for issue in addon["health"]["issues"])


def associate(world: Any, name: str) -> None:
    row = addons.row(name)
    for account in row.service_accounts:
        role = world.role(account, "pods.eks.amazonaws.com", trust=POD_TRUST)
        world.client("eks").create_pod_identity_association(
            clusterName="prod-eks", namespace=row.namespace, serviceAccount=account, roleArn=role
        )


def large_node(world: Any) -> None:
    granted = world.context.account_file.document["quotas"]
    world.account_file(quotas={**granted, "sagemaker": {**granted["sagemaker"], f"{LARGE} for cluster usage": 1}})
    world.make_hyperpod(world.group(instance_type=LARGE))


class TestInference:
    def role(self, world: Any, name: str, subject: str, *, provider: bool = True) -> str:
        """A role that service accounts take by web identity of the cluster's issuer."""
        iam = world.client("iam")
        issuer = world.client("eks").describe_cluster(name="prod-eks")["cluster"]["identity"]["oidc"]["issuer"]
        short = issuer.removeprefix("https://")
        known = [each["Arn"] for each in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]]
        if provider and not known:
            iam.create_open_id_connect_provider(Url=issuer, ClientIDList=["sts.amazonaws.com"])
        statement = {
            "Effect": "Allow",
            "Principal": {"Federated": f"arn:aws:iam::{world.context.account}:oidc-provider/{short}"},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {"StringLike": {f"{short}:sub": f"system:serviceaccount:{subject}"}},
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        made: str = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        return made

    def ready(self, world: Any, *, without: str = "", provider: bool = True, **changes: Any) -> tuple[str, str]:
        large_node(world)
        install(world, "eks-pod-identity-agent")
        for name in NEEDED:
            if name != without:
                install(world, name)
        values = {
            "executionRoleArn": self.role(
                world, "SageMakerHyperPodInference-prod", addons.INFERENCE_ACCOUNTS["operator"], provider=provider
            ),
            "tlsCertificateS3Bucket": "hyperpod-tls-prod",
            "alb": {"enabled": False},
            "keda": {"enabled": False},
            **changes,
        }
        kept = {key: value for key, value in values.items() if value is not None}
        return said(install(world, addons.INFERENCE, configurationValues=json.dumps(kept)))

    def test_with_everything_it_needs(self, world: Any) -> None:
        assert self.ready(world) == ("ACTIVE", "")

    @pytest.mark.parametrize("missing", NEEDED)
    def test_another_addon_is_missing(self, world: Any, missing: str) -> None:
        assert self.ready(world, without=missing) == (
            "CREATE_FAILED",
            f"The add-on {missing} is required, it is not installed.",
        )

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"tlsCertificateS3Bucket": None}, "tlsCertificateS3Bucket must be set."),
            (
                {"executionRoleArn": "arn:aws:iam::111122223333:role/inference"},
                "executionRoleArn must have a role name with prefix 'SageMakerHyperPodInference'",
            ),
        ],
    )
    def test_a_configuration_that_it_does_not_take(self, world: Any, changes: dict[str, Any], message: str) -> None:
        assert self.ready(world, **changes) == ("CREATE_FAILED", message)

    def test_iam_does_not_know_the_issuer(self, world: Any) -> None:
        status, message = self.ready(world, provider=False)
        assert status == "CREATE_FAILED"
        account = "hyperpod-inference-system/hyperpod-inference-controller-manager"
        assert message.startswith(f"The service account {account} may not assume the role ")

    def test_a_controller_without_a_role(self, world: Any) -> None:
        status, message = self.ready(world, alb={"enabled": True})
        assert status == "CREATE_FAILED"
        assert "aws-load-balancer-controller may not assume the role that is not set" in message


class TestObservability:
    def test_it_works_on_a_large_node(self, world: Any) -> None:
        large_node(world)
        install(world, "eks-pod-identity-agent")
        associate(world, addons.OBSERVABILITY)
        assert said(install(world, addons.OBSERVABILITY)) == ("ACTIVE", "")

    def test_it_finds_no_room_on_a_small_node(self, world: Any) -> None:
        world.make_hyperpod(world.group(instance_type="ml.m5.2xlarge"))
        install(world, "eks-pod-identity-agent")
        associate(world, addons.OBSERVABILITY)
        assert said(install(world, addons.OBSERVABILITY))[0] == "DEGRADED"

    def test_its_collector_has_no_rights(self, world: Any) -> None:
        large_node(world)
        install(world, "eks-pod-identity-agent")
        account = "hyperpod-observability/hyperpod-observability-operator-otel-collector"
        message = f"The service account {account} has no pod identity association."
        assert said(install(world, addons.OBSERVABILITY)) == ("DEGRADED", message)


class TestGrafana:
    def test_a_life(self, world: Any, refusal: Any) -> None:
        grafana = world.client("grafana")
        role = world.role("grafana", "grafana.amazonaws.com")
        asked = {"accountAccessType": "CURRENT_ACCOUNT", "permissionType": "CUSTOMER_MANAGED"}
        made = grafana.create_workspace(**asked, authenticationProviders=["AWS_SSO"], workspaceRoleArn=role)
        workspace_id = made["workspace"]["id"]
        assert made["workspace"]["status"] == "CREATING"
        world.settle()
        grafana.update_workspace(workspaceId=workspace_id, workspaceName="dashboards")
        settings = '{"plugins": {"pluginAdminEnabled": true}}'
        grafana.update_workspace_configuration(workspaceId=workspace_id, configuration=settings)
        assert grafana.describe_workspace_configuration(workspaceId=workspace_id)["configuration"] == settings
        world.settle()
        found = grafana.describe_workspace(workspaceId=workspace_id)["workspace"]
        assert (found["status"], found["name"]) == ("ACTIVE", "dashboards")
        grafana.delete_workspace(workspaceId=workspace_id)
        world.settle()
        assert refusal(grafana.describe_workspace, workspaceId=workspace_id) == (
            "ResourceNotFoundException",
            f"Workspace {workspace_id} not found.",
        )

    def test_service_accounts_and_what_their_tokens_may_do(self, world: Any, refusal: Any) -> None:
        grafana = world.client("grafana")
        asked = {"accountAccessType": "CURRENT_ACCOUNT", "permissionType": "SERVICE_MANAGED"}
        made = grafana.create_workspace(**asked, authenticationProviders=["AWS_SSO"])["workspace"]
        here = {"workspaceId": made["id"]}
        code, message = refusal(grafana.create_workspace_service_account, **here, name="us", grafanaRole="ADMIN")
        assert (code, message) == ("ConflictException", f"Workspace {made['id']} is CREATING.")
        world.settle()

        def key_of(role: str) -> str:
            account = grafana.create_workspace_service_account(**here, name=role, grafanaRole=role)["id"]
            whose = {**here, "serviceAccountId": account}
            token = grafana.create_workspace_service_account_token(**whose, name="t", secondsToLive=60)
            return str(token["serviceAccountToken"]["key"])

        admin, viewer = key_of("ADMIN"), key_of("VIEWER")
        code, message = refusal(grafana.create_workspace_service_account, **here, name="ADMIN", grafanaRole="ADMIN")
        assert (code, message) == ("ConflictException", "Service account ADMIN already exists.")

        trusted = ssl.create_default_context(cadata=loopback_tls.certificate()[0])

        def ask(method: str, path: str, key: str, body: Any = None) -> tuple[int, Any]:
            host, _, folder = made["endpoint"].partition("/")
            connection = http.client.HTTPSConnection(host, context=trusted)
            sent = None if body is None else json.dumps(body)
            connection.request(method, f"/{folder}/api/{path}", body=sent, headers={"Authorization": f"Bearer {key}"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())

        source = {"name": "p", "uid": "p", "type": "prometheus", "access": "proxy", "isDefault": True}
        saved = {"dashboard": {"uid": "d", "title": "D"}, "folderUid": "f"}
        for method, path, key, body, status in (
            ("GET", "datasources/uid/p", "glsa_none", None, 401),
            ("GET", "datasources/uid/p", viewer, None, 404),
            ("POST", "datasources", viewer, source, 403),
            ("POST", "datasources", admin, {"name": "p"}, 400),
            ("POST", "datasources", admin, source, 200),
            ("POST", "datasources", admin, source, 409),
            ("POST", "datasources", admin, source | {"name": "q"}, 409),
            ("PUT", "datasources/uid/p", admin, source | {"url": "https://one"}, 200),
            ("PUT", "datasources/uid/q", admin, source, 404),
            ("GET", "datasources/uid/p", viewer, None, 200),
            ("POST", "dashboards/db", admin, saved, 400),
            ("POST", "folders", admin, {"uid": "f"}, 400),
            ("POST", "folders", admin, {"uid": "f", "title": "F"}, 200),
            ("POST", "folders", admin, {"uid": "f", "title": "F"}, 412),
            ("GET", "folders/f", viewer, None, 200),
            ("POST", "dashboards/db", admin, {"dashboard": {"uid": "d"}}, 400),
            ("POST", "dashboards/db", admin, saved | {"dashboard": {"uid": "d" * 41, "title": "D"}}, 400),
            ("POST", "dashboards/db", admin, saved, 200),
            ("POST", "dashboards/db", admin, saved, 412),
            ("POST", "dashboards/db", admin, saved | {"overwrite": True}, 200),
            ("DELETE", "dashboards/uid/d", admin, None, 404),
        ):
            assert ask(method, path, key, body)[0] == status, (method, path, body)
        assert ask("GET", "dashboards/uid/d", viewer)[1]["meta"] == {"folderUid": "f", "version": 2}
        for account in grafana.list_workspace_service_accounts(**here)["serviceAccounts"]:
            grafana.delete_workspace_service_account(**here, serviceAccountId=account["id"])
        assert ask("GET", "datasources/uid/p", admin)[0] == 401

    def test_a_role_that_does_not_trust_it(self, world: Any, refusal: Any) -> None:
        role = world.role("other", "ec2.amazonaws.com")
        code, message = refusal(
            world.client("grafana").create_workspace,
            accountAccessType="CURRENT_ACCOUNT",
            permissionType="CUSTOMER_MANAGED",
            authenticationProviders=["AWS_SSO"],
            workspaceRoleArn=role,
        )
        assert code == "ValidationException"
        assert message == f"The role {role} does not exist or does not trust grafana.amazonaws.com."

    def test_workspaces_that_stood_before(self, world: Any) -> None:
        arns = {
            "arn:aws:aps:us-east-1:111122223333:workspace/ws-1": "DELETING",
            "arn:aws:grafana:us-east-1:111122223333:/workspaces/g-0123456789": "ACTIVE",
        }
        world.account_file(existing={"workspaces": arns})
        prometheus = world.client("amp").describe_workspace(workspaceId="ws-1")["workspace"]
        assert prometheus["status"] == {"statusCode": "DELETING"}
        assert world.client("grafana").describe_workspace(workspaceId="g-0123456789")["workspace"]["status"] == "ACTIVE"
