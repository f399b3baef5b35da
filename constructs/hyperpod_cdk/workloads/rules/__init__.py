"""Rules for a whole job file in its environment; each one is a registered generator of problems."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.config.rules.book import Problem
from hyperpod_cdk.workloads.rules import basics, elastic, nodes, queues, training, volumes
from hyperpod_cdk.workloads.rules.book import Context, Rule

RULES: tuple[Rule, ...] = tuple(
    rule for module in (basics, nodes, queues, volumes, elastic, training) for rule in module.BOOK.rules
)


def problems(context: Context) -> Iterator[tuple[Rule, Problem]]:
    """Run all rules and return their findings."""
    for rule in RULES:
        for problem in rule.run(context):
            yield rule, problem
