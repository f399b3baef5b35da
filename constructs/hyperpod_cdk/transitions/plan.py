"""Makes the plan: the order of stacks and the effects of every step, by the same rules and durations as a review."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from hyperpod_cdk.catalog import kubernetes, updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config.loading import FOLDER, SUFFIX
from hyperpod_cdk.living.stacks import still_notified
from hyperpod_cdk.review.changes.blast_radius import blast_radius
from hyperpod_cdk.review.changes.clashes import BLOCKS
from hyperpod_cdk.review.changes.effects import GRAVEST_FIRST
from hyperpod_cdk.review.figures.timeline import timeline
from hyperpod_cdk.review.model import BlastRadius, Effect, Minutes, PropertyEffect, ResourceEffect, Side
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.review.rights.kubernetes import called
from hyperpod_cdk.review.run import left_open, name_of
from hyperpod_cdk.templates.assembly import Assembly, Stack, word_of
from hyperpod_cdk.templates.difference import ResourceChange, apart, compare
from hyperpod_cdk.templates.groups import CLUSTER
from hyperpod_cdk.templates.values import imports, imports_unknown
from hyperpod_cdk.transitions.between import (
    Between,
    exchanged,
    with_or_without_swapped,
    with_stacks,
    without_groups,
    without_views,
)
from hyperpod_cdk.transitions.cdk import selection
from hyperpod_cdk.transitions.model import Plan, Refusal, Step
from hyperpod_cdk.transitions.needs import Held, Needs, needs
from hyperpod_cdk.transitions.order import Batch, CircleError, batches
from hyperpod_cdk.transitions.room import Room, moves
from hyperpod_cdk.transitions.second_life import kept_in_the_way
from hyperpod_cdk.transitions.services import (
    CLAIM,
    POOL,
    POOLS,
    balanced,
    is_view,
    kubernetes_objects,
    left_on,
    orders,
    orphaned,
)

SIDE_BY_SIDE: Final = 3
"""How many stacks ``cdk deploy`` works on at once."""

_WORDS: Final = {
    Effect.REPLACED: "replaced",
    Effect.DELETED: "deleted",
    Effect.REFUSED: "refused",
    Effect.INTERRUPTED: "changed with nodes interrupted",
    Effect.UNKNOWN: "changed with an unknown effect",
    Effect.LEFT_BEHIND: "left in the account",
    Effect.IN_PLACE: "changed in place",
    Effect.ADDED: "added",
}
_MOST_NAMED: Final = 5
_CONTROL_PLANE: Final = "AWS::EKS::Cluster"
_ADD_ON: Final = "AWS::EKS::Addon"
_FILE_SYSTEM: Final = "AWS::FSx::FileSystem"
_OTHER_BLOCK: Final = (
    "Use a block that overlaps none of the old ones. Or make two deployments: first a file without what uses the old "
    "block (remove a zone with its groups and file systems), then this one."
)
_LEAVE_IT: Final = (
    "Keep it in the file as it is deployed, or give it another name, so that a new one is created. If it cannot have "
    "another name, make a second environment."
)


def plan(
    base: Assembly,
    head: Assembly,
    *,
    base_side: Side,
    head_side: Side,
    notes: Sequence[str] = (),
    importers: Mapping[str, Sequence[str]] | None = None,
    blockers: Sequence[Refusal] = (),
    takes: Sequence[str] = (),
    room: Room | None = None,
    left: Mapping[tuple[str, str], str] | None = None,
) -> Plan:
    """Return the fewest steps from ``base``, which is deployed, to ``head``.

    ``importers`` are the stacks that AWS names for exports that are removed or changed (``needs.going``), None if it
    was not asked, ``blockers`` other reasons to refuse, ``takes`` the removed nodes that no deployment created,
    ``room`` what is known of quotas and training plans, None if AWS was not asked, ``left`` why Kubernetes objects that
    are created again could not be deleted, by stack and logical ID. Parameters have in both assemblies the values of
    the deployed stacks.
    """
    base, elsewhere = _here(base, head)
    changes = compare(base, head)
    found = _needs(base, head, changes)
    refusals = [*blockers, *_missing(found), *_outsiders(found, importers or {})]
    steps: list[Step] = []
    if not refusals:
        legs = _legs(base, head, found, room or Room())
        if isinstance(legs, list):
            for leg in legs:
                done, refused = _steps(leg, head_side, room or Room(), left or {}, start=base, is_last=leg is legs[-1])
                steps += done
                refusals += refused
        else:
            causes = _replacing(blast_radius(base, head, changes)) if found.held else {}
            refusals += _held(found.held, causes) or [_circle(legs, word_of(base, head))]
    environment = name_of(base, head)
    return Plan(
        environment=environment,
        base=base_side,
        head=head_side,
        verdict=_verdict(steps, refusals),
        steps=() if refusals else tuple(steps),
        refusals=tuple(refusals),
        total=_total(() if refusals else steps),
        takes=tuple(takes) if steps and not refusals else (),
        notes=tuple(
            dict.fromkeys(
                [
                    *notes,
                    *_staying(elsewhere),
                    *left_open(base, head),
                    *_unstated(head),
                    *_unnamed(base, head),
                    *still_notified(base, head),
                    *_doubts(found, importers),
                ]
            )
        ),
    )


def _here(base: Assembly, head: Assembly) -> tuple[Assembly, list[str]]:
    """Return the base without the stacks of another environment, and the names of these: no deployment touches them.

    An environment is known by its name, account and Region.
    """
    parted = apart(base, head)
    is_renamed = bool(base.environment and head.environment) and base.environment != head.environment
    of_it = head.by_name if is_renamed else {**base.by_name, **head.by_name}
    elsewhere = [each.name for each in parted.stacks if each.name not in of_it]
    if not elsewhere:
        return parted, []
    return replace(parted, stacks=tuple(each for each in parted.stacks if each.name not in elsewhere)), elsewhere


def _staying(elsewhere: Sequence[str]) -> Iterator[str]:
    if elsewhere:
        yield (
            f"{joined(elsewhere)} {'stays as it is' if len(elsewhere) == 1 else 'stay as they are'}: the name, the "
            "account or the Region has changed, so this is a new environment. 'hyperpod-cdk destroy' with the previous "
            "file deletes the old one."
        )


_FORMS: Final = 3
"""Intermediate forms of stacks, one after the other: without claims, without groups, with both old and new groups."""


@dataclass(frozen=True, kw_only=True)
class _Leg:
    """A part of the plan, from one state of all stacks to another; ``between`` are the intermediate stacks."""

    base: Assembly
    head: Assembly
    found: Needs
    ordered: Sequence[Batch]
    between: Sequence[Between] = ()


def _needs(base: Assembly, head: Assembly, changes: Sequence[ResourceChange] | None = None) -> Needs:
    found = needs(base, head, compare(base, head) if changes is None else changes)
    found.orders += orders(base, head)
    return found


def _leg(base: Assembly, head: Assembly, found: Needs, between: Sequence[Between] = ()) -> _Leg | CircleError:
    """Return the steps from one state to the other; the circle if no order works."""
    dependencies = {stack.name: stack.dependencies for stack in (*base.stacks, *head.stacks)}
    try:
        ordered = batches(found.actions, found.orders, dependencies)
    except CircleError as circle:
        return circle
    return _Leg(base=base, head=head, found=found, ordered=ordered, between=between)


def _legs(base: Assembly, head: Assembly, found: Needs, room: Room, *, forms: int = _FORMS) -> list[_Leg] | CircleError:
    """Return the parts of the plan, more than one if stacks have to be deployed in an intermediate form first.

    The circle, or what would be one, if that does not help either.
    """
    alone = _leg(base, head, found)
    between = _betweens(base, head, alone, found, room) if forms else []
    if between:
        before = [head.by_name[name] for each in between for name in each.first]
        middle = with_stacks(base, [*before, *(each.stack for each in between)])
        first = _leg(base, middle, _needs(base, middle), between)
        # as the next deployment sees it, which plans from there: it may need another form
        rest = _legs(middle, head, _needs(middle, head), room, forms=forms - 1)
        if isinstance(first, _Leg) and not first.found.held and isinstance(rest, list):
            return [first, *rest]
    return [alone] if isinstance(alone, _Leg) and not alone.found.held else _no_way(alone)


def _no_way(leg: _Leg | CircleError) -> CircleError:
    return leg if isinstance(leg, CircleError) else CircleError(())


def betweens(base: Assembly, head: Assembly, room: Room | None = None) -> list[Between]:
    """Return the stacks that have to be deployed in an intermediate form before the head, in that form.

    None if the order of stacks is enough, or if no form helps.
    """
    base, _ = _here(base, head)
    found = _needs(base, head)
    return _betweens(base, head, _leg(base, head, found), found, room or Room())


def _betweens(base: Assembly, head: Assembly, leg: _Leg | CircleError, found: Needs, room: Room) -> list[Between]:
    exporters = {each.exporter for each in found.held}
    importers = {each.importer for each in found.held}
    if isinstance(leg, CircleError):
        inside = {name for order in leg.orders for name in (order.first, order.then)}
        exporters |= inside
        importers |= {order.first for order in leg.orders if order.then in inside and order.first in base.by_name}
    going = {export: exporter for export, exporter in found.going.items() if exporter in exporters}
    users = [
        stack.name for stack in base.stacks if stack.name in importers and not going.keys().isdisjoint(imports(stack))
    ]
    # only clusters have groups
    clusters = [change for change in compare(base, head) if change.resource.type == CLUSTER]
    groups = without_groups(base, head, blast_radius(base, head, clusters)) if clusters else []
    swapped = with_or_without_swapped(base, head, room) if clusters else []
    taken = {each.stack.name for each in groups}
    return [
        *without_views(base, head, going, users),
        *groups,
        *(each for each in swapped if each.stack.name not in taken),
    ]


def _steps(
    leg: _Leg, head_side: Side, room: Room, left: Mapping[tuple[str, str], str], *, start: Assembly, is_last: bool
) -> tuple[list[Step], list[Refusal]]:
    base, head, found, ordered = leg.base, leg.head, leg.found, leg.ordered
    steps: list[Step] = []
    refusals: list[Refusal] = []
    state = {stack.name: stack for stack in base.stacks}
    is_cluster_kept = any(head.of_type(_CONTROL_PLANE)) or not any(base.of_type(_CONTROL_PLANE))
    deploys = [number for number, batch in enumerate(ordered) if batch.action == "deploy"]
    for number, batch in enumerate(ordered):
        before = _assembly(base, head, state)
        emptied = {name: _emptied(state, batch, name) for name in batch.stacks if batch.action == "delete"}
        new = emptied or {name: head.by_name[name] for name in batch.stacks}
        after = _assembly(base, head, {**state, **new})
        if emptied:
            others = tuple(each for each in after.stacks if each.name not in emptied)
            after = replace(after, stacks=(*emptied.values(), *others))
        changes = compare(before, after)
        radius = blast_radius(before, after, changes, with_exports=False)
        refusals += [
            refusal for each in radius.resources if (refusal := _refused(each, word_of(base, head))) is not None
        ]
        is_all = is_last and bool(deploys) and number == deploys[-1]
        selected = () if emptied else _selected(head, batch, is_last=is_all)
        exclusively = bool(selected) and not is_all
        made = [each for each in leg.between if each.stack.name in batch.stacks]
        steps.append(
            Step(
                action=batch.action,
                stacks=batch.stacks,
                commands=tuple(
                    _deletion(state, batch.stacks)
                    if emptied
                    else [f"hyperpod-cdk deploy {word_of(base, head)}"]
                    if made
                    else [_deployment(head, head_side, selected, is_exclusive=exclusively)]
                ),
                selected=selected,
                exclusively=exclusively,
                between=tuple(each.says for each in made),
                why=tuple(_why(found, batch, ordered[number + 1 :])),
                does=tuple(_does(batch, radius, before)),
                interrupts=(*_interrupts(radius), *_exchanged(before, after, room)),
                stays=(*_stays(radius), *_left_behind_the_cluster(before, after, radius)),
                unknown=(
                    *_unknown(radius),
                    *left_on(before, after),
                    *orphaned(before, after, is_cluster_kept=is_cluster_kept),
                ),
                first=(*_first(before, after, radius), *_left_before(after, radius, left)),
                loses=tuple(_loses(before, radius)),
                back=_back(batch, before, after, radius, start=start, room=room),
                lasts=timeline(before, after, changes, radius).total,
            )
        )
        for name in batch.stacks:
            if emptied:
                del state[name]
            else:
                state[name] = head.by_name[name]
    return steps, refusals


def _assembly(base: Assembly, head: Assembly, state: Mapping[str, Stack]) -> Assembly:
    """Put the stacks of one moment into the order of deployment."""
    names = [
        *(each.name for each in base.stacks if each.name not in head.by_name),
        *(each.name for each in head.stacks),
    ]
    stacks = tuple(state[name] for name in names if name in state)
    return head if head.is_made_of(stacks) else replace(head, stacks=stacks)


def _emptied(state: Mapping[str, Stack], batch: Batch, name: str) -> Stack:
    """Return a deleted stack: without its resources, each of which then has its own fate, after those that use it."""
    users = tuple(each for each in batch.stacks if name in state[each].dependencies)
    template = {**state[name].template, "Resources": {}, "Outputs": {}}
    return replace(state[name], template=template, dependencies=users)


# what is typed


def _selected(head: Assembly, batch: Batch, *, is_last: bool) -> tuple[str, ...]:
    if is_last:
        return (selection(head),)
    return tuple(head.by_name[name].shown or name for name in batch.stacks)


def _deployment(head: Assembly, side: Side, selected: Sequence[str], *, is_exclusive: bool) -> str:
    # a project that 'new' created has no other CDK CLI
    words = ["hyperpod-cdk", "cdk", "deploy", *selected]
    if is_exclusive:
        words.append("--exclusively")
    if side.environment_file:
        file = PurePosixPath(side.environment_file)
        is_named = file.parent == PurePosixPath(FOLDER) and file.suffix == SUFFIX
        words += ["-c", f"env={file.stem if is_named else file}"]
    elif head.folder is not None:
        words += ["--app", side.label]
    return shlex.join([*words, "--concurrency", str(SIDE_BY_SIDE), "--require-approval", "never"])


def _deletion(state: Mapping[str, Stack], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        where = ["--stack-name", name, *(["--region", state[name].region] if state[name].region else [])]
        if state[name].termination_protection:
            yield shlex.join(
                ["aws", "cloudformation", "update-termination-protection", "--no-enable-termination-protection", *where]
            )
        yield shlex.join(["aws", "cloudformation", "delete-stack", *where])
        yield shlex.join(["aws", "cloudformation", "wait", "stack-delete-complete", *where])


# what is said of a step


def _why(found: Needs, batch: Batch, later: Sequence[Batch]) -> Iterator[str]:
    after = {name for each in later for name in each.stacks}
    for order in found.orders:
        if order.first in batch.stacks and order.then in after:
            refused = "; CloudFormation refuses the opposite order" if order.is_checked else ""
            yield f"{order.why}{refused}."


def _does(batch: Batch, radius: BlastRadius, before: Assembly) -> Iterator[str]:
    for name in batch.stacks:
        effects = [each.effect for each in radius.resources if each.stack == name]
        numbers = {effect: sum(each == effect for each in effects) for effect in GRAVEST_FIRST}
        told = ", ".join(f"{number} {_WORDS[effect]}" for effect, number in numbers.items() if number)
        if batch.action == "delete":
            is_protected = before.by_name[name].termination_protection
            lifted = "disables its termination protection and deletes it" if is_protected else "deletes it"
            yield f"{name}: {lifted}: {told or 'it is empty'}."
        elif name in before.by_name:
            yield f"{name}: {told or 'changes outputs, tags, topics or protection only'}."
        else:
            yield f"{name}: is created, {count(sum(numbers.values()), 'resource')}."


def _named(each: ResourceEffect) -> str:
    return f"{each.stack} / {each.name}"


def _interrupts(radius: BlastRadius) -> Iterator[str]:
    grave = (Effect.REPLACED, Effect.DELETED, Effect.INTERRUPTED)
    for each in radius.resources:
        is_slow = any(change.interrupts for change in each.properties)
        is_harmful = each.stateful and not updates.is_made_anew_without_harm(each.type)
        if (each.effect in grave and is_harmful) or is_slow:
            yield f"{_named(each)}: {each.summary}"


def _exchanged(before: Assembly, after: Assembly, room: Room) -> Iterator[str]:
    """Say which groups replace others without an intermediate step in which jobs could move, and why."""
    for stack, why in exchanged(before, after, room) if any(after.of_type(CLUSTER)) else ():
        yield f"{stack}: {why}"


def _unknown(radius: BlastRadius) -> Iterator[str]:
    for each in radius.resources:
        if each.effect is Effect.UNKNOWN:
            yield f"{_named(each)}: {each.summary}"


def _stays(radius: BlastRadius) -> Iterator[str]:
    for each in radius.left_behind:
        costs = {True: " and costs money", False: "", None: "; it is unknown whether it costs money"}[each.costs_money]
        yield f"{each.stack} / {each.name} remains in the account{costs}."


def _left_behind_the_cluster(before: Assembly, after: Assembly, radius: BlastRadius) -> Iterator[str]:
    """Say which add-ons keep their version: EKS updates none with the cluster (user guide, update a cluster)."""
    for each in radius.resources:
        version = next((change.after for change in each.properties if change.path == "Version"), None)
        if each.type != _CONTROL_PLANE or version is None:
            continue
        stay = {
            str(resource.properties.get("AddonName")): None
            for resource in after.of_type(_ADD_ON)
            if "AddonVersion" not in resource.properties and before.find(resource.stack, resource.logical_id)
        }
        if stay:
            yield (
                f"{_named(each)}: {joined(list(stay))} keep their versions: EKS does not update add-ons with their "
                f"cluster. For newer ones, write versions that fit {version} into eks.addon_versions."
            )


def _loses(before: Assembly, radius: BlastRadius) -> Iterator[str]:
    """Say what is not kept of what has data: whole resources, removed parts of them, and unknown effects."""
    kept = {(each.stack, each.logical_id) for each in radius.left_behind}
    for each in radius.resources:
        resource = before.find(each.stack, each.logical_id)
        if resource is None or not each.stateful or is_view(before, resource):
            continue
        if updates.is_made_anew_without_harm(each.type):
            continue
        if each.effect is Effect.DELETED and each.type in updates.DELETED_WHERE_UNUSED:
            continue
        if each.effect not in (Effect.REPLACED, Effect.DELETED):
            yield from _lost_inside(each)
        elif (each.stack, each.logical_id) not in kept:
            yield f"{_named(each)}: {each.summary}"


def _lost_inside(each: ResourceEffect) -> Iterator[str]:
    """Say what a resource that stays loses: groups with their nodes, nodes of a group, and unknown effects."""
    ends_nodes = updates.kind_of(each.type) == "nodes" or each.type == _CONTROL_PLANE
    for change in each.properties:
        is_lost = change.effect in (Effect.REPLACED, Effect.DELETED)
        # an interrupted file system or address is unchanged afterwards; a node loses its volumes
        is_lost |= change.effect is Effect.INTERRUPTED and ends_nodes
        is_unknown = change.effect is Effect.UNKNOWN
        if is_lost or is_unknown:
            sides = [side for side in (change.before, change.after) if side is not None]
            told = f" {' -> '.join(sides)}" if sides else ""
            doubt = "Perhaps, because it is unknown: " if is_unknown else ""
            yield f"{_named(each)}: {change.path}{told}: {doubt}{change.reason}"


def _first(before: Assembly, after: Assembly, radius: BlastRadius) -> Iterator[str]:
    """Say what a person does before: move jobs, and end what Kubernetes' finalizers keep, which no stack shows."""
    if any(after.of_type(CLUSTER)):
        for group, others in moves(before, after):
            yield (
                f"Move the jobs of instance group {group} to {joined(others)}, or end them: HyperPod drains none "
                "before it terminates the nodes."
            )
    for each in radius.resources:
        resource = before.find(each.stack, each.logical_id)
        if resource is None or each.effect not in (Effect.DELETED, Effect.REPLACED):
            continue
        yield from balanced(resource)
        objects = {called(one) for one in kubernetes_objects(before, resource)}
        for kind, namespace, name in sorted(objects):
            where = f"{namespace}/{name}" if namespace else name
            if kind == CLAIM:
                yield (
                    f"End the pods that mount the claim {where}: Kubernetes keeps a claim while a pod uses it, and the "
                    "deployment gives up after attempts of 15 minutes."
                )
            # a pool has a class of its own, and the nodes belong to the pool
            elif kind in POOLS and (kind == POOL or (POOL, namespace, name) not in objects):
                yield (
                    f"End what runs on nodes of {kind} {where} and must not be disrupted: Karpenter drains them, and "
                    "the deployment gives up after attempts of 15 minutes."
                )


