"""Differences that the environment file can say, written into its text: comments, order and all the rest stay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hyperpod_cdk.catalog.hyperpod import NODE_RECOVERY
from hyperpod_cdk.living.facts import canonical
from hyperpod_cdk.living.groups import CLUSTER
from hyperpod_cdk.living.kinds import KINDS
from hyperpod_cdk.living.model import Difference
from hyperpod_cdk.living.stacks import STACK
from hyperpod_cdk.living.standing import Living
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.values import resolve

Step = str | tuple[str, str]
"""A key, or the item of a list whose member of the first name has the second as its value."""

Properties = Callable[[Difference], Mapping[str, Any]]
"""Gives what the last deployment wrote of the resource of a difference."""

Tagged = Callable[[str], int]
"""Gives how many resources that are compared the last deployment gave a tag."""

Rows = Callable[[Difference], Sequence[Mapping[str, Any]]]
"""Gives the groups of the cluster of a difference, as DescribeCluster has them."""

_BY_HAND: Final = "the file has no field for it; write it by hand, or let the next deployment set it back"
_GROUP: Final = re.compile(r"(Restricted)?InstanceGroups\[([^\]]+)\](?:\.(.+))?")
_OF_GROUP: Final = {
    "InstanceCount": "count",
    "MinInstanceCount": "min_count",
    "TrainingPlanArn": "training_plan_arn",
}
_LABEL: Final = "KubernetesConfig.Labels."
_QUOTA: Final = re.compile(r"ComputeQuotaConfig\.ComputeQuotaResources\[([^\]]+)\]\.Count")
_FILE_SYSTEM: Final = "AWS::FSx::FileSystem"
_OF_FILE_SYSTEM: Final = {"LustreConfiguration.PerUnitStorageThroughput": "throughput_mbps_per_tib"}
_GROWN: Final = (
    "a deployment would ask FSx for the capacity that is there, and FSx takes only a greater one (UpdateFileSystem);"
    " leave the file until you need more, and write that then"
)
_TAG: Final = re.compile(r"Tags\[(.+)\]")
_PLAIN: Final = re.compile(r"0|[1-9][0-9]*|[a-z][A-Za-z0-9_./:-]*[0-9A-Za-z]")
"""Values that AWS has and that no YAML reads as something else: numbers, ARNs, versions."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """A difference that stays one: where it is, and why the file does not say it."""

    difference: Difference
    why: str


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """The text of a file that says what AWS has, as far as a file can; ``left`` is what it cannot."""

    text: str
    left: tuple[Left, ...] = ()


class _NoPlaceError(Exception):
    """The file does not have what a difference is about; the sentence says so."""


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

    Values are replaced where they stand; a key that is not there is added to the mapping that would hold it. What the
    file says already stays. A group that somebody made by hand is written as the group of the file that it equals but
    for its name and count; ``rows`` gives the groups of a cluster as DescribeCluster has them. A tag has one value for
    everything, so it is written only where all that ``tagged`` counts has the same other one.
    """
    left: list[Left] = []
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
        except _NoPlaceError as error:
            left.append(Left(difference=each, why=str(error)))
    return Adopted(text=text, left=tuple(left))


def _with_tag(text: str, key: str, difference: Difference, differences: Sequence[Difference], tagged: Tagged) -> str:
    """Give the text with another value of a tag. Raises _NoPlaceError where not all have it, or the file has none."""
    if difference.deployed is None or _child(_child(yaml.compose(text, Loader=yaml.SafeLoader), "tags"), key) is None:
        raise _NoPlaceError(f"the file gives no tag {key}; write it below tags, and everything gets it")
    if difference.actual is None:
        raise _NoPlaceError("AWS has nothing there; take it out of the file by hand, or let it be made again")
    of_resources = [each for each in differences if each.type != STACK and each.path == difference.path]
    alike = sum(each.actual == difference.actual for each in of_resources)
    others = tagged(key) - alike
    if others > 0:
        raise _NoPlaceError(
            f"the file has one value of tag {key} for everything, and AWS has another one on"
            f" {count(others, 'other resource')}"
        )
    return _written(text, ["tags", key], json.dumps(difference.actual))


