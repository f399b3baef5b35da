"""The VPC of a HyperPod cluster, new or existing: node subnets by availability zone ID, and EFA's security group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import jsii
from aws_cdk import CfnResource, CfnTag, IStableStringProducer, Lazy, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, DependencyGroup, IDependable

from hyperpod_cdk.catalog import network as rules
from hyperpod_cdk.catalog import regions, tags
from hyperpod_cdk.catalog.network import GROUP_DESCRIPTION
from hyperpod_cdk.catalog.rules import repeated, repeated_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import acknowledge_log_group
from hyperpod_cdk.common.stack_arns import HERE, id_of
from hyperpod_cdk.config import network as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for, refuse_unlike

_ANYWHERE = "0.0.0.0/0"
_ALL = "-1"
_INTERNAL_LOAD_BALANCERS = {rules.INTERNAL_LOAD_BALANCER_TAG: "1"}
"""On one subnet of every zone: if subnets have the tag, the AWS Load Balancer Controller uses no others (its
documentation, "Subnet Auto-Discovery"), and targets in a zone that a load balancer does not enable get no traffic
(Application Load Balancers user guide, "Subnets for your load balancer"; both read 2026-11-28)."""


@judged(
    known=(
        "vpc_cidr",
        "availability_zones",
        "nat_gateways",
        "control_plane_zones",
        "endpoint_zones",
        "file_system_zones",
    )
)
class Network(Construct):
    """A VPC whose subnets are pinned to availability zone IDs.

    ``availability_zones`` maps AZ IDs to the secondary CIDR block that becomes the whole node subnet of that zone.
    ``vpc_cidr`` (/16 to /24) is divided into sixteen equal slots, never larger than a /24 nor smaller than a /28: the
    control plane's subnet in the n-th zone is the n-th slot from the bottom, the public subnet of the n-th NAT gateway
    the n-th from the top. Both are only in the first zones, so appending a zone moves nothing; a new order does.

    The first ``control_plane_zones`` zones are for the EKS control plane, a set that EKS does not allow to change
    later. A NAT gateway is in each of the first ``nat_gateways`` zones, 1 by default; other zones use the first one.
    Internal load balancers of Kubernetes get the subnets of the control plane, and in further zones those of the nodes.

    With ``egress="closed"`` there is no route to the internet: no internet gateway, public subnet, NAT gateway or
    default route. S3 uses the gateway endpoint, everything else ``InterfaceEndpoints`` in ``endpoint_subnet_ids``: the
    control plane's own subnets in its zones, else a subnet only for endpoints, which is the n-th slot from the bottom
    in the n-th zone. They are never the nodes' subnets, whose blocks are sized for nodes and pods.

    ``flow_logs`` are sent to a log group with a generated name, which is retained.

    ``file_system_zones`` are the zones with file systems in their node subnets that are retained when their stack is
    deleted. Their interfaces use subnet, block and VPC, which EC2 then refuses to delete; so only these are retained.
    ``retain`` retains VPC, node subnets and blocks of all zones, for file systems that remain from a deleted stack.

    ``vpc_cidr`` (str): IPv4 block of the VPC, /16 to /24. Raises ValueError for another block, and for a token.

    ``availability_zones`` (Mapping[str, str]): AZ ID -> IPv4 block of the zone's node subnet; the first ones are for
    the control plane. Raises ValueError for fewer than two zones, the name of a zone, a zone of another region, a zone
    that EKS does not allow for the control plane among the first ones, and blocks that the VPC cannot have together.

    ``nat_gateways`` (int, gateways): number of NAT gateways, at most one for each zone. Default: 1; none in a closed
    network. Raises ValueError for another number, and in a closed network for any.

    ``flow_logs`` (bool): whether flows are logged for 90 days. Default: yes.

    ``control_plane_zones`` (int, zones): number of zones for the control plane. Default: 2. Raises ValueError for fewer
    than 2, and for more than ``availability_zones`` has.

    ``egress`` ("nat" | "closed"): whether nodes reach the internet through NAT gateways, or there is no route to the
    internet. Default: ``nat``. Raises ValueError for another value.

    ``endpoint_zones`` (Sequence[str]): AZ IDs whose subnets get interface endpoints, in a closed network. Default: all
    zones. Raises ValueError for an empty list, a repeated zone, one that is not in ``availability_zones``, and any with
    ``egress="nat"``.

    ``file_system_zones`` (Sequence[str]): AZ IDs with file systems, whose subnets are retained. Default: none. Raises
    ValueError for one that is not in ``availability_zones``.

    ``retain`` (bool): whether the whole network is retained. Default: no.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_cidr: str,
        availability_zones: Mapping[str, str],
        nat_gateways: int | None = None,
        flow_logs: bool = True,
        control_plane_zones: int = 2,
        egress: Literal["nat", "closed"] = "nat",
        endpoint_zones: Sequence[str] | None = None,
        file_system_zones: Sequence[str] = (),
        retain: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        is_closed = egress == "closed"
        zones = list(availability_zones)
        gateway_count = 1 if nat_gateways is None else nat_gateways
        served = [zone for zone in zones if is_closed and (endpoint_zones is None or zone in endpoint_zones)]
        used = max([control_plane_zones, *(zones.index(zone) + 1 for zone in served)])
        needed = used if is_closed else control_plane_zones + gateway_count
        region = Stack.of(self).region
        refuse_all(
            # whether a network is closed says what it needs
            (
                lambda: refuse(fields.Network, egress=egress),
                lambda: refuse_for(_egress_problems(zones, nat_gateways, endpoint_zones, is_closed=is_closed)),
            ),
            (
                lambda: _check_counts(len(zones), None if is_closed else nat_gateways, control_plane_zones),
                lambda: _check_room(vpc_cidr, needed=needed),
            ),
            lambda: refuse_for(_vpc_problems(vpc_cidr)),
            (
                lambda: check_zone_ids("availability_zones", zones, region=region),
                lambda: refuse_for(_control_plane_problems(zones, control_plane_zones)),
            ),
            lambda: refuse_for(_block_problems(vpc_cidr, availability_zones)),
            lambda: refuse_for(_file_system_zone_problems(zones, file_system_zones)),
        )
        slots = list(rules.slots(vpc_cidr))
        self._path = self.node.path
        self._vpc = ec2.CfnVPC(
            self,
            "Vpc",
            cidr_block=vpc_cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self._tags(),
        )
        # read once: each attribute is a call into Node.js
        self._vpc_id = self._vpc.ref
        self._public_subnets: list[ec2.ISubnet] = []
        self._billed: list[CfnResource] = []
        ways_out: Mapping[str, ec2.CfnNatGateway | None] = dict.fromkeys(zones)
        if not is_closed:
            gateways = self._public_side({zone: slots[-1 - n] for n, zone in enumerate(zones[:gateway_count])})
            ways_out = {zone: gateways.get(zone, gateways[zones[0]]) for zone in zones}
        control_plane = [
            self._private_subnet("ControlPlane", zone, slots[n], ways_out[zone], _INTERNAL_LOAD_BALANCERS)
            for n, zone in enumerate(zones[:control_plane_zones])
        ]
        nodes = {
            zone: self._node_subnet(
                zone,
                availability_zones[zone],
                ways_out[zone],
                {} if n < control_plane_zones else _INTERNAL_LOAD_BALANCERS,
                stays=retain or zone in file_system_zones,
            )
            for n, zone in enumerate(zones)
        }
        if retain or file_system_zones:
            self._vpc.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        for_endpoints = {
            zone: self._private_subnet("Endpoint", zone, slots[zones.index(zone)], None, {})
            for zone in served
            if zone not in zones[:control_plane_zones]
        }
        private = [*control_plane, *for_endpoints.values(), *nodes.values()]
        endpoint = ec2.CfnVPCEndpoint(
            self,
            "S3Endpoint",
            vpc_id=self._vpc_id,
            service_name=f"com.amazonaws.{HERE.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[subnet.route_table_id for subnet in private],
        )
        if flow_logs:
            self._flow_logs()
        self._ready = DependencyGroup(endpoint, *(part for subnet in private for part in subnet.routing))
        self._node_route_tables = {zone: subnet.route_table for zone, subnet in nodes.items()}
        self._node_subnets = {zone: subnet.imported(self) for zone, subnet in nodes.items()}
        beside = {subnet.zone: subnet for subnet in control_plane}
        self._endpoint_subnet_ids = {zone: (for_endpoints.get(zone) or beside[zone]).subnet_id for zone in served}
        self._imported = ec2.Vpc.from_vpc_attributes(
            self,
            "Imported",
            vpc_id=self._vpc_id,
            vpc_cidr_block=vpc_cidr,
            availability_zones=[subnet.resource.attr_availability_zone for subnet in control_plane],
            private_subnet_ids=[subnet.subnet_id for subnet in control_plane],
            private_subnet_route_table_ids=[subnet.route_table_id for subnet in control_plane],
        )

    @property
    def vpc(self) -> ec2.IVpc:
        """The VPC for other constructs, in this stack or another; its private subnets are the control plane's."""
        return self._imported

    @property
    def node_subnets(self) -> Mapping[str, ec2.ISubnet]:
        """The node subnet of each AZ ID, in the order given."""
        return self._node_subnets

    @property
    def control_plane_subnets(self) -> list[ec2.ISubnet]:
        """Private subnets, with a route to AWS, for EKS's interfaces and the kubectl handler."""
        return self._imported.private_subnets

    @property
    def public_subnets(self) -> list[ec2.ISubnet]:
        """The subnet of each NAT gateway; none in a closed network."""
        return self._public_subnets

    @property
    def endpoint_subnet_ids(self) -> Mapping[str, str]:
        """The ID, a token, of the subnet for interface endpoints of each AZ ID; empty unless the network is closed."""
        return self._endpoint_subnet_ids

    @property
    def node_route_tables(self) -> Mapping[str, ec2.CfnRouteTable]:
        """The route table of each AZ ID's node subnet."""
        return self._node_route_tables

    @property
    def billed(self) -> Sequence[CfnResource]:
        """The resources that cost money per hour: NAT gateways and their addresses."""
        return self._billed

    @property
    def ready(self) -> IDependable:
        """What a client in this stack must depend on: all private routes and the S3 endpoint."""
        return self._ready

    def _public_side(self, blocks: Mapping[str, str]) -> Mapping[str, ec2.CfnNatGateway]:
        internet_gateway = ec2.CfnInternetGateway(self, "InternetGateway", tags=self._tags())
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "InternetGatewayAttachment", vpc_id=self._vpc_id, internet_gateway_id=internet_gateway.ref
        )
        table = ec2.CfnRouteTable(self, "PublicRouteTable", vpc_id=self._vpc_id, tags=self._tags("public"))
        route = ec2.CfnRoute(
            self,
            "PublicDefaultRoute",
            route_table_id=table.ref,
            destination_cidr_block=_ANYWHERE,
            gateway_id=internet_gateway.ref,
        )
        route.add_resource_dependency(attachment)
        subnets = [
            self._subnet("Public", zone, cidr, table, {"kubernetes.io/role/elb": "1"}) for zone, cidr in blocks.items()
        ]
        self._public_subnets = [subnet.imported(self) for subnet in subnets]
        return {subnet.zone: self._nat_gateway(subnet, attachment, route) for subnet in subnets}

    def _nat_gateway(
        self, subnet: _Subnet, attachment: ec2.CfnVPCGatewayAttachment, route: ec2.CfnRoute
    ) -> ec2.CfnNatGateway:
        suffix, tags = zone_suffix(subnet.zone), self._tags(f"nat-{subnet.zone}")
        address = ec2.CfnEIP(self, f"NatAddress{suffix}", domain="vpc", tags=tags)
        address.add_resource_dependency(attachment)
        gateway = ec2.CfnNatGateway(
            self,
            f"NatGateway{suffix}",
            subnet_id=subnet.subnet_id,
            allocation_id=address.attr_allocation_id,
            tags=tags,
        )
        for needed in (route, *subnet.routing):
            gateway.add_resource_dependency(needed)
        self._billed += [address, gateway]
        return gateway

    def _node_subnet(
        self, zone: str, cidr: str, gateway: ec2.CfnNatGateway | None, tags: Mapping[str, str], *, stays: bool
    ) -> _Subnet:
        block = ec2.CfnVPCCidrBlock(self, f"NodeCidr{zone_suffix(zone)}", vpc_id=self._vpc_id, cidr_block=cidr)
        subnet = self._private_subnet("Node", zone, cidr, gateway, tags)
        subnet.resource.add_resource_dependency(block)
        for kept in (block, subnet.resource) if stays else ():
            kept.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return subnet

    def _private_subnet(
        self, role: str, zone: str, cidr: str, gateway: ec2.CfnNatGateway | None, tags: Mapping[str, str]
    ) -> _Subnet:
        suffix = zone_suffix(zone)
        table = ec2.CfnRouteTable(
            self, f"{role}RouteTable{suffix}", vpc_id=self._vpc_id, tags=self._tags(f"{_LABELS[role]}-{zone}")
        )
        if gateway is None:
            return self._subnet(role, zone, cidr, table, tags)
        route = ec2.CfnRoute(
            self,
            f"{role}DefaultRoute{suffix}",
            route_table_id=table.ref,
            destination_cidr_block=_ANYWHERE,
            nat_gateway_id=gateway.ref,
        )
        return self._subnet(role, zone, cidr, table, tags, route)

    def _subnet(
        self,
        role: str,
        zone: str,
        cidr: str,
        table: ec2.CfnRouteTable,
        tags: Mapping[str, str],
        *routes: ec2.CfnRoute,
    ) -> _Subnet:
        suffix = zone_suffix(zone)
        resource = ec2.CfnSubnet(
            self,
            f"{role}Subnet{suffix}",
            vpc_id=self._vpc_id,
            cidr_block=cidr,
            availability_zone_id=zone,
            map_public_ip_on_launch=False,
            tags=self._tags(f"{_LABELS[role]}-{zone}", **tags),
        )
        subnet_id, table_id = resource.ref, table.ref
        association = ec2.CfnSubnetRouteTableAssociation(
            self, f"{role}RouteTableAssociation{suffix}", subnet_id=subnet_id, route_table_id=table_id
        )
        return _Subnet(
            role=role,
            zone=zone,
            resource=resource,
            subnet_id=subnet_id,
            route_table=table,
            route_table_id=table_id,
            routing=(association, *routes),
        )

    def _flow_logs(self) -> None:
        group = logs.CfnLogGroup(self, "FlowLogGroup", retention_in_days=90)
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        acknowledge_log_group(group, is_new=True)
        role = iam.CfnRole(
            self,
            "FlowLogRole",
            description="Lets VPC flow logs write to one log group",
            assume_role_policy_document=_flow_log_trust(),
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="WriteFlowLogs", policy_document=_flow_log_policy(group.attr_arn)
                )
            ],
        )
        ec2.CfnFlowLog(
            self,
            "FlowLog",
            resource_id=self._vpc.ref,
            resource_type="VPC",
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=group.ref,
            deliver_logs_permission_arn=role.attr_arn,
            tags=self._tags(),
        )

    def _tags(self, label: str = "", **more: str) -> list[CfnTag]:
        named = {"Name": tags.of_path(f"{self._path}/{label}".rstrip("/")), **more}
        return [CfnTag(key=key, value=value) for key, value in named.items()]


