"""An existing network: whether nodes, control plane and kubectl work in the network that the file names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, collapse_addresses
from typing import TypeVar, cast

from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog.network import FEWEST_ZONES
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import (
    Among,
    Aws,
    Endpoint,
    NotAnswered,
    Route,
    RouteTable,
    SecurityGroupAnswer,
    SecurityGroupRule,
    SubnetAnswer,
    VpcAnswer,
)
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.endpoints import needed_endpoints
from hyperpod_cdk.config.environment import FOUNDATION, stack_name
from hyperpod_cdk.config.network import ExistingNetwork

AREA = "existing-network"

ThingT = TypeVar("ThingT")

NODE_ENDPOINTS = tuple(row.service for row in catalog.ENDPOINTS if row.caller == catalog.NODES and not row.unsure)
"""Endpoints that nodes without internet access need in addition to S3 (SageMaker developer guide, EKS user guide)."""

KUBECTL_ENDPOINTS = (*(row.service for row in catalog.ENDPOINTS if row.caller == catalog.KUBECTL), "sts")
"""What the functions that run kubectl call, in addition to S3. From CDK's sources and users' reports, not a guide."""

DISPENSABLE_ENDPOINTS = frozenset(
    row.service for row in catalog.ENDPOINTS if row.service in NODE_ENDPOINTS and row.is_dispensable
)
"""Those that nodes may not need: SSM Agent does not need it since version 3.3.40."""

_HERE = "network.existing"
_S3 = "s3"
_ANYWHERE = IPv4Network("0.0.0.0/0")
_ALL = "-1"
_TCP = frozenset({"tcp", "6"})
_HTTPS = 443
_INTERNET = "igw-"
# targets that lead out of a VPC without public addresses of instances
_WAYS_OUT = ("nat-", "tgw-", "vgw-", "eni-", "vpce-", "pcx-", "lgw-", "arn:", "i-", "cagw-")


@dataclass(frozen=True, kw_only=True)
class _Named:
    """A subnet of the file: its place in the file, and its zone there (empty: not stated)."""

    path: str
    subnet_id: str
    zone: str = ""

    @property
    def is_for_nodes(self) -> bool:
        return bool(self.zone)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What AWS has of the file's network; ``subnets`` only those that exist in the VPC.

    ``gaps`` say what of it was not read: then nothing passes, whatever is found of the rest.
    """

    named: tuple[_Named, ...]
    subnets: Mapping[str, SubnetAnswer]
    tables: tuple[RouteTable, ...]
    answered_endpoints: tuple[Endpoint, ...] | NotAnswered
    gaps: tuple[Skipped, ...] = ()

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints of the VPC; raises NotAnswered if AWS did not show them."""
        if isinstance(self.answered_endpoints, NotAnswered):
            raise self.answered_endpoints
        return self.answered_endpoints

    def table_of(self, subnet_id: str) -> RouteTable | None:
        own = next((table for table in self.tables if subnet_id in table.subnet_ids), None)
        return own or next((table for table in self.tables if table.is_main), None)

    def standing(self) -> Iterator[tuple[_Named, SubnetAnswer]]:
        """Yield every subnet once, as the nodes' if it is named for both."""
        seen: set[str] = set()
        for each in self.named:
            if each.subnet_id in self.subnets and each.subnet_id not in seen:
                seen.add(each.subnet_id)
                yield each, self.subnets[each.subnet_id]

    def by_table(self) -> Iterator[_Routed]:
        """Group the subnets by route table: an error of a table is reported once."""
        groups: dict[str, list[_Named]] = {}
        for each, _ in self.standing():
            table = self.table_of(each.subnet_id)
            groups.setdefault("" if table is None else table.route_table_id, []).append(each)
        for members in groups.values():
            yield _Routed(table=self.table_of(members[0].subnet_id), members=tuple(members))


