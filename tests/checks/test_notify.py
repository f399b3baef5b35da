"""The topic and the event bus that the file names for notifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import KmsKeyAnswer, NotAnswered, SlackChannelAnswer, TopicAnswer
from hyperpod_cdk.checks.model import Case, Result, Status
from tests.support.fake_aws import FakeAws

RunCheck = Callable[..., Result]

TOPIC_CHECK = "notification_topic_takes_alarms"
CHANNEL_CHECK = "notification_channel_can_be_configured"
BUS_CHECK = "notification_bus_exists"
TOPIC = "arn:aws:sns:us-east-1:111122223333:on-call"
BUS = "arn:aws:events:us-east-1:111122223333:event-bus/ml-platform"
KEY = "arn:aws:kms:us-east-1:111122223333:key/1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d"
THEIR_KEY = KEY.replace("111122223333", "444455556666")
MANAGED = (
    f"needs a topic that CloudWatch can publish to, got {TOPIC}, which is encrypted with alias/aws/sns, a key that"
    " CloudWatch may not use; encrypt the topic with your own key whose policy allows cloudwatch.amazonaws.com to use"
    " it"
)
KEY_GONE = (
    "needs a topic whose key exists, got one encrypted with 1a2b3c4d, a key that does not exist; encrypt the topic"
    " with another"
)
TO_TOPIC: dict[str, Any] = {"notify": {"sns_topic_arn": TOPIC}}
TO_BUS: dict[str, Any] = {"notify": {"event_bus_arn": BUS}}


def publish(effect: str = "Allow", *, to: Any, **more: Any) -> dict[str, Any]:
    """A statement about publishing to the topic."""
    return {"Effect": effect, "Principal": to, "Action": "SNS:Publish", "Resource": TOPIC, **more}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    """The policy of a topic."""
    return {"Version": "2008-10-17", "Statement": list(statements)}


ALARMS, BUDGETS = {"Service": "cloudwatch.amazonaws.com"}, {"Service": ["budgets.amazonaws.com"]}
OF_OWNER = {"StringEquals": {"AWS:SourceOwner": "111122223333"}}
OWN = policy(publish(to={"AWS": "*"}, Condition=OF_OWNER))
"""The policy that SNS creates for a topic without one."""
OPEN = policy(publish(to=ALARMS), publish(to=BUDGETS))
NOT_TLS = publish("Deny", to="*", Condition={"Bool": {"aws:SecureTransport": "false"}})


@pytest.fixture
def run(case_of: Callable[..., Case], run_check: Callable[..., Result], fake_aws: FakeAws) -> RunCheck:
    """Runs a check against the environment with changes."""
    return lambda name, changes: run_check(name, case_of(changes), fake_aws)


def lets_in(*services: str, actions: tuple[str, ...] = ("kms:Decrypt", "kms:GenerateDataKey*")) -> dict[str, Any]:
    """The policy of a key that lets services use it."""
    return {
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": f"{each}.amazonaws.com"},
                "Action": [*actions],
                "Resource": "*",
            }
            for each in services
        ]
    }


def not_let_in(service: str) -> str:
    return (
        f"needs a key whose policy allows {service}.amazonaws.com to use it, got {KEY}, whose policy does not; add a"
        " statement for that service with kms:Decrypt and kms:GenerateDataKey*"
    )


def key(arn: str = KEY) -> KmsKeyAnswer:
    return KmsKeyAnswer(arn=arn, state="Enabled", spec="SYMMETRIC_DEFAULT", usage="ENCRYPT_DECRYPT")


@pytest.mark.check("notification_topic_takes_alarms", "passes")
def test_a_topic_without_a_key(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.topic = {TOPIC: TopicAnswer(arn=TOPIC, kms_key="", policy=OWN)}
    assert run(TOPIC_CHECK, TO_TOPIC).status is Status.PASSED
    assert fake_aws.asked == [("topic", TOPIC)]


@pytest.mark.check("notification_topic_takes_alarms", "passes")
@pytest.mark.parametrize("budget", [{}, {"monthly_budget_usd": 9}])
def test_a_topic_whose_key_lets_publishers_in(budget: dict[str, Any], run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.topic = {TOPIC: TopicAnswer(arn=TOPIC, kms_key="alias/on-call", policy=OPEN)}
    fake_aws.answers.kms_key = {"alias/on-call": key()}
    fake_aws.answers.kms_key_policy = {KEY: lets_in("cloudwatch", *(["budgets"] if budget else []))}
    assert run(TOPIC_CHECK, {"notify": {"sns_topic_arn": TOPIC, **budget}}).status is Status.PASSED


def from_(account: str, **more: Any) -> dict[str, Any]:
    return {"Condition": {"StringEquals": {"aws:SourceAccount": account}, **more}}


LIKE = "arn:aws:cloudwatch:us-east-1:111122223333:alarm:"


@pytest.mark.check("notification_topic_takes_alarms", "passes")
@pytest.mark.parametrize(
    "statements",
    [
        (publish(to=ALARMS),),
        (publish(to=ALARMS, **from_("111122223333")), NOT_TLS),
        (publish(to=ALARMS, Condition={"ArnLike": {"aws:SourceArn": f"{LIKE}*"}}),),
        (publish(to="*", Action="sns:*", Resource="*"),),
        (publish(to={"AWS": "*"}, Condition=OF_OWNER), publish("Deny", to={"AWS": "444455556666"})),
        (publish(to={"AWS": "444455556666"}), publish(to={"Service": ["s3.amazonaws.com", *ALARMS.values()]})),
    ],
)
def test_a_topic_whose_policy_lets_alarms_in(
    statements: tuple[dict[str, Any], ...], run: RunCheck, fake_aws: FakeAws
) -> None:
    fake_aws.answers.topic = {TOPIC: TopicAnswer(arn=TOPIC, kms_key="", policy=policy(*statements))}
    result = run(TOPIC_CHECK, TO_TOPIC)
    assert (result.status, result.findings) == (Status.PASSED, ())


def may_not(called: str, add: str) -> str:
    return (
        f"needs a topic whose policy allows {called} to publish, got {TOPIC}, whose policy does not; add a statement"
        f" that allows sns:Publish to {add}"
    )


NO_ALARMS = may_not("cloudwatch.amazonaws.com", "cloudwatch.amazonaws.com, with aws:SourceAccount 111122223333")
NO_BUDGETS = may_not("budgets.amazonaws.com", "budgets.amazonaws.com, with aws:SourceAccount 111122223333")


def not_known(called: str) -> str:
    return (
        f"whether the policy of {TOPIC} allows {called} to publish is unknown, because of its conditions or because no"
        " statement names it; send a test message and check that it arrives"
    )


@pytest.mark.check("notification_topic_takes_alarms", "fails")
@pytest.mark.parametrize(
    ("statements", "budget", "said"),
    [
        ((), False, [NO_ALARMS]),
        ((publish(to={"Service": "s3.amazonaws.com"}),), False, [NO_ALARMS]),
        ((publish(to=ALARMS, Action="sns:Subscribe"),), False, [NO_ALARMS]),
        ((publish(to=ALARMS, Resource=f"{TOPIC}-2"),), False, [NO_ALARMS]),
        ((publish(to=ALARMS, **from_("444455556666")),), False, [NO_ALARMS]),
        ((publish(to={"AWS": "*"}, Condition={"StringEquals": {"AWS:SourceOwner": "4"}}),), False, [NO_ALARMS]),
        ((publish(to=ALARMS), publish("Deny", to="*")), False, [NO_ALARMS]),
        ((publish(to=ALARMS),), True, [NO_BUDGETS]),
        # only the account, one alarm, an organization: whether these are ours no document tells
        ((publish(to={"AWS": "arn:aws:iam::111122223333:root"}),), False, [not_known("cloudwatch.amazonaws.com")]),
        (
            (publish(to=ALARMS, Condition={"ArnLike": {"aws:SourceArn": f"{LIKE}cpu"}}),),
            False,
            [not_known("cloudwatch.amazonaws.com")],
        ),
        (
            (publish(to="*", Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}}),),
            False,
            [not_known("cloudwatch.amazonaws.com")],
        ),
        (
            (publish(to=ALARMS), publish("Deny", to="*", Condition={"StringNotEquals": {"aws:SourceVpc": "vpc-1"}})),
            False,
            [not_known("cloudwatch.amazonaws.com")],
        ),
        # whether the key is there at all, and all resources but one
        (
            (publish(to=ALARMS, Condition={"Null": {"aws:SourceAccount": "false"}}),),
            False,
            [not_known("cloudwatch.amazonaws.com")],
        ),
        (
            (publish(to=ALARMS, Condition={"StringEqualsIfExists": {"aws:SourceAccount": "444455556666"}}),),
            False,
            [NO_ALARMS],
        ),
        (
            ({"Effect": "Allow", "Principal": ALARMS, "Action": "sns:Publish", "NotResource": TOPIC},),
            False,
            [not_known("cloudwatch.amazonaws.com")],
        ),
        ((*OWN["Statement"],), True, [not_known("budgets.amazonaws.com")]),
    ],
)
def test_a_topic_with_a_policy_that_allows_no_publisher(
    *, statements: tuple[dict[str, Any], ...], budget: bool, said: list[str], run: RunCheck, fake_aws: FakeAws
) -> None:
    fake_aws.answers.topic = {TOPIC: TopicAnswer(arn=TOPIC, kms_key="", policy=policy(*statements))}
    found = run(TOPIC_CHECK, {"notify": {"sns_topic_arn": TOPIC, **({"monthly_budget_usd": 9} if budget else {})}})
    assert [each.message for each in found.findings] == said
    assert {each.path for each in found.findings} == {"notify.sns_topic_arn"}
    is_sure = said[0].startswith("needs")
    assert found.status is (Status.FAILED if is_sure else Status.WARNED)


THEIRS = TOPIC.replace("111122223333", "444455556666")


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ({"AWS": "111122223333"}, None),
        ({"AWS": "arn:aws:iam::111122223333:root"}, None),
        ({"AWS": "arn:aws:iam::111122223333:role/one"}, not_known("account 111122223333")),
        ({"AWS": "999988887777"}, may_not("account 111122223333", "arn:aws:iam::111122223333:root")),
    ],
)
def test_a_topic_of_another_account_lets_the_roles_of_this_one_in(
    to: Any, said: str | None, run: RunCheck, fake_aws: FakeAws
) -> None:
    statements = [{**each, "Resource": THEIRS} for each in (publish(to=ALARMS), publish(to=to))]
    fake_aws.answers.topic = {THEIRS: TopicAnswer(arn=THEIRS, kms_key="", policy=policy(*statements))}
    found = run(TOPIC_CHECK, {"notify": {"sns_topic_arn": THEIRS}})
    assert [each.message for each in found.findings] == ([] if said is None else [said.replace(TOPIC, THEIRS)])


@pytest.mark.check("notification_topic_takes_alarms", "fails")
def test_a_topic_with_a_key_that_allows_no_publisher(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.topic = {TOPIC: TopicAnswer(arn=TOPIC, kms_key=KEY, policy=OPEN)}
    fake_aws.answers.kms_key = {KEY: key()}
    fake_aws.answers.kms_key_policy = {KEY: lets_in("sns")}
    result = run(TOPIC_CHECK, {"notify": {"sns_topic_arn": TOPIC, "monthly_budget_usd": 9}})
    assert [each.message for each in result.findings] == [not_let_in("cloudwatch"), not_let_in("budgets")]


@pytest.mark.check("notification_topic_takes_alarms", "fails")
@pytest.mark.parametrize(
    ("topic", "policy", "budget", "message"),
    [
        (None, {}, {}, f"needs a topic that exists, got {TOPIC}; create it, or correct the ARN"),
        ("alias/aws/sns", {}, {}, MANAGED),
        (KEY, lets_in("sns"), {}, not_let_in("cloudwatch")),
        (KEY, lets_in("cloudwatch", actions=("kms:Decrypt",)), {}, not_let_in("cloudwatch")),
        (KEY, lets_in("cloudwatch"), {"monthly_budget_usd": 9}, not_let_in("budgets")),
        ("1a2b3c4d", {}, {}, KEY_GONE),
    ],
)
def test_a_topic_that_takes_no_alarms(  # noqa: PLR0917 - a column of the table each, and two fixtures
    topic: str | None, policy: dict[str, Any], budget: dict[str, Any], message: str, run: RunCheck, fake_aws: FakeAws
) -> None:
    fake_aws.answers.topic = {TOPIC: None if topic is None else TopicAnswer(arn=TOPIC, kms_key=topic, policy=OPEN)}
    fake_aws.answers.kms_key = {KEY: key(), "1a2b3c4d": None}
    fake_aws.answers.kms_key_policy = {KEY: policy}
    (found,) = run(TOPIC_CHECK, {"notify": {"sns_topic_arn": TOPIC, **budget}}).findings
    assert (found.path, found.message) == ("notify.sns_topic_arn", message)


@pytest.mark.check("notification_topic_takes_alarms", "skips")
def test_unknown_state_of_a_topic_is_skipped(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.topic = {TOPIC: NotAnswered("no permission")}
    assert run(TOPIC_CHECK, TO_TOPIC).status is Status.SKIPPED
    fake_aws.answers.topic = {TOPIC: TopicAnswer(arn=TOPIC, kms_key="")}
    assert [each.reason for each in run(TOPIC_CHECK, TO_TOPIC).skipped] == [f"AWS does not show the policy of {TOPIC}"]
    fake_aws.answers.topic = {TOPIC: TopicAnswer(arn=TOPIC, kms_key=KEY, policy=OPEN)}
    fake_aws.answers.kms_key = {KEY: NotAnswered("no permission")}
    assert run(TOPIC_CHECK, TO_TOPIC).status is Status.SKIPPED
    fake_aws.answers.kms_key = {KEY: key()}
    fake_aws.answers.kms_key_policy = {KEY: NotAnswered("no permission")}
    assert run(TOPIC_CHECK, TO_TOPIC).status is Status.SKIPPED
    fake_aws.answers.kms_key = {KEY: key(THEIR_KEY)}
    result = run(TOPIC_CHECK, TO_TOPIC)
    assert result.status is Status.SKIPPED
    assert [each.reason for each in result.skipped] == [f"the policy of {THEIR_KEY} is another account's"]


@pytest.mark.check("notification_bus_exists", "passes")
def test_a_bus_that_is_there(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.event_bus_exists = {"ml-platform": True}
    assert run(BUS_CHECK, TO_BUS).status is Status.PASSED


@pytest.mark.check("notification_bus_exists", "fails")
def test_a_bus_that_is_not_there(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.event_bus_exists = {"ml-platform": False}
    (found,) = run(BUS_CHECK, TO_BUS).findings
    assert (found.path, found.message) == (
        "notify.event_bus_arn",
        f"needs an event bus that exists, got {BUS}; create it, or correct the ARN",
    )


@pytest.mark.check("notification_bus_exists", "skips")
def test_a_bus_that_is_not_reported(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.event_bus_exists = {"ml-platform": NotAnswered("no permission")}
    assert run(BUS_CHECK, TO_BUS).status is Status.SKIPPED
    theirs = BUS.replace("111122223333", "444455556666")
    fake_aws.asked.clear()
    result = run(BUS_CHECK, {"notify": {"event_bus_arn": theirs}})
    assert [each.reason for each in result.skipped] == [
        f"{theirs} belongs to account 444455556666, which is not queried"
    ]
    assert fake_aws.asked == []


TO_SLACK: dict[str, Any] = {"notify": {"slack": {"workspace_id": "T0123ABCD", "channel_id": "C0123ABCD"}}}


def channel(name: str, *, channel_id: str = "C0123ABCD", workspace_id: str = "T0123ABCD") -> SlackChannelAnswer:
    return SlackChannelAnswer(workspace_id=workspace_id, channel_id=channel_id, name=name)


@pytest.mark.check("notification_channel_can_be_configured", "passes")
def test_a_channel_that_is_not_configured_elsewhere(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.slack_workspaces = frozenset({"T0123ABCD"})
    fake_aws.answers.slack_channels = (
        channel("prod-hyperpod-us-east-1"),
        channel("theirs", channel_id="C0123ABCE"),
        channel("theirs", workspace_id="T0123ABCE"),
    )
    assert run(CHANNEL_CHECK, TO_SLACK).status is Status.PASSED


@pytest.mark.check("notification_channel_can_be_configured", "fails")
def test_a_workspace_that_is_not_authorized(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.slack_workspaces = frozenset({"T0123ABCE"})
    result = run(CHANNEL_CHECK, TO_SLACK)
    assert (result.status, [(each.path, each.message) for each in result.findings]) == (
        Status.FAILED,
        [
            (
                "notify.slack.workspace_id",
                (
                    "needs a Slack workspace that account 111122223333 may write to, got T0123ABCD, which nobody has"
                    " authorized; authorize it in the console of Amazon Q Developer in chat applications, or correct"
                    " the ID"
                ),
            )
        ],
    )


def test_a_channel_that_another_configuration_has(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.slack_workspaces = frozenset({"T0123ABCD"})
    fake_aws.answers.slack_channels = (channel("staging-hyperpod-us-east-1"),)
    result = run(CHANNEL_CHECK, TO_SLACK)
    assert (result.status, [(each.path, each.message) for each in result.findings]) == (
        Status.WARNED,
        [
            (
                "notify.slack.channel_id",
                (
                    "C0123ABCD receives the notifications of the configuration staging-hyperpod-us-east-1 already, and"
                    " the service has refused a second configuration of a channel in one account; use another channel"
                ),
            )
        ],
    )


@pytest.mark.check("notification_channel_can_be_configured", "skips")
def test_a_channel_that_is_not_reported(run: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.slack_workspaces = NotAnswered("no permission")
    assert run(CHANNEL_CHECK, TO_SLACK).status is Status.SKIPPED
    fake_aws.answers.slack_workspaces = frozenset({"T0123ABCD"})
    fake_aws.answers.slack_channels = NotAnswered("no permission")
    assert run(CHANNEL_CHECK, TO_SLACK).status is Status.SKIPPED


@pytest.mark.parametrize("name", [TOPIC_CHECK, CHANNEL_CHECK, BUS_CHECK])
@pytest.mark.parametrize("changes", [{}, {"notify": {"emails": ["a@example.com"]}}])
def test_a_topic_that_is_made_is_not_asked_for(
    name: str, changes: dict[str, Any], run: RunCheck, fake_aws: FakeAws
) -> None:
    assert run(name, changes).findings == ()
    assert fake_aws.asked == []
