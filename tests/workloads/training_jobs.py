"""Training jobs of the examples and small ones made up, planned on real environments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.workloads.job import Job
from hyperpod_cdk.workloads.plan import Plan, plan
from tests.support.assembly import PROJECT

EXAMPLES = {
    "john-fsdp": "examples/two-teams.yaml",
    "smith-fsdp": "examples/two-teams.yaml",
    "pre-training": "examples/elastic-training.yaml",
    "tiered": "examples/tiered-checkpointing.yaml",
    "research": "environments/prod.yaml",
}
"""The files of examples/jobs, and the environment that each is for."""

PROD = "environments/prod.yaml"
TIERED = "examples/tiered-checkpointing.yaml"


@cache
def environment(file: str) -> Environment:
    return load_environment(PROJECT / file).environment


def example(name: str) -> Plan:
    text = (PROJECT / "examples" / "jobs" / f"{name}.yaml").read_text(encoding="utf-8")
    return plan(environment(EXAMPLES[name]), Job.model_validate(yaml.safe_load(text)))


def planned(file: str = PROD, **fields: object) -> Plan:
    """Plan a small job on an environment; ``fields`` win."""
    usual = {
        "name": "llm",
        "kind": "hyperpod-pytorch",
        "group": "h100",
        "image": "registry/training:1",
        "command": ["train.py", "--steps", "10"],
    }
    return plan(environment(file), Job.model_validate({**usual, **fields}))


def container(template: Mapping[str, Any]) -> dict[str, Any]:
    (only,) = template["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def variables(template: Mapping[str, Any]) -> dict[str, str]:
    return {row["name"]: row["value"] for row in container(template)["env"] if "value" in row}
