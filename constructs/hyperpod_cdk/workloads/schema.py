"""The JSON Schema of the job file, for editors and other tools."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.json_schema import as_text, schema_of_file
from hyperpod_cdk.workloads.job import job_model


def job_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) for completion and validation in editors.

    It contains the limits of single values; rules that involve several values or the environment are in the loader.
    """
    return schema_of_file(job_model(), title="hyperpod-cdk job")


def schema_text() -> str:
    """Return the schema as the text of its file."""
    return as_text(job_schema())
