"""What one changed property does to its resource, from the schemas and the table of the services' own effects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from hyperpod_cdk.catalog import create_only, hyperpod, updates
from hyperpod_cdk.catalog.updates import Circumstances
from hyperpod_cdk.review.changes.circumstances import PRUNED, circumstances_of_change
from hyperpod_cdk.review.model import Effect
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.difference import MACRO as TRANSFORM
from hyperpod_cdk.templates.difference import MISSING, PropertyChange
from hyperpod_cdk.templates.values import is_known, plain

SCHEMA: Final = "CloudFormation schema"
MACRO: Final = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-macros.html"
RESTRICTED: Final = "RestrictedInstanceGroups"
GROUPS: Final = ("InstanceGroups", RESTRICTED)

GRAVEST_FIRST: Final = (
    Effect.REPLACED,
    Effect.DELETED,
    Effect.REFUSED,
    Effect.INTERRUPTED,
    Effect.UNKNOWN,
    Effect.LEFT_BEHIND,
    Effect.IN_PLACE,
    Effect.ADDED,
)
_SILENT: Final = "its schema lets CloudFormation update it, and this table does not contain what the service then does"
_ITEM: Final = "item"
"""The circumstance that a whole item of a list is added or removed, for which the table has no row."""
_PAGE: Final = "the type's page in CloudFormation's reference states Replacement"
_RANK: Final = {effect: rank for rank, effect in enumerate(GRAVEST_FIRST)}


@dataclass(frozen=True)
class Judged:
    """What a change does, why, and where that is documented."""

    effect: Effect
    reason: str
    source: str | None
    is_of_update: bool = False
    """Whether it is an effect of updating this property, which a resource that is created again does not have."""
    interrupts: bool = False
    """Whether the resource remains but is not reachable, or is slower for hours, during the update."""
    may_replace: bool = False
    """Whether CloudFormation may create another resource to replace it."""


def gravest(effects: Iterable[Effect]) -> Effect | None:
    """Return the most serious effect, None if there is none."""
    return min(effects, key=_RANK.__getitem__, default=None)


def rank(effect: Effect) -> int:
    """Return an effect's position, the most serious first."""
    return _RANK[effect]


def judge(
    base: Assembly,
    head: Assembly,
    resource_type: str,
    change: PropertyChange,
    circumstances: Circumstances,
) -> Judged:
    """Judge one property of a resource that stays; ``circumstances`` are those of the table that the caller knows.

    A change that the templates do not show completely, because a value is known only at deployment, is judged as one
    that happens. Whole instance groups that are added or removed are judged by the caller.
    """
    if _is_of_macro(change):
        return Judged(Effect.UNKNOWN, "a macro writes it during the deployment, and its value is unknown", MACRO)
    also = circumstances | circumstances_of_change(base, head, resource_type, change)
    for step in change.steps:
        if step.startswith("["):
            also |= _of_item(step[1:-1])
    if change.steps[-1].startswith("[") and MISSING in (change.before, change.after):
        also |= Circumstances.of(_ITEM)
    loses = updates.loses_objects(change.before, change.after)
    if loses is not True:
        also = also.without(PRUNED) if loses is False else also.doubting(PRUNED)
    return _judge(resource_type, change.schema_path, change.before, change.after, also)


def _of_item(name: Any) -> Circumstances:
    """Return the circumstance that the list item with this name changes; one that is not known may be any of them."""
    return Circumstances.of(updates.of_item(str(name))) if is_known(name) else Circumstances(is_any_item=True)


def _is_of_macro(change: PropertyChange) -> bool:
    """Whether a macro (``Fn::Transform``) is in a property that changes, or writes the properties themselves."""
    if TRANSFORM in change.steps:
        return True
    return any(TRANSFORM in plain(each) for each in (change.before, change.after) if each is not MISSING)


