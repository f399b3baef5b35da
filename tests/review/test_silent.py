"""What no template tells is unknown and asks a person: parameters' values, somebody else's code, what stands outside.

The expectations are those of AWS's pages: using-cfn-updating-stacks-update-behaviors, dynamic-references,
parameters-section-structure (a stack keeps previous values), cfn-hup and cfn-init, aws-attribute-deletionpolicy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.review.model import ReasonKind, Report, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, Stack
from tests.support.tables import row_by_row

pytestmark = pytest.mark.usefixtures("nag_here")

Body = dict[str, Any]


def side(*, told: frozenset[str] = frozenset(), **template: Any) -> Assembly:
    stack = Stack(name="prod", template=template, account="111122223333", region="us-east-1", told=told)
    return Assembly(environment="", stacks=(stack,))


def reviewed(before: Assembly, after: Assembly) -> Report:
    return review(before, after, base_side=Side(label="a"), head_side=Side(label="b"))


def asked(report: Report, kind: ReasonKind = ReasonKind.UNKNOWN) -> list[tuple[str, str | None, str]]:
    return [
        (each.resource, each.property, each.sentence) for each in report.verdict.needs_approval if each.kind == kind
    ]


def one(type_: str, body: Body | None = None, **properties: Any) -> Body:
    return {"It": {"Type": type_, "Properties": properties, **(body or {})}}


# parameters

SWITCH: Body = {"P": {"Type": "String", "Default": "no"}}
ON: Body = {"On": {"Fn::Equals": [{"Ref": "P"}, "yes"]}}


def by_switch(value: Any, other: Any) -> Body:
    return {"Fn::If": ["On", value, other]}


HIDDEN: list[tuple[Body, Body, str | None, str]] = [
    (
        one("AWS::S3::Bucket", BucketName=by_switch("a", "same")),
        one("AWS::S3::Bucket", BucketName=by_switch("b", "same")),
        "BucketName",
        "replaces it",
    ),
    (
        one("AWS::SNS::Topic", DisplayName=by_switch("a", "same")),
        one("AWS::SNS::Topic", DisplayName=by_switch("b", "same")),
        "DisplayName",
        "changes DisplayName",
    ),
    (
        {
            **one("AWS::SNS::Topic", DisplayName="x"),
            "Db": {"Type": "AWS::RDS::DBInstance", "Properties": {"DBInstanceClass": "db.m5.large"}, "Condition": "On"},
        },
        one("AWS::SNS::Topic", DisplayName="x"),
        None,
        "deletes it",
    ),
]


@pytest.mark.parametrize(("before", "after", "property_", "does"), HIDDEN)
def test_what_a_default_hides_is_unknown(before: Body, after: Body, property_: str | None, does: str) -> None:
    old, new = (side(Parameters=SWITCH, Conditions=ON, Resources=each) for each in (before, after))
    found = reviewed(old, new)
    name = "prod / Db" if property_ is None else "prod / It"
    said = (
        f"With the default of P none of this happens, with another value the change {does}: the stack keeps its "
        "value, which --deployed reads."
    )
    assert asked(found) == [(name, property_, said)]


@pytest.mark.parametrize(("before", "after"), [row[:2] for row in HIDDEN])
def test_what_the_deployed_stack_shows_hides_nothing(before: Body, after: Body) -> None:
    old, new = (
        side(told=frozenset({"P"}), Parameters=SWITCH, Conditions=ON, Resources=each) for each in (before, after)
    )
    assert asked(reviewed(old, new)) == []


def test_a_default_that_decides_nothing_else_hides_nothing() -> None:
    # used on both sides alike, and a change beside it
    old, new = (
        side(Parameters=SWITCH, Resources=one("AWS::SNS::Topic", TopicName={"Ref": "P"}, DisplayName=each))
        for each in ("a", "b")
    )
    assert asked(reviewed(old, new)) == []
    # a stack that is new takes the default
    assert asked(reviewed(Assembly(environment="", stacks=()), new)) == []


def test_a_default_that_changes_is_reported() -> None:
    def of(default: str) -> Assembly:
        parameters = {"P": {"Type": "String", "Default": default}}
        return side(Parameters=parameters, Resources=one("AWS::SNS::Topic", DisplayName={"Ref": "P"}))

    said = (
        "prod: the default of P changes, and the report uses the new one: an existing stack keeps its value, so "
        "that nothing may change, or something else. --deployed reads it."
    )
    assert said in reviewed(of("a"), of("b")).notes
    assert said not in reviewed(of("a"), of("a")).notes
    known = [replace(each, stacks=(replace(each.stacks[0], told=frozenset({"P"})),)) for each in (of("a"), of("b"))]
    assert said not in reviewed(*known).notes


# somebody else's code

FOREIGN = (
    "Custom::SomebodyElses",
    "AWS::CloudFormation::CustomResource",
    "MongoDB::Atlas::Cluster",
    "Org::Svc::Type",
    "Org::Svc::Type::MODULE",
    "AWS::Own::Name::MODULE",
)
KNOWN = ("Custom::HyperPodQuotaGate", "Custom::AWSCDK-EKS-KubernetesResource", "AWS::SNS::Topic", "AWS::Future::Type")


@pytest.mark.parametrize("type_", FOREIGN)
def test_code_of_others_needs_a_person_in_any_case(type_: str) -> None:
    none = side(Resources=one("AWS::SNS::Topic"))
    old, new = (
        side(Resources={**one("AWS::SNS::Topic"), "Other": {"Type": type_, "Properties": {"A": each}}})
        for each in ("a", "b")
    )
    said = "Code of another provider creates it: no template shows what it does in the account."
    assert asked(reviewed(none, new)) == [("prod / Other", None, said)]
    assert [each[:2] for each in asked(reviewed(old, new))] == [("prod / Other", "A")]
    assert [each[0] for each in asked(reviewed(old, none), ReasonKind.DELETION)] == ["prod / Other"]
    assert asked(reviewed(new, new)) == []


@row_by_row("type_, foreign", [*((each, True) for each in FOREIGN), *((each, False) for each in KNOWN)])
def test_whose_code_makes_a_type(type_: str, *, foreign: bool) -> None:
    assert updates.is_foreign(type_) is foreign


# what instances run

INIT = "AWS::CloudFormation::Init"


@pytest.mark.parametrize(
    "type_", ["AWS::EC2::Instance", "AWS::EC2::LaunchTemplate", "AWS::AutoScaling::AutoScalingGroup"]
)
def test_what_cfn_init_runs_is_unknown(type_: str) -> None:
    def of(command: str, **more: Any) -> Assembly:
        config = {"config": {"commands": {"a": {"command": command}}}}
        return side(Resources=one(type_, {"Metadata": {INIT: config, **more}}))

    said = (
        "Cfn-hup runs it as root on the instances where it is a daemon, and cfn-init on new ones; no template "
        "shows what it does."
    )
    assert asked(reviewed(of("a"), of("b"))) == [("prod / It", f"Metadata.{INIT}", said)]
    assert asked(reviewed(of("a"), of("a", **{"aws:cdk:path": "x"}))) == []


# what stands outside

DYNAMIC: list[tuple[Any, bool]] = [
    ("{{resolve:ssm:/ami}}", True),
    ("{{resolve:ssm:/ami:3}}", False),
    ({"Fn::Sub": "{{resolve:ssm:/${AWS::Region}/${Env}/ami}}"}, True),
    ({"Fn::Sub": "{{resolve:ssm:/${Env}/ami:3}}"}, False),
    ({"Fn::Sub": "{{resolve:secretsmanager:${Env}:SecretString:password}}"}, True),
    ("{{resolve:ssm-secure:/ami}}", True),
    ("{{resolve:secretsmanager:s:SecretString:password}}", True),
    ("{{resolve:secretsmanager:s:SecretString:password::}}", True),
    ("{{resolve:secretsmanager:s:SecretString:password::5d0d1b2e}}", False),
    ("ami-1", False),
]


@pytest.mark.parametrize(("value", "is_read"), DYNAMIC)
def test_what_is_read_anew_may_be_another(value: Any, *, is_read: bool) -> None:
    def of(tag: str) -> Assembly:
        tags = [{"Key": "a", "Value": tag}]
        return side(Resources=one("AWS::EC2::Instance", ImageId=value, InstanceType="m5.large", Tags=tags))

    found = asked(reviewed(of("a"), of("b")))
    assert [each[:2] for each in found] == ([("prod / It", "ImageId")] if is_read else [])
    # what is not updated is not read
    assert asked(reviewed(of("a"), of("a"))) == []


def test_a_parameter_of_parameter_store_is_read_with_each_update_of_its_stack() -> None:
    parameters = {"Ami": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": "/aws/service/ami"}}

    def of(name: str) -> Assembly:
        instance = one("AWS::EC2::Instance", ImageId={"Ref": "Ami"}, InstanceType="m5.large")
        topic = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": name}}}
        return side(Parameters=parameters, Resources={**instance, **topic})

    ((resource, property_, sentence),) = asked(reviewed(of("a"), of("b")))
    assert (resource, property_) == ("prod / It", "ImageId")
    assert sentence.startswith(
        "This deployment reads /aws/service/ami again, and its value may have changed: CloudFormation cannot "
        "change it in place"
    )
    assert asked(reviewed(of("a"), of("a"))) == []


def test_a_parameter_of_parameter_store_without_a_default_is_read_too() -> None:
    def of(name: str, kind: str = "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>") -> Assembly:
        instance = one("AWS::EC2::Instance", ImageId={"Ref": "Ami"}, InstanceType="m5.large")
        topic = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": name}}}
        return side(Parameters={"Ami": {"Type": kind}}, Resources={**instance, **topic})

    said = (
        "This deployment reads ${Ami} again, and its value may have changed: CloudFormation cannot change it in place."
    )
    assert asked(reviewed(of("a"), of("b"))) == [("prod / It", "ImageId", said)]
    assert asked(reviewed(of("a"), of("a"))) == []
    # the stack's value is now the name of another one
    assert asked(reviewed(of("a", "String"), of("a")), ReasonKind.REPLACEMENT) == [
        ("prod / It", "ImageId", "CloudFormation cannot change it in place.")
    ]


@pytest.mark.parametrize(
    ("url", "is_read"),
    [
        ("https://s3.us-east-1.amazonaws.com/b/t.yaml", True),
        ({"Fn::Sub": "https://s3.${AWS::Region}.amazonaws.com/b/t.yaml"}, True),
        # CDK names an upload by its content
        (f"https://s3.us-east-1.amazonaws.com/cdk-assets/{'0a' * 32}.json", False),
    ],
)
def test_the_template_of_a_nested_stack_is_read_with_each_update_of_its_stack(url: Any, *, is_read: bool) -> None:
    def of(name: str) -> Assembly:
        topic = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": name}}}
        return side(Resources={**one("AWS::CloudFormation::Stack", TemplateURL=url), **topic})

    said = "This deployment reads the template again, and it may have changed at its address."
    expected = [("prod / It", "TemplateURL", said)] if is_read else []
    assert asked(reviewed(of("a"), of("b"))) == expected
    assert asked(reviewed(of("a"), of("a"))) == []
    # an update without a change of any resource, too
    described = side(**of("a").stacks[0].template, Description="d")
    assert asked(reviewed(of("a"), described)) == expected


def test_what_a_nested_stack_gives_may_be_another_value() -> None:
    def of(name: str) -> Assembly:
        nested = one("AWS::CloudFormation::Stack", TemplateURL="https://s3.us-east-1.amazonaws.com/b/t.yaml")
        image = {"Fn::GetAtt": ["It", "Outputs.Image"]}
        instance = {"Type": "AWS::EC2::Instance", "Properties": {"ImageId": image, "InstanceType": "m5.large"}}
        topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": name}}
        return side(Resources={**nested, "User": instance, "Topic": topic})

    found = {resource: sentence for resource, _, sentence in asked(reviewed(of("a"), of("b")))}
    assert found == {
        "prod / It": "This deployment reads the template again, and it may have changed at its address.",
        "prod / User": ("It refers to It, which may give another value: CloudFormation cannot change it in place."),
    }


def test_an_export_that_nobody_here_imports_may_be_imported_elsewhere() -> None:
    def of(value: str | None) -> Assembly:
        outputs = {} if value is None else {"O": {"Value": value, "Export": {"Name": "shared"}}}
        return side(Resources=one("AWS::SNS::Topic"), Outputs=outputs)

    for new in (of("b"), of(None)):
        ((_, property_, sentence),) = asked(reviewed(of("a"), new))
        assert property_ == "Export shared"
        assert "no template here imports it" in sentence
    assert asked(reviewed(of(None), of("a"))) == []


# what keeps a snapshot without a word


@pytest.mark.parametrize(
    ("type_", "properties", "is_kept"),
    [
        ("AWS::RDS::DBCluster", {"Engine": "aurora-mysql"}, True),
        ("AWS::RDS::DBInstance", {"DBInstanceClass": "db.m5.large"}, True),
        ("AWS::RDS::DBInstance", {"DBInstanceClass": "db.m5.large", "DBClusterIdentifier": "c"}, False),
        ("AWS::EFS::FileSystem", {}, False),
    ],
)
def test_a_snapshot_that_cloudformation_takes_by_default_is_protection(
    type_: str, properties: Body, *, is_kept: bool
) -> None:
    silent, stated = (side(Resources=one(type_, body, **properties)) for body in ({}, {"DeletionPolicy": "Delete"}))
    found = asked(reviewed(silent, stated), ReasonKind.PROTECTION)
    assert [each[1] for each in found] == (["DeletionPolicy"] if is_kept else [])
    gone = reviewed(silent, side(Resources={"Topic": {"Type": "AWS::SNS::Topic"}}))
    summaries = [each.summary for each in gone.blast_radius.resources if each.type == type_]
    assert ["CloudFormation's default for it is Snapshot" in each for each in summaries] == [is_kept]


# exports under a condition

IMPORTS: Body = {"U": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::ImportValue": "x"}}}}
ON_BY_CONSTANT: Body = {"On": {"Fn::Equals": ["a", "a"]}}
OFF_BY_CONSTANT: Body = {"On": {"Fn::Equals": ["a", "b"]}}
BY_DEPLOYMENT: Body = {"On": {"Fn::Equals": [{"Ref": "P"}, "b"]}}


def exporting(conditions: Body, **output: Any) -> Assembly:
    """Return a stack with one export, and another one that imports it.

    Source of what follows: CloudFormation user guide, "Outputs" (Condition) and "Get exported outputs": an export that
    another stack imports can be neither changed nor deleted.
    """
    outputs = {"O": {"Value": "1", "Export": {"Name": "x"}, **output}}
    parameters = {"P": {"Type": "String"}}
    kept = one("AWS::SNS::Topic")
    template = {"Resources": kept, "Parameters": parameters, "Conditions": conditions, "Outputs": outputs}
    account, region = "111122223333", "us-east-1"
    stacks = (
        Stack(name="from", template=template, account=account, region=region),
        Stack(name="to", template={"Resources": IMPORTS}, dependencies=("from",), account=account, region=region),
    )
    return Assembly(environment="", stacks=stacks)


@pytest.mark.parametrize(
    ("before", "after", "kind", "said"),
    [
        (exporting({}), exporting(ON_BY_CONSTANT, Condition="On"), None, ""),
        (exporting(BY_DEPLOYMENT, Condition="On"), exporting(BY_DEPLOYMENT, Condition="On"), None, ""),
        (
            exporting({}),
            exporting(OFF_BY_CONSTANT, Condition="On"),
            ReasonKind.REFUSAL,
            "The export is removed while to",
        ),
        (
            exporting(ON_BY_CONSTANT, Condition="On"),
            exporting(OFF_BY_CONSTANT, Condition="On"),
            ReasonKind.REFUSAL,
            "The export is removed while to",
        ),
        (
            exporting({}),
            exporting(BY_DEPLOYMENT, Condition="On"),
            ReasonKind.UNKNOWN,
            "The export may be removed while to",
        ),
        (
            exporting(ON_BY_CONSTANT, Condition="On"),
            exporting(BY_DEPLOYMENT, Condition="On"),
            ReasonKind.UNKNOWN,
            "The export may be removed while to",
        ),
    ],
)
def test_an_export_under_a_condition(before: Assembly, after: Assembly, kind: ReasonKind | None, said: str) -> None:
    found = [(each.kind, each.sentence) for each in reviewed(before, after).verdict.needs_approval]
    assert [each for each, _ in found] == ([kind] if kind else [])
    assert all(sentence.startswith(f"{said} imports it; ") for _, sentence in found)


# sections that say how a template is deployed, or whether

NO: Body = {"Assertions": [{"Assert": {"Fn::Equals": ["a", "b"]}}]}
RULES_SAID = "The rules of the template change: whether CloudFormation refuses the stack's parameters is unknown."
HOOKS_SAID = "The hooks of the template change: which deployments CodeDeploy creates for them, and how, is unknown."


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"Rules": {"R": NO}}, RULES_SAID),
        ({"Rules": {"R": NO}}, {}, RULES_SAID),
        ({}, {"Hooks": {"H": {"Type": "AWS::CodeDeploy::BlueGreen"}}}, HOOKS_SAID),
        ({"Rules": {"R": NO}}, {"Rules": {"R": NO}}, None),
        ({}, {"Rules": {}}, None),
        # CDK asks by it for a newer bootstrap stack
        ({}, {"Rules": {"CheckBootstrapVersion": NO}}, None),
    ],
)
def test_sections_that_say_how_it_is_deployed(before: Body, after: Body, said: str | None) -> None:
    old, new = (side(Resources=one("AWS::SNS::Topic"), **each) for each in (before, after))
    assert [sentence for _, _, sentence in asked(reviewed(old, new))] == ([said] if said else [])
