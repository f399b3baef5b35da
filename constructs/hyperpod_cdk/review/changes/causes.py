"""Which line of the environment file caused a change.

The environment file decides properties in known places: those of SageMaker's and FSx's types one by one
(``property_paths.json``, which the tests compare with the schemas), some of other types as well. A line that differs
between the two files and decides a changed property is a cause. If no such line is known, no cause is given: a wrong
one would mislead, and the library, a lifecycle script or a chart may have changed, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hyperpod_cdk.review.model import BlastRadius, Cause, Effect, PropertyEffect, ResourceEffect
from hyperpod_cdk.script_files import ENVIRONMENT, STEPS
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import MISSING
from hyperpod_cdk.templates.values import resolve

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment

_PATHS = Path(__file__).parent / "property_paths.json"
_LONGEST = 80

_PLACES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    # the lists whose items become constructs, by the construct's path below the stack; the first match counts
    ("Lustre-(?P<item>[^/]+)", ("storage.lustre",)),
    ("Restricted(Node)?Role-(?P<item>[^/]+)", ("hyperpod.restricted_instance_groups",)),
    ("KarpenterPools/Pool-(?P<item>[^/]+)", ("hyperpod.karpenter_pools",)),
    ("TaskGovernance/(Quota|DefaultQueue)-(?P<item>[^/]+)", ("task_governance.teams",)),
    ("S3?Claims-(?P<item>[^/]+)", ("storage.s3",)),
    ("(Own)?Claims-(?P<item>[^/]+)", ("storage.lustre",)),
    ("OwnS3Claims-(?P<item>[^/]+)", ("storage.s3",)),
)

_MADE_OF: Final = (("AWS::EKS::AccessEntry", re.compile(r"(?:.*/)?AdminAccess\w+"), "eks.admin_role_arns"),)
"""Resources, by type and construct, that are added and removed with an item of a list without names."""

_GROUPS: Final = ("hyperpod.instance_groups", "hyperpod.restricted_instance_groups")

_IDENTITY: Final = ("name", "account", "region")
"""Fields that, when changed, replace all stacks by others."""

_OWN: Final = {"Custom::HyperPodDeletionProtection": "deletion_protection"}
"""Custom resources of this library that one place of the environment file decides as a whole."""


@dataclass(frozen=True, kw_only=True)
class LineChange:
    """One place of the environment file that differs: ``place`` without list items, ``items`` their names."""

    place: str
    items: tuple[str, ...]
    before: Any
    after: Any
    cause: Cause


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(_PATHS.read_text(encoding="utf-8"))
    return tables


def property_paths() -> dict[str, dict[str, dict[str, str]]]:
    """Return, by type, where the environment file decides each property (``from``), or why it never does."""
    types: dict[str, dict[str, dict[str, str]]] = _tables()["types"]
    return types


def other_paths() -> dict[str, dict[str, str]]:
    """Return, for types that the library mostly decides, the place of the environment file by property."""
    others: dict[str, dict[str, str]] = _tables()["others"]
    return others


def line_changes(base: LoadedEnvironment | None, head: LoadedEnvironment | None) -> list[LineChange]:
    """Return what differs between two environment files as they are written, nothing if one is missing."""
    if base is None or head is None:
        return []
    return [
        LineChange(
            place=".".join(str(step) for step in _keys(where)),
            items=tuple(name for name, _, _ in _items(where)),
            before=before,
            after=after,
            cause=_cause(base, head, where, before, after),
        )
        for where, before, after in _differences((), base.as_written, head.as_written)
    ]


def with_causes(
    radius: BlastRadius,
    base: Assembly,
    head: Assembly,
    *,
    base_environment: LoadedEnvironment | None,
    head_environment: LoadedEnvironment | None,
) -> BlastRadius:
    """Return the blast radius with the cause of every change, as far as a line or a file of the project matches."""
    lines = line_changes(base_environment, head_environment)
    scripts = changed_scripts(base, head)
    return explained(radius, lines, scripts) if lines or scripts else radius


def explained(radius: BlastRadius, lines: list[LineChange], scripts: tuple[Cause, ...] = ()) -> BlastRadius:
    """Return the blast radius with the lines and scripts that caused each change, instead of any earlier causes."""
    bare = (each.model_copy(update={"causes": ()}) for each in radius.resources)
    return radius.model_copy(update={"resources": tuple(_explained(each, lines, scripts) for each in bare)})


def changed_scripts(base: Assembly, head: Assembly) -> tuple[Cause, ...]:
    """Return the lifecycle scripts that differ between two assemblies, as far as both still have them."""
    before, after = (_script_folders(assembly) for assembly in (base, head))
    if len(before) != 1 or len(after) != 1 or before == after:
        return ()
    old, new = _texts(before.pop()), _texts(after.pop())
    return tuple(
        Cause(file=f"lifecycle_scripts/{name}", path="")
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def line_of_failure(resource: Resource | None, reason: str, environment: LoadedEnvironment) -> Cause | None:
    """Return the line of the environment file that a failed resource is about, None if none is known.

    It is the line whose path the reason states; else the only one whose value the reason repeats, a version or an ARN;
    else the item of a list from which the resource was created. A wrong line is worse than none.
    """
    from hyperpod_cdk.config.source import parse_path, render_path  # noqa: PLC0415 - as below

    data = environment.as_written
    paths = [path for each in _PATH.findall(reason) if (path := parse_path(each)) is not None]
    # for a key that is omitted, the section that would contain it
    stated = [path for path in paths if _leads(data, path[:-1])][:1]
    if not stated:
        stated = [
            path
            for path, value in _scalars((), data)
            if isinstance(value, str)
            and _TELLS.search(value)
            and path[0] not in _IDENTITY
            and _stands_in(value, reason)
        ]
    if not stated and resource is not None:
        places, item = _construct_places(resource.name)
        stated = [path for place in places for path in _items_called(data, place, item)]
    if len(stated) != 1:
        return None
    shown = render_path(stated[0])
    return Cause(file=environment.file, line=environment.line_of(shown), path=shown)


def line_of_property(resource: Resource, path: str, environment: LoadedEnvironment) -> Cause | None:
    """Return the line of the environment file that decides a property, None if none is known.

    ``path`` names items of lists, or is empty for the resource as a whole: ``InstanceGroups[h100].InstanceCount``. For
    a field that is omitted, the line is that of the section that would contain it. A wrong line is worse than none.
    """
    from hyperpod_cdk.config.source import render_path  # noqa: PLC0415 - as above

    data = environment.as_written
    construct, own_item = _construct_places(resource.name)
    items = [each for each in (own_item, *re.findall(r"\[([^\]]+)\]", path)) if each]
    found: list[tuple[str | int, ...]] = []
    if tag := re.fullmatch(r"Tags\[(.+)\]", path):
        found = [("tags", tag[1])] if _leads(data, ("tags", tag[1])) else []
    elif (path and _IS_GROUP.fullmatch(path)) or not path:
        places = _GROUPS if path else construct
        found = [where for place in places for where in _items_called(data, place, items[-1] if items else "")]
    else:
        for place in _deciding(resource.type, re.sub(r"\[[^\]]*\]", "", path)):
            found += [each for each in [_walked(data, place.split("."), items)] if each is not None]
    if len(found) != 1:
        return None
    shown = render_path(found[0])
    return Cause(file=environment.file, line=environment.line_of(shown), path=shown)


_IS_GROUP: Final = re.compile(r"\w*InstanceGroups\[[^\]]+\]")


def _deciding(resource_type: str, path: str) -> Iterator[str]:
    """Return the place that decides a property, with the rest of the property's path if the place is a mapping."""
    table = property_paths().get(resource_type, {}).get("from", {})
    steps = path.split(".")
    for length in range(len(steps), 0, -1):
        place = table.get(".".join(steps[:length]), "")
        if "." in place:
            yield ".".join([place, *steps[length:]])
            return
    if place := _decided(resource_type, path):
        yield place


