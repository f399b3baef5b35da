"""Drift, status and nodes as ``--format json`` writes them and as all pages read them. Schemas are published."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from hyperpod_cdk.checks.answers import Why
from hyperpod_cdk.findings import passed
from hyperpod_cdk.json_schema import Model

Effect = Literal["nothing", "sets", "agrees", "makes", "deletes", "fails", "unknown"]
"""What the next deployment does about a difference; ``agrees``: the file says what AWS has."""


class Next(Model):
    """What the next deployment, with the files as they are, does about a difference."""

    effect: Effect
    sentence: str
    """For a reader, with what happens to nodes."""
    nodes_lost: int | None = 0
    """Nodes that it removes; null if unknown."""
    later: str = ""
    """What a later deployment does, once the resource is in its change; empty if it does the same."""


class Line(Model):
    """A line of the environment file."""

    file: str
    line: int
    path: str
    """The field, such as ``hyperpod.instance_groups[1].count``; a field that the file leaves out is in this section."""


class Difference(Model):
    """One place where AWS differs from what the last deployment wrote."""

    stack: str
    resource: str
    """The construct's path in its stack, else the logical ID."""
    type: str
    id: str
    """The physical ID."""
    path: str
    """The place in the resource, such as ``InstanceGroups[h100].InstanceCount``; empty: the whole resource."""
    deployed: str | None
    """What the last deployment wrote; null if it wrote nothing there."""
    file: str | None
    """What the files as they are would write; null if nothing."""
    actual: str | None
    """What AWS has; null if it has nothing there."""
    next: Next
    line: Line | None = None
    """The line of the environment file that decides it; null if no field is known."""
    since: str = ""
    """When AWS began to change it, if AWS shows it; HyperPod's operations do not say who changed it."""


def _as_it_is(reason: Any, read: ValidatorFunctionWrapHandler) -> str:
    # pydantic would make plain text of it, which knows no causes
    return reason if isinstance(reason, Why) else str(read(reason))


class Unread(Model):
    """What could not be checked. It never counts as clean."""

    what: str
    reason: Annotated[str, WrapValidator(_as_it_is)]
    action: str = ""
    """The missing IAM action, if that was the reason."""
    aws_said: str = ""


class Drift(Model):
    """Every difference between the last deployment and AWS, and what was not checked."""

    environment: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False if something differs, null if something could not be checked, true if all is as deployed."""
    differences: tuple[Difference, ...] = ()
    skipped: tuple[Unread, ...] = ()
    compared: dict[str, int] = Field(default={})
    """How many resources of each type were compared with AWS."""
    not_compared: dict[str, int] = Field(default={})
    """How many resources of each type exist in AWS and are not compared by this version."""
    notes: tuple[str, ...] = ()


def outcome(differences: tuple[Difference, ...], skipped: tuple[Unread, ...]) -> bool | None:
    """Return the one answer from differences and skipped checks, as every command does."""
    return passed(refuses=bool(differences), is_whole=not skipped)


class Reason(Model):
    """Why nodes of a group fail, in HyperPod's words."""

    text: str
    nodes: int


class Group(Model):
    """One instance group now; a value of its nodes is null if it could not be read."""

    name: str
    instance_type: str
    status: str
    in_file: int | None
    """The count of the file; null if Karpenter sets it or the file does not have the group."""
    is_in_file: bool
    target: int
    """The node count that was requested from HyperPod."""
    running: int | None
    failing: int | None
    checking: int | None
    """Nodes that run deep health checks."""
    changing: int | None
    """Nodes that are created, updated or shut down."""
    reasons: tuple[Reason, ...] = ()
    software: str = ""
    software_status: str = ""
    update_status: str = ""
    """The status of its last software update, in HyperPod's words; empty if there was none."""
    plan: str = ""
    """ARN of its training plan."""


class Event(Model):
    """A warning or an error of the last 24 hours."""

    time: str
    level: str
    group: str
    node: str
    text: str


