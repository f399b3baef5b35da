"""Order of resources, and running work along it."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk_rehearsal.embedded.cloudformation.graph import WorkFailedError, ordered, reverse, run

Edges = dict[str, frozenset[str]]


@st.composite
def acyclic(draw: st.DrawFn) -> Edges:
    """Each resource waits for some of those before it."""
    names = [f"R{i}" for i in range(draw(st.integers(1, 12)))]
    return {name: frozenset(draw(st.sets(st.sampled_from(names[:i]))) if i else ()) for i, name in enumerate(names)}


@given(acyclic())
def test_ordered_puts_each_after_its_needs(edges: Edges) -> None:
    order = ordered(edges)
    assert sorted(order) == sorted(edges)
    assert all(order.index(need) < order.index(name) for name, needs in edges.items() for need in needs)


@given(acyclic(), st.randoms(use_true_random=False))
def test_ordered_keeps_the_order_given_otherwise(edges: Edges, random: Random) -> None:
    names = list(edges)
    random.shuffle(names)
    done: list[str] = []
    while len(done) < len(names):
        done.append(next(name for name in names if name not in done and edges[name] <= set(done)))
    assert ordered({name: edges[name] for name in names}) == done


@given(acyclic())
def test_reverse_twice_is_the_same(edges: Edges) -> None:
    assert reverse(reverse(edges)) == edges


@settings(deadline=None)
@given(acyclic())
def test_run_starts_each_after_its_needs(edges: Edges) -> None:
    done: list[str] = []

    def work(name: str) -> None:
        assert edges[name] <= set(done)
        done.append(name)

    outcome = run(edges, work)
    assert (outcome.failed, outcome.not_started) == ([], [])
    assert sorted(done) == sorted(edges)


@settings(deadline=None)
@given(acyclic(), st.data())
def test_a_failure_leaves_out_what_waits_for_it(edges: Edges, data: st.DataObject) -> None:
    broken = data.draw(st.sampled_from(sorted(edges)))
    done: list[str] = []

    def work(name: str) -> None:
        if name == broken:
            raise WorkFailedError(name)
        done.append(name)

    outcome = run(edges, work, stop_on_failure=False)
    waiting = {broken}
    for name in edges:
        if edges[name] & waiting:
            waiting.add(name)
    assert outcome.failed == [broken]
    assert set(outcome.not_started) == waiting - {broken}
    assert set(done) == set(edges) - waiting


def test_nothing_starts_after_a_failure() -> None:
    slow_runs = threading.Event()

    def work(name: str) -> None:
        if name == "Slow":
            slow_runs.set()
            time.sleep(0.05)
        elif name == "Broken":
            slow_runs.wait(5)
            raise WorkFailedError(name)

    edges = {"Slow": frozenset[str](), "Broken": frozenset[str](), "After": frozenset({"Slow"})}
    outcome = run(edges, work)
    assert (outcome.failed, outcome.not_started) == (["Broken"], ["After"])


def test_independent_work_runs_side_by_side() -> None:
    together = threading.Barrier(4, timeout=5)

    def work(_name: str) -> None:
        together.wait()

    assert run({name: frozenset() for name in "abcd"}, work).failed == []


def test_an_unexpected_error_is_not_swallowed() -> None:
    def work(_name: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run({"a": frozenset()}, work)
