"""Loaded by every Python process of a Lambda execution: loopback is the only network, layers appear at /opt."""  # noqa: INP001 - a script's own directory, no package

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OPT = "/opt/"
OPT_REAL = os.environ.get("HYPERPOD_CDK_REHEARSAL_OPT", "")
LOOPBACK_NAMES = frozenset({"", "localhost", "::1", "::"})


def _is_loopback(host: Any) -> bool:
    if host is None:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    return name in LOOPBACK_NAMES or name.startswith(("127.", "0.0.0.0"))  # noqa: S104 - nothing is bound


def _refuse_foreign(address: Any) -> None:
    if isinstance(address, tuple) and not _is_loopback(address[0]):
        raise OSError(errno.ENETUNREACH, f"the rehearsal has no network beyond this machine: {address[0]}")


def _keep_on_loopback() -> None:
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    resolve = socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _refuse_foreign(address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _refuse_foreign(address)
        return connect_ex(self, address)

    def guarded_resolve(host: Any, *arguments: Any, **keywords: Any) -> Any:
        if not _is_loopback(host):
            message = f"the rehearsal has no network beyond this machine: {host}"
            raise socket.gaierror(socket.EAI_NONAME, message)
        return resolve(host, *arguments, **keywords)

    socket.socket.connect = guarded_connect  # type: ignore[assignment,method-assign]
    socket.socket.connect_ex = guarded_connect_ex  # type: ignore[assignment,method-assign]
    socket.getaddrinfo = guarded_resolve


def real_path(path: str) -> str:
    """A path under /opt as it lies on this machine; any other path, or one the layers do not hold, unchanged."""
    if not path.startswith(OPT):
        return path
    real = Path(OPT_REAL, path.removeprefix(OPT))
    return str(real) if real.exists() else path


def real_command(command: Sequence[Any], search_path: str) -> list[Any]:
    """A command whose program lies in a layer, with the program and its interpreter found on this machine."""
    words = [real_path(os.fspath(word)) if isinstance(word, (str, os.PathLike)) else word for word in command]
    if not words or not isinstance(words[0], str):
        return words
    if os.sep not in words[0]:
        words[0] = _in_layers(words[0], search_path) or words[0]
    if not words[0].startswith(OPT_REAL):
        return words
    return [*_interpreter(words[0]), *words]


def _in_layers(program: str, search_path: str) -> str | None:
    for directory in search_path.split(os.pathsep):
        candidate = real_path(f"{directory.rstrip('/')}/{program}")
        if directory.startswith(OPT.rstrip("/")) and Path(candidate).is_file():
            return candidate
    return None


def _interpreter(program: str) -> list[str]:
    """Lambda's images hold their interpreters under /var/lang; a script made for one runs with this Python."""
    with Path(program).open("rb") as opened:
        first = opened.readline(256)
    if not first.startswith(b"#!"):
        return []
    words = first[2:].decode(errors="replace").split()
    named = Path(words[-1] if words and words[0].endswith("/env") else words[0] if words else "").name
    return [sys.executable] if named.startswith("python") else []


def _show_layers_at_opt() -> None:
    start = subprocess.Popen.__init__

    def mapped_start(self: Any, args: Any, *rest: Any, **keywords: Any) -> None:
        if isinstance(args, (list, tuple)):
            environment = keywords.get("env") or os.environ
            args = real_command(args, environment.get("PATH", ""))
        elif isinstance(args, str) and not keywords.get("shell"):
            args = real_command([args], os.environ.get("PATH", ""))
        start(self, args, *rest, **keywords)

    subprocess.Popen.__init__ = mapped_start  # type: ignore[method-assign]


if OPT_REAL:
    _keep_on_loopback()
    _show_layers_at_opt()
