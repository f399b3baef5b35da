"""Budgets stand where a stack has made them, with another limit after an update, and go with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyperpod_cdk.living.kinds import KINDS
from hyperpod_cdk_rehearsal.embedded.resources.registry import handler_for
from hyperpod_cdk_rehearsal.embedded.traffic import Call
from rehearsal.tests.support.embedded import ACCOUNT, Embedded, embedded


def template(amount: int) -> str:
    budget = {
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": amount, "Unit": "USD"},
        "CostFilters": {"Region": ["us-east-1"]},
    }
    told: dict[str, Any] = {
        "Notification": {
            "NotificationType": "ACTUAL",
            "ComparisonOperator": "GREATER_THAN",
            "Threshold": 80,
            "ThresholdType": "PERCENTAGE",
        },
        "Subscribers": [{"SubscriptionType": "SNS", "Address": f"arn:aws:sns:us-east-1:{ACCOUNT}:on-call"}],
    }
    properties = {"Budget": budget, "NotificationsWithSubscribers": [told]}
    return json.dumps({"Resources": {"Budget": {"Type": "AWS::Budgets::Budget", "Properties": properties}}})


def settled(aws: Embedded, end: str) -> None:
    waiter = aws.client("cloudformation").get_waiter(f"stack_{end}_complete")
    waiter.wait(StackName="costs", WaiterConfig={"Delay": 0, "MaxAttempts": 2000})


def test_a_budget_is_made_changed_and_gone() -> None:
    with embedded({}) as aws:
        cloudformation, budgets = aws.client("cloudformation"), aws.client("budgets")
        cloudformation.create_stack(StackName="costs", TemplateBody=template(1000))
        settled(aws, "create")
        (row,) = cloudformation.describe_stack_resources(StackName="costs")["StackResources"]
        asked = {"AccountId": ACCOUNT, "BudgetName": row["PhysicalResourceId"]}
        made = budgets.describe_budget(**asked)["Budget"]
        assert (float(made["BudgetLimit"]["Amount"]), made["CostFilters"]) == (1000, {"Region": ["us-east-1"]})
        (told,) = budgets.describe_notifications_for_budget(**asked)["Notifications"]
        assert (told["NotificationType"], told["Threshold"]) == ("ACTUAL", 80)
        assert aws.state()["recorded"] == []
        # by rights that IAM knows, as which a rehearsal judges them
        calls = [call for step in aws.steps() if step["stack"] == "costs" for call in step["calls"]]
        assert {Call(each["service"], each["operation"]).action for each in calls} == {"budgets:ModifyBudget"}

        cloudformation.update_stack(StackName="costs", TemplateBody=template(2000))
        settled(aws, "update")
        assert float(budgets.describe_budget(**asked)["Budget"]["BudgetLimit"]["Amount"]) == 2000

        cloudformation.delete_stack(StackName="costs")
        settled(aws, "delete")
        assert budgets.describe_budgets(AccountId=ACCOUNT)["Budgets"] == []


@pytest.mark.parametrize("resource_type", sorted(KINDS))
def test_what_drift_compares_exists_in_the_embedded_aws(resource_type: str) -> None:
    # else 'drift' takes what was only recorded for deleted
    assert handler_for(resource_type) is not None
