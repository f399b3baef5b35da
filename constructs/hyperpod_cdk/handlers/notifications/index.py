"""Tell a team what happens to its HyperPod cluster: messages to an SNS topic, each with what, where, since when and the
command to look.

EventBridge invokes it in two ways: with HyperPod's own events, of which it tells what the settings name, and every few
minutes, to look at what sends no event: how many nodes each group lacks, and how much of the quotas for instances is
used, go to CloudWatch as metrics, where alarms stand on them; the moments of training plans, and deep health checks
that failed, are told here. It keeps nothing: a look tells what falls between the look before and itself, by the time
that the schedule's event carries, so that a look that Lambda repeats tells the same again. Standard library and boto3
only, both of which Lambda's Python runtimes carry.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

# relative, since in Lambda the package above has another name
from ..answering import client, error_code  # noqa: TID252
from ..quota_gate.reading import Api, NotAnswered, NotFound, NotTold, Own, read_quota, used  # noqa: TID252

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

SETTINGS = "NOTIFICATIONS"
"""The environment variable with the settings, as JSON."""

SCHEDULED = "Scheduled Event"
HEALTH_EVENT = "SageMaker HyperPod Cluster Node Health Event"
CLUSTER_EVENT = "SageMaker HyperPod Cluster Event"

METRIC = "NodesMissing"
DIMENSION = "InstanceGroup"
QUOTA_METRIC = "QuotaUsedPercent"
QUOTA_DIMENSION = "Quota"
"""Whose value is the quota's name in Service Quotas."""

# the descriptions of the developer guide's "HyperPod cluster events reference", instance reboot and replacement
_REBOOT = re.compile(r"Reboot of EC2 Instance |reboot request for EC2 Instance ")
_REPLACEMENT = re.compile(r"as part of instance replacement\b")
# no event of its own is documented for a deep health check that fails (unsure): where the health event's reason names
# one, it is told as that
_DEEP_CHECK = re.compile(r"deep[ -]?health[ -]?check", re.IGNORECASE)

RESULTS = "DeepHealthCheckResults/"
"""Streams of the results, in the cluster's log group (developer guide, "Deep health checks", logs)."""
FAILED_CHECK = '{ $.level = "error" }'
SETTLING = timedelta(minutes=5)
"""How late a line of a log is looked at: CloudWatch Logs shows it some time after it was written."""
QUOTED_LINES = 10

LEADS = (timedelta(days=7), timedelta(days=1), timedelta(minutes=90))
"""How long before a training plan starts and ends it is told."""
RECLAIM = timedelta(minutes=60)
"""HyperPod's nodes go so long before a block of a plan ends (developer guide, training plans and HyperPod)."""

SUBJECT_LENGTH = 100
"""Of an e-mail (SNS API reference, Publish, Subject: ASCII, less than 100 characters, no line breaks)."""
TITLE_LENGTH, DESCRIPTION_LENGTH = 250, 8000
"""Of a custom notification (Amazon Q Developer in chat applications, administrator guide, "Custom notifications")."""

