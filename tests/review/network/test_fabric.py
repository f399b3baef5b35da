"""The proof of EFA, Lustre, S3 and AWS's APIs over templates in every shape, whole and broken."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.review.model import Proof
from hyperpod_cdk.review.network.fabric import (
    APIS,
    CLIENTS,
    EFA,
    EFA_IN,
    EFA_OUT,
    ONE_ZONE,
    PLAN_ZONE,
    S3,
    SAME_ZONE,
    SERVERS,
    efa_proofs,
    fabric,
)
from hyperpod_cdk.review.network.security_groups import SecurityGroups
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_assembly, read_template
from hyperpod_cdk.templates.groups import CLUSTER, part
from hyperpod_cdk.templates.rules.network import efa_security_group
from hyperpod_cdk.templates.rules.rule import Context
from tests.support.assembly import ENVIRONMENTS, OF_THEIR_OWN, shipped
from tests.support.tables import row_by_row
from tests.support.unknown_values import with_unknown

OPEN = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
HALVES = [{"IpProtocol": "-1", "CidrIp": each} for each in ("0.0.0.0/1", "128.0.0.0/1")]
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
FOREIGN = Path(__file__).parents[1] / "foreign"
Resources = dict[str, dict[str, Any]]


def res(resource_type: str, **properties: Any) -> dict[str, Any]:
    return {"Type": resource_type, "Properties": properties}


def rule(side: str, owner: Any, peer: Any, protocol: Any = "-1", **more: Any) -> dict[str, Any]:
    other = {"Ingress": "SourceSecurityGroupId", "Egress": "DestinationSecurityGroupId"}[side]
    return res(f"AWS::EC2::SecurityGroup{side}", GroupId=owner, IpProtocol=protocol, **{other: peer}, **more)


def group(name: str = "h100", subnets: Any = ("S",), groups: Any = ("G",), **more: Any) -> dict[str, Any]:
    network = {
        "Subnets": [{"Ref": each} if isinstance(each, str) and "-" not in each else each for each in subnets],
        "SecurityGroupIds": [{"Ref": each} if isinstance(each, str) and "-" not in each else each for each in groups],
    }
    body = {
        "InstanceGroupName": name,
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": 2,
        "OverrideVpcConfig": network,
    }
    return {**body, **more}


def cluster(*groups: dict[str, Any]) -> dict[str, Any]:
    return res("AWS::SageMaker::Cluster", InstanceGroups=list(groups or (group(),)))


def network() -> Resources:
    """Return a VPC with a node subnet behind NAT, a gateway endpoint and a security group for EFA."""
    return {
        "V": res("AWS::EC2::VPC", CidrBlock="10.0.0.0/16"),
        "S": res("AWS::EC2::Subnet", VpcId={"Ref": "V"}, AvailabilityZoneId="use1-az5", CidrBlock="10.0.0.0/20"),
        "Pub": res("AWS::EC2::Subnet", VpcId={"Ref": "V"}, AvailabilityZoneId="use1-az5", CidrBlock="10.0.16.0/28"),
        "T": res("AWS::EC2::RouteTable", VpcId={"Ref": "V"}),
        "PubT": res("AWS::EC2::RouteTable", VpcId={"Ref": "V"}),
        "A": res("AWS::EC2::SubnetRouteTableAssociation", SubnetId={"Ref": "S"}, RouteTableId={"Ref": "T"}),
        "PubA": res("AWS::EC2::SubnetRouteTableAssociation", SubnetId={"Ref": "Pub"}, RouteTableId={"Ref": "PubT"}),
        "Igw": res("AWS::EC2::InternetGateway"),
        "Nat": res("AWS::EC2::NatGateway", SubnetId={"Ref": "Pub"}),
        "R": res(
            "AWS::EC2::Route", RouteTableId={"Ref": "T"}, DestinationCidrBlock="0.0.0.0/0", NatGatewayId={"Ref": "Nat"}
        ),
        "PubR": res(
            "AWS::EC2::Route", RouteTableId={"Ref": "PubT"}, DestinationCidrBlock="0.0.0.0/0", GatewayId={"Ref": "Igw"}
        ),
        "E": res(
            "AWS::EC2::VPCEndpoint",
            VpcId={"Ref": "V"},
            VpcEndpointType="Gateway",
            ServiceName={"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"},
            RouteTableIds=[{"Ref": "T"}],
        ),
        "G": res("AWS::EC2::SecurityGroup", VpcId={"Ref": "V"}, SecurityGroupEgress=HALVES),
        "In": rule("Ingress", {"Ref": "G"}, {"Ref": "G"}),
        "Out": rule("Egress", {"Ref": "G"}, {"Ref": "G"}),
        "C": cluster(),
    }


def assembly(resources: Resources, **sections: Any) -> Assembly:
    return Assembly(environment="", stacks=(Stack(name="lab", template={"Resources": resources, **sections}),))


def proofs(resources: Resources, subject: str = "h100", **sections: Any) -> dict[str, Proof]:
    found = {each.subject: each for each in fabric(EMPTY, assembly(resources, **sections)).subjects}
    return {proof.name: proof for proof in found[subject].proofs}


def said(proof: Proof) -> tuple[str, str]:
    return proof.result, proof.detail


def test_a_whole_network_is_proven_down_to_the_words() -> None:
    (subject,) = fabric(EMPTY, assembly(network())).subjects
    assert (subject.subject, subject.kind, subject.stack, subject.logical_id) == ("h100", "instance group", "lab", "C")
    assert [(each.name, *said(each)) for each in subject.proofs] == [
        (EFA_IN, "holds", "G (lab) allows all traffic from itself"),
        (EFA_OUT, "holds", "G (lab) allows all traffic to itself"),
        (ONE_ZONE, "holds", "all its nodes are in use1-az5"),
        (S3, "holds", "S (lab) reaches it by gateway endpoint E (lab)"),
        (APIS, "holds", "S (lab) reaches them through Nat (lab)"),
    ]


SELF = {"Ref": "G"}
INLINE = {"Fn::GetAtt": ["G", "GroupId"]}


@pytest.mark.parametrize("protocol", ["-1", -1])
@pytest.mark.parametrize(
    "owner", [SELF, INLINE, {"Fn::GetAtt": "G.GroupId"}, {"Fn::Sub": "${G.GroupId}"}, {"Fn::Sub": "${G}"}]
)
@pytest.mark.parametrize("peer", [SELF, INLINE, {"Fn::Sub": "${G.GroupId}"}])
def test_every_way_to_write_a_rule_of_its_own(owner: Any, peer: Any, protocol: Any) -> None:
    found = proofs(
        {**network(), "In": rule("Ingress", owner, peer, protocol), "Out": rule("Egress", owner, peer, protocol)}
    )
    assert {found[EFA_IN].result, found[EFA_OUT].result} == {"holds"}


def test_rules_inside_the_group() -> None:
    inside = {
        "SecurityGroupIngress": [{"IpProtocol": -1, "SourceSecurityGroupId": INLINE}],
        "SecurityGroupEgress": [{"IpProtocol": "-1", "DestinationSecurityGroupId": INLINE}, OPEN],
    }
    made = {**network(), "G": res("AWS::EC2::SecurityGroup", **inside)}
    del made["In"], made["Out"]
    found = proofs(made)
    assert {found[EFA_IN].result, found[EFA_OUT].result} == {"holds"}


@row_by_row(
    "egress, result",
    [
        ([OPEN], "unknown"),
        ([OPEN, HALVES[0]], "unknown"),
        (HALVES, "holds"),
        ([HALVES[1], OPEN, HALVES[0]], "holds"),
        (HALVES[:1], "broken"),
        ([HALVES[0], {**HALVES[1], "IpProtocol": "udp"}], "broken"),
        ([{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}], "holds"),
    ],
)
def test_all_traffic_out_is_removed_by_a_separate_rule_unless_in_halves(egress: list[Any], result: str) -> None:
    changed = {**network(), "G": res("AWS::EC2::SecurityGroup", VpcId={"Ref": "V"}, SecurityGroupEgress=egress)}
    assert proofs(changed)["S3"].result == result


NO_OUT = "no rule lets G (lab) send to itself: 0.0.0.0/0 does not replace it; EFA health checks fail"
NO_IN = "no rule lets G (lab) receive from itself; EFA health checks fail"


@row_by_row(
    "change, inside, outside",
    [
        ({"Out": None}, ("holds", "G (lab) allows all traffic from itself"), ("broken", NO_OUT)),
        ({"In": None}, ("broken", NO_IN), ("holds", "G (lab) allows all traffic to itself")),
        # CDK's allow_all_outbound with allow_internally: nothing out by id
        (
            {"Out": None, "G": res("AWS::EC2::SecurityGroup")},
            ("holds", "G (lab) allows all traffic from itself"),
            ("broken", NO_OUT),
        ),
        (
            {"Out": None, "G": res("AWS::EC2::SecurityGroup", SecurityGroupEgress=[{**OPEN, "CidrIp": "10.0.0.0/16"}])},
            ("holds", "G (lab) allows all traffic from itself"),
            ("broken", "no rule lets G (lab) send to itself; EFA health checks fail"),
        ),
        ({"In": rule("Ingress", SELF, SELF, "tcp", FromPort=0, ToPort=65535)}, ("broken", NO_IN), None),
        (
            {"In": rule("Ingress", SELF, {"Ref": "Other"}), "Other": res("AWS::EC2::SecurityGroup")},
            ("broken", NO_IN),
            None,
        ),
        ({"In": rule("Ingress", SELF, "sg-0a1b2c3d")}, ("broken", NO_IN), None),
        ({"In": res("AWS::EC2::SecurityGroupIngress", GroupId=SELF, **OPEN)}, ("broken", NO_IN), None),
        # a parameter of the same template is no group that the template makes
        ({"In": rule("Ingress", SELF, {"Ref": "Param"})}, ("broken", NO_IN), None),
        (
            {"In": rule("Ingress", SELF, {"Fn::ImportValue": "elsewhere"})},
            ("unknown", "the templates do not show every rule of G (lab)"),
            None,
        ),
        (
            {"In": {**rule("Ingress", SELF, SELF), "Condition": "Asked"}},
            ("unknown", "the templates do not show every rule of G (lab)"),
            None,
        ),
        ({"In": {**rule("Ingress", SELF, SELF), "Condition": "Never"}}, ("broken", NO_IN), None),
        (
            {"In": None, "G": res("AWS::EC2::SecurityGroup", SecurityGroupIngress={"Fn::If": ["Asked", [], []]})},
            ("unknown", "the templates do not show every rule of G (lab)"),
            None,
        ),
        (
            {"In": rule("Ingress", SELF, SELF, {"Ref": "Param"})},
            ("unknown", "the templates do not show every rule of G (lab)"),
            None,
        ),
    ],
)
def test_what_breaks_efa(change: dict[str, Any], inside: tuple[str, str], outside: tuple[str, str] | None) -> None:
    made = {name: body for name, body in {**network(), **change}.items() if body is not None}
    found = proofs(
        made,
        Parameters={"Param": {"Type": "String"}},
        Conditions={"Asked": {"Fn::Equals": [{"Ref": "Param"}, "x"]}, "Never": {"Fn::Equals": ["a", "b"]}},
    )
    assert said(found[EFA_IN]) == inside
    if outside:
        assert said(found[EFA_OUT]) == outside


def test_one_group_of_several_does() -> None:
    made = {**network(), "Plain": res("AWS::EC2::SecurityGroup"), "C": cluster(group(groups=("Plain", "G", "sg-1f")))}
    found = proofs(made)
    assert [said(found[name])[0] for name in (EFA_IN, EFA_OUT)] == ["holds", "holds"]


def test_two_groups_with_a_side_each_are_not_documented() -> None:
    made = {**network(), "H": res("AWS::EC2::SecurityGroup"), "Out": rule("Egress", {"Ref": "H"}, {"Ref": "H"})}
    made["C"] = cluster(group(groups=("G", "H")))
    found = proofs(made)
    detail = (
        "G (lab) allows all traffic from itself, and H (lab) allows all traffic to itself: whether two groups "
        "together are sufficient is not documented"
    )
    assert said(found[EFA_IN]) == said(found[EFA_OUT]) == ("unknown", detail)


def test_groups_from_elsewhere_are_not_judged_but_for_what_a_template_adds() -> None:
    elsewhere = "sg-0abc is not in these templates; run 'hyperpod-cdk preflight ENV'"
    made = {**network(), "C": cluster(group(groups=("sg-0abc",)))}
    found = proofs(made)
    assert said(found[EFA_IN]) == said(found[EFA_OUT]) == ("unknown", elsewhere)
    assert said(found[APIS]) == (
        "unknown",
        f"S (lab) reaches them through Nat (lab), if security groups allow it: {elsewhere}",
    )
    made |= {"In": rule("Ingress", "sg-0abc", "sg-0abc"), "Out": rule("Egress", "sg-0abc", "sg-0abc")}
    found = proofs(made)
    assert [found[name].result for name in (EFA_IN, EFA_OUT)] == ["holds", "holds"]


@pytest.mark.parametrize(
    ("owner", "resource", "results"),
    [
        ("V.DefaultSecurityGroup", None, ["holds", "broken"]),
        ("K.ClusterSecurityGroupId", res("AWS::EKS::Cluster"), ["holds", "holds"]),
    ],
)
def test_groups_that_aws_makes_have_the_rules_that_aws_documents(
    owner: str, resource: dict[str, Any] | None, results: list[str]
) -> None:
    made = {**network(), "C": cluster(group(groups=({"Fn::GetAtt": owner},))), **({"K": resource} if resource else {})}
    found = proofs(made)
    assert [found[name].result for name in (EFA_IN, EFA_OUT)] == results
    assert found[APIS].result == "holds"


@pytest.mark.parametrize(
    ("instance_type", "names"),
    [
        ("ml.p5.48xlarge", [EFA_IN, EFA_OUT, ONE_ZONE, S3, APIS]),
        ("ml.g5.xlarge", [EFA, ONE_ZONE, S3, APIS]),
        ("ml.m5.2xlarge", [S3, APIS]),
        ("ml.x99.metal", [EFA_IN, EFA_OUT, ONE_ZONE, S3, APIS]),
    ],
)
def test_what_is_proven_of_a_type(instance_type: str, names: list[str]) -> None:
    found = proofs({**network(), "C": cluster(group(InstanceType=instance_type))})
    assert list(found) == names
    assert EFA not in found or said(found[EFA]) == ("holds", "no EFA on ml.g5.xlarge: no rule is needed")


def zones(**body: Any) -> Resources:
    return {**network(), "S2": res("AWS::EC2::Subnet", VpcId={"Ref": "V"}, **body)}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"AvailabilityZoneId": "use1-az5"}, ("holds", "all its nodes are in use1-az5")),
        (
            {"AvailabilityZoneId": "use1-az4"},
            ("broken", "its nodes are in use1-az5 and use1-az4: EFA traffic does not leave a zone"),
        ),
        ({"AvailabilityZone": "us-east-1a"}, ("unknown", "whether S (lab), S2 (lab) are in one zone is unknown")),
        ({}, ("unknown", "whether S (lab), S2 (lab) are in one zone is unknown")),
    ],
)
def test_one_zone(other: dict[str, Any], expected: tuple[str, str]) -> None:
    assert said(proofs({**zones(**other), "C": cluster(group(subnets=("S", "S2")))})[ONE_ZONE]) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"AvailabilityZoneId": "use1-az5"}, ("holds", "a and b are in use1-az5")),
        (
            {"AvailabilityZoneId": "use1-az4"},
            (
                "broken",
                "a and b share h100-april and are in use1-az5 and use1-az4: EFA traffic does not leave a zone",
            ),
        ),
        ({}, ("unknown", "whether a and b are in one zone is unknown")),
    ],
)
def test_groups_of_one_plan(other: dict[str, Any], expected: tuple[str, str]) -> None:
    both = [group("a", TrainingPlanArn=PLAN), group("b", ("S2",), TrainingPlanArn=PLAN), group("c")]
    made = {**zones(**other), "C": cluster(*both)}
    assert [said(proofs(made, name)[PLAN_ZONE]) for name in "ab"] == [expected, expected]
    assert PLAN_ZONE not in proofs(made, "c")


PRIVATE_ONLY = "an internet gateway, which nodes without public addresses cannot use"
MISSING = "ec2, ecr.api, ecr.dkr, eks-auth, logs, sagemaker.api and 3 more"


def way(**target: Any) -> dict[str, Any]:
    return res("AWS::EC2::Route", RouteTableId={"Ref": "T"}, DestinationCidrBlock="0.0.0.0/0", **target)


@row_by_row(
    "change, s3, apis",
    [
        (
            {"E": None},
            (
                "holds",
                "S (lab) reaches it through Nat (lab), which charges for every gigabyte, unlike a gateway endpoint",
            ),
            ("holds", "S (lab) reaches them through Nat (lab)"),
        ),
        (
            {"E": None, "R": None},
            ("broken", "no gateway endpoint for S (lab), and T (lab) has no default route"),
            ("broken", f"no interface endpoint for {MISSING}, and T (lab) has no default route"),
        ),
        (
            {"A": None},
            (
                "broken",
                (
                    "no gateway endpoint for S (lab), and S (lab) has no route table of its own, and the VPC's has "
                    "no way out"
                ),
            ),
            None,
        ),
        (
            {"E": None, "R": way(GatewayId={"Ref": "Igw"})},
            ("broken", f"no gateway endpoint for S (lab), and S (lab) has a route to {PRIVATE_ONLY}"),
            ("broken", f"no interface endpoint for {MISSING}, and S (lab) has a route to {PRIVATE_ONLY}"),
        ),
        (
            {"E": None, "PubR": None},
            (
                "broken",
                (
                    "no gateway endpoint for S (lab), and Nat (lab) is in Pub (lab), which has no route to an "
                    "internet gateway"
                ),
            ),
            None,
        ),
        (
            {"E": None, "R": way(TransitGatewayId="tgw-1")},
            (
                "unknown",
                ("the default route leads to tgw-1; the templates do not show the route from there"),
            ),
            (
                "unknown",
                ("the default route leads to tgw-1; the templates do not show the route from there"),
            ),
        ),
        (
            {"E": None, "R": way(NatGatewayId="nat-1")},
            ("unknown", "nat-1 is not in these templates; run 'hyperpod-cdk preflight ENV'"),
            ("unknown", "nat-1 is not in these templates; run 'hyperpod-cdk preflight ENV'"),
        ),
        (
            {
                "G": res(
                    "AWS::EC2::SecurityGroup",
                    SecurityGroupEgress=[{"IpProtocol": "-1", "DestinationSecurityGroupId": SELF}],
                )
            },
            ("broken", "no rule lets G (lab) send to any address on port 443"),
            ("broken", "no rule lets G (lab) send to any address on port 443"),
        ),
        (
            {"Acl": res("AWS::EC2::SubnetNetworkAclAssociation", SubnetId={"Ref": "S"}, NetworkAclId="acl-1")},
            ("unknown", "S (lab) reaches it by gateway endpoint E (lab), if network ACL acl-1 allows it"),
            ("unknown", "S (lab) reaches them through Nat (lab), if network ACL acl-1 allows it"),
        ),
        (
            {"C": cluster(group(subnets=("subnet-0d5a",)))},
            ("unknown", "subnet-0d5a is not in these templates; run 'hyperpod-cdk preflight ENV'"),
            ("unknown", "subnet-0d5a is not in these templates; run 'hyperpod-cdk preflight ENV'"),
        ),
    ],
)
def test_the_way_to_s3_and_the_apis(
    change: dict[str, Any], s3: tuple[str, str] | None, apis: tuple[str, str] | None
) -> None:
    found = proofs({name: body for name, body in {**network(), **change}.items() if body is not None})
    for name, expected in ((S3, s3), (APIS, apis)):
        assert expected is None or said(found[name]) == expected


def test_an_acl_that_allows_everything_has_no_effect() -> None:
    entries = {
        f"N{egress}": res(
            "AWS::EC2::NetworkAclEntry",
            NetworkAclId={"Ref": "N"},
            Egress=egress,
            Protocol=-1,
            RuleAction="allow",
            RuleNumber=100,
            CidrBlock="0.0.0.0/0",
        )
        for egress in (True, False)
    }
    link = res("AWS::EC2::SubnetNetworkAclAssociation", SubnetId={"Ref": "S"}, NetworkAclId={"Ref": "N"})
    made = {**network(), "N": res("AWS::EC2::NetworkAcl"), "L": link, **entries}
    assert proofs(made)[S3].result == "holds"
    entries["NTrue"]["Properties"]["RuleAction"] = "deny"
    assert proofs(made)[S3].result == "unknown"


NEEDED = [row.service for row in catalog.ENDPOINTS if row.caller == catalog.NODES and not row.is_dispensable]


def closed(**door: Any) -> Resources:
    """Return the network without a way out, and an interface endpoint for every service that nodes call."""
    made = network()
    del made["R"]
    made["Door"] = res(
        "AWS::EC2::SecurityGroup",
        SecurityGroupIngress=[
            {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, **(door or {"SourceSecurityGroupId": SELF})}
        ],
    )
    for service in NEEDED:
        made[f"E{service}"] = res(
            "AWS::EC2::VPCEndpoint",
            VpcId={"Ref": "V"},
            VpcEndpointType="Interface",
            PrivateDnsEnabled=True,
            ServiceName=f"com.amazonaws.us-east-1.{service}",
            SubnetIds=[{"Ref": "Pub"}],
            SecurityGroupIds=[{"Ref": "Door"}],
        )
    return made


@pytest.mark.parametrize(
    ("door", "result"),
    [
        ({}, "holds"),
        ({"CidrIp": "10.0.0.0/20"}, "holds"),
        ({"CidrIp": "10.0.0.0/16"}, "holds"),
        ({"CidrIp": "10.0.0.0/21"}, "broken"),
        ({"CidrIp": {"Ref": "Param"}}, "unknown"),
        ({"SourceSecurityGroupId": {"Ref": "Door"}}, "broken"),
    ],
)
def test_a_closed_network(door: dict[str, Any], result: str) -> None:
    found = proofs(closed(**door), Parameters={"Param": {"Type": "String"}})[APIS]
    assert found.result == result
    if result == "broken":
        assert found.detail == "calls of ec2 go to Eec2 (lab), and no rules let G (lab) reach it on port 443"


@row_by_row("missing", NEEDED)
def test_a_closed_network_without_a_required_endpoint(missing: str) -> None:
    made = closed()
    del made[f"E{missing}"]
    expected = ("broken", f"no interface endpoint for {missing}, and T (lab) has no default route")
    assert said(proofs(made)[APIS]) == expected


def test_an_endpoint_that_takes_the_calls_and_lets_nobody_in_breaks_them_beside_nat_too() -> None:
    made = {**closed(CidrIp="192.168.0.0/16"), "R": network()["R"]}
    assert proofs(made)[APIS].result == "broken"
    for service in NEEDED:
        made[f"E{service}"]["Properties"]["PrivateDnsEnabled"] = False
    assert said(proofs(made)[APIS]) == ("holds", "S (lab) reaches them through Nat (lab)")


def test_an_endpoint_that_may_take_the_calls_leaves_it_open_beside_nat() -> None:
    made = {**closed(CidrIp={"Ref": "Param"}), "R": network()["R"]}
    del made["Ests"]
    found = proofs(made, Parameters={"Param": {"Type": "String"}})[APIS]
    assert found.result == "unknown"
    assert found.detail.startswith(
        "S (lab) reaches others through Nat (lab), but whether interface endpoints for ec2, ecr.api,"
    )


OPEN_POLICY = {"Statement": {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}}
NARROW_POLICY = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:mine"}]}
DENYING_POLICY = {"Statement": [OPEN_POLICY["Statement"], {"Effect": "Deny", "Principal": "*", "Action": "*"}]}


@pytest.mark.parametrize(
    ("policy", "result"), [(OPEN_POLICY, "holds"), (NARROW_POLICY, "unknown"), (DENYING_POLICY, "unknown")]
)
def test_the_policy_of_an_endpoint_may_hold_something_back(policy: dict[str, Any], result: str) -> None:
    made = closed()
    made["E"]["Properties"]["PolicyDocument"] = policy
    made["Ests"]["Properties"]["PolicyDocument"] = policy
    found = proofs(made)
    assert (found[S3].result, found[APIS].result) == (result, result)


PORTS = ((988, 988), (1018, 1023))


def lustre(ports: tuple[tuple[int, int], ...] = PORTS, **settings: Any) -> Resources:
    """Return the network with a file system whose security group and the nodes' let Lustre pass on these ports."""
    made = network()
    made["FsG"] = res("AWS::EC2::SecurityGroup", VpcId={"Ref": "V"}, SecurityGroupEgress=[OPEN])
    made["Fs"] = res(
        "AWS::FSx::FileSystem",
        FileSystemType="LUSTRE",
        SubnetIds=[{"Ref": "S"}],
        SecurityGroupIds=[{"Ref": "FsG"}],
        LustreConfiguration=settings,
    )
    for one, other in (("FsG", "FsG"), ("FsG", "G"), ("G", "FsG")):
        for side in ("Ingress", "Egress"):
            for first, last in ports:
                made[f"{side}{one}{other}{first}"] = rule(
                    side, {"Ref": one}, {"Ref": other}, "tcp", FromPort=first, ToPort=last
                )
    return made


