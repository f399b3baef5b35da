"""Proves from the templates that the traffic of nodes and file systems is possible: EFA, Lustre, S3, AWS's APIs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from hyperpod_cdk.catalog import instance_types, lustre, regions
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog.rules import joined, listing
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.model import Fabric, FabricSubject, Proof
from hyperpod_cdk.review.network.routes import Endpoint, Routes, Way, labels
from hyperpod_cdk.review.network.security_groups import ANYWHERE, Direction, SecurityGroups, all_of, any_of
from hyperpod_cdk.templates.assembly import Assembly, Resource, word_of
from hyperpod_cdk.templates.groups import (
    FILE_SYSTEM,
    SUBNET,
    InstanceGroup,
    Part,
    Subnet,
    exists,
    instance_groups,
    part,
    parts,
    resolved_part,
    subnets,
)
from hyperpod_cdk.templates.values import Reference, resolve

EFA: Final = "EFA"
EFA_IN: Final = "EFA traffic from itself"
EFA_OUT: Final = "EFA traffic to itself"
ONE_ZONE: Final = "one availability zone"
PLAN_ZONE: Final = "one zone for its training plan"
S3: Final = "S3"
APIS: Final = "ECR and AWS APIs"
SERVERS: Final = "Lustre traffic among its servers"
CLIENTS: Final = "Lustre traffic with the nodes"
SAME_ZONE: Final = "same zone as its nodes"

_HTTPS: Final = 443
_MOST_NAMED: Final = 6
_SUBNET_ID: Final = re.compile(r"subnet-[0-9a-f]+")


def fabric(base: Assembly, head: Assembly) -> Fabric:
    """Prove the network of every instance group and every Lustre file system of ``head``.

    A proof ``holds`` only if rules, routes and endpoints of the templates show it, is ``broken`` if the templates
    create everything that decides it and do not allow it, and is ``unknown`` with its reason in all other cases: a
    security group or subnet from elsewhere, a parameter, a condition. ``newly_broken`` and ``newly_unknown`` name the
    proofs that held in ``base``.
    """
    word = word_of(base, head)
    before = {
        (subject.kind, subject.stack, subject.logical_id, subject.subject): {
            proof.name for proof in subject.proofs if proof.result == "holds"
        }
        for subject in (_Network(base, word).subjects() if base is not head else ())
    }
    found = []
    for subject in _Network(head, word).subjects():
        held = before.get((subject.kind, subject.stack, subject.logical_id, subject.subject), set())
        lost = {
            f"newly_{result}": tuple(
                proof.name for proof in subject.proofs if proof.result == result and proof.name in held
            )
            for result in ("broken", "unknown")
        }
        found.append(subject.model_copy(update=lost) if any(lost.values()) else subject)
    return Fabric(subjects=tuple(found))


def efa_proofs(rules: SecurityGroups, groups: Sequence[Part], word: str) -> tuple[Proof, Proof]:
    """Prove that nodes which all have these security groups may send EFA traffic to each other, in and out.

    It needs one security group that allows all traffic from and to itself, by its ID. If one group has one direction
    and another group the other, AWS's documents do not state whether that is sufficient. ``word`` is the environment's
    argument in commands.
    """
    if not groups:
        why = "the template names no security group for its nodes"
        return Proof(name=EFA_IN, result="unknown", detail=why), Proof(name=EFA_OUT, result="unknown", detail=why)
    sides: dict[Direction, dict[str, bool | None]] = {
        side: {group.key: rules.allows_itself(group, side) for group in groups} for side in ("in", "out")
    }
    both = [group for group in groups if sides["in"][group.key] and sides["out"][group.key]]
    if both:
        label = both[0].label
        return (
            Proof(name=EFA_IN, result="holds", detail=f"{label} allows all traffic from itself"),
            Proof(name=EFA_OUT, result="holds", detail=f"{label} allows all traffic to itself"),
        )
    found_in = _itself(rules, groups, "in", sides["in"], word)
    found_out = _itself(rules, groups, "out", sides["out"], word)
    if found_in.result == found_out.result == "holds":
        detail = (
            f"{found_in.detail}, and {found_out.detail}: whether two groups together are sufficient is not documented"
        )
        return Proof(name=EFA_IN, result="unknown", detail=detail), Proof(name=EFA_OUT, result="unknown", detail=detail)
    return found_in, found_out


def _itself(
    rules: SecurityGroups, groups: Sequence[Part], side: Direction, answers: dict[str, bool | None], word: str
) -> Proof:
    name, way, verb = (EFA_IN, "from", "receive") if side == "in" else (EFA_OUT, "to", "send")
    holding = [group for group in groups if answers[group.key]]
    if holding:
        return Proof(name=name, result="holds", detail=f"{holding[0].label} allows all traffic {way} itself")
    unclear = [group for group in groups if answers[group.key] is None]
    if unclear:
        return Proof(name=name, result="unknown", detail=_why_unknown(unclear, word))
    is_open = side == "out" and any(
        catalog.is_all_traffic(rule.protocol, rule.cidr) for group in groups for rule in rules.rules(group, side)
    )
    instead = f": {ANYWHERE} does not replace it" if is_open else ""
    detail = f"no rule lets {_or(groups)} {verb} {way} itself{instead}; EFA health checks fail"
    return Proof(name=name, result="broken", detail=detail)


@dataclass(frozen=True, kw_only=True)
class _System:
    """A Lustre file system and its place."""

    resource: Resource
    places: tuple[Part, ...]
    security_groups: tuple[Part, ...]
    has_efa: bool

    @property
    def traffic(self) -> str:
        return "all traffic" if self.has_efa else f"TCP {joined(_range(*ports) for ports in lustre.TCP_PORTS)}"


@dataclass(frozen=True)
class _Network:
    """One assembly, with the data that several proofs use."""

    assembly: Assembly
    word: str

    @cached_property
    def rules(self) -> SecurityGroups:
        return SecurityGroups(self.assembly)

    @cached_property
    def routes(self) -> Routes:
        return Routes(self.assembly)

    @cached_property
    def groups(self) -> list[InstanceGroup]:
        return instance_groups(self.assembly)

    @cached_property
    def subnets(self) -> dict[str, Subnet]:
        return {subnet.part.key: subnet for subnet in subnets(self.assembly)}

    @cached_property
    def by_plan(self) -> dict[str, list[InstanceGroup]]:
        found: dict[str, list[InstanceGroup]] = {}
        for group in self.groups:
            if group.plan:
                found.setdefault(group.plan, []).append(group)
        return found

    @cached_property
    def standing(self) -> dict[str, list[str]]:
        """Return the blocks of the nodes with a security group, by its key; "" for one that is unknown."""
        found: dict[str, list[str]] = {}
        for group in self.groups:
            for each in group.security_groups:
                found.setdefault(each.key, []).extend(self.cidrs(group.subnets))
        return found

    def cidrs(self, places: Iterable[Part]) -> list[str]:
        return [self.subnets[each.key].cidr if each.key in self.subnets else "" for each in places]

    def subjects(self) -> Iterator[FabricSubject]:
        proven: dict[tuple[str, tuple[Part, ...], tuple[Part, ...]], Proof] = {}
        for group in self.groups:
            yield FabricSubject(
                subject=group.name,
                kind="instance group",
                stack=group.cluster.stack,
                logical_id=group.cluster.logical_id,
                proofs=tuple(self._of_group(group, proven)),
            )
        for system in _file_systems(self.assembly):
            yield FabricSubject(
                subject=system.resource.name,
                kind="file system",
                stack=system.resource.stack,
                logical_id=system.resource.logical_id,
                proofs=tuple(self._of_file_system(system)),
            )

    def _of_group(
        self, group: InstanceGroup, proven: dict[tuple[str, tuple[Part, ...], tuple[Part, ...]], Proof]
    ) -> Iterator[Proof]:
        has_efa = _has_efa(group)
        is_fast = has_efa is not False or _is_accelerated(group)
        if has_efa is not False:
            yield from efa_proofs(self.rules, group.security_groups, self.word)
        elif is_fast:
            yield _holds(EFA, f"no EFA on {_few(group.types)}: no rule is needed")
        if is_fast:
            yield _one_zone(group, self.word)
        sharing = self.by_plan.get(group.plan or "", [])
        if len(sharing) > 1:
            yield _plan_zone(group, sharing)
        for name, prove in ((S3, self._s3), (APIS, self._apis)):
            # groups in the same subnets with the same security groups are proven once
            key = (name, group.subnets, group.security_groups)
            if key not in proven:
                proven[key] = _gravest(name, [prove(each, group.security_groups) for each in group.subnets])
            yield proven[key]

    def _s3(self, place: Part, groups: Sequence[Part]) -> Proof:
        subnet = self.subnets.get(place.key)
        if subnet is None or not place.is_made_here(SUBNET):
            return _unknown(S3, _elsewhere([place], self.word))
        doubts = []
        for found in self._s3_endpoints(place, subnet, groups):
            if isinstance(found, Proof):
                return found
            doubts.append(found)
        way = self.routes.way_out(place)
        if way.kind == "NAT gateway" and way.target is not None:
            detail = (
                f"{place.label} reaches it through {way.target.label}, which charges for every gigabyte, unlike a "
                "gateway endpoint"
            )
            return self._through(S3, place, detail, groups)
        if doubts or way.is_doubtful:
            return _unknown(S3, doubts[0] if doubts else _on_from(way, self.word))
        return _broken(S3, f"no gateway endpoint for {place.label}, and {_no_way(way, place)}")

    def _s3_endpoints(self, place: Part, subnet: Subnet, groups: Sequence[Part]) -> Iterator[Proof | str]:
        """Yield the doubts about endpoints for S3, and the proof by the first one that decides."""
        table = self.routes.table_of(place)
        for endpoint in self.routes.of_vpc(subnet.vpc):
            label = endpoint.part.label
            if endpoint.is_for_any:
                yield f"the service of endpoint {label} is unknown"
            if not endpoint.is_for("s3"):
                continue
            if endpoint.is_gateway and table is not None and table.key in {each.key for each in endpoint.tables}:
                if endpoint.is_certain or not endpoint.is_open:
                    detail = f"{place.label} reaches it by gateway endpoint {label}"
                    proof = self._through(S3, place, detail, groups)
                    is_proven = endpoint.is_open or proof.result == "broken"
                    yield proof if is_proven else _unknown(S3, f"{detail}, if its policy allows it")
                    return
                yield f"gateway endpoint {label} depends on a condition"
            elif endpoint.is_gateway and any(each.is_passed_on for each in endpoint.tables):
                yield f"the route tables of gateway endpoint {label} are unknown"
            elif not endpoint.is_gateway:
                answer = self._admits(endpoint, subnet, groups)
                if answer:
                    detail = f"{place.label} reaches it by interface endpoint {label}"
                    yield self._past_acl(S3, place, detail)
                    return
                if answer is None:
                    yield f"whether interface endpoint {label} serves {place.label} is unknown"

    def _apis(self, place: Part, groups: Sequence[Part]) -> Proof:
        subnet = self.subnets.get(place.key)
        if subnet is None or not place.is_made_here(SUBNET):
            return _unknown(APIS, _elsewhere([place], self.word))
        served: dict[str, bool | None] = dict.fromkeys(_NEEDED, False)
        doubtful = []
        for endpoint in self.routes.of_vpc(subnet.vpc):
            service = next((each for each in _NEEDED if endpoint.is_for(each)), None)
            if service is None or endpoint.is_gateway:
                continue
            answer = self._admits(endpoint, subnet, groups)
            if answer is False and endpoint.private_dns and endpoint.is_certain:
                # the service's usual name resolves to the endpoint, whatever other way exists
                return _broken(
                    APIS,
                    f"calls of {service} go to {endpoint.part.label}, and no rules let {_or(groups)} reach it on port"
                    f" {_HTTPS}",
                )
            served[service] = any_of([served[service], answer])
            if not answer and endpoint.private_dns is not False:
                # it may receive the calls, and then no other way counts
                doubtful.append(service)
        if all(served.values()):
            return self._past_acl(APIS, place, f"{place.label} reaches them by interface endpoints")
        if any(each.is_for_any and not each.is_gateway for each in self.routes.of_vpc(subnet.vpc)):
            served = {service: answer or None for service, answer in served.items()}
        taken = [service for service in doubtful if not served[service]]
        return self._apis_by_route(place, groups, served, taken)

    def _apis_by_route(
        self, place: Part, groups: Sequence[Part], served: Mapping[str, bool | None], taken: Sequence[str]
    ) -> Proof:
        way = self.routes.way_out(place)
        if way.kind == "NAT gateway" and way.target is not None:
            if taken:
                detail = f"{place.label} reaches others through {way.target.label}, but whether interface endpoints for"
                return _unknown(APIS, f"{detail} {_few(taken)} receive calls and accept nodes is unknown")
            return self._through(APIS, place, f"{place.label} reaches them through {way.target.label}", groups)
        if way.is_doubtful:
            return _unknown(APIS, _on_from(way, self.word))
        missing = [service for service, answer in served.items() if answer is False]
        if missing:
            return _broken(APIS, f"no interface endpoint for {_few(missing)}, and {_no_way(way, place)}")
        doubtful = [service for service, answer in served.items() if answer is None]
        return _unknown(APIS, f"whether interface endpoints for {_few(doubtful)} serve {place.label} is unknown")

    def _through(self, name: str, place: Part, detail: str, groups: Sequence[Part]) -> Proof:
        """Judge an existing way: security groups and the network ACL must allow its traffic."""
        answer = self._reaches_out(groups)
        if answer is False:
            return _broken(name, f"no rule lets {_or(groups)} send to any address on port {_HTTPS}")
        if answer is None:
            return _unknown(name, f"{detail}, if security groups allow it: {self._why_unknown(groups, 'out')}")
        return self._past_acl(name, place, detail)

    def _past_acl(self, name: str, place: Part, detail: str) -> Proof:
        acl = self.routes.acl_of(place)
        return _unknown(name, f"{detail}, if network ACL {acl.label} allows it") if acl else _holds(name, detail)

    def _reaches_out(self, groups: Sequence[Part]) -> bool | None:
        if not groups:
            return None
        return self.rules.allows_ports(groups, "out", [_HTTPS], cidrs=[ANYWHERE])

    def _admits(self, endpoint: Endpoint, subnet: Subnet, groups: Sequence[Part]) -> bool | None:
        """Return whether nodes with these security groups reach an interface endpoint by the service's usual name."""
        if not groups or not endpoint.security_groups:
            return None
        own, places = endpoint.security_groups, self.cidrs(endpoint.subnets)
        return all_of(
            [
                endpoint.private_dns,
                endpoint.is_certain or None,
                endpoint.is_open or None,
                self.rules.allows_ports(groups, "out", [_HTTPS], peers=own, cidrs=places),
                self.rules.allows_ports(own, "in", [_HTTPS], peers=groups, cidrs=[subnet.cidr]),
            ]
        )

    def _of_file_system(self, system: _System) -> Iterator[Proof]:
        yield self._servers(system)
        # the file systems of restricted groups are the service's own
        clients = [group for group in self.groups if not group.is_restricted]
        if clients:
            yield self._clients(system, clients)
            yield self._same_zone(system, clients)

    def _servers(self, system: _System) -> Proof:
        own = system.security_groups
        answer = self._passes(system, own, own)
        if answer is None:
            return _unknown(SERVERS, self._why_unknown(own, "in", "out"))
        if answer:
            return _holds(SERVERS, f"{_or(own)} allows {system.traffic} from and to itself")
        return _broken(SERVERS, f"no rules let {_or(own)} send {system.traffic} to itself and receive it")

    def _clients(self, system: _System, clients: Sequence[InstanceGroup]) -> Proof:
        own = system.security_groups
        by_nodes: dict[tuple[Part, ...], list[InstanceGroup]] = {}
        for group in clients:
            by_nodes.setdefault(group.security_groups, []).append(group)
        proofs = []
        for nodes, members in by_nodes.items():
            names = _few([group.name for group in members])
            answer = all_of([self._passes(system, nodes, own), self._passes(system, own, nodes)])
            if answer is None:
                proofs.append(_unknown(CLIENTS, self._why_unknown([*nodes, *own], "in", "out")))
                continue
            between = f"{system.traffic} pass both ways between {_or(nodes)} of {names} and {_or(own)}"
            if not answer:
                proofs.append(_broken(CLIENTS, f"no rules let {between}"))
                continue
            acl = self._acl_between(system, members)
            lets = f"rules let {between}"
            proofs.append(
                _unknown(CLIENTS, f"{lets}, if network ACL {acl.label} does") if acl else _holds(CLIENTS, lets)
            )
        return _gravest(CLIENTS, proofs)

    def _acl_between(self, system: _System, members: Sequence[InstanceGroup]) -> Part | None:
        """Return a network ACL that may stop traffic; within one subnet there is none."""
        own = {each.key for each in system.places}
        apart = [each for group in members for each in group.subnets if each.key not in own]
        places = [*apart, *system.places] if apart else []
        return next((acl for each in places if (acl := self.routes.acl_of(each))), None)

    def _same_zone(self, system: _System, clients: Sequence[InstanceGroup]) -> Proof:
        # the same list of subnets may be of several zones
        own = {each.key for each in system.places if not each.is_list}
        zone = next((self.subnets[key].zone for key in sorted(own) if key in self.subnets), "")
        here, apart, unclear = [], [], []
        for group in clients:
            if own & {each.key for each in group.subnets} or (zone and zone in group.zones):
                here.append(group.name)
            elif group.zones and _are_comparable([zone, *group.zones]):
                apart.append(group.name)
            else:
                unclear.append(group.name)
        where = zone if _are_comparable([zone]) else labels(system.places)
        if here:
            stand = f"{_few(here)} {_is_or_are(here)} in {where} with it"
            crossing = f"; data that {_few(apart)} {_reads(apart)} crosses zones, which costs" if apart else ""
            doubt = f"; where {_few(unclear)} {_is_or_are(unclear)} is unknown" if unclear else ""
            return _holds(SAME_ZONE, f"{stand}{crossing}{doubt}")
        if unclear:
            return _unknown(
                SAME_ZONE, f"whether {_few(unclear)} {_is_or_are(unclear)} in the zone of {where} is unknown"
            )
        slow = "and EFA does not leave a zone" if system.has_efa else "which costs and is slow"
        return _broken(SAME_ZONE, f"no instance group is in {where}: the data that they read crosses zones, {slow}")

    def _passes(self, system: _System, senders: Sequence[Part], receivers: Sequence[Part]) -> bool | None:
        """Return whether Lustre's traffic is possible from one side to the other, by the rules of both."""
        if not senders or not receivers:
            return None
        sides: tuple[tuple[Direction, Sequence[Part], Sequence[Part]], ...] = (
            ("out", senders, receivers),
            ("in", receivers, senders),
        )
        if system.has_efa:
            # by ID: an address block is not sufficient for EFA
            return all_of(
                any_of(self.rules.allows_all_of(each, side, peers) for each in own) for side, own, peers in sides
            )
        return all_of(
            self.rules.allows_ports(own, side, _LUSTRE_PORTS, peers=peers, cidrs=self._blocks(peers, system))
            for side, own, peers in sides
        )

    def _blocks(self, side: Sequence[Part], system: _System) -> list[str]:
        """Return the address blocks of resources with these security groups."""
        carried = {each.key for each in side}
        blocks = [block for key in sorted(carried) for block in self.standing.get(key, [])]
        if carried & {each.key for each in system.security_groups}:
            blocks += self.cidrs(system.places)
        return list(dict.fromkeys(blocks))

    def _why_unknown(self, groups: Sequence[Part], *sides: Direction) -> str:
        if not groups:
            return "the template names no security group"
        blurred = [each for each in groups if not all(self.rules.is_known(each, side) for side in sides)]
        return _why_unknown(blurred or groups, self.word)


