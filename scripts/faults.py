"""Lets every resource of some environments fail at every point, and counts the failures that recover by redeploying.

Exits with 1 if one does not. `--sample N` selects N faults of each environment, and every deletion, by a printed seed.
`--cli` instead runs deployments by the real CDK CLI, which fail as those of users do: all cases, or the given ones.
`--resume` omits faults that recovered in an earlier run with the same templates, even if that run was stopped.
`--record` runs nothing and records the last results for docs/faults.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support import cli_faults
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.faults import DELETION, KINDS, Outcome, living, sampled

DEFAULT = ("prod", "closed", "shared")
RESULTS = PROJECT / ".cache" / "faults"
CLI_RESULTS = RESULTS / "cli"
RECORD = PROJECT / "tests" / "rehearsal" / "faults.json"


def main() -> int:
    """Run the faults of each environment, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="environments, or cases of --cli (default: all)")
    parser.add_argument("--sample", type=int, help="faults of each environment (default: all)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--resume", action="store_true", help="omit faults that recovered in an earlier run")
    parser.add_argument("--cli", action="store_true", help="let deployments by the CDK CLI fail")
    parser.add_argument("--record", action="store_true", help=f"only write {RECORD.relative_to(PROJECT)}")
    parser.add_argument("--verbose", action="store_true", help="a line for every fault")
    arguments = parser.parse_args()
    if arguments.record:
        RECORD.write_text(f"{json.dumps(recorded(), indent=2, ensure_ascii=False)}\n", encoding="utf-8")
        return 0
    if arguments.cli:
        return run_cli(arguments.names or list(cli_faults.CASES))
    if arguments.sample is not None:
        print(f"a sample of {arguments.sample} faults each, seed {arguments.seed}")
    names = arguments.names or list(DEFAULT)
    return side_by_side(
        [
            partial(run, name, arguments.sample, arguments.seed, verbose=arguments.verbose, resume=arguments.resume)
            for name in names
        ]
    )


def side_by_side(tasks: list[Callable[[], int]]) -> int:
    """Run each task in a separate process, one per processor at a time; returns 1 if a task has failures.

    Processes, because jsii supports only one thread, and spawned, because it does not support fork.
    """
    with ProcessPoolExecutor(
        min(os.cpu_count() or 1, len(tasks)), mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        return 1 if sum(found.result() for found in [pool.submit(task) for task in tasks]) else 0


def run(name: str, sample: int | None, seed: int, *, verbose: bool, resume: bool) -> int:
    """Run the faults of one environment, print and record the results; return how many did not recover."""
    started = time.monotonic()
    file = RESULTS / f"{name}.json"
    with tempfile.TemporaryDirectory(prefix="hyperpod-faults-") as scratch:
        say = (lambda line: print(f"  {line}", flush=True)) if verbose else (lambda _: None)
        with living(PROJECT / ENVIRONMENTS[name], Path(scratch), say) as (life, faults):
            templates = fingerprint(Path(scratch))
            before = settled(file, templates) if resume else []
            done = {(each["stack"], each["logical_id"], each["when"]) for each in before}
            left = [each for each in faults if (each.stack, each.logical_id, each.when) not in done]
            chosen = left if sample is None else sampled(left, sample, seed)

            def keep(outcomes: Sequence[Outcome]) -> None:
                document = {
                    "environment": name,
                    "date": _today(),
                    "templates": templates,
                    # every deletion is tested, regardless of the sample
                    "planned": Counter(
                        [*(each.kind for each in faults), *(DELETION for o in outcomes if o.fault.kind == DELETION)]
                    ),
                    "seed": None if sample is None else seed,
                    "outcomes": [*before, *(each.as_dict() for each in outcomes)],
                }
                RESULTS.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(document, indent=2), encoding="utf-8")

            life.keep = keep
            outcomes = life.run(chosen)
            keep(outcomes)
    counted = Counter(each.fault.kind for each in outcomes)
    good = Counter(each.fault.kind for each in outcomes if each.recovered)
    said = "; ".join(f"{kind} {good[kind]}/{count}" for kind, count in counted.items())
    bad = [each for each in outcomes if not each.recovered]
    took = f"{time.monotonic() - started:.0f} s"
    earlier = f", {len(before)} before" if before else ""
    print(f"{name}: recovered {len(outcomes) - len(bad)} of {len(outcomes)} ({said}){earlier} in {took}", flush=True)
    for each in bad:
        where = f"{each.fault.stack}/{each.fault.logical_id} {each.fault.when}"
        print(f"  {name}: {where}: {each.status}: {each.problem}", flush=True)
    return len(bad)


