"""Whether the zones of the file exist in the account, support EKS and have the instance types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.catalog.network import FEWEST_ZONES
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.checks.answers import Aws, NotAnswered, SubnetAnswer, Zone
from hyperpod_cdk.checks.model import LOOKED, Case, Found, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import AnyGroup, Environment, InstanceGroup
from hyperpod_cdk.config.source import render_path

AREA = "availability"

_GONE = "unavailable"
_DOUBTFUL = frozenset({"impaired", "constrained"})
_LOCAL = "local-zone"
_ZONES_BY_HAND = (
    "aws ec2 describe-availability-zones --all-availability-zones"
    " --query 'AvailabilityZones[].[ZoneId,ZoneName,State,OptInStatus]'"
)


@check(
    area=AREA,
    asks=("zones",),
    inputs="The zones of network.availability_zones, or of network.existing.node_subnet_ids.",
    passes="The account has every zone, AWS says that it is available, and local zones are opted in. Subnets of an"
    " existing network that are in another zone than the file says are reported by another check.",
    fails="A zone is not among those of the account and region (not every account has all), is unavailable, or is not"
    " opted in. A zone that AWS calls impaired or constrained is a warning.",
    skips="AWS gives no answer about the zones.",
    by_hand=_ZONES_BY_HAND,
)
def zones_exist_and_are_available(case: Case, aws: Aws) -> Iterator[Found]:
    """Look for the file's zones among those of the account."""
    environment = case.environment
    zones = {zone.zone_id: zone for zone in aws.zones()}
    for az_id in environment.network.zone_ids():
        path = _zone_path(environment, az_id)
        zone = zones.get(az_id)
        if zone is not None:
            yield from _state(environment, path, zone)
        elif not environment.network.is_existing:
            usable = [each.zone_id for each in zones.values() if each.opted_in and each.kind != _LOCAL]
            yield error(
                path,
                f"must be a zone of account {environment.account} in {environment.region}, got {az_id}; its zones are"
                f" {', '.join(sorted(usable))}: replace {az_id} by one of these, also in the groups and file systems"
                " that name it",
            )


