"""Rules about the cluster as a whole: nodes for add-ons, autoscaling and Karpenter's pools."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog import instance_groups as rules
from hyperpod_cdk.catalog.rules import repeated, same_name_problem
from hyperpod_cdk.config.awaited_nodes import addon_groups, comes_soon
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.hyperpod import KarpenterPool
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.rules.book import Book, Problem, warning
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.suggest import closest

BOOK = Book()

_AT = ("hyperpod", "autoscaling")
_POOLS = ("hyperpod", "karpenter_pools")
_OFF = "autoscaling: none"


def _pools(environment: Environment) -> Iterator[tuple[DataPath, KarpenterPool]]:
    if environment.hyperpod.autoscaling == "karpenter":
        for index, pool in enumerate(environment.hyperpod.karpenter_pools):
            yield (*_POOLS, index), pool


def _autoscaled(environment: Environment) -> Iterator[tuple[DataPath, InstanceGroup]]:
    if environment.hyperpod.autoscaling == "karpenter":
        for index, group in enumerate(environment.hyperpod.instance_groups):
            if group.count == 0:
                yield ("hyperpod", "instance_groups", index), group


@BOOK.whole
def addons_find_a_node(environment: Environment) -> Iterator[Problem]:
    """Warn if no node can run add-ons, or if the first one joins later than a deployment can wait."""
    at = ("hyperpod", "instance_groups")
    groups = addon_groups(environment)
    small = "a small group such as two ml.m5.2xlarge named system"
    # restricted groups alone, and Karpenter's alone, have rules of their own
    if not environment.hyperpod.instance_groups or environment.hyperpod.autoscaling == "karpenter":
        return
    if not groups:
        yield warning(
            at,
            "no group has nodes that can run add-ons (a count above 0, no taint with NoSchedule or NoExecute), so the"
            " deployment waits for no node and leaves add-ons degraded, and a first deployment fails at operators with"
            f" certificates and at task governance; add {small}",
        )
    elif all(group.deep_health_checks and not comes_soon(environment, group) for group in groups):
        yield warning(
            at,
            "every group that can run add-ons has deep health checks of about two hours, and a deployment waits for a"
            f" node {hyperpod.NODE_WAIT_LONGEST_MINUTES} minutes at most: the first deployment fails at the add-ons and"
            f" succeeds when you repeat it after nodes run; add {small}",
        )


@BOOK.whole
def autoscaling_has_its_cluster(environment: Environment) -> Iterator[Problem]:
    """Refuse Karpenter without continuous provisioning or without automatic node recovery."""
    section = environment.hyperpod
    if section.autoscaling != "karpenter":
        return
    for problem in rules.autoscaled_cluster_problems(
        node_recovery=section.node_recovery, provisioning=section.provisioning, of="hyperpod.", way_out=_OFF
    ):
        yield Problem(_AT, problem)


@BOOK.whole
def autoscaling_has_its_groups(environment: Environment) -> Iterator[Problem]:
    """Refuse Karpenter without a group to scale, and without a node for the add-ons to start on."""
    section = environment.hyperpod
    if section.autoscaling != "karpenter" or not section.instance_groups:
        return
    counts = [group.count for group in section.instance_groups]
    if problem := rules.autoscaled_counts_problem(counts, way_out=_OFF):
        yield Problem(_AT, problem)


@BOOK.each(_autoscaled)
def autoscaled_groups_can_scale(environment: Environment, path: DataPath, group: InstanceGroup) -> Iterator[Problem]:
    """Refuse groups for which HyperPod's Karpenter cannot create nodes."""
    rows = (row for name in group.all_instance_types if (row := environment.instance_type(name)) is not None)
    for at, problem in rules.autoscaling_problems(group, lambda: rows):
        yield Problem((*path, *at), problem)


