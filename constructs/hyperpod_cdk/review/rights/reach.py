"""What can reach what over the network, one side at a time, in terms that both sides share."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from hyperpod_cdk.catalog.network import is_all_traffic
from hyperpod_cdk.review.changes.circumstances import is_within
from hyperpod_cdk.review.rights import words
from hyperpod_cdk.review.rights.statements import items, may_be, names_below, text
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, is_unknown, noun, place_of
from hyperpod_cdk.templates.assembly import Resource

ANYWHERE: Final = ("0.0.0.0/0", "::/0")
_NARROWEST: Final = {4: 8, 6: 16}
"""The prefix from which on a block is no longer the internet: with the 60 rules that a security group has by default,
such blocks cannot cover half of the internet."""
_ONE_OWNER: Final = {4: 16, 6: 32}
"""The largest block that registries usually give to one network operator; a larger one counts as unknown parties."""
_PROTOCOLS: Final = {"-1": "all", "6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6"}
_PORTS: Final = (0, 65535)
_DIRECTIONS: Final = {
    "in": ("SecurityGroupIngress", "AWS::EC2::SecurityGroupIngress", "Source"),
    "out": ("SecurityGroupEgress", "AWS::EC2::SecurityGroupEgress", "Destination"),
}
_ROUTES: Final = {
    "GatewayId": "internet gateway",
    "EgressOnlyInternetGatewayId": "egress-only internet gateway",
    "NatGatewayId": "NAT gateway",
    "TransitGatewayId": "transit gateway",
    "VpcPeeringConnectionId": "VPC peering",
    "VpcEndpointId": "VPC endpoint",
    "CarrierGatewayId": "carrier gateway",
    "LocalGatewayId": "local gateway",
    "CoreNetworkArn": "core network",
    "NetworkInterfaceId": "network interface",
    "InstanceId": "instance",
}
_BLOCKS: Final = {
    "BlockPublicAcls": "accepts public ACLs",
    "BlockPublicPolicy": "accepts a public policy",
    "IgnorePublicAcls": "applies public ACLs",
    "RestrictPublicBuckets": "answers other accounts if its policy is public",
}
_ATTACHMENTS: Final = ("AWS::EC2::TransitGatewayAttachment", "AWS::EC2::TransitGatewayVpcAttachment")
_PUBLIC_ACLS: Final = {"PublicRead": "read", "PublicReadWrite": "read and write"}

Ports = tuple[int, int]


_PeerKind = Literal["", "security group", "prefix list"]


class Rule(NamedTuple):
    """A security group's rules of one protocol with one peer; ``detail`` contains what is not a range of ports."""

    group: str
    direction: str
    protocol: str
    detail: str
    peer: str
    kind: _PeerKind = ""
    """What the peer is, empty for an address block."""


class Path(NamedTuple):
    """The target of a subnet's, or a route table's, packets for a destination."""

    destination: str
    kind: str
    target: str


class Opening(NamedTuple):
    """One more way in or out, with the words for its gain and for its loss."""

    gained: str
    lost: str
    is_world: bool
    place: Place
    is_grave: bool = False
    of: str = ""
    """It is high-risk only if the base has this token; empty if it is in any case."""
    properties: tuple[str, ...] = ()
    guards: bool = False
    """Whether it blocks traffic, so that its loss opens a way."""


@dataclass
class Network:
    """What one side allows."""

    rules: dict[Rule, list[tuple[Ports, Place]]] = field(default_factory=dict)
    paths: dict[Path, dict[str, Place]] = field(default_factory=dict)
    """The subnets and route tables, by token, that have a path."""
    openings: dict[tuple[str, ...], Opening] = field(default_factory=dict)
    without_egress: set[str] = field(default_factory=set)
    """Security groups without a rule for egress."""
    separate_egress: dict[str, Place] = field(default_factory=dict)
    """The first egress rule that is a resource of its own, by security group.

    CloudFormation removes the group's rule for all IPv4 traffic before it creates such a rule."""
    doubtful: set[Rule] = field(default_factory=set)
    """The rules for all IPv4 traffic that only the group itself states, and that it may lose for that reason."""
    groups: set[str] = field(default_factory=set)
    unread: dict[Place, list[str]] = field(default_factory=dict)


