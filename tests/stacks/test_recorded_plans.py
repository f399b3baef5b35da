"""The record of training plans at synthesis: contradictions are refused, by the date of the tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk_stacks.app import read_environments

BLOCK = {
    "instance_type": "ml.p5.48xlarge",
    "instance_count": 2,
    "availability_zone": "us-east-1f",
    "availability_zone_id": "use1-az5",
    "start": "2026-04-01T11:30:00Z",
    "end": "2099-04-30T11:30:00Z",
}
PLAN = {
    "arn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april",
    "name": "h100-april",
    "status": "Active",
    "target_resources": ["hyperpod-cluster"],
    "instance_count": 2,
}


@pytest.fixture
def root(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with environments/prod.yaml of this repository, entered."""
    (tmp_path / "environments").mkdir()
    shipped = (project / "environments" / "prod.yaml").read_text(encoding="utf-8")
    # closed to the internet, so that no other warning stands beside those of plans
    private = shipped.replace("endpoint_access: public_and_private", "endpoint_access: private")
    (tmp_path / "environments" / "prod.yaml").write_text(private, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(root: Path, block: Mapping[str, Any], recorded: str = "2026-11-20") -> None:
    """Write a record with one block that differs."""
    document = {
        "schema_version": 1,
        "recorded": recorded,
        "account": "111122223333",
        "region": "us-east-1",
        "plans": [{**PLAN, "blocks": [{**BLOCK, **block}]}],
    }
    (root / "environments" / "prod.plans.json").write_text(json.dumps(document), encoding="utf-8")


def test_a_record_that_agrees(root: Path) -> None:
    write(root, {})
    (loaded,) = read_environments(root)
    assert (loaded.warnings, loaded.recorded_plans is None) == ((), False)


def test_the_clock_does_not_count(root: Path) -> None:
    # recorded a day after the tables, for a plan whose end no clock of ours has reached
    write(root, {}, recorded="2026-11-21")
    (loaded,) = read_environments(root)
    assert loaded.warnings == ()


def test_another_zone_is_refused(root: Path) -> None:
    write(root, {"availability_zone_id": "use1-az4"})
    with pytest.raises(SystemExit) as caught:
        read_environments(root, "prod")
    line = str(caught.value)
    assert line.startswith("environments/prod.yaml:")
    assert line.endswith(
        " hyperpod.instance_groups[1].availability_zone_id: must be use1-az4, where plan h100-april is"
        " (environments/prod.plans.json of 2026-11-20), got use1-az5; set availability_zone_id: use1-az4"
    )


def test_a_plan_that_ended_before_the_tables_day_is_refused(root: Path) -> None:
    write(root, {"end": "2026-04-30T11:30:00Z"})
    with pytest.raises(SystemExit, match="the nodes of h100-april leave at 2026-04-30 10:30 UTC"):
        read_environments(root)


def test_bad_json_is_one_line(root: Path) -> None:
    (root / "environments" / "prod.plans.json").write_text("{", encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        read_environments(root)
    assert str(caught.value).startswith("environments/prod.plans.json:1: is not JSON: ")
    assert "\n" not in str(caught.value)
