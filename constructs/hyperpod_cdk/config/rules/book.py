"""How a rule over the whole file is written and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from hyperpod_cdk.catalog.instance_groups import Placed, Rows
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.config.checkpointing import CheckpointAccount
from hyperpod_cdk.config.draft import certain, known
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.network import AvailabilityZone
from hyperpod_cdk.config.restricted_group import AnyGroup, RestrictedGroup
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.storage import Claim, Lustre, S3Volume
from hyperpod_cdk.config.task_governance import Team
from hyperpod_cdk.findings import Severity

Item = TypeVar("Item")
Member = TypeVar("Member", bound=AnyGroup)


@dataclass(frozen=True)
class Problem:
    """What a rule found: where, and the sentence that says it."""

    path: DataPath
    message: str
    severity: Severity = Severity.ERROR


def warning(path: DataPath, message: str) -> Problem:
    """Make a problem that does not refuse the file."""
    return Problem(path, message, Severity.WARNING)


Scope = Callable[[Environment], Iterator[tuple[DataPath, Item]]]


@dataclass(frozen=True)
class Rule:
    """A rule under its stable name. It may run on a draft, and then reports only what is certain."""

    name: str
    run: Callable[[Environment, date], Iterator[Problem]]


class Book:
    """The rules of one module, in the order of their definition."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def whole(self, function: Callable[[Environment], Iterator[Problem]]) -> Callable[[Environment], Iterator[Problem]]:
        """Register a rule that looks at the whole environment."""
        self.rules.append(Rule(function.__name__, lambda environment, _: certain(function(environment))))
        return function

    def dated(
        self, function: Callable[[Environment, date], Iterator[Problem]]
    ) -> Callable[[Environment, date], Iterator[Problem]]:
        """Register a rule whose result depends on the date."""
        self.rules.append(Rule(function.__name__, lambda environment, today: certain(function(environment, today))))
        return function

    def each(
        self, scope: Scope[Item]
    ) -> Callable[
        [Callable[[Environment, DataPath, Item], Iterator[Problem]]],
        Callable[[Environment, DataPath, Item], Iterator[Problem]],
    ]:
        """Register a rule about each item of ``scope`` in its environment; an unknown item does not stop the others."""

        def register(
            function: Callable[[Environment, DataPath, Item], Iterator[Problem]],
        ) -> Callable[[Environment, DataPath, Item], Iterator[Problem]]:
            def run(environment: Environment, _: date) -> Iterator[Problem]:
                for path, item in certain(scope(environment)):
                    yield from certain(function(environment, path, item))

            self.rules.append(Rule(function.__name__, run))
            return function

        return register

    def alone(
        self, scope: Scope[Item]
    ) -> Callable[[Callable[[DataPath, Item], Iterator[Problem]]], Callable[[DataPath, Item], Iterator[Problem]]]:
        """Register a rule about each item of ``scope`` alone."""

        def register(
            function: Callable[[DataPath, Item], Iterator[Problem]],
        ) -> Callable[[DataPath, Item], Iterator[Problem]]:
            def run(environment: Environment, _: date) -> Iterator[Problem]:
                for path, item in certain(scope(environment)):
                    yield from certain(function(path, item))

            self.rules.append(Rule(function.__name__, run))
            return function

        return register

    def about(self, scope: Scope[Member], name: str, rule: Callable[[Member, Rows], Iterator[Placed]]) -> None:
        """Register a rule of the catalog about each group of ``scope``, under its name in files."""

        def placed(environment: Environment, path: DataPath, group: Member) -> Iterator[Problem]:
            for at, problem in rule(group, lambda: known_types(environment, group)):
                yield Problem((*path, *at), problem)

        placed.__name__ = name
        self.each(scope)(placed)


def known_types(environment: Environment, group: AnyGroup) -> list[InstanceType]:
    """Return the numbers of the group's types, without unknown types, which another rule reports."""
    rows = (environment.instance_type(name) for name in group.all_instance_types)
    return [row for row in rows if row is not None]


def groups(environment: Environment) -> Iterator[tuple[DataPath, InstanceGroup]]:
    """Go through the instance groups."""
    yield from _listed(("hyperpod", "instance_groups"), environment.hyperpod.instance_groups)


def restricted_groups(environment: Environment) -> Iterator[tuple[DataPath, RestrictedGroup]]:
    """Go through the restricted instance groups."""
    yield from _listed(("hyperpod", "restricted_instance_groups"), environment.hyperpod.restricted_instance_groups)


def all_groups(environment: Environment) -> Iterator[tuple[DataPath, AnyGroup]]:
    """Go through the groups of both kinds."""
    yield from groups(environment)
    yield from restricted_groups(environment)


def checkpoint_accounts(environment: Environment) -> Iterator[tuple[DataPath, CheckpointAccount]]:
    """Go through the service accounts of tiered checkpointing; there are none without it."""
    section = environment.hyperpod.tiered_checkpointing
    if section is not None:
        yield from _listed(("hyperpod", "tiered_checkpointing", "service_accounts"), section.service_accounts)


def zones(environment: Environment) -> Iterator[tuple[DataPath, tuple[str, AvailabilityZone]]]:
    """Go through the availability zones of a network that is created, with their IDs."""
    for az_id, zone in known(environment.network.availability_zones):
        yield ("network", "availability_zones", az_id), (az_id, zone)


def node_subnets(environment: Environment) -> Iterator[tuple[DataPath, tuple[str, str]]]:
    """Go through the node subnets of an existing network: zone ID and subnet ID."""
    existing = environment.network.existing
    if existing is not None:
        for az_id, subnet_id in known(existing.node_subnet_ids):
            yield ("network", "existing", "node_subnet_ids", az_id), (az_id, subnet_id)


def zone_ids(environment: Environment) -> Iterator[tuple[DataPath, str]]:
    """Go through the IDs of the zones with node subnets, of either kind of network."""
    for scope in (zones, node_subnets):
        for path, (az_id, _) in scope(environment):
            yield path, az_id


def file_systems(environment: Environment) -> Iterator[tuple[DataPath, Lustre]]:
    """Go through the file systems."""
    yield from _listed(("storage", "lustre"), environment.storage.lustre)


def s3_volumes(environment: Environment) -> Iterator[tuple[DataPath, S3Volume]]:
    """Go through the mounted buckets."""
    yield from _listed(("storage", "s3"), environment.storage.s3)


def claims(environment: Environment) -> Iterator[tuple[DataPath, tuple[str, Claim]]]:
    """Go through the file systems and buckets with a claim, with the claim's name."""
    for path, system in file_systems(environment):
        if system.claim is not None:
            yield path, (system.resolved_claim_name, system.claim)
    for path, volume in s3_volumes(environment):
        yield path, (volume.resolved_claim_name, volume.claim)


def teams(environment: Environment) -> Iterator[tuple[DataPath, Team]]:
    """Go through the teams; there are none without task governance."""
    if environment.task_governance is not None:
        yield from _listed(("task_governance", "teams"), environment.task_governance.teams)


def _listed(path: DataPath, items: Sequence[Item]) -> Iterator[tuple[DataPath, Item]]:
    for index, item in enumerate(items):
        yield (*path, index), item
