"""The WSGI application of the embedded AWS: our operations first, and moto's server for all others."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import botocore.session
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ClientError
from werkzeug.datastructures import Headers, MultiDict

from hyperpod_cdk_rehearsal.embedded import grafana_api, inspection, kubernetes_api, moto_edge, moto_pages
from hyperpod_cdk_rehearsal.embedded.access_keys import FUNCTION, INTERNAL, AccessKey
from hyperpod_cdk_rehearsal.embedded.account import AccountFileError, account_of, amend
from hyperpod_cdk_rehearsal.embedded.cloudformation import deployer
from hyperpod_cdk_rehearsal.embedded.cloudformation.faults import set_faults
from hyperpod_cdk_rehearsal.embedded.context import Account, Clock, Context, asked_by_a_function
from hyperpod_cdk_rehearsal.embedded.in_process import Application, Environ, StartResponse, answered, captured
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_lock
from hyperpod_cdk_rehearsal.embedded.observed import as_observed
from hyperpod_cdk_rehearsal.embedded.operations import (
    OperationFunction,
    PassToMoto,
    ServiceError,
    operation_for,
    service_error,
    services_with_operations,
)
from hyperpod_cdk_rehearsal.embedded.protocol import (
    WireRequest,
    WireResponse,
    operation_of,
    parse,
    serialise,
    serialise_error,
    service_model,
    service_of_signing_name,
    signing_name,
)
from hyperpod_cdk_rehearsal.embedded.seeding import run_seeds
from hyperpod_cdk_rehearsal.embedded.services.identity import caller_arn
from hyperpod_cdk_rehearsal.embedded.signatures import RefusedSignatureError, SignedRequest, is_control_token, signer_of
from hyperpod_cdk_rehearsal.embedded.traffic import Call, Disconnected, Traffic, call_of

OWN_SERVICES = frozenset({"cloudformation"})
"""Services whose requests never go to moto, because it does not have our state."""

ACCOUNT_PATH = "/_rehearsal/account"
"""`POST` of `{"document": ..., "region": ..., "latency_ms": ..., "now": ...}` makes another account in its place."""

AMENDMENT_PATH = "/_rehearsal/amendment"
"""`POST` of sections of an account file, which replace the current ones; resources are kept."""

FAULTS_PATH = "/_rehearsal/faults"
"""`POST` of a list of `{"stack": ..., "logical_id": ..., "when": ...}` lets these resources fail; see `faults.py`.

