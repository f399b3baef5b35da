"""The HTTP APIs of the embedded Grafana workspaces: HTTPS on loopback, for what fills a workspace.

Paths, bodies and statuses are those of Grafana's "HTTP API reference" (data source, folder, dashboard), version 10.4.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from hyperpod_cdk_rehearsal.embedded import loopback_tls

if TYPE_CHECKING:
    from datetime import datetime

    from hyperpod_cdk_rehearsal.embedded.context import Context

UID_LENGTH = 40
"""Of data sources, folders and dashboards, at most."""

Answer = tuple[int, Any]


@dataclass
class Token:
    """A service account's token: whose it is, and until when it is taken."""

    account_id: str
    role: str
    ends: datetime


@dataclass
class Content:
    """What one workspace holds, by identifiers; ``tokens`` by their keys."""

    tokens: dict[str, Token] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: dict[str, dict[str, Any]] = field(default_factory=dict)
    dashboards: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)


@dataclass
class GrafanaApi:
    """The servers of one account, on one port: the first part of a path is the workspace's ID."""

    context: Context
    contents: dict[str, Content] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def address(self) -> str:
        """Host and port where it listens; it begins to when first asked for."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def answer(self, method: str, path: str, key: str, body: bytes) -> Answer:
        """Return status and body."""
        workspace, _, rest = path.strip("/").partition("/")
        with self.lock:
            content = self.contents.get(workspace)
            if content is None:
                return 404, {"message": "Not found"}
            token = content.tokens.get(key)
            if token is None or token.ends <= self.context.clock.now():
                return 401, {"message": "Unauthorized"}
            if method != "GET" and token.role != "ADMIN":
                return 403, {"message": "You'll need additional permissions to perform this action."}
            try:
                sent = json.loads(body) if body else {}
            except ValueError:
                return 400, {"message": "bad request data"}
            return _answered(content, method, rest.split("/"), sent)

    def stop(self) -> None:
        """Listen no more."""
        if "_server" in self.__dict__:
            self._server.shutdown()
            self._server.server_close()

    @cached_property
    def _server(self) -> ThreadingHTTPServer:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                key = self.headers.get("Authorization", "").removeprefix("Bearer ")
                status, answer = api.answer(self.command, self.path, key, self.rfile.read(length))
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the base's names

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
                """Say nothing: the standard error is the log of the embedded AWS."""

        return loopback_tls.serve(Handler, name="grafana-api")


def _answered(content: Content, method: str, path: list[str], sent: dict[str, Any]) -> Answer:  # noqa: PLR0911 - a line for each path
    match method, path:
        case "GET", ["api", "datasources", "uid", uid]:
            return _found(content.sources, uid, "Data source not found")
        case "POST", ["api", "datasources"]:
            return _add_source(content, sent)
        case "PUT", ["api", "datasources", "uid", uid]:
            return _update_source(content, uid, sent)
        case "GET", ["api", "folders", uid]:
            return _found(content.folders, uid, "folder not found")
        case "POST", ["api", "folders"]:
            return _add_folder(content, sent)
        case "POST", ["api", "dashboards", "db"]:
            return _save_dashboard(content, sent)
        case "GET", ["api", "dashboards", "uid", uid]:
            return _found(content.dashboards, uid, "Dashboard not found")
    return 404, {"message": "Not found"}


def _found(rows: dict[str, dict[str, Any]], uid: str, otherwise: str) -> Answer:
    return (200, rows[uid]) if uid in rows else (404, {"message": otherwise})


def _add_source(content: Content, sent: dict[str, Any]) -> Answer:
    uid, name = str(sent.get("uid") or ""), str(sent.get("name") or "")
    if not name or not sent.get("type") or not sent.get("access") or not 0 < len(uid) <= UID_LENGTH:
        return 400, {"message": "bad request data"}
    if any(name == each["name"] for each in content.sources.values()):
        return 409, {"message": "data source with the same name already exists"}
    if uid in content.sources:
        return 409, {"message": "data source with the same uid already exists"}
    content.sources[uid] = sent | {"id": len(content.sources) + 1, "version": 1, "readOnly": False}
    _set_default(content, uid)
    return 200, {"datasource": content.sources[uid], "message": "Datasource added", "name": name}


def _update_source(content: Content, uid: str, sent: dict[str, Any]) -> Answer:
    before = content.sources.get(uid)
    if before is None:
        return 404, {"message": "Data source not found"}
    content.sources[uid] = before | sent | {"id": before["id"], "version": before["version"] + 1}
    _set_default(content, uid)
    return 200, {"datasource": content.sources[uid], "message": "Datasource updated", "name": before["name"]}


def _set_default(content: Content, uid: str) -> None:
    if content.sources[uid].get("isDefault"):
        for other, row in content.sources.items():
            row["isDefault"] = other == uid


def _add_folder(content: Content, sent: dict[str, Any]) -> Answer:
    uid = str(sent.get("uid") or "")
    if not sent.get("title"):
        return 400, {"message": "folder title cannot be empty"}
    if uid in content.folders:
        return 412, {"message": "The folder has been changed by someone else", "status": "version-mismatch"}
    content.folders[uid] = {"uid": uid, "title": sent["title"], "version": 1}
    return 200, content.folders[uid]


def _save_dashboard(content: Content, sent: dict[str, Any]) -> Answer:
    model = sent.get("dashboard") or {}
    uid = str(model.get("uid") or "")
    if not model.get("title"):
        return 400, {"message": "Dashboard title cannot be empty"}
    if len(uid) > UID_LENGTH:
        return 400, {"message": "uid too long, max 40 characters"}
    if sent.get("folderUid") and sent["folderUid"] not in content.folders:
        return 400, {"message": "folder not found"}
    if uid in content.dashboards and not sent.get("overwrite"):
        message = "A dashboard with the same uid already exists"
        return 412, {"message": message, "status": "name-exists"}
    version = content.versions.get(uid, 0) + 1
    content.versions[uid] = version
    meta = {"folderUid": sent.get("folderUid", ""), "version": version}
    content.dashboards[uid] = {"dashboard": model | {"version": version}, "meta": meta}
    return 200, {"uid": uid, "status": "success", "version": version, "url": f"/d/{uid}"}


@dataclass
class _Running:
    api: GrafanaApi | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


def running(context: Context) -> GrafanaApi:
    """Return the servers of an account, which begin to run."""
    store = context.state.store(_Running)
    with store.lock:
        store.api = store.api or GrafanaApi(context)
        return store.api


def content_of(context: Context, workspace_id: str) -> Content:
    """Return what a workspace holds."""
    api = running(context)
    with api.lock:
        return api.contents.setdefault(workspace_id, Content())


def authority(context: Context) -> str | None:
    """Return what a function has to trust to reach a workspace, as PEM; None where there is no workspace."""
    return None if context.state.store(_Running).api is None else loopback_tls.certificate()[0]


def stop(context: Context) -> None:
    """Stop the servers of an account that another takes the place of."""
    found = context.state.store(_Running).api
    if found is not None:
        found.stop()
