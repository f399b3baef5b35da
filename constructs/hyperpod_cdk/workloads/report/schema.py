"""The report as JSON, and its JSON Schema."""

from __future__ import annotations

import json
from typing import Any

from hyperpod_cdk.json_schema import schema_of_report
from hyperpod_cdk.workloads.report.model import Report


def report_json(report: Report) -> str:
    """Give the report as JSON, keys in the model's order, a newline at its end."""
    return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def report_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of what ``report_json`` writes: every key is there, also one without a value."""
    return schema_of_report(Report, title="hyperpod-cdk job report")
