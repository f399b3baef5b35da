"""An existing network: one problem at a time, reported once, with its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from hyperpod_cdk.checks.answers import (
    Among,
    Endpoint,
    NotAnswered,
    Route,
    RouteTable,
    SecurityGroupAnswer,
    SecurityGroupRule,
    StackAnswer,
    SubnetAnswer,
    VpcAnswer,
)
from hyperpod_cdk.checks.existing_network import KUBECTL_ENDPOINTS, NODE_ENDPOINTS
from hyperpod_cdk.checks.model import Result, Status
from tests.support.fake_aws import Answers, FakeAws

NAMES = "existing_vpc_resolves_names"
CIDRS = "vpc_cidrs_are_those_of_the_vpc"
PLACES = "existing_subnets_stand_where_the_file_says"
PRIVATE = "existing_subnets_are_private"
WAY_OUT = "existing_subnets_have_a_way_out"
S3 = "existing_node_subnets_reach_s3"
ENDPOINTS = "existing_endpoints_let_the_nodes_in"
GROUP = "existing_security_group_lets_efa_through"
BALANCERS = "load_balancers_find_existing_subnets"
ALL = (NAMES, CIDRS, PLACES, PRIVATE, WAY_OUT, S3, ENDPOINTS, GROUP)

VPC, OTHER_VPC = "vpc-0c1f4e8a9b7d26350", "vpc-0123456789abcdef0"
NODES6, NODES4 = "subnet-0d5a9e3b71c84f206", "subnet-02b6f8d4e9a13c75e"
CONTROL1, CONTROL2 = "subnet-09e47b1c6d2f8a035", "subnet-0a83d5f2e7c1b6490"
SG, EKS_SG, ENDPOINT_SG = "sg-0f2c7a9d4e6b81503", "sg-03e9b5d7f1a8c2646", "sg-0aaaaaaaaaaaaaaaa"
NAT, IGW = "nat-0123456789abcdef0", "igw-0123456789abcdef0"

Run = Callable[..., Result]


def subnet(subnet_id: str, zone: str, cidr: str) -> SubnetAnswer:
    return SubnetAnswer(
        subnet_id=subnet_id,
        vpc_id=VPC,
        availability_zone_id=zone,
        cidr=cidr,
        free=200,
        assigns_public_addresses=False,
    )


def table(name: str, *subnet_ids: str, target: str = NAT, state: str = "active", is_main: bool = False) -> RouteTable:
    routes = [Route(destination="10.40.0.0/16", target="local")]
    if target:
        routes.append(Route(destination="0.0.0.0/0", target=target, state=state))
    return RouteTable(route_table_id=name, is_main=is_main, subnet_ids=subnet_ids, routes=tuple(routes))


def endpoint(service: str, *groups: str, kind: str = "Interface", tables: tuple[str, ...] = ()) -> Endpoint:
    return Endpoint(
        endpoint_id=f"vpce-{service}",
        service=service,
        kind=kind,
        state="available",
        route_table_ids=tables,
        subnet_ids=(),
        security_group_ids=groups,
        private_dns=kind == "Interface",
    )


def rule(
    *, groups: tuple[str, ...] = (), cidrs: tuple[str, ...] = (), protocol: str = "-1", port: int | None = None
) -> SecurityGroupRule:
    return SecurityGroupRule(protocol=protocol, from_port=port, to_port=port, group_ids=groups, cidrs=cidrs)


ITSELF = rule(groups=(SG,))
ANYWHERE = rule(cidrs=("0.0.0.0/0",))
S3_GATEWAY = endpoint("s3", kind="Gateway", tables=("rtb-nodes",))
CLOSED = (table("rtb-nodes", NODES6, NODES4, target=""), table("rtb-main", is_main=True))


@pytest.fixture
def network(fake_aws: FakeAws) -> Answers:
    """A network that satisfies everything: a NAT gateway, an S3 endpoint, EFA's rules."""
    answers = fake_aws.answers
    answers.vpc = {
        VPC: VpcAnswer(vpc_id=VPC, cidrs=("10.40.0.0/16", "100.64.0.0/16"), dns_support=True, dns_hostnames=True)
    }
    answers.subnets = {
        NODES6: subnet(NODES6, "use1-az6", "100.64.0.0/18"),
        NODES4: subnet(NODES4, "use1-az4", "100.64.64.0/18"),
        CONTROL1: subnet(CONTROL1, "use1-az6", "10.40.0.0/24"),
        CONTROL2: subnet(CONTROL2, "use1-az4", "10.40.1.0/24"),
    }
    # the control plane's subnets have no table of their own: the main one serves them
    answers.route_tables = {VPC: (table("rtb-nodes", NODES6, NODES4), table("rtb-main", is_main=True))}
    answers.endpoints = {VPC: (S3_GATEWAY,)}
    answers.security_groups = {
        SG: SecurityGroupAnswer(group_id=SG, vpc_id=VPC, ingress=(ITSELF,), egress=(ITSELF, ANYWHERE))
    }
    return answers


