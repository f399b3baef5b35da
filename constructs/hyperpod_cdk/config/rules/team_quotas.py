"""Rules about the guaranteed compute of teams: amounts, instance types, and whether the cluster has enough."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import floor

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import listing, repeated
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules.book import Book, Problem, teams, warning
from hyperpod_cdk.config.rules.instance_groups import unknown_type
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.config.task_governance import Quota, Team

BOOK = Book()

_SECTION = "task_governance"
_LIMITS = ("sharing", "absolute_borrow_limits")
_WORDS = {"accelerators": "accelerators", "vcpu": "vCPUs", "memory_gib": "GiB of memory"}
_SLACK = 1e-9
"""Tolerance for sums of fractions of instances, which floating point adds inexactly."""
_MOST_TYPES_IN_SUBSETS = 10


@dataclass
class _Promised:
    """What is guaranteed of one type so far, in instances: by resource, and whether only whole instances."""

    shares: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_WORDS, 0.0))
    whole_only: bool = True

    def plus(self, shares: Mapping[str, float], *, whole: bool) -> _Promised:
        """The sum with one more row."""
        return _Promised(
            {name: amount + shares[name] for name, amount in self.shares.items()}, self.whole_only and whole
        )


@BOOK.alone(teams)
def quota_amounts_go_together(path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse rows without an amount, and whole instances together with parts of them."""
    for at, row in _rows(path, team):
        problem = governance.amounts_problem(row.amounts)
        if problem:
            yield Problem(at, problem)


