"""The basis of `make transitions`: its edits are valid edits of users, and it detects differences."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.transitions import told
from tests.support import edits, legal
from tests.support.assembly import PROJECT
from tests.support.pairs import is_announced, judged
from tests.support.standing import Standing, differences

PROD = PROJECT / "environments" / "prod.yaml"
NOT_THERE = {
    *("workspace", "team out", "zone out", "claim elsewhere", "key out", "Karpenter off", "OIDC provider out"),
    *("group's capacity", "security group swapped", "tiered checkpointing off"),
}
"""Edits of what this file has none of."""


def test_edits_leave_a_legal_file() -> None:
    file = yaml.safe_load(PROD.read_text(encoding="utf-8"))
    name, edited = edits.one(edits.drawing(1), file)
    assert name in edits.EDITS
    assert edited != file
    assert legal.accepted(edited) is not None


def test_an_edit_says_whether_it_edited() -> None:
    file = yaml.safe_load(PROD.read_text(encoding="utf-8"))
    for name, edit in edits.EDITS.items():
        changed = 0
        for number in range(8):
            edited = copy.deepcopy(file)
            is_edited = edit(edits.drawing(number), edited)
            changed += is_edited and edited != file
        assert bool(changed) is (name not in NOT_THERE), name


def test_what_differs_is_named() -> None:
    fresh = Standing(
        resources={("s", "A"): {"Properties": {"a": 1, "b": [1, 2]}}}, told={"s/A": 1}, ids={}, kept=frozenset()
    )
    other = Standing(
        resources={("s", "A"): {"Properties": {"a": 2, "b": [1, 3]}}}, told={"s/B": 1}, ids={}, kept=frozenset()
    )
    assert differences(fresh, fresh) == []
    assert differences(other, fresh) == [
        "resource ('s', 'A'): .Properties.a: 2 in place of 1",
        "resource ('s', 'A'): .Properties.b[1]: 3 in place of 2",
        "service s/A is missing: 1",
        "service s/B is there and in no fresh deployment: 1",
    ]


def test_what_may_stay_is_what_a_plan_names() -> None:
    said = ["f / C: no other version comes with it for kube-proxy: EKS updates no add-on with its cluster"]
    version = '.addonVersion: "v1" in place of "v2"'
    assert is_announced(f"service f/C add-ons: .kube-proxy.addon{version}", said)
    assert not is_announced(f"service f/C add-ons: .vpc-cni.addon{version}", said)
    role = 'service h/C described: .ClusterRole: "arn" in place of null'
    assert is_announced(role, ["h / C: ClusterRole arn: Perhaps, because it is unknown: whether the cluster keeps it"])
    assert not is_announced(role, said)
    assert not is_announced('service f/C add-ons: .kube-proxy.addon.status: "FAILED" in place of "ACTIVE"', said)


def test_what_is_printed_counts_each_pair_once() -> None:
    def row(trouble: str, steps: int, *, met: bool = False, refused: str = "", wrong: str = "") -> dict[str, Any]:
        reasons = {"refused": [refused] if refused else [], "problems": [wrong] if wrong else []}
        return {"trouble": trouble, "steps": steps, "met": met, **reasons}

    rows = [
        row("none", 0),
        row("none", 1),
        {**row("fault", 2, met=True), "by_hand": ["bucket"]},
        row("fault", 1),
        row("kill", 1, met=True, wrong="x"),
        row("kill", 0, refused="no"),
        row("none", 0, refused="no"),
    ]
    assert list(told(rows)) == [
        "on the way                          nothing  a fault   a kill      all",
        "pairs                                     3        2        2        7",
        "refused before anything changed           1        0        1        2",
        "by one step, or nothing to do             2        1        0        3",
        "by more steps                             0        1        0        1",
        "wrong                                     0        0        1        1",
        "the fault or kill happened                0        1        1        2",
        "and the next deployment ended it          0        1        0        1",
        "after 'recover', or a bucket deleted        0        1        0        1",
        "- 2 times: no",
    ]


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_a_pair_ends_as_a_fresh_deployment(tmp_path: Path) -> None:
    base = {**yaml.safe_load(PROD.read_text(encoding="utf-8")), "name": "pairs"}
    head = copy.deepcopy(base)
    head["storage"]["lustre"][0]["capacity_gib"] *= 2
    head["hyperpod"]["instance_groups"][0]["name"] = "renamed"
    pair = judged(base, head, tmp_path)
    # the new name stands beside the old one first
    assert (pair.problems, pair.refused, pair.steps) == ([], [], 2)
