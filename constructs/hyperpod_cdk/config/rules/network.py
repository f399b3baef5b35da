"""Rules about availability zones, address blocks and existing networks."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from hyperpod_cdk.catalog import addons, arns, images, instance_types, regions
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog.network import FEWEST_ZONES
from hyperpod_cdk.catalog.rules import again_problem, listing, repeated
from hyperpod_cdk.catalog.sentences import Choosing, Sentence, Setting
from hyperpod_cdk.config import addresses
from hyperpod_cdk.config.draft import UnknownValueError, known
from hyperpod_cdk.config.endpoints import needed_endpoints
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.network import AvailabilityZone
from hyperpod_cdk.config.rules.book import Book, Problem, node_subnets, warning, zone_ids, zones
from hyperpod_cdk.config.source import DataPath

BOOK = Book()


def zone_problem(environment: Environment, az_id: str, *, key: str) -> str | None:
    """Say why ``az_id`` is not a zone of the environment's region, or return None."""
    elsewhere = regions.region_of_az_id(az_id) or ""
    can_move = is_all_of(environment, region=elsewhere)
    return regions.az_id_problem(az_id, region=environment.region, key=key, can_move=can_move)


def is_all_of(environment: Environment, *, region: str = "", account: str = "") -> bool:
    """Return whether all that a file names is of a region, or an account, so that it can be the environment's.

    Another one would only move the contradiction to what is not of it. These are zones and training plans, and for an
    account the administrators.
    """
    try:
        network = environment.network
        zones = {*network.availability_zones, *(network.existing.node_subnet_ids if network.existing else ())}
        zones |= {group.availability_zone_id for group in environment.hyperpod.all_groups}
        plans = [arns.arn_parts(arn) for group in environment.hyperpod.all_groups if (arn := group.training_plan_arn)]
        owners = {plan.account for plan in plans} | {
            arns.arn_parts(arn).account for arn in environment.eks.admin_role_arns
        }
        homes = {regions.region_of_az_id(zone) for zone in zones} | {plan.region for plan in plans}
    except UnknownValueError:
        return False
    return homes <= {region} and region in regions.HYPERPOD_REGIONS if region else owners <= {account}


@BOOK.whole
def network_is_made_or_exists(environment: Environment) -> Iterator[Problem]:
    """Refuse a network with neither zones nor an existing VPC, and one with both."""
    network = environment.network
    if network.existing is None:
        if "availability_zones" not in network.model_fields_set:
            yield Problem(
                ("network", "availability_zones"),
                "is missing; add availability_zones, the availability zones by ID (use1-az5), never by name (us-east-1a"
                " means another zone in each account), or existing with the vpc_id of an existing VPC",
            )
        return
    for key in ("vpc_cidr", "availability_zones", "nat_gateways", "endpoints", "retain"):
        if key in network.model_fields_set:
            yield Problem(
                ("network", key),
                f"cannot be set together with existing, whose VPC has its own; remove {key}, or remove "
                "existing to create a network",
            )


@BOOK.each(zone_ids)
def zone_is_of_the_region(environment: Environment, path: DataPath, az_id: str) -> Iterator[Problem]:
    """Refuse names, malformed IDs and zones of other regions; warn of zones that the catalog does not have."""
    problem = zone_problem(environment, az_id, key="the key")
    if problem:
        yield Problem(path, problem)
        return
    doubt = regions.unseen_az_warning(az_id, region=environment.region)
    if doubt:
        yield warning(path, f"{doubt}; check it with 'aws ec2 describe-availability-zones'")


@BOOK.whole
def eks_takes_the_first_zones(environment: Environment) -> Iterator[Problem]:
    """Refuse a zone that EKS does not support among the two for the control plane."""
    names = [az_id for az_id, _ in known(environment.network.availability_zones)]
    enough = len(regions.eks_control_plane_zones(names)) >= FEWEST_ZONES
    for az_id in names[:FEWEST_ZONES]:
        if problem := regions.control_plane_problem(az_id, first=FEWEST_ZONES, enough=enough):
            yield Problem(("network", "availability_zones", az_id), problem)


@BOOK.whole
def nat_gateways_have_zones(environment: Environment) -> Iterator[Problem]:
    """Refuse more NAT gateways than zones."""
    network = environment.network
    count = len(network.availability_zones)
    if count and (problem := catalog.nat_gateways_problem(network.nat_gateways, zones=count)):
        yield Problem(("network", "nat_gateways"), problem)


