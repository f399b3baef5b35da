"""The Lambda of Custom::HyperPodGrafanaDashboards, against a workspace that the test plays; and what it puts there."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk.handlers.grafana import dashboards, index

HOST = "g-0123456789.grafana-workspace.us-east-1.amazonaws.com"
PROPERTIES = {
    "WorkspaceId": "g-0123456789",
    "ClusterName": "prod",
    "PrometheusUrl": "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1",
    "Region": "us-east-1",
    "Dashboards": "0123",
}
STACK = "arn:aws:cloudformation:us-east-1:111122223333:stack/prod-observability/0a1b2c3d-guid"
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
FILLED = [f"/api/dashboards/db {each.uid}" for each in dashboards.DASHBOARDS]


@dataclass
class Workspace:
    """Service accounts by ID; what was sent to Grafana; ``statuses`` are those of the next answers."""

    accounts: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)
    sent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    statuses: list[int | Exception] = field(default_factory=list)
    faults: dict[str, Exception] = field(default_factory=dict)
    slept: float = 0
    page_size: int = 1
    version: str = "12.4"

    def describe_workspace(self, **_: str) -> dict[str, Any]:
        return {"workspace": {"endpoint": HOST, "grafanaVersion": self.version}}

    def list_workspace_service_accounts(self, *, nextToken: str = "0", **_: str) -> dict[str, Any]:  # noqa: N803 - boto3's own
        rows = [{"id": key, "name": name} for key, name in self.accounts.items()]
        start = int(nextToken)
        end = start + self.page_size
        return {"serviceAccounts": rows[start:end], **({"nextToken": str(end)} if end < len(rows) else {})}

    def create_workspace_service_account(self, *, name: str, grafanaRole: str, **_: str) -> dict[str, str]:  # noqa: N803 - boto3's own
        assert grafanaRole == "ADMIN"
        if name in self.accounts.values():
            raise refused("ConflictException")
        self._fault("create")
        key = f"sa-{len(self.accounts)}"
        self.accounts[key] = name
        return {"id": key}

    def create_workspace_service_account_token(
        self,
        *,
        serviceAccountId: str,  # noqa: N803 - boto3's own
        secondsToLive: int,  # noqa: N803 - boto3's own
        **_: str,
    ) -> dict[str, Any]:
        assert secondsToLive == 600
        self._fault("token")
        self.tokens["secret"] = serviceAccountId
        return {"serviceAccountToken": {"key": "secret"}}

    def delete_workspace_service_account(self, *, serviceAccountId: str, **_: str) -> None:  # noqa: N803 - boto3's own
        self._fault("delete")
        del self.accounts[serviceAccountId]
        self.tokens = {key: whose for key, whose in self.tokens.items() if whose != serviceAccountId}

    def ask(self, method: str, url: str, token: str, body: bytes | None) -> tuple[int, bytes]:
        if self.statuses:
            status = self.statuses.pop(0)
            if isinstance(status, Exception):
                raise status
            return status, b'{"message": "told by the test"}'
        assert token in self.tokens
        path = url.removeprefix(f"https://{HOST}")
        if method == "GET":
            return (200 if path in self.there else 404), b"{}"
        sent = json.loads(body or b"{}")
        self.sent.append((method, path, sent))
        return 200, b"{}"

    def _fault(self, operation: str) -> None:
        if operation in self.faults:
            raise self.faults[operation]


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "told by the test"}}, "Any")


class Context:
    """Lambda's context, with time."""

    def __init__(self, seconds: float = 300) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> float:
        return self.seconds * 1000


def run(workspace: Workspace, request: str = "Create", seconds: float = 300) -> tuple[str, str]:
    """Handle an event; give status and reason of the answer."""
    answers: list[dict[str, Any]] = []
    context = Context(seconds)

    def sleep(pause: float) -> None:
        workspace.slept += pause
        context.seconds -= pause

    event = {
        "RequestType": request,
        "RequestId": "request",
        "StackId": STACK,
        "LogicalResourceId": "Dashboards",
        "ResponseURL": "https://answer.example",
        "ResourceProperties": PROPERTIES,
    }
    index.handle(
        event,
        context,
        clients=lambda _: workspace,
        put=lambda _, body: answers.append(json.loads(body)),
        sleep=sleep,
        ask=workspace.ask,
    )
    (answer,) = answers
    return answer["Status"], answer["Reason"]