Clients = Callable[[str], Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Who is told of what: ``events`` are the kinds, ``plans`` the ARNs of training plans, ``minutes`` between looks.

    ``quotas`` are those that are measured: ``name`` and ``code`` of Service Quotas, and the kind of ``use`` that
    ``quota_gate.reading.used`` counts.
    ``topic`` is the ARN of the topic, ``bus`` that of an event bus that gets every message too, ``chat`` whether the
    topic has a chat channel, which takes messages of a form of its own.
    """

    topic: str
    environment: str
    cluster: str
    account: str
    region: str
    events: frozenset[str]
    minutes: int
    plans: Sequence[str] = ()
    quotas: Sequence[Mapping[str, str]] = ()
    chat: bool = False
    bus: str = ""

    @staticmethod
    def read(text: str) -> Settings:
        """Read what the construct wrote."""
        values = json.loads(text)
        return Settings(**{**values, "events": frozenset(values["events"])})


@dataclass(frozen=True, kw_only=True)
class Message:
    """What is told: ``what`` happened, ``where`` (its group, node or plan), since when, and the commands to look."""

    kind: str
    title: str
    what: str
    since: str
    look: Sequence[str]
    where: Mapping[str, str] = field(default_factory=dict)


def handler(event: Mapping[str, Any], context: Any) -> None:  # noqa: ARG001 - Lambda's two arguments
    """Handle one event of EventBridge."""
    handle(event, Settings.read(os.environ[SETTINGS]), clients=client)


def handle(event: Mapping[str, Any], settings: Settings, *, clients: Clients) -> None:
    """Tell what one event is about, or what has become of the cluster since the look before."""
    if event.get("detail-type") == SCHEDULED:
        watch(_moment(str(event["time"])), settings, clients=clients)
        return
    message = of_event(event, settings)
    if message is None:
        LOG.info("not told: %s", json.dumps(event.get("detail"), default=str)[:2000])
        return
    tell(message, settings, clients=clients)


def of_event(event: Mapping[str, Any], settings: Settings) -> Message | None:
    """Make the message of one of HyperPod's events; None where nobody is to be told of it."""
    detail = event.get("detail") or {}
    happened = str(event.get("time", ""))
    if event.get("detail-type") == HEALTH_EVENT:
        message = _of_health(detail, settings, since=happened)
    elif event.get("detail-type") == CLUSTER_EVENT:
        message = _of_cluster(detail.get("EventDetails") or {}, settings, since=happened)
    else:
        message = None
    return message if message is not None and message.kind in settings.events else None


def _of_health(detail: Mapping[str, Any], settings: Settings, *, since: str) -> Message | None:
    summary = detail.get("HealthSummary") or {}
    if summary.get("HealthStatus") != "Unhealthy":
        return None
    node, reason = str(detail.get("InstanceId", "")), str(summary.get("HealthStatusReason") or "no reason is given")
    kind = "deep_health_check_failed" if _DEEP_CHECK.search(reason) else "node_unhealthy"
    failed = "failed a deep health check" if kind == "deep_health_check_failed" else "is unhealthy"
    said = [f"HyperPod says that node {node} {failed}: {_ended(reason)}"]
    said += [f"Repair: {_ended(str(summary['RepairAction']))}"] if summary.get("RepairAction") else []
    said += [_ended(str(summary["Recommendation"]))] if summary.get("Recommendation") else []
    return Message(
        kind=kind,
        title=f"Node {node} {failed}",
        what=" ".join(said),
        where={"node": node},
        since=_readable(since),
        look=[_aws(settings, f"sagemaker describe-cluster-node --cluster-name {settings.cluster} --node-id {node}")],
    )


def _of_cluster(details: Mapping[str, Any], settings: Settings, *, since: str) -> Message | None:
    said, node = str(details.get("Description") or ""), str(details.get("InstanceId") or "")
    if _REPLACEMENT.search(said):
        kind, title = "node_replaced", f"Node {node} is replaced"
    elif _REBOOT.search(said):
        kind, title = "node_rebooted", f"Node {node} is rebooted"
    else:
        return None
    failure = _innermost(details, "FailureMessage")
    where = {"group": str(details.get("InstanceGroupName") or ""), "node": node}
    return Message(
        kind=kind,
        title=title,
        what=" ".join([_ended(said), *([_ended(failure)] if failure else [])]),
        where={name: value for name, value in where.items() if value},
        since=_since(details.get("EventTime"), since),
        look=[
            _aws(settings, f"sagemaker list-cluster-nodes --cluster-name {settings.cluster}"),
            _aws(settings, f"sagemaker list-cluster-events --cluster-name {settings.cluster} --node-id {node}"),
        ],
    )


def watch(now: datetime, settings: Settings, *, clients: Clients) -> None:
    """Look at the cluster and its plans as of ``now``; raises the first error once everything else has been done."""
    begins = now - timedelta(minutes=settings.minutes)
    sagemaker = clients("sagemaker")
    errors: list[Exception] = []
    messages: list[Message] = []

    def attempt(look: Callable[[], Iterator[Message]]) -> None:
        try:
            messages.extend(look())
        except Exception as error:  # one look that fails takes no other with it
            LOG.exception("a look failed")
            errors.append(error)

    if {"nodes_missing", "deep_health_check_failed"} & settings.events:
        attempt(lambda: _cluster(begins, now, settings, sagemaker, clients))
    if "training_plan" in settings.events:
        for arn in settings.plans:
            attempt(partial(_plan, sagemaker, arn, begins, now, settings))
    if "quota_used" in settings.events and settings.quotas:
        attempt(lambda: _quotas(now, settings, clients))
    for message in messages:
        tell(message, settings, clients=clients)
    if errors:
        raise errors[0]


def _cluster(
    begins: datetime, now: datetime, settings: Settings, sagemaker: Any, clients: Clients
) -> Iterator[Message]:
    cluster = sagemaker.describe_cluster(ClusterName=settings.cluster)
    if "nodes_missing" in settings.events:
        counts = missing_nodes(cluster)
        _measured(_data(METRIC, DIMENSION, "Count", counts, now), settings, clients)
    if "deep_health_check_failed" in settings.events:
        cluster_id = str(cluster["ClusterArn"]).rpartition("/")[2]
        group = f"/aws/sagemaker/Clusters/{settings.cluster}/{cluster_id}"
        yield from _failed_checks(clients("logs"), group, begins - SETTLING, now - SETTLING, settings)


def missing_nodes(cluster: Mapping[str, Any]) -> dict[str, int]:
    """Count the nodes that each group of a cluster is to have and has not, 0 while its training plan has not begun.

    Raises KeyError if SageMaker does not show a count: a metric of 0 would say that no node is missing.
    """
    groups = [*cluster["InstanceGroups"], *(cluster.get("RestrictedInstanceGroups") or ())]
    return {
        str(group["InstanceGroupName"]): (
            0
            if group.get("TrainingPlanStatus") == "Scheduled"
            else max(int(group["TargetCount"]) - int(group["CurrentCount"]), 0)
        )
        for group in groups
    }


def _data(metric: str, dimension: str, unit: str, values: Mapping[str, float], now: datetime) -> list[dict[str, Any]]:
    """Return a metric's values, by those of its dimension, as CloudWatch takes them."""
    return [
        {
            "MetricName": metric,
            "Dimensions": [{"Name": dimension, "Value": name}],
            "Timestamp": now,
            "Value": float(value),
            "Unit": unit,
        }
        for name, value in values.items()
    ]


def _measured(data: Sequence[Mapping[str, Any]], settings: Settings, clients: Clients) -> None:
    """Write what was measured; nothing where nothing was."""
    if data:
        clients("cloudwatch").put_metric_data(Namespace=f"HyperPod/{settings.cluster}", MetricData=list(data))


def _quotas(now: datetime, settings: Settings, clients: Clients) -> Iterator[Message]:
    """Write how much of each quota is used, by all HyperPod clusters of the account and region; tells nothing itself.

    What AWS did not tell of a quota, or of what uses it, makes no value, since any would be wrong: its alarm then has
    too little data, and says so.
    """
    from ..quota_gate.calling import Boto3Api  # noqa: PLC0415, TID252 - boto3, which whoever makes the stack may lack

    # the next look is soon: what is denied need not be waited for
    api = Boto3Api(clients, patience_seconds=0)
    shares = {each["name"]: used_percent(api, each) for each in settings.quotas}
    told = {name: share for name, share in shares.items() if share is not None}
    _measured(_data(QUOTA_METRIC, QUOTA_DIMENSION, "Percent", told, now), settings, clients)
    yield from ()


def used_percent(api: Api, quota: Mapping[str, str]) -> float | None:
    """Return how much of a quota is used, in percent, or None where it is not known; 100 of one that allows nothing."""
    try:
        allowed = read_quota(api, "sagemaker", quota["name"], _CODES.get(quota["name"]) or quota["code"] or None)
        use = used(api, quota["use"], Own())
    except (NotAnswered, NotFound, NotTold) as missing:
        LOG.warning("quota %s is not known: %s", quota["name"], missing)
        return None
    _CODES[quota["name"]] = allowed.code
    if use.unread:
        LOG.warning("what uses quota %s is not known: %s", quota["name"], "; ".join(each.reason for each in use.unread))
        return None
    return 100.0 * use.at_least / allowed.value if allowed.value else 100.0


_CODES: dict[str, str] = {}
"""Codes of quotas by name, as AWS told them to this process: a code spares the list of all quotas of SageMaker."""


def _failed_checks(logs: Any, group: str, begins: datetime, ends: datetime, settings: Settings) -> Iterator[Message]:
    try:
        found = _logged(
            logs,
            logGroupName=group,
            logStreamNamePrefix=RESULTS,
            filterPattern=FAILED_CHECK,
            startTime=_milliseconds(begins),
            # both ends count for CloudWatch Logs
            endTime=_milliseconds(ends) - 1,
        )
    except Exception as error:
        if error_code(error) == "ResourceNotFoundException":
            # HyperPod makes the group with its first line
            return
        raise
    if not found:
        return
    lines = [_said(str(each["message"])) for each in found]
    more = [f"and {len(lines) - QUOTED_LINES} more"] if len(lines) > QUOTED_LINES else []
    first = datetime.fromtimestamp(min(int(each["timestamp"]) for each in found) / 1000, tz=UTC)
    yield Message(
        kind="deep_health_check_failed",
        title="A deep health check failed",
        what="\n".join(["Deep health checks report:", *lines[:QUOTED_LINES], *more]),
        since=_readable(first.isoformat()),
        look=[
            _aws(
                settings,
                f"logs filter-log-events --log-group-name {group} --log-stream-name-prefix {RESULTS}"
                f" --start-time {_milliseconds(first)}",
            )
        ],
    )


def _logged(logs: Any, **question: Any) -> list[Mapping[str, Any]]:
    """Return the lines of all pages: one may be empty though others follow (API reference, FilterLogEvents)."""
    lines: list[Mapping[str, Any]] = []
    token: dict[str, str] = {}
    while True:
        answer = logs.filter_log_events(**question, **token)
        lines += answer.get("events") or []
        if not answer.get("nextToken"):
            return lines
        token = {"nextToken": answer["nextToken"]}


def _said(line: str) -> str:
    try:
        return str(json.loads(line)["msg"])
    except (ValueError, KeyError, TypeError):
        return line


def _plan(sagemaker: Any, arn: str, begins: datetime, ends: datetime, settings: Settings) -> Iterator[Message]:
    plan = sagemaker.describe_training_plan(TrainingPlanName=arn.rpartition("/")[2])
    yield from plan_messages(plan, begins, ends, settings)


def plan_messages(plan: Mapping[str, Any], begins: datetime, ends: datetime, settings: Settings) -> Iterator[Message]:
    """Yield a message for each moment of a plan after ``begins``, up to ``ends``.

    Those are its starts and ends, and the times before them at which a team has to prepare. A block that begins where
    another ends, as an extension does, goes on with it.
    """
    name = str(plan.get("TrainingPlanName") or "")
    arn = str(plan.get("TrainingPlanArn") or "")
    for start, end in blocks(plan):
        gone = end - RECLAIM
        told = (
            ("starts", start, f"Nodes of groups that name it can come from {_written(start)} on."),
            ("ends", end, f"HyperPod takes its nodes at {_written(gone)}; have jobs write checkpoints before."),
        )
        for verb, moment, what in told:
            for lead in (*LEADS, timedelta()):
                if not begins < moment - lead <= ends:
                    continue
                ahead = f"{verb} in {_words(lead)}" if lead else f"{verb} now"
                yield Message(
                    kind="training_plan",
                    title=f"Training plan {name} {ahead}",
                    what=f"Training plan {name} ({plan.get('Status', 'unknown status')}) {ahead}, at"
                    f" {_written(moment)}. {what}",
                    where={"plan": arn or name},
                    since=_written(moment - lead),
                    look=[
                        _aws(settings, f"sagemaker describe-training-plan --training-plan-name {name}"),
                        f"hyperpod-cdk preflight {settings.environment} --only training-plan",
                    ],
                )


def blocks(plan: Mapping[str, Any]) -> list[tuple[datetime, datetime]]:
    """Return starts and ends of a plan's blocks, those that follow on each other as one; none without times."""
    rows = plan.get("ReservedCapacitySummaries") or [plan]
    spans = sorted(
        (_utc(row["StartTime"]), _utc(row["EndTime"])) for row in rows if row.get("StartTime") and row.get("EndTime")
    )
    joined: list[tuple[datetime, datetime]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def tell(message: Message, settings: Settings, *, clients: Clients) -> None:
    """Publish a message to the topic, and to the event bus where there is one."""
    subject, text = f"[{settings.environment}] {message.title}", rendered(message, settings)
    forms: dict[str, Any] = {"Message": text}
    if settings.chat:
        # chat channels are subscribed by https, and drop what is not of their form without a word
        chat = json.dumps(for_chat(message, settings))
        forms = {"Message": json.dumps({"default": text, "https": chat}), "MessageStructure": "json"}
    clients("sns").publish(
        TopicArn=settings.topic,
        Subject=_ascii(subject)[: SUBJECT_LENGTH - 1],
        MessageAttributes={
            "environment": {"DataType": "String", "StringValue": settings.environment},
            "event": {"DataType": "String", "StringValue": message.kind},
        },
        **forms,
    )
    if settings.bus:
        _put(message, settings, clients("events"))
    LOG.info("told: %s", subject)


def _put(message: Message, settings: Settings, events: Any) -> None:
    detail = {
        "event": message.kind,
        "title": message.title,
        "what": message.what,
        "where": _where(message, settings),
        "since": message.since,
        "look": list(message.look),
    }
    answer = events.put_events(
        Entries=[
            {
                "Source": "hyperpod-cdk",
                "DetailType": "HyperPod Notification",
                "Detail": json.dumps(detail),
                "EventBusName": settings.bus,
            }
        ]
    )
    if answer.get("FailedEntryCount"):
        raise RuntimeError(f"{settings.bus} does not take the message: {answer['Entries'][0]}")


def rendered(message: Message, settings: Settings) -> str:
    """Write a message as people read it."""
    where = ", ".join(f"{name} {value}" for name, value in _where(message, settings).items())
    looks = "\n       ".join(message.look)
    return f"{message.what}\n\nWhere: {where}\nSince: {message.since}\nLook:  {looks}\n"


def for_chat(message: Message, settings: Settings) -> dict[str, Any]:
    """Write a message as Amazon Q Developer in chat applications takes it."""
    where = ", ".join(f"{name} {value}" for name, value in _where(message, settings).items())
    return {
        "version": "1.0",
        "source": "custom",
        "content": {
            "textType": "client-markdown",
            "title": f"[{settings.environment}] {message.title}"[:TITLE_LENGTH],
            "description": f"{message.what}\n\nWhere: {where}\nSince: {message.since}"[:DESCRIPTION_LENGTH],
            "nextSteps": [f"`{each}`" for each in message.look],
        },
    }


def _where(message: Message, settings: Settings) -> dict[str, str]:
    return {
        "environment": settings.environment,
        "cluster": settings.cluster,
        **message.where,
        "account": settings.account,
        "region": settings.region,
    }


def _aws(settings: Settings, words: str) -> str:
    return f"aws {words} --region {settings.region}"


def _since(milliseconds: object, otherwise: str) -> str:
    try:
        return _written(datetime.fromtimestamp(int(str(milliseconds)) / 1000, tz=UTC))
    except ValueError:
        return _readable(otherwise)


def _readable(moment: str) -> str:
    try:
        return _written(_moment(moment))
    except ValueError:
        return moment or "unknown"


def _moment(text: str) -> datetime:
    return _utc(datetime.fromisoformat(text))


def _utc(moment: datetime) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _words(lead: timedelta) -> str:
    if lead.days:
        return f"{lead.days} day{'s' if lead.days > 1 else ''}"
    return f"{round(lead.total_seconds() / 60)} minutes"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _innermost(values: Any, name: str) -> str:
    """Find a text by its name, however deep it stands."""
    if not isinstance(values, Mapping):
        return ""
    found = values.get(name)
    if isinstance(found, str) and found:
        return found
    return next((text for each in values.values() if (text := _innermost(each, name))), "")


def _ascii(text: str) -> str:
    return re.sub(r"[^ -~]+", " ", text)
