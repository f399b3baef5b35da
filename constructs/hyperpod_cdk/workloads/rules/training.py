"""Rules about training and its operator, log rules, and measurements."""

from __future__ import annotations

import re

from hyperpod_cdk.catalog.rules import listing, repeated, same_name_problem
from hyperpod_cdk.config.rules.book import Problem, warning
from hyperpod_cdk.workloads.job import TRAINING, Collective
from hyperpod_cdk.workloads.rules.book import Book, Context, Found

BOOK = Book()

_OPERATOR = "hyperpod-pytorch"
_NO_PROGRAM = re.compile(r"(?:.*/)?(?:python[0-9.]*|torchrun|hyperpodrun|accelerate|deepspeed|mpirun|(?:ba|da|z)?sh)")
"""First words of commands that start a program themselves."""

_NEURON_COLLECTIVES: tuple[Collective, ...] = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")


@BOOK.rule
def operator_is_installed(context: Context) -> Found:
    """Refuse jobs for an operator that the environment does not install."""
    if context.kind == _OPERATOR and not context.environment.operators.training.enabled:
        yield Problem(
            ("kind",),
            f"must be pytorch if the training operator is off, got {_OPERATOR}; set operators.training.enabled: true"
            " in the environment, or kind: pytorch",
        )


@BOOK.rule
def commands_begin_with_the_program(context: Context) -> Found:
    """Refuse a command in a single text, and one whose first word the launcher would run as a Python program."""
    if context.kind not in TRAINING or not context.job.command:
        return
    first, launcher = context.job.command[0], "torchrun" if context.kind == "pytorch" else "hyperpodrun"
    if not first or first.split() != [first]:
        yield Problem(
            ("command", 0),
            f'must be only the program, got "{first}"; write every argument as a separate item: [train.py, --steps,'
            ' "1000"]',
        )
    elif context.job.launcher and _NO_PROGRAM.fullmatch(first):
        yield Problem(
            ("command", 0),
            f"must be the Python program that {launcher} starts, got {first}; start with the program, or with -m and"
            " its module, or set launcher: false",
        )


@BOOK.rule
def rules_over_the_log_make_sense(context: Context) -> Found:
    """Refuse invalid patterns, numbers without a group, and rules that detect nothing."""
    for index, rule in enumerate(context.job.log_monitoring):
        at = ("log_monitoring", index)
        wrong = [
            Problem((*at, key), f"must be a regular expression, got {pattern!r}: {problem}; fix it")
            for key, pattern in (("pattern", rule.pattern), ("stop_pattern", rule.stop_pattern))
            if pattern is not None and (problem := _regex_problem(pattern))
        ]
        yield from wrong
        if wrong:
            continue
        groups = re.compile(rule.pattern).groups
        if rule.pattern[:1].isalnum():
            yield warning(
                (*at, "pattern"),
                "the pattern must match from the beginning of a line, and log lines begin with rank and time, got"
                f" {rule.pattern!r}; write .*{rule.pattern}",
            )
        limit, operator = rule.metric_limit, rule.operator
        if (limit is None) != (operator is None):
            lacking, given = ("operator", "metric_limit") if operator is None else ("metric_limit", "operator")
            yield Problem((*at, given), f"needs {lacking}; add {lacking}, or remove {given}")
        elif limit is not None and not groups:
            yield Problem(
                (*at, "pattern"),
                f"must have a group around the number that metric_limit is compared with, got {rule.pattern!r}; put it"
                " in ( )",
            )
        elif limit is None and rule.evaluations is not None:
            yield Problem((*at, "evaluations"), "needs metric_limit and operator; add them, or remove evaluations")
        elif limit is None and not (rule.fault_on_match or rule.expected_start_seconds or rule.expected_every_seconds):
            yield Problem(
                at,
                "must state what is expected, got only a pattern, which detects nothing; add"
                " expected_start_seconds, expected_every_seconds, fault_on_match: true, or metric_limit and operator",
            )
    for index, first, name in repeated([rule.name for rule in context.job.log_monitoring]):
        yield Problem(
            ("log_monitoring", index, "name"),
            same_name_problem(name, f"log_monitoring[{first}]"),
        )


@BOOK.rule
def measurements_make_sense(context: Context) -> Found:
    """Refuse duplicate collectives or those that a test does not have, and a minimum size above the maximum."""
    measure = context.job.measure
    for index, first, name in repeated(measure.collectives):
        yield Problem(
            ("measure", "collectives", index),
            f"must be named once, got {name} again after [{first}]; remove one of the two",
        )
    if context.kind == "nccom":
        for index, name in enumerate(measure.collectives):
            if name not in _NEURON_COLLECTIVES:
                yield Problem(
                    ("measure", "collectives", index),
                    f"must be {listing(_NEURON_COLLECTIVES)} for kind nccom, got {name}; remove it",
                )
    if measure.max_bytes is not None and measure.min_bytes > measure.max_bytes:
        yield Problem(
            ("measure", "min_bytes"),
            f"must be at most max_bytes, {measure.max_bytes}, got {measure.min_bytes}; set min_bytes:"
            f" {measure.max_bytes} or less",
        )


def _regex_problem(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return None