def _left_before(after: Assembly, radius: BlastRadius, left: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Say which objects have to be deleted before they are created again: kubectl finds them, and some never change."""
    for each in radius.resources:
        why = left.get((each.stack, each.logical_id))
        resource = after.find(each.stack, each.logical_id)
        if why is None or resource is None or each.effect is not Effect.ADDED:
            continue
        names = [f"{kind} {name}" for kind, name in map(_called_whole, kubernetes_objects(after, resource))]
        yield (
            f"Delete {joined(names) or _named(each)} with kubectl if still there, once no pod uses them: an earlier "
            f"deployment could not and left them behind ({why})."
        )


def _called_whole(each: Mapping[str, Any]) -> tuple[str, str]:
    kind, namespace, name = called(each)
    return kind, f"{namespace}/{name}" if namespace else name


def _back(batch: Batch, before: Assembly, after: Assembly, radius: BlastRadius, *, start: Assembly, room: Room) -> str:
    """Say how to get from the end of a step back to what is deployed now, as a plan from there would."""
    if batch.action == "delete":
        return f"Deploy {joined(batch.stacks)} again from the revision that has it; what it creates is new and empty."
    new = [name for name in batch.stacks if name not in before.by_name]
    if len(new) == len(batch.stacks):
        return "Destroy these stacks: nothing was deployed before." if not before.stacks else f"Destroy {joined(new)}."
    legs = _legs(after, start, _needs(after, start), room)
    if not isinstance(legs, list):
        return "CloudFormation alone cannot go back: another stack uses what would change."
    refused = [
        refusal.why
        for leg in legs
        for each in blast_radius(leg.base, leg.head, compare(leg.base, leg.head), with_exports=False).resources
        if (refusal := _refused(each, word_of(start, after))) is not None
    ]
    if refused:
        more = f" And {len(refused) - 1} more." if len(refused) > 1 else ""
        return f"The current version cannot be deployed again. {refused[0]}{more}"
    anew = [
        each.name
        for each in radius.resources
        if each.stateful
        and each.type.startswith("AWS::")
        and not updates.is_made_anew_without_harm(each.type)
        and each.effect in (Effect.REPLACED, Effect.DELETED, Effect.LEFT_BEHIND)
    ]
    number = sum(len(leg.ordered) for leg in legs)
    said = f"Deploy the current version again, in {count(number, 'step')}"
    left = [
        each.name
        for stack in start.stacks
        if stack.name in after.by_name
        for each in kept_in_the_way(after.by_name[stack.name], stack)
    ]
    if left:
        exists, it_stays = ("exists", "it stays") if len(left) == 1 else ("exist", "they stay")
        said += (
            f", once {joined(left)} no longer {exists}: {it_stays} in the account, and no other can have the same "
            "name, block or folder"
        )
    shown = anew[:_MOST_NAMED]
    more = f" and {len(anew) - len(shown)} more" if len(anew) > len(shown) else ""
    return f"{said}; this creates again, without the data: {', '.join(shown)}{more}." if anew else f"{said}."


def _total(steps: Sequence[Step]) -> Minutes:
    return Minutes(
        low=round(sum(step.lasts.low for step in steps), 2), high=round(sum(step.lasts.high for step in steps), 2)
    )


# why not


def _refused(each: ResourceEffect, word: str) -> Refusal | None:
    refused = [change for change in each.properties if change.effect is Effect.REFUSED]
    if each.effect is not Effect.REFUSED and not refused:
        return None
    told = "; ".join(f"{change.path}: {change.reason.rstrip('.')}" for change in refused)
    return Refusal(
        why=f"{_named(each)}: {told}." if told else f"{_named(each)}: {each.summary}",
        what_works=_by_minors(each, refused, word) or (_OTHER_BLOCK if each.type in BLOCKS else _LEAVE_IT),
    )


def _by_minors(each: ResourceEffect, refused: Sequence[PropertyEffect], word: str) -> str:
    """Say how a cluster gets to a Kubernetes version that needs several updates, nothing if there are other reasons."""
    if each.type != _CONTROL_PLANE or [change.path for change in refused] != ["Version"]:
        return ""
    (version,) = refused
    before, after = version.before or "", version.after or ""
    minors = kubernetes.minors_to(after, before)
    if kubernetes.is_newer(before, after):
        return (
            f'Set eks.kubernetes_version: "{before}", as it is deployed. '
            f"'hyperpod-cdk upgrade {word} --kubernetes {after}' says whether EKS can still roll back the control "
            "plane, and how."
        )
    if not minors:
        return ""
    first, *others = minors
    told = ", then ".join(f'"{minor}", deploy' for minor in others)
    return (
        f'One minor version at a time: set eks.kubernetes_version: "{first}", deploy, then {told}; '
        "add-ons with versions in the file need a version that fits each minor version."
    )


def _replacing(radius: BlastRadius) -> dict[tuple[str, str], str]:
    """Return the properties because of which a resource is replaced, by its stack and name or logical ID.

    Deployed stacks have no constructs, so their exports have logical IDs as names.
    """
    return {
        (each.stack, name): joined(list(dict.fromkeys(paths)))
        for each in radius.resources
        for name in (each.name, each.logical_id)
        if (paths := [change.path for change in each.properties if change.effect is Effect.REPLACED])
    }


def _held(held: Sequence[Held], causes: Mapping[tuple[str, str], str]) -> list[Refusal]:
    return [_held_by(each, causes) for each in held]


def _held_by(each: Held, causes: Mapping[tuple[str, str], str]) -> Refusal:
    given = joined(each.gives)
    replaced = [f"{name} because of its {cause}" for name in each.gives if (cause := causes.get((each.exporter, name)))]
    if each.types <= {_FILE_SYSTEM}:
        works = (
            f"Two deployments: first a file in which nothing of {each.importer} uses {given} (of a claim: claim: "
            "null), then this file. Or add a file system under another name, and remove the old one later."
        )
    else:
        works = (
            f"Keep the settings that replace {given} in the file as they are deployed. Or create a second environment, "
            "move the workloads to it, and destroy this one."
        )
    return Refusal(
        why=(
            f"{each.exporter} would change {given}, which {each.importer} uses before and after the change. "
            "CloudFormation does not change an export that is in use."
            + (f" Replaced: {'; '.join(replaced)}." if replaced else "")
        ),
        what_works=works,
    )


def _circle(circle: CircleError, word: str) -> Refusal:
    return Refusal(
        why=f"No order of stacks works: {'; '.join(order.why for order in circle.orders)}.",
        what_works=(
            "Two deployments: first a file that has both the new and the old resources, or neither, then this file. "
            f"'hyperpod-cdk plan {word}' shows for each file whether it works."
        ),
    )


def _missing(found: Needs) -> Iterator[Refusal]:
    for importer, given in found.missing.items():
        yield Refusal(
            why=f"{importer} imports {joined(given)}, which no stack would export.",
            what_works="Synthesize the app again: stacks of one synthesis import only what another one exports.",
        )


def _outsiders(found: Needs, importers: Mapping[str, Sequence[str]]) -> Iterator[Refusal]:
    for name, exporter in found.going.items():
        if names := importers.get(name):
            yield Refusal(
                why=f"{exporter} would change or remove its export {name}, which {joined(names)} imports.",
                what_works=f"Remove the import from {joined(names)}, or keep in the file what the export refers to.",
            )


def _unstated(head: Assembly) -> Iterator[str]:
    for stack in head.stacks:
        for name, stated in stack.parameters.items():
            if isinstance(stated, dict) and "Default" not in stated and name not in stack.told:
                said = f": {stated['Description']}" if isinstance(stated.get("Description"), str) else "."
                yield f"{stack.name} has no value for its parameter {name}, and cannot be deployed without one{said}"


def _unnamed(base: Assembly, head: Assembly) -> Iterator[str]:
    """Say which exports and imports have names that no template shows: no order and no refusal follows from them."""
    for stack in (*base.stacks, *head.stacks):
        for output, name in stack.export_names.items():
            if name is None:
                yield (
                    f"{stack.name} exports {output} by a name that is known only during the deployment: whether "
                    "another stack imports it is unknown."
                )
        if imports_unknown(stack):
            yield (
                f"{stack.name} imports by a name that is known only during the deployment: what it needs, and which "
                "exports it uses, is unknown."
            )


def _doubts(found: Needs, importers: Mapping[str, Sequence[str]] | None) -> Iterator[str]:
    for importer, names in found.foreign.items():
        yield f"{importer} imports {joined(names)} from outside of the app: whether it exists is unknown."
    if importers is None and found.going:
        yield (
            f"{count(len(found.going), 'export')} would be removed or changed: whether a stack outside of the app "
            "imports one was not checked. If one does, CloudFormation refuses the step."
        )


def _verdict(steps: Sequence[Step], refusals: Sequence[Refusal]) -> str:
    if refusals:
        return f"Refused: {count(len(refusals), 'reason')}; nothing would be changed."
    if not steps:
        return "Nothing to do: the deployed stacks match the file."
    by_hand = sum(step.needs_a_person for step in steps)
    of_all = "" if len(steps) == 1 else f"{by_hand} of "
    asked = f", {of_all}which {'needs' if by_hand == 1 else 'need'} a person" if by_hand else ""
    return f"{count(len(steps), 'step')}{asked}."