TCP = "TCP 988 and 1018-1023"


def test_a_file_system_is_proven_down_to_the_words() -> None:
    subject = fabric(EMPTY, assembly(lustre())).subjects[-1]
    assert (subject.subject, subject.kind, subject.logical_id) == ("Fs", "file system", "Fs")
    assert [(each.name, *said(each)) for each in subject.proofs] == [
        (SERVERS, "holds", f"FsG (lab) allows {TCP} from and to itself"),
        (CLIENTS, "holds", f"rules let {TCP} pass both ways between G (lab) of h100 and FsG (lab)"),
        (SAME_ZONE, "holds", "h100 is in use1-az5 with it"),
    ]


@pytest.mark.parametrize(
    ("ports", "result"),
    [
        (PORTS, "holds"),
        (((0, 65535),), "holds"),
        (((988, 988), (1018, 1020), (1021, 1023)), "holds"),
        (((988, 988),), "broken"),
        (((1018, 1023),), "broken"),
        (((988, 988), (1018, 1022)), "broken"),
        (((988, 988), (1019, 1023)), "broken"),
    ],
)
def test_lustre_needs_every_port(ports: tuple[tuple[int, int], ...], result: str) -> None:
    made = lustre(ports)
    found = proofs(made, "Fs")
    assert (found[SERVERS].result, found[CLIENTS].result) == (result, result)


