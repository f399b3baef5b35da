"""Rules over several values of an environment file; each is a generator of problems, registered where it is defined."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules import (
    checkpointing,
    eks,
    encryption,
    hyperpod,
    identity,
    instance_groups,
    network,
    notify,
    operators,
    restricted_groups,
    storage,
    task_governance,
    team_quotas,
)
from hyperpod_cdk.config.rules.book import Problem, Rule

RULES: tuple[Rule, ...] = tuple(
    rule
    for module in (
        identity,
        network,
        eks,
        hyperpod,
        instance_groups,
        restricted_groups,
        checkpointing,
        storage,
        operators,
        notify,
        task_governance,
        team_quotas,
        encryption,
    )
    for rule in module.BOOK.rules
)


def problems(environment: Environment, *, today: date) -> Iterator[tuple[Rule, Problem]]:
    """Run every rule and give what it found."""
    for rule in RULES:
        for problem in rule.run(environment, today):
            yield rule, problem
