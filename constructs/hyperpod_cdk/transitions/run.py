"""Does the steps of a plan. It stores nothing: before each step it reads the deployed stacks, and plans from there."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Protocol

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import NotAnswered, Refused, reading
from hyperpod_cdk.review.deployed import Api, stack_of
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.review.standing import copied, digest_of, fingerprints
from hyperpod_cdk.scratch import scratch_folder
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError
from hyperpod_cdk.transitions.between import moved, write
from hyperpod_cdk.transitions.cdk import Cdk, CdkFailedError, deployment
from hyperpod_cdk.transitions.failures import held_back, left_behind, plain_reason
from hyperpod_cdk.transitions.model import Plan, Step, Way
from hyperpod_cdk.transitions.plan import SIDE_BY_SIDE, betweens, plan
from hyperpod_cdk.transitions.standing import (
    POLL_SECONDS,
    Standing,
    read_standing,
    read_to_destroy,
    recovers,
    settle,
    way_of,
)

_EVENTS: Final = "cloudformation:DescribeStackEvents"
_GONE: Final = "DELETE_COMPLETE"
_KEPT: Final = "DELETE_FAILED"
_LISTS: Final = "The following resource(s) failed to delete"
"""The prefix of the reason of a stack in that status, if its events show more."""

LOOKS: Final = 6
"""How many equal answers in a row are final: CloudFormation is eventually consistent."""


class Person(Protocol):
    """The user, who is asked and informed; a pipeline is only informed."""

    @property
    def is_there(self) -> bool:
        """Whether a person can answer."""
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
        """Ask the user to type a word as a confirmation."""
        ...


@contextmanager
def held(head: Source) -> Iterator[Source]:
    """Yield a head whose files no other process writes, so that what was shown is what is deployed.

    An assembly in a folder of the user is copied: ``cdk synth`` may write it again, and the CDK CLI writes into what it
    deploys. Raises AssemblyError if the copy differs from what was read.
    """
    folder = head.assembly.folder
    if folder is None or head.side.assembly is None:
        yield head
        return
    with scratch_folder(prefix="hyperpod-deploy-") as scratch:
        target = copied(folder, scratch / "cdk.out")
        if digest_of(target) != head.side.assembly:
            raise AssemblyError(
                f"{head.side.label}: its files changed while they were read; nothing was deployed. Run it again, and "
                "synthesize into a folder that no other process writes"
            )
        yield replace(head, assembly=moved(head.assembly, target))


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One run: ``aws`` opens a new session, so that no answer is cached; ``head`` has its assembly on disk."""

    aws: Callable[[], Api]
    head: Source
    cdk: Cdk
    person: Person
    concurrency: int = SIDE_BY_SIDE
    pause: Callable[[float], None] = time.sleep

    def run(self) -> bool:
        """Plan, ask, and do the steps; give whether the deployed stacks then match the head.

        Raises AssemblyError if AWS does not answer.
        """
        with held(self.head) as head:
            return replace(self, head=head)._run()  # noqa: SLF001 - it is this one, with its own files

    def _run(self) -> bool:
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
                self.person.say(f"stopped before step {number + 1}; the next deployment continues here")
                return False
            done = {name for each in shown.steps[:number] for name in each.stacks}
            if changed := self._differences(shown, number, before, done):
                what = f"stopped before step {number + 1}" if number else "nothing was changed"
                self.person.say(f"{changed}; {what}. Deploy again to see the plan from there.")
                return False
            if not self._do(step):
                return False
        return True

    def _is_reached(self) -> bool:
        """Whether the deployed stacks match the head."""
        left = self._plan(self._settled())
        if left.steps or left.refusals:
            self.person.say(
                "the deployed stacks do not match the file; somebody else may have deployed in the meantime:"
            )
            self.person.show(left)
            return False
        self.person.say(f"{left.environment}: the deployed stacks match the file.")
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
            takes=standing.takes,
            room=standing.room,
            left=standing.left,
        )

    def _settled(self) -> Standing:
        """Read the deployed stacks once CloudFormation works on none: an interrupted deployment continues there."""
        head = self.head.assembly
        settle(self.aws, head.environment, others=tuple(head.by_name), say=self.person.say, pause=self.pause)
        return read_standing(self.aws(), self.head.assembly)

    def _is_agreed(self, shown: Plan) -> bool:
        by_hand = [number for number, step in enumerate(shown.steps, start=1) if step.needs_a_person]
        if not self.person.is_there:
            if by_hand:
                steps = f"{plural(len(by_hand), 'step')} {joined([str(each) for each in by_hand])}"
                self.person.say(f"{steps} of the plan needs a person; nothing was changed. Deploy it from a terminal.")
            elif shown.takes:
                self.person.say(
                    "the plan removes nodes that no deployment created; nothing was changed. Write what AWS has into"
                    " the file, or deploy it from a terminal."
                )
            return not by_hand and not shown.takes
        if self.person.agrees("Do these steps?"):
            return True
        self.person.say("nothing was changed")
        return False

    def _is_ready(self, step: Step, environment: str) -> bool:
        """Whether a person has done what comes before a step, and confirms what is lost in it."""
        for each in step.first:
            self.person.say(f"  first: {each}")
        if step.first and not self.person.agrees("Is that done?"):
            return False
        for each in step.loses:
            self.person.say(f"  loses: {each}")
        return not step.loses or self.person.types(
            f"What is lost cannot be restored. Type {environment} to confirm", environment
        )

    def _differences(self, shown: Plan, number: int, before: Mapping[str, str], done: set[str]) -> str:
        """Say what has changed since the plan was shown, nothing if all is as before."""
        standing = read_standing(self.aws(), self.head.assembly)
        now = {name: each for name, each in fingerprints(standing.base).items() if name not in done}
        old = {name: each for name, each in before.items() if name not in done}
        others = sorted(name for name in now.keys() | old.keys() if now.get(name) != old.get(name))
        if others:
            return f"{joined(others)} changed since the plan was shown"
        again = self._plan(standing)
        if again.refusals:
            return again.refusals[0].why.rstrip(".")
        if not set(again.takes) <= set(shown.takes):
            return "instance groups were scaled since the plan was shown"
        if [_outline(each) for each in again.steps] != [_outline(each) for each in shown.steps[number:]]:
            return "the remaining steps are not the steps that were shown"
        return ""

    def _do(self, step: Step) -> bool:
        if step.action == "delete":
            deployed = read_standing(self.aws(), self.head.assembly).base
            return delete_stacks(self.aws(), step.stacks, deployed, say=self.person.say, pause=self.pause)
        before = self._seen(step)
        try:
            with self._assembly(step) as folder:
                self.cdk.run(
                    deployment(folder, step.selected, concurrency=self.concurrency, is_exclusive=step.exclusively)
                )
        except CdkFailedError as failed:
            self.person.say(f"{failed}; the lines above and the events of the stack show the cause.")
            if busy := self._busy(step):
                self.person.say(
                    f"CloudFormation works on {joined(busy)}, for this deployment or for another one at the same time;"
                    " the "
                    "next deployment waits until that has ended."
                )
            # a rollback also succeeds if CloudFormation gives up on what the update created
            self._is_cleaned_up(before)
            self.person.say(
                "Completed steps remain. Correct the cause and deploy again, which continues from the current state."
            )
            return False
        return self._is_cleaned_up(before)

    def _busy(self, step: Step) -> list[str]:
        """Name the stacks of a step on which CloudFormation works; none if AWS does not answer."""
        found = []
        for name in step.stacks:
            with suppress(NotAnswered):
                if way_of(str(stack_of(self.aws(), name)["StackStatus"])) is Way.WAIT:
                    found.append(name)
        return found

    def _seen(self, step: Step) -> dict[str, set[str]]:
        """Return the existing events of the deployed stacks; a new stack cannot have left anything behind."""
        found: dict[str, set[str]] = {}
        for name in step.stacks:
            try:
                with reading(_EVENTS):
                    found[name] = {str(each["EventId"]) for each in self._events(name)}
            except NotAnswered as missing:
                if not (isinstance(missing, Refused) and missing.is_of_no_stack):
                    self.person.say(f"{name}: whether everything is deleted will not be checked: {missing.sentence}")
        return found

    def _is_cleaned_up(self, before: Mapping[str, set[str]]) -> bool:
        """Whether everything was deleted as planned: an update succeeds even if CloudFormation gave up on one."""
        left = 0
        for name, seen in before.items():
            try:
                with reading(_EVENTS):
                    new = list(takewhile(lambda each: str(each["EventId"]) not in seen, self._events(name)))  # noqa: B023 - used at once
                    failed = held_back(new, "UPDATE_COMPLETE")
            except NotAnswered as missing:
                self.person.say(f"{name}: whether everything was deleted cannot be read: {missing.sentence}")
                continue
            for each in failed:
                left += 1
                self.person.say(f"{name}: {left_behind(each)}")
        if left:
            self.person.say("Delete by hand what was left behind, then deploy again, which continues from here.")
        return not left

    def _events(self, name: str) -> list[Any]:
        return self.aws().pages("cloudformation", "describe_stack_events", "StackEvents", StackName=name)

    @contextmanager
    def _assembly(self, step: Step) -> Iterator[Path]:
        """Yield the folder of a step's assembly: the head's, or one that is written for it from the deployed stacks."""
        folder = self.head.assembly.folder
        if folder is None:
            raise AssemblyError("the assembly to deploy is not in a folder")
        if not step.between:
            yield folder
            return
        standing = read_standing(self.aws(), self.head.assembly)
        with scratch_folder(prefix="hyperpod-deploy-") as scratch:
            yield write(self.head.assembly, betweens(standing.base, standing.head, standing.room), scratch)


