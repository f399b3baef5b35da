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


TOPIC = "arn:{}:sns:{}:111122223333:on-call".format


@row_by_row(
    "partition, region, is_reached",
    [("aws", "us-east-1", True), ("aws", "us-west-2", False), ("aws-cn", "us-east-1", False)],
)
def test_a_topic_is_of_the_region_of_its_alarms(partition: str, region: str, *, is_reached: bool) -> None:
    arn = TOPIC(partition, region)
    assert notifications.topic_problem(arn, partition="aws", region="us-east-1") == (
        None
        if is_reached
        else f"must be a topic of us-east-1, where the cluster and its alarms are, got {arn}; name one of us-east-1"
    )


BUS = "arn:aws:events:us-east-1:111122223333:event-bus/{}".format


@row_by_row(
    "arn, problem",
    [
        (BUS("ml"), None),
        (BUS("default-2"), None),
        (BUS("default").replace("1111", "4444"), None),
        (
            BUS("default"),
            (
                "must be another bus than the account's default one, which already gets HyperPod's events, got"
                f" {BUS('default')}; use a bus of your own"
            ),
        ),
        *(
            (
                arn,
                (
                    f"must be an event bus of us-east-1, where the cluster and its alarms are, got {arn}; name one of"
                    " us-east-1"
                ),
            )
            for arn in (BUS(name).replace("us-east-1", "us-west-2") for name in ("ml", "default"))
        ),
    ],
)
def test_a_bus_that_does_not_get_the_events_already(arn: str, problem: str | None) -> None:
    found = notifications.event_bus_problem(arn, partition="aws", region="us-east-1", account="111122223333")
    assert found == problem


def test_names_of_what_notifies() -> None:
    assert notifications.chat_configuration("prod", "us-west-2") == "prod-hyperpod-us-west-2"
    assert notifications.alarm_name("prod", "nodes") == "prod-hyperpod-nodes"
    # AWS Budgets reports the forecast at the limit itself
    assert notifications.BUDGET_PERCENT == (80, 100)
    assert notifications.WATCH_MINUTES == 5
