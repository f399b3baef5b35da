"""What the add-ons for workloads need: Regions, metrics, permissions."""

from __future__ import annotations

from typing import get_args

import pytest

from hyperpod_cdk.catalog import operators
from hyperpod_cdk.config.operators import Metrics


@pytest.mark.parametrize("service", get_args(operators.Service))
def test_regions_are_sorted_and_warned_of(service: operators.Service) -> None:
    listed = operators.regions(service)
    assert list(listed) == sorted(set(listed))
    assert operators.region_warning(service, "us-east-1") is None
    warned = operators.region_warning(service, "xx-nowhere-1")
    assert warned is not None
    assert warned.endswith(f" was not in xx-nowhere-1 on {operators.AS_OF}; it was in {', '.join(listed)}")


def test_the_file_knows_the_categories_and_levels_of_metrics() -> None:
    fields = {
        name: tuple(level for part in get_args(field.annotation) for level in get_args(part))
        for name, field in Metrics.model_fields.items()
    }
    assert fields == {name: category.levels for name, category in operators.METRICS.items()}


@pytest.mark.parametrize("rights", get_args(operators.Rights))
def test_statements_name_their_partition(rights: operators.Rights) -> None:
    names = {"partition": "aws-cn", "region": "cn-north-1", "account": "111122223333", "eks_cluster": "prod-eks"}
    rows = operators.statements(rights, **names)
    resources = [resource for row in rows for resource in row["Resource"]]
    assert all(row["Effect"] == "Allow" and row["Action"] for row in rows)
    assert [each for each in resources if each != "*" and not each.startswith("arn:aws-cn:")] == []


def test_service_accounts() -> None:
    assert operators.service_account("keda") == "hyperpod-inference-system:keda-operator"
    assert operators.service_account("gated_model") == "*:hyperpod-inference-service-account*"


@pytest.mark.parametrize(
    ("arn", "good"),
    [
        ("arn:aws:aps:us-east-1:111122223333:workspace/ws-1", True),
        ("arn:aws-us-gov:aps:us-gov-west-1:111122223333:workspace/ws-1", True),
        ("arn:aws:aps:us-east-1:111122223333:workspace/", False),
        ("arn:aws:aps:us-east-1:1111:workspace/ws-1", False),
    ],
)
def test_prometheus_workspaces(arn: str, good: bool) -> None:  # noqa: FBT001 - a table's column
    assert operators.PROMETHEUS_WORKSPACE_ARN.matches(arn) is good


@pytest.mark.parametrize(
    ("arn", "good"),
    [
        ("arn:aws:grafana:us-east-1:111122223333:/workspaces/g-0123456789", True),
        ("arn:aws:grafana:us-east-1:111122223333:workspaces/g-0123456789", False),
        ("arn:aws:grafana:us-east-1:111122223333:/workspaces/g-012345678", False),
    ],
)
def test_grafana_workspaces(arn: str, good: bool) -> None:  # noqa: FBT001 - a table's column
    assert operators.GRAFANA_WORKSPACE_ARN.matches(arn) is good
