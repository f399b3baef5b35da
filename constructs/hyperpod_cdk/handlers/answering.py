"""What every function behind a custom resource does with CloudFormation: work in time, patience with IAM, one answer.

A handler gets its AWS clients from its ``Turn`` only, so that none of them can forget that IAM does not know yet the
role and the rights that the same deployment has just made. Standard library only at the top, and in a module of its
own: a function takes it along beside its own folder.
"""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

LOG = logging.getLogger(__name__)

ANSWER_SECONDS = 25.0
"""How long before Lambda's timeout the work is given up; sending the answer, with its retries, takes no longer."""
PUT_TIMEOUT_SECONDS = 3.0
"""How long connecting may take, and waiting for the answer's receipt."""
PUT_PAUSES = (1.0, 2.0)
"""Seconds between attempts to send the answer; one more attempt follows the last."""
ANSWER_BYTES = 4000
"""CloudFormation takes answers of up to 4096 bytes."""
PATIENCE_SECONDS = 60.0
"""Seconds that all pauses of one event may take together; IAM's changes are known everywhere within seconds, seldom
within a minute (IAM user guide, "Changes that I make are not always immediately visible")."""
PATIENCE_PAUSES = (1.0, 2.0, 4.0, 8.0, 10.0)
"""Seconds between attempts at a call that may succeed later; the last one repeats."""

DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedException", "UnauthorizedOperation"})
"""How AWS's services say that a right is missing."""
UNKNOWN_TO_IAM = DENIED | {"InvalidClientTokenId", "UnrecognizedClientException"}
"""How a role that IAM does not know everywhere yet is refused, and how one without rights is refused for good."""
_THROTTLED = frozenset(
    {"RequestLimitExceeded", "ServiceUnavailable", "SlowDown", "Throttling", "ThrottlingException", "TooManyRequests"}
    | {"InternalError", "InternalFailure", "InternalServerError", "ServerException", "ServiceUnavailableException"}
    | {"TooManyRequestsException"}
)
_SERVER_ERROR = 500

Clients = Callable[[str], Any]
Put = Callable[[str, bytes], None]
Sleep = Callable[[float], None]
Work = Callable[["Turn"], "Answer"]


class AnswerNotSentError(Exception):
    """CloudFormation's response URL could not be reached."""


class ToldError(Exception):
    """Something that CloudFormation is told in just these words."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What CloudFormation is told: ``reason`` is why it failed, empty where it did not; ``data`` the attributes."""

    reason: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


LATER = Answer()
"""The answer of who hands the event over: nothing is sent, another invocation answers."""


class Turn:
    """One event and the means to serve it: time, clients that are patient, and the physical id.

    ``physical_id`` is that of the event, or made of stack and logical id, so that nothing is ever replaced. Who makes
    something sets it as soon as it is made: a creation that fails afterwards still says what is to be deleted.
    """

    def __init__(
        self, event: Mapping[str, Any], context: Any, clients: Clients, sleep: Sleep, passing: frozenset[str]
    ) -> None:
        self.event = event
        self.context = context
        self.kind = str(event.get("RequestType", ""))
        self.physical_id = _physical_id(event)
        self._clients = clients
        self._sleep = sleep
        self._passing = passing | UNKNOWN_TO_IAM | _THROTTLED
        self._patience = PATIENCE_SECONDS
        self._over = threading.Event()

    def client(self, service: str) -> Any:
        """Return a client that repeats what AWS refuses for now, and makes no call once the event is answered."""
        return _Patient(self._clients(service), self)

    def seconds_left(self) -> float:
        """Return the seconds that the work may still take."""
        return float(self.context.get_remaining_time_in_millis()) / 1000 - ANSWER_SECONDS

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._sleep(seconds)

    def end(self) -> None:
        """Let no call follow: what a thread begins after the answer, nobody would know of."""
        self._over.set()

    def patiently(self, call: Callable[[], Any]) -> Any:
        """Make a call, and repeat it while AWS refuses it for now, as long as patience and time last."""
        for pause in endlessly(PATIENCE_PAUSES):
            if self._over.is_set():
                raise TimeoutError("the event is answered")
            try:
                return call()
            except Exception as error:
                if not self._passes(error) or pause > self._patience or pause > self.seconds_left():
                    raise
                LOG.warning("in %.0f s once more: %s", pause, error)
            self._patience -= pause
            self._sleep(pause)
        raise AssertionError("unreachable: the pauses do not end")

    def _passes(self, error: Exception) -> bool:
        response = getattr(error, "response", None) or {}
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
        return error_code(error) in self._passing or status >= _SERVER_ERROR


class _Patient:
    """A client whose calls are made patiently."""

    def __init__(self, client: Any, turn: Turn) -> None:
        self._client = client
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found):
            return found
        return lambda **arguments: self._turn.patiently(lambda: found(**arguments))


