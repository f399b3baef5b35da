"""The topic, the event bus and the Slack channel that notifications go to, and that somebody else makes."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.notifications import MANAGED_TOPIC_KEY, chat_configuration
from hyperpod_cdk.checks.answers import Aws
from hyperpod_cdk.checks.encryption import allowing, publishers_problem
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error, warning
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.notify import Slack

AREA = "notify"

_TOPIC = "notify.sns_topic_arn"
_BUS = "notify.event_bus_arn"
_WORKSPACE = "notify.slack.workspace_id"
_CHANNEL = "notify.slack.channel_id"


def named_topic(environment: Environment) -> str | None:
    """Give the ARN of the topic that the file names, or None where there is none to look at."""
    return environment.notify.sns_topic_arn if environment.notify else None


def named_bus(environment: Environment) -> str | None:
    """Give the ARN of the event bus that the file names, or None where there is none to look at."""
    return environment.notify.event_bus_arn if environment.notify else None


def named_channel(environment: Environment) -> Slack | None:
    """Give the Slack channel that the file names, or None where there is none to look at."""
    return environment.notify.slack if environment.notify else None


@check(
    area=AREA,
    asks=("topic", "kms_key", "kms_key_policy"),
    inputs="notify.sns_topic_arn, the key that encrypts the topic, and the policy of that key.",
    passes="The topic exists, and is not encrypted, or with a key whose policy lets CloudWatch use it, and Budgets"
    " where there is a budget.",
    fails="There is no such topic: nothing can be subscribed to it, and the last stack fails. Or CloudWatch cannot use"
    " its key, as it never can use alias/aws/sns: alarms change their state and nobody is notified.",
    skips="AWS gives no answer about the topic or its key, or the key is another account's, whose policy only its owner"
    " may read. The policy of the topic itself is not judged.",
    by_hand="aws sns get-topic-attributes --topic-arn arn:aws:sns:us-east-1:111122223333:ml-on-call",
)
def notification_topic_takes_alarms(case: Case, aws: Aws) -> Iterator[Found]:
    """Nothing of the topic is changed, so it has to fit before."""
    environment, arn = case.environment, named_topic(case.environment)
    if arn is None:
        return
    topic = aws.topic(arn)
    if topic is None:
        yield error(_TOPIC, f"needs a topic that exists, got {arn}; make it, or correct the ARN")
    elif topic.kms_key.endswith(MANAGED_TOPIC_KEY):
        yield error(
            _TOPIC,
            f"needs a topic that CloudWatch can publish to, got {arn}, which is encrypted with {MANAGED_TOPIC_KEY}, a"
            " key that CloudWatch may not use; encrypt the topic with a key of your own whose policy lets"
            " cloudwatch.amazonaws.com use it",
        )
    elif topic.kms_key:
        yield from _key(environment, aws, topic.kms_key)


def _key(environment: Environment, aws: Aws, named: str) -> Iterator[Found]:
    key = aws.kms_key(named)
    if key is None:
        yield error(
            _TOPIC,
            f"needs a topic that can be read, got one encrypted with {named}, a key that does not exist; encrypt the"
            " topic with another",
        )
    elif arn_parts(key.arn).account != environment.account:
        yield Skipped(reason=f"the policy of {key.arn} is another account's", path=_TOPIC)
    else:
        statements = allowing(aws.kms_key_policy(key.arn))
        found = publishers_problem(environment, _TOPIC, key.arn, statements)
        if found is not None:
            yield found


@check(
    area=AREA,
    asks=("event_bus_exists",),
    inputs="notify.event_bus_arn.",
    passes="The event bus exists.",
    fails="The account has no bus of this name in the region: notifications would go nowhere.",
    skips="EventBridge does not answer, or the bus is another account's, which is not asked.",
    by_hand="aws events describe-event-bus --name ml-platform",
)
def notification_bus_exists(case: Case, aws: Aws) -> Iterator[Found]:
    """A rule is made for a bus that does not exist, too, and its events are lost."""
    arn = named_bus(case.environment)
    if arn is None:
        return
    account = arn_parts(arn).account
    if account != case.environment.account:
        yield Skipped(reason=f"{arn} belongs to account {account}, which is not asked", path=_BUS)
    elif not aws.event_bus_exists(arn.rpartition("/")[2]):
        yield error(_BUS, f"needs an event bus that exists, got {arn}; make it, or correct the ARN")


@check(
    area=AREA,
    asks=("slack_workspaces", "slack_channels"),
    inputs="notify.slack, and the name of the HyperPod cluster.",
    passes="The account may write to the Slack workspace, and no other configuration writes to the channel.",
    fails="Nobody has authorized the workspace, which only a person can do, in the console of Amazon Q Developer in"
    " chat applications: the last stack fails. A warning where the channel is another configuration's, such as another"
    " environment's: the service takes a channel once for an account.",
    skips="Amazon Q Developer in chat applications does not answer, in us-east-2.",
    by_hand="aws chatbot describe-slack-workspaces --region us-east-2",
)
def notification_channel_can_be_configured(case: Case, aws: Aws) -> Iterator[Found]:
    """What a person must have done before is asked for before the cluster is there."""
    environment, slack = case.environment, named_channel(case.environment)
    if slack is None:
        return
    if slack.workspace_id not in aws.slack_workspaces():
        yield error(
            _WORKSPACE,
            f"needs a Slack workspace that account {environment.account} may write to, got {slack.workspace_id}, which"
            " nobody has authorized; authorize it in the console of Amazon Q Developer in chat applications, or correct"
            " the ID",
        )
        return
    own = chat_configuration(environment.hyperpod_cluster_name)
    for each in aws.slack_channels():
        if (each.workspace_id, each.channel_id) == (slack.workspace_id, slack.channel_id) and each.name != own:
            yield warning(
                _CHANNEL,
                f"{slack.channel_id} receives the notifications of the configuration {each.name} already, and the"
                " service has refused a second configuration of a channel in one account; name another channel",
            )
