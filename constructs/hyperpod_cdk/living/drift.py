"""Compares what the last deployment wrote, what the files say and what AWS has, and says what the next one does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config.source import render_path
from hyperpod_cdk.living import groups
from hyperpod_cdk.living.facts import UNKNOWN, Facts, aligned, facts
from hyperpod_cdk.living.kinds import KINDS, is_left_out
from hyperpod_cdk.living.look import Ids, Kind, Look, Stated, reading
from hyperpod_cdk.living.model import Difference, Drift, Line, Next, Unread, outcome
from hyperpod_cdk.living.stacks import PROTECTION, STACK, of_stacks, still_notified, with_triggers
from hyperpod_cdk.living.standing import Living
from hyperpod_cdk.review.changes.causes import line_of_property
from hyperpod_cdk.review.changes.circumstances import circumstances_of
from hyperpod_cdk.review.changes.effects import Judged, judge
from hyperpod_cdk.review.deployed import SETTLED, Api
from hyperpod_cdk.review.model import Effect
from hyperpod_cdk.review.nouns import count, noun
from hyperpod_cdk.review.pages.wording import shortened
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import MISSING, PropertyChange, ResourceChange, compare
from hyperpod_cdk.templates.values import resolve

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment

NOT_IN_CHANGE: Final = "Nothing: CloudFormation compares templates, and this resource is not in the change."
"""facts: CloudFormation user guide, "Update behaviors of stack resources": only what differs between templates."""

_NESTED: Final = "AWS::CloudFormation::Stack"
_LONGEST_VALUE: Final = 60
_STEPS: Final = re.compile(r"([^.\[]+)|(\[[^\]]*\])")


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One place of one resource, three ways; ``deployed``, ``file`` and ``actual`` are None if there is no value."""

    living: Living
    kind: Kind
    resource: Resource
    where: str
    deployed: str | None
    file: str | None
    actual: str | None
    change: ResourceChange | None
    absent: str = ""
    """What the file leaves out: the place itself or what it is part of; empty if the file leaves out neither."""

    @property
    def is_left(self) -> bool:
        """Whether only AWS has it and no update removes it: CloudFormation removes only tags that it added."""
        top = _top(self.where)
        if self.change is not None and not self.kind.is_left_surely and top != "Tags":
            return False
        return self.deployed is None and self.file is None and (top == "Tags" or top not in self.kind.properties)

    @property
    def is_left_or_not(self) -> bool:
        """Whether only AWS has it, and it is unknown whether an update that leaves it out removes it."""
        if self.deployed is None and self.file is None and self.kind.unsure.fullmatch(self.where) is not None:
            return True
        # more is known about items of lists, such as groups, than the table of properties states
        is_part = bool(self.absent) and not self.absent.endswith("]") and _top(self.where) in self.kind.properties
        return is_part and self.actual is not None and self._without.effect is Effect.UNKNOWN

    @cached_property
    def _without(self) -> Judged:
        """What an update that leaves out what the file leaves out does to what AWS has here."""
        steps = [one or other for one, other in _STEPS.findall(self.where)]
        of_absent = len(_STEPS.findall(self.absent))
        value: Any = self.actual
        for step in reversed(steps[of_absent:]):
            value = {step: value}
        change = PropertyChange(steps=tuple(steps[:of_absent]), before=value, after=MISSING)
        return self.judged(change)

    def judged(self, change: PropertyChange) -> Judged:
        """Return what a change here does, in the circumstances that the templates show."""
        base, head, of = self.living.deployed, self.living.head, self.resource
        before = base.find(of.stack, of.logical_id) or of
        after = head.find(of.stack, of.logical_id) or of
        return judge(base, head, of.type, change, circumstances_of(base, before, head, after))

    @property
    def member(self) -> str:
        """The resource of its own that the template has here, such as a group's rule or a route; empty if none."""
        return self.kind.members.get(_top(self.where), "")

    @property
    def is_sent(self) -> bool:
        """Whether the next deployment sends this place to the service."""
        if self.change is None:
            return False
        if self.kind.differing.fullmatch(self.where):
            return self.file != self.deployed
        if self.kind.is_sent_whole or self.file != self.deployed:
            return True
        # services take a property of the first level as a whole
        return _top(self.where) in {change.steps[0] for change in self.change.properties if change.steps}


