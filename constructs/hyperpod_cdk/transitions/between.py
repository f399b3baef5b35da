"""Makes intermediate forms of stacks if no order leads to the next template: deployed stacks without a part.

The stack's own template, which is deployed afterwards, creates that part again. It is removed from the deployed
template, so that everything else of the stack stays as it is, and all that it imports exists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.catalog import governance, hyperpod
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.file_reading import resolved
from hyperpod_cdk.review.model import BlastRadius, Effect
from hyperpod_cdk.review.rights.kubernetes import called
from hyperpod_cdk.review.standing import copied
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Resource, Stack
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.templates.groups import CLUSTER, instance_groups
from hyperpod_cdk.templates.values import imports, plain, references, resolve
from hyperpod_cdk.transitions.needs import needs
from hyperpod_cdk.transitions.room import Room, Swap, Verdict, parts, swaps, verdict
from hyperpod_cdk.transitions.services import CLAIM, WATCHERS, comes_back, is_view, kubernetes_objects

GROUPS: Final = ("InstanceGroups", "RestrictedInstanceGroups")
_NAMES: Final = "InstanceGroupName"
_QUOTAS: Final = (governance.COMPUTE_QUOTA, "Custom::ComputeQuota")
_UPLOAD: Final = "Custom::CDKBucketDeployment"
"""The resource that uploads lifecycle scripts, each version to its own prefix, and keeps the older ones."""
_HELD: Final = "what they use changes, and CloudFormation does not change an export that is in use"
_MOVED: Final = "their target changes, and Kubernetes never changes the target of a volume or a claim"
_MAY_CHANGE: Final[Mapping[str, frozenset[str]]] = {
    "PersistentVolume": frozenset(
        {"accessModes", "capacity", "mountOptions", "persistentVolumeReclaimPolicy", "volumeAttributesClassName"}
    ),
    CLAIM: frozenset({"resources", "volumeAttributesClassName"}),
}
"""Spec members of a volume or a claim that Kubernetes changes in place; all others are immutable after creation (API
server, ValidatePersistentVolumeUpdate and ValidatePersistentVolumeClaimUpdate)."""


@dataclass(frozen=True, kw_only=True)
class Between:
    """A stack in a form that the app does not have; ``says`` describes the form and its reason in a sentence or two.

    ``first`` are the stacks that are deployed before it as the app has them, because this form uses what they give.
    """

    stack: Stack
    says: str
    first: tuple[str, ...] = ()


def without_views(base: Assembly, head: Assembly, going: Mapping[str, str], stacks: Collection[str]) -> list[Between]:
    """Return the deployed stacks without the claims and alarms that cannot be updated to the head.

    Those of ``stacks`` use an export of ``going`` that is removed or changed, with its stack; nothing is given if such
    a stack has other users of the export. The other ones are claims that get another target under their name. Only what
    can be created again without a loss is removed, and only claims whose volumes stay: the data stays where it is, and
    pods mount it again through the new claims.
    """
    held = {name: _using(base.by_name[name], going) for name in stacks}
    moved = _moved(base, head)
    found: list[Between] = []
    for name in dict.fromkeys([*held, *moved]):
        stack = base.by_name[name]
        gone = held.get(name, set()) | moved.get(name, set())
        template = _without(stack, gone)
        rest = {**stack.template, "Resources": {}}
        is_more = bool({*imports(stack, rest)} & going.keys()) and name in held
        views = all(comes_back(base, stack.resources[key]) for key in gone)
        if name not in head.by_name or not gone or not views or is_more or template is None:
            return []
        reasons = [_HELD] * (name in held) + [_MOVED] * (name in moved)
        names = joined([each.name for key, each in stack.resources.items() if key in gone])
        silent = any(stack.resources[key].type in WATCHERS for key in gone)
        meanwhile = "; until then no alarm of them notifies anybody" if silent else ""
        says = (
            f"In this step {name} is deployed in its present form without {names}: {'; '.join(reasons)}. A later step "
            f"creates them again, as the file says{meanwhile}."
        )
        found.append(Between(stack=_as_of(head.by_name[name], stack, template), says=says))
    return found


def _using(stack: Stack, going: Mapping[str, str]) -> set[str]:
    return {key for key, each in stack.resources.items() if {*imports(stack, each.body)} & going.keys()}


def _moved(base: Assembly, head: Assembly) -> dict[str, set[str]]:
    """Return the claims, by stack, that get another volume, or whose volume gets another source, under their names.

    Also those whose names another resource gets: it would be created before they are deleted, and be deleted with them.
    """
    changed: list[Resource] = []
    for old in base.resources():
        new = head.find(old.stack, old.logical_id)
        is_kept = new is not None and new.properties == old.properties
        if old.stack in head.by_name and not is_kept and is_view(base, old):
            changed.append(old)
    if not changed:
        return {}
    stated = {
        called(each): (resource.stack, resource.logical_id, each)
        for resource in head.resources()
        for each in kubernetes_objects(head, resource)
        if each.get("kind") in _MAY_CHANGE
    }
    found: dict[str, set[str]] = {}
    for old in changed:
        for each in kubernetes_objects(base, old):
            stack, logical_id, after = stated.get(called(each), ("", "", each))
            if logical_id and ((stack, logical_id) != (old.stack, old.logical_id) or _fixed(each) != _fixed(after)):
                found.setdefault(old.stack, set()).add(old.logical_id)
    return found


def _fixed(each: Mapping[str, Any]) -> dict[str, Any]:
    spec, free = each.get("spec"), _MAY_CHANGE[str(each["kind"])]
    return {key: value for key, value in spec.items() if key not in free} if isinstance(spec, dict) else {}


def without_groups(base: Assembly, head: Assembly, radius: BlastRadius) -> list[Between]:
    """Return deployed HyperPod clusters without the groups in which the head changes what the service refuses to
    change.

    Nothing if a cluster would have no other group with a node, which add-ons need, or if it refuses other changes, too.
    """
    found: list[Between] = []
    for each in radius.resources:
        refused = [change for change in each.properties if change.effect is Effect.REFUSED]
        if each.type != CLUSTER or not refused or base.find(each.stack, each.logical_id) is None:
            continue
        groups = {_group_of(change.path) for change in refused}
        left = [
            one
            for one in instance_groups(base)
            if (one.cluster.stack, one.cluster.logical_id) == (each.stack, each.logical_id) and one.name not in groups
        ]
        if not all(groups) or not any(one.count and not one.is_restricted for one in left):
            continue
        stack = base.by_name[each.stack]
        names = joined(sorted(groups))
        what = joined(sorted({change.path.rpartition(".")[2] for change in refused}))
        says = (
            f"In this step {each.stack} is deployed in its present form without instance group {names}, of"
            " which HyperPod "
            f"cannot change {what}: its nodes are terminated before a later step creates the new ones. Under another"
            " name, "
            "the new group could run together with the old one until its jobs have moved."
        )
        template = _with_groups(stack, each.logical_id, groups)
        found.append(Between(stack=_as_of(head.by_name[each.stack], stack, template), says=says))
    return found


def with_or_without_swapped(base: Assembly, head: Assembly, room: Room) -> list[Between]:
    """Return deployed HyperPod clusters with both the old groups and those that replace them, so that jobs can move.

    If a quota or training plan is known to be too small for both, without the old ones, whose nodes are terminated
    first; nothing if no other group with a node would be left, or if something that a new group uses is not deployed.
    """
    found: list[Between] = []
    for swap in swaps(base, head):
        stack = base.by_name[swap.stack]
        stated = head.by_name.get(swap.stack)
        told = verdict(room, base, swap)
        if stated is None:
            continue
        first: tuple[str, ...] = ()
        mixed = _mixed(base, head, room, swap) if told.has_room is False else None
        if mixed is not None:
            found.append(mixed)
            continue
        if told.has_room is False:
            template = _alone(base, stack, swap)
            says = _sentence_alone(swap, told)
        else:
            beside = _beside(base, head, swap)
            template, first = (None, ()) if isinstance(beside, str) else beside
            says = _sentence_beside(base, swap, told)
        if template is not None:
            found.append(Between(stack=_as_of(stated, stack, template), says=says, first=first))
    return found


def _sentence_alone(swap: Swap, told: Verdict) -> str:
    return (
        f"In this step {swap.stack} is deployed in its present form without instance group {swap.old_names}, and "
        f"a later step adds {swap.new_names}: there is no room for both, because {told.says}. Jobs cannot move from "
        "one to the other; they start again."
    )


def _sentence_beside(base: Assembly, swap: Swap, told: Verdict) -> str:
    doubt = (
        f"there is room for both: {told.says}."
        if told.has_room
        else (
            f"it is unknown whether there is room for both: {told.says}. Without room HyperPod refuses this step or "
            f"adds no node, and {swap.old_names} stays as it is: in that case, remove it from the file first."
        )
    )
    return (
        f"In this step {swap.stack} is deployed in its present form with instance group {swap.new_names} and "
        f"{swap.old_names}, so that jobs can move before a later step removes {swap.old_names}; {doubt}"
        + _without_a_quota(base, swap)
    )


def _without_a_quota(base: Assembly, swap: Swap) -> str:
    """Say for which new types no team has a quota yet: Kueue admits no job of a team to their nodes."""
    quotas = [each for kind in _QUOTAS for each in base.of_type(kind)]
    rows = [row for each in quotas for row in _rows_of_quota(base, each)]
    if not quotas or any("InstanceType" not in row for row in rows):
        return ""
    have = {row["InstanceType"] for row in rows}
    new = [each for group in swap.new for each in group.types if each not in have]
    if not new or not any(each in have for group in swap.old for each in group.types):
        return ""
    return f" Until that later step no team has a quota for {joined(list(dict.fromkeys(new)))}: jobs for it wait."


def _rows_of_quota(base: Assembly, quota: Resource) -> list[Mapping[str, Any]]:
    config = resolve(base, quota.stack, quota.properties.get("ComputeQuotaConfig"))
    rows = config.get("ComputeQuotaResources") if isinstance(config, dict) else None
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []


def _mixed(base: Assembly, head: Assembly, room: Room, swap: Swap) -> Between | None:
    """Return a cluster with the new groups for which there is room, and without the old ones of all others.

    None if that is all of them or none: groups with accelerators and those without have separate quotas.
    """
    stack, stated = base.by_name[swap.stack], head.by_name[swap.stack]
    found = [(each, verdict(room, base, each)) for each in parts(swap)]
    tight = [(each, told) for each, told in found if told.has_room is False]
    if not tight or len(tight) == len(found):
        return None
    gone = {group.name for each, _ in tight for group in each.old}
    left = with_stacks(base, [_as_of(stated, stack, _with_groups(stack, swap.cluster, gone))])
    wide = replace(
        swap,
        old=tuple(each for each in swap.old if each.name not in gone),
        new=tuple(group for each, told in found if told.has_room is not False for group in each.new),
    )
    told = verdict(room, left, wide)
    beside = _beside(left, head, wide)
    if told.has_room is False or isinstance(beside, str):
        return None
    template, first = beside
    says = " ".join([*(_sentence_alone(each, why) for each, why in tight), _sentence_beside(base, wide, told)])
    return Between(stack=_as_of(stated, stack, template), says=says, first=first)


def exchanged(before: Assembly, after: Assembly, room: Room) -> Iterator[tuple[str, str]]:
    """Yield the stacks whose clusters replace groups in one update, and why there is no intermediate step."""
    for swap in swaps(before, after):
        if swap.stack not in after.by_name:
            continue
        told = verdict(room, before, swap)
        if told.has_room is False:
            why = (
                f"there is no room for both, because {told.says}, and without {swap.old_names} no other group with a "
                "node would be left. AWS does not document whether the update waits for the termination of the old"
                " nodes; "
                "HyperPod may refuse it"
            )
        else:
            beside = _beside(before, after, swap)
            why = beside if isinstance(beside, str) else told.says
        what = f"One update removes instance group {swap.old_names} and adds {swap.new_names}, so that jobs cannot move"
        yield swap.stack, f"{what}: {why}."


def _alone(base: Assembly, stack: Stack, swap: Swap) -> dict[str, Any] | None:
    gone = {each.name for each in swap.old}
    cluster = (swap.stack, swap.cluster)
    left = [each for each in instance_groups(base) if (each.cluster.stack, each.cluster.logical_id) == cluster]
    is_left = any(each.count and not each.is_restricted and each.name not in gone for each in left)
    return _with_groups(stack, swap.cluster, gone) if is_left else None


def _beside(base: Assembly, head: Assembly, swap: Swap) -> tuple[dict[str, Any], tuple[str, ...]] | str:
    """Return a deployed stack with new groups, and the stacks that are deployed before it; or why there is none.

    What new groups use of other stacks exists once these are deployed, which happens before this one in any case.
    """
    stack, stated = base.by_name[swap.stack], head.by_name[swap.stack]
    names = {each.name for each in swap.new}
    body = dict(stack.template["Resources"][swap.cluster])
    groups = body["Properties"].get(GROUPS[0])
    wanted = stated.resources[swap.cluster].properties.get(GROUPS[0])
    if not isinstance(groups, list) or not isinstance(wanted, list):
        return "the groups of the cluster are known only at deployment"
    new = [each for each in wanted if _name(each) in names]
    scripts = [_scripts(each) for each in groups]
    known = {*stack.template["Resources"], *stack.template.get("Parameters", {})}
    uses = {name for name, _ in references(new) if not name.startswith("AWS::")}
    late = [each for each in new if _scripts(each) not in scripts]
    uploads = _uploads(head, stated, late)
    first = _first(base, head, stated, new, uploads) if uses <= known and uploads is not None else None
    most = hyperpod.INSTANCE_GROUPS.maximum or 0
    if uploads is None:
        return f"the lifecycle scripts of {swap.new_names} are not uploaded yet"
    if first is None:
        return f"{swap.new_names} needs a resource that is not deployed yet"
    if len(groups) + len(new) > most:
        return f"a cluster has at most {most} groups"
    body["Properties"] = {**body["Properties"], GROUPS[0]: [*groups, *new]}
    template = {**stack.template, "Resources": {**stack.template["Resources"], swap.cluster: body}}
    if first:
        middle = with_stacks(base, [_as_of(stated, stack, template), *(head.by_name[name] for name in first)])
        asked = needs(base, middle, compare(base, middle))
        if asked.held or asked.missing:
            return f"{swap.new_names} needs a resource that can be deployed only after {swap.old_names} is removed"
    return template, first


def _first(
    base: Assembly, head: Assembly, stated: Stack, new: Sequence[Any], uploads: Collection[str]
) -> tuple[str, ...] | None:
    """Return the stacks of ``head`` with what new groups need and is not deployed, and ``uploads``; None if none has
    it."""
    found: dict[str, None] = {}
    open_ = [*imports(stated, new)]

    def add(stack: Stack) -> bool:
        if stack.name == stated.name or stack.name not in base.by_name:
            return False
        if stack.name not in found:
            found[stack.name] = None
            open_.extend(imports(stack))
        return True

    if not all(add(head.by_name[name]) for name in uploads):
        return None
    while open_:
        name = open_.pop()
        if name not in base.exports and (name not in head.exports or not add(head.exports[name][0])):
            return None
    return tuple(found)


def _uploads(head: Assembly, stated: Stack, groups: Sequence[Any]) -> set[str] | None:
    """Return the stacks that upload the lifecycle scripts of groups, None if no stack uploads one of them."""
    found: set[str] = set()
    for each in groups:
        place = plain(resolve(head, stated.name, _scripts(each)))
        stacks = {
            upload.stack
            for upload in head.of_type(_UPLOAD)
            if place.endswith(
                f"/{plain(resolve(head, upload.stack, upload.properties.get('DestinationBucketKeyPrefix')))}"
            )
        }
        if not stacks:
            return None
        found |= stacks
    return found


def _scripts(group: Any) -> Any:
    """Return the place of a group's lifecycle scripts: a new place is empty before they are uploaded."""
    found = group.get("LifeCycleConfig") if isinstance(group, dict) else None
    return found.get("SourceS3Uri") if isinstance(found, dict) else None