@dataclass(frozen=True, kw_only=True)
class Destruction:
    """The deletion of an environment: ``head`` has its stacks and their dependencies."""

    aws: Callable[[], Api]
    head: Source
    person: Person
    pause: Callable[[float], None] = time.sleep

    def planned(self) -> Plan:
        """Say what is deleted and what stays; changes nothing. Raises AssemblyError if AWS does not answer."""
        return self._planned(read_to_destroy(self.aws(), self.head.assembly))

    def run(self) -> bool:
        """Show what is deleted, ask for the environment's name, and delete it; give whether nothing of it is left.

        Raises AssemblyError if AWS does not answer.
        """
        name = self.head.assembly.environment
        others = tuple(self.head.assembly.by_name)
        settle(self.aws, name, others=others, say=self.person.say, pause=self.pause)
        standing = read_to_destroy(self.aws(), self.head.assembly)
        shown = self._planned(standing)
        self.person.show(shown)
        if shown.refusals:
            return False
        for step in shown.steps:
            if not self.person.types(f"Type {name} to destroy it", name):
                self.person.say("nothing was changed")
                return False
            if changed := self._differences(standing, shown):
                self.person.say(f"{changed}; nothing was changed. Destroy it again.")
                return False
            if not delete_stacks(self.aws(), step.stacks, standing.base, say=self.person.say, pause=self.pause):
                self.person.say(
                    "Deleted resources remain deleted. Run destroy again, which continues from the current state. "
                    f"'{recovers(self.head.assembly.word)}' can leave behind what cannot be deleted."
                )
                return False
        if shown.steps:
            gone = joined([each for step in shown.steps for each in step.stacks])
            where = f" in {self.head.assembly.region}" if self.head.assembly.region else ""
            self.person.say(f"{name}: deleted{where}: {gone}.")
            self.person.say(
                "Stacks in other Regions, and stacks of an extension that is no longer in the file, are not deleted."
            )
        return True

    def _differences(self, before: Standing, shown: Plan) -> str:
        """Say what has changed since it was shown, nothing if all is as before."""
        standing = read_to_destroy(self.aws(), self.head.assembly)
        again = self._planned(standing)
        if again.refusals:
            return f"since it was shown, {again.refusals[0].why.rstrip('.')}"
        is_same = fingerprints(standing.base) == fingerprints(before.base) and standing.statuses == before.statuses
        return "" if is_same and again == shown else "what is deployed changed since it was shown"

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


