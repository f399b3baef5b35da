"""Sets single values in the text of a YAML file, and leaves the rest unchanged: comments, order, quotes."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

from hyperpod_cdk.config.source import DataPath, read_source, render_path

_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./:-]*[A-Za-z0-9])?|\d+\.\d+\.\d+")
"""Text that needs no quotes unless a version of YAML reads it as something else: names, ARNs, versions."""

_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

_UNSEEN: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that JSON writes unescaped, and that YAML reads as a new line or refuses."""

Value = str | int


class EditError(Exception):
    """A value cannot be set without writing the file anew; the text says where and why."""


def with_value(text: str, path: DataPath, value: Value) -> str:
    """Return the text of a file with ``value`` at ``path``; missing mappings on the way are added.

    Raises EditError if the place is in no mapping, or the edited file would not have the value there.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    edited = _edited(body, path, value)
    expected, got = read_source(body, "").data, read_source(edited, "").data
    if got != _set(expected, path, value):
        raise EditError(
            f"{render_path(path)} cannot be set automatically; write {render_path(path)}: {scalar(value)} by hand"
        )
    return mark + edited


def newline_of(text: str) -> str:
    """Return what ends the lines of a text."""
    return "\r\n" if "\r\n" in text else "\n"


class _Loader(yaml.SafeLoader):
    """Composes nodes of a text without aliases; an anchor may then be repeated, because nothing uses it."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.anchors.clear()
        return super().compose_node(parent, index)


def composed(text: str) -> yaml.Node | None:
    """Return the nodes of a text, with their positions. Raises EditError if PyYAML reads the text otherwise."""
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise EditError(f"the file cannot be edited: {' '.join(str(error).split())}; write it by hand") from None
    return node


def _edited(text: str, path: DataPath, value: Value) -> str:
    node = composed(text)
    for depth, step in enumerate(path):
        found = _child(node, step)
        if found is None:
            return _added(text, node, path, depth, value)
        node = found
    if not isinstance(node, yaml.ScalarNode):
        raise EditError(f"{render_path(path)} is not a single value; write it by hand")
    start, end = _span(node)
    written = scalar(value, style=str(node.style or ""))
    # a key without any value ends right after its colon
    return f"{text[:start]}{' ' * (start == end)}{written}{text[end:]}"


def _added(text: str, node: yaml.Node | None, path: DataPath, depth: int, value: Value) -> str:
    steps = [_key(str(step)) for step in path[depth:]]
    if not isinstance(node, yaml.MappingNode) or any(isinstance(step, int) for step in path[depth:]):
        raise EditError(
            f"{render_path(path[:depth])} is not a mapping; write {render_path(path)}: {scalar(value)} by hand"
        )
    if node.flow_style:
        inner = f"{steps[-1]}: {scalar(value)}"
        for step in reversed(steps[:-1]):
            inner = f"{step}: {{{inner}}}"
        # after the last value, even if a comma, a comment or a new line precedes the closing bracket
        end = _span(node.value[-1][1])[1] if node.value else _span(node)[1] - 1
        return f"{text[:end]}{', ' * bool(node.value)}{inner}{text[end:]}"
    newline = newline_of(text)
    key, last = node.value[-1]
    column = key.start_mark.column
    lines = [
        f"{' ' * (column + 2 * number)}{step}:{'' if number < len(steps) - 1 else f' {scalar(value)}'}"
        for number, step in enumerate(steps)
    ]
    # after the line on which the last value ends, so that a comment on that line stays there
    at = _end_of_line(text, _last_index(key, last))
    head = text[:at] if text[:at].endswith("\n") else text[:at] + newline
    return head + newline.join(lines) + newline + text[at:]


def _last_index(key: yaml.Node, node: yaml.Node) -> int:
    """Return the position where a value ends; a block ends where its last value ends."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        key, node = last if isinstance(last, tuple) else (last, last)
    start, end = _span(node)
    # an empty value is before its line's comment, and a literal block ends after its last line
    return max(start, end - 1) if start != end else _span(key)[1]


def _end_of_line(text: str, index: int) -> int:
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]  # the stubs of PyYAML do not type it
    if isinstance(node, yaml.MappingNode):
        return next((each for key, each in node.value if key.value == step), None)
    return None


def _span(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def scalar(value: Value, *, style: str = "") -> str:
    """Return a value in YAML, a text in quotes if it needs them or if ``style`` has them."""
    if isinstance(value, int):
        return str(value)
    quoted = json.dumps(value, ensure_ascii=False)
    if style == "'" and quoted == f'"{value}"' and not _UNSEEN.search(value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and _PLAIN.fullmatch(value) and read_source(f"key: {value}", "").data == {"key": value}:
        return value
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _key(name: str) -> str:
    return name if _KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _set(data: object, path: DataPath, value: Value) -> object:
    step, *rest = path
    if isinstance(step, int):
        items = list(data) if isinstance(data, list) else []
        return [_next(each, rest, value) if number == step else each for number, each in enumerate(items)]
    mapping = dict(data) if isinstance(data, dict) else {}
    return {**mapping, step: _next(mapping.get(step), rest, value)}


def _next(data: object, rest: list[str | int], value: Value) -> object:
    return _set(data, tuple(rest), value) if rest else value
