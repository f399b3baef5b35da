"""What a change does to every resource: replaced, deleted, refused, nodes interrupted, in place, or unknown."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hyperpod_cdk.catalog import create_only, updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.updates import Circumstances
from hyperpod_cdk.review.changes import instance_group_effects
from hyperpod_cdk.review.changes.circumstances import (
    ANOTHER_VPC,
    AUTOSCALED,
    allows_everything_out,
    circumstances_of,
)
from hyperpod_cdk.review.changes.clashes import Clashes
from hyperpod_cdk.review.changes.effects import GRAVEST_FIRST, Judged, judge, rank
from hyperpod_cdk.review.changes.entries import Entry, Found, is_stateful
from hyperpod_cdk.review.changes.excerpts import Excerpts
from hyperpod_cdk.review.changes.exports import Exports, Fate
from hyperpod_cdk.review.changes.summaries import IN_SUMMARY, left_behind, lost, told
from hyperpod_cdk.review.changes.uses import Key, Uses
from hyperpod_cdk.review.model import (
    BlastRadius,
    Effect,
)
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import (
    METADATA,
    MISSING,
    PropertyChange,
    ResourceChange,
    differs_for_certain,
)
from hyperpod_cdk.templates.groups import exists, unknown_condition
from hyperpod_cdk.templates.loops import UNREAD_LOOP
from hyperpod_cdk.templates.values import (
    STORED,
    Reference,
    Unknown,
    meaning,
    plain,
    resolve,
    resolved_properties,
)

_PARAMETER: Final = "AWS::SSM::Parameter"
_VALUE: Final = ("Value",)
_DYNAMIC: Final = re.compile(
    r"\{\{resolve:(?:ssm|ssm-secure):((?:\$\{[^{}]*\}|[^:}])+)\}\}"
    r"|\{\{resolve:secretsmanager:((?:\$\{[^{}]*\}|[^}])+)\}\}|^(?:resolve:ssm:)([^:{}]+)$"
)
"""A dynamic reference to a versioned value without a version, if it is one of Parameter Store.

