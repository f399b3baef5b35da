"""Reads a record of AWS's answers, a JSON file next to the environment file: strictly, with the line of every value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hyperpod_cdk.config.section import Section
from hyperpod_cdk.config.source import MAX_BYTES, Source, describe, read_source, render_path
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.file_reading import NoFileError, TooLargeError, read_bytes, reason_of
from hyperpod_cdk.findings import Finding, Severity

Record = TypeVar("Record", bound=Section)
FieldsAt = Callable[[Sequence[str | int]], Sequence[str]]
"""Gives the allowed keys of the mapping that contains the last step of a place."""


class RecordError(Exception):
    """A record cannot be used; ``finding`` says why, with its file and line, and what to do, which is ``fix``.

    ``is_newer`` says that a later hyperpod-cdk wrote it: it may have fields that this one does not know.
    """

    def __init__(self, problem: Finding, *, fix: str = "", is_newer: bool = False) -> None:
        self.finding: Finding = replace(problem, message=f"{problem.message}; {fix}") if fix else problem
        super().__init__(self.finding.render())
        self.problem = problem
        """The finding without ``fix``, for a command that is just doing that."""
        self.is_newer = is_newer


def read_text(path: Path, *, file: str, fix: str) -> str:
    """Read the text of a record; ``file`` is how findings show it, ``fix`` as in RecordError. Raises RecordError."""
    try:
        raw = read_bytes(path, most=MAX_BYTES)
    except (IsADirectoryError, NoFileError):
        refuse(file, "is not a file", fix=fix)
    except TooLargeError as error:
        refuse(file, f"must have at most {MAX_BYTES} bytes, got {error.size}", fix=fix)
    except OSError as error:
        refuse(file, f"cannot be read: {error.strerror or error}; check its permissions")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        refuse(file, f"is not UTF-8 text: byte 0x{raw[error.start]:02x}", fix=fix, line=line)


def parse(
    text: str, model: type[Record], *, version: int, fields_at: FieldsAt, file: str, fix: str
) -> tuple[Record, Source]:
    """Read a record's text as ``model``, which has a ``schema_version``, and give it with the lines of everything.

    ``fix`` as in RecordError, which is raised if the text is not JSON, repeats a key, or has another version or another
    form.
    """
    try:
        data = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        refuse(file, f"is not JSON: {_lower(error.msg)}", fix=fix, line=error.lineno)
    except (ValueError, RecursionError) as error:
        refuse(file, f"is not JSON: {reason_of(error)}", fix=fix)
    # JSON is YAML except for tabs between values: the reader of environment files records the line of each value
    source = read_source(text.replace("\t", " "), file)
    twice = next((each for each in source.findings if each.rule == "no_duplicate_keys"), None)
    if twice is not None:
        refuse(file, twice.message, fix=fix, path=twice.path, line=twice.line)
    got = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(got, int) and not isinstance(got, bool) and got != version:
        refuse(
            file,
            f"must be {version}, which this hyperpod-cdk reads, got {got}",
            fix="update hyperpod-cdk" if got > version else fix,
            path="schema_version",
            line=source.line_of(("schema_version",)),
            is_newer=got > version,
        )
    try:
        return model.model_validate(data), source
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = tuple(first["loc"])
        refuse(
            file,
            _form_problem(first, path, fields_at),
            fix=fix,
            path=render_path(path),
            line=source.line_of(path) if source.lines else None,
        )


def refuse(
    file: str, problem: str, *, fix: str = "", path: str = "", line: int | None = None, is_newer: bool = False
) -> NoReturn:
    """Raise RecordError with one finding; ``fix`` as in RecordError."""
    finding = Finding(
        severity=Severity.ERROR, message=problem, path=path, file=file, line=line, rule="record_is_readable"
    )
    raise RecordError(finding, fix=fix, is_newer=is_newer)


def _form_problem(error: ErrorDetails, path: Sequence[str | int], fields_at: FieldsAt) -> str:
    got = describe(error["input"])
    if error["type"] == "missing":
        return "is missing"
    if error["type"] == "extra_forbidden":
        near = closest(str(path[-1]), fields_at(path))
        return f"is not a known key here{f', {near} is' if near else ''}"
    kinds = {
        "int_type": "a whole number",
        "float_type": "a number",
        "bool_type": "true or false",
        "finite_number": "a finite number",
        "greater_than_equal": "0 or more",
        "string_type": "text",
        "tuple_type": "a list",
        "date_type": "a day such as 2026-11-21",
        "datetime_type": "a moment such as 2026-12-01T11:30:00Z",
    }
    return f"must be {kinds.get(error['type'], 'a mapping')}, got {got}"


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
