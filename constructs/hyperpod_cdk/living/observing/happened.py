"""Reads stack events: how long resources took, what updates did, and why something failed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from hyperpod_cdk.catalog.durations import Action
from hyperpod_cdk.living.observing.model import LONGEST_S, Message, Times, Updated
from hyperpod_cdk.living.observing.redaction import Redactor
from hyperpod_cdk.review.changes.circumstances import CLUSTER, circumstances_of
from hyperpod_cdk.review.changes.effects import GROUPS, judge
from hyperpod_cdk.review.figures.timeline import circumstance
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import MISSING, PropertyChange, value_changes
from hyperpod_cdk.templates.stack_events import CANCELLED, CUSTOM, HANDLER, HANDLER_CODE, REPLACES, SERVICE

_STACK: Final = "AWS::CloudFormation::Stack"
_ACTIONS: Final[Mapping[str, Action]] = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}
_NOT_UPDATABLE: Final = "NotUpdatable"
_CUSTOM_TYPES: Final = ("Custom::", "AWS::CloudFormation::CustomResource")

Event = Mapping[str, Any]
Outcome = Literal["in place", "replaced", "refused"]


@dataclass
class _Begun:
    at: datetime
    action: Action
    before: Mapping[str, Any] | None = None
    is_replacement: bool = False
    changes: tuple[PropertyChange, ...] | None = None


@dataclass
class Happened:
    """What the events of all stacks have shown so far; ``read`` adds those of one more."""

    deployed: Assembly
    redactor: Redactor
    _seconds: dict[tuple[str, Action, str | None], list[float]] = field(default_factory=lambda: defaultdict(list))
    updates: list[Updated] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    untimed: list[str] = field(default_factory=list)
    """Types whose events give an impossible time: an end before the start."""

    def read(self, stack: str, events: Sequence[Event]) -> None:
        """Read the events of a stack, the newest first, as DescribeStackEvents returns them."""
        begun: dict[tuple[str, str], _Begun] = {}
        properties: dict[str, dict[str, Any]] = {}
        for event in reversed(events):
            kind, name, status = (str(event[key]) for key in ("ResourceType", "LogicalResourceId", "ResourceStatus"))
            verb, _, ended = status.partition("_")
            if kind == _STACK or verb not in _ACTIONS:
                continue
            said = str(event.get("ResourceStatusReason") or "")
            if ended == "IN_PROGRESS":
                # an event can have the old or the new properties; those of the operation before are always the old ones
                begun.setdefault(
                    (name, verb), _Begun(at=event["Timestamp"], action=_ACTIONS[verb], before=properties.get(name))
                )
                begun[name, verb].is_replacement |= REPLACES in said
            now = _properties(event)
            if now is not None:
                properties[name] = now
            if ended == "IN_PROGRESS":
                continue
            done = begun.pop((name, verb), None)
            if done is not None and done.before is not None and verb == "UPDATE":
                done.changes = tuple(value_changes((), done.before, properties[name]))
            if ended == "COMPLETE" and done is not None:
                self._ended(stack, name, kind, done, event["Timestamp"])
            elif ended == "FAILED" and not CANCELLED.fullmatch(said):
                self._failed(stack, event, done)

    @property
    def times(self) -> tuple[Times, ...]:
        """How long each type took."""
        rows = sorted(self._seconds.items(), key=lambda each: (each[0][0], each[0][1], each[0][2] or ""))
        return tuple(
            Times(type=self.redactor.type(kind), action=action, when=when, seconds=tuple(sorted(seconds)))
            for (kind, action, when), seconds in rows
        )

    def _ended(self, stack: str, name: str, kind: str, done: _Begun, at: datetime) -> None:
        resource = self.deployed.find(stack, name)
        here = resource if resource is not None and resource.type == kind else None
        when: str | None = None
        action: Action = "create" if done.is_replacement else done.action
        if here is not None and action == "create":
            when = circumstance(here, "create", set())
        elif here is not None and done.changes is not None:
            changed = {step for each in done.changes for step in each.schema_path[:2]}
            when = circumstance(here, action, changed)
        # first: without it there is no row
        seconds = round((at - done.at).total_seconds(), 1)
        if 0 <= seconds <= LONGEST_S:
            self._seconds[kind, action, when].append(seconds)
        else:
            self.untimed.append(kind)
        if done.action == "update" and here is not None and done.changes:
            self._updated(here, done.changes, "replaced" if done.is_replacement else "in place")

    def _failed(self, stack: str, event: Event, done: _Begun | None) -> None:
        said = str(event.get("ResourceStatusReason") or "")
        code = HANDLER_CODE.search(said)
        form: Literal["handler", "custom", "service", "other"] = (
            "handler"
            if code and HANDLER.search(said)
            else "custom"
            if CUSTOM.fullmatch(said)
            else "service"
            if SERVICE.search(said)
            else "other"
        )
        self.messages.append(
            Message(
                type=self.redactor.type(str(event["ResourceType"])),
                status=self.redactor.state(str(event["ResourceStatus"])),
                text=self.redactor.text(said)[:_LONGEST],
                code=self.redactor.state(code[1]) if code else "",
                form=form,
            )
        )
        resource = self.deployed.find(stack, str(event["LogicalResourceId"]))
        if code and code[1] == _NOT_UPDATABLE and done is not None and done.changes and resource is not None:
            self._updated(resource, done.changes, "refused")

    def _updated(self, resource: Resource, changes: Sequence[PropertyChange], outcome: Outcome) -> None:
        # the function of a custom resource decides whether an update gives another physical resource
        if resource.type.startswith(_CUSTOM_TYPES):
            return
        changes = [each for each in changes if not _is_whole_group(resource, each)]
        if not changes:
            return
        known = circumstances_of(self.deployed, resource, self.deployed, resource)
        judged = [judge(self.deployed, self.deployed, resource.type, each, known) for each in changes]
        places = {self.redactor.place(each.path) for each in changes}
        self.updates.append(
            Updated(
                type=self.redactor.type(resource.type),
                places=tuple(sorted(places)),
                outcome=outcome,
                foretold=tuple(sorted({*_foretold(judged)})),
            )
        )


_LONGEST: Final = 4000


def _is_whole_group(resource: Resource, change: PropertyChange) -> bool:
    """Whether an instance group was added or removed; the rules of properties do not cover that."""
    is_item = len(change.steps) == 2 and change.steps[0] in GROUPS and change.steps[1].startswith("[")
    return resource.type == CLUSTER and is_item and MISSING in (change.before, change.after)


def _foretold(judged: Sequence[Any]) -> Iterator[str]:
    for each in judged:
        yield each.effect.value
        if each.may_replace:
            yield "replaced"


def _properties(event: Event) -> dict[str, Any] | None:
    try:
        found = json.loads(event.get("ResourceProperties") or "null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
