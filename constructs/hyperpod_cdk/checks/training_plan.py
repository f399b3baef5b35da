"""Checks of the training plans that instance groups name: existence, status, type, zone, count and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.hyperpod import TRAINING_PLAN_RECLAIM
from hyperpod_cdk.catalog.instance_groups import other_types_sentence, other_zone_sentence, seats_problem
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import (
    Aws,
    HyperPodClusterAnswer,
    InstancesInCluster,
    NotAnswered,
    Partial,
    ReservedCapacity,
    TrainingPlan,
)
from hyperpod_cdk.checks.model import Case, Detail, Found, Skipped, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import AnyGroup
from hyperpod_cdk.config.recorded_plans import (
    groups_by_plan,
    moment,
    zone_to_add,
)
from hyperpod_cdk.config.source import DataPath, render_path
from hyperpod_cdk.findings import Finding, Severity

AREA = "training-plan"

SOON = timedelta(hours=24)
"""A plan whose nodes leave within this time is reported: deep health checks alone take two hours of it."""

_ENDING = frozenset({"Deleting", "Failed"})
"""States of a cluster that no node joins any more."""

Clusters = Partial[HyperPodClusterAnswer]

_BY_HAND = "aws sagemaker describe-training-plan --training-plan-name h100-april"
_SKIPS = "When DescribeTrainingPlan gives no answer: no permission, throttled, offline."


@dataclass(frozen=True, kw_only=True)
class _Use:
    """A plan as AWS describes it (None: there is none) and the groups that name it, with their places in the file."""

    arn: str
    groups: tuple[tuple[DataPath, AnyGroup], ...]
    plan: TrainingPlan | None

    @property
    def name(self) -> str:
        return self.arn.rsplit("/", 1)[-1]

    @property
    def needed(self) -> int:
        return sum(group.count for _, group in self.groups)

    def path(self, key: str, *, of: DataPath | None = None) -> str:
        """Return the place of a key in a group: by default the first that names the plan."""
        return render_path((*(of or self.groups[0][0]), key))


@check(
    area=AREA,
    asks=("training_plan",),
    inputs="training_plan_arn of every instance group.",
    passes="DescribeTrainingPlan finds every plan in this account and region.",
    fails="AWS says that there is no such plan.",
    skips=_SKIPS,
    by_hand=f"{_BY_HAND}\naws sagemaker list-training-plans",
)
def training_plan_exists(case: Case, aws: Aws) -> Iterator[Found]:
    """The plan exists. Validation has already checked the region and account of its ARN."""
    environment = case.environment
    for use in _uses(case, aws):
        if isinstance(use, Skipped):
            yield use
        elif use.plan is None:
            yield error(
                use.path("training_plan_arn"),
                f"must be a plan of account {environment.account} in {environment.region}, but there is no plan"
                f" {use.name}; correct its name, or {_buy(case)}",
            )


@check(
    area=AREA,
    asks=("training_plan",),
    inputs="training_plan_arn of every instance group; the plan's status.",
    passes="The plan is Scheduled or Active.",
    fails="The plan is Pending (not paid yet), Failed (never paid) or Expired.",
    skips=_SKIPS,
    by_hand=f"{_BY_HAND} --query '[Status, StatusMessage]'",
)
def training_plan_is_usable(case: Case, aws: Aws) -> Iterator[Found]:
    """The plan's status allows a group to be created."""
    return _of_each_plan(case, aws, lambda use, plan: _status(case, use, plan))


@check(
    area=AREA,
    asks=("training_plan",),
    inputs="training_plan_arn of every instance group; the plan's target resources.",
    passes="The plan was bought for hyperpod-cluster.",
    fails="The plan was bought for training jobs, endpoints or Studio apps only; a plan cannot be changed.",
    skips=f"{_SKIPS} Also when AWS names no target resource.",
    by_hand=f"{_BY_HAND} --query TargetResources",
)
def training_plan_is_for_hyperpod_clusters(case: Case, aws: Aws) -> Iterator[Found]:
    """The plan's target resources include HyperPod clusters."""
    return _of_each_plan(case, aws, lambda use, plan: _target(case, use, plan))


