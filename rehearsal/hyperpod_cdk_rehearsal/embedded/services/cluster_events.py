"""What HyperPod says happened to a cluster: its events and its operations, listed and described.

The descriptions of events are those of the developer guide's cluster events reference. An operation is the record of
one request that scales the cluster or checks its health, kept for 14 days (developer guide, "Tracking requests with
SageMaker HyperPod cluster operations").
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.services.stores import ClusterOperation, HyperPodCluster, Node

Level = Literal["Info", "Warn", "Error"]
Subject = Literal["Cluster", "InstanceGroup", "Instance"]

_FILTERS = {"InstanceGroupName": "InstanceGroupName", "NodeId": "InstanceId", "ResourceType": "ResourceType"}
_METADATA = "metadata"
_KEPT = timedelta(days=14)


def record(
    context: Context,
    cluster: HyperPodCluster,
    subject: Subject,
    description: str,
    *,
    level: Level,
    node: Node | None = None,
    metadata: Mapping[str, str] | None = None,
    after: float = 0.0,
) -> None:
    """Note an event that happens now, or ``after`` seconds; ``metadata`` is what DescribeClusterEvent adds."""
    number = len(cluster.events)
    event: dict[str, Any] = {
        "EventId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{cluster.arn}/{number}")),
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "ResourceType": subject,
        "EventTime": context.clock.now() + timedelta(seconds=after * context.clock.scale),
        "Description": description,
        "EventLevel": level,
        _METADATA: dict(metadata or {}),
    }
    if node is not None:
        event["InstanceGroupName"] = node.group
        if node.instance_id:
            event["InstanceId"] = node.instance_id
    cluster.events.append(event)


def list_events(context: Context, cluster: HyperPodCluster, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer ListClusterEvents: newest first unless asked otherwise. Raises ServiceError without continuous nodes."""
    now = context.clock.now()
    events = [event for event in _of(cluster) if event["EventTime"] <= now]
    return {"Events": [_summary(event) for event in _asked_for(request, events, "EventTime", _FILTERS)]}


def describe_event(context: Context, cluster: HyperPodCluster, event_id: str) -> dict[str, Any]:
    """Answer DescribeClusterEvent. Raises ServiceError for an event that is not there."""
    now = context.clock.now()
    for event in _of(cluster):
        if event["EventId"] == event_id and event["EventTime"] <= now:
            details = _summary(event)
            if event[_METADATA]:
                details["EventDetails"] = {"EventMetadata": {event["ResourceType"]: event[_METADATA]}}
            return {"EventDetails": details}
    raise ServiceError("ResourceNotFound", f"Event {event_id} not found in cluster {cluster.name}.")


def counts_of(cluster: HyperPodCluster, now: datetime) -> dict[str, dict[str, int]]:
    """Return the current, target and minimum count of each instance group."""
    return {
        name: {
            "CurrentCount": group.current_count(now),
            "TargetCount": int(group.spec["InstanceCount"]),
            **({"MinCount": int(group.spec["MinInstanceCount"])} if group.spec.get("MinInstanceCount") else {}),
        }
        for name, group in cluster.groups.items()
    }


def record_scaling(context: Context, cluster: HyperPodCluster, before: Mapping[str, Mapping[str, int]]) -> None:
    """Note an operation if a target or minimum count differs from ``before``, which `counts_of` gave."""
    now = context.clock.now()
    after = counts_of(cluster, now)
    none = {"CurrentCount": 0, "TargetCount": 0}
    pairs = {name: (before.get(name, none), after.get(name, none)) for name in sorted({*before, *after})}
    asked = ("TargetCount", "MinCount")
    scaling = {
        name: (old, {member: new[member] for member in asked if member in new})
        for name, (old, new) in pairs.items()
        if any(old.get(member) != new.get(member) for member in asked)
    }
    if scaling:
        cluster.operations.append(ClusterOperation(_operation_id(cluster), now, scaling=scaling))


