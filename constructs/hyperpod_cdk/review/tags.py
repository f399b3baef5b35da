"""Tags of existing resources that change and by which something else selects them: such a tag is not only a label.

Sources: IAM user guide, "Define permissions based on attributes with ABAC authorization" (``aws:ResourceTag`` and
``aws:PrincipalTag``); CloudFormation template reference, ``TargetTags`` of DLM policies, ``ListOfTags`` of backup
selections, ``Targets`` (``tag:``) of Systems Manager associations; EKS user guide, "Route TCP and UDP traffic with
Network Load Balancers" (``kubernetes.io/role/elb``); Karpenter's documentation, NodeClasses
(``karpenter.sh/discovery``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Literal

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.attention import Found
from hyperpod_cdk.review.model import Attention, Effect, ReasonKind, ResourceEffect
from hyperpod_cdk.review.nouns import noun
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import MISSING, ResourceChange
from hyperpod_cdk.templates.values import plain, resolved_properties

_IN_CONDITIONS: Final = re.compile(r"(?:ResourceTag|PrincipalTag)/([^}]+)", re.IGNORECASE)
_FILTER: Final = "tag:"
_KEY_OF_TAG: Final = ("Key", "TagKey", "ResourceTagKey", "ConditionKey")
_MARKS: Final = frozenset({"Tags", "TagSpecifications", "TagsToAdd", "VariableTags"})
"""Keys that contain the tags of a resource, or those that it gives to resources that it creates."""
_SELECTS_AT_TOP: Final = ("AWS::RBin::Rule",)
"""Types whose top-level tags are not their own."""
_KEEPS_COPIES: Final = ("AWS::Backup::", "AWS::DLM::", "AWS::RBin::")
_ABOUT: Final[dict[ReasonKind, Literal["access", "protection", "change"]]] = {
    ReasonKind.ACCESS: "access",
    ReasonKind.PROTECTION: "protection",
    ReasonKind.INTERRUPTION: "change",
}
_OF_OBJECTS: Final = ("AWS::S3::Bucket",)
"""Types whose tag filters select part of their content, not a resource."""
_BY_CONTROLLERS: Final = re.compile(r"(?:[\w.-]+\.)?(?:karpenter\.sh|kubernetes\.io|k8s\.io|k8s\.aws)/.+")
"""Tags by which controllers in a cluster find subnets, security groups, volumes and instances."""


def retagged(
    base: Assembly, head: Assembly, changes: Iterable[ResourceChange], resources: Sequence[ResourceEffect]
) -> list[Found]:
    """Find tags that are added, removed or changed on existing resources, and that something selects by.

    The causes are those of ``resources``. Selections are looked for on both sides: one that is added or removed
    together with the tag has its own entry, and the tag has one, too.
    """
    changed = [
        (each.before, each.after, tags)
        for each in changes
        if each.before is not None and each.after is not None and (tags := _changed(base, head, each))
    ]
    if not changed:
        return []
    selecting = _selecting(base, head)
    effects = {(each.stack, each.logical_id): each for each in resources}
    found = []
    for before, after, tags in changed:
        own = after.stack, after.logical_id
        for (top, key), (old, new) in tags.items():
            others = [each for each in selecting.get(key.casefold(), ()) if (each.stack, each.logical_id) != own]
            for kind, said in _reasons(before, key, others):
                item = Attention(
                    effect=Effect.IN_PLACE if kind is ReasonKind.INTERRUPTION else None,
                    about=_ABOUT[kind],
                    resource=f"{after.stack} / {after.name}",
                    property=f"{top}[{key}]",
                    before=plain(old) if old is not MISSING else None,
                    after=plain(new) if new is not MISSING else None,
                    message=said,
                    causes=_causes(effects.get(own), top, key),
                )
                found.append(Found(item=item, kind=kind))
    return found


def _reasons(tagged: Resource, key: str, others: Sequence[Resource]) -> Iterator[tuple[ReasonKind, str]]:
    """Yield what selects by a tag, and what follows, once for each kind of reason."""
    of = f"The tag {key} of the {noun(tagged.type)} changes"
    kept = [each for each in others if each.type.startswith(_KEEPS_COPIES)]
    judged = [each for each in others if each not in kept and _is_condition(each, key)]
    rest = [each for each in others if each not in kept and each not in judged]
    if judged:
        said = f"{of}, and conditions of {_names(judged)} use it to decide who may do what."
        yield ReasonKind.ACCESS, said
    if kept:
        yield ReasonKind.PROTECTION, f"{of}, and {_names(kept)} use it to select what they copy."
    if rest:
        yield ReasonKind.INTERRUPTION, f"{of}, and {_names(rest)} use it to select their targets."
    elif _BY_CONTROLLERS.fullmatch(key):
        yield ReasonKind.INTERRUPTION, f"{of}, and controllers in a cluster find it by this tag."


def _names(resources: Sequence[Resource]) -> str:
    return joined([f"{noun(each.type)} {each.name}" for each in resources])


def _causes(effect: ResourceEffect | None, top: str, key: str) -> tuple[Any, ...]:
    """Return the lines that caused the change of a tag: its own, or those of all tags if they change as a whole."""
    told = [each for each in (effect.properties if effect else ()) if each.path.startswith(top)]
    own = [each for each in told if each.path == top or key in each.path]
    return tuple(dict.fromkeys(line for each in own for line in each.causes))


def _changed(base: Assembly, head: Assembly, change: ResourceChange) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return the top-level tags of a resource that differ, by property and key, with their values."""
    if change.before is None or change.after is None:
        return {}
    tops = dict.fromkeys(each.steps[0] for each in change.properties if _is_own(change.after.type, each.steps[0]))
    found: dict[tuple[str, str], tuple[Any, Any]] = {}
    if not tops:
        return found
    sides = resolved_properties(base, change.before), resolved_properties(head, change.after)
    for top in tops:
        old, new = (_tags(side.get(top) if isinstance(side, dict) else None) for side in sides)
        for key in dict.fromkeys((*old, *new)):
            before, after = old.get(key, MISSING), new.get(key, MISSING)
            if before != after:
                found[top, key] = before, after
    return found