@BOOK.whole
def closed_network_has_no_way_out(environment: Environment) -> Iterator[Problem]:
    """Refuse NAT gateways in a closed network, and settings of endpoints that only a closed network has."""
    network = environment.network
    if network.is_existing:
        return
    if network.is_closed and "nat_gateways" in network.model_fields_set:
        yield Problem(
            ("network", "nat_gateways"),
            "must be left out with egress: closed, which has none; remove nat_gateways, or set egress: nat",
        )
    if not network.is_closed and "endpoints" in network.model_fields_set and network.endpoints is not None:
        yield Problem(
            ("network", "endpoints"),
            "must be left out with egress: nat, whose nodes reach every service through the NAT gateway; remove"
            " endpoints, or set egress: closed",
        )


@BOOK.whole
def endpoints_stand_in_zones_of_the_network(environment: Environment) -> Iterator[Problem]:
    """Refuse zones of endpoints that the network does not have, or that are named twice."""
    network = environment.network
    if not network.is_closed or network.is_existing or network.endpoints is None:
        return
    zones_of_endpoints = network.endpoints.zones
    path: DataPath = ("network", "endpoints", "zones")
    named = tuple(network.availability_zones)
    for index, first, az_id in repeated(zones_of_endpoints):
        yield Problem((*path, index), again_problem(az_id, first))
    for index, az_id in enumerate(zones_of_endpoints):
        # a network without zones is what is wrong then
        if named and az_id not in named:
            yield Problem(
                (*path, index),
                f"must be a zone of network.availability_zones, got {az_id}; write {listing(named)}",
            )
    if len(set(zones_of_endpoints)) == 1:
        yield warning(
            path,
            f"creates every endpoint in {zones_of_endpoints[0]} only: if that zone fails, nodes in the other zones lose"
            " access to AWS; add a second zone",
        )


@BOOK.whole
def additional_endpoints_add_something(environment: Environment) -> Iterator[Problem]:
    """Refuse repeated services and S3, which has its gateway endpoint; warn of one that is created in any case."""
    network = environment.network
    if not network.is_closed or network.is_existing or network.endpoints is None:
        return
    path: DataPath = ("network", "endpoints", "additional")
    services = network.endpoints.additional
    needed = needed_endpoints(environment)
    for index, first, service in repeated(services):
        yield Problem((*path, index), again_problem(service, first))
    for index, service in enumerate(services):
        if service == "s3":
            yield Problem(
                (*path, index),
                catalog.GATEWAY_SERVICE_PROBLEM,
            )
        elif service in needed:
            said = f"{service} is created in any case, because the environment needs it; remove it"
            yield warning((*path, index), said)
    total = len({*needed, *services})
    if total > catalog.ENDPOINTS_PER_VPC:
        yield warning(
            path,
            f"creates {total} interface endpoints in one VPC; the default quota is {catalog.ENDPOINTS_PER_VPC} (as of"
            f" {catalog.AS_OF}): request an increase, or list at most {catalog.ENDPOINTS_PER_VPC - len(needed)}",
        )


@BOOK.whole
def closed_network_keeps_its_api_server_in(environment: Environment) -> Iterator[Problem]:
    """Warn of a closed network whose API server is open to the whole internet."""
    eks = environment.eks
    if not environment.network.is_closed or eks.is_existing:
        return
    is_meant = catalog.EVERYWHERE in eks.public_access_cidrs
    if (
        eks.endpoint_access == "public_and_private"
        and catalog.opens_everywhere(eks.public_access_cidrs)
        and not is_meant
    ):
        at = "endpoint_access" if "endpoint_access" in eks.model_fields_set else ""
        yield warning(
            ("eks", at) if at else ("network", "egress"),
            "leaves the API server of a closed network open to the whole internet, which nodes do not need; set"
            " eks.endpoint_access: private, or name your own blocks under eks.public_access_cidrs",
        )


@BOOK.whole
def closed_network_reaches_what_inference_calls(environment: Environment) -> Iterator[Problem]:
    """Warn of services that the inference operator calls and that have no endpoint."""
    inference = environment.operators.inference
    if not (environment.network.is_closed and inference.enabled and environment.eks.installs(addons.INFERENCE)):
        return
    for each in catalog.UNREACHABLE:
        if each.feature == "inference" or inference.load_balancer_controller:
            yield warning(
                ("operators", "inference"),
                f"may serve models without a load balancer in a closed network: {each.says} (as of {catalog.AS_OF});"
                f" {each.fix}",
            )


