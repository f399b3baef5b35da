"""Rules over a whole job file in its environment; each is a generator of problems, registered where it is defined."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.config.rules.book import Problem
from hyperpod_cdk.workloads.rules import basics, elastic, nodes, queues, training, volumes
from hyperpod_cdk.workloads.rules.book import Context, Rule

RULES: tuple[Rule, ...] = tuple(
    rule for module in (basics, nodes, queues, volumes, elastic, training) for rule in module.BOOK.rules
)


def problems(context: Context) -> Iterator[tuple[Rule, Problem]]:
    """Run every rule and give what it found."""
    for rule in RULES:
        for problem in rule.run(context):
            yield rule, problem
