"""The report as a comment on a pull request, in the Markdown that GitHub and GitLab render."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial

from hyperpod_cdk.review.model import Report, Step, Timeline
from hyperpod_cdk.review.pages.page import (
    APPROVAL,
    EXCEPTED,
    LOOK,
    NOTHING_BESIDES,
    NOTHING_TO_LOOK_AT,
    Block,
    Cell,
    Entry,
    Listing,
    Many,
    Moved,
    Page,
    Row,
    Section,
    Table,
    Tone,
    Word,
    joined,
)
from hyperpod_cdk.review.pages.sections import page
from hyperpod_cdk.review.pages.wording import shortened, shortened_pair, visible

GITHUB_LIMIT = 65_536
"""GitHub refuses a comment with more characters."""

SMALLEST_LIMIT = 16_384
"""Below this the verdict alone may not fit, whatever a template contains."""

ICONS: dict[Tone, str] = {
    "grave": "\U0001f534",
    "warning": "\U0001f7e0",
    "doubt": "\U0001f7e1",
    "calm": "\U0001f535",
    "good": "\U0001f7e2",
    "plain": "",
}
MOST_OPEN = 12
"""A table or list with more rows is folded into ``<details>``."""

CAPS = (40, 10, 0)
"""The numbers of rows of each table that are kept, step by step, until the comment fits; with 0 a section is its lead
alone."""

VALUE = 240
TEXT = 600
SENTENCE = 1_200
_TASKS = 30
_SHORTEST_ROW = 16
_MORE = "and {:,} more (see the HTML report)"

_SPECIAL = re.compile(r"[\\`*_\[\]~|<>&]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;"}
_BLOCK_START = re.compile(r"^(\d+(?=[.)])|(?=[#+=-]))(.)")
_LIVE = re.compile(
    r"@|\$|#\d|\bgh-\d|://|\bwww\.|\bmailto:|\bxmpp:|:[a-z0-9_+-]+:|^\W*[0-9a-f]{7,40}\W*$", re.IGNORECASE
)
"""A word that GitHub interprets after Markdown (mention, mathematics, issue, commit, address, emoji): as a code span it
stays as it is."""
_ADDRESS = re.compile(r"https://[\w./?=&%#~+,:;@-]+")


def markdown(report: Report, *, limit: int = GITHUB_LIMIT) -> str:
    """Return the comment, shorter than ``limit`` characters and UTF-16 units, with the least important parts cut first.

    Its first line is ``marker(report.environment)``. The verdict and what a reviewer must look at are complete as long
    as they fit. Raises ValueError for a limit below ``SMALLEST_LIMIT``.
    """
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"limit: must be {SMALLEST_LIMIT} or more, got {limit}")
    laid_out = page(report)
    parts = [_part(section) for section in laid_out.sections]
    gantt = _gantt(report.timeline)
    parts = [replace(each, pieces=(*gantt, *each.pieces)) if each.key == "timeline" else each for each in parts]
    top = _top(laid_out)
    parts_above = ((APPROVAL, laid_out.reasons), (EXCEPTED, laid_out.excepted))
    above = [*parts_above, (LOOK, laid_out.attention)]
    looked_at = partial(_attention, [title for title, _ in above], because=_cell(laid_out.because))
    attention = [[_entry(each) for each in entries] for _, entries in above]
    texts = [""] * len(parts)
    # a section that cannot fit need not be rendered
    if sum(len(piece.rows) for part in parts for piece in part.pieces) * _SHORTEST_ROW < limit:
        texts = [each.text(None) for each in parts]
        if _fits(limit, top, *looked_at(attention), *texts):
            return _document(top, *looked_at(attention), *texts)
    else:
        texts = [each.text(MOST_OPEN * 10) for each in parts]
    attention = [[_entry(each, with_all=False) for each in entries] for _, entries in above]
    for cap in CAPS:
        for index in reversed(range(len(parts))):
            texts[index] = parts[index].text(cap)
            if _fits(limit, top, *looked_at(attention), *texts):
                return _document(top, *looked_at(attention), *texts)
    attention = [[_entry(replace(each, lines=())) for each in entries] for _, entries in above]
    kept = sum(map(len, attention))
    while not _fits(limit, top, *looked_at(attention, kept), *texts):
        kept = kept * 3 // 4
    return _document(top, *looked_at(attention, kept), *texts)


def marker(environment: str) -> str:
    """Return the hidden first line by which a workflow finds its comment and updates it in place."""
    name = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9_.-]", "-", environment))[:100].strip("-")
    return f"<!-- hyperpod-cdk review: {name} -->"


@dataclass(frozen=True)
class _Piece:
    """A table or list: ``rows`` can be cut at the end, ``folded`` puts it into ``<details>``."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[Row | Cell | Entry | str]
    tail: tuple[str, ...] = ()
    folded: bool = False

    def text(self, cap: int | None) -> str:
        shown = [_rendered(each, with_all=cap is None) for each in self.rows[:cap]]
        left = _number(self.rows[len(shown) :])
        # a table's last row would need its columns, so the rest is a line below it
        after = ["", f"*… {_MORE.format(left)}*"] if left else []
        lines = "\n".join([*self.head, *shown, *self.tail, *after])
        if not self.folded:
            return f"**{self.title}**\n\n{lines}" if self.title else lines
        title = self.title or "All"
        return f"<details>\n<summary>{title} ({_number(self.rows):,})</summary>\n\n{lines}\n\n</details>"