def network(view: View) -> Network:
    """Read one side."""
    return _Reader(view).read()


def is_denied(rule: tuple[str, ...], openings: Iterable[tuple[str, ...]]) -> bool:
    """Whether one of these rules in a network ACL denies all that a rule denied, and is evaluated no later.

    Rules are evaluated from the lowest number on (VPC user guide, "Network ACL rules").
    """
    return any(_denies(each, rule) for each in openings if each[:1] == rule[:1] == ("acl",))


def _denies(wide: tuple[str, ...], rule: tuple[str, ...]) -> bool:
    _, acl, is_out, number, action, protocol, detail, block = wide
    if (acl, is_out, action) != (rule[1], rule[2], rule[4]) or not (
        block == rule[7] or is_within(cidr(block), cidr(rule[7]))
    ):
        return False
    if number != rule[3] and not (number.isdecimal() and rule[3].isdecimal() and int(number) <= int(rule[3])):
        return False
    if protocol == "all" or (protocol, detail) == rule[5:7]:
        return True
    (low, high), (from_, to) = (_ends(each) for each in (detail, rule[6]))
    return protocol == rule[5] and low <= from_ <= to <= high


def _ends(detail: str) -> Ports:
    """Return the ports of a network ACL's rule: all if it states none, none if they are unknown."""
    if not detail:
        return _PORTS
    low, _, high = detail.partition("-")
    return (int(low), int(high or low)) if low.isdecimal() and (high or low).isdecimal() else (1, 0)


def cidr(value: str) -> str:
    """Return an address block as EC2 stores it, without host bits; any other text as it is."""
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        return value


def is_internet(block: str) -> bool:
    """Whether an address block is the internet, or so much of it that a few such blocks are all of it."""
    try:
        network = ipaddress.ip_network(block, strict=False)
    except ValueError:
        return False
    return network.prefixlen < _NARROWEST[network.version] and not network.is_private


def is_wide(block: str) -> bool:
    """Whether an address block has more public addresses than one owner usually has: 65536 of IPv4, a /32."""
    try:
        network = ipaddress.ip_network(block, strict=False)
    except ValueError:
        return False
    return network.prefixlen < _ONE_OWNER[network.version] and not network.is_private


def is_shown(peer: str) -> bool:
    """Whether the templates show which addresses these are: a block, or those of a resource of their own."""
    if TOKEN.fullmatch(peer):
        return True
    try:
        ipaddress.ip_network(peer, strict=False)
    except ValueError:
        return False
    return True


def difference(minuend: Iterable[Ports], subtrahend: Iterable[Ports]) -> list[Ports]:
    """Return the ports of the first that are not of the second, as few ranges."""
    left = _merged(minuend)
    for low, high in _merged(subtrahend):
        cut: list[Ports] = []
        for first, last in left:
            if high < first or last < low:
                cut.append((first, last))
                continue
            if first < low:
                cut.append((first, low - 1))
            if high < last:
                cut.append((high + 1, last))
        left = cut
    return left


def traffic(protocol: str, detail: str, ports: Ports) -> str:
    """Return what a rule allows: ``all traffic``, ``tcp 443``, ``udp 1024-2048``, ``icmp type 8``."""
    if protocol == "all":
        return "all traffic"
    if protocol not in ("tcp", "udp"):
        return f"{protocol}{f' {detail}' if detail else ''}"
    if detail:
        return f"{protocol} {detail}"
    low, high = ports
    if ports == _PORTS:
        return f"all {protocol}"
    return f"{protocol} {low}" if low == high else f"{protocol} {low}-{high}"


