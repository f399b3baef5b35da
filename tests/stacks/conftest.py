"""The three real environments, synthesized once into one cloud assembly."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest

from hyperpod_cdk.config import load_environment
from stacks.app import FEATURE_FLAGS, build
from tests.support.assembly import ENVIRONMENTS, Synthesized


@pytest.fixture(scope="session")
def assembly(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cloud assembly of all three environments, nag and template checks included."""
    outdir = tmp_path_factory.mktemp("assembly")
    app = cdk.App(
        context=FEATURE_FLAGS,
        builtin_cloud_formation_validation=False,
        analytics_reporting=False,
        outdir=str(outdir),
    )
    build(app, [load_environment(project / file) for file in ENVIRONMENTS.values()], root=project)
    app.synth()
    return outdir


@pytest.fixture(scope="session", params=ENVIRONMENTS)
def synthesized(request: pytest.FixtureRequest, assembly: Path, project: Path) -> Synthesized:
    """Each of the three environments in turn."""
    environment = load_environment(project / ENVIRONMENTS[request.param]).environment
    folder = assembly / f"assembly-{environment.name}"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    stacks = {k: v for k, v in manifest.items() if v["type"] == "aws:cloudformation:stack"}
    names = {key: stack["properties"]["stackName"] for key, stack in stacks.items()}
    return Synthesized(
        environment=environment,
        templates={
            names[key]: json.loads((folder / stack["properties"]["templateFile"]).read_text(encoding="utf-8"))
            for key, stack in stacks.items()
        },
        stack_dependencies={
            names[key]: [names[d] for d in stack.get("dependencies", []) if d in names] for key, stack in stacks.items()
        },
    )
