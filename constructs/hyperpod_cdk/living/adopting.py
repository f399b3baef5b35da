"""Writes differences that the environment file can state into its text; comments, order and all the rest stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hyperpod_cdk.catalog.hyperpod import NODE_RECOVERY
from hyperpod_cdk.config.edits import EditError, Value, composed, newline_of, with_value
from hyperpod_cdk.config.source import read_source
from hyperpod_cdk.living.facts import canonical
from hyperpod_cdk.living.groups import CLUSTER
from hyperpod_cdk.living.hyperpod import QUOTAS
from hyperpod_cdk.living.kinds import KINDS
from hyperpod_cdk.living.model import Difference
from hyperpod_cdk.living.stacks import STACK
from hyperpod_cdk.living.standing import Living
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.values import resolve

Step = str | tuple[str, str]
"""A key, or the item of a list whose member of the first name has the second as its value."""

Properties = Callable[[Difference], Mapping[str, Any]]
"""Gives the properties that the last deployment wrote for the resource of a difference."""

Tagged = Callable[[str], int]
"""Gives how many of the compared resources got a tag from the last deployment."""

Rows = Callable[[Difference], Sequence[Mapping[str, Any]]]
"""Gives the groups of the cluster of a difference, as DescribeCluster has them."""

_BY_HAND: Final = "no field of the file is known for it; edit the file by hand, or let the next deployment set it back"
_GROUP: Final = re.compile(r"(Restricted)?InstanceGroups\[([^\]]+)\](?:\.(.+))?")
_OF_GROUP: Final = {
    "InstanceCount": "count",
    "MinInstanceCount": "min_count",
    "TrainingPlanArn": "training_plan_arn",
}
_TEXTS: Final = ("TrainingPlanArn",)
_LABEL: Final = "KubernetesConfig.Labels."
_QUOTA: Final = re.compile(r"ComputeQuotaConfig\.ComputeQuotaResources\[([^\]]+)\]\.Count")
_FILE_SYSTEM: Final = "AWS::FSx::FileSystem"
_OF_FILE_SYSTEM: Final = {"LustreConfiguration.PerUnitStorageThroughput": "throughput_mbps_per_tib"}
_GROWN: Final = (
    "a deployment would ask FSx for the capacity that it already has, and FSx accepts only a greater one"
    " (UpdateFileSystem); leave the file as it is until you need more"
)
_TAG: Final = re.compile(r"Tags\[(.+)\]")
_MARK: Final = "\ufeff"


@dataclass(frozen=True, kw_only=True)
class Left:
    """A difference that stays: where it is, and why the file cannot state it."""

    difference: Difference
    why: str


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """The text of a file that states what AWS has, as far as a file can; ``left`` is what it cannot state."""

    text: str
    left: tuple[Left, ...] = ()


class _NoPlaceError(Exception):
    """The file has no place for a difference; the sentence says why."""


def adopted(
    text: str,
    differences: Sequence[Difference],
    properties: Properties,
    *,
    environment: str,
    rows: Rows = lambda _: (),
    tagged: Tagged = lambda _: 0,
) -> Adopted:
    """Write what AWS has into the text of an environment file that is valid.

    Values are replaced in place; a missing key is added to its mapping. What the file states already stays. A group
    that was created by hand is written as a copy of the group of the file that differs only in name and count; ``rows``
    gives the groups of a cluster as DescribeCluster has them. The file has one value of a tag for all resources, so a
    tag is written only if all resources that ``tagged`` counts have the same other value.
    """
    left: list[Left] = []
    mark = _MARK if text.startswith(_MARK) else ""
    text = text.removeprefix(mark)
    for each in differences:
        if each.actual == each.file:
            continue
        try:
            if (tag := _TAG.fullmatch(each.path)) and each.type != STACK:
                text = _with_tag(text, tag[1], each, differences, tagged)
                continue
            found = _GROUP.fullmatch(each.path) if each.type == CLUSTER else None
            if found and found[3] is None and each.actual is not None:
                text = _with_group(text, found[2], rows(each), is_restricted=bool(found[1]))
                continue
            steps, value = _place(each, properties, environment)
            text = _written(text, steps, value)
        except (_NoPlaceError, EditError) as error:
            left.append(Left(difference=each, why=str(error)))
    return Adopted(text=mark + text, left=tuple(left))


def _with_tag(text: str, key: str, difference: Difference, differences: Sequence[Difference], tagged: Tagged) -> str:
    """Return the text with another value of a tag. Raises _NoPlaceError if not all have it, or the file has none."""
    if difference.deployed is None or _child(_child(composed(text), "tags"), key) is None:
        raise _NoPlaceError(f"the file has no tag {key}; if you add it under tags, all resources get it")
    if difference.actual is None:
        raise _NoPlaceError("AWS has nothing there; remove it from the file, or let a deployment create it again")
    of_resources = [each for each in differences if each.type != STACK and each.path == difference.path]
    alike = sum(each.actual == difference.actual for each in of_resources)
    others = tagged(key) - alike
    if others > 0:
        raise _NoPlaceError(
            f"the file has one value of tag {key} for all resources, and AWS has another one on"
            f" {count(others, 'other resource')}"
        )
    return _written(text, ["tags", key], difference.actual)


def _place(difference: Difference, properties: Properties, environment: str) -> tuple[Sequence[Step], Value]:
    """Return the place in the file for a difference, and the value there for what AWS has."""
    if difference.actual is None:
        raise _NoPlaceError("AWS has nothing there; remove it from the file, or let a deployment create it again")
    value, path = difference.actual, difference.path
    if difference.type == CLUSTER:
        return _of_cluster(path, value)
    if difference.type == "AWS::EKS::Addon" and path == "AddonVersion":
        return ("eks", "addon_versions", difference.id.rpartition("|")[2]), value
    if difference.type in QUOTAS and (found := _QUOTA.fullmatch(path)):
        team = (properties(difference).get("ComputeQuotaTarget") or {}).get("TeamName")
        if isinstance(team, str):
            quota = ("task_governance", "teams", ("name", team), "quota", ("instance_type", found[1]), "count")
            return quota, _number(value)
    if difference.type == _FILE_SYSTEM and path == "StorageCapacity":
        raise _NoPlaceError(_GROWN)
    if difference.type == _FILE_SYSTEM and path in _OF_FILE_SYSTEM:
        tags = properties(difference).get("Tags") or ()
        name = next((str(tag["Value"]) for tag in tags if tag["Key"] == "Name"), "")
        if name.startswith(f"{environment}-"):
            one = ("name", name.removeprefix(f"{environment}-"))
            return ("storage", "lustre", one, _OF_FILE_SYSTEM[path]), _number(value)
    raise _NoPlaceError(_BY_HAND)


def _of_cluster(path: str, value: str) -> tuple[Sequence[Step], Value]:
    if path == "NodeRecovery":
        words = {theirs: ours for ours, theirs in NODE_RECOVERY.items()}
        if value in words:
            return ("hyperpod", "node_recovery"), words[value]
    found = _GROUP.fullmatch(path)
    if found is None:
        raise _NoPlaceError(_BY_HAND)
    restricted, name, member = found.groups()
    group: tuple[Step, ...] = (
        "hyperpod",
        "restricted_instance_groups" if restricted else "instance_groups",
        ("name", name),
    )
    if member in _OF_GROUP:
        return (*group, _OF_GROUP[member]), value if member in _TEXTS else _number(value)
    if member is not None and member.startswith(_LABEL):
        return (*group, "labels", member.removeprefix(_LABEL)), value
    raise _NoPlaceError(_BY_HAND)


def _number(value: str) -> int:
    if not value.isdecimal():
        raise _NoPlaceError(_BY_HAND)
    return int(value)


def _with_group(text: str, name: str, rows: Sequence[Mapping[str, Any]], *, is_restricted: bool) -> str:
    """Return the text with one more group, a copy of the one that it equals. Raises _NoPlaceError if there is none."""
    by_name = {str(row.get("InstanceGroupName")): row for row in rows}
    key = "restricted_instance_groups" if is_restricted else "instance_groups"
    groups = _child(_child(composed(text), "hyperpod"), key)
    items: Sequence[Any] = groups.value if isinstance(groups, yaml.SequenceNode) else []
    mine = by_name.get(name)
    for number, item in enumerate(items):
        other = _value(item, "name")
        if mine is None or other == name or other not in by_name or _kept(by_name[other]) != _kept(mine):
            continue
        longer = _with_copy(text, groups, item)
        data = read_source(text, "").data
        if not isinstance(data, dict) or not isinstance(data["hyperpod"], dict):
            break
        copied = [*data["hyperpod"][key], data["hyperpod"][key][number]]
        if read_source(longer, "").data != {**data, "hyperpod": {**data["hyperpod"], key: copied}}:
            raise _NoPlaceError(
                f"group {other}, from which it differs only in name and count, cannot be copied; add it by hand"
            )
        place = ("hyperpod", key, len(items))
        return with_value(with_value(longer, (*place, "name"), name), (*place, "count"), int(mine["TargetCount"]))
    raise _NoPlaceError(
        f"no deployment created group {name}, and every group of the file differs in more than name and count; add it"
        " by hand"
    )


def _with_copy(text: str, groups: Any, item: Any) -> str:
    """Return the text with a group once more at the end of the list, in the way in which it is written."""
    last = groups.value[-1]
    if groups.flow_style:
        end = last.end_mark.index
        return f"{text[:end]}, {text[item.start_mark.index : item.end_mark.index]}{text[end:]}"
    newline = newline_of(text)
    lines = text.split("\n")
    end = max(each.end_mark.line for each in _leaves(last)) + 1
    before = lines[:end] if end < len(lines) else [*lines[:-1], f"{lines[-1]}{newline[:-1]}"]
    return "\n".join([*before, *(f"{line}{newline[:-1]}" for line in _lines_of(lines, item)), *lines[end:]])


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a group without its name, its counts and what AWS changes without a request."""
    own = {"InstanceGroupName", "TargetCount", "Status", "ImageVersionStatus"}
    return {key: _as_text(each) for key, each in row.items() if key not in own and not key.startswith("Current")}


