"""Names and address blocks that a new resource needs while an old one still has them, which services refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from typing import Any, Final

from hyperpod_cdk.catalog import create_only, updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.changes.effects import Judged
from hyperpod_cdk.review.changes.entries import Entry, Found, Sides
from hyperpod_cdk.review.changes.uses import Key
from hyperpod_cdk.review.model import Effect
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.difference import MISSING
from hyperpod_cdk.templates.values import Reference, Unknown, plain, resolve

_BLOCK: Final = "CidrBlock"
_READ: Final = "{{resolve:"
"""The start of a value that a deployment reads again, and that may have changed."""
BLOCKS: Final = frozenset({"AWS::EC2::VPCCidrBlock", "AWS::EC2::Subnet"})
"""Types with an address block of a VPC, of which no two may overlap."""


class Clashes(Sides):
    """Judges ``entries``: findings are added to the one that is created."""

    def judge(self) -> None:
        """Refuse every resource whose name or address block is in use."""
        for entry in list(self.entries.values()):
            self._check_name(entry)
        self._check_moved()
        self._check_blocks()

    def _check_name(self, entry: Entry) -> None:
        """Judge a resource that is created again with the name that the old one still has."""
        before, after = entry.before, entry.after
        if before is None or after is None or not entry.is_update or entry.effect is not Effect.REPLACED:
            return
        rule = create_only.update_rule(after.type)
        if rule is not None and rule.deletes_first:
            return
        # a value that is not known is the same on both sides if it depends on the same
        name, changed = self._name(self.head, after, of_unknown=True), {each.steps for each in entry.findings}
        paths = updates.name_of(after.type)
        if name is None or name != self._name(self.base, before, of_unknown=True):
            return
        if any(steps[: len(path)] == path or path[: len(steps)] == steps for steps in changed for path in paths):
            return
        shape = updates.SHAPES["name"]
        reason = f"{shape.sentence} {_listed(paths)}; change that too"
        judged = Judged(Effect.REFUSED, reason, shape.source)
        stated = [resolve(self.head, after.stack, _at(after.properties, path)) for path in paths]
        if any(isinstance(each, Unknown) and (each.is_choice or _READ in each.text) for each in stated):
            judged = Judged(Effect.UNKNOWN, f"its name is known only at deployment; possibly {reason}", shape.source)
        entry.findings.append(Found(paths[0], name[0], name[0], judged))

    def _check_moved(self) -> None:
        """Judge a resource that is created while another one with its name exists: one that is deleted, or that
        stays."""
        made = (Effect.ADDED, Effect.REPLACED)
        takers = [entry for entry in self.entries.values() if entry.effect in made and entry.after is not None]
        types = {entry.resource.type for entry in takers}
        # in a new environment no earlier resources exist
        holders = {
            (each.type, full): each
            for each in (self.base.resources() if types else ())
            if each.type in types and (full := self._full_name(self.base, each)) is not None
        }
        for entry in takers if holders else ():
            full = self._full_name(self.head, entry.resource)
            name = self._name(self.head, entry.resource)
            holder = holders.get((entry.resource.type, full)) if full is not None else None
            if holder is None or name is None or (holder.stack, holder.logical_id) == entry.key:
                continue
            old = self.entries.get((holder.stack, holder.logical_id))
            if old is not None and (self._is_gone_before(old, entry) or self._is_freed(old)):
                continue
            shape = updates.SHAPES["moved"]
            paths = updates.name_of(entry.resource.type)
            reason = f"{holder.logical_id} of {holder.stack} {shape.sentence} {_listed(paths)}"
            entry.findings.append(Found(paths[0], None, name[0], Judged(Effect.REFUSED, reason, shape.source)))
            if entry.fate is Effect.ADDED:
                entry.fate = None

    def _is_freed(self, old: Entry) -> bool:
        """Whether a resource that stays, or is replaced before its old one is deleted, releases its name."""
        is_gone = old.fate in (Effect.DELETED, Effect.LEFT_BEHIND) or old.effect is Effect.REPLACED
        if is_gone:
            return False
        # with an update in place whose order is not documented
        return old.after is None or self._full_name(self.head, old.after) != self._full_name(self.base, old.resource)

    def _check_blocks(self) -> None:
        """Judge an address block that is used while another block, which overlaps and is to be deleted, still
        exists."""
        gone = (Effect.DELETED, Effect.LEFT_BEHIND, Effect.REPLACED)
        going = list(self._blocks(self.base, gone))
        for new, vpc, block in list(self._blocks(self.head, (Effect.ADDED, Effect.REPLACED))):
            if any(each.judged.effect is Effect.REFUSED for each in new.findings):
                continue
            for old, same, taken in going:
                is_held = new.resource.type == old.resource.type and vpc == same and block.overlaps(taken)
                if not is_held or self._is_gone_before(old, new):
                    continue
                shape = updates.SHAPES["block"]
                whose = "its own" if old is new else f"that of {old.resource.logical_id} of {old.resource.stack}"
                judged = Judged(Effect.REFUSED, f"{shape.sentence}: {whose}, {taken}", shape.source)
                before = str(taken) if old is new else None
                new.findings.append(Found((_BLOCK,), before, str(block), judged))
                new.fate = None
                break

    def _blocks(self, assembly: Assembly, effects: Sequence[Effect]) -> Iterator[tuple[Entry, Key | str, IPv4Network]]:
        """Return the address blocks of resources with one of these effects, and the VPC of each."""
        for entry in self.entries.values():
            resource = entry.before if assembly is self.base else entry.after
            found = self._block(assembly, resource) if resource is not None and entry.effect in effects else None
            if found is not None:
                yield entry, *found

    def _block(self, assembly: Assembly, resource: Resource) -> tuple[Key | str, IPv4Network] | None:
        """Return the VPC and the address block of a resource in it, None if the template does not show them."""
        if resource.type not in BLOCKS:
            return None
        vpc, block = (resolve(assembly, resource.stack, resource.properties.get(each)) for each in ("VpcId", _BLOCK))
        if isinstance(vpc, Reference):
            made = self.entries.get((vpc.stack, vpc.logical_id))
            # in a VPC that is created again no block is in use
            if made is not None and made.effect is Effect.REPLACED:
                return None
        try:
            return ((vpc.stack, vpc.logical_id) if isinstance(vpc, Reference) else plain(vpc)), IPv4Network(
                plain(block)
            )
        except ValueError:
            return None

    def _is_gone_before(self, old: Entry, new: Entry) -> bool:
        """Whether the old one is deleted before the new one is created: by a stack that is deployed earlier."""
        before, after = old.before, old.after
        is_kept = before is not None and before.is_kept_on_replacement and after and after.is_kept_on_replacement
        if old.fate is not Effect.DELETED and (old.effect is not Effect.REPLACED or is_kept):
            return False
        return self.order[old.resource.stack] < self.order[new.resource.stack]

    def _name(self, assembly: Assembly, resource: Resource, *, of_unknown: bool = False) -> tuple[str, ...] | None:
        """Return the values of a resource's name, None if it has none, or none that the template shows."""
        paths = updates.name_of(resource.type)
        if not paths:
            return None
        found = (resolve(assembly, resource.stack, _at(resource.properties, path)) for path in paths)
        # AWS::NoValue removes the property
        values = [MISSING if each is None else each for each in found]
        if values[0] is MISSING or (not of_unknown and any(isinstance(each, Unknown) for each in values)):
            return None
        rule = create_only.update_rule(resource.type)
        if rule is not None and rule.name == paths and MISSING in values:
            return None
        return tuple(self.excerpts.text(each) or "" for each in values)

    def _full_name(self, assembly: Assembly, resource: Resource) -> tuple[str, ...] | None:
        """Return the name with the stack of the resource that it refers to, and with its account and Region."""
        name = self._name(assembly, resource)
        if name is None:
            return None
        stack = assembly.by_name[resource.stack]
        values = (
            resolve(assembly, resource.stack, _at(resource.properties, path)) for path in updates.name_of(resource.type)
        )
        owners = (_owner(each, resource.stack) for each in values)
        return (*_scope(resource.type, stack), *(f"{owner}{each}" for owner, each in zip(owners, name, strict=True)))


def _owner(value: Any, stack: str) -> str:
    """Return the owner of a value with a reference: a name that contains a value of one stack is unique to that
    stack."""
    if isinstance(value, Reference):
        return f"{value.stack}/"
    return f"{stack}/" if "${" in plain(value) else ""


def _scope(resource_type: str, stack: Stack) -> tuple[str, ...]:
    """Return the scope in which a name is unique: globally for a bucket, the account for IAM, the Region for others."""
    if resource_type == "AWS::S3::Bucket":
        return ()
    return (stack.account,) if resource_type.startswith("AWS::IAM::") else (stack.account, stack.region)


def _listed(paths: Sequence[tuple[str, ...]]) -> str:
    return joined(".".join(path) for path in paths)


def _at(properties: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(properties, dict) or step not in properties:
            return MISSING
        properties = properties[step]
    return properties
