"""Asks AWS with plain boto3, for the gate's Lambda: each question once, refusals told apart from faults."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ..answering import DENIED  # noqa: TID252 - in Lambda the package above has another name
from .reading import Listed, NoSuchQuota, NotAnswered, NotFound, is_gone

PATIENCE_SECONDS = 20.0
"""For how long after the start a call that lacks permission is repeated: IAM takes a while to know a role just made."""
PATIENCE_PAUSE_SECONDS = 2.0
SIDE_BY_SIDE = 8

_IAM_PREFIX = {"service-quotas": "servicequotas"}

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Boto3Api:
    """``reading.Api`` on boto3 clients, which ``client`` makes by service name.

    What is denied is repeated for ``patience_seconds`` from now on.

    Raises NoSuchQuota for NoSuchResourceException, NotFound for what SageMaker does not have, and NotAnswered for every
    other error of AWS or of the way to it.
    """

    def __init__(
        self,
        client: Callable[[str], Any] | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._new_client = client or _client
        self._sleep = sleep
        self._clock = clock
        self._patient_until = clock() + patience_seconds
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, Future[Any]] = {}

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call, or give the answer that it had before."""
        answer: Mapping[str, Any] = self._once(
            ("call", service, operation, params),
            lambda: self._patiently(service, operation, lambda client: getattr(client, operation)(**params)),
        )
        return answer

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        """Return the items of the pages that come, or those that came before."""

        def ask() -> Listed:
            items: list[Any] = []

            def read(client: Any) -> None:
                # a repetition, for a role that IAM does not know yet, begins anew
                items.clear()
                if not client.can_paginate(operation):
                    items.extend(getattr(client, operation)(**params).get(key, ()))
                    return
                for page in client.get_paginator(operation).paginate(**params):
                    items.extend(page.get(key, ()))

            try:
                self._patiently(service, operation, read)
            except NotAnswered as missing:
                return Listed(items=items, missing=missing)
            except NotFound as missing:
                return Listed(items=items, missing=NotAnswered(str(missing)))
            return Listed(items=items)

        listed: Listed = self._once(("listed", service, operation, key, params), ask)
        return listed

    def each(self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT]:
        """Call ``function`` with each item, side by side; the first error in the order of the items is raised."""
        waiting = [(item, Future[ResultT]()) for item in items]
        tasks: queue.SimpleQueue[tuple[ItemT, Future[ResultT]]] = queue.SimpleQueue()
        for task in waiting:
            tasks.put(task)

        def work() -> None:
            while True:
                try:
                    item, future = tasks.get_nowait()
                except queue.Empty:
                    return
                _settle(future, lambda item=item: function(item))  # type: ignore[misc]

        # not an executor: its threads would hold up the end of a process in which one of them hangs
        for _ in range(min(SIDE_BY_SIDE, len(waiting)) - 1):
            threading.Thread(target=work, daemon=True).start()
        work()
        return [future.result() for _, future in waiting]

    def _once(self, question: object, ask: Callable[[], Any]) -> Any:
        name = json.dumps(question, sort_keys=True, default=str)
        with self._lock:
            answer = self._answers.get(name)
            is_first = answer is None
            if answer is None:
                answer = self._answers[name] = Future()
        if is_first:
            _settle(answer, ask)
        return answer.result()

    def _patiently(self, service: str, operation: str, ask: Callable[[Any], Any]) -> Any:
        while True:
            try:
                return ask(self._client(service))
            except ClientError as error:
                said = error.response.get("Error", {})
                code, message = str(said.get("Code", "")), str(said.get("Message", ""))
                if code == "NoSuchResourceException":
                    raise NoSuchQuota(str(error)) from error
                if service == "sagemaker" and is_gone(code, message):
                    raise NotFound(str(error)) from error
                if code not in DENIED:
                    raise NotAnswered(str(error)) from error
                if self._clock() + PATIENCE_PAUSE_SECONDS > self._patient_until:
                    action = f"{_IAM_PREFIX.get(service, service)}:{error.operation_name}"
                    raise NotAnswered(f"no permission for {action}", action=action, said=message) from error
                self._sleep(PATIENCE_PAUSE_SECONDS)
            except BotoCoreError as error:
                raise NotAnswered(f"{service} {operation}: {error}") from error

    def _client(self, service: str) -> Any:
        # making clients is not thread-safe, using them is
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._new_client(service)
            return self._clients[service]


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
        future.set_exception(error)


def _client(service: str) -> Any:
    # plain names of services are not among the literals that boto3's types know
    make: Any = boto3.client
    return make(
        service,
        config=Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "max_attempts": 4}),
    )
