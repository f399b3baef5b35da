"""Responses that were observed in a real account, which replace those of the embedded AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from hyperpod_cdk_rehearsal.embedded.account_sections import Section

_STEP = re.compile(r"([^.\[{]+)((?:\[\]|\{\})*)")
_MOVED = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}


class ObservedMember(Section):
    """A member of the answers to an operation: its ``value``, or that it ``is_left_out``.

    ``place`` names it as a bundle of ``observe`` does (``InstanceGroups[].Status``). ``where`` are members of that in
    which it stands and their values: only there it is put; ``only_first`` puts it once into an answer. Services that
    moto plays (EC2, KMS, S3) stay as they are.
    """

    operation: Annotated[str, Field(pattern=r"^[a-z0-9-]+:[A-Za-z0-9]+$")]
    place: Annotated[str, Field(pattern=r"^[^.\[{]+((\[\]|\{\})*\.[^.\[{]+)*$")]
    value: Any = None
    is_left_out: bool = False
    where: Mapping[str, Any] = {}
    only_first: bool = False

    @model_validator(mode="after")
    def _says_one_thing(self) -> ObservedMember:
        if self.is_left_out == (self.value is not None):
            raise ValueError("a member has a value, or is left out")
        return self


class ObservedTime(Section):
    """The duration of an action on a type, according to stack events."""

    type: str
    action: Literal["create", "update", "delete"]
    minutes: Annotated[float, Field(ge=0)]


class ObservedAnswers(Section):
    """Differences between a bundle of ``observe`` and the embedded AWS."""

    members: tuple[ObservedMember, ...] = ()
    times: tuple[ObservedTime, ...] = ()


def as_observed(observed: ObservedAnswers, name: str, result: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a response as it was observed; ``name`` is the operation (``eks:DescribeCluster``)."""
    if result is None or not observed.members:
        return result
    found: dict[str, Any] = _copied(result)
    for each in observed.members:
        if each.operation == name:
            _put(each, found)
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, (list, tuple)) else value


def _put(member: ObservedMember, answer: dict[str, Any]) -> None:
    *outer, last = member.place.split(".")
    for place in _reached(answer, outer):
        if any(place.get(key) != value for key, value in member.where.items()):
            continue
        if member.is_left_out:
            place.pop(last, None)
        else:
            place[last] = member.value
        if member.only_first:
            return


def _reached(value: Any, steps: list[str]) -> Iterator[dict[str, Any]]:
    if not steps:
        if isinstance(value, dict):
            yield value
        return
    found = _STEP.fullmatch(steps[0])
    name, inner = found.groups() if found else (steps[0], "")
    values = [value.get(name)] if isinstance(value, dict) else []
    for _ in range(len(inner) // 2):
        values = [
            each
            for items in values
            for each in (items.values() if isinstance(items, dict) else items if isinstance(items, list) else ())
        ]
    for each in values:
        yield from _reached(each, steps[1:])


def as_timed(observed: ObservedAnswers, events: list[dict[str, Any]]) -> None:
    """Let what ended have ended so many minutes after it began; ``events`` are all of a stack, the newest first."""
    minutes: dict[tuple[str, str], float] = {(each.type, each.action): each.minutes for each in observed.times}
    begun: dict[tuple[str, str], Any] = {}
    for event in reversed(events):
        verb, _, state = event["ResourceStatus"].partition("_")
        name = (event["LogicalResourceId"], verb)
        lasts = minutes.get((event["ResourceType"], _MOVED.get(verb, "")))
        if state == "IN_PROGRESS":
            begun.setdefault(name, event["Timestamp"])
        elif state == "COMPLETE" and name in begun:
            began = begun.pop(name)
            if lasts is not None:
                event["Timestamp"] = began + timedelta(minutes=lasts)
