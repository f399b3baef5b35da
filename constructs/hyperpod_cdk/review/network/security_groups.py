"""What the security groups of an assembly allow: proven, refused, or not shown by the templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from ipaddress import IPv4Network, collapse_addresses
from typing import Any, Final, Literal

from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.groups import SECURITY_GROUP, Part, exists, resolved_part, whole_number
from hyperpod_cdk.templates.values import Reference, is_known, resolve

Direction = Literal["in", "out"]

ANYWHERE: Final = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of a security group; what the template does not show is None.

    ``protocol`` is ``-1`` for all traffic. ``peer`` is a security group, ``cidr`` an address block; a prefix list is
    neither. ``is_certain`` is False if the rule depends on an unknown condition.
    """

    protocol: str | None
    first_port: int | None = None
    last_port: int | None = None
    peer: Part | None = None
    cidr: str | None = None
    is_certain: bool = True


@dataclass(frozen=True)
class SecurityGroups:
    """The rules of every security group that an assembly creates or extends.

    Every question is answered with True (a rule allows it), False (the group is created here, and no rule of it allows
    it) or None (there may be rules that these templates do not show).
    """

    assembly: Assembly

    def is_known(self, group: Part, direction: Direction) -> bool:
        """Whether the templates show every rule of a group on one side."""
        if (group.key, direction) in self._tables.blurred or group.resource is None:
            return False
        if group.is_made_here(SECURITY_GROUP) and not group.attribute:
            # a rule that refers to its group by an unresolved text of another stack may belong to this group
            return not self._tables.stray.get(direction, frozenset()) - {group.resource.stack}
        return _made(group) is not None

    def allows_itself(self, group: Part, direction: Direction) -> bool | None:
        """Return whether a group allows all traffic with itself, by its ID, as EFA requires."""
        return self.allows_all_of(group, direction, [group])

    def allows_all_of(self, group: Part, direction: Direction, peers: Sequence[Part]) -> bool | None:
        """Return whether a group allows all traffic with any of these groups, by ID: an address block never counts."""
        answers = [
            _both(rule.is_certain or None, _all_traffic(rule), any_of(_same(rule.peer, peer) for peer in peers))
            for rule in self.rules(group, direction)
            if rule.peer is not None
        ]
        return self._answer(group, direction, answers)

    def allows_ports(
        self,
        groups: Sequence[Part],
        direction: Direction,
        ports: Iterable[int],
        *,
        peers: Sequence[Part] = (),
        cidrs: Sequence[str] = (),
    ) -> bool | None:
        """Return whether resources with all these groups may use TCP on every port, by the rules of any of the groups.

        It is TCP with any of ``peers``, or with all addresses of all ``cidrs``; a block that is unknown is ``""``.
        """
        wanted = tuple(ports)
        if self._allows_plainly(groups, direction, wanted, peers):
            return True
        found = [
            (rule, reached)
            for group in groups
            for rule in self.rules(group, direction)
            if (reached := _both(rule.is_certain or None, _reaches(rule, peers, cidrs))) is not False
        ]
        is_known = all(self.is_known(group, direction) for group in groups)
        return all_of(
            any_of((*(_both(reached, _covers(rule, port)) for rule, reached in found), False if is_known else None))
            for port in wanted
        )

    def _allows_plainly(
        self, groups: Sequence[Part], direction: Direction, ports: Sequence[int], peers: Sequence[Part]
    ) -> bool:
        """Return whether rules for any address, or for one of ``peers`` by ID, allow it: the most frequent form."""
        to = (ANYWHERE, *(peer.key for peer in peers))
        near = [rule for group in groups for each in to for rule in self._by_peer(group, direction).get(each, ())]
        return all(any(_covers(rule, port) for rule in near) for port in ports)

    def _by_peer(self, group: Part, direction: Direction) -> Mapping[str, list[Rule]]:
        key = (group.key, direction)
        found = self._peers.get(key)
        if found is None:
            found = self._peers[key] = {}
            for rule in self.rules(group, direction):
                to = rule.peer.key if rule.peer is not None else rule.cidr
                if rule.is_certain and to is not None:
                    found.setdefault(to, []).append(rule)
        return found

    @cached_property
    def _peers(self) -> dict[tuple[str, Direction], dict[str, list[Rule]]]:
        return {}

    def rules(self, group: Part, direction: Direction) -> Sequence[Rule]:
        """Return the rules of a group that the templates show, including those that AWS creates itself."""
        rules = self._tables.rules.get((group.key, direction), [])
        made = _made(group)
        if made is not None:
            return [*rules, *_made_rules(made, group, direction)]
        resource = group.resource
        is_own = group.is_made_here(SECURITY_GROUP) and resource is not None
        if is_own and direction == "out" and not (resource and resource.properties.get("SecurityGroupEgress")):
            # if a group states a rule of its own, CloudFormation removes the default one, but rules of other stacks do
            # not
            return [*rules, Rule(protocol="-1", cidr=ANYWHERE, is_certain=not rules)]
        return rules

    def _answer(self, group: Part, direction: Direction, answers: Iterable[bool | None]) -> bool | None:
        found = any_of(answers)
        return None if found is False and not self.is_known(group, direction) else found

    @cached_property
    def _tables(self) -> _Tables:
        return _read(self.assembly)