def _group_of(path: str) -> str:
    place, _, rest = path.partition("[")
    name, closes, after = rest.partition("]")
    return name if place in GROUPS and closes and after.startswith(".") else ""


def _with_groups(stack: Stack, cluster: str, gone: Collection[str]) -> dict[str, Any]:
    body = dict(stack.template["Resources"][cluster])
    properties = dict(body["Properties"])
    for key in GROUPS:
        if isinstance(properties.get(key), list):
            properties[key] = [each for each in properties[key] if _name(each) not in gone]
            if not properties[key]:
                del properties[key]
    body["Properties"] = properties
    return {**stack.template, "Resources": {**stack.template["Resources"], cluster: body}}


def _name(entry: Any) -> str:
    return str(entry.get(_NAMES)) if isinstance(entry, dict) else ""


def _without(stack: Stack, gone: Collection[str]) -> dict[str, Any] | None:
    """Return a stack's template without some resources, None if something refers to one of them."""
    template = dict(stack.template)
    resources: dict[str, Any] = {}
    for key, body in template["Resources"].items():
        if key in gone:
            continue
        waits = body.get("DependsOn", [])
        waits = [waits] if isinstance(waits, str) else waits
        left = [each for each in waits if each not in gone]
        resources[key] = {**{name: each for name, each in body.items() if name != "DependsOn"}}
        if left:
            resources[key]["DependsOn"] = left if len(left) > 1 or isinstance(body["DependsOn"], list) else left[0]
    template["Resources"] = resources
    if any(key in gone for key, _ in references(template)):
        return None
    return template