def settled(file: Path, templates: str) -> list[dict[str, Any]]:
    """Return the faults that recovered in an earlier run with the same templates, except deletions."""
    if not file.exists():
        return []
    kept = json.loads(file.read_text(encoding="utf-8"))
    if kept.get("templates") != templates:
        return []
    return [each for each in kept["outcomes"] if each["recovered"] and each["kind"] != DELETION]


def fingerprint(folder: Path) -> str:
    """Return the digest of all templates below a folder, without references to the folder itself."""
    files = sorted(folder.rglob("*.template.json"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def run_cli(names: list[str]) -> int:
    """Run the cases with these names, each in a separate account, and record the output of the CLI."""
    CLI_RESULTS.mkdir(parents=True, exist_ok=True)
    # cases in one process share assemblies
    shares = [names[start :: os.cpu_count() or 1] for start in range(os.cpu_count() or 1)]
    return side_by_side([partial(run_cases, share) for share in shares if share])


def run_cases(names: list[str]) -> int:
    """Run cases one after the other; return how many did not recover."""
    bad = 0
    with tempfile.TemporaryDirectory(prefix="hyperpod-faults-") as scratch:
        for name in names:
            started = time.monotonic()
            record = cli_faults.run(cli_faults.CASES[name], Path(scratch))
            document = json.dumps({"date": _today(), **record.as_dict()}, indent=2, ensure_ascii=False)
            (CLI_RESULTS / f"{name}.json").write_text(document, encoding="utf-8")
            said = "recovered" if record.recovered else f"did not recover: {record.problem}"
            print(f"{name}: {said} in {time.monotonic() - started:.0f} s", flush=True)
            bad += not record.recovered
    return bad


def recorded() -> dict[str, Any]:
    """Return the counts of each environment's last run, and every case of the CLI; others keep their recorded values.

    An environment whose run was stopped before its deletions also keeps its values.
    """
    before = json.loads(RECORD.read_text(encoding="utf-8"))
    environments = dict(before["environments"])
    for file in sorted(RESULTS.glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        ran = Counter(each["kind"] for each in result["outcomes"])
        recovered = Counter(each["kind"] for each in result["outcomes"] if each["recovered"])
        if ran[DELETION]:
            environments[result["environment"]] = {
                "date": result["date"],
                "seed": result["seed"],
                "kinds": {
                    kind: {"possible": result["planned"][kind], "ran": ran[kind], "recovered": recovered[kind]}
                    for kind in dict.fromkeys(KINDS.values())
                },
            }
    cases = {each["case"]: each for each in before["cli"]}
    for name in cli_faults.CASES:
        file = CLI_RESULTS / f"{name}.json"
        if file.exists():
            cases[name] = json.loads(file.read_text(encoding="utf-8"))
    # the description of a case is from the code, its result from the run
    said = {case.key: {"happens": case.happens, "todo": case.todo} for case in cli_faults.CASES.values()}
    return {
        "environments": dict(sorted(environments.items())),
        "cli": [{**cases[name], **said[name]} for name in cli_faults.CASES if name in cases],
    }


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


if __name__ == "__main__":
    sys.exit(main())
