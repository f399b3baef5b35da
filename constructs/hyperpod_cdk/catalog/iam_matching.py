"""How IAM matches a policy's patterns with actions and names.

Policy patterns know ``*`` and ``?`` and nothing else; ``[`` stands for itself. Source: IAM user guide, "IAM JSON policy
elements" (Action, NotAction, and wildcards). A statement is a mapping as it stands in a policy document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Literal

from hyperpod_cdk.catalog.arns import arn_parts

Statement = Mapping[str, Any]
Answer = Literal["lets", "denies", "silent", "unknown"]
"""What a policy says of somebody: ``silent`` where no statement lets him, ``unknown`` where it alone does not show."""

_POSITIVE: Final = frozenset({"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "Bool"})
"""Operators of conditions that hold where a value is, or fits, what is stated: others ask something else of it."""

_LITERAL = {"${*}": r"\*", "${?}": r"\?", "${$}": r"\$"}
_TOKEN = re.compile(r"\$\{[*?$]\}|[*?]")


def matches(pattern: str, text: str) -> bool:
    """Say whether a text is what a policy's pattern means, upper and lower case told apart."""
    return _compiled(pattern).fullmatch(text) is not None


def matches_action(pattern: str, action: str) -> bool:
    """Say whether an action (``ec2:CreateVpc``) is what a pattern of actions means; case does not matter."""
    return matches(pattern.lower(), action.lower())


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


def principals(statement: Statement) -> list[str]:
    """Give the accounts, roles and users that a statement names, ``*`` for everybody."""
    principal = statement.get("Principal")
    named = principal.get("AWS") if isinstance(principal, Mapping) else principal
    return [str(each) for each in listed(named)]


def names_service(statement: Statement, names: frozenset[str]) -> bool:
    """Say whether a statement is about one of these services, as it is about everybody."""
    principal = statement.get("Principal")
    services = listed(principal.get("Service")) if isinstance(principal, Mapping) else []
    return "*" in principals(statement) or any(str(each).removesuffix(".cn") in names for each in services)


def names_account(statement: Statement, account: str) -> bool | None:
    """Say whether a statement is about an account, None where it is about some of its roles and users alone."""
    named = [each for each in principals(statement) if each == account or arn_parts(each).account == account]
    whole = any(each == account or each.endswith(":root") for each in named)
    return whole or (None if named else False)


def is_positive(operator: str, *, may_lack: bool) -> bool:
    """Say whether an operator asks that a value is one of those stated; ``may_lack`` lets ``IfExists`` ask so, too."""
    return (operator.removesuffix("IfExists") if may_lack else operator) in _POSITIVE


def answers(
    policy: Mapping[str, Any] | None,
    action: str,
    arn: str,
    *,
    names: Callable[[Statement], bool | None],
    holds: Callable[[str, str, list[str]], bool | None],
) -> Answer:
    """Say whether the policy of the resource ``arn`` lets somebody do an action.

    ``names`` says whether a statement's Principal is he, ``holds`` whether a condition (operator, key in lower case,
    values) holds for what he asks; each gives None where nobody can tell. A statement that denies counts before those
    that allow (IAM user guide, "Policy evaluation logic"), NotPrincipal and NotResource tell nothing.
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
    """Give what holds for somebody who needs several actions: the worst of their answers."""
    order: tuple[Answer, ...] = ("denies", "silent", "unknown", "lets")
    return min(found, key=order.index)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts, end = [], 0
    for token in _TOKEN.finditer(pattern):
        parts += [re.escape(pattern[end : token.start()]), _LITERAL.get(token[0]) or {"*": ".*", "?": "."}[token[0]]]
        end = token.end()
    return re.compile("".join(parts) + re.escape(pattern[end:]), re.DOTALL)