def drift(aws: Api, living: Living, *, without: Collection[str] = ()) -> Drift:
    """Return every difference between the last deployment and what AWS has, with what the next one does about it.

    ``without`` are types that are not compared, in addition to those that have no comparison.
    """
    kinds = KINDS.keys() - {*without}
    changes = {(each.resource.stack, each.resource.logical_id): each for each in compare(living.deployed, living.head)}
    resources = list(living.deployed.resources())
    compared = [each for each in resources if each.type in kinds]
    settled = [each for each in compared if living.statuses.get(each.stack) in SETTLED]
    answers = together(lambda each: actual_of(aws, living, each), settled)
    differences: list[Difference] = []
    skipped = [
        Unread(what=stack, reason=f"it is {living.statuses.get(stack)}: its resources may differ from its template")
        for stack in (each.name for each in living.deployed.stacks)
        if living.statuses.get(stack) not in SETTLED
    ]
    skipped += [
        Unread(what=stack, reason=f"it is {living.statuses[stack]}, and CloudFormation shows no template of it")
        for stack in sorted(living.without_template)
    ]
    skipped += [
        Unread(what=_called(each), reason="the resources of a nested stack are not compared")
        for each in resources
        if each.type == _NESTED
    ]
    counted: Counter[str] = Counter()
    for resource, answer in zip(settled, answers, strict=True):
        if isinstance(answer, NotAnswered):
            skipped.append(_unread(_called(resource), answer))
            continue
        change = changes.get((resource.stack, resource.logical_id))
        try:
            found, gaps = _compared(living, resource, answer, change)
        except NotAnswered as missing:
            skipped.append(_unread(_called(resource), missing))
            continue
        counted[resource.type] += 1
        differences += found
        skipped += gaps
    of_themselves, gaps = of_stacks(aws, living)
    dated, undated = groups.dated(aws, differences)
    differences = [*dated, *of_themselves]
    skipped += [*gaps, *undated]
    differences.sort(key=lambda each: (not each.next.nodes_lost, each.type != groups.CLUSTER))
    left_out = Counter(each.type for each in resources if is_left_out(each.type, kinds))
    return Drift(
        environment=living.head.environment or living.deployed.environment,
        verdict=_verdict(differences, skipped, living, is_partial=bool(left_out)),
        # without the cluster, nothing that drift is about was compared
        passed=outcome(tuple(differences), tuple(skipped)) if differences or counted[groups.CLUSTER] else None,
        differences=tuple(differences),
        skipped=tuple(skipped),
        compared=dict(sorted(counted.items())),
        not_compared=dict(sorted(left_out.items())),
        notes=(
            *living.notes,
            *still_notified(living.deployed, living.head),
            *with_triggers(living.watched, {each.name for each in living.head.stacks}),
        ),
    )


def with_lines(found: Drift, living: Living, environment: LoadedEnvironment | None) -> Drift:
    """Return each difference with the line of the environment file that decides it, if one is known."""
    if environment is None:
        return found
    resources = {(each.stack, each.name): each for each in living.deployed.resources()}

    def line(each: Difference) -> Line | None:
        if each.type == STACK:
            return _line_of_stack(each.path, environment)
        resource = resources[each.stack, each.resource]
        # the deployed stacks do not show which construct created a resource
        same = living.head.find(resource.stack, resource.logical_id) or resource
        cause = line_of_property(same, each.path, environment)
        return None if cause is None or cause.line is None else Line(file=cause.file, line=cause.line, path=cause.path)

    differences = tuple(each.model_copy(update={"line": line(each)}) for each in found.differences)
    return found.model_copy(update={"differences": differences})


