"""What a reviewer must look at: few lines, the most serious first, each with its resource and its cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hyperpod_cdk.catalog import create_only, updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.changes.effects import rank
from hyperpod_cdk.review.model import (
    EXPORT_PREFIX,
    Access,
    Attention,
    BlastRadius,
    Capacity,
    Cause,
    Change,
    Cost,
    Effect,
    Fabric,
    Grant,
    LeftBehind,
    Paid,
    Part,
    PlanFee,
    PlanSeats,
    Policy,
    PolicyFinding,
    PropertyEffect,
    Reach,
    ReasonKind,
    ResourceEffect,
    Unpriced,
)
from hyperpod_cdk.review.nouns import count, noun, only_if, place
from hyperpod_cdk.review.retention import lifted
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import MISSING, ResourceChange
from hyperpod_cdk.templates.groups import unknown_condition
from hyperpod_cdk.templates.values import Unknown, plain

JUMP_SHARE: Final = 0.1
JUMP_DOLLARS: Final = 100.0
"""A cost increase is listed from this share of the cost on, and from this number of US dollars per month on."""

MONTHLY_INCREASE_USD: Final = 1000.0
"""A cost increase of this number of US dollars per month needs approval, unless ``review.yaml`` sets another
threshold."""

_ASKS: Final = {
    Effect.REPLACED: ReasonKind.REPLACEMENT,
    Effect.DELETED: ReasonKind.DELETION,
    Effect.REFUSED: ReasonKind.REFUSAL,
    Effect.INTERRUPTED: ReasonKind.INTERRUPTION,
}
_GOES_ON: Final = (Effect.INTERRUPTED, Effect.UNKNOWN, Effect.IN_PLACE, Effect.ADDED)
"""Effects on a resource that do not exclude that another property changes in place, or affects existing resources."""

_OPAQUE: Final = ("AWS::CloudFormation::Stack", "AWS::CloudFormation::StackSet", "AWS::CloudFormation::Macro")
"""Types whose template is in another file: what a change of a property does is unknown, whatever the schema states."""

_GRAVE: Final = (Effect.REPLACED, Effect.DELETED, Effect.REFUSED, Effect.INTERRUPTED, Effect.UNKNOWN)
_WEIGHS_LIKE: Final = {
    "quota": Effect.REFUSED,
    "plan": Effect.REFUSED,
    "addresses": Effect.REFUSED,
    "fabric": Effect.INTERRUPTED,
    "policy": Effect.UNKNOWN,
    "protection": Effect.UNKNOWN,
    "access": Effect.UNKNOWN,
    "cost": Effect.IN_PLACE,
}
"""The position of other entries among the effects on resources."""

_FEW: Final = 3
"""Up to this number of similar entries are listed one by one; more are combined in one line."""

_PERMITS: Final = re.compile(
    r"Polic|Principal|Permission|Trust|Access|Public|Cidr|Role|SecurityGroup|UserGroup|GroupSet|GroupName|GroupId|User"
    r"|\bGroups\b|KubernetesGroups|Manifest|Values|Ingress|Egress|Routes?\b|Image|Owner|Endpoint|Peer|Account|Kubernetes|Origins|Website|Replication|AuthType|Grant|Share|Subject|Url|ClientId"
    r"|Code|Content|Layers|SourceObjectKeys|SourceS3Uri|DestinationBucketKeyPrefix|UserData"
)
"""Properties of any type that can grant access to a principal, an address range or other code, if no rule covers the
type."""

_COSTS: Final = re.compile(
    r"(?:Count|Counts|Types?|Capacity\w*|Requirements|Size\w*|Iops\w*|IOPS\w*|Throughput\w*|Storage\w*|Plan\w*|Support\w*"
    r"|Tiers?|Number\w*|Nodes?|Shards?\w*|Units?|Mode|Class|AZ|Retention\w*|Concurrency\w*|Executions|Desired\w*|Max\w*|\])$"
)
"""The ends of properties that decide how much of something is paid for; also a whole item of a list."""

_ITEM: Final = re.compile(r"\[[^\]]*\]")

_UNPROTECTED_BY: Final = (
    "DeletionProtection",
    "DeletionProtectionEnabled",
    "DisableApiTermination",
    "EnableTerminationProtection",
)
_INSTEAD: Final = {"SqsManagedSseEnabled": "KmsMasterKeyId"}
"""Switches that another property turns off because it protects better (SQS API, SetQueueAttributes: one per queue)."""
_KEPT: Final = ("Retain", "RetainExceptOnCreate", "Snapshot")
_ONCE: Final = {"DeletionPolicy": "is removed from its stack", "UpdateReplacePolicy": "is replaced"}


@dataclass(frozen=True, kw_only=True)
class Found:
    """One entry to look at. ``kind`` is why a person must approve it, or None if it is only listed.

    ``resources`` are all resources that a combined line is about.
    """

    item: Attention
    kind: ReasonKind | None = None
    resources: tuple[str, ...] = ()


def findings(
    radius: BlastRadius,
    *,
    capacity: Capacity,
    cost: Cost,
    access: Access,
    fabric: Fabric,
    policy: Policy,
    word: str,
    protection: Sequence[Attention] = (),
    settings: Sequence[Found] = (),
    monthly_increase_usd: float = MONTHLY_INCREASE_USD,
) -> tuple[Found, ...]:
    """Return what to look at, the most serious first, and for each entry whether a person must approve it.

    Resources that change only because of another change, and contain neither data nor nodes, are combined in one line.
    ``word`` is the environment's argument in commands that a message names. ``settings`` are the entries about the
    deployment itself (``review.delivery``). ``monthly_increase_usd`` is the increase in US dollars per month from which
    approval is needed.
    """
    is_first = _is_first(radius)
    found = [
        *_of_resources(radius.resources),
        *(Found(item=each, kind=ReasonKind.PROTECTION) for each in protection),
        *settings,
        *_left_behind(radius),
        *_of_fabric(fabric),
        *_of_capacity(capacity, word),
        *_of_access(access, _Causes(radius), is_first=is_first),
        *_of_policy(policy),
        *_of_cost(cost, _Causes(radius), monthly_increase_usd),
    ]
    return tuple(sorted(found, key=_weight))


_GOES: Final = frozenset({Effect.REPLACED, Effect.DELETED, Effect.LEFT_BEHIND, Effect.ADDED})


class _Causes:
    """The lines that caused a resource's change of access or cost: only those of properties that concern it.

    If only other properties have a line, no cause is given: a wrong cause misleads, a missing one only costs a search.
    """

    def __init__(self, radius: BlastRadius) -> None:
        self._of = {(each.stack, each.logical_id): each for each in radius.resources}

    def of_access(self, given: Grant | Reach) -> tuple[Cause, ...]:
        return self._some(given, _PERMITS)

    def stays(self, given: Grant) -> bool:
        """Whether the resource that grants or granted access remains, so that no deletion is reported for it."""
        effect = self._of.get((given.stack, given.logical_id))
        return effect is None or effect.effect not in _GOES

    def of_cost(self, paid: Iterable[Paid]) -> tuple[Cause, ...]:
        found = [cause for each in paid for cause in self._some(each, _COSTS, each.item)]
        return tuple(dict.fromkeys(found))

    def _some(self, about: Grant | Reach | Paid, else_: re.Pattern[str], item: str = "") -> tuple[Cause, ...]:
        effect = self._of.get((about.stack, about.logical_id))
        if effect is None:
            return ()
        if not effect.properties:
            return effect.causes
        told = [
            each
            for each in effect.properties
            if (not item or f"[{item}]" in each.path)
            and (
                any(_is_by(each, name) for name in about.properties)
                if about.properties
                # the name of an item is chosen freely
                else else_.search(_ITEM.sub("[]", each.path))
            )
        ]
        return tuple(dict.fromkeys(line for each in told for line in each.causes))


def _is_by(change: PropertyEffect, name: str) -> bool:
    """Whether a property's change is one of the property with that name, as in ``Grant.properties``."""
    above, _, last = name.rpartition(".")
    steps = _ITEM.sub("", change.path).split(".")
    if above and above not in steps:
        return False
    # an item that is added or removed as a whole, or a part of it, contains the property
    is_item = change.path.endswith("]") and len(steps) == 1 and steps != ["Tags"]
    return last in steps or is_item or any(last in (value or "") for value in (change.before, change.after))


