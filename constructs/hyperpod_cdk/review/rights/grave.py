"""Which gains of access are high-risk, so that a person must approve them: by their actions, and their principals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final

from hyperpod_cdk.catalog import managed_policies
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.grave_actions import TAGGING, Where, grave_actions
from hyperpod_cdk.catalog.iam_matching import matches_action
from hyperpod_cdk.review.rights import conditions, kubernetes, words
from hyperpod_cdk.review.rights.statements import (
    Block,
    Heading,
    Permissions,
    Term,
    is_all_of_a_kind,
    is_any_resource,
)
from hyperpod_cdk.review.rights.views import TOKEN, View, is_unknown
from hyperpod_cdk.review.rights.words import Principal

_OF_SERVICE_ONLY: Final = ("kms:creategrant",)
"""Actions that AWS services need for themselves, if a condition limits them to that."""

_OWN_ACCOUNT_KEYS: Final = ("aws:sourceaccount", "aws:sourceowner", "aws:principalaccount", "kms:calleraccount")
_LIMITS_TARGET: Final = (
    *(
        "aws:resourcetag/",
        "ec2:resourcetag/",
        "s3:existingobjecttag/",
        "ssm:resourcetag/",
        "secretsmanager:resourcetag/",
    ),
    *("rds:db-tag/", "rds:cluster-tag/", "autoscaling:resourcetag/", "eks:clustername", "lambda:functionarn"),
    *("ecs:cluster", "dynamodb:leadingkeys", "route53:changeresourcerecordsetsnormalizedrecordnames"),
)
"""Keys with which a statement about any resource is limited to some: those of a tag, of a name.

Keys of an account are not among them: an identity's policy applies only to resources of its own account.
"""

_LIMITS_KIND: Final = (
    *_LIMITS_TARGET,
    "kms:viaservice",
    "kms:resourcealiases",
    "kms:requestalias",
    "kms:encryptioncontext:",
)
"""Keys that limit all resources of a kind to some: as above, or for a service that needs its own permissions."""

_WITHOUT_SOURCE: Final = frozenset({("", ("logs:createlogstream",))})
"""Actions for which no service states its source account: EventBridge creates a stream, and names its rule as it
writes.

Source: github.com/aws-samples/serverless-patterns/pull/618, github.com/hashicorp/terraform-provider-aws/issues/26628.
"""

_OWN_ARN_KEYS: Final = ("aws:sourcearn", "aws:principalarn", "kms:encryptioncontext:aws:logs:arn")
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
_WRITES: Final = ("create", "update", "patch")
_MAKES_PODS: Final = (
    *("pods", "replicationcontrollers", "deployments.apps", "daemonsets.apps", "statefulsets.apps"),
    *("replicasets.apps", "jobs.batch", "cronjobs.batch"),
)
_RBAC_KINDS: Final = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
_KUBERNETES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("secrets", _SECRET_VERBS),
    *((each, _WRITES) for each in _MAKES_PODS),
    *((each, ("create", "get")) for each in ("pods/exec", "pods/attach", "pods/portforward")),
    ("pods/ephemeralcontainers", ("update", "patch")),
    ("persistentvolumes", ("create", "update", "patch")),
    ("namespaces", ("update", "patch", "delete")),
    ("nodes", ("update", "patch", "delete")),
    ("configmaps", ("create", "update", "patch", "delete")),
    ("endpoints", ("create", "update", "patch")),
    ("endpointslices.discovery.k8s.io", ("create", "update", "patch")),
    *((f"{each}.rbac.authorization.k8s.io", _WRITES) for each in _RBAC_KINDS),
    ("apiservices.apiregistration.k8s.io", ("create", "update", "patch")),
    ("customresourcedefinitions.apiextensions.k8s.io", ("update", "patch", "delete")),
    ("*", ("create", "update", "patch", "delete", "deletecollection")),
    ("nodes/proxy", ("get", "create")),
    ("serviceaccounts/token", ("create",)),
    ("certificatesigningrequests.certificates.k8s.io/approval", ("update", "patch")),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", ("create", "update", "patch")),
    ("mutatingwebhookconfigurations.admissionregistration.k8s.io", ("create", "update", "patch")),
)
"""What RBAC's good practices list as ways to more permissions, if it applies to the whole cluster.

