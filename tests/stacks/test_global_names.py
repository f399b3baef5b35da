"""Names that are unique in an account or a partition: environments with one name in two Regions share none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hyperpod_cdk.config import load_environment
from tests.support.assembly import PROJECT, Synthesized, synthesize_unchecked

NAMES = {
    # IAM user guide, "IAM and AWS STS quotas", and API reference: names are unique within the account
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::OIDCProvider": "Url",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    # S3 user guide, "General purpose bucket naming rules": unique within the partition
    "AWS::S3::Bucket": "BucketName",
    # Budgets API reference, Budget: "The name must be unique within an account"
    "AWS::Budgets::Budget": "Budget.BudgetName",
    # Amazon Q Developer in chat applications answers for the account in one Region
    "AWS::Chatbot::SlackChannelConfiguration": "ConfigurationName",
    # CloudWatch API reference, PutDashboard: "All dashboards in your account are global, not region-specific"
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::CloudFront::OriginAccessControl": "OriginAccessControlConfig.Name",
    "AWS::Route53::HostedZone": "Name",
}
"""The property that names a resource, of each type whose names are not of one Region. Without it CloudFormation makes a
name, with a part of its own."""

SLACK = "\nnotify: {slack: {workspace_id: T0123ABCD, channel_id: C0123ABCD}, monthly_budget_usd: 100}\n"


def _named(synthesized: Synthesized) -> Iterator[tuple[str, str]]:
    for template in synthesized.templates.values():
        for resource in template["Resources"].values():
            path = NAMES.get(resource["Type"])
            value: Any = resource.get("Properties", {})
            for part in path.split(".") if path else ():
                value = value.get(part) if isinstance(value, dict) else None
            if path and value is not None:
                yield resource["Type"], json.dumps(value)


def _is_of_one_stack(name: str, region: str) -> bool:
    """Whether a name holds the Region, a part of the stack's ID, or an ID that AWS gave to a cluster."""
    return region in name or any(each in name for each in ('"AWS::Region"', '"AWS::StackId"', "OpenIdConnectIssuerUrl"))


def test_no_name_of_an_account_is_made_by_two_regions(synthesized: Synthesized) -> None:
    region = synthesized.environment.region
    assert [each for each in _named(synthesized) if not _is_of_one_stack(each[1], region)] == []


def test_of_the_types_with_such_names_some_are_made(prod: Synthesized) -> None:
    text = (PROJECT / "environments/prod.yaml").read_text(encoding="utf-8")
    with_slack = load_environment(PROJECT / "environments/prod.yaml", text=text + SLACK).environment
    synthesized = synthesize_unchecked(with_slack, project=PROJECT)
    found = dict(_named(synthesized))
    assert found["AWS::Chatbot::SlackChannelConfiguration"] == '"prod-hyperpod-us-east-1"'
    assert found["AWS::CloudWatch::Dashboard"] == '"prod-hyperpod-us-east-1"'
    assert [each for each in found.items() if not _is_of_one_stack(each[1], "us-east-1")] == []
    # a budget has no name of its own
    assert set(dict(_named(prod))) >= {"AWS::CloudWatch::Dashboard", "AWS::S3::Bucket"}
    assert "AWS::Budgets::Budget" not in found


@pytest.mark.parametrize(
    ("name", "is_one"), [('"prod-hyperpod"', False), ('"prod-us-east-1"', True), ('{"Ref": "AWS::Region"}', True)]
)
def test_what_counts_as_a_name_of_one_stack(name: str, is_one: bool) -> None:  # noqa: FBT001 - a column of the table
    assert _is_of_one_stack(name, "us-east-1") is is_one