@pytest.fixture
def run(project: Path, case_of: Any, run_check: Any, fake_aws: FakeAws, network: Answers) -> Run:
    """Runs a check on examples/existing-vpc-and-eks.yaml, with changes of network.existing."""
    document = yaml.safe_load((project / "examples/existing-vpc-and-eks.yaml").read_text(encoding="utf-8"))

    def on(check: str, *, eks: bool = True, egress: str = "nat", **changes: Any) -> Result:
        existing = {**document["network"]["existing"], **changes}
        data = {**document, "network": {"egress": egress, "existing": existing}}
        if changes.get("security_group_id", "") is None:
            del data["network"]["existing"]["security_group_id"]
        if not eks:
            data["eks"] = {"kubernetes_version": "1.34"}
        result: Result = run_check(check, case_of(yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False)), fake_aws)
        return result

    assert network is fake_aws.answers
    return on


def said(result: Result) -> list[str]:
    return [f"{finding.severity.value}: {finding.path}: {finding.message}" for finding in result.findings]


def everything(run: Run, **changes: Any) -> list[str]:
    return [line for check in ALL for line in said(run(check, **changes))]


@pytest.mark.check("existing_vpc_resolves_names", "passes")
@pytest.mark.check("vpc_cidrs_are_those_of_the_vpc", "passes")
@pytest.mark.check("existing_subnets_stand_where_the_file_says", "passes")
@pytest.mark.check("existing_subnets_are_private", "passes")
@pytest.mark.check("existing_subnets_have_a_way_out", "passes")
@pytest.mark.check("existing_node_subnets_reach_s3", "passes")
@pytest.mark.check("existing_endpoints_let_the_nodes_in", "passes")
@pytest.mark.check("existing_security_group_lets_efa_through", "passes")
@pytest.mark.parametrize("eks", [True, False])
def test_a_network_that_satisfies_everything(run: Run, eks: bool) -> None:  # noqa: FBT001 - a parameter of the test
    for check in ALL:
        result = run(check, eks=eks)
        assert (check, result.status, said(result)) == (check, Status.PASSED, [])


@pytest.mark.parametrize("check", ALL)
def test_nothing_is_asked_for_a_network_that_is_made(
    check: str, case_of: Any, run_check: Any, fake_aws: FakeAws
) -> None:
    assert run_check(check, case_of(), fake_aws).status is Status.NOT_NEEDED
    assert fake_aws.asked == []


@pytest.mark.check("existing_vpc_resolves_names", "skips")
@pytest.mark.check("vpc_cidrs_are_those_of_the_vpc", "skips")
@pytest.mark.check("existing_subnets_stand_where_the_file_says", "skips")
@pytest.mark.check("existing_subnets_are_private", "skips")
@pytest.mark.check("existing_subnets_have_a_way_out", "skips")
@pytest.mark.check("existing_node_subnets_reach_s3", "skips")
@pytest.mark.check("existing_endpoints_let_the_nodes_in", "skips")
@pytest.mark.check("existing_security_group_lets_efa_through", "skips")
@pytest.mark.parametrize("check", ALL)
def test_without_an_answer_nothing_is_claimed(check: str, run: Run, network: Answers) -> None:
    network.vpc = {VPC: NotAnswered("not allowed to ask", action="ec2:DescribeVpcs")}
    result = run(check)
    assert result.status is Status.SKIPPED
    assert [(each.reason, each.action) for each in result.skipped] == [("not allowed to ask", "ec2:DescribeVpcs")]


@pytest.mark.parametrize("check", [WAY_OUT, S3, ENDPOINTS])
@pytest.mark.parametrize("shown", [(), (S3_GATEWAY,)], ids=["none", "one"])
def test_the_endpoints_of_a_vpc_that_another_account_shares(
    check: str, shown: tuple[Endpoint, ...], run: Run, network: Answers
) -> None:
    """A participant sees its own endpoints only: that AWS shows none of the owner's is no reason to refuse."""
    vpc = cast("dict[str, VpcAnswer]", network.vpc)
    network.vpc = {VPC: replace(vpc[VPC], owner="444455556666")}
    network.route_tables, network.endpoints = {VPC: CLOSED}, {VPC: shown}
    result = run(check)
    if shown:
        assert result.status is not Status.SKIPPED
        return
    assert result.status is Status.SKIPPED
    assert {each.reason for each in result.skipped} == {
        (
            f"{VPC} belongs to account 444455556666, which shares it, and AWS shows none of its endpoints here; ask"
            " the owner"
        )
    }
    network.vpc = {VPC: replace(vpc[VPC], owner="111122223333")}
    assert run(check).status is (Status.PASSED if check == ENDPOINTS else Status.FAILED)


