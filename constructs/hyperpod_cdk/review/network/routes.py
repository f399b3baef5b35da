"""How the traffic of a subnet leaves it: default routes, gateway and interface endpoints, network ACLs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from hyperpod_cdk.review.network.security_groups import ANYWHERE
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.groups import SUBNET, Part, exists, part, parts
from hyperpod_cdk.templates.values import is_known, plain, resolve

WayKind = Literal["NAT gateway", "internet gateway", "other", "none", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Way:
    """The target of a subnet's default route. ``why`` ends a sentence about it if it is not a working NAT gateway."""

    kind: WayKind
    target: Part | None = None
    why: str = ""

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be a way out, which the templates do not show."""
        return self.kind in {"other", "unknown"}


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A VPC endpoint of the templates; ``service`` is its service's name, ``""`` if it is a parameter.

    ``private_dns`` is None if the template leaves it to the service. ``is_certain`` is False if it depends on an
    unknown condition, ``is_open`` False if its policy may restrict it.
    """

    part: Part
    service: str
    is_gateway: bool
    vpc: Part
    tables: tuple[Part, ...] = ()
    subnets: tuple[Part, ...] = ()
    security_groups: tuple[Part, ...] = ()
    private_dns: bool | None = None
    is_certain: bool = True
    is_open: bool = True

    def is_for(self, service: str) -> bool:
        """Whether it is for this service, by the end of the service's name (``ecr.api``)."""
        return self.service.endswith(f".{service}")

    @property
    def is_for_any(self) -> bool:
        """Whether it may be for any service, because only the deployment knows the end of its name."""
        return not self.service or self.service.endswith("}")


@dataclass(frozen=True)
class Routes:
    """Route tables, endpoints and network ACLs of an assembly."""

    assembly: Assembly

    @cached_property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Every VPC endpoint of the templates."""
        return tuple(
            _endpoint(self.assembly, resource)
            for resource in self.assembly.of_type("AWS::EC2::VPCEndpoint")
            if exists(self.assembly, resource) is not False
        )

    def of_vpc(self, vpc: Part | None) -> tuple[Endpoint, ...]:
        """Return the endpoints of a VPC, none if the VPC is unknown."""
        if vpc is None:
            return ()
        own = [each for each in self.endpoints if each.vpc.key == vpc.key]
        others = [each for each in self.endpoints if each.vpc.key != vpc.key]
        passed_on = [each for each in others if each.vpc.is_passed_on or vpc.is_passed_on]
        return (*own, *(replace(each, is_certain=False) for each in passed_on))

    def table_of(self, subnet: Part) -> Part | None:
        """Return the route table of a subnet, None if the templates associate none."""
        return self._associations.get(subnet.key)

    def way_out(self, subnet: Part) -> Way:
        """Return the target of a subnet's default route, and whether it is a way to AWS's public endpoints."""
        way = self._default_route(subnet)
        if way.kind != "NAT gateway" or way.target is None:
            return way
        gateway = way.target
        if gateway.resource is None:
            return Way(kind="unknown", target=gateway, why=f"{gateway.label} is not in these templates")
        stated = gateway.resource.properties.get("ConnectivityType", "public")
        kind = resolve(self.assembly, gateway.resource.stack, stated)
        if kind != "public":
            said = plain(kind) if is_known(kind) else f"private or public ({plain(kind)})"
            return Way(
                kind="unknown", target=gateway, why=f"{gateway.label} is {said}, and its further route is unknown"
            )
        home = part(self.assembly, gateway.resource.stack, gateway.resource.properties.get("SubnetId"))
        behind = self._default_route(home)
        if behind.kind == "internet gateway":
            return way
        why = f"{gateway.label} is in {home.label}, which has no route to an internet gateway"
        return Way(kind="unknown" if behind.kind in {"unknown", "other"} else "none", target=gateway, why=why)

    def acl_of(self, subnet: Part) -> Part | None:
        """Return the network ACL that may stop traffic of a subnet; None if there is none.

        A VPC's default ACL allows everything, and so does one whose first rule on each side does.
        """
        acl = self._acls.get(subnet.key)
        return None if acl is None or acl.key in self._open_acls else acl

    def _default_route(self, subnet: Part) -> Way:
        if not subnet.is_made_here(SUBNET):
            return Way(kind="unknown", why=f"{subnet.label} is not in these templates")
        table = self.table_of(subnet)
        if table is None:
            if self._has_stray_association:
                return Way(kind="unknown", why=f"the route table of {subnet.label} is unknown")
            return Way(kind="none", why=f"{subnet.label} has no route table of its own, and the VPC's has no way out")
        # a route that may be of any table may be of this one
        routes = self._routes.get(table.key) or (self._routes.get(None) if table.is_made_here(_TABLE) else None)
        if routes:
            return routes[0]
        if not table.is_made_here(_TABLE):
            return Way(kind="unknown", why=f"route table {table.label} is not in these templates")
        return Way(kind="none", why=f"{table.label} has no default route")

    @cached_property
    def _associations(self) -> dict[str, Part]:
        found: dict[str, Part] = {}
        for resource in self.assembly.of_type("AWS::EC2::SubnetRouteTableAssociation"):
            made = exists(self.assembly, resource)
            if made is False:
                continue
            subnet, table = (_named(self.assembly, resource, name) for name in ("SubnetId", "RouteTableId"))
            if made is None:
                said = f"of {resource.name}, which depends on a condition,"
                table = Part(key=f"{resource.stack}:{resource.logical_id}?", label=said, is_known=False)
            # of two that depend on a condition, either may be the one
            if subnet.key not in found or found[subnet.key].is_known:
                found[subnet.key] = table
        return found

    @cached_property
    def _has_stray_association(self) -> bool:
        made = {part(self.assembly, each.stack, {"Ref": each.logical_id}).key for each in self.assembly.of_type(SUBNET)}
        return any(key not in made for key in self._associations)

    @cached_property
    def _routes(self) -> dict[str | None, list[Way]]:
        """Return the default routes by their table's key, None for those that may be of any table."""
        found: dict[str | None, list[Way]] = {}
        for resource in self.assembly.of_type("AWS::EC2::Route"):
            made = exists(self.assembly, resource)
            destination = resolve(self.assembly, resource.stack, resource.properties.get("DestinationCidrBlock"))
            if made is False or not (destination == ANYWHERE or not is_known(destination)):
                continue
            table = _named(self.assembly, resource, "RouteTableId")
            way = _way(self.assembly, resource)
            doubt = Way(kind="unknown", why=f"the route {resource.name} depends on a condition or parameter")
            found.setdefault(table.key, []).append(way if made and destination == ANYWHERE else doubt)
            if not table.is_known:
                found.setdefault(None, []).append(doubt)
        return found

    @cached_property
    def _acls(self) -> dict[str, Part]:
        return {
            _named(self.assembly, resource, "SubnetId").key: _named(self.assembly, resource, "NetworkAclId")
            for resource in self.assembly.of_type("AWS::EC2::SubnetNetworkAclAssociation")
            if exists(self.assembly, resource) is not False
        }

    @cached_property
    def _open_acls(self) -> frozenset[str]:
        entries: dict[tuple[str, bool], list[tuple[int, bool]]] = {}
        for resource in self.assembly.of_type("AWS::EC2::NetworkAclEntry"):
            acl = _named(self.assembly, resource, "NetworkAclId")
            body = resolve(self.assembly, resource.stack, dict(resource.properties))
            is_open = (
                str(body.get("Protocol")) == "-1"
                and body.get("CidrBlock") == ANYWHERE
                and body.get("RuleAction") == "allow"
                and exists(self.assembly, resource) is True
            )
            number = str(body.get("RuleNumber"))
            order = int(number) if number.isdecimal() else -1
            entries.setdefault((acl.key, str(body.get("Egress")).lower() == "true"), []).append((order, is_open))
        return frozenset(
            key
            for key in {acl for acl, _ in entries}
            if all(min(entries.get((key, side), [(0, False)]))[1] for side in (True, False))
        )


