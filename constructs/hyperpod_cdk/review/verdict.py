"""The line at the top of a report: how serious a change is, what it does, and whether a person must approve it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.approval import first_line, judged
from hyperpod_cdk.review.attention import Found, counted_as, findings, policy_errors
from hyperpod_cdk.review.changes.effects import GRAVEST_FIRST
from hyperpod_cdk.review.model import (
    Access,
    Attention,
    BlastRadius,
    Capacity,
    Cost,
    Effect,
    Fabric,
    Level,
    Policy,
    PropertyEffect,
    Reason,
    ReasonKind,
    ResourceEffect,
    Verdict,
)
from hyperpod_cdk.review.nouns import count, noun, place
from hyperpod_cdk.review.review_file import NO_RULES, ReviewRules

_LEVELS: Final = tuple(Level)
_KINDS_NAMED: Final = 3


def verdict(
    radius: BlastRadius,
    *,
    capacity: Capacity,
    cost: Cost,
    access: Access,
    fabric: Fabric,
    policy: Policy,
    word: str,
    protection: Sequence[Attention] = (),
    settings: Sequence[Found] = (),
    rules: ReviewRules = NO_RULES,
    reasons: Sequence[Reason] = (),
    on: date | None = None,
) -> Verdict:
    """Return the verdict: the most serious effect on any resource, what to look at, and who must approve what.

    A replacement or deletion that costs nothing (``catalog.updates``: a Lambda layer's version) counts as a change in
    place; one that keeps data, nodes or an address in the account but removes them from their stack counts as deleted.
    ``rules`` are those of ``review.yaml``, ``reasons`` are those that the templates alone do not show, ``on`` is the
    day on which exceptions are judged; without a day none counts.
    """
    # a stack's own protection is in no template, but it is deployed, too
    least = Level.IN_PLACE if protection or settings else Level.NONE
    level = min([least, *(_level(each) for each in radius.resources)], key=_LEVELS.index)
    wrong = _wrong(radius, fabric, policy)
    found = findings(
        radius,
        capacity=capacity,
        cost=cost,
        access=access,
        fabric=fabric,
        policy=policy,
        word=word,
        protection=protection,
        settings=settings,
        monthly_increase_usd=rules.thresholds.monthly_increase_usd,
    )
    asked, excepted = judged(found, reasons, rules, on)
    return Verdict(
        level=level,
        approval=first_line(
            asked,
            excepted,
            changes=level is not Level.NONE or bool(reasons),
            wrong=[*wrong, *_refused_without_asking(radius, asked)],
            rules=rules,
            costs_are_known=not cost.unpriced and not cost.is_lower_bound,
        ),
        sentence=" ".join([*_sentences(radius, protection), *_settings_sentences(settings), *wrong]),
        needs_approval=asked,
        excepted=excepted,
        reviewed_on=None if on is None else on.isoformat(),
        is_wrong=bool(wrong) or any(each.effect is Effect.REFUSED for each in radius.resources),
        attention=tuple(each.item for each in found),
    )


def _sentences(radius: BlastRadius, protection: Sequence[Attention]) -> list[str]:
    if not protection:
        return [sentence(radius.resources)]
    lifted = f"Protection {'is' if any(each.is_certain for each in protection) else 'may be'} removed."
    added = [each for each in radius.resources if counted_as(each) is Effect.ADDED]
    if len(added) == len(radius.resources):
        return [f"Adds {count(len(added), 'resource')}.", lifted] if added else [lifted]
    return [sentence(radius.resources), lifted]


def _settings_sentences(settings: Sequence[Found]) -> list[str]:
    stacks = list(dict.fromkeys(each.item.resource for each in settings))
    return [f"The deployment settings of {count(len(stacks), 'stack')} change."] if stacks else []


def sentence(resources: Sequence[ResourceEffect]) -> str:
    """Return a sentence on what happens to these resources."""
    if not resources:
        return "No deployed resource changes."
    of = {effect: [each for each in resources if counted_as(each) is effect] for effect in GRAVEST_FIRST}
    if len(of[Effect.ADDED]) == len(resources):
        acts = any(change.interrupts for each in resources for change in each.properties)
        beside = ", with effects on deployed resources." if acts else "; no deployed resource changes."
        return f"Adds {count(len(resources), 'resource')}{beside}"
    parts = [
        text
        for effect, (does, may) in _DOES.items()
        for is_certain, text_of in ((True, does), (False, may))
        if (some := [each for each in of[effect] if each.is_certain is is_certain])
        for text in [text_of.format(_interrupted(some) if effect is Effect.INTERRUPTED else _named(some))]
    ]
    in_place, added = len(of[Effect.IN_PLACE]), len(of[Effect.ADDED])
    if not parts:
        text = f"Changes {count(in_place, 'resource')} in place"
        return f"{text} and adds {count(added, 'resource')}." if added else f"{text}."
    text = joined(parts)
    text = text[0].upper() + text[1:]
    more = []
    if in_place:
        more.append(f"{in_place} more {'changes' if in_place == 1 else 'change'} in place")
    if added:
        more.append(f"{added} {plural(added, 'is', 'are')} added")
    return f"{text}; {', '.join(more)}." if more else f"{text}."


_DOES: Final = {
    Effect.REPLACED: ("replaces {}", "may replace {}"),
    Effect.DELETED: ("deletes {}", "may delete {}"),
    Effect.REFUSED: (
        "changes {} in a way that the service refuses",
        "may change {} in a way that the service refuses",
    ),
    Effect.INTERRUPTED: ("interrupts the nodes of {}", "may interrupt the nodes of {}"),
    Effect.UNKNOWN: ("has unknown effects on {}", "may have unknown effects on {}"),
    Effect.LEFT_BEHIND: ("leaves {} behind", "may leave {} behind"),
}
"""What happens to resources, for certain and perhaps."""


def _wrong(radius: BlastRadius, fabric: Fabric, policy: Policy) -> list[str]:
    """Return what is wrong with the head, whatever it is compared with."""
    said = []
    refused = sum(each.effect is not Effect.REFUSED and _is_refused_in_part(each) for each in radius.resources)
    if refused:
        said.append(f"The service refuses part of the change to {count(refused, 'resource')}.")
    broken = Counter(each.kind for each in fabric.subjects if any(proof.result == "broken" for proof in each.proofs))
    if broken:
        kinds = [count(broken[kind], kind) for kind in sorted(broken, reverse=True)]
        said.append(f"The network of {joined(kinds)} is broken.")
    errors = len(policy_errors(policy))
    if errors:
        said.append(f"The policy finds {count(errors, 'error')}.")
    return said


def _refused_without_asking(radius: BlastRadius, asked: Sequence[Reason]) -> list[str]:
    """Return what the service refuses as a whole if an exception covers it: no approval is asked, but it fails."""
    refused = [each for each in radius.resources if each.effect is Effect.REFUSED]
    if not refused or any(each.kind is ReasonKind.REFUSAL for each in asked):
        return []
    return [f"The service refuses the change to {_named(refused)}."]


def _is_refused_in_part(each: ResourceEffect) -> bool:
    return any(change.effect is Effect.REFUSED for change in each.properties)


def _level(each: ResourceEffect) -> Level:
    effect = counted_as(each)
    if effect is Effect.LEFT_BEHIND:
        level = Level.DELETED if each.stateful else Level.IN_PLACE
    else:
        level = Level(effect.value)
    # a Lambda layer's version is replaced without harm, but not while another stack imports it
    return min(level, Level.REFUSED, key=_LEVELS.index) if _is_refused_in_part(each) else level


def _interrupted(resources: Sequence[ResourceEffect]) -> str:
    groups = {
        (each.stack, each.logical_id, item)
        for each in resources
        for change in each.properties
        if change.effect in (Effect.INTERRUPTED, Effect.DELETED)
        for item in _item(change)
    }
    others = [each for each in resources if (each.stack, each.logical_id) not in {group[:2] for group in groups}]
    parts = [count(len(groups), "instance group")] if groups else []
    return joined([*parts, _named(others)] if others else parts)


def _item(change: PropertyEffect) -> list[str]:
    found = re.match(r"\w*InstanceGroups\[([^\]]*)\]", change.path)
    return [found[1]] if found else []


def _named(resources: Sequence[ResourceEffect]) -> str:
    # foundations of other resources are named first, then resources that contain data, nodes or an address
    ordered = sorted(
        resources,
        key=lambda each: (
            place(each.type),
            not each.stateful,
        ),
    )
    numbers = Counter(noun(each.type) for each in ordered)
    kinds = list(numbers.items())
    if len(kinds) > _KINDS_NAMED:
        shown = kinds[: _KINDS_NAMED - 1]
        rest = sum(number for _, number in kinds[_KINDS_NAMED - 1 :])
        return joined([*(count(number, name) for name, number in shown), count(rest, "other resource")])
    return joined([count(number, name) for name, number in kinds])
