"""Changes one place of the code at a time and checks whether a test fails.

    mutants.py [--draw N] [--seed N] [--under PATH ...] [--workers N]

Selects N places in the packages with rules (``HOMES``), changes each with one of cosmic-ray's operators, and runs the
tests of its package that reach the changed statement, first the test file with the name of the module. Code that runs
at import belongs to no test, so the tests that reach any line of the module, and all of its own test file, run next.
The lines that each test file reaches are recorded once (``.cache/mutants/reach.json``), and again when the tests or the
reached code change. Works on copies of the files that git tracks. Prints every mutant that survived, with its line
before and after; exits with 1 if one of them is not in ``mutants/accepted.yaml`` with a reason.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
SOURCES = Path("constructs/hyperpod_cdk")
ACCEPTED = ROOT / "mutants" / "accepted.yaml"

HOMES: Mapping[Path, Sequence[str]] = {
    # the first that contains a file counts
    SOURCES / "catalog" / "updates.py": ("tests/catalog/test_updates.py", "tests/review/changes"),
    SOURCES / "catalog": ("tests/catalog", "tests/config/test_rules.py", "tests/templates"),
    SOURCES / "templates": (
        "tests/templates",
        "tests/review/test_assembly.py",
        "tests/review/test_values.py",
        "tests/review/test_groups.py",
        "tests/review/test_difference.py",
        "tests/review/test_template_yaml.py",
        "tests/review/test_extensions.py",
        "tests/review/changes/test_assets.py",
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
}
"""Packages and modules with rules, each with its tests: its own, and those of code that adapts it."""

LEAST_SECONDS, TIMES = 60, 8
"""A mutant counts as endless if its tests take this many times their normal processor time."""
SECONDS = 900
"""A test that waits this long twice counts as endless."""
RECORD = ROOT / ".cache/mutants/reach.json"
PROCESSES = multiprocessing.get_context("forkserver")
PRELOADED = ("pytest", "hypothesis", "typer.testing", "botocore.session", "cfnlint", "pydantic", "jsonschema", "jsii")
"""Third-party modules that are imported once for all mutants; they do not import this project."""


@dataclass(frozen=True)
class Mutant:
    """One change: the file, its line, the operator, and the complete changed file."""

    file: Path
    line: int
    operator: str
    after: str

    def difference(self) -> str:
        """Return the changed lines, with ``-`` before the old lines and ``+`` before the new ones."""
        before = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.after.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))


def main() -> None:
    """Select places, change them, and run the tests."""
    options = argparse.ArgumentParser(description="change the code deliberately and check whether a test fails")
    options.add_argument("--draw", type=int, default=100, help="number of places (default 100)")
    options.add_argument("--seed", type=int, default=None, help="the same places again")
    options.add_argument("--under", nargs="*", default=[str(home) for home in HOMES], help="files or folders to break")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="number of parallel workers")
    given = options.parse_args()
    PROCESSES.set_forkserver_preload(list(PRELOADED))
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


class Reach:
    """The lines that each test reaches in a copy of the repository."""

    def __init__(self, tests: Mapping[str, Any]) -> None:
        """Read the tests and the lines that they reach from the plugin's output."""
        self.tests = tests

    def limit(self, tests: Sequence[str]) -> int:
        """Return the limit of processor time for tests in seconds."""
        return max(LEAST_SECONDS, round(TIMES * sum(self.tests[name]["seconds"] for name in tests)))

    def rounds(self, mutant: Mutant) -> Iterator[list[str]]:
        """Yield the tests that may detect a mutant, the fastest ones first."""
        lines = _statement((ROOT / mutant.file).read_text(encoding="utf-8"), mutant.line)
        file = str(mutant.file)
        homes = next(tests for home, tests in HOMES.items() if home in (mutant.file, *mutant.file.parents))
        of_home = [name for name in self.tests if name.startswith(tuple(homes))]
        near = [name for name in of_home if lines & set(self.tests[name]["lines"].get(file, ()))]
        near.sort(key=lambda name: self.tests[name]["seconds"])
        yield [name for name in near if _is_own(name, mutant.file)]
        yield near
        # a test of a constant, or of a function that a dataclass has, reaches no line of the module
        yield [name for name in of_home if file in self.tests[name]["lines"] or _is_own(name, mutant.file)]