@pytest.mark.parametrize("missing", ["IngressFsGG988", "IngressGFsG988"])
def test_lustre_needs_both_ways(missing: str) -> None:
    made = lustre()
    del made[missing]
    found = proofs(made, "Fs")
    assert said(found[CLIENTS]) == (
        "broken",
        f"no rules let {TCP} pass both ways between G (lab) of h100 and FsG (lab)",
    )
    assert found[SERVERS].result == "holds"


def test_lustre_by_blocks_of_addresses() -> None:
    made = {name: body for name, body in lustre().items() if not name.startswith("Ingress")}
    inside = [{"IpProtocol": "tcp", "FromPort": 900, "ToPort": 1100, "CidrIp": "10.0.0.0/20"}]
    for each in ("G", "FsG"):
        made[each]["Properties"]["SecurityGroupIngress"] = inside
    found = proofs(made, "Fs")
    assert (found[SERVERS].result, found[CLIENTS].result) == ("holds", "holds")
    inside[0]["CidrIp"] = "10.0.0.0/21"
    found = proofs(made, "Fs")
    assert (found[SERVERS].result, found[CLIENTS].result) == ("broken", "broken")


def test_a_file_system_with_efa_wants_all_traffic_by_id() -> None:
    found = proofs(lustre(EfaEnabled=True), "Fs")
    assert said(found[SERVERS]) == ("broken", "no rules let FsG (lab) send all traffic to itself and receive it")
    assert found[CLIENTS].result == "broken"
    made = lustre(EfaEnabled=True)
    made["Fs"]["Properties"]["SecurityGroupIds"] = [SELF]
    found = proofs(made, "Fs")
    assert said(found[SERVERS]) == ("holds", "G (lab) allows all traffic from and to itself")
    assert found[CLIENTS].result == "holds"


