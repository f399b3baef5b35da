"""What a change does if a parameter of a stack has another value than the template's default.

An existing stack keeps its values, whatever the default is ('cdk deploy' sends UsePreviousValue: aws-cdk,
--previous-parameters). If the values are not read from the stack (``review --deployed``), the report uses the defaults,
and effects that only another value would show are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.changes.blast_radius import blast_radius
from hyperpod_cdk.review.model import BlastRadius, Effect, Reason, ReasonKind, ResourceEffect
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import by_meaning, compare
from hyperpod_cdk.templates.values import STORED, references

_SHOWN: Final = 3
_NO_VALUES: Final = ("Parameters", "Resources", "Rules")
"""Sections of a template that give no values to resources; resources are compared one by one."""
_WOULD: Final = {
    Effect.REPLACED: "replaces it",
    Effect.DELETED: "deletes it",
    Effect.REFUSED: "is refused",
    Effect.INTERRUPTED: "interrupts it",
    Effect.LEFT_BEHIND: "leaves it behind",
    Effect.ADDED: "adds it",
}


def hidden_by_defaults(base: Assembly, head: Assembly, radius: BlastRadius) -> Iterator[Reason]:
    """Yield what changes if a parameter has another value than the default that ``radius`` used."""
    both = {stack.name: stack for stack in base.stacks if stack.name in head.by_name}
    assumed = {
        name: sorted({*_assumed(stack), *_assumed(head.by_name[name])})
        for name, stack in both.items()
        if stack.template != head.by_name[name].template
    }
    if not any(assumed.values()) or _changes_nothing(base, head, assumed, radius):
        return
    old, new = (
        replace(side, stacks=tuple(_open(each, assumed.get(each.name, ())) for each in side.stacks))
        for side in (base, head)
    )
    old, new = by_meaning(old, new), by_meaning(new, old)
    told = {(each.stack, each.logical_id): _changed_properties(each) for each in radius.resources}
    for each in blast_radius(old, new, compare(old, new)).resources:
        names = assumed.get(each.stack)
        known = told.get((each.stack, each.logical_id))
        found = [part for part in _changed_properties(each) if known is None or part not in known]
        if not names or not (found or known is None):
            continue
        shown = joined([*names[:_SHOWN], f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else names)
        does = _WOULD.get(each.effect, f"changes {joined(found)}" if found else "changes it")
        yield Reason(
            kind=ReasonKind.UNKNOWN,
            resource=f"{each.stack} / {each.name}",
            property=found[0] if found else None,
            sentence=f"With the default of {shown} none of this happens, with another value the change {does}: the "
            "stack keeps its value, which --deployed reads.",
        )


def _changes_nothing(base: Assembly, head: Assembly, names: Mapping[str, list[str]], radius: BlastRadius) -> bool:
    """Whether the parameters are only in resources that are the same on both sides and that nothing changes."""
    told = {(each.stack, each.logical_id) for each in radius.resources}
    for side, other in ((base, head), (head, base)):
        for stack in side.stacks:
            assumed = set(names.get(stack.name, ()))
            others = {key: value for key, value in stack.template.items() if key not in _NO_VALUES}
            if not assumed.isdisjoint(name for name, _ in references(others)):
                return False
            beside = other.by_name[stack.name].resources if assumed else {}
            for name, resource in stack.resources.items() if assumed else ():
                is_same = name in beside and beside[name].body == resource.body and (stack.name, name) not in told
                if not is_same and not assumed.isdisjoint(each for each, _ in references(resource.body)):
                    return False
    return True


def moved_defaults(base: Assembly, head: Assembly) -> Iterator[str]:
    """Yield notes on defaults that change for an existing stack: it keeps its values."""
    for stack in head.stacks:
        old = base.by_name.get(stack.name)
        if old is None:
            continue
        before, after = _assumed(old), _assumed(stack)
        names = [name for name, value in after.items() if name in before and before[name] != value]
        if names:
            one = len(names) == 1
            yield (
                f"{stack.name}: the default{'' if one else 's'} of {joined(names)} change{'s' if one else ''}, and "
                "the report uses the new one: an existing stack keeps its value, so that nothing may change, or "
                "something else. --deployed reads it."
            )


def _assumed(stack: Stack) -> Mapping[str, Any]:
    """Return the defaults by parameter for which the stack's value is unknown."""
    return {
        name: each["Default"]
        for name, each in stack.parameters.items()
        if isinstance(each, dict) and "Default" in each and name not in stack.told
        # a name in Parameter Store, whose value is unknown in any case
        if not str(each.get("Type", "")).startswith(STORED)
    }


def _open(stack: Stack, names: Any) -> Stack:
    if not names:
        return stack
    parameters = {
        name: {key: value for key, value in each.items() if key != "Default"} if name in names else each
        for name, each in stack.parameters.items()
    }
    return replace(stack, template={**stack.template, "Parameters": parameters})


def _changed_properties(each: ResourceEffect) -> list[str]:
    """Return the properties that change, each by its first step: below it, a default only changes how they are
    shown."""
    return list(dict.fromkeys(part.path.partition(".")[0].partition("[")[0] for part in each.properties))