@pytest.fixture
def balancing(
    project: Path, case_of: Any, run_check: Any, fake_aws: FakeAws, network: Answers
) -> Callable[..., Result]:
    """Runs the check of load balancers on the example with an inference operator that brings their controller."""
    document = yaml.safe_load((project / "examples/existing-vpc-and-eks.yaml").read_text(encoding="utf-8"))

    def on(**inference: bool) -> Result:
        operators = {**document.get("operators", {}), "inference": inference or {"enabled": True}}
        data = yaml.dump({**document, "operators": operators}, Dumper=yaml.CSafeDumper, sort_keys=False)
        result: Result = run_check(BALANCERS, case_of(data), fake_aws)
        return result

    assert network is fake_aws.answers
    return on


@pytest.mark.check("load_balancers_find_existing_subnets", "passes")
def test_one_tagged_subnet_is_found_for_load_balancers(balancing: Callable[..., Result], network: Answers) -> None:
    subnets = cast("dict[str, SubnetAnswer]", network.subnets)
    network.subnets = {**subnets, NODES4: replace(subnets[NODES4], tags={"kubernetes.io/role/internal-elb": "1"})}
    assert balancing().status is Status.PASSED


@pytest.mark.parametrize("off", [{"enabled": False}, {"enabled": True, "load_balancer_controller": False}])
def test_no_load_balancers_are_created(
    off: dict[str, bool], balancing: Callable[..., Result], fake_aws: FakeAws
) -> None:
    assert balancing(**off).status is Status.NOT_NEEDED
    assert fake_aws.asked == []


@pytest.mark.check("load_balancers_find_existing_subnets", "fails")
@pytest.mark.parametrize("owner", ["", "111122223333", "444455556666"])
def test_subnets_without_the_tag_of_load_balancers(
    owner: str, balancing: Callable[..., Result], network: Answers
) -> None:
    vpc = cast("dict[str, VpcAnswer]", network.vpc)
    network.vpc = {VPC: replace(vpc[VPC], owner=owner)}
    result = balancing()
    shared = (
        f" (the VPC belongs to account {owner}, whose tags may not be visible here)" if owner == "444455556666" else ""
    )
    text = (
        "warning: operators.inference.load_balancer_controller: the controller finds subnets by the tag"
        " kubernetes.io/role/internal-elb (before its version 2.12.1 only by it), and AWS shows it on none of"
        f" {NODES6}, {NODES4}, {CONTROL1} and {CONTROL2}{shared}; run 'aws ec2 create-tags --resources {NODES6} --tags"
        " Key=kubernetes.io/role/internal-elb,Value=1' for each in account 111122223333, or name subnets in the"
        " annotations of load balancers"
    )
    assert (result.status, said(result)) == (Status.WARNED, [text])


@pytest.mark.check("load_balancers_find_existing_subnets", "skips")
def test_a_subnet_that_may_have_the_tag(balancing: Callable[..., Result], network: Answers) -> None:
    subnets = cast("dict[str, SubnetAnswer]", network.subnets)
    read = {name: each for name, each in subnets.items() if name != NODES4}
    network.subnets = Among(read, {NODES4: NotAnswered("not allowed to ask", action="ec2:DescribeSubnets")})
    result = balancing()
    assert (result.status, said(result)) == (Status.SKIPPED, [])


@pytest.mark.check("existing_vpc_resolves_names", "fails")
def test_nothing_passes_of_a_network_that_does_not_exist(run: Run, network: Answers) -> None:
    network.vpc = {VPC: None}
    network.subnets, network.route_tables, network.endpoints, network.security_groups = {}, {VPC: ()}, {VPC: ()}, {}
    found = everything(run)
    assert found[0] == (
        f"error: network.existing.vpc_id: needs a VPC of account 111122223333 in us-east-1, got {VPC}, which does not"
        " exist there; correct the ID, the account or the region"
    )
    assert [line.partition(", which")[0] for line in found[1:]] == [
        f"error: network.existing.node_subnet_ids.use1-az6: needs a subnet of {VPC}, got {NODES6}",
        f"error: network.existing.node_subnet_ids.use1-az4: needs a subnet of {VPC}, got {NODES4}",
        f"error: network.existing.control_plane_subnet_ids[0]: needs a subnet of {VPC}, got {CONTROL1}",
        f"error: network.existing.control_plane_subnet_ids[1]: needs a subnet of {VPC}, got {CONTROL2}",
        f"error: network.existing.security_group_id: needs a security group of {VPC}, got {SG}",
    ]
    assert {check: run(check).status for check in ALL if not run(check).findings} == dict.fromkeys(
        (CIDRS, PRIVATE, WAY_OUT, S3, ENDPOINTS), Status.SKIPPED
    )
    assert f"there is no VPC {VPC}" in [each.reason for each in run(CIDRS).skipped]


