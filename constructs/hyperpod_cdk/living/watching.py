"""Logs, alarms and rules of events as CloudWatch and EventBridge have them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from hyperpod_cdk.living.look import Kind, Look, Properties, Stated, reading, taken

_GONE: Final = "ResourceNotFoundException"
_ALARM: Final = (
    "AlarmDescription",
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluationPeriods",
    "MetricName",
    "Namespace",
    "Period",
    "Statistic",
    "Threshold",
    "TreatMissingData",
    "Unit",
)
_ACTIONS: Final = ("AlarmActions", "InsufficientDataActions", "OKActions")
_NEVER: Final = "never"
"""What a group without a retention says: its events are kept until somebody deletes them."""


def _log_group(look: Look) -> Properties | None:
    return _kept(look, look.id)


def _kept(look: Look, name: str) -> Properties | None:
    rows = look.aws.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=name)
    with reading("logs:DescribeLogGroups"):
        group = next((row for row in rows if row["logGroupName"] == name), None)
        if group is None:
            return None
        return {"RetentionInDays": group.get("retentionInDays", _NEVER), "KmsKeyId": group.get("kmsKeyId")}


def _of_log_group(stated: Stated) -> Properties:
    return {"RetentionInDays": _NEVER, **taken(stated.properties, "RetentionInDays", "KmsKeyId")}


def _settings(look: Look) -> Properties | None:
    found = _kept(look, str(look.properties["LogGroupName"]))
    return None if found is None else taken(found, "RetentionInDays")


def _metric_filter(look: Look) -> Properties | None:
    group, name = str(look.stated["LogGroupName"]), look.id
    asked = {"logGroupName": group, "filterNamePrefix": name}
    with reading("logs:DescribeMetricFilters"):
        # a group that is gone took its filters along
        rows = look.listed("logs", "describe_metric_filters", "metricFilters", _GONE, **asked)
        found = next((row for row in rows or () if row["filterName"] == name), None)
        if found is None:
            return None
        return {"LogGroupName": group, "FilterPattern": found.get("filterPattern", "")}


def _alarm(look: Look) -> Properties | None:
    with reading("cloudwatch:DescribeAlarms"):
        rows = look.aws.call("cloudwatch", "describe_alarms", AlarmNames=[look.id]).get("MetricAlarms", ())
        found = next((row for row in rows if row["AlarmName"] == look.id), None)
        if found is None:
            return None
        return {"ActionsEnabled": found["ActionsEnabled"], **taken(found, *_ALARM, *_ACTIONS)}


def _of_alarm(stated: Stated) -> Properties:
    return {"ActionsEnabled": True, **stated.properties}


def _rule(look: Look) -> Properties | None:
    name = look.id.rpartition("|")[2]
    found = look.found("events", "describe_rule", _GONE, Name=name)
    if found is None:
        return None
    with reading("events:DescribeRule"):
        targets = look.listed("events", "list_targets_by_rule", "Targets", _GONE, Rule=name)
        if targets is None:
            return None
        return {
            **taken(found, "State", "ScheduleExpression", "Description"),
            "EventPattern": _parsed(found.get("EventPattern")),
            "Targets": [{"Name": each["Id"], "Arn": each["Arn"]} for each in targets],
        }


def _of_rule(stated: Stated) -> Properties:
    targets = [each for each in stated.properties.get("Targets") or () if isinstance(each, Mapping)]
    return {
        "State": "ENABLED",
        **taken(stated.properties, "State", "ScheduleExpression", "Description", "EventPattern"),
        "Targets": [{"Name": each.get("Id"), "Arn": each.get("Arn")} for each in targets],
    }


def _parsed(pattern: Any) -> Any:
    return json.loads(pattern) if isinstance(pattern, str) else pattern


KINDS: Final[Mapping[str, Kind]] = {
    "AWS::Logs::LogGroup": Kind(
        properties=("RetentionInDays", "KmsKeyId"),
        read=_log_group,
        state=_of_log_group,
        made_by_hand=re.compile(r"KmsKeyId"),
    ),
    "Custom::HyperPodLogSettings": Kind(
        properties=("RetentionInDays",),
        read=_settings,
        resent="the function behind it puts the retention with every update",
    ),
    "AWS::Logs::MetricFilter": Kind(properties=("LogGroupName", "FilterPattern"), read=_metric_filter),
    "AWS::CloudWatch::Alarm": Kind(
        properties=("ActionsEnabled", *_ALARM, *_ACTIONS),
        read=_alarm,
        state=_of_alarm,
        made_by_hand=re.compile(r"AlarmActions|InsufficientDataActions|OKActions"),
        # PutMetricAlarm overwrites all that an alarm says (CloudWatch API reference)
        is_sent_whole=True,
    ),
    "AWS::Events::Rule": Kind(
        properties=("State", "ScheduleExpression", "Description", "EventPattern", "Targets"),
        read=_rule,
        state=_of_rule,
        made_by_hand=re.compile(r"Targets\[.+\]"),
        # PutRule keeps nothing of what it leaves out; targets it does not touch (EventBridge API reference)
        is_sent_whole=True,
        differing=re.compile(r"Targets\[.+"),
    ),
}
