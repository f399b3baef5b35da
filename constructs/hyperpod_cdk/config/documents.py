"""Reads a YAML file as a model, or reports all its errors at once; shared by every kind of file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from hyperpod_cdk.catalog.sentences import Sentence
from hyperpod_cdk.config import problems as value_problems
from hyperpod_cdk.config.draft import draft
from hyperpod_cdk.config.source import MAX_BYTES, DataPath, Source, Wording, read_source, render_path
from hyperpod_cdk.file_reading import NoFileError, TooLargeError, read_bytes, resolved
from hyperpod_cdk.findings import Finding, Severity, by_place

Model = TypeVar("Model", bound=BaseModel)

_LONGEST_MESSAGE = 1000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\xa0\xad\u061c\u2000-\u200f\u2028-\u202f\u205f-\u2069\u3000\ufeff]")
"""Control characters, characters that change the direction in which text is shown, and those that look like a blank or
like nothing."""


class DocumentError(Exception):
    """A file is refused; ``findings`` are all its errors, sorted by place, and its warnings.

    ``file`` is the file as findings show it; a finding may be about another file that goes with it.
    """

    def __init__(self, findings: Sequence[Finding], *, file: str = "") -> None:
        super().__init__("\n".join(finding.render() for finding in findings))
        self.findings: tuple[Finding, ...] = tuple(findings)
        self.file: str = file or (self.findings[0].file if self.findings else "")


@dataclass(frozen=True)
class Said:
    """What a check says about a place of a document, which has no line yet."""

    severity: Severity
    path: DataPath
    message: str
    rule: str

    def found_in(self, source: Source) -> Finding:
        """Return the finding with the place's line in ``source``."""
        return Finding(
            severity=self.severity,
            message=self.message,
            path=render_path(self.path),
            file=source.file,
            line=source.line_of(self.path),
            rule=self.rule,
        )


def open_source(path: Path, wording: Wording, *, text: str | None = None) -> Source:
    """Read a file as plain data with lines; ``text`` is read in place of its content.

    Raises DocumentError where it cannot be read or holds no mapping.
    """
    file = shown(path)
    source = read_source(text_of(path, wording) if text is None else _sized(text, file, wording), file, wording)
    if not isinstance(source.data, dict):
        raise DocumentError(in_order(source.findings))
    return source


def validated(
    model: type[Model], source: Source, *, likely: Mapping[DataPath, object] | None = None
) -> tuple[Model, list[Said]]:
    """Return ``source.data``, a mapping, as ``model``, and what is wrong with single values.

    Where something is, the model is a draft: rules over several values run on it and leave out what is not certain.
    ``likely`` maps the path of a wrong value to what the rest of the file shows that it must be.
    """
    try:
        return model.model_validate(source.data), []
    except ValidationError as error:
        details = error.errors(include_url=False)
        found = value_problems.translate(model, source, details)
        built = draft(model, source.data, value_problems.faults(details), likely or {})
        return built, [Said(Severity.ERROR, each.path, each.message, each.rule) for each in found]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Put each finding on one line, remove duplicates at one place, and sort by place."""
    tidied = [replace(each, message=tidy(each.message), path=tidy(each.path)) for each in findings]
    first: dict[tuple[str, str], Finding] = {}
    for finding in tidied:
        first.setdefault((finding.path, finding.message), finding)
    return by_place(first.values())


def shown(path: Path) -> str:
    """Return the path as users know it: from the folder they are in."""
    try:
        near = resolved(path).relative_to(resolved(Path.cwd()))
    except (OSError, RuntimeError, ValueError):
        # RuntimeError: links that point to each other
        near = path
    return tidy(str(near))


def tidy(text: str) -> str:
    """Keep a finding on one line, even if the value that it shows has several."""
    line = _CONTROL.sub(_escaped, text)
    if len(line) <= _LONGEST_MESSAGE:
        return text.with_text(lambda part: _CONTROL.sub(_escaped, part)) if isinstance(text, Sentence) else line
    half = _LONGEST_MESSAGE // 2
    return f"{line[:half]} ... {line[-half:]}"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"


def text_of(path: Path, wording: Wording) -> str:
    """Return the text of a file. Raises DocumentError where it cannot be read, is too large or no UTF-8."""
    file = shown(path)
    try:
        raw = read_bytes(path, most=MAX_BYTES)
    except IsADirectoryError:
        raise _refused(file, "is a folder; name the file itself", "readable") from None
    except NoFileError:
        raise _refused(file, "is not a regular file; name a file", "readable") from None
    except TooLargeError as error:
        raise _too_large(file, error.size, wording) from None
    except FileNotFoundError:
        raise _refused(file, f"does not exist; {wording.when_missing}", "readable") from None
    except OSError as error:
        raise _refused(
            file, f"cannot be read: {error.strerror or error}; check its name and its permissions", "readable"
        ) from None
    return decoded(raw, file)


def decoded(raw: bytes, file: str) -> str:
    """Return a file's bytes as text, without a byte order mark; DocumentError has the first line that is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _refused(
            file, f"is not UTF-8 text: byte 0x{raw[error.start]:02x}; save it as UTF-8", "encoding", line=line
        ) from None


def _sized(text: str, file: str, wording: Wording) -> str:
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise _too_large(file, size, wording)
    return text.removeprefix("\ufeff")


def _too_large(file: str, size: int, wording: Wording) -> DocumentError:
    return _refused(
        file,
        f"must have at most {MAX_BYTES} bytes, got {size}; {wording.a_file} is much smaller: name the right file",
        "file_size",
    )


def _refused(file: str, message: str, rule: str, *, line: int | None = None) -> DocumentError:
    return DocumentError([Finding(severity=Severity.ERROR, message=message, file=file, line=line, rule=rule)])
