"""Pictures as SVG: elements, colors for light and dark, and how wide a text is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Final
from xml.etree import ElementTree as ET

from hyperpod_cdk.review.pages.wording import visible

FONTS: Final = "'Helvetica Neue', 'Segoe UI', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

TIMES: Final = "\u00d7"
DASH: Final = "\u2013"

SMALLEST_FONT: Final = 11
"""Pixels of the smallest text, where the picture is as wide as its view box."""

LIGHT: Final[Mapping[str, str]] = {
    "page": "#ffffff",
    "frame": "#f5f7fb",
    "zone": "#e9edf6",
    "block": "#f8fafd",
    "card": "#ffffff",
    "line": "#c6cee0",
    "chip": "#eaeef7",
    "ink": "#172033",
    "muted": "#515d78",
    "nodes": "#6a35d4",
    "storage": "#0b7370",
    "control": "#a94a06",
    "network": "#2257c4",
    "team": "#ab2668",
    "added": "#17752f",
    "added-soft": "#e2f5e7",
    "changed": "#8a5200",
    "changed-soft": "#fdf0d5",
    "removed": "#b8232a",
    "removed-soft": "#fdeaea",
}
"""Colors on a light page, by their role."""

DARK: Final[Mapping[str, str]] = {
    "page": "#0c111d",
    "frame": "#121929",
    "zone": "#192237",
    "block": "#1d2840",
    "card": "#25314c",
    "line": "#3d4a6b",
    "chip": "#33415f",
    "ink": "#eef2fb",
    "muted": "#b3bed6",
    "nodes": "#bda4ff",
    "storage": "#62d6cb",
    "control": "#ffb673",
    "network": "#93baff",
    "team": "#ff9fcd",
    "added": "#74e090",
    "added-soft": "#1a3b28",
    "changed": "#ffcc66",
    "changed-soft": "#40331a",
    "removed": "#ffa19e",
    "removed-soft": "#46252a",
}
"""Colors on a dark page, by their role."""


def _widths(numbers: str) -> tuple[int, ...]:
    return tuple(map(int, numbers.split()))


# thousandths of the font's size for the characters from space to tilde: the wider one of Arial and DejaVu Sans, so that
# a text has room with any font of a reader's machine
_REGULAR: Final = _widths(
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 636 636 636 "
    "337 337 838 838 838 556 1015 684 686 722 770 667 611 778 752 295 500 667 557 863 748 787 667 787 722 667 "
    "611 732 684 989 685 667 685 390 337 390 838 556 500 613 635 550 635 615 352 635 634 278 278 579 278 974 "
    "634 612 635 635 411 521 392 634 592 818 592 592 525 636 337 636 838"
)
_BOLD: Final = _widths(
    "348 456 521 838 696 1002 872 306 457 457 523 838 380 415 380 365 696 696 696 696 696 696 696 696 696 696 "
    "400 400 838 838 838 611 1000 774 762 734 830 683 683 821 837 372 556 775 637 995 837 850 733 850 770 720 "
    "682 812 774 1103 771 724 725 457 365 457 838 556 500 675 716 593 716 678 435 716 712 343 343 665 343 "
    "1042 712 687 716 716 493 595 478 712 652 924 645 652 582 712 365 712 838"
)
_OTHERS: Final[Mapping[str, int]] = {"·": 380, DASH: 556, "→": 1000, "…": 1000, TIMES: 838}


def text_width(words: str, size: float, *, bold: bool = False) -> float:
    """Return the pixels that a text needs at most in any font of FONTS."""
    return _thousandths(words, bold=bold) * size / 1000


def shortened(words: str, width: float, size: float, *, bold: bool = False) -> str:
    """Return the text if it fits into ``width`` pixels, else its beginning with an ellipsis; empty if none fits."""
    if text_width(words, size, bold=bold) <= width:
        return words
    room = width * 1000 / size - _OTHERS["…"]
    if room < 0:
        return ""
    kept = 0
    for character in words:
        room -= _character(character, bold=bold)
        if room < 0:
            break
        kept += 1
    return words[:kept].rstrip() + "…"


@cache
def _thousandths(words: str, *, bold: bool) -> int:
    return sum(_character(character, bold=bold) for character in words)


def _character(character: str, *, bold: bool) -> int:
    code = ord(character)
    if 32 <= code < 127:
        return (_BOLD if bold else _REGULAR)[code - 32]
    if character in _OTHERS:
        return _OTHERS[character]
    return 1100 if unicodedata.east_asian_width(character) in "WF" or code > 0xFFFF else 900


class Picture:
    """An SVG that scales with its page, follows the reader's light or dark and has no dependencies.

    ``title`` is the text for screen readers. ``rules`` are the declarations of further classes, with a palette's role
    in braces for its color. A page forces one side with the class ``hp-light`` or ``hp-dark`` on the picture or around
    it; a viewer that supports neither media queries nor these shows the light side.
    """

    def __init__(self, width: float, height: float, title: str, *, rules: Mapping[str, str] | None = None) -> None:
        self.root: ET.Element = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {number(width)} {number(height)}",
                "width": number(width),
                "height": number(height),
                "class": "hp-picture",
                "role": "img",
                "aria-label": clean(title),
                "style": "max-width:100%;height:auto",
            },
        )
        self._into = self.root
        self.add("style").text = _STYLE + themed(rules or {})
        self.rect(0, 0, width, height, kind="page")

    def add(self, tag: str, attributes: Mapping[str, str | float] | None = None, *, title: str = "") -> ET.Element:
        """Add an element; numbers are written with two digits at most, ``title`` is its tooltip."""
        element = ET.SubElement(
            self._into,
            tag,
            {key: clean(each) if isinstance(each, str) else number(each) for key, each in (attributes or {}).items()},
        )
        if title:
            ET.SubElement(element, "title").text = clean(title)
        return element

    @contextmanager
    def group(self, title: str = "", *, kind: str = "") -> Iterator[None]:
        """Put what is added meanwhile into one element, with a tooltip of its own."""
        outer = self._into
        self._into = self.add("g", {"class": kind} if kind else None, title=title)
        try:
            yield
        finally:
            self._into = outer

    def rect(
        self, x: float, y: float, width: float, height: float, *, kind: str, radius: float = 0, title: str = ""
    ) -> None:
        """Add a rectangle of a kind, which is its class."""
        attributes: dict[str, str | float] = {"class": kind, "x": x, "y": y, "width": width, "height": height}
        if radius:
            attributes["rx"] = radius
        self.add("rect", attributes, title=title)

    def line(self, x1: float, y1: float, x2: float, y2: float, *, kind: str) -> None:
        """Add a line of a kind."""
        self.add("line", {"class": kind, "x1": x1, "y1": y1, "x2": x2, "y2": y2})

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float,
        kind: str = "ink",
        bold: bool = False,
        width: float | None = None,
        anchor: str = "start",
    ) -> None:
        """Add a line of text whose baseline is ``y``; text wider than ``width`` is shortened, and complete as a
        tooltip."""
        shown = words if width is None else shortened(words, width, size, bold=bold)
        attributes: dict[str, str | float] = {"class": f"t-{kind}", "x": x, "y": y, "font-size": size}
        if bold:
            attributes["font-weight"] = "600"
        if anchor != "start":
            attributes["text-anchor"] = anchor
        element = self.add("text", attributes, title="" if shown == words else words)
        if len(element):
            element[0].tail = clean(shown)
        else:
            element.text = clean(shown)

    def render(self) -> str:
        """Return the SVG as text."""
        return ET.tostring(self.root, encoding="unicode")


def number(value: float) -> str:
    """Return a number as SVG has it, with at most two decimals."""
    # a number that is rounded to zero has no sign
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def clean(words: str) -> str:
    """Replace characters that XML may not contain, and show control and direction marks, as pages do."""
    return visible(_FORBIDDEN.sub("\ufffd", words))


_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


_FILLS: Final = {role: f"fill:{{{role}}}" for role in LIGHT}
_PLACE: Final = re.compile(r"\{([a-z-]+)\}")


def themed(rules: Mapping[str, str]) -> str:
    """Return the style sheet of some classes for a light and a dark page.

    ``rules`` are declarations by class, with a role of the palettes in braces for its color. The colors are written
    out: viewers other than browsers do not support variables and show unknown colors as black.
    """
    light, dark = (_declared(rules, palette) for palette in (LIGHT, DARK))
    themed_only = {kind: each for kind, each in dark.items() if each != light[kind]}
    return (
        _sheet(light, ".hp-picture ")
        + f"@media (prefers-color-scheme:dark){{{_sheet(themed_only, '.hp-picture ')}}}"
        + _sheet({kind: light[kind] for kind in themed_only}, ".hp-light .hp-picture ", ".hp-picture.hp-light ")
        + _sheet(themed_only, ".hp-dark .hp-picture ", ".hp-picture.hp-dark ")
    )


def _declared(rules: Mapping[str, str], palette: Mapping[str, str]) -> dict[str, str]:
    return {kind: _PLACE.sub(lambda found: palette[found[1]], each) for kind, each in rules.items()}


def _sheet(declared: Mapping[str, str], *before: str) -> str:
    return "".join(
        f"{','.join(f'{each}.{kind}' for each in before)}{{{declarations}}}" for kind, declarations in declared.items()
    )


_STYLE: Final = (
    f".hp-picture{{font-family:{FONTS};display:block}}"
    + themed({f"t-{role}": fill for role, fill in _FILLS.items()})
    + themed(_FILLS)
)
