"""Writes the responses of the embedded AWS to 'observe' into the catalog, as the assumed form of AWS's responses.

Deploys the given environments (default: all shipped ones) to the embedded AWS, one after another. With --check it only
prints what would change, and then exits with 1. Entries from other environments are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.answers import ALWAYS, ANY
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.living.observing.model import Bundle
from hyperpod_cdk.living.observing.observe import observe
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly, read_assembly
from scripts.refresh_catalog import dump
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.callers import with_callers
from tests.transitions.test_lives import ACCOUNT, SMALL, Life, living

FILE = _data.DIRECTORY / "answers.json"
SMALL_NAME = "small"
MOST_VALUES = 4
"""A place with more values than this depends on the environment."""


def main() -> int:
    """Write the table, or check whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="environments; default: all")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    document = json.loads(FILE.read_text(encoding="utf-8"))
    for name in arguments.names or [SMALL_NAME, *ENVIRONMENTS]:
        for bundle in observed(name):
            document = merged(document, bundle)
        print(name, flush=True)
        if not arguments.check:
            FILE.write_text(dump(document), encoding="utf-8")
    is_same = FILE.read_text(encoding="utf-8") == dump(document)
    if not is_same:
        print(f"{FILE.name} is out of date; run scripts/refresh_answers.py")
    return 0 if is_same else 1


def observed(name: str) -> Iterator[Bundle]:
    """Deploy an environment to the embedded AWS and observe it; the small one also after an update."""
    text = SMALL if name == SMALL_NAME else (PROJECT / ENVIRONMENTS[name]).read_text(encoding="utf-8")
    text = with_callers(text) if "  # public_access_cidrs:" in text else text
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        living(Path(folder), patch, text=text) as life,
    ):
        yield bundle_of(life)
        if name == SMALL_NAME:
            life.change(lambda data: data["hyperpod"].update(node_recovery="none"))
            yield bundle_of(life)


def bundle_of(life: Life) -> Bundle:
    """Observe the deployed environment."""
    return bundle_of_head(read_assembly(life.folder / f"assembly-{life.count}", life.data["name"]))


def bundle_of_head(head: Assembly, seen: Callable[[Api], Api] = lambda aws: aws) -> Bundle:
    """Observe the deployed stacks of an assembly; the environment variables contain AWS's endpoint."""
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    aws = LiveAws.open(region=head.region or "", account=ACCOUNT, own=own)
    return observe(seen(aws), head, now=datetime.now(UTC))


def merged(document: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    """Return the table with the entries of one more bundle."""
    answers, defaults = dict(document["answers"]), dict(document["defaults"])
    known = {row.partition(" ")[0] for row in answers}
    for operation in bundle.answers:
        for member in operation.members:
            row = f"{operation.operation} {member.place}"
            # a member that was missing in earlier responses with the same parent is optional
            is_first = operation.operation not in known or not _stood(operation.operation, member.place, answers)
            is_always = member.came == member.of and (answers[row] == ALWAYS if row in answers else is_first)
            if member.came or row in answers:
                answers[row] = ALWAYS if is_always else "sometimes"
    for filled in bundle.defaults:
        row = f"{filled.type} {filled.place}"
        before = defaults.get(row, [])
        values = ANY if before == ANY else sorted({*before, *filled.values})
        depends = len(values) > MOST_VALUES or any(each[0] in "<v0123456789" for each in values)
        defaults[row] = ANY if depends else values
    return {**document, "answers": dict(sorted(answers.items())), "defaults": dict(sorted(defaults.items()))}


def _stood(operation: str, place: str, rows: Mapping[str, str]) -> bool:
    """Return whether an earlier response had the parent of a member, and so could have had the member."""
    outer = place.rpartition(".")[0]
    return not outer or any(row.startswith(f"{operation} {outer}.") for row in rows)


if __name__ == "__main__":
    sys.exit(main())