@dataclass(frozen=True, kw_only=True)
class _Routed:
    """Subnets of one route table; None if a VPC has no main one and the subnet none of its own."""

    table: RouteTable | None
    members: tuple[_Named, ...]

    @property
    def path(self) -> str:
        return self.members[0].path

    @property
    def ids(self) -> str:
        return ", ".join(each.subnet_id for each in self.members)

    @property
    def name(self) -> str:
        return "the main route table" if self.table is None else self.table.route_table_id

    @property
    def has_nodes(self) -> bool:
        return any(each.is_for_nodes for each in self.members)

    @property
    def routes(self) -> tuple[Route, ...]:
        return () if self.table is None else self.table.routes

    @property
    def internet_gateway(self) -> str:
        return next((target for target, _ in self.defaults() if target.startswith(_INTERNET)), "")

    @property
    def route_to_the_internet(self) -> str:
        """The destination of a route to an internet gateway that is not the default route."""
        public = (route for route in self.routes if route.target.startswith(_INTERNET))
        return next((route.destination for route in public if route.destination != str(_ANYWHERE)), "")

    @property
    def has_way_out(self) -> bool:
        # the default route may be written as its two halves
        blocks = [IPv4Network(route.destination) for route in self._ways() if "." in route.destination]
        return _ANYWHERE in collapse_addresses(blocks)

    @property
    def way_elsewhere(self) -> str:
        """The target of a route out of the VPC that is not the default route."""
        return next((route.target for route in self._ways()), "")

    def _ways(self) -> Iterator[Route]:
        for route in self.routes:
            is_gateway_endpoint = route.target.startswith("vpce-") and route.destination.startswith("pl-")
            if route.state == "active" and route.target.startswith(_WAYS_OUT) and not is_gateway_endpoint:
                yield route

    @property
    def dead_way_out(self) -> str:
        return next((target for target, state in self.defaults() if state != "active"), "")

    def defaults(self) -> list[tuple[str, str]]:
        return [(route.target, route.state) for route in self.routes if route.destination == str(_ANYWHERE)]


@check(
    area=AREA,
    asks=("vpc",),
    inputs="network.existing.vpc_id.",
    passes="The VPC exists in the account and region, with DNS resolution and DNS hostnames, which the private endpoint"
    " of EKS and private names of endpoints need.",
    fails="It does not exist, or one of the two DNS attributes is disabled.",
    skips="AWS does not answer about the VPC, or about one of its attributes; the other is still compared.",
    by_hand="aws ec2 describe-vpc-attribute --vpc-id vpc-0a1b2c3d4e5f67890 --attribute enableDnsHostnames",
)
def existing_vpc_resolves_names(case: Case, aws: Aws) -> Iterator[Found]:
    """Without DNS, nodes find neither the API server nor an interface endpoint."""
    existing = case.environment.network.existing
    if existing is None:
        return
    path, environment = f"{_HERE}.vpc_id", case.environment
    vpc = aws.vpc(existing.vpc_id)
    if vpc is None:
        yield error(
            path,
            f"needs a VPC of account {environment.account} in {environment.region}, got {existing.vpc_id}, which"
            f" does not"
            " exist there; correct the ID, the account or the region",
        )
        return
    for value, what, option in (
        (vpc.dns_support, "DNS resolution", "enable-dns-support"),
        (vpc.dns_hostnames, "DNS hostnames", "enable-dns-hostnames"),
    ):
        if isinstance(value, NotAnswered):
            yield unanswered(value, path, about=f"whether {what} is on in {existing.vpc_id}")
        elif not value:
            yield error(
                path,
                f"needs {what} enabled in {existing.vpc_id}; run 'aws ec2 modify-vpc-attribute --vpc-id"
                f" {existing.vpc_id} --{option}'",
            )


@check(
    area=AREA,
    asks=("vpc",),
    inputs="network.existing.vpc_cidrs, if it is set.",
    passes="It lists the IPv4 blocks of the VPC, the primary one first. Another check reports a VPC that does not"
    " exist.",
    fails="A block in the file is not one of the VPC's, or the first is not the primary one. A warning for blocks of"
    " the VPC"
    " that the file does not list.",
    skips="AWS does not answer about the VPC.",
    by_hand="aws ec2 describe-vpcs --vpc-ids vpc-0a1b2c3d4e5f67890 --query"
    " 'Vpcs[].CidrBlockAssociationSet[].CidrBlock'",
)
def vpc_cidrs_are_those_of_the_vpc(case: Case, aws: Aws) -> Iterator[Found]:
    """The first block opens ports to the whole VPC, the others document it."""
    existing = case.environment.network.existing
    if existing is None or not existing.vpc_cidrs:
        return
    vpc = aws.vpc(existing.vpc_id)
    if vpc is None:
        return
    path, stated = f"{_HERE}.vpc_cidrs", existing.vpc_cidrs
    has = f"{existing.vpc_id} has {', '.join(vpc.cidrs)}"
    foreign = [block for block in stated if block not in vpc.cidrs]
    for block in foreign:
        yield error(f"{path}[{stated.index(block)}]", f"must be a block of the VPC, got {block}, and {has}; correct it")
    if not foreign and stated[0] != vpc.cidrs[0]:
        yield error(f"{path}[0]", f"must be the primary block, got {stated[0]}, and {has}; put {vpc.cidrs[0]} first")
    if missing := [block for block in vpc.cidrs if block not in stated]:
        yield warning(path, f"lists {', '.join(stated)}, and {has}; add {', '.join(missing)}")