_NEEDED: Final = tuple(
    row.service for row in catalog.ENDPOINTS if row.caller == catalog.NODES and not row.is_dispensable
)


_LUSTRE_PORTS: Final = tuple(port for first, last in lustre.TCP_PORTS for port in range(first, last + 1))


def _file_systems(assembly: Assembly) -> Iterator[_System]:
    for resource in assembly.of_type(FILE_SYSTEM):
        properties, stack = resource.properties, resource.stack
        kind = resolve(assembly, stack, properties.get("FileSystemType"))
        if exists(assembly, resource) is False or not (kind == "LUSTRE" or "LustreConfiguration" in properties):
            continue
        settings = resolve(assembly, stack, properties.get("LustreConfiguration"))
        places = parts(assembly, stack, properties.get("SubnetIds"))
        own = parts(assembly, stack, properties.get("SecurityGroupIds")) or _default_groups(assembly, places)
        efa = settings.get("EfaEnabled") if isinstance(settings, dict) else None
        yield _System(resource=resource, places=places, security_groups=own, has_efa=str(efa).lower() == "true")


def _default_groups(assembly: Assembly, places: Sequence[Part]) -> tuple[Part, ...]:
    """Return the security group that FSx uses if none is named: the default one of the VPC."""
    for place in places:
        if place.resource is not None and place.is_made_here(SUBNET):
            vpc = part(assembly, place.resource.stack, place.resource.properties.get("VpcId")).resource
            if vpc is not None:
                default = Reference(vpc.stack, vpc.logical_id, "DefaultSecurityGroup")
                return (resolved_part(assembly, vpc.stack, default),)
    return ()


