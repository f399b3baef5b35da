"""What a reviewer must look at: few lines, the gravest first, each with what it is about and what caused it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.review.assembly import Assembly, Resource
from hyperpod_cdk.review.changes.effects import rank
from hyperpod_cdk.review.difference import ResourceChange
from hyperpod_cdk.review.model import (
    Access,
    Attention,
    BlastRadius,
    Capacity,
    Cost,
    Effect,
    Fabric,
    Grant,
    LeftBehind,
    Policy,
    PolicyFinding,
    PropertyEffect,
    Reach,
    ResourceEffect,
)
from hyperpod_cdk.review.nouns import count, joined, noun, place
from hyperpod_cdk.review.values import plain

JUMP_SHARE: Final = 0.1
JUMP_DOLLARS: Final = 100.0
"""A higher cost is worth a look from a tenth more on, and from so many US dollars per month on."""

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
"""Where among the effects on resources other things to look at are listed."""

_FEW: Final = 3
"""So many alike are listed one by one, more of them in one line."""

_SERVICE: Final = re.compile(r"service (?!account )")
_UNPROTECTED_BY: Final = (
    "DeletionProtection",
    "DeletionProtectionEnabled",
    "DisableApiTermination",
    "EnableTerminationProtection",
)
_KEPT: Final = ("Retain", "RetainExceptOnCreate", "Snapshot")
_ONCE: Final = {"DeletionPolicy": "leaves the stack", "UpdateReplacePolicy": "is replaced"}
_EXPORT: Final = "Export "


def attention(
    radius: BlastRadius,
    *,
    capacity: Capacity,
    cost: Cost,
    access: Access,
    fabric: Fabric,
    policy: Policy,
    protection: Sequence[Attention] = (),
) -> tuple[Attention, ...]:
    """List what to look at, gravest first.

    What merely follows from another change, and holds neither data nor nodes, is one line for all together.
    """
    found = [
        *_of_resources(radius.resources),
        *protection,
        *_left_behind(radius),
        *_of_fabric(fabric),
        *_of_capacity(capacity),
        *_of_access(access, is_first=_is_first(radius)),
        *_of_policy(policy),
        *_of_cost(cost),
    ]
    return tuple(sorted(found, key=_weight))


def _is_first(radius: BlastRadius) -> bool:
    return bool(radius.resources) and all(each.effect is Effect.ADDED for each in radius.resources)


def counted_as(each: ResourceEffect) -> Effect:
    """Give the effect by which a resource counts: one that is made anew without harm counts as changed in place."""
    if each.effect in (Effect.REPLACED, Effect.DELETED) and updates.is_made_anew_without_harm(each.type):
        return Effect.IN_PLACE
    return each.effect


def policy_errors(policy: Policy) -> list[PolicyFinding]:
    """Give the policy's errors that stand and that nobody has given a reason for."""
    return [
        each
        for each in policy.findings
        if each.severity == "error" and each.status != "resolved" and each.suppressed is None
    ]


def lifted_protection(
    base: Assembly, head: Assembly, changes: Iterable[ResourceChange], resources: Sequence[ResourceEffect] = ()
) -> list[Attention]:
    """Find what keeps something from being deleted and does so no more; ``resources`` are asked for the causes."""
    found = [*_open_stacks(base, head)]
    causes = {(each.stack, each.logical_id): each.causes for each in resources}
    others: list[tuple[Resource, list[Attention]]] = []
    for change in changes:
        if change.before is None or change.after is None:
            continue
        after = change.after
        lines = [*_open_policies(change, after), *_switched_off(change, after)]
        lines = [each.model_copy(update={"causes": causes.get((after.stack, after.logical_id), ())}) for each in lines]
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
        message=f"{kinds}, which hold neither data nor nodes, lose what keeps them from being deleted.",
        causes=tuple(dict.fromkeys(cause for _, lines in others for line in lines for cause in line.causes)),
    )
    return [*found, together]


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
            message=f"{who} termination protection: any later delete-stack goes through.",
        )


