"""`hyperpod-cdk bootstrap-policy`: files for `aws iam create-policy`, and the commands that use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.cli import app
from tests.cli.conftest import Run
from tests.support.answers import answered

ROLE = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": []}}}
ACCOUNT = "111122223333"


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    return written(tmp_path / "cdk.out", {"Role": ROLE})


def written(folder: Path, resources: dict[str, Any]) -> Path:
    """Write a cloud assembly of one stack."""
    inner = folder / "assembly-dev"
    inner.mkdir(parents=True)
    nested = {"type": "cdk:cloud-assembly", "properties": {"directoryName": inner.name, "displayName": "dev"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {inner.name: nested}}), encoding="utf-8")
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": f"aws://{ACCOUNT}/us-west-2",
        "properties": {"templateFile": "t.template.json", "stackName": "dev-foundation"},
    }
    (inner / "manifest.json").write_text(json.dumps({"artifacts": {"net": stack}}), encoding="utf-8")
    (inner / "t.template.json").write_text(json.dumps({"Resources": resources}), encoding="utf-8")
    return folder


def test_the_policy_is_written_with_the_commands_that_use_it(run: Run, workspace: Path, assembly: Path) -> None:
    done = run("bootstrap-policy", "dev", "--head", str(assembly), "--out", "policy.json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads((workspace / "policy.json").read_text(encoding="utf-8"))
    assert document["Version"] == "2012-10-17"
    assert [each["Sid"] for each in document["Statement"]][:3] == ["Iam", "IamAttachedPolicies", "IamRoles"]
    assert done.stdout.splitlines()[-2:] == [
        "aws iam create-policy --policy-name dev-deploy --policy-document file://policy.json",
        (
            f"hyperpod-cdk cdk bootstrap aws://{ACCOUNT}/us-west-2 --cloudformation-execution-policies"
            f" arn:aws:iam::{ACCOUNT}:policy/dev-deploy"
        ),
    ]


def test_without_a_file_it_says_what_it_would_write(run: Run, workspace: Path, assembly: Path) -> None:
    done = run("bootstrap-policy", "dev", "--head", str(assembly))
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("dev-deploy: ")
    assert done.stdout.splitlines()[-1] == (
        "nothing was written; write it with 'hyperpod-cdk bootstrap-policy dev --out policy.json'"
    )
    assert list(workspace.glob("*.json")) == []


def test_json_has_the_documents_and_the_reasons(run: Run, assembly: Path) -> None:
    done = run("bootstrap-policy", "dev", "--head", str(assembly), "--format", "json")
    told = answered("bootstrap-policy", done.stdout)
    (policy,) = told["policies"]
    assert (told["account"], told["region"], told["files"]) == (ACCOUNT, "us-west-2", [])
    assert {each["Sid"] for each in policy["document"]["Statement"]} == set(told["reasons"])


def test_what_is_left_out_is_reported_with_its_reason(run: Run, tmp_path: Path) -> None:
    head = written(tmp_path / "groups.out", {"Group": {"Type": "AWS::Logs::LogGroup", "Properties": {}}})
    summary = "omitted: permissions that CloudFormation lists for 1 resource type but these stacks do not need"
    lines = run("bootstrap-policy", "dev", "--head", str(head)).stdout.splitlines()
    assert lines[-3:-1] == [f"{summary}; --verbose lists them with the reasons", ""]
    lines = run("bootstrap-policy", "dev", "--head", str(head), "-v").stdout.splitlines()
    told = lines[lines.index(summary) + 1]
    assert told.startswith("  AWS::Logs::LogGroup, for DataProtectionPolicy, FieldIndexPolicies, ")
    assert ": features of log groups that no stack uses" in told
    (row,) = json.loads(run("bootstrap-policy", "dev", "--head", str(head), "--format", "json").stdout)["left_out"]
    assert (row["types"], row["properties"][0]) == (["AWS::Logs::LogGroup"], "DataProtectionPolicy")


def test_with_a_base_what_leaves_may_be_deleted(run: Run, workspace: Path, assembly: Path, tmp_path: Path) -> None:
    before = written(tmp_path / "before.out", {"Role": ROLE, "Quota": {"Type": "AWS::SageMaker::ComputeQuota"}})
    told = {}
    for name, base in (("alone", ()), ("both", ("--base", str(before)))):
        done = run("bootstrap-policy", "dev", "--head", str(assembly), *base, "--out", f"{name}.json")
        assert (done.returncode, done.stderr) == (0, "")
        told[name] = (workspace / f"{name}.json").read_text(encoding="utf-8")
    assert "sagemaker:DeleteComputeQuota" not in told["alone"]
    assert "sagemaker:DeleteComputeQuota" in told["both"]


def test_what_is_deployed_is_read_in_place_of_a_base(
    workspace: Path, assembly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    deployed = {"Quota": {"Type": "AWS::SageMaker::ComputeQuota", "Properties": {}}}
    stack = {"StackName": "dev-foundation", "StackStatus": "CREATE_COMPLETE", "StackId": "arn:aws:cloudformation:::s"}

    class There:
        def call(self, service: str, operation: str, **_: Any) -> Any:
            assert (service, operation) == ("cloudformation", "get_template")
            return {"TemplateBody": {"Resources": deployed}}

        def pages(self, service: str, operation: str, key: str, **_: Any) -> list[Any]:
            return [stack] if (service, operation, key) == ("cloudformation", "describe_stacks", "Stacks") else []

        def each(self, function: Any, items: Any) -> list[Any]:
            return [function(item) for item in items]

        def send(self, service: str, operation: str, **params: Any) -> Any:
            return self.call(service, operation, **params)

    access = Access(open=lambda _region, _account: There())
    arguments = ["bootstrap-policy", "dev", "--head", str(assembly), "--format", "json"]
    alone, beside = (CliRunner().invoke(app, [*arguments, *more], obj=access).stdout for more in ((), ("--deployed",)))
    assert "sagemaker:DeleteComputeQuota" not in alone
    assert "sagemaker:DeleteComputeQuota" in beside
    both = CliRunner().invoke(app, [*arguments, "--deployed", "--base", str(assembly)], obj=access)
    assert (both.exit_code, both.stderr) == (2, "--deployed is what to compare with; omit --base\n")


def test_several_policies_are_several_files(run: Run, workspace: Path, tmp_path: Path) -> None:
    # names that fill one policy after the other
    buckets = {
        f"Bucket{n}": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": f"bucket-of-somebody-{n}"}}
        for n in range(100)
    }
    groups = {
        f"Group{n}": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": f"/aws/group-of-somebody-{n}"}}
        for n in range(50)
    }
    assembly = written(tmp_path / "large.out", buckets | groups)
    done = run("bootstrap-policy", "dev", "--head", str(assembly), "--out", "policy.json")
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in workspace.glob("policy*")) == ["policy-1.json", "policy-2.json"]
    assert done.stdout.splitlines()[-1].endswith(
        f" arn:aws:iam::{ACCOUNT}:policy/dev-deploy-1,arn:aws:iam::{ACCOUNT}:policy/dev-deploy-2"
    )


def test_mistakes_are_one_line_each(run: Run, assembly: Path) -> None:
    unknown = run("bootstrap-policy", "deb")
    assert (unknown.returncode, unknown.stdout, len(unknown.stderr.splitlines())) == (2, "", 1)
    assert "dev" in unknown.stderr

    nowhere = run("bootstrap-policy", "dev", "--head", str(assembly), "--out", "missing/policy.json")
    assert (nowhere.returncode, nowhere.stderr) == (2, "cannot write missing/policy.json: No such file or directory\n")


def test_an_unknown_custom_resource_is_reported_and_the_rest_is_written(
    run: Run, workspace: Path, assembly: Path, tmp_path: Path
) -> None:
    own = {"Queue": {"Type": "AWS::SQS::Queue"}, "Late": {"Type": "AWS::SQS::Queue"}}
    names = {"Name": {"Type": "AWS::SSM::Parameter"}}
    head = written(tmp_path / "own.out", {"Role": ROLE, **own})
    whole = run("bootstrap-policy", "dev", "--head", str(assembly), "--out", "whole.json")
    done = run("bootstrap-policy", "dev", "--head", str(head), "--out", "policy.json")
    assert done.returncode == 1
    assert (workspace / "policy.json").read_bytes() == (workspace / "whole.json").read_bytes()
    assert done.stdout == whole.stdout.replace("whole.json", "policy.json").rstrip("\n") + ",ARN_OF_YOUR_POLICY\n"
    says = "no IAM actions are known for"
    first, last = done.stderr.splitlines()
    assert first == f"dev-foundation/Queue and 1 other: {says} AWS::SQS::Queue; the policy allows none for it"
    assert last == (
        "Write your own policy for this type, and pass its ARN to --cloudformation-execution-policies in place of"
        " ARN_OF_YOUR_POLICY. The schema of the type lists the actions under handlers, as permissions of create, read,"
        " update and delete: aws cloudformation describe-type --type RESOURCE --type-name AWS::SQS::Queue --query"
        " Schema --output text"
    )
    # what only the base has is named, too: CloudFormation is to delete it
    base = written(tmp_path / "base.out", {"Role": ROLE, **names})
    both = run("bootstrap-policy", "dev", "--head", str(head), "--base", str(base), "--format", "json")
    assert both.returncode == 1
    assert answered("bootstrap-policy", both.stdout)["unknown"] == [
        {"type": "AWS::SQS::Queue", "resources": ["dev-foundation/Queue", "dev-foundation/Late"]},
        {"type": "AWS::SSM::Parameter", "resources": ["dev-foundation/Name"]},
    ]
    first, second, last = both.stderr.splitlines()
    assert second == f"dev-foundation/Name: {says} AWS::SSM::Parameter; the policy allows none for it"
    assert last.startswith("Write your own policy for these types, and pass its ARN to ")
    # an app of nothing else leaves what each environment needs
    alone = run("bootstrap-policy", "dev", "--head", str(written(tmp_path / "alone.out", own)))
    assert (alone.returncode, alone.stdout.partition(":")[0]) == (1, "dev-deploy")
