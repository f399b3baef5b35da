"""What the network newly allows and no longer allows, and what is open to whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hyperpod_cdk.catalog.network import EVERYWHERE
from hyperpod_cdk.review.model import Reach
from hyperpod_cdk.review.rights import reach as reaching
from hyperpod_cdk.review.rights import words
from hyperpod_cdk.review.rights.exposure import exposures
from hyperpod_cdk.review.rights.reach import Network, Opening, Path, Rule
from hyperpod_cdk.review.rights.telling import Direction, Names, both, phrase
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, place_of
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.difference import ResourceChange

_BUCKET: Final = "AWS::S3::Bucket"
_PUBLIC_BLOCK: Final = "PublicAccessBlockConfiguration"
_BOTH_WAYS: Final = ("internet gateway", "VPC peering", "transit gateway", "VPN gateway", "core network")
_BY_ID: Final = {"rtb-": "route table ", "subnet-": "subnet "}
"""The type of an ID, by its prefix."""


class ReachChanges:
    """Differences in who reaches what."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def rules(self, old: Network, new: Network) -> Iterator[Reach]:
        different: dict[tuple[Direction, Rule], list[tuple[str, Place]]] = {}
        for rule in dict.fromkeys((*new.rules, *old.rules)):
            was, will = old.rules.get(rule, []), new.rules.get(rule, [])
            if rule in new.doubtful and not was:
                yield self._doubtful("added", rule, new)
                continue
            for change, (some, others) in both((will, was), (was, will)):
                for ports in reaching.difference([each[0] for each in some], [each[0] for each in others]):
                    # ports that end before they begin overlap with none
                    overlaps = (place for each, place in some if each[0] <= ports[1] and ports[0] <= each[1])
                    place = next(overlaps, some[0][1])
                    what = reaching.traffic(rule.protocol, rule.detail, ports)
                    # rules of one group with one peer are read together
                    together = rule._replace(protocol="", detail="")
                    different.setdefault((change, together), []).append((what, place))
        for (change, rule), found in different.items():
            yield self._rule(change, rule, found)

    def egress(self, old: Network, new: Network) -> Iterator[Reach]:
        """Find groups without egress rules: EC2 allows all egress of a new one, and none after its rules were
        removed; and groups that may lose their rule for all egress to a separate one, also if they are in no
        template."""
        for group in sorted(new.without_egress - old.groups):
            yield self._default_egress("added", group, "lets out all traffic to any address")
        for group in sorted(old.without_egress - new.without_egress):
            yield self._default_egress("removed", group, "no longer lets out all traffic to any address")
        for rule in sorted(new.doubtful - old.doubtful):
            if rule in old.rules:
                yield self._doubtful("removed", rule, new)
        for group in sorted(new.separate_egress.keys() - old.separate_egress.keys() - new.groups):
            rule = Rule(group, "out", "all", "", EVERYWHERE)
            if rule not in new.rules:
                yield self._doubtful("removed", rule, new)

    def paths(self, old: Network, new: Network) -> Iterator[Reach]:
        for path in dict.fromkeys((*new.paths, *old.paths)):
            was, will = old.paths.get(path, {}), new.paths.get(path, {})
            for change, (some, others) in both((will, was), (was, will)):
                origins = {origin: place for origin, place in some.items() if origin not in others}
                if origins:
                    yield self._path(change, path, origins)

    def openings(self, old: Network, new: Network) -> Iterator[Reach]:
        for change, (some, others) in both((new.openings, old.openings), (old.openings, new.openings)):
            for key, opening in some.items():
                if key not in others:
                    sentence = opening.gained if change == "added" else opening.lost
                    is_grave = self._is_grave_opening(opening) if change == "added" else self._is_guard(opening)
                    if change == "removed" and is_grave and reaching.is_denied(key, others):
                        is_grave = False
                    found = _reach(change, sentence, opening.place, is_world=opening.is_world, is_grave=is_grave)
                    yield found.model_copy(update={"properties": opening.properties})

    def memberships(self, new: Network, changes: Sequence[ResourceChange]) -> Iterator[Reach]:
        """Find security groups whose rules newly apply, or no longer apply, to unchanged resources."""
        open_groups = {
            rule.group
            for rule in new.rules
            if rule.direction == "in" and (reaching.is_internet(rule.peer) or reaching.is_wide(rule.peer))
        }
        for each in changes:
            if each.before is None or each.after is None or each.before.type != each.after.type:
                continue
            was = reaching.security_groups(self._names.before.properties(each.before))
            will = reaching.security_groups(self._names.after.properties(each.after))
            name = self._names.after.name(each.after)
            for change, groups in both(will - was, was - will):
                for group in sorted(groups):
                    sentence = (
                        f"{name} {phrase(change, 'is', 'is no longer')} in {self._names.token(group, 'security group')}"
                    )
                    is_open = change == "added" and group in open_groups
                    is_unknown = change == "added" and not TOKEN.search(group)
                    if is_unknown:
                        sentence += ", whose rules are in no template"
                    yield _reach(
                        change,
                        sentence,
                        place_of(each.after),
                        is_world=is_open,
                        is_grave=is_open or is_unknown,
                        properties=reaching.group_properties(self._names.after.properties(each.after)),
                    )

    def blocks(self, changes: Sequence[ResourceChange]) -> Iterator[Reach]:
        """Find buckets whose public access block is removed from the template: S3 sets it by default only for new
        ones."""
        for each in changes:
            if each.before is None or each.after is None or not each.after.type == each.before.type == _BUCKET:
                continue
            stated = [_PUBLIC_BLOCK in view.properties(side) for view, side in self._sides(each.before, each.after)]
            if stated == [True, False]:
                name = self._names.after.name(each.after)
                sentence = f"{name} may no longer block public access: its template no longer states {_PUBLIC_BLOCK}"
                yield _reach(
                    "added",
                    sentence,
                    place_of(each.after),
                    is_world=True,
                    is_grave=True,
                    properties=(_PUBLIC_BLOCK,),
                )

    def exposures(self, changes: Sequence[ResourceChange]) -> Iterator[Reach]:
        """Find what other types newly state about accounts, address blocks and public access."""
        for each in exposures(self._names.before, self._names.after, changes):
            yield _reach(
                "added",
                each.sentence,
                each.place,
                is_world=each.is_world,
                is_grave=each.is_grave,
                properties=each.properties,
            )

    def _is_grave_opening(self, opening: Opening) -> bool:
        """Whether a way in or out needs approval; one that is added with a new subnet or ACL opens nothing existing."""
        return opening.is_grave and not (opening.of in self._names.new and opening.of not in self._names.old)

    def _is_guard(self, opening: Opening) -> bool:
        """Whether a removed rule blocked traffic to unchanged resources, as a denying rule of a network ACL does."""
        return opening.guards and self._names.is_on_both(opening.of)

    def _rule(self, change: Direction, rule: Rule, found: Sequence[tuple[str, Place]]) -> Reach:
        group = self._names.token(rule.group, "security group")
        # "tcp 988" before "tcp 1018-1023"
        what = words.listed(sorted({each for each, _ in found}, key=lambda each: (len(each), each)), "rules")
        peer = reaching.peer_name(self._names.before, rule)
        verb = phrase(change, "lets", "no longer lets")
        sentence = f"{group} {verb} {rule.direction} {what} {'from' if rule.direction == 'in' else 'to'} {peer}"
        is_world = reaching.is_internet(rule.peer) or reaching.is_wide(rule.peer)
        is_shown = is_world or rule.kind == "security group" or reaching.is_shown(rule.peer)
        is_grave = change == "added" and rule.direction == "in" and (is_world or not is_shown)
        return _reach(change, sentence, min(found)[1], is_world=is_world, is_grave=is_grave)

    def _doubtful(self, change: Direction, rule: Rule, new: Network) -> Reach:
        group = self._names.token(rule.group, "security group")
        sentence = (
            f"{group} may {phrase(change, '', 'no longer ')}let out all traffic to"
            f" {reaching.peer_name(self._names.before, rule)}: CloudFormation removes a rule for it before it creates a"
            " separate egress rule"
        )
        return _reach(change, sentence, new.separate_egress[rule.group], is_world=True)

    def _default_egress(self, change: Direction, group: str, what: str) -> Reach:
        found = self._names.after.find(group) or self._names.before.find(group)
        sentence = (
            f"{self._names.token(group, 'security group')} {what}, EC2's default for a group that states no egress"
        )
        return _reach(change, sentence, place_of(found) if found else ("", ""), is_world=True)

    def _path(self, change: Direction, path: Path, origins: Mapping[str, Place]) -> Reach:
        names = [self._origin(each) for each in origins]
        first = min(origins.items(), key=lambda item: names[[*origins].index(item[0])])
        is_any = path.destination in reaching.ANYWHERE
        destination = f"any address ({path.destination})" if is_any else self._names.token(path.destination, "")
        target = self._names.token(path.target, path.kind) if path.target else f"a {path.kind}"
        who = words.listed(sorted(names), "subnets")
        verb = "reaches" if len(names) == 1 else "reach"
        verb = verb if change == "added" else f"no longer {verb}"
        # a way to the internet gateway is a way back, too: new for an existing subnet, or for one that is in no
        # template
        stood = any(each in self._names.old or each not in self._names.new for each in origins)
        is_grave = change == "added" and path.kind in _BOTH_WAYS and stood
        return _reach(
            change, f"{who} {verb} {destination} through {target}", first[1], is_world=is_any, is_grave=is_grave
        )

    def _origin(self, token: str) -> str:
        """Name a subnet or a route table, by its kind if it is in no template."""
        kind = next((kind for start, kind in _BY_ID.items() if token.startswith(start)), "")
        return f"{kind}{reaching.token_name(self._names.before, token, with_stack=False)}"

    def _sides(self, before: Resource, after: Resource) -> tuple[tuple[View, Resource], tuple[View, Resource]]:
        return (self._names.before, before), (self._names.after, after)


def _reach(
    change: Direction,
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
