"""Turns properties of a template or of AWS's answer into flat facts that can be compared in any order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hyperpod_cdk.templates.values import UNKNOWN_MARKS, Reference, Unknown, plain

Facts = Mapping[str, Any]
"""Values by their place: ``InstanceGroups[h100].InstanceCount``."""

UNKNOWN: Final = Unknown("known at deployment only")
"""A value that the template does not show and CloudFormation does not give."""

_NAMES: Final = ("InstanceGroupName", "Name", "InstanceType", "PolicyArn", "AcceleratorType", "Rule")
"""Members that identify the items of a list. ``Key`` and ``Value`` together are a mapping in every list."""


def facts(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return every value of properties by its place.

    Named items of a list are under their names, and the name alone means that the item is there; a list of plain
    values, or of items without a name, is one value whose order does not count. Null and empty values count as not
    there.
    """
    return dict(_flat("", properties))


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (Reference, Unknown)):
        yield place, UNKNOWN
    elif isinstance(value, Mapping):
        if not value and place:
            # the presence of CapacityRequirements.Spot is its only information
            yield place, "{}"
        for key, each in value.items():
            yield from _flat(f"{place}.{key}" if place else str(key), each)
    elif isinstance(value, (list, tuple)):
        yield from _items(place, value)
    elif value is not None and value != "":
        yield place, UNKNOWN if _is_unknown(value) else text(value)


def _items(place: str, items: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    if not items:
        return
    rows = [each for each in items if isinstance(each, Mapping)]
    if len(rows) == len(items):
        if all(set(each) <= {"Key", "Value"} and isinstance(each.get("Key"), str) for each in rows):
            for each in rows:
                value = each.get("Value", "")
                yield f"{place}[{each['Key']}]", UNKNOWN if holds_unknown(value) else text(value)
            return
        name = next((name for name in _NAMES if all(isinstance(each.get(name), str) for each in rows)), None)
        if name is not None and len({each[name] for each in rows}) == len(rows):
            for each in rows:
                inner = f"{place}[{each[name]}]"
                yield inner, "there"
                for key, member in each.items():
                    if key != name:
                        yield from _flat(f"{inner}.{key}", member)
            return
    if any(holds_unknown(each) for each in items):
        yield place, UNKNOWN
        return
    yield place, ", ".join(sorted(canonical(each) for each in items))


def canonical(value: Any) -> str:
    """Return a value as one text that does not depend on the order of lists and keys, or on 4 or "4"."""
    plainer = _plainer(value)
    return plainer if isinstance(plainer, str) else json.dumps(plainer, sort_keys=True)


def _plainer(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plainer(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return sorted((_plainer(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return text(value)


def text(value: Any) -> str:
    """Return a plain value as CloudFormation reads it: 4 and "4", true and "true" alike."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return plain(value)


def _is_unknown(value: object) -> bool:
    return isinstance(value, str) and any(mark in value for mark in UNKNOWN_MARKS)


def holds_unknown(value: Any) -> bool:
    """Return whether any part of a value is known only at deployment."""
    if isinstance(value, (Reference, Unknown)):
        return True
    if isinstance(value, Mapping):
        return any(holds_unknown(each) for each in (*value, *value.values()))
    if isinstance(value, (list, tuple)):
        return any(holds_unknown(each) for each in value)
    return _is_unknown(value)


def aligned(stated: Any, actual: Any) -> Any:
    """Return what AWS has without the members that it adds to items of a list that have no name.

    Such an item is compared as a whole; what the template leaves out of it is AWS's default.
    """
    if isinstance(stated, Mapping) and isinstance(actual, Mapping):
        return {key: aligned(stated.get(key), each) for key, each in actual.items()}
    if not isinstance(actual, (list, tuple)) or not all(isinstance(each, Mapping) for each in actual):
        return actual
    items = [each for each in stated if isinstance(each, Mapping)] if isinstance(stated, (list, tuple)) else []
    name = next((name for name in _NAMES if actual and all(isinstance(each.get(name), str) for each in actual)), None)
    if name is not None:
        by_name = {each.get(name): each for each in items}
        return [aligned(by_name.get(each[name]), each) for each in actual]
    if len(items) != len(actual):
        return actual
    members: Any = {}
    for each in items:
        members = _merged(members, each)
    return [_restricted(members, each) for each in actual]


def _merged(one: Any, other: Any) -> Any:
    """Merge two items with all their members, at every depth: each states only a part."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return other
    return {**one, **{key: _merged(one.get(key), each) for key, each in other.items()}}


def _restricted(stated: Any, actual: Any) -> Any:
    if not isinstance(stated, Mapping) or not isinstance(actual, Mapping):
        return actual
    return {key: _restricted(stated[key], value) for key, value in actual.items() if key in stated}
