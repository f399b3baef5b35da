"""Creates the record of an environment's training plans from AWS's answers, and shows what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from hyperpod_cdk.checks.answers import Aws, NotAnswered, ReservedCapacity, TrainingPlan
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.recorded_plans import (
    SCHEMA_VERSION,
    RecordedBlock,
    RecordedPlan,
    RecordedPlans,
    groups_by_plan,
    moment,
)
from hyperpod_cdk.config.source import render_path


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A plan that could not be recorded: where the environment names it, and why."""

    path: str
    reason: str
    action: str = ""
    said: str = ""


def describe_plans(environment: Environment, aws: Aws, *, today: date) -> RecordedPlans | list[Missing]:
    """Ask for every plan that the environment names; if one is missing, there is no record."""
    members = groups_by_plan(environment)
    plans: list[tuple[TrainingPlan, int]] = []
    missing = []
    for (arn, groups), answer in zip(members.items(), together(aws.training_plan, members), strict=True):
        path = render_path((*groups[0][0], "training_plan_arn"))
        if isinstance(answer, NotAnswered):
            missing.append(Missing(path=path, reason=answer.reason, action=answer.action, said=answer.said))
        elif answer is None:
            where = f"account {environment.account} in {environment.region}"
            missing.append(Missing(path=path, reason=f"there is no plan {arn.rsplit('/', 1)[-1]} in {where}"))
        elif (count := _instances(answer)) is None:
            reason = f"AWS shows no number of total instances of plan {answer.name}"
            missing.append(Missing(path=path, reason=reason))
        else:
            plans.append((answer, count))
    if missing:
        return missing
    ids: Mapping[str, str] = {}
    if any(not block.availability_zone_id for plan, _ in plans for block in plan.blocks):
        try:
            ids = {zone.name: zone.zone_id for zone in aws.zones()}
        except NotAnswered as unanswered:
            # without the ID the record would verify nothing, without a message
            path = render_path((*next(iter(members.values()))[0][0], "availability_zone_id"))
            return [Missing(path=path, reason=unanswered.reason, action=unanswered.action, said=unanswered.said)]
    return RecordedPlans(
        schema_version=SCHEMA_VERSION,
        recorded=today,
        account=environment.account,
        region=environment.region,
        plans=tuple(_recorded(arn, plan, count, ids) for arn, (plan, count) in zip(members, plans, strict=True)),
    )


def changes(old: RecordedPlans | None, new: RecordedPlans) -> list[str]:
    """Say in one line each what differs between two records, except the day; empty if nothing does."""
    if old is None:
        return [f"{plan.name}: new, {_summary(plan)}" for plan in new.plans]
    found = [
        f"{key}: {before} -> {after}"
        for key in ("account", "region")
        if (before := getattr(old, key)) != (after := getattr(new, key))
    ]
    gone = [plan for plan in sorted(old.plans, key=lambda plan: plan.arn) if new.plan(plan.arn) is None]
    found += [f"{plan.name}: removed, no group names it any more" for plan in gone]
    for plan in sorted(new.plans, key=lambda plan: plan.arn):
        before_plan = old.plan(plan.arn)
        if before_plan is None:
            found.append(f"{plan.name}: new, {_summary(plan)}")
        else:
            found += [f"{plan.name}: {change}" for change in _plan_changes(before_plan, plan)]
    return found


def _plan_changes(old: RecordedPlan, new: RecordedPlan) -> Iterator[str]:
    for key in ("name", "status", "target_resources", "instance_count", "upfront_fee", "currency"):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            yield f"{key} {_shown(before)} -> {_shown(after)}"
    old_blocks, new_blocks = _in_order(old), _in_order(new)
    for number, (before, after) in enumerate(zip(old_blocks, new_blocks, strict=False), start=1):
        for key in RecordedBlock.model_fields:
            if getattr(before, key) != getattr(after, key):
                yield f"block {number} {key} {_shown(getattr(before, key))} -> {_shown(getattr(after, key))}"
    for number, block in enumerate(new_blocks[len(old_blocks) :], start=len(old_blocks) + 1):
        yield f"block {number} new, {_block_summary(block)}"
    for number, block in enumerate(old_blocks[len(new_blocks) :], start=len(new_blocks) + 1):
        yield f"block {number} removed, {_block_summary(block)}"


def _in_order(plan: RecordedPlan) -> list[RecordedBlock]:
    return sorted(plan.blocks, key=lambda block: (block.start is None, block.start or datetime.min.replace(tzinfo=UTC)))


def _summary(plan: RecordedPlan) -> str:
    blocks = "; ".join(_block_summary(block) for block in _in_order(plan))
    return f"{plan.status}, {blocks or 'no blocks'}"


def _block_summary(block: RecordedBlock) -> str:
    zone = block.availability_zone_id or block.availability_zone or "no zone"
    times = f"{_shown(block.start)} to {_shown(block.end)}"
    return f"{block.instance_count} {block.instance_type} in {zone}, {times}"


def _shown(value: object) -> str:
    if value is None or value in {"", ()}:
        return "nothing"
    if isinstance(value, datetime):
        return moment(value)
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _instances(plan: TrainingPlan) -> int | None:
    """Return the number of instances of a plan: AWS's, else that of its largest block, None without both."""
    return max((block.count for block in plan.blocks), default=None) if plan.total is None else plan.total


def _recorded(arn: str, plan: TrainingPlan, count: int, ids: Mapping[str, str]) -> RecordedPlan:
    return RecordedPlan(
        # as the environment names it, because the record is looked up by this name
        arn=arn,
        name=plan.name,
        status=plan.status,
        target_resources=tuple(sorted(plan.target_resources)),
        instance_count=count,
        blocks=tuple(_recorded_block(block, ids) for block in plan.blocks),
        upfront_fee=plan.upfront_fee,
        currency=plan.currency,
    )


def _recorded_block(block: ReservedCapacity, ids: Mapping[str, str]) -> RecordedBlock:
    return RecordedBlock(
        instance_type=block.instance_type,
        instance_count=block.count,
        availability_zone=block.availability_zone,
        availability_zone_id=block.availability_zone_id or ids.get(block.availability_zone, ""),
        start=_whole_seconds(block.start),
        end=_whole_seconds(block.end),
    )


def _whole_seconds(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC).replace(microsecond=0)
