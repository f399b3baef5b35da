"""The nodes of HyperPod clusters: how they are launched, fail, are retried with a new instance, and run.

With continuous provisioning, a cluster is in service before its nodes. Nodes are launched one after the other; a node
that cannot be launched remains pending without an instance, and a node whose setup fails is Failure for a while and
then retried with a new instance, without a limit (API reference, ClusterInstanceStatusDetails and UpdateCluster). The
cause is checked again each time. The account file's ``nodes`` describes further failures.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.account_sections import NodesOf
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.services import rules
from hyperpod_cdk_rehearsal.embedded.services.cluster_events import record
from hyperpod_cdk_rehearsal.embedded.services.network import Network
from hyperpod_cdk_rehearsal.embedded.services.rules import LaunchProblem
from hyperpod_cdk_rehearsal.embedded.services.stores import (
    HyperPodCluster,
    InstanceGroup,
    Node,
    hyperpod_cluster_on,
    hyperpod_clusters,
)
from hyperpod_cdk_rehearsal.embedded.services.timeline import Timeline
from hyperpod_cdk_rehearsal.embedded.services.training_plans import find_plan

NODE_SECONDS = 0.2
"""From launch to running, where a cluster provisions all or nothing: it is in service after its nodes."""
FIRST_NODE_SECONDS = 1.0
"""From the moment when a continuous cluster is in service to its first node; HyperPod takes minutes."""
NEXT_NODE_SECONDS = 0.05
HEALTH_CHECK_SECONDS = 0.3
FAILURE_SECONDS = 0.4
"""From launch to failure; as long again until a new instance is tried."""

MINIMUM_SECONDS = 3 * 3600.0
"""How long a group has to reach its minimum (API reference, MinInstanceCount), counted anew with each change of it."""

IMAGE_RELEASE_VERSION = "1.0.0"
FIRST_HOST = 4
"""AWS keeps the first four addresses of a subnet for itself."""
REPLACED = "Instance {node} is starting as part of instance replacement in Cluster {cluster} and IG {group}"
"""Developer guide, "HyperPod cluster events reference"."""
LATER = "not launched yet"
LOG_HINT = "To view lifecycle script logs, visit log group {group}"

Spec = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The nodes that groups are to get, by group, and where nothing is provisioned in parts why that cannot be."""

    nodes: Mapping[str, list[Node]]
    problem: str | None = None


def plan_nodes(
    context: Context, cluster: HyperPodCluster, wanted: Spec, groups: Iterable[Spec], *, in_service_after: float
) -> Plan:
    """Plan the missing nodes of ``groups`` in the cluster that ``wanted`` describes.

    ``in_service_after`` is how many seconds the cluster itself takes until then.
    """
    growing = {str(group["InstanceGroupName"]) for group in groups}
    taken = _addresses_taken(context)
    planned: dict[str, list[Node]] = {}
    for spec in rules.groups_of(wanted):
        name = str(spec["InstanceGroupName"])
        if name not in growing:
            continue
        problem = _launch_problem(context, cluster, wanted, spec, taken)
        told = _in_account_file(context, spec)
        continuous = wanted.get("NodeProvisioningMode") == "Continuous"
        if not continuous:
            stopped = problem or _first_problem(spec, told)
            if stopped:
                return Plan(nodes={}, problem=stopped.message)
        present = cluster.groups.get(name)
        first = present.launched if present else 0
        planned[name] = [
            _attempt(
                context,
                cluster,
                wanted,
                spec,
                taken,
                problem=problem,
                number=number,
                tried=0,
                after=in_service_after + FIRST_NODE_SECONDS + (number - first) * NEXT_NODE_SECONDS
                if continuous
                else NODE_SECONDS,
            )
            for number in range(first, first + _missing(context, present, spec))
        ]
    return Plan(nodes=planned)


def settle_nodes(context: Context, cluster: HyperPodCluster, planned: Mapping[str, list[Node]]) -> None:
    """Add planned nodes to their groups, and record an event for each."""
    for name, nodes in planned.items():
        group = cluster.groups[name]
        group.nodes += nodes
        group.launched += len(nodes)
        for node in nodes:
            _record_attempt(context, cluster, node)


