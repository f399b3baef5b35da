"""Logs, alarms, dashboards, rules of events and workspaces for metrics, as their services have them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from hyperpod_cdk.living.facts import holds_untold
from hyperpod_cdk.living.look import TAGS, Kind, Look, Properties, Stated, keyed, reading, taken

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


def _dashboard(look: Look) -> Properties | None:
    found = look.found(
        "cloudwatch", "get_dashboard", "ResourceNotFound", "DashboardNotFoundError", DashboardName=look.id
    )
    if found is None:
        return None
    with reading("cloudwatch:GetDashboard"):
        stated = look.properties.get("DashboardBody")
        is_same = json.loads(found["DashboardBody"]) == json.loads(str(stated))
        return {"DashboardBody": _AS_DEPLOYED if is_same else _OTHER_BODY}


def _of_dashboard(stated: Stated) -> Properties:
    body = stated.properties.get("DashboardBody")
    return {"DashboardBody": body if holds_untold(body) else _AS_DEPLOYED}


def _prometheus(look: Look) -> Properties | None:
    found = look.found("amp", "describe_workspace", _GONE, workspaceId=look.id.rpartition("/")[2])
    if found is None:
        return None
    with reading("aps:DescribeWorkspace"):
        workspace = found["workspace"]
        if workspace["status"]["statusCode"] == _DELETING:
            return None
        return {
            "Alias": workspace.get("alias"),
            "KmsKeyArn": workspace.get("kmsKeyArn"),
            "Tags": keyed(workspace.get("tags", {})),
        }


def _grafana(look: Look) -> Properties | None:
    found = look.found("grafana", "describe_workspace", _GONE, workspaceId=look.id)
    if found is None:
        return None
    with reading("grafana:DescribeWorkspace"):
        workspace = found["workspace"]
        if workspace["status"] == _DELETING:
            return None
        network = workspace.get("networkAccessControl", {})
        return {
            **{ours: workspace[theirs] for ours, theirs in _OF_GRAFANA.items() if theirs in workspace},
            "AuthenticationProviders": workspace["authentication"]["providers"],
            "NetworkAccessControl": {
                "PrefixListIds": network.get("prefixListIds", []),
                "VpceIds": network.get("vpceIds", []),
            },
            "Tags": keyed(workspace.get("tags", {})),
        }


_AS_DEPLOYED: Final = "as deployed"
_OTHER_BODY: Final = "other widgets than were deployed"
_DELETING: Final = "DELETING"
_OF_GRAFANA: Final = {
    "AccountAccessType": "accountAccessType",
    "DataSources": "dataSources",
    "Description": "description",
    "GrafanaVersion": "grafanaVersion",
    "Name": "name",
    "NotificationDestinations": "notificationDestinations",
    "PermissionType": "permissionType",
    "RoleArn": "workspaceRoleArn",
}

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
    "AWS::CloudWatch::Dashboard": Kind(
        properties=("DashboardBody",),
        read=_dashboard,
        state=_of_dashboard,
        # PutDashboard replaces all that a dashboard shows (CloudWatch API reference)
        is_sent_whole=True,
    ),
    "AWS::APS::Workspace": Kind(properties=("Alias", "KmsKeyArn", "Tags"), read=_prometheus),
    "AWS::Grafana::Workspace": Kind(
        properties=(*_OF_GRAFANA, "AuthenticationProviders", "NetworkAccessControl", "Tags"),
        read=_grafana,
        made_by_hand=re.compile(rf"{TAGS}|DataSources|NotificationDestinations|NetworkAccessControl\..+"),
    ),
}
