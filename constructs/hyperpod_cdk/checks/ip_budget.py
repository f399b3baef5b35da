"""Whether the subnets have the addresses that nodes, their replacements, file systems and EKS use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import cast

from hyperpod_cdk.catalog import instance_types, lustre
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks import address_map
from hyperpod_cdk.checks.answers import Aws, HyperPodClusterAnswer, LustreAnswer, NotAnswered, Partial, SubnetAnswer
from hyperpod_cdk.checks.model import LOOKED, Case, Detail, Found, Skipped, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.addresses import (
    AddressBudget,
    address_budgets,
    estimate_note,
    lower_count,
    parts,
    shortage,
)

_STACK_TAG = "aws:cloudformation:stack-name"


@check(
    area="ip-budget",
    inputs="Blocks under network, counts and types of the instance groups, file systems, hyperpod.node_recovery.",
    passes="Every node block has room for its nodes with the addresses of pods and EFA interfaces (81 for"
    " ml.p5.48xlarge), one"
    " spare node for each group with automatic recovery, and the servers of its file systems; AWS reserves five"
    " addresses"
    " of each subnet. Software updates add no node: they replace root volumes. The VPC block leaves each control-plane"
    " subnet the 16 addresses that EKS recommends. Load balancers that you create later are not counted.",
    fails="A node block is too small, and AWS cannot resize a subnet. The message names the smallest block that fits"
    " and"
    " the highest count that fits the present one. A warning if the shortage depends on estimates, or if"
    " EKS has the 6 addresses it needs but not the 16 it recommends.",
    skips="The number of addresses per node of an instance type is unknown.",
    by_hand="hyperpod-cdk preflight prod --offline --only ip-budget",
)
def new_subnets_hold_their_addresses(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nobody
    """Compare each block of the environment with the addresses that it will need."""
    environment = case.environment
    if environment.network.is_existing:
        return
    budgets = address_budgets(environment)
    for budget in budgets:
        yield LOOKED
        yield from _unknown(budget)
        if budget.role == "nodes" and budget.needed > budget.usable:
            documented = budget.needed - budget.estimated()
            found = error if documented > budget.usable else warning
            yield found(budget.path, shortage(environment, budget))
    yield from _tight_control_plane(environment, budgets)
    drawn = [address_map.Subnet(budget=budget, cidr=budget.cidr) for budget in budgets]
    yield Detail(
        text=address_map.draw(drawn, vpc_cidr=environment.network.vpc_cidr),
        data={"vpc_cidr": environment.network.vpc_cidr, **address_map.data(drawn)},
    )


@check(
    area="ip-budget",
    asks=("subnets", "hyperpod_clusters", "eks_cluster", "lustre_file_systems"),
    may_lack=("eks_cluster",),
    inputs="Subnets of network.existing, counts and types of the instance groups, file systems, names of the clusters.",
    passes="Every existing subnet has as many free addresses as nodes, one spare node for each group, file systems, EKS"
    " and the function that runs kubectl will use, without those that this environment uses already. Another check"
    " reports subnets that do not exist.",
    fails="A subnet has too few free addresses. A warning if only the spare nodes have none, if the shortage"
    " depends on estimates, if nodes of this environment that leave may free some, or if EKS has the 6 addresses it"
    " needs but not the 16 it recommends.",
    skips="AWS gives no answer about the subnets, or about what this environment uses in one that is too small;"
    " the number of addresses per node of an instance type is unknown.",
    by_hand="aws ec2 describe-subnets --subnet-ids subnet-0a1b2c3d4e5f67890"
    " --query 'Subnets[].[SubnetId,CidrBlock,AvailableIpAddressCount]'",
)
def existing_subnets_have_enough_free_addresses(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare the free addresses of existing subnets with what the environment still needs."""
    environment = case.environment
    if not environment.network.is_existing:
        return
    budgets = address_budgets(environment)
    ids = [budget.subnet_id for budget in budgets]
    questions: list[Callable[[], object]] = [lambda: aws.subnets(ids), lambda: _own(environment, aws)]
    answers = together(lambda ask: ask(), questions)
    subnets = cast("Mapping[str, SubnetAnswer] | NotAnswered", answers[0])
    own = cast("_Own", answers[1])
    if isinstance(subnets, NotAnswered):
        raise subnets
    drawn = []
    for budget in budgets:
        yield from _unknown(budget)
        try:
            subnet = subnets.get(budget.subnet_id)
        except NotAnswered as missing:
            yield unanswered(missing, budget.path, about=budget.subnet_id)
            continue
        if subnet is None:
            continue
        left = _left(environment, budget, own)
        yield from _compared(budget, left, subnet, own, leaving=_leaving(environment, own))
        in_use = catalog.usable_addresses(subnet.cidr) - subnet.free
        zone = subnet.availability_zone_id
        drawn.append(address_map.Subnet(budget=left, cidr=subnet.cidr, in_use=max(0, in_use), zone=zone))
    if drawn:
        yield Detail(text=address_map.draw(drawn), data=address_map.data(drawn))