_TABLE: Final = "AWS::EC2::RouteTable"
_TARGETS: Final[Mapping[str, WayKind]] = {
    "NatGatewayId": "NAT gateway",
    "GatewayId": "internet gateway",
    "TransitGatewayId": "other",
    "VpcPeeringConnectionId": "other",
    "VpcEndpointId": "other",
    "NetworkInterfaceId": "other",
    "InstanceId": "other",
    "CarrierGatewayId": "other",
    "LocalGatewayId": "other",
    "CoreNetworkArn": "other",
}


def _way(assembly: Assembly, route: Resource) -> Way:
    for name, usual in _TARGETS.items():
        if name not in route.properties:
            continue
        target = _named(assembly, route, name)
        is_internet = target.is_made_here("AWS::EC2::InternetGateway") or target.label.startswith("igw-")
        # a gateway can also be a virtual private one
        kind: WayKind = "other" if usual == "internet gateway" and not is_internet else usual
        if kind == "other":
            return Way(
                kind=kind,
                target=target,
                why=f"the default route leads to {target.label}",
            )
        return Way(kind=kind, target=target)
    return Way(kind="unknown", why=f"the route {route.name} has no target that is known here")


def _named(assembly: Assembly, resource: Resource, name: str) -> Part:
    return part(assembly, resource.stack, resource.properties.get(name))


def _endpoint(assembly: Assembly, resource: Resource) -> Endpoint:
    properties, stack = resource.properties, resource.stack
    service = resolve(assembly, stack, properties.get("ServiceName"))
    # the type's default if it is omitted
    kind = resolve(assembly, stack, properties.get("VpcEndpointType", "Gateway"))
    private_dns = resolve(assembly, stack, properties.get("PrivateDnsEnabled"))
    return Endpoint(
        part=part(assembly, stack, {"Ref": resource.logical_id}),
        service=plain(service) if isinstance(service, str) else "",
        is_gateway=kind == "Gateway",
        vpc=_named(assembly, resource, "VpcId"),
        tables=parts(assembly, stack, properties.get("RouteTableIds")),
        subnets=parts(assembly, stack, properties.get("SubnetIds")),
        security_groups=parts(assembly, stack, properties.get("SecurityGroupIds")),
        private_dns=_truth(private_dns),
        is_certain=exists(assembly, resource) is True,
        is_open=_is_open(resolve(assembly, stack, properties.get("PolicyDocument"))),
    )


def _is_open(policy: Any) -> bool:
    """Whether an endpoint's policy is the default one, which allows everything to everyone."""
    if policy is None:
        return True
    stated = policy.get("Statement") if isinstance(policy, dict) else None
    written = stated if isinstance(stated, list) else [stated]
    statements = [each for each in written if isinstance(each, dict) and each.get("Effect") == "Allow"]
    return len(statements) == len(written) and any(
        each.get("Principal") in ("*", {"AWS": "*"})
        and each.get("Action") in ("*", ["*"])
        and each.get("Resource") in ("*", ["*"])
        and not each.get("Condition")
        for each in statements
    )


def _truth(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(value).lower())


def labels(named: Sequence[Part]) -> str:
    """List parts for a sentence, in their order."""
    return ", ".join(dict.fromkeys(each.label for each in named))
