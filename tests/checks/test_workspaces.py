"""Workspaces of Prometheus and Grafana that the file names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.model import Case, Result, Status
from tests.support.fake_aws import FakeAws

RunCheck = Callable[..., Result]

PROMETHEUS = "prometheus_workspace_is_active"
GRAFANA = "grafana_workspace_is_active"
WORKSPACE = "arn:aws:aps:us-east-1:111122223333:workspace/ws-1"
DASHBOARDS = "arn:aws:grafana:us-east-1:111122223333:/workspaces/g-0123456789"
ABROAD = "arn:aws:grafana:eu-west-1:111122223333:/workspaces/g-0123456789"


@pytest.fixture
def run(case_of: Callable[..., Case], run_check: Callable[..., Result], fake_aws: FakeAws) -> RunCheck:
    """Runs a check against the environment with changes."""
    return lambda name, changes: run_check(name, case_of(changes), fake_aws)


def named(**section: Any) -> dict[str, Any]:
    """Changes to prod.yaml: observability with these settings."""
    return {"operators": {"observability": {"enabled": True, **section}}}


@pytest.mark.check("prometheus_workspace_is_active", "passes")
def test_an_active_prometheus_workspace(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.prometheus_workspace = {WORKSPACE: "ACTIVE"}
    assert run(PROMETHEUS, named(prometheus_workspace=WORKSPACE)).status is Status.PASSED


@pytest.mark.check("prometheus_workspace_is_active", "fails")
@pytest.mark.parametrize(("status", "said"), [(None, "does not exist"), ("DELETING", "is DELETING")])
def test_a_prometheus_workspace_that_takes_no_metrics(
    status: str | None, said: str, run: RunCheck, fake_aws: FakeAws
) -> None:
    fake_aws.answers.prometheus_workspace = {WORKSPACE: status}
    (found,) = run(PROMETHEUS, named(prometheus_workspace=WORKSPACE)).findings
    assert found.message == (
        f"must be an active workspace in us-east-1, got {WORKSPACE}, which {said}; use another one, or set"
        " prometheus_workspace: create"
    )
    assert found.path == "operators.observability.prometheus_workspace"


@pytest.mark.check("prometheus_workspace_is_active", "skips")
def test_prometheus_does_not_answer(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.prometheus_workspace = {WORKSPACE: NotAnswered("no permission")}
    assert run(PROMETHEUS, named(prometheus_workspace=WORKSPACE)).status is Status.SKIPPED


@pytest.mark.check("grafana_workspace_is_active", "passes")
def test_an_active_grafana_workspace(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.grafana_workspace = {DASHBOARDS: "ACTIVE"}
    assert run(GRAFANA, named(grafana_workspace=DASHBOARDS)).status is Status.PASSED


@pytest.mark.check("grafana_workspace_is_active", "fails")
def test_a_grafana_workspace_that_is_not_there(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.grafana_workspace = {DASHBOARDS: None}
    (found,) = run(GRAFANA, named(grafana_workspace=DASHBOARDS)).findings
    assert found.message == (
        f"must be an active workspace in us-east-1, got {DASHBOARDS}, which does not exist; use another one, or set"
        " grafana_workspace: create"
    )


@pytest.mark.check("grafana_workspace_is_active", "skips")
def test_a_grafana_workspace_of_another_region_is_not_asked(run: RunCheck, fake_aws: FakeAws) -> None:
    result = run(GRAFANA, named(grafana_workspace=ABROAD))
    assert result.status is Status.SKIPPED
    assert [each.reason for each in result.skipped] == [f"{ABROAD} is in eu-west-1, which is not queried"]
    assert fake_aws.asked == []


@pytest.mark.parametrize("name", [PROMETHEUS, GRAFANA])
def test_workspaces_that_are_made_are_not_asked_for(name: str, run: RunCheck, fake_aws: FakeAws) -> None:
    assert run(name, named(grafana_workspace="create")).findings == ()
    assert run(name, {"operators": ...}).findings == ()
    assert fake_aws.asked == []