def test_a_file_system_without_groups_has_the_vpc_s_own() -> None:
    made = lustre()
    del made["Fs"]["Properties"]["SecurityGroupIds"]
    found = proofs(made, "Fs")
    assert said(found[SERVERS]) == ("holds", f"V.DefaultSecurityGroup (lab) allows {TCP} from and to itself")
    assert found[CLIENTS].result == "broken"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (
            [group(), group("system", ("S2",), InstanceType="ml.m5.2xlarge")],
            ("holds", "h100 is in use1-az5 with it; data that system reads crosses zones, which costs"),
        ),
        (
            [group(), group("far", ("subnet-0d5a",))],
            ("holds", "h100 is in use1-az5 with it; where far is is unknown"),
        ),
        (
            [group(subnets=("S2",))],
            (
                "broken",
                ("no instance group is in use1-az5: the data that they read crosses zones, which costs and is slow"),
            ),
        ),
        (
            [group(subnets=("subnet-0d5a",))],
            ("unknown", "whether h100 is in the zone of use1-az5 is unknown"),
        ),
    ],
)
def test_the_zone_of_a_file_system(groups: list[dict[str, Any]], expected: tuple[str, str]) -> None:
    made = {**zones(AvailabilityZoneId="use1-az4"), **lustre(), "C": cluster(*groups)}
    assert said(proofs(made, "Fs")[SAME_ZONE]) == expected