@check(
    area=AREA,
    asks=("zones", "subnets"),
    inputs="The first two zones of network.availability_zones, or network.existing.control_plane_subnet_ids.",
    passes="EKS puts control planes into the zones of its subnets: none is a local zone or a zone that EKS"
    " does not support. For a network that the environment creates, validate checks the latter.",
    fails="A control-plane subnet would be, or is, in a zone that EKS does not support for the control plane.",
    skips="AWS gives no answer about the zones, or about the subnets of an existing network.",
    by_hand="aws ec2 describe-subnets --subnet-ids subnet-0a1b2c3d4e5f67890 --query 'Subnets[].AvailabilityZoneId'\n"
    + _ZONES_BY_HAND,
)
def control_plane_stands_where_eks_does(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare the zones of the control-plane subnets with those that EKS supports."""
    environment = case.environment
    if environment.eks.is_existing:
        return
    network = environment.network
    if network.existing is None:
        local = {zone.zone_id for zone in aws.zones() if zone.kind == _LOCAL}
        for az_id in network.zone_ids()[:FEWEST_ZONES]:
            if az_id in local:
                yield error(
                    _zone_path(environment, az_id),
                    f"EKS does not support a control plane in a local zone, got {az_id} among the first "
                    f"{FEWEST_ZONES}, which are for"
                    " it; list it after two availability zones",
                )
        return
    ids = network.existing.control_plane_subnet_ids
    questions: list[Callable[[], object]] = [lambda: aws.subnets(ids), aws.zones]
    answers = together(lambda ask: ask(), questions)
    subnets = cast("Mapping[str, SubnetAnswer] | NotAnswered", answers[0])
    zones = cast("tuple[Zone, ...] | NotAnswered", answers[1])
    if isinstance(subnets, NotAnswered):
        raise subnets
    # which zones EKS does not support is known without AWS; which are local ones is not
    local = set() if isinstance(zones, NotAnswered) else {zone.zone_id for zone in zones if zone.kind == _LOCAL}
    if isinstance(zones, NotAnswered):
        yield unanswered(zones, "network.existing.control_plane_subnet_ids")
    for index, subnet_id in enumerate(ids):
        try:
            subnet = subnets.get(subnet_id)
        except NotAnswered as missing:
            yield unanswered(missing, f"network.existing.control_plane_subnet_ids[{index}]", about=subnet_id)
            continue
        if subnet is None:
            continue
        az_id = subnet.availability_zone_id
        if problem := regions.control_plane_subnet_problem(az_id, subnet_id, local=local):
            at = f"network.existing.control_plane_subnet_ids[{index}]"
            yield error(at, f"{problem}; name one in another zone")


@check(
    area=AREA,
    asks=("instance_type_zones", "zones"),
    inputs="Instance type, zone and capacity of every instance group. Groups on a training plan are left out: the plan"
    " says where its capacity is.",
    passes="EC2 offers the type (without ml.) in the group's zone; of a flexible group, all its types.",
    fails="EC2 offers the type in other zones of the region only. The message names those of the file that have it. A"
    " warning where EC2 lists the type nowhere in the region, because HyperPod may have types that EC2 does not list"
    " there, where a flexible group has types that its zone does not have, and where a group has a count of 0. That a"
    " type is offered does not guarantee capacity.",
    skips="AWS gives no answer about the offerings. Another check reports zones that the account does not have.",
    by_hand="aws ec2 describe-instance-type-offerings --location-type availability-zone-id"
    " --filters Name=instance-type,Values=p5.48xlarge",
)
def instance_types_are_offered_in_their_zones(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare each group's types and zone with EC2's offerings."""
    environment = case.environment
    groups = [
        (render_path(place), group)
        for place, group in environment.hyperpod.placed_groups
        if group.resolved_capacity != "training_plan"
    ]
    if not groups:
        return
    names = sorted({_ec2_name(environment, name) for _, group in groups for name in group.all_instance_types})
    questions: list[Callable[[], object]] = [lambda: aws.instance_type_zones(names), aws.zones]
    answers = together(lambda ask: ask(), questions)
    offered = cast("Mapping[str, frozenset[str]] | NotAnswered", answers[0])
    zones = cast("tuple[Zone, ...] | NotAnswered", answers[1])
    if isinstance(offered, NotAnswered):
        raise offered
    there = None if isinstance(zones, NotAnswered) else {zone.zone_id for zone in zones}
    for path, group in groups:
        if there is None or group.availability_zone_id in there:
            try:
                yield from _offered(case, path, group, offered)
            except NotAnswered as missing:
                yield unanswered(missing, path)


@check(
    area=AREA,
    inputs="Instance types, counts and capacity of the instance groups.",
    passes="No group takes types from on-demand capacity for which training plans are sold.",
    fails="Never an error: AWS does not show capacity, so this is always a warning. A group uses types for which"
    " training plans are sold (p4d, p5, p6, trn1, trn2 and the like) on demand, where they are seldom available.",
    skips="Never.",
    by_hand="hyperpod-cdk plans search prod",
)
def scarce_types_do_not_rely_on_demand(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nobody
    """Warn if a group relies on capacity that AWS does not guarantee."""
    environment = case.environment
    for place, group in environment.hyperpod.placed_groups:
        is_autoscaled = isinstance(group, InstanceGroup) and environment.hyperpod.is_autoscaled(group)
        if group.resolved_capacity != "on_demand" or not (group.count or is_autoscaled):
            continue
        yield LOOKED
        scarce = [name for name in group.all_instance_types if _is_planned(environment, name)]
        if not scarce:
            continue
        if is_autoscaled:
            asked = "which Karpenter requests as pods need it"
            outcome = "without capacity it adds no node, and pods stay pending"
        else:
            asked = (
                "of which 1 node is requested" if group.count == 1 else f"of which {group.count} nodes are requested"
            )
            outcome = (
                "nodes without capacity join later or never"
                if environment.hyperpod.provisioning == "continuous"
                else "one node without capacity rolls the whole cluster back (provisioning: all_or_nothing)"
            )
        yield warning(
            render_path((*place, "capacity")),
            f"On-Demand capacity is not guaranteed for {listing(scarce, last='and')}, {asked}: {outcome}; find a"
            f" training plan with 'hyperpod-cdk plans search {case.called}' and set capacity:"
            f" training_plan{' and a count' if is_autoscaled else ''}",
        )


def _state(environment: Environment, path: str, zone: Zone) -> Iterator[Found]:
    if not zone.opted_in:
        group = zone.name.rstrip("abcdefghijklmnopqrstuvwxyz")
        yield error(
            path,
            f"must be opted in by account {environment.account}, got {zone.zone_id} ({zone.name}), which is not opted"
            " in; run"
            f" 'aws ec2 modify-availability-zone-group --region {environment.region} --group-name {group}"
            " --opt-in-status opted-in'",
        )
    elif zone.state == _GONE:
        yield error(path, f"must be available, got {zone.zone_id}, which AWS reports as {zone.state}; use another zone")
    elif zone.state in _DOUBTFUL:
        yield warning(
            path, f"AWS reports {zone.zone_id} as {zone.state} now; wait until it is available, or use another zone"
        )


def _offered(case: Case, path: str, group: AnyGroup, offered: Mapping[str, frozenset[str]]) -> Iterator[Found]:
    environment = case.environment
    az_id = group.availability_zone_id
    where = {name: offered.get(_ec2_name(environment, name), frozenset()) for name in group.all_instance_types}
    missing = [name for name, zones in where.items() if az_id not in zones]
    if not missing:
        return
    key = "instance_type" if group.instance_type else "instance_types"
    if len(missing) < len(where):
        one = len(missing) == 1
        yield warning(
            f"{path}.{key}",
            f"EC2 does not offer {listing(missing, last='and')} in {az_id}, so no node will have"
            f" {'that type' if one else 'these types'}; remove {'it' if one else 'them'}, or move the group",
        )
        return
    elsewhere = frozenset[str]().union(*where.values())
    if not elsewhere:
        yield warning(
            f"{path}.{key}",
            f"EC2 lists {listing(missing, last='and')} nowhere in {environment.region}; HyperPod may have types that"
            " EC2 does not list: look for a training plan with"
            f" 'hyperpod-cdk plans search {case.called}', or use another type"
            " or region",
        )
        return
    say, must = (error, "must") if group.count else (warning, "should")
    yield say(
        f"{path}.availability_zone_id",
        f"{must} be a zone where EC2 offers {listing(missing)}, got {az_id}; {_move(environment, elsewhere)}",
    )


def _move(environment: Environment, zones: frozenset[str]) -> str:
    listed = [az_id for az_id in environment.network.zone_ids() if az_id in zones]
    if listed:
        return f"set availability_zone_id: {listing(listed)}"
    place = "network.existing.node_subnet_ids" if environment.network.is_existing else "network.availability_zones"
    return f"add {listing(sorted(zones))} to {place} and set availability_zone_id to it"


def _zone_path(environment: Environment, az_id: str) -> str:
    place = "existing.node_subnet_ids" if environment.network.is_existing else "availability_zones"
    return f"network.{place}.{az_id}"


def _ec2_name(environment: Environment, name: str) -> str:
    row = environment.instance_type(name)
    return name.removeprefix("ml.") if row is None else row.ec2_name


def _is_planned(environment: Environment, name: str) -> bool:
    row = environment.instance_type(name)
    return row is not None and row.training_plan_supported