@dataclass
class _Worker:
    """What a thread made of its work: an answer or an error, None while it goes on."""

    result: Answer | BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def serve(
    event: Mapping[str, Any],
    context: Any,
    work: Work,
    *,
    clients: Clients,
    put: Put,
    sleep: Sleep = time.sleep,
    failed: Callable[[BaseException], Answer] | None = None,
    passing: frozenset[str] = frozenset(),
) -> None:
    """Do the work of one event and answer it once, whatever becomes of the work.

    ``work`` runs in a thread of its own, which ends badly, or not in time, without taking the answer with it.
    ``failed`` makes the answer of its exception; default: a FAILED with the exception's words. ``passing`` are codes of
    errors that pass beside throttling and missing rights. An update that fails keeps the physical id that it had.

    Raises AnswerNotSentError if the answer itself cannot be sent, so that Lambda invokes the function again.
    """
    url = str(event["ResponseURL"])
    LOG.info("%s %s", event.get("RequestType"), event.get("LogicalResourceId"))
    turn = Turn(event, context, clients, sleep, passing)
    result = _in_time(lambda: _served(turn, work), turn.seconds_left())
    turn.end()
    if result is LATER:
        return
    if isinstance(result, BaseException):
        LOG.error("%s of %s failed", event.get("RequestType"), event.get("LogicalResourceId"), exc_info=result)
        result = (failed or _failed)(result)
    body = envelope(event)
    if not (result.reason and turn.kind == "Update"):
        body["PhysicalResourceId"] = turn.physical_id
    if result.reason:
        body |= {"Status": "FAILED", "Reason": cut(result.reason, ANSWER_BYTES - len(json.dumps(body)))}
    else:
        body["Data"] = dict(result.data)
    LOG.info("%s %s %s", body["Status"], body["PhysicalResourceId"], body["Reason"] or body["Data"])
    _put_patiently(url, json.dumps(body).encode(), put, sleep)


def envelope(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an event that went well and has nothing to tell."""
    return {
        "Status": "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": _physical_id(event),
        "StackId": str(event.get("StackId", "")),
        "RequestId": str(event.get("RequestId", "")),
        "LogicalResourceId": str(event.get("LogicalResourceId", "")),
        "Data": {},
    }


def room(event: Mapping[str, Any]) -> int:
    """Return the bytes of JSON that an answer to this event has for what it tells."""
    return ANSWER_BYTES - len(json.dumps(envelope(event)))


def cut(text: str, most: int) -> str:
    """Shorten a text to so many bytes of JSON."""
    if size(text) <= most:
        return text
    kept = text[:most]
    while kept and size(kept) > most - 4:
        kept = kept[: len(kept) * 9 // 10]
    return f"{kept} ..."


def size(text: str) -> int:
    """Return the bytes that a text takes in JSON, without its quotes."""
    return len(json.dumps(text)) - len('""')


def words(error: BaseException) -> str:
    """Return what an error says; one that nobody expected says what it is, too."""
    if isinstance(error, ToldError | TimeoutError) or error_code(error):
        return str(error)
    return f"{type(error).__name__}: {error}"


def error_code(error: BaseException) -> str:
    """Return AWS's code of a ClientError, which is not imported here; empty for any other error."""
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def endlessly(pauses: Sequence[float]) -> Iterator[float]:
    """Yield the pauses in turn, then the last one again and again."""
    yield from pauses
    while True:
        yield pauses[-1]


def client(service: str) -> Any:
    """Make boto3's client of a service; its own retries are for what lasts a moment."""
    import boto3  # noqa: PLC0415 - a module that cannot be loaded is one more thing to be answered for
    from botocore.config import Config  # noqa: PLC0415 - as above

    config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "max_attempts": 6})
    # any service: boto3's stubs want a literal
    make: Callable[..., Any] = boto3.client
    return make(service, config=config)


def put(url: str, body: bytes) -> None:
    """Send the answer to CloudFormation's response URL (https; a local stand-in may use http)."""
    parts = urlsplit(url)
    connection_type = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connection_type(parts.netloc, timeout=PUT_TIMEOUT_SECONDS)
    try:
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        # the URL is signed for an empty content type
        connection.request("PUT", target, body=body, headers={"Content-Type": ""})
        response = connection.getresponse()
        response.read()
    finally:
        connection.close()
    if response.status >= 300:
        raise OSError(f"HTTP {response.status} {response.reason}")


def _served(turn: Turn, work: Work) -> Answer:
    if turn.kind not in {"Create", "Update", "Delete"}:
        raise ToldError(f"RequestType: must be Create, Update or Delete, got {turn.kind!r}")
    return work(turn)


def _failed(error: BaseException) -> Answer:
    return Answer(reason=f"{words(error)}; deploy again" if isinstance(error, TimeoutError) else words(error))


def _physical_id(event: Mapping[str, Any]) -> str:
    stack, logical_id = str(event.get("StackId", "")), str(event.get("LogicalResourceId", ""))
    return str(event.get("PhysicalResourceId") or f"{logical_id}-{stack.rpartition('/')[2]}")


def _in_time(function: Callable[[], Answer], seconds: float) -> Answer | BaseException:
    work = _Worker()

    def run() -> None:
        try:
            work.result = function()
        except BaseException as error:  # noqa: BLE001 - even an exit is answered for
            work.result = error
        work.ended.set()

    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:
        return error
    work.ended.wait(max(seconds, 0.0))
    return work.result or TimeoutError("AWS had not answered when the function's time ran out")


def _put_patiently(url: str, body: bytes, put: Put, sleep: Sleep) -> None:
    for pause in (*PUT_PAUSES, None):
        try:
            put(url, body)
        except (OSError, http.client.HTTPException) as error:
            LOG.warning("CloudFormation does not take the answer: %s", error)
            if pause is None:
                raise AnswerNotSentError(f"CloudFormation does not take the answer: {error}") from error
            sleep(pause)
        else:
            return
