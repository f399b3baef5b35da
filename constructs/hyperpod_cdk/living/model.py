"""Drift, status and nodes as data: what ``--format json`` writes and every rendering reads. Schemas are published."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from hyperpod_cdk.checks.answers import Why
from hyperpod_cdk.findings import passed
from hyperpod_cdk.json_schema import Model

Effect = Literal["nothing", "sets", "agrees", "makes", "deletes", "fails", "unknown"]
"""What the next deployment does about a difference; ``agrees``: the file says what AWS has."""


class Next(Model):
    """What the next deployment does about a difference: that of the files as they are."""

    effect: Effect
    sentence: str
    """For a reader, with what becomes of nodes."""
    nodes_lost: int | None = 0
    """Nodes that it takes away; null where that is not known."""
    later: str = ""
    """What a deployment after it would do, once the resource is in the change; empty where that is the same."""


class Line(Model):
    """A line of the environment file."""

    file: str
    line: int
    path: str
    """The field, such as ``hyperpod.instance_groups[1].count``; one that is left out is in the line's section."""


class Difference(Model):
    """One place where AWS has something else than the last deployment wrote."""

    stack: str
    resource: str
    """The construct's path in its stack, else the logical ID."""
    type: str
    id: str
    """The physical ID."""
    path: str
    """The place in the resource, such as ``InstanceGroups[h100].InstanceCount``; empty: the whole resource."""
    deployed: str | None
    """What the last deployment wrote; null: it wrote nothing there."""
    file: str | None
    """What the files as they are would write; null: nothing."""
    actual: str | None
    """What AWS has; null: it has nothing there."""
    next: Next
    line: Line | None = None
    """What of the environment file decides it; null where no field is known to."""
    since: str = ""
    """When AWS began to change it, where AWS tells; nobody is named: HyperPod's operations have no "who"."""


def _as_it_is(reason: Any, read: ValidatorFunctionWrapHandler) -> str:
    # pydantic would make plain text of it, which knows no causes
    return reason if isinstance(reason, Why) else str(read(reason))


class Unread(Model):
    """What could not be looked at. It never counts as clean."""

    what: str
    reason: Annotated[str, WrapValidator(_as_it_is)]
    action: str = ""
    """The IAM action that was missing, where that was the reason."""
    aws_said: str = ""


class Drift(Model):
    """Every difference between the last deployment and what AWS has, and what was not looked at."""

    environment: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False where something differs, null where something could not be looked at, true where all is as deployed."""
    differences: tuple[Difference, ...] = ()
    skipped: tuple[Unread, ...] = ()
    compared: dict[str, int] = Field(default={})
    """How many resources of each type were compared with AWS."""
    not_compared: dict[str, int] = Field(default={})
    """How many resources of each type this version does not compare, though AWS has something of them."""
    notes: tuple[str, ...] = ()


def outcome(differences: tuple[Difference, ...], skipped: tuple[Unread, ...]) -> bool | None:
    """Give the one answer of a look, as every verb does."""
    return passed(refuses=bool(differences), is_whole=not skipped)


class Reason(Model):
    """Why nodes of a group fail, in HyperPod's words."""

    text: str
    nodes: int


class Group(Model):
    """One instance group now; what of its nodes is null could not be read."""

    name: str
    instance_type: str
    status: str
    in_file: int | None
    """The count of the file; null where Karpenter sets it or the file does not have the group."""
    is_in_file: bool
    target: int
    """How many nodes HyperPod is asked for."""
    running: int | None
    failing: int | None
    checking: int | None
    """Nodes under deep health checks."""
    changing: int | None
    """Nodes that are made, updated or shut down."""
    reasons: tuple[Reason, ...] = ()
    software: str = ""
    software_status: str = ""
    update_status: str = ""
    """Of its last software update, in HyperPod's words; empty where there was none."""
    plan: str = ""
    """ARN of its training plan."""


class Event(Model):
    """A warning or an error of the last day."""

    time: str
    level: str
    group: str
    node: str
    text: str


class Plan(Model):
    """A training plan that a group stands on."""

    name: str
    status: str
    nodes_leave: str
    """When HyperPod takes its nodes, an hour before it ends; empty where AWS does not show its end."""
    hours_left: float | None
    """Until then."""
    total: int | None
    available: int | None
    unhealthy: int | None


class FileSystem(Model):
    """A file system that the environment's stacks made."""

    id: str
    name: str
    lifecycle: str
    capacity_gib: int
    """0 where the capacity is elastic."""
    reason: str = ""


