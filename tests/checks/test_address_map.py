"""The drawing of address blocks: what it shows, that it lines up, that it is never too wide."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.checks.address_map import WIDTH, Subnet, data, draw
from hyperpod_cdk.checks.model import Case
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.addresses import AddressBudget, AddressNeed, address_budgets

CaseOf = Callable[..., Case]

H100 = "hyperpod.instance_groups[1]"


def drawn(environment: Environment) -> list[Subnet]:
    """All the subnets that an environment makes."""
    return [Subnet(budget=budget, cidr=budget.cidr) for budget in address_budgets(environment)]


def crowded(*, groups: int, zones: int) -> dict[str, Any]:
    """Changes to prod.yaml: many groups of long names in several zones, a NAT gateway in each."""
    ids = ["use1-az5", "use1-az4", "use1-az1", "use1-az2"][:zones]
    more = [
        {
            "name": f"a-group-of-a-rather-long-name-that-goes-on-and-on-{n:03}",
            "instance_type": "ml.g5.12xlarge" if n % 2 else "ml.p5en.48xlarge",
            "count": n % 7,
            "availability_zone_id": ids[n % zones],
            "capacity": "on_demand",
        }
        for n in range(groups - 2)
    ]
    changes: dict[str, Any] = {f"hyperpod.instance_groups[{n + 2}]": group for n, group in enumerate(more)}
    changes.update(
        {f"network.availability_zones.{az_id}.node_cidr": f"10.{n}.0.0/16" for n, az_id in enumerate(ids[2:], 11)}
    )
    return {**changes, "network.nat_gateways": zones}


def test_prod_as_it_is_shipped(case_of: CaseOf) -> None:
    environment = case_of().environment
    text = draw(drawn(environment), vpc_cidr=environment.network.vpc_cidr, blocks=True)
    assert (
        text
        == """\
10.192.0.0/16     VPC                     ▕▲▲●░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░▏      3 subnets
  10.192.0.0/24   control plane use1-az5  ▕▪▪▲▲▸░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░▏       7 of 251
  10.192.1.0/24   control plane use1-az4  ▕▪▪▲▲▸░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░▏       7 of 251
  10.192.15.0/24  public use1-az5         ▕▪▪●░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░▏       1 of 251
10.1.0.0/16       nodes use1-az5          ▕▪Aa◆░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░▏  246 of 65,531
10.2.0.0/16       nodes use1-az4          ▕▪Bb░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░▏   45 of 65,531

Aa h100                 ml.p5.48xlarge in use1-az5  (2 + 1 spare) x 81  243
Bb system               ml.m5.2xlarge in use1-az4   (2 + 1 spare) x 15   45
◆  file system scratch  in use1-az5                 3 servers             3
▲ EKS control plane, 6 each   ▸ kubectl function, 1 each   ● NAT gateway, 1 each
▪ reserved by AWS, 5 each   ░ free   VPC: where its subnets are in it"""
    )


def test_the_same_in_ascii_crosses_out_what_is_too_much(case_of: CaseOf) -> None:
    changes = {"network.availability_zones.use1-az5.node_cidr": "10.1.0.0/24", f"{H100}.count": 3}
    environment = case_of(changes).environment
    nodes = [subnet for subnet in drawn(environment) if subnet.budget.role == "nodes"]
    assert (
        draw(nodes, blocks=False)
        == """\
