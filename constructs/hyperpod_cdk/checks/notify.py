"""The topic, the event bus and the Slack channel that notifications go to, and that this project does not create."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.iam_matching import Statement, answers, is_positive, matches, names_account, names_service
from hyperpod_cdk.catalog.notifications import BUDGETS, CLOUDWATCH, MANAGED_TOPIC_KEY, chat_configuration, principal
from hyperpod_cdk.checks.answers import Aws, TopicAnswer
from hyperpod_cdk.checks.encryption import publishers_problems
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error, warning
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.notify import Slack

AREA = "notify"

_CLOUDWATCH = principal(CLOUDWATCH)
_BUDGETS = principal(BUDGETS)

_TOPIC = "notify.sns_topic_arn"
_BUS = "notify.event_bus_arn"
_WORKSPACE = "notify.slack.workspace_id"
_CHANNEL = "notify.slack.channel_id"


def named_topic(environment: Environment) -> str | None:
    """Return the ARN of the topic that the file names, or None if there is none to check."""
    return environment.notify.sns_topic_arn if environment.notify else None


def named_bus(environment: Environment) -> str | None:
    """Return the ARN of the event bus that the file names, or None if there is none to check."""
    return environment.notify.event_bus_arn if environment.notify else None


def named_channel(environment: Environment) -> Slack | None:
    """Return the Slack channel that the file names, or None if there is none to check."""
    return environment.notify.slack if environment.notify else None


@check(
    area=AREA,
    asks=("topic", "kms_key", "kms_key_policy"),
    inputs="notify.sns_topic_arn and monthly_budget_usd, the policy of the topic, the key that encrypts it, and the"
    " policy of that key.",
    passes="The topic exists, its policy allows CloudWatch to publish (SNS's own policy does so within one account),"
    " and"
    " Budgets if there is a budget, and it is not encrypted, or with a key whose policy allows them to use it.",
    fails="There is no such topic: nothing can be subscribed to it, and the last stack fails. Or its policy does"
    " not allow CloudWatch, Budgets, or the roles of another account to publish, or CloudWatch cannot use its key, as"
    " it never"
    " can use alias/aws/sns: alarms change their state and nobody is notified. A warning if the policy allows it"
    " on conditions that are unknown here, or if it is not documented whether it allows it.",
    skips="AWS gives no answer about the topic, its policy or its key, or the key is another account's, whose policy"
    " only its owner may read.",
    by_hand="aws sns get-topic-attributes --topic-arn arn:aws:sns:us-east-1:111122223333:ml-on-call",
)
def notification_topic_takes_alarms(case: Case, aws: Aws) -> Iterator[Found]:
    """The topic is not changed, so it must fit before."""
    environment, arn = case.environment, named_topic(case.environment)
    if arn is None:
        return
    topic = aws.topic(arn)
    if topic is None:
        yield error(_TOPIC, f"needs a topic that exists, got {arn}; create it, or correct the ARN")
        return
    # AWS re:Post, "Why didn't I receive an SNS notification for my CloudWatch alarm trigger?"; AWS Cost Management user
    # guide, "Creating an Amazon SNS topic for budget notifications", both read 2026-11-27
    yield from _policy(environment, topic)
    if topic.kms_key.endswith(MANAGED_TOPIC_KEY):
        yield error(
            _TOPIC,
            f"needs a topic that CloudWatch can publish to, got {arn}, which is encrypted with {MANAGED_TOPIC_KEY}, a"
            " key that CloudWatch may not use; encrypt the topic with your own key whose policy allows"
            " cloudwatch.amazonaws.com to use it",
        )
    elif topic.kms_key:
        yield from _key(environment, aws, topic.kms_key)


@dataclass(frozen=True)
class _Publisher:
    """Who publishes to the topic: ``service`` by its principal, or a role of the account; ``source``: the resource."""

    service: str
    account: str
    source: str = ""

    @property
    def called(self) -> str:
        return self.service or f"account {self.account}"


def _publishers(environment: Environment, owner: str) -> Iterator[_Publisher]:
    account, partition = environment.account, environment.partition
    alarm = f"alarm:{environment.hyperpod_cluster_name}-hyperpod-nodes-missing-of-a-group"
    yield _Publisher(_CLOUDWATCH, account, f"arn:{partition}:cloudwatch:{environment.region}:{account}:{alarm}")
    if environment.notify is not None and environment.notify.monthly_budget_usd is not None:
        yield _Publisher(_BUDGETS, account, f"arn:{partition}:budgets::{account}:budget/of-the-stack")
    if owner != account:
        # within one account the policies of the roles are enough (IAM user guide, "Policy evaluation logic")
        yield _Publisher("", account)


def _policy(environment: Environment, topic: TopicAnswer) -> Iterator[Found]:
    if topic.policy is None:
        yield Skipped(reason=f"AWS does not show the policy of {topic.arn}", path=_TOPIC)
        return
    owner = arn_parts(topic.arn).account
    for each in _publishers(environment, owner):
        lets = _lets(topic, owner, each)
        if lets is False:
            principal = each.service or f"arn:{environment.partition}:iam::{each.account}:root"
            yield error(
                _TOPIC,
                f"needs a topic whose policy allows {each.called} to publish, got {topic.arn}, whose policy does not;"
                " add a"
                f" statement that allows sns:Publish to {principal}"
                f"{f', with aws:SourceAccount {each.account}' if each.service else ''}",
            )
        elif lets is None:
            yield warning(
                _TOPIC,
                f"whether the policy of {topic.arn} allows {each.called} to publish is unknown, because of its"
                " conditions or"
                " because no statement names it; send a test message and check that it arrives",
            )


def _lets(topic: TopicAnswer, owner: str, publisher: _Publisher) -> bool | None:
    """Return whether the policy of a topic allows a principal to publish, None if the policy alone does not show it."""
    found = answers(
        topic.policy,
        "sns:Publish",
        topic.arn,
        names=lambda statement: _names(statement, owner, publisher),
        holds=lambda operator, key, values: _holds(operator, key, values, publisher),
    )
    return {"lets": True, "unknown": None}.get(found, False)


def _names(statement: Statement, owner: str, publisher: _Publisher) -> bool | None:
    if names_service(statement, frozenset({publisher.service})):
        return True
    if publisher.service:
        # no document says for whom CloudWatch publishes if only the account is named
        return False if names_account(statement, owner) is False else None
    return names_account(statement, publisher.account)


def _holds(operator: str, key: str, values: Sequence[str], publisher: _Publisher) -> bool | None:
    """Return whether a condition is true for a publication, for the condition keys of AWS's own examples, else None."""
    # a service says for whom it publishes, so an optional key is present
    if not is_positive(operator, may_lack=bool(publisher.service)):
        return None
    if key == "aws:securetransport":
        return "true" in [each.lower() for each in values]
    if key == "aws:sourceaccount":
        return bool(publisher.service) and any(matches(each, publisher.account) for each in values)
    if key == "aws:sourceowner":
        # the policy that SNS gives a topic; Budgets needs its own statement
        is_owner = any(matches(each, publisher.account) for each in values)
        return is_owner and (publisher.service == _CLOUDWATCH or None)
    if key == "aws:sourcearn":
        return any(matches(each, publisher.source) for each in values) or None
    return None


