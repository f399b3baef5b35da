"""Questions of one import: what AWS does not answer is noted, and the import continues without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from hyperpod_cdk.checks.answers import UNREADABLE, NotAnswered, Refused, what_is_lost
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.importing.document import Log
from hyperpod_cdk.review.deployed import Api

_GONE: Final = frozenset({"NoSuchEntity", "ResourceNotFoundException"})

AnswerT = TypeVar("AnswerT")


@dataclass(kw_only=True)
class Asking:
    """Asks AWS for one import; what it does not answer is noted and None."""

    aws: Api
    log: Log

    def answer(self, what: str, ask: Callable[[], AnswerT], *, path: str = "") -> AnswerT | None:
        """Return the result of ``ask``, None if AWS has none or does not answer: then ``what`` is noted."""
        try:
            with readable(what):
                return unless_gone(ask)
        except NotAnswered as missing:
            self.skip(what, missing, path=path)
            return None

    def skip(self, what: str, missing: NotAnswered, *, path: str = "") -> None:
        """Note what was not read, and why."""
        self.log.note("skipped", f"{what}: {missing.sentence}", path=path)

    def each(
        self,
        what: str,
        ask: Callable[[Any], AnswerT],
        items: Iterable[Any],
        *,
        path: str = "",
        gone: list[Any] | None = None,
    ) -> list[AnswerT]:
        """Ask about each item in parallel; give the answers, and note each item without one.

        An item that was deleted after it was listed is added to ``gone``, without a note.
        """
        asked = list(items)

        def of(item: Any) -> AnswerT | None:
            with readable(f"{what} {item}"):
                return unless_gone(partial(ask, item))

        found = []
        for item, answer in zip(asked, together(of, asked), strict=True):
            if isinstance(answer, NotAnswered):
                self.skip(f"{what} {item}", answer, path=path)
            elif answer is not None:
                found.append(answer)
            elif gone is not None:
                gone.append(item)
        return found


def unless_gone(ask: Callable[[], AnswerT]) -> AnswerT | None:
    """Return the result of ``ask``, None if AWS says that the thing does not exist."""
    try:
        return ask()
    except NotFound:
        return None
    except Refused as refused:
        if refused.code in _GONE:
            return None
        raise


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn an answer that is not as AWS documents it into one that is missing; ``what`` says what it is about."""
    try:
        yield
    except UNREADABLE as error:
        raise NotAnswered(f"the answer about {what} cannot be read: {what_is_lost(error)}") from None
