"""Slack channels of Amazon Q Developer in chat applications: authorized workspaces, one configuration per channel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.tests.support.embedded import Embedded, embedded

CHANNEL = "AWS::Chatbot::SlackChannelConfiguration"
ROLE = "arn:aws:iam::111122223333:role/slack"


@pytest.fixture
def aws() -> Iterator[Embedded]:
    """An account in which one workspace is authorized."""
    with embedded({"existing": {"slack_workspaces": ["T0123ABCD"]}}) as there:
        yield there


def channel(name: str, *, workspace: str = "T0123ABCD", channel_id: str = "C0123ABCD") -> dict[str, Any]:
    return {
        "Type": CHANNEL,
        "Properties": {
            "ConfigurationName": name,
            "IamRoleArn": ROLE,
            "SlackWorkspaceId": workspace,
            "SlackChannelId": channel_id,
            "SnsTopicArns": ["arn:aws:sns:us-east-1:111122223333:on-call"],
        },
    }


def deployed(aws: Embedded, **resources: Any) -> list[str]:
    """Deploy a stack, and give why its resources failed."""
    cloudformation = aws.client("cloudformation")
    cloudformation.create_stack(StackName="chat", TemplateBody=json.dumps({"Resources": resources}))
    try:
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName="chat", WaiterConfig={"Delay": 0, "MaxAttempts": 2000}
        )
    except Exception:  # noqa: BLE001 - a waiter has one kind of error for all ends
        events = cloudformation.describe_stack_events(StackName="chat")["StackEvents"]
        return [each["ResourceStatusReason"] for each in events if each["ResourceStatus"] == "CREATE_FAILED"]
    return []


def test_a_channel_is_made_shown_and_gone(aws: Embedded) -> None:
    assert deployed(aws, Channel=channel("prod")) == []
    chat = aws.address.client("chatbot", "us-east-2")
    assert [each["SlackTeamId"] for each in chat.describe_slack_workspaces()["SlackWorkspaces"]] == ["T0123ABCD"]
    (shown,) = chat.describe_slack_channel_configurations()["SlackChannelConfigurations"]
    assert (shown["ConfigurationName"], shown["SlackChannelId"], shown["IamRoleArn"]) == ("prod", "C0123ABCD", ROLE)
    arn = shown["ChatConfigurationArn"]
    assert arn == "arn:aws:chatbot::111122223333:chat-configuration/slack-channel/prod"
    chat.update_slack_channel_configuration(ChatConfigurationArn=arn, SlackChannelId="C0123ABCE")
    (shown,) = chat.describe_slack_channel_configurations(ChatConfigurationArn=arn)["SlackChannelConfigurations"]
    assert shown["SlackChannelId"] == "C0123ABCE"
    aws.client("cloudformation").delete_stack(StackName="chat")
    aws.client("cloudformation").get_waiter("stack_delete_complete").wait(
        StackName="chat", WaiterConfig={"Delay": 0, "MaxAttempts": 2000}
    )
    assert chat.describe_slack_channel_configurations()["SlackChannelConfigurations"] == []
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        chat.delete_slack_channel_configuration(ChatConfigurationArn=arn)


def test_a_workspace_that_is_not_authorized(aws: Embedded) -> None:
    (reason,) = deployed(aws, Channel=channel("prod", workspace="T0123ABCE"))
    assert "Slack team T0123ABCE has not been authorized for AWS account" in reason


def test_a_channel_is_taken_once_for_an_account(aws: Embedded) -> None:
    first, second = channel("prod"), {**channel("staging"), "DependsOn": "First"}
    (reason,) = deployed(aws, First=first, Second=second)
    assert (
        "Slack channel with ID C0123ABCD in Slack team T0123ABCD has already been configured for AWS account"
        " 111122223333" in reason
    )
