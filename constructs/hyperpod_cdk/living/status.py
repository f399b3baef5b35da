"""The state of a cluster now: nodes wanted, running, failing and why, events, plans, file systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, cast, runtime_checkable

from hyperpod_cdk.catalog import notifications
from hyperpod_cdk.catalog.hyperpod import TRAINING_PLAN_RECLAIM
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import Aws, NotAnswered, QuotaValue, Refused, Why
from hyperpod_cdk.checks.model import Case
from hyperpod_cdk.checks.run import of_others
from hyperpod_cdk.checks.side_by_side import answered, together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.findings import Severity, by_place, passed
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, Usage
from hyperpod_cdk.handlers.quota_gate.reading import groups_of
from hyperpod_cdk.living.hyperpod import PLAN_WORKS, describe_cluster, describe_training_plan, is_on_eks
from hyperpod_cdk.living.kubernetes import operators, with_reasons
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import (
    Alarm,
    Event,
    FileSystem,
    Group,
    Named,
    Operator,
    Plan,
    QuotaLeft,
    Reason,
    Status,
    Team,
    Unread,
)
from hyperpod_cdk.living.nodes import (
    CHECKING,
    FAILING,
    RUNNING,
    moment,
    newest_events,
    rows_of_nodes,
    unknown_states,
)
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count

MOST_EVENTS: Final = 10
_MOST_REASONS: Final = 5
_QUIET: Final = "Info"
"""The level of events that are not shown (botocore 1.44.5, ClusterEventLevel); a level that AWS adds is shown."""

_HEALTHY: Final = "InService"
_BROKEN: Final = ("Failed", "Degraded")
"""Statuses of a group with nodes that failed to provision or are no longer healthy (botocore 1.44.5,
ClusterInstanceGroupDetails); those nodes may not be listed."""

_NOT_UPDATED: Final = "Failed"
"""Final statuses of a group's software update that failed and could not be rolled back (as above)."""

_GOING: Final = "Deleting"
_STATUSES: Final = frozenset({_HEALTHY, *_BROKEN, _GOING, "Creating", "SystemUpdating", "Updating"})
_UPDATES: Final = frozenset(
    {_NOT_UPDATED, "InProgress", "Pending", "RollbackComplete", "RollbackInProgress", "Succeeded"}
)
"""All statuses of a group and of its software update (botocore 1.44.5, InstanceGroupStatus and
SoftwareUpdateStatus)."""

_SERVES: Final = ("AVAILABLE", "UPDATING")
"""A file system can be used while it grows (botocore 1.44.5, FileSystemLifecycle)."""

_NO_DATA: Final = "INSUFFICIENT_DATA"
_LONGEST_LOOK: Final = timedelta(days=1)
"""Our alarms look back over at most a day (``catalog.notifications.NODES_MISSING_MINUTES``): an alarm without data for
longer is not new."""

_ALARM_STATES: Final = frozenset({"OK", "ALARM", _NO_DATA})
"""All states of an alarm (botocore 1.44.5, StateValue)."""

_DELETED: Final = "Deleted"
"""The status of a deleted compute quota or cluster policy (botocore 1.44.5, SchedulerResourceStatus)."""

_GOVERNING: Final = frozenset(
    f"{action}{end}" for action in ("Creat", "Updat", "Delet") for end in ("ing", "ed", "eFailed", "eRollbackFailed")
)
"""All of its statuses (as above)."""

_MOST_ASKED: Final = 5
"""The number of operators at most for which the reason of missing pods is read."""

_STACK_TAG: Final = "aws:cloudformation:stack-name"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the file says of a cluster, by names in AWS. A count is None if Karpenter sets it.

    ``made`` are the names in FSx of the file systems that the storage stack creates, ``joined`` the IDs of existing
    ones.
    """

    environment: str
    cluster: str
    counts: Mapping[str, int | None]
    made: frozenset[str] = frozenset()
    joined: frozenset[str] = frozenset()
    plans: Mapping[str, str] = field(default_factory=dict)
    """ARNs of the training plans of the file, by group."""
    eks: str = ""
    addons: frozenset[str] = frozenset()
    """EKS add-ons that the environment installs on the EKS cluster ``eks``."""
    alarms: frozenset[str] = frozenset()
    """Names of its alarms in CloudWatch."""
    advice: frozenset[str] = frozenset()
    """Those of them that warn of something that can happen later, and of no failure."""
    teams: frozenset[str] = frozenset()
    """Teams, each with a compute quota."""
    is_governed: bool = False
    """Whether the file has a cluster policy."""
    has_operators: bool = False
    """Whether Kubernetes is asked about the pods of operators."""
    quotas: tuple[Requirement, ...] = ()
    """The quotas for instances that its groups use."""
    file: Environment | None = None
    """The file, if AWS is asked about what the file names and others own."""


@runtime_checkable
class Quotas(Protocol):
    """Asks for quotas: ``checks.aws.LiveAws``. Both methods raise NotAnswered."""

    def quota(self, service: str, name: str, code: str | None) -> QuotaValue | None:
        """Return the account's value of a quota, None if the service has no quota of that name."""
        ...

    def usage(self, kind: str) -> Usage:
        """Count how much the account uses of something."""
        ...


