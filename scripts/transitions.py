"""Changes environments from one file to another with 'deploy', and counts the results that equal a fresh deployment.

Exits with 1 if one does not. `--pairs N` changes, by a printed seed, in `--workers` parallel chains; `--resume` omits
the chains that an earlier run completed. Results are recorded in .cache/transitions as they arrive.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import botocore.loaders
import botocore.session

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.assembly import PROJECT
from tests.support.pairs import Pair, chain

RESULTS = PROJECT / ".cache" / "transitions"
LENGTH = 3
"""Changes in a chain, each of which is also reverted unless it was refused; each file except the first and the last is
deployed from scratch once, for two of them."""

CHAINS_EACH = 8
"""The number of chains in one process, because jsii keeps every app in memory."""


def main() -> int:
    """Run the pairs, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--resume", action="store_true", help="omit the chains that are already completed")
    parser.add_argument("--minutes", type=float, help="start no chain after this time; continue with --resume")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / "pairs.jsonl"
    rows = _rows(file) if arguments.resume else []
    number = rows[0]["seed"] if rows else arguments.seed
    ended = {each["chain"] for each in rows if "ended" in each}
    rows = [each for each in rows if each["chain"] in ended]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    print(f"{arguments.pairs} pairs, seed {number}", flush=True)
    until = time.time() + 60 * arguments.minutes if arguments.minutes else None
    with ProcessPoolExecutor(
        arguments.workers, multiprocessing.get_context("spawn"), max_tasks_per_child=CHAINS_EACH
    ) as workers:
        running: set[Future[list[dict[str, Any]]]] = set()
        keys = (key for key in itertools.count(number * 1000) if key not in ended)
        while True:
            is_enough = len(_pairs(rows)) >= arguments.pairs or (until is not None and time.time() > until)
            while not is_enough and len(running) < arguments.workers:
                running.add(workers.submit(_chain, number, next(keys), file))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            rows += [row for each in done for row in each.result()]
    found = _pairs(rows)
    print("\n".join(told(found)))
    return 1 if any(each["problems"] for each in found) else 0


def _pairs(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in rows if "ended" not in each]


def _chain(number: int, key: int, file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    started = time.monotonic()
    # every boto3 session would read the models of services again: a third of the time of a pair
    botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)

    def note(row: dict[str, Any]) -> None:
        rows.append(row)
        with file.open("a", encoding="utf-8") as found:
            found.write(f"{json.dumps(row, default=str)}\n")

    def keep(pair: Pair) -> None:
        note({"seed": number, "chain": key, **pair.as_dict()})
        what = "refused" if pair.refused else f"{pair.steps} steps"
        met = f", {pair.trouble} met" if pair.met else ""
        bad = "".join(f"\n    {each}" for each in pair.problems[:6])
        print(f"  {key}: {pair.kind} ({pair.edit}): {what}{met} in {pair.seconds:.0f} s{bad}", flush=True)

    with tempfile.TemporaryDirectory(prefix="hyperpod-pairs-") as scratch:
        try:
            chain(key, LENGTH, Path(scratch), keep)
        except Exception:  # noqa: BLE001 - any exception is shown, and the next chain continues
            keep(Pair("chain", "", problems=[traceback.format_exc()]))
    note({"seed": number, "chain": key, "ended": True})
    print(f"  {key}: {time.monotonic() - started:.0f} s, of this process {time.process_time():.0f} s", flush=True)
    return rows


def told(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the table of the results, and why some pairs were refused."""
    kinds = ("none", "fault", "kill")
    columns = ("nothing", "a fault", "a kill", "all")

    def line(name: str, found: Sequence[dict[str, Any]]) -> str:
        numbers = [sum(each["trouble"] == kind for each in found) for kind in kinds]
        return f"{name:34}" + "".join(f"{number:>9}" for number in (*numbers, len(found)))

    good = [each for each in rows if not each["refused"] and not each["problems"]]
    yield f"{'on the way':34}" + "".join(f"{each:>9}" for each in columns)
    yield line("pairs", rows)
    yield line("refused before anything changed", [each for each in rows if each["refused"] and not each["problems"]])
    yield line("by one step, or nothing to do", [each for each in good if each["steps"] <= 1])
    yield line("by more steps", [each for each in good if each["steps"] > 1])
    yield line("wrong", [each for each in rows if each["problems"]])
    yield line("the fault or kill happened", [each for each in rows if each["met"]])
    yield line("and the next deployment ended it", [each for each in good if each["met"]])
    yield line("after 'recover', or a bucket deleted", [each for each in good if each.get("by_hand")])
    for reason, times in Counter(reason for each in rows for reason in each["refused"]).most_common():
        yield f"- {times} times: {reason}"


def _rows(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main())
