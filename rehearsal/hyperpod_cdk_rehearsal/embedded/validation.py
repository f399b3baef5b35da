"""Checks a parsed request against botocore's model, as the service's front end does before any code of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sized
from decimal import Decimal
from functools import cache
from typing import Any

import regex  # type: ignore[import-untyped]  # ships no types
from botocore.model import ListShape, MapShape, Shape, StructureShape

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float, Decimal),
    "double": (int, float, Decimal),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "structure": (dict,),
}
_NUMBERS = ("integer", "long", "float", "double")
_SIZED = ("string", "list", "map", "blob")


def request_problems(shape: StructureShape | None, request: dict[str, Any]) -> list[str]:
    """Everything of a request that the model forbids, in the words of AWS's front end; empty if nothing."""
    if shape is None:
        return []
    return list(_structure(shape, request, ""))


def validation_message(problems: list[str]) -> str:
    """The one message AWS makes of them: "2 validation errors detected: ...; ..."."""
    noun = "error" if len(problems) == 1 else "errors"
    return f"{len(problems)} validation {noun} detected: {'; '.join(problems)}"


def _structure(shape: StructureShape, value: dict[str, Any], path: str) -> Iterator[str]:
    for name in shape.required_members:
        if value.get(name) is None:
            yield f"Value at '{_join(path, name)}' failed to satisfy constraint: Member must not be null"
    if getattr(shape, "is_tagged_union", False) and len([v for v in value.values() if v is not None]) != 1:
        yield f"Value at '{path}' failed to satisfy constraint: Member must have exactly one of its members set"
    for name, member in value.items():
        if name in shape.members and member is not None:
            yield from _value(shape.members[name], member, _join(path, name))


def _value(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if getattr(shape, "is_document_type", False):
        return
    if not _has_type(shape, value):
        yield f"Value '{value}' at '{path}' failed to satisfy constraint: Member must be of type {shape.type_name}"
        return
    yield from (
        f"Value '{_shown(value)}' at '{path}' failed to satisfy constraint: {constraint}"
        for constraint in _broken(shape, value)
    )
    if isinstance(shape, StructureShape):
        yield from _structure(shape, value, path)
    elif isinstance(shape, ListShape):
        for index, member in enumerate(value, start=1):
            yield from _value(shape.member, member, f"{path}.{index}.member")
    elif isinstance(shape, MapShape):
        for key, member in value.items():
            yield from _value(shape.key, key, f"{path}.{key}.key")
            yield from _value(shape.value, member, f"{path}.{key}.member")


def _has_type(shape: Shape, value: Any) -> bool:
    expected = _PYTHON_TYPES.get(shape.type_name)
    # Python's booleans are integers, the wire's are not
    return expected is None or (isinstance(value, expected) and (bool in expected or not isinstance(value, bool)))


def _broken(shape: Shape, value: Any) -> Iterator[str]:
    metadata = shape.metadata
    enum = metadata.get("enum")
    if enum and value not in enum:
        yield f"Member must satisfy enum value set: [{', '.join(enum)}]"
    pattern = metadata.get("pattern")
    if pattern and isinstance(value, str) and not _compiled(pattern).fullmatch(value):
        yield f"Member must satisfy regular expression pattern: {pattern}"
    low, high = metadata.get("min"), metadata.get("max")
    if shape.type_name in _NUMBERS:
        size, what = value, "value"
    elif shape.type_name in _SIZED and isinstance(value, Sized):
        size, what = len(value), "length"
    else:
        return
    if low is not None and size < low:
        yield f"Member must have {what} greater than or equal to {low}"
    if high is not None and size > high:
        yield f"Member must have {what} less than or equal to {high}"


@cache
def _compiled(pattern: str) -> Any:
    """Models are written for Java, whose syntax `regex` understands; what neither knows is not checked."""
    try:
        return regex.compile(pattern)
    except regex.error:
        return re.compile(".*", re.DOTALL)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 256 else f"{text[:256]}..."


def _join(path: str, name: str) -> str:
    camel = name[:1].lower() + name[1:]
    return f"{path}.{camel}" if path else camel