def record_health_check(
    context: Context, cluster: HyperPodCluster, checks: Sequence[Mapping[str, Any]], nodes: Sequence[Node]
) -> None:
    """Note an operation for deep health checks that were requested on ``nodes``."""
    now = context.clock.now()
    cluster.operations.append(ClusterOperation(_operation_id(cluster), now, checks=tuple(checks), checked=tuple(nodes)))


def list_operations(context: Context, cluster: HyperPodCluster, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer ListClusterOperations: newest first unless asked otherwise, those of the last 14 days."""
    now = context.clock.now()
    found = [_operation_summary(cluster, each, now) for each in cluster.operations if each.created > now - _KEPT]
    filters = {member: member for member in ("Status", "Type")}
    return {"ClusterOperationSummaries": _asked_for(request, found, "CreationTime", filters)}


def describe_operation(context: Context, cluster: HyperPodCluster, operation_id: str) -> dict[str, Any]:
    """Answer DescribeClusterOperation. Raises ServiceError for an operation that does not exist."""
    now = context.clock.now()
    for each in cluster.operations:
        if each.operation_id == operation_id and each.created > now - _KEPT:
            details = [
                {
                    "InstanceGroupName": name,
                    "Status": _group_status(cluster, each, name, now),
                    "Original": before,
                    "Desired": after,
                }
                for name, (before, after) in each.scaling.items()
            ]
            return {
                **_operation_summary(cluster, each, now),
                **({"ScalingDetails": details} if details else {}),
                **({"DeepHealthCheckDetails": list(each.checks)} if each.checks else {}),
            }
    raise ServiceError("ResourceNotFound", f"Operation {operation_id} not found in cluster {cluster.name}.")


def _asked_for(
    request: Mapping[str, Any], rows: Sequence[dict[str, Any]], time: str, filters: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the rows for which a list is asked, in its order; ``filters`` maps members of the request to rows'."""
    begins, ends = request.get(f"{time}After"), request.get(f"{time}Before")
    found = [
        row
        for row in rows
        if all(request.get(asked) in {None, row.get(member)} for asked, member in filters.items())
        and (begins is None or row[time] > begins)
        and (ends is None or row[time] < ends)
    ]
    # those of one moment stay in the order in which they were noted
    found.sort(key=lambda row: row[time])
    if request.get("SortOrder") != "Ascending":
        found.reverse()
    return found


def _operation_id(cluster: HyperPodCluster) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{cluster.arn}/operation/{len(cluster.operations)}"))


def _operation_summary(cluster: HyperPodCluster, operation: ClusterOperation, now: datetime) -> dict[str, Any]:
    if operation.checks:
        checking = any(node.timeline.at(now) == "DeepHealthCheckInProgress" for node in operation.checked)
        states = {"InProgress" if checking else "Done"}
    else:
        states = {_group_status(cluster, operation, name, now) for name in operation.scaling}
    return {
        "OperationId": operation.operation_id,
        "ClusterArn": cluster.arn,
        "Type": "DeepHealthCheck" if operation.checks else "Scaling",
        "Status": next(each for each in ("InProgress", "Superseded", "Done") if each in states),
        "CreationTime": operation.created,
    }


def _group_status(cluster: HyperPodCluster, operation: ClusterOperation, name: str, now: datetime) -> str:
    """Return the state of one group. That a later request for it supersedes this one is assumed from the word."""
    later = cluster.operations[cluster.operations.index(operation) + 1 :]
    if any(name in each.scaling for each in later):
        return "Superseded"
    group = cluster.groups.get(name)
    # what a minimum that was not met has given up is no longer worked on
    return "Done" if group is None or group.current_count(now) >= int(group.spec["InstanceCount"]) else "InProgress"


def _of(cluster: HyperPodCluster) -> list[dict[str, Any]]:
    if not cluster.is_continuous:
        raise ServiceError(
            "ValidationException",
            f"Cluster {cluster.name} does not have NodeProvisioningMode Continuous; it has no events.",
        )
    return cluster.events


def _summary(event: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != _METADATA}
