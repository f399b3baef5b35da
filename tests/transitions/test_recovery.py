"""Stacks in a blocked state, the cause, and the solution, executed on the embedded CloudFormation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore import xform_name
from botocore.session import get_session
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk._cli.answers import answer_schema_text
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.policy import VERBS
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack
from hyperpod_cdk.transitions.model import Plan, Recovery, Stuck, Way
from hyperpod_cdk.transitions.pages import as_json, recovery_text
from hyperpod_cdk.transitions.recovering import Recovering
from hyperpod_cdk.transitions.recovery import read_recovery
from hyperpod_cdk.transitions.standing import WAYS, read_standing, read_to_destroy, way_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.faults import set_faults
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import stacks_of
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from rehearsal.tests.support.fake_cloudformation import Cloud

ACCOUNT, REGION = "111122223333", "us-west-2"
_MODEL = get_session().get_service_model("cloudformation")
_NAMES = {xform_name(name): name for name in _MODEL.operation_names}

AWS_SAYS = {
    # CloudFormation user guide, "Stack status codes", and for what leads out of each the page named beside it
    "CREATE_COMPLETE": Way.NONE_NEEDED,
    "UPDATE_COMPLETE": Way.NONE_NEEDED,
    "DELETE_COMPLETE": Way.NONE_NEEDED,
    "IMPORT_COMPLETE": Way.NONE_NEEDED,
    "IMPORT_ROLLBACK_COMPLETE": Way.NONE_NEEDED,  # "successfully rolled back to the previous template configuration"
    "CREATE_IN_PROGRESS": Way.WAIT,
    "UPDATE_IN_PROGRESS": Way.WAIT,
    "DELETE_IN_PROGRESS": Way.WAIT,
    "ROLLBACK_IN_PROGRESS": Way.WAIT,
    "UPDATE_ROLLBACK_IN_PROGRESS": Way.WAIT,
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": Way.WAIT,
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": Way.WAIT,
    "IMPORT_IN_PROGRESS": Way.WAIT,
    "IMPORT_ROLLBACK_IN_PROGRESS": Way.WAIT,
    "UPDATE_ROLLBACK_COMPLETE": Way.DEPLOY,  # "return to a previous working state": updatable
    "ROLLBACK_COMPLETE": Way.DEPLOY,  # "only a delete operation can be performed", which the CDK CLI does
    "ROLLBACK_FAILED": Way.DEPLOY,  # likewise; ``cdk rollback`` says "recreate this stack by running 'cdk deploy'"
    "REVIEW_IN_PROGRESS": Way.DELETE_NEVER_MADE,  # "an expected StackId but without any templates or resources"
    "CREATE_FAILED": Way.ROLL_BACK,  # API reference, RollbackStack
    "UPDATE_FAILED": Way.ROLL_BACK,  # likewise
    "UPDATE_ROLLBACK_FAILED": Way.CONTINUE_ROLLBACK,  # API reference, ContinueUpdateRollback
    "DELETE_FAILED": Way.DELETE,  # "Delete the stack again"; API reference, DeleteStack, RetainResources
    "IMPORT_ROLLBACK_FAILED": Way.NONE_KNOWN,  # no operation names it
}


def parameter(value: str, **more: Any) -> dict[str, Any]:
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}, **more}


def template(**resources: Any) -> dict[str, Any]:
    return {"Resources": resources}


@dataclass
class Api:
    """The embedded CloudFormation as the library asks it; what is told of a stack can be put in its place."""

    cloud: Cloud
    meanwhile: Callable[[str], None] = lambda _: None
    template: Mapping[str, Any] | None = None
    """In place of the one that CloudFormation has of a stack."""

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        assert service == "cloudformation"
        self.meanwhile(operation)
        try:
            found = self.cloud.ask(_NAMES[operation], **params)
        except ServiceError as error:
            raise NotAnswered(f"{error.code}: {error.message}") from None
        if operation == "get_template" and self.template is not None:
            return {"TemplateBody": self.template}
        if operation == "get_template" and found["TemplateBody"]:
            return {"TemplateBody": json.loads(found["TemplateBody"])}
        return found

    send = call

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        items: list[Any] = []
        token: dict[str, Any] = {}
        while True:
            page = self.call(service, operation, **params, **token)
            items += page[key]
            if not page.get("NextToken"):
                return items
            token = {"NextToken": page["NextToken"]}


@dataclass
class Person:
    """Answers from a list, and keeps what was shown and told."""

    answers: list[str] = field(default_factory=list)
    is_there: bool = True
    shown: list[Recovery] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def show(self, plan: Plan) -> None:
        raise AssertionError(f"a recovery shows no plan: {plan}")

    def say(self, line: str) -> None:
        self.told.append(line)

    def agrees(self, question: str) -> bool:
        self.asked.append(question)
        self.meanwhile()
        return self.answers.pop(0) == "yes"

    def types(self, question: str, word: str) -> bool:
        self.asked.append(question)
        return self.answers.pop(0) == word


@dataclass
class Place:
    """An environment dev with stacks of templates, and the account in which they are deployed."""

    cloud: Cloud = field(default_factory=Cloud)
    templates: dict[str, Any] = field(default_factory=dict)

    def deploy(self, stack: str, body: dict[str, Any], **request: Any) -> str:
        self.templates[stack] = body
        return self.cloud.deploy(f"dev-{stack}", body, **request)

    def fail(self, stack: str, logical_id: str, when: str, times: int = 1) -> None:
        self.faults([(stack, logical_id, when, times)])

    def faults(self, rows: list[tuple[str, str, str, int]]) -> None:
        keys = ("stack", "logical_id", "when", "times")
        set_faults(self.cloud.context, [dict(zip(keys, (f"dev-{row[0]}", *row[1:]), strict=True)) for row in rows])

    def head(self) -> Source:
        stacks = tuple(
            Stack(name=f"dev-{name}", template=body, account=ACCOUNT, region=REGION, shown=f"dev/{name}")
            for name, body in self.templates.items()
        )
        return Source(assembly=Assembly(environment="dev", stacks=stacks), side=Side(label="working tree"))

    def read(self) -> Recovery:
        return read_recovery(Api(self.cloud), self.head())

    def recover(self, *answers: str, **more: Any) -> tuple[bool, Person]:
        person = Person(answers=list(answers), **more)
        api = Api(self.cloud)
        run = Recovering(
            aws=lambda: api, head=self.head(), person=person, show=person.shown.append, pause=lambda _: None
        )
        return run.run(), person

    def statuses(self) -> dict[str, str]:
        return {each.name: each.status for each in stacks_of(self.cloud.context).active()}

    def put(self, stack: str, status: str) -> None:
        """Put a stack into a status that the embedded CloudFormation does not reach by itself."""
        self.cloud.stack(f"dev-{stack}").set_status(status)


@pytest.fixture
def place() -> Place:
    return Place()


def only(recovery: Recovery) -> Stuck:
    (stuck,) = recovery.stacks
    return stuck


def test_the_way_out_of_each_status_is_known() -> None:
    statuses = set(_MODEL.shape_for("StackStatus").enum)  # type: ignore[attr-defined]  # botocore: an enum of strings
    assert set(WAYS) == set(AWS_SAYS) == statuses
    assert dict(WAYS) == AWS_SAYS
    assert way_of("SOMETHING_NEW") is Way.NONE_KNOWN


@dataclass
class HalfApi(Api):
    """Leaves a member out of what one operation lists."""

    operation: str = ""
    lost: str = ""

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        found = super().pages(service, operation, key, **params)
        if operation != self.operation:
            return found
        return [{name: value for name, value in each.items() if name != self.lost} for each in found]


@pytest.mark.parametrize(
    ("operation", "lost"),
    [("describe_stack_events", "ResourceStatus"), ("describe_stack_events", "LogicalResourceId")],
)
def test_half_an_answer_is_one_sentence(place: Place, operation: str, lost: str) -> None:
    stuck_rollback(place)
    said = f"^the state of the stacks cannot be read: the answer to CloudFormation cannot be read: '{lost}' is missing$"
    with pytest.raises(AssemblyError, match=said):
        read_recovery(HalfApi(place.cloud, operation=operation, lost=lost), place.head())


def test_of_a_state_that_aws_adds_nothing_is_claimed(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a")))
    place.put("storage", "HALTED")
    assert (only(place.read()).way, only(place.read()).does) == (
        Way.NONE_KNOWN,
        "Nothing here: hyperpod-cdk does not know the state HALTED; look it up in CloudFormation's user guide.",
    )


def test_nothing_is_to_be_recovered(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a")))
    assert recovery_text(place.read()) == "dev: Nothing needs to be recovered.\n"
    done, person = place.recover()
    assert (done, person.asked, person.told) == (True, [], [])


def _import(place: Place, body: dict[str, Any], *, is_executed: bool = True) -> str:
    """Import A, which is not there, into dev-one; give the status of the stack then."""
    row = {"LogicalResourceId": "A", "ResourceType": "AWS::SSM::Parameter", "ResourceIdentifier": {"Name": "a"}}
    named = {"StackName": "dev-one", "ChangeSetName": "hyperpod-cdk-takeover"}
    asked = {"ChangeSetType": "IMPORT", "TemplateBody": json.dumps(body), "ResourcesToImport": [row]}
    place.cloud.ask("CreateChangeSet", **named, **asked)
    if is_executed:
        place.cloud.ask("ExecuteChangeSet", **named)
        return str(place.cloud.settled("dev-one"))
    return place.statuses()["dev-one"]


IMPORTED = {
    "Type": "AWS::SSM::Parameter",
    "DeletionPolicy": "Retain",
    "Properties": {"Type": "String", "Name": "a", "Value": "a"},
}


def test_an_import_that_failed_leaves_a_new_stack_empty(place: Place) -> None:
    place.templates["one"] = template(A=IMPORTED)
    assert _import(place, template(A=IMPORTED)) == "IMPORT_ROLLBACK_COMPLETE"
    (blocker,) = read_standing(Api(place.cloud), place.head().assembly).blockers
    assert (blocker.why, blocker.what_works) == (
        "dev-one is IMPORT_ROLLBACK_COMPLETE and empty: an import created it and failed.",
        "'hyperpod-cdk recover dev' names the cause and deletes it; then plan again.",
    )
    assert recovery_text(place.read()) == (
        "dev: 1 solution to apply.\n"
        "\n"
        "dev-one is IMPORT_ROLLBACK_COMPLETE\n"
        "  cause: A (AWS::SSM::Parameter) could not be imported: there is no a.\n"
        "  does: Deletes the empty stack that an import created; 'import --takeover' or 'hyperpod-cdk deploy dev'"
        " creates it again.\n"
        "  $ aws cloudformation delete-stack --stack-name dev-one --region us-west-2\n"
    )
    done, person = place.recover("yes")
    assert (done, person.told, place.statuses()) == (True, ["dev-one: deleted"], {})


def test_an_empty_stack_with_other_imports_belongs_to_others(place: Place) -> None:
    place.templates["one"] = template(B=IMPORTED)
    _import(place, template(A=IMPORTED))
    (refusal,) = place.read().refusals
    assert refusal.why == (
        "dev-one is IMPORT_ROLLBACK_COMPLETE, and what was to be imported has no resource in common with the stack of "
        "that name."
    )


def test_an_import_that_failed_leaves_a_stack_that_stood_as_it_was(place: Place) -> None:
    place.deploy("one", template(B=parameter("b")))
    assert _import(place, template(A=IMPORTED, B=parameter("b"))) == "IMPORT_ROLLBACK_COMPLETE"
    assert recovery_text(place.read()) == "dev: Nothing needs to be recovered.\n"
    assert read_standing(Api(place.cloud), place.head().assembly).blockers == ()


def _begun(place: Place, name: str, body: dict[str, Any]) -> None:
    """Bring a stack into REVIEW_IN_PROGRESS: a change set that nobody executed."""
    asked = {"ChangeSetName": "by-hand", "ChangeSetType": "CREATE", "TemplateBody": json.dumps(body)}
    place.cloud.ask("CreateChangeSet", StackName=name, **asked)


def _taken_back(place: Place, name: str, body: dict[str, Any]) -> None:
    """Bring a stack into ROLLBACK_COMPLETE: a creation that failed."""
    (made,) = body["Resources"]
    place.fail(name.removeprefix("dev-"), made, "before_create")
    place.cloud.deploy(name, body)


THEIRS = template(Z={"Type": "AWS::SNS::Topic"})


@pytest.mark.parametrize(
    ("bring", "status"), [(_begun, "REVIEW_IN_PROGRESS"), (_taken_back, "ROLLBACK_COMPLETE")], ids=["begun", "failed"]
)
@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("is_in_file", [True, False])
def test_a_stack_without_resources_is_ours_only_by_its_template(
    place: Place,
    bring: Callable[[Place, str, dict[str, Any]], None],
    status: str,
    *,
    is_ours: bool,
    is_in_file: bool,
) -> None:
    body = template(B=parameter("b"))
    place.deploy("one", template(A=parameter("a")))
    bring(place, "dev-platform", body if is_ours else THEIRS)
    assert place.statuses()["dev-platform"] == status
    if is_in_file:
        place.templates["platform"] = body
    why = f"dev-platform is {status}, and its template has no resource in common with the stack of that name."
    said = (
        f"dev-platform is {status} and empty; nothing proves that it belongs to this environment. It stays unchanged."
    )
    refused = [why] if is_in_file and not is_ours else []
    api = Api(place.cloud)
    planned, ending = (read(api, place.head().assembly) for read in (read_standing, read_to_destroy))
    assert [each.why for each in planned.blockers] == refused
    assert [each.why for each in ending.blockers] == refused
    assert [each.why for each in place.read().refusals] == refused
    is_left = not is_in_file
    assert (said in ending.notes, said in place.read().notes) == (is_left, is_left)
    assert ("dev-platform" in ending.base.by_name) is (is_in_file and is_ours)


def test_a_stack_of_which_there_is_only_the_name_stays(place: Place) -> None:
    place.deploy("one", template(A=parameter("a")))
    _begun(place, "dev-platform", template(B=parameter("b")))
    place.cloud.ask("DeleteChangeSet", StackName="dev-platform", ChangeSetName="by-hand")
    place.templates["platform"] = template(B=parameter("b"))
    found = read_to_destroy(Api(place.cloud), place.head().assembly)
    assert (found.blockers, [each.name for each in found.base.stacks]) == ((), ["dev-one"])
    assert "It stays unchanged." in found.notes[-1]
    # and a deployment makes it
    assert read_standing(Api(place.cloud), place.head().assembly).blockers == ()


@pytest.mark.parametrize("is_new", [True, False])
def test_the_change_set_of_a_takeover_that_was_killed_goes(place: Place, *, is_new: bool) -> None:
    body = template(A=IMPORTED)
    if not is_new:
        place.deploy("one", template(B=parameter("b")))
        body = template(A=IMPORTED, B=parameter("b"))
    place.templates["one"] = body
    status = _import(place, body, is_executed=False)
    assert status == ("REVIEW_IN_PROGRESS" if is_new else "CREATE_COMPLETE")
    done, person = place.recover("yes")
    told = "dev-one: deleted" if is_new else "dev-one: change set hyperpod-cdk-takeover deleted"
    assert (done, person.told) == (True, [told])
    assert place.statuses() == ({} if is_new else {"dev-one": "CREATE_COMPLETE"})


ANEW = (
    "Nothing here: correct the cause; 'hyperpod-cdk deploy dev' deletes the rest of it and creates it again.",
    "",
)
HOLDS = "  loses: dev-storage / A (parameter A-1): it holds a value that others read"


@pytest.mark.parametrize(
    ("status", "does", "call", "loses"),
    [
        (
            "UPDATE_ROLLBACK_COMPLETE",
            (
                "Nothing here: it is in its state before the update. Correct the cause; 'hyperpod-cdk deploy dev' "
                "continues from there."
            ),
            "",
            False,
        ),
        ("ROLLBACK_COMPLETE", *ANEW, False),
        (
            "ROLLBACK_FAILED",
            (
                "Deletes the rest of a failed creation; correct the cause, and 'hyperpod-cdk deploy dev' "
                "creates it again."
            ),
            "delete-stack",
            True,
        ),
        (
            "CREATE_FAILED",
            "Rolls back the creation, as CloudFormation does by default: new resources are deleted, or retained.",
            "rollback-stack",
            True,
        ),
        (
            "UPDATE_FAILED",
            "Rolls back the update, as CloudFormation does by default: new resources are deleted, or retained.",
            "rollback-stack",
            False,
        ),
        (
            "UPDATE_ROLLBACK_FAILED",
            (
                "Continues the rollback: changed resources get their previous properties, new resources are deleted. "
                "If that fails again, it asks whether to skip only the failed resources."
            ),
            "continue-update-rollback",
            False,
        ),
        (
            "DELETE_FAILED",
            (
                "Finishes the deletion. If that fails again, it asks whether to leave only the failed "
                "resources behind. "
                "'hyperpod-cdk deploy dev' creates the stack again."
            ),
            "delete-stack",
            True,
        ),
        (
            "IMPORT_ROLLBACK_FAILED",
            (
                "Nothing here: AWS documents no call that ends this state; ask AWS Support. Do not delete"
                " it: no template that CloudFormation shows keeps A (parameter A-1) with DeletionPolicy: Retain."
            ),
            "",
            False,
        ),
    ],
)
def test_what_is_reported_about_each_status(place: Place, status: str, does: str, call: str, *, loses: bool) -> None:
    place.deploy("storage", template(A=parameter("a"), B=parameter("b", DeletionPolicy="Retain")))
    place.put("storage", status)
    told = recovery_text(place.read()).splitlines()
    typed = [f"  $ aws cloudformation {call} --stack-name dev-storage --region us-west-2"] if call else []
    assert told[2:] == [f"dev-storage is {status}", f"  does: {does}", *([HOLDS] if loses else []), *typed]


KEPT = parameter("a", DeletionPolicy="Retain")
_GOES = "Do not delete it: no template that CloudFormation shows keeps {} with DeletionPolicy: Retain."


@pytest.mark.parametrize(
    ("stands", "told", "said"),
    [
        (
            {"A": KEPT, "B": KEPT},
            template(A=KEPT, B=KEPT),
            (
                "Its template has DeletionPolicy: Retain for all that CloudFormation lists in it, A (parameter"
                " A-1) and B (parameter B-1), so a deletion removes nothing; AWS does not document whether"
                " CloudFormation accepts one in this state."
            ),
        ),
        # what was imported and could not be taken back need not be in the template that is told, if any is
        ({"A": KEPT, "B": KEPT}, template(A=KEPT), _GOES.format("B (parameter B-1)")),
        ({"A": KEPT}, {}, _GOES.format("A (parameter A-1)")),
    ],
)
def test_what_an_import_has_left_is_never_deleted(
    place: Place, stands: dict[str, Any], told: dict[str, Any], said: str
) -> None:
    place.deploy("one", template(**stands))
    place.put("one", "IMPORT_ROLLBACK_FAILED")
    api, head = Api(place.cloud, template=told), place.head()
    assert recovery_text(read_recovery(api, head)).splitlines()[2:] == [
        "dev-one is IMPORT_ROLLBACK_FAILED",
        f"  does: Nothing here: AWS documents no call that ends this state; ask AWS Support. {said}",
    ]
    assert [each.why for each in read_to_destroy(api, head.assembly).blockers] == [
        "dev-one is IMPORT_ROLLBACK_FAILED: it is unknown whether CloudFormation deletes it, and which resources."
    ]
    assert [each.why for each in read_standing(api, head.assembly).blockers] == [
        "dev-one is IMPORT_ROLLBACK_FAILED: it is unknown whether CloudFormation accepts a deployment of it."
    ]
    done, _ = place.recover("yes", "dev")
    assert (done, place.statuses()) == (False, {"dev-one": "IMPORT_ROLLBACK_FAILED"})


@pytest.mark.parametrize(("answers", "done"), [(("yes", "dev"), True), (("yes", "yes"), False)])
def test_what_is_left_of_a_creation_goes_once_it_is_named(
    place: Place, answers: tuple[str, ...], *, done: bool
) -> None:
    place.deploy("storage", template(A=parameter("a")))
    place.put("storage", "ROLLBACK_FAILED")
    was_done, person = place.recover(*answers)
    assert (was_done, person.told[0]) == (done, HOLDS)
    assert place.statuses() == ({} if done else {"dev-storage": "ROLLBACK_FAILED"})
    # in a pipeline nothing of it goes
    if not done:
        assert place.recover(is_there=False)[0] is False
        assert place.statuses() == {"dev-storage": "ROLLBACK_FAILED"}


def test_protection_is_put_back_where_a_deletion_fails(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a")))
    place.fail("storage", "A", "delete", 9)
    place.put("storage", "ROLLBACK_FAILED")
    place.cloud.ask("UpdateTerminationProtection", StackName="dev-storage", EnableTerminationProtection=True)
    done, person = place.recover("yes", "dev", "no")
    assert not done
    assert "dev-storage: its termination protection is enabled again" in person.told
    assert place.cloud.stack("dev-storage").termination_protection


def test_what_is_under_way_is_reported_with_its_last_event_and_waited_for(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a")))
    stack = place.cloud.stack("dev-storage")
    stack.begin("UPDATE_STACK", "UPDATE_IN_PROGRESS", None)
    stack.set_resource_status(stack.resources["A"], "UPDATE_IN_PROGRESS")
    at = [f"{event.timestamp:%Y-%m-%d %H:%M:%S} UTC" for event in stack.events[-2:]]
    told = place.read()
    assert told.verdict == "1 stack to wait for."
    assert only(told).does == (
        f"Waits: CloudFormation works on it since {at[0]}; last A (AWS::SSM::Parameter) UPDATE_IN_PROGRESS at {at[1]}."
        " 'aws cloudformation cancel-update-stack --stack-name dev-storage' rolls the update back."
    )
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        stack.set_status("UPDATE_COMPLETE")

    person, api = Person(), Api(place.cloud)
    run = Recovering(aws=lambda: api, head=place.head(), person=person, show=person.shown.append, pause=pause)
    assert run.run()
    assert (len(waits), [each.verdict for each in person.shown]) == (
        1,
        ["1 stack to wait for.", "Nothing needs to be recovered."],
    )
    assert person.told == ["CloudFormation works on dev-storage; waiting until it has ended"]


def test_the_first_failure_is_the_cause(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a"), B=parameter("b")))
    place.faults([("storage", "B", "before_update", 1)])
    place.deploy("storage", template(A=parameter("a2"), B=parameter("b2", DependsOn="A")))
    assert only(place.read()).cause == "B (AWS::SSM::Parameter) could not be changed: this resource was told to fail."


def stuck_rollback(place: Place, times: int = 1) -> None:
    """Leave dev-storage in UPDATE_ROLLBACK_FAILED: A cannot be rolled back ``times`` times."""
    place.deploy("storage", template(A=parameter("a"), B=parameter("b")))
    place.faults([("storage", "B", "after_update", 1), ("storage", "A", "rollback", times)])
    changed = template(A=parameter("a2"), B=parameter("b2", DependsOn="A"))
    assert place.deploy("storage", changed) == "UPDATE_ROLLBACK_FAILED"


LEFT = (
    "A (AWS::SSM::Parameter A-1) could not be deleted: this resource was told to fail. CloudFormation gave up and"
    " left it in the account; it belongs to no stack."
)


def test_what_the_clean_up_of_a_rollback_leaves_behind_is_reported(place: Place) -> None:
    """What the update had made and the rollback cannot delete is in no stack any more, and costs what it costs."""
    place.deploy("storage", template(B=parameter("b")))
    place.faults([("storage", "B", "before_update", 1), ("storage", "A", "delete", 3)])
    changed = template(A=parameter("a"), B=parameter("b2", DependsOn="A"))
    assert place.deploy("storage", changed) == "UPDATE_ROLLBACK_COMPLETE"
    found = place.read()
    assert [each.replace("A-2", "A-1") for each in only(found).held] == [LEFT]
    assert [line.split("(")[0] for line in recovery_text(found).splitlines() if "left:" in line] == ["  left: A "]
    # a later update that ends well says nothing of it any more
    assert place.deploy("storage", template(B=parameter("b3"))) == "UPDATE_COMPLETE"
    assert (place.read().stacks, place.read().notes) == ((), ())


def test_what_a_rollback_that_goes_on_leaves_behind_is_reported(place: Place) -> None:
    place.deploy("storage", template(B=parameter("b"), C=parameter("c")))
    place.faults([("storage", "C", "before_update", 1), ("storage", "B", "rollback", 1), ("storage", "A", "delete", 3)])
    changed = template(A=parameter("a"), B=parameter("b2", DependsOn="A"), C=parameter("c2", DependsOn=["A", "B"]))
    assert place.deploy("storage", changed) == "UPDATE_ROLLBACK_FAILED"
    done, person = place.recover("yes", "dev")
    assert (done, place.statuses()) == (True, {"dev-storage": "UPDATE_ROLLBACK_COMPLETE"})
    assert [each.replace("A-2", "A-1") for each in person.told][-2:] == [
        "dev-storage: UPDATE_ROLLBACK_COMPLETE",
        f"dev-storage: {LEFT}",
    ]


def test_what_an_update_that_ended_well_leaves_behind_is_a_note(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a"), B=parameter("b")))
    place.faults([("storage", "A", "delete", 3)])
    assert place.deploy("storage", template(B=parameter("b"))) == "UPDATE_COMPLETE"
    found = place.read()
    assert (found.stacks, found.notes) == ((), (f"dev-storage: {LEFT}",))


@dataclass
class FileSystemApi(Api):
    """Tells that A is a file system."""

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        items = super().pages(service, operation, key, **params)
        kind = {"ResourceType": "AWS::FSx::FileSystem"}
        return [{**each, **kind} if each.get("LogicalResourceId") == "A" else each for each in items]


def test_a_file_system_that_is_skipped_is_reported_with_what_the_file_is_to_have(place: Place) -> None:
    """FSx takes no smaller capacity (API reference, UpdateFileSystem), so that nobody can correct a growth."""
    stuck_rollback(place, times=9)
    person, api = Person(answers=["yes", "dev"]), FileSystemApi(place.cloud)
    run = Recovering(aws=lambda: api, head=place.head(), person=person, show=person.shown.append, pause=lambda _: None)
    assert run.run()
    assert [line.replace("A-2", "A-1") for line in person.told if "FSx" in line] == [
        "dev-storage: A (AWS::FSx::FileSystem) could not be changed: this resource was told to fail.",
        (
            "  A-1: if its capacity has grown, it stays, because FSx accepts no smaller one. Keep the previously"
            " deployed capacity in the file, or write more than it has."
        ),
    ]


@dataclass
class HelmApi(Api):
    """Tells that B is a Helm chart, which failed for a reason that Helm gives."""

    said: str = ""

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        items = super().pages(service, operation, key, **params)
        if operation != "describe_stack_events":
            return items
        of_chart = {"ResourceType": "Custom::AWSCDK-EKS-HelmChart", "ResourceStatusReason": self.said}
        return [
            {**each, **of_chart}
            if (each["LogicalResourceId"], each["ResourceStatus"]) == ("B", "UPDATE_FAILED")
            else each
            for each in items
        ]


@pytest.mark.parametrize(
    ("properties", "of"),
    [
        (
            {"Release": "dependencies", "Namespace": "kube-system"},
            "dependencies --namespace kube-system",
        ),
        # Helm's default namespace, and a name that only the deployment knows
        ({"Release": {"Fn::GetAtt": ["A", "Value"]}}, "RELEASE --namespace default"),
    ],
)
def test_a_release_that_helm_was_ended_with_is_named_with_what_frees_it(
    place: Place, properties: dict[str, Any], of: str
) -> None:
    """A function that takes longer than its 15 minutes ends Helm, which then refuses the release (helm issue 8987)."""
    place.deploy("storage", template(B=parameter("b")))
    place.faults([("storage", "B", "before_update", 1)])
    changed = template(B=parameter("b2"))
    assert place.deploy("storage", changed) == "UPDATE_ROLLBACK_COMPLETE"
    chart = template(B={"Type": "Custom::AWSCDK-EKS-HelmChart", "Properties": properties})
    place.templates["storage"] = chart
    pending = "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
    said = f"Received response status [FAILED] from custom resource. Message returned: b'{pending}\\n' Logs: /x"
    found = only(read_recovery(HelmApi(place.cloud, template=chart, said=said), place.head()))
    assert found.in_the_way == (
        "Helm was interrupted during an operation, so it takes the release for one with a running operation:"
        f" 'helm history {of}' shows its revisions. If one was deployed, run 'helm rollback {of}'; if none was, run"
        f" 'helm uninstall {of}', and the next deployment installs it again."
    )
    other = only(read_recovery(HelmApi(place.cloud, template=chart, said="Error: b'no such chart'"), place.head()))
    assert other.in_the_way is None


def test_a_rollback_that_failed_goes_on(place: Place) -> None:
    stuck_rollback(place)
    done, person = place.recover("yes")
    assert done, person.told
    (told,) = person.shown
    assert (told.verdict, only(told).way, only(told).loses) == ("1 solution to apply.", Way.CONTINUE_ROLLBACK, ())
    assert only(told).held == ("A (AWS::SSM::Parameter) could not be changed: this resource was told to fail.",)
    assert person.asked == ["Do this?"]
    assert person.told == ["dev-storage: UPDATE_ROLLBACK_COMPLETE"]
    assert place.cloud.handler.existing["A-1"]["Value"] == "a"


def test_a_pipeline_does_what_loses_nothing(place: Place) -> None:
    stuck_rollback(place)
    done, person = place.recover(is_there=False)
    assert (done, person.asked) == (True, [])


SKIP = "Correct what the reasons say and recover again, or skip. Type dev to skip A"


@pytest.mark.parametrize(("answer", "done"), [("dev", True), ("A", False), ("yes", False)])
def test_only_what_fails_once_more_is_skipped_and_only_by_name(place: Place, answer: str, *, done: bool) -> None:
    stuck_rollback(place, times=2)
    is_done, person = place.recover("yes", answer)
    assert (is_done, person.asked) == (done, ["Do this?", SKIP])
    failed = "dev-storage: A (AWS::SSM::Parameter) could not be changed: this resource was told to fail."
    stays = (
        "  if skipped, A remains as it is and differs from the template: correct it before the next deployment,"
        " which may"
    )
    last = "dev-storage: UPDATE_ROLLBACK_COMPLETE" if done else "No other stack was changed."
    assert person.told == [failed, f"{stays} otherwise fail.", last]
    assert place.statuses() == {"dev-storage": "UPDATE_ROLLBACK_COMPLETE" if done else "UPDATE_ROLLBACK_FAILED"}


class NestedApi(Api):
    """Tells of A as of a nested stack, which the embedded CloudFormation does not deploy."""

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        found = super().pages(service, operation, key, **params)
        kind = {"ResourceType": "AWS::CloudFormation::Stack"}
        return [{**each, **kind} if each.get("LogicalResourceId") == "A" else each for each in found]


def test_a_nested_stack_is_not_skipped_as_a_whole(place: Place) -> None:
    # ContinueUpdateRollback takes resources of a nested stack, and no nested stack itself (API reference)
    stuck_rollback(place, times=2)
    api, person = NestedApi(place.cloud), Person(answers=["yes"])
    run = Recovering(aws=lambda: api, head=place.head(), person=person, show=person.shown.append, pause=lambda _: None)
    assert not run.run()
    assert person.asked == ["Do this?"]
    assert person.told[1] == (
        "  A is a nested stack: correct what failed in it and recover again; or skip it by 'aws cloudformation "
        "continue-update-rollback --stack-name dev-storage --resources-to-skip NAME_OF_THE_NESTED_STACK.LOGICAL_ID'."
    )
    assert place.statuses() == {"dev-storage": "UPDATE_ROLLBACK_FAILED"}


INSIDE = "arn:aws:cloudformation:us-west-2:111122223333:stack/dev-storage-A-1X/0"


class ToldNestedApi(NestedApi):
    """Tells of A as of a nested stack that has events of its own, and in which Topic cannot be rolled back."""

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        if params.get("StackName") == INSIDE:
            of_stack = {"ResourceType": "AWS::CloudFormation::Stack", "StackId": INSIDE, "PhysicalResourceId": INSIDE}
            began = {
                **of_stack,
                "LogicalResourceId": "dev-storage-A-1X",
                "ResourceStatus": "UPDATE_ROLLBACK_IN_PROGRESS",
            }
            topic = {"ResourceType": "AWS::SNS::Topic", "StackId": INSIDE, "PhysicalResourceId": "t"}
            said = {"ResourceStatus": "UPDATE_FAILED", "ResourceStatusReason": "no right"}
            return [{**topic, **said, "LogicalResourceId": "Topic"}, began]
        found = super().pages(service, operation, key, **params)
        here = {"PhysicalResourceId": INSIDE}
        return [{**each, **here} if each.get("LogicalResourceId") == "A" else each for each in found]

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        if params.get("ResourcesToSkip"):
            assert params["ResourcesToSkip"] == ["dev-storage-A-1X.Topic"]
            params["ResourcesToSkip"] = ["A"]
        return super().call(service, operation, **params)

    send = call


def test_what_failed_inside_of_a_nested_stack_is_named_and_skipped(place: Place) -> None:
    # "NestedStackName.ResourceLogicalID" (API reference, ContinueUpdateRollback)
    stuck_rollback(place, times=2)
    api, person = ToldNestedApi(place.cloud), Person(answers=["yes", "dev"])
    run = Recovering(aws=lambda: api, head=place.head(), person=person, show=person.shown.append, pause=lambda _: None)
    assert run.run()
    assert only(person.shown[0]).held == ("dev-storage-A-1X.Topic (AWS::SNS::Topic) could not be changed: no right.",)
    assert person.asked[1].endswith("Type dev to skip dev-storage-A-1X.Topic")
    assert person.told[0] == "dev-storage: dev-storage-A-1X.Topic (AWS::SNS::Topic) could not be changed: no right."
    assert place.statuses() == {"dev-storage": "UPDATE_ROLLBACK_COMPLETE"}


def test_a_pipeline_skips_nothing(place: Place) -> None:
    stuck_rollback(place, times=2)
    done, person = place.recover(is_there=False)
    assert (done, person.asked) == (False, [])
    assert place.statuses() == {"dev-storage": "UPDATE_ROLLBACK_FAILED"}


def test_what_an_update_made_is_named_before_its_rollback_deletes_it(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a")))
    place.fail("storage", "C", "before_create")
    added = template(
        A=parameter("a"),
        B=parameter("b"),
        K=parameter("k", DeletionPolicy="Retain"),
        C=parameter("c", DependsOn=["B", "K"]),
    )
    assert place.deploy("storage", added, DisableRollback=True) == "UPDATE_FAILED"
    loses = "dev-storage / B (parameter B-1): it holds a value that others read"
    done, person = place.recover(is_there=False)
    assert (done, only(person.shown[0]).loses) == (False, (loses,))
    assert person.told == [
        (
            "dev-storage: something is lost there, so a person has to confirm; nothing was changed. Run recover from"
            " a terminal."
        )
    ]
    done, person = place.recover("yes", "no")
    assert (done, person.told) == (False, [f"  loses: {loses}", "No other stack was changed."])
    done, person = place.recover("yes", "dev")
    assert done, person.told
    assert person.asked[1] == "What is lost cannot be restored. Type dev to confirm"
    assert person.told[-1] == "dev-storage: UPDATE_ROLLBACK_COMPLETE"
    assert set(place.cloud.handler.existing) == {"A-1", "K-1"}


def test_a_creation_that_was_left_is_taken_back(place: Place) -> None:
    place.fail("storage", "B", "before_create")
    template_ = template(A=parameter("a"), B=parameter("b", DependsOn="A"))
    assert place.deploy("storage", template_, DisableRollback=True) == "CREATE_FAILED"
    done, person = place.recover("yes", "dev")
    assert (done, person.told[-1]) == (True, "dev-storage: ROLLBACK_COMPLETE")
    assert place.cloud.handler.existing == {}


def stuck_deletion(place: Place, times: int) -> None:
    place.deploy("storage", template(A=parameter("a"), B=parameter("b", DependsOn="A", DeletionPolicy="Retain")))
    place.fail("storage", "A", "delete", times)
    assert place.cloud.delete("dev-storage") == "DELETE_FAILED"


def test_a_deletion_that_failed_goes_on(place: Place) -> None:
    stuck_deletion(place, times=1)
    done, person = place.recover("yes", "dev")
    assert (done, person.told[1:]) == (True, ["dev-storage: deleted"])
    assert (
        only(person.shown[0]).cause == "A (AWS::SSM::Parameter) could not be deleted: this resource was told to fail."
    )
    assert only(person.shown[0]).loses == ("dev-storage / A (parameter A-1): it holds a value that others read",)
    assert set(place.cloud.handler.existing) == {"B-1"}
    # what is retained is told from then on
    (kept,) = place.read().kept
    assert (kept.stack, kept.logical_id, kept.physical_id) == ("dev-storage", "B", "B-1")


@dataclass
class LateApi(Api):
    """Tells of before at the first looks after a stack's deletion was asked for."""

    late: int = 0
    told: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        if operation in self.told and "StackName" in params and self.late > 0:
            self.late -= operation == "describe_stack_events"
            return self.told[operation]
        if operation == "delete_stack":
            self.late = 2
        found = super().call(service, operation, **params)
        if "StackName" in params and operation in ("describe_stacks", "describe_stack_events"):
            self.told[operation] = found
        return found

    send = call


