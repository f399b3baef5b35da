"""Amazon Q Developer in chat applications: the Slack workspaces that a person authorized, the channels configured.

The service is global for the account: requests in another Region than ``REGION`` return nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.services.timeline import page

REGION = "us-east-2"
"""One of the four whose API answers, and the only one with a console (API reference, "Welcome")."""

PAGE_SIZE = 50
_CHANGED = ("SlackChannelId", "SnsTopicArns", "IamRoleArn", "LoggingLevel", "GuardrailPolicyArns")


@dataclass
class ChatStore:
    """The Slack channels by the ARNs of their configurations, as DescribeSlackChannelConfigurations shows them."""

    channels: dict[str, dict[str, Any]] = field(default_factory=dict)


@operation("chatbot", "DescribeSlackWorkspaces")
def describe_slack_workspaces(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The workspaces that a person authorized in the console."""
    rows = [
        {"SlackTeamId": each, "SlackTeamName": each, "State": "ENABLED"}
        for each in account_of(context).existing.slack_workspaces
    ]
    shown, token = page(rows, request.get("NextToken"), request.get("MaxResults") or PAGE_SIZE)
    return {"SlackWorkspaces": shown, **({"NextToken": token} if token else {})}


@operation("chatbot", "DescribeSlackChannelConfigurations")
def describe_slack_channel_configurations(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The channels, or the one of an ARN."""
    wanted = request.get("ChatConfigurationArn")
    rows = [row for arn, row in context.state.store(ChatStore).channels.items() if wanted in {None, arn}]
    shown, token = page(rows, request.get("NextToken"), request.get("MaxResults") or PAGE_SIZE)
    return {"SlackChannelConfigurations": shown, **({"NextToken": token} if token else {})}


@operation("chatbot", "CreateSlackChannelConfiguration")
def create_slack_channel_configuration(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Configure a channel to receive the messages of topics.

    That a channel is taken once for an account is what the service said to the users of awscc issue 1011 and of
    cdk-constructs issue 92, in these words; what it says of a workspace that nobody authorized is not documented.
    """
    team, channel = request["SlackTeamId"], request["SlackChannelId"]
    if team not in account_of(context).existing.slack_workspaces:
        raise ServiceError("InvalidRequestException", f"Slack team {team} has not been authorized for AWS account.")
    store, name = context.state.store(ChatStore), request["ConfigurationName"]
    arn = context.arn("chatbot", f"chat-configuration/slack-channel/{name}", region="")
    with context.state.lock:
        _check_channel(context, store, request, team, arn)
        if arn in store.channels:
            raise ServiceError("ConflictException", f"Configuration {name} already exists.", 409)
        store.channels[arn] = {
            "SlackTeamName": team,
            "SlackTeamId": team,
            "SlackChannelName": channel,
            "ChatConfigurationArn": arn,
            "ConfigurationName": name,
            "SnsTopicArns": [],
            "State": "ENABLED",
            **{key: request[key] for key in _CHANGED if key in request},
        }
        return {"ChannelConfiguration": store.channels[arn]}


@operation("chatbot", "UpdateSlackChannelConfiguration")
def update_slack_channel_configuration(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Change a channel's configuration."""
    store, arn = context.state.store(ChatStore), request["ChatConfigurationArn"]
    with context.state.lock:
        row = _find(store, arn)
        _check_channel(context, store, request, row["SlackTeamId"], arn)
        row.update({key: request[key] for key in _CHANGED if key in request})
        return {"ChannelConfiguration": row}


@operation("chatbot", "DeleteSlackChannelConfiguration")
def delete_slack_channel_configuration(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete the configuration of a channel."""
    store = context.state.store(ChatStore)
    with context.state.lock:
        _find(store, request["ChatConfigurationArn"])
        del store.channels[request["ChatConfigurationArn"]]
    return {}


def _find(store: ChatStore, arn: str) -> dict[str, Any]:
    if arn not in store.channels:
        raise ServiceError("ResourceNotFoundException", f"Configuration {arn} not found.", 404)
    return store.channels[arn]


def _check_channel(context: Context, store: ChatStore, request: dict[str, Any], team: str, arn: str) -> None:
    channel = request["SlackChannelId"]
    for other, row in store.channels.items():
        if other != arn and (row["SlackTeamId"], row["SlackChannelId"]) == (team, channel):
            raise ServiceError(
                "InvalidRequestException",
                f"Slack channel with ID {channel} in Slack team {team} has already been configured for AWS account"
                f" {context.account}.",
            )
