"""AWS's wire protocols: which operation a request asks for, its parsed input, and the response on the wire."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

from botocore.exceptions import UnknownServiceError
from moto.core.model import OperationModel, ServiceModel
from moto.core.parse import PROTOCOL_PARSERS, RequestDict, RequestParserError
from moto.core.serialize import SerializationContext, get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.datastructures import Headers, MultiDict

from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.validation import request_problems, validation_message

_VALIDATION_CODES = {
    "cloudformation": "ValidationError",
    "eks": "InvalidParameterException",
    "fsx": "BadRequest",
    "service-quotas": "IllegalArgumentException",
    "lambda": "InvalidParameterValueException",
}
"""What a service calls a request that its model forbids; ValidationException elsewhere."""


@dataclass(frozen=True)
class WireRequest:
    """A request as it came: method, decoded path, query and form values, headers, body."""

    method: str
    path: str
    values: MultiDict[str, str]
    headers: Headers
    body: bytes


@dataclass(frozen=True)
class WireResponse:
    """A response as it goes out."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class _Route:
    operation: str
    method: str
    pattern: re.Pattern[str]
    query: Mapping[str, str]
    specificity: tuple[int, int] = field(compare=False, default=(0, 0))


@cache
def service_model(service: str) -> ServiceModel:
    """botocore's model of a service, in moto's classes that the parsers need."""
    return get_service_model(service)


def service_of_signing_name(name: str) -> str | None:
    """The service that usually signs with this name, None where there is no such one."""
    try:
        service_model(name)
    except UnknownServiceError:
        return None
    return name


def signing_name(service: str) -> str:
    """The service's name in a credential scope."""
    metadata = service_model(service).metadata
    return str(metadata.get("signingName") or metadata["endpointPrefix"])


def operation_of(service: str, request: WireRequest) -> tuple[str, dict[str, str]] | None:
    """The operation's name and the values in its path; None if the service has no such operation."""
    model = service_model(service)
    protocol = model.metadata["protocol"]
    if protocol == "json":
        prefix, _, name = request.headers.get("X-Amz-Target", "").rpartition(".")
        # the JavaScript SDK leaves the package out of a qualified prefix
        declared = model.metadata["targetPrefix"]
        return (name, {}) if prefix in (declared, declared.rpartition(".")[2]) else None
    if protocol in ("query", "ec2"):
        name = request.values.get("Action", "")
        return (name, {}) if name in model.operation_names else None
    for route in _routes(service):
        match = route.pattern.fullmatch(request.path)
        if route.method != request.method or match is None:
            continue
        if all(request.values.get(key) == value for key, value in route.query.items()):
            # a greedy label ({Key+}) may hold slashes; every other one is a single segment
            return route.operation, {_label(k): unquote(v) for k, v in match.groupdict().items()}
    return None


def parse(service: str, operation: str, request: WireRequest, path_values: Mapping[str, str]) -> dict[str, Any]:
    """The operation's input; raises ServiceError where the request does not fit the model."""
    model = service_model(service)
    operation_model = model.operation_model(operation)
    parser = PROTOCOL_PARSERS[model.metadata["protocol"]](operation_model)
    wire: RequestDict = {
        "body": request.body,
        "headers": request.headers,
        "method": request.method,
        "url_params": dict(path_values),
        "url_path": request.path,
        "values": request.values,
    }
    try:
        if model.metadata["protocol"] == "json":
            # the parser takes broken JSON for an empty request
            json.loads(request.body or b"{}")
        parsed: dict[str, Any] = parser.parse(wire) or {}
    except (RequestParserError, json.JSONDecodeError, ValueError, TypeError, AttributeError) as error:
        # the parsers assume well-formed input and raise whatever a wrong type leads to
        raise ServiceError("SerializationException", f"request could not be parsed: {error}") from error
    parsed = {name: _aware(value) for name, value in parsed.items() if not _is_absent(operation_model, name, value)}
    problems = request_problems(operation_model.input_shape, parsed)
    if problems:
        code = _VALIDATION_CODES.get(service, "ValidationException")
        raise ServiceError(code, validation_message(problems))
    return parsed


