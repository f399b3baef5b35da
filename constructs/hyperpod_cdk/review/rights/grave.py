"""Which gains of access are grave, so that a person must approve them: by what they permit, and to whom."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hyperpod_cdk.catalog import managed_policies
from hyperpod_cdk.catalog.iam_matching import matches_action
from hyperpod_cdk.review.rights import words
from hyperpod_cdk.review.rights.statements import Block, Heading, Permissions, Term
from hyperpod_cdk.review.rights.views import TOKEN, View
from hyperpod_cdk.review.rights.words import Principal

ESCALATES: Final = managed_policies.ESCALATES
"""Actions by which whoever has them can come to have more than a policy says, on whatever resource."""

ESCALATES_ON_ANY: Final = managed_policies.ESCALATES_ON_ANY
"""The same where the resource is a pattern: on one role, function or bucket they are what is meant."""

_OWN_ACCOUNT_KEYS: Final = ("aws:sourceaccount", "aws:sourceowner", "aws:principalaccount", "kms:calleraccount")
_OWN_ARN_KEYS: Final = ("aws:sourcearn", "aws:principalarn")
_NARROWING: Final = ("StringEquals", "StringLike", "StringEqualsIgnoreCase", "ArnEquals", "ArnLike")
_HARMLESS_ROLES: Final = frozenset(
    f"ClusterRole {each}" for each in ("view", "system:basic-user", "system:discovery", "system:public-info-viewer")
)
_IN_NAMESPACE: Final = frozenset({"ClusterRole edit"})
_HARMLESS_ENTRIES: Final = ("AmazonEKSViewPolicy",)
_ENTRIES_IN_NAMESPACE: Final = ("AmazonEKSEditPolicy",)
_NODE_GROUPS: Final = ("system:bootstrappers", "system:nodes")
_SYSTEM_NAMESPACES: Final = ("kube-", "*")
_SECRET_VERBS: Final = ("get", "list", "watch")
_KUBERNETES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("secrets", _SECRET_VERBS),
    ("nodes/proxy", ("get", "create")),
    ("serviceaccounts/token", ("create",)),
    ("certificatesigningrequests.certificates.k8s.io/approval", ("update", "patch")),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", ("create", "update", "patch")),
    ("mutatingwebhookconfigurations.admissionregistration.k8s.io", ("create", "update", "patch")),
)
"""What RBAC's good practices name as ways to more rights, where it holds for the whole cluster.

