"""What updates do beyond CloudFormation's schemas: what services refuse, what interrupts nodes, what is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Any, Final, Literal

from hyperpod_cdk.catalog import _data, create_only, hyperpod, prices

_DATA = _data.load("updates")

AS_OF: date = _data.as_of("updates")

Effect = Literal["replaced", "refused by the service", "nodes interrupted", "unknown", "in place"]
Kind = Literal["data", "nodes", "address", "key", "nothing"]
Path = create_only.Path

_ANY_CUSTOM = "Custom::*"
_ANY_OF_AWS = "AWS::*"
_DISTURBED: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicaSet"}
    | {"StatefulSet", "StorageClass"}
)
"""Kinds with pods to restart, or with fields that Kubernetes never changes."""
_NODE_POOLS: Final = frozenset({"EC2NodeClass", "HyperpodNodeClass", "NodeClass", "NodePool"})
"""Kinds that Karpenter uses to evaluate its nodes."""
_EVICTS, _LETS_STAY = re.compile("NoExecute|NO_EXECUTE"), re.compile("NoSchedule|NO_SCHEDULE")
"""Effects of taints; a change without an effect can be one of a taint that evicts."""
_VERSION: Final = re.compile(r"(?:[A-Za-z][A-Za-z-]*[_-])?v?\d+(?:[.\w-]*\w)?")
"""What versions look like: ``1.31``, ``v1.18.3-eksbuild.2``, ``8.0.mysql_aurora.3.04.0``, ``OpenSearch_2.11``."""
_SUCCESSORS: Final = (("Elasticsearch_", "OpenSearch_"),)
"""Names before versions, and the one that continues another product (OpenSearch developer guide, upgrades)."""
_NUMBER: Final = re.compile(r"(\d+)")
_PLACE_OF_MINOR: Final = 3
"""The position of the second number of a version among its words and numbers."""
_OF_THE_WHOLE: Final = frozenset({"added", "gains", "removed"})
"""Circumstances of the property that a row names, not of anything below it."""
_RESERVED: Final = ("system:", "eks:", "aws:", "amazon:", "iam:")
"""Prefixes of names of Kubernetes users that EKS reserves (EKS user guide, access entries)."""
_OF_ITEM: Final = "of "
_SWITCHED: Final = (True, False, "Suspended")
"""The possible values of a switch."""
SMALLEST_GROWTH: Final = 1.1
"""The least factor by which the storage of an FSx for Windows, ONTAP or OpenZFS file system can grow."""


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """Circumstances of a change: those that apply, and those that may, because a value that only the deployment knows
    decides them. ``is_any_item`` is whether an item of a list may be the one of any name."""

    certain: frozenset[str] = frozenset()
    possible: frozenset[str] = frozenset()
    is_any_item: bool = False

    @classmethod
    def of(cls, *names: str) -> Circumstances:
        """Return circumstances that apply."""
        return cls(certain=frozenset(names))

    def __or__(self, other: Circumstances) -> Circumstances:
        return Circumstances(
            certain=self.certain | other.certain,
            possible=self.possible | other.possible,
            is_any_item=self.is_any_item or other.is_any_item,
        )

    def without(self, name: str) -> Circumstances:
        """Return them without one that does not apply."""
        return replace(self, certain=self.certain - {name}, possible=self.possible - {name})

    def doubting(self, name: str) -> Circumstances:
        """Return them with one that may apply if it was among those that do."""
        if name not in self.certain:
            return self
        return replace(self, certain=self.certain - {name}, possible=self.possible | {name})

    def may_include(self, name: str) -> bool:
        """Whether a circumstance applies, or may."""
        return name in self.certain or name in self.possible or (self.is_any_item and name.startswith(_OF_ITEM))


NO_CIRCUMSTANCES: Final = Circumstances()


@dataclass(frozen=True, kw_only=True)
class Update:
    """What a change at ``path``, or below it, does. ``when`` are its circumstances, empty if it always applies.

    ``order`` are the values of a property that moves ``forward`` by one at a time, ``default`` the one that it has if
    nothing is set. ``source`` is an address; ``unsure`` says what is not confirmed. ``interrupts``: whether what stays
    in place is unavailable, or slower for hours, during the change.
    """

    path: Path
    effect: Effect
    sentence: str
    source: str
    when: str = ""
    order: tuple[str, ...] = ()
    default: str | None = None
    unsure: str = ""
    interrupts: bool = False
    may_replace: bool = False

    def holds(self, before: Any, after: Any, also: frozenset[str], at: int) -> bool:
        """Whether the circumstance applies to a change; ``also`` are circumstances that the caller knows.

        ``at`` is how many steps down something is added, removed or gains an item. Below ``path``, the property itself
        stays, so a row without any effect does not apply, but a more serious row may. Above it, the property is added
        or removed
        ``along`` with its parent; otherwise it changes ``alone``.
        """
        if at > len(self.path) and self.is_silent and not _OF_THE_WHOLE.isdisjoint(self.when.split(", ")):
            return False
        if self.when == "forward":
            before = self.default if before is None else before
            return (before, after) in pairwise(self.order)
        also |= {"along" if at < len(self.path) else "alone"}
        holding = also | circumstances(before, after) if self.when else also
        return all(each in holding for each in self.when.split(", ") if each)

    def may_hold(self, before: Any, after: Any, also: Circumstances, at: int) -> bool:
        """Whether the circumstance may apply: to a possible value of an unknown one, or if another one that may apply
        does."""
        assumed = frozenset(each for each in self.when.split(", ") if also.may_include(each)) | also.certain
        possible = (*_SWITCHED, *self.order)
        return any(
            self.holds(old, new, assumed, at)
            for old in ((before,) if _is_plain(before) else possible)
            for new in ((after,) if _is_plain(after) else possible)
        )

    @property
    def is_silent(self) -> bool:
        """Whether the change has no effect that a user notices."""
        return self.effect == "in place" and not self.interrupts


@dataclass(frozen=True, kw_only=True)
class Stateful:
    """A type with something to lose: what it ``holds``, and what happens to that when it is ``deleted`` (or empty)."""

    holds: str
    deleted: str = ""


@dataclass(frozen=True, kw_only=True)
class Note:
    """A sentence and the address of its source."""

    sentence: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Protection:
    """A property whose ``value`` makes the service refuse to delete the resource."""

    name: str
    value: Any
    source: str


def update(  # noqa: PLR0917 - what changes, then what it is part of
    resource_type: str,
    path: Path,
    before: Any,
    after: Any,
    also: Circumstances = NO_CIRCUMSTANCES,
    at: int | None = None,
) -> Update | None:
    """Return what the table says of a change; None if the table has no row.

    ``at`` is how many steps of the path were added or removed as one, if ``path`` is only part of that.

    ``before`` and ``after`` are plain data, None if there is nothing; anything else is an unknown value.
    ``also`` are circumstances that are not in the values: ``another key`` (a volume of a group had a key, and gets
    another or none), ``counted`` (a custom resource reads a node count from now on), ``handed over`` (a group with
    nodes), ``uncounted`` (it does no more), ``another VPC`` (for subnets and security groups), ``other zones`` (for
    subnets), ``autoscaled``, ``files kept``, ``pruned`` (objects leave a manifest that kubectl prunes), ``MIG``,
    ``Windows``, ``ONTAP``, ``OpenZFS``, ``SCRATCH_1``, ``EFA``, ``no such size`` (a rule of ``catalog.lustre`` refuses
    it), ``with storage`` (the capacity of a file system changes, too), ``both closed`` (neither endpoint of EKS is
    left), ``by the internet alone`` (its private one is not),
    ``rolling`` and ``replacing`` (what an Auto Scaling group's UpdatePolicy asks for), ``in place upgrade`` and
    ``online resharding`` (other UpdatePolicies), ``on an instance`` (an address that its resource puts there), ``locks
    out`` (a key's policy in which the account itself may change it no more), ``fires later`` (an alarm whose threshold
    is further away), ``in a row`` (one that states no DatapointsToAlarm), ``tells more`` (actions that gain topics of
    SNS and nothing else), ``Aurora`` (an engine of a DBCluster), ``Multi-AZ`` and ``major not allowed`` (a
    DBInstance), ``one minor at a time`` (an add-on that is updated so), ``lets in less`` and ``lets out less`` (a
    security group of which a rule goes or becomes narrower), ``gap inwards`` and ``gap outwards`` (one of which a rule
    is written anew), ``several indexes`` (more than one index of a table comes or goes), ``private`` and ``to edge``
    (what an API of API Gateway is, and is to be, reached by), ``with their subnets`` (route tables that leave a list
    go with all subnets that they route), and ``of_item()`` of each item of a list that a row has by name.
    """
    return first(_rows(resource_type), path, before, after, also, at)


def first(  # noqa: PLR0917 - the arguments of update()
    rows: Iterable[Update],
    path: Path,
    before: Any,
    after: Any,
    also: Circumstances = NO_CIRCUMSTANCES,
    at: int | None = None,
) -> Update | None:
    """Return the first of these rows that applies to a change, None if none does.

    If an earlier row may apply, because a value is known only at deployment, and has another effect, the most serious
    one of them is possible and the effect unknown, unless that which applies otherwise is more serious.
    """
    at = len(path) if at is None else at
    possible: list[Update] = []
    for row in rows:
        if path[: len(row.path)] != row.path:
            continue
        if row.holds(before, after, also.certain, at):
            return _certain(row, possible, before, after)
        if row.may_hold(before, after, also, at):
            possible.append(row)
    return None


_GRAVEST_FIRST: Final[tuple[Effect, ...]] = (
    *("replaced", "refused by the service", "nodes interrupted", "unknown", "in place"),
)


def _gravity(row: Update) -> tuple[int, bool]:
    return _GRAVEST_FIRST.index(row.effect), not row.interrupts


def _certain(row: Update, possible: list[Update], before: Any, after: Any) -> Update:
    """Return the row that applies unless a possible one does, if all of them have its effect, else what may happen."""
    others = [each for each in possible if _gravity(each) != _gravity(row)]
    if not others:
        return row
    worst = min((*others, row), key=_gravity)
    what = "its value" if not (_is_plain(before) and _is_plain(after)) else "a value that decides it"
    sentence = f"{what} is known only at deployment; possibly {worst.sentence}"
    return replace(
        worst, effect="unknown", sentence=sentence, when="", interrupts=False, may_replace=worst.effect == "replaced"
    )


def kind_of(resource_type: str) -> Kind | None:
    """Return what a type holds that a change can cost, ``nothing`` where it is only settings; None if unknown."""
    service = resource_type.rpartition("::")[0]
    return _KINDS.get(resource_type) or _KINDS.get(f"{service}::*")


@cache
def gives_another(resource_type: str, attribute: str, changed: Path) -> bool:
    """Whether an attribute (``LatestVersionNumber``) changes when the property at ``changed`` is updated.

    An attribute with the name of the changed property does (``Value`` of a parameter); the table has the others.
    """
    steps = tuple(attribute.split("."))
    if create_only.overlap(steps, changed):
        return True
    return any(create_only.overlap(path, changed) for path in _OUTPUTS.get((resource_type, attribute), ()))


def effects_of(resource_type: str, name: str) -> frozenset[Effect]:
    """Return every effect in the table of changes to a top-level property, or to anything below it."""
    return frozenset(row.effect for row in _rows(resource_type) if row.path[:1] in ((name,), ()))


def has_rows(resource_type: str) -> bool:
    """Whether the table has rows for the type itself, not only for custom resources in general."""
    return resource_type in _TOLD


def is_foreign(resource_type: str) -> bool:
    """Whether third-party code creates a resource of a type: the effects of its changes are unknown.

    Custom resources without rows in the table, types of other publishers, and modules, whose
    resources are not in the template (CloudFormation user guide: custom resources, public extensions, modules).
    """
    if resource_type.startswith("AWS::") and not resource_type.endswith("::MODULE"):
        return resource_type == "AWS::CloudFormation::CustomResource"
    return "::" in resource_type and not has_rows(resource_type)


def speaks_below(resource_type: str, path: Path) -> bool:
    """Whether the table has more serious rows below a path, so that the whole cannot be judged at once."""
    return any(
        row.path[: len(path)] == path and len(row.path) > len(path) and not row.is_silent
        for row in _rows(resource_type)
    )


def of_item(name: str) -> str:
    """Return the circumstance that the list item with this name is changed, added or removed."""
    return f"{_OF_ITEM}{name}"


@cache
def speaks_of_items(resource_type: str, path: Path) -> bool:
    """Whether the table has rows for single items of a list by name."""
    return any(row.path == path and "of " in row.when for row in _rows(resource_type))


def circumstances(before: Any, after: Any) -> frozenset[str]:
    """Return every circumstance of the table that applies to a change."""
    return frozenset(_circumstances(before, after))


def _circumstances(before: Any, after: Any) -> Iterator[str]:
    if before is None or after is None:
        yield "added" if before is None else "removed"
    if before is not None:
        yield "was there"
    old, new = _number(before), _number(after)
    if old is not None and new is not None and old != new:
        yield "grows" if new > old else "shrinks"
        # 100 * 1.1 is more than 110 as a float, 110 / 100 is not less than 1.1
        if 0 < old < new and new / old < SMALLEST_GROWTH:
            yield "grows by little"
    yield from _versions(before, after)
    if isinstance(before, list) and isinstance(after, list) and all(item in after for item in before):
        yield "gains"
    yield from _switches(before, after)
    if isinstance(after, str) and after.startswith(_RESERVED):
        yield "reserved name"
    if after is not None and (_EVICTS.search(repr(after)) or not _LETS_STAY.search(repr(after))):
        yield "evicting"
    old_objects, new_objects = _objects(before), _objects(after)
    if old_objects is None or new_objects is None:
        yield "workloads"
        return
    kinds = {
        key[0]
        for key in old_objects.keys() & new_objects.keys()
        if _fixed(new_objects[key]) != _fixed(old_objects[key])
    }
    if kinds & _DISTURBED:
        yield "workloads"
    if kinds & _NODE_POOLS or any(key[0] in _NODE_POOLS for key in old_objects.keys() ^ new_objects.keys()):
        yield "node pools"


def _switches(before: Any, after: Any) -> Iterator[str]:
    if after in (False, "false"):
        yield "to false"
    if before in (True, "true") and after in (False, "false"):
        yield "switched off"
    if before in (None, False, "false") and after in (True, "true", False, "false"):
        yield "switched on"
    if before not in (None, "default") and after in (None, "default"):
        yield "to the default"
    if after == "Suspended" or (before == "Enabled" and after is None):
        yield "suspended"


def is_another_major(engine: str, before: Any, after: Any) -> bool:
    """Whether a version of a database's engine has another major part than the one before, as far as both are known.

    That part is the first number, for MySQL and MariaDB the first two (RDS user guide, upgrades of each engine).
    """
    if not _is_version(before) or not _is_version(after):
        return False
    count = 2 if engine in ("mysql", "mariadb") else 1
    old, new = (re.findall(r"\d+", str(each))[:count] for each in (before, after))
    return len(old) == len(new) == count and old != new


def loses_objects(before: Any, after: Any) -> bool | None:
    """Whether objects are removed from a manifest, None if one of the two cannot be read."""
    old, new = _objects(before), _objects(after)
    return None if old is None or new is None else bool(old.keys() - new.keys())


def _objects(manifest: Any) -> dict[tuple[str, str, str], dict[str, Any]] | None:
    try:
        items = json.loads(manifest) if isinstance(manifest, str) else None
    except ValueError:
        return None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    return {_key(item): item for item in items}


def _key(item: dict[str, Any]) -> tuple[str, str, str]:
    metadata = item.get("metadata") or {}
    return str(item.get("kind")), str(metadata.get("namespace")), str(metadata.get("name"))


def _fixed(item: dict[str, Any]) -> dict[str, Any]:
    """An object without what may change at any time: a volume's capacity, which has no effect."""
    if item.get("kind") != "PersistentVolume" or not isinstance(item.get("spec"), dict):
        return item
    return {**item, "spec": {key: value for key, value in item["spec"].items() if key != "capacity"}}


def _is_plain(value: Any) -> bool:
    """Whether a value is plain data, not one that is known only at deployment."""
    return value is None or isinstance(value, bool | int | float | str | list | dict)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _versions(before: Any, after: Any) -> Iterator[str]:
    if not _is_version(before) or not _is_version(after):
        return
    old, new = str(before), str(after)
    for first, then in _SUCCESSORS:
        if old.startswith(first) and new.startswith(then):
            yield "higher"
        elif old.startswith(then) and new.startswith(first):
            yield "lower"
    # words and numbers alternate: if a word differs, or one version ends, it is unknown which is higher
    for place, (one, other) in enumerate(zip(_NUMBER.split(old), _NUMBER.split(new), strict=False)):
        if one == other:
            continue
        if place % 2 == 0:
            return
        if int(one) != int(other):
            is_minor = place == _PLACE_OF_MINOR
            yield "lower" if int(other) < int(one) else "higher"
            if place <= _PLACE_OF_MINOR and int(other) > int(one):
                yield "next minor" if is_minor and int(other) == int(one) + 1 else "skips a minor"
            return


def _is_version(value: Any) -> bool:
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return is_text and _VERSION.fullmatch(str(value)) is not None


@cache
def _rows(resource_type: str) -> tuple[Update, ...]:
    service = f"{resource_type.rpartition('::')[0]}::*"
    of_aws = [service, _ANY_OF_AWS] if resource_type.startswith("AWS::") else []
    found = _rows_of(resource_type)
    for row in _DATA["settings"]:
        found += [_read({**row, "effect": "in place"}, path) for path in row["of"].get(resource_type, "").split()]
    for name in [_ANY_CUSTOM] if resource_type.startswith("Custom::") else of_aws:
        found += _rows_of(name)
    return tuple(sorted(found, key=lambda row: -len(row.path)))


def _rows_of(name: str) -> list[Update]:
    rows = [row for row in _DATA["updates"] if row["type"] == name]
    return [
        _read(row, path, item)
        for row in rows
        for path in _paths(row.get("path", ""))
        for item in row.get("items", "").split() or [""]
    ]


def _read(row: dict[str, Any], path: str, item: str = "") -> Update:
    whens = (row.get("when", ""), of_item(item) if item else "")
    return Update(
        path=tuple(path.split(".")) if path else (),
        effect=row["effect"],
        sentence=row["sentence"],
        source=address(row["source"]),
        when=", ".join(filter(None, whens)),
        order=tuple(row.get("order", ())),
        default=row.get("default"),
        unsure=row.get("unsure", ""),
        interrupts=row.get("interrupts", False),
    )


def _paths(path: str) -> list[str]:
    if " " in path:
        return [each for one in path.split() for each in _paths(one)]
    groups = ("InstanceGroups", "RestrictedInstanceGroups")
    if path == "{immutable}":
        return [f"{group}.{name}" for group in groups for name in hyperpod.IMMUTABLE_GROUP_PROPERTIES]
    if path.endswith("{lustre-replaced}"):
        rule = create_only.update_rule("AWS::FSx::FileSystem")
        of_lustre: list[str] = _data.load("lustre")["replacement_properties"]
        at_the_top = rule.create_only if rule else ()
        return [path.replace("{lustre-replaced}", name) for name in of_lustre if (name,) not in at_the_top]
    return [path.replace("{groups}", group) for group in groups] if "{groups}" in path else [path]


def address(keys: str) -> str:
    """Return the address of a row's ``source``, the first if it has several."""
    text: str = _DATA["sources"][keys.split(", ", maxsplit=1)[0]]
    return text.split(" ", maxsplit=1)[0].rstrip(";,")


_TOLD: Final = frozenset(row["type"] for row in _DATA["updates"])

STATEFUL: Final[dict[str, Stateful]] = {
    row["type"]: Stateful(holds=row["holds"], deleted=row.get("deleted", "")) for row in _DATA["stateful"]
}
"""The types that contain data, nodes, an address or a key that others use."""

_KINDS: Final[dict[str, Kind]] = {
    resource_type: row["kind"] for row in _DATA["kinds"] for resource_type in row["types"].split()
}

_OUTPUTS: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    (row["type"], row["attribute"]): tuple(tuple(each.split(".")) for each in row["path"].split())
    for row in _DATA["outputs"]
}

