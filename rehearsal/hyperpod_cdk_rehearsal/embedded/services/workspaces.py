"""Workspaces of Amazon Managed Grafana, and those of Prometheus that the account file names; moto makes the others."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hyperpod_cdk_rehearsal.embedded import grafana_api
from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.services.principals import can_be_assumed_by
from hyperpod_cdk_rehearsal.embedded.services.timeline import GONE, Timeline, page

CREATE_SECONDS = 0.4
UPDATE_SECONDS = 0.2
DELETE_SECONDS = 0.2

GRAFANA = "grafana.amazonaws.com"
DEFAULT_VERSION = "13.2"
"""Stands for the version that Grafana gives where none is asked for: its newest (API reference, CreateWorkspace). The
user guide has 13.x; 13.2 was seen by a third party."""

DEFAULT_CONFIGURATION = '{"unifiedAlerting":{"enabled":false},"plugins":{"pluginAdminEnabled":false}}'
"""Stands for what a workspace is made with where no settings are asked for; which they are was not read."""


@dataclass
class GrafanaRecord:
    """One workspace; ``view`` is what DescribeWorkspace answers apart from its status.

    ``accounts`` are its service accounts by their IDs, ``configuration`` is its settings, as JSON.
    """

    view: dict[str, Any]
    timeline: Timeline
    modified: datetime
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    configuration: str = DEFAULT_CONFIGURATION


@dataclass
class GrafanaStore:
    """The workspaces by their IDs."""

    workspaces: dict[str, GrafanaRecord] = field(default_factory=dict)


@operation("amp", "DescribeWorkspace")
def describe_prometheus_workspace(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A workspace that stood before; one that was made since is moto's."""
    workspace_id = request["workspaceId"]
    for arn, status in account_of(context).existing.workspaces.items():
        if arn.endswith(f":workspace/{workspace_id}"):
            region = arn.split(":")[3]
            address = f"https://aps-workspaces.{region}.{context.url_suffix}/workspaces/{workspace_id}/"
            return {
                "workspace": {
                    "workspaceId": workspace_id,
                    "arn": arn,
                    "status": {"statusCode": status},
                    "prometheusEndpoint": address,
                    "createdAt": context.clock.now(),
                }
            }
    raise PassToMoto


