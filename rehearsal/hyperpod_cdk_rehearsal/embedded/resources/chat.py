"""AWS::Chatbot::SlackChannelConfiguration."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import call, ignoring
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)
from hyperpod_cdk_rehearsal.embedded.services.chat import REGION

MEMBERS = {
    "SlackChannelId": "SlackChannelId",
    "SnsTopicArns": "SnsTopicArns",
    "IamRoleArn": "IamRoleArn",
    "LoggingLevel": "LoggingLevel",
    "GuardrailPolicies": "GuardrailPolicyArns",
    "UserRoleRequired": "UserAuthorizationRequired",
}
"""Properties that both create and update take, by the API's names."""


@handles("AWS::Chatbot::SlackChannelConfiguration")
class SlackChannelHandler(ResourceHandler):
    """A Slack channel that receives the messages of topics. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Configure the channel."""
        properties = request.properties
        arguments = {
            "ConfigurationName": properties.get("ConfigurationName"),
            "SlackTeamId": properties.get("SlackWorkspaceId"),
            **_members(request),
        }
        made = call(_chat(request), "create_slack_channel_configuration", arguments)["ChannelConfiguration"]
        arn = made["ChatConfigurationArn"]
        return ResourceResult(arn, {"Arn": arn})

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change the configuration in place."""
        arguments = {"ChatConfigurationArn": request.existing_id, **_members(request)}
        call(_chat(request), "update_slack_channel_configuration", arguments)
        return ResourceResult(request.existing_id, {"Arn": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        """Delete the configuration of the channel."""
        with ignoring("ResourceNotFoundException"):
            _chat(request).delete_slack_channel_configuration(ChatConfigurationArn=request.existing_id)


def _members(request: ResourceRequest) -> dict[str, Any]:
    return {member: request.properties.get(name) for name, member in MEMBERS.items()}


def _chat(request: ResourceRequest) -> Any:
    return request.context.client("chatbot", REGION)