class Plan(Model):
    """A training plan that a group uses."""

    name: str
    status: str
    nodes_leave: str
    """When HyperPod terminates its nodes, an hour before it ends; empty if AWS does not show its end."""
    hours_left: float | None
    """Until then."""
    total: int | None
    available: int | None
    unhealthy: int | None


class FileSystem(Model):
    """A file system that the environment's stacks created."""

    id: str
    name: str
    lifecycle: str
    capacity_gib: int | None
    """0 if the capacity is elastic, null if AWS does not show it."""
    reason: str = ""


class Alarm(Model):
    """An alarm of the file."""

    name: str
    state: str
    """``OK``, ``ALARM`` or ``INSUFFICIENT_DATA``."""
    reason: str = ""
    """CloudWatch's."""
    is_advice: bool = False
    """Whether it warns of something that can happen later, such as a nearly used quota, and of no failure."""
    since: str = ""
    """Since when it is in this state; empty if AWS does not show it."""

    @property
    def is_raised(self) -> bool:
        """Whether its threshold is breached (botocore 1.44.5, StateValue)."""
        return self.state == "ALARM"

    @property
    def advice(self) -> str:
        """Its sentence, if it is raised and only advice; else empty."""
        reason = f": {self.reason}" if self.reason else ""
        return (
            f"alarm {self.name} is in ALARM, which is only advice{reason}" if self.is_raised and self.is_advice else ""
        )


class Team(Model):
    """The compute quota of a team of the file; no AWS API shows how much of it is used."""

    name: str
    status: str
    """The status of the quota, in SageMaker's words."""
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
    """Why most of its pods are not ready, in Kubernetes' words; empty if all are ready or the reason is unknown."""


class QuotaLeft(Model):
    """A quota for instances, shared by all HyperPod clusters of the account in the Region."""

    name: str
    allowed: float
    """The account's value, else AWS's default."""
    is_default: bool
    used: float
    """Used by nodes that run and nodes that groups still wait for."""
    left: float


class Named(Model):
    """Something that the file names and somebody else owns, such as a topic or a key, and that is not as it must be."""

    path: str
    """Where the file names it."""
    message: str
    fails: bool
    """Whether it cannot be used; else it only needs attention."""


class Status(Model):
    """The state of a cluster now."""

    environment: str
    cluster: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False if something fails, has ended or is missing, null if something could not be checked."""
    status: str = "unknown"
    failure: str = ""
    groups: tuple[Group, ...] = ()
    missing: tuple[str, ...] = ()
    """What the file has and AWS does not, deleted or not deployed yet: groups, file systems, add-ons, alarms, compute
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
    """A node of the cluster, or one that is not launched yet."""

    id: str
    """The instance ID; empty if there is no instance yet."""
    logical_id: str
    """HyperPod's own ID; empty if the cluster does not show it."""
    group: str
    instance_type: str
    status: str
    message: str = ""
    """HyperPod's message for the status."""
    launched: str = ""
    software: str = ""
    software_status: str = ""

    @property
    def name(self) -> str:
        """The name of the node: the instance ID, else the logical ID."""
        return self.id or self.logical_id


class NodeDetails(Node):
    """A node with its place, its settings in Kubernetes, and where its logs are."""

    availability_zone_id: str = ""
    address: str = ""
    kubernetes_name: str = ""
    capacity: str = ""
    """``OnDemand`` or ``Spot``: HyperPod also says ``OnDemand`` for nodes of a training plan."""
    plan: str = ""
    """ARN of the training plan of its group, empty if the group has none."""
    labels: dict[str, str] = Field(default={})
    """The Kubernetes labels of its group, as they are now."""
    taints: tuple[str, ...] = ()
    shell: str = ""
    """The target for ``aws ssm start-session --target``."""
    log_group: str = ""
    log_stream: str = ""
    """The log group of its lifecycle scripts."""
    events: tuple[Event, ...] = ()
    """The newest events of the last day, of any level; HyperPod has them only for continuous provisioning."""


