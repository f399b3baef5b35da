"""The report as JSON, and the JSON Schema that says what stands in it."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from hyperpod_cdk.review.model import Effect, Report

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Leaves out the titles that repeat each key, and requires every key: each is written."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the shape of pydantic's hook
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002, FBT001 - as above
        return True


def report_json(report: Report) -> str:
    """Give the report as JSON: keys in the model's order, effects gravest first, a newline at its end."""
    plain = report.model_dump(mode="json")
    counts = plain["blast_radius"]["counts"]
    plain["blast_radius"]["counts"] = {str(effect): counts[effect] for effect in Effect if effect in counts}
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    # a template may hold half of a surrogate pair, which no file can but as JSON's own escape
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def report_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of what ``report_json`` writes: every key is there, also one without a value."""
    schema = Report.model_json_schema(mode="serialization", schema_generator=_Generator)
    return {"$schema": DIALECT, **schema, "title": "hyperpod-cdk review"}


def report_schema_text() -> str:
    """Give the schema as the text of its file."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"