@judged(whole=("control_plane_subnet_ids",))
class ExistingNetwork(Construct):
    """An existing VPC, with the public interface of ``Network``; creates no resource and does not call AWS.

    ``node_subnet_ids`` maps AZ IDs to the subnet of the nodes there. ``control_plane_subnet_ids`` are for EKS's
    interfaces and the handler that runs kubectl; without them, the handler uses the nodes' subnets. ``vpc_cidr`` is the
    VPC's primary block, for constructs that open ports to a whole VPC.

    AZ names are unknown, and nothing here needs them: a construct that puts one into a template fails at synthesis.

    ``vpc_id`` (str): ID of the VPC. Raises ValueError for text of another form.

    ``node_subnet_ids`` (Mapping[str, str]): AZ ID -> ID of the subnet of the nodes there. Raises ValueError without a
    subnet, for the name of a zone in place of its ID, a zone of another region, and an invalid or repeated ID of a
    subnet.

    ``control_plane_subnet_ids`` (Sequence[str]): IDs of the subnets of the control plane, each once. Default: those of
    the nodes. Raises ValueError for an invalid or repeated ID.

    ``vpc_cidr`` (str): primary IPv4 block of the VPC. Default: unknown. Raises ValueError for text that is not a block
    that a VPC can have.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_id: str,
        node_subnet_ids: Mapping[str, str],
        control_plane_subnet_ids: Sequence[str] = (),
        vpc_cidr: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse(
                fields.ExistingNetwork,
                vpc_id=vpc_id,
                node_subnet_ids=node_subnet_ids,
                control_plane_subnet_ids=control_plane_subnet_ids,
            ),
            lambda: refuse_for(() if vpc_cidr is None or is_token(vpc_cidr) else _vpc_problems(vpc_cidr, is_new=False)),
            lambda: check_zone_ids("node_subnet_ids", node_subnet_ids, region=Stack.of(self).region),
            lambda: refuse_for(_subnet_problems(node_subnet_ids, control_plane_subnet_ids)),
        )
        private = list(dict.fromkeys(control_plane_subnet_ids or node_subnet_ids.values()))
        self._vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=vpc_id,
            vpc_cidr_block=vpc_cidr,
            availability_zones=[_unknown_zone_name(subnet_id) for subnet_id in private],
            private_subnet_ids=private,
        )
        self._node_subnets = {
            zone: ec2.Subnet.from_subnet_attributes(
                self,
                f"NodeSubnet{zone_suffix(zone)}",
                subnet_id=subnet_id,
                availability_zone=_unknown_zone_name(subnet_id),
            )
            for zone, subnet_id in node_subnet_ids.items()
        }

    @property
    def vpc(self) -> ec2.IVpc:
        """The VPC for other constructs; its private subnets are ``control_plane_subnets``."""
        return self._vpc

    @property
    def node_subnets(self) -> Mapping[str, ec2.ISubnet]:
        """The node subnet of each AZ ID, in the order given."""
        return self._node_subnets

    @property
    def control_plane_subnets(self) -> list[ec2.ISubnet]:
        """Private subnets for EKS's interfaces and the kubectl handler."""
        return self._vpc.private_subnets


