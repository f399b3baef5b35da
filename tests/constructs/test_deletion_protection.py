"""Deletion protection: one function with exactly its rights, and a resource in each stack that waits for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks

from hyperpod_cdk import DeletionProtection, DeletionProtectionFunction, handlers
from hyperpod_cdk.templates.cdk_plugin import check_templates
from tests.support.templates import app, of_type, stack, template_of

RESOURCE = "Custom::HyperPodDeletionProtection"


def only(template: dict[str, Any], resource_type: str) -> dict[str, Any]:
    (found,) = of_type(template, resource_type).values()
    return found


def function(scope: cdk.Stack, **arguments: Any) -> DeletionProtectionFunction:
    return DeletionProtectionFunction(
        scope,
        "Protection",
        **{"stack_names": ["prod-hyperpod", "prod-storage"], "eks_cluster_name": "prod-eks", **arguments},
    )


def arn(service: str, resource: str) -> dict[str, Any]:
    parts = [f":{service}:", {"Ref": "AWS::Region"}, ":", {"Ref": "AWS::AccountId"}, f":{resource}"]
    return {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, *parts]]}


def test_the_function_may_do_what_it_does_with_what_is_the_environments_own() -> None:
    foreign = cdk.Stack(app(), "foreign")
    function(foreign)
    template = template_of(foreign)
    (policy,) = only(template, "AWS::IAM::Role")["Properties"]["Policies"]
    (logs,) = of_type(template, "AWS::Logs::LogGroup")
    assert policy["PolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Action": ["cloudformation:DescribeStacks", "cloudformation:UpdateTerminationProtection"],
            "Resource": [
                arn("cloudformation", "stack/prod-hyperpod/*"),
                arn("cloudformation", "stack/prod-storage/*"),
            ],
        },
        {
            "Effect": "Allow",
            "Action": ["eks:DescribeCluster", "eks:DescribeUpdate", "eks:UpdateClusterConfig"],
            "Resource": [arn("eks", "cluster/prod-eks")],
        },
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": [{"Fn::GetAtt": [logs, "Arn"]}],
        },
    ]


def test_it_has_no_permission_for_clusters_of_others() -> None:
    foreign = stack()
    function(foreign, eks_cluster_name=None)
    assert "eks:" not in json.dumps(template_of(foreign))


def test_the_resource_waits_for_nothing_in_its_stack() -> None:
    whole = app()
    made = function(stack("prod-foundation", whole))
    foreign = stack("prod-hyperpod", whole)
    DeletionProtection(foreign, "DeletionProtection", function=made, eks_cluster_name="prod-eks")
    resource = only(template_of(foreign), RESOURCE)
    token = resource["Properties"].pop("ServiceToken")
    assert list(token) == ["Fn::ImportValue"]
    assert resource == {
        "Type": RESOURCE,
        "Properties": {"ServiceTimeout": 900, "Enabled": True, "EksClusterName": "prod-eks"},
    }


def test_what_comes_after_it_waits_until_it_is_begun_and_does_not_hold_up_its_deletion() -> None:
    whole = app()
    made = function(stack("prod-foundation", whole))
    foreign = stack("prod-hyperpod", whole)
    cdk.CfnResource(foreign, "Other", type="AWS::SNS::Topic")
    DeletionProtection(foreign, "DeletionProtection", function=made).before(foreign)
    template = template_of(foreign)
    (handle,) = of_type(template, "AWS::CloudFormation::WaitConditionHandle")
    assert template["Resources"]["Other"]["DependsOn"] == [handle]
    assert "DependsOn" not in only(template, RESOURCE)
    assert "DependsOn" not in template["Resources"][handle]


def test_without_eks_and_off() -> None:
    whole = app()
    made = function(stack("prod-foundation", whole))
    foreign = stack("prod-storage", whole)
    DeletionProtection(foreign, "DeletionProtection", function=made, enabled=False)
    properties = only(template_of(foreign), RESOURCE)["Properties"]
    del properties["ServiceToken"]
    assert properties == {"ServiceTimeout": 900, "Enabled": False}


def test_the_asset_holds_the_functions_code_and_nothing_else(tmp_path: Path) -> None:
    made = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    foreign = stack("foreign", made)
    function(foreign)
    made.synth()
    (asset,) = [folder for folder in tmp_path.glob("asset.*") if folder.is_dir()]
    assert {str(file.relative_to(asset)) for file in asset.rglob("*") if file.is_file()} == {
        "handlers/__init__.py",
        "handlers/answering.py",
        "handlers/deletion_protection/__init__.py",
        "handlers/deletion_protection/index.py",
    }
    for file in asset.rglob("*.py"):
        original = Path(next(iter(handlers.__path__))).parent / file.relative_to(asset)
        assert file.read_bytes() == original.read_bytes()
    assert only(template_of(foreign), "AWS::Lambda::Function")["Properties"]["Handler"] == (
        "handlers.deletion_protection.index.handler"
    )


def test_what_has_no_right_to_it_is_refused() -> None:
    whole = app()
    foundation = stack("prod-foundation", whole)
    with pytest.raises(ValueError, match=r"^stack_names: must name a stack, got none; leave out the function$"):
        function(foundation, stack_names=[])
    made = function(stack("prod-more", whole))
    with pytest.raises(
        ValueError,
        match=r"^function: must have a right to the stack prod-platform, got one for prod-hyperpod, prod-storage; add"
        r" it to its stack_names$",
    ):
        DeletionProtection(stack("prod-platform", whole), "DeletionProtection", function=made)
    with pytest.raises(
        ValueError,
        match=r"^eks_cluster_name: must be the cluster that the function has a right to, got 'other' where that is"
        r" 'prod-eks'; give both the same$",
    ):
        DeletionProtection(stack("prod-hyperpod", whole), "DeletionProtection", function=made, eks_cluster_name="other")


def test_neither_cdk_nag_nor_the_template_checks_find_anything(tmp_path: Path) -> None:
    made = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    foreign = stack("foreign", made)
    protection = function(foreign, stack_names=["foreign"])
    DeletionProtection(foreign, "DeletionProtection", function=protection)
    cdk.Validations.of(made).add_plugins(AwsSolutionsChecks(made))
    made.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text(encoding="utf-8"))
    assert [each for plugin in report["pluginReports"] for each in plugin["violations"]] == []
    assert check_templates([tmp_path / "foreign.template.json"], region="us-east-1") == []