def begin_minimum(context: Context, group: InstanceGroup, before: Spec) -> None:
    """Let the time begin in which a group has to reach its minimum; one that is not changed goes on as it was."""
    least = group.spec.get("MinInstanceCount")
    if not least:
        group.minimum_until = None
    elif least != before.get("MinInstanceCount"):
        group.minimum_until = context.clock.now() + timedelta(seconds=MINIMUM_SECONDS * context.clock.scale)


def _judge_minimum(context: Context, cluster: HyperPodCluster, group: InstanceGroup) -> None:
    """See whether a minimum is met, or its time is over: then the group goes back to what it was, a new one to nothing.

    Unhealthy nodes go first, then the newest (developer guide, scaling of EKS clusters).
    """
    now, spec = context.clock.now(), group.spec
    if group.minimum_until is None:
        return
    running = [node for node in group.nodes if node.timeline.at(now) == "Running"]
    if len(running) >= int(spec["MinInstanceCount"]):
        group.in_service = int(spec["MinInstanceCount"]), int(spec["InstanceCount"])
        group.minimum_until = None
    elif group.minimum_until <= now:
        unmet, (least, count) = spec["MinInstanceCount"], group.in_service
        spec.update(MinInstanceCount=least, InstanceCount=count)
        others = [node for node in group.nodes if node not in running]
        group.nodes = sorted([*running, *others][:count], key=lambda node: node.number)
        group.minimum_until = None
        text = (
            f"Instance group {group.name} did not reach its minimum of {unmet} instances in time and was rolled back to"
            f" {count} instances."
        )
        record(context, cluster, "InstanceGroup", text, level="Error")


def try_again(context: Context, cluster: HyperPodCluster) -> None:
    """Try the nodes again whose time has come, with new instances; what stood in their way may be gone by now.

    Where nothing is provisioned continuously they are those that somebody has had replaced. A group whose minimum was
    not reached in time is taken back first.
    """
    now = context.clock.now()
    if cluster.timeline.at(now) in {"Deleting", "Failed"}:
        return
    with context.state.lock:
        for group in cluster.groups.values():
            _judge_minimum(context, cluster, group)
    wanted = cluster.as_requested()
    for group in list(cluster.groups.values()):
        due = [node for node in group.nodes if node.retried_at and node.retried_at <= now]
        if not due:
            continue
        taken = _addresses_taken(context)
        # it asks other services of this AWS, which must not wait for a lock that is held here
        problem = _launch_problem(context, cluster, wanted, group.spec, taken)
        for before in due:
            node = _attempt(
                context,
                cluster,
                wanted,
                group.spec,
                taken,
                problem=problem,
                number=before.number,
                tried=before.tried + 1,
                after=NODE_SECONDS,
            )
            with context.state.lock:
                place = next((index for index, each in enumerate(group.nodes) if each is before), None)
                # somebody else may have tried it meanwhile, or taken it away
                if place is not None:
                    group.nodes[place] = node
                    if before.is_replaced and node.instance_id:
                        text = REPLACED.format(node=node.instance_id, cluster=cluster.name, group=node.group)
                        record(context, cluster, "Instance", text, level="Info", node=node)
                    _record_attempt(context, cluster, node)


def missing_nodes(context: Context) -> list[dict[str, Any]]:
    """Return the nodes that groups want and do not have, those of one group and one reason in one row.

    ``is_failure``: something stands in their way that the account file does not state under ``nodes``. Nodes that come
    later and those of a training plan that has not started are no failures.
    """
    now = context.clock.now()
    rows: list[dict[str, Any]] = []
    for cluster in hyperpod_clusters(context).values():
        for name, group in sorted(cluster.groups.items()):
            found = Counter(
                (node.problem or LATER, bool(node.problem) and not node.is_stated) for node in group.absent(now)
            )
            waiting = int(group.spec["InstanceCount"]) - len(group.nodes)
            if waiting > 0:
                found[_why_none_is_tried(context, group.spec), False] += waiting
            rows += [
                {"cluster": cluster.name, "group": name, "count": count, "reason": reason, "is_failure": is_failure}
                for (reason, is_failure), count in found.items()
            ]
    return rows