def status(aws: Api, wanted: Wanted, *, now: datetime) -> Status:
    """Read the state of the cluster; ``now`` is aware and in UTC. What is not answered is skipped."""
    skipped: list[Unread] = []

    def told(what: str, answer: Any) -> Any:
        if isinstance(answer, NotAnswered):
            skipped.append(Unread(what=what, reason=answer.reason, action=answer.action, aws_said=answer.said))
            return None
        return answer

    questions: tuple[Callable[[], Any], ...] = (
        lambda: describe_cluster(aws, wanted.cluster) or {},
        lambda: rows_of_nodes(aws, wanted.cluster),
        lambda: _events(aws, wanted.cluster, now),
        lambda: _file_systems(aws, wanted),
        lambda: _addons_lacking(aws, wanted),
        lambda: _alarms(aws, wanted, now),
        lambda: _teams(aws, wanted),
        lambda: _policies(aws, wanted),
        lambda: operators(aws, wanted.eks) if wanted.has_operators else (),
        lambda: _of_others(aws, wanted, now),
        *(partial(_left, aws, each) for each in wanted.quotas),
    )
    answers: list[Any] = together(lambda ask: ask(), questions)
    described, nodes, events, file_systems, addons, alarms, teams, policies, pods, others, *quotas = answers
    cluster = told("the cluster", described)
    if cluster == {}:
        verdict = f"There is no HyperPod cluster {wanted.cluster} in this account and region."
        return Status(environment=wanted.environment, cluster=wanted.cluster, verdict=verdict, passed=False)
    cluster = cluster or {}
    if cluster and not is_on_eks(cluster):
        skipped.append(
            Unread(what="the cluster", reason=f"cluster {wanted.cluster} runs Slurm or nothing yet, not EKS")
        )
    rows = told("nodes", nodes)
    groups: tuple[Group, ...] = ()
    plans: list[Plan] = []
    try:
        with reading("sagemaker:DescribeCluster"):
            groups = tuple(_group(each, rows, wanted) for each in (groups_of(cluster) if cluster else ()))
            skipped += (unread for each in groups for unread in _unknown_of(each, rows or ()))
            skipped += (*_strays(groups, rows or ()), *_without_plan(groups, wanted)) if cluster else ()
            arns = dict.fromkeys(each.plan for each in groups if each.plan)
    except NotAnswered as missing:
        told("groups", missing)
        arns = {}
    for arn, answer in zip(arns, together(lambda each: _plan(aws, each, now), arns), strict=True):
        found = told(f"training plan {arn.rpartition('/')[2]}", answer)
        plans += [found] if found is not None else []
    skipped += _endless(plans)
    state = str(cluster.get("ClusterStatus", "unknown"))
    volumes = told("file systems", file_systems)
    lacking, seen_policies = told("add-ons", addons) or [], told("the cluster policy", policies)
    seen_alarms, silent = told("alarms", alarms) or (None, ())
    named, unseen = told("what the file names", others) or ((), ())
    skipped += (*silent, *unseen)
    seen_teams = told("compute quotas", teams)
    skipped += _unknown_words(seen_alarms or (), seen_teams or (), seen_policies or ())
    seen_operators = told("operators", pods) or ()
    left = [told(f'quota "{each.name}"', answer) for each, answer in zip(wanted.quotas, quotas, strict=True)]
    short = _short(seen_operators, groups)
    broken = [each for each in seen_teams or () if _is_broken(each.status)]
    recent, unread = told("events", events) or ((), None)
    if unread is not None:
        skipped.append(unread)
    advice = [f"alarm {each.name}" for each in seen_alarms or () if each.advice]
    is_known = bool(cluster) and not any(each.what == "groups" for each in skipped)
    missing_groups = [each for each in wanted.counts if is_known and each not in {group.name for group in groups}]
    missing_volumes = [] if volumes is None else _missing(volumes, wanted)
    wrong = [
        *([f"the cluster is {state}"] if cluster and state != _HEALTHY else []),
        *(["it has no instance group"] if is_known and not groups else []),
        *(each for group in groups for each in _wrong_of(group)),
        *(["no node runs"] if _stands_still(groups) else []),
        *(f"plan {each.name} is {each.status}" for each in plans if each.status not in PLAN_WORKS),
        *(f"the nodes of plan {each.name} left at {each.nodes_leave}" for each in plans if _is_over(each)),
        *(f"file system {each.name} is {each.lifecycle}" for each in volumes or () if each.lifecycle not in _SERVES),
        *(f"alarm {each.name} is in ALARM" for each in seen_alarms or () if each.is_raised and not each.is_advice),
        *(f"the compute quota of team {team.name} is {team.status}" for team in broken),
        *(f"the cluster policy is {each}" for each in seen_policies or () if _is_broken(each)),
        *(f"{each.ready} of {each.wanted} pods of {each.namespace}/{each.name} are ready" for each in short),
        *(f"what {path} names cannot be used" for path in dict.fromkeys(each.path for each in named if each.fails)),
    ]
    absent = [
        *(f"group {name}" for name in missing_groups),
        *(f"file system {name}" for name in missing_volumes),
        *lacking,
        *(["the cluster policy"] if wanted.is_governed and seen_policies == [] else []),
        *(f"alarm {name}" for name in _lacks(wanted.alarms, seen_alarms)),
        *(f"the compute quota of team {name}" for name in _lacks(wanted.teams, seen_teams)),
    ]
    return Status(
        environment=wanted.environment,
        cluster=wanted.cluster,
        verdict=_verdict(wrong, absent, groups, skipped, advice),
        # deleted or never created, what the file has and AWS has not does not work
        passed=passed(refuses=bool(wrong or absent), is_whole=not skipped),
        status=state,
        failure=str(cluster.get("FailureMessage", "")),
        groups=groups,
        missing=tuple(absent),
        events=recent,
        plans=tuple(plans),
        file_systems=volumes or (),
        alarms=seen_alarms or (),
        teams=seen_teams or (),
        operators=with_reasons(aws, wanted.eks, seen_operators, of=short[:_MOST_ASKED]),
        quotas=tuple(each for each in left if each is not None),
        named=named,
        skipped=tuple(skipped),
    )