@check(
    area=AREA,
    asks=("training_plan",),
    inputs="instance_type of every group on a plan; the types of the plan's reserved capacity.",
    passes="The group's type is the plan's.",
    fails="The group's type is another one. A flexible group with types that the plan does not have is a warning.",
    skips=f"{_SKIPS} Also when the plan names no reserved capacity.",
    by_hand=f"{_BY_HAND} --query 'ReservedCapacitySummaries[].InstanceType'",
)
def training_plan_has_the_type_of_its_groups(case: Case, aws: Aws) -> Iterator[Found]:
    """The plan reserves the instance type of its groups."""
    return _of_each_plan(case, aws, _type)


@check(
    area=AREA,
    asks=("training_plan", "zones"),
    inputs="availability_zone_id of every group on a plan; the zone of the plan's reserved capacity.",
    passes="The AZ ID is the plan's. If AWS gives only a zone's name (local zones, UltraServers), its ID in this"
    " account counts.",
    fails="The group is in another zone: its nodes would have no subnet in the capacity's zone, or be on demand.",
    skips=f"{_SKIPS} Also when the plan's zone is given by name and the account's zones are unknown.",
    by_hand=f"{_BY_HAND} --query 'ReservedCapacitySummaries[].[AvailabilityZoneId, AvailabilityZone]'\n"
    "aws ec2 describe-availability-zones --all-availability-zones",
)
def training_plan_is_in_the_zone_of_its_groups(case: Case, aws: Aws) -> Iterator[Found]:
    """The groups are in the zone of the plan's capacity, compared by AZ ID, because names differ between accounts."""
    return _of_each_plan(case, aws, lambda use, plan: _zone(case, aws, use, plan))


@check(
    area=AREA,
    asks=("training_plan", "hyperpod_clusters"),
    inputs="count of all groups on one plan; the plan's counters; what the account's HyperPod clusters use of it.",
    passes="The plan has an instance for every node of its groups, apart from what other clusters use.",
    fails="The groups together need more than the plan has, or more than others leave. Unhealthy instances that"
    " may join late are a warning, and so is a later block with fewer instances.",
    skips=f"{_SKIPS} Also when the account's HyperPod clusters are unknown and the answer depends on them.",
    by_hand=f"{_BY_HAND} --query '[TotalInstanceCount, AvailableInstanceCount, InUseInstanceCount,"
    " UnhealthyInstanceCount]'\naws sagemaker list-clusters --training-plan-arn"
    " arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april",
)
def training_plan_has_an_instance_for_every_node(case: Case, aws: Aws) -> Iterator[Found]:
    """The plan has room for all groups of the environment and its other users."""
    clusters = _clusters(case, aws)
    return _of_each_plan(case, aws, lambda use, plan: _count(case, use, plan, clusters))


@check(
    area=AREA,
    asks=("training_plan",),
    inputs="training_plan_arn of every instance group; start and end of each block of the plan; the present time.",
    passes="The plan has started, and its nodes stay for a day or longer.",
    fails=f"The nodes are gone permanently: they are reclaimed {hyperpod.TRAINING_PLAN_RECLAIM_MINUTES} minutes before"
    " the"
    " last block ends. A plan that starts later, that ends within a day, or that has a gap between two blocks is a"
    " warning with the moments.",
    skips=f"{_SKIPS} Also when AWS names no start or end.",
    by_hand=f"{_BY_HAND} --query 'ReservedCapacitySummaries[].[StartTime, EndTime]'",
)
def training_plan_has_time_left(case: Case, aws: Aws) -> Iterator[Found]:
    """The plan provides nodes now, or a finding says from when."""
    return _of_each_plan(case, aws, lambda use, plan: _time(case, use, plan))


