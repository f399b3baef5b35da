"""Runs an app that was not reviewed yet: without the user's files, variables, network and sockets.

The author of a branch must not get what its app could read: cloud credentials, tokens, an agent's socket. So the app
gets a list of allowed variables, an empty home, limits of time and memory, and on Linux its own namespaces. If the
system does not provide them, ``Ran.exposed`` states it, and the report repeats it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from hyperpod_cdk.file_reading import resolved
from hyperpod_cdk.packaged_node import COMPILE_CACHE, compile_cache

TIME_LIMIT_SECONDS: Final = 600
"""Default time of one app; the largest environment takes a few seconds."""

MEMORY_LIMIT_MIB: Final = 4096
"""Default memory of one app and its children together; the largest environment takes less than 1 GiB."""

ALLOWED: Final = frozenset(
    {"LANG", "LANGUAGE", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONPATH", "SOURCE_DATE_EPOCH", "TZ"}
)
"""Variables that an app gets, in addition to those of the locale (``LC_*``); all others are removed."""

NEVER: Final = ("AWS_", "CDK_", "GIT_")
"""Prefixes of variables that no app gets, not even a trusted one: they would change the template."""

_LAUNCHER: Final = Path(__file__).with_name("isolated_app.py")
_POLL_SECONDS: Final = 0.1
_MOST_OUTPUT: Final = 2**20
_MOST_STATUS: Final = 4096


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one app: ``seconds`` of time, ``mib`` of memory in MiB together with its children.

    With ``is_trusted`` it runs as the user's own program, with home, network and sockets, except for the variables.
    """

    seconds: float = TIME_LIMIT_SECONDS
    mib: int = MEMORY_LIMIT_MIB
    is_trusted: bool = False


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a command ended: ``stopped`` is the limit that it reached, ``exposed`` why it was not isolated."""

    code: int
    output: str
    stopped: str = ""
    exposed: str = ""


def run_isolated(
    command: str | Sequence[str],
    *,
    folder: Path,
    scratch: Path,
    variables: Mapping[str, str],
    readable: Sequence[Path],
    masked: Sequence[Path],
    limits: Limits,
    begun: Callable[[], object] | None = None,
    given_up: Event | None = None,
) -> Ran:
    """Run ``command`` in ``folder``, a text as a line for a shell; return its output, at most 1 MiB of it.

    It may write to ``scratch`` and read ``readable`` and the interpreter, except for ``masked`` paths. Of this
    process's variables it gets those in ``ALLOWED``, and ``variables``. ``begun`` is called as soon as it runs. It is
    stopped when ``given_up`` is set.
    """
    for name in ("home", "tmp", "system"):
        (scratch / name).mkdir(parents=True, exist_ok=True)
    home = scratch / "home"
    # jsii unpacks CDK once, and Node.js compiles it once; in an empty home both would take seconds each time
    caches = {
        name: str(cache)
        for name, cache in (("JSII_RUNTIME_PACKAGE_CACHE_ROOT", _package_cache()), (COMPILE_CACHE, compile_cache()))
        if cache is not None and cache.is_dir()
    }
    plan = {
        "command": ["/bin/sh", "-c", command] if isinstance(command, str) else list(command),
        "folder": _from_the_root(folder),
        "home": str(home),
        "writable": [str(scratch)],
        "readable": [*map(_from_the_root, readable), *map(str, _interpreter())],
        "masked": [_from_the_root(each) for each in masked],
        "overlays": list(caches.values()),
        "scratch": str(scratch / "system"),
        "memory": limits.mib * 2**20,
        "is_isolated": not limits.is_trusted,
    }
    (scratch / "system" / "tmp").mkdir(exist_ok=True)
    places = {"HOME": str(home), "TMPDIR": str(scratch / "tmp"), **caches}
    environment = {**_kept(is_trusted=limits.is_trusted), **({} if limits.is_trusted else places), **variables}
    said_by_launcher, status = os.pipe()
    with (scratch / "system" / "output").open("w+b") as output, os.fdopen(said_by_launcher, "rb", 0) as line:
        running = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LAUNCHER), json.dumps(plan), str(status)],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[status],
            start_new_session=True,
        )
        os.close(status)
        try:
            if begun is not None:
                begun()
            stopped = _watch(running, limits, given_up)
        finally:
            _stop(running)
        output.seek(0)
        said = output.read(_MOST_OUTPUT).decode(errors="backslashreplace")
        # the launcher wrote only the first line, before the command ran
        os.set_blocking(said_by_launcher, False)
        exposed = (line.read(_MOST_STATUS) or b"").decode(errors="replace").partition("\n")[0].strip()
    return Ran(code=running.returncode, output=said, stopped=stopped, exposed=exposed)


def _from_the_root(path: Path) -> str:
    """Return a path as the launcher, which runs in the root folder, finds and mounts it."""
    return str(path if path.is_absolute() and ".." not in path.parts else resolved(path))


def _kept(*, is_trusted: bool) -> dict[str, str]:
    if is_trusted:
        return {name: value for name, value in os.environ.items() if not name.startswith(NEVER)}
    return {name: value for name, value in os.environ.items() if name in ALLOWED or name.startswith("LC_")}


def _watch(running: subprocess.Popen[bytes], limits: Limits, given_up: Event | None) -> str:
    """Wait for the end; return the limit that was reached, or what else happened, before it."""
    until = time.monotonic() + limits.seconds
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(_POLL_SECONDS)
            return ""
        if given_up is not None and given_up.is_set():
            return "its result is no longer needed"
        if time.monotonic() > until:
            return f"it took longer than {limits.seconds:g} seconds"
        if _resident_mib(running.pid) > limits.mib:
            return f"it took more than {limits.mib} MiB of memory"


def _stop(running: subprocess.Popen[bytes]) -> None:
    if running.poll() is not None:
        return
    # the launcher ends what it has started
    running.terminate()
    try:
        running.wait(10)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def _resident_mib(ancestor: int) -> float:
    """Return the memory of a process and all its descendants, 0 if the system does not show it."""
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            # proc_pid_stat(5): after the name state, ppid (4) ... rss (24)
            parents[int(entry.name)], pages[int(entry.name)] = int(fields[1]), int(fields[21])
    total, known, new = 0, {ancestor}, {ancestor}
    while new:
        new = {child for child, parent in parents.items() if parent in new and child not in known}
        known |= new
    total = sum(pages.get(each, 0) for each in known)
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def _interpreter() -> list[Path]:
    """Return the paths of this Python, its imports and the programs of PATH; never a folder that contains the home."""
    home = Path.home()
    listed = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.executable, *sys.path)
    found = [Path(each) for each in (*listed, *os.environ.get("PATH", "").split(os.pathsep)) if os.path.isabs(each)]  # noqa: PTH117 - text, no file yet
    # the environment's python is a link, possibly to another link
    found += [resolved(each) for each in found]
    return [each for each in dict.fromkeys(found) if each.exists() and each != home and each not in home.parents]


def _package_cache() -> Path:
    """Return where jsii keeps unpacked packages, by its own rules (jsii-kernel's disk-cache)."""
    given = os.environ.get("JSII_RUNTIME_PACKAGE_CACHE_ROOT")
    if given:
        return Path(given).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "com.amazonaws.jsii" / "package-cache"
    return Path.home() / ".cache" / "aws" / "jsii" / "package-cache"
