"""VPC address rules at and next to each limit, and their arithmetic."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import network
from tests.support.tables import row_by_row

RANGES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.19.0.0/16", "100.64.0.0/10", "54.0.0.0/8")
PRIVATE = RANGES[:3]


@st.composite
def blocks(draw: st.DrawFn, ranges: tuple[str, ...] = RANGES) -> str:
    """A block that AWS takes, inside one of ``ranges``."""
    outer = IPv4Network(draw(st.sampled_from(ranges)))
    prefix = draw(st.integers(max(outer.prefixlen, network.SHORTEST_PREFIX), network.LONGEST_PREFIX))
    address = int(outer.network_address) + draw(st.integers(0, outer.num_addresses - 1))
    return str(IPv4Network((address, prefix), strict=False))


@pytest.mark.parametrize(
    ("cidr", "addresses"),
    [("10.0.0.0/16", 65531), ("10.0.0.0/24", 251), ("10.0.0.0/28", 11), ("10.0.0.0/30", 0), ("10.0.0.0/32", 0)],
)
def test_usable_addresses(cidr: str, addresses: int) -> None:
    assert network.usable_addresses(cidr) == addresses


def test_slots_of_no_block() -> None:
    for text, problem in {
        "ten": 'must be an IPv4 CIDR block such as 10.0.0.0/16, got "ten"; correct vpc_cidr',
        "10.1.1.0/16": 'must be a CIDR block in its canonical form, got "10.1.1.0/16"; set vpc_cidr="10.1.0.0/16"',
    }.items():
        with pytest.raises(ValueError, match=f"^vpc_cidr: {re.escape(problem)}$"):
            network.slots(text)


def test_usable_addresses_of_no_block() -> None:
    with pytest.raises(ValueError, match=r"^Expected 4 octets"):
        network.usable_addresses("ten")


@row_by_row(
    "addresses, prefix",
    [
        (0, 28),
        (1, 28),
        (11, 28),
        (12, 27),
        (27, 27),
        (28, 26),
        (251, 24),
        (252, 23),
        (1296, 21),
        (5184, 19),
        (65531, 16),
    ],
)
def test_smallest_prefix(addresses: int, prefix: int) -> None:
    assert network.smallest_prefix_for(addresses) == prefix


def test_more_than_any_subnet_holds() -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is asserted below
        network.smallest_prefix_for(65532)
    assert str(refusal.value) == (
        "must be at most 65531, the room of a /16 subnet, got 65532; spread the nodes over more availability zones"
    )


@given(st.integers(0, 65531))
def test_the_smallest_prefix_fits_and_a_smaller_one_does_not(addresses: int) -> None:
    prefix = network.smallest_prefix_for(addresses)
    assert network.usable_addresses(f"10.0.0.0/{prefix}") >= addresses
    assert prefix == 28 or network.usable_addresses(f"10.0.0.0/{prefix + 1}") < addresses


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.0.0.0/28", "100.64.0.0/16", "192.168.1.16/28", "54.0.0.0/16"])
def test_blocks(cidr: str) -> None:
    assert network.cidr_problem(cidr) is None


@row_by_row(
    "cidr, problem",
    [
        ("ten", 'must be an IPv4 CIDR block such as 10.0.0.0/16, got "ten"; correct cidr'),
        ("fd00::/64", 'must be an IPv4 CIDR block such as 10.0.0.0/16, got "fd00::/64"; correct cidr'),
        ("10.0.0.0/33", 'must be an IPv4 CIDR block such as 10.0.0.0/16, got "10.0.0.0/33"; correct cidr'),
        ("10.1.2.3/16", 'must be a CIDR block in its canonical form, got "10.1.2.3/16"; set cidr: 10.1.0.0/16'),
        ("10.1.0.0", 'must be a CIDR block in its canonical form, got "10.1.0.0"; set cidr: 10.1.0.0/16'),
        ("10.0.0.6/30", 'must be a CIDR block in its canonical form, got "10.0.0.6/30"; set cidr: 10.0.0.0/28'),
        ("10.3.0.9/14", 'must be a CIDR block in its canonical form, got "10.3.0.9/14"; set cidr: 10.0.0.0/16'),
        ("10.0.0.0/15", "must be between /16 and /28, got /15; write cidr with a prefix between these"),
        ("10.0.0.0/29", "must be between /16 and /28, got /29; write cidr with a prefix between these"),
        (
            "0.0.0.0/16",
            'must be outside 0.0.0.0/8 ("this network"), got 0.0.0.0/16; set cidr to a block of 10.0.0.0/8',
        ),
        (
            "127.0.0.0/16",
            "must be outside 127.0.0.0/8 (loopback), got 127.0.0.0/16; set cidr to a block of 10.0.0.0/8",
        ),
        (
            "169.254.0.0/16",
            "must be outside 169.254.0.0/16 (link-local), got 169.254.0.0/16; set cidr to a block of 10.0.0.0/8",
        ),
        (
            "239.0.0.0/16",
            "must be outside 224.0.0.0/4 (multicast), got 239.0.0.0/16; set cidr to a block of 10.0.0.0/8",
        ),
    ],
)
def test_what_is_no_block(cidr: str, problem: str) -> None:
    assert network.cidr_problem(cidr) == problem


@given(blocks())
def test_every_block_of_the_known_ranges_passes_and_a_misaligned_one_is_fixed(cidr: str) -> None:
    address, _, prefix = cidr.partition("/")
    last = IPv4Network(cidr).broadcast_address
    assert network.cidr_problem(cidr) is None
    assert network.cidr_problem(f"{last}/{prefix}") == (
        f'must be a CIDR block in its canonical form, got "{last}/{prefix}"; set cidr: {address}/{prefix}'
    )


def test_the_docker_range_warns() -> None:
    assert network.cidr_warning("172.17.0.0/16") == (
        "172.17.0.0/16 overlaps 172.17.0.0/16: some AWS services, SageMaker AI among them, use it for Docker bridges; "
        "choose another block"
    )
    assert network.cidr_warning("172.16.0.0/16") is None
    assert network.cidr_warning("172.18.0.0/16") is None


@row_by_row(
    "block, is_public",
    # RFC 1918, RFC 6598 and RFC 2544 with their neighbours
    [
        ("9.255.0.0/16", True),
        ("10.0.0.0/16", False),
        ("11.0.0.0/16", True),
        ("54.2.0.0/16", True),
        ("100.63.0.0/16", True),
        ("100.64.0.0/16", False),
        ("100.127.0.0/16", False),
        ("100.128.0.0/16", True),
        ("172.15.0.0/16", True),
        ("172.16.0.0/16", False),
        ("172.31.0.0/16", False),
        ("172.32.0.0/16", True),
        ("192.168.0.0/16", False),
        ("198.19.0.0/16", False),
    ],
)
def test_blocks_of_the_internet_are_doubtful(block: str, *, is_public: bool) -> None:
    said = (
        f"{block} is a public block: nodes could not reach its owner on the internet; choose a block of 10.0.0.0/8,"
        " 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10"
    )
    assert network.cidr_warning(block) == (said if is_public else None)


@row_by_row(
    "primary, cidr",
    [
        ("10.192.0.0/16", "10.1.0.0/16"),
        ("10.192.0.0/16", "10.0.0.0/16"),
        ("10.0.0.0/16", "10.1.0.0/16"),
        ("10.192.0.0/16", "100.64.0.0/16"),
        ("10.192.0.0/16", "54.1.0.0/16"),
        ("172.16.0.0/16", "172.30.0.0/16"),
        ("172.16.0.0/16", "100.127.0.0/16"),
        ("192.168.0.0/20", "192.168.16.0/20"),
        ("192.168.0.0/20", "100.64.0.0/16"),
        ("198.19.0.0/16", "100.64.0.0/16"),
        ("100.64.0.0/16", "100.65.0.0/16"),
        ("54.1.0.0/16", "54.2.0.0/16"),
        ("198.18.0.0/16", "100.64.0.0/16"),
    ],
)
def test_secondary_blocks_that_aws_adds(primary: str, cidr: str) -> None:
    assert network.secondary_cidr_problem(cidr, primary=primary) is None


@row_by_row(
    "primary, cidr, block, pool",
    [
        ("10.192.0.0/16", "172.16.0.0/16", "172.16.0.0/12", "10.0.0.0/8"),
        ("10.192.0.0/16", "192.168.0.0/24", "192.168.0.0/16", "10.0.0.0/8"),
        ("10.192.0.0/16", "198.19.0.0/16", "198.19.0.0/16", "10.0.0.0/8"),
        ("172.16.0.0/16", "10.1.0.0/16", "10.0.0.0/8", "100.64.0.0/10"),
        ("172.16.0.0/16", "172.31.0.0/16", "172.31.0.0/16", "100.64.0.0/10"),
        ("172.16.0.0/16", "192.168.0.0/16", "192.168.0.0/16", "100.64.0.0/10"),
        ("192.168.0.0/20", "10.1.0.0/16", "10.0.0.0/8", "100.64.0.0/10"),
        ("192.168.0.0/20", "172.20.0.0/16", "172.16.0.0/12", "100.64.0.0/10"),
        ("198.19.0.0/16", "10.1.0.0/16", "10.0.0.0/8", "100.64.0.0/10"),
        ("100.64.0.0/16", "10.1.0.0/16", "10.0.0.0/8", "100.64.0.0/10"),
        ("54.1.0.0/16", "198.19.0.0/24", "198.19.0.0/16", "100.64.0.0/10"),
    ],
)
def test_secondary_blocks_that_aws_refuses(primary: str, cidr: str, block: str, pool: str) -> None:
    assert network.secondary_cidr_problem(cidr, primary=primary) == (
        f"must be outside {block}, which AWS does not add to a VPC whose first block is {primary}, got {cidr}; "
        f"set node_cidr to a block of {pool}"
    )


def test_overlaps() -> None:
    assert network.secondary_cidr_problem("10.192.128.0/17", primary="10.192.0.0/16", key="cidr") == (
        "must not overlap another block of the VPC, got 10.192.128.0/17 and 10.192.0.0/16; set cidr to a free block"
    )
    assert network.secondary_cidr_problem("10.1.0.0/16", primary="10.192.0.0/16", others=["10.1.4.0/24"]) == (
        "must not overlap another block of the VPC, got 10.1.0.0/16 and 10.1.4.0/24; set node_cidr to a free block"
    )


def test_a_malformed_block_is_reported_first() -> None:
    assert network.secondary_cidr_problem("10.1.0.0/8", primary="10.192.0.0/16") == (
        'must be a CIDR block in its canonical form, got "10.1.0.0/8"; set node_cidr: 10.0.0.0/16'
    )


@pytest.mark.parametrize(
    ("cidr", "others", "refused"),
    [
        ("10.0.0.0/16", ["10.1.0.0/16"], True),
        ("10.0.4.0/24", ["10.1.0.0/16"], True),
        ("10.0.4.0/24", ["10.0.0.0/24"], True),
        ("10.0.0.0/16", ["10.2.0.0/16"], False),
        ("10.1.0.0/16", ["10.0.0.0/16"], False),
        ("10.2.0.0/16", ["10.0.0.0/16", "10.1.0.0/16"], False),
    ],
)
def test_the_first_block_of_ten_cannot_come_late(cidr: str, others: list[str], refused: bool) -> None:  # noqa: FBT001 - a column
    expected = (
        f"must be outside 10.0.0.0/16, which AWS does not add to a VPC that has a block of 10.0.0.0/15 ({others[0]}), "
        f"got {cidr}; set node_cidr to another block of 10.0.0.0/8"
    )
    problem = network.secondary_cidr_problem(cidr, primary="10.192.0.0/16", others=others)
    assert problem == (expected if refused else None)


def test_a_first_block_of_zero_counts_too() -> None:
    problem = network.secondary_cidr_problem("10.0.128.0/17", primary="10.0.0.0/17")
    assert problem is not None
    assert problem.startswith("must be outside 10.0.0.0/16")


@given(primary=blocks(), data=st.data())
def test_a_block_of_the_pool_is_refused_only_for_overlap_or_order(primary: str, data: st.DataObject) -> None:
    block = data.draw(blocks((network.secondary_pool(primary),)))
    problem = network.secondary_cidr_problem(block, primary=primary)
    if problem is not None:
        assert IPv4Network(block).overlaps(IPv4Network(primary)) or "10.0.0.0/15" in problem


@given(primary=blocks(PRIVATE), block=blocks(PRIVATE))
def test_private_ranges_never_mix(primary: str, block: str) -> None:
    same = [IPv4Network(text) for text in PRIVATE if IPv4Network(primary).subnet_of(IPv4Network(text))]
    if not any(IPv4Network(block).subnet_of(outer) for outer in same):
        assert network.secondary_cidr_problem(block, primary=primary) is not None


def test_the_default_quota_of_blocks() -> None:
    assert network.CIDRS_PER_VPC == 5


@pytest.mark.parametrize(
    ("vpc_cidr", "count", "first", "last"),
    [
        ("10.0.0.0/16", 16, "10.0.0.0/24", "10.0.15.0/24"),
        ("10.0.0.0/20", 16, "10.0.0.0/24", "10.0.15.0/24"),
        ("10.0.0.0/21", 16, "10.0.0.0/25", "10.0.7.128/25"),
        ("10.0.0.0/23", 16, "10.0.0.0/27", "10.0.1.224/27"),
        ("10.0.0.0/24", 16, "10.0.0.0/28", "10.0.0.240/28"),
        ("10.0.0.0/25", 8, "10.0.0.0/28", "10.0.0.112/28"),
        ("10.0.0.0/28", 1, "10.0.0.0/28", "10.0.0.0/28"),
    ],
)
def test_slots_are_sixteen_of_24_to_28(vpc_cidr: str, count: int, first: str, last: str) -> None:
    slots = network.slots(vpc_cidr)
    assert (len(slots), slots[0], slots[-1]) == (count, first, last)


def test_control_plane_fits_the_smallest_slot_of_a_24() -> None:
    needed = network.EKS_ADDRESSES + network.KUBECTL_ADDRESSES
    assert needed <= network.usable_addresses(network.slots("10.0.0.0/24")[0])
    assert network.EKS_ADDRESSES < network.EKS_ADDRESSES_RECOMMENDED


@pytest.mark.parametrize(
    ("resource_type", "attribute", "sides"),
    [
        ("AWS::EC2::VPC", "DefaultSecurityGroup", (True, False, True)),
        ("AWS::EKS::Cluster", "ClusterSecurityGroupId", (True, True, True)),
        ("AWS::EKS::Cluster", "Arn", None),
        ("AWS::EC2::SecurityGroup", "", None),
    ],
)
def test_rules_of_security_groups_that_aws_makes(
    resource_type: str, attribute: str, sides: tuple[bool, bool, bool] | None
) -> None:
    made = network.made_security_group(resource_type, attribute)
    assert (made and (made.in_from_itself, made.out_to_itself, made.out_to_any)) == sides


# RFC 1918, RFC 6598 and IANA's registry: what lies beside each block is of the internet
@row_by_row(
    "cidr, is_refused",
    [
        ("9.0.0.0/8", False),
        ("10.0.0.0/8", True),
        ("10.255.255.255/32", True),
        ("11.0.0.0/8", False),
        ("100.63.0.0/16", False),
        ("100.64.0.0/10", True),
        ("100.128.0.0/16", False),
        ("169.254.169.254/32", True),
        ("172.15.0.0/16", False),
        ("172.16.0.0/12", True),
        ("172.32.0.0/16", False),
        ("192.168.1.0/24", True),
        ("192.169.0.0/16", False),
        ("203.0.112.0/24", False),
        ("203.0.113.0/24", True),
        ("203.0.114.0/24", False),
        ("198.51.100.7/32", True),
        ("192.0.2.0/24", True),
        ("223.255.255.0/24", False),
        ("224.0.0.0/4", True),
        ("240.0.0.0/4", True),
        ("0.0.0.0/8", True),
        ("0.0.0.0/0", False),
    ],
)
def test_public_endpoint_takes_no_reserved_block(cidr: str, *, is_refused: bool) -> None:
    assert (network.public_cidr_problem(cidr) is not None) is is_refused
    assert network.reaches_the_internet(cidr) is not is_refused


def test_a_block_with_host_bits_is_the_block_around_it() -> None:
    assert network.reaches_the_internet("198.51.100.7/24") is False
    assert network.reaches_the_internet("203.0.114.7/24") is True


@given(st.lists(st.integers(min_value=0, max_value=32), max_size=6), st.integers(min_value=0, max_value=2**32 - 1))
def test_blocks_that_leave_out_one_prefix_cover_the_rest(prefixes: list[int], address: int) -> None:
    """However everything is split, its parts together are everything."""
    parts = {IPv4Network("0.0.0.0/0")}
    for prefix in prefixes:
        one = next(part for part in parts if IPv4Address(address) in part)
        if one.prefixlen < 32:
            parts = (parts - {one}) | set(one.subnets(new_prefix=min(32, one.prefixlen + 1 + prefix % 4)))
    assert network.internet_share(map(str, parts)) == 1


@pytest.mark.parametrize(
    ("cidrs", "least", "most"),
    [
        ([], 0, 0),
        (["10.0.0.0/8", "192.168.0.0/16"], 0, 0),
        (["8.8.8.0/24", "8.8.8.8/32"], 256 / 2**32, 256 / (3.6 * 10**9)),
        (["0.0.0.0/1"], 0.49, 0.58),
    ],
)
def test_share_of_the_internet(cidrs: list[str], least: float, most: float) -> None:
    assert least <= network.internet_share(cidrs) <= most
    # no block at all is EKS's default: all of it
    assert network.opens_everywhere(cidrs) is (not cidrs or most > 0.5)


OUR_BLOCKS = (
    "the blocks that you connect from (for one address, what https://checkip.amazonaws.com returns, followed by /32)"
)


@row_by_row(
    "cidr, problem",
    [
        ("54.2.0.0/16", None),
        ("ten", f'must be an IPv4 CIDR block, got "ten"; write {OUR_BLOCKS}'),
        ("54.2.0.7/16", 'must be a CIDR block in its canonical form, got "54.2.0.7/16"; set cidr: 54.2.0.0/16'),
        ("54.2.0.7", 'must be a CIDR block in its canonical form, got "54.2.0.7"; set cidr: 54.2.0.7/32'),
        (
            "10.1.0.0/16",
            (
                "must contain public addresses, got 10.1.0.0/16 of 10.0.0.0/8 (private), which EKS refuses; write"
                f" {OUR_BLOCKS}, or remove it: callers in the VPC, or in networks that are connected with it, use the"
                " private endpoint"
            ),
        ),
    ],
)
def test_callers_of_the_public_endpoint(cidr: str, problem: str | None) -> None:
    assert network.public_cidr_problem(cidr) == problem


@row_by_row(
    "cidr, held",
    [
        ("0.0.0.0/0", None),
        ("54.2.0.0/16", None),
        ("8.0.0.0/7", None),
        ("8.0.0.0/6", "10.0.0.0/8"),
        ("192.0.0.0/8", "192.0.2.0/24, 192.168.0.0/16"),
    ],
)
def test_public_blocks_with_reserved_addresses_in_them(cidr: str, held: str | None) -> None:
    assert network.public_cidr_warning(cidr) == (
        held
        and f"{cidr} includes {held}, and EKS refuses a block that includes reserved addresses; list smaller blocks, or"
        " 0.0.0.0/0 if everyone is intended"
    )


@row_by_row(
    "cidr, problem",
    # KubernetesNetworkConfigRequest: in three private ranges, between /24 and /12
    [
        ("172.20.0.0/16", None),
        ("10.16.0.0/12", None),
        ("192.168.255.0/24", None),
        ("ten", 'must be an IPv4 CIDR block such as 172.20.0.0/16, got "ten"; correct cidr'),
        ("172.20.0.0", 'must be a CIDR block in its canonical form, got "172.20.0.0"; set cidr: 172.20.0.0/24'),
        ("10.17.0.0/11", 'must be a CIDR block in its canonical form, got "10.17.0.0/11"; set cidr: 10.0.0.0/12'),
        ("10.17.1.1/16", 'must be a CIDR block in its canonical form, got "10.17.1.1/16"; set cidr: 10.17.0.0/16'),
        ("10.0.0.0/11", "must be between /12 and /24, got /11; write cidr with a prefix between these"),
        ("10.0.0.0/25", "must be between /12 and /24, got /25; write cidr with a prefix between these"),
        *(
            (
                cidr,
                (
                    f"must be in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, got {cidr}; set cidr to a block of one of"
                    " these"
                ),
            )
            for cidr in ("100.64.0.0/16", "172.32.0.0/16", "192.160.0.0/12")
        ),
    ],
)
def test_addresses_of_kubernetes_services(cidr: str, problem: str | None) -> None:
    assert network.service_cidr_problem(cidr) == problem


@row_by_row(
    "cidr, fix",
    [
        ("10.0.0.0/16", None),
        ("10.0.0.0/24", None),
        ("10.0.0.128/25", "10.0.0.0/24"),
        ("10.0.7.240/28", "10.0.7.0/24"),
    ],
)
def test_a_vpc_holds_the_slots(cidr: str, fix: str | None) -> None:
    assert network.vpc_size_problem(cidr, key="vpc_cidr") == (
        fix
        and "must be /24 or larger, to hold the subnets of the control plane and of the NAT gateways, got"
        f" {cidr}; set vpc_cidr: {fix}"
    )


def test_one_subnet_for_two_zones() -> None:
    assert network.same_subnet_problem("subnet-1", "use1-az1") == (
        "must be another subnet than that of use1-az1, got subnet-1 for both; a subnet is in one zone, name another"
    )


@pytest.mark.parametrize(
    ("addresses", "prefix"), [(0, 28), (11, 28), (12, 23), (27, 23), (28, 22), (123, 21), (124, 20), (251, 20)]
)
def test_the_smallest_vpc_whose_slots_have_room(addresses: int, prefix: int) -> None:
    assert network.smallest_vpc_prefix_for(addresses) == prefix


def test_a_slot_has_no_room_for_more_than_a_24() -> None:
    with pytest.raises(ValueError, match=r"^a slot of the largest VPC block holds fewer than 252 addresses$"):
        network.smallest_vpc_prefix_for(252)


OF_NODES = ["ec2", "ec2messages", "ecr.api", "ecr.dkr", "eks", "eks-auth", "lambda", "logs", "monitoring"]
OF_NODES += ["sagemaker.api", "ssm", "ssmmessages", "sts"]


@row_by_row(
    "features, more",
    [
        ((), []),
        (("lustre_claims",), ["fsx"]),
        (("inference", "observability"), ["elasticloadbalancing", "aps-workspaces"]),
    ],
)
def test_services_of_a_closed_network(features: tuple[str, ...], more: list[str]) -> None:
    assert list(network.endpoint_services(features)) == sorted([*OF_NODES, *more])


def test_an_unknown_feature_has_no_services() -> None:
    problem = (
        "no service is for moons, stars; the features are inference, kubectl, lustre_claims, nodes, observability, "
    )
    with pytest.raises(ValueError, match=f"^{problem}reward_functions$"):
        network.endpoint_services(["stars", "inference", "moons"])


def test_what_nodes_start_without() -> None:
    assert {row.service for row in network.ENDPOINTS if row.is_dispensable} == {"ec2messages", "monitoring"}


@row_by_row(
    "service, region, prefix",
    [
        ("ec2", "us-east-1", "com.amazonaws"),
        ("ec2", "cn-north-1", "cn.com.amazonaws"),
        ("logs", "cn-north-1", "com.amazonaws"),
        ("ec2", "${AWS::Region}", "com.amazonaws"),
    ],
)
def test_names_of_endpoints(service: str, region: str, prefix: str) -> None:
    assert network.endpoint_service_prefix(service, region=region) == prefix


@pytest.mark.parametrize(
    ("protocol", "block", "is_all"),
    [
        ("-1", "0.0.0.0/0", True),
        (-1, "0.0.0.0/0", True),
        *((protocol, "0.0.0.0/0", False) for protocol in ("tcp", "6", "", None)),
        *(("-1", block, False) for block in ("10.0.0.0/8", "0.0.0.0/1", "128.0.0.0/1", None)),
    ],
)
def test_rules_for_all_traffic(protocol: object, block: object, is_all: bool) -> None:  # noqa: FBT001 - a column
    assert network.is_all_traffic(protocol, block) is is_all


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_gateways_beside_the_number_of_zones(count: int) -> None:
    assert network.nat_gateways_problem(count, zones=3) == (
        "must be at most 3, one for each availability zone, got 4; set nat_gateways: 3" if count == 4 else None
    )


@pytest.mark.parametrize(("count", "missing"), [(0, 2), (1, 1), (2, 0), (3, 0)])
def test_subnets_of_the_control_plane(count: int, missing: int) -> None:
    assert network.control_plane_subnets_problem(count) == (
        "must hold at least 2 subnets, in different availability zones, for the EKS control plane, got"
        f" {count}; add {missing}"
        if missing
        else None
    )


@row_by_row(
    "access, cidrs, is_refused",
    [
        ("private", ["54.2.0.0/16"], True),
        ("private", [], False),
        ("public", ["54.2.0.0/16"], False),
        ("public_and_private", ["54.2.0.0/16"], False),
        ("public", [], False),
    ],
)
def test_blocks_for_an_endpoint_that_is_private(access: str, cidrs: list[str], *, is_refused: bool) -> None:
    assert network.private_endpoint_problem(access, cidrs) == (
        "must be left out with endpoint_access: private, because there is no public endpoint; remove"
        " public_access_cidrs or set endpoint_access: public_and_private"
        if is_refused
        else None
    )


def test_of_two_blocks_that_overlap_the_later_is_refused() -> None:
    before, after = ["10.0.0.0/16", "10.1.0.0/24"], ["10.2.0.0/16", "10.1.0.0/17", "10.3.0.0/16"]
    assert network.blocks_beside("10.1.0.0/16", before=before, after=after) == [*before, "10.2.0.0/16", "10.3.0.0/16"]


def test_a_share_that_begins_with_reserved_addresses() -> None:
    # 10.0.0.0/8 has none of the internet's, and hides nothing of what follows
    assert network.internet_share(["10.0.0.0/8", "54.0.0.0/8"]) == network.internet_share(["54.0.0.0/8"]) > 0
