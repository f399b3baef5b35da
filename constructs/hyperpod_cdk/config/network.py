"""The network section: a VPC to create, with its zones and blocks, or an existing one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, Strict
from pydantic.config import JsonDict

from hyperpod_cdk.catalog import network as rules
from hyperpod_cdk.catalog import regions
from hyperpod_cdk.catalog.rules import Bound
from hyperpod_cdk.catalog.sentences import Choosing, Sentence, Setting
from hyperpod_cdk.config.section import Check, Section, counted, entries, within
from hyperpod_cdk.config.source import DataPath

DEFAULT_VPC_CIDR = "10.192.0.0/16"
_AZ_ID_KEYS: JsonDict = {
    "propertyNames": {
        "pattern": "^[a-z]{2,5}[0-9]-az[0-9]$",
        "patternErrorMessage": "must be an AZ ID: use1-az5",
    }
}
_IPV4_BLOCK = r"^(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])/(?:1[6-9]|2[0-8])$"


VPC_ID = "vpc-0a1b2c3d4e5f67890"
SUBNET_ID = "subnet-0a1b2c3d4e5f67890"
SECURITY_GROUP_ID = "sg-0a1b2c3d4e5f67890"


def _id_of(what: str, example: str, command: str) -> Check:
    prefix = example.partition("-")[0]
    # IDs of eight digits are those of resources from before 2016, which still exist
    pattern = rf"{prefix}-[0-9a-f]{{8}}([0-9a-f]{{9}})?"

    def problem(value: str, key: str) -> str | None:
        if re.fullmatch(pattern, value):
            return None
        return Sentence(
            f'must be the ID of a {what} such as {example}, got "{value}"; ',
            Choosing(key),
            f" the one that 'aws ec2 {command}' shows",
        )

    words = f"must be the ID of a {what}: {example}"
    return Check(problem, "pattern", {"pattern": f"^{pattern}$", "patternErrorMessage": words})


VpcId = Annotated[str, _id_of("VPC", VPC_ID, "describe-vpcs")]
SubnetId = Annotated[str, _id_of("subnet", SUBNET_ID, "describe-subnets")]
SecurityGroupId = Annotated[str, _id_of("security group", SECURITY_GROUP_ID, "describe-security-groups")]

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
    """Network settings of one Availability Zone. ``use1-az5:`` with nothing after it uses the defaults."""

    node_cidr: CidrBlock | None = Field(
        default=None,
        description=(
            "CIDR block of the node subnet in this zone, added to the VPC as a secondary block. It must be"
            " large enough for the IP addresses of all nodes (81 per ml.p5.48xlarge node) and cannot be"
            " resized later. Default: a free /16 block that depends only on the Availability Zone ID,"
            " 10.5.0.0/16 for use1-az5."
        ),
        examples=["10.1.0.0/16"],
    )


_ONE_OR_MORE_SUBNETS = Check(
    lambda value, key: None if value else f"must hold at least one node subnet, got none; add one below {key}",
    "count",
    {"minProperties": 1},
)


_CLUSTER_SUBNETS = 16
"""Most subnets of a cluster's VpcConfig (CloudFormation schema AWS::SageMaker::Cluster)."""


class ExistingNetwork(Section):
    """An existing VPC. The environment creates no subnet, route or gateway in it."""

    vpc_id: VpcId = Field(
        description="ID of the VPC, which may be of another account that shares its subnets with this one.",
        examples=[VPC_ID],
    )
    node_subnet_ids: Annotated[dict[str, SubnetId], _ONE_OR_MORE_SUBNETS] = Field(
        description=(
            "Map from Availability Zone ID to the subnet for nodes and file systems in that zone. The subnet"
            " must be private and have a route to S3, ECR and the API server. The first zone is the zone of"
            " the cluster itself."
        ),
        examples=[{"use1-az5": SUBNET_ID}],
        json_schema_extra=_AZ_ID_KEYS,
    )
    control_plane_subnet_ids: Annotated[tuple[SubnetId, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "Private subnets for the network interfaces of the EKS control plane and for the function that"
            " runs kubectl: at least two, in different zones. With eks.existing, only the function uses them."
            " Default with eks.existing: the node subnets."
        ),
        examples=[[SUBNET_ID, "subnet-0b2c3d4e5f678901a"]],
    )
    security_group_id: SecurityGroupId | None = Field(
        default=None,
        description=(
            "Security group of the nodes. It must allow all traffic from itself and to itself, with its own"
            " ID in both rules (for EFA). No rules are added to it. Default: a security group is created."
        ),
        examples=[SECURITY_GROUP_ID],
    )
    cluster_subnet_ids: Annotated[
        tuple[SubnetId, ...], Strict(strict=False), counted(Bound(maximum=_CLUSTER_SUBNETS), "subnets")
    ] = Field(
        default=(),
        description=(
            "Subnets of the HyperPod cluster itself, which HyperPod does not allow to change. Use it to adopt"
            " an existing cluster: list the subnets of that cluster, in their order. Each group also has the"
            " subnet of its zone; another list replaces the cluster. Default: the node subnet of the first"
            " zone."
        ),
        examples=[[SUBNET_ID, "subnet-0b2c3d4e5f678901a"]],
    )
    vpc_cidrs: Annotated[tuple[CidrBlock, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "IPv4 CIDR blocks of the VPC, the primary block first. No resource is created from them. They"
            " document the network, and 'hyperpod-cdk preflight' compares them with it."
        ),
        examples=[["10.0.0.0/16", "100.64.0.0/16"]],
    )


