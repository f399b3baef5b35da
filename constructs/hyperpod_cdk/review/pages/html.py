"""The report as one HTML file without dependencies: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hyperpod_cdk.catalog.rules import slug
from hyperpod_cdk.review.model import Report
from hyperpod_cdk.review.pages.page import (
    APPROVAL,
    EXCEPTED,
    LOOK,
    NOTHING_BESIDES,
    NOTHING_TO_LOOK_AT,
    Cell,
    Moved,
    Word,
    joined,
)
from hyperpod_cdk.review.pages.sections import page
from hyperpod_cdk.review.pages.wording import shortened_pair

LONG = 300
"""A longer value is folded, and shown whole on demand."""

MOST_OPEN = 12
"""In a table with more rows those that do not change are hidden at first."""

_ADDRESS = re.compile(r"https?://\S+")


def html(report: Report, *, diagram: str | None = None, gantt: str | None = None) -> str:
    """Return the page. ``diagram`` and ``gantt`` are SVG that this package drew; they are embedded as they are.

    Every word of the report is escaped. The page forbids scripts and requests with its own content policy.
    """
    template = _environment().get_template("report.html.jinja")
    return template.render(
        page=page(report),
        diagram=Markup(diagram) if diagram else None,  # noqa: S704 - drawn by this package, which escapes its texts
        gantt=Markup(gantt) if gantt else None,  # noqa: S704 - as above
        most_open=MOST_OPEN,
        titles={
            "APPROVAL": APPROVAL,
            "EXCEPTED": EXCEPTED,
            "LOOK": LOOK,
            "NONE": NOTHING_TO_LOOK_AT,
            "BESIDES": NOTHING_BESIDES,
        },
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hyperpod_cdk.review.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cell": _cell, "key": slug}
    return environment


def _cell(cell: Cell) -> Markup:
    return Markup(joined(cell, _piece))  # noqa: S704 - every piece is escaped below


def _piece(piece: Word | Moved) -> str:
    if isinstance(piece, Moved):
        return _moved(piece)
    if piece.style == "code":
        return _value(piece.text)
    if not piece.text:
        return ""
    text = escape(piece.text)
    if piece.style == "source" and _ADDRESS.fullmatch(piece.text):
        return f'<a class="source" href="{text}" rel="noopener noreferrer">source</a>'
    return {
        "badge": f'<span class="badge {piece.tone}">{text}</span>',
        "strong": f"<strong>{text}</strong>",
        "amount": f'<span class="number">{text}</span>',
        "faint": f'<span class="faint">{text}</span>',
        "source": f'<span class="faint">({text})</span>',
        "plain": f'<span dir="auto">{text}</span>',
    }[piece.style]


def _moved(moved: Moved) -> str:
    if moved.style == "value":
        opening: tuple[str | None, str | None] = (None, None)
        if moved.before is not None and moved.after is not None and max(len(moved.before), len(moved.after)) > LONG:
            opening = shortened_pair(moved.before, moved.after, LONG // 2)
        ends = [
            '<span class="faint">(none)</span>' if each is None else _value(each, short)
            for each, short in zip((moved.before, moved.after), opening, strict=True)
        ]
        return f'<span class="was">{ends[0]}</span> {_ARROW} <span class="now">{ends[1]}</span>'
    unit = f" {escape(moved.unit)}" if moved.unit else ""
    after = f'<span class="number">{escape(moved.after)}</span>'
    if moved.before == moved.after:
        return f"{after}{unit}"
    by = f' <span class="by">({escape(moved.difference)})</span>' if moved.difference else ""
    return f'<span class="was number">{escape(moved.before)}</span> {_ARROW} {after}{unit}{by}'


_ARROW = '<span class="to" role="img" aria-label="becomes">→</span>'


def _value(text: str, short: str | None = None) -> str:
    if not text.strip():
        return '<span class="faint">(empty)</span>'
    if len(text) <= LONG:
        return f'<code dir="auto">{escape(text)}</code>'
    opening = short or f"{text[: LONG // 2]}…"
    return (
        f'<details class="long"><summary><code dir="auto">{escape(opening)}</code> '
        f'<span class="faint">({len(text):,} characters)</span></summary>'
        f'<code dir="auto">{escape(text)}</code></details>'
    )