@BOOK.whole
def closed_network_reaches_its_images(environment: Environment) -> Iterator[Problem]:
    """Warn of images that nodes cannot pull in a closed network; refuse a registry that is certainly unreachable."""
    if not environment.network.is_closed:
        return
    wanted = environment.images_to_copy
    registry, path = environment.eks.image_registry, ("eks", "image_registry")
    mirror = f"{environment.account}.dkr.ecr.{environment.region}.{regions.dns_suffix(environment.partition)}"
    if registry is None:
        yield warning(
            ("network", "egress"),
            f"leaves nodes no registry except ECR of {environment.region}, and the dependency chart (as of"
            f" {images.AS_OF})"
            f" pulls {listing((image.image for image in wanted), last='and')} from other registries; copy them and set"
            f" eks.image_registry: {mirror}/mirror",
        )
        return
    found, host = images.ecr_registry(registry), registry.partition("/")[0]
    is_elsewhere = found is not None and (found.region != environment.region or found.is_dual_stack)
    if host in images.PUBLIC_REGISTRIES or is_elsewhere:
        yield Problem(
            path,
            f"must be a registry that a closed network can reach, got {host}; copy the images to ECR of"
            f" {environment.region} and set image_registry: {mirror}/mirror",
        )
    elif found is not None and found.is_fips:
        yield warning(
            path,
            f"{host} is a FIPS endpoint of ECR, and no document says that the endpoints of a closed network answer to"
            f" its name; set image_registry: {mirror}/mirror",
        )
    elif found is None:
        yield warning(
            path,
            f"{host} is not an ECR registry, and a closed network has endpoints only for ECR; nodes can pull "
            "from it only if it is in the VPC or a route leads to it",
        )
    for image in wanted:
        if not image.value:
            yield warning(
                path,
                f"does not apply to {image.image}, which is fixed in the template of {image.part} (chart as of"
                f" {images.AS_OF}); install that part yourself from your registry",
            )


@BOOK.whole
def vpc_block_holds_its_endpoints(environment: Environment) -> Iterator[Problem]:
    """Refuse a VPC block whose subnets are too small for the control plane and the interface endpoints in them."""
    network = environment.network
    block = IPv4Network(network.vpc_cidr)
    if not network.endpoint_zones() or block.prefixlen > catalog.LONGEST_VPC_PREFIX:
        return
    largest = max(addresses.primary_budgets(environment), key=lambda budget: budget.needed)
    if largest.needed <= largest.usable:
        return
    prefix = catalog.smallest_vpc_prefix_for(largest.needed)
    wider = IPv4Network((block.network_address, prefix), strict=False)
    yield Problem(
        ("network", "vpc_cidr"),
        f"must be /{prefix} or larger, to hold {largest.needed} addresses in a subnet of the {largest.role}"
        f" ({addresses.parts(largest)}), got {block}, which leaves {largest.usable}; set vpc_cidr: {wider}",
    )


@BOOK.whole
def vpc_block_holds_load_balancers(environment: Environment) -> Iterator[Problem]:
    """Warn of inference with a VPC block whose control-plane subnets are too small for a load balancer."""
    block = IPv4Network(environment.network.vpc_cidr)
    if (
        environment.network.is_existing
        or not environment.operators.inference.enabled
        or block.prefixlen > catalog.LONGEST_VPC_PREFIX
    ):
        return
    budgets = [each for each in addresses.primary_budgets(environment) if each.role == "control plane"]
    tightest = max(budgets, key=lambda each: each.needed, default=None)
    if tightest is None:
        return
    wanted = tightest.needed + catalog.LOAD_BALANCER_ADDRESSES
    # another rule refuses a block that is too small for the control plane itself
    if tightest.needed <= tightest.usable < wanted:
        wider = IPv4Network((block.network_address, catalog.smallest_vpc_prefix_for(wanted)), strict=False)
        yield warning(
            ("network", "vpc_cidr"),
            f"leaves {tightest.usable - tightest.needed} free addresses in a subnet of the control plane, where the"
            f" load balancers of operators.inference are created, which need {catalog.LOAD_BALANCER_ADDRESSES}; set"
            f" vpc_cidr: {wider}",
        )


