"""The environment file that an import writes, and the report for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from hyperpod_cdk.importing.model import WEIGHTS, Imported, Note, Weight
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.review.pages.wording import visible

_WIDTH: Final = 116
_UNFOLDED: Final = 10_000
_TITLES: Final[Mapping[Weight, str]] = {
    "missing": "What is still missing, because the source does not state it:",
    "skipped": "What AWS did not answer, so something may be missing here:",
}
"""The headings at the top of the file, by the severity of the notes."""


class _Dumper(yaml.SafeDumper):
    """Without anchors, which the loader refuses; short lists on one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the shape of a dumper
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # every YAML reader takes a value that begins with a letter as text, except a few words, which the dumper quotes
    style = None if value[:1].isalpha() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _list(dumper: yaml.SafeDumper, value: Sequence[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(each, str | int) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=is_short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def file_text(data: Mapping[str, Any], *, source: str, kind: str, schema: str | None, notes: Sequence[Note]) -> str:
    """Return the text of an environment file, with comments at the top for what is missing and what was skipped.

    ``schema`` is the JSON Schema as seen from the file, None where it has none.
    """
    head = [f"# yaml-language-server: $schema={schema}", ""] if schema else []
    head += list(_comment(f"From {source} ({_kind_in_words(kind)}), by 'hyperpod-cdk import'."))
    for weight, title in _TITLES.items():
        rows = [each for each in notes if each.weight == weight]
        if rows:
            head += list(_comment(title))
        for note in rows:
            head += list(_comment(f"{note.path}: {note.message}" if note.path else note.message, hanging="  "))
    body = yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, width=_UNFOLDED, allow_unicode=True)
    sections = []
    for line in body.splitlines():
        if line in ("network:", "eks:", "hyperpod:", "encryption:", "storage:", "operators:", "task_governance:"):
            sections.append("")
        sections.append(line)
    return "\n".join([*head, "", *sections]) + "\n"


def _comment(text: str, *, hanging: str = "") -> Iterator[str]:
    lines = textwrap.wrap(visible(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
    for index, line in enumerate(lines):
        yield f"# {hanging if index else ''}{line}"


def _kind_in_words(kind: str) -> str:
    return "read from AWS" if kind == "living" else kind


def report_lines(found: Imported) -> Iterator[tuple[str, str]]:
    """Yield the report as lines, each with the word that it begins with or nothing."""
    groups = count(found.instance_groups, "instance group")
    yield "", f"wrote {found.file} from {found.source} ({_kind_in_words(found.kind)}): {groups}"
    for weight in WEIGHTS:
        for note in found.notes:
            if note.weight == weight:
                yield weight, visible(note.render())


def report_json(found: Imported) -> str:
    """Return the report as JSON: keys in the model's order, a newline at its end."""
    return found.model_dump_json(indent=2).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"
