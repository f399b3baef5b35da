"""Steps run one after the other, and continue after an interruption; nothing else is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.checks.policy import VERBS, question
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.review.standing import digest_of
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack
from hyperpod_cdk.templates.values import imports
from hyperpod_cdk.transitions.cdk import CdkFailedError
from hyperpod_cdk.transitions.model import Plan
from hyperpod_cdk.transitions.run import Deployment, Destruction, delete_stacks
from tests.support.picomatch import matches
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
    reasons: dict[str, str] = field(default_factory=dict)
    silent: dict[str, int] = field(default_factory=dict)
    """How often an operation is not answered yet, by its name, with a stack's after it where it is of one."""
    looks: int = 0
    change_sets: list[str] = field(default_factory=list)
    leaves: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Events of resources that an update of a stack could not delete, by the stack."""
    cleaned: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Events of updates that have ended, the newest first."""

    def call(self, service: str, operation: str, **params: Any) -> Any:
        assert (service, operation) == ("cloudformation", "get_template")
        return {"TemplateBody": dict(self.stacks[params["StackName"]].template)}

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        assert service == "cloudformation"
        if operation == "describe_stacks":
            return [self._described(name) for name in self.stacks]
        if operation == "list_imports":
            found = [name for name, each in self.stacks.items() if params["ExportName"] in imports(each)]
            if not found:
                said = f"Export '{params['ExportName']}' is not imported by any stack."
                raise Refused(said, code="ValidationError", message=said)
            return found
        assert (operation, key) == ("describe_stack_events", "StackEvents")
        self._answers(operation)
        of = {"StackId": params["StackName"], "EventId": "0"}
        whole = {**of, "PhysicalResourceId": params["StackName"], "ResourceType": "AWS::CloudFormation::Stack"}
        began = {**whole, "LogicalResourceId": "dev-storage", "ResourceStatus": "DELETE_IN_PROGRESS"}
        held = {**of, "ResourceStatus": "DELETE_FAILED", "ResourceType": "AWS::EC2::VPC"}
        return [
            *self.cleaned.get(params["StackName"], []),
            {**held, "LogicalResourceId": "Vpc", "ResourceStatusReason": "in use"},
            began,
            {**held, "LogicalResourceId": "Old", "ResourceStatusReason": "in use a year ago"},
            began,
        ]

    def send(self, service: str, operation: str, **params: Any) -> Any:
        assert service == "cloudformation"
        name = params["StackName"].split("/")[-1]
        self._answers(f"{operation} {name}")
        if operation == "describe_stacks":
            self.looks += 1
            gone = {"StackName": name, "StackStatus": "DELETE_COMPLETE", "StackId": params["StackName"]}
            return {"Stacks": [self._described(name) if name in self.stacks else gone]}
        self.ran.append((operation, name))
        if operation == "update_termination_protection":
            wanted = params["EnableTerminationProtection"]
            self.stacks[name] = replace(self.stacks[name], termination_protection=wanted)
        elif name in self.reasons:
            pass
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
            **({"StackStatusReason": self.reasons[name]} if self.reasons.get(name) and self._was_asked(name) else {}),
            "EnableTerminationProtection": found.termination_protection,
        }

    def _was_asked(self, name: str) -> bool:
        return ("delete_stack", name) in self.ran

    def _answers(self, what: str) -> None:
        if self.silent.get(what, 0) > 0:
            self.silent[what] -= 1
            raise NotAnswered("Throttling: Rate exceeded")

    def _refuse(self, dropped: set[str], name: str) -> None:
        used = {each for other, it in self.stacks.items() if other != name for each in imports(it)}
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
        concurrency, option, name, *others = rest[rest.index("--concurrency") + 1 :]
        assert (concurrency, option, others) == (
            "3",
            "--change-set-name",
            ["--require-approval", "never", "--progress", "events"],
        )
        assert name not in self.cloud.change_sets, "another deployment would execute it"
        self.cloud.change_sets.append(name)
        self.cloud.ran.append((*patterns, *(["exclusively"] if is_exclusive else [])))
        for each in self.head.stacks:
            if not any(matches(each.shown, pattern) for pattern in patterns):
                continue
            if each.name == self.cloud.fails_at:
                if each.name in self.cloud.leaves:
                    rolled_back = [_of_stack(each.name, "UPDATE_ROLLBACK_IN_PROGRESS"), *self.cloud.leaves[each.name]]
                    self.cloud.cleaned[each.name] = _ended(each.name, rolled_back)
                raise CdkFailedError("deploy", 1, "it failed")
            old = self.cloud.stacks.get(each.name)
            if old is not None:
                self.cloud._refuse(set(old.outputs) - set(each.outputs), each.name)
            self.cloud.stacks[each.name] = each
            if old is not None and each.name in self.cloud.leaves:
                self.cloud.cleaned[each.name] = _ended(each.name, self.cloud.leaves.pop(each.name))


