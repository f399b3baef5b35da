"""The deployment's timeline as a picture: a bar for every step with a duration, grouped by stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hyperpod_cdk.review.model import Minutes, Step, Timeline
from hyperpod_cdk.review.pictures.svg import DASH, SMALLEST_FONT, Picture, text_width

WIDTH: Final = 1200
ROWS: Final = 40
"""Rows at most; the rest is folded."""

QUICK_MINUTES: Final = 1.0
"""A step that takes less at most has no row of its own."""

_LABELS: Final = 340
_RIGHT: Final = 120
_TOP: Final = 92
_ROW: Final = 25
_BAR: Final = 13
_EDGE: Final = 20
_RULES: Final = {
    "grid": "stroke:{line};stroke-width:1;stroke-dasharray:2 4",
    "band": "fill:{frame}",
    "low": "fill:{network}",
    "high": "fill:{network};opacity:.32",
    "low-critical": "fill:{nodes}",
    "high-critical": "fill:{nodes};opacity:.36",
    "low-delete": "fill:{removed}",
    "high-delete": "fill:{removed};opacity:.34",
}


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row of the picture: a stack, a step or folded quick steps. ``spans`` are its bars without a low half."""

    label: str
    steps: tuple[Step, ...]
    is_stack: bool = False
    is_folded: bool = False
    note: str = ""


def gantt(timeline: Timeline) -> str:
    """Draw the timeline as SVG, 1200 wide; ``viewBox`` lets it scale.

    A bar begins where its step begins if everything is slow. Its full half is the shortest duration, its pale half the
    longest one. Steps of less than a minute are one row for each stack.
    """
    rows = _rows(timeline)
    height = _TOP + _ROW * len(rows) + 26 + _EDGE
    title = f"Deployment in {_range(timeline.total)}, {len(timeline.steps)} steps" if rows else "Nothing to deploy"
    picture = Picture(WIDTH, height, title, rules=_RULES)
    picture.text(_EDGE, 38, title, size=20, bold=True, width=WIDTH - 2 * _EDGE)
    if not rows:
        return picture.render()
    _legend(picture, rows)
    scale = (WIDTH - _LABELS - _RIGHT) / max(timeline.total.high, 1e-9)
    bottom = _TOP + _ROW * len(rows)
    for number, row in enumerate(rows):
        if row.is_stack:
            picture.rect(_EDGE / 2, _TOP + _ROW * number, WIDTH - _EDGE, _ROW, kind="band", radius=5)
    for minute in _ticks(timeline.total.high):
        x = _LABELS + minute * scale
        picture.line(x, _TOP, x, bottom, kind="grid")
        picture.text(x, bottom + 18, f"{minute:g}", size=SMALLEST_FONT, kind="muted", anchor="middle")
    picture.text(WIDTH - _EDGE, bottom + 18, "minutes", size=SMALLEST_FONT, kind="muted", anchor="end")
    for number, row in enumerate(rows):
        _draw(picture, row, _TOP + _ROW * number, scale)
    return picture.render()


def _rows(timeline: Timeline) -> list[_Row]:
    stacks: dict[str, list[Step]] = {}
    for step in timeline.steps:
        stacks.setdefault(step.stack, []).append(step)
    shown_stacks = list(stacks.items())
    room = ROWS - 2 * len(shown_stacks)
    if room < 0:
        shown_stacks = shown_stacks[: ROWS - 1]
    long = [step for step in timeline.steps if step.lasts.high >= QUICK_MINUTES]
    long.sort(key=lambda step: (-step.lasts.high, not step.is_critical))
    kept = {(step.stack, step.logical_id, step.action) for step in _varied(long)[: max(room, 0)]}
    rows: list[_Row] = []
    for stack, steps in shown_stacks:
        rows.append(_Row(label=stack, steps=tuple(steps), is_stack=True))
        own = [step for step in steps if (step.stack, step.logical_id, step.action) in kept]
        own.sort(key=lambda step: (step.starts.high, step.lasts.high))
        rows += [_Row(label=_label(step), steps=(step,)) for step in own]
        folded = [step for step in steps if (step.stack, step.logical_id, step.action) not in kept]
        if folded and room >= 0:
            are_quick = all(step.lasts.high < QUICK_MINUTES for step in folded)
            kind = "quick " if are_quick else "more "
            label = f"{len(folded)} {kind}{'step' if len(folded) == 1 else 'steps'}"
            rows.append(_Row(label=label, steps=tuple(folded), is_folded=True))
    left = [step for stack, steps in list(stacks.items())[len(shown_stacks) :] for step in steps]
    if left:
        rows.append(_Row(label=f"{len(stacks) - len(shown_stacks)} more stacks", steps=tuple(left), is_stack=True))
    return rows