@judged()
class EfaSecurityGroup(Construct):
    """The security group that the nodes and the EKS control plane share: all traffic to and from itself, and outbound.

    Outbound means all IPv4 addresses in a closed network too: S3 answers from public addresses through the gateway
    endpoint, and without a route nothing else is reachable. They are two rules, 0.0.0.0/1 and 128.0.0.0/1, because
    CloudFormation removes a rule for 0.0.0.0/0 when it creates the rule that EFA needs
    (``catalog.network.EVERYWHERE_IN_HALVES``).

    EFA's health check needs a rule that names the group itself in both directions; egress to 0.0.0.0/0 does not count.
    The L2 ``SecurityGroup`` drops such an egress rule with ``allow_all_outbound``, so both rules are separate
    resources. They cannot be part of the group, which would then refer to itself: resources that launch nodes must
    depend on ``rules``.

    ``vpc`` (ec2.IVpc): the VPC of the group.

    ``description`` (str): what the group is for, 1 to 255 characters. Default: its purpose. Raises ValueError for a
    description that EC2 refuses.
    """

    def __init__(self, scope: Construct, construct_id: str, *, vpc: ec2.IVpc, description: str | None = None) -> None:
        super().__init__(scope, construct_id)
        if description is None:
            description = "HyperPod nodes and EKS control plane, EFA traffic among themselves"
        refuse_unlike(GROUP_DESCRIPTION, description=description)
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=id_of(vpc, "vpc_id"),
            group_description=description,
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol=_ALL, cidr_ip=half, description="Everything out, in addition to the rule that EFA needs"
                )
                for half in rules.EVERYWHERE_IN_HALVES
            ],
            tags=[CfnTag(key="Name", value=tags.of_path(self.node.path))],
        )
        ingress = ec2.CfnSecurityGroupIngress(
            self,
            "FromItself",
            group_id=group.attr_group_id,
            source_security_group_id=group.attr_group_id,
            ip_protocol=_ALL,
            description="EFA: everything from this group",
        )
        egress = ec2.CfnSecurityGroupEgress(
            self,
            "ToItself",
            group_id=group.attr_group_id,
            destination_security_group_id=group.attr_group_id,
            ip_protocol=_ALL,
            description="EFA: everything to this group",
        )
        self._rules = DependencyGroup(ingress, egress)
        self._security_group_id = group.attr_group_id
        # rules that others add are created: they remove nothing, and FSx and EFA need rules that name a group
        self._security_group = ec2.SecurityGroup.from_security_group_id(
            self, "Imported", group.attr_group_id, allow_all_outbound=False
        )

    @property
    def security_group(self) -> ec2.ISecurityGroup:
        """The group for other constructs."""
        return self._security_group

    @property
    def security_group_id(self) -> str:
        """The group's id, a token."""
        return self._security_group_id

    @property
    def rules(self) -> IDependable:
        """Both self-referencing rules."""
        return self._rules