@pytest.mark.parametrize(
    ("change", "what", "option"),
    [
        ({"dns_support": False}, "DNS resolution", "enable-dns-support"),
        ({"dns_hostnames": False}, "DNS hostnames", "enable-dns-hostnames"),
    ],
)
def test_dns_that_is_off(run: Run, network: Answers, change: Any, what: str, option: str) -> None:
    network.vpc = {VPC: replace(network.vpc[VPC], **change)}  # type: ignore[index,type-var]
    assert everything(run) == [
        (
            f"error: network.existing.vpc_id: needs {what} enabled in {VPC}; run 'aws ec2"
            f" modify-vpc-attribute --vpc-id {VPC} --{option}'"
        )
    ]


def test_dns_that_is_not_known(run: Run, network: Answers) -> None:
    denied = NotAnswered("no permission", action="ec2:DescribeVpcAttribute")
    vpc = replace(network.vpc[VPC], dns_support=denied, dns_hostnames=False)  # type: ignore[index,type-var]
    network.vpc = {VPC: vpc}
    result = run(NAMES)
    assert [(each.reason, each.action) for each in result.skipped] == [
        (f"whether DNS resolution is on in {VPC}: no permission", "ec2:DescribeVpcAttribute")
    ]
    # the other attribute was read, and refuses
    assert result.status is Status.FAILED


def test_subnets_of_a_vpc_that_is_not_shown_are_compared_all_the_same(run: Run, network: Answers) -> None:
    network.vpc = {VPC: NotAnswered("no permission", action="ec2:DescribeVpcs")}
    subnets = dict(cast("Mapping[str, SubnetAnswer]", network.subnets))
    gone = next(iter(subnets))
    del subnets[gone]
    network.subnets = subnets
    result = run(PLACES)
    assert [each.reason for each in result.skipped] == ["no permission"]
    assert [each.path for each in result.findings]
    assert all(gone in each.message for each in result.findings)


def test_a_subnet_that_was_not_read_is_neither_there_nor_missing(run: Run, network: Answers) -> None:
    there = dict(cast("Mapping[str, SubnetAnswer]", network.subnets))
    unread = next(iter(there))
    read = {name: subnet for name, subnet in there.items() if name != unread}
    network.subnets = Among(read, {unread: NotAnswered("throttled")})
    for name in (PLACES, PRIVATE, WAY_OUT):
        result = run(name)
        assert (result.status, result.findings) == (Status.SKIPPED, ())
        assert {each.reason for each in result.skipped} == {f"{unread}: throttled"}


def test_endpoints_that_are_not_shown_hide_no_dead_route(run: Run, network: Answers) -> None:
    (tables,) = cast("dict[str, tuple[RouteTable, ...]]", network.route_tables).values()
    dead = tuple(
        replace(
            table,
            routes=tuple(
                replace(route, state="blackhole") if route.destination == "0.0.0.0/0" else route
                for route in table.routes
            ),
        )
        for table in tables
    )
    network.route_tables = {VPC: dead}
    network.endpoints = {VPC: NotAnswered("no permission", action="ec2:DescribeVpcEndpoints")}
    assert run(WAY_OUT).status is Status.FAILED


HAS = f"{VPC} has 10.40.0.0/16, 100.64.0.0/16"


@pytest.mark.check("vpc_cidrs_are_those_of_the_vpc", "fails")
@pytest.mark.parametrize(
    ("stated", "messages"),
    [
        ([], []),
        (
            ["10.40.0.0/16", "100.65.0.0/16"],
            [
                (
                    f"error: network.existing.vpc_cidrs[1]: must be a block of the VPC, got 100.65.0.0/16, and"
                    f" {HAS}; correct"
                    " it"
                ),
                (
                    "warning: network.existing.vpc_cidrs: lists 10.40.0.0/16, 100.65.0.0/16, and"
                    f" {HAS}; add 100.64.0.0/16"
                ),
            ],
        ),
        (
            ["100.64.0.0/16", "10.40.0.0/16"],
            [
                (
                    f"error: network.existing.vpc_cidrs[0]: must be the primary block, got 100.64.0.0/16, and"
                    f" {HAS}; put"
                    " 10.40.0.0/16 first"
                )
            ],
        ),
        (
            ["10.40.0.0/16"],
            [f"warning: network.existing.vpc_cidrs: lists 10.40.0.0/16, and {HAS}; add 100.64.0.0/16"],
        ),
    ],
)
def test_blocks_that_are_not_the_vpcs(run: Run, stated: list[str], messages: list[str]) -> None:
    assert everything(run, vpc_cidrs=stated) == messages


