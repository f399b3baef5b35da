"""What can reach what over the network, as sentences."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.review.model import Reach
from hyperpod_cdk.review.rights.access import access
from hyperpod_cdk.review.rights.reach import difference, is_denied
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import compare
from tests.support.tables import row_by_row

CLOSED = [{"CidrIp": "127.0.0.1/32", "IpProtocol": "-1"}]
GROUP = "security group Efa (prod-network)"


def resource(kind: str, path: str = "", **properties: Any) -> dict[str, Any]:
    """Return a resource; ``path`` is its construct path below the stack."""
    metadata = {"Metadata": {"aws:cdk:path": f"prod/network/{path}"}} if path else {}
    return {"Type": f"AWS::{kind}", "Properties": properties, **metadata}


def group(path: str = "Efa/Group", **properties: Any) -> dict[str, Any]:
    """Return a security group that lets nothing out unless told otherwise."""
    return resource("EC2::SecurityGroup", path, **{"SecurityGroupEgress": CLOSED, **properties})


def judged(before: dict[str, Any], after: dict[str, Any]) -> list[Reach]:
    """Compare two sets of resources."""
    base, head = (
        Assembly(environment="prod", stacks=(Stack(name="prod-network", template={"Resources": each}),))
        for each in (before, after)
    )
    return list(access(base, head, compare(base, head)).reach)


def reach(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the sentences, and whether each is about any address."""
    return [(each.sentence, each.is_world) for each in judged(before, after)]


SELF = {"Fn::GetAtt": ["Efa", "GroupId"]}


