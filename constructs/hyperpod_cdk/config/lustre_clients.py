"""Which instance groups use a file system, and what their nodes have to be ready for."""

from __future__ import annotations

from hyperpod_cdk.catalog import lustre as catalog
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.storage import Lustre


def users(environment: Environment, system: Lustre) -> list[InstanceGroup]:
    """Give the groups that use ``system``, as far as the file tells.

    Those of the types in the quotas of the teams whose namespaces have the claim; without such teams the groups with
    accelerators, or all groups where there are none.
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


def is_accelerated(environment: Environment, group: InstanceGroup) -> bool:
    """Say whether a type of ``group`` has accelerators."""
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return any(row is not None and row.is_accelerated for row in rows)


def types_with_claims(environment: Environment) -> tuple[str, ...]:
    """Give the instance types (``ml.*``) whose nodes mount a file system through a claim, sorted."""
    groups = [
        group
        for system in environment.storage.lustre
        if system.claim is not None
        for group in users(environment, system)
    ]
    return tuple(sorted({name for group in groups for name in group.all_instance_types}))


def efa_interfaces(environment: Environment) -> dict[str, int]:
    """Give how many EFA interfaces nodes use for Lustre, by instance type (``ml.*``), sorted.

    Of the types beside a file system with EFA, in its zone, those that can reach it so, and, with 0, those that use it
    and cannot. Beside a file system of somebody else's, whose EFA the file does not tell, those that can: over TCP it
    makes no difference to them. Types whose numbers are unknown are left out.
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
