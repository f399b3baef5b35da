"""The deployed state in CloudFormation: the stacks, their templates and their parameters."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.config.environment import STACKS
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.review.deployed import Deployed, read_deployed
from hyperpod_cdk.review.mangled import mangled
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk_stacks import environment as stacks_module
from tests.support.scripted_aws import ACCOUNT, REGION, WHO, Fails, ScriptedSession, holds_to_shape

NETWORK = {"Resources": {"Vpc": {"Type": "AWS::EC2::VPC"}}}
HYPERPOD = {
    "Parameters": {"Chart": {"Type": "String", "Default": "none"}, "Token": {"Type": "String", "NoEcho": True}},
    "Resources": {"It": {"Type": "T", "Properties": {"Chart": {"Ref": "Chart"}, "Token": {"Ref": "Token"}}}},
}
HEAD = Assembly(
    environment="dev",
    stacks=tuple(
        Stack(name=name, template=template, region=REGION, account=ACCOUNT)
        for name, template in (("dev-network", NETWORK), ("dev-hyperpod", HYPERPOD))
    ),
)


def described(name: str, status: str = "UPDATE_COMPLETE", **given: Any) -> dict[str, Any]:
    arn = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{name}/0"
    return {"StackName": name, "StackId": arn, "StackStatus": status, **given}


def deployed(
    stacks: list[dict[str, Any]], templates: dict[str, Any], head: Assembly = HEAD, **others: Any
) -> tuple[Deployed, ScriptedSession]:
    def template(params: Any) -> Any:
        found = templates[params["StackName"]]
        return found if isinstance(found, Fails) else {"TemplateBody": found}

    script = {
        "sts:GetCallerIdentity": WHO,
        "cloudformation:DescribeStacks": {"Stacks": stacks},
        "cloudformation:GetTemplate": template,
        **others,
    }
    scripted = ScriptedSession(script)
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    aws = LiveAws.open(region=REGION, account=ACCOUNT, own=own, session=scripted.session())
    return read_deployed(aws, head), scripted


def test_stacks_that_are_there() -> None:
    stacks = [
        described("dev-storage", Tags=[{"Key": "team", "Value": "a"}]),
        described("dev-network", EnableTerminationProtection=True),
        described("other"),
        described("dev-elsewhere"),
    ]
    text = "Resources:\n  Fs: {Type: AWS::FSx::FileSystem, Properties: {SubnetIds: [!ImportValue dev-subnet]}}\n"
    exported = {**NETWORK, "Outputs": {"Subnet": {"Value": "s", "Export": {"Name": "dev-subnet"}}}}
    found, scripted = deployed(stacks, {"dev-storage": text, "dev-network": json.dumps(exported)})
    base = found.base
    assert [(stack.name, stack.dependencies, stack.termination_protection) for stack in base.stacks] == [
        ("dev-network", (), True),
        ("dev-storage", ("dev-network",), False),
    ]
    assert (base.environment, base.region, base.account) == ("dev", REGION, ACCOUNT)
    assert base.stacks[1].tags == {"team": "a"}
    assert base.stacks[0].template == exported
    assert found.head == HEAD
    assert found.notes == ()
    asked = [params for name, params in scripted.asked if name == "cloudformation:GetTemplate"]
    assert asked == [{"StackName": name, "TemplateStage": "Original"} for name in ("dev-network", "dev-storage")]


def test_nothing_is_deployed() -> None:
    found, _ = deployed([], {})
    assert found.base.stacks == ()
    assert len(compare(found.base, found.head)) == 2


def test_the_script_holds_to_aws() -> None:
    parameters = [{"ParameterKey": "Chart", "ParameterValue": "real"}]
    stack = described("dev-network", EnableTerminationProtection=True, Parameters=parameters, CreationTime=0)
    holds_to_shape("cloudformation", "DescribeStacks", {"Stacks": [stack]})
    holds_to_shape("cloudformation", "GetTemplate", {"TemplateBody": "x"})


def test_a_deployed_stack_keeps_its_parameters() -> None:
    parameters = [
        {"ParameterKey": "Chart", "ParameterValue": "real"},
        {"ParameterKey": "Token", "ParameterValue": "****"},
        {"ParameterKey": "Gone", "ParameterValue": "x"},
    ]
    found, _ = deployed([described("dev-hyperpod", Parameters=parameters)], {"dev-hyperpod": json.dumps(HYPERPOD)})
    for side in (found.base, found.head):
        assert side.by_name["dev-hyperpod"].parameters == {
            "Chart": {"Type": "String", "Default": "real"},
            "Token": {"Type": "String", "NoEcho": True},
        }
    assert [change.resource.logical_id for change in compare(found.base, found.head)] == ["Vpc"]


@pytest.mark.parametrize("status", ["REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"])
def test_a_stack_that_holds_nothing(status: str) -> None:
    found, _ = deployed([described("dev-network", status)], {})
    assert found.base.stacks == ()
    assert found.notes == (f"The deployed stack dev-network is {status}: it has no resources and counts as missing.",)


def test_a_stack_in_between() -> None:
    stacks = [described("dev-network", "UPDATE_ROLLBACK_FAILED")]
    found, _ = deployed(stacks, {"dev-network": json.dumps(NETWORK)})
    assert [stack.name for stack in found.base.stacks] == ["dev-network"]
    assert found.notes == (
        "The deployed stack dev-network is UPDATE_ROLLBACK_FAILED: its resources may differ from its template.",
    )


def test_stacks_that_import_from_each_other_are_all_there() -> None:
    def template(own: str, other: str) -> str:
        resource = {"Type": "T", "Properties": {"P": {"Fn::ImportValue": other}}}
        outputs = {"O": {"Value": 1, "Export": {"Name": own}}}
        return json.dumps({"Resources": {"A": resource}, "Outputs": outputs})

    stacks = [described("dev-network"), described("dev-hyperpod")]
    found, _ = deployed(stacks, {"dev-network": template("a", "b"), "dev-hyperpod": template("b", "a")})
    assert [stack.name for stack in found.base.stacks] == ["dev-network", "dev-hyperpod"]


DENIED = Fails("AccessDenied", "User: x is not authorized to perform: cloudformation:GetTemplate", 403)


def test_aws_does_not_answer() -> None:
    with pytest.raises(AssemblyError) as caught:
        deployed([described("dev-network")], {"dev-network": DENIED})
    assert str(caught.value).startswith("the deployed stacks cannot be read: ")
    assert "cloudformation:GetTemplate" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_a_template() -> None:
    with pytest.raises(AssemblyError, match=r"^the deployed stack dev-network: not a CloudFormation template: "):
        deployed([described("dev-network")], {"dev-network": "Outputs: {}"})


def test_every_kind_of_stack_is_asked_for() -> None:
    code = stacks_module.HyperPodEnvironment.__init__.__code__
    named = (each.lower() for each in code.co_names if each.isupper())
    assert sorted(each for each in named if each in STACKS) == sorted(STACKS)
    assert len({name for name in code.co_names if name.endswith("Stack")}) == len(STACKS)


_TOPIC = {"Resources": {"T": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "Zürich", "TopicName": "a"}}}}


def _of_topic(template: dict[str, Any], tags: dict[str, str] | None = None) -> Assembly:
    stack = Stack(name="dev-network", template=template, region=REGION, account=ACCOUNT, tags=tags or {})
    return Assembly(environment="dev", stacks=(stack,))


def test_letters_that_cloudformation_does_not_show_are_those_of_the_file() -> None:
    head = _of_topic(_TOPIC, {"cost-center": "Zürich"})
    stacks = [described("dev-network", Tags=[{"Key": "cost-center", "Value": "Z?rich"}])]
    found, _ = deployed(stacks, {"dev-network": json.dumps(mangled(_TOPIC))}, head)
    assert compare(found.base, found.head) == []
    assert found.base.by_name["dev-network"] == replace(head.stacks[0], settings=ANY, settings_are_whole=False)
    (note,) = found.notes
    assert note == (
        "CloudFormation returns a question mark for each character that is not ASCII: 2 values of dev-network are "
        "assumed to be as in the file. A change of only such characters is not detected."
    )


def test_names_of_exports_are_those_that_cloudformation_lists() -> None:
    name = {"Fn::Sub": "${AWS::StackName}-${Stage}-vpc"}
    template = {
        "Parameters": {"Stage": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/stage"}},
        **NETWORK,
        "Outputs": {"V": {"Value": {"Ref": "Vpc"}, "Export": {"Name": name}}},
    }
    head = _of_topic(template)
    assert head.stacks[0].export_names == {"V": None}
    told = [described("dev-network", Outputs=[{"OutputKey": "V", "OutputValue": "v", "ExportName": "dev-a-vpc"}])]
    found, _ = deployed(told, {"dev-network": json.dumps(template)}, head)
    assert [sorted(side.exports) for side in (found.base, found.head)] == [["dev-a-vpc"], ["dev-a-vpc"]]
    # another name in the file is not that one
    other = {**template, "Outputs": {"V": {**template["Outputs"]["V"], "Export": {"Name": "dev-b-vpc"}}}}  # type: ignore[index]  # plain data
    found, _ = deployed(told, {"dev-network": json.dumps(template)}, _of_topic(other))
    assert [sorted(side.exports) for side in (found.base, found.head)] == [["dev-a-vpc"], ["dev-b-vpc"]]
