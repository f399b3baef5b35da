"""Does the steps of a plan. It remembers nothing: before each step it reads what stands, and plans from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.nouns import joined
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.review.standing import digest_of, fingerprints
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError
from hyperpod_cdk.transitions.cdk import Cdk, CdkFailedError, deployment
from hyperpod_cdk.transitions.model import Plan, Step
from hyperpod_cdk.transitions.plan import SIDE_BY_SIDE, plan
from hyperpod_cdk.transitions.standing import POLL_SECONDS, Standing, read_standing, read_to_destroy, settle

_GONE: Final = "DELETE_COMPLETE"
_KEPT: Final = "DELETE_FAILED"


class Person(Protocol):
    """Whoever is asked and told; a pipeline is told only."""

    @property
    def is_there(self) -> bool:
        """Whether anybody answers."""
        ...

    def show(self, plan: Plan) -> None:
        """Show a plan."""
        ...

    def say(self, line: str) -> None:
        """Say one line."""
        ...

    def agrees(self, question: str) -> bool:
        """Ask for a yes."""
        ...

    def types(self, question: str, word: str) -> bool:
        """Ask for a word, which only somebody types who means it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One run: ``aws`` opens AWS anew, so that nothing is answered from memory; ``head`` has its assembly on disk."""

    aws: Callable[[], Api]
    head: Source
    cdk: Cdk
    person: Person
    concurrency: int = SIDE_BY_SIDE
    pause: Callable[[float], None] = time.sleep

    def run(self) -> bool:
        """Plan, ask, and do the steps; give whether what stands is then the head.

        Raises AssemblyError where AWS does not answer.
        """
        standing = self._settled()
        shown = self._plan(standing)
        self.person.show(shown)
        if shown.refusals:
            return False
        if not shown.steps:
            return True
        return self._is_agreed(shown) and self._do_all(shown, fingerprints(standing.base)) and self._is_reached()

    def _do_all(self, shown: Plan, before: Mapping[str, str]) -> bool:
        for number, step in enumerate(shown.steps):
            self.person.say(f"step {number + 1} of {len(shown.steps)}: {' && '.join(step.commands)}")
            if not self._is_ready(step, shown.environment):
                self.person.say(f"stopped before step {number + 1}; the next deployment goes on here")
                return False
            done = {name for each in shown.steps[:number] for name in each.stacks}
            if changed := self._differences(shown.steps[number:], before, done):
                what = f"stopped before step {number + 1}" if number else "nothing was changed"
                self.person.say(f"{changed}; {what}. Deploy again to see the plan from there.")
                return False
            if not self._do(step):
                return False
        return True

    def _is_reached(self) -> bool:
        """Whether what stands now is the head."""
        left = self._plan(self._settled())
        if left.steps or left.refusals:
            self.person.say("what stands is not what the file says; somebody else may have deployed meanwhile:")
            self.person.show(left)
            return False
        self.person.say(f"{left.environment}: what is deployed is what the file says.")
        return True

    def _plan(self, standing: Standing) -> Plan:
        return plan(
            standing.base,
            standing.head,
            base_side=Side(label="deployed"),
            head_side=self.head.side,
            notes=(*standing.notes, *self.head.notes),
            importers=standing.importers,
            blockers=standing.blockers,
        )

    def _settled(self) -> Standing:
        """Read what stands once CloudFormation works on none of it: a deployment that was interrupted goes on there."""
        settle(self.aws, self.head.assembly.environment, say=self.person.say, pause=self.pause)
        return read_standing(self.aws(), self.head.assembly)

    def _is_agreed(self, shown: Plan) -> bool:
        by_hand = [number for number, step in enumerate(shown.steps, start=1) if step.needs_a_person]
        if not self.person.is_there:
            if by_hand:
                steps = f"step{'s' if len(by_hand) > 1 else ''} {joined([str(each) for each in by_hand])}"
                self.person.say(f"{steps} of the plan needs a person; nothing was changed. Deploy it from a terminal.")
            return not by_hand
        if self.person.agrees("Do these steps?"):
            return True
        self.person.say("nothing was changed")
        return False

    def _is_ready(self, step: Step, environment: str) -> bool:
        """Whether a person has done what comes before a step, and lets go of what is lost in it."""
        for each in step.first:
            self.person.say(f"  first: {each}")
        if step.first and not self.person.agrees("Is that done?"):
            return False
        for each in step.loses:
            self.person.say(f"  loses: {each}")
        return not step.loses or self.person.types(
            f"What it loses does not come back. Type {environment} to let it go", environment
        )

    def _differences(self, expected: tuple[Step, ...], before: Mapping[str, str], done: set[str]) -> str:
        """Say what is another by now than what was shown, nothing where it stands as it was left."""
        if self.head.side.assembly not in (None, self._digest()):
            return f"the files of {self.head.side.label} changed since the plan was shown"
        standing = read_standing(self.aws(), self.head.assembly)
        now = {name: each for name, each in fingerprints(standing.base).items() if name not in done}
        old = {name: each for name, each in before.items() if name not in done}
        others = sorted(name for name in now.keys() | old.keys() if now.get(name) != old.get(name))
        if others:
            return f"{joined(others)} changed since the plan was shown"
        again = self._plan(standing)
        if again.refusals:
            return again.refusals[0].why.rstrip(".")
        if [_outline(each) for each in again.steps] != [_outline(each) for each in expected]:
            return "what is left to do is not what was shown"
        return ""

    def _digest(self) -> str | None:
        folder = self.head.assembly.folder
        return digest_of(folder) if folder is not None else None

    def _do(self, step: Step) -> bool:
        if step.action == "delete":
            deployed = read_standing(self.aws(), self.head.assembly).base
            return delete_stacks(self.aws(), step.stacks, deployed, say=self.person.say, pause=self.pause)
        folder = self.head.assembly.folder
        if folder is None:
            raise AssemblyError("what is to be deployed lies in no folder")
        try:
            self.cdk.run(deployment(folder, step.selected, concurrency=self.concurrency, is_exclusive=step.exclusively))
        except CdkFailedError as failed:
            self.person.say(f"{failed}; what it was, the lines above and the events of the stack say.")
            self.person.say("What has been done stays. Correct it, and deploy again: that goes on from what stands.")
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class Destruction:
    """The end of an environment: ``head`` says whose stacks they are and what depends on what."""

    aws: Callable[[], Api]
    head: Source
    person: Person
    pause: Callable[[float], None] = time.sleep

    def planned(self) -> Plan:
        """Tell what goes and what stays; changes nothing. Raises AssemblyError where AWS does not answer."""
        return self._planned(read_to_destroy(self.aws(), self.head.assembly))

    def run(self) -> bool:
        """Show what goes, ask for the environment's name, and delete it; give whether nothing of it is left.

        Raises AssemblyError where AWS does not answer.
        """
        name = self.head.assembly.environment
        settle(self.aws, name, say=self.person.say, pause=self.pause)
        standing = read_to_destroy(self.aws(), self.head.assembly)
        shown = self._planned(standing)
        self.person.show(shown)
        if shown.refusals:
            return False
        for step in shown.steps:
            if not self.person.types(f"Type {name} to destroy it", name):
                self.person.say("nothing was changed")
                return False
            if fingerprints(read_to_destroy(self.aws(), self.head.assembly).base) != fingerprints(standing.base):
                self.person.say("what is deployed changed since it was shown; nothing was changed. Destroy it again.")
                return False
            if not delete_stacks(self.aws(), step.stacks, standing.base, say=self.person.say, pause=self.pause):
                self.person.say("What is gone is gone; destroy again, which goes on from what stands.")
                return False
        if shown.steps:
            self.person.say(f"{name}: no stack of it is left.")
        return True

    def _planned(self, standing: Standing) -> Plan:
        found = plan(
            standing.base,
            standing.head,
            base_side=Side(label="deployed"),
            head_side=Side(label="nothing"),
            notes=standing.notes,
            importers=standing.importers,
            blockers=standing.blockers,
        )
        return found if standing.base.stacks else found.model_copy(update={"verdict": "Nothing is deployed."})


def delete_stacks(
    aws: Api,
    names: Sequence[str],
    deployed: Assembly,
    *,
    say: Callable[[str], None],
    pause: Callable[[float], None],
) -> bool:
    """Delete stacks, the protection of each lifted first: each after those that depend on it, else side by side.

    ``names`` are in an order that CloudFormation takes, ``deployed`` says what depends on what. Gives whether all are
    gone; where one is not, what runs is waited for.
    """
    users = {name: _users(name, deployed) & set(names[:place]) for place, name in enumerate(names)}
    left = list(names)
    running: dict[str, str] = {}
    is_whole = True
    while left or running:
        waits = {*left, *running}
        for name in [each for each in left if is_whole and not users[each] & waits]:
            left.remove(name)
            try:
                running[name] = _begin(aws, name)
            except NotAnswered as missing:
                say(f"{name} could not be deleted: {missing.sentence}")
                is_whole = False
        for name, stack_id in list(running.items()):
            status = _status(aws, stack_id)
            if status not in (_GONE, _KEPT):
                continue
            del running[name]
            if status == _GONE:
                say(f"{name}: deleted")
                continue
            is_whole = False
            for each in _reasons(aws, stack_id):
                say(f"{name}: {each}")
            say(f"{name} is {_KEPT}; take away what holds it, and delete it again. Nothing else of it is lost.")
        if not is_whole and not running:
            return False
        if running:
            pause(POLL_SECONDS)
    return True


def _users(name: str, deployed: Assembly) -> set[str]:
    return {stack.name for stack in deployed.stacks if name in stack.dependencies}


def _begin(aws: Api, name: str) -> str:
    (stack,) = aws.send("cloudformation", "describe_stacks", StackName=name)["Stacks"]
    if stack.get("EnableTerminationProtection"):
        aws.send("cloudformation", "update_termination_protection", StackName=name, EnableTerminationProtection=False)
    aws.send("cloudformation", "delete_stack", StackName=stack["StackId"])
    return str(stack["StackId"])


def _status(aws: Api, stack_id: str) -> str:
    try:
        (stack,) = aws.send("cloudformation", "describe_stacks", StackName=stack_id)["Stacks"]
    except NotAnswered as missing:
        raise AssemblyError(f"how far the deletion is cannot be read: {missing.sentence}") from None
    return str(stack["StackStatus"])


def _outline(step: Step) -> tuple[Any, ...]:
    """Give what a person has agreed to of a step; durations and words may differ."""
    return (step.action, step.stacks, step.selected, step.first, step.loses)


def _reasons(aws: Api, stack_id: str) -> list[str]:
    """Give what could not be deleted and why, as CloudFormation says it."""
    events = aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack_id)
    told = [
        f"{each['LogicalResourceId']} ({each['ResourceType']}): {each['ResourceStatusReason']}"
        for each in events
        if each["ResourceStatus"] == _KEPT
        and each.get("ResourceStatusReason")
        and each.get("PhysicalResourceId") != stack_id
    ]
    return list(dict.fromkeys(told))
