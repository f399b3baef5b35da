"""Turns a bundle of 'observe' into a fixture of the embedded AWS and a proposed change of the catalog.

Writes account.yaml, for 'rehearse --account-file', and catalog.diff, to be reviewed and applied with 'git apply'.
The catalog is not changed. Deviations that fit in neither file are listed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent.parent))


from hyperpod_cdk.catalog import _data, answers
from hyperpod_cdk.living.observing.comparison import is_outside, range_of
from hyperpod_cdk.living.observing.model import Bundle, Form, Operation
from hyperpod_cdk.living.observing.pages import BundleError, read_bundle
from hyperpod_cdk.review.pages.wording import visible
from scripts.refresh_catalog import ROOT, dump

PLAYED = ("cloudformation", "eks", "fsx", "sagemaker")
"""Services whose responses the embedded AWS creates itself; moto's responses are unchanged."""

_OF_FORM: Mapping[Form, Any] = {
    "structure": {"observed": "observed"},
    "map": {"observed": "observed"},
    "list": ["observed"],
    "string": "observed",
    "boolean": True,
    "integer": 7,
    "float": 7.5,
}
"""A value of each type that an account file can contain."""


def main(arguments: list[str] | None = None) -> int:
    """Write both files, and print what neither contains; returns 1 if the input is not a bundle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "replay", help="folder to write")
    asked = parser.parse_args(arguments)
    try:
        bundle = read_bundle(asked.bundle)
        account, change = yaml.safe_dump(fixture_of(bundle), sort_keys=False), "".join(proposed(bundle))
        asked.out.mkdir(parents=True, exist_ok=True)
        fixture, diff = asked.out / "account.yaml", asked.out / "catalog.diff"
        fixture.write_text(account, encoding="utf-8")
        diff.write_text(change, encoding="utf-8")
    except BundleError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{asked.out}: cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"wrote {fixture} and {diff}")
    for each in by_hand(bundle):
        print(f"by hand: {visible(each)}")
    return 0


def fixture_of(bundle: Bundle) -> dict[str, Any]:
    """Return the account file for the observed responses, as far as it can describe them."""
    members = [each for operation in bundle.answers if _is_played(operation) for each in _members(operation)]
    times = [
        {"type": each.type, "action": each.action, "minutes": round(sum(each.seconds) / len(each.seconds) / 60, 3)}
        for each in bundle.times
        if is_outside(each)
    ]
    return {"observed": {"members": members, "times": times}}


def proposed(bundle: Bundle) -> Iterator[str]:
    """Yield the change of the catalog's tables that the bundle suggests, as a unified diff."""
    for name, change in (("durations", _durations), ("answers", _answers)):
        old = _data.load(name)
        path = (_data.DIRECTORY / f"{name}.json").relative_to(ROOT).as_posix()
        before, after = dump(old), dump(change(old, bundle))
        lines = unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}", n=1
        )
        yield from lines


def by_hand(bundle: Bundle) -> Iterator[str]:
    """Yield the deviations that neither the fixture nor the proposed change contains."""
    for each in bundle.deviations:
        if each.table in ("updates", "messages") or _is_item(each.row):
            yield f"{each.table}: {each.row}: assumed {each.assumed}, observed {each.observed}"


def _is_played(operation: Operation) -> bool:
    return operation.operation.partition(":")[0] in PLAYED


def _members(operation: Operation) -> Iterator[dict[str, Any]]:
    rows = answers.members(operation.operation) or {}
    for member in operation.members:
        place = {"operation": operation.operation, "place": member.place}
        if _is_item(member.place):
            continue
        if rows.get(member.place) and member.came < member.of:
            yield {**place, "is_left_out": True, **({"only_first": True} if member.came else {})}
        for word in member.unpublished:
            yield {**place, "value": word, "only_first": True}
        for form in set(member.mistyped) & set(_OF_FORM):
            yield {**place, "value": _OF_FORM[form], "only_first": True}


def _is_item(place: str) -> bool:
    """Return whether a place is in an item of a list, which an account file cannot describe."""
    return place.endswith(("[]", "{}"))


def _durations(document: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    rows = [dict(row) for row in document["durations"]]
    source = f"observed-{bundle.region}"
    is_changed = False
    for each in bundle.times:
        if not is_outside(each) or each.type == "Custom::*":
            continue
        is_changed = True
        assumed = range_of(each)
        low, high = min(each.seconds) / 60, max(each.seconds) / 60
        seen = {"low": round(min(low, assumed.low), 2) or 0.01, "high": round(max(high, assumed.high), 2)}
        mine = [row for row in rows if _is_of(row, each.type, each.action, each.when)]
        for row in mine:
            row.update(seen, source=f"{row['source']}, {source}")
        if not mine:
            when = {"when": each.when} if each.when else {}
            rows.append({"type": each.type, "action": each.action, **seen, "source": source, **when})
    told = f"bundle of observe, hyperpod-cdk {bundle.made_by}, {bundle.region}"
    sources = {**document["sources"], **({source: told} if is_changed else {})}
    return {**document, "sources": sources, "durations": rows}


def _is_of(row: Mapping[str, Any], kind: str, action: str, when: str | None) -> bool:
    return (row["type"], row["action"]) == (kind, action) and when in (None, row.get("when", ""))


def _answers(document: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    rows, defaults = dict(document["answers"]), dict(document["defaults"])
    for operation in bundle.answers:
        known = answers.members(operation.operation)
        if known is None:
            continue
        for member in operation.members:
            if known.get(member.place) and member.came < member.of:
                rows[f"{operation.operation} {member.place}"] = "sometimes"
    for filled in bundle.defaults:
        values = answers.default(filled.type, filled.place)
        new = [each for each in filled.values if values is not None and each not in values]
        if values is not None and new:
            is_own = any(each.startswith("<") for each in new)
            defaults[f"{filled.type} {filled.place}"] = answers.ANY if is_own else sorted({*values, *new})
    return {**document, "answers": dict(sorted(rows.items())), "defaults": dict(sorted(defaults.items()))}


if __name__ == "__main__":
    sys.exit(main())