MADE_ANEW: Final[dict[str, Note]] = {
    row["type"]: Note(sentence=row["sentence"], source=address(row["source"]))
    for row in _DATA["made_anew_without_harm"]
}
"""The types whose replacement or deletion loses nothing."""

DELETED_WHERE_UNUSED: Final[dict[str, Note]] = {
    row["type"]: Note(sentence=row["sentence"], source=address(row["source"])) for row in _DATA["deleted_where_unused"]
}
"""The types that their service deletes only if nothing uses them, so a deletion loses nothing."""

ON_REPLACEMENT: Final[dict[str, Note]] = {
    row["type"]: Note(sentence=row["sentence"], source=address(row["source"])) for row in _DATA["on_replacement"]
}
"""What a replacement means beyond another physical id, by type."""

ACTS_ON: Final[dict[str, tuple[tuple[str, ...], Note]]] = {
    row["type"]: (tuple(row["on"].split()), Note(sentence=row["sentence"], source=address(row["source"])))
    for row in _DATA["acts_on"]
}
"""Resources that act on others: the properties that name those, and what they do."""

ALARM_ACTS: Final = Note(
    sentence="in that state it stops, reboots or terminates instances, scales, or runs a document",
    source=address("cw-alarm"),
)
"""What an alarm does if its actions do more than notify."""

