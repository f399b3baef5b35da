"""An AWS with scripted responses: inside botocore for most tests, over loopback HTTP for network errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.loaders import Loader, create_loader
from botocore.model import ServiceModel
from botocore.validate import validate_parameters

from hyperpod_cdk.checks.answers import Refused
from hyperpod_cdk.checks.aws import LiveAws

ACCOUNT = "111122223333"
REGION = "us-east-1"
ARN = f"arn:aws:iam::{ACCOUNT}:user/ops/dana"
WHO = {"Account": ACCOUNT, "Arn": ARN, "UserId": "AIDAEXAMPLE"}

_PREFIXES = {"service-quotas": "servicequotas", "amp": "aps"}


@dataclass(frozen=True)
class Fails:
    """An error of AWS in place of an answer."""

    code: str
    message: str = ""
    status: int = 400


Scripted = Mapping[str, Any] | Fails | BaseException
Script = dict[str, Scripted | list[Scripted] | Callable[[Mapping[str, Any]], Scripted]]


@dataclass
class ScriptedSession:
    """A botocore session whose calls, named as ``ec2:DescribeVpcs``, are answered by ``script``.

    An answer is a dict of the operation's shape, a `Fails`, an exception to raise, a function of the parameters, or a
    list of those for one call after another. ``asked`` has every call with its parameters. What is not in the script is
    an error of the test.
    """

    script: Script
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def session(self) -> botocore.session.Session:
        """Return a session with credentials. The session before is at its end: tests share the clients."""
        shared = _shared_session()
        shared.scripted = self
        return shared

    def answer(self, name: str, params: dict[str, Any]) -> Any:
        """Return what botocore takes for the response to a call and its parsed form."""
        self.asked.append((name, params))
        answer: Any = self.script[name]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if callable(answer):
            answer = answer(params)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Fails):
            parsed: dict[str, Any] = {
                "Error": {"Code": answer.code, "Message": answer.message},
                "ResponseMetadata": {"HTTPStatusCode": answer.status},
            }
            return AWSResponse("", answer.status, HTTPHeaders(), None), parsed
        # a copy, since botocore changes the answers of IAM
        parsed = {"ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}}, **deepcopy(dict(answer))}
        return AWSResponse("", 200, HTTPHeaders(), None), parsed


class Reaching(LiveAws):
    """One that reaches the API server of its EKS cluster, which answers by path, a GET alone."""

    kubernetes: Mapping[str, Any] = {}

    def kubernetes_read(self, cluster: str, path: str) -> Mapping[str, Any]:
        """Return the answer to a path, or raise it."""
        assert cluster.endswith("-eks")
        answer = self.kubernetes.get(path, Refused("not there", code="404"))
        if isinstance(answer, BaseException):
            raise answer
        return dict(answer)


def workloads(*rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lists of Deployments, DaemonSets and StatefulSets of an API server, by path, each on one page."""
    kinds = {"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet"}
    return {
        f"/apis/apps/v1/{plural}?limit=500": {"items": [row for row in rows if row["kind"] == kind]}
        for plural, kind in kinds.items()
    }


class _SharedSession(botocore.session.Session):
    """Makes the client of a service once: the models of services are large."""

    scripted: ScriptedSession

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[str, Any] = {}
        self.register_component("data_loader", _loader())
        self.set_credentials("AKIAEXAMPLE", "secret")
        self.register("before-parameter-build", self._keep)
        self.register("before-call", self._answer)

    def create_client(self, service_name: str, *arguments: Any, **named: Any) -> Any:
        if service_name not in self._made:
            self._made[service_name] = super().create_client(service_name, *arguments, **named)
        return self._made[service_name]

    def _keep(self, **event: Any) -> None:
        event["context"]["asked"] = dict(event["params"])

    def _answer(self, **event: Any) -> Any:
        model = event["model"]
        service = model.service_model.service_name
        return self.scripted.answer(api_name(service, model.name), event["context"]["asked"])


def api_name(service: str, operation: str) -> str:
    """Return an operation as a script names it: ``servicequotas:ListServiceQuotas``."""
    return f"{_PREFIXES.get(service, service)}:{operation}"