def _as_text(value: Any) -> str:
    """Return a member of a group as one text, without values that hold only at the moment."""
    if isinstance(value, Mapping):
        value = {key: each for key, each in value.items() if not str(key).startswith("Current")}
    return canonical(value)


def _leaves(node: Any) -> Iterator[Any]:
    """Yield a value as text for its own lines: plain values, and mappings in braces."""
    if isinstance(node, yaml.ScalarNode) or getattr(node, "flow_style", False) or not node.value:
        yield node
    elif isinstance(node, yaml.MappingNode):
        for key, each in node.value:
            yield key
            yield from _leaves(each)
    else:
        for each in node.value:
            yield from _leaves(each)


def _lines_of(lines: Sequence[str], item: Any) -> Iterator[str]:
    """Yield the lines of the item of a list without comments."""
    ends: dict[int, int] = {}
    for each in _leaves(item):
        ends[each.end_mark.line] = max(ends.get(each.end_mark.line, 0), each.end_mark.column)
    first: int = item.start_mark.line
    if not lines[first][: item.start_mark.column].strip():
        dash = max(number for number in range(first) if lines[number].lstrip().startswith("-"))
        yield lines[dash].partition("#")[0].rstrip()
    for number in range(first, max(ends) + 1):
        line = lines[number].removesuffix("\r")
        if number in ends:
            line = line[: ends[number]] + line[ends[number] :].partition("#")[0].rstrip()
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


