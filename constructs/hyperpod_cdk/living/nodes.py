"""The nodes of a cluster: listed, or described one by one with the places of their logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.findings import passed
from hyperpod_cdk.handlers.quota_gate.reading import NotFound, groups_of
from hyperpod_cdk.living.hyperpod import describe_cluster, is_on_eks
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import Event, Node, NodeDetails, Nodes, NodesDescribed, Unread
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count

RECENT: Final = timedelta(hours=24)
"""How far back events are shown."""

MOST_PAGES: Final = 80
"""Pages of nodes of one group, read one after the other: at 100 ms a call a status takes at most 10 s. HyperPod puts
100 nodes on a page."""

FAILING: Final = ("Failure", "NotFound")
RUNNING: Final = "Running"
CHECKING: Final = "DeepHealthCheckInProgress"
_STATES: Final = frozenset({RUNNING, CHECKING, *FAILING, "Pending", "ShuttingDown", "SystemUpdating"})
"""All states of a node (botocore 1.44.5, ClusterInstanceStatus). AWS can add another one, of which it is unknown
whether the node is healthy."""

_INSTANCE_ID: Final = re.compile(r"i-[0-9a-f]{8}(?:[0-9a-f]{9})?")
"""botocore 1.44.5, ClusterNodeId."""

KUBERNETES: Final = "hyperpod-"
"""The prefix of the instance ID in the name of a node in Kubernetes."""


_MOST_EVENT_PAGES: Final = 20


def unknown_states(states: Iterable[str], *, what: str) -> Iterator[Unread]:
    """Say which states of nodes have no known meaning: it is unknown whether such nodes are healthy."""
    for state, number in sorted(Counter(each for each in states if each not in _STATES).items()):
        are = plural(number, "is", "are")
        yield Unread(what=what, reason=f"{count(number, 'node')} {are} {state}, which this version does not know")


class NodeError(Exception):
    """A sentence for the user: there is no such node or cluster, or the action is not possible."""


def rows_of_nodes(aws: Api, cluster: str) -> list[Mapping[str, Any]]:
    """Return every node of a cluster as ListClusterNodes does, none if there is no cluster. Raises NotAnswered.

    A cluster that fits on one page is one call. For larger clusters the groups are read in parallel, because each page
    has to wait for the one before.
    """
    # a node that is still being provisioned is listed only with its logical ID
    asked = {"ClusterName": cluster, "IncludeNodeLogicalIds": True, "MaxResults": 100}
    try:
        first = aws.call("sagemaker", "list_cluster_nodes", **asked)
        with reading("sagemaker:ListClusterNodes"):
            rows = list(first["ClusterNodeSummaries"])
            if not first.get("NextToken"):
                return rows
            found = describe_cluster(aws, cluster)
            named = [row["InstanceGroupName"] for row in (*(groups_of(found) if found else ()), *rows)]
        names = list(dict.fromkeys(map(str, named)))
        read = together(lambda name: _of_group(aws, asked, name), names)
    except NotFound:
        if describe_cluster(aws, cluster) is None:
            return []
        raise
    for each in read:
        if isinstance(each, NotAnswered):
            raise each
    return [row for each in read if not isinstance(each, NotAnswered) for row in each]


def _of_group(aws: Api, asked: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    token: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        page = aws.call("sagemaker", "list_cluster_nodes", **asked, InstanceGroupNameContains=name, **token)
        with reading("sagemaker:ListClusterNodes"):
            # the filter takes every group whose name contains this one
            rows += [row for row in page["ClusterNodeSummaries"] if row["InstanceGroupName"] == name]
        if not page.get("NextToken"):
            return rows
        token = {"NextToken": page["NextToken"]}
    raise NotAnswered(f"group {name} has nodes on more than {MOST_PAGES} pages")


def rows_of(aws: Api, cluster: str) -> list[Mapping[str, Any]]:
    """Return the groups of a cluster as DescribeCluster has them, none if it shows none."""
    try:
        found = describe_cluster(aws, cluster)
        with reading("sagemaker:DescribeCluster"):
            return groups_of(found) if found else []
    except NotAnswered:
        return []


def list_nodes(aws: Api, *, environment: str, cluster: str, group: str = "", only_failing: bool = False) -> Nodes:
    """List the nodes of a cluster, or of its group ``group``. Raises NodeError if the cluster has no such group."""
    try:
        rows = rows_of_nodes(aws, cluster)
        with reading("sagemaker:ListClusterNodes"):
            found = [_node(row) for row in rows if group in ("", str(row["InstanceGroupName"]))]
        there = None if found else describe_cluster(aws, cluster)
        with reading("sagemaker:DescribeCluster"):
            groups = groups_of(there) if there else []
            named = [str(each["InstanceGroupName"]) for each in groups]
    except NotAnswered as missing:
        verdict = "The nodes could not be read."
        unread = _unread("nodes", missing)
        return Nodes(environment=environment, cluster=cluster, verdict=verdict, passed=None, skipped=(unread,))
    if not found and there is None:
        verdict = f"There is no HyperPod cluster {cluster} in this account and region."
        return Nodes(environment=environment, cluster=cluster, verdict=verdict, passed=None)
    if not found and group and group not in named:
        raise NodeError(f"cluster {cluster} has no instance group {group}; it has {', '.join(named) or 'none'}")
    if not found:
        wanted = [each for each, name in zip(groups, named, strict=True) if group in {"", name}]
        return _none_listed(environment, cluster, wanted)
    failing = [each for each in found if each.status in FAILING]
    running = sum(each.status == RUNNING for each in found)
    verdict = f"{running} of {count(len(found), 'node')} {plural(running, 'runs', 'run')}"
    skipped = tuple(unknown_states((each.status for each in found), what="the state of nodes"))
    return Nodes(
        environment=environment,
        cluster=cluster,
        verdict=f"{verdict}{f'; {len(failing)} failing' if failing else ''}.",
        passed=passed(refuses=bool(failing), is_whole=not skipped),
        nodes=tuple(failing if only_failing else found),
        skipped=skipped,
    )


def _none_listed(environment: str, cluster: str, groups: Sequence[Mapping[str, Any]]) -> Nodes:
    """Say that no node is listed: if some are wanted, that does not show that all is well."""
    targets = [each.get("TargetCount") for each in groups]
    known = [each for each in targets if isinstance(each, int)]
    wanted = str(sum(known)) if len(known) == len(targets) else "an unknown number"
    is_none_wanted = wanted == "0"
    verdict = "There is no node, and none is wanted." if is_none_wanted else f"No node is listed; wanted: {wanted}."
    return Nodes(environment=environment, cluster=cluster, verdict=verdict, passed=True if is_none_wanted else None)


def known_cluster(aws: Api, name: str) -> Mapping[str, Any]:
    """Return a HyperPod cluster on EKS as DescribeCluster does. Raises NodeError for any other, NotAnswered."""
    found = describe_cluster(aws, name)
    if found is None:
        raise NodeError(f"there is no HyperPod cluster {name} in this account and region")
    if not is_on_eks(found):
        raise NodeError(f"cluster {name} runs Slurm or nothing yet, not EKS: this command leaves its nodes alone")
    return found


def by_name(names: Sequence[str]) -> tuple[str, ...]:
    """Return each name as HyperPod has it: a node's name in Kubernetes contains the instance ID. Raises NodeError."""
    told = [name.removeprefix(KUBERNETES) for name in names]
    twice = next((name for name in told if told.count(name) > 1), None)
    if twice is not None:
        raise NodeError(f"node {twice} is named more than once; name it once")
    return tuple(told)


