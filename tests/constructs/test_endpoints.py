"""A network without a way out, and the interface endpoints that stand in for it."""

from __future__ import annotations

import re
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from hyperpod_cdk.catalog import network as rules
from hyperpod_cdk.network.endpoints import InterfaceEndpoints
from hyperpod_cdk.network.vpc import EfaSecurityGroup, Network
from tests.support.tables import row_by_row
from tests.support.templates import app, of_type, stack, template_of

ZONES = {"use1-az5": "10.5.0.0/16", "use1-az4": "10.4.0.0/28"}
THREE_ZONES = {**ZONES, "use1-az6": "10.6.0.0/20"}


def closed(zones: dict[str, str] = ZONES, **options: Any) -> tuple[cdk.Stack, Network]:
    own = stack()
    network = Network(
        own, "Network", vpc_cidr="10.192.0.0/20", availability_zones=zones, egress="closed", flow_logs=False, **options
    )
    return own, network


def endpoints(own: cdk.Stack, network: Network, **options: Any) -> InterfaceEndpoints:
    group = EfaSecurityGroup(own, "Efa", vpc=network.vpc).security_group
    return InterfaceEndpoints(
        own,
        "Endpoints",
        vpc=network.vpc,
        **{"subnet_ids": network.endpoint_subnet_ids, "clients": [group], "services": ["ecr.api", "sts"], **options},
    )


def plain(logical_id: str) -> str:
    return logical_id.removeprefix("Network").removeprefix("Endpoints")[:-8]


def test_nothing_leads_out() -> None:
    own, network = closed()
    template = template_of(own)

    assert {row["Type"] for row in template["Resources"].values()} == {
        "AWS::EC2::VPC",
        "AWS::EC2::VPCCidrBlock",
        "AWS::EC2::Subnet",
        "AWS::EC2::RouteTable",
        "AWS::EC2::SubnetRouteTableAssociation",
        "AWS::EC2::VPCEndpoint",
    }
    assert network.public_subnets == []
    assert {plain(name) for name in of_type(template, "AWS::EC2::Subnet")} == {
        "ControlPlaneSubnetUse1Az5",
        "ControlPlaneSubnetUse1Az4",
        "NodeSubnetUse1Az5",
        "NodeSubnetUse1Az4",
    }


@pytest.mark.parametrize(
    ("chosen", "subnets"),
    [
        (None, {"use1-az5": "ControlPlane", "use1-az4": "ControlPlane", "use1-az6": "Endpoint"}),
        (["use1-az6"], {"use1-az6": "Endpoint"}),
        (["use1-az4", "use1-az5"], {"use1-az5": "ControlPlane", "use1-az4": "ControlPlane"}),
    ],
)
def test_endpoints_stand_beside_the_control_plane_else_alone(chosen: list[str] | None, subnets: dict[str, str]) -> None:
    own, network = closed(THREE_ZONES, endpoint_zones=chosen)
    rows = of_type(template_of(own), "AWS::EC2::Subnet")
    ids = own.resolve(dict(network.endpoint_subnet_ids))

    assert {zone: plain(found["Ref"]) for zone, found in ids.items()} == {
        zone: f"{role}Subnet{''.join(part.capitalize() for part in zone.split('-'))}" for zone, role in subnets.items()
    }
    assert all(rows[found["Ref"]]["Properties"]["AvailabilityZoneId"] == zone for zone, found in ids.items())


def test_a_zone_that_is_appended_moves_no_subnet() -> None:
    def blocks(zones: dict[str, str]) -> dict[str, str]:
        own, _ = closed(zones)
        return {
            name: row["Properties"]["CidrBlock"] for name, row in of_type(template_of(own), "AWS::EC2::Subnet").items()
        }

    before, after = blocks(ZONES), blocks(THREE_ZONES)
    assert {name: after[name] for name in before} == before
    assert {plain(name): after[name] for name in after.keys() - before.keys()} == {
        "EndpointSubnetUse1Az6": "10.192.2.0/24",
        "NodeSubnetUse1Az6": "10.6.0.0/20",
    }


def test_every_route_table_reaches_s3() -> None:
    own, _ = closed(THREE_ZONES)
    template = template_of(own)
    (gateway,) = of_type(template, "AWS::EC2::VPCEndpoint").values()

    assert {table["Ref"] for table in gateway["Properties"]["RouteTableIds"]} == set(
        of_type(template, "AWS::EC2::RouteTable")
    )


