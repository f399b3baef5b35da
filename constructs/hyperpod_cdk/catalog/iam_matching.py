"""How IAM matches a policy's elements with a request: actions, resources, conditions, and what follows of them.

Policy patterns know ``*`` and ``?`` and nothing else; ``[`` stands for itself. Source: IAM user guide, "IAM JSON policy
elements" (Action, Resource, Condition, condition operators) and "Policy evaluation logic". A statement is a mapping as
it stands in a policy document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

Statement = Mapping[str, Any]
ContextKeys = Mapping[str, str | tuple[str, ...]]
"""A request's condition keys, lower case, with one value or several."""

_ARN_PARTS = 6
_LITERAL = {"${*}": r"\*", "${?}": r"\?", "${$}": r"\$"}
_TOKEN = re.compile(r"\$\{[*?$]\}|[*?]")
_SET_OPERATOR = re.compile(r"(ForAllValues|ForAnyValue):(\w+)")


class UnsupportedOperatorError(ValueError):
    """A condition operator that is not judged here; what depends on it is unknown."""


def matches(pattern: str, text: str) -> bool:
    """Say whether a text is what a policy's pattern means, upper and lower case told apart."""
    return _compiled(pattern).fullmatch(text) is not None


def matches_action(pattern: str, action: str) -> bool:
    """Say whether an action (``ec2:CreateVpc``) is what a pattern of actions means; case does not matter."""
    return matches(pattern.lower(), action.lower())


def matches_arn(pattern: str, arn: str) -> bool:
    """Say whether an ARN is what a pattern of resources means: ``*`` is every one, else part by part between colons.

    A wildcard never reaches over a colon, but in the last part, which holds all that is left.
    """
    if pattern == "*":
        return True
    wanted, parts = pattern.split(":", _ARN_PARTS - 1), arn.split(":", _ARN_PARTS - 1)
    return len(wanted) == len(parts) and all(map(matches, wanted, parts))


def listed(value: Any) -> list[Any]:
    """Give a policy element as the list that it may also be written as; nothing gives an empty one."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def names_action(statement: Statement, action: str) -> bool:
    """Say whether a statement speaks of an action, by ``Action`` or ``NotAction``."""
    if "NotAction" in statement:
        return not any(matches_action(str(each), action) for each in listed(statement["NotAction"]))
    return any(matches_action(str(each), action) for each in listed(statement.get("Action")))


def names_resource(statement: Statement, arn: str) -> bool:
    """Say whether a statement speaks of a resource, by ``Resource`` or ``NotResource``.

    ``*`` for the ARN is a request that names none: only a statement about all resources speaks of that.
    """
    if "NotResource" in statement:
        return not any(matches_arn(str(each), arn) for each in listed(statement["NotResource"]))
    return any(matches_arn(str(each), arn) for each in listed(statement.get("Resource")))


def conditions_hold(statement: Statement, keys: ContextKeys) -> bool:
    """Say whether all conditions of a statement hold for a request with these keys.

    A key that the request does not have fails a condition, but one of ``...IfExists``, of a negated operator, of
    ``ForAllValues`` or of ``Null``. Raises UnsupportedOperatorError for numbers, dates and addresses.
    """
    return all(
        _holds(operator, keys.get(key.lower()), [_text(each) for each in listed(values)])
        for operator, wanted in (statement.get("Condition") or {}).items()
        for key, values in wanted.items()
    )


def decide(
    statements: Iterable[Statement], action: str, arn: str, keys: ContextKeys | None = None
) -> Literal["allowed", "implicitDeny", "explicitDeny"]:
    """Judge one action on one resource by the statements of identity policies; a refusal outweighs every permission.

    Raises UnsupportedOperatorError where a statement that matters has a condition that is not judged here.
    """
    speaking = [
        each
        for each in statements
        if names_action(each, action) and names_resource(each, arn) and conditions_hold(each, keys or {})
    ]
    if any(each.get("Effect") == "Deny" for each in speaking):
        return "explicitDeny"
    return "allowed" if speaking else "implicitDeny"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts, end = [], 0
    for token in _TOKEN.finditer(pattern):
        parts += [re.escape(pattern[end : token.start()]), _LITERAL.get(token[0]) or {"*": ".*", "?": "."}[token[0]]]
        end = token.end()
    return re.compile("".join(parts) + re.escape(pattern[end:]), re.DOTALL)


def _holds(operator: str, given: str | tuple[str, ...] | None, wanted: list[str]) -> bool:
    if operator == "Null":
        return (given is None) == (wanted == ["true"])
    of_set = _SET_OPERATOR.fullmatch(operator)
    name = (of_set[2] if of_set else operator).removesuffix("IfExists")
    is_negated = "Not" in name
    values = () if given is None else (given,) if isinstance(given, str) else given
    if of_set:
        each = [_one_holds(name, value, wanted) for value in values]
        return all(each) if of_set[1] == "ForAllValues" else any(each)
    if not values:
        return is_negated or operator.endswith("IfExists")
    if is_negated:
        return all(_one_holds(name, value, wanted) for value in values)
    return any(_one_holds(name, value, wanted) for value in values)


def _one_holds(name: str, value: str, wanted: list[str]) -> bool:
    compare = _OPERATORS.get(name.replace("Not", ""))
    if compare is None:
        raise UnsupportedOperatorError(name)
    return any(compare(each, value) for each in wanted) != ("Not" in name)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _equal(pattern: str, value: str) -> bool:
    return pattern == value


def _equal_but_for_case(pattern: str, value: str) -> bool:
    return pattern.lower() == value.lower()


_OPERATORS = {
    "StringEquals": _equal,
    "StringEqualsIgnoreCase": _equal_but_for_case,
    "StringLike": matches,
    "ArnEquals": matches_arn,
    "ArnLike": matches_arn,
    "Bool": _equal_but_for_case,
}
