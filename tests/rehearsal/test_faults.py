"""A few of the faults of `make faults`: deploying again is all that it takes, whatever failed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.faults import CREATION, DELETION, ROLLBACK, UPDATE, living, sampled

SEED = 13


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
