"""States in time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk_rehearsal.embedded.context import Clock
from hyperpod_cdk_rehearsal.embedded.services.timeline import Timeline, page


@pytest.mark.parametrize(
    ("seconds", "state"), [(-1, "Creating"), (0, "Creating"), (1.9, "Creating"), (2, "Checking"), (3, "Running")]
)
def test_each_state_begins_after_the_one_before(seconds: float, state: str) -> None:
    timeline = Timeline.begin(Clock(), "Creating", (2, "Checking"), (1, "Running"))
    assert timeline.at(timeline.steps[0][0] + timedelta(seconds=seconds)) == state
    assert timeline.final == "Running"


def test_the_clocks_scale_shortens_it() -> None:
    timeline = Timeline.begin(Clock(scale=0.1), "Creating", (10, "Running"))
    assert timeline.steps[-1][0] - timeline.steps[0][0] == timedelta(seconds=1)


@given(st.lists(st.integers()), st.integers(min_value=1, max_value=7))
def test_pages_give_everything_once_in_order(items: list[int], size: int) -> None:
    seen: list[int] = []
    token: str | None = None
    while True:
        shown, token = page(items, token, size)
        assert len(shown) <= size
        seen += shown
        if token is None:
            break
    assert seen == items