def lines_of(resource: ResourceEffect) -> tuple[Cause, ...]:
    """Return the lines that caused the effect on a resource: those of the properties that have this effect."""
    if not resource.properties:
        return resource.causes
    lines = [line for each in resource.properties if each.effect is resource.effect for line in each.causes]
    return tuple(dict.fromkeys(lines))


def _is_first(radius: BlastRadius) -> bool:
    return bool(radius.resources) and all(each.effect is Effect.ADDED for each in radius.resources)


def counted_as(each: ResourceEffect) -> Effect:
    """Return the effect that a resource counts as: one that is created again without harm counts as changed in
    place."""
    if each.effect in (Effect.REPLACED, Effect.DELETED) and updates.is_made_anew_without_harm(each.type):
        return Effect.IN_PLACE
    return each.effect


def policy_errors(policy: Policy) -> list[PolicyFinding]:
    """Return the policy's errors that are new as far as is known, and that no acknowledgment covers."""
    return [
        each
        for each in policy.findings
        if each.severity == "error" and each.status != "resolved" and not each.stood and each.suppressed is None
    ]


def lifted_protection(
    base: Assembly, head: Assembly, changes: Iterable[ResourceChange], resources: Sequence[ResourceEffect] = ()
) -> list[Attention]:
    """Find protection against deletion that is removed; the causes are those of ``resources``."""
    found = [*_open_stacks(base, head), *_shown_values(base, head)]
    causes = {(each.stack, each.logical_id): each for each in resources}
    others: list[tuple[Resource, list[Attention]]] = []
    for change in changes:
        if change.before is None or change.after is None:
            continue
        after = change.after
        told = [*_open_policies(change, change.before, after), *_switched_off(change, after)]
        effect = causes.get((after.stack, after.logical_id))
        condition = unknown_condition(head, after)
        lines = [
            each.model_copy(
                update={
                    "causes": _of_properties(effect, paths),
                    "message": _begun(only_if(condition, each.message)),
                    "is_certain": each.is_certain and condition is None,
                }
            )
            for each, paths in told
        ]
        if after.type in updates.STATEFUL:
            found += lines
        elif lines:
            others.append((after, lines))
    if len(others) <= _FEW:
        return [*found, *(line for _, lines in others for line in lines)]
    kinds = _kinds(resource.type for resource, _ in others)
    together = Attention(
        effect=None,
        about="protection",
        resource=_and_more(f"{others[0][0].stack} / {others[0][0].name}", len(others)),
        message=f"{kinds}, which contain neither data nor nodes, lose their protection against deletion.",
        causes=tuple(dict.fromkeys(cause for _, lines in others for line in lines for cause in line.causes)),
    )
    return [*found, together]


