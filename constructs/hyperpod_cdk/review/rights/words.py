"""Principals, actions, resources and conditions of a policy in words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.rights.views import TOKEN, View

LISTED: Final = 6
"""The most items of a kind in one sentence; the report's lists contain them all."""

Principal = tuple[str, str]
"""Who, by kind: ``resource`` (a token), ``AWS``, ``account``, ``Service``, ``Federated``, ``but``, ..."""

_NEXT_TO_TOKEN = re.compile(rf"arn:[^:]*:[^:]*:([^:]*):([^:]*):[^$]*[:/]({TOKEN.pattern})(.*)")
_BUCKET = re.compile(r"arn:[\w-]+:s3:::([^$*:]+)")
_IAM_ARN = re.compile(r"arn:[\w-]+:(?:iam|sts)::(\d+|\$\{[^}]*\}):([\w-]+)/(.+)")
_ACCOUNT = re.compile(r"arn:[\w-]+:iam::(\d{12}|\$\{AWS::AccountId\}):root|(\d{12}|\$\{AWS::AccountId\})")
_POD_IDENTITY = "pods.eks.amazonaws.com"

_OPERATORS: Final = {
    "StringEquals": ("is", " or "),
    "StringEqualsIgnoreCase": ("is, in any case,", " or "),
    "StringLike": ("is like", " or "),
    "StringNotEquals": ("is not", " nor "),
    "StringNotEqualsIgnoreCase": ("is not, in any case,", " nor "),
    "StringNotLike": ("is not like", " nor "),
    "ArnEquals": ("is", " or "),
    "ArnLike": ("is like", " or "),
    "ArnNotEquals": ("is not", " nor "),
    "ArnNotLike": ("is not like", " nor "),
    "Bool": ("is", " or "),
    "IpAddress": ("is in", " or "),
    "NotIpAddress": ("is not in", " nor "),
    "NumericEquals": ("is", " or "),
    "NumericNotEquals": ("is not", " nor "),
    "NumericLessThan": ("is below", " or "),
    "NumericLessThanEquals": ("is at most", " or "),
    "NumericGreaterThan": ("is above", " or "),
    "NumericGreaterThanEquals": ("is at least", " or "),
    "DateLessThan": ("is before", " or "),
    "DateLessThanEquals": ("is no later than", " or "),
    "DateGreaterThan": ("is after", " or "),
    "DateGreaterThanEquals": ("is no earlier than", " or "),
}


def listed(items: Sequence[str], noun: str, *, word: str = "and") -> str:
    """Return a list in readable form; of more than LISTED only the first ones and how many more."""
    return joined(items, last=word, most=LISTED, more=f"more {noun}")


def count_of_stars(text: str) -> tuple[int, str]:
    """Order by width: wildcards first, then items with a wildcard, then by name."""
    return (0 if text == "*" else 1 if text.endswith(":*") else 2 if "*" in text else 3), text


def action(text: str) -> str:
    """Return an action as a noun: ``every s3 action (s3:*)``, ``s3:Get*``."""
    if not is_every(text):
        return text
    return "every action (*)" if text == "*" else f"every {text.partition(':')[0]} action ({text})"


def is_every(action_: str) -> bool:
    """Whether an action, or a verb of Kubernetes, is every one that exists, or every one of a service."""
    return action_.partition(":")[2] == "*" or action_ == "*"


def resource(view: View, text: str) -> str:
    """Return a policy's resource: ``bucket LifecycleScripts/*``, ``any resource (*)``, or the ARN as it is."""
    if text == "*":
        return "any resource (*)"
    found = TOKEN.match(text)
    if found:
        return f"{view.label((found[1], found[2]), with_stack=False)}{text[found.end() :]}"
    own = {"", view.account, "${AWS::AccountId}"}
    within = _NEXT_TO_TOKEN.fullmatch(text)
    if within and within[2] in own and "${" not in within[7]:
        return f"{view.label((within[4], within[5]), with_stack=False)}{within[7]}"
    if bucket := _BUCKET.match(text):
        return f"bucket {bucket[1]}{text[bucket.end() :]}"
    return shown(view, text)


def shown(view: View, text: str) -> str:
    """Return any text with the resources in it by name."""
    return TOKEN.sub(lambda found: view.label((found[1], found[2]), with_stack=False), text)


def principal(view: View, who: Principal) -> str:
    """Return the principal of a statement, external accounts as such."""
    kind, value = who
    words_ = _PRINCIPALS.get(kind)
    if words_ is not None:
        return words_(view, value)
    return f"anyone ({kind})" if value == "*" else f"{kind} {shown(view, value)}"


