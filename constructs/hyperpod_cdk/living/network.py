"""Security group rules, routes and endpoints as EC2 has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.aws_shapes import ROUTE_TARGETS
from hyperpod_cdk.living.facts import canonical
from hyperpod_cdk.living.look import (
    TAGS,
    Kind,
    Look,
    Properties,
    Stated,
    reading,
    siblings,
    statements,
    taken,
    with_statements,
)
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.values import Reference, Unknown

_GROUP: Final = "AWS::EC2::SecurityGroup"
_ALL: Final = "-1"
_DEFAULT_EGRESS: Final = "all traffic to 0.0.0.0/0"
"""EC2's egress rule for a group without one in a template (EC2 user guide, default rules)."""

_TARGETS: Final = (*ROUTE_TARGETS, "VpcEndpointId")
"""The target of a route; only templates have a member of their own for a gateway endpoint."""


def _group(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_security_groups", "InvalidGroup.NotFound", GroupIds=[look.id])
    if found is None:
        return None
    with reading("ec2:DescribeSecurityGroups"):
        (group,) = found["SecurityGroups"]
        egress = [rule for row in group.get("IpPermissionsEgress", ()) for rule in _granted(row, "to")]
        if not look.stated.get("Egress"):
            egress = [rule for rule in egress if rule[0] != _DEFAULT_EGRESS]
        return {
            "Ingress": _rules(rule for row in group.get("IpPermissions", ()) for rule in _granted(row, "from")),
            "Egress": _rules(egress),
            "Tags": group.get("Tags", []),
        }


_Rule = tuple[str, str | None]
"""A rule in words, and its description."""


def _granted(row: Mapping[str, Any], word: str) -> Iterator[_Rule]:
    others = (
        ("IpRanges", "CidrIp"),
        ("Ipv6Ranges", "CidrIpv6"),
        ("PrefixListIds", "PrefixListId"),
        ("UserIdGroupPairs", "GroupId"),
    )
    for name, key in others:
        for each in row.get(name, ()):
            rule = _rule(row["IpProtocol"], row.get("FromPort"), row.get("ToPort"), word, each[key])
            yield rule, each.get("Description")


def _of_group(stated: Stated) -> Properties:
    """Combine the rules of a group: those in it, and those that are resources of their own."""
    rules: dict[str, list[_Rule]] = {}
    for direction, word, members in (
        ("Ingress", "from", ("CidrIp", "CidrIpv6", "SourcePrefixListId", "SourceSecurityGroupId")),
        ("Egress", "to", ("CidrIp", "CidrIpv6", "DestinationPrefixListId", "DestinationSecurityGroupId")),
    ):
        name = f"SecurityGroup{direction}"
        rows = [each for each in stated.properties.get(name) or () if isinstance(each, Mapping)]
        rows += siblings(stated.assembly, f"AWS::EC2::{name}", of=("GroupId", stated.id))
        rules[direction] = [_stated_rule(row, word, members, stated.resource) for row in rows]
    tags = stated.properties.get("Tags")
    return {"Ingress": _rules(rules["Ingress"]), "Egress": _rules(rules["Egress"]), "Tags": tags}


def _stated_rule(row: Mapping[str, Any], word: str, members: tuple[str, ...], resource: Resource) -> _Rule:
    other = next((row[name] for name in members if row.get(name) is not None), None)
    ports = (row.get("FromPort"), row.get("ToPort"))
    if any(isinstance(each, (Reference, Unknown)) for each in (other, row.get("IpProtocol"), *ports)):
        raise NotAnswered(f"a rule of {resource.name} has a source or destination that CloudFormation does not show")
    return _rule(row.get("IpProtocol"), *ports, word, other), row.get("Description")


def _rule(protocol: object, first: object, last: object, word: str, other: object) -> str:
    """Return a rule in words, the same for a rule of a template and of EC2."""
    if str(protocol) == _ALL:
        return f"all traffic {word} {other}"
    ports = f" {first}" if str(first) == str(last) else f" {first}-{last}"
    return f"{protocol}{'' if first is None or str(first) == _ALL else ports} {word} {other}"


def _rules(rules: Iterable[_Rule]) -> list[dict[str, str | None]]:
    return [{"Rule": rule, "Description": description} for rule, description in dict(rules).items()]


def _routes(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_route_tables", "InvalidRouteTableID.NotFound", RouteTableIds=[look.id])
    if found is None:
        return None
    with reading("ec2:DescribeRouteTables"):
        (table,) = found["RouteTables"]
        # routes of gateway endpoints and virtual private gateways are created and deleted with them
        own = [
            row
            for row in table.get("Routes", ())
            if "DestinationPrefixListId" not in row
            and row.get("GatewayId") != "local"
            and row.get("Origin") != "EnableVgwRoutePropagation"
        ]
        return {"Routes": [_route(row) for row in own], "Tags": table.get("Tags", [])}


def _of_routes(stated: Stated) -> Properties:
    rows = siblings(stated.assembly, "AWS::EC2::Route", of=("RouteTableId", stated.id))
    return {"Routes": [_route(row) for row in rows], "Tags": stated.properties.get("Tags")}


def _route(row: Mapping[str, Any]) -> dict[str, Any]:
    destination = row.get("DestinationCidrBlock") or row.get("DestinationIpv6CidrBlock") or "a prefix list"
    target = next((row[name] for name in _TARGETS if row.get(name)), None)
    return {"Key": str(destination), "Value": target}


def _endpoint(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_vpc_endpoints", "InvalidVpcEndpointId.NotFound", VpcEndpointIds=[look.id])
    if found is None:
        return None
    with reading("ec2:DescribeVpcEndpoints"):
        (endpoint,) = found["VpcEndpoints"]
        if str(endpoint.get("State", "")).lower() in _NO_ENDPOINT:
            return None
        return {
            **taken(endpoint, "ServiceName", "VpcEndpointType", "VpcId", "SubnetIds", "RouteTableIds"),
            **taken(endpoint, "PrivateDnsEnabled", "Tags"),
            "PolicyDocument": _allowed(look, endpoint.get("PolicyDocument")),
            "SecurityGroupIds": [each["GroupId"] for each in endpoint.get("Groups", ())],
        }


def _of_endpoint(stated: Stated) -> Properties:
    if stated.properties.get("PolicyDocument") is None:
        return {**stated.properties, "PolicyDocument": _EVERYTHING}
    return with_statements(stated)


def _allowed(look: Look, document: Any) -> Any:
    """Return a policy by its statements, or as one text if the template has none."""
    rows = statements(document)
    if look.stated.get("PolicyDocument") != _EVERYTHING:
        return rows
    return _EVERYTHING if rows in (statements(_FULL_ACCESS), []) else canonical(rows)


_EVERYTHING: Final = "full access"
"""EC2's defaults for an endpoint (EC2 API reference, CreateVpcEndpoint)."""

_FULL_ACCESS: Final = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}]}


