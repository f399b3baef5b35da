"""Resolve the Python packages of the training images, with one lock file for each row of the compatibility table.

Run it after a change of a row's packages in ``catalog/data/training_images.json``. uv resolves for each architecture;
of each package the files that this Python can install are kept, by their hashes, without saying where they lie.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from hyperpod_cdk.catalog import training_images
from hyperpod_cdk.workloads.image import LOCKS

PYTHON = (3, 12)
_NEWEST_GLIBC = 39  # that of Ubuntu 24.04


def main() -> int:
    """Write every lock file."""
    for stack in training_images.stacks():
        wanted = [f"{name}=={version}" for name, version in stack.packages.items()]
        _write(LOCKS / f"cuda-{stack.name}.txt", wanted, stack.architectures)
    tools = [f"{name}=={version}" for name, version in training_images.BUILD_PACKAGES.items()]
    _write(LOCKS / "build.txt", tools, ("x86_64", "aarch64"))
    return 0


def _write(path: Path, wanted: Sequence[str], architectures: Sequence[str]) -> None:
    found = {architecture: _resolve(wanted, architecture) for architecture in architectures}
    names = sorted({name for packages in found.values() for name in packages})
    path.write_text("".join(_entry(name, found) for name in names), encoding="utf-8")


def _entry(name: str, found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    having = [architecture for architecture, packages in found.items() if name in packages]
    versions = {found[architecture][name]["version"] for architecture in having}
    if len(versions) > 1:
        raise SystemExit(f"{name} must have one version everywhere, got {sorted(versions)}")
    hashes = sorted({digest for each in having for digest in _hashes(found[each][name], each)})
    marker = "" if len(having) == len(found) else f' ; platform_machine == "{having[0]}"'
    lines = [f"{name}=={versions.pop()}{marker}", *(f"    --hash=sha256:{digest}" for digest in hashes)]
    return " \\\n".join(lines) + "\n"


def _resolve(wanted: Sequence[str], architecture: str) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        asked, locked = Path(folder, "wanted.in"), Path(folder, "pylock.toml")
        asked.write_text("\n".join(wanted), encoding="utf-8")
        command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", str(asked), "--quiet"]
        command += ["--python-version", ".".join(map(str, PYTHON)), "--format", "pylock.toml"]
        command += ["--python-platform", f"{architecture}-manylinux_2_28", "--output-file", str(locked)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {row["name"]: row for row in tomllib.loads(locked.read_text(encoding="utf-8"))["packages"]}


def _hashes(package: Mapping[str, Any], architecture: str) -> Iterable[str]:
    tags = frozenset(_tags(architecture))
    wheels = [
        file["hashes"]["sha256"]
        for file in package.get("wheels", ())
        if parse_wheel_filename(file["url"].rpartition("/")[2].replace("%2B", "+"))[3] & tags
    ]
    if package.get("wheels") and not wheels:
        raise SystemExit(f"{package['name']} {package['version']} has no wheel for Python 3.12 on {architecture}")
    return wheels or [package["sdist"]["hashes"]["sha256"]]


def _tags(architecture: str) -> Iterable[Tag]:
    platforms = [f"manylinux_2_{minor}_{architecture}" for minor in range(_NEWEST_GLIBC, 4, -1)]
    platforms += [f"{old}_{architecture}" for old in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    yield from cpython_tags(PYTHON, platforms=platforms)
    yield from compatible_tags(PYTHON, "cp312", platforms)


if __name__ == "__main__":
    sys.exit(main())