def _has_efa(group: InstanceGroup) -> bool | None:
    rows = [instance_types.get(name) for name in group.types]
    return any_of(row.efa_supported if row else None for row in rows) if rows else None


def _is_accelerated(group: InstanceGroup) -> bool:
    return any(row is not None and row.is_accelerated for row in map(instance_types.get, group.types))


def _one_zone(group: InstanceGroup, word: str) -> Proof:
    places, zones = group.subnets, list(dict.fromkeys(group.zones))
    if not places:
        return _unknown(ONE_ZONE, "the template names no subnet for its nodes")
    if len(zones) == 1 and zones[0]:
        return _holds(ONE_ZONE, f"all its nodes are in {zones[0] if _are_comparable(zones) else 'one zone'}")
    if len(places) == 1:
        if places[0].is_made_here(SUBNET) or _SUBNET_ID.fullmatch(places[0].label):
            return _holds(ONE_ZONE, f"all its nodes are in one subnet, {places[0].label}")
        return _unknown(ONE_ZONE, _elsewhere(places, word))
    if _are_comparable(zones):
        return _broken(ONE_ZONE, f"its nodes are in {joined(zones)}: EFA traffic does not leave a zone")
    return _unknown(ONE_ZONE, f"whether {labels(places)} are in one zone is unknown")


