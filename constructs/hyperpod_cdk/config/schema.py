"""The JSON Schema of the environment file, for editors and other tools."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from hyperpod_cdk.config.extensions import environment_model
from hyperpod_cdk.json_schema import as_text, schema_of_file

if TYPE_CHECKING:
    from hyperpod_cdk.config.environment import Environment


def environment_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) that editors use to complete and check.

    It carries every bound of a single value; the loader checks rules over several values.
    """
    return _schema_of(environment_model())


def schema_text() -> str:
    """Return the schema as the text of its file."""
    return _text_of(environment_model())


@functools.cache
def _text_of(model: type[Environment]) -> str:
    """Return the schema's text for a model, which installed extensions add sections to."""
    return as_text(_schema_of(model))


def _schema_of(model: type[Environment]) -> dict[str, Any]:
    schema = schema_of_file(model, title="hyperpod-cdk environment")
    zones = schema["$defs"]["Network"]["properties"]["availability_zones"]
    zones["additionalProperties"] = {"anyOf": [zones["additionalProperties"], {"type": "null"}]}
    return schema