@dataclass(kw_only=True)
class _Deletion:
    """A requested deletion; ``before`` is the status and reason of the stack right before the request."""

    name: str
    stack_id: str
    before: tuple[str, str]
    is_lifted: bool = False
    """Whether its termination protection was disabled for it."""
    has_begun: bool = False
    looks: int = 0
    """How often in a row the stack was unchanged, or could not be read."""


class _LeftAloneError(Exception):
    """A stack has changed since it was shown, so it is not deleted."""


def delete_stacks(
    aws: Api,
    names: Sequence[str],
    deployed: Assembly,
    *,
    say: Callable[[str], None],
    pause: Callable[[float], None],
) -> bool:
    """Delete stacks, after disabling the protection of each: each after those that depend on it, else in parallel.

    ``names`` are in an order that CloudFormation accepts, ``deployed`` has the dependencies and what was shown as
    protected. Gives whether all are deleted; if one is not, its protection is enabled again, and running deletions are
    awaited.
    """
    users = {name: _users(name, deployed) & set(names[:place]) for place, name in enumerate(names)}
    left = list(names)
    running: list[_Deletion] = []
    is_whole = True
    while left or running:
        waits = {*left, *(each.name for each in running)}
        for name in [each for each in left if is_whole and not users[each] & waits]:
            left.remove(name)
            shown = deployed.by_name.get(name)
            try:
                running.append(_begin(aws, name, say=say, was_protected=shown is None or shown.termination_protection))
            except NotAnswered as missing:
                say(f"{name} could not be deleted: {missing.sentence}")
                is_whole = False
            except _LeftAloneError as changed:
                say(f"{changed}; it was not deleted")
                is_whole = False
        for each in list(running):
            is_gone = _look(aws, each, say)
            if is_gone is not None:
                running.remove(each)
                is_whole = is_whole and is_gone
        if not is_whole and not running:
            return False
        if running:
            pause(POLL_SECONDS)
    return True


def _users(name: str, deployed: Assembly) -> set[str]:
    return {stack.name for stack in deployed.stacks if name in stack.dependencies}


