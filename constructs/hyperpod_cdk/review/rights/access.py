"""Who gains and who loses access, in plain words: IAM, trust, resource policies, Kubernetes, the network."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.review.model import Access, Change, Grant, Reach
from hyperpod_cdk.review.rights import addons, grave, kubernetes, words
from hyperpod_cdk.review.rights import reach as reaching
from hyperpod_cdk.review.rights.cluster_access import (
    ACTS_AS,
    ClusterAccess,
    Fact,
    Right,
    cluster_access,
    is_anybody,
    scope_name,
)
from hyperpod_cdk.review.rights.code import other_code
from hyperpod_cdk.review.rights.exposure import exposures
from hyperpod_cdk.review.rights.power import Power, acting, elsewhere, role_properties
from hyperpod_cdk.review.rights.reach import Network, Opening, Path, Rule
from hyperpod_cdk.review.rights.statements import (
    Block,
    Heading,
    Permissions,
    Term,
    is_covered_by,
    is_wildcard,
    permissions,
    text,
)
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, place_of, views
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import ResourceChange

_MOST_ATOMS: Final = 200_000
"""Above it the statements of one principal are compared as they are written: no policy that IAM takes comes near."""

_ADDON: Final = "AWS::EKS::Addon"
_SETTINGS: Final = "ConfigurationValues"
_BUCKET: Final = "AWS::S3::Bucket"
_PUBLIC_BLOCK: Final = "PublicAccessBlockConfiguration"
_BOTH_WAYS: Final = ("internet gateway", "VPC peering", "transit gateway", "VPN gateway", "core network")
_BY_ID: Final = {"rtb-": "route table ", "subnet-": "subnet "}
"""What an ID is of, by how it begins."""

_ASSUMES: Final = ("sts:assumerole", "sts:assumerolewithwebidentity", "sts:assumerolewithsaml")

Atom = tuple[Term, Term]
_Change = Literal["added", "removed"]
_T = TypeVar("_T")


def access(base: Assembly, head: Assembly, changes: Sequence[ResourceChange]) -> Access:
    """Compare what both sides permit, action by action and resource by resource.

    How statements are ordered, split, merged or spread over policies of one principal makes no difference. Additions
    to access come first, widest first: what is newly allowed, and what is no longer denied.
    """
    before, after = views(base, head, changes)
    old, new = _Side(before), _Side(after, before)
    power = Power(after, new.permissions)
    words_ = _Sentences(before, after, power)
    grants = [
        *words_.permissions(old.permissions, new.permissions),
        *words_.boundaries(old.permissions, new.permissions),
        *words_.entries(old.clusters, new.clusters),
        *words_.facts(old.clusters, new.clusters, power),
        *words_.acting(old.permissions),
        *words_.acting_as_others(changes),
        *words_.code(changes),
        *words_.addons(changes),
        *words_.left(new.clusters),
        *words_.guards(old.clusters, new.clusters),
        *words_.unread(old.permissions, new.permissions, changes),
    ]
    reach = [
        *words_.rules(old.network, new.network),
        *words_.egress(old.network, new.network),
        *words_.paths(old.network, new.network),
        *words_.openings(old.network, new.network),
        *words_.memberships(new.network, changes),
        *words_.blocks(changes),
        *words_.exposures(changes),
    ]
    return Access(
        grants=tuple(found.grant for found in sorted(grants, key=_Found.order)),
        reach=tuple(sorted(reach, key=_order_of_reach)),
        wildcards=Change(before=old.permissions.wildcards, after=new.permissions.wildcards),
        notes=tuple(_notes(old, new, changes)),
    )


@dataclass
class _Side:
    view: View
    until_now: View | None = None

    def __post_init__(self) -> None:
        self.permissions = permissions(self.view)
        self.clusters = cluster_access(self.view, self.permissions, self.until_now)
        self.network = reaching.network(self.view)


@dataclass(frozen=True)
class _Found:
    grant: Grant
    width: int

    def order(self) -> tuple[Any, ...]:
        grant = self.grant
        is_gain = (grant.change == "added") == (grant.effect == "Allow")
        return not is_gain, -self.width, grant.kind, grant.who, grant.sentence, grant.stack, grant.logical_id


class _Sentences:
    def __init__(self, before: View, after: View, power: Power) -> None:
        self.power = power
        self.before = before
        self.after = after
        self._decided: Mapping[str, frozenset[str]] = {}
        self._working: frozenset[Principal] = frozenset()
        self._tagging: tuple[list[tuple[Heading, Block]], ...] = ()
        self._old = {before.token(each) for each in before.resources}
        self._new = {after.token(each) for each in after.resources}

    def permissions(self, old: Permissions, new: Permissions) -> Iterator[_Found]:
        spelling = old.spelling | new.spelling
        self._working = frozenset(
            role for who, roles in acting(self.before, old).items() if self._is_on_both(who) for role in roles
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
                # anyone who has it now, or had it, is told by name
                continue
            was, will = old.blocks.get(heading, {}), new.blocks.get(heading, {})
            # an endpoint that comes or goes is told as reach: what its policy does not hold back is no right
            if was.keys() == will.keys() or (heading.through and not self._is_on_both(heading.through)):
                continue
            removed, added = _atoms(was, will)
            for change, (atoms, others) in _both((added, old.blocks), (removed, new.blocks)):
                bare = heading._replace(condition="")
                wider = [*others.get(heading, ()), *(others.get(bare, ()) if heading.condition else ())]
                for block, place in _grouped(atoms):
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

    def boundaries(self, old: Permissions, new: Permissions) -> Iterator[_Found]:
        for token in dict.fromkeys((*new.boundaries, *old.boundaries)):
            was, will = old.boundaries.get(token), new.boundaries.get(token)
            if (was and was[0]) == (will and will[0]) or (will is None and token not in self._new):
                continue
            who = self._who(("resource", token))
            names = [self._policy_name(each[0]) for each in (was, will) if each]
            place = (will or was or ("", ("", "")))[1]
            if was is None:
                sentence = f"{self._as_subject(who, token)} is limited by permissions boundary {names[0]}"
            elif will is None:
                sentence = f"{who} is no longer limited by permissions boundary {names[0]}: all its policies now count"
            else:
                sentence = f"{who} is limited by permissions boundary {names[1]} instead of {names[0]}"
            yield self._grant(
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

    def unread(self, old: Permissions, new: Permissions, changes: Sequence[ResourceChange]) -> Iterator[_Found]:
        """Tell of what newly stands in a policy and cannot be read: what it permits is not known."""
        for change in changes:
            place = place_of(change.after) if change.after is not None else None
            if place is None or change.after is None:
                continue
            for each in dict.fromkeys(new.unread.get(place, ())):
                if each not in old.unread.get(place, ()):
                    who = self.after.name(change.after)
                    yield self._grant(
                        change="added",
                        kind="permission",
                        sentence=f"{who}: what this permits is not known: {each}",
                        who=who,
                        what=(each,),
                        which=(),
                        place=place,
                        width=6,
                        is_grave=True,
                    )

    def entries(self, old: ClusterAccess, new: ClusterAccess) -> Iterator[_Found]:
        for key in dict.fromkeys((*new.entries, *old.entries)):
            was, will = old.entries.get(key, {}), new.entries.get(key, {})
            for change, (rights, others) in _both((will, was), (was, will)):
                different = {right: place for right, place in rights.items() if right not in others}
                if different:
                    yield self._entry(change, key, different, is_whole=not others)

    def facts(self, old: ClusterAccess, new: ClusterAccess, powerful: Container[Principal]) -> Iterator[_Found]:
        for change, (some, others) in _both((new.facts, old.facts), (old.facts, new.facts)):
            for key, fact in some.items():
                if key not in others and (not fact.needs or (fact.needs in self._old and fact.needs in self._new)):
                    is_grave = (
                        fact.kind == "cluster access"
                        or fact.is_grave
                        or any(each in powerful or not self.after.find(each[1]) for each in fact.roles)
                    )
                    yield self._fact(change, fact, is_grave=is_grave and change == "added")

    def acting(self, old: Permissions) -> Iterator[_Found]:
        """Tell what newly runs under a powerful role that was there; some types are told whatever their role may do."""
        until_now = acting(self.before, old)
        for token in self.power.acting:
            resource = self.after.find(token)
            if resource is None:
                continue
            told = self._told_by_itself(resource) if self._is_on_both(token) else ()
            for role in sorted(self.power.acts(token) - until_now.get(token, frozenset())):
                if role[1] in told or not self._is_on_both(role[1]):
                    continue
                yield self._acts_as(resource, role, width=5)

    def acting_as_others(self, changes: Sequence[ResourceChange]) -> Iterator[_Found]:
        """Tell what newly runs under a role that no template holds: what it may do is not known."""
        for change in changes:
            resource, old = change.after, change.before
            if resource is None:
                continue
            is_same = old is not None and old.type == resource.type
            until_now = elsewhere(self.before, old) if old is not None and is_same else frozenset[Principal]()
            told = self._told_by_itself(resource) if is_same else ()
            for role in sorted(each for each in elsewhere(self.after, resource) - until_now if each[1] not in told):
                yield self._acts_as(resource, role, width=4, but=", of which no template says what it may do")

    def _told_by_itself(self, resource: Resource) -> tuple[str, ...]:
        """Give the role, by what is written and by its token, that ``cluster_access`` tells of a type anyway."""
        written = text(self.after.properties(resource).get(ACTS_AS.get(resource.type, ""), ""))
        found = TOKEN.match(written)
        return (written, f"${{{found[1]}/{found[2]}}}") if found else (written,)

    def _acts_as(self, resource: Resource, role: Principal, *, width: int, but: str = "") -> _Found:
        name = self._who(role)
        who = self._as_subject(self.after.name(resource), self.after.token(resource))
        return self._grant(
            change="added",
            kind="trust",
            sentence=f"{who} acts as {name}{but}",
            who=who,
            what=("sts:AssumeRole",),
            which=(name,),
            properties=role_properties(self.after.properties(resource)),
            place=place_of(resource),
            width=width,
            is_grave=True,
        )

    def code(self, changes: Sequence[ResourceChange]) -> Iterator[_Found]:
        """Tell what runs other code than it did: whoever decides it does what its identity, or root, may do."""
        for found in other_code(self.before, self.after, changes, self.power):
            roles = [self._who(each) for each in found.roles]
            by = ": " if found.is_grave else " as "
            yield self._grant(
                change="added",
                kind="trust" if found.is_grave else "permission",
                sentence=f"{found.sentence}{by}{words.listed(roles, 'roles')}" if roles else found.sentence,
                who=found.subject,
                what=("other code",),
                which=roles,
                properties=found.properties,
                place=found.place,
                width=5 if found.is_grave else 0,
                is_grave=found.is_grave,
            )

    def addons(self, changes: Sequence[ResourceChange]) -> Iterator[_Found]:
        """Tell of add-ons that are not AWS's own, and of settings that may give what runs in them more rights."""
        for change in changes:
            resource, old = change.after, change.before
            if resource is None or resource.type != _ADDON:
                continue
            properties, name = self.after.properties(resource), self.after.name(resource)
            is_same = old is not None and old.type == _ADDON
            was = addons.settings(self.before.properties(old).get(_SETTINGS)) if old is not None and is_same else {}
            will = addons.settings(properties.get(_SETTINGS))
            different = [path for path in dict.fromkeys((*will, *was)) if will.get(path) != was.get(path)]
            if not is_same:
                different = [path for path in different if addons.gives(path)]
            said = []
            if not is_same and not addons.is_of_eks(str(properties.get("AddonName"))):
                said.append(("AddonName", f"new {name} runs code in the cluster of a publisher that is not known here"))
            if different:
                what = words.listed(different, "settings")
                said.append((_SETTINGS, f"{name} gets other settings ({what}): what they permit is not judged"))
            for property_, sentence in said:
                yield self._grant(
                    change="added",
                    kind="cluster access",
                    sentence=sentence,
                    who=name,
                    what=(sentence,),
                    which=(),
                    properties=(property_,),
                    place=place_of(resource),
                    width=4,
                    is_grave=True,
                )

    def left(self, new: ClusterAccess) -> Iterator[_Found]:
        """Tell of objects that leave their manifest and stay in the cluster, with whatever they give or run."""
        for (_, kind, *_), (said, place) in new.left.items():
            yield self._grant(
                change="added",
                kind="cluster access",
                sentence=f"{said} leaves its manifest and stays in the cluster: the manifest has no prune label",
                who=said,
                what=("what it gives stays",),
                which=(),
                place=place,
                width=3,
                is_grave=kind not in kubernetes.HARMLESS,
            )

    def guards(self, old: ClusterAccess, new: ClusterAccess) -> Iterator[_Found]:
        """Tell of what held something back in a cluster and may do so no more, or less."""
        found: list[tuple[str, str, Place]] = []
        for key, (content, said, place) in old.guards.items():
            now = new.guards.get(key)
            if now is None:
                found.append((said, f"{said} is gone: what it held back gets through", place))
            elif now[0] != content:
                found.append((said, f"{said} changes: what it lets through is not judged", now[2]))
        for key, (strictness, said, _) in old.levels.items():
            level = new.levels.get(key)
            if level is not None and level[0] < strictness:
                found.append((said, f"{said} enforces a weaker Pod Security Standard", level[2]))
        for who, sentence, place in found:
            yield self._grant(
                change="added",
                kind="cluster access",
                sentence=sentence,
                who=who,
                what=(sentence,),
                which=(),
                place=place,
                width=4,
                is_grave=True,
            )

    def rules(self, old: Network, new: Network) -> Iterator[Reach]:
        different: dict[tuple[_Change, Rule], list[tuple[str, Place]]] = {}
        for rule in dict.fromkeys((*new.rules, *old.rules)):
            was, will = old.rules.get(rule, []), new.rules.get(rule, [])
            for change, (some, others) in _both((will, was), (was, will)):
                for ports in reaching.difference([each[0] for each in some], [each[0] for each in others]):
                    place = next(place for each, place in some if each[0] <= ports[1] and ports[0] <= each[1])
                    what = reaching.traffic(rule.protocol, rule.detail, ports)
                    # rules of one group with one peer are read together
                    together = rule._replace(protocol="", detail="")
                    different.setdefault((change, together), []).append((what, place))
        for (change, rule), found in different.items():
            yield self._rule(change, rule, found)

    def egress(self, old: Network, new: Network) -> Iterator[Reach]:
        """Tell of groups without egress rules: EC2 lets all out of a new one, and nothing once rules are gone."""
        for group in sorted(new.without_egress - old.groups):
            yield self._default_egress("added", group, "lets out all traffic to any address")
        for group in sorted(old.without_egress - new.without_egress):
            yield self._default_egress("removed", group, "no longer lets out all traffic to any address")

    def paths(self, old: Network, new: Network) -> Iterator[Reach]:
        for path in dict.fromkeys((*new.paths, *old.paths)):
            was, will = old.paths.get(path, {}), new.paths.get(path, {})
            for change, (some, others) in _both((will, was), (was, will)):
                origins = {origin: place for origin, place in some.items() if origin not in others}
                if origins:
                    yield self._path(change, path, origins)

    def openings(self, old: Network, new: Network) -> Iterator[Reach]:
        for change, (some, others) in _both((new.openings, old.openings), (old.openings, new.openings)):
            for key, opening in some.items():
                if key not in others:
                    sentence = opening.gained if change == "added" else opening.lost
                    is_grave = self._is_grave_opening(opening) if change == "added" else self._is_guard(opening)
                    if change == "removed" and is_grave and reaching.is_denied(key, others):
                        is_grave = False
                    found = _reach(change, sentence, opening.place, is_world=opening.is_world, is_grave=is_grave)
                    yield found.model_copy(update={"properties": opening.properties})

    def _is_grave_opening(self, opening: Opening) -> bool:
        """Whether a way in or out needs approval; what a new subnet or ACL brings along opens nothing that was shut."""
        return opening.is_grave and not (opening.of in self._new and opening.of not in self._old)

    def _is_guard(self, opening: Opening) -> bool:
        """Whether what goes kept traffic away from what stays, as a rule of a network ACL does that denies."""
        return opening.guards and self._is_on_both(opening.of)

    def memberships(self, new: Network, changes: Sequence[ResourceChange]) -> Iterator[Reach]:
        """Tell which security groups' rules newly hold, or no longer, for what stays."""
        open_groups = {
            rule.group
            for rule in new.rules
            if rule.direction == "in" and (reaching.is_internet(rule.peer) or reaching.is_wide(rule.peer))
        }
        for each in changes:
            if each.before is None or each.after is None or each.before.type != each.after.type:
                continue
            was = reaching.security_groups(self.before.properties(each.before))
            will = reaching.security_groups(self.after.properties(each.after))
            name = self.after.name(each.after)
            for change, groups in _both(will - was, was - will):
                for group in sorted(groups):
                    sentence = f"{name} {_said(change, 'is', 'is no longer')} in {self._token(group, 'security group')}"
                    is_open = change == "added" and group in open_groups
                    is_untold = change == "added" and not TOKEN.search(group)
                    if is_untold:
                        sentence += ", of which no template says what it lets in"
                    yield _reach(
                        change,
                        sentence,
                        place_of(each.after),
                        is_world=is_open,
                        is_grave=is_open or is_untold,
                        properties=reaching.group_properties(self.after.properties(each.after)),
                    )

    def blocks(self, changes: Sequence[ResourceChange]) -> Iterator[Reach]:
        """Tell of buckets whose block of public access leaves the template: S3 has it by default for new ones only."""
        for each in changes:
            if each.before is None or each.after is None or not each.after.type == each.before.type == _BUCKET:
                continue
            stated = [_PUBLIC_BLOCK in view.properties(side) for view, side in self._sides(each.before, each.after)]
            if stated == [True, False]:
                name = self.after.name(each.after)
                sentence = f"{name} may no longer block public access: its template states no {_PUBLIC_BLOCK} any more"
                yield _reach(
                    "added",
                    sentence,
                    place_of(each.after),
                    is_world=True,
                    is_grave=True,
                    properties=(_PUBLIC_BLOCK,),
                )

    def exposures(self, changes: Sequence[ResourceChange]) -> Iterator[Reach]:
        """Tell what other types newly say of accounts, address blocks and public access."""
        for each in exposures(self.before, self.after, changes):
            yield _reach(
                "added",
                each.sentence,
                each.place,
                is_world=each.is_world,
                is_grave=each.is_grave,
                properties=each.properties,
            )

    def _sides(self, before: Resource, after: Resource) -> tuple[tuple[View, Resource], tuple[View, Resource]]:
        return (self.before, before), (self.after, after)

    def _is_relied_on(self, change: _Change, heading: Heading, block: Block) -> bool:
        """Whether something that runs on both sides, or comes through an endpoint, may do less by it."""
        if (change == "removed") is not (heading.effect == "Allow"):
            return False
        trusting = (("resource", name) for _, names in block.resources for name in names)
        is_of_trust = heading.kind == "trust" and heading.who[0] == "Service"
        return (
            bool(heading.through)
            or heading.who in self._working
            or (is_of_trust and any(each in self._working for each in trusting))
        )

    def _grant(
        self,
        *,
        change: _Change,
        kind: Literal["permission", "trust", "cluster access", "resource policy"],
        sentence: str,
        who: str,
        what: Iterable[str],
        which: Iterable[str],
        place: Place,
        width: int,
        properties: tuple[str, ...] = (),
        condition: str | None = None,
        effect: Literal["Allow", "Deny"] = "Allow",
        is_wide: bool = False,
        is_grave: bool = False,
        is_relied_on: bool = False,
        is_covered: bool = False,
        is_of_service: bool = False,
    ) -> _Found:
        grant = Grant(
            change=change,
            kind=kind,
            sentence=sentence,
            who=who,
            what=tuple(what),
            which=tuple(which),
            condition=condition,
            effect=effect,
            is_wildcard=is_wide,
            is_grave=is_grave,
            is_relied_on=is_relied_on,
            is_covered=is_covered,
            is_of_service=is_of_service,
            stack=place[0],
            logical_id=place[1],
            properties=properties,
        )
        return _Found(grant, width)

    def _statement(
        self,
        change: _Change,
        heading: Heading,
        block: Block,
        place: Place,
        spelling: Mapping[str, str],
        *,
        is_covered: bool,
        until_now: str,
    ) -> _Found:
        who = self._who(heading.who)
        subject = self._as_subject(who, heading.who[1] if heading.who[0] == "resource" else "")
        if heading.effect == "Deny" and heading.who == ("AWS", "*"):
            subject = who = "everybody"
        condition = words.conditions(self.before, json.loads(heading.condition)) if heading.condition else None
        actions = _spelled(block.actions, spelling)
        resources = [*_names(block.resources)]
        if heading.kind == "cluster access":
            what = ["every verb (*)" if each == "*" else each for each in actions]
            which = ["every kind (*)" if each == "*" else each for each in resources]
        else:
            what = [words.action(each) for each in actions]
            which = [words.resource(self.before, each) for each in resources]
        special = next(iter(block.actions))[0]
        if special == "policy":
            which = []
            what = sorted(self._policy_name(each) for each in actions)
            sentence = f"{subject} {_said(change, 'has', 'no longer has')} {words.listed(what, 'policies')}"
        elif special == "member":
            which = []
            what = [self._group_name(each) for each in actions]
            sentence = f"{subject} {_said(change, 'is', 'is no longer')} in {words.listed(what, 'groups')}"
        elif special == "role":
            which = [heading.through]
            verb = _said(change, "has", "no longer has")
            sentence = f"{subject} {verb} {words.listed(what, 'roles')} in {heading.through}"
        elif heading.kind == "trust":
            sentence = self._trust(change, heading, who, actions, resources)
            which = [self._who(("resource", each)) for each in resources]
        else:
            sentence = self._permission(change, heading, block, subject, what=what, which=which)
        if condition:
            sentence = f"{sentence}, if {condition}"
        if until_now:
            sentence = f"{sentence}; until now limited by {until_now}"
        elif (
            change == "added" and heading.kind != "trust" and not is_covered and self._is_for_strangers(heading, block)
        ):
            sentence = f"{sentence}, for anyone who asks the service: no aws:SourceArn or aws:SourceAccount limits it"
        is_grave = not is_covered and self._is_grave(change, heading, block, until_now)
        by_tags = "" if is_covered or is_grave else self._by_tags(change, heading, block)
        sentence = f"{sentence}{by_tags}"
        if is_covered:
            does = ("allowed", "allows") if heading.effect == "Allow" else ("denied", "denies")
            sentence = (
                f"{sentence}; a wider statement {_said(change, f'{does[0]} that already', f'still {does[1]} that')}"
            )
        return self._grant(
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

    def _by_tags(self, change: _Change, heading: Heading, block: Block) -> str:
        """Say that somebody may newly change tags by which policies decide, or that one decides by tags of others.

        Empty where nobody may, or no policy does.
        """
        if change == "removed" or heading.kind == "cluster access" or heading.effect == "Deny":
            return ""
        if heading.kind == "permission":
            keys = grave.changes_deciding_tags(block, heading.condition, self._decided)
            if keys:
                return f": policies decide by {_tags(keys)} who may do what"
        decided = grave.tags_of(heading, (block,))
        taggers = [self._taggers(side, decided) for side in self._tagging] if decided else []
        # who newly may change them is told by what lets him
        who = [each for each in taggers[-1] if all(each in some for some in taggers)] if taggers else []
        if not who:
            return ""
        keys = sorted({key for each in who for key in taggers[-1][each]})
        names = words.listed(sorted(self._who(each) for each in who), "identities")
        return f"; it decides by {_tags(keys)}, which {names} may change"

    def _taggers(
        self, side: Iterable[tuple[Heading, Block]], decided: Mapping[str, frozenset[str]]
    ) -> dict[Principal, set[str]]:
        """Give who may change these tags, but for those who can come to have everything anyway."""
        found: dict[Principal, set[str]] = {}
        for heading, block in side:
            keys = () if heading.who in self.power else grave.changes_deciding_tags(block, heading.condition, decided)
            if keys:
                found.setdefault(heading.who, set()).update(keys)
        return found

    def _is_grave(self, change: _Change, heading: Heading, block: Block, until_now: str) -> bool:
        if heading.effect == "Deny":
            return change == "removed" and self._stays(heading, block)
        return change == "added" and (
            bool(until_now)
            or grave.is_grave(self.after, heading, block)
            or self._leads_to_power(heading, block)
            or self._is_for_strangers(heading, block)
        )

    def _is_for_strangers(self, heading: Heading, block: Block) -> bool:
        """Whether a service newly may do something for whomever it acts for.

        A new role's services are what it is made for, and only who may pass it can hand it to one; for one that stands,
        another service is another user of all that it may do.
        """
        if heading.through or heading.effect == "Deny" or not grave.acts_for_strangers(self.after, heading, block):
            return False
        roles = [name for kind, names in block.resources if kind != "but" for name in names]
        return heading.kind == "resource policy" or (heading.kind == "trust" and any(map(self._is_on_both, roles)))

    def _leads_to_power(self, heading: Heading, block: Block) -> bool:
        """Whether it lets somebody act as an identity of which the statements are grave."""
        if heading.kind == "permission":
            return self.power.leads(block)
        roles = [name for _, names in block.resources for name in names if self._is_on_both(name)]
        # what a new role may do is told of the role
        return heading.kind == "trust" and self.power.trusts(roles)

    def _stays(self, heading: Heading, block: Block) -> bool:
        """Whether what a Deny held back is still there: whoever it is about, and what it stands on."""
        names = [name for kind, names in block.resources if kind != "but" for name in names]
        if heading.kind == "permission":
            names = [heading.who[1]]
        found = [match for name in names if (match := TOKEN.match(name))]
        tokens = [f"${{{match[1]}/{match[2]}}}" for match in found]
        return not tokens or any(token in self._new and token in self._old for token in tokens)

    def _until_now(self, change: _Change, heading: Heading, block: Block, old: Permissions) -> str:
        """Give the condition that limited the same until now and is gone, in words."""
        if change == "removed" or heading.effect == "Deny" or heading.kind == "cluster access":
            return ""
        who = {heading.who}
        if heading.kind == "trust" and heading.who[0] == "Federated":
            # another provider signs in others: the subjects of the old one limit it no more
            who |= {each.who for each in old.blocks if each.kind == "trust" and each.who[0] == "Federated"}
        same = [(each._replace(who=heading.who), blocks) for each, blocks in old.blocks.items() if each.who in who]
        return grave.dropped_condition(heading, block, same)

    def _permission(
        self,
        change: _Change,
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
        through = f"through {words.resource(self.before, heading.through)}, " if heading.through else ""
        return f"{through}{clause} on {resources}"

    def _trust(
        self, change: _Change, heading: Heading, who: str, actions: Sequence[str], resources: Sequence[str]
    ) -> str:
        role = words.listed([self._as_subject(self._who(("resource", each)), each) for each in resources], "roles")
        names = {each.lower() for each in actions}
        assumes = names & {*_ASSUMES} or names & {"*", "sts:*"}
        others = [words.action(each) for each in actions if each.lower() not in _ASSUMES]
        if heading.who[0] == "resource" and self._is_instance_profile(heading.who[1]):
            return f"instances with {who} {_said(change, 'act', 'no longer act')} as {role}"
        if heading.effect == "Deny":
            verb = _said(change, "is denied", "is no longer denied")
            return f"{who} {verb} {words.listed([words.action(each) for each in actions], 'actions')} on {role}"
        if not assumes:
            return f"{who} {_said(change, 'may', 'may no longer')} {words.listed(others, 'actions')} on {role}"
        also = f", with {words.listed(others, 'actions')}" if others else ""
        return f"{who} {_said(change, 'may', 'may no longer')} assume {role}{also}"

    def _is_instance_profile(self, token: str) -> bool:
        found = self.after.find(token) or self.before.find(token)
        return found is not None and found.type == "AWS::IAM::InstanceProfile"

    def _entry(
        self, change: _Change, key: tuple[Principal, str], rights: Mapping[Right, Place], *, is_whole: bool
    ) -> _Found:
        found = TOKEN.fullmatch(key[1])
        cluster = reaching.token_name(self.before, key[1], with_stack=False) if found else f"EKS cluster {key[1]}"
        who = self._who(key[0])
        policies: dict[str, list[str]] = {}
        for kind, name, namespace in sorted(rights):
            if kind == "policy":
                policies.setdefault(name, []).append(scope_name(namespace))
        having = [f"{name} in {words.listed(sorted(scopes), 'namespaces')}" for name, scopes in policies.items()]
        groups = sorted(name for kind, name, _ in rights if kind == "group")
        users = sorted(name for kind, name, _ in rights if kind == "user")
        types = sorted(name for kind, name, _ in rights if kind == "type")
        parts = [f"with {words.listed(having, 'policies')}"] if having else []
        if groups:
            parts.append(f"in Kubernetes group{'s' if len(groups) > 1 else ''} {words.listed(groups, 'groups')}")
        if users:
            parts.append(f"as Kubernetes user {words.listed(users, 'users')}")
        if types:
            parts.append(f"as {types[0]}")
        enters = "may enter" if is_whole else "enters"
        no_longer = "may no longer enter" if is_whole else "no longer enters"
        rest = f" {', '.join(parts)}" if parts else ", without any right of its own"
        is_whole_cluster = any(kind == "policy" and not namespace for kind, _, namespace in rights)
        is_admin = any(kind == "policy" and "ClusterAdmin" in name for kind, name, _ in rights)
        return self._grant(
            change=change,
            kind="cluster access",
            sentence=f"{who} {_said(change, enters, no_longer)} {cluster}{rest}",
            who=who,
            what=(*having, *(f"Kubernetes group {group}" for group in groups), *types),
            which=(cluster,),
            place=min(rights.items(), key=lambda item: item[0])[1],
            is_grave=change == "added" and grave.entry_is_grave(rights),
            is_relied_on=change == "removed",
            width=(5 if is_admin or "system:masters" in groups else 2) + is_whole_cluster,
        )

    def _fact(self, change: _Change, fact: Fact, *, is_grave: bool) -> _Found:
        return self._grant(
            change=change,
            kind=fact.kind,
            sentence=fact.gained if change == "added" else fact.lost,
            who=fact.who,
            what=fact.what,
            which=fact.which,
            properties=fact.properties,
            place=fact.place,
            is_grave=is_grave,
            width=3 if fact.kind == "cluster access" else 1,
        )

    def _rule(self, change: _Change, rule: Rule, found: Sequence[tuple[str, Place]]) -> Reach:
        group = self._token(rule.group, "security group")
        # "tcp 988" before "tcp 1018-1023"
        what = words.listed(sorted({each for each, _ in found}, key=lambda each: (len(each), each)), "rules")
        peer = reaching.peer_name(self.before, rule)
        verb = _said(change, "lets", "no longer lets")
        sentence = f"{group} {verb} {rule.direction} {what} {'from' if rule.direction == 'in' else 'to'} {peer}"
        is_world = reaching.is_internet(rule.peer) or reaching.is_wide(rule.peer)
        is_told = is_world or rule.kind == "security group" or reaching.is_told(rule.peer)
        is_grave = change == "added" and rule.direction == "in" and (is_world or not is_told)
        return _reach(change, sentence, min(found)[1], is_world=is_world, is_grave=is_grave)

    def _default_egress(self, change: _Change, group: str, what: str) -> Reach:
        found = self.after.find(group) or self.before.find(group)
        sentence = f"{self._token(group, 'security group')} {what}, EC2's default of a group that states no egress"
        return _reach(change, sentence, place_of(found) if found else ("", ""), is_world=True)

    def _path(self, change: _Change, path: Path, origins: Mapping[str, Place]) -> Reach:
        names = [self._origin(each) for each in origins]
        first = min(origins.items(), key=lambda item: names[[*origins].index(item[0])])
        is_any = path.destination in reaching.ANYWHERE
        destination = f"any address ({path.destination})" if is_any else self._token(path.destination, "")
        target = self._token(path.target, path.kind) if path.target else f"a {path.kind}"
        who = words.listed(sorted(names), "subnets")
        verb = "reaches" if len(names) == 1 else "reach"
        verb = verb if change == "added" else f"no longer {verb}"
        # a way to the internet gateway is a way back, too: new for a subnet that was there, or that no template holds
        stood = any(each in self._old or each not in self._new for each in origins)
        is_grave = change == "added" and path.kind in _BOTH_WAYS and stood
        return _reach(
            change, f"{who} {verb} {destination} through {target}", first[1], is_world=is_any, is_grave=is_grave
        )

    def _origin(self, token: str) -> str:
        """Name a subnet or a route table, by its kind where no template holds it."""
        kind = next((kind for start, kind in _BY_ID.items() if token.startswith(start)), "")
        return f"{kind}{reaching.token_name(self.before, token, with_stack=False)}"

    def _is_on_both(self, token: str) -> bool:
        return not TOKEN.fullmatch(token) or (token in self._old and token in self._new)

    def _who(self, who: Principal) -> str:
        return words.principal(self.before, who)

    def _as_subject(self, name: str, token: str) -> str:
        if not TOKEN.fullmatch(token):
            return name
        if token not in self._old and token in self._new:
            return f"new {name}"
        return f"former {name}" if token in self._old and token not in self._new else name

    def _token(self, value: str, kind: str) -> str:
        name = reaching.token_name(self.before, value)
        return name if TOKEN.search(value) or not kind else f"{kind} {name}"

    def _policy_name(self, arn: str) -> str:
        if TOKEN.fullmatch(arn):
            return self._token(arn, "")
        if arn.startswith("{"):
            return f"a policy that only the deployment shows ({arn})"
        name = words.shown(self.before, arn.rpartition("/")[2] if "/" in arn else arn)
        is_of_aws = arn_parts(arn).account == "aws"
        return f"AWS's policy {name}" if is_of_aws else f"policy {name}, which the templates do not hold"

    def _group_name(self, value: str) -> str:
        return self._token(value, "group")

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
        elif words.is_external(self.after, heading.who):
            width += 3
        return width


def _atoms(was: Mapping[Block, Place], will: Mapping[Block, Place]) -> tuple[dict[Atom, Place], dict[Atom, Place]]:
    """Give what only the first permits and what only the second does."""
    if sum(len(block.actions) * len(block.resources) for block in (*was, *will)) > _MOST_ATOMS:
        was, will = (
            {block: place for block, place in some.items() if block not in others}
            for some, others in ((was, will), (will, was))
        )
    old, new = _expanded(was), _expanded(will)
    return (
        {atom: place for atom, place in old.items() if atom not in new},
        {atom: place for atom, place in new.items() if atom not in old},
    )


def _expanded(blocks: Mapping[Block, Place]) -> dict[Atom, Place]:
    found: dict[Atom, Place] = {}
    for block, place in blocks.items():
        for action in block.actions:
            for resource in block.resources:
                found.setdefault((action, resource), place)
    return found


def _grouped(atoms: Mapping[Atom, Place]) -> Iterator[tuple[Block, Place]]:
    """Give as few blocks as cover the atoms, each atom once; each "everything but" stands alone."""
    kinds: dict[tuple[Term, Term], dict[Atom, Place]] = {}
    for atom, place in atoms.items():
        action, resource = (term if term[0] == "but" else (term[0], ()) for term in atom)
        kinds.setdefault((action, resource), {})[atom] = place
    for _, some in sorted(kinds.items()):
        by_action, by_resource = _rows(some, 0), _rows(some, 1)
        if len(by_action) < len(by_resource):
            blocks = [Block(actions, resources) for resources, actions in by_action.items()]
        else:
            blocks = [Block(actions, resources) for actions, resources in by_resource.items()]
        for block in blocks:
            yield block, min(some[action, resource] for action in block.actions for resource in block.resources)


def _rows(atoms: Iterable[Atom], side: Literal[0, 1]) -> dict[frozenset[Term], frozenset[Term]]:
    """Give the actions (0) that have the same resources, or the resources (1) with the same actions, by those."""
    of: dict[Term, set[Term]] = {}
    for atom in atoms:
        of.setdefault(atom[side], set()).add(atom[1 - side])
    rows: dict[frozenset[Term], set[Term]] = {}
    for term, others in of.items():
        rows.setdefault(frozenset(others), set()).add(term)
    return {others: frozenset(terms) for others, terms in rows.items()}


def _names(terms: Iterable[Term]) -> list[str]:
    return words.unique(name for _, names in terms for name in names)


def _tags(keys: Sequence[str]) -> str:
    return f"the tag{'s' if len(keys) > 1 else ''} {words.listed(keys, 'tags')}"


def _spelled(terms: Iterable[Term], spelling: Mapping[str, str]) -> list[str]:
    return words.unique(spelling.get(name, name) for name in _names(terms))


def _everything_but(terms: Iterable[Term], names: Sequence[str]) -> tuple[str, ...]:
    if any(kind == "but" for kind, _ in terms):
        return (f"everything but {words.listed(names, 'more')}",) if names else ("everything",)
    return tuple(names)


def _both(added: _T, removed: _T) -> tuple[tuple[_Change, _T], tuple[_Change, _T]]:
    return ("added", added), ("removed", removed)


def _verb(change: _Change, heading: Heading, block: Block) -> str:
    if heading.effect == "Deny":
        return _said(change, "is denied", "is no longer denied")
    # "every s3 action" is nothing that one may do but something that one may use
    use = " use" if _is_of_every(block) else ""
    return f"{_said(change, 'may', 'may no longer')}{use}"


def _is_of_every(block: Block) -> bool:
    return any(map(words.is_every, _names(block.actions)))


def _said(change: _Change, added: str, removed: str) -> str:
    return added if change == "added" else removed


def _reach(
    change: _Change,
    sentence: str,
    place: Place,
    *,
    is_world: bool,
    is_grave: bool = False,
    properties: tuple[str, ...] = (),
) -> Reach:
    return Reach(
        change=change,
        sentence=sentence,
        is_world=is_world,
        is_grave=is_grave,
        stack=place[0],
        logical_id=place[1],
        properties=properties,
    )


def _order_of_reach(found: Reach) -> tuple[bool, bool, bool, str, str, str]:
    return (
        found.change != "added",
        not found.is_grave,
        not found.is_world,
        found.sentence,
        found.stack,
        found.logical_id,
    )


def _notes(old: _Side, new: _Side, changes: Sequence[ResourceChange]) -> Iterator[str]:
    """Tell, of resources that change, what the templates do not: a statement that is no statement, a parameter."""
    for change in changes:
        side, resource = (new, change.after) if change.after is not None else (old, change.before)
        if resource is None:
            continue
        place, label = place_of(resource), ""
        unread = [*side.permissions.unread.get(place, ()), *side.network.unread.get(place, ())]
        # a subnet's zone is the only thing of it that is often left to the deployment, and lets nobody in
        is_told = resource.type == "AWS::EC2::Subnet"
        unknown = [each for each in side.view.unknown.get(place, ()) if not is_told and not each.startswith("${AWS::")]
        for said in dict.fromkeys((*unread, *unknown)):
            label = label or side.view.name(resource)
            yield f"{label}: only the deployment shows: {said}" if said in unknown else f"{label}: not judged: {said}"