`GET` and `POST` answer with those of the faults so far that happened."""

CONTROL_PREFIX = "/_rehearsal/"
CONTROL_HEADER = "X-Rehearsal-Token"
"""Control endpoints require the token in the line that the process prints when it is ready."""

READY_SECONDS = 60.0
"""How long a request waits until the account is filled from the account file."""

_log = logging.getLogger(__name__)


class EmbeddedAws:
    """One account of the embedded AWS, all regions; `endpoint` is where this application is served.

    moto answers what no `@operation` function does. Every region has a context of its own, made when first asked.
    `latency_ms` is added to every call from outside, once `fill` was called.
    """

    def __init__(
        self,
        *,
        account: str,
        region: str,
        endpoint: str,
        moto: Application,
        account_file: Account | None = None,
        clock: Clock | None = None,
        latency_ms: float = 0,
    ) -> None:
        self.account = account
        self.region = region
        self.endpoint = endpoint
        self._moto = moto
        self._account_file = account_file or Account()
        self._clock = clock or Clock()
        self._latency_ms = latency_ms
        self._contexts: dict[str, Context] = {}
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._ready.set()
        self._problem = ""
        self._page_size: int | None = None
        self._traffic = Traffic()
        self._services_by_signing_name: dict[str, list[str]] = {}
        for service in sorted(services_with_operations()):
            self._services_by_signing_name.setdefault(signing_name(service), []).append(service)

    def hold(self) -> None:
        """Make external calls wait for `fill`."""
        self._ready.clear()

    def fill(self) -> None:
        """Fill the account from its file; external calls are then served."""
        context = self.context()
        self._problem, self._page_size = "", None
        try:
            file = account_of(context)
            run_seeds(context)
            self._page_size = file.page_size
            self._traffic = Traffic(
                faults=file.faults,
                denied=file.iam.denied_calls,
                latency_ms=self._latency_ms,
                caller=caller_arn(context),
            )
        except Exception as error:  # noqa: BLE001 - callers get the error from the running server
            _log.exception("the account could not be filled")
            self._problem = f"the account could not be filled: {error}"
        finally:
            self._ready.set()

    def replace(self, *, account_file: Account, region: str, latency_ms: float, begins: datetime | None) -> None:
        """Replace the account, with all its resources, by another one with the same ID."""
        self.hold()
        self._traffic.close()
        with self._lock:
            for context in self._contexts.values():
                kubernetes_api.stop(context)
                grafana_api.stop(context)
            self._contexts.clear()
            self._account_file, self.region, self._latency_ms = account_file, region, latency_ms
            self._clock = Clock(self._clock.scale, begins)
            moto_edge.empty_moto()
        self.fill()

    def context(self, region: str | None = None) -> Context:
        """The context of a region, the rehearsed one by default."""
        name = region or self.region
        with self._lock:
            if name not in self._contexts:
                partition, suffix = partition_of(name)
                self._contexts[name] = Context(
                    account=self.account,
                    region=name,
                    partition=partition,
                    url_suffix=suffix,
                    endpoint=self.endpoint,
                    account_file=self._account_file,
                    clock=self._clock,
                    answer=self.answer_itself,
                    _clients=self._clients,
                )
            return self._contexts[name]

    def answer_itself(self, request: AWSPreparedRequest) -> AWSResponse:
        """The response to a request of a client of a context: its signature is not checked, no fault strikes it."""
        return answered(self._respond, request)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """WSGI entry point."""
        # moto matches S3 keys against the path as it was sent
        environ.setdefault("RAW_URI", environ.get("REQUEST_URI", ""))
        port = urlsplit(self.endpoint).port
        if environ.get("HTTP_HOST") not in {f"127.0.0.1:{port}", f"localhost:{port}"}:
            # another host name that resolves to loopback: a web page that tries to call this server
            return _send(_plain(421, "this address is not served here"), start_response)
        if environ.get("PATH_INFO", "").startswith(CONTROL_PREFIX):
            return _send(self._control(environ), start_response)
        try:
            signer = _signer(environ)
        except RefusedSignatureError as error:
            return _send(_unsigned(environ, error), start_response)
        asked_by_a_function.set(signer == FUNCTION)
        if signer == INTERNAL:
            return self._respond(environ, start_response)
        self._ready.wait(READY_SECONDS)
        return self._from_outside(environ, start_response)

    def _control(self, environ: Environ) -> WireResponse:
        if not is_control_token(environ.get(f"HTTP_{CONTROL_HEADER.upper().replace('-', '_')}", "")):
            return _plain(403, f"{CONTROL_HEADER} is missing or wrong")
        answers: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", inspection.PATH): self._state,
            ("GET", deployer.PATH): lambda: {"steps": deployer.steps(self.context())},
            ("POST", ACCOUNT_PATH): lambda: self._replace(json.loads(wire_request(environ).body)),
            ("POST", AMENDMENT_PATH): lambda: self._amend(json.loads(wire_request(environ).body)),
            ("GET", FAULTS_PATH): lambda: set_faults(self.context(), None),
            ("POST", FAULTS_PATH): lambda: set_faults(self.context(), json.loads(wire_request(environ).body)),
        }
        answer = answers.get((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        return _json(answer()) if answer else _plain(404, "there is no such control endpoint")

    def _state(self) -> dict[str, Any]:
        return {**inspection.inspect(self.context()), "calls": self._traffic.as_dict()}

    def _amend(self, sections: dict[str, Any]) -> dict[str, Any]:
        try:
            amend(self.context(), sections)
        except AccountFileError as error:
            return {"problem": str(error)}
        return {"problem": ""}

    def _replace(self, wanted: dict[str, Any]) -> dict[str, Any]:
        self.replace(
            account_file=Account(wanted.get("document") or {}),
            region=wanted.get("region") or self.region,
            latency_ms=wanted.get("latency_ms") or 0,
            begins=datetime.fromisoformat(wanted["now"]) if wanted.get("now") else None,
        )
        return {"endpoint": self.endpoint, "problem": self._problem}

    def _from_outside(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        is_form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
        # an upload is better left unread, and only the query protocols name the operation in the body
        request = wire_request(environ, read_body=is_form)
        call = call_of(credential_scope(environ)[1], request)
        try:
            response = self._traffic.pass_through(call, lambda: self._whole(call, request, environ), is_head=is_head)
        except Disconnected:
            # the server's own exception for a closed connection
            from waitress.channel import ClientDisconnected  # noqa: PLC0415 - needed by nobody else

            raise ClientDisconnected from None
        return _send(response, start_response, is_head=is_head)

    def _whole(self, call: Call, request: WireRequest, environ: Environ) -> WireResponse:
        def respond() -> WireResponse:
            return WireResponse(*captured(self._respond, environ))

        if self._problem:
            return serialise_error(call.service or "s3", ServiceError("InternalFailure", self._problem))
        is_motos = operation_for(call.service, call.operation) is None or call.operation in moto_pages.LEFT_TO_MOTO
        if call.service == "ec2" and is_motos:
            return moto_pages.ec2_page(call.operation, request, self._page_size, respond)
        if call.service and is_motos:
            moto_pages.limit_json(environ, call.service, call.operation, self._page_size)
        return respond()

    def _respond(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        region, name = credential_scope(environ)
        services = self._services_by_signing_name.get(name, [])
        if services:
            request = wire_request(environ)
            for service in services:
                response = self._answer(service, region, request)
                if response is not None:
                    return _send(response, start_response)
        return self._from_moto(name, environ, start_response)

    def _from_moto(self, name: str, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Return moto's response; unsupported requests get status 400, because SDKs retry a 500 for a minute."""
        try:
            with moto_lock:
                return self._moto(environ, start_response)
        except NotImplementedError as error:
            refusal = ServiceError("NotImplemented", f"the embedded AWS has no {name} operation for this: {error}")
        except Exception as error:  # noqa: BLE001 - a bug of moto's fails one request, not the server
            _log.exception("moto failed on a request to %s", name)
            refusal = ServiceError("InternalFailure", f"{type(error).__name__}: {error}")
        service = service_of_signing_name(name) or "s3"
        _log.info("%s refused: %s", service, refusal.message)
        return _send(serialise_error(service, refusal), start_response)

    def _answer(self, service: str, region: str, request: WireRequest) -> WireResponse | None:
        """Return the response of our own function, or None if moto must handle the request."""
        found = operation_of(service, request)
        name, path_values = found or ("", {})
        function = operation_for(service, name)
        if function is None:
            if service not in OWN_SERVICES:
                return None
            return serialise_error(service, ServiceError("InvalidAction", f"Could not find operation {name}"))
        try:
            parsed = parse(service, name, request, path_values)
            parsed = moto_pages.with_limit(service, name, parsed, self._page_size)
            result = moto_pages.in_pages(service, name, parsed, self._call(function, region, parsed))
            observed = account_of(self.context(region or None)).observed
            return serialise(service, name, as_observed(observed, f"{service}:{name}", result))
        except PassToMoto:
            return None
        except ServiceError as error:
            _log.info("%s:%s refused: %s: %s", service, name, error.code, error.message)
            return serialise_error(service, error)
        except Exception:  # noqa: BLE001 - a bug fails one request, not the server
            _log.exception("%s:%s failed", service, name)
            # status 400, not 500: every SDK would ask again for a minute before it shows the message
            return serialise_error(service, ServiceError("InternalFailure", f"{service}:{name} failed, see the log"))

    def _call(self, function: OperationFunction, region: str, request: dict[str, Any]) -> dict[str, Any] | None:
        try:
            return function(self.context(region or None), request)
        except ClientError as error:
            raise service_error(error) from error