@check(
    area=AREA,
    asks=("vpc", "subnets"),
    inputs="network.existing.node_subnet_ids and control_plane_subnet_ids.",
    passes="Every subnet exists, in the VPC of the file; every node subnet is in the zone under which it is"
    " named; the"
    " control-plane subnets of a new EKS cluster are in two zones.",
    fails="A subnet does not exist, is in another VPC or another zone; all control-plane subnets are in one zone.",
    skips="AWS does not answer about the VPC or about a subnet, or there is no such VPC; what it showed is still"
    " compared.",
    by_hand="aws ec2 describe-subnets --subnet-ids subnet-0a1b2c3d4e5f67890"
    " --query 'Subnets[].[VpcId,AvailabilityZoneId]'",
)
def existing_subnets_stand_where_the_file_says(case: Case, aws: Aws) -> Iterator[Found]:
    """HyperPod puts a group into the subnet of its zone; EKS needs subnets in two zones."""
    existing = case.environment.network.existing
    if existing is None:
        return
    named = _named(existing)
    ids = tuple(dict.fromkeys(each.subnet_id for each in named))
    vpc, subnets = _of_both(lambda: aws.vpc(existing.vpc_id), lambda: aws.subnets(ids))
    if isinstance(vpc, NotAnswered):
        yield unanswered(vpc, f"{_HERE}.vpc_id")
    for each in named:
        try:
            subnet = subnets.get(each.subnet_id)
        except NotAnswered as missing:
            yield unanswered(missing, each.path, about=each.subnet_id)
            continue
        if subnet is None:
            yield error(
                each.path,
                f"needs a subnet of {existing.vpc_id}, got {each.subnet_id}, which does not exist in"
                f" {case.environment.region}; correct the ID",
            )
        elif vpc is not None and subnet.vpc_id != existing.vpc_id:
            yield error(
                each.path,
                f"needs a subnet of {existing.vpc_id}, got {each.subnet_id} of {subnet.vpc_id}; name one of"
                f" {existing.vpc_id}, or correct vpc_id",
            )
        elif each.zone and subnet.availability_zone_id != each.zone:
            yield error(
                each.path,
                f"needs a subnet in {each.zone}, got {each.subnet_id} in {subnet.availability_zone_id}; name it under"
                f" {subnet.availability_zone_id}, also in the groups and file systems there",
            )
    yield from _one_zone(case.environment, existing, subnets.read)


@check(
    area=AREA,
    asks=("vpc", "subnets", "route_tables"),
    inputs="network.existing.node_subnet_ids and control_plane_subnet_ids, their route tables.",
    passes="No route of a subnet leads to an internet gateway, and none gives its interfaces public addresses.",
    fails="A subnet is public: its route to everywhere leads to an internet gateway, which is useless for a node"
    " without a public address, and HyperPod accepts only private subnets. A warning where only another route leads"
    " there, such as that of IPv6, and where a private subnet gives public addresses.",
    skips="AWS does not answer about the VPC, the subnets or the route tables.",
    by_hand="aws ec2 describe-route-tables --filters Name=association.subnet-id,Values=subnet-0a1b2c3d4e5f67890",
)
def existing_subnets_are_private(case: Case, aws: Aws) -> Iterator[Found]:
    """HyperPod's nodes never get a public address, so a public subnet gives them no internet access."""
    existing = case.environment.network.existing
    seen = None if existing is None else _seen(case, existing, aws, endpoints=False)
    if seen is None:
        return
    yield from seen.gaps
    public = [routed for routed in seen.by_table() if routed.internet_gateway]
    for routed in public:
        yield error(
            routed.path,
            f"needs a private subnet, got {routed.ids}, whose route table {routed.name} leads to the internet gateway"
            f" {routed.internet_gateway}; name a private subnet, or route it to a NAT gateway instead",
        )
    for routed in seen.by_table():
        if routed.route_to_the_internet and not routed.internet_gateway:
            yield warning(
                routed.path,
                f"should be a private subnet, got {routed.ids}, whose route table {routed.name} leads"
                f" {routed.route_to_the_internet} to an internet gateway; name a subnet without such a route",
            )
    told = {each.subnet_id for routed in public for each in routed.members}
    for each, subnet in seen.standing():
        if subnet.assigns_public_addresses and each.subnet_id not in told:
            yield warning(
                each.path,
                f"should be a subnet that gives no public addresses, got {each.subnet_id}, which does; run 'aws ec2"
                f" modify-subnet-attribute --subnet-id {each.subnet_id} --no-map-public-ip-on-launch'",
            )


