"""The JSON Schema of the environment file, for editors and other tools."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from hyperpod_cdk.config.environment import Environment

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Leaves out the titles that repeat each key, and allows an empty zone."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the shape of pydantic's hook
        return False


def environment_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) that editors complete and check with.

    It carries every bound of a single value; rules over several values are the loader's.
    """
    schema = closed_schema(Environment, title="hyperpod-cdk environment")
    zones = schema["$defs"]["Network"]["properties"]["availability_zones"]
    zones["additionalProperties"] = {"anyOf": [zones["additionalProperties"], {"type": "null"}]}
    return schema


def closed_schema(model: type[BaseModel], *, title: str) -> dict[str, Any]:
    """Give the JSON Schema of a file that is read as ``model``, in which nothing but its keys may stand."""
    schema = model.model_json_schema(mode="validation", schema_generator=_Generator)
    return {"$schema": DIALECT, "title": title, **_closed(_without_title(schema))}


def schema_text() -> str:
    """Give the schema as the text of its file."""
    return json.dumps(environment_schema(), indent=2, ensure_ascii=False) + "\n"


def _closed(schema: Any) -> Any:
    """Turn patterns of keys into conditions: what no pattern matches would otherwise be allowed."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    patterns = closed.pop("patternProperties", None)
    if patterns is not None:
        ((pattern, values),) = patterns.items()
        closed |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
    return closed


def _without_title(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {key: value for key, value in schema.items() if key != "title"}
