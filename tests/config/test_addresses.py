"""The number of addresses that an environment's subnets need: by the table, and for any groups."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.addresses import (
    AddressBudget,
    AddressNeed,
    address_budgets,
    free_block,
    highest_count,
    lower_count,
    parts,
    shortage,
)

Environments = Callable[[str], Environment]

HEAD = """
name: prod
account: "111122223333"
region: us-east-1
network:
  availability_zones:
    use1-az5: {node_cidr: 10.1.0.0/24}
    use1-az4: {node_cidr: 10.1.1.0/24}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
"""
P5 = (
    "    - {name: h100, instance_type: ml.p5.48xlarge, count: 2, availability_zone_id: use1-az5, capacity: on_demand}\n"
)


@pytest.fixture(scope="session")
def environment_of() -> Environments:
    """Makes an environment from text, without the rules over the whole file, so that it may be too large."""
    return lambda text: Environment.model_validate(yaml.safe_load(text))


def node_budget(environment: Environment, az_id: str = "use1-az5") -> AddressBudget:
    """The budget of the node subnet of a zone."""
    return next(
        each for each in address_budgets(environment) if (each.role, each.availability_zone_id) == ("nodes", az_id)
    )


def test_every_subnet_that_the_environment_makes_has_a_budget(environment_of: Environments) -> None:
    budgets = address_budgets(environment_of(HEAD + P5))
    assert [(each.role, each.availability_zone_id, each.cidr, each.usable, each.needed) for each in budgets] == [
        ("control plane", "use1-az5", "10.192.0.0/24", 251, 7),
        ("control plane", "use1-az4", "10.192.1.0/24", 251, 7),
        ("public", "use1-az5", "10.192.15.0/24", 251, 1),
        ("nodes", "use1-az5", "10.1.0.0/24", 251, 3 * 81),
        ("nodes", "use1-az4", "10.1.1.0/24", 251, 2 * 15),
    ]
    assert [each.path for each in budgets] == [
        "network.vpc_cidr",
        "network.vpc_cidr",
        "network.vpc_cidr",
        "network.availability_zones.use1-az5.node_cidr",
        "network.availability_zones.use1-az4.node_cidr",
    ]


def test_a_default_block_is_the_zones_own(environment_of: Environments) -> None:
    budget = node_budget(environment_of(HEAD.replace("use1-az5: {node_cidr: 10.1.0.0/24}", "use1-az5:") + P5))
    assert (budget.path, budget.cidr) == ("network.availability_zones.use1-az5", "10.5.0.0/16")


@pytest.mark.parametrize(
    ("instance_type", "each"),
    [
        ("ml.p5.48xlarge", 81),
        ("ml.p5e.48xlarge", 81),
        ("ml.p5en.48xlarge", 65),
        ("ml.trn1.32xlarge", 57),
        ("ml.g5.48xlarge", 50),
        ("ml.m5.large", 10),
    ],
)
def test_nodes_take_what_the_catalog_says(environment_of: Environments, instance_type: str, each: int) -> None:
    budget = node_budget(environment_of(HEAD + P5.replace("ml.p5.48xlarge", instance_type)))
    assert [(need.kind, need.count, need.each) for need in budget.needs] == [("nodes", 2, each), ("spare", 1, each)]


def test_a_spare_only_where_nodes_are_replaced_by_themselves(environment_of: Environments) -> None:
    without = HEAD.replace("hyperpod:\n", "hyperpod:\n  node_recovery: none\n") + P5
    assert node_budget(environment_of(without)).needed == 2 * 81
    assert node_budget(environment_of(HEAD + P5)).needed == 3 * 81
    assert node_budget(environment_of(HEAD + P5)).running == 2 * 81


def test_an_empty_group_takes_nothing(environment_of: Environments) -> None:
    assert node_budget(environment_of(HEAD + P5.replace("count: 2", "count: 0"))).needs == ()


def test_a_flexible_group_counts_as_its_hungriest_type(environment_of: Environments) -> None:
    flexible = P5.replace("instance_type: ml.p5.48xlarge", "instance_types: [ml.g5.12xlarge, ml.p5.48xlarge]")
    assert node_budget(environment_of(HEAD + flexible)).needs[0].instance_type == "ml.p5.48xlarge"


def test_a_file_system_takes_an_address_for_each_server(environment_of: Environments) -> None:
    storage = """
storage:
  lustre: [{name: scratch, availability_zone_id: use1-az5, capacity_gib: 9600}]
