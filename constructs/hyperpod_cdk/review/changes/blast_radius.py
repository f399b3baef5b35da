"""What a change does to every resource: replaced, deleted, refused, nodes interrupted, in place - or not known."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from typing import Any, Final, Literal

from hyperpod_cdk.catalog import create_only, updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.changes import instance_group_effects
from hyperpod_cdk.review.changes.effects import (
    ANOTHER_VPC,
    AUTOSCALED,
    GRAVEST_FIRST,
    Judged,
    circumstances_of,
    gravest,
    judge,
    rank,
)
from hyperpod_cdk.review.changes.excerpts import IN_SENTENCE, Excerpts, differing
from hyperpod_cdk.review.changes.uses import Key, Uses
from hyperpod_cdk.review.model import (
    EXPORT_PREFIX,
    BlastRadius,
    Effect,
    LeftBehind,
    Part,
    PropertyEffect,
    ResourceEffect,
)
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.difference import METADATA, MISSING, PropertyChange, ResourceChange
from hyperpod_cdk.templates.loops import UNTOLD
from hyperpod_cdk.templates.values import (
    STORED,
    Reference,
    Unknown,
    holds,
    imports,
    plain,
    resolve,
    resolved_properties,
)

_MAY_GO: Final = "may go"
IN_SUMMARY: Final = 3
"""Changed properties that a summary names."""
EXPORT: Final = "CloudFormation export"
"""The type of an output that stands for no resource of its own."""

_PARAMETER: Final = "AWS::SSM::Parameter"
_VALUE: Final = ("Value",)
_DYNAMIC: Final = re.compile(
    r"\{\{resolve:(?:ssm|ssm-secure):([^:}]+)\}\}|\{\{resolve:secretsmanager:([^}]+)\}\}|^(?:resolve:ssm:)([^:{}]+)$"
)
"""A dynamic reference to what has versions, of which it names none where it is one of Parameter Store.

