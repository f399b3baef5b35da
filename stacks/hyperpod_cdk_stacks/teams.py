"""Converts the teams of an environment to those of task governance."""

from __future__ import annotations

from dataclasses import replace

from hyperpod_cdk import Team
from hyperpod_cdk.catalog.governance import is_native
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.task_governance import Quota, TaskGovernance
from hyperpod_cdk.config.task_governance import Team as TeamSection
from hyperpod_cdk.governance.teams import AcceleratorPartition, QuotaRow, resource_limits


def governed_teams(environment: Environment, section: TaskGovernance) -> list[Team]:
    """Return the teams, each with a ResourceQuota if Karpenter would otherwise add nodes for all requests of pods."""
    return [_team(environment, team) for team in section.teams]


def is_native_here(environment: Environment, section: TaskGovernance, resource_type: str) -> bool:
    """Return whether the file selects CloudFormation's own resource type."""
    if section.provider == "auto":
        return is_native(resource_type, environment.region)
    return section.provider == "native"


def _team(environment: Environment, section: TeamSection) -> Team:
    team = Team(
        name=section.name,
        description=section.description,
        quota_name=section.quota_name,
        active=section.active,
        fair_share_weight=section.fair_share_weight,
        preemption=section.preemption,
        quota=[_row(environment, row) for row in section.quota],
        sharing=section.sharing.strategy,
        borrow_limit_percent=section.sharing.resolved_borrow_limit_percent,
        absolute_borrow_limits=[_row(environment, row) for row in section.sharing.absolute_borrow_limits],
        member_role_arns=section.member_role_arns,
        access=section.access,
        pod_security=section.pod_security,
        default_queue=section.default_queue,
        resource_quota=section.resource_quota,
    )
    if not environment.hyperpod.autoscaled_groups:
        return team
    numbers = {row.instance_type: environment.instance_type(row.instance_type) for row in team.quota}
    derived = resource_limits(team, {name: found for name, found in numbers.items() if found is not None})
    return replace(team, resource_quota={**derived, **section.resource_quota})


def _row(environment: Environment, row: Quota) -> QuotaRow:
    partition = row.accelerator_partition
    return QuotaRow(
        instance_type=row.instance_type,
        count=row.count,
        accelerators=row.accelerators,
        vcpu=row.vcpu,
        memory_gib=row.memory_gib,
        accelerator_partition=(
            None if partition is None else AcceleratorPartition(profile=partition.profile, count=partition.count)
        ),
        stated_types=environment.stated_types,
    )
