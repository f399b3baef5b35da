"""CloudFormation's own change sets, compared with the templates: contradictions, and that nothing is left behind.

The shapes are those of DescribeChangeSet with IncludePropertyValues (botocore's model of CloudFormation); a test holds
the answers here to it.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.review.change_sets import MOST_BODY_BYTES, Witness, ask
from hyperpod_cdk.review.model import Effect, Report, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack
from tests.support.scripted_aws import holds_to_shape

pytestmark = pytest.mark.usefixtures("nag_here")

LOGS = "AWS::Logs::LogGroup"


def side(days: int = 30, name: str = "one", **more: Any) -> Assembly:
    properties = {"LogGroupName": name, "RetentionInDays": days}
    template = {"Resources": {"Logs": {"Type": LOGS, "Properties": properties, "Metadata": {"a": 1}}}, **more}
    return Assembly(environment="dev", stacks=(Stack(name="dev-x", template=template, region="us-east-1"),))


def change(action: str = "Modify", replacement: str = "", evaluation: str = "Static", **more: Any) -> dict[str, Any]:
    recreation = {"True": "Always", "Conditional": "Conditionally"}.get(replacement, "Never")
    target = {
        "Attribute": "Properties",
        "Name": "LogGroupName",
        "RequiresRecreation": recreation,
        "Path": "/Properties/LogGroupName",
        "BeforeValue": "one",
        "AfterValue": "two",
        "AttributeChangeType": "Modify",
    }
    details = [{"Target": target, "Evaluation": evaluation, "ChangeSource": "DirectModification"}]
    found = {
        "Action": action,
        "LogicalResourceId": "Logs",
        "ResourceType": LOGS,
        "Scope": ["Properties"],
        "Details": details if action == "Modify" else [],
        **({"Replacement": replacement} if replacement else {}),
    }
    return {**found, **more}


@dataclass
class CloudFormation:
    """Answers for one change set after another: ``described`` in turn; ``kept`` are those that were not deleted."""

    described: list[Mapping[str, Any] | BaseException] = field(default_factory=list)
    refuses: BaseException | None = None
    deletes: list[BaseException] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    made: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    shown: Mapping[str, Any] = field(default_factory=dict)

    def send(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        assert service == "cloudformation"
        self.calls.append(operation)
        if operation == "create_change_set":
            self.made.append(params)
            if self.refuses:
                raise self.refuses
            self.kept.add(params["ChangeSetName"])
            return {"Id": "x"}
        if operation == "describe_change_set":
            found = self.described.pop(0)
            if isinstance(found, BaseException):
                raise found
            self.shown = found
            return found
        assert operation == "delete_change_set", operation
        if self.deletes:
            raise self.deletes.pop(0)
        self.kept.discard(params["ChangeSetName"])
        return {}

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        raise AssertionError((service, operation, params))

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        assert operation == "describe_change_set", (service, operation, key, params)
        rows = list(self.shown[key])
        while self.shown.get("NextToken"):
            rows += self.send(service, operation)[key]
        return rows


def made(*changes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "Status": "CREATE_COMPLETE",
        "Changes": [{"Type": "Resource", "ResourceChange": each} for each in changes],
        **more,
    }


def reviewed(base: Assembly, head: Assembly, *changes: Mapping[str, Any], **given: Any) -> Report:
    of = {str(each["LogicalResourceId"]): each for each in changes}
    witness = Witness(stack="dev-x", changes=of, **given)
    return review(base, head, base_side=Side(label="deployed"), head_side=Side(label="x"), witnesses=[witness])


def test_the_answers_hold_to_aws() -> None:
    for each in (change(replacement="True"), change("Remove", PolicyAction="Retain"), change("Dynamic")):
        holds_to_shape("cloudformation", "DescribeChangeSet", made(each, NextToken="x", StatusReason="y"))


@pytest.mark.parametrize(
    ("head", "said", "effect", "sentence"),
    [
        # planted: the templates tell of nothing, or of a change in place
        (
            side(),
            change(replacement="True"),
            Effect.REPLACED,
            "CloudFormation replaces it; the templates did not show it.",
        ),
        (
            side(days=60),
            change(replacement="True"),
            Effect.REPLACED,
            "CloudFormation replaces it; the templates did not show it.",
        ),
        (
            side(days=60),
            change(replacement="Conditional"),
            Effect.UNKNOWN,
            "CloudFormation may replace it; only the deployment shows that.",
        ),
        (side(), change("Remove"), Effect.DELETED, "CloudFormation deletes it; the templates did not show it."),
        (
            side(),
            change("Remove", PolicyAction="Retain"),
            Effect.LEFT_BEHIND,
            "CloudFormation removes it from its stack; the templates did not show it.",
        ),
        (
            side(),
            change("Dynamic"),
            Effect.UNKNOWN,
            "CloudFormation cannot determine before the deployment what it does to it.",
        ),
        (
            side(),
            change(replacement="False"),
            Effect.IN_PLACE,
            "CloudFormation changes it; the templates did not show it.",
        ),
    ],
)
def test_what_cloudformation_calls_graver_counts(
    head: Assembly, said: dict[str, Any], effect: Effect, sentence: str
) -> None:
    report = reviewed(side(), head, said)
    (resource,) = report.blast_radius.resources
    assert (resource.effect, resource.summary, resource.stateful) == (effect, sentence, True)
    assert report.blast_radius.counts == {effect: 1}
    assert bool(report.verdict.needs_approval) is (effect is not Effect.IN_PLACE)
    if effect is Effect.REPLACED:
        (named,) = [each for each in resource.properties if each.path == "LogGroupName"]
        assert (named.before, named.after, named.effect, named.reason, named.source) == (
            *("one", "two", Effect.REPLACED, sentence, "CloudFormation change set"),
        )
        assert report.verdict.attention[0].message.startswith(sentence)


@pytest.mark.parametrize(
    ("head", "changes", "note"),
    [
        (
            side(name="two"),
            [change(replacement="False")],
            "dev-x / Logs: the templates show replaced; CloudFormation reports in place.",
        ),
        (side(name="two"), [], "dev-x / Logs: the templates show replaced; CloudFormation changes nothing."),
        # both agree, or CloudFormation cannot know
        (side(name="two"), [change(replacement="True")], ""),
        (side(name="two"), [change(replacement="Conditional")], ""),
        (side(days=60), [change(replacement="False")], ""),
        # metadata was left out of what was asked, and what only follows may come to nothing
        (side(), [change(replacement="False", Scope=["Metadata"], Details=[])], ""),
        (side(), [change(replacement="False", evaluation="Dynamic")], ""),
    ],
)
def test_what_cloudformation_calls_less_grave_is_reported(
    head: Assembly, changes: list[dict[str, Any]], note: str
) -> None:
    alone = review(side(), head, base_side=Side(label="deployed"), head_side=Side(label="x"))
    report = reviewed(side(), head, *changes)
    assert report.blast_radius == alone.blast_radius
    assert report.verdict == alone.verdict
    assert [each for each in report.notes if each not in alone.notes] == ([note] if note else [])


def test_a_change_set_that_is_refused_asks_a_person() -> None:
    why = "No export named dev-subnet found"
    report = reviewed(side(), side(days=60), missing=why, is_refused=True)
    assert report.notes[0] == f"dev-x: CloudFormation created no change set: {why}."
    (reason,) = report.verdict.needs_approval
    assert (reason.kind, reason.resource, reason.sentence) == (
        *("unknown", "dev-x", f"CloudFormation refuses to create a change set: {why}."),
    )


def witness(aws: CloudFormation, base: Assembly | None = None, head: Assembly | None = None) -> list[Witness]:
    return ask(aws, base or side(), head or side(days=60), pause=lambda _: None)


def test_a_change_set_is_made_read_and_deleted() -> None:
    said = change(replacement="True")
    more = change(replacement="False", LogicalResourceId="Other")
    aws = CloudFormation([{"Status": "CREATE_IN_PROGRESS"}, made(said, NextToken="more"), made(more)])
    head = side(days=60, Parameters={"Kept": {"Type": "String"}, "New": {"Type": "String", "Default": "x"}})
    before = side(Parameters={"Kept": {"Type": "String"}, "Gone": {"Type": "String"}})
    assert witness(aws, before, head) == [Witness(stack="dev-x", changes={"Logs": said, "Other": more})]
    assert aws.kept == set()
    assert aws.calls == ["create_change_set", *["describe_change_set"] * 3, "delete_change_set"]
    (request,) = aws.made
    assert request["ChangeSetType"] == "UPDATE"
    assert request["Parameters"] == [{"ParameterKey": "Kept", "UsePreviousValue": True}]
    assert "Metadata" not in json.loads(request["TemplateBody"])["Resources"]["Logs"]
    assert "execute_change_set" not in aws.calls


def test_a_new_stack_is_not_asked_for() -> None:
    aws = CloudFormation()
    assert ask(aws, Assembly(environment="dev", stacks=()), side()) == []
    assert aws.calls == []


@pytest.mark.parametrize(
    ("status", "found"),
    [
        (
            "The submitted information didn't contain changes. Submit different information to create a change set.",
            Witness(stack="dev-x", changes={}),
        ),
        ("No updates are to be performed.", Witness(stack="dev-x", changes={})),
        (
            "No export named dev-subnet found.",
            Witness(stack="dev-x", changes={}, missing="No export named dev-subnet found", is_refused=True),
        ),
    ],
)
def test_a_change_set_that_failed(status: str, found: Witness) -> None:
    aws = CloudFormation([{"Status": "FAILED", "StatusReason": status}])
    assert witness(aws) == [found]
    assert aws.kept == set()


def test_aws_refuses_to_make_one() -> None:
    aws = CloudFormation(refuses=NotAnswered("the template is not valid", said="Template error"))
    said = 'the template is not valid; AWS says: "Template error"'
    assert witness(aws) == [Witness(stack="dev-x", changes={}, missing=said, is_refused=True)]
    assert aws.calls == ["create_change_set", "delete_change_set"]
    denied = CloudFormation(refuses=NotAnswered("no permission", action="cloudformation:CreateChangeSet"))
    with pytest.raises(AssemblyError) as caught:
        witness(denied)
    assert str(caught.value) == "--change-set: no permission; allow cloudformation:CreateChangeSet"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), RuntimeError()])
def test_nothing_stays_where_the_review_is_interrupted(error: BaseException) -> None:
    aws = CloudFormation([{"Status": "CREATE_PENDING"}, error], deletes=[NotAnswered("still being made")] * 3)
    with pytest.raises(type(error)):
        witness(aws)
    assert aws.kept == set()
    # the call itself may have been interrupted after AWS had heard it
    early = CloudFormation(refuses=error)
    with pytest.raises(type(error)):
        witness(early)
    assert early.calls == ["create_change_set", "delete_change_set"]


def test_nothing_stays_where_the_review_is_terminated() -> None:
    aws = CloudFormation([{"Status": "CREATE_PENDING"}])
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit):
        ask(aws, side(), side(days=60), pause=lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert aws.kept == set()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("code", "message"),
    [("ValidationError", "Stack [dev-x] does not exist"), ("ChangeSetNotFound", "ChangeSet [x] does not exist")],
)
def test_nothing_is_left_of_a_change_set_or_a_stack_that_is_gone(code: str, message: str) -> None:
    aws = CloudFormation([made()], deletes=[Refused(f"refused with {code}", code=code, message=message)])
    assert [each.missing for each in witness(aws)] == [""]


def test_what_cannot_be_deleted_is_named() -> None:
    aws = CloudFormation([made()], deletes=[NotAnswered("no permission", action="cloudformation:DeleteChangeSet")])
    with pytest.raises(AssemblyError) as caught:
        witness(aws)
    (name,) = aws.kept
    assert str(caught.value) == (
        f"--change-set: the change set {name} of dev-x could not be deleted: no permission; allow "
        "cloudformation:DeleteChangeSet; delete it with 'aws cloudformation delete-change-set --stack-name dev-x "
        f"--change-set-name {name}'"
    )


@pytest.mark.parametrize(("more", "is_asked"), [(0, True), (1, False)])
def test_a_template_that_the_call_does_not_take_is_reported(more: int, *, is_asked: bool) -> None:
    def head(size: int) -> Assembly:
        return side(days=60, Description="x" * size)

    bare = CloudFormation([made()])
    witness(bare, head=head(0))
    room = MOST_BODY_BYTES - len(bare.made[0]["TemplateBody"])
    aws = CloudFormation([made()])
    (found,) = witness(aws, head=head(room + more))
    assert bool(aws.made) is is_asked
    said = "its template has 51,201 bytes; without S3 CloudFormation accepts 51,200, and a review uploads nothing"
    assert found.missing == ("" if is_asked else f"skipped: {said}")
