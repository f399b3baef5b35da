"""Existing workspaces for the observability add-on."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.checks.answers import Aws
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.operators import CREATE

AREA = "workspaces"

_PROMETHEUS = "operators.observability.prometheus_workspace"
_GRAFANA = "operators.observability.grafana_workspace"
_ACTIVE = "ACTIVE"


def named_prometheus(environment: Environment) -> str | None:
    """Return the ARN of the Prometheus workspace that the file names, or None if there is none to check."""
    section = environment.operators.observability
    return section.prometheus_workspace if section.enabled and section.prometheus_workspace != CREATE else None


def named_grafana(environment: Environment) -> str | None:
    """Return the ARN of the Grafana workspace that the file names, or None if there is none to check."""
    section = environment.operators.observability
    return section.grafana_workspace if section.enabled and section.grafana_workspace != CREATE else None


@check(
    area=AREA,
    asks=("prometheus_workspace",),
    inputs="operators.observability.prometheus_workspace, where it names a workspace.",
    passes="The workspace is ACTIVE.",
    fails="There is none of this ID in the account and region, or it is not ACTIVE: no metric would arrive.",
    skips="Amazon Managed Service for Prometheus does not answer.",
    by_hand="aws amp describe-workspace --workspace-id ws-0a1b2c3d-4e5f-6789-abcd-ef0123456789",
)
def prometheus_workspace_is_active(case: Case, aws: Aws) -> Iterator[Found]:
    """The add-on installs without it, but its metrics are lost."""
    arn = named_prometheus(case.environment)
    if arn is None:
        return
    status = aws.prometheus_workspace(arn)
    if status != _ACTIVE:
        yield error(
            _PROMETHEUS,
            f"must be an active workspace in {case.environment.region}, got {arn}, which {_state(status)}; use another"
            f" one, or set prometheus_workspace: {CREATE}",
        )


@check(
    area=AREA,
    asks=("grafana_workspace",),
    inputs="operators.observability.grafana_workspace, where it names a workspace.",
    passes="The workspace is ACTIVE.",
    fails="There is none of this ID in the account and region, or it is not ACTIVE: nobody would see a dashboard.",
    skips="Amazon Managed Grafana does not answer, or the workspace is in another Region, which is not checked.",
    by_hand="aws grafana describe-workspace --workspace-id g-0123456789",
)
def grafana_workspace_is_active(case: Case, aws: Aws) -> Iterator[Found]:
    """Dashboards need an existing workspace."""
    arn = named_grafana(case.environment)
    if arn is None:
        return
    region = arn_parts(arn).region
    if region != case.environment.region:
        yield Skipped(reason=f"{arn} is in {region}, which is not queried", path=_GRAFANA)
        return
    status = aws.grafana_workspace(arn)
    if status != _ACTIVE:
        yield error(
            _GRAFANA,
            f"must be an active workspace in {region}, got {arn}, which {_state(status)}; use another one, or set"
            f" grafana_workspace: {CREATE}",
        )


def _state(status: str | None) -> str:
    return "does not exist" if status is None else f"is {status}"
