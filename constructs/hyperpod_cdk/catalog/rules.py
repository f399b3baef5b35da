"""Bounds and patterns with their numbers, their source and the sentence of the error."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hyperpod_cdk.catalog.sentences import Advice, Correction, OnlyInFiles, Sentence, Setting, as_text

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A range of whole numbers, both ends allowed; None at an end means that AWS states no limit there.

    ``unsure`` says why the range is not confirmed (then a caller warns instead of refusing), ``warn_above`` is
    the value beyond which one AWS source disagrees with another.
    """

    minimum: int | None = None
    maximum: int | None = None
    warn_above: int | None = None
    source: str = ""
    unsure: str = ""

    def problem(self, value: int, *, key: str) -> str | None:
        """Say what is wrong with ``value`` and what to set ``key`` to, or return None."""
        if self.minimum is not None and value < self.minimum:
            return Sentence(f"must be at least {self.minimum}, got {value}; ", Setting(key, f"{self.minimum} or more"))
        if self.maximum is not None and value > self.maximum:
            return Sentence(f"must be at most {self.maximum}, got {value}; ", Setting(key, f"{self.maximum} or less"))
        return None

    def count_problem(self, count: int, *, what: str) -> str | None:
        """Like ``problem`` for how many ``what`` (a plural noun) a list or map holds."""
        if self.minimum == 1 and count == 0:
            return f"must hold {what}, got none; add one"
        if self.minimum is not None and count < self.minimum:
            return f"must hold at least {self.minimum} {what}, got {count}; add {self.minimum - count}"
        if self.maximum is not None and count > self.maximum:
            return f"must hold at most {self.maximum} {what}, got {count}; remove {count - self.maximum}"
        return None

    def count_warning(self, count: int, *, what: str) -> str | None:
        """Say why an allowed number of ``what`` is doubtful, or return None."""
        if self.warn_above is None or count <= self.warn_above or self.count_problem(count, what=what):
            return None
        return (
            f"should hold at most {self.warn_above} {what} ({self.unsure}), got {count}; "
            f"remove {count - self.warn_above} to be safe"
        )


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """What a text must look like: ``regex`` matches all of it, ``maximum`` is its length in characters.

    ``describes`` says the same in words; ``example`` is a text that passes, and is only shown as an example: it names
    things that do not exist. ``in_files`` adds how a file writes it. ``categories`` are the first letters of the
    Unicode categories that its characters may have, if AWS states those, empty for all. ``refers`` says that the text
    names an existing resource (a bucket, a role), so the only correction allowed is to remove what surrounds it.
    """

    regex: str
    maximum: int
    describes: str
    example: str
    refers: bool = False
    minimum: int = 1
    categories: str = ""
    in_files: str = ""
    source: str = ""
    unsure: str = ""

    def matches(self, text: str) -> bool:
        """Return whether ``text`` is allowed."""
        is_of_them = not self.categories or all(unicodedata.category(each)[0] in self.categories for each in text)
        return self.minimum <= len(text) <= self.maximum and is_of_them and re.fullmatch(self.regex, text) is not None

    def problem(self, text: str, *, key: str) -> str | None:
        """Say what is wrong with ``text`` and what to set ``key`` to, or return None."""
        if self.matches(text):
            return None
        said = ("must be ", self.describes, OnlyInFiles(self.in_files), f', got "{text}"; ')
        return Sentence(*said, *self._fix(text, key))

    def _fix(self, text: str, key: str) -> Iterator[str | Advice]:
        """Correct ``text`` if simple changes are enough; else describe a correct one."""
        bare = _SCHEME.sub("", text.strip(_AROUND)).strip("/")
        digits = bare.translate(_BETWEEN_DIGITS)
        for candidate in (bare, f"{bare}/", f"/{bare}", digits if digits.isdecimal() else ""):
            if candidate.strip("/") and self.matches(candidate):
                yield Setting(key, as_text(candidate))
                return
        head, _, rest = bare.partition("/")
        if text.startswith("s3://") and self.refers and self.matches(head):
            yield Setting(key, as_text(head))
            yield f" ({rest} after it is a prefix, which is written separately)"
            return
        # hyphens would make it another address or resource, not the right one
        if not self.refers and ":" not in self.example:
            hyphenated = re.sub(r"[^0-9A-Za-z]+", "-", text)[: self.maximum].strip("-")
            for candidate in (hyphenated, hyphenated.lower()):
                if self.matches(candidate):
                    yield Setting(key, as_text(candidate))
                    return
        yield Correction(key, self.example)


_AROUND = " \t\r\n\u00a0\u200b\ufeff\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"
"""What surrounds a value that was copied from a page: blanks and quotation marks, also those of word processors."""

