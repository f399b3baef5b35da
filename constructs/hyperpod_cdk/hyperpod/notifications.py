"""Notifies a team about its cluster: a topic, alarms that publish to it, and a function for what has no alarm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import aws_cdk as cdk
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import Construct

from hyperpod_cdk.catalog import hyperpod, quotas, regions
from hyperpod_cdk.catalog import notifications as facts
from hyperpod_cdk.catalog.arns import TOPIC_KEY_ACTIONS, arn_parts
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.lustre import FILE_SYSTEM_ID
from hyperpod_cdk.catalog.quotas import Quota
from hyperpod_cdk.catalog.rules import repeated_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import ACTION, RESOURCE, acknowledge, ignore_in_checkov
from hyperpod_cdk.common.handler_functions import document, handler_function, handler_role
from hyperpod_cdk.common.keys import EncryptionKey
from hyperpod_cdk.common.stack_arns import HERE, arn_here, arn_of_aws
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for, refuse_unknown_types, refuse_unlike
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.hyperpod import HyperPod
from hyperpod_cdk.config.notify import EVENTS, FUNCTION_EVENTS, Event, Notify, Slack
from hyperpod_cdk.config.storage import FILE_SYSTEM_NAME
from hyperpod_cdk.config.wanted_alarms import alarms
from hyperpod_cdk.handlers.notifications import index as told
from hyperpod_cdk.handlers.quota_gate.reading import QUOTA_ACTIONS

_HYPERPOD_EVENTS = frozenset({"node_unhealthy", "node_rebooted", "node_replaced", "deep_health_check_failed"})
_WATCHED = frozenset({"nodes_missing", "training_plan", "deep_health_check_failed", "quota_used"})

_ALL_CLUSTERS = "arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:cluster/*"
_NO_KEY = (
    "A topic with SNS's own key takes no alarm: CloudWatch may not use it (CloudWatch user guide, alarm actions);"
    " encryption.notifications is for another"
)
_FUNCTION = {
    "CKV_AWS_115": "It runs for seconds, every few minutes and with HyperPod's events; a reserved share would be taken"
    " from the account's others",
    "CKV_AWS_116": "Lambda tries an event twice more, and an alarm tells of one that is lost",
    "CKV_AWS_173": "The variable holds names and ARNs, no secret",
    "CKV_AWS_45": "The variable holds names and ARNs, no secret",
}


@judged()
@dataclass(frozen=True, kw_only=True)
class SlackChannel:
    """A channel of Slack in a workspace that was authorized for Amazon Q Developer in chat applications.

    ``workspace_id`` (str): ID of the workspace, such as ``T0123ABCD``. Raises ValueError for text of another form.

    ``channel_id`` (str): ID of the channel, such as ``C0123ABCD``. Raises ValueError for text of another form.
    """

    workspace_id: str
    channel_id: str

    def __post_init__(self) -> None:
        refuse(Slack, workspace_id=self.workspace_id, channel_id=self.channel_id)


@judged(
    known=("instance_groups", "instance_types", "nodes_missing_minutes", "spot_instance_types"),
    whole=("training_plan_arns",),
)
class Notifications(Construct):
    """Notifies a team about one HyperPod cluster, through one SNS topic.

    A topic is created, whose policy allows this account's alarms of this cluster to publish and nobody without TLS,
    unless
    ``topic_arn`` names an existing one, which is not changed. Each message says what happened, where (environment,
    group, node, account, region), since when, and the command for details.

    HyperPod's own events (node unhealthy, rebooted, replaced) are reported immediately. Every five minutes a function
    checks what sends no event. It writes how many nodes are missing in each group as the metric ``NodesMissing`` of the
    namespace
    ``HyperPod/<cluster_name>``, by ``InstanceGroup``, which alarms watch. It reports training plans 7 days, 1 day and
    90 minutes before they start and end, and when they do, and failed deep health checks from their logs. The metric
    ``QuotaUsedPercent``, by ``Quota``, is how much of a quota for instances all HyperPod clusters of the account and
    region use; if AWS does not show quota or use, nothing is written, and the alarm reports that it has no data. An
    alarm reports if the function itself fails or does not run. Each file system has two alarms: on its whole capacity,
    and on its fullest storage target. ``cluster_error`` is the alarm of ``NodeEvents``, which accepts ``topic_arn`` of
    this construct in its
    ``alarm_actions``.

    ``cluster_name`` (str): name of the HyperPod cluster. Raises ValueError for a name that HyperPod refuses.

    ``cluster_arn`` (str, ARN): the same cluster. Raises ValueError for text that is not the ARN of a HyperPod cluster.

    ``environment_name`` (str): the environment's name in messages. Default: the name of the cluster. Raises ValueError
    unless it is 1 to 16 lower-case letters, digits and single hyphens.

    ``emails`` (Sequence[str]): addresses that get the messages; SNS asks each for a confirmation. Default: none. Raises
    ValueError for text that is not an address, and for a repeated one.

    ``topic_arn`` (str, ARN): a topic in the stack's region, whose policy allows CloudWatch to publish. Default: a topic
    is created. Raises ValueError for text that is not such an ARN, a FIFO topic, and a topic of another region.

    ``topic_key`` (EncryptionKey): the KMS key of the new topic; the policy of an existing key must allow
    ``cloudwatch.amazonaws.com``, with a budget ``budgets.amazonaws.com``, and IAM policies of the account to use it.
    Default: none, because alarms cannot publish to a topic with SNS's own key. Raises ValueError together with
    ``topic_arn``.

    ``slack`` (SlackChannel): workspace and channel of Slack. Default: none.

    ``event_bus_arn`` (str, ARN): an event bus of the stack's region that gets every message and every change of an
    alarm. Default: none. Raises ValueError for text that is not such an ARN, for a bus of another region, and for
    the account's default bus, which gets HyperPod's events already. A bus of another account must let this one send.

    ``monthly_budget_usd`` (int, USD): what the account may spend in the region each month. Default: no budget. Raises
    ValueError for less than 1, and together with a topic of another account.

    ``events`` (Sequence["node_unhealthy" | "node_rebooted" | "node_replaced" | "deep_health_check_failed" |
    "cluster_error" | "nodes_missing" | "training_plan" | "file_system_full" | "quota_used"]): the events to report.
    Default: all. Raises ValueError for another or repeated value.

    ``instance_groups`` (Sequence[str]): names of the groups whose nodes are counted. Default: none. Raises ValueError
    for a name that HyperPod refuses.

    ``training_plan_arns`` (Sequence[str], ARNs): the plans whose times are reported. Default: none. Raises ValueError
    for text that is not the ARN of a plan.

    ``instance_types`` (Sequence[str | InstanceType]): types on demand or on training plans whose quota for cluster
    usage is watched, each its name or, if the catalog does not have it, an ``InstanceType``. Default: none. Raises
    ValueError for a name that the catalog does not have.

    ``spot_instance_types`` (Sequence[str | InstanceType]): types whose quota for cluster spot instance usage is
    watched, each as in ``instance_types``. Default: none. Raises ValueError for a name that the catalog does not have.

    ``file_systems`` (Mapping[str, str]): name -> ID of the FSx for Lustre file systems of fixed capacity. Default:
    none. Raises ValueError for an invalid name or ID.

    ``nodes_missing_minutes`` (int, minutes): how long nodes of a group must be missing. Default: 30. Raises ValueError
    unless it is 5 to 1440.

    ``file_system_percent`` (int, percent): how full a file system must be. Default: 75. Raises ValueError unless it is
    1 to 99.

    ``storage_target_percent`` (int, percent): how full one storage target must be. Default: 85. Raises ValueError
    unless it is 1 to 99.

    ``quota_percent`` (int, percent): how much of a quota must be used. Default: 80. Raises ValueError unless it is 1 to
    100.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        environment_name: str | None = None,
        emails: Sequence[str] = (),
        topic_arn: str | None = None,
        topic_key: EncryptionKey | None = None,
        slack: SlackChannel | None = None,
        event_bus_arn: str | None = None,
        monthly_budget_usd: int | None = None,
        events: Sequence[Event] = EVENTS,
        instance_groups: Sequence[str] = (),
        training_plan_arns: Sequence[str] = (),
        instance_types: Sequence[str | InstanceType] = (),
        spot_instance_types: Sequence[str | InstanceType] = (),
        file_systems: Mapping[str, str] | None = None,
        nodes_missing_minutes: int = 30,
        file_system_percent: int = 75,
        storage_target_percent: int = 85,
        quota_percent: int = 80,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        own_key = (
            "topic_key: cannot be set together with topic_arn, a topic that is not changed; remove topic_key, and set"
            " the key on that topic itself"
        )
        refuse_all(
            lambda: refuse(HyperPod, cluster_name=cluster_name),
            lambda: refuse_unlike(hyperpod.CLUSTER_ARN, cluster_arn=cluster_arn),
            lambda: refuse_unlike(hyperpod.INSTANCE_GROUP_NAME, instance_groups=instance_groups),
            lambda: refuse_unlike(hyperpod.TRAINING_PLAN_ARN, training_plan_arns=training_plan_arns),
            lambda: refuse_unknown_types(instance_types=instance_types, spot_instance_types=spot_instance_types),
            lambda: refuse_for(_file_system_name_problems(file_systems or {})),
            lambda: refuse_unlike(FILE_SYSTEM_ID, file_systems=file_systems),
            lambda: refuse(Environment, called={"name": "environment_name"}, name=environment_name),
            lambda: refuse(
                Notify,
                emails=emails,
                monthly_budget_usd=monthly_budget_usd,
                events=events,
                nodes_missing_minutes=nodes_missing_minutes,
                file_system_percent=file_system_percent,
                storage_target_percent=storage_target_percent,
                quota_percent=quota_percent,
            ),
            lambda: refuse_for(
                again
                for key, values in (("emails", emails), ("events", events))
                if (again := repeated_problem(values, key=key))
            ),
            lambda: refuse_for([own_key] if topic_key is not None and topic_arn is not None else ()),
            (
                lambda: refuse(Notify, called={"sns_topic_arn": "topic_arn"}, sns_topic_arn=topic_arn),
                lambda: refuse_for(_place_problems("topic_arn", topic_arn, stack.region, stack.account)),
                lambda: refuse_for(_budget_problems(topic_arn, monthly_budget_usd, account=stack.account)),
            ),
            (
                lambda: refuse(Notify, event_bus_arn=event_bus_arn),
                lambda: refuse_for(_place_problems("event_bus_arn", event_bus_arn, stack.region, stack.account)),
            ),
        )
        on_demand, of_spot = _names_of(instance_types), _names_of(spot_instance_types)
        self._has_budget = monthly_budget_usd is not None
        self._key = topic_key
        self._bus_arn, self._has_chat = event_bus_arn, slack is not None
        self._cluster_name, self._cluster_arn = cluster_name, cluster_arn
        self._environment = environment_name or cluster_name
        self._events = frozenset(events)
        watched = {each: quotas.cluster_usage(each) for each in on_demand}
        watched |= {f"spot-{each}": quotas.cluster_spot_usage(each) for each in of_spot}
        self._names = alarms(
            self._events,
            groups=instance_groups,
            instance_types=on_demand,
            spot_instance_types=of_spot,
            file_systems=file_systems or {},
        )
        self._quotas = {name: quota for name, quota in watched.items() if name in self._names.quotas}
        self._region, self._account = stack.region, stack.account
        self.topic: sns.CfnTopic | None = None if topic_arn else self._topic()
        self.topic_arn: str = topic_arn or self._made(self.topic).ref
        for index, address in enumerate(emails):
            # an ID of a construct may not contain a token
            suffix = str(index) if is_token(address) else address
            sns.CfnSubscription(self, f"Email-{suffix}", topic_arn=self.topic_arn, protocol="email", endpoint=address)
        if slack is not None:
            self._channel(slack)
        if monthly_budget_usd is not None:
            self._budget(monthly_budget_usd)
        self.alarms: dict[str, cloudwatch.CfnAlarm] = {}
        self.function: lambda_.CfnFunction | None = None
        if self._events & FUNCTION_EVENTS:
            self.function = self._function(sorted(set(training_plan_arns)))
            self._triggers(self.function)
        for group in self._names.nodes_missing:
            self._nodes_alarm(group, minutes=nodes_missing_minutes)
        for name, quota in self._quotas.items():
            self._quota_alarm(name, quota, percent=quota_percent)
        for name in self._names.file_systems:
            file_system_id = (file_systems or {})[name]
            self._file_system_alarms(name, file_system_id, whole=file_system_percent, target=storage_target_percent)
        if event_bus_arn is not None:
            self._forward_alarms(event_bus_arn)

    @staticmethod
    def _made(topic: sns.CfnTopic | None) -> sns.CfnTopic:
        if topic is None:
            raise AssertionError("unreachable: without an ARN a topic is created")
        return topic

    def _topic(self) -> sns.CfnTopic:
        topic = sns.CfnTopic(self, "Topic", display_name=f"HyperPod {self._environment}")
        if self._key is None:
            ignore_in_checkov(topic, {"CKV_AWS_26": _NO_KEY})
            acknowledge(topic, {"AwsSolutions-SNS2": _NO_KEY})
        else:
            self._key.allow_publishers(*facts.publishers(has_budget=self._has_budget))
            topic.kms_master_key_id = self._key.key.key_arn
        alarms = arn_here("cloudwatch", f"alarm:{self._alarm_name('*')}")
        budgets = f"arn:{HERE.partition}:budgets::{HERE.account}:*"
        sns.CfnTopicPolicy(
            self,
            "TopicPolicy",
            topics=[topic.ref],
            policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    self._may_publish("Alarms", facts.CLOUDWATCH, topic, alarms),
                    # AWS Cost Management user guide, "Creating an Amazon SNS topic for budget notifications"
                    *([self._may_publish("Budgets", facts.BUDGETS, topic, budgets)] if self._has_budget else []),
                    {
                        "Sid": "TlsOnly",
                        "Effect": "Deny",
                        "Principal": "*",
                        "Action": "sns:Publish",
                        "Resource": topic.ref,
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                    },
                ],
            },
        )
        return topic

    def _may_publish(self, sid: str, service: str, topic: sns.CfnTopic, source: str) -> dict[str, Any]:
        """Allow a service to publish for the resource with this ARN, in this account only."""
        return {
            "Sid": sid,
            "Effect": "Allow",
            "Principal": {"Service": facts.principal(service)},
            "Action": "sns:Publish",
            "Resource": topic.ref,
            "Condition": {
                "StringEquals": {"aws:SourceAccount": self._account},
                "ArnLike": {"aws:SourceArn": source},
            },
        }

    def _channel(self, slack: SlackChannel) -> None:
        role = iam.CfnRole(
            self,
            "SlackRole",
            description="HyperPod notifications in Slack: no permissions for the channel",
            assume_role_policy_document=document(
                {"Principal": {"Service": "chatbot.amazonaws.com"}, "Action": "sts:AssumeRole"}
            ),
        )
        guardrail = arn_of_aws("iam", "policy/CloudWatchReadOnlyAccess")
        chatbot.CfnSlackChannelConfiguration(
            self,
            "Slack",
            configuration_name=facts.chat_configuration(self._cluster_name, cdk.Stack.of(self).region),
            iam_role_arn=role.attr_arn,
            slack_workspace_id=slack.workspace_id,
            slack_channel_id=slack.channel_id,
            sns_topic_arns=[self.topic_arn],
            # without one the limit is AdministratorAccess, which roles of users could then use
            guardrail_policies=[guardrail],
        )

    def _budget(self, usd: int) -> None:
        rows = [("ACTUAL", percent) for percent in facts.BUDGET_PERCENT]
        budgets.CfnBudget(
            self,
            "Budget",
            # without a name: the notifications cannot be changed, so another budget replaces it
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=usd, unit="USD"),
                cost_filters={"Region": [self._region]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        notification_type=kind,
                        comparison_operator="GREATER_THAN",
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=self.topic_arn)],
                )
                for kind, percent in (*rows, ("FORECASTED", facts.BUDGET_PERCENT[-1]))
            ],
        )

    def _forward_alarms(self, bus_arn: str) -> None:
        role = iam.CfnRole(
            self,
            "BusRole",
            description="HyperPod notifications: alarms to an event bus",
            assume_role_policy_document=document(
                {
                    "Principal": {"Service": "events.amazonaws.com"},
                    "Action": "sts:AssumeRole",
                    "Condition": {"StringEquals": {"aws:SourceAccount": self._account}},
                }
            ),
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="put-events",
                    policy_document=document({"Action": ["events:PutEvents"], "Resource": [bus_arn]}),
                )
            ],
        )
        events.CfnRule(
            self,
            "Alarms",
            description=f"Alarms of {self._cluster_name} to an event bus",
            event_pattern={
                "source": ["aws.cloudwatch"],
                "detail-type": ["CloudWatch Alarm State Change"],
                "resources": [{"prefix": arn_here("cloudwatch", f"alarm:{self._alarm_name('')}")}],
            },
            targets=[events.CfnRule.TargetProperty(id="Bus", arn=bus_arn, role_arn=role.attr_arn)],
        )

    def _function(self, plans: Sequence[str]) -> lambda_.CfnFunction:
        log_group = logs.CfnLogGroup(self, "Logs", retention_in_days=90)
        log_group.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        results = arn_here("logs", f"log-group:{hyperpod.log_group(self._cluster_name, '*')}")
        statements: list[dict[str, Any]] = [
            {"Action": ["sns:Publish"], "Resource": [self.topic_arn]},
            {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [log_group.attr_arn]},
        ]
        if self._key is not None:
            statements.append({"Action": list(TOPIC_KEY_ACTIONS), "Resource": [self._key.key.key_arn]})
        if self._quotas:
            asked = {*QUOTA_ACTIONS, "sagemaker:ListClusters"}
            statements.append({"Action": sorted(asked), "Resource": ["*"]})
            statements.append(
                {"Action": ["sagemaker:DescribeCluster"], "Resource": [arn_here("sagemaker", "cluster/*")]}
            )
        elif self._events & {"nodes_missing", "deep_health_check_failed"}:
            statements.append({"Action": ["sagemaker:DescribeCluster"], "Resource": [self._cluster_arn]})
        if "nodes_missing" in self._events or self._quotas:
            statements.append(
                {
                    "Action": ["cloudwatch:PutMetricData"],
                    "Resource": ["*"],
                    "Condition": {"StringEquals": {"cloudwatch:namespace": self._namespace}},
                }
            )
        if "deep_health_check_failed" in self._events:
            statements.append({"Action": ["logs:FilterLogEvents"], "Resource": [results]})
        if "training_plan" in self._events and plans:
            statements.append({"Action": ["sagemaker:DescribeTrainingPlan"], "Resource": list(plans)})
        if self._bus_arn is not None:
            statements.append({"Action": ["events:PutEvents"], "Resource": [self._bus_arn]})
        role = handler_role(
            self,
            "Role",
            description="HyperPod notifications: reads one cluster and its training plans, and publishes",
            policy_name="notifications",
            statements=statements,
        )
        self._acknowledge(role)
        function = handler_function(
            self,
            "Function",
            description="HyperPod notifications: reports what happens to a cluster",
            serves="notifications",
            role=role,
            log_group=log_group,
            timeout_seconds=120,
            memory_mib=256,
            borrows=["quota_gate"],
        )
        settings = {
            "topic": self.topic_arn,
            "environment": self._environment,
            "cluster": self._cluster_name,
            "account": self._account,
            "region": self._region,
            "events": sorted(self._events & FUNCTION_EVENTS),
            "minutes": facts.WATCH_MINUTES,
            "plans": list(plans),
            **({"quotas": self._measured()} if self._quotas else {}),
            **({"chat": True} if self._has_chat else {}),
            **({"bus": self._bus_arn} if self._bus_arn is not None else {}),
        }
        text = cdk.Stack.of(self).to_json_string(settings)
        function.environment = lambda_.CfnFunction.EnvironmentProperty(variables={told.SETTINGS: text})
        ignore_in_checkov(function, _FUNCTION)
        return function

    def _acknowledge(self, role: iam.CfnRole) -> None:
        reasons = {}
        if "nodes_missing" in self._events:
            reasons[RESOURCE.format("*")] = (
                "PutMetricData supports no resource-level permissions; the condition names the one namespace"
            )
        if self._quotas:
            reasons[RESOURCE.format("*")] = (
                "PutMetricData supports no resource-level permissions; the condition names the one namespace. The "
                "same applies to reading quotas and listing clusters"
            )
            reasons[RESOURCE.format(_ALL_CLUSTERS)] = (
                "every cluster of the account uses the quotas; only AWS knows which clusters exist. It only reads"
            )
        if "deep_health_check_failed" in self._events:
            name = f"log-group:{hyperpod.log_group(self._cluster_name, '*')}"
            found = f"arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:{name}"
            reasons[RESOURCE.format(found)] = "the cluster's own log group, which ends with its ID; it only reads"
        if self._key is not None:
            key = "SNS asks for both kinds of data keys of one key, the topic's, of whoever publishes"
            reasons |= {ACTION.format(action): key for action in TOPIC_KEY_ACTIONS if action.endswith("*")}
        acknowledge(role, reasons)

    def _triggers(self, function: lambda_.CfnFunction) -> None:
        if self._events & _HYPERPOD_EVENTS:
            rule = events.CfnRule(
                self,
                "HyperPodEvents",
                description=f"Events of HyperPod about the nodes of {self._cluster_name}, for notifications",
                event_pattern={
                    "source": ["aws.sagemaker"],
                    "detail-type": [told.CLUSTER_EVENT, told.HEALTH_EVENT],
                    # the ARN ends with an ID, but in the developer guide's example events with the cluster's name
                    "resources": [self._cluster_arn, arn_here("sagemaker", f"cluster/{self._cluster_name}")],
                },
                targets=[events.CfnRule.TargetProperty(id="Function", arn=function.attr_arn)],
            )
            self._let(rule, function)
        if self._events & _WATCHED:
            rule = events.CfnRule(
                self,
                "Watch",
                description=f"Checks what sends no event for {self._cluster_name}: missing nodes, training plans",
                schedule_expression=f"rate({facts.WATCH_MINUTES} minutes)",
                targets=[events.CfnRule.TargetProperty(id="Function", arn=function.attr_arn)],
            )
            self._let(rule, function)
        self._alarm(
            "FunctionFails",
            name=self._names.function,
            says="notifications may be missing: the function that sends them fails, or does not run",
            look=f"aws logs tail {self._log_group_name(function)} --since 1h --region {self._region}",
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name="FunctionName", value=function.ref)],
            statistic="Sum",
            period=3 * facts.WATCH_MINUTES * 60,
            evaluation_periods=1,
            threshold=1,
            # Lambda counts no errors if nothing was invoked: that is reported too, but not before the first invocation
            treat_missing_data="missing" if self._events & _WATCHED else "notBreaching",
            insufficient_data_actions=[self.topic_arn] if self._events & _WATCHED else None,
        )

    @staticmethod
    def _log_group_name(function: lambda_.CfnFunction) -> str:
        config = function.logging_config
        return str(config.log_group) if isinstance(config, lambda_.CfnFunction.LoggingConfigProperty) else ""

    def _let(self, rule: events.CfnRule, function: lambda_.CfnFunction) -> None:
        lambda_.CfnPermission(
            self,
            f"{rule.node.id}Invokes",
            action="lambda:InvokeFunction",
            function_name=function.attr_arn,
            principal="events.amazonaws.com",
            source_arn=rule.attr_arn,
        )

    def _nodes_alarm(self, group: str, *, minutes: int) -> None:
        periods = -(-minutes // facts.WATCH_MINUTES)
        self._alarm(
            f"NodesMissing-{group}",
            name=self._names.nodes_missing[group],
            says=f"group {group} has had fewer nodes than requested for {periods * facts.WATCH_MINUTES} minutes",
            look=f"aws sagemaker list-cluster-nodes --cluster-name {self._cluster_name}"
            f" --instance-group-name-contains {group} --region {self._region}",
            namespace=self._namespace,
            metric_name=told.METRIC,
            dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name=told.DIMENSION, value=group)],
            statistic="Minimum",
            period=facts.WATCH_MINUTES * 60,
            evaluation_periods=periods,
            threshold=1,
            # if the function does not run, nothing is known: its own alarm reports that, and this one keeps its state
            treat_missing_data="ignore",
        )

    def _measured(self) -> list[dict[str, str]]:
        """Return what the function needs to read each quota, and to count its use."""
        return [
            {
                "name": quota.name,
                "code": quota.code or "",
                "use": f"hyperpod_{'spot_' if name.startswith('spot-') else ''}instances:{name.removeprefix('spot-')}",
            }
            for name, quota in self._quotas.items()
        ]

    def _quota_alarm(self, name: str, quota: Quota, *, percent: int) -> None:
        self._alarm(
            f"QuotaUsed-{name}",
            name=self._names.quotas[name],
            says=f"the account's HyperPod clusters use at least {percent} % of the quota {quota.name}; if this alarm"
            " has insufficient data, the usage is not known",
            look=f"hyperpod-cdk quotas show {self._environment}",
            namespace=self._namespace,
            metric_name=told.QUOTA_METRIC,
            dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name=told.QUOTA_DIMENSION, value=quota.name)],
            statistic="Minimum",
            period=facts.WATCH_MINUTES * 60,
            evaluation_periods=3,
            threshold=percent,
            # without data the state is unknown, which is reported too
            treat_missing_data="missing",
            insufficient_data_actions=[self.topic_arn],
        )

    def _file_system_alarms(self, name: str, file_system_id: str, *, whole: int, target: int) -> None:
        look = f"aws fsx describe-file-systems --file-system-ids {file_system_id} --region {self._region}"
        of_all, of_target = self._names.file_systems[name]
        for construct_id, called, function, percent, says in (
            ("FileSystem", of_all, "AVG", whole, f"file system {name} is {whole} % full"),
            (
                "StorageTarget",
                of_target,
                "MAX",
                target,
                f"a storage target of file system {name} is {target} % full",
            ),
        ):
            self._alarm(
                f"{construct_id}-{name}",
                name=called,
                says=says,
                look=f"{look}; lfs df -h where it is mounted",
                metrics=[
                    cloudwatch.CfnAlarm.MetricDataQueryProperty(
                        id="used",
                        # a series for each storage target, of equal size: their mean is the use of the whole file
                        # system
                        expression=f'SELECT {function}({facts.STORAGE_USED}) FROM SCHEMA("AWS/FSx", FileSystemId,'  # noqa: S608 - CloudWatch's query, of IDs
                        f" StorageTargetId) WHERE FileSystemId = '{file_system_id}'",
                        period=300,
                        return_data=True,
                    )
                ],
                evaluation_periods=3,
                threshold=percent,
                # FSx measures every minute: without data the state is unknown, and the alarm does not say OK
                treat_missing_data="missing",
            )

    def _alarm(self, construct_id: str, *, name: str, says: str, look: str, **settings: Any) -> None:
        where = f"environment {self._environment}, cluster {self._cluster_name}"
        self.alarms[name] = cloudwatch.CfnAlarm(
            self,
            construct_id,
            alarm_name=self._alarm_name(name),
            alarm_description=f"In {where}, account {self._account}, region {self._region}: {says}. Look: {look}",
            comparison_operator="GreaterThanOrEqualToThreshold",
            alarm_actions=[self.topic_arn],
            **settings,
        )

    def _alarm_name(self, name: str) -> str:
        return facts.alarm_name(self._cluster_name, name)

    @property
    def _namespace(self) -> str:
        return f"HyperPod/{self._cluster_name}"