The last form is one that EC2 reads whenever it starts an instance (EC2 Auto Scaling user guide, "Use AWS Systems
Manager parameters instead of AMI IDs in launch templates").
"""
_IMAGE: Final = ("ImageId",)
_AT_START: Final = "resolve:ssm:"
_AT_START_SOURCE: Final = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/using-systems-manager-parameters.html"
_VERSION: Final = re.compile(r":SecretString:[^:]*:[^:]*:[^:]+$")
"""How a dynamic reference to a secret ends that names a version by its ID."""
_ON_A_CLUSTER: Final = "Custom::AWSCDK-EKS-"
"""How CDK's types begin of what its kubectl function does on an EKS cluster: manifests, patches and Helm charts."""
_NESTED: Final = "AWS::CloudFormation::Stack"
_TYPE: Final = re.compile(r"Custom::[\w@-]{1,60}|\w{2,64}::\w{2,64}::\w{2,64}(?:::MODULE)?|" + re.escape(UNTOLD))
"""What a type is called (CloudFormation API reference, RegisterType, TypeName; AWS::CloudFormation::CustomResource).

The last one stands for the resources of a loop that only the deployment writes out.
"""
_EGRESS: Final = "AWS::EC2::SecurityGroupEgress"
_SCALED: Final = "AWS::AutoScaling::AutoScalingGroup"
_SCHEDULE: Final = "AWS::AutoScaling::ScheduledAction"
_SIZES: Final = ("DesiredCapacity", "MinSize", "MaxSize")
_IGNORES: Final = "IgnoreUnmodifiedGroupSizeProperties"
_ATTRIBUTES: Final = ("DeletionPolicy", "UpdateReplacePolicy", METADATA)
"""What of a resource changes without its service being asked for an update."""
_BLOCK: Final = "CidrBlock"
BLOCKS: Final = frozenset({"AWS::EC2::VPCCidrBlock", "AWS::EC2::Subnet"})
"""What takes a block of a VPC's addresses, of which no two of a type overlap."""
Giving = Literal["all", "perhaps", "updated"]
"""Which of the values that a resource gives to others are new ones."""
_GIVES: Final[dict[Giving, str]] = {
    "all": "is replaced",
    "perhaps": "may give another value",
    "updated": "gives another value",
}
_GIVEN: Final[dict[Giving, str]] = {"all": "replaced", "perhaps": "perhaps another one", "updated": "another value"}
_WITH_THE_NEW_ONE: Final = "nothing is updated: the new one is made with it"
_WORDS: Final = {
    Effect.REPLACED: "replaces it",
    Effect.DELETED: "is deleted",
    Effect.REFUSED: "is refused",
    Effect.INTERRUPTED: "interrupts nodes",
    Effect.UNKNOWN: "may do more than is known",
    Effect.LEFT_BEHIND: "leaves it behind",
    Effect.IN_PLACE: "changes in place",
    Effect.ADDED: "is added",
}


def blast_radius(
    base: Assembly, head: Assembly, changes: Sequence[ResourceChange], *, with_exports: bool = True
) -> BlastRadius:
    """Tell what deploying ``head`` over ``base`` does to each resource, gravest first.

    ``changes`` are ``difference.compare``'s. Resources that do not differ are in it too where they refer to one that is
    replaced. Nothing is ever called safe: what neither the CloudFormation schemas nor the catalog's table tell is
    ``unknown``. ``with_exports`` is False for a step of a plan, which has asked who imports what goes, and says so.
    """
    known: _Known | None = head.read.get(_Known) if with_exports else None
    if known and known.is_of(base, changes):
        return known.radius
    return _Review(base, head).of(changes, with_exports=with_exports)


def changed_exports(base: Assembly, head: Assembly, changes: Sequence[ResourceChange]) -> dict[str, str]:
    """Give what becomes of the base's exports, ``goes`` or ``changes``, by name, without those that stay.

    Of a stack that is not in the head no export changes: ``cdk deploy`` leaves it as it is. ``changes`` are as in
    ``blast_radius``.
    """
    review = _Review(base, head)
    # whoever plans the way from one to the other asks for this, too
    head.read[_Known] = _Known(base=base, changes=tuple(changes), radius=review.of(changes))
    found = {
        name: review.export_change(name, stack.name, value)
        for name, (stack, value) in base.exports.items()
        if stack.name in head.by_name
    }
    return {name: "goes" if word == _MAY_GO else word for name, word in found.items() if word is not None}


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What was found out of a head before, and from where."""

    base: Assembly
    changes: tuple[ResourceChange, ...]
    radius: BlastRadius

    def is_of(self, base: Assembly, changes: Sequence[ResourceChange]) -> bool:
        return (
            self.base.is_made_of(base.stacks)
            and len(self.changes) == len(changes)
            and all(map(operator.is_, self.changes, changes))
        )


@dataclass(frozen=True)
class _Finding:
    """One property's effect before it is put in words; ``before`` and ``after`` are ready to be shown."""

    steps: tuple[str, ...]
    before: str | None
    after: str | None
    judged: Judged
    subject: str = ""
    is_indirect: bool = False
    """Whether the property reads as before, and only what it stands for is another."""
    of: Part = "property"

    @property
    def path(self) -> str:
        return ".".join(self.steps).replace(".[", "[")


@dataclass(eq=False)
class _Entry:
    """One resource and what is found out about it."""

    before: Resource | None
    after: Resource | None
    fate: Effect | None = None
    why: str = ""
    findings: list[_Finding] = field(default_factory=list)
    kept: str = ""

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
        # what comes or goes inside of a resource happens to its nodes, not to the resource
        inside = {Effect.DELETED: Effect.INTERRUPTED, Effect.ADDED: Effect.IN_PLACE}
        effects = (each.judged.effect for each in self.findings)
        return gravest(inside.get(each, each) for each in effects) or Effect.IN_PLACE

    @property
    def is_update(self) -> bool:
        return self.fate is None and self.before is not None and self.after is not None


_DOES: Final = re.compile(r":automate:|:swf:|:ssm:|:events:[^:]*:[^:]*:target/|:autoscaling:|:ssm-incidents:")
"""Actions of alarms and targets of rules that stop, reboot, terminate or scale, or run a document."""

_ACTING: Final[Mapping[str, tuple[tuple[str, ...], updates.Note]]] = {
    "AWS::CloudWatch::Alarm": (("AlarmActions", "InsufficientDataActions", "OKActions"), updates.ALARM_ACTS),
    "AWS::CloudWatch::CompositeAlarm": (("AlarmActions", "InsufficientDataActions", "OKActions"), updates.ALARM_ACTS),
    "AWS::Events::Rule": (("Targets",), updates.RULE_ACTS),
}
"""What tells somebody, as a rule, and acts on something else by what some of its properties say."""


class _Review:
    def __init__(self, base: Assembly, head: Assembly) -> None:
        self.base = base
        self.head = head
        self.entries: dict[Key, _Entry] = {}
        self.excerpts = Excerpts(base, head)
        self.uses = Uses.in_(head)
        self.order = {stack.name: place for place, stack in enumerate(head.stacks)}

    def of(self, changes: Sequence[ResourceChange], *, with_exports: bool = True) -> BlastRadius:
        for change in (*changes, *self._switched(changes)):
            self._enter(change)
        self._cascade()
        self._check_clusters()
        self._read_anew()
        self._name_readers()
        self._check_sizes()
        for entry in self.entries.values():
            _spare_the_new_one(entry)
        for entry in list(self.entries.values()):
            self._check_name(entry)
        self._check_moved()
        self._check_blocks()
        if with_exports:
            self._check_exports()
        for entry in self.entries.values():
            self._check_kept(entry)
            self._check_protection(entry)
        entries = sorted(self.entries.values(), key=lambda each: (rank(each.effect), not is_stateful(each.resource)))
        counts = Counter(entry.effect for entry in entries)
        return BlastRadius(
            resources=tuple(self._told(entry) for entry in entries),
            left_behind=tuple(_left_behind(entry) for entry in entries if entry.kept),
            counts={effect: counts[effect] for effect in GRAVEST_FIRST if counts[effect]},
            schemas_as_of=create_only.SCHEMAS_AS_OF.isoformat(),
        )

    def _enter(self, change: ResourceChange) -> None:
        was = change.before is not None and _is_there(self.base, change.before)
        will_be = change.after is not None and _is_there(self.head, change.after)
        if was is False and will_be is False:
            return
        entry = _Entry(change.before, change.after)
        self.entries[entry.key] = entry
        if was is False:
            self._added(entry)
        elif will_be is False:
            self._removed(entry)
        elif change.before is not None and change.after is not None:
            self._changed(entry, change)

    def _switched(self, changes: Iterable[ResourceChange]) -> Iterator[ResourceChange]:
        """Resources that are written as before, but whose condition has turned."""
        known = {(change.resource.stack, change.resource.logical_id) for change in changes}
        for after in self.head.resources():
            if "Condition" not in after.body or (after.stack, after.logical_id) in known:
                continue
            before = self.base.find(after.stack, after.logical_id)
            if before is not None and _is_there(self.base, before) is not _is_there(self.head, after):
                yield ResourceChange(before=before, after=after)

    def _added(self, entry: _Entry) -> None:
        entry.fate = Effect.ADDED
        there = _is_there(self.head, entry.resource)
        if _TYPE.fullmatch(entry.resource.type) is None:
            shape = updates.SHAPES["no type"]
            judged = Judged(Effect.REFUSED, shape.sentence, shape.source)
            entry.findings.append(_Finding(("Type",), None, entry.resource.type, judged))
            entry.fate = None
        entry.why = "it is made" if there else "it is made if its condition holds, which the template does not tell"
        entry.findings += self._acts(entry.resource)

    def _acts(self, resource: Resource) -> Iterator[_Finding]:
        """Judge what a new resource does to what stood before it; what comes along with it is not harmed."""
        names, note = updates.ACTS_ON.get(resource.type, ((), None))
        names = tuple(name for name in names if name in resource.properties)
        if note is None and resource.type in _ACTING:
            on, note = _ACTING[resource.type]
            names = tuple(name for name in on if self._is_told_to_act(resource, name))
            # whatever it watches, it acts on what the action names
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
        yield _Finding(change.steps, *self.excerpts.of(change), judged)

    def _is_first_egress(self, resource: Resource) -> bool:
        """Whether a rule for what goes out is among the first of a group that stated none, and so let out all."""
        for key in self.uses.referred(resource.stack, resource.properties.get("GroupId")):
            group = self.base.find(*key)
            if group is None or group.properties.get("SecurityGroupEgress"):
                continue
            if all(each.type != _EGRESS for each in Uses.in_(self.base).of(*key)):
                return True
        return False

    def _stands(self, stack: str, value: Any) -> bool:
        """Whether a value names something that is there before the deployment, as far as the templates tell."""
        named = self.uses.referred(stack, value)
        return not named or any(self.base.find(*each) is not None for each in named)

    def _is_told_to_act(self, resource: Resource, name: str) -> bool:
        """Whether an alarm or a rule does more than to tell somebody."""
        stated = resolve(self.head, resource.stack, resource.properties.get(name))
        actions = [each.get("Arn") if isinstance(each, dict) else each for each in (stated or [])]
        return any(isinstance(each, str) and _DOES.search(each) for each in actions)

    def _removed(self, entry: _Entry) -> None:
        resource = entry.before
        assert resource is not None  # noqa: S101 - what leaves was there
        if resource.stack not in self.head.by_name:
            entry.fate = Effect.LEFT_BEHIND
            entry.why = f"the stack {resource.stack} is in the app no more, and {updates.SHAPES['stack'].sentence}"
        elif resource.is_kept_on_delete:
            entry.fate = Effect.LEFT_BEHIND
            entry.why = f"it leaves its stack and stays in the account: its DeletionPolicy is {_policy(resource)}"
        else:
            entry.fate = Effect.DELETED
            entry.why = next(iter(_lost(resource.type, "it is deleted")), "it is deleted")
            if resource.deletion_policy == "Snapshot":
                by = (
                    "its DeletionPolicy is"
                    if "DeletionPolicy" in resource.body
                    else "CloudFormation's default for it is"
                )
                entry.why = f"it is deleted, and a snapshot of it is kept: {by} Snapshot"
        if entry.fate is Effect.LEFT_BEHIND:
            entry.kept = entry.why

    def _changed(self, entry: _Entry, change: ResourceChange) -> None:
        before, after = entry.before, entry.after
        assert before is not None  # noqa: S101 - of(): both sides are there
        assert after is not None  # noqa: S101
        if before.type != after.type:
            shape = updates.SHAPES["type"]
            judged = Judged(Effect.REFUSED, shape.sentence, shape.source)
            entry.findings.append(_Finding(("Type",), before.type, after.type, judged))
            return
        if _is_there(self.base, before) is not _is_there(self.head, after):
            reason = "whether it is there depends on a condition that the template does not tell"
            entry.findings.append(_Finding(("Condition",), None, None, Judged(Effect.UNKNOWN, reason, None)))
        circumstances = circumstances_of(before, self.head, after)
        for each in change.properties:
            self._judge(entry, each, circumstances)
        if AUTOSCALED in circumstances and change.properties:
            for steps, judged in instance_group_effects.sent_as_none(before, after):
                entry.findings.append(_Finding(steps, "0", "0", judged, f"instance group {steps[1].strip('[]')}"))
        entry.findings += [self._attribute(each, after) for each in change.attributes if each.steps != ("Condition",)]
        if not entry.findings:
            # another condition, which holds as the one before did
            del self.entries[entry.key]

    def _judge(self, entry: _Entry, change: PropertyChange, circumstances: frozenset[str]) -> None:
        resource_type = entry.resource.type
        if instance_group_effects.is_of_groups(resource_type, change):
            is_autoscaled = AUTOSCALED in circumstances
            whole = instance_group_effects.whole_groups(self.base, self.head, change, is_autoscaled=is_autoscaled)
            for group, judged in whole:
                subject = f"instance group {group.item}"
                entry.findings.append(_Finding(group.steps, group.before, group.after, judged, subject))
            return
        subject = instance_group_effects.subject(resource_type, change)
        judged = judge(self.base, self.head, resource_type, change, circumstances)
        entry.findings.append(_Finding(change.steps, *self.excerpts.of(change), judged, subject))

    def _attribute(self, change: PropertyChange, resource: Resource) -> _Finding:
        name = change.steps[0]
        if name == METADATA:
            shape = updates.SHAPES["init"]
            judged = Judged(Effect.UNKNOWN, shape.sentence, shape.source)
            return _Finding(change.steps, *self.excerpts.of(change), judged, of="metadata")
        when = "leaves its stack" if name == "DeletionPolicy" else "is replaced"
        is_kept = resource.is_kept_on_delete if name == "DeletionPolicy" else resource.is_kept_on_replacement
        reason = f"from now on it is {'kept' if is_kept else 'not kept'} when it {when}"
        before, after = self.excerpts.of(change)
        return _Finding(change.steps, before, after, Judged(Effect.IN_PLACE, reason, updates.SHAPES["name"].source))

    # what follows from a replacement

    def _cascade(self) -> None:
        """Judge what refers to another value now as changed, and so on until nothing more follows.

        A replaced resource gives others for all that it is asked for, an updated one for what its update changes (the
        version of a launch template, the value of a parameter).
        """
        pending: list[tuple[_Entry, Giving | None]] = [
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

    def _follow(self, giver: _Entry, user: Resource, giving: Giving) -> _Entry | None:
        """Judge what of ``user`` refers to what ``giver`` now gives; give its entry if something was found."""
        before = self.base.find(user.stack, user.logical_id)
        if before is None or before.type != user.type or _is_there(self.head, user) is False:
            return None
        entry = self.entries.get((user.stack, user.logical_id)) or _Entry(before, user)
        if entry.fate is not None:
            return None
        found = list(self._findings(giver, entry, giving))
        if not found:
            return None
        entry.findings += found
        self.entries.setdefault(entry.key, entry)
        return entry

    def _findings(self, giver: _Entry, entry: _Entry, giving: Giving) -> Iterator[_Finding]:
        told = {each.steps for each in entry.findings}
        name = giver.resource.name
        moves = any(each.steps == ("VpcId",) for each in giver.findings)
        circumstances = self._circumstances(entry) | ({ANOTHER_VPC} if moves else set())
        for steps, reference in self.uses.places(entry.resource, *giver.key):
            if any(steps[:depth] in told for depth in range(len(steps) + 1)) or self._is_steady(
                giver, reference.attribute
            ):
                continue
            if giving == "updated" and not _is_updated(giver, reference.attribute):
                continue
            change = PropertyChange(steps=steps, before=reference, after=reference)
            judged = judge(self.base, self.head, entry.resource.type, change, circumstances)
            if giving == "perhaps" and judged.effect is Effect.IN_PLACE:
                continue
            told.add(steps)
            effect = Effect.UNKNOWN if giving == "perhaps" else judged.effect
            yield _Finding(
                steps,
                plain(reference),
                f"{plain(reference)} ({_GIVEN[giving]})",
                replace(judged, effect=effect, reason=f"it refers to {name}, which {_GIVES[giving]}: {judged.reason}"),
                instance_group_effects.subject(entry.resource.type, change),
                is_indirect=True,
            )

    def _read_anew(self) -> None:
        """Judge what is read by its name from a place outside of the templates, where another value may stand by now.

        A dynamic reference without a version is read with each update of what it stands in, a parameter of a template
        that names one in Parameter Store with each update of its stack (CloudFormation user guide, dynamic references
        and SSM parameter types).
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
                str(each["Default"])
                for each in stack.parameters.values()
                if isinstance(each, dict) and str(each.get("Type", "")).startswith(STORED) and "Default" in each
                # only asked of by the CDK CLI, and part of no resource
                if not str(each["Default"]).startswith("/cdk-bootstrap/")
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
                judged = judge(self.base, self.head, user.type, change, circumstances_of(before, self.head, user))
                if judged.effect is Effect.IN_PLACE:
                    continue
                told.add(steps)
                entry = entry or self.entries.setdefault((user.stack, user.logical_id), _Entry(before, user))
                if name in changed:
                    what = f"it reads the parameter {name}, whose value changes, if not in this deployment"
                else:
                    what = f"this deployment reads {name} again, and its value may have changed"
                said = replace(judged, effect=Effect.UNKNOWN, reason=f"{what}: {judged.reason}")
                entry.findings.append(_Finding(steps, name, f"{name} (another value)", said, is_indirect=True))

    def _read_at_start(
        self, user: Resource, before: Resource, steps: tuple[str, ...], name: str, changed: AbstractSet[str]
    ) -> None:
        """Tell of an image that EC2 looks up for each instance by the name of a parameter that changes."""
        if name not in changed or steps[-1:] != _IMAGE:
            return
        entry = self.entries.setdefault((user.stack, user.logical_id), _Entry(before, user))
        said = (
            f"instances that start from now on have the image that the parameter {name} then names; those that run stay"
        )
        judged = Judged(Effect.IN_PLACE, said, _AT_START_SOURCE, interrupts=True)
        entry.findings.append(_Finding(steps, name, f"{name} (another value)", judged))

    def _name_readers(self) -> None:
        """Name the resources that read a parameter whose value changes, or are given its name."""
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
        """An update of an Auto Scaling group sets the sizes that its template states, whatever they are by then."""
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
            entry.findings.append(_Finding((name,), sizes[name], f"{sizes[name]} (set again)", judged))

    def _circumstances(self, entry: _Entry) -> frozenset[str]:
        before, after = entry.before, entry.after
        assert before is not None  # noqa: S101 - _follow(): both sides are there
        assert after is not None  # noqa: S101
        return circumstances_of(before, self.head, after)

    def _is_steady(self, entry: _Entry, attribute: str) -> bool:
        """Whether an attribute is a property that the old and the new one have in common."""
        before, after = entry.before, entry.after
        if not attribute or before is None or after is None or before.type != after.type:
            return False
        if attribute not in before.properties or attribute not in after.properties:
            return False
        return not any(each.steps[0] == attribute for each in entry.findings)

    def _check_clusters(self) -> None:
        """What a stack leaves on an EKS cluster is gone with the cluster, whatever its DeletionPolicy says."""
        for entry in self.entries.values():
            if entry.fate is not Effect.LEFT_BEHIND or not entry.resource.type.startswith(_ON_A_CLUSTER):
                continue
            on = resolve(self.base, entry.resource.stack, entry.resource.properties.get("ClusterName"))
            cluster = self.entries.get((on.stack, on.logical_id)) if isinstance(on, Reference) else None
            if cluster is not None and cluster.effect in (Effect.DELETED, Effect.REPLACED):
                entry.fate, entry.why, entry.kept = Effect.DELETED, f"it goes with {cluster.resource.name}", ""

    # shapes that CloudFormation refuses

    def _check_name(self, entry: _Entry) -> None:
        """A resource that is made anew under the name that the old one still has."""
        before, after = entry.before, entry.after
        if before is None or after is None or not entry.is_update or entry.effect is not Effect.REPLACED:
            return
        rule = create_only.update_rule(after.type)
        if rule is not None and rule.deletes_first:
            return
        name, changed = self._name(self.head, after), {each.steps for each in entry.findings}
        paths = updates.name_of(after.type)
        if name is None or name != self._name(self.base, before):
            return
        if any(steps[: len(path)] == path or path[: len(steps)] == steps for steps in changed for path in paths):
            return
        shape = updates.SHAPES["name"]
        reason = f"{shape.sentence} {_listed(paths)}; change that too"
        entry.findings.append(_Finding(paths[0], name[0], name[0], Judged(Effect.REFUSED, reason, shape.source)))

    def _check_moved(self) -> None:
        """A resource that is made while another of its name is still there: one that goes, or that stays."""
        made = (Effect.ADDED, Effect.REPLACED)
        takers = [entry for entry in self.entries.values() if entry.effect in made and entry.after is not None]
        types = {entry.resource.type for entry in takers}
        # what is made in a new environment finds nothing there
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
            entry.findings.append(_Finding(paths[0], None, name[0], Judged(Effect.REFUSED, reason, shape.source)))
            if entry.fate is Effect.ADDED:
                entry.fate = None

    def _is_freed(self, old: _Entry) -> bool:
        """Whether a resource that stays, or is made anew before its old one goes, is said to give its name up."""
        is_gone = old.fate in (Effect.DELETED, Effect.LEFT_BEHIND) or old.effect is Effect.REPLACED
        if is_gone:
            return False
        # by an update in place, of which nobody tells whether it comes first
        return old.after is None or self._full_name(self.head, old.after) != self._full_name(self.base, old.resource)

    def _check_blocks(self) -> None:
        """A block of addresses that is taken while another that it overlaps, which goes, is still there."""
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
                new.findings.append(_Finding((_BLOCK,), before, str(block), judged))
                new.fate = None
                break

    def _blocks(self, assembly: Assembly, effects: Sequence[Effect]) -> Iterator[tuple[_Entry, Key | str, IPv4Network]]:
        """The blocks of addresses of what has one of these effects, and the VPC in which each is taken."""
        for entry in self.entries.values():
            resource = entry.before if assembly is self.base else entry.after
            found = self._block(assembly, resource) if resource is not None and entry.effect in effects else None
            if found is not None:
                yield entry, *found

    def _block(self, assembly: Assembly, resource: Resource) -> tuple[Key | str, IPv4Network] | None:
        """The VPC and the block of addresses that a resource takes in it, None where the template does not tell."""
        if resource.type not in BLOCKS:
            return None
        vpc, block = (resolve(assembly, resource.stack, resource.properties.get(each)) for each in ("VpcId", _BLOCK))
        if isinstance(vpc, Reference):
            made = self.entries.get((vpc.stack, vpc.logical_id))
            # in a VPC that is made anew no block is taken
            if made is not None and made.effect is Effect.REPLACED:
                return None
        try:
            return ((vpc.stack, vpc.logical_id) if isinstance(vpc, Reference) else plain(vpc)), IPv4Network(
                plain(block)
            )
        except ValueError:
            return None

    def _is_gone_before(self, old: _Entry, new: _Entry) -> bool:
        """Whether the old one is deleted before the new one is made: by a stack that is deployed earlier."""
        before, after = old.before, old.after
        is_kept = before is not None and before.is_kept_on_replacement and after and after.is_kept_on_replacement
        if old.fate is not Effect.DELETED and (old.effect is not Effect.REPLACED or is_kept):
            return False
        return self.order[old.resource.stack] < self.order[new.resource.stack]

    def _name(self, assembly: Assembly, resource: Resource) -> tuple[str, ...] | None:
        """The values of a resource's name, None where it has none that the template tells."""
        paths = updates.name_of(resource.type)
        if not paths:
            return None
        values = [resolve(assembly, resource.stack, _at(resource.properties, path)) for path in paths]
        if values[0] is MISSING or any(isinstance(each, Unknown) for each in values):
            return None
        rule = create_only.update_rule(resource.type)
        if rule is not None and rule.name == paths and MISSING in values:
            return None
        return tuple(self.excerpts.text(each) or "" for each in values)

    def _full_name(self, assembly: Assembly, resource: Resource) -> tuple[str, ...] | None:
        """The name with the stack of whatever it refers to, and the account and region that it stands in."""
        name = self._name(assembly, resource)
        if name is None:
            return None
        stack = assembly.by_name[resource.stack]
        values = (
            resolve(assembly, resource.stack, _at(resource.properties, path)) for path in updates.name_of(resource.type)
        )
        owners = (_owner(each, resource.stack) for each in values)
        return (*_scope(resource.type, stack), *(f"{owner}{each}" for owner, each in zip(owners, name, strict=True)))

    def _check_exports(self) -> None:
        """Exports that change or go while a stack that is deployed imports them."""
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
            word = self.export_change(name, stack.name, value)
            if word is not None and users:
                verb = "imports" if len(users) == 1 else "import"
                self._judge_export(
                    name, stack.name, value, f"{word} while {joined(users)} {verb} it", is_used=word != _MAY_GO
                )
            elif word is not None and name not in importers:
                self._judge_export(name, stack.name, value, f"{word}, and no template here imports it", is_used=False)

    def _lets_go_first(self, importer: str, exporter: str) -> bool:
        """Whether the importing stack, which imports no more, is deployed before the exporting one."""
        return importer in self.order and self.order[importer] < self.order[exporter]

    def export_change(self, name: str, stack: str, value: Any) -> str | None:
        """Say what becomes of an export of the base, None where it stays as it is."""
        found = self.head.exports.get(name)
        if found is None or found[0].name != stack:
            return "goes"
        if self._may_go(name, stack):
            return _MAY_GO
        before, after = resolve(self.base, stack, value), resolve(self.head, stack, found[1])
        if before != after:
            return None if after == self._name_given_by(before) else "changes"
        entry = self.entries.get((before.stack, before.logical_id)) if isinstance(before, Reference) else None
        if entry is None or not entry.is_update or entry.effect is not Effect.REPLACED:
            return None
        return None if self._is_steady(entry, before.attribute) else "changes"

    def _may_go(self, name: str, stack: str) -> bool:
        """Whether an export comes under a condition of which only the deployment knows, and is not the base's."""
        stated = []
        for side in (self.base, self.head):
            owner = side.by_name[stack]
            outputs = [owner.outputs[key] for key, each in owner.export_names.items() if each == name]
            condition = outputs[-1].get("Condition") if outputs else None
            stated.append((condition, plain(owner.conditions.get(condition)) if isinstance(condition, str) else None))
        (_, old), (condition, new) = stated
        return condition is not None and old != new and holds(self.head.by_name[stack], condition) is None

    def _name_given_by(self, value: Any) -> str | None:
        """What a reference to a bucket gives where the template names the bucket: its name, or the ARN made of it."""
        bucket = self.base.find(value.stack, value.logical_id) if isinstance(value, Reference) else None
        if bucket is None or bucket.type != "AWS::S3::Bucket":
            return None
        name = resolve(self.base, bucket.stack, bucket.properties.get("BucketName"))
        prefix = {"": "", "Arn": resolve(self.base, bucket.stack, {"Fn::Sub": "arn:${AWS::Partition}:s3:::"})}
        start = prefix.get(value.attribute)
        return f"{start}{name}" if isinstance(name, str) and start is not None else None

    def _judge_export(self, name: str, stack: str, value: Any, what: str, *, is_used: bool = True) -> None:
        """Say of an export that it changes: refused where it is used, unknown where only others may use it."""
        reference = resolve(self.base, stack, value)
        shape = updates.SHAPES["export"]
        effect = Effect.REFUSED if is_used else Effect.UNKNOWN
        judged = Judged(effect, f"the export {what}; {shape.sentence}", shape.source)
        was = self.excerpts.text(reference)
        finding = _Finding((f"{EXPORT_PREFIX}{name}",), was, None, judged, is_indirect=True, of="export")
        key = (reference.stack, reference.logical_id) if isinstance(reference, Reference) else (stack, name)
        entry = self.entries.get(key)
        if entry is None:
            before = self.base.find(*key) or Resource(stack=stack, logical_id=name, type=EXPORT, body={})
            entry = self.entries[key] = _Entry(before, self.head.find(*key) or before)
        entry.findings.append(finding)

    def _check_kept(self, entry: _Entry) -> None:
        """A replaced resource whose old one stays; a policy that changes along with it does not count."""
        before, after = entry.before, entry.after
        if before is None or after is None or not entry.is_update or entry.effect is not Effect.REPLACED:
            return
        if before.is_kept_on_replacement and after.is_kept_on_replacement:
            entry.kept = "the old one stays in the account: its UpdateReplacePolicy is Retain"

    def _check_protection(self, entry: _Entry) -> None:
        """A resource that is to be deleted and that its service does not delete."""
        before = entry.before
        protection = updates.PROTECTIONS.get(before.type) if before is not None else None
        if before is None or protection is None or entry.effect not in (Effect.DELETED, Effect.REPLACED):
            return
        if resolve(self.base, before.stack, before.properties.get(protection.name)) not in (
            protection.value,
            str(protection.value).lower(),
        ):
            return
        reason = "the service does not delete it while this is on; switch it off in a deployment of its own before"
        judged = Judged(Effect.REFUSED, reason, protection.source)
        value = str(protection.value).lower() if protection.value is True else protection.value
        entry.findings.append(_Finding((protection.name,), value, None, judged))
        entry.kept = entry.kept or f"the service refuses to delete it: its {protection.name} is {value}"

    # words

    def _told(self, entry: _Entry) -> ResourceEffect:
        resource, effect = entry.resource, entry.effect
        findings = sorted(entry.findings, key=lambda each: rank(each.judged.effect))
        return ResourceEffect(
            stack=resource.stack,
            logical_id=resource.logical_id,
            type=resource.type,
            name=resource.name,
            effect=effect,
            stateful=is_stateful(resource),
            summary=_sentence("; ".join(self._clauses(entry, findings))),
            properties=tuple(
                PropertyEffect(
                    path=each.path,
                    of=each.of,
                    before=each.before,
                    after=each.after,
                    effect=each.judged.effect,
                    reason=_sentence(each.judged.reason),
                    source=each.judged.source,
                    is_indirect=each.is_indirect,
                    interrupts=each.judged.interrupts,
                )
                for each in findings
            ),
        )

    def _clauses(self, entry: _Entry, findings: Sequence[_Finding]) -> Iterator[str]:
        if entry.why:
            yield entry.why
        shown = [each for each in findings if each.judged.effect is not Effect.IN_PLACE] or list(findings)
        said: set[str] = set()
        for each in shown[:IN_SUMMARY]:
            clause = _clause(
                each, holds_nodes=updates.kind_of(entry.resource.type) == "nodes", is_made=entry.before is None
            )
            yield f"{clause}, too" if each.judged.reason in said else f"{clause}: {each.judged.reason}"
            said.add(each.judged.reason)
        more = len(findings) - len(shown[:IN_SUMMARY])
        if more:
            yield f"and {more} more {'property changes' if more == 1 else 'properties change'}"
        note = updates.ON_REPLACEMENT.get(entry.resource.type)
        if entry.effect is Effect.REPLACED and note is not None:
            yield note.sentence
        if entry.effect is Effect.REPLACED and _has_snapshot(entry):
            yield "a snapshot of the old one is kept: its UpdateReplacePolicy is Snapshot"
        elif entry.effect is Effect.REPLACED and not entry.kept:
            yield from _lost(entry.resource.type, "the old one is deleted")
        if entry.kept and entry.kept != entry.why:
            yield entry.kept
        harmless = updates.MADE_ANEW.get(entry.resource.type)
        if entry.effect in (Effect.REPLACED, Effect.DELETED) and harmless is not None:
            yield harmless.sentence


def _spare_the_new_one(entry: _Entry) -> None:
    """Take back what updates would do to a resource that is made anew: nobody updates it."""
    if entry.effect is not Effect.REPLACED:
        return
    grave = (Effect.REFUSED, Effect.INTERRUPTED, Effect.UNKNOWN)
    entry.findings = [
        replace(each, judged=Judged(Effect.IN_PLACE, _WITH_THE_NEW_ONE, None))
        if each.judged.is_of_update and each.judged.effect in grave
        else each
        for each in entry.findings
    ]


def _has_snapshot(entry: _Entry) -> bool:
    sides = [each.body.get("UpdateReplacePolicy") for each in (entry.before, entry.after) if each is not None]
    return all(each == "Snapshot" for each in sides)


def _lost(resource_type: str, what: str) -> Iterator[str]:
    """Say what goes with a resource of a type that holds something."""
    holds = updates.STATEFUL.get(resource_type)
    if holds is not None:
        yield f"{what}: {holds.deleted or f'with it goes what it holds, {holds.holds}'}"


def _clause(finding: _Finding, *, holds_nodes: bool, is_made: bool) -> str:
    path = finding.path
    if finding.subject:
        path = path.partition("]")[2].removeprefix(".")
    subject = f"{finding.subject}: " if finding.subject and path else finding.subject
    before, after = differing(finding.before, finding.after, IN_SENTENCE)
    if finding.is_indirect:
        change = ""
    elif before is not None and after is not None:
        change = f" {before} -> {after}" if before != after else f" {after}"
    elif finding.subject and not path:
        change = f" ({after or before})" if after or before else ""
    elif is_made:
        change = f" {after}" if after else ""
    elif after is None:
        change = f" {before} -> none" if before else ""
    else:
        change = f" none -> {after}" if after else ""
    word = _WORDS[finding.judged.effect]
    if finding.judged.effect is Effect.INTERRUPTED and not holds_nodes:
        word = "interrupts it"
    return f"{subject}{path}{change} {word}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _gives_other_values(entry: _Entry) -> Giving | None:
    """Which of the values that a resource gives are others afterwards: all, perhaps some, those it updates, or none."""
    if not entry.is_update:
        return None
    if entry.effect is Effect.REPLACED:
        return "all"
    resource_type = entry.resource.type
    rule = create_only.update_rule(resource_type)
    if rule is None and not updates.is_told(resource_type):
        return "perhaps"
    if resource_type == _NESTED or any(each.judged.may_replace for each in entry.findings):
        return "perhaps"
    return "updated"


def _is_updated(entry: _Entry, attribute: str) -> bool:
    """Whether an update in place changes what an attribute gives."""
    return bool(attribute) and any(
        updates.gives_another(entry.resource.type, attribute, tuple(step for step in each.steps if step[0] != "["))
        for each in entry.findings
    )


def _is_there(assembly: Assembly, resource: Resource) -> bool | None:
    """Whether a resource's condition holds, None where the template does not tell."""
    condition = resource.body.get("Condition")
    if not isinstance(condition, str):
        return True
    holds = resolve(assembly, resource.stack, {"Fn::If": [condition, True, False]})
    return holds if isinstance(holds, bool) else None


def is_stateful(resource: Resource) -> bool:
    """Whether a resource holds something that can be lost; one of a type that nobody judged may."""
    if resource.type in updates.STATEFUL or updates.is_foreign(resource.type):
        return True
    return resource.type.startswith("AWS::") and updates.kind_of(resource.type) != "nothing"


def _policy(resource: Resource) -> str:
    return str(resource.body.get("DeletionPolicy"))


def _left_behind(entry: _Entry) -> LeftBehind:
    resource = entry.before or entry.resource
    return LeftBehind(
        stack=resource.stack,
        logical_id=resource.logical_id,
        type=resource.type,
        name=resource.name,
        why=_sentence(entry.kept),
        costs_money=updates.costs_money(resource.type),
    )


def _read_outside(value: Any, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give where in resolved properties which parameter or secret is read without a version of its own."""
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


def _owner(value: Any, stack: str) -> str:
    """Give whose a value is that refers to something: a name made of what one stack holds is no other stack's."""
    if isinstance(value, Reference):
        return f"{value.stack}/"
    return f"{stack}/" if "${" in plain(value) else ""


def _scope(resource_type: str, stack: Stack) -> tuple[str, ...]:
    """Give within what a name is taken once: a bucket's everywhere, one of IAM in the account, others in the region."""
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
