"""HyperPod's events about its nodes in a log group, an alarm on failures, a dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_logs as logs
from constructs import Construct

from hyperpod_cdk.catalog import hyperpod, notifications
from hyperpod_cdk.common.acknowledgments import acknowledge_log_group
from hyperpod_cdk.common.log_settings import check_retention
from hyperpod_cdk.common.physical_names import stack_part
from hyperpod_cdk.common.stack_arns import HERE, arn_here
from hyperpod_cdk.config import wanted_alarms
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse, refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.config.hyperpod import HyperPod

DETAIL_TYPES = (
    "SageMaker HyperPod Cluster Event",
    "SageMaker HyperPod Cluster State Change",
    "SageMaker HyperPod Cluster Node Health Event",
)
"""The three detail types HyperPod sends (SageMaker developer guide, "HyperPod cluster events reference", 2026)."""

ERRORS = "Errors"
WARNINGS = "Warnings"

_PATTERNS = {
    ERRORS: (
        '{ ($.detail.EventDetails.EventLevel = "Error")'
        ' || ($.detail.HealthSummary.HealthStatus = "Unhealthy")'
        ' || ($.detail.ClusterStatus = "Failed")'
        ' || ($.detail.ClusterStatus = "RollingBack") }'
    ),
    WARNINGS: '{ ($.detail.EventDetails.EventLevel = "Warn") }',
}
_PERIOD_SECONDS = 300
_RULE_NAME_LENGTH = 64


@judged(whole=("alarm_actions",))
class NodeEvents(Construct):
    """Stores every event of one HyperPod cluster and raises an alarm when something fails.

    With continuous provisioning a cluster is ``InService`` while its nodes fail to start; only events show this. All
    three detail types go to the retained log group ``/aws/events/<cluster_name>-hyperpod-<8 characters of the stack's
    id>``, including Info events, so that the history of a failure is complete. Metric ``Errors`` counts events of level
    Error, nodes found Unhealthy and clusters that become Failed or RollingBack, metric ``Warnings`` events of level
    Warn, both in the namespace ``HyperPod/<cluster_name>``. The alarm watches ``Errors`` and calls ``alarm_actions``
    (ARNs, such as those of SNS topics). Cluster events exist only with continuous provisioning; the other two detail
    types always exist.

    The log group is retained with its stack, but not after a failed first deployment; a stack that is created again
    creates another. The policy with which EventBridge writes to it is the group's own: it uses none of the ten resource
    policies that CloudWatch Logs allows per account and region (CloudWatch Logs API reference, PutResourcePolicy).

    ``cluster_name`` (str): name of the HyperPod cluster. Raises ValueError for a name that HyperPod refuses.

    ``cluster_arn`` (str, ARN): the same cluster. Raises ValueError for text that is not the ARN of a HyperPod cluster.

    ``retention_days`` (int, days): how long events are retained. Default: 365. Raises ValueError for a number that
    CloudWatch Logs does not offer.

    ``alarm_actions`` (Sequence[str], ARNs): the alarm's actions, at most 5. Default: none. Raises ValueError for more,
    and for text that is not the ARN of an alarm action.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        retention_days: int = 365,
        alarm_actions: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse(HyperPod, cluster_name=cluster_name),
            lambda: refuse_unlike(hyperpod.CLUSTER_ARN, cluster_arn=cluster_arn),
            lambda: check_retention(retention_days=retention_days),
            lambda: refuse_for(_count_problems(alarm_actions)),
            lambda: refuse_unlike(notifications.ALARM_ACTION, alarm_actions=alarm_actions),
        )
        name = f"{cluster_name}-hyperpod"
        group_name = hyperpod.events_log_group(cluster_name, stack_part=stack_part())
        # for a longer one CloudFormation generates a name
        rule_name = name if len(name) <= _RULE_NAME_LENGTH else None
        self.log_group: logs.CfnLogGroup = logs.CfnLogGroup(
            self,
            "LogGroup",
            log_group_name=group_name,
            retention_in_days=retention_days,
            resource_policy_document=_log_policy(f"{_log_group_arn(group_name)}:*", _rule_arn(rule_name or "*")),
        )
        self.log_group.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        acknowledge_log_group(self.log_group, is_new=True)
        self.rule: events.CfnRule = events.CfnRule(
            self,
            "Rule",
            name=rule_name,
            description=f"HyperPod events of {cluster_name}",
            event_pattern={
                "source": ["aws.sagemaker"],
                "detail-type": list(DETAIL_TYPES),
                # the ARN ends with an ID, but in the developer guide's example events with the cluster's name
                "resources": [cluster_arn, _arn_by_name(cluster_name)],
            },
            targets=[events.CfnRule.TargetProperty(id="LogGroup", arn=_log_group_arn(self.log_group.ref))],
        )
        namespace = f"HyperPod/{cluster_name}"
        self.metric_filters: Mapping[str, logs.CfnMetricFilter] = {
            metric: logs.CfnMetricFilter(
                self,
                f"{metric}Filter",
                log_group_name=self.log_group.ref,
                filter_pattern=pattern,
                metric_transformations=[
                    logs.CfnMetricFilter.MetricTransformationProperty(
                        metric_namespace=namespace, metric_name=metric, metric_value="1", default_value=0
                    )
                ],
            )
            for metric, pattern in _PATTERNS.items()
        }
        # a message needs more than the link to the log group in the console
        look = f": aws logs tail {self.log_group.ref} --since 1h --region {HERE.region}" if alarm_actions else ""
        self.alarm: cloudwatch.CfnAlarm = cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_name=notifications.alarm_name(cluster_name, wanted_alarms.EVENTS),
            alarm_description=f"HyperPod cluster {cluster_name} reports errors or unhealthy nodes; "
            f"see log group {self.log_group.ref}{look}",
            namespace=namespace,
            metric_name=ERRORS,
            statistic="Sum",
            period=_PERIOD_SECONDS,
            evaluation_periods=1,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
            alarm_actions=list(alarm_actions) or None,
        )
        self.dashboard: cloudwatch.CfnDashboard = cloudwatch.CfnDashboard(
            self,
            "Dashboard",
            # an account has them in no Region of their own (CloudWatch API reference, PutDashboard)
            dashboard_name=f"{name}-{cdk.Stack.of(self).region}",
            dashboard_body=cdk.Stack.of(self).to_json_string(_dashboard(namespace, self.log_group.ref)),
        )


