"""The quota gate: what waits for it, what its role may do, what travels to its Lambda."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from hyperpod_cdk import QuotaGate
from hyperpod_cdk.handlers import quota_gate as handlers
from hyperpod_cdk.handlers.quota_gate.comparison import from_properties
from hyperpod_cdk.quotas.gate import Own, Requirement
from hyperpod_cdk.templates.cdk_plugin import check_templates
from tests.support.templates import app, of_type, stack, template_of

P5 = Requirement(
    key="cluster:ml.p5.48xlarge",
    service="sagemaker",
    name="ml.p5.48xlarge for cluster usage",
    code="L-8762A75F",
    default=0,
    needed=16,
    spare=1,
    usage="hyperpod_instances:ml.p5.48xlarge",
    unit="ml.p5.48xlarge for cluster usage",
    path="hyperpod.instance_groups[1].count",
)
VPCS = Requirement(
    key="vpcs", service="vpc", name="VPCs per Region", code="L-F678F1CE", default=5, needed=1, usage="vpcs"
)
SUBNETS = Requirement(key="subnets", service="vpc", name="Subnets per VPC", code="L-407747CB", default=200, needed=5)
GATE = "Custom::HyperPodQuotaGate"
READING_QUOTAS = [
    "servicequotas:GetAWSDefaultServiceQuota",
    "servicequotas:GetServiceQuota",
    "servicequotas:ListAWSDefaultServiceQuotas",
    "servicequotas:ListServiceQuotas",
]


def gate(scope: cdk.Stack, requirements: Iterable[Requirement] = (P5, VPCS), **rest: Any) -> QuotaGate:
    return QuotaGate(scope, "Gate", requirements=list(requirements), **rest)


def only(template: dict[str, Any], resource_type: str) -> dict[str, Any]:
    (found,) = of_type(template, resource_type).values()
    return found


def statements(template: dict[str, Any]) -> list[dict[str, Any]]:
    (policy,) = only(template, "AWS::IAM::Role")["Properties"]["Policies"]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


def waiting(template: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Return the logical IDs of resources with a DependsOn on the gate, and of those without."""
    (gate_id,) = of_type(template, GATE)
    resources = template["Resources"]
    waits = {name for name, each in resources.items() if gate_id in each.get("DependsOn", [])}
    return waits, set(resources) - waits


def test_everything_else_in_a_foreign_stack_waits_for_it() -> None:
    foreign = stack("foreign")
    ec2.Vpc(foreign, "Vpc", max_azs=2)
    s3.Bucket(foreign, "Bucket", auto_delete_objects=True, removal_policy=cdk.RemovalPolicy.DESTROY)
    gate(foreign).before(foreign)
    template = cdk.assertions.Template.from_stack(foreign).to_json()
    waits, does_not = waiting(dict(template))
    assert {template["Resources"][name]["Type"] for name in does_not} == {
        "AWS::Logs::LogGroup",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        GATE,
    }
    assert len(does_not) == 4
    types = {template["Resources"][name]["Type"] for name in waits}
    assert {"AWS::EC2::VPC", "AWS::EC2::NatGateway", "AWS::S3::Bucket", "Custom::S3AutoDeleteObjects"} <= types


def test_a_whole_app_can_wait_for_it() -> None:
    whole = app()
    foreign = stack("foreign", whole)
    ec2.CfnVPC(foreign, "Vpc", cidr_block="10.0.0.0/16")
    gate(foreign).before(whole)
    waits, does_not = waiting(template_of(foreign))
    assert waits == {"Vpc"}
    assert len(does_not) == 4


def test_only_what_is_named_waits_for_it() -> None:
    foreign = stack("foreign")
    vpc = ec2.CfnVPC(foreign, "Vpc", cidr_block="10.0.0.0/16")
    ec2.CfnVPC(foreign, "Other", cidr_block="10.1.0.0/16")
    gate(foreign).before(vpc)
    waits, _ = waiting(template_of(foreign))
    assert waits == {"Vpc"}


def test_a_gate_does_not_wait_for_itself() -> None:
    foreign = stack("foreign")
    made = gate(foreign)
    # its path begins like the gate's own
    ec2.CfnVPC(foreign, "GateNeighbour", cidr_block="10.0.0.0/16")
    made.before(foreign, made, made.role)
    waits, does_not = waiting(template_of(foreign))
    assert waits == {"GateNeighbour"}
    assert len(does_not) == 4