_SERVICE = r"[a-z][a-z0-9-]*([.-][a-z0-9-]+)*"


def _service_problem(value: str, key: str) -> str | None:
    if re.fullmatch(_SERVICE, value) and not value.startswith(("com.", "cn.")):
        return None
    short = value.split(".", 3)[-1] if value.startswith("com.amazonaws.") else "secretsmanager"
    return Sentence(
        f'must be the part of an endpoint\'s name after the region, such as secretsmanager, got "{value}"; ',
        Setting(key, short),
    )


EndpointService = Annotated[
    str,
    Check(
        _service_problem,
        "pattern",
        {
            "pattern": f"^(?!com\\.|cn\\.){_SERVICE}$",
            "patternErrorMessage": "must be the part of an endpoint's name after the region: secretsmanager",
        },
    ),
]


_MOST_ENDPOINTS = 100
"""Twice the default quota; the subnets of the largest VPC block have room for so many."""


class InterfaceEndpoints(Section):
    """The interface endpoints of a closed network that the environment creates. The endpoints that the environment
    itself needs are always created.
    """

    zones: Annotated[tuple[str, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "IDs of the Availability Zones in which the endpoints have a network interface. AWS bills each"
            " endpoint per hour and zone; nodes in the other zones use the interfaces in these zones."
            " Default: every zone in availability_zones."
        ),
        examples=[["use1-az5", "use1-az4"]],
    )
    additional: Annotated[
        tuple[EndpointService, ...], Strict(strict=False), counted(Bound(maximum=_MOST_ENDPOINTS), "services")
    ] = Field(
        default=(),
        description=(
            "Additional services that jobs call. Each is the last part of the endpoint's service name, after"
            " the Region in com.amazonaws.us-east-1.secretsmanager."
        ),
        examples=[["secretsmanager"]],
    )


