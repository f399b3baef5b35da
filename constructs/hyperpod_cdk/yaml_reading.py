"""YAML of others, whose nesting and whose aliases have an end: templates, manifests, locks, account files."""

from __future__ import annotations

from typing import Any

import yaml

MAX_FLOW_DEPTH = 100
"""Brackets within brackets; PyYAML's time grows with the square of them, a template has some ten."""

MAX_MERGED = 10_000
"""Keys of one mapping; merge keys (``<<``) that merge others that merge others reach any number in ten lines."""

MAX_INNER = 100_000
"""Values of a text within a template, which has at most 1 MiB."""


class ShallowLoader(yaml.SafeLoader):
    """PyYAML's plain values; raises RecursionError where brackets nest more than ``MAX_FLOW_DEPTH`` deep.

    Raises yaml.MarkedYAMLError, too, where merge keys bring a mapping more than ``MAX_MERGED`` keys.
    """

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        had = len(node.value)
        super().flatten_mapping(node)
        if had < len(node.value) and len(node.value) > MAX_MERGED:
            problem = f"merge keys bring this mapping more than {MAX_MERGED:,} keys"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 - PyYAML's name
        if self.flow_level >= MAX_FLOW_DEPTH:
            raise _DeepError(f"brackets nest more than {MAX_FLOW_DEPTH} deep")
        super().fetch_flow_collection_start(TokenClass)


def values_with_aliases(document: object) -> int | None:
    """Count the values of data that YAML's aliases may share, each where it is meant, None where that has no end.

    Raises RecursionError where it is nested too deeply.
    """
    sizes: dict[int, int] = {}

    def size(value: object) -> int:
        if not isinstance(value, dict | list):
            return 1
        known = sizes.get(id(value))
        if known == 0:
            raise _EndlessError
        if known is None:
            sizes[id(value)] = 0
            known = 1 + sum(size(each) for each in (value.values() if isinstance(value, dict) else value))
            sizes[id(value)] = known
        return known

    try:
        return size(document)
    except _EndlessError:
        return None


def read_inner(text: str) -> Any:
    """Read YAML that is text in a template or an answer, with its author's keys.

    Raises yaml.YAMLError, also if its aliases expand to more than ``MAX_INNER`` values, and RecursionError.
    """
    document: Any = yaml.load(text, ShallowLoader)  # noqa: S506 - a SafeLoader
    total = values_with_aliases(document)
    if total is None or total > MAX_INNER:
        raise yaml.YAMLError("its aliases expand to too many values")
    return document


class _DeepError(RecursionError):
    """Brackets nest deeper than we read; Python's own error has no words that stay."""


class _EndlessError(Exception):
    """An alias is inside of its own anchor."""
