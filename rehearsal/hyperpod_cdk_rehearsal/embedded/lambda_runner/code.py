"""A function's code and layers out of moto, unpacked into directories that every execution shares."""

from __future__ import annotations

import hashlib
import io
import stat
import tempfile
import threading
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from hyperpod_cdk.file_reading import resolved
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state

SYMLINK_MAX_BYTES = 4096


class NotExecutableError(Exception):
    """The function cannot run here; the message contains the reason."""


class UnknownFunctionError(Exception):
    """The function does not exist."""


@dataclass(frozen=True)
class FunctionCode:
    """A function as it was last published or updated; its code and its layers are unpacked when first asked for."""

    name: str
    arn: str
    version: str
    handler: str
    runtime: str
    timeout_seconds: int
    memory_mib: int
    environment: Mapping[str, str]
    code: bytes = field(repr=False)
    layers: Sequence[bytes] = field(repr=False)

    @cached_property
    def task_root(self) -> Path:
        """The directory of its code."""
        return unpacked().directory([self.code])

    @cached_property
    def opt(self) -> Path:
        """The directory of its layers."""
        return unpacked().directory(self.layers)


class Unpacked:
    """Directories of unpacked archives by digest, gone with the process."""

    def __init__(self) -> None:
        self._root = tempfile.TemporaryDirectory(prefix="hyperpod-cdk-lambda-")
        self._directories: dict[str, Path] = {}
        self._lock = threading.Lock()

    @property
    def root(self) -> Path:
        """Where everything lies."""
        return Path(self._root.name)

    def directory(self, archives: Sequence[bytes]) -> Path:
        """The directory that holds these zip archives, unpacked one over the other."""
        digest = hashlib.sha256(b"".join(map(_digest, archives))).hexdigest()
        with self._lock:
            if digest not in self._directories:
                target = self.root / digest[:32]
                target.mkdir()
                for archive in archives:
                    unpack(archive, target)
                self._directories[digest] = target
            return self._directories[digest]


@lru_cache(maxsize=64)
def _digest(archive: bytes) -> bytes:
    # of each function that begins, and kubectl's layer has 70 MB
    return hashlib.sha256(archive).digest()


@cache
def unpacked() -> Unpacked:
    """The unpacked archives of this process, whatever account they came from."""
    return Unpacked()


def function_code(context: Context, name_or_arn: str, qualifier: str | None = None) -> FunctionCode:
    """The function's configuration and code; UnknownFunctionError, NotExecutableError (an image)."""
    function = _moto_function(context, name_or_arn, qualifier)
    if function.package_type != "Zip":
        raise NotExecutableError(f"{function.function_name} is a container image; only zip packages run here")
    return FunctionCode(
        name=function.function_name,
        arn=function.function_arn,
        version=str(function.version),
        handler=function.handler or "",
        runtime=function.run_time or "",
        timeout_seconds=int(function.timeout),
        memory_mib=int(function.memory_size),
        environment={str(key): str(value) for key, value in (function.environment_vars or {}).items()},
        code=function.code_bytes,
        layers=[_layer_bytes(context, layer["Arn"]) for layer in function.layers],
    )


def unpack(archive: bytes, target: Path) -> None:
    """Unpack a zip archive, keeping permissions and symbolic links as Lambda does; nothing may leave `target`."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for member in opened.infolist():
            path = resolved(target / member.filename)
            if not path.is_relative_to(resolved(target)):
                raise NotExecutableError(f"the archive holds a path outside of itself: {member.filename}")
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode) and member.file_size <= SYMLINK_MAX_BYTES:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.symlink_to(opened.read(member).decode())
                continue
            opened.extract(member, target)
            if mode and not member.is_dir():
                path.chmod(stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IWUSR)


def _moto_function(context: Context, name_or_arn: str, qualifier: str | None) -> Any:
    """Return moto's own object, because no API of Lambda returns the code."""
    from moto.awslambda.exceptions import UnknownFunctionException  # noqa: PLC0415 - moto loads after the account

    try:
        with moto_state("lambda", context.account, context.region) as backend:
            return backend.get_function(name_or_arn, qualifier)
    except UnknownFunctionException as error:
        raise UnknownFunctionError(name_or_arn) from error


def _layer_bytes(context: Context, arn: str) -> bytes:
    with moto_state("lambda", context.account, context.region) as backend:
        layer = backend.layers_versions_by_arn(arn)
    if layer is None:
        raise NotExecutableError(f"its layer {arn} is gone")
    content: bytes = layer.code_bytes
    return content
