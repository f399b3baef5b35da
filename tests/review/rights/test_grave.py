"""Which of AWS's own policies are grave, by the same rule as any other statement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from hyperpod_cdk.catalog import managed_policies
from hyperpod_cdk.review.rights.grave import escalates
from hyperpod_cdk.review.rights.statements import Block, items, text

ASKED_FOR = {
    "AmazonEKSClusterPolicy",
    "AmazonEKSLoadBalancingPolicy",
    "AmazonEKSServicePolicy",
    "AmazonElasticFileSystemsUtils",
    "AmazonSSMManagedInstanceCore",
}
"""Those that AWS asks for on every cluster or managed instance; the table's sources say where."""


def holds_a_grave_action(document: dict[str, Any]) -> bool:
    for statement in items(document["Statement"]):
        if statement["Effect"] != "Allow":
            continue
        sides = []
        for name in ("Action", "Resource"):
            stated = [text(each) for each in items(statement.get(name))]
            but = tuple(text(each) for each in items(statement.get(f"Not{name}")))
            sides.append(frozenset({("but", but)} if but else {("", (each,)) for each in stated}))
        condition = {
            operator: {key: [text(each) for each in items(value)] for key, value in keys.items()}
            for operator, keys in statement.get("Condition", {}).items()
        }
        if escalates(Block(*sides), json.dumps(condition) if condition else ""):
            return True
    return False


@pytest.mark.examples
def test_the_table_says_of_each_policy_of_aws_what_its_statements_say() -> None:
    policies = json.loads(aws_managed_policies_data)
    grave = {name for name, entry in policies.items() if holds_a_grave_action(entry["Document"])}
    assert grave >= ASKED_FOR
    assert {name for name in policies if managed_policies.is_grave(name)} == grave - ASKED_FOR
