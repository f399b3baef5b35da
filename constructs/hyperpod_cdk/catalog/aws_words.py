"""AWS's names for the keys of an environment file: in its APIs, setup stacks, Terraform module and the hyp CLI."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache

from hyperpod_cdk.catalog import _data

_DATA = _data.load("aws_words")

AS_OF: date = _data.as_of("aws_words")


@dataclass(frozen=True, kw_only=True)
class Word:
    """A name that AWS uses, and the place in the environment file with the same meaning.

    ``here`` is a place without numbers: ``hyperpod.instance_groups[].count``. ``form`` describes the value
    if its form differs, else it is empty.
    """

    aws: str
    here: str
    form: str = ""

    @property
    def key(self) -> str:
        """The last key of the place."""
        return self.here.rpartition(".")[2].removesuffix("[]")


def counterpart(key: str) -> Word | None:
    """Return what a key with AWS's name means here; case, hyphens and underscores do not count."""
    return _by_spelling().get(_plain(key))


def words() -> tuple[Word, ...]:
    """Return the whole table."""
    return tuple(Word(aws=name, **row) for name, row in _DATA["words"].items())


@cache
def _by_spelling() -> dict[str, Word]:
    found: dict[str, Word] = {}
    for word in words():
        found.setdefault(_plain(word.aws), word)
    return found


def _plain(text: str) -> str:
    return text.lower().replace("-", "").replace("_", "")
