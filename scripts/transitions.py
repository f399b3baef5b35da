"""Takes environments from one file to another by 'deploy', and counts what ended as a fresh deployment would stand.

Exits 1 where one did not. `--pairs N` of them, by a seed that is told; `--resume` leaves out the chains that a run
before has ended. What was found is kept in .cache/transitions as it comes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.assembly import PROJECT
from tests.support.pairs import Pair, chain

RESULTS = PROJECT / ".cache" / "transitions"
LENGTH = 5
"""Pairs of a chain; each file of it but the first and the last is deployed anew once, for two of them."""


def main() -> int:
    """Run the pairs, and say what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--resume", action="store_true", help="leave out the chains that have ended before")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / "pairs.jsonl"
    rows = _rows(file) if arguments.resume else []
    number = rows[0]["seed"] if rows else arguments.seed
    file.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    print(f"{arguments.pairs} pairs, seed {number}", flush=True)
    done = Counter(each["chain"] for each in rows)
    for start in range(-(-arguments.pairs // LENGTH)):
        key = number * 1000 + start
        if done[key] == LENGTH:
            continue
        rows = [each for each in rows if each["chain"] != key]
        rows += _chain(number, key, file)
    told(rows)
    return 1 if any(each["problems"] for each in rows) else 0


def _chain(number: int, key: int, file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    started = time.monotonic()

    def keep(pair: Pair) -> None:
        row = {"seed": number, "chain": key, **pair.as_dict()}
        rows.append(row)
        with file.open("a", encoding="utf-8") as found:
            found.write(f"{json.dumps(row, default=str)}\n")
        what = "refused" if pair.refused else f"{pair.steps} steps"
        met = f", {pair.trouble} met" if pair.met else ""
        bad = "".join(f"\n    {each}" for each in pair.problems[:6])
        print(f"  {key}: {pair.kind} ({pair.edit}): {what}{met} in {pair.seconds:.0f} s{bad}", flush=True)

    with tempfile.TemporaryDirectory(prefix="hyperpod-pairs-") as scratch:
        try:
            chain(key, LENGTH, Path(scratch), keep)
        except Exception:  # noqa: BLE001 - whatever it is, it is shown, and the next chain goes on
            keep(Pair("chain", "", problems=[traceback.format_exc()]))
    print(f"  {key}: {time.monotonic() - started:.0f} s, of this process {time.process_time():.0f} s", flush=True)
    return rows


def told(rows: Sequence[dict[str, Any]]) -> None:
    """Print the numbers, and why pairs were refused."""
    refused = [each for each in rows if each["refused"]]
    bad = [each for each in rows if each["problems"]]
    good = [each for each in rows if not each["refused"] and not each["problems"]]
    print(
        f"{len(rows)} pairs: {len(refused)} refused, {sum(each['steps'] <= 1 for each in good)} by one step or none, "
        f"{sum(each['steps'] > 1 for each in good)} by more, {sum(each['met'] for each in good)} of these after a "
        f"fault or a kill; {len(bad)} wrong"
    )
    for each in refused:
        print(f"- {each['kind']} ({each['edit']}): {'; '.join(each['refused'])}")


def _rows(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main())
