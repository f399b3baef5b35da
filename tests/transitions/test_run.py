"""Steps are done one after another, and again from wherever they were interrupted; nothing else is ever done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.values import imports
from hyperpod_cdk.transitions.cdk import CdkFailedError
from hyperpod_cdk.transitions.model import Plan
from hyperpod_cdk.transitions.run import Deployment, Destruction
from tests.transitions.stacks import ACCOUNT, REGION, assembly, stack

BASE = assembly(
    stack("network", exports=["vpc"]),
    stack("storage", exports=["fs"], imports=["vpc"], after=["network"]),
    stack("platform", imports=["fs"], after=["storage"]),
)
RELEASED = assembly(stack("network", exports=["vpc"]), stack("storage", imports=["vpc"]), stack("platform"))
"""One export goes: two steps."""
LEFT = assembly(stack("network"), stack("platform"))
"""A stack has left the app, and another drops what that one imported: three steps."""


@dataclass
class Cloud:
    """CloudFormation and the CDK CLI, with what of exports the former refuses."""

    stacks: dict[str, Stack] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    ran: list[tuple[str, ...]] = field(default_factory=list)
    fails_at: str = ""
    holds: str = ""

    def call(self, service: str, operation: str, **params: Any) -> Any:
        assert (service, operation) == ("cloudformation", "get_template")
        return {"TemplateBody": dict(self.stacks[params["StackName"]].template)}

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        assert service == "cloudformation"
        if operation == "describe_stacks":
            return [self._described(name) for name in self.stacks]
        if operation == "list_imports":
            found = [name for name, each in self.stacks.items() if params["ExportName"] in imports(dict(each.template))]
            if not found:
                raise NotAnswered(f"Export '{params['ExportName']}' is not imported by any stack.")
            return found
        assert (operation, key) == ("describe_stack_events", "StackEvents")
        held = {"LogicalResourceId": "Vpc", "ResourceType": "AWS::EC2::VPC", "ResourceStatusReason": "in use"}
        return [{**held, "ResourceStatus": "DELETE_FAILED"}, {**held, "ResourceStatus": "DELETE_IN_PROGRESS"}]

    def send(self, service: str, operation: str, **params: Any) -> Any:
        assert service == "cloudformation"
        name = params["StackName"].split("/")[-1]
        if operation == "describe_stacks":
            gone = {"StackStatus": "DELETE_COMPLETE", "StackId": params["StackName"]}
            return {"Stacks": [self._described(name) if name in self.stacks else gone]}
        self.ran.append((operation, name))
        if operation == "update_termination_protection":
            self.stacks[name] = replace(self.stacks[name], termination_protection=False)
        elif name == self.holds:
            self.statuses[name] = "DELETE_FAILED"
        else:
            assert operation == "delete_stack"
            assert not self.stacks[name].termination_protection
            self._refuse(set(self.stacks[name].outputs), name)
            del self.stacks[name]
        return {}

    def _described(self, name: str) -> dict[str, Any]:
        found = self.stacks[name]
        status = self.statuses.get(name, "CREATE_COMPLETE")
        if status.endswith("_IN_PROGRESS"):
            # by the next look it has ended
            self.statuses[name] = "UPDATE_COMPLETE"
        return {
            "StackName": name,
            "StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{name}",
            "StackStatus": status,
            "EnableTerminationProtection": found.termination_protection,
        }

    def _refuse(self, dropped: set[str], name: str) -> None:
        used = {each for other, it in self.stacks.items() if other != name for each in imports(dict(it.template))}
        if dropped & used:
            raise CdkFailedError("deploy", 1, f"Export {min(dropped & used)} cannot be deleted as it is in use")


@dataclass
class FakeCdk:
    """Deploys the stacks of an assembly that the patterns select, each after those that it depends on."""

    cloud: Cloud
    head: Assembly

    def run(self, arguments: Sequence[str]) -> None:
        command, app, _, *rest = arguments
        assert (command, app) == ("deploy", "--app")
        is_exclusive = "--exclusively" in rest
        patterns = rest[: rest.index("--exclusively" if is_exclusive else "--concurrency")]
        assert rest[-5:] == ["3", "--require-approval", "never", "--progress", "events"]
        self.cloud.ran.append((*patterns, *(["exclusively"] if is_exclusive else [])))
        for each in self.head.stacks:
            if not any(fnmatchcase(each.shown, pattern) for pattern in patterns):
                continue
            if each.name == self.cloud.fails_at:
                raise CdkFailedError("deploy", 1, "it failed")
            old = self.cloud.stacks.get(each.name)
            if old is not None:
                self.cloud._refuse(set(old.outputs) - set(each.outputs), each.name)
            self.cloud.stacks[each.name] = each


@dataclass
class FakePerson:
    """Answers from a list, and keeps what it was shown and told."""

    answers: list[bool | str] = field(default_factory=list)
    is_there: bool = True
    shown: list[Plan] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    meanwhile: Any = None

    def show(self, plan: Plan) -> None:
        self.shown.append(plan)

    def say(self, line: str) -> None:
        self.told.append(line)

    def agrees(self, question: str) -> bool:
        self.asked.append(question)
        if self.meanwhile:
            self.meanwhile()
        return self.answers.pop(0) is True

    def types(self, question: str, word: str) -> bool:
        self.asked.append(question)
        return self.answers.pop(0) == word


def deployment(cloud: Cloud, head: Assembly, person: FakePerson, folder: Path) -> Deployment:
    head = replace(head, folder=folder)
    return Deployment(
        aws=lambda: cloud,
        head=Source(assembly=head, side=Side(label="working tree")),
        cdk=FakeCdk(cloud, head),
        person=person,
        pause=lambda _: None,
    )


def standing(base: Assembly = BASE, **more: Any) -> Cloud:
    return Cloud(stacks={each.name: each for each in base.stacks}, **more)


def test_a_first_deployment(tmp_path: Path) -> None:
    cloud, person = Cloud(), FakePerson([True])
    assert deployment(cloud, BASE, person, tmp_path).run()
    assert cloud.ran == [("dev/*",)]
    assert person.asked == ["Do these steps?"]
    assert person.told[-1] == "dev: what is deployed is what the file says."


def test_nothing_to_do_asks_nothing(tmp_path: Path) -> None:
    cloud, person = standing(), FakePerson()
    assert deployment(cloud, BASE, person, tmp_path).run()
    assert (cloud.ran, person.asked) == ([], [])


@pytest.mark.parametrize("is_there", [True, False])
def test_two_steps(is_there: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter of the table
    cloud, person = standing(), FakePerson([True], is_there=is_there)
    assert deployment(cloud, RELEASED, person, tmp_path).run()
    assert cloud.ran == [("dev/platform", "exclusively"), ("dev/*",)]
    assert bool(person.asked) is is_there


def test_a_stack_that_left_the_app(tmp_path: Path) -> None:
    storage = replace(BASE.by_name["dev-storage"], termination_protection=True)
    base = replace(BASE, stacks=tuple(storage if each.name == storage.name else each for each in BASE.stacks))
    # it holds a queue
    cloud, person = standing(base), FakePerson([True, "dev"])
    assert deployment(cloud, LEFT, person, tmp_path).run()
    assert cloud.ran == [
        ("dev/platform", "exclusively"),
        ("update_termination_protection", "dev-storage"),
        ("delete_stack", "dev-storage"),
        ("dev/*",),
    ]
    assert person.asked == ["Do these steps?", "What it loses does not come back. Type dev to let it go"]
    assert {each.name for each in LEFT.stacks} == set(cloud.stacks)


@pytest.mark.parametrize(
    ("answers", "ran", "last"),
    [
        ([False], [], "nothing was changed"),
        (
            [True, "yes"],
            [("dev/platform", "exclusively")],
            "stopped before step 2; the next deployment goes on here",
        ),
    ],
)
def test_who_does_not_agree_changes_nothing_more(
    answers: list[bool | str], ran: list[tuple[str, ...]], last: str, tmp_path: Path
) -> None:
    cloud, person = standing(), FakePerson(list(answers))
    assert not deployment(cloud, LEFT, person, tmp_path).run()
    assert cloud.ran == ran
    assert person.told[-1] == last
    # and the next one goes on from there
    again = FakePerson([True, "dev"])
    assert deployment(cloud, LEFT, again, tmp_path).run()
    assert len(again.shown[0].steps) == 3 - len(ran)


def test_a_pipeline_fails_before_anything_where_a_step_needs_a_person(tmp_path: Path) -> None:
    cloud, person = standing(), FakePerson(is_there=False)
    assert not deployment(cloud, LEFT, person, tmp_path).run()
    assert cloud.ran == []
    assert person.told == ["step 2 of the plan needs a person; nothing was changed. Deploy it from a terminal."]


@pytest.mark.parametrize("fails_at", ["dev-platform", "dev-storage"])
def test_after_a_failure_the_next_one_goes_on_from_what_stands(fails_at: str, tmp_path: Path) -> None:
    cloud = standing(fails_at=fails_at)
    assert not deployment(cloud, RELEASED, FakePerson([True]), tmp_path).run()
    cloud.fails_at = ""
    assert deployment(cloud, RELEASED, FakePerson([True]), tmp_path).run()
    assert {name: each.template for name, each in cloud.stacks.items()} == {
        each.name: each.template for each in RELEASED.stacks
    }


def test_what_cloudformation_works_on_is_waited_for(tmp_path: Path) -> None:
    cloud, person = standing(statuses={"dev-storage": "UPDATE_IN_PROGRESS"}), FakePerson([True])
    assert deployment(cloud, RELEASED, person, tmp_path).run()
    assert person.told[0] == "CloudFormation works on dev-storage; waiting until it has ended"


def test_a_refused_plan_asks_nothing(tmp_path: Path) -> None:
    cloud, person = standing(statuses={"dev-storage": "UPDATE_ROLLBACK_FAILED"}), FakePerson()
    assert not deployment(cloud, RELEASED, person, tmp_path).run()
    assert (cloud.ran, person.asked, len(person.shown)) == ([], [], 1)


def test_a_plan_that_is_stale_by_the_time_it_is_agreed_to_changes_nothing(tmp_path: Path) -> None:
    cloud = standing()

    def deployed_by_another() -> None:
        cloud.stacks["dev-network"] = stack("network", exports=["vpc", "more"])

    person = FakePerson([True], meanwhile=deployed_by_another)
    assert not deployment(cloud, RELEASED, person, tmp_path).run()
    assert cloud.ran == []
    assert person.told[-1] == (
        "dev-network changed since the plan was shown; nothing was changed. Deploy again to see the plan from there."
    )


def test_files_that_change_after_the_plan_was_shown_are_not_deployed(tmp_path: Path) -> None:
    cloud = standing()
    person = FakePerson([True], meanwhile=lambda: (tmp_path / "more").write_text("x", encoding="utf-8"))
    found = deployment(cloud, RELEASED, person, tmp_path)
    found = replace(found, head=replace(found.head, side=Side(label="cdk.out", assembly=found._digest())))
    assert not found.run()
    assert cloud.ran == []
    assert person.told[-1].startswith("the files of cdk.out changed since the plan was shown; nothing was changed.")


def test_what_holds_a_deletion_is_said(tmp_path: Path) -> None:
    cloud, person = standing(holds="dev-storage"), FakePerson([True, "dev"])
    assert not deployment(cloud, LEFT, person, tmp_path).run()
    assert person.told[-2:] == [
        "dev-storage: Vpc (AWS::EC2::VPC): in use",
        "dev-storage is DELETE_FAILED; take away what holds it, and delete it again. Nothing else of it is lost.",
    ]


def destruction(cloud: Cloud, person: FakePerson) -> Destruction:
    head = Source(assembly=BASE, side=Side(label="working tree"))
    return Destruction(aws=lambda: cloud, head=head, person=person, pause=lambda _: None)


def _protected() -> Cloud:
    cloud = standing()
    cloud.stacks = {name: replace(each, termination_protection=True) for name, each in cloud.stacks.items()}
    return cloud


def test_a_destroy_deletes_each_stack_after_those_that_use_it() -> None:
    cloud, person = _protected(), FakePerson(["dev"])
    assert destruction(cloud, person).run()
    assert cloud.stacks == {}
    assert [each for each in cloud.ran if each[0] == "delete_stack"] == [
        ("delete_stack", "dev-platform"),
        ("delete_stack", "dev-storage"),
        ("delete_stack", "dev-network"),
    ]
    assert person.asked == ["Type dev to destroy it"]
    assert person.told[-1] == "dev: no stack of it is left."
    # and there is nothing to do for another one
    again = FakePerson()
    assert destruction(cloud, again).run()
    assert [each.verdict for each in again.shown] == ["Nothing is deployed."]


@pytest.mark.parametrize("typed", ["", "yes", "Dev"])
def test_nothing_is_destroyed_but_by_the_name(typed: str) -> None:
    cloud, person = _protected(), FakePerson([typed])
    assert not destruction(cloud, person).run()
    assert cloud.ran == []
    assert person.told == ["nothing was changed"]


def test_a_plan_of_a_destroy_changes_nothing() -> None:
    cloud, person = _protected(), FakePerson()
    plan = destruction(cloud, person).planned()
    assert [(each.action, *each.stacks) for each in plan.steps] == [
        ("delete", "dev-platform", "dev-storage", "dev-network")
    ]
    assert (cloud.ran, person.shown) == ([], [])


def test_a_destroy_that_is_held_goes_on_where_it_was() -> None:
    cloud, person = standing(holds="dev-storage"), FakePerson(["dev"])
    assert not destruction(cloud, person).run()
    assert set(cloud.stacks) == {"dev-storage", "dev-network"}
    assert person.told[-1] == "What is gone is gone; destroy again, which goes on from what stands."
    cloud.holds = ""
    assert destruction(cloud, FakePerson(["dev"])).run()
    assert cloud.stacks == {}


def test_a_destroy_of_what_another_stack_uses_is_refused() -> None:
    cloud, person = standing(), FakePerson()
    cloud.stacks["theirs"] = replace(stack("theirs", imports=["vpc"]), name="theirs")
    assert not destruction(cloud, person).run()
    assert (cloud.ran, person.asked) == ([], [])
    (refusal,) = person.shown[0].refusals
    assert refusal.why == "dev-network would change or drop its export vpc, which theirs imports."


def test_what_is_deployed_while_a_destroy_is_agreed_to_is_not_destroyed() -> None:
    cloud = standing()

    class Slow(FakePerson):
        def types(self, question: str, word: str) -> bool:
            cloud.stacks["dev-network"] = stack("network", exports=["vpc", "more"])
            return super().types(question, word)

    person = Slow(["dev"])
    assert not destruction(cloud, person).run()
    assert cloud.ran == []
    assert person.told == ["what is deployed changed since it was shown; nothing was changed. Destroy it again."]
