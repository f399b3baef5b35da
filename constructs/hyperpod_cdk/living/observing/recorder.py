"""Records the answers of AWS while other modules ask, so that the answers can be compared afterwards."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk.review.deployed import Api


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of one call. ``service`` and ``operation`` are boto3's names; of pages only the items of ``key``."""

    service: str
    operation: str
    params: str
    body: Mapping[str, Any]
    key: str = ""


@dataclass
class Recorder:
    """Asks AWS through another ``Api`` and keeps every answer; errors are raised unchanged."""

    aws: Api
    _kept: dict[tuple[str, str, str, str], Answer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Every answer once, in an order that does not depend on their times."""
        return tuple(self._kept[key] for key in sorted(self._kept))

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call, once in a run."""
        found = self.aws.call(service, operation, **params)
        self._keep(Answer(service=service, operation=operation, params=repr(sorted(params.items())), body=found))
        return found

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        """Return the items of ``key`` of all pages."""
        found = self.aws.pages(service, operation, key, **params)
        asked = repr(sorted(params.items()))
        self._keep(Answer(service=service, operation=operation, params=asked, body={key: found}, key=key))
        return found

    def send(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call each time; no module of this package changes anything."""
        return self.aws.send(service, operation, **params)

    def _keep(self, answer: Answer) -> None:
        with self._lock:
            self._kept[answer.service, answer.operation, answer.params, answer.key] = answer