EC2 reads the last form whenever it starts an instance (EC2 Auto Scaling user guide, "Use AWS Systems Manager parameters
instead of AMI IDs in launch templates").
"""
_IMAGE: Final = ("ImageId",)
_AT_START: Final = "resolve:ssm:"
_AT_START_SOURCE: Final = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/using-systems-manager-parameters.html"
_VERSION: Final = re.compile(r":SecretString:[^:]*:[^:]*:[^:]+$")
"""The end of a dynamic reference to a secret that names a version by its ID."""
_ON_A_CLUSTER: Final = "Custom::AWSCDK-EKS-"
"""The start of CDK's types for its kubectl function on an EKS cluster: manifests, patches and Helm charts."""
_NESTED: Final = "AWS::CloudFormation::Stack"
_TEMPLATE: Final = "TemplateURL"
_NESTED_SOURCE: Final = (
    "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-stack.html"
)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_TYPE: Final = re.compile(r"Custom::[\w@-]{1,60}|\w{2,64}::\w{2,64}::\w{2,64}(?:::MODULE)?|" + re.escape(UNREAD_LOOP))
"""The format of type names (CloudFormation API reference, RegisterType, TypeName; AWS::CloudFormation::CustomResource).

The last one represents the resources of a loop that only the deployment expands.
"""
_EGRESS: Final = "AWS::EC2::SecurityGroupEgress"
_SCALED: Final = "AWS::AutoScaling::AutoScalingGroup"
_SCHEDULE: Final = "AWS::AutoScaling::ScheduledAction"
_SIZES: Final = ("DesiredCapacity", "MinSize", "MaxSize")
_IGNORES: Final = "IgnoreUnmodifiedGroupSizeProperties"
_ATTRIBUTES: Final = ("DeletionPolicy", "UpdateReplacePolicy", METADATA)
"""Parts of a resource that change without an update by its service."""
Giving = Literal["all", "perhaps", "updated"]
"""Which of the values that a resource gives to others are new."""
_GIVES: Final[dict[Giving, str]] = {
    "all": "is replaced",
    "perhaps": "may give another value",
    "updated": "gives another value",
}
_MAY_GIVE: Final[dict[Giving, str]] = {
    "all": "may be replaced",
    "perhaps": "may give another value",
    "updated": "may give another value",
}
_GIVEN: Final[dict[Giving, str]] = {"all": "replaced", "perhaps": "perhaps another one", "updated": "another value"}
_WITH_THE_NEW_ONE: Final = "nothing is updated: the new one is created with it"


def blast_radius(
    base: Assembly, head: Assembly, changes: Sequence[ResourceChange], *, with_exports: bool = True
) -> BlastRadius:
    """Return what deploying ``head`` over ``base`` does to each resource, the most serious first.

    ``changes`` are ``difference.compare``'s. Resources that do not differ are included if they refer to one that is
    replaced. No change is ever called safe: an effect that neither the CloudFormation schemas nor the catalog's table
    state is ``unknown``. ``with_exports`` is False for a step of a plan, which checks the imports of removed exports
    itself.
    """
    known: _Known | None = head.read.get(_Known) if with_exports else None
    if known and known.is_of(base, changes):
        return known.radius
    return _Review(base, head).of(changes, with_exports=with_exports)


def changed_exports(base: Assembly, head: Assembly, changes: Sequence[ResourceChange]) -> dict[str, Fate]:
    """Return what happens to the base's exports, by name, without those that stay; one that may be removed counts as
    removed.

    Exports of a stack that is not in the head do not change: ``cdk deploy`` leaves it as it is. ``changes`` are as in
    ``blast_radius``.
    """
    review = _Review(base, head)
    # a plan from the base to the head needs this, too
    head.read[_Known] = _Known(base=base, changes=tuple(changes), radius=review.of(changes))
    found = {
        name: review.exports.fate_of(name, stack.name, value)
        for name, (stack, value) in base.exports.items()
        if stack.name in head.by_name
    }
    return {name: Fate.GOES if fate is Fate.MAY_GO else fate for name, fate in found.items() if fate is not None}


@dataclass(frozen=True, kw_only=True)
class _Known:
    """The result for a head, and the base and changes that it belongs to."""

    base: Assembly
    changes: tuple[ResourceChange, ...]
    radius: BlastRadius

    def is_of(self, base: Assembly, changes: Sequence[ResourceChange]) -> bool:
        return (
            self.base.is_made_of(base.stacks)
            and len(self.changes) == len(changes)
            and all(map(operator.is_, self.changes, changes))
        )


_DOES: Final = re.compile(r":automate:|:swf:|:ssm:|:events:[^:]*:[^:]*:target/|:autoscaling:|:ssm-incidents:")
"""Actions of alarms and targets of rules that stop, reboot, terminate or scale, or run a document."""

_ACTING: Final[Mapping[str, tuple[tuple[str, ...], updates.Note]]] = {
    "AWS::CloudWatch::Alarm": (("AlarmActions", "InsufficientDataActions", "OKActions"), updates.ALARM_ACTS),
    "AWS::CloudWatch::CompositeAlarm": (("AlarmActions", "InsufficientDataActions", "OKActions"), updates.ALARM_ACTS),
    "AWS::Events::Rule": (("Targets",), updates.RULE_ACTS),
}
"""Types that usually notify, and with some values of their properties act on other resources."""


class _Review:
    def __init__(self, base: Assembly, head: Assembly) -> None:
        self.base = base
        self.head = head
        self.entries: dict[Key, Entry] = {}
        self.excerpts = Excerpts(base, head)
        self.uses = Uses.in_(head)
        self.exports = Exports(base, head, self.entries, excerpts=self.excerpts)

    def of(self, changes: Sequence[ResourceChange], *, with_exports: bool = True) -> BlastRadius:
        for change in (*changes, *self._switched(changes)):
            self._enter(change)
        self._read_nested()
        self._cascade()
        self._check_clusters()
        self._read_anew()
        self._name_readers()
        self._check_sizes()
        for entry in self.entries.values():
            _spare_the_new_one(entry)
        Clashes(self.base, self.head, self.entries, excerpts=self.excerpts).judge()
        if with_exports:
            self.exports.judge()
        for entry in self.entries.values():
            self._check_kept(entry)
            self._check_protection(entry)
        entries = sorted(self.entries.values(), key=lambda each: (rank(each.effect), not is_stateful(each.resource)))
        counts = Counter(entry.effect for entry in entries)
        return BlastRadius(
            resources=tuple(told(entry) for entry in entries),
            left_behind=tuple(left_behind(entry) for entry in entries if entry.kept),
            counts={effect: counts[effect] for effect in GRAVEST_FIRST if counts[effect]},
            schemas_as_of=create_only.SCHEMAS_AS_OF.isoformat(),
        )

    def _entry(self, before: Resource | None, after: Resource | None) -> Entry:
        sides = ((self.base, before), (self.head, after))
        conditions = {unknown_condition(side, each) for side, each in sides if each is not None}
        # one that is new, or that changes, has a finding of its own
        return Entry(before, after, condition=conditions.pop() if len(conditions) == 1 else None)

    def _enter(self, change: ResourceChange) -> None:
        was = change.before is not None and exists(self.base, change.before)
        will_be = change.after is not None and exists(self.head, change.after)
        if was is False and will_be is False:
            return
        entry = self._entry(change.before, change.after)
        self.entries[entry.key] = entry
        if was is False:
            self._added(entry)
        elif will_be is False:
            self._removed(entry)
        elif change.before is not None and change.after is not None:
            self._changed(entry, change)

    def _switched(self, changes: Iterable[ResourceChange]) -> Iterator[ResourceChange]:
        """Return resources that are written as before, but whose condition now has another value or meaning."""
        known = {(change.resource.stack, change.resource.logical_id) for change in changes}
        for after in self.head.resources():
            if "Condition" not in after.body or (after.stack, after.logical_id) in known:
                continue
            before = self.base.find(after.stack, after.logical_id)
            if before is not None and _existence(self.base, before) != _existence(self.head, after):
                yield ResourceChange(before=before, after=after)

    def _added(self, entry: Entry) -> None:
        entry.fate = Effect.ADDED
        there = exists(self.head, entry.resource)
        if _TYPE.fullmatch(entry.resource.type) is None:
            shape = updates.SHAPES["no type"]
            judged = Judged(Effect.REFUSED, shape.sentence, shape.source)
            entry.findings.append(Found(("Type",), None, entry.resource.type, judged))
            entry.fate = None
        entry.why = (
            "it is created" if there else "it is created if its condition is true, which the template does not show"
        )
        entry.findings += self._acts(entry.resource)

    def _acts(self, resource: Resource) -> Iterator[Found]:
        """Judge what a new resource does to existing resources; resources that are added with it are not affected."""
        names, note = updates.ACTS_ON.get(resource.type, ((), None))
        names = tuple(name for name in names if name in resource.properties)
        if note is None and resource.type in _ACTING:
            on, note = _ACTING[resource.type]
            names = tuple(name for name in on if self._is_told_to_act(resource, name))
            # in addition to what it watches, it acts on the resources that the action names
            is_on_others = bool(names)
        else:
            is_on_others = any(self._stands(resource.stack, resource.properties[name]) for name in names)
        if resource.type == _EGRESS and not self._is_first_egress(resource):
            return
        if note is None or not names or not is_on_others or not self.base.stacks:
            return
        value = resolve(self.head, resource.stack, resource.properties[names[0]])
        change = PropertyChange(steps=(names[0],), before=MISSING, after=value)
        judged = Judged(Effect.IN_PLACE, note.sentence, note.source, interrupts=True)
        yield Found(change.steps, *self.excerpts.of(change), judged)

    def _is_first_egress(self, resource: Resource) -> bool:
        """Whether an egress rule is among the first separate ones of a group that so far allowed all egress."""
        for key in self.uses.referred(resource.stack, resource.properties.get("GroupId")):
            group = self.base.find(*key)
            if group is None or not allows_everything_out(resolve(self.base, group.stack, dict(group.properties))):
                continue
            if all(each.type != _EGRESS for each in Uses.in_(self.base).of(*key)):
                return True
        return False

    def _stands(self, stack: str, value: Any) -> bool:
        """Whether a value names something that exists before the deployment, as far as the templates show."""
        named = self.uses.referred(stack, value)
        return not named or any(self.base.find(*each) is not None for each in named)

    def _is_told_to_act(self, resource: Resource, name: str) -> bool:
        """Whether an alarm or a rule does more than notify."""
        stated = resolve(self.head, resource.stack, resource.properties.get(name))
        actions = [each.get("Arn") if isinstance(each, dict) else each for each in (stated or [])]
        return any(isinstance(each, str) and _DOES.search(each) for each in actions)

    def _removed(self, entry: Entry) -> None:
        resource = entry.before
        assert resource is not None  # noqa: S101 - what leaves was there
        if resource.stack not in self.head.by_name:
            entry.fate = Effect.LEFT_BEHIND
            entry.why = f"the stack {resource.stack} is no longer in the app, and {updates.SHAPES['stack'].sentence}"
        elif resource.is_kept_on_delete:
            entry.fate = Effect.LEFT_BEHIND
            entry.why = (
                f"it is removed from its stack and stays in the account: its DeletionPolicy is {_policy(resource)}"
            )
        else:
            entry.fate = Effect.DELETED
            entry.why = next(iter(lost(resource.type, "it is deleted")), "it is deleted")
            if resource.deletion_policy == "Snapshot":
                by = (
                    "its DeletionPolicy is"
                    if "DeletionPolicy" in resource.body
                    else "CloudFormation's default for it is"
                )
                entry.why = f"it is deleted, and a snapshot of it is kept: {by} Snapshot"
        if entry.fate is Effect.LEFT_BEHIND:
            entry.kept = entry.why

    def _changed(self, entry: Entry, change: ResourceChange) -> None:
        before, after = entry.before, entry.after
        assert before is not None  # noqa: S101 - of(): both sides are there
        assert after is not None  # noqa: S101
        if before.type != after.type:
            shape = updates.SHAPES["type"]
            judged = Judged(Effect.REFUSED, shape.sentence, shape.source)
            entry.findings.append(Found(("Type",), before.type, after.type, judged))
            return
        was, will_be = _existence(self.base, before), _existence(self.head, after)
        if was != will_be:
            entry.condition = None
            reason = "whether it exists depends on a condition that the template does not show"
            before_text, after_text = (
                self.excerpts.text(each) if isinstance(each, str) else None for each in (was, will_be)
            )
            judged = Judged(Effect.UNKNOWN, reason, None)
            entry.findings.append(Found(("Condition",), before_text, after_text, judged))
        circumstances = circumstances_of(self.base, before, self.head, after)
        for each in change.properties:
            self._judge(entry, each, circumstances)
        if circumstances.may_include(AUTOSCALED) and change.properties:
            sides = resolved_properties(self.base, before), resolved_properties(self.head, after)
            for steps, judged in instance_group_effects.sent_as_none(*sides):
                entry.findings.append(Found(steps, "0", "0", judged, f"instance group {steps[1].strip('[]')}"))
        entry.findings += [self._attribute(each, after) for each in change.attributes if each.steps != ("Condition",)]
        if not entry.findings:
            # another condition with the same value as the earlier one
            del self.entries[entry.key]

    def _judge(self, entry: Entry, change: PropertyChange, circumstances: Circumstances) -> None:
        resource_type = entry.resource.type
        if instance_group_effects.is_of_groups(resource_type, change):
            whole = instance_group_effects.whole_groups(self.base, self.head, change, circumstances)
            for group, judged in whole:
                subject = f"instance group {group.item}"
                found = Found(group.steps, group.before, group.after, judged, subject, is_certain=group.is_certain)
                entry.findings.append(found)
            return
        subject = instance_group_effects.subject(resource_type, change)
        judged = judge(self.base, self.head, resource_type, change, circumstances)
        shown = self.excerpts.of(change)
        entry.findings.append(Found(change.steps, *shown, judged, subject, is_certain=differs_for_certain(change)))

    def _attribute(self, change: PropertyChange, resource: Resource) -> Found:
        name = change.steps[0]
        if name == METADATA:
            shape = updates.SHAPES["init"]
            judged = Judged(Effect.UNKNOWN, shape.sentence, shape.source)
            return Found(change.steps, *self.excerpts.of(change), judged, of="metadata")
        when = "is removed from its stack" if name == "DeletionPolicy" else "is replaced"
        if isinstance(resource.body.get(name), dict):
            resolved = (
                MISSING if each is MISSING else resolve(side, resource.stack, each)
                for side, each in ((self.base, change.before), (self.head, change.after))
            )
            change = replace(change, **dict(zip(("before", "after"), resolved, strict=True)))
            reason = f"whether it is kept when it {when} depends on what the template does not show"
            judged = Judged(Effect.UNKNOWN, reason, updates.SHAPES["name"].source)
            return Found(change.steps, *self.excerpts.of(change), judged)
        is_kept = resource.is_kept_on_delete if name == "DeletionPolicy" else resource.is_kept_on_replacement
        reason = f"from now on it is {'kept' if is_kept else 'not kept'} when it {when}"
        before, after = self.excerpts.of(change)
        return Found(change.steps, before, after, Judged(Effect.IN_PLACE, reason, updates.SHAPES["name"].source))

    # what follows from a replacement

    def _cascade(self) -> None:
        """Judge resources that refer to a value that is new as changed, until nothing more follows.

        A replaced resource gives new values for all its attributes, an updated one for those that its update changes
        (the version of a launch template, the value of a parameter).
        """
        pending: list[tuple[Entry, Giving | None]] = [
            (entry, _gives_other_values(entry)) for entry in self.entries.values()
        ]
        seen: set[tuple[Key, Giving]] = set()
        while pending:
            entry, giving = pending.pop(0)
            if giving is None or (entry.key, "all") in seen or (entry.key, giving) in seen:
                continue
            seen.add((entry.key, giving))
            for user in self.uses.of(*entry.key):
                found = self._follow(entry, user, giving)
                if found is None:
                    continue
                if found.effect is Effect.REPLACED:
                    pending.append((found, "all"))
                elif giving == "perhaps" and found.effect is Effect.UNKNOWN:
                    pending.append((found, "perhaps"))
                elif giving != "perhaps":
                    pending.append((found, _gives_other_values(found)))

    def _follow(self, giver: Entry, user: Resource, giving: Giving) -> Entry | None:
        """Judge the references of ``user`` to the new values of ``giver``; return its entry if something was found."""
        before = self.base.find(user.stack, user.logical_id)
        if before is None or before.type != user.type or exists(self.head, user) is False:
            return None
        entry = self.entries.get((user.stack, user.logical_id)) or self._entry(before, user)
        if entry.fate is not None:
            return None
        found = list(self._findings(giver, entry, giving))
        if not found:
            return None
        entry.findings += found
        self.entries.setdefault(entry.key, entry)
        return entry

    def _findings(self, giver: Entry, entry: Entry, giving: Giving) -> Iterator[Found]:
        told = {each.steps for each in entry.findings}
        name = giver.resource.name
        gives = _GIVES if giver.is_certain else _MAY_GIVE
        moves = any(each.steps == ("VpcId",) for each in giver.findings)
        circumstances = self._circumstances(entry) | Circumstances.of(*([ANOTHER_VPC] if moves else []))
        for steps, reference in self.uses.places(entry.resource, *giver.key):
            if any(steps[:depth] in told for depth in range(len(steps) + 1)) or giver.keeps(reference.attribute):
                continue
            if giving == "updated" and not _is_updated(giver, reference.attribute):
                continue
            change = PropertyChange(steps=steps, before=reference, after=reference)
            judged = judge(self.base, self.head, entry.resource.type, change, circumstances)
            if giving == "perhaps" and judged.effect is Effect.IN_PLACE:
                continue
            told.add(steps)
            effect = Effect.UNKNOWN if giving == "perhaps" else judged.effect
            yield Found(
                steps,
                plain(reference),
                f"{plain(reference)} ({_GIVEN[giving]})",
                replace(judged, effect=effect, reason=f"it refers to {name}, which {gives[giving]}: {judged.reason}"),
                instance_group_effects.subject(entry.resource.type, change),
                is_indirect=True,
                is_certain=giver.is_certain,
            )

    def _read_anew(self) -> None:
        """Judge values that are read by name from a place outside of the templates and may have changed there.

        A dynamic reference without a version is read at each update of its resource, a parameter of a template that
        names one in Parameter Store at each update of its stack (CloudFormation user guide, dynamic references and SSM
        parameter types).
        """
        changed = {
            name
            for entry in self.entries.values()
            if entry.is_update and entry.resource.type == _PARAMETER and _is_updated(entry, "Value")
            if isinstance(name := resolve(self.head, entry.resource.stack, entry.resource.properties.get("Name")), str)
        }
        deployed = {stack for stack, _ in self.entries}
        stored = {
            stack.name: {
                # a stack can name another value for one that has no default
                str(each.get("Default", f"${{{name}}}"))
                for name, each in stack.parameters.items()
                if isinstance(each, dict) and str(each.get("Type", "")).startswith(STORED)
                # read only by the CDK CLI, and part of no resource
                if not str(each.get("Default", "")).startswith("/cdk-bootstrap/")
            }
            for stack in self.head.stacks
            if stack.name in deployed
        }
        for user in self.head.resources():
            entry = self.entries.get((user.stack, user.logical_id))
            of_stack = stored.get(user.stack, set())
            if not changed and not of_stack and entry is None:
                continue
            before = self.base.find(user.stack, user.logical_id)
            if before is None or before.type != user.type or (entry is not None and entry.fate is not None):
                continue
            is_updated = entry is not None and any(not each.is_indirect for each in entry.findings)
            told = {each.steps for each in entry.findings} if entry is not None else set()
            for steps, name in _read_outside(resolved_properties(self.head, user)):
                if name.startswith(_AT_START):
                    self._read_at_start(user, before, steps, name.removeprefix(_AT_START), changed)
                    continue
                if steps in told or not (name in changed or name in of_stack or is_updated):
                    continue
                change = PropertyChange(steps=steps, before=Unknown(name), after=Unknown(name))
                judged = judge(
                    self.base, self.head, user.type, change, circumstances_of(self.base, before, self.head, user)
                )
                if judged.effect is Effect.IN_PLACE:
                    continue
                told.add(steps)
                entry = entry or self.entries.setdefault((user.stack, user.logical_id), self._entry(before, user))
                if name in changed:
                    what = f"it reads the parameter {name}, whose value changes, although not in this deployment"
                else:
                    what = f"this deployment reads {name} again, and its value may have changed"
                said = replace(judged, effect=Effect.UNKNOWN, reason=f"{what}: {judged.reason}")
                entry.findings.append(Found(steps, name, f"{name} (another value)", said, is_indirect=True))

    def _read_nested(self) -> None:
        """Judge nested stacks of stacks that change: their templates are read again, also from an unchanged address."""
        for nested in self.head.of_type(_NESTED):
            before = self.base.find(nested.stack, nested.logical_id)
            if before is None or before.type != _NESTED or (nested.stack, nested.logical_id) in self.entries:
                continue
            is_deployed = self.base.by_name[nested.stack].template != self.head.by_name[nested.stack].template
            url = plain(resolve(self.head, nested.stack, nested.properties.get(_TEMPLATE)))
            # CDK names an upload by its content
            if not is_deployed or exists(self.head, nested) is False or _DIGEST.search(url):
                continue
            entry = self.entries[nested.stack, nested.logical_id] = self._entry(before, nested)
            said = "this deployment reads the template again, and it may have changed at its address"
            judged = Judged(Effect.UNKNOWN, said, _NESTED_SOURCE)
            shown = self.excerpts.text(url)
            entry.findings.append(Found((_TEMPLATE,), shown, f"{shown} (read again)", judged, is_indirect=True))

    def _read_at_start(
        self, user: Resource, before: Resource, steps: tuple[str, ...], name: str, changed: AbstractSet[str]
    ) -> None:
        """Judge an image that EC2 looks up for each instance by the name of a parameter that changes."""
        if name not in changed or steps[-1:] != _IMAGE:
            return
        entry = self.entries.setdefault((user.stack, user.logical_id), self._entry(before, user))
        said = f"instances that start after this have the image that the parameter {name} then names; running ones stay"
        judged = Judged(Effect.IN_PLACE, said, _AT_START_SOURCE, interrupts=True)
        entry.findings.append(Found(steps, name, f"{name} (another value)", judged))

    def _name_readers(self) -> None:
        """Add the resources that read a parameter whose value changes, or get its name, to the parameter's entry."""
        for entry in self.entries.values():
            if not entry.is_update or entry.resource.type != _PARAMETER or not _is_updated(entry, "Value"):
                continue
            name = resolve(self.head, entry.resource.stack, entry.resource.properties.get("Name"))
            named = {name} if isinstance(name, str) else set()
            readers = {(each.stack, each.logical_id): each for each in self.uses.of(*entry.key)}
            for each in self.head.resources() if named else ():
                found = {
                    read.removeprefix(_AT_START) for _, read in _read_outside(resolved_properties(self.head, each))
                }
                if found & named:
                    readers[each.stack, each.logical_id] = each
            if readers:
                verb = "does or has its name" if len(readers) == 1 else "do or have its name"
                texts = [f"{each.name} ({each.stack})" for each in readers.values()]
                listed = joined(
                    texts if len(texts) <= IN_SUMMARY else [*texts[:IN_SUMMARY], f"{len(texts) - IN_SUMMARY} more"]
                )
                entry.findings = [
                    replace(each, judged=replace(each.judged, reason=f"{each.judged.reason}; here {listed} {verb}"))
                    if each.steps == _VALUE
                    else each
                    for each in entry.findings
                ]

    def _check_sizes(self) -> None:
        """Judge the sizes of an Auto Scaling group: an update sets those of its template, whatever they are by then."""
        for entry in self.entries.values():
            before, after = entry.before, entry.after
            if entry.resource.type != _SCALED or not entry.is_update or before is None or after is None:
                continue
            changed = {each.steps[0] for each in entry.findings}
            policy = after.body.get("UpdatePolicy")
            of_schedules = policy.get("AutoScalingScheduledAction") if isinstance(policy, dict) else None
            ignores = isinstance(of_schedules, dict) and of_schedules.get(_IGNORES) in (True, "true")
            if ignores or entry.effect is Effect.REPLACED or changed <= {*_ATTRIBUTES, "Condition"}:
                continue
            sizes = {name: str(plain(after.properties[name])) for name in _SIZES if name in after.properties}
            is_scheduled = any(each.type == _SCHEDULE for each in self.uses.of(*entry.key))
            is_scaled = "DesiredCapacity" in sizes and sizes.get("MinSize") != sizes.get("MaxSize")
            name = next((name for name in sizes if name not in changed), None)
            if name is None or not (is_scheduled or (is_scaled and name == "DesiredCapacity")):
                continue
            shape = updates.SHAPES["sizes"]
            judged = Judged(Effect.IN_PLACE, shape.sentence, shape.source, is_of_update=True, interrupts=True)
            entry.findings.append(Found((name,), sizes[name], f"{sizes[name]} (set again)", judged))

    def _circumstances(self, entry: Entry) -> Circumstances:
        before, after = entry.before, entry.after
        assert before is not None  # noqa: S101 - of(): both sides are there
        assert after is not None  # noqa: S101
        return circumstances_of(self.base, before, self.head, after)

    def _check_clusters(self) -> None:
        """Judge resources on an EKS cluster: they are deleted with the cluster, whatever their DeletionPolicy is."""
        for entry in self.entries.values():
            if entry.fate is not Effect.LEFT_BEHIND or not entry.resource.type.startswith(_ON_A_CLUSTER):
                continue
            on = resolve(self.base, entry.resource.stack, entry.resource.properties.get("ClusterName"))
            cluster = self.entries.get((on.stack, on.logical_id)) if isinstance(on, Reference) else None
            if cluster is not None and cluster.effect in (Effect.DELETED, Effect.REPLACED):
                entry.fate, entry.why, entry.kept = Effect.DELETED, f"it is deleted with {cluster.resource.name}", ""

    # changes that CloudFormation refuses

    def _check_kept(self, entry: Entry) -> None:
        """Judge a replaced resource whose old one stays; a policy that changes at the same time does not count."""
        before, after = entry.before, entry.after
        if before is None or after is None or not entry.is_update or entry.effect is not Effect.REPLACED:
            return
        if before.is_kept_on_replacement and after.is_kept_on_replacement:
            entry.kept = "the old one stays in the account: its UpdateReplacePolicy is Retain"

    def _check_protection(self, entry: Entry) -> None:
        """Judge a resource that is to be deleted and that its service does not delete."""
        before = entry.before
        protection = updates.PROTECTIONS.get(before.type) if before is not None else None
        if before is None or protection is None or entry.effect not in (Effect.DELETED, Effect.REPLACED):
            return
        if resolve(self.base, before.stack, before.properties.get(protection.name)) not in (
            protection.value,
            str(protection.value).lower(),
        ):
            return
        reason = "the service does not delete it while this is on; switch it off in an earlier, separate deployment"
        judged = Judged(Effect.REFUSED, reason, protection.source)
        value = str(protection.value).lower() if protection.value is True else protection.value
        entry.findings.append(Found((protection.name,), value, None, judged))
        entry.kept = entry.kept or f"the service refuses to delete it: its {protection.name} is {value}"


def _spare_the_new_one(entry: Entry) -> None:
    """Remove the effects of updates from a resource that is created again: it is not updated."""
    if entry.effect is not Effect.REPLACED:
        return
    grave = (Effect.REFUSED, Effect.INTERRUPTED, Effect.UNKNOWN)
    entry.findings = [
        replace(each, judged=Judged(Effect.IN_PLACE, _WITH_THE_NEW_ONE, None))
        if each.judged.is_of_update and each.judged.effect in grave
        else each
        for each in entry.findings
    ]


def _gives_other_values(entry: Entry) -> Giving | None:
    """Return which of the values that a resource gives are new afterwards: all, perhaps some, those it updates, or
    none."""
    if not entry.is_update:
        return None
    if entry.effect is Effect.REPLACED:
        return "all"
    resource_type = entry.resource.type
    rule = create_only.update_rule(resource_type)
    if rule is None and not updates.has_rows(resource_type):
        return "perhaps"
    if resource_type == _NESTED or any(each.judged.may_replace for each in entry.findings):
        return "perhaps"
    return "updated"


def _is_updated(entry: Entry, attribute: str) -> bool:
    """Whether an update in place changes the value of an attribute."""
    return bool(attribute) and any(
        updates.gives_another(entry.resource.type, attribute, tuple(step for step in each.steps if step[0] != "["))
        for each in entry.findings
    )


def _existence(assembly: Assembly, resource: Resource) -> bool | str:
    """Return whether a resource exists or, if the template does not show it, on what that depends."""
    there = exists(assembly, resource)
    return meaning(assembly.by_name[resource.stack], resource.body["Condition"]) if there is None else there


def _policy(resource: Resource) -> str:
    return str(resource.body.get("DeletionPolicy"))


def _read_outside(value: Any, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return where in resolved properties which parameter or secret is read without a version."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _read_outside(item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _read_outside(item, (*steps, f"[{index}]") if isinstance(item, dict) else steps)
    elif isinstance(value, str | Unknown):
        for parameter, secret, at_start in _DYNAMIC.findall(value if isinstance(value, str) else value.text):
            if at_start:
                yield steps, f"{_AT_START}{at_start}"
            elif parameter:
                yield steps, parameter
            elif not _VERSION.search(secret):
                yield steps, secret.partition(":SecretString")[0]