@check(
    area=AREA,
    asks=("vpc", "subnets"),
    inputs="operators.inference with load_balancer_controller; network.existing, the tags of its subnets and the owner"
    " of the VPC.",
    passes=f"A subnet of the file has the tag {catalog.INTERNAL_LOAD_BALANCER_TAG}, which EKS requires on private"
    " subnets"
    " for load balancers. Subnets that the file does not name, such as public ones, are not checked.",
    fails="Never an error: a warning where no subnet of the file has the tag, by which the AWS Load Balancer Controller"
    " finds them. For a VPC that another account shares, it also says where to set the tags.",
    skips="AWS does not answer about the VPC or the subnets.",
    by_hand="aws ec2 describe-subnets --subnet-ids subnet-0a1b2c3d4e5f67890 --query 'Subnets[].Tags'",
)
def load_balancers_find_existing_subnets(case: Case, aws: Aws) -> Iterator[Found]:
    """Without the tag, load balancers of endpoints wait for subnets that the controller does not find."""
    existing, inference = case.environment.network.existing, case.environment.operators.inference
    if existing is None or not (inference.enabled and inference.load_balancer_controller):
        return
    ids = tuple(dict.fromkeys(each.subnet_id for each in _named(existing)))
    vpc, subnets = _of_both(lambda: aws.vpc(existing.vpc_id), lambda: aws.subnets(ids))
    if isinstance(vpc, NotAnswered):
        yield unanswered(vpc, f"{_HERE}.vpc_id")
    tag = catalog.INTERNAL_LOAD_BALANCER_TAG
    standing = [subnet for subnet in subnets.read.values() if subnet.vpc_id == existing.vpc_id]
    if any(tag in subnet.tags for subnet in standing):
        return
    unread = [each for each in _named(existing) if each.subnet_id in subnets.unread]
    for each in unread:
        yield unanswered(subnets.unread[each.subnet_id], each.path, about=each.subnet_id)
    if unread or not standing:
        return
    owner = vpc.owner if isinstance(vpc, VpcAnswer) else ""
    is_shared = owner not in {"", case.environment.account}
    shared = f" (the VPC belongs to account {owner}, whose tags may not be visible here)" if is_shared else ""
    yield warning(
        "operators.inference.load_balancer_controller",
        f"the controller finds subnets by the tag {tag} (before its version 2.12.1 only by it), and AWS shows it on"
        f" none of {joined([each.subnet_id for each in standing])}{shared}; run 'aws ec2 create-tags"
        f" --resources {standing[0].subnet_id} --tags Key={tag},Value=1' for each in account"
        f" {case.environment.account}, or name subnets in the annotations of load balancers",
    )


@check(
    area=AREA,
    asks=("vpc", "subnets", "route_tables", "endpoints"),
    inputs="The route tables of the subnets of network.existing, the endpoints of the VPC, and network.egress.",
    passes="The subnet has a default route through a NAT gateway, transit gateway or the like, or the VPC has"
    f" every interface endpoint that nodes need without one: {', '.join(NODE_ENDPOINTS)}. Another check"
    " reports public subnets. Where a transit gateway leads is not checked.",
    fails="The route's target does not exist any more (blackhole), or there is neither a route nor all of the"
    " endpoints. A warning for"
    f" a control-plane subnet without the endpoints that kubectl's function calls ({', '.join(KUBECTL_ENDPOINTS)}), a"
    " list that no AWS guide states; and where the endpoints may still be reachable: through a route to another"
    " network, by a private hosted zone for endpoints without private names, or where only ec2messages is missing."
    " With egress: closed the features of the file need further endpoints, and internet access is a warning.",
    skips="AWS does not answer about the VPC, the subnets, the route tables or the endpoints, or shows no route table"
    " of a subnet, or no endpoint of a VPC that another account shares.",
    by_hand="aws ec2 describe-vpc-endpoints --filters Name=vpc-id,Values=vpc-0a1b2c3d4e5f67890"
    " --query 'VpcEndpoints[].[ServiceName,State,PrivateDnsEnabled]'",
)
def existing_subnets_have_a_way_out(case: Case, aws: Aws) -> Iterator[Found]:
    """Nodes pull images, report to SageMaker and use S3 while they boot."""
    existing = case.environment.network.existing
    seen = None if existing is None else _seen(case, existing, aws)
    if seen is None:
        return
    yield from seen.gaps
    for routed in seen.by_table():
        if routed.table is None:
            yield Skipped(reason=f"AWS shows no route table of {routed.ids}", path=routed.path)
            continue
        if routed.internet_gateway:
            continue
        if routed.has_way_out:
            if case.environment.network.is_closed:
                yield from _as_far_as_read(_open(case.environment, routed, seen), routed)
            continue
        if routed.dead_way_out:
            yield error(
                routed.path,
                f"needs a route to the internet from {routed.ids}, got a route of {routed.name} to "
                f"{routed.dead_way_out}, which does not exist any more (blackhole);"
                " route 0.0.0.0/0 to a NAT gateway that exists",
            )
        else:
            yield from _as_far_as_read(_closed(case.environment, routed, seen), routed)