@pytest.mark.check("existing_subnets_stand_where_the_file_says", "fails")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            None,
            f"needs a subnet of {VPC}, got {NODES6}, which does not exist in us-east-1; correct the ID",
        ),
        (
            {"vpc_id": OTHER_VPC},
            f"needs a subnet of {VPC}, got {NODES6} of {OTHER_VPC}; name one of {VPC}, or correct vpc_id",
        ),
        (
            {"availability_zone_id": "use1-az2"},
            (
                f"needs a subnet in use1-az6, got {NODES6} in use1-az2; name it under use1-az2, also in the groups"
                f" and file"
                " systems there"
            ),
        ),
    ],
)
def test_a_subnet_in_another_place(run: Run, network: Answers, changed: Any, message: str) -> None:
    assert isinstance(network.subnets, dict)
    if changed is None:
        del network.subnets[NODES6]
    else:
        network.subnets[NODES6] = replace(network.subnets[NODES6], **changed)
    assert everything(run) == [f"error: network.existing.node_subnet_ids.use1-az6: {message}"]


def test_a_missing_subnet_of_the_control_plane(run: Run, network: Answers) -> None:
    assert isinstance(network.subnets, dict)
    del network.subnets[CONTROL2]
    assert everything(run, eks=False) == [
        (
            f"error: network.existing.control_plane_subnet_ids[1]: needs a subnet of {VPC}, got {CONTROL2}, which"
            f" does not"
            " exist in us-east-1; correct the ID"
        )
    ]


def test_a_control_plane_in_one_zone(run: Run, network: Answers) -> None:
    assert isinstance(network.subnets, dict)
    network.subnets[CONTROL2] = replace(network.subnets[CONTROL2], availability_zone_id="use1-az6")
    assert everything(run) == []  # an existing control plane has its subnets already
    assert everything(run, eks=False) == [
        (
            "error: network.existing.control_plane_subnet_ids: needs subnets in at least 2 availability zones, got"
            f" {CONTROL1}, {CONTROL2}, all in use1-az6; name one in another zone"
        )
    ]


@pytest.mark.check("existing_subnets_are_private", "fails")
def test_public_subnets_are_reported_once_for_their_table(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: (table("rtb-nodes", NODES6, NODES4, target=IGW), table("rtb-main", is_main=True))}
    assert everything(run) == [
        (
            f"error: network.existing.node_subnet_ids.use1-az6: needs a private subnet, got {NODES6}, {NODES4},"
            f" whose route"
            f" table rtb-nodes leads to the internet gateway {IGW}; name a private subnet, or route it to a NAT gateway"
            " instead"
        )
    ]


def test_a_private_subnet_that_gives_public_addresses(run: Run, network: Answers) -> None:
    assert isinstance(network.subnets, dict)
    network.subnets[NODES4] = replace(network.subnets[NODES4], assigns_public_addresses=True)
    assert everything(run) == [
        (
            f"warning: network.existing.node_subnet_ids.use1-az4: should be a subnet that gives no public"
            f" addresses, got"
            f" {NODES4}, which does; run 'aws ec2 modify-subnet-attribute --subnet-id {NODES4}"
            " --no-map-public-ip-on-launch'"
        )
    ]


@pytest.mark.check("existing_subnets_have_a_way_out", "fails")
def test_a_nat_gateway_that_is_gone(run: Run, network: Answers) -> None:
    network.route_tables = {
        VPC: (table("rtb-nodes", NODES6, NODES4, state="blackhole"), table("rtb-main", is_main=True))
    }
    assert everything(run) == [
        (
            f"error: network.existing.node_subnet_ids.use1-az6: needs a route to the internet from {NODES6}, "
            f"{NODES4}, got a route of"
            f" rtb-nodes to {NAT}, which does not exist any more (blackhole); route 0.0.0.0/0 to a NAT "
            "gateway that exists"
        )
    ]


@pytest.mark.parametrize("target", [NAT, "tgw-0123456789abcdef0", "vgw-01234567", "eni-01234567", "vpce-01234567"])
def test_ways_out(run: Run, network: Answers, target: str) -> None:
    network.route_tables = {VPC: (table("rtb-nodes", NODES6, NODES4, target=target), table("rtb-main", is_main=True))}
    assert everything(run) == []


def routed(*routes: tuple[str, str]) -> tuple[RouteTable, ...]:
    """The route tables, that of the nodes with these routes alone."""
    here = tuple(Route(destination=destination, target=target) for destination, target in routes)
    nodes = RouteTable(route_table_id="rtb-nodes", is_main=False, subnet_ids=(NODES6, NODES4), routes=here)
    return nodes, table("rtb-main", is_main=True)


def test_everywhere_in_two_halves_is_a_way_out(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: routed(("0.0.0.0/1", "tgw-01"), ("128.0.0.0/1", "tgw-01"))}
    assert everything(run) == []


@pytest.mark.parametrize("route", [("0.0.0.0/1", "tgw-01"), ("10.0.0.0/8", "pcx-01"), ("pl-0a1b", "nat-01")])
def test_endpoints_of_another_network_are_not_known(run: Run, network: Answers, route: tuple[str, str]) -> None:
    network.route_tables = {VPC: routed(route)}
    network.endpoints = {VPC: ()}
    out, s3 = everything(run)
    assert out.startswith(
        f"warning: network.existing.node_subnet_ids.use1-az6: should have a route to the internet from {NODES6}, "
    )
    assert out.endswith(f"or create the endpoints, unless {route[1]} leads to them")
    assert s3.startswith("warning: network.existing.node_subnet_ids.use1-az6: should have a route to S3")
    assert s3.endswith(f"or create one, unless {route[1]} leads to them")


