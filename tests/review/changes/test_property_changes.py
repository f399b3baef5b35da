"""Changes to single resources, each with what the service's own pages say of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.review.changes.blast_radius import blast_radius
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import compare
from tests.support.assembly import by_mapping
from tests.support.tables import row_by_row

TABLE: dict[str, Any] = yaml.load(
    (Path(__file__).parents[1] / "property_changes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
CHANGES: list[dict[str, Any]] = TABLE["changes"]


def named(row: dict[str, Any]) -> str:
    keys = [key for key in {**row["before"], **row["after"]} if row["before"].get(key) != row["after"].get(key)]
    return f"{row['type']}-{'-'.join(keys)}"


@row_by_row("row", CHANGES, ids=named)
def test_a_change(row: dict[str, Any]) -> None:
    holds_as_stated(row, lambda value, _: value)


@row_by_row("row", CHANGES, ids=named)
def test_a_change_of_what_a_mapping_states(row: dict[str, Any]) -> None:
    holds_as_stated(row, by_mapping)


def holds_as_stated(row: dict[str, Any], stated_by: Callable[[Any, dict[str, Any]], Any]) -> None:
    policy = {"UpdatePolicy": row["policy"]} if "policy" in row else {}
    parameters = {"N": {"Type": "Number"}}

    def of(properties: dict[str, Any]) -> Assembly:
        stated: dict[str, Any] = {}
        resource = {"Type": row["type"], "Properties": stated_by(properties, stated), **policy}
        template = {"Parameters": parameters, "Mappings": {"Stated": stated}, "Resources": {"A": resource}}
        return Assembly(environment="", stacks=(Stack(name="s", template=template),))

    base, head = of(row["before"]), of(row["after"])
    (found,) = blast_radius(base, head, compare(base, head)).resources
    assert found.effect.value == row["effect"]
    decisive = [each.reason for each in found.properties if each.effect.value == row["effect"]]
    assert any(row["says"].lower() in reason.lower() for reason in decisive), decisive
    assert row["source"] in TABLE["sources"]


def test_there_are_enough_of_them() -> None:
    assert len(CHANGES) >= 150
    assert {row["source"] for row in CHANGES} == set(TABLE["sources"])
