"""Prod without a node for add-ons: a deployed environment scales to zero and back without endless waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.rehearsal.test_examples import living
from tests.support.assembly import ENVIRONMENTS, PROJECT, shipped


@pytest.mark.examples
def test_an_environment_scales_to_zero_and_back(assemblies: Path, tmp_path: Path) -> None:
    synthesized = shipped(assemblies, "prod")
    data = yaml.safe_load((PROJECT / ENVIRONMENTS["prod"]).read_text(encoding="utf-8"))
    # a team's quota counts nodes that are there
    del data["task_governance"]["teams"]
    data["storage"]["lustre"][0]["claim"]["namespaces"] = ["data"]
    full = _write(tmp_path / "full", data)
    for group in data["hyperpod"]["instance_groups"]:
        group["count"] = 0
    zero = _write(tmp_path / "zero", data)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with living(synthesized, satisfying(synthesized.environment), scratch) as life:
        life.update(full)
        assert _waits(life) == 5
        life.update(zero)
        assert _waits(life) == 0
        life.update(full)
        assert _waits(life) == 5


def _waits(life: Any) -> int:
    """Return how many resources of the platform stack wait for nodes and for webhooks: one, and four."""
    pages = life.aws.client("cloudformation").list_stack_resources(StackName="prod-platform")
    kinds = {"Custom::HyperPodNodesReady", "Custom::AWSCDK-EKS-KubernetesObjectValue"}
    return len([each for each in pages["StackResourceSummaries"] if each["ResourceType"] in kinds])


def _write(folder: Path, data: dict[str, Any]) -> Path:
    folder.mkdir()
    file = folder / "prod.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return file