@dataclass(frozen=True, kw_only=True)
class _Own:
    """What of this environment exists already. ``missing`` is the first answer that AWS did not give."""

    cluster: HyperPodClusterAnswer | None = None
    eks: bool = False
    file_systems: tuple[LustreAnswer, ...] = ()
    missing: NotAnswered | None = None


def _own(environment: Environment, aws: Aws) -> _Own:
    questions: list[Callable[[], object]] = [
        lambda: aws.hyperpod_clusters().named(environment.hyperpod_cluster_name),
        lambda: aws.eks_cluster(environment.eks_cluster_name),
        aws.lustre_file_systems,
    ]
    cluster, eks, answer = together(lambda ask: ask(), questions)
    systems = cast("Partial[LustreAnswer] | NotAnswered", answer)
    unread = systems if isinstance(systems, NotAnswered) else systems.broken_off
    # what was read reduces what is still needed, even if something else was not read
    return _Own(
        cluster=None if isinstance(cluster, NotAnswered) else cast("HyperPodClusterAnswer | None", cluster),
        eks=not isinstance(eks, NotAnswered) and eks is not None,
        file_systems=()
        if isinstance(systems, NotAnswered)
        else tuple(each for each in systems.read if each.tags.get(_STACK_TAG) == f"{environment.name}-storage"),
        missing=next((each for each in (cluster, eks, unread) if isinstance(each, NotAnswered)), None),
    )


def _left(environment: Environment, budget: AddressBudget, own: _Own) -> AddressBudget:
    """Return the budget without what this environment uses in the subnet already."""
    current = {each.group: each.current for each in own.cluster.groups} if own.cluster else {}
    servers = sum(
        lustre.ip_addresses(
            each.capacity_gib,
            metadata_iops=each.provisioned_metadata_iops,
            throughput_capacity_mbps=each.throughput_capacity_mbps,
            efa_throughput_mbps_per_tib=each.throughput_mbps_per_tib if each.efa else None,
        )
        for each in own.file_systems
        if budget.subnet_id in each.subnet_ids
    )
    stands = own.eks and not environment.eks.is_existing
    needs = []
    for need in budget.needs:
        count = need.count
        if need.kind == "nodes":
            count -= min(count, current.get(need.name, 0))
        elif need.kind == "file system":
            count -= min(count, servers)
            servers -= need.count - count
        elif (need.kind == "EKS" and stands) or (need.kind == "kubectl" and (stands or own.cluster is not None)):
            count = 0
        needs.append(replace(need, count=count))
    return replace(budget, needs=tuple(need for need in needs if need.count))


def _leaving(environment: Environment, own: _Own) -> tuple[str, ...]:
    """Return the groups of the existing cluster that have more nodes than the file says, or are not in it."""
    counts = {group.name: group.count for group in environment.hyperpod.all_groups}
    groups = own.cluster.groups if own.cluster else ()
    return tuple(each.group for each in groups if each.current > counts.get(each.group, 0))


