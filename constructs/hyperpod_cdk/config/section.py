"""The base of every section of the environment file: a strict frozen model, and checks that read the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from hyperpod_cdk.catalog.rules import Bound, Pattern, brackets_problem


class Section(BaseModel):
    """A mapping of the environment file: no unknown key, no conversion between types, no change after reading."""

    # the environment's validator includes those of its sections: most sections never need their own
    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


def deprecated(section: BaseModel) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the place of each deprecated field that is set in a section or below it, with the field's sentence.

    A field is deprecated with pydantic's ``deprecated``: a sentence that says what to write instead and which version
    removes it, such as "write name; it ends with 2.0".
    """
    for name in sorted(section.model_fields_set & set(type(section).model_fields)):
        field_info = type(section).model_fields[name]
        key = field_info.alias or name
        if isinstance(field_info.deprecated, str):
            yield (key,), field_info.deprecated
        # not by its name, because pydantic then prints its own warning
        for place, inner in _sections(section.__dict__[name]):
            for below, said in deprecated(inner):
                yield (key, *place, *below), said


def _sections(value: Any) -> Iterator[tuple[tuple[str | int, ...], BaseModel]]:
    if isinstance(value, BaseModel):
        yield (), value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from (((key, *place), inner) for place, inner in _sections(each))
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(value):
            yield from (((index, *place), inner) for place, inner in _sections(each))


@dataclass(frozen=True, eq=False)
class Check:
    """A rule for one value, part of its type: one rule validates, has the message and adds to the JSON Schema.

    ``problem`` takes the value and its key and gives a sentence or None; ``name`` is the rule's stable name; ``schema``
    is merged into the value's JSON Schema.
    """

    problem: Callable[[Any, str], str | None]
    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **self.schema}

    def _validate(self, value: Any) -> Any:
        message = self.problem(value, "it")
        if message is not None:
            raise PydanticCustomError("check", "{problem}", {"problem": message, "check": self})
        return value


def within(bound: Bound) -> Check:
    """Check a whole number against a bound of the catalog."""
    schema = {"minimum": bound.minimum, "maximum": bound.maximum}
    return Check(
        lambda value, key: bound.problem(value, key=key),
        "bounds",
        {name: value for name, value in schema.items() if value is not None},
    )


def one_of(values: tuple[int, ...], problem: Callable[[int, str], str | None]) -> Check:
    """Check a whole number against a table of the catalog, which has its own message."""
    return Check(problem, "bounds", {"enum": list(values)})


def like(pattern: Pattern) -> Check:
    """Check text against a pattern of the catalog."""
    return Check(
        lambda value, key: pattern.problem(value, key=key),
        "pattern",
        {
            "pattern": f"^(?:{pattern.regex})$",
            "minLength": pattern.minimum,
            "maxLength": pattern.maximum,
            "patternErrorMessage": f"must be {pattern.describes}{pattern.in_files}",
            "examples": [pattern.example],
        },
    )


PAIRED_BRACKETS = Check(lambda value, key: brackets_problem(value, key=key), "pattern")
"""Checks text that is in the resource of a policy before a wildcard, which findings name."""


def counted(bound: Bound, what: str, *, schema_keys: tuple[str, str] = ("minItems", "maxItems")) -> Check:
    """Check how many ``what`` (a plural noun) a list or a mapping holds."""

    def problem(value: Sized, key: str) -> str | None:  # noqa: ARG001 - the fix is to add or remove, not to set the key
        return bound.count_problem(len(value), what=what)

    numbers = dict(zip(schema_keys, (bound.minimum, bound.maximum), strict=True))
    return Check(problem, "count", {name: value for name, value in numbers.items() if value})


def filled(what: str) -> Check:
    """Check that a list is not empty; ``what`` is one of its items."""

    def problem(value: Sized, key: str) -> str | None:  # noqa: ARG001 - the fix is to add one, not to set the key
        return None if len(value) else f"must hold at least one {what}, got none; add one"

    return Check(problem, "count", {"minItems": 1})


def entries(bound: Bound, what: str) -> Check:
    """Check how many ``what`` a mapping holds."""
    return counted(bound, what, schema_keys=("minProperties", "maxProperties"))
