"""Folds what says the same of many into one, which counts them, names some and has all of them behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from hyperpod_cdk.review.model import Cause
from hyperpod_cdk.review.pages.page import Cell, Many, Moved, Word
from hyperpod_cdk.review.pages.wording import place, visible

FEW: Final = 3
"""So many that say the same are shown one by one, more of them as one; so many of them are named."""

_ITEM: Final = re.compile(r"\[([^\]]*)\]")
_ANY: Final = "…"
"""Stands for what tells alike ones apart: the name of an item, or of a resource."""

T = TypeVar("T")


@dataclass(frozen=True)
class Said:
    """What is said of one resource or property: its sentence, what it was and is, and which lines caused it."""

    resource: str
    property: str | None
    sentence: str
    moved: Moved | None = None
    causes: tuple[Cause, ...] = ()
    names: frozenset[str] = frozenset()
    """What else it is told by in its sentence: items and values of its own."""


def alike(things: Iterable[T], said: Callable[[T], Said], beside: Callable[[T], object]) -> Iterator[list[T]]:
    """Give the things in their order, those together that say the same of more than ``FEW``.

    They are of the same property, whichever item of a list it is in, say the same sentence, whatever it calls them, and
    have the same ``beside`` it.
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
    """Give what alike ones have in common: the property, whichever item it is in, and what is said of it."""
    return pattern(said.property), _sentence(said)


def pattern(path: str | None) -> str | None:
    """Give a property's path without the names of the items that it is in."""
    return None if path is None else _ITEM.sub(f"[{_ANY}]", path)


def sentence(together: Sequence[Said]) -> str:
    """Give what all of them say, in which none is called by its name."""
    if len({each.sentence for each in together}) == 1:
        return together[0].sentence
    text = _sentence(together[0])
    words = [each.sentence.split(" ") for each in together]
    if len({len(each) for each in words}) == 1:
        told = [some[0] if len(set(some)) == 1 else _ANY + _end(some) for some in zip(*words, strict=True)]
        # a name of several words, of which only one tells them apart
        return f"Each{text.removeprefix(_ANY)}" if text.startswith(_ANY) and _ANY not in text[1:] else " ".join(told)
    return f"Each{text.removeprefix(_ANY)}" if text.startswith(_ANY) else text


def _end(words: Sequence[str]) -> str:
    """Give the mark within a sentence with which all of these words end, empty where they have none in common."""
    ends = {each[-1:] for each in words}
    return ends.pop() if len(ends) == 1 and ends <= set(",;:") else ""


def how_many(together: Sequence[Said]) -> str:
    """Say how many they are, and of what."""
    number = f"{len(together):,}"
    if len({each.resource for each in together}) == 1:
        return f"{number} items" if len({each.property for each in together}) > 1 else f"{number} times"
    return f"{number} resources" if len({each.property for each in together}) == 1 else f"{number} times"


def moved_alike(together: Sequence[Said]) -> Moved | None:
    """Give the values before and after where all of them have the same."""
    first = together[0].moved
    return first if all(each.moved == first for each in together) else None


def many(together: Sequence[Said]) -> Many:
    """Name some of them and list all, each with what only itself has."""
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
    """Give what tells each apart: its resource, the items of its property, or both."""
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
    """Give the sentence with ``_ANY`` in place of what the thing is called, and of what it was and is."""
    names = {said.resource, said.resource.rpartition(" / ")[2], *_ITEM.findall(said.property or "")}
    values = {said.moved.before, said.moved.after} if said.moved else set()
    # a number is the name of nothing, but what a property was, and is, stands beside the sentence
    named = {name for name in names if not name.isdecimal()} | {value for value in values if value is not None}
    named |= said.names
    stated = said.sentence.lower()
    told = sorted((name for name in named if name and name.lower() in stated), key=lambda name: (-len(name), name))
    if not told:
        return said.sentence
    # the name as a whole: not as a part of a longer one
    pattern_ = "|".join(re.escape(name) for name in told)
    return re.sub(rf"(?<![\w-])(?:{pattern_})(?![\w-])", _ANY, said.sentence, flags=re.IGNORECASE)