def _of_others(aws: Api, wanted: Wanted, now: datetime) -> tuple[tuple[Named, ...], tuple[Unread, ...]]:
    """Say what is wrong with what the file names and somebody else owns, and what of it was not looked at."""
    if wanted.file is None:
        return (), ()
    case = Case(environment=wanted.file, now=now, project=Path(), called=wanted.file.name)
    results = of_others(case, cast("Aws", aws))
    return (
        tuple(
            Named(path=each.path, message=each.message, fails=each.severity is Severity.ERROR)
            for each in by_place(each for result in results for each in result.findings)
        ),
        tuple(
            Unread(what=each.path or result.check.title, reason=each.reason, action=each.action, aws_said=each.said)
            for result in results
            for each in result.skipped
        ),
    )


def _short(found: Sequence[Operator], groups: Sequence[Group]) -> list[Operator]:
    """Return the operators with missing pods. A DaemonSet may miss one on each node that does not run, which is
    reported.

    If nodes were not read, a DaemonSet with a ready pod is not judged.
    """
    at_rest = [(each.failing, each.checking, each.changing) for each in groups]
    idle = sum(number or 0 for numbers in at_rest for number in numbers)
    is_known = all(number is not None for numbers in at_rest for number in numbers)

    def lacks(each: Operator) -> bool:
        if each.kind != "DaemonSet":
            return each.ready < each.wanted
        return each.wanted - each.ready > (idle if is_known else max(each.wanted - 1, 0))

    return [each for each in found if lacks(each)]


def _left(aws: Api, wanted: Requirement) -> QuotaLeft:
    """Say what is left of a quota; raises NotAnswered if its value or its use is unknown."""
    if not isinstance(aws, Quotas):
        raise NotAnswered("quotas were not asked for")
    value, used = answered(
        lambda: aws.quota(wanted.service, wanted.name, wanted.code or None), lambda: aws.usage(wanted.usage)
    )
    if not isinstance(value, QuotaValue) or not isinstance(used, Usage):
        raise NotAnswered(f"Service Quotas has no such quota for {wanted.service}")
    if not used.is_whole:
        raise NotAnswered(Why.about(used.what_is_unread, used.why_it_is_unread), action=used.action, said=used.said)
    return QuotaLeft(
        name=wanted.name,
        allowed=value.value,
        is_default=value.is_default,
        used=used.at_least,
        left=value.value - used.at_least,
    )


