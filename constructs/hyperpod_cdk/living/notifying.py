"""SNS topics with their subscriptions, Slack channels and budgets, as their services have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.living.facts import holds_unknown
from hyperpod_cdk.living.look import (
    TAGS,
    Kind,
    Look,
    Properties,
    Stated,
    reading,
    siblings,
    statements,
    taken,
    with_statements,
)

_GONE: Final = "NotFoundException"
"""Code of Budgets; SNS has ``NotFound``."""

_NO_TOPIC: Final = "NotFound"
_SUBSCRIPTION: Final = "AWS::SNS::Subscription"
_DELETED: Final = "Deleted"
_OF_CHANNEL: Final = {
    "ConfigurationName": "ConfigurationName",
    "SlackWorkspaceId": "SlackTeamId",
    "SlackChannelId": "SlackChannelId",
    "IamRoleArn": "IamRoleArn",
    "SnsTopicArns": "SnsTopicArns",
    "LoggingLevel": "LoggingLevel",
    "GuardrailPolicies": "GuardrailPolicyArns",
}


def _attributes(look: Look, topic: str) -> Mapping[str, str] | None:
    found = look.found("sns", "get_topic_attributes", _NO_TOPIC, TopicArn=topic)
    with reading("sns:GetTopicAttributes"):
        return None if found is None else found["Attributes"]


def _topic(look: Look) -> Properties | None:
    attributes = _attributes(look, look.id)
    if attributes is None:
        return None
    subscriptions = look.listed("sns", "list_subscriptions_by_topic", "Subscriptions", _NO_TOPIC, TopicArn=look.id)
    tags = look.aws.call("sns", "list_tags_for_resource", ResourceArn=look.id)
    with reading("sns:ListSubscriptionsByTopic"):
        return {
            "DisplayName": attributes.get("DisplayName", ""),
            "KmsMasterKeyId": attributes.get("KmsMasterKeyId"),
            "Subscriptions": [{"Name": _called(*each)} for each in _standing(subscriptions or [])],
            "Tags": tags["Tags"],
        }


def _standing(rows: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the subscribers of a topic, with unconfirmed ones; SNS lists deleted ones for a while."""
    for each in rows:
        if each["SubscriptionArn"] != _DELETED:
            yield each["Protocol"], each["Endpoint"]


def _called(protocol: object, endpoint: object) -> str:
    return f"{protocol} to {endpoint}"


def _of_topic(stated: Stated) -> Properties:
    rows: list[Mapping[str, Any]] = [*siblings(stated.assembly, _SUBSCRIPTION, of=("TopicArn", stated.id))]
    rows += [each for each in stated.properties.get("Subscription") or () if isinstance(each, Mapping)]
    if any(holds_unknown(each.get("Endpoint")) for each in rows):
        raise NotAnswered("a subscription has an endpoint that CloudFormation does not show")
    return {
        **stated.properties,
        "Subscriptions": [{"Name": _called(each["Protocol"], each["Endpoint"])} for each in rows],
    }


def _topic_policy(look: Look) -> Properties | None:
    topics = look.stated["Topics"]
    found = [_attributes(look, str(each)) for each in topics]
    there = [each for each in found if each is not None]
    if not there:
        return None
    with reading("sns:GetTopicAttributes"):
        documents = {json.dumps(statements(each["Policy"])) for each in there}
    stated = json.dumps(look.stated["PolicyDocument"])
    other = next((each for each in documents if each != stated), stated)
    return {"Topics": topics, "PolicyDocument": json.loads(other)}


def _channel(look: Look) -> Properties | None:
    rows = look.aws.pages(
        "chatbot", "describe_slack_channel_configurations", "SlackChannelConfigurations", ChatConfigurationArn=look.id
    )
    with reading("chatbot:DescribeSlackChannelConfigurations"):
        return next(
            (
                {ours: row[theirs] for ours, theirs in _OF_CHANNEL.items() if theirs in row}
                for row in rows
                if row["ChatConfigurationArn"] == look.id
            ),
            None,
        )