def _line_of_stack(path: str, environment: LoadedEnvironment) -> Line | None:
    """Return the line that decides a setting of every stack: the file has fields of two of them."""
    tag = re.fullmatch(r"Tags\[(.+)\]", path)
    steps = ("deletion_protection",) if path == PROTECTION else ("tags", tag[1]) if tag else ()
    place = render_path(steps)
    line = environment.line_of(place) if steps else None
    return None if line is None else Line(file=environment.file, line=line, path=place)


def actual_of(aws: Api, living: Living, resource: Resource) -> Mapping[str, Any] | None:
    physical = living.ids.get((resource.stack, resource.logical_id))
    if physical is None:
        raise NotAnswered("CloudFormation names no ID of it")
    with reading(f"what the template says of {resource.name}"):
        stated = stated_of(living.deployed, resource, physical=physical, ids=living.ids)
    look = Look(aws=aws, deployed=living.deployed, resource=resource, stated=stated, id=physical)
    with reading(noun(resource.type)):
        return KINDS[resource.type].read(look)


def stated_of(assembly: Assembly, resource: Resource, *, physical: str, ids: Ids) -> dict[str, Any]:
    """Return what a template says of a resource, as far as it is compared."""
    kind = KINDS[resource.type]
    properties = {name: each for name, each in resource.properties.items() if name in kind.properties}
    resolved = resolve(assembly, resource.stack, properties)
    found = resolved if isinstance(resolved, dict) else {}
    return dict(kind.state(Stated(assembly=assembly, resource=resource, properties=found, id=physical, ids=ids)))


def _compared(
    living: Living, resource: Resource, actual: Mapping[str, Any] | None, change: ResourceChange | None
) -> tuple[list[Difference], list[Unread]]:
    kind = KINDS[resource.type]
    after = living.head.find(resource.stack, resource.logical_id)
    if actual is None:
        gone = _Place(
            living=living,
            kind=kind,
            resource=resource,
            where="",
            deployed="there",
            file=None if after is None else "there",
            actual=None,
            change=change,
        )
        return [_difference(gone)], []
    physical = living.ids[resource.stack, resource.logical_id]
    stated = stated_of(living.deployed, resource, physical=physical, ids=living.ids)
    old = facts(stated)
    new = {} if after is None else facts(stated_of(living.head, after, physical=physical, ids=living.ids))
    now = facts(aligned(stated, actual))
    found: list[Difference] = []
    unshown: list[str] = []
    for place in _places(old, now, kind, living, resource):
        if old.get(place) == UNKNOWN:
            unshown.append(place)
            continue
        file = new.get(place)
        found.append(
            _difference(
                _Place(
                    living=living,
                    kind=kind,
                    resource=resource,
                    where=place,
                    deployed=old.get(place),
                    # a value that is known only at deployment stays the same if its template stays the same
                    file=old.get(place) if file == UNKNOWN else file,
                    actual=now.get(place),
                    change=change,
                    absent="" if after is None else _absent(place, new),
                )
            )
        )
    gaps = []
    if unshown:
        reason = f"the template says {joined(unshown)} by a reference whose value CloudFormation does not show"
        gaps.append(Unread(what=_called(resource), reason=reason))
    return found, gaps


def _absent(place: str, of: Facts) -> str:
    """Return the shortest part of a place that has no value, empty if the place has one."""
    part = ""
    for found in _STEPS.finditer(place):
        part = place[: found.end()]
        if not any(each == part or each.startswith((f"{part}.", f"{part}[")) for each in of):
            return part
    return ""


def _places(old: Facts, now: Facts, kind: Kind, living: Living, resource: Resource) -> Iterator[str]:
    """Yield the places that differ; for an item that is missing on one side only the item."""
    stack_tags = living.deployed.by_name[resource.stack].tags
    whole: list[str] = []
    for place in sorted({*old, *now}, key=lambda each: (len(_STEPS.findall(each)), each)):
        if any(place.startswith(f"{each}.") for each in whole):
            continue
        before, after = old.get(place), now.get(place)
        if before == after or (before in _NOTHING and after is None):
            continue
        if before is None:
            by_hand = kind.made_by_hand is not None and kind.made_by_hand.fullmatch(place)
            if place.endswith("]") and after == "there":
                whole.append(place)
            if not by_hand or after in _OFF or _is_of_stack(place, after, stack_tags):
                continue
        elif after is None and before == "there":
            whole.append(place)
        yield place


