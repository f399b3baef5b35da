"""The JSON Schema of the environment file, for editors and other tools."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.config.extensions import environment_model
from hyperpod_cdk.json_schema import as_text, schema_of_file


def environment_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) that editors complete and check with.

    It carries every bound of a single value; rules over several values are the loader's.
    """
    schema = schema_of_file(environment_model(), title="hyperpod-cdk environment")
    zones = schema["$defs"]["Network"]["properties"]["availability_zones"]
    zones["additionalProperties"] = {"anyOf": [zones["additionalProperties"], {"type": "null"}]}
    return schema


def schema_text() -> str:
    """Give the schema as the text of its file."""
    return as_text(environment_schema())