@check(
    area=AREA,
    asks=("vpc", "subnets", "route_tables", "endpoints"),
    inputs="The route tables of network.existing.node_subnet_ids and the S3 endpoints of the VPC.",
    passes="A gateway endpoint of S3 is on the route table of every node subnet, or an S3 interface endpoint answers.",
    fails="S3 cannot be reached at all: no endpoint and no other route. A warning where S3 is reached through the"
    " NAT gateway only, which bills every byte; the SageMaker developer guide asks for the endpoint. A warning, too,"
    " where S3 may answer through a route to another network, or by a private hosted zone for an endpoint without"
    " private names.",
    skips="AWS does not answer about the VPC, the subnets, the route tables or the endpoints, or shows no route table"
    " of a subnet, or no endpoint of a VPC that another account shares.",
    by_hand="aws ec2 describe-vpc-endpoints --filters Name=service-name,Values=com.amazonaws.us-east-1.s3",
)
def existing_node_subnets_reach_s3(case: Case, aws: Aws) -> Iterator[Found]:
    """Lifecycle scripts, container images of ECR and training data come from S3."""
    existing = case.environment.network.existing
    seen = None if existing is None else _seen(case, existing, aws)
    if seen is None:
        return
    yield from seen.gaps
    for routed in seen.by_table():
        if not routed.has_nodes or routed.internet_gateway or _reaches_s3(routed.table, seen.endpoints):
            continue
        unless = _unless(routed, seen, (_S3,))
        if routed.table is None:
            yield Skipped(reason=f"AWS shows no route table of {routed.ids}", path=routed.path)
        elif routed.has_way_out:
            yield warning(
                routed.path,
                f"should reach S3 through a gateway endpoint, got {routed.ids} with none on {routed.name}: the NAT"
                f" gateway bills every byte; add {routed.name} to the VPC's S3 gateway endpoint, or create one",
            )
        elif not routed.dead_way_out:
            say, must = (warning, "should have") if unless else (error, "needs")
            yield say(
                routed.path,
                f"{must} a route to S3, got {routed.ids} with no S3 endpoint on {routed.name}; add {routed.name} to the"
                f" VPC's S3 gateway endpoint, or create one{unless}",
            )


@check(
    area=AREA,
    asks=("vpc", "subnets", "route_tables", "endpoints", "security_groups", "stack"),
    may_lack=("stack",),
    inputs="The security groups of the interface endpoints that nodes without internet access need;"
    " network.existing.security_group_id, eks.existing.security_group_id and the CIDR blocks of the node subnets.",
    passes="Every such endpoint allows port 443 from the nodes, by one of their groups or by the block of their"
    " subnet.",
    fails="An endpoint does not: nodes resolve its name and then wait for an answer.",
    skips="AWS does not answer about the VPC, the subnets, the route tables, the endpoints or their groups; an endpoint"
    " allows a prefix list, which is not checked, or a group that may be the one that an earlier deployment created.",
    by_hand="aws ec2 describe-vpc-endpoints --query 'VpcEndpoints[].[ServiceName,Groups]'",
)
def existing_endpoints_let_the_nodes_in(case: Case, aws: Aws) -> Iterator[Found]:
    """No endpoint allows a new security group: a first deployment into a closed network fails for this reason."""
    existing = case.environment.network.existing
    seen = None if existing is None else _seen(case, existing, aws)
    if existing is None or seen is None:
        return
    yield from seen.gaps
    ways = (routed for routed in seen.by_table() if not routed.has_way_out and not routed.internet_gateway)
    closed = [seen.subnets[each.subnet_id] for routed in ways for each in routed.members if each.is_for_nodes]
    needed = [each for each in seen.endpoints if each.service in NODE_ENDPOINTS and _answers(each)]
    group_ids = sorted({group for endpoint in needed for group in endpoint.security_group_ids})
    if not closed or not group_ids:
        return
    groups = aws.security_groups(group_ids)
    own = {existing.security_group_id}
    if case.environment.eks.existing is not None:
        own.add(case.environment.eks.existing.security_group_id)
    refused: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Endpoint]] = {}
    for endpoint in needed:
        try:
            shut = _shut(_https_rules(endpoint.security_group_ids, groups), own, closed)
        except NotAnswered as missing:
            yield unanswered(missing, _HERE, about=f"the groups of {endpoint.service}")
            continue
        if shut:
            refused.setdefault((endpoint.security_group_ids, shut), []).append(endpoint)
    for (gates, shut), endpoints in refused.items():
        if doubt := _doubt(case.environment, _https_rules(gates, groups), aws):
            yield Skipped(reason=f"whether {', '.join(gates)} allows {', '.join(shut)} is unknown: {doubt}", path=_HERE)
            continue
        whose = existing.security_group_id or "the nodes, whose group the deployment creates"
        yield error(
            f"{_HERE}.security_group_id" if existing.security_group_id else _HERE,
            f"needs port 443 of the endpoints {', '.join(each.service for each in endpoints)} open to {whose}, got"
            f" {', '.join(gates)}, which allows neither it nor {', '.join(shut)}; allow 443 there from the blocks of"
            " the node subnets",
        )


