"""What it needs and does to give an instance group a training plan, before the plan is written into the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from hyperpod_cdk.catalog.hyperpod import TRAINING_PLAN_RECLAIM
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import AnyGroup, Environment
from hyperpod_cdk.config.recorded_plans import groups_by_plan
from hyperpod_cdk.config.source import DataPath, render_path
from hyperpod_cdk.findings import passed
from hyperpod_cdk.handlers.quota_gate.reading import groups_of
from hyperpod_cdk.living.hyperpod import PLAN_WORKS, describe_cluster, describe_training_plan
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import Attachment, Unread
from hyperpod_cdk.living.nodes import moment
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count

_TARGET: Final = "hyperpod-cluster"

_UNDOCUMENTED: Final = (
    "UpdateCluster accepts another plan for an existing group. AWS does not document what happens to the {nodes} that"
    " it has now: expect to lose them with what they run and their volumes"
)
_SAFE: Final = (
    "To keep them until the new ones run: add a group of another name with this plan, move the jobs, then remove"
    " {group};"
    " 'hyperpod-cdk plan {environment}' lists the steps."
)
_NONE_STAND: Final = "{group} has no node, so none is lost; it gets nodes from the plan once the plan has started."
_WRITE: Final = "In the file: capacity: training_plan and training_plan_arn: {arn} at {path}."


def attach(aws: Api, environment: Environment, *, called: str, group: str, plan: str, now: datetime) -> Attachment:
    """Say what it needs and does to give an instance group ``plan``, a name or an ARN, reading only.

    ``now`` is aware and in UTC; ``called`` is the name of the environment for a command. Raises ValueError if the
    environment has no such group, and NotAnswered if AWS does not show the plan.
    """
    path, stated = placed(environment, group)
    described, counted = together(lambda ask: ask(), _questions(aws, environment, group, plan))
    if isinstance(described, NotAnswered):
        raise described
    skipped: list[Unread] = []
    standing: int | None = None
    if isinstance(counted, NotAnswered):
        skipped.append(
            Unread(what=f"nodes of {group}", reason=counted.reason, action=counted.action, aws_said=counted.said)
        )
    else:
        standing = counted
    with reading("sagemaker:DescribeTrainingPlan"):
        return _attachment(environment, called, path, stated, described, standing, skipped, now)


def placed(environment: Environment, group: str) -> tuple[DataPath, AnyGroup]:
    """Return a group of the file and its path. Raises ValueError if the environment has no such group."""
    groups = {each.name: (path, each) for path, each in environment.hyperpod.placed_groups}
    if group not in groups:
        raise ValueError(f"the environment has no group {group}; it has {', '.join(groups)}")
    return groups[group]


def _questions(aws: Api, environment: Environment, group: str, plan: str) -> tuple[Callable[[], Any], ...]:
    """Return the two questions that are asked at the same time: the plan, and the nodes of the group."""
    return (
        lambda: describe_training_plan(aws, plan),
        lambda: _standing(aws, environment.hyperpod_cluster_name, group),
    )


def _standing(aws: Api, cluster: str, group: str) -> int:
    """Return how many nodes a group has now, 0 if there is no such group. Raises NotAnswered."""
    found = describe_cluster(aws, cluster)
    with reading("sagemaker:DescribeCluster"):
        rows = {str(row["InstanceGroupName"]): row for row in (groups_of(found) if found else ())}
        return int(rows[group]["CurrentCount"]) if group in rows else 0


def _attachment(  # noqa: PLR0917 - what was read of each
    environment: Environment,
    called: str,
    path: DataPath,
    group: AnyGroup,
    plan: Mapping[str, Any],
    standing: int | None,
    skipped: Sequence[Unread],
    now: datetime,
) -> Attachment:
    arn, end = str(plan["TrainingPlanArn"]), plan.get("EndTime")
    problems = list(_problems(environment, group, plan, now))
    skipped = [
        *skipped,
        *(Unread(what=each, reason="DescribeTrainingPlan does not show it") for each in _gaps(plan)),
    ]
    is_there = group.training_plan_arn == arn
    nodes = "nodes" if standing is None else count(standing, "node")
    told: list[str] = []
    if is_there:
        told = [f"{group.name} already has this plan."]
    elif problems:
        # no steps for a change that does not work
        pass
    elif standing == 0:
        told = [_NONE_STAND.format(group=group.name)]
    else:
        told = [f"{_UNDOCUMENTED.format(nodes=nodes)}.", _SAFE.format(group=group.name, environment=called)]
    told += [] if is_there or problems else [_WRITE.format(arn=arn, path=render_path(path))]
    fits = f"{plan['TrainingPlanName']} fits {group.name}{', as far as AWS shows' * bool(skipped)}"
    verdict = "; ".join(problems) if problems else fits
    return Attachment(
        environment=environment.name,
        group=group.name,
        plan=str(plan["TrainingPlanName"]),
        arn=arn,
        verdict=f"{verdict}.",
        passed=passed(refuses=bool(problems), is_whole=not skipped),
        before=(group.training_plan_arn or "").rpartition("/")[2] or str(group.capacity or "on_demand"),
        nodes_standing=standing,
        nodes_wanted=group.count,
        nodes_leave=moment(end - TRAINING_PLAN_RECLAIM) if isinstance(end, datetime) else "",
        problems=tuple(problems),
        told=tuple(told),
        skipped=tuple(skipped),
    )


def _gaps(plan: Mapping[str, Any]) -> Iterator[str]:
    """Name what a group has to fit and AWS does not show of the plan: an unknown value is never a fit."""
    blocks = plan.get("ReservedCapacitySummaries") or ()
    if not isinstance(plan.get("EndTime"), datetime):
        yield "the end of the plan"
    if not plan.get("TargetResources"):
        yield "the target resources of the plan"
    if not blocks:
        yield "the instance type of the plan"
    if not blocks or not all(block.get("AvailabilityZoneId") for block in blocks):
        yield "the zone of the plan"
    if not isinstance(plan.get("TotalInstanceCount"), int):
        yield "the number of instances of the plan"
    if not isinstance(plan.get("AvailableInstanceCount"), int):
        yield "the number of available instances of the plan"


def _problems(environment: Environment, group: AnyGroup, plan: Mapping[str, Any], now: datetime) -> Iterator[str]:
    name, blocks = str(plan["TrainingPlanName"]), plan.get("ReservedCapacitySummaries") or ()
    if plan["Status"] not in PLAN_WORKS:
        yield f"plan {name} is {plan['Status']}; a group needs a plan that is {joined(PLAN_WORKS, last='or')}"
    end = plan.get("EndTime")
    if isinstance(end, datetime) and end - TRAINING_PLAN_RECLAIM <= now:
        yield f"its nodes leave at {moment(end - TRAINING_PLAN_RECLAIM)}, which is in the past"
    targets = plan.get("TargetResources")
    if targets and _TARGET not in targets:
        yield f"plan {name} is for {', '.join(targets)}, not for {_TARGET}"
    types = {str(block["InstanceType"]) for block in blocks}
    if types and not types & set(group.all_instance_types):
        yield f"plan {name} is of {', '.join(sorted(types))}, {group.name} of {', '.join(group.all_instance_types)}"
    zones = {str(block["AvailabilityZoneId"]) for block in blocks if block.get("AvailabilityZoneId")}
    if zones and len(zones) == len(blocks) and group.availability_zone_id not in zones:
        yield f"plan {name} is in {', '.join(sorted(zones))}, {group.name} in {group.availability_zone_id}"
    others = [each for _, each in groups_by_plan(environment).get(str(plan["TrainingPlanArn"]), ())]
    wanted = group.count + sum(each.count for each in others if each.name != group.name)
    total = plan.get("TotalInstanceCount")
    if isinstance(total, int) and wanted > total:
        told = ", ".join(f"{each.count} of {each.name}" for each in others if each.name != group.name)
        beside = f" in addition to {told}" if told else ""
        yield f"plan {name} has {count(total, 'instance')}, {group.name} wants {group.count}{beside}"
        return
    free = plan.get("AvailableInstanceCount")
    # instances that others use, also in other clusters, are not available; until then its own nodes are paid in another
    # way
    if isinstance(free, int) and group.count > free and group.training_plan_arn != plan["TrainingPlanArn"]:
        yield f"plan {name} has {count(free, 'instance')} available, {group.name} wants {group.count}"