def _why_none_is_tried(context: Context, spec: Spec) -> str:
    plan = find_plan(context, spec["TrainingPlanArn"]) if spec.get("TrainingPlanArn") else None
    if plan is None or plan.has_started:
        return LATER
    return f"the training plan {plan.entry.name} is {plan.entry.status}"


def running_nodes(context: Context, eks_cluster_arn: str) -> list[Node]:
    """The HyperPod nodes that have joined an EKS cluster and run."""
    cluster = hyperpod_cluster_on(context, eks_cluster_arn)
    if cluster is None:
        return []
    try_again(context, cluster)
    now = context.clock.now()
    return [node for node in cluster.nodes() if node.timeline.at(now) == "Running"]


def nodes_for_addons(context: Context, eks_cluster_arn: str) -> list[Node]:
    """Those of them that take pods without tolerations, as Kueue's and cert-manager's are by default.

    NoSchedule and NoExecute keep such pods off (Kubernetes, "Taints and Tolerations"); HyperPod taints restricted
    nodes.
    """
    cluster = hyperpod_cluster_on(context, eks_cluster_arn)
    if cluster is None:
        return []
    closed = {name for name, group in cluster.groups.items() if group.restricted or _keeps_pods_off(group.spec)}
    return [node for node in running_nodes(context, eks_cluster_arn) if node.group not in closed]


def _keeps_pods_off(spec: Spec) -> bool:
    taints = (spec.get("KubernetesConfig") or {}).get("Taints") or []
    return any(taint["Effect"] != "PreferNoSchedule" for taint in taints)


def _launch_problem(
    context: Context, cluster: HyperPodCluster, wanted: Spec, spec: Spec, taken: Counter[str]
) -> LaunchProblem | None:
    present = cluster.groups.get(str(spec["InstanceGroupName"]))
    # what the group itself holds now is not in its own way
    held = Counter[str]()
    if present:
        _hold(held, present)
    return rules.launch_problem(context, wanted, spec, taken - held)


def _missing(context: Context, present: InstanceGroup | None, spec: Spec) -> int:
    plan = find_plan(context, spec["TrainingPlanArn"]) if spec.get("TrainingPlanArn") else None
    if plan is not None and not plan.has_started:
        return 0
    return max(int(spec["InstanceCount"]) - len(present.nodes if present else []), 0)


def _in_account_file(context: Context, spec: Spec) -> NodesOf:
    return account_of(context).nodes.get(str(spec["InstanceGroupName"])) or NodesOf()


def _first_problem(spec: Spec, told: NodesOf) -> LaunchProblem | None:
    """Return the first problem in the account file for any node of a group."""
    problems = (_problem_in_account_file(spec, told, number, 0) for number in range(int(spec["InstanceCount"])))
    return next((problem for problem in problems if problem), None)


def _problem_in_account_file(spec: Spec, told: NodesOf, number: int, tried: int) -> LaunchProblem | None:
    """Return the problem in the account file for this attempt at the node with this number."""
    count = int(spec["InstanceCount"])
    never = count if told.never == "all" else told.never
    failing = count if told.failing == "all" else told.failing
    # a group that was deployed before goes on with higher numbers
    place = number % max(count, 1)
    if place < never:
        reason = told.reason or rules.CAPACITY_TEXT.format(type=rules.types_of(spec)[0])
        return LaunchProblem(reason, is_stated=True)
    if place < never + failing and (told.failures == "always" or tried < told.failures):
        message = told.message or rules.LIFECYCLE_TEXT
        return LaunchProblem(message, has_instance=True, is_script=True, is_stated=True)
    return None


