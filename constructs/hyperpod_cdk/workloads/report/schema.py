"""Writes the report as JSON, and its JSON Schema."""

from __future__ import annotations

import json
from typing import Any

from hyperpod_cdk.json_schema import schema_of_report
from hyperpod_cdk.workloads.report.model import Report


def report_json(report: Report) -> str:
    """Return the report as JSON, with keys in the order of the model and a trailing newline."""
    return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the output of ``report_json``; every key is required, even if it is null."""
    return schema_of_report(Report, title="hyperpod-cdk job report")
