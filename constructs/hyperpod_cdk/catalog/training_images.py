"""Versions for a training image that go together: CUDA, NCCL, PyTorch, the EFA installer and what it brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from hyperpod_cdk.catalog import _data

_DATA = _data.load("training_images")

AS_OF: date = _data.as_of("training_images")

PLUGIN_BUNDLED_SINCE: str = _DATA["plugin_bundled_since"]["installer"]
"""The first EFA installer that includes aws-ofi-nccl; with older ones, the plugin must be built."""

INSTALLER_URL: str = _DATA["installer"]["url"]
"""The address of the installers, their signatures and the signing key."""

INSTALLER_KEY: str = _DATA["installer"]["key_fingerprint"]
"""The fingerprint of the key that signs the EFA installer."""

NCCL_TESTS_VERSION: str = _DATA["nccl_tests"]["version"]
NCCL_TESTS_SHA256: str = _DATA["nccl_tests"]["sha256"]

BUILD_PACKAGES: Mapping[str, str] = {
    name: version for name, version in _DATA["build_packages"].items() if name != "source"
}
"""What must be installed before the packages that exist only as sources."""


@dataclass(frozen=True, kw_only=True)
class Installer:
    """A release of the EFA installer, with the releases of aws-ofi-nccl and libfabric that it includes.

    ``sha256`` and ``libfabric`` are None if no source states them; ``options`` are those that it needs in an image
    on top of nvidia/cuda.
    """

    version: str
    plugin: str
    libfabric: str | None
    sha256: str | None
    options: tuple[str, ...]
    unsure: str = ""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A row of the compatibility table, named by its CUDA release (``13.0``).

    ``base`` is an NVIDIA image with compilers and ``digest`` that of all its architectures, ``nccl`` the release
    that the PyTorch in ``packages`` includes, ``minimum_driver`` the major version that nodes need.
    """

    name: str
    cuda: str
    base: str
    digest: str
    architectures: tuple[str, ...]
    minimum_driver: int
    efa_installer: str
    nccl: str
    packages: Mapping[str, str]
    unsure: str = ""


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """What a compiler must know about a GPU; ``since_cuda`` is the first release that supports it."""

    kind: str
    capability: str
    since_cuda: str


def stacks() -> tuple[Stack, ...]:
    """Return the rows, the newest CUDA first."""
    return tuple(
        Stack(**{**_without_source(row), "architectures": tuple(row["architectures"])}) for row in _DATA["stacks"]
    )


def installers() -> tuple[Installer, ...]:
    """Return the EFA installers that an image can have, the oldest first; all of them include aws-ofi-nccl."""
    return tuple(Installer(**{**_without_source(row), "options": tuple(row["options"])}) for row in _DATA["installers"])


def accelerators() -> Mapping[str, Accelerator]:
    """Return the GPUs that the images can be compiled for, by the kind in instance types."""
    return {row["kind"]: Accelerator(**_without_source(row)) for row in _DATA["accelerators"]}


def _without_source(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {"source", "notes"}}
