"""The real environments, synthesized once; `--update-golden` rewrites their reviewed templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_cdk.config import load_environment
from stacks.app import build, new_app
from tests.support.assembly import ENVIRONMENTS, OF_THEIR_OWN, Synthesized, read_assembly


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the switch that writes the golden templates anew."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/stacks/golden/*.yaml from what is synthesized now"
    )


@pytest.fixture(scope="session")
def no_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's root into which nobody has pulled the HyperPod chart, whatever lies in the developer's own."""
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="session")
def assembly(project: Path, no_chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cloud assembly of all environments, nag and template checks included."""
    outdir = tmp_path_factory.mktemp("assembly")
    app = new_app(outdir=outdir)
    build(app, [load_environment(project / file) for file in ENVIRONMENTS.values()], root=no_chart)
    app.synth()
    return outdir


@pytest.fixture(scope="session", params=ENVIRONMENTS)
def synthesized(request: pytest.FixtureRequest, assembly: Path, project: Path) -> Synthesized:
    """Each of the environments in turn."""
    return read_assembly(assembly, load_environment(project / ENVIRONMENTS[request.param]).environment)


@pytest.fixture(scope="session", params=OF_THEIR_OWN)
def created(request: pytest.FixtureRequest, assembly: Path, project: Path) -> Synthesized:
    """Each environment that makes its network and its EKS cluster itself; for the other see test_existing.py."""
    return read_assembly(assembly, load_environment(project / ENVIRONMENTS[request.param]).environment)


@pytest.fixture(scope="session")
def prod(assembly: Path, project: Path) -> Synthesized:
    """The environment that ships in environments/."""
    return read_assembly(assembly, load_environment(project / ENVIRONMENTS["prod"]).environment)


@pytest.fixture(scope="session")
def unprotected(project: Path, no_chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """The same with `deletion_protection: false`."""
    text = (project / ENVIRONMENTS["prod"]).read_text(encoding="utf-8")
    loaded = load_environment(project / ENVIRONMENTS["prod"], text=f"{text}\ndeletion_protection: false\n")
    app = new_app(outdir=tmp_path_factory.mktemp("unprotected"))
    build(app, [loaded], root=no_chart)
    app.synth()
    return read_assembly(Path(app.outdir), loaded.environment)