def _is_own(test: str, file: Path) -> bool:
    return Path(test.partition("::")[0]).name.startswith(f"test_{file.stem.strip('_')}")


def _statement(text: str, line: int) -> set[int]:
    """Return the lines of the smallest statement around a line, or the header of a compound statement."""
    around = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            end = body[0].lineno - 1 if isinstance(body, list) and isinstance(body[0], ast.stmt) else node.end_lineno
            found = set(range(node.lineno, max(node.lineno, end or line) + 1))
            if line in found and (not around or len(found) < len(around)):
                around = found
    return around or {line}


def _reach(files: Sequence[Path], workers: int) -> Reach:
    """Record the reached lines of tests for these files, if they are not recorded yet or have changed."""
    recorded: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    homes = [tests for home, tests in HOMES.items() if any(home in (file, *file.parents) for file in files)]
    roots = {ROOT / each for tests in homes for each in tests}
    wanted = {path for root in roots for path in ([root] if root.suffix else root.rglob("test_*.py"))}
    names = sorted(str(path.relative_to(ROOT)) for path in wanted)
    stale = [name for name in names if name not in recorded or not _stands(recorded[name]["digests"])]
    if stale:
        print(f"recording the lines that {len(stale)} test files reach", flush=True)
    failed = []
    with _trees(workers if stale else 1) as (pool, free):
        for name, (found, said) in zip(stale, pool.map(lambda name: _recorded(name, free), stale), strict=True):
            if found is None:
                failed.append(f"{name} fails without a mutant\n{said}")
                continue
            recorded[name] = found
            # recorded file by file, so that an interruption keeps the finished ones
            RECORD.write_text(json.dumps(recorded), encoding="utf-8")
    if failed:
        sys.exit("\n".join(failed))
    return Reach({test: row for name in names for test, row in recorded[name]["tests"].items()})


@contextmanager
def _trees(workers: int) -> Iterator[tuple[ThreadPoolExecutor, SimpleQueue[Path]]]:
    """Yield a number of threads, and a copy of the repository for each."""
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(workers) as pool:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            free.put(_copied(Path(scratch) / str(number)))
        yield pool, free


def _recorded(name: str, free: SimpleQueue[Path]) -> tuple[dict[str, Any] | None, str]:
    """Return the lines that the tests of a file reach, or None if one fails, and the output of pytest."""
    tree = free.get()
    try:
        site = [str(path) for path in (ROOT / ".cache/mutants/lib").glob("python*/site-packages")]
        task = {
            "record": str(tree / "reach.json"),
            "paths": site,
            "sources": str(tree / SOURCES),
            "root": str(tree),
        }
        code, said = _pytest([name], task, tree, None)
        if code:
            return None, said
        tests = json.loads((tree / "reach.json").read_text(encoding="utf-8"))
        read = sorted({file for row in tests.values() for file in row["lines"]} | {name})
        # digests of the files that ran, which may have changed since
        return {"tests": tests, "digests": {file: _digest(tree / file) for file in read}}, said
    finally:
        free.put(tree)


def _stands(digests: Mapping[str, str]) -> bool:
    return all((ROOT / file).exists() and _digest(ROOT / file) == digest for file, digest in digests.items())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _survivors(drawn: Sequence[Mutant], workers: int) -> list[Mutant]:
    survived = []
    reach = _reach([mutant.file for mutant in drawn], workers)
    with _trees(workers) as (pool, free):
        soon = _seen_at_once(drawn, reach, free)

        def tried(mutant: Mutant, seen: str | None) -> tuple[Mutant, str | None, float]:
            began = time.monotonic()
            if seen is not None:
                return mutant, seen or None, 0.0
            tree = free.get()
            try:
                return mutant, _seen_by(mutant, tree, reach), time.monotonic() - began
            finally:
                shutil.copy(ROOT / mutant.file, tree / mutant.file)
                free.put(tree)

        for number, (mutant, seen, took) in enumerate(pool.map(tried, drawn, soon), start=1):
            where = f"{number}/{len(drawn)} {mutant.file}:{mutant.line} {mutant.operator}"
            print(f"{where}: {f'killed by {seen}' if seen else 'SURVIVED'} ({took:.0f} s)", flush=True)
            if not seen:
                print(mutant.difference(), flush=True)
                survived.append(mutant)
    return survived


