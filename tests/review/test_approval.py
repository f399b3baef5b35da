"""Who must approve, and why: tables of single changes, the first line, and what can never be without a row."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.review.approval import not_answering
from hyperpod_cdk.review.model import (
    Access,
    Cost,
    Effect,
    Fabric,
    FabricSubject,
    Grant,
    Proof,
    Reason,
    ReasonKind,
    Report,
    Side,
)
from hyperpod_cdk.review.review_file import Exception_, ReviewRules, Thresholds
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, Stack
from tests.review.judged import changed, judged, resource
from tests.support.tables import row_by_row

pytestmark = pytest.mark.usefixtures("nag_here")

ROWS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "approvals.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
ON_OTHERS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "acting_on_others.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
DOCUMENTED: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "documented_changes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
BLAST_RADIUS = (
    ReasonKind.REPLACEMENT,
    ReasonKind.DELETION,
    ReasonKind.REFUSAL,
    ReasonKind.INTERRUPTION,
    ReasonKind.UNKNOWN,
)
DAY = date(2026, 11, 22)


PARAMETERS = {"Unknown": {"Type": "String"}}
SOURCE = re.compile(r"[a-z][\w.-]*(/[^\s:]+(:[^\s:]+)?)+: \S.*")
"""A page, or a file of this project, and what of it an expectation rests on."""


@pytest.mark.parametrize("rows", [ROWS, ON_OTHERS, DOCUMENTED], ids=["approvals", "acting_on_others", "documented"])
def test_sources_name_the_page_and_what_of_it(rows: list[dict[str, Any]]) -> None:
    assert [row["source"] for row in rows if not SOURCE.fullmatch(row["source"])] == []


def side(resources: dict[str, Any], **template: Any) -> Assembly:
    bodies = {
        name: {"Type": kind[1:] if kind.startswith("!") else f"AWS::{kind}", "Properties": properties}
        for name, (kind, properties) in resources.items()
    }
    whole = {"Parameters": PARAMETERS, "Resources": bodies, **template}
    return Assembly(
        environment="", stacks=(Stack(name="prod", template=whole, account="111122223333", region="us-east-1"),)
    )


def reviewed(before: Assembly, after: Assembly, **given_: Any) -> Report:
    return review(before, after, base_side=Side(label="a"), head_side=Side(label="b"), **given_)


@row_by_row("row", ROWS, ids=lambda row: row["change"])
def test_what_a_person_must_approve(row: dict[str, Any]) -> None:
    found = reviewed(side(row["before"]), side(row["after"])).verdict
    assert row["source"]
    # what the policy finds of templates as short as these is not this table's
    assert (found.level.value, found.sentence.partition(" The policy finds ")[0]) == (row["level"], row["sentence"])
    own = [each for each in found.needs_approval if each.kind not in BLAST_RADIUS]
    assert [f"{each.kind}: {each.sentence}" for each in own] == row["reasons"]
    # templates alone name no line of an environment file, and a wrong one is worse than none
    assert {each.causes for each in own} <= {()}
    assert all(each.resource for each in own)
    if not row["reasons"]:
        assert found.needs_approval == ()
    failed, _, asked = found.approval.rpartition("Needs ")
    assert asked.startswith("approval by") if found.needs_approval else failed or asked.startswith("no approval")
    assert failed.startswith("Fails, and no approval can change that: ") or not failed
    assert not (asked.startswith("no approval") and found.is_wrong)


@row_by_row("row", ON_OTHERS, ids=lambda row: row["change"])
def test_settings_that_act_on_others_are_not_silent(row: dict[str, Any]) -> None:
    found = reviewed(side(row["before"]), side(row["after"])).verdict
    assert row["source"]
    assert (found.level.value, found.sentence.partition(" The policy finds ")[0]) == (row["level"], row["sentence"])
    assert [f"{each.kind}: {each.sentence}" for each in found.needs_approval] == row["reasons"] != []


@row_by_row("row", DOCUMENTED, ids=lambda row: row["change"])
def test_what_a_page_of_aws_says_of_a_change(row: dict[str, Any]) -> None:
    if "templates" in row:
        old, new = (
            side({}, **{**each, "Parameters": {**PARAMETERS, **each.get("Parameters", {})}})
            for each in row["templates"]
        )
    else:
        old, new = (side({"It": [f"!{row['type']}", row[each]]}) for each in ("before", "after"))
    found = reviewed(old, new).verdict
    assert found.level.value == row.get("level", found.level.value)
    kinds = {each.kind.value for each in found.needs_approval}
    if row["kinds"] == "any":
        assert kinds
    else:
        assert kinds & set(row["kinds"]) if row["kinds"] else not kinds


@pytest.mark.parametrize(
    ("before", "beside"),
    [
        # of an environment that is new nothing stands, and a group that comes along is not harmed
        ({}, {}),
        ({"T": ["SNS::Topic", {}]}, {"T": ["SNS::Topic", {}]}),
    ],
)
def test_rules_for_only_new_resources_need_no_approval(before: dict[str, Any], beside: dict[str, Any]) -> None:
    group = {"G": ["AutoScaling::AutoScalingGroup", {"MinSize": "0", "MaxSize": "0", "DesiredCapacity": "0"}]}
    schedule = {"S": ["AutoScaling::ScheduledAction", {"AutoScalingGroupName": {"Ref": "G"}, "DesiredCapacity": 0}]}
    told = {"A": ["CloudWatch::Alarm", {"AlarmActions": ["arn:aws:sns:us-east-1:111122223333:t"]}]}
    found = reviewed(side(before), side({**beside, **group, **schedule, **told})).verdict
    assert [each.sentence for each in found.needs_approval if each.kind is ReasonKind.INTERRUPTION] == []


def test_there_are_enough_cases_and_enough_without_approval() -> None:
    assert len({row["change"] for row in ROWS}) == len(ROWS) >= 250
    assert all({"source", "level", "sentence", "reasons"} <= set(row) for row in ROWS)
    assert sum(not row["reasons"] for row in ROWS) >= 20


@given(
    st.lists(
        st.tuples(
            st.sampled_from([each for each in Effect if each is not Effect.UNKNOWN]),
            st.sampled_from(sorted(updates.STATEFUL)),
        ),
        max_size=4,
    ),
    st.sampled_from(sorted(updates.STATEFUL)),
)
def test_unknown_changes_always_need_an_approval(others: list[tuple[Effect, str]], unknown: str) -> None:
    resources = [resource(effect, kind, stateful=True) for effect, kind in others]
    one = resource(Effect.UNKNOWN, unknown, stateful=True, properties=(changed("P", Effect.UNKNOWN),))
    found = judged(*resources, one)
    assert ReasonKind.UNKNOWN in {each.kind for each in found.needs_approval}
    assert found.approval.startswith("Needs approval by")


STATEMENT = st.fixed_dictionaries(
    {
        "Effect": st.just("Allow"),
        "Principal": st.sampled_from(
            [
                "*",
                {"AWS": "444455556666"},
                {"Service": "ec2.amazonaws.com"},
                {"AWS": "arn:aws:iam::111122223333:role/x"},
            ]
        ),
        "Action": st.sampled_from(["s3:GetObject", "*", ["sqs:SendMessage", "kms:Decrypt"]]),
    }
)
HOLDERS: dict[str, tuple[str, ...]] = {
    "IAM::Role": ("AssumeRolePolicyDocument",),
    "S3::BucketPolicy": ("PolicyDocument",),
    "KMS::Key": ("KeyPolicy",),
    "DynamoDB::Table": ("ResourcePolicy", "PolicyDocument"),
    "Kinesis::ResourcePolicy": ("ResourcePolicy",),
    "ApiGateway::RestApi": ("Policy",),
    "CodeArtifact::Domain": ("PermissionsPolicyDocument",),
    "Nobody::Knows": ("Deep", "Within", "It"),
}


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return {path[0]: nested(path[1:], value) if path[1:] else value}


@given(st.sampled_from(sorted(HOLDERS)), STATEMENT, STATEMENT)
def test_no_principal_and_no_action_is_added_without_a_row(
    kind: str, standing: dict[str, Any], added: dict[str, Any]
) -> None:
    def of(*statements: dict[str, Any]) -> Assembly:
        resources = [{**each, **({} if kind == "IAM::Role" else {"Resource": "*"})} for each in statements]
        properties = {"Bucket": "b", **nested(HOLDERS[kind], {"Statement": resources})}
        return side({"It": [kind, properties]})

    grants = reviewed(of(standing), of(standing, added)).access.grants
    old, new = (
        {
            (str(each["Principal"]), one)
            for one in (each["Action"] if isinstance(each["Action"], list) else [each["Action"]])
        }
        for each in (standing, added)
    )
    assert bool(grants) == bool(new - old)


@given(
    st.sampled_from(["10.0.0.0/8", "198.51.100.0/24", "0.0.0.0/0", "0.0.0.0/1", "::/0", "2001:db8::/32"]),
    st.sampled_from(["EC2::SecurityGroupIngress", "EC2::NetworkAclEntry", "WAFv2::IPSet", "EC2::PrefixList", "A::B"]),
)
def test_no_address_block_is_added_without_a_row(block: str, kind: str) -> None:
    six = ":" in block
    by_kind: dict[str, dict[str, Any]] = {
        "EC2::SecurityGroupIngress": {"GroupId": "sg-1", "IpProtocol": "-1", "CidrIpv6" if six else "CidrIp": block},
        "EC2::NetworkAclEntry": {
            "NetworkAclId": "acl-1",
            "RuleNumber": 1,
            "RuleAction": "allow",
            "Ipv6CidrBlock" if six else "CidrBlock": block,
        },
        "WAFv2::IPSet": {"Addresses": [block]},
        "EC2::PrefixList": {"Entries": [{"Cidr": block}]},
        "A::B": {"Some": {"Where": block}},
    }
    found = reviewed(side({}), side({"It": [kind, by_kind[kind]]}))
    (row,) = found.access.reach
    assert row.is_grave == (block in ("0.0.0.0/0", "0.0.0.0/1", "::/0"))
    asked = [each for each in found.verdict.needs_approval if each.kind is ReasonKind.ACCESS]
    assert bool(asked) == row.is_grave


def test_a_macro_and_a_nested_stack_are_unknown() -> None:
    topic = {"Topic": ["SNS::Topic", {}]}
    found = reviewed(side({}), side(topic, Transform="Mine::Macro")).verdict
    assert [(each.kind, each.resource, each.sentence) for each in found.needs_approval] == [
        (
            ReasonKind.UNKNOWN,
            "prod",
            (
                "The macro Mine::Macro changes the template during the deployment: what happens to the resources is "
                "unknown."
            ),
        )
    ]
    assert reviewed(side(topic), side(topic, Transform="AWS::LanguageExtensions")).verdict.needs_approval == ()
    stack = {"Nested": ["CloudFormation::Stack", {"TemplateURL": "https://b.s3.amazonaws.com/a.json"}]}
    assert ReasonKind.UNKNOWN in {each.kind for each in reviewed(side({}), side(stack)).verdict.needs_approval}


def proof(result: Any, **lost: Any) -> Fabric:
    proofs = (Proof(name="S3", result=result, detail="the endpoint's policy denies it"),)
    subject = FabricSubject(subject="g", kind="instance group", stack="a", logical_id="b", proofs=proofs, **lost)
    return Fabric(subjects=(subject,))


@pytest.mark.parametrize(
    ("fabric", "kinds"),
    [
        (proof("holds"), []),
        (proof("unknown"), []),
        (proof("broken"), []),
        (proof("unknown", newly_unknown=("S3",)), ["proof"]),
        (proof("broken", newly_broken=("S3",)), ["proof"]),
    ],
)
def test_a_proof_that_no_longer_holds(fabric: Fabric, kinds: list[str]) -> None:
    assert [each.kind for each in judged(fabric=fabric).needs_approval] == kinds


def spent(before: float, after: float) -> Cost:
    return Cost.model_validate(
        {"region": "us-east-1", "prices_as_of": "2026-01-01", "monthly": {"before": before, "after": after}}
    )


@row_by_row(
    "cost, threshold, asks",
    [
        (spent(0, 999.99), 1000, False),
        (spent(0, 1000), 1000, True),
        (spent(5000, 5999.99), 1000, False),
        (spent(5000, 6000), 1000, True),
        (spent(6000, 5000), 1000, False),
        (spent(100_000, 100_050), 50, True),
        (spent(0, 0), 0, False),
        (spent(0, 1), 0, True),
    ],
)
def test_money(cost: Cost, threshold: float, asks: bool) -> None:  # noqa: FBT001 - a table
    rules = ReviewRules(thresholds=Thresholds(monthly_increase_usd=threshold))
    assert bool(judged(cost=cost, rules=rules).needs_approval) == asks


ADMIN = Grant(
    change="added",
    kind="permission",
    sentence="role a may use everything",
    who="role a",
    what=(),
    which=(),
    is_grave=True,
    stack="prod",
    logical_id="A",
)


def exception(**given_: Any) -> Exception_:
    values = {
        "kind": "access",
        "resource": "prod / role a",
        "sentence": "Role a may use everything.",
        "reason": "it is meant",
        "owner": "security",
        "expires": "2026-11-22",
    }
    return Exception_.model_validate({**values, **given_})


@row_by_row(
    "given_, on, answers",
    [
        ({}, DAY, True),
        ({}, date(2026, 11, 23), False),
        ({}, None, False),
        ({"resource": "prod / role *"}, DAY, True),
        ({"resource": "prod / role ?"}, DAY, False),
        ({"resource": "prod / role"}, DAY, False),
        ({"sentence": "*"}, DAY, False),
        ({"sentence": "* may use everything."}, DAY, True),
        ({"sentence": "Role a *."}, DAY, False),
        ({"property": "Policies"}, DAY, False),
        ({"sentence": "role a may use everything."}, DAY, False),
        ({"kind": "cost"}, DAY, False),
    ],
)
def test_exceptions(given_: dict[str, Any], on: date | None, answers: bool) -> None:  # noqa: FBT001 - a table
    found = judged(access=Access(grants=(ADMIN,)), rules=ReviewRules(exceptions=(exception(**given_),)), on=on)
    assert (len(found.excepted), len(found.needs_approval)) == ((1, 0) if answers else (0, 1))
    assert found.reviewed_on == (on.isoformat() if on else None)
    if answers:
        assert (found.excepted[0].owner, found.excepted[0].because) == ("security", "it is meant")
        assert found.approval.endswith("1 reason is excepted by security, until 2026-11-22.")


@pytest.mark.parametrize(
    ("given_", "on", "says"),
    [
        ({}, date(2026, 11, 23), "2026-11-22 was its last day."),
        (
            {"property": "Policies"},
            DAY,
            "the reason is about no property, the exception about Policies; remove its property, if that is intended.",
        ),
        ({}, DAY, None),
        ({}, None, None),
        ({"kind": "cost"}, date(2026, 11, 23), None),
        ({"sentence": "Role a may use less."}, date(2026, 11, 23), None),
        ({"resource": "prod / role b"}, date(2026, 11, 23), None),
    ],
)
def test_an_exception_that_does_not_answer_says_why(given_: dict[str, Any], on: date | None, says: str | None) -> None:
    rules = ReviewRules(exceptions=(exception(**given_),))
    asked = judged(access=Access(grants=(ADMIN,)), rules=rules, on=on).needs_approval
    called = "review.yaml: the exception of security for prod / role a (access) does not apply: "
    assert list(not_answering(asked, rules, on)) == ([f"{called}{says}"] if says else [])


def test_an_exception_without_the_property_of_the_reason_says_which_it_is() -> None:
    gone = resource(Effect.REPLACED, properties=(changed("Name", Effect.REPLACED),))
    (reason,) = judged(gone, on=DAY).needs_approval
    assert reason.property == "Name"
    stated = exception(kind=reason.kind.value, resource=reason.resource, sentence=reason.sentence)
    (said,) = not_answering([reason], ReviewRules(exceptions=(stated,)), DAY)
    assert said.endswith(
        "the reason is about Name, the exception about none; write property: Name, if that is intended."
    )


def test_an_exception_for_some_of_many_answers_none() -> None:
    followers = [
        resource(
            Effect.REPLACED,
            name=f"It{index}",
            logical_id=str(index),
            properties=(changed("A", Effect.REPLACED, is_indirect=True),),
        )
        for index in range(5)
    ]
    said = "5 IAM roles, which contain neither data nor nodes: the blast radius lists them."
    some = {"kind": "replacement", "sentence": said}
    for pattern, asked in (("dev-x / It0*", 1), ("dev-x / *", 0)):
        rules = ReviewRules(exceptions=(exception(**some, resource=pattern),))
        assert len(judged(*followers, rules=rules, on=DAY).needs_approval) == asked


def test_the_first_line_says_who_has_to_look_at_what() -> None:
    rules = ReviewRules.model_validate(
        {"approvers": {"access": ["security"], "cost": ["finance", "platform"]}, "default_approvers": ["platform"]}
    )
    found = judged(
        resource(Effect.REPLACED), access=Access(grants=(ADMIN, ADMIN)), cost=spent(0, 2000), rules=rules, on=DAY
    )
    assert found.approval == (
        "Needs approval by platform: 1 replacement; by security: 2 gains of access; by finance and platform: 1 cost."
    )
    assert judged(resource(Effect.REPLACED)).approval == "Needs approval by a person: 1 replacement."
    assert judged().approval == "Needs no approval, because no deployed resource changes."
    assert judged(resource(Effect.IN_PLACE)).approval == (
        "Needs no approval, because nothing is replaced, deleted or interrupted, nothing is unknown about "
        "resources that contain data, nodes or an address, no high-risk access is granted, no protection is removed, "
        "no proof is lost, and it costs less than $1,000 more a month."
    )


@pytest.mark.parametrize(
    ("effect", "kind", "claims"),
    [
        (Effect.REPLACED, "replacement", "nothing is deleted or interrupted, nothing is unknown"),
        (Effect.INTERRUPTED, "interruption", "nothing is replaced or deleted, nothing is unknown"),
        (Effect.DELETED, "deletion", "nothing is replaced or interrupted, nothing is unknown"),
    ],
)
def test_the_first_line_does_not_claim_what_an_exception_answers(effect: Effect, kind: str, claims: str) -> None:
    rules = ReviewRules(exceptions=(exception(kind=kind, resource="dev-x / It", sentence="It happens."),))
    found = judged(resource(effect), rules=rules, on=DAY)
    assert found.needs_approval == ()
    assert found.approval.startswith(f"Needs no approval, because {claims}")


def test_the_first_line_lets_no_exception_hide_that_the_service_refuses() -> None:
    rules = ReviewRules(exceptions=(exception(kind="refusal", resource="dev-x / It", sentence="It happens."),))
    found = judged(resource(Effect.REFUSED), rules=rules, on=DAY)
    assert (len(found.needs_approval), len(found.excepted), found.is_wrong) == (0, 1, True)
    assert found.approval == "Fails, and no approval can change that: The service refuses the change to 1 IAM role."
    assert judged(resource(Effect.REFUSED)).approval == "Needs approval by a person: 1 refusal by the service."


def test_the_first_line_claims_no_lost_access_or_known_cost() -> None:
    rules = ReviewRules(exceptions=(exception(),))
    cost = Cost(region="us-east-1", prices_as_of="2026-01-01", is_lower_bound=True)
    found = judged(resource(Effect.IN_PLACE), access=Access(grants=(ADMIN,)), cost=cost, rules=rules, on=DAY)
    assert "no high-risk access" not in found.approval
    assert "and it costs less than $1,000 more a month, as far as prices are known. 1 reason is" in found.approval


def test_what_no_template_shows_asks_whatever_the_exceptions_say() -> None:
    told = Reason(kind=ReasonKind.REVIEW_FILE, resource="review.yaml", sentence="It changes.")
    rules = ReviewRules(
        exceptions=(exception(kind="review", resource="*", sentence="*"),), default_approvers=("platform",)
    )
    found = judged(reasons=(told,), rules=rules, on=DAY)
    assert [each.approvers for each in found.needs_approval] == [("platform",)]


@pytest.mark.parametrize(
    "body",
    [
        {"Type": "AWS::SNS::Topic", "Properties": {"Fn::Transform": {"Name": "Ours"}}},
        {"Type": "AWS::SNS::Topic", "Properties": {"Tags": [{"Fn::Transform": {"Name": "Ours"}}]}},
        {"Type": "AWS::SNS::Topic", "DeletionPolicy": {"Fn::Transform": {"Name": "Ours"}}},
        {"Type": "AWS::SNS::Topic", "Metadata": {"Fn::Transform": "Ours"}},
    ],
)
def test_what_a_macro_writes_is_unknown_wherever_it_stands(body: dict[str, Any]) -> None:
    """Source: CloudFormation user guide, "Fn::Transform": the macro's answer takes the place of the call."""
    stacks = (Stack(name="prod", template={"Resources": {"It": body}}, account="111122223333", region="us-east-1"),)
    found = reviewed(side({}), Assembly(environment="", stacks=stacks)).verdict
    said = "The macro Ours changes the template during the deployment: what happens to the resources is unknown."
    assert said in [each.sentence for each in found.needs_approval]