def test_the_endpoints() -> None:
    own, network = closed()
    endpoints(own, network, client_cidrs=["10.192.0.0/20"])
    template = template_of(own)
    rows = {plain(name): row["Properties"] for name, row in of_type(template, "AWS::EC2::VPCEndpoint").items()}
    (group_id,) = [name for name in of_type(template, "AWS::EC2::SecurityGroup") if name.startswith("Endpoints")]

    assert sorted(rows) == ["EcrApi", "S3Endpoint", "Sts"]
    assert rows["EcrApi"]["VpcEndpointType"] == "Interface"
    assert rows["EcrApi"]["PrivateDnsEnabled"] is True
    assert rows["EcrApi"]["ServiceName"] == {"Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".ecr.api"]]}
    assert rows["EcrApi"]["SubnetIds"] == own.resolve(list(network.endpoint_subnet_ids.values()))
    assert rows["EcrApi"]["SecurityGroupIds"] == [{"Fn::GetAtt": [group_id, "GroupId"]}]
    group = template["Resources"][group_id]["Properties"]
    assert [(rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) for rule in group["SecurityGroupIngress"]] == [
        (443, 443, "tcp"),
        (443, 443, "tcp"),
    ]
    by_id, by_block = group["SecurityGroupIngress"]
    assert by_id["SourceSecurityGroupId"]["Fn::GetAtt"][0].startswith("EfaGroup")
    assert by_block["CidrIp"] == "10.192.0.0/20"
    assert [rule["CidrIp"] for rule in group["SecurityGroupEgress"]] == ["255.255.255.255/32"]


def test_a_client_of_aws_waits_for_all_of_them() -> None:
    own, network = closed()
    made = endpoints(own, network)
    client = cdk.CfnResource(own, "Client", type="AWS::SNS::Topic")
    client.node.add_dependency(made.ready)

    assert {plain(name) for name in template_of(own)["Resources"]["Client"]["DependsOn"]} == {"EcrApi", "Sts"}


def test_without_services_those_of_nodes_and_kubectl() -> None:
    own, network = closed()
    endpoints(own, network, services=None)

    made = of_type(template_of(own), "AWS::EC2::VPCEndpoint")
    assert len(made) == 1 + len(rules.endpoint_services())


@pytest.mark.parametrize(
    ("region", "service", "name"),
    [
        ("cn-north-1", "ecr.api", "cn.com.amazonaws."),
        ("cn-north-1", "ssm", "com.amazonaws."),
        ("us-gov-west-1", "ecr.api", "com.amazonaws."),
        (None, "ecr.api", "com.amazonaws."),
    ],
)
def test_china_has_names_of_its_own(region: str | None, service: str, name: str) -> None:
    own = cdk.Stack(app(), "Own", env=cdk.Environment(region=region))
    vpc = ec2.Vpc.from_vpc_attributes(own, "Vpc", vpc_id="vpc-1", availability_zones=["a"])
    InterfaceEndpoints(
        own,
        "Endpoints",
        vpc=vpc,
        subnet_ids={"usgw1-az1" if region == "us-gov-west-1" else "cnn1-az1": "subnet-0a1b2c3d4e5f67890"},
        services=[service],
        client_cidrs=["10.0.0.0/16"],
    )
    (row,) = Template.from_stack(own).find_resources("AWS::EC2::VPCEndpoint").values()

    assert row["Properties"]["ServiceName"]["Fn::Join"][1][0] == name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subnet_ids": {}}, "subnet_ids: must hold at least one subnet, got none; add one by its AZ ID"),
        (
            {"subnet_ids": {"us-east-1a": "subnet-0a1b2c3d4e5f67890"}},
            (
                "subnet_ids['us-east-1a']: must be an availability zone ID such as use1-az1, got the name"
                ' "us-east-1a", which means another zone in each account; find its ID with'
                " 'aws ec2 describe-availability-zones --region us-east-1' and set the key to it"
            ),
        ),
        (
            {"subnet_ids": {"zzz9-az1": "subnet-0a1b2c3d4e5f67890"}},
            (
                "subnet_ids['zzz9-az1']: must be an availability zone ID of us-east-1 (use1-az...), got zzz9-az1; write"
                " one of us-east-1"
            ),
        ),
        (
            {"clients": []},
            "clients: must name who may call the endpoints, got nobody; add a group or client_cidrs",
        ),
        (
            {"services": ["sts", "sts"]},
            "services[1]: must be named once, got sts again after [0]; remove one of the two",
        ),
        (
            {"services": ["s3"]},
            (
                "services[0]: must be another service, got s3, which every subnet reaches through the gateway endpoint;"
                " remove it"
            ),
        ),
        (
            {"services": ["com.amazonaws.us-east-1.sts"]},
            (
                "services[0]: must be the part of an endpoint's name after the region, such as secretsmanager,"
                ' got "com.amazonaws.us-east-1.sts"; set services[0]="sts"'
            ),
        ),
    ],
)
def test_refused_endpoints(options: dict[str, Any], message: str) -> None:
    own, network = closed()
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        endpoints(own, network, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"egress": "closed", "nat_gateways": 1},
            'nat_gateways: must be left out of a closed network, which has none, got 1; remove it or set egress="nat"',
        ),
        (
            {"endpoint_zones": ["use1-az5"]},
            (
                "endpoint_zones: must be left out of a network with NAT gateways, which has no interface endpoints;"
                ' remove it or set egress="closed"'
            ),
        ),
        (
            {"egress": "closed", "endpoint_zones": []},
            "endpoint_zones: must name at least one zone, all of use1-az5, use1-az4, got none; leave it out for all",
        ),
        (
            {"egress": "closed", "endpoint_zones": ["use1-az6"]},
            (
                "endpoint_zones: must name at least one zone, all of use1-az5, use1-az4, got use1-az6; leave it out for"
                " all"
            ),
        ),
    ],
)
def test_refused_networks(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Network(stack(), "Network", vpc_cidr="10.192.0.0/20", availability_zones=ZONES, **options)


@row_by_row("prefix", range(16, 29))
def test_node_blocks_of_every_size(prefix: int) -> None:
    own, _ = closed({**ZONES, "use1-az4": f"10.4.0.0/{prefix}"})
    blocks = [row["Properties"]["CidrBlock"] for row in of_type(template_of(own), "AWS::EC2::VPCCidrBlock").values()]
    assert blocks == ["10.5.0.0/16", f"10.4.0.0/{prefix}"]


@pytest.mark.parametrize("prefix", [15, 29])
def test_node_blocks_beside_the_bounds(prefix: int) -> None:
    with pytest.raises(ValueError, match=f"must be between /16 and /28, got /{prefix}"):
        closed({**ZONES, "use1-az4": f"10.8.0.0/{prefix}"})