def _vpc(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_vpcs", "InvalidVpcID.NotFound", VpcIds=[look.id])
    if found is None:
        return None
    hostnames = look.aws.call("ec2", "describe_vpc_attribute", VpcId=look.id, Attribute="enableDnsHostnames")
    support = look.aws.call("ec2", "describe_vpc_attribute", VpcId=look.id, Attribute="enableDnsSupport")
    with reading("ec2:DescribeVpcs"):
        (vpc,) = found["Vpcs"]
        rows = vpc.get("CidrBlockAssociationSet", ())
        blocks = [row["CidrBlock"] for row in rows if row["CidrBlockState"]["State"] in ("associated", "associating")]
        return {
            "EnableDnsHostnames": hostnames["EnableDnsHostnames"]["Value"],
            "EnableDnsSupport": support["EnableDnsSupport"]["Value"],
            "CidrBlocks": [{"Name": each} for each in blocks],
            "Tags": vpc.get("Tags", []),
        }


def _of_vpc(stated: Stated) -> Properties:
    own = stated.resource.properties.get("CidrBlock")
    more = [
        each.get("CidrBlock") for each in siblings(stated.assembly, "AWS::EC2::VPCCidrBlock", of=("VpcId", stated.id))
    ]
    return {**stated.properties, "CidrBlocks": [{"Name": each} for each in (own, *more) if isinstance(each, str)]}


def _subnet(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_subnets", "InvalidSubnetID.NotFound", SubnetIds=[look.id])
    if found is None:
        return None
    of_subnet = [{"Name": "association.subnet-id", "Values": [look.id]}]
    tables = look.aws.pages("ec2", "describe_route_tables", "RouteTables", Filters=of_subnet)
    with reading("ec2:DescribeSubnets"):
        (subnet,) = found["Subnets"]
        return {
            "MapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
            "RouteTableId": next((each["RouteTableId"] for each in tables), None),
            "Tags": subnet.get("Tags", []),
        }


def _of_subnet(stated: Stated) -> Properties:
    rows = siblings(stated.assembly, "AWS::EC2::SubnetRouteTableAssociation", of=("SubnetId", stated.id))
    table = next((each.get("RouteTableId") for each in rows), None)
    return {"MapPublicIpOnLaunch": False, **stated.properties, "RouteTableId": table}


def _flow_log(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_flow_logs", "InvalidFlowLogId.NotFound", FlowLogIds=[look.id])
    with reading("ec2:DescribeFlowLogs"):
        rows = () if found is None else found["FlowLogs"]
        told = ("ResourceId", "TrafficType", "LogDestinationType", "LogGroupName")
        return next((taken(row, *told, "Tags") for row in rows), None)


def _nat_gateway(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_nat_gateways", "NatGatewayNotFound", NatGatewayIds=[look.id])
    with reading("ec2:DescribeNatGateways"):
        rows = () if found is None else found["NatGateways"]
        return next((taken(row, "SubnetId", "Tags") for row in rows if row["State"] not in _NO_GATEWAY), None)


def _address(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_addresses", "InvalidAddress.NotFound", PublicIps=[look.id])
    with reading("ec2:DescribeAddresses"):
        rows = () if found is None else found["Addresses"]
        return next(({"Domain": row["Domain"], "Tags": row.get("Tags", [])} for row in rows), None)


def _internet_gateway(look: Look) -> Properties | None:
    gone = "InvalidInternetGatewayID.NotFound"
    found = look.found("ec2", "describe_internet_gateways", gone, InternetGatewayIds=[look.id])
    with reading("ec2:DescribeInternetGateways"):
        rows = () if found is None else found["InternetGateways"]
        return next(
            (
                {"Attachments": [{"Name": each["VpcId"]} for each in row["Attachments"]], "Tags": row.get("Tags", [])}
                for row in rows
            ),
            None,
        )


def _of_internet_gateway(stated: Stated) -> Properties:
    rows = siblings(stated.assembly, "AWS::EC2::VPCGatewayAttachment", of=("InternetGatewayId", stated.id))
    return {"Attachments": [{"Name": each.get("VpcId")} for each in rows], "Tags": stated.properties.get("Tags")}


_NO_ENDPOINT: Final = ("deleting", "deleted", "rejected", "failed", "expired")
_NO_GATEWAY: Final = ("deleting", "deleted", "failed")

KINDS: Final[Mapping[str, Kind]] = {
    _GROUP: Kind(
        properties=("SecurityGroupIngress", "SecurityGroupEgress", "Tags"),
        read=_group,
        state=_of_group,
        made_by_hand=re.compile(rf"{TAGS}|(?:In|E)gress\[[^\]]+\]"),
        members={"Ingress": "the rule", "Egress": "the rule"},
        are_members_apart=False,
    ),
    "AWS::EC2::RouteTable": Kind(
        properties=("Tags",),
        read=_routes,
        state=_of_routes,
        made_by_hand=re.compile(rf"{TAGS}|Routes\[.+\]"),
        members={"Routes": "the route"},
    ),
    "AWS::EC2::VPCEndpoint": Kind(
        properties=(
            "ServiceName",
            "VpcEndpointType",
            "VpcId",
            "SubnetIds",
            "RouteTableIds",
            "SecurityGroupIds",
            "PrivateDnsEnabled",
            "PolicyDocument",
            "Tags",
        ),
        read=_endpoint,
        state=_of_endpoint,
        made_by_hand=re.compile(rf"{TAGS}|PolicyDocument\[.+\]"),
    ),
    "AWS::EC2::VPC": Kind(
        properties=("EnableDnsHostnames", "EnableDnsSupport", "Tags"),
        read=_vpc,
        state=_of_vpc,
        made_by_hand=re.compile(rf"{TAGS}|CidrBlocks\[.+\]"),
        members={"CidrBlocks": "the block"},
    ),
    "AWS::EC2::Subnet": Kind(
        properties=("MapPublicIpOnLaunch", "Tags"),
        read=_subnet,
        state=_of_subnet,
        made_by_hand=re.compile(rf"{TAGS}|RouteTableId"),
        members={"RouteTableId": "the association"},
    ),
    "AWS::EC2::FlowLog": Kind(
        properties=("ResourceId", "TrafficType", "LogDestinationType", "LogGroupName", "Tags"), read=_flow_log
    ),
    "AWS::EC2::NatGateway": Kind(properties=("SubnetId", "Tags"), read=_nat_gateway),
    "AWS::EC2::EIP": Kind(properties=("Domain", "Tags"), read=_address),
    "AWS::EC2::InternetGateway": Kind(
        properties=("Tags",),
        read=_internet_gateway,
        state=_of_internet_gateway,
        members={"Attachments": "the attachment"},
    ),
}