def test_other_file_systems_and_clusters_without_groups_have_no_proof() -> None:
    made = lustre()
    made["Fs"] = res("AWS::FSx::FileSystem", FileSystemType="OPENZFS", SubnetIds=[{"Ref": "S"}])
    assert [each.subject for each in fabric(EMPTY, assembly(made)).subjects] == ["h100"]
    made = {**lustre(), "C": res("AWS::SageMaker::Cluster")}
    assert [(each.subject, len(each.proofs)) for each in fabric(EMPTY, assembly(made)).subjects] == [("Fs", 1)]
    assert fabric(EMPTY, EMPTY).subjects == ()


def test_the_command_to_look_names_the_environment_as_its_folder_finds_it() -> None:
    made = {**network(), "C": cluster(group(groups=("sg-0abc",)))}
    head = replace(assembly(made), environment="dev")
    for base, side, word in (
        (EMPTY, head, "dev"),
        (EMPTY, replace(head, called="own/dev.yaml"), "own/dev.yaml"),
        (replace(EMPTY, environment="dev"), assembly(made), "dev"),
        (EMPTY, assembly(made), "ENV"),
    ):
        (subject,) = fabric(base, side).subjects
        (detail,) = {proof.detail for proof in subject.proofs if proof.name in {EFA_IN, EFA_OUT}}
        assert detail == f"sg-0abc is not in these templates; run 'hyperpod-cdk preflight {word}'"


