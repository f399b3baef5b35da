"""Puts the findings about resources into words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.review.changes.effects import rank
from hyperpod_cdk.review.changes.entries import Entry, Found, is_stateful
from hyperpod_cdk.review.changes.excerpts import IN_SENTENCE, differing
from hyperpod_cdk.review.model import Effect, LeftBehind, PropertyEffect, ResourceEffect
from hyperpod_cdk.review.nouns import only_if
from hyperpod_cdk.templates.assembly import Resource

IN_SUMMARY: Final = 3
"""Number of changed properties that a summary names."""
_MAY: Final = {
    Effect.REPLACED: "may replace it",
    Effect.REFUSED: "may be refused",
    Effect.INTERRUPTED: "may interrupt nodes",
}
"""Words for a value that may be the same as before."""
_WORDS: Final = {
    Effect.REPLACED: "replaces it",
    Effect.DELETED: "is deleted",
    Effect.REFUSED: "is refused",
    Effect.INTERRUPTED: "interrupts nodes",
    Effect.UNKNOWN: "may have effects that are unknown",
    Effect.LEFT_BEHIND: "leaves it behind",
    Effect.IN_PLACE: "changes in place",
    Effect.ADDED: "is added",
}


def told(entry: Entry) -> ResourceEffect:
    """Return a resource's effect with a summary and what each property does."""
    findings = sorted(entry.findings, key=lambda each: rank(each.judged.effect))
    return effect_on(
        entry.resource,
        entry.effect,
        sentence(only_if(entry.condition if entry.before is not None else None, "; ".join(_clauses(entry, findings)))),
        tuple(
            PropertyEffect(
                path=each.path,
                of=each.of,
                before=each.before,
                after=each.after,
                effect=each.judged.effect,
                reason=sentence(each.judged.reason),
                source=each.judged.source,
                is_indirect=each.is_indirect,
                interrupts=each.judged.interrupts,
            )
            for each in findings
        ),
        is_certain=entry.is_certain,
        condition=entry.condition,
    )


def effect_on(
    resource: Resource,
    effect: Effect,
    summary: str,
    properties: tuple[PropertyEffect, ...],
    *,
    is_certain: bool = True,
    condition: str | None = None,
) -> ResourceEffect:
    """Return an effect on a resource, in a sentence and by its properties."""
    return ResourceEffect(
        stack=resource.stack,
        logical_id=resource.logical_id,
        type=resource.type,
        name=resource.name,
        effect=effect,
        stateful=is_stateful(resource),
        summary=summary,
        is_certain=is_certain,
        condition=condition,
        properties=properties,
    )


def left_behind(entry: Entry) -> LeftBehind:
    """Return a resource that stays in the account without a stack."""
    resource = entry.before or entry.resource
    return LeftBehind(
        stack=resource.stack,
        logical_id=resource.logical_id,
        type=resource.type,
        name=resource.name,
        why=sentence(only_if(entry.condition, entry.kept)),
        costs_money=updates.costs_money(resource.type),
    )


def lost(resource_type: str, what: str) -> Iterator[str]:
    """State what is lost with a resource of a type that contains something."""
    holds = updates.STATEFUL.get(resource_type)
    if holds is not None:
        yield f"{what}: {holds.deleted}" if holds.deleted else f"{what}, and with it {holds.holds}"


def sentence(text: str) -> str:
    """Write text as a sentence; empty stays empty."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _clauses(entry: Entry, findings: Sequence[Found]) -> Iterator[str]:
    if entry.why:
        yield entry.why
    shown = [each for each in findings if each.judged.effect is not Effect.IN_PLACE] or list(findings)
    said: set[str] = set()
    for each in shown[:IN_SUMMARY]:
        clause = _clause(
            each, holds_nodes=updates.kind_of(entry.resource.type) == "nodes", is_made=entry.before is None
        )
        yield f"{clause}, too" if each.judged.reason in said else f"{clause}: {each.judged.reason}"
        said.add(each.judged.reason)
    more = len(findings) - len(shown[:IN_SUMMARY])
    if more:
        yield f"and {more} more {'property changes' if more == 1 else 'properties change'}"
    note = updates.ON_REPLACEMENT.get(entry.resource.type)
    if entry.effect is Effect.REPLACED and note is not None:
        yield note.sentence
    if entry.effect is Effect.REPLACED and _has_snapshot(entry):
        yield "a snapshot of the old one is kept: its UpdateReplacePolicy is Snapshot"
    elif entry.effect is Effect.REPLACED and not entry.kept:
        yield from lost(entry.resource.type, f"{'' if entry.is_certain else 'then '}the old one is deleted")
    if entry.kept and entry.kept != entry.why:
        yield entry.kept
    harmless = updates.MADE_ANEW.get(entry.resource.type)
    if entry.effect in (Effect.REPLACED, Effect.DELETED) and harmless is not None:
        yield harmless.sentence


def _has_snapshot(entry: Entry) -> bool:
    sides = [each.body.get("UpdateReplacePolicy") for each in (entry.before, entry.after) if each is not None]
    return all(each == "Snapshot" for each in sides)


def _clause(finding: Found, *, holds_nodes: bool, is_made: bool) -> str:
    path = finding.path
    if finding.subject:
        path = path.partition("]")[2].removeprefix(".")
    subject = f"{finding.subject}: " if finding.subject and path else finding.subject
    before, after = differing(finding.before, finding.after, IN_SENTENCE)
    if finding.is_indirect:
        change = ""
    elif before is not None and after is not None:
        change = f" {before} -> {after}" if before != after else f" {after}"
    elif finding.subject and not path:
        change = f" ({after or before})" if after or before else ""
    elif is_made:
        change = f" {after}" if after else ""
    elif after is None:
        change = f" {before} -> none" if before else ""
    else:
        change = f" none -> {after}" if after else ""
    effect = finding.judged.effect
    # a group that is omitted is deleted, also if it is unknown whether it has nodes
    is_group = bool(finding.subject) and not path and effect is Effect.DELETED
    word = _WORDS[effect] if finding.is_certain or is_group else _MAY.get(effect, _WORDS[effect])
    if effect is Effect.INTERRUPTED and not holds_nodes:
        word = "interrupts it" if finding.is_certain else "may interrupt it"
    return f"{subject}{path}{change} {word}"
