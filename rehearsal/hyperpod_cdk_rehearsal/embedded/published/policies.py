"""How IAM reads policies: wildcards, actions, resources and conditions.

Restated from the IAM user guide, "IAM JSON policy elements reference" (Action, Resource, Condition, condition
operators, multivalued context keys) and "Policy evaluation logic". A statement is a mapping as it stands in a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

Statement = Mapping[str, Any]
_MARKS = {"${*}": "*", "${?}": "?", "${$}": "$"}
_ARN_PARTS = 6


class UnknownOperatorError(ValueError):
    """A condition operator that is not answered here: for numbers, dates and addresses."""


def listed(element: Any) -> list[Any]:
    """Return an element of a policy as a list; one value may stand without brackets, and nothing is an empty list."""
    if element is None:
        return []
    return list(element) if isinstance(element, list | tuple) else [element]


def like(pattern: str, text: str) -> bool:
    """Return whether ``text`` matches ``pattern``: ``*`` is any text, ``?`` any character; it is case-sensitive."""
    return _matcher(pattern).fullmatch(text) is not None


def is_action(pattern: str, action: str) -> bool:
    """Return whether an action fits a pattern of actions, for which case does not count."""
    return like(pattern.lower(), action.lower())


def is_resource(pattern: str, arn: str) -> bool:
    """Return whether an ARN fits a pattern: ``*`` alone is any; else part by part, of which the last holds the rest."""
    if pattern == "*":
        return True
    ours, theirs = pattern.split(":", _ARN_PARTS - 1), arn.split(":", _ARN_PARTS - 1)
    return len(ours) == len(theirs) and all(like(mine, other) for mine, other in zip(ours, theirs, strict=True))


def speaks_of_action(statement: Statement, action: str) -> bool:
    """Return whether a statement is about an action, by ``Action`` or ``NotAction``."""
    inverse = "NotAction" in statement
    named = any(is_action(str(each), action) for each in listed(statement.get("NotAction" if inverse else "Action")))
    return named != inverse


def speaks_of_resource(statement: Statement, arn: str) -> bool:
    """Return whether a statement is about a resource, by ``Resource`` or ``NotResource``."""
    inverse = "NotResource" in statement
    named = any(is_resource(str(each), arn) for each in listed(statement.get("NotResource" if inverse else "Resource")))
    return named != inverse


def conditions_met(statement: Statement, keys: Mapping[str, str | tuple[str, ...]]) -> bool:
    """Return whether every condition of a statement is met by a request's keys (lower case -> one value or several).

    Raises UnknownOperatorError for an operator that is not answered here.
    """
    blocks: Mapping[str, Mapping[str, Any]] = statement.get("Condition") or {}
    return all(
        _met(operator, keys.get(key.lower()), [_written(each) for each in listed(values)])
        for operator, wanted in blocks.items()
        for key, values in wanted.items()
    )


def evaluate(
    statements: Iterable[Statement], action: str, arn: str, keys: Mapping[str, str | tuple[str, ...]] | None = None
) -> Literal["allowed", "implicitDeny", "explicitDeny"]:
    """Evaluate identity policies for one action on one resource, in the words of SimulatePrincipalPolicy."""
    effects = {
        each.get("Effect")
        for each in statements
        if speaks_of_action(each, action) and speaks_of_resource(each, arn) and conditions_met(each, keys or {})
    }
    if "Deny" in effects:
        return "explicitDeny"
    return "allowed" if effects else "implicitDeny"


@cache
def _matcher(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern, compiled once: policies are read for thousands of actions."""
    between = [""]
    for mark, escaped in re.findall(r"(\*|\?)|(\$\{[*?$]\}|.)", pattern, re.DOTALL):
        if mark == "*":
            between.append("")
        else:
            between[-1] += "." if mark else re.escape(_MARKS.get(str(escaped), str(escaped)))
    if len(between) == 1:
        return re.compile(between[0], re.DOTALL)
    first, *middle, last = between
    # what stands between two stars is taken where it is found first and never given back, so no pattern is slow
    return re.compile("".join([first, *(f"(?>.*?{each})" for each in middle), ".*", last]), re.DOTALL)


def _met(operator: str, given: str | tuple[str, ...] | None, wanted: list[str]) -> bool:
    if operator == "Null":
        return (given is None) == (wanted == ["true"])
    quantifier, _, name = operator.rpartition(":")
    optional = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    negated = "Not" in name
    values = (given,) if isinstance(given, str) else given or ()
    results = [_compare(name.replace("Not", ""), value, wanted) != negated for value in values]
    if quantifier == "ForAllValues":
        return all(results)
    if quantifier == "ForAnyValue":
        return any(results)
    if not values:
        return negated or optional
    return all(results) if negated else any(results)


def _compare(operator: str, value: str, wanted: list[str]) -> bool:
    if operator == "StringEquals":
        return value in wanted
    if operator in {"StringEqualsIgnoreCase", "Bool"}:
        return value.lower() in [each.lower() for each in wanted]
    if operator == "StringLike":
        return any(like(each, value) for each in wanted)
    if operator in {"ArnEquals", "ArnLike"}:
        return any(is_resource(each, value) for each in wanted)
    raise UnknownOperatorError(operator)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
