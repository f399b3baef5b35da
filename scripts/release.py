"""Builds a release in dist/ and checks it: reproducible build, allowed licences, bill of materials, new environment.

    python scripts/release.py [--without-stranger]

The files in dist/ are then published: sdists and wheels of both distributions, the bill of materials (CycloneDX) and
the section of the changelog. The stranger test installs the wheels in an empty environment, which needs a package index
for their dependencies.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PARTS = (ROOT, ROOT / "rehearsal")
ALLOWED = frozenset(
    {
        *("Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "PSF-2.0", "ZPL-2.1", "CNRI-Python"),
        # of files that are passed on unchanged, such as certificates and fonts, and not of code that links to them
        *("MPL-2.0", "OFL-1.1"),
    }
)
"""Allowed licences of dependencies (SPDX identifiers)."""

CLASSIFIERS: Mapping[str, str] = {
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "Zope Public License": "ZPL-2.1",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "SIL Open Font License 1.1 (OFL-1.1)": "OFL-1.1",
}
"""The licences by trove classifier, for packages without an SPDX expression."""

UNSTATED: Mapping[str, str] = {"resvg-py": "MIT"}
"""Licences that are only in the package's LICENSE file, read on 2026-11-22."""

_ARGUMENTS = ("install", "--quiet", "--disable-pip-version-check")


@dataclass(frozen=True, kw_only=True)
class Component:
    """One dependency; ``licence`` is an SPDX expression, or empty if none is stated."""

    name: str
    version: str
    licence: str

    @property
    def is_allowed(self) -> bool:
        """Return whether every licence in the expression is allowed, including alternatives."""
        words = set(re.findall(r"[A-Za-z0-9.+-]+", self.licence)) - {"AND", "OR", "WITH"}
        return bool(words) and words <= ALLOWED


def main() -> int:
    """Build and check the release, and print the files."""
    parser = argparse.ArgumentParser(description="Build a release in dist/ and check it.")
    parser.add_argument("--without-stranger", action="store_true", help="Do not install the wheels anywhere.")
    given = parser.parse_args()
    version = the_version()
    notes = changelog_section(version)
    moment = int(_said("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))
    found = components()
    refused = [f"{each.name} {each.version}: {each.licence or 'none stated'}" for each in found if not each.is_allowed]
    if refused:
        _refuse(f"licences that are not allowed: {'; '.join(refused)}; look at them, then at ALLOWED")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for part in PARTS:
        build_twice(part, moment)
    name = f"hyperpod-cdk-{version}"
    (DIST / f"{name}.cdx.json").write_text(bill_of_materials(version, found, moment), encoding="utf-8")
    (DIST / f"{name}.md").write_text(notes, encoding="utf-8")
    if not given.without_stranger:
        as_a_stranger()
    for path in sorted(DIST.iterdir()):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  dist/{path.name}")
    return 0


def the_version() -> str:
    """Return the version of both distributions; exits with 1 if they differ or do not require each other."""
    ours, theirs = (tomllib.loads((part / "pyproject.toml").read_text(encoding="utf-8"))["project"] for part in PARTS)
    version = str(ours["version"])
    wanted = {f"hyperpod-cdk-rehearsal=={version}"} <= set(ours["optional-dependencies"]["rehearsal"])
    if theirs["version"] != version or not wanted or f"hyperpod-cdk[aws,node]=={version}" not in theirs["dependencies"]:
        _refuse(
            f"pyproject.toml and rehearsal/pyproject.toml must name one version and each other by it, got {version}"
        )
    return version


def changelog_section(version: str) -> str:
    """Return the section of a version in CHANGELOG.md; exits with 1 if there is none."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)}\b.*?\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None or not found[1].strip():
        _refuse(f"CHANGELOG.md has no section '## {version}'; say what the release changes for users")
    return f"{found[1].strip()}\n"


def components() -> list[Component]:
    """Return the installed dependencies of both distributions and their extras, sorted by name."""
    left = [(need, frozenset[str]()) for part in PARTS for need in _stated(part)]
    asked: set[tuple[str, frozenset[str]]] = set()
    found: dict[str, Component] = {}
    while left:
        text, extras_of_parent = left.pop()
        needed = Requirement(text)
        name, extras = canonicalize_name(needed.name), frozenset(map(canonicalize_name, needed.extras))
        is_meant = needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in extras_of_parent or {""})
        if not is_meant or (name, extras) in asked or name.startswith("hyperpod-cdk"):
            continue
        asked.add((name, extras))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            _refuse(f"{name} is not installed here; run 'make setup' first")
        found[name] = Component(name=name, version=distribution.version, licence=_licence(distribution))
        left += [(each, extras) for each in distribution.requires or []]
    return [found[name] for name in sorted(found)]


def _stated(part: Path) -> list[str]:
    # not those of our own installed packages, which may have another version
    project = tomllib.loads((part / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        *project["dependencies"],
        *(need for extra in project.get("optional-dependencies", {}).values() for need in extra),
    ]


def _licence(distribution: metadata.Distribution) -> str:
    stated: Any = distribution.metadata
    if expression := stated.get("License-Expression"):
        return str(expression)
    prefix = "License :: OSI Approved :: "
    classified = [each.removeprefix(prefix) for each in stated.get_all("Classifier") or () if each.startswith(prefix)]
    known = [CLASSIFIERS[each] for each in classified if each in CLASSIFIERS]
    if known:
        return " OR ".join(known)
    text = str(stated.get("License") or UNSTATED.get(canonicalize_name(distribution.name), ""))
    plain = {"Apache License 2.0": "Apache-2.0", "Apache License, Version 2.0": "Apache-2.0", "BSD": "BSD-3-Clause"}
    return plain.get(text, text)


def build_twice(part: Path, moment: int) -> None:
    """Build a distribution in dist/; exits with 1 if a second build has different bytes.

    The wheel is built from the sdist, which shows that the sdist is complete.
    """
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for folder in (first, second):
            command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, str(part)]
            subprocess.run(
                command,
                check=True,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "SOURCE_DATE_EPOCH": str(moment), "PYTHONHASHSEED": "0"},
            )
        made = {path.name: path for path in sorted(Path(first).iterdir())}
        for name, path in made.items():
            if path.read_bytes() != (Path(second) / name).read_bytes():
                _refuse(f"{name} has other bytes when it is built again")
            shutil.copyfile(path, DIST / name)


def bill_of_materials(version: str, found: list[Component], moment: int) -> str:
    """Return the CycloneDX 1.6 document of a release's dependencies; the same input always results in the same text."""
    listed = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{each.name}@{each.version}",
            "name": each.name,
            "version": each.version,
            "purl": f"pkg:pypi/{each.name}@{each.version}",
            "licenses": [{"expression": each.licence}],
        }
        for each in found
    ]
    own = f"pkg:pypi/hyperpod-cdk@{version}"
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([own, listed]))}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "hyperpod-cdk",
                "version": version,
                "purl": own,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": listed,
    }
    return json.dumps(document, indent=2) + "\n"