Source: kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks.
"""
_KUBERNETES_VERBS: Final = ("escalate", "bind", "impersonate")


def is_grave(view: View, heading: Heading, block: Block) -> bool:
    """Whether a new Allow statement gives access to other accounts, or lets a principal extend its own permissions."""
    if heading.kind == "cluster access":
        return _is_grave_in_cluster(heading, block)
    if heading.kind == "trust":
        return lets_strangers_in(view, heading)
    if heading.kind == "resource policy":
        if heading.through:
            # an endpoint's policy grants nothing by itself, but with all actions of a service, data can go to any
            # account
            is_any = any(kind == "but" or any(map(is_any_resource, names)) for kind, names in block.resources)
            return is_any and not heading.condition and _is_crowd_of_aws(heading.who)
        return lets_strangers_in(view, heading)
    if policies := [name for kind, names in block.actions if kind == "policy" for name in names]:
        return any(map(managed_policies.is_grave, policies))
    return escalates(block, heading.condition)


def _is_crowd_of_aws(who: Principal) -> bool:
    return who[1] == "*" or who[0] == "but"


def escalates(block: Block, condition: str = "") -> bool:
    """Whether it contains an action with which a principal can get more permissions, stop audit logs or delete data.

    ``condition`` is the statement's, as canonical JSON.
    """
    block = _as_wide_as_it_can_be(block)
    resources = [name for kind, names in block.resources if kind != "but" for name in names]
    if resources and all(":role/aws-service-role/" in each for each in resources):
        # only the service itself assumes a service-linked role
        return False
    where: list[Where] = ["everywhere"]
    if any(kind == "but" or any("*" in each for each in names) for kind, names in block.resources):
        where.append("pattern")
        stated = json.loads(condition) if condition else {}
        is_any = any(kind == "but" or any(map(is_any_resource, names)) for kind, names in block.resources)
        if is_any and not _keeps_to_some(stated, _LIMITS_TARGET):
            where.append("any")
        is_all = any(kind == "but" or any(map(is_all_of_a_kind, names)) for kind, names in block.resources)
        if is_all and not _keeps_to_some(stated, _LIMITS_KIND):
            where.append("kind")
        if _keeps_to_some(stated, ("kms:viaservice",)) or _is_for_services(stated):
            return _names_any(block.actions, tuple(where), but=_OF_SERVICE_ONLY)
    return _names_any(block.actions, tuple(where))


def _as_wide_as_it_can_be(block: Block) -> Block:
    """Replace a parameter whose value no template shows by a wildcard: in actions in its place, a resource as a
    whole."""
    actions = frozenset(
        # an unknown value for which every action is allowed can only be a resource; AWS policies are known by their
        # names
        (kind, names if kind else tuple("*" if is_unknown(each) else _VALUE.sub("*", each) for each in names))
        for kind, names in block.actions
    )
    resources = frozenset(
        (kind, names if kind else tuple("*" if is_unknown(each) else each for each in names))
        for kind, names in block.resources
    )
    return block._replace(actions=actions, resources=resources)


_VALUE: Final = re.compile(r"\$\{[^{}]+\}")


def _keeps_to_some(stated: Any, keys: tuple[str, ...]) -> bool:
    """Whether a condition allows only some resources: every value names some, and each request must have the key."""
    for operator, key, values in _limits(stated):
        if not key.startswith(keys):
            continue
        is_some = operator.removeprefix("ForAnyValue:").removeprefix("ForAllValues:") in _NARROWING
        if is_some and values and not any(set(each) <= {"*"} for each in values):
            return True
        if operator == "Null" and values == ["false"]:
            return True
    return False


def _is_for_services(stated: Any) -> bool:
    return any(
        operator == "Bool" and key == "kms:grantisforawsresource" and values == ["true"]
        for operator, key, values in _limits(stated)
    )


def decided_by_tags(*sides: Permissions) -> dict[str, frozenset[str]]:
    """Return the keys of tags that conditions of policies use, by the service whose actions change such tags.

    A tag of a principal is one of IAM's, or of the session; a key of a condition without a service is under ``*``.
    """
    found: dict[str, set[str]] = {}
    for side in sides:
        for heading, blocks in side.blocks.items():
            for service, keys in tags_of(heading, blocks).items():
                found.setdefault(service, set()).update(keys)
    return {service: frozenset(keys) for service, keys in found.items()}


def tags_of(heading: Heading, blocks: Iterable[Block]) -> dict[str, frozenset[str]]:
    """Return the keys of tags that a statement's condition uses, as ``decided_by_tags`` does for all."""
    found: dict[str, set[str]] = {}
    some = list(blocks)
    stated = " ".join((heading.condition, *(each for block in some for each in _resources(block))))
    for name, key in _TAG_KEYS.findall(stated):
        for service in _TAGS_OF_PRINCIPALS if name.lower() == "principaltag" else _services(some):
            found.setdefault(service, set()).add(key)
    return {service: frozenset(keys) for service, keys in found.items()}


