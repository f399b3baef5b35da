"""Finds the known name that a misspelled name probably means."""

from __future__ import annotations

from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name with the fewest slips from ``name``, or None if none is near.

    A slip is a character too many, too few, wrong, or two swapped; more slips than a third of the longer text is far.
    Case and surrounding spaces do not count.
    """
    wanted = name.strip().lower()
    # a difference in length is at least as many slips, so a much longer text is rejected at once
    alike = (each for each in known if abs(len(wanted) - len(each)) <= max(len(wanted), len(each)) // 3)
    slips = {candidate: _slips(wanted, candidate) for candidate in alike}
    near = [candidate for candidate, n in slips.items() if n <= max(len(wanted), len(candidate)) // 3]
    return min(near, key=slips.__getitem__, default=None)


def _slips(left: str, right: str) -> int:
    """Optimal string alignment distance, row by row."""
    before: list[int] = []
    above = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        row = [i]
        for j, b in enumerate(right, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, above = above, row
    return above[-1]