def test_a_look_right_after_the_call_may_be_of_before(place: Place) -> None:
    stuck_deletion(place, times=1)
    person, api, pauses = Person(answers=["yes", "dev"]), LateApi(place.cloud), list[float]()
    run = Recovering(aws=lambda: api, head=place.head(), person=person, show=person.shown.append, pause=pauses.append)
    assert run.run()
    assert (person.told[1:], api.late) == (["dev-storage: deleted"], 0)
    assert len(pauses) >= 2


@pytest.mark.parametrize(("answer", "done"), [("dev", True), ("A", False)])
def test_only_what_cannot_be_deleted_once_more_is_left_behind(place: Place, answer: str, *, done: bool) -> None:
    stuck_deletion(place, times=2)
    is_done, person = place.recover("yes", "dev", answer)
    assert is_done is done
    assert (
        person.asked[2]
        == "Remove what prevents the deletion and run recover again, or leave it behind. Type dev to leave A behind"
    )
    assert person.told[1:] == [
        "dev-storage: A (AWS::SSM::Parameter) could not be deleted: this resource was told to fail.",
        "  if left behind, A remains in the account with its cost, and belongs to no stack.",
        "dev-storage: deleted; A remains in the account" if done else "No other stack was changed.",
    ]
    assert place.statuses() == ({} if done else {"dev-storage": "DELETE_FAILED"})