def any_of(answers: Iterable[bool | None]) -> bool | None:
    """Return True if one is True, False if all are, else None; evaluates no more than necessary."""
    found: bool | None = False
    for answer in answers:
        if answer:
            return True
        if answer is None:
            found = None
    return found


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """Return False if one is False, True if all are, else None; evaluates no more than necessary."""
    found: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            found = None
    return found


@dataclass(frozen=True)
class _Tables:
    rules: Mapping[tuple[str, Direction], Sequence[Rule]]
    blurred: frozenset[tuple[str, Direction]]
    stray: Mapping[Direction, frozenset[str]]


_SIDES: Final[Mapping[str, tuple[Direction, str]]] = {
    "SecurityGroupIngress": ("in", "SourceSecurityGroupId"),
    "SecurityGroupEgress": ("out", "DestinationSecurityGroupId"),
}
_LITERAL: Final = re.compile(r"sg-[0-9a-f]+")
_ALL: Final = "-1"
_TCP: Final = frozenset({"tcp", "6"})


def _read(assembly: Assembly) -> _Tables:
    blurred: set[tuple[str, Direction]] = set()
    stray: dict[Direction, set[str]] = {}
    rules = _stated(assembly, blurred)
    for (key, direction), added in _separate(assembly, stray).items():
        stated = rules.get((key, direction), [])
        if direction == "out":
            # CloudFormation removes it when it creates a separate one (EVERYWHERE_IN_HALVES)
            stated = [
                replace(each, is_certain=False) if catalog.is_all_traffic(each.protocol, each.cidr) else each
                for each in stated
            ]
        rules[key, direction] = [*stated, *added]
    return _Tables(
        {place: [*found, *_joined(found)] for place, found in rules.items()},
        frozenset(blurred),
        {side: frozenset(stacks) for side, stacks in stray.items()},
    )


def _stated(assembly: Assembly, blurred: set[tuple[str, Direction]]) -> dict[tuple[str, Direction], list[Rule]]:
    """Read the rules that the groups state themselves; ``blurred`` gets the sides that cannot be read."""
    rules: dict[tuple[str, Direction], list[Rule]] = {}
    for resource in assembly.of_type(SECURITY_GROUP):
        owner = resolved_part(assembly, resource.stack, Reference(resource.stack, resource.logical_id))
        for name, (direction, peer) in _SIDES.items():
            listed = resolve(assembly, resource.stack, resource.properties.get(name))
            if listed is None:
                continue
            if not isinstance(listed, list):
                blurred.add((owner.key, direction))
                continue
            for body in listed:
                if not isinstance(body, dict):
                    blurred.add((owner.key, direction))
                elif not _is_ipv6(body):
                    rule = _rule(assembly, resource.stack, body, peer)
                    rules.setdefault((owner.key, direction), []).append(rule)
    return rules


def _separate(assembly: Assembly, stray: dict[Direction, set[str]]) -> dict[tuple[str, Direction], list[Rule]]:
    """Read the rules that are resources of their own; ``stray`` gets the stacks whose rules name an unknown group."""
    rules: dict[tuple[str, Direction], list[Rule]] = {}
    for name, (direction, peer) in _SIDES.items():
        for resource in assembly.of_type(f"AWS::EC2::{name}"):
            made = exists(assembly, resource)
            body = resolve(assembly, resource.stack, dict(resource.properties))
            if made is False or not isinstance(body, dict) or _is_ipv6(body):
                continue
            owner = resolved_part(assembly, resource.stack, body.get("GroupId"))
            if not _is_identified(owner):
                # what a custom resource returns may be any group, a parameter only one of another stack
                stray.setdefault(direction, set()).add("" if owner.is_passed_on else resource.stack)
            rule = _rule(assembly, resource.stack, body, peer, is_certain=made is True)
            rules.setdefault((owner.key, direction), []).append(rule)
    return rules