def _of_properties(effect: ResourceEffect | None, paths: Collection[str]) -> tuple[Cause, ...]:
    """Return the lines that caused the changes of these properties of a resource, which are named by their paths."""
    if effect is None or not effect.properties:
        return effect.causes if effect else ()
    return tuple(dict.fromkeys(line for each in effect.properties if each.path in paths for line in each.causes))


def _open_stacks(base: Assembly, head: Assembly) -> Iterator[Attention]:
    names = [
        stack.name
        for stack in head.stacks
        if not stack.termination_protection
        and stack.name in base.by_name
        and base.by_name[stack.name].termination_protection
    ]
    if names:
        who = f"The stack {names[0]} loses its" if len(names) == 1 else f"The stacks {joined(names)} lose their"
        yield Attention(
            effect=None,
            about="protection",
            resource=_and_more(names[0], len(names)),
            property="TerminationProtection",
            before="true",
            after="false",
            message=f"{who} termination protection: any later delete-stack succeeds.",
        )


def _shown_values(base: Assembly, head: Assembly) -> Iterator[Attention]:
    """Find parameters whose values CloudFormation has hidden and no longer hides."""
    for stack in head.stacks:
        old = base.by_name.get(stack.name)
        for name, each in stack.parameters.items() if old is not None else ():
            was = old.parameters.get(name) if old is not None else None
            if isinstance(was, dict) and _is_hidden(was) and not (isinstance(each, dict) and _is_hidden(each)):
                yield Attention(
                    effect=None,
                    about="protection",
                    resource=stack.name,
                    property=f"Parameters.{name}.NoEcho",
                    before="true",
                    after="false",
                    message=(
                        f"The value of parameter {name} is no longer hidden: everyone who can describe the stack "
                        "can read it."
                    ),
                )


def _is_hidden(parameter: dict[str, Any]) -> bool:
    return str(parameter.get("NoEcho", "")).lower() == "true"


_Lifted = tuple[Attention, Collection[str]]
"""The entry, and the paths of the properties that it is about."""


