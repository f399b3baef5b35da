"""Replaces, reboots, checks and cordons nodes: says what an action needs and does, and then requests it.

AWS documents the members of a request and the errors of single nodes (botocore 1.44.5). It does not document which
states of a node allow an action: HyperPod decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.durations import DEEP_HEALTH_CHECKS
from hyperpod_cdk.catalog.hyperpod import NODES_AT_ONCE, NODES_CHECKED_AT_ONCE
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.handlers.quota_gate.reading import groups_of
from hyperpod_cdk.living import kubernetes
from hyperpod_cdk.living.hyperpod import describe_training_plan
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import Action, Handled, NodeWork, Unread
from hyperpod_cdk.living.nodes import NodeError, by_name, described, known_cluster, node_of, rows_of_nodes
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.review.pages.wording import minutes

_OPERATIONS: Final[Mapping[Action, str]] = {
    "replace": "batch_replace_cluster_nodes",
    "reboot": "batch_reboot_cluster_nodes",
}
_DONE: Final[Mapping[Action, str]] = {
    "replace": "replaced",
    "reboot": "rebooted",
    "check": "checked",
    "cordon": "cordoned",
    "uncordon": "uncordoned",
}

_TAKES: Final[Mapping[Action, str]] = {
    "replace": "Every volume of a replaced node is destroyed, root and secondary; file systems and buckets stay. The"
    " new instance has the same AMI and configuration.",
    "reboot": "The operating system restarts, and what runs on the node is interrupted; the instance stays.",
    "check": "Kubernetes schedules no new pods on a node during its check, which takes {low} to {high}. HyperPod"
    " reboots or replaces a node that fails, and a replacement destroys its volumes.",
}
_CORDONS: Final[Mapping[Action, str]] = {
    "cordon": "Kubernetes schedules no new pods on the node; running pods continue. HyperPod does not learn of it: its"
    " health labels and taints stay, it still reboots or replaces the node if it fails, and a replacement has no"
    " cordon.",
    "uncordon": "Kubernetes can schedule pods on the node again, unless a taint of HyperPod or its group forbids it.",
}
_OF_HYPERPOD: Final = "HyperPod cordoned {node} itself ({label}: {by}), to patch it when it is idle; new pods on it"
_DELAY: Final = "delay its patch, or make the patch of its group fail."
_KARPENTER: Final = "Karpenter scales this cluster: it adds a new node only while pods are pending."
_WHOLE_GROUP: Final = "That is every node of group {group} at once."
_JOBS: Final = "'kubectl get pods -A -o wide' shows the pods of each node"
_NO_PLAN: Final = "AWS does not show in advance whether instances outside of training plans are available"


def prepare(
    aws: Api,
    action: Action,
    *,
    environment: str,
    called: str,
    cluster: str,
    names: Sequence[str],
    groups: Sequence[str] = (),
) -> NodeWork:
    """Say what it needs to do this to nodes, and whole ``groups``, reading only.

    Raises NodeError for a node that does not exist or that does not allow the action, and NotAnswered if AWS does not
    show the node.
    """
    found = known_cluster(aws, cluster)
    with reading("sagemaker:DescribeCluster"):
        of_cluster = {str(row["InstanceGroupName"]): row for row in groups_of(found)}
    unknown = [name for name in groups if name not in of_cluster]
    if unknown:
        raise NodeError(f"cluster {cluster} has no group {unknown[0]}; its groups are {', '.join(of_cluster)}")
    rows = described(aws, cluster, by_name(names), called=called)
    with reading("sagemaker:ListClusterNodes"):
        rows += [row for row in rows_of_nodes(aws, cluster) if row["InstanceGroupName"] in groups] if groups else []
    # a node that is named and is in a named group counts once
    nodes = list({node.name: node for node in (Handled(**node_of(row)) for row in rows)}.values())
    if not nodes:
        raise NodeError(f"{joined(groups) or 'the cluster'} has no node")
    _refuse(action, nodes, is_continuous=found.get("NodeProvisioningMode") == "Continuous")
    skipped: list[Unread] = []
    eks = kubernetes.eks_cluster(found)
    warned: list[str] = []
    if action in _CORDONS:
        nodes, warned = _standing(aws, action, eks, nodes)
    else:
        nodes = _with_jobs(aws, eks, nodes, skipped)
    if action == "replace":
        places = dict(_places(aws, {node.group for node in nodes}, of_cluster, skipped))
        nodes = [node.model_copy(update={"place": places.get(node.group, "")}) for node in nodes]
    takes = _CORDONS.get(action) or _TAKES[action]
    told = [takes.format(low=minutes(DEEP_HEALTH_CHECKS.low), high=minutes(DEEP_HEALTH_CHECKS.high)), *warned]
    if action == "replace" and found.get("AutoScaling", {}).get("Mode") == "Enable":
        told.append(_KARPENTER)
    for group, number in Counter(node.group for node in nodes).items():
        with reading("sagemaker:DescribeCluster"):
            is_whole = number >= int(of_cluster.get(group, {}).get("CurrentCount", number + 1))
        told += [_WHOLE_GROUP.format(group=group)] if is_whole else []
    return NodeWork(
        environment=environment,
        cluster=cluster,
        action=action,
        verdict=f"{count(len(nodes), 'node')} to be {_DONE[action]}.",
        passed=None,
        nodes=tuple(nodes),
        warnings=tuple(told),
        skipped=tuple(skipped),
    )


def _refuse(action: Action, nodes: Sequence[Handled], *, is_continuous: bool) -> None:
    for node in nodes:
        row = instance_types.get(node.instance_type)
        if not node.id and (action not in _OPERATIONS or not is_continuous):
            raise NodeError(f"node {node.name} has no instance yet (it is {node.status}); wait until it has one")
        if action == "check" and row is not None and not row.deep_health_check:
            raise NodeError(
                f"node {node.name} cannot be checked: {node.instance_type} of group {node.group} has no accelerators;"
                " leave it out"
            )


def _with_jobs(aws: Api, eks: str, nodes: Sequence[Handled], skipped: list[Unread]) -> list[Handled]:
    """Return the nodes with what runs on them; the reason why Kubernetes does not show it is given once."""
    found = []
    missing: dict[str, list[tuple[str, NotAnswered]]] = {}
    for node, jobs in zip(nodes, kubernetes.jobs_on(aws, eks, nodes), strict=True):
        if isinstance(jobs, NotAnswered):
            missing.setdefault(jobs.sentence, []).append((node.name, jobs))
            found.append(node)
        else:
            found.append(node.model_copy(update={"jobs": jobs}))
    for gaps in missing.values():
        what = "jobs on the nodes" if len(gaps) == len(nodes) else f"jobs on {', '.join(name for name, _ in gaps)}"
        _, why = gaps[0]
        skipped.append(Unread(what=what, reason=f"{why.reason}; {_JOBS}", action=why.action, aws_said=why.said))
    return found


def _standing(aws: Api, action: Action, eks: str, nodes: Sequence[Handled]) -> tuple[list[Handled], list[str]]:
    """Return the nodes with their cordons, and the meaning of HyperPod's own; raises NotAnswered, NodeError."""
    found, warned = [], []
    for node in nodes:
        is_cordoned, by = kubernetes.standing(aws, eks, node)
        found.append(node.model_copy(update={"cordoned": is_cordoned}))
        if by and action == "uncordon":
            label = kubernetes.CORDONED_BY
            warned.append(f"{_OF_HYPERPOD.format(node=node.name, label=label, by=by)} {_DELAY}")
    return found, warned