def written(workspace: Workspace) -> list[str]:
    return [f"{path} {body.get('uid') or body['dashboard']['uid']}" for _, path, body in workspace.sent]


def test_an_empty_workspace_is_filled_and_no_account_stays() -> None:
    workspace = Workspace()
    assert run(workspace) == ("SUCCESS", "")
    assert written(workspace) == [
        "/api/datasources prometheus",
        "/api/datasources cloudwatch",
        "/api/folders hyperpod-cdk",
        *FILLED,
    ]
    assert {body["folderUid"] for _, path, body in workspace.sent if path == "/api/dashboards/db"} == {"hyperpod-cdk"}
    assert (workspace.accounts, workspace.tokens) == ({}, {})


def test_data_sources_read_with_the_role_of_the_workspace() -> None:
    prometheus, cloudwatch = index.data_sources(PROPERTIES, "prometheus")
    assert prometheus["url"] == "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1"
    assert prometheus["jsonData"] == {
        "httpMethod": "POST",
        "sigV4Auth": True,
        "sigV4AuthType": "ec2_iam_role",
        "sigV4Region": "us-east-1",
    }
    assert cloudwatch["jsonData"] == {"authType": "ec2_iam_role", "defaultRegion": "us-east-1"}
    assert [each["isDefault"] for each in (prometheus, cloudwatch)] == [True, False]


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("9.4", "prometheus"),
        ("10.4", "prometheus"),
        ("12.4", "grafana-amazonprometheus-datasource"),
        ("13.2", "grafana-amazonprometheus-datasource"),
        ("", "grafana-amazonprometheus-datasource"),
    ],
)
def test_requests_to_prometheus_are_signed_in_every_version(version: str, kind: str) -> None:
    """ "Starting with Amazon Managed Grafana version 12, support for SigV4 authentication in the Core Prometheus plugin
    has been removed" (user guide, "Manually adding the Prometheus data source"); the type that signs is there since."""
    workspace = Workspace(version=version)
    assert run(workspace) == ("SUCCESS", "")
    sources = {body["uid"]: body["type"] for _, path, body in workspace.sent if path == "/api/datasources"}
    assert sources == {"prometheus": kind, "cloudwatch": "cloudwatch"}
    shown = json.dumps([body["dashboard"] for _, path, body in workspace.sent if path == "/api/dashboards/db"])
    assert set(re.findall(r'"datasource": {"type": "([^"]+)", "uid": "prometheus"}', shown)) == {kind}


def test_what_is_there_is_set_and_the_rest_left_alone() -> None:
    there = {"/api/datasources/uid/prometheus", "/api/datasources/uid/cloudwatch", "/api/folders/hyperpod-cdk"}
    workspace = Workspace(accounts={"sa-7": "somebody's", "sa-8": "hyperpod-cdk", "sa-9": "another"}, there=there)
    assert run(workspace, "Update") == ("SUCCESS", "")
    assert written(workspace) == [
        "/api/datasources/uid/prometheus prometheus",
        "/api/datasources/uid/cloudwatch cloudwatch",
        *FILLED,
    ]
    assert {method for method, path, _ in workspace.sent if "uid/" in path} == {"PUT"}
    assert workspace.accounts == {"sa-7": "somebody's", "sa-9": "another"}


def test_deleting_it_asks_for_nothing() -> None:
    workspace = Workspace(faults={"create": AssertionError("nobody asks")})
    assert run(workspace, "Delete") == ("SUCCESS", "")
    assert workspace.sent == []


@pytest.mark.parametrize("passing", [401, 429, 500, 503, OSError("no route"), TimeoutError("timed out")])
def test_what_grafana_does_not_take_now_is_asked_again(passing: int | Exception) -> None:
    workspace = Workspace(statuses=[passing, passing])
    assert run(workspace) == ("SUCCESS", "")
    assert workspace.slept == 3


