"""The context of operations and resource handlers of the embedded AWS: identity, state, clients, clock."""

from __future__ import annotations

import random
import string
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hyperpod_cdk_rehearsal.embedded.access_keys import INTERNAL

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse

StoreType = TypeVar("StoreType")

call_listener: ContextVar[Callable[[dict[str, Any], Any], None] | None] = ContextVar("call_listener", default=None)
"""The listener for calls of clients in this thread: it gets the parameters and botocore's model of the operation."""

asked_by_a_function: ContextVar[bool] = ContextVar("asked_by_a_function", default=False)
"""Whether the current request was signed by a Lambda function."""


class State:
    """The state that is not in moto: one instance of each store class, created at its first use.

    A service module has its tables in a class (`class Clusters: ...`, without constructor arguments) and calls
    `state.store(Clusters)`. `lock` is re-entrant and shared; hold it while you change a store.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._stores: dict[type, Any] = {}

    def store(self, store_class: type[StoreType]) -> StoreType:
        """The one instance of this store."""
        with self.lock:
            if store_class not in self._stores:
                self._stores[store_class] = store_class()
            return cast("StoreType", self._stores[store_class])


class Clock:
    """The time of the embedded AWS, which starts at ``begins`` (default: the present).

    `scale` shortens every sleep, so that a handler may wait as AWS would.
    """

    def __init__(self, scale: float = 1.0, begins: datetime | None = None) -> None:
        self.scale = scale
        self._ahead = begins - datetime.now(UTC) if begins else timedelta()

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        return datetime.now(UTC) + self._ahead

    def sleep(self, seconds: float) -> None:
        """Wait `seconds` of embedded time."""
        time.sleep(seconds * self.scale)


@dataclass(frozen=True)
class Account:
    """The document of the account file (quotas, training plans, capacity ...).

    An empty document is a default account. Services read their section with `section`.
    """

    document: Mapping[str, Any] = field(default_factory=dict)

    def section(self, name: str) -> Mapping[str, Any]:
        """One top-level mapping of the file; empty where the file has none."""
        value = self.document.get(name) or {}
        if not isinstance(value, Mapping):
            raise TypeError(f"account file: {name} must be a mapping, got {type(value).__name__}")
        return value


@dataclass
class Context:
    """One account in one region of the embedded AWS.

    `endpoint` is the server's own address, which clients of this context call, so that a handler sees the same state as
    a user. `answer` returns the response to a request without the network, which is faster; without it, requests are
    sent to `endpoint`.
    """

    account: str
    region: str
    partition: str
    url_suffix: str
    endpoint: str
    state: State = field(default_factory=State)
    clock: Clock = field(default_factory=Clock)
    account_file: Account = field(default_factory=Account)
    answer: Callable[[AWSPreparedRequest], AWSResponse] | None = None
    # may be shared with contexts that have the same answer, which a client keeps: it costs more than most requests
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def client(self, service: str, region: str | None = None) -> Any:
        """A boto3 client of this embedded AWS, shared between threads (botocore clients may be)."""
        # Any: one function serves every service, boto3's own typing needs a literal per service
        key = (service, region or self.region)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._make_client(*key)
            return self._clients[key]

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """An ARN of this account; `region=""` leaves the region out (iam)."""
        at = self.region if region is None else region
        return f"arn:{self.partition}:{service}:{at}:{self.account}:{resource}"

    def unique_suffix(self, length: int = 8) -> str:
        """Random upper-case letters and digits, as CloudFormation appends to generated names."""
        return "".join(random.choices(string.ascii_uppercase + string.digits, k=length))  # noqa: S311 - a name, no secret

    def _make_client(self, service: str, region: str) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - MOTO_ACCOUNT_ID must be set before anything of moto or boto3 loads

        config = Config(
            # a lost connection, or a conflict of threads in moto, is no response of AWS
            retries={"max_attempts": 3, "mode": "standard"},
            s3={"addressing_style": "path"},
            max_pool_connections=32,
            # all threads of a busy machine call the same server
            connect_timeout=60,
            # a Lambda function with kubectl returns when the chart is installed
            read_timeout=900,
        )
        # the stubs have an overload per service and none for a variable
        make: Any = _session().client
        # a session makes one client at a time
        with _making:
            client = make(service, region_name=region, endpoint_url=self.endpoint, config=config)
        client.meta.events.register("provide-client-params", _pass_on)
        answer = self.answer
        if answer is not None:
            client.meta.events.register("before-send", lambda request, **_: answer(request))
        return client


_making = threading.Lock()


def _pass_on(params: dict[str, Any], model: Any, **_: Any) -> None:
    listener = call_listener.get()
    if listener is not None:
        listener(params, model)


@cache
def _session() -> Any:
    """One session for all clients: it keeps the list of services, which takes longer to read than a client to make."""
    import boto3  # noqa: PLC0415 - MOTO_ACCOUNT_ID must be set before anything of moto or boto3 loads

    return boto3.session.Session(aws_access_key_id=INTERNAL.key_id, aws_secret_access_key=INTERNAL.secret)