"""
    budget = node_budget(environment_of(HEAD + P5 + storage))
    assert budget.needs[-1] == AddressNeed(
        kind="file system", name="scratch", count=5, each=1, path="storage.lustre[0]"
    )


def test_a_type_without_a_number_is_reported_and_not_counted(environment_of: Environments) -> None:
    stated = "instance_types: {ml.p9.48xlarge: {vcpu: 1, memory_gib: 1}}\n"
    budget = node_budget(environment_of(stated + HEAD + P5.replace("ml.p5.48xlarge", "ml.p9.48xlarge")))
    assert budget.needs == ()
    assert [(each.group, each.instance_type, each.path) for each in budget.unknown] == [
        ("h100", "ml.p9.48xlarge", "hyperpod.instance_groups[1]")
    ]


EXISTING = """
name: prod
account: "111122223333"
region: us-east-1
network:
  existing:
    vpc_id: vpc-0a1b2c3d4e5f67890
    node_subnet_ids: {use1-az5: subnet-00000000000000005, use1-az4: subnet-00000000000000004}
    control_plane_subnet_ids: [subnet-00000000000000004, subnet-0000000000000000c]
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
"""


def test_existing_subnets_have_one_budget_each_whatever_they_serve(environment_of: Environments) -> None:
    budgets = address_budgets(environment_of(EXISTING + P5))
    assert [(each.subnet_id[-1], each.path, each.needed, each.advised) for each in budgets] == [
        ("5", "network.existing.node_subnet_ids.use1-az5", 243, 0),
        ("4", "network.existing.node_subnet_ids.use1-az4", 37, 10),
        ("c", "network.existing.control_plane_subnet_ids[1]", 7, 10),
    ]


def test_beside_an_existing_cluster_only_the_kubectl_function_comes(environment_of: Environments) -> None:
    joined = """
eks:
  kubernetes_version: "1.35"
  existing: {cluster_name: platform, security_group_id: sg-0a1b2c3d4e5f67890}