def test_an_export_in_use_keeps_a_stack_and_offers_nothing_to_leave(place: Place) -> None:
    exported = {**template(A=parameter("a", DeletionPolicy="Retain")), "Outputs": {}}
    exported["Outputs"] = {"O": {"Value": {"Ref": "A"}, "Export": {"Name": "dev-a"}}}
    place.deploy("storage", exported)
    place.deploy(
        "platform",
        template(
            B=parameter("b"),
            C={**parameter(""), "Properties": {"Type": "String", "Value": {"Fn::ImportValue": "dev-a"}}},
        ),
    )
    place.put("storage", "DELETE_FAILED")
    done, person = place.recover("yes")
    assert not done
    said = "dev-storage is DELETE_FAILED: Export dev-a cannot be deleted as it is in use by dev-platform"
    assert person.told == [said, "No other stack was changed."]


def test_a_failed_creation_that_is_protected_or_left_the_file_is_deleted(place: Place) -> None:
    place.fail("storage", "A", "before_create")
    assert place.deploy("storage", template(A=parameter("a"))) == "ROLLBACK_COMPLETE"
    assert only(place.read()).way is Way.DEPLOY
    place.cloud.ask("UpdateTerminationProtection", StackName="dev-storage", EnableTerminationProtection=True)
    told = only(place.read())
    assert (told.way, told.loses) == (Way.DELETE, ("dev-storage: its termination protection, which is disabled",))
    where = "--stack-name dev-storage --region us-west-2"
    assert told.commands == (
        f"aws cloudformation update-termination-protection --no-enable-termination-protection {where}",
        f"aws cloudformation delete-stack {where}",
    )
    done, person = place.recover("yes", "dev")
    assert (done, person.told[-1], place.statuses()) == (True, "dev-storage: deleted", {})


