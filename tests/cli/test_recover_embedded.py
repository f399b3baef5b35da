"""``recover`` from outside: a real process at a terminal, an embedded AWS brought into each state by its own API.

What is expected of each state is CloudFormation's word: user guide, "Stack status codes", "Continue rolling back an
update", "Choose how to handle failures when provisioning resources", "Delete a stack", and the API reference of
ContinueUpdateRollback, RollbackStack, DeleteStack and DeleteChangeSet.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_plan import write_assembly
from tests.support.assembly import PROJECT
from tests.support.embedded import Embedded, embedded

pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]

STACK = "dev-storage"
LONGEST_SECONDS = 120.0
QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30}}
DATA = {"Type": "AWS::S3::Bucket"}


def template(**resources: Any) -> dict[str, Any]:
    return {"Resources": {"Queue": QUEUE, **resources}}


@dataclass
class Account:
    """An embedded AWS, and the environment's assembly."""

    there: Embedded
    folder: Path
    stacks: dict[str, dict[str, Any]] = field(default_factory=lambda: {"storage": template(Data=DATA)})

    @property
    def cloudformation(self) -> Any:
        """Return a client."""
        return self.there.client("cloudformation")

    def fails(self, *faults: tuple[str, str], times: int = 1) -> None:
        """Let resources of the stack fail at a point."""
        rows = [{"stack": STACK, "logical_id": each, "when": when, "times": times} for each, when in faults]
        self.there.address.control("faults", rows, timeout_s=60)

    def status(self, name: str = STACK) -> str:
        """Return a stack's status, nothing where there is none."""
        found = {each["StackName"]: each["StackStatus"] for each in self.cloudformation.describe_stacks()["Stacks"]}
        return str(found.get(name, ""))

    def create(self, body: Mapping[str, Any], name: str = STACK, **more: Any) -> None:
        """Create a stack and wait."""
        self.cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(body), **more)
        self.settled(name)

    def update(self, body: Mapping[str, Any], **more: Any) -> None:
        """Update the stack and wait."""
        self.cloudformation.update_stack(StackName=STACK, TemplateBody=json.dumps(body), **more)
        self.settled()

    def settled(self, name: str = STACK) -> None:
        """Wait until nothing is under way."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while self.status(name).endswith("_IN_PROGRESS") and self.status(name) != "REVIEW_IN_PROGRESS":
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def buckets(self) -> int:
        """Count what holds data."""
        return len(self.there.client("s3").list_buckets()["Buckets"])

    def run(
        self, *arguments: str, answers: Sequence[tuple[str, str]] = (), is_terminal: bool = True
    ) -> tuple[int, str]:
        """Run the command as somebody types it; each answer once its question stands there."""
        process, terminal = self.begun(*arguments, is_terminal=is_terminal)
        said, left = "", list(answers)
        deadline = time.monotonic() + LONGEST_SECONDS
        while True:
            assert time.monotonic() < deadline, said
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    more = os.read(terminal, 65536)
                except OSError:
                    break
                said += more.decode(errors="replace")
                if left and left[0][0] in said:
                    said = said.replace(left[0][0], "(asked)")
                    os.write(terminal, f"{left.pop(0)[1]}\n".encode())
            elif process.poll() is not None:
                break
        os.close(terminal)
        return process.wait(LONGEST_SECONDS), said.replace("\r\n", "\n")

    def begun(self, *arguments: str, is_terminal: bool = True) -> tuple[subprocess.Popen[bytes], int]:
        """Begin the command; give it with its terminal."""
        head = self.folder / "cdk.out"
        if not head.exists():
            write_assembly(head, self.stacks, {})
        controller, own = pty.openpty()
        words = ["recover", "dev", "--head", str(head), "--project", str(PROJECT), *arguments]
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("hyperpod-cdk")), *words],
            cwd=self.folder,
            env={**os.environ, **self.there.environment(), "COLUMNS": "1000"},
            stdin=own if is_terminal else subprocess.DEVNULL,
            stdout=own,
            stderr=own,
        )
        os.close(own)
        return process, controller


@contextmanager
def account(tmp_path: Path, document: Mapping[str, Any] | None = None) -> Iterator[Account]:
    with embedded(document or {}, is_hurried=True) as there:
        yield Account(there, tmp_path)


def reviewed(it: Account) -> None:
    """A change set that nobody executed, of a stack that never was."""
    it.cloudformation.create_change_set(
        StackName=STACK,
        ChangeSetName="cdk-deploy-change-set",
        ChangeSetType="CREATE",
        TemplateBody=json.dumps(template()),
    )


def created_and_taken_back(it: Account) -> None:
    it.fails(("Queue", "before_create"))
    it.create(template())


def created_and_kept(it: Account) -> None:
    """A creation that failed with rollback disabled."""
    it.fails(("Data", "before_create"))
    it.create(template(Data=DATA), DisableRollback=True)


def taken_back_in_part(it: Account) -> None:
    """A creation that failed, of which the bucket could not be deleted."""
    it.fails(("Queue", "before_create"), ("Data", "delete"))
    it.create(template(Queue={**QUEUE, "DependsOn": "Data"}, Data=DATA))


def updated_and_kept(it: Account) -> None:
    """An update that failed with rollback disabled."""
    it.create(template())
    it.fails(("Data", "before_create"))
    it.update(template(Data=DATA), DisableRollback=True)


def taken_back_halfway(it: Account) -> None:
    """An update whose rollback failed."""
    it.create(template())
    it.fails(("Data", "before_create"), ("Queue", "rollback"))
    changed = {**QUEUE, "Properties": {"VisibilityTimeout": 60}}
    it.update({"Resources": {"Queue": changed, "Data": {**DATA, "DependsOn": "Queue"}}})


def deleted_halfway(it: Account) -> None:
    it.create(template(Data=DATA))
    it.fails(("Data", "delete"))
    it.cloudformation.delete_stack(StackName=STACK)
    it.settled()


YES = ("Do this? [y/N]", "y")
TYPED = ("Type dev to confirm", "dev")
CASES: list[tuple[Callable[[Account], None], str, list[tuple[str, str]], str, int, int]] = [
    # an empty stack goes with its change set (DeleteStack)
    (reviewed, "REVIEW_IN_PROGRESS", [YES], "", 0, 0),
    # DeleteStack is all that it takes, and 'cdk deploy' does that by itself
    (created_and_taken_back, "ROLLBACK_COMPLETE", [], "ROLLBACK_COMPLETE", 0, 0),
    # RollbackStack "deletes the stack if it doesn't contain a last known stable state"
    (created_and_kept, "CREATE_FAILED", [YES, TYPED], "ROLLBACK_COMPLETE", 0, 0),
    # what is left holds data: only with the name typed
    (taken_back_in_part, "ROLLBACK_FAILED", [YES, TYPED], "", 0, 0),
    (updated_and_kept, "UPDATE_FAILED", [YES], "UPDATE_ROLLBACK_COMPLETE", 0, 0),
    (taken_back_halfway, "UPDATE_ROLLBACK_FAILED", [YES], "UPDATE_ROLLBACK_COMPLETE", 0, 0),
    (deleted_halfway, "DELETE_FAILED", [YES, TYPED], "", 0, 0),
]


@pytest.mark.parametrize(
    ("bring", "stands", "answers", "ends", "code", "buckets"), CASES, ids=lambda each: getattr(each, "__name__", None)
)
def test_each_state_leads_out(
    tmp_path: Path,
    *,
    bring: Callable[[Account], None],
    stands: str,
    answers: list[tuple[str, str]],
    ends: str,
    code: int,
    buckets: int,
) -> None:
    with account(tmp_path) as it:
        bring(it)
        assert it.status() == stands
        # a look changes nothing
        _, told = it.run("--plan")
        assert (stands in told, it.status()) == (True, stands)
        done = it.run(answers=answers)
        assert (done[0], it.status(), it.buckets()) == (code, ends, buckets), done[1]
        if bring is taken_back_halfway:
            # and again: nothing is left to do
            again = it.run()
            assert (again[0], it.status()) == (0, ends), again[1]


@pytest.mark.parametrize("answers", [[("Do this? [y/N]", "n")], [YES, ("Type dev to confirm", "yes")]])
@pytest.mark.parametrize("bring", [taken_back_in_part, deleted_halfway])
def test_data_goes_only_with_the_name(
    tmp_path: Path, bring: Callable[[Account], None], answers: list[tuple[str, str]]
) -> None:
    with account(tmp_path) as it:
        bring(it)
        before = it.status(), it.buckets()
        code, said = it.run(answers=answers)
        assert (code, it.status(), it.buckets()) == (1, *before), said
        # nor without anybody who types, nor in a pipeline
        if answers[0][1] == "n":
            return
        for arguments, is_terminal in (((), False), (("--yes",), True), (("--yes",), False)):
            code, said = it.run(*arguments, is_terminal=is_terminal)
            assert (code, it.status(), it.buckets()) == (1, *before), said


def test_what_fails_once_more_is_skipped_by_name_only(tmp_path: Path) -> None:
    with account(tmp_path) as it:
        taken_back_halfway(it)
        it.fails(("Queue", "rollback"))
        code, said = it.run(answers=[YES, ("Type dev to skip Queue", "no")])
        assert (code, it.status()) == (1, "UPDATE_ROLLBACK_FAILED"), said
        it.fails(("Queue", "rollback"))
        code, said = it.run(answers=[YES, ("Type dev to skip Queue", "dev")])
        assert (code, it.status()) == (0, "UPDATE_ROLLBACK_COMPLETE"), said


def test_what_cannot_be_deleted_is_left_behind_by_name_only(tmp_path: Path) -> None:
    with account(tmp_path) as it:
        deleted_halfway(it)
        it.fails(("Data", "delete"))
        code, said = it.run(answers=[YES, TYPED, ("Type dev to leave Data behind", "no")])
        assert (code, it.status(), it.buckets()) == (1, "DELETE_FAILED", 1), said
        it.fails(("Data", "delete"))
        code, said = it.run(answers=[YES, TYPED, ("Type dev to leave Data behind", "dev")])
        assert (code, it.status(), it.buckets()) == (0, "", 1), said
        # what was left is told afterwards, as an orphan
        assert "Data" in it.run("--plan")[1]


def test_stacks_of_others_are_not_changed(tmp_path: Path) -> None:
    with account(tmp_path) as it:
        it.fails(("Theirs", "delete"))
        it.create({"Resources": {"Theirs": {"Type": "AWS::SNS::Topic"}}})
        it.cloudformation.delete_stack(StackName=STACK)
        it.settled()
        assert it.status() == "DELETE_FAILED"
        for arguments in ((), ("--yes",), ("--plan",)):
            code, said = it.run(*arguments)
            assert (code, it.status(), said.count("belongs to somebody else")) == (1, "DELETE_FAILED", 1), said


def test_change_sets_of_others_stay(tmp_path: Path) -> None:
    with account(tmp_path) as it:
        it.create(template())
        for name in ("cdk-deploy-change-set", "by-hand"):
            changed = {**QUEUE, "Properties": {"VisibilityTimeout": 60}}
            it.cloudformation.create_change_set(
                StackName=STACK,
                ChangeSetName=name,
                ChangeSetType="UPDATE",
                TemplateBody=json.dumps(template(Queue=changed)),
            )
        code, said = it.run(answers=[YES])
        left = it.cloudformation.list_change_sets(StackName=STACK)["Summaries"]
        assert (code, [each["ChangeSetName"] for each in left]) == (0, ["by-hand"]), said


def fault(operation: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"service": "cloudformation", "operation": operation, "kind": kind, **more}


def test_throttled_calls_are_made_again(tmp_path: Path) -> None:
    asked = ("GetTemplate", "ListStacks", "ListChangeSets", "DescribeStackEvents", "ContinueUpdateRollback")
    with account(tmp_path, {"faults": [fault(each, "throttle", times=2) for each in asked]}) as it:
        taken_back_halfway(it)
        code, said = it.run("--yes")
        assert (code, it.status()) == (0, "UPDATE_ROLLBACK_COMPLETE"), said
        calls = it.there.calls()["by_operation"]
        assert sum(number for name, number in calls.items() if "ContinueUpdateRollback" in name) == 3, calls


@pytest.mark.parametrize(("operation", "code"), [("ContinueUpdateRollback", 1), ("DescribeStackEvents", 2)])
def test_denied_calls_change_nothing(tmp_path: Path, operation: str, code: int) -> None:
    with account(tmp_path, {"faults": [fault(operation, "access_denied")]}) as it:
        taken_back_halfway(it)
        done, said = it.run("--yes")
        assert (done, it.status()) == (code, "UPDATE_ROLLBACK_FAILED"), said
        assert f"cloudformation:{operation}" in said


def test_two_at_once_end_where_one_does(tmp_path: Path) -> None:
    with account(tmp_path) as it:
        taken_back_halfway(it)
        both = [it.begun("--yes") for _ in range(2)]
        codes = []
        for process, terminal in both:
            while process.poll() is None:
                if select.select([terminal], [], [], 0.2)[0]:
                    try:
                        os.read(terminal, 65536)
                    except OSError:
                        break
            codes.append(process.wait(LONGEST_SECONDS))
        assert it.status() == "UPDATE_ROLLBACK_COMPLETE"
        assert 0 in codes


def test_killed_in_the_middle_it_goes_on(tmp_path: Path) -> None:
    with account(tmp_path) as it:
        taken_back_halfway(it)
        process, terminal = it.begun("--yes")
        deadline = time.monotonic() + LONGEST_SECONDS
        while it.status() == "UPDATE_ROLLBACK_FAILED" and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.wait()
        os.close(terminal)
        code, said = it.run("--yes")
        assert (code, it.status()) == (0, "UPDATE_ROLLBACK_COMPLETE"), said