@BOOK.whole
def vpc_block_holds_its_subnets(environment: Environment) -> Iterator[Problem]:
    """Refuse a VPC block too small for control plane and NAT gateways; warn of one that AWS services use internally."""
    problem = catalog.vpc_size_problem(environment.network.vpc_cidr, key="vpc_cidr")
    if problem:
        yield Problem(("network", "vpc_cidr"), problem)
    block = IPv4Network(environment.network.vpc_cidr)
    doubt = catalog.cidr_warning(str(block))
    if doubt:
        yield warning(("network", "vpc_cidr"), doubt)


@BOOK.each(zones)
def node_block_fits_the_vpc(
    environment: Environment, path: DataPath, item: tuple[str, AvailabilityZone]
) -> Iterator[Problem]:
    """Refuse blocks that overlap others, including defaults, or that AWS does not add to this VPC."""
    az_id, zone = item
    if zone.node_cidr is None:
        yield from _same_default(environment, path, az_id)
        return
    problem = catalog.cidr_problem(zone.node_cidr, key="node_cidr") or _conflict(environment, az_id)
    if problem is None:
        problem = _default_of_a_neighbour_problem(environment, az_id, zone.node_cidr)
    if problem:
        yield Problem((*path, "node_cidr"), problem)
    doubt = catalog.cidr_warning(zone.node_cidr)
    if doubt:
        yield warning((*path, "node_cidr"), doubt)


def _conflict(environment: Environment, az_id: str) -> str | None:
    """Say why the stated block of a zone cannot be in the VPC with the others, and which block can."""
    network = environment.network
    names = list(network.availability_zones)
    stated = {name: each.node_cidr for name, each in network.availability_zones.items() if each.node_cidr is not None}
    cidr, position = stated[az_id], names.index(az_id)
    others = catalog.blocks_beside(
        cidr,
        before=[stated[name] for name in names[:position] if name in stated],
        after=[stated[name] for name in names[position + 1 :] if name in stated],
    )
    conflict = catalog.secondary_cidr_conflict(cidr, primary=network.vpc_cidr, others=others)
    if conflict is None:
        return None
    owners = {network.vpc_cidr: "vpc_cidr"}
    owners |= {stated[name]: f"the nodes in {name}" for name in stated if name != az_id and stated[name] in others}
    whose = next((f" of {owner}" for block, owner in owners.items() if catalog.overlap_problem(cidr, block)), "")
    block = addresses.free_block(environment, az_id, cidr=cidr, prefix=IPv4Network(cidr).prefixlen)
    fix = (Setting("node_cidr", block),) if block else (Choosing("node_cidr"), f" {conflict.instead}")
    return Sentence(f"{conflict.why}{whose}; ", *fix)


def _same_default(environment: Environment, path: DataPath, az_id: str) -> Iterator[Problem]:
    """Refuse a default that an earlier zone has too: all Local Zones have the same default."""
    network = environment.network
    unstated = [each for each, zone in network.availability_zones.items() if zone.node_cidr is None]
    earlier = [each for each in unstated[: unstated.index(az_id)] if regions.is_az_id(each)]
    default = network.default_node_cidr(az_id) if regions.is_az_id(az_id) else ""
    for other in earlier if default else ():
        taken = network.default_node_cidr(other)
        if conflict := catalog.secondary_cidr_conflict(default, primary=network.vpc_cidr, others=[taken]):
            yield Problem(
                path,
                f"{conflict.why}; these are the defaults of this zone and of {other}: set a free node_cidr for the new"
                " one"
                " of the two zones",
            )
            return


def _default_of_a_neighbour_problem(environment: Environment, az_id: str, cidr: str) -> str | None:
    """Say that a block overlaps, or stops AWS from adding, the default block of a zone."""
    network = environment.network
    for other_id, other in network.availability_zones.items():
        if other_id == az_id or other.node_cidr is not None or not regions.is_az_id(other_id):
            continue
        default = network.default_node_cidr(other_id)
        conflict = catalog.secondary_cidr_conflict(cidr, primary=network.vpc_cidr, others=[default])
        if conflict is not None:
            return (
                f"{conflict.why}; the second is the default of the nodes in {other_id}: set another block for the new"
                " one"
                " of the two zones, because a change replaces the subnet of a deployed one"
            )
    return None


