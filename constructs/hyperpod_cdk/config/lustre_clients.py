"""Which instance groups use a file system, and what their nodes must be prepared for."""

from __future__ import annotations

from hyperpod_cdk.catalog import lustre as catalog
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.storage import Lustre


def users(environment: Environment, system: Lustre) -> list[InstanceGroup]:
    """Return the groups that use ``system``, as far as the file shows.

    Groups whose types are in the quotas of teams whose namespaces have the claim; without such teams, groups with
    accelerators, or all groups if there are none.
    """
    groups = list(environment.hyperpod.instance_groups)
    governance = environment.task_governance
    namespaces = system.claim.namespaces if system.claim else ()
    teams = [team for team in governance.teams if team.namespace in namespaces] if governance else []
    if teams and len(teams) == len(namespaces):
        types = {row.instance_type for team in teams for row in team.quota}
        return [group for group in groups if types.intersection(group.all_instance_types)]
    accelerated = [group for group in groups if is_accelerated(environment, group)]
    return accelerated or groups


def far_users(environment: Environment, system: Lustre) -> list[InstanceGroup]:
    """Return the groups with nodes that use ``system`` from another zone and have no other one in their zone.

    None if no group at all is in its zone, which is another finding.
    """
    zones = {group.availability_zone_id for group in environment.hyperpod.instance_groups}
    if system.availability_zone_id not in zones:
        return []
    served = _served(environment, system)
    return [group for group in users(environment, system) if group.count and group.availability_zone_id not in served]


def far_over_efa(environment: Environment, system: Lustre) -> list[InstanceGroup]:
    """Return those of ``far_users`` that would reach ``system`` over EFA, which does not cross zones."""
    return [group for group in far_users(environment, system) if system.efa and _has_efa_client(environment, group)]


def placed(groups: list[InstanceGroup]) -> str:
    """Write groups with their zones: ``h100 in use1-az5 and a10g in use1-az4``."""
    return joined(f"{group.name} in {group.availability_zone_id}" for group in groups)


def nearer(environment: Environment, system: Lustre) -> str:
    """Say in which zone ``system`` would be with all nodes that use it; without such a zone, what else would help."""
    zones = {group.availability_zone_id for group in users(environment, system) if group.count}
    if len(zones) == 1:
        return f"set availability_zone_id: {zones.pop()}"
    return "put the nodes that use it into one zone, or create a file system in each"


def _served(environment: Environment, system: Lustre) -> set[str]:
    """Return the zones whose groups have this file system in their zone, or another one for the same namespaces."""
    namespaces = set(system.claim.namespaces) if system.claim else set()
    others = [
        other
        for other in environment.storage.lustre
        if other.efa or not system.efa
        if namespaces <= set(other.claim.namespaces if other.claim else ())
    ]
    return {system.availability_zone_id, *(other.availability_zone_id for other in others if namespaces)}


def _has_efa_client(environment: Environment, group: InstanceGroup) -> bool:
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return any(row is not None and row.fsx_efa_client for row in rows)


def is_accelerated(environment: Environment, group: InstanceGroup) -> bool:
    """Return whether a type of ``group`` has accelerators."""
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return any(row is not None and row.is_accelerated for row in rows)


def types_with_claims(environment: Environment) -> tuple[str, ...]:
    """Return the instance types (``ml.*``) whose nodes mount a file system through a claim, sorted."""
    groups = [
        group
        for system in environment.storage.lustre
        if system.claim is not None
        for group in users(environment, system)
    ]
    return tuple(sorted({name for group in groups for name in group.all_instance_types}))


def efa_interfaces(environment: Environment) -> dict[str, int]:
    """Return how many EFA interfaces nodes use for Lustre, by instance type (``ml.*``), sorted.

    With a file system with EFA in their zone: the types that can use EFA for it and, with 0, the types that use the
    file system and cannot. With an existing file system of another owner, whose EFA the file does not show: the types
    that can; over TCP it makes no difference to them. Types whose numbers are unknown are left out.
    """
    found: dict[str, int] = {}
    for system in environment.storage.lustre:
        if not system.efa and system.existing is None:
            continue
        using = users(environment, system) if system.efa else []
        for group in environment.hyperpod.instance_groups:
            if group.availability_zone_id != system.availability_zone_id:
                continue
            for name in group.all_instance_types:
                row = environment.instance_type(name)
                number = 0 if row is None else catalog.efa_interfaces(row)
                if number or (row is not None and group in using):
                    found[name] = number
    return dict(sorted(found.items()))
