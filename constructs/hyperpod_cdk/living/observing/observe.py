"""Reads from AWS what the catalog, the waits and the embedded AWS assume, and reports deviations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final

import botocore

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.living import groups
from hyperpod_cdk.living.drift import actual_of, drift, stated_of
from hyperpod_cdk.living.facts import aligned, facts
from hyperpod_cdk.living.kinds import KINDS
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import Unread, outcome
from hyperpod_cdk.living.nodes import rows_of_nodes
from hyperpod_cdk.living.objects import MANIFEST
from hyperpod_cdk.living.observing.comparison import Observed, deviations
from hyperpod_cdk.living.observing.happened import Happened
from hyperpod_cdk.living.observing.model import Bundle, Compared, Filled
from hyperpod_cdk.living.observing.recorder import Recorder
from hyperpod_cdk.living.observing.redaction import Redactor, names_in
from hyperpod_cdk.living.observing.shapes import everybodys, operations
from hyperpod_cdk.living.standing import Living, read_living
from hyperpod_cdk.living.status import Wanted, status
from hyperpod_cdk.review.deployed import SETTLED, Api
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.values import resolve

_PER_GROUP: Final = 1
"""Nodes of each group that are described: one is enough for the form of the answer."""


def observe(aws: Api, head: Assembly, *, now: datetime) -> Bundle:
    """Read an environment and compare it with the assumptions; ``now`` is aware and in UTC.

    Nothing is written in AWS. What could not be read is skipped. Raises AssemblyError if CloudFormation gives no
    answer at all.
    """
    recorder = Recorder(aws)
    living = read_living(recorder, head)
    # only answers of AWS services are observed, and Kubernetes is not one
    skipped = list(drift(recorder, living, without=(MANIFEST,)).skipped)
    for name in _clusters(living):
        wanted = Wanted(environment=living.head.environment, cluster=name, counts={})
        skipped += status(recorder, wanted, now=now).skipped
        skipped += _nodes(recorder, name)
    names = [stack.name for stack in living.deployed.stacks]
    if not names:
        skipped.append(Unread(what="all", reason="no stack of the environment is deployed"))
    histories = together(
        lambda name: recorder.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=name), names
    )
    redactor = Redactor(own=names_in(everybodys(recorder.answers)))
    happened = Happened(deployed=living.deployed, redactor=redactor)
    for name, events in zip(names, histories, strict=True):
        try:
            if isinstance(events, NotAnswered):
                raise events
            with reading("cloudformation:DescribeStackEvents"):
                happened.read(name, events)
        except NotAnswered as missing:
            skipped.append(_unread(f"events of {name}", missing))
    skipped += [
        Unread(what=f"time of {kind}", reason="by its events it ended before it began, or months after")
        for kind in happened.untimed
    ]
    observed = Observed(
        answers=operations(recorder.answers, redactor),
        times=happened.times,
        defaults=_filled(recorder, living, redactor),
        updates=happened.updates,
        messages=happened.messages,
    )
    return bundle_of(observed, skipped=tuple(dict.fromkeys(skipped)), redactor=redactor, region=head.region or "")


def bundle_of(observed: Observed, *, skipped: Sequence[Unread], redactor: Redactor, region: str) -> Bundle:
    """Compare the observations, and give the bundle without names and values of the account."""
    found, compared = deviations(observed)
    is_read = bool(sum(compared.model_dump().values()))
    return Bundle(
        made_by=version("hyperpod-cdk"),
        botocore=botocore.__version__,
        region=region,
        verdict=_verdict(len(found), len(skipped), compared),
        # if nothing was compared, nothing is known to be as assumed
        passed=outcome(tuple(found), tuple(skipped)) if found or is_read else None,  # type: ignore[arg-type]  # asks whether there are any
        deviations=tuple(found),
        compared=compared,
        skipped=tuple(
            Unread(
                what=redactor.text(each.what),
                reason=redactor.text(each.reason),
                action=each.action if redactor.is_action(each.action) else "",
                aws_said=redactor.text(each.aws_said),
            )
            for each in skipped
        ),
        answers=tuple(observed.answers),
        times=tuple(observed.times),
        defaults=tuple(observed.defaults),
        updates=tuple(observed.updates),
        messages=tuple(observed.messages),
    )


def _verdict(found: int, skipped: int, compared: Compared) -> str:
    end = f"; {count(skipped, 'thing')} could not be read" if skipped else ""
    number = sum(compared.model_dump().values())
    if not number and not found:
        return f"Nothing was compared{end}."
    of = f"of {count(number, 'thing')} that {'was' if number == 1 else 'were'} compared"
    if found:
        return f"{count(found, 'deviation')} {of}{end}."
    return f"No deviation {of}{end}."


def _clusters(living: Living) -> Iterator[str]:
    for each in living.deployed.of_type(groups.CLUSTER):
        name = resolve(living.deployed, each.stack, each.properties.get("ClusterName"))
        if isinstance(name, str):
            yield name


def _nodes(aws: Api, cluster: str) -> list[Unread]:
    """Describe a node of each group, for the form of the answer."""
    try:
        rows = rows_of_nodes(aws, cluster)
        with reading("sagemaker:ListClusterNodes"):
            first: dict[str, str] = {}
            for row in rows:
                if row.get("InstanceId"):
                    first.setdefault(str(row["InstanceGroupName"]), str(row["InstanceId"]))
    except NotAnswered as missing:
        return [_unread("nodes", missing)]
    answers = together(lambda node: _node(aws, cluster, node), first.values())
    return [_unread("a node", each) for each in answers if isinstance(each, NotAnswered)]


def _node(aws: Api, cluster: str, node: str) -> Mapping[str, Any]:
    try:
        return aws.call("sagemaker", "describe_cluster_node", ClusterName=cluster, NodeId=node)
    except NotFound:
        # it was deleted after it was listed
        return {}


def _filled(aws: Api, living: Living, redactor: Redactor) -> tuple[Filled, ...]:
    """Return the places that have a default of AWS; what was not answered is skipped by drift."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    resources = [
        each
        for each in living.deployed.resources()
        if each.type in KINDS and living.statuses.get(each.stack) in SETTLED
    ]
    for resource, answer in zip(resources, together(lambda each: actual_of(aws, living, each), resources), strict=True):
        if answer is None or isinstance(answer, NotAnswered):
            continue
        physical = living.ids[resource.stack, resource.logical_id]
        try:
            stated = stated_of(living.deployed, resource, physical=physical, ids=living.ids)
        except NotAnswered:
            continue
        old, now = facts(stated), facts(aligned(stated, answer))
        for place, value in now.items():
            is_by_hand = KINDS[resource.type].made_by_hand.fullmatch(place)
            if place not in old and not is_by_hand and not place.startswith("Tags["):
                found[resource.type, redactor.place(place)].add(redactor.value(str(value)))
    return tuple(
        Filled(type=kind, place=place, values=tuple(sorted(values))) for (kind, place), values in sorted(found.items())
    )


def _unread(what: str, missing: NotAnswered) -> Unread:
    return Unread(what=what, reason=missing.reason, action=missing.action, aws_said=missing.said)
