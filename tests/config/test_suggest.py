"""Near misses of words."""

from __future__ import annotations

import pytest

from hyperpod_cdk.config.suggest import closest

WORDS = ("on_demand", "spot", "training_plan", "count", "dev")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("conut", "count"),
        ("cuont", "count"),
        ("Count", "count"),
        ("counts", "count"),
        ("on-demand", "on_demand"),
        ("OnDemand", "on_demand"),
        ("trainingplan", "training_plan"),
        ("dve", "dev"),
        ("weight", None),
        ("", None),
        ("d" * 1_000_000, None),
    ],
)
def test_closest(word: str, meant: str | None) -> None:
    assert closest(word, WORDS) == meant


def test_nothing_is_known() -> None:
    assert closest("count", ()) is None
