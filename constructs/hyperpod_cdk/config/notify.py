"""The notify section: who is told what happens to the cluster."""

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
]
EVENTS: tuple[Event, ...] = get_args(Event)
"""Every kind of event, in the order in which the documentation explains them."""

THRESHOLDS: dict[str, Event] = {
    "nodes_missing_minutes": "nodes_missing",
    "file_system_percent": "file_system_full",
    "storage_target_percent": "file_system_full",
}
"""Field of a threshold -> the event that reads it."""


class Slack(Section):
    """A channel of Slack, through Amazon Q Developer in chat applications."""

    workspace_id: Annotated[str, like(facts.SLACK_WORKSPACE_ID)] = Field(
        description="ID of the workspace, which somebody has authorized once in the console of Amazon Q Developer in"
        " chat applications. A change makes another configuration.",
        examples=[facts.SLACK_WORKSPACE_ID.example],
    )
    channel_id: Annotated[str, like(facts.SLACK_CHANNEL_ID)] = Field(
        description="ID of the channel; to a private one the app has to be invited, with /invite @Amazon Q.",
        examples=[facts.SLACK_CHANNEL_ID.example],
    )


class Notify(Section):
    """Who is told what happens to the cluster: by e-mail, or through an SNS topic that others subscribe to."""

    emails: Annotated[
        tuple[Annotated[str, like(facts.EMAIL)], ...],
        Strict(strict=False),
        counted(facts.SUBSCRIPTIONS, "e-mail addresses"),
    ] = Field(
        default=(),
        description="Addresses that get the messages. SNS asks each for a confirmation first. Default: none.",
        examples=[[facts.EMAIL.example]],
    )
    sns_topic_arn: Annotated[str, like(facts.TOPIC_ARN)] | None = Field(
        default=None,
        description="An SNS topic that exists, in place of one that is made. Of it nothing is changed: its policy must"
        " let cloudwatch.amazonaws.com publish, and so must the policy of its key. Default: a topic is made.",
        examples=[facts.TOPIC_ARN.example],
    )
    slack: Slack | None = Field(
        default=None,
        description="A channel of Slack that gets the messages. Default: none.",
        examples=[{"workspace_id": facts.SLACK_WORKSPACE_ID.example, "channel_id": facts.SLACK_CHANNEL_ID.example}],
    )
    event_bus_arn: Annotated[str, like(facts.EVENT_BUS_ARN)] | None = Field(
        default=None,
        description="An EventBridge event bus that exists and gets every message as an event of the source"
        " hyperpod-cdk, and every change of state of an alarm. Default: none.",
        examples=[facts.EVENT_BUS_ARN.example],
    )
    monthly_budget_usd: Annotated[int, within(facts.MONTHLY_BUDGET_USD)] | None = Field(
        default=None,
        description="What the whole account may spend in the region each month, in USD: told at 80 and 100 percent, and"
        " once the forecast is above it. A change of it replaces nothing. Default: no budget.",
        examples=[50000],
    )
    events: Annotated[tuple[Event, ...], Strict(strict=False), filled("event")] = Field(
        default=EVENTS,
        description="What is told: node_unhealthy, node_rebooted and node_replaced as HyperPod reports them,"
        " deep_health_check_failed by the logs of the checks, cluster_error where HyperPod reports any error,"
        " nodes_missing where a group has fewer nodes than it is to have, training_plan 7 days, 1 day and 90 minutes"
        " before a plan starts and ends, file_system_full of every file system of fixed capacity. Default: all of it.",
        examples=[["node_unhealthy", "nodes_missing"]],
    )
    nodes_missing_minutes: Annotated[int, within(facts.NODES_MISSING_MINUTES)] = Field(
        default=30,
        description="Minutes for which a group has to lack nodes before it is told: a replacement takes a while.",
    )
    file_system_percent: Annotated[int, within(facts.PERCENT)] = Field(
        default=75, description="How full a whole file system has to be before it is told, in percent."
    )
    storage_target_percent: Annotated[int, within(facts.PERCENT)] = Field(
        default=85,
        description="How full one of a file system's storage targets (OSTs) has to be before it is told, in percent:"
        " writes fail where one is full, whatever room the others have.",
    )

    @property
    def unread_thresholds(self) -> tuple[tuple[str, Event], ...]:
        """The thresholds that the file states for events that nobody is told of."""
        stated = self.model_fields_set
        return tuple(
            (field, event) for field, event in THRESHOLDS.items() if field in stated and event not in self.events
        )
