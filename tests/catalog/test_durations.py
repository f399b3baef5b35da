"""Durations: their ranges, their fallbacks, and where each one is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.catalog import _data, durations
from hyperpod_cdk.catalog.durations import Action
from tests.support.tables import row_by_row


@row_by_row(
    "resource_type, action, when, low, high",
    [
        ("AWS::EKS::Cluster", "create", "", 8, 17),
        ("AWS::EKS::Cluster", "update", "version", 8, 25),
        ("AWS::EKS::Cluster", "update", "", 3, 12),
        ("AWS::FSx::FileSystem", "create", "efa", 10, 60),
        ("AWS::FSx::FileSystem", "delete", "efa", 2, 10),
        ("AWS::SageMaker::Cluster", "create", "deep health checks", 70, 150),
        ("AWS::Lambda::Function", "create", "vpc", 0.2, 1.5),
        ("AWS::Lambda::Function", "create", "", 0.05, 0.5),
        ("AWS::Nobody::Knows", "update", "", 0.05, 0.5),
    ],
)
def test_the_nearest_row_decides(resource_type: str, action: Action, when: str, low: float, high: float) -> None:
    found = durations.duration(resource_type, action, when=when)
    assert (found.low, found.high) == (low, high)


def test_a_source_is_named_in_full() -> None:
    found = durations.duration("AWS::EC2::NatGateway", "create")
    assert found.source == (
        "ten public Terraform logs of aws_nat_gateway: created in 1:24 to 2:04 minutes, destroyed in 0:37 to 1:19 "
        "(read 2026-11-21); kubernetes/kops pull request 944: a NAT gateway takes up to 5 minutes to become available"
    )
    assert found.unsure == ""


def test_unpublished_values_are_marked() -> None:
    assert durations.OTHERS.source == "not published: a default"
    assert durations.OTHERS.unsure == "no number is published; seconds are customary"


def test_every_range_is_one() -> None:
    rows = _data.load("durations")["durations"]
    assert [row for row in rows if not 0 < row["low"] <= row["high"] <= 180] == []


def test_no_row_is_there_twice() -> None:
    rows = [(row["type"], row["action"], row.get("when")) for row in _data.load("durations")["durations"]]
    assert len(rows) == len(set(rows))


def test_a_default_is_never_reported_as_certain() -> None:
    rows = _data.load("durations")["durations"]
    assert [row for row in rows if row["source"] == "default" and not row.get("unsure")] == []


def test_every_source_is_used() -> None:
    document = _data.load("durations")
    told = [*document["durations"], document["others"], document["stack"], document["deep_health_checks"]]
    used = {"handlers", *(key for row in told for key in row["source"].split(", "))}
    assert used == set(document["sources"])


def test_waits_are_those_of_the_schemas(registry_schema: Callable[[str], Any]) -> None:
    assert len(durations.WAITS) > 80
    for name, minutes in durations.WAITS.items():
        handlers = registry_schema(name)["handlers"]
        told = [handlers.get(action, {}).get("timeoutInMinutes", 0) for action in ("create", "update", "delete")]
        assert max(told) == minutes > 120, name


def test_what_has_a_range_is_not_only_waited_for() -> None:
    assert durations.types().isdisjoint(durations.WAITS)


@pytest.mark.parametrize(
    ("resource_type", "action", "low", "high"),
    [
        # over every circumstance: from the shortest of any to the longest of any
        ("AWS::EKS::Cluster", "update", 3, 25),
        # one without the circumstance has no row of its own, and takes as long as types that have none
        ("AWS::Lambda::Function", "create", 0.05, 1.5),
        ("AWS::FSx::FileSystem", "create", 5, 60),
        ("AWS::FSx::FileSystem", "delete", 2, 10),
    ],
)
def test_the_widest_range_holds_every_circumstance(resource_type: str, action: Action, low: float, high: float) -> None:
    found = durations.widest(resource_type, action)
    assert (found.low, found.high) == (low, high)
    circumstances = {
        row.get("when", "") for row in _data.load("durations")["durations"] if row["type"] == resource_type
    }
    told = [durations.duration(resource_type, action, when=when) for when in {"", *circumstances}]
    assert (min(each.low for each in told), max(each.high for each in told)) == (low, high)
    assert set(found.source.split("; ")) == {part for each in told for part in each.source.split("; ")}
    assert set(found.unsure.split("; ")) == ({part for each in told for part in each.unsure.split("; ")} - {""} or {""})


def test_without_a_row_the_widest_range_is_the_default() -> None:
    assert durations.widest("AWS::Nobody::Knows", "create") == durations.OTHERS
    assert durations.widest("AWS::EKS::Nobody", "delete") == durations.OTHERS
