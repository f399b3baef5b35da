"""Log groups, alarms, dashboards, EventBridge rules and metrics workspaces, as their services have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hyperpod_cdk.living.facts import holds_unknown
from hyperpod_cdk.living.look import (
    ANY_TAG,
    TAGS,
    Kind,
    Look,
    Properties,
    Stated,
    keyed,
    reading,
    statements,
    taken,
)

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
"""The text for a group without a retention: its events are kept until they are deleted."""


def _log_group(look: Look) -> Properties | None:
    """Return a log group with its own policy, which says who can write to it."""
    group = _kept(look, look.id)
    if group is None:
        return None
    with reading("logs:DescribeLogGroups"):
        asked = {"policyScope": "RESOURCE", "resourceArn": str(group["logGroupArn"])}
    policies = look.aws.pages("logs", "describe_resource_policies", "resourcePolicies", **asked)
    with reading("logs:DescribeResourcePolicies"):
        return {
            **_of_kept(look, group),
            "ResourcePolicyDocument": [each for row in policies for each in statements(row["policyDocument"])],
        }


def _kept(look: Look, name: str) -> Mapping[str, Any] | None:
    rows = look.aws.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=name)
    with reading("logs:DescribeLogGroups"):
        return next((row for row in rows if row["logGroupName"] == name), None)


def _of_kept(look: Look, group: Mapping[str, Any]) -> dict[str, Any]:
    with reading("logs:DescribeLogGroups"):
        tags = look.aws.call("logs", "list_tags_for_resource", resourceArn=str(group["logGroupArn"]))
        return {
            "RetentionInDays": group.get("retentionInDays", _NEVER),
            "KmsKeyId": group.get("kmsKeyId"),
            "Tags": keyed(tags["tags"]),
        }


def _of_log_group(stated: Stated) -> Properties:
    return {
        "RetentionInDays": _NEVER,
        **stated.properties,
        "ResourcePolicyDocument": statements(stated.properties.get("ResourcePolicyDocument")),
    }


def _settings(look: Look) -> Properties | None:
    group = _kept(look, str(look.properties["LogGroupName"]))
    if group is None:
        return None
    kept = _of_kept(look, group)
    return {**taken(kept, "RetentionInDays", "Tags"), "KmsKeyArn": kept["KmsKeyId"]}


def _of_settings(stated: Stated) -> Properties:
    return {**stated.properties, "Tags": keyed(stated.properties.get("Tags") or {})}


def _metric_filter(look: Look) -> Properties | None:
    group, name = str(look.stated["LogGroupName"]), look.id
    asked = {"logGroupName": group, "filterNamePrefix": name}
    with reading("logs:DescribeMetricFilters"):
        # a deleted group has no filters any more
        rows = look.listed("logs", "describe_metric_filters", "metricFilters", _GONE, **asked)
        found = next((row for row in rows or () if row["filterName"] == name), None)
        if found is None:
            return None
        return {
            "LogGroupName": group,
            "FilterPattern": found.get("filterPattern", ""),
            "MetricTransformations": [
                {ours: row[theirs] for ours, theirs in _OF_METRIC.items() if theirs in row}
                for row in found["metricTransformations"]
            ],
        }


def _alarm(look: Look) -> Properties | None:
    with reading("cloudwatch:DescribeAlarms"):
        rows = look.aws.call("cloudwatch", "describe_alarms", AlarmNames=[look.id])["MetricAlarms"]
        found = next((row for row in rows if row["AlarmName"] == look.id), None)
        if found is None:
            return None
        return {
            "ActionsEnabled": found["ActionsEnabled"],
            **taken(found, *_ALARM, *_ACTIONS),
            "Metrics": _by_id(found.get("Metrics", ())),
            "Tags": _tags(look, "cloudwatch", str(found["AlarmArn"])),
        }


def _of_alarm(stated: Stated) -> Properties:
    return {"ActionsEnabled": True, **stated.properties, "Metrics": _by_id(stated.properties.get("Metrics") or ())}


def _by_id(queries: Iterable[Any]) -> list[dict[str, Any]]:
    """Name the metrics of an alarm by their IDs, each with whether the alarm watches it."""
    rows = (each for each in queries if isinstance(each, Mapping))
    return [{"ReturnData": True, **row, "Name": row["Id"]} for row in rows]


def _tags(look: Look, service: str, arn: str) -> list[Any]:
    tags: list[Any] = look.aws.call(service, "list_tags_for_resource", ResourceARN=arn)["Tags"]
    return tags


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
            "Tags": _tags(look, "events", str(found["Arn"])),
        }


def _of_rule(stated: Stated) -> Properties:
    targets = [each for each in stated.properties.get("Targets") or () if isinstance(each, Mapping)]
    return {
        "State": "ENABLED",
        **taken(stated.properties, "State", "ScheduleExpression", "Description", "EventPattern", "Tags"),
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
        return {
            "DashboardBody": _AS_DEPLOYED if is_same else _OTHER_BODY,
            "Tags": _tags(look, "cloudwatch", str(found["DashboardArn"])),
        }


def _of_dashboard(stated: Stated) -> Properties:
    body = stated.properties.get("DashboardBody")
    return {**stated.properties, "DashboardBody": body if holds_unknown(body) else _AS_DEPLOYED}


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
            "PluginAdminEnabled": _installs_plugins(look),
            "Tags": keyed(workspace.get("tags", {})),
        }


def _installs_plugins(look: Look) -> bool | None:
    """Return whether administrators of a workspace can install plug-ins; its configuration is a JSON text."""
    found = look.aws.call("grafana", "describe_workspace_configuration", workspaceId=look.id)
    with reading("grafana:DescribeWorkspaceConfiguration"):
        is_enabled: bool | None = json.loads(found["configuration"]).get("plugins", {}).get("pluginAdminEnabled")
        return is_enabled


_AS_DEPLOYED: Final = "as deployed"
_OTHER_BODY: Final = "widgets that differ from the deployed ones"
_DELETING: Final = "DELETING"
_OF_METRIC: Final = {
    "DefaultValue": "defaultValue",
    "Dimensions": "dimensions",
    "MetricName": "metricName",
    "MetricNamespace": "metricNamespace",
    "MetricValue": "metricValue",
    "Unit": "unit",
}
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
        properties=("RetentionInDays", "KmsKeyId", "ResourcePolicyDocument", "Tags"),
        read=_log_group,
        state=_of_log_group,
        made_by_hand=re.compile(rf"{TAGS}|KmsKeyId|ResourcePolicyDocument\[.+\]"),
    ),
    "Custom::HyperPodLogSettings": Kind(
        properties=("RetentionInDays", "KmsKeyArn", "Tags"),
        read=_settings,
        state=_of_settings,
        # an existing group keeps what it has
        made_by_hand=re.compile(r"(?!)"),
        is_sent_whole=True,
        differing=re.compile(r"(?!)"),
        resent="its custom resource sets retention, key and tags with every update",
    ),
    "AWS::Logs::MetricFilter": Kind(
        properties=("LogGroupName", "FilterPattern", "MetricTransformations"), read=_metric_filter
    ),
    "AWS::CloudWatch::Alarm": Kind(
        properties=("ActionsEnabled", *_ALARM, *_ACTIONS, "Metrics", "Tags"),
        read=_alarm,
        state=_of_alarm,
        made_by_hand=re.compile(rf"{TAGS}|AlarmActions|InsufficientDataActions|OKActions"),
        # PutMetricAlarm overwrites all of an alarm except its tags (CloudWatch API reference)
        is_sent_whole=True,
    ),
    "AWS::Events::Rule": Kind(
        properties=("State", "ScheduleExpression", "Description", "EventPattern", "Targets", "Tags"),
        read=_rule,
        state=_of_rule,
        made_by_hand=re.compile(rf"{TAGS}|Targets\[.+\]"),
        # PutRule removes what a request leaves out, and does not change targets and tags (EventBridge API reference)
        is_sent_whole=True,
        differing=re.compile(rf"{ANY_TAG}|Targets\[.+"),
    ),
    "AWS::CloudWatch::Dashboard": Kind(
        properties=("DashboardBody", "Tags"),
        read=_dashboard,
        state=_of_dashboard,
        # PutDashboard replaces all of a dashboard except its tags (CloudWatch API reference)
        is_sent_whole=True,
    ),
    "AWS::APS::Workspace": Kind(properties=("Alias", "KmsKeyArn", "Tags"), read=_prometheus),
    "AWS::Grafana::Workspace": Kind(
        properties=(*_OF_GRAFANA, "AuthenticationProviders", "NetworkAccessControl", "PluginAdminEnabled", "Tags"),
        read=_grafana,
        made_by_hand=re.compile(
            rf"{TAGS}|PluginAdminEnabled|DataSources|NotificationDestinations|NetworkAccessControl\..+"
        ),
    ),
}
