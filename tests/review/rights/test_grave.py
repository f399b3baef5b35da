"""Which of AWS's own policies are grave, by the same rule as any other statement."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from hyperpod_cdk.catalog import managed_policies
from hyperpod_cdk.review.rights.grave import changes_deciding_tags, escalates
from hyperpod_cdk.review.rights.statements import Block, items, text

ASKED_FOR = {
    "AmazonEKSClusterPolicy",
    "AmazonEKSLoadBalancingPolicy",
    "AmazonEKSServicePolicy",
    "AmazonElasticFileSystemsUtils",
    "AmazonSSMManagedInstanceCore",
}
"""Those that AWS asks for on every cluster or managed instance; the table's sources say where."""


def blocks(document: dict[str, Any]) -> Iterator[tuple[Block, str]]:
    """What the statements of a policy allow, each with its condition."""
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
        yield Block(*sides), json.dumps(condition) if condition else ""


def holds_a_grave_action(document: dict[str, Any]) -> bool:
    return any(escalates(block, condition) for block, condition in blocks(document))


def tagged_services(document: dict[str, Any]) -> set[str]:
    """The services of which a policy lets its holder change a tag that its own conditions do not name, of any kind."""
    found = set()
    for block, condition in blocks(document):
        stated = [name for kind, each in block.resources if kind != "but" for name in each]
        if stated and not any(name.rpartition(":")[2].startswith("*") for name in stated):
            continue
        # what allows everything but some actions is grave, and no name without these can mean one that tags
        names = {name for kind, each in block.actions if kind != "but" for name in each}
        for name in sorted(each for each in names if "tag" in each.lower() or "*" in each):
            service = name.partition(":")[0].lower()
            one = block._replace(actions=frozenset({("", (name,))}))
            if service not in found and changes_deciding_tags(one, condition, {service: frozenset({"team"})}):
                found.add(service)
    return found


@pytest.mark.examples
def test_the_table_says_of_each_policy_of_aws_what_its_statements_say() -> None:
    policies = json.loads(aws_managed_policies_data)
    grave = {name for name, entry in policies.items() if holds_a_grave_action(entry["Document"])}
    assert grave >= ASKED_FOR
    assert {name for name in policies if managed_policies.is_grave(name)} == grave - ASKED_FOR


@pytest.mark.examples
def test_the_table_says_of_each_policy_of_aws_which_tags_it_lets_change() -> None:
    policies = json.loads(aws_managed_policies_data)
    others = [name for name in policies if not managed_policies.is_grave(name)]
    found = {name: tagged_services(policies[name]["Document"]) for name in others}
    assert {name: each for name in policies if (each := managed_policies.tagging(name))} == {
        name: each for name, each in found.items() if each
    }
