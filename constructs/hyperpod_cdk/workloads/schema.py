"""The JSON Schema of the job file, for editors and other tools."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.json_schema import as_text, schema_of_file
from hyperpod_cdk.workloads.job import job_model


def job_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) that editors complete and check with.

    It carries every bound of a single value; rules over several values, and over the environment, are the loader's.
    """
    return schema_of_file(job_model(), title="hyperpod-cdk job")


def schema_text() -> str:
    """Give the schema as the text of its file."""
    return as_text(job_schema())
