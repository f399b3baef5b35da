"""Breaks files of every kind that the command reads, and expects a refusal in lines, quickly and with little memory."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.support import mutated  # noqa: E402 - a script finds its project by itself

SECONDS = 2.0
MEGABYTES = 200


def main() -> int:
    """Test the requested number of files; exit code 1 if one caused an exception or took too much time or memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # modules and schemas that are loaded once do not count for a file
        for kind in mutated.kinds(folder / "first").values():
            mutated.looked_at(folder, kind.originals[0], kind)
        for number, (name, text, kind) in enumerate(
            mutated.cases(folder / "project", count=options.count, seed=options.seed)
        ):
            before, started = _peak_mb(), time.process_time()
            said = ""
            try:
                mutated.looked_at(folder, text, kind)
            except Exception as error:  # noqa: BLE001 - a user would see any exception
                said = f"{type(error).__name__}: {error}"
            took, grown = time.process_time() - started, _peak_mb() - before
            if not said and took > SECONDS:
                said = f"{took:.1f} s of processor time"
            if not said and grown > MEGABYTES:
                said = f"{grown:.0f} MB more"
            if said:
                wrong += 1
                kept = ROOT / ".cache" / f"fuzz-{options.seed}-{number}-{name}"
                kept.parent.mkdir(exist_ok=True)
                kept.write_bytes(text)
                print(f"{name} {number}: {said[:300]}; kept as {kept.relative_to(ROOT)}")
    print(f"{options.count} files, {wrong} wrong")
    return 1 if wrong else 0


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