def serialise(service: str, operation: str, result: Mapping[str, Any] | None) -> WireResponse:
    """The successful response of an operation."""
    model = service_model(service)
    request_id = str(uuid.uuid4())
    serializer_class = get_serializer_class(service, model.metadata["protocol"])
    serializer = serializer_class(
        operation_model=model.operation_model(operation), context=SerializationContext(request_id=request_id)
    )
    wire = serializer.serialize(dict(result or {}))
    body = wire["body"]
    return WireResponse(
        status=int(wire["status_code"]),
        headers={**wire["headers"], "x-amzn-RequestId": request_id},
        body=body.encode() if isinstance(body, str) else body,
    )


def serialise_error(service: str, error: ServiceError) -> WireResponse:
    """The error response in the service's protocol."""
    metadata = service_model(service).metadata
    protocol = metadata["protocol"]
    request_id = str(uuid.uuid4())
    headers = {"x-amzn-RequestId": request_id}
    if protocol in ("json", "rest-json"):
        version = metadata.get("jsonVersion", "1.1")
        headers["Content-Type"] = "application/json" if protocol == "rest-json" else f"application/x-amz-json-{version}"
        headers["x-amzn-ErrorType"] = error.code
        body = json.dumps({"__type": error.code, "message": error.message, "Message": error.message})
        return WireResponse(error.status, headers, body.encode())
    headers["Content-Type"] = "text/xml"
    inner = f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
    if protocol == "ec2":
        body = f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    elif protocol == "query":
        namespace = metadata.get("xmlNamespace", "")
        kind = "Sender" if error.status < 500 else "Receiver"
        body = (
            f'<ErrorResponse xmlns="{namespace}"><Error><Type>{kind}</Type>{inner}</Error>'
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    else:
        body = f"<Error>{inner}<RequestId>{request_id}</RequestId></Error>"
    return WireResponse(error.status, headers, f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode())


def _aware(value: Any) -> Any:
    """A moment as AWS takes it: the parsers leave out that it is in UTC, as every moment on the wire is."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if isinstance(value, dict):
        return {key: _aware(each) for key, each in value.items()}
    return [_aware(each) for each in value] if isinstance(value, list) else value


def _is_absent(operation_model: OperationModel, name: str, value: Any) -> bool:
    """Whether a member was not sent: the parsers give None for it, and an empty list for one of the query string."""
    shape = operation_model.input_shape
    location = shape.members[name].serialization.get("location") if shape and name in shape.members else None
    return value is None or (value == [] and location == "querystring")


@cache
def _routes(service: str) -> tuple[_Route, ...]:
    model = service_model(service)
    routes = [_route(name, model.operation_model(name).http) for name in model.operation_names]
    return tuple(sorted(routes, key=lambda route: route.specificity, reverse=True))


def _route(operation: str, http: Mapping[str, str]) -> _Route:
    path, _, query = http["requestUri"].partition("?")
    pattern, literals = "", 0
    for part in re.split(r"(\{[^}]+\})", path.rstrip("/")):
        if part.startswith("{"):
            name = part.strip("{}")
            pattern += f"(?P<{_group(name.rstrip('+'))}>{'.+' if name.endswith('+') else '[^/]+'})"
        else:
            pattern += re.escape(part)
            literals += len(part)
    arguments = dict(parse_qsl(query, keep_blank_values=True))
    return _Route(operation, http["method"], re.compile(f"{pattern}/?"), arguments, (len(arguments), literals))


def _group(name: str) -> str:
    """A label as a regular expression's group name, which allows no dash."""
    return name.replace("-", "__dash__")


def _label(group: str) -> str:
    return group.replace("__dash__", "-")
