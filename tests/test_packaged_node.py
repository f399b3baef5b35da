"""Which Node.js and which CDK CLI are used, and what is said where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hyperpod_cdk import packaged_node as tools
from hyperpod_cdk.cli import app

VERSION = json.loads((Path(__file__).parents[1] / "package-lock.json").read_text(encoding="utf-8"))["packages"][
    "node_modules/aws-cdk"
]["version"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hyperpod-cdk" / f"aws-cdk-{VERSION}"


def fake_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = folder / "npm"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setattr(tools, "_npm", lambda: [str(path)])


def test_a_projects_own_comes_first(tmp_path: Path, cache: Path) -> None:
    own = tmp_path / "node_modules" / "aws-cdk" / "bin" / "cdk"
    own.parent.mkdir(parents=True)
    own.touch()
    assert tools.cdk_command(tmp_path) == [str(tools.packaged_node()), str(own)]
    assert not cache.exists()


def test_the_pinned_one_is_installed_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(
        tmp_path,
        monkeypatch,
        'cp package-lock.json "$XDG_CACHE_HOME/lock"; mkdir -p node_modules/aws-cdk/bin;'
        " touch node_modules/aws-cdk/bin/cdk",
    )
    said: list[str] = []
    wanted = [str(tools.packaged_node()), str(cache / "node_modules" / "aws-cdk" / "bin" / "cdk")]
    assert tools.cdk_command(tmp_path, say=said.append) == wanted
    assert tools.cdk_command(tmp_path, say=said.append) == wanted
    assert said == [f"installing the CDK CLI {VERSION} into {cache}"]
    assert [each.name for each in cache.parent.iterdir()] == [cache.name]
    entry = json.loads((tmp_path / "cache" / "lock").read_text(encoding="utf-8"))["packages"]["node_modules/aws-cdk"]
    assert (entry["version"], entry["integrity"].partition("-")[0]) == (VERSION, "sha512")
    assert "resolved" not in entry


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_asking_what_it_is_installs_nothing(
    arguments: list[str], tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not tools.cdk_is_there(tmp_path)
    done = CliRunner().invoke(app, ["cdk", *arguments])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Run the CDK CLI in the version that this hyperpod-cdk is tested with" in done.stdout
    assert done.stdout.endswith("installs it, then this is its help.\n")
    assert not cache.exists()


@pytest.mark.parametrize("own", [True, False])
def test_what_is_there(own: bool, tmp_path: Path, cache: Path) -> None:  # noqa: FBT001 - a table's column
    script = (tmp_path if own else cache) / "node_modules" / "aws-cdk" / "bin" / "cdk"
    script.parent.mkdir(parents=True)
    script.touch()
    assert tools.cdk_is_there(tmp_path)


def test_npm_cannot_get_it(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(tmp_path, monkeypatch, "echo; echo 'npm error code ENOTFOUND' >&2; exit 1")
    with pytest.raises(tools.ToolMissingError) as error:
        tools.cdk_command(tmp_path)
    assert str(error.value) == (
        f"the CDK CLI {VERSION} is missing, and npm cannot get it: npm error code ENOTFOUND; look at npm's registry,"
        f" or install it into the project with 'npm install aws-cdk@{VERSION}'"
    )
    assert list(cache.parent.iterdir()) == []


def test_a_cache_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(tools.ToolMissingError) as error:
        tools.cdk_command(tmp_path)
    assert str(error.value) == (
        f"the CDK CLI {VERSION} is missing, and {tmp_path}/file/hyperpod-cdk cannot be written: Not a directory; set"
        " XDG_CACHE_HOME to a folder that can, or install it into the project with"
        f" 'npm install aws-cdk@{VERSION}'"
    )


def test_without_any_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "packaged_node", lambda: None)
    monkeypatch.delenv("JSII_NODE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tools.ToolMissingError) as error:
        tools.cdk_command(tmp_path)
    assert str(error.value) == "Node.js is missing; run pip install 'hyperpod-cdk[node]'"


def test_the_verb_is_the_cli(tmp_path: Path) -> None:
    own = tmp_path / "node_modules" / "aws-cdk" / "bin" / "cdk"
    own.parent.mkdir(parents=True)
    own.write_text("console.log(process.argv.slice(2).join('|')); process.exit(7)", encoding="utf-8")
    (tmp_path / "cdk.json").touch()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from hyperpod_cdk.cli import main; main()",
            "cdk",
            "deploy",
            "prod/*",
            "-c",
            "env=prod",
            "--help",
        ],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "deploy|prod/*|-c|env=prod|--help\n", "")