def _place(difference: Difference, properties: Properties, environment: str) -> tuple[Sequence[Step], str]:
    """Give where the file says what a difference is about, and how it writes what AWS has."""
    if difference.actual is None:
        raise _NoPlaceError("AWS has nothing there; take it out of the file by hand, or let it be made again")
    value, path = difference.actual, difference.path
    if difference.type == CLUSTER:
        return _of_cluster(path, value)
    if difference.type == "AWS::EKS::Addon" and path == "AddonVersion":
        return ("eks", "addon_versions", difference.id.rpartition("|")[2]), _scalar(value)
    if difference.type == "AWS::SageMaker::ComputeQuota" and (found := _QUOTA.fullmatch(path)):
        team = (properties(difference).get("ComputeQuotaTarget") or {}).get("TeamName")
        if isinstance(team, str):
            quota = ("task_governance", "teams", ("name", team), "quota", ("instance_type", found[1]), "count")
            return quota, _scalar(value)
    if difference.type == _FILE_SYSTEM and path == "StorageCapacity":
        raise _NoPlaceError(_GROWN)
    if difference.type == _FILE_SYSTEM and path in _OF_FILE_SYSTEM:
        tags = properties(difference).get("Tags") or ()
        name = next((str(tag["Value"]) for tag in tags if tag["Key"] == "Name"), "")
        if name.startswith(f"{environment}-"):
            one = ("name", name.removeprefix(f"{environment}-"))
            return ("storage", "lustre", one, _OF_FILE_SYSTEM[path]), _scalar(value)
    raise _NoPlaceError(_BY_HAND)


def _of_cluster(path: str, value: str) -> tuple[Sequence[Step], str]:
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
        return (*group, _OF_GROUP[member]), _scalar(value)
    if member is not None and member.startswith(_LABEL):
        return (*group, "labels", member.removeprefix(_LABEL)), json.dumps(value)
    raise _NoPlaceError(_BY_HAND)


def _with_group(text: str, name: str, rows: Sequence[Mapping[str, Any]], *, is_restricted: bool) -> str:
    """Give the text with one more group: a copy of the one that it equals. Raises _NoPlaceError where there is none."""
    by_name = {str(row.get("InstanceGroupName")): row for row in rows}
    key = "restricted_instance_groups" if is_restricted else "instance_groups"
    groups = _child(_child(yaml.compose(text, Loader=yaml.SafeLoader), "hyperpod"), key)
    items: Sequence[Any] = groups.value if isinstance(groups, yaml.SequenceNode) else []
    mine = by_name.get(name)
    for item in items:
        other = getattr(_child(item, "name"), "value", "")
        if mine is None or other == name or other not in by_name or _kept(by_name[other]) != _kept(mine):
            continue
        copy = _item_of(text, item, in_flow=bool(groups.flow_style))
        copied: tuple[str, str] = ("name", other)
        copy = _written(copy, [copied, "name"], _scalar(name))
        copied = ("name", name)
        copy = _written(copy, [copied, "count"], str(mine["TargetCount"]))
        if groups.flow_style:
            end = items[-1].end_mark.index
            return f"{text[:end]}, {copy[1:-1]}{text[end:]}"
        lines = text.split("\n")
        last = max(each.end_mark.line for each in _leaves(items[-1])) + 1
        return "\n".join([*lines[:last], *copy.split("\n"), *lines[last:]])
    raise _NoPlaceError(
        f"no deployment made group {name}, and none of the file equals it but for name and count; write it by hand"
    )


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """Give what makes a group what it is: without name, counts and what changes by itself."""
    own = {"InstanceGroupName", "TargetCount", "Status", "ImageVersionStatus"}
    return {key: _as_text(each) for key, each in row.items() if key not in own and not key.startswith("Current")}


def _as_text(value: Any) -> str:
    """Give a member of a group as one text, without what it has at this moment only."""
    if isinstance(value, Mapping):
        value = {key: each for key, each in value.items() if not str(key).startswith("Current")}
    return canonical(value)