def _open_policies(change: ResourceChange, before: Resource, after: Resource) -> Iterator[_Lifted]:
    kept_by_default = {"DeletionPolicy"} if after.deletion_policy in _KEPT else set()
    changed = [
        replace(each, before=before.deletion_policy) if each.path == "DeletionPolicy" else each
        for each in change.attributes
    ]
    lifted = [
        each
        for each in changed
        if each.path in _ONCE
        and each.before in _KEPT
        and (
            (each.after not in _KEPT and (each.after is not MISSING or each.path not in kept_by_default))
            or (each.before != "Snapshot" and _is_snapshot(each.after, after, each.path))
        )
    ]
    if not lifted:
        return
    with_it = " with its content" if after.type in updates.STATEFUL else ""
    once = joined((_ONCE[each.path] for each in lifted), last="or")
    kept = "a snapshot of it" if all(each.before == "Snapshot" for each in lifted) else "it"
    is_kept = [_is_snapshot(each.after, after, each.path) for each in lifted]
    left = [plain(each.after) if isinstance(each.after, str) else None for each in lifted]
    # a function, which a parameter or a condition decides
    is_certain = not any(isinstance(each.after, dict) for each in lifted)
    is_deleted = "is deleted" if is_certain else "may be deleted"
    but = ", and a snapshot of it is kept" if all(is_kept) else ""
    item = Attention(
        effect=None,
        about="protection",
        resource=f"{after.stack} / {after.name}",
        property=joined([each.path for each in lifted]),
        before=joined(list(dict.fromkeys(plain(each.before) for each in lifted))),
        after=joined(list(dict.fromkeys(each or "none" for each in left))) if any(left) else None,
        message=f"The {noun(after.type)} {is_deleted}{with_it} once it {once}{but}; until now {kept} was kept.",
        is_certain=is_certain,
    )
    yield item, [each.path for each in lifted]


def _is_snapshot(policy: Any, after: Resource, name: str) -> bool:
    """Whether a policy keeps only a snapshot: by its value or, if it was removed, by the type's default."""
    return policy == "Snapshot" or (
        policy is MISSING and name == "DeletionPolicy" and after.deletion_policy == "Snapshot"
    )


def _switched_off(change: ResourceChange, after: Resource) -> Iterator[_Lifted]:
    for each in change.properties:
        for path, old, new, said in lifted(each, after.type):
            if _INSTEAD.get(path) in after.properties:
                continue
            is_switch = path.rpartition(".")[2] in _UNPROTECTED_BY
            is_unknown_before = isinstance(old, Unknown)
            is_certain = not is_unknown_before and not isinstance(new, Unknown)
            loses = "loses" if is_certain else "may lose"
            was = None if old is MISSING else plain(old)
            item = Attention(
                effect=None,
                about="protection",
                resource=f"{after.stack} / {after.name}",
                property=path,
                before="true" if is_switch and not is_unknown_before else was,
                after=plain(new) if isinstance(new, bool | int | str) else None,
                message=f"The {noun(after.type)} {loses} its protection against deletion."
                if is_switch
                else f"The {noun(after.type)} {loses} protection: {said}.",
                is_certain=is_certain,
            )
            yield item, [path]


def _weight(found: Found) -> float:
    """Order entries by what they do: loss, access, interruption, cost, then unknown effects."""
    if found.kind in (ReasonKind.ACCESS, ReasonKind.PROTECTION):
        return rank(Effect.INTERRUPTED) - 0.5
    if found.kind is ReasonKind.COST:
        return rank(Effect.INTERRUPTED) + 0.5
    return rank(found.item.effect or _WEIGHS_LIKE[found.item.about])


def _place(each: ResourceEffect) -> tuple[int, bool, bool]:
    """Order equally serious entries: foundations of other resources first, then direct changes, then resources with
    data."""
    told = [change for change in each.properties if change.effect in _GRAVE]
    return place(each.type), bool(told) and all(change.is_indirect for change in told), not each.stateful


def _of_resources(resources: Sequence[ResourceEffect]) -> Iterator[Found]:
    folded: dict[Effect | None, list[tuple[ResourceEffect, Found]]] = {}
    for each in sorted(resources, key=_place):
        lines = list(_of_resource(each))
        yield from _interrupted_in_place(each)
        if not _merely_follows(each):
            yield from lines
            continue
        for line in lines:
            folded.setdefault(line.item.effect, []).append((each, line))
    for effect, together in folded.items():
        alike = {(each.stack, each.logical_id): each for each, _ in together}
        if len(alike) > _FEW:
            names = tuple(_label(each) for each in alike.values())
            yield Found(item=_of_many(effect, list(alike.values())), kind=together[0][1].kind, resources=names)
        else:
            yield from (line for _, line in together)