def _seen_at_once(drawn: Sequence[Mutant], reach: Reach, free: SimpleQueue[Path]) -> list[str | None]:
    """Return the test that detects each mutant of a function, in a process that has collected all tests once."""
    tree = free.get()
    asked: list[dict[str, Any]] = []
    for mutant in drawn:
        chosen = list(dict.fromkeys(name for names in reach.rounds(mutant) for name in names))
        seconds = reach.limit(chosen)
        asked.append({"file": str(mutant.file), "after": mutant.after, "chosen": chosen, "seconds": seconds})
    files = sorted({name.partition("::")[0] for each in asked for name in each["chosen"]})
    task = {"mutants": asked, "answers": str(tree / "answers"), "root": str(tree), "limit": SECONDS}
    code, said = _pytest(files, task, tree, None)
    if code:
        sys.exit(f"tests are not collected without a mutant\n{said}")
    free.put(tree)
    return [json.loads(line) for line in (tree / "answers").read_text(encoding="utf-8").splitlines()]


def _copied(tree: Path) -> Path:
    git = ["git", "ls-files", "-z"]
    tracked = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    for installed in (".venv", "node_modules"):
        (tree / installed).symlink_to((ROOT / installed).resolve())
    return tree


def _seen_by(mutant: Mutant, tree: Path, reach: Reach) -> str | None:
    """Return the test that fails with the mutant, or None if none does."""
    (tree / mutant.file).write_text(mutant.after, encoding="utf-8")
    tried: set[str] = set()
    for tests in reach.rounds(mutant):
        chosen = [name for name in tests if name not in tried]
        if chosen and (found := _failing(chosen, reach, tree)):
            return found
        tried.update(chosen)
    return None


def _failing(chosen: Sequence[str], reach: Reach, tree: Path) -> str | None:
    seconds = reach.limit(chosen)
    files = sorted({name.partition("::")[0] for name in chosen})
    for _ in range(2):
        code, said = _pytest(files, {"chosen": chosen, "seconds": seconds}, tree)
        if code is None:
            continue
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"no end after {seconds} s of processor"
        if code == 0:
            return None
        if code not in (1, 2, 3, 4):
            sys.exit(f"{' '.join(files)}: pytest ended with {code}\n{said}")
        named = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        if not named and "ImportError while loading conftest" not in said:
            sys.exit(f"{' '.join(files)}: no test failed, and pytest ended with {code}\n{said}")
        return named.group(1) if named else "a module that no longer loads"
    return f"no end after {SECONDS} s"


def _pytest(
    tests: Sequence[str], task: Mapping[str, object], tree: Path, limit: float | None = SECONDS
) -> tuple[int | None, str]:
    """Return the exit code of pytest, or None if it does not end, and its output."""
    (tree / "task.json").write_text(json.dumps(task), encoding="utf-8")
    run = PROCESSES.Process(target=_within, args=(tree, tests))
    run.start()
    run.join(limit)
    if run.is_alive():
        run.kill()
        run.join()
        return None, ""
    return run.exitcode, (tree / "said").read_text(encoding="utf-8", errors="replace")


def _within(tree: Path, tests: Sequence[str]) -> None:
    """Run pytest in a copy of the repository, in a separate process with only the modules in ``PRELOADED``."""
    os.chdir(tree)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    roots = [str(tree / each) for each in ("constructs", "stacks", "rehearsal")]
    sys.path[:] = [str(tree), *roots, *(path for path in sys.path if Path(path) != Path(__file__).parent)]
    os.environ["PYTHONPATH"] = os.pathsep.join(roots)
    os.environ["MUTANTS_TASK"] = str(tree / "task.json")
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "mutants.reach", "--assert=plain"]
    sys.exit(pytest.main([*options, "--no-header", "--tb=no", "--timeout=0", *tests]))


def _is_accepted(mutant: Mutant, accepted: Sequence[dict[str, str]]) -> bool:
    return any(row["file"] == str(mutant.file) and row["change"].strip() == mutant.difference() for row in accepted)


if __name__ == "__main__":
    main()
