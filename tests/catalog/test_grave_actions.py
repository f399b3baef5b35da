"""Grave actions: each one is listed once, exists on AWS, and is found where it applies."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.grave_actions import Where, grave_actions

ROWS = _data.load("grave_actions")["rows"]
WHERE: tuple[Where, ...] = get_args(Where)
NAMED = Counter(f"{row['service']}:{name}".lower() for row in ROWS for name in row["actions"])


def test_every_action_is_listed_once_under_a_known_place() -> None:
    assert [name for name, count in NAMED.items() if count > 1] == []
    assert {row["where"] for row in ROWS} == set(WHERE)
    assert frozenset(NAMED) == grave_actions(*WHERE)
    assert all(row["does"] and row["sources"] for row in ROWS)


def test_actions_are_written_as_iam_writes_them() -> None:
    assert [name for row in ROWS for name in row["actions"] if not name.isalnum()] == []
    assert [row["service"] for row in ROWS if row["service"] != row["service"].lower()] == []


@pytest.mark.parametrize(
    ("action", "where"),
    [
        ("iam:putrolepolicy", "everywhere"),
        ("eks:createaccessentry", "everywhere"),
        ("iam:passrole", "pattern"),
        ("ec2:authorizesecuritygroupingress", "kind"),
        ("route53:changeresourcerecordsets", "kind"),
        ("lambda:invokefunction", "kind"),
        ("cloudtrail:stoplogging", "any"),
    ],
)
def test_where_an_action_counts(action: str, where: Where) -> None:
    assert [each for each in WHERE if action in grave_actions(each)] == [where]