def test_what_held_before_is_newly_broken() -> None:
    before, after = lustre(), lustre()
    del after["Out"], after["E"], after["R"], after["IngressFsGG988"]
    after["C"] = cluster(group(), group("new"))
    found = {each.subject: each.newly_broken for each in fabric(assembly(before), assembly(after)).subjects}
    assert found == {"h100": (EFA_OUT, S3, APIS), "new": (), "Fs": (CLIENTS,)}
    same = assembly(after)
    assert {each.newly_broken for each in fabric(same, same).subjects} == {()}


@given(st.sets(st.sampled_from(["In", "Out", "Ingress", "Egress"])))
def test_nothing_holds_without_a_rule_for_it(kept: set[str]) -> None:
    made = network()
    del made["In"], made["Out"]
    for name in kept & {"In", "Out"}:
        made[name] = network()[name]
    for side in kept & {"Ingress", "Egress"}:
        # a rule for every address, which never does for EFA
        made[f"Any{side}"] = res(f"AWS::EC2::SecurityGroup{side}", GroupId=SELF, **OPEN)
    sides = efa_proofs(SecurityGroups(assembly(made)), [part(assembly(made), "lab", SELF)], "dev")
    assert [each.result for each in sides] == ["holds" if side in kept else "broken" for side in ("In", "Out")]


