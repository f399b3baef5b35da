"""`hyperpod-cdk schema`: what editors read."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from hyperpod_cdk._cli import words
from hyperpod_cdk.cli import Page, app
from hyperpod_cdk.config.schema import schema_text
from tests.cli.test_words import VERBS
from tests.support.answers import answered

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_to_standard_output(run_process: Run) -> None:
    done = run_process("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == schema_text()


def test_to_a_file(run: Run, workspace: Path) -> None:
    done = run("schema", "--out", "new/environment.schema.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote new/environment.schema.json\n")
    assert (workspace / "new" / "environment.schema.json").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("page", get_args(Page))
def test_each_page_is_the_file_of_the_repository(run: Run, project: Path, page: str) -> None:
    done = run("schema", "--of", page)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        json.loads(done.stdout)["title"] == json.loads((project / f"schemas/{page}.schema.json").read_text())["title"]
    )


def test_what_validate_and_preflight_write_follows_their_schemas(run: Run, workspace: Path) -> None:
    file = workspace / "environments" / "dev.yaml"
    found = answered("preflight", run("preflight", "dev", "--offline", "--format", "json").stdout)
    assert {each["status"] for each in found["checks"]} >= {"passed", "skipped"}
    for text in (file.read_text(encoding="utf-8"), "name: dev\n"):
        file.write_text(text, encoding="utf-8")
        answered("validate", run("validate", "--format", "json").stdout)
    # whatever verb reads the file says the same of one that is refused
    answered("validate", run("preflight", "dev", "--offline", "--format", "json").stdout)


def test_every_verb_that_writes_json_has_its_schema() -> None:
    assert {path for path, verb in VERBS.items() if any("--format" in each.opts for each in verb.params)} == set(
        words.ANSWERS
    )
    # files that people write, and what stands behind an option of several verbs
    others = {"environment", "fleet", "job", "review", "iam-policy"}
    assert {*words.ANSWERS.values(), *others} == set(get_args(Page))


def test_every_schema_is_tried_against_what_a_verb_wrote(project: Path) -> None:
    """``answered`` reads the committed schema, and expects it to refuse the same answer changed."""
    files = (path.read_text(encoding="utf-8") for path in (project / "tests").rglob("test_*.py"))
    tried = {page for text in files for page in re.findall(r"answered\(\s*\"([a-z-]+)\"", text)}
    assert tried == {*words.ANSWERS.values(), "iam-policy"}


def test_help_says_which_schema(run: Run) -> None:
    schema = "writes the schema of the JSON."
    refused = "If a file is refused, it is that of 'validate'."
    for verb, said in {
        ("node", "cordon"): f"Output format. 'schema --of node-work' {schema} {refused} [default",
        ("destroy",): f"Output format of --plan. 'schema --of plan' {schema} [default",
    }.items():
        assert said in " ".join(run(*verb, "--help").stdout.split())


WORDS: Mapping[str, tuple[str, ...]] = {
    "import": ("missing.json", "--name", "lab"),
    "image render": ("dev", "--group", "h100"),
    "job render": ("dev", "--group", "h100", "--kind", "nccl"),
    "job admit": ("dev", "job.yaml"),
    "plans attach": ("dev", "h100", "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100"),
    **{f"node {verb}": ("dev", "i-0123456789abcdef0") for verb in ("describe", "logs", "cordon", "uncordon")},
    **{
        f"node {verb}": ("dev", "i-0123456789abcdef0", "--confirm", "i-0123456789abcdef0")
        for verb in ("reboot", "replace", "check")
    },
}
"""What verbs want beside the name of an environment."""


@pytest.mark.parametrize("verb", sorted(words.REFUSED_AS_FILES))
def test_a_refused_file_is_answered_as_validate_does(
    verb: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    file = workspace / "environments" / "dev.yaml"
    file.write_text(f"{file.read_text(encoding='utf-8')}nothing: of ours\n", encoding="utf-8")
    done = CliRunner().invoke(app, [*verb.split(), *WORDS.get(verb, ("dev",)), "--format", "json"])
    assert done.exit_code == 1
    assert answered("validate", done.stdout)["passed"] is False


def test_to_a_file_that_cannot_be(run: Run) -> None:
    done = run("schema", "--out", "environments/dev.yaml/x.json")
    assert done.returncode == 2
    assert done.stderr.startswith("cannot write environments/dev.yaml")
    assert "Traceback" not in done.stderr


def test_a_disk_that_is_full_leaves_the_old_file(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    (workspace / "x.json").write_text("old", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # the scratch file is written whole before it takes the place of the old one
    monkeypatch.setattr(Path, "replace", full)
    done = CliRunner().invoke(app, ["schema", "--out", "x.json"])
    assert (done.exit_code, done.stderr) == (2, "cannot write x.json: No space left on device\n")
    assert [file.name for file in workspace.glob("*x.json*")] == ["x.json"]
    assert (workspace / "x.json").read_text(encoding="utf-8") == "old"
