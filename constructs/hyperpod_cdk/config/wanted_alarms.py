"""Which alarms CloudWatch has for an environment, by the names that follow the cluster's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.notify import FUNCTION_EVENTS

EVENTS = "events"
"""The alarm on HyperPod's reports about nodes, which exists without ``notify`` too."""


@dataclass(frozen=True, kw_only=True)
class Alarms:
    """The alarms of a cluster, by what each watches; ``function`` is that of the notifying function, or empty.

    ``nodes_missing`` are by instance group, ``quotas`` by instance type, with the prefix ``spot-`` for Spot,
    ``file_systems``, a pair for all of it and for one storage target of it, by name.
    """

    function: str = ""
    nodes_missing: Mapping[str, str] = field(default_factory=dict)
    quotas: Mapping[str, str] = field(default_factory=dict)
    file_systems: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def faults(self) -> frozenset[str]:
        """The alarms on failures: of nodes, of a file system, or of the notifying function."""
        pairs = [name for pair in self.file_systems.values() for name in pair]
        told = [self.function] if self.function else []
        return frozenset((EVENTS, *told, *self.nodes_missing.values(), *pairs))

    @property
    def advice(self) -> frozenset[str]:
        """The alarms on future problems: existing nodes also work if a quota is used up."""
        return frozenset(self.quotas.values())


def alarms(
    events: Collection[str],
    *,
    groups: Iterable[str] = (),
    instance_types: Iterable[str] = (),
    spot_instance_types: Iterable[str] = (),
    file_systems: Iterable[str] = (),
) -> Alarms:
    """Return the alarms that ``notify.events`` need; ``file_systems`` are those with a capacity to fill."""
    types = [*instance_types, *(f"spot-{name}" for name in spot_instance_types)]
    return Alarms(
        function="notifications" if FUNCTION_EVENTS.intersection(events) else "",
        nodes_missing={name: f"nodes-missing-{name}" for name in groups} if "nodes_missing" in events else {},
        quotas={name: f"quota-{name}" for name in types} if "quota_used" in events else {},
        file_systems={name: (f"file-system-{name}-full", f"file-system-{name}-target-full") for name in file_systems}
        if "file_system_full" in events
        else {},
    )


def alarms_of(environment: Environment) -> Alarms:
    """Return the alarms that an environment's file needs."""
    return alarms(
        environment.notify.events if environment.notify else (),
        groups=[group.name for group in environment.hyperpod.all_groups],
        instance_types=types_of(environment, is_spot=False),
        spot_instance_types=types_of(environment, is_spot=True),
        file_systems=file_systems_to_fill(environment),
    )


def types_of(environment: Environment, *, is_spot: bool) -> list[str]:
    """Return the instance types of the groups of one market, each once; Spot has quotas of its own."""
    groups = [each for each in environment.hyperpod.all_groups if (each.resolved_capacity == "spot") is is_spot]
    return list(dict.fromkeys(name for each in groups for name in each.all_instance_types))


def file_systems_to_fill(environment: Environment) -> list[str]:
    """Return the names of the file systems with a capacity to fill, which Intelligent-Tiering has not.

    For an existing file system the file does not show this; without a capacity, FSx and the alarm report nothing.
    """
    return [each.name for each in environment.storage.lustre if each.existing or each.storage_type == "ssd"]