def _walked(data: object, keys: Sequence[str], items: Sequence[str]) -> tuple[str | int, ...] | None:
    """Return the path of keys in the file's data, with the items of lists whose names are in ``items``."""
    where: tuple[str | int, ...] = ()
    for key in keys:
        if isinstance(data, list):
            called = [
                index
                for index, each in enumerate(data)
                if isinstance(each, dict) and any(each.get(name) in items for name in _CALLED)
            ]
            if len(called) != 1:
                return None
            where, data = (*where, called[0]), data[called[0]]
        if not isinstance(data, dict):
            return None
        where = (*where, key)
        if key not in data:
            return where
        data = data[key]
    return where


_CALLED: Final = ("name", "instance_type", "key")
"""Fields that identify the items of the file's lists."""

_PATH: Final = re.compile(r"(?<![\w.])[a-z_]+(?:\.[\w-]+|\[\d+\])+")
"""How a reason states a place of the environment file: ``hyperpod.instance_groups[1].count``."""

_TELLS: Final = re.compile(r"(?=.*\d)(?=.*[./:-]).{6,}")
"""A value that identifies one item: it has a digit and a sign, so it is no ordinary word of a reason."""


def _leads(data: object, path: tuple[str | int, ...]) -> bool:
    """Whether a path exists in the file's data."""
    for step in path:
        is_item = isinstance(data, list) and isinstance(step, int) and step < len(data)
        if not is_item and not (isinstance(data, dict) and step in data):
            return False
        data = data[step]  # type: ignore[index]  # a list or a mapping, by the line above
    return bool(path)