@operation("grafana", "CreateWorkspace")
def create_workspace(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to make a workspace."""
    role = request.get("workspaceRoleArn")
    if request["permissionType"] == "CUSTOMER_MANAGED" and not role:
        raise ServiceError("ValidationException", "workspaceRoleArn is required with CUSTOMER_MANAGED permissions.")
    _check_role(context, role)
    now, workspace_id = context.clock.now(), f"g-{uuid.uuid4().hex[:10]}"
    view = {
        "id": workspace_id,
        "name": request.get("workspaceName") or workspace_id,
        "accountAccessType": request["accountAccessType"],
        "permissionType": request["permissionType"],
        "dataSources": list(request.get("workspaceDataSources") or []),
        "description": request.get("workspaceDescription") or "",
        "endpoint": f"{grafana_api.running(context).address}/{workspace_id}",
        "grafanaVersion": request.get("grafanaVersion") or DEFAULT_VERSION,
        "authentication": {"providers": list(request["authenticationProviders"])},
        "created": now,
        "tags": dict(request.get("tags") or {}),
        **({"workspaceRoleArn": role} if role else {}),
    }
    timeline = Timeline.begin(context.clock, "CREATING", (CREATE_SECONDS, "ACTIVE"))
    record = GrafanaRecord(view=view, timeline=timeline, modified=now)
    if request.get("configuration"):
        record.configuration = request["configuration"]
    with context.state.lock:
        context.state.store(GrafanaStore).workspaces[workspace_id] = record
    return {"workspace": _view(context, record)}


@operation("grafana", "DescribeWorkspace")
def describe_workspace(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A workspace."""
    for arn, status in account_of(context).existing.workspaces.items():
        if arn.endswith(f":/workspaces/{request['workspaceId']}"):
            return {"workspace": _stood_before(context, arn, status)}
    return {"workspace": _view(context, _find(context, request["workspaceId"]))}


@operation("grafana", "ListWorkspaces")
def list_workspaces(context: Context, _request: dict[str, Any]) -> dict[str, Any]:
    """The workspaces, with those that stood in the account before."""
    now, store = context.clock.now(), context.state.store(GrafanaStore)
    standing = [record for record in store.workspaces.values() if record.timeline.at(now) != GONE]
    before = [
        _stood_before(context, arn, status)
        for arn, status in account_of(context).existing.workspaces.items()
        if ":grafana:" in arn
    ]
    views = [*before, *(_view(context, record) for record in standing)]
    return {"workspaces": views}


@operation("grafana", "UpdateWorkspace")
def update_workspace(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to change a workspace."""
    record = _find(context, request["workspaceId"])
    _check_role(context, request.get("workspaceRoleArn"))
    members = {
        "workspaceName": "name",
        "workspaceDescription": "description",
        "workspaceDataSources": "dataSources",
        "workspaceRoleArn": "workspaceRoleArn",
        "permissionType": "permissionType",
        "accountAccessType": "accountAccessType",
    }
    with context.state.lock:
        record.view.update({members[name]: request[name] for name in members if name in request})
        record.modified = context.clock.now()
        record.timeline = Timeline.begin(context.clock, "UPDATING", (UPDATE_SECONDS, "ACTIVE"))
    return {"workspace": _view(context, record)}


@operation("grafana", "DescribeWorkspaceConfiguration")
def describe_configuration(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The settings of a workspace, a text of their own."""
    record = _find(context, request["workspaceId"])
    return {"configuration": record.configuration, "grafanaVersion": record.view["grafanaVersion"]}


@operation("grafana", "UpdateWorkspaceConfiguration")
def update_configuration(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Replace the settings of a workspace."""
    record = _find(context, request["workspaceId"])
    with context.state.lock:
        record.configuration = request["configuration"]
    return {}


@operation("grafana", "DeleteWorkspace")
def delete_workspace(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to delete a workspace."""
    record = _find(context, request["workspaceId"])
    with context.state.lock:
        record.timeline = Timeline.begin(context.clock, "DELETING", (DELETE_SECONDS, GONE))
    return {"workspace": _view(context, record)}


@operation("grafana", "TagResource")
def tag_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Set tags of a workspace."""
    record = _find(context, request["resourceArn"].rsplit("/", 1)[-1])
    with context.state.lock:
        record.view["tags"].update(request["tags"])
    return {}


@operation("grafana", "UntagResource")
def untag_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Remove tags of a workspace."""
    record = _find(context, request["resourceArn"].rsplit("/", 1)[-1])
    with context.state.lock:
        for key in request["tagKeys"]:
            record.view["tags"].pop(key, None)
    return {}


@operation("grafana", "CreateWorkspaceServiceAccount")
def create_service_account(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Make a service account; its name is one of the workspace's alone."""
    record, name = _ready(context, request["workspaceId"]), request["name"]
    with context.state.lock:
        if any(each["name"] == name for each in record.accounts.values()):
            raise ServiceError("ConflictException", f"Service account {name} already exists.", 409)
        made = {"id": uuid.uuid4().hex[:8], "name": name, "grafanaRole": request["grafanaRole"], "isDisabled": "false"}
        record.accounts[made["id"]] = made
    return {**{key: made[key] for key in ("id", "name", "grafanaRole")}, "workspaceId": request["workspaceId"]}


@operation("grafana", "ListWorkspaceServiceAccounts")
def list_service_accounts(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The service accounts of a workspace."""
    record = _ready(context, request["workspaceId"])
    shown, token = page(list(record.accounts.values()), request.get("nextToken"), request.get("maxResults") or 100)
    answer = {"serviceAccounts": shown, "workspaceId": request["workspaceId"]}
    return {**answer, **({"nextToken": token} if token else {})}


@operation("grafana", "CreateWorkspaceServiceAccountToken")
def create_token(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Make a token, which the workspace's HTTP API takes until it ends."""
    account, name = _account(context, request), request["name"]
    content = grafana_api.content_of(context, request["workspaceId"])
    key = f"glsa_{uuid.uuid4().hex}"
    ends = context.clock.now() + timedelta(seconds=request["secondsToLive"])
    content.tokens[key] = grafana_api.Token(account_id=account["id"], role=account["grafanaRole"], ends=ends)
    made = {"id": uuid.uuid4().hex[:8], "name": name, "key": key}
    return {"serviceAccountToken": made, "serviceAccountId": account["id"], "workspaceId": request["workspaceId"]}


@operation("grafana", "DeleteWorkspaceServiceAccount")
def delete_service_account(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a service account with its tokens."""
    account = _account(context, request)
    record, content = _find(context, request["workspaceId"]), grafana_api.content_of(context, request["workspaceId"])
    with context.state.lock:
        del record.accounts[account["id"]]
        for key in [key for key, token in content.tokens.items() if token.account_id == account["id"]]:
            del content.tokens[key]
    return {"serviceAccountId": account["id"], "workspaceId": request["workspaceId"]}


def _account(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    record = _ready(context, request["workspaceId"])
    found = record.accounts.get(request["serviceAccountId"])
    if found is None:
        raise ServiceError("ResourceNotFoundException", f"{request['serviceAccountId']} not found.", 404)
    return found


def _ready(context: Context, workspace_id: str) -> GrafanaRecord:
    record = _find(context, workspace_id)
    status = record.timeline.at(context.clock.now())
    if status != "ACTIVE":
        raise ServiceError("ConflictException", f"Workspace {workspace_id} is {status}.", 409)
    return record


def _find(context: Context, workspace_id: str) -> GrafanaRecord:
    workspaces = context.state.store(GrafanaStore).workspaces
    record = workspaces.get(workspace_id)
    if record is None or record.timeline.at(context.clock.now()) == GONE:
        raise ServiceError("ResourceNotFoundException", f"Workspace {workspace_id} not found.", 404)
    return record


def _check_role(context: Context, role_arn: str | None) -> None:
    if role_arn and not can_be_assumed_by(context, role_arn, GRAFANA, "sts:AssumeRole"):
        raise ServiceError("ValidationException", f"The role {role_arn} does not exist or does not trust {GRAFANA}.")


def _view(context: Context, record: GrafanaRecord) -> dict[str, Any]:
    return {**record.view, "modified": record.modified, "status": record.timeline.at(context.clock.now())}


def _stood_before(context: Context, arn: str, status: str) -> dict[str, Any]:
    workspace_id, now = arn.rsplit("/", 1)[-1], context.clock.now()
    return {
        "id": workspace_id,
        "name": workspace_id,
        "dataSources": [],
        "endpoint": f"{workspace_id}.grafana-workspace.{arn.split(':')[3]}.{context.url_suffix}",
        "grafanaVersion": DEFAULT_VERSION,
        "authentication": {"providers": ["AWS_SSO"]},
        "created": now,
        "modified": now,
        "status": status,
    }
