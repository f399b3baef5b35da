"""The report on a terminal: the verdict, what to look at, and the most important part of every section."""

from __future__ import annotations

from typing import Final

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from hyperpod_cdk.review.model import Report
from hyperpod_cdk.review.pages.page import (
    APPROVAL,
    EXCEPTED,
    LOOK,
    NOTHING_BESIDES,
    NOTHING_TO_LOOK_AT,
    Block,
    Cell,
    Entries,
    Entry,
    Many,
    Moved,
    Row,
    Table,
    Tone,
    Word,
    spaced,
)
from hyperpod_cdk.review.pages.sections import page
from hyperpod_cdk.review.pages.wording import counted, shortened, shortened_pair

MOST_ROWS: Final = 12
"""The number of rows of each table that are shown; the file that ``--out`` writes has all."""

VALUE: Final = 120
_ANY_WIDTH: Final = 100_000
STYLES: Final[dict[Tone, str]] = {
    "grave": "bold red",
    "warning": "bold yellow",
    "doubt": "yellow",
    "calm": "blue",
    "good": "green",
    "plain": "",
}


def text(report: Report, console: Console) -> None:
    """Print the report; nothing in it is interpreted as rich's markup, and without color no word is missing."""
    laid_out = page(report)
    _print(console, Text(laid_out.approval, "bold"))
    _print(console, Text.assemble("Review of ", (shortened(laid_out.environment, VALUE), "bold")))
    _print(console, Text(laid_out.level.upper(), STYLES[laid_out.tone]))
    _print(console, Text(laid_out.sentence))
    _print(console, Text.assemble(_cell(laid_out.compared), ".", style="dim"))
    said = laid_out.because
    for title, entries in ((APPROVAL, laid_out.reasons), (EXCEPTED, laid_out.excepted), (LOOK, laid_out.attention)):
        if entries or title == LOOK:
            _heading(console, title)
        if entries and said:
            _print(console, Text.assemble(_cell(said), "."))
            said = ()
        for entry in entries:
            _entry(console, entry)
    if not laid_out.attention:
        _print(console, Text(NOTHING_BESIDES if laid_out.reasons else NOTHING_TO_LOOK_AT))
    for section in laid_out.sections:
        _heading(console, section.title)
        _print(console, _cell(section.lead))
        for block in section.blocks:
            _block(console, block)


def judgement(report: Report) -> tuple[str, ...]:
    """Return who must approve, and the monthly cost, as separate lines."""
    laid_out = page(report)
    costs = [f"{each.title}: {_cell(each.value).plain}" for each in laid_out.figures if each.is_cost]
    return laid_out.approval, *costs


def _print(console: Console, words: Text, indent: int = 0) -> None:
    for line in words.wrap(console, max(console.width - indent, 1)):
        line.rstrip()
        # without highlighting, so that a number in a name is not colored as one
        console.print(Text.assemble(" " * indent, line), highlight=False, no_wrap=True, crop=False)


def _heading(console: Console, title: str) -> None:
    console.print()
    _print(console, Text(title.upper(), "bold"))


def _block(console: Console, block: Block) -> None:
    if block.title:
        console.print()
        _print(console, Text(block.title, "bold underline"))
    if isinstance(block, Table):
        shown_table = _essential(block)
        same = sum(not row.changes for row in block.rows)
        if not shown_table.rows:
            _print(console, Text(f"{same:,} unchanged (--out writes all)", "dim"))
            return
        drawn = _table(shown_table)
        if Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), drawn).maximum <= console.width:
            console.print(drawn, highlight=False)
        else:
            # otherwise cells would be a word wide
            for row in shown_table.rows:
                _stacked(console, shown_table, row)
        _rest(console, len(block.rows) - same - MOST_ROWS)
        if same:
            _print(console, Text(f"and {same:,} unchanged (--out writes all)", "dim"))
    elif isinstance(block, Entries):
        shown = [each for each in block.entries if not each.folded][:MOST_ROWS]
        for entry in shown:
            _entry(console, entry)
        folded = [each for each in block.entries if each.folded][: MOST_ROWS - len(shown)]
        for entry in folded:
            # entries that need no look are only named
            _entry(console, Entry(entry.badge, entry.name))
        _rest(console, sum(each.number for each in block.entries) - sum(each.number for each in (*shown, *folded)))
    else:
        for item in block.items[:MOST_ROWS]:
            _print(console, Text.assemble("- ", _cell(item)), indent=2)
        _rest(console, len(block.items) - MOST_ROWS)


def _entry(console: Console, entry: Entry) -> None:
    _print(console, _cell((entry.badge, *entry.name)))
    for line in entry.lines[:MOST_ROWS]:
        _print(console, _cell(line.some if isinstance(line, Many) else line), indent=4)
    _rest(console, len(entry.lines) - MOST_ROWS, indent=4)


def _essential(table: Table) -> Table:
    """Return the first rows that change, without a column that only has the source of a number."""
    rows = [row for row in table.rows if row.changes][:MOST_ROWS]
    kept = [
        index
        for index in range(len(table.columns))
        if not all(
            isinstance(each, Word) and each.style in ("source", "faint") for row in rows for each in row.cells[index]
        )
    ]
    left = tuple(Row(tuple(row.cells[index] for index in kept), row.changes) for row in rows)
    return Table(table.title, tuple(table.columns[index] for index in kept), left)


def _table(table: Table) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for column in table.columns:
        drawn.add_column(column.title, justify="right" if column.is_number else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(_cell(cell) for cell in row.cells))
    return drawn


def _stacked(console: Console, table: Table, row: Row) -> None:
    first, *others = zip(table.columns, row.cells, strict=True)
    _print(console, _cell(first[1]))
    for column, cell in others:
        said = _cell(cell)
        if said:
            _print(console, Text.assemble((f"{column.title}: ", "dim"), said), indent=4)


def _rest(console: Console, left: int, indent: int = 0) -> None:
    if left > 0:
        _print(console, Text(f"and {counted(left, 'more', 'more')} (--out writes all)", "dim"), indent=indent)


def _cell(cell: Cell) -> Text:
    # an address is in the written files; here it would be longer than what it proves
    cell = tuple(piece for piece in cell if not (isinstance(piece, Word) and piece.style == "source"))
    words = Text()
    for space, piece in spaced(cell):
        words.append(space)
        words.append(_moved(piece) if isinstance(piece, Moved) else _word(piece), style=_style(piece))
    return words


def _style(piece: Word | Moved) -> str:
    if isinstance(piece, Moved):
        return ""
    if piece.style == "badge":
        return STYLES[piece.tone]
    return {"strong": "bold", "code": "cyan", "faint": "dim"}.get(piece.style, "")


def _word(word: Word) -> str:
    shown = shortened(word.text, VALUE if word.style == "code" else VALUE * 5)
    if word.style == "badge":
        return f"[{shown}]"
    return shown


def _moved(moved: Moved) -> str:
    before, after = moved.before, moved.after
    if moved.style == "value" and before is not None and after is not None:
        before, after = shortened_pair(before, after, VALUE)
    ends = ["(none)" if each is None else shortened(each, VALUE) or "(empty)" for each in (before, after)]
    shown = ends[1] if moved.style != "value" and ends[0] == ends[1] else " -> ".join(ends)
    unit = f" {moved.unit}" if moved.unit else ""
    return f"{shown}{unit}{f' ({moved.difference})' if moved.difference else ''}"