def _wrong_of(group: Group) -> Iterator[str]:
    if group.failing:
        yield f"{group.name}: {count(group.failing, 'node')} failing"
    if group.status in _BROKEN or (group.status == _GOING and group.is_in_file):
        yield f"{group.name} is {group.status}"
    if group.update_status == _NOT_UPDATED:
        yield f"the software update of {group.name} failed"


def _unknown_of(group: Group, rows: Sequence[Mapping[str, Any]]) -> Iterator[Unread]:
    """Say which statuses of a group have no known meaning, so that its health is unknown."""
    what = f"group {group.name}"
    if group.status not in _STATUSES:
        yield Unread(what=what, reason=f"its status is {group.status}, which this version does not know")
    if group.update_status and group.update_status not in _UPDATES:
        yield Unread(what=what, reason=f"its update is {group.update_status}, which this version does not know")
    states = (str(row["InstanceStatus"]["Status"]) for row in rows if row["InstanceGroupName"] == group.name)
    yield from unknown_states(states, what=what)


def _unknown_words(alarms: Sequence[Alarm], teams: Sequence[Team], policies: Sequence[str]) -> Iterator[Unread]:
    """Say the same of the resources around the cluster."""
    states = [
        *((f"alarm {each.name}", each.state, _ALARM_STATES) for each in alarms),
        *((f"the compute quota of team {each.name}", each.status, _GOVERNING) for each in teams),
        *(("the cluster policy", each, _GOVERNING) for each in policies),
    ]
    for what, state, known in states:
        if state not in known:
            yield Unread(what=what, reason=f"its status is {state}, which this version does not know")


def _without_plan(groups: Sequence[Group], wanted: Wanted) -> Iterator[Unread]:
    """Say of which groups AWS shows no training plan although the file has one: its end is unknown."""
    for each in groups:
        if not each.plan and (arn := wanted.plans.get(each.name)):
            name = arn.rpartition("/")[2]
            reason = f"the file has training plan {name} for it, and DescribeCluster shows none"
            yield Unread(what=f"group {each.name}", reason=reason)


def _endless(plans: Sequence[Plan]) -> Iterator[Unread]:
    """Say which plans have an end that AWS does not show: their nodes may leave at any time."""
    for each in plans:
        if each.status in PLAN_WORKS and each.hours_left is None:
            yield Unread(what=f"training plan {each.name}", reason="AWS does not show when it ends")


def _strays(groups: Sequence[Group], rows: Sequence[Mapping[str, Any]]) -> Iterator[Unread]:
    """Say which nodes are in no group that DescribeCluster shows: no count includes them, failing or not."""
    names = {each.name for each in groups}
    strays = Counter(name for row in rows if (name := str(row["InstanceGroupName"])) not in names)
    for name, number in sorted(strays.items()):
        are = plural(number, "is", "are")
        yield Unread(
            what="nodes", reason=f"{count(number, 'node')} {are} in group {name}, which DescribeCluster does not show"
        )


def _stands_still(groups: Sequence[Group]) -> bool:
    """Whether nodes are wanted and no node of any group runs: a cluster without failures can be empty."""
    at_work = [None if each.running is None else each.running + (each.checking or 0) for each in groups]
    return sum(each.target for each in groups) > 0 and all(number == 0 for number in at_work)


def _is_over(plan: Plan) -> bool:
    return plan.status in PLAN_WORKS and plan.hours_left is not None and plan.hours_left <= 0


def _missing(volumes: Sequence[FileSystem], wanted: Wanted) -> list[str]:
    """Return the names and IDs of the file that FSx does not have."""
    there = {each.name for each in volumes} | {each.id for each in volumes}
    return sorted((wanted.made | wanted.joined) - there)


