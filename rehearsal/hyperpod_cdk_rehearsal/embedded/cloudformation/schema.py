"""The CloudFormation registry of a region: resource type schemas, as bundled with cfn-lint."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema.validators
import regex  # type: ignore[import-untyped]  # ships no types

_FALLBACK_REGION = "us-east-1"
"""Its registry is used for Regions that cfn-lint does not have."""


class ResourceSchema:
    """The registry's schema of one resource type."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.resource_type: str = document["typeName"]
        self.create_only = _paths(document.get("createOnlyProperties", []))
        self.conditional_create_only = _paths(document.get("conditionalCreateOnlyProperties", []))
        self.read_only = _paths(document.get("readOnlyProperties", []))
        self.write_only = _paths(document.get("writeOnlyProperties", []))
        self.primary_identifier = _paths(document.get("primaryIdentifier", []))

    @property
    def properties(self) -> Mapping[str, Any]:
        """The declared top-level properties."""
        declared: Mapping[str, Any] = self.document.get("properties", {})
        return declared

    @cached_property
    def tag_property(self) -> str | None:
        """Name of the top-level property that holds tags; None where stack tags do not reach the resource."""
        tagging = self.document.get("tagging", {})
        if not tagging.get("taggable", "Tags" in self.properties):
            return None
        name = str(tagging.get("tagProperty", "/properties/Tags")).rpartition("/")[2]
        return name if name in self.properties else None

    @cached_property
    def tags_are_map(self) -> bool:
        """Whether tags are an object instead of a list of Key and Value."""
        declared = self._target(self.properties[self.tag_property]) if self.tag_property else {}
        return declared.get("type") == "object"

    def supports_attribute(self, name: str) -> bool:
        """Whether Fn::GetAtt may ask for it; CloudFormation also gives out a few properties, so any declared one."""
        path = tuple(name.split("."))
        return path in self.read_only or path[0] in self.properties or (path[:1] in self.read_only)

    def coerced(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The properties with scalars in the declared types: CloudFormation takes "2" for a number, 2 for a text."""
        result = _coerced(self, self.document, dict(properties))
        return dict(result)

    def problems(self, properties: Mapping[str, Any]) -> list[str]:
        """Everything the schema forbids, as "#/Path: problem" in CloudFormation's words; empty if nothing."""
        read_only = [
            f"#: Encountered unsupported property {path[0]}"
            for path in sorted(self.read_only)
            if len(path) == 1 and path[0] in properties and not self._may_be_given(path)
        ]
        return read_only + sorted(
            worded for error in self._validator.iter_errors(dict(properties)) for worded in _all_worded(error)
        )

    def _may_be_given(self, path: tuple[str, ...]) -> bool:
        return path in self.create_only or path in self.write_only or path[0] in self.document.get("required", [])

    @cached_property
    def _validator(self) -> Any:
        return _Validator(self.document)

    def _target(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema a node stands for, `$ref` followed."""
        while "$ref" in node:
            target: Any = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node


class Registry:
    """The resource types of one region."""

    def __init__(self, region: str) -> None:
        self.region = region

    def schema(self, resource_type: str) -> ResourceSchema | None:
        """Return the type's schema, or None if the Region's registry does not have it."""
        digest = _types_of(self.region).get(resource_type)
        return _schema(digest) if digest else None


def values_at(properties: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a property path, or None; a `*` collects the values of a list."""
    if not path:
        return properties
    head, rest = path[0], path[1:]
    if head == "*":
        return [values_at(member, rest) for member in properties] if isinstance(properties, list) else None
    if isinstance(properties, list):
        # registry paths do not always write the star of a list
        return [values_at(member, path) for member in properties]
    return values_at(properties.get(head), rest) if isinstance(properties, Mapping) else None


@cache
def cfn_lint_data() -> Path:
    """Return the folder of cfn-lint's data without importing cfn-lint, which takes half a second."""
    spec = importlib.util.find_spec("cfnlint")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("cfn-lint is not installed, whose schemas of resource types are read", name="cfnlint")
    return Path(spec.origin).parent / "data"


@cache
def _types_of(region: str) -> Mapping[str, str]:
    folder = cfn_lint_data() / "schemas" / "providers"
    file = folder / f"{region}.json"
    if not file.is_file():
        file = folder / f"{_FALLBACK_REGION}.json"
    types: Mapping[str, str] = json.loads(file.read_text())
    return types


@cache
def _schema(digest: str) -> ResourceSchema:
    file = cfn_lint_data() / "schemas" / "resources" / f"{digest}.json"
    return ResourceSchema(json.loads(file.read_text()))


def _paths(pointers: list[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(pointer.removeprefix("/properties/").split("/")) for pointer in pointers)


def _coerced(schema: ResourceSchema, node: Mapping[str, Any], value: Any) -> Any:
    node = schema._target(node)  # noqa: SLF001 - a helper of the same module
    kind = node.get("type")
    if isinstance(value, Mapping):
        declared = _declared(schema, node)
        extra = node.get("additionalProperties")
        others = [*node.get("patternProperties", {}).values(), extra if isinstance(extra, Mapping) else {}]
        return {key: _coerced(schema, declared.get(key, others[0]), member) for key, member in value.items()}
    if isinstance(value, list):
        items = node.get("items")
        return [_coerced(schema, items, member) for member in value] if isinstance(items, Mapping) else value
    return _scalar(kind, value) if isinstance(kind, str) else value


def _declared(schema: ResourceSchema, node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a node and of its alternatives, of which a value may match any."""
    found: dict[str, Any] = {}
    for keyword in ("oneOf", "anyOf", "allOf"):
        for alternative in node.get(keyword, ()):
            found.update(_declared(schema, schema._target(alternative)))  # noqa: SLF001 - a helper of the same module
    return found | dict(node.get("properties", {}))


def _scalar(kind: str, value: Any) -> Any:
    if kind == "string" and isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if kind == "boolean" and value in ("true", "false", "True", "False"):
        return value.lower() == "true"
    if kind in ("integer", "number") and isinstance(value, str):
        return _number(kind, value)
    return value


def _number(kind: str, text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    if number.is_integer():
        return int(number)
    return text if kind == "integer" else number


def _check_pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _compiled(pattern).search(value):
        yield jsonschema.ValidationError(f"string [{value}] does not match pattern {pattern}")


def _check_pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(value, "object"):
        for pattern, subschema in patterns.items():
            for key in [key for key in value if _compiled(pattern).search(key)]:
                yield from validator.descend(value[key], subschema, path=key, schema_path=pattern)


def _check_additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not validator.is_type(value, "object"):
        return
    for key in _undeclared(schema, value):
        if isinstance(allowed, Mapping):
            yield from validator.descend(value[key], allowed, path=key)
        elif not allowed:
            yield jsonschema.ValidationError(f"extraneous key [{key}] is not permitted")


def _undeclared(schema: Mapping[str, Any], value: Mapping[str, Any]) -> list[str]:
    declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [key for key in value if key not in declared and not any(_compiled(p).search(key) for p in patterns)]


@cache
def _compiled(pattern: str) -> Any:
    """Compile a pattern of a schema, which is for Java; `regex` supports its classes, and others are not checked."""
    try:
        return regex.compile(pattern)
    except regex.error:
        return regex.compile("")


_Validator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # jsonschema's stubs leave it out
    jsonschema.Draft7Validator,
    {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
    },
)

_JSON_TYPES = {dict: "JSONObject", list: "JSONArray", str: "String", bool: "Boolean", int: "Integer", float: "Number"}
_WANTED_TYPES = {"object": "JSONObject", "array": "JSONArray"}


def _all_worded(error: Any) -> Iterator[str]:
    """Yield an error and, for alternatives, why the value does not match the closest one."""
    yield _worded(error)
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return
    tries: dict[int, list[Any]] = {}
    for cause in error.context:
        tries.setdefault(cause.relative_schema_path[0], []).append(cause)
    nearest = min(tries.values(), key=lambda causes: (_strangeness(causes), len(causes)))
    for cause in nearest:
        yield from _all_worded(cause)


def _strangeness(causes: list[Any]) -> int:
    """Return the number of unknown members, and of missing required ones, of a value in an alternative."""
    return sum(cause.validator in ("additionalProperties", "required", "type") for cause in causes)


def _worded(error: Any) -> str:
    where = "#" + "".join(f"/{part}" for part in error.absolute_path)
    if error.validator == "required":
        # jsonschema reports each missing key on its own; its message starts with the key's repr
        return f"{where}: required key [{error.message.split(chr(39))[1]}] not found"
    return f"{where}: {_problem(error.validator, error.validator_value, error.instance, error.message)}"


def _count(limit: Any) -> int:
    return len(limit) if isinstance(limit, list) else 0


def _problem(keyword: str, limit: Any, value: Any, message: str) -> str:
    size = len(value) if isinstance(value, (str, list, dict)) else 0
    worded = {
        "enum": f"{value} is not a valid enum value",
        "const": f"{value} is not a valid enum value",
        "pattern": message,
        "additionalProperties": message,
        "minimum": f"{value} is not greater or equal to {limit}",
        "maximum": f"{value} is not less or equal to {limit}",
        "minLength": f"expected minLength: {limit}, actual: {size}",
        "maxLength": f"expected maxLength: {limit}, actual: {size}",
        "minItems": f"expected minimum item count: {limit}, found: {size}",
        "maxItems": f"expected maximum item count: {limit}, found: {size}",
        "uniqueItems": "array items are not unique",
        "anyOf": f"#: no subschema matched out of the total {_count(limit)} subschemas",
        "oneOf": f"#: {'0' if 'not valid' in message else 'more than one'} subschemas matched instead of one",
    }
    if keyword == "type":
        wanted = limit if isinstance(limit, str) else "|".join(limit)
        name = _WANTED_TYPES.get(wanted, wanted.capitalize())
        return f"expected type: {name}, found: {_JSON_TYPES.get(type(value), type(value).__name__)}"
    return worded.get(keyword, f"failed validation constraint for keyword [{keyword}]")
