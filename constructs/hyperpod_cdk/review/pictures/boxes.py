"""Boxes in boxes: the content of a picture, placed by Taffy's CSS flexbox, and painted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from hyperpod_cdk.review.pictures.svg import SMALLEST_FONT, Picture, text_width

Anchor = Literal["start", "middle", "end"]
Painter = Callable[[Picture, "Placed"], None]
Side = tuple[float, float, float, float]

LINE_HEIGHT: Final = 1.36
FLOW_GAP: Final = 5


@dataclass(frozen=True, kw_only=True)
class Words:
    """One line of text; ``ink`` is a color's role."""

    text: str
    size: float = 12
    bold: bool = False
    ink: str = "ink"
    anchor: Anchor = "start"


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle with boxes in it, or with one line of text.

    ``kind`` is the class of its rectangle, empty for one that is not drawn. ``style`` is CSS with stretchable's names.
    ``flow`` are boxes with a size and text of their own that fill its width line after line, instead of ``children``.
    ``accent`` is the color of a bar on its left; ``title`` its tooltip. Boxes of one ``level`` are all as high as the
    highest of them. ``paint`` draws what is neither box nor text.
    """

    kind: str = ""
    children: tuple[Box, ...] = ()
    flow: tuple[Box, ...] = ()
    words: Words | None = None
    style: Mapping[str, Any] = field(default_factory=dict)
    radius: float = 0
    accent: str = ""
    title: str = ""
    level: str = ""
    paint: Painter | None = None


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A box with its place in the picture, in pixels."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    children: tuple[Placed, ...] = ()

    def everything(self) -> Iterator[Placed]:
        """Return it and all boxes in it."""
        pending: list[Placed] = [self]
        while pending:
            item = pending.pop()
            yield item
            pending += reversed(item.children)


def text(
    words: str,
    *,
    size: float = 12,
    bold: bool = False,
    ink: str = "ink",
    anchor: Anchor = "start",
    gives_way: bool = True,
) -> Box:
    """Return a line of text that takes the room it needs, and shrinks if there is less, unless it may not."""
    natural = text_width(words, size, bold=bold)
    style: dict[str, Any] = {
        "size": (natural + 0.5, round(size * LINE_HEIGHT)),
        "max_size": ("100%", "auto"),
        "min_size": (0, 0),
        "flex_shrink": 1 if gives_way else 0,
    }
    return Box(words=Words(text=words, size=size, bold=bold, ink=ink, anchor=anchor), style=style)


def column(*children: Box, gap: float = 4, padding: float | Side = 0, **rest: Any) -> Box:
    """Stack boxes; ``rest`` is style or a field of Box."""
    return _flex("column", children, gap, padding, rest)


def row(*children: Box, gap: float = 6, padding: float | Side = 0, **rest: Any) -> Box:
    """Put boxes side by side; ``rest`` is style or a field of Box."""
    return _flex("row", children, gap, padding, {"align_items": "center", **rest})


def grid(*children: Box, columns: int, gap: float = 8, shares: Mapping[int, float] | None = None) -> Box:
    """Put boxes into columns of one width, row after row, each row as high as its highest.

    ``shares`` gives columns, by their index, that are wider by this factor.
    """
    lines = []
    for start in range(0, len(children), columns):
        line = children[start : start + columns]
        cells = [_cell(child, (shares or {}).get(number, 1)) for number, child in enumerate(line)]
        # a padded box uses that much more of the width, and so must its placeholder
        blank = Box(style={"padding": line[0].style.get("padding", 0)})
        cells += [_cell(blank, 1) for _ in range(columns - len(line))]
        lines.append(row(*cells, gap=gap, align_items="stretch", flex_shrink=0))
    return column(*lines, gap=gap)


def _cell(box: Box, share: float) -> Box:
    return replace(box, style={**box.style, "flex_basis": 0, "flex_grow": share, "flex_shrink": 1, "min_size": (0, 0)})


def pill(words: str, *, kind: str, ink: str = "ink", title: str = "") -> Box:
    """Return a few words with rounded ends, for a flow."""
    size = (text_width(words, _PILL_FONT) + 13, 19)
    shown = Words(text=words, size=_PILL_FONT, ink=ink, anchor="middle")
    return Box(kind=kind, words=shown, radius=9.5, title=title, style={"size": size})


def flow(*pills: Box) -> Box:
    """Let pills fill the width, line after line."""
    return Box(flow=pills, style={"size": ("auto", 19), "flex_shrink": 0})


_PILL_FONT: Final = SMALLEST_FONT
_ANCHORS: Final[Mapping[Anchor, float]] = {"start": 0.0, "middle": 0.5, "end": 1.0}


def spacer() -> Box:
    """Return the space between two boxes of a row."""
    return Box(style={"flex_grow": 1})


def _flex(
    direction: Literal["row", "column"],
    children: Iterable[Box],
    gap: float,
    padding: float | Side,
    rest: Mapping[str, Any],
) -> Box:
    return _box(children, {"flex_direction": direction, "gap": gap, "padding": padding, **rest})


def _box(children: Iterable[Box], stated: Mapping[str, Any]) -> Box:
    style = dict(stated)
    own = {name: style.pop(name) for name in ("kind", "radius", "accent", "title", "level") if name in style}
    style.setdefault("min_size", (0, 0))
    style.setdefault("flex_shrink", 0 if stated.get("flex_direction") == "column" else 1)
    return Box(children=tuple(children), style=style, **own)


def lay_out(root: Box, width: float) -> Placed:
    """Place a box and all that is in it; it is ``width`` pixels wide and as high as it needs."""
    return _Layout().lay_out(root, width)


_STYLES: Final[dict[str, Any]] = {}


class _Layout:
    def __init__(self) -> None:
        # not at the module's top: importing it takes 40 ms, which a report without a picture does not need
        import attrs  # noqa: PLC0415
        import stretchable  # noqa: PLC0415
        from stretchable import style  # noqa: PLC0415

        # every node is drawn: asking each for all of its parents takes longer than the layout
        self._node: Callable[..., Any] = type("Shown", (stretchable.Node,), {"is_visible": True})
        self._evolved: Callable[..., Any] = attrs.evolve
        self._auto = style.AUTO
        self._words: Mapping[str, Any] = {"flex_direction": style.FlexDirection, "align_items": style.AlignItems}
        self._lengths = {"auto": style.AUTO, "100%": 100 * style.PCT}
        self._plain = style.Style()
        self._flows: list[tuple[Box, Any]] = []
        self._levels: dict[str, list[Any]] = {}

    def lay_out(self, root: Box, width: float) -> Placed:
        direction = self._words["flex_direction"].COLUMN
        outer = self._node(self._made(root), flex_direction=direction, size=(width, self._auto))
        outer.compute_layout()
        # the height of a flow depends on its width, which is known only now
        for box, made in self._flows:
            last = list(_flowed(box.flow, 0, 0, made.get_box().width))[-1]
            made.style = self._evolved(made.style, size=(self._auto, last.y + last.height))
        if self._flows:
            outer.compute_layout()
        for members in self._levels.values():
            height = max(made.get_box().height for made in members)
            for made in members:
                made.style = self._evolved(made.style, min_size=(0, height))
        if self._levels:
            outer.compute_layout()
        return self._placed(root, outer[0], 0, 0)

    def _made(self, box: Box) -> Any:
        made = self._node(*(self._made(child) for child in box.children), style=self._style(box))
        if box.flow:
            self._flows.append((box, made))
        if box.level:
            self._levels.setdefault(box.level, []).append(made)
        return made

    def _style(self, box: Box) -> Any:
        # stretchable takes a millisecond to create a style: most boxes differ only in their size, and there are few
        # sizes; a style never changes, so the next picture can use it, too
        rest = {name: value for name, value in box.style.items() if name != "size"}
        key = repr(rest)
        if key not in _STYLES:
            values = {name: self._converted(name, value) for name, value in rest.items()}
            _STYLES[key] = self._evolved(self._plain, **values)
        if "size" not in box.style:
            return _STYLES[key]
        sized = f"{key} {box.style['size']!r}"
        if sized not in _STYLES:
            _STYLES[sized] = self._evolved(_STYLES[key], size=self._converted("size", box.style["size"]))
        return _STYLES[sized]

    def _converted(self, name: str, value: Any) -> Any:
        if name in self._words:
            return self._words[name][value.upper().replace("-", "_")]
        if name in ("size", "min_size", "max_size"):
            return tuple(self._lengths.get(each, each) for each in value)
        return value

    def _placed(self, box: Box, laid: Any, x: float, y: float) -> Placed:
        own = laid.get_box()
        left, top = x + own.x, y + own.y
        children = tuple(self._placed(child, each, left, top) for child, each in zip(box.children, laid, strict=True))
        if box.flow:
            children = tuple(_flowed(box.flow, left, top, own.width))
        return Placed(box=box, x=left, y=top, width=own.width, height=own.height, children=children)


def _flowed(boxes: Iterable[Box], x: float, y: float, width: float) -> Iterator[Placed]:
    """Put boxes with a fixed size side by side, as many as fit, then into the next line."""
    left, top, lowest = x, y, 0.0
    for box in boxes:
        wanted, height = box.style["size"]
        own = min(wanted, width)
        if left > x and left + own > x + width:
            left, top, lowest = x, top + lowest + FLOW_GAP, 0.0
        inside = Placed(box=Box(words=box.words), x=left + 6, y=top, width=own - 12, height=height)
        yield Placed(box=replace(box, words=None), x=left, y=top, width=own, height=height, children=(inside,))
        left += own + FLOW_GAP
        lowest = max(lowest, height)


def paint(picture: Picture, placed: Placed) -> None:
    """Draw a placed box and all that is in it."""
    box = placed.box
    if box.title:
        with picture.group(box.title):
            _paint(picture, placed)
    else:
        _paint(picture, placed)


def _paint(picture: Picture, placed: Placed) -> None:
    box = placed.box
    if box.kind:
        picture.rect(placed.x, placed.y, placed.width, placed.height, kind=box.kind, radius=box.radius)
    if box.accent:
        picture.rect(placed.x + 5, placed.y + 8, 3, placed.height - 16, kind=box.accent, radius=1.5)
    if box.paint is not None:
        box.paint(picture, placed)
    if box.words is not None:
        words = box.words
        picture.text(
            placed.x + placed.width * _ANCHORS[words.anchor],
            placed.y + placed.height / 2 + words.size * 0.35,
            words.text,
            size=words.size,
            kind=words.ink,
            bold=words.bold,
            width=placed.width,
            anchor=words.anchor,
        )
    for child in placed.children:
        paint(picture, child)