def _leaves(node: Any) -> Iterator[Any]:
    """Give what stands on lines of its own: plain values, and what stands in braces."""
    if isinstance(node, yaml.ScalarNode) or getattr(node, "flow_style", False) or not node.value:
        yield node
    elif isinstance(node, yaml.MappingNode):
        for key, each in node.value:
            yield key
            yield from _leaves(each)
    else:
        for each in node.value:
            yield from _leaves(each)


def _item_of(text: str, item: Any, *, in_flow: bool) -> str:
    """Give the item of a list as a list of its own, without comments."""
    if in_flow:
        return f"[{text[item.start_mark.index : item.end_mark.index]}]"
    ends: dict[int, int] = {}
    for each in _leaves(item):
        ends[each.end_mark.line] = max(ends.get(each.end_mark.line, 0), each.end_mark.column)
    lines = text.split("\n")
    first, last = item.start_mark.line, max(ends)
    found = []
    for number in range(first, last + 1):
        line = lines[number]
        rest = line[ends[number] :] if number in ends else ""
        found.append(line[: ends[number]] + rest.partition("#")[0].rstrip() if number in ends else line)
    return "\n".join(line for line in found if line.strip() and not line.lstrip().startswith("#"))


def _scalar(value: str) -> str:
    """Give a number, an ARN or a version as YAML has it; anything else in quotes."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value)


def _written(text: str, steps: Sequence[Step], value: str) -> str:
    """Give the text with a value at a place. Raises _NoPlaceError where what would hold it is not there."""
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for number, step in enumerate(steps):
        following = _child(node, step)
        if following is None:
            return _added(text, node, steps[number:], value)
        node = following
    if not isinstance(node, yaml.ScalarNode):
        raise _NoPlaceError(_BY_HAND)
    return f"{text[: node.start_mark.index]}{value}{text[node.end_mark.index :]}"


def _child(node: Any, step: Step) -> Any:
    if isinstance(step, str):
        rows = node.value if isinstance(node, yaml.MappingNode) else ()
        return next((each for key, each in rows if key.value == step), None)
    key, wanted = step
    items = node.value if isinstance(node, yaml.SequenceNode) else ()
    return next((item for item in items if getattr(_child(item, key), "value", None) == wanted), None)


def _added(text: str, node: Any, steps: Sequence[Step], value: str) -> str:
    """Add a key to a mapping; what it holds stands in braces."""
    named = [step for step in steps if isinstance(step, str)]
    if len(named) < len(steps) or not isinstance(node, yaml.MappingNode) or not node.value:
        raise _NoPlaceError("the file does not have what it belongs to; write it by hand")
    first, *rest = (_key(each) for each in named)
    inner = value
    for each in reversed(rest):
        inner = f"{{{each}: {inner}}}"
    if node.flow_style:
        end = node.value[-1][1].end_mark.index
        return f"{text[:end]}, {first}: {inner}{text[end:]}"
    column = node.value[0][0].start_mark.column
    line = f"{' ' * column}{first}: {inner}"
    plain = next((each for _, each in node.value if isinstance(each, yaml.ScalarNode)), None)
    rows = text.split("\n")
    if plain is not None:
        # below a value of one line, so that no comment loses what stands below it
        place = plain.end_mark.line + 1
    else:
        place = node.value[0][0].start_mark.line
        while place and rows[place - 1].lstrip().startswith("#"):
            place -= 1
    return "\n".join([*rows[:place], line, *rows[place:]])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) else json.dumps(name)


def tagged_in(living: Living) -> Tagged:
    """Give what counts the resources that are compared and to which the last deployment gave a tag."""
    keys = [
        [str(each.get("Key")) for each in stated if isinstance(each, Mapping)]
        for resource in living.deployed.resources()
        if resource.type in KINDS
        and "Tags" in KINDS[resource.type].properties
        and isinstance(stated := resource.properties.get("Tags"), list)
    ]
    return lambda key: sum(key in each for each in keys)


def properties_of(living: Living) -> Properties:
    """Give what finds the properties that the last deployment wrote of the resource of a difference."""
    resources = {(each.stack, each.name): each for each in living.deployed.resources()}

    def found(difference: Difference) -> Mapping[str, Any]:
        resource = resources[difference.stack, difference.resource]
        resolved = resolve(living.deployed, resource.stack, dict(resource.properties))
        return resolved if isinstance(resolved, dict) else {}

    return found