_BETWEEN_DIGITS = {ord(each): None for each in " -_\u00a0"}
"""How people group digits; the console shows an account as 1111-2222-3333."""

_SCHEME = re.compile(r"^[A-Za-z0-9+]+://")


def bounds(rows: dict[str, dict[str, Any]]) -> dict[str, Bound]:
    """Turn the ``bounds`` of a data file into objects."""
    return {name: Bound(**row) for name, row in rows.items()}


def patterns(rows: dict[str, dict[str, Any]]) -> dict[str, Pattern]:
    """Turn the ``patterns`` of a data file into objects, with their lengths filled into their descriptions."""
    found = {name: Pattern(**row) for name, row in rows.items()}
    return {
        name: replace(row, describes=row.describes.format(minimum=row.minimum, maximum=row.maximum))
        for name, row in found.items()
    }


def repeated(values: Iterable[Value]) -> Iterator[tuple[int, int, Value]]:
    """Yield the index of every repeated value, the index of its first occurrence, and the value.

    A value without a hash equals no other: with such a value the draft of a wrong file replaces what it does not know.
    """
    first: dict[Value, int] = {}
    for index, value in enumerate(values):
        try:
            before = first.setdefault(value, index)
        except TypeError:
            continue
        if before != index:
            yield index, before, value


def again_problem(value: object, first: int, *, listed: str = "") -> str:
    """Say that ``value`` is in a list for the second time; ``listed`` names the list if a reader needs it."""
    return f"must be named once, got {value} again after {listed}[{first}]; remove one of the two"


def repeated_problem(values: Sequence[Hashable], *, key: str) -> str | None:
    """Say which of ``values`` (``key`` is their name) is repeated, or return None."""
    twice = next(repeated(values), None)
    return None if twice is None else f"{key}[{twice[0]}]: {again_problem(twice[2], twice[1])}"


def same_name_problem(name: str, other: str) -> str:
    """Say that something has the same ``name`` as the item at ``other``."""
    return f'must be unique, got "{name}" as in {other}; rename one of the two'


def same_names_problem(names: Sequence[str], *, listed: str) -> str | None:
    """Say which of ``listed``, whose ``names`` these are, has the name of another, or return None."""
    twice = next(repeated(names), None)
    if twice is None:
        return None
    return f"{listed}[{twice[0]}].name: {same_name_problem(twice[2], f'{listed}[{twice[1]}]')}"


SLUG_REGEX = r"[a-z](-?[a-z0-9])*"
"""Lower-case letters, digits and single hyphens between them, a letter first."""


def slug(text: str, *, room: int | None = None) -> str:
    """Return ``text`` in lower case, with one hyphen for all characters between letters and digits.

    ``room``: most characters. Default: no limit.
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:room].strip("-")


def listing(values: Iterable[object], *, last: str = "or") -> str:
    """Write values as a choice: ``a, b or c``; ``none`` if a wrong file leaves nothing to choose from."""
    return joined([str(value) for value in values] or ["none"], last=last)


def joined(parts: Iterable[str], *, last: str = "and", most: int | None = None, more: str = "more") -> str:
    """Return ``a, b and c``, empty for no parts; of more than ``most`` only the first and how many ``more`` there
    are."""
    named = [*parts]
    if most is not None and len(named) > most:
        named = [*named[: most - 1], f"{len(named) - most + 1} {more}"]
    *begin, end = named or [""]
    return f"{', '.join(begin)} {last} {end}" if begin else end


_TEMPLATE_MARKS = ("${", "{{resolve:")
_BRACKETS = {")": "(", "]": "[", "}": "{"}


def template_mark_problem(text: str, *, key: str) -> str | None:
    """Say that a template would read ``text`` as a reference, or return None.

    CloudFormation replaces dynamic references everywhere; ``${`` begins a parameter for its linters, and a
    token of CDK.
    """
    mark = next((mark for mark in _TEMPLATE_MARKS if mark in text), None)
    if mark is None:
        return None
    return f'must not contain {mark}, which begins a reference in CloudFormation templates, got "{text}"; change {key}'


def brackets_problem(text: str, *, key: str) -> str | None:
    """Say that the brackets of ``text`` are not in pairs, or return None.

    Names of findings contain it in brackets, and CDK refuses names whose brackets do not match.
    """
    opened: list[str] = []
    for mark in text:
        if mark in _BRACKETS.values():
            opened.append(mark)
        elif mark in _BRACKETS and (not opened or opened.pop() != _BRACKETS[mark]):
            break
    else:
        if not opened:
            return None
    return f'must have matching brackets, which CDK requires in names that policies use, got "{text}"; change {key}'