@check(
    area=AREA,
    asks=("vpc", "security_groups"),
    inputs="network.existing.security_group_id.",
    passes="The group exists, in the VPC of the file, allows all traffic from itself and to itself, by"
    " its own ID in both rules, and allows outbound HTTPS.",
    fails="The group does not exist or is another VPC's, or one of the two rules is missing: EFA's health check then"
    " fails the cluster; an outbound rule to 0.0.0.0/0 does not count. A warning where no instance type of the file"
    " has EFA, and"
    " where no rule by address or prefix list allows outbound HTTPS.",
    skips="AWS does not answer about the VPC or the group, or there is no such VPC; the one that it showed is still"
    " compared.",
    by_hand="aws ec2 describe-security-group-rules --filters Name=group-id,Values=sg-0a1b2c3d4e5f67890",
)
def existing_security_group_lets_efa_through(case: Case, aws: Aws) -> Iterator[Found]:
    """The most common reason why HyperPod clusters fail: 'EFA health checks did not run successfully'."""
    existing = case.environment.network.existing
    if existing is None or existing.security_group_id is None:
        return
    group_id, path = existing.security_group_id, f"{_HERE}.security_group_id"
    vpc, groups = _of_both(lambda: aws.vpc(existing.vpc_id), lambda: aws.security_groups((group_id,)))
    if isinstance(vpc, NotAnswered):
        yield unanswered(vpc, f"{_HERE}.vpc_id")
    group = groups.get(group_id)
    if group is None:
        yield error(
            path,
            f"needs a security group of {existing.vpc_id}, got {group_id}, which does not exist in"
            f" {case.environment.region}; correct the ID, or remove it to create one",
        )
    elif vpc is not None and group.vpc_id != existing.vpc_id:
        yield error(
            path,
            f"needs a security group of {existing.vpc_id}, got {group_id} of {group.vpc_id}; name one of"
            f" {existing.vpc_id}, or remove it to create one",
        )
    else:
        yield from _rules(path, group, has_efa=_has_efa(case.environment))


def _named(existing: ExistingNetwork) -> tuple[_Named, ...]:
    nodes = (
        _Named(path=f"{_HERE}.node_subnet_ids.{zone}", subnet_id=subnet_id, zone=zone)
        for zone, subnet_id in existing.node_subnet_ids.items()
    )
    control_plane = (
        _Named(path=f"{_HERE}.control_plane_subnet_ids[{index}]", subnet_id=subnet_id)
        for index, subnet_id in enumerate(existing.control_plane_subnet_ids)
    )
    return (*nodes, *control_plane)


def _seen(case: Case, existing: ExistingNetwork, aws: Aws, *, endpoints: bool = True) -> _Seen | None:
    """Read the network; None if the VPC does not exist, so that a missing VPC is reported once.

    The endpoints of a VPC that another account shares belong to its owner (VPC user guide, "Responsibilities and
    permissions for owners and participants"): that none is shown then proves nothing.
    """
    named = _named(existing)
    ids = tuple(dict.fromkeys(each.subnet_id for each in named))
    questions: list[Callable[[], object]] = [
        lambda: aws.vpc(existing.vpc_id),
        lambda: aws.subnets(ids),
        lambda: aws.route_tables(existing.vpc_id),
        *([lambda: aws.endpoints(existing.vpc_id)] if endpoints else []),
    ]
    vpc, subnets, tables, *others = together(lambda ask: ask(), questions)
    if vpc is None:
        return None
    shown: object = others[0] if others else ()
    owner = "" if isinstance(vpc, NotAnswered) else cast("VpcAnswer", vpc).owner
    if others and not shown and owner not in {"", case.environment.account}:
        shown = NotAnswered(
            f"{existing.vpc_id} belongs to account {owner}, which shares it, and AWS shows none of its endpoints here;"
            " ask"
            " the owner"
        )
    for answer in (subnets, tables):
        if isinstance(answer, NotAnswered):
            raise answer
    among = cast("Among[SubnetAnswer]", subnets)
    return _Seen(
        named=named,
        subnets={key: subnet for key, subnet in among.read.items() if subnet.vpc_id == existing.vpc_id},
        tables=cast("tuple[RouteTable, ...]", tables),
        answered_endpoints=cast("tuple[Endpoint, ...] | NotAnswered", shown),
        gaps=(
            *([unanswered(vpc, f"{_HERE}.vpc_id")] if isinstance(vpc, NotAnswered) else []),
            *(
                unanswered(among.unread[each.subnet_id], each.path, about=each.subnet_id)
                for each in named
                if each.subnet_id in among.unread
            ),
        ),
    )


