"""Expands ``Fn::ForEach`` as CloudFormation's transform AWS::LanguageExtensions does, if its list is literal.

Source: CloudFormation template reference, "Fn::ForEach": the identifier is in keys and values as ``${Identifier}``, as
``&{Identifier}`` without characters that are no letters or digits, and as ``Ref``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

LOOP: Final = "Fn::ForEach::"
UNREAD_LOOP: Final = "Fn::ForEach"
"""The type of the resources of a loop whose list only the deployment shows; it counts as foreign code."""

_PARTS: Final = 3
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]")


class TooManyError(Exception):
    """The loops create more than any template may contain; the text names the loop."""


def expanded(template: Mapping[str, Any], *, most: int) -> dict[str, Any]:
    """Return a template with its loops expanded; ``most`` is how many values they may create. Raises TooManyError.

    A loop of resources over a list that is not literal is one resource of the type UNREAD_LOOP.
    """
    if not any(True for _ in _loops(template)):
        return dict(template)
    found = _Expansion(most).of(template, {})
    resources = found.get("Resources")
    if isinstance(resources, dict):
        found["Resources"] = {
            name: {"Type": UNREAD_LOOP, "Properties": {"Loop": body, **_conditions(body)}}
            if name.startswith(LOOP)
            else body
            for name, body in resources.items()
        }
    return dict(found)


def _conditions(loop: Any) -> dict[str, Any]:
    """Return the conditions of the resources in a loop as values, so that they are resolved as those are."""
    names: set[str] = set()
    pending = [loop]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if isinstance(name := item.get("Condition"), str):
                names.add(name)
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return {"Conditions": {name: {"Fn::If": [name, True, False]} for name in sorted(names)}} if names else {}


def _loops(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield from (key for key in item if isinstance(key, str) and key.startswith(LOOP))
            pending += item.values()
        elif isinstance(item, list):
            pending += item


class _Expansion:
    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0

    def of(self, value: Any, names: Mapping[str, str]) -> Any:
        """Return a value with the loops in it expanded, and the identifiers of those around it filled in."""
        if isinstance(value, str):
            return _filled(value, names)
        if isinstance(value, list):
            return [self.of(each, names) for each in value]
        if not isinstance(value, dict):
            return value
        if _is_name(value, names):
            return names[value["Ref"]]
        found: dict[str, Any] = {}
        for key, item in value.items():
            self.made += 1
            if self.made > self.most:
                raise TooManyError(f"its loops create more than {self.most:,} values")
            if isinstance(key, str) and key.startswith(LOOP) and (loop := _read(item, names)) is not None:
                identifier, values, body = loop
                for each in values:
                    found |= self.of(body, {**names, identifier: each})
            else:
                found[_filled(key, names) if isinstance(key, str) else key] = self.of(item, names)
        return found


def _read(item: Any, names: Mapping[str, str]) -> tuple[str, list[str], dict[str, Any]] | None:
    """Return a loop's identifier, values and body, None if it is none or its list is not literal."""
    if not isinstance(item, list) or len(item) != _PARTS:
        return None
    identifier, values, body = item
    if not isinstance(identifier, str) or not isinstance(values, list) or not isinstance(body, dict):
        return None
    if any(isinstance(each, dict | list) and not _is_name(each, names) for each in values):
        return None
    return identifier, [names[each["Ref"]] if isinstance(each, dict) else str(each) for each in values], body


def _is_name(value: Any, names: Mapping[str, str]) -> bool:
    # the argument of Ref may wrongly be a list, in which no name can be looked up
    return isinstance(value, dict) and set(value) == {"Ref"} and isinstance(value["Ref"], str) and value["Ref"] in names


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"${{{name}}}", value).replace(f"&{{{name}}}", _NO_WORD.sub("", value))
    return text