def tagging(side: Permissions, decided: Mapping[str, frozenset[str]]) -> list[tuple[Heading, Block]]:
    """Return the statements that allow changes to tags of services whose tags conditions of policies use."""
    return [
        (heading, block)
        for heading, blocks in side.blocks.items()
        if decided and heading.kind == "permission" and heading.effect == "Allow"
        for block in blocks
        if any(_may_tag(block.actions, service) for service in decided)
    ]


def _resources(block: Block) -> Iterator[str]:
    # a reference of the templates is not a literal text
    return (each for _, names in block.resources for each in names if "Tag/" in each)


def _services(blocks: Iterable[Block]) -> set[str]:
    terms = [term for block in blocks for term in block.actions]
    return {"*" if kind == "but" else name.partition(":")[0].lower() for kind, names in terms for name in names}


def changes_deciding_tags(block: Block, condition: str, decided: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the keys of tags that conditions of policies use and that a statement allows to change, sorted.

    Not those that are set only at creation, that the statement does not allow, that must be the principal's own, or
    that are those of resources that the statement limits by the same tag.
    """
    limits = list(conditions.limits(condition))
    if any(each.key.lower().endswith(":createaction") for each in limits):
        return []
    keys = {key for service, some in decided.items() if _may_tag(block.actions, service) for key in some}
    return sorted(key for key in keys if not any(_keeps_from(each, key.lower()) for each in limits))


def _may_tag(terms: Iterable[Term], service: str) -> bool:
    return any(
        not all(any(matches_action(each, action) for each in names) for action in _tagging(service))
        if kind == "but"
        else any(_may_name_tagging(each, service) for each in names)
        if not kind
        else kind == "policy" and any(map(partial(_lets_tag, service), names))
        for kind, names in terms
    )


@cache
def _tagging(service: str) -> tuple[str, ...]:
    return tuple(f"{service}:{name}" for name in TAGGING)


@cache
def _may_name_tagging(pattern: str, service: str) -> bool:
    stated = "*" if is_unknown(pattern) else _VALUE.sub("*", pattern).lower()
    return any(conditions.overlap(stated, action) for action in _tagging(service))


def _lets_tag(service: str, policy: str) -> bool:
    tagged = managed_policies.tagging(policy)
    return service in tagged or (service == "*" and bool(tagged))


def _keeps_from(limit: conditions.Limit, key: str) -> bool:
    """Whether a line of a condition prevents a change of a tag, or a new value for it."""
    is_narrow = limit.operator in _NARROWING and not limit.is_if_exists
    name = limit.key.lower()
    if name == "aws:tagkeys":
        is_every = limit.quantifier != "ForAnyValue"
        return is_narrow and is_every and not any(conditions.overlap(each.lower(), key) for each in limit.values)
    if name == f"aws:requesttag/{key}":
        return is_narrow and all("aws:principaltag/" in each.lower() for each in limit.values)
    return is_narrow and name.endswith(f"resourcetag/{key}") and not any(set(each) <= {"*"} for each in limit.values)


_TAG_KEYS: Final = re.compile(
    r"(ResourceTag|PrincipalTag|ExistingObjectTag|BucketTag|db-tag|cluster-tag)/([^}\"]+)", re.IGNORECASE
)
_TAGS_OF_PRINCIPALS: Final = frozenset({"iam", "sts"})


def powerful(view: View, permissions: Permissions) -> frozenset[Principal]:
    """Return the identities that can get more permissions than their policies have; so can those that assume them."""
    return frozenset(
        heading.who
        for heading, blocks in permissions.blocks.items()
        if heading.kind == "permission" and heading.effect == "Allow"
        for block in blocks
        if is_grave(view, heading, block)
    )


def lets_strangers_in(view: View, heading: Heading) -> bool:
    """Whether a principal is everyone, of another account, or unknown to the templates, and no condition limits it.

    An identity provider is not counted if a condition names single subjects of it.
    """
    kind, value = heading.who
    stated = json.loads(heading.condition) if heading.condition else {}
    if kind == "Federated" and value != "*":
        return not _names_subjects(stated)
    if kind == "Service":
        return value == "*"
    return is_stranger(view, heading.who) and not _is_own_account(view, stated)


def acts_for_strangers(view: View, heading: Heading, block: Block) -> bool:
    """Whether an AWS service may do it for anyone who calls the service: no condition names the source.

    AWS calls it the confused deputy problem: its guides recommend ``aws:SourceArn`` or ``aws:SourceAccount`` in every
    resource policy that names a service. A resource whose name contains the own account is one that the service keeps
    for that account (the prefix ``AWSLogs/<account>/`` of a bucket).
    """
    if heading.who[0] != "Service" or block.actions <= _WITHOUT_SOURCE:
        return False
    stated = json.loads(heading.condition) if heading.condition else {}
    own = {view.account, "${AWS::AccountId}"} - {""}
    names = [name for kind, names in block.resources for name in (names if kind != "but" else ("",))]
    is_of_own = bool(names) and all(any(f"/AWSLogs/{each}/" in name for each in own) for name in names)
    return not is_of_own and not _is_own_account(view, stated)


def is_stranger(view: View, who: Principal) -> bool:
    """Whether it is everyone, of another account, or a principal whose account the templates do not show."""
    kind, value = who
    if kind in ("resource", "role", "user", "group", "holders") or (kind == "Service" and value != "*"):
        return False
    if words.is_outside(view, who) or kind not in ("AWS", "account"):
        return True
    # an ARN of the own account is known; a parameter, a unique ID or an ARN without account is not
    return kind == "AWS" and not words.is_of_this_account(view, value)


def dropped_condition(heading: Heading, block: Block, others: Iterable[tuple[Heading, Iterable[Block]]]) -> str:
    """Return the keys that the other side used as limits, and that this side does not state, or with a wider value.

    A wider value counts if it allows to do something, not only to read. Empty for none.
    """
    found = ""
    for other, blocks in others:
        if not other.condition or other._replace(condition="") != heading._replace(condition=""):
            continue
        shared = [names for each in blocks if (names := _overlapping(each, block))]
        if not shared:
            continue
        wider = conditions.wider(other.condition, heading.condition)
        if not wider:
            # one statement of the other side allowed all of it
            return ""
        dropped = [each.key for each in wider if each.how == "dropped"]
        is_more = heading.kind == "trust" or any(map(conditions.changes_something, shared))
        if dropped:
            found = found or " and ".join(dropped)
        elif is_more:
            found = found or f"a narrower {' and '.join(each.key for each in wider)}"
    return found


def _overlapping(limited: Block, block: Block) -> list[str]:
    """Return the actions that both blocks name, with their wildcards, if they share a resource; empty for none."""
    if not _share(limited.resources, block.resources):
        return []
    return [name for term in block.actions for name in _named(term) if _share({term}, limited.actions)]


def _share(terms: Iterable[Term], others: Iterable[Term]) -> bool:
    # for an "everything but" it is enough that it may
    return any(
        one[0] == "but"
        or other[0] == "but"
        or (one[0] == other[0] and any(conditions.overlap(name, each) for name in one[1] for each in other[1]))
        for one in terms
        for other in others
    )


def _named(term: Term) -> tuple[str, ...]:
    return ("*",) if term[0] == "but" else term[1]


def entry_is_grave(rights: Iterable[tuple[str, str, str]]) -> bool:
    """Whether an entry in an EKS cluster gives more than reading, or editing of namespaces without system
    components."""
    for kind, name, namespace in rights:
        if kind == "user" or (kind == "group" and name not in _NODE_GROUPS):
            return True
        if kind != "policy" or name in _HARMLESS_ENTRIES:
            continue
        if name not in _ENTRIES_IN_NAMESPACE or not namespace or _is_system(namespace):
            return True
    return False


def _is_grave_in_cluster(heading: Heading, block: Block) -> bool:
    kind, name = heading.who
    if kind.startswith("Kubernetes") and (name in ("system:anonymous", "system:masters") or _is_crowd(name)):
        return not _is_for_all(block)
    namespace = heading.namespace
    roles = [each for kind, names in block.actions if kind == "role" for each in names]
    if roles:
        harmless = _HARMLESS_ROLES if not namespace or _is_system(namespace) else _HARMLESS_ROLES | _IN_NAMESPACE
        return not harmless.issuperset(roles)
    verbs = {each for _, names in block.actions for each in names}
    resources = [kubernetes.kind_and_name(each) for _, names in block.resources for each in names]
    kinds = {kind for kind, _ in resources}
    if not verbs.isdisjoint(_KUBERNETES_VERBS):
        return True
    if "*" in kinds and "*" in verbs:
        return True
    if namespace and not _is_system(namespace):
        return False
    # a secret with a known name can still be read, in any namespace that has one
    named = {kind for kind, name in resources if name and "secrets" not in kind}
    return any(
        ("*" in kinds or what in kinds - named) and ("*" in verbs or not verbs.isdisjoint(few))
        for what, few in _KUBERNETES
    )


def _is_crowd(name: str) -> bool:
    return name in ("system:unauthenticated", "system:authenticated", "system:serviceaccounts")


def _is_for_all(block: Block) -> bool:
    roles = {each for kind, names in block.actions if kind == "role" for each in names}
    return bool(roles) and roles <= _HARMLESS_ROLES - {"ClusterRole view"}


def _is_system(namespace: str) -> bool:
    return namespace.startswith(_SYSTEM_NAMESPACES) or "*" in namespace


def _names_any(terms: Iterable[Term], where: tuple[Where, ...], but: tuple[str, ...] = ()) -> bool:
    """Whether the terms, with their wildcards, contain one of the high-risk actions."""
    return any(
        _is_among_all_but(names, where, but)
        if kind == "but"
        else not kind and any(_is_one(each, where, but) for each in names)
        for kind, names in terms
    )


@cache
def _is_one(pattern: str, where: tuple[Where, ...], but: tuple[str, ...]) -> bool:
    """Whether a pattern of actions matches one of them."""
    actions = grave_actions(*where)
    if "*" not in pattern and "?" not in pattern:
        return pattern.lower() in actions and pattern.lower() not in but
    return any(matches_action(pattern, each) for each in actions if each not in but)


@cache
def _is_among_all_but(patterns: tuple[str, ...], where: tuple[Where, ...], but: tuple[str, ...]) -> bool:
    """Whether one of them is matched by none of the patterns."""
    return any(
        not any(matches_action(pattern, each) for pattern in patterns)
        for each in grave_actions(*where)
        if each not in but
    )


def _limits(stated: Any) -> Iterator[tuple[str, str, list[str]]]:
    for operator, keys in stated.items() if isinstance(stated, dict) else ():
        for key, values in keys.items() if isinstance(keys, dict) else ():
            yield str(operator), str(key).lower(), [str(each) for each in values]


def _narrowing(stated: Any) -> Iterator[tuple[str, list[str]]]:
    """Return the keys whose every value a request must match; an IfExists also allows requests without such a key."""
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
    return bool(TOKEN.match(arn)) or arn_parts(arn).account in own
