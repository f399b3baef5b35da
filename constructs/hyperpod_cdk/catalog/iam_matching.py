"""How IAM matches a policy's patterns with actions and names.

Policy patterns have only ``*`` and ``?``; ``[`` is a plain character. Source: IAM user guide, "IAM JSON policy
elements" (Action, NotAction, and wildcards). A statement is a mapping, as in a policy document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Literal

from hyperpod_cdk.catalog.arns import arn_parts

Statement = Mapping[str, Any]
Answer = Literal["lets", "denies", "silent", "unknown"]
"""A policy's result for a principal: ``silent`` if no statement allows it, ``unknown`` if that is unclear."""

_POSITIVE: Final = frozenset({"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "Bool"})
"""Operators of conditions that are true if a value equals or matches the stated one; others test something else."""

_LITERAL = {"${*}": r"\*", "${?}": r"\?", "${$}": r"\$"}
_TOKEN = re.compile(r"\$\{[*?$]\}|[*?]")


def matches(pattern: str, text: str) -> bool:
    """Return whether a text matches a policy's pattern; case matters."""
    return _compiled(pattern).fullmatch(text) is not None


def matches_action(pattern: str, action: str) -> bool:
    """Return whether an action (``ec2:CreateVpc``) matches a pattern of actions; case does not matter."""
    return matches(pattern.lower(), action.lower())


def listed(value: Any) -> list[Any]:
    """Return a policy element as a list; an empty list for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def names_action(statement: Statement, action: str) -> bool:
    """Return whether a statement applies to an action, by ``Action`` or ``NotAction``."""
    if "NotAction" in statement:
        return not any(matches_action(str(each), action) for each in listed(statement["NotAction"]))
    return any(matches_action(str(each), action) for each in listed(statement.get("Action")))


def principals(statement: Statement) -> list[str]:
    """Return the accounts, roles and users that a statement names, ``*`` for everyone."""
    principal = statement.get("Principal")
    named = principal.get("AWS") if isinstance(principal, Mapping) else principal
    return [str(each) for each in listed(named)]


def names_service(statement: Statement, names: frozenset[str]) -> bool:
    """Return whether a statement applies to one of these services, as one for everyone does."""
    principal = statement.get("Principal")
    services = listed(principal.get("Service")) if isinstance(principal, Mapping) else []
    return "*" in principals(statement) or any(str(each).removesuffix(".cn") in names for each in services)


def names_account(statement: Statement, account: str) -> bool | None:
    """Return whether a statement applies to an account, None if it applies only to some of its roles and users."""
    named = [each for each in principals(statement) if each == account or arn_parts(each).account == account]
    whole = any(each == account or each.endswith(":root") for each in named)
    return whole or (None if named else False)


def is_positive(operator: str, *, may_lack: bool) -> bool:
    """Return whether an operator requires one of the stated values; with ``may_lack`` also with ``IfExists``."""
    return (operator.removesuffix("IfExists") if may_lack else operator) in _POSITIVE


def answers(
    policy: Mapping[str, Any] | None,
    action: str,
    arn: str,
    *,
    names: Callable[[Statement], bool | None],
    holds: Callable[[str, str, list[str]], bool | None],
) -> Answer:
    """Return whether the policy of the resource ``arn`` allows a principal an action.

    ``names`` says whether a statement's Principal is that principal, ``holds`` whether a condition (operator, key in
    lower case, values) is true for its request; each gives None if that is unknown. A statement that denies counts
    before those that allow (IAM user guide, "Policy evaluation logic"); NotPrincipal and NotResource count as unknown.
    """

    def fits(statement: Statement) -> bool | None:
        resources = [str(each) for each in listed(statement.get("Resource", arn))]
        if not names_action(statement, action) or not any(matches(each, arn) for each in resources):
            return False
        parts = [
            None if "NotResource" in statement else True,
            None if statement.get("Principal") is None else names(statement),
            *(
                holds(operator, key.lower(), [str(each) for each in listed(values)])
                for operator, wanted in (statement.get("Condition") or {}).items()
                for key, values in wanted.items()
            ),
        ]
        return False if False in parts else None if None in parts else True

    statements = listed((policy or {}).get("Statement"))
    allowed, denied = (
        [fits(each) for each in statements if each.get("Effect") == effect] for effect in ("Allow", "Deny")
    )
    if True in denied:
        return "denies"
    if True not in allowed and None not in allowed:
        return "silent"
    return "lets" if True in allowed and None not in denied else "unknown"


def all_of(found: list[Answer]) -> Answer:
    """Return the result for several actions together: the worst of their results."""
    order: tuple[Answer, ...] = ("denies", "silent", "unknown", "lets")
    return min(found, key=order.index)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts, end = [], 0
    for token in _TOKEN.finditer(pattern):
        parts += [re.escape(pattern[end : token.start()]), _LITERAL.get(token[0]) or {"*": ".*", "?": "."}[token[0]]]
        end = token.end()
    return re.compile("".join(parts) + re.escape(pattern[end:]), re.DOTALL)
