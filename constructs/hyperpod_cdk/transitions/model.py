"""Plans and recoveries as data: what ``--format json`` writes and renderings read. Their schemas are published."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from hyperpod_cdk.json_schema import Model
from hyperpod_cdk.review.model import Cause, Minutes, Side

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
    between: tuple[str, ...] = ()
    """In which form it deploys stacks that no app gives them, one sentence for each; empty where it deploys the app's.
    Only ``hyperpod-cdk deploy`` does such a step: it writes that form from what stands."""
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
    """What holds data, nodes, an address or a key and is not kept in it: deleted, replaced, or not known to stay."""
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
    takes: tuple[str, ...] = ()
    """Nodes that it takes away and that no deployment made: of groups that were scaled, or made, beside the file."""
    notes: tuple[str, ...] = Field(default=())
    """What could not be told."""


class Way(StrEnum):
    """What leads a stack out of the state in which it stands."""

    NONE_NEEDED = "none_needed"
    WAIT = "wait"
    DEPLOY = "deploy"
    """``cdk deploy`` does it by itself."""
    DELETE_NEVER_MADE = "delete_never_made"
    """Delete a change set that was never executed, and the stack that it has begun."""
    ROLL_BACK = "roll_back"
    CONTINUE_ROLLBACK = "continue_rollback"
    DELETE = "delete"
    NONE_KNOWN = "none_known"


class Stuck(Model):
    """One stack that something has happened to, and what leads out of it."""

    stack: str
    status: str
    cause: str | None
    """The first failure of what was done last, in one sentence; None where CloudFormation tells none."""
    blame: Cause | None
    """The line of the environment file that it is about, None where none is known to be."""
    in_the_way: str | None
    """What stays of an earlier life and takes the place of what was to be made, with what to do; None where nothing."""
    held: tuple[str, ...]
    """What could not be rolled back or deleted, and why; where the rollback is done, what it has left behind."""
    way: Way
    does: str
    """What the way does, one sentence."""
    commands: tuple[str, ...]
    """What does it by hand; empty where there is nothing to do here."""
    loses: tuple[str, ...]
    """What holds data, nodes, an address or a key and is deleted by it, and protection that it takes away."""

    @property
    def is_done_here(self) -> bool:
        """Whether ``recover`` itself does the way."""
        return self.way in (Way.DELETE_NEVER_MADE, Way.ROLL_BACK, Way.CONTINUE_ROLLBACK, Way.DELETE)


class OpenChangeSet(Model):
    """A change set that nobody has executed."""

    stack: str
    name: str
    status: str
    is_of_cdk: bool
    """Whether the CDK CLI or ``import --takeover`` gave it its name: such ones are deleted, others are somebody's."""
    command: str


class Kept(Model):
    """What a deleted stack has left in the account."""

    stack: str
    logical_id: str
    type: str
    physical_id: str


class Recovery(Model):
    """What of an environment stands in a state of its own, and the ways out."""

    environment: str
    verdict: str
    """One sentence: how many ways there are to go, that nothing is in the way, or that it is refused."""
    stacks: tuple[Stuck, ...] = ()
    change_sets: tuple[OpenChangeSet, ...] = ()
    kept: tuple[Kept, ...] = ()
    """What was retained by stacks that are gone, of the last 90 days: CloudFormation tells no longer."""
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = Field(default=())
    """What could not be told."""


class Aged(Model):
    """One thing that grows old: what stands, what is known to be newer, and how long AWS supports it."""

    what: str
    stands: str | None
    """What is deployed; where that was not read, what the file says, with ``is_old`` None; None where neither tells."""
    newest: str | None
    """None where nothing here tells which is the newest."""
    is_old: bool | None
    """None where it is not known."""
    says: str
    """Until when it is supported, or why that is unknown."""


class Edit(Model):
    """One value of the environment file that a step sets."""

    path: str
    line: int
    """Line of the value, or of what it is put into, as the file was before this step."""
    before: str | None
    after: str


class UpgradeKind(StrEnum):
    """What a step of an upgrade does."""

    LIBRARY = "library"
    WAIT = "wait"
    """Deploy what the file says already."""
    KUBERNETES = "kubernetes"
    ADDONS = "addons"
    CHART = "chart"
    AMI = "ami"


class UpgradeStep(Model):
    """One step: a file is written, then commands are typed."""

    kind: UpgradeKind
    title: str
    edits: tuple[Edit, ...] = ()
    """What is written into the environment file; the chart's lock is written whole."""
    first: tuple[str, ...] = ()
    """What a person does before."""
    commands: tuple[str, ...]
    interrupts: str
    back: str
    """How to go back, and until when."""


class Upgrade(Model):
    """What of an environment is old, and the steps to what is asked for, one deployed after the other."""

    environment: str
    file: str
    verdict: str
    things: tuple[Aged, ...]
    steps: tuple[UpgradeStep, ...] = ()
    diff: str = ""
    """What the first step writes, as a unified diff; empty where it writes nothing."""
    written: tuple[str, ...] = ()
    """The files that were written: those of the first step, or none."""
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[str, ...] = ()
    """What could not be read, with the reason."""
    notes: tuple[str, ...] = Field(default=())
