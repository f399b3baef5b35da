"""Every rule about jobs with a job that breaks it: the complete messages are in the table next to this file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import LoadedEnvironment, load_environment
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.workloads.admission.simulation import simulate
from hyperpod_cdk.workloads.job import KINDS, TRAINING, Job, Kind, Measurement, Restart
from hyperpod_cdk.workloads.loading import JobFileError, load_job
from hyperpod_cdk.workloads.manifests.render import render
from hyperpod_cdk.workloads.rules import RULES
from hyperpod_cdk.workloads.rules.basics import kinds_read_what_is_stated
from hyperpod_cdk.workloads.rules.queues import teams_can_have_what_is_asked
from tests.support.tables import row_by_row

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
FILE = Path("jobs/job.yaml")
GROUPS: Mapping[Kind, str] = {
    "efa-info": "h100",
    "nccl": "h100",
    "dcgm": "h100",
    "neuron-info": "trn1",
    "nccom": "trn1",
    "pytorch": "h100",
    "hyperpod-pytorch": "h100",
}
LLAMA = {"name": "llama", "image": "registry.example.com/llama:1", "command": ["train.py"]}
VALUES: Mapping[str, Any] = {
    "name": "other",
    "team": "vision",
    "namespace": "experiments",
    "priority": "training",
    "nodes": 1,
    "accelerators_per_node": 4,
    "efa_per_node": 1,
    "huge_pages_mib": 1024,
    "vcpu_per_node": 3,
    "memory_gib_per_node": 20,
    "shared_memory_gib": 1,
    "image": "registry.example.com/other:2",
    "image_pull_policy": "Always",
    "command": ["other.py"],
    "launcher": False,
    "environment": {"HF_HOME": "/data"},
    "secrets": {"HF_TOKEN": {"secret": "hugging-face", "key": "token"}},
    "volumes": [{"claim": "scratch", "mount_path": "/data"}],
    "checkpoints": {"path": "/data/runs"},
    "service_account": "trainer",
    "passed_deep_health_checks": True,
    "topology": {"preferred": "topology.k8s.aws/network-node-layer-3"},
    "restart": {
        "max_retries": 7,
        "evaluation_seconds": 77,
        "before_full": 7,
        "max_full": 7,
        "shutdown_seconds": 77,
        "spares": 1,
    },
    "elastic": {"min_nodes": 1, "max_nodes": 2},
    "log_monitoring": [{"name": "fault", "pattern": ".*Error", "fault_on_match": True}],
    "measure": {
        "collectives": ["all_gather"],
        "min_bytes": 1024,
        "max_bytes": 4096,
        "iterations": 7,
        "pairs": True,
        "diagnostic_level": 3,
    },
}
"""A value of every field of a job but its kind and group, none of them a default."""

READING_RULE = kinds_read_what_is_stated.__name__
QUOTA_RULE = teams_can_have_what_is_asked.__name__
TODAY = date(2026, 11, 20)

TABLE: Mapping[str, Mapping[str, Any]] = yaml.load(
    (HERE / "wrong_jobs.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
)


def rows() -> Iterator[Any]:
    for section, cases in TABLE.items():
        for name, row in cases.items():
            yield pytest.param(row, id=f"{section}-{name}")


@cache
def environment(file: str | None, changes: tuple[tuple[str, str], ...]) -> LoadedEnvironment:
    path = HERE / "environment.yaml" if file is None else PROJECT / file
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    return load_environment(Path("environments/lab.yaml"), text=text, today=TODAY)


def found(row: Mapping[str, Any]) -> tuple[Finding, ...]:
    loaded = environment(row.get("in"), tuple(row.get("environment", {}).items()))
    path = FILE if "job" in row else None
    try:
        return load_job(path, environment=loaded, overrides=row.get("options", {}), text=row.get("job")).warnings
    except JobFileError as error:
        refused = error
    assert any(finding.severity is Severity.ERROR for finding in refused.findings)
    assert refused.file == ("" if path is None else str(path))
    return refused.findings


def line(finding: Finding) -> str:
    """The line that a user reads, without the name of the file."""
    mark = "warning " if finding.severity is Severity.WARNING else ""
    return mark + finding.render().removeprefix(f"{FILE}:")


@row_by_row("row", list(rows()))
def test_wrong_job(row: Mapping[str, Any]) -> None:
    assert [line(finding) for finding in found(row)] == row["says"]


def test_every_rule_has_a_case() -> None:
    seen = {finding.rule for cases in TABLE.values() for row in cases.values() for finding in found(row)}
    assert {rule.name for rule in RULES} - seen == set()


def test_wrong_combinations_give_one_finding_each() -> None:
    over_the_job = {rule.name for rule in RULES}
    findings = [found(row) for cases in TABLE.values() for row in cases.values()]
    assert sum(len(each) == 1 and each[0].rule in over_the_job for each in findings) >= 100


def test_rule_names_are_unique() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("team", ["research", "vision"])
@pytest.mark.parametrize("kind", ["nccl", "nccom", "dcgm", "pytorch", "hyperpod-pytorch"])
def test_the_quota_rule_refuses_what_kueue_never_admits(team: str, kind: str) -> None:
    """The rule reads the job and the simulation the manifests; neither may know better."""
    lab = environment(None, ())
    judged = []
    for group, nodes, accelerators, spares, is_elastic in product(
        ("h100", "a10g", "slices", "trn1", "elastic"),
        (1, 2, 3, 4),
        (None, 1, 3),
        *(((0, 1), (False, True)) if kind == "hyperpod-pytorch" else ((0,), (False,))),
    ):
        data = {
            "kind": kind,
            "group": group,
            "team": team,
            "nodes": nodes,
            **(LLAMA if kind in TRAINING else {}),
            **({} if accelerators is None else {"accelerators_per_node": accelerators}),
            **({"restart": {"spares": spares}} if spares else {}),
            **({"elastic": {"min_nodes": 1, "max_nodes": 4}} if is_elastic else {}),
        }
        try:
            load_job(FILE, environment=lab, text=json.dumps(data))
            never = False
        except JobFileError as error:
            if {each.rule for each in error.findings if each.severity is Severity.ERROR} != {QUOTA_RULE}:
                continue
            never = True
        manifests = render(lab.environment, Job.model_validate(data))
        decisions = simulate(lab.environment, [manifests])
        assert any(each.status == "never" for each in decisions) == never, (data, decisions[0].why)
        judged.append(never)
    assert len(judged) >= 6


def test_there_is_a_value_of_every_field() -> None:
    assert {*VALUES, "kind", "group"} == set(Job.model_fields)
    for name, model in (("restart", Restart), ("measure", Measurement)):
        assert set(VALUES[name]) == set(model.model_fields)


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_changes_the_manifests_or_is_refused(kind: Kind) -> None:
    """What a kind does not read would be ignored in silence."""
    lab = environment(None, ())
    base = {"kind": kind, "group": GROUPS[kind], "team": "research", "nodes": 2, **(LLAMA if kind in TRAINING else {})}
    plain = render(lab.environment, Job.model_validate(base))
    for name, value in VALUES.items():
        parts = [{key: part} for key, part in value.items()] if name in {"restart", "measure"} else [value]
        for part in parts:
            data = {**base, name: part}
            if name == "namespace":
                del data["team"]
            try:
                load_job(FILE, environment=lab, text=json.dumps(data))
                rules = set()
            except JobFileError as error:
                rules = {each.rule for each in error.findings}
            if READING_RULE not in rules:
                assert render(lab.environment, Job.model_validate(data)) != plain, (name, part)
