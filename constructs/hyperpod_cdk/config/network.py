"""The network section: VPC block, availability zones with their node blocks, NAT gateways."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hyperpod_cdk.catalog import network as rules
from hyperpod_cdk.catalog.rules import Bound
from hyperpod_cdk.config.section import Check, Section, entries, within

DEFAULT_VPC_CIDR = "10.192.0.0/16"
FEWEST_ZONES = 2
_IPV4_BLOCK = r"^(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])/(?:1[6-9]|2[0-8])$"

CidrBlock = Annotated[
    str,
    Check(
        lambda value, key: rules.cidr_problem(value, key=key),
        "cidr_block",
        {"pattern": _IPV4_BLOCK, "patternErrorMessage": "must be an IPv4 CIDR block from /16 to /28"},
    ),
]


def _empty_for_nothing(value: Any) -> Any:
    return {} if value is None else value


class AvailabilityZone(Section):
    """What one availability zone needs of the network. ``use1-az5:`` with nothing after it means the defaults."""

    node_cidr: CidrBlock | None = Field(
        default=None,
        description=(
            "CIDR block of the zone's node subnet, added to the VPC as a secondary block. Must hold every node with"
            " the addresses its instance type takes (81 for ml.p5.48xlarge) and cannot be resized later. Default: a"
            " free /16 that follows from the AZ ID alone, 10.5.0.0/16 for use1-az5."
        ),
        examples=["10.1.0.0/16"],
    )


class Network(Section):
    """The VPC that the environment creates."""

    vpc_cidr: CidrBlock = Field(
        default=DEFAULT_VPC_CIDR,
        description=(
            "Primary CIDR block of the VPC, for the EKS control plane's interfaces and the NAT gateways; nodes get"
            " blocks of their own."
        ),
        examples=[DEFAULT_VPC_CIDR],
    )
    availability_zones: Annotated[
        dict[str, Annotated[AvailabilityZone, BeforeValidator(_empty_for_nothing)]],
        entries(Bound(minimum=FEWEST_ZONES), "availability zones"),
    ] = Field(
        description=(
            "Availability zones by ID (use1-az5), never by name (us-east-1a means another zone in each account). At"
            " least two: the first two carry the EKS control plane, the first is the cluster's own."
        ),
        examples=[{"use1-az5": {"node_cidr": "10.1.0.0/16"}, "use1-az4": {"node_cidr": "10.2.0.0/16"}}],
        json_schema_extra={
            "propertyNames": {
                "pattern": "^[a-z]{2,5}[0-9]-az[0-9]$",
                "patternErrorMessage": "must be an AZ ID: use1-az5",
            }
        },
    )
    nat_gateways: Annotated[int, within(Bound(minimum=1))] = Field(
        default=1,
        description=(
            "How many NAT gateways to make, one in each of the first zones; zones without one share the first"
            " zone's. At most one for each zone."
        ),
    )

    def node_cidrs(self) -> dict[str, str]:
        """Give the node block of every zone, stated or default, in the order of the file.

        Raises ValueError where no default block is free; a loaded environment never does.
        """
        blocks = {}
        for az_id, zone in self.availability_zones.items():
            block = zone.node_cidr or self.default_node_cidr(az_id)
            if block is None:
                raise ValueError(f"no /16 is free for the nodes in {az_id}; state node_cidr")
            blocks[az_id] = block
        return blocks

    def default_node_cidr(self, az_id: str) -> str | None:
        """Give the /16 that a zone gets where the file states none, or None where none is free.

        It depends on the zone's number, the VPC block and the stated blocks only, never on other defaults: adding a
        zone cannot move the block of another, which would replace its subnet.
        """
        stated = [zone.node_cidr for zone in self.availability_zones.values() if zone.node_cidr]
        for candidate in _candidates(int(az_id[-1]), IPv4Network(rules.secondary_pool(self.vpc_cidr))):
            if rules.secondary_cidr_problem(candidate, primary=self.vpc_cidr, others=stated) is None:
                return candidate
        return None


def _candidates(number: int, pool: IPv4Network) -> Iterable[str]:
    """Give every tenth /16 of the pool, beginning with the zone's number, so that no two zones share a candidate."""
    size = 2 ** (32 - rules.SHORTEST_PREFIX)
    for offset in range(number, pool.num_addresses // size, 10):
        yield str(IPv4Network((int(pool.network_address) + offset * size, rules.SHORTEST_PREFIX)))