@check(
    area=AREA,
    asks=("training_plan", "hyperpod_clusters"),
    inputs="count of all groups on one plan; the plan's counters; what the account's HyperPod clusters use of it.",
    passes="Every instance that the plan pays for is used by these groups or by another cluster.",
    fails="Never; instances that are paid for and not used are a warning.",
    skips=f"{_SKIPS} Also when the account's HyperPod clusters are unknown and the answer depends on them.",
    by_hand=f"{_BY_HAND} --query '[TotalInstanceCount, InUseInstanceCount]'",
)
def training_plan_is_used_in_full(case: Case, aws: Aws) -> Iterator[Found]:
    """No instance of the plan stays idle: the whole plan is paid for in advance."""
    clusters = _clusters(case, aws)
    return _of_each_plan(case, aws, lambda use, plan: _idle(case, use, plan, clusters))


@dataclass(frozen=True, kw_only=True)
class _Shares:
    """Who uses the plan's instances: this environment's own cluster, others, and which others are known by name."""

    own: int
    others: int
    names: tuple[str, ...]


def _uses(case: Case, aws: Aws) -> Iterator[_Use | Skipped]:
    members = groups_by_plan(case.environment)
    answers = together(aws.training_plan, members)
    for (arn, groups), answer in zip(members.items(), answers, strict=True):
        if isinstance(answer, NotAnswered):
            path = render_path((*groups[0][0], "training_plan_arn"))
            yield unanswered(answer, path)
        else:
            yield _Use(arn=arn, groups=tuple(groups), plan=answer)


def _of_each_plan(case: Case, aws: Aws, judge: Callable[[_Use, TrainingPlan], Iterator[Found]]) -> Iterator[Found]:
    """Judge every plan that exists; `training_plan_exists` reports those that do not."""
    for use in _uses(case, aws):
        if isinstance(use, Skipped):
            yield use
        elif use.plan is not None:
            yield from judge(use, use.plan)


def _clusters(case: Case, aws: Aws) -> Clusters:
    """Ask for the account's clusters in parallel with the plans, whose answers stay in the run's cache."""
    if not groups_by_plan(case.environment):
        return Partial()
    found: list[Clusters] = []

    def ask_clusters() -> None:
        try:
            found.append(aws.hyperpod_clusters())
        except NotAnswered as missing:
            found.append(Partial(broken_off=missing))

    def ask_plans() -> None:
        list(_uses(case, aws))

    together(_call, [ask_clusters, ask_plans])
    return found[0]


def _call(ask: Callable[[], None]) -> None:
    ask()


def _status(case: Case, use: _Use, plan: TrainingPlan) -> Iterator[Found]:
    if _is_usable(plan):
        return
    fixes = {
        "Pending": "its payment is in progress: deploy when it is Scheduled",
        "Failed": f"its purchase failed: {_buy(case)}",
        "Expired": f"its time is over: {_buy(case)}",
    }
    said = f' ("{plan.status_message}")' if plan.status_message else ""
    yield error(
        use.path("training_plan_arn"),
        f"must be a plan that is {listing(hyperpod.TRAINING_PLAN_USABLE_STATUSES)}, but {use.name} is"
        f" {plan.status}{said}; {fixes.get(plan.status, 'check it in the console')}",
    )


def _target(case: Case, use: _Use, plan: TrainingPlan) -> Iterator[Found]:
    if hyperpod.TRAINING_PLAN_TARGET in plan.target_resources:
        return
    if not plan.target_resources:
        if _is_usable(plan):
            yield Skipped(reason=f"AWS names no target of plan {use.name}", path=use.path("training_plan_arn"))
        return
    yield error(
        use.path("training_plan_arn"),
        f"must be a plan for {hyperpod.TRAINING_PLAN_TARGET}, but {use.name} is for"
        f" {listing(plan.target_resources, last='and')}, and a plan cannot be changed; {_buy(case)}",
    )


