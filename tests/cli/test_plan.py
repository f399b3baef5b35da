"""``plan`` as users run it: between cloud assemblies, and against what is deployed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.answers import AwsAccessError
from tests.support.answers import answered


def write_assembly(
    folder: Path,
    stacks: dict[str, dict[str, Any]],
    dependencies: dict[str, list[str]],
    *,
    where: str = "aws://111122223333/us-east-1",
) -> Path:
    """Write a cloud assembly of an environment dev, as 'cdk synth' does.

    Stacks that hold what takes their protection back have one, as in the app.
    """
    inner = folder / "assembly-dev"
    inner.mkdir(parents=True)
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": inner.name, "displayName": "dev"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {"assembly-dev": stage}}), encoding="utf-8")
    artifacts = {}
    for name, template in stacks.items():
        (inner / f"{name}.json").write_text(json.dumps(template), encoding="utf-8")
        protects = any(
            each["Type"] == "Custom::HyperPodDeletionProtection" and "EksClusterName" not in each["Properties"]
            for each in template.get("Resources", {}).values()
        )
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "environment": where,
            "properties": {
                "stackName": f"dev-{name}",
                "templateFile": f"{name}.json",
                "terminationProtection": protects,
            },
            "dependencies": dependencies.get(name, []),
            "displayName": f"dev/{name}",
        }
    (inner / "manifest.json").write_text(json.dumps({"artifacts": artifacts}), encoding="utf-8")
    return folder


def _storage(*exports: str) -> dict[str, Any]:
    groups = {each: {"Type": "AWS::EC2::SecurityGroup"} for each in ("always", *exports)}
    return {
        "Resources": groups,
        "Outputs": {each: {"Value": {"Ref": each}, "Export": {"Name": each}} for each in exports},
    }


def _platform(*imports: str) -> dict[str, Any]:
    topic = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {}}
    used = {each: {**topic, "Properties": {"Description": {"Fn::ImportValue": each}}} for each in imports}
    return {"Resources": {"always": topic, **used}}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    needs = {"platform": ["storage"]}
    return (
        write_assembly(tmp_path / "old", {"storage": _storage("fs"), "platform": _platform("fs")}, needs),
        write_assembly(tmp_path / "new", {"storage": _storage(), "platform": _platform()}, needs),
    )


def _run(*arguments: object, obj: object = None) -> Result:
    return CliRunner().invoke(cli.app, [str(each) for each in arguments], prog_name="hyperpod-cdk", obj=obj)


def test_steps_between_assemblies(sides: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = sides
    done = _run("plan", "dev", "--base", old, "--head", new)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("dev: 2 steps. CloudFormation needs ")
    typed = [line for line in done.stdout.splitlines() if line.startswith("  $ ")]
    assert typed == [
        f"  $ hyperpod-cdk cdk deploy dev/platform --exclusively --app {new} --concurrency 3 --require-approval never",
        f"  $ hyperpod-cdk cdk deploy 'dev/*' --app {new} --concurrency 3 --require-approval never",
    ]
    files = [tmp_path / "plan.md", tmp_path / "plan.json"]
    done = _run("plan", "dev", "--base", old, "--head", new, *(each for file in files for each in ("--out", file)))
    assert done.stdout == "dev: 2 steps.\n"
    assert done.stderr == "".join(f"wrote {file}\n" for file in files)
    assert files[0].read_text(encoding="utf-8").startswith("## Plan of `dev`\n")
    done = _run("plan", "dev", "--base", old, "--head", new, "--format", "json")
    assert done.stdout == files[1].read_text(encoding="utf-8")
    assert [each["selected"] for each in answered("plan", done.stdout)["steps"]] == [["dev/platform"], ["dev/*"]]


def test_a_process_that_has_loaded_nothing_else(sides: tuple[Path, Path]) -> None:
    old, new = sides
    code = "from hyperpod_cdk.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "plan", "dev", "--base", str(old), "--head", str(new)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == _run("plan", "dev", "--base", old, "--head", new).stdout


def test_a_refusal_ends_with_1(sides: tuple[Path, Path], tmp_path: Path) -> None:
    other = write_assembly(
        tmp_path / "other", {"storage": _storage("other"), "platform": _platform("other")}, {"platform": ["storage"]}
    )
    done = _run("plan", "dev", "--base", sides[0], "--head", other)
    assert done.exit_code == 1
    assert done.stdout.startswith("dev: Refused: 1 reason; nothing would be changed.\n")


class Nothing:
    """An AWS in which nothing is deployed."""

    def call(self, service: str, operation: str, **_: Any) -> Any:
        raise AssertionError(f"{service} {operation}: nothing is deployed")

    def send(self, service: str, operation: str, **_: Any) -> Any:
        raise AssertionError(f"{service} {operation}: a plan only reads")

    def pages(self, service: str, operation: str, key: str, **_: Any) -> list[Any]:
        assert (service, operation, key) == ("cloudformation", "describe_stacks", "Stacks")
        return []


def test_a_first_deployment(sides: tuple[Path, Path]) -> None:
    opened: list[tuple[str, str]] = []

    def opening(region: str, account: str) -> Nothing:
        opened.append((region, account))
        return Nothing()

    done = _run("plan", "dev", "--head", sides[1], "--format", "json", obj=Access(open=opening))
    assert done.exit_code == 0, done.output
    assert opened == [("us-east-1", "111122223333")]
    found = json.loads(done.stdout)
    assert (found["verdict"], found["base"]["label"]) == ("1 step.", "deployed")
    assert found["steps"][0]["stacks"] == ["dev-storage", "dev-platform"]


def test_without_credentials(sides: tuple[Path, Path]) -> None:
    def opening(region: str, account: str) -> Nothing:
        raise AwsAccessError(f"no credentials for {account} in {region}")

    done = _run("plan", "dev", "--head", sides[1], obj=Access(open=opening))
    assert done.exit_code == 2
    assert done.stderr == "no credentials for 111122223333 in us-east-1, or use --base\n"