def _number(rows: Iterable[Row | Cell | Entry | str]) -> int:
    """Return how many things these are; an entry may be many."""
    return sum(each.number if isinstance(each, Entry) else 1 for each in rows)


@dataclass(frozen=True)
class _Part:
    """A section."""

    key: str
    title: str
    lead: str
    pieces: tuple[_Piece, ...]

    def text(self, cap: int | None) -> str:
        heading = f"### {self.title}\n\n{self.lead}"
        if cap == 0 and self.pieces:
            return f"{heading} (See the HTML report.)"
        return "\n\n".join([heading, *(piece.text(cap) for piece in self.pieces)])


def _document(*texts: str) -> str:
    return "\n\n".join(texts) + "\n"


def _fits(limit: int, *texts: str) -> bool:
    # GitHub counts characters; a database that counts UTF-16 units counts an emoji twice
    return len(_document(*texts).encode("utf-16-le")) // 2 < limit


def _top(laid_out: Page) -> str:
    icon = ICONS[laid_out.tone]
    environment = prose(shortened(laid_out.environment, 100))
    lines = [
        marker(laid_out.environment),
        "",
        f"**{prose(shortened(laid_out.approval, SENTENCE))}**",
        "",
        f"## {icon} {laid_out.level}: review of {environment}",
        "",
        f"**{prose(shortened(laid_out.sentence, SENTENCE))}**",
        "",
    ]
    figures = " · ".join(f"{prose(figure.title)} {_cell(figure.value)}" for figure in laid_out.figures)
    return "\n".join([*lines, *([figures, ""] if figures else []), f"{_cell(laid_out.compared)}."])


def _attention(
    titles: Sequence[str], listed: Sequence[Sequence[str]], kept: int | None = None, *, because: str
) -> tuple[str, ...]:
    """Return the lists above the sections; of all their entries the first ``kept``."""
    texts: list[str] = []
    room = sum(map(len, listed)) if kept is None else kept
    said = [f"{because}.", ""] if because else []
    is_asked = any(entries for title, entries in zip(titles, listed, strict=True) if title == APPROVAL)
    for title, entries in zip(titles, listed, strict=True):
        shown, left = entries[:room], len(entries[room:])
        room -= len(shown)
        if entries:
            after = [f"- … {_MORE.format(left)}"] if left else []
            texts.append("\n".join([f"### {title}", "", *said, *shown, *after]))
            said = []
        elif title == LOOK:
            # every list but this one is omitted if it is empty
            texts.append(f"### {title}\n\n{NOTHING_BESIDES if is_asked else NOTHING_TO_LOOK_AT}")
    return tuple(texts)


def _part(section: Section) -> _Part:
    pieces = [piece for block in section.blocks for piece in _pieces(block)]
    return _Part(section.key, section.title, _cell(section.lead), tuple(pieces))


def _pieces(block: Block) -> Iterable[_Piece]:
    if isinstance(block, Table):
        yield _table(block)
    elif isinstance(block, Listing):
        yield _Piece(block.title, (), block.items, folded=len(block.items) > MOST_OPEN)
    else:
        opened = [each for each in block.entries if not each.folded]
        others = [each for each in block.entries if each.folded]
        if opened:
            yield _Piece("" if len(opened) <= MOST_OPEN else block.title, (), opened, folded=len(opened) > MOST_OPEN)
        if others:
            yield _Piece("Others" if opened else block.title, (), others, folded=True)


def _table(table: Table) -> _Piece:
    head = (
        f"| {' | '.join(column.title for column in table.columns)} |",
        f"|{'|'.join('---:' if column.is_number else '---' for column in table.columns)}|",
    )
    return _Piece(table.title, head, table.rows, folded=len(table.rows) > MOST_OPEN)


def _rendered(row: Row | Cell | Entry | str, *, with_all: bool) -> str:
    if isinstance(row, Row):
        return f"| {' | '.join(_cell(cell, in_table=True) for cell in row.cells)} |"
    if isinstance(row, Entry):
        return _entry(row, with_all=with_all)
    return row if isinstance(row, str) else f"- {_cell(row)}"


