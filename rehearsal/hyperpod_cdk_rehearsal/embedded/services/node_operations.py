"""What is done to nodes by hand: replaced, rebooted, checked (botocore 1.44.5; developer guide, "Manually quarantine,
replace, or reboot a node").

AWS documents the error codes of single nodes and not their sentences; nor does it say how a request is refused that
names no node, or a logical ID where nothing is provisioned continuously: a ValidationException here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import instance_types
from hyperpod_cdk_rehearsal.embedded.services import rules
from hyperpod_cdk_rehearsal.embedded.services.cluster_events import record, record_health_check
from hyperpod_cdk_rehearsal.embedded.services.nodes import HEALTH_CHECK_SECONDS, NODE_SECONDS
from hyperpod_cdk_rehearsal.embedded.services.sagemaker import find_cluster
from hyperpod_cdk_rehearsal.embedded.services.stores import HyperPodCluster, Node
from hyperpod_cdk_rehearsal.embedded.services.timeline import Timeline

SETTLED = ("Running", "Failure")
"""States in which nothing is changing ("Wait for the instance to finish any ongoing changes before retrying")."""

REBOOTED = "Reboot of EC2 Instance {node} is currently in progress on Cluster {cluster} and IG {group}"
"""Developer guide, "HyperPod cluster events reference"; that of a replacement comes with the new instance."""


@operation("sagemaker", "BatchReplaceClusterNodes")
def batch_replace_cluster_nodes(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Terminate nodes and launch others in their place, of the same AMI and configuration, with empty volumes."""

    def replace(_: HyperPodCluster, node: Node) -> None:
        _begin(context, node, Timeline.begin(context.clock, "ShuttingDown"))
        node.problem, node.is_replaced = "", True
        # whoever looks at the cluster after that finds the attempt that comes then
        node.retried_at = node.busy_until

    return _batch(context, request, "replacement", replace)


@operation("sagemaker", "BatchRebootClusterNodes")
def batch_reboot_cluster_nodes(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Restart the operating system of nodes; the instances stay. One that failed is no better after it."""

    def reboot(cluster: HyperPodCluster, node: Node) -> None:
        after = node.timeline.at(context.clock.now())
        _begin(context, node, Timeline.begin(context.clock, "Pending", (NODE_SECONDS, after)))
        text = REBOOTED.format(node=node.instance_id, cluster=cluster.name, group=node.group)
        record(context, cluster, "Instance", text, level="Info", node=node)

    return _batch(context, request, "rebooting", reboot)


@operation("sagemaker", "StartClusterHealthCheck")
def start_cluster_health_check(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin deep health checks on nodes, or whole groups; all pass here."""
    cluster = find_cluster(context, request["ClusterName"])
    todo: list[Node] = []
    for wanted in request["DeepHealthCheckConfigurations"]:
        name = str(wanted["InstanceGroupName"])
        group = cluster.groups.get(name)
        if group is None:
            raise _validation(f"Instance group {name} not found in cluster {cluster.name}.")
        instance_type = rules.types_of(group.spec)[0]
        if not instance_types.has_deep_health_checks(instance_type):
            raise _validation(f"Instance group '{name}': deep health checks are not supported for {instance_type}.")
        present = {node.instance_id: node for node in group.nodes if node.instance_id}
        named = wanted.get("InstanceIds") or list(present)
        missing = [each for each in named if each not in present]
        if missing:
            raise _validation(f"Instances not found in instance group {name}: {', '.join(missing)}.")
        todo += [present[each] for each in named]
    now = context.clock.now()
    with context.state.lock:
        for node in todo:
            if node.timeline.at(now) == "Running":
                node.timeline = Timeline.begin(
                    context.clock, "DeepHealthCheckInProgress", (HEALTH_CHECK_SECONDS, "Running")
                )
        record_health_check(context, cluster, request["DeepHealthCheckConfigurations"], todo)
    return {"ClusterArn": cluster.arn}


@dataclass(frozen=True)
class _Ids:
    """How a request names nodes, and what the answer calls those that it names so."""

    asked: str
    done: str
    failed: str
    key: str
    of: Callable[[Node], str]


_BOTH = (
    _Ids("NodeIds", "Successful", "Failed", "NodeId", lambda node: node.instance_id),
    _Ids(
        "NodeLogicalIds",
        "SuccessfulNodeLogicalIds",
        "FailedNodeLogicalIds",
        "NodeLogicalId",
        lambda node: node.logical_id,
    ),
)


def _batch(
    context: Context, request: Mapping[str, Any], what: str, begin: Callable[[HyperPodCluster, Node], None]
) -> dict[str, Any]:
    cluster = find_cluster(context, str(request["ClusterName"]))
    if not any(request.get(ids.asked) for ids in _BOTH):
        raise _validation("Either NodeIds or NodeLogicalIds must be provided.")
    if request.get("NodeLogicalIds") and not cluster.is_continuous:
        raise _validation(
            f"NodeLogicalIds is only supported with NodeProvisioningMode Continuous, which cluster {cluster.name} does"
            " not have; use NodeIds."
        )
    answer: dict[str, Any] = {}
    with context.state.lock:
        for ids in _BOTH:
            known = {ids.of(node): node for node in cluster.nodes() if ids.of(node)}
            for name in request.get(ids.asked) or []:
                problem = _problem(context, cluster, known.get(name), name, what)
                if problem is None:
                    begin(cluster, known[name])
                    answer.setdefault(ids.done, []).append(name)
                else:
                    code, message = problem
                    row = {ids.key: name, "ErrorCode": code, "Message": message}
                    answer.setdefault(ids.failed, []).append(row)
    return answer


def _problem(
    context: Context, cluster: HyperPodCluster, node: Node | None, name: str, what: str
) -> tuple[str, str] | None:
    """Return the code and the sentence of what is in the way of one node."""
    now = context.clock.now()
    if node is None:
        return "InstanceIdNotFound", f"Instance {name} does not exist in cluster {cluster.name}."
    if node.busy_until is not None and now < node.busy_until:
        return "InstanceIdInUse", f"Another operation is already in progress for instance {name}."
    status = node.timeline.at(now)
    if status not in SETTLED:
        return "InvalidInstanceStatus", f"Instance {name} is {status}, a state that does not allow {what}."
    return None


def _begin(context: Context, node: Node, timeline: Timeline) -> None:
    node.timeline = timeline
    node.busy_until = context.clock.now() + timedelta(seconds=NODE_SECONDS * context.clock.scale)


def _validation(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)