def zone_suffix(availability_zone_id: str) -> str:
    """Return the AZ ID as part of a logical id: ``use1-az5`` -> ``Use1Az5``."""
    return "".join(part.capitalize() for part in availability_zone_id.split("-"))


@jsii.implements(IStableStringProducer)
class _UnknownZoneName:
    def __init__(self, subnet_id: str) -> None:
        self._subnet_id = subnet_id

    def produce(self) -> str:
        raise ValueError(
            f"the availability zone name of {self._subnet_id} is unknown, because synthesis does not call AWS; "
            "use its ID, or nothing"
        )


def _unknown_zone_name(subnet_id: str) -> str:
    """Return a token in place of a name that CDK requires and that no template may contain."""
    return Lazy.string(_UnknownZoneName(subnet_id))


_LABELS = {"Public": "public", "ControlPlane": "control-plane", "Endpoint": "endpoints", "Node": "nodes"}


@dataclass(frozen=True, kw_only=True)
class _Subnet:
    """A subnet with the resources that must exist before traffic can use it."""

    role: str
    zone: str
    resource: ec2.CfnSubnet
    subnet_id: str
    route_table: ec2.CfnRouteTable
    route_table_id: str
    routing: tuple[ec2.CfnSubnetRouteTableAssociation | ec2.CfnRoute, ...]

    def imported(self, scope: Construct) -> ec2.ISubnet:
        return ec2.Subnet.from_subnet_attributes(
            scope,
            f"Imported{self.role}Subnet{zone_suffix(self.zone)}",
            subnet_id=self.subnet_id,
            availability_zone=self.resource.attr_availability_zone,
            route_table_id=self.route_table_id,
        )