def results(resources: Resources, **sections: Any) -> dict[tuple[str, str], str]:
    subjects = fabric(EMPTY, assembly(resources, **sections)).subjects
    return {(each.subject, proof.name): proof.result for each in subjects for proof in each.proofs}


# a parameter, and what another stack exports, is nothing that its own stack creates
ANYTHING = ("an attribute of somebody's resource", "a text in parts", "a dynamic reference")
BETWEEN = ("Route", "SubnetRouteTableAssociation", "SecurityGroupIngress", "SecurityGroupEgress", "VPCEndpoint")


@pytest.mark.parametrize("kind", ANYTHING)
@pytest.mark.parametrize("made", ["network", "closed", "lustre"])
def test_what_may_be_anything_breaks_no_proof(made: str, kind: str) -> None:
    resources = {"network": network, "closed": closed, "lustre": lustre}[made]()
    found = {place: results(changed) for place, changed in with_unknown(resources, kind)}
    assert {place: each for place, each in found.items() if "broken" in each.values()} == {}


@pytest.mark.parametrize("made", ["network", "closed", "lustre"])
def test_what_is_never_created_proves_nothing_and_what_may_be_created_breaks_nothing(made: str) -> None:
    resources = {"network": network, "closed": closed, "lustre": lustre}[made]()
    whole = results(resources)
    for name in [name for name, each in resources.items() if each["Type"].rpartition("::")[2] in BETWEEN]:
        gone = results({key: each for key, each in resources.items() if key != name})
        doubtful = {**resources, name: {**resources[name], "Condition": "Made"}}
        assert results(doubtful, Conditions={"Made": {"Fn::Equals": ["a", "b"]}}) == gone, name
        asked = results(doubtful, Conditions={"Made": {"Fn::Equals": [{"Ref": "Asked"}, "b"]}})
        for proof, result in asked.items():
            if result != gone[proof]:
                assert result in ("unknown", whole[proof]), (name, proof)
            assert not (result == "holds" and gone[proof] != "holds"), (name, proof)
            assert not (result == "broken" and whole[proof] != "broken"), (name, proof)


