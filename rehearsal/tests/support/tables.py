"""Checks each row of a long table in one test, which reports every failed row."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def row_by_row(
    names: str, rows: Iterable[Any], *, ids: Callable[[Any], object] = reprlib.repr
) -> Callable[[Test], Test]:
    """Call a test once for each row, as ``pytest.mark.parametrize`` does, but as one test.

    For rows that take less time than pytest and xdist spend on a test, some milliseconds in each worker, and whose
    fixtures may be shared by all of them. ``names``: the test's arguments that a row gives, separated by commas.
    ``ids``: what a row is called in the message where it fails; a ``pytest.param`` has its own ``id``.
    """
    arguments = [name.strip() for name in names.split(",")]
    cases = [_case(row, ids, is_single=len(arguments) == 1) for row in rows]
    if not cases:
        raise ValueError(f"a test of {names} needs a row")

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def every_row(*instance: Any, **fixtures: Any) -> None:
            failed: list[tuple[object, Exception]] = []
            for name, values in cases:
                try:
                    test(*instance, **fixtures, **dict(zip(arguments, values, strict=True)))
                except BaseException as error:
                    error.add_note(f"in the row {name}")
                    if not isinstance(error, Exception):
                        raise
                    failed.append((name, error))
            if failed:
                # a traceback shows fifteen of a group
                which = ", ".join(str(name) for name, _ in failed)
                raise ExceptionGroup(f"{len(failed)} of {len(cases)} rows: {which}", [error for _, error in failed])

        signature = inspect.signature(test)
        kept = [each for each in signature.parameters.values() if each.name not in arguments]
        setattr(every_row, "__signature__", signature.replace(parameters=kept))  # noqa: B010 - what pytest reads
        return every_row

    return decorate


def _case(row: Any, ids: Callable[[Any], object], *, is_single: bool) -> tuple[object, tuple[Any, ...]]:
    if isinstance(row, type(pytest.param())):
        if row.marks:
            raise ValueError(f"a row of one test has no marks of its own: {row.id}")
        return row.id or reprlib.repr(row.values), tuple(row.values)
    return ids(row), (row,) if is_single else tuple(row)