def _egress_problems(
    zones: Sequence[str], nat_gateways: int | None, endpoint_zones: Sequence[str] | None, *, is_closed: bool
) -> Iterator[str]:
    if is_closed and nat_gateways is not None:
        yield (
            f"nat_gateways: must be left out of a closed network, which has none, got {nat_gateways}; remove it or set "
            'egress="nat"'
        )
    if not is_closed and endpoint_zones is not None:
        yield (
            "endpoint_zones: must be left out of a network with NAT gateways, which has no interface endpoints; remove "
            'it or set egress="closed"'
        )
        return
    chosen = zones if endpoint_zones is None else endpoint_zones
    if problem := repeated_problem(chosen, key="endpoint_zones"):
        yield problem
    foreign = [zone for zone in chosen if zone not in zones]
    if endpoint_zones is not None and (foreign or not chosen):
        got = ", ".join(foreign) or "none"
        listed = ", ".join(zones)
        yield f"endpoint_zones: must name at least one zone, all of {listed}, got {got}; leave it out for all"


def _file_system_zone_problems(zones: Sequence[str], wanted: Sequence[str]) -> Iterator[str]:
    foreign = [zone for zone in wanted if zone not in zones]
    if foreign:
        yield (
            f"file_system_zones: must be one of availability_zones ({', '.join(zones)}), got {', '.join(foreign)};"
            " leave out a zone without a file system of this network"
        )


