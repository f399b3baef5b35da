"""Serve Custom::HyperPodGrafanaDashboards: data sources and dashboards in an Amazon Managed Grafana workspace.

CloudFormation has no type for either: Grafana's own HTTP API makes them, with a token of a service account of the
workspace. The account is made for the work and deleted after it; where the function is cut off in between, the token
ends by itself, and the next time deletes the account first. What is there already is set to what is wanted, by its
identifier, so that the same can be sent twice; nothing else of the workspace is touched. Deleting the resource leaves
all of it: dashboards are data. Standard library and boto3 only, both of which Lambda's Python runtimes carry.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

# relative, since in Lambda the package above has another name
from ..answering import Answer, Clients, Put, Sleep, ToldError, Turn, client, put, serve  # noqa: TID252
from . import dashboards

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

ACCOUNT = "hyperpod-cdk"
"""The name of the service account, which is ours alone: one of this name is deleted."""

TOKEN_SECONDS = 600
"""How long a token lives that nobody could delete: longer than the function runs."""

REQUEST_SECONDS = 15
PAUSES = (1.0, 2.0, 4.0, 8.0, 10.0)
"""Seconds before a request is repeated that Grafana does not take now; one more attempt follows the last."""

_FIRST_WITH_A_TYPE_OF_ITS_OWN = 12
"""The version of Amazon Managed Grafana that signs requests to Prometheus by another type of data source."""

_NOT_FOUND, _UNKNOWN, _TOO_MANY, _SERVER_ERROR = 404, 401, 429, 500
_WITH_A_BODY = range(200, 300)
_SAID = 300

Properties = Mapping[str, Any]
Ask = Callable[[str, str, str, bytes | None], tuple[int, bytes]]
"""Method, address, token and body of a request to Grafana; gives status and body of its answer."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, context, clients=client, put=put)


def handle(
    event: Mapping[str, Any],
    context: Any,
    *,
    clients: Clients,
    put: Put,
    sleep: Sleep = time.sleep,
    ask: Ask | None = None,
) -> None:
    """Handle one event with the given AWS clients, sender, sleep and way to ask Grafana."""

    def work(turn: Turn) -> Answer:
        if turn.kind != "Delete":
            fill(event["ResourceProperties"], turn, ask or asked)
        return Answer()

    serve(event, context, work, clients=clients, put=put, sleep=sleep)


def fill(properties: Properties, turn: Turn, ask: Ask) -> None:
    """Put data sources, the folder and the dashboards into the workspace."""
    grafana, workspace = turn.client("grafana"), str(properties["WorkspaceId"])
    described = grafana.describe_workspace(workspaceId=workspace)["workspace"]
    address, kind = str(described["endpoint"]), prometheus_type(str(described.get("grafanaVersion") or ""))
    for left in _accounts(grafana, workspace):
        grafana.delete_workspace_service_account(workspaceId=workspace, serviceAccountId=left)
    account = str(
        grafana.create_workspace_service_account(workspaceId=workspace, name=ACCOUNT, grafanaRole="ADMIN")["id"]
    )
    try:
        token = grafana.create_workspace_service_account_token(
            workspaceId=workspace, serviceAccountId=account, name=ACCOUNT, secondsToLive=TOKEN_SECONDS
        )["serviceAccountToken"]["key"]
        _fill(properties, kind, _Api(address, str(token), turn, ask))
    finally:
        _end(grafana, workspace, account)


def prometheus_type(grafana_version: str) -> str:
    """Return the type of data source that signs requests to Prometheus in this version, or in the newest one."""
    major = grafana_version.partition(".")[0]
    is_old = major.isdecimal() and int(major) < _FIRST_WITH_A_TYPE_OF_ITS_OWN
    return dashboards.CORE_PROMETHEUS_TYPE if is_old else dashboards.PROMETHEUS_TYPE


