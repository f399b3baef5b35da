"""How a report writes numbers, money, minutes and values; the same words in every rendering."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.model import Cause, Change, Minutes

UNKNOWN = "unknown"

WIDTH: Final = 80
"""How long a line of a text page is, unless a part of it must not be broken."""

_TELLING = 4
"""The largest ratio of the ends of a range at which both are shown."""


class _Shown(dict[int, str]):
    """How each character is shown, determined once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        hides = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        self[code] = character.encode("unicode_escape").decode() if hides else character
        return self[code]


# control and format characters, except for those that letters of some scripts and joined emoji need
_SHOWN = _Shown({ord("\n"): "⏎", ord("\r"): "⏎", ord("\t"): " ", 0x200C: "\u200c", 0x200D: "\u200d"})


def visible(text: str) -> str:
    """Return text in which nothing is hidden: line breaks as ``⏎``, control and direction marks as their escapes.

    A template is untrusted text: a mark that reverses the direction could show a reviewer something else than what is
    deployed, and a lone surrogate cannot be written at all.
    """
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_SHOWN)


def shortened(text: str, most: int) -> str:
    """Cut text in its middle to ``most`` characters at most, with the number of omitted characters."""
    if len(text) <= most:
        return text
    kept = max(most - len(f"…({len(text):,} more)…"), 2)
    return f"{text[: (kept + 1) // 2]}…({len(text) - kept:,} more)…{text[len(text) - kept // 2 :]}"


def shortened_pair(before: str, after: str, most: int) -> tuple[str, str]:
    """Cut two values around the first place where they differ, so that the difference remains visible."""
    if len(before) <= most and len(after) <= most:
        return before, after
    same = next((i for i, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    skipped = (min(len(before), len(after)) if same is None else same) - most // 4
    if skipped <= 0:
        return shortened(before, most), shortened(after, most)
    cut = tuple(f"…{shortened(each[skipped:], most - 1)}" for each in (before, after))
    return cut[0], cut[1]


def wrapped(line: str, *, indent: str = "", hanging: str = "  ") -> list[str]:
    """Return a line of a text page as lines of at most ``WIDTH``, the first after ``indent``, others after ``hanging``.

    Words are not broken, so that paths, ARNs and commands can be copied.
    """
    return textwrap.wrap(
        line, WIDTH, initial_indent=indent, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


def in_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows, of which all have the same number of cells, as lines in columns; nothing is cut."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def number(value: float) -> str:
    """Return ``1,234`` or ``0.25``: two decimals at most, none for a whole number."""
    rounded = round(value, 2)
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.2f}".rstrip("0")


def money(dollars: float, *, cents: bool | None = None) -> str:
    """Return ``$12,345`` or ``$3.20``; by default cents are shown below a hundred dollars."""
    exact = 0 < abs(dollars) < 100 if cents is None else cents
    amount = f"{abs(dollars):,.2f}" if exact else f"{abs(dollars):,.0f}"
    sign = "-" if dollars < 0 and amount.strip("0.,") else ""
    return f"{sign}${amount}"


def unit_price(dollars: float) -> str:
    """Return a price per unit with as many decimals as it has, up to six: ``$0.0225``, ``$98.32``."""
    whole, _, fraction = f"{dollars:,.6f}".partition(".")
    return f"${whole}.{fraction.rstrip('0').ljust(2, '0')}"


def difference(change: Change) -> float | None:
    """Return after minus before, None if either is unknown."""
    if change.before is None or change.after is None:
        return None
    return change.after - change.before


def changes(change: Change) -> bool:
    """Whether the two numbers differ."""
    return change.before != change.after


def minutes(value: float) -> str:
    """Return ``45 s``, ``12 min``, ``2 h 5 min``."""
    if 0 < value < 1:
        return f"{max(round(value * 60), 1)} s"
    hours, rest = divmod(round(value), 60)
    parts = [f"{hours} h"] if hours else []
    return " ".join([*parts, f"{rest} min"] if rest or not hours else parts)


def span(value: Minutes) -> str:
    """Return ``12 min to 2 h 5 min``, or one duration if both ends read the same."""
    low, high = minutes(value.low), minutes(value.high)
    return low if low == high else f"{low} to {high}"


def at_most(value: Minutes) -> str:
    """Return the span, or ``up to 50 min`` if its ends are so far apart that the lower one has no meaning."""
    return f"up to {minutes(value.high)}" if value.high > _TELLING * value.low else span(value)


def place(cause: Cause) -> str:
    """Return ``environments/prod.yaml:31 hyperpod.instance_groups[1].count``."""
    line = f":{cause.line}" if cause.line is not None else ""
    return f"{cause.file}{line} {cause.path}".strip()


def counted(count: int, one: str, many: str = "") -> str:
    """Return ``1 resource`` or ``3 resources``."""
    return f"{count:,} {plural(count, one, many)}"
