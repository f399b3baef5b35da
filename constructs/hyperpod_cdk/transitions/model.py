"""Plans and recoveries as data: what ``--format json`` writes and renderings read. Their schemas are published."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from hyperpod_cdk.json_schema import Model
from hyperpod_cdk.review.model import Cause, Minutes, Side

Action = Literal["deploy", "delete"]


class Step(Model):
    """One step: stacks that one ``cdk deploy`` deploys, or stacks to delete because the app no longer has them."""

    action: Action
    stacks: tuple[str, ...]
    """Names of the stacks that change in it, in their order."""
    commands: tuple[str, ...]
    """The commands that do it by hand, from the project's folder."""
    selected: tuple[str, ...]
    """The stacks for ``cdk deploy``, by the names of the CDK CLI; empty if stacks are deleted."""
    exclusively: bool
    """Whether it deploys only these, and not the stacks on which they depend."""
    between: tuple[str, ...] = ()
    """The forms in which it deploys stacks if they differ from the app's, one sentence for each; else empty.
    Only ``hyperpod-cdk deploy`` can do such a step: it derives that form from the deployed stacks."""
    why: tuple[str, ...]
    """Why the next step must come after it; empty for the last step."""
    does: tuple[str, ...]
    """What it does to each stack, one sentence for a stack."""
    interrupts: tuple[str, ...]
    """What is unavailable for a time, or removed: every replacement, deletion and interruption."""
    stays: tuple[str, ...]
    """What it removes from its stack and keeps in the account."""
    unknown: tuple[str, ...]
    """Parts of it that are not known to be harmless."""
    first: tuple[str, ...]
    """What a person has to do before it; nothing checks whether it is done."""
    loses: tuple[str, ...]
    """What has data, nodes, an address or a key and is not kept: deleted, replaced, or not known to stay."""
    back: str
    """How to go back after it."""
    lasts: Minutes
    """The duration, by the model of ``review``."""

    @property
    def needs_a_person(self) -> bool:
        """Whether only a person can decide that it is done."""
        return bool(self.first or self.loses)


class Refusal(Model):
    """Why no order of steps works."""

    why: str
    what_works: str
    """What works instead."""


class Plan(Model):
    """The steps from the deployed stacks to the wanted ones; none if it is refused or nothing changes."""

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
    """Nodes that it removes and no deployment created: of groups that were scaled, or created, outside the file."""
    notes: tuple[str, ...] = Field(default=())
    """What is unknown."""


class Way(StrEnum):
    """How a stack gets out of its state."""

    NONE_NEEDED = "none_needed"
    WAIT = "wait"
    DEPLOY = "deploy"
    """``cdk deploy`` does it without further help."""
    DELETE_NEVER_MADE = "delete_never_made"
    """Delete a change set that was never executed, and the empty stack that it created."""
    ROLL_BACK = "roll_back"
    CONTINUE_ROLLBACK = "continue_rollback"
    DELETE = "delete"
    NONE_KNOWN = "none_known"


class Stuck(Model):
    """One stack in a state of its own, and how it gets out of it."""

    stack: str
    status: str
    cause: str | None
    """The first failure of the last operation, in one sentence; None if CloudFormation shows none."""
    blame: Cause | None
    """The line of the environment file that it is about, None if unknown."""
    in_the_way: str | None
    """A resource of an earlier deployment that prevents a creation, with what to do; None if there is none."""
    held: tuple[str, ...]
    """What could not be rolled back or deleted, and why; if the rollback is done, what it has left behind."""
    way: Way
    does: str
    """What the solution does, in one sentence."""
    commands: tuple[str, ...]
    """The commands that do it by hand; empty if there is nothing to do."""
    loses: tuple[str, ...]
    """What has data, nodes, an address or a key and is deleted by it, and protection that it removes."""

    @property
    def is_done_here(self) -> bool:
        """Whether ``recover`` itself applies the solution."""
        return self.way in (Way.DELETE_NEVER_MADE, Way.ROLL_BACK, Way.CONTINUE_ROLLBACK, Way.DELETE)


class OpenChangeSet(Model):
    """A change set that nobody has executed."""

    stack: str
    name: str
    status: str
    is_of_cdk: bool
    """Whether the CDK CLI or ``import --takeover`` gave it its name: only such change sets are deleted."""
    command: str


class Kept(Model):
    """What a deleted stack has left in the account."""

    stack: str
    logical_id: str
    type: str
    physical_id: str


class Recovery(Model):
    """The stacks of an environment that need a recovery, and the solutions."""

    environment: str
    verdict: str
    """One sentence: the number of solutions, that nothing is to be done, or that it is refused."""
    stacks: tuple[Stuck, ...] = ()
    change_sets: tuple[OpenChangeSet, ...] = ()
    kept: tuple[Kept, ...] = ()
    """What stacks deleted in the last 90 days retained: CloudFormation does not show older ones."""
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = Field(default=())
    """What is unknown."""


class Aged(Model):
    """One thing with a version: the deployed version, a known newer one, and how long AWS supports it."""

    what: str
    stands: str | None
    """The deployed version; if it was not read, that of the file, with ``is_old`` None; None if both are unknown."""
    newest: str | None
    """None if the newest version is unknown."""
    is_old: bool | None
    """None if unknown."""
    says: str
    """Until when it is supported, or why that is unknown."""


class Edit(Model):
    """One value of the environment file that a step sets."""

    path: str
    line: int
    """Line of the value, or of its mapping, in the file before this step."""
    before: str | None
    after: str


class UpgradeKind(StrEnum):
    """What a step of an upgrade does."""

    LIBRARY = "library"
    WAIT = "wait"
    """Deploy what the file already says."""
    KUBERNETES = "kubernetes"
    ADDONS = "addons"
    CHART = "chart"
    AMI = "ami"


class UpgradeStep(Model):
    """One step: a file is written, then commands are typed."""

    kind: UpgradeKind
    title: str
    edits: tuple[Edit, ...] = ()
    """The values that are written into the environment file; the chart's lock is written whole."""
    first: tuple[str, ...] = ()
    """What a person does before it."""
    commands: tuple[str, ...]
    interrupts: str
    back: str
    """How to go back, and until when."""


class Upgrade(Model):
    """What is old in an environment, and the steps to the requested versions, one deployed after the other."""

    environment: str
    file: str
    verdict: str
    things: tuple[Aged, ...]
    steps: tuple[UpgradeStep, ...] = ()
    diff: str = ""
    """What the first step writes, as a unified diff; empty if it writes nothing."""
    written: tuple[str, ...] = ()
    """The files that were written: those of the first step, or none."""
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[str, ...] = ()
    """What could not be read, with the reason."""
    notes: tuple[str, ...] = Field(default=())
