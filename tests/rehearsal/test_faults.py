"""A few of the faults of `make faults`: deploying again is all that it takes, whatever failed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.support import cli_faults
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.faults import CREATION, DELETION, ROLLBACK, UPDATE, living, sampled

SEED = 13


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_deploying_again_is_enough(tmp_path: Path) -> None:
    with living(PROJECT / ENVIRONMENTS["shared"], tmp_path) as (life, faults):
        kinds = Counter(fault.kind for fault in faults)
        templates = [json.loads(Path(stack.template).read_text(encoding="utf-8")) for stack in life.stacks.values()]
        assert kinds[CREATION] == 2 * sum(len(template["Resources"]) for template in templates)
        assert kinds[UPDATE] == 2 * kinds[ROLLBACK]
        outcomes = life.run(sampled(faults, 6, SEED))
    wrong = [each for each in outcomes if not each.recovered]
    assert wrong == []
    assert {each.fault.kind for each in outcomes} == {CREATION, UPDATE, ROLLBACK, DELETION}


def test_every_case_of_the_cli_is_recorded_as_recovered() -> None:
    recorded = json.loads((Path(__file__).parent / "faults.json").read_text(encoding="utf-8"))
    asked = "python scripts/faults.py --cli && python scripts/faults.py --record && make docs"
    stated = {(each["case"], each["happens"], each["todo"], each["recovered"]) for each in recorded["cli"]}
    assert stated == {(case.key, case.happens, case.todo, True) for case in cli_faults.CASES.values()}, asked


@pytest.mark.examples
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["quota", "killed"])
def test_the_cdk_cli_deploys_again_after(name: str, tmp_path: Path) -> None:
    record = cli_faults.run(cli_faults.CASES[name], tmp_path)
    assert record.problem == ""
    assert record.seen
    if name == "quota":
        assert record.stacks == {"two-teams-foundation": "ROLLBACK_COMPLETE"}
        assert "needs 4 ml.g5.12xlarge for cluster usage, quota is 1 in us-west-2" in " ".join(record.seen)