class Network(Section):
    """The VPC: one that the environment creates, or an existing one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["availability_zones"]}, {"required": ["existing"]}]}
    )

    vpc_cidr: CidrBlock = Field(
        default=DEFAULT_VPC_CIDR,
        description=(
            "Primary CIDR block of the VPC, for the network interfaces of the EKS control plane and the NAT"
            " gateways. Nodes get separate blocks."
        ),
        examples=[DEFAULT_VPC_CIDR],
    )
    availability_zones: Annotated[
        dict[str, Annotated[AvailabilityZone, BeforeValidator(_empty_for_nothing)]],
        entries(rules.ZONES, "availability zones"),
    ] = Field(
        default_factory=dict,
        description=(
            "Availability Zones by ID (use1-az5), never by name (us-east-1a is a different zone in each"
            " account). At least two: the EKS control plane uses the first two, and the first is the zone of"
            " the HyperPod cluster itself. Required without existing."
        ),
        examples=[{"use1-az5": {"node_cidr": "10.1.0.0/16"}, "use1-az4": {"node_cidr": "10.2.0.0/16"}}],
        json_schema_extra=_AZ_ID_KEYS,
    )
    nat_gateways: Annotated[int, within(Bound(minimum=1))] = Field(
        default=1,
        description=(
            "How many NAT gateways to create, one in each of the first zones, and at most one per zone. Zones"
            " without one use the NAT gateway of the first zone."
        ),
    )
    egress: Literal["nat", "closed"] = Field(
        default="nat",
        description=(
            "How the private subnets reach AWS. nat: through NAT gateways, which also reach the internet."
            " closed: without an internet gateway, public subnets, NAT gateways or default routes; through an"
            " S3 gateway endpoint and interface endpoints of the services that nodes and kubectl call."
            " Container images then come only from ECR: see eks.image_registry. With existing, no endpoint is"
            " created; preflight then checks that the endpoints exist."
        ),
    )
    endpoints: InterfaceEndpoints | None = Field(
        default=None,
        description=(
            "In which zones interface endpoints are created, and additional endpoints. Default: the endpoints"
            " that the environment needs, in every zone."
        ),
        examples=[{"additional": ["secretsmanager"]}],
    )
    retain: bool = Field(
        default=False,
        description=(
            "Whether the VPC, the node subnets and their CIDR blocks are retained when the foundation stack"
            " is deleted. Set it when you remove a file system from the file: the file system is retained,"
            " its network interfaces use the subnet, and EC2 cannot delete the subnet or the VPC before the"
            " file system is deleted. While storage.lustre contains a file system that the environment"
            " creates, they are always retained in its zone. They cost nothing; the VPC counts against the"
            " quota of VPCs."
        ),
    )
    existing: ExistingNetwork | None = Field(
        default=None,
        description=(
            "An existing VPC, instead of vpc_cidr, availability_zones and nat_gateways. Default: the"
            " environment creates a VPC."
        ),
        examples=[{"vpc_id": VPC_ID, "node_subnet_ids": {"use1-az5": SUBNET_ID}}],
    )

    @property
    def is_closed(self) -> bool:
        """Whether the VPC has no route to the internet."""
        return self.egress == "closed"

    @property
    def nat_gateway_count(self) -> int:
        """How many NAT gateways are created: none in a closed network."""
        return 0 if self.is_closed else self.nat_gateways

    def endpoint_zones(self) -> tuple[str, ...]:
        """Return the zones with interface endpoints, in the order of the file; none unless endpoints are created."""
        if not self.is_closed or self.existing is not None:
            return ()
        chosen = () if self.endpoints is None else self.endpoints.zones
        return tuple(zone for zone in self.availability_zones if not chosen or zone in chosen)

    @property
    def is_existing(self) -> bool:
        """Whether the environment uses an existing VPC."""
        return self.existing is not None

    def zone_ids(self) -> tuple[str, ...]:
        """Return the IDs of the zones that have a node subnet, in the order of the file; the first is the cluster's."""
        return tuple(self.availability_zones if self.existing is None else self.existing.node_subnet_ids)

    def node_cidrs(self) -> dict[str, str]:
        """Return the node block of every zone, set or default, in the order of the file.

        Raises ValueError for an existing network, whose blocks only AWS knows.
        """
        if self.existing is not None:
            raise ValueError(f"the node blocks of the existing {self.existing.vpc_id} are not in the file")
        return {
            az_id: zone.node_cidr or self.default_node_cidr(az_id) for az_id, zone in self.availability_zones.items()
        }

    def blocks(self) -> dict[DataPath, IPv4Network]:
        """Return the blocks that the VPC gets, or that the file lists for an existing VPC, by their places in the file.

        Leaves out a zone without a block if its ID is not valid: another rule refuses the ID.
        """
        if self.existing is not None:
            stated = enumerate(self.existing.vpc_cidrs)
            return {("network", "existing", "vpc_cidrs", index): IPv4Network(block) for index, block in stated}
        own: dict[DataPath, IPv4Network] = {("network", "vpc_cidr"): IPv4Network(self.vpc_cidr)}
        for az_id, zone in self.availability_zones.items():
            if zone.node_cidr or regions.is_az_id(az_id):
                block = zone.node_cidr or self.default_node_cidr(az_id)
                own["network", "availability_zones", az_id] = IPv4Network(block)
        return own

    def default_node_cidr(self, az_id: str) -> str:
        """Return the /16 that a zone gets if the file sets none; raises ValueError for text that is not a zone ID.

        It depends on the zone's number and the VPC block only, never on other zones: adding one cannot move the block
        of another, which would replace its subnet and the HyperPod cluster. A block that overlaps it is refused.
        """
        number = 10 if regions.is_local_zone(az_id) else int(az_id[-1])
        candidates = _candidates(number, IPv4Network(rules.secondary_pool(self.vpc_cidr)))
        # at least five, of which the VPC's own block and what AWS refuses with it use two at most
        return next(each for each in candidates if not rules.secondary_cidr_problem(each, primary=self.vpc_cidr))


def _candidates(number: int, pool: IPv4Network) -> Iterable[str]:
    """Yield every tenth /16 of the pool, beginning with the zone's number, so that no two zones share a candidate.

    Local Zones, whose numbers repeat those of zones, use number 10; two Local Zones need blocks in the file.
    """
    size = 2 ** (32 - rules.SHORTEST_PREFIX)
    for offset in range(number, pool.num_addresses // size, 10):
        yield str(IPv4Network((int(pool.network_address) + offset * size, rules.SHORTEST_PREFIX)))