def _of_both(vpc: Callable[[], VpcAnswer | None], things: Callable[[], Among[ThingT]]) -> tuple[object, Among[ThingT]]:
    """Query the VPC and resources in it, which are judged without the VPC too."""
    questions: tuple[Callable[[], object], ...] = (vpc, things)
    whose, answer = together(lambda ask: ask(), questions)
    if isinstance(answer, NotAnswered):
        raise answer
    return whose, cast("Among[ThingT]", answer)


def _one_zone(
    environment: Environment, existing: ExistingNetwork, subnets: Mapping[str, SubnetAnswer]
) -> Iterator[Found]:
    ids = existing.control_plane_subnet_ids
    standing = [subnets[each] for each in ids if each in subnets and subnets[each].vpc_id == existing.vpc_id]
    zones = {subnet.availability_zone_id for subnet in standing}
    if environment.eks.is_existing or len(standing) < len(ids) or len(ids) < FEWEST_ZONES or len(zones) > 1:
        return
    yield error(
        f"{_HERE}.control_plane_subnet_ids",
        f"needs subnets in at least {FEWEST_ZONES} availability zones, got {', '.join(ids)}, all in {''.join(zones)};"
        " name one in another zone",
    )


def _as_far_as_read(found: Iterator[Found], routed: _Routed) -> Iterator[Found]:
    """Yield the findings about the subnets of one route table, and say what was not read, so that others follow."""
    try:
        yield from found
    except NotAnswered as missing:
        yield unanswered(missing, routed.path)


def _answers(endpoint: Endpoint) -> bool:
    """Whether the usual name of the service leads to the endpoint."""
    return endpoint.kind == "Interface" and _is_available(endpoint) and endpoint.private_dns


def _is_available(endpoint: Endpoint) -> bool:
    return endpoint.state.lower() == "available"


def _missing(environment: Environment, routed: _Routed, seen: _Seen) -> list[str]:
    """Return the services that the subnets' clients call and that have no interface endpoint."""
    there = {endpoint.service for endpoint in seen.endpoints if _answers(endpoint)}
    of_features = {row.service for row in catalog.ENDPOINTS if not row.unsure} - {*NODE_ENDPOINTS, *KUBECTL_ENDPOINTS}
    wanted = of_features.intersection(needed_endpoints(environment)) if environment.network.is_closed else ()
    needed = (*NODE_ENDPOINTS, *sorted(wanted)) if routed.has_nodes else KUBECTL_ENDPOINTS
    return [service for service in needed if service not in there]


def _open(environment: Environment, routed: _Routed, seen: _Seen) -> Iterator[Found]:
    """Warn of a route to the internet with egress: closed, and of what would be missing without it."""
    missing = _missing(environment, routed, seen)
    without = f"; without it there is no interface endpoint with private names for {', '.join(missing)}"
    yield warning(
        routed.path,
        f"should have no route to the internet with network.egress: closed, got {routed.ids}, whose route "
        f"table {routed.name} leads"
        f" to the internet through {routed.way_elsewhere}; set egress: nat if that is intended, or ask the owner"
        f" of the VPC to take the route out{without if missing else ''}",
    )


def _closed(environment: Environment, routed: _Routed, seen: _Seen) -> Iterator[Found]:
    missing = _missing(environment, routed, seen)
    if not missing:
        return
    unless = _unless(routed, seen, missing) if routed.has_nodes else ""
    say, must = (error, "needs") if routed.has_nodes and not unless else (warning, "should have")
    whose = "nodes" if routed.has_nodes else "the function that runs kubectl"
    yield say(
        routed.path,
        f"{must} a route to the internet from {routed.ids} for {whose}, got no default route on {routed.name} and"
        f" no interface endpoint with private names for {', '.join(missing)}; {_way_in(environment)}{unless}",
    )