class Nodes(Model):
    """The nodes of a cluster."""

    environment: str
    cluster: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False if a node fails, null if something could not be checked."""
    nodes: tuple[Node, ...] = ()
    skipped: tuple[Unread, ...] = ()


class NodesDescribed(Model):
    """Nodes that the user named."""

    environment: str
    cluster: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """As in ``Nodes``."""
    nodes: tuple[NodeDetails, ...] = ()
    skipped: tuple[Unread, ...] = ()


Action = Literal["replace", "reboot", "check", "cordon", "uncordon"]
"""What a user does to nodes by hand."""


class Handled(Node):
    """A node on which a user acts."""

    place: str = ""
    """What is known about capacity for its replacement; empty if nothing is replaced or known."""
    cordoned: bool | None = None
    """Whether it is cordoned; null if Kubernetes was not asked."""
    jobs: tuple[str, ...] | None = None
    """What runs on it except DaemonSets, by owner; null if Kubernetes was not asked, or did not answer."""
    accepted: bool | None = None
    """Whether HyperPod has started it, or Kubernetes has done it; null if neither was asked, or gave an answer."""
    error_code: str = ""
    error: str = ""
    """The error of the request, if there is one."""


class NodeWork(Model):
    """A request to HyperPod for nodes, and its answer for each."""

    environment: str
    cluster: str
    action: Action
    verdict: str
    """One sentence."""
    passed: bool | None
    """True if it has started or is done for every node, false if one was refused, null if nothing was requested."""
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
    """Null if something could not be checked."""
    lines: tuple[LogLine, ...] = ()
    skipped: tuple[Unread, ...] = ()


class Extension(Model):
    """An offered extension of a training plan."""

    id: str
    """The ID of the offering, which buys it."""
    days: float | None
    ends: str
    """When the plan ends with it."""
    fee: str
    """The upfront fee; empty if AWS does not show it."""
    currency: str
    price: str | None
    """The fee per accelerator and hour; null if unknown."""


class Extended(Model):
    """An extension that a plan already has."""

    id: str
    """The offer that bought it."""
    days: float | None
    at: str
    """When it was bought; empty if AWS does not show it."""
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
    """An hour before its end; empty if AWS does not show its end."""
    too_late: bool | None
    """Null if AWS does not show when it ends."""
    groups: tuple[str, ...]
    """The groups that use it, with their nodes."""
    teams: tuple[str, ...]
    """The quotas of teams for its instance type; other groups can have such nodes, too."""
    history: tuple[Extended, ...] | None = None
    """Its extensions, the oldest first; null if they could not be read."""
    extensions: tuple[Extension, ...] = ()
    """The offers, the cheapest per accelerator-hour first."""
    days_unknown: tuple[int, ...] = ()
    """The durations in days whose offers AWS did not show."""


class Attachment(Model):
    """What it needs and does to give an instance group a training plan."""

    environment: str
    group: str
    plan: str
    arn: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """False if the plan does not fit the group, null if something could not be checked."""
    before: str
    """The plan that the file names now, else the group's capacity."""
    nodes_standing: int | None
    """Nodes that the group has now; null if they could not be read."""
    nodes_wanted: int
    """Nodes that the file wants."""
    nodes_leave: str
    """When HyperPod terminates the plan's nodes; empty if AWS does not show its end."""
    problems: tuple[str, ...] = ()
    """Why the plan does not fit."""
    told: tuple[str, ...] = ()
    """What happens to the nodes, and what to write."""
    skipped: tuple[Unread, ...] = ()


class Bought(Model):
    """A requested extension."""

    plan: str
    offer: str
    status: str = ""
    payment: str = ""
    problem: str = ""
    """Why it was not bought, or why that is unknown."""


class Extensions(Model):
    """Extensions of the training plans of an environment."""

    environment: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """Null if something could not be checked, false if a requested purchase is not known to have succeeded."""
    plans: tuple[PlanToExtend, ...] = ()
    bought: Bought | None = None
    skipped: tuple[Unread, ...] = ()
