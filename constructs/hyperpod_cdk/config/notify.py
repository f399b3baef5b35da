"""The notify section: who is notified about events of the cluster."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, Strict

from hyperpod_cdk.catalog import notifications as facts
from hyperpod_cdk.config.section import Section, counted, filled, like, within

Event = Literal[
    "node_unhealthy",
    "node_rebooted",
    "node_replaced",
    "deep_health_check_failed",
    "cluster_error",
    "nodes_missing",
    "training_plan",
    "file_system_full",
    "quota_used",
]
EVENTS: tuple[Event, ...] = get_args(Event)
"""Every kind of event, in the order in which the documentation explains them."""

FUNCTION_EVENTS: frozenset[Event] = frozenset(
    (
        *("node_unhealthy", "node_rebooted", "node_replaced", "deep_health_check_failed"),
        *("nodes_missing", "training_plan", "quota_used"),
    )
)
"""The events that the function reports or measures; the others are alarms on AWS's own metrics."""

THRESHOLDS: dict[str, Event] = {
    "nodes_missing_minutes": "nodes_missing",
    "file_system_percent": "file_system_full",
    "storage_target_percent": "file_system_full",
    "quota_percent": "quota_used",
}
"""Field of a threshold -> the event that reads it."""


class Slack(Section):
    """A Slack channel, through Amazon Q Developer in chat applications."""

    workspace_id: Annotated[str, like(facts.SLACK_WORKSPACE_ID)] = Field(
        description=(
            "ID of the workspace, which somebody must have authorized once in the console of Amazon Q"
            " Developer in chat applications. A change replaces the configuration."
        ),
        examples=[facts.SLACK_WORKSPACE_ID.example],
    )
    channel_id: Annotated[str, like(facts.SLACK_CHANNEL_ID)] = Field(
        description="ID of the channel. To a private channel, invite the app with /invite @Amazon Q.",
        examples=[facts.SLACK_CHANNEL_ID.example],
    )


class Notify(Section):
    """Who is notified about events of the cluster: by email, or through an SNS topic that others subscribe to."""

    emails: Annotated[
        tuple[Annotated[str, like(facts.EMAIL)], ...],
        Strict(strict=False),
        counted(facts.SUBSCRIPTIONS, "e-mail addresses"),
    ] = Field(
        default=(),
        description=(
            "Email addresses that receive the messages. SNS first asks each for a confirmation. Default: none."
        ),
        examples=[[facts.EMAIL.example]],
    )
    sns_topic_arn: Annotated[str, like(facts.TOPIC_ARN)] | None = Field(
        default=None,
        description=(
            "An existing SNS topic, instead of a topic that is created. The topic is not changed: its policy,"
            " and the policy of its KMS key, must allow cloudwatch.amazonaws.com to publish. Default: a topic"
            " is created."
        ),
        examples=[facts.TOPIC_ARN.example],
    )
    slack: Slack | None = Field(
        default=None,
        description="A Slack channel that receives the messages. Default: none.",
        examples=[{"workspace_id": facts.SLACK_WORKSPACE_ID.example, "channel_id": facts.SLACK_CHANNEL_ID.example}],
    )
    event_bus_arn: Annotated[str, like(facts.EVENT_BUS_ARN)] | None = Field(
        default=None,
        description=(
            "An existing EventBridge event bus that receives every message as an event with the source"
            " hyperpod-cdk, and every state change of an alarm. Default: none."
        ),
        examples=[facts.EVENT_BUS_ARN.example],
    )
    monthly_budget_usd: Annotated[int, within(facts.MONTHLY_BUDGET_USD)] | None = Field(
        default=None,
        description=(
            "Budget of the whole account in the Region per month, in USD. You are notified at 80 and 100"
            " percent, and when the forecast exceeds it. A change replaces nothing. Default: no budget."
        ),
        examples=[50000],
    )
    events: Annotated[tuple[Event, ...], Strict(strict=False), filled("event")] = Field(
        default=EVENTS,
        description=(
            "Events to notify about: node_unhealthy, node_rebooted and node_replaced as HyperPod reports"
            " them; deep_health_check_failed from the logs of the checks; cluster_error when HyperPod reports"
            " any error; nodes_missing when a group has fewer nodes than it should have; training_plan 7"
            " days, 1 day and 90 minutes before a plan starts and ends; file_system_full for every file"
            " system of fixed capacity; quota_used when little is left of the account's quota for an instance"
            " type of the groups. Default: all events."
        ),
        examples=[["node_unhealthy", "nodes_missing"]],
    )
    nodes_missing_minutes: Annotated[int, within(facts.NODES_MISSING_MINUTES)] = Field(
        default=30,
        description=(
            "How many minutes a group must have missing nodes before a notification is sent, because a"
            " replacement takes some time."
        ),
    )
    file_system_percent: Annotated[int, within(facts.PERCENT)] = Field(
        default=75, description="How full a whole file system must be before a notification is sent, in percent."
    )
    storage_target_percent: Annotated[int, within(facts.PERCENT)] = Field(
        default=85,
        description=(
            "How full one storage target (OST) of a file system must be before a notification is sent, in"
            " percent. When one target is full, writes fail even if the others have space."
        ),
    )
    quota_percent: Annotated[int, within(facts.QUOTA_PERCENT)] = Field(
        default=80,
        description=(
            "How much of the account's quota for an instance type must be used by its HyperPod clusters before a"
            " notification is sent, in percent. A quota that was granted for exactly this cluster is fully used"
            " from the start: if that is intended, remove quota_used from events."
        ),
    )

    @property
    def unread_thresholds(self) -> tuple[tuple[str, Event], ...]:
        """The thresholds that the file sets for events that are not in ``events``."""
        stated = self.model_fields_set
        return tuple(
            (field, event) for field, event in THRESHOLDS.items() if field in stated and event not in self.events
        )