@row_by_row(
    "rule, sentence, is_world",
    [
        ({"IpProtocol": "-1", "SourceSecurityGroupId": SELF}, "lets in all traffic from itself", False),
        (
            {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"},
            "lets in tcp 443 from any address (0.0.0.0/0)",
            True,
        ),
        (
            {"IpProtocol": "6", "FromPort": "1018", "ToPort": "1023", "CidrIpv6": "::/0"},
            "lets in tcp 1018-1023 from any address (::/0)",
            True,
        ),
        (
            {"IpProtocol": "UDP", "FromPort": 0, "ToPort": 65535, "CidrIp": "10.1.2.3/16"},
            "lets in all udp from 10.1.0.0/16",
            False,
        ),
        (
            {"IpProtocol": "icmp", "FromPort": 8, "ToPort": -1, "SourcePrefixListId": "pl-1"},
            "lets in icmp type 8 from prefix list pl-1",
            False,
        ),
        ({"IpProtocol": -1, "SourceSecurityGroupId": "sg-1"}, "lets in all traffic from security group sg-1", False),
        (
            {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "SourceSecurityGroupId": {"Ref": "Lustre"}},
            "lets in tcp 988 from security group Lustre (prod-network)",
            False,
        ),
        (
            {"IpProtocol": "tcp", "FromPort": {"Ref": "Port"}, "ToPort": {"Ref": "Port"}, "CidrIp": {"Ref": "Cidr"}},
            "lets in tcp ${Port} from ${Cidr}",
            False,
        ),
        (
            {"IpProtocol": "-1", "CidrIp": {"Fn::GetAtt": ["Vpc", "CidrBlock"]}},
            "lets in all traffic from VPC Network (prod-network)",
            False,
        ),
    ],
)
def test_rules(rule: dict[str, Any], sentence: str, *, is_world: bool) -> None:
    others = {"Lustre": group("Lustre/Group"), "Vpc": resource("EC2::VPC", "Network/Vpc")}
    inline = {**others, "Efa": group(SecurityGroupIngress=[rule])}
    separate = {**others, "Efa": group(), "In": resource("EC2::SecurityGroupIngress", GroupId=SELF, **rule)}
    before = {**others, "Efa": group()}
    if "Efa" not in str(rule):
        assert reach(before, inline) == [(f"{GROUP} {sentence}", is_world)]
        assert not reach(inline, separate)
    assert reach(before, separate) == [(f"{GROUP} {sentence}", is_world)]
    gone = sentence.replace("lets in", "no longer lets in")
    assert reach(separate, before) == [(f"{GROUP} {gone}", is_world)]


def test_egress_rules_name_where_to() -> None:
    assert reach({"Efa": group()}, {"Efa": group(), "Out": out()}) == [
        (f"{GROUP} lets out all traffic to itself", False)
    ]


def test_group_without_egress_rules_lets_everything_out_only_when_it_is_new() -> None:
    default = "all traffic to any address, EC2's default for a group that states no egress"
    bare, rule = group(SecurityGroupEgress=[]), resource("EC2::SecurityGroupEgress", GroupId=SELF, IpProtocol="-1")
    rule["Properties"]["CidrIp"] = "10.0.0.0/8"
    other = {"Other": resource("SNS::Topic")}
    assert reach(other, {**other, "Efa": bare}) == [(f"{GROUP} lets out {default}", True)]
    assert reach({"Efa": bare}, {"Efa": bare, "Out": rule}) == [
        (f"{GROUP} lets out all traffic to 10.0.0.0/8", False),
        (f"{GROUP} no longer lets out {default}", True),
    ]
    # EC2 does not give back what a group once had
    assert reach({"Efa": group()}, {"Efa": bare}) == [
        (f"{GROUP} no longer lets out all traffic to 127.0.0.1/32", False)
    ]


OPEN = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
REMOVES = "CloudFormation removes a rule for it before it creates a separate egress rule"
LOSES = f"may no longer let out all traffic to any address (0.0.0.0/0): {REMOVES}"


def out(group_id: Any = SELF, **peer: Any) -> dict[str, Any]:
    """Return a separate egress rule of a group, for all traffic to itself unless told otherwise."""
    peer = peer or {"DestinationSecurityGroupId": group_id}
    return resource("EC2::SecurityGroupEgress", GroupId=group_id, IpProtocol="-1", **peer)


def test_first_separate_egress_rule_may_cost_a_group_its_rule_for_all_traffic() -> None:
    open_ = group(SecurityGroupEgress=[OPEN])
    added = (f"{GROUP} lets out all traffic to itself", False)
    assert reach({"Efa": open_}, {"Efa": open_, "Out": out()}) == [added, (f"{GROUP} {LOSES}", True)]
    # not by a second one, and none gives it back
    assert reach({"Efa": open_, "Out": out()}, {"Efa": open_, "Out": out(), "Own": out(CidrIp="10.0.0.0/8")}) == [
        (f"{GROUP} lets out all traffic to 10.0.0.0/8", False)
    ]
    assert reach({"Efa": open_, "Out": out()}, {"Efa": open_}) == [
        (f"{GROUP} no longer lets out all traffic to itself", False)
    ]


def test_group_with_a_separate_egress_rule_may_let_out_what_it_states() -> None:
    open_, other = group(SecurityGroupEgress=[OPEN]), {"Other": resource("SNS::Topic")}
    assert (f"{GROUP} may let out all traffic to any address (0.0.0.0/0): {REMOVES}", True) in reach(
        other, {**other, "Efa": open_, "Out": out()}
    )
    assert (f"{GROUP} lets out all traffic to any address (0.0.0.0/0)", True) in reach(other, {**other, "Efa": open_})


@pytest.mark.parametrize(
    "egress",
    [
        [{**OPEN, "CidrIp": half} for half in ("0.0.0.0/1", "128.0.0.0/1")],
        [{"IpProtocol": "-1", "CidrIpv6": "::/0"}],
        [{**OPEN, "IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}],
    ],
    ids=["in halves", "IPv6", "one port"],
)
def test_separate_egress_rule_costs_a_group_no_other_rule(egress: list[Any]) -> None:
    stated = group(SecurityGroupEgress=egress)
    assert reach({"Efa": stated}, {"Efa": stated, "Out": out()}) == [(f"{GROUP} lets out all traffic to itself", False)]


def test_rule_for_all_traffic_that_is_also_separate_remains() -> None:
    open_ = group(SecurityGroupEgress=[OPEN])
    assert not reach({"Efa": open_}, {"Efa": open_, "Out": out(CidrIp="0.0.0.0/0")})


def test_group_that_is_in_no_template_may_lose_its_rule_for_all_traffic() -> None:
    own, foreign = {"Efa": group()}, "sg-0f2c7a9d4e6b81503"
    first = out(foreign, CidrIp="10.0.0.0/8")
    assert reach(own, {**own, "Out": first}) == [
        (f"security group {foreign} lets out all traffic to 10.0.0.0/8", False),
        (f"security group {foreign} {LOSES}", True),
    ]
    assert reach({**own, "Out": first}, {**own, "Out": first, "Own": out(foreign)}) == [
        (f"security group {foreign} lets out all traffic to itself", False)
    ]


PORTS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda ports: (min(ports), max(ports)))


@given(st.lists(PORTS, max_size=8), st.lists(PORTS, max_size=8))
def test_difference_of_ports(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    def every(ranges: list[tuple[int, int]]) -> set[int]:
        return {port for low, high in ranges for port in range(low, high + 1)}

    left = difference(some, others)
    assert every(left) == every(some) - every(others)
    assert all(first[1] < second[0] for first, second in pairwise(left))


@given(st.permutations(range(100, 120)), st.lists(st.integers(100, 119), max_size=5, unique=True))
@settings(max_examples=25, deadline=None)
def test_split_and_reordered_ports_are_no_change(order: list[int], cuts: list[int]) -> None:
    def rule(low: int, high: int) -> dict[str, Any]:
        return {"IpProtocol": "tcp", "FromPort": low, "ToPort": high, "CidrIp": "10.0.0.0/8"}

    single = [rule(port, port) for port in order]
    starts = sorted({100, *cuts})
    ranges = [rule(low, high - 1) for low, high in zip(starts, [*starts[1:], 120], strict=True)]
    assert not reach({"Efa": group(SecurityGroupIngress=single)}, {"Efa": group(SecurityGroupIngress=ranges)})


def subnets(**targets: Any) -> dict[str, Any]:
    """Return two subnets that share a route table with this default route."""
    found: dict[str, Any] = {
        "Table": resource("EC2::RouteTable", "Nodes/RouteTable"),
        "Gateway": resource("EC2::InternetGateway", "InternetGateway"),
        "Nat": resource("EC2::NatGateway", "Nat"),
    }
    for name in ("A", "B"):
        found[name] = resource("EC2::Subnet", f"Nodes{name}")
        found[f"{name}Table"] = resource(
            "EC2::SubnetRouteTableAssociation", SubnetId={"Ref": name}, RouteTableId={"Ref": "Table"}
        )
    if targets:
        found["Route"] = resource(
            "EC2::Route", RouteTableId={"Ref": "Table"}, **{"DestinationCidrBlock": "0.0.0.0/0", **targets}
        )
    return found


BOTH = "subnet NodesA and subnet NodesB"


@pytest.mark.parametrize(
    ("targets", "sentence", "is_world"),
    [
        (
            {"GatewayId": {"Ref": "Gateway"}},
            f"{BOTH} reach any address (0.0.0.0/0) through internet gateway InternetGateway (prod-network)",
            True,
        ),
        (
            {"NatGatewayId": {"Ref": "Nat"}},
            f"{BOTH} reach any address (0.0.0.0/0) through NAT gateway Nat (prod-network)",
            True,
        ),
        (
            {"TransitGatewayId": "tgw-1", "DestinationCidrBlock": "10.0.0.0/8"},
            f"{BOTH} reach 10.0.0.0/8 through transit gateway tgw-1",
            False,
        ),
        (
            {"VpcPeeringConnectionId": "pcx-1", "DestinationCidrBlock": "10.0.0.0/8"},
            f"{BOTH} reach 10.0.0.0/8 through VPC peering pcx-1",
            False,
        ),
    ],
)
def test_routes(targets: dict[str, Any], sentence: str, *, is_world: bool) -> None:
    assert reach(subnets(), subnets(**targets)) == [(sentence, is_world)]
    assert reach(subnets(**targets), subnets()) == [(sentence.replace(" reach ", " no longer reach "), is_world)]


def test_a_subnet_that_takes_another_route_table_gains_its_routes() -> None:
    before = subnets(GatewayId={"Ref": "Gateway"})
    association = before.pop("BTable")
    after = {**before, "BTable": association}
    through = "reaches any address (0.0.0.0/0) through internet gateway InternetGateway (prod-network)"
    assert reach(before, after) == [(f"subnet NodesB {through}", True)]


ROUTES = "which may have routes that are in no template"
ACL_RULES = "which may have rules that are in no template"


@row_by_row(
    "table, told",
    [
        ({"Ref": "Table"}, ""),
        ({"Ref": "Parameter"}, f"route table ${{Parameter}}, {ROUTES}"),
        ({"Fn::ImportValue": "a"}, f"route table {{import a}}, {ROUTES}"),
        (
            {"Fn::If": ["Unknown", {"Ref": "Table"}, "rtb-1"]},
            f"route table {{if Unknown: Table, else rtb-1}}, {ROUTES}",
        ),
        ("rtb-1", f"route table rtb-1, {ROUTES}"),
    ],
)
def test_a_route_table_that_is_in_no_template(table: Any, told: str) -> None:
    before = subnets()
    before.pop("BTable")
    link = resource("EC2::SubnetRouteTableAssociation", SubnetId={"Ref": "B"}, RouteTableId=table)
    after = {**before, "BTable": link}
    gained, lost = judged(before, after), judged(after, before)
    assert [(each.sentence, each.is_grave) for each in gained] == (
        [(f"subnet NodesB (prod-network) uses {told}", True)] if told else []
    )
    assert [(each.sentence, each.is_grave) for each in lost] == (
        [(f"subnet NodesB (prod-network) no longer uses {told}", False)] if told else []
    )
    # whatever it leads to, nothing existing is behind it
    assert [each.is_grave for each in judged({}, after) if "uses" in each.sentence] == [False] * bool(told)


def entry(action: str, block: str) -> dict[str, Any]:
    stated: dict[str, Any] = {
        "RuleNumber": 100,
        "Protocol": -1,
        "RuleAction": action,
        "Egress": False,
        "CidrBlock": block,
    }
    return resource("EC2::NetworkAclEntry", NetworkAclId={"Ref": "Acl"}, **stated)


@row_by_row(
    "acl, rule, told, is_grave",
    [
        ({"Ref": "Acl"}, ("allow", "0.0.0.0/0"), "network ACL Acl (prod-network)", True),
        ({"Ref": "Acl"}, ("allow", "10.0.0.0/8"), "network ACL Acl (prod-network)", False),
        ({"Ref": "Acl"}, ("deny", "0.0.0.0/0"), "network ACL Acl (prod-network)", False),
        ({"Ref": "Parameter"}, ("deny", "0.0.0.0/0"), f"network ACL ${{Parameter}}, {ACL_RULES}", True),
        ("acl-1", ("deny", "0.0.0.0/0"), f"network ACL acl-1, {ACL_RULES}", True),
    ],
)
def test_a_subnet_that_takes_another_network_acl(acl: Any, rule: tuple[str, str], told: str, *, is_grave: bool) -> None:
    before = {"A": resource("EC2::Subnet"), "Acl": resource("EC2::NetworkAcl"), "Rule": entry(*rule)}
    link = resource("EC2::SubnetNetworkAclAssociation", SubnetId={"Ref": "A"}, NetworkAclId=acl)
    (found,) = judged(before, {**before, "Link": link})
    assert (found.sentence, found.is_grave) == (f"subnet A (prod-network) uses {told}", is_grave)
    (found,) = judged({**before, "Link": link}, before)
    assert (found.sentence, found.is_grave) == (f"subnet A (prod-network) no longer uses {told}", False)


def test_public_subnets() -> None:
    public = subnets(GatewayId={"Ref": "Gateway"})
    public["A"] = resource("EC2::Subnet", "NodesA", MapPublicIpOnLaunch=True)
    sentence = "subnet NodesA (prod-network) gives public addresses to resources that start in it"
    assert reach(subnets(GatewayId={"Ref": "Gateway"}), public) == [(sentence, True)]
    private = subnets()
    private["A"] = public["A"]
    assert reach(subnets(), private) == [(sentence, False)]


def test_zone_that_only_the_deployment_shows_is_no_note() -> None:
    subnet = resource("EC2::Subnet", "A", AvailabilityZone={"Fn::Select": [0, {"Fn::GetAZs": ""}]})
    base, head = (
        Assembly(environment="prod", stacks=(Stack(name="prod-network", template={"Resources": each}),))
        for each in ({}, {"A": subnet})
    )
    assert access(base, head, compare(base, head)).notes == ()


def test_endpoints() -> None:
    vpc = {"Vpc": resource("EC2::VPC", "Network/Vpc")}
    service = "com.amazonaws.us-east-1.sts"
    interface = resource("EC2::VPCEndpoint", VpcId={"Ref": "Vpc"}, ServiceName=service, VpcEndpointType="Interface")
    assert reach(vpc, {**vpc, "Sts": interface}) == [
        (f"VPC Network (prod-network) reaches {service} through an Interface endpoint", False)
    ]
    gateway = resource(
        "EC2::VPCEndpoint",
        VpcId={"Ref": "Vpc"},
        ServiceName="com.amazonaws.us-east-1.s3",
        RouteTableIds=[{"Ref": "Table"}],
    )
    assert reach({**vpc, **subnets()}, {**vpc, **subnets(), "S3": gateway}) == [
        (f"{BOTH} reach com.amazonaws.us-east-1.s3 through a gateway endpoint", False)
    ]


def test_network_acl_entries() -> None:
    acl = {"Acl": resource("EC2::NetworkAcl", "Nodes/NetworkAcl")}
    entry = resource(
        "EC2::NetworkAclEntry",
        NetworkAclId={"Ref": "Acl"},
        RuleNumber=100,
        Protocol=6,
        RuleAction="allow",
        CidrBlock="0.0.0.0/0",
        PortRange={"From": 443, "To": 443},
    )
    denied = resource(
        "EC2::NetworkAclEntry", NetworkAclId={"Ref": "Acl"}, RuleNumber=90, Protocol=-1, RuleAction="deny"
    )
    denied["Properties"] |= {"Egress": True, "CidrBlock": "10.0.0.0/8"}
    assert reach(acl, {**acl, "In": entry, "Out": denied}) == [
        ("network ACL Nodes (prod-network) allows tcp 443 from any address (0.0.0.0/0) (rule 100)", True),
        ("network ACL Nodes (prod-network) denies all traffic to 10.0.0.0/8 (rule 90)", False),
    ]


def test_peering_and_attachments() -> None:
    vpc = {"Vpc": resource("EC2::VPC", "Network/Vpc")}
    peering = resource("EC2::VPCPeeringConnection", VpcId={"Ref": "Vpc"}, PeerVpcId="vpc-1", PeerOwnerId="444455556666")
    attachment = resource("EC2::TransitGatewayAttachment", VpcId={"Ref": "Vpc"}, TransitGatewayId="tgw-1")
    assert reach(vpc, {**vpc, "Peer": peering, "Tgw": attachment}) == [
        ("VPC Network (prod-network) is attached to transit gateway tgw-1", False),
        ("VPC Network (prod-network) peers with VPC vpc-1 of account 444455556666", False),
    ]


@pytest.mark.parametrize(
    ("before", "after", "sentences"),
    [
        ({"EndpointPublicAccess": False}, {}, [("answers to any address (0.0.0.0/0) over the internet", True)]),
        (
            {},
            {"PublicAccessCidrs": ["192.0.2.0/24"]},
            [
                ("answers to 192.0.2.0/24 over the internet", False),
                ("no longer answers to any address (0.0.0.0/0) over the internet", True),
            ],
        ),
        (
            {"PublicAccessCidrs": ["192.0.2.0/24", "198.51.100.0/24"], "EndpointPrivateAccess": True},
            {"PublicAccessCidrs": ["198.51.100.0/24", "192.0.2.1/24"]},
            [("no longer answers to its VPC, by a private address", False)],
        ),
    ],
)
def test_api_server(before: dict[str, Any], after: dict[str, Any], sentences: list[tuple[str, bool]]) -> None:
    clusters = [{"Eks": resource("EKS::Cluster", Name="eks", ResourcesVpcConfig=each)} for each in (before, after)]
    who = "the API server of EKS cluster eks"
    assert reach(*clusters) == [(f"{who} {sentence}", is_world) for sentence, is_world in sentences]


def test_bucket_that_opens_to_the_public() -> None:
    every = dict.fromkeys(("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True)
    closed = {"B": resource("S3::Bucket", "Data/Bucket", PublicAccessBlockConfiguration=every)}
    opened = {**every, "BlockPublicPolicy": False, "RestrictPublicBuckets": "false"}
    after = {
        "B": resource("S3::Bucket", "Data/Bucket", PublicAccessBlockConfiguration=opened, AccessControl="PublicRead")
    }
    name = "bucket Data (prod-network)"
    assert reach(closed, after) == [
        (f"{name} accepts a public policy (BlockPublicPolicy is off)", True),
        (f"{name} answers other accounts if its policy is public (RestrictPublicBuckets is off)", True),
        (f"{name} lets anyone read (ACL PublicRead)", True),
    ]
    # S3 blocks by itself for a new bucket; what it does for one that had a block is the deployment's to tell
    gone = f"{name} may no longer block public access: its template no longer states PublicAccessBlockConfiguration"
    assert reach(closed, {"B": resource("S3::Bucket", "Data/Bucket")}) == [(gone, True)]
    assert not reach({"B": resource("S3::Bucket", "Data/Bucket")}, closed)


def test_what_else_is_open_to_the_world() -> None:
    after = {
        "Url": resource("Lambda::Url", AuthType="NONE", TargetFunctionArn={"Fn::GetAtt": ["Gate", "Arn"]}),
        "Gate": resource("Lambda::Function", "Gate/Function"),
        "Balancer": resource("ElasticLoadBalancingV2::LoadBalancer", "Front"),
        "Inner": resource("ElasticLoadBalancingV2::LoadBalancer", "Inner", Scheme="internal"),
    }
    assert reach({}, after) == [
        ("function Gate (prod-network) is callable by any address through its URL, without IAM", True),
        ("load balancer Front (prod-network) is reachable from the internet", True),
    ]


def test_rules_of_one_group_with_one_peer_are_one_sentence() -> None:
    rules = [
        {"IpProtocol": "tcp", "FromPort": low, "ToPort": high, "CidrIp": "10.0.0.0/8"}
        for low, high in ((1018, 1023), (988, 988))
    ]
    after = {"Efa": group(SecurityGroupIngress=[*rules, {"IpProtocol": "icmp", "CidrIp": "10.0.0.0/8"}])}
    assert reach({"Efa": group()}, after) == [
        (f"{GROUP} lets in icmp, tcp 988 and tcp 1018-1023 from 10.0.0.0/8", False)
    ]


def test_what_stays_and_takes_another_security_group() -> None:
    groups = {"Efa": group(), "Lustre": group("Lustre/Group")}

    def cluster(*ids: Any) -> dict[str, Any]:
        config = {"SecurityGroupIds": list(ids), "Subnets": ["subnet-1"]}
        instance_groups = [{"InstanceGroupName": "a", "OverrideVpcConfig": config}]
        return {**groups, "Cluster": resource("SageMaker::Cluster", "HyperPod/Cluster", InstanceGroups=instance_groups)}

    assert reach(cluster(SELF, "sg-1"), cluster("sg-1", {"Fn::GetAtt": ["Lustre", "GroupId"]})) == [
        ("HyperPod cluster HyperPod (prod-network) is in security group Lustre (prod-network)", False),
        ("HyperPod cluster HyperPod (prod-network) is no longer in security group Efa (prod-network)", False),
    ]
    assert not reach(cluster(SELF), cluster({"Ref": "Efa"}))


def test_the_cause_of_a_path_is_what_changes() -> None:
    before = subnets(GatewayId={"Ref": "Gateway"})
    association = before.pop("BTable")
    (found,) = judged(before, {**before, "BTable": association})
    assert (found.stack, found.logical_id) == ("prod-network", "BTable")
    (found,) = judged(subnets(), subnets(GatewayId={"Ref": "Gateway"}))
    assert (found.stack, found.logical_id) == ("prod-network", "Route")


def test_odd_rules_are_no_error() -> None:
    odd = group(SecurityGroupIngress=["odd", {"IpProtocol": {"a": 1}, "CidrIp": None}, 5])
    assert reach({"Efa": group()}, {"Efa": odd}) == [(f'{GROUP} lets in {{"a": 1}} from null', False)]


ACL = ("acl", "acl-1", "False", "10", "deny", "tcp", "22-25", "192.0.2.0/24")


@row_by_row(
    "number, protocol, ports, block, denied",
    [
        ("10", "tcp", "22-25", "192.0.2.0/24", True),
        ("10", "tcp", "22-25", "192.0.0.0/16", True),
        ("10", "tcp", "20-30", "0.0.0.0/0", True),
        ("10", "tcp", "", "192.0.2.0/24", True),
        ("10", "all", "", "192.0.2.0/24", True),
        ("9", "all", "", "192.0.2.0/24", True),
        # what comes later may come after a rule that allows
        ("11", "all", "", "192.0.2.0/24", False),
        ("${Number}", "all", "", "192.0.2.0/24", False),
        ("10", "tcp", "23-25", "192.0.2.0/24", False),
        ("10", "tcp", "22-24", "192.0.2.0/24", False),
        ("10", "tcp", "22", "192.0.2.0/24", False),
        ("10", "tcp", "${Port}", "192.0.2.0/24", False),
        ("10", "udp", "", "192.0.2.0/24", False),
        ("10", "tcp", "22-25", "192.0.2.0/25", False),
        ("10", "tcp", "22-25", "::/0", False),
        ("10", "tcp", "22-25", "${Block}", False),
    ],
)
def test_what_a_network_acl_denies_still(number: str, protocol: str, ports: str, block: str, *, denied: bool) -> None:
    """Rules are evaluated from the lowest number on (VPC user guide, network ACL rules)."""
    rule = (*ACL[:3], number, "deny", protocol, ports, block)
    assert is_denied(ACL, [rule]) is denied
    assert not is_denied(ACL, [("acl", "acl-2", *rule[2:])])
    assert not is_denied(ACL, [(*rule[:2], "True", *rule[3:])])
    assert not is_denied(ACL, [(*rule[:4], "allow", *rule[5:])])


def test_ports_that_end_before_they_begin_are_reported() -> None:
    def of(first: int) -> dict[str, Any]:
        rule = {"IpProtocol": "tcp", "FromPort": first, "ToPort": 988, "CidrIp": "10.0.0.0/8"}
        return {"Efa": group(SecurityGroupIngress=[rule])}

    assert [each for each, _ in reach(of(988), of(989))]
