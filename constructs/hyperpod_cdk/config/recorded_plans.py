"""Training plans as AWS described them, in a file next to the environment file, and offline checks against them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainSerializer, PrivateAttr, Strict, WithJsonSchema
from pydantic.functional_validators import BeforeValidator

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.instance_groups import other_types_sentence, other_zone_sentence, seats_problem
from hyperpod_cdk.catalog.rules import listing, repeated
from hyperpod_cdk.config.draft import certain
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.record_file import parse, read_text, refuse
from hyperpod_cdk.config.restricted_group import AnyGroup
from hyperpod_cdk.config.rules.book import Problem, all_groups, warning
from hyperpod_cdk.config.section import Section
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.findings import Finding, Severity

SCHEMA_VERSION = 1
"""Version of the record's form. A record of another version is refused, never guessed at."""

FRESH_DAYS = 30
"""A record older than this is reported: a plan can be extended or fail, but its zone never changes."""


_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FINAL_STATUSES = frozenset({"Expired", "Failed"})


def _read_moment(value: object) -> object:
    # the strict model refuses text as a time; text in another form than ours is passed on and refused there
    return _parsed(value, _MOMENT, datetime.fromisoformat)


def _read_day(value: object) -> object:
    return _parsed(value, _DAY, date.fromisoformat)


def _parsed(value: object, form: re.Pattern[str], parse: Callable[[str], object]) -> object:
    if isinstance(value, str) and form.fullmatch(value):
        try:
            return parse(value)
        except ValueError:
            return value
    return value


