"""Lets every resource of some environments fail at every point, and counts what deploying again alone recovers.

Exits 1 where it does not. `--sample N` takes N faults of each environment, and every deletion, by a seed that is told.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.faults import Outcome, living, sampled

DEFAULT = ("prod", "closed", "shared")
RESULTS = PROJECT / ".cache" / "faults"


def main() -> int:
    """Run the faults of each environment, and say what recovered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=DEFAULT)
    parser.add_argument("--sample", type=int, help="faults of each environment (default: all)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--verbose", action="store_true", help="a line for every fault")
    arguments = parser.parse_args()
    if arguments.sample is not None:
        print(f"a sample of {arguments.sample} faults each, seed {arguments.seed}")
    bad = 0
    for name in arguments.environments:
        outcomes = run(name, arguments.sample, arguments.seed, verbose=arguments.verbose)
        bad += sum(not each.recovered for each in outcomes)
    return 1 if bad else 0


def run(name: str, sample: int | None, seed: int, *, verbose: bool) -> list[Outcome]:
    """Run the faults of one environment, print the counts and what did not recover, and keep all of it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hyperpod-faults-") as scratch:
        say = (lambda line: print(f"  {line}", flush=True)) if verbose else (lambda _: None)
        with living(PROJECT / ENVIRONMENTS[name], Path(scratch), say) as (life, faults):
            chosen = faults if sample is None else sampled(faults, sample, seed)
            outcomes = life.run(chosen)
    RESULTS.mkdir(parents=True, exist_ok=True)
    document = {
        "environment": name,
        "planned": Counter(fault.kind for fault in faults),
        "seed": None if sample is None else seed,
        "outcomes": [each.as_dict() for each in outcomes],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    counted = Counter(each.fault.kind for each in outcomes)
    good = Counter(each.fault.kind for each in outcomes if each.recovered)
    said = "; ".join(f"{kind} {good[kind]}/{count}" for kind, count in counted.items())
    print(f"{name}: recovered {sum(good.values())} of {len(outcomes)} ({said}) in {time.monotonic() - started:.0f} s")
    for each in outcomes:
        if not each.recovered:
            print(f"  {each.fault.stack}/{each.fault.logical_id} {each.fault.when}: {each.status}: {each.problem}")
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
