"""What differs between two assemblies: resources added, removed and changed, down to the single property."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack, placed
from hyperpod_cdk.templates.values import UNKNOWN_PART, meaning, plain, resolve, resolved_properties

NAMES: Final = (
    *("InstanceGroupName", "Key", "Sid", "PolicyName", "AlarmName", "Name", "DeviceName", "Id"),
    *("IndexName", "RuleName", "VariantName", "OptionName", "ParameterName"),
    *("AttributeName", "VolumeName", "ColumnName", "FieldName", "Identifier", "Region"),
)
"""Properties that identify the items of a list, so that an item keeps its identity when others are added or removed."""

ATTRIBUTES: Final = ("DeletionPolicy", "UpdateReplacePolicy", "Condition")
"""Attributes that are compared in addition to properties. DependsOn changes nothing deployed, and Metadata only by
_RUN."""

METADATA: Final = "Metadata"

_RUN: Final = ("AWS::CloudFormation::Init", "AWS::CloudFormation::Authentication")
"""Metadata that cfn-init and cfn-hup read and run on instances (CloudFormation template reference, helper scripts)."""


MACRO: Final = "Fn::Transform"
"""The function with which a macro writes the values around it."""


_FREE = re.compile(r"Document|Policy|Pattern|Body|Definition|Content|Json")
"""Properties with JSON of any form, in which 4 and "4" are two values."""


class Missing:
    """Placeholder for a property that does not exist."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


@dataclass(frozen=True, kw_only=True)
class PropertyChange:
    """One property that differs; values are resolved (``values.resolve``), MISSING if one side has none.

    ``steps`` is the place with the names or indexes of list items (``("InstanceGroups", "[h100]", "InstanceCount")``).
    """

    steps: tuple[str, ...]
    before: Any
    after: Any

    @property
    def path(self) -> str:
        """The place as findings show it: ``InstanceGroups[h100].InstanceCount``."""
        return ".".join(self.steps).replace(".[", "[")

    @property
    def schema_path(self) -> tuple[str, ...]:
        """The place as the type's schema names it, without list items: ``("InstanceGroups", "InstanceCount")``."""
        return tuple(step for step in self.steps if not step.startswith("["))

    @property
    def item(self) -> str:
        """The name or index of the outermost list item around it (``h100``), empty outside of lists."""
        return next((step[1:-1] for step in self.steps if step.startswith("[")), "")


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """One resource that differs: ``before`` is None if it is new, ``after`` if it is removed.

    ``properties`` are the changed ones of a resource that both sides have, ``attributes`` those of ATTRIBUTES.
    """

    before: Resource | None
    after: Resource | None
    properties: tuple[PropertyChange, ...] = ()
    attributes: tuple[PropertyChange, ...] = ()

    @property
    def resource(self) -> Resource:
        """The resource as it will be, or as it was if it is removed."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - compare() makes no change without a side
        return found


def apart(base: Assembly, head: Assembly) -> Assembly:
    """Return the base with another name for each stack that is not one of the head's.

    CloudFormation identifies a stack by account, Region and name: one with the same name elsewhere is another stack,
    which stays as it is. Values that only the deployment knows may be the same.
    """

    def is_elsewhere(stack: Stack) -> bool:
        other = head.by_name.get(stack.name)
        pairs = () if other is None else ((stack.account, other.account), (stack.region, other.region))
        return any(one and two and one != two for one, two in pairs)

    places = {_place(each): each.name for each in head.stacks}
    names = {
        stack.name: _place(stack) if is_elsewhere(stack) else places[_place(stack)]
        for stack in base.stacks
        # one of several with its name is identified by its place, on the side that has several
        if is_elsewhere(stack) or (stack.name not in head.by_name and _place(stack) in places)
    }
    if not names:
        return base
    stacks = tuple(
        replace(
            stack,
            name=names.get(stack.name, stack.name),
            dependencies=tuple(names.get(each, each) for each in stack.dependencies),
        )
        for stack in base.stacks
    )
    return replace(base, stacks=stacks)


def by_meaning(side: Assembly, other: Assembly) -> Assembly:
    """Return a side whose values state what a condition means if the other side means something else by its name.

    A value that only the deployment knows is compared by its text, which has the names of the conditions that decide
    it: without their meaning, a condition that is defined differently would change nothing.
    """
    found = {stack.name: _unlike(stack, other.by_name.get(stack.name)) for stack in side.stacks}
    if all(found[stack.name] == stack.unlike for stack in side.stacks):
        return side
    stacks = (
        stack if found[stack.name] == stack.unlike else replace(stack, unlike=found[stack.name])
        for stack in side.stacks
    )
    return replace(side, stacks=tuple(stacks))


def _unlike(stack: Stack, other: Stack | None) -> dict[str, str]:
    if other is None:
        return {}
    shared = [name for name in stack.conditions if name in other.conditions]
    return {name: own for name in shared if (own := meaning(stack, name)) != meaning(other, name)}


def _place(stack: Stack) -> str:
    suffix = placed("", stack.account, stack.region)
    return stack.name if stack.name.endswith(suffix) else placed(stack.name, stack.account, stack.region)


def compare(base: Assembly, head: Assembly) -> list[ResourceChange]:
    """Return every resource that differs, in the order of deployment; removed ones are last."""
    against, found = head.read.get("changes", (None, []))
    if against is None or not against.is_made_of(base.stacks):
        found = _compared(base, head)
        head.read["changes"] = (base, found)
    return list(found)


def _compared(base: Assembly, head: Assembly) -> list[ResourceChange]:
    base, head = by_meaning(base, head), by_meaning(head, base)
    changes = []
    for after in head.resources():
        before = base.find(after.stack, after.logical_id)
        if before is None:
            changes.append(ResourceChange(before=None, after=after))
            continue
        properties = tuple(property_changes(base, before, head, after))
        attributes = tuple(
            PropertyChange(steps=(name,), before=before.body.get(name, MISSING), after=after.body.get(name, MISSING))
            for name in ATTRIBUTES
            if _attribute(base, before, name) != _attribute(head, after, name)
        ) + tuple(_metadata_changes(base, before, head, after))
        if properties or attributes or before.type != after.type:
            changes.append(ResourceChange(before=before, after=after, properties=properties, attributes=attributes))
    changes += [
        ResourceChange(before=before, after=None)
        for before in base.resources()
        if head.find(before.stack, before.logical_id) is None
    ]
    return changes


def _attribute(assembly: Assembly, resource: Resource, name: str) -> Any:
    stated = resource.body.get(name)
    return resolve(assembly, resource.stack, stated) if isinstance(stated, dict) else stated


def _metadata_changes(base: Assembly, before: Resource, head: Assembly, after: Resource) -> Iterator[PropertyChange]:
    old, new = (each if isinstance(each := side.body.get(METADATA), dict) else {} for side in (before, after))
    for name in _RUN:
        if name in old or name in new:
            was = resolve(base, before.stack, old[name]) if name in old else MISSING
            will = resolve(head, after.stack, new[name]) if name in new else MISSING
            if was != will:
                yield PropertyChange(steps=(METADATA, name), before=was, after=will)


def property_changes(base: Assembly, before: Resource, head: Assembly, after: Resource) -> Iterator[PropertyChange]:
    """Return the properties of one resource that differ after references are resolved."""
    old, new = resolved_properties(base, before), resolved_properties(head, after)
    if isinstance(old, dict) and isinstance(new, dict):
        yield from value_changes((), old, new)
    elif old != new:
        # one function replaces all properties: a macro writes them
        yield PropertyChange(steps=(MACRO,), before=old, after=new)


def value_changes(steps: tuple[str, ...], before: Any, after: Any) -> Iterator[PropertyChange]:
    """Return the places below ``steps`` where two resolved values differ, items of lists by their names."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from value_changes((*steps, key), before.get(key, MISSING), after.get(key, MISSING))
        return
    if isinstance(before, list) and isinstance(after, list):
        named = _named(before, after)
        if named is not None:
            named_before, named_after = named
            for key in (*named_before, *(key for key in named_after if key not in named_before)):
                old, new = named_before.get(key, MISSING), named_after.get(key, MISSING)
                yield from value_changes((*steps, f"[{key}]"), old, new)
            return
    if not _is_same(steps, before, after):
        yield PropertyChange(steps=steps, before=before, after=after)