Moment = Annotated[
    datetime,
    BeforeValidator(_read_moment),
    PlainSerializer(lambda value: value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Day = Annotated[date, BeforeValidator(_read_day), PlainSerializer(lambda value: value.isoformat(), return_type=str)]
Count = Annotated[int, Field(ge=0)]


class RecordedBlock(Section):
    """One reserved capacity of a plan. The zone's ID is empty if AWS gave none; times are in UTC, in whole seconds."""

    instance_type: str
    instance_count: Count
    availability_zone: str
    availability_zone_id: str
    start: Moment | None
    end: Moment | None


class RecordedPlan(Section):
    """A training plan as it was described; ``instance_count`` is for the whole plan.

    ``upfront_fee`` is the amount as AWS writes it, in ``currency``; both are empty in a record that was written before
    they were recorded, and if AWS gave none.
    """

    arn: str
    name: str
    status: str
    target_resources: Annotated[tuple[str, ...], Strict(strict=False)]
    instance_count: Count
    blocks: Annotated[tuple[RecordedBlock, ...], Strict(strict=False)]
    upfront_fee: str = ""
    currency: str = ""

    @property
    def seats(self) -> int:
        """How many nodes can run at one time: the largest block's count, or the plan's if it has no block."""
        return max((block.instance_count for block in self.blocks), default=self.instance_count)

    @property
    def nodes_leave(self) -> datetime | None:
        """When the last block's nodes are reclaimed; None if a block has no end."""
        ends = [block.end for block in self.blocks]
        return (
            None
            if not ends or None in ends
            else max(end for end in ends if end is not None) - hyperpod.TRAINING_PLAN_RECLAIM
        )


class RecordedPlans(Section):
    """The record of one environment's plans; ``recorded`` is the day, UTC, on which AWS was asked."""

    schema_version: int
    recorded: Day
    account: str
    region: str
    plans: Annotated[tuple[RecordedPlan, ...], Strict(strict=False)]
    _lines: Mapping[str, int] = PrivateAttr(default_factory=dict)

    def line_of(self, key: str) -> int | None:
        """Return the line of one of these keys in the file that was read, or None where none was."""
        return self._lines.get(key)

    def plan(self, arn: str) -> RecordedPlan | None:
        """Return the plan of an ARN, or None where it was not recorded."""
        return next((plan for plan in self.plans if plan.arn == arn), None)

    def text(self) -> str:
        """Return the record as the text of its file: JSON, plans by ARN, blocks by start, a final newline."""
        data = self.model_dump(mode="json")
        data["plans"] = [
            {
                **{key: value for key, value in plan.items() if value or key not in ("upfront_fee", "currency")},
                "blocks": sorted(plan["blocks"], key=lambda block: (block["start"] or "", json.dumps(block))),
            }
            for plan in sorted(data["plans"], key=lambda plan: str(plan["arn"]))
        ]
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def groups_by_plan(environment: Environment) -> dict[str, list[tuple[DataPath, AnyGroup]]]:
    """Return plan ARN -> its groups of both kinds with their places in the file, in its order."""
    found: dict[str, list[tuple[DataPath, AnyGroup]]] = {}
    for path, group in environment.hyperpod.placed_groups:
        if group.training_plan_arn is not None:
            found.setdefault(group.training_plan_arn, []).append((path, group))
    return found


def moment(value: datetime) -> str:
    """Write a moment as messages do: ``2026-12-01 11:30 UTC``."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def read_record(path: Path, *, file: str, called: str) -> RecordedPlans:
    """Read the record at ``path``; ``file`` is how findings show it, ``called`` as in loading.

    Raises RecordError with one finding if it cannot be read, is not JSON or has another form.
    """
    return parse_record(read_text(path, file=file, fix=written_anew(called)), file=file, called=called)


def parse_record(text: str, *, file: str, called: str) -> RecordedPlans:
    """Read the text of a record. Raises RecordError as `read_record` does."""
    recorded, source = parse(
        text, RecordedPlans, version=SCHEMA_VERSION, fields_at=_fields_at, file=file, fix=written_anew(called)
    )
    for index, before, _ in repeated([plan.arn for plan in recorded.plans]):
        refuse(
            file,
            f"must be unique, got that of plans[{before}]",
            fix=written_anew(called),
            path=f"plans[{index}].arn",
            line=source.line_of(("plans", index, "arn")),
        )
    recorded._lines = {key: source.line_of((key,)) for key in RecordedPlans.model_fields}  # noqa: SLF001 - of the model above
    return recorded


def record_findings(
    environment: Environment, recorded: RecordedPlans, *, file: str, called: str, today: date
) -> Iterator[tuple[str, Problem | Finding]]:
    """Compare an environment with its record; gives (rule, what it found), a Finding where it is about the record.

    Values that are wrong in the environment file are not compared. ``today`` is the day by which age and ends
    are judged.
    """
    foreign = list(certain(_record_of_another(environment, recorded, file, called)))
    if foreign:
        yield from (("record_belongs_to_the_environment", each) for each in foreign)
        return
    seen = f"({file} of {recorded.recorded})"
    for path, group in certain(all_groups(environment)):
        yield from certain(_group_problems(environment, path, group, recorded, seen=seen, called=called, today=today))
    yield from (("recorded_plan_has_enough_instances", each) for each in certain(_count(environment, recorded, seen)))
    age = (today - recorded.recorded).days
    if age < -1:
        # a day ahead is a clock a little fast
        yield (
            "record_is_fresh",
            Finding(
                severity=Severity.WARNING,
                message=f"must not be in the future, got {recorded.recorded} on {today}, so its age is unknown;"
                f" run 'hyperpod-cdk plans record {called}'",
                path="recorded",
                file=file,
                line=recorded.line_of("recorded"),
            ),
        )
    if age > FRESH_DAYS:
        yield (
            "record_is_fresh",
            Finding(
                severity=Severity.WARNING,
                message=f"is {age} days old on {today}, and a plan may have been extended since; run"
                f" 'hyperpod-cdk plans record {called}'",
                path="recorded",
                file=file,
                line=recorded.line_of("recorded"),
            ),
        )


def _record_of_another(environment: Environment, recorded: RecordedPlans, file: str, called: str) -> Iterator[Finding]:
    mine, theirs = (environment.account, environment.region), (recorded.account, recorded.region)
    if mine != theirs:
        key = "account" if mine[0] != theirs[0] else "region"
        yield Finding(
            severity=Severity.ERROR,
            message=f"must be a record of account {mine[0]} in {mine[1]}, the environment's, got one of account"
            f" {theirs[0]} in {theirs[1]}; {written_anew(called)}",
            path=key,
            file=file,
            line=recorded.line_of(key),
        )


def _group_problems(
    environment: Environment,
    path: DataPath,
    group: AnyGroup,
    recorded: RecordedPlans,
    *,
    seen: str,
    called: str,
    today: date,
) -> Iterator[tuple[str, Problem]]:
    arn = group.training_plan_arn
    if arn is None:
        return
    at = (*path, "training_plan_arn")
    plan = recorded.plan(arn)
    if plan is None:
        yield (
            "plan_is_recorded",
            warning(
                at,
                f"is not in the record {seen}, so its zone is not verified; run 'hyperpod-cdk plans record {called}'",
            ),
        )
        return
    rules: Mapping[str, Iterator[Problem]] = {
        "recorded_plan_is_usable": _status(at, plan, seen, called),
        "recorded_plan_is_for_hyperpod_clusters": _target(at, plan, seen),
        "recorded_plan_has_the_group_s_type": _type(path, group, plan, seen),
        "recorded_plan_is_in_the_group_s_zone": _zone(environment, path, group, plan, seen),
        "recorded_plan_has_time_left": _time_left(at, plan, seen, called, today),
    }
    for rule, found in rules.items():
        for problem in certain(found):
            yield rule, problem


def _status(at: DataPath, plan: RecordedPlan, seen: str, called: str) -> Iterator[Problem]:
    if plan.status in hyperpod.TRAINING_PLAN_USABLE_STATUSES or plan.status == "Expired":
        # an expired plan is one without time left
        return
    usable = listing(hyperpod.TRAINING_PLAN_USABLE_STATUSES)
    if plan.status in _FINAL_STATUSES:
        yield Problem(
            at, f"must be a plan that is {usable}, but {plan.name} is {plan.status} {seen}; name another plan"
        )
        return
    yield warning(
        at,
        f"must be a plan that is {usable}, but {plan.name} was {plan.status} {seen}; run 'hyperpod-cdk plans record"
        f" {called}' when it is paid",
    )


def _target(at: DataPath, plan: RecordedPlan, seen: str) -> Iterator[Problem]:
    if plan.target_resources and hyperpod.TRAINING_PLAN_TARGET not in plan.target_resources:
        yield Problem(
            at,
            f"must be a plan for {hyperpod.TRAINING_PLAN_TARGET}, but {plan.name} is for"
            f" {listing(plan.target_resources, last='and')} {seen}; name a plan that was bought for"
            f" {hyperpod.TRAINING_PLAN_TARGET}",
        )


def _type(path: DataPath, group: AnyGroup, plan: RecordedPlan, seen: str) -> Iterator[Problem]:
    types = sorted({block.instance_type for block in plan.blocks})
    if not types or set(types) & set(group.all_instance_types):
        return
    key = "instance_type" if group.instance_type is not None else "instance_types"
    yield Problem((*path, key), other_types_sentence(plan.name, types, group.all_instance_types, seen=seen))


def _zone(
    environment: Environment, path: DataPath, group: AnyGroup, plan: RecordedPlan, seen: str
) -> Iterator[Problem]:
    zones = sorted({block.availability_zone_id for block in plan.blocks if block.availability_zone_id})
    if not zones or group.availability_zone_id in zones:
        return
    yield Problem(
        (*path, "availability_zone_id"),
        other_zone_sentence(
            plan.name, zones, group.availability_zone_id, also=zone_to_add(environment, zones[0]), seen=seen
        ),
    )


def zone_to_add(environment: Environment, zone_id: str) -> str:
    """Return the end of a fix that moves a group to a zone that the environment's network does not have; else ''."""
    if zone_id in environment.network.zone_ids():
        return ""
    key = "existing.node_subnet_ids" if environment.network.is_existing else "availability_zones"
    return f" and add {zone_id} to network.{key}"


def _time_left(at: DataPath, plan: RecordedPlan, seen: str, called: str, today: date) -> Iterator[Problem]:
    leave = plan.nodes_leave
    if leave is not None and leave.astimezone(UTC).date() < today:
        yield Problem(
            at,
            f"must be a plan with time left on {today}, but the nodes of {plan.name} leave at {moment(leave)}, one hour"
            f" before its end {seen}; name the plan that follows it, or run 'hyperpod-cdk plans record {called}' if it"
            " was extended",
        )
    elif plan.status == "Expired":
        yield Problem(at, f"must be a plan with time left, but {plan.name} is Expired {seen}; name another plan")


def _count(environment: Environment, recorded: RecordedPlans, seen: str) -> Iterator[Problem]:
    for arn, members in groups_by_plan(environment).items():
        plan = recorded.plan(arn)
        if plan is None:
            continue
        needed = sum(group.count for _, group in members)
        names = [group.name for _, group in members]
        problem = seats_problem(plan.name, plan.seats, needed=needed, groups=names, seen=seen)
        if problem:
            path, _ = members[-1]
            yield Problem((*path, "count"), problem)


def _fields_at(path: Sequence[str | int]) -> Sequence[str]:
    if len(path) == 1:
        return list(RecordedPlans.model_fields)
    return list((RecordedBlock if "blocks" in path[:-1] else RecordedPlan).model_fields)


def written_anew(called: str) -> str:
    """Return the fix for a record that cannot be used, which ends its message."""
    return f"restore it from version control, or write it again with 'hyperpod-cdk plans record {called}'"