def _of_stack(name: str, status: str) -> dict[str, Any]:
    """Return an event of a stack itself."""
    of = {"StackId": name, "PhysicalResourceId": name, "ResourceType": "AWS::CloudFormation::Stack"}
    return {**of, "LogicalResourceId": name, "ResourceStatus": status}


def _ended(name: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of an update that has ended well, the newest first."""
    rows = [_of_stack(name, "UPDATE_IN_PROGRESS"), *events, _of_stack(name, "UPDATE_COMPLETE")]
    return [{"StackId": name, **each, "EventId": f"new-{number}"} for number, each in enumerate(rows)][::-1]


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
    assert person.told[-1] == "dev: the deployed stacks match the file."


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


_CLAIM = {
    "LogicalResourceId": "Claim",
    "PhysicalResourceId": "claim-1",
    "ResourceType": "Custom::AWSCDK-EKS-KubernetesResource",
}
_FAILS = {**_CLAIM, "ResourceStatus": "DELETE_FAILED", "ResourceStatusReason": "a pod mounts it"}


def test_what_an_update_leaves_behind_stops_the_next_step(tmp_path: Path) -> None:
    # "CloudFormation tries to delete a resource three times before CloudFormation skips the resource"
    cloud, person = standing(leaves={"dev-platform": [_FAILS] * 3}), FakePerson([True])
    assert not deployment(cloud, RELEASED, person, tmp_path).run()
    assert cloud.ran == [("dev/platform", "exclusively")]
    assert person.told[-2:] == [
        (
            "dev-platform: Claim (Custom::AWSCDK-EKS-KubernetesResource claim-1) could not be deleted: a pod"
            " mounts it. CloudFormation gave up and left it in the account; it belongs to no stack."
        ),
        "Delete by hand what was left behind, then deploy again, which continues from here.",
    ]
    # what was said once is no reason to stop again
    again = FakePerson([True])
    assert deployment(cloud, RELEASED, again, tmp_path).run()
    assert cloud.ran[1:] == [("dev/*",)]


def test_what_a_rollback_leaves_behind_is_reported_where_a_step_fails(tmp_path: Path) -> None:
    cloud, person = standing(leaves={"dev-platform": [_FAILS] * 3}), FakePerson([True])
    cloud.fails_at = "dev-platform"
    assert not deployment(cloud, RELEASED, person, tmp_path).run()
    assert person.told[-3:] == [
        (
            "dev-platform: Claim (Custom::AWSCDK-EKS-KubernetesResource claim-1) could not be deleted: a pod"
            " mounts it. CloudFormation gave up and left it in the account; it belongs to no stack."
        ),
        "Delete by hand what was left behind, then deploy again, which continues from here.",
        "Completed steps remain. Correct the cause and deploy again, which continues from the current state.",
    ]


def test_what_is_deleted_by_another_try_is_gone(tmp_path: Path) -> None:
    events = [_FAILS, {**_CLAIM, "ResourceStatus": "DELETE_COMPLETE"}]
    cloud = standing(leaves={"dev-platform": events})
    assert deployment(cloud, RELEASED, FakePerson([True]), tmp_path).run()


@pytest.mark.parametrize(
    ("looks", "code", "why", "said"),
    [
        # a look before the step and one after it
        ([True, False], "Throttling", "Rate exceeded", "is deleted will not be checked: Rate exceeded"),
        ([False, True], "Throttling", "Rate exceeded", "was deleted cannot be read: Rate exceeded"),
        ([True, False], "ValidationError", "Stack [dev-platform] does not exist", None),
        (
            [True, False],
            "Weird",
            "The region does not exist",
            "is deleted will not be checked: The region does not exist",
        ),
    ],
)
def test_events_that_cannot_be_read_are_reported(
    looks: list[bool], code: str, why: str, said: str | None, tmp_path: Path
) -> None:
    cloud, person = standing(), FakePerson([True])
    silent = iter(looks)
    answers = cloud.pages

    def pages(service: str, operation: str, key: str, **params: Any) -> list[Any]:
        if operation == "describe_stack_events" and next(silent, False):
            raise Refused(why, code=code, message=why)
        return answers(service, operation, key, **params)

    cloud.pages = pages  # type: ignore[method-assign]  # a fake that stops answering once
    assert deployment(cloud, RELEASED, person, tmp_path).run()
    told = [each for each in person.told if "whether everything" in each]
    assert told == ([f"dev-platform: whether everything {said}"] if said else [])


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
    assert person.asked == ["Do these steps?", "What is lost cannot be restored. Type dev to confirm"]
    assert {each.name for each in LEFT.stacks} == set(cloud.stacks)


@pytest.mark.parametrize(
    ("answers", "ran", "last"),
    [
        ([False], [], "nothing was changed"),
        (
            [True, "yes"],
            [("dev/platform", "exclusively")],
            "stopped before step 2; the next deployment continues here",
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


class Late(FakeCdk):
    """Ends with an error because somebody else deploys the same stack."""

    def run(self, arguments: Sequence[str]) -> None:  # noqa: ARG002 - as the class that it stands for
        self.cloud.statuses["dev-platform"] = "UPDATE_IN_PROGRESS"
        raise CdkFailedError("deploy", 1, "dev-platform is in UPDATE_IN_PROGRESS state and can not be updated.")


def test_what_a_deployment_beside_this_one_works_on_is_reported(tmp_path: Path) -> None:
    cloud, person = standing(), FakePerson([True])
    assert not replace(deployment(cloud, RELEASED, person, tmp_path), cdk=Late(cloud, RELEASED)).run()
    assert person.told[-3:] == [
        "'cdk deploy' ended with exit code 1; the lines above and the events of the stack show the cause.",
        (
            "CloudFormation works on dev-platform, for this deployment or for another one at the same time; the"
            " next deployment waits until that has ended."
        ),
        "Completed steps remain. Correct the cause and deploy again, which continues from the current state.",
    ]
    assert deployment(cloud, RELEASED, FakePerson([True]), tmp_path).run()


def test_what_cloudformation_works_on_is_waited_for(tmp_path: Path) -> None:
    cloud, person = standing(statuses={"dev-storage": "UPDATE_IN_PROGRESS"}), FakePerson([True])
    assert deployment(cloud, RELEASED, person, tmp_path).run()
    assert person.told[0] == "CloudFormation works on dev-storage; waiting until it has ended"


def test_a_stack_of_an_extension_is_waited_for(tmp_path: Path) -> None:
    head = assembly(*BASE.stacks, stack("results"))
    cloud, person = standing(head, statuses={"dev-results": "UPDATE_IN_PROGRESS"}), FakePerson()
    assert deployment(cloud, head, person, tmp_path).run()
    waits = "CloudFormation works on dev-results; waiting until it has ended"
    assert person.told == [waits]
    assert person.shown[0].refusals == ()


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


def in_folder(cloud: Cloud, person: FakePerson, folder: Path) -> Deployment:
    """Return a deployment of an assembly that lies in a folder of the user's, as --head names it."""
    found = deployment(cloud, RELEASED, person, folder)
    return replace(found, head=replace(found.head, side=Side(label="cdk.out", assembly=digest_of(folder))))


@dataclass
class Reading(FakeCdk):
    """Keeps what lies in the folder that it is to deploy."""

    found: Mapping[str, str] = field(default_factory=dict)

    def run(self, arguments: Sequence[str]) -> None:
        app = Path(arguments[arguments.index("--app") + 1])
        self.found = {each.name: each.read_text(encoding="utf-8") for each in app.iterdir() if each.is_file()}
        # the CDK CLI keeps the archives of assets there
        (app / ".cache").mkdir(exist_ok=True)
        super().run(arguments)


def test_what_was_shown_is_deployed_whoever_writes_into_the_folder_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("shown", encoding="utf-8")
    # of a CDK CLI that deploys the same folder: it goes away when that ends
    lock = tmp_path / "read.4711.1.lock"
    cloud = standing()

    def somebody_else() -> None:
        lock.unlink()
        (tmp_path / "manifest.json").write_text("another", encoding="utf-8")
        (tmp_path / "more").write_text("x", encoding="utf-8")

    found = in_folder(cloud, FakePerson([True], meanwhile=somebody_else), tmp_path)
    lock.write_text("4711", encoding="utf-8")
    cdk = Reading(cloud, found.head.assembly)
    assert replace(found, cdk=cdk).run()
    assert cdk.found == {"manifest.json": "shown"}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["manifest.json", "more"]


def test_files_that_change_while_they_are_read_are_not_deployed(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("read", encoding="utf-8")
    cloud, person = standing(), FakePerson()
    found = in_folder(cloud, person, tmp_path)
    (tmp_path / "manifest.json").write_text("another", encoding="utf-8")
    with pytest.raises(AssemblyError) as refused:
        found.run()
    assert str(refused.value) == (
        "cdk.out: its files changed while they were read; nothing was deployed. Run it again, and synthesize into"
        " a folder that no other process writes"
    )
    assert (cloud.ran, person.shown) == ([], [])


def test_what_holds_a_deletion_is_reported(tmp_path: Path) -> None:
    cloud, person = standing(holds="dev-storage"), FakePerson([True, "dev"])
    assert not deployment(cloud, LEFT, person, tmp_path).run()
    assert person.told[-2:] == [
        "dev-storage: Vpc (AWS::EC2::VPC): in use",
        (
            "dev-storage is DELETE_FAILED; remove what prevents the deletion, and delete it again. Nothing else "
            "of it is lost."
        ),
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
    assert person.told[-2:] == [
        "dev: deleted in us-east-1: dev-platform, dev-storage and dev-network.",
        "Stacks in other Regions, and stacks of an extension that is no longer in the file, are not deleted.",
    ]
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
    assert person.told[-1] == (
        "Deleted resources remain deleted. Run destroy again, which continues from the current state. "
        "'hyperpod-cdk recover dev' can leave behind what cannot be deleted."
    )
    cloud.holds = ""
    assert destruction(cloud, FakePerson(["dev"])).run()
    assert cloud.stacks == {}


def test_a_destroy_of_what_another_stack_uses_is_refused() -> None:
    cloud, person = standing(), FakePerson()
    cloud.stacks["theirs"] = replace(stack("theirs", imports=["vpc"]), name="theirs")
    assert not destruction(cloud, person).run()
    assert (cloud.ran, person.asked) == ([], [])
    (refusal,) = person.shown[0].refusals
    assert refusal.why == "dev-network would change or remove its export vpc, which theirs imports."


@dataclass
class Meddled(FakePerson):
    """Somebody does something while a name is typed."""

    def types(self, question: str, word: str) -> bool:
        self.meanwhile()
        return super().types(question, word)


def _deployed(cloud: Cloud) -> None:
    cloud.stacks["dev-network"] = stack("network", exports=["vpc", "more"])


def _protects(cloud: Cloud) -> None:
    cloud.stacks["dev-network"] = replace(cloud.stacks["dev-network"], termination_protection=True)


def _imports(cloud: Cloud) -> None:
    cloud.stacks["theirs"] = replace(stack("theirs", imports=["vpc"]), name="theirs")


def _updates(cloud: Cloud) -> None:
    cloud.statuses["dev-network"] = "UPDATE_IN_PROGRESS"


def _updated(cloud: Cloud) -> None:
    cloud.statuses["dev-network"] = "UPDATE_COMPLETE"


@pytest.mark.parametrize(
    ("meanwhile", "changed"),
    [
        (_deployed, "what is deployed changed since it was shown"),
        (_protects, "what is deployed changed since it was shown"),
        (
            _imports,
            "since it was shown, dev-network would change or remove its export vpc, which theirs imports",
        ),
        (_updates, "since it was shown, dev-network is UPDATE_IN_PROGRESS: CloudFormation works on it"),
        (_updated, "what is deployed changed since it was shown"),
    ],
)
def test_what_changes_while_a_destroy_is_agreed_to_is_not_destroyed(
    meanwhile: Callable[[Cloud], None], changed: str
) -> None:
    cloud = standing()
    person = Meddled(["dev"], meanwhile=lambda: meanwhile(cloud))
    assert not destruction(cloud, person).run()
    assert cloud.ran == []
    assert person.told == [f"{changed}; nothing was changed. Destroy it again."]


def test_what_is_protected_while_a_deletion_is_agreed_to_is_not_deleted(tmp_path: Path) -> None:
    cloud = standing()

    class Typing(FakePerson):
        def types(self, question: str, word: str) -> bool:
            storage = cloud.stacks["dev-storage"]
            cloud.stacks["dev-storage"] = replace(storage, termination_protection=True)
            return super().types(question, word)

    person = Typing([True, "dev"])
    assert not deployment(cloud, LEFT, person, tmp_path).run()
    assert cloud.ran == [("dev/platform", "exclusively")]
    assert person.told[-1] == (
        "the remaining steps are not the steps that were shown; stopped before step 2. Deploy again to see "
        "the plan from there."
    )


@dataclass
class Deleted:
    """What ``delete_stacks`` did with dev-storage and, beside it, dev-other."""

    cloud: Cloud
    told: list[str] = field(default_factory=list)
    pauses: int = 0

    def run(self, *names: str, shown: Assembly | None = None) -> bool:
        def pause(_: float) -> None:
            self.pauses += 1

        shown = shown or assembly(*self.cloud.stacks.values())
        return delete_stacks(self.cloud, names or ("dev-storage",), shown, say=self.told.append, pause=pause)


ON_AGAIN = "dev-storage: its termination protection is enabled again"
LIFTED: list[tuple[str, ...]] = [("update_termination_protection", "dev-storage")]


def _kept(*, protected: bool = True, **more: Any) -> Deleted:
    made = (stack("storage", protected=protected), stack("other"))
    return Deleted(Cloud(stacks={each.name: each for each in made}, **more))


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "DELETE_FAILED"])
@pytest.mark.parametrize("protected", [False, True])
def test_a_deletion_that_is_refused_ends(status: str, protected: bool) -> None:  # noqa: FBT001 - of the table
    # botocore, waiter StackDeleteComplete; the reason as users report it (aws-cdk issue 604)
    reason = "Export dev-vpc cannot be deleted as it is in use by theirs"
    found = _kept(protected=protected, statuses={"dev-storage": status}, reasons={"dev-storage": reason})
    assert not found.run()
    held = ["dev-storage: Vpc (AWS::EC2::VPC): in use"] if status == "DELETE_FAILED" else []
    way = (
        (
            "dev-storage is DELETE_FAILED; remove what prevents the deletion, and delete it again. Nothing else "
            "of it is lost."
        )
        if held
        else f"dev-storage was not deleted and is {status}; remove what prevents the deletion, and delete it again."
    )
    assert found.told == [*held, f"dev-storage: {reason}", way, *([ON_AGAIN] if protected else [])]
    assert found.cloud.stacks["dev-storage"].termination_protection is protected
    assert found.pauses == 0


def test_a_look_right_after_the_call_may_be_of_before() -> None:
    class Late(Cloud):
        def send(self, service: str, operation: str, **params: Any) -> Any:
            if operation == "delete_stack":
                self.ran.append((operation, "dev-storage"))
                return {}
            if operation == "describe_stacks" and self.looks == 3:
                self.stacks.pop("dev-storage", None)
            return super().send(service, operation, **params)

    for status in ("CREATE_COMPLETE", "DELETE_FAILED"):
        found = Deleted(Late(stacks={"dev-storage": stack("storage")}, statuses={"dev-storage": status}))
        assert found.run()
        assert (found.told, found.pauses) == (["dev-storage: deleted"], 2)


def test_a_stack_that_stays_as_it_was_is_not_deleted() -> None:
    found = _kept(reasons={"dev-storage": ""})
    assert not found.run()
    assert found.told == [
        "dev-storage: CloudFormation gives no reason",
        "dev-storage was not deleted and is CREATE_COMPLETE; remove what prevents the deletion, and delete it again.",
        ON_AGAIN,
    ]
    assert found.pauses == 5


def test_protection_is_put_back_where_nothing_was_deleted() -> None:
    found = _kept(silent={"delete_stack dev-storage": 1})
    assert not found.run()
    assert found.told == [ON_AGAIN, "dev-storage could not be deleted: Throttling: Rate exceeded"]
    assert found.cloud.ran == LIFTED * 2
    found = _kept(holds="dev-storage")
    assert not found.run()
    assert found.told == [
        "dev-storage: Vpc (AWS::EC2::VPC): in use",
        (
            "dev-storage is DELETE_FAILED; remove what prevents the deletion, and delete it again. Nothing else "
            "of it is lost."
        ),
        ON_AGAIN,
    ]
    assert found.cloud.stacks["dev-storage"].termination_protection


def test_protection_that_cannot_be_put_back_is_reported() -> None:
    class Denied(Cloud):
        def send(self, service: str, operation: str, **params: Any) -> Any:
            if params.get("EnableTerminationProtection"):
                raise NotAnswered("AccessDenied: no")
            return super().send(service, operation, **params)

    found = Deleted(Denied(stacks={"dev-storage": stack("storage", protected=True)}, holds="dev-storage"))
    assert not found.run()
    assert found.told[-1] == (
        "dev-storage: its termination protection was disabled and could not be enabled again: AccessDenied: "
        "no. Where it is "
        "not deleted, 'aws cloudformation update-termination-protection --enable-termination-protection --stack-name "
        "dev-storage --region us-east-1' protects it again."
    )


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        (_protects, "dev-network is protected against deletion since it was shown"),
        (_updates, "dev-network is UPDATE_IN_PROGRESS since it was shown: CloudFormation works on it"),
    ],
)
def test_what_changes_before_its_turn_is_not_deleted(now: Callable[[Cloud], None], changed: str) -> None:
    found = Deleted(standing())
    shown = assembly(*found.cloud.stacks.values())
    now(found.cloud)
    assert not found.run("dev-network", shown=shown)
    assert (found.told, found.cloud.ran) == ([f"{changed}; it was not deleted"], [])