Source: kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks.
"""
_KUBERNETES_VERBS: Final = ("escalate", "bind", "impersonate")


def is_grave(view: View, heading: Heading, block: Block) -> bool:
    """Whether a statement that newly allows lets in strangers, or lets somebody give himself more than it says."""
    if heading.kind == "cluster access":
        return _is_grave_in_cluster(heading, block)
    if heading.kind == "trust":
        return lets_strangers_in(view, heading)
    if heading.kind == "resource policy":
        # what an endpoint's policy allows is no right yet
        return not heading.through and lets_strangers_in(view, heading)
    if policies := [name for kind, names in block.actions if kind == "policy" for name in names]:
        return any(map(managed_policies.is_grave, policies))
    return escalates(block)


def escalates(block: Block) -> bool:
    """Whether an action of it is one by which whoever has it can come to have more."""
    resources = [name for kind, names in block.resources if kind != "but" for name in names]
    if resources and all(":role/aws-service-role/" in each for each in resources):
        # only the service itself takes on a role that is linked to it
        return False
    is_any = any(kind == "but" or any("*" in each for each in names) for kind, names in block.resources)
    wanted = ESCALATES | ESCALATES_ON_ANY if is_any else ESCALATES
    return any(_names(block.actions, action) for action in wanted)


def powerful(view: View, permissions: Permissions) -> frozenset[Principal]:
    """Give the identities that can come to have more than their policies say, whoever takes them on can, too."""
    return frozenset(
        heading.who
        for heading, blocks in permissions.blocks.items()
        if heading.kind == "permission" and heading.effect == "Allow"
        for block in blocks
        if is_grave(view, heading, block)
    )


def lets_strangers_in(view: View, heading: Heading) -> bool:
    """Whether a principal is anybody, of another account, or unknown to the templates, and no condition limits it.

    An identity provider is no stranger where a condition names single subjects of it.
    """
    kind, value = heading.who
    stated = json.loads(heading.condition) if heading.condition else {}
    if kind == "Federated" and value != "*":
        return not _names_subjects(stated)
    if kind == "Service":
        return value == "*"
    return is_stranger(view, heading.who) and not _is_own_account(view, stated)


def is_stranger(view: View, who: Principal) -> bool:
    """Whether it is anybody, of another account, or somebody of whom the templates do not tell whose he is."""
    kind, value = who
    if kind in ("resource", "role", "user", "group", "holders") or (kind == "Service" and value != "*"):
        return False
    if words.is_outside(view, who) or kind not in ("AWS", "account"):
        return True
    # an ARN of the own account is told; a parameter, an unique id or an ARN without account is not
    return kind == "AWS" and not words.is_of_this_account(view, value)


def dropped_condition(heading: Heading, block: Block, others: Iterable[tuple[Heading, Iterable[Block]]]) -> str:
    """Give the keys by which the other side limited the same, and which this side does not state; empty for none."""
    keys = _keys(heading.condition)
    for other, blocks in others:
        is_same = other._replace(condition="") == heading._replace(condition="") and other.condition
        missing = [each for each in _written_keys(other.condition) if is_same and each.lower() not in keys]
        if missing and any(_overlaps(each, block) for each in blocks):
            return " and ".join(missing)
    return ""


def _overlaps(limited: Block, block: Block) -> bool:
    """Whether what was limited is, in part, what no longer is: an action of it, on one of its resources."""
    is_any = any("*" in names for _, names in limited.resources)
    return not limited.actions.isdisjoint(block.actions) and (
        is_any or not limited.resources.isdisjoint(block.resources)
    )


def entry_is_grave(rights: Iterable[tuple[str, str, str]], *, whole: str) -> bool:
    """Whether an entry into an EKS cluster gives more than to read, or to edit namespaces that hold no system."""
    for kind, name, scope in rights:
        if kind == "group" and name not in _NODE_GROUPS:
            return True
        if kind != "policy" or name in _HARMLESS_ENTRIES:
            continue
        namespace = scope.removeprefix("namespace ")
        if name not in _ENTRIES_IN_NAMESPACE or scope == whole or _is_system(namespace):
            return True
    return False


def _is_grave_in_cluster(heading: Heading, block: Block) -> bool:
    kind, name = heading.who
    if kind.startswith("Kubernetes") and (name in ("system:anonymous", "system:masters") or _is_crowd(name)):
        return not _is_for_all(block)
    is_whole = not heading.through.startswith("namespace ")
    namespace = heading.through.removeprefix("namespace ").partition(" ")[0]
    roles = [each for kind, names in block.actions if kind == "role" for each in names]
    if roles:
        harmless = _HARMLESS_ROLES if is_whole or _is_system(namespace) else _HARMLESS_ROLES | _IN_NAMESPACE
        return not harmless.issuperset(roles)
    verbs = {each for _, names in block.actions for each in names}
    kinds = {each.partition(" named ")[0] for _, names in block.resources for each in names}
    if not verbs.isdisjoint(_KUBERNETES_VERBS):
        return True
    if "*" in kinds and "*" in verbs:
        return True
    if not is_whole and not _is_system(namespace):
        return False
    named = {each for _, names in block.resources for each in names if " named " in each}
    return any(
        ("*" in kinds or what in kinds - {each.partition(" named ")[0] for each in named})
        and ("*" in verbs or not verbs.isdisjoint(few))
        for what, few in _KUBERNETES
    )


def _is_crowd(name: str) -> bool:
    return name in ("system:unauthenticated", "system:authenticated", "system:serviceaccounts")


def _is_for_all(block: Block) -> bool:
    roles = {each for kind, names in block.actions if kind == "role" for each in names}
    return bool(roles) and roles <= _HARMLESS_ROLES - {"ClusterRole view"}


def _is_system(namespace: str) -> bool:
    return namespace.startswith(_SYSTEM_NAMESPACES) or "*" in namespace


def _names(terms: Iterable[Term], action: str) -> bool:
    for kind, names in terms:
        if kind == "but":
            if not any(matches_action(each, action) for each in names):
                return True
        elif not kind and any(matches_action(each, action) for each in names):
            return True
    return False


def _keys(condition: str) -> set[str]:
    stated = json.loads(condition) if condition else {}
    return {key for _, key, _ in _limits(stated)}


def _written_keys(condition: str) -> list[str]:
    stated = json.loads(condition) if condition else {}
    keys = [
        str(key)
        for each in (stated.values() if isinstance(stated, dict) else ())
        if isinstance(each, dict)
        for key in each
    ]
    return sorted(set(keys))


def _limits(stated: Any) -> Iterator[tuple[str, str, list[str]]]:
    for operator, keys in stated.items() if isinstance(stated, dict) else ():
        for key, values in keys.items() if isinstance(keys, dict) else ():
            yield str(operator), str(key).lower(), [str(each) for each in values]


def _narrowing(stated: Any) -> Iterator[tuple[str, list[str]]]:
    """Give the keys whose every value a request must match; an IfExists lets through what has no such key."""
    for operator, key, values in _limits(stated):
        if operator.removeprefix("ForAnyValue:") in _NARROWING and values:
            yield key, values


def _names_subjects(stated: Any) -> bool:
    return any(
        key.endswith(":sub") and not any("*" in each or "?" in each for each in values)
        for key, values in _narrowing(stated)
    )


def _is_own_account(view: View, stated: Any) -> bool:
    own = {view.account, "${AWS::AccountId}"} - {""}
    for key, values in _narrowing(stated):
        if key in _OWN_ACCOUNT_KEYS and all(each in own for each in values):
            return True
        if key in _OWN_ARN_KEYS and all(_is_own_arn(each, own) for each in values):
            return True
    return False


def _is_own_arn(arn: str, own: set[str]) -> bool:
    parts = arn.split(":")
    return bool(TOKEN.match(arn)) or (len(parts) > 4 and parts[4] in own)
