"""`hyperpod-cdk templates`: CloudFormation for those who review it, kept true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

TEMPLATE = {"Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": {"Ref": "Name"}}}}}
TEXT = "Resources:\n  Bucket:\n    Type: AWS::S3::Bucket\n    Properties:\n      BucketName: !Ref Name\n"


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    folder = tmp_path / "cdk.out"
    inner = folder / "assembly-dev"
    inner.mkdir(parents=True)
    nested = {"type": "cdk:cloud-assembly", "properties": {"directoryName": inner.name, "displayName": "dev"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {inner.name: nested}}), encoding="utf-8")
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://111122223333/us-west-2",
        "properties": {"templateFile": "net.template.json", "stackName": "dev-network"},
    }
    (inner / "manifest.json").write_text(json.dumps({"artifacts": {"net": stack}}), encoding="utf-8")
    (inner / "net.template.json").write_text(json.dumps(TEMPLATE), encoding="utf-8")
    return folder


def test_templates_are_written_and_checked(run: Run, workspace: Path, assembly: Path) -> None:
    missing = run("templates", "dev", "--head", str(assembly), "--check")
    assert (missing.returncode, missing.stderr) == (1, "")
    assert missing.stdout == (
        "synthesized/dev/dev-network.yaml\nsynthesized/dev/diagram.svg\n"
        "different from the environments; write them with 'hyperpod-cdk templates' and review the difference\n"
    )
    assert not (workspace / "synthesized").exists()

    written = run("templates", "dev", "--head", str(assembly))
    assert written.returncode == 0
    assert written.stdout == "synthesized/dev/dev-network.yaml\nsynthesized/dev/diagram.svg\n"
    assert (workspace / "synthesized" / "dev" / "dev-network.yaml").read_text(encoding="utf-8") == TEXT

    (workspace / "synthesized" / "old").mkdir()
    checked = run("templates", "--head", str(assembly), "--check")
    assert checked.returncode == 1
    assert checked.stdout.splitlines()[0] == "synthesized/old/ (the environment does not exist: delete the folder)"
    (workspace / "synthesized" / "old").rmdir()
    assert run("templates", "--head", str(assembly), "--check").stdout == ("synthesized/ matches the environments\n")


def test_what_is_no_assembly_is_one_line(run: Run, run_process: Run, tmp_path: Path) -> None:
    refused = run_process("templates", "dev", "--head", str(tmp_path))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert len(refused.stderr.splitlines()) == 1
    unknown = run("templates", "prod")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == 'no environment "prod" in environments; there is dev\n'
