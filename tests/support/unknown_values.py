"""Values of a template that only the deployment knows, in place of each value that it states."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

UNKNOWN: dict[str, Any] = {
    "a parameter": {"Ref": "Asked"},
    "a condition": {"Fn::If": ["Chosen", {"Ref": "Asked"}, {"Ref": "AWS::NoValue"}]},
    "an attribute of somebody's resource": {"Fn::GetAtt": ["Custom", "Value"]},
    "an import": {"Fn::ImportValue": "elsewhere:Value"},
    "a text in parts": {"Fn::Sub": "${Asked}${Asked}"},
    "a dynamic reference": "{{resolve:ssm:/a/b}}",
}
_TEXTS = ("a text in parts", "a dynamic reference")


def with_unknown(resources: dict[str, Any], kind: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the place of each value of the properties, and the resources with an unknown value of ``kind`` there."""
    for name, each in resources.items():
        for path in places(each.get("Properties", {})):
            changed = deepcopy(resources)
            changed["Custom"] = {"Type": "Custom::Thing", "Properties": {}}
            holder = changed[name]["Properties"]
            for step in path[:-1]:
                holder = holder[step]
            if kind not in _TEXTS or not isinstance(holder[path[-1]], (dict, list)):
                holder[path[-1]] = deepcopy(UNKNOWN[kind])
                yield (name, *path), changed


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value inside another, without those inside a function."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in items:
        if step not in ("Ref", "Fn::GetAtt", "Fn::Sub"):
            yield (*above, step)
            yield from places(each, (*above, step))
