"""What an extension retains stays for that reason, whatever its type; what a rehearsal knows no actions of is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from hyperpod_cdk.catalog import prices
from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.driver import _Rehearsal
from hyperpod_cdk_rehearsal.left_over import _TOLD_OTHERWISE, Kept, kept_and_unexpected, snapshot
from hyperpod_cdk_rehearsal.report import Report
from tests.support.embedded import PROJECT, embedded
from tests.support.in_process_cdk import Aws

FOREIGN = (
    *("AWS::Athena::WorkGroup", "AWS::Backup::BackupVault", "AWS::Cognito::UserPool", "AWS::DynamoDB::Table"),
    *("AWS::ECR::Repository", "AWS::ECS::Cluster", "AWS::Glue::Database", "AWS::RUM::AppMonitor"),
    *("AWS::SSM::Parameter", "AWS::SecretsManager::Secret"),
)
KEPT = "its template retains it"


def role(policy: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {"Type": "AWS::IAM::Role", "DeletionPolicy": policy, "Properties": {"AssumeRolePolicyDocument": document}}


def test_what_a_template_retains_stays_whatever_its_type(tmp_path: Path) -> None:
    resources = {
        "Kept": role("Retain"),
        "Gone": role("Delete"),
        "Vault": {
            "Type": "AWS::Backup::BackupVault",
            "DeletionPolicy": "Retain",
            "Properties": {"BackupVaultName": "ours"},
        },
        "Logs": {"Type": "AWS::Logs::LogGroup", "DeletionPolicy": "Retain", "Properties": {"LogGroupName": "/ours"}},
    }
    with embedded({}, is_hurried=True) as there:
        aws = Aws(there, tmp_path)
        before = snapshot(aws)
        cloudformation = aws.client("cloudformation")
        cloudformation.create_stack(
            StackName="ours", TemplateBody=json.dumps({"Resources": resources}), Capabilities=["CAPABILITY_IAM"]
        )
        cloudformation.get_waiter("stack_create_complete").wait(StackName="ours", WaiterConfig={"Delay": 1})
        rows = cloudformation.describe_stack_resources(StackName="ours")["StackResources"]
        ids = {row["LogicalResourceId"]: row["PhysicalResourceId"] for row in rows}
        cloudformation.delete_stack(StackName="ours")
        cloudformation.get_waiter("stack_delete_complete").wait(StackName="ours", WaiterConfig={"Delay": 1})
        retained = {
            "AWS::IAM::Role": [ids["Kept"]],
            "AWS::Backup::BackupVault": [ids["Vault"]],
            "AWS::Logs::LogGroup": ["/ours"],
        }
        told = partial(kept_and_unexpected, aws, before, region="us-east-1", prices=prices.shipped())
        kept, unexpected = told(retained=retained)
        assert unexpected == []
        assert kept == [
            Kept(kind="IAM role", name=ids["Kept"], why=KEPT, monthly="nothing"),
            Kept(kind="log group", name="/ours", why="logs are data", monthly="as much as its contents"),
            Kept(kind="AWS::Backup::BackupVault", name=ids["Vault"], why=KEPT, monthly="unknown"),
        ]
        # a role that no template retains should have gone
        assert told()[1] == [f"IAM role {ids['Kept']}"]


def retained_types(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if str(node.get("DeletionPolicy", "")).startswith("Retain") and "Type" in node:
            yield node["Type"]
        for each in node.values():
            yield from retained_types(each)
    elif isinstance(node, list):
        for each in node:
            yield from retained_types(each)


def test_the_types_that_are_listed_otherwise_are_those_that_the_examples_retain() -> None:
    golden = sorted((PROJECT / "tests" / "stacks" / "golden").glob("*.yaml"))
    found = {each for file in golden for each in retained_types(yaml.load(file.read_text("utf-8"), yaml.CSafeLoader))}
    assert found == _TOLD_OTHERWISE


@pytest.mark.parametrize("types", [FOREIGN, FOREIGN[:1], ()])
def test_types_of_which_no_actions_are_known_are_named(types: tuple[str, ...], tmp_path: Path) -> None:
    resources = {f"R{number}": {"Type": each, "Properties": {}} for number, each in enumerate(types)}
    resources["Logs"] = {"Type": "AWS::Logs::LogGroup", "Properties": {}}
    (tmp_path / "ours.template.json").write_text(json.dumps({"Resources": resources}), encoding="utf-8")
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://111122223333/us-east-1",
        "properties": {"templateFile": "ours.template.json", "stackName": "prod-ours"},
    }
    manifest = {"version": "48.0.0", "artifacts": {"ours": stack}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    environment = load_environment(PROJECT / "environments" / "prod.yaml").environment
    steps = [
        {"stack": "prod-ours", "type": each, "logical_id": f"R{number}", "calls": []}
        for number, each in enumerate(types)
    ]
    playing: Any = SimpleNamespace(
        environment=environment,
        aws=SimpleNamespace(steps=lambda: steps),
        stacks=["prod-ours"],
        report=Report(environment="prod", file="prod.yaml", account=environment.account, region=environment.region),
    )
    said = _Rehearsal._judge(playing, tmp_path)
    named = f", except those for {', '.join(types)}, whose actions are unknown;" if types else ","
    assert re.sub(r"^\d+ calls of CloudFormation", "", said) == (
        f" compared with the policy of 'bootstrap-policy'{named} all allowed"
    )