def data_sources(properties: Properties, prometheus_type: str) -> list[dict[str, Any]]:
    """Return the data sources as ``POST /api/datasources`` takes them; both read with the workspace's own role.

    ``ec2_iam_role`` is how Grafana stores what its form calls "Workspace IAM Role".
    """
    region = str(properties["Region"])
    own_role = {"sigV4Auth": True, "sigV4AuthType": "ec2_iam_role", "sigV4Region": region}
    return [
        {
            "name": dashboards.PROMETHEUS,
            "uid": dashboards.PROMETHEUS,
            "type": prometheus_type,
            "access": "proxy",
            "url": str(properties["PrometheusUrl"]),
            "isDefault": True,
            "jsonData": {**own_role, "httpMethod": "POST"},
        },
        {
            "name": dashboards.CLOUDWATCH,
            "uid": dashboards.CLOUDWATCH,
            "type": dashboards.CLOUDWATCH,
            "access": "proxy",
            "isDefault": False,
            "jsonData": {"authType": "ec2_iam_role", "defaultRegion": region},
        },
    ]


class _Api:
    """Grafana's HTTP API: what it refuses for now is asked again, what it refuses is told."""

    def __init__(self, address: str, token: str, turn: Turn, ask: Ask) -> None:
        self._address, self._token, self._turn, self._ask = address, token, turn, ask

    def has(self, path: str) -> bool:
        return self._call("GET", path) != _NOT_FOUND

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        if self._call(method, path, body) == _NOT_FOUND:
            raise ToldError(f"Grafana answers {method} {path} with 404, not found")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> int:
        sent = None if body is None else json.dumps(body).encode()
        for pause in (*PAUSES, None):
            try:
                status, answer = self._ask(method, f"https://{self._address}{path}", self._token, sent)
            except (OSError, http.client.HTTPException) as error:
                status, said = 0, f"{type(error).__name__}: {error}"
            else:
                said = f"{status}, {answer[:_SAID].decode(errors='replace')}"
            if status in _WITH_A_BODY or (status == _NOT_FOUND and method == "GET"):
                return status
            passes = status in {0, _UNKNOWN, _TOO_MANY} or status >= _SERVER_ERROR
            if not passes or pause is None or pause > self._turn.seconds_left():
                raise ToldError(f"Grafana at {self._address} answers {method} {path} with {said}")
            LOG.warning("in %.0f s once more: %s %s: %s", pause, method, path, said)
            self._turn.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")


def asked(method: str, url: str, token: str, body: bytes | None) -> tuple[int, bytes]:
    """Ask Grafana over HTTPS."""
    host, _, path = url.removeprefix("https://").partition("/")
    connection = http.client.HTTPSConnection(host, timeout=REQUEST_SECONDS, context=ssl.create_default_context())
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "Content-Type": "application/json"}
    try:
        connection.request(method, f"/{path}", body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _fill(properties: Properties, prometheus_type: str, api: _Api) -> None:
    for source in data_sources(properties, prometheus_type):
        path = f"/api/datasources/uid/{quote(source['uid'])}"
        if api.has(path):
            api.send("PUT", path, source)
        else:
            api.send("POST", "/api/datasources", source)
    folder = f"/api/folders/{dashboards.FOLDER}"
    if not api.has(folder):
        api.send("POST", "/api/folders", {"uid": dashboards.FOLDER, "title": dashboards.FOLDER_TITLE})
    for model in dashboards.models(str(properties["ClusterName"]), prometheus_type=prometheus_type):
        api.send(
            "POST",
            "/api/dashboards/db",
            {
                "dashboard": model,
                "folderUid": dashboards.FOLDER,
                # Grafana keeps the versions before: what somebody changed is found in the dashboard's history
                "overwrite": True,
                "message": "written by hyperpod-cdk",
            },
        )
        LOG.info("%s is there", model["uid"])


def _accounts(grafana: Any, workspace: str) -> list[str]:
    found, page = [], ""
    while True:
        answer = grafana.list_workspace_service_accounts(workspaceId=workspace, **({"nextToken": page} if page else {}))
        found += [str(each["id"]) for each in answer["serviceAccounts"] if each["name"] == ACCOUNT]
        page = str(answer.get("nextToken") or "")
        if not page:
            return found


def _end(grafana: Any, workspace: str, account: str) -> None:
    try:
        grafana.delete_workspace_service_account(workspaceId=workspace, serviceAccountId=account)
    except Exception:
        # what was wanted is there, or its own error is told: the token ends, and the next time deletes the account
        LOG.exception("service account %s of %s stays until the next deployment", account, workspace)
