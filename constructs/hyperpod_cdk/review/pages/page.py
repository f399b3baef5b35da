"""The structures that every rendering reads: sections of tables, entries and sentences.

They contain no Markdown or HTML, and nothing is cut: a rendering escapes, folds and shortens as its medium needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from hyperpod_cdk.review.model import Effect, Level, ReasonKind

APPROVAL = "Who must approve, and why"
EXCEPTED = "Excepted by review.yaml"
LOOK = "What to look at"
"""The titles of the lists above the sections."""

Tone = Literal["grave", "warning", "doubt", "calm", "good", "plain"]
"""The severity of something. A rendering colors by it, but never uses color alone."""

TONES: dict[str, Tone] = {
    Effect.REPLACED: "grave",
    Effect.DELETED: "grave",
    Effect.REFUSED: "grave",
    Effect.INTERRUPTED: "warning",
    Effect.UNKNOWN: "doubt",
    Effect.LEFT_BEHIND: "doubt",
    Effect.IN_PLACE: "calm",
    Effect.ADDED: "good",
    Level.NONE: "good",
}
ABOUT_TONES: dict[str, Tone] = {
    "fabric": "grave",
    "policy": "grave",
    "quota": "warning",
    "plan": "warning",
    "addresses": "warning",
    "protection": "warning",
    "access": "warning",
    "cost": "doubt",
}
"""Entries to look at that are not a change to a resource."""

KIND_TONES: dict[ReasonKind, Tone] = {
    ReasonKind.REPLACEMENT: "grave",
    ReasonKind.DELETION: "grave",
    ReasonKind.REFUSAL: "grave",
    ReasonKind.INTERRUPTION: "warning",
    ReasonKind.UNKNOWN: "doubt",
    ReasonKind.ACCESS: "warning",
    ReasonKind.PROTECTION: "warning",
    ReasonKind.COST: "warning",
    ReasonKind.PROOF: "grave",
    ReasonKind.QUOTA: "warning",
    ReasonKind.PLAN: "warning",
    ReasonKind.ADDRESSES: "warning",
    ReasonKind.REVIEW_FILE: "warning",
}
"""Reasons for approval that are not a change to a resource."""

FIRST_LOOK = frozenset({Effect.REPLACED, Effect.DELETED, Effect.REFUSED, Effect.INTERRUPTED, Effect.UNKNOWN})
"""Effects that are shown unfolded."""


NOTHING_TO_LOOK_AT = "Nothing in particular."
NOTHING_BESIDES = "Nothing except what needs approval."
"""Texts for an empty list of what to look at: without reasons above it, and below some."""


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of text. ``code`` is a value, ``badge`` one word with a severity, ``source`` an address or a title."""

    text: str
    style: Literal["plain", "strong", "code", "badge", "faint", "source", "amount"] = "plain"
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Moved:
    """Values before and after; ``difference`` is shown in brackets, after ``unit``. None is "there is none"."""

    before: str | None
    after: str | None
    style: Literal["value", "number", "amount"] = "value"
    difference: str = ""
    unit: str = ""


Cell = tuple[Word | Moved, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column; numbers are aligned to the right."""

    title: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A table's row; ``changes`` is whether the change touches it."""

    cells: tuple[Cell, ...]
    changes: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the most important first."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """A line that names some of many, and all of them, which a rendering folds or omits."""

    some: Cell
    all: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing with its details, or ``number`` similar ones; ``folded`` if a reader need not see them at first."""

    badge: Word
    name: Cell
    lines: tuple[Cell | Many, ...] = ()
    folded: bool = False
    number: int = 1


@dataclass(frozen=True, slots=True)
class Entries:
    """Things with their details, the most important first."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences, one below the other."""

    title: str
    items: tuple[Cell, ...]
    is_ordered: bool = False


Block = Table | Entries | Listing


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report: ``lead`` summarizes the blocks in one sentence, ``count`` is how much there is to see."""

    key: str
    title: str
    lead: Cell
    blocks: tuple[Block, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that a reader wants first; ``is_cost`` for the monthly cost."""

    title: str
    value: Cell
    is_cost: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """The whole report; ``approval`` is its first line, ``because`` the cause that all of ``reasons`` have.

    ``reasons`` are what a person must approve, ``excepted`` what an exception covers, ``attention`` what else to look
    at.
    """

    environment: str
    level: str
    tone: Tone
    approval: str
    sentence: str
    compared: Cell
    because: Cell
    reasons: tuple[Entry, ...]
    excepted: tuple[Entry, ...]
    attention: tuple[Entry, ...]
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]


def joined(cell: Cell, rendered: Callable[[Word | Moved], str]) -> str:
    """Return a cell's pieces, each ``rendered``, with spaces between them but none before a comma or a full stop."""
    return "".join(f"{space}{rendered(piece)}" for space, piece in spaced(cell))


def spaced(cell: Cell) -> Iterator[tuple[str, Word | Moved]]:
    """Return a cell's pieces, each with the text before it: a space, or nothing."""
    is_first = True
    for piece in cell:
        closes = isinstance(piece, Word) and piece.style == "plain" and piece.text[:1] in (",", ".", ";", ":")
        yield ("" if closes or is_first else " "), piece
        is_first = is_first and isinstance(piece, Word) and not piece.text
