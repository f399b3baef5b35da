"""What GetTemplate makes of letters is undone where the file says what stood there, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.review.mangled import mangled, restored
from tests.support.tables import row_by_row

_LETTERS = st.text(st.sampled_from("ab?üß漢😀"), max_size=3)
_VALUES = st.recursive(
    _LETTERS | st.integers(0, 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        # one question mark for a code point (aws-cdk 2.1148.1, mangleLikeCloudFormation: /[\u{80}-\u{10ffff}]/gu)
        ("Zürich", "Z?rich"),
        ("\x7f\x80", "\x7f?"),
        ("漢😀", "??"),
        ({"ü": ["ß", 1]}, {"?": ["?", 1]}),
    ],
)
def test_mangled(value: Any, told: Any) -> None:
    assert mangled(value) == told


@row_by_row(
    "deployed, head, expected, number",
    [
        ("Z?rich", "Zürich", "Zürich", 1),
        ("Z?rich", "Z?rich", "Z?rich", 0),
        ("Z?rich", "Bern", "Z?rich", 0),
        ({"a": "?", "b": "?"}, {"a": "ü", "b": "?"}, {"a": "ü", "b": "?"}, 1),
        ({"?": "?"}, {"ü": "ß"}, {"ü": "ß"}, 2),
        # another tag came first, and one goes
        (
            [{"Key": "city", "Value": "Z?rich"}, {"Key": "old", "Value": "?"}],
            [{"Key": "a", "Value": "ü"}, {"Key": "city", "Value": "Zürich"}],
            [{"Key": "city", "Value": "Zürich"}, {"Key": "old", "Value": "?"}],
            1,
        ),
        ([{"Key": "c?", "Value": "?"}], [{"Key": "cü", "Value": "x"}], [{"Key": "cü", "Value": "?"}], 1),
        (["?", "b", "c"], ["b", "ü"], ["ü", "b", "c"], 1),
        # alike without their letters: each in its place
        (["?", "?"], ["ß", "?"], ["ß", "?"], 1),
        (["?", "?", "b"], ["ß", "?", "c"], ["ß", "?", "b"], 1),
    ],
)
def test_restored(deployed: Any, head: Any, expected: Any, number: int) -> None:
    assert restored(deployed, head) == (expected, number)


@given(_VALUES)
def test_the_same_file_again_is_no_change(value: Any) -> None:
    assert restored(mangled(value), value)[0] == value


@given(_VALUES, _VALUES)
def test_nothing_but_letters_is_ever_another(deployed: Any, head: Any) -> None:
    deployed = mangled(deployed)
    assert mangled(restored(deployed, head)[0]) == deployed