def test_what_holds_a_deletion_may_not_be_readable() -> None:
    found = _kept(protected=False, holds="dev-storage", silent={"describe_stack_events": 1})
    assert not found.run("dev-storage", "dev-other")
    assert found.told == [
        "dev-storage: what could not be deleted cannot be read: Throttling: Rate exceeded",
        (
            "dev-storage is DELETE_FAILED; remove what prevents the deletion, and delete it again. Nothing else "
            "of it is lost."
        ),
        "dev-other: deleted",
    ]


@pytest.mark.parametrize(("times", "is_gone"), [(5, True), (6, False)])
def test_a_deletion_that_cannot_be_followed(times: int, is_gone: bool) -> None:  # noqa: FBT001 - of the table
    class Silent(Cloud):
        def send(self, service: str, operation: str, **params: Any) -> Any:
            if operation == "delete_stack" and params["StackName"].endswith("dev-storage"):
                self.silent["describe_stacks dev-storage"] = times
            return super().send(service, operation, **params)

    made = (stack("storage"), stack("other"))
    found = Deleted(Silent(stacks={each.name: each for each in made}))
    assert found.run("dev-storage", "dev-other") is is_gone
    unread = "dev-storage: the progress of its deletion cannot be read: Throttling: Rate exceeded"
    assert found.told == ["dev-other: deleted", "dev-storage: deleted" if is_gone else unread]


