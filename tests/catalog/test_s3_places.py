"""Overlapping locations in S3: in either order, and next to one with a similar name."""

from __future__ import annotations

from hyperpod_cdk.catalog.s3_places import overlaps
from tests.support.tables import row_by_row


@row_by_row(
    "one, other, do",
    [
        ("ours", "ours", True),
        ("ours", "s3://ours", True),
        ("ours", "s3://ours/", True),
        ("s3://ours/a", "s3://ours/a/", True),
        ("s3://ours/a/", "s3://ours/a/b", True),
        ("s3://ours/a", "s3://ours/a/b/c", True),
        ("ours", "s3://ours/a", True),
        ("ours", "theirs", False),
        ("ours", "s3://ours-too", False),
        ("s3://ours/a", "s3://ours/ab", False),
        ("s3://ours/a", "s3://ours/b", False),
        ("s3://ours/a", "s3://theirs/a", False),
    ],
)
def test_two_places(one: str, other: str, *, do: bool) -> None:
    for first, second in ((one, other), (other, one)):
        said = f"must not overlap another place, got {second} and {first} of places[0]; list only the wider of the two"
        assert list(overlaps([first, second], key="places")) == ([(1, said)] if do else [])


def test_each_is_told_once_with_the_first_that_it_meets() -> None:
    found = list(overlaps(["a", "b", "s3://b/x", "s3://b/x/y", "c", "a"], key="places"))
    assert [(index, said.partition(";")[0]) for index, said in found] == [
        (2, "must not overlap another place, got s3://b/x and b of places[1]"),
        (3, "must not overlap another place, got s3://b/x/y and b of places[1]"),
        (5, "must not overlap another place, got a and a of places[0]"),
    ]