def _open_policies(change: ResourceChange, after: Resource) -> Iterator[Attention]:
    lifted = [
        each for each in change.attributes if each.path in _ONCE and each.before in _KEPT and each.after not in _KEPT
    ]
    if not lifted:
        return
    with_it = " with what it holds" if after.type in updates.STATEFUL else ""
    once = " or ".join(_ONCE[each.path] for each in lifted)
    kept = "a snapshot of it" if all(each.before == "Snapshot" for each in lifted) else "it"
    left = [plain(each.after) if isinstance(each.after, str) else None for each in lifted]
    yield Attention(
        effect=None,
        about="protection",
        resource=f"{after.stack} / {after.name}",
        property=joined([each.path for each in lifted]),
        before=joined(list(dict.fromkeys(plain(each.before) for each in lifted))),
        after=joined(list(dict.fromkeys(each or "none" for each in left))) if any(left) else None,
        message=f"The {noun(after.type)} is deleted{with_it} once it {once}; until now {kept} was kept.",
    )


def _switched_off(change: ResourceChange, after: Resource) -> Iterator[Attention]:
    for each in change.properties:
        if each.steps[-1:] and each.steps[-1] in _UNPROTECTED_BY and _is_on(each.before) and not _is_on(each.after):
            yield Attention(
                effect=None,
                about="protection",
                resource=f"{after.stack} / {after.name}",
                property=each.path,
                before="true",
                after=plain(each.after) if isinstance(each.after, bool | str) else None,
                message=f"The {noun(after.type)} loses its protection against deletion.",
            )


def _weight(item: Attention) -> int:
    return rank(item.effect or _WEIGHS_LIKE[item.about])


def _place(each: ResourceEffect) -> tuple[int, bool, bool]:
    """Order what is equally grave: what everything stands on, what the change itself asks for, what holds data."""
    told = [change for change in each.properties if change.effect in _GRAVE]
    return place(each.type), bool(told) and all(change.is_indirect for change in told), not each.stateful


def _of_resources(resources: Sequence[ResourceEffect]) -> Iterator[Attention]:
    folded: dict[Effect | None, list[tuple[ResourceEffect, Attention]]] = {}
    for each in sorted(resources, key=_place):
        lines = _of_resource(each)
        if not _merely_follows(each):
            yield from lines
            continue
        for line in lines:
            folded.setdefault(line.effect, []).append((each, line))
    for effect, together in folded.items():
        alike = {(each.stack, each.logical_id): each for each, _ in together}
        if len(alike) > _FEW:
            yield _of_many(effect, list(alike.values()))
        else:
            yield from (line for _, line in together)


def _merely_follows(each: ResourceEffect) -> bool:
    """Whether all that happens to it follows from other resources, or from its leaving the template."""
    told = _told(each)
    is_gone = not told and each.effect is Effect.DELETED
    return not each.stateful and (is_gone or (bool(told) and all(change.is_indirect for change in told)))


def _told(each: ResourceEffect) -> list[PropertyEffect]:
    # what counts as no more than a change in place can still be refused, by those who import its exports
    grave = _GRAVE if counted_as(each) in _GRAVE else (Effect.REFUSED,)
    return [change for change in each.properties if change.effect in grave]


def _of_resource(each: ResourceEffect) -> Iterator[Attention]:
    resource = f"{each.stack} / {each.name}"
    told = _told(each)
    if counted_as(each) in _GRAVE and all(rank(change.effect) > rank(each.effect) for change in told):
        yield Attention(effect=each.effect, resource=resource, message=each.summary, causes=each.causes)
    alike: dict[Effect, list[PropertyEffect]] = {}
    for change in told:
        alike.setdefault(change.effect, []).append(change)
    for effect, changes in alike.items():
        for first, also in _lines(changes):
            yield Attention(
                effect=effect,
                resource=resource,
                property=first.path,
                before=first.before,
                after=first.after,
                message=first.reason + also,
                causes=first.causes or each.causes,
            )