def _begin(aws: Api, name: str, *, say: Callable[[str], None], was_protected: bool) -> _Deletion:
    stack = stack_of(aws, name)
    status = str(stack["StackStatus"])
    found = _Deletion(
        name=name, stack_id=str(stack["StackId"]), before=(status, str(stack.get("StackStatusReason") or ""))
    )
    if way_of(status) is Way.WAIT:
        raise _LeftAloneError(f"{name} is {status} since it was shown: CloudFormation works on it")
    if stack.get("EnableTerminationProtection"):
        if not was_protected:
            raise _LeftAloneError(f"{name} is protected against deletion since it was shown")
        lift(aws, found.stack_id)
        found.is_lifted = True
    try:
        aws.send("cloudformation", "delete_stack", StackName=found.stack_id)
    except NotAnswered:
        _put_back(aws, found, say)
        raise
    return found


def _look(aws: Api, deletion: _Deletion, say: Callable[[str], None]) -> bool | None:
    """Read the progress of a deletion: whether the stack is deleted, None if that is not decided yet.

    CloudFormation accepts the call and keeps the stack unchanged if an export of it is in use, so every status without
    a running operation is final (botocore, waiter StackDeleteComplete; aws-cdk issue 604). The first answers can still
    be those of before.
    """
    name = deletion.name
    try:
        stack = stack_of(aws, deletion.stack_id)
    except NotAnswered as missing:
        deletion.looks += 1
        if deletion.looks < LOOKS:
            return None
        say(f"{name}: the progress of its deletion cannot be read: {missing.sentence}")
        _put_back(aws, deletion, say)
        return False
    status, reason = str(stack["StackStatus"]), str(stack.get("StackStatusReason") or "")
    if status == _GONE:
        say(f"{name}: deleted")
        return True
    if way_of(status) is Way.WAIT:
        deletion.has_begun, deletion.looks = True, 0
        return None
    if not deletion.has_begun and (status, reason) == deletion.before:
        deletion.looks += 1
        if deletion.looks < LOOKS:
            return None
    for each in _reasons(aws, deletion.stack_id, status, reason):
        say(f"{name}: {each}")
    if status == _KEPT:
        say(f"{name} is {_KEPT}; remove what prevents the deletion, and delete it again. Nothing else of it is lost.")
    else:
        say(f"{name} was not deleted and is {status}; remove what prevents the deletion, and delete it again.")
    _put_back(aws, deletion, say)
    return False


def lift(aws: Api, stack_id: str) -> None:
    """Disable the termination protection of a stack. Raises NotAnswered."""
    aws.send("cloudformation", "update_termination_protection", StackName=stack_id, EnableTerminationProtection=False)


def put_back(aws: Api, name: str, stack_id: str, say: Callable[[str], None]) -> None:
    """Protect a stack again that was not deleted, or say that it is not protected and which command protects it.

    CloudFormation accepts that in every status except those of a running or finished deletion (user guide, "Protect
    CloudFormation stacks from being deleted").
    """
    try:
        aws.send(
            "cloudformation", "update_termination_protection", StackName=stack_id, EnableTerminationProtection=True
        )
    except NotAnswered as missing:
        region = arn_parts(stack_id).region
        where = ["--stack-name", name, *(["--region", region] if region else [])]
        command = ["aws", "cloudformation", "update-termination-protection", "--enable-termination-protection", *where]
        say(
            f"{name}: its termination protection was disabled and could not be enabled again: "
            f"{missing.sentence}. Where it is "
            f"not deleted, '{shlex.join(command)}' protects it again."
        )
    else:
        say(f"{name}: its termination protection is enabled again")


def _put_back(aws: Api, deletion: _Deletion, say: Callable[[str], None]) -> None:
    if deletion.is_lifted:
        put_back(aws, deletion.name, deletion.stack_id, say)


def _outline(step: Step) -> tuple[Any, ...]:
    """Return the parts of a step that a person has confirmed; durations and words may differ.

    The commands of a deletion say which protection is disabled.
    """
    lifted = step.commands if step.action == "delete" else ()
    return (step.action, step.stacks, step.selected, step.between, step.first, step.loses, lifted)


def _reasons(aws: Api, stack_id: str, status: str, reason: str) -> list[str]:
    """Return where the last deletion failed and why, as CloudFormation says it, else the reason of the stack's
    status."""
    told: list[str] = []
    if status == _KEPT:
        try:
            events = aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack_id)
        except NotAnswered as missing:
            told.append(f"what could not be deleted cannot be read: {missing.sentence}")
        else:
            told += [f"{each.logical_id} ({each.type}): {each.reason}" for each in held_back(events, status)]
    if reason and not (told and reason.startswith(_LISTS)):
        told.append(plain_reason(reason))
    return told or ["CloudFormation gives no reason"]