10.1.0.0/24  nodes use1-az5  [##A================================a-xxxxxxxxxx*]  327 of 251 !
10.2.0.0/16  nodes use1-az4  [#Bb.............................................]  45 of 65,531

Aa h100                 ml.p5.48xlarge in use1-az5  (3 + 1 spare) x 81  324
Bb system               ml.m5.2xlarge in use1-az4   (2 + 1 spare) x 15   45
*  file system scratch  in use1-az5                 3 servers             3
# reserved by AWS, 5 each   . free   x beyond the block (!)"""
    )


def test_an_existing_subnet_shows_what_others_use() -> None:
    need = AddressNeed(kind="nodes", name="g5", instance_type="ml.g5.xlarge", count=4, each=15, path=H100)
    budget = AddressBudget(role="nodes", path="", subnet_id="subnet-0a", needs=(need,))
    subnet = Subnet(budget=budget, cidr="10.0.0.0/24", in_use=100, zone="use1-az5")
    assert (
        draw([subnet], blocks=False)
        == """\
10.0.0.0/24  nodes use1-az5  [##%%%%%%%%%%%%%%%%%%A==========.................]  60 of 151

A g5  ml.g5.xlarge in use1-az5  4 x 15  60
# reserved by AWS, 5 each   % in use already   . free"""
    )


def test_groups_beyond_the_largest_are_drawn_as_one(case_of: CaseOf) -> None:
    environment = case_of(crowded(groups=100, zones=4)).environment
    lines = draw(drawn(environment), vpc_cidr=environment.network.vpc_cidr, blocks=False).splitlines()
    bar = next(line for line in lines if "nodes use1-az5" in line)
    assert "[#AaBbCcDdEeFf+" in bar
    assert len([line for line in lines if "other groups" in line]) == 4
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("groups", [2, 9, 10, 100])
@pytest.mark.parametrize("zones", [2, 3, 4])
@pytest.mark.parametrize("blocks", [True, False])
def test_rows_line_up(case_of: CaseOf, groups: int, zones: int, blocks: bool) -> None:  # noqa: FBT001 - a table's column
    environment = case_of(crowded(groups=groups, zones=zones)).environment
    rows = draw(drawn(environment), vpc_cidr=environment.network.vpc_cidr, blocks=blocks).split("\n\n")[0].splitlines()
    left, right = ("▕", "▏") if blocks else ("[", "]")
    assert len({row.index(left) for row in rows}) == len({row.index(right) for row in rows}) == 1
    assert len({len(row.removesuffix(" !")) for row in rows}) == 1
    assert max(map(len, rows)) <= WIDTH


def test_the_numbers_are_there_as_data(case_of: CaseOf) -> None:
    plain = data(drawn(case_of().environment))
    json.dumps(plain)
    assert plain["subnets"][3] == {
        "role": "nodes",
        "availability_zone_id": "use1-az5",
        "cidr": "10.1.0.0/16",
        "reserved": 5,
        "in_use": 0,
        "available": 65531,
        "needed": 246,
        "free": 65285,
        "needs": [
            {
                "kind": kind,
                "name": "h100",
                "instance_type": "ml.p5.48xlarge",
                "is_estimate": False,
                "count": count,
                "each": 81,
                "total": 81 * count,
            }
            for kind, count in (("nodes", 2), ("spare", 1))
        ]
        + [{"kind": "file system", "name": "scratch", "count": 3, "each": 1, "total": 3}],
    }


@pytest.mark.parametrize(("encoding", "blocks"), [("utf-8", True), ("ascii", False), ("latin-1", False)])
def test_block_characters_only_where_the_terminal_takes_them(
    case_of: CaseOf, monkeypatch: pytest.MonkeyPatch, encoding: str, *, blocks: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert ("▏" in draw(drawn(case_of().environment))) is blocks


needs = st.lists(
    st.builds(
        lambda index, count, each, name, spare: [
            AddressNeed(
                kind="nodes",
                name=name,
                instance_type="ml.p6e-gb200.36xlarge",
                count=count,
                each=each,
                is_estimate=True,
                path=f"hyperpod.instance_groups[{index}]",
            ),
            *(
                [
                    AddressNeed(
                        kind="spare",
                        name=name,
                        instance_type="ml.p6e-gb200.36xlarge",
                        count=1,
                        each=each,
                        is_estimate=True,
                        path=f"hyperpod.instance_groups[{index}]",
                    )
                ]
                if spare
                else []
            ),
        ],
        st.integers(0, 10**6),
        st.integers(1, 6758),
        st.integers(1, 81),
        st.text("abcdefghij-", min_size=1, max_size=63),
        st.booleans(),
    ),
    max_size=30,
)


@given(needs, st.integers(16, 28), st.integers(0, 200), st.booleans())
def test_no_line_is_too_wide_and_every_bar_is_full(
    pairs: list[list[AddressNeed]],
    prefix: int,
    in_use: int,
    blocks: bool,  # noqa: FBT001 - hypothesis gives positions
) -> None:
    cidr = f"100.100.0.0/{prefix}"
    budget = AddressBudget(
        role="nodes", path="", availability_zone_id="use1-dfw2-az1", cidr=cidr, needs=tuple(n for p in pairs for n in p)
    )
    taken = min(in_use, catalog.usable_addresses(cidr))
    lines = draw([Subnet(budget=budget, cidr=cidr, in_use=taken)], blocks=blocks).splitlines()
    assert max(map(len, lines)) <= WIDTH
    left, right = ("▕", "▏") if blocks else ("[", "]")
    bar = lines[0].partition(left)[2].partition(right)[0]
    assert " " not in bar
    assert ("×" in bar or "x" in bar) <= (budget.needed > catalog.usable_addresses(cidr) - taken)  # noqa: RUF001 - a cross