def _varied(steps: Sequence[Step]) -> list[Step]:
    """Put the first of every type of a stack before the second of any, so that many of one type do not hide the
    rest."""
    seen: dict[tuple[str, str], int] = {}
    ranks = []
    for step in steps:
        rank = seen[step.stack, step.type] = seen.get((step.stack, step.type), -1) + 1
        ranks.append(rank)
    return [step for _, step in sorted(zip(ranks, steps, strict=True), key=lambda pair: pair[0])]


def _label(step: Step) -> str:
    return step.name if step.action == "create" else f"{step.action} {step.name}"


def _draw(picture: Picture, row: _Row, top: float, scale: float) -> None:
    bar = top + (_ROW - _BAR) / 2
    with picture.group(_tooltip(row)):
        indent = _EDGE if row.is_stack else _EDGE + 16
        picture.text(
            indent,
            top + 17,
            row.label,
            size=13 if row.is_stack else 12,
            bold=row.is_stack,
            kind="muted" if row.is_folded else "ink",
            width=_LABELS - indent - 12,
        )
        end = _LABELS + max(step.starts.high + step.lasts.high for step in row.steps) * scale
        if row.is_stack:
            begin = min(step.starts.high for step in row.steps)
            end_minute = max(step.starts.high + step.lasts.high for step in row.steps)
            words = f"{_short(begin)} {DASH} {_short(end_minute)} min"
            picture.rect(
                _LABELS + begin * scale,
                top + _ROW / 2 - 1.5,
                end - _LABELS - begin * scale,
                3,
                kind="muted",
                radius=1.5,
            )
        elif row.is_folded:
            for begin, stop in _merged(row.steps):
                picture.rect(
                    _LABELS + begin * scale, bar + 3, max((stop - begin) * scale, 2), _BAR - 6, kind="high", radius=2
                )
            words = ""
        else:
            (step,) = row.steps
            which = "-delete" if step.action == "delete" else "-critical" if step.is_critical else ""
            x = _LABELS + step.starts.high * scale
            picture.rect(x, bar, max(step.lasts.high * scale, 3), _BAR, kind=f"high{which}", radius=3)
            picture.rect(x, bar, max(step.lasts.low * scale, 3), _BAR, kind=f"low{which}", radius=3)
            words = _range(step.lasts)
        picture.text(end + 8, top + 17, words, size=SMALLEST_FONT, kind="muted", width=WIDTH - _EDGE / 2 - end - 8)


def _legend(picture: Picture, rows: Sequence[_Row]) -> None:
    x = float(_EDGE)
    steps = [row.steps[0] for row in rows if not (row.is_stack or row.is_folded)]
    entries = [("low-critical", "high-critical", "critical path: the deployment is late if this is")]
    if any(not step.is_critical and step.action != "delete" for step in steps):
        entries.append(("low", "high", "has time"))
    if any(step.action == "delete" for step in steps):
        entries.append(("low-delete", "high-delete", "deletion"))
    for low, high, words in entries:
        picture.rect(x, 57, 34, _BAR, kind=high, radius=3)
        picture.rect(x, 57, 16, _BAR, kind=low, radius=3)
        picture.text(x + 42, 68, words, size=12, kind="muted")
        x += 42 + text_width(words, 12) + 24
    picture.text(x, 68, "full: at least, pale: at most", size=12, kind="muted", width=WIDTH - _EDGE - x)


def _tooltip(row: _Row) -> str:
    if row.is_stack:
        return f"{row.label}: {len(row.steps)} steps"
    if row.is_folded:
        names = [f"{step.action} {step.name}" for step in row.steps[:20]]
        more = f" and {len(row.steps) - 20} more" if len(row.steps) > 20 else ""
        return ", ".join(names) + more
    (step,) = row.steps
    return (
        f"{step.action} {step.name} ({step.type}): {_range(step.lasts)}, from minute {_short(step.starts.low)} to "
        f"{_short(step.starts.high)} on. {step.source}. If it fails: {step.if_it_fails}"
    )


def _merged(steps: Iterable[Step]) -> list[tuple[float, float]]:
    """Join spans that touch."""
    spans: list[tuple[float, float]] = []
    for begin, end in sorted((step.starts.high, step.starts.high + step.lasts.high) for step in steps):
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return spans


def _ticks(total: float) -> list[float]:
    step = next((step for step in (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 240, 480) if total / step <= 14), 960)
    return [step * number for number in range(int(total / step) + 1)]


def _range(minutes: Minutes) -> str:
    low, high = _short(minutes.low), _short(minutes.high)
    return f"{high} min" if low == high else f"{low} {DASH} {high} min"


def _short(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 or minutes == int(minutes) else f"{minutes:.1f}"
