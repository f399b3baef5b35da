"""Writes manifests as YAML that is readable and that every Kubernetes client parses identically."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

# kubectl's parser reads 1e3 as a number and y as a boolean, PyYAML does not
_NUMBER_LIKE: Final = re.compile(
    r"[-+]?\.?[0-9][-+.0-9a-fA-FxXoO_:]*|[-+]?\.(inf|Inf|INF|nan|NaN|NAN)",
)
# line breaks for some YAML parsers but not for others
_BREAKS: Final = re.compile("[\r\x85\u2028\u2029]")
_WORD_LIKE: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ENDLESS: Final = 1_000_000


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, which are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style: str | None = None
    if _BREAKS.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif text.lower() in _WORD_LIKE or _NUMBER_LIKE.fullmatch(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Return YAML documents separated by ``---``; keys keep their order, and scripts are block scalars."""
    return "---\n".join(
        yaml.dump(
            dict(manifest),
            Dumper=_Dumper,
            sort_keys=False,
            default_flow_style=False,
            allow_unicode=True,
            width=_ENDLESS,
        )
        for manifest in manifests
    )