def test_the_requirements_travel_in_readable_properties() -> None:
    foreign = stack("foreign")
    own = Own(stacks=("prod-foundation", "prod-storage"), hyperpod_cluster="prod", eks_cluster="prod-eks")
    gate(foreign, own=own, mode="warn", environment_name="prod")
    template = template_of(foreign)
    (function,) = of_type(template, "AWS::Lambda::Function")
    properties = only(template, GATE)["Properties"]
    assert from_properties(properties["Requirements"]) == (P5, VPCS)
    assert properties == {
        "ServiceToken": {"Fn::GetAtt": [function, "Arn"]},
        "ServiceTimeout": 540,
        "Mode": "warn",
        "EnvironmentName": "prod",
        "Own": {"Stacks": ["prod-foundation", "prod-storage"], "HyperPodCluster": "prod", "EksCluster": "prod-eks"},
        "Requirements": [
            {
                "Key": "cluster:ml.p5.48xlarge",
                "Service": "sagemaker",
                "Name": "ml.p5.48xlarge for cluster usage",
                "Code": "L-8762A75F",
                "Default": "0",
                "Needed": "16",
                "Spare": "1",
                "Usage": "hyperpod_instances:ml.p5.48xlarge",
                "Unit": "ml.p5.48xlarge for cluster usage",
                "Path": "hyperpod.instance_groups[1].count",
            },
            {
                "Key": "vpcs",
                "Service": "vpc",
                "Name": "VPCs per Region",
                "Code": "L-F678F1CE",
                "Default": "5",
                "Needed": "1",
                "Usage": "vpcs",
            },
        ],
    }


def test_by_default_it_enforces_for_this_stack_alone() -> None:
    foreign = stack("foreign")
    gate(foreign)
    properties = only(template_of(foreign), GATE)["Properties"]
    assert properties["Mode"] == "enforce"
    assert properties["Own"] == {"Stacks": ["foreign"], "HyperPodCluster": "", "EksCluster": ""}


def test_the_role_may_do_what_these_requirements_need_and_nothing_else() -> None:
    foreign = stack("foreign")
    gate(foreign)
    template = template_of(foreign)
    (logs,) = of_type(template, "AWS::Logs::LogGroup")
    clusters = [
        "",
        ["arn:", {"Ref": "AWS::Partition"}, ":sagemaker:us-east-1:111122223333:cluster/*"],
    ]
    # by the name that it will get: a role that refers to its log group waits for it
    own_logs = [
        "",
        [
            "arn:",
            {"Ref": "AWS::Partition"},
            ":logs:us-east-1:111122223333:log-group:",
            {"Ref": "AWS::StackName"},
            f"-{logs}-*",
        ],
    ]
    assert _without_pseudo(statements(template)) == [
        {
            "Effect": "Allow",
            "Action": ["ec2:DescribeVpcs", "sagemaker:ListClusters", *READING_QUOTAS],
            "Resource": ["*"],
        },
        {"Effect": "Allow", "Action": ["sagemaker:DescribeCluster"], "Resource": [{"Fn::Join": clusters}]},
        {"Effect": "Allow", "Action": ["cloudformation:DescribeStacks"], "Resource": [{"Ref": "AWS::StackId"}]},
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": [{"Fn::Join": own_logs}],
        },
    ]


def _without_pseudo(value: Any) -> Any:
    """Region and account as this stack has them, and joined with their neighbours."""
    text = json.dumps(value)
    for service, rest in (("sagemaker", "cluster/*"), ("logs", "log-group:")):
        apart = f'":{service}:", {{"Ref": "AWS::Region"}}, ":", {{"Ref": "AWS::AccountId"}}, ":{rest}"'
        text = text.replace(apart, f'":{service}:us-east-1:111122223333:{rest}"')
    return json.loads(text)


def test_without_use_by_others_only_quotas_are_read() -> None:
    foreign = stack("foreign")
    gate(foreign, [SUBNETS])
    actions = [action for each in statements(template_of(foreign)) for action in each["Action"]]
    assert actions == [
        *READING_QUOTAS,
        "cloudformation:DescribeStacks",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
    ]


def test_the_function_and_its_log() -> None:
    foreign = stack("foreign")
    gate(foreign, timeout_seconds=300)
    template = template_of(foreign)
    function, logs = only(template, "AWS::Lambda::Function"), only(template, "AWS::Logs::LogGroup")
    assert {key: function["Properties"][key] for key in ("Handler", "Runtime", "Timeout", "MemorySize")} == {
        "Handler": "handlers.quota_gate.index.handler",
        "Runtime": "python3.14",
        "Timeout": 300,
        "MemorySize": 1024,
    }
    assert function["Properties"]["LoggingConfig"] == {
        "LogGroup": {"Ref": next(iter(of_type(template, "AWS::Logs::LogGroup")))}
    }
    metadata = logs.pop("Metadata")
    assert [each["id"] for each in metadata["checkov"]["skip"]] == ["CKV_AWS_158"]
    assert logs == {
        "Type": "AWS::Logs::LogGroup",
        "Properties": {"RetentionInDays": 90},
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
    }
    # Lambda's two retries, a minute and two minutes after a failed run, fit into it
    assert only(template, GATE)["Properties"]["ServiceTimeout"] == 3 * 300 + 180


