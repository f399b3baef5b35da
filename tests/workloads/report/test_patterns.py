"""No pattern that reads a log repeats without a bound: the time that a line takes grows as the line does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined] # the parser of patterns has no public name
from types import ModuleType
from typing import Any

import pytest

from hyperpod_cdk.workloads.report import documents, network, parsing, problems, tables


def _patterns(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, problems.Known):
        yield from _patterns(value.patterns)
    elif isinstance(value, dict):
        yield from (each for part in value.values() for each in _patterns(part))
    elif isinstance(value, tuple | list):
        yield from (each for part in value for each in _patterns(part))


def _unbounded(parsed: Any) -> Iterator[Any]:
    """Yield the repeats without a bound but for possessive ones, which give nothing back."""
    for operation, argument in parsed:
        if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) and argument[1] is _constants.MAXREPEAT:
            yield argument
        parts = argument if isinstance(argument, tuple | list) else [argument]
        for part in parts:
            for each in part if isinstance(part, list) else [part]:
                if isinstance(each, _parser.SubPattern):
                    yield from _unbounded(each)


@pytest.mark.parametrize("module", [documents, network, parsing, problems, tables], ids=lambda each: each.__name__)
def test_no_pattern_repeats_without_a_bound(module: ModuleType) -> None:
    found = {pattern.pattern for value in vars(module).values() for pattern in _patterns(value)}
    assert [each for each in found if any(_unbounded(_parser.parse(each)))] == []


def test_a_pattern_without_a_bound_would_be_found() -> None:
    assert [
        any(_unbounded(_parser.parse(each))) for each in (r"a*", r"(?:a|b{2,})c", r"(a{1,3}(?:x*))", r"a*+b{0,9}")
    ] == [
        True,
        True,
        True,
        False,
    ]
