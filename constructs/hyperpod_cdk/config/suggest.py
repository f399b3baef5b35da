"""Did you mean: the known word that a near miss stands for."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 100


def closest(word: str, known: Iterable[str]) -> str | None:
    """Give the known word that the fewest slips turn into ``word``, or None where none is near.

    A slip is a character too many, too few, wrong, or two swapped; more of them than a third of the longer word is far.
    Case does not count, nor which of '-' and '_' stands between words.
    """
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only a wrong file pays for the import

    if len(word) > _LONGEST:
        return None
    wanted = _plain(word)
    slips = {candidate: OSA.distance(wanted, _plain(candidate)) for candidate in known}
    near = [candidate for candidate, n in slips.items() if n <= max(len(word), len(candidate)) // 3]
    return min(near, key=slips.__getitem__, default=None)


def _plain(text: str) -> str:
    return text.lower().replace("-", "_")
