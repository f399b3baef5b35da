"""The WSGI application of the embedded AWS: our operations first, moto's server for everything else."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

import botocore.session
from botocore.exceptions import ClientError
from werkzeug.datastructures import Headers, MultiDict

from hyperpod_cdk.rehearsal.embedded import inspection
from hyperpod_cdk.rehearsal.embedded.context import Account, Clock, Context
from hyperpod_cdk.rehearsal.embedded.operations import (
    OperationFunction,
    PassToMoto,
    ServiceError,
    operation_for,
    service_error,
    services_with_operations,
)
from hyperpod_cdk.rehearsal.embedded.protocol import (
    WireRequest,
    WireResponse,
    operation_of,
    parse,
    serialise,
    serialise_error,
    service_of_signing_name,
    signing_name,
)

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

OWN_SERVICES = frozenset({"cloudformation"})
"""Services that moto must never answer: its state of them is not ours."""

_log = logging.getLogger(__name__)


class EmbeddedAws:
    """One account of the embedded AWS, all regions; `endpoint` is where this application is served.

    moto answers what no `@operation` function does. Every region has a context of its own, made when first asked.
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
    ) -> None:
        self.account = account
        self.region = region
        self.endpoint = endpoint
        self._moto = moto
        self._account_file = account_file or Account()
        self._clock = clock or Clock()
        self._contexts: dict[str, Context] = {}
        self._lock = threading.Lock()
        self._services_by_signing_name: dict[str, list[str]] = {}
        for service in sorted(services_with_operations()):
            self._services_by_signing_name.setdefault(signing_name(service), []).append(service)

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
                )
            return self._contexts[name]

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """WSGI entry point."""
        # moto matches S3 keys against the path as it was sent
        environ.setdefault("RAW_URI", environ.get("REQUEST_URI", ""))
        if environ.get("PATH_INFO") == inspection.PATH:
            body = json.dumps(inspection.inspect(self.context())).encode()
            return _send(WireResponse(200, {"Content-Type": "application/json"}, body), start_response)
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
        """moto's response; what moto cannot do is refused with status 400, for SDKs repeat a 500 for a minute."""
        try:
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
        """The response of our own function, None where moto must answer."""
        found = operation_of(service, request)
        name, path_values = found or ("", {})
        function = operation_for(service, name)
        if function is None:
            if service not in OWN_SERVICES:
                return None
            return serialise_error(service, ServiceError("InvalidAction", f"Could not find operation {name}"))
        try:
            parsed = parse(service, name, request, path_values)
            return serialise(service, name, self._call(function, region, parsed))
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

    application: Application = DomainDispatcherApplication(create_backend_app)
    return application


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


def wire_request(environ: Environ) -> WireRequest:
    """The request with its body read; the body is put back for moto."""
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


def _send(response: WireResponse, start_response: StartResponse) -> list[bytes]:
    headers = {**response.headers, "Content-Length": str(len(response.body))}
    start_response(f"{response.status} {'OK' if response.status < 400 else 'Error'}", list(headers.items()))
    return [response.body]