@BOOK.whole
def pools_go_with_autoscaling(environment: Environment) -> Iterator[Problem]:
    """Refuse pools without Karpenter, pools of both kinds, and a default pool with too many groups."""
    section = environment.hyperpod
    if section.karpenter_pools and section.autoscaling != "karpenter":
        yield Problem(
            _POOLS,
            f"needs autoscaling: karpenter, got autoscaling: {section.autoscaling}; set autoscaling: karpenter,"
            " or remove karpenter_pools",
        )
    count, most = len(section.autoscaled_groups), hyperpod.KARPENTER_POOL_GROUPS.maximum or 0
    at = ("hyperpod", "existing_karpenter_pools")
    if section.existing_karpenter_pools and section.autoscaling != "karpenter":
        yield Problem(
            at,
            f"needs autoscaling: karpenter, got autoscaling: {section.autoscaling}; set autoscaling: karpenter,"
            " or remove existing_karpenter_pools",
        )
    if section.existing_karpenter_pools and section.karpenter_pools:
        yield Problem(
            at,
            "cannot be set together with karpenter_pools, which are created; remove karpenter_pools, or remove"
            " existing_karpenter_pools",
        )
    if not section.karpenter_pools and not section.existing_karpenter_pools and count > most:
        yield Problem(
            _AT,
            f"needs karpenter_pools for more than {most} groups with count: 0, which one pool cannot hold, got {count};"
            f" divide them among pools of at most {most}",
        )


@BOOK.whole
def pool_names_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two pools with the same name."""
    for index, first, name in repeated([pool.name for pool in environment.hyperpod.karpenter_pools]):
        yield Problem(
            (*_POOLS, index, "name"),
            same_name_problem(name, f"karpenter_pools[{first}]"),
        )


@BOOK.each(_pools)
def pools_name_autoscaled_groups(environment: Environment, path: DataPath, pool: KarpenterPool) -> Iterator[Problem]:
    """Refuse groups that do not exist or that are not Karpenter's."""
    counts = {group.name: group.count for group in environment.hyperpod.instance_groups}
    for index, name in enumerate(pool.instance_groups):
        at = (*path, "instance_groups", index)
        if name not in counts:
            able = [each for each, count in counts.items() if count == 0]
            near = closest(name, able)
            some = f"name one of {', '.join(able)}" if able else "set count: 0 in a group and name that"
            fix = f"did you mean {near}?" if near else some
            yield Problem(at, f'must be an instance group of this file, got "{name}"; {fix}')
        elif counts[name] > 0:
            yield Problem(
                at,
                f"must be a group with count: 0, got {name} with count: {counts[name]}, whose nodes Karpenter would"
                " remove; set its count: 0, or remove it from the pool",
            )


@BOOK.whole
def each_autoscaled_group_has_one_pool(environment: Environment) -> Iterator[Problem]:
    """Refuse a group in two pools, and a group with count: 0 in none, which would never get a node."""
    section = environment.hyperpod
    if section.autoscaling != "karpenter" or not section.karpenter_pools:
        return
    home: dict[str, str] = {}
    for place, pool in enumerate(section.karpenter_pools):
        for index, name in enumerate(pool.instance_groups):
            if name in home:
                yield Problem(
                    (*_POOLS, place, "instance_groups", index),
                    hyperpod.two_pools_problem(name, home[name]),
                )
            home.setdefault(name, pool.name)
    for path, group in _autoscaled(environment):
        if group.name not in home:
            yield Problem(
                (*path, "count"),
                f"must be above 0, or {group.name} in a pool of karpenter_pools: nothing else adds nodes to it; add it"
                " to"
                f" pool {section.karpenter_pools[0].name}, or set its count",
            )


@BOOK.whole
def pools_have_like_taints(environment: Environment) -> Iterator[Problem]:
    """Refuse a pool of groups with different taints: Karpenter would add nodes on which the pods cannot run."""
    section = environment.hyperpod
    taints = {
        group.name: sorted((t.key, t.value or "", t.effect) for t in group.taints) for group in section.instance_groups
    }
    for place, pool in enumerate(section.resolved_karpenter_pools):
        first, *others = [name for name in pool.instance_groups if name in taints] or [""]
        for name in others:
            if taints[name] != taints[first]:
                at = (*_POOLS, place, "instance_groups") if section.karpenter_pools else _AT
                yield Problem(
                    at,
                    f"{hyperpod.unlike_taints_problem(first, name, pool=pool.name)} of karpenter_pools",
                )
                break


@BOOK.each(_pools)
def spot_nodes_leave_in_order(environment: Environment, path: DataPath, pool: KarpenterPool) -> Iterator[Problem]:
    """Warn of a pool with Spot nodes that are removed immediately."""
    spot = {group.name for group in environment.hyperpod.instance_groups if group.capacity == "spot"}
    if pool.consolidate_after_seconds == 0 and spot.intersection(pool.instance_groups):
        yield warning(
            (*path, "consolidate_after_seconds"),
            "pods on Spot nodes have no time to write a checkpoint when a node is removed immediately; set"
            f" consolidate_after_seconds: {hyperpod.KARPENTER_DEFAULT_CONSOLIDATE_AFTER_SECONDS}",
        )
