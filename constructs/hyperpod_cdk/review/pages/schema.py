"""The report as JSON, and the JSON Schema that describes it."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from hyperpod_cdk.json_schema import schema_of_report
from hyperpod_cdk.review.model import Effect, Report


def report_json(report: Report) -> str:
    """Return the report as JSON: keys in the model's order, the most serious effects first, a newline at its end."""
    plain = report.model_dump(mode="json")
    counts = plain["blast_radius"]["counts"]
    plain["blast_radius"]["counts"] = {str(effect): counts[effect] for effect in Effect if effect in counts}
    try:
        return to_json(plain, indent=2).decode("utf-8") + "\n"
    except PydanticSerializationError:
        # a template may contain half of a surrogate pair, which a file can contain only as JSON's own escape
        text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what ``report_json`` writes: every key exists, also one without a value."""
    return schema_of_report(Report, title="hyperpod-cdk review")