def test_a_gateway_endpoint_is_no_way_elsewhere(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: routed(("pl-63a5400a", "vpce-01"))}
    assert [each.partition(":")[0] for each in everything(run)] == ["error"]


def test_names_of_endpoints_may_come_from_a_private_zone(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: CLOSED}
    nameless = (replace(endpoint(service), private_dns=False) for service in NODE_ENDPOINTS)
    network.endpoints = {VPC: (S3_GATEWAY, *nameless)}
    (said_once,) = everything(run)
    assert said_once.startswith("warning: ")
    assert said_once.endswith("unless a private hosted zone leads to the endpoints that have no private names")


def test_ec2messages_may_be_missing(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: CLOSED}
    network.endpoints = {VPC: (S3_GATEWAY, *(endpoint(each) for each in NODE_ENDPOINTS if each != "ec2messages"))}
    (said_once,) = everything(run)
    assert said_once.startswith("warning: ")
    assert said_once.endswith(
        "for ec2messages; route 0.0.0.0/0 to a NAT gateway, or create the endpoints, unless the"
        " nodes' SSM Agent is 3.3.40 or newer"
    )


def test_a_route_table_that_is_not_shown_claims_nothing(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: ()}
    network.endpoints = {VPC: ()}
    assert everything(run) == []
    assert run(WAY_OUT).status is Status.SKIPPED
    assert run(S3).status is Status.SKIPPED


def test_another_route_to_the_internet_warns(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: routed(("0.0.0.0/0", NAT), ("::/0", IGW))}
    assert everything(run) == [
        (
            f"warning: network.existing.node_subnet_ids.use1-az6: should be a private subnet, got {NODES6}, {NODES4},"
            " whose route table rtb-nodes leads ::/0 to an internet gateway; name a subnet without such a route"
        )
    ]


def test_no_way_out_and_not_all_endpoints(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: CLOSED}
    services = [endpoint(service) for service in NODE_ENDPOINTS]
    network.endpoints = {
        VPC: (S3_GATEWAY, *services[3:], replace(services[0], private_dns=False), replace(services[1], state="pending"))
    }
    assert everything(run) == [
        (
            f"error: network.existing.node_subnet_ids.use1-az6: needs a route to the internet from {NODES6}, "
            f"{NODES4} for nodes, got no default route on rtb-nodes and no interface endpoint with private names for"
            " ec2, ecr.api,"
            " ecr.dkr; route 0.0.0.0/0 to a NAT gateway, or create the endpoints"
        )
    ]


def test_a_control_plane_without_a_way_out_warns(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: (table("rtb-nodes", NODES6, NODES4), table("rtb-main", target="", is_main=True))}
    network.endpoints = {VPC: (S3_GATEWAY, endpoint("sts"))}
    assert everything(run) == [
        (
            "warning: network.existing.control_plane_subnet_ids[0]: should have a route to the internet from"
            f" {CONTROL1}, {CONTROL2} for the"
            " function that runs kubectl, got no default route on rtb-main and no interface endpoint with private"
            " names for eks, lambda; route 0.0.0.0/0 to a NAT gateway, or create the endpoints"
        )
    ]


def closed(network: Answers, *rules: SecurityGroupRule) -> None:
    network.route_tables = {VPC: CLOSED}
    network.endpoints = {VPC: (S3_GATEWAY, *(endpoint(service, ENDPOINT_SG) for service in NODE_ENDPOINTS))}
    assert isinstance(network.security_groups, dict)
    network.security_groups[ENDPOINT_SG] = SecurityGroupAnswer(
        group_id=ENDPOINT_SG, vpc_id=VPC, ingress=rules, egress=()
    )


def test_a_network_that_is_closed_by_the_file_wants_endpoints(run: Run, network: Answers) -> None:
    shut = (table("rtb-nodes", NODES6, NODES4, target=""), table("rtb-main", target="", is_main=True))
    network.route_tables = {VPC: shut}
    services = [endpoint(each) for each in (*NODE_ENDPOINTS, *KUBECTL_ENDPOINTS)]
    network.endpoints = {VPC: (S3_GATEWAY, *services)}
    assert everything(run, egress="closed") == []
    network.endpoints = {VPC: (S3_GATEWAY, *services[1:])}
    assert everything(run, egress="closed") == [
        (
            f"error: network.existing.node_subnet_ids.use1-az6: needs a route to the internet from {NODES6}, "
            f"{NODES4} for nodes, got no default route on rtb-nodes and no interface endpoint with private names for"
            " ec2; create the"
            " endpoints"
        )
    ]