def _judge(  # noqa: PLR0917 - what changes, then of what it is a part
    resource_type: str,
    path: create_only.Path,
    before: Any,
    after: Any,
    also: Circumstances,
    at: int | None = None,
) -> Judged:
    at = len(path) if at is None else at
    parts = _parts(before, after)
    if parts:
        # an item that is added or removed as a whole is judged by the parts that it has
        judged = [_judge(resource_type, (*path, key), old, new, also, at) for key, old, new in parts]
        return min(judged, key=lambda each: (_RANK[each.effect], not each.interrupts))
    rule = create_only.update_rule(resource_type)
    if path[-1:] == (hyperpod.MIG_LABEL,):
        also |= Circumstances.of("MIG")
    old, new = (None if value is MISSING else value for value in (before, after))
    row = updates.update(resource_type, path, old, new, also, at)
    if rule is not None and rule.is_create_only(path) and (row is None or Effect(row.effect) is not Effect.REFUSED):
        return Judged(Effect.REPLACED, "CloudFormation cannot change it in place", SCHEMA)
    # no property of an added or removed item changes; omitting one together with its parent is the parent's change
    documented = rule.documented_at(path, at if _ITEM in also.certain else len(path)) if rule is not None else ()
    if documented and (row is None or (len(row.path) < len(documented) and Effect(row.effect) is not Effect.REFUSED)):
        unsure = " (its schema: under a condition that it does not state)" if rule and rule.is_conditional(path) else ""
        return Judged(Effect.REPLACED, f"{_PAGE}{unsure}", create_only.SPECIFICATION)
    is_of_items = MISSING in (before, after) and updates.speaks_of_items(resource_type, path)
    if is_of_items or updates.speaks_below(resource_type, path):
        return _of_list(resource_type, path, before, after, also, at)
    if row is not None:
        reason = f"{row.sentence} ({row.unsure})" if row.unsure else row.sentence
        # what CloudFormation refuses for a create-only property it refuses for a replacement, too
        is_of_update = rule is None or not rule.is_create_only(path)
        return Judged(
            Effect(row.effect),
            reason,
            row.source,
            is_of_update=is_of_update,
            interrupts=row.interrupts,
            may_replace=row.may_replace or (rule is not None and rule.is_conditional(path) and row.effect == "unknown"),
        )
    return _by_schema(resource_type, rule, path)


def _parts(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(before, dict) and after is MISSING:
        return [(key, value, MISSING) for key, value in before.items()]
    if isinstance(after, dict) and before is MISSING:
        return [(key, MISSING, value) for key, value in after.items()]
    return []


def _of_list(  # noqa: PLR0917 - as _judge() has them
    resource_type: str, path: create_only.Path, before: Any, after: Any, also: Circumstances, at: int
) -> Judged:
    """Judge a list or mapping whose parts have more serious effects: an added or removed list is judged by its
    items."""
    stated = after if before is MISSING else before
    is_one = MISSING in (before, after) and isinstance(stated, list) and all(isinstance(each, dict) for each in stated)
    if not is_one or not stated:
        return Judged(Effect.UNKNOWN, "it is unknown which of its parts change", None, is_of_update=True)
    judged = [
        _judge(
            resource_type,
            path,
            MISSING if before is MISSING else each,
            MISSING if after is MISSING else each,
            also | Circumstances.of(_ITEM) | _of_item(each.get("Key")),
            at,
        )
        for each in stated
    ]
    return min(judged, key=lambda each: (_RANK[each.effect], not each.interrupts))


def _by_schema(resource_type: str, rule: create_only.UpdateRule | None, path: create_only.Path) -> Judged:
    if rule is None:
        return Judged(Effect.UNKNOWN, _unknown(resource_type), None, is_of_update=True)
    if rule.is_conditional(path):
        reason = "CloudFormation replaces it under a condition that its schema does not state"
        return Judged(Effect.UNKNOWN, reason, SCHEMA, is_of_update=True, may_replace=True)
    may_replace = any(each[: len(path)] == path for each in rule.documented)
    return Judged(Effect.UNKNOWN, _SILENT, SCHEMA, is_of_update=True, may_replace=may_replace)


def _unknown(resource_type: str) -> str:
    if resource_type.startswith("Custom::"):
        return "the effect of a change on a custom resource depends on its function"
    return f"the CloudFormation schemas of {create_only.SCHEMAS_AS_OF.isoformat()} have no type {resource_type}"
