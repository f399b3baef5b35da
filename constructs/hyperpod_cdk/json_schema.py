"""JSON Schemas (2020-12) from models: of files that people write, and of data that is written for them."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema

from hyperpod_cdk.findings import Finding, Severity

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Documented(BaseModel):
    """A model whose schema describes each key by the docstring below it.

    pydantic's ``use_attribute_docstrings`` reads the source when a class is made; here only a schema waits for that.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> JsonSchemaValue:
        """Add the descriptions to what pydantic makes."""
        found = handler(schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for base in reversed(cls.__mro__):
            for name, text in _docstrings(base.__module__).get(base.__qualname__, {}).items():
                if name in properties:
                    properties[name].setdefault("description", text)
        return found


class Model(Documented):
    """What every part of a report, or of another answer of a verb, has in common."""

    # each part is made ready when the first of it is made, not while the command starts
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Told(Model):
    """Something that is wrong or doubtful, as every verb says it."""

    severity: Literal["error", "warning"]
    message: str
    path: str
    """The place in the file; empty where it is about all of it."""
    file: str
    line: int | None
    rule: str


def told(finding: Finding) -> Told:
    """Return a finding as data."""
    return Told(
        severity="error" if finding.severity is Severity.ERROR else "warning",
        message=finding.message,
        path=finding.path,
        file=finding.file,
        line=finding.line,
        rule=finding.rule,
    )


@functools.cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of attributes by class, of the classes at the top of a module."""
    if not module.startswith("hyperpod_cdk"):
        return {}
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            texts = found.setdefault(node.name, {})
            for above, below in zip(node.body, node.body[1:], strict=False):
                match above, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        texts[name] = inspect.cleandoc(text)
    return found


class _Read(GenerateJsonSchema):
    """Leaves out the titles that repeat each key."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the shape of pydantic's hook
        return False


class _Written(_Read):
    """Requires every key: each is written, also one without a value."""

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002, FBT001 - the shape of pydantic's hook
        return True


def schema_of_file(model: type[BaseModel], *, title: str) -> dict[str, Any]:
    """Return the schema of a file that is read as ``model``, which allows only its keys."""
    schema = model.model_json_schema(mode="validation", schema_generator=_Read)
    plain = {key: value for key, value in schema.items() if key != "title"}
    return {"$schema": DIALECT, "title": title, **_closed(plain)}


def schema_of_report(model: type[BaseModel], *, title: str) -> dict[str, Any]:
    """Return the schema of what is written of ``model``: every key is there."""
    schema = model.model_json_schema(mode="serialization", schema_generator=_Written)
    return {"$schema": DIALECT, **schema, "title": title}


def as_text(schema: Mapping[str, Any]) -> str:
    """Return a schema, or other JSON, as the text of its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


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