def test_a_way_out_that_the_file_denies(run: Run, network: Answers) -> None:
    network.route_tables = {VPC: (table("rtb-nodes", NODES6, NODES4), table("rtb-main", target="", is_main=True))}
    network.endpoints = {
        VPC: (S3_GATEWAY, *(endpoint(each) for each in (*NODE_ENDPOINTS, *KUBECTL_ENDPOINTS) if each != "ssm"))
    }
    assert everything(run, egress="closed") == [
        (
            "warning: network.existing.node_subnet_ids.use1-az6: should have no route to the internet with"
            f" network.egress: closed, got {NODES6}, {NODES4}, whose route table rtb-nodes leads to the internet"
            f" through {NAT}; set egress: nat if that is intended, or ask the owner of the VPC to take the route out;"
            " without it there is no interface"
            " endpoint with private names for ssm"
        )
    ]
    assert everything(run) == []


@pytest.mark.parametrize(
    "let_in",
    [
        rule(groups=(SG,)),
        rule(groups=(EKS_SG,), protocol="tcp", port=443),
        rule(cidrs=("100.64.0.0/16",), protocol="6", port=443),
        rule(cidrs=("100.64.0.0/18", "100.64.64.0/18", "fd00::/8")),
    ],
)
def test_a_closed_network_that_satisfies_everything(run: Run, network: Answers, let_in: SecurityGroupRule) -> None:
    closed(network, let_in)
    assert everything(run) == []


@pytest.mark.check("existing_endpoints_let_the_nodes_in", "fails")
@pytest.mark.parametrize(
    ("let_in", "shut"),
    [
        (rule(groups=(ENDPOINT_SG,)), f"{NODES6}, {NODES4}"),
        (rule(groups=(SG,), protocol="tcp", port=80), f"{NODES6}, {NODES4}"),
        (rule(groups=(SG,), protocol="udp", port=443), f"{NODES6}, {NODES4}"),
        (rule(cidrs=("100.64.0.0/18",)), NODES4),
    ],
)
def test_endpoints_that_do_not_know_the_nodes(run: Run, network: Answers, let_in: SecurityGroupRule, shut: str) -> None:
    closed(network, let_in)
    services = ", ".join(NODE_ENDPOINTS)
    assert everything(run) == [
        (
            f"error: network.existing.security_group_id: needs port 443 of the endpoints {services} open to {SG}, got"
            f" {ENDPOINT_SG}, which allows neither it nor {shut}; allow 443 there from the blocks of the node subnets"
        )
    ]


def test_a_group_that_was_made_may_be_on_the_list(run: Run, network: Answers, fake_aws: FakeAws) -> None:
    closed(network, rule(groups=(SG,)))
    name = "shared-foundation"
    fake_aws.answers.stack = {name: StackAnswer(name=name, status="CREATE_COMPLETE")}
    result = run(ENDPOINTS, security_group_id=None, eks=False)
    assert said(result) == []
    assert [each.reason for each in result.skipped] == [
        (
            f"whether {ENDPOINT_SG} allows {NODES6}, {NODES4} is unknown: it allows {SG}, which may be the group that"
            f" {name} created"
        )
    ]


def test_a_prefix_list_may_hold_the_nodes(run: Run, network: Answers) -> None:
    listed = SecurityGroupRule(
        protocol="tcp", from_port=443, to_port=443, group_ids=(), cidrs=(), prefix_list_ids=("pl-0a1b",)
    )
    closed(network, listed)
    result = run(ENDPOINTS)
    assert said(result) == []
    assert [each.reason for each in result.skipped] == [
        (
            f"whether {ENDPOINT_SG} allows {NODES6}, {NODES4} is unknown: it allows pl-0a1b, and prefix lists are not"
            " checked"
        )
    ]


def test_a_group_that_is_made_is_on_no_list(run: Run, network: Answers) -> None:
    closed(network, rule(groups=(SG,)))
    network.stack = {"shared-foundation": None}
    services = ", ".join(NODE_ENDPOINTS)
    assert everything(run, security_group_id=None, eks=False) == [
        (
            f"error: network.existing: needs port 443 of the endpoints {services} open to the nodes, whose group the"
            f" deployment creates, got {ENDPOINT_SG}, which allows neither it nor {NODES6}, {NODES4}; allow 443 there"
            " from the blocks of the node subnets"
        )
    ]


@pytest.mark.check("existing_node_subnets_reach_s3", "fails")
def test_no_way_to_s3(run: Run, network: Answers) -> None:
    closed(network, rule(groups=(SG,)))
    assert isinstance(network.endpoints, dict)
    network.endpoints[VPC] = tuple(
        replace(each, route_table_ids=("rtb-other",)) if each.service == "s3" else each
        for each in (S3_GATEWAY, *(endpoint(service, ENDPOINT_SG) for service in NODE_ENDPOINTS))
    )
    assert everything(run) == [
        (
            f"error: network.existing.node_subnet_ids.use1-az6: needs a route to S3, got {NODES6}, {NODES4} with no S3"
            " endpoint on rtb-nodes; add rtb-nodes to the VPC's S3 gateway endpoint, or create one"
        )
    ]


