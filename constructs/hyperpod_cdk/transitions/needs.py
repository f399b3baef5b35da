"""Finds in templates which stack must come before another one, because CloudFormation refuses any other order.

An export that another deployed stack imports can be neither removed nor changed, a stack can import only what is
exported, and only one stack of a Region exports a name (CloudFormation user guide, "Outputs" and "Fn::ImportValue").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.changes.blast_radius import changed_exports
from hyperpod_cdk.review.changes.exports import Fate
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.deployment import TOPICS, topics
from hyperpod_cdk.templates.difference import ResourceChange
from hyperpod_cdk.templates.values import Reference, imports, plain, resolve
from hyperpod_cdk.transitions.model import Action
from hyperpod_cdk.transitions.order import Order

_DEPLOYED: Final = ("template", "termination_protection", "tags")
"""Parts of a stack that ``cdk deploy`` compares before it skips the stack, in addition to its notification topics (CDK
CLI 2.1148.1, ``canSkipDeploy``)."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """Exports of one stack that change, and a stack that imports them before and afterwards: no order works."""

    exporter: str
    importer: str
    gives: tuple[str, ...]
    types: frozenset[str] = frozenset()
    """The types of the resources behind them."""


@dataclass(kw_only=True)
class Needs:
    """The operation for each stack that differs, and their order."""

    actions: dict[str, Action] = field(default_factory=dict)
    orders: list[Order] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Stacks of the head that import what only the base exports, with these exports."""
    foreign: dict[str, list[str]] = field(default_factory=dict)
    """Stacks of the head that import what neither side exports, with the names of these exports."""
    going: dict[str, str] = field(default_factory=dict)
    """The exports that are removed or changed, with their stack: another stack that imports them prevents that."""


def needs(base: Assembly, head: Assembly, changes: Sequence[ResourceChange]) -> Needs:
    """Compare two assemblies; ``changes`` are ``difference.compare``'s."""
    found = Needs()
    for stack in head.stacks:
        old = base.by_name.get(stack.name)
        if (
            old is None
            or any(getattr(old, name) != getattr(stack, name) for name in _DEPLOYED)
            or _changes_topics(old, stack)
        ):
            found.actions[stack.name] = "deploy"
    for stack in base.stacks:
        if stack.name not in head.by_name:
            found.actions[stack.name] = "delete"
    _Exports(base, head, changed_exports(base, head, changes), found).judge()
    return found


def _changes_topics(old: Stack, new: Stack) -> bool:
    """Whether a stack gets other notification topics.

    An app that names no topics changes none: 'cdk deploy' then sends none, and CloudFormation keeps those of the stack
    (CreateChangeSet, NotificationARNs).
    """
    where = {"account": new.account, "region": new.region}
    return TOPICS in new.settings and topics(new.settings, **where) != topics(old.settings, **where)


class _Exports:
    """The order that each export requires; ``fates`` are those of ``changed_exports``."""

    def __init__(self, base: Assembly, head: Assembly, fates: Mapping[str, Fate], found: Needs) -> None:
        self.base, self.head, self.fates, self.found = base, head, fates, found
        self.before, self.after = _importers(base), _importers(head)
        # what one stack uses of another, by both; the one that comes first is the first of the pair
        self.held: dict[tuple[str, str], list[str]] = {}
        self.types: dict[str, set[str]] = {}
        self.released: dict[tuple[str, str, Fate], list[str]] = {}
        self.needed: dict[tuple[str, str], list[str]] = {}

    def judge(self) -> None:
        for name, (exporter, value) in self.base.exports.items():
            fate = self.fates.get(name) if exporter.name in self.head.by_name else Fate.GOES
            if fate is not None:
                self.found.going[name] = exporter.name
                given, kind = _given(self.base, exporter.name, value)
                self.types.setdefault(given, set()).add(kind)
                self._going(name, exporter.name, fate, given)
        for name, (exporter, value) in self.head.exports.items():
            if name not in self.base.exports or self.base.exports[name][0].name != exporter.name:
                self._new(name, exporter.name, _given(self.head, exporter.name, value)[0])
        for name in self.after.keys() - self.head.exports.keys() - self.base.exports.keys():
            for importer in self.after[name]:
                self.found.foreign.setdefault(importer, []).append(name)
        self._record_orders()

    def _going(self, name: str, exporter: str, fate: Fate, given: str) -> None:
        before, after = ({*side.get(name, ())} - {exporter} for side in (self.before, self.after))
        stays = before & after if fate is Fate.CHANGES else set()
        for importer in sorted(stays):
            self.held.setdefault((exporter, importer), []).append(given)
        for importer in sorted(before - stays):
            self.released.setdefault((importer, exporter, fate), []).append(given)
        for importer in sorted(after - before if fate is Fate.CHANGES else ()):
            self.needed.setdefault((exporter, importer), []).append(given)
        for importer in sorted(after if name not in self.head.exports else ()):
            self.found.missing.setdefault(importer, []).append(given)

    def _new(self, name: str, exporter: str, given: str) -> None:
        for importer in self.after.get(name, ()):
            if importer != exporter:
                self.needed.setdefault((exporter, importer), []).append(given)
        if name in self.base.exports:
            old = self.base.exports[name][0].name
            why = f"{old} still exports {name}, which {exporter} will export"
            self.found.orders.append(Order(first=old, then=exporter, why=why))

    def _record_orders(self) -> None:
        for (importer, exporter, fate), gives in self.released.items():
            verb = "will change" if fate is Fate.CHANGES else "will remove"
            why = f"{importer} still uses {joined(dict.fromkeys(gives))}, which {exporter} {verb}"
            self.found.orders.append(Order(first=importer, then=exporter, why=why))
        for (exporter, importer), gives in self.needed.items():
            why = f"{importer} needs {joined(dict.fromkeys(gives))}, which is new in {exporter}"
            self.found.orders.append(Order(first=exporter, then=importer, why=why))
        for (exporter, importer), gives in self.held.items():
            named = tuple(dict.fromkeys(gives))
            types = frozenset(kind for each in named for kind in self.types[each])
            self.found.held.append(Held(exporter=exporter, importer=importer, gives=named, types=types))


def _importers(assembly: Assembly) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for stack in assembly.stacks:
        for name in dict.fromkeys(imports(stack)):
            found.setdefault(name, []).append(stack.name)
    return found


def _given(assembly: Assembly, stack: str, value: object) -> tuple[str, str]:
    """Return the name of an export's resource for a reader, the construct or else the value, and its type."""
    found = resolve(assembly, stack, value)
    resource = assembly.find(found.stack, found.logical_id) if isinstance(found, Reference) else None
    return (resource.name, resource.type) if resource is not None else (plain(found), "")
