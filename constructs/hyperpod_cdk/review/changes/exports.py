"""What happens to exports, and which of them CloudFormation refuses to change while a stack imports them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.changes.effects import Judged
from hyperpod_cdk.review.changes.entries import Entry, Found, Sides
from hyperpod_cdk.review.model import EXPORT_PREFIX, Effect
from hyperpod_cdk.templates.assembly import Resource, Stack
from hyperpod_cdk.templates.values import Reference, holds, imports, meaning, resolve

EXPORT: Final = "CloudFormation export"
"""The type of an output that does not refer to a resource."""


class Fate(StrEnum):
    """What happens to an export that does not stay as it is; the value is the verb of a sentence."""

    GOES = "is removed"
    CHANGES = "changes"
    MAY_GO = "may be removed"
    """It has a condition whose value is known only at deployment."""


class Exports(Sides):
    """Judges the exports of the base: findings are added to the ``entries`` of the resources that they refer to."""

    def judge(self) -> None:
        """Judge exports that are changed or removed while a deployed stack imports them."""
        importers: dict[str, list[str]] = {}
        for stack in self.base.stacks:
            for name in dict.fromkeys(imports(stack)):
                importers.setdefault(name, []).append(stack.name)
        still = {(stack.name, name) for stack in self.head.stacks for name in imports(stack)}
        for name, (stack, value) in self.base.exports.items():
            if stack.name not in self.head.by_name:
                continue
            users = [
                each
                for each in importers.get(name, ())
                if each != stack.name and ((each, name) in still or not self._lets_go_first(each, stack.name))
            ]
            fate = self.fate_of(name, stack.name, value)
            if fate is not None and users:
                verb = "imports" if len(users) == 1 else "import"
                self._judge_export(
                    name, stack.name, value, f"{fate} while {joined(users)} {verb} it", is_used=fate is not Fate.MAY_GO
                )
            elif fate is not None and name not in importers:
                self._judge_export(name, stack.name, value, f"{fate}, and no template here imports it", is_used=False)
        for stack in self.base.stacks:
            if (after := self.head.by_name.get(stack.name)) is not None:
                self._judge_unknown(stack, after)

    def _judge_unknown(self, before: Stack, after: Stack) -> None:
        """Judge the exports of a stack of which only the deployment knows the name: one that changes may be in use."""
        for key in (key for key, name in before.export_names.items() if name is None):
            stated = [
                resolve(side, before.name, stack.outputs[key]) if key in stack.export_names else None
                for side, stack in ((self.base, before), (self.head, after))
            ]
            was, will_be = ((each["Export"].get("Name"), each.get("Value")) if each else None for each in stated)
            if was is not None and was != will_be:
                value = before.outputs[key].get("Value")
                what = "may change or be removed, and its name is known only at deployment"
                self._judge_export(self.excerpts.text(was[0]) or key, before.name, value, what, is_used=False)

    def _lets_go_first(self, importer: str, exporter: str) -> bool:
        """Whether the importing stack, which no longer imports it, is deployed before the exporting one."""
        return importer in self.order and self.order[importer] < self.order[exporter]

    def fate_of(self, name: str, stack: str, value: Any) -> Fate | None:
        """Return what happens to an export of the base, None if it stays as it is."""
        found = self.head.exports.get(name)
        if found is None or found[0].name != stack:
            return Fate.GOES
        if self._may_go(name, stack):
            return Fate.MAY_GO
        before, after = resolve(self.base, stack, value), resolve(self.head, stack, found[1])
        if before != after:
            return None if after == self._name_given_by(before) else Fate.CHANGES
        entry = self.entries.get((before.stack, before.logical_id)) if isinstance(before, Reference) else None
        if entry is None or not entry.is_update or entry.effect is not Effect.REPLACED:
            return None
        return None if entry.keeps(before.attribute) else Fate.CHANGES

    def _may_go(self, name: str, stack: str) -> bool:
        """Whether an export has a new condition whose value is known only at deployment."""
        stated = []
        for side in (self.base, self.head):
            owner = side.by_name[stack]
            outputs = [owner.outputs[key] for key, each in owner.export_names.items() if each == name]
            condition = outputs[-1].get("Condition") if outputs else None
            stated.append((condition, meaning(owner, condition) if isinstance(condition, str) else None))
        (_, old), (condition, new) = stated
        return condition is not None and old != new and holds(self.head.by_name[stack], condition) is None

    def _name_given_by(self, value: Any) -> str | None:
        """Return the value of a reference to a bucket if the template names the bucket: its name, or the ARN with
        it."""
        bucket = self.base.find(value.stack, value.logical_id) if isinstance(value, Reference) else None
        if bucket is None or bucket.type != "AWS::S3::Bucket":
            return None
        name = resolve(self.base, bucket.stack, bucket.properties.get("BucketName"))
        prefix = {"": "", "Arn": resolve(self.base, bucket.stack, {"Fn::Sub": "arn:${AWS::Partition}:s3:::"})}
        start = prefix.get(value.attribute)
        return f"{start}{name}" if isinstance(name, str) and start is not None else None

    def _judge_export(self, name: str, stack: str, value: Any, what: str, *, is_used: bool = True) -> None:
        """Add a finding for a changed export: refused if it is used, unknown if only stacks elsewhere may use it."""
        reference = resolve(self.base, stack, value)
        shape = updates.SHAPES["export"]
        effect = Effect.REFUSED if is_used else Effect.UNKNOWN
        judged = Judged(effect, f"the export {what}; {shape.sentence}", shape.source)
        was = self.excerpts.text(reference)
        finding = Found((f"{EXPORT_PREFIX}{name}",), was, None, judged, is_indirect=True, of="export")
        key = (reference.stack, reference.logical_id) if isinstance(reference, Reference) else (stack, name)
        entry = self.entries.get(key)
        if entry is None:
            before = self.base.find(*key) or Resource(stack=stack, logical_id=name, type=EXPORT, body={})
            entry = self.entries[key] = Entry(before, self.head.find(*key) or before)
        entry.findings.append(finding)
