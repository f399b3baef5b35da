"""The cohort of cluster queues that task governance creates for an environment: what each team owns, lends, borrows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil

from hyperpod_cdk.catalog import governance, scheduling
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.config import Environment, Quota, Team
from hyperpod_cdk.workloads.nodes import EFA_RESOURCE, NEURON_RESOURCE, NVIDIA_RESOURCE, NodeShape, node_shape

Key = tuple[str, str]
"""An instance type and one of its resources."""

Amounts = Mapping[Key, Decimal]
"""A number of devices or vCPUs, or bytes of memory."""

InUse = Mapping[tuple[str, Key], Decimal]
"""The amounts that each team uses."""

ZERO = Decimal(0)
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class TeamQueue:
    """A team's cluster queue. ``borrows`` is the borrowing limit by key; without a key, nothing can be borrowed."""

    team: str
    nominal: Amounts
    borrows: Amounts
    lends: bool = True
    weight: int = 0
    preempts_own: bool = True
    is_active: bool = True

    @property
    def types(self) -> tuple[str, ...]:
        """The instance types in the order in which Kueue tries them."""
        return tuple(dict.fromkeys(name for name, _ in (*self.nominal, *self.borrows)))

    @property
    def resources(self) -> frozenset[str]:
        """The resources that the quota counts."""
        return frozenset(resource for _, resource in (*self.nominal, *self.borrows))

    def kept(self, key: Key) -> Decimal:
        """Return the part of the quota that is never lent."""
        return ZERO if self.lends else self.nominal.get(key, ZERO)


@dataclass(frozen=True, kw_only=True)
class ClusterModel:
    """The queues, priorities and nodes of an environment; ``unassigned`` is compute outside all quotas that is lent."""

    queues: tuple[TeamQueue, ...] = ()
    local_queues: Mapping[tuple[str, str], str] = field(default_factory=dict)
    default_queues: Mapping[str, str] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    is_governed: bool = True
    shares_fairly: bool = True
    unassigned: Amounts = field(default_factory=dict)
    nodes: tuple[tuple[NodeShape, int], ...] = ()

    @classmethod
    def of(cls, environment: Environment) -> ClusterModel:
        """Return the model of a valid environment."""
        groups = environment.hyperpod.instance_groups
        shapes = tuple(
            (shape, group.count) for group in groups if (shape := node_shape(environment, group)) is not None
        )
        section = environment.task_governance
        if section is None:
            return cls(is_governed=False, nodes=shapes)
        queues = tuple(_queue(environment, team) for team in section.teams)
        return cls(
            queues=queues,
            local_queues={
                (team.namespace, name): team.name
                for team in section.teams
                for name in (
                    governance.local_queue(team.name),
                    *([governance.DEFAULT_QUEUE] if team.default_queue else []),
                )
            },
            default_queues={team.namespace: governance.DEFAULT_QUEUE for team in section.teams if team.default_queue},
            priorities={
                governance.priority_class(each.name): each.weight for each in section.resolved_priority_classes
            },
            shares_fairly=section.idle_compute == "fair_share",
            unassigned=_unassigned(environment, queues) if section.idle_resource_sharing else {},
            nodes=shapes,
        )

    def queue(self, team: str) -> TeamQueue:
        """Return the queue of a team, which must have one."""
        return next(each for each in self.queues if each.team == team)

    def lendable(self, key: Key) -> Decimal:
        """Return what the cohort can lend to any team: lendable parts of all quotas, and compute outside quotas."""
        given = (queue.nominal.get(key, ZERO) - queue.kept(key) for queue in self.queues if queue.is_active)
        return sum(given, self.unassigned.get(key, ZERO))

    def capacity(self) -> dict[str, Decimal]:
        """Return the capacity of all nodes by resource, before anything is reserved for the system."""
        total: dict[str, Decimal] = {}
        for shape, count in self.nodes:
            for resource, value in of_node(shape).items():
                total[resource] = total.get(resource, ZERO) + count * value
        return total

    def available(self, queue: TeamQueue, key: Key, in_use: InUse) -> Decimal:
        """Return what the team can still use: of its quota that is never lent, and of the cohort up to its limit."""
        used, kept = in_use.get((queue.team, key), ZERO), queue.kept(key)
        from_cohort = sum(
            (
                max(ZERO, in_use.get((other.team, key), ZERO) - other.kept(key))
                for other in self.queues
                if other.is_active
            ),
            ZERO,
        )
        limit = queue.nominal.get(key, ZERO) - kept + queue.borrows.get(key, ZERO) - max(ZERO, used - kept)
        return max(ZERO, kept - used) + min(self.lendable(key) - from_cohort, limit)

    def fits(self, queue: TeamQueue, wanted: Amounts, in_use: InUse) -> bool:
        """Return whether a team can use all of ``wanted``."""
        return all(value <= self.available(queue, key, in_use) for key, value in wanted.items())

    def share(self, team: str, in_use: InUse) -> tuple[int, Decimal]:
        """Return the share of the lendable quota that a team borrows, by weight; infinite without a weight."""
        queue, borrowed, lendable = self.queue(team), dict[str, Decimal](), dict[str, Decimal]()
        for (name, key), used in in_use.items():
            over = used - queue.nominal.get(key, ZERO)
            if name == team and over > 0:
                borrowed[key[1]] = borrowed.get(key[1], ZERO) + over
        for key in {key for each in self.queues for key in each.nominal} | set(self.unassigned):
            lendable[key[1]] = lendable.get(key[1], ZERO) + self.lendable(key)
        ratio = max((over / lendable[name] for name, over in borrowed.items() if lendable.get(name)), default=ZERO)
        if queue.weight == 0 and ratio:
            return 1, ratio
        return 0, ratio / queue.weight if ratio else ZERO


