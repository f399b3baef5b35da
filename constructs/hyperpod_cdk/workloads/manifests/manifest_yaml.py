"""Manifests as YAML that people read and that every Kubernetes client reads alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

# kubectl's parser takes 1e3 for a number and y for a truth value, PyYAML neither
_NUMBER_LIKE: Final = re.compile(
    r"[-+]?\.?[0-9][-+.0-9a-fA-FxXoO_:]*|[-+]?\.(inf|Inf|INF|nan|NaN|NAN)",
)
# breaks of lines for some readers of YAML and not for others
_BREAKS: Final = re.compile("[\r\x85\u2028\u2029]")
_WORD_LIKE: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ENDLESS: Final = 1_000_000


class _Dumper(yaml.SafeDumper):
    """Without aliases, which kubectl understands and people do not."""

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
    """Give YAML documents, one after the other with ``---`` between; keys stay in their order, scripts are blocks."""
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