def moto_application() -> Application:
    """moto's server, every service made when first asked for."""
    # moto reads MOTO_ACCOUNT_ID while it loads
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415

    class Dispatcher(DomainDispatcherApplication):
        """moto's own, which falls over a service that it does not have instead of saying so."""

        def get_backend_for_host(self, host: str | None) -> Any:
            backend = super().get_backend_for_host(host)
            if host is not None and backend is None:
                raise NotImplementedError(host)
            return backend

    application: Application = Dispatcher(create_backend_app)
    return application


@cache
def partition_of(region: str) -> tuple[str, str]:
    """Partition and domain suffix of a region, by botocore's data; a region of no pattern is one of `aws`."""
    partitions = botocore.session.get_session().get_data("partitions")["partitions"]
    found = next((p for p in partitions if re.fullmatch(p["regionRegex"], region)), partitions[0])
    return str(found["id"]), str(found["outputs"]["dnsSuffix"])


def credential_scope(environ: Environ) -> tuple[str, str]:
    """Region and signing name of a SigV4 request, header or presigned; two empty strings where it has neither."""
    authorization = environ.get("HTTP_AUTHORIZATION", "")
    _, _, credential = authorization.partition("Credential=")
    if not credential:
        credential = dict(parse_qsl(environ.get("QUERY_STRING", ""))).get("X-Amz-Credential", "")
    parts = credential.split(",")[0].split("/")
    if len(parts) < 5:
        return "", ""
    return parts[-3], parts[-2].lower()