@BOOK.alone(teams)
def quota_rows_are_distinct(path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse two rows for one instance type, or for one profile of a type."""
    for where, rows in ((("quota",), team.quota), (_LIMITS, team.sharing.absolute_borrow_limits)):
        for index, first, (name, profile) in repeated([row.key for row in rows]):
            what = name if profile is None else f"{name} with {profile}"
            yield Problem(
                (*path, *where, index, "instance_type"),
                governance.same_row_problem(what, f"{where[-1]}[{first}]"),
            )


@BOOK.each(teams)
def quotas_are_of_types_in_the_cluster(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse quotas of types that no instance group has."""
    present = {name for group in environment.hyperpod.instance_groups for name in group.all_instance_types}
    if not environment.hyperpod.all_groups:
        return  # a missing group is reported there
    if any(environment.instance_type(name) is None for name in present):
        return  # a misspelt type of a group is reported there; which type was meant is uncertain
    for at, row in _rows(path, team):
        if row.instance_type in present:
            continue
        if environment.instance_type(row.instance_type) is None:
            yield from unknown_type(environment, (*at, "instance_type"), row.instance_type)
            continue
        near = closest(row.instance_type, sorted(present))
        fix = f"set instance_type: {near}" if near else "add an instance group of it"
        listed = ", ".join(sorted(present)) or "there are only restricted ones"
        yield Problem(
            (*at, "instance_type"),
            f"must be a type of an instance group ({listed}), got {row.instance_type}; {fix}",
        )


@BOOK.each(teams)
def accelerators_are_of_types_that_have_them(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse accelerators of types without any, and MIG profiles that a type's GPUs do not support."""
    for at, row in _rows(path, team):
        numbers = environment.instance_type(row.instance_type)
        if numbers is None:
            continue
        # a type whose numbers are in the file has no profiles
        stated = row.instance_type in environment.instance_types
        partition = row.accelerator_partition
        for keys, problem in governance.accelerator_problems(
            numbers,
            accelerators=row.accelerators,
            profile=None if partition is None or stated else partition.profile,
        ):
            yield Problem((*at, *keys), problem)


@BOOK.each(teams)
def partitions_are_made_on_some_nodes(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Warn of partitions that no group's label requests."""
    for at, row in _rows(path, team):
        partition, numbers = row.accelerator_partition, environment.instance_type(row.instance_type)
        if partition is None or numbers is None or partition.profile not in numbers.mig_profiles:
            continue
        layouts = [
            group.labels.get(governance.PARTITION_LABEL)
            for group in environment.hyperpod.instance_groups
            if row.instance_type in group.all_instance_types
        ]
        asked = [layout for layout in layouts if layout is not None]
        wanted = f"all-{partition.profile.removeprefix('mig-')}"
        # a layout of one profile is named after it; others (all-balanced, custom ones) may have any
        if layouts and not any(layout == wanted or "g." not in layout for layout in asked):
            got = f"got {listing(asked, last='and')}" if asked else "got no group with that label"
            yield warning(
                (*at, "accelerator_partition", "profile"),
                f"needs a group of {row.instance_type} whose label {governance.PARTITION_LABEL} creates"
                f" {partition.profile}, {got}; add {governance.PARTITION_LABEL}: {wanted} to the labels of one",
            )


@BOOK.whole
def quotas_are_within_capacity(environment: Environment) -> Iterator[Problem]:
    """Refuse guarantees that the cluster cannot meet: all quotas of a type against all nodes that may have it."""
    capacity = _capacity(environment)
    unlimited = _autoscaled_types(environment)
    promised: dict[str, _Promised] = defaultdict(_Promised)
    exceeded: set[str] = set()
    for path, team in teams(environment):
        for index, row in enumerate(team.quota):
            name = row.instance_type
            shares = governance.instance_shares(row, environment.instance_type(name))
            if name not in capacity or name in unlimited or shares is None:
                continue
            before = promised[name]
            after = promised[name] = before.plus(shares, whole=row.count is not None)
            over = [each for each in _WORDS if after.shares[each] > capacity[name] + _SLACK]
            if over and name not in exceeded:
                exceeded.add(name)
                at = (*path, "quota", index)
                yield _over_capacity(environment, at, row, over[0], before, after, capacity[name])
    if not exceeded:
        yield from _over_flexible_capacity(environment, promised, unlimited)


@BOOK.whole
def autoscaled_quotas_have_no_bound(environment: Environment) -> Iterator[Problem]:
    """Warn if the sum of guarantees cannot be compared, because Karpenter decides how many nodes there are."""
    unlimited = _autoscaled_types(environment)
    names = sorted({row.instance_type for _, team in teams(environment) for row in team.quota} & unlimited)
    if names:
        yield warning(
            (_SECTION, "teams"),
            f"whether the quotas of {listing(names, last='and')} can be met is unknown, because Karpenter adds those"
            " nodes as pods need them; check that the account's quotas and the available capacity cover them",
        )


@BOOK.alone(teams)
def borrow_limit_goes_with_borrowing(path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse borrow limits where the team does not borrow."""
    sharing = team.sharing
    if sharing.strategy == "lend_and_borrow":
        return
    stated = {
        "borrow_limit_percent": sharing.borrow_limit_percent is not None,
        "absolute_borrow_limits": bool(sharing.absolute_borrow_limits),
    }
    for name in (name for name, is_stated in stated.items() if is_stated):
        yield Problem((*path, "sharing", name), governance.borrowing_problem(sharing.strategy, key=name))


def _rows(path: DataPath, team: Team) -> Iterator[tuple[DataPath, Quota]]:
    for index, row in enumerate(team.quota):
        yield (*path, "quota", index), row
    for index, row in enumerate(team.sharing.absolute_borrow_limits):
        yield (*path, *_LIMITS, index), row


def _capacity(environment: Environment) -> Counter[str]:
    capacity: Counter[str] = Counter()
    for group in environment.hyperpod.instance_groups:
        for name in group.all_instance_types:
            capacity[name] += group.count
    return capacity


def _autoscaled_types(environment: Environment) -> set[str]:
    return {name for group in environment.hyperpod.autoscaled_groups for name in group.all_instance_types}


def _over_capacity(  # noqa: PLR0917 - all of it is in one sentence
    environment: Environment,
    at: DataPath,
    row: Quota,
    resource: str,
    before: _Promised,
    after: _Promised,
    nodes: int,
) -> Problem:
    """Report a guarantee that exceeds the cluster, in the unit of the row that adds it."""
    name = row.instance_type
    numbers = environment.instance_type(name)
    per_node = _per_node(resource, numbers) if numbers is not None and not after.whole_only else 1.0
    what = f"{nodes} {name}" if after.whole_only else f"{_WORDS[resource]} of the {nodes} {name}"
    most = "" if after.whole_only else f"{nodes * per_node:g} "
    key, unit = _amount(row, resource, numbers)
    left = floor((nodes - before.shares[resource]) * unit + _SLACK)
    fix = f"set {key}: {left} or less" if left >= 1 else "lower the quotas of other teams first, or add nodes"
    if not nodes:
        fix = f"raise the count of a group of {name}"
    return Problem(
        (*at, *key.split(".")),
        f"teams must share at most the {most}{what} of the instance groups, got"
        f" {round(after.shares[resource] * per_node, 2):g} with this team; {fix}",
    )


def _per_node(resource: str, numbers: InstanceType) -> float:
    return float({"accelerators": numbers.accelerator_count, "vcpu": numbers.vcpu}.get(resource, numbers.memory_gib))


def _amount(row: Quota, resource: str, numbers: InstanceType | None) -> tuple[str, float]:
    """The amount of a row that decides how much of ``resource`` it takes, and how much of it one instance has."""
    if row.count is not None or numbers is None:
        return "count", 1.0
    if row.accelerator_partition is not None and (resource == "accelerators" or getattr(row, resource) is None):
        per_gpu = governance.partitions_per_accelerator(row.accelerator_partition.profile, numbers.mig_profiles)
        return "accelerator_partition.count", float(per_gpu * numbers.accelerator_count)
    decisive = (
        resource if getattr(row, resource) is not None else next(n for n in _WORDS if getattr(row, n) is not None)
    )
    return decisive, _per_node(decisive, numbers)


def _over_flexible_capacity(
    environment: Environment, promised: Mapping[str, _Promised], unlimited: set[str]
) -> Iterator[Problem]:
    """A flexible group's node has one of its types: quotas that fit type by type may not fit together."""
    groups = [group for group in environment.hyperpod.instance_groups if group.instance_types]
    shared = {name for group in groups for name in group.all_instance_types} - unlimited
    wanted = {name: max(found.shares.values()) for name, found in promised.items() if name in shared}
    names = sorted(name for name, nodes in wanted.items() if nodes > 0)
    sizes = range(2, len(names) + 1) if len(names) <= _MOST_TYPES_IN_SUBSETS else (len(names),)
    for chosen in (subset for size in sizes for subset in combinations(names, size)):
        nodes = sum(
            group.count for group in environment.hyperpod.instance_groups if set(group.all_instance_types) & set(chosen)
        )
        total = sum(wanted[name] for name in chosen)
        if total > nodes + _SLACK:
            yield Problem(
                (_SECTION, "teams"),
                f"must share at most the {nodes} {plural(nodes, 'node')} that can be {listing(chosen)}, got"
                f" {round(total, 2):g} of {listing(chosen, last='and')} together: a node of a flexible group is of one"
                " type; lower the quotas, or add nodes",
            )
            return
