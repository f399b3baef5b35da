"""What the tests of the training program stand on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launching import PROGRAM, STEPS, Ended, ran

# the process from which workers are forked finds the program by it
os.environ["PYTHONPATH"] = os.pathsep.join([str(PROGRAM), str(Path(__file__).parent)])
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The losses of a run on four workers that nothing disturbs."""
    ended: Ended = ran(4, [], tmp_path_factory.mktemp("undisturbed"))
    assert ended.codes == [0, 0, 0, 0], ended.logs
    losses = ended.curve()
    assert sorted(losses) == list(range(1, STEPS + 1))
    return losses