def a_role(params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer iam:GetRole: there is a role of the name that was asked for."""
    name = str(params["RoleName"])
    made = {"RoleId": "AROAEXAMPLE0EXAMPLE0", "CreateDate": datetime(2026, 11, 1, tzinfo=UTC)}
    trust = {"AssumeRolePolicyDocument": '{"Version": "2012-10-17", "Statement": []}'}
    return {"Role": {"RoleName": name, "Path": "/", "Arn": f"arn:aws:iam::{ACCOUNT}:role/{name}", **made, **trust}}


def holds_to_shape(service: str, operation: str, answer: Mapping[str, Any]) -> None:
    """Refuse an answer that has members which the operation's service model does not know, or of another kind."""
    model = ServiceModel(_loader().load_service_model(service, "service-2"), service).operation_model(operation)
    shown = {key: value for key, value in answer.items() if key != "ResponseMetadata"}
    assert model.output_shape is not None
    assert set(shown) <= set(model.output_shape.members), f"{service} {operation} gives no {set(shown)}"
    validate_parameters(shown, model.output_shape)


Place = tuple[str | int, ...]
"""Where in an answer a member is."""


def members(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield the place of every member of an answer."""
    for name in value if isinstance(value, dict) else ():
        if name != "ResponseMetadata":
            yield (*at, name)
            yield from members(value[name], (*at, name))
    for index, each in enumerate(value if isinstance(value, list) else ()):
        yield from members(each, (*at, index))


def without(answer: Any, place: Place) -> Any:
    """Return an answer that lost the member at a place."""
    lost = deepcopy(answer)
    inner = lost
    for each in place[:-1]:
        inner = inner[each]
    del inner[place[-1]]
    return lost


@dataclass
class Reply:
    """What the HTTP server sends: ``delay_s`` before it, ``length`` in place of the body's real length."""

    status: int = 200
    body: bytes = b"{}"
    delay_s: float = 0
    length: int | None = None


@dataclass
class Loopback:
    """An HTTP server for one test: the replies of ``script`` for an operation in turn, the last one again and again."""

    endpoint: str
    script: dict[str, list[Reply]]
    asked: list[str] = field(default_factory=list)


def plain_session() -> botocore.session.Session:
    """Return a session as botocore makes it, that does not read the models of services from files again."""
    session = botocore.session.Session()
    session.register_component("data_loader", _loader())
    return session


@contextmanager
def loopback(script: dict[str, list[Reply]]) -> Iterator[Loopback]:
    """Serve AWS's JSON and query protocols on 127.0.0.1. ``GetCallerIdentity`` is answered where it is not scripted."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            name = _operation(self.headers.get("X-Amz-Target", ""), body)
            served.asked.append(name)
            replies = script.get(name)
            reply = who(ACCOUNT) if replies is None else replies.pop(0) if len(replies) > 1 else replies[0]
            ended.wait(reply.delay_s)
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = Loopback(endpoint=f"http://127.0.0.1:{server.server_port}", script=script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield served
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@cache
def _shared_session() -> _SharedSession:
    return _SharedSession()


@cache
def _loader() -> Loader:
    return create_loader()


def who(account: str) -> Reply:
    """Return the reply to GetCallerIdentity."""
    result = f"<Arn>{ARN}</Arn><UserId>AIDAEXAMPLE</UserId><Account>{account}</Account>"
    return Reply(
        body=f"<GetCallerIdentityResponse><GetCallerIdentityResult>{result}</GetCallerIdentityResult>"
        "</GetCallerIdentityResponse>".encode()
    )


def json_reply(answer: Mapping[str, Any]) -> Reply:
    """Return the reply of a service that speaks JSON."""
    return Reply(body=json.dumps(answer).encode())


def json_error(code: str, message: str = "", *, status: int = 400) -> Reply:
    """Return the error of a service that speaks JSON."""
    return Reply(status=status, body=json.dumps({"__type": code, "message": message}).encode())


def query_error(code: str, message: str = "", *, status: int = 400) -> Reply:
    """Return the error of a service that speaks XML: STS, IAM."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Reply(status=status, body=f"<ErrorResponse>{error}</ErrorResponse>".encode())


def ec2_error(code: str, message: str = "", *, status: int = 400) -> Reply:
    """Return the error of EC2."""
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Reply(status=status, body=f"<Response><Errors>{error}</Errors></Response>".encode())


def _operation(target: str, body: bytes) -> str:
    if target:
        return target.rpartition(".")[2]
    return dict(parse_qsl(body.decode()))["Action"]