def _names_of(types: Sequence[str | InstanceType]) -> list[str]:
    return [each.name if isinstance(each, InstanceType) else each for each in types]


def _file_system_name_problems(file_systems: Mapping[str, str]) -> Iterator[str]:
    for name in file_systems:
        if not is_token(name) and (problem := FILE_SYSTEM_NAME.problem(name, key="the key")):
            yield f"file_systems[{name!r}]: {in_python(problem)}"


def _place_problems(
    key: Literal["topic_arn", "event_bus_arn"], arn: str | None, region: str, account: str
) -> Iterator[str]:
    if arn is None or is_token(arn) or is_token(region):
        return
    partition = regions.partition_of(region) or arn_parts(arn).partition
    problem = (
        facts.topic_problem(arn, partition=partition, region=region)
        if key == "topic_arn"
        else facts.event_bus_problem(arn, partition=partition, region=region, account=account)
    )
    if problem:
        yield f"{key}: {in_python(problem)}"


def _budget_problems(topic_arn: str | None, monthly_budget_usd: int | None, *, account: str) -> Iterator[str]:
    if topic_arn is None or monthly_budget_usd is None or is_token(topic_arn) or is_token(account):
        return
    if problem := facts.budget_topic_problem(topic_arn, account=account):
        yield f"monthly_budget_usd: {problem}"