def _lines(changes: Sequence[PropertyEffect]) -> Iterator[tuple[PropertyEffect, str]]:
    """Give the changes that have a line each, and what is said of others beside them.

    What the change itself says is told singly; what follows from other resources is one thing, and so are exports.
    """
    exports = [change for change in changes if change.path.startswith(_EXPORT)]
    properties = [change for change in changes if not change.path.startswith(_EXPORT)]
    indirect = [change for change in properties if change.is_indirect]
    direct = [change for change in properties if not change.is_indirect]
    if direct and direct[0].effect is Effect.REPLACED:
        # once it is replaced it matters no more why else it would be
        yield direct[0], _besides(indirect)
        direct, indirect = direct[1:], []
    yield from ((change, "") for change in direct)
    if indirect:
        first, *more = indirect
        same = [change.path for change in more if change.reason == first.reason]
        so = f" So {'does' if len(same) == 1 else 'do'} {_some(same)}." if same else ""
        yield first, so + _besides([change for change in more if change.reason != first.reason])
    if exports:
        names = [change.path.removeprefix(_EXPORT) for change in exports[1:]]
        is_one = len(names) == 1
        said = f" The export{'' if is_one else 's'} {_some(names)} {'is' if is_one else 'are'} imported as well."
        yield exports[0], said if names else ""


def _besides(changes: Sequence[PropertyEffect]) -> str:
    if not changes:
        return ""
    verb = "refers" if len(changes) == 1 else "refer"
    return f" Besides, {_some([change.path for change in changes])} {verb} to what is replaced."


def _some(names: Sequence[str]) -> str:
    return joined(names if len(names) <= _FEW else [*names[: _FEW - 1], f"{len(names) - _FEW + 1} more"])


def _of_many(effect: Effect | None, together: Sequence[ResourceEffect]) -> Attention:
    return Attention(
        effect=effect,
        resource=_and_more(f"{together[0].stack} / {together[0].name}", len(together)),
        message=f"{_kinds(each.type for each in together)}, which hold neither data nor nodes: "
        "the blast radius lists them.",
        causes=tuple(dict.fromkeys(cause for each in together for cause in each.causes)),
    )


def _and_more(first: str, number: int) -> str:
    return f"{first} and {number - 1} more" if number > 1 else first


def _kinds(types: Iterable[str]) -> str:
    return joined([count(number, kind) for kind, number in Counter(noun(each) for each in types).items()])


def _left_behind(radius: BlastRadius) -> Iterator[Attention]:
    causes = {(each.stack, each.logical_id): each.causes for each in radius.resources}
    alike: dict[tuple[str, str, bool | None], list[LeftBehind]] = {}
    for each in radius.left_behind:
        # what costs nothing is in the blast radius, for those who clean up
        if each.costs_money is not False:
            alike.setdefault((each.stack, each.why, each.costs_money), []).append(each)
    for (stack, why, costs_money), together in alike.items():
        who = "It" if len(together) == 1 else "Each"
        yield Attention(
            effect=Effect.LEFT_BEHIND,
            about="left behind",
            resource=_and_more(f"{stack} / {together[0].name}", len(together)),
            message=f"{_ended(why)} {who} {'costs' if costs_money else 'may cost'} money.",
            causes=tuple(dict.fromkeys(line for one in together for line in causes.get((stack, one.logical_id), ()))),
        )


def _of_fabric(fabric: Fabric) -> Iterator[Attention]:
    for each in fabric.subjects:
        for proof in each.proofs:
            if proof.result == "broken":
                is_new = proof.name in each.newly_broken
                yield Attention(
                    effect=None,
                    about="fabric",
                    resource=each.subject,
                    property=proof.name,
                    before="holds" if is_new else None,
                    after="broken",
                    message=_begun(proof.detail),
                )