def _verdict(
    wrong: Sequence[str],
    missing: Sequence[str],
    groups: Sequence[Group],
    skipped: Sequence[Unread],
    advice: Sequence[str],
) -> str:
    end = f"; {joined(advice)} {plural(len(advice), 'is', 'are')} in ALARM, which is only advice" if advice else ""
    end += f"; of the file, {joined(missing)} {plural(len(missing), 'is', 'are')} not in AWS" if missing else ""
    end += f"; {count(len(skipped), 'thing')} could not be checked" if skipped else ""
    running = sum(each.running or 0 for each in groups)
    if not groups and not wrong:
        return f"The state of its nodes is unknown{end}."
    if not groups or any(each.running is None for each in groups):
        return f"{'; '.join(wrong) or 'nothing is known to be wrong'}{end}."
    at_work = f"{running} of {sum(each.target for each in groups)} nodes run"
    return f"{'; '.join([at_work, *wrong])}{end}."


def _group(row: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]] | None, wanted: Wanted) -> Group:
    name = str(row["InstanceGroupName"])
    mine = None if nodes is None else [each for each in nodes if each["InstanceGroupName"] == name]
    states = Counter(str(each["InstanceStatus"]["Status"]) for each in mine or ())
    reasons = Counter(
        str(each["InstanceStatus"].get("Message") or "no reason is given")
        for each in mine or ()
        if each["InstanceStatus"]["Status"] in FAILING
    )
    types = row.get("InstanceRequirements", {}).get("CurrentInstanceTypes", [])
    others = sum(states.values()) - states[RUNNING] - states[CHECKING] - sum(states[each] for each in FAILING)
    return Group(
        name=name,
        instance_type=str(row.get("InstanceType") or ", ".join(types)),
        status=str(row.get("Status", "unknown")),
        in_file=wanted.counts.get(name),
        is_in_file=name in wanted.counts,
        target=int(row["TargetCount"]),
        running=None if mine is None else states[RUNNING],
        failing=None if mine is None else sum(states[each] for each in FAILING),
        checking=None if mine is None else states[CHECKING],
        changing=None if mine is None else others,
        reasons=tuple(Reason(text=text, nodes=number) for text, number in reasons.most_common(_MOST_REASONS)),
        software=str(row.get("CurrentImageReleaseVersion", "")),
        software_status=str(row.get("ImageVersionStatus", "")),
        update_status=str(row.get("SoftwareUpdateStatus", "")),
        plan=str(row.get("TrainingPlanArn", "")),
    )


def _events(aws: Api, cluster: str, now: datetime) -> tuple[tuple[Event, ...], Unread | None]:
    """Return the newest warnings and errors, and why some were not read.

    AWS cannot filter by level: a cluster that creates many nodes can have pages of events before the first warning.
    A cluster without continuous provisioning has no events, and AWS refuses the request (botocore 1.44.5).
    """
    with suppress(NotAnswered):
        found = describe_cluster(aws, cluster)
        if found is None or found.get("NodeProvisioningMode") != "Continuous":
            return (), None
    return newest_events(aws, cluster, now, most=MOST_EVENTS, page_size=100, without=_QUIET)


def _plan(aws: Api, arn: str, now: datetime) -> Plan:
    found = describe_training_plan(aws, arn)
    with reading("sagemaker:DescribeTrainingPlan"):
        end = found.get("EndTime")
        leave = end - TRAINING_PLAN_RECLAIM if isinstance(end, datetime) else None
        hours = None if leave is None else round((leave - now).total_seconds() / 3600, 1)
        return Plan(
            name=str(found.get("TrainingPlanName", arn.rpartition("/")[2])),
            status=str(found["Status"]),
            nodes_leave="" if leave is None else moment(leave),
            hours_left=hours,
            total=found.get("TotalInstanceCount"),
            available=found.get("AvailableInstanceCount"),
            unhealthy=found.get("UnhealthyInstanceCount"),
        )


def _addons_lacking(aws: Api, wanted: Wanted) -> list[str]:
    """Name the add-ons that EKS does not have; only its pods show whether an add-on works."""
    if not wanted.addons:
        return []
    try:
        there = set(map(str, aws.pages("eks", "list_addons", "addons", clusterName=wanted.eks)))
    except Refused as refused:
        if refused.code != "ResourceNotFoundException":
            raise
        there = set()
    return [f"add-on {name}" for name in sorted(wanted.addons - there)]