def _is_own(resource_type: str, top: str) -> bool:
    return top == "Tags" or (top.endswith("Tags") and resource_type not in _SELECTS_AT_TOP)


def _tags(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if isinstance(key, str)}
    if not isinstance(value, list):
        return {}
    return {
        each["Key"]: each.get("Value") for each in value if isinstance(each, dict) and isinstance(each.get("Key"), str)
    }


def _selecting(base: Assembly, head: Assembly) -> dict[str, list[Resource]]:
    """Return what selects by a tag, by the tag's key in lower case: IAM's condition keys are not case-sensitive."""
    found: dict[str, dict[tuple[str, str], Resource]] = {}
    for side in (base, head):
        for stack in side.stacks:
            for resource in stack.resources.values():
                for key in _keys(resource):
                    found.setdefault(key.casefold(), {})[resource.stack, resource.logical_id] = resource
    return {key: list(by_id.values()) for key, by_id in found.items()}


def _is_condition(resource: Resource, key: str) -> bool:
    stated = [each for steps, leaf in _leaves(resource) for text in (*steps, leaf) for each in _conditions(text)]
    return key.casefold() in [each.casefold() for each in stated]


def _keys(resource: Resource) -> Iterator[str]:
    for steps, leaf in _leaves(resource):
        # most values are below no key that concerns tags
        is_of_tags = "Tag" in " ".join(steps)
        for text in (*steps, leaf) if is_of_tags else (leaf,):
            yield from _conditions(text)
        if isinstance(leaf, str) and leaf.startswith(_FILTER):
            yield leaf.removeprefix(_FILTER)
        if not is_of_tags:
            continue
        if resource.type in _OF_OBJECTS or _MARKS.intersection(steps) or _is_own(resource.type, steps[0]):
            continue
        if steps[-1] in _KEY_OF_TAG and isinstance(leaf, str) and any("Tag" in step for step in steps):
            yield leaf
        # a map of tags has the tag keys as its keys, a list of tags has them in Key
        yield from (step for above, step in pairwise(steps) if "Tag" in above)


def _conditions(text: Any) -> list[str]:
    return _IN_CONDITIONS.findall(text) if isinstance(text, str) and "Tag/" in text else []


def _leaves(resource: Resource) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values in a resource's properties, with the keys above them; items of lists have no key."""
    pending: list[tuple[tuple[str, ...], Any]] = [((name,), value) for name, value in resource.properties.items()]
    while pending:
        steps, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*steps, str(key)), each) for key, each in value.items()]
        elif isinstance(value, list):
            pending += [(steps, each) for each in value]
        else:
            yield steps, value
