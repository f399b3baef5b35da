"""A rehearsal leaves nothing in the user's home, whatever account it plays."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_cdk.packaged_node import packaged_node
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli, CdkFailedError
from hyperpod_cdk_rehearsal.process import EmbeddedAws

ACCOUNTS = ("111122223333", "444455556666")
STACK = {"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}

FAKE_CLI = """
const fs = require("fs"), os = require("os"), path = require("path");
const home = process.env.CDK_HOME ? path.resolve(process.env.CDK_HOME) : path.join(os.userInfo().homedir, ".cdk");
fs.mkdirSync(home, { recursive: true });
fs.writeFileSync(path.join(home, "seen"), "");
console.log(JSON.stringify({ home, settings: path.join(os.homedir(), ".cdk.json"), environment: process.env }));
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home, for everything that asks for it: by HOME, and as Node.js reads it from the user database."""
    folder = tmp_path / "home"
    (folder / ".cdk" / "cache").mkdir(parents=True)
    (folder / ".cdk" / "cache" / "accounts_partitions.json").write_text("{}")
    (folder / ".cdk.json").write_text('{"context": {"theirs": true}}')
    program = tmp_path / "home.cjs"
    program.write_text(
        "const os = require('os'); const known = os.userInfo();"
        f"os.userInfo = () => ({{ ...known, homedir: {json.dumps(str(folder))} }});"
    )
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("NODE_OPTIONS", f"--require {program}")
    return folder


@pytest.fixture
def state(home: Path) -> Callable[[], dict[str, tuple[int, str]]]:
    """Tell what is in the home: each file with its time and content."""

    def read() -> dict[str, tuple[int, str]]:
        files = (path for path in home.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_text(errors="replace")) for path in files}

    return read


@pytest.mark.parametrize("aws", [True, False], ids=["deploys", "synthesizes"])
def test_the_cli_gets_a_home_of_its_own(
    home: Path, state: Callable[[], dict[str, tuple[int, str]]], tmp_path: Path, *, aws: bool
) -> None:
    project, scratch = tmp_path / "project", tmp_path / "scratch"
    program = project / "node_modules" / "aws-cdk" / "bin" / "cdk"
    program.parent.mkdir(parents=True)
    scratch.mkdir()
    program.write_text(FAKE_CLI)
    before = state()
    cli = CdkCli(project=project, scratch=scratch, environment={"AWS_ACCESS_KEY_ID": "KEY"})
    seen = json.loads(cli.run(["list"], aws=aws))
    assert seen["home"] == str(scratch / "cdk-home")
    assert seen["settings"] == str(scratch / ".cdk.json")
    assert ("AWS_ACCESS_KEY_ID" in seen["environment"]) is aws
    cache = None if aws else str(home / ".cache" / "aws" / "jsii" / "package-cache")
    assert seen["environment"].get("JSII_RUNTIME_PACKAGE_CACHE_ROOT") == cache
    assert seen["environment"]["HYPERPOD_CDK_COMPILE_CACHE"] == str(home / ".cache" / "hyperpod-cdk" / "node")
    assert state() == before


def _assembly(folder: Path, account: str) -> Path:
    """A cloud assembly of one stack in an account."""
    folder.mkdir()
    (folder / "small.template.json").write_text(json.dumps(STACK))
    artifact = {
        "type": "aws:cloudformation:stack",
        "environment": f"aws://{account}/us-east-1",
        "properties": {"templateFile": "small.template.json", "stackName": "small"},
        "displayName": "small",
    }
    manifest = {"version": "48.0.0", "artifacts": {"small": artifact}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.examples
@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_two_accounts_one_after_the_other(
    project: Path, tmp_path: Path, state: Callable[[], dict[str, tuple[int, str]]]
) -> None:
    if packaged_node() is None or not (project / "node_modules" / "aws-cdk" / "bin" / "cdk").exists():
        pytest.skip("Node.js or the CDK CLI is not installed; run npm ci")
    before, keys = state(), set[str]()
    for account in ACCOUNTS:
        scratch = tmp_path / account
        scratch.mkdir()
        with EmbeddedAws(account=account, region="us-east-1", log=scratch / "log") as aws:
            cli = CdkCli(project=project, scratch=scratch, environment=aws.environment())
            keys.add(aws.address.access_key_id)
            app = str(_assembly(scratch / "assembly", account))
            try:
                cli.run(["deploy", "--app", app, "small", "--require-approval", "never"])
            except CdkFailedError as error:
                pytest.fail(error.output)
            (stack,) = aws.cloudformation.describe_stacks(StackName="small")["Stacks"]
            assert (stack["StackStatus"], stack.get("StackId", "").split(":")[4]) == ("CREATE_COMPLETE", account)
        assert account in (scratch / "cdk-home" / "cache" / "accounts_partitions.json").read_text()
    assert len(keys) == len(ACCOUNTS)
    assert state() == before
    assert os.environ["HOME"] == str(tmp_path / "home")


WRONG_APP = """\
import aws_cdk as cdk
app = cdk.App(builtin_cloud_formation_validation=False)
stack = cdk.Stack(cdk.Stage(app, "dev"), "network")
cdk.CfnWaitConditionHandle(stack, "Handle")
cdk.Annotations.of(stack).add_error("no network like this")
app.synth()
"""


@pytest.mark.examples
@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_an_error_in_a_stack_of_a_stage_fails_synthesis(project: Path, tmp_path: Path) -> None:
    """The CDK CLI alone, without the name of a stack, ends with 0."""
    if packaged_node() is None or not (project / "node_modules" / "aws-cdk" / "bin" / "cdk").exists():
        pytest.skip("Node.js or the CDK CLI is not installed; run npm ci")
    wrong, scratch = tmp_path / "wrong", tmp_path / "scratch"
    for folder in (wrong, scratch):
        folder.mkdir()
    (wrong / "node_modules").symlink_to(project / "node_modules")
    (wrong / "app.py").write_text(WRONG_APP)
    (wrong / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py"}))
    cli = CdkCli(project=wrong, scratch=scratch, environment={})
    cli.run(["synth", "--quiet"], aws=False)
    with pytest.raises(CdkFailedError) as failed:
        cli.synth(wrong / "dev.yaml", tmp_path / "assembly")
    assert "no network like this" in failed.value.output
    # what was refused is there to be reviewed
    assert (tmp_path / "assembly" / "manifest.json").is_file()


@pytest.mark.examples
def test_nothing_of_the_environment_leads_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies, profiles, endpoints and settings that no client can read are somebody's for another AWS."""
    refused = socket.create_server(("127.0.0.1", 0))
    elsewhere = f"http://127.0.0.1:{refused.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, elsewhere)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.setenv(name, elsewhere)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "example.com")
    odd = {"AWS_PROFILE": "unknown", "AWS_CA_BUNDLE": "/nowhere", "AWS_RETRY_MODE": "odd", "AWS_MAX_ATTEMPTS": "odd"}
    odd |= {"AWS_DEFAULTS_MODE": "odd", "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_USE_FIPS_ENDPOINT": "odd"}
    for name, value in odd.items():
        monkeypatch.setenv(name, value)
    with EmbeddedAws(account=ACCOUNTS[0], region="us-west-2", log=tmp_path / "log") as aws:
        assert aws.client("sts").get_caller_identity()["Account"] == ACCOUNTS[0]
        assert aws.client("cloudformation").describe_stacks()["Stacks"] == []
        assert aws.state()["calls"]["total"] == 2
        given = aws.environment()
        assert (given["NO_PROXY"], given["no_proxy"]) == ("example.com,127.0.0.1", "example.com,127.0.0.1")
        cli = CdkCli(project=tmp_path, scratch=tmp_path, environment=given)
        for is_there in (True, False):
            seen = cli._environment(aws=is_there)
            assert [name for name, value in seen.items() if value == elsewhere or value in odd.values()] == []
    refused.settimeout(0)
    with pytest.raises(BlockingIOError):
        refused.accept()
    refused.close()
