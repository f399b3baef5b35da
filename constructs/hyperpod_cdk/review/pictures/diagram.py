"""The architecture diagram of an environment, with what a change does to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hyperpod_cdk.review.figures.capacity import capacity
from hyperpod_cdk.review.model import Capacity
from hyperpod_cdk.review.pictures.boxes import Box, Placed, column, flow, grid, lay_out, paint, pill, row, spacer, text
from hyperpod_cdk.review.pictures.scene import (
    ROLES,
    UNKNOWN_ZONE,
    Block,
    Card,
    Chip,
    Mark,
    Network,
    Scene,
    Squares,
    Zone,
    scene,
    total,
)
from hyperpod_cdk.review.pictures.svg import SMALLEST_FONT, Picture, text_width
from hyperpod_cdk.templates.assembly import EMPTY, Assembly

WIDTH: Final = 1200
ZONES_IN_A_ROW: Final = 4
"""Columns side by side; more zones are in a second row, so that texts keep their size."""

_MARGIN: Final = 24
_GAP: Final = 12
_SAID: Final = 14
_CONTROL_CARDS: Final = 3
_RULES: Final = {
    **dict.fromkeys(("frame", "zone", "block", "card"), "stroke:{line};stroke-width:1"),
    "card-added": "fill:{added-soft};stroke:{added};stroke-width:1.5",
    "card-changed": "fill:{changed-soft};stroke:{changed};stroke-width:1.5",
    "card-removed": "fill:{removed-soft};stroke:{removed};stroke-width:1.5;stroke-dasharray:5 4",
    "bar": "fill:{line}",
    "bar-used": "fill:{network}",
    "rule": "stroke:{line};stroke-width:1",
}


def diagram(
    head: Assembly,
    base: Assembly | None = None,
    *,
    numbers: Capacity | None = None,
    judgement: Sequence[str] = (),
) -> str:
    """Draw the environment as SVG, 1200 wide; ``viewBox`` lets it scale.

    With ``base``, additions, changes and removals against it are marked, and removed things are where they were.
    ``numbers`` are the capacity of the same two assemblies, computed if they are not given. ``judgement`` are sentences
    below the title: who must approve the change, and what a month costs.
    """
    placed = place(head, base, numbers, judgement)
    picture = Picture(
        WIDTH, round(placed.height), f"Architecture of {head.environment or 'the template'}", rules=_RULES
    )
    paint(picture, placed)
    return picture.render()


def place(head: Assembly, base: Assembly | None, numbers: Capacity | None, judgement: Sequence[str] = ()) -> Placed:
    """Return every box of the picture with its place."""
    known = capacity(base or EMPTY, head) if numbers is None else numbers
    return lay_out(_page(scene(head, base, known), judgement), WIDTH)


def _page(shown: Scene, judgement: Sequence[str]) -> Box:
    frame: list[Box] = []
    if shown.control:
        frame.append(_control(shown.control))
    if shown.teams:
        frame.append(_titled("Teams", _cards(shown.teams, columns=4, limit=12)))
    frame += [_network(network) for network in shown.networks]
    if shown.outside:
        frame.append(_titled("Outside of the VPC", _cards(shown.outside, columns=4, limit=8)))
    if not frame:
        frame.append(text("The templates contain nothing that this picture shows.", ink="muted"))
    return column(
        _header(shown),
        *([_judgement(judgement)] if judgement else []),
        *([_legend()] if shown.is_change else []),
        column(*frame, gap=14, padding=16, kind="frame", radius=14),
        gap=14,
        padding=(_MARGIN, _MARGIN, _MARGIN, _MARGIN),
    )


def _header(shown: Scene) -> Box:
    figures = [
        column(
            text(number, size=20, bold=True, anchor="end"),
            text(label, size=SMALLEST_FONT, ink="muted", anchor="end"),
            gap=0,
            align_items="flex-end",
            flex_shrink=0,
        )
        for number, label in shown.figures
    ]
    return row(
        column(text(shown.title, size=24, bold=True), text(shown.subtitle, size=13, ink="muted"), gap=2),
        spacer(),
        row(*figures, gap=28, flex_shrink=0),
        gap=24,
    )


def _judgement(said: Sequence[str]) -> Box:
    first, *others = said
    lines = [text(line, size=_SAID, bold=True) for line in _wrapped(first, bold=True)]
    lines += [text(line, size=_SAID) for each in others for line in _wrapped(each)]
    return column(*lines, gap=2, padding=(10, 14, 10, 14), kind="block", radius=8)


def _wrapped(words: str, *, bold: bool = False) -> Iterator[str]:
    """Break a sentence into lines that fit the width; a single word that is too long is shortened."""
    line = ""
    for word in words.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer, _SAID, bold=bold) > WIDTH - 2 * _MARGIN - 2 * 14:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _legend() -> Box:
    marks: tuple[Mark, ...] = ("added", "changed", "removed")
    return row(
        *(
            row(
                Box(kind=f"card-{mark}", radius=4, style={"size": (22, 14), "flex_shrink": 0}),
                text(mark, size=12, ink=mark),
                gap=7,
            )
            for mark in marks
        ),
        gap=18,
    )


def _titled(title: str, *content: Box) -> Box:
    return column(text(title, size=12, bold=True, ink="muted"), *content, gap=7)


def _control(cards: Sequence[Card]) -> Box:
    """Put few cards side by side; the last of them, the add-ons, is as wide as two."""
    boxes = [_card(card) for card in cards]
    columns = min(len(boxes), _CONTROL_CARDS)
    return grid(*boxes, columns=columns, gap=_GAP, shares={2: 2} if len(boxes) == _CONTROL_CARDS else None)


def _cards(cards: Sequence[Card], *, columns: int, limit: int) -> Box:
    shown, rest = _folded(cards, limit)
    boxes = [_card(card) for card in shown]
    if rest:
        boxes.append(_rest(rest))
    return grid(*boxes, columns=columns, gap=8)


_GRAVEST_FIRST: Final[tuple[Mark, ...]] = ("removed", "changed", "added", "")


def _folded(cards: Sequence[Card], limit: int) -> tuple[Sequence[Card], Sequence[Card]]:
    """Keep removed, changed and new cards, then the first ones; a single card is never folded."""
    if len(cards) <= limit + 1:
        return cards, ()
    ranked = sorted(range(len(cards)), key=lambda number: _GRAVEST_FIRST.index(cards[number].mark))
    kept = set(ranked[:limit])
    return (
        [card for number, card in enumerate(cards) if number in kept],
        [card for number, card in enumerate(cards) if number not in kept],
    )


def _rest(cards: Sequence[Card]) -> Box:
    groups = [card for card in cards if card.is_group and card.mark != "removed"]
    words = f"and {len(cards)} more"
    totals = ", ".join(card.title for card in cards[:3])
    if groups:
        accelerators = total(card.accelerators for card in groups)
        totals = f"{total(card.nodes for card in groups)} nodes, {accelerators} accelerators"
    marks = [card.mark for card in cards if card.mark]
    lines = [text(words, size=13, bold=True), text(totals, size=12, ink="muted")]
    if marks:
        lines.append(text(f"{len(marks)} of them change", size=12, ink="changed"))
    return column(
        *lines, gap=3, padding=(10, 14, 10, 16), kind="card", radius=8, title=", ".join(c.title for c in cards)
    )


def _card(card: Card) -> Box:
    lines = [
        row(
            text(card.title, size=13, bold=True),
            spacer(),
            *([text(card.mark, size=SMALLEST_FONT, ink=card.mark, anchor="end", gives_way=False)] if card.mark else []),
        )
    ]
    if card.subtitle:
        lines.append(text(card.subtitle, size=12))
    lines += [text(line, size=12, ink="muted") for line in card.lines]
    if card.squares is not None:
        lines.append(_squares(card.squares))
    lines += [text(words, size=12, bold=True, ink=card.mark or "ink") for words in card.changes]
    if card.chips:
        lines.append(_chips(card.chips))
    return column(
        *lines,
        gap=4,
        padding=(9, 12, 10, 17),
        kind=f"card-{card.mark}" if card.mark else "card",
        accent=card.kind,
        radius=8,
        title=card.tooltip,
    )


def _chips(chips: Iterable[Chip]) -> Box:
    return flow(
        *(
            pill(chip.text, kind=f"card-{chip.mark}" if chip.mark else "chip", ink=chip.mark or "ink", title=chip.mark)
            for chip in chips
        )
    )


_SIDE: Final = 7
_NODES_DRAWN: Final = 8
_EACH_DRAWN: Final = 16


def _squares(squares: Squares) -> Box:
    """Draw the accelerators of the first nodes, a cluster of squares for each."""
    nodes, each = min(squares.nodes, _NODES_DRAWN), min(squares.each, _EACH_DRAWN)
    lines = 2 if each > 4 else 1
    across = -(-each // lines)
    step = _SIDE + 2

    def draw(picture: Picture, placed: Placed) -> None:
        kind = "control" if squares.is_neuron else "nodes"
        one = across * step + 5
        fitting = max(0, min(nodes, int((placed.width + 5) // one)))
        if fitting < squares.nodes and fitting * one + text_width(f"+{squares.nodes}", SMALLEST_FONT) > placed.width:
            fitting = max(0, fitting - 1)
        for node in range(fitting):
            for number in range(each):
                x = placed.x + node * one + (number % across) * step
                y = placed.y + (number // across) * step
                picture.rect(x, y, _SIDE, _SIDE, kind=kind, radius=1.5)
        if fitting < squares.nodes:
            more = f"+{squares.nodes - fitting}"
            picture.text(
                placed.x + fitting * one, placed.y + placed.height / 2 + 4, more, size=SMALLEST_FONT, kind="muted"
            )

    return Box(
        paint=draw, style={"size": ("auto", max(lines * step - 2, 11)), "flex_shrink": 0, "margin": (2, 0, 2, 0)}
    )


def _network(network: Network) -> Box:
    parts = [
        row(
            text(network.label, size=14, bold=True, ink=network.mark or "ink"),
            text(network.note, size=12, ink="muted"),
            spacer(),
            gap=10,
        )
    ]
    zones = network.zones
    in_a_row = -(-len(zones) // -(-len(zones) // ZONES_IN_A_ROW)) if zones else 1
    rows = [zones[start : start + in_a_row] for start in range(0, len(zones), in_a_row)]
    parts += [_zone_row(each, f"{network.label} {number}") for number, each in enumerate(rows)]
    if network.across:
        parts.append(_titled("In several zones, or in an unknown one", _cards(network.across, columns=3, limit=12)))
    if network.endpoints:
        shown, rest = network.endpoints[:28], network.endpoints[28:]
        chips = [*shown, *([Chip(f"and {len(rest)} more")] if rest else [])]
        parts.append(_titled("VPC endpoints", _chips(chips)))
    kind = f"card-{network.mark}" if network.mark in ("added", "removed") else "block"
    return column(*parts, gap=10, padding=14, kind="block" if network.mark == "added" else kind, radius=12)


def _zone_row(zones: Sequence[Zone], name: str) -> Box:
    """Put zones side by side, and the blocks with the same role in all of them on one level."""
    roles = [role for role in ROLES if any(block.role == role for zone in zones for block in zone.blocks)]
    columns = 1 if len(zones) > 2 else 2 if len(zones) == 2 else 3
    boxes = []
    for zone in zones:
        heading = [text(zone.label, size=13, bold=True)]
        if zone.label != UNKNOWN_ZONE:
            heading += [spacer(), text("availability zone", size=SMALLEST_FONT, ink="muted", anchor="end")]
        cells = [
            column(
                *(_block(block, columns) for block in zone.blocks if block.role == role), gap=8, level=f"{name} {role}"
            )
            for role in roles
        ]
        boxes.append(column(row(*heading), *cells, gap=9, padding=(9, 10, 10, 10), kind="zone", radius=10))
    return grid(*boxes, columns=len(boxes), gap=_GAP)


def _block(block: Block, columns: int) -> Box:
    heading = [text(_ROLE_WORDS[block.role], size=12, bold=True), text(block.cidr, size=12, ink="muted"), spacer()]
    if block.used is not None and block.usable is not None:
        heading.append(
            text(f"{block.used:,.0f} of {block.usable:,} used", size=SMALLEST_FONT, ink="muted", anchor="end")
        )
    elif block.usable is not None:
        heading.append(text(f"{block.usable:,} addresses", size=SMALLEST_FONT, ink="muted", anchor="end"))
    parts = [row(*heading, gap=7)]
    if block.used is not None and block.usable:
        parts.append(_bar(block.used / block.usable))
    if block.chips:
        parts.append(_chips(block.chips))
    if block.cards:
        parts.append(_in_block(block.cards, columns))
    return column(
        *parts,
        gap=7,
        padding=(9, 10, 10, 10),
        kind=f"card-{block.mark}" if block.mark else "block",
        radius=8,
        title=block.tooltip,
        flex_grow=1,
    )


def _in_block(cards: Sequence[Card], columns: int) -> Box:
    """Put a subnet's groups, then its file systems; many of one kind do not hide the other."""
    boxes: list[Box] = []
    for are_groups, limit in ((True, 12 if columns == 3 else 8), (False, 6)):
        shown, rest = _folded([card for card in cards if card.is_group is are_groups], limit)
        boxes += [_card(card) for card in shown]
        boxes += [_rest(rest)] if rest else []
    return grid(*boxes, columns=min(columns, len(boxes)), gap=8)


_ROLE_WORDS: Final = {"public": "Public", "control plane": "Control plane", "nodes": "Nodes", "other": "Subnet"}


def _bar(share: float) -> Box:
    def draw(picture: Picture, placed: Placed) -> None:
        picture.rect(placed.x, placed.y, placed.width, placed.height, kind="bar", radius=2)
        width = placed.width * min(1.0, max(0.0, share))
        if width:
            picture.rect(placed.x, placed.y, max(width, 3), placed.height, kind="bar-used", radius=2)

    return Box(paint=draw, style={"size": ("auto", 4), "flex_shrink": 0})