def _plan_zone(group: InstanceGroup, sharing: Sequence[InstanceGroup]) -> Proof:
    names = _few([each.name for each in sharing])
    zones = list(dict.fromkeys(zone for each in sharing for zone in each.zones or ("",)))
    if len(zones) == 1 and zones[0]:
        return _holds(PLAN_ZONE, f"{names} are in {zones[0] if _are_comparable(zones) else 'one zone'}")
    places = {each.key: each for other in sharing for each in other.subnets}
    if len(places) == 1 and not any(each.is_list for each in places.values()):
        return _holds(PLAN_ZONE, f"{names} are in one subnet")
    if not _are_comparable(zones):
        return _unknown(PLAN_ZONE, f"whether {names} are in one zone is unknown")
    where = joined(zones)
    return _broken(PLAN_ZONE, f"{names} share {group.plan_name} and are in {where}: EFA traffic does not leave a zone")


def _are_comparable(zones: Sequence[str]) -> bool:
    """Return whether zones can be compared: all of them IDs, or all of them names."""
    return bool(zones) and (all(map(regions.is_az_id, zones)) or all(map(regions.is_az_name, zones)))


def _gravest(name: str, proofs: Sequence[Proof]) -> Proof:
    gravest: tuple[Literal["broken", "unknown", "holds"], ...] = ("broken", "unknown", "holds")
    for result in gravest:
        details = dict.fromkeys(proof.detail for proof in proofs if proof.result == result)
        if details:
            return Proof(name=name, result=result, detail="; ".join(details))
    return _unknown(name, "the template names no subnet for its nodes")


