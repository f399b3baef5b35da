"""The real environments, synthesized once; `--update-golden` rewrites their reviewed templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_cdk.config import load_environment
from tests.support.assembly import ENVIRONMENTS, OF_THEIR_OWN, Synthesized, shipped, synthesized_once


@pytest.fixture(scope="session")
def no_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project's root without a pulled HyperPod chart, even if the developer has pulled it."""
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="session", params=ENVIRONMENTS)
def synthesized(request: pytest.FixtureRequest, assemblies: Path) -> Synthesized:
    """Return each of the environments in turn, after cdk-nag and template checks."""
    return shipped(assemblies, request.param)


@pytest.fixture(scope="session", params=OF_THEIR_OWN)
def created(request: pytest.FixtureRequest, assemblies: Path) -> Synthesized:
    """Each environment that makes its network and its EKS cluster itself; for the other see test_existing.py."""
    return shipped(assemblies, request.param)


@pytest.fixture(scope="session")
def prod(assemblies: Path) -> Synthesized:
    """The environment that ships in environments/."""
    return shipped(assemblies, "prod")


@pytest.fixture(scope="session")
def unprotected(project: Path, assemblies: Path) -> Synthesized:
    """The same with `deletion_protection: false`."""
    text = (project / ENVIRONMENTS["prod"]).read_text(encoding="utf-8")
    loaded = load_environment(project / ENVIRONMENTS["prod"], text=f"{text}\ndeletion_protection: false\n")
    return synthesized_once(assemblies, "prod-unprotected", loaded)
