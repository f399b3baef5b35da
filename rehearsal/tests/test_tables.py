"""A table that is checked in one test reports each failed row by name, and is never empty."""

from __future__ import annotations

import pytest

from rehearsal.tests.support.tables import row_by_row


@pytest.fixture
def limit() -> int:
    """What rows are compared with."""
    return 2


@row_by_row("number", [0, 1, 2])
def test_a_row_stands_beside_fixtures(limit: int, number: int) -> None:
    assert number <= limit


class TestMethods:
    @row_by_row("number, half", [(2, 1), (4, 2)])
    def test_of_a_class_too(self, number: int, half: int) -> None:
        assert number == 2 * half


def test_every_row_that_fails_is_named() -> None:
    seen = []

    @row_by_row("number, word", [(1, "a"), pytest.param(2, "b", id="the second"), (3, "c")])
    def is_one(number: int, word: str) -> None:
        seen.append(word)
        assert number == 1, f"{word} is {number}"

    with pytest.raises(ExceptionGroup, match=r"^2 of 3 rows: the second, \(3, 'c'\)") as caught:
        is_one()
    assert seen == ["a", "b", "c"]
    assert [(str(error).splitlines()[0], error.__notes__) for error in caught.value.exceptions] == [
        ("b is 2", ["in the row the second"]),
        ("c is 3", ["in the row (3, 'c')"]),
    ]


def test_what_ends_a_test_ends_it_at_its_row() -> None:
    @row_by_row("number", [1, 2], ids=lambda number: f"number {number}")
    def stops(number: int) -> None:
        pytest.fail(f"at {number}")

    with pytest.raises(pytest.fail.Exception, match="at 1") as caught:
        stops()
    assert caught.value.__notes__ == ["in the row number 1"]


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="a test of number needs a row"):
        row_by_row("number", [])
