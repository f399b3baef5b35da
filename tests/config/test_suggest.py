"""Near misses of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.findings import Finding

WORDS = ("on_demand", "spot", "training_plan", "count", "dev")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("conut", "count"),
        ("cuont", "count"),
        ("Count", "count"),
        ("counts", "count"),
        ("on-demand", "on_demand"),
        ("OnDemand", "on_demand"),
        ("trainingplan", "training_plan"),
        ("dve", "dev"),
        ("weight", None),
        ("", None),
        ("d" * 1_000_000, None),
    ],
)
def test_closest(word: str, meant: str | None) -> None:
    assert closest(word, WORDS) == meant


def test_nothing_is_known() -> None:
    assert closest("count", ()) is None


# the last key of a counterpart alone means something else here: the environment's name, the group's
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"region: us-east-1\n": "region: us-east-1\ns3_bucket_name: my-bucket\n"},
            (
                "4 s3_bucket_name: is no key that is known here: AWS calls it s3_bucket_name; here:"
                " hyperpod.lifecycle.existing_bucket.name, the bucket's name; the folder is prefix"
            ),
        ),
        (
            {"volume_gib: 500": "volume_gib: 500\n      SourceS3Uri: s3://my-bucket/scripts"},
            (
                "38 hyperpod.instance_groups[1].SourceS3Uri: is no key that is known here: AWS"
                " calls it SourceS3Uri; here: hyperpod.lifecycle.existing_bucket.name, the bucket's name; the folder is"
                " prefix"
            ),
        ),
    ],
)
def test_a_word_of_aws_is_never_answered_with_another_key(
    changed: Callable[[Mapping[str, str]], str], refuse: Callable[[str], Sequence[Finding]], change: Any, said: str
) -> None:
    assert [finding.render() for finding in refuse(changed(change))] == [f"environments/prod.yaml:{said}"]
