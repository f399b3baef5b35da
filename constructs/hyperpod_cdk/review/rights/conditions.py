"""Compares conditions of statements as sets of requests: which keys no longer limit, and which limit less."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Final, Literal, NamedTuple

_EQUAL: Final = ("StringEquals", "StringLike", "StringEqualsIgnoreCase", "ArnEquals", "ArnLike")
_UNEQUAL: Final = ("StringNotEquals", "StringNotLike", "StringNotEqualsIgnoreCase", "ArnNotEquals", "ArnNotLike")
_LITERAL: Final = ("StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase")
"""Operators for which ``*`` and ``?`` are characters; for ArnEquals they are wildcards (IAM user guide, operators)."""
_BELOW: Final = ("NumericLessThan", "NumericLessThanEquals", "DateLessThan", "DateLessThanEquals")
_ABOVE: Final = ("NumericGreaterThan", "NumericGreaterThanEquals", "DateGreaterThan", "DateGreaterThanEquals")
_LOOKS: Final = (
    *("get", "list", "describe", "head", "batchget", "query", "scan", "search", "lookup", "view", "check", "select"),
    *("simulate", "test", "validate", "estimate", "preview", "read", "count"),
)
"""The prefixes of actions that change nothing."""


class Limit(NamedTuple):
    """One key's line of a condition. ``quantifier`` is ``ForAllValues``, ``ForAnyValue`` or empty."""

    quantifier: str
    operator: str
    is_if_exists: bool
    key: str
    values: tuple[str, ...]


class Wider(NamedTuple):
    """A key that limits less than before."""

    key: str
    how: Literal["dropped", "wider"]


def limits(condition: str) -> Iterator[Limit]:
    """Return the lines of a statement's condition (canonical JSON, empty without), key by key as it is written."""
    stated: Any = json.loads(condition) if condition else {}
    for written, keys in stated.items() if isinstance(stated, dict) else ():
        quantifier, _, plain = str(written).rpartition(":")
        operator = plain.removesuffix("IfExists")
        for key, values in keys.items() if isinstance(keys, dict) else ():
            found = values if isinstance(values, list) else [values]
            yield Limit(quantifier, operator, plain != operator, str(key), tuple(str(each) for each in found))


def wider(until_now: str, condition: str) -> list[Wider]:
    """Return the keys by which ``until_now`` limited and ``condition`` does not, or less, sorted by key.

    Values that cannot be compared, because their operators differ, count as wider.
    """
    stated: dict[str, list[Limit]] = {}
    for each in limits(condition):
        stated.setdefault(each.key.lower(), []).append(each)
    found: dict[str, Wider] = {}
    for old in limits(until_now):
        same = stated.get(old.key.lower(), [])
        if not any(_is_within(new, old) for new in same):
            found.setdefault(old.key.lower(), Wider(old.key, "wider" if same else "dropped"))
    return sorted(found.values())


def changes_something(actions: Iterable[str]) -> bool:
    """Whether one of these actions (lower case, with wildcards) does more than read."""
    return any(not name.partition(":")[2].startswith(_LOOKS) for name in actions)


@cache
def overlap(one: str, other: str) -> bool:
    """Whether two patterns of IAM, with ``*`` and ``?``, match a common text."""
    if not set("*?") & {*one, *other}:
        return one == other
    reached = {0}
    for each in (*one, ""):
        # the positions of the other pattern that can be reached with the characters of the first so far
        reached |= _past_stars(reached, other)
        if each == "":
            return len(other) in reached
        if each == "*":
            reached = set(range(min(reached, default=len(other) + 1), len(other) + 1))
            continue
        reached = {
            at if other[at] == "*" else at + 1
            for at in reached
            if at < len(other) and (other[at] in ("*", "?", each) or each == "?")
        }
    return False


def _past_stars(places: set[int], pattern: str) -> set[int]:
    """Return the positions after the stars at these positions: a star may match nothing."""
    passed = set()
    for place in places:
        at = place
        while at < len(pattern) and pattern[at] == "*":
            at += 1
            passed.add(at)
    return passed


def _is_within(new: Limit, old: Limit) -> bool:
    """Whether the old limit allowed everything that the new limit allows."""
    if new == old:
        return True
    if new.quantifier != old.quantifier or (new.is_if_exists and not old.is_if_exists):
        return False
    same = next((each for each in _COMPARED if new.operator in each and old.operator in each), None)
    if same is None:
        return old.operator == new.operator and set(new.values) <= set(old.values)
    compare, is_of_excluded = _COMPARED[same]
    inner, outer = (old, new) if is_of_excluded else (new, old)
    if compare is _is_like:
        # a value that is compared without regard to case allows, or excludes, more spellings
        if "IgnoreCase" in inner.operator and "IgnoreCase" not in outer.operator:
            return False
        one, other = (_written(each) for each in (inner, outer))
        folds = "IgnoreCase" in outer.operator
        pairs = ([each.lower() for each in side] if folds else side for side in (one, other))
        inner_values, outer_values = pairs
        return all(any(compare(each, bound) for bound in outer_values) for each in inner_values)
    # all that was excluded still is, or all that was allowed is
    return all(any(compare(each, bound) for bound in outer.values) for each in inner.values)


def _written(limit: Limit) -> list[str]:
    """Return the values as patterns: characters that a literal operator takes literally are escaped."""
    if limit.operator not in _LITERAL:
        return list(limit.values)
    return [each.replace("*", _STAR).replace("?", _MARK) for each in limit.values]


_STAR: Final = "\ue000"
_MARK: Final = "\ue001"
"""Represent a star and a question mark that are no wildcards: private-use characters, in no name of AWS's."""


def _is_like(value: str, pattern: str) -> bool:
    """Whether all that a pattern matches (``value``) is matched by another: only a star contains a star."""
    places = {0}
    for each in (*value, ""):
        places |= _past_stars(places, pattern)
        if each == "":
            return len(pattern) in places
        places = {
            at if pattern[at] == "*" else at + 1
            for at in places
            if at < len(pattern) and (pattern[at] == "*" or (pattern[at] == "?" and each != "*") or pattern[at] == each)
        }
    return False


def _is_subnet(inner: str, outer: str) -> bool:
    try:
        one, other = (ipaddress.ip_network(each, strict=False) for each in (inner, outer))
    except ValueError:
        return inner == outer
    if isinstance(one, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
        return one.subnet_of(other)
    return isinstance(one, ipaddress.IPv6Network) and isinstance(other, ipaddress.IPv6Network) and one.subnet_of(other)


def _is_at_most(value: str, bound: str) -> bool:
    one, other = _number(value), _number(bound)
    return one is not None and other is not None and one <= other


def _is_at_least(value: str, bound: str) -> bool:
    return _is_at_most(bound, value)


def _number(text: str) -> Decimal | None:
    """Return a number, or a date as a number with the same order."""
    digits = "".join(each for each in text if each.isdecimal()) if "-" in text[1:] else text
    try:
        return Decimal(digits)
    except InvalidOperation:
        return None


_COMPARED: Final[dict[tuple[str, ...], tuple[Callable[[str, str], bool], bool]]] = {
    _EQUAL: (_is_like, False),
    _UNEQUAL: (_is_like, True),
    ("IpAddress",): (_is_subnet, False),
    ("NotIpAddress",): (_is_subnet, True),
    **{(each,): (_is_at_most, False) for each in _BELOW},
    **{(each,): (_is_at_least, False) for each in _ABOVE},
}
"""Operators that are compared with each other: whether a value is within another, and whether values are excluded."""
