"""Did you mean: the known word that a near miss stands for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hyperpod_cdk.catalog import aws_words

_LONGEST = 100


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word with the fewest slips from ``word``, or None if none is near.

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


def meant_key(key: str, known: Collection[str]) -> str | None:
    """Return the key of a section that an unknown key means: AWS's word for it, else the most similar one."""
    word = aws_words.counterpart(key) if len(key) <= _LONGEST else None
    plain = _plain(key).replace("_", "")
    if word is not None and word.key in known and all(_plain(each).replace("_", "") != plain for each in known):
        return word.key
    return closest(key, known)


def _plain(text: str) -> str:
    return text.lower().replace("-", "_")
