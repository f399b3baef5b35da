"""The report as JSON, and the JSON Schema that says what stands in it."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from hyperpod_cdk.workloads.report.model import Report

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Leaves out the titles that repeat each key, and requires every key: each is written."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the shape of pydantic's hook
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002, FBT001 - as above
        return True


def report_json(report: Report) -> str:
    """Give the report as JSON, keys in the model's order, a newline at its end."""
    return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def report_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of what ``report_json`` writes: every key is there, also one without a value."""
    schema = Report.model_json_schema(mode="serialization", schema_generator=_Generator)
    return {"$schema": DIALECT, **schema, "title": "hyperpod-cdk job report"}


def report_schema_text() -> str:
    """Give the schema as the text of its file, ``schemas/job-report.schema.json``."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"
