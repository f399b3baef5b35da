"""Targets of notifications: Slack IDs, topics of budgets."""

from __future__ import annotations

import pytest

from hyperpod_cdk.catalog import notifications
from hyperpod_cdk.catalog.notifications import SLACK_CHANNEL_ID, SLACK_WORKSPACE_ID, budget_topic_problem
from hyperpod_cdk.catalog.rules import Pattern
from tests.support.tables import row_by_row

ACCOUNT = "222233334444"


@row_by_row(
    "pattern, text, fits",
    [
        (SLACK_WORKSPACE_ID, "T", False),
        (SLACK_WORKSPACE_ID, "T0", True),
        (SLACK_WORKSPACE_ID, f"T{254 * '0'}", True),
        (SLACK_WORKSPACE_ID, f"T{255 * '0'}", False),
        (SLACK_CHANNEL_ID, "C", False),
        (SLACK_CHANNEL_ID, "G0", True),
        (SLACK_CHANNEL_ID, f"C{255 * '0'}", True),
        (SLACK_CHANNEL_ID, f"C{256 * '0'}", False),
    ],
)
def test_an_id_of_slack_beside_its_bounds(pattern: Pattern, text: str, *, fits: bool) -> None:
    assert pattern.matches(text) is fits


@pytest.mark.parametrize("owner", ["111122223333", ACCOUNT, "333344445555"])
def test_a_budget_publishes_to_a_topic_of_its_own_account(owner: str) -> None:
    said = budget_topic_problem(f"arn:aws:sns:us-east-1:{owner}:on-call", account=ACCOUNT)
    assert said == (
        None
        if owner == ACCOUNT
        else f"needs a topic of account {ACCOUNT}, because a budget cannot publish to another account's, got one of"
        f" {owner}; remove monthly_budget_usd, or use a topic of the same account"
    )


def test_who_publishes() -> None:
    alarms, budgets = "cloudwatch.amazonaws.com", "budgets.amazonaws.com"
    assert [*map(notifications.principal, notifications.publishers(has_budget=False))] == [alarms]
    assert [*map(notifications.principal, notifications.publishers(has_budget=True))] == [alarms, budgets]