class Alarm(Model):
    """An alarm of the file."""

    name: str
    state: str
    """``OK``, ``ALARM`` or ``INSUFFICIENT_DATA``."""
    reason: str = ""
    """CloudWatch's."""
    is_advice: bool = False
    """Whether it says what may come, such as a quota that is nearly used up, and of nothing that it does not work."""
    since: str = ""
    """Since when it is in this state; empty where AWS does not show."""

    @property
    def is_raised(self) -> bool:
        """Whether its threshold is passed (botocore 1.44.5, StateValue)."""
        return self.state == "ALARM"

    @property
    def advice(self) -> str:
        """What it says, where it is raised and only advice; else empty."""
        reason = f": {self.reason}" if self.reason else ""
        return (
            f"alarm {self.name} is in ALARM, which is only advice{reason}" if self.is_raised and self.is_advice else ""
        )


class Team(Model):
    """The compute quota of a team of the file; no API of AWS tells what of it is used."""

    name: str
    status: str
    """Of the quota, in SageMaker's words."""
    quota: str
    """Instances by type."""


class Operator(Model):
    """A Deployment, DaemonSet or StatefulSet of an operator, and how many of its pods are ready."""

    namespace: str
    name: str
    kind: str
    wanted: int
    ready: int
    reason: str = ""
    """Why most of its pods are not ready, in Kubernetes' words; empty where all are, or nobody tells."""


class QuotaLeft(Model):
    """A quota for instances, of which all HyperPod clusters of the account in the Region take."""

    name: str
    allowed: float
    """The account's value, else AWS's default."""
    is_default: bool
    used: float
    """By nodes that run and nodes that groups are still to get."""
    left: float


class Named(Model):
    """Something that the file names and somebody else owns, such as a topic or a key, and that is not as it must be."""

    path: str
    """Where the file names it."""
    message: str
    fails: bool
    """Whether it cannot be used; else it only needs attention."""


class Status(Model):
    """What a cluster does now."""

    environment: str
    cluster: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False where something fails, has ended or is missing, null where something could not be looked at."""
    status: str = "unknown"
    failure: str = ""
    groups: tuple[Group, ...] = ()
    missing: tuple[str, ...] = ()
    """What of the file AWS does not have, gone or not deployed yet: groups, file systems, add-ons, alarms, compute
    quotas of teams and the cluster policy."""
    events: tuple[Event, ...] = ()
    plans: tuple[Plan, ...] = ()
    file_systems: tuple[FileSystem, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    teams: tuple[Team, ...] = ()
    operators: tuple[Operator, ...] = ()
    quotas: tuple[QuotaLeft, ...] = ()
    named: tuple[Named, ...] = ()
    skipped: tuple[Unread, ...] = ()


class Node(Model):
    """A node of the cluster, or the place of one that is not launched yet."""

    id: str
    """The instance ID; empty where there is no instance yet."""
    logical_id: str
    """HyperPod's own ID; empty where the cluster does not show it."""
    group: str
    instance_type: str
    status: str
    message: str = ""
    """What HyperPod says of the status."""
    launched: str = ""
    software: str = ""
    software_status: str = ""

    @property
    def name(self) -> str:
        """What the node is called by: the instance ID, else the logical one."""
        return self.id or self.logical_id


class NodeDetails(Node):
    """A node with where it stands, what Kubernetes knows of it, and where its logs are."""

    availability_zone_id: str = ""
    address: str = ""
    kubernetes_name: str = ""
    capacity: str = ""
    """``OnDemand`` or ``Spot``: HyperPod says ``OnDemand`` of nodes of a training plan, too."""
    plan: str = ""
    """ARN of the training plan of its group, empty where that has none."""
    labels: dict[str, str] = Field(default={})
    """The labels that its group gives it, as they are now."""
    taints: tuple[str, ...] = ()
    shell: str = ""
    """What ``aws ssm start-session --target`` takes."""
    log_group: str = ""
    log_stream: str = ""
    """Of its lifecycle scripts."""
    events: tuple[Event, ...] = ()
    """The newest of the last day, of any level; HyperPod has them for clusters with continuous provisioning only."""


