"""AWS::APS::Workspace and AWS::Grafana::Workspace."""

from __future__ import annotations

import json
from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    ignoring,
    is_true,
    retag,
    tag_map,
)
from hyperpod_cdk_rehearsal.embedded.resources._waiting import wait_until_gone, wait_while
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

NOT_FOUND = "ResourceNotFoundException"

GRAFANA_MEMBERS = {
    "Name": "workspaceName",
    "Description": "workspaceDescription",
    "DataSources": "workspaceDataSources",
    "RoleArn": "workspaceRoleArn",
    "PermissionType": "permissionType",
    "AccountAccessType": "accountAccessType",
}
"""Properties that both create and update take, by the API's names."""


@handles("AWS::APS::Workspace")
class PrometheusWorkspaceHandler(ResourceHandler):
    """A workspace of managed Prometheus. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Make the workspace and wait until it is ACTIVE."""
        properties = request.properties
        arguments = {
            "alias": properties.get("Alias"),
            "kmsKeyArn": properties.get("KmsKeyArn"),
            "tags": tag_map(properties.get("Tags")) or None,
        }
        return self._settled(request, call(_amp(request), "create_workspace", arguments)["workspaceId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change alias and tags in place."""
        workspace_id, amp = _workspace_id(request), _amp(request)
        if changed(request, "Alias"):
            amp.update_workspace_alias(workspaceId=workspace_id, alias=request.properties.get("Alias", ""))
        retag(
            request,
            add=lambda tags: amp.tag_resource(resourceArn=request.existing_id, tags=tags),
            remove=lambda keys: amp.untag_resource(resourceArn=request.existing_id, tagKeys=keys),
        )
        return self._settled(request, workspace_id)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the workspace with its metrics."""
        with ignoring(NOT_FOUND):
            _amp(request).delete_workspace(workspaceId=_workspace_id(request))

    @staticmethod
    def _settled(request: ResourceRequest, workspace_id: str) -> ResourceResult:
        found = wait_while(
            request.context,
            lambda: dict(_amp(request).describe_workspace(workspaceId=workspace_id)["workspace"]),
            lambda workspace: str(workspace["status"]["statusCode"]),
            "CREATING",
            "UPDATING",
        )
        return ResourceResult(
            found["arn"],
            {"Arn": found["arn"], "WorkspaceId": workspace_id, "PrometheusEndpoint": found["prometheusEndpoint"]},
        )


@handles("AWS::Grafana::Workspace")
class GrafanaWorkspaceHandler(ResourceHandler):
    """A workspace of managed Grafana. `Ref` is its ID."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Make the workspace and wait until it is ACTIVE."""
        properties = request.properties
        arguments = {
            **{member: properties.get(name) for name, member in GRAFANA_MEMBERS.items()},
            "authenticationProviders": as_list(properties.get("AuthenticationProviders")),
            "grafanaVersion": properties.get("GrafanaVersion"),
            "configuration": _configuration(properties) if "PluginAdminEnabled" in properties else None,
            "tags": tag_map(properties.get("Tags")) or None,
        }
        made = call(_grafana(request), "create_workspace", arguments)["workspace"]
        return self._settled(request, made["id"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change the workspace in place."""
        workspace_id, grafana = request.existing_id, _grafana(request)
        if changed(request, *GRAFANA_MEMBERS):
            arguments = {member: request.properties.get(name) for name, member in GRAFANA_MEMBERS.items()}
            call(grafana, "update_workspace", {"workspaceId": workspace_id, **arguments})
        if changed(request, "PluginAdminEnabled"):
            grafana.update_workspace_configuration(
                workspaceId=workspace_id, configuration=_configuration(request.properties)
            )
        arn = request.context.arn("grafana", f"/workspaces/{workspace_id}")
        retag(
            request,
            add=lambda tags: grafana.tag_resource(resourceArn=arn, tags=tags),
            remove=lambda keys: grafana.untag_resource(resourceArn=arn, tagKeys=keys),
        )
        return self._settled(request, workspace_id)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the workspace and wait until it is gone."""
        workspace_id = request.existing_id
        with ignoring(NOT_FOUND):
            _grafana(request).delete_workspace(workspaceId=workspace_id)
        wait_until_gone(
            request.context, lambda: _grafana(request).describe_workspace(workspaceId=workspace_id), NOT_FOUND
        )

    @staticmethod
    def _settled(request: ResourceRequest, workspace_id: str) -> ResourceResult:
        found = wait_while(
            request.context,
            lambda: dict(_grafana(request).describe_workspace(workspaceId=workspace_id)["workspace"]),
            lambda workspace: str(workspace["status"]),
            "CREATING",
            "UPDATING",
        )
        if found["status"] != "ACTIVE":
            raise HandlerError("NotStabilized", f"Workspace {workspace_id} is {found['status']}")
        return ResourceResult(
            workspace_id,
            {
                "Id": workspace_id,
                "Endpoint": found["endpoint"],
                "Status": found["status"],
                "GrafanaVersion": found["grafanaVersion"],
                "CreationTimestamp": found["created"].isoformat(),
                "ModificationTimestamp": found["modified"].isoformat(),
                "SsoClientId": "",
                "SamlConfigurationStatus": "NOT_CONFIGURED",
            },
        )


def _configuration(properties: dict[str, Any]) -> str:
    return json.dumps({"plugins": {"pluginAdminEnabled": is_true(properties.get("PluginAdminEnabled"))}})


def _amp(request: ResourceRequest) -> Any:
    return request.context.client("amp")


def _grafana(request: ResourceRequest) -> Any:
    return request.context.client("grafana")


def _workspace_id(request: ResourceRequest) -> str:
    return request.existing_id.rsplit("/", 1)[-1]
