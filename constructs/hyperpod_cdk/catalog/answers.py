"""The expected form of AWS's answers: members that the embedded AWS gives, defaults that it fills in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Final

from hyperpod_cdk.catalog import _data

AS_OF: date = _data.as_of("answers")

ALWAYS: Final = "always"
"""Marks a member that is always in its parent; every other member is sometimes missing."""

ANY: Final = "any"
"""Replaces the values of a default that depends on the environment."""


@cache
def _operations() -> Mapping[str, Mapping[str, bool]]:
    found: dict[str, dict[str, bool]] = {}
    for row, how in _data.load("answers")["answers"].items():
        operation, _, place = row.partition(" ")
        found.setdefault(operation, {})[place] = how == ALWAYS
    return found


def members(operation: str) -> Mapping[str, bool] | None:
    """Return the members of an operation's answers, True for those that are always present; None without a row."""
    return _operations().get(operation)


def default(resource_type: str, place: str) -> tuple[str, ...] | None:
    """Return the values that AWS fills in if a template has none; None if any value is possible, or none is known."""
    found: list[str] | str | None = _data.load("answers")["defaults"].get(f"{resource_type} {place}")
    return None if found is None or isinstance(found, str) else tuple(found)