def _interrupted_in_place(each: ResourceEffect) -> Iterator[Found]:
    """Find resources that remain but are not reachable, or are slower for hours, while they change."""
    for change in each.properties:
        # settings that follow a resource that is created again apply to that one; the earlier one no longer exists
        follows = change.is_indirect and not each.stateful
        if change.interrupts and change.effect is Effect.IN_PLACE and each.effect in _GOES_ON and not follows:
            item = Attention(
                effect=Effect.IN_PLACE,
                resource=_label(each),
                property=change.path,
                before=change.before,
                after=change.after,
                message=_of(each, change.reason),
                is_certain=each.is_certain,
                causes=change.causes,
            )
            yield Found(item=item, kind=ReasonKind.INTERRUPTION)


def _kind(each: ResourceEffect, effect: Effect, of: Part = "property") -> ReasonKind | None:
    if effect is Effect.UNKNOWN:
        is_asked = each.stateful or of != "property" or each.type.startswith("AWS::")
        return ReasonKind.UNKNOWN if is_asked else None
    return _ASKS.get(effect)


def _merely_follows(each: ResourceEffect) -> bool:
    """Whether all effects on it follow from other resources, or from its removal from the template."""
    told = _grave_changes(each)
    is_gone = not told and each.effect is Effect.DELETED
    return not each.stateful and (is_gone or (bool(told) and all(change.is_indirect for change in told)))


def _grave_changes(each: ResourceEffect) -> list[PropertyEffect]:
    # a resource that counts as a change in place can still be refused, if a stack imports its exports
    grave = _GRAVE if counted_as(each) in _GRAVE else (Effect.REFUSED,)
    return [change for change in each.properties if change.effect in grave]


def _of_resource(each: ResourceEffect) -> Iterator[Found]:
    told = _grave_changes(each)
    if each.type in _OPAQUE and each.effect in (Effect.IN_PLACE, Effect.ADDED):
        yield _unknown(each, "It deploys another template, which was not read.")
    if updates.is_foreign(each.type) and each.effect in (Effect.ADDED, Effect.IN_PLACE):
        yield _unknown(each, "Code of another provider creates it: no template shows what it does in the account.")
    elif each.effect is Effect.ADDED and each.type.startswith("AWS::") and create_only.update_rule(each.type) is None:
        schemas = f"No schema of {create_only.SCHEMAS_AS_OF.isoformat()}"
        yield _unknown(each, f"{schemas} has such a type: it is unknown what it creates.")
    if counted_as(each) in _GRAVE and all(rank(change.effect) > rank(each.effect) for change in told):
        yield Found(
            item=Attention(
                effect=each.effect,
                resource=_label(each),
                message=each.summary,
                is_certain=each.is_certain,
                causes=lines_of(each),
            ),
            kind=_kind(each, each.effect),
        )
    alike: dict[Effect, list[PropertyEffect]] = {}
    for change in told:
        alike.setdefault(change.effect, []).append(change)
    for effect, changes in alike.items():
        for first, also in _lines(changes):
            item = Attention(
                effect=effect,
                resource=_label(each),
                property=first.path,
                before=first.before,
                after=first.after,
                message=_of(each, first.reason + also),
                is_certain=each.is_certain,
                causes=first.causes,
            )
            yield Found(item=item, kind=_kind(each, effect, first.of))


def _unknown(each: ResourceEffect, said: str) -> Found:
    item = Attention(
        effect=Effect.UNKNOWN,
        resource=_label(each),
        message=_of(each, said),
        is_certain=each.is_certain,
        causes=each.causes,
    )
    return Found(item=item, kind=_kind(each, Effect.UNKNOWN))


def _of(each: ResourceEffect, said: str) -> str:
    """Return a sentence about a resource, which may not exist."""
    return _begun(only_if(each.condition, said))


def _label(each: ResourceEffect) -> str:
    return f"{each.stack} / {each.name}"


