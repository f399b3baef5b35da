"""What a condition decides that only the deployment knows is judged by what the condition means, not by its name.

The expectations are those of CloudFormation's pages: conditions-section-structure,
intrinsic-function-reference-conditions and transform-aws-languageextensions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hyperpod_cdk.review.model import ReasonKind, Report, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import by_meaning, compare
from hyperpod_cdk.templates.loops import expanded
from hyperpod_cdk.templates.values import plain
from tests.support.tables import row_by_row

pytestmark = pytest.mark.usefixtures("nag_here")

Body = dict[str, Any]

BY_PROD: Body = {"C": {"Fn::Equals": [{"Ref": "Env"}, "prod"]}}
BY_DEV: Body = {"C": {"Fn::Equals": [{"Ref": "Env"}, "dev"]}}
CHOSEN = {"Fn::If": ["C", "a", "b"]}
TOPIC: Body = {"Other": {"Type": "AWS::SNS::Topic", "Properties": {}}}
NONE = {"Ref": "AWS::NoValue"}
ADMINISTRATOR = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def side(conditions: Body, resources: Body, *, default: str | None = None, **sections: Any) -> Assembly:
    parameter = {"Type": "String"} if default is None else {"Type": "String", "Default": default}
    template = {"Parameters": {"Env": parameter}, "Conditions": conditions, "Resources": resources, **sections}
    stack = Stack(name="prod", template=template, account="111122223333", region="us-east-1")
    return Assembly(environment="", stacks=(stack,))


def reviewed(before: Assembly, after: Assembly) -> Report:
    return review(before, after, base_side=Side(label="a"), head_side=Side(label="b"))


def asked(before: Assembly, after: Assembly) -> list[tuple[ReasonKind, str | None, str]]:
    return [(each.kind, each.property, each.sentence) for each in reviewed(before, after).verdict.needs_approval]


def it(type_: str, body: Body | None = None, /, **properties: Any) -> Body:
    return {**TOPIC, "It": {"Type": type_, "Properties": properties, **(body or {})}}


REPLACED = (ReasonKind.REPLACEMENT, "BucketName", "CloudFormation cannot change it in place.")
MAY_GO = (
    ReasonKind.UNKNOWN,
    "Condition",
    "Whether it exists depends on a condition that the template does not show.",
)
Asked = tuple[ReasonKind, str | None, str]
UNKNOWN_STATEMENT = (
    "Managed policy It (prod): what this permits is unknown: "
    '{if C (${Env} = "dev"): {Effect: Allow, Action: *, Resource: *}, else nothing}.'
)
LOST_STATEMENT = (
    "Managed policy It (prod): what this permitted or denied until now is unknown: "
    '{if C (${Env} = "prod"): {Effect: Allow, Action: *, Resource: *}, else nothing}.'
)
BUCKET = "AWS::S3::Bucket"


@row_by_row(
    "resources, expected",
    [
        (it(BUCKET, BucketName=CHOSEN), REPLACED),
        (it(BUCKET, BucketName={"Fn::Sub": ["x-${A}", {"A": CHOSEN}]}), REPLACED),
        (it(BUCKET, BucketName={"Fn::Join": ["-", ["x", CHOSEN]]}), REPLACED),
        (it(BUCKET, {"Condition": "C"}), MAY_GO),
        (
            it(BUCKET, {"DeletionPolicy": {"Fn::If": ["C", "Retain", "Delete"]}}),
            (
                ReasonKind.UNKNOWN,
                "DeletionPolicy",
                "Whether it is kept when it is removed from its stack depends on what the template does not show.",
            ),
        ),
        (
            it(BUCKET, {"UpdateReplacePolicy": {"Fn::If": ["C", "Retain", "Delete"]}}),
            (
                ReasonKind.UNKNOWN,
                "UpdateReplacePolicy",
                "Whether it is kept when it is replaced depends on what the template does not show.",
            ),
        ),
        (
            it("AWS::EKS::Cluster", DeletionProtection={"Fn::If": ["C", True, False]}),
            (
                ReasonKind.PROTECTION,
                "DeletionProtection",
                "The EKS cluster may lose its protection against deletion.",
            ),
        ),
        (
            it(BUCKET, PublicAccessBlockConfiguration={"Fn::If": ["C", {"BlockPublicPolicy": True}, NONE]}),
            (
                ReasonKind.PROTECTION,
                "PublicAccessBlockConfiguration",
                "The bucket may lose protection: BlockPublicPolicy may no longer be as before.",
            ),
        ),
        (
            it(
                "AWS::IAM::ManagedPolicy",
                PolicyDocument={"Statement": [{"Fn::If": ["C", ADMINISTRATOR, NONE]}]},
            ),
            [(ReasonKind.ACCESS, None, UNKNOWN_STATEMENT), (ReasonKind.ACCESS, None, LOST_STATEMENT)],
        ),
    ],
)
def test_a_condition_that_means_something_else(resources: Body, expected: Asked | list[Asked]) -> None:
    assert asked(side(BY_PROD, resources), side(BY_DEV, resources)) == (
        expected if isinstance(expected, list) else [expected]
    )
    assert asked(side(BY_PROD, resources), side(BY_PROD, resources)) == []


def test_values_of_both_sides_show_what_the_condition_means() -> None:
    resources = it(BUCKET, BucketName=CHOSEN)
    (found,) = reviewed(side(BY_PROD, resources), side(BY_DEV, resources)).blast_radius.resources
    assert [(each.before, each.after) for each in found.properties] == [
        ('{if C (${Env} = "prod"): a, else b}', '{if C (${Env} = "dev"): a, else b}')
    ]
    # as long as it means the same, its name says enough
    changed = it(BUCKET, BucketName={"Fn::If": ["C", "a", "c"]})
    (found,) = reviewed(side(BY_PROD, resources), side(BY_PROD, changed)).blast_radius.resources
    assert [(each.before, each.after) for each in found.properties] == [("{if C: a, else b}", "{if C: a, else c}")]


THROUGH = {"C": {"Condition": "D"}}
ASKED = {"Fn::Equals": [{"Ref": "Env"}, "x"]}


@row_by_row(
    "before, after, expected",
    [
        # another condition, and the same one by another name
        ({**BY_PROD, "D": BY_DEV["C"]}, {**BY_PROD, "D": BY_DEV["C"]}, [MAY_GO]),
        ({**BY_PROD, "D": BY_PROD["C"]}, {"D": BY_PROD["C"]}, []),
        # one that others are made of
        ({"C": ASKED}, {"D": {"Condition": "E"}, "E": ASKED}, []),
    ],
)
def test_another_condition_of_a_resource(before: Body, after: Body, expected: list[Any]) -> None:
    old, new = it(BUCKET, {"Condition": "C"}), it(BUCKET, {"Condition": "D"})
    assert asked(side(before, old), side(after, new)) == expected


@row_by_row(
    "before, after",
    [
        ({**THROUGH, "D": BY_PROD["C"]}, {**THROUGH, "D": BY_DEV["C"]}),
        ({"C": {"Fn::Not": [BY_PROD["C"]]}}, BY_PROD),
        ({"C": {"Fn::And": [ASKED, BY_PROD["C"]]}}, {"C": {"Fn::Or": [ASKED, BY_PROD["C"]]}}),
        ({"C": {"Fn::And": [ASKED, BY_PROD["C"]]}}, {"C": {"Fn::And": [ASKED, BY_DEV["C"]]}}),
        ({"C": {"Fn::Equals": [{"Ref": "Env"}, {"Ref": "AWS::StackId"}]}}, BY_PROD),
    ],
)
def test_a_meaning_that_other_conditions_change(before: Body, after: Body) -> None:
    resources = it(BUCKET, {"Condition": "C"})
    assert asked(side(before, resources), side(after, resources)) == [MAY_GO]


@pytest.mark.parametrize(
    ("resources", "what"),
    [
        (it(BUCKET, {"Condition": "C"}), "changes Condition"),
        (it(BUCKET, BucketName=CHOSEN), "replaces it"),
    ],
)
def test_a_meaning_that_a_default_hides(resources: Body, what: str) -> None:
    ((kind, _, sentence),) = asked(side(BY_PROD, resources, default="x"), side(BY_DEV, resources, default="x"))
    assert kind == ReasonKind.UNKNOWN
    assert sentence.startswith(f"With the default of Env none of this happens, with another value the change {what}: ")


@pytest.mark.parametrize(
    "output",
    [
        {"Condition": "C", "Value": "1", "Export": {"Name": "x"}},
        {"Value": "1", "Export": {"Name": CHOSEN}},
        {"Value": CHOSEN, "Export": {"Name": {"Ref": "Env"}}},
    ],
)
def test_an_export_that_a_condition_decides(output: Body) -> None:
    outputs = {"O": output}
    before, after = (side(each, TOPIC, Outputs=outputs) for each in (BY_PROD, BY_DEV))
    ((kind, _, sentence),) = asked(before, after)
    assert kind == ReasonKind.UNKNOWN
    assert sentence.startswith("The export may ")
    assert asked(before, before) == []


def test_only_conditions_that_mean_something_else_are_named_by_it() -> None:
    before = side({**BY_PROD, "Same": ASKED, "Gone": ASKED}, TOPIC)
    after = side({**BY_DEV, "Same": ASKED}, TOPIC)
    assert by_meaning(before, after).stacks[0].unlike == {"C": '${Env} = "prod"'}
    assert by_meaning(after, before).stacks[0].unlike == {"C": '${Env} = "dev"'}
    assert by_meaning(before, before) is before
    assert by_meaning(before, Assembly(environment="", stacks=())) is before


def test_a_loop_of_which_a_condition_decides_the_resources() -> None:
    loop = ["N", {"Ref": "Env"}, {"F${N}": {"Type": "AWS::SNS::Topic", "Condition": "C"}}]
    resources = expanded({"Resources": {**TOPIC, "Fn::ForEach::L": loop}}, most=100)["Resources"]
    ((kind, name, _),) = asked(side(BY_PROD, resources), side(BY_DEV, resources))
    assert (kind, name) == (ReasonKind.UNKNOWN, "Conditions.C")


def test_whoever_compares_does_so_by_meaning() -> None:
    before, after = (side(each, it("AWS::SNS::Topic", TopicName=CHOSEN)) for each in (BY_PROD, BY_DEV))
    (found,) = compare(before, after)
    assert [(each.path, plain(each.before), plain(each.after)) for each in found.properties] == [
        ("TopicName", '{if C (${Env} = "prod"): a, else b}', '{if C (${Env} = "dev"): a, else b}')
    ]
    assert compare(before, side(BY_PROD, it("AWS::SNS::Topic", TopicName=CHOSEN))) == []


def test_a_stack_elsewhere_has_conditions_of_its_own() -> None:
    before = side(BY_PROD, it("AWS::SNS::Topic", TopicName=CHOSEN))
    elsewhere = replace(before, stacks=tuple(replace(each, region="us-west-2") for each in before.stacks))
    after = side(BY_DEV, it("AWS::SNS::Topic", TopicName=CHOSEN))
    texts = [each.after for row in reviewed(elsewhere, after).blast_radius.resources for each in row.properties]
    assert not any("Env" in str(each) for each in texts)
