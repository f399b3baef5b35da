"""Who may do more or less through statements of policies, and through assigned policies, groups and roles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.rights import grave, words
from hyperpod_cdk.review.rights.atoms import differing, grouped
from hyperpod_cdk.review.rights.cluster_access import is_anybody
from hyperpod_cdk.review.rights.power import Power, acting
from hyperpod_cdk.review.rights.statements import Block, Heading, Permissions, Term, is_covered_by, is_wildcard
from hyperpod_cdk.review.rights.telling import Direction, Found, Names, both, grant, phrase
from hyperpod_cdk.review.rights.views import TOKEN, Place, place_of
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.difference import ResourceChange

_WITH_POLICIES: Final = ("AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group")
"""Identities that contain policies; without the identity, none of them matters."""
_ASSUMES: Final = ("sts:assumerole", "sts:assumerolewithwebidentity", "sts:assumerolewithsaml")


class StatementChanges:
    """What statements newly permit and no longer permit, and what it means for resources that run with them."""

    def __init__(self, names: Names, power: Power) -> None:
        self.power = power
        self._names = names
        self._decided: Mapping[str, frozenset[str]] = {}
        self._working: frozenset[Principal] = frozenset()
        self._tagging: tuple[list[tuple[Heading, Block]], ...] = ()

    def permissions(self, old: Permissions, new: Permissions) -> Iterator[Found]:
        spelling = old.spelling | new.spelling
        self._working = frozenset(
            role
            for who, roles in acting(self._names.before, old).items()
            if self._names.is_on_both(who)
            for role in roles
        )
        self._decided = grave.decided_by_tags(old, new)
        attached = old.attached | new.attached
        told_by_name = {("holders", each) for each in attached}
        self._tagging = tuple(
            [
                (heading, block)
                for heading, block in grave.tagging(side, self._decided)
                if heading.who not in told_by_name
            ]
            for side in (old, new)
        )
        for heading in dict.fromkeys((*new.blocks, *old.blocks)):
            if heading.who[0] == "holders" and heading.who[1] in attached:
                # principals that have it on either side are named
                continue
            was, will = old.blocks.get(heading, {}), new.blocks.get(heading, {})
            # an endpoint that is added or removed is reported as reach: its policy gives no permission
            if was.keys() == will.keys() or (heading.through and not self._names.is_on_both(heading.through)):
                continue
            removed, added = differing(was, will)
            for change, (atoms, others) in both((added, old.blocks), (removed, new.blocks)):
                bare = heading._replace(condition="")
                wider = [*others.get(heading, ()), *(others.get(bare, ()) if heading.condition else ())]
                for block, place in grouped(atoms):
                    is_covered = is_covered_by(block, wider)
                    yield self._statement(
                        change,
                        heading,
                        block,
                        place,
                        spelling,
                        is_covered=is_covered,
                        until_now=self._until_now(change, heading, block, old) if not is_covered else "",
                    )

    def boundaries(self, old: Permissions, new: Permissions) -> Iterator[Found]:
        for token in dict.fromkeys((*new.boundaries, *old.boundaries)):
            was, will = old.boundaries.get(token), new.boundaries.get(token)
            if (was and was[0]) == (will and will[0]) or (will is None and token not in self._names.new):
                continue
            who = self._names.who(("resource", token))
            names = [self._names.policy_name(each[0]) for each in (was, will) if each]
            place = (will or was or ("", ("", "")))[1]
            if was is None:
                sentence = f"{self._names.as_subject(who, token)} is limited by permissions boundary {names[0]}"
            elif will is None:
                sentence = f"{who} is no longer limited by permissions boundary {names[0]}: all its policies now count"
            else:
                sentence = f"{who} is limited by permissions boundary {names[1]} instead of {names[0]}"
            yield grant(
                change="removed" if will is None else "added",
                kind="permission",
                sentence=sentence,
                who=who,
                what=(f"permissions boundary {names[-1]}",),
                which=(),
                properties=("PermissionsBoundary",),
                effect="Deny",
                place=place,
                width=6 if will is None else 1,
                is_grave=was is not None,
            )

    def unread(self, old: Permissions, new: Permissions, changes: Sequence[ResourceChange]) -> Iterator[Found]:
        """Find changes of policies that cannot be read: what they permit, or permitted or denied, is unknown."""
        for change in changes:
            was, will = (
                (side.unread.get(place_of(resource), ()) if resource is not None else ())
                for side, resource in ((old, change.before), (new, change.after))
            )
            for direction, (some, others) in both((will, was), (was, will)):
                view, resource = (
                    (self._names.after, change.after) if direction == "added" else (self._names.before, change.before)
                )
                for each in dict.fromkeys(some):
                    if resource is None or each in others:
                        continue
                    who = view.name(resource)
                    # an unknown statement may have been a Deny
                    what = phrase(direction, "what this permits", "what this permitted or denied until now")
                    yield grant(
                        change=direction,
                        kind="permission",
                        sentence=f"{who}: {what} is unknown: {each}",
                        who=who,
                        what=(each,),
                        which=(),
                        place=place_of(resource),
                        width=6,
                        is_grave=direction == "added" or self._is_of_what_stays(resource),
                    )

    def _is_of_what_stays(self, resource: Resource) -> bool:
        """Whether a policy is of something that exists afterwards, or of something that is in no template."""
        view = self._names.before
        if resource.type in _WITH_POLICIES:
            return view.token(resource) in self._names.new
        named = {f"${{{found[1]}/{found[2]}}}" for found in TOKEN.finditer(json.dumps(view.properties(resource)))}
        return not named or not named.isdisjoint(self._names.new)

    def _statement(
        self,
        change: Direction,
        heading: Heading,
        block: Block,
        place: Place,
        spelling: Mapping[str, str],
        *,
        is_covered: bool,
        until_now: str,
    ) -> Found:
        who = self._names.who(heading.who)
        subject = self._names.as_subject(who, heading.who[1] if heading.who[0] == "resource" else "")
        if heading.effect == "Deny" and heading.who == ("AWS", "*"):
            subject = who = "everyone"
        condition = words.conditions(self._names.before, json.loads(heading.condition)) if heading.condition else None
        actions = _spelled(block.actions, spelling)
        resources = [*_names(block.resources)]
        if heading.kind == "cluster access":
            what = ["every verb (*)" if each == "*" else each for each in actions]
            which = ["every kind (*)" if each == "*" else each for each in resources]
        else:
            what = [words.action(each) for each in actions]
            which = [words.resource(self._names.before, each) for each in resources]
        special = next(iter(block.actions))[0]
        if special == "policy":
            which = []
            what = sorted(self._names.policy_name(each) for each in actions)
            sentence = f"{subject} {phrase(change, 'has', 'no longer has')} {words.listed(what, 'policies')}"
        elif special == "member":
            which = []
            what = [self._names.group_name(each) for each in actions]
            sentence = f"{subject} {phrase(change, 'is', 'is no longer')} in {words.listed(what, 'groups')}"
        elif special == "role":
            which = [heading.through]
            verb = phrase(change, "has", "no longer has")
            sentence = f"{subject} {verb} {words.listed(what, 'roles')} in {heading.through}"
        elif heading.kind == "trust":
            sentence = self._trust(change, heading, who, actions, resources)
            which = [self._names.who(("resource", each)) for each in resources]
        else:
            sentence = self._permission(change, heading, block, subject, what=what, which=which)
        if condition:
            sentence = f"{sentence}, if {condition}"
        if until_now:
            sentence = f"{sentence}; until now limited by {until_now}"
        elif (
            change == "added" and heading.kind != "trust" and not is_covered and self._is_for_strangers(heading, block)
        ):
            sentence = f"{sentence}, for anyone who calls the service: no aws:SourceArn or aws:SourceAccount limits it"
        is_grave = not is_covered and self._is_grave(change, heading, block, until_now)
        by_tags = "" if is_covered or is_grave else self._by_tags(change, heading, block)
        sentence = f"{sentence}{by_tags}"
        if is_covered:
            does = ("allowed", "allows") if heading.effect == "Allow" else ("denied", "denies")
            sentence = (
                f"{sentence}; a wider statement {phrase(change, f'{does[0]} that already', f'still {does[1]} that')}"
            )
        return grant(
            change=change,
            kind=heading.kind,
            sentence=sentence,
            who=who,
            what=_everything_but(block.actions, what),
            which=_everything_but(block.resources, which),
            condition=condition,
            effect=heading.effect,
            place=place,
            width=-1 if is_covered else self._width(heading, block),
            is_wide=is_wildcard(block),
            is_grave=is_grave or bool(by_tags),
            is_relied_on=not is_covered and self._is_relied_on(change, heading, block),
            is_covered=is_covered,
            is_of_service=heading.who[0] == "Service",
        )

    def _permission(
        self,
        change: Direction,
        heading: Heading,
        block: Block,
        subject: str,
        *,
        what: Sequence[str],
        which: Sequence[str],
    ) -> str:
        told = _everything_but(block.actions, what)
        clause = f"{subject} {_verb(change, heading, block)} {words.listed(told, 'actions')}"
        resources = words.listed(_everything_but(block.resources, which), "resources")
        if heading.kind == "cluster access":
            # "may get pods", but "may use every verb on pods"
            on = "on " if _is_of_every(block) or len(told) > words.LISTED else ""
            return f"{clause} {on}{resources} in {heading.through}"
        through = f"through {words.resource(self._names.before, heading.through)}, " if heading.through else ""
        return f"{through}{clause} on {resources}"

    def _trust(
        self, change: Direction, heading: Heading, who: str, actions: Sequence[str], resources: Sequence[str]
    ) -> str:
        role = words.listed(
            [self._names.as_subject(self._names.who(("resource", each)), each) for each in resources], "roles"
        )
        names = {each.lower() for each in actions}
        assumes = names & {*_ASSUMES} or names & {"*", "sts:*"}
        others = [words.action(each) for each in actions if each.lower() not in _ASSUMES]
        if heading.who[0] == "resource" and self._is_instance_profile(heading.who[1]):
            return f"instances with {who} {phrase(change, 'act', 'no longer act')} as {role}"
        if heading.effect == "Deny":
            verb = phrase(change, "is denied", "is no longer denied")
            return f"{who} {verb} {words.listed([words.action(each) for each in actions], 'actions')} on {role}"
        if not assumes:
            return f"{who} {phrase(change, 'may', 'may no longer')} {words.listed(others, 'actions')} on {role}"
        also = f", with {words.listed(others, 'actions')}" if others else ""
        return f"{who} {phrase(change, 'may', 'may no longer')} assume {role}{also}"

    def _is_instance_profile(self, token: str) -> bool:
        found = self._names.after.find(token) or self._names.before.find(token)
        return found is not None and found.type == "AWS::IAM::InstanceProfile"

    def _until_now(self, change: Direction, heading: Heading, block: Block, old: Permissions) -> str:
        """Return the condition that limited the same so far and is removed, in words."""
        if change == "removed" or heading.effect == "Deny" or heading.kind == "cluster access":
            return ""
        who = {heading.who}
        if heading.kind == "trust" and heading.who[0] == "Federated":
            # another provider authenticates other subjects: those of the old one no longer limit it
            who |= {each.who for each in old.blocks if each.kind == "trust" and each.who[0] == "Federated"}
        same = [(each._replace(who=heading.who), blocks) for each, blocks in old.blocks.items() if each.who in who]
        return grave.dropped_condition(heading, block, same)

    def _is_grave(self, change: Direction, heading: Heading, block: Block, until_now: str) -> bool:
        if heading.effect == "Deny":
            return change == "removed" and self._stays(heading, block)
        return change == "added" and (
            bool(until_now)
            or grave.is_grave(self._names.after, heading, block)
            or self._leads_to_power(heading, block)
            or self._is_for_strangers(heading, block)
        )

    def _is_for_strangers(self, heading: Heading, block: Block) -> bool:
        """Whether a service newly may do something for its callers.

        A new role's services are its purpose, and only a principal that may pass the role can give it to one; for an
        existing role, another service is another user of all its permissions.
        """
        if (
            heading.through
            or heading.effect == "Deny"
            or not grave.acts_for_strangers(self._names.after, heading, block)
        ):
            return False
        roles = [name for kind, names in block.resources if kind != "but" for name in names]
        return heading.kind == "resource policy" or (
            heading.kind == "trust" and any(map(self._names.is_on_both, roles))
        )

    def _leads_to_power(self, heading: Heading, block: Block) -> bool:
        """Whether it lets a principal act as an identity with high-risk statements."""
        if heading.kind == "permission":
            return self.power.leads(block)
        roles = [name for _, names in block.resources for name in names if self._names.is_on_both(name)]
        # the permissions of a new role are reported for the role
        return heading.kind == "trust" and self.power.trusts(roles)

    def _stays(self, heading: Heading, block: Block) -> bool:
        """Whether the target of a removed Deny still exists: its principal, and its resource."""
        names = [name for kind, names in block.resources if kind != "but" for name in names]
        if heading.kind == "permission":
            names = [heading.who[1]]
        found = [match for name in names if (match := TOKEN.match(name))]
        tokens = [f"${{{match[1]}/{match[2]}}}" for match in found]
        return not tokens or any(token in self._names.new and token in self._names.old for token in tokens)

    def _is_relied_on(self, change: Direction, heading: Heading, block: Block) -> bool:
        """Whether something that runs on both sides, or uses an endpoint, may do less afterwards."""
        if (change == "removed") is not (heading.effect == "Allow"):
            return False
        trusting = (("resource", name) for _, names in block.resources for name in names)
        is_of_trust = heading.kind == "trust" and heading.who[0] == "Service"
        return (
            bool(heading.through)
            or heading.who in self._working
            or (is_of_trust and any(each in self._working for each in trusting))
        )

    def _by_tags(self, change: Direction, heading: Heading, block: Block) -> str:
        """Return a clause if a principal newly may change tags that policies use, or the statement uses tags that
        others change.

        Empty if no principal may, or no policy uses them.
        """
        if change == "removed" or heading.kind == "cluster access" or heading.effect == "Deny":
            return ""
        if heading.kind == "permission":
            keys = grave.changes_deciding_tags(block, heading.condition, self._decided)
            if keys:
                return f": policies use {_tags(keys)} to decide who may do what"
        decided = grave.tags_of(heading, (block,))
        taggers = [self._taggers(side, decided) for side in self._tagging] if decided else []
        # principals that newly may change them are reported with their permission
        who = [each for each in taggers[-1] if all(each in some for some in taggers)] if taggers else []
        if not who:
            return ""
        keys = sorted({key for each in who for key in taggers[-1][each]})
        names = words.listed(sorted(self._names.who(each) for each in who), "identities")
        return f"; it depends on {_tags(keys)}, which {names} may change"

    def _taggers(
        self, side: Iterable[tuple[Heading, Block]], decided: Mapping[str, frozenset[str]]
    ) -> dict[Principal, set[str]]:
        """Return who may change these tags, except for principals that can get every permission anyway."""
        found: dict[Principal, set[str]] = {}
        for heading, block in side:
            keys = () if heading.who in self.power else grave.changes_deciding_tags(block, heading.condition, decided)
            if keys:
                found.setdefault(heading.who, set()).update(keys)
        return found

    def _width(self, heading: Heading, block: Block) -> int:
        actions = [(kind, each) for kind, names in block.actions for each in names or ("*",)]
        width = max(
            4 if kind == "but" or each == "*" else 2 if each.endswith(":*") else 1 if "*" in each else 0
            for kind, each in actions
        )
        if any(kind == "policy" and ("Administrator" in each or "FullAccess" in each) for kind, each in actions):
            width += 3
        width += 2 if any(kind == "but" or names == ("*",) for kind, names in block.resources) else 0
        if heading.who in (("AWS", "*"), ("Federated", "*"), ("Service", "*")) or heading.who[0] == "but":
            width += 4 if not heading.condition else 2
        elif is_anybody(heading.who):
            width += 4
        elif words.is_external(self._names.after, heading.who):
            width += 3
        return width


def _verb(change: Direction, heading: Heading, block: Block) -> str:
    if heading.effect == "Deny":
        return phrase(change, "is denied", "is no longer denied")
    # "every s3 action" is not something that one may do but something that one may use
    use = " use" if _is_of_every(block) else ""
    return f"{phrase(change, 'may', 'may no longer')}{use}"


def _is_of_every(block: Block) -> bool:
    return any(map(words.is_every, _names(block.actions)))


def _names(terms: Iterable[Term]) -> list[str]:
    return words.unique(name for _, names in terms for name in names)


def _tags(keys: Sequence[str]) -> str:
    return f"the {plural(len(keys), 'tag')} {words.listed(keys, 'tags')}"


def _spelled(terms: Iterable[Term], spelling: Mapping[str, str]) -> list[str]:
    return words.unique(spelling.get(name, name) for name in _names(terms))


def _everything_but(terms: Iterable[Term], names: Sequence[str]) -> tuple[str, ...]:
    if any(kind == "but" for kind, _ in terms):
        return (f"everything but {words.listed(names, 'more')}",) if names else ("everything",)
    return tuple(names)