"""
    alone = EXISTING.replace("    control_plane_subnet_ids: [subnet-00000000000000004, subnet-0000000000000000c]\n", "")
    budgets = address_budgets(environment_of(joined + alone + P5))
    assert [(each.subnet_id[-1], each.needed, each.advised) for each in budgets] == [("5", 244, 0), ("4", 31, 0)]


@pytest.mark.parametrize(
    ("count", "block", "says"),
    [
        (
            3,
            "10.1.0.0/24",
            (
                "must hold 324 addresses (h100: 3 nodes and 1 spare of ml.p5.48xlarge, 81 each), got 10.1.0.0/24 with"
                " 251; the smallest block that fits is a /23: set node_cidr: 10.2.0.0/23, or lower"
                " hyperpod.instance_groups[1].count to 2"
            ),
        ),
        (
            16,
            "10.3.0.0/24",
            (
                "must hold 1377 addresses (h100: 16 nodes and 1 spare of ml.p5.48xlarge, 81 each), got 10.3.0.0/24 with"
                " 251; the smallest block that fits is a /21: set node_cidr: 10.3.0.0/21, or lower"
                " hyperpod.instance_groups[1].count to 2"
            ),
        ),
        (
            1,
            "10.3.0.0/28",
            (
                "must hold 162 addresses (h100: 1 node and 1 spare of ml.p5.48xlarge, 81 each), got 10.3.0.0/28 with"
                " 11; the smallest block that fits is a /24: set node_cidr: 10.3.0.0/24"
            ),
        ),
        (
            900,
            "10.3.0.0/16",
            (
                "must hold 72981 addresses (h100: 900 nodes and 1 spare of ml.p5.48xlarge, 81 each), got 10.3.0.0/16"
                " with 65531; no subnet is that large (a /16 is the largest): spread the groups over more availability"
                " zones, or lower hyperpod.instance_groups[1].count to 808"
            ),
        ),
    ],
)
def test_a_shortage_names_the_block_and_the_count(
    environment_of: Environments, count: int, block: str, says: str
) -> None:
    text = (HEAD + P5).replace("count: 2", f"count: {count}").replace("10.1.0.0/24", block)
    environment = environment_of(text)
    assert shortage(environment, node_budget(environment)) == says


def test_a_block_that_is_large_enough_has_no_shortage(environment_of: Environments) -> None:
    environment = environment_of(HEAD + P5)
    with pytest.raises(ValueError, match=r"^10\.1\.0\.0/24 holds 251 addresses, and 243 are needed$"):
        shortage(environment, node_budget(environment))


def test_many_groups_are_summed_up(environment_of: Environments) -> None:
    groups = "".join(P5.replace("h100", f"group-{n}").replace("count: 2", f"count: {n}") for n in range(1, 7))
    assert parts(node_budget(environment_of(HEAD + groups))) == (
        "group-6: 6 nodes and 1 spare of ml.p5.48xlarge, 81 each; group-5: 5 nodes and 1 spare of ml.p5.48xlarge, 81"
        " each; group-4: 4 nodes and 1 spare of ml.p5.48xlarge, 81 each; group-3: 3 nodes and 1 spare of"
        " ml.p5.48xlarge, 81 each; 2 other groups: 405"
    )


def test_a_free_block_is_near_or_elsewhere_or_nowhere(environment_of: Environments) -> None:
    """A VPC outside 10.0.0.0/8 takes secondary blocks of 100.64.0.0/10 alone, which holds 64 blocks of /16."""

    def shared(*blocks: int) -> Environment:
        zones = [f"use1-az{n}" for n in range(10)] + [f"use1-{a}{b}x1-az1" for a in "abcdefgh" for b in "abcdefgh"]
        listed = "".join(f"    {zones[n]}: {{node_cidr: 100.{64 + block}.0.0/16}}\n" for n, block in enumerate(blocks))
        text = HEAD.replace("    use1-az5: {node_cidr: 10.1.0.0/24}\n    use1-az4: {node_cidr: 10.1.1.0/24}\n", listed)
        return environment_of(text.replace("network:\n", "network:\n  vpc_cidr: 172.16.0.0/16\n"))

    assert free_block(shared(0, 8), "use1-az0", cidr="100.64.0.0/20", prefix=17) == "100.64.0.0/17"
    assert free_block(shared(0, 8), "use1-az0", cidr="100.72.0.0/20", prefix=17) == "100.64.0.0/17"
    assert free_block(shared(1, 0), "use1-az0", cidr="100.64.128.0/20", prefix=17) == "100.65.0.0/17"
    full = shared(*range(1, 64), 0)
    assert free_block(full, "use1-az0", cidr="100.65.0.0/20", prefix=16) == "100.65.0.0/16"
    assert free_block(full, "use1-az9", cidr="10.1.0.0/20", prefix=16) == "100.74.0.0/16"
    crowded = shared(1, *range(1, 64), 0)
    assert free_block(crowded, "use1-az0", cidr="100.65.0.0/20", prefix=16) is None


sizes = st.lists(
    st.tuples(
        st.sampled_from(instance_types.names()),
        st.integers(0, 60),
    ),
    min_size=1,
    max_size=6,
)


@given(sizes, st.integers(16, 28), st.booleans())
def test_what_a_shortage_advises_is_the_least_that_helps(
    groups: list[tuple[str, int]],
    prefix: int,
    recovers: bool,  # noqa: FBT001 - hypothesis gives positions
) -> None:
    """The block said fits and one half as large does not; the count said fits and one more node does not."""
    text = HEAD.replace("10.1.0.0/24", f"10.64.0.0/{prefix}")
    text = text.replace("hyperpod:\n", f"hyperpod:\n  node_recovery: {'automatic' if recovers else 'none'}\n")
    for index, (name, count) in enumerate(groups):
        text += (
            P5.replace("h100", f"group-{index}").replace("ml.p5.48xlarge", name).replace("count: 2", f"count: {count}")
        )
    environment = Environment.model_validate(yaml.safe_load(text))
    budget = node_budget(environment)
    if budget.needed <= budget.usable:
        return
    says = shortage(environment, budget)
    if budget.needed > catalog.usable_addresses("10.64.0.0/16"):
        assert "no subnet is that large" in says
    else:
        block = IPv4Network(says.partition("set node_cidr: ")[2].split(",")[0].split(" ")[0])
        assert catalog.usable_addresses(str(block)) >= budget.needed
        assert block.prefixlen == 28 or catalog.usable_addresses(f"10.0.0.0/{block.prefixlen + 1}") < budget.needed
    largest = max((need for need in budget.needs if need.kind == "nodes"), key=lambda need: need.total)
    others = budget.needed - largest.total
    count = highest_count(budget, largest, budget.usable)
    assert count < largest.count
    if count:
        assert lower_count(budget, budget.usable) == f"lower {largest.path}.count to {count}"
        assert others + count * largest.each <= budget.usable
    assert others + (count + 1) * largest.each > budget.usable
