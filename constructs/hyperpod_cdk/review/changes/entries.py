"""Resources that a change affects, and the findings about each before they are put into words."""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.review.changes.effects import Judged, gravest
from hyperpod_cdk.review.changes.excerpts import Excerpts
from hyperpod_cdk.review.changes.uses import Key
from hyperpod_cdk.review.model import Effect, Part
from hyperpod_cdk.templates.assembly import Assembly, Resource


@dataclass(frozen=True)
class Found:
    """One property's effect before it is put into words; ``before`` and ``after`` are ready to be shown."""

    steps: tuple[str, ...]
    before: str | None
    after: str | None
    judged: Judged
    subject: str = ""
    is_indirect: bool = False
    """Whether the property is unchanged, and only the value that it refers to is new."""
    of: Part = "property"
    is_certain: bool = True
    """Whether the value changes, so that the effect is one of this deployment whatever the values are."""

    @property
    def path(self) -> str:
        return ".".join(self.steps).replace(".[", "[")


@dataclass(eq=False)
class Entry:
    """One resource and the findings about it."""

    before: Resource | None
    after: Resource | None
    fate: Effect | None = None
    why: str = ""
    findings: list[Found] = field(default_factory=list)
    kept: str = ""
    condition: str | None = None
    """The condition of the resource, if the template does not show whether it is true."""

    @property
    def resource(self) -> Resource:
        found = self.after or self.before
        assert found is not None  # noqa: S101 - an entry is made of a side
        return found

    @property
    def key(self) -> Key:
        return self.resource.stack, self.resource.logical_id

    @property
    def effect(self) -> Effect:
        if self.fate is not None:
            return self.fate
        return gravest(_on_the_whole(each.judged.effect) for each in self.findings) or Effect.IN_PLACE

    @property
    def is_certain(self) -> bool:
        """Whether its effect does not depend on what only the deployment knows."""
        if self.condition is not None:
            return False
        if self.effect not in (Effect.REPLACED, Effect.REFUSED, Effect.INTERRUPTED):
            return True
        return any(each.is_certain for each in self.findings if _on_the_whole(each.judged.effect) is self.effect)

    @property
    def is_update(self) -> bool:
        return self.fate is None and self.before is not None and self.after is not None

    def keeps(self, attribute: str) -> bool:
        """Whether an attribute is a property that has the same value in the old and the new resource."""
        before, after = self.before, self.after
        if not attribute or before is None or after is None or before.type != after.type:
            return False
        if attribute not in before.properties or attribute not in after.properties:
            return False
        return not any(each.steps[0] == attribute for each in self.findings)


def _on_the_whole(effect: Effect) -> Effect:
    """Return what an effect on a part of a resource is to the resource: its nodes are not the resource itself."""
    return {Effect.DELETED: Effect.INTERRUPTED, Effect.ADDED: Effect.IN_PLACE}.get(effect, effect)


class Sides:
    """Both assemblies of a change with the ``entries`` of what differs, to which judges add findings."""

    def __init__(self, base: Assembly, head: Assembly, entries: dict[Key, Entry], *, excerpts: Excerpts) -> None:
        self.base = base
        self.head = head
        self.entries = entries
        self.excerpts = excerpts
        self.order: dict[str, int] = {stack.name: place for place, stack in enumerate(head.stacks)}


def is_stateful(resource: Resource) -> bool:
    """Whether a resource contains something that can be lost; one of a type without a judgment may."""
    if resource.type in updates.STATEFUL or updates.is_foreign(resource.type):
        return True
    return resource.type.startswith("AWS::") and updates.kind_of(resource.type) != "nothing"
