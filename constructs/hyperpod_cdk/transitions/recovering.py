"""Applies the solutions of a recovery, each after a question. It stores nothing: before each, the state is read
again."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.review.deployed import Api, stack_of
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import AssemblyError
from hyperpod_cdk.transitions.failures import (
    LEAVES_BEHIND,
    Event,
    Failure,
    all_inside,
    deletes_a_cluster,
    held_back,
    is_inside_a_cluster,
    left_behind,
)
from hyperpod_cdk.transitions.model import OpenChangeSet, Recovery, Stuck, Way
from hyperpod_cdk.transitions.recovery import read_recovery
from hyperpod_cdk.transitions.run import LOOKS, Person, lift, put_back
from hyperpod_cdk.transitions.standing import POLL_SECONDS, settle, way_of

_OLDER: Final = re.compile(r"version update from (?P<stands>\d+\.\d+) to (?P<before>\d+\.\d+)")
"""EKS's words for a version that a stack's rollback does not restore (user guide, rollback-cluster)."""

_AGAIN: Final = "Completed actions remain. Run recover again, which continues from the current state."


@dataclass(frozen=True, kw_only=True)
class Recovering:
    """One run: ``aws`` opens a new session, ``head`` has the environment's stacks, ``show`` shows what was read."""

    aws: Callable[[], Api]
    head: Source
    person: Person
    show: Callable[[Recovery], None]
    pause: Callable[[float], None] = time.sleep

    def read(self) -> Recovery:
        """Return the state and the solutions; changes nothing. Raises AssemblyError if AWS does not answer."""
        return read_recovery(self.aws(), self.head)

    def run(self) -> bool:
        """Wait for running operations, show, ask, and apply the solutions; give whether every stack can be deployed.

        Raises AssemblyError if AWS does not answer.
        """
        environment = self.head.assembly.environment
        shown = self.read()
        self.show(shown)
        if not shown.refusals and any(each.way is Way.WAIT for each in shown.stacks):
            others = tuple(self.head.assembly.by_name)
            settle(self.aws, environment, others=others, say=self.person.say, pause=self.pause)
            shown = self.read()
            self.show(shown)
        if shown.refusals:
            return False
        ways = [each for each in shown.stacks if each.is_done_here]
        sets = [each for each in shown.change_sets if each.is_of_cdk]
        if (ways or sets) and not self._is_agreed(ways):
            return False
        for each in ways:
            try:
                is_done = self._is_as_shown(each) and self._is_let_go(each) and self._do(each)
            except NotAnswered as missing:
                self.person.say(f"{each.stack}: {missing.sentence}")
                is_done = False
            if not is_done:
                self.person.say(_AGAIN if each is not ways[0] else "No other stack was changed.")
                return False
        return self._delete_sets(sets) and not any(each.way is Way.NONE_KNOWN for each in shown.stacks)

    def _is_agreed(self, ways: Sequence[Stuck]) -> bool:
        by_hand = [each.stack for each in ways if each.loses]
        if not self.person.is_there:
            if by_hand:
                self.person.say(
                    f"{joined(by_hand)}: something is lost there, so a person has to confirm; nothing was changed. Run"
                    " recover "
                    "from a terminal."
                )
            return not by_hand
        if self.person.agrees("Do this?"):
            return True
        self.person.say("nothing was changed")
        return False

    def _is_as_shown(self, shown: Stuck) -> bool:
        now = {each.stack: each for each in self.read().stacks}
        if now.get(shown.stack) == shown:
            return True
        self.person.say(f"{shown.stack} changed since it was shown; nothing was done to it. Run recover again.")
        return False

    def _is_let_go(self, stuck: Stuck) -> bool:
        for each in stuck.loses:
            self.person.say(f"  loses: {each}")
        return not stuck.loses or self._types("What is lost cannot be restored.", "confirm")

    def _types(self, why: str, what: str) -> bool:
        name = self.head.assembly.environment
        return self.person.is_there and self.person.types(f"{why} Type {name} to {what}", name)

    def _do(self, stuck: Stuck) -> bool:
        aws = self.aws()
        described = stack_of(aws, stuck.stack)
        stack_id = str(described["StackId"])
        if stuck.way is Way.CONTINUE_ROLLBACK:
            return self._undo(stuck.stack, stack_id, "continue_update_rollback")
        if stuck.way is Way.ROLL_BACK:
            return self._undo(stuck.stack, stack_id, "rollback_stack")
        if not described.get("EnableTerminationProtection"):
            return self._delete(stuck.stack, stack_id)
        lift(aws, stack_id)
        is_done = False
        try:
            is_done = self._delete(stuck.stack, stack_id)
        finally:
            if not is_done:
                put_back(self.aws(), stuck.stack, stack_id, self.person.say)
        return is_done

    def _undo(self, name: str, stack_id: str, call: str) -> bool:
        """Roll a stack back; of what fails again, skip only what a person confirms."""
        skipped: list[str] = []
        while True:
            status, events = self._called(stack_id, call, **({"ResourcesToSkip": skipped} if skipped else {}))
            if status in ("UPDATE_ROLLBACK_COMPLETE", "ROLLBACK_COMPLETE", "DELETE_COMPLETE"):
                break
            failed = all_inside(self._failed(name, status, events), status, self._events)
            again = {each.place for each in failed} & set(skipped)
            nested = [each.place for each in failed if each.is_nested_stack]
            if nested:
                self.person.say(
                    f"  {joined(nested)} is a nested stack: correct what failed in it and recover again; or skip it "
                    f"by 'aws cloudformation continue-update-rollback --stack-name {name} --resources-to-skip "
                    "NAME_OF_THE_NESTED_STACK.LOGICAL_ID'."
                )
            if status != "UPDATE_ROLLBACK_FAILED" or not failed or again or nested:
                return False
            names = [each.place for each in failed]
            self.person.say(
                f"  if skipped, {joined(names)} remains as it is and differs from the template: correct it before the"
                " next "
                "deployment, which may otherwise fail."
            )
            for each in failed:
                if each.is_of_a_control_plane and (version := _OLDER.search(each.reason)):
                    self.person.say(_of_a_control_plane(each.physical_id, version["stands"], version["before"]))
                if each.is_of_a_file_system:
                    self.person.say(
                        f"  {each.physical_id}: if its capacity has grown, it stays, because FSx accepts no smaller"
                        " one. "
                        "Keep the previously deployed capacity in the file, or write more than it has."
                    )
            if not self._types("Correct what the reasons say and recover again, or skip.", f"skip {joined(names)}"):
                return False
            call, skipped = "continue_update_rollback", names
        self.person.say(f"{name}: {'deleted' if status == 'DELETE_COMPLETE' else status}")
        for each in held_back(events, status) if status in LEAVES_BEHIND else ():
            self.person.say(f"{name}: {left_behind(each)}")
        return True

    def _delete(self, name: str, stack_id: str) -> bool:
        """Delete a stack; of what fails again, leave behind only what a person confirms."""
        left: list[str] = []
        inside: set[str] = set()
        while True:
            status, events = self._called(stack_id, "delete_stack", **({"RetainResources": left} if left else {}))
            if status == "DELETE_COMPLETE":
                gone = inside if deletes_a_cluster(events) else set()
                stays = [each for each in left if each not in gone]
                self.person.say(f"{name}: deleted{f'; {joined(stays)} remains in the account' if stays else ''}")
                return True
            failed = self._failed(name, status, events)
            if status != "DELETE_FAILED" or not failed or {each.logical_id for each in failed} <= set(left):
                return False
            names = [*left, *(each.logical_id for each in failed if each.logical_id not in left)]
            inside |= {each.logical_id for each in failed if is_inside_a_cluster(each.type)}
            self.person.say(
                f"  if left behind, {joined(names)} remains in the account with its cost, and belongs to no stack."
            )
            why = "Remove what prevents the deletion and run recover again, or leave it behind."
            if not self._types(why, f"leave {joined(names)} behind"):
                return False
            left = names

    def _failed(self, name: str, status: str, events: Sequence[Event]) -> list[Failure]:
        """Say at which resources a call failed; earlier failures are no proof."""
        failed = held_back(events, status)
        for each in all_inside(failed, status, self._events):
            self.person.say(f"{name}: {each.place} ({each.type}) could not be {each.could_not}: {each.reason}.")
        if not failed:
            said = next((each["ResourceStatusReason"] for each in events if each.get("ResourceStatusReason")), "")
            self.person.say(f"{name} is {status}{f': {said}' if said else ''}")
        return failed

    def _called(self, stack_id: str, call: str, **more: Any) -> tuple[str, list[Event]]:
        """Make a call and wait for its operation; give the stack's final status, and the events since, newest first."""
        before = {str(each["EventId"]) for each in self._events(stack_id)}
        stood = self._status(stack_id)
        self.aws().send("cloudformation", call, StackName=stack_id, **more)
        looks = 0
        while True:
            status = self._status(stack_id)
            if way_of(status) is not Way.WAIT:
                events = list(takewhile(lambda each: str(each["EventId"]) not in before, self._events(stack_id)))
                looks += 1
                # the first answers can still be those of before
                if events or status != stood or looks == LOOKS:
                    return status, events
            self.pause(POLL_SECONDS)

    def _events(self, stack_id: str) -> list[Event]:
        found: list[Event] = self.aws().pages(
            "cloudformation", "describe_stack_events", "StackEvents", StackName=stack_id
        )
        return found

    def _status(self, stack_id: str) -> str:
        try:
            stack = stack_of(self.aws(), stack_id)
        except NotAnswered as missing:
            raise AssemblyError(f"its progress cannot be read: {missing.sentence}") from None
        return str(stack["StackStatus"])

    def _delete_sets(self, sets: Sequence[OpenChangeSet]) -> bool:
        for each in sets:
            try:
                self.aws().send("cloudformation", "delete_change_set", StackName=each.stack, ChangeSetName=each.name)
            except NotAnswered as missing:
                self.person.say(f"{each.stack}: {each.name} could not be deleted: {missing.sentence}")
                return False
            self.person.say(f"{each.stack}: change set {each.name} deleted")
        return True


def _of_a_control_plane(name: str, stands: str, before: str) -> str:
    """Say how to make a control plane and its template equal again: EKS can also refuse a version that already runs.

    aws/containers-roadmap issue 497 (a comment of December 2025 still reports it); no page of AWS documents it.
    """
    return (
        f"  {name} runs Kubernetes {stands}, and its template says {before}: within {kubernetes.ROLLBACK_DAYS} days of "
        f"the upgrade, 'aws eks update-cluster-version --name {shlex.quote(name)} --kubernetes-version {before}' rolls "
        f"it back. Do that before the next deployment, which may otherwise be refused, also with {stands} in the file."
    )