def interrupts(work: NodeWork) -> bool:
    """Whether the user has to confirm: a cordon removes nothing, unless the node has one of HyperPod's own."""
    return work.action not in _CORDONS or len(work.warnings) > 1


def _places(
    aws: Api, names: set[str], groups: Mapping[str, Mapping[str, Any]], skipped: list[Unread]
) -> Iterator[tuple[str, str]]:
    """Yield what is known about capacity for a replacement, by group."""
    plans = {name: str(groups.get(name, {}).get("TrainingPlanArn") or "") for name in sorted(names)}
    arns = [arn for arn in dict.fromkeys(plans.values()) if arn]
    answers = dict(zip(arns, together(lambda arn: _place(aws, arn), arns), strict=True))
    for name, arn in plans.items():
        answer = answers.get(arn) or NotAnswered(_NO_PLAN)
        if isinstance(answer, NotAnswered):
            what = f"capacity for replacements in {name}"
            skipped.append(Unread(what=what, reason=answer.reason, action=answer.action, aws_said=answer.said))
        else:
            yield name, answer


def _place(aws: Api, arn: str) -> str:
    plan = describe_training_plan(aws, arn)
    with reading("sagemaker:DescribeTrainingPlan"):
        told = (("AvailableInstanceCount", "available"), ("AvailableSpareInstanceCount", "spare"))
        counts = ", ".join(f"{plan[key]} {word}" for key, word in told if plan.get(key) is not None)
        if not counts:
            raise NotAnswered("AWS does not show how many instances of its plan are available")
        return f"plan {plan['TrainingPlanName']} is {plan['Status']}: instances {counts}"