def _as_of(stated: Stack, deployed: Stack, template: Mapping[str, Any]) -> Stack:
    """Return a deployed stack as the app would deploy it: with its name and place, and with another template."""
    return replace(stated, template=template, exported=deployed.exported, told=deployed.told)


def with_stacks(assembly: Assembly, stacks: Sequence[Stack]) -> Assembly:
    """Return an assembly with other forms of some of its stacks."""
    forms = {stack.name: stack for stack in stacks}
    return replace(assembly, stacks=tuple(forms.get(stack.name, stack) for stack in assembly.stacks))


def moved(assembly: Assembly, folder: Path) -> Assembly:
    """Return an assembly as it is in another folder, with the same files."""
    if assembly.folder is None:
        return assembly
    top = resolved(assembly.folder)
    stacks = (
        each if each.file is None else replace(each, file=folder / resolved(each.file).relative_to(top))
        for each in assembly.stacks
    )
    return replace(assembly, folder=folder, stacks=tuple(stacks))


def write(head: Assembly, between: Sequence[Between], folder: Path) -> Path:
    """Write the head's assembly with intermediate stacks into a new folder, as the CDK CLI deploys it.

    Raises AssemblyError if the head is not in a folder.
    """
    if head.folder is None:
        raise AssemblyError("the assembly to deploy is not in a folder")
    target = copied(head.folder, folder / "cdk.out")
    for each in between:
        if each.stack.file is None:
            raise AssemblyError(f"{each.stack.name}: its template is not in a file")
        _put(target / resolved(each.stack.file).relative_to(resolved(head.folder)), each.stack)
    return target


def _put(file: Path, stack: Stack) -> None:
    """Replace a template by another one, with its own name in the bucket to which it is uploaded.

    The CDK CLI does not upload a file whose name is already there.
    """
    manifests = list(file.parent.glob("*.assets.json"))
    old = {key for each in manifests for key in _uploaded(each, file.name)}
    text = json.dumps(stack.template, indent=1)
    file.write_text(text, encoding="utf-8")
    new = hashlib.sha256(text.encode()).hexdigest()
    for other in (file.parent / "manifest.json", *manifests):
        said = other.read_text(encoding="utf-8")
        for key in old:
            said = said.replace(key, new)
        other.write_text(said, encoding="utf-8")


def _uploaded(manifest: Path, name: str) -> Iterator[str]:
    files = json.loads(manifest.read_text(encoding="utf-8")).get("files") or {}
    yield from (key for key, asset in files.items() if asset["source"].get("path") == name)