def _check_counts(zones: int, nat_gateways: int | None, control_plane_zones: int) -> None:
    refuse_all(
        (
            lambda: refuse(fields.Network, nat_gateways=nat_gateways),
            lambda: refuse_for(_gateway_problems(zones, 1 if nat_gateways is None else nat_gateways)),
        ),
        lambda: refuse_for(_zone_count_problems(zones, control_plane_zones)),
    )


def _gateway_problems(zones: int, nat_gateways: int) -> Iterator[str]:
    # of too few zones another sentence says it
    if zones >= rules.FEWEST_ZONES and (problem := rules.nat_gateways_problem(nat_gateways, zones=zones)):
        yield f"nat_gateways: {in_python(problem)}"


def _zone_count_problems(zones: int, control_plane_zones: int) -> Iterator[str]:
    if problem := rules.ZONES.count_problem(zones, what="availability zones"):
        yield f"availability_zones: {problem}"
        return
    if not rules.FEWEST_ZONES <= control_plane_zones <= zones:
        yield (
            f"control_plane_zones: must be between {rules.FEWEST_ZONES}, which EKS needs, and {zones}, the number"
            f" of availability_zones, got {control_plane_zones}; set control_plane_zones={rules.FEWEST_ZONES}"
        )


def _vpc_problems(vpc_cidr: str, *, is_new: bool = True) -> Iterator[str]:
    problem = rules.cidr_problem(vpc_cidr, key="vpc_cidr")
    if problem is None and is_new:
        problem = rules.vpc_size_problem(vpc_cidr, key="vpc_cidr")
    if problem:
        yield f"vpc_cidr: {in_python(problem)}"