def perform(aws: Api, work: NodeWork, *, checks: Sequence[str] = ()) -> NodeWork:
    """Request it from HyperPod, in calls of as many nodes as one accepts; give the work with the answer for each node.

    ``checks`` are HyperPod's names of the deep health checks to run.
    """
    if work.action in _CORDONS:
        nodes = _cordoned(aws, work)
    elif work.action == "check":
        nodes = _checked(aws, work, checks)
    else:
        operation = _OPERATIONS[work.action]
        by_id = [node for node in work.nodes if node.id]
        by_logical_id = [node for node in work.nodes if not node.id]
        nodes = [
            *(
                done
                for part in _parts(by_id, NODES_AT_ONCE.maximum)
                for done in _asked(aws, work, operation, part, _IDS)
            ),
            *(
                done
                for part in _parts(by_logical_id, NODES_AT_ONCE.maximum)
                for done in _asked(aws, work, operation, part, _LOGICAL_IDS)
            ),
        ]
    begun = sum(node.accepted is True for node in nodes)
    rest = len(nodes) - begun
    being = "" if work.action in _CORDONS else "being "
    verdict = f"{begun} of {count(len(nodes), 'node')} {being}{_DONE[work.action]}"
    return work.model_copy(
        update={
            "nodes": tuple(nodes),
            "verdict": f"{verdict}{f'; {rest} not' if rest else ''}.",
            "passed": not rest,
        }
    )


def _cordoned(aws: Api, work: NodeWork) -> list[Handled]:
    wanted = work.action == "cordon"
    eks = kubernetes.eks_cluster(known_cluster(aws, work.cluster))
    done = []
    for node in work.nodes:
        if node.cordoned is wanted:
            done.append(node.model_copy(update={"accepted": True}))
            continue
        try:
            kubernetes.cordon(aws, eks, node, is_cordoned=wanted)
        except NotAnswered as missing:
            accepted = False if isinstance(missing, Refused) else None
            done.append(node.model_copy(update={"accepted": accepted, "error": missing.sentence}))
        else:
            done.append(node.model_copy(update={"accepted": True, "cordoned": wanted}))
    return done


_TURNED_AWAY: Final = ("ValidationException", "ResourceNotFound", "ThrottlingException")
"""Errors of a request after which HyperPod has done nothing."""

_IDS: Final = ("NodeIds", "Successful", "Failed", "NodeId")
_LOGICAL_IDS: Final = ("NodeLogicalIds", "SuccessfulNodeLogicalIds", "FailedNodeLogicalIds", "NodeLogicalId")


def _asked(
    aws: Api, work: NodeWork, operation: str, nodes: Sequence[Handled], keys: tuple[str, str, str, str]
) -> list[Handled]:
    asked, successful, failed, key = keys
    try:
        answer = aws.send("sagemaker", operation, ClusterName=work.cluster, **{asked: [node.name for node in nodes]})
        with reading(f"sagemaker:{operation}"):
            done = {str(name) for name in answer.get(successful, ())}
            errors = {str(row[key]): row for row in answer.get(failed, ())}
    except NotAnswered as missing:
        return [_missing(node, missing) for node in nodes]

    def told(node: Handled) -> Handled:
        if node.name in done:
            return node.model_copy(update={"accepted": True})
        row = errors.get(node.name)
        if row is None:
            return node.model_copy(update={"error": "HyperPod's answer does not name it"})
        code, text = str(row.get("ErrorCode", "")), str(row.get("Message", ""))
        return node.model_copy(update={"accepted": False, "error_code": code, "error": text})

    return [told(node) for node in nodes]


def _checked(aws: Api, work: NodeWork, checks: Sequence[str]) -> list[Handled]:
    """Ask group by group: HyperPod refuses a whole request, without its nodes."""
    done: list[Handled] = []
    for group in dict.fromkeys(node.group for node in work.nodes):
        for part in _parts([node for node in work.nodes if node.group == group], NODES_CHECKED_AT_ONCE.maximum):
            row = {
                "InstanceGroupName": group,
                "InstanceIds": [node.id for node in part],
                "DeepHealthChecks": list(checks),
            }
            try:
                aws.send(
                    "sagemaker",
                    "start_cluster_health_check",
                    ClusterName=work.cluster,
                    DeepHealthCheckConfigurations=[row],
                )
            except NotAnswered as missing:
                done += [_missing(node, missing) for node in part]
            else:
                done += [node.model_copy(update={"accepted": True}) for node in part]
    return done


def _missing(node: Handled, missing: NotAnswered) -> Handled:
    """Return a node of a failed request: it is certain that nothing has started only if AWS rejected the request."""
    is_refused = bool(missing.action) or (isinstance(missing, Refused) and missing.code in _TURNED_AWAY)
    return node.model_copy(update={"accepted": False if is_refused else None, "error": missing.sentence})


def _parts(nodes: Sequence[Handled], most: int | None) -> Iterator[Sequence[Handled]]:
    size = most or len(nodes)
    return (nodes[start : start + size] for start in range(0, len(nodes), size)) if nodes else iter(())
