"""Keys and values of tags: at each limit and next to it, by the complete message."""

from __future__ import annotations

from hyperpod_cdk.catalog import tags
from tests.support.tables import row_by_row

MARKS = "may hold letters, digits, blanks and _.:/=+-@, got"


@row_by_row(
    "key, problem",
    [
        ("a", None),
        ("k" * 127, None),
        ("k" * 128, "a tag key must have 1 to 127 characters, got 128; shorten it"),
        ("", "a tag key must have 1 to 127 characters, got 0; shorten it"),
        ("Größe _.:/=+-@ 1", None),
        ("a*b", f'a tag key {MARKS} "a*b"; rename it'),
        ("a\n", f'a tag key {MARKS} "a\n"; rename it'),
        ("Aws:team", 'a tag key may not begin with "aws:", which AWS reserves, got "Aws:team"; rename it'),
        *((key, None) for key in ("aws-team", "my:aws:team", "A", "SageMake", "SageMaker2", "Zone")),
        (
            "SageMaker",
            (
                '"SageMaker" is set by this library on the HyperPod cluster, where the training operator looks for it;'
                " remove the tag"
            ),
        ),
    ],
)
def test_keys(key: str, problem: str | None) -> None:
    assert tags.key_problem(key, key) == problem


@row_by_row(
    "path, value",
    [
        ("Prod/Network/nodes-use1-az1", "Prod/Network/nodes-use1-az1"),
        ("Größe <1>/N", "Größe -1-/N"),
        ("a" * 300 + "/end", "a" * 251 + "/end"),
    ],
)
def test_a_path_becomes_a_value(path: str, value: str) -> None:
    assert tags.of_path(path) == value
    assert tags.value_problem(value, "Name") is None


@row_by_row(
    "value, problem",
    [
        ("a", None),
        ("v" * 255, None),
        ("v" * 256, "a tag value must have at most 255 characters, got 256; shorten it"),
        ("", "a tag value must not be empty, which EKS add-ons refuse, got nothing; write a value after team"),
        ("aws:größe _.:/=+-@ 1", None),
        ("a & b", f'a tag value {MARKS} "a & b"; change team'),
    ],
)
def test_values(value: str, problem: str | None) -> None:
    assert tags.value_problem(value, "team") == problem
