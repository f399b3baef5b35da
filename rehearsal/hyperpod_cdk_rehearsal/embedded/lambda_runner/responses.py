"""The ResponseURL of a custom resource: a loopback address that waits for the first response."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOPBACK = "127.0.0.1"


class ResponseServer:
    """Serves every ResponseURL of one context on a port of its own; started when first used."""

    def __init__(self) -> None:
        self._waiting: dict[str, ResponseUrl] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                server.answer(self.path, self.rfile.read(length))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
                """Say nothing: the function's log tells of the response."""

        self._http = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._http.daemon_threads = True
        self.port: int = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, name="response-urls", daemon=True).start()

    @contextmanager
    def expect(self) -> Iterator[ResponseUrl]:
        """A new ResponseURL, open as long as the context."""
        path = f"/{uuid.uuid4()}"
        waiting = ResponseUrl(f"http://{LOOPBACK}:{self.port}{path}")
        self._waiting[path] = waiting
        try:
            yield waiting
        finally:
            del self._waiting[path]

    def answer(self, path: str, body: bytes) -> None:
        """An answer came; an address that nobody waits at is ignored, as a signed URL that has expired."""
        waiting = self._waiting.get(path.partition("?")[0])
        if waiting is not None:
            waiting.answer(body)

    def close(self) -> None:
        """Stop serving."""
        self._http.shutdown()
        self._http.server_close()


class ResponseUrl:
    """One address and the first answer put there; what comes after it is ignored."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._answered = threading.Event()
        self._body: bytes | None = None

    def answer(self, body: bytes) -> None:
        """Keep the first answer."""
        if not self._answered.is_set():
            self._body = body
            self._answered.set()

    def wait(self, seconds: float) -> bytes | None:
        """Return the response, or None if there was none in time."""
        self._answered.wait(seconds)
        return self._body
