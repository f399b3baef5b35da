"""Requirements of EFA and Lustre for the network, and what must not be able to reach it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hyperpod_cdk.catalog import instance_types, regions
from hyperpod_cdk.catalog.network import EVERYWHERE_IN_HALVES, is_all_traffic
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.groups import FILE_SYSTEM, SECURITY_GROUP, Part, Subnet, entries, part, parts, resolved_part
from hyperpod_cdk.templates.rules.rule import Context, Spot
from hyperpod_cdk.templates.values import Reference, is_known, plain, resolve

_OTHER_SIDE: Final = {"Ingress": "SourceSecurityGroupId", "Egress": "DestinationSecurityGroupId"}
_ANYWHERE: Final = {"CidrIp": "0.0.0.0/0", "CidrIpv6": "::/0"}
_VPC: Final = "AWS::EC2::VPC"
_ENDPOINT: Final = "AWS::EC2::VPCEndpoint"
_LAUNCH_TEMPLATE: Final = "AWS::EC2::LaunchTemplate"


def efa_security_group(context: Context) -> Iterator[Spot]:
    """Find nodes without a security group that lets them reach each other by its own ID."""
    sides = {side.lower(): _self_references(context, side) for side in _OTHER_SIDE}
    for resource, place, ids in _holders(context):
        targets = parts(context.assembly, resource.stack, ids)
        if not all(each.is_made_here(SECURITY_GROUP) for each in targets):
            # a group from outside the app, whose rules no template shows
            continue
        for side, owners in sides.items():
            # None: a rule that may be of any group
            if not owners.intersection((None, *(each.key for each in targets))):
                yield Spot(
                    resource=resource,
                    place=place,
                    message=f"must have a security group with {side} of all traffic from and to itself by its ID "
                    f"(EFA health checks fail without it), got {_named(targets)}; add the "
                    f"self-referencing {side} rule",
                )


def kept_egress(context: Context) -> Iterator[Spot]:
    """Find groups whose rule for all traffic CloudFormation removes because of a separate egress rule."""
    separate: dict[str, Resource] = {}
    for resource in context.of_type("AWS::EC2::SecurityGroupEgress"):
        for group in parts(context.assembly, resource.stack, resource.properties.get("GroupId")):
            separate.setdefault(group.key, resource)
    for owner, place, rule in _rules(context, "Egress"):
        if owner.type != SECURITY_GROUP:
            continue
        block, protocol = (resolve(context.assembly, owner.stack, rule.get(name)) for name in ("CidrIp", "IpProtocol"))
        group = resolved_part(context.assembly, owner.stack, Reference(owner.stack, owner.logical_id))
        if is_all_traffic(protocol, block) and group.key in separate:
            yield Spot(
                resource=owner,
                place=place,
                message=f"must not allow all traffic to {block} in one rule, got also {separate[group.key].name}:"
                " CloudFormation removes the one rule before it creates the other; allow"
                f" {listing(EVERYWHERE_IN_HALVES, last='and')} instead",
            )


def world_ingress(context: Context) -> Iterator[Spot]:
    """Find security groups that everyone can reach."""
    for owner, place, rule in _rules(context, "Ingress"):
        for name, anywhere in _ANYWHERE.items():
            if resolve(context.assembly, owner.stack, rule.get(name)) == anywhere:
                yield Spot(
                    resource=owner,
                    place=f"{place}.{name}",
                    message=f"must not be reachable from anywhere, got {_ports(context, owner, rule)} from {anywhere}; "
                    "name the security group or the block that needs it",
                )


def s3_gateway_endpoint(context: Context) -> Iterator[Spot]:
    """Find VPCs of nodes that reach S3 through a NAT gateway, or not at all."""
    served = set()
    for endpoint in context.of_type(_ENDPOINT):
        service = context.value(endpoint, "ServiceName")
        kind = context.value(endpoint, "VpcEndpointType")
        is_gateway = kind in (None, "Gateway") or not is_known(kind)
        if is_gateway and (not is_known(service) or plain(service).endswith(".s3")):
            of_vpc = part(context.assembly, endpoint.stack, endpoint.properties.get("VpcId"))
            if not of_vpc.is_known:
                # it may be the gateway endpoint of every VPC
                return
            served.add(of_vpc.key)
    found: dict[str, tuple[Resource, Subnet]] = {}
    for subnet in context.subnets:
        vpc = subnet.vpc
        if subnet.of_kind("nodes") and vpc is not None and vpc.resource is not None and vpc.is_made_here(_VPC):
            found.setdefault(vpc.key, (vpc.resource, subnet))
    for key, (owner, subnet) in found.items():
        if key not in served:
            yield Spot(
                resource=owner,
                place="Properties",
                message=f"must have a gateway endpoint for S3, with which nodes in {subnet.part.label} load "
                "scripts, images and checkpoints, got none; add AWS::EC2::VPCEndpoint for s3 on the "
                "nodes' route tables, which costs nothing",
            )


def lustre_zone(context: Context) -> Iterator[Spot]:
    """Find file systems that are in no zone of the nodes that use them."""
    groups = [group.read for group in context.groups]
    accelerated = [
        group
        for group in groups
        if any((row := instance_types.get(name)) and row.is_accelerated for name in group.types)
    ]
    users = accelerated or groups
    zones = {zone for group in users for zone in group.zones}
    for subnet in context.subnets:
        of_lustre = [use.resource for use in subnet.of_kind("file system") if _is_lustre(context, use.resource)]
        told = zones and (
            all(map(regions.is_az_id, {*zones, subnet.zone})) or all(map(regions.is_az_name, {*zones, subnet.zone}))
        )
        if not told or subnet.zone in zones:
            continue
        for file_system in of_lustre:
            names = ", ".join(sorted(group.name for group in users))
            yield Spot(
                resource=file_system,
                place="Properties.SubnetIds",
                message=f"must be in a zone of its nodes, {', '.join(sorted(zones))} ({names}), got "
                f"{subnet.zone}: traffic between zones is slower, charged, and never EFA; set SubnetIds "
                "to a subnet of the nodes' zone",
            )


def _is_lustre(context: Context, resource: Resource) -> bool:
    return resource.type == FILE_SYSTEM and context.value(resource, "FileSystemType") == "LUSTRE"


def _holders(context: Context) -> Iterator[tuple[Resource, str, Any]]:
    """Return every list of security groups of nodes with EFA, with its place."""
    for cluster in context.clusters:
        own = cluster.properties.get("VpcConfig")
        if isinstance(own, dict) and isinstance(own.get("SecurityGroupIds"), list):
            yield cluster, "Properties.VpcConfig.SecurityGroupIds", own["SecurityGroupIds"]
    for group in context.groups:
        override = group.body.get("OverrideVpcConfig")
        if isinstance(override, dict) and isinstance(override.get("SecurityGroupIds"), list):
            place = f"{group.place}.OverrideVpcConfig.SecurityGroupIds"
            yield group.read.cluster, place, override["SecurityGroupIds"]
    for template in context.of_type(_LAUNCH_TEMPLATE):
        data = template.properties.get("LaunchTemplateData")
        interfaces = entries(data.get("NetworkInterfaces")) if isinstance(data, dict) else []
        seen: list[Any] = []
        for index, interface in enumerate(interfaces):
            groups = interface.get("Groups")
            if interface.get("InterfaceType") in ("efa", "efa-only") and isinstance(groups, list):
                if groups not in seen:
                    yield template, f"Properties.LaunchTemplateData.NetworkInterfaces.{index}.Groups", groups
                seen.append(groups)


def _rules(context: Context, side: str) -> Iterator[tuple[Resource, str, dict[str, Any]]]:
    """Return (resource, place, rule) of every rule of one side, in a group or separate."""
    for resource in context.of_type(f"AWS::EC2::SecurityGroup{side}", SECURITY_GROUP):
        if resource.type != SECURITY_GROUP:
            yield resource, "Properties", dict(resource.properties)
            continue
        name = f"SecurityGroup{side}"
        inline = resource.properties.get(name)
        for index, rule in enumerate(inline if isinstance(inline, list) else ()):
            if isinstance(rule, dict):
                yield resource, f"Properties.{name}.{index}", rule


def _self_references(context: Context, side: str) -> set[str | None]:
    """Return the keys of the security groups that allow all traffic with themselves on one side, or may do so as far
    as the templates show; None for a group that they do not show.
    """
    assembly = context.assembly
    found = set[str | None]()
    for resource, _, rule in _rules(context, side):
        protocol = resolve(assembly, resource.stack, rule.get("IpProtocol"))
        if is_known(protocol) and str(protocol) != "-1":
            continue
        of_group = resource.type == SECURITY_GROUP
        owner = part(assembly, resource.stack, {"Ref": resource.logical_id} if of_group else rule.get("GroupId"))
        stated = resolve(assembly, resource.stack, rule.get(_OTHER_SIDE[side]))
        other = owner if stated is None else resolved_part(assembly, resource.stack, stated)
        if stated is not None and (owner.key == other.key or not (owner.is_known and other.is_known)):
            found.add(owner.key if owner.is_known else other.key if other.is_known else None)
    return found


def _named(groups: tuple[Part, ...]) -> str:
    return ", ".join(sorted(each.resource.logical_id for each in groups if each.resource)) or "no security group"


def _ports(context: Context, owner: Resource, rule: dict[str, Any]) -> str:
    protocol, first, last = (
        resolve(context.assembly, owner.stack, rule.get(name)) for name in ("IpProtocol", "FromPort", "ToPort")
    )
    if str(protocol) == "-1":
        return "all traffic"
    span = plain(first) if first == last or isinstance(last, Reference) else f"{plain(first)}-{plain(last)}"
    return f"{plain(protocol)} {span}".strip("- ")
