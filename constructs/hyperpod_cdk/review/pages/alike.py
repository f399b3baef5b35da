"""Combines similar entries into one, which counts them, names some and contains all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from hyperpod_cdk.review.model import Cause
from hyperpod_cdk.review.pages.page import Cell, Many, Moved, Word
from hyperpod_cdk.review.pages.wording import place, visible

FEW: Final = 3
"""The number of similar entries that are shown one by one, and the number that a combined entry names."""

_ITEM: Final = re.compile(r"\[([^\]]*)\]")
_ANY: Final = "…"
"""Placeholder for what distinguishes similar entries: the name of an item, or of a resource."""

T = TypeVar("T")


@dataclass(frozen=True)
class Said:
    """What is stated about one resource or property: its sentence, its values before and after, and its causes."""

    resource: str
    property: str | None
    sentence: str
    moved: Moved | None = None
    causes: tuple[Cause, ...] = ()
    names: frozenset[str] = frozenset()
    """Other names in its sentence: items and values of its own."""


def alike(things: Iterable[T], said: Callable[[T], Said], beside: Callable[[T], object]) -> Iterator[list[T]]:
    """Return the entries in their order, more than ``FEW`` similar ones combined.

    They are about the same property, in any item of a list, have the same sentence, with any names, and the same
    ``beside``.
    """
    groups: dict[tuple[object, ...], list[T]] = {}
    for each in things:
        groups.setdefault((shape(said(each)), beside(each)), []).append(each)
    for together in groups.values():
        if len(together) > FEW:
            yield together
        else:
            yield from ([each] for each in together)


def shape(said: Said) -> tuple[str | None, str]:
    """Return what similar entries have in common: the property, in any item, and the statement about it."""
    return pattern(said.property), _sentence(said)


def pattern(path: str | None) -> str | None:
    """Return a property's path without the names of the items in it."""
    return None if path is None else _ITEM.sub(f"[{_ANY}]", path)


def sentence(together: Sequence[Said]) -> str:
    """Return the common sentence of all of them, without their names."""
    if len({each.sentence for each in together}) == 1:
        return together[0].sentence
    text = _sentence(together[0])
    words = [each.sentence.split(" ") for each in together]
    if len({len(each) for each in words}) == 1:
        told = [some[0] if len(set(some)) == 1 else _ANY + _end(some) for some in zip(*words, strict=True)]
        # a name of several words, only one of which differs
        return f"Each{text.removeprefix(_ANY)}" if text.startswith(_ANY) and _ANY not in text[1:] else " ".join(told)
    return f"Each{text.removeprefix(_ANY)}" if text.startswith(_ANY) else text


def _end(words: Sequence[str]) -> str:
    """Return the mark within a sentence with which all of these words end, empty if they have none in common."""
    ends = {each[-1:] for each in words}
    return ends.pop() if len(ends) == 1 and ends <= set(",;:") else ""


def how_many(together: Sequence[Said]) -> str:
    """Return how many they are, and of what."""
    number = f"{len(together):,}"
    if len({each.resource for each in together}) == 1:
        return f"{number} items" if len({each.property for each in together}) > 1 else f"{number} times"
    return f"{number} resources" if len({each.property for each in together}) == 1 else f"{number} times"


def moved_alike(together: Sequence[Said]) -> Moved | None:
    """Return the values before and after if all of them have the same."""
    first = together[0].moved
    return first if all(each.moved == first for each in together) else None


def many(together: Sequence[Said]) -> Many:
    """Name some of them and list all, each with its own details."""
    is_moved_alike = len({each.moved for each in together}) == 1
    is_said_alike = len({each.sentence for each in together}) == 1
    is_caused_alike = len({each.causes for each in together}) == 1
    names = _names(together)
    some: list[Word | Moved] = []
    for name, each in zip(names[:FEW], together, strict=False):
        moved = [] if is_moved_alike or each.moved is None else [each.moved]
        some += [*([Word(",")] if some else []), Word(name, "code"), *moved]
    some.append(Word(f"and {len(together) - FEW:,} more"))
    rows: list[Cell] = []
    for name, each in zip(names, together, strict=True):
        row: list[Word | Moved] = [Word(name, "code")]
        row += [] if is_moved_alike or each.moved is None else [each.moved]
        row += [] if is_said_alike else [Word(visible(each.sentence))]
        row += [] if is_caused_alike or not each.causes else _caused([each.causes])
        rows.append(tuple(row))
    return Many(tuple(some), tuple(rows))


def causes_of_some(together: Sequence[Said]) -> Cell:
    """Name the first lines that caused them, and how many more did."""
    return tuple(_caused(each.causes for each in together))


def _caused(causes: Iterable[tuple[Cause, ...]]) -> list[Word | Moved]:
    places = list(dict.fromkeys(place(each) for some in causes for each in some))
    words: list[Word | Moved] = [Word("Caused by")]
    for each in places[:FEW]:
        words += [*([Word(",")] if len(words) > 1 else []), Word(visible(each), "code")]
    if len(places) > FEW:
        left = len(places) - FEW
        words.append(Word(f"and {left:,} more {'line' if left == 1 else 'lines'}"))
    return words


def _names(together: Sequence[Said]) -> list[str]:
    """Return what distinguishes each: its resource, the items of its property, or both."""
    are_of_one = len({each.resource for each in together}) == 1
    are_one_property = len({each.property for each in together}) == 1
    names = []
    for each in together:
        own = [] if are_of_one else [each.resource]
        if each.property is not None and (not are_one_property or are_of_one):
            items = _ITEM.findall(each.property)
            own.append(items[0] if len(items) == 1 else each.property)
        names.append(visible(" ".join(own) or each.resource))
    return names


def _sentence(said: Said) -> str:
    """Return the sentence with ``_ANY`` for the names in it, and for the values before and after."""
    names = {said.resource, said.resource.rpartition(" / ")[2], *_ITEM.findall(said.property or "")}
    values = {said.moved.before, said.moved.after} if said.moved else set()
    # a number is not a name, but the values before and after are shown next to the sentence
    named = {name for name in names if not name.isdecimal()} | {value for value in values if value is not None}
    named |= said.names
    stated = said.sentence.lower()
    told = sorted((name for name in named if name and name.lower() in stated), key=lambda name: (-len(name), name))
    if not told:
        return said.sentence
    # the name as a whole, not as a part of a longer one
    pattern_ = "|".join(re.escape(name) for name in told)
    return re.sub(rf"(?<![\w-])(?:{pattern_})(?![\w-])", _ANY, said.sentence, flags=re.IGNORECASE)