def plus(one: Amounts, other: Amounts) -> dict[Key, Decimal]:
    """Return the sum of amounts."""
    return {key: one.get(key, ZERO) + other.get(key, ZERO) for key in {**one, **other}}


def with_more(in_use: InUse, team: str, wanted: Amounts, *, sign: int = 1) -> InUse:
    """Return the usage after one team uses more or, with ``sign`` -1, less."""
    changed = {(team, key): in_use.get((team, key), ZERO) + sign * value for key, value in wanted.items()}
    return {**in_use, **changed}


def is_borrowing(queue: TeamQueue, keys: Iterable[Key], in_use: InUse) -> bool:
    """Return whether a team uses more than it owns of one of ``keys``."""
    return any(in_use.get((queue.team, key), ZERO) > queue.nominal.get(key, ZERO) for key in keys)


def _queue(environment: Environment, team: Team) -> TeamQueue:
    nominal: dict[Key, Decimal] = {}
    for row in team.quota:
        nominal = plus(nominal, _amounts(environment, row))
    percent = team.sharing.resolved_borrow_limit_percent
    borrows: dict[Key, Decimal] = {}
    if percent is not None:
        borrows = {key: value * percent / 100 for key, value in nominal.items()}
        limits: dict[Key, Decimal] = {}
        for row in team.sharing.absolute_borrow_limits:
            limits = plus(limits, _amounts(environment, row))
        borrows.update(limits)
    return TeamQueue(
        team=team.name,
        nominal=nominal,
        borrows=borrows,
        lends=team.sharing.strategy != "dont_lend",
        weight=team.fair_share_weight,
        preempts_own=team.preemption == "lower_priority",
        is_active=team.active,
    )


def _amounts(environment: Environment, row: Quota) -> dict[Key, Decimal]:
    """Return the amounts of a row of a quota; like SageMaker, fill in missing values in proportion."""
    numbers = environment.instance_type(row.instance_type)
    shares = governance.instance_shares(row, numbers)
    if numbers is None or shares is None:
        return {}
    partition = row.accelerator_partition
    found = {
        "cpu": _exactly(shares["vcpu"] * numbers.vcpu),
        "memory": _exactly(shares["memory_gib"] * numbers.memory_gib) * GIB,
    }
    if partition is not None:
        found[f"nvidia.com/{partition.profile}"] = Decimal(partition.count)
    elif (device := _device(numbers)) is not None:
        found[device] = _exactly(shares["accelerators"] * numbers.accelerator_count)
    if numbers.efa_supported:
        # a part of an instance needs a whole interface
        share = shares["accelerators" if numbers.is_accelerated else "vcpu"]
        found[EFA_RESOURCE] = Decimal(ceil(_exactly(share * (numbers.efa_count or 1))))
    return {(row.instance_type, resource): value for resource, value in found.items()}


def _device(numbers: InstanceType) -> str | None:
    if numbers.is_nvidia:
        return NVIDIA_RESOURCE
    return scheduling.name_in_quotas(NEURON_RESOURCE) if numbers.is_neuron else None


def _exactly(number: float) -> Decimal:
    """Shares of instances are fractions, whose products have rounding errors."""
    return round(Decimal(number), 6)


def _unassigned(environment: Environment, queues: Sequence[TeamQueue]) -> dict[Key, Decimal]:
    """Return the compute of nodes outside all quotas; infinite if Karpenter adds the nodes."""
    total: dict[Key, Decimal] = {}
    for group in environment.hyperpod.instance_groups:
        shape = node_shape(environment, group)
        nodes = Decimal("Infinity") if environment.hyperpod.is_autoscaled(group) else Decimal(group.count)
        if shape is None or not nodes:
            continue
        for row in shape.rows:
            has = {**of_node(shape), "cpu": Decimal(row.vcpu), "memory": _exactly(row.memory_gib) * GIB}
            total = plus(total, {(row.name, name): nodes * value for name, value in has.items()})
    left = {key: value - sum(queue.nominal.get(key, ZERO) for queue in queues) for key, value in total.items()}
    return {key: value for key, value in left.items() if value > 0}


def of_node(shape: NodeShape) -> dict[str, Decimal]:
    """Return the capacity of one node by Kubernetes resource name, before anything is reserved for the system."""
    found = {"cpu": Decimal(shape.vcpu), "memory": _exactly(shape.memory_gib) * GIB}
    if shape.accelerator_resource is not None:
        found[scheduling.name_in_quotas(shape.accelerator_resource)] = Decimal(shape.accelerator_count)
    if shape.efa_count:
        found[EFA_RESOURCE] = Decimal(shape.efa_count)
    return found