def _type(use: _Use, plan: TrainingPlan) -> Iterator[Found]:
    types = sorted({block.instance_type for block in plan.blocks})
    if not types:
        yield from _no_blocks(use, plan, "training_plan_arn")
        return
    for place, group in use.groups:
        wanted = group.all_instance_types
        others = [name for name in wanted if name not in types]
        path = use.path("instance_type" if group.instance_type is not None else "instance_types", of=place)
        if others and len(others) < len(wanted):
            yield warning(
                path,
                f"plan {use.name} reserves {listing(types, last='and')} only, so {listing(others, last='and')} never"
                f" comes from it; set only instance_type: {types[0]}",
            )
        elif others:
            yield error(path, other_types_sentence(use.name, types, wanted))


def _zone(case: Case, aws: Aws, use: _Use, plan: TrainingPlan) -> Iterator[Found]:
    try:
        zone_ids = _zone_ids(plan, aws)
    except NotAnswered as missing:
        yield unanswered(missing, use.path("availability_zone_id"))
        return
    if not zone_ids:
        yield from _no_blocks(use, plan, "availability_zone_id")
        return
    for place, group in use.groups:
        if group.availability_zone_id not in zone_ids:
            also = zone_to_add(case.environment, zone_ids[0])
            yield error(
                use.path("availability_zone_id", of=place),
                f"{other_zone_sentence(use.name, zone_ids, group.availability_zone_id, also=also)} (a group that is"
                " deployed already needs a new name too)",
            )


def _count(case: Case, use: _Use, plan: TrainingPlan, clusters: Clusters) -> Iterator[Found]:
    if not _is_usable(plan):
        return
    total, path = _seats(plan, case.now), use.path("count", of=use.groups[-1][0])
    if total is None:
        yield _not_counted(use, plan, path)
        return
    problem = seats_problem(use.name, total, needed=use.needed, groups=[group.name for _, group in use.groups])
    counters = _counters(plan)
    if problem:
        yield error(path, problem)
    elif counters is None:
        yield _not_counted(use, plan, path)
    else:
        found = list(_room(case, use, plan, total, counters, _shares(case, use, counters, clusters)))
        yield from found
        # unread users can only leave less, so a shortage is certain already
        if not any(isinstance(each, Finding) and each.severity is Severity.ERROR for each in found):
            yield from (unanswered(gap, path) for gap in clusters.gaps[:1])


def _idle(case: Case, use: _Use, plan: TrainingPlan, clusters: Clusters) -> Iterator[Found]:
    if not _is_usable(plan):
        return
    total, path = _seats(plan, case.now), use.path("count", of=use.groups[-1][0])
    if total is None:
        yield _not_counted(use, plan, path)
        return
    idle = 0
    if use.needed < total:
        if clusters.gaps:
            yield unanswered(clusters.gaps[0], path)
            return
        counters = _counters(plan)
        if counters is None:
            yield _not_counted(use, plan, path)
            return
        idle = max(total - use.needed - _shares(case, use, counters, clusters).others - counters.unhealthy, 0)
    yield Detail(
        text=f"plan {use.name}: {total - idle} of {total} instances used",
        data={"plan": use.arn, "instances": total, "needed": use.needed, "idle": idle},
    )
    if idle:
        yield warning(
            path,
            f"leaves {idle} of the {total} instances of plan {use.name} idle, and the whole plan is paid for; raise it"
            f" by {idle} if nobody else needs them",
        )


def _is_usable(plan: TrainingPlan) -> bool:
    return plan.status in hyperpod.TRAINING_PLAN_USABLE_STATUSES


def _no_blocks(use: _Use, plan: TrainingPlan, key: str) -> Iterator[Found]:
    if _is_usable(plan):
        yield Skipped(reason=f"AWS names no reserved capacity of plan {use.name}", path=use.path(key))


def _zone_ids(plan: TrainingPlan, aws: Aws) -> list[str]:
    """Return the plan's zones by ID. Raises NotAnswered if a zone has only an unknown name."""
    named = {block.availability_zone for block in plan.blocks if not block.availability_zone_id}
    found = {block.availability_zone_id for block in plan.blocks if block.availability_zone_id}
    if named:
        ids = {zone.name: zone.zone_id for zone in aws.zones()}
        unknown = sorted(name for name in named if name not in ids)
        if unknown:
            raise NotAnswered(
                f"AWS gives no ID for {listing(unknown, last='and') if unknown else 'a zone'} of plan {plan.name}, and"
                " this account has no such zone"
            )
        found |= {ids[name] for name in named}
    return sorted(found)


