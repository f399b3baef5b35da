"""Compares observations with the assumptions of the catalog, CloudFormation's rules and the embedded AWS."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperpod_cdk.catalog import answers, durations
from hyperpod_cdk.catalog.durations import Duration
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.living.observing.model import (
    Compared,
    Deviation,
    Filled,
    Message,
    Operation,
    Times,
    Updated,
)
from hyperpod_cdk.living.observing.redaction import model_of
from hyperpod_cdk.review.model import Effect
from hyperpod_cdk.review.nouns import count

_SLACK_S: Final = 1.0
"""Stack events have milliseconds, and the catalog has fractions of a minute."""

_SHOWN: Final = 8


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What was read, without anything of the account."""

    answers: Sequence[Operation] = ()
    times: Sequence[Times] = ()
    defaults: Sequence[Filled] = ()
    updates: Sequence[Updated] = ()
    messages: Sequence[Message] = ()


def deviations(observed: Observed) -> tuple[list[Deviation], Compared]:
    """List every deviation from an assumption, one entry for each row, and how much was compared."""
    known = [(each, rows) for each in observed.answers if (rows := answers.members(each.operation)) is not None]
    found = [
        *(each for operation, rows in known for each in _members(operation, rows)),
        *(each for operation in observed.answers for each in _types(operation)),
        *(each for operation in observed.answers for each in _states(operation)),
        *(each for filled in observed.defaults for each in _default(filled)),
        *_durations(observed.times),
        *_updates(observed.updates),
        *_messages(observed.messages),
    ]
    compared = Compared(
        members=sum(1 for operation, rows in known for each in operation.members if each.of and each.place in rows),
        states=sum(1 for operation in observed.answers for each in operation.members if each.words),
        defaults=sum(1 for each in observed.defaults if answers.default(each.type, each.place) is not None),
        times=sum(len(each.seconds) for each in observed.times),
        updates=len(observed.updates),
        messages=len(observed.messages),
    )
    return found, compared


def range_of(times: Times) -> Duration:
    """Return the catalog's range for a measurement; the widest if its circumstance is unknown."""
    if times.when is None:
        return durations.widest(times.type, times.action)
    return durations.duration(times.type, times.action, when=times.when)


def is_outside(times: Times) -> bool:
    """Whether something took less or more time than the catalog says."""
    row = range_of(times)
    return min(times.seconds) < row.low * 60 - _SLACK_S or max(times.seconds) > row.high * 60 + _SLACK_S


def _members(operation: Operation, rows: Mapping[str, bool]) -> Iterator[Deviation]:
    for member in operation.members:
        if rows.get(member.place) and member.came < member.of:
            yield Deviation(
                table="answers",
                row=f"{operation.operation} {member.place}",
                assumed="it is always there",
                observed=f"it was there {count(member.came, 'time')} of {member.of}",
                samples=member.of - member.came,
            )


def _types(operation: Operation) -> Iterator[Deviation]:
    # a member of the model may be missing at any time: only another type is a deviation
    for member in operation.members:
        if member.mistyped:
            yield Deviation(
                table="answers",
                row=f"{operation.operation} {member.place}",
                assumed="it has the type of botocore's model",
                observed=f"it had the type {joined(member.mistyped, last='or')}",
                samples=len(member.mistyped),
            )


def _states(operation: Operation) -> Iterator[Deviation]:
    for member in operation.members:
        for word in member.unpublished:
            yield Deviation(
                table="states",
                row=f"{operation.operation} {member.place}",
                assumed="it is one of the values in botocore's model",
                observed=word,
                samples=1,
            )


def _default(filled: Filled) -> Iterator[Deviation]:
    known = answers.default(filled.type, filled.place)
    others = [] if known is None else [each for each in filled.values if each not in known]
    if known is not None and others:
        yield Deviation(
            table="defaults",
            row=f"{filled.type} {filled.place}",
            assumed=joined(known, last="or"),
            observed=joined(others[:_SHOWN], last="or"),
            samples=len(others),
        )


def _durations(times: Sequence[Times]) -> Iterator[Deviation]:
    for each in times:
        if is_outside(each):
            row = range_of(each)
            when = "" if not each.when else f" {each.when}"
            yield Deviation(
                table="durations",
                row=f"{each.type} {each.action}{when}{' (others)' * (row == durations.OTHERS)}",
                assumed=f"{row.low:g} to {row.high:g} minutes",
                observed=f"{min(each.seconds) / 60:.2f} to {max(each.seconds) / 60:.2f} minutes",
                samples=len(each.seconds),
            )


def _updates(updates: Sequence[Updated]) -> Iterator[Deviation]:
    counted: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for each in updates:
        if not _is_foretold(each):
            counted[each.type, ", ".join(each.places), joined(each.foretold, last="or"), each.outcome] += 1
    for (kind, places, foretold, outcome), number in sorted(counted.items()):
        yield Deviation(
            table="updates", row=f"{kind} {places}"[:300], assumed=foretold, observed=outcome, samples=number
        )


def _is_foretold(update: Updated) -> bool:
    foretold = set(update.foretold)
    if update.outcome == "in place":
        return not foretold & {Effect.REPLACED.value, Effect.REFUSED.value}
    wanted = {Effect.REPLACED.value, Effect.UNKNOWN.value} | ({Effect.REFUSED.value} & {update.outcome})
    return bool(foretold & wanted) or (update.outcome == "refused" and Effect.REFUSED.value in foretold)


def _messages(messages: Sequence[Message]) -> Iterator[Deviation]:
    codes = frozenset(model_of("cloudformation").shape_for("HandlerErrorCode").enum)  # type: ignore[attr-defined]  # botocore's stubs: only of StringShape
    counted: dict[Message, int] = defaultdict(int)
    for each in messages:
        counted[each] += 1
    for each, number in counted.items():
        if each.form == "other" or (each.code and each.code not in codes):
            yield Deviation(
                table="messages",
                row=f"{each.type} {each.status}",
                assumed="the reason has one of the forms of templates/stack_events.py"
                if each.form == "other"
                else "the code is one of HandlerErrorCode",
                observed=each.text if each.form == "other" else each.code,
                samples=number,
            )
