"""The IAM policy that preflight needs, made from the cards of the checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hyperpod_cdk._handlers.quota_gate.reading import calls_of as calls_of_kind
from hyperpod_cdk.checks.answers import QUESTIONS, Question
from hyperpod_cdk.checks.model import Check

FIRST_QUESTION = "caller"
"""Asked in every run, whatever checks were chosen."""


def actions_of(check: Check) -> tuple[str, ...]:
    """Give the IAM actions that a check may need, sorted."""
    return tuple(sorted({action for ask in check.asks for action in question(ask).actions}))


def calls_of(check: Check) -> tuple[str, ...]:
    """Give the API calls that a check may make, sorted."""
    return tuple(sorted({call for ask in check.asks for call in question(ask).calls}))


def question(ask: str) -> Question:
    """Give the calls and actions behind an entry of ``Check.asks``; raises KeyError where there is no such question."""
    name, _, kind = ask.partition(":")
    return Question(calls=calls_of_kind(kind), actions=calls_of_kind(kind)) if kind else QUESTIONS[name]


def policy(checks: Iterable[Check]) -> dict[str, Any]:
    """Give the policy document that lets somebody run these checks.

    Every action reads. They are on all resources: most have no resource level, and which plan, bucket or role is asked
    for depends on the environment file.
    """
    wanted = {action for check in checks for action in actions_of(check)} | set(QUESTIONS[FIRST_QUESTION].actions)
    return {
        "Version": "2012-10-17",
        "Statement": [{"Sid": "HyperPodPreflight", "Effect": "Allow", "Action": sorted(wanted), "Resource": "*"}],
    }
