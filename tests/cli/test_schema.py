"""`hyperpod-cdk schema`: what editors read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from hyperpod_cdk.cli import Page
from hyperpod_cdk.config.schema import schema_text

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_to_standard_output(run_process: Run) -> None:
    done = run_process("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == schema_text()


def test_to_a_file(run: Run, workspace: Path) -> None:
    done = run("schema", "--out", "new/environment.schema.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote new/environment.schema.json\n")
    assert (workspace / "new" / "environment.schema.json").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("page", [each.value for each in Page])
def test_each_page_is_the_file_of_the_repository(run: Run, project: Path, page: str) -> None:
    done = run("schema", "--of", page)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        json.loads(done.stdout)["title"] == json.loads((project / f"schemas/{page}.schema.json").read_text())["title"]
    )


def test_what_validate_and_preflight_write_follows_their_schemas(run: Run, workspace: Path) -> None:
    schemas = {page: json.loads(run("schema", "--of", page).stdout) for page in ("validate", "preflight")}
    file = workspace / "environments" / "dev.yaml"
    for text in (file.read_text(encoding="utf-8"), "name: dev\n"):
        file.write_text(text, encoding="utf-8")
        jsonschema.validate(json.loads(run("validate", "--format", "json").stdout), schemas["validate"])
    refused = json.loads(run("preflight", "dev", "--offline", "--format", "json").stdout)
    jsonschema.validate(refused, schemas["validate"])


def test_what_preflight_writes_follows_its_schema(run: Run) -> None:
    schema = json.loads(run("schema", "--of", "preflight").stdout)
    found = json.loads(run("preflight", "dev", "--offline", "--format", "json").stdout)
    jsonschema.validate(found, schema)
    assert {each["status"] for each in found["checks"]} <= set(
        schema["$defs"]["CheckResult"]["properties"]["status"]["enum"]
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "passed": "no"}, schema)


def test_to_a_file_that_cannot_be(run: Run) -> None:
    done = run("schema", "--out", "environments/dev.yaml/x.json")
    assert done.returncode == 2
    assert done.stderr.startswith("cannot write environments/dev.yaml")
    assert "Traceback" not in done.stderr
