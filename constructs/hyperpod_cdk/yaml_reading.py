"""YAML of others, whose nesting and whose aliases have an end: templates, manifests, locks, account files."""

from __future__ import annotations

from typing import Any

import yaml

MAX_FLOW_DEPTH = 100
"""Brackets within brackets; PyYAML's time grows with the square of them, a template has some ten."""


class ShallowLoader(yaml.SafeLoader):
    """PyYAML's plain values; raises RecursionError where brackets nest more than ``MAX_FLOW_DEPTH`` deep."""

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


class _DeepError(RecursionError):
    """Brackets nest deeper than we read; Python's own error has no words that stay."""


class _EndlessError(Exception):
    """An alias stands inside of what it stands for."""