def _written(text: str, steps: Sequence[Step], value: Value) -> str:
    """Return the text with a value at a place. Raises _NoPlaceError and EditError if nothing there can hold it."""
    path: list[str | int] = []
    node: Any = composed(text)
    for step in steps:
        if isinstance(step, tuple):
            found = _item(node, step)
            if found is None:
                raise _NoPlaceError("the file does not have the item that it belongs to; add it by hand")
            number, node = found
            path.append(number)
        else:
            node = _child(node, step)
            path.append(step)
    return with_value(text, tuple(path), value)


def _child(node: Any, key: str) -> Any:
    rows = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((each for name, each in rows if name.value == key), None)


def _item(node: Any, step: tuple[str, str]) -> tuple[int, Any] | None:
    key, wanted = step
    items = node.value if isinstance(node, yaml.SequenceNode) else ()
    found = ((number, item) for number, item in enumerate(items) if _value(item, key) == wanted)
    return next(found, None)


def _value(item: Any, key: str) -> Any:
    return getattr(_child(item, key), "value", None)


def tagged_in(living: Living) -> Tagged:
    """Return a function that counts the compared resources to which the last deployment gave a tag."""
    keys = [
        [str(each.get("Key")) for each in stated if isinstance(each, Mapping)]
        for resource in living.deployed.resources()
        if resource.type in KINDS
        and "Tags" in KINDS[resource.type].properties
        and isinstance(stated := resource.properties.get("Tags"), list)
    ]
    return lambda key: sum(key in each for each in keys)


def properties_of(living: Living) -> Properties:
    """Return a function that finds the properties that the last deployment wrote for the resource of a difference."""
    resources = {(each.stack, each.name): each for each in living.deployed.resources()}

    def found(difference: Difference) -> Mapping[str, Any]:
        resource = resources[difference.stack, difference.resource]
        resolved = resolve(living.deployed, resource.stack, dict(resource.properties))
        return resolved if isinstance(resolved, dict) else {}

    return found