def wire_request(environ: Environ, *, read_body: bool = True) -> WireRequest:
    """The request with its body read, unless told not to; the body is put back for moto."""
    body = b""
    if read_body:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        environ["wsgi.input"] = io.BytesIO(body)
    pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        pairs += parse_qsl(body.decode(), keep_blank_values=True)
    headers = Headers(
        [(key[5:].replace("_", "-").title(), value) for key, value in environ.items() if key.startswith("HTTP_")]
    )
    raw_path = environ.get("REQUEST_URI") or environ.get("PATH_INFO", "/")
    return WireRequest(environ["REQUEST_METHOD"], raw_path.partition("?")[0], MultiDict(pairs), headers, body)


def _signer(environ: Environ) -> AccessKey:
    """The key that signed a request; raises RefusedSignatureError."""
    headers = {key[5:].replace("_", "-").lower(): value for key, value in environ.items() if key.startswith("HTTP_")}
    headers |= {
        name: environ[key]
        for name, key in (("content-type", "CONTENT_TYPE"), ("content-length", "CONTENT_LENGTH"))
        if key in environ
    }
    # S3's callers state the hash of what they send: an upload is better left unread
    body = b"" if "x-amz-content-sha256" in headers else wire_request(environ).body
    return signer_of(SignedRequest(environ["REQUEST_METHOD"], environ["RAW_URI"], headers, body))


def _unsigned(environ: Environ, error: RefusedSignatureError) -> WireResponse:
    service = service_of_signing_name(credential_scope(environ)[1]) or "s3"
    refusal = error.as_service_error(str(service_model(service).metadata["protocol"]))
    _log.info("%s %s refused: %s", environ["REQUEST_METHOD"], environ["RAW_URI"], refusal.message)
    response = serialise_error(service, refusal)
    # an answer to HEAD has no body: the next answer on the connection would be read from it
    is_head = environ["REQUEST_METHOD"] == "HEAD"
    return WireResponse(response.status, response.headers, b"") if is_head else response


def _plain(status: int, text: str) -> WireResponse:
    return WireResponse(status, {"Content-Type": "text/plain"}, f"{text}\n".encode())


def _json(value: Any) -> WireResponse:
    return WireResponse(200, {"Content-Type": "application/json"}, json.dumps(value, default=str).encode())


def _send(response: WireResponse, start_response: StartResponse, *, is_head: bool = False) -> list[bytes]:
    headers = dict(response.headers)
    if not (is_head and "Content-Length" in headers):
        # an answer to HEAD states the length of what GET would give
        headers["Content-Length"] = str(len(response.body))
    start_response(f"{response.status} {'OK' if response.status < 400 else 'Error'}", list(headers.items()))
    return [response.body]
