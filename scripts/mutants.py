"""Breaks one place of the code at a time and asks whether a test fails: what no test sees, nobody would see.

    mutants.py [--draw N] [--seed N] [--under PATH ...] [--workers N]

Draws N places of the rooms that hold rules (``HOMES``), changes each by one of cosmic-ray's operators, and runs the
tests that are called as the module is, then those of its room. Works on copies of what git tracks. Prints every
mutant that survived, with its line before and after; exits 1 where one did that ``mutants/accepted.yaml`` does not
name with its reason.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import yaml

ROOT = Path(__file__).parent.parent
SOURCES = Path("constructs/hyperpod_cdk")
ACCEPTED = ROOT / "mutants" / "accepted.yaml"

HOMES: Mapping[Path, Sequence[str]] = {
    SOURCES / "catalog": ("tests/catalog", "tests/config/test_rules.py", "tests/templates"),
    SOURCES / "templates": (
        "tests/templates",
        "tests/review/test_policy.py",
        "tests/review/test_foreign.py",
        "tests/review/test_delivery.py",
        "tests/constructs/test_template_checks.py",
    ),
    SOURCES / "quotas": (
        "tests/checks/test_requirements.py",
        "tests/checks/test_quotas.py",
        "tests/handlers/test_quota_comparison.py",
        "tests/constructs/test_quota_gate.py",
    ),
    SOURCES / "config" / "group_rules.py": ("tests/config/test_rules.py", "tests/stacks/test_both_doors.py"),
}
"""Where rules stand, a room or a module, with the tests that are to see what it says: its own, and what adapts it."""

SECONDS = 600
"""After so long a mutant counts as seen: it does not come to an end."""


@dataclass(frozen=True)
class Mutant:
    """One change of one place: the file, its line, what was done, and the whole file after it."""

    file: Path
    line: int
    operator: str
    after: str

    def difference(self) -> str:
        """Give the changed lines, as ``-`` what was there and ``+`` what came."""
        before = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.after.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))


def main() -> None:
    """Draw, break and test."""
    options = argparse.ArgumentParser(description="break the code on purpose and see whether a test fails")
    options.add_argument("--draw", type=int, default=100, help="so many places (default 100)")
    options.add_argument("--seed", type=int, default=None, help="the same places again")
    options.add_argument("--under", nargs="*", default=[str(home) for home in HOMES], help="files or folders to break")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="so many side by side")
    given = options.parse_args()
    seed = time.time_ns() % 10**6 if given.seed is None else given.seed
    print(f"seed {seed}")
    drawn = _drawn([Path(each) for each in given.under], given.draw, seed)
    accepted = yaml.safe_load(ACCEPTED.read_text(encoding="utf-8"))
    survivors = _survivors(drawn, given.workers)
    unexplained = [mutant for mutant in survivors if not _is_accepted(mutant, accepted)]
    killed = len(drawn) - len(survivors)
    share = 100 * killed / len(drawn) if drawn else 0.0
    print(f"{killed} of {len(drawn)} killed ({share:.0f} %), {len(unexplained)} survivors without a reason")
    sys.exit(1 if unexplained or not drawn else 0)


def _drawn(under: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    files = [path for each in under for path in ([ROOT / each] if each.suffix else sorted((ROOT / each).rglob("*.py")))]
    relative = [path.relative_to(ROOT) for path in files]
    asked = {"root": str(ROOT), "files": [str(path) for path in relative], "draw": count, "seed": seed}
    answer = subprocess.run(
        [ROOT / ".cache/mutants/bin/python", ROOT / "mutants/places.py"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    return [Mutant(Path(row["file"]), row["line"], row["operator"], row["after"]) for row in json.loads(answer.stdout)]


def _survivors(drawn: Sequence[Mutant], workers: int) -> list[Mutant]:
    survived = []
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(workers) as pool:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            free.put(_copied(Path(scratch) / str(number)))

        def tried(mutant: Mutant) -> tuple[Mutant, str | None, float]:
            tree, began = free.get(), time.monotonic()
            try:
                return mutant, _seen_by(mutant, tree), time.monotonic() - began
            finally:
                shutil.copy(ROOT / mutant.file, tree / mutant.file)
                free.put(tree)

        for number, (mutant, seen, took) in enumerate(pool.map(tried, drawn), start=1):
            where = f"{number}/{len(drawn)} {mutant.file}:{mutant.line} {mutant.operator}"
            print(f"{where}: {f'killed by {seen}' if seen else 'SURVIVED'} ({took:.0f} s)", flush=True)
            if not seen:
                print(mutant.difference(), flush=True)
                survived.append(mutant)
    return survived


def _copied(tree: Path) -> Path:
    git = ["git", "ls-files", "-z"]
    tracked = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    (tree / "node_modules").symlink_to((ROOT / "node_modules").resolve())
    return tree


def _seen_by(mutant: Mutant, tree: Path) -> str | None:
    """Give the test that fails with the mutant in place, None where none does."""
    (tree / mutant.file).write_text(mutant.after, encoding="utf-8")
    rooms = next(tests for home, tests in HOMES.items() if home in (mutant.file, *mutant.file.parents))
    own = [str(path.relative_to(tree)) for path in (tree / "tests").rglob(f"test_{mutant.file.stem.strip('_')}*.py")]
    for tests in filter(None, (own, rooms)):
        found = _failing(tests, tree)
        if found:
            return found
    return None


def _failing(tests: Sequence[str], tree: Path) -> str | None:
    roots = os.pathsep.join(str(tree / each) for each in ("constructs", "stacks", "rehearsal"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": roots},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    if done.returncode == 0:
        return None
    if done.returncode not in (1, 2, 3, 4):
        sys.exit(f"{' '.join(command)}: pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return named.group(1) if named else "a module that no longer loads"


def _is_accepted(mutant: Mutant, accepted: Sequence[dict[str, str]]) -> bool:
    return any(row["file"] == str(mutant.file) and row["change"].strip() == mutant.difference() for row in accepted)


if __name__ == "__main__":
    main()