def _lines(changes: Sequence[PropertyEffect]) -> Iterator[tuple[PropertyEffect, str]]:
    """Return the changes that have a line each, and the text about the others.

    Direct changes have a line each; those that follow from other resources are combined, and exports are, too.
    """
    exports = [change for change in changes if change.of == "export"]
    properties = [change for change in changes if change.of != "export"]
    indirect = [change for change in properties if change.is_indirect]
    direct = [change for change in properties if not change.is_indirect]
    if direct and direct[0].effect is Effect.REPLACED:
        # other reasons for a replacement do not matter any more
        yield direct[0], _besides(indirect)
        direct, indirect = direct[1:], []
    yield from ((change, "") for change in direct)
    if indirect:
        first, *more = indirect
        same = [change.path for change in more if change.reason == first.reason]
        so = f" So {'does' if len(same) == 1 else 'do'} {_some(same)}." if same else ""
        yield first, so + _besides([change for change in more if change.reason != first.reason])
    if exports:
        names = [change.path.removeprefix(EXPORT_PREFIX) for change in exports[1:]]
        is_one = len(names) == 1
        said = f" The export{'' if is_one else 's'} {_some(names)} {'is' if is_one else 'are'} imported as well."
        yield exports[0], said if names else ""


def _besides(changes: Sequence[PropertyEffect]) -> str:
    if not changes:
        return ""
    verb = "refers" if len(changes) == 1 else "refer"
    return f" In addition, {_some([change.path for change in changes])} {verb} to resources that are replaced."


def _some(names: Sequence[str]) -> str:
    return joined(names, most=_FEW)


def _of_many(effect: Effect | None, together: Sequence[ResourceEffect]) -> Attention:
    return Attention(
        effect=effect,
        resource=_and_more(f"{together[0].stack} / {together[0].name}", len(together)),
        message=(
            f"{_kinds(each.type for each in together)}, which contain neither data nor nodes: the blast radius "
            "lists them."
        ),
        causes=tuple(dict.fromkeys(cause for each in together for cause in lines_of(each))),
    )


def _and_more(first: str, number: int) -> str:
    return f"{first} and {number - 1} more" if number > 1 else first


def _kinds(types: Iterable[str]) -> str:
    return joined([count(number, kind) for kind, number in Counter(noun(each) for each in types).items()])


def _left_behind(radius: BlastRadius) -> Iterator[Found]:
    of = {(each.stack, each.logical_id): each for each in radius.resources}
    alike: dict[tuple[str, str, bool | None, bool], list[LeftBehind]] = {}
    for each in radius.left_behind:
        effect = of.get((each.stack, each.logical_id))
        # a resource that is replaced has its own line, which needs approval
        is_lost = effect is not None and effect.stateful and effect.effect is Effect.LEFT_BEHIND
        # what costs nothing and contains nothing is listed in the blast radius only
        if is_lost or each.costs_money is not False:
            alike.setdefault((each.stack, each.why, each.costs_money, is_lost), []).append(each)
    for (stack, why, costs_money, is_lost), together in alike.items():
        who = "It" if len(together) == 1 else "Each"
        costs = {True: f" {who} costs money.", None: f" {who} may cost money.", False: ""}[costs_money]
        names = tuple(f"{stack} / {each.name}" for each in together)
        lines = [lines_of(of[stack, one.logical_id]) for one in together if (stack, one.logical_id) in of]
        item = Attention(
            effect=Effect.LEFT_BEHIND,
            about="left behind",
            resource=_and_more(names[0], len(together)),
            message=f"{_ended(why)}{costs}",
            causes=tuple(dict.fromkeys(line for each in lines for line in each)),
        )
        yield Found(item=item, kind=ReasonKind.DELETION if is_lost else None, resources=names)
    told = {(each.stack, each.logical_id) for each in radius.left_behind}
    for place_of, one in of.items():
        if one.stateful and one.effect is Effect.LEFT_BEHIND and place_of not in told:
            item = Attention(
                effect=Effect.LEFT_BEHIND,
                about="left behind",
                resource=f"{one.stack} / {one.name}",
                message=one.summary,
                causes=one.causes,
            )
            yield Found(item=item, kind=ReasonKind.DELETION)


def _of_fabric(fabric: Fabric) -> Iterator[Found]:
    for each in fabric.subjects:
        for proof in each.proofs:
            is_new = proof.name in (*each.newly_broken, *each.newly_unknown)
            if proof.result == "broken" or is_new:
                item = Attention(
                    effect=None,
                    about="fabric",
                    resource=each.subject,
                    property=proof.name,
                    before="holds" if is_new else None,
                    after=proof.result,
                    message=_begun(proof.detail) if proof.detail else "",
                )
                yield Found(item=item, kind=ReasonKind.PROOF if is_new else None)