def _others(view: View, value: str) -> str:
    names = [principal(view, (kind, each)) for kind, each in json.loads(value)]
    return f"everyone but {listed(names, 'others')}"


def _labelled(view: View, value: str) -> str:
    found = TOKEN.fullmatch(value)
    return view.label((found[1], found[2])) if found else shown(view, value)


def _service(_: View, value: str) -> str:
    return f"service {value}{' (EKS Pod Identity)' if value == _POD_IDENTITY else ''}"


def _federated(view: View, value: str) -> str:
    found = TOKEN.fullmatch(value)
    if value == "*" or found:
        return "anyone (Federated)" if value == "*" else _labelled(view, value)
    return f"identity provider {shown(view, value.partition('-provider/')[2] or value)}"


def _identity(view: View, value: str) -> str:
    parts = _IAM_ARN.fullmatch(value)
    if value == "*" or not parts:
        return "anyone" if value == "*" else shown(view, value)
    whose = _whose(view, parts[1])
    name = f"{parts[2]} {shown(view, parts[3])}"
    return name if whose == "this account" else f"{name} of account {parts[1]} ({whose})"


_PRINCIPALS: Final[dict[str, Callable[[View, str], str]]] = {
    "but": _others,
    "resource": _labelled,
    "holders": lambda view, value: f"anyone who has {_labelled(view, value)}",
    "account": lambda view, value: f"account {value} ({_whose(view, value)})",
    "Service": _service,
    "Federated": _federated,
    "CanonicalUser": lambda _, value: f"canonical user {value}",
    "AWS": _identity,
}


def account_of(text: str) -> str | None:
    """Return the account that a principal represents as a whole, None for any other principal."""
    found = _ACCOUNT.fullmatch(text)
    return (found[1] or found[2]) if found else None


def is_external(view: View, who: Principal) -> bool:
    """Whether it is certainly of another account."""
    kind, value = who
    parts = _IAM_ARN.fullmatch(value) if kind == "AWS" else None
    account = value if kind == "account" else parts[1] if parts else ""
    return bool(account) and _whose(view, account) == "another account"


def is_outside(view: View, who: Principal) -> bool:
    """Whether it is everyone, or of an account that the template does not show to be its own."""
    kind, value = who
    if value == "*" or kind == "but":
        return True
    parts = _IAM_ARN.fullmatch(value) if kind == "AWS" else None
    account = value if kind == "account" else parts[1] if parts else ""
    return bool(account) and _whose(view, account) != "this account"


def is_of_this_account(view: View, value: str) -> bool:
    """Whether an ARN of IAM or STS is certainly of the account itself."""
    parts = _IAM_ARN.fullmatch(value)
    return parts is not None and _whose(view, parts[1]) == "this account"


def conditions(view: View, stated: Any) -> str | None:
    """Return a statement's conditions: ``aws:SecureTransport is false and aws:SourceAccount is 111122223333``."""
    if not stated:
        return None
    if not isinstance(stated, dict):
        return shown(view, str(stated))
    parts = []
    for operator, keys in sorted(stated.items()):
        for key, values in sorted(keys.items()) if isinstance(keys, dict) else ():
            parts.append(_condition(operator, key, [shown(view, value) for value in values]))
        if not isinstance(keys, dict):
            parts.append(f"{operator}: {shown(view, str(keys))}")
    return " and ".join(parts)


def _condition(operator: str, key: str, values: list[str]) -> str:
    quantifier, _, plain = operator.rpartition(":")
    name = plain.removesuffix("IfExists")
    subject = {"": key, "ForAnyValue": f"any value of {key}", "ForAllValues": f"every value of {key}"}.get(quantifier)
    where = ", if there is one," if plain != name else ""
    if name == "Null" and len(values) == 1 and values[0] in ("true", "false"):
        return f"{subject} is {'absent' if values[0] == 'true' else 'present'}"
    words = _OPERATORS.get(name)
    if words is None or subject is None or not values:
        return f"{operator}: {key}: {', '.join(values)}"
    verb, between = words
    return f"{subject}{where} {verb} {between.join(values)}"


def _whose(view: View, account: str) -> str:
    own = view.account
    if account in ("${AWS::AccountId}", own):
        return "this account"
    return "another account" if own else "which the template does not show from its own"


def unique(items: Iterable[str]) -> list[str]:
    """Return each item once, the widest first."""
    return sorted(set(items), key=count_of_stars)
