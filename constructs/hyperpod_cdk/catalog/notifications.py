"""Notifications about a cluster: limits, names and formats of their recipients."""

from __future__ import annotations

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.regions import REGION_REGEX
from hyperpod_cdk.catalog.rules import Bound, Pattern

ALARM_ACTIONS = Bound(maximum=5, source="CloudWatch API reference, PutMetricAlarm; boto")
ALARM_ACTION = Pattern(
    regex=r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:[^:\s]*:\S+",
    maximum=1024,
    describes="the ARN of an alarm action, such as an SNS topic",
    refers=True,
    example="arn:aws:sns:us-east-1:111122223333:on-call",
    source="CloudWatch API reference, PutMetricAlarm, AlarmActions, 2026-11; boto",
)
EMAIL = Pattern(
    regex=r"[A-Za-z0-9.!#%&'*+/=?^_|~-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}",
    minimum=6,
    maximum=254,
    describes="an e-mail address",
    refers=True,
    example="ml-on-call@example.com",
    source="RFC 5321, sections 4.1.2 and 4.5.3.1, without quoted names and addresses of hosts by number",
)
TOPIC_ARN = Pattern(
    regex=rf"arn:aws[a-z-]*:sns:{REGION_REGEX}:[0-9]{{12}}:[A-Za-z0-9_-]{{1,256}}",
    maximum=2048,
    describes="the ARN of an SNS topic, but not of a FIFO topic (.fifo), to which no e-mail address can be subscribed",
    refers=True,
    example="arn:aws:sns:us-east-1:111122223333:ml-on-call",
    source="SNS API reference, CreateTopic, Name; SNS developer guide, FIFO topics, message delivery",
)
SLACK_WORKSPACE_ID = Pattern(
    regex=r"T[0-9A-Z]{1,254}",
    minimum=2,
    maximum=255,
    describes="the ID of a Slack workspace: T, then capital letters and digits",
    refers=True,
    example="T0123ABCD",
    source="AWS::Chatbot::SlackChannelConfiguration, SlackWorkspaceId; Slack help, Locate your Slack URL or ID",
)
SLACK_CHANNEL_ID = Pattern(
    regex=r"[CG][0-9A-Z]{1,255}",
    minimum=2,
    maximum=256,
    describes="the ID of a Slack channel: C, or G of some private ones, then capital letters and digits",
    refers=True,
    example="C0123ABCD",
    source="AWS::Chatbot::SlackChannelConfiguration, SlackChannelId; Slack help, Locate your Slack URL or ID",
)
CHAT_REGION = "us-east-2"
"""The Region of the Amazon Q Developer in chat applications API for Slack, for every cluster: the API answers in four
Regions, its console in this one alone (Amazon Q Developer in chat applications API reference, "Welcome")."""


def chat_configuration(cluster_name: str, region: str) -> str:
    """Return the name of the configuration of a cluster's channel, which is unique in the account in all regions."""
    return f"{cluster_name}-hyperpod-{region}"


def alarm_name(cluster_name: str, name: str) -> str:
    """Return the name of one of a cluster's alarms; names of HyperPod clusters are unique in an account and Region."""
    return f"{cluster_name}-hyperpod-{name}"


EVENT_BUS_ARN = Pattern(
    regex=rf"arn:aws[a-z-]*:events:{REGION_REGEX}:[0-9]{{12}}:event-bus/[A-Za-z0-9_.-]{{1,256}}",
    maximum=1600,
    describes="the ARN of an EventBridge event bus, with :event-bus/ in it",
    refers=True,
    example="arn:aws:events:us-east-1:111122223333:event-bus/ml-platform",
    source="EventBridge API reference, CreateEventBus, Name",
)
DEFAULT_BUS = "event-bus/default"
MANAGED_TOPIC_KEY = "alias/aws/sns"
"""The key that AWS manages for SNS; its fixed policy does not allow CloudWatch alarms (AWS re:Post, "How do
I configure a CloudWatch alarm with an encrypted Amazon SNS topic?")."""

SUBSCRIPTIONS = Bound(minimum=0, maximum=50, source="a bound of this library: a larger circle is a mailing list")
NODES_MISSING_MINUTES = Bound(
    minimum=5, maximum=1440, source="CloudWatch: an alarm looks back over a day at most; five minutes between two looks"
)
BUDGET_TYPE = "AWS::Budgets::Budget"
BUDGET_PERCENT = (80, 100)
"""Percent of a budget's limit at which actual costs are reported; a forecast is reported at the last of them."""
PERCENT = Bound(minimum=1, maximum=99, source="a percentage; at 100 nothing can be written any more")
QUOTA_PERCENT = Bound(minimum=1, maximum=100, source="a percentage; at 100 no further node comes")
MONTHLY_BUDGET_USD = Bound(minimum=1, source="AWS::Budgets::Budget, BudgetLimit.Amount: a budget of cost is above 0")

STORAGE_USED = "StorageCapacityUtilization"
"""Percent used of one storage target, by FileSystemId and StorageTargetId, in AWS/FSx (FSx for Lustre user guide,
"Amazon FSx for Lustre metrics and dimensions"); a file system of intelligent tiering has no capacity to fill."""

WATCH_MINUTES = 5
"""Minutes between two checks of what sends no event: missing nodes, training plans, quotas."""

CLOUDWATCH = "cloudwatch"
BUDGETS = "budgets"


def publishers(*, has_budget: bool) -> tuple[str, ...]:
    """Return the services that publish to a topic of notifications, as the first parts of their principals."""
    return (CLOUDWATCH, BUDGETS) if has_budget else (CLOUDWATCH,)


def principal(service: str) -> str:
    """Return the principal of one of ``publishers``."""
    return f"{service}.amazonaws.com"


def topic_problem(arn: str, *, partition: str, region: str) -> str | None:
    """Say that alarms of ``region`` cannot publish to a topic, or return None."""
    return _reach_problem("a topic", arn, partition=partition, region=region)


def budget_topic_problem(arn: str, *, account: str) -> str | None:
    """Say that the budget of an account cannot publish to a topic, or return None."""
    owner = arn_parts(arn).account
    if owner == account:
        return None
    # AWS Cost Management user guide, "Creating an Amazon SNS topic for budget notifications", read 2026-11-27
    return (
        f"needs a topic of account {account}, because a budget cannot publish to another account's, got one of {owner};"
        " remove monthly_budget_usd, or use a topic of the same account"
    )


def event_bus_problem(arn: str, *, partition: str, region: str, account: str) -> str | None:
    """Say that messages of ``region`` cannot be sent to an event bus, or that it gets them already, or return None."""
    problem = _reach_problem("an event bus", arn, partition=partition, region=region)
    if problem is None and arn.endswith(f":{account}:{DEFAULT_BUS}"):
        return (
            "must be another bus than the account's default one, which already gets HyperPod's events, got"
            f" {arn}; use a bus of your own"
        )
    return problem


def _reach_problem(what: str, arn: str, *, partition: str, region: str) -> str | None:
    of = arn_parts(arn)
    if (of.partition, of.region) == (partition, region):
        return None
    # CloudWatch user guide, "Notifying users on alarm changes": the topic must be in the alarm's Region; PutEvents
    # and bus targets stay in the region, too, where an endpoint is not named
    return f"must be {what} of {region}, where the cluster and its alarms are, got {arn}; name one of {region}"