def _of_capacity(capacity: Capacity, word: str) -> Iterator[Found]:
    for quota in capacity.quotas:
        if quota.result == "short":
            when = f"recorded on {quota.recorded_on}" if quota.recorded_on else "AWS's default"
            item = Attention(
                effect=None,
                about="quota",
                resource=quota.name,
                before=_number(quota.needed.before),
                after=_number(quota.needed.after),
                message=f"{_number(quota.needed.after)} are needed, the quota is {_number(quota.recorded)} ({when}).",
            )
            yield Found(item=item, kind=ReasonKind.QUOTA if grows(quota.needed) else None)
    for plan in capacity.plans:
        if (message := _of_plan(plan, word)) is not None:
            item = Attention(
                effect=None,
                about="plan",
                resource=plan.plan,
                before=_number(plan.used.before),
                after=_number(plan.used.after),
                message=message,
            )
            yield Found(item=item, kind=ReasonKind.PLAN if grows(plan.used) else None)
    for block in capacity.blocks:
        used = block.used.after
        if block.usable is not None and used is not None and used > block.usable:
            item = Attention(
                effect=None,
                about="addresses",
                resource=block.subnet,
                before=_number(block.used.before),
                after=_number(used),
                message=f"{_number(used)} addresses are needed in {block.cidr}, which has {block.usable}.",
            )
            yield Found(item=item, kind=ReasonKind.ADDRESSES if grows(block.used) else None)


def _of_plan(plan: PlanSeats, word: str) -> str | None:
    """Return what is wrong with a plan's seats, None if nothing is known to be wrong."""
    used, seats = plan.used.after, plan.seats
    if seats is not None and used is not None and used > seats:
        return (
            f"The groups use {_number(used)} of {seats} {plan.instance_type}: {_number(used - seats)} more than the "
            "plan has."
        )
    if plan.problem:
        return _ended(plan.problem)
    if seats is None and grows(plan.used):
        return (
            f"The groups use {_number(used)} {plan.instance_type} of the plan, before {_number(plan.used.before)}: "
            f"how many it has is not recorded; run 'hyperpod-cdk plans record {word}'."
        )
    return None


def grows(change: Change) -> bool:
    """Whether a number grows, or may grow."""
    if change.after is None or change.before is None:
        return change.after not in (change.before, 0)
    return change.after > change.before


def _of_access(access: Access, causes: _Causes, *, is_first: bool) -> Iterator[Found]:
    lost = [each for each in access.grants if _is_loss(each) and causes.stays(each)]
    grants = [each for each in access.grants if _is_worth_a_look(each) and each not in lost]
    ways = [each for each in access.reach if each.is_grave or (each.change == "added" and each.is_world)]
    if is_first:
        # nothing in it has more access than before; the report's own part lists it
        usual = [each for each in grants if not each.is_grave]
        grants = [each for each in grants if each.is_grave]
        open_ways = [each for each in ways if not each.is_grave]
        if len(usual) + len(open_ways) > _FEW:
            item = Attention(
                effect=None,
                about="access",
                resource="additions of a new environment",
                message=(
                    f"{count(len(usual), 'statement')} with a wildcard or another trust, and "
                    f"{count(len(open_ways), 'way')} to or from any address: the section about access lists them."
                ),
            )
            yield Found(item=item)
            ways = [each for each in ways if each.is_grave]
        else:
            grants += usual
            yield from (_of_reach(each, causes) for each in ways)
            ways = []
    for grant in grants:
        item = Attention(
            effect=None,
            about="access",
            resource=f"{grant.stack} / {grant.who}",
            before=None if grant.change == "added" else grant.effect,
            after=grant.effect if grant.change == "added" else None,
            message=_begun(grant.sentence),
            causes=causes.of_access(grant),
        )
        yield Found(item=item, kind=ReasonKind.ACCESS if grant.is_grave else None)
    yield from (_of_reach(each, causes) for each in ways)
    yield from (_of_loss(each, causes) for each in lost)


def _is_loss(grant: Grant) -> bool:
    """Whether a principal may do less, so that requests of its workloads may be refused."""
    if grant.is_grave or grant.is_covered:
        return False
    return (grant.change == "removed") is (grant.effect == "Allow")


