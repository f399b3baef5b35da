"""Reads a document and knows the line of every value, which values were read, and which were not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

from hyperpod_cdk.catalog.closest import closest
from hyperpod_cdk.config import documents
from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.config.source import DataPath, Source, Wording, describe, read_source, render_path
from hyperpod_cdk.file_reading import reason_of
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.importing.model import Note, Weight

WORDING = Wording(
    noun="cluster",
    a_file="a file to import",
    example="ClusterName: ml-cluster",
    when_empty="name the file that you passed to 'aws sagemaker create-cluster --cli-input-json'",
    when_missing="name the file that you passed to 'aws sagemaker create-cluster --cli-input-json'",
)
_LIST_KEY = "[]"
"""The key for the items of a document that is a list."""

Value = TypeVar("Value", str, int, bool)
_NOUNS: Mapping[type, str] = {str: "text", int: "a whole number", bool: "true or false"}


@dataclass
class Log:
    """The messages about a source: ``errors`` refuse it, ``notes`` belong to the written file."""

    errors: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def refuse(self, place: Place, message: str) -> None:
        """Say why the source cannot be imported."""
        self.errors.append(
            Finding(
                severity=Severity.ERROR,
                message=message,
                file=place.file,
                line=place.line,
                path=place.path,
                rule="import",
            )
        )

    def note(self, weight: Weight, message: str, *, at: Place | None = None, path: str = "") -> None:
        """Add a note for readers of the file; ``at`` is the place in the source, ``path`` that in the file."""
        note = Note(weight=weight, source=str(at or ""), path=path, message=documents.tidy(message))
        # what twenty groups have in common is one note
        told = ((each.weight, each.path, each.message, "" if path else each.source) for each in self.notes)
        if (note.weight, note.path, note.message, "" if path else note.source) not in told:
            self.notes.append(note)

    def drop(self, weight: Weight, path: str) -> None:
        """Remove the notes on a part of the file that is left out after all."""
        self.notes = [each for each in self.notes if each.weight != weight or not each.path.startswith(path)]

    def raise_errors(self) -> None:
        """Raise DocumentError with everything that refuses."""
        if self.errors:
            raise DocumentError(documents.in_order(self.errors))


@dataclass(frozen=True)
class Place:
    """A place in a source."""

    file: str
    line: int | None
    """None for an answer of AWS, which has no lines."""
    path: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return " ".join(part for part in (where, self.path) if part)


@dataclass
class Node:
    """A mapping of a source. It records which keys are read; ``rest`` names the others."""

    source: Source
    value: Mapping[str, object]
    path: DataPath
    log: Log
    asked: set[str] = field(default_factory=set)
    label: str = ""
    """The prefix of its places: the name of the parameter that has it as text."""

    def line(self, *steps: str | int) -> int:
        """Return the line of a value; for a missing key, that of its mapping."""
        return self.source.line_of((*self.path, *steps))

    def place(self, *steps: str | int) -> Place:
        """Return the place of a value; for a missing key, that of its mapping."""
        path = (*self.path, *steps)
        shown = render_path(tuple(step for step in path if step != _LIST_KEY))
        line = self.source.line_of(path) if self.source.lines else None
        return Place(self.source.file, line, documents.tidy(self.label + shown))

    def has(self, key: str) -> bool:
        """Return whether a key has a value; null and empty text are none, as in a skeleton of the AWS CLI."""
        self.asked.add(key)
        return self.value.get(key) not in (None, "")

    def text(self, key: str) -> str | None:
        """Return a text, None where there is none."""
        return self._one(key, str)

    def number(self, key: str) -> int | None:
        """Return a whole number, None where there is none."""
        return self._one(key, int)

    def truth(self, key: str) -> bool | None:
        """Return true or false, None where there is none."""
        return self._one(key, bool)

    def texts(self, key: str) -> list[str]:
        """Return a list of texts, empty where there is none."""
        if not self.has(key):
            return []
        found = self.value[key]
        if isinstance(found, list) and all(isinstance(each, str) for each in found):
            return list(found)
        self.log.refuse(self.place(key), f"must be a list of texts, got {describe(found)}")
        return []

    def mapping(self, key: str) -> dict[str, str]:
        """Return a mapping of texts, empty where there is none."""
        section = self.section(key)
        if section is None:
            return {}
        return {name: text for name in section.value if (text := section.text_or_empty(name)) is not None}

    def text_or_empty(self, key: str) -> str | None:
        """Return a text that may be empty, None where it is none and was refused."""
        self.asked.add(key)
        found = self.value.get(key)
        return "" if found in (None, "") else self.text(key)

    def section(self, key: str) -> Node | None:
        """Return a mapping within, None where there is none."""
        if not self.has(key):
            return None
        found = self.value[key]
        if isinstance(found, dict):
            return Node(self.source, found, (*self.path, key), self.log, label=self.label)
        self.log.refuse(self.place(key), f"must be a mapping, got {describe(found)}")
        return None

    def rows(self, key: str) -> list[Node]:
        """Return a list of mappings within, empty where there is none."""
        if not self.has(key):
            return []
        found = self.value[key]
        if not isinstance(found, list):
            self.log.refuse(self.place(key), f"must be a list, got {describe(found)}")
            return []
        rows = []
        for index, each in enumerate(found):
            if isinstance(each, dict):
                rows.append(Node(self.source, each, (*self.path, key, index), self.log, label=self.label))
            else:
                self.log.refuse(self.place(key, index), f"must be a mapping, got {describe(each)}")
        return rows

    def word(self, key: str, words: Mapping[str, str | None]) -> str | None:
        """Return our word for AWS's: ``words`` is ours -> AWS's. None without a value; an unknown one gets a note."""
        text = self.text(key)
        ours = next((ours for ours, aws in words.items() if aws == text), None)
        if text is not None and ours is None:
            known = ", ".join(each for each in words.values() if each)
            self.log.note("lost", f"the file has no word for {text}, only for {known}", at=self.place(key))
        return ours

    def rest(self) -> None:
        """Note the keys that were not read."""
        for key in self.value:
            if key in self.asked or self.value[key] is None:
                continue
            near = closest(key, sorted(self.asked))
            hint = f"; did you mean {near}?" if near else ""
            self.log.note("lost", f"is unknown here and was not imported{hint}", at=self.place(key))

    def _one(self, key: str, kind: type[Value]) -> Value | None:
        if not self.has(key):
            return None
        found = self.value[key]
        # a bool is an int to Python
        if isinstance(found, kind) and (kind is bool or not isinstance(found, bool)):
            return found
        self.log.refuse(self.place(key), f"must be {_NOUNS[kind]}, got {describe(found)}")
        return None


def opened(text: str, file: str, log: Log) -> Node:
    """Read a text of JSON or YAML; a list stands under one key, whose items ``items`` gives.

    Raises DocumentError if it is neither, or has a key twice.
    """
    # JSON is YAML but for tabs between values: the reader of environment files knows the line of everything
    plain = text.replace("\t", " ")
    start = text.lstrip()[:1]
    wrapped = f'{{"{_LIST_KEY}": {plain}}}' if start == "[" else plain
    if start not in ("{", "["):
        return _node(read_source(text, file, WORDING), log)
    try:
        data = json.loads(wrapped, parse_constant=_no_number)
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        _refuse(file, f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]}", line=error.lineno)
    except UnicodeEncodeError:
        _refuse(file, "is not JSON: it has half of a surrogate pair")
    except (ValueError, RecursionError) as error:
        _refuse(file, f"is not JSON: {reason_of(error)}")
    source = read_source(wrapped, file, WORDING)
    # the JSON reader decides the values; the YAML reader gives the lines and finds duplicate keys
    source.findings = [each for each in source.findings if each.rule in ("no_duplicate_keys", "nesting_depth")]
    source.data = data
    return _node(source, log)


def items(node: Node) -> list[Node] | None:
    """Return the items of a document that is a list, None where it is a mapping."""
    return node.rows(_LIST_KEY) if _LIST_KEY in node.value else None


def read(path: Path) -> str:
    """Return the text of a file that is no longer than a page of values can be. Raises DocumentError."""
    return documents.text_of(path, WORDING)


def _node(source: Source, log: Log) -> Node:
    if source.findings or not isinstance(source.data, dict):
        raise DocumentError(documents.in_order(source.findings))
    return Node(source, source.data, (), log)


def _refuse(file: str, message: str, *, line: int | None = None) -> NoReturn:
    raise DocumentError(
        [Finding(severity=Severity.ERROR, message=message, file=file, line=line, rule="import")], file=file
    )


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
