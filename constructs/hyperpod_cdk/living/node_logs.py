"""The newest lines of the logs of a node, which HyperPod writes to CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import LogLine, NodeLogs, Unread
from hyperpod_cdk.living.nodes import NodeError, by_name, described, known_cluster, log_group, node_of
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count

Log = Literal["lifecycle", "health", "checks"]
"""Logs of the lifecycle scripts, the health-monitoring agent and deep health checks."""

_AGENT: Final = "SagemakerHealthMonitoringAgent"
_RESULTS: Final = "DeepHealthCheckResults/"
"""Prefixes of stream names (developer guide, health-monitoring agent and deep health checks). Neither page states the
rest of a name: the agent's streams are "for each node", and are assumed to contain its instance ID."""

_MOST_PAGES: Final = 10
"""CloudWatch may give an empty page before the last one."""

_NONE: Final = "ResourceNotFoundException"


def node_logs(aws: Api, *, environment: str, called: str, cluster: str, name: str, log: Log, most: int) -> NodeLogs:
    """Return the ``most`` newest lines of a log of a node. Raises NodeError, NotAnswered for the cluster or the
    node."""
    found = known_cluster(aws, cluster)
    (row,) = described(aws, cluster, by_name([name]), called=called)
    with reading("sagemaker:DescribeClusterNode"):
        node = node_of(row)
        group = log_group(cluster, str(found["ClusterArn"]))
    instance = node["id"]
    if not instance:
        raise NodeError(f"node {name} has no instance yet (it is {node['status']}), so it has no logs")
    lines: tuple[LogLine, ...] = ()
    skipped: tuple[Unread, ...] = ()
    try:
        if log == "lifecycle":
            lines = _newest(aws, group, f"LifecycleConfig/{node['group']}/{instance}", most)
        elif log == "health":
            lines = tuple(line for each in _streams(aws, group, instance) for line in _newest(aws, group, each, most))
        else:
            lines = _naming(aws, group, instance, row.get("LaunchTime"), most)
    except NotAnswered as missing:
        skipped = (Unread(what=f"log {log}", reason=missing.reason, action=missing.action, aws_said=missing.said),)
    lines = tuple(sorted(lines, key=lambda line: line.time))[-most:]
    verdict = f"{count(len(lines), 'line')} of {instance}." if lines else f"{instance} has no such lines."
    return NodeLogs(
        environment=environment,
        cluster=cluster,
        node=instance,
        log_group=group,
        verdict="The log could not be read." if skipped else verdict,
        passed=None if skipped else True,
        lines=lines,
        skipped=skipped,
    )


def _newest(aws: Api, group: str, stream: str, most: int) -> tuple[LogLine, ...]:
    lines: list[LogLine] = []
    asked: dict[str, Any] = {"logGroupName": group, "logStreamName": stream, "startFromHead": False, "limit": most}
    token = ""
    for _ in range(_MOST_PAGES):
        try:
            page = aws.call("logs", "get_log_events", **asked, **({"nextToken": token} if token else {}))
        except Refused as refused:
            if refused.code == _NONE:
                break
            raise
        with reading("logs:GetLogEvents"):
            # pages go backwards, the lines of each forwards
            lines[:0] = [_line(row, stream) for row in page["events"]]
            following = str(page.get("nextBackwardToken", ""))
        # at the end CloudWatch returns the token of the request
        if len(lines) >= most or following in ("", token):
            break
        token = following
    return tuple(lines)


def _streams(aws: Api, group: str, instance: str) -> list[str]:
    try:
        rows = aws.pages("logs", "describe_log_streams", "logStreams", logGroupName=group, logStreamNamePrefix=_AGENT)
    except Refused as refused:
        if refused.code == _NONE:
            return []
        raise
    with reading("logs:DescribeLogStreams"):
        return [str(row["logStreamName"]) for row in rows if instance in row["logStreamName"]]


def _naming(aws: Api, group: str, instance: str, since: object, most: int) -> tuple[LogLine, ...]:
    """Return the lines of deep health checks that name an instance: the names of their streams may not."""
    begins = {"startTime": int(since.timestamp() * 1000)} if isinstance(since, datetime) else {}
    try:
        rows = aws.pages(
            "logs",
            "filter_log_events",
            "events",
            logGroupName=group,
            logStreamNamePrefix=_RESULTS,
            filterPattern=f'"{instance}"',
            **begins,
        )
    except Refused as refused:
        if refused.code == _NONE:
            return ()
        raise
    with reading("logs:FilterLogEvents"):
        return tuple(_line(row, str(row.get("logStreamName", ""))) for row in rows)[-most:]


def _line(row: Mapping[str, Any], stream: str) -> LogLine:
    at = datetime.fromtimestamp(int(row["timestamp"]) / 1000, UTC)
    return LogLine(time=f"{at:%Y-%m-%d %H:%M:%S} UTC", stream=stream, text=str(row.get("message", "")).rstrip("\n"))
