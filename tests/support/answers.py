"""The ``--format json`` output of commands, read as a program that relies on the published schema does."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SCHEMAS = Path(__file__).parents[2] / "schemas"


@functools.cache
def _validator(page: str) -> Any:
    schema = json.loads((SCHEMAS / f"{page}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def answered(page: str, text: str) -> dict[str, Any]:
    """Return ``text`` as data that matches the schema of ``page``, which must refuse it with any changed key."""
    found: dict[str, Any] = json.loads(text)
    schema = _validator(page)
    schema.validate(found)
    for mutated in _mutated(found):
        with pytest.raises(jsonschema.ValidationError):
            schema.validate(mutated)
    return found


def _mutated(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {**found, "no_such_key": ""}
    for key in found:
        yield {name: value for name, value in found.items() if name != key}
        # no output contains nested lists
        yield {**found, key: [[]]}