def described(aws: Api, cluster: str, names: Sequence[str], *, called: str) -> list[Mapping[str, Any]]:
    """Return nodes by name as DescribeClusterNode does. Raises NodeError for one that does not exist, NotAnswered."""

    def ask(name: str) -> Mapping[str, Any]:
        by = "NodeId" if _INSTANCE_ID.fullmatch(name) else "NodeLogicalId"
        try:
            answer = aws.call("sagemaker", "describe_cluster_node", ClusterName=cluster, **{by: name})
        except NotFound:
            fix = f"'hyperpod-cdk node list {called}' lists its nodes"
            raise NodeError(f"cluster {cluster} has no node {name}; {fix}") from None
        with reading("sagemaker:DescribeClusterNode"):
            found: Mapping[str, Any] = answer["NodeDetails"]
            # a caller that has the row reads no more
            node_of(found)
            return found

    found = together(ask, names)
    for each in found:
        if isinstance(each, NotAnswered):
            raise each
    return [each for each in found if not isinstance(each, NotAnswered)]


def node_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``Node`` from a row of ListClusterNodes, or from an answer of DescribeClusterNode."""
    launched = row.get("LaunchTime")
    status = row.get("InstanceStatus", {})
    return {
        "id": str(row.get("InstanceId") or ""),
        "logical_id": str(row.get("NodeLogicalId") or ""),
        "group": str(row.get("InstanceGroupName", "")),
        "instance_type": str(row.get("InstanceType", "")),
        "status": str(status.get("Status", "unknown")),
        "message": str(status.get("Message") or ""),
        "launched": moment(launched) if isinstance(launched, datetime) else "",
        "software": str(row.get("CurrentImageReleaseVersion", "")),
        "software_status": str(row.get("ImageVersionStatus", "")),
    }


def _node(row: Mapping[str, Any]) -> Node:
    return Node(**node_of(row))


def describe_nodes(
    aws: Api, *, environment: str, called: str, cluster: str, names: Sequence[str], now: datetime
) -> NodesDescribed:
    """Describe nodes by name; ``now`` is aware and in UTC. Raises NodeError, NotAnswered for the cluster or a node."""
    names = by_name(names)
    found = known_cluster(aws, cluster)
    rows = described(aws, cluster, names, called=called)
    with reading("sagemaker:DescribeCluster"):
        arn = str(found["ClusterArn"])
        plans = {str(each["InstanceGroupName"]): str(each.get("TrainingPlanArn", "")) for each in groups_of(found)}
    skipped: list[Unread] = []
    has_events = found.get("NodeProvisioningMode") == "Continuous"
    told = together(lambda row: _events(aws, cluster, row, now) if has_events else (), rows)
    nodes = []
    with reading("sagemaker:DescribeClusterNode"):
        for row, events in zip(rows, told, strict=True):
            details = _details(row, cluster, arn, plans)
            if isinstance(events, NotAnswered):
                skipped.append(_unread(f"events of {details.name}", events))
            else:
                details = details.model_copy(update={"events": events})
            nodes.append(details)
    skipped += unknown_states((each.status for each in nodes), what="the state of nodes")
    failing = [each.name for each in nodes if each.status in FAILING]
    verdict = f"{', '.join(failing)} failing." if failing else f"{count(len(nodes), 'node')}, none failing."
    return NodesDescribed(
        environment=environment,
        cluster=cluster,
        verdict=verdict,
        passed=passed(refuses=bool(failing), is_whole=not skipped),
        nodes=tuple(nodes),
        skipped=tuple(skipped),
    )


def _details(row: Mapping[str, Any], cluster: str, arn: str, plans: Mapping[str, str]) -> NodeDetails:
    node = node_of(row)
    kubernetes = row.get("KubernetesConfig", {})
    taints = (
        f"{each['Key']}{f'={value}' if (value := each.get('Value')) else ''}:{each['Effect']}"
        for each in kubernetes.get("CurrentTaints", ())
    )
    instance = node["id"]
    # both names have the group in them
    is_placed = bool(instance and node["group"])
    cluster_id = arn.rpartition("/")[2]
    return NodeDetails(
        **node,
        availability_zone_id=str(row.get("Placement", {}).get("AvailabilityZoneId", "")),
        address=str(row.get("PrivatePrimaryIp", "")),
        kubernetes_name=f"{KUBERNETES}{instance}" if instance else "",
        capacity=str(row.get("CapacityType", "")),
        plan=plans.get(node["group"], ""),
        labels={str(key): str(value) for key, value in kubernetes.get("CurrentLabels", {}).items()},
        taints=tuple(taints),
        shell=f"sagemaker-cluster:{cluster_id}_{node['group']}-{instance}" if is_placed else "",
        log_group=log_group(cluster, arn),
        log_stream=f"LifecycleConfig/{node['group']}/{instance}" if is_placed else "",
    )


def log_group(cluster: str, arn: str) -> str:
    """Return the log group of a cluster by its name and ARN."""
    return hyperpod.log_group(cluster, arn.rpartition("/")[2])


def _events(aws: Api, cluster: str, row: Mapping[str, Any], now: datetime) -> tuple[Event, ...]:
    instance = row.get("InstanceId")
    if not instance:
        return ()
    found, unread = newest_events(aws, cluster, now, most=10, page_size=10, NodeId=instance)
    if unread is not None and not found:
        raise NotAnswered(unread.reason)
    return found


def newest_events(
    aws: Api, cluster: str, now: datetime, *, most: int, page_size: int, without: str = "", **more: Any
) -> tuple[tuple[Event, ...], Unread | None]:
    """Return the newest events of the last day except those of the level ``without``, and why some were not read.

    It stops after ``most`` events. A page without events can be followed by one that has some.
    """
    asked = {"SortBy": "EventTime", "SortOrder": "Descending", "MaxResults": page_size, "EventTimeAfter": now - RECENT}
    events: list[Event] = []
    token: dict[str, Any] = {}
    seen: set[object] = set()
    for _ in range(_MOST_EVENT_PAGES):
        page = aws.call("sagemaker", "list_cluster_events", ClusterName=cluster, **more, **asked, **token)
        with reading("sagemaker:ListClusterEvents"):
            events += [event_of(each) for each in page["Events"] if not without or each.get("EventLevel") != without]
        if len(events) >= most or not page.get("NextToken"):
            return tuple(events[:most]), None
        token = {"NextToken": page["NextToken"]}
        if page["NextToken"] in seen:
            reason = "sagemaker:ListClusterEvents returned the same page again"
            return tuple(dict.fromkeys(events)), Unread(what="older events", reason=reason)
        seen.add(page["NextToken"])
    reason = f"the last day has more than {_MOST_EVENT_PAGES} pages of events, and only the newest were read"
    return tuple(events), Unread(what="older events", reason=reason)


def event_of(row: Mapping[str, Any]) -> Event:
    """Return an event from a row of ListClusterEvents."""
    return Event(
        time=moment(row["EventTime"]),
        level=str(row.get("EventLevel", "")),
        group=str(row.get("InstanceGroupName", "")),
        node=str(row.get("InstanceId", "")),
        text=str(row.get("Description", "")),
    )


def moment(at: datetime) -> str:
    """Return a moment in the format of all pages."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _unread(what: str, missing: NotAnswered) -> Unread:
    return Unread(what=what, reason=missing.reason, action=missing.action, aws_said=missing.said)
