"""Writes a template as YAML for reviews: with short forms, nothing omitted, nothing reordered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.config import judged_by
from hyperpod_cdk.templates.assembly import Assembly

_WIDTH = 120
_SHORT = {
    "Ref": "!Ref",
    "Condition": "!Condition",
    **{
        f"Fn::{name}": f"!{name}"
        for name in (
            "And", "Base64", "Cidr", "Equals", "FindInMap", "GetAtt", "GetAZs", "If", "ImportValue",
            "Join", "Not", "Or", "Select", "Split", "Sub",
        )
    },
}  # fmt: skip
_BASE = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def template_yaml(template: Mapping[str, Any]) -> str:
    """Return a template as YAML that ``read_template`` reads back to the same data."""
    text: str = yaml.dump(dict(template), Dumper=_Dumper, width=_WIDTH, allow_unicode=True)
    return text


def environment_yaml(assembly: Assembly) -> dict[str, str]:
    """Return each stack's template as the text of a file, by the file's name; without references to other files."""
    return {f"{stack.name}.yaml": template_yaml(judged_by.without(stack.template)) for stack in assembly.stacks}


def differing_files(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Return the names below ``folder`` that are missing, differ from ``texts`` or are no longer in it."""
    present = {path.name: path for path in folder.iterdir()} if folder.is_dir() else {}
    stale = [name for name in present if name not in texts]
    return sorted(
        stale
        + [
            name
            for name, text in texts.items()
            if name not in present or present[name].read_text(encoding="utf-8") != text
        ]
    )


def write_files(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Make ``folder`` contain exactly ``texts`` and return the names that changed; equal files stay untouched."""
    changed = differing_files(folder, texts)
    folder.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in texts:
            (folder / name).write_text(texts[name], encoding="utf-8", newline="\n")
        else:
            (folder / name).unlink()
    return changed


class _Dumper(_BASE):  # type: ignore[misc,valid-type]
    """Dumps without anchors, which CloudFormation does not read, and with texts of several lines as blocks."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML asks about each value
        return True


def _mapping(dumper: Any, data: dict[str, Any]) -> yaml.Node:
    if len(data) == 1:
        ((key, argument),) = data.items()
        node = _short_form(dumper, key, argument)
        if node is not None:
            return node
    found: yaml.Node = dumper.represent_mapping("tag:yaml.org,2002:map", data.items())
    return found


def _short_form(dumper: Any, key: str, argument: Any) -> yaml.Node | None:
    tag = _SHORT.get(key)
    if tag is None or (key == "Condition" and not isinstance(argument, str)):
        return None
    if key == "Fn::GetAtt":
        dotted = isinstance(argument, list) and len(argument) == 2 and all(_is_plain(each) for each in argument)
        if not dotted or "." in argument[0]:
            return None
        argument = ".".join(argument)
    if isinstance(argument, str):
        style = None if _is_plain(argument) else "|" if "\n" in argument else "'"
        scalar: yaml.Node = dumper.represent_scalar(tag, argument, style=style)
        return scalar
    if isinstance(argument, list):
        flow = all(isinstance(each, (str, int)) for each in argument)
        sequence: yaml.Node = dumper.represent_sequence(tag, argument, flow_style=flow)
        return sequence
    # a short form cannot be directly inside a short form, so the outer one is written out
    return None


def _is_plain(text: object) -> bool:
    return (
        isinstance(text, str)
        and re.fullmatch(r"[A-Za-z0-9_:.][A-Za-z0-9_:.\-/]*[A-Za-z0-9_]|[A-Za-z]", text) is not None
    )


def _string(dumper: Any, data: str) -> yaml.Node:
    style = "|" if "\n" in data else None
    if re.fullmatch(r"0[0-9]+", data):
        # an account ID that is text for PyYAML and a number for others
        style = "'"
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)
    return node


_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(str, _string)
