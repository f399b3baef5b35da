"""What one document has that another has not, written so that the other follows from the one and the difference.

Keys say what happened: `+ key` is added, `- key` is removed, `~ key` is changed from the first value to the second, and
a key alone holds the differences inside. `[2]` is the third item of a list, `[Key: team]` the one whose `Key` is
`team`; `~ [2:4]` are the items that stand in place of the third and the fourth. `= order` gives the keys that both
have, where they stand in another order; of items that have names, all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SIGN = re.compile(r"[-+~=] |\[")
_NAMES = ("Key", "InstanceGroupName", "Sid", "PolicyName", "Name")
"""Members that identify the items of a list, if all have one of them with unique values."""


def changes(before: Any, after: Any) -> dict[str, Any]:
    """Return the differences of two mappings or two lists; empty where both are the same, numbers and texts apart."""
    if isinstance(before, list):
        return _of_lists(before, after)
    found: dict[str, Any] = {}
    for key in [*before, *(key for key in after if key not in before)]:
        assert not _SIGN.match(str(key)), f"{key!r} would be read as a sign of a difference"
        if key not in after:
            found[f"- {key}"] = None
        elif key not in before:
            found[f"+ {key}"] = after[key]
        else:
            _note(found, str(key), before[key], after[key])
    order = [key for key in after if key in before]
    if order != [key for key in before if key in after]:
        found["= order"] = order
    return found


def applied(before: Any, difference: Mapping[str, Any]) -> Any:
    """Return what ``changes`` compared with ``before``."""
    if isinstance(before, list):
        return _applied_to_list(before, difference)
    result = {key: each for key, each in before.items() if f"- {key}" not in difference}
    for key in result:
        if key in difference:
            result[key] = applied(before[key], difference[key])
        elif f"~ {key}" in difference:
            result[key] = difference[f"~ {key}"][1]
    added = {key.removeprefix("+ "): each for key, each in difference.items() if key.startswith("+ ")}
    return {key: result[key] for key in difference.get("= order", result)} | added


def _note(found: dict[str, Any], key: str, before: Any, after: Any) -> None:
    if type(before) is type(after) and isinstance(before, dict | list):
        inside = changes(before, after)
        if inside:
            found[key] = inside
    elif type(before) is not type(after) or before != after:
        found[f"~ {key}"] = [before, after]


def _is_same(before: Any, after: Any) -> bool:
    found: dict[str, Any] = {}
    _note(found, "", before, after)
    return not found


def _by_name(items: list[Any], name: str) -> dict[str, Any] | None:
    """Return the items by the value of ``name``, or None if it is not unique."""
    if not all(isinstance(item, dict) and isinstance(item.get(name), str) for item in items):
        return None
    found = {f"[{name}: {item[name]}]": item for item in items}
    return found if len(found) == len(items) else None


def _of_named(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in before.items():
        if key in after:
            _note(found, key, item, after[key])
        else:
            found[f"- {key}"] = None
    found |= {f"+ {key}": item for key, item in after.items() if key not in before}
    expected = [key for key in before if key in after] + [key for key in after if key not in before]
    if list(after) != expected:
        found["= order"] = list(after)
    return found


def _of_lists(before: list[Any], after: list[Any]) -> dict[str, Any]:
    for name in _NAMES if before and after else ():
        one, other = _by_name(before, name), _by_name(after, name)
        if one is not None and other is not None:
            return _of_named(one, other)
    shorter = min(len(before), len(after))
    first = next((n for n in range(shorter) if not _is_same(before[n], after[n])), shorter)
    if len(before) != len(after):
        rest = shorter - first
        last = next((n for n in range(rest) if not _is_same(before[-1 - n], after[-1 - n])), rest)
        return {f"~ [{first}:{len(before) - last}]": after[first : len(after) - last]}
    found: dict[str, Any] = {}
    for number in range(first, shorter):
        _note(found, f"[{number}]", before[number], after[number])
    return found


def _applied_to_list(before: list[Any], difference: Mapping[str, Any]) -> list[Any]:
    named = re.compile(r"(?:[-+~] )?\[(\w+): ")
    name = next((match[1] for match in map(named.match, difference) if match), "")
    if name or "= order" in difference:
        items = next(each for each in (_by_name(before, name or any_name) for any_name in _NAMES) if each is not None)
        made = applied(items, {key: each for key, each in difference.items() if key != "= order"})
        return [made[key] for key in difference.get("= order", made)]
    result = list(before)
    for key, each in difference.items():
        place = key.removeprefix("~ ").strip("[]")
        if ":" in place:
            first, last = map(int, place.split(":"))
            result[first:last] = each
        else:
            result[int(place)] = each[1] if key.startswith("~ ") else applied(before[int(place)], each)
    return result