_NOTHING: Final = ("false", "{}", "0", "Disable")
"""What a template may state and AWS leaves out: both mean that it is not there."""

_OFF: Final = ("false", "0", "Disable")
"""What AWS may show of a setting that no template states: that it is off."""


def _is_of_stack(place: str, value: object, tags: Mapping[str, str]) -> bool:
    """Whether a tag is one that CloudFormation gives to all resources of its stack."""
    return any(place == f"Tags[{key}]" and value == tag for key, tag in tags.items())


def _difference(place: _Place) -> Difference:
    resource = place.resource
    return Difference(
        stack=resource.stack,
        resource=resource.name,
        type=resource.type,
        id=place.living.ids.get((resource.stack, resource.logical_id), ""),
        path=place.where,
        deployed=place.deployed,
        file=place.file,
        actual=place.actual,
        next=_next(place),
    )


def _next(place: _Place) -> Next:
    """Say what the next deployment does about one place."""
    if not place.where:
        return _next_of_gone(place)
    if place.is_left and not (place.is_left_or_not and place.change is not None):
        return Next(effect="nothing", sentence=place.kind.left)
    if place.member and (place.file != place.deployed or place.kind.are_members_apart):
        return _next_of_member(place)
    if place.is_sent and not place.is_left_or_not:
        return _sent(place, place.file)
    is_tag = _top(place.where) == "Tags"
    if place.change is not None:
        again = (
            f"Unknown: the resource is in the change and this {'tag' if is_tag else 'property'} is not; whether"
            " CloudFormation sends it again is not documented."
        )
        return Next(
            effect="unknown",
            sentence=_left_or_not(place) if place.is_left_or_not else again,
            nodes_lost=None if place.resource.type == groups.CLUSTER and not is_tag else 0,
        )
    is_later = place.kind.is_sent_whole and not place.kind.differing.fullmatch(place.where)
    later = (_left_or_not(place) if place.is_left_or_not else _sent(place, place.file).sentence) if is_later else ""
    return Next(
        effect="nothing",
        sentence=NOT_IN_CHANGE,
        later=f"The next change of any part of this {noun(place.resource.type)}: {later}" if later else "",
    )


def _left_or_not(place: _Place) -> str:
    who = "no template has it" if place.deployed is None else "the file omits it"
    return f"Unknown: {who}, and whether an update that omits it removes it is not documented."


def _next_of_member(place: _Place) -> Next:
    """Say what the next deployment does to something that is a resource of its own in the template."""
    if place.file == place.deployed:
        return Next(effect="nothing", sentence=NOT_IN_CHANGE)
    if place.file is None:
        if place.actual is None:
            return Next(effect="agrees", sentence="The file no longer has it: there is nothing to delete.")
        return Next(effect="deletes", sentence=f"Deletes {place.member} with its current settings.")
    if place.deployed is None:
        return Next(
            effect="fails",
            sentence=(
                f"Fails: CloudFormation creates {place.member} of the file, and AWS already has one. First delete what"
                " was created by hand."
            ),
        )
    if place.actual is None:
        return Next(effect="fails", sentence=_UPDATES_NOTHING)
    return Next(effect="sets", sentence=f"Sets {place.where} from {_shown(place.actual)} to {_shown(place.file)}.")


_UPDATES_NOTHING: Final = (
    "Fails: CloudFormation updates a resource that does not exist, and the rollback can fail for the same reason."
    " Remove it from the file, deploy, and add it again."
)
"""CloudFormation user guide, "Troubleshooting CloudFormation", update rollback failed: it assumes that what was deleted
outside of it still exists."""