def _way_in(environment: Environment) -> str:
    if environment.network.is_closed:
        return "create the endpoints"
    return "route 0.0.0.0/0 to a NAT gateway, or create the endpoints"


def _unless(routed: _Routed, seen: _Seen, missing: Sequence[str]) -> str:
    """Say why services without an endpoint may still be reachable; empty if they certainly are not."""
    if routed.way_elsewhere:
        return f", unless {routed.way_elsewhere} leads to them"
    nameless = {each.service for each in seen.endpoints if each.kind == "Interface" and _is_available(each)}
    if all(service in nameless for service in missing):
        return ", unless a private hosted zone leads to the endpoints that have no private names"
    if DISPENSABLE_ENDPOINTS.issuperset(missing):
        return ", unless the nodes' SSM Agent is 3.3.40 or newer"
    return ""


def _reaches_s3(table: RouteTable | None, endpoints: Sequence[Endpoint]) -> bool:
    return any(
        endpoint.service == _S3
        and (
            _answers(endpoint)
            or (
                endpoint.kind == "Gateway"
                and _is_available(endpoint)
                and table is not None
                and table.route_table_id in endpoint.route_table_ids
            )
        )
        for endpoint in endpoints
    )


def _https_rules(group_ids: Iterable[str], groups: Mapping[str, SecurityGroupAnswer]) -> tuple[SecurityGroupRule, ...]:
    rules = (rule for group_id in group_ids if group_id in groups for rule in groups[group_id].ingress)
    return tuple(rule for rule in rules if _covers_https(rule))


def _shut(
    rules: Iterable[SecurityGroupRule], own: Iterable[str | None], subnets: Iterable[SubnetAnswer]
) -> tuple[str, ...]:
    """Return the subnets that rules allow neither by a group of the nodes nor by address."""
    let_in = tuple(rules)
    if any(group in rule.group_ids for rule in let_in for group in own if group):
        return ()
    blocks = tuple(collapse_addresses(IPv4Network(cidr) for rule in let_in for cidr in rule.cidrs if "." in cidr))
    return tuple(
        subnet.subnet_id for subnet in subnets if not any(IPv4Network(subnet.cidr).subnet_of(block) for block in blocks)
    )


def _doubt(environment: Environment, rules: Sequence[SecurityGroupRule], aws: Aws) -> str:
    """Say why rules may still allow the nodes; empty if they certainly do not."""
    lists = sorted({each for rule in rules for each in rule.prefix_list_ids})
    if lists:
        return f"it allows {', '.join(lists)}, and prefix lists are not checked"
    existing = environment.network.existing
    is_made = existing is not None and existing.security_group_id is None
    groups = sorted({each for rule in rules for each in rule.group_ids})
    stack = stack_name(environment.name, FOUNDATION)
    if is_made and groups and aws.stack(stack) is not None:
        return f"it allows {', '.join(groups)}, which may be the group that {stack} created"
    return ""


def _covers_https(rule: SecurityGroupRule) -> bool:
    if rule.protocol == _ALL:
        return True
    low, high = rule.from_port, rule.to_port
    return rule.protocol in _TCP and low is not None and high is not None and low <= _HTTPS <= high


def _has_efa(environment: Environment) -> bool:
    names = (name for group in environment.hyperpod.all_groups for name in group.all_instance_types)
    return any(row is not None and row.efa_supported for row in map(environment.instance_type, names))


def _rules(path: str, group: SecurityGroupAnswer, *, has_efa: bool) -> Iterator[Found]:
    own = group.group_id
    say, must = (error, "needs") if has_efa else (warning, "should have, though no instance type here has EFA,")
    for rules, what, verb in (
        (group.ingress, "all traffic from itself", "authorize-security-group-ingress"),
        (group.egress, "all traffic to itself", "authorize-security-group-egress"),
    ):
        if any(rule.protocol == _ALL and own in rule.group_ids for rule in rules):
            continue
        blocks = any(rule.protocol == _ALL and str(_ANYWHERE) in rule.cidrs for rule in rules)
        got = "only 0.0.0.0/0, which EFA does not count" if blocks else "no such rule"
        yield say(
            path,
            f"{must} a rule of {own} that allows {what} by its own ID, got {got}; run 'aws ec2 {verb} --group-id {own}"
            f" --ip-permissions IpProtocol=-1,UserIdGroupPairs=[{{GroupId={own}}}]'",
        )
    if not any(_covers_https(rule) and (rule.cidrs or rule.prefix_list_ids) for rule in group.egress):
        yield warning(
            path,
            f"should allow outbound HTTPS to AWS, got {own} with no outbound rule by address for port 443; add one to"
            " 0.0.0.0/0"
            " or to the blocks of the endpoints",
        )