def _assets(outdir: Path) -> list[Path]:
    return [folder for folder in outdir.glob("asset.*") if (folder / "handlers/quota_gate").is_dir()]


def test_the_asset_holds_the_gates_code_and_nothing_else(tmp_path: Path) -> None:
    made = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    gate(stack("foreign", made))
    made.synth()
    (asset,) = _assets(tmp_path)
    source = Path(next(iter(handlers.__path__)))
    own = {f"handlers/quota_gate/{file.name}" for file in source.glob("*.py")}
    assert {f"handlers/quota_gate/{name}.py" for name in ("__init__", "index", "comparison")} <= own
    expected = {"handlers/__init__.py", "handlers/answering.py", *own}
    assert {str(file.relative_to(asset)) for file in asset.rglob("*") if file.is_file()} == expected


def test_the_asset_is_the_same_whatever_lies_beside_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = tmp_path / "handlers"
    shutil.copytree(Path(next(iter(handlers.__path__))).parent, copied)
    monkeypatch.setattr("hyperpod_cdk.common.handler_functions._HANDLERS", copied)
    names = []
    for run in ("first", "second"):
        for file in (
            "quota_gate/__pycache__/index.cpython-311.pyc",
            "quota_gate/notes.md",
            "governance/more.py",
            "x.py",
        ):
            (copied / file).parent.mkdir(exist_ok=True)
            (copied / file).write_text(run, encoding="utf-8")
        made = cdk.App(outdir=str(tmp_path / run), builtin_cloud_formation_validation=False)
        gate(stack("foreign", made))
        made.synth()
        names += [asset.name for asset in _assets(tmp_path / run)]
    assert len(names) == 2
    assert len(set(names)) == 1


def test_findings_and_skipped_can_be_referred_to() -> None:
    foreign = stack("foreign")
    made = gate(foreign)
    cdk.CfnOutput(foreign, "Findings", value=made.findings)
    cdk.CfnOutput(foreign, "Skipped", value=made.skipped)
    template = template_of(foreign)
    (gate_id,) = of_type(template, GATE)
    assert template["Outputs"] == {name: {"Value": {"Fn::GetAtt": [gate_id, name]}} for name in ("Findings", "Skipped")}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mode": "off"}, 'mode: must be enforce or warn, got "off"; leave out the gate to turn it off'),
        ({"timeout_seconds": 59}, "timeout_seconds: must be between 60 and 900, got 59; leave it out for 120"),
        ({"timeout_seconds": 901}, "timeout_seconds: must be between 60 and 900, got 901; leave it out for 120"),
        ({"requirements": []}, "requirements: must have at least one requirement, got none; leave out the gate"),
        (
            {"requirements": [VPCS, VPCS]},
            "requirements: must have a key each, got vpcs twice; give the second another key",
        ),
        (
            {"requirements": [Requirement(**{**VPCS.__dict__, "usage": "cars"})]},
            "requirements: vpcs must name a kind of use that the gate can read, got 'cars'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_served_is_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"^\w+: ") as error:
        gate(stack(), **arguments)
    assert str(error.value) == text


@pytest.mark.parametrize("seconds", [60, 900])
def test_the_ends_of_the_timeout_are_served(seconds: int) -> None:
    foreign = stack()
    gate(foreign, timeout_seconds=seconds)
    assert only(template_of(foreign), GATE)["Properties"]["ServiceTimeout"] <= 3600


def test_neither_cdk_nag_nor_the_template_checks_find_anything(tmp_path: Path) -> None:
    made = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    foreign = stack("foreign", made)
    gate(foreign).before(foreign)
    cdk.Validations.of(made).add_plugins(AwsSolutionsChecks(made))
    made.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text(encoding="utf-8"))
    assert [each for plugin in report["pluginReports"] for each in plugin["violations"]] == []
    assert check_templates([tmp_path / "foreign.template.json"], region="us-east-1") == []


def test_it_needs_no_account_or_region() -> None:
    anywhere = cdk.Stack(app(), "anywhere")
    gate(anywhere)
    assert of_type(template_of(anywhere), GATE)
