"""The actions of the stacks' resource types, and the patterns that leave some out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.catalog import _data, deployer_actions
from hyperpod_cdk.catalog.deployer_actions import TYPES, ResourceType

PHASES = ("create", "update", "delete")


@pytest.mark.parametrize("each", TYPES, ids=lambda each: each.name)
def test_actions_are_sorted_and_hold_what_is_certain(each: ResourceType) -> None:
    assert list(each.actions) == sorted(set(each.actions))
    assert each.certain
    assert set(each.certain) <= set(each.actions)
    assert [action for action in each.actions if not re.fullmatch(r"[a-z0-9-]+:[A-Z]\w+", action)] == []


def test_every_pattern_leaves_something_out_and_nothing_certain(registry_schema: Callable[[str], Any]) -> None:
    named = {
        action
        for each in TYPES
        for phase in PHASES
        for action in registry_schema(each.name).get("handlers", {}).get(phase, {}).get("permissions", [])
    }
    certain = {action for each in TYPES for action in each.certain}
    for row in _data.load("deployer_actions")["left_out"]:
        assert [action for action in named if re.fullmatch(row["actions"], action)], row
        assert [action for action in certain if re.fullmatch(row["actions"], action)] == [], row
        assert len(row["why"].split()) > 2


def test_hyperpod_clusters_need_what_the_schema_says() -> None:
    (cluster,) = [each for each in deployer_actions.TYPES if each.name == "AWS::SageMaker::Cluster"]
    assert {"sagemaker:CreateCluster", "eks:CreateAccessEntry", "iam:PassRole"} <= set(cluster.actions)
    assert "iam:CreateServiceLinkedRole" not in cluster.actions
