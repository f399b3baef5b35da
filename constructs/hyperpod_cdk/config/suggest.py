"""Did you mean: the known word that a near miss stands for."""

from __future__ import annotations

from collections.abc import Iterable

_LIKENESS = 70


def closest(word: str, known: Iterable[str]) -> str | None:
    """Give the known word most like ``word``, or None where none is near; case, '-' and '_' count little."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a wrong file pays for the import

    def plain(text: str) -> str:
        return text.lower().replace("-", "_")

    match = process.extractOne(word, list(known), scorer=fuzz.ratio, processor=plain, score_cutoff=_LIKENESS)
    return None if match is None else str(match[0])