class Nodes(Model):
    """The nodes of a cluster."""

    environment: str
    cluster: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False where a node fails, null where something could not be looked at."""
    nodes: tuple[Node, ...] = ()
    skipped: tuple[Unread, ...] = ()


class NodesDescribed(Model):
    """Nodes that were asked for by name."""

    environment: str
    cluster: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """As of ``Nodes``."""
    nodes: tuple[NodeDetails, ...] = ()
    skipped: tuple[Unread, ...] = ()


Action = Literal["replace", "reboot", "check", "cordon", "uncordon"]
"""What is done to nodes by hand."""


class Handled(Node):
    """A node to which something is done."""

    place: str = ""
    """What is known of a place for its replacement; empty where nothing is replaced or nothing is known."""
    cordoned: bool | None = None
    """Whether Kubernetes puts nothing new on it; null where that was not asked."""
    jobs: tuple[str, ...] | None = None
    """What runs on it beside DaemonSets, by its owner; null where Kubernetes was not asked, or did not answer."""
    accepted: bool | None = None
    """Whether HyperPod has begun, or Kubernetes has done it; null where it was not asked, or did not answer."""
    error_code: str = ""
    error: str = ""
    """Why it has not."""


class NodeWork(Model):
    """What was asked of HyperPod for some nodes, and what it answered for each."""

    environment: str
    cluster: str
    action: Action
    verdict: str
    """One sentence."""
    passed: bool | None
    """True where it is begun, or done, with every node, false where one was refused, null where nobody was asked."""
    nodes: tuple[Handled, ...]
    warnings: tuple[str, ...]
    """What is lost or interrupted."""
    skipped: tuple[Unread, ...] = ()


class LogLine(Model):
    """A line of a log."""

    time: str
    stream: str
    text: str


class NodeLogs(Model):
    """The newest lines of a log of a node, the oldest of them first."""

    environment: str
    cluster: str
    node: str
    log_group: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """Null where something could not be looked at."""
    lines: tuple[LogLine, ...] = ()
    skipped: tuple[Unread, ...] = ()


class Extension(Model):
    """An extension of a training plan that is on offer."""

    id: str
    """What buys it."""
    days: float | None
    ends: str
    """When the plan ends with it."""
    fee: str
    """Charged at once; empty where AWS does not show it."""
    currency: str
    price: str | None
    """The fee per accelerator and hour; null where it is not known."""


class Extended(Model):
    """An extension that a plan has already."""

    id: str
    """The offer that bought it."""
    days: float | None
    at: str
    """When it was bought; empty where AWS does not show."""
    status: str
    payment: str


class PlanToExtend(Model):
    """A training plan of an environment, and what ends with it."""

    name: str
    arn: str
    status: str
    instances: int | None
    ends: str
    nodes_leave: str
    buy_until: str
    """An hour before its end; empty where AWS does not show that."""
    too_late: bool | None
    """Null where AWS does not show when it ends."""
    groups: tuple[str, ...]
    """The groups that stand on it, with their nodes."""
    teams: tuple[str, ...]
    """The quotas of teams in its instance type: other groups may have such nodes, too."""
    history: tuple[Extended, ...] | None = None
    """By what it was extended, the first extension first; null where that could not be read."""
    extensions: tuple[Extension, ...] = ()
    """The cheapest per accelerator-hour first."""
    days_unknown: tuple[int, ...] = ()
    """The durations in days for which AWS did not tell what is on offer."""


class Attachment(Model):
    """What putting a training plan on an instance group takes and does."""

    environment: str
    group: str
    plan: str
    arn: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False where the plan does not fit the group, null where something could not be looked at."""
    before: str
    """The plan that the file names now, else the group's capacity."""
    nodes_standing: int | None
    """Nodes that the group has now; null where that could not be read."""
    nodes_wanted: int
    """Nodes that the file wants."""
    nodes_leave: str
    """When HyperPod takes the plan's nodes; empty where AWS does not show its end."""
    problems: tuple[str, ...] = ()
    """Why the plan does not fit."""
    told: tuple[str, ...] = ()
    """What becomes of the nodes, and what to write."""
    skipped: tuple[Unread, ...] = ()


class Bought(Model):
    """An extension that was asked for."""

    plan: str
    offer: str
    status: str = ""
    payment: str = ""
    problem: str = ""
    """Why it was not bought, or is not known to be."""


class Extensions(Model):
    """What extends the training plans of an environment."""

    environment: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """Null where something could not be looked at, false where something was to be bought and is not known to be."""
    plans: tuple[PlanToExtend, ...] = ()
    bought: Bought | None = None
    skipped: tuple[Unread, ...] = ()