def _compared(
    budget: AddressBudget, left: AddressBudget, subnet: SubnetAnswer, own: _Own, *, leaving: tuple[str, ...]
) -> Iterator[Found]:
    if left.needed > subnet.free:
        if own.missing is not None:
            # the missing addresses may be used by this environment itself
            yield unanswered(own.missing, budget.path)
            return
        # the environment works without room for replacing nodes, and nodes that leave free addresses that are not
        # counted
        is_certain = left.running - left.estimated(running=True) > subnet.free and not leaving
        yield (error if is_certain else warning)(budget.path, _too_few(budget, left, subnet, leaving))
    elif any(need.kind == "EKS" for need in left.needs) and subnet.free - left.needed < budget.advised:
        best = left.needed + budget.advised
        yield warning(
            budget.path,
            f"{subnet.subnet_id} has {subnet.free} free addresses; {best} are better ({_parts(left)}), because EKS"
            f" recommends {catalog.EKS_ADDRESSES_RECOMMENDED} for itself; use a subnet with {best} free addresses",
        )


def _too_few(budget: AddressBudget, left: AddressBudget, subnet: SubnetAnswer, leaving: tuple[str, ...]) -> str:
    try:
        prefix = catalog.smallest_prefix_for(left.needed)
        fix = f"use a subnet with {left.needed} free addresses (an empty /{prefix})"
    except ValueError:
        fix = f"spread the groups over more availability zones (a /{catalog.SHORTEST_PREFIX} is the largest subnet)"
    taken = budget.needed - left.needed
    lower = lower_count(budget, subnet.free + taken)
    must = "must" if left.running > subnet.free else "should"
    unless = f", unless nodes of {joined(leaving)} leave first" if leaving else ""
    return (
        f"{must} have {left.needed} free addresses ({_parts(left)}), got {subnet.free} in {subnet.subnet_id}"
        f" ({subnet.cidr}); {fix}{f', or {lower}' if lower else ''}{unless}{estimate_note(left)}"
    )


def _parts(left: AddressBudget) -> str:
    """List what is still needed; a spare node also if all others of its group exist already."""
    coming = {need.path for need in left.needs if need.kind == "nodes"}
    spares = [need for need in left.needs if need.kind == "spare" and need.path not in coming]
    alone = [f"{need.name}: {need.count} spare of {need.instance_type}, {need.each} each" for need in spares]
    return "; ".join([*([said] if (said := parts(left)) else []), *alone])


def _unknown(budget: AddressBudget) -> Iterator[Skipped]:
    for group in budget.unknown:
        yield Skipped(
            reason=(
                f"the number of IP addresses per node of {group.instance_type} is unknown (catalog of"
                f" {instance_types.as_of()}); set ips_per_node under instance_types"
            ),
            path=group.path,
        )


def _tight_control_plane(environment: Environment, budgets: tuple[AddressBudget, ...]) -> Iterator[Found]:
    tight = [each for each in budgets if each.role == "control plane" and each.usable - each.needed < each.advised]
    if not tight:
        return
    first = tight[0]
    best = first.needed + first.advised
    endpoints = sum(need.total for need in first.needs if need.kind == "endpoint")
    yield warning(
        "network.vpc_cidr",
        f"{environment.network.vpc_cidr} leaves each control-plane subnet {first.usable} addresses ({first.cidr});"
        f" {best} are better, because EKS recommends {catalog.EKS_ADDRESSES_RECOMMENDED} for itself and the function"
        " that"
        f" runs kubectl uses {catalog.KUBECTL_ADDRESSES}"
        f"{f', the interface endpoints {endpoints}' if endpoints else ''}; {_wider_vpc(environment, best)}",
    )


def _wider_vpc(environment: Environment, addresses: int) -> str:
    """Say which VPC block gives its control-plane subnets that many addresses."""
    block = IPv4Network(environment.network.vpc_cidr)
    prefix = next(
        length
        for length in range(block.prefixlen, 0, -1)
        if catalog.usable_addresses(catalog.slots(str(block.supernet(new_prefix=length)))[0]) >= addresses
    )
    wider = block.supernet(new_prefix=prefix)
    nodes = environment.network.node_cidrs().values()
    if any(wider.overlaps(IPv4Network(each)) for each in nodes):
        return f"set vpc_cidr to a free /{prefix}"
    return f"set vpc_cidr: {wider}"
