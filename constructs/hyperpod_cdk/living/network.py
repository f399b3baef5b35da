"""Rules of security groups, routes and endpoints as EC2 has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.aws_shapes import ROUTE_TARGETS
from hyperpod_cdk.living.look import (
    TAGS,
    Kind,
    Look,
    Properties,
    Stated,
    parsed_policy,
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
"""What EC2 gives a group of which no template says where its traffic may go (EC2 user guide, default rules)."""

_TARGETS: Final = (*ROUTE_TARGETS, "VpcEndpointId")
"""Where a route leads; a template alone calls a gateway endpoint by a member of its own."""


def _group(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_security_groups", "InvalidGroup.NotFound", GroupIds=[look.id])
    if found is None:
        return None
    with reading("ec2:DescribeSecurityGroups"):
        (group,) = found["SecurityGroups"]
        egress = [rule for row in group.get("IpPermissionsEgress", ()) for rule in _granted(row, "to")]
        if not look.stated.get("Egress"):
            egress = [rule for rule in egress if rule != _DEFAULT_EGRESS]
        return {
            "Ingress": _rules(rule for row in group.get("IpPermissions", ()) for rule in _granted(row, "from")),
            "Egress": _rules(egress),
            "Tags": group.get("Tags", []),
        }


def _granted(row: Mapping[str, Any], word: str) -> Iterator[str]:
    others = [
        *(each["CidrIp"] for each in row.get("IpRanges", ())),
        *(each["CidrIpv6"] for each in row.get("Ipv6Ranges", ())),
        *(each["PrefixListId"] for each in row.get("PrefixListIds", ())),
        *(each["GroupId"] for each in row.get("UserIdGroupPairs", ())),
    ]
    for other in others:
        yield _rule(row["IpProtocol"], row.get("FromPort"), row.get("ToPort"), word, other)


def _of_group(stated: Stated) -> Properties:
    """Put the rules of a group together: those in it, and those that are resources of their own."""
    rules: dict[str, list[str]] = {}
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


def _stated_rule(row: Mapping[str, Any], word: str, members: tuple[str, ...], resource: Resource) -> str:
    other = next((row[name] for name in members if row.get(name) is not None), None)
    ports = (row.get("FromPort"), row.get("ToPort"))
    if any(isinstance(each, (Reference, Unknown)) for each in (other, row.get("IpProtocol"), *ports)):
        raise NotAnswered(f"a rule of {resource.name} names a side that CloudFormation does not tell")
    return _rule(row.get("IpProtocol"), *ports, word, other)


def _rule(protocol: object, first: object, last: object, word: str, other: object) -> str:
    """Give a rule in words, the same for a template's and for EC2's."""
    if str(protocol) == _ALL:
        return f"all traffic {word} {other}"
    ports = f" {first}" if str(first) == str(last) else f" {first}-{last}"
    return f"{protocol}{'' if first is None or str(first) == _ALL else ports} {word} {other}"


def _rules(rules: Any) -> list[dict[str, str]]:
    return [{"Rule": rule} for rule in dict.fromkeys(rules)]


def _routes(look: Look) -> Properties | None:
    found = look.found("ec2", "describe_route_tables", "InvalidRouteTableID.NotFound", RouteTableIds=[look.id])
    if found is None:
        return None
    with reading("ec2:DescribeRouteTables"):
        (table,) = found["RouteTables"]
        # routes of gateway endpoints and of a virtual private gateway come and go with these
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
        return {
            **taken(endpoint, "ServiceName", "VpcEndpointType", "VpcId", "SubnetIds", "RouteTableIds"),
            **taken(endpoint, "PrivateDnsEnabled", "Tags"),
            "PolicyDocument": statements(parsed_policy(endpoint.get("PolicyDocument"))),
            "SecurityGroupIds": [each["GroupId"] for each in endpoint.get("Groups", ())],
        }


KINDS: Final[Mapping[str, Kind]] = {
    _GROUP: Kind(
        properties=("SecurityGroupIngress", "SecurityGroupEgress", "Tags"),
        read=_group,
        state=_of_group,
        made_by_hand=re.compile(rf"{TAGS}|(?:In|E)gress\[.+\]"),
    ),
    "AWS::EC2::RouteTable": Kind(
        properties=("Tags",),
        read=_routes,
        state=_of_routes,
        made_by_hand=re.compile(rf"{TAGS}|Routes\[.+\]"),
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
        state=with_statements,
        made_by_hand=re.compile(TAGS),
    ),
}