def _attempt(
    context: Context,
    cluster: HyperPodCluster,
    wanted: Spec,
    spec: Spec,
    taken: Counter[str],
    *,
    problem: LaunchProblem | None,
    number: int,
    tried: int,
    after: float,
) -> Node:
    """Return the node of this number as one attempt makes it, which runs or fails ``after`` so many seconds."""
    name, instance_type = str(spec["InstanceGroupName"]), rules.types_of(spec)[0]
    told = _in_account_file(context, spec)
    problem = problem or _problem_in_account_file(spec, told, number, tried)
    digest = hashlib.sha256(f"{cluster.cluster_id}/{name}/{number}".encode()).hexdigest()
    logical_id = f"{name}-{digest[17:25]}"
    if tried:
        digest = hashlib.sha256(f"{cluster.cluster_id}/{name}/{number}/{tried}".encode()).hexdigest()
    has_instance = problem is None or problem.has_instance
    subnet = _subnet(context, wanted, spec, taken) if has_instance else None
    address = ""
    if subnet is not None:
        address = str(ipaddress.ip_network(subnet["CidrBlock"])[FIRST_HOST + taken[subnet["SubnetId"]]])
        taken[subnet["SubnetId"]] += rules.addresses_per_node(spec, instance_type)
    after += told.delay_seconds
    fails_after = after + FAILURE_SECONDS
    retried_at = None
    if problem is not None:
        retried_at = context.clock.now() + timedelta(seconds=(fails_after + FAILURE_SECONDS) * context.clock.scale)
    return Node(
        instance_id=f"i-{digest[:17]}" if has_instance else "",
        logical_id=logical_id,
        group=name,
        instance_type=instance_type,
        subnet_id=str(subnet["SubnetId"]) if subnet else "",
        availability_zone_id=str(subnet["AvailabilityZoneId"]) if subnet else "",
        private_ip=address,
        launched=context.clock.now(),
        timeline=_timeline(context, spec, problem, after=after, fails_after=fails_after),
        image_release_version=spec.get("ImageReleaseVersion") or IMAGE_RELEASE_VERSION,
        number=number,
        tried=tried,
        problem=problem.message if problem else "",
        is_script=problem.is_script if problem else False,
        is_stated=problem.is_stated if problem else False,
        fails_after=fails_after,
        retried_at=retried_at,
    )


def _timeline(
    context: Context, spec: Spec, problem: LaunchProblem | None, *, after: float, fails_after: float
) -> Timeline:
    if problem is not None:
        later = [(fails_after, "Failure")] if problem.has_instance else []
    elif spec.get("OnStartDeepHealthChecks"):
        later = [(after, "DeepHealthCheckInProgress"), (HEALTH_CHECK_SECONDS, "Running")]
    else:
        later = [(after, "Running")]
    return Timeline.begin(context.clock, "Pending", *later)


def _subnet(context: Context, wanted: Spec, spec: Spec, taken: Counter[str]) -> Mapping[str, Any]:
    subnets: Sequence[Mapping[str, Any]] = rules.placement(context, Network(context), wanted, spec)
    each = rules.addresses_per_node(spec, rules.types_of(spec)[0])
    roomy = (item for item in subnets if item["AvailableIpAddressCount"] - taken[item["SubnetId"]] >= each)
    return next(roomy, subnets[0])


def _record_attempt(context: Context, cluster: HyperPodCluster, node: Node) -> None:
    """Note what the events say of one attempt at a node; a failure has two events, as on AWS."""
    where = f"in Cluster {cluster.name} and InstanceGroup {node.group}"
    if node.instance_id:
        text = f"EC2 Instance {node.instance_id} successfully provisioned {where}"
        record(context, cluster, "Instance", text, level="Info", node=node)
    if not node.problem:
        return
    metadata = {"FailureMessage": node.problem, "NodeLogicalId": node.logical_id}
    first = f"Failed to provision EC2 Instance {where}"
    if node.is_script:
        metadata["LcsExecutionState"] = "Failed"
        group = f"/aws/sagemaker/Clusters/{cluster.name}/{cluster.cluster_id}"
        first = f"Instance lifecycle script execution for EC2 Instance {node.instance_id} has Failed. "
        first += LOG_HINT.format(group=group)
    for text in (first, f"Instance creation {where} failed"):
        record(context, cluster, "Instance", text, level="Error", node=node, metadata=metadata, after=node.fails_after)


def _addresses_taken(context: Context) -> Counter[str]:
    taken = Counter[str]()
    for cluster in hyperpod_clusters(context).values():
        for group in cluster.groups.values():
            _hold(taken, group)
    return taken


def _hold(taken: Counter[str], group: InstanceGroup) -> None:
    """Count the addresses that the nodes of a group hold, by subnet."""
    for node in group.nodes:
        taken[node.subnet_id] += rules.addresses_per_node(group.spec, node.instance_type)
