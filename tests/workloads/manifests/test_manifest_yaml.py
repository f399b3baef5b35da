"""Manifests come out as people write them, and every reader of YAML gets the same values."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.workloads.manifests.manifest_yaml import to_yaml
from tests.support.tables import row_by_row

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(documents=st.lists(st.dictionaries(st.text(), VALUES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_written_is_what_is_read(documents: list[dict[str, Any]]) -> None:
    assert list(yaml.safe_load_all(to_yaml(documents))) == documents


@row_by_row(
    "text, written",
    [
        ("1", '"1"'),
        ("1e3", '"1e3"'),
        ("0x1F", '"0x1F"'),
        ("1_000", '"1_000"'),
        (".5", '".5"'),
        ("12:30:45", '"12:30:45"'),
        (".inf", '".inf"'),
        ("y", '"y"'),
        ("N", '"N"'),
        ("yes", '"yes"'),
        ("off", '"off"'),
        ("null", '"null"'),
        ("-c", "-c"),
        ("efa", "efa"),
        ("^docker,lo,veth", "^docker,lo,veth"),
        ("5120Mi", "5120Mi"),
        ("", "''"),
    ],
)
def test_text_that_a_reader_could_take_for_something_else_is_quoted(text: str, written: str) -> None:
    assert to_yaml([{"value": text}]) == f"value: {written}\n"


def test_scripts_are_blocks_and_keys_keep_their_order() -> None:
    assert to_yaml([{"kind": "Job", "apiVersion": "batch/v1", "script": "set -e\necho a\n"}, {"b": [1], "a": {}}]) == (
        "kind: Job\napiVersion: batch/v1\nscript: |\n  set -e\n  echo a\n---\nb:\n- 1\na: {}\n"
    )


def test_duplicates_are_written_twice() -> None:
    devices = {"nvidia.com/gpu": 8}
    assert "&" not in to_yaml([{"requests": devices, "limits": devices}])


def test_long_lines_stay_lines() -> None:
    assert to_yaml([{"text": "word " * 100 + "end"}]).count("\n") == 1
