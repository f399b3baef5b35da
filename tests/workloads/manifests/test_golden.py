"""Manifests equal the reviewed text in golden/."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.workloads.loading import load_job
from hyperpod_cdk.workloads.manifests.render import render, to_yaml
from tests.support.assembly import PROJECT
from tests.workloads.training_jobs import EXAMPLES

GOLDEN = Path(__file__).parent / "golden"
TESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "nccl-h100": ("environments/prod.yaml", {"kind": "nccl", "group": "h100", "nodes": 2, "team": "research"}),
    "nccl-pairs-a10g": (
        "examples/two-teams.yaml",
        {"kind": "nccl", "group": "a10g", "measure": {"pairs": True}, "name": "pairs"},
    ),
    "efa-info-h100": ("environments/prod.yaml", {"kind": "efa-info", "group": "h100"}),
    "dcgm-h100": ("environments/prod.yaml", {"kind": "dcgm", "group": "h100"}),
    "nccom-trn": ("examples/trainium.yaml", {"kind": "nccom", "group": "trn2"}),
}
"""Tests of a fabric: the environment and what the command line says."""

CASES = {
    **{name: (file, None, overrides) for name, (file, overrides) in TESTS.items()},
    **{name: (file, PROJECT / "examples" / "jobs" / f"{name}.yaml", {}) for name, file in EXAMPLES.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_manifests_are_the_reviewed_ones(name: str, pytestconfig: pytest.Config) -> None:
    """A difference is shown as one; where it is meant, --update-golden writes the file anew."""
    file, job_file, overrides = CASES[name]
    environment = load_environment(PROJECT / file)
    loaded = load_job(job_file, environment=environment, overrides=overrides)
    text = to_yaml(render(environment.environment, loaded.job))
    path = GOLDEN / f"{name}.yaml"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8") if path.is_file() else ""
    difference = "\n".join(
        difflib.unified_diff(golden.splitlines(), text.splitlines(), "reviewed", "rendered", lineterm="", n=2)
    )
    if difference:
        pytest.fail(
            f"{difference}\nread the difference as the cluster would; where it is meant, run 'pytest tests/workloads"
            " --update-golden' and commit the file",
            pytrace=False,
        )


def test_every_reviewed_file_is_compared() -> None:
    """None lies there that no case renders."""
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)