def _entry(entry: Entry, *, with_all: bool = True) -> str:
    """Return an entry; ``with_all`` is whether all items of a combined entry are listed, folded, or left to the HTML
    report."""
    lines = [f"- {_cell((entry.badge, *entry.name))}"]
    for line in entry.lines:
        lines.append(f"  - {_cell(line.some if isinstance(line, Many) else line)}")
        if isinstance(line, Many) and with_all:
            every = "\n".join(f"    - {_cell(one)}" for one in line.all)
            lines.append(f"    <details><summary>All {len(line.all):,}</summary>\n\n{every}\n\n    </details>")
    return "\n".join(lines)


def _cell(cell: Cell, *, in_table: bool = False) -> str:
    return joined(cell, lambda piece: _piece(piece, in_table=in_table))


def _piece(piece: Word | Moved, *, in_table: bool) -> str:
    if isinstance(piece, Moved):
        return _moved(piece, in_table=in_table)
    text = shortened(piece.text, VALUE if piece.style == "code" else TEXT)
    if piece.style in ("code", "amount"):
        return code(text, in_table=in_table)
    if piece.style == "badge":
        return f"{ICONS[piece.tone]} **{prose(text, in_table=in_table)}**".lstrip()
    if piece.style == "strong":
        return f"**{prose(text, in_table=in_table)}**"
    if piece.style == "source":
        return f"([source]({text}))" if _ADDRESS.fullmatch(text) else f"({prose(text, in_table=in_table)})"
    return prose(text, in_table=in_table)


def _moved(moved: Moved, *, in_table: bool) -> str:
    before, after = moved.before, moved.after
    unit = f" {moved.unit}" if moved.unit else ""
    if moved.style == "value":
        if before is not None and after is not None:
            before, after = shortened_pair(before, after, VALUE)
        ends = [
            "(none)" if each is None else code(shortened(each, VALUE), in_table=in_table) for each in (before, after)
        ]
        return " -> ".join(ends)
    shown = str(after) if before == after else f"{before} -> {after}"
    if moved.style == "number":
        return f"{shown}{unit}{f' ({moved.difference})' if moved.difference else ''}"
    # two dollar signs in a line would be mathematics for GitHub, but not in a code span
    return f"`{shown}`{unit}{f' (`{moved.difference}`)' if moved.difference else ''}"


@cache
def prose(text: str, *, in_table: bool = False) -> str:
    words = [code(word, in_table=in_table) if _LIVE.search(word) else _escaped(word) for word in text.split()]
    return _BLOCK_START.sub(r"\1\\\2", " ".join(words))


def _escaped(word: str) -> str:
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[0]) or f"\\{found[0]}", word)


def code(text: str, *, in_table: bool = False) -> str:
    if not text.strip():
        return "(empty)"
    if "`" in text:
        runs = {len(run) for run in re.findall("`+", text)}
        fence = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
        text = f"{fence} {text} {fence}"
    else:
        text = f"`{text}`"
    # a table is split into cells before code spans are recognized
    return text.replace("|", "\\|") if in_table else text


def _gantt(timeline: Timeline) -> tuple[_Piece, ...]:
    steps = sorted((each for each in timeline.steps if each.is_critical), key=lambda each: each.starts.high)[:_TASKS]
    if not steps:
        return ()
    head = (
        "```mermaid",
        "gantt",
        "    title Critical path at its longest, as hours and minutes after the start",
        "    dateFormat YYYY-MM-DD HH:mm:ss",
        "    axisFormat %H:%M",
        "    todayMarker off",
    )
    rows: list[str] = []
    stack = None
    for count, step in enumerate(steps, start=1):
        section = f"    section {_label(step.stack)}\n" if step.stack != stack else ""
        stack = step.stack
        rows.append(f"{section}    {_task(count, step)}")
    return (_Piece("", head, tuple(rows), tail=("```",)),)


def _task(count: int, step: Step) -> str:
    # any day will do: a chart has no other axis than the time of day
    starts = datetime(2000, 1, 1) + timedelta(minutes=step.starts.high)  # noqa: DTZ001 - mermaid shows local time
    seconds = max(round(step.lasts.high * 60), 1)
    return f"{count} {_label(step.name)} :{starts:%Y-%m-%d %H:%M:%S}, {seconds}s"


def _label(text: str) -> str:
    """Return text without characters that mermaid's grammar or a fenced block would interpret."""
    return " ".join(re.sub(r"[^\w./ -]", " ", visible(text)).split())[:60].rstrip() or "unnamed"
