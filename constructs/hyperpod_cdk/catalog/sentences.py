"""Sentences that mark the words that name a key of a file, so that a command can show its option instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True)
class Setting:
    """What to set a key to: ``set count: 2``; ``verb`` is the verb, such as ``add`` for a missing key.

    ``python`` is the value as code for callers of constructs, if it is an object of a class there. ``or_in_files`` are
    the words before it, such as ``, or ``, if it is a second way that callers of constructs do not have: they read
    neither.
    """

    key: str
    value: object
    verb: str = "set"
    python: str = ""
    or_in_files: str = ""

    def __str__(self) -> str:
        return f"{self.or_in_files}{self.verb} {self.key}: {self.value}"


@dataclass(frozen=True)
class Correction:
    """What to correct, and what a correct value looks like if no other one can be proposed."""

    key: str
    example: str = ""

    def __str__(self) -> str:
        shown = f", which must look like {self.example}" if self.example else ""
        return f"correct {self.key}{shown}"


@dataclass(frozen=True)
class Choosing:
    """A key to set to what the following words describe: ``set vpc_id to`` the one that is shown.

    ``verb`` says how, such as ``lower`` for a count that is too high.
    """

    key: str
    verb: str = "set"

    def __str__(self) -> str:
        return f"{self.verb} {self.key} to"


@dataclass(frozen=True)
class Removal:
    """A key to leave out."""

    key: str

    def __str__(self) -> str:
        return f"remove {self.key}"


@dataclass(frozen=True)
class Companion:
    """A key that belongs to the preceding words: ``training_plan with its training_plan_arn``."""

    key: str

    def __str__(self) -> str:
        return f"its {self.key}"


@dataclass(frozen=True)
class Stated:
    """What is stated under a key, which the sentence is about: ``capacity: training_plan needs`` a plan."""

    key: str
    value: object

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"


@dataclass(frozen=True)
class OnlyInFiles:
    """Words about how a value is written in a file, which an option does not need.

    ``python`` are the words for callers of constructs, empty for none.
    """

    text: str
    python: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Example:
    """A value that is only shown: ``such as arn:aws:iam::111122223333:role/platform-admin``."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Truth:
    """A truth value: ``true`` in a file, ``True`` in Python."""

    value: bool

    def __str__(self) -> str:
        return str(self.value).lower()


Advice = Setting | Correction | Choosing | Removal | Companion | Stated | OnlyInFiles | Example | Truth


class Sentence(str):
    """A sentence in the terms of a file, whose ``parts`` a command can show in the terms of its options.

    It can be used as text; text that is made from it, such as with an f-string, has no parts.
    """

    __slots__ = ("parts",)
    parts: tuple[str | Advice, ...]

    def __new__(cls, *parts: str | Advice) -> Self:
        """Join parts; parts of a sentence among them are kept."""
        sentence = super().__new__(cls, "".join(str(part) for part in parts))
        sentence.parts = tuple(_flat(parts))
        return sentence

    def with_examples(self, change: Callable[[str], str]) -> Sentence:
        """Return the sentence with its examples changed, such as to the account of the file."""
        return Sentence(*(_with_example(part, change) for part in self.parts))

    def with_text(self, change: Callable[[str], str]) -> Sentence:
        """Return the sentence with its text, values and examples changed."""
        return Sentence(*(_changed(part, change) for part in self.parts))


_PLAIN = re.compile(r"[^\s\[\]{},#&*!|>'\"%@`?:~=<-](?:[^\s:#]|:(?=\S)|(?<=\S)#| (?! |$))*")
_LIKE_A_NUMBER = re.compile(r"[-+.]?[0-9][0-9a-fA-FxXoO_.:+-]*")
_OTHER_THAN_TEXT = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null", ".inf", ".nan"})


def as_text(text: str) -> str:
    """Return text as a file writes it: in quotes if a YAML parser could read it as something else."""
    is_other = text.lower() in _OTHER_THAN_TEXT or _LIKE_A_NUMBER.fullmatch(text) is not None
    return text if _PLAIN.fullmatch(text) and not is_other else json.dumps(text, ensure_ascii=False)


def plural(count: float, one: str, many: str = "") -> str:
    """Return the noun for ``count`` things: ``node`` or ``nodes``; ``many`` is a plural that adds more than an s."""
    return one if count == 1 else many or f"{one}s"


def in_words_of(message: str, advice: Callable[[Advice], str]) -> str:
    """Return a message with the words that ``advice`` has for each key; unchanged if it has none."""
    if not isinstance(message, Sentence):
        return message
    return "".join(part if isinstance(part, str) else advice(part) for part in message.parts)


def by_option(option: str) -> Callable[[Advice], str]:
    """Return the words of a command whose ``option`` sets the key, independent of the key's name in the file."""

    def said(advice: Advice) -> str:
        match advice:
            case Setting():
                return f"{advice.or_in_files}give {option} {_for_a_shell(advice.value)}"
            case Correction() | Choosing():
                return str(replace(advice, key=option))
            case Removal():
                return f"leave out {option}"
            case Stated():
                return f"{option} {advice.value}"
            case Companion():
                return option
            case OnlyInFiles() | Example() | Truth():
                return "" if isinstance(advice, OnlyInFiles) else str(advice)

    return said


def _for_a_shell(value: object) -> object:
    """Leave out the quotes of a file around text that a shell reads without them."""
    bare = value[1:-1] if isinstance(value, str) and value.startswith('"') else ""
    return bare if re.fullmatch(r"[A-Za-z0-9_.:/@+-]+", bare) else value


def in_python(message: str) -> str:
    """Return a sentence in the words of a caller of constructs: ``set count=2`` in place of ``set count: 2``."""
    return in_words_of(message, _by_argument)


def _by_argument(advice: Advice) -> str:
    match advice:
        case Setting():
            return "" if advice.or_in_files else _set_by_argument(advice)
        case Stated():
            return f"{advice.key}={_as_code(advice.value)}"
        case OnlyInFiles():
            return advice.python
        case Truth():
            return str(advice.value)
        case _:
            return str(advice)


def _set_by_argument(advice: Setting) -> str:
    value = advice.python or _as_code(advice.value)
    if value is not None and _ARGUMENT.fullmatch(advice.key):
        return f"{advice.verb} {advice.key}={value}"
    return f"{advice.verb} {advice.key} {'to' if advice.verb == 'set' else 'as'} {value or advice.value}"


_ARGUMENT = re.compile(r"[a-z_]\w*(\.\w+|\[\w+\])*")


def _as_code(value: object) -> str | None:
    """Return a value as Python writes it; None of words about it, such as ``2 or more``."""
    if not isinstance(value, str):
        return repr(value)
    if value in {"true", "false"}:
        return value.capitalize()
    if " " in value:
        return None
    return value if value.startswith('"') else f'"{value}"'


def _flat(parts: tuple[str | Advice, ...]) -> Iterator[str | Advice]:
    for part in parts:
        yield from part.parts if isinstance(part, Sentence) else (part,)


def _with_example(part: str | Advice, change: Callable[[str], str]) -> str | Advice:
    match part:
        case Correction():
            return replace(part, example=change(part.example))
        case Example():
            return Example(change(part.text))
        case _:
            return part


def _changed(part: str | Advice, change: Callable[[str], str]) -> str | Advice:
    if isinstance(part, str):
        return change(part)
    match part:
        case Setting() | Stated():
            # a number stays one, which code writes without quotes
            return replace(part, value=change(part.value)) if isinstance(part.value, str) else part
        case _:
            return _with_example(part, change)
