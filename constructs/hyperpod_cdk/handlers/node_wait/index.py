"""Serve Custom::HyperPodNodesReady: done when enough nodes of a HyperPod cluster run, failed with what kept them away.

A cluster with continuous provisioning is in service before it has a node, and CloudFormation takes an add-on that
stands degraded for want of nodes as finished. So this asks HyperPod itself: ListClusterNodes for the nodes,
DescribeCluster for the groups, ListClusterEvents and DescribeClusterEvent for why a node did not come. HyperPod tries a
failed node again with a new instance, so one failure proves nothing: it fails at the time limit, or earlier where every
instance of the groups failed alike again and again. Lambda ends after 15 minutes, before which the function invokes
itself anew.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

# relative, since in Lambda the package above has another name
from ..answering import (  # noqa: TID252
    LATER,
    UNKNOWN_TO_IAM,
    Answer,
    Clients,
    Put,
    Sleep,
    ToldError,
    Turn,
    client,
    cut,
    endlessly,
    error_code,
    put,
    serve,
)

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

PAUSES = (2.0, 3.0, 5.0, 10.0)
"""Seconds between two looks; the last one repeats."""
HAND_OVER_SECONDS = 120.0
"""How long before Lambda's timeout the next invocation takes over: time for one look's calls and for the answer."""
MOST_INVOCATIONS = 8
"""More than CloudFormation's hour holds, and half of what Lambda takes for a loop (about 16)."""
SURE_FAILURES = 3
"""Instances of a group that must have failed alike, and at least two for every node wanted, until it is hopeless."""
DESCRIBED_EVENTS = 12
"""Events that are looked at more closely in one look."""
LISTED_EVENTS = 200
QUOTED_FAILURES = 4
MESSAGE_LIMIT = 400
DATA_BYTES = 1500
TOLD_GROUPS_BYTES = 600

WAITING = "Waiting"
"""What an invocation hands over to the next one, in the event."""
RUNNING = "Running"
FOR_GOOD = UNKNOWN_TO_IAM | {"ValidationException"}
"""Errors that do not go away by asking again, IAM's not after the patience that there is for them."""
GONE = frozenset({"ResourceNotFound", "ResourceNotFoundException"})


class WaitError(ToldError):
    """The nodes do not come."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """An instance group where add-on pods may run; ``expected`` ones are to have nodes within minutes."""

    name: str
    count: int
    expected: bool = True


@dataclass(frozen=True, kw_only=True)
class Question:
    """The properties, read: ``nodes`` of ``groups`` have to run within ``seconds``."""

    cluster: str
    groups: tuple[Group, ...]
    nodes: int
    seconds: float

    @staticmethod
    def of(properties: Mapping[str, Any]) -> Question:
        """Read the properties; raises KeyError or ValueError where they are not those of the resource."""
        return Question(
            cluster=str(properties["Cluster"]),
            groups=tuple(
                Group(name=str(each["Name"]), count=int(each["Count"]), expected=each.get("Expected") != "false")
                for each in properties["Groups"]
            ),
            nodes=int(properties["Nodes"]),
            seconds=float(properties["TimeoutSeconds"]),
        )

    @property
    def awaited(self) -> tuple[Group, ...]:
        """The groups without whose nodes there is no hope: the expected ones, or all where none is."""
        return tuple(group for group in self.groups if group.expected) or self.groups


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an instance did not become a node; ``node`` is an instance ID, a logical ID, or empty."""

    group: str
    node: str
    message: str
    script: str = ""


