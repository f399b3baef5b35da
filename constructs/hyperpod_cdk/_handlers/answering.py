"""What every function behind a custom resource does with CloudFormation: work in time, one answer, sent patiently.

Standard library only, and in a module of its own: a function takes it along beside its own folder.
"""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
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
REASON_LIMIT = 1500
"""CloudFormation takes answers of up to 4096 bytes; characters of the reason that are kept."""

Put = Callable[[str, bytes], None]
Sleep = Callable[[float], None]


class AnswerNotSentError(Exception):
    """CloudFormation's response URL could not be reached."""


@dataclass
class _Work:
    """What a thread made of its work: an error or none, once it ended."""

    error: BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def serve(
    event: Mapping[str, Any], context: Any, work: Callable[[float], None], *, put: Put, sleep: Sleep = time.sleep
) -> None:
    """Do the work of one event and answer it, whatever becomes of the work.

    ``work`` gets the seconds that it may take; it runs in a thread of its own, which ends badly, or not in time,
    without taking the answer with it. Its exception is the reason of a FAILED. The physical id is that of the event,
    or made of stack and logical id: nothing is ever replaced.

    Raises AnswerNotSentError if the answer itself cannot be sent, so that Lambda invokes the function again.
    """
    LOG.info("%s %s", event.get("RequestType"), event.get("LogicalResourceId"))
    seconds = float(context.get_remaining_time_in_millis()) / 1000 - ANSWER_SECONDS
    error = _in_time(lambda: work(seconds), seconds)
    stack, logical_id = str(event.get("StackId", "")), str(event.get("LogicalResourceId", ""))
    body = {
        "Status": "FAILED" if error else "SUCCESS",
        "Reason": (str(error) or type(error).__name__)[:REASON_LIMIT] if error else "",
        "PhysicalResourceId": str(event.get("PhysicalResourceId") or f"{logical_id}-{stack.rpartition('/')[2]}"),
        "StackId": stack,
        "RequestId": str(event.get("RequestId", "")),
        "LogicalResourceId": logical_id,
    }
    if error:
        LOG.error("%s of %s failed", event.get("RequestType"), logical_id, exc_info=error)
    _put_patiently(str(event["ResponseURL"]), json.dumps(body).encode(), put, sleep)


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


def _in_time(function: Callable[[], None], seconds: float) -> BaseException | None:
    work = _Work()

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - even an exit is answered for
            work.error = error
        work.ended.set()

    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:
        return error
    if work.ended.wait(max(seconds, 0.0)):
        return work.error
    return TimeoutError("AWS had not answered when the function's time ran out; deploy again")


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
