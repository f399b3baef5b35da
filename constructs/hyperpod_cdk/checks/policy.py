"""The IAM policy that preflight needs, made from the cards of the checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk.checks.answers import QUESTIONS, Question
from hyperpod_cdk.checks.model import Check
from hyperpod_cdk.handlers.quota_gate.reading import calls_of as calls_of_kind

FIRST_QUESTION = "caller"
"""Asked in every run, whatever checks were chosen."""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """What a verb of the command beside preflight asks of AWS: questions as in ``Check.asks``, and further actions.

    ``when_unseen`` says what becomes of its exit code and of "passed" where AWS did not answer all of it.
    """

    name: str
    asks: tuple[str, ...]
    further: tuple[str, ...] = ()
    when_unseen: str

    @property
    def actions(self) -> tuple[str, ...]:
        """The IAM actions that it may need, sorted."""
        asked = {action for ask in (FIRST_QUESTION, *self.asks) for action in question(ask).actions}
        return tuple(sorted({*asked, *self.further}))


_NULL = '`"passed": null`, exit code 0, with `--strict` 1'
VERBS = (
    Verb(name="quotas show", asks=("quota", "usage"), when_unseen=_NULL),
    Verb(
        name="quotas request",
        asks=("quota", "usage", "quota_requests"),
        further=("servicequotas:RequestServiceQuotaIncrease",),
        when_unseen='`"passed": null`, exit code 1 always: a request for what is missing may be missing, too',
    ),
    Verb(
        name="plans search",
        asks=("training_plan_offerings", "zones", "quota"),
        when_unseen=f"{_NULL}; 1 always where nothing was found",
    ),
    Verb(
        name="plans record",
        asks=("training_plan", "zones"),
        when_unseen="nothing is written, exit code 1 always",
    ),
    Verb(
        name="prices refresh",
        asks=(),
        further=("pricing:GetProducts",),
        when_unseen=f"{_NULL}; nothing is written and 1 always where AWS did not answer at all",
    ),
    Verb(
        name="review --deployed",
        asks=(),
        further=("cloudformation:DescribeStacks", "cloudformation:GetTemplate"),
        when_unseen="there is no review, exit code 2 always",
    ),
)
"""Every verb that asks AWS, beside preflight, whose checks say what they ask."""


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