@BOOK.whole
def vpc_blocks_fit_the_quota(environment: Environment) -> Iterator[Problem]:
    """Warn of more blocks than the default quota allows."""
    needed = 1 + len(environment.network.availability_zones)
    if needed > catalog.CIDRS_PER_VPC:
        yield warning(
            ("network", "availability_zones"),
            f"needs {needed} IPv4 blocks in one VPC, one for the VPC and one for each zone; the default quota is"
            f" {catalog.CIDRS_PER_VPC} (as of {catalog.AS_OF}): request an increase, or list at most"
            f" {catalog.CIDRS_PER_VPC - 1} zones",
        )


@BOOK.each(node_subnets)
def node_subnets_are_distinct(environment: Environment, path: DataPath, item: tuple[str, str]) -> Iterator[Problem]:
    """Refuse one subnet for two zones: it can be in only one of them."""
    az_id, subnet_id = item
    first = next(other for _, (other, each) in node_subnets(environment) if each == subnet_id)
    if first != az_id:
        yield Problem(path, catalog.same_subnet_problem(subnet_id, first))


@BOOK.whole
def control_plane_has_subnets(environment: Environment) -> Iterator[Problem]:
    """Refuse a new EKS cluster in an existing network without two subnets that EKS accepts."""
    existing = environment.network.existing
    if existing is None:
        return
    path: DataPath = ("network", "existing", "control_plane_subnet_ids")
    named = existing.control_plane_subnet_ids
    for index, first, subnet_id in repeated(named):
        yield Problem((*path, index), f"must be named once, got {subnet_id} again after [{first}]; name another subnet")
    if environment.eks.is_existing:
        return
    if problem := catalog.control_plane_subnets_problem(len(named)):
        yield Problem(path, f"{problem}, or name an existing cluster under eks.existing")
    for az_id, subnet_id in known(existing.node_subnet_ids):
        problem = regions.control_plane_subnet_problem(az_id, subnet_id)
        if problem and subnet_id in named:
            yield Problem((*path, named.index(subnet_id)), f"{problem}; name a subnet of another zone")


@BOOK.whole
def vpc_blocks_are_distinct(environment: Environment) -> Iterator[Problem]:
    """Refuse blocks of an existing VPC that overlap, which is impossible."""
    existing = environment.network.existing
    blocks = () if existing is None else existing.vpc_cidrs
    for index, block in enumerate(blocks):
        for first, other in enumerate(blocks[:index]):
            if problem := catalog.overlap_problem(block, other):
                yield Problem(
                    ("network", "existing", "vpc_cidrs", index),
                    f"{problem} in [{first}]; list the blocks that 'aws ec2 describe-vpcs' shows",
                )
                break


@BOOK.each(zones)
def node_block_holds_its_nodes(
    environment: Environment, path: DataPath, item: tuple[str, AvailabilityZone]
) -> Iterator[Problem]:
    """Refuse a block with fewer addresses than its nodes and file systems use; a subnet cannot be resized later.

    Too few addresses only for the replacement of nodes is a warning.
    """
    az_id, zone = item
    if not regions.is_az_id(az_id):
        return
    block = zone.node_cidr or environment.network.default_node_cidr(az_id)
    if block is None:
        return
    at = (*path, "node_cidr") if zone.node_cidr else path
    budget = addresses.node_budget(environment, az_id, cidr=block, path="")
    if budget.needed <= budget.usable:
        return
    if budget.running <= budget.usable:
        wanted = addresses.shortage(environment, budget, verb="should")
        yield warning(at, f"{wanted}; otherwise the replacement of a faulty node may get no IP address")
        return
    message = addresses.shortage(environment, budget)
    documented = budget.running - budget.estimated(running=True)
    yield Problem(at, message) if documented > budget.usable else warning(at, message)


@BOOK.whole
def addresses_per_node_are_known(environment: Environment) -> Iterator[Problem]:
    """Warn of types whose number of addresses is unknown, because the block's size is not checked."""
    for path, group in environment.hyperpod.placed_groups:
        for name in group.all_instance_types:
            row = environment.instance_type(name)
            if row is not None and row.ips_per_node is None:
                yield warning(
                    (*path, "instance_type" if group.instance_type else "instance_types"),
                    f"the number of IP addresses per node of {name} is unknown (catalog of {instance_types.as_of()}),"
                    f" so the size of the node block in {group.availability_zone_id} is not checked; set"
                    " ips_per_node under instance_types",
                )
