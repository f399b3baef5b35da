"""Suggestions of similar words."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import Environment, EnvironmentFileError, load_environment
from hyperpod_cdk.config.shape import sections_of
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.findings import Finding
from tests.config.conftest import FILE, TODAY
from tests.support.tables import row_by_row

WORDS = ("on_demand", "spot", "training_plan", "count", "dev")


@row_by_row(
    "word, meant",
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
                "4 s3_bucket_name: is not a known key here: AWS calls it s3_bucket_name; here:"
                " hyperpod.lifecycle.existing_bucket.name, the bucket's name; the folder is prefix"
            ),
        ),
        (
            {"volume_gib: 500": "volume_gib: 500\n      SourceS3Uri: s3://my-bucket/scripts"},
            (
                "38 hyperpod.instance_groups[1].SourceS3Uri: is not a known key here: AWS"
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


def written_at(place: str, keys: Sequence[str]) -> dict[str, Any]:
    """Return a file that has nothing but these keys in one section, written as messages write it."""
    data: Any = dict.fromkeys(keys, "x")
    for step in reversed(place.split(".") if place else []):
        data = {"ZONE" if step == "*" else step.removesuffix("[]"): [data] if step.endswith("[]") else data}
    return dict(data)


def test_a_key_of_ours_in_another_section_gets_its_own_named() -> None:
    """Some of the file's keys in every section that has no such name."""
    chance = random.Random(15)  # noqa: S311 - the same keys every time
    sections = dict(sections_of("", Environment))
    assert len(sections) > 40
    keys = {key for model in sections.values() for key in model.model_fields}
    for place, model in sections.items():
        others = sorted(key for key in keys - set(model.model_fields) if len(key) > 1)
        foreign = chance.sample(others, 8)
        text = yaml.safe_dump({"name": "prod", **written_at(place, foreign)})
        with pytest.raises(EnvironmentFileError) as caught:
            load_environment(FILE, text=text, today=TODAY)
        unknown = {
            each.path.rpartition(".")[2]: each.message for each in caught.value.findings if each.rule == "unknown_key"
        }
        assert set(unknown) == set(foreign), place
        for key, message in unknown.items():
            own = [each for each, other in sections.items() if key in other.model_fields]
            named = [each for each in own if each and (f"in {each}" in message or f"here: {each}" in message)]
            spelt = re.search("did you mean ([a-z_]+)", message)
            assert (
                named
                or ("" in own and "at the top level" in message)
                or (spelt and spelt[1].replace("_", "") == key.replace("_", ""))
                or "AWS calls it" in message
            ), f"{place}: {key}: {message}"