def _budget(look: Look) -> Properties | None:
    asked = {"AccountId": look.deployed.by_name[look.resource.stack].account, "BudgetName": look.id}
    found = look.found("budgets", "describe_budget", _GONE, **asked)
    if found is None:
        return None
    told = look.listed("budgets", "describe_notifications_for_budget", "Notifications", _GONE, **asked)
    with reading("budgets:ViewBudget"):
        budget = found["Budget"]
        limit = budget.get("BudgetLimit", {})
        return {
            "Budget": {
                **taken(budget, "BudgetType", "TimeUnit"),
                **({"BudgetLimit": {"Amount": float(limit["Amount"]), "Unit": limit["Unit"]}} if limit else {}),
            },
            "Notifications": [
                {"Name": _notification(each), "Subscribers": _subscribers(rows)}
                for each in told or []
                if (rows := _subscribers_of(look, each, asked)) is not None
            ],
        }


def _subscribers_of(look: Look, notification: Mapping[str, Any], asked: Mapping[str, str]) -> list[Any] | None:
    """Return the subscribers of one notification, None if it was deleted in the meantime."""
    # its state is no part of its name
    name = taken(notification, "NotificationType", "ComparisonOperator", "Threshold", "ThresholdType")
    return look.listed(
        "budgets", "describe_subscribers_for_notification", "Subscribers", _GONE, **asked, Notification=name
    )


def _subscribers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"Name": _called(each["SubscriptionType"], each["Address"])} for each in rows]


def _of_budget(stated: Stated) -> Properties:
    budget = stated.properties.get("Budget") or {}
    limit = budget.get("BudgetLimit") or {}
    rows = stated.properties.get("NotificationsWithSubscribers") or ()
    if any(holds_unknown(row["Address"]) for each in rows for row in each.get("Subscribers") or ()):
        raise NotAnswered("a subscriber has an address that CloudFormation does not show")
    return {
        "Budget": {
            **taken(budget, "BudgetType", "TimeUnit"),
            **({"BudgetLimit": {**limit, "Amount": float(limit["Amount"])}} if "Amount" in limit else {}),
        },
        "Notifications": [
            {"Name": _notification(each["Notification"]), "Subscribers": _subscribers(each.get("Subscribers") or ())}
            for each in rows
        ],
    }


def _notification(row: Mapping[str, Any]) -> str:
    kind = "" if row.get("ThresholdType", "PERCENTAGE") == "PERCENTAGE" else f" {row['ThresholdType']}"
    return f"{row['NotificationType']} {row['ComparisonOperator']} {float(row['Threshold']):g}{kind}"


KINDS: Final[Mapping[str, Kind]] = {
    "AWS::SNS::Topic": Kind(
        properties=("DisplayName", "KmsMasterKeyId", "Subscription", "Tags"),
        read=_topic,
        state=_of_topic,
        made_by_hand=re.compile(rf"{TAGS}|KmsMasterKeyId|Subscriptions\[.+\]"),
        members={"Subscriptions": "the subscription"},
        are_members_apart=False,
    ),
    "AWS::SNS::TopicPolicy": Kind(
        properties=("Topics", "PolicyDocument"),
        read=_topic_policy,
        state=with_statements,
        made_by_hand=re.compile(r"PolicyDocument\[.+\]"),
    ),
    "AWS::Chatbot::SlackChannelConfiguration": Kind(
        properties=tuple(_OF_CHANNEL), read=_channel, made_by_hand=re.compile(r"SnsTopicArns|GuardrailPolicies")
    ),
    "AWS::Budgets::Budget": Kind(
        properties=("Budget", "NotificationsWithSubscribers"),
        read=_budget,
        state=_of_budget,
        made_by_hand=re.compile(r"Notifications\[.+\]"),
    ),
}