def _of_loss(grant: Grant, causes: _Causes) -> Found:
    item = Attention(
        effect=None,
        about="access",
        resource=f"{grant.stack} / {grant.who}",
        before=grant.effect if grant.change == "removed" else None,
        after=None if grant.change == "removed" else grant.effect,
        message=_begun(f"{grant.sentence}: requests that rely on it are refused"),
        causes=causes.of_access(grant),
    )
    return Found(item=item, kind=ReasonKind.INTERRUPTION if grant.is_relied_on else None)


def _is_worth_a_look(grant: Grant) -> bool:
    is_new_wildcard = grant.change == "added" and grant.is_wildcard and grant.effect == "Allow"
    # a role that an AWS service assumes gives access to no one else
    is_trust = grant.kind == "trust" and not grant.is_of_service
    is_entry = grant.change == "added" and any(each.startswith("AmazonEKS") for each in grant.what)
    return (
        is_new_wildcard
        or is_entry
        or grant.is_grave
        or is_trust
        or (grant.change == "removed" and grant.effect == "Deny")
    )


def _of_reach(reach: Reach, causes: _Causes) -> Found:
    item = Attention(
        effect=None,
        about="access",
        resource=f"{reach.stack} / {reach.logical_id}",
        message=_begun(reach.sentence),
        causes=causes.of_access(reach),
    )
    return Found(item=item, kind=ReasonKind.ACCESS if reach.is_grave else None)


def _of_policy(policy: Policy) -> Iterator[Found]:
    for each in policy_errors(policy):
        item = Attention(
            effect=None,
            about="policy",
            resource=each.resource,
            property=each.rule,
            message=_ended(each.message),
        )
        yield Found(item=item)


def _of_cost(cost: Cost, causes: _Causes, threshold: float) -> Iterator[Found]:
    yield from (_of_unpriced(each, causes) for each in cost.unpriced if grows(each.quantity))
    yield from (found for plan in cost.plans if (found := _of_fee(plan, threshold)) is not None)
    before, after = cost.monthly.before, cost.monthly.after
    if before is None or after is None:
        return
    more = after - before
    if more < min(max(JUMP_DOLLARS, before * JUMP_SHARE), max(threshold, 0.01)):
        return
    if cost.is_lower_bound:
        said = f"Costs {dollars(more)} more per month as far as prices are known, at least {dollars(after)} in all."
    else:
        said = f"Costs {dollars(more)} more per month, {dollars(after)} in all."
    item = Attention(
        effect=None,
        about="cost",
        resource="cost per month",
        before=dollars(before),
        after=dollars(after),
        message=said,
        causes=causes.of_cost(each.of for each in cost.lines if each.of is not None and grows(each.monthly)),
    )
    yield Found(item=item, kind=ReasonKind.COST if more >= threshold else None)


def _of_fee(plan: PlanFee, threshold: float) -> Found | None:
    before, after = plan.fee.before, plan.fee.after
    # an unknown one is among those without a price
    if before is None or after is None or not 0 < after - before >= threshold:
        return None
    item = Attention(
        effect=None,
        about="cost",
        resource=f"training plan {plan.plan}",
        before=dollars(before),
        after=dollars(after),
        message=f"Costs {dollars(after - before)} more, paid once, whether the nodes run or not.",
    )
    return Found(item=item, kind=ReasonKind.COST)


def _of_unpriced(each: Unpriced, causes: _Causes) -> Found:
    unit = f" {each.unit} of" if each.unit and each.unit != "instance" else " x"
    quantities = [f"{_number(one)}{unit} {each.what}" for one in (each.quantity.before, each.quantity.after)]
    more = "More accelerators" if each.is_accelerated else "More"
    item = Attention(
        effect=None,
        about="cost",
        resource=each.what,
        before=_number(each.quantity.before),
        after=_number(each.quantity.after),
        message=f"{more} without a known price: {quantities[1]}, before {quantities[0]}. {_missing(each.missing)}",
        causes=causes.of_cost(each.of),
    )
    return Found(item=item, kind=ReasonKind.COST)


def _missing(text: str) -> str:
    return f"Missing: {_ended(text)}"


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _begun(text: str) -> str:
    # an identifier is written as AWS writes it
    return _ended(text if text.startswith(("arn:", "${")) else text[:1].upper() + text[1:])


def _number(value: float | None) -> str:
    if value is None:
        return "an unknown number"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def dollars(value: float, *, cents_from: float = 100) -> str:
    """Return ``$1,234``; an amount below ``cents_from`` with its cents if it has any."""
    has_cents = abs(value) < cents_from and round(value, 2) != round(value)
    return f"${value:,.2f}" if has_cents else f"${round(value):,}"