def open_change_set(place: Place, stack: str, body: dict[str, Any], name: str, kind: str = "UPDATE") -> None:
    place.cloud.ask(
        "CreateChangeSet",
        StackName=f"dev-{stack}",
        ChangeSetName=name,
        ChangeSetType=kind,
        TemplateBody=json.dumps(body),
    )


def test_a_stack_that_was_never_made_goes_with_its_change_set(place: Place) -> None:
    place.templates["storage"] = template(A=parameter("a"))
    open_change_set(place, "storage", template(A=parameter("b")), "cdk-deploy-change-set", "CREATE")
    told = only(place.read())
    assert (told.status, told.way, told.loses) == ("REVIEW_IN_PROGRESS", Way.DELETE_NEVER_MADE, ())
    done, person = place.recover("yes")
    assert (done, person.told, place.statuses()) == (True, ["dev-storage: deleted"], {})


def test_a_new_stack_of_others_is_refused(place: Place) -> None:
    place.templates["storage"] = template(A=parameter("a"))
    open_change_set(place, "storage", template(Site=parameter("b")), "cdk-deploy-change-set", "CREATE")
    done, person = place.recover()
    (refusal,) = person.shown[0].refusals
    assert (done, refusal.why) == (
        False,
        "dev-storage is REVIEW_IN_PROGRESS, and its template has no resource in common with the stack of that name.",
    )
    assert place.statuses() == {"dev-storage": "REVIEW_IN_PROGRESS"}