def _key(environment: Environment, aws: Aws, named: str) -> Iterator[Found]:
    key = aws.kms_key(named)
    if key is None:
        yield error(
            _TOPIC,
            f"needs a topic whose key exists, got one encrypted with {named}, a key that does not exist; encrypt the"
            " topic with another",
        )
    elif arn_parts(key.arn).account != environment.account:
        yield Skipped(reason=f"the policy of {key.arn} is another account's", path=_TOPIC)
    else:
        yield from publishers_problems(environment, _TOPIC, key.arn, aws.kms_key_policy(key.arn))


@check(
    area=AREA,
    asks=("event_bus_exists",),
    inputs="notify.event_bus_arn.",
    passes="The event bus exists.",
    fails="The account has no bus of this name in the region: notifications would go nowhere.",
    skips="EventBridge does not answer, or the bus is another account's, which is not queried.",
    by_hand="aws events describe-event-bus --name ml-platform",
)
def notification_bus_exists(case: Case, aws: Aws) -> Iterator[Found]:
    """A rule can be created for a bus that does not exist, and its events are lost."""
    arn = named_bus(case.environment)
    if arn is None:
        return
    account = arn_parts(arn).account
    if account != case.environment.account:
        yield Skipped(reason=f"{arn} belongs to account {account}, which is not queried", path=_BUS)
    elif not aws.event_bus_exists(arn.rpartition("/")[2]):
        yield error(_BUS, f"needs an event bus that exists, got {arn}; create it, or correct the ARN")


@check(
    area=AREA,
    asks=("slack_workspaces", "slack_channels"),
    inputs="notify.slack, and the name of the HyperPod cluster.",
    passes="The account may write to the Slack workspace, and no other configuration writes to the channel.",
    fails="Nobody has authorized the workspace, which only a person can do, in the console of Amazon Q Developer in"
    " chat applications: the last stack fails. A warning if another configuration uses the channel, such as another"
    " environment's: the service accepts a channel once for an account.",
    skips="Amazon Q Developer in chat applications does not answer, in us-east-2.",
    by_hand="aws chatbot describe-slack-workspaces --region us-east-2",
)
def notification_channel_can_be_configured(case: Case, aws: Aws) -> Iterator[Found]:
    """Check what a person must do before the deployment."""
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
    own = chat_configuration(environment.hyperpod_cluster_name, environment.region)
    for each in aws.slack_channels():
        if (each.workspace_id, each.channel_id) == (slack.workspace_id, slack.channel_id) and each.name != own:
            yield warning(
                _CHANNEL,
                f"{slack.channel_id} receives the notifications of the configuration {each.name} already, and the"
                " service has refused a second configuration of a channel in one account; use another channel",
            )