def test_s3_through_the_nat_gateway_warns(run: Run, network: Answers) -> None:
    network.endpoints = {VPC: ()}
    assert everything(run) == [
        (
            f"warning: network.existing.node_subnet_ids.use1-az6: should reach S3 through a gateway endpoint, got"
            f" {NODES6},"
            f" {NODES4} with none on rtb-nodes: the NAT gateway bills every byte; add rtb-nodes to the VPC's S3 gateway"
            " endpoint, or create one"
        )
    ]
    network.endpoints = {VPC: (endpoint("s3"),)}
    assert everything(run) == []


@pytest.mark.check("existing_security_group_lets_efa_through", "fails")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"ingress": (rule(cidrs=("100.64.0.0/16",)),)},
            (
                f"error: network.existing.security_group_id: needs a rule of {SG} that allows all traffic from itself"
                " by"
                " its"
                " own ID, got no such rule; run 'aws ec2 authorize-security-group-ingress --group-id"
                f" {SG} --ip-permissions IpProtocol=-1,UserIdGroupPairs=[{{GroupId={SG}}}]'"
            ),
        ),
        (
            {"egress": (ANYWHERE,)},
            (
                f"error: network.existing.security_group_id: needs a rule of {SG} that allows all traffic to itself by"
                " its"
                " own ID, got only 0.0.0.0/0, which EFA does not count; run 'aws ec2 authorize-security-group-egress"
                f" --group-id {SG} --ip-permissions IpProtocol=-1,UserIdGroupPairs=[{{GroupId={SG}}}]'"
            ),
        ),
        (
            {"egress": (rule(groups=(SG,), protocol="tcp", port=443), ANYWHERE)},
            (
                f"error: network.existing.security_group_id: needs a rule of {SG} that allows all traffic to itself by"
                " its"
                " own ID, got only 0.0.0.0/0, which EFA does not count; run 'aws ec2 authorize-security-group-egress"
                f" --group-id {SG} --ip-permissions IpProtocol=-1,UserIdGroupPairs=[{{GroupId={SG}}}]'"
            ),
        ),
        (
            {"egress": (ITSELF,)},
            (
                f"warning: network.existing.security_group_id: should allow outbound HTTPS to AWS, got {SG} with no"
                " outbound rule by address for port 443; add one to 0.0.0.0/0 or to the blocks of the endpoints"
            ),
        ),
        (
            {"vpc_id": OTHER_VPC},
            (
                f"error: network.existing.security_group_id: needs a security group of {VPC}, got {SG} of"
                f" {OTHER_VPC}; name"
                f" one of {VPC}, or remove it to create one"
            ),
        ),
    ],
)
def test_a_security_group_that_stops_efa(run: Run, network: Answers, change: Any, message: str) -> None:
    assert isinstance(network.security_groups, dict)
    network.security_groups[SG] = replace(network.security_groups[SG], **change)
    assert everything(run) == [message]


def test_without_efa_the_rules_are_only_advised(
    project: Path, case_of: Any, run_check: Any, fake_aws: FakeAws, network: Answers
) -> None:
    assert isinstance(network.security_groups, dict)
    network.security_groups[SG] = replace(network.security_groups[SG], egress=(ANYWHERE,))
    text = (project / "examples/existing-vpc-and-eks.yaml").read_text(encoding="utf-8")
    assert "ml.g6e.12xlarge" in text
    result = run_check(GROUP, case_of(text.replace("ml.g6e.12xlarge", "ml.g5.2xlarge")), fake_aws)
    (finding,) = result.findings
    assert finding.severity.value == "warning"
    assert finding.message.startswith(
        f"should have, though no instance type here has EFA, a rule of {SG} that allows all traffic to itself"
    )


def test_rules_by_prefix_list_let_https_out(run: Run, network: Answers) -> None:
    listed = SecurityGroupRule(
        protocol="tcp", from_port=443, to_port=443, group_ids=(), cidrs=(), prefix_list_ids=("pl-0a1b",)
    )
    assert isinstance(network.security_groups, dict)
    network.security_groups[SG] = replace(network.security_groups[SG], egress=(ITSELF, listed))
    assert everything(run) == []


def test_a_security_group_that_does_not_exist(run: Run, network: Answers) -> None:
    network.security_groups = {}
    assert everything(run) == [
        (
            f"error: network.existing.security_group_id: needs a security group of {VPC}, got {SG}, which does not"
            f" exist in"
            " us-east-1; correct the ID, or remove it to create one"
        )
    ]


def test_a_group_that_is_made_needs_no_rules(run: Run, network: Answers) -> None:
    network.security_groups = {}
    assert everything(run, security_group_id=None) == []