@row_by_row("name", ENVIRONMENTS)
def test_every_shipped_environment_is_proven_or_unknown(name: str, assemblies: Path) -> None:
    shipped(assemblies, name)
    subjects = fabric(EMPTY, read_assembly(assemblies / name, name)).subjects
    assert subjects
    unproven = [proof for each in subjects for proof in each.proofs if proof.result != "holds"]
    if name in OF_THEIR_OWN:
        assert unproven == []
    assert {proof.result for proof in unproven} <= {"unknown"}
    told = f"not in these templates; run 'hyperpod-cdk preflight {name}'"
    assert all(told in proof.detail for proof in unproven)


@pytest.mark.parametrize(
    ("file", "broken"),
    [
        ("cdk-stack.yaml", [EFA_OUT]),
        ("cdk-construct.yaml", [EFA_OUT]),
        ("blog-blueprint.yaml", [EFA_IN, EFA_OUT]),
        ("distributed-training.yaml", []),
        ("official-setup.yaml", [ONE_ZONE]),
        ("eks-only.yaml", []),
    ],
)
def test_templates_of_others(file: str, broken: list[str]) -> None:
    subjects = fabric(EMPTY, read_template(FOREIGN / file)).subjects
    assert [proof.name for each in subjects for proof in each.proofs if proof.result == "broken"] == broken


@pytest.mark.parametrize("file", [path.name for path in sorted(FOREIGN.glob("*.yaml"))])
def test_the_rule_of_the_policy_pack_judges_alike(file: str) -> None:
    read = read_template(FOREIGN / file)
    proven = [proof for each in fabric(EMPTY, read).subjects for proof in each.proofs if proof.result == "broken"]
    # nodes outside of HyperPod are the rule's alone
    spots = [spot.message for spot in efa_security_group(Context(read)) if spot.resource.type == CLUSTER]
    for name, side in ((EFA_IN, "ingress"), (EFA_OUT, "egress")):
        is_broken = any(proof.name == name for proof in proven)
        assert is_broken == any(f"a security group with {side} of all traffic" in message for message in spots)


def test_each_group_and_file_system_of_the_largest_environment_is_proven() -> None:
    made = network()
    count = 100
    made["C"] = cluster(*(group(f"g{index}", groups=("G", f"X{index}")) for index in range(count)))
    made |= {f"X{index}": res("AWS::EC2::SecurityGroup", SecurityGroupEgress=[OPEN]) for index in range(count)}
    for index in range(10):
        body = copy.deepcopy(lustre())
        made |= {f"{name}{index}": each for name, each in body.items() if "FsG" in name or name == "Fs"}
    base, head = assembly(made), assembly(copy.deepcopy(made))
    assert len(fabric(base, head).subjects) == count + 10
