"""Parallel calls: order, missing answers, context, and the longest chain of calls."""

from __future__ import annotations

import threading
from contextvars import Context, ContextVar, copy_context

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.side_by_side import MOST_THREADS, deepen_to, depth, in_background, start, together


def test_results_come_in_the_order_of_the_items_with_what_is_missing_in_its_place() -> None:
    def half(number: int) -> float:
        if number == 2:
            raise NotAnswered("no permission", action="ec2:DescribeVpcs")
        return number / 2

    first, second, third = together(half, (1, 2, 3))
    assert (first, third) == (0.5, 1.5)
    assert isinstance(second, NotAnswered)
    assert (second.reason, second.action) == ("no permission", "ec2:DescribeVpcs")


@pytest.mark.parametrize("items", [(), (5,), tuple(range(MOST_THREADS + 1))])
def test_any_number_of_items_is_answered(items: tuple[int, ...]) -> None:
    assert together(str, items) == [str(item) for item in items]


def test_items_run_at_the_same_time() -> None:
    everyone = threading.Barrier(MOST_THREADS)
    assert len(together(lambda _: everyone.wait(timeout=20), range(MOST_THREADS))) == MOST_THREADS


def test_nested_calls_do_not_wait_for_each_other() -> None:
    def inner(number: int) -> list[object]:
        return list(together(lambda each: each * number, range(8)))

    assert together(inner, range(40)) == [[each * number for each in range(8)] for number in range(40)]


@pytest.mark.parametrize("items", [(1,), (1, 2, 3)])
def test_a_mistake_in_the_function_is_raised(items: tuple[int, ...]) -> None:
    def wrong(number: int) -> float:
        return 1 / (number - 1)

    with pytest.raises(ZeroDivisionError):
        together(wrong, items)


def test_context_variables_reach_every_thread() -> None:
    name: ContextVar[str] = ContextVar("name")
    name.set("prod")
    assert together(lambda number: f"{name.get()}{number}", (1, 2)) == ["prod1", "prod2"]


@pytest.mark.parametrize(
    ("chains", "after"),
    [((), 1), ((1,), 2), ((3,), 4), ((1, 3, 2), 4), ((0, 0), 1)],
    ids=["no items", "one call", "one chain", "the longest of three", "nothing asked"],
)
def test_the_caller_is_as_deep_as_the_deepest_of_its_calls(chains: tuple[int, ...], after: int) -> None:
    def ask(calls: int) -> None:
        for _ in range(calls):
            deepen_to(depth() + 1)

    def caller() -> int:
        start()
        deepen_to(1)
        together(ask, chains)
        return depth()

    assert copy_context().run(caller) == after


def test_calls_side_by_side_do_not_deepen_each_other() -> None:
    def ask(_: int) -> int:
        deepen_to(depth() + 1)
        return depth()

    assert Context().run(together, ask, range(5)) == [1, 1, 1, 1, 1]


def test_a_run_starts_at_the_surface() -> None:
    def caller() -> int:
        deepen_to(3)
        start()
        return depth()

    assert copy_context().run(caller) == 0


def test_a_shorter_chain_changes_nothing() -> None:
    def caller() -> int:
        start()
        deepen_to(3)
        deepen_to(2)
        return depth()

    assert copy_context().run(caller) == 3


def test_a_task_that_never_ends_keeps_no_other_waiting() -> None:
    ends, seen = threading.Event(), list[str]()
    in_background(lambda: ends.wait(timeout=20))
    for name in ("first", "second"):
        done = threading.Event()

        def work(name: str = name, done: threading.Event = done) -> None:
            seen.append(name)
            done.set()

        in_background(work)
        assert done.wait(timeout=20)
    ends.set()
    assert seen == ["first", "second"]


def test_tasks_of_the_background_run_at_the_same_time_in_threads_that_end_with_the_process() -> None:
    everyone, daemons = threading.Barrier(9), list[bool]()

    def work() -> None:
        daemons.append(threading.current_thread().daemon)
        everyone.wait(timeout=20)

    for _ in range(8):
        in_background(work)
    everyone.wait(timeout=20)
    assert daemons == [True] * 8