def _block_problems(vpc_cidr: str, zones: Mapping[str, str]) -> Iterator[str]:
    keys = {zone: f"availability_zones[{zone!r}]" for zone in zones}
    wrong = {zone: problem for zone, cidr in zones.items() if (problem := rules.cidr_problem(cidr, key=keys[zone]))}
    yield from (f"{keys[zone]}: {in_python(problem)}" for zone, problem in wrong.items())
    if any(_vpc_problems(vpc_cidr)):
        return
    right = [zone for zone in zones if zone not in wrong]
    blocks = [zones[zone] for zone in right]
    for index, zone in enumerate(right):
        others = rules.blocks_beside(blocks[index], before=blocks[:index], after=blocks[index + 1 :])
        key = keys[zone]
        if problem := rules.secondary_cidr_problem(blocks[index], primary=vpc_cidr, others=others, key=key):
            yield f"{key}: {in_python(problem)}"


def _control_plane_problems(zones: Sequence[str], control_plane_zones: int) -> Iterator[str]:
    usable = len(regions.eks_control_plane_zones(zones)) >= control_plane_zones
    for zone in zones[: max(0, control_plane_zones)]:
        if problem := regions.control_plane_problem(zone, first=control_plane_zones, enough=usable):
            yield f"availability_zones[{zone!r}]: {in_python(problem)}"


def check_zone_ids(argument: str, zones: Iterable[str], *, region: str) -> None:
    """Raise ValueError for each key of ``argument`` that is not an AZ ID of ``region``, which may be a token."""
    known = "" if is_token(region) else region
    refuse_for(
        f"{argument}[{zone!r}]: {in_python(problem)}"
        for zone in zones
        if (problem := regions.az_id_problem(zone, region=known, key="the key"))
    )


def _subnet_problems(of_nodes: Mapping[str, str], of_control_plane: Sequence[str]) -> Iterator[str]:
    zones = list(of_nodes)
    for index, first, subnet_id in repeated(of_nodes.values()):
        yield f"node_subnet_ids[{zones[index]!r}]: {rules.same_subnet_problem(subnet_id, zones[first])}"
    if problem := repeated_problem(of_control_plane, key="control_plane_subnet_ids"):
        yield problem


def _check_room(vpc_cidr: str, *, needed: int) -> None:
    if any(_vpc_problems(vpc_cidr)) or len(list(rules.slots(vpc_cidr))) >= needed:
        return
    wide_enough = rules.LONGEST_PREFIX - (needed - 1).bit_length()
    raise ValueError(
        f"vpc_cidr: must have room for {needed} subnets of /{rules.LONGEST_PREFIX} for EKS and NAT gateways, "
        f"got {vpc_cidr}; set vpc_cidr to a /{wide_enough} or larger"
    )


def _flow_log_trust() -> Mapping[str, object]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "vpc-flow-logs.amazonaws.com"},
                "Action": "sts:AssumeRole",
                "Condition": {
                    "StringEquals": {"aws:SourceAccount": HERE.account},
                    "ArnLike": {
                        "aws:SourceArn": f"arn:{HERE.partition}:ec2:{HERE.region}:{HERE.account}:vpc-flow-log/*"
                    },
                },
            }
        ],
    }


def _flow_log_policy(log_group_arn: str) -> Mapping[str, object]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                "Resource": log_group_arn,
            }
        ],
    }