@pytest.mark.parametrize(
    ("policy", "before", "after", "says"),
    [
        ({"Fn::If": ["Keeps", "Retain", "Delete"]}, "x", "y", ["The bucket is deleted with its content once it"]),
        ({"Fn::If": ["Keeps", "Delete", "Retain"]}, "x", "y", []),
        (
            {"Fn::FindInMap": ["Kept", {"Ref": "Stage"}, "policy"]},
            "x",
            "y",
            ["The bucket is deleted with its content"],
        ),
        ({"Fn::If": ["Keeps", "Retain", "Delete"]}, "x", "x", []),
    ],
)
def test_a_policy_that_a_function_names_is_the_one_that_it_gives(
    policy: dict[str, Any], before: str, after: str, says: list[str]
) -> None:
    """CloudFormation user guide, AWS::LanguageExtensions transform: functions in DeletionPolicy."""

    def template(value: str) -> Assembly:
        bucket = {"Type": "AWS::S3::Bucket", "DeletionPolicy": policy, "UpdateReplacePolicy": "Retain"}
        whole = {
            "Transform": "AWS::LanguageExtensions",
            "Parameters": {"Stage": {"Type": "String", "Default": value}},
            "Conditions": {"Keeps": {"Fn::Equals": ["x", value]}},
            "Mappings": {"Kept": {"x": {"policy": "Retain"}, "y": {"policy": "Delete"}}},
            "Resources": {"B": bucket},
        }
        stack = Stack(name="prod", template=whole, account="111122223333", region="us-east-1")
        return Assembly(environment="", stacks=(stack,))

    asked = reviewed(template(before), template(after)).verdict.needs_approval
    found = [each.sentence for each in asked if each.kind is ReasonKind.PROTECTION]
    assert len(found) == len(says)
    assert all(one.startswith(start) for one, start in zip(found, says, strict=True))
