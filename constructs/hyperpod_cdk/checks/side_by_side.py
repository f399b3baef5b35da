"""Runs questions in parallel threads and counts how many calls had to be made one after another."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import TypeVar

from hyperpod_cdk.checks.answers import NotAnswered

MOST_THREADS = 64
"""Threads of one `together`: every check, or every group of a large environment, starts at once."""

_depth: ContextVar[int] = ContextVar("depth", default=0)

_idle: deque[SimpleQueue[Callable[[], object]]] = deque()
"""What each thread of `in_background` that has nothing to do waits for."""

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def depth() -> int:
    """Return how many sequential calls led to this point of the program."""
    return _depth.get()


def deepen_to(calls: int) -> None:
    """Record that what follows had to wait for a chain of that many calls; a shorter chain changes nothing."""
    if calls > _depth.get():
        _depth.set(calls)


def start() -> None:
    """Record that a run begins here: earlier calls do not count."""
    _depth.set(0)


def together(function: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT | NotAnswered]:
    """Call ``function`` with each item in parallel; give the results in order, a NotAnswered for a missing one.

    Any other exception is raised once all have ended, that of the first item first. Every call sees the caller's
    context variables; afterwards the caller's depth is that of the deepest call, since it waited for all.
    """
    todo = list(items)
    if len(todo) == 1:
        return [_result(function, todo[0])]
    if not todo:
        return []

    def run(item: ItemT) -> tuple[ResultT | NotAnswered, int]:
        return _result(function, item), depth()

    # each call has threads of its own: nested calls that share a pool could wait for each other forever
    with ThreadPoolExecutor(min(len(todo), MOST_THREADS), thread_name_prefix="together") as pool:
        futures = [pool.submit(copy_context().run, run, item) for item in todo]
    ended = [future.result() for future in futures]
    deepen_to(max(reached for _, reached in ended))
    return [result for result, _ in ended]


def answered(*questions: Callable[[], object]) -> list[object]:
    """Ask different questions in parallel; give their answers in order. Raises the first NotAnswered."""
    answers = together(lambda ask: ask(), questions)
    for answer in answers:
        if isinstance(answer, NotAnswered):
            raise answer
    return answers


def in_background(task: Callable[[], object]) -> None:
    """Run ``task``, which raises nothing, in a thread that does not keep the process from ending.

    A thread whose task has ended runs a later one: a new thread for each call of AWS costs twice as much (measured).
    A thread whose task hangs gets no other task.
    """
    try:
        tasks = _idle.pop()
    except IndexError:
        tasks = SimpleQueue()
        threading.Thread(target=_run_each, args=(tasks,), name="background", daemon=True).start()
    tasks.put(task)


def _run_each(tasks: SimpleQueue[Callable[[], object]]) -> None:
    while True:
        tasks.get()()
        _idle.append(tasks)


def _result(function: Callable[[ItemT], ResultT], item: ItemT) -> ResultT | NotAnswered:
    try:
        return function(item)
    except NotAnswered as missing:
        return missing
