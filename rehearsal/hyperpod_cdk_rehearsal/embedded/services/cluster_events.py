"""What HyperPod says happened to a cluster: events of the cluster, its groups and its instances, listed and described.

The descriptions are those of the developer guide's cluster events reference.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.services.stores import HyperPodCluster, Node

Level = Literal["Info", "Warn", "Error"]
Subject = Literal["Cluster", "InstanceGroup", "Instance"]

_FILTERS = {"InstanceGroupName": "InstanceGroupName", "NodeId": "InstanceId", "ResourceType": "ResourceType"}
_METADATA = "metadata"


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
    begins, ends = request.get("EventTimeAfter"), request.get("EventTimeBefore")
    events = [
        event
        for event in _of(cluster)
        if event["EventTime"] <= now
        and all(request.get(asked) in {None, event.get(member)} for asked, member in _FILTERS.items())
        and (begins is None or event["EventTime"] > begins)
        and (ends is None or event["EventTime"] < ends)
    ]
    # those of one moment stay in the order in which they were noted
    events.sort(key=lambda event: event["EventTime"])
    if request.get("SortOrder") != "Ascending":
        events.reverse()
    return {"Events": [_summary(event) for event in events]}


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


def _of(cluster: HyperPodCluster) -> list[dict[str, Any]]:
    if not cluster.is_continuous:
        raise ServiceError(
            "ValidationException",
            f"Cluster {cluster.name} does not have NodeProvisioningMode Continuous; it has no events.",
        )
    return cluster.events


def _summary(event: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != _METADATA}