def _stands_in(value: str, text: str) -> bool:
    return re.search(rf"(?<![\w./:-]){re.escape(value)}(?![\w/-]|[.:]\w)", text) is not None


def _scalars(where: tuple[str | int, ...], value: object) -> Iterator[tuple[tuple[str | int, ...], object]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _scalars((*where, str(key)), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _scalars((*where, index), each)
    elif where:
        yield where, value


def _items_called(data: object, place: str, item: str) -> Iterator[tuple[str | int, ...]]:
    """Return the paths of the items of a list that have a name, by the keys that lead to it: ``storage.lustre``."""
    keys = tuple(place.split("."))
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    for index, each in enumerate(_listed(data)):
        if isinstance(each, dict) and each.get("name") == item:
            yield (*keys, index)


def _explained(resource: ResourceEffect, lines: list[LineChange], scripts: tuple[Cause, ...]) -> ResourceEffect:
    properties = tuple(
        each.model_copy(update={"causes": _causes_of(resource, each, lines, scripts)}) for each in resource.properties
    )
    causes = dict.fromkeys(cause for each in properties for cause in each.causes)
    if not causes and not properties:
        causes = dict.fromkeys(_from_lines(resource, "", lines, is_indirect=False))
    return resource.model_copy(update={"properties": properties, "causes": tuple(causes)})


def _causes_of(
    resource: ResourceEffect, changed: PropertyEffect, lines: list[LineChange], scripts: tuple[Cause, ...]
) -> tuple[Cause, ...]:
    if scripts and (changed.path.endswith("SourceS3Uri") or resource.type == "Custom::CDKBucketDeployment"):
        return scripts
    return tuple(_from_lines(resource, changed.path, lines, is_indirect=changed.is_indirect))


def _from_lines(resource: ResourceEffect, path: str, lines: list[LineChange], *, is_indirect: bool) -> Iterable[Cause]:
    for candidates in _candidates(resource, path, lines, is_indirect=is_indirect):
        if candidates:
            return [line.cause for line in candidates]
    return ()


def _candidates(
    resource: ResourceEffect, path: str, lines: list[LineChange], *, is_indirect: bool
) -> Iterator[list[LineChange]]:
    """Return the lines that caused a change, or nothing: a wrong line is worse than none.

    If the two files differ in only one place, it is that. Of several places, a line counts for the property that it
    decides by the tables, and for resources that are added or removed with its item or switch. A resource that only
    refers to a replaced one has the cause of that replacement.
    """
    if len(lines) == 1:
        yield lines
    identity = [line for line in lines if line.place in _IDENTITY]
    if identity and resource.effect in (Effect.ADDED, Effect.LEFT_BEHIND):
        # all stacks of the environment are others, and nothing is added or removed for another reason
        yield identity
        return
    if identity or is_indirect:
        return
    plain_path = re.sub(r"\[[^\]]*\]", "", path)
    construct, own_item = _construct_places(resource.name)
    found = next(iter(re.findall(r"\[([^\]]+)\]", path)), "")
    # an index is not a name: the item is the one from which the construct is created
    item = own_item if found.isdecimal() else found or own_item
    if resource.type == "AWS::SageMaker::Cluster" and _IS_GROUP.fullmatch(path):
        yield [line for line in lines if line.place in _GROUPS and line.items == (item,)]
        return
    exact = property_paths().get(resource.type, {}).get("from", {}).get(plain_path, "")
    place = exact if "." in exact else _decided(resource.type, plain_path)
    if place:
        yield [line for line in lines if _touches(line, place) and _is_about(line, item)]
        return
    for kind, construct_name, made_of in () if path else _MADE_OF:
        if resource.type == kind and construct_name.fullmatch(resource.name):
            yield [line for line in lines if line.place == made_of]
            return
    if not path and own_item:
        whole = [line for line in lines if MISSING in (line.before, line.after) and line.items[-1:] == (own_item,)]
        yield [line for line in whole if any(line.place == each for each in construct)]


def _decided(resource_type: str, path: str) -> str:
    """Return the place that alone decides a property of a type that ``property_paths()`` does not have.

    A property with several parts has one if the same place decides all of them.
    """
    places = {
        place
        for name, place in other_paths().get(resource_type, {}).items()
        if path and (_is_below(path, name) or _is_below(name, path))
    }
    if len(places) == 1:
        return places.pop()
    return _OWN.get(resource_type) or ("tags" if _is_below(path, "Tags") else "")


def _is_below(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.")


def _construct_places(name: str) -> tuple[tuple[str, ...], str]:
    for pattern, places in _PLACES:
        found = re.match(pattern, name)
        if found:
            return places, found.groupdict().get("item") or ""
    return (), ""


def _touches(line: LineChange, place: str) -> bool:
    """Whether a changed place is ``place``, is in it or contains it."""
    return line.place == place or line.place.startswith(f"{place}.") or place.startswith(f"{line.place}.")


def _is_about(line: LineChange, item: str) -> bool:
    """Whether a changed place belongs to the item, or to no item."""
    return not item or not line.items or item in line.items


def _differences(
    where: tuple[Any, ...], before: object, after: object
) -> Iterator[tuple[tuple[Any, ...], object, object]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _differences((*where, key), before.get(key, MISSING), after.get(key, MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        old, new = _by_name(before), _by_name(after)
        if old is None or new is None:
            if before != after:
                yield where, before, after
            return
        for name in (*old, *(name for name in new if name not in old)):
            old_index, old_item = old.get(name, (None, MISSING))
            new_index, new_item = new.get(name, (None, MISSING))
            yield from _differences((*where, (name, old_index, new_index)), old_item, new_item)
    elif before != after or type(before) is not type(after):
        yield where, before, after


def _by_name(items: list[Any]) -> dict[str, tuple[int, Any]] | None:
    """Return (index, item) of each item by its name, None if they have no names or share one."""
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items):
        return None
    named = {item["name"]: (index, item) for index, item in enumerate(items)}
    return named if len(named) == len(items) else None


def _keys(where: tuple[Any, ...]) -> list[object]:
    return [step for step in where if not isinstance(step, tuple)]


def _items(where: tuple[Any, ...]) -> list[tuple[str, int | None, int | None]]:
    return [step for step in where if isinstance(step, tuple)]


def _cause(
    base: LoadedEnvironment, head: LoadedEnvironment, where: tuple[Any, ...], before: object, after: object
) -> Cause:
    from hyperpod_cdk.config.source import render_path  # noqa: PLC0415 - a template alone needs no environment's models

    gone = after is MISSING
    path = render_path(tuple((step[1] if gone else step[2]) if isinstance(step, tuple) else step for step in where))
    loaded = base if gone else head
    return Cause(file=loaded.file, line=loaded.line_of(path), path=path, before=_shown(before), after=_shown(after))


def _shown(value: object) -> str | None:
    if value is MISSING:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _script_folders(assembly: Assembly) -> set[Path]:
    """Return the asset folders that are uploaded as lifecycle scripts, without what the environment file writes
    there."""
    if assembly.folder is None:
        return set()
    keys = {
        str(key)
        for resource in assembly.of_type("Custom::CDKBucketDeployment")
        for key in _listed(resolve(assembly, resource.stack, resource.properties.get("SourceObjectKeys")))
    }
    folders = (assembly.folder / f"asset.{key.removesuffix('.zip')}" for key in sorted(keys))
    return {folder for folder in folders if folder.is_dir() and not all(map(_is_added, _texts(folder)))}


def _is_added(name: str) -> bool:
    """Whether a file is uploaded in addition to the folder of scripts: input of nodes, and steps of extensions."""
    return name == ENVIRONMENT or name.startswith(f"{STEPS}/")


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(folder: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