@dataclass(frozen=True, kw_only=True)
class Look:
    """The cluster at a moment: what DescribeCluster and ListClusterNodes answer."""

    cluster: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]

    def running(self, groups: Sequence[Group]) -> int:
        """Count the running nodes of these groups; the API's own filter takes a part of a name for the name."""
        names = {group.name for group in groups}
        return sum(node["InstanceGroupName"] in names and _status(node) == RUNNING for node in self.nodes)

    def lines(self) -> list[str]:
        """Describe every group of the cluster in a line."""
        groups = [
            *(self.cluster.get("InstanceGroups") or ()),
            *(self.cluster.get("RestrictedInstanceGroups") or ()),
        ]
        return [self._line(group) for group in sorted(groups, key=lambda each: str(each["InstanceGroupName"]))]

    def _line(self, group: Mapping[str, Any]) -> str:
        name = group["InstanceGroupName"]
        states = Counter(_status(node) for node in self.nodes if node["InstanceGroupName"] == name)
        others = [f"{count} {state}" for state, count in sorted(states.items()) if state != RUNNING]
        if group.get("TrainingPlanStatus") not in {None, "Active"}:
            others.append(f"training plan {group['TrainingPlanStatus']}")
        told = f" ({', '.join(others)})" if others else ""
        return f"{name}: {states[RUNNING]} of {group.get('TargetCount', 'an unknown number')} {RUNNING}{told}"


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event, or go on with one; answer its response URL once the outcome is known."""
    handle(event, context, clients=client, put=put)


def handle(event: Mapping[str, Any], context: Any, *, clients: Clients, put: Put, sleep: Sleep = time.sleep) -> None:
    """Handle one event with the given clients (by service name), sender and sleep."""
    serve(event, context, _served, clients=clients, put=put, sleep=sleep)


def _served(turn: Turn) -> Answer:
    if turn.kind == "Delete":
        return Answer()
    question = Question.of(turn.event["ResourceProperties"])
    if turn.kind == "Update" and WAITING not in turn.event:
        reason = _nothing_to_wait_for(turn, question)
        if reason:
            LOG.info("not waiting: %s", reason)
            return Answer(data=_unwaited(question, turn.client("sagemaker"), reason))
    data = Wait(question, turn).run()
    return LATER if data is None else Answer(data=data)


def _nothing_to_wait_for(turn: Turn, question: Question) -> str:
    """Say why an update does not wait, which it does for other groups than before only, and never on its way back."""
    event = turn.event
    try:
        before = replace(Question.of(event["OldResourceProperties"]), seconds=question.seconds)
    except (KeyError, TypeError, ValueError):
        LOG.warning("the properties before the update are not read")
    else:
        if before == question:
            return "the groups have not changed"
    # the event of an update that is taken back looks like that of any other update, so CloudFormation is asked
    try:
        stacks = turn.client("cloudformation").describe_stacks(StackName=event["StackId"])["Stacks"]
    except (BotoCoreError, ClientError) as error:
        return f"whether the stack is rolling back could not be asked ({error})"
    if any("ROLLBACK" in str(stack.get("StackStatus", "")) for stack in stacks):
        return "the stack is rolling back"
    return ""


def _unwaited(question: Question, sagemaker: Any, reason: str) -> dict[str, str]:
    """Return the attributes of an update that waits for nothing, and which no question to HyperPod may stop."""
    try:
        look = look_at(sagemaker, question.cluster)
    except (BotoCoreError, ClientError, WaitError) as error:
        return {"RunningNodes": "unknown", "Groups": cut(f"not asked for: {reason}; unknown: {error}", DATA_BYTES)}
    return _attributes(look, question)


class Wait:
    """One invocation's share of the waiting."""

    def __init__(self, question: Question, turn: Turn) -> None:
        self._question = question
        self._turn = turn
        self._sagemaker = turn.client("sagemaker")
        handed: Mapping[str, Any] = turn.event.get(WAITING) or {}
        self._invocation = int(handed.get("Invocation", 1))
        self._waited_before = float(handed.get("Seconds", 0))
        self._since = float(handed.get("Since", 0))
        self._started = self._remaining()
        self._shown: list[str] = []

    def run(self) -> dict[str, str] | None:
        """Look until enough nodes run and give the attributes; None once the next invocation has taken over."""
        if self._invocation == 1:
            self._since = self._newest_event()
        for pause in endlessly(PAUSES):
            look, problem = self._look()
            if look is not None:
                if look.running(self._question.groups) >= self._question.nodes:
                    return _attributes(look, self._question)
                if self._is_hopeless():
                    raise WaitError(
                        self._reason(look, "HyperPod tried again and again, and each instance failed alike")
                    )
            if self._waited() + pause > self._question.seconds:
                raise WaitError(self._reason(look, f"after {_minutes(self._question.seconds)}", problem))
            if self._remaining() < HAND_OVER_SECONDS + pause:
                self._hand_over()
                return None
            self._turn.sleep(pause)
        raise AssertionError("unreachable: the pauses do not end")

    def _look(self) -> tuple[Look | None, str]:
        """Look at the cluster; an error that may pass is told, not raised."""
        try:
            look = look_at(self._sagemaker, self._question.cluster)
        except (BotoCoreError, ClientError) as error:
            if error_code(error) in FOR_GOOD:
                raise
            LOG.warning("HyperPod does not answer: %s", error)
            return None, str(error)
        lines = look.lines()
        if lines != self._shown:
            LOG.info("%s", "; ".join(lines))
            self._shown = lines
        return look, ""

    def _remaining(self) -> float:
        return float(self._turn.context.get_remaining_time_in_millis()) / 1000

    def _waited(self) -> float:
        return self._waited_before + self._started - self._remaining()

    def _hand_over(self) -> None:
        if self._invocation >= MOST_INVOCATIONS:
            raise WaitError(f"the function was invoked {self._invocation} times and still waits; deploy again")
        handed = {"Invocation": self._invocation + 1, "Seconds": self._waited(), "Since": self._since}
        self._turn.client("lambda").invoke(
            FunctionName=self._turn.context.invoked_function_arn,
            InvocationType="Event",
            Payload=json.dumps({**self._turn.event, WAITING: handed}).encode(),
        )
        LOG.info("waited %s, the next invocation goes on", _minutes(self._waited()))

    def _newest_event(self) -> float:
        """Return the moment of the newest event by AWS's clock, 0 where there is none."""
        events = self._events(limit=1)
        return float(events[0]["EventTime"].timestamp()) if events else 0.0

    def _events(self, *, limit: int = LISTED_EVENTS) -> list[Mapping[str, Any]]:
        """Return the newest events; none where the cluster has no events, or they cannot be read."""
        found: list[Mapping[str, Any]] = []
        token: dict[str, str] = {}
        try:
            while len(found) < limit:
                answer = self._sagemaker.list_cluster_events(
                    ClusterName=self._question.cluster,
                    SortBy="EventTime",
                    SortOrder="Descending",
                    MaxResults=min(limit, 100),
                    **token,
                )
                found += answer.get("Events") or []
                if not answer.get("NextToken"):
                    break
                token = {"NextToken": answer["NextToken"]}
        except (BotoCoreError, ClientError) as error:
            # a cluster that provisions all or nothing has none
            LOG.warning("no events: %s", error)
        return found

    def _is_hopeless(self) -> bool:
        """Return whether every awaited group lost each of its nodes at least twice, for one and the same reason.

        Events from before the wait do not count: their cause may be removed since.
        """
        errors = [
            event
            for event in self._events()
            if event.get("EventLevel") == "Error"
            # without an instance nothing was launched: capacity may come
            and event.get("InstanceId")
            and event["EventTime"].timestamp() > self._since
        ]
        for group in self._question.awaited:
            own = {event["InstanceId"]: event for event in errors if event.get("InstanceGroupName") == group.name}
            wanted = max(SURE_FAILURES, 2 * group.count)
            if len(own) < wanted:
                return False
            looked_at = list(own.values())[:DESCRIBED_EVENTS]
            if len({_alike(self._failure(event).message) for event in looked_at}) > 1:
                return False
        return True

    def _failures(self, look: Look | None) -> list[Failure]:
        """Return why nodes of the groups did not come, newest first: events in full, then what nodes say themselves."""
        names = [group.name for group in self._question.groups]
        errors = [
            event
            for event in self._events()
            if event.get("EventLevel") == "Error" and event.get("InstanceGroupName", names[0]) in names
        ]
        found: dict[tuple[str, str], Failure] = {}
        # a group that fails quickly must not hide the others
        share = max(DESCRIBED_EVENTS // len(names), 2 * QUOTED_FAILURES)
        of_group: Counter[str] = Counter()
        for event in errors:
            group = str(event.get("InstanceGroupName", ""))
            of_group[group] += 1
            if of_group[group] > share:
                continue
            failure = self._failure(event)
            # a failure has two events, one of them with the log's place; whose script ran says more
            key = (failure.group, failure.node)
            if key not in found or (failure.script and not found[key].script):
                found[key] = failure
        for node in look.nodes if look else ():
            message = (node.get("InstanceStatus") or {}).get("Message")
            place = (str(node["InstanceGroupName"]), _name(node))
            if message and place[0] in names and place not in found:
                found[place] = Failure(group=place[0], node=place[1], message=str(message))
        # one of each kind before the second of any, those of the groups that should have nodes by now before others
        awaited = {group.name for group in self._question.awaited}
        kinds: Counter[tuple[str, str]] = Counter()
        ranked = []
        for failure in found.values():
            kind = (failure.group, _alike(failure.message))
            ranked.append(((kinds[kind], failure.group not in awaited), failure))
            kinds[kind] += 1
        return [failure for _, failure in sorted(ranked, key=lambda each: each[0])]

    def _failure(self, event: Mapping[str, Any]) -> Failure:
        """Read an event in full; what DescribeClusterEvent does not tell stands in the event's description."""
        metadata: Mapping[str, Any] = {}
        try:
            answer = self._sagemaker.describe_cluster_event(
                ClusterName=self._question.cluster, EventId=event["EventId"]
            )
            details = answer.get("EventDetails") or {}
            metadata = (details.get("EventDetails") or {}).get("EventMetadata") or {}
        except (BotoCoreError, ClientError) as error:
            LOG.warning("event %s is not described: %s", event["EventId"], error)
        # which part of the metadata holds the message differs from one kind of failure to the next
        parts = [part for part in metadata.values() if isinstance(part, Mapping)]
        message = next((str(part["FailureMessage"]) for part in parts if part.get("FailureMessage")), "")
        instance: Mapping[str, Any] = metadata.get("Instance") or {}
        return Failure(
            group=str(event.get("InstanceGroupName", "")),
            node=str(event.get("InstanceId") or instance.get("NodeLogicalId") or ""),
            message=message or str(event.get("Description") or "no message"),
            script=str(instance.get("LcsExecutionState") or ""),
        )

    def _reason(self, look: Look | None, when: str, problem: str = "") -> str:
        question = self._question
        running = look.running(question.groups) if look else 0
        names = ", ".join(group.name for group in question.groups)
        needed = f"{question.nodes} needed node{'s' if question.nodes > 1 else ''}"
        lines = [f"{running} of {needed} Running in the instance groups {names}, {when}; add-ons have nowhere to run."]
        failures = self._failures(look)
        lines += [self._told(failure, look) for failure in failures[:QUOTED_FAILURES]]
        if not failures:
            lines.append("HyperPod reports no failure of a node.")
        lines += [f"HyperPod does not answer: {problem}."] if problem else []
        lines += [f"Groups: {cut('; '.join(look.lines()), TOLD_GROUPS_BYTES)}."] if look else []
        lines.append(self._advice(failures, look))
        return "\n".join(lines)

    def _told(self, failure: Failure, look: Look | None) -> str:
        where = f"{failure.group} {failure.node}".strip()
        text = f"{where}: {cut(failure.message.rstrip('.'), MESSAGE_LIMIT)}"
        if failure.node.startswith("i-") and look is not None:
            script = f"lifecycle script {failure.script}; " if failure.script else ""
            stream = f"LifecycleConfig/{failure.group}/{failure.node}"
            text += f" ({script}log group {_log_group(look)}, stream {stream})"
        return f"{text}."

    def _advice(self, failures: Sequence[Failure], look: Look | None) -> str:
        cluster = str(look.cluster["ClusterName"]) if look else self._question.cluster
        checking = look is not None and any(_status(node) == "DeepHealthCheckInProgress" for node in look.nodes)
        if any(failure.script or failure.node.startswith("i-") for failure in failures):
            cause = "Read that log and correct what it says"
        elif checking:
            cause = "Deep health checks take about two hours: wait until nodes are Running"
        else:
            cause = "Wait until nodes are Running, or give a group another type or zone"
        return (
            f"{cause}, then deploy again: the cluster stays as it is and HyperPod goes on trying. All events:"
            f" aws sagemaker list-cluster-events --cluster-name {cluster}"
        )


def look_at(sagemaker: Any, cluster: str) -> Look:
    """Ask for the cluster and all its nodes. Raises WaitError where it will never have nodes, and errors of AWS."""
    try:
        found: Mapping[str, Any] = sagemaker.describe_cluster(ClusterName=cluster)
    except ClientError as error:
        if error_code(error) in GONE:
            raise WaitError(f"the cluster {cluster} does not exist") from error
        raise
    if found["ClusterStatus"] in {"Failed", "Deleting"}:
        told = found.get("FailureMessage") or "no message"
        raise WaitError(f"the cluster {found['ClusterName']} is {found['ClusterStatus']}: {told}")
    return Look(cluster=found, nodes=_nodes(sagemaker, cluster))


def _nodes(sagemaker: Any, cluster: str) -> list[Mapping[str, Any]]:
    """Ask for all nodes, with those that have no instance yet, which only clusters with continuous provisioning know.

    Whether AWS refuses to be asked for them of another cluster is not documented; one without instances has no node.
    """
    try:
        return _all_pages(sagemaker, ClusterName=cluster, MaxResults=100, IncludeNodeLogicalIds=True)
    except ClientError as error:
        if error_code(error) != "ValidationException":
            raise
        LOG.warning("nodes without an instance are not told: %s", error)
    return _all_pages(sagemaker, ClusterName=cluster, MaxResults=100)


def _all_pages(sagemaker: Any, **question: Any) -> list[Mapping[str, Any]]:
    nodes: list[Mapping[str, Any]] = []
    token: dict[str, str] = {}
    while True:
        answer = sagemaker.list_cluster_nodes(**question, **token)
        nodes += answer["ClusterNodeSummaries"]
        if not answer.get("NextToken"):
            return nodes
        token = {"NextToken": answer["NextToken"]}


def _attributes(look: Look, question: Question) -> dict[str, str]:
    return {
        "RunningNodes": str(look.running(question.groups)),
        "Groups": cut("; ".join(look.lines()), DATA_BYTES) or "none",
    }


def _status(node: Mapping[str, Any]) -> str:
    return str((node.get("InstanceStatus") or {}).get("Status", "unknown"))


def _name(node: Mapping[str, Any]) -> str:
    return str(node.get("InstanceId") or node.get("NodeLogicalId") or "")


def _log_group(look: Look) -> str:
    cluster_id = str(look.cluster["ClusterArn"]).rpartition("/")[2]
    return f"/aws/sagemaker/Clusters/{look.cluster['ClusterName']}/{cluster_id}"


def _alike(message: str) -> str:
    """Leave out what differs between two tellings of one failure: IDs and other words with digits."""
    return " ".join(word for word in message.split() if not any(letter.isdigit() for letter in word))


def _minutes(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