RULE_ACTS: Final = Note(
    sentence="where it matches it stops, reboots or terminates instances, or runs a document",
    source=address("events-targets"),
)
"""What a rule does if a target does more than notify."""

SHAPES: Final[dict[str, Note]] = {
    row["name"]: Note(sentence=row["sentence"], source=address(row["source"])) for row in _DATA["shapes"]
}
"""Rules of CloudFormation itself, by name: ``type``, ``name``, ``moved``, ``export``, ``stack``."""

PROTECTIONS: Final[dict[str, Protection]] = {
    row["type"]: Protection(name=row["property"], value=row["value"], source=address(row["source"]))
    for row in _DATA["protections"]
}
"""What protects a resource from deletion, by type."""

_COSTS: Final[dict[str, bool | None]] = {row["type"]: row["costs_money"] for row in _DATA["stateful"]}


def costs_money(resource_type: str) -> bool | None:
    """Whether a retained resource continues to cost money, None if unknown."""
    found = _COSTS.get(resource_type)
    if found is None and resource_type.startswith("AWS::"):
        billing = prices.billing_of(resource_type)
        return False if billing is not None and billing.billing == "free" else None
    return found


@cache
def name_of(resource_type: str) -> tuple[Path, ...]:
    """Return the properties that in combination are unique to a resource of a type, empty if AWS generates the name."""
    own = next((row["properties"] for row in _DATA["names"] if row["type"] == resource_type), None)
    if own is not None:
        return tuple((name,) for name in own)
    rule = create_only.update_rule(resource_type)
    return rule.name if rule else ()


def is_made_anew_without_harm(resource_type: str) -> bool:
    """Whether the replacement or deletion of a type loses nothing."""
    return resource_type in MADE_ANEW