def _arn_by_name(cluster_name: str) -> str:
    return arn_here("sagemaker", f"cluster/{cluster_name}")


def _log_group_arn(name: str) -> str:
    return arn_here("logs", f"log-group:{name}")


def _rule_arn(name: str) -> str:
    return arn_here("events", f"rule/{name}")


def _log_policy(resource: str, rule_arn: str) -> dict[str, Any]:
    # The two principals with which EventBridge writes (EventBridge user guide, "CloudWatch Logs permissions"), only for
    # this rule: a service otherwise acts for every caller (IAM user guide, "The confused deputy problem"). For
    # CreateLogStream, which creates an empty stream, no rule is named
    # (github.com/aws-samples/serverless-patterns/pull/618, github.com/hashicorp/terraform-provider-aws/issues/26628).
    of_eventbridge = {
        "Effect": "Allow",
        "Principal": {"Service": ["events.amazonaws.com", "delivery.logs.amazonaws.com"]},
        "Resource": resource,
    }
    own_rule = {"ArnEquals": {"aws:SourceArn": rule_arn}}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {**of_eventbridge, "Action": ["logs:CreateLogStream"]},
            {**of_eventbridge, "Action": ["logs:PutLogEvents"], "Condition": own_rule},
        ],
    }


def _dashboard(namespace: str, log_group_name: str) -> dict[str, Any]:
    region = HERE.region
    query = (
        f"SOURCE '{log_group_name}' | fields @timestamp, detail.EventDetails.InstanceGroupName, "
        "coalesce(detail.EventDetails.InstanceId, detail.InstanceId) as instance, "
        "coalesce(detail.EventDetails.EventLevel, detail.HealthSummary.HealthStatus, detail.ClusterStatus) as level, "
        "coalesce(detail.EventDetails.Description, detail.HealthSummary.HealthStatusReason, "
        "detail.FailureMessage) as message"
        " | filter level != 'Info' | sort @timestamp desc | limit 100"
    )
    return {
        "widgets": [
            {
                "type": "metric",
                "width": 24,
                "height": 6,
                "properties": {
                    "title": "HyperPod events",
                    "region": region,
                    "stat": "Sum",
                    "period": _PERIOD_SECONDS,
                    "metrics": [
                        [namespace, ERRORS, {"color": "#d62728"}],
                        [namespace, WARNINGS, {"color": "#ff7f0e"}],
                    ],
                },
            },
            {
                "type": "log",
                "width": 24,
                "height": 12,
                "y": 6,
                "properties": {"title": "Latest, without Info", "region": region, "view": "table", "query": query},
            },
        ]
    }


def _count_problems(actions: Sequence[str]) -> Iterator[str]:
    problem = notifications.ALARM_ACTIONS.count_problem(len(actions), what="ARNs")
    if problem:
        yield f"alarm_actions: {problem}"