def test_an_empty_stack_without_a_change_set_is_no_work(place: Place) -> None:
    place.templates["storage"] = template(A=parameter("a"))
    open_change_set(place, "storage", template(A=parameter("a")), "mine", "CREATE")
    place.cloud.ask("DeleteChangeSet", StackName="dev-storage", ChangeSetName="mine")
    assert only(place.read()).does == "Nothing here: it is empty, and 'hyperpod-cdk deploy dev' creates it."
    # one that the file does not have is not proven to be ours
    del place.templates["storage"]
    place.deploy("network", template(N=parameter("n")))
    open_change_set(place, "platform", template(A=parameter("a")), "cdk-deploy-change-set", "CREATE")
    told = place.read()
    assert told.stacks == ()
    assert [each for each in told.notes if "dev-platform" in each] == [
        (
            "dev-platform is REVIEW_IN_PROGRESS and empty; nothing proves that it belongs to this environment. It"
            " stays unchanged."
        )
    ]


def test_change_sets_of_the_cdk_cli_are_deleted_and_others_left(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a")))
    for name in ("cdk-deploy-change-set", "mine"):
        open_change_set(place, "storage", template(A=parameter("b")), name)
    told = recovery_text(place.read())
    assert told.splitlines() == [
        "dev: 1 solution to apply.",
        "",
        "dev-storage has the change set cdk-deploy-change-set open (CREATE_COMPLETE)",
        "  does: deletes it",
        (
            "  $ aws cloudformation delete-change-set --stack-name dev-storage --region us-west-2 --change-set-name "
            "cdk-deploy-change-set"
        ),
        "",
        "dev-storage has the change set mine open (CREATE_COMPLETE)",
        "  does: not deleted: neither the CDK CLI nor 'import --takeover' created it",
    ]
    done, person = place.recover("yes")
    assert (done, person.told) == (True, ["dev-storage: change set cdk-deploy-change-set deleted"])
    assert [each.name for each in place.read().change_sets] == ["mine"]


def test_a_stack_of_others_is_refused_in_any_state(place: Place) -> None:
    place.deploy("storage", template(Site=parameter("a")))
    place.put("storage", "DELETE_FAILED")
    place.templates["storage"] = template(A=parameter("a"))
    done, person = place.recover()
    assert (done, person.shown[0].stacks, person.shown[0].verdict) == (False, (), "Refused; nothing is changed.")
    assert (
        "it belongs to somebody else, or to another app (SHA-256 of its template: f328fb0e3439)."
        in person.shown[0].refusals[0].why
    )


@pytest.mark.parametrize("is_deleted", [True, False])
def test_what_a_stack_left_is_named_where_it_is_in_the_way(place: Place, *, is_deleted: bool) -> None:
    kept = parameter("b", DeletionPolicy="Retain")
    place.deploy("storage", template(A=parameter("a"), B=kept))
    if is_deleted:
        place.cloud.delete("dev-storage")
    else:
        # turned off in a stack that goes on
        place.deploy("storage", template(A=parameter("a")))
    place.cloud.handler.before_call = _taken
    status = place.deploy("storage", template(A=parameter("a"), B=kept))
    assert status == ("ROLLBACK_COMPLETE" if is_deleted else "UPDATE_ROLLBACK_COMPLETE")
    assert only(place.read()).in_the_way == (
        "B-1 (parameter) exists from an earlier deployment of dev-storage: copy its contents and delete it, or"
        " give the new one another name; or bring it into the stack with 'cdk import'."
    )


def _taken(verb: str, request: Any) -> None:
    from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError  # noqa: PLC0415 - of this one test

    if verb == "create" and request.logical_id == "B":
        raise HandlerError("AlreadyExists", "The parameter B-1 already exists.")


def test_what_changed_after_it_was_shown_is_not_touched(place: Place) -> None:
    stuck_rollback(place)
    done, person = place.recover(
        "yes",
        meanwhile=lambda: (
            place.cloud.ask("ContinueUpdateRollback", StackName="dev-storage"),
            place.cloud.settled("dev-storage"),
        ),
    )
    assert (done, person.told) == (
        False,
        [
            "dev-storage changed since it was shown; nothing was done to it. Run recover again.",
            "No other stack was changed.",
        ],
    )


def test_no_confirmation(place: Place) -> None:
    stuck_rollback(place)
    done, person = place.recover("no")
    assert (done, person.told, place.statuses()) == (
        False,
        ["nothing was changed"],
        {"dev-storage": "UPDATE_ROLLBACK_FAILED"},
    )


def test_the_json_fits_its_schema(place: Place) -> None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import, and of this one test

    stuck_rollback(place)
    validator = Draft202012Validator(json.loads(answer_schema_text("recovery")))
    told = json.loads(as_json(place.read()))
    assert list(validator.iter_errors(told)) == []
    assert (told["stacks"][0]["way"], told["stacks"][0]["status"]) == ("continue_rollback", "UPDATE_ROLLBACK_FAILED")


FAULTS = st.lists(
    st.tuples(
        st.sampled_from(["storage", "platform"]),
        st.sampled_from(["A", "B", "C"]),
        st.sampled_from(["before_create", "after_create", "before_update", "after_update", "rollback", "delete"]),
        st.integers(1, 3),
    ),
    max_size=5,
)
DEEDS = st.lists(
    st.tuples(st.sampled_from(["storage", "platform"]), st.sampled_from(["deploy", "paused", "delete", "change set"])),
    min_size=1,
    max_size=5,
)


def _body(value: str) -> dict[str, Any]:
    return template(
        A=parameter(value),
        B=parameter(value, DependsOn="A", DeletionPolicy="Retain"),
        C=parameter(value, DependsOn="B"),
    )


def _deeds(place: Place, deeds: list[tuple[str, str]]) -> Iterator[None]:
    for number, (stack, deed) in enumerate(deeds):
        body = _body(str(number))
        place.templates[stack] = body
        there = f"dev-{stack}" in place.statuses()
        try:
            if deed == "delete" and there:
                place.cloud.delete(f"dev-{stack}")
            elif deed == "change set":
                open_change_set(place, stack, body, "cdk-deploy-change-set", "UPDATE" if there else "CREATE")
            else:
                place.deploy(stack, body, **({"DisableRollback": True} if deed == "paused" else {}))
        except ServiceError:
            # CloudFormation takes it not in the state in which the stack is
            pass
        yield


def test_only_what_the_policy_of_the_verb_allows_is_called() -> None:
    (verb,) = (each for each in VERBS if each.name == "recover")
    called: set[str] = set()
    for deed in (stuck_rollback, lambda place: stuck_deletion(place, times=1), _protected, _paused, _with_change_set):
        place = Place()
        deed(place)
        person, api = Agreeing(), Api(place.cloud, meanwhile=called.add)
        run = Recovering(
            aws=lambda api=api: api,  # type: ignore[misc]  # bound in this turn
            head=place.head(),
            person=person,
            show=person.shown.append,
            pause=lambda _: None,
        )
        assert run.run(), person.told
    of_itself = "sts:GetCallerIdentity"
    assert {f"cloudformation:{_NAMES[each]}" for each in called} == set(verb.actions) - {of_itself}


def _protected(place: Place) -> None:
    place.fail("storage", "A", "before_create")
    place.deploy("storage", template(A=parameter("a")))
    place.cloud.ask("UpdateTerminationProtection", StackName="dev-storage", EnableTerminationProtection=True)


def _paused(place: Place) -> None:
    place.fail("storage", "A", "before_create")
    place.deploy("storage", template(A=parameter("a")), DisableRollback=True)


def _with_change_set(place: Place) -> None:
    place.deploy("storage", template(A=parameter("a")))
    open_change_set(place, "storage", template(A=parameter("b")), "cdk-deploy-change-set")


class Agreeing(Person):
    """Agrees to everything, and types what is asked for."""

    def agrees(self, question: str) -> bool:
        return bool(question)

    def types(self, question: str, word: str) -> bool:
        return word in question


@settings(max_examples=25, deadline=None)
@given(faults=FAULTS, deeds=DEEDS)
def test_whatever_happened_recover_leads_to_what_takes_a_deployment(
    faults: list[tuple[str, str, str, int]], deeds: list[tuple[str, str]]
) -> None:
    place = Place()
    place.faults(faults)
    for _ in _deeds(place, deeds):
        pass
    before = dict(place.cloud.handler.existing)
    named = {each for stuck in place.read().stacks for each in stuck.loses}
    person, api = Agreeing(), Api(place.cloud)
    run = Recovering(aws=lambda: api, head=place.head(), person=person, show=person.shown.append, pause=lambda _: None)
    for _ in range(3):
        # a rollback that fails ends in another state, from which the next call goes on
        if run.run():
            break
    told = place.read()
    assert {each.way for each in told.stacks} <= {Way.DEPLOY}, (place.statuses(), person.told)
    assert told.change_sets == ()
    # nothing that holds something is gone that was not named
    for physical_id in before.keys() - place.cloud.handler.existing.keys():
        assert any(physical_id in each for each in [*named, *person.told]), physical_id