def as_a_stranger() -> None:
    """Install the wheels in an empty environment, create a project and rehearse it; exits with 1 if a step fails."""
    with tempfile.TemporaryDirectory(prefix="hyperpod-release-") as scratch:
        folder = Path(scratch)
        python = folder / "venv" / "bin" / "python"
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_"))}
        # without the programs of this checkout and its Node.js
        variables["PATH"] = os.pathsep.join([str(python.parent), *_programs(folder)])
        wheels = [str(path) for path in sorted(DIST.glob("*.whl"))]
        for where, words in (
            (folder, [sys.executable, "-m", "venv", str(folder / "venv")]),
            (folder, [str(python), "-m", "pip", *_ARGUMENTS, *wheels]),
            (folder, ["hyperpod-cdk", "new", "demo", "--with", "github"]),
            (folder / "demo", ["hyperpod-cdk", "validate"]),
            (folder / "demo", ["hyperpod-cdk", "cdk", "synth", "**", "--quiet", "-c", "env=prod"]),
            (folder / "demo", ["hyperpod-cdk", "rehearse", "prod"]),
        ):
            print(f"$ {' '.join(words)}", flush=True)
            program = shutil.which(words[0], path=variables["PATH"]) or words[0]
            done = subprocess.run([program, *words[1:]], cwd=where, env=variables, check=False)
            if done.returncode:
                _refuse(f"a stranger's '{' '.join(words)}' ended with exit code {done.returncode}")


def _programs(folder: Path) -> Iterator[str]:
    """Yield a folder with the few system programs of a new environment."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("sh", "git", "env"):
        found = shutil.which(name)
        if found is not None:
            (programs / name).symlink_to(found)
    yield str(programs)


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _refuse(message: str) -> NoReturn:
    sys.exit(f"no release: {message}")


if __name__ == "__main__":
    sys.exit(main())