def _alarms(aws: Api, wanted: Wanted, now: datetime) -> tuple[tuple[Alarm, ...], tuple[Unread, ...]]:
    """Return the alarms of the file that CloudWatch has, and those without data for so long that their state is
    unknown.

    The request has the prefix of the cluster's alarms, so that few pages are enough.
    """
    if not wanted.alarms:
        return (), ()
    asked = {"AlarmNamePrefix": notifications.alarm_name(wanted.cluster, ""), "AlarmTypes": ["MetricAlarm"]}
    rows = aws.pages("cloudwatch", "describe_alarms", "MetricAlarms", **asked)
    with reading("cloudwatch:DescribeAlarms"):
        since = {str(row["AlarmName"]): row.get("StateTransitionedTimestamp") for row in rows}
        found = tuple(
            Alarm(
                name=name,
                state=str(row["StateValue"]),
                reason=str(row.get("StateReason", "")),
                is_advice=name in wanted.advice,
                since=moment(at) if (at := since[name]) else "",
            )
            for row in rows
            if (name := str(row["AlarmName"])) in wanted.alarms
        )
        silent = tuple(
            Unread(what=f"alarm {each.name}", reason=f"CloudWatch has no data for it, {_how_long(each)}")
            for each in found
            if each.state == _NO_DATA
            and not each.is_advice
            and ((at := since[each.name]) is None or now - at > _LONGEST_LOOK)
        )
        return found, silent


def _how_long(alarm: Alarm) -> str:
    return f"since {alarm.since}" if alarm.since else "and does not show since when"


def _teams(aws: Api, wanted: Wanted) -> tuple[Team, ...]:
    """Return the compute quotas of the file's teams; no AWS API shows what a team uses."""
    rows = _governing(aws, wanted, "list_compute_quotas", "ComputeQuotaSummaries") if wanted.teams else []
    with reading("sagemaker:ListComputeQuotas"):
        return tuple(
            Team(
                name=str(row["ComputeQuotaTarget"]["TeamName"]),
                status=str(row["Status"]),
                quota=joined(
                    [
                        f"{each['Count']} {each['InstanceType']}" if "Count" in each else str(each["InstanceType"])
                        for each in row.get("ComputeQuotaConfig", {}).get("ComputeQuotaResources", ())
                    ]
                ),
            )
            for row in rows
            if row["ComputeQuotaTarget"]["TeamName"] in wanted.teams
        )


def _policies(aws: Api, wanted: Wanted) -> list[str]:
    """Return the state of the cluster policy, if the file has one."""
    if not wanted.is_governed:
        return []
    rows = _governing(aws, wanted, "list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries")
    with reading("sagemaker:ListClusterSchedulerConfigs"):
        return [str(row["Status"]) for row in rows]


def _governing(aws: Api, wanted: Wanted, operation: str, key: str) -> list[Any]:
    """List the cluster's quotas or policies; none if there is no cluster."""
    found = describe_cluster(aws, wanted.cluster)
    if found is None:
        return []
    with reading("sagemaker:DescribeCluster"):
        arn = str(found["ClusterArn"])
    rows: list[Any] = aws.pages("sagemaker", operation, key, ClusterArn=arn)
    with reading(f"sagemaker:{''.join(map(str.capitalize, operation.split('_')))}"):
        # SageMaker can list a deleted one for a while
        return [row for row in rows if row["Status"] != _DELETED]


def _lacks(names: frozenset[str], there: Sequence[Alarm | Team] | None) -> list[str]:
    return [] if there is None else sorted(names - {each.name for each in there})


def _is_broken(state: str) -> bool:
    return state.endswith("Failed")


def _capacity(row: Mapping[str, Any]) -> int | None:
    """Return the capacity of a file system, 0 on Intelligent-Tiering, None if FSx does not show it."""
    if row.get("StorageType") == "INTELLIGENT_TIERING" or "ThroughputCapacity" in row.get("LustreConfiguration", {}):
        return 0
    return int(row["StorageCapacity"]) if "StorageCapacity" in row else None


def _file_systems(aws: Api, wanted: Wanted) -> tuple[FileSystem, ...]:
    """Return the file systems that the environment's storage stacks created, now or before, and the existing ones."""
    stack = f"{wanted.environment}-storage"
    rows = aws.pages("fsx", "describe_file_systems", "FileSystems")
    with reading("fsx:DescribeFileSystems"):
        found = [({tag["Key"]: tag["Value"] for tag in row.get("Tags", ())}, row) for row in rows]
        return tuple(
            FileSystem(
                id=str(row["FileSystemId"]),
                name=tags.get("Name") or str(row["FileSystemId"]),
                lifecycle=str(row["Lifecycle"]),
                capacity_gib=_capacity(row),
                reason=str(row.get("FailureDetails", {}).get("Message", "")),
            )
            for tags, row in found
            if tags.get(_STACK_TAG) == stack or row["FileSystemId"] in wanted.joined
        )