def _joined(rules: Sequence[Rule]) -> Iterator[Rule]:
    """Yield a rule for any address where rules that are alike but for their blocks name all addresses together.

    It is uncertain if one of them is, or if only the deployment knows the protocol of one.
    """
    alike: dict[Rule, list[Rule]] = {}
    for rule in rules:
        if rule.cidr is not None and rule.cidr != ANYWHERE:
            alike.setdefault(replace(rule, cidr=ANYWHERE, is_certain=True), []).append(rule)
    of_any_protocol = [each for together, found in alike.items() if together.protocol is None for each in found]
    for together, found in alike.items():
        if _is_everything(each for each in found if each.is_certain):
            yield together
        elif _is_everything([*found, *of_any_protocol]):
            yield replace(together, is_certain=False)


def _is_everything(rules: Iterable[Rule]) -> bool:
    blocks = (_block(rule.cidr) for rule in rules if rule.cidr is not None)
    return [str(each) for each in collapse_addresses(each for each in blocks if each is not None)] == [ANYWHERE]


def _rule(
    assembly: Assembly, stack: str, body: Mapping[str, Any], peer_property: str, *, is_certain: bool = True
) -> Rule:
    peer, cidr, protocol = body.get(peer_property), body.get("CidrIp"), body.get("IpProtocol")
    return Rule(
        protocol=str(protocol).lower() if is_known(protocol) else None,
        first_port=whole_number(body.get("FromPort")),
        last_port=whole_number(body.get("ToPort")),
        peer=None if peer is None else resolved_part(assembly, stack, peer),
        cidr=cidr if isinstance(cidr, str) and is_known(cidr) else None,
        is_certain=is_certain,
    )


def _is_ipv6(body: Mapping[str, Any]) -> bool:
    # nodes, file systems and endpoints communicate over IPv4
    return body.get("CidrIpv6") is not None


def _made(group: Part) -> catalog.MadeSecurityGroup | None:
    resource: Resource | None = group.resource
    return None if resource is None else catalog.made_security_group(resource.type, group.attribute)


def _made_rules(made: catalog.MadeSecurityGroup, group: Part, direction: Direction) -> Iterator[Rule]:
    if made.in_from_itself if direction == "in" else made.out_to_itself:
        yield Rule(protocol=_ALL, peer=group)
    if direction == "out" and made.out_to_any:
        yield Rule(protocol=_ALL, cidr=ANYWHERE)


def _both(*answers: bool | None) -> bool | None:
    return all_of(answers)


def _all_traffic(rule: Rule) -> bool | None:
    return None if rule.protocol is None else rule.protocol == _ALL


def _covers(rule: Rule, port: int) -> bool | None:
    if rule.protocol is None:
        return None
    if rule.protocol == _ALL:
        return True
    if rule.protocol not in _TCP:
        return False
    if rule.first_port is None or rule.last_port is None:
        return None
    return rule.first_port <= port <= rule.last_port


def _same(one: Part | None, other: Part) -> bool | None:
    """Return whether two parts are one security group; None if only the deployment shows it."""
    if one is None:
        return None
    if one.key == other.key:
        return True
    if _is_identified(one) and _is_identified(other):
        return False
    # a resource of the stack itself is not a parameter
    known, token = (one, other) if _is_identified(one) else (other, one)
    if known.resource is not None and token.resource is None and token.key.startswith(f"{known.resource.stack}:${{"):
        return False
    return None


def _is_identified(group: Part) -> bool:
    return (group.resource is not None and group.is_known) or _LITERAL.fullmatch(group.label) is not None


def _reaches(rule: Rule, peers: Sequence[Part], cidrs: Sequence[str]) -> bool | None:
    if rule.peer is not None:
        return any_of(_same(rule.peer, peer) for peer in peers)
    if rule.cidr is None:
        # a prefix list or a parameter
        return None
    if rule.cidr == ANYWHERE:
        return True
    outer = _block(rule.cidr)
    inner = [_block(cidr) for cidr in cidrs]
    if outer is None or not inner:
        return None
    return all_of(None if block is None else block.subnet_of(outer) for block in inner)


@cache
def _block(cidr: str) -> IPv4Network | None:
    try:
        return IPv4Network(cidr, strict=False)
    except ValueError:
        return None
