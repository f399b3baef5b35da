"""A plan as data: what ``plan --format json`` writes and what every rendering reads. Its schema is published."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hyperpod_cdk.review.model import Minutes, Model, Side

Action = Literal["deploy", "delete"]


class Step(Model):
    """One step: stacks that one ``cdk deploy`` deploys, or stacks that are deleted because the app has them no more."""

    action: Action
    stacks: tuple[str, ...]
    """Names of the stacks that change in it, in their order."""
    commands: tuple[str, ...]
    """What does it by hand, from the project's folder."""
    selected: tuple[str, ...]
    """What ``cdk deploy`` is told to deploy, by the names of the CDK CLI; empty where stacks are deleted."""
    exclusively: bool
    """Whether it deploys nothing but these, so also not what they depend on."""
    why: tuple[str, ...]
    """Why it is a step of its own before the next one; empty for the last step."""
    does: tuple[str, ...]
    """What it does to each stack, one sentence for a stack."""
    interrupts: tuple[str, ...]
    """What is not there or not reachable for a time, or gone: every replacement, deletion and interruption."""
    stays: tuple[str, ...]
    """What leaves its stack in it and stays in the account."""
    unknown: tuple[str, ...]
    """What of it is not known to be harmless."""
    first: tuple[str, ...]
    """What a person has to do or to see to before it; nothing looks whether it is done."""
    loses: tuple[str, ...]
    """What holds data, nodes, an address or a key and is deleted or replaced in it without being kept."""
    back: str
    """How to go back after it."""
    lasts: Minutes
    """By the durations of ``review``."""

    @property
    def needs_a_person(self) -> bool:
        """Whether nobody but a person can decide that it is done."""
        return bool(self.first or self.loses)


class Refusal(Model):
    """Why there is no way that ends well."""

    why: str
    what_works: str
    """What would lead there all the same."""


class Plan(Model):
    """The steps from what is deployed to what is wanted; none where it is refused or nothing changes."""

    environment: str
    base: Side
    head: Side
    verdict: str
    """One sentence: how many steps, that nothing changes, or that it is refused."""
    steps: tuple[Step, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    total: Minutes = Minutes(low=0, high=0)
    """All steps one after another, without what a person does between them."""
    notes: tuple[str, ...] = Field(default=())
    """What could not be told."""