def _holds(name: str, detail: str) -> Proof:
    return Proof(name=name, result="holds", detail=detail)


def _broken(name: str, detail: str) -> Proof:
    return Proof(name=name, result="broken", detail=detail)


def _unknown(name: str, detail: str) -> Proof:
    return Proof(name=name, result="unknown", detail=detail)


def _why_unknown(groups: Sequence[Part], word: str) -> str:
    outside = [each for each in groups if each.resource is None]
    if outside:
        return _elsewhere(outside, word)
    return f"the templates do not show every rule of {labels(groups)}"


def _elsewhere(named: Sequence[Part], word: str) -> str:
    distinct = dict.fromkeys(each.label for each in named)
    return f"{labels(named)} {plural(len(distinct), 'is', 'are')} not in these templates; {_look(word)}"


def _on_from(way: Way, word: str) -> str:
    return (
        f"{way.why}; the templates do not show the route from there"
        if way.kind == "other"
        else f"{way.why}; {_look(word)}"
    )


def _look(word: str) -> str:
    return f"run 'hyperpod-cdk preflight {word}'"


def _no_way(way: Way, place: Part) -> str:
    if way.kind == "internet gateway":
        return f"{place.label} has a route to an internet gateway, which nodes without public addresses cannot use"
    return way.why


def _or(groups: Sequence[Part]) -> str:
    return listing(dict.fromkeys(each.label for each in groups))


def _few(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) > _MOST_NAMED:
        return f"{', '.join(distinct[:_MOST_NAMED])} and {len(distinct) - _MOST_NAMED} more"
    *most, last = distinct
    return f"{', '.join(most)} and {last}" if most else last


def _reads(names: Sequence[str]) -> str:
    return "reads" if len(names) == 1 else "read"


def _is_or_are(names: Sequence[str]) -> str:
    return plural(len(names), "is", "are")


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
