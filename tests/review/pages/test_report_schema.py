"""The report as JSON and its published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hyperpod_cdk.review.model import Effect, Report
from hyperpod_cdk.review.pages.schema import report_json, report_schema
from tests.review.sample import quiet_report, rich_report


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = report_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_committed_schema_is_the_generated_one(project: Path) -> None:
    committed = (project / "schemas" / "review-report.schema.json").read_text(encoding="utf-8")
    assert json.loads(committed) == report_schema(), "run 'make docs' and commit schemas/review-report.schema.json"


@pytest.mark.parametrize("report", [rich_report(), quiet_report()], ids=["rich", "quiet"])
def test_a_report_is_as_its_schema_says(validator: Draft202012Validator, report: Report) -> None:
    text = report_json(report)
    assert [error.message for error in validator.iter_errors(json.loads(text))] == []
    assert Report.model_validate_json(text.replace("\\ud800", "?")).verdict.level == report.verdict.level


def test_the_json_is_the_same_each_time_and_can_be_written(tmp_path: Path) -> None:
    text = report_json(rich_report())
    assert text == report_json(rich_report())
    assert text.endswith("}\n")
    # half of a surrogate pair stays an escape, everything else is as it was
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    assert "half \\ud800" in text
    assert "שלום" in text
    assert json.loads(text)["notes"] == list(rich_report().notes)


def test_effects_are_counted_gravest_first() -> None:
    counts = json.loads(report_json(rich_report()))["blast_radius"]["counts"]
    assert list(counts) == [str(effect) for effect in Effect]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 3},
        {"surprise": True},
        {"verdict": {"level": "safe", "sentence": "", "approval": "", "needs_approval": [], "attention": []}},
        {"notes": [1]},
        {"environment": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_no_report_is_refused(validator: Draft202012Validator, change: dict[str, Any]) -> None:
    plain = json.loads(report_json(quiet_report()))
    assert validator.is_valid(plain)
    assert not validator.is_valid({**plain, **change})


def test_every_key_is_required_and_every_part_described() -> None:
    schema = report_schema()
    assert schema["title"] == "hyperpod-cdk review"
    parts = [schema, *(part for part in schema["$defs"].values() if part.get("type") == "object")]
    assert len(parts) >= 30
    for part in parts:
        assert part["description"], part["title"]
        assert part["additionalProperties"] is False
        assert sorted(part["required"]) == sorted(part["properties"]), part["title"]


def test_what_needs_a_word_has_one() -> None:
    definitions = report_schema()["$defs"]
    assert definitions["Change"]["description"].startswith("A number before and after; None if it is unknown")
    assert definitions["CostLine"]["properties"]["monthly"]["description"] == "US dollars per month of 730 hours."
    assert definitions["Effect"]["enum"] == [str(effect) for effect in Effect]
