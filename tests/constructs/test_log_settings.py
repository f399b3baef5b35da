"""The custom resource that configures a log group which a service makes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import aws_kms as kms

from hyperpod_cdk.common.keys import encrypt_log_groups
from hyperpod_cdk.common.log_settings import LogSettings
from tests.support.templates import of_type, stack, template_of

NAME = "/aws/eks/prod-eks/cluster"
KEY = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER = KEY.replace("1234abcd", "5678abcd")


def settings_of(template: dict[str, Any]) -> dict[str, Any]:
    (row,) = of_type(template, "Custom::HyperPodLogSettings").values()
    found: dict[str, Any] = row["Properties"]
    return found


def test_no_log_group_of_the_name_is_a_resource() -> None:
    own = stack()
    LogSettings(own, "Settings", log_group_name=NAME, retention_days=30)
    template = template_of(own)
    assert settings_of(template) == {
        "ServiceToken": {"Fn::GetAtt": ["SettingsHandler0177D63B", "Arn"]},
        "ServiceTimeout": 600,
        "LogGroupName": NAME,
        "RetentionInDays": 30,
    }
    (handler_logs,) = of_type(template, "AWS::Logs::LogGroup").values()
    assert handler_logs["Properties"] == {"RetentionInDays": 90}


def test_the_role_touches_this_group_only() -> None:
    own = stack()
    LogSettings(own, "Settings", log_group_name=NAME, retention_days=30)
    (role,) = of_type(template_of(own), "AWS::IAM::Role").values()
    (policy,) = role["Properties"]["Policies"]
    changing, logging = policy["PolicyDocument"]["Statement"]
    assert changing["Action"] == [
        "logs:AssociateKmsKey",
        "logs:CreateLogGroup",
        "logs:DisassociateKmsKey",
        "logs:PutRetentionPolicy",
        "logs:TagResource",
        "logs:UntagResource",
    ]
    ends = [json.dumps(resource).count(f":log-group:{NAME}") for resource in changing["Resource"]]
    assert ends == [1, 1]
    assert logging["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]


def test_the_group_gets_tags_that_are_given() -> None:
    own = stack()
    LogSettings(own, "Settings", log_group_name=NAME, retention_days=30, tags={"team": "ml", "cost-center": "42"})
    assert settings_of(template_of(own))["Tags"] == {"cost-center": "42", "team": "ml"}


@pytest.mark.parametrize(("own_key", "expected"), [(None, KEY), (OTHER, OTHER)])
def test_the_key_of_all_log_groups_is_for_this_one_too(own_key: str | None, expected: str) -> None:
    own = stack()
    LogSettings(own, "Settings", log_group_name=NAME, retention_days=30, kms_key_arn=own_key)
    encrypt_log_groups(own, kms.Key.from_key_arn(own, "Key", KEY))
    assert settings_of(template_of(own))["KmsKeyArn"] == expected
