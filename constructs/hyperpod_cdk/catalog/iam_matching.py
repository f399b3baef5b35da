"""How IAM matches a policy's patterns with actions and names.

Policy patterns know ``*`` and ``?`` and nothing else; ``[`` stands for itself. Source: IAM user guide, "IAM JSON policy
elements" (Action, NotAction, and wildcards). A statement is a mapping as it stands in a policy document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

Statement = Mapping[str, Any]

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


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts, end = [], 0
    for token in _TOKEN.finditer(pattern):
        parts += [re.escape(pattern[end : token.start()]), _LITERAL.get(token[0]) or {"*": ".*", "?": "."}[token[0]]]
        end = token.end()
    return re.compile("".join(parts) + re.escape(pattern[end:]), re.DOTALL)