@dataclass
class Noted(Cloud):
    """Notes every operation."""

    asked: set[str] = field(default_factory=set)

    def call(self, service: str, operation: str, **params: Any) -> Any:
        self.asked.add(f"{service}:{operation}")
        return super().call(service, operation, **params)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        self.asked.add(f"{service}:{operation}")
        return super().pages(service, operation, key, **params)

    def send(self, service: str, operation: str, **params: Any) -> Any:
        self.asked.add(f"{service}:{operation}")
        return super().send(service, operation, **params)


@pytest.mark.parametrize("verb", ["deploy", "destroy"])
def test_the_rights_of_a_verb_are_those_that_it_uses(verb: str, tmp_path: Path) -> None:
    storage = replace(BASE.by_name["dev-storage"], termination_protection=True)
    base = replace(BASE, stacks=tuple(storage if each.name == storage.name else each for each in BASE.stacks))
    asked: set[str] = set()
    for holds in ("", "dev-storage"):
        cloud = Noted(stacks={each.name: each for each in base.stacks}, holds=holds)
        if verb == "deploy":
            deployment(cloud, LEFT, FakePerson([True, "dev"]), tmp_path).run()
        else:
            destruction(cloud, FakePerson(["dev"])).run()
        asked |= cloud.asked
    (rights,) = (each for each in VERBS if each.name == verb)
    of_itself = {"sts:GetCallerIdentity", "sagemaker:DescribeCluster"}
    # asked where a stack makes again what it has retained, or a file system is to grow: test_second_life.py
    of_itself |= {"s3:ListAllMyBuckets", "logs:DescribeLogGroups", "cloudformation:ListStackResources"}
    of_itself |= {"ec2:DescribeVpcs", "fsx:DescribeDataRepositoryAssociations", "fsx:DescribeFileSystems"}
    # asked whose a stack is that has no resources: test_recovery.py
    of_itself |= {"cloudformation:ListChangeSets"}
    # asked where a group comes in the place of another: test_room.py
    of_itself |= {"sagemaker:ListClusters", "sagemaker:DescribeTrainingPlan", *question("quota").actions}
    names = {f"{service}:{operation.title().replace('_', '')}" for service, _, operation in map(_parts, asked)}
    assert names == set(rights.actions) - of_itself


def _parts(asked: str) -> tuple[str, str, str]:
    return asked.partition(":")


@dataclass
class Half(Cloud):
    """Tells nothing of stacks any more once a deletion was asked for, which it lets be."""

    def send(self, service: str, operation: str, **params: Any) -> Any:
        if operation == "describe_stacks" and any(each[0] == "delete_stack" for each in self.ran):
            return {"Stacks": []}
        return super().send(service, operation, **params)


def test_half_an_answer_in_the_middle_of_a_deletion_leaves_no_stack_unprotected() -> None:
    cloud = Half(stacks=_protected().stacks, reasons={"dev-platform": ""})
    person = FakePerson(["dev"])
    assert not destruction(cloud, person).run()
    assert all(each.termination_protection for each in cloud.stacks.values())
    unread = "the answer to cloudformation:DescribeStacks cannot be read"
    assert person.told[0].startswith(f"dev-platform: the progress of its deletion cannot be read: {unread}")
