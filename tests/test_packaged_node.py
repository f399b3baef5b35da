"""Which Node.js and which CDK CLI are used, and the message if there is none."""

from __future__ import annotations

import json
import os
import stat
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
    assert done.stdout.endswith("that needs it installs it; this then shows its help.\n")
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
            "diff",
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
    assert (done.returncode, done.stdout, done.stderr) == (7, "diff|prod/*|-c|env=prod|--help\n", "")


# what jsii does at its start, with one module of a package
KERNEL = """\
const fs = require("node:fs"), os = require("node:os"), path = require("node:path");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "jsii-kernel-"));
fs.writeFileSync(path.join(folder, "one.js"), "function f(a) { return a + 1 }; module.exports = f(Number(1)) + TEXT;");
console.log(require(path.join(folder, "one.js")));
process.on("exit", () => fs.rmSync(folder, { recursive: true }));
"""


def started_like_jsii(tmp_path: Path, text: str = "0", **variables: str) -> tuple[str, str]:
    """Run Node.js as the block has it, twice if called twice; give what it prints and what its cache says."""
    script = tmp_path / "kernel.js"
    script.write_text(KERNEL.replace("TEXT", text), encoding="utf-8")
    with tools.compiled_modules_kept():
        environment = {**os.environ, "NODE_DEBUG_NATIVE": "COMPILE_CACHE", **variables}
    done = subprocess.run(
        [tools.node(), "--preserve-symlinks", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    values, _, told = done.stdout.partition("[compile cache]")
    return values.split("\n")[0], told + done.stderr


def test_what_was_compiled_is_taken_by_the_next_process(tmp_path: Path, cache: Path) -> None:
    kept = cache.parent / "node"
    first, second = started_like_jsii(tmp_path), started_like_jsii(tmp_path)
    assert (first[0], second[0]) == ("2", "2")
    assert ("was accepted" in first[1], "was accepted" in second[1]) == (False, True)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    # another text under the same name is compiled anew, and takes the place of the old one
    files = [each for each in kept.rglob("*") if each.is_file()]
    changed, again = started_like_jsii(tmp_path, "10"), started_like_jsii(tmp_path, "10")
    assert (changed[0], again[0]) == ("12", "12")
    assert ("was accepted" in changed[1], "was accepted" in again[1]) == (False, True)
    assert [each for each in kept.rglob("*") if each.is_file()] == files


@pytest.mark.parametrize("broken", ["a file", "garbage", "an older Node.js"])
def test_what_cannot_be_kept_is_compiled(tmp_path: Path, cache: Path, broken: str) -> None:
    kept = cache.parent / "node"
    if broken == "a file":
        kept.parent.mkdir(parents=True)
        kept.touch()
    elif broken == "garbage":
        started_like_jsii(tmp_path)
        for each in kept.rglob("*"):
            if each.is_file():
                each.write_bytes(b"\0" * 100)
    else:
        older = tmp_path / "older.cjs"
        older.write_text('require("node:module").enableCompileCache = undefined;', encoding="utf-8")
    options = {"NODE_OPTIONS": f"--require {tmp_path}/older.cjs {with_option()}"} if broken.startswith("an") else {}
    assert started_like_jsii(tmp_path, **options)[0] == "2"


def with_option() -> str:
    with tools.compiled_modules_kept():
        return os.environ["NODE_OPTIONS"]


@pytest.mark.parametrize("place", ["/proc/none", "/dev/null", "/dev/null/below"])
def test_a_place_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv(tools.COMPILE_CACHE, place)
    assert started_like_jsii(tmp_path) == ("2", "")


def test_a_cache_by_the_names_of_modules_stays_out(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_COMPILE_CACHE", str(tmp_path / "own"))
    started_like_jsii(tmp_path)
    assert (cache.parent / "node").is_dir()
    assert not (tmp_path / "own").exists()
    assert os.environ["NODE_COMPILE_CACHE"] == str(tmp_path / "own")


@pytest.mark.parametrize("given", [None, "", "--max-http-header-size=20000"])
def test_the_options_of_nodejs_are_those_of_one_start(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.delenv("NODE_OPTIONS", raising=False)
    monkeypatch.delenv(tools.COMPILE_CACHE, raising=False)
    if given is not None:
        monkeypatch.setenv("NODE_OPTIONS", given)
    before = dict(os.environ)
    with tools.compiled_modules_kept():
        assert os.environ["NODE_OPTIONS"].startswith(f"{given} --require" if given else "--require")
        assert os.environ[tools.COMPILE_CACHE]
    assert dict(os.environ) == before


@pytest.mark.parametrize("name", ["with space", 'with "quotes"', "with\\backslash"])
def test_a_library_in_any_folder(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    script = tmp_path / name / "compile_cache.cjs"
    script.parent.mkdir()
    script.write_bytes((Path(tools.__file__).parent / script.name).read_bytes())
    monkeypatch.setattr(tools, "_KEEPS_COMPILED", script)
    assert started_like_jsii(tmp_path)[0] == "2"
    assert (cache.parent / "node").is_dir()


def test_another_home_finds_what_was_compiled(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    assert tools.node_variables()[tools.COMPILE_CACHE] == str(cache.parent / "node")
    monkeypatch.setenv(tools.COMPILE_CACHE, "somewhere")
    assert tools.node_variables()[tools.COMPILE_CACHE] == str(Path.cwd() / "somewhere")


def test_nobody_without_a_home_keeps_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", tools.COMPILE_CACHE, "NODE_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with tools.compiled_modules_kept():
        assert "NODE_OPTIONS" not in os.environ
    assert tools.COMPILE_CACHE not in tools.node_variables()