@dataclass(frozen=True, kw_only=True)
class _Counters:
    """How many of a plan's instances are free, used and unhealthy."""

    available: int
    in_use: int
    unhealthy: int


def _counters(plan: TrainingPlan) -> _Counters | None:
    """Return a plan's counters, None if AWS does not show one of them.

    AWS may omit how many are unhealthy: none if the plan has not begun, or if all others are all that it has.
    """
    unhealthy = plan.unhealthy
    if plan.available is None or plan.in_use is None:
        return None
    if unhealthy is None and (
        plan.status == "Scheduled" or (plan.total is not None and plan.available + plan.in_use >= plan.total)
    ):
        unhealthy = 0
    if unhealthy is None:
        return None
    return _Counters(available=plan.available, in_use=plan.in_use, unhealthy=unhealthy)


def _not_counted(use: _Use, plan: TrainingPlan, path: str) -> Skipped:
    stated = {
        "total": plan.total if not plan.blocks else 0,
        "available": plan.available,
        "used": plan.in_use,
        "unhealthy": plan.unhealthy,
    }
    missing = listing([name for name, count in stated.items() if count is None], last="and")
    return Skipped(reason=f"AWS shows no number of {missing} instances of plan {use.name}", path=path)


def _seats(plan: TrainingPlan, now: datetime) -> int | None:
    """Return how many nodes can run at one time: blocks follow each other, so their counts do not add up.

    None if AWS shows neither blocks nor a number.
    """
    left = [block.count for block in plan.blocks if _leaves_after(block, now)]
    return max(left or [block.count for block in plan.blocks], default=plan.total)


def _shares(case: Case, use: _Use, plan: _Counters, clusters: Clusters) -> _Shares:
    """Say who uses the plan's instances; if clusters were not read, the least that others use."""
    taken = {
        cluster.name: sum(_taken(cluster, group) for group in cluster.groups if group.training_plan_arn == use.arn)
        for cluster in clusters.read
    }
    name = case.environment.hyperpod_cluster_name
    own = taken.pop(name, 0)
    known = sum(taken.values())
    if any(each.name == name for each in clusters.unread) or (clusters.broken_off is not None and not own):
        # all instances that the plan counts may be the environment's own
        own = max(plan.in_use + plan.unhealthy - known, 0)
    return _Shares(
        own=own,
        # the plan's own counter may include unlisted users, and does not include nodes that have not joined yet
        others=max(known, plan.in_use - own),
        names=tuple(sorted(name for name, count in taken.items() if count)),
    )


def _taken(cluster: HyperPodClusterAnswer, group: InstancesInCluster) -> int:
    """Return what a group has or will have: before the plan starts it has no node. No node joins a cluster that
    ends."""
    return group.current if cluster.status in _ENDING else max(group.current, group.target)


def _room(  # noqa: PLR0917 - what is known of one plan
    case: Case, use: _Use, plan: TrainingPlan, total: int, counters: _Counters, shares: _Shares
) -> Iterator[Found]:
    path = use.path("count", of=use.groups[-1][0])
    counted = counters.available + counters.in_use + counters.unhealthy > 0
    # unhealthy instances of this environment are replaced for it
    healthy = min(total - shares.others, counters.available + min(shares.own, counters.in_use + counters.unhealthy))
    healthy = healthy if counted else total - shares.others
    free = max(healthy, 0)
    if use.needed > free:
        users = f" by {listing(shares.names, last='and')}" if shares.names else " by others"
        parts = [f"{shares.others} used{users}"] if shares.others else []
        parts += [f"{counters.unhealthy} unhealthy"] if counters.unhealthy else []
        reasons = f" ({', '.join(parts)})" if parts else ""
        names = listing([group.name for _, group in use.groups], last="and")
        yield error(
            path,
            f"needs {use.needed} {plural(use.needed, 'instance')} of plan {use.name} for {names}, which has"
            f" {free} free of {total}{reasons}; lower count by {use.needed - free} or"
            f" {'use another plan' if shares.others else 'wait for replacements'}",
        )
        return
    if counters.unhealthy and use.needed > total - shares.others - counters.unhealthy:
        yield warning(
            path,
            f"plan {use.name} has {counters.unhealthy} unhealthy of {total} instances, and the groups need"
            f" {use.needed}; a node may join late",
        )
    for block in plan.blocks:
        if block.count < use.needed and _leaves_after(block, case.now):
            instances = f"{block.count} {plural(block.count, 'instance')}"
            when = f" from {moment(block.start)}" if block.start else ""
            yield warning(
                path,
                f"plan {use.name} has {instances}{when}, and the groups need {use.needed}; nodes will be missing in"
                " that block",
            )