def differs_for_certain(change: PropertyChange) -> bool:
    """Whether a property changes whatever the values are that only the deployment knows: what differs is known."""
    sides = [plain(each) if each is not MISSING else "" for each in (change.before, change.after)]
    unknown = [set(UNKNOWN_PART.findall(each)) for each in sides]
    if unknown[0] == unknown[1]:
        # with the same unknown parts, what is around them differs
        return UNKNOWN_PART.sub("", sides[0]) != UNKNOWN_PART.sub("", sides[1]) or not unknown[0]
    return False


def _is_same(steps: tuple[str, ...], before: Any, after: Any) -> bool:
    """Whether two values are the same for CloudFormation: it reads 4 and "4", true and "true" alike."""
    if before == after and type(before) is type(after):
        return True
    scalars = (str, int, float)
    if not isinstance(before, scalars) or not isinstance(after, scalars) or any(_FREE.search(step) for step in steps):
        return False
    return _text(before) == _text(after)


def _text(value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _named(before: list[Any], after: list[Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the items by name, by index if they have none and their number is equal; None if neither identifies
    them."""
    everything = [*before, *after]
    if not all(isinstance(item, dict) for item in everything):
        return None
    for name in NAMES:
        if everything and all(isinstance(item.get(name), str) for item in everything):
            old, new = ({item[name]: item for item in items} for items in (before, after))
            if len(old) == len(before) and len(new) == len(after):
                return old, new
    if len(before) != len(after):
        return None
    old, new = ({str(index): item for index, item in enumerate(items)} for items in (before, after))
    return old, new
