"""Pictures: colors that can be read, texts that fit, and XML that holds whatever a template says."""

from __future__ import annotations

import re
import struct
import zlib
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.review.pictures.png import png
from hyperpod_cdk.review.pictures.svg import DARK, LIGHT, SMALLEST_FONT, Picture, number, shortened, text_width
from tests.support.tables import row_by_row

SURFACES = ("page", "frame", "zone", "block", "card", "chip", "added-soft", "changed-soft", "removed-soft")
SOFT = {"added": "added-soft", "changed": "changed-soft", "removed": "removed-soft"}


def luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    parts = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2.2."""
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


PAIRS = [
    (ink, surface)
    for ink in ("ink", "muted", *SOFT)
    for surface in SURFACES
    # a mark stands on its own color and not on another mark's
    if surface in (SOFT.get(ink), "chip") or not (ink in SOFT and surface.endswith("-soft"))
]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@row_by_row("ink, surface", PAIRS)
def test_every_text_can_be_read(palette: dict[str, str], ink: str, surface: str) -> None:
    assert contrast(palette[ink], palette[surface]) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("shape", ["nodes", "storage", "control", "network", "team"])
def test_every_shape_can_be_seen(palette: dict[str, str], shape: str) -> None:
    assert all(contrast(palette[shape], palette[surface]) >= 3 for surface in ("card", "block", "page"))


def test_both_palettes_have_the_same_roles() -> None:
    assert list(LIGHT) == list(DARK)


@pytest.mark.parametrize(
    ("words", "bold", "width"),
    [
        ("", False, 0),
        ("x", False, 592),
        ("x", True, 645),
        ("iii", False, 834),
        ("\N{EURO SIGN}", False, 900),
        ("\N{CJK UNIFIED IDEOGRAPH-6F22}", False, 1100),
    ],
)
def test_widths(words: str, bold: bool, width: float) -> None:  # noqa: FBT001 - a parameter of the table
    assert text_width(words, 1000, bold=bold) == pytest.approx(width)
    assert text_width(words, 12, bold=bold) == pytest.approx(width * 0.012)


@given(st.text(max_size=60), st.floats(0, 400), st.sampled_from([11, 13, 24]), st.booleans())
def test_what_is_shortened_fits(words: str, width: float, size: int, bold: bool) -> None:  # noqa: FBT001 - hypothesis
    shown = shortened(words, width, size, bold=bold)
    assert text_width(shown, size, bold=bold) <= width + 1e-6
    assert shown in (words, "") or (shown.endswith("…") and words.startswith(shown[:-1]))


def test_a_text_that_fits_stays() -> None:
    assert shortened("prod", text_width("prod", 12), 12) == "prod"
    assert shortened("prod", text_width("prod", 12) - 0.1, 12) == "pr…"


@pytest.mark.parametrize(
    ("value", "shown"), [(1, "1"), (1.0, "1"), (1.5, "1.5"), (2 / 3, "0.67"), (-0.001, "0"), (100, "100")]
)
def test_numbers_are_short(value: float, shown: str) -> None:
    assert number(value) == shown


@given(st.text(max_size=40))
def test_whatever_a_template_says_is_xml(words: str) -> None:
    picture = Picture(100, 100, words)
    with picture.group(words):
        picture.text(0, 10, words, size=SMALLEST_FONT, width=50)
    root = ET.fromstring(picture.render())  # noqa: S314 - our own picture
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_a_shortened_text_is_whole_in_its_tooltip() -> None:
    picture = Picture(100, 100, "x")
    picture.text(0, 10, "a long name <b>", size=12, width=50)
    assert "<title>a long name &lt;b&gt;</title>a long…</text>" in picture.render()


def test_a_text_that_would_turn_the_direction_round_shows_the_mark() -> None:
    picture = Picture(100, 100, "x\u202ey")
    picture.text(0, 10, "team\u202etxt\x85", size=12)
    drawn = picture.render()
    assert 'aria-label="x\\u202ey"' in drawn
    assert ">team\\u202etxt\\x85</text>" in drawn


def test_a_page_may_force_light_or_dark() -> None:
    text = Picture(10, 10, "x").render()
    rules = re.findall(r"([^{}>]*)\{fill:(#[0-9a-f]{6})\}", text)
    assert [(selector, color) for selector, color in rules if selector.endswith(".t-ink")] == [
        (".hp-picture .t-ink", LIGHT["ink"]),
        (".hp-picture .t-ink", DARK["ink"]),
        (".hp-light .hp-picture .t-ink,.hp-picture.hp-light .t-ink", LIGHT["ink"]),
        (".hp-dark .hp-picture .t-ink,.hp-picture.hp-dark .t-ink", DARK["ink"]),
    ]
    assert f"@media (prefers-color-scheme:dark){{.hp-picture .t-page{{fill:{DARK['page']}}}" in text


def test_a_viewer_that_knows_no_variables_shows_colors() -> None:
    text = Picture(10, 10, "x", rules={"own": "fill:{added};stroke-width:2"}).render()
    assert f".hp-picture .own{{fill:{LIGHT['added']};stroke-width:2}}" in text
    assert "var(" not in text


def test_a_png_has_the_colors_and_texts_of_the_picture() -> None:
    picture = Picture(40, 20, "x")
    picture.rect(0, 0, 20, 20, kind="nodes")
    picture.text(22, 15, "\u2588", size=14, kind="removed")
    drawn = png(picture.render())
    assert drawn == png(picture.render())
    pixels = read_png(drawn)
    assert (len(pixels[0]), len(pixels)) == (80, 40)
    assert pixels[20][10] == LIGHT["nodes"]
    assert pixels[2][70] == LIGHT["page"]
    assert any(pixel == LIGHT["removed"] for row in pixels for pixel in row)


def read_png(data: bytes) -> list[list[str]]:
    """Return the colors of a PNG of 8-bit RGBA, row by row."""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (data[:8], depth, kind) == (b"\x89PNG\r\n\x1a\n", 8, 6)
    at, packed = 8, b""
    while at < len(data):
        (length,), name = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        packed += data[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    raw, stride, before, rows = zlib.decompress(packed), width * 4, bytearray(width * 4), []
    for y in range(height):
        method, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for x in range(stride):
            left, up = (line[x - 4] if x >= 4 else 0), before[x]
            corner = before[x - 4] if x >= 4 else 0
            line[x] = (line[x] + (0, left, up, (left + up) // 2, paeth(left, up, corner))[method]) & 255
        rows.append([f"#{line[x]:02x}{line[x + 1]:02x}{line[x + 2]:02x}" for x in range(0, stride, 4)])
        before = line
    return rows


def paeth(left: int, up: int, corner: int) -> int:
    """Return the neighbour that PNG's fourth filter predicts from (RFC 2083, 6.6)."""
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))
