"""``observe`` as users run it: exit codes, text at 80 columns, the bundle, what is not read, the policy; and replay."""

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
from hyperpod_cdk.living.observing.model import Bundle
from hyperpod_cdk.living.pages import as_json
from scripts import replay
from tests.cli.test_plan import write_assembly
from tests.living.account import ACCOUNT, REGION, Account
from tests.living.test_observing import account
from tests.support.answers import answered
from tests.support.assembly import PROJECT
from tests.support.scripted_aws import Fails


def _observe(of: Account, folder: Path, *more: object) -> Result:
    templates = {name.removeprefix("dev-"): each for name, each in of.head.items()}
    head = write_assembly(folder / "head", templates, {}, where=f"aws://{ACCOUNT}/{REGION}")
    words = ["observe", "dev", "--head", str(head), *map(str, more)]
    way = Access(open=lambda *_: of.aws())
    return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=way)


def test_deviations_end_with_1_and_the_bundle_is_written(tmp_path: Path) -> None:
    out = tmp_path / "bundle.json"
    done = _observe(account(), tmp_path, "--out", out)
    assert done.exit_code == 1, done.output
    assert done.stderr == f"wrote {out}\n"
    first, *lines = done.stdout.splitlines()
    assert " deviations of " in first
    assert "messages: AWS::EC2::EIP CREATE_FAILED" in lines
    assert all(len(line) <= 80 for line in lines if " " in line.strip())
    bundle = answered("observation", out.read_text(encoding="utf-8"))
    assert (bundle["passed"], bundle["version"]) == (False, 1)


def test_json_is_the_bundle(tmp_path: Path) -> None:
    out = tmp_path / "bundle.json"
    done = _observe(account(), tmp_path, "--out", out, "--format", "json")
    assert done.stdout == out.read_text(encoding="utf-8")


def test_a_bundle_that_cannot_be_written_ends_with_2(tmp_path: Path) -> None:
    done = _observe(account(), tmp_path, "--out", tmp_path / "none" / "bundle.json")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"cannot write {tmp_path / 'none' / 'bundle.json'}: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [Fails("AccessDenied", "no", 403), Fails("ExpiredToken", "old", 400)])
def test_cloudformation_that_does_not_answer_ends_with_2(how: Fails, tmp_path: Path) -> None:
    done = _observe(account(**{"cloudformation:ListStackResources": how}), tmp_path, "--out", tmp_path / "bundle.json")
    assert done.exit_code == 2
    assert done.stderr.startswith("the deployed stacks cannot be read: ")
    assert not (tmp_path / "bundle.json").exists()


def test_what_is_denied_is_one_line_each(tmp_path: Path) -> None:
    denied = Fails("AccessDeniedException", "no", 403)
    more: dict[str, Any] = {"fsx:DescribeFileSystems": denied, "sagemaker:DescribeClusterNode": denied}
    done = _observe(account(**more), tmp_path)
    skipped = [line for line in done.stdout.splitlines() if line.startswith("skipped ")]
    assert [line.partition("no permission for ")[2].partition(";")[0] for line in skipped] == [
        "fsx:DescribeFileSystems",
        "sagemaker:DescribeClusterNode",
    ]


def test_the_policy_reads_only() -> None:
    done = CliRunner().invoke(cli.app, ["observe", "dev", "--iam-policy"], prog_name="hyperpod-cdk")
    (statement,) = json.loads(done.stdout)["Statement"]
    assert {"cloudformation:DescribeStackEvents", "sagemaker:DescribeClusterNode"} <= set(statement["Action"])
    page = json.loads((PROJECT / "docs" / "living-policy.json").read_text(encoding="utf-8"))
    assert set(statement["Action"]) <= set(page["Statement"][0]["Action"])


@pytest.mark.parametrize("text", ["", '{"version": 7}', "[" * 50_000])
def test_replay_refuses_what_is_no_bundle_in_one_line(text: str, tmp_path: Path) -> None:
    file, out = tmp_path / "bundle.json", tmp_path / "out"
    file.write_text(text, encoding="utf-8")
    script = [sys.executable, str(PROJECT / "scripts" / "replay.py"), str(file), "--out", str(out)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, out.exists()) == (1, "", False)
    assert done.stderr.startswith(f"{file}: is ")
    assert done.stderr.count("\n") == 1


def test_replay_shows_what_stands_in_a_bundle_and_obeys_none_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"table": "messages", "row": "\x1b[2J\nx", "assumed": "a", "observed": "b", "samples": 1}
    said_of = {"made_by": "0.2.0", "botocore": "1", "region": "us-east-1", "verdict": "", "passed": False}
    bundle = Bundle.model_validate({**said_of, "deviations": [row]})
    file, out = tmp_path / "bundle.json", tmp_path / "out"
    file.write_text(as_json(bundle), encoding="utf-8")
    assert replay.main([str(file), "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"wrote {out / 'account.yaml'} and {out / 'catalog.diff'}",
        "by hand: messages: \\x1b[2J⏎x: assumed a, observed b",
    ]
    assert (out / "catalog.diff").read_text(encoding="utf-8") == ""
    (tmp_path / "taken").touch()
    assert replay.main([str(file), "--out", str(tmp_path / "taken")]) == 1
    assert capsys.readouterr().err == f"{tmp_path / 'taken'}: cannot be written: File exists\n"
