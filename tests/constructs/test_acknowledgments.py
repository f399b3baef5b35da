"""Suppressions for checkov in templates: every construct, also in other stacks, has reasons why checks do not apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from hyperpod_cdk import DeletionProtectionFunction, LifecycleScripts, MountedBucket, NodeWaiter, S3CsiDriver
from hyperpod_cdk.common.acknowledgments import acknowledge_log_group, ignore_in_checkov


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")


def skipped(stack: cdk.Stack) -> dict[str, list[dict[str, str]]]:
    """Return what checkov is told, by logical ID."""
    resources: dict[str, Any] = assertions.Template.from_stack(stack).to_json()["Resources"]
    told = {name: each.get("Metadata", {}).get("checkov") for name, each in resources.items()}
    return {name: each["skip"] for name, each in told.items() if each}


def test_reasons_are_joined_and_sorted_and_the_last_one_counts(stack: cdk.Stack) -> None:
    bucket = s3.CfnBucket(stack, "Bucket")
    bucket.add_metadata("of", "mine")
    ignore_in_checkov(bucket, {"CKV_AWS_21": "old", "CKV_AWS_18": "no logs"})
    ignore_in_checkov(bucket, {"CKV_AWS_21": "no versions", "CKV_AWS_145": "no key"})

    (resource,) = assertions.Template.from_stack(stack).to_json()["Resources"].values()
    assert resource["Metadata"] == {
        "of": "mine",
        "checkov": {
            "skip": [
                {"id": "CKV_AWS_145", "comment": "no key"},
                {"id": "CKV_AWS_18", "comment": "no logs"},
                {"id": "CKV_AWS_21", "comment": "no versions"},
            ]
        },
    }


def test_a_log_group_of_either_level_has_its_reason(stack: cdk.Stack) -> None:
    acknowledge_log_group(logs.CfnLogGroup(stack, "Plain"))
    acknowledge_log_group(logs.LogGroup(stack, "Made"))

    reason = "CloudWatch Logs encrypts what it keeps with a key of its own; encryption.logs is for another"
    skip = [{"id": "CKV_AWS_158", "comment": reason}]
    assert list(skipped(stack).values()) == [skip, skip]


def test_a_construct_alone_brings_its_reasons(stack: cdk.Stack, tmp_path: Path) -> None:
    (tmp_path / "on_create.sh").write_text("#!/bin/bash\n", encoding="utf-8")
    LifecycleScripts(stack, "Scripts", directory=tmp_path)

    ids = {name[:-8]: [each["id"] for each in skip] for name, skip in skipped(stack).items()}
    assert {key: value for key, value in ids.items() if not key.startswith("CustomCDK")} == {
        "ScriptsAccessLogs": ["CKV_AWS_18"],
        "ScriptsUploadLogs": ["CKV_AWS_158"],
    }
    (function,) = [value for key, value in ids.items() if key.startswith("CustomCDKBucketDeployment")]
    assert function == ["CKV_AWS_115", "CKV_AWS_116", "CKV_AWS_117", "CKV_AWS_173", "CKV_AWS_45"]


def test_names_that_only_the_deployment_knows_are_spelt_as_cdk_nag_spells_them() -> None:
    """A parameter, an import, the name of a nested stack: CDK refuses tokens in the keys of its metadata."""
    app = cdk.App(builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "foreign")
    name = cdk.CfnParameter(stack, "Name").value_as_string
    DeletionProtectionFunction(stack, "Function", stack_names=[name, cdk.Fn.import_value("other")])
    NodeWaiter(cdk.NestedStack(stack, "Nested"), "Waiter")
    buckets = [MountedBucket(bucket=f"their-{name}", read_only=True)]
    S3CsiDriver(stack, "Driver", eks_cluster_name=name, buckets=buckets)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))

    template = app.synth().get_stack_by_name("foreign").template
    assert template["Parameters"]["Name"] == {"Type": "String"}