@pytest.mark.parametrize(
    ("statuses", "reason", "slept"),
    [
        ([403], '403, {"message": "told by the test"}', 0),
        ([400], '400, {"message": "told by the test"}', 0),
        ([401] * 6, '401, {"message": "told by the test"}', 25),
        ([OSError("no route")] * 6, "OSError: no route", 25),
    ],
)
def test_what_it_refuses_is_told_and_no_account_stays(
    statuses: list[int | Exception], reason: str, slept: float
) -> None:
    workspace = Workspace(statuses=statuses)
    told = f"Grafana at {HOST} answers GET /api/datasources/uid/prometheus with {reason}"
    assert run(workspace) == ("FAILED", told)
    assert (workspace.accounts, workspace.slept) == ({}, slept)


def test_it_does_not_wait_beyond_its_time() -> None:
    workspace = Workspace(statuses=[503, 503, 503, 503, 503])
    status, reason = run(workspace, seconds=28)
    assert (status, reason.endswith('503, {"message": "told by the test"}')) == ("FAILED", True)
    assert workspace.slept == 3


def test_an_account_that_cannot_be_deleted_fails_nothing() -> None:
    workspace = Workspace(faults={"delete": refused("ValidationException")})
    assert run(workspace) == ("SUCCESS", "")
    # the next time deletes it first
    workspace.faults = {}
    assert run(workspace, "Update") == ("SUCCESS", "")
    assert workspace.accounts == {}


def test_a_token_that_is_refused_leaves_no_account() -> None:
    workspace = Workspace(faults={"token": refused("ServiceQuotaExceededException")})
    status, reason = run(workspace)
    assert (status, "ServiceQuotaExceededException" in reason, workspace.accounts) == ("FAILED", True, {})


def test_the_dashboards_are_those_that_teams_ask_for() -> None:
    names = [each.name for each in dashboards.DASHBOARDS]
    assert names == ["nodes", "efa", "jobs", "teams", "lustre", "inference"]


@pytest.mark.parametrize("model", dashboards.models("prod"), ids=lambda model: model["uid"])
class TestModel:
    def test_panels_stand_beside_each_other(self, model: dict[str, Any]) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in model["panels"]:
            place = panel["gridPos"]
            cells = {(place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])}
            assert not cells & taken, panel["title"]
            assert place["x"] + place["w"] <= 24
            taken |= cells

    def test_titles_and_numbers_are_its_own(self, model: dict[str, Any]) -> None:
        for key in ("title", "id"):
            assert len({panel[key] for panel in model["panels"]}) == len(model["panels"])
        assert all(panel["description"].endswith(".") for panel in model["panels"])

    def test_queries_use_the_pickers_that_it_has(self, model: dict[str, Any]) -> None:
        has = {each["name"] for each in model["templating"]["list"]} | {"__rate_interval"}
        text = json.dumps(model["panels"])
        assert set(re.findall(r"\$(\w+)", text)) <= has
        # CloudWatch's panels choose a file system, Prometheus's a cluster: another cluster's never mix in
        for panel in model["panels"]:
            for target in panel["targets"]:
                chosen = "$cluster_id" if "expr" in target else "$file_system"
                assert chosen in json.dumps(target), panel["title"]

    def test_brackets_of_queries_close(self, model: dict[str, Any]) -> None:
        for panel in model["panels"]:
            for target in panel["targets"]:
                query = re.sub(r'"[^"]*"', "", target.get("expr") or target["expression"])
                for opens, closes in ("()", "{}", "[]"):
                    assert query.count(opens) == query.count(closes), query

    def test_tables_say_what_they_show(self, model: dict[str, Any]) -> None:
        for panel in model["panels"]:
            assert bool(panel["transformations"]) == (panel["type"] == "table"), panel["title"]

    def test_the_picture_in_the_documentation_is_of_today(self, model: dict[str, Any]) -> None:
        (dashboard,) = [each for each in dashboards.DASHBOARDS if each.uid == model["uid"]]
        picture = PICTURES / f"grafana-{dashboard.name}.svg"
        drawn = f"<!-- {dashboards.digest(dashboard)} -->" in picture.read_text(encoding="utf-8")
        assert drawn, f"{picture.name} shows another version; run 'python scripts/draw_dashboards.py'"

    def test_it_is_taken_by_the_api(self, model: dict[str, Any]) -> None:
        assert (model["id"], model["editable"], len(model["uid"]) <= 40) == (None, False, True)
