"""Calls that the embedded AWS makes of itself: handed to its WSGI application in this process, without a socket."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

_WITHOUT_PREFIX = frozenset({"CONTENT_TYPE", "CONTENT_LENGTH"})


def answered(application: Application, request: AWSPreparedRequest) -> AWSResponse:
    """Return the application's response to a request that a botocore client is about to send.

    The application runs in this thread, but with context variables of its own, as it would in a thread of the server.
    """
    status, headers, body = Context().run(captured, application, environ_of(request))
    return AWSResponse(
        request.url, status, HTTPHeaders.from_dict(headers), _Raw(b"" if request.method == "HEAD" else body)
    )


def captured(application: Application, environ: Environ) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body that an application sends."""
    began: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> None:
        began.append((status, headers))

    chunks = application(environ, start)
    try:
        body = b"".join(chunks)
    finally:
        getattr(chunks, "close", lambda: None)()
    status, headers = began[-1]
    return int(status.split()[0]), dict(headers), body


def environ_of(request: AWSPreparedRequest) -> Environ:
    """Return the WSGI environment of a request, as a server would make it of the same bytes."""
    url = urlsplit(request.url)
    body = _body(request.body)
    target = url.path or "/"
    environ: Environ = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        # WSGI's text of a path has a character for each byte (PEP 3333)
        "PATH_INFO": unquote_to_bytes(target).decode("latin-1"),
        "QUERY_STRING": url.query,
        "REQUEST_URI": f"{target}?{url.query}" if url.query else target,
        "SERVER_NAME": url.hostname,
        "SERVER_PORT": str(url.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": url.netloc,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    environ["RAW_URI"] = environ["REQUEST_URI"]
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key in _WITHOUT_PREFIX else f"HTTP_{key}"] = (
            value.decode("latin-1") if isinstance(value, bytes) else str(value)
        )
    # the body is whole, however a client meant to send it
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ


def _body(body: Any) -> bytes:
    if body is None:
        return b""
    whole = body.read() if hasattr(body, "read") else body
    return whole.encode() if isinstance(whole, str) else bytes(whole)


class _Raw(io.BytesIO):
    """A body as botocore reads it from a connection."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        """Yield all that was not read."""
        yield self.read()
