"""The jobs in examples/jobs fit the environments that they are for."""

from __future__ import annotations

import pytest

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.workloads.loading import load_job
from hyperpod_cdk.workloads.manifests.render import render
from tests.support.assembly import PROJECT
from tests.workloads.schemas import check
from tests.workloads.training_jobs import EXAMPLES

WARNINGS = {
    "smith-fsdp": [("nodes", "smith owns compute for 1 node of this job, got 2: it borrows the rest")],
    "pre-training": [("service_account", "trainer of hyperpod-ns-models is not under hyperpod.tiered_checkpointing")],
}
"""What cannot be known from the file alone: (path, how the warning begins)."""


def test_every_example_has_its_environment() -> None:
    assert {path.stem for path in (PROJECT / "examples" / "jobs").iterdir()} == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_taken(name: str) -> None:
    environment = load_environment(PROJECT / EXAMPLES[name])
    loaded = load_job(PROJECT / "examples" / "jobs" / f"{name}.yaml", environment=environment)
    begun = [(finding.path, finding.message) for finding in loaded.warnings]
    for (path, message), (expected_path, beginning) in zip(begun, WARNINGS.get(name, []), strict=True):
        assert path == expected_path
        assert message.startswith(beginning)
    check(*render(environment.environment, loaded.job))
