"""Drift of the stacks themselves: what a person can change of them by calls that change no resource.

What comes of each is what the CDK CLI 2.1148.1 does: ``canSkipDeploy``, ``updateTerminationProtection`` and the request
of its change sets, which names no policy; and what CloudFormation does with a policy (user guide, "Prevent updates to
stack resources") and with tags (user guide, "Resource tag").
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.living.facts import canonical
from hyperpod_cdk.living.model import Next, Unread
from hyperpod_cdk.templates.deployment import TOPICS
from tests.living.account import ACCOUNT, REGION, Account, only
from tests.living.test_life import look
from tests.support.scripted_aws import Fails
from tests.transitions.test_lives import living

COMPARED = "'cdk deploy' compares it with the app's, even if nothing else of the stack changes."
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:told"
ALLOWS_ALL = {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}
KEEPS = {"Effect": "Deny", "Action": ["Update:Replace"], "Principal": "*", "Resource": "LogicalResourceId/Cluster"}


def _changed(account: Account) -> None:
    account.in_file()["NodeRecovery"] = "None"


@pytest.mark.parametrize(
    ("stack", "app", "expected"),
    [
        (
            {"EnableTerminationProtection": False},
            {},
            ("TerminationProtection", "true", "true", "false", Next(effect="sets", sentence=f"Enables it: {COMPARED}")),
        ),
        (
            {"EnableTerminationProtection": False},
            {"termination_protection": False},
            (
                "TerminationProtection",
                "true",
                "false",
                "false",
                Next(effect="agrees", sentence="The file says what AWS has: nothing changes."),
            ),
        ),
        (
            {"Tags": [{"Key": "owner", "Value": "dana"}]},
            {},
            (
                "Tags[owner]",
                None,
                None,
                "dana",
                Next(
                    effect="sets",
                    sentence=(
                        "Sets Tags[owner] from dana to nothing, and on all resources of the stack that take tags:"
                        f" {COMPARED}"
                    ),
                ),
            ),
        ),
        (
            {"NotificationARNs": [TOPIC]},
            {"settings": {TOPICS: ()}},
            (
                f"NotificationARNs[{TOPIC}]",
                None,
                None,
                "there",
                Next(effect="sets", sentence=f"Sets NotificationARNs[{TOPIC}] from there to nothing: {COMPARED}"),
            ),
        ),
    ],
    ids=["protection", "protection, and the file followed", "tag", "topic"],
)
def test_a_setting_that_was_changed_on_aws(
    stack: dict[str, Any], app: dict[str, Any], expected: tuple[str, str | None, str | None, str | None, Next]
) -> None:
    found = Account(stack=stack, app=app).drift()
    each = only(found)
    assert (each.path, each.deployed, each.file, each.actual, each.next) == expected
    assert (each.stack, each.resource, each.type) == ("dev-foundation", "dev-foundation", "AWS::CloudFormation::Stack")
    assert each.id == f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/dev-foundation/0"
    assert (found.passed, found.skipped) == (False, ())


def test_a_protection_that_the_app_never_had_goes_with_the_next_deployment() -> None:
    account = Account(app={"termination_protection": False})
    for templates in (account.deployed, account.head):
        del templates["dev-foundation"]["Resources"]["StackProtection"]
    each = only(account.drift())
    assert (each.deployed, each.file, each.actual) == ("false", "false", "true")
    assert each.next == Next(effect="sets", sentence=f"Disables it: {COMPARED}")


def test_who_changed_a_setting_is_not_known_where_the_template_changes_too() -> None:
    account = Account(stack={"Tags": [{"Key": "owner", "Value": "dana"}], "EnableTerminationProtection": False})
    _changed(account)
    for templates in (account.deployed, account.head):
        del templates["dev-foundation"]["Resources"]["StackProtection"]
    found = account.drift()
    reason = (
        "it differs from the app, and so does the template: it is unknown whether a person changed it or the app did"
    )
    assert found.differences == ()
    assert found.skipped == (
        Unread(what="TerminationProtection of dev-foundation", reason=reason),
        Unread(what="Tags[owner] of dev-foundation", reason=reason),
    )
    assert found.passed is None


@pytest.mark.parametrize(
    ("statements", "is_reported"),
    [
        ([KEEPS], True),
        ([ALLOWS_ALL, KEEPS], True),
        ([{**ALLOWS_ALL, "Condition": {"StringEquals": {"ResourceType": ["AWS::EC2::VPC"]}}}], True),
        ([{**ALLOWS_ALL, "Action": "Update:Modify"}], True),
        # none refuses anything
        ([ALLOWS_ALL], False),
        ([{**ALLOWS_ALL, "Action": ["Update:*"]}, {**ALLOWS_ALL, "Action": "Update:Modify"}], False),
    ],
)
def test_a_policy_is_reported_where_it_refuses_something(statements: list[dict[str, Any]], is_reported: bool) -> None:  # noqa: FBT001
    account = Account()
    account.more["cloudformation:GetStackPolicy"] = {"StackPolicyBody": json.dumps({"Statement": statements})}
    found = account.drift()
    refuses = "CloudFormation refuses every update of a resource that the policy does not allow, and rolls back."
    if not is_reported:
        assert (found.differences, found.passed) == ((), True)
        return
    each = only(found)
    assert (each.path, each.deployed, each.file) == ("StackPolicy", None, None)
    assert each.next == Next(
        effect="nothing",
        sentence="Nothing: 'cdk deploy' keeps the policy, and this stack is not in the change.",
        later=f"The next change of this stack: {refuses}",
    )
    _changed(account)
    assert only(account.drift()).next == Next(
        effect="unknown",
        sentence=f"Unknown: it changes resources of this stack, and {refuses[:-1]}. 'cdk deploy' keeps the policy.",
    )


@pytest.mark.parametrize(
    "body", ["{", "[]", '{"Version": 1}', '{"Statement": [1]}', '{"Statement": [{"Action": "Update:*"}]}']
)
def test_a_policy_that_cannot_be_read_is_skipped(body: str) -> None:
    account = Account()
    account.more["cloudformation:GetStackPolicy"] = {"StackPolicyBody": body}
    (gap,) = account.drift().skipped
    assert gap.what == "StackPolicy of dev-foundation"
    assert gap.reason.startswith("the answer to cloudformation:GetStackPolicy cannot be read: ")


def test_a_policy_that_nobody_may_read_is_skipped() -> None:
    account = Account()
    account.more["cloudformation:GetStackPolicy"] = Fails("AccessDenied", "no right")
    found = account.drift()
    assert [(each.what, each.action) for each in found.skipped] == [
        ("StackPolicy of dev-foundation", "cloudformation:GetStackPolicy")
    ]
    assert found.passed is None


def test_what_an_option_of_the_cdk_cli_may_have_set_is_a_note() -> None:
    """Topics and rollback triggers that the app does not state: 'cdk deploy' has options for both, and leaves them."""
    triggers = [{"Arn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:nodes", "Type": "AWS::CloudWatch::Alarm"}]
    rollback = {"RollbackTriggers": triggers, "MonitoringTimeInMinutes": 5}
    found = Account(stack={"NotificationARNs": [TOPIC], "RollbackConfiguration": rollback}).drift()
    assert (found.differences, found.skipped, found.passed) == ((), (), True)
    told, watched = found.notes
    assert told == (
        f"dev-foundation still sends its events to {TOPIC}: the app names no topics, and 'cdk deploy' then keeps"
        " those of the stack."
    )
    assert watched == (
        "dev-foundation has rollback triggers, which were set outside of the app: CloudFormation rolls its update"
        " back if nodes goes into ALARM during it or within 5 minutes after it, and also if nodes does not exist"
        " then, for example because a step deletes it."
    )


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_what_is_reported_about_stacks_is_what_the_next_deployment_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is as it was deployed: nothing but the stacks themselves changes."""
    with living(tmp_path, monkeypatch) as life:
        cloudformation = life.aws.client("cloudformation")
        cloudformation.update_termination_protection(StackName="small-hyperpod", EnableTerminationProtection=False)
        cloudformation.update_termination_protection(StackName="small-foundation", EnableTerminationProtection=True)
        keeps = json.dumps({"Statement": [ALLOWS_ALL, KEEPS]})
        cloudformation.set_stack_policy(StackName="small-storage", StackPolicyBody=keeps)
        (stack,) = cloudformation.describe_stacks(StackName="small-observability")["Stacks"]
        cloudformation.update_stack(
            StackName="small-observability",
            UsePreviousTemplate=True,
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Tags=[*stack["Tags"], {"Key": "owner", "Value": "dana"}],
            Parameters=[{"ParameterKey": "BootstrapVersion", "UsePreviousValue": True}],
        )
        cloudformation.get_waiter("stack_update_complete").wait(StackName="small-observability")
        found = look(life)
        assert [(each.resource, each.path, each.actual, each.next.effect) for each in found.differences] == [
            ("small-foundation", "TerminationProtection", "true", "sets"),
            ("small-storage", "StackPolicy", canonical(json.loads(keeps)), "nothing"),
            ("small-hyperpod", "TerminationProtection", "false", "sets"),
            ("small-observability", "Tags[owner]", "dana", "sets"),
        ]
        assert found.skipped == ()
        life.change()
        assert [(each.resource, each.path) for each in look(life).differences] == [("small-storage", "StackPolicy")]