def _of_capacity(capacity: Capacity) -> Iterator[Attention]:
    for quota in capacity.quotas:
        if quota.result == "short":
            when = f"recorded on {quota.recorded_on}" if quota.recorded_on else "AWS's default"
            yield Attention(
                effect=None,
                about="quota",
                resource=quota.name,
                before=_number(quota.needed.before),
                after=_number(quota.needed.after),
                message=f"{_number(quota.needed.after)} are needed, the quota is {_number(quota.recorded)} ({when}).",
            )
    for plan in capacity.plans:
        used, seats = plan.used.after, plan.seats
        if seats is not None and used is not None and used > seats:
            yield Attention(
                effect=None,
                about="plan",
                resource=plan.plan,
                before=_number(plan.used.before),
                after=_number(used),
                message=f"The groups take {_number(used)} of {seats} {plan.instance_type}: "
                f"{_number(used - seats)} more than the plan has.",
            )
        elif plan.problem:
            yield Attention(
                effect=None,
                about="plan",
                resource=plan.plan,
                before=_number(plan.used.before),
                after=_number(used),
                message=_ended(plan.problem),
            )
    for block in capacity.blocks:
        used = block.used.after
        if block.usable is not None and used is not None and used > block.usable:
            yield Attention(
                effect=None,
                about="addresses",
                resource=block.subnet,
                before=_number(block.used.before),
                after=_number(used),
                message=f"{_number(used)} addresses are needed in {block.cidr}, which has {block.usable}.",
            )


def _of_access(access: Access, *, is_first: bool) -> Iterator[Attention]:
    grants = [each for each in access.grants if _is_worth_a_look(each)]
    ways = [each for each in access.reach if each.change == "added" and each.is_world]
    if is_first:
        # nothing of it gains anything over what was there; the report's own part lists it
        usual = [each for each in grants if not each.is_grave]
        grants = [each for each in grants if each.is_grave]
        if len(usual) + len(ways) > _FEW:
            yield Attention(
                effect=None,
                about="access",
                resource="what a new environment brings along",
                message=f"{count(len(usual), 'statement')} with a wildcard or another trust, and "
                f"{count(len(ways), 'way')} to or from any address: the part about access lists them.",
            )
        else:
            grants += usual
            yield from map(_of_reach, ways)
        ways = []
    for grant in grants:
        yield Attention(
            effect=None,
            about="access",
            resource=f"{grant.stack} / {grant.who}",
            before=None if grant.change == "added" else grant.effect,
            after=grant.effect if grant.change == "added" else None,
            message=_begun(grant.sentence),
        )
    yield from map(_of_reach, ways)


def _is_worth_a_look(grant: Grant) -> bool:
    is_new_wildcard = grant.change == "added" and grant.is_wildcard and grant.effect == "Allow"
    # a role that a service of AWS takes on gives nobody else access
    is_trust = grant.kind == "trust" and not _SERVICE.match(grant.who)
    return is_new_wildcard or grant.is_grave or is_trust or (grant.change == "removed" and grant.effect == "Deny")


def _of_reach(reach: Reach) -> Attention:
    return Attention(
        effect=None, about="access", resource=f"{reach.stack} / {reach.logical_id}", message=_begun(reach.sentence)
    )


def _of_policy(policy: Policy) -> Iterator[Attention]:
    for each in policy_errors(policy):
        yield Attention(
            effect=None,
            about="policy",
            resource=each.resource,
            property=each.rule,
            message=_ended(each.message),
        )


def _of_cost(cost: Cost) -> Iterator[Attention]:
    before, after = cost.monthly.before, cost.monthly.after
    if before is None or after is None:
        return
    more = after - before
    if more < max(JUMP_DOLLARS, before * JUMP_SHARE):
        return
    if cost.is_lower_bound:
        said = f"Costs {_dollars(more)} more per month as far as prices are known, at least {_dollars(after)} in all."
    else:
        said = f"Costs {_dollars(more)} more per month, {_dollars(after)} in all."
    yield Attention(
        effect=None,
        about="cost",
        resource="cost per month",
        before=_dollars(before),
        after=_dollars(after),
        message=said,
    )


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _begun(text: str) -> str:
    return _ended(text[:1].upper() + text[1:])


def _is_on(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _number(value: float | None) -> str:
    if value is None:
        return "an unknown number"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _dollars(value: float) -> str:
    return f"${value:,.0f}"
