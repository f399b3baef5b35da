"""What the add-ons for workloads need: names, regions, metrics and the permissions of their roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.rules import Pattern, patterns

_DATA = _data.load("operators")

AS_OF: date = _data.as_of("operators")

_INFERENCE: Mapping[str, Any] = _DATA["inference"]

INFERENCE_ROLE_PREFIX: str = _INFERENCE["role_name_prefix"]
"""Prefix of the name of the inference operator's execution role; the add-on refuses others."""

TLS_BUCKET_PREFIX: str = _INFERENCE["bucket_name_prefix"]
"""Prefix of the name of the bucket for certificates; the operator's managed policy allows no other."""

SPACES_ROLE_PREFIX: str = _DATA["spaces"]["managed_instance_role_prefix"]
"""Prefix of the name of the role of a space's SSM agent; the controller may pass no other."""

GRAFANA_POLICIES: tuple[str, ...] = tuple(_DATA["grafana"]["managed_policies"])
"""AWS managed policies with which a Grafana workspace reads Prometheus and CloudWatch."""

DASHBOARD_ACTIONS: tuple[str, ...] = tuple(_DATA["grafana"]["dashboard_actions"])
"""Actions on a workspace with which a function gets a service account's token for its HTTP API."""

SCRAPE_INTERVAL_SECONDS: int = _DATA["metrics"]["scrape_interval_seconds"]
"""How often AWS's samples collect a category of metrics."""

_PATTERNS = patterns(_DATA["patterns"])
PROMETHEUS_WORKSPACE_ALIAS: Pattern = _PATTERNS["prometheus_workspace_alias"]
GRAFANA_WORKSPACE_NAME: Pattern = _PATTERNS["grafana_workspace_name"]
PROMETHEUS_ENDPOINT: Pattern = _PATTERNS["prometheus_endpoint"]
PROMETHEUS_WORKSPACE_ARN: Pattern = _PATTERNS["prometheus_workspace_arn"]
GRAFANA_WORKSPACE_ARN: Pattern = _PATTERNS["grafana_workspace_arn"]

ServiceAccount = Literal["operator", "load_balancer", "keda", "gated_model"]
Service = Literal["inference", "prometheus", "grafana"]
Rights = Literal["load_balancer_controller", "keda", "ebs_csi_driver"]


@dataclass(frozen=True, kw_only=True)
class Category:
    """A category of the observability add-on's metrics: its key in the add-on's configuration and its levels."""

    key: str
    levels: tuple[str, ...]


METRICS: Mapping[str, Category] = {
    name: Category(key=row["key"], levels=tuple(row["levels"])) for name, row in _DATA["metrics"]["categories"].items()
}
"""Categories by the name that the environment file uses."""


def service_account(who: ServiceAccount) -> str:
    """Return ``namespace:name`` of a service account of the inference add-on, with stars for any."""
    return str(_INFERENCE[f"{who}_service_account"])


def regions(service: Service) -> tuple[str, ...]:
    """Return the regions in which the service was on ``AS_OF``, sorted."""
    return tuple(_DATA[service]["regions"])


def region_warning(service: Service, region: str) -> str | None:
    """Say that the table does not list ``region`` for the service, or return None."""
    if region in regions(service):
        return None
    names = {
        "inference": "the HyperPod inference operator",
        "prometheus": "Amazon Managed Service for Prometheus",
        "grafana": "Amazon Managed Grafana",
    }
    return f"{names[service]} was not in {region} on {AS_OF}; it was in {', '.join(regions(service))}"


def statements(rights: Rights, **names: str) -> list[dict[str, Any]]:
    """Return the IAM statements of a role; ``names`` fill the placeholders of their ARNs, such as ``partition``."""
    return [
        {
            "Effect": "Allow",
            "Action": list(row["actions"]),
            "Resource": [resource.format(**names) for resource in row.get("resources", ["*"])],
            **({"Condition": row["conditions"]} if "conditions" in row else {}),
        }
        for row in _DATA["statements"][rights]
    ]