def peer_name(view: View, rule: Rule) -> str:
    """Return the other side of a rule: ``itself``, a security group, a prefix list, an address block."""
    if rule.peer == rule.group:
        return "itself"
    if rule.peer in ANYWHERE:
        return f"any address ({rule.peer})"
    return f"{rule.kind} {rule.peer}" if rule.kind and not TOKEN.search(rule.peer) else token_name(view, rule.peer)


def group_properties(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names, at any depth, of the properties that add a resource to security groups."""
    return names_below(properties, _names_groups)


def _names_groups(key: str) -> bool:
    return key.endswith(("SecurityGroupIds", "SecurityGroups", "SecurityGroupNames")) or key == "GroupSet"


def security_groups(properties: Mapping[str, Any]) -> set[str]:
    """Return the security groups anywhere in a resource's properties, by token or ID."""
    found: set[str] = set()
    pending: list[Any] = [properties]
    while pending:
        value = pending.pop()
        for key, item in value.items() if isinstance(value, dict) else ():
            if _names_groups(key):
                found.update(_id(each) for each in items(item))
            else:
                pending.append(item)
        pending += value if isinstance(value, list) else ()
    return found


def token_name(view: View, value: str, *, with_stack: bool = True) -> str:
    """Return a resource by name, anything else as it is."""
    found = TOKEN.fullmatch(value)
    return view.label((found[1], found[2]), with_stack=with_stack) if found else words.shown(view, value)


def _id(value: Any) -> str:
    found = TOKEN.fullmatch(written := text(value))
    return f"${{{found[1]}/{found[2]}}}" if found else written


def _is_removable(rule: Rule) -> bool:
    """Whether CloudFormation removes this rule of a group before it creates a separate one."""
    return rule.direction == "out" and is_all_traffic("-1" if rule.protocol == "all" else rule.protocol, rule.peer)


def _merged(ranges: Iterable[Ports]) -> list[Ports]:
    merged: list[Ports] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


class _Reader:
    def __init__(self, view: View) -> None:
        self.view = view
        self.found = Network()

    def read(self) -> Network:
        self._security_groups()
        self._routes()
        for resource in self.view.of_type("AWS::EC2::VPCEndpoint"):
            self._endpoint(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::EC2::NetworkAclEntry"):
            self._acl_entry(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::EC2::SubnetNetworkAclAssociation"):
            self._acl_of(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::EC2::VPCPeeringConnection"):
            self._peering(resource, self.view.properties(resource))
        for resource in self.view.of_type(*_ATTACHMENTS):
            properties = self.view.properties(resource)
            vpc, gateway = _id(properties.get("VpcId")), _id(properties.get("TransitGatewayId"))
            gateway_name = f"transit gateway {token_name(self.view, gateway)}"
            what = f"attached to {gateway_name}"
            self._open(resource, ("attachment", vpc, gateway), self._name(vpc), what, is_grave=True)
        for resource in self.view.of_type("AWS::EKS::Cluster"):
            self._api_server(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::S3::Bucket"):
            self._bucket(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::ElasticLoadBalancingV2::LoadBalancer"):
            if may_be(self.view.properties(resource).get("Scheme", "internet-facing"), "internet-facing"):
                token = self.view.token(resource)
                words_ = "reachable from the internet"
                self._open(resource, ("load balancer", token), self._name(token), words_, is_world=True, is_grave=True)
        for resource in self.view.of_type("AWS::Lambda::Url"):
            properties = self.view.properties(resource)
            if may_be(properties.get("AuthType"), "NONE"):
                function = _id(properties.get("TargetFunctionArn"))
                words_ = "callable by any address through its URL, without IAM"
                self._open(resource, ("url", function), self._name(function), words_, is_world=True, is_grave=True)
        return self.found

    def _name(self, token: str) -> str:
        return token_name(self.view, token)

    def _open(
        self,
        resource: Resource,
        key: tuple[str, ...],
        who: str,
        words_: str,
        *,
        is_world: bool = False,
        is_grave: bool = False,
        of: str = "",
        verb: str = "is",
        properties: tuple[str, ...] = (),
    ) -> None:
        lost = f"{who} {'is no longer' if verb == 'is' else f'no longer {verb}'} {words_}"
        gained, place = f"{who} {verb} {words_}", place_of(resource)
        opening = Opening(gained, lost, is_world, place, is_grave, of, properties, guards=verb == "denies")
        self.found.openings.setdefault(key, opening)

    def _security_groups(self) -> None:
        for direction, (_, type_, _) in _DIRECTIONS.items():
            for resource in self.view.of_type(type_):
                properties = self.view.properties(resource)
                group = _id(properties.get("GroupId") or properties.get("GroupName"))
                self._rule(resource, group, direction, properties)
                if direction == "out":
                    self.found.separate_egress.setdefault(group, place_of(resource))
        separate = set(self.found.rules)
        for resource in self.view.of_type("AWS::EC2::SecurityGroup"):
            properties, group = self.view.properties(resource), self.view.token(resource)
            self.found.groups.add(group)
            for direction, (name, _, _) in _DIRECTIONS.items():
                for rule in items(properties.get(name)):
                    if isinstance(rule, dict):
                        stated = self._rule(resource, group, direction, rule)
                        if group in self.found.separate_egress:
                            self.found.doubtful.update(each for each in stated if _is_removable(each))
                    else:
                        said = words.shown(self.view, text(rule))
                        self.found.unread.setdefault(place_of(resource), []).append(said)
                        if is_unknown(text(rule)):
                            self._open(
                                resource,
                                ("unread", group, direction, said),
                                self._name(group),
                                f"what only the deployment shows: {said}",
                                is_grave=direction == "in",
                                verb=f"lets {direction}",
                            )
            if not items(properties.get("SecurityGroupEgress")) and group not in self.found.separate_egress:
                self.found.without_egress.add(group)
        self.found.doubtful -= separate

    def _rule(self, resource: Resource, group: str, direction: str, rule: Mapping[str, Any]) -> list[Rule]:
        stated = text(rule.get("IpProtocol", "-1")).lower()
        protocol = _PROTOCOLS.get(stated, stated)
        low, high = text(rule.get("FromPort", "")), text(rule.get("ToPort", ""))
        ports, detail = _PORTS, ""
        if protocol in ("tcp", "udp"):
            if (low, high) not in (("", ""), ("-1", "-1")):
                if low.isdecimal() and high.isdecimal():
                    ports = (int(low), int(high))
                else:
                    detail = low if low == high else f"{low}-{high}"
        elif protocol in ("icmp", "icmpv6"):
            kind = "" if low in ("", "-1") else f"type {low}"
            detail = f"{kind} code {high}" if kind and high not in ("", "-1") else kind
        peers = self._peers(rule, _DIRECTIONS[direction][2])
        found = [Rule(group, direction, protocol, detail, *peer) for peer in peers]
        for each in found:
            self.found.rules.setdefault(each, []).append((ports, place_of(resource)))
        return found

    def _peers(self, rule: Mapping[str, Any], other: str) -> Iterator[tuple[str, _PeerKind]]:
        for name in ("CidrIp", "CidrIpv6"):
            if name in rule:
                yield cidr(text(rule[name])), ""
        for name in (f"{other}SecurityGroupId", f"{other}SecurityGroupName"):
            if name in rule:
                yield _id(rule[name]), "security group"
        for name in ("SourcePrefixListId", "DestinationPrefixListId"):
            if name in rule:
                yield _id(rule[name]), "prefix list"

    def _routes(self) -> None:
        subnets: dict[str, list[tuple[str, Resource]]] = {}
        for resource in self.view.of_type("AWS::EC2::SubnetRouteTableAssociation"):
            properties = self.view.properties(resource)
            table, subnet = _id(properties.get("RouteTableId")), _id(properties.get("SubnetId"))
            subnets.setdefault(table, []).append((subnet, resource))
            if self.view.find(table) is None:
                what = f"route table {self._name(table)}, which may have routes that are in no template"
                self._open(
                    resource, ("table", subnet, table), self._name(subnet), what, is_grave=True, of=subnet, verb="uses"
                )
        for resource in self.view.of_type("AWS::EC2::Route"):
            properties = self.view.properties(resource)
            table = _id(properties.get("RouteTableId"))
            names = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
            destination = next((cidr(_id(properties[name])) for name in names if name in properties), "?")
            for name, kind in _ROUTES.items():
                if name in properties:
                    gateway = _id(properties[name])
                    found = self.view.find(gateway)
                    path = Path(destination, noun(found.type) if found else kind, gateway)
                    self._path(resource, path, subnets.get(table, [(table, resource)]))
        for resource in self.view.of_type("AWS::EC2::VPCEndpoint"):
            properties = self.view.properties(resource)
            for value in items(properties.get("RouteTableIds")):
                table = _id(value)
                service = text(properties.get("ServiceName"))
                path = Path(service, "gateway endpoint", "")
                self._path(resource, path, subnets.get(table, [(table, resource)]))
        public = {subnet for path, found in self.found.paths.items() if _is_internet(path) for subnet in found}
        for resource in self.view.of_type("AWS::EC2::Subnet"):
            if text(self.view.properties(resource).get("MapPublicIpOnLaunch", False)) != "false":
                token = self.view.token(resource)
                is_world = token in public
                what = "public addresses to resources that start in it"
                self._open(
                    resource,
                    ("public", token),
                    self._name(token),
                    what,
                    is_world=is_world,
                    is_grave=True,
                    of=token,
                    verb="gives",
                )

    def _path(self, resource: Resource, path: Path, origins: Iterable[tuple[str, Resource]]) -> None:
        found = self.found.paths.setdefault(path, {})
        for origin, association in origins:
            found.setdefault(origin, self.view.cause(resource, association))

    def _endpoint(self, resource: Resource, properties: dict[str, Any]) -> None:
        kind = text(properties.get("VpcEndpointType", "Gateway"))
        # a gateway endpoint exists only for the route tables that name it
        if kind != "Gateway":
            service, vpc = text(properties.get("ServiceName")), _id(properties.get("VpcId"))
            what = f"{words.shown(self.view, service)} through {'an' if kind[:1] in 'AEIOU' else 'a'} {kind} endpoint"
            self._open(resource, ("endpoint", vpc, service, kind), self._name(vpc), what, verb="reaches")

    def _acl_entry(self, resource: Resource, properties: dict[str, Any]) -> None:
        stated = text(properties.get("Protocol", "-1")).lower()
        protocol = _PROTOCOLS.get(stated, stated)
        stated_range = properties.get("PortRange")
        ports = stated_range if isinstance(stated_range, dict) else {}
        low, high = text(ports.get("From", "0")), text(ports.get("To", "65535"))
        detail = "" if (low, high) == ("0", "65535") else low if low == high else f"{low}-{high}"
        blocks = [cidr(text(properties[name])) for name in ("CidrBlock", "Ipv6CidrBlock") if name in properties]
        block = blocks[0] if blocks else "?"
        is_out = text(properties.get("Egress", False)) == "true"
        action = text(properties.get("RuleAction")).lower()
        acl, number = _id(properties.get("NetworkAclId")), text(properties.get("RuleNumber"))
        what = (
            f"{traffic(protocol, detail, _PORTS)} {'to' if is_out else 'from'} "
            f"{f'any address ({block})' if block in ANYWHERE else block} (rule {number})"
        )
        key = ("acl", acl, str(is_out), number, action, protocol, detail, block)
        is_allowed = may_be(action, "allow")
        is_world = block in ANYWHERE and is_allowed
        verb = "allows" if is_allowed else "denies"
        is_grave = is_allowed and not is_out and (is_wide(block) or is_unknown(block))
        who = self._name(acl) if TOKEN.search(acl) else f"network ACL {acl}"
        self._open(resource, key, who, what, is_world=is_world, is_grave=is_grave, of=acl, verb=verb)

    def _acl_of(self, resource: Resource, properties: dict[str, Any]) -> None:
        acl, subnet = _id(properties.get("NetworkAclId")), _id(properties.get("SubnetId"))
        entries = [each for key, each in self.found.openings.items() if key[:2] == ("acl", acl)]
        is_here = self.view.find(acl) is not None
        self._open(
            resource,
            ("acl of", subnet, acl),
            self._name(subnet),
            self._name(acl)
            if is_here
            else f"network ACL {self._name(acl)}, which may have rules that are in no template",
            is_world=any(each.is_world for each in entries),
            is_grave=not is_here or any(each.is_grave for each in entries),
            of=subnet,
            verb="uses",
        )

    def _peering(self, resource: Resource, properties: dict[str, Any]) -> None:
        vpc, peer = _id(properties.get("VpcId")), _id(properties.get("PeerVpcId"))
        owner, region = text(properties.get("PeerOwnerId", "")), text(properties.get("PeerRegion", ""))
        where = "".join(
            [f" of account {owner}" if properties.get("PeerOwnerId") else "", f" in {region}" if region else ""]
        )
        what = f"with {self._name(peer) if TOKEN.fullmatch(peer) else f'VPC {peer}'}{where}"
        self._open(resource, ("peering", vpc, peer, owner, region), self._name(vpc), what, is_grave=True, verb="peers")

    def _api_server(self, resource: Resource, properties: dict[str, Any]) -> None:
        stated = properties.get("ResourcesVpcConfig")
        config = stated if isinstance(stated, dict) else {}
        token = self.view.token(resource)
        who = f"the API server of {token_name(self.view, token, with_stack=False)}"
        if text(config.get("EndpointPublicAccess", True)) != "false":
            for each in items(config.get("PublicAccessCidrs")) or [ANYWHERE[0]]:
                block = cidr(text(each))
                is_world = is_internet(block) or is_wide(block)
                name = f"any address ({block})" if block in ANYWHERE else words.shown(self.view, block)
                what = f"{name} over the internet"
                key = ("api", token, block)
                self._open(
                    resource,
                    key,
                    who,
                    what,
                    is_world=is_world,
                    # addresses that no template shows can be any
                    is_grave=is_world or not is_shown(block),
                    of=token,
                    verb="answers to",
                    properties=("EndpointPublicAccess", "PublicAccessCidrs"),
                )
        if text(config.get("EndpointPrivateAccess", False)) == "true":
            what, by = "its VPC, by a private address", ("EndpointPrivateAccess",)
            self._open(resource, ("api", token, "private"), who, what, verb="answers to", properties=by)

    def _bucket(self, resource: Resource, properties: dict[str, Any]) -> None:
        token = self.view.token(resource)
        stated = properties.get("PublicAccessBlockConfiguration")
        # S3 blocks all public access of a bucket by default; one that states a block allows what it omits
        if stated is not None:
            for name, what in _BLOCKS.items():
                if not isinstance(stated, dict) or text(stated.get(name, False)) != "true":
                    verb, _, rest = what.partition(" ")
                    key = ("bucket", token, name)
                    off = f"{rest} ({name} is off)"
                    self._open(resource, key, self._name(token), off, is_world=True, is_grave=True, verb=verb)
        stated_acl = text(properties.get("AccessControl", ""))
        if (
            acl := ("read, or write, depending on a value of the deployment")
            if "${" in stated_acl or is_unknown(stated_acl)
            else _PUBLIC_ACLS.get(stated_acl)
        ):
            what = f"anyone {acl} (ACL {text(properties['AccessControl'])})"
            self._open(
                resource, ("acl", token, acl), self._name(token), what, is_world=True, is_grave=True, verb="lets"
            )


def _is_internet(path: Path) -> bool:
    return path.destination in ANYWHERE and path.kind == "internet gateway"