def _next_of_gone(place: _Place) -> Next:
    if place.file is None:
        return Next(effect="agrees", sentence="The file no longer has it: there is nothing to delete.")
    if place.change is None:
        return Next(effect="nothing", sentence=f"{NOT_IN_CHANGE} It is not created again.")
    if place.kind.is_made_again:
        return Next(effect="makes", sentence=f"Creates it again: {place.kind.resent}.")
    return Next(effect="fails", sentence=_UPDATES_NOTHING)


def _sent(place: _Place, wanted: str | None) -> Next:
    """Say what happens if the deployment sends the service what the file says."""
    if wanted == place.actual:
        return _agrees(place)
    if place.kind.resent:
        return _resent(place, wanted)
    special = groups.sent(place.resource.type, place.where, place.actual, wanted)
    if special is not None:
        return special
    change = PropertyChange(
        steps=tuple(one or other for one, other in _STEPS.findall(place.where)), before=place.actual, after=wanted
    )
    judged = place.judged(change)
    shown = f"Sets {place.where} from {_shown(place.actual)} to {_shown(wanted)}"
    if judged.effect is Effect.REFUSED:
        return Next(effect="fails", sentence=f"Fails, because the service refuses it: {judged.reason}.")
    if judged.effect in (Effect.REPLACED, Effect.UNKNOWN) and wanted == place.deployed:
        return Next(effect="unknown", sentence=f"Unknown: {shown.lower()} again, or fails: {judged.reason}.")
    reason = f": {judged.reason}" if judged.effect in (Effect.INTERRUPTED, Effect.UNKNOWN) else ""
    return Next(effect="sets", sentence=f"{shown}{reason}.")


def _agrees(place: _Place) -> Next:
    if place.kind.same is not None and place.file != place.deployed:
        pattern, why = place.kind.same
        if pattern.fullmatch(place.where):
            return Next(effect="unknown", sentence=f"Unknown: the file says what AWS has, and {why}.")
    return Next(effect="agrees", sentence="The file says what AWS has: nothing changes.")


def _resent(place: _Place, wanted: str | None) -> Next:
    if wanted == "there":
        return Next(effect="makes", sentence=f"Creates {place.where} again: {place.kind.resent}.")
    shown = f"Sets {place.where} from {_shown(place.actual)} to {_shown(wanted)}"
    return Next(effect="sets", sentence=f"{shown}: {place.kind.resent}.")


def _top(place: str) -> str:
    return re.split(r"[.\[]", place, maxsplit=1)[0]


def _shown(value: str | None) -> str:
    return "nothing" if value is None else shortened(value, _LONGEST_VALUE)


def _called(resource: Resource) -> str:
    return f"{resource.stack} / {resource.name} ({noun(resource.type)})"


def _unread(what: str, missing: NotAnswered) -> Unread:
    return Unread(what=what, reason=missing.reason, action=missing.action, aws_said=missing.said)


def _verdict(differences: Sequence[Difference], skipped: Sequence[Unread], living: Living, *, is_partial: bool) -> str:
    if not living.deployed.stacks:
        where = " ".join(each for each in (living.head.account, living.head.region) if each)
        return f"No stack is deployed{f' in {where}' if where else ''}, so there is nothing to compare."
    end = f"; {count(len(skipped), 'thing')} could not be checked" if skipped else ""
    if not differences:
        if not skipped and not any(each.type == groups.CLUSTER for each in living.deployed.resources()):
            rest = "everything else that is compared" if is_partial else "everything else"
            return f"No HyperPod cluster is deployed; AWS matches the last deployment for {rest}."
        matches = f"AWS matches the last deployment{' in everything that is compared' if is_partial else ''}"
        return f"{'No difference in what was read' if skipped else matches}{end}."
    lost = sum(each.next.nodes_lost or 0 for each in differences)
    is_unknown = any(each.next.nodes_lost is None for each in differences)
    begin = f"{count(len(differences), 'difference')}"
    if lost:
        begin += f"; the next deployment removes {'at least ' if is_unknown else ''}{count(lost, 'node')}"
    elif is_unknown:
        begin += "; it is unknown whether the next deployment removes nodes"
    return f"{begin}{end}."
