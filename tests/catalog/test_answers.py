"""The assumed form of responses, read row by row."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hyperpod_cdk.catalog import _data, answers

DATA = _data.load("answers")


def test_every_row_is_a_member_of_its_operation() -> None:
    rows: Mapping[str, str] = DATA["answers"]
    operations = {row.partition(" ")[0] for row in rows}
    read = {
        f"{operation} {place}": always
        for operation in operations
        for place, always in (answers.members(operation) or {}).items()
    }
    assert read == {row: how == "always" for row, how in rows.items()}
    assert set(rows.values()) == {"always", "sometimes"}


@pytest.mark.parametrize(
    ("operation", "place", "always"),
    [
        ("cloudformation:DescribeStackEvents", "StackEvents[].EventId", True),
        ("cloudformation:DescribeStackEvents", "StackEvents[].ResourceProperties", False),
    ],
)
def test_a_member_comes_always_or_sometimes(operation: str, place: str, *, always: bool) -> None:
    assert (answers.members(operation) or {})[place] is always


def test_of_an_operation_without_a_row_nothing_is_known() -> None:
    assert answers.members("cloudformation:DescribeMoons") is None


@pytest.mark.parametrize(
    ("resource_type", "place", "values"),
    [
        ("AWS::FSx::FileSystem", "LustreConfiguration.CopyTagsToBackups", ("false",)),
        ("AWS::FSx::FileSystem", "LustreConfiguration.MountName", None),
        ("AWS::FSx::FileSystem", "LustreConfiguration.Moon", None),
        ("AWS::Moon::FileSystem", "LustreConfiguration.CopyTagsToBackups", None),
    ],
)
def test_what_is_filled_in(resource_type: str, place: str, values: tuple[str, ...] | None) -> None:
    assert answers.default(resource_type, place) == values
