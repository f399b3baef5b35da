"""Drift and status as text and JSON, and the JSON Schemas of the last."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from hyperpod_cdk.json_schema import as_text, schema_of_report
from hyperpod_cdk.living.model import Difference, Drift, Group, Status
from hyperpod_cdk.review.nouns import count, noun
from hyperpod_cdk.review.pages.wording import shortened, visible

WIDTH: Final = 80
_LONGEST_VALUE: Final = 60


def text(found: Drift) -> str:
    """Give the report for a terminal of 80 columns; what was not looked at is the caller's to add."""
    lines = [*_wrapped(f"{found.environment}: {found.verdict}")]
    place = ""
    for each in found.differences:
        here = f"{each.stack} / {each.resource} ({noun(each.type)})"
        if here != place:
            lines += ["", *_wrapped(here)]
        place = here
        lines += _told(each)
    lines += ["", *(line for note in found.notes for line in _wrapped(f"note: {note}"))] if found.notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def _told(each: Difference) -> Iterator[str]:
    yield f"  {each.path or 'the resource itself'}"
    values = (("deployed", each.deployed), ("file", each.file), ("AWS has", each.actual))
    for word, value in values:
        yield f"    {word:<9} {'-' if value is None else shortened(value, _LONGEST_VALUE)}"
    if each.since:
        yield f"    since     {each.since}"
    yield from _wrapped(f"next      {each.next.sentence}", indent="    ", hanging="              ")
    if each.next.later:
        yield from _wrapped(f"later     {each.next.later}", indent="    ", hanging="              ")


def _wrapped(line: str, *, indent: str = "", hanging: str = "  ") -> list[str]:
    return textwrap.wrap(
        line,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=hanging if indent else "  ",
        # what is copied stays in one piece
        break_long_words=False,
        break_on_hyphens=False,
    )


def drift_json(found: Drift) -> str:
    """Give the report as JSON: keys in the model's order, a newline at its end."""
    return found.model_dump_json(indent=2).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def drift_schema_text() -> str:
    """Give the JSON Schema (2020-12) of what ``drift_json`` writes, as the text of its file."""
    return as_text(schema_of_report(Drift, title="hyperpod-cdk drift"))


def status_text(found: Status) -> str:
    """Give the cluster on one screen of 80 columns; what was not looked at is the caller's to add."""
    lines = [*_wrapped(f"{found.environment}: {found.verdict}")]
    lines += _wrapped(f"failure: {found.failure}") if found.failure else []
    if found.groups:
        rows: list[tuple[str, ...]] = [("group", "type", "file", "wanted", "runs", "fails", "checks", "changes")]
        rows += [
            (
                each.name,
                _types(each),
                _number(each.in_file) if each.is_in_file else "none",
                str(each.target),
                *(_number(value) for value in (each.running, each.failing, each.checking, each.changing)),
            )
            for each in found.groups
        ]
        lines += ["", *_columns(rows)]
    for group in found.groups:
        for reason in group.reasons:
            lines += _wrapped(f"{group.name}, {count(reason.nodes, 'node')}: {reason.text}")
    for plan in found.plans:
        left = "" if plan.hours_left is None else f", its nodes leave in {plan.hours_left:g} h at {plan.nodes_leave}"
        lines += _wrapped(f"plan {plan.name}: {plan.status}{left}")
    for each in found.file_systems:
        size = f", {each.capacity_gib:,} GiB" if each.capacity_gib else ""
        lines += _wrapped(
            f"file system {each.name} ({each.id}): {each.lifecycle}{size}{f'. {each.reason}' * bool(each.reason)}"
        )
    lines += [""] if found.events else []
    for event in found.events:
        where = " ".join(part for part in (event.group, event.node) if part)
        lines += _wrapped(f"{event.time} {event.level} {where}: {event.text}")
    return "\n".join(visible(line) for line in lines) + "\n"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _types(group: Group) -> str:
    first, *others = group.instance_type.split(", ")
    return f"{first.removeprefix('ml.')}{f' +{len(others)}' if others else ''}"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give rows in columns; the first, the name of a group, gives way where a line would be too long."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1))
    for row in rows:
        name = row[0] if len(row[0]) <= widths[0] else f"{row[0][: widths[0] - 1]}…"
        cells = [name.ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        yield "  ".join(cells)


def status_json(found: Status) -> str:
    """Give the status as JSON: keys in the model's order, a newline at its end."""
    return found.model_dump_json(indent=2).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def status_schema_text() -> str:
    """Give the JSON Schema (2020-12) of what ``status_json`` writes, as the text of its file."""
    return as_text(schema_of_report(Status, title="hyperpod-cdk status"))