def _windows(plan: TrainingPlan) -> list[tuple[datetime, datetime]]:
    """Return start and end of each block by time; those of the plan where its blocks have none."""
    spans = [(block.start, block.end) for block in plan.blocks] or [(plan.start, plan.end)]
    whole = [(start, end) for start, end in spans if start is not None and end is not None]
    return sorted(whole) if len(whole) == len(spans) else []


def _time(case: Case, use: _Use, plan: TrainingPlan) -> Iterator[Found]:
    if not _is_usable(plan):
        # an expired plan is already reported
        return
    now, path, blocks = case.now, use.path("training_plan_arn"), _windows(plan)
    if not blocks:
        yield Skipped(reason=f"AWS names no start and end of plan {use.name}", path=path)
        return
    yield Detail(text=_timetable(use, blocks), data={"plan": use.arn, "blocks": [_block_data(each) for each in blocks]})
    left = [(start, end) for start, end in blocks if end - TRAINING_PLAN_RECLAIM > now]
    if not left:
        yield error(
            path,
            f"must be a plan with time left, but the nodes of {use.name} left at"
            f" {moment(blocks[-1][1] - TRAINING_PLAN_RECLAIM)}, one hour before its end; {_buy(case)}",
        )
        return
    start, leave = left[0][0], left[-1][1] - TRAINING_PLAN_RECLAIM
    if start > now:
        yield warning(
            path,
            f"plan {use.name} provides nodes from {moment(start)} on, in {_span(start - now)}; its groups are created"
            " without"
            " nodes until then",
        )
    for (_, end), (next_start, _) in pairwise(left):
        if next_start > end:
            yield warning(
                path,
                f"plan {use.name} has a gap: nodes leave at {moment(end - TRAINING_PLAN_RECLAIM)} and return at"
                f" {moment(next_start)}; jobs must be able to stop and resume",
            )
    if leave - now < SOON:
        yield warning(
            path,
            f"the nodes of plan {use.name} leave at {moment(leave)}, in {_span(leave - now)}, one hour before its end;"
            " extend it or have checkpoints written before",
        )


def _leaves_after(block: ReservedCapacity, now: datetime) -> bool:
    return block.end is None or block.end - TRAINING_PLAN_RECLAIM > now


def _timetable(use: _Use, blocks: list[tuple[datetime, datetime]]) -> str:
    spans = [f"nodes from {moment(start)} to {moment(end - TRAINING_PLAN_RECLAIM)}" for start, end in blocks]
    return f"plan {use.name}: {'; '.join(spans)}"


def _block_data(block: tuple[datetime, datetime]) -> dict[str, str]:
    start, end = block
    return {
        "starts": start.isoformat(),
        "ends": end.isoformat(),
        "nodes_leave": (end - TRAINING_PLAN_RECLAIM).isoformat(),
    }


def _span(time: timedelta) -> str:
    """Say how long something is in its largest unit, rounded down: 3 days, 5 hours, 59 minutes."""
    minutes = int(time.total_seconds()) // 60
    for size, unit in ((24 * 60, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            count = minutes // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"


def _buy(case: Case) -> str:
    return f"find another to buy with 'hyperpod-cdk plans search {case.called}'"
