"""Prod in an account whose nodes come late, fail, or stay away: add-ons wait for one, or it is told why none came."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hyperpod_cdk.rehearsal.embedded.satisfied import satisfying
from tests.rehearsal.test_examples import Life, living
from tests.support.assembly import shipped

SLOW_SECONDS = 100
"""Two seconds with the hurried clock: longer than it takes from the cluster to the wait."""


def nodes_told(life: Life) -> str:
    """Give what the platform stack's output says of the nodes."""
    (stack,) = life.run.aws.cloudformation.describe_stacks(StackName="prod-platform")["Stacks"]
    return next(each["OutputValue"] for each in stack["Outputs"] if each["OutputKey"] == "Nodes")


def account(assemblies: Path, **nodes: Any) -> dict[str, Any]:
    return {**satisfying(shipped(assemblies, "prod").environment), "nodes": nodes}


def test_slow_nodes_are_waited_for_and_missing_ones_are_told(assemblies: Path, tmp_path: Path) -> None:
    document = account(assemblies, system={"delay_seconds": SLOW_SECONDS}, h100={"never": "all"})
    with living(shipped(assemblies, "prod"), document, tmp_path) as life:
        life.deploy(assemblies / "prod")
        assert re.fullmatch(
            r"h100: 0 of 2 Running \(2 Pending\); system: [12] of 2 Running( \(1 Pending\))?", nodes_told(life)
        )
        addons = life.aws.client("eks").list_addons(clusterName="prod-eks")["addons"]
        states = {
            name: life.aws.client("eks").describe_addon(clusterName="prod-eks", addonName=name)["addon"]["status"]
            for name in addons
        }
        assert set(states.values()) == {"ACTIVE"}, states
        inventory = life.run._settled_inventory()
        assert inventory.missing_nodes == ["h100 0 of 2"]
        life.run._expect_counts(life.run.environment, inventory)
